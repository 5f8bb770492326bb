//! Cancel, in one exact order: questions closed, the reply, effects stopped, the open message and its request, the
//! retry, the calls, a note, the step, the turn, its prompts, the queue's fate. A crash takes the same way with other
//! ends.

use alloc::{boxed::Box, format, vec::Vec};

use super::{
    Session,
    compact::Then,
    hooks::{Chain, Slot},
    phase::{Attempt, Check, Phase, Stream, Turn},
    tools::Stop,
};
use crate::vocab::{
    Answer, AskClose, CancelWhat, CancelWhy, CommandId, CompactionFault, DropWhy, End, Failure,
    FailureKind, Hit, Origin, QueueFate, Refusal, RequestOutcome, Role, SkipWhy,
    Stop as MessageStop, Text, What,
};

/// Why a turn stops before its end.
pub(super) enum Stopping {
    /// Somebody wants it to.
    Cancel(CancelWhy),
    /// The driver caught a crash.
    Crash(Text),
}

impl Stopping {
    fn close(&self) -> AskClose {
        match self {
            Stopping::Cancel(_) => AskClose::Cancelled,
            Stopping::Crash(detail) => AskClose::Fault(detail.clone()),
        }
    }

    fn calls(&self) -> Stop {
        match self {
            Stopping::Cancel(_) => Stop::CANCELLED,
            Stopping::Crash(detail) => Stop::crashed(detail.clone()),
        }
    }

    fn end(&self) -> End {
        match self {
            Stopping::Cancel(why) => End::Cancelled(why.clone()),
            Stopping::Crash(detail) => End::Failed(crash(detail)),
        }
    }

    fn compaction(&self) -> CompactionFault {
        match self {
            Stopping::Cancel(_) => CompactionFault::Cancelled,
            Stopping::Crash(detail) => CompactionFault::Failed(crash(detail)),
        }
    }

    fn outcome(&self) -> RequestOutcome {
        match self {
            Stopping::Cancel(_) => RequestOutcome::Cancelled,
            Stopping::Crash(detail) => RequestOutcome::Failed(crash(detail)),
        }
    }
}

fn crash(detail: &str) -> Failure {
    let text = format!("the turn ended unexpectedly: {detail}").into();
    Failure {
        kind: FailureKind::Internal,
        status: None,
        retryable: false,
        text,
    }
}

impl Session {
    /// `Cancel`.
    pub(super) fn cancel(&mut self, command: CommandId, what: &CancelWhat, why: CancelWhy) {
        self.last_signal = match &why {
            CancelWhy::Signal(signal) => Some(*signal),
            CancelWhy::Host
            | CancelWhy::PeerGone
            | CancelWhy::Preempted(_)
            | CancelWhy::Denied(_)
            | CancelWhy::Switch
            | CancelWhy::Fault(_) => None,
        };
        let can_stop = self.phase.turn().is_some() && !self.phase.is_ending();
        let turned = match what {
            CancelWhat::Turn { .. } | CancelWhat::TurnElseNextQueued | CancelWhat::Everything => {
                Some(self.turn_away(can_stop))
            }
            CancelWhat::Retry
            | CancelWhat::Compaction
            | CancelWhat::Shell
            | CancelWhat::Job(_)
            | CancelWhat::Run(_) => None,
        };
        self.cancel_what(command, what, why, can_stop);
        if let Some(turned) = turned {
            if !can_stop {
                self.disarm_goal();
            }
            self.turned_away(turned, &Refusal::Cancelled);
        }
    }

