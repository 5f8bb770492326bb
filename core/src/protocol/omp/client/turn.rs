//! Turns: from the first frame of a run to its terminal `agent_end`, or to what says that there won't be one.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::books::Wire;
use super::convert::{content, joined, prompt_failure, shared, timestamp};
use super::flow::{Cut, Flow, Last};
use super::prompts::{Applied, Known, Stage};
use super::{ClientFace, Closing, Out, wire_of};
use crate::json::Raw;
use crate::protocol::heard::message;
use crate::protocol::omp::Generation;
use crate::protocol::omp::wire::{
    AgentEnd, Message as WireMessage, PromptResult, PromptStatus, StopReason, UserMessage,
};
use crate::vocab::*;

/// The open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: TurnId,
    began_us: u64,
    /// The prompts that were applied, in order.
    pub prompts: Vec<Applied>,
    /// The prompt that it began for, if it hasn't been seen in it yet.
    fresh: Option<PromptId>,
    /// A cancel that was acknowledged.
    pub cancel: Option<CancelWhy>,
    /// The newest question before it.
    asked: AskId,
    pub flow: Flow,
}

/// A cancel that was written for the turn.
#[derive(Debug)]
pub(super) struct Abort {
    /// Its line.
    pub wire: Wire,
    /// To be replied to; `None`: a prompt's.
    pub command: Option<CommandId>,
    pub why: CancelWhy,
    /// A compaction ran when it was written.
    pub compacting: bool,
    /// Its response came.
    pub answered: bool,
}

/// The end of the open turn, that a `prompt_result` may say more of.
#[derive(Debug)]
pub(super) struct Ending {
    end: End,
    cut: Cut,
    pending: Pending,
    /// No more waits after it.
    terminal: bool,
    pub until_us: u64,
}

impl ClientFace {
    /// Whether a prompt would come into an open run, as far as is known.
    pub(super) fn is_busy(&self) -> bool {
        self.turn.is_some() || self.starting || self.prompts.has_fresh()
    }

    /// `agent_start`: a turn begins, or the open one goes on after a failed attempt.
    pub(super) fn agent_start(&mut self, out: &mut Out) {
        if let Some(turn) = &mut self.turn {
            return turn.flow.settle_failed(&mut self.asks, out);
        }
        self.starting = true;
        if self.prompts.has_fresh() {
            self.begin(Cause::Prompt, out);
        }
    }

    /// A turn begins.
    fn begin(&mut self, cause: Cause, out: &mut Out) {
        self.held = false;
        self.quiet = false;
        let seen = if core::mem::take(&mut self.starting) {
            Seen::Real
        } else {
            Seen::Inferred
        };
        let id = out.ids.turn();
        out.event(RunId::MAIN, seen, What::TurnStarted { turn: id, cause });
        self.active = true;
        self.turn = Some(Turn {
            id,
            began_us: out.now().mono_us,
            prompts: Vec::new(),
            fresh: self.prompts.fresh(),
            cancel: None,
            asked: self.asks.newest(),
            flow: Flow::new(RunId::MAIN, self.config.reply_bytes),
        });
        if let Some(turn) = &mut self.turn {
            turn.flow.stopping = !self.aborts.is_empty();
        }
    }

    /// Sees to it that what comes has a turn: frames that told of its start may have been hidden.
    pub(super) fn enter(&mut self, cause: Cause, out: &mut Out) -> Option<&mut Turn> {
        if self.turn.is_none() {
            let cause = if self.prompts.has_fresh() {
                Cause::Prompt
            } else {
                cause
            };
            self.begin(cause, out);
        }
        self.turn.as_mut()
    }

