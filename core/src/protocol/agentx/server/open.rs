//! A reply that is open: its blocks come out one after another.
//!
//! A provider may say several blocks at once, and a line has no form for that: a block that begins within another one
//! waits, with its pieces, until that one is whole. Blocks stand in the order in which they begin.
//!
//! The strict wire doesn't tell of attempts that fail: a call waits, and what stands behind it, until text is shown,
//! from where on no attempt is void, or until the reply is kept or the agent goes on with the call.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::blocks::{self, assistant_message, no_usage};
use super::printer::Printer;
use super::reply::{Pen, Style, all, first, parent, timestamp};
use super::sums;
use crate::json;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::{PartialForm, RecordForm};
use crate::protocol::agentx::wire::{AgentLine, Assistant, Usage as Used};
use crate::protocol::ids::Calls;
use crate::vocab::*;

/// A reply that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) message: MessageId,
    pub(super) id: String,
    pub(super) model: Text,
    usage: Option<Usage>,
    style: Style,
    /// The block that was begun and isn't whole, or whose record waits.
    at: Option<u32>,
    /// Calls wait: nothing has shown yet that the reply will be kept.
    holds: bool,
    /// The call that waits: it is the block at `at`.
    held: Option<Block>,
    /// Blocks that began within that one.
    later: VecDeque<Later>,
    /// Blocks that are out as records.
    written: BTreeSet<u32>,
}

/// What was said of a block while another one was open.
#[derive(Debug)]
struct Later {
    block: u32,
    /// `None`: nobody said that it begins.
    head: Option<BlockHead>,
    pieces: Vec<(Kind, String)>,
    /// All of it, once it is whole.
    content: Option<Block>,
}

impl Open {
    pub(super) fn new(
        message: MessageId,
        id: String,
        model: Text,
        usage: Option<Usage>,
        style: Style,
    ) -> Self {
        Open {
            message,
            id,
            model,
            usage,
            style,
            at: None,
            holds: style.form == RecordForm::Strict,
            held: None,
            later: VecDeque::new(),
            written: BTreeSet::new(),
        }
    }

    /// The block whose stop isn't out.
    pub(super) fn at(&self) -> Option<u32> {
        self.at.filter(|_| self.style.has_events())
    }

    /// A block begins.
    pub(super) fn start(&mut self, block: u32, head: &BlockHead, pen: &mut Pen<'_>) {
        let waits = self.later.iter().any(|later| later.block == block);
        if waits || self.at == Some(block) || self.written.contains(&block) {
            return;
        }
        if self.at.is_some() {
            self.later.push_back(Later {
                block,
                head: Some(head.clone()),
                pieces: Vec::new(),
                content: None,
            });
            return;
        }
        self.at = Some(block);
        if self.style.has_events() {
            start_block(block, head, pen);
        }
    }

    /// A piece of a block.
    pub(super) fn grow(
        &mut self,
        block: u32,
        kind: Kind,
        text: &str,
        printer: &mut Printer,
        out: &mut Outbox<Agentx>,
    ) {
        if kind == Kind::Text && !text.is_empty() {
            self.holds = false;
        }
        let Some(form) = self.style.partial else {
            return;
        };
        if self.at.is_none_or(|at| at == block) {
            write_piece(form, block, kind, text, printer, out);
            return;
        }
        let mut later = self.later.iter_mut();
        let Some(later) = later.find(|later| later.block == block) else {
            return;
        };
        match later.pieces.last_mut() {
            Some((last, whole)) if *last == kind => whole.push_str(text),
            Some(_) | None => later.pieces.push((kind, text.into())),
        }
    }

    /// A block is whole. The last record that is written for it.
    pub(super) fn end(&mut self, block: u32, content: &Block, pen: &mut Pen<'_>) -> Option<String> {
        if self.written.contains(&block) {
            return None;
        }
        if self.at.is_some_and(|at| at != block) {
            let mut later = self.later.iter_mut();
            match later.find(|later| later.block == block) {
                Some(later) => later.content = Some(content.clone()),
                None => self.later.push_back(Later {
                    block,
                    head: None,
                    pieces: Vec::new(),
                    content: Some(content.clone()),
                }),
            }
            return None;
        }
        if self.hold(block, content) {
            return None;
        }
        let first = self.tell(block, content, pen);
        let next = self.go_on(pen);
        first.or(next)
    }

