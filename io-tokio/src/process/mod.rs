//! Subprocesses on tokio.

mod group;

use std::io;
use std::pin::{Pin, pin};
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use turnwire_io::process::{Act, DRAIN, Ending, Exit, LOOK, Stopped, Terms};

pub(crate) use group::Group;

/// Waits for the end of a child, ends it when it is time, and settles its whole group.
///
/// `talk` reads and writes its pipes; it is driven all the while, and not beyond.
pub(crate) async fn run_out(
    group: Group,
    terms: Terms,
    cancel: &CancellationToken,
    talk: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
) -> io::Result<(Exit, Option<Stopped>)> {
    run_out_or_on(group, terms, &CancellationToken::new(), cancel, talk).await
}

/// As [`run_out`]; once it is `freed` it may run for as long as it takes.
pub(crate) async fn run_out_or_on(
    group: Group,
    terms: Terms,
    freed: &CancellationToken,
    cancel: &CancellationToken,
    mut talk: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
) -> io::Result<(Exit, Option<Stopped>)> {
    let mut talked = false;

    // Until the child is dead.
    let mut ending = Ending::new(terms, Instant::now());
    let (mut cancelled, mut free) = (false, false);
    {
        let mut exited = pin!(group.exited());
        loop {
            let deadline = ending.deadline();
            let act = tokio::select! {
                biased;
                ended = &mut exited => break ended?,
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    ending.cancel(Instant::now())
                }
                () = freed.cancelled(), if !free => {
                    free = true;
                    ending.free();
                    Act::Leave
                }
                () = until(deadline) => ending.due(Instant::now()),
                () = &mut talk, if !talked => {
                    talked = true;
                    Act::Leave
                }
            };
            group.act(act);
        }
    }

    // What the child wrote is in the pipes by now. Somebody else may hold them open: don't wait for long.
    let now = Instant::now();
    if !talked {
        talked = timeout_at((now + DRAIN).into(), &mut talk).await.is_ok();
    }
    let mut settle = pin!(group.settle(ending.settle_by(now)));
    let exit = loop {
        // Last words of what is being ended are read, too; else it could block on a full pipe.
        tokio::select! {
            exit = &mut settle => break exit?,
            () = &mut talk, if !talked => talked = true,
        }
    };
    // The very last of them are in the pipes still.
    if !talked {
        let _ = tokio::time::timeout(LOOK, &mut talk).await;
    }
    Ok((exit, ending.stopped()))
}

/// Tells a child what it is to be told. One that doesn't want to know is not at fault; the pipe is closed when all is said.
pub(crate) async fn tell(stdin: Option<ChildStdin>, payload: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(payload).await;
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}
