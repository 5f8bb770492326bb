//! Frames out: whole, made smaller, or in chunks.

use alloc::vec::Vec;

use super::shrink::{PASSES, cut, shrink};
use super::{CHUNK, RESPONSE_TOO_LARGE};
use crate::base64;
use crate::json::{self, Kind, Members, Object, Raw, write_u64};
use crate::protocol::omp::wire::AGENT_RULES;
use crate::protocol::omp::{MAX_FRAME, MAX_REASSEMBLED};

/// The most messages of a run that are remembered as delivered.
const MOST_DELIVERED: usize = 65_536;

/// The most of an id, a command or a type that an overflow repeats, in units of UTF-16.
const SHOWN: usize = 1024;

/// Writes the frames of one agent, in order.
///
/// Whatever it is given, it appends lines of at most [`MAX_FRAME`] bytes. It keeps a fingerprint of each message that
/// went out in a `message_end` of the open run, because an `agent_end` that is too long leaves those out.
#[derive(Debug, Default)]
pub struct FrameWriter {
    chunks: bool,
    /// Frames that were cut in chunks.
    cut: u64,
    delivered: Vec<u128>,
    members: Members,
}

impl FrameWriter {
    /// In protocol 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on in protocol 2; to be called once the answer to the negotiation is written.
    pub fn use_chunks(&mut self) {
        self.chunks = true;
    }

    /// Whether this is protocol 2.
    pub fn uses_chunks(&self) -> bool {
        self.chunks
    }

    /// Appends the frame as one line or more, each with its newline. `frame` is what an encoder of
    /// [`wire`](crate::protocol::omp::wire) wrote: one JSON object on one line, whose `type` comes first if it is an
    /// event.
    pub fn write(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        if frame.starts_with(b"{\"type\":\"agent_start\"") {
            self.delivered.clear();
        }
        if fits(frame) {
            line(frame, out);
            self.note(frame);
            return;
        }
        let start = out.len();
        let mut members = core::mem::take(&mut self.members);
        match json::scan(frame, &AGENT_RULES, &mut members) {
            Ok(object) => self.long(frame, &object, out),
            // Not of our encoders.
            Err(_) => overflow(None, "", out),
        }
        self.members = members;
        if !self.chunks {
            // What counts as delivered is what was sent.
            let sent = out
                .get(start..out.len().saturating_sub(1))
                .unwrap_or_default();
            self.note(sent);
        }
    }

    /// Makes one line or more of the frame that ends `out` and begins at `start`, as [`write`](Self::write) does. One
    /// that fits is copied nowhere.
    pub fn finish(&mut self, out: &mut Vec<u8>, start: usize) {
        let frame = out.get(start..).unwrap_or_default();
        if !fits(frame) {
            let frame = out.split_off(start);
            return self.write(&frame, out);
        }
        if frame.starts_with(b"{\"type\":\"agent_start\"") {
            self.delivered.clear();
        }
        self.note(frame);
        out.push(b'\n');
    }

    /// Remembers a message that was delivered whole.
    fn note(&mut self, frame: &[u8]) {
        if !frame.starts_with(b"{\"type\":\"message_end\"")
            || self.delivered.len() >= MOST_DELIVERED
        {
            return;
        }
        if let Ok(object) = json::scan(frame, &AGENT_RULES, &mut self.members)
            && let Some(message) = object.get("message")
        {
            self.delivered
                .push(fingerprint(message.as_str().as_bytes()));
        }
    }

    /// A frame that doesn't fit on a line.
    fn long(&mut self, frame: &[u8], object: &Object<'_, '_>, out: &mut Vec<u8>) {
        let kind = object.get("type");
        let name = kind.and_then(Raw::string);
        let name = name.as_deref();
        if !self.chunks && name == Some("response") {
            return overflow(Some(object), "response", out);
        }
        let compacted = (name == Some("agent_end"))
            .then(|| self.compacted(object))
            .flatten();
        let frame = compacted.as_deref().unwrap_or(frame);
        if fits(frame) {
            return line(frame, out);
        }
        if self.chunks {
            if frame.len() > MAX_REASSEMBLED {
                return overflow(Some(object), name.unwrap_or_default(), out);
            }
            if name == Some("message_end")
                && self.delivered.len() < MOST_DELIVERED
                && let Some(message) = object.get("message")
            {
                self.delivered
                    .push(fingerprint(message.as_str().as_bytes()));
            }
            return self.chunked(frame, out);
        }
        for caps in PASSES {
            let start = out.len();
            shrink(frame, caps, out);
            if out.len() - start < MAX_FRAME {
                out.push(b'\n');
                return;
            }
            out.truncate(start);
        }
        overflow(Some(object), name.unwrap_or_default(), out);
    }

