//! Background jobs, carried out on tokio.

use std::pin::pin;
use std::time::Instant;

use tokio::io::AsyncRead;
use tokio::time::sleep_until;
use turnwire_io::jobs::{BackgroundJob, Kept, Ran, Said};

use crate::process::{self, Group};
use crate::tools::{CancelToken, next};

/// Carries a job out, and gives its end when nothing of its process group is left.
pub(crate) async fn run(
    job: BackgroundJob,
    cancel: &CancelToken,
    say: &mut (dyn FnMut(Said) + Send),
) -> Ran {
    let making = tokio::task::spawn_blocking(move || (job.begin(), job));
    let (begun, job) = making
        .await
        .map_err(|error| turnwire_io::engine::failed(&error.to_string()))?;
    let mut kept = begun?;
    let mut group = match Group::spawn(job.command()) {
        Ok(group) => group,
        Err(error) => {
            let _ = tokio::task::spawn_blocking(move || kept.discard()).await;
            return Err(job.failed(&error));
        }
    };
    let (stdout, stderr) = group.pipes();
    say(kept.started(group.number()));
    // What is wrong with its output ends it, as a cancel does.
    let stop = cancel.child_token();
    let ran = {
        let mut reading = pin!(read(&mut kept, stdout, stderr, &stop, say));
        process::run_out(group, job.terms(), &stop, reading.as_mut()).await
    };
    match ran {
        Ok((exit, stopped)) => Ok(kept.ended(exit, stopped)),
        Err(error) => Ok(kept.lost(&error)),
    }
}

/// Reads both pipes to their ends, at the same time, and tells of what comes.
async fn read(
    kept: &mut Kept,
    mut stdout: Option<impl AsyncRead + Unpin>,
    mut stderr: Option<impl AsyncRead + Unpin>,
    stop: &CancelToken,
    say: &mut (dyn FnMut(Said) + Send),
) {
    let (mut out_buffer, mut err_buffer) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    while stdout.is_some() || stderr.is_some() {
        let tell_at = kept.tell_at();
        let bytes = tokio::select! {
            () = sleep_until(tell_at.unwrap_or_else(Instant::now).into()), if tell_at.is_some() => {
                if let Some(said) = kept.tell(Instant::now()) {
                    say(said);
                }
                continue;
            }
            n = next(&mut stdout, &mut out_buffer) => out_buffer.get(..n),
            n = next(&mut stderr, &mut err_buffer) => err_buffer.get(..n),
        };
        if !kept.take(bytes.unwrap_or_default()) {
            stop.cancel();
        }
    }
}
