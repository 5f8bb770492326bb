//! The open turn: its steps, attempts and replies. The wire tells of a step when its request begins, and of a reply by its
//! pieces and its whole texts; all else here is inferred.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use super::calls::Calls;
use super::prompts::Known;
use crate::protocol::client::Streamed;
use crate::protocol::heard::{message, no_model};
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

/// How a turn ended.
#[derive(Debug)]
pub(super) struct Over {
    pub end: End,
    pub seen: Seen,
    /// As the agent said it.
    pub answer: Option<Text>,
    pub pending: Pending,
}

/// The open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: TurnId,
    began_us: u64,
    /// The prompt that it serves, until its first step.
    prompt: Option<Known>,
    /// The prompts that were applied, in order.
    applied: Vec<PromptId>,
    /// The first cancel that was written for it.
    pub cancel: Option<CancelWhy>,
    /// A reply has said that it is cancelled: it doesn't end otherwise.
    pub bound: bool,
    /// Steps that were told.
    told: i32,
    steps: u32,
    step: Option<Step>,
    answer: Option<Text>,
    requests: u32,
    api_us: u64,
    usage: Usage,
    /// The most bytes of one reply that are kept beside its deltas.
    most: usize,
}

#[derive(Debug)]
struct Step {
    id: StepId,
    attempts: u32,
    request: Option<Request>,
    retry: Retry,
    /// The reply of the completed request, which calls belong to, and how many blocks it has.
    reply: Option<(MessageId, u32)>,
    calls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    None,
    /// Announced; nothing was seen of the attempt yet.
    Waiting,
    /// The attempt goes on.
    Trying,
}

#[derive(Debug)]
struct Request {
    id: RequestId,
    began_us: u64,
    reply: Option<Streamed>,
    /// The whole reasoning, or text, was told.
    thought: bool,
    text: Option<String>,
}

impl Turn {
    /// A turn begins, for this prompt; `None`: for none of the host's.
    pub(super) fn begin(prompt: Option<Known>, cause: Cause, most: usize, out: &mut Out) -> Self {
        let id = out.ids.turn();
        out.infer(What::TurnStarted { turn: id, cause });
        Turn {
            id,
            began_us: out.now().mono_us,
            prompt,
            applied: Vec::new(),
            cancel: None,
            bound: false,
            told: 0,
            steps: 0,
            step: None,
            answer: None,
            requests: 0,
            api_us: 0,
            usage: Usage::default(),
            most,
        }
    }

    /// Whether a step of it was told.
    pub(super) const fn has_steps(&self) -> bool {
        self.told > 0
    }

    fn open_step(&mut self, seen: Seen, out: &mut Out) {
        if self.step.is_some() {
            return;
        }
        self.steps = self.steps.saturating_add(1);
        let (step, number) = (out.ids.step(), self.steps);
        out.event(RunId::MAIN, seen, What::StepStarted { step, number });
        self.step = Some(Step {
            id: step,
            attempts: 0,
            request: None,
            retry: Retry::None,
            reply: None,
            calls: 0,
        });
        if let Some(prompt) = self.prompt.take() {
            self.apply(prompt, Seen::Inferred, out);
        }
    }

    /// A prompt enters the history; a step is open whose request hasn't gone out.
    fn apply(&mut self, known: Known, seen: Seen, out: &mut Out) {
        let Known { id, content, .. } = known;
        let turn = Some(self.id);
        out.event(RunId::MAIN, seen, What::PromptApplied { prompt: id, turn });
        self.applied.push(id);
        said(id, content, seen, out);
    }

    /// `agent_step`: a step's request goes out.
    pub(super) fn step(&mut self, number: i32, calls: &mut Calls, out: &mut Out) {
        self.told = self.told.saturating_add(1);
        if number != self.told {
            out.finding(alloc::format!(
                "agent_step {number}, where {} is expected",
                self.told
            ));
            self.told = number;
        }
        self.before_step(calls, out);
        self.open_step(Seen::Real, out);
        self.start_request(out);
    }

