//! The attachments of one session on the disk: blobs by their digest, and a log of what each is.
//!
//! What it promises:
//!
//! * What [`commit`](Blobs::commit) has returned is on the disk, names included, and is there for the process that goes on
//!   with the session.
//! * The bytes of an upload lie in a file without a name until then: they are gone when the upload is given up, when the
//!   process ends, and when it crashes. What a crash leaves in the middle of a commit goes when the folder is opened again.
//! * A blob is there once, however many attachments it is, and goes with the last of them.
//! * Files and folders are made for their user alone. Nothing is made before there is something to keep.

mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use turnwire::vocab::{MediaKind, Stored, Text};
use turnwire_io::{MediaSource, disk};

use crate::{Format, Limits, Refused, judge};
use log::Log;

/// What stands before a digest in the name of a blob.
const BLOB: &str = "blob_sha256_";
/// Commits that a late word may still undo.
const UNDOABLE: usize = 16;

/// Where the attachments of a session lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this folder, which is the session's own and goes on with it.
    Kept(PathBuf),
    /// Below this folder, as long as the process lives; `id` names it there. What dead processes left is cleared away.
    Scratch {
        /// The folder of all of them.
        folder: PathBuf,
        /// A name that nobody else has: ASCII letters, digits, hyphens and underscores.
        id: String,
    },
}

/// Why a folder of attachments can't be used. Its text is one line for a person.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    why: String,
}

impl Error {
    fn new(path: &Path, why: impl fmt::Display) -> Error {
        Error {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Error {}

/// An attachment that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The prompt that it is for, by the host's id of it.
    pub prompt: Text,
    /// What it is.
    pub kind: MediaKind,
    /// What messages refer to.
    pub stored: Arc<Stored>,
}

/// What is to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its MIME type, as declared.
    pub mime: Text,
    /// The attachment that it becomes, by the host's id of it.
    pub attachment: Text,
    /// What a person calls it.
    pub name: Text,
    /// The prompt that it is for, by the host's id of it.
    pub prompt: Text,
}

/// The attachments of one session.
///
/// Its methods may block, but for those of [`MediaSource`] that say otherwise and for [`kept`](Blobs::kept).
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
    limits: Limits,
    index: Mutex<Index>,
    /// Uploads and the log, for one at a time.
    work: Mutex<Work>,
    /// Held while a scratch folder is in use, which goes with it.
    scratch: Option<File>,
}

/// What there is; looked at on any thread, never held over I/O.
#[derive(Debug, Default)]
struct Index {
    /// The size of each blob, and how many attachments it is.
    blobs: BTreeMap<[u8; 32], (u64, usize)>,
    bytes: u64,
    kept: BTreeMap<Text, Kept>,
}

#[derive(Debug)]
struct Work {
    log: Log,
    uploads: BTreeMap<Text, Staged>,
    /// What was committed last, oldest first: the upload and its attachment.
    last: VecDeque<(Text, Text)>,
}

/// An upload on its way.
#[derive(Debug)]
struct Staged {
    file: File,
    bytes: u64,
    digest: Sha256,
}

impl Blobs {
    /// Opens the folder, and clears away what a crash left there. The caller sees to it that nobody else has it open.
    ///
    /// # Errors
    /// [`Error`], if the folder can't be read, or its log isn't one.
    pub fn open(place: &Place, limits: Limits) -> Result<Blobs, Error> {
        let (folder, scratch) = match place {
            Place::Kept(folder) => (folder.clone(), None),
            Place::Scratch { folder, id } => {
                sweep(folder);
                let own = folder.join(id);
                disk::create_folder(&own).map_err(|error| Error::new(&own, error))?;
                let lock = own.join("lock");
                let held = disk::try_lock(&lock).map_err(|error| Error::new(&lock, error))?;
                let held = held.ok_or_else(|| Error::new(&lock, "another process has it"))?;
                (own, Some(held))
            }
        };
        let (log, kept) = Log::open(&folder)?;
        let mut index = Index::default();
        for one in kept {
            index.add(one);
        }
        let blobs = Blobs {
            folder,
            limits,
            index: Mutex::new(index),
            work: Mutex::new(Work {
                log,
                uploads: BTreeMap::new(),
                last: VecDeque::new(),
            }),
            scratch,
        };
        blobs
            .clear()
            .map_err(|error| Error::new(&blobs.folder, error))?;
        Ok(blobs)
    }

