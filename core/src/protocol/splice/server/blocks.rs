//! Messages as they stream: text, reasoning and arguments, each without its secrets however it is cut.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::super::Splice;
use super::super::wire::{Reasoning, Text as TextLine, ToolCallDelta, ToolCallStart, encode};
use super::{Face, Out};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::redact::{ArgStream, Secrets, Stream};
use crate::vocab::*;

/// A block: its run, its message and its number.
pub(super) type Key = (RunId, MessageId, u32);

/// What lines are written with.
pub(super) struct Lines<'a> {
    pub(super) run_id: &'a str,
    pub(super) secrets: &'a Secrets,
}

#[derive(Debug)]
enum Open {
    Text(Kind, Stream),
    Args { id: String, args: ArgStream },
}

/// The blocks that are open.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    open: BTreeMap<Key, Open>,
    scratch: String,
}

impl Blocks {
    fn start_text(&mut self, key: Key, kind: Kind) {
        self.open.insert(key, Open::Text(kind, Stream::default()));
    }

    fn start_args(&mut self, key: Key, id: String) {
        let args = ArgStream::default();
        self.open.insert(key, Open::Args { id, args });
    }

    /// A piece: the hot path. What may begin a secret stays here.
    pub(super) fn delta(
        &mut self,
        delta: &DeltaRef<'_>,
        line: &Lines<'_>,
        out: &mut Outbox<Splice>,
    ) {
        let key = (delta.run, delta.message, delta.block);
        let open = match self.open.get_mut(&key) {
            Some(open) => open,
            // An agent that says no beginnings of blocks.
            None if matches!(delta.kind, Kind::Text | Kind::Thinking) => {
                self.start_text(key, delta.kind);
                match self.open.get_mut(&key) {
                    Some(open) => open,
                    None => return,
                }
            }
            None => return,
        };
        self.scratch.clear();
        match (open, delta.kind) {
            (Open::Text(kind, stream), Kind::Text | Kind::Thinking) => {
                stream.push(line.secrets, delta.text, &mut self.scratch);
                put_text(*kind, &self.scratch, line, out);
            }
            (Open::Args { id, args }, Kind::Input) => {
                args.push(line.secrets, delta.text, &mut self.scratch);
                put_args(id, &self.scratch, line, out);
            }
            (Open::Text(..) | Open::Args { .. }, _) => {}
        }
    }

    /// The block is over: gives what was held back.
    pub(super) fn close(&mut self, key: Key, line: &Lines<'_>, out: &mut Outbox<Splice>) {
        let Some(open) = self.open.remove(&key) else {
            return;
        };
        self.scratch.clear();
        match open {
            Open::Text(kind, mut stream) => {
                stream.finish(line.secrets, &mut self.scratch);
                put_text(kind, &self.scratch, line, out);
            }
            Open::Args { id, mut args } => {
                args.finish(line.secrets, &mut self.scratch);
                put_args(&id, &self.scratch, line, out);
            }
        }
    }

    /// The oldest open block of a message; of any, if none is named.
    pub(super) fn first(&self, of: Option<(RunId, MessageId)>) -> Option<Key> {
        let mut keys = self.open.keys();
        let fits = |key: &&Key| of.is_none_or(|(run, message)| (key.0, key.1) == (run, message));
        keys.find(fits).copied()
    }
}

fn put_text(kind: Kind, text: &str, line: &Lines<'_>, out: &mut Outbox<Splice>) {
    if text.is_empty() {
        return;
    }
    let run_id = Str::from(line.run_id);
    let delta = Some(text.into());
    if kind == Kind::Thinking {
        let piece = Reasoning {
            delta,
            run_id,
            ..Reasoning::default()
        };
        out.line(|bytes| encode(&piece, bytes));
    } else {
        let piece = TextLine {
            delta,
            run_id,
            ..TextLine::default()
        };
        out.line(|bytes| encode(&piece, bytes));
    }
}

fn put_args(id: &str, text: &str, line: &Lines<'_>, out: &mut Outbox<Splice>) {
    if text.is_empty() {
        return;
    }
    let piece = ToolCallDelta {
        delta: Some(text.into()),
        id: id.into(),
        run_id: line.run_id.into(),
        ..ToolCallDelta::default()
    };
    out.line(|bytes| encode(&piece, bytes));
}

impl Face {
    pub(super) fn block_started(
        &mut self,
        run: RunId,
        message: MessageId,
        block: u32,
        head: &BlockHead,
        out: &mut Out,
    ) {
        let key = (run, message, block);
        match head {
            BlockHead::Text => self.blocks.start_text(key, Kind::Text),
            BlockHead::Thinking => self.blocks.start_text(key, Kind::Thinking),
            BlockHead::ToolUse {
                call,
                provider_id,
                name,
                runs,
            } => {
                let id = self.tools.name(*call, provider_id.as_deref(), *runs);
                self.put(
                    ToolCallStart {
                        id: Some(id.as_str().into()),
                        name: self.member(name),
                        run_id: self.id(),
                        ..ToolCallStart::default()
                    },
                    out,
                );
                self.blocks.start_args(key, id);
            }
            BlockHead::Redacted | BlockHead::Opaque => {}
        }
    }

    pub(super) fn close_block(&mut self, key: Key, out: &mut Out) {
        let line = Lines {
            run_id: &self.run_id,
            secrets: &self.config.secrets,
        };
        self.blocks.close(key, &line, out);
    }

    pub(super) fn close_message(&mut self, run: RunId, message: MessageId, out: &mut Out) {
        while let Some(key) = self.blocks.first(Some((run, message))) {
            self.close_block(key, out);
        }
    }

    /// Nothing streams any more.
    pub(super) fn close_blocks(&mut self, out: &mut Out) {
        while let Some(key) = self.blocks.first(None) {
            self.close_block(key, out);
        }
    }
}
