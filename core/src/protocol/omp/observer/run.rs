//! The order of the lines of a run.
//!
//! Starts and ends of runs don't pair: a failed attempt that is tried again has a second start, and a run that a change
//! of the session left behind has no end. Everything inside of a run does.

use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::{AgentEnd, Any, Message, TurnEnd, Update, role_of};
use super::reply::{Reply, Step};
use crate::frame::Place;
use crate::json::{Object, Raw};
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, at_member, hash};

/// The most messages that can be open at once before nothing is said of them.
const MOST: usize = 64;

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: Place,
    id: Option<u64>,
    what: Said,
}

/// Whose message it is, as far as order goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    User,
    Reply,
    /// Of the call with this hash.
    Result(u64),
    Other,
}

impl Said {
    /// That of a message that needn't be whole.
    pub(super) fn of(message: Raw<'_>) -> Self {
        match role_of(message).as_deref() {
            Some("user") => Said::User,
            Some("assistant") => Said::Reply,
            Some("toolResult") => {
                let call = message.get_last("toolCallId").and_then(Raw::string);
                Said::Result(hash(&call.unwrap_or_default()))
            }
            Some(_) | None => Said::Other,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Run {
    open: Option<Place>,
    step: Option<Place>,
    messages: Vec<Open>,
    last_id: Option<u64>,
    calls: Ids<Place>,
    reply: Reply,
    said: Step,
    /// Messages of the run that are whole.
    messages_said: u64,
    /// Something has said that the run begins again.
    again: bool,
    /// The attempt that the last retry announced.
    attempt: Option<u64>,
    compacting: bool,
    /// A retry was announced, and hasn't begun.
    retrying: bool,
    /// The last run said that it goes on: nothing is completed, and the session hasn't settled.
    goes_on: bool,
    resumes: bool,
    /// A filter hides events, or did, or nobody knows.
    filtered: bool,
    /// A line couldn't be read, or events were hidden: nothing is said until the next run.
    blurred: bool,
}

impl Run {
    pub(super) fn is_filtered(&self) -> bool {
        self.filtered
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether order is judged.
    fn judged(&self) -> bool {
        !self.filtered && !self.blurred
    }

    pub(super) fn blur(&mut self) {
        self.blurred = true;
        self.step = None;
        self.messages.clear();
        self.calls.blur();
        self.reply.clear();
        self.said.blur();
        self.again = true;
        self.attempt = None;
        self.compacting = true;
        self.retrying = false;
        self.goes_on = false;
        self.resumes = false;
    }

    /// A filter was set.
    pub(super) fn filter(&mut self) {
        self.filtered = true;
        self.blur();
    }

    /// The session has changed: what was open is left behind.
    pub(super) fn detach(&mut self) {
        self.open = None;
        self.step = None;
        self.messages.clear();
        self.calls.close_all();
        self.reply.clear();
        self.attempt = None;
        self.retrying = false;
        self.goes_on = false;
        self.resumes = false;
    }

    fn in_run(&self, what: &str, notes: &mut Notes) {
        if self.open.is_none() && self.judged() {
            let message = alloc::format!("{what} outside of a run");
            notes.add(Key::OutsideRun.rule(), At::line(), message);
        }
    }

    pub(super) fn start(&mut self, place: Place, notes: &mut Notes) {
        if let Some(open) = self.open
            && self.judged()
            && !self.again
        {
            let at = At::line().with(Dir::Agent, Some(open), "the start of the run");
            notes.add(
                Key::Again.rule(),
                at,
                String::from("a run begins within a run"),
            );
        }
        self.open = Some(place);
        self.again = false;
        self.retrying = false;
        self.goes_on = false;
        self.resumes = false;
        self.blurred = false;
        self.step = None;
        self.messages.clear();
        self.reply.clear();
        self.messages_said = 0;
    }

    /// `leaves`: the host's input has ended, or that isn't known; what is open is left so.
    pub(super) fn end(
        &mut self,
        end: &AgentEnd<'_>,
        leaves: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        notes.tally.turns += 1;
        self.in_run("a run ends", notes);
        if self.judged() && self.open.is_some() {
            let told = end.message_count.unwrap_or(end.messages.len() as u64);
            if told != self.messages_said && !was_cut(object) {
                let message = alloc::format!(
                    "the run had {} messages, and its end tells {told}",
                    self.messages_said
                );
                let at = at_member(object, "messages").at_most(Severity::Warning);
                notes.add(Key::Told.rule(), at, message);
            }
            if end.awaiting_async_work == Some(true) && end.is_terminal != Some(false) {
                let at = at_member(object, "isTerminal").at_most(Severity::Warning);
                notes.add(
                    Key::Told.rule(),
                    at,
                    String::from("a run that awaits work is called terminal"),
                );
            }
            if self.attempt.is_some() && end.yielded != Some(false) && !leaves {
                notes.add(
                    Key::Retries.rule(),
                    At::line(),
                    String::from("no auto_retry_end has come"),
                );
            }
        }
        self.attempt = self.attempt.filter(|_| end.yielded == Some(false));
        self.retrying = false;
        self.goes_on = end.yielded == Some(false);
        self.resumes = end.is_terminal == Some(false);
        if self.judged() {
            if let Some(step) = self.step {
                let at = At::line().with(Dir::Agent, Some(step), "the step");
                notes.add(
                    Key::Steps.rule(),
                    at,
                    String::from("a step is open at the end of the run"),
                );
            }
            let (open, first) = self.calls.close_all();
            if open > 0 {
                let at = At::line()
                    .at_most(Severity::Info)
                    .with(Dir::Agent, first, "the call");
                notes.add(
                    Key::Tools.rule(),
                    at,
                    String::from("a call is open at the end of the run"),
                );
            }
        }
        self.open = None;
        self.step = None;
        self.messages.clear();
    }

    pub(super) fn step_start(&mut self, place: Place, notes: &mut Notes) {
        self.in_run("a step begins", notes);
        if let Some(step) = self.step
            && self.judged()
        {
            let at = At::line().with(Dir::Agent, Some(step), "the open step");
            notes.add(
                Key::Steps.rule(),
                at,
                String::from("a step begins within a step"),
            );
        }
        self.step = Some(place);
        self.said.clear();
    }

    pub(super) fn step_end(
        &mut self,
        end: &TurnEnd<'_>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        self.in_run("a step ends", notes);
        if self.judged() && self.step.is_some() {
            let calls = end.tool_results.iter().map(|result| {
                let id = result.get_last("toolCallId").and_then(Raw::string);
                hash(&id.unwrap_or_default())
            });
            if !self.said.told(calls) && !was_cut(object) {
                notes.add(
                    Key::Told.rule(),
                    at_member(object, "toolResults"),
                    String::from("the results aren't those of the step"),
                );
            }
            if self.said.lacks_a_result() {
                notes.add(
                    Key::Results.rule(),
                    At::line(),
                    String::from("a call has no result at the end of its step"),
                );
            }
        }
        if self.judged() && self.open.is_some() {
            if self.step.is_none() {
                notes.add(
                    Key::Steps.rule(),
                    At::line(),
                    String::from("a step ends that hasn't begun"),
                );
            }
            if let Some(open) = self.messages.last() {
                let at = At::line().with(Dir::Agent, Some(open.place), "the message");
                notes.add(
                    Key::Messages.rule(),
                    at,
                    String::from("a message is open at the end of its step"),
                );
            }
        }
        self.step = None;
        self.messages.clear();
    }

    pub(super) fn message_start(
        &mut self,
        what: Said,
        id: Option<&str>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = id.map(hash);
        if id.is_some() && id == self.last_id && self.judged() {
            notes.add(
                Key::MessageIds.rule(),
                at_member(object, "messageId"),
                String::from("an earlier message had this id"),
            );
        }
        self.last_id = id.or(self.last_id);
        if what == Said::Reply {
            self.reply.clear();
        }
        if self.step.is_none() && self.open.is_some() && self.judged() {
            let severity = match what {
                Said::Reply | Said::Result(_) => Some(Severity::Error),
                Said::User => Some(Severity::Warning),
                // A notice can be shown at any time.
                Said::Other => None,
            };
            if let Some(severity) = severity {
                notes.add(
                    Key::Messages.rule(),
                    At::line().at_most(severity),
                    String::from("a message begins outside of a step"),
                );
            }
        }
        if let Said::Result(call) = what
            && self.calls.known(call) == Known::Open
            && self.judged()
        {
            notes.add(
                Key::Results.rule(),
                at_member(object, "message"),
                String::from("the call still runs"),
            );
        }
        if self.messages.len() >= MOST {
            return self.blur();
        }
        self.messages.push(Open { place, id, what });
    }

    pub(super) fn message_update(
        &mut self,
        update: &Update<'_>,
        id: Option<&str>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        self.in_run("a reply grows", notes);
        if !self.judged() || self.open.is_none() {
            return;
        }
        match self.messages.last().copied() {
            Some(open) if open.what == Said::Reply => {
                Self::same_id(open, id, object, notes);
                if let Err(message) = self.reply.grow(update) {
                    let at = at_member(object, "assistantMessageEvent");
                    notes.add(Key::Blocks.rule(), at, String::from(message));
                }
            }
            Some(_) | None => {
                notes.add(
                    Key::Messages.rule(),
                    At::line(),
                    String::from("no reply is open that could grow"),
                );
            }
        }
    }

    /// `message`: what was said, if it could be read.
    pub(super) fn message_end(
        &mut self,
        (what, message): (Said, Option<&Message<'_>>),
        id: Option<&str>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let open = self.messages.pop();
        self.messages_said += 1;
        if !self.judged() {
            return;
        }
        if let Some(message) = message
            && self.open.is_some()
        {
            self.whole(message, object, notes);
        } else {
            self.said.blur();
        }
        match open {
            Some(open) if open.what == what => Self::same_id(open, id, object, notes),
            Some(_) | None => {
                notes.add(
                    Key::Messages.rule(),
                    At::line(),
                    String::from("a message ends that hasn't begun"),
                );
            }
        }
    }

    /// A message is whole.
    fn whole(&mut self, message: &Message<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        let at = at_member(object, "message");
        if let Message::Assistant(reply) = message {
            if let Err((excused, message)) = self.reply.end(reply) {
                let at = if excused {
                    at.at_most(Severity::Warning)
                } else {
                    at
                };
                notes.add(Key::Blocks.rule(), at, String::from(message));
            }
            if was_cut(object) {
                self.said.blur();
            }
            self.said.reply(reply);
        } else if let Message::ToolResult(result) = message {
            let is_error = result.is_error.unwrap_or_default();
            match self.said.result(&result.tool_call_id, is_error) {
                Ok(true) => {}
                Ok(false) => {
                    notes.add(
                        Key::Told.rule(),
                        at.at_most(Severity::Warning),
                        String::from("tool_execution_end had another isError"),
                    );
                }
                Err(message) => {
                    notes.add(Key::Results.rule(), at, String::from(message));
                }
            }
        }
    }

    /// A tool has ended, well or not.
    pub(super) fn tool_ended(&mut self, id: &str, is_error: Option<bool>) {
        if let Some(is_error) = is_error {
            self.said.tool_ended(id, is_error);
        }
    }

    /// A retry is announced.
    pub(super) fn retry(&mut self, attempt: u64, most: u64, notes: &mut Notes) {
        let next = self.attempt.map_or(1, |last| last.saturating_add(1));
        let counts = attempt == 1 || attempt == next;
        if self.judged() && (!counts || attempt > most || self.retrying) {
            let message = alloc::format!("attempt {attempt} of {most} follows {}", next - 1);
            notes.add(Key::Retries.rule(), At::line(), message);
        }
        self.attempt = Some(attempt);
        self.again = true;
        self.retrying = true;
    }

    /// The retries have ended.
    pub(super) fn retried(&mut self, attempt: u64, notes: &mut Notes) {
        if self.attempt.take() != Some(attempt) && self.judged() {
            notes.add(
                Key::Retries.rule(),
                At::line(),
                String::from("this isn't the attempt that has begun"),
            );
        }
        self.retrying = false;
    }

    /// The history is being summarised.
    pub(super) fn compacts(&mut self) {
        self.compacting = true;
    }

    /// It was, or not.
    pub(super) fn compacted(&mut self, notes: &mut Notes) {
        if !core::mem::take(&mut self.compacting) && self.judged() {
            notes.add(
                Key::Retries.rule(),
                At::line(),
                String::from("no compaction has begun"),
            );
        }
        self.again = true;
    }

    /// Another model takes over.
    pub(super) fn falls_back(&mut self) {
        self.again = true;
    }

    /// A prompt has ended. `settled`: and the session with it; nothing else is known to have ended the run.
    pub(super) fn prompt_ended(&self, settled: bool, object: &Object<'_, '_>, notes: &mut Notes) {
        if let Some(open) = self.open
            && self.judged()
        {
            let member = if settled { "sessionSettled" } else { "status" };
            let at = at_member(object, member).with(Dir::Agent, Some(open), "the start of the run");
            notes.add(
                Key::EndedEarly.rule(),
                at,
                String::from("the run is still open"),
            );
        } else if self.judged() && (self.goes_on || self.resumes && settled) {
            notes.add(
                Key::EndedEarly.rule(),
                At::line().at_most(Severity::Warning),
                String::from("the run that has ended goes on"),
            );
        }
    }

    /// Where the open run began, if order is judged.
    pub(super) fn opened_at(&self) -> Option<Place> {
        self.open.filter(|_| self.judged())
    }

    fn same_id(open: Open, id: Option<&str>, object: &Object<'_, '_>, notes: &mut Notes) {
        if open.id != id.map(hash) {
            let at = at_member(object, "messageId").with(Dir::Agent, Some(open.place), "its start");
            notes.add(
                Key::MessageIds.rule(),
                at,
                String::from("the message began with another id"),
            );
        }
    }

    pub(super) fn tool_start(
        &mut self,
        id: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        notes.tally.tool_calls += 1;
        self.in_run("a tool runs", notes);
        let id = hash(id);
        if self.calls.known(id) == Known::Open && self.judged() {
            let first = self.calls.get_mut(id).copied();
            let at =
                at_member(object, "toolCallId").with(Dir::Agent, first, "the call that is open");
            notes.add(
                Key::Tools.rule(),
                at.at_most(Severity::Warning),
                String::from("a call of this id is open"),
            );
        }
        self.calls.open(id, place);
    }

    /// An update, or the end.
    pub(super) fn tool(
        &mut self,
        id: &str,
        ends: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(id);
        let known = self.calls.known(id);
        if ends {
            self.calls.close(id);
        }
        let at = at_member(object, "toolCallId");
        let (at, message) = match known {
            Known::Open | Known::Unknown => return,
            Known::Closed if ends => (at, "the call has ended before"),
            Known::Closed => (
                at.at_most(Severity::Info),
                "the call has ended before its update",
            ),
            Known::Never => (at, "no call of this id has begun"),
        };
        if self.judged() {
            notes.add(Key::Tools.rule(), at, String::from(message));
        }
    }

    /// The abort of this host was answered.
    pub(super) fn aborted(&self, notes: &mut Notes) {
        if let Some(open) = self.open
            && self.judged()
        {
            let at = At::line().with(Dir::Agent, Some(open), "the start of the run");
            notes.add(
                Key::AbortEarly.rule(),
                at,
                String::from("the run is still open"),
            );
        }
    }
}

/// Whether a payload says that events are hidden.
pub(super) fn hides(events: Any<'_>) -> bool {
    events.get().is_some_and(|events| !events.is_null())
}

/// Whether a line was made to fit into a frame: it may lack anything.
pub(super) fn was_cut(object: &Object<'_, '_>) -> bool {
    let line = object.line();
    line.contains("elided for RPC frame]") || line.contains("\"rpcFrameElidedKeys\"")
}