    /// A step that has had its request is over.
    fn before_step(&mut self, calls: &mut Calls, out: &mut Out) {
        if self.step.as_ref().is_some_and(|step| step.attempts > 0) {
            self.end_step(&Cut::Over, calls, out);
        }
    }

    /// What stands before the request of the next step.
    pub(super) fn boundary(&mut self, calls: &mut Calls, out: &mut Out) {
        self.before_step(calls, out);
        self.open_step(Seen::Inferred, out);
    }

    /// `steer_applied`
    pub(super) fn steer(&mut self, known: Known, calls: &mut Calls, out: &mut Out) {
        self.boundary(calls, out);
        self.apply(known, Seen::Real, out);
    }

    fn start_request(&mut self, out: &mut Out) {
        let Some(step) = &mut self.step else { return };
        step.attempts = step.attempts.saturating_add(1);
        step.reply = None;
        if step.retry == Retry::Waiting {
            step.retry = Retry::Trying;
        }
        let id = out.ids.request();
        out.infer(What::RequestStarted {
            request: id,
            attempt: step.attempts,
        });
        step.request = Some(Request {
            id,
            began_us: out.now().mono_us,
            reply: None,
            thought: false,
            text: None,
        });
        self.requests = self.requests.saturating_add(1);
    }

    /// Sees to it that a request is open: the line that comes can only belong to one.
    fn open_request(&mut self, calls: &mut Calls, out: &mut Out) {
        if let Some(step) = &self.step {
            if step.request.is_some() {
                return;
            }
            if step.attempts > 0 && step.retry != Retry::Waiting {
                out.finding("a piece of a reply, and no step has begun for it");
                self.end_step(&Cut::Over, calls, out);
            }
        }
        self.open_step(Seen::Inferred, out);
        self.start_request(out);
    }

    fn request(&mut self) -> Option<&mut Request> {
        self.step.as_mut()?.request.as_mut()
    }

    fn reply(&mut self, out: &mut Out) -> Option<&mut Streamed> {
        let request = self.request()?;
        let id = request.id;
        Some(
            request
                .reply
                .get_or_insert_with(|| Streamed::begin(id, out)),
        )
    }

    /// A piece of the reply. Allocates nothing for a piece of text once warm.
    pub(super) fn delta(&mut self, kind: Kind, text: &str, calls: &mut Calls, out: &mut Out) {
        if text.is_empty() {
            return out.finding("an empty piece of a reply");
        }
        self.open_request(calls, out);
        let most = self.most;
        if let Some(reply) = self.reply(out) {
            reply.delta(kind, text, most, out);
        }
    }

    /// The whole text, or reasoning, of the reply: it counts, whatever its pieces add up to.
    pub(super) fn whole(&mut self, kind: Kind, text: &str, calls: &mut Calls, out: &mut Out) {
        self.open_request(calls, out);
        let Some(reply) = self.reply(out) else { return };
        reply.end_block(out);
        let joined = reply.joined(kind);
        if joined.as_deref() != Some(text) {
            if joined.is_some_and(|joined| !joined.is_empty()) {
                out.finding("a whole message isn't what its pieces add up to; it counts");
            }
            reply.replace(kind, text);
        }
        let Some(request) = self.request() else {
            return;
        };
        let again = match kind {
            Kind::Thinking => core::mem::replace(&mut request.thought, true),
            Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque => {
                request.text.replace(text.into()).is_some()
            }
        };
        if again {
            out.finding("a whole message came twice for one reply; the last counts");
        }
    }

    /// `usage`: the reply is over.
    pub(super) fn usage(&mut self, usage: Usage, calls: &mut Calls, out: &mut Out) {
        let open = self.step.as_ref();
        let is_second = open.is_some_and(|step| {
            step.request.is_none() && step.attempts > 0 && step.retry != Retry::Waiting
        });
        if is_second {
            return out.finding("a usage, and no reply is open");
        }
        self.open_request(calls, out);
        self.complete(Some(usage), out);
    }

