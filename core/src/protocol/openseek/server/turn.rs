//! The turn: its steps, the replies and results in them, and its end.
//!
//! The wire counts steps by their first requests, and says of a call only what it came to. So a step is told at its first
//! request, or before the first line that must stand in one; whole messages wait for the end of the reply, and the
//! results of a reply's calls for those of the calls before them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::clamp::clamped;
use crate::protocol::Outbox;
use crate::protocol::ids::Calls;
use crate::protocol::openseek::Openseek;
use crate::protocol::openseek::wire::{
    AgentStep, AssistantDelta, AssistantMessage, Event, Int, ReasoningDelta, ReasoningMessage,
    StreamRetry, TokenCounts, ToolCallDecodeError, ToolResult, Usage as UsageLine,
};
use crate::protocol::said::output;
use crate::vocab::*;

/// Calls whose wire ids are remembered after their end.
const MOST_CALLS: usize = 65_536;

/// The turn that runs, or ran last.
#[derive(Debug)]
pub(super) struct Turn {
    open: bool,
    /// Steps that were told.
    steps: i32,
    /// A prompt of the host's entered it, or it needs none.
    pub(super) claimed: bool,
    step: Step,
    calls: Calls,
    /// Calls that haven't ended.
    known: BTreeMap<CallId, Known>,
    results: VecDeque<(CallId, Came)>,
}

/// The step that is open.
#[derive(Debug, Default)]
struct Step {
    told: bool,
    /// An attempt has begun.
    requested: bool,
    /// Pieces were shown that no message has made whole.
    shown: bool,
    /// The last attempt that was told.
    attempt: i32,
    /// The reply is told, whole.
    replied: bool,
    usage: Tokens,
}

/// What a reply cost.
#[derive(Debug, Default, PartialEq, Eq)]
enum Tokens {
    #[default]
    Open,
    /// Of an attempt that another one may follow.
    Held(Usage),
    Told,
}

/// A call that hasn't ended.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: Text,
    /// The arguments, as JSON, of one that changes something.
    pub(super) gated: Option<Text>,
}

/// What a call came to.
#[derive(Debug)]
enum Came {
    Open,
    /// Its line; empty where it has none.
    Ended(Vec<u8>),
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            open: false,
            steps: 0,
            claimed: true,
            step: Step::default(),
            calls: Calls::remembering(MOST_CALLS),
            known: BTreeMap::new(),
            results: VecDeque::new(),
        }
    }
}

/// Why pieces are void where no agent has said why.
const VOID: &str = "the request is sent again";

/// Writes one event.
pub(super) fn say<'a>(event: impl Into<Event<'a>>, out: &mut Outbox<Openseek>) {
    let event = event.into();
    out.line(|line| event.encode(line));
}

/// The number, or the largest there is on this wire.
pub(super) fn int(number: u64) -> Int {
    Int::nearest(i32::try_from(number).unwrap_or(i32::MAX))
}

impl Turn {
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn has_steps(&self) -> bool {
        self.steps > 0
    }

    pub(super) fn started(&mut self, claimed: bool) {
        self.open = true;
        self.steps = 0;
        self.claimed = claimed;
        self.step = Step::default();
    }

    /// All that its end must not leave open, but for the end itself.
    pub(super) fn ended(&mut self, out: &mut Outbox<Openseek>) {
        self.step_over(out);
        self.open = false;
        self.known.clear();
    }

    pub(super) fn step_started(&mut self, out: &mut Outbox<Openseek>) {
        self.step_over(out);
    }

    /// What waits for others of its step is told now.
    pub(super) fn step_over(&mut self, out: &mut Outbox<Openseek>) {
        self.tell_usage(out);
        for (_, result) in core::mem::take(&mut self.results) {
            if let Came::Ended(line) = result {
                put(&line, out);
            }
        }
        self.step.told = false;
    }

    /// Tells the step, if it isn't told yet.
    fn in_step(&mut self, out: &mut Outbox<Openseek>) {
        if self.step.told || !self.open {
            return;
        }
        if self.step.shown && self.steps > 0 {
            // Pieces that nothing made whole.
            let next = u32::try_from(self.step.attempt.saturating_add(1)).unwrap_or(1);
            self.void(next, next, VOID, out);
        }
        self.steps = self.steps.saturating_add(1);
        self.step = Step {
            told: true,
            ..Step::default()
        };
        let step = Int::from(self.steps);
        say(
            AgentStep {
                step,
                ..AgentStep::default()
            },
            out,
        );
    }

    /// The same, for what begins a reply.
    fn in_fresh_step(&mut self, out: &mut Outbox<Openseek>) {
        if self.step.replied || self.step.usage == Tokens::Told {
            self.step_over(out);
        }
        self.in_step(out);
    }

