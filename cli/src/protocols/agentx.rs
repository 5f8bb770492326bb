//! agentx and claude: one face for both wires, and what it asks of the program.

use std::sync::{Arc, PoisonError};

use clap::ValueEnum;
use serde_json::{Value, json};
use turnwire::protocol::agentx::policy::Extensions;
use turnwire::protocol::agentx::providers::{Listed, catalogue};
use turnwire::protocol::agentx::{
    Agentx, AgentxAsk, AgentxOutcome, ImportLimits, Imported, Policy, Preset, ServerConfig, preset,
};
use turnwire::session::config::SessionConfig;
use turnwire::vocab::{MediaKind, RawJson, Route, SideEffect, Text, ToolSpec};
use turnwire_io::Answer;
use turnwire_io::tools::Dialect;
use turnwire_media::Blobs;

use super::{Opening, Served, ServedName};
use crate::args::{DriverName, Said, ServeArgs};
use crate::foreign::sdk;
use crate::ids::IdKind;
use crate::mcp;
use crate::media;
use crate::object::{self, Members};
use crate::say::Stop;
use crate::settings::values::Api;
use crate::settings::{Model, Settings};

/// Hosts of claude set it where they read `session_state_changed`.
const READS_STATES: &str = "CLAUDE_CODE_SDK_READS_SESSION_STATE";

/// How often the model may miss the form of an answer.
const CAPTURES: u32 = 5;

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
            ServedName::Agentx | ServedName::Openmax | ServedName::Omp | ServedName::Openseek => {
                PresetName::Agentx
            }
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

    fn is_bound(args: &ServeArgs) -> bool {
        is_strict(args)
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
        let providers = providers(settings, &opening.model.model);
        let id = &*settings.provider;
        let selected = providers.iter().find(|listed| &*listed.id == id);
        ServerConfig {
            version: env!("CARGO_PKG_VERSION").into(),
            api_key_source: key_source.into(),
            replay: args.stream.replay,
            partial: args.stream.partial,
            states: std::env::var_os(READS_STATES).is_some_and(|value| !value.is_empty()),
            asks: !args.stream.nobody_to_ask,
            pid: u64::from(std::process::id()),
            provider: selected.map(Listed::selected),
            providers: catalogue(&providers, Some(id)),
            models: models(opening),
            aliases: aliases(opening, name),
            sdk_servers: texts(&settings.mcp.hosted),
            transcript: writer.map(|writer| writer.path().to_string_lossy().into()),
            attachments: taken(opening).map(|(blobs, limits)| media::offered(blobs, limits)),
            ..ServerConfig::new(opening.seed, name.policy())
        }
    }

    /// Operations that need what isn't there (plugins, accounts, …) get the contract's own refusal. What is said of the
    /// session counts from the next turn on.
    fn answer(opening: &Opening<'_>) -> Answer<Agentx> {
        let said = opening.args.foreign.said.clone();
        let shown = opening.args.foreign.shown.clone();
        let deny_env = opening.start.settings.deny_env.clone();
        let blobs = opening.blobs.cloned();
        let servers = opening.servers.clone();
        let runs_servers = opening.args.driver == DriverName::Tokio;
        Box::new(move |ask| {
            let ask = match media::answer(blobs.as_ref(), ask) {
                Ok(answered) => return answered,
                Err(ask) => ask,
            };
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            match ask {
                AgentxAsk::Options(options) => {
                    read_options(options.as_str(), &mut said);
                    AgentxOutcome::Default
                }
                AgentxAsk::Environment(variables) => {
                    if set_variables(variables.as_str(), &deny_env, &mut said) {
                        AgentxOutcome::Success(None)
                    } else {
                        AgentxOutcome::Default
                    }
                }
                AgentxAsk::Control { subtype, .. } if &*subtype == "get_settings" => {
                    let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                    AgentxOutcome::Settings(shown.clone())
                }
                AgentxAsk::Control { subtype, request } if runs_servers => {
                    match mcp::control(&servers, &subtype, &request) {
                        None => AgentxOutcome::Default,
                        Some(Ok(payload)) => AgentxOutcome::Success(payload),
                        Some(Err(why)) => AgentxOutcome::Failure(why.into()),
                    }
                }
                AgentxAsk::Control { .. }
                | AgentxAsk::BlobAppend { .. }
                | AgentxAsk::BlobCommit { .. }
                | AgentxAsk::BlobDrop { .. }
                | AgentxAsk::Flush
                | AgentxAsk::Orphan(_) => AgentxOutcome::Default,
            }
            .into()
        })
    }

    fn takes_attachments(args: &ServeArgs) -> bool {
        PresetName::of(args)
            .policy()
            .attachments_providers_prompt_uuid
            == Extensions::Present
    }

    fn first_prompt(opening: &Opening<'_>) -> Result<Option<Vec<u8>>, Stop> {
        let args = opening.args;
        let prompt = args.foreign.prompt.as_ref().or(args.stream.prompt.as_ref());
        let Some(prompt) = prompt else {
            return Ok(None);
        };
        let files = &args.stream.attach;
        let line = if files.is_empty() {
            let message = json!({ "role": "user", "content": prompt });
            json!({ "type": "user", "message": message })
        } else {
            let Some((blobs, limits)) = taken(opening) else {
                let text = "--attach: attachments aren't taken here".to_owned();
                return Err(Stop::Settings(text));
            };
            let uuid = IdKind::Random.make(0)?;
            let attached = media::attach(blobs, &limits, &uuid.as_str().into(), files)?;
            let text = json!({ "type": "text", "text": prompt });
            let content: Vec<Value> = std::iter::once(text)
                .chain(attached.iter().map(reference))
                .collect();
            let message = json!({ "role": "user", "content_version": 1, "content": content });
            json!({ "type": "user", "uuid": uuid, "message": message })
        };
        Ok(Some(format!("{line}\n").into_bytes()))
    }
}

