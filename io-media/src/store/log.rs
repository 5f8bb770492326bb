//! The log: which attachments there are, one JSON object a line, only ever added to.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use turnwire::vocab::{MediaKind, Stored, Text};
use turnwire_io::disk;

use super::{BLOB, Error, Kept, hex};
use crate::Format;

/// The file's name.
pub(super) const NAME: &str = "attachments.jsonl";
/// The largest log that is read, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    /// The host's id of the attachment.
    id: std::borrow::Cow<'a, str>,
    /// `None`: it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is: Option<Is>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Is {
    prompt: String,
    name: String,
    mime: String,
    size: u64,
    sha256: String,
}

/// The log of a folder.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    /// Bytes of whole lines.
    length: u64,
}

impl Log {
    /// Opens it, cuts off a line that a crash left without its end, and says what is kept.
    pub(super) fn open(folder: &Path) -> Result<(Log, Vec<Kept>), Error> {
        let path = folder.join(NAME);
        let mut log = Log {
            path,
            file: None,
            length: 0,
        };
        let mut bytes = Vec::new();
        let read = File::open(&log.path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((log, Vec::new())),
            Err(error) => return Err(Error::new(&log.path, error)),
        }
        if bytes.len() as u64 > MOST_BYTES {
            return Err(Error::new(&log.path, "it is larger than 256 MiB"));
        }
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        log.length = whole as u64;
        let mut kept = BTreeMap::new();
        let lines = bytes.get(..whole).unwrap_or_default();
        for (index, line) in lines.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let damaged =
                |why: &str| Error::new(&log.path, format!("damaged: {why}, line {}", index + 1));
            let line: Line<'_> =
                serde_json::from_slice(line).map_err(|_| damaged("it is no record"))?;
            match line.is {
                None => {
                    kept.remove(&*line.id);
                }
                Some(is) => {
                    let one = is
                        .kept(&line.id)
                        .ok_or_else(|| damaged("a digest or a type"))?;
                    kept.insert(line.id.into_owned(), one);
                }
            }
        }
        Ok((log, kept.into_values().collect()))
    }

    pub(super) fn keep(&mut self, kept: &Kept) -> io::Result<()> {
        let stored = &kept.stored;
        self.add(&Line {
            id: (&*stored.id).into(),
            is: Some(Is {
                prompt: (*kept.prompt).to_owned(),
                name: (*stored.name).to_owned(),
                mime: (*stored.mime).to_owned(),
                size: stored.size,
                sha256: hex(&stored.sha256),
            }),
        })
    }

    pub(super) fn forget(&mut self, attachment: &str) -> io::Result<()> {
        self.add(&Line {
            id: attachment.into(),
            is: None,
        })
    }

    fn add(&mut self, line: &Line<'_>) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        let length = self.length;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let folder = self.path.parent().unwrap_or(Path::new("."));
                disk::create_folder(folder)?;
                let mut options = OpenOptions::new();
                options.create(true).truncate(false).write(true);
                let file = disk::private(&mut options).open(&self.path)?;
                disk::sync_folder(folder)?;
                self.file.insert(file)
            }
        };
        // What a write that failed left behind is written over.
        file.set_len(length)?;
        file.seek(SeekFrom::Start(length))?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

impl Is {
    fn kept(self, id: &str) -> Option<Kept> {
        let mut sha256 = [0; 32];
        if self.sha256.len() != 64 {
            return None;
        }
        let (pairs, _) = self.sha256.as_bytes().as_chunks::<2>();
        for (byte, pair) in sha256.iter_mut().zip(pairs) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        let kind = match Format::of_mime(&self.mime)? {
            Format::Png | Format::Jpeg => MediaKind::Image,
            Format::Pdf => MediaKind::Document,
        };
        let text = |text: &str| Text::from(text);
        Some(Kept {
            prompt: text(&self.prompt),
            kind,
            stored: Arc::new(Stored {
                blob: text(&format!("{BLOB}{}", hex(&sha256))),
                id: text(id),
                name: text(&self.name),
                mime: text(&self.mime),
                size: self.size,
                sha256,
            }),
        })
    }
}
