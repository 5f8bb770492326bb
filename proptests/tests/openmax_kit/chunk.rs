//! Model chunks as owned values, so that a decoder and a session can take turns.

use turnwire::vocab::*;
pub use turnwire_proptests::world::Chunk;

/// Keeps a chunk.
pub fn own(chunk: &ModelChunk<'_>) -> Chunk {
    match chunk {
        ModelChunk::Begin { .. } => Chunk::Begin,
        ModelChunk::Text(text) => Chunk::Text((*text).into()),
        ModelChunk::Thinking(text) => Chunk::Thinking((*text).into()),
        ModelChunk::Signature(text) => Chunk::Signature((*text).into()),
        ModelChunk::Redacted(text) => Chunk::Redacted((*text).into()),
        ModelChunk::CallBegin { index, id, name } => Chunk::CallBegin {
            index: *index,
            id: id.map(str::to_owned),
            name: (*name).into(),
        },
        ModelChunk::CallArgs { index, text } => Chunk::CallArgs {
            index: *index,
            text: (*text).into(),
        },
        ModelChunk::CallEnd { index } => Chunk::CallEnd { index: *index },
        ModelChunk::Alive => Chunk::Alive,
        ModelChunk::Usage(usage) => Chunk::Usage(*usage),
        ModelChunk::Finish(word) => Chunk::Finish((*word).into()),
        ModelChunk::End => Chunk::End,
        ModelChunk::Failed {
            failure,
            reached,
            retry_after_us,
        } => Chunk::Failed {
            failure: failure.clone(),
            reached: *reached,
            retry_after_us: *retry_after_us,
        },
    }
}
