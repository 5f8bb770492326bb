//! The book of prompts: which were accepted, what waits, and what is told of each.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;

use super::Face;
use super::turn::Stopped;
use crate::json::Raw;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::RecordForm;
use crate::protocol::agentx::wire::{
    AgentLine, CommandLifecycle, Kept, LifecycleState, LocalCommandOutput, Maybe, User,
};
use crate::vocab::*;

/// Prompts that may wait, and their bytes (WIRE-020).
pub(super) const MOST_QUEUED: usize = 128;
pub(super) const MOST_QUEUED_BYTES: usize = 16 << 20;
/// What each adds to its own bytes.
const OVERHEAD: usize = 256;
/// Ids of accepted prompts that are remembered.
const MOST_ACCEPTED: usize = 65_536;

/// A prompt.
#[derive(Clone, Debug)]
pub(super) struct Note {
    /// The host's own id of it.
    pub(super) uuid: Option<Text>,
    /// What its replay says, as JSON, until it was said.
    replay: Option<String>,
    /// Its share of the queue.
    booked: usize,
    admitted: bool,
    applied: bool,
    local: bool,
    /// Background for the model: it gets no result.
    context: bool,
    /// It wants to run now.
    preempts: bool,
}

impl Note {
    pub(super) fn is_local(&self) -> bool {
        self.local
    }

    pub(super) fn is_context(&self) -> bool {
        self.context
    }

    pub(super) fn is_applied(&self) -> bool {
        self.applied
    }

    /// The id under which its fate is told.
    pub(super) fn lifecycle(&self) -> Option<Text> {
        self.uuid.clone().filter(|_| self.admitted)
    }
}

/// Where a prompt of some id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// No such prompt.
    New,
    /// It waits for its turn.
    Queued,
    /// It was accepted, and waits no more.
    Accepted,
}

/// The book.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    notes: BTreeMap<PromptId, Note>,
    /// Messages of an earlier process, by the host's ids of them.
    earlier: BTreeMap<Text, MessageId>,
    /// Ids of accepted prompts, and their prompts of this process.
    accepted: BTreeMap<Text, Option<PromptId>>,
    order: VecDeque<Text>,
    queued: usize,
    bytes: usize,
}

/// What is to be booked.
#[derive(Debug)]
pub(super) struct Booking {
    pub(super) uuid: Option<Text>,
    pub(super) replay: Option<String>,
    /// The id under which it is replayed, where the host gave it none.
    pub(super) told: Option<Text>,
    /// The sum of its fields, or the bytes of its line, whichever is more.
    pub(super) bytes: usize,
    pub(super) context: bool,
    pub(super) preempts: bool,
}

impl Prompts {
    /// A book in which the prompts of an earlier process stand.
    pub(super) fn of(accepted: &[Text]) -> Self {
        let mut prompts = Prompts::default();
        for uuid in accepted {
            prompts.accept(uuid.clone(), None);
        }
        prompts
    }

