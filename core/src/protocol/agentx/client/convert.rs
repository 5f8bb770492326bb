//! Values of the wire as neutral ones, and the other way round.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::{self, Kind as JsonKind, Raw};
use crate::protocol::agentx::neutral::{manifest, media_source};
use crate::protocol::agentx::wire::{
    self, Any, Block as WireBlock, Content, DocumentBlock, ImageBlock, Kept, ModelUsage, Num,
    TextBlock, ToolUseBlock, Usage as WireUsage,
};
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// A value, kept as text.
pub(super) fn raw(value: Raw<'_>) -> RawJson {
    RawJson(value.as_str().into())
}

/// JSON that this side has just written.
pub(super) fn ours(json: &[u8]) -> Raw<'_> {
    Raw::trusted(core::str::from_utf8(json).unwrap_or("null"))
}

/// A text as a JSON string, in a buffer.
pub(super) fn quoted<'a>(buffer: &'a mut Vec<u8>, text: &str) -> Raw<'a> {
    json::write_str(buffer, text);
    Raw::trusted(core::str::from_utf8(buffer).unwrap_or("\"\""))
}

/// A block, written as JSON again: for those that only this protocol understands.
fn opaque(block: &WireBlock<'_>) -> Block {
    let mut text = Vec::new();
    block.put(&mut text);
    Block::Opaque(RawJson(String::from_utf8_lossy(&text).into()))
}

/// The arguments of a call.
pub(super) fn input(value: Raw<'_>) -> ToolInput {
    match value.kind() {
        JsonKind::Object => ToolInput::Object(raw(value)),
        JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String | JsonKind::Array => {
            ToolInput::Unparsed(value.as_str().into())
        }
    }
}

/// A call of a reply.
pub(super) fn tool_use(call: CallId, tool: &ToolUseBlock<'_>) -> Block {
    Block::ToolUse {
        call,
        provider_id: (!tool.id.is_empty()).then(|| (&*tool.id).into()),
        name: (&*tool.name).into(),
        input: input(tool.input),
    }
}

fn media(kind: MediaKind, source: Any<'_>, block: &WireBlock<'_>) -> Block {
    let member = |name: &str| Some(Text::from(&*source.get()?.get_last(name)?.string()?));
    let found = match member("type").as_deref() {
        Some("base64") => member("media_type")
            .zip(member("data"))
            .map(|(mime, base64)| Source::Inline { mime, base64 }),
        Some("url") => member("url").map(Source::Url),
        Some(_) | None => None,
    };
    match found {
        Some(source) => Block::Media { kind, source },
        None => opaque(block),
    }
}

/// A block; calls by `call`, which knows the ids.
pub(super) fn block(block: &WireBlock<'_>, call: impl FnOnce(&ToolUseBlock<'_>) -> Block) -> Block {
    match block {
        WireBlock::Text(it) => Block::Text((&*it.text).into()),
        WireBlock::InputText(it) => Block::Text((&*it.text).into()),
        WireBlock::Thinking(it) => Block::Thinking {
            text: (&*it.thinking).into(),
            signature: it
                .signature
                .as_deref()
                .filter(|proof| !proof.is_empty())
                .map(Text::from),
        },
        WireBlock::RedactedThinking(it) => Block::Redacted((&*it.data).into()),
        WireBlock::ToolUse(tool) => call(tool),
        WireBlock::Image(it) => media(MediaKind::Image, it.source, block),
        WireBlock::Document(it) => media(MediaKind::Document, it.source, block),
        WireBlock::ToolResult(_) | WireBlock::Attachment(_) | WireBlock::Unknown(_) => {
            opaque(block)
        }
    }
}

/// What a user's message or a tool's result says: no call is expected in it, and an empty text is no block.
pub(super) fn content(content: &Content<'_>) -> Vec<Block> {
    match content {
        Content::Text(text) if text.is_empty() => Vec::new(),
        Content::Text(text) => [Block::Text((&**text).into())].into(),
        Content::Blocks(blocks) => blocks.iter().map(any_block).collect(),
    }
}

