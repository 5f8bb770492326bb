//! Goals: turns that begin by themselves, and how many of them.

use alloc::format;
use alloc::string::String;

use super::super::GOAL_TURNS;
use super::super::rules::Key;
use super::turn::{End, Turn};
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Notes, at_member};

#[derive(Debug, Default)]
pub(super) struct Goals {
    /// Where the goal was cleared, or blocked; `None`: it stands, or nobody knows.
    cleared: Option<Place>,
    blocked: Option<Place>,
    /// Of the last `goal_continue`.
    remaining: Option<i32>,
    /// Goals that the host set with `auto`.
    armed: u64,
    /// Budgets that began.
    budgets: u64,
    /// Goals that went on after the host's last line.
    after_end: u64,
    /// A line of the engine couldn't be read.
    blurred: bool,
    /// A line of the host couldn't be read for certain.
    unsure: bool,
}

/// The most that can remain once one has begun.
const FIRST: i32 = GOAL_TURNS as i32 - 1;

impl Goals {
    pub(super) fn blur(&mut self) {
        self.blurred = true;
        self.cleared = None;
        self.blocked = None;
    }

    pub(super) fn unheard(&mut self) {
        self.unsure = true;
    }

    /// The host sets a goal with `auto`.
    pub(super) fn arm(&mut self) {
        self.armed += 1;
    }

    pub(super) fn updated(
        &mut self,
        goal: Option<&str>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        self.cleared = goal.is_none().then_some(place);
        self.blocked = None;
        if goal.is_some_and(|goal| goal.trim().is_empty()) {
            let message = String::from("the goal is blank");
            notes.add(Key::BlankGoalSet.rule(), at_member(object, "goal"), message);
        }
    }

    pub(super) fn blocked(&mut self, place: Place) {
        self.blocked = Some(place);
    }

    pub(super) fn unblocked(&mut self) {
        self.blocked = None;
    }

    /// A goal goes on. `both`: the host's lines are known; `ended`: they have ended.
    pub(super) fn goes_on(
        &mut self,
        remaining: i32,
        turn: &Turn,
        (both, ended): (bool, bool),
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if let Some(first) = turn.running() {
            let at = At::line().with(Dir::Agent, Some(first), "the turn that is open");
            let message = String::from("a turn is open");
            notes.add(Key::GoalInTurn.rule(), at, message);
        } else if !turn.is_blurred() && !self.blurred {
            let before = match turn.last() {
                Some((End::Finished | End::Yielded, _)) => None,
                Some((End::MaxSteps | End::Failed, place)) => {
                    Some((Some(place), "the last turn didn't go well"))
                }
                None => Some((None, "no turn has ended")),
            };
            if let Some((place, message)) = before {
                let at = At::line().with(Dir::Agent, place, "its end");
                notes.add(Key::GoalAfterFailure.rule(), at, String::from(message));
            }
        }
        if let Some(place) = self.cleared.or(self.blocked) {
            let at = At::line().with(Dir::Agent, Some(place), "where that was said");
            let message = String::from("there is no goal, or it is blocked");
            notes.add(Key::GoalNone.rule(), at, message);
        }
        self.count(remaining, both, object, notes);
        if ended && both {
            self.after_end += 1;
            if self.after_end > 1 {
                let message = String::from("the host's lines have ended");
                notes.add(Key::GoalAfterEnd.rule(), At::line(), message);
            }
        }
        self.remaining = Some(remaining);
        self.blurred = false;
    }

    fn count(&mut self, remaining: i32, both: bool, object: &Object<'_, '_>, notes: &mut Notes) {
        let at = at_member(object, "remaining");
        let next = self.remaining.and_then(|before| before.checked_sub(1));
        if next == Some(remaining) && remaining >= 0 {
            return;
        }
        if remaining == FIRST {
            self.budgets += 1;
            if both && !self.unsure && self.budgets > self.armed {
                let message = String::from("the host has set no goal with auto for this budget");
                notes.add(Key::GoalUnarmed.rule(), at, message);
            }
        } else if !self.blurred {
            let message = match self.remaining {
                Some(before) => format!("{remaining} remain, and {before} did before"),
                None => format!("{remaining} remain of a budget that begins with {FIRST}"),
            };
            notes.add(Key::GoalCount.rule(), at, message);
        }
    }

    pub(super) fn exhausted(&mut self, turns: i32, object: &Object<'_, '_>, notes: &mut Notes) {
        if i64::from(turns) != i64::from(GOAL_TURNS) {
            let message = format!("{turns} turns, and a budget has {GOAL_TURNS}");
            notes.add(Key::Exhausted.rule(), at_member(object, "turns"), message);
        } else if self.remaining != Some(0) && !self.blurred {
            let message = match self.remaining {
                Some(left) => format!("{left} turns are left"),
                None => String::from("no budget was begun, or it was used up before"),
            };
            notes.add(Key::Exhausted.rule(), At::line(), message);
        }
        self.remaining = None;
    }
}
