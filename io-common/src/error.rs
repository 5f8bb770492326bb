//! What can go wrong in the driver itself. Faults of peers, models and tools
//! are never here: they are events of the session.

use std::fmt;
use std::io;

use turnwire::vocab::Misuse;

/// A failure of the driver.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A thread, a runtime or a signal handler could not be set up.
    Setup(io::Error),
    /// A machine was called wrongly: a bug in the driver, or in the embedder's own agent.
    Misuse {
        /// What the driver was handing over.
        doing: &'static str,
        /// What the machine said of it.
        misuse: Misuse,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Setup(e) => write!(f, "the driver could not start: {e}"),
            Error::Misuse { doing, misuse } => {
                write!(f, "a machine refused its driver while {doing}: {misuse:?}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Setup(e) => Some(e),
            Error::Misuse { .. } => None,
        }
    }
}
