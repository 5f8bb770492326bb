//! What the program says to a person: lines on stderr, never on stdout, which belongs to the protocol.

use std::fmt;
use std::io::Write;

/// Writes one line. That nobody reads stderr is no reason to stop, so a failed write is let go.
pub fn line(text: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "turnwire: {text}");
}

/// Why the program ends before a session begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The settings are wrong: exit code 2.
    Settings(String),
    /// The project isn't trusted, or trust can't be given from here: exit code 3.
    Untrusted(String),
    /// The session that should go on isn't there, can't be read, or is open elsewhere: exit code 2.
    Session(String),
    /// Something else failed at the start: exit code 1.
    Failed(String),
}

impl Stop {
    /// The exit code that tells a host which it was.
    pub fn code(&self) -> u8 {
        match self {
            Stop::Failed(_) => 1,
            Stop::Settings(_) | Stop::Session(_) => 2,
            Stop::Untrusted(_) => 3,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Settings(text)
            | Stop::Untrusted(text)
            | Stop::Session(text)
            | Stop::Failed(text) => out.write_str(text),
        }
    }
}
