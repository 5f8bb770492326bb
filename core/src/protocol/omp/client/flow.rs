//! Steps, attempts and replies of one run. The wire's `turn_start` and `turn_end` are steps; requests have no frames of
//! their own, so they are inferred; an attempt that failed is told only by what comes behind its end.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use super::asks::Asks;
use super::calls::{Calls, Spot};
use super::convert::{cost, failure, failure_of, input, model_of, note, timestamp, usage};
use super::reply::Reply;
use crate::json::Raw;
use crate::protocol::heard::{message, narrow, no_model};
use crate::protocol::omp::wire::{
    Any, AssistantMessage, AutoRetryEnd, AutoRetryStart, Message as WireMessage, StopReason,
    ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate, Update,
};
use crate::vocab::*;

/// Models of one turn whose sums are kept.
const MOST_MODELS: usize = 256;

/// Why what is open ends without a word of the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The next thing began, or the step ended as usual: it should have ended before.
    Over,
    /// The turn was cancelled.
    Cancelled,
    /// Another session took over.
    Detached,
    /// The turn failed.
    Failed(Failure),
    /// The agent is gone.
    Gone(Failure),
}

/// How the last reply ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Last {
    /// There was none.
    #[default]
    None,
    /// With this word.
    Complete(Text),
    Aborted,
    Failed(Failure),
}

/// The run's part of a turn.
#[derive(Debug)]
pub(super) struct Flow {
    run: RunId,
    steps: u32,
    step: Option<Step>,
    /// A `turn_start` came; the step begins with what is in it.
    due: bool,
    pub calls: Calls,
    /// A reply that failed: whether it is tried again is told by the next event.
    failed: Option<Failed>,
    pub last: Last,
    /// A cancel was written.
    pub stopping: bool,
    /// A cancel was acknowledged: nothing succeeds any more.
    pub cancelled: bool,
    pub answer: Option<Text>,
    pub requests: u32,
    pub api_us: u64,
    pub by_model: Vec<(ModelRef, Usage, Cost)>,
    /// The most bytes of one reply that are kept beside its deltas.
    most: usize,
}

#[derive(Debug)]
struct Step {
    id: StepId,
    attempts: u32,
    request: Option<Request>,
    retry: Retry,
    /// The last request ended with a completion signal.
    complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    None,
    /// Announced; the attempt hasn't begun.
    Waiting,
    Trying,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    began_us: u64,
    reply: Option<Reply>,
}

/// A request's end as it is said.
#[derive(Debug)]
struct Ending {
    model: ModelRef,
    usage: Option<Usage>,
    cost: Cost,
    /// As the agent measured it.
    api_us: Option<u64>,
}

#[derive(Debug)]
struct Failed {
    message: Option<Arc<Message>>,
    wires: Vec<(CallId, String)>,
    failure: Failure,
    ending: Ending,
    /// Its `turn_end` came.
    over: bool,
}

impl Flow {
    pub(super) fn new(run: RunId, most: usize) -> Self {
        Flow {
            run,
            steps: 0,
            step: None,
            due: false,
            calls: Calls::default(),
            failed: None,
            last: Last::None,
            stopping: false,
            cancelled: false,
            answer: None,
            requests: 0,
            api_us: 0,
            by_model: Vec::new(),
            most,
        }
    }

    /// Where a call would begin.
    pub(super) fn spot(&self) -> Spot {
        Spot {
            run: self.run,
            complete: self.step.as_ref().is_some_and(|step| step.complete),
            stopped: self.stopping || self.cancelled,
        }
    }

    /// Whether the wait before another attempt is on.
    pub(super) fn waits_to_retry(&self) -> bool {
        let retry = self.step.as_ref().map(|step| step.retry);
        retry == Some(Retry::Waiting)
    }

    fn infer(&self, what: What, out: &mut Out) {
        out.event(self.run, Seen::Inferred, what);
    }

    /// `turn_start`.
    pub(super) fn turn_start(&mut self, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        if self.waits_to_retry() {
            return self.start_request(out);
        }
        if self.step.as_ref().is_some_and(|step| step.attempts > 0) {
            self.end_step(&Cut::Over, asks, out);
        }
        self.due = true;
    }

    /// `turn_end`.
    pub(super) fn turn_end(&mut self, asks: &mut Asks, out: &mut Out) {
        self.due = false;
        if let Some(failed) = &mut self.failed {
            failed.over = true;
        } else if !self.waits_to_retry() {
            self.close_step(&Cut::Over, Seen::Real, asks, out);
        }
    }

