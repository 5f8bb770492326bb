//! How turns begin and end, and what trails their ends.

use super::prompts::{Kind, Known};
use super::turn::{Cut, Over, Turn, said};
use super::{ClientFace, Compacting, Out};
use crate::protocol::client::Closing;
use crate::protocol::openseek::wire::{Content, Part, SteerApplied, SteerDropped};
use crate::vocab::*;

/// What a cancelled turn is said to have ended for.
const INTERRUPTED: &str = "interrupted";

/// How a `session_error` begins that is about something which was to be added to the session, and one about a goal. Others
/// are nobody's.
const APPENDS: &str = "failed to append ";
const GOALS: &str = "failed to append goal";

impl ClientFace {
    /// Sees to it that a turn is open: the oldest prompt's, or one that nobody asked for.
    pub(super) fn enter(&mut self, out: &mut Out) {
        if self.turn.is_none() {
            let prompt = self.prompts.take_next();
            let cause = match prompt {
                Some(_) => Cause::Prompt,
                None => Cause::NotSaid,
            };
            self.begin(prompt, cause, out);
        }
    }

    fn begin(&mut self, prompt: Option<Known>, cause: Cause, out: &mut Out) {
        if self.compacting.is_some() {
            out.finding("a turn began within a compaction");
            let failure = Failure::new(FailureKind::Internal, "its end was never told");
            self.end_compaction(Err(CompactionFault::Failed(failure)), Seen::Inferred, out);
        }
        self.active = true;
        self.goal_due = false;
        for known in self.prompts.turn_begins() {
            self.lose(known, out);
        }
        let doomed = prompt.as_ref().and_then(|known| known.doomed.clone());
        let turn = Turn::begin(prompt, cause, self.config.reply_bytes, out);
        let hit = Hit::Turn(turn.id);
        self.turn = Some(turn);
        if let Some(why) = self.cancels.meet(hit, &self.prompts, out) {
            // It was written before.
            if let Some(turn) = &mut self.turn {
                turn.bound = true;
                turn.cancel.get_or_insert(why);
            }
        } else if let Some(why) = doomed {
            self.stop(&why, out);
        }
    }

    /// Nothing was ever told of it.
    fn lose(&mut self, known: Known, out: &mut Out) {
        out.finding("a steer was neither applied nor dropped");
        let end = End::Dropped(DropWhy::TurnOver);
        out.infer(What::PromptEnded {
            prompt: known.id,
            end,
        });
    }

    /// `goal_continue`: a turn begins for the goal.
    pub(super) fn goal_continues(&mut self, left: u32, out: &mut Out) {
        if let Some(goal) = &mut self.goal {
            goal.turns_left = Some(left);
        }
        if self.turn.is_none() {
            self.begin(None, Cause::Goal, out);
        }
        let text = match &self.goal {
            Some(goal) => goal.text.clone(),
            None => "".into(),
        };
        self.between_steps(Origin::GoalContinue { left }, &text, out);
    }

    /// Something that the engine says to the model before a step.
    pub(super) fn between_steps(&mut self, origin: Origin, text: &str, out: &mut Out) {
        self.enter(out);
        if let Some(turn) = &mut self.turn {
            turn.boundary(&mut self.calls, out);
        }
        self.told(origin, text, out);
    }

    /// A message of the engine's to the model.
    pub(super) fn told(&self, origin: Origin, text: &str, out: &mut Out) {
        let content = [alloc::sync::Arc::new(Block::Text(text.into()))].into();
        let id = out.ids.message();
        let made = crate::protocol::heard::message(id, Role::User, content, origin, out);
        out.say(What::Message(made.into()));
    }

    /// `steer_applied`
    pub(super) fn steer_applied(&mut self, line: &SteerApplied<'_>, out: &mut Out) {
        let text = text_of(&line.content);
        let known = match &*line.kind.0 {
            "notice" => return self.noticed(&text, out),
            "command" => self.prompts.take_context(&text),
            _ => self.prompts.take_steer(&text),
        };
        let Some(known) = known else {
            return out.finding("a steer was applied that nobody sent");
        };
        // A command alone begins no turn, and a steer is part of one.
        if known.kind != Kind::Context {
            self.enter(out);
        }
        match &mut self.turn {
            Some(turn) => turn.steer(known, &mut self.calls, out),
            None => {
                let (prompt, turn) = (known.id, None);
                out.say(What::PromptApplied { prompt, turn });
                said(prompt, known.content, Seen::Real, out);
                let end = End::Local;
                out.infer(What::PromptEnded { prompt, end });
            }
        }
    }

