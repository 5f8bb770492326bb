//! The usual way: an async event stream, owned chunks, owned tagged events.

use std::convert::Infallible;

use eventsource_stream::Eventsource as _;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[allow(dead_code)]
struct Chunk {
    id: String,
    model: String,
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
#[allow(dead_code)]
struct Choice {
    index: u32,
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    session_id: &'a str,
    #[serde(flatten)]
    event: Event,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(dead_code)]
enum Event {
    Token { text: String },
    Thinking { text: String },
    MessageDone { text: String },
}

fn each(bytes: &[u8], chunk: usize, mut give: impl FnMut(String)) {
    let pieces = bytes
        .chunks(chunk)
        .map(|piece| Ok::<_, Infallible>(piece.to_vec()));
    let events = futures::stream::iter(pieces).eventsource();
    futures::executor::block_on(events.for_each(|event| {
        if let Ok(event) = event
            && let Ok(chunk) = serde_json::from_str::<Chunk>(&event.data)
        {
            for choice in chunk.choices {
                if let Some(text) = choice.delta.content {
                    give(text);
                }
            }
        }
        futures::future::ready(())
    }));
}

/// Bytes to texts.
pub fn decode(bytes: &[u8], chunk: usize) -> usize {
    let mut sum = 0;
    each(bytes, chunk, |text| sum += text.len());
    sum
}

/// Bytes to lines.
pub fn feed(bytes: &[u8], chunk: usize) -> usize {
    let mut written = 0;
    let mut message = String::new();
    each(bytes, chunk, |text| {
        message.push_str(&text);
        let line = Line {
            session_id: "0b9f1c52-6a3e-4d8f-9c71-2e5a7b8c9d10",
            event: Event::Token { text },
        };
        if let Ok(line) = serde_json::to_string(&line) {
            written += line.len() + 1;
        }
    });
    std::hint::black_box(message);
    written
}
