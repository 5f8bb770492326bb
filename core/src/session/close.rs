//! Closing, and what a session does when it is idle: a compaction that waited, the next prompt, what a job or the goal
//! brings, `Closed`, or `Settled`.

use super::{Session, cancel::Stopping, phase::Phase, queue::prompts::Kind};
use crate::vocab::{
    Answer, CancelWhy, Cause, CloseWhy, CommandId, DropWhy, End, QueueFate, Refusal, What,
};

/// Whether the session is closing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Closing {
    #[default]
    Open,
    /// The turn and all pending prompts go on to their ends; `at_us` bounds that, if configured.
    Draining { at_us: Option<u64>, since_us: u64 },
    /// Everything was cancelled.
    Now { since_us: u64 },
}

impl Closing {
    pub fn is_open(self) -> bool {
        self == Closing::Open
    }

    pub fn is_draining(self) -> bool {
        matches!(self, Closing::Draining { .. })
    }

    pub fn is_now(self) -> bool {
        matches!(self, Closing::Now { .. })
    }

    /// Since when it drains.
    pub fn draining_since_us(self) -> Option<u64> {
        match self {
            Closing::Draining { since_us, .. } => Some(since_us),
            Closing::Open | Closing::Now { .. } => None,
        }
    }

    /// Since when it closes, either way.
    pub fn since_us(self) -> Option<u64> {
        match self {
            Closing::Draining { since_us, .. } | Closing::Now { since_us } => Some(since_us),
            Closing::Open => None,
        }
    }

    pub fn drain_at_us(self) -> Option<u64> {
        match self {
            Closing::Draining { at_us, .. } => at_us,
            Closing::Open | Closing::Now { .. } => None,
        }
    }
}

impl Session {
    /// `Close`.
    pub(super) fn close(&mut self, command: CommandId, drain: bool) {
        self.answer(command, Answer::Done);
        self.give_change_up();
        match (self.closing, drain) {
            (Closing::Open, true) => {
                let wait = self.config.timeouts.drain_us;
                self.closing = Closing::Draining {
                    at_us: wait.map(|wait| self.now.mono_us.saturating_add(wait)),
                    since_us: self.now.mono_us,
                };
                self.held = false;
                self.compact_queued = None;
            }
            (Closing::Draining { .. } | Closing::Now { .. }, true) => {}
            (Closing::Open | Closing::Draining { .. }, false) => self.close_now(),
            (Closing::Now { .. }, false) => {
                self.flush_over();
                self.beside_over();
            }
        }
    }

    /// Until when a session that drains waits for something that began at `since_us` and that only the disk can end:
    /// one that never answers must not hold a close for ever. `None`: it isn't draining.
    pub(super) fn patience_us(&self, since_us: u64) -> Option<u64> {
        let draining_us = self.closing.draining_since_us()?;
        Some(
            draining_us
                .max(since_us)
                .saturating_add(self.config.timeouts.flush_us),
        )
    }

    /// `Close{drain: false}`, or the drain timer.
    pub(super) fn close_now(&mut self) {
        self.closing = Closing::Now {
            since_us: self.now.mono_us,
        };
        let turned = self.turn_away(false);
        self.turned_away(turned, &Refusal::Closing);
        self.compact_queued = None;
        self.drop_pending(DropWhy::Closed, u64::MAX);
        self.end_shells();
        self.end_jobs();
        let by_hand = self.phase.is_compacting_by_hand();
        if by_hand || self.phase.turn().is_some() && !self.phase.is_ending() {
            self.stop_turn(
                &Stopping::Cancel(CancelWhy::PeerGone),
                QueueFate::Drop,
                None,
            );
        }
    }

    /// While idle, the first that applies: closed, the compaction that waits, the next pending prompt, drained, settled.
    pub(super) fn idle(&mut self) {
        while let Phase::Idle = self.phase {
            self.place_shells(false);
            self.goals_until(u64::MAX);
            if self.closing.is_now() {
                self.drop_pending(DropWhy::Closed, u64::MAX);
                self.strand_steers(DropWhy::Closed);
                self.save_beside();
                if self.beside.is_none() {
                    self.closed();
                }
                return;
            }
            if self.go_over() {
                return;
            }
            let waits = self.compact_queued.is_some()
                || self.prompts.promoted()
                || self.prompts.pending() > 0 && !self.held;
            if waits && !self.has_room() {
                return;
            }
            if let Some(queued) = self.compact_queued.take() {
                self.compact_now(queued.instructions.as_ref());
                continue;
            }
            let next = if self.held {
                self.prompts.pop_promoted()
            } else {
                let next = self.prompts.pop_pending();
                next.or_else(|| self.prompts.pop_promoted())
            };
            if let Some(prompt) = next {
                self.begin_turn(prompt, Cause::Queue);
                continue;
            }
            if self.prompts.pending() > 0 || !self.intake.is_empty() {
                return self.announce_jobs();
            }
            self.held = false;
            if self.prompts.jobs() > 0 && self.jobs_begin_turns() {
                if !self.has_room() {
                    return self.announce_jobs();
                }
                if let Some(prompt) = self.prompts.pop_job() {
                    self.begin_turn(prompt, Cause::Job);
                    continue;
                }
            }
            if self.goal_is_due() {
                // What becomes of the goal is being stored, and may be that it goes on no more.
                if !self.has_room() || self.goal_is_asked() {
                    return;
                }
                if let Some(prompt) = self.continue_goal() {
                    self.begin_turn(prompt, Cause::Goal);
                    continue;
                }
            }
            self.strand_steers(DropWhy::Idle);
            self.save_beside();
            if self.closing.is_draining() && self.owes_only_runs() && self.shells.is_empty() {
                self.end_jobs();
                if self.beside.is_none() {
                    self.closed();
                }
                return;
            }
            return self.settle();
        }
    }

    /// Steers that went with a pending prompt which is gone.
    fn strand_steers(&mut self, why: DropWhy) {
        while let Some(prompt) = self.prompts.pop_steer() {
            match prompt.kind {
                Kind::Context | Kind::Job => self.apply_idle(prompt),
                Kind::Prompt => self.unapplied(&prompt, End::Dropped(why)),
            }
        }
    }

    pub(super) fn settle(&mut self) {
        if !self.job_can_wake() && core::mem::take(&mut self.active) {
            self.say(What::Settled);
        }
    }

    fn closed(&mut self) {
        self.stop_telling();
        self.strand_steers(DropWhy::Closed);
        while let Some(owed) = self.owed.pop_front() {
            self.refuse(owed.command, Refusal::Closing);
        }
        self.reloading = None;
        self.restoring = None;
        self.change = None;
        self.settle();
        let why = match (self.closing, self.last_signal) {
            (Closing::Now { .. }, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Now { .. }, None) => CloseWhy::HostGone,
            (Closing::Open | Closing::Draining { .. }, _) => CloseWhy::Drained,
        };
        self.say(What::Closed { why });
        self.phase = Phase::Closed;
    }
}
