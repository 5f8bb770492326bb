//! Lines of the agent.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::spec::{MODES, ROLES, SPEC};
use super::super::wire::{Compacted, EventLine, Hello, ModeSet, ProtocolError, Transcript};
use super::super::{PROTO, PROTOCOL_VERSION};
use super::ledger::{Cause, Must};
use super::shape::agent_fault;
use super::{Last, Opening, Watcher, Wire};
use crate::frame::Place;
use crate::json::{DecodeError, Kind, Object};
use crate::protocol::observer::{At, Dir, Label, Notes, ReadLine, Severity, Sides, Text};
use crate::protocol::observer::{Known, hash};
use crate::protocol::observer::{at_field, at_member};

/// The most characters of a message in a transcript.
const MESSAGE: usize = 4096;
/// The most content of a transcript.
const TOTAL: usize = 256 * 1024;

impl Watcher {
    pub(super) fn agent(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        let most = if line.is_cut {
            Severity::Warning
        } else {
            Severity::Error
        };
        match &line.text {
            Text::Whole(object) => self.object(sides, line.place, object, true, notes),
            Text::Despite(object, fault) => {
                agent_fault(fault, most, notes);
                self.object(sides, line.place, object, false, notes)
            }
            Text::Not(fault) => {
                agent_fault(fault, most, notes);
                self.blur();
                Label::NONE
            }
            // The reader's own limit: the contract has none for the agent.
            Text::Gone { .. } => {
                self.blur();
                Label::NONE
            }
        }
    }

    /// `strict`: nothing was found in its text yet.
    fn object(
        &mut self,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        strict: bool,
        notes: &mut Notes,
    ) -> Label {
        let kind = match object.string("type") {
            Some(kind) => kind,
            None => {
                let message = match object.get("type") {
                    Some(_) => "type isn't a string",
                    None => "there is no type",
                };
                notes.add(
                    Key::NoType.rule(),
                    at_member(object, "type"),
                    String::from(message),
                );
                self.blur();
                return Label::NONE;
            }
        };
        self.opened(&kind, notes);
        let same = self
            .last
            .filter(|last| strict && last.shape == object.shape() && last.spec.name == &*kind);
        let known = same.map(|last| last.spec).or_else(|| {
            SPEC.line(Dir::Agent, &kind)
                .filter(|line| line.name != "retry" || self.wire != Wire::V5)
        });
        let Some(spec) = known else {
            notes.add(
                Key::UnknownType.rule(),
                at_member(object, "type"),
                String::from("the contract has no line of this type"),
            );
            return Label::NONE;
        };
        // A line like the one before has no new name to tell of.
        if same.is_none() {
            let order_matters = strict && self.wire != Wire::V5;
            self.shape.check(object, spec, order_matters, notes);
            self.last = strict.then_some(Last {
                shape: object.shape(),
                spec,
            });
        }
        let is_event = spec
            .fields
            .first()
            .is_some_and(|field| field.name == "session_id");
        let read = match spec.name {
            "hello" => object
                .decode()
                .map(|line| self.hello(&line, object, place, notes)),
            "transcript" => object
                .decode()
                .map(|line| self.transcript(&line, object, notes)),
            "protocol_error" => object
                .decode()
                .map(|line| self.refusal(&line, sides, place, object, notes)),
            "approval_mode" => object
                .decode()
                .map(|line| self.mode_set(&line, sides, object, notes)),
            name => {
                self.event_session(object, notes);
                match EventLine::decode(name, object) {
                    Some(event) => {
                        event.map(|event| self.event(&event, sides, place, object, notes))
                    }
                    None => Ok(()),
                }
            }
        };
        if let Err(error) = read {
            self.unfit(spec.name, &error, strict, place, notes);
        }
        Label {
            class: if is_event { "event" } else { "" },
            name: spec.name,
        }
    }