    /// All that is kept, in the order of the hosts' ids.
    pub fn kept(&self) -> Vec<Kept> {
        self.index().kept.values().cloned().collect()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next bytes of an upload.
    ///
    /// # Errors
    /// [`Refused::Storage`], and [`Refused::Limit`] for more than one attachment may have.
    pub fn append(&self, upload: &Text, bytes: &[u8]) -> Result<(), Refused> {
        let mut work = self.work();
        if !work.uploads.contains_key(upload) {
            let file = self.stage().map_err(|error| self.failed(&error))?;
            let staged = Staged {
                file,
                bytes: 0,
                digest: Sha256::new(),
            };
            work.uploads.insert(upload.clone(), staged);
        }
        let Some(staged) = work.uploads.get_mut(upload) else {
            return Err(Refused::Storage);
        };
        staged.bytes = staged.bytes.saturating_add(bytes.len() as u64);
        if staged.bytes > self.limits.item_bytes {
            return Err(Refused::Limit);
        }
        staged.digest.update(bytes);
        staged
            .file
            .write_all(bytes)
            .map_err(|error| self.failed(&error))
    }

    fn stage(&self) -> io::Result<File> {
        disk::create_folder(&self.folder)?;
        tempfile::tempfile_in(&self.folder)
    }

    fn failed(&self, error: &io::Error) -> Refused {
        tracing::warn!(folder = %self.folder.display(), %error, "an attachment can't be kept");
        Refused::Storage
    }

    /// Judges all bytes of an upload, and keeps what it is. `sha256`: the digest as declared, in hex.
    ///
    /// The upload is over, however it ends.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn commit(&self, id: &Text, sha256: &str, upload: &Upload) -> Result<Kept, Refused> {
        let mut work = self.work();
        let mut staged = work.uploads.remove(id).ok_or(Refused::Storage)?;
        if hex(&staged.digest.finalize()) != sha256 {
            return Err(Refused::Digest);
        }
        let mut bytes = Vec::new();
        let read = staged
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| staged.file.read_to_end(&mut bytes));
        read.map_err(|error| self.failed(&error))?;
        drop(staged.file);
        let kept = self.keep(&mut work, &bytes, upload)?;
        work.last.push_back((id.clone(), kept.stored.id.clone()));
        if work.last.len() > UNDOABLE {
            work.last.pop_front();
        }
        Ok(kept)
    }

    /// Keeps a file for a prompt, as if it had been uploaded.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn keep_bytes(&self, bytes: &[u8], upload: &Upload) -> Result<Kept, Refused> {
        self.keep(&mut self.work(), bytes, upload)
    }

    fn keep(&self, work: &mut Work, bytes: &[u8], upload: &Upload) -> Result<Kept, Refused> {
        let format = Format::of_mime(&upload.mime).ok_or(Refused::Unsupported)?;
        let judged = judge(bytes, format, &self.limits)?;
        let sha256: [u8; 32] = Sha256::digest(&judged).into();
        let size = judged.len() as u64;
        let is_new = {
            let index = self.index();
            let is_new = !index.blobs.contains_key(&sha256);
            let more = if is_new { size } else { 0 };
            if index.kept.len() >= self.limits.items
                || index.kept.contains_key(&upload.attachment)
                || index.bytes.saturating_add(more) > self.limits.stored_bytes
            {
                return Err(Refused::Limit);
            }
            is_new
        };
        let name = hex(&sha256);
        let kept = Kept {
            prompt: upload.prompt.clone(),
            kind: match format {
                Format::Png | Format::Jpeg => MediaKind::Image,
                Format::Pdf => MediaKind::Document,
            },
            stored: Arc::new(Stored {
                blob: format!("{BLOB}{name}").as_str().into(),
                id: upload.attachment.clone(),
                name: upload.name.clone(),
                mime: upload.mime.clone(),
                size,
                sha256,
            }),
        };
        let written = if is_new {
            self.write(&name, &judged)
        } else {
            Ok(())
        };
        written
            .and_then(|()| work.log.keep(&kept))
            .map_err(|error| self.failed(&error))?;
        self.index().add(kept.clone());
        Ok(kept)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        disk::create_folder(&self.folder)?;
        disk::replace(&self.folder.join(name), &self.folder, bytes)
    }

    /// Gives an upload up, also one that was committed a moment ago.
    pub fn give_up(&self, id: &Text) {
        let mut work = self.work();
        work.uploads.remove(id);
        let Some(at) = work.last.iter().position(|(upload, _)| upload == id) else {
            return;
        };
        let Some((_, attachment)) = work.last.remove(at) else {
            return;
        };
        let gone = self.index().remove(&attachment);
        let done = work.log.forget(&attachment).and_then(|()| match gone {
            Some(sha256) => fs::remove_file(self.folder.join(hex(&sha256))),
            None => Ok(()),
        });
        if let Err(error) = done {
            self.failed(&error);
        }
    }

    /// Removes what no attachment is: files of a commit that a crash cut short.
    fn clear(&self) -> io::Result<()> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let index = self.index();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                continue;
            };
            let is_blob = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_kept = || index.blobs.keys().any(|sha256| hex(sha256) == name);
            if name.starts_with(".tmp") || (is_blob && !is_kept()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Makes the attachments of another session this one's too. Nothing is kept here yet.
    ///
    /// # Errors
    /// [`Error`]
    pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
        let failed = |error: io::Error| Error::new(to, error);
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::new(from, error)),
        };
        disk::create_folder(to).map_err(failed)?;
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let (path, new) = (entry.path(), to.join(entry.file_name()));
            // Blobs never change, so one file serves both; the log does.
            let is_log = entry.file_name() == log::NAME;
            if is_log || fs::hard_link(&path, &new).is_err() {
                fs::copy(&path, &new).map_err(failed)?;
            }
        }
        disk::sync_folder(to).map_err(failed)
    }
}

