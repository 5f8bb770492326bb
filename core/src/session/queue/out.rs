//! The one output queue: events, deltas and effects, first in, first out (S-66).
//!
//! The text of deltas lies in one buffer that is reused for ever, so that a token allocates nothing once the
//! buffer and the queue have grown to what the host's pace needs.

use alloc::{boxed::Box, collections::VecDeque, string::String};
use core::mem::size_of;

use crate::vocab::{
    Block, DeltaRef, Effect, Event, Kind, MessageId, Now, Output, RunId, Seen, What,
};

/// A prefix of delivered delta text shorter than this isn't worth moving the rest for.
const COMPACT_FROM: usize = 64 * 1024;

/// One queued output.
enum Item {
    Event(Box<Event>),
    Delta {
        at: Now,
        message: MessageId,
        block: u32,
        kind: Kind,
        len: usize,
    },
    Effect(Box<Effect>),
}

/// The queue, with an estimate of the bytes it holds.
#[derive(Default)]
pub(in crate::session) struct Out {
    items: VecDeque<(Item, usize)>,
    /// Texts of the queued deltas, end to end; the first `taken` bytes were delivered.
    text: String,
    taken: usize,
    bytes: usize,
    /// The event that is lent out right now.
    lent: Option<Box<Event>>,
}

impl Out {
    /// Queues an event of the outermost run.
    pub(in crate::session) fn event(&mut self, at: Now, what: What) {
        let weight = size_of::<Event>() + weigh(&what);
        self.push(
            Item::Event(Box::new(Event {
                at,
                run: RunId::MAIN,
                seen: Seen::Real,
                what,
            })),
            weight,
        );
    }

    /// Queues an effect of the outermost run.
    pub(in crate::session) fn effect(&mut self, effect: Effect) {
        self.push(Item::Effect(Box::new(effect)), size_of::<Effect>());
    }

    /// Queues a piece of a message. An empty one is nothing.
    pub(in crate::session) fn delta(
        &mut self,
        at: Now,
        message: MessageId,
        block: u32,
        kind: Kind,
        text: &str,
    ) {
        if text.is_empty() {
            return;
        }
        if self.taken == self.text.len() {
            self.text.clear();
            self.taken = 0;
        } else if self.taken >= COMPACT_FROM && self.taken >= self.text.len() / 2 {
            self.text.drain(..self.taken);
            self.taken = 0;
        }
        self.text.push_str(text);
        self.push(
            Item::Delta {
                at,
                message,
                block,
                kind,
                len: text.len(),
            },
            size_of::<Item>() + text.len(),
        );
    }

    fn push(&mut self, item: Item, weight: usize) {
        self.bytes += weight;
        self.items.push_back((item, weight));
    }

    /// The oldest output, lent until the next call.
    pub(in crate::session) fn poll(&mut self) -> Option<Output<'_>> {
        let (item, weight) = self.items.pop_front()?;
        self.bytes -= weight;
        Some(match item {
            Item::Event(event) => Output::Event(self.lent.insert(event)),
            Item::Effect(effect) => Output::Effect {
                run: RunId::MAIN,
                effect: *effect,
            },
            Item::Delta {
                at,
                message,
                block,
                kind,
                len,
            } => {
                let from = self.taken;
                self.taken += len;
                let text = self.text.get(from..self.taken).unwrap_or_default();
                Output::Delta(DeltaRef {
                    at,
                    run: RunId::MAIN,
                    message,
                    block,
                    kind,
                    text,
                })
            }
        })
    }

    /// Whether nothing is queued.
    pub(in crate::session) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How much room the texts of deltas take.
    #[cfg(test)]
    pub(in crate::session) fn text_capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Roughly how many bytes are queued.
    pub(in crate::session) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes that an event holds beyond its own size. Only what can grow with input counts.
fn weigh(what: &What) -> usize {
    if let What::MessageEnded { message, .. } | What::Message(message) = what {
        message.bytes()
    } else if let What::ToolEnded { content, .. } = what {
        content.iter().map(Block::bytes).sum()
    } else if let What::BlockEnded { content, .. } = what {
        content.bytes()
    } else if let What::ToolProgress { partial, .. } = what {
        match partial {
            crate::vocab::Progress::Append(blocks) | crate::vocab::Progress::Replace(blocks) => {
                blocks.iter().map(Block::bytes).sum()
            }
            crate::vocab::Progress::Alive => 0,
        }
    } else if let What::FileChanged { diff, path, .. } = what {
        diff.len() + path.len()
    } else if let What::ToolStarted {
        input: Some(input), ..
    } = what
    {
        match input {
            crate::vocab::ToolInput::Object(raw) => raw.0.len(),
            crate::vocab::ToolInput::Unparsed(text) => text.len(),
        }
    } else if let What::Opened(info) | What::Changed(info) = what {
        info.history
            .iter()
            .map(|message| message.bytes())
            .sum::<usize>()
            + info.tools.iter().map(|tool| tool.len()).sum::<usize>()
    } else {
        0
    }
}
