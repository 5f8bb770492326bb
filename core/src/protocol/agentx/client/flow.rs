//! Steps, attempts and replies of one run. The wire has no frames for steps, and for requests only where replies
//! stream; so steps are inferred, and without streaming an end is what comes next.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::asks::Asks;
use super::calls::{Calls, Given, Spot};
use super::convert::{failure, ms_us, status};
use super::reply::Reply;
use super::{Book, Out};
use crate::protocol::agentx::wire::{ApiRetry, Assistant, Kept, Maybe, StreamEvent};
use crate::protocol::heard::{message, narrow};
use crate::vocab::*;

/// Why what is open ends without a word of the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The next thing began, or the turn ended as usual.
    Over,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Failed(Failure),
    /// The agent is gone.
    Gone(Failure),
}

/// What the end of a turn says of its last request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub usage: Option<Usage>,
    pub cost: Cost,
    /// Why its reply stopped.
    pub stop: Option<Text>,
}

impl Tail {
    /// Nothing.
    pub(super) const NONE: Tail = Tail {
        usage: None,
        cost: Cost::NotSaid,
        stop: None,
    };
}

/// The run's part of a turn.
#[derive(Debug)]
pub(super) struct Flow {
    run: RunId,
    steps: u32,
    step: Option<Step>,
    /// The reply that was cut off: what is told of it now is no news.
    cut_off: Option<alloc::string::String>,
    /// An interrupt was written.
    pub stopping: bool,
    /// A cancel was acknowledged, or shows: nothing succeeds any more.
    pub cancelled: bool,
    /// The provider failed for good.
    pub failed: Option<Failure>,
    pub answer: Option<Text>,
    pub requests: u32,
    pub api_us: u64,
    /// What its requests said that they used.
    pub said: Usage,
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
    /// The provider's id of the last whole reply.
    last: alloc::string::String,
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

impl Flow {
    pub(super) fn new(run: RunId, most: usize) -> Self {
        Flow {
            run,
            steps: 0,
            step: None,
            cut_off: None,
            stopping: false,
            cancelled: false,
            failed: None,
            answer: None,
            requests: 0,
            api_us: 0,
            said: Usage::default(),
            most,
        }
    }

    /// Where a call would begin.
    pub(super) fn spot(&self) -> Spot {
        Spot {
            run: self.run,
            placed: self
                .step
                .as_ref()
                .is_some_and(|step| step.complete || step.request.is_some()),
            stopped: self.stopping || self.cancelled,
        }
    }

    /// Steps so far.
    pub(super) const fn steps(&self) -> u32 {
        self.steps
    }

    fn waits_to_retry(&self) -> bool {
        let retry = self.step.as_ref().map(|step| step.retry);
        retry == Some(Retry::Waiting)
    }

    fn infer(&self, what: What, out: &mut Out) {
        out.event(self.run, Seen::Inferred, what);
    }

    fn open_step(&mut self, out: &mut Out) {
        if self.step.is_some() {
            return;
        }
        self.steps = self.steps.saturating_add(1);
        let id = out.ids.step();
        let number = self.steps;
        self.infer(What::StepStarted { step: id, number }, out);
        self.step = Some(Step {
            id,
            attempts: 0,
            request: None,
            retry: Retry::None,
            complete: false,
            last: alloc::string::String::new(),
        });
    }

    /// Sees to it that a step is open whose request hasn't gone out: input is applied now.
    pub(super) fn input_step(&mut self, book: &mut Book, out: &mut Out) {
        if self.step.as_ref().is_some_and(|step| step.attempts > 0) {
            self.end_step(&Cut::Over, Tail::NONE, book, out);
        }
        self.open_step(out);
    }

    /// Whether input may be applied now without ending anything.
    pub(super) fn takes_input(&self) -> bool {
        self.step.as_ref().is_none_or(|step| step.attempts == 0)
    }

