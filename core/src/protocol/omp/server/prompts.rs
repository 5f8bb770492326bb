//! Prompts: their admission is answered, their end is a line of its own (OMP-03).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::ticket::{Ticket, Until};
use super::{Face, Pending};
use crate::json::{Raw, Str};
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{
    Any, CommandOutput, Data, Image, ImageBlock, Kept, PromptAck, PromptError, PromptResult,
    PromptStatus, QueueUpdate, QueuedMessages, RestoredMessage,
};
use crate::protocol::said::refusal;
use crate::vocab::*;

/// The text of a prompt that comes into an open run and doesn't say what is to become of it.
const BUSY: &str = "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.";

/// By which command a prompt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Prompt,
    /// `prompt` that steers, or `steer`.
    Steer,
    FollowUp,
    /// `abort_and_prompt`: it shows in no queue.
    Preempt,
}

/// What is remembered of a prompt until its end.
#[derive(Debug)]
struct Note {
    /// Until it is admitted, or, handled locally, until it has ended.
    ticket: Option<Ticket>,
    /// The command's id as JSON, for the result.
    id: Option<Box<str>>,
    by: By,
    /// A `prompt_result` is owed.
    owes: bool,
    content: Vec<Block>,
    /// Where it waits.
    lane: Option<Lane>,
    /// It waited for the open run.
    steered: bool,
    applied: bool,
    local: bool,
    /// It has ended before the run that it was applied in.
    ended: Option<End>,
    /// The host has it back: it shows in no queue, though its end is still to come.
    taken: bool,
}

impl Note {
    fn text(&self) -> &str {
        self.content
            .iter()
            .find_map(Block::text)
            .unwrap_or_default()
    }

    fn shows(&self) -> bool {
        self.lane.is_some() && self.by != By::Preempt && !self.taken
    }

    fn is_steering(&self) -> bool {
        self.lane == Some(Lane::Steer)
    }
}

/// The prompts that haven't ended.
#[derive(Debug, Default)]
pub(super) struct Prompts(BTreeMap<PromptId, Note>);

/// A prompt as it was read.
pub(super) struct Sent<'a> {
    pub(super) message: &'a str,
    pub(super) images: &'a [Kept<'a, Image<'a>>],
    pub(super) by: By,
    pub(super) deliver: Deliver,
    pub(super) owes: bool,
}

impl Prompts {
    /// Whether a message goes into an open run that it didn't begin.
    pub(super) fn is_steered(&self, prompt: Option<PromptId>) -> bool {
        prompt
            .and_then(|prompt| self.0.get(&prompt))
            .is_some_and(|note| note.steered)
    }

    /// Whether the agent answers the prompt by itself.
    fn is_local(&self, prompt: Option<PromptId>) -> bool {
        prompt
            .and_then(|prompt| self.0.get(&prompt))
            .is_some_and(|note| note.local)
    }

    /// Whether one hasn't been admitted yet, such as one that a hook judges.
    fn is_judging(&self) -> bool {
        self.0
            .values()
            .any(|note| note.ticket.is_some() && !note.local)
    }
}

impl Face {
    /// Hands a prompt to the agent.
    pub(super) fn prompt(&mut self, ticket: Ticket, sent: &Sent<'_>, out: &mut Outbox<Omp>) {
        let mut content = vec![Block::Text(sent.message.into())];
        content.extend(sent.images.iter().filter_map(|image| media(image.known()?)));
        let id = out.next_prompt();
        let note = Note {
            id: ticket.id().get().map(|id| id.as_str().into()),
            ticket: Some(ticket),
            by: sent.by,
            owes: sent.owes,
            content: content.clone(),
            lane: None,
            steered: false,
            applied: false,
            local: false,
            ended: None,
            taken: false,
        };
        self.prompts.0.insert(id, note);
        let prompt = Prompt {
            id,
            tag: None,
            content,
            deliver: sent.deliver.clone(),
            literal: sent.by == By::Preempt,
            details: None,
        };
        let command = out.call(Command::Prompt(prompt));
        self.pending.insert(command, Pending::Prompt(id));
    }

