//! Uploads of attachments, and which of them a prompt may refer to.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::import::check_manifest;
use super::super::rules::Key;
use super::super::wire::{Committed, Import, ImportRejected, ImportResult, ImportStatus};
use super::{Here, Watcher};
use crate::frame::Place;
use crate::protocol::observer::{At, Ids, Known, Notes, Sides, at_member, hash};

/// The most attachments that are remembered.
const MOST: usize = 65_536;

/// An upload, as the host began it.
#[derive(Clone, Copy, Debug)]
struct Begun {
    prompt: u64,
    /// The number of the next chunk.
    next: u64,
}

/// The uploads.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// What the host has begun and not ended.
    begun: Ids<Begun>,
    /// What the host has named at all.
    named: Ids<()>,
    /// What the agent has accepted and not ended.
    accepted: Ids<Place>,
    /// Attachments that were committed: for which prompt.
    committed: BTreeMap<u64, u64>,
    unsure: bool,
}

impl Uploads {
    pub(super) fn blur(&mut self) {
        self.begun.blur();
        self.named.blur();
        self.accepted.blur();
        self.unsure = true;
    }

    /// What is wrong with a prompt of this id that refers to these attachments.
    pub(super) fn refers(&self, uuid: Option<&str>, refs: &[u64]) -> Option<&'static str> {
        if self.unsure || (refs.is_empty() && self.committed.is_empty()) {
            return None;
        }
        let prompt = hash(uuid.unwrap_or_default());
        let foreign = |id: &u64| self.committed.get(id) != Some(&prompt);
        if refs.iter().any(foreign) {
            return Some("an attachment wasn't committed for this prompt");
        }
        let left = |(id, owner): (&u64, &u64)| *owner == prompt && !refs.contains(id);
        let left_out = self.committed.iter().any(left);
        left_out.then_some("an attachment that was committed for it is left out")
    }

    /// The process has left by itself.
    pub(super) fn leaves(&self, notes: &mut Notes) {
        let open: Vec<Place> = self.accepted.iter().copied().collect();
        if let Some(place) = open.iter().min_by_key(|place| place.line)
            && !self.unsure
        {
            let at = At::line().with(
                crate::protocol::observer::Dir::Agent,
                Some(*place),
                "where it was accepted",
            );
            let message = String::from("an upload has no last record");
            notes.add(Key::ImportUnended.rule(), at, message);
        }
    }
}

impl Watcher {
    /// A step of an upload.
    pub(super) fn host_imports(
        &mut self,
        import: &Import<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let Some(id) = import.upload_id().map(hash) else {
            return;
        };
        let uploads = &mut self.uploads;
        if uploads.named.known(id) != Known::Open {
            uploads.named.open(id, ());
        }
        match import {
            Import::Begin(begin) => {
                if uploads.begun.known(id) == Known::Never {
                    let prompt = hash(&begin.prompt_uuid);
                    uploads.begun.open(id, Begun { prompt, next: 0 });
                }
            }
            Import::Chunk(chunk) => {
                let known = uploads.begun.known(id);
                let message = match uploads.begun.get_mut(id) {
                    Some(begun) if begun.next == chunk.sequence => {
                        begun.next += 1;
                        None
                    }
                    Some(_) => Some("another chunk was next"),
                    None if known == Known::Unknown => None,
                    None => Some("the upload isn't open"),
                };
                if let Some(message) = message
                    && here.sides == Sides::Both
                {
                    let at = at_member(here.object, "sequence");
                    notes.add(Key::ChunkOrder.rule(), at, String::from(message));
                }
            }
            // What was committed is asked for until the agent has said what became of it.
            Import::Commit(_) | Import::Abort(_) | Import::Unknown(_) => {}
        }
    }

    /// How an upload stands.
    pub(super) fn import_result(
        &mut self,
        result: &ImportResult<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(&result.upload_id);
        let accepted = result.status == ImportStatus::Accepted;
        let committed = result.status == ImportStatus::Committed;
        let form = if result.status == ImportStatus::Rejected {
            Some("what is rejected has a record of its own")
        } else if result.terminal == accepted {
            Some("accepted ends nothing, and all else does")
        } else if committed != result.attachment.is_some() {
            Some("a manifest belongs to what was committed")
        } else if (accepted || committed) == result.reason.is_some() {
            Some("a reason belongs to what failed")
        } else {
            None
        };
        if let Some(message) = form {
            notes.add(Key::ImportForm.rule(), At::line(), String::from(message));
        }
        if let Some(Committed::Attachment(manifest)) = &result.attachment {
            if let Err(fault) = check_manifest(manifest) {
                let at = at_member(here.object, "attachment");
                notes.add(Key::Privacy.rule(), at, alloc::format!("{fault}"));
            }
            let prompt = self.uploads.begun.get_mut(id).map(|begun| begun.prompt);
            let prompt = prompt.or(result.prompt_uuid.as_deref().map(hash));
            if let Some(prompt) = prompt
                && self.uploads.committed.len() < MOST
            {
                let attachment = hash(&manifest.attachment_id);
                self.uploads.committed.insert(attachment, prompt);
            }
        }
        let uploads = &mut self.uploads;
        let known = uploads.accepted.known(id);
        let once = match (known, accepted) {
            (Known::Open, true) => Some("it was accepted before"),
            (Known::Closed, _) => Some("it has ended"),
            // One that fails at once is never accepted.
            (Known::Open, false) | (Known::Never | Known::Unknown, _) => None,
        };
        if accepted {
            uploads.accepted.open(id, here.place);
        } else {
            uploads.accepted.close(id);
        }
        let begun = uploads.begun.known(id);
        if !accepted {
            uploads.begun.close(id);
        }
        let mut say = |key: Key, message: &str| {
            let at = at_member(here.object, "upload_id");
            notes.add(key.rule(), at, String::from(message));
        };
        if let Some(message) = once {
            say(Key::ImportOnce, message);
        } else if begun == Known::Never && here.sides == Sides::Both && !uploads.unsure {
            say(
                Key::ImportUncaused,
                "the host has begun no upload of this id",
            );
        }
    }

    /// An operation that no upload took.
    pub(super) fn import_rejected(
        &mut self,
        rejected: &ImportRejected<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        if rejected.terminal || rejected.status != ImportStatus::Rejected {
            let message = String::from("a refusal is rejected, and ends nothing");
            notes.add(Key::ImportForm.rule(), At::line(), message);
        }
        let known = self.uploads.named.known(hash(&rejected.upload_id));
        if known == Known::Never && here.sides == Sides::Both && !self.uploads.unsure {
            let at = at_member(here.object, "upload_id");
            let message = String::from("the host has named no upload of this id");
            notes.add(Key::ImportUncaused.rule(), at, message);
        }
    }
}
