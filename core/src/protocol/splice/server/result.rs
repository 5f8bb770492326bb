//! Requests to models, and the result of a pipeline as the JSON text that `final` has.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::wire::{CostProvenance, CostStatus, Num, Usage as UsageLine};
use super::{Face, Out};
use crate::json::{self, Str};
use crate::vocab::*;

/// The price of what has none.
const NO_PRICE: &str = "the price of the model isn't known";
/// The same where the provider reported no tokens.
const NOT_REPORTED: &str = "usage not reported by provider";

/// What a run came to so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Stages were seen: the result is JSON.
    pub(super) pipeline: bool,
    session: Text,
    tier: Option<Text>,
    records: Vec<Record>,
    requests: Vec<Request>,
    /// Tokens of each run.
    used: BTreeMap<RunId, Used>,
}

/// A stage that is over.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) run: RunId,
    pub(super) name: Text,
    pub(super) status: String,
    pub(super) iteration: u32,
    pub(super) summary: String,
    pub(super) latency_ms: u64,
}

/// A request of a stage.
#[derive(Debug)]
struct Request {
    stage: Text,
    iteration: u32,
    model: ModelRef,
    reported: bool,
    used: Used,
    cost: Cost,
}

/// Tokens as this wire counts them: those from a cache are part of the prompt's, those of reasoning of the answer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    prompt: u64,
    completion: u64,
    cached: u64,
    cache_write: u64,
    reasoning: u64,
}

impl Used {
    fn of(usage: Option<Usage>) -> Used {
        let usage = usage.unwrap_or_default();
        Used {
            prompt: usage.prompt_tokens().unwrap_or(0),
            completion: usage.answer_tokens().unwrap_or(0),
            cached: usage.cache_read.unwrap_or(0),
            cache_write: usage.cache_write.unwrap_or(0),
            reasoning: usage.reasoning.unwrap_or(0),
        }
    }