/// The attachments that a session keeps, and how much it takes; `None`: it takes none.
fn taken<'a>(opening: &Opening<'a>) -> Option<(&'a Arc<Blobs>, ImportLimits)> {
    let limits = opening.start.settings.attachments;
    opening
        .blobs
        .zip(limits)
        .filter(|_| Agentx::takes_attachments(opening.args))
}

/// How a message refers to an attachment.
fn reference(attached: &Imported) -> Value {
    let stored = &attached.stored;
    json!({
        "type": "attachment_ref",
        "attachment_id": &*stored.id,
        "kind": match attached.kind {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
        },
        "name": &*stored.name,
        "mime_type": &*stored.mime,
        "size_bytes": stored.size,
        "sha256": stored.blob.trim_start_matches("blob_sha256_"),
        "storage_id": &*stored.blob,
    })
}

/// Whether the strict wire is spoken: its hosts are shown every provider, and a process is bound to one.
pub fn is_strict(args: &ServeArgs) -> bool {
    match (args.protocol, PresetName::of(args)) {
        (ServedName::Agentx | ServedName::Claude, PresetName::Claude)
        | (ServedName::Openmax | ServedName::Omp | ServedName::Openseek, _) => false,
        (_, PresetName::Agentx | PresetName::AgentxFull) => true,
    }
}

/// What the built-in tools are called in the protocol that is served.
pub fn dialect(args: &ServeArgs) -> Dialect {
    match (args.protocol, PresetName::of(args)) {
        (ServedName::Agentx | ServedName::Claude, PresetName::Claude) => Dialect::Claude,
        (ServedName::Openmax | ServedName::Omp | ServedName::Openseek, _)
        | (_, PresetName::Agentx | PresetName::AgentxFull) => Dialect::Own,
    }
}

/// The tool whose call is the answer of a turn, where the answer has to keep a schema.
pub fn answer_tool(schema: &str) -> ToolSpec {
    ToolSpec {
        name: "StructuredOutput".into(),
        label: None,
        description: "Gives the final answer, in the form that is asked for. Call it once, when all else is done.".into(),
        schema: RawJson(schema.into()),
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Capture { tries: CAPTURES },
    }
}

/// Reads the members of `initialize` that are about the session. Others are about what isn't there.
fn read_options(options: &str, said: &mut Said) {
    let Ok(options) = serde_json::from_str::<Value>(options) else {
        return;
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            Some(parts.join("\n\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    said.system = text(&options["systemPrompt"]).or(said.system.take());
    said.appended = text(&options["appendSystemPrompt"]).or(said.appended.take());
    if options["jsonSchema"].is_object() {
        said.schema = Some(options["jsonSchema"].to_string());
    }
}

/// Sets variables for the commands of the agent. Not those of keys, nor those by which this program tells who it is.
fn set_variables(variables: &str, deny: &[String], said: &mut Said) -> bool {
    let Ok(Value::Object(variables)) = serde_json::from_str(variables) else {
        return false;
    };
    let mut all = true;
    for (name, value) in variables {
        let free =
            !deny.contains(&name) && !name.starts_with("TURNWIRE_") && !name.contains(['=', '\0']);
        match value {
            Value::String(value) if free && !name.is_empty() && !value.contains('\0') => {
                said.env.retain(|(known, _)| *known != name);
                said.env.push((name, value));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => all = false,
        }
    }
    all
}

fn texts(words: &[String]) -> Vec<Text> {
    words.iter().map(|word| word.as_str().into()).collect()
}

/// The providers, for the catalogue of the strict wire (WIRE-024): those of the user's registry, or the one that this
/// program was set up with.
pub fn providers(settings: &Settings, model: &str) -> Vec<Listed> {
    if let Some(registry) = &settings.registry {
        return registry.listed();
    }
    Vec::from([Listed {
        id: settings.provider.as_str().into(),
        kind: match &settings.model {
            Model::Http(http) => http.kind,
            Model::Builtin { .. } | Model::Script { .. } => "scripted",
        }
        .into(),
        model: model.into(),
        name: None,
        description: "The model that this program is set up for".into(),
        is_default: true,
        efforts: texts(&settings.efforts),
        // The one that the settings choose, else the first.
        default_effort: settings
            .thinking
            .as_ref()
            .or(settings.efforts.first())
            .map(|effort| effort.as_str().into()),
    }])
}

/// What hosts of claude call the models of Anthropic's, where such models serve. A name of the settings is itself.
fn aliases(opening: &Opening<'_>, name: PresetName) -> Vec<(Text, Text)> {
    let settings = &opening.start.settings;
    let of_anthropic = match &settings.model {
        Model::Http(http) => http.api == Api::Anthropic,
        Model::Builtin { .. } | Model::Script { .. } => false,
    };
    if name != PresetName::Claude || !of_anthropic {
        return Vec::new();
    }
    let own = |alias: &str| {
        alias == &*opening.model.model || settings.others.iter().any(|it| it == alias)
    };
    sdk::aliases(&|name| std::env::var_os(name))
        .into_iter()
        .filter(|(alias, _)| !own(alias))
        .map(|(alias, model)| (alias.into(), model.as_str().into()))
        .collect()
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
            object::json(|out| {
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
