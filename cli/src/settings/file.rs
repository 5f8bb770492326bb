//! The settings file: its members, and errors that say where.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::attachments::AttachmentTable;
use super::hooks::{HookEntry, RuleTable};
use super::values::{
    Api, Approval, BaseUrl, Dollars, EnvName, Millis, Seconds, Temperature, Tokens,
};
use crate::mcp::McpTable;
use crate::say::Stop;

/// Most bytes of a file that the program reads whole: settings and trust.
pub const MOST_BYTES: u64 = 1024 * 1024;

/// Members of `turnwire.toml`. All are optional; one that isn't known is an error.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileSettings {
    /// As `--log`.
    pub log: Option<String>,
    /// As the group `Model` of the command line.
    pub model: ModelTable,
    /// As the group `Session`.
    pub session: SessionTable,
    /// As the group `Tools`.
    pub tools: ToolsTable,
    /// Attachments of prompts.
    pub attachments: AttachmentTable,
    /// Hooks, see [`gather`](super::hooks::gather).
    #[serde(rename = "hook")]
    pub hooks: Vec<HookEntry>,
    /// Permission rules.
    #[serde(rename = "rule")]
    pub rules: Vec<RuleTable>,
    /// MCP servers that are started.
    pub mcp: McpTable,
}

/// `[model]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelTable {
    /// As `--api`.
    pub api: Option<Api>,
    /// As `--provider`.
    pub provider: Option<String>,
    /// As `--base-url`.
    pub base_url: Option<BaseUrl>,
    /// As `--model`.
    pub name: Option<String>,
    /// As `--other-model`; the list replaces the one of a lower file.
    pub others: Option<Vec<String>>,
    /// As `--key-env`.
    pub key_env: Option<EnvName>,
    /// As `--script`; a relative path begins at the file's own folder.
    pub script: Option<PathBuf>,
    /// As `--effort`; the list replaces the one of a lower file.
    pub efforts: Option<Vec<String>>,
    /// As `--thinking`.
    pub thinking: Option<String>,
    /// As `--temperature`.
    pub temperature: Option<Temperature>,
    /// As `--max-output`.
    pub max_output: Option<Tokens>,
    /// As `--window`.
    pub window: Option<Tokens>,
    /// As `--idle-limit`.
    pub idle_limit: Option<Seconds>,
    /// What models cost; the list replaces the one of a lower file.
    #[serde(rename = "price")]
    pub prices: Option<Vec<PriceTable>>,
}

/// `[[model.price]]`: US dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The model; none: the one that `name` of this file names, or whichever is used if it names none.
    pub model: Option<String>,
    /// Of a prompt, in no cache.
    pub input: Dollars,
    /// Of a prompt, read from a cache; as `input` unless it is said.
    pub cache_read: Option<Dollars>,
    /// Of a prompt, written to a cache; as `input` unless it is said.
    pub cache_write: Option<Dollars>,
    /// Of an answer, thinking too.
    pub output: Dollars,
    /// Since when, as a person reads it.
    pub as_of: String,
    /// Whose price list that is; the file unless it is said.
    pub source: Option<String>,
}

/// `[session]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionTable {
    /// As `--approval`.
    pub approval: Option<Approval>,
    /// As `--approval-limit`.
    pub approval_limit: Option<Seconds>,
    /// As `--max-steps`.
    pub max_steps: Option<std::num::NonZeroU32>,
    /// As `--max-budget`.
    pub max_budget: Option<Dollars>,
    /// As `--hide-env`; the list replaces the one of a lower file.
    pub hide_env: Option<Vec<EnvName>>,
    /// As `--coalesce`.
    pub coalesce: Option<Millis>,
    /// As `--instructions`; a relative path begins at the file's own folder.
    pub instructions: Option<PathBuf>,
    /// Whether sessions are kept; `false` is as `--no-store`.
    pub store: Option<bool>,
    /// As `--session-dir`; a relative path begins at the file's own folder.
    pub dir: Option<PathBuf>,
}