    /// `message_end` of the person's: a prompt is applied.
    pub(super) fn user_message(&mut self, user: &UserMessage<'_>, value: Raw<'_>, out: &mut Out) {
        let blocks = content(&user.content);
        let found = self.prompts.told(&joined(&blocks)).or_else(|| {
            // A prompt that was expanded on its way is known by its place.
            let own = user.steering != Some(true)
                && user.synthetic != Some(true)
                && user.attribution.as_deref() != Some("agent");
            let first = self
                .turn
                .as_ref()
                .is_none_or(|turn| turn.prompts.is_empty());
            (own && first).then(|| self.prompts.fresh()).flatten()
        });
        let cause = if found.is_some() {
            Cause::Queue
        } else {
            Cause::NotSaid
        };
        self.enter(cause, out);
        if let Some(turn) = &mut self.turn {
            turn.flow.input_step(&mut self.asks, out);
        }
        let known = found.and_then(|id| {
            self.admit(id, out);
            self.prompts.take(id)
        });
        if known.is_none() && user.synthetic != Some(true) {
            out.finding("a user message that is no known prompt's");
        }
        let id = out.ids.message();
        let origin = if known.is_some() || user.synthetic != Some(true) {
            Origin::Host
        } else {
            Origin::Harness
        };
        let mut made = message(id, Role::User, shared(blocks), origin, out);
        made.at_ms = timestamp(value).unwrap_or(made.at_ms);
        if let (Some(known), Some(turn)) = (known, &mut self.turn) {
            out.say(What::PromptApplied {
                prompt: known.id,
                turn: Some(turn.id),
            });
            made.prompt = Some(known.id);
            if turn.fresh == Some(known.id) {
                turn.fresh = None;
            }
            turn.prompts.push(Applied {
                id: known.id,
                wire: known.wire,
            });
        }
        out.say(What::Message(Arc::new(made)));
    }

    /// The agent took a prompt; that is said once.
    pub(super) fn admit(&mut self, id: PromptId, out: &mut Out) {
        let busy = self.turn.is_some() || self.starting;
        let Some(known) = self.prompts.get(id) else {
            return;
        };
        let seen = match core::mem::replace(&mut known.stage, Stage::Admitted) {
            Stage::Admitted => return,
            Stage::Held => Seen::Real,
            Stage::Sent => Seen::Inferred,
        };
        let lane = match known.lane {
            Some(Lane::Steer) => Lane::Steer,
            Some(Lane::FollowUp | Lane::Next | Lane::Later) => Lane::FollowUp,
            None => Lane::Next,
        };
        let waits = busy && (known.lane.is_some() || known.preempts);
        let admitted = if waits {
            Admitted::Queued(lane)
        } else {
            known.lane = None;
            Admitted::Started
        };
        out.reply(known.command, seen, Ok(Answer::Admitted(admitted)));
        if waits {
            out.infer(What::Queued { prompt: id, lane });
        }
    }

    /// Nothing took the acceptance of a prompt back.
    pub(super) fn admit_held(&mut self, out: &mut Out) {
        if let Some(id) = self.prompts.held().map(|known| known.id) {
            self.admit(id, out);
        }
    }

    /// What a cancel of the turn is said to be for.
    fn why(&self) -> CancelWhy {
        let turn = self.turn.as_ref().and_then(|turn| turn.cancel.clone());
        turn.or_else(|| self.aborts.first().map(|abort| abort.why.clone()))
            .or_else(|| self.signal.map(CancelWhy::Signal))
            .unwrap_or(match (self.closing, &self.changing) {
                (Closing::Sent { .. }, _) => CancelWhy::PeerGone,
                (_, Some(_)) => CancelWhy::Switch,
                _ => CancelWhy::Host,
            })
    }

    /// The agent shows that the turn was cancelled: the cancels that were written hit it.
    pub(super) fn cancel_hits(&mut self, out: &mut Out) {
        let why = self.why();
        let queued = self.prompts.queued();
        let Some(turn) = &mut self.turn else { return };
        for abort in core::mem::take(&mut self.aborts) {
            if let Some(command) = abort.command {
                // It sets nothing going, whatever was to begin behind this run.
                self.prompts.hold_fresh();
                let (hit, queued) = (Hit::Turn(turn.id), queued.clone());
                let answer = Answer::Cancelling { hit, queued };
                out.reply(command, Seen::Inferred, Ok(answer));
            }
        }
        turn.flow.cancelled = true;
        turn.cancel.get_or_insert(why);
    }

