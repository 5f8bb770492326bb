//! The history of a mirror: messages in order, every finished call paired with one result.

use super::*;

/// Messages in order, and the calls of the last reply whose results may still come.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    messages: Vec<Arc<Message>>,
    batch: Batch,
}

/// The calls of one reply. Their results stand directly behind it, in call order,
/// in whatever order they end and whatever else enters the history meanwhile.
#[derive(Clone, Debug, Default)]
struct Batch {
    reply: Option<MessageId>,
    /// Where in the history the reply stands.
    at: usize,
    /// Name and state of each call; `true`: its result is in the history.
    calls: Vec<(CallId, Text, bool)>,
}

impl From<Vec<Arc<Message>>> for History {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages,
            batch: Batch::default(),
        }
    }
}

impl History {
    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// A reply of the model that is kept.
    pub(super) fn push_reply(&mut self, message: &Arc<Message>) {
        self.batch = Batch {
            reply: Some(message.id),
            at: self.messages.len(),
            calls: Vec::new(),
        };
        for block in &message.content {
            if let Block::ToolUse { call, name, .. } = &**block {
                self.batch.calls.push((*call, name.clone(), false));
            }
        }
        self.messages.push(Arc::clone(message));
    }

    /// A message that wasn't streamed. A result that an agent says itself takes
    /// the place of the one made up here; so does a summary.
    pub(super) fn push(&mut self, message: &Arc<Message>) {
        let place = match &message.role {
            Role::Tool { call, .. } => self.result_of(*call),
            Role::Summary => self
                .messages
                .iter()
                .position(|other| other.id == MessageId::MADE_SUMMARY),
            Role::User | Role::Assistant | Role::Note | Role::Shell | Role::Other(_) => None,
        };
        match place.and_then(|at| self.messages.get_mut(at)) {
            Some(made_up) => *made_up = Arc::clone(message),
            None => self.messages.push(Arc::clone(message)),
        }
    }

    /// A call began. One that its reply didn't list joins the list (a foreign agent may not list them).
    pub(super) fn call_started(&mut self, call: CallId, cause: &ToolCause) {
        let ToolCause::Model { message, .. } = cause else {
            return;
        };
        if self.batch.reply == Some(*message)
            && !self.batch.calls.iter().any(|(id, ..)| *id == call)
        {
            self.batch.calls.push((call, Text::from(""), false));
        }
    }

    pub(super) fn call_ended(
        &mut self,
        call: CallId,
        name: Option<Text>,
        outcome: &ToolOutcome,
        content: &[Block],
        at_ms: u64,
    ) {
        let content = content.iter().cloned().map(Arc::new).collect();
        self.pair(call, name, outcome.is_error(), content, at_ms);
    }

    pub(super) fn call_skipped(&mut self, call: CallId, why: SkipWhy, at_ms: u64) {
        let text = match why {
            SkipWhy::Cancelled => "not run: cancelled",
            SkipWhy::Truncated => "not run: the reply that made this call broke off",
            SkipWhy::TurnOver => "not run: the turn ended first",
            SkipWhy::Steered => {
                "not run: the user's message came first; call it again if it is still needed"
            }
        };
        self.pair(
            call,
            None,
            true,
            Vec::from([Arc::new(Block::Text(Text::from(text)))]),
            at_ms,
        );
    }

    /// Puts the result of a call of the last reply in its place. Other calls
    /// (made by tools, by the agent or by the host) aren't the model's, and have none.
    fn pair(
        &mut self,
        call: CallId,
        name: Option<Text>,
        error: bool,
        content: Vec<Arc<Block>>,
        at_ms: u64,
    ) {
        let Some(nth) = self
            .batch
            .calls
            .iter()
            .position(|(id, _, paired)| *id == call && !paired)
        else {
            return;
        };
        let earlier = self
            .batch
            .calls
            .iter()
            .take(nth)
            .filter(|(.., paired)| *paired)
            .count();
        let Some((_, listed, paired)) = self.batch.calls.get_mut(nth) else {
            return;
        };
        *paired = true;
        let message = Message {
            id: MessageId::of_result(call),
            role: Role::Tool {
                call,
                name: name.unwrap_or_else(|| listed.clone()),
                error,
            },
            content,
            origin: Origin::Harness,
            prompt: None,
            about: None,
            at_ms,
            details: None,
        };
        let place = self
            .batch
            .at
            .saturating_add(1)
            .saturating_add(earlier)
            .min(self.messages.len());
        self.messages.insert(place, Arc::new(message));
    }

    fn result_of(&self, call: CallId) -> Option<usize> {
        let made_up = MessageId::of_result(call);
        let near = self.messages.get(self.batch.at..)?;
        near.iter()
            .position(|message| message.id == made_up)
            .map(|at| at + self.batch.at)
    }

    /// Puts a summary in the place of what it stands for. An agent that says neither
    /// a summary nor what it kept leaves the history as it was: nothing is invented.
    pub(super) fn compact(&mut self, compacted: &Compacted, at_ms: u64) {
        let kept_from = match compacted.keep_from {
            Some(id) => self.messages.iter().position(|message| message.id == id),
            None => compacted.summary.as_ref().map(|_| self.messages.len()),
        };
        let Some(kept_from) = kept_from else { return };
        let summary = compacted.summary.as_ref().map(|text| {
            Arc::new(Message {
                id: MessageId::MADE_SUMMARY,
                role: Role::Summary,
                content: Vec::from([Arc::new(Block::Text(text.clone()))]),
                origin: Origin::Harness,
                prompt: None,
                about: None,
                at_ms,
                details: None,
            })
        });
        self.messages.splice(..kept_from, summary);
        // A compaction never stands between a call and its result (S-59): no batch is open.
        self.batch = Batch::default();
    }
}
