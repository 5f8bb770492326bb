//! Who owes whom an answer.
//!
//! Lines of the two directions cross: a command that is recorded before a line of the agent may be read after it. So
//! the ledger doesn't say which answer belongs to which command; it counts, and what it reports holds under every
//! reading. Only the line that a missing answer is pinned on is a guess.

use alloc::collections::VecDeque;

use crate::frame::Place;

/// The most commands whose places are kept.
const MOST: usize = 4096;

/// A line that must get a `protocol_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Must {
    Bad,
    Unknown,
    Mode,
    Bytes,
    Approve,
}

/// A command that may get one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    User,
    /// An index of the modes.
    Mode(usize),
    Reload,
}

/// What a `protocol_error` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// One of these lines. `alone`: nothing else can have caused it.
    Must { what: Must, alone: bool },
    /// One of the commands that may get one.
    May,
    /// Nothing.
    None,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    must: VecDeque<(Must, Place)>,
    /// For pinning only.
    may: VecDeque<(May, Place)>,
    users: u64,
    dones: u64,
    /// Of these, `refused`: each has a `protocol_error` of its own.
    refused: u64,
    /// Commands for each mode that aren't acknowledged.
    modes: [u64; 3],
    /// Reloads that weren't answered by a `refrozen`.
    reloads: u64,
    /// Answers to approvals that were open when they were sent.
    approves: u64,
    /// Lines that may be refused or not: nobody knows.
    slack: u64,
    /// Approvals of this turn that were declined as the host said: a crash declines too, and then the host's answer may
    /// come too late.
    declined: u64,
    /// Commands that may be left without an answer.
    excused: u64,
    /// `protocol_error` lines beyond those that must be.
    errors: u64,
    /// Lines of the agent that couldn't be read.
    lost: u64,
}

impl Ledger {
    pub(super) fn must(&mut self, what: Must, place: Place) {
        if self.must.len() < MOST {
            self.must.push_back((what, place));
        } else {
            self.slack += 1;
        }
    }

    /// A command; `excused` if it may never be read.
    pub(super) fn may(&mut self, what: May, place: Place, excused: bool) {
        match what {
            May::User => self.users += 1,
            May::Mode(index) => {
                if let Some(mode) = self.modes.get_mut(index) {
                    *mode += 1;
                }
            }
            May::Reload => self.reloads += 1,
        }
        if excused {
            self.excused += 1;
        } else if self.may.len() < MOST {
            self.may.push_back((what, place));
        }
    }

    /// A line that the agent may refuse or take.
    pub(super) fn slack(&mut self) {
        self.slack += 1;
    }

    /// An answer to an approval that is open, as far as the host can know.
    pub(super) fn approve(&mut self) {
        self.approves += 1;
    }

    /// An approval was settled as one such answer said, so that one wasn't refused.
    pub(super) fn approve_taken(&mut self) {
        self.approves = self.approves.saturating_sub(1);
    }

    /// The same of an answer that declined.
    pub(super) fn decline_taken(&mut self) {
        self.approve_taken();
        self.declined += 1;
    }

    /// A turn is over; `failed`: with `error`.
    pub(super) fn turn_over(&mut self, failed: bool) {
        let declined = core::mem::take(&mut self.declined);
        if failed {
            self.slack += declined;
        }
    }

    /// A line of the agent that couldn't be read.
    pub(super) fn lost(&mut self) {
        self.lost += 1;
    }

    fn waiting(&self) -> u64 {
        self.users.saturating_sub(self.dones)
    }

    /// What may have a `protocol_error` beside users that got nothing else.
    fn others(&self) -> u64 {
        let modes: u64 = self.modes.iter().sum();
        self.refused + modes + self.reloads + self.approves + self.declined + self.slack
    }

    /// How many users may still be waiting for a `done`. A `protocol_error` may be the first half of a refusal, if
    /// the line in hand is its `done`.
    pub(super) fn owed(&self, refused: bool) -> u64 {
        let alone = self
            .errors
            .saturating_sub(self.others() + u64::from(refused));
        self.waiting().saturating_sub(alone)
    }

    pub(super) fn error(&mut self, running: bool) -> Cause {
        if let Some((what, _)) = self.must.pop_front() {
            let alone = self.must.is_empty() && self.waiting() + self.others() <= self.errors;
            return Cause::Must { what, alone };
        }
        self.errors += 1;
        // The user whose turn runs has been admitted.
        let mut skip = running;
        let at = self.may.iter().position(|(what, _)| match what {
            May::User => !core::mem::take(&mut skip),
            May::Mode(_) | May::Reload => true,
        });
        at.map(|index| self.may.remove(index));
        if self.errors > self.waiting() + self.others() {
            self.slack += 1;
            return Cause::None;
        }
        Cause::May
    }

    fn unpin(&mut self, what: May) {
        if let Some(index) = self.may.iter().position(|(kind, _)| *kind == what) {
            self.may.remove(index);
        }
    }

    /// A `done`. False: nobody waits for one.
    pub(super) fn done(&mut self, refused: bool) -> bool {
        if self.owed(refused) == 0 {
            return false;
        }
        self.dones += 1;
        self.refused += u64::from(refused);
        self.unpin(May::User);
        true
    }

    /// A turn that nobody asked for runs; its `done` is no second finding.
    pub(super) fn phantom(&mut self) {
        self.users += 1;
    }

    /// A mode was acknowledged. False: nobody asked for it.
    pub(super) fn mode(&mut self, index: usize) -> bool {
        self.unpin(May::Mode(index));
        match self.modes.get_mut(index) {
            Some(waiting) if *waiting > 0 => {
                *waiting -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// A `refrozen` between turns.
    pub(super) fn reloaded(&mut self) {
        if self.reloads > 0 {
            self.reloads -= 1;
            self.unpin(May::Reload);
        }
    }

    /// Lines that had to be refused and weren't, in order.
    pub(super) fn unrefused(&self) -> impl Iterator<Item = (Must, Place)> {
        self.must.iter().filter(|_| self.lost == 0).copied()
    }

    /// Commands that got no answer at all, as far as is certain. `running`: a turn is open, whose user isn't counted.
    pub(super) fn unanswered(&self, running: bool) -> impl Iterator<Item = (May, Place)> {
        let waiting = self.waiting() + self.modes.iter().sum::<u64>() + self.reloads;
        let answered = self.errors.saturating_sub(self.refused)
            + self.excused
            + self.lost
            + u64::from(running);
        let count = usize::try_from(waiting.saturating_sub(answered)).unwrap_or(usize::MAX);
        let mut skip = running;
        let pinned = self
            .may
            .iter()
            .filter(move |(what, _)| !(*what == May::User && core::mem::take(&mut skip)));
        pinned.take(count).copied()
    }
}
