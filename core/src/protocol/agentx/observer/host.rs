//! Lines of the host. The agent must be able to bear any of them: what is wrong with one is a finding of little weight
//! where the agent's answer is observed, and of full weight where it isn't.

use alloc::string::{String, ToString};

use super::super::hear::{Fault, FaultKind, Heard, hear};
use super::super::rules::Key;
use super::super::wire::HostLine;
use super::{Here, Watcher};
use crate::frame::Place;
use crate::json::{self, JsonFaultKind, Members, Object};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, push_pointer,
};

/// A line in hand.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    sides: Sides,
    /// The agent reads it no more: nothing of it is owed.
    pub(super) excused: bool,
}

impl Reading {
    /// A finding about a line that the agent must refuse.
    pub(super) fn refusable(self, key: Key, at: At, message: String, notes: &mut Notes) {
        let at = if self.sides.has(Dir::Agent) {
            at.at_most(Severity::Info)
        } else {
            at
        };
        notes.add(key.rule(), at, message);
    }
}

/// The rule that a fault of a line breaks.
fn rule_of(kind: &FaultKind) -> Key {
    match kind {
        FaultKind::TooLong => Key::HostTooLong,
        FaultKind::Json(JsonFaultKind::Duplicate { .. }) => Key::HostDuplicate,
        FaultKind::Json(_) | FaultKind::NotAnObject => Key::HostNotALine,
        FaultKind::Response(_) => Key::HostResponseShape,
        FaultKind::Import(_) => Key::ImportShape,
        FaultKind::NoType
        | FaultKind::TypeKind(_)
        | FaultKind::UnknownMember
        | FaultKind::Shape(_)
        | FaultKind::ForeignSession
        | FaultKind::NoRequestId
        | FaultKind::NoSubtype
        | FaultKind::Variables => Key::HostFields,
    }
}

/// Where it is.
fn at_of(fault: &Fault, line: &[u8]) -> At {
    let mut at = At::line();
    at.span = fault.at.min(line.len())..fault.at.min(line.len());
    for step in fault.path.split(['.', '[']) {
        let step = step.strip_suffix(']').unwrap_or(step);
        if !step.is_empty() {
            push_pointer(&mut at.pointer, step);
        }
    }
    at
}

impl Watcher {
    pub(super) fn host(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        self.host_lines += 1;
        let reading = Reading {
            sides,
            excused: self.host_ended || self.fatal.is_some(),
        };
        if let Text::Gone { .. } = &line.text {
            // The reader of claude has a limit that is only its own.
            let most = if self.policy.max_line().is_none() {
                Severity::Info
            } else {
                self.fatal.get_or_insert(line.place);
                Severity::Error
            };
            let message = String::from("the line is longer than the agent reads");
            let at = At::line().at_most(most);
            reading.refusable(Key::HostTooLong, at, message, notes);
            self.blur_host();
            return Label::NONE;
        }
        if let Text::Despite(_, fault) = &line.text
            && self.is_claude()
            && matches!(fault.kind, JsonFaultKind::Duplicate { .. })
        {
            let at = at_fault(fault).at_most(Severity::Info);
            notes.add(Key::HostDuplicate.rule(), at, fault.to_string());
        }
        let policy = self.host_policy();
        let session = self.session.take();
        let mut members = core::mem::take(&mut self.members);
        let id = session.as_deref().unwrap_or_default();
        let heard = hear(line.raw, id, &policy, &mut members);
        let label = match heard {
            Ok(Heard::Blank) => Label::NONE,
            Ok(Heard::Line(read)) => {
                // The places of findings are found in the object.
                let mut own = Members::new();
                match &line.text {
                    Text::Whole(object) | Text::Despite(object, _) => {
                        self.heard(&read, object, line.place, reading, notes)
                    }
                    Text::Not(_) | Text::Gone { .. } => {
                        match json::scan(line.raw, &policy.scan_rules(), &mut own) {
                            Ok(object) => self.heard(&read, &object, line.place, reading, notes),
                            Err(_) => Label::NONE,
                        }
                    }
                }
            }
            Ok(Heard::PassedOver(fault)) => {
                let at = at_of(&fault, line.raw).at_most(Severity::Info);
                notes.add(rule_of(&fault.kind).rule(), at, fault.to_string());
                Label::NONE
            }
            Err(fault) => {
                let at = at_of(&fault, line.raw);
                reading.refusable(rule_of(&fault.kind), at, fault.to_string(), notes);
                self.fatal.get_or_insert(line.place);
                Label::NONE
            }
        };
        self.members = members;
        self.session = session;
        label
    }

    fn heard(
        &mut self,
        read: &HostLine<'_>,
        object: &Object<'_, '_>,
        place: Place,
        reading: Reading,
        notes: &mut Notes,
    ) -> Label {
        let here = Here {
            sides: reading.sides,
            place,
            object,
        };
        let known = HostLine::KINDS
            .into_iter()
            .find(|kind| *kind == read.kind());
        let mut label = Label {
            class: "host",
            name: known.unwrap_or_default(),
        };
        match read {
            HostLine::User(user) => self.host_says(user, reading, here, notes),
            HostLine::Request(request) => {
                label.class = "request";
                label.name = self.host_asks(request, reading.excused, here, notes);
            }
            HostLine::Response(response) => {
                label.class = "answer";
                if let Some(body) = response.known() {
                    self.host_answers(body, self.host_lines, here, notes);
                }
            }
            HostLine::Cancel(cancel) => self.host_withdraws(&cancel.request_id, here, notes),
            HostLine::Import(import) => self.host_imports(import, here, notes),
            HostLine::Unknown { .. } => {
                let at = crate::protocol::observer::at_member(object, "type");
                let message = String::from("the contract has no record of this type");
                notes.add(Key::HostUnknownType.rule(), at, message);
            }
            HostLine::Assistant(_)
            | HostLine::System(_)
            | HostLine::KeepAlive(_)
            | HostLine::Environment(_) => {}
        }
        label
    }
}
