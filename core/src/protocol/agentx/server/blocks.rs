//! Content: blocks of the neutral vocabulary as blocks of the wire.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::printer::Printer;
use crate::json::{self, Raw};
use crate::protocol::agentx::neutral::{manifest, media_source};
use crate::protocol::agentx::policy::RecordForm;
use crate::protocol::agentx::wire::{
    self, Any, AssistantMessage, Content, DocumentBlock, ImageBlock, Kept, Maybe, Num,
    RedactedThinkingBlock, Role, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, Usage,
};
use crate::protocol::ids::Calls;
use crate::protocol::wire::Hole;
use crate::vocab::{Block, CallId, MediaKind, RawJson, Source, ToolInput};

/// An object without members.
pub(super) const EMPTY: Raw<'static> = Raw::trusted("{}");

/// JSON that was checked before.
pub(super) fn raw(json: &RawJson) -> Raw<'_> {
    Raw::trusted(json.as_str())
}

/// JSON that this side has just written.
pub(super) fn ours(json: &[u8]) -> Raw<'_> {
    Raw::trusted(core::str::from_utf8(json).unwrap_or("null"))
}

/// The arguments of a call: an object, or `{}` where the model wrote none that can be read.
pub(super) fn arguments<'a>(input: Option<&'a ToolInput>, printer: &Printer) -> Raw<'a> {
    match input {
        Some(ToolInput::Object(json)) if printer.is_clear(json) => {
            let value = raw(json);
            if value.kind() == json::Kind::Object {
                value
            } else {
                EMPTY
            }
        }
        Some(ToolInput::Object(_) | ToolInput::Unparsed(_)) | None => EMPTY,
    }
}

/// The wire's id of a call, which gets one if it has none.
pub(super) fn name_call<'c>(
    call: CallId,
    provider_id: Option<&str>,
    calls: &'c mut Calls,
) -> &'c str {
    calls.begin(call, provider_id);
    calls.wire(call).unwrap_or_default()
}

/// A block of a reply; `None`: this wire doesn't show it.
pub(super) fn reply<'a>(
    block: &'a Block,
    form: RecordForm,
    calls: &'a mut Calls,
    printer: &Printer,
) -> Option<wire::Block<'a>> {
    Some(match (block, form) {
        (Block::Text(text), _) | (Block::Thinking { text, .. }, RecordForm::Strict) => TextBlock {
            text: (&**text).into(),
            ..TextBlock::default()
        }
        .into(),
        (Block::Thinking { text, signature }, RecordForm::Provider) => ThinkingBlock {
            thinking: (&**text).into(),
            signature: Some(signature.as_deref().unwrap_or_default().into()),
            ..ThinkingBlock::default()
        }
        .into(),
        (Block::Redacted(data), RecordForm::Provider) => RedactedThinkingBlock {
            data: (&**data).into(),
            ..RedactedThinkingBlock::default()
        }
        .into(),
        (
            Block::ToolUse {
                call,
                provider_id,
                name,
                input,
            },
            _,
        ) => ToolUseBlock {
            id: name_call(*call, provider_id.as_deref(), calls).into(),
            name: (&**name).into(),
            input: arguments(Some(input), printer),
            ..ToolUseBlock::default()
        }
        .into(),
        (Block::Opaque(json), RecordForm::Provider) => wire::Block::Unknown(raw(json)),
        (Block::Redacted(_) | Block::Opaque(_), RecordForm::Strict)
        | (Block::Media { .. } | Block::ToolResult { .. }, _) => return None,
    })
}

