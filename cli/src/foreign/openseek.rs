//! The command line of openseek: `serve`, and `run` with a task.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand, ValueEnum};

use crate::args::{
    DriverName, Foreign, ModelArgs, Named, SeekArgs, ServeArgs, SessionArgs, StreamArgs, ToolArgs,
};
use crate::mcp::Given;
use crate::protocols::ServedName;
use crate::protocols::openseek::ModeName;
use crate::say::Stop;
use crate::settings::Env;
use crate::settings::values::Approval;

/// The variable that says when an engine asks.
const APPROVAL: &str = "OPENSEEK_APPROVAL";

pub const AFTER_HELP: &str = "\
The model's address and the variable of its key come from the settings files, as do all other settings. The project \
must be trusted: run `turnwire trust` in it once, or name its folder in TURNWIRE_TRUST_PROJECT.";

/// The options of openseek that mean something here.
#[derive(Debug, Group)]
pub struct SeekCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Take commands from stdin, one JSON object a line
    Serve(Common),
    /// Carry out one task
    Run {
        /// What to do
        #[arg(value_name = "TASK")]
        task: String,

        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Group)]
struct Common {
    /// When to ask [default: the variable OPENSEEK_APPROVAL, else never]
    #[arg(long, value_name = "WHEN")]
    approval: Option<AskingName>,

    /// The session to go on with
    #[arg(long, value_name = "ID", conflicts_with = "no_session")]
    session: Option<String>,

    /// Keep nothing of the session
    #[arg(long)]
    no_session: bool,

    /// The model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// The folder to work in
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// When an engine asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AskingName {
    /// Never: everything runs
    Never,
    /// Before each call that isn't harmless
    Ask,
    /// Never, and both lines of a question are written all the same
    Always,
}

impl SeekCommand {
    /// What it means for `serve`.
    ///
    /// # Errors
    /// [`Stop`] for what can't be done.
    pub fn into_serve(self, env: Env<'_>) -> Result<ServeArgs, Stop> {
        let (mode, task, common) = match self.what {
            What::Serve(common) => (ModeName::Serve, None, common),
            What::Run { task, common } => (ModeName::Run, Some(task), common),
        };
        let asking = match (common.approval, env(APPROVAL)) {
            (Some(named), _) => named,
            (None, None) => AskingName::Never,
            (None, Some(word)) => {
                let word = word.to_string_lossy();
                AskingName::from_str(&word, false).map_err(|_| {
                    Stop::Settings(format!(
                        "{APPROVAL}: there are never, ask and always, and no {word:?}"
                    ))
                })?
            }
        };
        // An engine that serves keeps a session only if one is named.
        let kept = mode == ModeName::Run || common.session.is_some();
        Ok(ServeArgs {
            protocol: ServedName::Openseek,
            project: common.cwd,
            trust_project: false,
            go_on: false,
            model: ModelArgs {
                model: common.model,
                ..ModelArgs::default()
            },
            session: SessionArgs {
                approval: Some(match asking {
                    AskingName::Never | AskingName::Always => Approval::Auto,
                    AskingName::Ask => Approval::Ask,
                }),
                no_store: common.no_session || !kept,
                ..SessionArgs::default()
            },
            tools: ToolArgs::default(),
            stream: StreamArgs::default(),
            seek: SeekArgs {
                mode,
                task,
                always: asking == AskingName::Always,
            },
            log: None,
            driver: DriverName::Tokio,
            foreign: Foreign {
                resumed: common.session.map_or(Named::Any, Named::Resume),
                ..Foreign::default()
            },
            given_mcp: Given::default(),
        })
    }
}
