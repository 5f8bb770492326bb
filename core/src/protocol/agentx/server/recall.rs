//! What was said before: messages of a host that only inform, and run nothing.
//!
//! A reply that made calls is held until their results have come, since a history pairs each call with its result. A call
//! whose result never comes is left out: nothing is known of it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Face, Pending, blocks};
use crate::json::{self, Raw};
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::prompt::{Part, Prompt as Read};
use crate::protocol::agentx::wire::{self, Any, Content, History, Kept, ToolResultBlock};
use crate::vocab::*;

/// Calls of one reply whose results are waited for.
const MOST_CALLS: usize = 4_096;

/// A reply whose calls' results are still to come.
#[derive(Debug)]
pub(super) struct Recalling {
    content: Vec<Arc<Block>>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    wire: String,
    call: CallId,
    name: Text,
    result: Option<(Vec<Arc<Block>>, bool)>,
}

impl Recalling {
    fn is_whole(&self) -> bool {
        self.calls.iter().all(|call| call.result.is_some())
    }

    /// The reply and the results, as far as they came.
    fn messages(self, at_ms: u64) -> Vec<Arc<Message>> {
        let known = |call: CallId| {
            let mut calls = self.calls.iter();
            calls.any(|one| one.call == call && one.result.is_some())
        };
        let content = self.content.iter().filter(|block| match &***block {
            Block::ToolUse { call, .. } => known(*call),
            Block::Text(_)
            | Block::Thinking { .. }
            | Block::Redacted(_)
            | Block::Media { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_) => true,
        });
        let reply: Vec<Arc<Block>> = content.cloned().collect();
        let mut messages = Vec::new();
        if !reply.is_empty() {
            messages.push(said_before(Role::Assistant, reply, at_ms));
        }
        for call in self.calls {
            if let Some((content, error)) = call.result {
                let (call, name) = (call.call, call.name);
                let role = Role::Tool { call, name, error };
                messages.push(said_before(role, content, at_ms));
            }
        }
        messages
    }
}

fn said_before(role: Role, content: Vec<Arc<Block>>, at_ms: u64) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId(0),
        role,
        content,
        origin: Origin::History,
        prompt: None,
        about: None,
        at_ms,
        details: None,
    })
}

impl Face {
    /// A message of the user's that was said before, or results of calls that were made then.
    pub(super) fn recall(&mut self, read: &Read<'_>, out: &mut Outbox<Agentx>) {
        if let Some(uuid) = &read.uuid {
            self.prompts.stood((&**uuid).into());
        }
        let mut content = Vec::new();
        for part in &read.parts {
            match part {
                Part::Block(wire::Block::ToolResult(result)) => self.recall_result(result),
                Part::Text(_) | Part::Attachment(_) | Part::Block(_) => {
                    content.push(Arc::new(self.block(part)));
                }
            }
        }
        if self.recalling.as_ref().is_some_and(Recalling::is_whole) || !content.is_empty() {
            self.recall_held(out);
        }
        self.recall_message(Role::User, content, out);
    }

    /// The result of a call of the reply that is held; of any other call nothing is known.
    fn recall_result(&mut self, result: &ToolResultBlock<'_>) {
        let held = self.recalling.as_mut();
        let calls = held.map_or(&mut [][..], |held| held.calls.as_mut_slice());
        let call = calls
            .iter_mut()
            .find(|call| *call.wire == *result.tool_use_id && call.result.is_none());
        if let Some(call) = call {
            let content = result
                .content
                .as_ref()
                .map_or_else(Vec::new, result_content);
            call.result = Some((content, result.is_error == Some(true)));
        }
    }

    /// Says the reply that is held, with the results that have come.
    pub(super) fn recall_held(&mut self, out: &mut Outbox<Agentx>) {
        if let Some(held) = self.recalling.take() {
            let messages = held.messages(self.now.unix_ms);
            self.recall_all(messages, out);
        }
    }

    fn recall_message(&mut self, role: Role, content: Vec<Arc<Block>>, out: &mut Outbox<Agentx>) {
        if !content.is_empty() {
            let message = said_before(role, content, self.now.unix_ms);
            self.recall_all(Vec::from([message]), out);
        }
    }

    fn recall_all(&mut self, messages: Vec<Arc<Message>>, out: &mut Outbox<Agentx>) {
        if !messages.is_empty() {
            self.call(Command::Recall(messages), Pending::Quiet, out);
        }
    }

