//! The command line of omp, as far as a host can start it: `--mode rpc` and `--mode rpc-ui`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as Group, ValueEnum};

use crate::args::{
    DriverName, Foreign, ModelArgs, SeekArgs, ServeArgs, SessionArgs, StreamArgs, ToolArgs,
};
use crate::mcp::Given;
use crate::protocols::ServedName;
use crate::say::Stop;
use crate::settings::file;
use crate::settings::values::Approval;

pub const AFTER_HELP: &str = "\
The model's address and the variable of its key come from the settings files, as do all other settings. The project \
must be trusted: run `turnwire trust` in it once, or name its folder in TURNWIRE_TRUST_PROJECT.";

/// The options of omp that mean something here.
#[derive(Debug, Group)]
pub struct OmpArgs {
    /// How to be spoken with
    #[arg(long, value_name = "MODE")]
    mode: Mode,

    /// Who serves the model
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// The model: its name, or its provider's and its name
    #[arg(long, value_name = "[PROVIDER/]NAME")]
    model: Option<String>,

    /// The models that a host may cycle through, separated by commas: names, no patterns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    models: Vec<String>,

    /// How much the model thinks: off, auto, or an effort that the settings say it knows
    #[arg(long, value_name = "LEVEL")]
    thinking: Option<String>,

    /// Never taken: keys come from the environment
    #[arg(long, value_name = "KEY", hide = true)]
    api_key: Option<String>,

    /// What the model is told first: a text, or a file that holds it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system_prompt: Option<String>,

    /// What the model is told besides: a text, or a file that holds it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    append_system_prompt: Option<String>,

    /// The folder to work in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Keep nothing of the session
    #[arg(long)]
    no_session: bool,

    /// Where sessions are kept
    #[arg(long, value_name = "DIR")]
    session_dir: Option<PathBuf>,

    /// Go on with the session of this folder that was saved last
    #[arg(long = "continue", short = 'c', conflicts_with = "no_session")]
    go_on: bool,

    /// The tools that the model gets, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,

    /// The model gets no tools
    #[arg(long)]
    no_tools: bool,

    /// What runs unasked: always-ask, reading; write, changes of files too; yolo, everything
    #[arg(long, value_name = "MODE")]
    approval_mode: Option<ApprovalMode>,

    /// Everything runs unasked
    #[arg(long, alias = "yolo")]
    auto_approve: bool,

    /// Nothing to leave out
    #[command(flatten)]
    absent: Absent,

    #[arg(hide = true)]
    messages: Vec<OsString>,
}

/// Switches for what isn't there anyway. They are taken, and change nothing.
#[derive(Debug, Group)]
struct Absent {
    #[arg(long, hide = true)]
    no_title: bool,
    #[arg(long, hide = true)]
    no_skills: bool,
    #[arg(long, hide = true)]
    no_rules: bool,
    #[arg(long, hide = true)]
    no_extensions: bool,
    #[arg(long, hide = true)]
    no_lsp: bool,
    #[arg(long, hide = true)]
    no_pty: bool,
    #[arg(long, hide = true)]
    no_ui: bool,
    #[arg(long, hide = true)]
    no_prewalk: bool,
    #[arg(long, hide = true)]
    allow_home: bool,
    #[arg(long, hide = true)]
    hide_thinking: bool,
}

/// The modes that speak a protocol of this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// JSON lines
    Rpc,
    /// JSON lines, and a screen for dialogs
    RpcUi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ApprovalMode {
    AlwaysAsk,
    Write,
    Yolo,
}

impl OmpArgs {
    /// What it means for `serve`.
    ///
    /// # Errors
    /// [`Stop`] for what can't be done.
    pub fn into_serve(self) -> Result<ServeArgs, Stop> {
        let args = self;
        if let Some(message) = args.messages.first() {
            let message = message.to_string_lossy();
            let why = if message.starts_with('@') {
                "files are no arguments in RPC mode: name them in the prompt"
            } else {
                "prompts are no arguments in RPC mode: send them as commands"
            };
            return Err(Stop::Settings(why.to_owned()));
        }
        if args.api_key.is_some() {
            let why = "--api-key isn't taken, since other processes can read a command line: put the key in the \
                   environment, in the provider's own variable or in one that the settings name (model.key_env)";
            return Err(Stop::Settings(why.to_owned()));
        }
        let approval = match (args.auto_approve, args.approval_mode) {
            (true, _) | (false, Some(ApprovalMode::Yolo)) => Some(Approval::Auto),
            (false, Some(ApprovalMode::Write)) => Some(Approval::Edits),
            (false, Some(ApprovalMode::AlwaysAsk)) => Some(Approval::Ask),
            (false, None) => None,
        };
        let others = args.models.iter().map(|name| name.trim().to_owned());
        Ok(ServeArgs {
            protocol: ServedName::Omp,
            project: args.cwd,
            trust_project: false,
            go_on: args.go_on,
            model: ModelArgs {
                provider: args.provider,
                model: args.model,
                other_model: others.filter(|name| !name.is_empty()).collect(),
                ..ModelArgs::default()
            },
            session: SessionArgs {
                approval,
                no_store: args.no_session,
                session_dir: args.session_dir,
                ..SessionArgs::default()
            },
            tools: ToolArgs {
                only_tool: args.tools.iter().filter_map(|name| tool(name)).collect(),
                no_tools: args.no_tools,
                ..ToolArgs::default()
            },
            seek: SeekArgs::default(),
            stream: StreamArgs::default(),
            log: None,
            driver: DriverName::Tokio,
            foreign: Foreign {
                provider_in_model: true,
                thinking: args.thinking,
                // There it is what counts if nobody says anything.
                approval: Some(Approval::Auto),
                system: args.system_prompt.as_deref().map(text).transpose()?,
                appended: args.append_system_prompt.as_deref().map(text).transpose()?,
                screen: args.mode == Mode::RpcUi,
                ..Foreign::default()
            },
            given_mcp: Given::default(),
        })
    }
}

