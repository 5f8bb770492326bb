//! Subprocesses: each in a process group of its own, with a listed environment, and gone when it is over.

pub(crate) mod env;
pub(crate) mod group;

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use group::{Exit, Group};

/// How long the pipes are read after the child has ended, if something else holds them open.
const DRAIN: Duration = Duration::from_millis(100);
/// How long left-behind processes have between SIGTERM and SIGKILL, if the grace time isn't shorter.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// Why a child was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Cancelled,
    TimedOut,
}

/// How long a child may run, and how it is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The longest it may run; `None`: until it is cancelled.
    pub(crate) limit: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub(crate) grace: Duration,
}

/// Waits for the end of a child, ends it when it is time, and settles its whole group.
///
/// `talk` reads and writes its pipes; it is driven all the while, and not beyond.
pub(crate) async fn run_out(
    group: Group,
    terms: &Terms,
    cancel: &CancellationToken,
    mut talk: Pin<&mut (impl Future<Output = ()> + ?Sized)>,
) -> io::Result<(Exit, Option<Stopped>)> {
    let mut talked = false;

    // Until the child is dead.
    let timer = terms.limit.map(|limit| Instant::now() + limit);
    let mut kill_at = None;
    let mut stopped = None;
    {
        let mut exited = pin!(group.exited());
        loop {
            let wake = kill_at.or(timer);
            tokio::select! {
                biased;
                ended = &mut exited => break ended?,
                () = cancel.cancelled(), if stopped.is_none() => stopped = Some(Stopped::Cancelled),
                () = until(wake) => match kill_at {
                    None => stopped = Some(Stopped::TimedOut),
                    // A child that can't even be killed now is waiting for a device; it is waited for.
                    Some(_) => {
                        group.kill();
                        kill_at = Some(Instant::now() + terms.grace.max(LEFT_BEHIND));
                    }
                },
                () = &mut talk, if !talked => talked = true,
            }
            if stopped.is_some() && kill_at.is_none() {
                group.terminate();
                kill_at = Some(Instant::now() + terms.grace);
            }
        }
    }

    // What the child wrote is in the pipes by now. Somebody else may hold them open: don't wait for long.
    let now = Instant::now();
    if !talked {
        talked = timeout_at(now + DRAIN, &mut talk).await.is_ok();
    }
    // A cancelled child's children share its grace time.
    let deadline = kill_at.unwrap_or(now + LEFT_BEHIND.min(terms.grace));
    let mut settle = pin!(group.settle(deadline));
    loop {
        // Last words of what is being ended are read, too; else it could block on a full pipe.
        tokio::select! {
            exit = &mut settle => return Ok((exit?, stopped)),
            () = &mut talk, if !talked => talked = true,
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
