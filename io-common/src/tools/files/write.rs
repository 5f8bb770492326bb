//! `write_file`, and the atomic write that `edit_file` shares.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::input;
use super::super::outcome::{Failed, FileChange, Finished};
use super::path::{Place, Root};
use super::{WHOLE_FILE, diff, io_failed, regular};

/// Writes the whole file; `max` bounds the diff.
pub(crate) fn run(root: &Root, args: &input::WriteFile, max: usize) -> Result<Finished, Failed> {
    let place = root.resolve(&args.path)?;
    let new = args.content.as_bytes();
    let (meta, old) = match regular(&place) {
        Ok(meta) => (Some(meta.clone()), Some(old_side(&place, &meta)?)),
        // Also when a parent is missing: the write makes it.
        Err(_) if is_missing(&place.real) => (None, None),
        Err(failed) => return Err(failed),
    };
    replace(&place, meta.as_ref(), new)?;
    let shown = &place.shown;
    let change = match &old {
        None => diff::change(shown, None, new, max),
        Some(Some(old)) if old == new => return Ok(Finished::ok(format!("wrote {shown} (+0 −0)"))),
        Some(Some(old)) => diff::change(shown, Some(old), new, max),
        // Too large to compare: said like a binary file.
        Some(None) => diff::change(shown, Some(b"\0"), new, max),
    };
    Ok(changed("wrote", change))
}

/// The result of a call that changed a file.
pub(super) fn changed(verb: &str, change: FileChange) -> Finished {
    let mut finished = Finished::ok(format!(
        "{verb} {} (+{} −{})",
        change.path, change.added, change.removed
    ));
    finished.change = Some(change);
    finished
}

fn is_missing(path: &Path) -> bool {
    matches!(path.symlink_metadata(), Err(e) if e.kind() == ErrorKind::NotFound)
}

/// What is there now, unless it is too large to be held.
fn old_side(place: &Place, meta: &Metadata) -> Result<Option<Vec<u8>>, Failed> {
    if meta.len() > WHOLE_FILE {
        return Ok(None);
    }
    std::fs::read(&place.real)
        .map(Some)
        .map_err(|e| io_failed("read", &place.shown, &e))
}

/// Puts `content` in the file's place in one step: a reader sees the old file or the new one, never a part.
///
/// Permissions stay (and the owner, where we may set it); links to the file by other names don't follow.
pub(crate) fn replace(place: &Place, old: Option<&Metadata>, content: &[u8]) -> Result<(), Failed> {
    let failed = |e: std::io::Error| {
        if e.kind() == ErrorKind::NotFound {
            return Failed(format!("can't write {}: its folder is gone", place.shown));
        }
        io_failed("write", &place.shown, &e)
    };
    let parent = place
        .real
        .parent()
        .ok_or_else(|| Failed(format!("{} is a folder, not a file", place.shown)))?;
    if old.is_some() {
        // A rename would also replace a file that is protected against writing.
        OpenOptions::new()
            .write(true)
            .open(&place.real)
            .map_err(failed)?;
    } else {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut temp = Temp::create(parent).map_err(failed)?;
    temp.file.write_all(content).map_err(failed)?;
    if let Some(old) = old {
        keep_owner(&temp.file, old);
        temp.file
            .set_permissions(old.permissions())
            .map_err(failed)?;
    }
    temp.file.sync_all().map_err(failed)?;
    std::fs::rename(&temp.path, &place.real).map_err(failed)?;
    temp.renamed = true;
    Ok(())
}

#[cfg(unix)]
fn keep_owner(file: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let differs = file
        .metadata()
        .is_ok_and(|m| (m.uid(), m.gid()) != (old.uid(), old.gid()));
    if differs && fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        tracing::debug!("the owner of a replaced file could not be kept");
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// A new file beside the target, removed again unless it was renamed.
struct Temp {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temp {
    fn create(folder: &Path) -> std::io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Names left behind by a process that was killed are passed over.
        for _ in 0..1000 {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".turnwire-{}-{n}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(Self {
                        path,
                        file,
                        renamed: false,
                    });
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.renamed && std::fs::remove_file(&self.path).is_err() {
            tracing::debug!("a temporary file could not be removed");
        }
    }
}
