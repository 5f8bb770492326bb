//! Turns: one at a time, begun by a prompt or a goal, ended once.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::pinned;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Notes, Severity, at_member};

/// The most prompts whose places are kept.
const MOST: usize = 4_096;

/// How a turn ended, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// `agent_finished`
    Finished,
    /// `context_yield`
    Yielded,
    /// `max_steps_exhausted`
    MaxSteps,
    /// Any other.
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The first line of the turn that is open.
    open: Option<Place>,
    /// Its last step.
    step: i32,
    /// The end of the turn before.
    ended: Option<(End, Place)>,
    /// The same, of a turn that had begun: a prompt that was refused says nothing of how work goes.
    worked: Option<(End, Place)>,
    /// A line couldn't be read: nothing of this turn's order is judged.
    blurred: bool,
    /// Turns that began.
    turns: u64,
    /// What may begin one: prompts, goals that go on, a run.
    allowed: u64,
    /// Of these, goals that go on.
    goals: u64,
    /// Prompts that must begin one.
    prompts: VecDeque<Place>,
    /// How many there were.
    sent: u64,
    /// Cancels: each may have taken one out.
    cancels: u64,
    /// A line of the host couldn't be read for certain.
    unsure: bool,
}

impl Turn {
    /// Nothing is certain until the turn's end.
    pub(super) fn blur(&mut self) {
        self.blurred = true;
    }

    /// A line of the host may have been a prompt.
    pub(super) fn unheard(&mut self) {
        self.unsure = true;
    }

    /// The first line of the turn that is open, unless nobody knows.
    pub(super) fn running(&self) -> Option<Place> {
        self.open.filter(|_| !self.blurred)
    }

    /// How the last turn ended that had begun.
    pub(super) fn last(&self) -> Option<(End, Place)> {
        self.worked
    }

    pub(super) fn is_blurred(&self) -> bool {
        self.blurred
    }

    /// Whether any turn began.
    pub(super) fn any(&self) -> bool {
        self.turns > 0
    }

    /// A prompt of the host. `excused`: it may never be read.
    pub(super) fn prompt(&mut self, place: Place, excused: bool) {
        self.allowed += 1;
        if excused {
            return;
        }
        self.sent += 1;
        self.prompts.push_back(place);
        // The oldest have begun their turns long since, or nobody could say which is owed.
        if self.prompts.len() > MOST {
            self.prompts.pop_front();
        }
    }

    pub(super) fn cancel(&mut self) {
        self.cancels += 1;
    }

    /// A run begins its one turn by itself.
    pub(super) fn by_itself(&mut self) {
        self.allowed += 1;
    }

    /// A goal goes on.
    pub(super) fn by_goal(&mut self) {
        self.allowed += 1;
        self.goals += 1;
    }

    fn is_asked(&self, both: bool) -> bool {
        !both || self.unsure || self.turns <= self.allowed
    }

    /// A line that only a turn has, before its first step.
    pub(super) fn begins(&mut self, place: Place, both: bool, notes: &mut Notes) {
        if self.open.is_some() {
            return;
        }
        self.open = Some(place);
        self.step = 0;
        self.turns += 1;
        if !self.is_asked(both) {
            let message = String::from("no prompt waits for a turn");
            notes.add(Key::TurnUnasked.rule(), At::line(), message);
            self.allowed = self.turns;
        }
    }

    pub(super) fn step(
        &mut self,
        number: i32,
        place: Place,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if self.blurred {
            self.open.get_or_insert(place);
            self.step = number;
            return;
        }
        if let Some(first) = self.open
            && number == 1
            && self.step > 0
        {
            let at = at_member(object, "step").with(Dir::Agent, Some(first), "the turn before");
            let message = String::from("a turn begins, and the one before has not ended");
            notes.add(Key::TwoTurns.rule(), at, message);
            self.open = None;
        }
        self.begins(place, both, notes);
        let expected = self.step.saturating_add(1);
        if number != expected {
            let message = format!("step {number}, where {expected} is expected");
            notes.add(Key::StepCount.rule(), at_member(object, "step"), message);
        }
        self.step = number;
    }

    pub(super) fn ends(&mut self, end: End, place: Place, both: bool, notes: &mut Notes) {
        notes.tally.turns += 1;
        if self.open.is_none() && !self.blurred {
            self.bare(end, both, notes);
        }
        let refused = self.open.is_none() && !self.blurred && end == End::Failed;
        self.open = None;
        self.step = 0;
        self.blurred = false;
        self.ended = Some((end, place));
        if !refused {
            self.worked = self.ended;
        }
    }

    /// An end where no turn is open: of a turn without steps, or a second one.
    fn bare(&mut self, end: End, both: bool, notes: &mut Notes) {
        self.turns += 1;
        let needs_steps = matches!(end, End::Finished | End::MaxSteps);
        let severity = if !self.is_asked(both) {
            self.allowed = self.turns;
            Severity::Error
        } else if !needs_steps {
            return;
        } else if both || self.ended.is_none() {
            Severity::Warning
        } else {
            Severity::Error
        };
        let before = self.ended.map(|(_, place)| place);
        let at = At::line()
            .at_most(severity)
            .with(Dir::Agent, before, "the end before");
        let message = String::from("a turn ends, and none is open");
        notes.add(Key::EndTwice.rule(), at, message);
    }

    /// The end of the engine's lines.
    pub(super) fn finish(&self, severity: Severity, notes: &mut Notes) {
        if let Some(first) = self.running() {
            let at =
                At::line()
                    .at_most(severity)
                    .with(Dir::Agent, Some(first), "the turn's first line");
            let message = String::from("the stream ends within a turn");
            notes.add(Key::DiedInTurn.rule(), at, message);
        }
    }

    /// Prompts that never began a turn.
    pub(super) fn owed(&self, severity: Severity, notes: &mut Notes) {
        let taken = self.turns.saturating_sub(self.goals) + self.cancels;
        let owed = usize::try_from(self.sent.saturating_sub(taken)).unwrap_or(usize::MAX);
        if self.unsure || owed == 0 {
            return;
        }
        let first = self.prompts.len().saturating_sub(owed);
        if let Some(place) = self.prompts.get(first) {
            let message = "the prompt never began a turn";
            pinned(Key::PromptUnanswered, *place, severity, message, notes);
        }
    }
}