    /// A reply, or a `system` record, that was said before.
    pub(super) fn history(&mut self, history: &History<'_>, role: Role, out: &mut Outbox<Agentx>) {
        self.recall_held(out);
        let Some(message) = history.message.get() else {
            return;
        };
        let content = message.get_last("content").unwrap_or(message);
        if let Some(text) = content.string() {
            let text = Arc::new(Block::Text((&*text).into()));
            return self.recall_message(role, Vec::from([text]), out);
        }
        let is_reply = role == Role::Assistant;
        let mut held = Recalling {
            content: Vec::new(),
            calls: Vec::new(),
        };
        let written: Vec<Raw<'_>> = content.decode().unwrap_or_default();
        for block in written {
            let Ok(block) = block.decode::<wire::Block<'_>>() else {
                continue;
            };
            let call = if let wire::Block::ToolUse(block) = &block {
                Some(block).filter(|_| is_reply && held.calls.len() < MOST_CALLS)
            } else {
                None
            };
            let block = match call {
                Some(call) => held.call(call),
                None => spoken(&block, is_reply),
            };
            held.content.extend(block.map(Arc::new));
        }
        if held.calls.is_empty() {
            return self.recall_message(role, held.content, out);
        }
        self.recalling = Some(held);
    }

    /// A message of an earlier process, as the session remembers it: the host's id of it is known again.
    pub(super) fn spoke_before(&mut self, message: &Message) {
        let details = message.details.as_ref().map(blocks::raw);
        let uuid = details.and_then(|details| details.get_last("uuid")?.string());
        if let (Some(uuid), Role::User) = (uuid, &message.role) {
            self.prompts.stands((&*uuid).into(), message.id);
            self.replies.remember(message.id, String::from(&*uuid));
        }
    }
}

impl Recalling {
    /// A call of the reply. Its number counts within the reply: the session gives it one of its own.
    fn call(&mut self, block: &wire::ToolUseBlock<'_>) -> Option<Block> {
        if self.calls.iter().any(|call| *call.wire == *block.id) {
            return None;
        }
        let call = CallId(self.calls.len() as u64 + 1);
        let name = Text::from(&*block.name);
        self.calls.push(Call {
            wire: String::from(&*block.id),
            call,
            name: name.clone(),
            result: None,
        });
        let input = block.input;
        Some(Block::ToolUse {
            call,
            provider_id: Some((&*block.id).into()),
            name,
            input: ToolInput::Object(RawJson(if input.kind() == json::Kind::Object {
                input.as_str().into()
            } else {
                "{}".into()
            })),
        })
    }
}

/// A block of a message that was said before; `None`: it says nothing to a model.
fn spoken(block: &wire::Block<'_>, is_reply: bool) -> Option<Block> {
    match block {
        wire::Block::Text(block) => Some(Block::Text((&*block.text).into())),
        wire::Block::InputText(block) => Some(Block::Text((&*block.text).into())),
        wire::Block::Thinking(block) if is_reply => Some(Block::Thinking {
            text: (&*block.thinking).into(),
            signature: block.signature.as_deref().map(Into::into),
        }),
        wire::Block::RedactedThinking(block) if is_reply => {
            Some(Block::Redacted((&*block.data).into()))
        }
        wire::Block::Thinking(_)
        | wire::Block::RedactedThinking(_)
        | wire::Block::ToolUse(_)
        | wire::Block::ToolResult(_)
        | wire::Block::Image(_)
        | wire::Block::Document(_)
        | wire::Block::Attachment(_)
        | wire::Block::Unknown(_) => None,
    }
}

/// What a tool gave back, in neutral words.
fn result_content(content: &Content<'_>) -> Vec<Arc<Block>> {
    let blocks = match content {
        Content::Text(text) => return Vec::from([Arc::new(Block::Text((&**text).into()))]),
        Content::Blocks(blocks) => blocks,
    };
    blocks
        .iter()
        .filter_map(Kept::known)
        .filter_map(|block| {
            if let wire::Block::Image(image) = block {
                return Some(super::user::media(MediaKind::Image, image.source, block));
            }
            spoken(block, false)
        })
        .map(Arc::new)
        .collect()
}

/// Members of a prompt that the history keeps beside its text: the host's id of it, by which a later process knows it, and
/// what a tool gave that nobody asked the model about.
pub(super) fn details(uuid: Option<&str>, tool_use_result: Any<'_>) -> Option<RawJson> {
    if uuid.is_none() && tool_use_result.get().is_none() {
        return None;
    }
    let mut json = b"{".to_vec();
    if let Some(uuid) = uuid {
        crate::protocol::member::key(&mut json, "uuid");
        json::write_str(&mut json, uuid);
    }
    if let Some(result) = tool_use_result.get() {
        crate::protocol::member::key(&mut json, "tool_use_result");
        json::write_raw(&mut json, result);
    }
    json.push(b'}');
    Some(blocks::keep(&json))
}
