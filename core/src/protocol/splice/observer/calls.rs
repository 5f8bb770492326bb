//! Arguments that a model writes, and calls that run.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::{ResultStatus, ToolCall, ToolResult};
use super::Here;
use super::agent::word;
use crate::frame::Place;
use crate::json::{Kind, Raw, scan_value};
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, at_member, hash};
use crate::redact::{MASK, Secrets};

/// The most ids whose arguments are joined, and the most bytes of each.
const MOST: usize = 64;
const BYTES: usize = 64 * 1024;

/// Arguments that are being written, or were.
#[derive(Debug)]
struct Written {
    id: u64,
    place: Place,
    /// `None`: longer than is kept.
    text: Option<String>,
}

/// A call that runs.
#[derive(Clone, Copy, Debug)]
struct Call {
    place: Place,
    name: u64,
    gate: Gate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    Asked,
    Allowed,
    Denied,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    written: VecDeque<Written>,
    /// Some are forgotten.
    forgotten: bool,
    calls: Ids<Call>,
    last: Option<u64>,
}

impl Calls {
    pub(super) fn blur(&mut self) {
        self.forgotten = true;
        self.written.clear();
        self.calls.blur();
        self.last = None;
    }

    pub(super) fn starts(&mut self, id: &str, place: Place) {
        let id = hash(id);
        self.written.retain(|written| written.id != id);
        if self.written.len() >= MOST {
            self.written.pop_front();
            self.forgotten = true;
        }
        self.written.push_back(Written {
            id,
            place,
            text: Some(String::new()),
        });
    }

    fn written(&mut self, id: u64) -> Option<&mut Written> {
        self.written.iter_mut().find(|written| written.id == id)
    }

    pub(super) fn piece(
        &mut self,
        id: &str,
        delta: &str,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let forgotten = self.forgotten;
        match self.written(hash(id)) {
            Some(written) => match &mut written.text {
                Some(text) if text.len() + delta.len() <= BYTES => text.push_str(delta),
                text => *text = None,
            },
            None if forgotten => {}
            None => {
                let message = String::from("no tool_call_start has this id");
                notes.add(
                    Key::DeltaAlone.rule(),
                    at_member(here.object, "id"),
                    message,
                );
            }
        }
    }

    pub(super) fn call(&mut self, line: &ToolCall<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let id = hash(line.id.as_deref().unwrap_or(""));
        if let Some(open) = self.calls.get_mut(id) {
            let at = at_member(here.object, "id").with(Dir::Agent, Some(open.place), "the call");
            let message = String::from("a call of this id is open");
            notes.add(Key::CallTwice.rule(), at, message);
        }
        if let Some(written) = self.written(id) {
            let place = written.place;
            let differs = written
                .text
                .as_deref()
                .is_some_and(|text| differs(text, line.args.get()));
            if differs {
                let at = at_member(here.object, "args").with(Dir::Agent, Some(place), "the start");
                let message = String::from("the pieces since the start make other arguments");
                notes.add(Key::Joined.rule(), at, message);
            }
        }
        let call = Call {
            place: here.place,
            name: hash(line.name.as_deref().unwrap_or("")),
            gate: Gate::Open,
        };
        self.calls.open(id, call);
        self.last = Some(id);
    }

