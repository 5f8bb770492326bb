//! Requests to models and what they cost; checkpoints, which are counted as well.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{CostProvenance, CostStatus, Snapshot, Usage};
use super::Here;
use super::agent::word;
use crate::protocol::observer::{At, Notes, at_member};

#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The number of the last request; `None`: nobody knows.
    last: Option<u64>,
    unsure: bool,
    checkpoint: Option<u64>,
}

impl Requests {
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    pub(super) fn usage(&mut self, line: &Usage<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let object = here.object;
        if let Some(number) = line.usage_sequence {
            let next = self.last.unwrap_or(0).saturating_add(1);
            if number != next && !self.unsure {
                let message = format!("{number} comes where {next} should");
                notes.add(
                    Key::Sequence.rule(),
                    at_member(object, "usageSequence"),
                    message,
                );
            }
            self.last = Some(number);
            self.unsure = false;
        }
        let sum = line.prompt_tokens.checked_add(line.completion_tokens);
        let cached = line
            .cached_input_tokens
            .unwrap_or(0)
            .saturating_add(line.cache_write_tokens.unwrap_or(0));
        if sum != Some(line.total_tokens)
            || cached > line.prompt_tokens
            || line.reasoning_tokens.unwrap_or(0) > line.completion_tokens
        {
            let message = String::from("the counts don't add up");
            notes.add(Key::Total.rule(), at_member(object, "totalTokens"), message);
        }
        if line.usage_reported == Some(false) && line.total_tokens > 0 {
            let message = String::from("usageReported is false, and there are tokens");
            notes.add(
                Key::Unreported.rule(),
                at_member(object, "usageReported"),
                message,
            );
        }
        word(
            "costStatus",
            !matches!(line.cost_status, Some(CostStatus::Other(_))),
            object,
            notes,
        );
        priced(line, here, notes);
        estimated(line, here, notes);
    }

    pub(super) fn checkpoint(
        &mut self,
        files: &Snapshot<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let at = || at_member(here.object, "checkpoint");
        if files.files.as_ref().is_none_or(|files| files.is_empty()) {
            let message = String::from("no file is listed");
            notes.add(Key::CheckpointFiles.rule(), at(), message);
        }
        if let Some(number) = files.sequence {
            if self.checkpoint.is_some_and(|last| number <= last) {
                let message = format!("{number} isn't larger than the last one");
                notes.add(Key::CheckpointOrder.rule(), at(), message);
            }
            self.checkpoint = Some(number);
        }
    }
}

fn priced(line: &Usage<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
    let amount = line.cost_usd.is_some();
    let wrong = match &line.cost_status {
        Some(CostStatus::Priced) if !amount => Some("priced, without an amount"),
        Some(CostStatus::Priced)
            if line.cost_provenance.is_none()
                || line.pricing_source.is_none()
                || line.pricing_as_of.is_none() =>
        {
            Some("priced, and it isn't said by what")
        }
        Some(CostStatus::Priced) if line.unpriced_reason.is_some() => {
            Some("priced, with a reason why not")
        }
        Some(CostStatus::Unpriced | CostStatus::Error) if amount => {
            Some("an amount of what isn't priced")
        }
        Some(CostStatus::Unpriced | CostStatus::Error) if line.unpriced_reason.is_none() => {
            Some("not priced, without a reason")
        }
        None if amount => Some("an amount without a status"),
        Some(_) | None => None,
    };
    if let Some(message) = wrong {
        let at = at_member(here.object, "costStatus");
        notes.add(Key::Priced.rule(), at, String::from(message));
    }
}

fn estimated(line: &Usage<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
    let reported = match &line.cost_provenance {
        Some(CostProvenance::Reported) => Some(true),
        Some(
            CostProvenance::RuntimeEstimate
            | CostProvenance::PersistedEstimate
            | CostProvenance::ReconstructedEstimate,
        ) => Some(false),
        Some(CostProvenance::Other(_)) | None => None,
    };
    let amount = line.cost_usd.as_ref().map(|amount| amount.f64());
    let message = match (reported, line.cost_estimated, amount) {
        (_, _, Some(amount)) if amount < 0.0 => "the amount is negative",
        (_, Some(_), None) => "an estimate of no amount",
        (Some(true), Some(true), _) => "it was reported, and is called an estimate",
        (Some(false), Some(false) | None, Some(_)) => "an estimate that isn't called one",
        _ => return,
    };
    let at = match here.object.get("costEstimated") {
        Some(_) => at_member(here.object, "costEstimated"),
        None => At::line(),
    };
    notes.add(Key::Estimated.rule(), at, String::from(message));
}