    /// What comes shows that the reply is over, though its usage wasn't told.
    pub(super) fn settle(&mut self, out: &mut Out) {
        if self.request().is_some() {
            self.complete(None, out);
        }
    }

    fn complete(&mut self, usage: Option<Usage>, out: &mut Out) {
        let (stop, outcome) = if self.bound {
            (Stop::Cancelled, RequestOutcome::Cancelled)
        } else {
            let finish = Text::from("");
            (Stop::NotSaid, RequestOutcome::Complete { finish })
        };
        let complete = matches!(outcome, RequestOutcome::Complete { .. });
        let text = self.request().and_then(|request| request.text.take());
        let reply = self.end_message(stop, true, out);
        self.end_request(outcome, usage, out);
        self.answer = text.map(Text::from);
        if let Some(step) = &mut self.step
            && complete
        {
            step.reply = reply;
        }
    }

    fn end_message(&mut self, stop: Stop, kept: bool, out: &mut Out) -> Option<(MessageId, u32)> {
        let request = self.request()?;
        let reply = request.reply.take()?;
        let seen = if kept && (request.thought || request.text.is_some()) {
            Seen::Real
        } else {
            Seen::Inferred
        };
        let (whole, blocks) = reply.end(out);
        let id = whole.id;
        let what = What::MessageEnded {
            message: Arc::new(whole),
            stop,
            kept,
            calls: CallList::NotReported,
        };
        out.event(RunId::MAIN, seen, what);
        Some((id, blocks))
    }

    fn end_request(&mut self, outcome: RequestOutcome, usage: Option<Usage>, out: &mut Out) {
        let Some(step) = &mut self.step else { return };
        let Some(request) = step.request.take() else {
            return;
        };
        let complete = matches!(outcome, RequestOutcome::Complete { .. });
        let api_us = out.now().mono_us.saturating_sub(request.began_us);
        self.api_us = self.api_us.saturating_add(api_us);
        self.usage = self.usage.plus(usage.unwrap_or_default());
        out.infer(What::RequestEnded {
            request: request.id,
            outcome,
            model: no_model(),
            usage,
            cost: Cost::NotSaid,
            api_us,
        });
        if complete && step.retry == Retry::Trying {
            step.retry = Retry::None;
            out.infer(What::RetryEnded {
                ok: true,
                why: None,
            });
        }
    }

    fn end_retry(&mut self, why: Option<Failure>, out: &mut Out) {
        if let Some(step) = &mut self.step
            && core::mem::replace(&mut step.retry, Retry::None) != Retry::None
        {
            out.infer(What::RetryEnded { ok: false, why });
        }
    }

    /// `stream_retry`: the open attempt failed, and what it showed is void.
    pub(super) fn retry(
        &mut self,
        attempt: u32,
        max: u32,
        reason: &str,
        calls: &mut Calls,
        out: &mut Out,
    ) {
        // One that failed before a compaction has ended already.
        let has_failed = self.step.as_ref().is_some_and(|step| {
            step.request.is_none() && step.attempts > 0 && step.retry != Retry::Waiting
        });
        if !has_failed {
            self.open_request(calls, out);
        }
        let why = Failure {
            retryable: true,
            ..Failure::new(FailureKind::StreamCut, reason)
        };
        self.end_message(Stop::Failed, false, out);
        self.end_request(RequestOutcome::Failed(why.clone()), None, out);
        out.say(What::RetryScheduled {
            attempt,
            max,
            wait_us: None,
            why,
        });
        if let Some(step) = &mut self.step {
            step.retry = Retry::Waiting;
            step.reply = None;
        }
    }

