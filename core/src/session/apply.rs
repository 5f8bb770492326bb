//! Prompts and the session's own messages enter the history.

use alloc::sync::Arc;

use super::{
    Session,
    phase::Turn,
    queue::prompts::{Kind, Waiting},
};
use crate::vocab::{Block, CallId, End, Message, MessageId, Origin, Role, Text, What};

impl Session {
    /// A prompt enters the history as part of a turn.
    pub(super) fn apply(&mut self, turn: &mut Turn, mut prompt: Waiting) {
        let message = self.message_of(&mut prompt);
        self.mark_prompt(prompt.id, message.id);
        self.say(What::PromptApplied {
            prompt: prompt.id,
            turn: Some(turn.id),
        });
        self.say(What::Message(message.clone()));
        self.remember(message);
        for (key, note) in prompt.notes {
            let message = self.own_message(Role::User, Origin::Hook(key), &note, None);
            turn.own.push(message);
        }
        turn.applied.push(prompt.id);
        if !prompt.id.is_session_made() && prompt.kind == Kind::Prompt {
            self.unblock_goal();
        }
    }

    /// A Context prompt outside any turn, or left over from one.
    pub(super) fn apply_idle(&mut self, mut prompt: Waiting) {
        let message = self.message_of(&mut prompt);
        self.mark_prompt(prompt.id, message.id);
        self.say(What::PromptApplied {
            prompt: prompt.id,
            turn: None,
        });
        self.say(What::Message(message.clone()));
        self.remember_unsaved(message);
        for (key, note) in prompt.notes {
            let message = self.own_message(Role::User, Origin::Hook(key), &note, None);
            self.say(What::Message(message.clone()));
            self.remember_unsaved(message);
        }
        self.say(What::PromptEnded {
            prompt: prompt.id,
            end: End::Local,
        });
    }

    /// The message of a prompt, made once.
    pub(super) fn message_of(&mut self, prompt: &mut Waiting) -> Arc<Message> {
        if let Some(message) = &prompt.message {
            return message.clone();
        }
        let content = core::mem::take(&mut prompt.content);
        let message = Arc::new(Message {
            id: MessageId(self.ids.message()),
            role: Role::User,
            content: content.into_iter().map(Arc::new).collect(),
            origin: prompt.origin.clone(),
            prompt: Some(prompt.id),
            about: None,
            at_ms: self.now.unix_ms,
            details: prompt.details.take(),
        });
        prompt.message = Some(message.clone());
        message
    }

    /// A message that the session itself puts into the history.
    pub(super) fn own_message(
        &mut self,
        role: Role,
        origin: Origin,
        text: &str,
        about: Option<CallId>,
    ) -> Arc<Message> {
        Arc::new(Message {
            id: MessageId(self.ids.message()),
            role,
            content: alloc::vec![Arc::new(Block::Text(text.into()))],
            origin,
            prompt: None,
            about,
            at_ms: self.now.unix_ms,
            details: None,
        })
    }

    /// What a pre-tool hook adds: it enters with the next step.
    pub(super) fn make_note(&mut self, key: &Text, call: CallId, text: &str) -> Arc<Message> {
        self.own_message(Role::User, Origin::Hook(key.clone()), text, Some(call))
    }
}
