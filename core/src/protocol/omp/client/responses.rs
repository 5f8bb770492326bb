//! Responses, by the command that they answer.

use alloc::format;
use alloc::vec::Vec;

use super::books::{Sent, Wire};
use super::convert::{exit_code, failure, goal, history, raw};
use super::prompts::Stage as Step;
use super::{ClientFace, Out, Stage, shown, wire_of};
use crate::json::DecodeError;
use crate::protocol::heard::cut;
use crate::protocol::omp::Generation;
use crate::protocol::omp::wire::{
    AgentLine, BashData, Cancelled, Compaction, Data, Maybe, Opened, Response, RestoredMessage,
    State,
};
use crate::vocab::*;

/// What an agent that is busy says to a prompt.
const BUSY: &str = "Agent is already processing";

impl ClientFace {
    /// The acceptance of a prompt that an older program may take back: by the very next frame, or not at all. Whether
    /// this frame did.
    pub(super) fn takes_back(&mut self, line: &AgentLine<'_>, out: &mut Out) -> bool {
        let Some(held) = self.prompts.held() else {
            return false;
        };
        let (id, command, wire) = (held.id, held.command, held.wire);
        if let AgentLine::Response(response) = line
            && !response.success
            && wire_of(response.id) == Some(wire)
        {
            self.prompts.take(id);
            self.prompts.done(wire);
            out.reply(command, Seen::Real, Err(refusal(response)));
            return true;
        }
        self.admit(id, out);
        false
    }

    /// `response`.
    pub(super) fn respond(&mut self, response: &Response<'_>, out: &mut Out) {
        let named = response.command.name();
        let wire = match response.id.get() {
            Some(_) => wire_of(response.id),
            // An old program echoes no id of a command that it doesn't know.
            None => named.and_then(|name| self.books.oldest(name)),
        };
        let Some(wire) = wire else {
            return out.finding(format!(
                "a response to {}, which nobody sent: {}",
                shown(response.id),
                cut(response.error.as_deref().unwrap_or("success"))
            ));
        };
        let Some((sent, same)) = self.books.take(wire, named) else {
            return self.late(wire, response, out);
        };
        if !same {
            out.finding(format!(
                "the response to {} names another command",
                wire.text()
            ));
        }
        let stops = if let Sent::Prompt(prompt) = &sent {
            self.prompts.get(*prompt).is_some_and(|it| it.preempts)
        } else {
            let written = self.aborts.iter().any(|abort| abort.wire == wire);
            written || matches!(sent, Sent::Abort(_))
        };
        if stops && self.ends_cancelled() {
            // It comes behind the run's end. One that doesn't show a cancel is told by the result that follows.
            self.release_ending(out);
        }
        if !matches!(sent, Sent::Prompt(_)) && !self.printed.is_empty() {
            self.say_printed(None, out);
        }
        if let Err(error) = self.answer(wire, sent.clone(), response, out) {
            out.finding(format!(
                "the payload of {:?} can't be read: {error}",
                named.unwrap_or_default()
            ));
            // What was done is done.
            if let Some(command) = sent.command() {
                out.reply(command, Seen::Real, Ok(Answer::Done));
            }
        }
        if self.ends() {
            let answered = self.aborts.iter_mut().find(|abort| abort.wire == wire);
            if let Some(abort) = answered {
                abort.answered = true;
            }
        } else {
            self.aborts.retain(|abort| abort.wire != wire);
        }
    }

    /// A second response: a prompt failed after it was admitted.
    fn late(&mut self, wire: Wire, response: &Response<'_>, out: &mut Out) {
        if let (Some(id), false) = (self.prompts.of(wire), response.success) {
            let end = End::Failed(said(response));
            return self.end_prompt(id, end, Seen::Real, out);
        }
        if !self.prompts.is_done(wire) {
            out.finding(format!("a second response to {}", wire.text()));
        }
    }

    fn answer(
        &mut self,
        wire: Wire,
        sent: Sent,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        match sent {
            Sent::Prompt(prompt) => return self.prompt_answered(prompt, response, out),
            Sent::Abort(command) => self.abort_answered(wire, command, response, out),
            Sent::Compact(command) => return self.compact_answered(command, response, out),
            Sent::Session(command) => return self.session_answered(command, response, out),
            Sent::Negotiate => {
                if response.success {
                    self.chunks.use_chunks();
                } else {
                    out.finding("the agent offers protocol 2 and doesn't take it");
                }
            }
            Sent::Filter => {
                if response.success {
                    self.tells(Generation::G2);
                }
                if let Ok(Data::Filter(filter)) = response.payload()
                    && filter.message_updates.is_some()
                {
                    self.tells(Generation::G3);
                }
            }
            Sent::State => return self.state_answered(response, out),
            Sent::History => return self.history_answered(response, out),
            Sent::Quiet => {}
            Sent::StopRetry(_)
            | Sent::StopShell(_)
            | Sent::Withdraw(..)
            | Sent::Promote(..)
            | Sent::Set(..)
            | Sent::Offer(_)
            | Sent::Shell(_)
            | Sent::Goal(_)
            | Sent::StopRun(_)
            | Sent::SteerRun(_)
            | Sent::Barrier(_)
            | Sent::Raw(..) => match sent.command() {
                Some(command) if !response.success => {
                    out.reply(command, Seen::Real, Err(refusal(response)));
                }
                _ => return self.done(sent, response, out),
            },
        }
        Ok(())
    }