    /// A line that lacks a field does what it can.
    fn unfit(
        &mut self,
        name: &str,
        error: &DecodeError,
        strict: bool,
        place: Place,
        notes: &mut Notes,
    ) {
        if strict {
            notes.add(Key::Fields.rule(), at_field(error), error.to_string());
        }
        match name {
            "done" => {
                self.ledger.done(false);
                self.turn = super::Turn::default();
                self.lost = true;
            }
            "protocol_error" => {
                self.ledger.error(self.turn.first.is_some());
                self.turn.refusal = Some(place);
            }
            "approval_mode" | "refrozen" => {
                self.ledger.lost();
                self.lost = true;
            }
            _ => {
                self.turn.blur();
                self.calls.blur();
                self.asks.ids.blur();
            }
        }
    }

    /// The order of the first lines.
    fn opened(&mut self, kind: &str, notes: &mut Notes) {
        match self.opening {
            Opening::Silent if kind == "hello" => {}
            Opening::Silent => {
                notes.add(
                    Key::FirstIsHello.rule(),
                    At::line(),
                    String::from("the agent's first line isn't hello"),
                );
                self.opening = Opening::Over {
                    hello: false,
                    continued: false,
                };
            }
            Opening::Continued(_) if kind == "transcript" => {
                self.opening = Opening::Over {
                    hello: true,
                    continued: true,
                };
                return;
            }
            Opening::Continued(hello) => {
                notes.add(
                    Key::TranscriptFollows.rule(),
                    At::line().with(Dir::Agent, Some(hello), "the hello"),
                    String::from("the line after a hello that continues isn't the transcript"),
                );
                self.opening = Opening::Over {
                    hello: true,
                    continued: true,
                };
            }
            Opening::Over { hello: true, .. } if kind == "hello" => {
                notes.add(
                    Key::HelloOnce.rule(),
                    At::line(),
                    String::from("hello comes again"),
                );
            }
            Opening::Over { .. } => {}
        }
        if kind == "transcript" {
            notes.add(
                Key::TranscriptStray.rule(),
                At::line(),
                String::from("no hello that continues stands directly before this transcript"),
            );
        }
        if kind == "hello" {
            self.opening = Opening::Over {
                hello: true,
                continued: false,
            };
        }
    }

    fn hello(
        &mut self,
        line: &Hello<'_>,
        object: &Object<'_, '_>,
        place: Place,
        notes: &mut Notes,
    ) {
        let (proto, version) = match self.wire {
            Wire::V5 => ("openmax-stdio/5", 5),
            Wire::V6 => (PROTO, PROTOCOL_VERSION),
        };
        if line.proto != proto {
            let message = format!("proto isn't {proto}");
            notes.add(Key::HelloProto.rule(), at_member(object, "proto"), message);
        }
        if line.protocol_version != version {
            let message = format!(
                "protocol_version is {}, not {version}",
                line.protocol_version
            );
            let at = at_member(object, "protocol_version");
            notes.add(Key::HelloProto.rule(), at, message);
        }
        if !is_absolute(&line.project) {
            notes.add(
                Key::HelloProject.rule(),
                at_member(object, "project"),
                String::from("project isn't an absolute path"),
            );
        }
        self.session
            .get_or_insert_with(|| String::from(&*line.session_id));
        if line.continued {
            self.opening = Opening::Continued(place);
        }
    }

