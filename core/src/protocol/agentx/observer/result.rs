//! `result`: how a turn ended.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::super::policy::{ApiFailure, Extensions, NumTurns};
use super::super::prompt::INPUT_ERROR;
use super::super::rules::Key;
use super::super::wire::{Num, ResultKind, TurnResult};
use super::turn::Ends;
use super::{Here, Watcher, totals};
use crate::json::Kind;
use crate::protocol::observer::{At, Dir, Known, Notes, Severity, Sides, at_member, hash};

impl Watcher {
    pub(super) fn result(
        &mut self,
        result: &TurnResult<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        notes.tally.turns += 1;
        let most = self.most();
        self.failed = Some(result.is_error);
        self.result_form(result, notes);
        totals::cost(result, most, notes);
        let refused = result.stop_reason.value().map(|word| &**word) == Some(INPUT_ERROR);
        if !self.is_claude() {
            totals::usage(result, notes);
        } else if !refused {
            self.totals.grow(result, notes);
        }
        self.result_prompt(result, refused, here, notes);
        if refused {
            return input_error(result, notes);
        }
        let answered = self.asks.permission().is_none() && !self.is_closed();
        let answered = answered && here.sides == Sides::Both && self.turn.interrupted.is_none();
        // A signal cancels a turn, too, and passes answers that are on their way.
        let answered = answered && !result.is_error;
        let counts = result.num_turns > u64::from(self.policy.num_turns == NumTurns::UserRecords);
        let ends = self.turn.result(counts, answered, here.place, most, notes);
        if ends == Ends::Command {
            return;
        }
        if ends == Ends::Turn {
            self.interrupted(result, most, notes);
            self.denials(result, most, here, notes);
            self.turns(result, most, notes);
            let text = result.result.as_deref();
            let alike = text.is_none_or(|text| self.stream.said(text, !self.is_claude()));
            if !alike && !result.is_error && result.structured_output.get().is_none() {
                let at = at_member(here.object, "result");
                let message = String::from("it isn't the text of the last reply");
                notes.add(Key::ResultText.rule(), at, message);
            }
        }
        if let Some((place, counts)) = self.calls.over(result.is_error)
            && ends == Ends::Turn
        {
            let most = if counts { most } else { Severity::Info };
            let at = At::line()
                .at_most(most)
                .with(Dir::Agent, Some(place), "the call");
            let message = String::from("a call has no result");
            notes.add(Key::CallOpen.rule(), at, message);
        }
        // Older programs leave a message open that they cut off.
        let cut = result.subtype != ResultKind::Success;
        if self.stream.over() && self.is_claude() && !cut {
            let message = String::from("the turn ends, and a message streams");
            notes.add(Key::Stream.rule(), At::line(), message);
        }
        self.turn.over();
        if self.each_turn_init() {
            self.turn.wants_init();
        }
    }

    /// What a result has and hasn't.
    fn result_form(&self, result: &TurnResult<'_>, notes: &mut Notes) {
        let success = match &result.subtype {
            ResultKind::Success => true,
            ResultKind::ErrorDuringExecution
            | ResultKind::ErrorMaxTurns
            | ResultKind::ErrorMaxBudgetUsd
            | ResultKind::ErrorMaxStructuredOutputRetries => false,
            ResultKind::Other(_) => {
                let message = String::from("the contract has no such result");
                let at = At::line().at_most(Severity::Info);
                notes.add(Key::UnknownType.rule(), at, message);
                return;
            }
        };
        let errors = result.errors.as_deref().unwrap_or_default();
        let message = if success && result.is_error && self.policy.api_failure == ApiFailure::Plain
        {
            "a success is no error"
        } else if success && result.result.is_none() {
            "a success has a result"
        } else if success && !errors.is_empty() {
            "a success has no errors"
        } else if !success && !result.is_error {
            "an error says so in is_error"
        } else if !success && errors.is_empty() {
            "an error has errors"
        } else if !success && result.result.is_some() {
            "an error has no result"
        } else {
            return;
        };
        notes.add(Key::ResultForm.rule(), At::line(), String::from(message));
    }