    fn cancel_what(
        &mut self,
        command: CommandId,
        what: &CancelWhat,
        why: CancelWhy,
        can_stop: bool,
    ) {
        let by_hand = self.phase.is_compacting_by_hand();
        match what {
            CancelWhat::Turn { queue } if by_hand => self.cancel_compaction(command, *queue),
            CancelWhat::TurnElseNextQueued if by_hand => {
                self.cancel_compaction(command, QueueFate::Run);
            }
            CancelWhat::Everything if by_hand => {
                self.close_all_run_asks();
                self.skip_compaction(Some(command));
                self.stop_shells();
                self.cancel_jobs();
                self.drop_steers();
                self.drop_pending(DropWhy::Cancelled, u64::MAX);
            }
            CancelWhat::Turn { queue } if can_stop => {
                self.stop_turn(&Stopping::Cancel(why), *queue, Some(command))
            }
            CancelWhat::Turn { .. } => self.nothing_hit(command),
            CancelWhat::TurnElseNextQueued if can_stop => {
                self.stop_turn(&Stopping::Cancel(why), QueueFate::Run, Some(command));
            }
            CancelWhat::TurnElseNextQueued => {
                self.nothing_hit(command);
                if !self.phase.is_ending()
                    && let Some(prompt) = self.prompts.pop_oldest()
                {
                    self.say(What::PromptEnded {
                        prompt: prompt.id,
                        end: End::Withdrawn,
                    });
                }
            }
            CancelWhat::Everything if can_stop => {
                self.close_all_run_asks();
                self.compact_queued = None;
                self.stop_turn(&Stopping::Cancel(why), QueueFate::Drop, Some(command));
                self.stop_shells();
                self.cancel_jobs();
            }
            CancelWhat::Everything => {
                self.close_all_run_asks();
                self.compact_queued = None;
                self.nothing_hit(command);
                self.stop_shells();
                self.cancel_jobs();
                self.drop_steers();
                self.drop_pending(DropWhy::Cancelled, u64::MAX);
            }
            CancelWhat::Retry => self.cancel_retry(command),
            CancelWhat::Compaction => {
                if !self.skip_compaction(Some(command)) {
                    self.nothing_hit(command);
                }
            }
            CancelWhat::Shell if self.running_shells().is_empty() => self.nothing_hit(command),
            CancelWhat::Shell => {
                self.hit(command, Hit::Shell);
                self.stop_shells();
            }
            CancelWhat::Job(job) => self.cancel_job(command, *job),
            CancelWhat::Run(run) => self.cancel_run(command, *run, why),
        }
    }

    /// A compaction by hand is what there is to cancel.
    fn cancel_compaction(&mut self, command: CommandId, fate: QueueFate) {
        self.skip_compaction(Some(command));
        match fate {
            QueueFate::Run => self.held = false,
            QueueFate::Keep => self.held = self.closing.is_open(),
            QueueFate::Drop => {
                self.drop_pending(DropWhy::Cancelled, u64::MAX);
                self.held = false;
            }
        }
    }

    fn drop_steers(&mut self) {
        for prompt in self.prompts.take_steers() {
            self.unapplied(&prompt, End::Dropped(DropWhy::Cancelled));
        }
    }

    /// Says what the command hits.
    pub(super) fn hit(&mut self, command: CommandId, hit: Hit) {
        let queued = self.prompts.ids();
        self.answer(command, Answer::Cancelling { hit, queued });
    }

    fn nothing_hit(&mut self, command: CommandId) {
        self.hit(command, Hit::Nothing);
    }

    fn cancel_retry(&mut self, command: CommandId) {
        match core::mem::take(&mut self.phase) {
            Phase::Backoff(turn, backoff) => {
                self.hit(command, Hit::Retry);
                self.say(What::RetryEnded {
                    ok: false,
                    why: None,
                });
                self.finish_turn(turn, End::Failed(backoff.why), QueueFate::Run);
            }
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => {
                self.phase = other;
                self.nothing_hit(command);
            }
        }
    }

