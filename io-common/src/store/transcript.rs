//! A transcript: one JSON object a line, only ever added to.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnwire::vocab::{Message, MessageId, Origin, Role};

use super::format::{self, Line};
use super::{Binding, Entry, Error, Resumed, Store, index};
use crate::disk;

/// How many characters of the first prompt are a session's title.
const TITLE: usize = 48;

/// Saves the messages of one session, and owns it: no other writer can have it as long as this one lives.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    entry: Entry,
    binding: Option<Binding>,
    /// The session that it comes from.
    parent: Option<String>,
    open: Option<Open>,
    /// It is in the index.
    listed: bool,
    /// The messages of the running turn that are saved already.
    partly: BTreeSet<MessageId>,
    /// The messages of turns that could not be saved.
    unsaved: Vec<Arc<Message>>,
}

/// A transcript that is open for writing.
#[derive(Debug)]
struct Open {
    /// `None`: it is closed for now.
    file: Option<File>,
    /// Bytes of whole lines that are safe.
    length: u64,
    /// More may lie behind them, of a write that failed.
    dirty: bool,
    _lock: Option<File>,
}

impl Writer {
    pub(super) fn fresh(store: Store, entry: Entry) -> Writer {
        Writer {
            store,
            entry,
            binding: None,
            parent: None,
            open: None,
            listed: true,
            partly: BTreeSet::new(),
            unsaved: Vec::new(),
        }
    }

    /// Of a session that is kept beside another, and isn't one to go on with.
    pub(super) fn unlisted(self) -> Writer {
        Writer {
            listed: false,
            ..self
        }
    }

    /// Keeps with a new session who serves its model. Without a meaning once a message was saved.
    pub fn bind(&mut self, binding: Binding) {
        self.binding = Some(binding);
    }

    /// Keeps with a new session which one it comes from, as its host names that. Without a meaning once a message was
    /// saved.
    pub fn descend(&mut self, parent: String) {
        self.parent = Some(parent);
    }

    /// Gives the session a name for people, which is also its title. Once it returns the name is safe.
    ///
    /// # Errors
    /// [`Error`], when the name, or the index, may not be safe.
    pub fn rename(&mut self, name: &str, now_ms: u64) -> Result<(), Error> {
        let mut line = Vec::new();
        format::write_name(&mut line, name);
        self.append(&line)?;
        self.entry.title = name.chars().take(TITLE).collect();
        self.entry.updated_at = now_ms;
        index::save(&self.store.index(), &self.store.folder, &self.entry)
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.entry.id
    }

    /// Where its messages are kept; there is no such file before the first is saved.
    pub fn path(&self) -> PathBuf {
        self.store.transcript(&self.entry.id)
    }

    /// Saves messages of a turn, oldest first, and puts the session to the end of the index. Once it returns they
    /// are safe.
    ///
    /// A turn may be saved piece by piece: give each time all that it has said so far, or a part; what was saved
    /// before isn't saved twice. `whole` says that this is all of the turn: what can't be saved then goes out with
    /// the next one. Without it the caller comes back with these messages, or they don't count.
    ///
    /// # Errors
    /// [`Error`], when the messages, or the index, may not be safe. The session can go on all the same.
    pub fn save(
        &mut self,
        messages: &[Arc<Message>],
        whole: bool,
        now_ms: u64,
    ) -> Result<(), Error> {
        let new: Vec<Arc<Message>> = self
            .unsaved
            .iter()
            .chain(messages)
            .filter(|message| !self.partly.contains(&message.id))
            .cloned()
            .collect();
        if new.is_empty() {
            if whole {
                self.partly.clear();
            }
            return Ok(());
        }
        let mut lines = Vec::new();
        for message in &new {
            format::write_message(&mut lines, message);
        }
        let appended = self.append(&lines);
        if appended.is_ok() {
            self.unsaved.clear();
            self.partly.extend(new.iter().map(|message| message.id));
            self.name_after(&new);
        } else if whole {
            self.unsaved = new;
        }
        if whole {
            self.partly.clear();
        }
        appended?;
        if !self.listed {
            // There may be many, and few of them are written to any more.
            if whole && let Some(open) = &mut self.open {
                open.file = None;
            }
            return Ok(());
        }
        self.entry.updated_at = now_ms;
        index::save(&self.store.index(), &self.store.folder, &self.entry)
    }

