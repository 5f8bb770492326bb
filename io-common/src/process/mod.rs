//! Subprocesses: each in a process group of its own, with a listed environment, and gone when it is over.
//!
//! Here is what is decided about them. The drivers start them and wait, each in its own way.

mod ending;
pub(crate) mod env;
mod group;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

pub use ending::{Act, Ending, Stopped, Terms};
pub use group::GroupId;

/// How long the pipes are read after the child has ended, if something else holds them open.
pub const DRAIN: Duration = Duration::from_millis(100);
/// How often a group that is being ended is looked at. There is no event for "the last member is gone".
pub const LOOK: Duration = Duration::from_millis(10);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        }
    }
}

/// A shell's command line, with both outputs piped and the listed environment alone.
pub(crate) fn shell(
    program: impl AsRef<OsStr>,
    line: &str,
    folder: &Path,
    lists: env::Lists<'_>,
    stdin: Stdio,
) -> Command {
    let mut command = self::command(program, folder, lists, stdin);
    command.arg("-c").arg(line);
    command
}

/// A program without its arguments, likewise.
pub(crate) fn command(
    program: impl AsRef<OsStr>,
    folder: &Path,
    lists: env::Lists<'_>,
    stdin: Stdio,
) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
        .env_clear()
        .envs(env::variables(lists, |name| std::env::var_os(name)));
    command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
