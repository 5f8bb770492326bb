//! What a line looks like: faults of its text, its members, where a finding points.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::rules::Key;
use crate::json::{JsonFault, JsonFaultKind, Object};
use crate::protocol::observer::{At, Notes, Severity, at_fault, span};
use crate::protocol::spec::LineSpec;

/// A finding about the text of an agent's line. `most`: how bad it can be.
pub(super) fn agent_fault(fault: &JsonFault, most: Severity, notes: &mut Notes) {
    let (key, severity) = match &fault.kind {
        JsonFaultKind::Duplicate { .. } if fault.path.contains(['.', '[']) => {
            (Key::Duplicate, Severity::Warning)
        }
        JsonFaultKind::Duplicate { .. } => (Key::Duplicate, Severity::Error),
        JsonFaultKind::LoneSurrogate => (Key::NotALine, Severity::Warning),
        JsonFaultKind::TooDeep { .. } => (Key::NotALine, Severity::Info),
        JsonFaultKind::NotUtf8 { .. }
        | JsonFaultKind::Blank
        | JsonFaultKind::Syntax { .. }
        | JsonFaultKind::NotAnObject => (Key::NotALine, Severity::Error),
    };
    notes.add(
        key.rule(),
        at_fault(fault).at_most(severity.min(most)),
        fault.to_string(),
    );
}

/// What a line's members are beside those that it needs.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// An order other than the documented one was told.
    order_told: bool,
    /// Types of which an unlisted member was told: no more than the table has.
    unlisted_told: Vec<&'static str>,
}

impl Shape {
    /// Compares the members of a line with the table.
    pub(super) fn check(
        &mut self,
        object: &Object<'_, '_>,
        line: &LineSpec,
        order_matters: bool,
        notes: &mut Notes,
    ) {
        let mut next = 0;
        let mut ordered = true;
        for (name, value) in object.iter() {
            let found = match line.fields.get(next) {
                Some(field) if field.name == name => Some(next),
                Some(_) | None => line.fields.iter().position(|field| field.name == name),
            };
            match found {
                Some(place) => {
                    ordered &= place >= next;
                    next = place + 1;
                }
                // It has a rule of its own.
                None if name == "session_id" => {}
                None => {
                    if !self.unlisted_told.contains(&line.name) {
                        self.unlisted_told.push(line.name);
                        notes.add(
                            Key::Unlisted.rule(),
                            At::member(name, span(object.line(), value)),
                            format!("{} has no member of this name in the contract", line.name),
                        );
                    }
                }
            }
        }
        if !ordered && order_matters && !self.order_told {
            self.order_told = true;
            notes.add(
                Key::Ordered.rule(),
                At::line(),
                String::from("the keys stand in another order than documented"),
            );
        }
    }
}
