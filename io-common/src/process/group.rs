//! A process group by its number, and what can be asked of it without a runtime.

use std::io;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

/// The number of a process group whose leader is a child of this process.
///
/// The number stays ours while the leader isn't reaped, also when it is long dead. That is why a driver notices
/// its exit without reaping it, and signals the group first.
#[derive(Clone, Copy, Debug)]
pub struct GroupId(Pid);

impl GroupId {
    /// The group that the child with this process id leads.
    ///
    /// # Errors
    /// If no process can have the id.
    pub fn of(child: u32) -> io::Result<Self> {
        let pid = i32::try_from(child).ok().and_then(Pid::from_raw);
        pid.map(GroupId)
            .ok_or_else(|| io::Error::other("the child has no process id"))
    }

    /// Whether the leader is dead. It isn't reaped.
    ///
    /// # Errors
    /// If it was reaped already.
    pub fn leader_is_dead(self) -> io::Result<bool> {
        Ok(self.look(WaitIdOptions::NOHANG)?.is_some())
    }

    /// Blocks until the leader is dead. It isn't reaped.
    ///
    /// # Errors
    /// If it was reaped already.
    pub fn wait_leader(self) -> io::Result<()> {
        loop {
            match self.look(WaitIdOptions::empty()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                looked => return looked.map(drop),
            }
        }
    }

    fn look(self, how: WaitIdOptions) -> io::Result<Option<rustix::process::WaitIdStatus>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | how;
        Ok(waitid(WaitId::Pid(self.0), options)?)
    }

    /// Asks the whole group to end.
    pub fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Ends the whole group at once.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Sends the whole group a signal.
    pub fn pass_on(self, which: turnwire::vocab::Signal) {
        self.signal(match which {
            turnwire::vocab::Signal::Interrupt => Signal::INT,
            turnwire::vocab::Signal::Terminate => Signal::TERM,
            turnwire::vocab::Signal::Hangup => Signal::HUP,
        });
    }

    /// Whether the group has members.
    pub fn has_members(self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    fn signal(self, signal: Signal) {
        // An error says that there is nobody left to signal.
        let _ = kill_process_group(self.0, signal);
    }
}
