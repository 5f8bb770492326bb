//! agentx and claude: one face for both wires, and what it asks of the program.

use clap::ValueEnum;
use turnwire::protocol::agentx::providers::{Listed, catalogue};
use turnwire::protocol::agentx::{
    Agentx, AgentxAsk, AgentxOutcome, Policy, Preset, ServerConfig, preset,
};
use turnwire::session::config::SessionConfig;
use turnwire::vocab::{RawJson, Text};
use turnwire_io::Answer;

use super::{Opening, Served, ServedName};
use crate::args::ServeArgs;
use crate::ids::IdKind;
use crate::object::{Members, json};
use crate::settings::{Model, Settings};

/// Hosts of claude set it where they read `session_state_changed`.
const READS_STATES: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";

/// The sets of rules of this wire, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PresetName {
    /// The strict wire, for a program that stands alone
    Agentx,
    /// The strict wire, with hooks, host tools and settings that change as it runs
    AgentxFull,
    /// The wire of the Claude Agent SDKs
    Claude,
}

impl PresetName {
    fn of(args: &ServeArgs) -> PresetName {
        args.stream.preset.unwrap_or(match args.protocol {
            ServedName::Claude => PresetName::Claude,
            ServedName::Agentx | ServedName::Openmax | ServedName::Omp => PresetName::Agentx,
        })
    }

    fn policy(self) -> Policy {
        match self {
            PresetName::Agentx => Preset::Agentx,
            PresetName::AgentxFull => Preset::AgentxFull,
            PresetName::Claude => Preset::Claude,
        }
        .policy()
    }
}

impl Served for Agentx {
    fn session_ids(args: &ServeArgs) -> IdKind {
        match PresetName::of(args) {
            PresetName::Agentx | PresetName::AgentxFull => IdKind::Prefixed,
            PresetName::Claude => IdKind::Random,
        }
    }

    fn preset(config: &mut SessionConfig, args: &ServeArgs) {
        preset(config, &PresetName::of(args).policy());
    }

    fn face(opening: &Opening<'_>) -> ServerConfig {
        let (args, settings) = (opening.args, &opening.start.settings);
        let name = PresetName::of(args);
        let writer = opening.begun.writer.as_ref();
        let key_source = match (&settings.model, name) {
            (_, PresetName::Agentx | PresetName::AgentxFull) => "user",
            (Model::Http(http), PresetName::Claude) if http.key.is_some() => {
                http.key_from.as_deref().unwrap_or("user")
            }
            (Model::Http(_) | Model::Builtin { .. } | Model::Script { .. }, _) => "none",
        };
        let listed = listed(settings, &opening.model.model);
        ServerConfig {
            version: env!("CARGO_PKG_VERSION").into(),
            api_key_source: key_source.into(),
            replay: args.stream.replay,
            partial: args.stream.partial,
            states: std::env::var_os(READS_STATES).is_some_and(|value| !value.is_empty()),
            asks: !args.stream.nobody_to_ask,
            pid: u64::from(std::process::id()),
            provider: Some(listed.selected()),
            providers: catalogue(std::slice::from_ref(&listed), Some(&listed.id)),
            models: models(opening),
            transcript: writer.map(|writer| writer.path().to_string_lossy().into()),
            ..ServerConfig::new(opening.seed, name.policy())
        }
    }

    /// Operations that need what isn't there (plugins, servers of the program's own, accounts, …) get the contract's
    /// own refusal.
    fn answer(_: &Opening<'_>) -> Answer<Agentx> {
        Box::new(|ask| match ask {
            AgentxAsk::Control { .. }
            | AgentxAsk::BlobAppend { .. }
            | AgentxAsk::BlobCommit { .. }
            | AgentxAsk::BlobDrop { .. }
            | AgentxAsk::Environment(_)
            | AgentxAsk::Options(_)
            | AgentxAsk::Flush
            | AgentxAsk::Orphan(_) => AgentxOutcome::Default,
        })
    }
}

/// The type of the provider: how it is spoken with.
fn kind(settings: &Settings) -> &'static str {
    match &settings.model {
        Model::Http(http) => http.api.word(),
        Model::Builtin { .. } | Model::Script { .. } => "scripted",
    }
}

fn texts(words: &[String]) -> Vec<Text> {
    words.iter().map(|word| word.as_str().into()).collect()
}

/// The providers, for the catalogue of the strict wire (WIRE-024). This program starts with one, whichever file set it
/// up.
fn listed(settings: &Settings, model: &str) -> Listed {
    Listed {
        id: settings.provider.as_str().into(),
        kind: kind(settings).into(),
        model: model.into(),
        is_default: true,
        efforts: texts(&settings.efforts),
        // The one that the settings choose, else the first.
        default_effort: settings
            .thinking
            .as_ref()
            .or(settings.efforts.first())
            .map(|effort| effort.as_str().into()),
    }
}

/// The models that a host may choose, the one that the session begins with first. None: nobody named others.
fn models(opening: &Opening<'_>) -> Vec<RawJson> {
    let (settings, first) = (&opening.start.settings, &*opening.model.model);
    if settings.others.is_empty() {
        return Vec::new();
    }
    let others = settings.others.iter().map(String::as_str);
    std::iter::once(first)
        .chain(others.filter(|name| *name != first))
        .map(|name| {
            json(|out| {
                let mut object = Members::begin(out);
                object.text("value", name);
                object.text("displayName", name);
                object.text("description", &format!("{name} of {}", settings.provider));
                object.bool("supportsEffort", !settings.efforts.is_empty());
                if !settings.efforts.is_empty() {
                    object.texts("supportedEffortLevels", &settings.efforts);
                }
                object.end();
            })
        })
        .collect()
}
