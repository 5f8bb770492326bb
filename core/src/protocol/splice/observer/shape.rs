//! What a line looks like: faults of its text, its members, their order, what is empty.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::spec::SPEC;
use crate::json::{JsonFault, JsonFaultKind, Object};
use crate::protocol::observer::{At, Dir, Notes, Severity, at_fault, span};
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
    let at = at_fault(fault).at_most(severity.min(most));
    notes.add(key.rule(), at, fault.to_string());
}

/// What a line's members are beside those that it needs.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// What the names of the last line have in common with those of lines like it, and its type.
    last: Option<(u64, &'static str)>,
    order_told: bool,
    empty_told: bool,
    /// Types of which an unlisted member was told: no more than the table has.
    unlisted_told: Vec<&'static str>,
}

impl Shape {
    /// Compares a line with the table. `strict`: nothing was found in its text yet.
    pub(super) fn check(
        &mut self,
        name: &str,
        object: &Object<'_, '_>,
        strict: bool,
        notes: &mut Notes,
    ) {
        self.empty(object, notes);
        let same = strict && self.last.is_some_and(|last| last == (object.shape(), name));
        if same {
            return;
        }
        let Some(spec) = SPEC.line(Dir::Agent, name) else {
            return;
        };
        self.members(object, spec, strict, notes);
        self.last = strict.then(|| (object.shape(), spec.name));
    }

    fn members(
        &mut self,
        object: &Object<'_, '_>,
        spec: &'static LineSpec,
        strict: bool,
        notes: &mut Notes,
    ) {
        let mut before = "";
        let mut sorted = true;
        for (name, value) in object.iter() {
            sorted &= before <= name;
            before = name;
            if spec.fields.iter().any(|field| field.name == name) {
                continue;
            }
            let at = || At::member(name, span(object.line(), value));
            if name == "violation" && spec.name.starts_with("permission") {
                let message = String::from("version 2 calls this `block`");
                notes.add(Key::Violation.rule(), at(), message);
            } else if !self.unlisted_told.contains(&spec.name) {
                self.unlisted_told.push(spec.name);
                let message = format!("{} has no member of this name in the contract", spec.name);
                notes.add(Key::Unlisted.rule(), at(), message);
            }
        }
        if !sorted && strict && !core::mem::replace(&mut self.order_told, true) {
            let message = String::from("the members stand in another order than the alphabet's");
            notes.add(Key::Sorted.rule(), At::line(), message);
        }
    }

    fn empty(&mut self, object: &Object<'_, '_>, notes: &mut Notes) {
        if self.empty_told {
            return;
        }
        let empty = |text: &str| matches!(text, "\"\"" | "[]" | "{}");
        if let Some((name, value)) = object.iter().find(|(_, value)| empty(value.as_str())) {
            self.empty_told = true;
            let at = At::member(name, span(object.line(), value));
            let message = format!("{name} is there, and empty");
            notes.add(Key::Empty.rule(), at, message);
        }
    }
}
