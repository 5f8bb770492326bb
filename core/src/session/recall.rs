//! History from the host.

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    vec::Vec,
};

use super::{Session, phase::Phase};
use crate::vocab::{Answer, Block, CallId, CommandId, Message, MessageId, Refusal, Role, What};

impl Session {
    /// `Recall`: appended, nothing runs. Messages and calls get ids of this session, for the host's may be anything.
    pub(super) fn recall(&mut self, command: CommandId, messages: Vec<Arc<Message>>) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        if !matches!(self.phase, Phase::Idle) {
            return self.refuse(command, Refusal::Busy);
        }
        if !is_paired(&messages) {
            let why = "each call must be followed by its one result, in the order of the calls";
            return self.refuse(command, Refusal::Invalid(why.into()));
        }
        let bytes = messages
            .iter()
            .map(|message| message.bytes())
            .fold(0, usize::saturating_add);
        if bytes > self.config.limits.queued_bytes {
            return self.refuse(command, Refusal::TooLarge);
        }
        self.answer(command, Answer::Done);
        let mut calls = BTreeMap::new();
        for message in messages {
            let message = self.recalled(&message, &mut calls);
            self.say(What::Message(message.clone()));
            self.remember_unsaved(message);
        }
    }

    /// A message of the host's as one of ours; `calls` maps its ids of calls to ours.
    fn recalled(
        &mut self,
        message: &Message,
        calls: &mut BTreeMap<CallId, CallId>,
    ) -> Arc<Message> {
        let mut content = Vec::with_capacity(message.content.len());
        for block in &message.content {
            let Block::ToolUse {
                call,
                provider_id,
                name,
                input,
            } = block.as_ref()
            else {
                content.push(block.clone());
                continue;
            };
            let ours = CallId(self.ids.call());
            calls.insert(*call, ours);
            content.push(Arc::new(Block::ToolUse {
                call: ours,
                provider_id: Some(self.fresh_provider_id(ours, provider_id.as_deref())),
                name: name.clone(),
                input: input.clone(),
            }));
        }
        let mut role = message.role.clone();
        if let Role::Tool { call, .. } = &mut role {
            *call = calls.get(call).copied().unwrap_or(*call);
            // A result without a word is a result all the same.
            if content.is_empty() {
                content.push(Arc::new(Block::Text("".into())));
            }
        }
        Arc::new(Message {
            id: MessageId(self.ids.message()),
            role,
            content,
            about: message.about.and_then(|call| calls.get(&call).copied()),
            ..Message::clone(message)
        })
    }
}

/// Whether every call has one result, in call order, directly behind its reply, and nothing else is one (S-31).
fn is_paired(messages: &[Arc<Message>]) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: VecDeque<CallId> = VecDeque::new();
    for message in messages {
        let nested = message
            .content
            .iter()
            .any(|block| matches!(**block, Block::ToolResult { .. }));
        let mut calls = message.calls();
        let fits = match &message.role {
            Role::Tool { call, .. } => open.pop_front() == Some(*call) && calls.next().is_none(),
            Role::Assistant => {
                let first = open.is_empty();
                open.extend(calls);
                first && open.iter().all(|call| seen.insert(*call))
            }
            Role::User | Role::Note | Role::Summary | Role::Shell | Role::Other(_) => {
                open.is_empty() && calls.next().is_none()
            }
        };
        if nested || !fits {
            return false;
        }
    }
    open.is_empty()
}
