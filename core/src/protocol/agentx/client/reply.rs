//! A reply while it is streamed, or told block by block. Text that was streamed isn't said again when its block is told
//! whole.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Out;
use super::calls::Calls;
use super::convert::{block, later, tool_use, usage};
use crate::json::{self, ScanRules};
use crate::protocol::agentx::wire::{
    AssistantMessage, Block as WireBlock, Delta, Kept, MessageDelta, ToolUseBlock,
};
use crate::vocab::*;

/// Blocks of one reply that are followed as they grow.
const MOST_BLOCKS: usize = 65_536;
/// What a block takes beside its text.
const BLOCK_BYTES: usize = 64;

/// The open message of a request.
#[derive(Debug)]
pub(super) struct Reply {
    run: RunId,
    pub id: MessageId,
    /// The provider's id.
    pub wire: String,
    /// The model, as it is named.
    pub model: Text,
    /// It is told piece by piece, and its end will be told too.
    pub streamed: bool,
    blocks: BTreeMap<u32, Growing>,
    /// Bytes kept, a block itself counts too.
    bytes: usize,
    /// The most of them.
    most: usize,
    /// More came than is kept.
    over: bool,
    /// Why it stopped, where that was told, and at which sequence.
    pub stop: Option<(Text, Option<Text>)>,
    pub usage: Option<Usage>,
    /// It was cut off, the agent says.
    pub aborted: bool,
    /// Its end came without a reason.
    pub bare: bool,
}

#[derive(Debug)]
struct Growing {
    kind: Kind,
    /// What its deltas add up to.
    text: String,
    signature: String,
    whole: Option<Arc<Block>>,
    /// It was told as a record of its own.
    told: bool,
    /// Of a call: its id, the wire's and the tool.
    call: Option<(CallId, String, Text)>,
}

impl Reply {
    /// A message begins.
    pub(super) fn begin(
        run: RunId,
        request: RequestId,
        message: Option<&AssistantMessage<'_>>,
        streamed: bool,
        most: usize,
        out: &mut Out,
    ) -> Self {
        let id = out.ids.message();
        let wire = message.map_or("", |message| &*message.id);
        let model = message.map_or("", |message| &*message.model);
        let told = message.and_then(|message| usage(message.usage.as_deref()?));
        out.event(
            run,
            if message.is_some() {
                Seen::Real
            } else {
                Seen::Inferred
            },
            What::MessageStarted {
                message: id,
                request: Some(request),
                provider_id: (!wire.is_empty()).then(|| wire.into()),
                model: (!model.is_empty()).then(|| model.into()),
                usage: told.filter(|_| streamed),
            },
        );
        Reply {
            run,
            id,
            wire: wire.to_owned(),
            model: model.into(),
            streamed,
            blocks: BTreeMap::new(),
            bytes: wire.len(),
            most,
            over: false,
            stop: None,
            usage: told.filter(|_| streamed),
            aborted: false,
            bare: false,
        }
    }

    /// Whether it makes calls.
    pub(super) fn has_calls(&self) -> bool {
        self.blocks.values().any(|growing| growing.call.is_some())
    }

    /// `content_block_start`
    pub(super) fn block_start(
        &mut self,
        index: u64,
        told: &Kept<'_, WireBlock<'_>>,
        out: &mut Out,
    ) {
        let Some(number) = self.number(index, out) else {
            return;
        };
        if self.blocks.contains_key(&number) {
            return out.finding(format!("block {number} of a reply began twice"));
        }
        let (head, kind, call) = match told {
            Kept::Known(told) => head(told, out),
            Kept::Other(_) => (BlockHead::Opaque, Kind::Opaque, None),
        };
        self.open(number, kind, call, head, out);
        // What a block begins with is a piece of it.
        if let Kept::Known(told) = told
            && let Some(text) = text_of(told).filter(|text| !text.is_empty())
        {
            self.grow(number, kind, text, out);
        }
    }

    fn number(&mut self, index: u64, out: &mut Out) -> Option<u32> {
        let number = u32::try_from(index).ok();
        let fits = number
            .filter(|number| self.blocks.len() < MOST_BLOCKS || self.blocks.contains_key(number));
        if fits.is_none() {
            out.finding("a reply has more blocks than are followed");
        }
        fits
    }

