//! The index: which sessions there are.
//!
//! One small JSON file, replaced as a whole under a lock, with one line a session in the order in which they were
//! saved last. That order decides, not the clock: a clock may be set back.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Error, VERSION, disk, is_id};

/// How long the lock may be held by others. It is held for one small write.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// One session of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id, and the name of its files.
    pub id: String,
    /// The project that it worked in.
    pub project: String,
    /// The first 48 characters of its first prompt.
    pub title: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// When it was saved last, in milliseconds since the Unix epoch.
    pub updated_at: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    version: u64,
    sessions: Vec<Entry>,
}

/// Reads the index; none is an empty one.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(path, error)),
    };
    let damaged = |line: usize, why: String| Error::damaged(path, line as u64, why);
    let index: Index = serde_json::from_slice(&bytes)
        .map_err(|fault| damaged(fault.line(), plain(&fault.to_string())))?;
    if index.version != VERSION {
        return Err(damaged(
            0,
            format!(
                "version {} isn't one that this program knows",
                index.version
            ),
        ));
    }
    if let Some(entry) = index.sessions.iter().find(|entry| !is_id(&entry.id)) {
        return Err(damaged(
            0,
            format!("{:?} is no name of a session", entry.id),
        ));
    }
    Ok(index.sessions)
}

/// The reason without its place, which is said elsewhere.
fn plain(fault: &str) -> String {
    let end = fault.rfind(" at line ").unwrap_or(fault.len());
    fault.get(..end).unwrap_or(fault).to_owned()
}

/// Puts a session at the end of the index, with what it says now.
pub(super) fn save(path: &Path, folder: &Path, entry: &Entry) -> Result<(), Error> {
    let lock = path.with_extension("lock");
    let _lock = disk::lock(&lock, LOCK_LIMIT).map_err(|error| Error::io(&lock, error))?;
    let mut sessions = read(path)?;
    sessions.retain(|other| other.id != entry.id);
    sessions.push(entry.clone());
    let bytes =
        text(&sessions).map_err(|error| Error::io(path, io::Error::other(error.to_string())))?;
    disk::replace(path, folder, &bytes).map_err(|error| Error::io(path, error))
}

fn text(sessions: &[Entry]) -> serde_json::Result<Vec<u8>> {
    let mut out = format!("{{\"version\":{VERSION},\"sessions\":[").into_bytes();
    for (number, entry) in sessions.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"\n" } else { b",\n" });
        out.append(&mut serde_json::to_vec(entry)?);
    }
    out.extend_from_slice(b"\n]}\n");
    Ok(out)
}
