//! Bodies that real providers send, in their own words.

use serde_json::{Value, json};

use super::provider::Reply;

/// One server-sent event without a name.
pub fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// OpenAI's chat completions.
pub mod openai {
    use super::*;

    pub const DONE: &str = "data: [DONE]\n\n";

    fn chunk(delta: &Value, finish: Option<&str>) -> String {
        event(&json!({
            "id": "cc-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m-1",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        }))
    }

    pub fn text(text: &str) -> String {
        chunk(&json!({ "content": text }), None)
    }

    pub fn thinking(text: &str) -> String {
        chunk(&json!({ "reasoning_content": text }), None)
    }

    /// A call, whole in one piece.
    pub fn call(index: usize, id: &str, name: &str, arguments: &Value) -> String {
        call_text(index, id, name, &arguments.to_string())
    }

    /// A call whose arguments may be anything.
    pub fn call_text(index: usize, id: &str, name: &str, arguments: &str) -> String {
        let function = json!({ "name": name, "arguments": arguments });
        chunk(
            &json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }),
            None,
        )
    }

    pub fn finish(reason: &str) -> String {
        chunk(&json!({}), Some(reason))
    }

    pub fn usage(prompt: u64, completion: u64, cached: u64) -> String {
        event(&json!({
            "id": "cc-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m-1", "choices": [],
            "usage": {
                "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
                "prompt_tokens_details": { "cached_tokens": cached },
            },
        }))
    }

    /// A whole reply of text.
    pub fn says(words: &str) -> Reply {
        Reply::stream()
            .bytes(text(words))
            .bytes(finish("stop"))
            .bytes(DONE)
    }

    /// A whole reply of calls: id, name, arguments.
    pub fn calls(calls: &[(&str, &str, Value)]) -> Reply {
        let mut reply = Reply::stream();
        for (index, (id, name, arguments)) in calls.iter().enumerate() {
            reply = reply.bytes(call(index, id, name, arguments));
        }
        reply.bytes(finish("tool_calls")).bytes(DONE)
    }
}

/// Anthropic's messages.
pub mod anthropic {
    use super::*;

    fn named(data: &Value) -> String {
        let name = data["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {data}\n\n")
    }

    pub fn start() -> String {
        named(&json!({ "type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 1 },
        }}))
    }

    pub fn ping() -> String {
        named(&json!({ "type": "ping" }))
    }

    /// A whole block: what it begins with, and its one delta.
    pub fn block(index: usize, block: &Value, delta: &Value) -> String {
        named(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
            + &named(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
            + &named(&json!({ "type": "content_block_stop", "index": index }))
    }

    pub fn text(index: usize, text: &str) -> String {
        block(
            index,
            &json!({ "type": "text", "text": "" }),
            &json!({ "type": "text_delta", "text": text }),
        )
    }

    pub fn thinking(index: usize, text: &str) -> String {
        let begin = json!({ "type": "thinking", "thinking": "", "signature": "" });
        named(&json!({ "type": "content_block_start", "index": index, "content_block": begin }))
            + &named(&json!({ "type": "content_block_delta", "index": index,
                              "delta": { "type": "thinking_delta", "thinking": text } }))
            + &named(&json!({ "type": "content_block_delta", "index": index,
                              "delta": { "type": "signature_delta", "signature": "c2ln" } }))
            + &named(&json!({ "type": "content_block_stop", "index": index }))
    }

    pub fn call(index: usize, id: &str, name: &str, input: &Value) -> String {
        let begin = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        block(
            index,
            &begin,
            &json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
        )
    }

    pub fn end(reason: &str) -> String {
        named(
            &json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
                       "usage": { "output_tokens": 5 } }),
        ) + &named(&json!({ "type": "message_stop" }))
    }

    pub fn error(kind: &str, message: &str) -> String {
        named(&json!({ "type": "error", "error": { "type": kind, "message": message } }))
    }

    /// A whole reply of these events.
    pub fn reply(pieces: &[String]) -> Reply {
        pieces.iter().fold(Reply::stream(), Reply::bytes)
    }
}
