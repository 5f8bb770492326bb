//! The book of prompts: what was written, and what waits here until nothing else does.
//!
//! No line names a prompt. The oldest one that was written is the one whose turn begins; a steer is told by its text, of
//! two equal ones the older first.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::*;

/// Turns that may begin before a steer is told of: lines of an engine that is ahead may be under way.
const MOST_TURNS: u32 = 16;

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Begins a turn of its own.
    Prompt,
    /// Goes into the running turn. `start`: if that comes too late, it begins one.
    Steer { start: bool },
    /// Goes into the history.
    Context,
}

/// A prompt that was taken and isn't applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub id: PromptId,
    pub tag: Option<Text>,
    pub kind: Kind,
    pub content: Vec<Block>,
    /// Its text, as it is written.
    pub text: String,
    /// The turn that it begins is cancelled as soon as it has begun.
    pub doomed: Option<CancelWhy>,
    /// Turns that began since it was written.
    pub turns: u32,
}

impl Known {
    /// Reads a prompt as this wire can carry it: text alone.
    pub(super) fn new(prompt: Prompt, kind: Kind) -> Result<Self, Refusal> {
        if prompt.is_blank() {
            return Err(Refusal::Empty);
        }
        let mut text = String::new();
        for (index, block) in prompt.content.iter().enumerate() {
            let Block::Text(piece) = block else {
                return Err(Refusal::Unsupported("content other than text"));
            };
            if index > 0 {
                text.push('\n');
            }
            text.push_str(piece);
        }
        Ok(Known {
            id: prompt.id,
            tag: prompt.tag,
            kind,
            content: prompt.content,
            text,
            doomed: None,
            turns: 0,
        })
    }
}

/// The prompts that aren't applied.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    /// Written, in that order.
    written: VecDeque<Known>,
    /// Not written: they wait until nothing else does.
    later: VecDeque<Known>,
    bytes: usize,
}

impl Prompts {
    pub(super) fn len(&self) -> usize {
        self.written.len() + self.later.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of their texts.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn written(&mut self, known: Known) {
        self.bytes += known.text.len();
        self.written.push_back(known);
    }

    pub(super) fn wait(&mut self, known: Known) {
        self.bytes += known.text.len();
        self.later.push_back(known);
    }

    fn took(&mut self, known: Option<Known>) -> Option<Known> {
        self.bytes -= known.as_ref().map_or(0, |known| known.text.len());
        known
    }

    /// The next of those that wait here.
    pub(super) fn pop_later(&mut self) -> Option<Known> {
        let known = self.later.pop_front();
        self.took(known)
    }

    /// Takes one that waits here.
    pub(super) fn withdraw(&mut self, id: PromptId) -> bool {
        let at = self.later.iter().position(|known| known.id == id);
        let known = at.and_then(|at| self.later.remove(at));
        self.took(known).is_some()
    }

    /// Takes all that wait here.
    pub(super) fn take_later(&mut self) -> Vec<PromptId> {
        let mut ids = Vec::new();
        while let Some(known) = self.pop_later() {
            ids.push(known.id);
        }
        ids
    }

    /// The prompt whose turn begins next.
    pub(super) fn next(&self) -> Option<&Known> {
        self.written.iter().find(|known| known.kind == Kind::Prompt)
    }

    fn take_written(&mut self, is: impl Fn(&Known) -> bool) -> Option<Known> {
        let at = self.written.iter().position(is);
        let known = at.and_then(|at| self.written.remove(at));
        self.took(known)
    }

    /// Takes it.
    pub(super) fn take_next(&mut self) -> Option<Known> {
        self.take_written(|known| known.kind == Kind::Prompt)
    }

    /// Takes the oldest steer of this text.
    pub(super) fn take_steer(&mut self, text: &str) -> Option<Known> {
        let is = |known: &Known| matches!(known.kind, Kind::Steer { .. }) && known.text == text;
        self.take_written(is)
    }

    /// Takes the oldest context of this text.
    pub(super) fn take_context(&mut self, text: &str) -> Option<Known> {
        self.take_written(|known| known.kind == Kind::Context && known.text == text)
    }

    /// Takes the oldest context.
    pub(super) fn take_any_context(&mut self) -> Option<Known> {
        self.take_written(|known| known.kind == Kind::Context)
    }

    /// A turn begins. Gives what should have been told of long since.
    pub(super) fn turn_begins(&mut self) -> Vec<Known> {
        for known in &mut self.written {
            known.turns = known.turns.saturating_add(1);
        }
        let mut lost = Vec::new();
        let is = |known: &Known| known.kind != Kind::Prompt && known.turns > MOST_TURNS;
        while let Some(known) = self.take_written(is) {
            lost.push(known);
        }
        lost
    }

    /// Steers that wait for the running turn.
    pub(super) fn steers(&self) -> Vec<PromptId> {
        let steers = self.written.iter();
        let steers = steers.filter(|known| matches!(known.kind, Kind::Steer { .. }));
        steers.map(|known| known.id).collect()
    }

    /// The turns of all that wait are cancelled as they begin.
    pub(super) fn doom(&mut self, why: &CancelWhy) {
        for known in &mut self.written {
            if known.kind == Kind::Prompt {
                known.doomed.get_or_insert_with(|| why.clone());
            }
        }
    }

    /// Those that will have turns of their own, in their order.
    pub(super) fn ids(&self) -> Vec<PromptId> {
        let all = self.written.iter().chain(&self.later);
        let prompts = all.filter(|known| known.kind == Kind::Prompt);
        prompts.map(|known| known.id).collect()
    }

    /// Everything.
    pub(super) fn take_all(&mut self) -> Vec<PromptId> {
        let all = core::mem::take(self);
        let all = all.written.into_iter().chain(all.later);
        all.map(|known| known.id).collect()
    }
}
