//! What a result counts: tokens and prices.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{ModelUsage, Num, TurnResult, Usage};
use crate::protocol::observer::{At, Notes, Severity, hash};

/// The most models that are remembered.
const MOST: usize = 1024;

/// What the session has cost so far, where results say so.
#[derive(Debug, Default)]
pub(super) struct Totals {
    cost: Option<f64>,
    tokens: BTreeMap<u64, [u64; 2]>,
}

fn count(number: Option<&Num<'_>>) -> u64 {
    number.and_then(Num::u64).unwrap_or(0)
}

/// Amounts are floating numbers of many small ones.
fn differ(a: f64, b: f64) -> bool {
    let scale = if a > b { a } else { b };
    let gap = if a > b { a - b } else { b - a };
    gap > scale * 1e-6 + 1e-9
}

/// The price of a result against its models'.
pub(super) fn cost(result: &TurnResult<'_>, most: Severity, notes: &mut Notes) {
    let total = result.total_cost_usd.0.as_ref().map(Num::f64);
    let models = result.model_usage.as_ref().map(|map| map.0.as_slice());
    let mut sum = 0.0;
    let mut unknown = false;
    let mut negative = total.is_some_and(|total| total < 0.0);
    for (_, model) in models.unwrap_or_default() {
        match model.cost_usd.0.as_ref().map(Num::f64) {
            Some(cost) => {
                negative |= cost < 0.0;
                sum += cost;
            }
            None => unknown = true,
        }
    }
    let any = models.is_some_and(|models| !models.is_empty());
    let message = match total {
        _ if negative => "a price is negative",
        Some(_) if unknown => "the price of a model isn't known, and the whole is",
        None if any && !unknown => "the price of each model is known, and the whole isn't",
        Some(total) if any && differ(total, sum) => "the whole isn't the sum of the models",
        Some(_) | None => return,
    };
    let at = At::line().at_most(most);
    notes.add(Key::Cost.rule(), at, String::from(message));
}

/// The usage of a strict result against its models'.
pub(super) fn usage(result: &TurnResult<'_>, notes: &mut Notes) {
    let Some(models) = result.model_usage.as_ref() else {
        return;
    };
    let usage: &Usage<'_> = &result.usage;
    let sum = |of: fn(&ModelUsage<'_>) -> u64| -> u64 {
        let models = models.0.iter();
        models.fold(0, |sum, (_, model)| sum.saturating_add(of(model)))
    };
    let rows: [(&str, u64, u64); 4] = [
        (
            "input",
            count(usage.input_tokens.as_ref()),
            sum(|model| count(Some(&model.input_tokens))),
        ),
        (
            "output",
            count(usage.output_tokens.as_ref()),
            sum(|model| count(Some(&model.output_tokens))),
        ),
        (
            "cache read",
            count(usage.cache_read_input_tokens.as_ref()),
            sum(|model| count(Some(&model.cache_read_input_tokens))),
        ),
        (
            "cache write",
            count(usage.cache_creation_input_tokens.as_ref()),
            sum(|model| count(Some(&model.cache_creation_input_tokens))),
        ),
    ];
    for (name, whole, models) in rows {
        if whole != models {
            let message =
                format!("{whole} {name} tokens in all, and {models} of the models together");
            notes.add(Key::Usage.rule(), At::line(), message);
        }
    }
    let whole = rows
        .iter()
        .fold(0u64, |sum, (_, whole, _)| sum.saturating_add(*whole));
    if let Some(total) = &usage.total_tokens
        && total.u64() != Some(whole)
    {
        let message = format!(
            "total_tokens is {}, and the parts are {whole}",
            total.as_str()
        );
        notes.add(Key::Usage.rule(), At::line(), message);
    }
}

impl Totals {
    /// The totals of a session, which don't shrink.
    pub(super) fn grow(&mut self, result: &TurnResult<'_>, notes: &mut Notes) {
        let mut shrinks = false;
        if let Some(cost) = result.total_cost_usd.0.as_ref().map(Num::f64) {
            shrinks |= self
                .cost
                .is_some_and(|before| cost < before && differ(cost, before));
            self.cost = Some(cost);
        }
        let models = result.model_usage.as_ref().map(|map| map.0.as_slice());
        for (name, model) in models.unwrap_or_default() {
            let tokens =
                [&model.input_tokens, &model.output_tokens].map(|count_of| count(Some(count_of)));
            let name = hash(name);
            if let Some(before) = self.tokens.get(&name) {
                shrinks |= tokens.iter().zip(before).any(|(now, before)| now < before);
            }
            if self.tokens.len() < MOST || self.tokens.contains_key(&name) {
                self.tokens.insert(name, tokens);
            }
        }
        if shrinks {
            let message = String::from("it is less than in the result before");
            notes.add(Key::Totals.rule(), At::line(), message);
        }
    }
}