    fn transcript(&mut self, line: &Transcript<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        self.same_session(&line.session_id, object, notes);
        let most = match self.wire {
            Wire::V5 => MESSAGE + 1,
            Wire::V6 => MESSAGE,
        };
        let (mut bytes, mut chars) = (0, 0);
        for (index, message) in line.messages.iter().enumerate() {
            let length = message.content.chars().count();
            bytes += message.content.len();
            chars += length;
            let at = |name: &str| At {
                pointer: format!("/messages/{index}/{name}"),
                ..At::line()
            };
            if length > most {
                let message = format!("the message has {length} characters; {most} are the cap");
                notes.add(Key::TranscriptMessage.rule(), at("content"), message);
            }
            if !ROLES.contains(&&*message.role) {
                notes.add(
                    Key::TranscriptRole.rule(),
                    at("role"),
                    String::from("the role is neither user nor assistant"),
                );
            }
        }
        // The older program stops after the message that passes the cap.
        let total = match self.wire {
            Wire::V5 => TOTAL + most,
            Wire::V6 => TOTAL,
        };
        if bytes > total {
            let at = at_member(object, "messages");
            let at = if chars > total {
                at
            } else {
                at.at_most(Severity::Info)
            };
            let message = format!(
                "the messages have {bytes} bytes in {chars} characters; {TOTAL} are the cap"
            );
            notes.add(Key::TranscriptTotal.rule(), at, message);
        }
    }

    fn same_session(&mut self, id: &str, object: &Object<'_, '_>, notes: &mut Notes) {
        if *self.session.get_or_insert_with(|| String::from(id)) != id {
            notes.add(
                Key::OtherSession.rule(),
                at_member(object, "session_id"),
                String::from("this isn't the session that the stream began with"),
            );
        }
    }

    fn event_session(&mut self, object: &Object<'_, '_>, notes: &mut Notes) {
        match object.string("session_id") {
            Some(id) => self.same_session(&id, object, notes),
            None => {
                notes.add(
                    Key::NoSession.rule(),
                    at_member(object, "session_id"),
                    String::from("the event has no session_id that is a string"),
                );
            }
        }
    }

    fn no_session(object: &Object<'_, '_>, notes: &mut Notes) {
        if object.get("session_id").is_some() {
            notes.add(
                Key::SessionOnAnswer.rule(),
                at_member(object, "session_id"),
                String::from("this line carries no session_id"),
            );
        }
    }

    fn refusal(
        &mut self,
        line: &ProtocolError<'_>,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        Self::no_session(object, notes);
        self.turn.refusal = Some(place);
        if sides != Sides::Both {
            return;
        }
        match self.ledger.error(self.turn.first.is_some()) {
            Cause::None if !self.lost => {
                notes.add(
                    Key::ErrorUncaused.rule(),
                    At::line(),
                    String::from("no line of the host is left that this could answer"),
                );
            }
            Cause::Must {
                what: Must::Mode,
                alone: true,
            } if !self.lost => {
                if let Some(missing) = MODES.iter().find(|mode| !line.message.contains(**mode)) {
                    notes.add(
                        Key::ModeErrorNames.rule(),
                        at_member(object, "message"),
                        format!("the refusal of an unknown mode doesn't name {missing}"),
                    );
                }
            }
            Cause::Must { .. } | Cause::May | Cause::None => {}
        }
    }

    fn mode_set(
        &mut self,
        line: &ModeSet<'_>,
        sides: Sides,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        Self::no_session(object, notes);
        let Some(index) = MODES.iter().position(|mode| *mode == line.mode) else {
            notes.add(
                Key::ModeAckWord.rule(),
                at_member(object, "mode"),
                String::from("the mode is none of auto, ask and readonly"),
            );
            self.auto = None;
            self.ledger.lost();
            return;
        };
        self.auto = Some(line.mode == "auto");
        if sides == Sides::Both && !self.ledger.mode(index) && !self.lost {
            notes.add(
                Key::ModeAckStray.rule(),
                at_member(object, "mode"),
                String::from("no command that waits for an answer asked for this mode"),
            );
        }
    }

