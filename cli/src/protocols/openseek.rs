//! openseek: an engine that serves, or one run with its task on the command line.

use clap::ValueEnum;
use turnwire::protocol::openseek::wire::Shapes;
use turnwire::protocol::openseek::{
    Asking, ClientConfig, Mode, Openseek, OpenseekExtra, RunCannotAsk, ServerConfig, preset,
};
use turnwire::session::config::SessionConfig;
use turnwire::session::{goal_tool, job_stop_tool, plan_tool, task_tool};
use turnwire::vocab::ToolSpec;
use turnwire_io::{Answer, HeardMcp};

use super::{Hosting, Opening, Served, Spoken, here};
use crate::args::ServeArgs;
use crate::ids::IdKind;
use crate::say::Stop;
use crate::settings::values::Approval;
use crate::start::Start;

/// What an engine is started for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// Turns, as the host's commands ask for them
    #[default]
    Serve,
    /// One turn, for the task of the command line; no commands are read
    Run,
}

impl Served for Openseek {
    const HAS_JOBS: bool = true;

    fn own_tools() -> Vec<ToolSpec> {
        vec![goal_tool(), plan_tool(), task_tool(), job_stop_tool()]
    }

    fn session_ids(_: &ServeArgs) -> IdKind {
        IdKind::Ordered
    }

    fn check(args: &ServeArgs, start: &Start) -> Result<(), Stop> {
        let run = args.seek.mode == ModeName::Run;
        match (run, &args.seek.task) {
            (true, None) => {
                return Err(Stop::Settings("a run needs its task: --task TEXT".into()));
            }
            (false, Some(_)) => {
                let why = "--task: an engine that serves has its tasks from the host's commands";
                return Err(Stop::Settings(why.into()));
            }
            (true, Some(_)) | (false, None) => {}
        }
        if run && asking(args, start) == Asking::Ask {
            let how = "--approval auto lets everything run, --approval readonly what only reads";
            return Err(Stop::Settings(format!("{RunCannotAsk}; {how}")));
        }
        Ok(())
    }

    fn preset(config: &mut SessionConfig, _: &ServeArgs) {
        preset(config);
    }

    fn face(opening: &Opening<'_>) -> ServerConfig {
        let asking = asking(opening.args, opening.start);
        let mode = match &opening.args.seek.task {
            Some(task) => Mode::Run {
                task: task.as_str().into(),
                always: asking == Asking::Always,
            },
            None => Mode::Serve { asking },
        };
        let file = opening.begun.writer.as_ref().map(|writer| writer.path());
        let folder = file.as_deref().and_then(|file| file.parent());
        ServerConfig {
            seed: opening.seed,
            mode,
            shapes: Shapes::Seed,
            session_root: folder.map(|folder| folder.to_string_lossy().into()),
        }
    }

    fn answer(_: &Opening<'_>) -> Answer<Openseek> {
        Box::new(|ask| match ask {})
    }

    fn heard_mcp() -> Option<HeardMcp<Openseek>> {
        Some(Box::new(|fact| {
            OpenseekExtra::mcp(fact).into_iter().collect()
        }))
    }
}

/// When the engine asks. Its wire tells of nothing between asking for each call and for none.
fn asking(args: &ServeArgs, start: &Start) -> Asking {
    match start.approval {
        _ if args.seek.always => Asking::Always,
        Approval::Auto | Approval::Readonly | Approval::Plan | Approval::Never => Asking::Never,
        Approval::Ask | Approval::Edits => Asking::Ask,
    }
}

impl Spoken for Openseek {
    fn client(hosting: &Hosting<'_>) -> Result<ClientConfig, Stop> {
        hosting.without_greeting()?;
        Ok(ClientConfig {
            cwd: here(),
            ..ClientConfig::default()
        })
    }
}
