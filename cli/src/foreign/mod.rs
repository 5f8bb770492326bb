//! Command lines of other programs, for clients that start those themselves: `turnwire as PROGRAM ARGS…`, or a copy of
//! or a link to this program that is called so.

pub mod listing;
mod omp;
mod openseek;
pub mod print;
mod rules;
pub mod sdk;

use std::ffi::OsString;
use std::path::Path;

use clap::Subcommand;

use sdk::Sdk;

use crate::args::ServeArgs;
use crate::say::Stop;
use crate::settings::{Env, file};

/// What the other programs exit with when they refuse to start.
pub const REFUSED: u8 = 1;

/// The command that they stand behind.
pub const COMMAND: &str = "as";

/// The programs whose command line is understood.
#[derive(Debug, Subcommand)]
pub enum Program {
    /// omp's RPC mode
    #[command(version, args_override_self = true, after_help = omp::AFTER_HELP)]
    Omp(Box<omp::OmpArgs>),
    /// Claude Code, as the Claude Agent SDKs start it
    #[command(version, args_override_self = true, after_help = sdk::AFTER_HELP)]
    Claude(Box<sdk::SdkArgs>),
    /// agentx with JSON lines
    #[command(version, args_override_self = true, after_help = sdk::AFTER_HELP)]
    Agentx(Box<sdk::SdkArgs>),
    /// openseek's engine
    #[command(version, args_override_self = true, after_help = openseek::AFTER_HELP)]
    Openseek(Box<openseek::SeekCommand>),
}

impl Program {
    /// What its command line means for `serve`.
    ///
    /// # Errors
    /// [`Stop`] for what is well formed and can't be done.
    pub fn into_serve(self, env: Env<'_>) -> Result<ServeArgs, Stop> {
        match self {
            Program::Omp(args) => args.into_serve(),
            Program::Claude(args) => args.into_serve(Sdk::Claude, env),
            Program::Agentx(args) => args.into_serve(Sdk::Agentx, env),
            Program::Openseek(args) => args.into_serve(env),
        }
    }
}

/// What stands in a file.
fn text(path: &str) -> Result<String, Stop> {
    let found = file::text(Path::new(path))?;
    found.ok_or_else(|| Stop::Settings(format!("{path}: there is no such file")))
}

/// The words of a command line; those of a program that this process was called by the name of, as this one's own.
pub fn spelt_out(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let name = words.first().and_then(|name| {
        let name = Path::new(name).file_stem()?.to_str()?;
        Program::has_subcommand(name).then(|| name.to_owned())
    });
    if let Some(name) = name {
        words.splice(1..1, [COMMAND.into(), name.into()]);
    }
    words
}

/// The arguments of agentx, if the command line is its.
pub fn of_agentx(words: &[OsString]) -> Option<&[OsString]> {
    match words {
        [_, command, program, rest @ ..] if command == COMMAND && program == "agentx" => Some(rest),
        _ => None,
    }
}

/// Whether such a command line is another program's, so that its exit codes count.
pub fn is_foreign(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_by_the_name_of_the_file() {
        let spelt = |words: &[&str]| spelt_out(words.iter().map(OsString::from));
        for (name, program) in [
            ("omp", "omp"),
            ("/usr/local/bin/omp", "omp"),
            ("./omp.exe", "omp"),
            ("/opt/claude", "claude"),
            ("agentx", "agentx"),
        ] {
            let words = spelt(&[name, "--mode", "rpc"]);
            assert_eq!(words, [name, "as", program, "--mode", "rpc"]);
            assert!(is_foreign(&words));
        }
        for name in ["turnwire", "/omp/turnwire", "omps", ""] {
            assert_eq!(spelt(&[name, "spec"]), [name, "spec"]);
        }
        assert!(spelt(&[]).is_empty() && !is_foreign(&[]));
    }
}
