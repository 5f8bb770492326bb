//! Frames in: chunks put together.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{CHUNK, MOST_CHUNKS};
use crate::base64;
use crate::json::Raw;
use crate::protocol::omp::wire::{Any, Chunk, Num};
use crate::protocol::omp::{MAX_FRAME, MAX_REASSEMBLED};

/// The most units of UTF-16 in a `chunkId`.
const ID: usize = 128;

/// Why chunks aren't a frame. Each is the end of the connection for the readers that come with the real program: what
/// was cut can't be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkFault {
    /// A chunk in protocol 1.
    NotNegotiated,
    /// Another line stands between the chunks of a frame.
    Interrupted,
    /// An id, index, count or length that can't be.
    Metadata,
    /// Data that isn't canonical base64.
    Data,
    /// More data than a chunk may have.
    DataTooLong,
    /// The first chunk of a frame isn't the one of index 0.
    NotFirst,
    /// A chunk of another frame, or out of order.
    Mismatch,
    /// More bytes than were declared.
    TooLong,
    /// Fewer bytes than were declared.
    TooShort,
}

impl ChunkFault {
    /// In the words of the real program.
    pub const fn text(self) -> &'static str {
        match self {
            ChunkFault::NotNegotiated => "rpc chunk before negotiation",
            ChunkFault::Interrupted => "rpc chunk sequence interrupted",
            ChunkFault::Metadata => "invalid rpc chunk metadata",
            ChunkFault::Data => "invalid rpc chunk data",
            ChunkFault::DataTooLong => "rpc chunk payload exceeds the transport limit",
            ChunkFault::NotFirst => "rpc chunk sequence must start at index 0",
            ChunkFault::Mismatch => "rpc chunk sequence mismatch",
            ChunkFault::TooLong => "rpc chunk sequence exceeds declared length",
            ChunkFault::TooShort => "rpc chunk sequence length mismatch",
        }
    }
}

impl fmt::Display for ChunkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for ChunkFault {}

/// Puts the chunks of one agent together. Holds one frame at most, and no more of it than has come; nothing between
/// frames.
#[derive(Debug, Default)]
pub struct ChunkReader {
    enabled: bool,
    open: Option<Open>,
}

/// A frame that isn't whole yet.
#[derive(Debug)]
struct Open {
    id: String,
    count: u64,
    length: usize,
    /// The index that comes next.
    next: u64,
    bytes: Vec<u8>,
}

impl ChunkReader {
    /// In protocol 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on in protocol 2.
    pub fn use_chunks(&mut self) {
        self.enabled = true;
    }

    /// Whether this is protocol 2.
    pub fn uses_chunks(&self) -> bool {
        self.enabled
    }

    /// Whether a frame has begun and isn't whole.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Takes note of a line that isn't a chunk.
    ///
    /// # Errors
    /// [`ChunkFault::Interrupted`]; the frame that had begun is dropped.
    pub fn other_line(&mut self) -> Result<(), ChunkFault> {
        match self.open.take() {
            Some(_) => Err(ChunkFault::Interrupted),
            None => Ok(()),
        }
    }

    /// Takes a chunk. Gives the frame that it completes: bytes that are read like a line
    /// ([`AgentLine::decode`](crate::protocol::omp::wire::AgentLine::decode)). A frame whose own type is `rpc_chunk` is
    /// a frame, and not a chunk again.
    ///
    /// # Errors
    /// [`ChunkFault`]; the frame that had begun is dropped.
    pub fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<Option<Vec<u8>>, ChunkFault> {
        let open = self.open.take();
        if !self.enabled {
            return Err(ChunkFault::NotNegotiated);
        }
        let id = chunk
            .chunk_id
            .string()
            .filter(|id| (1..=ID).contains(&id.encode_utf16().count()));
        let id = id.ok_or(ChunkFault::Metadata)?;
        let index = whole(chunk.index).ok_or(ChunkFault::Metadata)?;
        let count = whole(chunk.count).filter(|count| (2..=MOST_CHUNKS).contains(count));
        let count = count
            .filter(|&count| index < count)
            .ok_or(ChunkFault::Metadata)?;
        let length = whole(chunk.byte_length).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| (MAX_FRAME..=MAX_REASSEMBLED).contains(length));
        let length = length.ok_or(ChunkFault::Metadata)?;
        let data = chunk.data.string().ok_or(ChunkFault::Data)?;
        if data.len() > CHUNK.div_ceil(3) * 4 {
            return Err(ChunkFault::DataTooLong);
        }
        let mut open = match open {
            None if index > 0 => return Err(ChunkFault::NotFirst),
            None => Open {
                id: id.into_owned(),
                count,
                length,
                next: 0,
                bytes: Vec::new(),
            },
            Some(open)
                if open.id != id
                    || open.count != count
                    || open.length != length
                    || open.next != index =>
            {
                // A chunk whose data is wrong is that first.
                base64::decode(&data, &mut Vec::new()).ok_or(ChunkFault::Data)?;
                return Err(ChunkFault::Mismatch);
            }
            Some(open) => open,
        };
        if base64::decoded_len(&data) > CHUNK {
            return Err(ChunkFault::DataTooLong);
        }
        if open.bytes.len() + base64::decoded_len(&data) > length {
            base64::decode(&data, &mut Vec::new()).ok_or(ChunkFault::Data)?;
            return Err(ChunkFault::TooLong);
        }
        base64::decode(&data, &mut open.bytes).ok_or(ChunkFault::Data)?;
        open.next += 1;
        if open.next < open.count {
            self.open = Some(open);
            return Ok(None);
        }
        if open.bytes.len() != length {
            return Err(ChunkFault::TooShort);
        }
        if open.bytes.starts_with(b"\xef\xbb\xbf") {
            open.bytes.drain(..3);
        }
        Ok(Some(open.bytes))
    }
}

/// The whole number that it is.
fn whole(value: Any<'_>) -> Option<u64> {
    value.get().map(Raw::decode::<Num<'_>>)?.ok()?.u64()
}
