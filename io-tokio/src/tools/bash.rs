//! `bash`: one command in a shell of its own.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep_until};
use turnwire::vocab::{Block, Progress, ToolOutcome, ToolUpdate};

use super::outcome::{Finished, reason};
use super::text::{HeadTail, Rendered, WholeCharacters};
use super::{CancelToken, ToolboxConfig, input};
use crate::process::env::{self, Lists};
use crate::process::group::{Exit, Group};
use crate::process::{self, Stopped, Terms};

/// Shortest time between two progress updates.
const PROGRESS_EVERY: Duration = Duration::from_millis(150);
/// Bytes of text in one progress update; of more, head and tail are shown.
const PROGRESS_BYTES: usize = 16 * 1024;

/// Runs the command and settles its whole process group.
pub(crate) async fn run(
    config: &ToolboxConfig,
    root: &Path,
    args: &input::Bash,
    cancel: &CancelToken,
    updates: &mut (dyn FnMut(ToolUpdate) + Send),
) -> Finished {
    let limit = args
        .timeout_seconds
        .map_or(config.default_timeout, |s| Duration::from_secs(s.max(1)));
    let limit = limit.min(config.max_timeout);
    if args.command.contains('\0') {
        return Finished::new(ToolOutcome::Invalid, "the command contains a NUL character");
    }
    match attempt(config, root, &args.command, limit, cancel, updates).await {
        Ok(ended) => ended.describe(config.output_limit, limit),
        Err(error) => Finished::failed(format!(
            "can't run the command with {}: {}",
            config.shell.display(),
            reason(&error)
        )),
    }
}

async fn attempt(
    config: &ToolboxConfig,
    root: &Path,
    line: &str,
    limit: Duration,
    cancel: &CancelToken,
    updates: &mut (dyn FnMut(ToolUpdate) + Send),
) -> io::Result<Ended> {
    let mut command = Command::new(&config.shell);
    command.arg("-c").arg(line).current_dir(root);
    let lists = Lists {
        pass: &config.env,
        deny: &config.deny_env,
        extra: &config.extra_env,
    };
    command
        .env_clear()
        .envs(env::variables(lists, |name| std::env::var_os(name)));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut group = Group::spawn(command)?;
    let (stdout, stderr) = group.pipes();

    let mut capture = Capture::new(config.output_limit);
    let mut reading = Box::pin(capture.read(stdout, stderr, updates));
    let terms = Terms {
        limit: Some(limit),
        grace: config.grace,
    };
    let (exit, stopped) = process::run_out(group, &terms, cancel, reading.as_mut()).await?;
    drop(reading);
    Ok(Ended {
        exit,
        stopped,
        stdout: capture.stdout.kept,
        stderr: capture.stderr.kept,
    })
}

/// Both streams, bounded, and what of them hasn't been shown as progress.
struct Capture {
    stdout: Stream,
    stderr: Stream,
    news: HeadTail,
}

struct Stream {
    kept: HeadTail,
    whole: WholeCharacters,
}

impl Stream {
    fn new(limit: usize) -> Self {
        Self {
            kept: HeadTail::new(limit),
            whole: WholeCharacters::default(),
        }
    }

    fn push(&mut self, bytes: &[u8], news: &mut HeadTail) {
        self.kept.push(bytes);
        self.whole.push(bytes, news);
    }
}

impl Capture {
    fn new(limit: usize) -> Self {
        Self {
            stdout: Stream::new(limit),
            stderr: Stream::new(limit),
            news: HeadTail::new(PROGRESS_BYTES),
        }
    }

    /// Reads both pipes to their ends, at the same time, and tells of progress.
    async fn read(
        &mut self,
        mut stdout: Option<impl AsyncRead + Unpin>,
        mut stderr: Option<impl AsyncRead + Unpin>,
        updates: &mut (dyn FnMut(ToolUpdate) + Send),
    ) {
        let (mut out_buffer, mut err_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut tell_at = Instant::now() + PROGRESS_EVERY;
        while stdout.is_some() || stderr.is_some() {
            tokio::select! {
                () = sleep_until(tell_at), if self.news.total() > 0 => {
                    let text = self.news.render(PROGRESS_BYTES).text;
                    self.news.clear();
                    tell_at = Instant::now() + PROGRESS_EVERY;
                    updates(ToolUpdate::Progress(Progress::Append(vec![Block::Text(text.into())])));
                }
                n = next(&mut stdout, &mut out_buffer) => {
                    self.stdout.push(out_buffer.get(..n).unwrap_or_default(), &mut self.news);
                }
                n = next(&mut stderr, &mut err_buffer) => {
                    self.stderr.push(err_buffer.get(..n).unwrap_or_default(), &mut self.news);
                }
            }
        }
    }
}

/// The next bytes of a pipe; a pipe at its end (or broken) is put away, and never ready again.
async fn next(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    let n = open.read(buffer).await.unwrap_or(0);
    if n == 0 {
        *pipe = None;
    }
    n
}

/// A command that has ended.
struct Ended {
    exit: Exit,
    stopped: Option<Stopped>,
    stdout: HeadTail,
    stderr: HeadTail,
}

impl Ended {
    /// The result for the model: how it ended unless well, stdout, a blank line, `[stderr]`, stderr.
    fn describe(mut self, limit: usize, allowed: Duration) -> Finished {
        let (outcome, head) = match (self.stopped, self.exit) {
            (Some(Stopped::Cancelled), _) => (
                ToolOutcome::Cancelled,
                Some("command cancelled by user".into()),
            ),
            (Some(Stopped::TimedOut), _) => (
                ToolOutcome::TimedOut,
                Some(format!(
                    "command timed out after {} seconds",
                    allowed.as_secs_f32()
                )),
            ),
            (None, Exit::Code(0)) => (ToolOutcome::Ok, None),
            (None, Exit::Code(code)) => (ToolOutcome::Failed, Some(format!("exit code {code}"))),
            (None, Exit::Signal(signal)) => (
                ToolOutcome::Failed,
                Some(format!("ended by signal {signal}")),
            ),
        };
        let (out, err) = self.share(limit);
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
        let mut finished = Finished::new(outcome, text);
        finished.truncated = out.left_out + err.left_out > 0;
        finished.meta.push(match self.exit {
            Exit::Code(code) => ("exit_code", code.to_string()),
            Exit::Signal(signal) => ("signal", signal.to_string()),
        });
        if out.invalid || err.invalid {
            finished.meta.push(("invalid_utf8", "true".into()));
        }
        finished
    }

    /// Divides the limit: half for each stream, and what one doesn't need is the other's.
    fn share(&mut self, limit: usize) -> (Rendered, Rendered) {
        let (out, err) = (self.stdout.text_len(), self.stderr.text_len());
        let for_out = if err < limit / 2 {
            limit - err
        } else {
            limit - limit / 2
        };
        let for_err = limit - for_out.min(out);
        (self.stdout.render(for_out), self.stderr.render(for_err))
    }
}