    fn event(
        &mut self,
        event: &EventLine<'_>,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if of_a_turn(event) {
            self.in_turn(sides, place, notes);
        }
        match event {
            EventLine::Token(line) => self.turn.token(place, line.text.len()),
            EventLine::Thinking(_) => self.turn.thinking(),
            EventLine::MessageDone(line) => self.turn.message_done(place, line, notes),
            EventLine::Budget(_) => self.turn.budget(notes),
            EventLine::Usage(_) => {
                self.turn.usage(notes);
                if object.get("cached_tokens").is_none() {
                    notes.add(
                        Key::CachedAbsent.rule(),
                        At::line(),
                        String::from("cached_tokens is left out"),
                    );
                }
            }
            EventLine::ToolStart(line) => {
                notes.tally.tool_calls += 1;
                self.turn.tool_start(place, notes);
                let null = self.wire == Wire::V5 && line.args.is_null();
                if line.args.kind() != Kind::Object && !null {
                    notes.add(
                        Key::ArgsObject.rule(),
                        at_member(object, "args"),
                        String::from("args isn't an object"),
                    );
                }
                self.call_starts(&line.call_id, place, object, notes);
            }
            EventLine::ToolEnd(line) => {
                self.turn.other();
                self.call_ends(&line.call_id, object, notes);
            }
            EventLine::HarnessNote(line) => {
                self.turn.other();
                if !line.call_id.is_empty() && self.calls.known(hash(&line.call_id)) == Known::Never
                {
                    notes.add(
                        Key::NoteCall.rule(),
                        at_member(object, "call_id"),
                        String::from("no call of this id has begun"),
                    );
                }
            }
            EventLine::Retry(line) => {
                let at = at_member(object, "attempt");
                self.turn.retry(place, line, at, notes);
            }
            EventLine::Diff(line) => {
                self.turn.other();
                self.diff(&line.call_id, object, notes);
            }
            EventLine::ApprovalRequest(line) => {
                notes.tally.approvals += 1;
                self.turn.other();
                if self.auto == Some(true) && self.wire == Wire::V6 {
                    notes.add(
                        Key::AskInAuto.rule(),
                        At::line(),
                        String::from("the mode is auto, and an approval is asked for"),
                    );
                }
                self.asks.request(line, place, object, notes);
            }
            EventLine::ApprovalSettled(line) => {
                let closing = self.quit.is_some() || self.host_ended;
                let host = (sides == Sides::Both).then_some((&mut self.ledger, closing));
                self.asks.settled(line, object, host, notes);
            }
            EventLine::Refrozen(_) => {
                if self.turn.first.is_none() {
                    self.ledger.reloaded();
                }
            }
            EventLine::SchemasOverBudget(_) => {
                let first = *self.schemas.get_or_insert(place);
                if first != place {
                    notes.add(
                        Key::SchemasOnce.rule(),
                        At::line().with(Dir::Agent, Some(first), "the first one"),
                        String::from("schemas_over_budget comes again"),
                    );
                }
            }
            EventLine::Compacted(line) => Self::compacted(line, object, notes),
            EventLine::HookFailed(_) => {}
            EventLine::TurnRefused(line) => {
                let at = at_member(object, "continuation");
                self.turn.turn_refused(line, at, notes);
            }
            EventLine::Done(line) => self.done(&line.stop_reason, sides, object, notes),
            EventLine::Error(_) => self.turn.error(),
        }
    }

    fn compacted(line: &Compacted, object: &Object<'_, '_>, notes: &mut Notes) {
        if line.compacted_messages == 0 && line.tokens_before != line.tokens_after {
            notes.add(
                Key::NothingCompacted.rule(),
                at_member(object, "tokens_after"),
                String::from("no message was compacted, but the number of tokens changed"),
            );
        }
    }

    /// A line that only a turn has.
    fn in_turn(&mut self, sides: Sides, place: Place, notes: &mut Notes) {
        if sides == Sides::Both
            && self.turn.first.is_none()
            && !self.lost
            && self.ledger.owed(false) == 0
        {
            let continued = matches!(
                self.opening,
                Opening::Over {
                    continued: true,
                    ..
                }
            );
            let (key, message) = if continued && self.untouched {
                (Key::Replay, "a line of a turn before the first prompt")
            } else {
                (
                    Key::OutsideTurn,
                    "a line of a turn, and no user waits for a done",
                )
            };
            notes.add(key.rule(), At::line(), String::from(message));
            self.ledger.phantom();
        }
        self.untouched = false;
        self.turn.begin(place);
    }

    fn call_starts(&mut self, id: &str, place: Place, object: &Object<'_, '_>, notes: &mut Notes) {
        let id = hash(id);
        if self.calls.known(id) == Known::Open {
            let first = self.calls.get_mut(id).copied();
            notes.add(
                Key::CallTwice.rule(),
                at_member(object, "call_id").with(Dir::Agent, first, "the call that is open"),
                String::from("a call of this id is open"),
            );
        }
        self.calls.open(id, place);
    }

    fn call_ends(&mut self, id: &str, object: &Object<'_, '_>, notes: &mut Notes) {
        let id = hash(id);
        let message = match self.calls.known(id) {
            Known::Closed => "the call has ended before",
            Known::Never => "no call of this id has begun",
            Known::Open | Known::Unknown => {
                self.calls.close(id);
                return;
            }
        };
        notes.add(
            Key::CallEnds.rule(),
            at_member(object, "call_id"),
            String::from(message),
        );
    }

    fn diff(&mut self, id: &str, object: &Object<'_, '_>, notes: &mut Notes) {
        let at = at_member(object, "call_id");
        let (at, message) = match self.calls.known(hash(id)) {
            Known::Never => (at, "no call of this id has begun"),
            Known::Closed => (
                at.at_most(Severity::Info),
                "the call has ended before its diff",
            ),
            Known::Open | Known::Unknown => return,
        };
        notes.add(Key::DiffCall.rule(), at, String::from(message));
    }

    fn done(&mut self, reason: &str, sides: Sides, object: &Object<'_, '_>, notes: &mut Notes) {
        let blurred = self.turn.is_blurred();
        let at = at_member(object, "stop_reason");
        // An older wire passes a provider's own word `error` as it is.
        let word = self.wire == Wire::V5;
        if !self.turn.done(reason, word, at, notes) {
            return;
        }
        let refused = reason == "refused";
        if sides == Sides::Both && !self.ledger.done(refused) && !self.lost && !blurred {
            notes.add(
                Key::DoneUnowed.rule(),
                At::line(),
                String::from("no user command waits for a done"),
            );
        }
        self.untouched = false;
        self.ledger.turn_over(reason == "error");
        if !refused {
            notes.tally.turns += 1;
            self.failed = reason == "error";
            self.ever_failed |= self.failed;
        }
        let (open, first) = self.calls.close_all();
        if open > 0 && !blurred && reason != "error" {
            notes.add(
                Key::CallLeftOpen.rule(),
                At::line().with(Dir::Agent, first, "the call"),
                format!("{open} of the turn's calls have no tool_end"),
            );
        }
        if !blurred {
            self.asks.done(notes);
        }
        self.turn = super::Turn::default();
    }
}

/// Whether only a turn has such a line. The others can stand between two turns as well.
fn of_a_turn(event: &EventLine<'_>) -> bool {
    match event {
        EventLine::Token(_)
        | EventLine::Thinking(_)
        | EventLine::MessageDone(_)
        | EventLine::Budget(_)
        | EventLine::Usage(_)
        | EventLine::ToolStart(_)
        | EventLine::ToolEnd(_)
        | EventLine::Retry(_)
        | EventLine::Diff(_)
        | EventLine::ApprovalRequest(_)
        | EventLine::TurnRefused(_) => true,
        EventLine::HarnessNote(_)
        | EventLine::ApprovalSettled(_)
        | EventLine::Refrozen(_)
        | EventLine::SchemasOverBudget(_)
        | EventLine::Compacted(_)
        | EventLine::HookFailed(_)
        | EventLine::Done(_)
        | EventLine::Error(_) => false,
    }
}

/// Whether it is an absolute path, on any system.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/' | b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}