    fn accept(&mut self, uuid: Text, prompt: Option<PromptId>) {
        if self.accepted.insert(uuid.clone(), prompt).is_none() {
            self.order.push_back(uuid);
        }
        if self.order.len() > MOST_ACCEPTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.accepted.remove(&oldest);
            self.earlier.remove(&oldest);
        }
    }

    /// Whether a prompt of that id was seen.
    pub(super) fn seen(&self, uuid: &str) -> Seen {
        match self.accepted.get(uuid) {
            None => Seen::New,
            Some(prompt) => {
                let note = prompt.and_then(|prompt| self.notes.get(&prompt));
                if note.is_some_and(|note| !note.applied && note.booked > 0) {
                    Seen::Queued
                } else {
                    Seen::Accepted
                }
            }
        }
    }

    /// Whether so many more bytes fit into the queue.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.queued < MOST_QUEUED
            && self.bytes.saturating_add(bytes).saturating_add(OVERHEAD) <= MOST_QUEUED_BYTES
    }

    /// A prompt goes to the agent.
    pub(super) fn book(&mut self, prompt: PromptId, booking: Booking) {
        let booked = booking.bytes.saturating_add(OVERHEAD);
        self.queued += 1;
        self.bytes = self.bytes.saturating_add(booked);
        for uuid in booking.uuid.iter().chain(&booking.told) {
            self.accept(uuid.clone(), Some(prompt));
        }
        self.notes.insert(
            prompt,
            Note {
                uuid: booking.uuid,
                replay: booking.replay,
                booked,
                admitted: false,
                applied: false,
                local: false,
                context: booking.context,
                preempts: booking.preempts,
            },
        );
    }

    fn unbook(&mut self, prompt: PromptId) {
        if let Some(note) = self.notes.get_mut(&prompt) {
            let booked = core::mem::take(&mut note.booked);
            if booked > 0 {
                self.queued = self.queued.saturating_sub(1);
                self.bytes = self.bytes.saturating_sub(booked);
            }
        }
    }

    /// The agent takes it. Its id, if it has one.
    pub(super) fn admitted(&mut self, prompt: PromptId, how: Admitted) -> Option<&Note> {
        if how == Admitted::Local {
            self.unbook(prompt);
        }
        let note = self.notes.get_mut(&prompt)?;
        note.admitted = true;
        note.local = how == Admitted::Local;
        Some(note)
    }

    /// The agent doesn't take it: as if it had never been sent.
    pub(super) fn refused(&mut self, prompt: PromptId) -> Option<Note> {
        self.unbook(prompt);
        let note = self.notes.remove(&prompt)?;
        if let Some(uuid) = &note.uuid {
            self.accepted.remove(uuid);
            // It came lately.
            if let Some(at) = self.order.iter().rposition(|known| known == uuid) {
                self.order.remove(at);
            }
        }
        Some(note)
    }

    /// It enters the history: its id and its replay.
    pub(super) fn applied(&mut self, prompt: PromptId) -> Option<(Option<Text>, Option<String>)> {
        self.unbook(prompt);
        let note = self.notes.get_mut(&prompt)?;
        note.applied = true;
        Some((note.uuid.clone(), note.replay.take()))
    }

    /// The replay of a prompt that is handled without the model.
    pub(super) fn take_replay(&mut self, prompt: PromptId) -> Option<String> {
        self.notes.get_mut(&prompt)?.replay.take()
    }

    /// Its one end.
    pub(super) fn ended(&mut self, prompt: PromptId) -> Option<Note> {
        self.unbook(prompt);
        self.notes.remove(&prompt)
    }

    /// Whether its end hasn't come.
    pub(super) fn is_open(&self, prompt: PromptId) -> bool {
        self.notes.contains_key(&prompt)
    }

    /// Whether the agent answers it by itself.
    pub(super) fn is_local(&self, prompt: Option<PromptId>) -> bool {
        prompt
            .and_then(|prompt| self.notes.get(&prompt))
            .is_some_and(|note| note.local)
    }

    /// The id under which its fate is told.
    pub(super) fn lifecycle(&self, prompt: PromptId) -> Option<Text> {
        self.notes.get(&prompt).and_then(Note::lifecycle)
    }

    /// The host's id of it.
    pub(super) fn uuid(&self, prompt: PromptId) -> Option<&Text> {
        self.notes.get(&prompt)?.uuid.as_ref()
    }

    /// A message of that id was said before: it isn't taken again.
    pub(super) fn stood(&mut self, uuid: Text) {
        self.accept(uuid, None);
    }

    /// A prompt that an earlier process took stands in the history as this message.
    pub(super) fn stands(&mut self, uuid: Text, message: MessageId) {
        self.accept(uuid.clone(), None);
        self.earlier.insert(uuid, message);
    }

    /// To where the files of a prompt go back.
    pub(super) fn rewind_to(&self, uuid: &str) -> Option<RewindTo> {
        match self.prompt(uuid) {
            Some(prompt) => Some(RewindTo::Prompt(prompt)),
            None => self.earlier.get(uuid).copied().map(RewindTo::Message),
        }
    }

    /// The prompt of that id that this process took.
    pub(super) fn prompt(&self, uuid: &str) -> Option<PromptId> {
        *self.accepted.get(uuid)?
    }

    /// The prompt of that id that waits.
    pub(super) fn waiting(&self, uuid: &str) -> Option<PromptId> {
        let prompt = self.prompt(uuid)?;
        let note = self.notes.get(&prompt)?;
        (!note.applied && note.booked > 0).then_some(prompt)
    }

    /// Whether one that the agent took hasn't been applied, nor ended.
    pub(super) fn has_unapplied(&self) -> bool {
        let mut notes = self.notes.values();
        notes.any(|note| note.admitted && !note.applied && !note.local)
    }

    /// Prompts that have no end yet.
    pub(super) fn open(&self) -> impl Iterator<Item = PromptId> + '_ {
        self.notes.keys().copied()
    }
}

