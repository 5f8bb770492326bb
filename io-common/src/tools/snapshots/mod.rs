//! What files were before the tools changed them, so that they can be put back.
//!
//! A folder holds a log, one line for each file that was put aside, and the contents, each once, by their SHA-256. The
//! log is a straight story: what a file was before a message is what the first line for it says that was written at
//! that message or a later one; without such a line it is what it is now. Putting files back is a change of them like
//! any other and is put aside first, so that one can also go forward again, and a process that ends in the middle
//! leaves whole files and a log that is true.
//!
//! Contents are on the disk before the log names them, and the log is before a file is changed. What is kept is bounded:
//! beyond [`Bounds`] the oldest lines go, and then no file goes back to before them.

mod log;
mod restore;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use turnwire::vocab::{Restoration, Text};

use super::files::WHOLE_FILE;
use super::files::path::{Place, Root};
use super::outcome::reason;
use crate::disk;
use log::{Entry, Log, Was};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all contents.
    pub bytes: u64,
    /// Lines of the log.
    pub lines: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            bytes: 256 * 1024 * 1024,
            lines: 10_000,
        }
    }
}

/// The files that were put aside for one session. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshots {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug)]
struct Kept {
    folder: PathBuf,
    bounds: Bounds,
    /// The newest message of the session when it was opened.
    newest: u64,
    /// `None` until it is needed.
    log: Option<Log>,
}

impl Snapshots {
    /// In this folder, which is made when something is put aside. `newest` is the newest message that the session has
    /// now: what was put aside at later ones belonged to messages that were lost.
    pub fn at(folder: PathBuf, newest: u64, bounds: Bounds) -> Snapshots {
        Snapshots {
            kept: Arc::new(Mutex::new(Kept {
                folder,
                bounds,
                newest,
                log: None,
            })),
        }
    }

    /// Puts files aside as they are, at a message. The names of those that are kept, and the number of the first line.
    pub(super) fn put_aside(
        &self,
        places: &[Place],
        message: u64,
    ) -> Result<(Vec<Text>, u64), String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put_aside(places, message)
    }

    /// Puts files back as they were before a message; `dry_run`: only says what that would change.
    pub(super) fn put_back(
        &self,
        root: &Root,
        to: u64,
        message: u64,
        dry_run: bool,
    ) -> Result<Restoration, String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        restore::run(&mut kept, root, to, message, dry_run)
    }
}

/// What a file is now.
enum Now {
    /// There is none.
    Missing,
    Content {
        bytes: Vec<u8>,
        mode: u32,
    },
    /// It is too large, or no file.
    Unkept,
}

impl Now {
    fn of(path: &Path) -> Result<Now, String> {
        let failed = |error: std::io::Error| format!("{}: {}", path.display(), reason(&error));
        let meta = match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Now::Missing),
            Err(error) => return Err(failed(error)),
        };
        if !meta.is_file() || meta.len() > WHOLE_FILE {
            return Ok(Now::Unkept);
        }
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        // It may grow while it is read.
        file.take(WHOLE_FILE + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > WHOLE_FILE {
            return Ok(Now::Unkept);
        }
        let mode = mode_of(&meta);
        Ok(Now::Content { bytes, mode })
    }
}

#[cfg(unix)]
fn mode_of(meta: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(meta) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_: &std::fs::Metadata) -> u32 {
    0
}

impl Kept {
    fn put_aside(&mut self, places: &[Place], message: u64) -> Result<(Vec<Text>, u64), String> {
        let mut entries = Vec::new();
        let mut names = Vec::new();
        for place in places {
            let now = Now::of(&place.real)?;
            if !matches!(now, Now::Unkept) {
                names.push(Text::from(&*place.shown));
            }
            entries.push(self.entry(&place.real, &now, message)?);
        }
        let first = self.append(entries)?;
        Ok((names, first))
    }

    /// A line for a file; its content is on the disk then.
    fn entry(&mut self, path: &Path, now: &Now, message: u64) -> Result<Entry, String> {
        let was = match now {
            Now::Missing => Was::Missing,
            Now::Unkept => Was::Unkept,
            Now::Content { bytes, mode } => Was::Content {
                sha: self.keep(bytes)?,
                bytes: bytes.len() as u64,
                mode: *mode,
            },
        };
        Ok(Entry {
            message,
            path: path.to_string_lossy().into_owned(),
            // Of a name that isn't text no line can tell.
            was: if path.to_str().is_some() {
                was
            } else {
                Was::Unkept
            },
        })
    }

    /// Keeps a content, once; the result is its name.
    fn keep(&self, bytes: &[u8]) -> Result<String, String> {
        let sha = super::sha_of(bytes);
        let path = self.folder.join(&sha);
        let failed = |error: std::io::Error| format!("{}: {}", path.display(), reason(&error));
        let whole = std::fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes.len() as u64);
        if !whole {
            disk::create_folder(&self.folder).map_err(failed)?;
            disk::replace(&path, &self.folder, bytes).map_err(failed)?;
        }
        Ok(sha)
    }

    /// The content of this name, if it is there and whole.
    fn content(&self, sha: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.folder.join(sha)).ok()?;
        file.take(WHOLE_FILE + 1).read_to_end(&mut bytes).ok()?;
        (super::sha_of(&bytes) == sha).then_some(bytes)
    }

    /// Adds lines to the log; the number of the first of them.
    fn append(&mut self, entries: Vec<Entry>) -> Result<u64, String> {
        disk::create_folder(&self.folder)
            .map_err(|error| format!("{}: {}", self.folder.display(), reason(&error)))?;
        let (folder, newest, bounds) = (self.folder.clone(), self.newest, self.bounds);
        let log = self.log()?;
        let first = log.append(&folder, entries)?;
        log.bound(&folder, bounds, newest)?;
        Ok(first)
    }

    /// The log, read when it is needed first.
    fn log(&mut self) -> Result<&mut Log, String> {
        if self.log.is_none() {
            self.log = Some(Log::open(&self.folder, self.newest)?);
        }
        self.log.as_mut().ok_or_else(|| "there is no log".into())
    }
}

/// Opens a file of the user's own for writing behind its `length` bytes.
fn open_at(path: &Path, length: u64) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let mut file = disk::private(&mut options).open(path)?;
    file.set_len(length)?;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))?;
    file.flush()?;
    Ok(file)
}
