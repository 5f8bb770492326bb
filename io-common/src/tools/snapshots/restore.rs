//! Putting files back.

use std::collections::BTreeSet;
use std::path::Path;

use turnwire::vocab::{Restoration, Text};

use super::log::{Entry, Was};
use super::{Kept, Now};
use crate::tools::files::path::{Place, Root};
use crate::tools::files::{diff, write};
use crate::tools::outcome::reason;

/// What becomes of a file.
enum Change {
    /// It has its old content again.
    Write { bytes: Vec<u8>, mode: u32 },
    /// It wasn't there.
    Remove,
}

/// Puts files back as they were before a message. Nothing is touched when it fails.
pub(super) fn run(
    kept: &mut Kept,
    root: &Root,
    to: u64,
    message: u64,
    dry_run: bool,
) -> Result<Restoration, String> {
    let log = kept.log()?;
    if to <= log.before {
        return Err("what files were before that isn't kept any more".into());
    }
    let from = log.entries.iter().position(|entry| entry.message >= to);
    let later = log.entries.get(from.unwrap_or(log.entries.len())..);
    let mut seen = BTreeSet::new();
    // The oldest line of each file counts.
    let first: Vec<Entry> = later
        .unwrap_or_default()
        .iter()
        .filter(|entry| seen.insert(entry.path.clone()))
        .cloned()
        .collect();
    let mut done = Restoration::default();
    let mut changes = Vec::new();
    for entry in first {
        match plan(kept, root, &entry) {
            Plan::Change(place, now, change) => changes.push((place, now, change)),
            Plan::Same => {}
            Plan::Skip => done.skipped.push(shown(root, &entry)),
        }
    }
    if !dry_run && !changes.is_empty() {
        let mut entries = Vec::with_capacity(changes.len());
        for (place, now, _) in &changes {
            entries.push(kept.entry(&place.real, now, message)?);
        }
        kept.append(entries)?;
    }
    for (place, now, change) in changes {
        let name = Text::from(&*place.shown);
        if !dry_run && let Err(why) = apply(&place, &now, &change) {
            tracing::warn!("a file could not be put back: {why}");
            done.skipped.push(name);
            continue;
        }
        let (before, after): (&[u8], &[u8]) = match (&now, &change) {
            (Now::Content { bytes, .. }, Change::Write { bytes: old, .. }) => (bytes, old),
            (Now::Content { bytes, .. }, Change::Remove) => (bytes, b""),
            (Now::Missing | Now::Unkept, Change::Write { bytes: old, .. }) => (b"", old),
            (Now::Missing | Now::Unkept, Change::Remove) => (b"", b""),
        };
        let lines = diff::change(&place.shown, Some(before), after, 0);
        done.added = done.added.saturating_add(lines.added);
        done.removed = done.removed.saturating_add(lines.removed);
        match change {
            Change::Write { .. } => done.restored.push(name),
            Change::Remove => done.deleted.push(name),
        }
    }
    Ok(done)
}

/// What is to be done for one file.
enum Plan {
    Change(Place, Now, Change),
    /// It is as it was.
    Same,
    /// It can't be put back.
    Skip,
}

fn plan(kept: &Kept, root: &Root, entry: &Entry) -> Plan {
    // The tools may use it still, and no link lies on the way to it now.
    let Ok(place) = root.resolve(&entry.path) else {
        return Plan::Skip;
    };
    if place.real != Path::new(&entry.path) {
        return Plan::Skip;
    }
    let Ok(now) = Now::of(&place.real) else {
        return Plan::Skip;
    };
    match (&entry.was, &now) {
        (Was::Unkept, _) | (_, Now::Unkept) => Plan::Skip,
        (Was::Missing, Now::Missing) => Plan::Same,
        (Was::Missing, Now::Content { .. }) => Plan::Change(place, now, Change::Remove),
        (Was::Content { sha, mode, .. }, now_is) => {
            let Some(bytes) = kept.content(sha) else {
                return Plan::Skip;
            };
            match now_is {
                Now::Content { bytes: same, .. } if *same == bytes => Plan::Same,
                Now::Content { .. } | Now::Missing | Now::Unkept => {
                    let mode = *mode;
                    Plan::Change(place, now, Change::Write { bytes, mode })
                }
            }
        }
    }
}

/// Does it, in one step: a reader, or a crash, sees the file as it was or as it is, whole.
fn apply(place: &Place, now: &Now, change: &Change) -> Result<(), String> {
    match change {
        Change::Remove => std::fs::remove_file(&place.real)
            .map_err(|error| format!("{}: {}", place.shown, reason(&error))),
        Change::Write { bytes, mode } => {
            // A file that is there keeps its permissions.
            let meta = match now {
                Now::Content { .. } => std::fs::symlink_metadata(&place.real).ok(),
                Now::Missing | Now::Unkept => None,
            };
            write::replace(place, meta.as_ref(), bytes).map_err(|failed| failed.0)?;
            if meta.is_none() {
                set_mode(&place.real, *mode);
            }
            Ok(())
        }
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(mode);
    if std::fs::set_permissions(path, permissions).is_err() {
        tracing::debug!("the permissions of a file that was put back could not be set");
    }
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) {}

fn shown(root: &Root, entry: &Entry) -> Text {
    root.show(Path::new(&entry.path)).into()
}
