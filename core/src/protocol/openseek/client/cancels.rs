//! The book of cancels.
//!
//! A cancel has three ends, and but one of them is told: it interrupts the turn or the compaction that runs; or it takes out
//! the oldest prompt that waits; or it does nothing. What it met isn't known where it was written: a turn that is seen to
//! run may be over, and one that isn't seen may have begun. If it took a prompt out, then all that is told of those behind
//! it is taken for the one before, and it is the last whose end is missing. So each cancel stays in the book until a turn or
//! a compaction ends `interrupted` (each such end takes one out of it), or no prompt waits at all. When an engine is silent
//! for a while, and nothing runs, then each has taken out one.
//!
//! The book may hold too many, where two cancels met one turn; then a slow engine's next prompt is given up too early, and
//! its turn is one that nobody asked for.

use alloc::collections::VecDeque;

use super::Out;
use super::prompts::Prompts;
use crate::vocab::{Answer, CancelWhy, CommandId, Hit};

/// Cancels whose ends aren't known.
#[derive(Debug, Default)]
pub(super) struct Cancels {
    open: VecDeque<Cancel>,
    /// When they are taken to have taken out what they could.
    due: Option<u64>,
}

#[derive(Debug)]
struct Cancel {
    /// Who waits to be told what it met.
    command: Option<CommandId>,
    why: CancelWhy,
}

/// What waits is all that a reply says of what a cancel leaves.
pub(super) fn hits(command: CommandId, hit: Hit, prompts: &Prompts) -> (CommandId, Answer) {
    let queued = prompts.ids();
    (command, Answer::Cancelling { hit, queued })
}

impl Cancels {
    /// One was written. Where no prompt waits it can take none out.
    pub(super) fn written(
        &mut self,
        command: Option<CommandId>,
        why: CancelWhy,
        prompts: &Prompts,
    ) {
        if prompts.next().is_some() {
            self.wait_again();
            self.open.push_back(Cancel { command, why });
        }
    }

    /// They met this. Gives why the first of those came that nobody knew of.
    pub(super) fn meet(&mut self, hit: Hit, prompts: &Prompts, out: &mut Out) -> Option<CancelWhy> {
        let mut first = None;
        for cancel in &mut self.open {
            if let Some(command) = cancel.command.take() {
                let (command, answer) = hits(command, hit, prompts);
                out.reply(command, crate::vocab::Seen::Inferred, Ok(answer));
                first.get_or_insert_with(|| cancel.why.clone());
            }
        }
        first
    }

    /// What one met has ended.
    pub(super) fn ended(&mut self) -> Option<CancelWhy> {
        self.open.pop_front().map(|cancel| cancel.why)
    }

    /// Forgets those that took nothing out. `runs`: something runs that they may meet.
    pub(super) fn settle(&mut self, runs: bool, wait_us: u64, prompts: &Prompts, out: &mut Out) {
        if prompts.next().is_none() {
            if !runs {
                self.meet(Hit::Nothing, prompts, out);
            }
            self.open.retain(|cancel| cancel.command.is_some());
        }
        if runs || self.open.is_empty() {
            self.due = None;
        } else {
            let now_us = out.now().mono_us;
            self.due
                .get_or_insert_with(|| now_us.saturating_add(wait_us));
        }
    }

    /// What they wait for may still come: the silence begins anew.
    pub(super) fn wait_again(&mut self) {
        self.due = None;
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// The time has come: how many there are.
    pub(super) fn take(&mut self, prompts: &Prompts, out: &mut Out) -> usize {
        self.due = None;
        self.meet(Hit::Nothing, prompts, out);
        core::mem::take(&mut self.open).len()
    }
}
