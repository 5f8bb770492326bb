//! Requests of the host, and their responses.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::{ControlRequest, Operation, Response, Tag};
use super::{Here, Watcher};
use crate::frame::Place;
use crate::protocol::observer::{At, Known, Notes, Severity, Sides, at_member, hash};

/// The most requests that are remembered as open.
const MOST: usize = 65_536;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) place: Place,
    /// The operation, if the contract has it.
    pub(super) operation: &'static str,
    /// The contract's words for it, if it is none of its operations: `set_provider`.
    pub(super) is_provider: bool,
    /// It has members beside its name.
    pub(super) has_fields: bool,
    /// It lacks a member: whoever can't read it says so.
    pub(super) is_broken: bool,
    /// Which line of the host it is.
    pub(super) number: u64,
    /// It may not be answered.
    excused: bool,
}

/// The id of a request: all that aren't texts are alike.
fn key(id: &Tag<'_>) -> u64 {
    match id {
        Tag::Absent => 0,
        Tag::Name(name) => hash(name) | 2,
        Tag::Other(_) => 1,
    }
}

/// Requests that wait.
#[derive(Debug, Default)]
pub(super) struct Control {
    waiting: BTreeMap<u64, Vec<Waiting>>,
    count: usize,
    unsure: bool,
}

impl Control {
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    /// Whether a request of this id waits.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.waiting.contains_key(&(hash(id) | 2))
    }

    fn ask(&mut self, id: &Tag<'_>, waiting: Waiting) {
        if self.count >= MOST {
            self.unsure = true;
            return;
        }
        self.count += 1;
        self.waiting.entry(key(id)).or_default().push(waiting);
    }

    fn take(&mut self, id: &Tag<'_>) -> Option<Waiting> {
        let key = key(id);
        let list = self.waiting.get_mut(&key)?;
        let found = (!list.is_empty()).then(|| list.remove(0));
        if list.is_empty() {
            self.waiting.remove(&key);
        }
        self.count -= usize::from(found.is_some());
        found
    }

    /// The first request that got no response.
    pub(super) fn unanswered(&self) -> Option<Waiting> {
        let waiting = self.waiting.values().flatten();
        let owed = waiting.filter(|waiting| !waiting.excused && !self.unsure);
        owed.min_by_key(|waiting| waiting.number).copied()
    }
}

impl Watcher {
    /// A request of the host.
    pub(super) fn host_asks(
        &mut self,
        request: &ControlRequest<'_>,
        excused: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) -> &'static str {
        let id = &request.request_id;
        if self.control.waiting.contains_key(&key(id)) {
            let at = at_member(here.object, "request_id");
            let message = String::from("a request of this id waits for its response");
            notes.add(Key::HostRequestId.rule(), at, message);
        }
        let subtype = request.subtype();
        let name = subtype.name().unwrap_or_default();
        let operation = Operation::TAGS.iter().find(|tag| **tag == name);
        let operation = operation.copied().unwrap_or_default();
        let waiting = Waiting {
            place: here.place,
            operation,
            is_provider: name == "set_provider",
            has_fields: request.has_fields(),
            is_broken: request.operation().is_err(),
            number: self.host_lines,
            excused,
        };
        self.control.ask(id, waiting);
        operation
    }

    /// A response of the agent.
    pub(super) fn agent_answers(
        &mut self,
        response: Option<&Response<'_>>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) -> &'static str {
        let at = || at_member(here.object, "response");
        let Some(response) = response else {
            let message = String::from("there is no body");
            notes.add(Key::ResponseShape.rule(), at(), message);
            self.control.blur();
            return "";
        };
        if let Some(message) = odd(response) {
            notes.add(Key::ResponseShape.rule(), at(), String::from(message));
        }
        if here.sides != Sides::Both {
            return "";
        }
        if let Some(waiting) = self.control.take(&response.request_id) {
            self.asks.open.read_to(waiting.number);
            self.answered(&waiting, response, here, notes);
            return waiting.operation;
        }
        if self.control.unsure {
            return "";
        }
        let own = response.request_id.name().map(hash);
        let asked = own.map_or(Known::Never, |id| self.asks.open.known(id));
        let (key, message) = match (asked, own.map(|id| self.asks.echo(id))) {
            (Known::Unknown, _) | (_, Some(Known::Open | Known::Unknown)) => return "",
            (Known::Open, _) => (
                Key::Echo,
                "the host hasn't answered the request that it repeats",
            ),
            (Known::Closed, _) => (Key::Echo, "it was repeated, or matched nothing"),
            (Known::Never, _) => (Key::Uncaused, "no request of this id waits for a response"),
        };
        notes.add(key.rule(), at(), String::from(message));
        ""
    }
}

/// What is wrong with a response of an agent by itself.
fn odd(response: &Response<'_>) -> Option<&'static str> {
    match response.subtype.name() {
        Some("success") => {
            let has = !matches!(response.error, super::super::wire::Maybe::Absent);
            has.then_some("a success has no error")
        }
        Some("error") if response.response.get().is_some() => Some("an error has no payload"),
        Some("error") => {
            let says = response.error_text();
            let blank = says.is_none_or(|text| text.trim().is_empty());
            blank.then_some("an error says why")
        }
        Some(_) | None => Some("it is neither a success nor an error"),
    }
}

/// A finding about a response of the agent. `most`: how bad it can be.
pub(super) fn about(
    key: Key,
    waiting: &Waiting,
    most: Severity,
    message: &str,
    here: Here<'_, '_, '_>,
    notes: &mut Notes,
) {
    let at: At = at_member(here.object, "response").at_most(most).with(
        crate::protocol::observer::Dir::Host,
        Some(waiting.place),
        "the request",
    );
    notes.add(key.rule(), at, String::from(message));
}
