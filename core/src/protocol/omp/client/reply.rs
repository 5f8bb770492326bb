//! A reply while it is streamed. Text comes from deltas and from `message_end` alone: the snapshots that updates repeat
//! run ahead of their deltas.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use super::convert::{block, tool_use};
use crate::json::Raw;
use crate::protocol::omp::wire::{Any, Block as WireBlock, ToolCallBlock, Update};
use crate::vocab::*;

/// Blocks of one reply that are followed as they grow.
const MOST_BLOCKS: usize = 65_536;
/// What a block takes beside its text.
const BLOCK_BYTES: usize = 64;
/// How a text ends that was cut so that its frame fits.
const ELIDED: &str = " chars elided for RPC frame]";

/// The open message of a request.
#[derive(Debug)]
pub(super) struct Reply {
    run: RunId,
    pub id: MessageId,
    blocks: BTreeMap<u32, Growing>,
    /// Bytes kept, a block itself counts too.
    bytes: usize,
    /// The most of them.
    most: usize,
    /// More came than is kept.
    over: bool,
}

#[derive(Debug)]
struct Growing {
    kind: Kind,
    /// It was said to begin.
    begun: bool,
    /// What its deltas add up to.
    text: String,
    whole: Option<Arc<Block>>,
    /// Of a call.
    call: Option<CallId>,
}

impl Reply {
    /// A message begins.
    pub(super) fn begin(
        run: RunId,
        request: RequestId,
        message: Raw<'_>,
        most: usize,
        seen: Seen,
        out: &mut Out,
    ) -> Self {
        let id = out.ids.message();
        let member = |name: &str| Some(Text::from(&*message.get(name)?.string()?));
        out.event(
            run,
            seen,
            What::MessageStarted {
                message: id,
                request: Some(request),
                provider_id: member("responseId"),
                model: member("model"),
                usage: None,
            },
        );
        Reply {
            run,
            id,
            blocks: BTreeMap::new(),
            bytes: 0,
            most,
            over: false,
        }
    }

    /// What is new in it.
    pub(super) fn update(&mut self, update: &Update<'_>, out: &mut Out) {
        match update {
            Update::TextDelta(it) => self.delta(it.content_index, Kind::Text, &it.delta, out),
            Update::ThinkingDelta(it) => {
                self.delta(it.content_index, Kind::Thinking, &it.delta, out);
            }
            Update::ToolcallDelta(it) => self.delta(it.content_index, Kind::Input, &it.delta, out),
            Update::TextStart(it) => self.start(it.content_index, Kind::Text, out),
            Update::ThinkingStart(it) => self.start(it.content_index, Kind::Thinking, out),
            Update::ToolcallStart(it) => self.call_start(it.content_index, it.partial, out),
            Update::TextEnd(it) => self.text_end(it.content_index, Kind::Text, &it.content, out),
            Update::ThinkingEnd(it) => {
                self.text_end(it.content_index, Kind::Thinking, &it.content, out);
            }
            Update::ToolcallEnd(it) => self.end(it.content_index, &it.tool_call, out),
            Update::ImageEnd(it) => self.end(it.content_index, &it.content, out),
            // The start and the end of the message stand for these.
            Update::Start(_) | Update::Done(_) | Update::Error(_) => {}
            Update::Unknown(_) => out.finding("an update of an unknown type is passed over"),
        }
    }

    /// The block of this number, which is made if it isn't there.
    fn block(&mut self, index: u64, kind: Kind, out: &mut Out) -> Option<(u32, &mut Growing)> {
        let number = u32::try_from(index).ok();
        let fits = number.is_some_and(|number| {
            self.blocks.len() < MOST_BLOCKS || self.blocks.contains_key(&number)
        });
        let Some(number) = number.filter(|_| fits) else {
            out.finding("a reply has more blocks than are followed");
            return None;
        };
        if !self.blocks.contains_key(&number) {
            self.bytes = self.bytes.saturating_add(BLOCK_BYTES);
        }
        let growing = self.blocks.entry(number).or_insert_with(|| Growing {
            kind,
            begun: false,
            text: String::new(),
            whole: None,
            call: None,
        });
        if growing.kind != kind || growing.whole.is_some() {
            out.finding(format!(
                "block {number} of a reply has ended, or is of another kind"
            ));
            return None;
        }
        Some((number, growing))
    }

    fn start(&mut self, index: u64, kind: Kind, out: &mut Out) {
        let (run, id) = (self.run, self.id);
        if let Some((number, growing)) = self.block(index, kind, out) {
            growing.begin(run, id, number, None, out);
        }
    }

