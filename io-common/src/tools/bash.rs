//! Commands: the calls of `bash` and those of the person's own, each in a shell of its own, and external tools. Here is
//! what is run and what is made of it; the drivers run it.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use turnwire::vocab::{Block, Progress, ToolOutcome, ToolUpdate};

use super::external::Loaded;
use super::outcome::{Finished, reason};
use super::text::{HeadTail, Rendered, WholeCharacters};
use super::{Shared, ToolJob, input};
use crate::jobs::{BackgroundJob, OpenJob};
use crate::process::env::Lists;
use crate::process::{self, Exit, Stopped, Terms};

/// The tool's name.
pub(super) const NAME: &str = "bash";
/// Shortest time between two progress updates.
const PROGRESS_EVERY: Duration = Duration::from_millis(150);
/// Bytes of text in one progress update; of more, head and tail are shown.
const PROGRESS_BYTES: usize = 16 * 1024;

/// A command that is ready to run.
#[derive(Debug)]
pub struct CommandJob {
    shared: Arc<Shared>,
    what: What,
    /// How long it may run; a person's own command: as long as it takes.
    limit: Option<Duration>,
}

/// What runs.
#[derive(Debug)]
enum What {
    /// A line for the shell.
    Line(String),
    /// A program, and what it is told.
    External(Arc<Loaded>, Vec<u8>),
}

impl CommandJob {
    /// A call of an external tool.
    pub(super) fn external(shared: &Arc<Shared>, tool: &Arc<Loaded>, input: &str) -> Self {
        let config = &shared.config;
        let limit = tool.tool.limit.unwrap_or(config.default_timeout);
        let mut told = Vec::with_capacity(input.len() + 1);
        // One line, whatever the model wrote: a line break can only be white space between the parts of an object.
        told.extend(input.bytes().map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                byte
            }
        }));
        told.push(b'\n');
        CommandJob {
            shared: shared.clone(),
            what: What::External(tool.clone(), told),
            limit: Some(limit.min(config.max_timeout)),
        }
    }

    /// Whether there is something to be found out before it runs.
    pub fn is_external(&self) -> bool {
        matches!(self.what, What::External(..))
    }

    /// Why it may not run, found out on a thread that may block; `None`: it may.
    pub fn objection(&self) -> Option<Finished> {
        match &self.what {
            What::Line(_) => None,
            What::External(tool, _) => tool.objection(&self.shared.config).map(Finished::failed),
        }
    }

    /// What it finds on its standard input, if that is a pipe; it is closed behind it.
    pub fn payload(&self) -> &[u8] {
        match &self.what {
            What::Line(_) => &[],
            What::External(_, told) => told,
        }
    }

    /// `Err`: the arguments are wrong, in words for the model.
    fn new(shared: &Arc<Shared>, args: &input::Bash) -> Result<Self, String> {
        if args.command.contains('\0') {
            return Err("the command contains a NUL character".into());
        }
        let config = &shared.config;
        let seconds = args
            .timeout_seconds
            .map(|it| Duration::from_secs(it.max(1)));
        let millis = args.timeout.map(|it| Duration::from_millis(it.max(1)));
        let named = seconds.or(millis);
        let limit = if args.background {
            // It takes as long as it takes, if nothing else is said.
            named
        } else {
            Some(
                named
                    .unwrap_or(config.default_timeout)
                    .min(config.max_timeout),
            )
        };
        Ok(CommandJob {
            shared: shared.clone(),
            what: What::Line(args.command.clone()),
            limit,
        })
    }

    /// A command of the person's own.
    pub(super) fn of_person(shared: &Arc<Shared>, line: &str) -> Result<Self, String> {
        if line.contains('\0') {
            return Err("the command contains a NUL character".into());
        }
        Ok(CommandJob {
            shared: shared.clone(),
            what: What::Line(line.to_owned()),
            limit: None,
        })
    }

    /// What to start, with both outputs piped. It must lead a process group of its own.
    pub fn command(&self) -> Command {
        let config = &self.shared.config;
        let line = match &self.what {
            What::Line(line) => line,
            What::External(tool, _) => return tool.command(self.shared.root.path(), config),
        };
        let lists = Lists {
            pass: &config.env,
            deny: &config.deny_env,
            extra: &config.extra_env,
        };
        let root = self.shared.root.path();
        process::shell(&config.shell, line, root, lists, Stdio::null())
    }

    /// How long it may run, and how it is ended.
    pub fn terms(&self) -> Terms {
        Terms {
            limit: self.limit,
            grace: self.shared.config.grace,
        }
    }

    /// What takes its output.
    pub fn capture(&self) -> Capture {
        Capture::new(self.shared.config.output_limit, self.limit.is_some())
    }

    /// The result of a command that has ended, its whole group too.
    pub fn ended(&self, capture: Capture, exit: Exit, stopped: Option<Stopped>) -> Finished {
        let ended = Ended { exit, stopped };
        let output_limit = self.shared.config.output_limit;
        let mut finished = match capture.kept {
            Kept::Apart { out, err } => ended.describe(out, err, output_limit, self.limit),
            Kept::Together(both) => ended.plain(both, output_limit),
        };
        if let What::External(tool, _) = &self.what
            && let Some(remark) = tool.remark()
        {
            finished.text.push_str(if finished.text.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            });
            finished.text.push_str(&remark);
        }
        finished
    }

    /// The result of a command that could not be run.
    pub fn failed(&self, error: &io::Error) -> Finished {
        let why = reason(error);
        Finished::failed(match &self.what {
            What::Line(_) => {
                let shell = self.shared.config.shell.display();
                format!("can't run the command with {shell}: {why}")
            }
            What::External(tool, _) => {
                format!("can't run the program of {}: {why}", tool.tool.name)
            }
        })
    }
}

