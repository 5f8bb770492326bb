//! The open turn: steps, attempts and the message that is streamed. openmax says where a step begins, and little else
//! of this, so most events here are inferred.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::Openmax;
use super::calls::Calls;
use super::queue::Waiting;
use crate::protocol::ClientOutbox;
use crate::protocol::client::Streamed;
pub(super) use crate::protocol::heard::{message, no_model};
use crate::vocab::*;

type Out = ClientOutbox<Openmax>;

/// Why what is open ends without a word of the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The next thing began, or the turn ended as usual: it should have ended before.
    Over,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Failed(Failure),
    /// The reply was cut off.
    Truncated,
    /// The agent is gone.
    Gone(Failure),
}

/// The open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: TurnId,
    began_us: u64,
    /// The prompts that it serves; none if nobody asked for it.
    pub prompts: Vec<Waiting>,
    applied: bool,
    /// The first cancel that was written for it.
    pub cancel: Option<CancelWhy>,
    steps: u32,
    step: Option<Step>,
    /// The last error line that was no part of an end.
    pub last_error: Option<Text>,
    /// A hook's refusal, whose message begins the next step.
    refusal: Option<(Text, Text)>,
    answer: Option<Text>,
    requests: u32,
    api_us: u64,
    usage: Usage,
    /// The most bytes of one message that are kept beside its deltas.
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
    /// A token was shown in this step: no `retry` may follow (OM-26).
    text: bool,
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
    usage: Option<Usage>,
    message: Option<Streamed>,
}

impl Turn {
    /// A turn begins, for these prompts.
    pub(super) fn begin(prompts: Vec<Waiting>, cause: Cause, most: usize, out: &mut Out) -> Self {
        let id = out.ids.turn();
        out.infer(What::TurnStarted { turn: id, cause });
        Turn {
            id,
            began_us: out.now().mono_us,
            applied: prompts.is_empty(),
            prompts,
            cancel: None,
            steps: 0,
            step: None,
            last_error: None,
            refusal: None,
            answer: None,
            requests: 0,
            api_us: 0,
            usage: Usage::default(),
            most,
        }
    }

    /// Whether no step of it has begun.
    pub(super) fn is_fresh(&self) -> bool {
        self.steps == 0
    }

    /// Opens a step if none is open, and applies what waits for it.
    pub(super) fn open_step(&mut self, out: &mut Out) {
        if self.step.is_some() {
            return;
        }
        self.steps = self.steps.saturating_add(1);
        let id = out.ids.step();
        out.infer(What::StepStarted {
            step: id,
            number: self.steps,
        });
        self.step = Some(Step {
            id,
            attempts: 0,
            request: None,
            retry: Retry::None,
            reply: None,
            calls: 0,
            text: false,
        });
        if !core::mem::replace(&mut self.applied, true) {
            for prompt in &self.prompts {
                out.infer(What::PromptApplied {
                    prompt: prompt.id,
                    turn: Some(self.id),
                });
                let content = prompt.content.iter().cloned().map(Arc::new).collect();
                let id = out.ids.message();
                let message = message(id, Role::User, content, Origin::Host, out);
                out.infer(What::Message(Arc::new(Message {
                    prompt: Some(prompt.id),
                    ..message
                })));
            }
        }
        if let Some((hook, reason)) = self.refusal.take() {
            let content = [Arc::new(Block::Text(reason))].into();
            let id = out.ids.message();
            let message = message(id, Role::User, content, Origin::Hook(hook), out);
            out.infer(What::Message(Arc::new(message)));
        }
    }

    /// `budget`: a step begins, and its request goes out.
    pub(super) fn budget(&mut self, used: u64, window: u64, calls: &mut Calls, out: &mut Out) {
        if self.step.as_ref().is_some_and(|step| step.attempts > 0) {
            self.end_step(&Cut::Over, calls, out);
        }
        self.open_step(out);
        out.say(What::Context {
            used,
            window,
            estimated: true,
        });
        self.start_request(out);
    }