    /// A success of a command that changes nothing else.
    fn done(
        &mut self,
        sent: Sent,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        let data = response.payload()?;
        let queued = self.prompts.queued();
        let (command, answer) = match sent {
            Sent::StopRetry(command) => {
                let waits = self
                    .turn
                    .as_ref()
                    .is_some_and(|it| it.flow.waits_to_retry());
                let hit = if waits { Hit::Retry } else { Hit::Nothing };
                (command, Answer::Cancelling { hit, queued })
            }
            Sent::StopShell(command) => {
                let runs = self.books.waits_for(|sent| matches!(sent, Sent::Shell(_)));
                let hit = if runs { Hit::Shell } else { Hit::Nothing };
                (command, Answer::Cancelling { hit, queued })
            }
            Sent::StopRun(command) => {
                let stopped = matches!(&data, Data::Cancelled(it) if it.cancelled);
                let hit = if stopped { Hit::Run } else { Hit::Nothing };
                (command, Answer::Cancelling { hit, queued })
            }
            Sent::Withdraw(command, prompt) => {
                let removed = matches!(&data, Data::Removed(it) if it.removed);
                // It may have been applied, or have ended, before the answer came.
                let removed = removed && self.prompts.get(prompt).is_some();
                out.reply(command, Seen::Real, Ok(Answer::Withdrawn(removed)));
                if removed {
                    self.end_prompt(prompt, End::Withdrawn, Seen::Inferred, out);
                }
                return Ok(());
            }
            Sent::Promote(command, prompt) => {
                let moved = matches!(&data, Data::Promoted(it) if it.promoted);
                if !moved {
                    out.reply(command, Seen::Real, Err(Refusal::Unknown));
                    return Ok(());
                }
                out.reply(command, Seen::Real, Ok(Answer::Done));
                if let Some(known) = self.prompts.get(prompt) {
                    known.lane = Some(Lane::Steer);
                    let lane = Lane::Steer;
                    out.infer(What::Queued { prompt, lane });
                }
                return Ok(());
            }
            Sent::Set(command, setting) => {
                if let Data::Model(model) = &data {
                    self.learn_model(model);
                } else {
                    self.apply(setting);
                }
                out.reply(command, Seen::Real, Ok(Answer::Done));
                self.changed(Seen::Inferred, out);
                return Ok(());
            }
            Sent::Shell(command) => (command, shell(&data)),
            Sent::Goal(command) => {
                let told = if let Data::Goal(it) = &data {
                    it.goal.0.as_ref().and_then(goal)
                } else {
                    None
                };
                (command, Answer::Goal(told))
            }
            Sent::Barrier(command) => {
                out.reply(command, Seen::Real, Ok(Answer::Done));
                if let Data::State(state) = &data {
                    self.refresh(state, out);
                }
                return Ok(());
            }
            Sent::Raw(command, member) => {
                let value = response.data.get();
                let part = member.and_then(|member| value.and_then(|value| value.get(member)));
                let answer = match part.or(value) {
                    Some(value) => Answer::Raw(raw(value)),
                    None => Answer::Done,
                };
                (command, answer)
            }
            Sent::Offer(command) | Sent::SteerRun(command) => (command, Answer::Done),
            Sent::Prompt(_)
            | Sent::Abort(_)
            | Sent::Compact(_)
            | Sent::Session(_)
            | Sent::Quiet
            | Sent::Negotiate
            | Sent::Filter
            | Sent::State
            | Sent::History => return Ok(()),
        };
        out.reply(command, Seen::Real, Ok(answer));
        Ok(())
    }