/// The message around a block of a reply.
pub(super) fn assistant_message<'a>(
    id: &'a str,
    model: &'a str,
    block: Option<wire::Block<'a>>,
    usage: Usage<'a>,
    form: RecordForm,
) -> Box<AssistantMessage<'a>> {
    let calls = matches!(block, Some(wire::Block::ToolUse(_)));
    Box::new(AssistantMessage {
        id: id.into(),
        kind: Some("message".into()),
        role: Role::Assistant,
        model: model.into(),
        content: block.map(Kept::Known).into_iter().collect(),
        stop_reason: if calls && form == RecordForm::Strict {
            Maybe::Value("tool_use".into())
        } else {
            Maybe::Null
        },
        stop_sequence: Maybe::Null,
        usage: Some(Box::new(usage)),
        ..AssistantMessage::default()
    })
}

/// The usage of a message that nobody has reported yet.
pub(super) fn no_usage<'a>(form: RecordForm) -> Usage<'a> {
    let zero = || Some(Num::from(0u64));
    let mut usage = Usage {
        input_tokens: zero(),
        output_tokens: zero(),
        ..Usage::default()
    };
    if form == RecordForm::Provider {
        usage.cache_creation_input_tokens = zero();
        usage.cache_read_input_tokens = zero();
    }
    usage
}

/// Content of a user's message or of a tool's result, ready for a line.
#[derive(Debug)]
pub(super) enum Plain<'b> {
    /// A text alone, where the wire has it so.
    Text(&'b str),
    /// Blocks, each as JSON.
    Blocks(Vec<Vec<u8>>),
}

impl<'b> Plain<'b> {
    pub(super) fn new(content: &'b [Block], form: RecordForm) -> Self {
        match (content, form) {
            ([Block::Text(text)], RecordForm::Provider) => Plain::Text(text),
            (blocks, _) => Plain::Blocks(
                blocks
                    .iter()
                    .filter_map(|block| plain(block, form))
                    .collect(),
            ),
        }
    }

    fn content(&self) -> Content<'_> {
        match self {
            Plain::Text(text) => Content::Text((*text).into()),
            Plain::Blocks(blocks) => Content::Blocks(
                blocks
                    .iter()
                    .map(|block| Kept::Other(ours(block)))
                    .collect(),
            ),
        }
    }

    /// What a tool gave back.
    pub(super) fn tool_result<'a>(&'a self, id: &'a str, is_error: bool) -> wire::Block<'a> {
        ToolResultBlock {
            tool_use_id: id.into(),
            content: Some(self.content()),
            is_error: Some(is_error),
            ..ToolResultBlock::default()
        }
        .into()
    }
}

/// A block of a user's message, or of a tool's result, as JSON. The strict wire never carries bytes of media (WIRE-022).
fn plain(block: &Block, form: RecordForm) -> Option<Vec<u8>> {
    let mut json = Vec::new();
    match block {
        Block::Text(text) => text_block(text).put(&mut json),
        Block::Media { kind, source } => match source {
            Source::Stored(stored) if form == RecordForm::Strict => {
                wire::Block::Attachment(manifest(*kind, stored)).put(&mut json);
            }
            Source::Inline { .. } | Source::Url(_) if form == RecordForm::Provider => {
                let source = media_source(source);
                let source = Any(Some(ours(&source)));
                match kind {
                    MediaKind::Image => wire::Block::from(ImageBlock {
                        source,
                        ..ImageBlock::default()
                    }),
                    MediaKind::Document => wire::Block::from(DocumentBlock {
                        source,
                        ..DocumentBlock::default()
                    }),
                }
                .put(&mut json);
            }
            Source::Inline { .. } | Source::Url(_) | Source::Stored(_) => {
                text_block(omitted(*kind)).put(&mut json);
            }
        },
        Block::Thinking { .. }
        | Block::Redacted(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => return None,
    }
    Some(json)
}

fn text_block(text: &str) -> wire::Block<'_> {
    TextBlock {
        text: text.into(),
        ..TextBlock::default()
    }
    .into()
}

const fn omitted(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "[an image]",
        MediaKind::Document => "[a document]",
    }
}

/// JSON that this side has just written, to be kept.
pub(super) fn keep(json: &[u8]) -> RawJson {
    RawJson(core::str::from_utf8(json).unwrap_or("null").into())
}