    fn open_step(&mut self, out: &mut Out) {
        let seen = if core::mem::take(&mut self.due) {
            Seen::Real
        } else {
            Seen::Inferred
        };
        if self.step.is_some() {
            return;
        }
        self.steps = self.steps.saturating_add(1);
        let id = out.ids.step();
        let number = self.steps;
        out.event(self.run, seen, What::StepStarted { step: id, number });
        self.step = Some(Step {
            id,
            attempts: 0,
            request: None,
            retry: Retry::None,
            complete: false,
        });
    }

    /// Sees to it that a step is open whose request hasn't gone out: input is applied now.
    pub(super) fn input_step(&mut self, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        if self.step.as_ref().is_some_and(|step| step.attempts > 0) {
            self.end_step(&Cut::Over, asks, out);
        }
        self.open_step(out);
    }

    /// A message that isn't a reply: a note stands in its step, a result was told by its call.
    pub(super) fn other_message(&mut self, value: Raw<'_>, asks: &mut Asks, out: &mut Out) {
        if let Ok(WireMessage::ToolResult(result)) = WireMessage::decode(value) {
            let wire = &*result.tool_call_id;
            if self.calls.waits(wire) {
                let name = result.tool_name.as_deref().unwrap_or_default();
                let mut spot = self.spot();
                spot.complete &= self.step.is_some();
                let given = Any(Some(value));
                self.calls
                    .result(wire, name, given, result.is_error, spot, out);
            }
            return;
        }
        self.settle_failed(asks, out);
        if self.due {
            self.open_step(out);
        }
        let id = out.ids.message();
        let made = note(value, id, out);
        out.event(self.run, Seen::Real, What::Message(Arc::new(made)));
    }

    fn start_request(&mut self, out: &mut Out) {
        let run = self.run;
        let Some(step) = &mut self.step else { return };
        step.attempts = step.attempts.saturating_add(1);
        step.complete = false;
        if step.retry == Retry::Waiting {
            step.retry = Retry::Trying;
        }
        let (id, attempt) = (out.ids.request(), step.attempts);
        out.event(
            run,
            Seen::Inferred,
            What::RequestStarted {
                request: id,
                attempt,
            },
        );
        step.request = Some(Request {
            id,
            began_us: out.now().mono_us,
            reply: None,
        });
        self.requests = self.requests.saturating_add(1);
    }

    /// Sees to it that a request is open: what comes can only belong to one.
    fn open_request(&mut self, asks: &mut Asks, out: &mut Out) {
        if let Some(step) = &self.step {
            if step.request.is_some() {
                return;
            }
            if step.attempts > 0 && step.retry != Retry::Waiting {
                self.end_step(&Cut::Over, asks, out);
            }
        }
        self.open_step(out);
        self.start_request(out);
    }

    fn request(&mut self) -> Option<&mut Request> {
        self.step.as_mut()?.request.as_mut()
    }

    fn has_reply(&self) -> bool {
        let request = self.step.as_ref().and_then(|step| step.request.as_ref());
        request.is_some_and(|request| request.reply.is_some())
    }

    fn open_reply(&mut self, message: Raw<'_>, seen: Seen, asks: &mut Asks, out: &mut Out) {
        self.open_request(asks, out);
        let (run, most) = (self.run, self.most);
        if let Some(request) = self.request()
            && request.reply.is_none()
        {
            request.reply = Some(Reply::begin(run, request.id, message, most, seen, out));
        }
    }

