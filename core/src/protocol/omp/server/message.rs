//! Neutral messages as messages of the wire.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::models::Author;
use crate::json::{self, Kind as JsonKind, Lazy, Raw, ScanRules, Str};
use crate::protocol::ids::Calls;
use crate::protocol::omp::wire::{
    Any, AssistantMessage, BashExecution, Block as WireBlock, BranchSummary, CompactionSummary,
    Content, Cost as WireCost, CustomMessage, HookMessage, ImageBlock, Message as WireMessage, Num,
    RedactedThinking, ServerToolBlock, StopReason, TextBlock, ThinkingBlock, ToolCallBlock,
    ToolOutput, ToolResultMessage, Usage as WireUsage, UserMessage,
};
use crate::vocab::*;

/// What came of a reply, beside its content.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) author: Author,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
    pub(super) stop: StopReason<'static>,
    pub(super) error: Option<Text>,
    pub(super) status: Option<u16>,
    pub(super) at_ms: u64,
    pub(super) response_id: Option<String>,
    pub(super) duration_us: Option<u64>,
    pub(super) first_us: Option<u64>,
}

impl Outcome {
    /// Of a reply of which nothing more is known: one from before this session.
    pub(super) fn unknown(author: Author, stop: StopReason<'static>, at_ms: u64) -> Self {
        Outcome {
            author,
            usage: Usage::default(),
            cost: Cost::NotSaid,
            stop,
            error: None,
            status: None,
            at_ms,
            response_id: None,
            duration_us: None,
            first_us: None,
        }
    }
}

/// A reply, as JSON.
pub(super) fn reply(content: &[&Block], outcome: &Outcome, calls: &mut Calls) -> Vec<u8> {
    let message = AssistantMessage {
        content: blocks(content.iter().copied(), calls),
        api: outcome.author.api.as_deref().map(Str::from),
        provider: Some((&*outcome.author.provider).into()),
        model: Some((&*outcome.author.model).into()),
        usage: Some(Box::new(usage(&outcome.usage, &outcome.cost))),
        stop_reason: Some(outcome.stop.clone()),
        timestamp: Some(outcome.at_ms.into()),
        response_id: outcome.response_id.as_deref().map(Str::from),
        error_message: outcome.error.as_deref().map(Lazy::from),
        error_status: outcome.status.map(|status| u64::from(status).into()),
        duration: outcome.duration_us.map(millis),
        ttft: outcome.first_us.map(millis),
        ..AssistantMessage::default()
    };
    encoded(WireMessage::from(message))
}

/// What stands behind the content of a reply.
pub(super) fn tail(outcome: &Outcome) -> Vec<u8> {
    let whole = reply(&[], outcome, &mut Calls::default());
    const HEAD: &[u8] = b"{\"role\":\"assistant\",\"content\":[";
    whole.get(HEAD.len()..).unwrap_or_default().to_vec()
}

/// A message that isn't a reply, as JSON.
pub(super) fn plain(
    message: &Message,
    steering: bool,
    details: Option<&RawJson>,
    calls: &mut Calls,
) -> Vec<u8> {
    let timestamp = Some(Num::from(message.at_ms));
    let content = blocks(message.content.iter().map(|block| &**block), calls);
    let agent = message.origin != Origin::Host && message.origin != Origin::History;
    let attribution = Some(Str::from(if agent { "agent" } else { "user" }));
    let details = details.or(message.details.as_ref()).map(raw);
    let text = || Lazy::from(message.text());
    encoded(match &message.role {
        Role::User => UserMessage {
            content: Content::Blocks(content),
            steering: steering.then_some(true),
            synthetic: agent.then_some(true),
            attribution,
            timestamp,
            ..UserMessage::default()
        }
        .into(),
        // A reply whose outcome nobody knows has been written by `reply`.
        Role::Assistant => AssistantMessage {
            content,
            timestamp,
            ..AssistantMessage::default()
        }
        .into(),
        Role::Tool { call, name, error } => ToolResultMessage {
            tool_call_id: Str::from(String::from(name_call(*call, None, calls))),
            tool_name: Some((&**name).into()),
            content,
            details: Any(Some(details.unwrap_or(EMPTY))),
            is_error: Some(*error),
            timestamp,
            ..ToolResultMessage::default()
        }
        .into(),
        Role::Note => CustomMessage {
            custom_type: Str::from(custom_type(&message.origin)),
            content: Content::Blocks(content),
            display: Some(false),
            details: Any(details),
            attribution: Some("agent".into()),
            timestamp,
            ..CustomMessage::default()
        }
        .into(),
        Role::Summary => CompactionSummary {
            summary: text(),
            timestamp,
            ..CompactionSummary::default()
        }
        .into(),
        Role::Shell => shell(message, details, timestamp),
        Role::Other(role) => return other(role, message, content, details),
    })
}

