//! Requests: sending them, what became of an attempt, and trying again.

use alloc::{boxed::Box, format, vec::Vec};

use super::{
    Session,
    compact::Next,
    phase::{Attempt, Backoff, Phase, Sent, Stream, Tried, Turn},
    stream::Step,
};
use crate::session::config::ErrorPartial;
use crate::vocab::{
    CallId, Cost, Effect, End, Failure, FailureKind, Level, ModelChunk, ModelRef, QueueFate,
    RequestId, RequestOutcome, SkipWhy, Stop, Usage, What,
};

/// How an attempt that isn't complete went wrong.
enum Fall {
    /// The endpoint or the transport failed.
    Failed {
        failure: Failure,
        reached: bool,
        retry_after_us: Option<u64>,
    },
    /// The stream ended, stalled or died without its completion signal, or went over a limit of ours.
    Cut(Failure),
}

impl Session {
    /// Sends the step's request, for the first time or again.
    pub(super) fn start_attempt(&mut self, mut turn: Box<Turn>, number: u32, tried: Tried) {
        let request = RequestId(self.ids.request());
        let sent = Sent {
            model: self.model_ref(),
            price: self.model.price.clone(),
            max_output: self.model.max_output,
            thinking: self.info.settings.thinking.clone(),
            thinking_budget: self.thinking_budget,
            tools: self.visible.clone(),
            messages: self.history.len(),
            raw: self.estimate.raw(),
        };
        turn.requests = turn.requests.saturating_add(1);
        self.say(What::RequestStarted {
            request,
            attempt: number,
        });
        self.effects.models.issue(request.0);
        self.out.effect(Effect::StartModel(request));
        let attempt = Attempt {
            request,
            number,
            tried,
            started_us: self.now.mono_us,
            stall_at_us: self.stall_deadline(),
            sent,
            provider_id: None,
            provider_model: None,
            begun: false,
            usage: None,
            finish: None,
        };
        self.phase = Phase::Requesting(turn, Box::new(attempt));
    }

    pub(super) fn stall_deadline(&self) -> Option<u64> {
        self.config
            .timeouts
            .stall_us
            .map(|wait| self.now.mono_us.saturating_add(wait))
    }

