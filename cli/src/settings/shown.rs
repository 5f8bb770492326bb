//! What hosts are shown of the settings: each layer as it was written, but for what is nobody's business.
//!
//! Left out are how a provider is reached, the names of variables with secrets, and the command lines of hooks. A key can't
//! stand in a layer at all.

use serde_json::{Map, Value, json};
use turnwire::protocol::agentx::{SettingsLayer, SettingsSource};
use turnwire::vocab::RawJson;

use super::Layer;
use crate::args::ServeArgs;

/// Members that aren't shown, by the table that they stand in.
const LEFT_OUT: [(&str, &[&str]); 3] = [
    ("model", &["base_url", "key_env"]),
    ("session", &["hide_env"]),
    ("hook", &["command"]),
];

/// All layers that say something, the lowest first; `files` in order of rank, the highest first.
pub fn layers(args: &ServeArgs, files: &[Layer]) -> Vec<SettingsLayer> {
    let flags = flags(args);
    let of_files = files.iter().rev().map(|layer| SettingsLayer {
        source: layer.source,
        settings: layer.shown.clone(),
    });
    let of_flags = (!flags.is_empty()).then(|| SettingsLayer {
        source: SettingsSource::Flag,
        settings: RawJson(Value::Object(flags).to_string().as_str().into()),
    });
    of_files.chain(of_flags).collect()
}

/// A settings file, which has been read before.
pub fn file(text: &str) -> RawJson {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let mut shown = serde_json::to_value(table).unwrap_or_default();
    for (name, members) in LEFT_OUT {
        // `[[hook]]` is a list of tables.
        match shown.get_mut(name) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| leave_out(item, members)),
            Some(table) => leave_out(table, members),
            None => {}
        }
    }
    RawJson(shown.to_string().as_str().into())
}

fn leave_out(table: &mut Value, members: &[&str]) {
    if let Some(table) = table.as_object_mut() {
        for member in members {
            table.remove(*member);
        }
    }
}

/// The command line, in the form of a settings file.
fn flags(args: &ServeArgs) -> Map<String, Value> {
    let (of_model, of_session, of_tools) = (&args.model, &args.session, &args.tools);
    let list = |words: &[String]| (!words.is_empty()).then(|| json!(words));
    let path = |path: &std::path::PathBuf| json!(path.to_string_lossy());
    let thinking = of_model
        .thinking
        .as_ref()
        .or(args.foreign.thinking.as_ref());
    let model = table([
        ("api", of_model.api.map(|api| json!(api.word()))),
        ("provider", of_model.provider.as_ref().map(|it| json!(it))),
        ("name", of_model.model.as_ref().map(|it| json!(it))),
        ("others", list(&of_model.other_model)),
        ("script", of_model.script.as_ref().map(path)),
        ("efforts", list(&of_model.effort)),
        ("thinking", thinking.map(|it| json!(it))),
        (
            "temperature",
            of_model.temperature.map(|it| json!(it.get())),
        ),
        ("max_output", of_model.max_output.map(|it| json!(it.get()))),
        ("window", of_model.window.map(|it| json!(it.get()))),
        (
            "idle_limit",
            of_model.idle_limit.map(|it| json!(it.get().as_secs_f64())),
        ),
    ]);
    let limit = of_session.approval_limit;
    let session = table([
        ("approval", of_session.approval.map(|it| json!(it.word()))),
        (
            "approval_limit",
            limit.map(|it| json!(it.get().as_secs_f64())),
        ),
        ("max_steps", of_session.max_steps.map(|it| json!(it))),
        (
            "max_budget",
            of_session.max_budget.map(|it| json!(it.get())),
        ),
        ("coalesce", of_session.coalesce.map(|it| json!(it))),
        ("instructions", of_session.instructions.as_ref().map(path)),
        ("store", of_session.no_store.then_some(json!(false))),
        ("dir", of_session.session_dir.as_ref().map(path)),
    ]);
    let only = of_tools.no_tools.then(|| json!([]));
    let tools = table([
        (
            "allow_outside",
            of_tools.allow_outside.then_some(json!(true)),
        ),
        ("only", only.or_else(|| list(&of_tools.only_tool))),
        ("pass_env", list(&of_tools.pass_env)),
    ]);
    let whole = |table: Map<String, Value>| (!table.is_empty()).then_some(Value::Object(table));
    table([
        ("log", args.log.as_ref().map(|it| json!(it))),
        ("model", whole(model)),
        ("session", whole(session)),
        ("tools", whole(tools)),
    ])
}

fn table<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let members = members.into_iter();
    members
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Value {
        serde_json::from_str(file(text).as_str()).unwrap()
    }

    #[test]
    fn ax_s10_a_file_is_shown_as_it_is_but_for_what_is_nobodys_business() {
        let text = "log = 'info'\n[model]\napi = 'openai'\nbase_url = 'http://sentinel/v1'\nkey_env = 'SENTINEL'\nname = 'm'\n\
                    temperature = 0.5\n[[model.price]]\nmodel = 'm'\ninput = 1.2\noutput = 6\nas_of = '2026-11-30'\n\
                    [session]\nhide_env = ['SENTINEL']\nmax_steps = 3\n[[hook]]\nname = 'h'\nevent = 'turn_end'\n\
                    command = 'curl -H sentinel'\n[[rule]]\naction = 'deny'\ntool = 'bash'\n";
        assert_eq!(
            shown(text),
            json!({
                "log": "info",
                "model": { "api": "openai", "name": "m", "temperature": 0.5,
                           "price": [{ "model": "m", "input": 1.2, "output": 6, "as_of": "2026-11-30" }] },
                "session": { "max_steps": 3 },
                "hook": [{ "name": "h", "event": "turn_end" }],
                "rule": [{ "action": "deny", "tool": "bash" }],
            })
        );
        assert_eq!(shown(""), json!({}));
    }

    #[test]
    fn ax_s10_flags_have_the_form_of_a_file_that_would_say_the_same() {
        use clap::Parser as _;
        let words = "turnwire serve --protocol claude --api openai --base-url http://sentinel/v1 --key-env SENTINEL \
                     --model m --other-model n --max-output 10 --idle-limit 2 --hide-env SENTINEL --max-steps 3 --no-store \
                     --max-budget 0.5 --no-tools --approval-limit 1.5";
        let parsed = crate::args::Args::try_parse_from(words.split_whitespace()).unwrap();
        let crate::args::Command::Serve(args) = parsed.command else {
            panic!("not serve")
        };
        let said = Value::Object(flags(&args));
        assert_eq!(
            said,
            json!({
                "model": { "api": "openai", "name": "m", "others": ["n"], "max_output": 10, "idle_limit": 2.0 },
                "session": { "approval_limit": 1.5, "max_steps": 3, "max_budget": 0.5, "store": false },
                "tools": { "only": [] },
            })
        );
        // It is a settings file.
        let toml = toml::to_string(&said).unwrap();
        let read: super::super::file::FileSettings = toml::from_str(&toml).unwrap();
        assert_eq!(read.model.name.as_deref(), Some("m"));
    }
}
