//! What a host did wrong, one variant a rule, each with its text on the wire.

use alloc::string::String;
use core::fmt;

use super::HOST_LINE_MAX;
use super::wire::{COMMANDS, WireFault};
use crate::json::JsonFault;
use crate::vocab::Text;

/// A line or command that is refused with a `protocol_error`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The line isn't UTF-8.
    NotUtf8(JsonFault),
    /// The line is longer than [`HOST_LINE_MAX`].
    TooLong,
    /// The line isn't a JSON object, has no `cmd`, or lacks a field.
    BadLine(WireFault),
    /// The `cmd` isn't one of the contract's.
    UnknownCommand(String),
    /// The `text` of a `user` is blank.
    Empty,
    /// A `user` or `reload` while a turn runs.
    Busy,
    /// The project isn't trusted.
    Untrusted(Text),
    /// An `approve` for an id that was never issued, or is settled.
    UnknownApproval(String),
    /// A mode that isn't `auto`, `ask` or `readonly`.
    UnknownMode(String),
    /// A mode change in a process that an agent started.
    ModeByAgent,
    /// The mode couldn't be stored and is unchanged.
    ModeNotStored(Text),
    /// The agent behind this Server can't do it.
    Unsupported {
        /// The command.
        command: &'static str,
        /// What it lacks.
        what: &'static str,
    },
    /// The session takes no more commands.
    Closing,
    /// The agent refused the command for another reason.
    Refused {
        /// The command.
        command: &'static str,
        /// Why.
        why: Text,
    },
}

impl Fault {
    /// The guarantee that the fault belongs to.
    pub fn rule(&self) -> &'static str {
        match self {
            Fault::NotUtf8(_) | Fault::TooLong => "OM-10",
            Fault::BadLine(_) => "OM-05",
            Fault::UnknownCommand(_) => "OM-06",
            Fault::Empty | Fault::Untrusted(_) => "OM-19",
            Fault::Busy => "OM-18",
            Fault::UnknownApproval(_) => "OM-11",
            Fault::UnknownMode(_) | Fault::ModeByAgent | Fault::ModeNotStored(_) => "OM-07",
            Fault::Unsupported { .. } | Fault::Closing | Fault::Refused { .. } => "OM-17",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotUtf8(error) => write!(f, "command line is not valid UTF-8: {error}"),
            Fault::TooLong => write!(f, "command line exceeds {HOST_LINE_MAX} bytes and was discarded"),
            Fault::BadLine(fault) => write!(f, "bad command line: {fault}"),
            Fault::UnknownCommand(cmd) => {
                write!(f, "bad command line: unknown variant `{}`, expected one of ", Short(cmd))?;
                for (index, name) in COMMANDS.iter().enumerate() {
                    write!(f, "{}`{name}`", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Fault::Empty => f.write_str("user text is empty"),
            Fault::Busy => f.write_str("a turn is in flight; wait for done"),
            Fault::Untrusted(path) => write!(f, "project {path} is not trusted; establish trust before starting a turn"),
            Fault::UnknownApproval(id) => write!(f, "unknown or already settled approval_id '{id}'"),
            Fault::UnknownMode(word) => write!(f, "unknown approval mode '{word}': auto|ask|readonly"),
            Fault::ModeByAgent => f.write_str(
                "approval mode unchanged: this process was started by an agent, and only a human-controlled frontend may change it",
            ),
            Fault::ModeNotStored(why) => write!(f, "approval mode unchanged; persisting it failed: {why}"),
            Fault::Unsupported { command, what } => write!(f, "{command} is not supported here: {what}"),
            Fault::Closing => f.write_str("the session is closing and takes no more commands"),
            Fault::Refused { command, why } => write!(f, "{command} was refused: {why}"),
        }
    }
}

/// The start of a text that a peer may have made as long as a line.
struct Short<'a>(&'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 200;
        match self.0.char_indices().nth(MOST) {
            Some((end, _)) => write!(f, "{}…", self.0.get(..end).unwrap_or_default()),
            None => f.write_str(self.0),
        }
    }
}
