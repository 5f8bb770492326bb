//! The run that is open, and the lines it is made of: `agent_start`, turns, `agent_end`.
//!
//! A neutral turn is a run, a step is a turn, and a step whose request is tried again is several. What waits here: the
//! end of a reply for its usage, the end of retries for the end of the run, and messages that come between two turns
//! for the next one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::calls::Open;
use super::growing::{Growing, Head, Step, put_id};
use super::message::{self, Outcome, name_call, stop_reason};
use super::models::{Author, Models};
use super::printer::Printer;
use crate::json::{self, Raw, write_u64};
use crate::protocol::Outbox;
use crate::protocol::ids::Calls;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{
    AgentStart, Any, AutoRetryEnd, AutoRetryStart, Num, StopReason, TurnStart,
};
use crate::vocab::*;

/// Calls whose wire ids are remembered after their end.
const MOST_CALLS: usize = 65_536;

/// What the real program says of a reply that was cut off by the host.
const INTERRUPTED: &str = "Interrupted by user";
/// What it says of one that never began.
const ABORTED: &str = "Request was aborted";

/// A message as JSON, as it went out.
pub(super) type Encoded = Arc<[u8]>;

/// Where lines go, and what they need.
pub(super) struct Pen<'p> {
    pub(super) printer: &'p mut Printer,
    pub(super) out: &'p mut Outbox<Omp>,
    pub(super) models: &'p Models,
    pub(super) mirror: &'p mirror::Mirror,
    pub(super) now: Now,
}

impl Pen<'_> {
    fn author(&self) -> Author {
        match self.mirror.info() {
            Some(info) => self.models.author(&info.model),
            None => self.models.author(&ModelRef {
                provider: None,
                model: "".into(),
            }),
        }
    }
}

/// A reply that is whole, and waits for its usage.
#[derive(Debug)]
struct Ended {
    message: Arc<Message>,
    stop: Stop,
    kept: bool,
    number: u64,
    at_ms: u64,
    response_id: Option<String>,
    begun_us: u64,
    first_us: Option<u64>,
}

/// The state of the run.
#[derive(Debug)]
pub(super) struct Run {
    /// Messages that got an id so far.
    numbers: u64,
    turn: Option<TurnId>,
    /// A turn of the wire is open.
    pub(super) open: bool,
    /// Messages since the last `agent_start`.
    sent: Vec<Encoded>,
    /// The reply and the results of the open turn.
    reply: Option<Encoded>,
    pub(super) results: Vec<Encoded>,
    growing: Option<Growing>,
    ended: Option<Ended>,
    /// The open request has a reply.
    replied: bool,
    /// A retry is scheduled; the next request begins a turn.
    retrying: bool,
    /// Retries of the step so far.
    retries: u32,
    /// How retries ended: well or not, which attempt it was, and why. It is told at the end of the run.
    retry_end: Option<(bool, u32, Option<Text>)>,
    /// The last reply of the run was cut off.
    aborted: bool,
    /// Messages that came between two turns.
    early: Vec<Arc<Message>>,
    pub(super) calls: BTreeMap<CallId, Open>,
    pub(super) names: Calls,
    /// Messages of the history that went out, so that queries repeat what was said.
    said: BTreeMap<MessageId, Encoded>,
    /// User messages that went into an open run.
    steered: BTreeSet<MessageId>,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            numbers: 0,
            turn: None,
            open: false,
            sent: Vec::new(),
            reply: None,
            results: Vec::new(),
            growing: None,
            ended: None,
            replied: false,
            retrying: false,
            retries: 0,
            retry_end: None,
            aborted: false,
            early: Vec::new(),
            calls: BTreeMap::new(),
            names: Calls::remembering(MOST_CALLS),
            said: BTreeMap::new(),
            steered: BTreeSet::new(),
        }
    }
}