    fn plus(self, other: Used) -> Used {
        Used {
            prompt: self.prompt.saturating_add(other.prompt),
            completion: self.completion.saturating_add(other.completion),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl Tally {
    pub(super) fn open(&mut self, info: &SessionInfo) {
        self.session = info.session.clone();
    }

    pub(super) fn stage(&mut self, record: Record) {
        self.records.push(record);
    }

    /// The tier that a pipeline runs, which it tells as it begins.
    pub(super) fn tier(&mut self, tier: &str) {
        self.tier = Some(tier.into());
    }
}

impl Face {
    #[allow(clippy::too_many_arguments, reason = "what a request ends with")]
    pub(super) fn request_ended(
        &mut self,
        run: RunId,
        outcome: &RequestOutcome,
        model: &ModelRef,
        usage: Option<Usage>,
        cost: &Cost,
        out: &mut Out,
    ) {
        let used = Used::of(usage);
        let stage = self
            .stages
            .stage(run)
            .map(|(name, time)| (name.clone(), time));
        let Some((stage, iteration)) = stage else {
            // A session alone tells of requests that went well, and of their tokens only.
            let told = usage.is_some() && !matches!(outcome, RequestOutcome::Failed(_));
            if told {
                self.put(tokens(used, self.id()), out);
            }
            return;
        };
        let request = Request {
            stage,
            iteration,
            model: model.clone(),
            reported: usage.is_some(),
            used,
            cost: cost.clone(),
        };
        let sum = self.tally.used.entry(run).or_default();
        *sum = sum.plus(used);
        self.tally.requests.push(request);
        let number = self.tally.requests.len() as u64;
        if let Some(request) = self.tally.requests.last() {
            self.put(self.usage_line(request, number), out);
        }
    }

    fn usage_line<'a>(&'a self, request: &'a Request, number: u64) -> UsageLine<'a> {
        let priced = price(request);
        UsageLine {
            iteration: Some(request.iteration.into()),
            model: self.member(&request.model.model),
            provider: self.member(request.model.provider.as_deref().unwrap_or("")),
            stage: self.member(&request.stage),
            usage_reported: Some(request.reported),
            usage_sequence: Some(number),
            cost_status: Some(if priced.usd.is_some() {
                CostStatus::Priced
            } else {
                CostStatus::Unpriced
            }),
            cost_estimated: priced
                .provenance
                .as_ref()
                .map(|provenance| *provenance != CostProvenance::Reported),
            cost_provenance: priced.provenance,
            cost_usd: priced.usd.map(Num::from),
            pricing_as_of: priced.as_of.map(Into::into),
            pricing_source: priced.source.map(Into::into),
            unpriced_reason: priced.reason.map(Into::into),
            ..tokens(request.used, self.id())
        }
    }

    /// The text of a pipeline's `final`: indented JSON.
    pub(super) fn result(&self, status: &str, abort_reason: Option<&str>) -> String {
        let tally = &self.tally;
        let mut out = Writer::default();
        out.open('{');
        out.text("run_id", &tally.session);
        out.text("status", status);
        out.text("tier", tally.tier.as_deref().unwrap_or("light"));
        out.key("stages");
        out.open('[');
        for record in &tally.records {
            self.record(record, &mut out);
        }
        out.close(']');
        let total = tally
            .requests
            .iter()
            .fold(Used::default(), |sum, request| sum.plus(request.used));
        let costs: Vec<f64> = tally.requests.iter().filter_map(|r| price(r).usd).collect();
        // An amount that isn't known is left out, never 0.
        if !costs.is_empty() {
            out.number("total_cost_usd", costs.iter().sum());
        }
        out.count("total_tokens_input", total.prompt);
        out.count("total_tokens_output", total.completion);
        out.count("total_tokens_cached", total.cached);
        out.count("total_tokens_cache_write", total.cache_write);
        out.count("total_tokens_reasoning", total.reasoning);
        out.key("usage_records");
        out.open('[');
        for (index, request) in tally.requests.iter().enumerate() {
            self.request(request, index as u64 + 1, &mut out);
        }
        out.close(']');
        let all = tally.requests.len();
        out.text(
            "cost_coverage",
            match costs.len() {
                0 => "unavailable",
                priced if priced == all => "complete",
                _ => "partial",
            },
        );
        out.count("priced_request_count", costs.len() as u64);
        out.count("unpriced_request_count", (all - costs.len()) as u64);
        out.count("error_request_count", 0);
        if let Some(reason) = abort_reason {
            out.text("abort_reason", reason);
        }
        out.close('}');
        out.text
    }

    fn record(&self, record: &Record, out: &mut Writer) {
        let of_it = |request: &&Request| {
            request.stage == record.name && request.iteration == record.iteration
        };
        let requests: Vec<&Request> = self.tally.requests.iter().filter(of_it).collect();
        let used = self
            .tally
            .used
            .get(&record.run)
            .copied()
            .unwrap_or_default();
        let costs: Vec<f64> = requests.iter().filter_map(|r| price(r).usd).collect();
        out.open('{');
        out.text("name", &record.name);
        out.text("status", &record.status);
        out.count("iteration", record.iteration.into());
        if let Some(request) = requests.last() {
            if let Some(provider) = &request.model.provider {
                out.text("provider", provider);
            }
            out.text("model", &request.model.model);
        }
        out.text("output_summary", &record.summary);
        out.count("tokens_input", used.prompt);
        out.count("tokens_output", used.completion);
        out.count("tokens_cached", used.cached);
        out.count("tokens_cache_write", used.cache_write);
        out.count("tokens_reasoning", used.reasoning);
        if !costs.is_empty() {
            out.number("cost_usd", costs.iter().sum());
        }
        out.count("latency_ms", record.latency_ms);
        out.close('}');
    }

    fn request(&self, request: &Request, number: u64, out: &mut Writer) {
        let priced = price(request);
        out.open('{');
        out.count("sequence", number);
        if let Some(provider) = &request.model.provider {
            out.text("provider", provider);
        }
        out.text("model", &request.model.model);
        out.text("stage", &request.stage);
        out.count("iteration", request.iteration.into());
        out.key("usage_reported");
        out.raw(if request.reported { "true" } else { "false" });
        out.count("input_tokens", request.used.prompt);
        out.count("output_tokens", request.used.completion);
        out.count("cached_input_tokens", request.used.cached);
        out.count("cache_write_tokens", request.used.cache_write);
        out.count("reasoning_tokens", request.used.reasoning);
        match (priced.usd, priced.reason) {
            (Some(usd), _) => {
                out.text("cost_status", "priced");
                out.number("cost_usd", usd);
            }
            (None, reason) => {
                out.text("cost_status", "unpriced");
                out.text("unpriced_reason", reason.unwrap_or(NO_PRICE));
            }
        }
        out.close('}');
    }
}

/// What is known of a price.
struct Priced<'a> {
    usd: Option<f64>,
    provenance: Option<CostProvenance<'static>>,
    source: Option<&'a str>,
    as_of: Option<&'a str>,
    reason: Option<&'a str>,
}

fn price(request: &Request) -> Priced<'_> {
    match &request.cost {
        Cost::Known {
            pico_usd,
            basis,
            source,
            as_of,
        } if request.reported => Priced {
            // Picodollars beyond 2^53 are more than nine thousand dollars.
            #[allow(clippy::cast_precision_loss)]
            usd: Some(*pico_usd as f64 / 1e12),
            provenance: Some(match basis {
                CostBasis::Reported => CostProvenance::Reported,
                CostBasis::Estimated => CostProvenance::RuntimeEstimate,
                CostBasis::Reconstructed => CostProvenance::ReconstructedEstimate,
            }),
            source: Some(source),
            as_of: Some(as_of),
            reason: None,
        },
        cost @ (Cost::Known { .. } | Cost::Unpriced { .. } | Cost::NotSaid) => Priced {
            usd: None,
            provenance: None,
            source: None,
            as_of: None,
            reason: Some(match cost {
                _ if !request.reported => NOT_REPORTED,
                Cost::Unpriced { why } => why,
                Cost::Known { .. } | Cost::NotSaid => NO_PRICE,
            }),
        },
    }
}

/// The tokens of a line, and nothing of their price.
fn tokens<'a>(used: Used, run_id: Str<'a>) -> UsageLine<'a> {
    let some = |count: u64| (count > 0).then_some(count);
    UsageLine {
        cache_write_tokens: some(used.cache_write),
        cached_input_tokens: some(used.cached),
        completion_tokens: used.completion,
        prompt_tokens: used.prompt,
        reasoning_tokens: some(used.reasoning),
        run_id,
        total_tokens: used.prompt.saturating_add(used.completion),
        ..UsageLine::default()
    }
}

