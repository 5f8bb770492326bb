//! What a script can know of a request: the texts its conditions and placeholders speak of.

use alloc::{format, string::String, vec::Vec};

use super::Condition;
use crate::vocab::{Block, Message, ModelRequest, Role};

pub(super) struct View {
    /// Text of the last message of the user.
    pub prompt: String,
    /// Text of the last tool result.
    pub result: String,
    /// Replies in the history.
    pub replies: u64,
    /// Number of the reply to come since the last user message.
    pub step: u64,
}

impl View {
    pub(super) fn of(request: &ModelRequest<'_>) -> View {
        let mut view = View {
            prompt: String::new(),
            result: String::new(),
            replies: 0,
            step: 1,
        };
        for message in request.messages {
            view.take(message);
        }
        view
    }

    fn take(&mut self, message: &Message) {
        match &message.role {
            Role::User => {
                self.prompt = text(message.content.iter().map(AsRef::as_ref));
                self.step = 1;
            }
            Role::Assistant => {
                self.replies += 1;
                self.step += 1;
            }
            Role::Tool { .. } => self.result = text(message.content.iter().map(AsRef::as_ref)),
            Role::Note | Role::Summary | Role::Shell | Role::Other(_) => {}
        }
        for block in &message.content {
            if let Block::ToolResult { content, .. } = block.as_ref() {
                self.result = text(content);
            }
        }
    }

    pub(super) fn fits(
        &self,
        condition: &Condition,
        request: &ModelRequest<'_>,
        number: u64,
    ) -> bool {
        match condition {
            Condition::Prompt(words) => holds(&self.prompt, words),
            Condition::Result(words) => holds(&self.result, words),
            Condition::Step(step) => self.step == *step,
            Condition::Request(request) => number == *request,
            Condition::Offered(name) => request.tools.iter().any(|tool| *tool.name == **name),
        }
    }

    /// Puts what the placeholders stand for in their places; other braces stay.
    pub(super) fn fill(&self, text: &str, request: &ModelRequest<'_>) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            match after
                .split_once('}')
                .and_then(|(name, behind)| Some((self.value(name, request)?, behind)))
            {
                Some((value, behind)) => {
                    filled.push_str(&value);
                    rest = behind;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    fn value(&self, name: &str, request: &ModelRequest<'_>) -> Option<String> {
        Some(match name {
            "prompt" => self.prompt.clone(),
            "last_result" => self.result.clone(),
            "last_result_lines" => format!(
                "{}",
                self.result
                    .lines()
                    .filter(|line| !line.trim().is_empty())
                    .count()
            ),
            "step" => format!("{}", self.step),
            "model" => request.model.into(),
            "tools" => request
                .tools
                .iter()
                .map(|tool| &*tool.name)
                .collect::<Vec<_>>()
                .join(", "),
            _ => return None,
        })
    }
}

fn text<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> String {
    let mut joined = String::new();
    for block in blocks {
        if let Block::Text(text) = block {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(text);
        }
    }
    joined
}

fn holds(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(&words.to_lowercase())
}
