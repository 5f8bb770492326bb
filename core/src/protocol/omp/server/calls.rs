//! Calls of tools while they run, and their results.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::message::{self, name_call};
use super::run::{Pen, Run, ours};
use crate::json::Raw;
use crate::protocol::omp::wire::{Any, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate};
use crate::vocab::*;

/// The most output of a running tool that an update repeats, in bytes: its tail.
const MOST_GATHERED: usize = 256 * 1024;

/// A call that runs.
#[derive(Debug)]
pub(super) struct Open {
    name: Text,
    args: Option<ToolInput>,
    /// Its output so far.
    gathered: Vec<Block>,
    /// The model made it, so its result is a message.
    of_model: bool,
}

/// The start of a call.
pub(super) struct ToolStart<'e> {
    pub(super) call: CallId,
    pub(super) provider_id: Option<&'e str>,
    pub(super) name: &'e Text,
    pub(super) input: Option<&'e ToolInput>,
    pub(super) cause: &'e ToolCause,
}

impl Run {
    pub(super) fn tool_started(&mut self, start: &ToolStart<'_>, pen: &mut Pen<'_>) {
        self.write_reply(None, pen);
        self.calls.insert(
            start.call,
            Open {
                name: start.name.clone(),
                args: start.input.cloned(),
                gathered: Vec::new(),
                of_model: matches!(start.cause, ToolCause::Model { .. }),
            },
        );
        let id = name_call(start.call, start.provider_id, &mut self.names);
        let line = ToolExecutionStart {
            tool_call_id: id.into(),
            tool_name: (&**start.name).into(),
            args: Any(Some(args(start.input))),
            ..ToolExecutionStart::default()
        };
        pen.printer.event(line, pen.out);
    }

    /// The call runs with other arguments.
    pub(super) fn decided(&mut self, call: CallId, input: Option<&RawJson>) {
        if let (Some(open), Some(input)) = (self.calls.get_mut(&call), input) {
            open.args = Some(ToolInput::Object(input.clone()));
        }
    }

    pub(super) fn tool_progress(&mut self, call: CallId, partial: &Progress, pen: &mut Pen<'_>) {
        let Some(open) = self.calls.get_mut(&call) else {
            return;
        };
        match partial {
            Progress::Alive => return,
            Progress::Replace(all) => open.gathered.clone_from(all),
            Progress::Append(more) => gather(&mut open.gathered, more),
        }
        let result = message::tool_output(&open.gathered, None, &mut self.names);
        let id = name_call(call, None, &mut self.names);
        let line = ToolExecutionUpdate {
            tool_call_id: id.into(),
            tool_name: (&*open.name).into(),
            args: Any(Some(args(open.args.as_ref()))),
            partial_result: ours(&result),
            ..ToolExecutionUpdate::default()
        };
        pen.printer.event(line, pen.out);
    }

    pub(super) fn tool_ended(
        &mut self,
        call: CallId,
        outcome: &ToolOutcome,
        content: &[Block],
        show: Option<&Show>,
        pen: &mut Pen<'_>,
    ) {
        let Some(open) = self.calls.remove(&call) else {
            return;
        };
        let details = show.and_then(|show| show.details.as_ref());
        let result = message::tool_output(content, details, &mut self.names);
        let id = name_call(call, None, &mut self.names);
        let line = ToolExecutionEnd {
            tool_call_id: id.into(),
            tool_name: (&*open.name).into(),
            result: ours(&result),
            is_error: Some(outcome.is_error()),
            ..ToolExecutionEnd::default()
        };
        pen.printer.event(line, pen.out);
        if open.of_model {
            let content = content.to_vec();
            self.result(call, open.name, outcome.is_error(), content, details, pen);
        }
        self.names.end(call);
    }

    /// A call that never began: it has a result all the same.
    pub(super) fn tool_skipped(&mut self, call: CallId, pen: &mut Pen<'_>) {
        self.write_reply(None, pen);
        // The mirror has paired it already.
        let id = MessageId::of_result(call);
        let history = pen.mirror.history();
        let found = history
            .iter()
            .rev()
            .find(|message| message.id == id)
            .cloned();
        if let Some(message) = found
            && let Role::Tool { name, .. } = &message.role
        {
            let content = message
                .content
                .iter()
                .map(|block| (**block).clone())
                .collect();
            self.result(call, name.clone(), true, content, None, pen);
        }
    }

    fn result(
        &mut self,
        call: CallId,
        name: Text,
        error: bool,
        content: Vec<Block>,
        details: Option<&RawJson>,
        pen: &mut Pen<'_>,
    ) {
        let message = Message {
            id: MessageId::of_result(call),
            role: Role::Tool { call, name, error },
            content: content.into_iter().map(Arc::new).collect(),
            origin: Origin::Harness,
            prompt: None,
            about: Some(call),
            at_ms: pen.now.unix_ms,
            details: None,
        };
        let json = message::plain(&message, false, details, &mut self.names);
        let json = self.write_plain(json, message.id, pen);
        if self.open {
            self.results.push(json);
        }
    }
}

fn args(input: Option<&ToolInput>) -> Raw<'_> {
    input.map_or(Raw::trusted("{}"), message::arguments)
}

/// Adds output to what was gathered: text joins text, and beyond the limit the oldest gives way.
fn gather(all: &mut Vec<Block>, more: &[Block]) {
    for block in more {
        match (all.last_mut(), block) {
            (Some(Block::Text(before)), Block::Text(text)) => {
                let mut joined = String::from(&**before);
                joined.push_str(text);
                let cut = joined.len().saturating_sub(MOST_GATHERED);
                let cut = joined.ceil_char_boundary(cut);
                *before = joined.get(cut..).unwrap_or_default().into();
            }
            (
                _,
                Block::Text(_)
                | Block::Thinking { .. }
                | Block::Redacted(_)
                | Block::Media { .. }
                | Block::ToolUse { .. }
                | Block::ToolResult { .. }
                | Block::Opaque(_),
            ) => all.push(block.clone()),
        }
    }
    let mut bytes: usize = all.iter().map(Block::bytes).fold(0, usize::saturating_add);
    while bytes > MOST_GATHERED && all.len() > 1 {
        bytes = bytes.saturating_sub(all.remove(0).bytes());
    }
}
