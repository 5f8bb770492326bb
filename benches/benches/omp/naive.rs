//! The usual way: the message as a value, written whole by serde_json for each update, in both places.

use std::hint::black_box;

use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    r#type: &'static str,
    assistant_message_event: Event<'a>,
    message: &'a Message,
    message_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    r#type: &'static str,
    content_index: u32,
    delta: &'a str,
    partial: &'a Message,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    role: &'static str,
    content: Vec<Block>,
    provider: &'static str,
    model: &'static str,
    usage: Usage,
    stop_reason: &'static str,
    timestamp: u64,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Block {
    Text { text: String },
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    total_tokens: u64,
}

/// The bytes that all pieces gave.
pub fn feed(pieces: &[&str]) -> u64 {
    let mut message = Message {
        role: "assistant",
        content: vec![Block::Text {
            text: String::new(),
        }],
        provider: "unknown",
        model: "m-1",
        usage: Usage::default(),
        stop_reason: "stop",
        timestamp: 0,
    };
    let mut line = Vec::new();
    let mut sum = 0;
    for piece in pieces {
        for block in &mut message.content {
            let Block::Text { text } = block;
            text.push_str(piece);
        }
        let update = Update {
            r#type: "message_update",
            assistant_message_event: Event {
                r#type: "text_delta",
                content_index: 0,
                delta: piece,
                partial: &message,
            },
            message: &message,
            message_id: "msg-1",
        };
        line.clear();
        if serde_json::to_writer(&mut line, &update).is_ok() {
            line.push(b'\n');
        }
        sum += black_box(&line).len() as u64;
    }
    sum
}