/// What a command of the host's gave: its parts are in the details.
fn shell<'a>(
    message: &'a Message,
    details: Option<Raw<'a>>,
    timestamp: Option<Num<'a>>,
) -> WireMessage<'a> {
    let member = |name: &str| details.and_then(|details| details.get(name));
    let flag = |name: &str| member(name).and_then(Raw::bool) == Some(true);
    let mut texts = message.texts();
    let first = texts.next().unwrap_or_default();
    let command = member("command").and_then(Raw::string).unwrap_or_else(|| {
        let command = first.strip_prefix("$ ").unwrap_or(first);
        Cow::Borrowed(command.strip_suffix('\n').unwrap_or(command))
    });
    let output = texts
        .next()
        .filter(|_| details.is_none() || flag("has_output"));
    BashExecution {
        command: command.into(),
        output: output.unwrap_or_default().into(),
        exit_code: member("exit_code").and_then(|code| code.decode().ok()),
        cancelled: Some(flag("cancelled")),
        truncated: Some(flag("truncated")),
        timestamp,
        ..BashExecution::default()
    }
    .into()
}

/// A role that only one protocol has: what omp knows keeps its role, everything else is a custom message.
fn other(
    role: &str,
    message: &Message,
    content: Vec<WireBlock<'_>>,
    details: Option<Raw<'_>>,
) -> Vec<u8> {
    let timestamp = Some(Num::from(message.at_ms));
    let content = Content::Blocks(content);
    encoded(match role {
        "hookMessage" => HookMessage {
            custom_type: Str::from(custom_type(&message.origin)),
            content,
            details: Any(details),
            timestamp,
            ..HookMessage::default()
        }
        .into(),
        "branchSummary" => BranchSummary {
            summary: message.text().into(),
            timestamp,
            ..BranchSummary::default()
        }
        .into(),
        role => CustomMessage {
            custom_type: role.into(),
            content,
            display: Some(true),
            details: Any(details),
            timestamp,
            ..CustomMessage::default()
        }
        .into(),
    })
}

/// What a custom message is called.
fn custom_type(origin: &Origin) -> String {
    match origin {
        Origin::Job(_) => "async-result".into(),
        Origin::Hook(name) => format!("hook:{name}"),
        Origin::Extension(name) => (&**name).into(),
        Origin::GoalCheck | Origin::GoalReminder | Origin::GoalContinue { .. } => "goal".into(),
        Origin::PlanReminder => "plan".into(),
        Origin::Interrupted | Origin::Harness | Origin::Host | Origin::History => {
            "harness-note".into()
        }
    }
}

/// A result of a tool, as JSON: what executions tell.
pub(super) fn tool_output(
    content: &[Block],
    details: Option<&RawJson>,
    calls: &mut Calls,
) -> Vec<u8> {
    let output = ToolOutput {
        content: blocks(content.iter(), calls),
        details: Any(Some(details.map_or(EMPTY, raw))),
        ..ToolOutput::default()
    };
    let mut out = Vec::new();
    output.encode(&mut out);
    out
}

/// `{}`
const EMPTY: Raw<'static> = Raw::trusted("{}");

/// A value that was checked once.
pub(super) fn raw(json: &RawJson) -> Raw<'_> {
    json::scan_value(json.as_str().as_bytes(), &ScanRules::LENIENT).unwrap_or(Raw::NULL)
}

/// The id of a call on the wire.
pub(super) fn name_call<'c>(
    call: CallId,
    provider_id: Option<&str>,
    calls: &'c mut Calls,
) -> &'c str {
    if calls.wire(call).is_none() {
        calls.begin(call, provider_id);
    }
    calls.wire(call).unwrap_or_default()
}

/// Blocks of the wire.
pub(super) fn blocks<'a>(
    content: impl Iterator<Item = &'a Block>,
    calls: &mut Calls,
) -> Vec<WireBlock<'a>> {
    let mut out = Vec::new();
    for block in content {
        push_block(block, calls, &mut out);
    }
    out
}

/// One block as JSON.
pub(super) fn block_json(block: &Block, calls: &mut Calls) -> Vec<u8> {
    let mut out = Vec::new();
    match blocks(core::iter::once(block), calls).first() {
        Some(block) => block.encode(&mut out),
        None => text("").encode(&mut out),
    }
    out
}

