//! Sessions within sessions: what nested runs say, each in a transcript beside that of the session whose run it is.
//!
//! Such a session isn't in the index, since no other process goes on with it, and needs no lock: whoever owns the session
//! above owns it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use turnwire::protocol::openseek::split_child_session_id;
use turnwire::vocab::Message;

use super::format::{Decoder, Line};
use super::{Entry, Error, Store, Writer, is_id};

/// The most bytes of a transcript that are read at once.
const PART: u64 = 4 * 1024 * 1024;

/// What a transcript holds from some byte on.
#[derive(Debug, Default)]
pub struct Part {
    /// Its messages, the oldest first.
    pub messages: Vec<Arc<Message>>,
    /// From which byte on it was read.
    pub from: u64,
    /// Where to go on: behind the last whole line that was read.
    pub next: u64,
    /// There was less than what was asked for, so it was read from its start.
    pub reset: bool,
}

impl Store {
    /// A new session of a nested run. Nothing is made on the disk before its first message is saved.
    ///
    /// `id` is that of the session above, `-sr-` and the number of the run ([`child_session_id`]).
    ///
    /// [`child_session_id`]: turnwire::protocol::openseek::child_session_id
    ///
    /// # Errors
    /// [`Error::BadId`] if it is no such id, or too long for a file's name here.
    pub fn create_below(&self, id: &str, project: &str, now_ms: u64) -> Result<Writer, Error> {
        if !is_id(id) || split_child_session_id(id).is_none() {
            return Err(Error::BadId(id.to_owned()));
        }
        let entry = Entry {
            id: id.to_owned(),
            project: project.to_owned(),
            title: String::new(),
            created_at: now_ms,
            updated_at: now_ms,
        };
        Ok(Writer::fresh(self.clone(), entry).unlisted())
    }

    /// The highest number of a run that was kept below a session, however deep; 0 if there is none. It may block.
    ///
    /// # Errors
    /// [`Error`] if the folder can't be read.
    pub fn last_below(&self, id: &str) -> Result<u32, Error> {
        let fault = |error| Error::io(&self.folder, error);
        let files = match fs::read_dir(&self.folder) {
            Ok(files) => files,
            // What is no folder holds none either; it is for the first save to complain.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(fault(error)),
        };
        let mut last = 0;
        for file in files {
            let name = file.map_err(fault)?.file_name();
            let below = name
                .to_str()
                .and_then(|name| name.strip_suffix(".jsonl"))
                .and_then(|name| highest_below(name, id));
            last = last.max(below.unwrap_or(0));
        }
        Ok(last)
    }

    /// Where the session of this id is, or would be, kept.
    pub fn transcript_of(&self, id: &str) -> Option<PathBuf> {
        is_id(id).then(|| self.transcript(id))
    }

    /// Reads on in a transcript, at most some megabytes of it; what isn't a whole line stays for the next time. Nothing, if
    /// there is no such file: nothing was said yet. It may block.
    ///
    /// # Errors
    /// [`Error`] if the id can name no file, or the system refuses. A line that is no message is passed over: `from` may
    /// lie within one.
    pub fn read_from(&self, id: &str, from: u64) -> Result<Part, Error> {
        let path = self
            .transcript_of(id)
            .ok_or_else(|| Error::BadId(id.to_owned()))?;
        let fault = |error| Error::io(&path, error);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let nothing = Part {
                    reset: from > 0,
                    ..Part::default()
                };
                return Ok(nothing);
            }
            Err(error) => return Err(fault(error)),
        };
        let reset = from > file.metadata().map_err(fault)?.len();
        let from = if reset { 0 } else { from };
        file.seek(SeekFrom::Start(from)).map_err(fault)?;
        let mut part = Part {
            from,
            next: from,
            reset,
            ..Part::default()
        };
        let mut reader = BufReader::new(file.take(PART));
        let (mut decoder, mut line) = (Decoder::default(), Vec::new());
        loop {
            line.clear();
            let count = reader.read_until(b'\n', &mut line).map_err(fault)?;
            let Some(content) = line.strip_suffix(b"\n") else {
                // A line that is longer than a part can't be shown; it isn't stuck at either.
                if part.next == from && count as u64 == PART {
                    part.next = from.saturating_add(PART);
                }
                return Ok(part);
            };
            part.next = part.next.saturating_add(count as u64);
            if let Ok(Line::Message(message)) = decoder.line(content) {
                part.messages.push(Arc::new(message));
            }
        }
    }
}

/// The highest number on the way from a session down to this one; `None`: it isn't below it.
fn highest_below(name: &str, id: &str) -> Option<u32> {
    let (mut name, mut highest) = (name, None);
    while name != id {
        let (above, number) = split_child_session_id(name)?;
        highest = highest.max(Some(number));
        name = above;
    }
    highest
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::tests::said;

    #[test]
    fn os_11_what_a_run_says_is_kept_beside_its_session_and_is_no_session_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().to_owned());
        assert_eq!(store.last_below("a").unwrap(), 0);
        for (id, number) in [("a-sr-3", 1), ("a-sr-3-sr-12", 2), ("ab-sr-40", 3)] {
            let mut writer = store.create_below(id, "/p", 1).unwrap();
            writer.save(&[said(number)], true, 1).unwrap();
            writer.save(&[said(number + 10)], true, 1).unwrap();
            assert_eq!(writer.path(), folder.path().join(format!("{id}.jsonl")));
        }
        assert_eq!(store.last_below("a").unwrap(), 12);
        assert_eq!(store.last_below("a-sr-3").unwrap(), 12);
        assert_eq!(store.last_below("ab").unwrap(), 40);
        assert!(store.list().unwrap().is_empty());
        assert!(!folder.path().join("a-sr-3.lock").exists());
        for bad in ["a", "a-sr-", "../a-sr-1"] {
            assert!(store.create_below(bad, "/p", 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn omp_14_a_transcript_is_read_on_from_any_byte() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().to_owned());
        let ids = |part: &Part| -> Vec<u64> { part.messages.iter().map(|it| it.id.0).collect() };
        let none = store.read_from("a-sr-1", 7).unwrap();
        assert!(none.messages.is_empty() && none.reset && none.next == 0);
        let mut writer = store.create_below("a-sr-1", "/p", 1).unwrap();
        writer.save(&[said(1)], true, 1).unwrap();
        let first = store.read_from("a-sr-1", 0).unwrap();
        assert_eq!((ids(&first), first.from, first.reset), (vec![1], 0, false));
        writer.save(&[said(2), said(3)], true, 1).unwrap();
        let next = store.read_from("a-sr-1", first.next).unwrap();
        assert_eq!((ids(&next), next.from), (vec![2, 3], first.next));
        let end = store.read_from("a-sr-1", next.next).unwrap();
        assert_eq!((ids(&end), end.next), (vec![], next.next));
        // Within a line: what is left of it is passed over.
        let within = store.read_from("a-sr-1", first.next + 1).unwrap();
        assert_eq!((ids(&within), within.next), (vec![3], next.next));
        let beyond = store.read_from("a-sr-1", next.next + 1).unwrap();
        assert_eq!(
            (ids(&beyond), beyond.from, beyond.reset),
            (vec![1, 2, 3], 0, true)
        );
        assert!(store.read_from("../a", 0).is_err());
    }
}
