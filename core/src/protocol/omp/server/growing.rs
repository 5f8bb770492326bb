//! A reply while it streams.
//!
//! Every update repeats the whole message, twice. So the message is kept as the JSON that it is, escaped once, and a
//! snapshot is a copy of it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{self, write_u64};
use crate::vocab::MessageId;

/// The most bytes of a reply that snapshots repeat: 64 MiB. What comes later is in its delta and in the whole message
/// alone.
const MOST: usize = 64 * 1024 * 1024;

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Text,
    Thinking,
    Call,
    /// Nothing is told of it before it is whole.
    Hidden,
}

impl Head {
    /// The types of its updates.
    const fn words(self) -> Option<[&'static str; 3]> {
        match self {
            Head::Text => Some(["text_start", "text_delta", "text_end"]),
            Head::Thinking => Some(["thinking_start", "thinking_delta", "thinking_end"]),
            Head::Call => Some(["toolcall_start", "toolcall_delta", "toolcall_end"]),
            Head::Hidden => None,
        }
    }
}

#[derive(Debug)]
struct Part {
    head: Head,
    /// The block's JSON, as far as it goes.
    json: Vec<u8>,
    /// What closes it.
    close: &'static [u8],
    ended: bool,
}

/// A reply that grows.
#[derive(Debug)]
pub(super) struct Growing {
    pub(super) message: MessageId,
    /// Its number on the wire.
    pub(super) number: u64,
    /// When it began, in milliseconds since 1970.
    pub(super) at_ms: u64,
    /// When it began and when its first text came, on the monotone clock.
    pub(super) begun_us: u64,
    pub(super) first_us: Option<u64>,
    pub(super) response_id: Option<String>,
    parts: Vec<Part>,
    /// The JSON behind the content, from its `]` on.
    tail: Vec<u8>,
    bytes: usize,
    /// A delta, escaped.
    scratch: Vec<u8>,
}

/// The part of an update that is new.
pub(super) enum Step<'a> {
    Start,
    /// A piece of text; raw, not JSON.
    Delta(&'a str),
    /// The whole, as JSON: a string, or a call.
    End(&'a [u8]),
}

impl Growing {
    /// `tail` is the message's JSON behind its content.
    pub(super) fn new(
        message: MessageId,
        number: u64,
        at_ms: u64,
        now_us: u64,
        tail: Vec<u8>,
    ) -> Self {
        Growing {
            message,
            number,
            at_ms,
            begun_us: now_us,
            first_us: None,
            response_id: None,
            parts: Vec::new(),
            tail,
            bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Whether a block of this number may begin: blocks come in order.
    pub(super) fn begin(
        &mut self,
        block: u32,
        head: Head,
        json: Vec<u8>,
        close: &'static [u8],
    ) -> bool {
        if block as usize != self.parts.len() {
            return false;
        }
        self.bytes += json.len();
        self.parts.push(Part {
            head,
            json,
            close,
            ended: false,
        });
        true
    }

    /// What an open block is.
    pub(super) fn open_head(&self, block: u32) -> Option<Head> {
        let part = self.parts.get(block as usize)?;
        (!part.ended).then_some(part.head)
    }

    /// More text of an open block.
    pub(super) fn grow(&mut self, block: u32, text: &str) {
        self.scratch.clear();
        json::write_str(&mut self.scratch, text);
        if self.bytes + self.scratch.len() > MOST {
            return;
        }
        let inner = self.scratch.len().saturating_sub(1);
        if let Some(part) = self.parts.get_mut(block as usize)
            && let Some(escaped) = self.scratch.get(1..inner)
        {
            part.json.extend_from_slice(escaped);
            self.bytes += escaped.len();
        }
    }

    /// A block is whole.
    pub(super) fn end(&mut self, block: u32, json: &[u8]) {
        if let Some(part) = self.parts.get_mut(block as usize) {
            self.bytes = self.bytes - part.json.len().min(self.bytes) + json.len();
            part.json.clear();
            part.json.extend_from_slice(json);
            part.close = b"";
            part.ended = true;
        }
    }

    /// Appends the message as it is now.
    pub(super) fn snapshot(&self, out: &mut Vec<u8>) {
        self.with_tail(&self.tail, out);
    }

    /// Appends the message as it is now, with this behind its content.
    pub(super) fn with_tail(&self, tail: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":[");
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&part.json);
            out.extend_from_slice(part.close);
        }
        out.extend_from_slice(tail);
    }

    /// Appends an update: with two snapshots, or with none if the host asked for deltas. `false`: this block has none.
    pub(super) fn update(
        &self,
        block: u32,
        head: Head,
        step: &Step<'_>,
        deltas: bool,
        out: &mut Vec<u8>,
    ) {
        let Some([start, delta, end]) = head.words() else {
            return;
        };
        let word = match step {
            Step::Start => start,
            Step::Delta(_) => delta,
            Step::End(_) => end,
        };
        out.extend_from_slice(
            b"{\"type\":\"message_update\",\"assistantMessageEvent\":{\"type\":\"",
        );
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\",\"contentIndex\":");
        write_u64(out, block.into());
        match step {
            Step::Start => {}
            // Escaped when the block grew.
            Step::Delta(_) if !self.scratch.is_empty() => {
                out.extend_from_slice(b",\"delta\":");
                out.extend_from_slice(&self.scratch);
            }
            Step::Delta(text) => {
                out.extend_from_slice(b",\"delta\":");
                json::write_str(out, text);
            }
            Step::End(json) => {
                out.extend_from_slice(if head == Head::Call {
                    b",\"toolCall\":"
                } else {
                    b",\"content\":"
                });
                out.extend_from_slice(json);
            }
        }
        if deltas {
            out.extend_from_slice(b"},\"message\":{\"role\":\"assistant\"}");
        } else {
            out.extend_from_slice(b",\"partial\":");
            let from = out.len();
            self.snapshot(out);
            let to = out.len();
            out.extend_from_slice(b"},\"message\":");
            out.extend_from_within(from..to);
        }
        put_id(self.number, out);
        out.push(b'}');
    }

    /// The bytes that an update needs, about.
    pub(super) fn room(&self) -> usize {
        2 * (self.bytes + self.tail.len()) + 256
    }
}

/// Appends the id of a message.
pub(super) fn put_id(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"messageId\":\"msg-");
    write_u64(out, number);
    out.push(b'"');
}