    fn start_request(&mut self, seen: Seen, out: &mut Out) {
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
            seen,
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
    pub(super) fn open_request(&mut self, seen: Seen, book: &mut Book, out: &mut Out) {
        if let Some(step) = &self.step {
            if step.request.is_some() {
                return;
            }
            if step.attempts > 0 && step.retry != Retry::Waiting {
                self.end_step(&Cut::Over, Tail::NONE, book, out);
            }
        }
        self.open_step(out);
        self.start_request(seen, out);
    }

    fn request(&mut self) -> Option<&mut Request> {
        self.step.as_mut()?.request.as_mut()
    }

    fn reply(&mut self) -> Option<&mut Reply> {
        self.request()?.reply.as_mut()
    }

    /// `status: requesting`
    pub(super) fn requesting(&mut self, book: &mut Book, out: &mut Out) {
        if self.reply().is_some() {
            self.end_request(&Cut::Over, Tail::NONE, book, out);
        }
        self.open_request(Seen::Real, book, out);
    }

    /// A piece of a reply.
    pub(super) fn stream(&mut self, event: &StreamEvent<'_>, book: &mut Book, out: &mut Out) {
        if let StreamEvent::MessageStart(told) = event {
            if self.reply().is_some() {
                self.end_request(&Cut::Over, Tail::NONE, book, out);
            }
            self.cut_off = None;
            self.open_request(Seen::Inferred, book, out);
            let (run, most) = (self.run, self.most);
            if let Some(request) = self.request() {
                let reply = Reply::begin(run, request.id, Some(&told.message), true, most, out);
                request.reply = Some(reply);
            }
            return;
        }
        if let (StreamEvent::TextPiece(piece), None) = (event, self.reply()) {
            if piece.delta.is_empty() {
                return;
            }
            self.cut_off = None;
            self.open_request(Seen::Inferred, book, out);
            let (run, most) = (self.run, self.most);
            if let Some(request) = self.request() {
                request.reply = Some(Reply::begin(run, request.id, None, false, most, out));
            }
        }
        let is_cut = self.cut_off.is_some();
        let Some(reply) = self.reply() else {
            if !is_cut {
                out.finding("a piece of a reply that hasn't begun, or is over");
            }
            return;
        };
        match event {
            StreamEvent::BlockDelta(told) => reply.block_delta(told.index, &told.delta, out),
            StreamEvent::BlockStart(told) => {
                reply.block_start(told.index, &told.content_block, out);
            }
            StreamEvent::BlockStop(told) => reply.block_stop(told.index, &mut book.calls, out),
            StreamEvent::MessageDelta(told) => reply.told_end(told),
            StreamEvent::TextPiece(piece) => reply.piece(&piece.delta, out),
            StreamEvent::MessageStop(_) => {
                // What ends without a reason broke off: whether it is tried again is told by what comes next.
                if reply.stop.is_none() && !reply.aborted {
                    reply.bare = true;
                } else {
                    self.end_request(&Cut::Over, Tail::NONE, book, out);
                }
            }
            StreamEvent::MessageStart(_) => {}
            StreamEvent::Unknown(_) => out.finding("an event of an unknown type is passed over"),
        }
    }

    /// `assistant`: blocks of a reply, whole.
    pub(super) fn assistant(&mut self, told: &Assistant<'_>, book: &mut Book, out: &mut Out) {
        let told_message = &*told.message;
        let open = self.reply().map(|reply| {
            reply.wire.is_empty() || reply.wire == *told_message.id || reply.has_begun(told_message)
        });
        if open == Some(false) {
            self.end_request(&Cut::Over, Tail::NONE, book, out);
        }
        if open != Some(true) {
            let again = self.step.as_ref().is_some_and(|step| {
                step.request.is_none() && !step.last.is_empty() && step.last == *told_message.id
            });
            // Where nothing is left to do, it is another reply of an agent that gives ids twice.
            if again && book.calls.is_busy(self.run) {
                // More of a reply whose first calls are done already.
                self.start_request(Seen::Inferred, out);
            } else {
                self.open_request(Seen::Inferred, book, out);
            }
            self.cut_off = None;
            let (run, most) = (self.run, self.most);
            if let Some(request) = self.request() {
                let reply = Reply::begin(run, request.id, Some(told_message), false, most, out);
                request.reply = Some(reply);
            }
        }
        let Some(reply) = self.reply() else { return };
        if reply.wire != *told_message.id {
            reply.wire = (*told_message.id).into();
            reply.model = (&*told_message.model).into();
        }
        for block in &told_message.content {
            reply.whole(block, &mut book.calls, out);
        }
        reply.aborted |= told.aborted == Some(true);
        let word = told_message.stop_reason.value().map(|word| &**word);
        let sequence = told_message.stop_sequence.value().map(|word| &**word);
        reply.told_stop(word, sequence);
    }

    /// The reply that no model wrote: the provider failed for good.
    pub(super) fn gave_up(&mut self, told: &Assistant<'_>, book: &mut Book, out: &mut Out) {
        let texts = told.message.content.iter().filter_map(Kept::known);
        let text: alloc::string::String = texts
            .filter_map(|block| block.text().map(|text| &**text))
            .collect();
        let word = told.error.as_ref().map(|error| error.as_str());
        let code = match &told.api_error_status {
            Maybe::Value(code) => status(Some(code)),
            Maybe::Absent | Maybe::Null => None,
        };
        let why = failure(word, code, &text);
        self.failed = Some(why.clone());
        // One that follows a whole reply is of a request that said nothing.
        if self.request().is_none() {
            self.open_request(Seen::Inferred, book, out);
        }
        self.end_request(&Cut::Failed(why), Tail::NONE, book, out);
    }

    /// The reply and its request end.
    fn end_request(&mut self, cut: &Cut, tail: Tail, book: &mut Book, out: &mut Out) {
        let run = self.run;
        let Some(step) = &mut self.step else { return };
        let Some(request) = step.request.take() else {
            return;
        };
        let cancelled = self.cancelled;
        let mut ended = Ended::of(request.reply.as_ref(), cut, &tail);
        if cancelled && matches!(ended.outcome, RequestOutcome::Complete { .. }) {
            ended.outcome = RequestOutcome::Cancelled;
            ended.stop = Stop::Cancelled;
        }
        let mut model = crate::protocol::heard::no_model();
        let mut usage = tail.usage;
        if let Some(reply) = request.reply {
            model.model = reply.model.clone();
            usage = reply.usage.or(usage);
            step.last.clone_from(&reply.wire);
            if !matches!(cut, Cut::Over) || ended.stop == Stop::Cancelled {
                self.cut_off = Some(reply.wire.clone());
            }
            let told = reply.stop.is_some() || reply.bare || reply.aborted;
            if reply.streamed && !told && *cut == Cut::Over {
                out.finding("a reply never ended");
            }
            let id = reply.id;
            let made = message(id, Role::Assistant, reply.content(), Origin::Harness, out);
            let whole = matches!(ended.outcome, RequestOutcome::Complete { .. });
            self.answer = whole.then(|| made.text().into());
            if !ended.kept {
                book.calls.unlist(run);
            }
            out.event(
                run,
                ended.seen,
                What::MessageEnded {
                    message: Arc::new(made),
                    stop: ended.stop,
                    kept: ended.kept,
                    calls: CallList::Complete,
                },
            );
        }
        let api_us = out.now().mono_us.saturating_sub(request.began_us);
        step.complete = matches!(ended.outcome, RequestOutcome::Complete { .. });
        let won = step.complete && step.retry == Retry::Trying;
        if won {
            step.retry = Retry::None;
        }
        self.api_us = self.api_us.saturating_add(api_us);
        if let Some(usage) = usage {
            self.said = self.said.plus(usage);
        }
        out.event(
            run,
            Seen::Inferred,
            What::RequestEnded {
                request: request.id,
                outcome: ended.outcome,
                model,
                usage,
                cost: tail.cost,
                api_us,
            },
        );
        if won {
            let (ok, why) = (true, None);
            self.infer(What::RetryEnded { ok, why }, out);
        }
    }

    /// `api_retry`: the attempt before is void.
    pub(super) fn retry(&mut self, told: &ApiRetry<'_>, book: &mut Book, out: &mut Out) {
        let why = Failure {
            retryable: true,
            ..failure(
                Some(&told.error),
                status(told.error_status.0.as_ref()),
                &told.error,
            )
        };
        if self.waits_to_retry() {
            self.start_request(Seen::Inferred, out);
        } else {
            self.open_request(Seen::Inferred, book, out);
        }
        self.end_request(&Cut::Failed(why.clone()), Tail::NONE, book, out);
        out.event(
            self.run,
            Seen::Real,
            What::RetryScheduled {
                attempt: narrow(told.attempt.saturating_add(1)),
                max: narrow(told.max_retries.saturating_add(1)),
                wait_us: ms_us(&told.retry_delay_ms),
                why,
            },
        );
        if let Some(step) = &mut self.step {
            step.retry = Retry::Waiting;
        }
    }

    /// What a tool gave back.
    pub(super) fn tool_result(&mut self, wire: &str, given: Given, book: &mut Book, out: &mut Out) {
        // Without streaming the reply is over now; with it, a tool may be done before its reply.
        self.reply_over(None, book, out);
        let Book { calls, asks } = book;
        let spot = self.spot();
        let open = calls.is_open(wire);
        if !open && !calls.waits(wire) {
            let what = if calls.known(wire).is_some() {
                "came twice"
            } else {
                "is of no known call"
            };
            return out.finding(format!("a result {what}: {:?}", super::calls::cut_id(wire)));
        }
        // One that was made and never begun; while the reply streams, nobody can say so yet.
        let whole = self.request().is_none();
        if !open && spot.stopped && given.error && whole && calls.skip(wire, out) {
            return;
        }
        let call = calls.begin(wire, "", None, spot, out);
        let cut = if spot.stopped {
            Cut::Cancelled
        } else {
            Cut::Over
        };
        asks.close_call(call, &cut, calls, out);
        calls.end(wire, given, spot.stopped, out);
    }

    /// Something comes that only follows a whole reply; without streaming nothing else says so. `stop`: why it stopped.
    pub(super) fn reply_over(&mut self, stop: Option<&str>, book: &mut Book, out: &mut Out) {
        if self.reply().is_some_and(|reply| !reply.streamed) {
            let stop = stop.map(Text::from);
            let tail = Tail { stop, ..Tail::NONE };
            self.end_request(&Cut::Over, tail, book, out);
        }
    }

    /// An interrupt is acknowledged. A reply whose calls were told is whole: they were what was cancelled. If text has begun
    /// behind them, its record is still to come.
    pub(super) fn acknowledged(&mut self, book: &mut Book, out: &mut Out) {
        if self
            .reply()
            .is_some_and(|reply| !reply.streamed && reply.has_calls() && !reply.is_growing())
        {
            self.end_request(&Cut::Over, Tail::NONE, book, out);
        }
        self.cancelled = true;
    }

    /// A user's message says that the turn was cut off.
    pub(super) fn interrupted(&mut self, book: &mut Book, out: &mut Out) {
        self.cancelled = true;
        self.end_request(&Cut::Cancelled, Tail::NONE, book, out);
    }

    /// Before a compaction: no message, request or call is open.
    pub(super) fn between(&mut self, book: &mut Book, out: &mut Out) {
        self.end_request(&Cut::Over, Tail::NONE, book, out);
        if book.calls.any_open(self.run) {
            self.end_calls(&Cut::Over, book, out);
        }
    }

    fn end_calls(&mut self, cut: &Cut, book: &mut Book, out: &mut Out) {
        let Book { calls, asks } = book;
        asks.close_calls(self.run, calls, cut, out);
        calls.end_all(self.run, cut, out);
    }

    /// Ends the open step and everything in it.
    pub(super) fn end_step(&mut self, cut: &Cut, tail: Tail, book: &mut Book, out: &mut Out) {
        let cut = if self.cancelled && *cut == Cut::Over {
            &Cut::Cancelled
        } else {
            cut
        };
        self.end_request(cut, tail, book, out);
        let why = match cut {
            Cut::Failed(failure) | Cut::Gone(failure) => Some(failure.clone()),
            Cut::Over | Cut::Cancelled => self.failed.clone(),
        };
        let run = self.run;
        if let Some(step) = &mut self.step
            && core::mem::replace(&mut step.retry, Retry::None) != Retry::None
        {
            let ok = false;
            out.event(run, Seen::Inferred, What::RetryEnded { ok, why });
        }
        self.end_calls(cut, book, out);
        if let Some(step) = self.step.take() {
            let step = step.id;
            self.infer(What::StepEnded { step }, out);
        }
    }
}

/// How a reply ended.
#[derive(Debug)]
struct Ended {
    stop: Stop,
    kept: bool,
    outcome: RequestOutcome,
    seen: Seen,
}

impl Ended {
    fn of(reply: Option<&Reply>, cut: &Cut, tail: &Tail) -> Self {
        let inferred = |stop, kept, outcome| Ended {
            stop,
            kept,
            outcome,
            seen: Seen::Inferred,
        };
        match cut {
            Cut::Cancelled => inferred(Stop::Cancelled, true, RequestOutcome::Cancelled),
            Cut::Failed(why) => inferred(Stop::Failed, false, RequestOutcome::Failed(why.clone())),
            Cut::Gone(why) => inferred(Stop::NotSaid, true, RequestOutcome::Failed(why.clone())),
            Cut::Over => Ended::by_itself(reply, tail),
        }
    }