    /// A chunk of the live request.
    pub(super) fn model_chunk(&mut self, chunk: ModelChunk<'_>) {
        let stall_at_us = self.stall_deadline();
        match core::mem::take(&mut self.phase) {
            Phase::Requesting(turn, mut attempt) => {
                if is_visible(&chunk) {
                    attempt.stall_at_us = stall_at_us;
                    let stream = Box::new(self.start_message(&attempt));
                    self.visible_chunk(turn, attempt, stream, &chunk);
                } else if let Some(chunk) = note(&mut attempt, chunk, stall_at_us) {
                    self.attempt_over(turn, attempt, None, chunk);
                } else {
                    self.phase = Phase::Requesting(turn, attempt);
                }
            }
            Phase::Streaming(turn, mut attempt, stream) => {
                if is_visible(&chunk) {
                    attempt.stall_at_us = stall_at_us;
                    self.visible_chunk(turn, attempt, stream, &chunk);
                } else if let Some(chunk) = note(&mut attempt, chunk, stall_at_us) {
                    self.attempt_over(turn, attempt, Some(*stream), chunk);
                } else {
                    self.phase = Phase::Streaming(turn, attempt, stream);
                }
            }
            Phase::Compacting(open) => self.compaction_chunk(open, &chunk),
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Closed) => self.phase = other,
        }
    }

    fn visible_chunk(
        &mut self,
        turn: Box<Turn>,
        attempt: Box<Attempt>,
        mut stream: Box<Stream>,
        chunk: &ModelChunk<'_>,
    ) {
        match self.stream_chunk(&mut stream, chunk) {
            Step::More => self.phase = Phase::Streaming(turn, attempt, stream),
            Step::OverLimit(failure) => {
                self.stop_model(attempt.request);
                self.fell(turn, attempt, Some(*stream), Fall::Cut(failure));
            }
        }
    }

    /// `End` or `Failed` came.
    fn attempt_over(
        &mut self,
        turn: Box<Turn>,
        attempt: Box<Attempt>,
        stream: Option<Stream>,
        last: Last,
    ) {
        if attempt.finish.is_some() {
            if let Last::Failed { failure, .. } = &last {
                let text = format!(
                    "the reply was complete, then its stream failed: {}",
                    failure.text
                );
                self.notice(Level::Warning, "stream", &text);
            }
            return self.complete(turn, attempt, stream);
        }
        let fall = match last {
            Last::End => Fall::Cut(no_completion(
                "the stream ended before the reply finished",
                true,
            )),
            Last::Failed { failure, .. } if failure.kind == FailureKind::StreamCut => {
                Fall::Cut(failure)
            }
            Last::Failed {
                failure,
                reached,
                retry_after_us,
            } => Fall::Failed {
                failure,
                reached,
                retry_after_us,
            },
        };
        self.fell(turn, attempt, stream, fall);
    }

    /// The stall timer fired.
    pub(super) fn stalled(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Requesting(turn, attempt) => self.stalled_attempt(turn, attempt, None),
            Phase::Streaming(turn, attempt, stream) => {
                self.stalled_attempt(turn, attempt, Some(*stream))
            }
            Phase::Compacting(open) => self.compaction_stalled(open),
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Closed) => self.phase = other,
        }
    }

    fn stalled_attempt(&mut self, turn: Box<Turn>, attempt: Box<Attempt>, stream: Option<Stream>) {
        self.stop_model(attempt.request);
        if attempt.finish.is_some() {
            return self.complete(turn, attempt, stream);
        }
        let failure = no_completion(
            "the stream brought nothing more before the reply finished",
            true,
        );
        self.fell(turn, attempt, stream, Fall::Cut(failure));
    }

    /// Finish and End: the reply is whole. Its calls run whatever the finish word says.
    fn complete(&mut self, mut turn: Box<Turn>, attempt: Box<Attempt>, stream: Option<Stream>) {
        let stream = match stream {
            Some(stream) => stream,
            None => self.start_message(&attempt),
        };
        let finish = attempt.finish.clone().unwrap_or_else(|| "".into());
        let (message, calls) = self.finish_message(&mut turn, stream, &finish);
        if let Some(usage) = &attempt.usage {
            self.estimate
                .reported(usage.prompt_tokens(), attempt.sent.raw);
        }
        self.end_request(&mut turn, &attempt, RequestOutcome::Complete { finish });
        if attempt.tried.retried {
            self.say(What::RetryEnded {
                ok: true,
                why: None,
            });
        }
        if calls.is_empty() {
            self.would_end(turn);
        } else {
            let batch = super::tools::Batch::new(message, calls);
            self.tools_go(turn, Box::new(batch));
        }
    }

    /// The attempt isn't complete: again, or the end of the turn.
    fn fell(
        &mut self,
        mut turn: Box<Turn>,
        attempt: Box<Attempt>,
        stream: Option<Stream>,
        fall: Fall,
    ) {
        let retry = self.config.policy.retry.clone();
        let shown = stream.as_ref().is_some_and(|stream| stream.shown);
        let left = attempt.number < retry.attempts && self.info.settings.auto_retry && !shown;
        match fall {
            Fall::Failed {
                mut failure,
                reached,
                retry_after_us,
            } => {
                let unreached = if reached {
                    0
                } else {
                    attempt.tried.unreached.saturating_add(1)
                };
                let too_long = retry_after_us.filter(|wait| *wait > retry.max_wait_us);
                if let Some(wait) = too_long {
                    let seconds = wait.div_ceil(1_000_000);
                    failure.text =
                        format!("{}; the server asks to wait {seconds} s", failure.text).into();
                }
                let retryable = failure.retryable && failure.kind != FailureKind::ContextFull;
                let again =
                    left && retryable && too_long.is_none() && unreached < retry.unreached.max(1);
                if let Some(stream) = &stream {
                    let keep = shown && self.config.policy.error_partial == ErrorPartial::Keep;
                    let calls = self.break_message(stream, Stop::Failed, keep);
                    self.end_request(&mut turn, &attempt, RequestOutcome::Failed(failure.clone()));
                    self.skip(calls, SkipWhy::Truncated);
                } else {
                    self.end_request(&mut turn, &attempt, RequestOutcome::Failed(failure.clone()));
                }
                if again {
                    return self.back_off(
                        turn,
                        &attempt,
                        unreached,
                        retry_after_us.unwrap_or(0),
                        failure,
                    );
                }
                if failure.kind == FailureKind::ContextFull && !shown && !attempt.tried.overflowed {
                    return self.make_room(turn, &attempt, failure);
                }
                self.give_up(turn, attempt.tried, failure.clone(), End::Failed(failure));
            }
            Fall::Cut(mut failure) => {
                let limit_of_ours = !failure.retryable;
                if left && !limit_of_ours {
                    if let Some(stream) = &stream {
                        self.break_message(stream, Stop::Failed, false);
                    }
                    self.end_request(&mut turn, &attempt, RequestOutcome::Truncated);
                    return self.back_off(turn, &attempt, 0, 0, failure);
                }
                let calls = match &stream {
                    Some(stream) => self.break_message(stream, Stop::Truncated, true),
                    None => Vec::new(),
                };
                failure.text = truncated_text(&failure, limit_of_ours, calls.len()).into();
                self.end_request(&mut turn, &attempt, RequestOutcome::Truncated);
                self.skip(calls, SkipWhy::Truncated);
                self.give_up(
                    turn,
                    attempt.tried,
                    failure.clone(),
                    End::Truncated(failure),
                );
            }
        }
    }

    fn back_off(
        &mut self,
        turn: Box<Turn>,
        attempt: &Attempt,
        unreached: u32,
        retry_after_us: u64,
        why: Failure,
    ) {
        let retry = &self.config.policy.retry;
        let number = attempt.number.saturating_add(1);
        let own = retry.wait_us(number);
        let jitter = own / 100 * u64::from(retry.jitter_percent);
        let max = retry.attempts;
        let own = if jitter == 0 {
            own
        } else {
            own.saturating_add(self.random.below(jitter + 1))
        };
        let wait_us = own.max(retry_after_us);
        self.say(What::RetryScheduled {
            attempt: number,
            max,
            wait_us: Some(wait_us),
            why: why.clone(),
        });
        let at_us = self.now.mono_us.saturating_add(wait_us);
        self.phase = Phase::Backoff(
            turn,
            Backoff {
                attempt: number,
                tried: Tried {
                    unreached,
                    retried: true,
                    ..attempt.tried
                },
                at_us,
                why,
            },
        );
    }

    /// The wait is over.
    pub(super) fn backed_off(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Backoff(turn, backoff) => {
                self.start_attempt(turn, backoff.attempt, backoff.tried)
            }
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// The context is full: the step's next attempt follows once the history was summarised, once in a step.
    fn make_room(&mut self, turn: Box<Turn>, attempt: &Attempt, why: Failure) {
        let next = Next {
            number: attempt.number.saturating_add(1),
            tried: Tried {
                unreached: 0,
                overflowed: true,
                ..attempt.tried
            },
            why,
        };
        if let Err((turn, next)) = self.overflowed(turn, next) {
            let end = End::Failed(next.why.clone());
            self.give_up(turn, next.tried, next.why, end);
        }
    }

    pub(super) fn give_up(&mut self, turn: Box<Turn>, tried: Tried, failure: Failure, end: End) {
        if tried.retried {
            self.say(What::RetryEnded {
                ok: false,
                why: Some(failure),
            });
        }
        self.finish_turn(turn, end, QueueFate::Run);
    }

    /// `RequestEnded`, and what the attempt used goes into the turn's account: a failed one's too.
    pub(super) fn end_request(
        &mut self,
        turn: &mut Turn,
        attempt: &Attempt,
        outcome: RequestOutcome,
    ) {
        let api_us = self.now.mono_us.saturating_sub(attempt.started_us);
        turn.api_us = turn.api_us.saturating_add(api_us);
        if let Some(usage) = &attempt.usage {
            let tokens = usage.total().unwrap_or(0);
            turn.tokens = turn.tokens.saturating_add(tokens);
            self.goal_used(tokens);
        }
        let cost = self.cost_of(&attempt.sent, attempt.usage.as_ref());
        account(
            &mut turn.by_model,
            &attempt.sent.model,
            attempt.usage.as_ref(),
            &cost,
        );
        let model = attempt.sent.model.clone();
        let request = attempt.request;
        self.say(What::RequestEnded {
            request,
            outcome,
            model,
            usage: attempt.usage,
            cost,
            api_us,
        });
    }

    /// What a request's usage costs; it is spent.
    pub(super) fn cost_of(&mut self, sent: &Sent, usage: Option<&Usage>) -> Cost {
        let (Some(price), Some(usage)) = (&sent.price, usage) else {
            return Cost::NotSaid;
        };
        let cost = price.cost(usage);
        if let Cost::Known { pico_usd, .. } = cost {
            self.spent_pico_usd = self.spent_pico_usd.saturating_add(pico_usd);
        }
        cost
    }

    pub(super) fn skip(&mut self, calls: Vec<CallId>, why: SkipWhy) {
        for call in calls {
            self.say(What::ToolSkipped { call, why });
        }
    }
}

