//! omp: the models that a host may choose from, and what it reads of the session's make-up.

use std::path::Path;

use turnwire::protocol::omp::{
    ClientConfig, Export, Omp, OmpAsk, OmpOutcome, RunFiles, ServerConfig, Transcript, preset,
};
use turnwire::session::config::SessionConfig;
use turnwire::session::{goal_tool, task_tool};
use turnwire::vocab::{RawJson, RunId, Text, ToolSpec};
use turnwire_io::{Answer, Answered};

use super::{Hosting, Opening, Served, Spoken, here};
use crate::args::ServeArgs;
use crate::below::Below;
use crate::export;
use crate::ids::IdKind;
use crate::object::{Members, json};
use crate::say::Stop;
use crate::settings::values::Api;
use crate::settings::{Model, Settings};

impl Served for Omp {
    fn own_tools() -> Vec<ToolSpec> {
        vec![goal_tool(), task_tool()]
    }

    fn session_ids(_: &ServeArgs) -> IdKind {
        IdKind::Ordered
    }

    fn preset(config: &mut SessionConfig, _: &ServeArgs) {
        preset(config);
    }

    fn face(opening: &Opening<'_>) -> ServerConfig {
        ServerConfig {
            models: models(opening),
            run_files: opening.below.map(|_| RunFiles {
                between: "-sr-".into(),
                ending: ".jsonl".into(),
            }),
            ui: opening.args.foreign.screen,
            ..ServerConfig::new(opening.seed)
        }
    }

    /// What the program has nothing behind (voice, accounts) gets the contract's own refusal; the models are in the
    /// configuration. What subagents have said is read from the disk.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is refused")]
    fn answer(opening: &Opening<'_>) -> Answer<Omp> {
        let project = opening.start.project.clone();
        let below = opening.below.cloned();
        Box::new(move |ask| match ask {
            OmpAsk::ExportHtml(wanted) => {
                let project = project.clone();
                Answered::Later(Box::new(move || exported(&wanted, &project)))
            }
            OmpAsk::SubagentMessages {
                subagent,
                file,
                from_byte,
            } => match below.clone() {
                Some(below) => Answered::Later(Box::new(move || {
                    said(&below, subagent.as_deref(), file.as_deref(), from_byte)
                })),
                None => OmpOutcome::Default.into(),
            },
            _ => OmpOutcome::Default.into(),
        })
    }
}

fn exported(wanted: &Export, project: &Path) -> OmpOutcome {
    match export::write(wanted, project) {
        Ok(path) => OmpOutcome::Success(Some(json(|out| {
            let mut object = Members::begin(out);
            object.text("path", &path.to_string_lossy());
            object.end();
        }))),
        Err(error) => OmpOutcome::Failure(error.into()),
    }
}

impl Spoken for Omp {
    fn client(hosting: &Hosting<'_>) -> Result<ClientConfig, Stop> {
        hosting.without_greeting()?;
        Ok(ClientConfig {
            cwd: here(),
            ..ClientConfig::default()
        })
    }
}

/// What a subagent of this process has said, from some byte on. No other file is read.
fn said(below: &Below, subagent: Option<&str>, file: Option<&str>, from: u64) -> OmpOutcome {
    let run = |name: &str| name.strip_prefix("run-")?.parse().ok().map(RunId);
    let kept = match (subagent, file) {
        (Some(name), _) => run(name).and_then(|run| below.of_run(run)),
        (None, Some(file)) => below.of_file(file),
        (None, None) => None,
    };
    let Some(kept) = kept else {
        return OmpOutcome::Default;
    };
    match kept.read(from) {
        Ok(part) => OmpOutcome::Transcript(Box::new(Transcript {
            file: kept.file.into(),
            from_byte: part.from,
            next_byte: part.next,
            reset: part.reset,
            messages: part.messages,
        })),
        Err(error) => OmpOutcome::Failure(Text::from(error.to_string())),
    }
}

/// The models, as a catalogue has them; the one that the session begins with is the first.
fn models(opening: &Opening<'_>) -> Vec<RawJson> {
    let (settings, first) = (&opening.start.settings, &*opening.model.model);
    let others = settings.others.iter().map(String::as_str);
    std::iter::once(first)
        .chain(others.filter(|name| *name != first))
        .map(|name| model(settings, name))
        .collect()
}

/// A model. Prices aren't known, so they are zero, as the contract has them for models of one's own.
fn model(settings: &Settings, name: &str) -> RawJson {
    let (api, url, sees) = match &settings.model {
        Model::Http(http) => {
            let api = match http.api {
                Api::Anthropic => "anthropic-messages",
                Api::Openai | Api::Scripted => "openai-completions",
            };
            (api, http.base_url.as_str(), r#"["text","image"]"#)
        }
        Model::Builtin { .. } | Model::Script { .. } => ("scripted", "", r#"["text"]"#),
    };
    json(|out| {
        let mut object = Members::begin(out);
        object.text("id", name);
        object.text("name", name);
        object.text("api", api);
        object.text("provider", &settings.provider);
        object.text("baseUrl", url);
        object.bool("reasoning", !settings.efforts.is_empty());
        if !settings.efforts.is_empty() {
            let mut thinking = object.object("thinking");
            thinking.text("mode", "effort");
            thinking.texts("efforts", &settings.efforts);
            thinking.end();
        }
        object.raw("input", sees);
        object.raw(
            "cost",
            r#"{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}"#,
        );
        object.number("contextWindow", settings.window);
        object.number("maxTokens", settings.max_output);
        object.end();
    })
}