    /// The first prompt gives the session its title.
    fn name_after(&mut self, messages: &[Arc<Message>]) {
        if !self.entry.title.is_empty() {
            return;
        }
        let prompt = messages
            .iter()
            .find(|message| message.role == Role::User && message.origin == Origin::Host);
        if let Some(prompt) = prompt {
            self.entry.title = prompt.text().chars().take(TITLE).collect();
        }
    }

    /// Adds whole lines; the first of all stand behind the head.
    fn append(&mut self, lines: &[u8]) -> Result<(), Error> {
        let path = self.store.transcript(&self.entry.id);
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(begin(&self.store, &self.entry.id, &path, self.listed)?),
        };
        if open.length > 0 {
            return open.append(&path, lines);
        }
        let mut all = Vec::new();
        let parent = self.parent.as_deref();
        format::write_head(&mut all, &self.entry, parent, self.binding.as_ref());
        all.extend_from_slice(lines);
        open.append(&path, &all)?;
        disk::sync_folder(&self.store.folder).map_err(|error| Error::io(&self.store.folder, error))
    }
}

/// Makes the transcript of a new session.
fn begin(store: &Store, id: &str, path: &Path, owned: bool) -> Result<Open, Error> {
    disk::create_folder(&store.folder).map_err(|error| Error::io(&store.folder, error))?;
    let lock = owned.then(|| store.own(id)).transpose()?;
    let mut options = OpenOptions::new();
    // Ids are never used again: one that is there was left by a process that lost it before it saved anything.
    options.create(true).truncate(false).write(true);
    let file = disk::private(&mut options)
        .open(path)
        .map_err(|error| Error::io(path, error))?;
    Ok(Open {
        file: Some(file),
        length: 0,
        dirty: true,
        _lock: lock,
    })
}

impl Open {
    /// Adds lines, durably, or nothing.
    fn append(&mut self, path: &Path, lines: &[u8]) -> Result<(), Error> {
        if self.dirty {
            self.cut(path)?;
        }
        // Nobody else writes it, so another length means that what was acknowledged isn't there any more.
        match std::fs::metadata(path) {
            Ok(found) if found.len() == self.length => {}
            Ok(_) => {
                return Err(Error::damaged(path, 0, "something else has changed it"));
            }
            Err(error) => return Err(Error::io(path, error)),
        }
        // Not opened for appending: Windows doesn't let such a file be cut.
        let length = self.length;
        let file = self.file(path)?;
        let written = file
            .seek(SeekFrom::Start(length))
            .and_then(|_| file.write_all(lines))
            .and_then(|()| file.sync_all());
        match written {
            Ok(()) => {
                self.length = self.length.saturating_add(lines.len() as u64);
                Ok(())
            }
            Err(error) => {
                self.dirty = true;
                // If this fails too, the next write does it first.
                let _ = self.cut(path);
                Err(Error::io(path, error))
            }
        }
    }

    /// The file, opened again if it was closed.
    fn file(&mut self, path: &Path) -> Result<&mut File, Error> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                let file = OpenOptions::new().write(true).open(path);
                Ok(none.insert(file.map_err(|error| Error::io(path, error))?))
            }
        }
    }

    /// Takes away what lies behind the last safe line.
    fn cut(&mut self, path: &Path) -> Result<(), Error> {
        let length = self.length;
        let file = self.file(path)?;
        file.set_len(length)
            .and_then(|()| file.sync_all())
            .map_err(|error| Error::io(path, error))?;
        self.dirty = false;
        Ok(())
    }
}

/// Reads a transcript whose lock is held, and opens it for writing.
pub(super) fn resume(store: Store, entry: Entry, lock: File) -> Result<Resumed, Error> {
    let path = store.transcript(&entry.id);
    let mut options = OpenOptions::new();
    let file = match options.read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::damaged(&path, 0, "the transcript is gone"));
        }
        Err(error) => return Err(Error::io(&path, error)),
    };
    let Found {
        history,
        name,
        binding,
        length,
        torn,
    } = read(&path, &file, &entry.id)?;
    let mut open = Open {
        file: Some(file),
        length,
        dirty: torn > 0,
        _lock: Some(lock),
    };
    if open.dirty {
        open.cut(&path)?;
    }
    let mut writer = Writer::fresh(store, entry);
    writer.open = Some(open);
    Ok(Resumed {
        writer,
        history,
        name,
        binding,
        torn,
    })
}