    /// An `agent_end` without the messages that were delivered, and with their number.
    fn compacted(&self, object: &Object<'_, '_>) -> Option<Vec<u8>> {
        let messages: Vec<Raw<'_>> = object.get("messages")?.decode().ok()?;
        let same = messages
            .iter()
            .zip(&self.delivered)
            .take_while(|(message, delivered)| {
                fingerprint(message.as_str().as_bytes()) == **delivered
            })
            .count();
        let mut out = Vec::new();
        out.push(b'{');
        for (name, value) in object.iter().filter(|(name, _)| *name != "messageCount") {
            if out.len() > 1 {
                out.push(b',');
            }
            json::write_str(&mut out, name);
            out.push(b':');
            if name != "messages" {
                out.extend_from_slice(value.as_str().as_bytes());
                continue;
            }
            out.push(b'[');
            for (index, message) in messages.iter().skip(same).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(message.as_str().as_bytes());
            }
            out.push(b']');
        }
        out.extend_from_slice(b",\"messageCount\":");
        write_u64(&mut out, messages.len() as u64);
        out.push(b'}');
        Some(out)
    }

    fn chunked(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        self.cut += 1;
        let count = frame.len().div_ceil(CHUNK);
        for (index, piece) in frame.chunks(CHUNK).enumerate() {
            out.extend_from_slice(b"{\"type\":\"rpc_chunk\",\"chunkId\":\"rpc-");
            write_u64(out, self.cut);
            out.extend_from_slice(b"\",\"index\":");
            write_u64(out, index as u64);
            out.extend_from_slice(b",\"count\":");
            write_u64(out, count as u64);
            out.extend_from_slice(b",\"byteLength\":");
            write_u64(out, frame.len() as u64);
            out.extend_from_slice(b",\"data\":\"");
            base64::encode(piece, out);
            out.extend_from_slice(b"\"}\n");
        }
    }
}

fn fits(frame: &[u8]) -> bool {
    frame.len() < MAX_FRAME
}

fn line(frame: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(frame);
    out.push(b'\n');
}

/// What stands for a frame that can't be made to fit.
fn overflow(object: Option<&Object<'_, '_>>, name: &str, out: &mut Vec<u8>) {
    let string = |member: &str| {
        object
            .and_then(|object| object.get(member))
            .filter(|value| value.kind() == Kind::String)
    };
    let member = |before: &[u8], value: Raw<'_>, out: &mut Vec<u8>| {
        out.extend_from_slice(before);
        cut(value.as_str().as_bytes(), SHOWN, out);
    };
    match name {
        "response" => {
            out.push(b'{');
            if let Some(id) = string("id") {
                member(b"\"id\":", id, out);
                out.push(b',');
            }
            out.extend_from_slice(b"\"type\":\"response\"");
            match string("command") {
                Some(command) => member(b",\"command\":", command, out),
                None => out.extend_from_slice(b",\"command\":\"unknown\""),
            }
            out.extend_from_slice(b",\"success\":false,\"error\":\"");
            out.extend_from_slice(RESPONSE_TOO_LARGE.as_bytes());
            out.extend_from_slice(b"\"}\n");
        }
        "agent_end" => {
            let messages = object.and_then(|object| object.get("messages"));
            let messages = messages.and_then(|messages| messages.decode::<Vec<Raw<'_>>>().ok());
            out.extend_from_slice(b"{\"type\":\"agent_end\",\"messages\":[],\"messageCount\":");
            write_u64(out, messages.map_or(0, |messages| messages.len() as u64));
            out.extend_from_slice(b"}\n");
        }
        _ => {
            out.extend_from_slice(b"{\"type\":\"rpc_frame_error\"");
            if let Some(kind) = string("type") {
                member(b",\"originalType\":", kind, out);
            }
            out.extend_from_slice(b",\"error\":\"RPC frame exceeded the transport limit\"}\n");
        }
    }
}

/// FNV-1a of 128 bits: messages are compared with what was delivered without being kept.
fn fingerprint(bytes: &[u8]) -> u128 {
    bytes
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}