impl Run {
    /// The turn that runs.
    pub(super) fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// Another session: nothing of this one is open or known any more.
    pub(super) fn reset(&mut self) {
        let numbers = self.numbers;
        *self = Run {
            numbers,
            ..Run::default()
        };
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn turn_started(&mut self, turn: TurnId, pen: &mut Pen<'_>) {
        self.turn = Some(turn);
        self.aborted = false;
        self.retrying = false;
        self.retries = 0;
        self.agent_start(pen);
    }

    fn agent_start(&mut self, pen: &mut Pen<'_>) {
        self.sent.clear();
        pen.printer.event(AgentStart::default(), pen.out);
    }

    pub(super) fn step_started(&mut self, pen: &mut Pen<'_>) {
        self.finish_step(StopReason::Stop, None, pen);
        self.retries = 0;
        self.begin_turn(pen);
    }

    fn begin_turn(&mut self, pen: &mut Pen<'_>) {
        self.open = true;
        self.reply = None;
        self.results.clear();
        pen.printer.event(TurnStart::default(), pen.out);
        for message in core::mem::take(&mut self.early) {
            self.write_message(&message, false, pen);
        }
    }

    pub(super) fn request_started(&mut self, pen: &mut Pen<'_>) {
        self.replied = false;
        if core::mem::take(&mut self.retrying) {
            self.agent_start(pen);
            self.begin_turn(pen);
        }
    }

    pub(super) fn message_started(
        &mut self,
        message: MessageId,
        provider_id: Option<&str>,
        pen: &mut Pen<'_>,
    ) {
        self.write_reply(None, pen);
        self.replied = true;
        let number = self.number();
        let outcome = Outcome {
            response_id: provider_id.map(String::from),
            ..Outcome::unknown(pen.author(), StopReason::Stop, pen.now.unix_ms)
        };
        let tail = message::tail(&outcome);
        let mut growing = Growing::new(message, number, pen.now.unix_ms, pen.now.mono_us, tail);
        growing.response_id = provider_id.map(String::from);
        pen.printer.event_with("message_start", pen.out, |out| {
            out.extend_from_slice(b"{\"type\":\"message_start\",\"message\":");
            growing.snapshot(out);
            put_id(number, out);
            out.push(b'}');
        });
        self.growing = Some(growing);
    }

    pub(super) fn block_started(
        &mut self,
        message: MessageId,
        block: u32,
        head: &BlockHead,
        pen: &mut Pen<'_>,
    ) {
        let Some(growing) = self.growing.as_mut().filter(|open| open.message == message) else {
            return;
        };
        let (head, json, close): (Head, Vec<u8>, &'static [u8]) = match head {
            BlockHead::Text => (
                Head::Text,
                b"{\"type\":\"text\",\"text\":\"".to_vec(),
                b"\"}",
            ),
            BlockHead::Thinking => (
                Head::Thinking,
                b"{\"type\":\"thinking\",\"thinking\":\"".to_vec(),
                b"\"}",
            ),
            BlockHead::ToolUse {
                call,
                provider_id,
                name,
                ..
            } => {
                let mut json = b"{\"type\":\"toolCall\",\"id\":".to_vec();
                json::write_str(
                    &mut json,
                    name_call(*call, provider_id.as_deref(), &mut self.names),
                );
                json.extend_from_slice(b",\"name\":");
                json::write_str(&mut json, name);
                json.extend_from_slice(b",\"arguments\":{},\"partialArgs\":\"");
                (Head::Call, json, b"\"}")
            }
            BlockHead::Redacted => (
                Head::Hidden,
                b"{\"type\":\"redactedThinking\",\"data\":\"".to_vec(),
                b"\"}",
            ),
            BlockHead::Opaque => (
                Head::Hidden,
                b"{\"type\":\"anthropicServerTool\",\"block\":{}".to_vec(),
                b"}",
            ),
        };
        if growing.begin(block, head, json, close) {
            update(growing, block, head, &Step::Start, pen);
        }
    }

    /// More text: the hot path.
    pub(super) fn delta(
        &mut self,
        delta: &DeltaRef<'_>,
        printer: &mut Printer,
        out: &mut Outbox<Omp>,
    ) {
        let Some(growing) = self
            .growing
            .as_mut()
            .filter(|open| open.message == delta.message)
        else {
            return;
        };
        let fits = match growing.open_head(delta.block) {
            Some(Head::Text) => delta.kind == Kind::Text,
            Some(Head::Thinking) => delta.kind == Kind::Thinking,
            Some(Head::Call) => delta.kind == Kind::Input,
            Some(Head::Hidden) | None => false,
        };
        let Some(head) = growing.open_head(delta.block).filter(|_| fits) else {
            return;
        };
        growing.first_us.get_or_insert(delta.at.mono_us);
        growing.grow(delta.block, delta.text);
        write_update(
            growing,
            delta.block,
            head,
            &Step::Delta(delta.text),
            printer,
            out,
        );
    }

    pub(super) fn block_ended(
        &mut self,
        message: MessageId,
        block: u32,
        content: &Block,
        pen: &mut Pen<'_>,
    ) {
        let Some(growing) = self.growing.as_mut().filter(|open| open.message == message) else {
            return;
        };
        let Some(head) = growing.open_head(block) else {
            return;
        };
        let json = message::block_json(content, &mut self.names);
        growing.end(block, &json);
        let mut words = Vec::new();
        let end: &[u8] = match (head, content) {
            (Head::Call, _) => &json,
            (_, Block::Text(text) | Block::Thinking { text, .. }) => {
                json::write_str(&mut words, text);
                &words
            }
            (
                _,
                Block::Redacted(_)
                | Block::Media { .. }
                | Block::ToolUse { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_),
            ) => {
                json::write_str(&mut words, "");
                &words
            }
        };
        update(growing, block, head, &Step::End(end), pen);
    }

    /// The reply is whole. Its line waits for the end of the request.
    pub(super) fn message_ended(
        &mut self,
        message: &Arc<Message>,
        stop: &Stop,
        kept: bool,
        pen: &mut Pen<'_>,
    ) {
        self.write_reply(None, pen);
        let growing = match self.growing.take() {
            Some(growing) if growing.message == message.id => growing,
            Some(_) | None => {
                // It was never begun, as agents do that don't stream.
                self.message_started(message.id, None, pen);
                match self.growing.take() {
                    Some(growing) => growing,
                    None => return,
                }
            }
        };
        self.ended = Some(Ended {
            message: message.clone(),
            stop: stop.clone(),
            kept,
            number: growing.number,
            at_ms: growing.at_ms,
            response_id: growing.response_id,
            begun_us: growing.begun_us,
            first_us: growing.first_us,
        });
    }

    pub(super) fn request_ended(&mut self, end: &RequestEnd<'_>, pen: &mut Pen<'_>) {
        if self.ended.is_some() {
            return self.write_reply(Some(end), pen);
        }
        let (stop, error, status) = match end.outcome {
            RequestOutcome::Complete { .. } => return,
            RequestOutcome::Cancelled => (StopReason::Aborted, Text::from(ABORTED), None),
            RequestOutcome::Truncated => (StopReason::Error, Text::from(TRUNCATED), None),
            RequestOutcome::Failed(failure) => {
                (StopReason::Error, failure.text.clone(), failure.status)
            }
        };
        if !self.replied && self.growing.is_none() {
            self.replied = true;
            let outcome = Outcome {
                author: pen.models.author(end.model),
                usage: end.usage.unwrap_or_default(),
                cost: end.cost.clone(),
                error: Some(error),
                status,
                duration_us: Some(end.api_us),
                ..Outcome::unknown(pen.author(), stop, pen.now.unix_ms)
            };
            self.write_empty(&outcome, pen);
        }
    }

    /// Writes the reply that waited. Without the end of its request its usage is zero.
    pub(super) fn write_reply(&mut self, end: Option<&RequestEnd<'_>>, pen: &mut Pen<'_>) {
        let Some(ended) = self.ended.take() else {
            return;
        };
        let stop = stop_reason(&ended.stop);
        let failure = match end.map(|end| end.outcome) {
            Some(RequestOutcome::Failed(failure)) => Some(failure),
            Some(
                RequestOutcome::Complete { .. }
                | RequestOutcome::Truncated
                | RequestOutcome::Cancelled,
            )
            | None => None,
        };
        let error = match (&stop, failure) {
            (StopReason::Aborted, _) => Some(Text::from(INTERRUPTED)),
            (_, Some(failure)) => Some(failure.text.clone()),
            (StopReason::Error, None) if ended.stop == Stop::Refusal => {
                Some("The model refused to answer".into())
            }
            (StopReason::Error, None) => Some(TRUNCATED.into()),
            (
                StopReason::Stop | StopReason::Length | StopReason::ToolUse | StopReason::Other(_),
                None,
            ) => None,
        };
        let since = |us: u64| us.saturating_sub(ended.begun_us);
        let outcome = Outcome {
            author: end.map_or_else(|| pen.author(), |end| pen.models.author(end.model)),
            usage: end.and_then(|end| end.usage).unwrap_or_default(),
            cost: end.map_or(Cost::NotSaid, |end| end.cost.clone()),
            stop,
            error,
            status: failure.and_then(|failure| failure.status),
            at_ms: ended.at_ms,
            response_id: ended.response_id,
            duration_us: Some(end.map_or_else(|| since(pen.now.mono_us), |end| end.api_us)),
            first_us: ended.first_us.map(since),
        };
        let content: Vec<&Block> = ended.message.content.iter().map(|block| &**block).collect();
        let json = message::reply(&content, &outcome, &mut self.names);
        self.reply_is(
            json,
            ended.number,
            &outcome.stop,
            ended.kept.then_some(ended.message.id),
            pen,
        );
    }

    /// A pair for a reply that never was.
    fn write_empty(&mut self, outcome: &Outcome, pen: &mut Pen<'_>) {
        let number = self.number();
        let json = message::reply(&[], outcome, &mut self.names);
        put_pair("message_start", &json, None, number, pen);
        self.reply_is(json, number, &outcome.stop, None, pen);
    }

    fn reply_is(
        &mut self,
        json: Vec<u8>,
        number: u64,
        stop: &StopReason<'_>,
        kept: Option<MessageId>,
        pen: &mut Pen<'_>,
    ) {
        put_pair("message_end", &json, Some(pen.now.unix_ms), number, pen);
        self.aborted = *stop == StopReason::Aborted;
        let json: Encoded = json.into();
        if let Some(id) = kept {
            self.said.insert(id, json.clone());
        }
        self.reply = Some(json.clone());
        self.sent.push(json);
    }

    /// A message that isn't streamed.
    pub(super) fn message(&mut self, message: &Arc<Message>, steering: bool, pen: &mut Pen<'_>) {
        if steering {
            self.steered.insert(message.id);
        }
        if self.turn.is_none() {
            return;
        }
        if self.open {
            self.write_message(message, steering, pen);
        } else {
            self.early.push(message.clone());
        }
    }

    fn write_message(&mut self, message: &Arc<Message>, steering: bool, pen: &mut Pen<'_>) {
        let steering = steering || self.steered.contains(&message.id);
        let json = message::plain(message, steering, None, &mut self.names);
        self.write_plain(json, message.id, pen);
    }

    pub(super) fn write_plain(
        &mut self,
        json: Vec<u8>,
        id: MessageId,
        pen: &mut Pen<'_>,
    ) -> Encoded {
        let number = self.number();
        put_pair("message_start", &json, None, number, pen);
        put_pair("message_end", &json, None, number, pen);
        let json: Encoded = json.into();
        self.said.insert(id, json.clone());
        self.sent.push(json.clone());
        json
    }

    pub(super) fn step_ended(&mut self, pen: &mut Pen<'_>) {
        self.write_reply(None, pen);
        // Without a reply the end of the run says how it went.
        if self.open && self.reply.is_some() {
            self.turn_end(pen);
        }
    }

    /// Closes the wire's turn if it is open; a missing reply is made up.
    fn finish_step(&mut self, stop: StopReason<'static>, error: Option<Text>, pen: &mut Pen<'_>) {
        self.write_reply(None, pen);
        if !self.open {
            return;
        }
        let outcome = Outcome {
            error,
            ..Outcome::unknown(pen.author(), stop, pen.now.unix_ms)
        };
        if let Some(growing) = self.growing.take() {
            // An agent that died in the middle of it.
            let mut json = Vec::new();
            growing.with_tail(&message::tail(&outcome), &mut json);
            self.reply_is(json, growing.number, &outcome.stop, None, pen);
        }
        if self.reply.is_none() {
            self.write_empty(&outcome, pen);
        }
        self.turn_end(pen);
    }

    fn turn_end(&mut self, pen: &mut Pen<'_>) {
        self.open = false;
        let (reply, results) = (&self.reply, &self.results);
        pen.printer.event_with("turn_end", pen.out, |out| {
            out.extend_from_slice(b"{\"type\":\"turn_end\",\"message\":");
            out.extend_from_slice(reply.as_deref().unwrap_or(b"null"));
            out.extend_from_slice(b",\"toolResults\":");
            put_list(results, out);
            out.push(b'}');
        });
    }

    pub(super) fn retry_scheduled(
        &mut self,
        max: u32,
        wait_us: Option<u64>,
        why: &Failure,
        pen: &mut Pen<'_>,
    ) {
        self.finish_step(StopReason::Error, Some(why.text.clone()), pen);
        self.retrying = true;
        // An attempt behind a summary is no retry here.
        self.retries = self.retries.saturating_add(1);
        let line = AutoRetryStart {
            attempt: self.retries.into(),
            max_attempts: max.into(),
            delay_ms: wait_us.map_or_else(Num::default, message::millis),
            error_message: (&*why.text).into(),
            ..AutoRetryStart::default()
        };
        pen.printer.event(line, pen.out);
    }

    pub(super) fn retry_ended(&mut self, ok: bool, why: Option<&Failure>) {
        let error = match (ok, why) {
            (true, _) => None,
            (false, Some(failure)) => Some(failure.text.clone()),
            (false, None) => Some("Retry cancelled".into()),
        };
        self.retry_end = Some((ok, self.retries, error));
    }

    pub(super) fn turn_ended(&mut self, end: &End, pending: Pending, pen: &mut Pen<'_>) {
        let cancelled = end.is_cancelled();
        let (stop, error) = if cancelled {
            (StopReason::Aborted, Some(ABORTED.into()))
        } else if end.is_finished() {
            (StopReason::Stop, None)
        } else {
            (StopReason::Error, super::prompts::end_text(end))
        };
        self.finish_step(stop, error, pen);
        if cancelled && !self.aborted && self.retry_end.is_none() {
            // Hosts read the last reply's stop reason.
            self.begin_turn(pen);
            self.finish_step(StopReason::Aborted, Some(ABORTED.into()), pen);
        }
        if !self.early.is_empty() {
            for message in core::mem::take(&mut self.early) {
                self.write_message(&message, false, pen);
            }
        }
        if let Some((success, attempt, error)) = self.retry_end.take() {
            let line = AutoRetryEnd {
                success,
                attempt: attempt.into(),
                final_error: error.as_deref().map(Into::into),
                ..AutoRetryEnd::default()
            };
            pen.printer.event(line, pen.out);
        }
        let sent = &self.sent;
        pen.printer.event_with("agent_end", pen.out, |out| {
            out.extend_from_slice(b"{\"type\":\"agent_end\",\"messages\":");
            put_list(sent, out);
            let terminal = !(pending.background || pending.resumes);
            out.extend_from_slice(if terminal {
                b",\"isTerminal\":true,\"yielded\":true".as_slice()
            } else {
                b",\"isTerminal\":false,\"yielded\":true"
            });
            if pending.background {
                out.extend_from_slice(b",\"awaitingAsyncWork\":true");
            }
            out.push(b'}');
        });
        self.end();
    }

    /// Nothing of the run is open any more.
    pub(super) fn end(&mut self) {
        self.turn = None;
        self.open = false;
        self.retrying = false;
        self.retry_end = None;
        self.growing = None;
        self.ended = None;
        self.sent = Vec::new();
        self.early.clear();
        self.results.clear();
        self.reply = None;
        self.calls.clear();
    }

    /// What went out isn't asked for again.
    pub(super) fn forget_said(&mut self) {
        self.said.clear();
        self.steered.clear();
    }

    /// A message of the history as JSON: as it went out, if it did.
    pub(super) fn history_json(
        &mut self,
        message: &Message,
        models: &Models,
        info: Option<&SessionInfo>,
    ) -> Encoded {
        if let Some(said) = self.said.get(&message.id) {
            return said.clone();
        }
        if message.role == Role::Assistant {
            let author = info
                .map(|info| models.author(&info.model))
                .unwrap_or_else(|| Author {
                    api: None,
                    provider: "unknown".into(),
                    model: "".into(),
                });
            let stop = if message.calls().next().is_some() {
                StopReason::ToolUse
            } else {
                StopReason::Stop
            };
            let content: Vec<&Block> = message.content.iter().map(|block| &**block).collect();
            return message::reply(
                &content,
                &Outcome::unknown(author, stop, message.at_ms),
                &mut self.names,
            )
            .into();
        }
        let steering = self.steered.contains(&message.id);
        message::plain(message, steering, None, &mut self.names).into()
    }

    /// Forgets messages that left the history.
    pub(super) fn prune(&mut self, history: &[Arc<Message>]) {
        let ids: BTreeSet<MessageId> = history.iter().map(|message| message.id).collect();
        self.said.retain(|id, _| ids.contains(id));
        self.steered.retain(|id| ids.contains(id));
    }
}

/// What is said of a reply whose stream had no completion signal.
const TRUNCATED: &str = "The stream ended without a completion signal";

/// The end of a request.
pub(super) struct RequestEnd<'e> {
    pub(super) outcome: &'e RequestOutcome,
    pub(super) model: &'e ModelRef,
    pub(super) usage: Option<Usage>,
    pub(super) cost: &'e Cost,
    pub(super) api_us: u64,
}

