//! omp: the models that a host may choose from, and what it reads of the session's make-up.

use std::path::Path;

use turnwire::protocol::omp::{
    ClientConfig, Export, Omp, OmpAsk, OmpOutcome, ServerConfig, preset,
};
use turnwire::session::config::SessionConfig;
use turnwire::vocab::RawJson;
use turnwire_io::{Answer, Answered};

use super::{Hosting, Opening, Served, Spoken, here};
use crate::args::ServeArgs;
use crate::export;
use crate::ids::IdKind;
use crate::object::{Members, json};
use crate::say::Stop;
use crate::settings::values::Api;
use crate::settings::{Model, Settings};

impl Served for Omp {
    fn session_ids(_: &ServeArgs) -> IdKind {
        IdKind::Ordered
    }

    fn preset(config: &mut SessionConfig, _: &ServeArgs) {
        preset(config);
    }

    fn face(opening: &Opening<'_>) -> ServerConfig {
        ServerConfig {
            models: models(opening),
            ui: opening.args.foreign.screen,
            ..ServerConfig::new(opening.seed)
        }
    }

    /// What the program has nothing behind (voice, accounts) gets the contract's own refusal; the models are in the
    /// configuration.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is refused")]
    fn answer(opening: &Opening<'_>) -> Answer<Omp> {
        let project = opening.start.project.clone();
        Box::new(move |ask| match ask {
            OmpAsk::ExportHtml(wanted) => {
                let project = project.clone();
                Answered::Later(Box::new(move || exported(&wanted, &project)))
            }
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