    fn prompt_answered(
        &mut self,
        prompt: PromptId,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        let Some(known) = self.prompts.get(prompt) else {
            // Its turn told of it before.
            if !response.success {
                out.finding("a prompt failed though its turn had begun");
            }
            return Ok(());
        };
        let (command, fresh, told) = (
            known.command,
            known.lane.is_none(),
            known.stage != Step::Sent,
        );
        if !response.success {
            if told {
                self.end_prompt(prompt, End::Failed(said(response)), Seen::Real, out);
            } else if let Some(known) = self.prompts.take(prompt) {
                self.prompts.done(known.wire);
                out.reply(command, Seen::Real, Err(refusal(response)));
            }
            return Ok(());
        }
        let local = response
            .data
            .get()
            .and_then(|data| data.get("agentInvoked"));
        if local.and_then(|word| word.bool()) == Some(false) {
            if !told {
                known.stage = Step::Admitted;
                out.reply(command, Seen::Real, Ok(Answer::Admitted(Admitted::Local)));
            }
            self.say_printed(Some(prompt), out);
            self.end_prompt(prompt, End::Local, Seen::Real, out);
            return Ok(());
        }
        if told {
            return Ok(());
        }
        known.stage = Step::Held;
        let others = self
            .prompts
            .iter()
            .any(|other| other.lane.is_none() && other.id != prompt);
        let preempts = self.prompts.get(prompt).is_some_and(|known| known.preempts);
        let busy = fresh && !preempts && (self.turn.is_some() || self.starting || others);
        if !busy || self.generation >= Generation::G3 {
            self.admit(prompt, out);
        }
        if !self.printed.is_empty() {
            self.say_printed(None, out);
        }
        Ok(())
    }

    fn abort_answered(
        &mut self,
        wire: Wire,
        command: CommandId,
        response: &Response<'_>,
        out: &mut Out,
    ) {
        if let Ok(Data::Restored(restored)) = response.payload() {
            self.drop_texts(&restored.steering, Lane::Steer, out);
            self.drop_texts(&restored.follow_up, Lane::FollowUp, out);
        }
        if response.success && self.turn.is_none() {
            self.prompts.hold_fresh();
            self.held |= self.queued() > 0;
        }
        // Else the turn showed it before.
        let Some(at) = self.aborts.iter().position(|abort| abort.wire == wire) else {
            return;
        };
        if !response.success {
            self.aborts.remove(at);
            return out.reply(command, Seen::Real, Err(refusal(response)));
        }
        if self.ends() {
            // What it hit is told by the result that follows.
            return;
        }
        if self.turn.is_some() {
            // The response comes behind the run's end, so this run is over without one.
            return self.cancel_hits(out);
        }
        let abort = self.aborts.remove(at);
        let hit = if abort.compacting && !self.compacting {
            Hit::Compaction
        } else {
            Hit::Nothing
        };
        let queued = self.prompts.queued();
        out.reply(command, Seen::Real, Ok(Answer::Cancelling { hit, queued }));
    }

