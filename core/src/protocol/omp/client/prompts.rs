//! Prompts from their line to their end. A user message names no prompt, so it is told by its text; what ends a prompt
//! is its turn, its `prompt_result`, or a failure with its id.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use super::books::Wire;
use crate::vocab::*;

/// Ended prompts whose results may still come.
const MOST_DONE: usize = 1_024;

/// A prompt that was written and isn't applied.
#[derive(Debug)]
pub(super) struct Known {
    pub id: PromptId,
    pub command: CommandId,
    pub wire: Wire,
    /// Its text blocks, joined.
    pub text: String,
    /// The lane that was asked for; `None`: a turn of its own, now.
    pub lane: Option<Lane>,
    /// It cancels the turn before it.
    pub preempts: bool,
    pub stage: Stage,
}

/// How far a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its response hasn't come.
    Sent,
    /// It was accepted, and the next frame may take that back.
    Held,
    /// It was admitted.
    Admitted,
}

/// A prompt of the open turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applied {
    pub id: PromptId,
    pub wire: Wire,
}

/// The prompts that aren't applied.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    waiting: Vec<Known>,
    /// Prompts that ended: what comes for them is no news.
    done: VecDeque<Wire>,
    bytes: usize,
}

impl Prompts {
    pub(super) fn push(&mut self, known: Known) {
        self.bytes = self.bytes.saturating_add(known.text.len());
        self.waiting.push(known);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of their texts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Known> {
        self.waiting.iter()
    }

    /// Those that were admitted and wait in a queue, in their order.
    pub(super) fn queued(&self) -> Vec<PromptId> {
        let admitted = self.waiting.iter().filter(|it| it.stage == Stage::Admitted);
        admitted.map(|known| known.id).collect()
    }

    /// An abort has hit what ran, or nothing: those that were admitted to a turn of their own, and got none, wait among
    /// the others from now on, until the host sets a run going.
    pub(super) fn hold_fresh(&mut self) {
        for known in &mut self.waiting {
            if known.stage == Stage::Admitted {
                known.lane.get_or_insert(Lane::FollowUp);
            }
        }
    }

    /// Whether one was written that begins a turn of its own.
    pub(super) fn has_fresh(&self) -> bool {
        self.waiting.iter().any(|known| known.lane.is_none())
    }

    /// The oldest one that begins a turn of its own; one that was accepted before one that wasn't yet.
    pub(super) fn fresh(&self) -> Option<PromptId> {
        let fresh = self.waiting.iter().filter(|known| known.lane.is_none());
        let oldest = fresh.min_by_key(|known| known.stage == Stage::Sent);
        oldest.map(|known| known.id)
    }

    pub(super) fn get(&mut self, id: PromptId) -> Option<&mut Known> {
        self.waiting.iter_mut().find(|known| known.id == id)
    }

    pub(super) fn of(&self, wire: Wire) -> Option<PromptId> {
        let known = self.waiting.iter().find(|known| known.wire == wire);
        known.map(|known| known.id)
    }

    /// The prompt whose acceptance may be taken back by the next frame.
    pub(super) fn held(&self) -> Option<&Known> {
        self.waiting.iter().find(|known| known.stage == Stage::Held)
    }

    /// The prompt that a user message of this text is: one that was accepted before one that wasn't yet; fresh ones
    /// first, then steers, then follow-ups.
    pub(super) fn told(&self, text: &str) -> Option<PromptId> {
        let rank = |known: &&Known| {
            let lane = match known.lane {
                None | Some(Lane::Next | Lane::Later) => 0,
                Some(Lane::Steer) => 1,
                Some(Lane::FollowUp) => 2,
            };
            (known.stage == Stage::Sent, lane)
        };
        let same = self.waiting.iter().filter(|known| known.text == text);
        same.min_by_key(rank).map(|known| known.id)
    }

    pub(super) fn take(&mut self, id: PromptId) -> Option<Known> {
        let at = self.waiting.iter().position(|known| known.id == id)?;
        let known = self.waiting.remove(at);
        self.bytes = self.bytes.saturating_sub(known.text.len());
        Some(known)
    }

    /// It has ended.
    pub(super) fn done(&mut self, wire: Wire) {
        if self.done.len() >= MOST_DONE {
            self.done.pop_front();
        }
        self.done.push_back(wire);
    }

    /// Whether it has ended.
    pub(super) fn is_done(&self, wire: Wire) -> bool {
        self.done.contains(&wire)
    }
}
