//! What `drive --offer` serves to the agent: a JSON file of tools and addresses.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use turnwire::vocab::{RawJson, Route, SideEffect, Text, ToolSpec, UriSpec};
use turnwire_tokio::Served;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tools: Vec<Tool>,
    #[serde(default)]
    uris: Vec<Uri>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    description: String,
    parameters: Map<String, Value>,
    run: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Uri {
    scheme: String,
    description: Option<String>,
    #[serde(default)]
    writable: bool,
    #[serde(default)]
    immutable: bool,
    run: Vec<String>,
}

/// Reads the file.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn read(path: &Path) -> Result<Served, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(text: &str) -> Result<Served, String> {
    let File { tools, uris } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut served = Served::default();
    for tool in tools {
        let program = program(tool.run, &tool.name)?;
        let spec = ToolSpec {
            name: tool.name.into(),
            label: None,
            description: tool.description.into(),
            schema: RawJson(Value::Object(tool.parameters).to_string().into()),
            side_effect: SideEffect::Unknown,
            hidden: false,
            uri_arg: None,
            route: Route::Host,
        };
        served.tools.push((spec, program));
    }
    for uri in uris {
        let program = program(uri.run, &uri.scheme)?;
        let spec = UriSpec {
            scheme: uri.scheme.into(),
            description: uri.description.map(Text::from),
            writable: uri.writable,
            immutable: uri.immutable,
        };
        served.uris.push((spec, program));
    }
    Ok(served)
}

fn program(run: Vec<String>, of: &str) -> Result<Vec<OsString>, String> {
    if run.first().is_none_or(String::is_empty) {
        return Err(format!("`run` of {of} names no program"));
    }
    Ok(run.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_and_addresses_come_with_the_programs_that_serve_them() {
        let served = parse(
            r#"{"tools":[{"name":"t","description":"d","parameters":{"type":"object"},"run":["./t","-x"]}],
                "uris":[{"scheme":"db","writable":true,"run":["./db"]}]}"#,
        )
        .unwrap();
        let (tool, program) = &served.tools[0];
        assert_eq!(
            (&*tool.name, tool.schema.as_str()),
            ("t", r#"{"type":"object"}"#)
        );
        assert_eq!(program, &["./t", "-x"]);
        let (uri, program) = &served.uris[0];
        assert!(&*uri.scheme == "db" && uri.writable && !uri.immutable);
        assert_eq!(program, &["./db"]);
    }

    #[test]
    fn what_is_wrong_with_the_file_is_said() {
        for (text, wanted) in [
            ("{", "EOF"),
            (r#"{"tool":[]}"#, "unknown field `tool`"),
            (
                r#"{"tools":[{"name":"t","description":"d","parameters":[],"run":["x"]}]}"#,
                "expected a map",
            ),
            (
                r#"{"tools":[{"name":"t","description":"d","parameters":{},"run":[]}]}"#,
                "`run` of t names no program",
            ),
            (
                r#"{"uris":[{"scheme":"db","run":[""]}]}"#,
                "`run` of db names no program",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