/// Makes a call ready. `Err`: the arguments are wrong, in words for the model.
pub(super) fn prepare(shared: &Arc<Shared>, mut args: input::Bash) -> Result<ToolJob, String> {
    let cwd = shared.root.path().to_string_lossy();
    if !args.background {
        let job = CommandJob::new(shared, &args)?;
        let Some(place) = &shared.config.jobs else {
            return Ok(ToolJob::Command(job));
        };
        let timed = args.timeout_seconds.is_some() || args.timeout.is_some();
        let what = args.description;
        let job = BackgroundJob::new(job, place.clone(), &args.command, what, &cwd);
        return Ok(ToolJob::Open(Box::new(OpenJob::new(job, timed))));
    }
    let Some(place) = &shared.config.jobs else {
        return Err("commands can't go on in the background here; leave that argument out".into());
    };
    // Both streams go into one file, in the order in which they are written: one pipe keeps it, and two wouldn't.
    let line = std::mem::take(&mut args.command);
    args.command = format!("exec 2>&1; {line}");
    let job = CommandJob::new(shared, &args)?;
    let job = BackgroundJob::new(job, place.clone(), &line, args.description, &cwd);
    Ok(ToolJob::Background(Box::new(job)))
}

/// Both streams, bounded, and what of them hasn't been shown as progress.
#[derive(Debug)]
pub struct Capture {
    kept: Kept,
    /// Beginnings of characters, of each stream.
    out: WholeCharacters,
    err: WholeCharacters,
    news: HeadTail,
    tell_at: Instant,
}

/// How the streams are kept.
#[derive(Debug)]
enum Kept {
    /// Each for itself: a model is told which is which.
    Apart { out: HeadTail, err: HeadTail },
    /// As they came, as a person sees them in a terminal.
    Together(HeadTail),
}

impl Capture {
    fn new(limit: usize, apart: bool) -> Self {
        let kept = if apart {
            Kept::Apart {
                out: HeadTail::new(limit),
                err: HeadTail::new(limit),
            }
        } else {
            Kept::Together(HeadTail::new(limit))
        };
        Self {
            kept,
            out: WholeCharacters::default(),
            err: WholeCharacters::default(),
            news: HeadTail::new(PROGRESS_BYTES),
            tell_at: Instant::now() + PROGRESS_EVERY,
        }
    }

    /// Takes bytes of the command's stdout.
    pub fn out(&mut self, bytes: &[u8]) {
        match &mut self.kept {
            Kept::Apart { out, .. } => out.push(bytes),
            Kept::Together(both) => both.push(bytes),
        }
        self.out.push(bytes, &mut self.news);
    }

    /// Takes bytes of its stderr.
    pub fn err(&mut self, bytes: &[u8]) {
        match &mut self.kept {
            Kept::Apart { err, .. } => err.push(bytes),
            Kept::Together(both) => both.push(bytes),
        }
        self.err.push(bytes, &mut self.news);
    }