    /// A job has ended, and the model hears of it.
    fn noticed(&mut self, text: &str, out: &mut Out) {
        let origin = Origin::Job(JobId(0));
        if self.turn.is_some() {
            self.between_steps(origin, text, out);
        } else {
            self.told(origin, text, out);
        }
    }

    /// `steer_dropped`: one that may begin a turn of its own does so.
    pub(super) fn steer_dropped(&mut self, line: &SteerDropped<'_>, out: &mut Out) {
        let Some(mut known) = self.prompts.take_steer(&text_of(&line.content)) else {
            return out.finding("a steer was dropped that nobody sent");
        };
        let prompt = known.id;
        let starts = known.kind == Kind::Steer { start: true } && known.doomed.is_none();
        if starts && self.closing == Closing::Open {
            known.kind = Kind::Prompt;
            let lane = Lane::Next;
            out.infer(What::Queued { prompt, lane });
            return self.write_prompt(known, out);
        }
        let why = if known.turns > 0 || self.turn.is_some() {
            DropWhy::TurnOver
        } else {
            DropWhy::Idle
        };
        let end = End::Dropped(why);
        out.say(What::PromptEnded { prompt, end });
    }

    /// A terminal.
    pub(super) fn terminal(&mut self, end: End, answer: Option<Text>, out: &mut Out) {
        self.enter(out);
        if self.compacting.is_some() {
            out.finding("a turn ended within a compaction");
            let failure = Failure::new(FailureKind::Internal, "its end was never told");
            self.end_compaction(Err(CompactionFault::Failed(failure)), Seen::Inferred, out);
        }
        let Some(turn) = self.turn.take() else {
            return;
        };
        let end = match (&turn.cancel, end) {
            // A cancel that was replied to wins over an end that it has crossed.
            (Some(why), end) if turn.bound && !end.is_cancelled() => {
                let text = match end.failure() {
                    Some(failure) => failure.text.clone(),
                    None => "the turn had ended when the cancel came".into(),
                };
                out.infer(What::Notice {
                    level: Level::Info,
                    code: Some("cancel_crossed".into()),
                    text,
                });
                End::Cancelled(why.clone())
            }
            (Some(why), end) if end.is_cancelled() => End::Cancelled(why.clone()),
            (_, end) => end,
        };
        let goes_on = matches!(end, End::Finished { .. } | End::Yielded { .. });
        self.goal_due = goes_on && self.armed;
        self.runs.end_all(RunStatus::Incomplete, out);
        let cut = match &end {
            End::Cancelled(_) => Cut::Cancelled,
            End::Failed(failure) => Cut::Failed(failure.clone()),
            End::Finished { .. }
            | End::Local
            | End::Truncated(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Yielded { .. }
            | End::Aborted { .. }
            | End::Incomplete(_)
            | End::Dropped(_)
            | End::Withdrawn
            | End::NotSaid => Cut::Over,
        };
        if end.is_finished() {
            // What the engine hasn't heard in time waits for its own word now.
            for prompt in self.prompts.steers() {
                let lane = Lane::FollowUp;
                out.infer(What::Queued { prompt, lane });
            }
        }
        let left = self.goal.as_ref().and_then(|goal| goal.turns_left);
        let queued = self.prompts.ids();
        let pending = Pending {
            queued: u32::try_from(queued.len()).unwrap_or(u32::MAX),
            background: false,
            resumes: !queued.is_empty() || self.goal_due && left != Some(0),
        };
        let over = Over {
            end,
            seen: Seen::Real,
            answer,
            pending,
        };
        turn.end(over, &cut, &mut self.calls, out);
    }

    /// The end of a turn that says why it was given up.
    pub(super) fn aborted(&mut self, reason: &str, out: &mut Out) {
        let end = if reason == INTERRUPTED {
            self.enter(out);
            let cancel = self.cancels.ended();
            let why = self.signal.map_or(CancelWhy::Host, CancelWhy::Signal);
            End::Cancelled(cancel.unwrap_or(why))
        } else {
            let reason = reason.into();
            End::Aborted { reason }
        };
        self.terminal(end, None, out);
    }

    /// `agent_setup_failed`: the turn of the oldest prompt can't begin.
    pub(super) fn setup_failed(&mut self, error: &str, out: &mut Out) {
        let end = failed(FailureKind::Setup, error);
        if self.turn.is_some() {
            return self.terminal(end, None, out);
        }
        self.cancels.wait_again();
        match self.prompts.take_next() {
            Some(known) => {
                let prompt = known.id;
                out.say(What::PromptEnded { prompt, end });
            }
            None if self.taken_out > 0 => self.taken_out -= 1,
            None => out.finding("a turn couldn't begin, and no prompt waits for one"),
        }
    }

    /// The agent is gone in the middle of a turn.
    pub(super) fn end_turn_gone(&mut self, failure: &Failure, out: &mut Out) {
        let Some(turn) = self.turn.take() else {
            return;
        };
        let (end, cut) = match turn.cancel.clone() {
            Some(why) => (End::Cancelled(why), Cut::Cancelled),
            None => (End::Failed(failure.clone()), Cut::Gone(failure.clone())),
        };
        self.runs.end_all(RunStatus::Incomplete, out);
        let over = Over {
            end,
            seen: Seen::Inferred,
            answer: None,
            pending: Pending::default(),
        };
        turn.end(over, &cut, &mut self.calls, out);
    }

    pub(super) fn compaction_started(&mut self, auto: bool, span: (u64, u64), out: &mut Out) {
        if self.compacting.is_some() {
            out.finding("a compaction began within another");
            let failure = Failure::new(FailureKind::Internal, "its end was never told");
            self.end_compaction(Err(CompactionFault::Failed(failure)), Seen::Inferred, out);
        }
        if auto {
            self.enter(out);
        }
        if let Some(turn) = &mut self.turn {
            turn.between(&mut self.calls, out);
        }
        self.active = true;
        self.compacting = Some(Compacting { auto, span });
        let trigger = if auto { Trigger::Auto } else { Trigger::Manual };
        out.say(What::CompactionStarted {
            trigger,
            span: Some(span),
            tokens: None,
        });
    }

    /// `compaction_finished` and `_failed`, of the kind that is open; a failure of one that never began is told all the same.
    pub(super) fn compaction_over(
        &mut self,
        auto: bool,
        result: Result<Compacted, CompactionFault>,
        out: &mut Out,
    ) {
        if result == Err(CompactionFault::Cancelled) && self.turn.is_none() {
            self.cancels.meet(Hit::Compaction, &self.prompts, out);
            self.cancels.ended();
        }
        if self.compacting.is_none_or(|open| open.auto != auto) {
            if result.is_ok() {
                out.finding("a compaction ended, and none of its kind was open");
            }
            if self.compacting.is_some() {
                return;
            }
            if let (Some(_), Err(fault)) = (&self.turn, &result) {
                // One that was asked for, and refused: the turn goes on.
                let text = match fault {
                    CompactionFault::Cancelled => "cancelled".into(),
                    CompactionFault::Nothing(why) => why.clone(),
                    CompactionFault::Failed(failure) => failure.text.clone(),
                };
                return out.say(What::Notice {
                    level: Level::Error,
                    code: Some("compaction".into()),
                    text,
                });
            }
            if let Some(turn) = &mut self.turn {
                turn.between(&mut self.calls, out);
            }
            self.active = true;
            let trigger = if auto { Trigger::Auto } else { Trigger::Manual };
            out.infer(What::CompactionStarted {
                trigger,
                span: None,
                tokens: None,
            });
            out.say(What::CompactionEnded { result });
            return;
        }
        self.end_compaction(result, Seen::Real, out);
    }

    pub(super) fn end_compaction(
        &mut self,
        result: Result<Compacted, CompactionFault>,
        seen: Seen,
        out: &mut Out,
    ) {
        if self.compacting.take().is_some() {
            out.event(RunId::MAIN, seen, What::CompactionEnded { result });
        }
    }

    /// `session_error`: something couldn't be stored. Its words tell whether that was asked for.
    pub(super) fn unstored(&mut self, error: &str, out: &mut Out) {
        out.say(What::Notice {
            level: Level::Error,
            code: Some("store".into()),
            text: error.into(),
        });
        let failure = Failure::new(FailureKind::Store, error);
        if error.starts_with(GOALS) {
            self.goal_refused(Refusal::Failed(failure), out);
        } else if error.starts_with(APPENDS)
            && let Some(known) = self.prompts.take_any_context()
        {
            let (prompt, end) = (known.id, End::Failed(failure));
            out.infer(What::PromptEnded { prompt, end });
        }
    }
}

/// What is said, as text. Newer engines write parts.
fn text_of(content: &Content<'_>) -> alloc::string::String {
    if let Some(text) = content.as_text() {
        return text.into();
    }
    let parts = content.as_parts().unwrap_or_default().iter();
    let texts = parts.filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        Part::Image { .. } => None,
    });
    texts.collect::<alloc::vec::Vec<_>>().join("\n")
}

/// The end that a failure is.
pub(super) fn failed(kind: FailureKind, text: &str) -> End {
    End::Failed(Failure::new(kind, text))
}