    pub(super) fn request_started(&mut self, attempt: u32, out: &mut Outbox<Openseek>) {
        if attempt <= 1 && self.step.requested {
            self.step_over(out);
        }
        let number = i32::try_from(attempt).unwrap_or(i32::MAX);
        if self.step.told && (self.step.shown || number > self.step.attempt.max(1)) {
            // The one before is void, and nobody has said so.
            self.void(attempt, attempt, VOID, out);
        }
        self.in_step(out);
        self.step.requested = true;
    }

    pub(super) fn retry(&mut self, attempt: u32, max: u32, why: &str, out: &mut Outbox<Openseek>) {
        self.step.usage = Tokens::Open;
        if self.step.told {
            self.void(attempt, max, why, out);
        }
    }

    fn void(&mut self, attempt: u32, max: u32, why: &str, out: &mut Outbox<Openseek>) {
        let narrow = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let attempt = narrow(attempt).max(self.step.attempt.saturating_add(1));
        self.step.attempt = attempt;
        self.step.shown = false;
        let line = StreamRetry {
            attempt: attempt.into(),
            max_attempts: narrow(max).max(attempt).into(),
            reason: why.into(),
            ..StreamRetry::default()
        };
        say(line, out);
    }

    pub(super) fn message_started(&mut self, out: &mut Outbox<Openseek>) {
        self.in_fresh_step(out);
    }

    /// A piece of a reply; allocates nothing once warm.
    pub(super) fn delta(&mut self, kind: Kind, text: &str, out: &mut Outbox<Openseek>) {
        if text.is_empty() || !self.open {
            return;
        }
        match kind {
            Kind::Text => {
                self.in_fresh_step(out);
                let content = text.into();
                say(
                    AssistantDelta {
                        content,
                        ..AssistantDelta::default()
                    },
                    out,
                );
            }
            Kind::Thinking => {
                self.in_fresh_step(out);
                let content = text.into();
                say(
                    ReasoningDelta {
                        content,
                        ..ReasoningDelta::default()
                    },
                    out,
                );
            }
            Kind::Signature | Kind::Input | Kind::Opaque => return,
        }
        self.step.shown = true;
    }

    /// A reply is whole; one that isn't kept is void.
    pub(super) fn message(&mut self, message: &Message, kept: bool, out: &mut Outbox<Openseek>) {
        if !kept || !self.open {
            return;
        }
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        for block in &message.content {
            match &**block {
                Block::Text(text) => texts.push(&**text),
                Block::Thinking { text, .. } => thoughts.push(&**text),
                Block::ToolUse {
                    call,
                    provider_id,
                    name,
                    ..
                } => self.expects(*call, provider_id.as_deref(), name),
                Block::Redacted(_)
                | Block::Media { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_) => {}
            }
        }
        let (text, thought) = (texts.concat(), thoughts.concat());
        if !thought.is_empty() {
            self.in_fresh_step(out);
            say(
                ReasoningMessage {
                    content: thought.into(),
                    ..ReasoningMessage::default()
                },
                out,
            );
        }
        if !text.is_empty() {
            self.in_fresh_step(out);
            say(
                AssistantMessage {
                    content: text.into(),
                    ..AssistantMessage::default()
                },
                out,
            );
        }
        self.step.replied = true;
        self.step.shown = false;
    }

    pub(super) fn request_ended(
        &mut self,
        outcome: &RequestOutcome,
        usage: Option<Usage>,
        out: &mut Outbox<Openseek>,
    ) {
        let usage = usage.filter(|usage| !usage.is_empty());
        let Some(usage) = usage.filter(|_| self.open && self.step.usage != Tokens::Told) else {
            return;
        };
        match outcome {
            // Of a reply that doesn't count.
            RequestOutcome::Failed(_) => {}
            RequestOutcome::Truncated => self.step.usage = Tokens::Held(usage),
            RequestOutcome::Complete { .. } | RequestOutcome::Cancelled => {
                self.step.usage = Tokens::Held(usage);
                self.tell_usage(out);
            }
        }
    }

    /// Tells what a reply cost, once no other attempt can follow.
    pub(super) fn tell_usage(&mut self, out: &mut Outbox<Openseek>) {
        if let Tokens::Held(usage) = self.step.usage {
            self.in_step(out);
            self.step.usage = Tokens::Told;
            let usage = UsageLine {
                usage: counts(&usage).into(),
                ..UsageLine::default()
            };
            say(usage, out);
        }
    }

    /// A call of the reply, whose result is to stand behind those of the calls before it.
    fn expects(&mut self, call: CallId, provider_id: Option<&str>, name: &Text) {
        if self.calls.begin(call, provider_id).is_some() {
            let name = name.clone();
            self.known.insert(call, Known { name, gated: None });
            self.results.push_back((call, Came::Open));
        }
    }

    /// A call begins. `gated`: its arguments, if it changes something.
    pub(super) fn call_started(
        &mut self,
        call: CallId,
        provider_id: Option<&str>,
        name: &Text,
        gated: Option<Text>,
    ) {
        self.expects(call, provider_id, name);
        if let Some(known) = self.known.get_mut(&call) {
            known.gated = gated;
        }
    }