/// `[tools]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsTable {
    /// As `--allow-outside`.
    pub allow_outside: Option<bool>,
    /// As `--only-tool`; the list replaces the one of a lower file, and an empty one is as `--no-tools`.
    pub only: Option<Vec<String>>,
    /// As `--pass-env`; the list replaces the one of a lower file.
    pub pass_env: Option<Vec<EnvName>>,
}

/// The text of a small file; `None` if there is none.
///
/// # Errors
/// [`Stop::Settings`] if it can't be read, is too long, isn't a file, or isn't UTF-8.
pub fn text(path: &Path) -> Result<Option<String>, Stop> {
    let stop = |why: &dyn std::fmt::Display| Stop::Settings(format!("{}: {why}", path.display()));
    // A named pipe would make the opening wait for ever.
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(stop(&"not a file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(stop(&error)),
    }
    let file = File::open(path).map_err(|error| stop(&error))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| stop(&error))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(stop(&format_args!("longer than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| stop(&"not UTF-8"))
}

/// Reads a settings file. A hook that can't be read doesn't make it wrong: it isn't loaded, and that is said.
///
/// # Errors
/// As [`parse`].
pub fn settings(path: &Path, text: &str) -> Result<FileSettings, Stop> {
    let mut settings: FileSettings = parse(path, text)?;
    for entry in &mut settings.hooks {
        entry.found_in(path, |at| place(text, at));
    }
    Ok(settings)
}

/// Reads TOML, and names file, line and column of what is wrong.
///
/// # Errors
/// [`Stop::Settings`] with the place and the reason. The line itself isn't shown: it may hold what isn't meant to be.
pub fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Stop> {
    toml::from_str(text).map_err(|fault| {
        let place = fault
            .span()
            .map(|span| place(text, span.start))
            .unwrap_or_default();
        let reason = fault.message().replace('\n', " ");
        Stop::Settings(format!("{}{place}: {}", path.display(), reason.trim_end()))
    })
}

/// `:line:column` of a byte, both from 1, the column in characters.
pub fn place(text: &str, at: usize) -> String {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!(":{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FileSettings, String> {
        parse(Path::new("/p/turnwire.toml"), text).map_err(|stop| stop.to_string())
    }

    #[test]
    fn a_whole_file_is_read() {
        let got = read(
            r#"
            log = "info"
            [model]
            api = "openai"
            base_url = "http://localhost:11434/v1/"
            name = "qwen3"
            key_env = "LOCAL_KEY"
            temperature = 1
            max_output = 4096
            window = 32768
            idle_limit = 30
            [session]
            approval = "auto"
            max_steps = 20
            [tools]
            allow_outside = true
            pass_env = ["CARGO_HOME"]
            "#,
        )
        .unwrap();
        assert_eq!(
            got.model.base_url.unwrap().as_str(),
            "http://localhost:11434/v1"
        );
        assert_eq!(got.model.temperature.unwrap().get(), 1.0);
        assert_eq!(got.session.approval, Some(Approval::Auto));
        assert_eq!(got.tools.pass_env.unwrap().len(), 1);
        assert_eq!(read("").unwrap(), FileSettings::default());
    }

    #[test]
    fn errors_name_file_line_and_column() {
        for (text, place, words) in [
            ("[model]\nnam = \"x\"\n", ":2:1: ", "nam"),
            ("[model]\nbase_url = \"ftp://x\"\n", ":2:12: ", "http://"),
            (
                "[session]\napproval = \"yolo\"\n",
                ":2:12: ",
                "`auto`, `ask`, `readonly`",
            ),
            ("[session]\nmax_steps = 0\n", ":2:13: ", "0"),
            ("[model]\n# größer\nname = \n", ":3:", ""),
            ("[model]\nwindow = 0\n", ":2:10: ", "tokens"),
            (
                "[tools]\npass_env = [\"ok\", \"not ok\"]\n",
                ":2:",
                "environment variable",
            ),
        ] {
            let fault = read(text).unwrap_err();
            let start = format!("/p/turnwire.toml{place}");
            assert!(
                fault.starts_with(&start) && fault.contains(words),
                "{fault:?} for {text:?}"
            );
            assert!(!fault.contains('\n'));
        }
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(place("ä = 1\nöö = ?", 12), ":2:4");
        assert_eq!(place("", 7), ":1:1");
    }
}
