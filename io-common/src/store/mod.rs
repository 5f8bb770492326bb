//! Where sessions are kept: a folder with an index, and one transcript a session.
//!
//! Plain blocking I/O, for the thread that a driver keeps for it; nothing here knows a runtime. The form of the files is
//! described in `docs/sessions.md`.
//!
//! What it promises:
//!
//! * When [`Writer::save`] returns `Ok`, its messages and the index are on the disk, names included.
//! * A process that dies at any moment leaves at most one line without its end, which the next one cuts off.
//! * A write that failed leaves nothing half-done in the transcript, and its messages go out with the next one.
//! * A session has one writer: a lock that is held as long as the [`Writer`] lives, and that ends with its process.
//! * Damage is reported, never repaired by guessing: a file that can't be read as a whole isn't written either.
//! * Files and folders are made for their user alone.

mod below;
mod error;
mod format;
mod index;
#[cfg(test)]
mod tests;
mod transcript;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnwire::vocab::Message;

use crate::disk;

pub use below::Part;
pub use error::Error;
pub use index::{Entry, MOST as MOST_SESSIONS};
pub use transcript::Writer;

/// The version of the index and of the transcripts that this program reads and writes.
pub const VERSION: u64 = 1;

/// How long a session's lock is waited for before its owner counts as alive.
const OWNER_PATIENCE: std::time::Duration = std::time::Duration::from_millis(300);

/// A folder of sessions. It need not exist until something is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// Who served the model when a session was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// What the user calls the provider.
    pub provider: String,
    /// Its type.
    pub kind: String,
    /// The model's name.
    pub model: String,
    /// Stands for the way to it: nothing can be read from it, and the same way gives the same.
    pub route: String,
}

/// A session that goes on.
#[derive(Debug)]
pub struct Resumed {
    /// Writes on; holds the session's lock.
    pub writer: Writer,
    /// Its messages, oldest first, exactly as they were saved. Numbers of prompts in them are those of the processes
    /// that wrote them.
    pub history: Vec<Arc<Message>>,
    /// Its name for people, if it has one.
    pub name: Option<String>,
    /// Who served the model at first; `None` if that wasn't kept.
    pub binding: Option<Binding>,
    /// Bytes of a line without its end that were cut off: what a process was writing when it died. 0 if there were
    /// none.
    pub torn: u64,
}

impl Store {
    /// The store in this folder.
    pub fn at(folder: PathBuf) -> Store {
        Store { folder }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new session. Nothing is made on the disk before its first message is saved, so that one in which nothing
    /// was said leaves nothing behind.
    ///
    /// `id` must be new, of at most 64 ASCII letters, digits, hyphens and underscores; `project` is what
    /// [`latest`](Store::latest) finds it by.
    ///
    /// # Errors
    /// [`Error::BadId`].
    pub fn create(&self, id: &str, project: &str, now_ms: u64) -> Result<Writer, Error> {
        if !is_id(id) {
            return Err(Error::BadId(id.to_owned()));
        }
        let entry = Entry {
            id: id.to_owned(),
            project: project.to_owned(),
            title: String::new(),
            created_at: now_ms,
            updated_at: now_ms,
        };
        Ok(Writer::fresh(self.clone(), entry))
    }

    /// All sessions, the one that was saved last at the end.
    ///
    /// # Errors
    /// [`Error`] if there is an index that can't be read.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        index::read(&self.index())
    }

    /// The session of a project that was saved last; `None` if there is none.
    ///
    /// # Errors
    /// As [`list`](Store::list).
    pub fn latest(&self, project: &str) -> Result<Option<Entry>, Error> {
        let mut sessions = self.list()?;
        sessions.retain(|entry| entry.project == project);
        Ok(sessions.pop())
    }

    /// The session of a project with this id; `None` if there is none.
    ///
    /// # Errors
    /// As [`list`](Store::list).
    pub fn find(&self, project: &str, id: &str) -> Result<Option<Entry>, Error> {
        let sessions = self.list()?;
        let mut sessions = sessions.into_iter();
        Ok(sessions.find(|entry| entry.project == project && entry.id == id))
    }

    /// The session of a transcript, wherever that lies: its store, and what is known of it. `None`: there is no such file,
    /// or its name is none of a transcript.
    ///
    /// # Errors
    /// [`Error`] if the index beside it, or the beginning of the transcript, can't be read.
    pub fn of_transcript(path: &Path) -> Result<Option<(Store, Entry)>, Error> {
        let id = path.file_stem().and_then(|stem| stem.to_str());
        let named = path.extension().is_some_and(|ending| ending == "jsonl");
        let (Some(id), Some(folder)) = (id.filter(|id| named && is_id(id)), path.parent()) else {
            return Ok(None);
        };
        if !path.is_file() {
            return Ok(None);
        }
        let store = Store::at(folder.to_owned());
        let listed = store.list()?.into_iter().find(|entry| entry.id == id);
        let entry = match listed {
            Some(entry) => entry,
            None => transcript::entry(path, id)?,
        };
        Ok(Some((store, entry)))
    }

    /// Takes a session over: its lock first, then its messages.
    ///
    /// # Errors
    /// [`Error::Owned`] if another writer has it, [`Error::Damaged`] if its transcript can't be read as a whole.
    pub fn resume(&self, entry: Entry) -> Result<Resumed, Error> {
        let lock = self.own(&entry.id)?;
        transcript::resume(self.clone(), entry, lock)
    }

    /// Takes the lock of a session, with no more than a moment's wait.
    fn own(&self, id: &str) -> Result<File, Error> {
        if !is_id(id) {
            return Err(Error::BadId(id.to_owned()));
        }
        let path = self.folder.join(format!("{id}.lock"));
        match disk::try_lock_for(&path, OWNER_PATIENCE) {
            Ok(Some(lock)) => Ok(lock),
            Ok(None) => Err(Error::Owned(id.to_owned())),
            Err(error) => Err(Error::io(&path, error)),
        }
    }

    fn index(&self) -> PathBuf {
        self.folder.join("index.json")
    }

    fn transcript(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }
}

/// Whether a text may be part of a file's name here: an index that somebody else wrote must not lead out of the folder.
fn is_id(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&id.len()) && id.bytes().all(plain)
}
