//! What the host said, until its end: prompts, and steers of both kinds.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Raw, Str};
use crate::protocol::member::Any;
use crate::protocol::openseek::wire::{
    Content, Event, Part, SteerApplied, SteerDropped, SteerKind,
};
use crate::protocol::wire::Hole;
use crate::vocab::{Block, MediaKind, PromptId, Source};

/// Prompts and steers that haven't ended.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    open: BTreeMap<PromptId, Said>,
}

/// One of them.
#[derive(Debug)]
pub(super) enum Said {
    /// Begins a turn, or waits for one.
    Prompt {
        applied: bool,
        /// Of one that needs no model: what the agent says.
        output: Option<String>,
    },
    /// Goes into the running turn.
    Steer(Steer),
}

/// What was said into a turn, as the host is told of it.
#[derive(Debug)]
pub(super) struct Steer {
    kind: SteerKind,
    /// The content, as JSON.
    content: String,
    /// The host's own name for it, as JSON.
    submission_id: Option<String>,
    pub(super) applied: bool,
}

impl Prompts {
    pub(super) fn book(&mut self, prompt: PromptId, said: Said) {
        self.open.insert(prompt, said);
    }

    pub(super) fn get_mut(&mut self, prompt: PromptId) -> Option<&mut Said> {
        self.open.get_mut(&prompt)
    }

    pub(super) fn end(&mut self, prompt: PromptId) -> Option<Said> {
        self.open.remove(&prompt)
    }

    /// Whether a prompt that came before this one still waits.
    pub(super) fn prompt_before(&self, id: PromptId) -> bool {
        let mut before = self.open.range(..id).map(|(_, said)| said);
        before.any(|said| matches!(said, Said::Prompt { applied: false, .. }))
    }

    /// Whether a command of the person's that came before this one still waits.
    pub(super) fn command_before(&self, id: PromptId) -> bool {
        let mut before = self.open.range(..id).map(|(_, said)| said);
        before
            .any(|said| matches!(said, Said::Steer(steer) if !steer.is_prompt() && !steer.applied))
    }

    /// All that never ended, oldest first.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Said> {
        core::mem::take(&mut self.open).into_values()
    }
}

impl Steer {
    pub(super) fn new(
        kind: SteerKind,
        content: &Content<'_>,
        submission_id: Option<&Str<'_>>,
    ) -> Self {
        Steer {
            kind,
            content: json(content),
            submission_id: submission_id.map(json),
            applied: false,
        }
    }

    pub(super) fn is_prompt(&self) -> bool {
        self.kind == SteerKind::Prompt
    }

    fn content(&self) -> Content<'_> {
        Raw::trusted(&self.content).decode().unwrap_or_default()
    }

    fn submission_id(&self) -> Any<'_> {
        Any(self.submission_id.as_deref().map(Raw::trusted))
    }

    /// The line of its way into the model.
    pub(super) fn applied(&self) -> Event<'_> {
        Event::from(SteerApplied {
            kind: self.kind.word().into(),
            content: self.content(),
            submission_id: self.submission_id(),
            ..SteerApplied::default()
        })
    }

    /// The line of one that came too late.
    pub(super) fn dropped(&self) -> Event<'_> {
        Event::from(SteerDropped {
            content: self.content(),
            submission_id: self.submission_id(),
            ..SteerDropped::default()
        })
    }
}

fn json(value: &impl Hole) -> String {
    let mut json = Vec::new();
    value.put(&mut json);
    String::from_utf8(json).unwrap_or_default()
}

/// What a person says, in neutral words.
pub(super) fn blocks(content: &Content<'_>) -> Vec<Block> {
    if let Some(text) = content.as_text() {
        return Vec::from([Block::Text(text.into())]);
    }
    let parts = content.as_parts().unwrap_or_default();
    let block = |part: &Part<'_>| match part {
        Part::Text(text) => Block::Text((&**text).into()),
        Part::Image { media_type, data } => Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                mime: (&**media_type).into(),
                base64: (&**data).into(),
            },
        },
    };
    parts.iter().map(block).collect()
}
