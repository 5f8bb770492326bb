//! A reply as it is streamed: blocks of text and thinking, made whole from pieces.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::Protocol;
use super::super::heard::message;
use super::ClientOutbox;
use crate::vocab::*;

/// What a block takes beside its text.
const BLOCK_BYTES: usize = 64;

/// A reply of the outermost agent's, on a wire that tells no blocks: they are told apart by what kind of text they are.
#[derive(Debug)]
pub(in crate::protocol) struct Streamed {
    id: MessageId,
    /// Ended blocks.
    blocks: Vec<Arc<Block>>,
    block: Option<(Kind, String)>,
    /// The number of the next block.
    next: u32,
    /// Bytes kept, a block itself counts too.
    bytes: usize,
    /// More came than is kept.
    over: bool,
}

impl Streamed {
    /// A reply begins.
    pub(in crate::protocol) fn begin<P: Protocol>(
        request: RequestId,
        out: &mut ClientOutbox<P>,
    ) -> Self {
        let id = out.ids.message();
        out.infer(What::MessageStarted {
            message: id,
            request: Some(request),
            provider_id: None,
            model: None,
            usage: None,
        });
        Streamed {
            id,
            blocks: Vec::new(),
            block: None,
            next: 0,
            bytes: 0,
            over: false,
        }
    }

    /// A piece, not empty. Beyond `most` bytes nothing is kept; pieces are passed on all the same.
    pub(in crate::protocol) fn delta<P: Protocol>(
        &mut self,
        kind: Kind,
        text: &str,
        most: usize,
        out: &mut ClientOutbox<P>,
    ) {
        if self.block.as_ref().is_some_and(|(open, _)| *open != kind) {
            self.end_block(out);
        }
        let block = self.next;
        if self.block.is_none() {
            let head = match kind {
                Kind::Thinking => BlockHead::Thinking,
                Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque => BlockHead::Text,
            };
            out.infer(What::BlockStarted {
                message: self.id,
                block,
                head,
            });
            self.block = Some((kind, String::new()));
            self.bytes = self.bytes.saturating_add(BLOCK_BYTES);
        }
        out.delta(RunId::MAIN, self.id, block, kind, text);
        let Some((_, kept)) = &mut self.block else {
            return;
        };
        if self.over || self.bytes.saturating_add(text.len()) > most {
            if !core::mem::replace(&mut self.over, true) {
                out.finding("a reply is larger than what is kept; its deltas go on");
            }
            return;
        }
        self.bytes += text.len();
        kept.push_str(text);
    }

    /// The open block is whole.
    pub(in crate::protocol) fn end_block<P: Protocol>(&mut self, out: &mut ClientOutbox<P>) {
        let Some((kind, text)) = self.block.take() else {
            return;
        };
        let content = Arc::new(block_of(kind, text.into()));
        out.infer(What::BlockEnded {
            message: self.id,
            block: self.next,
            content: content.clone(),
        });
        self.next = self.next.saturating_add(1);
        if !self.over {
            self.blocks.push(content);
        }
    }

    /// All text of a kind, of the blocks that have ended; `None`: not all of it was kept.
    pub(in crate::protocol) fn joined(&self, kind: Kind) -> Option<String> {
        let texts = self.blocks.iter().filter_map(|block| text_of(block, kind));
        (!self.over).then(|| texts.collect())
    }

    /// The agent's own text of a kind takes the place of what was streamed. Thinking stands before text.
    pub(in crate::protocol) fn replace(&mut self, kind: Kind, text: &str) {
        self.blocks.retain(|block| text_of(block, kind).is_none());
        if text.is_empty() {
            return;
        }
        let whole = Arc::new(block_of(kind, text.into()));
        if kind == Kind::Thinking {
            self.blocks.insert(0, whole);
        } else {
            self.blocks.push(whole);
        }
    }

    /// The whole reply, and how many blocks it has.
    pub(in crate::protocol) fn end<P: Protocol>(
        mut self,
        out: &mut ClientOutbox<P>,
    ) -> (Message, u32) {
        self.end_block(out);
        let blocks = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let whole = message(self.id, Role::Assistant, self.blocks, Origin::Harness, out);
        (whole, blocks)
    }
}

fn block_of(kind: Kind, text: Text) -> Block {
    match kind {
        Kind::Thinking => Block::Thinking {
            text,
            signature: None,
        },
        Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque => Block::Text(text),
    }
}

fn text_of(block: &Block, kind: Kind) -> Option<&str> {
    match (block, kind) {
        (Block::Thinking { text, .. }, Kind::Thinking) => Some(text),
        (block, Kind::Text) => block.text(),
        (_, Kind::Thinking | Kind::Signature | Kind::Input | Kind::Opaque) => None,
    }
}