    /// The agent's answer to a prompt.
    pub(super) fn admitted(
        &mut self,
        prompt: PromptId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Omp>,
    ) {
        let Some(note) = self.prompts.0.get_mut(&prompt) else {
            return;
        };
        let by = note.by;
        let owes = note.owes;
        let Some(ticket) = note.ticket.take() else {
            return;
        };
        match reply {
            Ok(Answer::Admitted(Admitted::Local)) => {
                note.local = true;
                note.ticket = Some(ticket);
            }
            Ok(Answer::Admitted(Admitted::Queued(lane))) => {
                note.lane = Some(*lane);
                note.steered = *lane == Lane::Steer;
                match self.run.turn() {
                    Some(turn) if by == By::Preempt => self.hold(ticket, None, Until::Turn(turn)),
                    Some(_) | None => self.done(ticket, out),
                }
            }
            Ok(Answer::Admitted(Admitted::Duplicate)) => {
                self.prompts.0.remove(&prompt);
                self.done(ticket, out);
            }
            Ok(_) => self.done(ticket, out),
            Err(Refusal::Empty) => {
                self.prompts.0.remove(&prompt);
                if ticket.command() == "abort_and_prompt" {
                    // Its response has no way to say that there is nothing to wait for.
                    self.fail(ticket, "The message is empty", out);
                } else {
                    self.local_done(ticket, owes, out);
                }
            }
            Err(why) => {
                self.prompts.0.remove(&prompt);
                let error = if *why == Refusal::Busy {
                    BUSY.into()
                } else {
                    refusal(why)
                };
                self.fail(ticket, &error, out);
            }
        }
    }

    /// Handled without the model: for a `prompt` that is its completion.
    fn local_done(&mut self, ticket: Ticket, tells: bool, out: &mut Outbox<Omp>) {
        if tells {
            let ack = PromptAck {
                agent_invoked: Some(false),
                ..PromptAck::default()
            };
            self.data(ticket, &Data::Prompt(ack), out);
        } else {
            self.done(ticket, out);
        }
    }

    /// It waits now, or moved.
    pub(super) fn queued(&mut self, prompt: PromptId, lane: Lane, out: &mut Outbox<Omp>) {
        if let Some(note) = self.prompts.0.get_mut(&prompt) {
            note.lane = Some(lane);
            note.steered = lane == Lane::Steer;
            if note.by != By::Preempt {
                self.queue_update(out);
            }
        }
    }

    /// It enters the history.
    pub(super) fn applied(&mut self, prompt: PromptId, out: &mut Outbox<Omp>) {
        if let Some(note) = self.prompts.0.get_mut(&prompt) {
            note.applied = true;
            let showed = note.shows();
            note.lane = None;
            if showed {
                self.queue_update(out);
            }
        }
    }

    /// Its one end. The end of one that was applied in the open run waits for the run's.
    pub(super) fn prompt_ended(&mut self, prompt: PromptId, end: &End, out: &mut Outbox<Omp>) {
        let in_run = self.run.turn().is_some();
        let Some(note) = self.prompts.0.get_mut(&prompt) else {
            return;
        };
        if note.applied && in_run && !end.is_unapplied() {
            note.ended = Some(end.clone());
            return;
        }
        self.end_prompt(prompt, end, out);
    }

    fn end_prompt(&mut self, prompt: PromptId, end: &End, out: &mut Outbox<Omp>) {
        let Some(note) = self.prompts.0.remove(&prompt) else {
            return;
        };
        let showed = note.shows();
        match note.ticket {
            Some(ticket) if note.local => self.local_done(ticket, note.owes, out),
            // An agent that ends what it never admitted.
            Some(ticket) => self.fail(ticket, "It ended before it was admitted", out),
            None if note.owes && !note.local => {
                self.prompt_result(note.id.as_deref(), end, out);
            }
            None => {}
        }
        if showed {
            self.queue_update(out);
        }
    }

    /// The run is over: the ends that waited for it.
    pub(super) fn end_waiting_prompts(&mut self, out: &mut Outbox<Omp>) {
        let waiting: Vec<(PromptId, End)> = self
            .prompts
            .0
            .iter_mut()
            .filter_map(|(prompt, note)| Some((*prompt, note.ended.take()?)))
            .collect();
        for (prompt, end) in waiting {
            self.end_prompt(prompt, &end, out);
        }
    }

