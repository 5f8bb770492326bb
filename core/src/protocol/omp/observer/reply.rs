//! A reply that grows, block by block: what its pieces make, and which calls it asks for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::super::wire::{AssistantMessage, Block, StopReason, Update};
use crate::protocol::observer::hash;

/// The most blocks of a reply, and the most calls of a step, before nothing is said of them.
const MOST: usize = 4096;

/// What a text ends with that was cut to fit into a frame.
const CUT: &str = "elided for RPC frame]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

/// A block so far.
#[derive(Clone, Copy, Debug)]
struct Grown {
    kind: Kind,
    ended: bool,
    /// Length and hash of what came; `None`: it can't be told.
    pieces: Option<(usize, u64)>,
}

impl Grown {
    fn new(kind: Kind) -> Self {
        Grown {
            kind,
            ended: false,
            pieces: Some((0, 0xcbf2_9ce4_8422_2325)),
        }
    }

    fn push(&mut self, piece: &str) {
        // Two halves of one character may stand in two pieces.
        if piece.contains('\u{fffd}') {
            self.pieces = None;
        }
        if let Some((length, state)) = &mut self.pieces {
            *length += piece.len();
            for byte in piece.bytes() {
                *state = (*state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }

    /// Whether this can be what the pieces make.
    fn makes(&self, text: &str) -> bool {
        let Some(pieces) = self.pieces else {
            return true;
        };
        if text.ends_with(CUT) || text.contains('\u{fffd}') {
            return true;
        }
        let mut whole = Grown::new(self.kind);
        whole.push(text);
        whole.pieces == Some(pieces)
    }
}

/// The reply that is open.
#[derive(Debug, Default)]
pub(super) struct Reply {
    blocks: BTreeMap<u64, Grown>,
}

impl Reply {
    /// Another reply begins, or what is open can't be told.
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// An update. Gives what is wrong with it.
    pub(super) fn grow(&mut self, update: &Update<'_>) -> Result<(), &'static str> {
        match update {
            Update::TextStart(it) => self.start(it.content_index, Kind::Text),
            Update::ThinkingStart(it) => self.start(it.content_index, Kind::Thinking),
            Update::ToolcallStart(it) => self.start(it.content_index, Kind::Call),
            Update::TextDelta(it) => self.piece(it.content_index, Kind::Text, &it.delta),
            Update::ThinkingDelta(it) => self.piece(it.content_index, Kind::Thinking, &it.delta),
            Update::ToolcallDelta(it) => self.piece(it.content_index, Kind::Call, ""),
            Update::TextEnd(it) => self.finish(it.content_index, Kind::Text, &it.content),
            Update::ThinkingEnd(it) => self.finish(it.content_index, Kind::Thinking, &it.content),
            Update::ToolcallEnd(it) => self.finish(it.content_index, Kind::Call, ""),
            Update::ImageEnd(_)
            | Update::Start(_)
            | Update::Done(_)
            | Update::Error(_)
            | Update::Unknown(_) => Ok(()),
        }
    }

    fn start(&mut self, index: u64, kind: Kind) -> Result<(), &'static str> {
        if self.blocks.len() < MOST && self.blocks.insert(index, Grown::new(kind)).is_some() {
            return Err("a block begins that has begun before");
        }
        Ok(())
    }

    /// The open block of this place. What is wrong is said once of a block.
    fn open(&mut self, index: u64, kind: Kind) -> Result<Option<&mut Grown>, &'static str> {
        if self.blocks.len() >= MOST {
            return Ok(self.blocks.get_mut(&index));
        }
        let mut fault = None;
        let block = self.blocks.entry(index).or_insert_with(|| {
            fault = Some("the block hasn't begun");
            Grown {
                pieces: None,
                ..Grown::new(kind)
            }
        });
        if block.kind != kind {
            fault = Some("the block began as one of another kind");
        } else if block.ended {
            fault = Some("the block has ended before");
        }
        match fault {
            Some(fault) => {
                block.pieces = None;
                Err(fault)
            }
            None => Ok(Some(block)),
        }
    }

    fn piece(&mut self, index: u64, kind: Kind, piece: &str) -> Result<(), &'static str> {
        if let Some(block) = self.open(index, kind)? {
            block.push(piece);
        }
        Ok(())
    }

    fn finish(&mut self, index: u64, kind: Kind, text: &str) -> Result<(), &'static str> {
        let Some(block) = self.open(index, kind)? else {
            return Ok(());
        };
        block.ended = true;
        if block.makes(text) {
            return Ok(());
        }
        block.pieces = None;
        Err("its pieces don't make what the block says at its end")
    }