/// The tool of ours that does what the one of this name does there; our own names are taken too.
fn tool(name: &str) -> Option<String> {
    let name = name.trim();
    let ours = match name {
        "" => return None,
        "read" => "read_file",
        "write" => "write_file",
        "edit" => "edit_file",
        "ls" => "list_dir",
        "grep" => "search",
        other => other,
    };
    Some(ours.to_owned())
}

/// The text, or what stands in the file that it names.
fn text(given: &str) -> Result<String, Stop> {
    // Longer texts, and those of several lines, are no names of files.
    let may_be_file = given.len() < 1024 && !given.contains('\n') && Path::new(given).is_file();
    let of_file = if may_be_file {
        file::text(Path::new(given))?
    } else {
        None
    };
    Ok(of_file.unwrap_or_else(|| given.to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn args(words: &[&str]) -> Result<ServeArgs, String> {
        let words = ["turnwire", "as", "omp"].iter().chain(words);
        let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::As { program } = args.command else {
            panic!("not as")
        };
        program
            .into_serve(&|_| None)
            .map_err(|stop| stop.to_string())
    }

    #[test]
    fn what_a_client_passes_becomes_settings() {
        let words = "--mode rpc --provider anthropic --model m --session-dir /s --no-title";
        let words: Vec<&str> = words.split(' ').collect();
        let got = args(&words).unwrap();
        assert_eq!(got.model.provider.as_deref(), Some("anthropic"));
        assert_eq!(got.model.model.as_deref(), Some("m"));
        assert_eq!(got.session.session_dir, Some("/s".into()));
        assert_eq!(
            (got.session.approval, got.foreign.approval),
            (None, Some(Approval::Auto))
        );
        assert!(!got.foreign.screen && !got.session.no_store);
        let got = args(&["--mode=rpc-ui", "--no-session", "--no-tools"]).unwrap();
        assert!(got.foreign.screen && got.session.no_store && got.tools.no_tools);
    }

    #[test]
    fn the_last_of_two_counts() {
        let got = args(&[
            "--mode", "rpc-ui", "--model", "a", "--mode", "rpc", "--model", "b",
        ])
        .unwrap();
        assert_eq!(
            (got.foreign.screen, got.model.model.as_deref()),
            (false, Some("b"))
        );
    }

    #[test]
    fn approval_modes_have_their_counterparts() {
        for (words, want) in [
            (&["--approval-mode", "always-ask"][..], Approval::Ask),
            (&["--approval-mode", "write"], Approval::Edits),
            (&["--approval-mode", "yolo"], Approval::Auto),
            (&["--auto-approve"], Approval::Auto),
            (&["--yolo"], Approval::Auto),
        ] {
            let got = args(&[&["--mode", "rpc"], words].concat()).unwrap();
            assert_eq!(got.session.approval, Some(want));
        }
    }

    #[test]
    fn tools_go_by_either_name() {
        let got = args(&["--mode", "rpc", "--tools", "bash,read, search"]).unwrap();
        assert_eq!(got.tools.only_tool, ["bash", "read_file", "search"]);
    }

    #[test]
    fn what_isnt_known_or_cant_be_done_is_refused_in_clear_words() {
        for (words, want) in [
            (&[][..], "--mode"),
            (&["--mode", "text"], "rpc-ui"),
            (&["--mode", "rpc", "--turbo"], "--turbo"),
            (&["--mode", "rpc", "--plan", "m"], "--plan"),
            (&["--mode", "rpc", "@notes.md"], "files are no arguments"),
            (&["--mode", "rpc", "do it"], "prompts are no arguments"),
            (
                &["--mode", "rpc", "--api-key", "sk-hidden"],
                "--api-key isn't taken",
            ),
            (
                &["--mode", "rpc", "--api-key=sk-hidden"],
                "--api-key isn't taken",
            ),
            (&["--mode", "rpc", "--approval-mode", "maybe"], "always-ask"),
        ] {
            let fault = args(words).unwrap_err();
            assert!(
                fault.contains(want) && !fault.contains("sk-"),
                "{fault:?} for {words:?}"
            );
        }
    }

    #[test]
    fn a_system_prompt_is_a_text_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prompt.md");
        std::fs::write(&file, "of a file").unwrap();
        let got = args(&[
            "--mode",
            "rpc",
            "--system-prompt",
            file.to_str().unwrap(),
            "--append-system-prompt",
            "- as it is",
        ])
        .unwrap();
        assert_eq!(got.foreign.system.as_deref(), Some("of a file"));
        assert_eq!(got.foreign.appended.as_deref(), Some("- as it is"));
    }
}
