//! A child in a process group of its own, and how that whole group ends.

use std::io;
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How often a group that is being ended is looked at. There is no event for "the last member is gone".
const LOOK: Duration = Duration::from_millis(10);
/// The exit of the child is looked for this often, should a SIGCHLD get lost.
const FALLBACK: Duration = Duration::from_millis(500);

/// A child that leads a session, so that it has no terminal to ask for passwords, and a group.
///
/// The group's number stays ours while the child isn't reaped, also when it is long dead. That is why
/// its exit is noticed without reaping it: the group is signalled first.
pub(crate) struct Group {
    child: Box<dyn ChildWrapper>,
    pid: Pid,
    settled: bool,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Group {
    /// Starts the command.
    pub(crate) fn spawn(command: Command) -> io::Result<Self> {
        // The wrapper's own wait would also wait for others of the group: the plain child is taken out.
        let child = CommandWrap::from(command)
            .wrap(ProcessSession)
            .spawn()?
            .into_inner();
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the child has no process id"))?;
        Ok(Self {
            child,
            pid,
            settled: false,
        })
    }

    /// The child's stdin, if it was started with a pipe.
    pub(crate) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin().take()
    }

    /// The child's stdout and stderr.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout().take(), self.child.stderr().take())
    }

    /// Waits until the child itself is dead. It isn't reaped. May be dropped and called again.
    pub(crate) async fn exited(&self) -> io::Result<()> {
        let mut news = signal(SignalKind::child())?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // The signal is listened for before the look, so that none falls between.
        while waitid(WaitId::Pid(self.pid), options)?.is_none() {
            let _ = tokio::time::timeout(FALLBACK, news.recv()).await;
        }
        Ok(())
    }

    /// Asks the whole group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the whole group at once.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends the whole group a signal.
    pub(crate) fn pass_on(&self, which: turnwire::vocab::Signal) {
        self.signal(match which {
            turnwire::vocab::Signal::Interrupt => Signal::INT,
            turnwire::vocab::Signal::Terminate => Signal::TERM,
            turnwire::vocab::Signal::Hangup => Signal::HUP,
        });
    }

    fn signal(&self, signal: Signal) {
        // An error says that there is nobody left to signal.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Ends what is left of the group and reaps the child, which must be dead or dying.
    ///
    /// Members that ignore SIGTERM are killed at `deadline`.
    pub(crate) async fn settle(mut self, deadline: Instant) -> io::Result<Exit> {
        self.terminate();
        let status = self.child.wait().await?;
        // From here on the number is ours only while the group has members; it is looked at so often
        // that it can't have come round to another group in between.
        while test_kill_process_group(self.pid).is_ok() {
            if Instant::now() >= deadline {
                self.kill();
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.settled = true;
        Ok(exit(status))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Only if the call was dropped half way. tokio reaps the child later.
        if !self.settled {
            self.kill();
        }
    }
}

fn exit(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}