    fn start_request(&mut self, out: &mut Out) {
        let Some(step) = &mut self.step else { return };
        step.attempts = step.attempts.saturating_add(1);
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
            usage: None,
            message: None,
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
                self.end_step(&Cut::Over, calls, out);
            }
        }
        self.open_step(out);
        self.start_request(out);
    }

    fn request(&mut self) -> Option<&mut Request> {
        self.step.as_mut()?.request.as_mut()
    }

    fn open_message(&mut self, out: &mut Out) {
        let Some(request) = self.request().filter(|request| request.message.is_none()) else {
            return;
        };
        request.message = Some(Streamed::begin(request.id, out));
    }

    /// A piece of the reply.
    pub(super) fn delta(&mut self, kind: Kind, text: &str, calls: &mut Calls, out: &mut Out) {
        if text.is_empty() {
            return;
        }
        self.open_request(calls, out);
        self.open_message(out);
        let most = self.most;
        let Some(step) = &mut self.step else { return };
        step.text |= kind == Kind::Text;
        if let Some(open) = step.request.as_mut().and_then(|it| it.message.as_mut()) {
            open.delta(kind, text, most, out);
        }
    }

    /// Tokens of the open request; they are said when it ends.
    pub(super) fn usage(&mut self, usage: Usage, calls: &mut Calls, out: &mut Out) {
        self.open_request(calls, out);
        if let Some(request) = self.request() {
            let twice = request.usage.replace(usage).is_some();
            if twice {
                out.finding("usage came twice for one request; the last counts");
            }
        }
    }

    /// `message_done`: the reply is whole.
    pub(super) fn message_done(&mut self, text: &str, calls: &mut Calls, out: &mut Out) {
        if self.cancel.is_some() && text.is_empty() && !self.shows_something() {
            return self.stopped_unseen(out);
        }
        self.open_request(calls, out);
        self.open_message(out);
        let (stop, outcome) = if self.cancel.is_some() {
            (Stop::Cancelled, RequestOutcome::Cancelled)
        } else {
            let finish = Text::from("");
            (Stop::NotSaid, RequestOutcome::Complete { finish })
        };
        let complete = matches!(outcome, RequestOutcome::Complete { .. });
        let reply = self.end_message(stop, true, Some(text), out);
        self.end_request(outcome, out);
        self.answer = Some(text.into());
        if let Some(step) = &mut self.step
            && complete
        {
            step.reply = reply;
        }
    }

    fn shows_something(&self) -> bool {
        let request = self.step.as_ref().and_then(|step| step.request.as_ref());
        request.is_some_and(|request| request.message.is_some())
    }

    /// A cancel came before the request showed anything, or in the wait before one.
    fn stopped_unseen(&mut self, out: &mut Out) {
        if self.request().is_some() {
            self.end_request(RequestOutcome::Cancelled, out);
        }
        self.end_retry(None, out);
    }

    /// Ends the open message. `whole`: the agent's own text of it, which counts.
    fn end_message(
        &mut self,
        stop: Stop,
        kept: bool,
        whole: Option<&str>,
        out: &mut Out,
    ) -> Option<(MessageId, u32)> {
        let mut open = self.request()?.message.take()?;
        open.end_block(out);
        if let Some(text) = whole {
            settle(&mut open, text, out);
        }
        let (message, blocks) = open.end(out);
        let id = message.id;
        let seen = if whole.is_some() {
            Seen::Real
        } else {
            Seen::Inferred
        };
        out.event(
            RunId::MAIN,
            seen,
            What::MessageEnded {
                message: Arc::new(message),
                stop,
                kept,
                calls: CallList::NotReported,
            },
        );
        Some((id, blocks))
    }

    fn end_request(&mut self, outcome: RequestOutcome, out: &mut Out) {
        let Some(step) = &mut self.step else { return };
        let Some(request) = step.request.take() else {
            return;
        };
        let complete = matches!(outcome, RequestOutcome::Complete { .. });
        let api_us = out.now().mono_us.saturating_sub(request.began_us);
        self.api_us = self.api_us.saturating_add(api_us);
        self.usage = self.usage.plus(request.usage.unwrap_or_default());
        out.infer(What::RequestEnded {
            request: request.id,
            outcome,
            model: no_model(),
            usage: request.usage,
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

    /// `retry`: the open attempt failed, and what it showed is void.
    pub(super) fn retry(
        &mut self,
        attempt: u32,
        max: u32,
        why: Failure,
        calls: &mut Calls,
        out: &mut Out,
    ) {
        self.open_request(calls, out);
        if self.step.as_ref().is_some_and(|step| step.text) {
            out.finding("a retry after tokens of the same step");
        }
        self.end_message(Stop::Failed, false, None, out);
        self.end_request(RequestOutcome::Failed(why.clone()), out);
        out.say(What::RetryScheduled {
            attempt,
            max,
            wait_us: None,
            why,
        });
        if let Some(step) = &mut self.step {
            step.retry = Retry::Waiting;
        }
    }

    /// The cause of a call that begins: the reply of the open step, if that was completed.
    pub(super) fn call_begins(&mut self, out: &mut Out) -> ToolCause {
        if self.request().is_some() {
            out.finding("a call began before the message_done of its reply");
            self.cut_request(&Cut::Over, out);
        }
        self.open_step(out);
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

    /// `turn_refused`: the step is over, and the reason begins the next.
    pub(super) fn refused(&mut self, hook: Text, reason: Text, calls: &mut Calls, out: &mut Out) {
        self.end_step(&Cut::Over, calls, out);
        self.refusal = Some((hook, reason));
    }

    /// Before a compaction: no message, request or call is open (the contract has none there).
    pub(super) fn between(&mut self, calls: &mut Calls, out: &mut Out) {
        self.cut_request(&Cut::Over, out);
        calls.end_all(&Cut::Over, out);
    }

    fn cut_request(&mut self, cut: &Cut, out: &mut Out) {
        let (stop, kept, outcome) = match cut {
            Cut::Over => {
                if self.request().is_some() {
                    out.finding("a request never got its message_done");
                }
                (Stop::NotSaid, true, RequestOutcome::Truncated)
            }
            Cut::Cancelled => (Stop::Cancelled, true, RequestOutcome::Cancelled),
            Cut::Failed(failure) => (Stop::Failed, false, RequestOutcome::Failed(failure.clone())),
            Cut::Truncated => (Stop::Truncated, true, RequestOutcome::Truncated),
            Cut::Gone(failure) => (Stop::NotSaid, true, RequestOutcome::Failed(failure.clone())),
        };
        self.end_message(stop, kept, None, out);
        self.end_request(outcome, out);
    }

    /// Ends the open step and everything in it.
    pub(super) fn end_step(&mut self, cut: &Cut, calls: &mut Calls, out: &mut Out) {
        let cut = if self.cancel.is_some() && *cut == Cut::Over {
            &Cut::Cancelled
        } else {
            cut
        };
        self.cut_request(cut, out);
        let why = match cut {
            Cut::Failed(failure) | Cut::Gone(failure) => Some(failure.clone()),
            Cut::Over | Cut::Cancelled | Cut::Truncated => None,
        };
        self.end_retry(why, out);
        calls.end_all(cut, out);
        if let Some(step) = self.step.take() {
            out.infer(What::StepEnded { step: step.id });
        }
    }

    /// The turn is over: its end, and those of its prompts. `said`: the agent named the end.
    pub(super) fn end(
        mut self,
        end: End,
        said: bool,
        cut: &Cut,
        pending: Pending,
        calls: &mut Calls,
        out: &mut Out,
    ) {
        self.end_step(cut, calls, out);
        let wall_us = out.now().mono_us.saturating_sub(self.began_us);
        let by_model = if self.usage.is_empty() {
            Vec::new()
        } else {
            [(no_model(), self.usage, Cost::NotSaid)].into()
        };
        let answer = if end.is_finished() {
            self.answer.take().map(TurnAnswer::Text)
        } else {
            None
        };
        out.infer(What::TurnEnded {
            turn: self.id,
            end: end.clone(),
            answer,
            report: TurnReport {
                wall_us,
                api_us: Some(self.api_us),
                requests: Some(self.requests),
                by_model,
                denials: calls.take_denied(),
            }
            .into(),
            pending,
        });
        let seen = if said { Seen::Real } else { Seen::Inferred };
        for prompt in self.prompts {
            let (prompt, end) = (prompt.id, end.clone());
            out.event(RunId::MAIN, seen, What::PromptEnded { prompt, end });
        }
    }
}

/// The agent's own text of the whole message counts: where the deltas don't add up to it, it takes their place.
fn settle(open: &mut Streamed, text: &str, out: &mut Out) {
    let joined = open.joined(Kind::Text);
    if joined.as_deref() == Some(text) {
        return;
    }
    if let Some(joined) = joined
        && !joined.is_empty()
        && without_think_block(&joined) != Some(text.trim_start())
    {
        out.finding("message_done isn't what the tokens add up to; it counts");
    }
    open.replace(Kind::Text, text);
}

/// The text behind a leading think block, which the contract leaves out of `message_done`.
fn without_think_block(text: &str) -> Option<&str> {
    let inside = text.trim_start().strip_prefix("<think>")?;
    let (_, rest) = inside.split_once("</think>")?;
    Some(rest.trim_start())
}