impl Face {
    /// The agent's answer to a prompt.
    pub(super) fn prompt_replied(
        &mut self,
        prompt: PromptId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Agentx>,
    ) {
        match reply {
            Ok(answer) => {
                let how = answer.admitted().unwrap_or(Admitted::Started);
                if how == Admitted::Duplicate {
                    self.prompts.ended(prompt);
                    return;
                }
                let note = self.prompts.admitted(prompt, how);
                if note.is_some_and(|note| note.preempts)
                    && matches!(how, Admitted::Queued(_))
                    && let Some(turn) = &mut self.turn
                {
                    turn.stopped.get_or_insert(Stopped::Preempted);
                }
                if how == Admitted::Local {
                    if let Some(replay) = self.prompts.take_replay(prompt) {
                        self.replay(&replay, out);
                    }
                } else {
                    self.lifecycle(prompt, LifecycleState::Queued, out);
                }
            }
            Err(why) => {
                if let Some(note) = self.prompts.refused(prompt) {
                    let error = super::control::refusal(why);
                    self.input_error(note.uuid.as_deref(), &error, out);
                }
            }
        }
    }

    /// Says what becomes of a prompt.
    pub(super) fn lifecycle(
        &mut self,
        prompt: PromptId,
        state: LifecycleState<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let uuid = self.prompts.lifecycle(prompt);
        self.lifecycle_of(uuid, state, out);
    }

    /// The same, of one that has ended.
    pub(super) fn lifecycle_of(
        &mut self,
        uuid: Option<Text>,
        state: LifecycleState<'_>,
        out: &mut Outbox<Agentx>,
    ) {
        let told = self.config.policy.record_form == RecordForm::Provider;
        let Some(uuid) = uuid.filter(|_| told) else {
            return;
        };
        let stamp = self.printer.stamp();
        let line = CommandLifecycle {
            command_uuid: (&*uuid).into(),
            state,
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..CommandLifecycle::default()
        };
        self.printer.say(line, out);
    }

    /// Repeats a prompt: its members as JSON, up to those that every record has.
    pub(super) fn replay(&mut self, replay: &str, out: &mut Outbox<Agentx>) {
        let session = alloc::string::String::from(self.printer.session());
        let mut line: User<'_> = Raw::trusted(replay).decode().unwrap_or_default();
        line.session_id = Some(session.as_str().into());
        line.is_replay = Some(true);
        if matches!(line.parent_tool_use_id, Maybe::Absent) {
            line.parent_tool_use_id = Maybe::Null;
        }
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    /// What a prompt that is handled without the model gave.
    pub(super) fn local_output(&mut self, text: &str, out: &mut Outbox<Agentx>) {
        let stamp = self.printer.stamp();
        let line = LocalCommandOutput {
            content: text.into(),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..LocalCommandOutput::default()
        };
        self.printer.say(line, out);
    }

    /// A prompt that was handled without the model is done.
    pub(super) fn local_ended(&mut self, note: &Note, end: &End, out: &mut Outbox<Agentx>) {
        self.result_without_turn(note.uuid.as_ref(), end, out);
        if self.turn.is_none() {
            self.idle(out);
        }
    }

    /// A prompt ended and was never applied: the turn that it began has its result, or it gets one of its own.
    pub(super) fn unapplied_ended(&mut self, note: &Note, end: &End, out: &mut Outbox<Agentx>) {
        if let Some(over) = self.over.as_mut().filter(|over| over.unapplied) {
            over.turn.uuids.extend(note.uuid.clone());
            return self.finish_turn(out);
        }
        self.result_without_turn(note.uuid.as_ref(), end, out);
        if self.turn.is_none() {
            self.idle(out);
        }
    }

    /// A message of a user that nobody wrote: a result, or words of the agent's own. Its record's id.
    pub(super) fn say_user(
        &mut self,
        content: alloc::vec::Vec<crate::protocol::agentx::wire::Block<'_>>,
        extra: UserExtra<'_>,
        out: &mut Outbox<Agentx>,
    ) -> String {
        use crate::protocol::agentx::wire::{Any, Content, Role, Said, UserMessage};
        let rich = self.config.policy.record_form == RecordForm::Provider;
        let stamp = self.printer.stamp();
        let time = super::reply::timestamp(self.now);
        let message = UserMessage {
            role: Some(Role::User),
            content: Content::Blocks(content.into_iter().map(Kept::Known).collect()),
            ..UserMessage::default()
        };
        let line = User {
            message: Some(Kept::Known(Said::from(message))),
            parent_tool_use_id: super::reply::parent(extra.parent),
            session_id: Some((&*stamp.session).into()),
            uuid: Some(stamp.uuid.as_str().into()),
            timestamp: rich.then(|| time.as_str().into()),
            tool_use_result: extra.details.map_or(Any::ABSENT, |json| Any(Some(json))),
            is_synthetic: (extra.synthetic || !rich).then_some(true),
            ..User::default()
        };
        if let Some(turn) = &mut self.turn {
            turn.user_records += 1;
        }
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
        drop(line);
        stamp.uuid
    }
}

/// What a user's record has besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UserExtra<'a> {
    pub(super) parent: Option<&'a str>,
    pub(super) details: Option<Raw<'a>>,
    pub(super) synthetic: bool,
}
