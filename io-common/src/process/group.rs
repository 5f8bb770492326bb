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

    /// The number.
    pub fn number(self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
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

    /// Whether the group has members that live. The dead that nobody has reaped don't count, where the system tells them
    /// apart: an orphan is reaped by the first process, and in many containers that takes its time, or doesn't do it.
    pub fn has_members(self) -> bool {
        test_kill_process_group(self.0).is_ok() && lives(self.0).unwrap_or(true)
    }

    fn signal(self, signal: Signal) {
        // An error says that there is nobody left to signal.
        let _ = kill_process_group(self.0, signal);
    }
}

/// Whether any process of the group is more than an entry in the table.
///
/// # Errors
/// Where there is no `/proc` to read.
fn lives(group: Pid) -> io::Result<bool> {
    let group = group.as_raw_nonzero().get();
    for entry in std::fs::read_dir("/proc")? {
        // One that is gone meanwhile can't be read.
        let stat = entry.and_then(|entry| std::fs::read(entry.path().join("stat")));
        if stat.is_ok_and(|stat| lives_in(&stat, group)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a line of `/proc/PID/stat` is of a living process of the group: `PID (NAME) STATE PARENT GROUP …`, in which the
/// name may hold anything.
fn lives_in(stat: &[u8], group: i32) -> bool {
    let after = stat.rsplit(|byte| *byte == b')').next();
    let Some(after) = after.and_then(|after| std::str::from_utf8(after).ok()) else {
        return false;
    };
    let mut words = after.split_ascii_whitespace();
    let state = words.next();
    let of = words.nth(1).and_then(|word| word.parse().ok());
    of == Some(group) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_line_of_the_table_of_processes_is_read_whatever_the_name_holds() {
        assert!(lives_in(b"7 (sh) S 1 5 5 0 -1", 5));
        assert!(lives_in(b"7 (a) Z 5 (b\xff) R 1 5 5 0 -1", 5));
        assert!(!lives_in(b"7 (sh) S 1 6 5 0 -1", 5));
        assert!(!lives_in(b"7 (sh) Z 1 5 5 0 -1", 5));
        assert!(!lives_in(b"", 5));
    }

    #[test]
    fn the_dead_that_nobody_reaped_are_no_members() {
        let mut child = Command::new("sleep")
            .arg("300")
            .process_group(0)
            .spawn()
            .unwrap();
        let group = GroupId::of(child.id()).unwrap();
        assert!(group.has_members());
        group.kill();
        group.wait_leader().unwrap();
        assert!(test_kill_process_group(group.0).is_ok(), "it isn't reaped");
        assert!(!group.has_members());
        child.wait().unwrap();
        assert!(!group.has_members());
    }
}
