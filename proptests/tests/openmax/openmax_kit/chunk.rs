//! Model chunks as owned values, so that a decoder and a session can take turns.

use turnwire::vocab::*;
pub use turnwire_proptests::world::Chunk;

/// Keeps a chunk.
pub fn own(chunk: &ModelChunk<'_>) -> Chunk {
    Chunk::from(chunk)
}