    /// The name and the id of a call are only in the snapshot; if that was left out, they come with its end.
    fn call_start(&mut self, index: u64, partial: Any<'_>, out: &mut Out) {
        let (run, id) = (self.run, self.id);
        let Some((number, growing)) = self.block(index, Kind::Input, out) else {
            return;
        };
        let content = partial.get().and_then(|partial| partial.get("content"));
        let blocks = content.and_then(|content| content.decode::<Vec<Raw<'_>>>().ok());
        let this = blocks.and_then(|blocks| blocks.get(usize::try_from(index).ok()?).copied());
        if let Some(Ok(WireBlock::ToolCall(tool))) = this.map(WireBlock::decode) {
            growing.begin(run, id, number, Some(&tool), out);
        }
    }

    fn delta(&mut self, index: u64, kind: Kind, text: &str, out: &mut Out) {
        if text.is_empty() {
            return;
        }
        let (run, id, most) = (self.run, self.id, self.most);
        let full = self.over || self.bytes.saturating_add(text.len()) > most;
        let Some((number, growing)) = self.block(index, kind, out) else {
            return;
        };
        if kind != Kind::Input {
            growing.begin(run, id, number, None, out);
        }
        if growing.begun {
            out.delta(run, id, number, kind, text);
        }
        if full {
            if !core::mem::replace(&mut self.over, true) {
                out.finding("a reply is larger than what is kept; its deltas go on");
            }
            return;
        }
        growing.text.push_str(text);
        self.bytes += text.len();
    }

    fn text_end(&mut self, index: u64, kind: Kind, content: &str, out: &mut Out) {
        let (run, id, over) = (self.run, self.id, self.over);
        let Some((number, growing)) = self.block(index, kind, out) else {
            return;
        };
        growing.begin(run, id, number, None, out);
        let text = growing.settle(run, id, number, content, over, out);
        let content = Arc::new(match kind {
            Kind::Thinking => Block::Thinking {
                text,
                signature: None,
            },
            Kind::Text | Kind::Signature | Kind::Input | Kind::Opaque => Block::Text(text),
        });
        growing.end(run, id, number, content, out);
    }

    /// A call or a picture is whole.
    fn end(&mut self, index: u64, whole: &WireBlock<'_>, out: &mut Out) {
        let (run, id) = (self.run, self.id);
        let tool = match whole {
            WireBlock::ToolCall(tool) => Some(tool),
            WireBlock::Text(_)
            | WireBlock::Thinking(_)
            | WireBlock::RedactedThinking(_)
            | WireBlock::Image(_)
            | WireBlock::Fallback(_)
            | WireBlock::ServerTool(_)
            | WireBlock::Unknown(_) => None,
        };
        let kind = if tool.is_some() {
            Kind::Input
        } else {
            Kind::Opaque
        };
        let Some((number, growing)) = self.block(index, kind, out) else {
            return;
        };
        growing.begin(run, id, number, tool, out);
        let call = growing.call;
        let content = block(whole, |tool| {
            tool_use(call.unwrap_or_else(|| out.ids.call()), tool)
        });
        growing.end(run, id, number, Arc::new(content), out);
    }

    /// The message is whole, and this counts: a missing end of a text is said as a last delta, any other difference is
    /// found. Gives its blocks, and the ids of its calls on the wire. `failed`: what was shown may be taken back.
    pub(super) fn settle(
        mut self,
        whole: &[WireBlock<'_>],
        failed: bool,
        out: &mut Out,
    ) -> (Vec<Arc<Block>>, Vec<(CallId, String)>) {
        let mut content = Vec::new();
        let mut wires = Vec::new();
        for (number, told) in whole.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let growing = self.blocks.remove(&number);
            let call = growing.as_ref().and_then(|growing| growing.call);
            let made = block(told, |tool| {
                let call = call.unwrap_or_else(|| out.ids.call());
                wires.push((call, tool.id.to_string()));
                tool_use(call, tool)
            });
            let made = match growing {
                Some(growing) if !failed => {
                    growing.compare(self.run, self.id, number, made, self.over, out)
                }
                Some(_) | None => Arc::new(made),
            };
            content.push(made);
        }
        let lacks = self.blocks.values().any(|growing| !growing.text.is_empty());
        if lacks && !failed {
            out.finding("message_end lacks blocks that were streamed; it counts");
        }
        (content, wires)
    }

    /// The agent never said what it came to: what was streamed is what there is.
    pub(super) fn cut(self) -> Vec<Arc<Block>> {
        let each = self.blocks.into_values().filter_map(|growing| {
            growing.whole.or_else(|| {
                let text = Text::from(growing.text);
                let block = match growing.kind {
                    Kind::Text => Block::Text(text),
                    Kind::Thinking => Block::Thinking {
                        text,
                        signature: None,
                    },
                    // Half a call is none.
                    Kind::Input | Kind::Signature | Kind::Opaque => return None,
                };
                Some(Arc::new(block))
            })
        });
        let is_call = |block: &Arc<Block>| matches!(**block, Block::ToolUse { .. });
        each.filter(|block| !is_call(block)).collect()
    }
}

impl Growing {
    fn begin(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        tool: Option<&ToolCallBlock<'_>>,
        out: &mut Out,
    ) {
        if core::mem::replace(&mut self.begun, true) {
            return;
        }
        let head = match (self.kind, tool) {
            (Kind::Text, _) => BlockHead::Text,
            (Kind::Thinking, _) => BlockHead::Thinking,
            (Kind::Input, Some(tool)) => {
                let call = out.ids.call();
                self.call = Some(call);
                BlockHead::ToolUse {
                    call,
                    provider_id: (!tool.id.is_empty()).then(|| (&*tool.id).into()),
                    name: (&*tool.name).into(),
                    runs: true,
                }
            }
            (Kind::Input | Kind::Signature | Kind::Opaque, _) => BlockHead::Opaque,
        };
        out.event(
            run,
            Seen::Real,
            What::BlockStarted {
                message,
                block,
                head,
            },
        );
        // The pieces of a call whose name came at its end.
        if !self.text.is_empty() {
            out.delta(run, message, block, self.kind, &self.text);
        }
    }

