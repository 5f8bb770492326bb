//! The course of a run: its beginning, its id, its result and its end.

use alloc::format;
use alloc::string::String;

use super::super::TIERS;
use super::super::rules::Key;
use super::super::wire::{Event, RULES};
use super::Here;
use super::agent::word;
use crate::frame::Place;
use crate::json::{Kind, Raw, scan_value, shorten};
use crate::protocol::observer::{At, Dir, Notes, Severity, at_member, hash};

/// How far a run is.
#[derive(Debug, Default)]
pub(super) struct Run {
    seen: bool,
    start: Option<Place>,
    /// The id of the run, as a hash, and where it was first seen.
    id: Option<(u64, Place)>,
    result: Option<Place>,
    /// What the JSON of `final` says: `completed`, `failed`, `aborted`.
    outcome: Option<Outcome>,
    error: Option<(Code, Place)>,
    end: Option<(Place, u64)>,
    /// A warning said that a merge was skipped or in conflict, and nothing came since.
    merge_warning: bool,
    merged_not: bool,
    blurred: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Completed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Interrupted,
    MergeBackFailed,
    Other,
}

impl Run {
    pub(super) fn blur(&mut self) {
        self.seen = true;
        self.blurred = true;
        self.merge_warning = false;
    }

    /// Whether the agent has said anything.
    pub(super) fn seen(&self) -> bool {
        self.seen
    }

    pub(super) fn started(&self) -> bool {
        self.start.is_some() || self.blurred
    }

    /// What every line shows: its run, and whether it stands behind the end.
    pub(super) fn id(&mut self, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if let Some((end, _)) = self.end {
            let at = At::line().with(Dir::Agent, Some(end), "the end");
            let message = String::from("a line behind run_end");
            notes.add(Key::AfterEnd.rule(), at, message);
        }
        let Some(id) = here.object.string("runId") else {
            return;
        };
        let id = hash(&id);
        match self.id {
            None => self.id = Some((id, here.place)),
            Some((known, place)) if known != id => {
                let at = at_member(here.object, "runId").with(Dir::Agent, Some(place), "the run");
                let message = String::from("another run than that of the first line");
                notes.add(Key::OneRun.rule(), at, message);
                self.id = Some((id, here.place));
            }
            Some(_) => {}
        }
    }

    pub(super) fn start(&mut self, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if let Some(first) = self.start {
            let at = At::line().with(Dir::Agent, Some(first), "the beginning");
            let message = String::from("the run has begun before");
            notes.add(Key::StartTwice.rule(), at, message);
        } else if let Some((_, error)) = self.error.filter(|_| !self.blurred) {
            let at = At::line().with(Dir::Agent, Some(error), "the error");
            let message = String::from("an error came before the run, and refuses it");
            notes.add(Key::Start.rule(), at, message);
        }
        self.start.get_or_insert(here.place);
        self.seen = true;
        self.merge_warning = false;
    }

    /// A line that may only stand within a run.
    fn within(&mut self, notes: &mut Notes) {
        if !self.seen {
            let message = String::from("the run hasn't begun");
            notes.add(Key::Start.rule(), At::line(), message);
        }
        self.seen = true;
        self.merge_warning = false;
    }

    /// A line behind the result, or the error.
    fn order(&mut self, notes: &mut Notes, is_error: bool) {
        let after = match (self.error, self.result) {
            (Some((_, error)), _) => Some((error, "the error")),
            (None, Some(result)) if !is_error => Some((result, "the result")),
            (None, _) => None,
        };
        if let Some((place, what)) = after.filter(|_| self.end.is_none()) {
            let at = At::line().with(Dir::Agent, Some(place), what);
            let message = format!("only the end comes behind {what}");
            notes.add(Key::FinalOrder.rule(), at, message);
        }
    }

    /// A line of an unknown type.
    pub(super) fn other(&mut self, _here: Here<'_, '_, '_>, notes: &mut Notes) {
        self.within(notes);
    }

    /// A line of the run's body.
    pub(super) fn body(&mut self, event: &Event<'_>, _here: Here<'_, '_, '_>, notes: &mut Notes) {
        self.within(notes);
        self.order(notes, false);
        if let Event::Warning(line) = event {
            let message = line.message.as_deref().unwrap_or("");
            self.merge_warning = message.starts_with("merge-back ");
            self.merged_not |= self.merge_warning;
        }
    }

    pub(super) fn error(&mut self, code: &str, here: Here<'_, '_, '_>, notes: &mut Notes) {
        self.seen = true;
        self.merge_warning = false;
        self.order(notes, true);
        let code = match code {
            "interrupted" => Code::Interrupted,
            "merge_back_failed" => Code::MergeBackFailed,
            _ => Code::Other,
        };
        self.error = Some((code, here.place));
    }