    /// `agent_end`.
    pub(super) fn agent_end(&mut self, told: &AgentEnd<'_>, out: &mut Out) {
        if told.yielded == Some(false) {
            if let Some(turn) = &mut self.turn {
                turn.flow.settle_failed(&mut self.asks, out);
            }
            return;
        }
        self.enter(Cause::NotSaid, out);
        if let Some(turn) = &mut self.turn {
            turn.flow.settle_failed(&mut self.asks, out);
        }
        let last = match self.turn.as_ref().map(|turn| turn.flow.last.clone()) {
            Some(Last::None) | None => last_of(&told.messages),
            Some(last) => last,
        };
        let cancelled = self.turn.as_ref().is_some_and(|turn| turn.flow.cancelled);
        let (end, cut) = match last {
            _ if cancelled => (End::Cancelled(self.why()), Cut::Cancelled),
            Last::Aborted => {
                self.cancel_hits(out);
                (End::Cancelled(self.why()), Cut::Cancelled)
            }
            Last::Complete(word) => (End::Finished { finish: Some(word) }, Cut::Over),
            Last::Failed(failure) => (End::Failed(failure.clone()), Cut::Failed(failure)),
            Last::None if !self.aborts.is_empty() => {
                self.cancel_hits(out);
                (End::Cancelled(self.why()), Cut::Cancelled)
            }
            Last::None => (End::NotSaid, Cut::Over),
        };
        let background = told.awaiting_async_work == Some(true);
        let terminal = told.is_terminal != Some(false);
        let pending = Pending {
            queued: self.queued(),
            background,
            resumes: !terminal && !background,
        };
        let results = self.generation >= Generation::G2;
        // A run that shows no prompt may be that of any that waits.
        let shows = |turn: &Turn| !turn.prompts.is_empty();
        let owed = self.turn.as_ref().is_some_and(shows) || self.queued() > 0;
        self.ending = Some(Ending {
            end,
            cut,
            pending,
            terminal: terminal && !background,
            until_us: out.now().mono_us.saturating_add(self.config.look_ahead_us),
        });
        if !(results && owed) {
            self.release_ending(out);
        }
    }

    pub(super) fn queued(&self) -> u32 {
        u32::try_from(self.prompts.queued().len()).unwrap_or(u32::MAX)
    }

