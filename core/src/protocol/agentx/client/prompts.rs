//! Prompts from their line to their end. Each has an id on the wire, and the agent needn't name it: then prompts are
//! taken in the order in which an agent takes them.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::*;

/// Ended prompts of which something may still be said.
const MOST_DONE: usize = 1_024;

/// A prompt that was written and isn't applied.
#[derive(Debug)]
pub(super) struct Known {
    pub id: PromptId,
    pub uuid: String,
    pub content: Vec<Block>,
    pub bytes: usize,
    /// 0: at once, 1: next, 2: later.
    pub rank: u8,
    /// It was said to wait.
    pub queued: bool,
    /// The agent said that it has it, so that it will say when it begins.
    pub told: bool,
    /// A command of the agent's own, which needs no model.
    pub local: bool,
}

/// A prompt of the open turn.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub id: PromptId,
    pub uuid: String,
}

/// The prompts that aren't applied.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    waiting: Vec<Known>,
    /// Prompts that ended: what comes for them is no news.
    done: VecDeque<String>,
    bytes: usize,
}

impl Prompts {
    pub(super) fn push(&mut self, known: Known) {
        self.bytes = self.bytes.saturating_add(known.bytes);
        self.waiting.push(known);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of what they say.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All that wait, in the order in which they were written.
    pub(super) fn ids(&self) -> Vec<PromptId> {
        self.waiting.iter().map(|known| known.id).collect()
    }

    /// The prompt that an agent takes next.
    pub(super) fn next(&self) -> Option<&Known> {
        self.waiting.iter().min_by_key(|known| known.rank)
    }

    /// The prompt that an agent refuses without a word of which one: it says of those that it takes that it has them,
    /// in the order in which they were written.
    pub(super) fn refused(&self) -> Option<&Known> {
        let untold = self.waiting.iter().find(|known| !known.told);
        untold.or_else(|| self.next())
    }

    pub(super) fn get(&mut self, id: PromptId) -> Option<&mut Known> {
        self.waiting.iter_mut().find(|known| known.id == id)
    }

    pub(super) fn of(&self, uuid: &str) -> Option<PromptId> {
        let known = self.waiting.iter().find(|known| known.uuid == uuid);
        known.map(|known| known.id)
    }

    pub(super) fn take(&mut self, id: PromptId) -> Option<Known> {
        let at = self.waiting.iter().position(|known| known.id == id)?;
        let known = self.waiting.remove(at);
        self.bytes = self.bytes.saturating_sub(known.bytes);
        Some(known)
    }

    /// It has ended.
    pub(super) fn done(&mut self, uuid: String) {
        if self.done.len() >= MOST_DONE {
            self.done.pop_front();
        }
        self.done.push_back(uuid);
    }

    /// Whether it has ended.
    pub(super) fn is_done(&self, uuid: &str) -> bool {
        self.done.iter().any(|done| done == uuid)
    }
}

/// The ids of prompts on the wire, the last of them: files are set back to where they were at one.
#[derive(Debug, Default)]
pub(super) struct Uuids {
    known: VecDeque<(PromptId, String)>,
}

impl Uuids {
    pub(super) fn put(&mut self, id: PromptId, uuid: &str) {
        if self.known.len() >= MOST_DONE {
            self.known.pop_front();
        }
        self.known.push_back((id, uuid.into()));
    }

    pub(super) fn get(&self, id: PromptId) -> Option<&str> {
        let found = self.known.iter().rev().find(|(known, _)| *known == id);
        found.map(|(_, uuid)| &**uuid)
    }
}