/// What settles a request.
enum Last {
    End,
    Failed {
        failure: Failure,
        reached: bool,
        retry_after_us: Option<u64>,
    },
}

/// A chunk that shows nothing: kept, and returned if it settles the request.
fn note(attempt: &mut Attempt, chunk: ModelChunk<'_>, stall_at_us: Option<u64>) -> Option<Last> {
    match chunk {
        ModelChunk::Begin { id, model } => {
            if !attempt.begun {
                attempt.begun = true;
                attempt.stall_at_us = stall_at_us;
                attempt.provider_id = id.map(Into::into);
                attempt.provider_model = model.map(Into::into);
            }
        }
        ModelChunk::Usage(usage) => attempt.usage = Some(usage),
        ModelChunk::Finish(word) => {
            if attempt.finish.is_none() {
                attempt.stall_at_us = stall_at_us;
                attempt.finish = Some(word.into());
            }
        }
        ModelChunk::End => return Some(Last::End),
        ModelChunk::Failed {
            failure,
            reached,
            retry_after_us,
        } => {
            return Some(Last::Failed {
                failure,
                reached,
                retry_after_us,
            });
        }
        ModelChunk::Alive
        | ModelChunk::Text(_)
        | ModelChunk::Thinking(_)
        | ModelChunk::Signature(_)
        | ModelChunk::Redacted(_)
        | ModelChunk::CallBegin { .. }
        | ModelChunk::CallArgs { .. }
        | ModelChunk::CallEnd { .. } => {}
    }
    None
}

