//! What a line looks like: faults of its text, its members, how numbers are spelled.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::spec::SPEC;
use crate::json::{JsonFault, JsonFaultKind, Kind, Object, Raw, shorten};
use crate::protocol::observer::{At, Dir, Notes, Severity, at_fault, at_member, span};
use crate::protocol::spec::LineSpec;

/// A finding about the text of an engine's line. `most`: how bad it can be.
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

/// What logs of older engines had around an event.
const ENVELOPE: [&str; 4] = ["timestamp", "level", "source", "category"];

/// What came with an event later: engines from before don't write it.
const LATER: [(&str, &str); 4] = [
    ("steer_applied", "kind"),
    ("session_started", "workspace_root"),
    ("tool_result", "brief"),
    ("mcp_connect_failed", "error"),
];

/// Texts that are written as null where there is none.
const OR_NULL: [(&str, &str); 2] = [("approval_requested", "body"), ("goal_updated", "goal")];

/// Of a job's record.
const JOB_OR_NULL: [&str; 8] = [
    "cleanup_error",
    "description",
    "cwd",
    "finished_at_ms",
    "last_output_at_ms",
    "output_file",
    "output_error",
    "persistence_error",
];

/// A line whose members were compared with the table.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// What its names have in common with those of lines like it.
    shape: u64,
    spec: &'static LineSpec,
}

/// What a line's members are beside those that it needs.
#[derive(Debug, Default)]
pub(super) struct Shape {
    last: Option<Last>,
    order_told: bool,
    envelope_told: bool,
    spelling_told: bool,
    /// Events of which an unlisted member was told: no more than the table has.
    unlisted_told: Vec<&'static str>,
}

impl Shape {
    /// The entry of a line's event; `None` if the contract has none. `strict`: nothing was found in its text yet.
    pub(super) fn check(
        &mut self,
        name: &str,
        object: &Object<'_, '_>,
        strict: bool,
        notes: &mut Notes,
    ) -> Option<&'static LineSpec> {
        let same = self
            .last
            .filter(|last| strict && last.shape == object.shape() && last.spec.name == name);
        let spec = match same {
            Some(last) => last.spec,
            None => {
                let spec = SPEC.line(Dir::Agent, name)?;
                self.members(object, spec, strict, notes);
                self.last = strict.then_some(Last {
                    shape: object.shape(),
                    spec,
                });
                spec
            }
        };
        self.values(object, spec, notes);
        Some(spec)
    }

    fn members(
        &mut self,
        object: &Object<'_, '_>,
        spec: &'static LineSpec,
        strict: bool,
        notes: &mut Notes,
    ) {
        let mut next = 0;
        let mut ordered = true;
        for (index, (name, value)) in object.iter().enumerate() {
            if name == spec.tag {
                ordered &= index == 0;
                continue;
            }
            match spec.fields.iter().position(|field| field.name == name) {
                Some(place) => {
                    ordered &= place >= next;
                    next = place + 1;
                }
                None if ENVELOPE.contains(&name) => {
                    if !core::mem::replace(&mut self.envelope_told, true) {
                        let at = At::member(name, span(object.line(), value));
                        let message = String::from("this belongs around a log's entry");
                        notes.add(Key::Envelope.rule(), at, message);
                    }
                }
                None => {
                    if !self.unlisted_told.contains(&spec.name) {
                        self.unlisted_told.push(spec.name);
                        let at = At::member(name, span(object.line(), value));
                        let message =
                            format!("{} has no member of this name in the contract", spec.name);
                        notes.add(Key::Unlisted.rule(), at, message);
                    }
                }
            }
        }
        if !ordered && strict && !core::mem::replace(&mut self.order_told, true) {
            let message = String::from("the members stand in another order than documented");
            notes.add(Key::Ordered.rule(), At::line(), message);
        }
    }

    /// Values that a reader takes for others.
    fn values(&mut self, object: &Object<'_, '_>, spec: &LineSpec, notes: &mut Notes) {
        for (event, member) in LATER {
            if spec.name == event {
                later(event, member, object, notes);
            }
        }
        for (event, member) in OR_NULL {
            if spec.name == event {
                let value = object.get(member);
                if !value.is_some_and(is_text_or_null) {
                    null_left_out(member, at_member(object, member), notes);
                }
            }
        }
        for (name, value) in object.iter() {
            match value.kind() {
                Kind::Number => self.spelling(name, value, object, notes),
                Kind::Object if name == "usage" => {
                    value.each_member(|name, value| self.spelling(name, value, object, notes));
                }
                Kind::Object if name == "job" => self.job(value, object, notes),
                Kind::Array if name == "jobs" => {
                    let jobs: Vec<Raw<'_>> = value.decode().unwrap_or_default();
                    for job in jobs {
                        self.job(job, object, notes);
                    }
                }
                Kind::Null | Kind::Bool | Kind::String | Kind::Array | Kind::Object => {}
            }
        }
    }

    fn job(&mut self, job: Raw<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        for member in JOB_OR_NULL {
            if job.get(member).is_none() {
                let mut at = At::line();
                at.span = span(object.line(), job);
                null_left_out(member, at, notes);
            }
        }
        job.each_member(|name, value| self.spelling(name, value, object, notes));
    }

    fn spelling(&mut self, name: &str, value: Raw<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        let text = value.as_str();
        let odd = value.kind() == Kind::Number && (text.contains(['.', 'e', 'E']) || text == "-0");
        if odd && !core::mem::replace(&mut self.spelling_told, true) {
            let at = At {
                span: span(object.line(), value),
                ..At::line()
            };
            let message = format!("{} is spelled {}", shorten(name), shorten(text));
            notes.add(Key::Spelled.rule(), at, message);
        }
    }
}

fn is_text_or_null(value: Raw<'_>) -> bool {
    matches!(value.kind(), Kind::String | Kind::Null)
}

fn null_left_out(member: &str, at: At, notes: &mut Notes) {
    let message = format!("{member} is neither a text nor null");
    notes.add(Key::NullLeftOut.rule(), at, message);
}

/// A member that engines from before don't write.
fn later(event: &str, member: &str, object: &Object<'_, '_>, notes: &mut Notes) {
    let may_be_null = matches!(member, "brief" | "workspace_root");
    match object.get(member).map(Raw::kind) {
        Some(Kind::String) => {}
        Some(Kind::Null) if may_be_null => {}
        None => {
            let message = format!("{event} has no {member}");
            notes.add(Key::LeftOut.rule(), At::line(), message);
        }
        Some(Kind::Null) if event == "mcp_connect_failed" => {
            let message = String::from("the error is null: readers say `unknown error`");
            notes.add(Key::LeftOut.rule(), at_member(object, member), message);
        }
        Some(Kind::Null | Kind::Bool | Kind::Number | Kind::Array | Kind::Object) => {
            let message = format!("{member} isn't a text: readers take the default");
            notes.add(Key::NullLeftOut.rule(), at_member(object, member), message);
        }
    }
}