    /// Whether the open turn has ended, and its result is awaited.
    pub(super) fn ends(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether it has, by a cancel.
    pub(super) fn ends_cancelled(&self) -> bool {
        let ending = self.ending.as_ref();
        ending.is_some_and(|ending| ending.end.is_cancelled())
    }

    /// The turn ends as far as it is known.
    pub(super) fn release_ending(&mut self, out: &mut Out) {
        if let Some(ending) = self.ending.take() {
            self.quiet = ending.terminal;
            self.finish(ending.end, &ending.cut, ending.pending, Seen::Real, out);
        }
    }

    /// `prompt_result`: a prompt has ended, and with it the turn that it was applied into.
    pub(super) fn prompt_result(&mut self, told: &PromptResult<'_>, out: &mut Out) {
        if told.status.is_some() {
            self.tells(Generation::G2);
        }
        let Some(wire) = wire_of(told.id) else {
            self.release_ending(out);
            return out.finding(format!(
                "the result of {}, which is no prompt",
                super::shown(told.id)
            ));
        };
        // A run that shows no prompt is that of the one whose result comes with it.
        let unseen = self.prompts.of(wire).filter(|id| {
            let shows = |turn: &Turn| !turn.prompts.is_empty();
            let fresh = self.turn.as_ref().and_then(|turn| turn.fresh) == Some(*id);
            !self.turn.as_ref().is_none_or(shows) && (fresh || self.ending.is_some())
        });
        let applied = self
            .turn
            .as_ref()
            .is_some_and(|turn| turn.prompts.iter().any(|it| it.wire == wire));
        if !applied && unseen.is_none() {
            self.release_ending(out);
            return self.unapplied_result(wire, told, out);
        }
        let end = self.result_ends_turn(told, out);
        if let Some(id) = unseen {
            self.admit(id, out);
            self.end_prompt(id, end, Seen::Real, out);
        }
    }

    /// A result of one of the turn's prompts: the turn ends as it did.
    fn result_ends_turn(&mut self, told: &PromptResult<'_>, out: &mut Out) -> End {
        let switched = self.changing.is_some();
        if let Some(ending) = &mut self.ending {
            // An acknowledged cancel isn't taken back.
            if !matches!(ending.end, End::Cancelled(_)) {
                match &told.status {
                    Some(PromptStatus::Error) => {
                        let failure = prompt_failure(told.error.as_ref());
                        ending.end = End::Failed(failure.clone());
                        ending.cut = Cut::Failed(failure);
                    }
                    Some(PromptStatus::Aborted) => {
                        self.cancel_hits(out);
                        let why = self.why();
                        if let Some(ending) = &mut self.ending {
                            ending.end = End::Cancelled(why);
                            ending.cut = Cut::Cancelled;
                        }
                    }
                    Some(PromptStatus::Completed) => {
                        if !ending.end.is_finished() {
                            ending.end = End::Finished { finish: None };
                            ending.cut = Cut::Over;
                        }
                    }
                    Some(PromptStatus::Other(_)) | None => {}
                }
            }
            let end = self.ending.as_ref().map(|ending| ending.end.clone());
            self.release_ending(out);
            return end.unwrap_or(End::NotSaid);
        }
        // No end of the run was told: it was hidden, or the run was left behind.
        let (end, cut) = match &told.status {
            Some(PromptStatus::Error) => {
                let failure = prompt_failure(told.error.as_ref());
                (End::Failed(failure.clone()), Cut::Failed(failure))
            }
            Some(PromptStatus::Aborted) => {
                let cut = if switched {
                    Cut::Detached
                } else {
                    Cut::Cancelled
                };
                self.cancel_hits(out);
                (End::Cancelled(self.why()), cut)
            }
            Some(PromptStatus::Completed | PromptStatus::Other(_)) | None => {
                (self.finished(), Cut::Over)
            }
        };
        let pending = Pending {
            queued: self.queued(),
            ..Pending::default()
        };
        let end = if self.turn.as_ref().is_some_and(|turn| turn.flow.cancelled) {
            End::Cancelled(self.why())
        } else {
            end
        };
        self.finish(end.clone(), &cut, pending, Seen::Inferred, out);
        end
    }

    fn finished(&self) -> End {
        let last = self.turn.as_ref().map(|turn| &turn.flow.last);
        let finish = match last {
            Some(Last::Complete(word)) => Some(word.clone()),
            Some(Last::None | Last::Aborted | Last::Failed(_)) | None => None,
        };
        End::Finished { finish }
    }

    /// The result of a prompt that no user message told of.
    fn unapplied_result(&mut self, wire: Wire, told: &PromptResult<'_>, out: &mut Out) {
        let Some(id) = self.prompts.of(wire) else {
            if !self.prompts.is_done(wire) {
                out.finding(format!("the result of {}, which nobody knows", wire.text()));
            }
            return;
        };
        let end = match &told.status {
            Some(PromptStatus::Error) => End::Failed(prompt_failure(told.error.as_ref())),
            Some(PromptStatus::Aborted) if self.changing.is_some() => {
                End::Cancelled(CancelWhy::Switch)
            }
            Some(PromptStatus::Aborted) => End::Cancelled(CancelWhy::Host),
            _ if !told.agent_invoked => End::Local,
            Some(PromptStatus::Completed) => End::Finished { finish: None },
            Some(PromptStatus::Other(_)) | None => End::NotSaid,
        };
        self.admit(id, out);
        if end == End::Local {
            self.say_printed(Some(id), out);
        }
        self.end_prompt(id, end, Seen::Real, out);
    }

    pub(super) fn end_prompt(&mut self, id: PromptId, end: End, seen: Seen, out: &mut Out) {
        if let Some(Known { wire, .. }) = self.prompts.take(id) {
            self.prompts.done(wire);
            out.event(RunId::MAIN, seen, What::PromptEnded { prompt: id, end });
        }
    }

    /// Ends every prompt that was admitted and isn't applied.
    pub(super) fn end_prompts(&mut self, end: &End, out: &mut Out) {
        for id in self.prompts.queued() {
            self.end_prompt(id, end.clone(), Seen::Inferred, out);
        }
    }

    /// The turn is over: its end, and those of its prompts.
    fn finish(&mut self, end: End, cut: &Cut, pending: Pending, seen: Seen, out: &mut Out) {
        self.ending = None;
        self.end_compaction(CompactionFault::Cancelled, out);
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        turn.flow.end_step(cut, &mut self.asks, out);
        let again = self.asks.turn_over(turn.asked, cut, out);
        let cancelled = end.is_cancelled();
        if end.is_finished() {
            // What came too late for the turn waits for the next one (S-18).
            let steers = self
                .prompts
                .iter()
                .filter(|known| known.lane == Some(Lane::Steer) && known.stage == Stage::Admitted);
            for known in steers {
                let (prompt, lane) = (known.id, Lane::FollowUp);
                out.infer(What::Queued { prompt, lane });
            }
        }
        let answer = turn.flow.answer.take().filter(|_| end.is_finished());
        out.event(
            RunId::MAIN,
            seen,
            What::TurnEnded {
                turn: turn.id,
                end: end.clone(),
                answer: answer.map(TurnAnswer::Text),
                report: TurnReport {
                    wall_us: out.now().mono_us.saturating_sub(turn.began_us),
                    api_us: Some(turn.flow.api_us),
                    requests: Some(turn.flow.requests),
                    by_model: core::mem::take(&mut turn.flow.by_model),
                    denials: turn.flow.calls.take_denied(),
                }
                .into(),
                pending,
            },
        );
        for Applied { id, wire } in turn.prompts {
            self.prompts.done(wire);
            let end = end.clone();
            out.event(RunId::MAIN, seen, What::PromptEnded { prompt: id, end });
        }
        // The old program says of no prompt that it ended: the one that the run began for did with it.
        if let Some(id) = turn.fresh.filter(|_| self.generation == Generation::G1) {
            let admitted = |known: &mut Known| known.stage == Stage::Admitted;
            if self.prompts.get(id).is_some_and(admitted) {
                self.end_prompt(id, end, Seen::Inferred, out);
            }
        }
        self.held = cancelled && self.queued() > 0;
        let queued = self.prompts.queued();
        for abort in core::mem::take(&mut self.aborts) {
            match abort.command {
                Some(command) if abort.answered => {
                    let (hit, queued) = (Hit::Nothing, queued.clone());
                    let answer = Answer::Cancelling { hit, queued };
                    out.reply(command, Seen::Real, Ok(answer));
                }
                None if abort.answered => {}
                Some(_) | None => self.aborts.push(abort),
            }
        }
        self.asks.again(again, out);
    }

    /// The agent is gone in the middle of the turn.
    pub(super) fn end_turn_gone(&mut self, failure: &Failure, out: &mut Out) {
        self.starting = false;
        let Some(turn) = &self.turn else { return };
        let leaving = self.is_input_closed() || turn.cancel.is_some() || !self.aborts.is_empty();
        let (end, cut) = if leaving || self.signal.is_some() {
            self.cancel_hits(out);
            (End::Cancelled(self.why()), Cut::Cancelled)
        } else {
            (End::Failed(failure.clone()), Cut::Gone(failure.clone()))
        };
        self.finish(end, &cut, Pending::default(), Seen::Inferred, out);
    }

    /// Another session took over: what ran is detached, and says nothing more.
    pub(super) fn detach(&mut self, out: &mut Out) {
        self.starting = false;
        self.release_ending(out);
        if self.turn.is_some() {
            if let (true, Some(turn)) = (self.aborts.is_empty(), &mut self.turn) {
                turn.cancel.get_or_insert(CancelWhy::Switch);
            }
            self.cancel_hits(out);
            let end = End::Cancelled(self.why());
            let pending = Pending::default();
            self.finish(end, &Cut::Detached, pending, Seen::Inferred, out);
        }
        self.end_prompts(&End::Dropped(DropWhy::SessionChanged), out);
        self.runs.end_all(&Cut::Detached, out);
    }

    /// `session_settled`.
    pub(super) fn session_settled(&mut self, out: &mut Out) {
        self.tells(Generation::G2);
        self.release_ending(out);
        self.starting = false;
        if self.turn.is_some() {
            let (end, cut) = if self.changing.is_some() {
                self.cancel_hits(out);
                (End::Cancelled(self.why()), Cut::Detached)
            } else if self.turn.as_ref().is_some_and(|turn| turn.flow.cancelled) {
                (End::Cancelled(self.why()), Cut::Cancelled)
            } else {
                (End::NotSaid, Cut::Over)
            };
            self.finish(end, &cut, Pending::default(), Seen::Inferred, out);
        }
        self.end_compaction(CompactionFault::Cancelled, out);
        let why = if self.changing.is_some() {
            End::Dropped(DropWhy::SessionChanged)
        } else {
            End::NotSaid
        };
        self.end_prompts(&why, out);
        if core::mem::take(&mut self.active) {
            out.say(What::Settled);
        }
    }

    /// An old program doesn't say that all is quiet.
    fn settle_quietly(&mut self, out: &mut Out) {
        let idle = self.turn.is_none() && !self.starting && self.prompts.is_empty();
        let says = self.generation > Generation::G1;
        if idle && self.quiet && !says && !self.compacting && core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
    }

    pub(super) fn end_compaction(&mut self, fault: CompactionFault, out: &mut Out) {
        if core::mem::take(&mut self.compacting) {
            let result = Err(fault);
            out.infer(What::CompactionEnded { result });
        }
    }

    /// What was printed stands between a prompt's answer and its end.
    pub(super) fn say_printed(&mut self, prompt: Option<PromptId>, out: &mut Out) {
        for text in core::mem::take(&mut self.printed) {
            let content = shared([Block::Text(text)].into());
            let id = out.ids.message();
            let made = message(id, Role::Note, content, Origin::Harness, out);
            out.say(What::Message(Arc::new(Message { prompt, ..made })));
        }
    }

    /// Nothing runs: the agent is told to leave, if that was asked for.
    pub(super) fn idle(&mut self, out: &mut Out) {
        self.settle_quietly(out);
        if self.closing != Closing::Draining || !self.is_open() || !self.early.is_empty() {
            return;
        }
        let runs = self.turn.is_some() || self.starting || self.compacting;
        let owed = |known: &Known| known.lane.is_none() || known.stage != Stage::Admitted;
        let owed = self.prompts.iter().any(owed) || self.active && !self.held;
        if !runs && !owed && self.books.is_empty() {
            self.close_input(false, out);
        }
    }
}

/// How a run ended, by its last reply.
fn last_of(messages: &[Raw<'_>]) -> Last {
    for value in messages.iter().rev() {
        if let Ok(WireMessage::Assistant(reply)) = WireMessage::decode(*value) {
            return match reply.stop_reason {
                Some(StopReason::Aborted) => Last::Aborted,
                Some(StopReason::Error) => Last::Failed(super::convert::failure_of(&reply)),
                Some(word) => Last::Complete(word.as_str().into()),
                None => Last::None,
            };
        }
    }
    Last::None
}
