//! The tools, carried out on tokio.

use std::pin::pin;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::sleep_until;
use turnwire::vocab::ToolUpdate;

pub use tokio_util::sync::CancellationToken as CancelToken;
pub use turnwire_io::tools::*;

use crate::process::{self, Group};

/// Carries out one call and gives its end, always [`ToolUpdate::Done`].
///
/// `input` is the text of a JSON object. Before it returns, `updates` gets progress of a running
/// command, at most about seven times a second, and [`ToolUpdate::FileChanged`] for a file that was
/// written. A cancelled call ends [`ToolOutcome::Cancelled`](turnwire::vocab::ToolOutcome::Cancelled); one that
/// changes a file is finished first. If the future is dropped, a running command's process group is killed.
pub async fn run(
    tools: &Toolbox,
    name: &str,
    input: &str,
    cancel: CancelToken,
    updates: impl FnMut(ToolUpdate) + Send,
) -> ToolUpdate {
    carry_out(tools.prepare(name, input), cancel, updates).await
}

/// Runs a command of the person's own and gives its end, always [`ToolUpdate::Done`]: see
/// [`Toolbox::prepare_shell`]. All else is as with [`run`].
pub async fn shell(
    tools: &Toolbox,
    line: &str,
    cancel: CancelToken,
    updates: impl FnMut(ToolUpdate) + Send,
) -> ToolUpdate {
    carry_out(tools.prepare_shell(line), cancel, updates).await
}

/// Carries out a call that is ready; see [`run`].
pub(crate) async fn carry_out(
    job: ToolJob,
    cancel: CancelToken,
    mut updates: impl FnMut(ToolUpdate) + Send,
) -> ToolUpdate {
    let finished = if cancel.is_cancelled() {
        Finished::cancelled()
    } else {
        match job {
            ToolJob::Command(job) => command(job, &cancel, &mut updates).await,
            ToolJob::File(job) => file(job, cancel).await,
            ToolJob::Over(finished) => finished,
            ToolJob::Open(job) => command(job.into_command(), &cancel, &mut updates).await,
            ToolJob::Background(_) => Finished::failed(ONE_CALL),
        }
    };
    let (file, done) = finished.into_updates();
    if let Some(file) = file {
        updates(file);
    }
    done
}

async fn file(job: FileJob, cancel: CancelToken) -> Finished {
    let call = tokio::task::spawn_blocking(move || job.run(&|| cancel.is_cancelled()));
    match call.await {
        Ok(finished) => finished,
        Err(error) => broke_down(&error),
    }
}

fn broke_down(error: &tokio::task::JoinError) -> Finished {
    tracing::error!(%error, "a tool call broke down");
    Finished::failed("the tool broke down; this is a fault of the program")
}

/// Runs a command and settles its whole process group.
async fn command(
    job: CommandJob,
    cancel: &CancelToken,
    updates: &mut (dyn FnMut(ToolUpdate) + Send),
) -> Finished {
    let job = if job.is_external() {
        let look = tokio::task::spawn_blocking(move || (job.objection(), job));
        match look.await {
            Ok((None, job)) => job,
            Ok((Some(refused), _)) => return refused,
            Err(error) => return broke_down(&error),
        }
    } else {
        job
    };
    let mut group = match Group::spawn(job.command()) {
        Ok(group) => group,
        Err(error) => return job.failed(&error),
    };
    let (stdin, (stdout, stderr)) = (group.stdin(), group.pipes());
    let mut capture = job.capture();
    let ran = {
        let mut reading = pin!(async {
            let hear = read(&mut capture, stdout, stderr, updates);
            tokio::join!(process::tell(stdin, job.payload()), hear);
        });
        process::run_out(group, job.terms(), cancel, reading.as_mut()).await
    };
    match ran {
        Ok((exit, stopped)) => job.ended(capture, exit, stopped),
        Err(error) => job.failed(&error),
    }
}

/// Reads both pipes to their ends, at the same time, and tells of progress.
async fn read(
    capture: &mut Capture,
    mut stdout: Option<impl AsyncRead + Unpin>,
    mut stderr: Option<impl AsyncRead + Unpin>,
    updates: &mut (dyn FnMut(ToolUpdate) + Send),
) {
    hear(capture, &mut stdout, &mut stderr, updates).await;
}

/// As [`read`], of pipes that may be read on.
pub(crate) async fn hear(
    capture: &mut Capture,
    stdout: &mut Option<impl AsyncRead + Unpin>,
    stderr: &mut Option<impl AsyncRead + Unpin>,
    updates: &mut (dyn FnMut(ToolUpdate) + Send),
) {
    let (mut out_buffer, mut err_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    while stdout.is_some() || stderr.is_some() {
        let tell_at = capture.tell_at();
        tokio::select! {
            () = sleep_until(tell_at.unwrap_or_else(Instant::now).into()), if tell_at.is_some() => {
                if let Some(progress) = capture.tell(Instant::now()) {
                    updates(progress);
                }
            }
            n = next(stdout, &mut out_buffer) => {
                capture.out(out_buffer.get(..n).unwrap_or_default());
            }
            n = next(stderr, &mut err_buffer) => {
                capture.err(err_buffer.get(..n).unwrap_or_default());
            }
        }
    }
}

/// The next bytes of a pipe; a pipe at its end (or broken) is put away, and never ready again.
pub(crate) async fn next(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    let n = open.read(buffer).await.unwrap_or(0);
    if n == 0 {
        *pipe = None;
    }
    n
}