    /// Keeps the record of a call back while its reply may still turn out to be void. Whether it does.
    fn hold(&mut self, block: u32, content: &Block) -> bool {
        if let Block::Text(text) = content
            && !text.is_empty()
        {
            self.holds = false;
        }
        let holds = self.holds && matches!(content, Block::ToolUse { .. });
        if holds {
            self.at = Some(block);
            self.held = Some(content.clone());
        }
        holds
    }

    /// Whether a call waits, and need not any longer if this is said.
    pub(super) fn is_due(&self, kind: Kind, text: &str) -> bool {
        self.held.is_some() && kind == Kind::Text && !text.is_empty()
    }

    /// Whether a call waits.
    pub(super) fn has_held(&self) -> bool {
        self.held.is_some()
    }

    /// The reply isn't void: what waits for that is told. The first record that is written.
    pub(super) fn release(&mut self, pen: &mut Pen<'_>) -> Option<String> {
        self.holds = false;
        let first = match (self.at, self.held.take()) {
            (Some(at), Some(held)) => self.tell(at, &held, pen),
            (None | Some(_), _) => None,
        };
        let next = self.go_on(pen);
        first.or(next)
    }

    fn tell(&mut self, block: u32, content: &Block, pen: &mut Pen<'_>) -> Option<String> {
        self.written.insert(block);
        let record = self.write_block(content, false, pen);
        self.stop(pen);
        record
    }

    /// The reply is over, and this is all of it: what isn't out yet is told. The last block stays open. The first record
    /// that is written.
    pub(super) fn tell_rest(
        &mut self,
        content: &[Arc<Block>],
        aborted: bool,
        pen: &mut Pen<'_>,
    ) -> Option<String> {
        let mut first = self.release(pen);
        while let Some(at) = self.at {
            let whole = usize::try_from(at).ok().and_then(|at| content.get(at));
            if let Some(whole) = whole
                && self.written.insert(at)
            {
                let record = self.write_block(whole, aborted, pen);
                first = first.or(record);
            }
            if self.later.is_empty() {
                break;
            }
            self.stop(pen);
            let next = self.go_on(pen);
            first = first.or(next);
        }
        for (index, block) in (0_u32..).zip(content) {
            if self.written.insert(index) {
                let record = self.write_block(block, aborted, pen);
                first = first.or(record);
            }
        }
        first
    }

    /// The reply is over and void: pieces that wait are shown, as those before them were. The last block stays open, and
    /// no record is written.
    pub(super) fn show_rest(&mut self, pen: &mut Pen<'_>) {
        while let Some(later) = self.later.pop_front() {
            if later.head.is_none() && later.pieces.is_empty() {
                continue;
            }
            self.stop(pen);
            self.begin(&later, pen);
        }
    }

    /// Tells of the blocks that waited, up to the next one that isn't whole or still has to wait. The first record that is written.
    fn go_on(&mut self, pen: &mut Pen<'_>) -> Option<String> {
        let mut first = None;
        while self.at.is_none() {
            let Some(later) = self.later.pop_front() else {
                break;
            };
            self.begin(&later, pen);
            if let Some(content) = &later.content
                && !self.hold(later.block, content)
            {
                let record = self.tell(later.block, content, pen);
                first = first.or(record);
            }
        }
        first
    }

    /// What was said of a block that waited.
    fn begin(&mut self, later: &Later, pen: &mut Pen<'_>) {
        if let Some(head) = &later.head {
            self.start(later.block, head, pen);
        }
        for (kind, text) in &later.pieces {
            self.grow(later.block, *kind, text, pen.printer, pen.out);
        }
    }

    fn stop(&mut self, pen: &mut Pen<'_>) {
        if let Some(block) = self.at.take()
            && self.style.has_events()
        {
            stop_block(block, pen.printer, pen.out);
        }
    }

    /// The usage that the reply began with.
    pub(super) fn first_usage<'a>(&self) -> Used<'a> {
        let form = self.style.form;
        match (self.usage, form) {
            (Some(usage), RecordForm::Provider) => sums::usage(usage, form),
            (Some(_) | None, _) => no_usage(form),
        }
    }