fn text<'a>(text: impl Into<Lazy<'a>>) -> WireBlock<'a> {
    TextBlock {
        text: text.into(),
        ..TextBlock::default()
    }
    .into()
}

fn push_block<'a>(block: &'a Block, calls: &mut Calls, out: &mut Vec<WireBlock<'a>>) {
    out.push(match block {
        Block::Text(words) => text(&**words),
        Block::Thinking { text, signature } => ThinkingBlock {
            thinking: (&**text).into(),
            thinking_signature: signature.as_deref().map(Str::from),
            ..ThinkingBlock::default()
        }
        .into(),
        Block::Redacted(data) => RedactedThinking {
            data: (&**data).into(),
            ..RedactedThinking::default()
        }
        .into(),
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline { mime, base64 },
        } => ImageBlock {
            data: (&**base64).into(),
            mime_type: (&**mime).into(),
            ..ImageBlock::default()
        }
        .into(),
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Url(url),
        } => ImageBlock {
            data: "".into(),
            mime_type: "image/*".into(),
            url: Some((&**url).into()),
            ..ImageBlock::default()
        }
        .into(),
        Block::Media { source, .. } => text(format!("[{}]", source_name(source))),
        Block::ToolUse {
            call,
            provider_id,
            name,
            input,
        } => ToolCallBlock {
            id: Str::from(String::from(name_call(
                *call,
                provider_id.as_deref(),
                calls,
            ))),
            name: (&**name).into(),
            arguments: Any(Some(arguments(input))),
            ..ToolCallBlock::default()
        }
        .into(),
        Block::ToolResult { content, .. } => {
            for block in content {
                push_block(block, calls, out);
            }
            return;
        }
        Block::Opaque(json) => {
            let value = raw(json);
            match value.get("type") {
                Some(_) => WireBlock::Unknown(value),
                None => ServerToolBlock {
                    block: Any(Some(value)),
                    ..ServerToolBlock::default()
                }
                .into(),
            }
        }
    });
}

fn source_name(source: &Source) -> &str {
    match source {
        Source::Inline { mime, .. } => mime,
        Source::Stored(stored) => &stored.name,
        Source::Url(url) => url,
    }
}

/// The arguments of a call as an object.
pub(super) fn arguments(input: &ToolInput) -> Raw<'_> {
    match input {
        ToolInput::Object(json) => Some(raw(json)).filter(|value| value.kind() == JsonKind::Object),
        ToolInput::Unparsed(_) => None,
    }
    .unwrap_or(EMPTY)
}

/// What a request used, and what it cost.
fn usage(usage: &Usage, cost: &Cost) -> WireUsage<'static> {
    let number = |tokens: Option<u64>| Num::from(tokens.unwrap_or(0));
    WireUsage {
        input: number(usage.input),
        output: number(usage.answer_tokens()),
        cache_read: number(usage.cache_read),
        cache_write: number(usage.cache_write),
        total_tokens: number(usage.total()),
        cost: Some(WireCost {
            total: dollars(cost),
            ..WireCost::default()
        }),
        reasoning_tokens: usage.reasoning.map(Num::from),
        ..WireUsage::default()
    }
}

/// US dollars; 0 where nobody knows.
fn dollars(cost: &Cost) -> Num<'static> {
    match cost {
        Cost::Known { pico_usd, .. } => pico_dollars(*pico_usd),
        Cost::Unpriced { .. } | Cost::NotSaid => Num::default(),
    }
}

/// Millionths of a millionth of a US dollar as dollars.
pub(super) fn pico_dollars(pico_usd: u64) -> Num<'static> {
    #[allow(clippy::cast_precision_loss)]
    Num::from(pico_usd as f64 / 1e12)
}

/// Microseconds as milliseconds.
pub(super) fn millis(us: u64) -> Num<'static> {
    #[allow(clippy::cast_precision_loss)]
    Num::from(us as f64 / 1e3)
}

/// The stop reason of a reply.
pub(super) fn stop_reason(stop: &Stop) -> StopReason<'static> {
    match stop {
        Stop::End | Stop::StopSequence(_) | Stop::NotSaid | Stop::Other(_) => StopReason::Stop,
        Stop::ToolUse => StopReason::ToolUse,
        Stop::MaxTokens => StopReason::Length,
        Stop::Cancelled | Stop::Detached => StopReason::Aborted,
        Stop::Failed | Stop::Truncated | Stop::Refusal => StopReason::Error,
    }
}

fn encoded(message: WireMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}
