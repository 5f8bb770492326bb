//! The order of the lines of a run.
//!
//! Starts and ends of runs don't pair: a failed attempt that is tried again has a second start, and a run that a change
//! of the session left behind has no end. Everything inside of a run does.

use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::Any;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, at_member, hash};

/// The most messages that can be open at once before nothing is said of them.
const MOST: usize = 64;

/// A message that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    place: Place,
    id: Option<u64>,
    is_reply: bool,
}

#[derive(Debug, Default)]
pub(super) struct Run {
    open: Option<Place>,
    step: Option<Place>,
    messages: Vec<Open>,
    last_id: Option<u64>,
    calls: Ids<Place>,
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
    }

    fn in_run(&self, what: &str, notes: &mut Notes) {
        if self.open.is_none() && self.judged() {
            let message = alloc::format!("{what} outside of a run");
            notes.add(Key::OutsideRun.rule(), At::line(), message);
        }
    }

    pub(super) fn start(&mut self, place: Place) {
        self.open = Some(place);
        self.blurred = false;
        self.step = None;
        self.messages.clear();
    }

    pub(super) fn end(&mut self, notes: &mut Notes) {
        notes.tally.turns += 1;
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
    }

    pub(super) fn step_end(&mut self, notes: &mut Notes) {
        self.in_run("a step ends", notes);
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
        is_reply: bool,
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
        if self.messages.len() >= MOST {
            return self.blur();
        }
        self.messages.push(Open {
            place,
            id,
            is_reply,
        });
    }

    pub(super) fn message_update(
        &mut self,
        id: Option<&str>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        self.in_run("a reply grows", notes);
        if !self.judged() || self.open.is_none() {
            return;
        }
        match self.messages.last().copied() {
            Some(open) if open.is_reply => Self::same_id(open, id, object, notes),
            Some(_) | None => {
                notes.add(
                    Key::Messages.rule(),
                    At::line(),
                    String::from("no reply is open that could grow"),
                );
            }
        }
    }

    pub(super) fn message_end(
        &mut self,
        is_reply: bool,
        id: Option<&str>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let open = self.messages.pop();
        if !self.judged() {
            return;
        }
        match open {
            Some(open) if open.is_reply == is_reply => Self::same_id(open, id, object, notes),
            Some(_) | None => {
                notes.add(
                    Key::Messages.rule(),
                    At::line(),
                    String::from("a message ends that hasn't begun"),
                );
            }
        }
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