    /// What the text of the block is, now that the agent has said it whole.
    fn settle(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        whole: &str,
        over: bool,
        out: &mut Out,
    ) -> Text {
        if let Some(rest) = whole.strip_prefix(&*self.text) {
            if !rest.is_empty() && !over {
                out.delta(run, message, block, self.kind, rest);
                self.text.push_str(rest);
            }
        } else if elided(whole).is_some_and(|start| self.text.starts_with(start)) {
            return (&*self.text).into();
        } else if !over {
            out.finding(format!(
                "block {block} of a reply isn't what its deltas add up to; it counts"
            ));
        }
        whole.into()
    }

    fn end(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        content: Arc<Block>,
        out: &mut Out,
    ) {
        self.whole = Some(content.clone());
        out.event(
            run,
            Seen::Real,
            What::BlockEnded {
                message,
                block,
                content,
            },
        );
    }

    /// The block as `message_end` has it, against what was streamed of it.
    fn compare(
        mut self,
        run: RunId,
        message: MessageId,
        number: u32,
        made: Block,
        over: bool,
        out: &mut Out,
    ) -> Arc<Block> {
        let text = |block: &Block| match block {
            Block::Text(text) | Block::Thinking { text, .. } => Some(text.clone()),
            Block::Redacted(_)
            | Block::Media { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_) => None,
        };
        let fits = matches!(
            (&made, self.kind),
            (Block::Text(_), Kind::Text)
                | (Block::Thinking { .. }, Kind::Thinking)
                | (Block::ToolUse { .. }, Kind::Input)
                | (
                    Block::Media { .. } | Block::Redacted(_) | Block::Opaque(_),
                    Kind::Opaque
                )
        );
        if !fits {
            out.finding(format!(
                "block {number} of a reply isn't of the kind that was streamed; it counts"
            ));
            return Arc::new(made);
        }
        let Some(told) = text(&made) else {
            return Arc::new(made);
        };
        let settled = match self.whole.as_deref().and_then(text) {
            Some(whole) if whole == told => told,
            Some(whole) if elided(&told).is_some_and(|start| whole.starts_with(start)) => whole,
            Some(_) => {
                out.finding(format!(
                    "block {number} of a reply isn't what it was when it ended; it counts"
                ));
                told
            }
            None if !self.begun => told,
            None => self.settle(run, message, number, &told, over, out),
        };
        Arc::new(match made {
            Block::Thinking { signature, .. } => Block::Thinking {
                text: settled,
                signature,
            },
            Block::Text(_) => Block::Text(settled),
            other @ (Block::Redacted(_)
            | Block::Media { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_)) => other,
        })
    }
}

/// The start of a text that was cut so that its frame fits.
fn elided(text: &str) -> Option<&str> {
    let cut = text.strip_suffix(ELIDED)?;
    let at = cut.rfind("\n\u{2026}[")?;
    let start = cut.get(..at)?;
    // Half a surrogate pair at the cut was read as a replacement.
    Some(start.trim_end_matches('\u{fffd}'))
}
