//! The log of files that were put aside.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Bounds, open_at};
use crate::disk;
use crate::tools::outcome::reason;

/// The largest log that is read, in bytes.
const MOST: u64 = 64 * 1024 * 1024;

/// What the log says of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The newest message of the session then.
    pub message: u64,
    /// The file, absolute.
    pub path: String,
    pub was: Was,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Was {
    /// There was none.
    Missing,
    /// It was too large to be kept, or no plain file.
    Unkept,
    /// This content, with this mode on systems that have one.
    Content { sha: String, bytes: u64, mode: u32 },
}

impl Entry {
    /// Whether a content's name leads nowhere else.
    fn is_sound(&self) -> bool {
        match &self.was {
            Was::Content { sha, .. } => {
                sha.len() == 64 && sha.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Was::Missing | Was::Unkept => true,
        }
    }
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    version: u32,
    /// Files don't go back to this message or an earlier one: what was put aside there isn't kept any more.
    before: u64,
}

/// The log, held in memory and written through.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// As [`Head::before`].
    pub before: u64,
    pub entries: Vec<Entry>,
    /// How many lines went before the first one.
    gone: u64,
    /// The file, and the bytes of its whole lines.
    file: Option<File>,
    length: u64,
    /// More may lie behind them, of a write that failed.
    dirty: bool,
}

fn path(folder: &Path) -> PathBuf {
    folder.join("log.jsonl")
}

fn says(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {}", path.display(), reason(error))
}

impl Log {
    /// Reads the log of a folder. What a process was writing when it died is cut off. A log that can't be read is put
    /// out of the way: nothing goes back to before now.
    pub fn open(folder: &Path, newest: u64) -> Result<Log, String> {
        let path = path(folder);
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(file) => {
                let read = file.take(MOST + 1).read_to_end(&mut bytes);
                read.map_err(|error| says(&path, &error))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Log::default()),
            Err(error) => return Err(says(&path, &error)),
        }
        let whole = bytes.iter().rposition(|&byte| byte == b'\n');
        let whole = whole.map_or(0, |at| at + 1);
        let lines = bytes.get(..whole).unwrap_or_default();
        if lines.is_empty() && bytes.len() as u64 <= MOST {
            return Ok(Log::default());
        }
        match Log::read(lines) {
            Some(mut log) if bytes.len() as u64 <= MOST => {
                log.length = whole as u64;
                log.dirty = whole < bytes.len();
                // Messages that came later were lost, and their numbers are used again.
                for entry in &mut log.entries {
                    entry.message = entry.message.min(newest);
                }
                log.before = log.before.min(newest);
                Ok(log)
            }
            Some(_) | None => {
                tracing::warn!(path = %path.display(), "the log of files that were put aside is damaged");
                let aside = folder.join("log.damaged");
                std::fs::rename(&path, &aside).map_err(|error| says(&path, &error))?;
                Ok(Log {
                    before: newest,
                    ..Log::default()
                })
            }
        }
    }

    fn read(lines: &[u8]) -> Option<Log> {
        let mut lines = lines.split(|&byte| byte == b'\n');
        let head: Head = serde_json::from_slice(lines.next()?).ok()?;
        let lines = lines.filter(|line| !line.is_empty());
        let entries: Result<Vec<Entry>, _> = lines.map(serde_json::from_slice).collect();
        let entries = entries.ok()?;
        let known = head.version == 1 && entries.iter().all(Entry::is_sound);
        known.then_some(Log {
            before: head.before,
            entries,
            ..Log::default()
        })
    }

    fn head(&self) -> Result<Vec<u8>, String> {
        let head = Head {
            version: 1,
            before: self.before,
        };
        line(&head)
    }

    /// Adds lines, durably or not at all; the number of the first of them since the beginning.
    pub fn append(&mut self, folder: &Path, entries: Vec<Entry>) -> Result<u64, String> {
        let first = self.gone + self.entries.len() as u64;
        if entries.is_empty() {
            return Ok(first);
        }
        let mut bytes = if self.length == 0 {
            self.head()?
        } else {
            Vec::new()
        };
        for entry in &entries {
            bytes.append(&mut line(entry)?);
        }
        self.write(folder, &bytes)
            .map_err(|error| says(&path(folder), &error))?;
        self.entries.extend(entries);
        Ok(first)
    }

    fn write(&mut self, folder: &Path, bytes: &[u8]) -> std::io::Result<()> {
        if self.dirty {
            self.file = None;
        }
        let new = self.length == 0;
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_at(&path(folder), self.length)?),
        };
        self.dirty = true;
        file.write_all(bytes)?;
        file.sync_all()?;
        if new {
            disk::sync_folder(folder)?;
        }
        self.dirty = false;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Drops the oldest lines, and contents that no line names any more, if there is more than may be kept: down to
    /// half of it, so that this is seldom done.
    pub fn bound(&mut self, folder: &Path, bounds: Bounds, newest: u64) -> Result<(), String> {
        let mut sizes = self.contents();
        let mut total: u64 = sizes.values().map(|(_, bytes)| *bytes).sum();
        if total <= bounds.bytes && self.entries.len() <= bounds.lines {
            return Ok(());
        }
        let mut dropped = 0;
        let mut gone = Vec::new();
        for entry in &self.entries {
            if total <= bounds.bytes / 2 && self.entries.len() - dropped <= bounds.lines / 2 {
                break;
            }
            dropped += 1;
            let Was::Content { sha, bytes, .. } = &entry.was else {
                continue;
            };
            if let Some((uses, _)) = sizes.get_mut(sha) {
                *uses -= 1;
                if *uses == 0 {
                    total = total.saturating_sub(*bytes);
                    gone.push(sha.clone());
                }
            }
        }
        let last = self.entries.get(..dropped).and_then(<[Entry]>::last);
        self.before = self.before.max(last.map_or(newest, |entry| entry.message));
        self.entries.drain(..dropped);
        self.gone += dropped as u64;
        let mut bytes = self.head()?;
        for entry in &self.entries {
            bytes.append(&mut line(entry)?);
        }
        self.file = None;
        let path = path(folder);
        disk::replace(&path, folder, &bytes).map_err(|error| says(&path, &error))?;
        self.length = bytes.len() as u64;
        // Only now does nothing name them.
        for sha in gone {
            if std::fs::remove_file(folder.join(sha)).is_err() {
                tracing::debug!("a content that nothing names any more could not be removed");
            }
        }
        Ok(())
    }

    /// How often each content is named, and how large it is.
    fn contents(&self) -> BTreeMap<String, (usize, u64)> {
        let mut sizes: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for entry in &self.entries {
            if let Was::Content { sha, bytes, .. } = &entry.was {
                sizes.entry(sha.clone()).or_insert((0, *bytes)).0 += 1;
            }
        }
        sizes
    }
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}