    /// The message is whole. Gives what is wrong with it, and whether another reading excuses it.
    pub(super) fn end(
        &mut self,
        message: &AssistantMessage<'_>,
    ) -> Result<(), (bool, &'static str)> {
        let blocks = core::mem::take(&mut self.blocks);
        for (index, said) in (0_u64..).zip(&message.content) {
            let (kind, text) = match said {
                Block::Text(block) => (Kind::Text, &*block.text),
                Block::Thinking(block) => (Kind::Thinking, &*block.thinking),
                Block::ToolCall(_)
                | Block::RedactedThinking(_)
                | Block::Image(_)
                | Block::Fallback(_)
                | Block::ServerTool(_)
                | Block::Unknown(_) => continue,
            };
            if let Some(block) = blocks.get(&index)
                && block.kind == kind
                && !block.makes(text)
            {
                return Err((false, "the message says something else than its pieces"));
            }
        }
        let went_well = matches!(
            message.stop_reason,
            Some(StopReason::Stop | StopReason::ToolUse)
        );
        if went_well && blocks.values().any(|block| !block.ended) {
            return Err((true, "a block is open at the end of its reply"));
        }
        Ok(())
    }
}

/// What a step has said: its calls and their results.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The calls of its replies, and whether each has a result.
    calls: BTreeMap<u64, bool>,
    /// The calls that have run, and whether they failed.
    ended: BTreeMap<u64, bool>,
    /// The results, in the order in which they were told.
    results: Vec<u64>,
    /// The last reply asked for tools.
    wants_tools: bool,
    /// Something wasn't read: nothing is said.
    unsure: bool,
}

impl Step {
    pub(super) fn clear(&mut self) {
        *self = Step::default();
    }

    /// A line of it wasn't read.
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    /// A reply of the step is whole.
    pub(super) fn reply(&mut self, message: &AssistantMessage<'_>) {
        if !self.wants_tools {
            // Of a reply that failed, and that another one follows, no call runs any more.
            self.calls.retain(|_, done| *done);
        }
        for block in &message.content {
            if let Block::ToolCall(call) = block {
                self.calls.insert(hash(&call.id), false);
            }
        }
        self.wants_tools = message.stop_reason == Some(StopReason::ToolUse);
        if self.calls.len() > MOST {
            self.unsure = true;
            self.calls.clear();
        }
    }

    /// A call has run.
    pub(super) fn tool_ended(&mut self, call: &str, is_error: bool) {
        if self.ended.len() < MOST {
            self.ended.insert(hash(call), is_error);
        }
    }

    /// The result of a call. Gives whether it failed where the call did, or what is wrong with it.
    pub(super) fn result(&mut self, call: &str, is_error: bool) -> Result<bool, &'static str> {
        let id = hash(call);
        if self.unsure || self.results.len() >= MOST {
            self.unsure = true;
            return Ok(true);
        }
        self.results.push(id);
        match self.calls.get_mut(&id) {
            None => Err("no call of this step has this id"),
            Some(true) => Err("the call has a result"),
            Some(done) => {
                *done = true;
                Ok(self.ended.get(&id).is_none_or(|ended| *ended == is_error))
            }
        }
    }

    /// Whether a call that should have run has no result.
    pub(super) fn lacks_a_result(&self) -> bool {
        !self.unsure && self.wants_tools && self.calls.values().any(|done| !done)
    }

    /// Whether these are the results that were told, in any order.
    pub(super) fn told(&self, results: impl Iterator<Item = u64>) -> bool {
        let mut told = self.results.clone();
        let mut results: Vec<u64> = results.collect();
        told.sort_unstable();
        results.sort_unstable();
        self.unsure || told == results
    }
}