    fn open(
        &mut self,
        number: u32,
        kind: Kind,
        call: Option<(CallId, String, Text)>,
        head: BlockHead,
        out: &mut Out,
    ) {
        let (run, message, block) = (self.run, self.id, number);
        self.bytes = self.bytes.saturating_add(BLOCK_BYTES);
        self.blocks.insert(
            number,
            Growing {
                kind,
                text: String::new(),
                signature: String::new(),
                whole: None,
                told: false,
                call,
            },
        );
        out.event(
            run,
            Seen::Real,
            What::BlockStarted {
                message,
                block,
                head,
            },
        );
    }

    /// `content_block_delta`. The hot path: allocates nothing once warm.
    pub(super) fn block_delta(&mut self, index: u64, told: &Kept<'_, Delta<'_>>, out: &mut Out) {
        let (kind, text): (Kind, &str) = match told {
            Kept::Known(Delta::Text(it)) => (Kind::Text, &it.text),
            Kept::Known(Delta::Thinking(it)) => (Kind::Thinking, &it.thinking),
            Kept::Known(Delta::Signature(it)) => (Kind::Signature, &it.signature),
            Kept::Known(Delta::InputJson(it)) => (Kind::Input, &it.partial_json),
            // They are in the block when it is told whole.
            Kept::Known(Delta::Citations(_) | Delta::Unknown(_)) | Kept::Other(_) => return,
        };
        let Some(number) = self.number(index, out) else {
            return;
        };
        if !self.blocks.contains_key(&number) {
            out.finding(format!("a piece of block {number}, which hasn't begun"));
            let head = match kind {
                Kind::Text => BlockHead::Text,
                Kind::Thinking | Kind::Signature => BlockHead::Thinking,
                Kind::Input | Kind::Opaque => BlockHead::Opaque,
            };
            let kind = if kind == Kind::Signature {
                Kind::Thinking
            } else {
                kind
            };
            self.open(number, kind, None, head, out);
        }
        self.grow(number, kind, text, out);
    }

    /// A piece of text in the strict wire's own form: of the last block, if that is text and goes on.
    pub(super) fn piece(&mut self, text: &str, out: &mut Out) {
        let last = self.blocks.iter().next_back();
        let goes_on = last.filter(|(_, it)| it.kind == Kind::Text && it.whole.is_none());
        let number = match goes_on {
            Some((number, _)) => *number,
            None => {
                let number = last.map_or(0, |(number, _)| number.saturating_add(1));
                if self.number(u64::from(number), out).is_none() {
                    return;
                }
                self.open(number, Kind::Text, None, BlockHead::Text, out);
                number
            }
        };
        self.grow(number, Kind::Text, text, out);
    }

    /// Whether this is another message that has begun here already: pieces in the strict wire's own form don't say whose
    /// they are, and nothing need stand between two replies. What is shown isn't said again for its second name, and pieces
    /// of an attempt that came to nothing may stand before it.
    pub(super) fn has_begun(&self, told: &AssistantMessage<'_>) -> bool {
        let first = told.content.first().and_then(Kept::known).and_then(text_of);
        let (Some(text), Some(last)) = (first, self.blocks.values().next_back()) else {
            return false;
        };
        self.is_growing() && !last.text.is_empty() && last.shown_of(text).is_some()
    }

    /// Whether pieces in the strict wire's own form have come whose block hasn't been told whole.
    pub(super) fn is_growing(&self) -> bool {
        let last = self.blocks.values().next_back();
        !self.streamed && last.is_some_and(|last| !last.told && last.whole.is_none())
    }

    fn grow(&mut self, number: u32, kind: Kind, text: &str, out: &mut Out) {
        if text.is_empty() {
            return;
        }
        let (run, id) = (self.run, self.id);
        let full = self.over || self.bytes.saturating_add(text.len()) > self.most;
        let Some(growing) = self.blocks.get_mut(&number) else {
            return;
        };
        let fits =
            growing.kind == kind || kind == Kind::Signature && growing.kind == Kind::Thinking;
        if growing.whole.is_some() || !fits {
            return out.finding(format!(
                "block {number} of a reply has ended, or is of another kind"
            ));
        }
        out.delta(run, id, number, kind, text);
        if full {
            if !core::mem::replace(&mut self.over, true) {
                out.finding("a reply is larger than what is kept; its deltas go on");
            }
            return;
        }
        if kind == Kind::Signature {
            growing.signature.push_str(text);
        } else {
            growing.text.push_str(text);
        }
        self.bytes += text.len();
    }