/// Whether a chunk shows something, which an empty delta doesn't.
fn is_visible(chunk: &ModelChunk<'_>) -> bool {
    match chunk {
        ModelChunk::Text(text)
        | ModelChunk::Thinking(text)
        | ModelChunk::Signature(text)
        | ModelChunk::Redacted(text) => !text.is_empty(),
        ModelChunk::CallArgs { text, .. } => !text.is_empty(),
        ModelChunk::CallBegin { .. } | ModelChunk::CallEnd { .. } => true,
        ModelChunk::Begin { .. }
        | ModelChunk::Alive
        | ModelChunk::Usage(_)
        | ModelChunk::Finish(_)
        | ModelChunk::End
        | ModelChunk::Failed { .. } => false,
    }
}

pub(super) fn no_completion(text: &str, retryable: bool) -> Failure {
    Failure {
        kind: FailureKind::StreamCut,
        status: None,
        retryable,
        text: text.into(),
    }
}

fn truncated_text(failure: &Failure, limit_of_ours: bool, calls: usize) -> alloc::string::String {
    let mut text = if limit_of_ours {
        format!("{}; the reply above is incomplete", failure.text)
    } else {
        format!(
            "the reply above is incomplete: {} (no completion signal)",
            failure.text
        )
    };
    if calls > 0 {
        text.push_str(&format!(
            ", so the {calls} tool call(s) it carried did not run"
        ));
    }
    text
}

/// Adds a request's usage and cost to the account of its model.
pub(super) fn account(
    by_model: &mut Vec<(ModelRef, Usage, Cost)>,
    model: &ModelRef,
    usage: Option<&Usage>,
    cost: &Cost,
) {
    let Some(usage) = usage else { return };
    match by_model.iter_mut().find(|(known, _, _)| known == model) {
        Some((_, sum, costs)) => {
            *sum = sum.plus(*usage);
            add_cost(costs, cost);
        }
        None => by_model.push((model.clone(), *usage, cost.clone())),
    }
}

/// A sum is known only where each part is.
fn add_cost(sum: &mut Cost, more: &Cost) {
    match (&mut *sum, more) {
        (Cost::Known { pico_usd, .. }, Cost::Known { pico_usd: more, .. }) => {
            *pico_usd = pico_usd.saturating_add(*more);
        }
        (Cost::Known { .. }, Cost::Unpriced { .. } | Cost::NotSaid) => *sum = more.clone(),
        (Cost::Unpriced { .. } | Cost::NotSaid, _) => {}
    }
}
