//! A manifest: one TOML file that describes one tool.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use turnwire_io::tools::{CodePlaces, External, Source, sha_of};

use super::approvals::FileSha;
use super::{Places, Tool, shown};
use crate::settings::file;
use crate::settings::values::{EnvName, Seconds};

/// The longest description, in bytes: each request to the model carries it.
const MOST_DESCRIPTION: usize = 16 * 1024;

/// The largest schema, in bytes of JSON.
const MOST_SCHEMA: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    name: String,
    description: String,
    command: Vec<String>,
    parameters: Option<toml::Value>,
    #[serde(default)]
    env: Vec<EnvName>,
    #[serde(default)]
    reads_only: bool,
    timeout: Option<Seconds>,
    #[serde(default)]
    code: Vec<PathBuf>,
}

/// Reads one. An error is a text that names the file, and the place in it.
pub fn read(places: &Places<'_>, path: &Path) -> Result<Tool, String> {
    let name = shown(places.root, path);
    let wrong = |why: &dyn std::fmt::Display| format!("{name}: {why}");
    let text = file::text(path).map_err(|stop| stop.to_string())?;
    let text = text.ok_or_else(|| wrong(&"it is gone"))?;
    let manifest: Manifest =
        file::parse(Path::new(&name), &text).map_err(|stop| stop.to_string())?;
    let schema = manifest.check(places.deny_env).map_err(|why| wrong(&why))?;
    let code_places = CodePlaces {
        root: places.root.to_owned(),
        beside: path.parent().unwrap_or(places.root).to_owned(),
        command: manifest.command.clone(),
        named: manifest.code,
    };
    let code = code_places.read().map_err(|why| wrong(&why))?;
    let mut files = vec![FileSha::of(path, sha_of(text.as_bytes())).map_err(|why| wrong(&why))?];
    for code in &code {
        files.push(FileSha::of(&code.path, code.sha.clone()).map_err(|why| wrong(&why))?);
    }
    Ok(Tool {
        external: External {
            name: manifest.name,
            description: manifest.description,
            schema,
            reads_only: manifest.reads_only,
            command: manifest.command,
            env: manifest
                .env
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect(),
            limit: manifest.timeout.map(Seconds::get),
            source: Source {
                path: name.clone(),
                sha: String::new(),
                places: code_places,
                code,
            },
            approved: false,
        },
        files,
        manifest: name,
    })
}

impl Manifest {
    /// Checks what TOML can't say; the result is the schema as JSON.
    fn check(&self, deny_env: &[String]) -> Result<String, String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=64).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            return Err("a name is 1 to 64 letters, digits, _ and -".to_owned());
        }
        if self.description.trim().is_empty() || self.description.len() > MOST_DESCRIPTION {
            return Err(format!("a description has 1 to {MOST_DESCRIPTION} bytes"));
        }
        match self.command.first() {
            Some(program) if !program.is_empty() => {}
            Some(_) | None => return Err("the command names no program".to_owned()),
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return Err("the command contains a NUL character".to_owned());
        }
        for name in &self.env {
            if deny_env.iter().any(|key| key == name.as_str()) {
                return Err(format!(
                    "{} is a provider's key; tools can't have it",
                    name.as_str()
                ));
            }
        }
        schema(self.parameters.as_ref())
    }
}

/// The schema: a table of the manifest's own, or a string of JSON; none means that there are no arguments.
fn schema(parameters: Option<&toml::Value>) -> Result<String, String> {
    let value = match parameters {
        None => serde_json::json!({ "properties": {}, "additionalProperties": false }),
        Some(toml::Value::String(text)) => serde_json::from_str(text)
            .map_err(|fault| format!("parameters are no JSON: {fault}"))?,
        Some(table) => serde_json::to_value(table)
            .map_err(|fault| format!("parameters can't be JSON: {fault}"))?,
    };
    let serde_json::Value::Object(mut object) = value else {
        return Err("parameters aren't an object".to_owned());
    };
    let kind = object.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return Err("parameters describe something else than an object".to_owned());
    }
    let text = serde_json::Value::Object(object).to_string();
    if text.len() > MOST_SCHEMA {
        return Err(format!("parameters have more than {MOST_SCHEMA} bytes"));
    }
    Ok(text)
}
