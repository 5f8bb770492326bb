//! Frames that are too long for a line.
//!
//! A line of an agent holds [`MAX_FRAME`] bytes, its newline included. What is longer is, in protocol 1, made smaller
//! ([`FrameWriter`]): strings, lists and objects are cut until the frame fits, or an error stands for it. In protocol 2
//! it goes out whole, in `rpc_chunk` lines that follow each other directly, and is put together again
//! ([`ChunkReader`]), up to [`MAX_REASSEMBLED`] bytes. Lines of a host are never cut.
//!
//! A connection begins with protocol 1 and changes once, right behind the answer to `negotiate_protocol`.

mod reader;
mod shrink;
mod writer;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::wire::{NegotiateProtocol, Num, Ready};
use super::{MAX_FRAME, MAX_REASSEMBLED, PROTOCOL_1, PROTOCOL_2};
use crate::base64;

pub use reader::{ChunkFault, ChunkReader};
pub use writer::FrameWriter;

/// The most bytes of a frame in one chunk.
pub const CHUNK: usize = 262_144;
/// The most chunks of a frame.
pub const MOST_CHUNKS: u64 = 256;

/// The error of a response that stands for one which is too large.
pub const RESPONSE_TOO_LARGE: &str = "RPC response exceeded the transport limit";

/// The first line of an agent that speaks both versions.
pub fn ready() -> Ready<'static> {
    Ready {
        protocol_version: Some(PROTOCOL_1),
        supported_protocol_versions: Some([PROTOCOL_1, PROTOCOL_2].into()),
        max_frame_bytes: Some(MAX_FRAME as u64),
        max_reassembled_frame_bytes: Some(MAX_REASSEMBLED as u64),
        ..Ready::default()
    }
}

/// Whether a host should ask this agent for protocol 2: it offers it, with the limits that this codec keeps.
pub fn offers_chunks(ready: &Ready<'_>) -> bool {
    let versions = ready
        .supported_protocol_versions
        .as_deref()
        .unwrap_or_default();
    versions.contains(&PROTOCOL_2)
        && ready.max_frame_bytes == Some(MAX_FRAME as u64)
        && ready.max_reassembled_frame_bytes == Some(MAX_REASSEMBLED as u64)
}

/// Judges a `negotiate_protocol`. Only the number 2 passes; there is no way back.
///
/// # Errors
/// The text of the failure.
pub fn negotiate(command: &NegotiateProtocol<'_>) -> Result<(), String> {
    let version = command.protocol_version;
    let number = version
        .get()
        .and_then(|value| value.decode::<Num<'_>>().ok());
    if number.and_then(|number| number.u64()) == Some(PROTOCOL_2) {
        Ok(())
    } else {
        Err(format!(
            "Unsupported RPC protocol version: {}",
            version.shown()
        ))
    }
}

/// A cursor of these bytes: base64 in the alphabet of URLs, without padding.
pub(super) fn cursor_encode(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    base64::encode(bytes, &mut out);
    let digits = out.iter().filter(|byte| **byte != b'=');
    digits
        .map(|byte| match byte {
            b'+' => '-',
            b'/' => '_',
            byte => char::from(*byte),
        })
        .collect()
}

/// The bytes of a cursor; `None` if it isn't one.
pub(super) fn cursor_decode(text: &str) -> Option<Vec<u8>> {
    let mut padded: String = text
        .chars()
        .map(|char| match char {
            '-' => '+',
            '_' => '/',
            // Of the other alphabet, or padding: not one of ours.
            '+' | '/' | '=' => ' ',
            char => char,
        })
        .collect();
    while !padded.len().is_multiple_of(4) {
        padded.push('=');
    }
    let mut out = Vec::new();
    base64::decode(&padded, &mut out)?;
    Some(out)
}