    /// The record of one block.
    pub(super) fn write_block(
        &self,
        content: &Block,
        aborted: bool,
        pen: &mut Pen<'_>,
    ) -> Option<String> {
        let form = self.style.form;
        let stamp = pen.printer.stamp();
        let time = timestamp(pen.now);
        let block = blocks::reply(content, form, pen.calls, pen.printer)?;
        let rich = form == RecordForm::Provider;
        let line = Assistant {
            message: assistant_message(
                &self.id,
                &self.model,
                Some(block),
                self.first_usage(),
                form,
            ),
            parent_tool_use_id: parent(pen.parent.as_deref()),
            session_id: (&*stamp.session).into(),
            uuid: stamp.uuid.as_str().into(),
            timestamp: rich.then(|| time.as_str().into()),
            aborted: (aborted && rich).then_some(true),
            user_message_uuid: first(pen.prompts),
            user_message_uuids: all(pen.prompts),
            ..Assistant::default()
        };
        let line = AgentLine::from(line);
        pen.printer.line(pen.out, |out| line.encode(out));
        drop(line);
        Some(stamp.uuid)
    }
}

fn start_block(block: u32, head: &BlockHead, pen: &mut Pen<'_>) {
    let calls: &mut Calls = pen.calls;
    pen.printer.stream(pen.out, |out| {
        out.extend_from_slice(b"{\"type\":\"content_block_start\",\"index\":");
        json::write_u64(out, u64::from(block));
        out.extend_from_slice(b",\"content_block\":");
        let fixed: &[u8] = match head {
            BlockHead::Text | BlockHead::Opaque => b"{\"type\":\"text\",\"text\":\"\"}",
            BlockHead::Thinking => b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}",
            BlockHead::Redacted => b"{\"type\":\"redacted_thinking\",\"data\":\"\"}",
            BlockHead::ToolUse {
                call,
                provider_id,
                name,
                ..
            } => {
                out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                json::write_str(out, blocks::name_call(*call, provider_id.as_deref(), calls));
                out.extend_from_slice(b",\"name\":");
                json::write_str(out, name);
                b",\"input\":{}}"
            }
        };
        out.extend_from_slice(fixed);
        out.push(b'}');
    });
}

fn write_piece(
    form: PartialForm,
    block: u32,
    kind: Kind,
    text: &str,
    printer: &mut Printer,
    out: &mut Outbox<Agentx>,
) {
    let head: &[u8] = match (form, kind) {
        (PartialForm::TextPiece, Kind::Text | Kind::Thinking) => {
            b"{\"type\":\"response.output_text.delta\",\"delta\":"
        }
        (PartialForm::TextPiece, Kind::Signature | Kind::Input | Kind::Opaque)
        | (PartialForm::Provider, Kind::Opaque) => return,
        (PartialForm::Provider, Kind::Text) => b"{\"type\":\"text_delta\",\"text\":",
        (PartialForm::Provider, Kind::Thinking) => b"{\"type\":\"thinking_delta\",\"thinking\":",
        (PartialForm::Provider, Kind::Signature) => b"{\"type\":\"signature_delta\",\"signature\":",
        (PartialForm::Provider, Kind::Input) => b"{\"type\":\"input_json_delta\",\"partial_json\":",
    };
    printer.stream(out, |out| {
        if form == PartialForm::Provider {
            out.extend_from_slice(b"{\"type\":\"content_block_delta\",\"index\":");
            json::write_u64(out, u64::from(block));
            out.extend_from_slice(b",\"delta\":");
        }
        out.extend_from_slice(head);
        json::write_str(out, text);
        out.push(b'}');
        if form == PartialForm::Provider {
            out.push(b'}');
        }
    });
}

pub(super) fn stop_block(block: u32, printer: &mut Printer, out: &mut Outbox<Agentx>) {
    printer.stream(out, |out| {
        out.extend_from_slice(b"{\"type\":\"content_block_stop\",\"index\":");
        json::write_u64(out, u64::from(block));
        out.push(b'}');
    });
}
