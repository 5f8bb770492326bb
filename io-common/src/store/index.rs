//! The index: which sessions there are.
//!
//! One small JSON file, replaced as a whole under a lock, with one line a session in the order in which they were
//! saved last. That order decides, not the clock: a clock may be set back.
//!
//! It holds [`MOST`] sessions, so that what a save costs doesn't grow for ever. The transcripts of those that drop out
//! stay where they are.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Error, VERSION, is_id};
use crate::disk;

/// How long the lock may be held by others. It is held for one small write.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// How many sessions the index holds.
///
/// Of more, those that were saved longest ago drop out, but the last one of a project only when there is nothing else
/// left to drop: going on with it is what the index is for.
pub const MOST: usize = 500;

/// The largest index that is read, in bytes. A full one with the longest paths that systems allow is smaller.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

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
    let bytes = match bytes(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(path, error)),
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Error::damaged(path, 0, "it is larger than 16 MiB"));
    }
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

/// What is in the file, and no more than one byte over the limit.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Drops what is over the limit.
fn prune(sessions: &mut Vec<Entry>) {
    let mut over = sessions.len().saturating_sub(MOST);
    // From the newest on, the first of each project is its last one.
    let mut projects = BTreeSet::new();
    let mut last: Vec<bool> = sessions
        .iter()
        .rev()
        .map(|entry| projects.insert(entry.project.clone()))
        .collect();
    last.reverse();
    for spared in [true, false] {
        let mut kept = Vec::with_capacity(last.len());
        let mut marks = last.iter();
        sessions.retain(|_| {
            let is_last = marks.next().copied().unwrap_or(false);
            let drop = over > 0 && !(spared && is_last);
            over -= usize::from(drop);
            if !drop {
                kept.push(is_last);
            }
            !drop
        });
        last = kept;
    }
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
    prune(&mut sessions);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry(number: usize, project: &str) -> Entry {
        Entry {
            id: format!("s{number}"),
            project: project.to_owned(),
            title: String::new(),
            created_at: 0,
            updated_at: 0,
        }
    }

    #[test]
    fn the_oldest_drop_out_but_the_last_of_each_project() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.json");
        let mut sessions: Vec<Entry> = (0..MOST + 20)
            .map(|number| entry(number, if number % 100 == 3 { "rare" } else { "often" }))
            .collect();
        sessions.insert(0, entry(9999, "once"));
        std::fs::write(&path, text(&sessions).unwrap()).unwrap();
        save(&path, folder.path(), &entry(7777, "often")).unwrap();
        let now = read(&path).unwrap();
        assert_eq!(now.len(), MOST);
        assert_eq!((&*now[0].project, &*now[1].id), ("once", "s22"));
        assert_eq!(now.last().unwrap().id, "s7777");
        // Saved again it neither grows nor loses any.
        save(&path, folder.path(), &entry(7777, "often")).unwrap();
        assert_eq!(read(&path).unwrap(), now);
    }

    #[test]
    fn with_nothing_else_to_drop_it_is_the_project_that_was_left_longest() {
        let mut sessions: Vec<Entry> = (0..MOST + 2)
            .map(|number| entry(number, &format!("p{number}")))
            .collect();
        prune(&mut sessions);
        assert_eq!((sessions.len(), &*sessions[0].id), (MOST, "s2"));
    }

    #[test]
    fn a_file_that_never_ends_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.json");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("16 MiB"), "{error}");
    }
}
