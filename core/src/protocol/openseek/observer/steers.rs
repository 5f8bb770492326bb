//! What the host says into a turn: each word ends once.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::{Content, SteerKind};
use super::pinned;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{Dir, Notes, Severity, at_member, hash};
use crate::protocol::wire::Hole;

/// The most that are remembered.
const MOST: usize = 4_096;

#[derive(Debug)]
struct Steer {
    place: Place,
    kind: SteerKind,
    content: u64,
    excused: bool,
}

#[derive(Debug, Default)]
pub(super) struct Steers {
    waiting: VecDeque<Steer>,
    /// Commands that couldn't be taken; which, no line says.
    refused: usize,
    /// A line of the host couldn't be read for certain, or there were too many.
    pub(super) unsure: bool,
}

/// What tells two contents apart.
fn mark(content: &Content<'_>) -> u64 {
    match content.as_text() {
        Some(text) => hash(text),
        None => {
            let mut json = Vec::new();
            content.put(&mut json);
            hash(&String::from_utf8_lossy(&json))
        }
    }
}

impl Steers {
    pub(super) fn sent(
        &mut self,
        kind: SteerKind,
        content: &Content<'_>,
        place: Place,
        excused: bool,
    ) {
        if self.waiting.len() >= MOST {
            self.unsure = true;
            return;
        }
        self.waiting.push_back(Steer {
            place,
            kind,
            content: mark(content),
            excused,
        });
    }

    fn found(&self, kind: SteerKind, content: &Content<'_>) -> Option<usize> {
        let mark = mark(content);
        let mut all = self.waiting.iter();
        all.position(|steer| steer.kind == kind && steer.content == mark)
    }

    pub(super) fn applied(
        &mut self,
        kind: SteerKind,
        content: &Content<'_>,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let Some(index) = self.found(kind, content) else {
            if both && !self.unsure {
                let message = String::from("the host has sent no steer of this kind and text");
                notes.add(
                    Key::SteerUnsent.rule(),
                    at_member(object, "content"),
                    message,
                );
            }
            return;
        };
        let older = self
            .waiting
            .iter()
            .take(index)
            // A command may have been refused, which is told when no turn is open.
            .find(|steer| steer.kind == kind && kind == SteerKind::Prompt);
        if let Some(older) = older
            && both
            && !self.unsure
        {
            let at = at_member(object, "content");
            let at = at.with(Dir::Host, Some(older.place), "the older one");
            let message = String::from("an older steer of this kind still waits");
            notes.add(Key::SteerOrder.rule(), at, message);
        }
        self.waiting.remove(index);
    }

    pub(super) fn dropped(
        &mut self,
        content: &Content<'_>,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if let Some(index) = self.found(SteerKind::Prompt, content) {
            self.waiting.remove(index);
        } else if both && !self.unsure {
            let message = String::from("the host has sent no prompt of this text into a turn");
            notes.add(
                Key::DropUnsent.rule(),
                at_member(object, "content"),
                message,
            );
        }
    }

    /// Something couldn't be stored, or was too much: a command may have been it.
    pub(super) fn unstored(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// What never ended.
    pub(super) fn owed(&self, severity: Severity, notes: &mut Notes) {
        let mut refused = self.refused;
        let owed = self.waiting.iter().find(|steer| {
            let refusable = steer.kind == SteerKind::Command && refused > 0;
            refused -= usize::from(refusable && !steer.excused);
            !steer.excused && !refusable
        });
        if let Some(steer) = owed
            && !self.unsure
        {
            let message = "the steer was neither applied nor dropped";
            pinned(Key::SteerOwed, steer.place, severity, message, notes);
        }
    }
}