    /// The cause of a call: the reply of the open step, if that was completed.
    pub(super) fn cause_of_call(&mut self, out: &mut Out) -> ToolCause {
        self.settle(out);
        self.open_step(Seen::Inferred, out);
        let Some(step) = &mut self.step else {
            return ToolCause::Agent;
        };
        let Some((message, blocks)) = step.reply else {
            return ToolCause::Agent;
        };
        let block = blocks.saturating_add(step.calls);
        step.calls = step.calls.saturating_add(1);
        ToolCause::Model { message, block }
    }

    /// Before a compaction: no message, request or call is open. A request that showed nothing didn't fit.
    pub(super) fn between(&mut self, calls: &mut Calls, out: &mut Out) {
        let shows = |request: &mut Request| request.reply.is_some();
        if self.request().is_some_and(|request| !shows(request)) {
            let why = Failure::new(
                FailureKind::ContextFull,
                "the history was summed up instead",
            );
            self.end_request(RequestOutcome::Failed(why), None, out);
        }
        self.settle(out);
        calls.end_all(&Cut::Over, out);
    }

    fn cut_request(&mut self, cut: &Cut, out: &mut Out) {
        let told = self
            .step
            .as_ref()
            .and_then(|step| step.request.as_ref())
            .is_some_and(|request| request.thought || request.text.is_some());
        let (stop, kept, outcome) = match cut {
            Cut::Over => return self.settle(out),
            Cut::Cancelled => (Stop::Cancelled, true, RequestOutcome::Cancelled),
            // What was told whole stays in the history.
            Cut::Failed(failure) => (Stop::Failed, told, RequestOutcome::Failed(failure.clone())),
            Cut::Gone(failure) => (Stop::NotSaid, true, RequestOutcome::Failed(failure.clone())),
        };
        self.end_message(stop, kept, out);
        self.end_request(outcome, None, out);
    }

    /// Ends the open step and everything in it.
    pub(super) fn end_step(&mut self, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        let cut = if self.bound && *cut == Cut::Over {
            &Cut::Cancelled
        } else {
            cut
        };
        self.cut_request(cut, out);
        let why = match cut {
            Cut::Failed(failure) | Cut::Gone(failure) => Some(failure.clone()),
            Cut::Over | Cut::Cancelled => None,
        };
        self.end_retry(why, out);
        calls.end_all(cut, out);
        if let Some(step) = self.step.take() {
            out.infer(What::StepEnded { step: step.id });
        }
    }

    /// The turn is over: its end, and those of its prompts.
    pub(super) fn end(mut self, over: Over, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        let Over {
            end,
            seen,
            answer,
            pending,
        } = over;
        self.end_step(cut, calls, out);
        let wall_us = out.now().mono_us.saturating_sub(self.began_us);
        let by_model = if self.usage.is_empty() {
            Vec::new()
        } else {
            [(no_model(), self.usage, Cost::NotSaid)].into()
        };
        let succeeds = matches!(end, End::Finished { .. } | End::Yielded { .. });
        let answer = answer.or(self.answer.take()).filter(|_| succeeds);
        let report = TurnReport {
            wall_us,
            api_us: Some(self.api_us),
            requests: Some(self.requests),
            by_model,
            denials: calls.take_denied(),
        };
        let what = What::TurnEnded {
            turn: self.id,
            end: end.clone(),
            answer: answer.map(TurnAnswer::Text),
            report: report.into(),
            pending,
        };
        out.event(RunId::MAIN, seen, what);
        let never = self.prompt.take().map(|known| known.id);
        for prompt in self.applied.into_iter().chain(never) {
            let end = end.clone();
            out.infer(What::PromptEnded { prompt, end });
        }
    }
}

/// The message of a prompt.
pub(super) fn said(prompt: PromptId, content: Vec<Block>, seen: Seen, out: &mut Out) {
    let content = content.into_iter().map(Arc::new).collect();
    let id = out.ids.message();
    let made = message(id, Role::User, content, Origin::Host, out);
    let what = What::Message(Arc::new(Message {
        prompt: Some(prompt),
        ..made
    }));
    out.event(RunId::MAIN, seen, what);
}