    pub(super) fn call_ended(
        &mut self,
        call: CallId,
        outcome: &ToolOutcome,
        content: &[Block],
        show: Option<&Show>,
        out: &mut Outbox<Openseek>,
    ) {
        let Some((id, name)) = self.end_call(call) else {
            return;
        };
        let content = output(content);
        let line = match outcome {
            // The end of the turn says what it came to.
            ToolOutcome::EndedTurn => return self.result(call, Vec::new(), out),
            ToolOutcome::Invalid => Event::from(ToolCallDecodeError {
                tool_call_id: id.as_str().into(),
                tool_name: (&*name).into(),
                error: content.into(),
                ..ToolCallDecodeError::default()
            }),
            ToolOutcome::Ok
            | ToolOutcome::Failed
            | ToolOutcome::NotFound
            | ToolOutcome::Denied(_)
            | ToolOutcome::Cancelled
            | ToolOutcome::TimedOut
            | ToolOutcome::Detached(_)
            | ToolOutcome::NotSaid => {
                let brief = show.and_then(|show| show.summary.as_deref());
                tool_result(&id, &name, outcome.is_error(), &content, brief)
            }
        };
        let mut json = Vec::new();
        line.encode(&mut json);
        self.result(call, json, out);
    }

    pub(super) fn call_skipped(&mut self, call: CallId, why: SkipWhy, out: &mut Outbox<Openseek>) {
        let Some((id, name)) = self.end_call(call) else {
            return;
        };
        let why = match why {
            SkipWhy::Cancelled => "the turn was cancelled",
            SkipWhy::Truncated => "the reply broke off",
            SkipWhy::TurnOver => "the turn has ended",
            SkipWhy::Steered => "the user's message came first",
        };
        let mut json = Vec::new();
        tool_result(&id, &name, true, &format!("skipped: {why}"), None).encode(&mut json);
        self.result(call, json, out);
    }

    fn end_call(&mut self, call: CallId) -> Option<(String, Text)> {
        if !self.open {
            return None;
        }
        let id = self.calls.end(call)?;
        let known = self.known.remove(&call);
        Some((id, known.map_or_else(|| "".into(), |known| known.name)))
    }

    /// What a call came to is told once the calls before it are.
    fn result(&mut self, call: CallId, line: Vec<u8>, out: &mut Outbox<Openseek>) {
        self.tell_usage(out);
        self.in_step(out);
        if let Some((_, result)) = self.results.iter_mut().find(|(known, _)| *known == call) {
            *result = Came::Ended(line);
        }
        while let Some((_, Came::Ended(line))) = self.results.front() {
            put(line, out);
            self.results.pop_front();
        }
    }

    /// A call that hasn't ended.
    pub(super) fn call(&self, call: CallId) -> Option<&Known> {
        self.known.get(&call)
    }
}

/// Writes a line that was held; an empty one is none.
fn put(line: &[u8], out: &mut Outbox<Openseek>) {
    if !line.is_empty() {
        out.line(|bytes| bytes.extend_from_slice(line));
    }
}

fn tool_result<'a>(
    id: &'a str,
    name: &'a str,
    is_error: bool,
    content: &'a str,
    brief: Option<&'a str>,
) -> Event<'a> {
    Event::from(ToolResult {
        tool_call_id: id.into(),
        tool_name: name.into(),
        is_error,
        content: clamped(content).into(),
        brief: brief.map(Into::into).unwrap_or_default(),
        ..ToolResult::default()
    })
}

/// Tokens in the wire's five numbers: those of a prompt with what was read from a cache, and what wasn't.
fn counts(usage: &Usage) -> TokenCounts<'static> {
    let prompt = usage.prompt_tokens().unwrap_or(0);
    let answer = usage.answer_tokens().unwrap_or(0);
    let hit = usage.cache_read.unwrap_or(0);
    TokenCounts {
        prompt_tokens: int(prompt),
        completion_tokens: int(answer),
        total_tokens: int(prompt.saturating_add(answer)),
        prompt_cache_hit_tokens: int(hit),
        prompt_cache_miss_tokens: int(prompt.saturating_sub(hit)),
        ..TokenCounts::default()
    }
}

/// The answer of a turn, as text.
pub(super) fn answer_text(answer: Option<&TurnAnswer>) -> String {
    match answer {
        None => String::new(),
        Some(TurnAnswer::Text(text)) => String::from(&**text),
        Some(TurnAnswer::Captured { input, .. }) => {
            let member = crate::json::Raw::trusted(input.as_str()).get_last("answer");
            let answer = member.and_then(crate::json::Raw::string);
            answer.map_or_else(
                || String::from(input.as_str()),
                |answer| answer.into_owned(),
            )
        }
    }
}

/// What `subrun_finished` says of tokens.
pub(super) fn spent(usage: Option<&Usage>) -> (Int, Int) {
    let of = |tokens: Option<u64>| int(tokens.unwrap_or(0));
    (
        of(usage.and_then(Usage::prompt_tokens)),
        of(usage.and_then(Usage::answer_tokens)),
    )
}
