//! The file tools: plain synchronous functions, to be called from a thread that may block.

pub(crate) mod diff;
pub(crate) mod edit;
pub(crate) mod list;
pub(crate) mod path;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod write;

use super::outcome::{Failed, reason};

/// Largest file, in bytes, that is held whole in memory: to be edited, or as the old side of a diff.
pub(crate) const WHOLE_FILE: u64 = 16 * 1024 * 1024;

/// How much of a file's front is looked at to tell text from binary.
const SNIFF: usize = 8 * 1024;

/// Whether these first bytes of a file are no text.
pub(crate) fn looks_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes.get(..SNIFF).unwrap_or(bytes)).is_some()
}

/// The text for an I/O error at a path.
pub(crate) fn io_failed(doing: &str, shown: &str, error: &std::io::Error) -> Failed {
    if error.kind() == std::io::ErrorKind::NotFound {
        return Failed(format!("no such file or folder: {shown}"));
    }
    Failed(format!("can't {doing} {shown}: {}", reason(error)))
}

/// Metadata of what is there; a clear error if it is no regular file.
pub(crate) fn regular(place: &path::Place) -> Result<std::fs::Metadata, Failed> {
    let shown = &place.shown;
    let meta = std::fs::metadata(&place.real).map_err(|e| io_failed("read", shown, &e))?;
    if meta.is_dir() {
        return Err(Failed(format!("{shown} is a folder, not a file")));
    }
    // A pipe or a device could block, or never end.
    if !meta.is_file() {
        return Err(Failed(format!("{shown} is not a regular file")));
    }
    Ok(meta)
}