impl Index {
    fn add(&mut self, kept: Kept) {
        let blob = self.blobs.entry(kept.stored.sha256).or_default();
        if blob.1 == 0 {
            blob.0 = kept.stored.size;
            self.bytes = self.bytes.saturating_add(kept.stored.size);
        }
        blob.1 += 1;
        self.kept.insert(kept.stored.id.clone(), kept);
    }

    /// The blob that goes with it.
    fn remove(&mut self, attachment: &str) -> Option<[u8; 32]> {
        let kept = self.kept.remove(attachment)?;
        let blob = self.blobs.get_mut(&kept.stored.sha256)?;
        blob.1 = blob.1.saturating_sub(1);
        if blob.1 > 0 {
            return None;
        }
        self.bytes = self.bytes.saturating_sub(blob.0);
        self.blobs.remove(&kept.stored.sha256);
        Some(kept.stored.sha256)
    }
}

impl MediaSource for Blobs {
    fn has(&self, stored: &Stored) -> bool {
        let index = self.index();
        let blob = index.blobs.get(&stored.sha256);
        blob.is_some_and(|(size, _)| *size == stored.size)
    }

    fn read(&self, stored: &Stored) -> io::Result<Vec<u8>> {
        let file = File::open(self.folder.join(hex(&stored.sha256)))?;
        let mut bytes = Vec::new();
        file.take(self.limits.item_bytes.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if *Sha256::digest(&bytes) != stored.sha256 {
            return Err(io::Error::other("it isn't what was kept"));
        }
        Ok(bytes)
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        if self.scratch.is_some() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Removes the folders of processes that are dead.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let own = entry.path();
        let lock = own.join("lock");
        if lock.exists() && matches!(disk::try_lock(&lock), Ok(Some(_))) {
            let _ = fs::remove_dir_all(&own);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