    fn by_itself(reply: Option<&Reply>, tail: &Tail) -> Self {
        let Some(reply) = reply else {
            return Ended {
                stop: Stop::NotSaid,
                kept: true,
                outcome: RequestOutcome::Truncated,
                seen: Seen::Inferred,
            };
        };
        let seen = if reply.streamed && reply.stop.is_some() {
            Seen::Real
        } else {
            Seen::Inferred
        };
        if reply.aborted {
            return Ended {
                stop: Stop::Cancelled,
                kept: true,
                outcome: RequestOutcome::Cancelled,
                seen,
            };
        }
        let (word, sequence) = match &reply.stop {
            Some((word, sequence)) => (Some(&**word), sequence.as_deref()),
            None if reply.streamed => {
                return Ended {
                    stop: Stop::Truncated,
                    kept: true,
                    outcome: RequestOutcome::Truncated,
                    seen,
                };
            }
            None if reply.has_calls() => (Some("tool_use"), None),
            None => (tail.stop.as_deref(), None),
        };
        Ended {
            stop: super::convert::stop(word, sequence),
            kept: true,
            outcome: RequestOutcome::Complete {
                finish: word.unwrap_or_default().into(),
            },
            seen,
        }
    }
}

/// Results and messages that a user's record holds.
pub(super) type Results = Vec<(alloc::string::String, Given)>;

impl Book {
    /// Calls, and the questions about them.
    pub(super) fn parts(&mut self) -> (&mut Calls, &mut Asks) {
        (&mut self.calls, &mut self.asks)
    }
}
