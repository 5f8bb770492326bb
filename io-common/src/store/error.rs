//! Why something can't be read or saved.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a session can't be read or saved. Its text is one line for a person.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// A file isn't what this program writes.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 if it is no matter of one line.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The session is open elsewhere.
    Owned(String),
    /// No name for a session.
    BadId(String),
}

impl Error {
    pub(super) fn io(path: &Path, error: io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            error,
        }
    }

    pub(super) fn damaged(path: &Path, line: u64, why: impl Into<String>) -> Error {
        Error::Damaged {
            path: path.to_owned(),
            line,
            why: why.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, error } => write!(out, "{}: {error}", path.display()),
            Error::Damaged { path, line: 0, why } => {
                write!(out, "{}: damaged: {why}", path.display())
            }
            Error::Damaged { path, line, why } => {
                write!(out, "{}:{line}: damaged: {why}", path.display())
            }
            Error::Owned(id) => write!(out, "session {id} is open in another process"),
            Error::BadId(id) => write!(out, "{id:?} is no name of a session"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { error, .. } => Some(error),
            Error::Damaged { .. } | Error::Owned(_) | Error::BadId(_) => None,
        }
    }
}