    pub(super) fn result(
        &mut self,
        text: &str,
        pipeline: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        self.within(notes);
        self.order(notes, false);
        self.result = Some(here.place);
        let read = scan_value(text.as_bytes(), &RULES).ok();
        match read.filter(|value| value.kind() == Kind::Object) {
            Some(value) if value.get("run_id").is_some() || pipeline => {
                self.pipeline(value, here, notes);
            }
            Some(_) => {}
            None if pipeline => {
                let message = String::from("stages ran, and the text isn't that of a JSON object");
                let at = at_member(here.object, "text");
                notes.add(Key::FinalJson.rule(), at, message);
            }
            None => {}
        }
    }

    fn pipeline(&mut self, value: Raw<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let status = value.get_last("status").and_then(Raw::string);
        self.outcome = match status.as_deref() {
            Some("completed") => Some(Outcome::Completed),
            Some("failed" | "aborted") => Some(Outcome::Failed),
            Some(_) | None => None,
        };
        if value.get("plan_id").is_some() {
            return;
        }
        let missing = ["run_id", "status", "tier", "stages"]
            .into_iter()
            .find(|name| value.get(name).is_none());
        let tier = value.get_last("tier").and_then(Raw::string);
        let message = match (missing, tier) {
            (Some(name), _) => format!("the result has no {name}"),
            (None, Some(tier)) if TIERS.contains(&&*tier) => return,
            (None, _) => String::from("the tier is none of five"),
        };
        notes.add(Key::Result.rule(), at_member(here.object, "text"), message);
    }

    pub(super) fn ends(
        &mut self,
        status: &str,
        code: u64,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let object = here.object;
        if !self.seen {
            let message = String::from("the run hasn't begun");
            notes.add(Key::Start.rule(), At::line(), message);
        }
        self.seen = true;
        self.merge_warning = false;
        let legal: &[u64] = match status {
            "success" | "spec_review_required" => &[0],
            "error" => &[1, 2, 3],
            "incomplete" => &[4],
            "interrupted" => &[130],
            _ => {
                word("status", false, object, notes);
                &[]
            }
        };
        if !legal.is_empty() && !legal.contains(&code) {
            let message = format!("{} doesn't end with {code}", shorten(status));
            notes.add(
                Key::StatusExit.rule(),
                at_member(object, "exitCode"),
                message,
            );
        }
        if !self.blurred && self.end.is_none() {
            self.judged(status, code, here, notes);
        }
        self.end = Some((here.place, code));
    }

    /// What came before the end.
    fn judged(&self, status: &str, code: u64, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let failed = matches!(status, "error" | "incomplete" | "interrupted");
        let error = self.error.map(|(code, _)| code);
        if failed && error.is_none() {
            let message = format!("{status} without an error before it");
            notes.add(Key::NoError.rule(), At::line(), message);
        }
        if status == "interrupted" {
            let message = match (error, self.result) {
                (_, Some(_)) => Some("an interrupted run has no final"),
                (Some(Code::MergeBackFailed | Code::Other), None) => {
                    Some("the error before it has another code")
                }
                (Some(Code::Interrupted) | None, None) => None,
            };
            if let Some(message) = message {
                notes.add(Key::Interrupted.rule(), At::line(), String::from(message));
            }
        }
        if error == Some(Code::MergeBackFailed) && (status, code) != ("error", 1) {
            let message =
                format!("a merge that failed ends as error and 1, not {status} and {code}");
            notes.add(Key::MergeCode.rule(), At::line(), message);
        }
        let agrees = match (self.outcome, status) {
            (Some(Outcome::Completed), "incomplete") => self.merged_not,
            (Some(Outcome::Completed), "error") => error == Some(Code::MergeBackFailed),
            (Some(Outcome::Failed), "success" | "spec_review_required") => false,
            _ => true,
        };
        if !agrees {
            let at = at_member(here.object, "status").with(Dir::Agent, self.result, "the result");
            let message = format!("the result says otherwise than {}", shorten(status));
            notes.add(Key::FinalStatus.rule(), at, message);
        }
    }

    pub(super) fn finish(&self, exit: Option<i64>, original: bool, lost: bool, notes: &mut Notes) {
        match (self.end, exit) {
            (Some((place, code)), Some(exit)) if exit >= 0 && exit.unsigned_abs() != code => {
                let message = format!("the exit code is {exit}, and run_end says {code}");
                notes.add_for(
                    Key::Exit.rule(),
                    Dir::Agent,
                    Some(place),
                    At::line(),
                    message,
                );
            }
            (Some(_), _) => {}
            (None, _) if !self.seen => {}
            (None, _) if original && self.merge_warning => {}
            // A signal, or a failure to write: nobody promised anything.
            (None, Some(code)) if code == 1 || !(0..128).contains(&code) => {}
            (None, exit) => {
                let severity = match exit {
                    Some(_) if !lost => Severity::Error,
                    Some(_) | None => Severity::Warning,
                };
                let at = At::line().at_most(severity);
                let message = String::from("there is no run_end");
                notes.add(Key::NoEnd.rule(), at, message);
            }
        }
    }
}