    /// What it has taken, stdout first, and whether that is all of it; else there is a mark where something is left out.
    pub(crate) fn so_far(&mut self) -> (Vec<u8>, bool) {
        let streams = match &mut self.kept {
            Kept::Apart { out, err } => vec![out, err],
            Kept::Together(both) => vec![both],
        };
        let (mut bytes, mut whole) = (Vec::new(), true);
        for stream in streams {
            whole &= stream.write_to(&mut bytes);
        }
        (bytes, whole)
    }

    /// When there is progress to tell; `None` while there is no news.
    pub fn tell_at(&self) -> Option<Instant> {
        (self.news.total() > 0).then_some(self.tell_at)
    }

    /// The progress, once its time has come.
    pub fn tell(&mut self, now: Instant) -> Option<ToolUpdate> {
        if self.tell_at().is_none_or(|at| now < at) {
            return None;
        }
        let text = self.news.render(PROGRESS_BYTES).text;
        self.news.clear();
        self.tell_at = now + PROGRESS_EVERY;
        let blocks = vec![Block::Text(text.into())];
        Some(ToolUpdate::Progress(Progress::Append(blocks)))
    }
}

/// A command that has ended.
struct Ended {
    exit: Exit,
    stopped: Option<Stopped>,
}

impl Ended {
    /// The result for the model: how it ended unless well, stdout, a blank line, `[stderr]`, stderr.
    fn describe(
        &self,
        out: HeadTail,
        err: HeadTail,
        limit: usize,
        allowed: Option<Duration>,
    ) -> Finished {
        let head = match (self.stopped, self.exit) {
            (Some(Stopped::Cancelled), _) => Some("command cancelled by user".into()),
            (Some(Stopped::TimedOut), _) => {
                let seconds = allowed.unwrap_or_default().as_secs_f32();
                Some(format!("command timed out after {seconds} seconds"))
            }
            (None, Exit::Code(0)) => None,
            (None, Exit::Code(code)) => Some(format!("exit code {code}")),
            (None, Exit::Signal(signal)) => Some(format!("ended by signal {signal}")),
        };
        let (out, err) = share(out, err, limit);
        let mut text = head.unwrap_or_default();
        let silent = out.text.is_empty() && err.text.is_empty();
        if !silent && !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&out.text);
        if !err.text.is_empty() {
            if !out.text.is_empty() {
                text.push_str(if out.text.ends_with('\n') {
                    "\n"
                } else {
                    "\n\n"
                });
            }
            text.push_str("[stderr]\n");
            text.push_str(&err.text);
        }
        let invalid = out.invalid || err.invalid;
        self.finished(text, out.left_out + err.left_out > 0, invalid)
    }

    /// The result for the person who gave the command: what it wrote, and nothing else.
    fn plain(&self, mut both: HeadTail, limit: usize) -> Finished {
        let Rendered {
            text,
            left_out,
            invalid,
        } = both.render(limit);
        self.finished(text, left_out > 0, invalid)
    }

    fn finished(&self, text: String, truncated: bool, invalid: bool) -> Finished {
        let outcome = match (self.stopped, self.exit) {
            (Some(Stopped::Cancelled), _) => ToolOutcome::Cancelled,
            (Some(Stopped::TimedOut), _) => ToolOutcome::TimedOut,
            (None, Exit::Code(0)) => ToolOutcome::Ok,
            (None, Exit::Code(_) | Exit::Signal(_)) => ToolOutcome::Failed,
        };
        let mut finished = Finished::new(outcome, text);
        finished.truncated = truncated;
        finished.meta.push(match self.exit {
            Exit::Code(code) => ("exit_code", code.to_string()),
            Exit::Signal(signal) => ("signal", signal.to_string()),
        });
        if invalid {
            finished.meta.push(("invalid_utf8", "true".into()));
        }
        finished
    }
}

/// Divides the limit: half for each stream, and what one doesn't need is the other's.
fn share(mut stdout: HeadTail, mut stderr: HeadTail, limit: usize) -> (Rendered, Rendered) {
    let (out, err) = (stdout.text_len(), stderr.text_len());
    let for_out = if err < limit / 2 {
        limit - err
    } else {
        limit - limit / 2
    };
    let for_err = limit - for_out.min(out);
    (stdout.render(for_out), stderr.render(for_err))
}