    /// `content_block_stop`: one that was told whole has ended before.
    pub(super) fn block_stop(&mut self, index: u64, calls: &mut Calls, out: &mut Out) {
        let number = u32::try_from(index).ok();
        let growing = number.and_then(|number| Some((number, self.blocks.get_mut(&number)?)));
        let Some((number, growing)) = growing else {
            return out.finding("a block ended that hadn't begun");
        };
        if growing.whole.is_some() {
            return;
        }
        let Some(whole) = growing.grown() else {
            return;
        };
        self.settle(number, whole, calls, out);
    }

    /// Says that a block is whole.
    fn settle(&mut self, number: u32, whole: Arc<Block>, calls: &mut Calls, out: &mut Out) {
        let (run, message) = (self.run, self.id);
        let Some(growing) = self.blocks.get_mut(&number) else {
            return;
        };
        growing.whole = Some(whole.clone());
        if let Some((_, wire, _)) = &growing.call {
            calls.list(run, (message, number), wire, &whole);
        }
        out.event(
            run,
            Seen::Real,
            What::BlockEnded {
                message,
                block: number,
                content: whole,
            },
        );
    }

    /// A block that is told whole, in a record of its own.
    pub(super) fn whole(
        &mut self,
        told: &Kept<'_, WireBlock<'_>>,
        calls: &mut Calls,
        out: &mut Out,
    ) {
        let found = self.blocks.iter().find(|(_, growing)| !growing.told);
        let number = match found {
            Some((number, _)) => *number,
            None => {
                let last = self.blocks.keys().next_back();
                let next = last.map_or(0, |last| last.saturating_add(1));
                let Some(number) = self.number(u64::from(next), out) else {
                    return;
                };
                let (head, kind, call) = match told {
                    Kept::Known(told) => head(told, out),
                    Kept::Other(_) => (BlockHead::Opaque, Kind::Opaque, None),
                };
                self.open(number, kind, call, head, out);
                number
            }
        };
        let Some(growing) = self.blocks.get_mut(&number) else {
            return;
        };
        growing.told = true;
        let call = growing.call.as_ref().map(|(call, ..)| *call);
        let (made, rest) = match told {
            Kept::Known(told) => {
                let made = block(told, |tool| {
                    let call = call.unwrap_or_else(|| out.ids.call());
                    growing.call = Some((call, (*tool.id).into(), (&*tool.name).into()));
                    tool_use(call, tool)
                });
                (made, text_of(told))
            }
            Kept::Other(value) => (Block::Opaque(super::convert::raw(*value)), None),
        };
        if let Some(whole) = &growing.whole {
            if **whole != made && !differs_in_proof(whole, &made) {
                out.finding(format!(
                    "block {number} of a reply isn't what it was when it ended; it counts"
                ));
            }
            growing.whole = Some(Arc::new(made));
            return;
        }
        if let Some(text) = rest {
            let shown = if self.streamed {
                text.starts_with(&*growing.text)
                    .then_some(growing.text.len())
            } else {
                growing.shown_of(text)
            };
            match shown.and_then(|shown| text.get(shown..)) {
                Some(rest) if !self.over => {
                    // Not lent: the reply changes meanwhile.
                    let rest = rest.to_owned();
                    let kind = growing.kind;
                    self.grow(number, kind, &rest, out);
                }
                Some(_) => {}
                None if self.over => {}
                None => out.finding(format!(
                    "block {number} of a reply isn't what its deltas add up to; it counts"
                )),
            }
        }
        self.settle(number, Arc::new(made), calls, out);
    }

    /// `message_delta`: how it ends, and what it used.
    pub(super) fn told_end(&mut self, told: &MessageDelta<'_>) {
        self.told_stop(
            told.delta.stop_reason.value().map(|word| &**word),
            told.delta.stop_sequence.value().map(|word| &**word),
        );
        self.usage = later(self.usage, told.usage.as_deref().and_then(usage));
    }

