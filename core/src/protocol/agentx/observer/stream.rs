//! A reply as it streams, and what its records say of it.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::{AssistantMessage, Block, Delta, Kept, StreamEvent};
use crate::protocol::observer::{At, Notes, hash};

/// A text, as its length and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    length: usize,
    state: u64,
}

impl Sum {
    const EMPTY: Sum = Sum {
        length: 0,
        state: 0xcbf2_9ce4_8422_2325,
    };

    fn of(text: &str) -> Sum {
        let mut sum = Sum::EMPTY;
        sum.push(text);
        sum
    }

    fn push(&mut self, piece: &str) {
        self.length += piece.len();
        for byte in piece.bytes() {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// No message is open.
    #[default]
    Outside,
    /// Between blocks.
    Between,
    /// In the block of this index.
    Within(u64),
    /// `message_delta` was said.
    Closing,
}

/// The most blocks of text of one reply that are told apart.
const MOST_BLOCKS: usize = 32;

/// Whether some of the blocks, in their order, make this text.
fn makes(blocks: &[Sum], text: &str) -> bool {
    let mut reached = BTreeSet::from([0]);
    for block in blocks {
        let ends: Vec<usize> = reached
            .iter()
            .filter_map(|start: &usize| {
                let end = start.checked_add(block.length)?;
                (Sum::of(text.get(*start..end)?) == *block).then_some(end)
            })
            .collect();
        reached.extend(ends);
    }
    reached.contains(&text.len())
}

/// What streams, and what was said last.
#[derive(Debug, Default)]
pub(super) struct Stream {
    at: Position,
    /// The message's id.
    message: u64,
    /// The index of the next block.
    next: u64,
    /// The pieces of the open block's text; `None`: it is no text, or can't be told.
    pieces: Option<Sum>,
    /// A record has told the open block.
    told: bool,
    unsure: bool,
    /// The last reply: its id, its text, and its blocks of text.
    last: Option<(u64, Sum, Vec<Sum>)>,
    /// Replies of the turn.
    pub(super) replies: u64,
}

impl Stream {
    pub(super) fn blur(&mut self) {
        self.unsure = true;
        self.last = None;
    }

    /// An event of the provider's stream.
    pub(super) fn event(&mut self, event: &StreamEvent<'_>, notes: &mut Notes) {
        let Err(message) = self.step(event) else {
            return;
        };
        if self.unsure {
            return;
        }
        notes.add(Key::Stream.rule(), At::line(), String::from(message));
    }

    fn step(&mut self, event: &StreamEvent<'_>) -> Result<(), &'static str> {
        let before = self.at;
        match event {
            StreamEvent::MessageStart(start) => {
                self.at = Position::Between;
                self.message = hash(&start.message.id);
                self.next = 0;
                self.unsure = false;
                if before != Position::Outside {
                    return Err("a message begins within another one");
                }
            }
            StreamEvent::BlockStart(start) => {
                let next = self.next;
                self.at = Position::Within(start.index);
                self.next = start.index.saturating_add(1);
                self.told = false;
                self.pieces = match &start.content_block {
                    Kept::Known(Block::Text(text)) => Some(Sum::of(&text.text)),
                    Kept::Known(_) | Kept::Other(_) => None,
                };
                if before != Position::Between {
                    return Err("a block begins outside of a message, or within another one");
                }
                if start.index != next {
                    return Err("the index of a block isn't the next one");
                }
            }
            StreamEvent::BlockDelta(delta) => {
                if let (Some(pieces), Kept::Known(Delta::Text(text))) =
                    (&mut self.pieces, &delta.delta)
                {
                    pieces.push(&text.text);
                }
                if before != Position::Within(delta.index) {
                    return Err("a block grows that isn't open");
                }
            }
            StreamEvent::BlockStop(stop) => {
                self.at = Position::Between;
                self.pieces = None;
                if before != Position::Within(stop.index) {
                    return Err("a block ends that isn't open");
                }
            }
            StreamEvent::MessageDelta(_) => {
                self.at = Position::Closing;
                if before != Position::Between {
                    return Err("message_delta stands outside of a message, or within a block");
                }
            }
            StreamEvent::MessageStop(_) => {
                self.at = Position::Outside;
                if !matches!(before, Position::Closing | Position::Between) {
                    return Err("a message ends that isn't open, or within a block");
                }
            }
            StreamEvent::TextPiece(_) | StreamEvent::Unknown(_) => {}
        }
        Ok(())
    }

    /// A reply, or a block of one.
    pub(super) fn reply(&mut self, message: &AssistantMessage<'_>, notes: &mut Notes) {
        let id = hash(&message.id);
        let streams = self.at != Position::Outside && !self.unsure;
        if streams && id != self.message && &*message.model != "<synthetic>" {
            let text = String::from("another message streams");
            notes.add(Key::MessageId.rule(), At::line(), text);
        }
        if self.last.as_ref().is_none_or(|(last, ..)| *last != id) {
            self.replies = self.replies.saturating_add(1);
            self.last = Some((id, Sum::EMPTY, Vec::new()));
        }
        for block in &message.content {
            let Kept::Known(Block::Text(block)) = block else {
                continue;
            };
            if let Some((_, whole, blocks)) = &mut self.last {
                whole.push(&block.text);
                if blocks.len() > MOST_BLOCKS {
                    blocks.remove(0);
                }
                blocks.push(Sum::of(&block.text));
            }
            let told = core::mem::replace(&mut self.told, true);
            if let Some(pieces) = self.pieces
                && streams
                && !told
                && pieces != Sum::of(&block.text)
            {
                let text = String::from("the text isn't what its pieces make");
                notes.add(Key::Pieces.rule(), At::line(), text);
            }
        }
    }

    /// Whether this can be the text of the last reply. `thinks`: some of its blocks of text may be its thinking, which
    /// isn't part of it.
    pub(super) fn said(&self, text: &str, thinks: bool) -> bool {
        let Some((_, whole, blocks)) = &self.last else {
            return true;
        };
        if text.is_empty() {
            // A reply without a block has no record.
            return true;
        }
        let sum = Sum::of(text);
        sum == *whole
            || blocks.last().unwrap_or(&Sum::EMPTY) == &sum
            || thinks && (blocks.len() > MOST_BLOCKS || makes(blocks, text))
    }

    /// What was streaming is over, whole or not.
    pub(super) fn reset(&mut self) {
        self.at = Position::Outside;
        self.pieces = None;
    }

    /// Another turn begins. Whether a message is still open.
    pub(super) fn over(&mut self) -> bool {
        let open = self.at != Position::Outside && !self.unsure;
        *self = Stream::default();
        open
    }
}
