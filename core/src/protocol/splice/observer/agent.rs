//! Lines of the agent.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::wire::{
    Event, Marker, PermissionDecision, PermissionRequest, RunEnd, SideEffectWord, WireFault,
    is_run_id,
};
use super::super::{OUTPUT_BYTES, TRUNCATED};
use super::shape::agent_fault;
use super::{Here, Watcher};
use crate::json::{Object, shorten};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_field, at_member,
};

/// What may end a run before its input is judged: a signal, and what can't be set up.
const EARLIER: [&str; 5] = [
    "interrupted",
    "provider_error",
    "mcp_error",
    "sandbox_error",
    "specialist_error",
];

const EVENT: Label = Label {
    class: "event",
    name: "",
};

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
        let (object, strict) = match &line.text {
            Text::Whole(object) => (object, true),
            Text::Despite(object, fault) => {
                agent_fault(fault, most, notes);
                (object, false)
            }
            Text::Not(fault) => {
                agent_fault(fault, most, notes);
                self.blur();
                return Label::NONE;
            }
            // The reader's own limit: the contract has none.
            Text::Gone { .. } => {
                self.blur();
                return Label::NONE;
            }
        };
        let here = Here {
            place: line.place,
            object,
        };
        self.run.id(here, notes);
        match Event::of_object(object) {
            Ok(Event::Unknown(_)) => {
                let message = String::from("the contract has no line of this type");
                notes.add(Key::UnknownType.rule(), at_member(object, "type"), message);
                self.frame(object, notes);
                self.run.other(here, notes);
                EVENT
            }
            Ok(event) => {
                let name = event.tag().unwrap_or_default();
                self.shape.check(name, object, strict, notes);
                self.leaks.line(&event, here, self.config.original, notes);
                self.event(&event, sides, here, notes);
                Label { name, ..EVENT }
            }
            Err(WireFault::Fields(error)) => {
                if !self.frame(object, notes) {
                    let message = shorten(&error.to_string());
                    notes.add(Key::Fields.rule(), at_field(&error), message);
                }
                self.blur();
                EVENT
            }
            Err(WireFault::Json(_) | WireFault::NoTag(_) | WireFault::TagKind { .. }) => {
                let message = match object.get("type") {
                    Some(_) => "type isn't a string",
                    None => "there is no type",
                };
                let at = at_member(object, "type");
                notes.add(Key::NoType.rule(), at, String::from(message));
                self.blur();
                Label::NONE
            }
        }
    }

    /// Judges what every line has; true: it hasn't.
    fn frame(&mut self, object: &Object<'_, '_>, notes: &mut Notes) -> bool {
        let mut told = false;
        if object.get("schemaVersion").and_then(|value| value.u64()) != Some(2) {
            let message = String::from("schemaVersion isn't 2");
            let at = at_member(object, "schemaVersion");
            notes.add(Key::Version.rule(), at, message);
            told = true;
        }
        if object.get("runId").is_none_or(|id| id.string().is_none()) {
            let message = String::from("there is no runId that is a string");
            notes.add(Key::RunId.rule(), at_member(object, "runId"), message);
            told = true;
        }
        told
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        sides: Sides,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let object = here.object;
        if !is_run_id(&event.run_id()) {
            let message = String::from("runId isn't an id");
            notes.add(Key::RunId.rule(), at_member(object, "runId"), message);
        }
        match event {
            Event::RunStart(_) => {
                if sides == Sides::Both
                    && let Some(refusal) = self.inputs.refusal()
                {
                    let at = At::line().with(Dir::Host, refusal.place, "the bad line");
                    let message = format!("the input must be refused: {}", shorten(&refusal.text));
                    notes.add(Key::BadRan.rule(), at, message);
                }
                self.run.start(here, notes);
            }
            Event::Error(line) => {
                marker_elsewhere("message", line.message.as_deref(), object, notes);
                if sides == Sides::Both && !self.run.started() && self.inputs.any() {
                    self.refusal(
                        &line.code,
                        line.message.as_deref().unwrap_or(""),
                        here,
                        notes,
                    );
                }
                self.run.error(&line.code, here, notes);
            }
            Event::Final(line) => {
                let text = line.text.as_deref().unwrap_or("");
                marker_elsewhere("text", Some(text), object, notes);
                self.run.result(text, self.stages.any(), here, notes);
            }
            Event::RunEnd(line) => self.ends(line, sides, here, notes),
            Event::Reasoning(_)
            | Event::Text(_)
            | Event::ToolCallStart(_)
            | Event::ToolCallDelta(_)
            | Event::ToolCall(_)
            | Event::ToolResult(_)
            | Event::PermissionRequest(_)
            | Event::PermissionDecision(_)
            | Event::Permission(_)
            | Event::Usage(_)
            | Event::Checkpoint(_)
            | Event::Restore(_)
            | Event::Warning(_)
            | Event::Unknown(_) => {
                self.run.body(event, here, notes);
                self.body(event, here, notes);
            }
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "`event` has all others")]
    fn body(&mut self, event: &Event<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let object = here.object;
        match event {
            Event::Reasoning(line) => self.reasoning(line.delta.as_deref(), here, notes),
            Event::Text(line) => {
                marker_elsewhere("delta", line.delta.as_deref(), object, notes);
            }
            Event::ToolCallStart(line) => {
                self.calls
                    .starts(line.id.as_deref().unwrap_or(""), here.place);
            }
            Event::ToolCallDelta(line) => {
                let delta = line.delta.as_deref().unwrap_or("");
                self.calls.piece(&line.id, delta, here, notes);
            }
            Event::ToolCall(line) => {
                notes.tally.tool_calls += 1;
                word(
                    "sideEffect",
                    is_known(line.side_effect.as_ref()),
                    object,
                    notes,
                );
                self.calls.call(line, here, notes);
            }
            Event::ToolResult(line) => {
                marker_elsewhere("output", line.output.as_deref(), object, notes);
                let output = line.output.as_deref().unwrap_or("");
                if output.len() > OUTPUT_BYTES + TRUNCATED.len()
                    || (output.len() > OUTPUT_BYTES && !line.truncated)
                {
                    let message = format!("{} bytes", output.len());
                    let at = at_member(object, "output").at_most(if self.config.original {
                        Severity::Error
                    } else {
                        Severity::Warning
                    });
                    notes.add(Key::Cut.rule(), at, message);
                }
                self.calls.result(line, here, notes);
            }
            Event::PermissionRequest(line) => self.request(line, here, notes),
            Event::PermissionDecision(line) => self.decision(line, here, notes),
            Event::Permission(line) => {
                self.calls
                    .permission(line.id.as_deref().unwrap_or(""), here, notes);
            }
            Event::Usage(line) => self.requests.usage(line, here, notes),
            Event::Checkpoint(line) => {
                self.requests.checkpoint(&line.checkpoint, here, notes);
                self.calls.checkpoint(here, notes);
            }
            Event::Restore(_) => {
                let message = String::from("nothing is known to write this line");
                notes.add(Key::Restored.rule(), At::line(), message);
            }
            Event::Warning(line) => {
                marker_elsewhere("message", line.message.as_deref(), object, notes);
            }
            _ => {}
        }
    }

    fn reasoning(&mut self, delta: Option<&str>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let Some(delta) = delta.filter(|delta| has_marker(delta)) else {
            return;
        };
        match Marker::read(delta) {
            Some(marker) => self.stages.marker(&marker, here, notes),
            None => {
                let message = String::from("it holds NUL STAGE, and isn't exactly one marker");
                let at = at_member(here.object, "delta");
                notes.add(Key::MarkerForm.rule(), at, message);
                self.stages.blur();
            }
        }
    }

    fn request(&mut self, line: &PermissionRequest<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        notes.tally.approvals += 1;
        if line.action != "prompt" {
            action(&line.action, here.object, notes);
        }
        self.calls
            .request(line.id.as_deref().unwrap_or(""), here, notes);
    }

    fn decision(
        &mut self,
        line: &PermissionDecision<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        if !["allow", "deny", "cancel"].contains(&&*line.action) {
            action(&line.action, here.object, notes);
        }
        let allowed = &*line.action == "allow";
        self.calls
            .decision(line.id.as_deref().unwrap_or(""), allowed, here, notes);
    }

    /// An error before any run, where the input is known.
    fn refusal(&mut self, code: &str, message: &str, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let Some(refusal) = self.inputs.refusal() else {
            return;
        };
        if EARLIER.contains(&code) {
            // It didn't come to judging the input.
            return self.inputs.blur();
        }
        if code != "usage_error" {
            let at = at_member(here.object, "code").with(Dir::Host, refusal.place, "the bad line");
            let text = format!(
                "the code of bad input is usage_error, not {}",
                shorten(code)
            );
            notes.add(Key::BadExit.rule(), at, text);
            return;
        }
        const PREFIX: &str = "Invalid stream-json input at line ";
        let (number, text) = match message
            .strip_prefix(PREFIX)
            .and_then(|s| s.split_once(": "))
        {
            Some((number, text)) => (number.parse::<u64>().ok(), text),
            None => (None, message),
        };
        let fits = text == refusal.text
            && (refusal.least == 0 || number.is_some_and(|number| number >= refusal.least));
        // What a host called a member may itself be a secret, and isn't repeated.
        if !fits && !message.contains(crate::redact::MASK) {
            // A flag can be wrong as well, and is looked at first.
            let about_input = message.starts_with(PREFIX) || message.starts_with("Stream-json ");
            let severity = if about_input {
                Severity::Error
            } else {
                Severity::Info
            };
            let at = at_member(here.object, "message")
                .with(Dir::Host, refusal.place, "the bad line")
                .at_most(severity);
            let text = format!("the text for that line is {:?}", shorten(&refusal.text));
            notes.add(Key::RefusalText.rule(), at, text);
        }
    }

    fn ends(&mut self, line: &RunEnd<'_>, sides: Sides, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let status = line.status.as_str();
        if sides == Sides::Both
            && !self.run.started()
            && let Some(refusal) = self.inputs.refusal()
            && (status, line.exit_code) != ("error", 2)
        {
            let at = At::line().with(Dir::Host, refusal.place, "the bad line");
            let message = format!(
                "bad input ends as error and 2, not {status} and {}",
                line.exit_code
            );
            notes.add(Key::BadExit.rule(), at, message);
        }
        notes.tally.turns += 1;
        if !self.lost {
            self.calls.ends(status == "interrupted", notes);
            if status == "success" {
                self.stages.ends(notes);
            }
        }
        self.run.ends(status, line.exit_code, here, notes);
    }
}

fn is_known(word: Option<&SideEffectWord<'_>>) -> bool {
    !matches!(word, Some(SideEffectWord::Other(_)))
}

/// A word that the contract doesn't have.
pub(super) fn word(member: &str, known: bool, object: &Object<'_, '_>, notes: &mut Notes) {
    if !known {
        let message = format!("{member} is a word that the contract doesn't have");
        notes.add(Key::Word.rule(), at_member(object, member), message);
    }
}

fn action(found: &str, object: &Object<'_, '_>, notes: &mut Notes) {
    let message = format!("the action is {}", shorten(found));
    notes.add(Key::ActionOf.rule(), at_member(object, "action"), message);
}

fn has_marker(text: &str) -> bool {
    memchr::memchr(0, text.as_bytes()).is_some_and(|at| {
        text.get(at..)
            .is_some_and(|rest| rest.contains(super::super::wire::MARKER))
    })
}

fn marker_elsewhere(member: &str, text: Option<&str>, object: &Object<'_, '_>, notes: &mut Notes) {
    if text.is_some_and(has_marker) {
        let message = format!("{member} holds NUL STAGE");
        notes.add(
            Key::MarkerElsewhere.rule(),
            at_member(object, member),
            message,
        );
    }
}