    pub(super) fn told_stop(&mut self, word: Option<&str>, sequence: Option<&str>) {
        if let Some(word) = word {
            self.stop = Some((word.into(), sequence.map(Text::from)));
        }
    }

    /// What it came to: blocks that were told, and texts as far as they were streamed. `cut`: half a call is none.
    pub(super) fn content(self) -> Vec<Arc<Block>> {
        let each = self.blocks.into_values().filter_map(|growing| {
            growing.whole.clone().or_else(|| {
                let is_call = growing.kind == Kind::Input;
                (!is_call).then(|| growing.grown()).flatten()
            })
        });
        each.collect()
    }
}

impl Growing {
    /// How much of a text was shown, in pieces that don't say whose they are: they are its beginning, or end with it.
    fn shown_of(&self, text: &str) -> Option<usize> {
        if text.starts_with(&*self.text) {
            return Some(self.text.len());
        }
        let whole = !text.is_empty() && self.text.ends_with(text);
        whole.then_some(text.len())
    }

    /// What its pieces came to.
    fn grown(&self) -> Option<Arc<Block>> {
        let text = Text::from(&*self.text);
        Some(Arc::new(match self.kind {
            Kind::Text => Block::Text(text),
            Kind::Thinking => Block::Thinking {
                text,
                signature: (!self.signature.is_empty()).then(|| (&*self.signature).into()),
            },
            Kind::Input => {
                let (call, wire, name) = self.call.as_ref()?;
                Block::ToolUse {
                    call: *call,
                    provider_id: (!wire.is_empty()).then(|| (&**wire).into()),
                    name: name.clone(),
                    input: input_of(&self.text),
                }
            }
            Kind::Signature | Kind::Opaque => return None,
        }))
    }
}

/// The input of a call, as it was streamed. Nothing at all is an empty object.
fn input_of(text: &str) -> ToolInput {
    let text = if text.is_empty() { "{}" } else { text };
    match json::scan_value(text.as_bytes(), &ScanRules::LENIENT) {
        Ok(value) => super::convert::input(value),
        Err(_) => ToolInput::Unparsed(text.into()),
    }
}

/// What a block is, as it begins.
fn head(told: &WireBlock<'_>, out: &mut Out) -> (BlockHead, Kind, Option<(CallId, String, Text)>) {
    match told {
        WireBlock::Text(_) | WireBlock::InputText(_) => (BlockHead::Text, Kind::Text, None),
        WireBlock::Thinking(_) => (BlockHead::Thinking, Kind::Thinking, None),
        WireBlock::RedactedThinking(_) => (BlockHead::Redacted, Kind::Opaque, None),
        WireBlock::ToolUse(ToolUseBlock { id, name, .. }) => {
            let call = out.ids.call();
            let name = Text::from(&**name);
            let head = BlockHead::ToolUse {
                call,
                provider_id: (!id.is_empty()).then(|| (&**id).into()),
                name: name.clone(),
                runs: true,
            };
            (head, Kind::Input, Some((call, (&**id).into(), name)))
        }
        WireBlock::ToolResult(_)
        | WireBlock::Image(_)
        | WireBlock::Document(_)
        | WireBlock::Attachment(_)
        | WireBlock::Unknown(_) => (BlockHead::Opaque, Kind::Opaque, None),
    }
}

/// The text that a block is, of the kinds that are streamed as text.
fn text_of<'b>(told: &'b WireBlock<'_>) -> Option<&'b str> {
    match told {
        WireBlock::Text(it) => Some(&it.text),
        WireBlock::InputText(it) => Some(&it.text),
        WireBlock::Thinking(it) => Some(&it.thinking),
        WireBlock::RedactedThinking(_)
        | WireBlock::ToolUse(_)
        | WireBlock::ToolResult(_)
        | WireBlock::Image(_)
        | WireBlock::Document(_)
        | WireBlock::Attachment(_)
        | WireBlock::Unknown(_) => None,
    }
}

/// Whether two blocks are thinking of the same text.
fn differs_in_proof(one: &Block, other: &Block) -> bool {
    let text = |block: &Block| match block {
        Block::Thinking { text, .. } => Some(text.clone()),
        Block::Text(_)
        | Block::Redacted(_)
        | Block::Media { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque(_) => None,
    };
    text(one).is_some() && text(one) == text(other)
}