    /// `message_start` of a reply. One that is empty and over already is none: it stands for a request that showed
    /// nothing.
    pub(super) fn reply_start(&mut self, message: Raw<'_>, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        if self.has_reply() {
            out.finding("a reply began before the end of the one before");
            self.cut_request(&Cut::Over, out);
        }
        let stop = message.get("stopReason").and_then(Raw::string);
        let empty = message
            .get("content")
            .is_none_or(|content| content.as_str().trim_matches(['[', ']', ' ']).is_empty());
        if empty && matches!(stop.as_deref(), Some("error" | "aborted")) {
            return;
        }
        self.open_reply(message, Seen::Real, asks, out);
    }

    /// `message_update`. The hot path: allocates nothing for a piece of text once warm.
    pub(super) fn reply_update(&mut self, update: &Update<'_>, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        if !self.has_reply() {
            self.open_reply(Raw::NULL, Seen::Inferred, asks, out);
        }
        if let Some(reply) = self.request().and_then(|request| request.reply.as_mut()) {
            reply.update(update, out);
        }
    }

    /// `message_end` of a reply.
    pub(super) fn reply_end(
        &mut self,
        told: &AssistantMessage<'_>,
        value: Raw<'_>,
        asks: &mut Asks,
        out: &mut Out,
    ) {
        self.settle_failed(asks, out);
        let stop = told.stop_reason.clone().unwrap_or(StopReason::Stop);
        let shown = self.has_reply() || !told.content.is_empty();
        let begun = self.step.as_ref().is_some_and(|step| {
            step.request.is_some() || step.attempts == 0 || step.retry == Retry::Waiting
        });
        if stop == StopReason::Aborted && !shown && !begun {
            // The step that was to come behind the tools of a cancelled turn: it never began.
            self.last = Last::Aborted;
            return;
        }
        if shown {
            self.open_reply(value, Seen::Inferred, asks, out);
        } else {
            self.open_request(asks, out);
        }
        let finished = !matches!(stop, StopReason::Aborted | StopReason::Error);
        let ending = Ending {
            model: model_of(told),
            usage: told.usage.as_deref().and_then(|it| usage(it, finished)),
            cost: cost(told.usage.as_deref()),
            api_us: told
                .duration
                .as_ref()
                .and_then(|ms| ms.u64())
                .map(|ms| ms.saturating_mul(1_000)),
        };
        let failed = stop == StopReason::Error;
        let reply = self.request().and_then(|request| request.reply.take());
        let (whole, wires) = match reply {
            Some(reply) => {
                let id = reply.id;
                let (content, wires) = reply.settle(&told.content, failed, out);
                let mut made = message(id, Role::Assistant, content, Origin::Harness, out);
                made.at_ms = timestamp(value).unwrap_or(made.at_ms);
                (Some(Arc::new(made)), wires)
            }
            None => (None, Vec::new()),
        };
        if failed {
            let failure = failure_of(told);
            self.last = Last::Failed(failure.clone());
            self.failed = Some(Failed {
                message: whole,
                wires,
                failure,
                ending,
                over: false,
            });
            return;
        }
        let word = Text::from(stop.as_str());
        let (stop, outcome) = match stop {
            StopReason::Aborted => (Stop::Cancelled, RequestOutcome::Cancelled),
            StopReason::Stop => (Stop::End, complete(&word)),
            StopReason::Length => (Stop::MaxTokens, complete(&word)),
            StopReason::ToolUse => (Stop::ToolUse, complete(&word)),
            StopReason::Error | StopReason::Other(_) => {
                (Stop::Other(word.clone()), complete(&word))
            }
        };
        self.last = if finished {
            Last::Complete(word)
        } else {
            Last::Aborted
        };
        if let Some(whole) = whole {
            self.answer = finished.then(|| whole.text().into());
            self.say_end(whole, &wires, stop, true, Seen::Real, out);
        }
        self.end_request(outcome, ending, out);
    }

    fn say_end(
        &mut self,
        message: Arc<Message>,
        wires: &[(CallId, String)],
        stop: Stop,
        kept: bool,
        seen: Seen,
        out: &mut Out,
    ) {
        let succeeds = matches!(
            stop,
            Stop::End | Stop::ToolUse | Stop::MaxTokens | Stop::Other(_)
        );
        let stop = if self.cancelled && succeeds {
            Stop::Cancelled
        } else {
            stop
        };
        if kept {
            self.calls.list(&message, wires);
        } else {
            self.calls.unlist();
        }
        out.event(
            self.run,
            seen,
            What::MessageEnded {
                message,
                stop,
                kept,
                calls: CallList::Complete,
            },
        );
    }

    fn end_request(&mut self, outcome: RequestOutcome, ending: Ending, out: &mut Out) {
        let succeeds = matches!(outcome, RequestOutcome::Complete { .. });
        let outcome = if self.cancelled && succeeds {
            RequestOutcome::Cancelled
        } else {
            outcome
        };
        let run = self.run;
        let Some(step) = &mut self.step else { return };
        let Some(request) = step.request.take() else {
            return;
        };
        step.complete = matches!(outcome, RequestOutcome::Complete { .. });
        let waited = out.now().mono_us.saturating_sub(request.began_us);
        let api_us = ending.api_us.unwrap_or(waited);
        let won = step.complete && step.retry == Retry::Trying;
        if won {
            step.retry = Retry::None;
        }
        self.api_us = self.api_us.saturating_add(api_us);
        add(&mut self.by_model, &ending);
        out.event(
            run,
            Seen::Inferred,
            What::RequestEnded {
                request: request.id,
                outcome,
                model: ending.model,
                usage: ending.usage,
                cost: ending.cost,
                api_us,
            },
        );
        if won {
            self.infer(
                What::RetryEnded {
                    ok: true,
                    why: None,
                },
                out,
            );
        }
    }

    /// Nothing said that the failed attempt is tried again: it stays as it is.
    pub(super) fn settle_failed(&mut self, asks: &mut Asks, out: &mut Out) {
        if let Some(failed) = self.failed.take() {
            let (failure, over) = (failed.failure.clone(), failed.over);
            self.end_failed(failed, true, out);
            if over {
                self.close_step(&Cut::Failed(failure), Seen::Real, asks, out);
            }
        }
    }

    fn end_failed(&mut self, failed: Failed, kept: bool, out: &mut Out) {
        if let Some(message) = failed.message {
            self.say_end(message, &failed.wires, Stop::Failed, kept, Seen::Real, out);
        }
        self.end_request(RequestOutcome::Failed(failed.failure), failed.ending, out);
    }

    /// `auto_retry_start`: the attempt before is void.
    pub(super) fn retry(&mut self, told: &AutoRetryStart<'_>, asks: &mut Asks, out: &mut Out) {
        let why = match &self.failed {
            Some(failed) => Failure {
                retryable: true,
                ..failed.failure.clone()
            },
            None => failure(&told.error_message, None, Some(true)),
        };
        match self.failed.take() {
            Some(failed) => self.end_failed(failed, false, out),
            None => {
                // The frames of the attempt were hidden.
                self.open_request(asks, out);
                self.cut_request(&Cut::Failed(why.clone()), out);
            }
        }
        out.event(
            self.run,
            Seen::Real,
            What::RetryScheduled {
                attempt: narrow(told.attempt.saturating_add(1)),
                max: narrow(told.max_attempts),
                wait_us: wait_us(told.delay_ms.f64()),
                why,
            },
        );
        self.end_calls(&Cut::Over, asks, out);
        if let Some(step) = &mut self.step {
            step.retry = Retry::Waiting;
        }
    }

    /// `auto_retry_end`: a success was seen by its reply; anything else ends the step.
    pub(super) fn retry_end(&mut self, told: &AutoRetryEnd<'_>, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        let tries = self
            .step
            .as_ref()
            .is_some_and(|step| step.retry != Retry::None);
        if !tries || told.success {
            return;
        }
        let text = told.final_error.as_deref().unwrap_or_default();
        let why = match &self.last {
            Last::Failed(failure) if !text.contains("cancel") => Some(failure.clone()),
            Last::Failed(_) | Last::None | Last::Complete(_) | Last::Aborted => None,
        };
        if self.request().is_some() {
            self.cut_request(&Cut::Cancelled, out);
        }
        self.end_retry(why, Seen::Real, out);
        self.end_step(&Cut::Over, asks, out);
    }

    fn end_retry(&mut self, why: Option<Failure>, seen: Seen, out: &mut Out) {
        let run = self.run;
        if let Some(step) = &mut self.step
            && core::mem::replace(&mut step.retry, Retry::None) != Retry::None
        {
            out.event(run, seen, What::RetryEnded { ok: false, why });
        }
    }

    /// `tool_execution_start`.
    pub(super) fn tool_start(
        &mut self,
        told: &ToolExecutionStart<'_>,
        asks: &mut Asks,
        out: &mut Out,
    ) {
        self.settle_failed(asks, out);
        let (spot, wire) = (self.spot(), &*told.tool_call_id);
        // A call of the host's tool may have been told of before.
        self.calls.begin(
            wire,
            &told.tool_name,
            input(told.args),
            Seen::Real,
            spot,
            out,
        );
    }

    /// `tool_execution_update`.
    pub(super) fn tool_update(&mut self, told: &ToolExecutionUpdate<'_>, out: &mut Out) {
        self.calls
            .update(self.run, &told.tool_call_id, told.partial_result, out);
    }

    /// `tool_execution_end`. A call that never began is begun first, so that its output isn't lost.
    pub(super) fn tool_end(&mut self, told: &ToolExecutionEnd<'_>, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        let (spot, wire) = (self.spot(), &*told.tool_call_id);
        let again = !self.calls.is_open(wire) && !self.calls.waits(wire);
        if again && self.calls.known(wire).is_some() {
            return out.finding(format!("call {wire:?} ended twice"));
        }
        let call = self
            .calls
            .begin(wire, &told.tool_name, None, Seen::Inferred, spot, out);
        let cut = if spot.stopped {
            Cut::Cancelled
        } else {
            Cut::Over
        };
        asks.close_call(call, &cut, &mut self.calls, out);
        self.calls.end(
            self.run,
            wire,
            told.result,
            told.is_error,
            spot.stopped,
            out,
        );
    }

    /// Steps so far.
    pub(super) const fn steps(&self) -> u32 {
        self.steps
    }

    /// Before a compaction: no message, request or call is open.
    pub(super) fn between(&mut self, asks: &mut Asks, out: &mut Out) {
        self.settle_failed(asks, out);
        self.cut_request(&Cut::Over, out);
        if self.calls.any_open() {
            self.end_calls(&Cut::Over, asks, out);
        }
    }

    /// Whether a compaction may be told of now.
    pub(super) fn is_between(&self) -> bool {
        let request = self
            .step
            .as_ref()
            .is_some_and(|step| step.request.is_some());
        !request && !self.calls.any_open()
    }

    fn end_calls(&mut self, cut: &Cut, asks: &mut Asks, out: &mut Out) {
        asks.close_calls(self.run, &mut self.calls, cut, out);
        self.calls.end_all(self.run, cut, out);
    }

    fn cut_request(&mut self, cut: &Cut, out: &mut Out) {
        if self.request().is_none() {
            return;
        }
        let (stop, kept, outcome) = match cut {
            Cut::Over => {
                out.finding("a reply never ended");
                (Stop::NotSaid, true, RequestOutcome::Truncated)
            }
            Cut::Cancelled => (Stop::Cancelled, true, RequestOutcome::Cancelled),
            Cut::Detached => (Stop::Detached, true, RequestOutcome::Cancelled),
            Cut::Failed(failure) => (Stop::Failed, false, RequestOutcome::Failed(failure.clone())),
            Cut::Gone(failure) => (Stop::NotSaid, true, RequestOutcome::Failed(failure.clone())),
        };
        if let Some(reply) = self.request().and_then(|request| request.reply.take()) {
            let id = reply.id;
            let made = message(id, Role::Assistant, reply.cut(), Origin::Harness, out);
            self.say_end(Arc::new(made), &[], stop, kept, Seen::Inferred, out);
        }
        let ending = Ending {
            model: no_model(),
            usage: None,
            cost: Cost::NotSaid,
            api_us: None,
        };
        self.end_request(outcome, ending, out);
    }

    /// Ends the open step and everything in it: its `turn_end` didn't come.
    pub(super) fn end_step(&mut self, cut: &Cut, asks: &mut Asks, out: &mut Out) {
        self.close_step(cut, Seen::Inferred, asks, out);
    }

    fn close_step(&mut self, cut: &Cut, seen: Seen, asks: &mut Asks, out: &mut Out) {
        let cut = if self.cancelled && *cut == Cut::Over {
            &Cut::Cancelled
        } else {
            cut
        };
        self.due = false;
        if let Some(failed) = self.failed.take() {
            self.end_failed(failed, true, out);
        }
        self.cut_request(cut, out);
        let why = match cut {
            Cut::Failed(failure) | Cut::Gone(failure) => Some(failure.clone()),
            Cut::Over | Cut::Cancelled | Cut::Detached => None,
        };
        self.end_retry(why, Seen::Inferred, out);
        let skipped = match (&self.last, cut) {
            (Last::Failed(failure), Cut::Over) => &Cut::Failed(failure.clone()),
            (Last::Failed(_) | Last::None | Last::Complete(_) | Last::Aborted, _) => cut,
        };
        self.end_calls(skipped, asks, out);
        if let Some(step) = self.step.take() {
            let step = step.id;
            out.event(self.run, seen, What::StepEnded { step });
        }
    }
}

fn complete(word: &Text) -> RequestOutcome {
    RequestOutcome::Complete {
        finish: word.clone(),
    }
}

/// A wait as the program writes it, in milliseconds with a fraction.
fn wait_us(ms: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..=1e12).contains(&ms).then_some((ms * 1e3) as u64)
}

/// Adds a request to its model's sums.
fn add(sums: &mut Vec<(ModelRef, Usage, Cost)>, ending: &Ending) {
    let Some(usage) = ending.usage else { return };
    if sums.len() >= MOST_MODELS {
        return;
    }
    let Some((_, sum, cost)) = sums.iter_mut().find(|(model, ..)| *model == ending.model) else {
        return sums.push((ending.model.clone(), usage, ending.cost.clone()));
    };
    *sum = sum.plus(usage);
    if let (Cost::Known { pico_usd, .. }, Cost::Known { pico_usd: more, .. }) =
        (&mut *cost, &ending.cost)
    {
        *pico_usd = pico_usd.saturating_add(*more);
    } else {
        *cost = Cost::NotSaid;
    }
}