/// What a transcript holds.
struct Found {
    history: Vec<Arc<Message>>,
    name: Option<String>,
    binding: Option<Binding>,
    /// Of its whole lines, in bytes.
    length: u64,
    /// Of what comes behind the last of them.
    torn: u64,
}

fn read(path: &Path, file: &File, id: &str) -> Result<Found, Error> {
    let mut reader = BufReader::new(file);
    let mut decoder = format::Decoder::default();
    let mut line = Vec::new();
    let (mut history, mut bound, mut name) = (Vec::new(), None, None);
    let mut seen = BTreeSet::new();
    let (mut number, mut length) = (0, 0);
    loop {
        line.clear();
        let count = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::io(path, error))? as u64;
        let Some(content) = line.strip_suffix(b"\n") else {
            if number == 0 {
                return Err(Error::damaged(path, 1, "it has no first line"));
            }
            return Ok(Found {
                history,
                name,
                binding: bound,
                length,
                torn: count,
            });
        };
        number += 1;
        let damaged = |why: String| Error::damaged(path, number, why);
        match (number, decoder.line(content).map_err(damaged)?) {
            (
                1,
                Line::Head {
                    id: found, binding, ..
                },
            ) if found == id => bound = binding,
            (1, Line::Head { id: found, .. }) => {
                return Err(damaged(format!("it is of the session {found:?}")));
            }
            (1, Line::Message(_) | Line::Name(_)) => {
                return Err(damaged("it has no first line".to_owned()));
            }
            (_, Line::Head { .. }) => return Err(damaged("it begins a second time".to_owned())),
            (_, Line::Name(line)) => name = Some(line),
            (_, Line::Message(message)) => {
                if !seen.insert(message.id) {
                    return Err(damaged(format!("message {} is there twice", message.id.0)));
                }
                history.push(Arc::new(message));
            }
        }
        length += count;
    }
}

/// What the first line of a transcript says of it; its title isn't known there.
pub(super) fn entry(path: &Path, id: &str) -> Result<Entry, Error> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    let mut line = Vec::new();
    BufReader::new(file)
        .read_until(b'\n', &mut line)
        .map_err(|error| Error::io(path, error))?;
    let damaged = |why: String| Error::damaged(path, 1, why);
    let content = line.strip_suffix(b"\n");
    let content = content.ok_or_else(|| damaged("it has no first line".to_owned()))?;
    match format::Decoder::default().line(content).map_err(damaged)? {
        Line::Head {
            id: found,
            project,
            created_at,
            ..
        } if found == id => Ok(Entry {
            id: found,
            project,
            title: String::new(),
            created_at,
            updated_at: created_at,
        }),
        Line::Head { id: found, .. } => Err(damaged(format!("it is of the session {found:?}"))),
        Line::Message(_) | Line::Name(_) => Err(damaged("it has no first line".to_owned())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tw_08_a_write_that_fails_halfway_leaves_nothing_half_done() {
        let folder = tempfile::tempdir().unwrap();
        let (path, lock) = (folder.path().join("a.jsonl"), folder.path().join("a.lock"));
        let opened = |write: bool| {
            let mut options = OpenOptions::new();
            options.read(true).write(write).create(write).open(&path)
        };
        let mut open = Open {
            file: Some(opened(true).unwrap()),
            length: 0,
            dirty: true,
            _lock: Some(disk::try_lock(&lock).unwrap().unwrap()),
        };
        open.append(&path, b"one\n").unwrap();
        // The disk takes a part, then neither the rest nor its removal.
        open.file = Some(opened(false).unwrap());
        assert!(open.append(&path, b"two\n").is_err());
        assert!(open.dirty && open.length == 4);
        std::fs::write(&path, b"one\ntw").unwrap();
        assert!(open.append(&path, b"two\n").is_err());
        open.file = Some(opened(true).unwrap());
        open.append(&path, b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }
}
