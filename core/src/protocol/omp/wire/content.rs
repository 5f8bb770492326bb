//! Content blocks, usage and models.

use alloc::vec::Vec;

use serde::{Deserialize, Deserializer};

use super::Any;
use super::member::{Kept, Maybe, Nullable, Num, TextOr, objects, required, tagged, words};
use crate::json::{Lazy, Raw, Str};
use crate::protocol::spec::FieldKind;
use crate::protocol::wire::Hole;

words! {
    /// How a reply ended. While it streams it reads `stop`.
    StopReason {
        Stop "stop",
        Length "length",
        ToolUse "toolUse",
        Error "error",
        Aborted "aborted",
    }
}

objects! { without ["type"];
    /// Text.
    TextBlock {
        text "text": Lazy<'a>,
        text_signature "textSignature": Option<Str<'a>>,
    }
    /// Thinking.
    ThinkingBlock {
        thinking "thinking": Lazy<'a>,
        thinking_signature "thinkingSignature": Option<Str<'a>>,
        item_id "itemId": Option<Str<'a>>,
    }
    /// Thinking that only the provider can read.
    RedactedThinking {
        data "data": Lazy<'a>,
    }
    /// A call that the model asks for. While it streams it also has `partialArgs` and `streamIndex`.
    ToolCallBlock {
        id "id": Str<'a>,
        name "name": Str<'a>,
        arguments "arguments": Any<'a>,
        intent "intent": Option<Str<'a>>,
        thought_signature "thoughtSignature": Option<Str<'a>>,
        raw_block "rawBlock": Option<Lazy<'a>>,
        custom_wire_name "customWireName": Option<Str<'a>>,
        provider_metadata "providerMetadata": Any<'a>,
    }
    /// Another model of the provider took over here.
    FallbackBlock {
        from "from": Any<'a>,
        to "to": Any<'a>,
    }
    /// A tool that ran at the provider.
    ServerToolBlock {
        block "block": Any<'a>,
    }
    /// A picture.
    ImageBlock {
        /// Base64.
        data "data": Lazy<'a>,
        mime_type "mimeType": Str<'a>,
        /// `auto`, `low`, `high` or `original`.
        detail "detail": Option<Str<'a>>,
        url "url": Option<Str<'a>>,
        provider_file "providerFile": Any<'a>,
    }
}

tagged! {
    /// A content block.
    Block by "type" {
        Text(TextBlock) = "text",
        Thinking(ThinkingBlock) = "thinking",
        RedactedThinking(RedactedThinking) = "redactedThinking",
        Image(ImageBlock) = "image",
        ToolCall(ToolCallBlock) = "toolCall",
        Fallback(FallbackBlock) = "fallback",
        ServerTool(ServerToolBlock) = "anthropicServerTool",
    }
}

/// A picture that a host sends: an image block, whose tag may be missing and is always written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image<'a>(pub ImageBlock<'a>);

impl<'a> Deserialize<'a> for Image<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        match value.get_last("type") {
            Some(tag) if tag.string().as_deref() != Some("image") => {
                Err(serde::de::Error::custom("not an image"))
            }
            Some(_) | None => value.decode().map(Image).map_err(serde::de::Error::custom),
        }
    }
}

impl Hole for Image<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        Block::from(self.0.clone()).put(out);
    }
}

/// What a message says: a plain text, or blocks.
pub type Content<'a> = TextOr<'a, Block<'a>>;

required! {
    Content<'a> = FieldKind::Any,
    Image<'a> = FieldKind::Object,
}

objects! { without [];
    /// What a request used.
    Usage {
        input "input": Num<'a>,
        output "output": Num<'a>,
        cache_read "cacheRead": Num<'a>,
        cache_write "cacheWrite": Num<'a>,
        total_tokens "totalTokens": Num<'a>,
        cost "cost": Option<Cost<'a>>,
        context_tokens "contextTokens": Option<Num<'a>>,
        premium_requests "premiumRequests": Option<Num<'a>>,
        reasoning_tokens "reasoningTokens": Option<Num<'a>>,
        orchestration "orchestration": Any<'a>,
        cttl "cttl": Any<'a>,
        server "server": Any<'a>,
        credits "credits": Any<'a>,
        cost_by_currency "costByCurrency": Any<'a>,
    }
    /// US dollars.
    Cost {
        input "input": Num<'a>,
        output "output": Num<'a>,
        cache_read "cacheRead": Num<'a>,
        cache_write "cacheWrite": Num<'a>,
        total "total": Num<'a>,
    }
    /// A model. `provider` and `id` name it; it has more members than these.
    Model {
        id "id": Str<'a>,
        name "name": Option<Str<'a>>,
        api "api": Option<Str<'a>>,
        provider "provider": Str<'a>,
        base_url "baseUrl": Option<Str<'a>>,
        reasoning "reasoning": Option<bool>,
        thinking "thinking": Any<'a>,
        input "input": Option<Vec<Str<'a>>>,
        cost "cost": Option<ModelCost<'a>>,
        /// `null`: the provider doesn't say.
        context_window "contextWindow": Maybe<Num<'a>>,
        /// `null`: the provider doesn't say.
        max_tokens "maxTokens": Maybe<Num<'a>>,
    }
    /// US dollars for a million tokens.
    ModelCost {
        input "input": Num<'a>,
        output "output": Num<'a>,
        cache_read "cacheRead": Num<'a>,
        cache_write "cacheWrite": Num<'a>,
    }
    /// How full the context is.
    ContextUsage {
        tokens "tokens": Nullable<Num<'a>>,
        context_window "contextWindow": Num<'a>,
        percent "percent": Nullable<Num<'a>>,
    }
    /// What a tool gave back.
    ToolOutput {
        content "content": Vec<Block<'a>>,
        details "details": Any<'a>,
        is_error "isError": Option<bool>,
        provider_metadata "providerMetadata": Any<'a>,
        useless "useless": Option<bool>,
    }
}

/// A list of models.
pub type Models<'a> = Vec<Kept<'a, Model<'a>>>;
