//! Hooks, run on tokio.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};
use turnwire::vocab::{HookReply, Text};

pub use turnwire_io::hooks::*;

use crate::process::{self, Group};
use crate::tools::CancelToken;

/// Runs it. When this returns, no process of its group is left. Dropped, its group is killed.
///
/// # Errors
/// It failed, and how; a run that was stopped is one of those.
pub async fn run(job: &HookJob, stop: &CancelToken) -> Result<HookReply, Text> {
    if stop.is_cancelled() {
        return job.outcome(Ok(None));
    }
    job.outcome(attempt(job, stop).await)
}

/// `None`: it was stopped.
async fn attempt(job: &HookJob, stop: &CancelToken) -> io::Result<Option<Ended>> {
    let mut group = Group::spawn(job.command())?;
    let (stdin, (stdout, stderr)) = (group.stdin(), group.pipes());
    let (mut out, mut err) = (Kept::out(), Kept::err());
    let mut talk = Box::pin(async {
        let tell = process::tell(stdin, job.payload());
        tokio::join!(tell, listen(stdout, &mut out), listen(stderr, &mut err));
    });
    let (exit, stopped) = process::run_out(group, job.terms(), stop, talk.as_mut()).await?;
    drop(talk);
    let ended = Ended {
        exit,
        stdout: out,
        stderr: err,
    };
    Ok(stopped.is_none().then_some(ended))
}

/// Reads a pipe to its end.
async fn listen(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Kept) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        kept.push(buffer.get(..count).unwrap_or_default());
    }
}