/// JSON that an encoder of ours wrote.
pub(super) fn ours(json: &[u8]) -> Any<'_> {
    let text = core::str::from_utf8(json).ok();
    Any(text.filter(|text| !text.is_empty()).map(Raw::trusted))
}

fn update(growing: &Growing, block: u32, head: Head, step: &Step<'_>, pen: &mut Pen<'_>) {
    write_update(growing, block, head, step, pen.printer, pen.out);
}

fn write_update(
    growing: &Growing,
    block: u32,
    head: Head,
    step: &Step<'_>,
    printer: &mut Printer,
    out: &mut Outbox<Omp>,
) {
    if head == Head::Hidden {
        return;
    }
    let deltas = printer.sends_deltas();
    printer.event_with("message_update", out, |out| {
        if !deltas {
            out.reserve(growing.room());
        }
        growing.update(block, head, step, deltas, out);
    });
}

/// Writes a `message_start` or `message_end`.
fn put_pair(
    kind: &'static str,
    json: &[u8],
    completed_ms: Option<u64>,
    number: u64,
    pen: &mut Pen<'_>,
) {
    pen.printer.event_with(kind, pen.out, |out| {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"message\":");
        match completed_ms {
            Some(at) => {
                out.extend_from_slice(json.get(..json.len().saturating_sub(1)).unwrap_or_default());
                out.extend_from_slice(b",\"completedAt\":");
                write_u64(out, at);
                out.push(b'}');
            }
            None => out.extend_from_slice(json),
        }
        put_id(number, out);
        out.push(b'}');
    });
}

fn put_list(items: &[Encoded], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
}
