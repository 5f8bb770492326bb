//! A child in a process group of its own, and how that whole group ends.

use std::io;
use std::time::{Duration, Instant};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use turnwire_io::process::{Act, Exit, GroupId, LOOK};

/// The exit of the child is looked for this often, should a SIGCHLD get lost.
const FALLBACK: Duration = Duration::from_millis(500);

/// A child that leads a session, so that it has no terminal to ask for passwords, and a group.
pub(crate) struct Group {
    child: Box<dyn ChildWrapper>,
    id: GroupId,
    settled: bool,
}

impl Group {
    /// Starts the command.
    pub(crate) fn spawn(command: std::process::Command) -> io::Result<Self> {
        let mut command = Command::from(command);
        command.kill_on_drop(true);
        // The wrapper's own wait would also wait for others of the group: the plain child is taken out.
        let child = CommandWrap::from(command)
            .wrap(ProcessSession)
            .spawn()?
            .into_inner();
        let id = GroupId::of(child.id().unwrap_or_default())?;
        Ok(Self {
            child,
            id,
            settled: false,
        })
    }

    /// The number of the group.
    pub(crate) fn number(&self) -> u32 {
        self.id.number()
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
        // The signal is listened for before the look, so that none falls between.
        while !self.id.leader_is_dead()? {
            let _ = tokio::time::timeout(FALLBACK, news.recv()).await;
        }
        Ok(())
    }

    /// Does to the whole group what it is time for.
    pub(crate) fn act(&self, act: Act) {
        match act {
            Act::Leave => {}
            Act::Terminate => self.terminate(),
            Act::Kill => self.kill(),
        }
    }

    /// Asks the whole group to end.
    pub(crate) fn terminate(&self) {
        self.id.terminate();
    }

    /// Ends the whole group at once.
    pub(crate) fn kill(&self) {
        self.id.kill();
    }

    /// Sends the whole group a signal.
    pub(crate) fn pass_on(&self, which: turnwire::vocab::Signal) {
        self.id.pass_on(which);
    }

    /// Ends what is left of the group and reaps the child, which must be dead or dying.
    ///
    /// Members that ignore SIGTERM are killed at `deadline`.
    pub(crate) async fn settle(mut self, deadline: Instant) -> io::Result<Exit> {
        self.terminate();
        let status = self.child.wait().await?;
        // From here on the number is ours only while the group has members; it is looked at so often
        // that it can't have come round to another group in between.
        while self.id.has_members() {
            if Instant::now() >= deadline {
                self.kill();
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.settled = true;
        Ok(status.into())
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