fn any_block(kept: &Kept<'_, WireBlock<'_>>) -> Block {
    match kept {
        Kept::Known(known) => block(known, |call| opaque(&WireBlock::ToolUse(call.clone()))),
        Kept::Other(value) => Block::Opaque(raw(*value)),
    }
}

pub(super) fn shared(content: Vec<Block>) -> Vec<Arc<Block>> {
    content.into_iter().map(Arc::new).collect()
}

/// The content of a prompt, as this wire can carry it, as JSON: a text alone, or blocks. `media`: pictures and documents
/// may be in it as they are; else only those that were brought in before.
pub(super) fn prompt_content(content: &[Block], media: bool) -> Result<Vec<u8>, Refusal> {
    let mut json = Vec::new();
    if let [Block::Text(text)] = content {
        json::write_str(&mut json, text);
        return Ok(json);
    }
    json.push(b'[');
    for (index, block) in content.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        match block {
            Block::Text(text) => WireBlock::from(TextBlock {
                text: (&**text).into(),
                ..TextBlock::default()
            })
            .put(&mut json),
            Block::Media {
                kind,
                source: Source::Stored(stored),
            } if !media => WireBlock::Attachment(manifest(*kind, stored)).put(&mut json),
            Block::Media { kind, source } if media && !matches!(source, Source::Stored(_)) => {
                let source = media_source(source);
                let source = Any(Some(ours(&source)));
                match kind {
                    MediaKind::Image => WireBlock::from(ImageBlock {
                        source,
                        ..ImageBlock::default()
                    }),
                    MediaKind::Document => WireBlock::from(DocumentBlock {
                        source,
                        ..DocumentBlock::default()
                    }),
                }
                .put(&mut json);
            }
            Block::Media { .. }
            | Block::Thinking { .. }
            | Block::Redacted(_)
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_) => {
                let what = if media {
                    "content other than text, pictures and documents"
                } else {
                    "content other than text and attachments that were brought in"
                };
                return Err(Refusal::Unsupported(what));
            }
        }
    }
    json.push(b']');
    Ok(json)
}

/// Whether it refers to attachments.
pub(super) fn has_attachments(content: &[Block]) -> bool {
    content.iter().any(|block| {
        matches!(
            block,
            Block::Media {
                source: Source::Stored(_),
                ..
            }
        )
    })
}

/// The text of content: text blocks, one behind the other.
pub(super) fn joined(content: &[Block]) -> String {
    content.iter().filter_map(Block::text).collect()
}

fn count(number: Option<&Num<'_>>) -> Option<u64> {
    number.and_then(Num::u64)
}

/// What a request used. What the model thought is among what it wrote, on the wire.
pub(super) fn usage(told: &WireUsage<'_>) -> Option<Usage> {
    let thought = count(told.reasoning_output_tokens.as_ref()).or_else(|| {
        let details = told.output_tokens_details.get()?;
        details.get_last("thinking_tokens")?.u64()
    });
    let written = count(told.output_tokens.as_ref());
    let usage = Usage {
        input: count(told.input_tokens.as_ref()),
        cache_read: count(told.cache_read_input_tokens.as_ref()),
        cache_write: count(told.cache_creation_input_tokens.as_ref()),
        output: written.map(|all| all.saturating_sub(thought.unwrap_or(0))),
        reasoning: thought,
    };
    (!usage.is_empty()).then_some(usage)
}

/// What is told later counts, where it says something.
pub(super) fn later(before: Option<Usage>, told: Option<Usage>) -> Option<Usage> {
    let (Some(before), Some(told)) = (before, told) else {
        return told.or(before);
    };
    Some(Usage {
        input: told.input.or(before.input),
        cache_read: told.cache_read.or(before.cache_read),
        cache_write: told.cache_write.or(before.cache_write),
        output: told.output.or(before.output),
        reasoning: told.reasoning.or(before.reasoning),
    })
}

