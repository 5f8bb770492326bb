//! Background jobs, carried out on tokio.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::AsyncRead;
use tokio::time::sleep_until;
use turnwire_io::jobs::{BackgroundJob, Kept, OpenJob, Ran, Said, Told};
use turnwire_io::tools::Capture;

use crate::process::{self, Group};
use crate::tools::{CancelToken, hear, next};

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
    let (mut stdout, mut stderr) = group.pipes();
    say(kept.started(group.number()));
    // What is wrong with its output ends it, as a cancel does.
    let stop = cancel.child_token();
    let ran = {
        let mut reading = pin!(read(&mut kept, &mut stdout, &mut stderr, &stop, say));
        process::run_out(group, job.terms(), &stop, reading.as_mut()).await
    };
    match ran {
        Ok((exit, stopped)) => Ok(kept.ended(exit, stopped)),
        Err(error) => Ok(kept.lost(&error)),
    }
}

/// Carries a command out, as a call and, once it is let go, as a job; and gives its end when nothing of its process group
/// is left.
pub(crate) async fn run_open(
    job: OpenJob,
    cancel: &CancelToken,
    say: &mut (dyn FnMut(Told) + Send),
) -> Ran {
    let job = Arc::new(job);
    let mut group = match Group::spawn(job.command().command()) {
        Ok(group) => group,
        Err(error) => return Err(job.failed(&error)),
    };
    let began_ms = job.now_ms();
    let (number, (mut stdout, mut stderr)) = (group.number(), group.pipes());
    let (asked, freed, stop) = (CancelToken::new(), CancelToken::new(), cancel.child_token());
    let word = asked.clone();
    job.let_go().on_word(move || word.cancel());
    let mut heard = Some(Heard::Call(job.command().capture()));
    let ran = {
        let mut reading = pin!(async {
            if let Some(Heard::Call(capture)) = &mut heard {
                let mut updates = |update| say(Told::Call(update));
                tokio::select! {
                    // Its end comes first: what has ended is no job.
                    biased;
                    () = hear(capture, &mut stdout, &mut stderr, &mut updates) => return,
                    () = asked.cancelled() => {}
                }
            }
            heard = detached(&job, began_ms, heard.take()).await;
            match &mut heard {
                Some(Heard::Job(kept)) => {
                    if job.is_free() {
                        freed.cancel();
                    }
                    say(Told::Job(kept.started(number)));
                    let mut say = |said| say(Told::Job(said));
                    read(kept, &mut stdout, &mut stderr, &stop, &mut say).await;
                }
                Some(Heard::Call(capture)) => {
                    let mut updates = |update| say(Told::Call(update));
                    hear(capture, &mut stdout, &mut stderr, &mut updates).await;
                }
                None => {}
            }
        });
        let terms = job.command().terms();
        process::run_out_or_on(group, terms, &freed, &stop, reading.as_mut()).await
    };
    job.let_go().forget();
    match (heard, ran) {
        (Some(Heard::Job(kept)), Ok((exit, stopped))) => Ok(kept.ended(exit, stopped)),
        (Some(Heard::Job(kept)), Err(error)) => Ok(kept.lost(&error)),
        (Some(Heard::Call(capture)), Ok((exit, stopped))) => Err(job.ended(capture, exit, stopped)),
        (Some(Heard::Call(_)), Err(error)) => Err(job.failed(&error)),
        (None, _) => Err(turnwire_io::engine::failed(
            "the command's end was lost; this is a fault of the program",
        )),
    }
}

/// Who takes what a command writes.
enum Heard {
    Call(Capture),
    Job(Kept),
}

/// The call becomes a job, unless there can be none.
async fn detached(job: &Arc<OpenJob>, began_ms: u64, heard: Option<Heard>) -> Option<Heard> {
    let Some(Heard::Call(mut capture)) = heard else {
        return heard;
    };
    let job = job.clone();
    let making = tokio::task::spawn_blocking(move || match job.detach(began_ms, &mut capture) {
        Some(kept) => Heard::Job(kept),
        None => Heard::Call(capture),
    });
    making.await.ok()
}

/// Reads both pipes to their ends, at the same time, and tells of what comes.
async fn read(
    kept: &mut Kept,
    stdout: &mut Option<impl AsyncRead + Unpin>,
    stderr: &mut Option<impl AsyncRead + Unpin>,
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
            n = next(stdout, &mut out_buffer) => out_buffer.get(..n),
            n = next(stderr, &mut err_buffer) => err_buffer.get(..n),
        };
        if !kept.take(bytes.unwrap_or_default()) {
            stop.cancel();
        }
    }
}