    /// The agent is gone: every prompt that has no answer or no end gets it.
    pub(super) fn end_all_prompts(&mut self, out: &mut Outbox<Omp>) {
        while let Some((prompt, note)) = self.prompts.0.first_key_value() {
            let prompt = *prompt;
            let end = note
                .ended
                .clone()
                .unwrap_or(End::Cancelled(CancelWhy::PeerGone));
            self.end_prompt(prompt, &end, out);
        }
    }

    fn prompt_result(&mut self, id: Option<&str>, end: &End, out: &mut Outbox<Omp>) {
        let model = self.mirror.info().map(|info| info.model.clone());
        let status = match end {
            End::Finished { .. } | End::Yielded { .. } | End::NotSaid | End::Local => {
                PromptStatus::Completed
            }
            End::Cancelled(_) | End::Dropped(_) | End::Withdrawn => PromptStatus::Aborted,
            End::Truncated(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Aborted { .. }
            | End::Incomplete(_)
            | End::Failed(_) => PromptStatus::Error,
        };
        let text = end_text(end);
        let provider_failed = end.failure();
        let from = model.as_ref().filter(|_| provider_failed.is_some());
        let error = text
            .as_deref()
            .filter(|_| status == PromptStatus::Error)
            .map(|text| PromptError {
                message: text.into(),
                provider: from
                    .and_then(|model| model.provider.as_deref())
                    .map(Str::from),
                model: from.map(|model| Str::from(&*model.model)),
                retryable: Some(provider_failed.is_some_and(|failure| failure.retryable)),
                http_status: provider_failed
                    .and_then(|failure| failure.status)
                    .map(|status| u64::from(status).into()),
                ..PromptError::default()
            });
        let settled = self.is_settling();
        let line = PromptResult {
            id: Any(id.map(Raw::trusted)),
            agent_invoked: !end.is_unapplied(),
            status: Some(status),
            session_settled: Some(settled),
            error,
            ..PromptResult::default()
        };
        self.printer.say(line, out);
    }

    /// Whether nothing runs, nothing waits, and nothing will wake the session.
    pub(super) fn is_settling(&self) -> bool {
        self.mirror.turn().is_none()
            && self.mirror.queue().is_empty()
            && self.mirror.compacting().is_none()
            && !self.prompts.is_judging()
            && !self.pending_work
            && self.own.compact.is_none()
    }

    /// Says what waits.
    fn queue_update(&mut self, out: &mut Outbox<Omp>) {
        let queued = self.queued_messages();
        let steering = queued.steering;
        let follow_up = queued.follow_up;
        let line = QueueUpdate {
            steering: steering
                .iter()
                .map(|text| Str::from(text.as_str()))
                .collect(),
            follow_up: follow_up
                .iter()
                .map(|text| Str::from(text.as_str()))
                .collect(),
            ..QueueUpdate::default()
        };
        self.printer.event(line, out);
    }

    /// The texts of what waits, in the order in which they will be heard.
    pub(super) fn queued_messages(&self) -> Queued {
        let mut queued = Queued::default();
        for (_, note) in self.waiting() {
            let list = if note.is_steering() {
                &mut queued.steering
            } else {
                &mut queued.follow_up
            };
            list.push(note.text().into());
        }
        queued
    }

    fn waiting(&self) -> impl DoubleEndedIterator<Item = (PromptId, &Note)> {
        self.mirror.queue().iter().filter_map(|waiting| {
            let note = self.prompts.0.get(&waiting.prompt)?;
            note.shows().then_some((waiting.prompt, note))
        })
    }

    /// The waiting prompt of this text.
    pub(super) fn find_queued(&self, text: &str, steering: bool, last: bool) -> Option<PromptId> {
        let mut found = self
            .waiting()
            .filter(|(_, note)| note.is_steering() == steering && note.text() == text)
            .map(|(prompt, _)| prompt);
        if last {
            found.next_back()
        } else {
            found.next()
        }
    }

    /// Whether a waiting prompt has pictures.
    pub(super) fn has_images(&self, prompt: PromptId) -> bool {
        self.prompts.0.get(&prompt).is_some_and(|note| {
            note.content
                .iter()
                .any(|block| matches!(block, Block::Media { .. }))
        })
    }

    /// What a cancel took back shows in no queue any more, all of it at once. The payload of `abort_and_restore_queue`.
    pub(super) fn restored(&mut self, prompts: &[PromptId], out: &mut Outbox<Omp>) -> Vec<u8> {
        let json = self.restorable(prompts);
        let mut showed = false;
        for prompt in prompts {
            if let Some(note) = self.prompts.0.get_mut(prompt) {
                showed |= note.shows();
                note.taken = true;
            }
        }
        if showed {
            self.queue_update(out);
        }
        json
    }

    fn restorable(&self, prompts: &[PromptId]) -> Vec<u8> {
        let mut restored = crate::protocol::omp::wire::Restored::default();
        for note in prompts
            .iter()
            .filter_map(|prompt| self.prompts.0.get(prompt))
        {
            if note.by == By::Preempt {
                continue;
            }
            let images: Vec<Kept<'_, Image<'_>>> = note
                .content
                .iter()
                .filter_map(image)
                .map(Kept::Known)
                .collect();
            let message = RestoredMessage {
                text: note.text().into(),
                images: (!images.is_empty()).then_some(images),
                ..RestoredMessage::default()
            };
            if note.is_steering() {
                restored.steering.push(message);
            } else {
                restored.follow_up.push(message);
            }
        }
        let mut json = Vec::new();
        Data::Restored(restored).encode(&mut json);
        json
    }

    /// The output of a prompt that is handled locally. `false`: the message is another's.
    pub(super) fn command_output(&mut self, message: &Message, out: &mut Outbox<Omp>) -> bool {
        if !self.prompts.is_local(message.prompt) {
            return false;
        }
        let output = CommandOutput {
            text: message.text().into(),
            ..CommandOutput::default()
        };
        self.printer.say(output, out);
        true
    }
}

/// Texts of what waits.
#[derive(Debug, Default)]
pub(super) struct Queued {
    pub(super) steering: Vec<String>,
    pub(super) follow_up: Vec<String>,
}

impl Queued {
    pub(super) fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    pub(super) fn wire(&self) -> QueuedMessages<'_> {
        QueuedMessages {
            steering: self
                .steering
                .iter()
                .map(|text| Str::from(text.as_str()))
                .collect(),
            follow_up: self
                .follow_up
                .iter()
                .map(|text| Str::from(text.as_str()))
                .collect(),
            ..QueuedMessages::default()
        }
    }
}

