//! Messages and their content: what a person, the model and the tools say.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer};

use super::attachment::Manifest;
use crate::json::{Kind, Lazy, Raw, Str};
use crate::protocol::member::{
    Any, Kept, Maybe, Member, Nullable, Num, TextOr, objects, required, tagged, words,
};
use crate::protocol::spec::FieldKind;
use crate::protocol::wire::Hole;

words! {
    /// Whose message it is.
    Role {
        User "user",
        Assistant "assistant",
    }
}

objects! { without ["type"];
    /// Text.
    TextBlock {
        text "text": Lazy<'a>,
        citations "citations": Any<'a>,
    }
    /// Text, in the other spelling that hosts may use; a replay says `text`.
    InputTextBlock {
        text "text": Lazy<'a>,
    }
    /// Thinking. A host of the claude wire wants both members.
    ThinkingBlock {
        thinking "thinking": Lazy<'a>,
        signature "signature": Option<Lazy<'a>>,
    }
    /// Thinking that only the provider can read.
    RedactedThinkingBlock {
        data "data": Lazy<'a>,
    }
    /// A call that the model asks for.
    ToolUseBlock {
        id "id": Str<'a>,
        name "name": Str<'a>,
        /// An object; `{}` where the model wrote none that can be read.
        input "input": Raw<'a>,
    }
    /// What a tool gave back.
    ToolResultBlock {
        tool_use_id "tool_use_id": Str<'a>,
        /// A text, or blocks.
        content "content": Option<Content<'a>>,
        is_error "is_error": Option<bool>,
    }
    /// A picture. claude only.
    ImageBlock {
        source "source": Any<'a>,
    }
    /// A document. claude only.
    DocumentBlock {
        source "source": Any<'a>,
        title "title": Maybe<Str<'a>>,
        context "context": Maybe<Lazy<'a>>,
    }
}

tagged! {
    /// A content block.
    Block by "type" {
        Text(TextBlock) = "text",
        InputText(InputTextBlock) = "input_text",
        Thinking(ThinkingBlock) = "thinking",
        RedactedThinking(RedactedThinkingBlock) = "redacted_thinking",
        ToolUse(ToolUseBlock) = "tool_use",
        ToolResult(ToolResultBlock) = "tool_result",
        Image(ImageBlock) = "image",
        Document(DocumentBlock) = "document",
        Attachment(Manifest) = "attachment_ref",
    }
}

impl<'a> Block<'a> {
    /// The text of a text block, in either spelling.
    pub fn text(&self) -> Option<&Lazy<'a>> {
        match self {
            Block::Text(block) => Some(&block.text),
            Block::InputText(block) => Some(&block.text),
            Block::Thinking(_)
            | Block::RedactedThinking(_)
            | Block::ToolUse(_)
            | Block::ToolResult(_)
            | Block::Image(_)
            | Block::Document(_)
            | Block::Attachment(_)
            | Block::Unknown(_) => None,
        }
    }
}

/// A plain text, or blocks. A block that isn't what its type says is kept as it came.
pub type Content<'a> = TextOr<'a, Kept<'a, Block<'a>>>;

objects! { without [];
    /// A message of a user: a person's, or what tools gave back.
    UserMessage {
        /// `user`, where it is there.
        role "role": Option<Role<'a>>,
        /// 1 where blocks refer to attachments.
        content_version "content_version": Option<Num<'a>>,
        content "content": Content<'a>,
    }
    /// A message of the model, or one block of it: the `assistant` records of one message share its `id`.
    AssistantMessage {
        id "id": Str<'a>,
        /// `message`
        kind "type": Option<Str<'a>>,
        role "role": Role<'a>,
        /// `<synthetic>` where no model wrote it.
        model "model": Str<'a>,
        content "content": Vec<Kept<'a, Block<'a>>>,
        stop_reason "stop_reason": Maybe<Str<'a>>,
        stop_sequence "stop_sequence": Maybe<Str<'a>>,
        stop_details "stop_details": Any<'a>,
        /// Zeros in the strict wire.
        usage "usage": Option<Box<Usage<'a>>>,
        phase "phase": Option<Str<'a>>,
        container "container": Any<'a>,
        diagnostics "diagnostics": Any<'a>,
        context_management "context_management": Any<'a>,
    }
    /// What requests used. The strict wire writes the first six, claude has more.
    Usage {
        input_tokens "input_tokens": Option<Num<'a>>,
        cache_creation_input_tokens "cache_creation_input_tokens": Option<Num<'a>>,
        cache_read_input_tokens "cache_read_input_tokens": Option<Num<'a>>,
        output_tokens "output_tokens": Option<Num<'a>>,
        reasoning_output_tokens "reasoning_output_tokens": Option<Num<'a>>,
        total_tokens "total_tokens": Option<Num<'a>>,
        output_tokens_details "output_tokens_details": Any<'a>,
        server_tool_use "server_tool_use": Any<'a>,
        service_tier "service_tier": Any<'a>,
        cache_creation "cache_creation": Any<'a>,
        inference_geo "inference_geo": Any<'a>,
        iterations "iterations": Any<'a>,
        speed "speed": Any<'a>,
        fallback_credit "fallback_credit": Any<'a>,
    }
    /// What one model used over the session.
    ModelUsage {
        input_tokens "inputTokens": Num<'a>,
        output_tokens "outputTokens": Num<'a>,
        cache_read_input_tokens "cacheReadInputTokens": Num<'a>,
        cache_creation_input_tokens "cacheCreationInputTokens": Num<'a>,
        web_search_requests "webSearchRequests": Num<'a>,
        /// `null`: nobody knows the price. 0 only where it is known to be 0.
        cost_usd "costUSD": Nullable<Num<'a>>,
        context_window "contextWindow": Option<Num<'a>>,
        max_output_tokens "maxOutputTokens": Option<Num<'a>>,
        thinking_tokens "thinkingTokens": Option<Num<'a>>,
        canonical_model "canonicalModel": Option<Str<'a>>,
        provider "provider": Option<Str<'a>>,
        cost_basis "costBasis": Option<Str<'a>>,
    }
    /// A call that was denied.
    Denial {
        tool_name "tool_name": Str<'a>,
        tool_use_id "tool_use_id": Str<'a>,
        /// The input that counted: an object.
        tool_input "tool_input": Raw<'a>,
    }
}

/// The message of a `user` record: an object, or a bare text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A text, which is the whole message.
    Text(Lazy<'a>),
    /// A message.
    Message(UserMessage<'a>),
}

impl Default for Said<'_> {
    fn default() -> Self {
        Said::Text(Lazy::default())
    }
}

impl<'a> Deserialize<'a> for Said<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        if value.kind() == Kind::String {
            value.decode().map(Said::Text)
        } else {
            value.decode().map(Said::Message)
        }
        .map_err(serde::de::Error::custom)
    }
}

impl Hole for Said<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Said::Text(text) => text.put(out),
            Said::Message(message) => message.put(out),
        }
    }
}

impl<'a> From<UserMessage<'a>> for Said<'a> {
    fn from(message: UserMessage<'a>) -> Self {
        Said::Message(message)
    }
}

required! {
    Content<'a> = FieldKind::Any,
    Said<'a> = <UserMessage<'a> as Member<'a>>::KIND,
}
