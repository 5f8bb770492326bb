//! `agentx --list-providers`: which providers there are, before any process is bound to one (WIRE-026).

use std::ffi::OsString;
use std::io::Write;

use clap::Parser as _;
use turnwire::protocol::Credentials;
use turnwire::protocol::agentx::providers::{Listed, Unsafe, discovery};
use turnwire_io::Secret;

use crate::args::{Args, Command};
use crate::folders::Folders;
use crate::protocols::agentx;
use crate::registry;
use crate::say::Stop;
use crate::settings::{Env, Model};
use crate::start::{self, Start};

/// The option.
const LIST: &str = "--list-providers";

/// The other one that may stand beside it.
const FORMAT: &str = "--output-format";

const GRAMMAR: &str = "--list-providers takes --output-format text or json once, and nothing else: no prompt, and no other option";

/// How the list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people: a line each.
    Text,
    /// The document.
    Json,
}

/// Whether a command line of agentx, without its name, wants the list; and how it is written.
///
/// # Errors
/// [`Stop::Settings`] if anything stands there besides.
pub fn wanted(words: &[OsString]) -> Option<Result<Form, Stop>> {
    let options = words.iter().take_while(|word| *word != "--");
    let mut options = options.filter_map(|word| word.to_str());
    options
        .any(|word| word == LIST || word.starts_with("--list-providers="))
        .then(|| form(words).ok_or_else(|| Stop::Settings(GRAMMAR.to_owned())))
}

/// Each option once, in any order; `--` may stand last.
fn form(words: &[OsString]) -> Option<Form> {
    let (mut listed, mut form) = (false, None);
    let mut words = words.iter().map(|word| word.to_str());
    while let Some(word) = words.next() {
        let named = match word? {
            LIST if !listed => {
                listed = true;
                continue;
            }
            "--" => match words.next() {
                None => break,
                Some(_) => return None,
            },
            FORMAT => words.next()??,
            word => word.strip_prefix(FORMAT)?.strip_prefix('=')?,
        };
        let named = match named {
            "text" => Form::Text,
            "json" => Form::Json,
            _ => return None,
        };
        if form.replace(named).is_some() {
            return None;
        }
    }
    listed.then_some(form.unwrap_or(Form::Text))
}

/// Writes the list.
///
/// # Errors
/// [`Stop`] if the providers can't be read, if the list would hold a credential, or if it can't be written: then nothing
/// is written, or no more.
pub fn run(form: Form, folders: Option<Folders>, env: Env<'_>) -> Result<u8, Stop> {
    let (providers, keys) = match registry::read(None, folders.as_ref(), env)? {
        Some(registry) => (registry.listed(), registry.keys(env)),
        None => of_settings(folders, env)?,
    };
    let failed = |why: &dyn std::fmt::Display| Stop::Failed(why.to_string());
    let mut credentials =
        Credentials::exact(keys.iter().map(Secret::expose)).map_err(|error| failed(&error))?;
    let document = match form {
        Form::Json => discovery(&providers, &mut credentials),
        Form::Text => text(&providers, &mut credentials),
    };
    let document = document.map_err(|error| failed(&error))?;
    let mut out = std::io::stdout().lock();
    out.write_all(&document)
        .and_then(|()| out.flush())
        .map_err(|error| failed(&format_args!("writing the providers: {error}")))?;
    Ok(0)
}

/// Without a registry there is the one provider that the settings set up.
fn of_settings(folders: Option<Folders>, env: Env<'_>) -> Result<(Vec<Listed>, Vec<Secret>), Stop> {
    let words = ["turnwire", "serve", "--protocol", "agentx"];
    let Ok(Command::Serve(mut args)) = Args::try_parse_from(words).map(|args| args.command) else {
        return Err(Stop::Settings(GRAMMAR.to_owned()));
    };
    args.trust_project = start::trusted_by_environment(None, env);
    let settings = Start::prepare(&args, folders, env)?.settings;
    let model = match &settings.model {
        Model::Http(http) => http.name.as_str(),
        Model::Builtin { .. } | Model::Script { .. } => "script",
    };
    Ok((agentx::providers(&settings, model), settings.hidden))
}

/// A line for each, with nothing that the document hasn't.
fn text(providers: &[Listed], credentials: &mut Credentials) -> Result<Vec<u8>, Unsafe> {
    let mut text = String::new();
    for listed in providers {
        let alone = providers.len() == 1;
        let default = if listed.is_default || alone {
            "  (default)"
        } else {
            ""
        };
        let efforts: Vec<&str> = listed.efforts.iter().map(|effort| &**effort).collect();
        let efforts = match efforts.as_slice() {
            [] => String::new(),
            efforts => format!("  efforts: {}", efforts.join(", ")),
        };
        text.push_str(&format!(
            "{}  {}  {}{efforts}{default}\n",
            listed.id, listed.kind, listed.model
        ));
    }
    let text = text.into_bytes();
    if credentials.found_in(&text) {
        return Err(Unsafe);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<Result<Form, Stop>> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        wanted(&words)
    }

    #[test]
    fn wire_026_the_grammar_is_two_options_once_each_in_any_order() {
        for (line, form) in [
            ("--list-providers", Form::Text),
            ("--list-providers --", Form::Text),
            ("--list-providers --output-format json", Form::Json),
            ("--output-format=json --list-providers", Form::Json),
            ("--output-format text --list-providers --", Form::Text),
        ] {
            assert_eq!(said(line), Some(Ok(form)), "{line}");
        }
        for line in [
            "--list-providers --list-providers",
            "--list-providers=yes",
            "--list-providers --output-format",
            "--list-providers --output-format stream-json",
            "--list-providers --output-format json --output-format json",
            "--list-providers --help",
            "--version --list-providers",
            "--list-providers prompt",
            "--list-providers -- prompt",
            "--list-providers -- --",
            "--provider a --list-providers",
        ] {
            assert!(matches!(said(line), Some(Err(_))), "{line}");
        }
        for line in ["", "--output-format json", "-- --list-providers"] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