    pub(super) fn result(
        &mut self,
        line: &ToolResult<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let known = !matches!(line.status, ResultStatus::Other(_));
        word("status", known, here.object, notes);
        let id = hash(line.id.as_deref().unwrap_or(""));
        let is_ok = line.status == ResultStatus::Ok;
        let before = self.calls.known(id);
        let at = || at_member(here.object, "id");
        match (self.calls.close(id), before) {
            (Some(call), _) => {
                let at = || At::line().with(Dir::Agent, Some(call.place), "the call");
                if let Some(name) = line.name.as_deref()
                    && hash(name) != call.name
                {
                    let message = String::from("the call has another name");
                    notes.add(Key::OtherName.rule(), at(), message);
                }
                match call.gate {
                    Gate::Asked if is_ok => {
                        let message = String::from("nobody decided, and the call went well");
                        notes.add(Key::Unsettled.rule(), at(), message);
                    }
                    Gate::Denied if is_ok => {
                        let message = String::from("the call was denied, and went well");
                        notes.add(Key::DeniedRan.rule(), at(), message);
                    }
                    Gate::Open | Gate::Asked | Gate::Allowed | Gate::Denied => {}
                }
            }
            (None, Known::Unknown) => {}
            (None, Known::Never) if self.written(id).is_some() => {
                let message = String::from("these arguments were a stage's answer: no tool ran");
                notes.add(Key::EnvelopeResult.rule(), at(), message);
            }
            (None, Known::Open | Known::Closed | Known::Never) => {
                let message = String::from("no call of this id is open");
                notes.add(Key::ResultAlone.rule(), at(), message);
            }
        }
        if self.last == Some(id) {
            self.last = None;
        }
    }

    fn gate(&mut self, id: &str, here: Here<'_, '_, '_>, notes: &mut Notes) -> Option<&mut Call> {
        let id = hash(id);
        if self.calls.known(id) != Known::Open {
            if self.calls.known(id) != Known::Unknown {
                let message = String::from("no call of this id is open");
                let at = at_member(here.object, "id");
                notes.add(Key::DecisionAlone.rule(), at, message);
            }
            return None;
        }
        self.calls.get_mut(id)
    }

    pub(super) fn permission(&mut self, id: &str, here: Here<'_, '_, '_>, notes: &mut Notes) {
        self.gate(id, here, notes);
    }

    pub(super) fn request(&mut self, id: &str, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if let Some(call) = self.gate(id, here, notes) {
            call.gate = Gate::Asked;
        }
    }

    pub(super) fn decision(
        &mut self,
        id: &str,
        allowed: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        if let Some(call) = self.gate(id, here, notes) {
            call.gate = if allowed { Gate::Allowed } else { Gate::Denied };
        }
    }

    pub(super) fn checkpoint(&mut self, _here: Here<'_, '_, '_>, notes: &mut Notes) {
        let waits = self
            .last
            .and_then(|id| self.calls.get_mut(id))
            .is_some_and(|call| matches!(call.gate, Gate::Open | Gate::Asked));
        if !waits && !self.forgotten {
            let message = String::from("no call has begun that isn't decided");
            notes.add(Key::CheckpointCall.rule(), At::line(), message);
        }
    }

    /// The run ends.
    pub(super) fn ends(&mut self, interrupted: bool, notes: &mut Notes) {
        if let (count @ 1.., first) = self.calls.close_all() {
            let place = first.map(|call| call.place);
            let mut at = At::line().with(Dir::Agent, place, "the call");
            if interrupted {
                at = at.at_most(Severity::Warning);
            }
            let message = format!("{count} open without a result");
            notes.add(Key::NoResult.rule(), at, message);
        }
    }
}

/// Whether the arguments of a call are others than the joined text. Where a secret was taken out nobody knows.
fn differs(text: &str, args: Option<Raw<'_>>) -> bool {
    if text.contains(MASK) || args.is_some_and(|args| args.as_str().contains(MASK)) {
        return false;
    }
    let Some(args) = args else {
        // What is empty is left out.
        return !matches!(text.trim(), "" | "{}" | "\"\"" | "[]" | "null");
    };
    if args.kind() == Kind::String && args.string().as_deref() == Some(text) {
        return false;
    }
    match scan_value(text.as_bytes(), &super::super::wire::RULES) {
        Ok(value) => canonical(value) != canonical(args),
        Err(_) => true,
    }
}

/// A value without what two spellings of it can differ in.
fn canonical(value: Raw<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Secrets::default().write_value(value, &mut out);
    out
}