    /// Which prompt it answers.
    fn result_prompt(
        &mut self,
        result: &TurnResult<'_>,
        refused: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        if self.policy.attachments_providers_prompt_uuid == Extensions::Absent {
            return;
        }
        let Some(uuid) = result.prompt_uuid.as_deref() else {
            return;
        };
        if let Some(message) = self.prompts.ended(uuid, refused)
            && here.sides == Sides::Both
        {
            let at = at_member(here.object, "prompt_uuid");
            notes.add(Key::ResultPrompt.rule(), at, String::from(message));
        }
    }

    fn interrupted(&mut self, result: &TurnResult<'_>, most: Severity, notes: &mut Notes) {
        let Some(place) = self.turn.interrupted else {
            return;
        };
        if result.subtype == ResultKind::ErrorDuringExecution {
            return;
        }
        let most = if self.turn.has_tasks() {
            Severity::Warning
        } else {
            most
        };
        let at =
            At::line()
                .at_most(most)
                .with(Dir::Agent, Some(place), "the answer to the interrupt");
        let message = String::from("the turn was interrupted, and ends as another one");
        notes.add(Key::InterruptResult.rule(), at, message);
    }

    fn denials(
        &mut self,
        result: &TurnResult<'_>,
        most: Severity,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let Some(denials) = &result.permission_denials else {
            return;
        };
        let mut listed = BTreeSet::new();
        let mut message = None;
        for denial in denials {
            let id = hash(&denial.tool_use_id);
            if !listed.insert(id) {
                message = Some("a call stands twice");
            } else if self.calls.known(id) == Known::Never {
                message = Some("a call stands there that no reply has made");
            } else if denial.tool_input.kind() != Kind::Object {
                message = Some("the input of a call isn't an object");
            }
        }
        let missing = self.turn.denied.iter().any(|id| !listed.contains(id));
        if missing && message.is_none() {
            message = Some("a call that the host denied is missing");
        }
        if let Some(message) = message {
            let at = at_member(here.object, "permission_denials").at_most(most);
            notes.add(Key::Denials.rule(), at, String::from(message));
        }
    }

    fn turns(&mut self, result: &TurnResult<'_>, most: Severity, notes: &mut Notes) {
        let message = if self.policy.num_turns == NumTurns::UserRecords {
            let records = self.turn.user_records.saturating_add(1);
            // One that a hook has stopped counts none.
            (result.num_turns != records && result.num_turns != 0)
                .then(|| alloc::format!("{records} were counted, and {} told", result.num_turns))
        } else {
            let replies = self.stream.replies;
            (result.num_turns < replies)
                .then(|| alloc::format!("{replies} replies, and {} requests", result.num_turns))
        };
        if let Some(message) = message {
            notes.add(Key::Turns.rule(), At::line().at_most(most), message);
        }
    }
}

/// A prompt that made no sense.
fn input_error(result: &TurnResult<'_>, notes: &mut Notes) {
    let nothing = |number: &Num<'_>| number.u64() == Some(0);
    let usage = &result.usage;
    let counts = [
        &usage.input_tokens,
        &usage.output_tokens,
        &usage.cache_read_input_tokens,
        &usage.cache_creation_input_tokens,
    ];
    let message = if result.subtype != ResultKind::ErrorDuringExecution {
        "it is an error_during_execution"
    } else if result.errors.as_deref().map(<[_]>::len) != Some(1) {
        "it has one text"
    } else if result.num_turns != 0
        || !nothing(&result.duration_ms)
        || !nothing(&result.duration_api_ms)
        || !counts.into_iter().flatten().all(nothing)
    {
        "it counts nothing"
    } else if result.total_cost_usd.0.is_some() {
        "it has no price"
    } else if result
        .permission_denials
        .as_deref()
        .is_some_and(|list| !list.is_empty())
    {
        "nothing was denied"
    } else {
        return;
    };
    notes.add(Key::InputError.rule(), At::line(), String::from(message));
}