/// What a model used, as the sums of a result say it.
pub(super) fn model_usage(told: &ModelUsage<'_>) -> Usage {
    let thought = count(told.thinking_tokens.as_ref());
    let written = told.output_tokens.u64();
    Usage {
        input: told.input_tokens.u64(),
        cache_read: told.cache_read_input_tokens.u64(),
        cache_write: told.cache_creation_input_tokens.u64(),
        output: written.map(|all| all.saturating_sub(thought.unwrap_or(0))),
        reasoning: thought,
    }
}

/// What of a sum is new.
pub(super) fn less(sum: Usage, before: Usage) -> Usage {
    let less = |sum: Option<u64>, before: Option<u64>| {
        sum.map(|sum| sum.saturating_sub(before.unwrap_or(0)))
    };
    Usage {
        input: less(sum.input, before.input),
        cache_read: less(sum.cache_read, before.cache_read),
        cache_write: less(sum.cache_write, before.cache_write),
        output: less(sum.output, before.output),
        reasoning: less(sum.reasoning, before.reasoning),
    }
}

/// Whether it says that nothing was used.
pub(super) fn is_nothing(usage: Usage) -> bool {
    usage.total().unwrap_or(0) == 0
}

/// US dollars as 10⁻¹² of one; nothing for what is no price.
pub(super) fn pico(dollars: &Num<'_>) -> Option<u64> {
    let dollars = dollars.f64();
    // A million dollars: more is no price of a session.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..=1e6)
        .contains(&dollars)
        .then_some((dollars * 1e12 + 0.5) as u64)
}

/// A price that the agent told; nothing: it doesn't know it.
pub(super) fn cost(pico_usd: Option<u64>) -> Cost {
    match pico_usd {
        Some(pico_usd) => Cost::Known {
            pico_usd,
            basis: CostBasis::Reported,
            source: "agent".into(),
            as_of: "".into(),
        },
        None => Cost::Unpriced {
            why: "the agent doesn't know the price".into(),
        },
    }
}

/// What kind of failure the wire's word or an HTTP status is.
pub(super) fn failure(word: Option<&str>, status: Option<u16>, text: &str) -> Failure {
    let kind = match (status, word) {
        (Some(status), _) => crate::protocol::heard::failure_kind(status, text),
        (None, Some("authentication_failed")) => FailureKind::Auth,
        (None, Some("billing_error")) => FailureKind::Billing,
        (None, Some("rate_limit")) => FailureKind::RateLimit,
        (None, Some("invalid_request")) => FailureKind::InvalidRequest,
        (None, Some("max_output_tokens")) => FailureKind::MaxOutput,
        (None, Some("overloaded")) => FailureKind::Overloaded,
        (None, Some(_) | None) => FailureKind::Server,
    };
    Failure {
        status,
        ..Failure::new(kind, text)
    }
}

/// An HTTP status.
pub(super) fn status(number: Option<&Num<'_>>) -> Option<u16> {
    number?.u64().and_then(|number| u16::try_from(number).ok())
}

/// A time in milliseconds, in microseconds.
pub(super) fn ms_us(ms: &Num<'_>) -> Option<u64> {
    let ms = ms.f64();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..=1e12).contains(&ms).then_some((ms * 1e3) as u64)
}

/// Why a reply stopped.
pub(super) fn stop(word: Option<&str>, sequence: Option<&str>) -> Stop {
    match word {
        Some("end_turn") => Stop::End,
        Some("tool_use") => Stop::ToolUse,
        Some("max_tokens") => Stop::MaxTokens,
        Some("stop_sequence") => Stop::StopSequence(sequence.unwrap_or_default().into()),
        Some("refusal") => Stop::Refusal,
        Some(word) => Stop::Other(word.into()),
        None => Stop::NotSaid,
    }
}

/// The update of a list that the wire and the vocabulary both have.
pub(super) fn suggestions(
    told: Option<&[Kept<'_, wire::PermissionUpdate<'_>>]>,
) -> Vec<PermissionUpdate> {
    let known = told.unwrap_or_default().iter().filter_map(Kept::known);
    known
        .filter_map(crate::protocol::agentx::neutral::neutral_update)
        .collect()
}