/// Writes indented JSON.
#[derive(Debug, Default)]
struct Writer {
    text: String,
    depth: usize,
    /// Whether the open object or list is empty so far.
    empty: bool,
    /// A name was written, and its value comes next.
    named: bool,
}

impl Writer {
    fn open(&mut self, bracket: char) {
        self.next();
        self.text.push(bracket);
        self.depth += 1;
        self.empty = true;
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if !core::mem::replace(&mut self.empty, false) {
            self.line();
        }
        self.text.push(bracket);
    }

    fn line(&mut self) {
        self.text.push('\n');
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
    }

    /// What stands before a value or a name.
    fn next(&mut self) {
        if core::mem::replace(&mut self.named, false) || self.depth == 0 {
            return;
        }
        if !core::mem::replace(&mut self.empty, false) {
            self.text.push(',');
        }
        self.line();
    }

    fn key(&mut self, name: &str) {
        self.next();
        self.string(name);
        self.text.push_str(": ");
        self.named = true;
    }

    fn raw(&mut self, value: &str) {
        self.next();
        self.text.push_str(value);
    }

    fn string(&mut self, text: &str) {
        let mut bytes = Vec::new();
        json::write_str(&mut bytes, text);
        self.text
            .push_str(core::str::from_utf8(&bytes).unwrap_or("\"\""));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.key(name);
        self.next();
        self.string(text);
    }

    fn count(&mut self, name: &str, count: u64) {
        self.key(name);
        self.raw(&format!("{count}"));
    }

    fn number(&mut self, name: &str, number: f64) {
        self.key(name);
        self.raw(Num::from(number).as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_10_the_result_is_indented_json() {
        let mut out = Writer::default();
        out.open('{');
        out.text("a", "x\"y");
        out.key("b");
        out.open('[');
        out.close(']');
        out.key("c");
        out.open('[');
        for count in [1, 2] {
            out.open('{');
            out.count("d", count);
            out.number("e", 0.25);
            out.close('}');
        }
        out.close(']');
        out.close('}');
        assert_eq!(
            out.text,
            "{\n  \"a\": \"x\\\"y\",\n  \"b\": [],\n  \"c\": [\n    {\n      \"d\": 1,\n      \"e\": 0.25\n    },\n    {\n      \"d\": 2,\n      \"e\": 0.25\n    }\n  ]\n}"
        );
    }
}