    /// Stops the turn, in every phase that has one whose end isn't decided, or a compaction by hand.
    pub(super) fn stop_turn(
        &mut self,
        stop: &Stopping,
        fate: QueueFate,
        command: Option<CommandId>,
    ) {
        let mut phase = core::mem::take(&mut self.phase);
        let runs = self.runs_of(phase.turn());
        let batch = match &mut phase {
            Phase::Tools(_, batch) => Some(&mut **batch),
            Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed => None,
        };
        self.close_asks(&stop.close(), batch, &runs);
        if let (Some(command), Some(turn)) = (command, phase.turn()) {
            self.hit(command, Hit::Turn(turn.id));
        }
        let mut turn = match phase {
            Phase::Idle | Phase::Closed => {
                self.phase = phase;
                return;
            }
            Phase::Admitting(turn, chain) | Phase::Checking(turn, Check { chain }) => {
                self.stop_chain(&chain);
                turn
            }
            Phase::Waiting(turn) | Phase::Holding(turn, _) => turn,
            Phase::Saving(turn, save) => {
                // The write is left to finish; nobody waits for it.
                self.effects.writes.stop(save.write.0);
                turn
            }
            Phase::Requesting(mut turn, attempt) => {
                self.stop_attempt(&mut turn, &attempt, None, stop);
                turn
            }
            Phase::Streaming(mut turn, attempt, stream) => {
                self.stop_attempt(&mut turn, &attempt, Some(&stream), stop);
                turn
            }
            Phase::Backoff(turn, _) => {
                self.say(What::RetryEnded {
                    ok: false,
                    why: None,
                });
                turn
            }
            Phase::Compacting(open) => match self.stop_compaction(open, stop.compaction()) {
                Then::Idle => {
                    self.phase = Phase::Idle;
                    return;
                }
                Then::Boundary(turn) => turn,
                Then::Attempt(turn, next) => {
                    if next.tried.retried {
                        self.say(What::RetryEnded {
                            ok: false,
                            why: None,
                        });
                    }
                    turn
                }
            },
            Phase::Tools(mut turn, mut batch) => {
                self.wind_up(&mut turn, &mut batch, &stop.calls());
                turn
            }
        };
        self.end_jobs_of(&mut turn);
        self.leave_note(&mut turn, stop);
        let end = stop.end();
        self.finish_turn(turn, end, fate);
    }

    fn stop_chain(&mut self, chain: &Chain) {
        if let Some(Slot::Local(hook)) = chain.slot {
            self.stop_hook(hook);
        }
    }

    fn stop_attempt(
        &mut self,
        turn: &mut Box<Turn>,
        attempt: &Attempt,
        stream: Option<&Stream>,
        stop: &Stopping,
    ) {
        self.stop_model(attempt.request);
        let (how, kept) = match stop {
            Stopping::Cancel(CancelWhy::Switch) => (MessageStop::Detached, true),
            Stopping::Cancel(_) => (MessageStop::Cancelled, true),
            Stopping::Crash(_) => (MessageStop::Failed, false),
        };
        let calls = match stream {
            Some(stream) => self.break_message(stream, how, kept),
            None => Vec::new(),
        };
        self.end_request(turn, attempt, stop.outcome());
        self.skip(calls, SkipWhy::Cancelled);
        if attempt.tried.retried {
            self.say(What::RetryEnded {
                ok: false,
                why: None,
            });
        }
    }

    fn leave_note(&mut self, turn: &mut Turn, stop: &Stopping) {
        if !self.config.policy.cancel_note || turn.open_step.is_none() {
            return;
        }
        match stop {
            // The next turn's prompt says enough.
            Stopping::Cancel(CancelWhy::Preempted(_)) => {}
            Stopping::Cancel(_) => {
                let note = self.own_message(
                    Role::User,
                    Origin::Interrupted,
                    "[interrupted by the user]",
                    None,
                );
                self.say(What::Message(note.clone()));
                self.remember(note);
            }
            Stopping::Crash(_) => {}
        }
    }

    /// The driver caught a crash.
    pub(super) fn fault(&mut self, detail: Text) {
        let by_hand = self.phase.is_compacting_by_hand();
        if by_hand || self.phase.turn().is_some() && !self.phase.is_ending() {
            self.stop_turn(&Stopping::Crash(detail), QueueFate::Run, None);
        } else {
            self.notice(
                crate::vocab::Level::Error,
                "fault",
                &format!("an unexpected failure: {detail}"),
            );
        }
    }
}