/// A picture of the host's.
fn media(image: &Image<'_>) -> Option<Block> {
    let ImageBlock {
        data,
        mime_type,
        url,
        ..
    } = &image.0;
    let source = match url {
        Some(url) if data.is_empty() => Source::Url((&**url).into()),
        Some(_) | None => Source::Inline {
            mime: (&**mime_type).into(),
            base64: (&**data).into(),
        },
    };
    Some(Block::Media {
        kind: MediaKind::Image,
        source,
    })
}

/// A picture to the host.
fn image(block: &Block) -> Option<Image<'_>> {
    match block {
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline { mime, base64 },
        } => Some(Image(ImageBlock {
            data: (&**base64).into(),
            mime_type: (&**mime).into(),
            ..ImageBlock::default()
        })),
        Block::Media { .. }
        | Block::Text(_)
        | Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => None,
    }
}

/// What went wrong, for ends that aren't a success or a cancel.
pub(super) fn end_text(end: &End) -> Option<Text> {
    Some(match end {
        End::Failed(failure) | End::Truncated(failure) | End::Incomplete(failure) => {
            failure.text.clone()
        }
        End::Aborted { reason } => reason.clone(),
        End::Blocked(text) => text.clone(),
        End::MaxSteps => "The limit on steps is reached".into(),
        End::BudgetExhausted(BudgetKind::Tokens) => "The token budget is used up".into(),
        End::BudgetExhausted(BudgetKind::Money) => "The budget is used up".into(),
        End::Unverified => "The end could not be verified".into(),
        End::Finished { .. }
        | End::Local
        | End::Yielded { .. }
        | End::Cancelled(_)
        | End::Dropped(_)
        | End::Withdrawn
        | End::NotSaid => return None,
    })
}