    /// Prompts that were taken out of a queue with a cancel.
    fn drop_texts(&mut self, texts: &[RestoredMessage<'_>], lane: Lane, out: &mut Out) {
        for taken in texts {
            let same = |known: &&super::prompts::Known| {
                known.stage == Step::Admitted
                    && known.lane == Some(lane)
                    && known.text == *taken.text
            };
            let found = self.prompts.iter().find(same).map(|known| known.id);
            if let Some(id) = found {
                let end = End::Dropped(DropWhy::Cancelled);
                self.end_prompt(id, end, Seen::Real, out);
            }
        }
    }

    /// The response is the whole compaction.
    fn compact_answered(
        &mut self,
        command: CommandId,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        let result = if response.success {
            if let Data::Compaction(told) = response.payload()? {
                Ok(compacted(&told))
            } else {
                Ok(Compacted::default())
            }
        } else {
            let text = response.error.as_deref().unwrap_or_default();
            if text.starts_with("Unknown command") {
                out.reply(command, Seen::Real, Err(refusal(response)));
                return Ok(());
            }
            Err(
                if text.starts_with("Nothing to compact") || text.starts_with("Already compacted") {
                    CompactionFault::Nothing(text.into())
                } else if is_cancel(text) {
                    CompactionFault::Cancelled
                } else {
                    CompactionFault::Failed(said(response))
                },
            )
        };
        out.reply(command, Seen::Real, Ok(Answer::Done));
        let between = self.turn.as_ref().is_none_or(|turn| turn.flow.is_between());
        if between && !self.compacting {
            out.infer(What::CompactionStarted {
                trigger: Trigger::Manual,
                span: None,
                tokens: result.as_ref().ok().and_then(|it| it.tokens_before),
            });
            out.say(What::CompactionEnded { result });
        }
        Ok(())
    }

    fn session_answered(
        &mut self,
        command: CommandId,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        if !response.success {
            self.changing = None;
            out.reply(command, Seen::Real, Err(refusal(response)));
            self.act_early(out);
            return Ok(());
        }
        let data = match response.payload() {
            Ok(data) => data,
            Err(error) => {
                self.changing = None;
                self.act_early(out);
                return Err(error);
            }
        };
        let (vetoed, text) = if let Data::Branched(it) = &data {
            (it.cancelled, Some(Text::from(&*it.text)))
        } else if let Data::Cancelled(Cancelled { cancelled, .. })
        | Data::Opened(Opened { cancelled, .. }) = &data
        {
            (*cancelled, None)
        } else {
            (false, None)
        };
        if vetoed {
            self.changing = None;
            let answer = Answer::Session { vetoed, text };
            out.reply(command, Seen::Real, Ok(answer));
            self.act_early(out);
            return Ok(());
        }
        self.detach(out);
        if let Some(changing) = &mut self.changing {
            changing.done = Some(text);
        }
        if self.is_input_closed() {
            self.session_opened(Seen::Inferred, Vec::new(), out);
        } else {
            self.ask_state(out);
        }
        Ok(())
    }

    fn state_answered(
        &mut self,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        let state = match response.payload() {
            Ok(Data::State(state)) if response.success => state,
            read => {
                if self.stage != Stage::Done {
                    self.session_opened(Seen::Inferred, Vec::new(), out);
                }
                if !response.success {
                    out.finding("the agent doesn't tell its state");
                }
                return read.map(drop);
            }
        };
        if self.stage == Stage::Done {
            self.refresh(&state, out);
            return Ok(());
        }
        self.learn(&state);
        let messages = state.message_count.as_ref().and_then(|it| it.u64());
        self.info.continued = messages.is_some_and(|count| count > 0);
        if self.info.continued && !self.is_input_closed() {
            self.stage = Stage::Reading;
            let line = crate::protocol::omp::wire::GetMessages::default();
            self.books.send_own(line.into(), Sent::History, out);
        } else {
            self.session_opened(Seen::Real, Vec::new(), out);
        }
        Ok(())
    }

    /// A later look at the state.
    fn refresh(&mut self, state: &State<'_>, out: &mut Out) {
        if self.learn(state) {
            self.changed(Seen::Real, out);
        }
        self.context(state.context_usage.as_ref(), out);
        if let Maybe::Value(told) = &state.goal {
            self.tells(Generation::G3);
            let told = goal(&told.goal);
            out.say(What::Goal(GoalEvent::Changed(told)));
        }
    }

    fn history_answered(
        &mut self,
        response: &Response<'_>,
        out: &mut Out,
    ) -> Result<(), DecodeError> {
        if self.stage == Stage::Done {
            return Ok(());
        }
        let payload = response.payload();
        let told = match &payload {
            Ok(Data::Messages(told)) if response.success => history(&told.messages, out),
            _ => {
                self.session_opened(Seen::Real, Vec::new(), out);
                out.infer(What::Notice {
                    level: Level::Info,
                    code: Some("history_truncated".into()),
                    text: "the agent doesn't tell the history".into(),
                });
                return payload.map(drop);
            }
        };
        self.session_opened(Seen::Real, told, out);
        Ok(())
    }
}

/// What a failure says.
fn said(response: &Response<'_>) -> Failure {
    let text = response.error.as_deref();
    failure(text.unwrap_or("the agent doesn't say why"), None, None)
}

fn is_cancel(text: &str) -> bool {
    ["abort", "Abort", "cancel", "Cancel"]
        .iter()
        .any(|word| text.contains(word))
}

/// Why a command was refused, as far as its text tells.
fn refusal(response: &Response<'_>) -> Refusal {
    let failure = said(response);
    let text = &*failure.text;
    if text.starts_with(BUSY) || response.code.as_deref() == Some("session_busy") {
        Refusal::Busy
    } else if text.starts_with("Unknown command") {
        Refusal::Unsupported("this command")
    } else if response.command.name() == Some("prompt") && is_cancel(text) {
        Refusal::Cancelled
    } else {
        Refusal::Failed(failure)
    }
}

fn shell(data: &Data<'_>) -> Answer {
    let Data::Bash(BashData {
        exit_code: exit,
        cancelled,
        timed_out,
        output,
        truncated,
        ..
    }) = data
    else {
        return Answer::Done;
    };
    Answer::Shell {
        output: (&**output).into(),
        exit: exit_code(exit.as_ref()),
        cancelled: *cancelled,
        timed_out: *timed_out == Some(true),
        truncated: *truncated,
        show: None,
    }
}

/// What a compaction did.
pub(super) fn compacted(told: &Compaction<'_>) -> Compacted {
    Compacted {
        summary: Some((&*told.summary).into()),
        tokens_before: told.tokens_before.u64(),
        ..Compacted::default()
    }
}
