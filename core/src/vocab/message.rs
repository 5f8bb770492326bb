//! Messages and their blocks: the history. Whole messages are shared, never copied.

use super::*;

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Text.
    Text(Text),
    /// The model's thinking.
    Thinking {
        /// What it thought.
        text: Text,
        /// The provider's proof, sent back unchanged.
        signature: Option<Text>,
    },
    /// Thinking that the provider hides, sent back unchanged.
    Redacted(Text),
    /// A picture or a document.
    Media {
        /// Which.
        kind: MediaKind,
        /// Where its bytes are.
        source: Source,
    },
    /// A call that the model made.
    ToolUse {
        /// Our id of it.
        call: CallId,
        /// The provider's; not unique, may be missing.
        provider_id: Option<Text>,
        /// The tool's name.
        name: Text,
        /// The arguments.
        input: ToolInput,
    },
    /// The result of a call.
    ToolResult {
        /// The call.
        call: CallId,
        /// What it gave.
        content: Vec<Block>,
        /// Whether it is an error.
        is_error: bool,
    },
    /// Something that only its protocol or provider understands, kept whole.
    Opaque(RawJson),
}

impl Block {
    /// The text of a text block.
    pub fn text(&self) -> Option<&str> {
        if let Block::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The bytes of its content, as the limits count them: all text, and base64 as it stands.
    pub fn bytes(&self) -> usize {
        match self {
            Block::Text(text) | Block::Redacted(text) => text.len(),
            Block::Thinking { text, signature } => {
                text.len() + signature.as_ref().map_or(0, |s| s.len())
            }
            Block::Media { source, .. } => match source {
                Source::Inline { mime, base64 } => mime.len() + base64.len(),
                Source::Stored(stored) => stored.blob.len() + stored.name.len(),
                Source::Url(url) => url.len(),
            },
            Block::ToolUse { name, input, .. } => name.len() + input.as_str().len(),
            Block::ToolResult { content, .. } => content
                .iter()
                .map(Block::bytes)
                .fold(0, usize::saturating_add),
            Block::Opaque(json) => json.as_str().len(),
        }
    }

    /// Whether it is text of white space alone.
    pub fn is_blank(&self) -> bool {
        self.text().is_some_and(|text| text.trim().is_empty())
    }
}

/// What a medium is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A document.
    Document,
}

/// Where the bytes of a medium are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Here.
    Inline {
        /// Media type.
        mime: Text,
        /// The bytes in standard base64.
        base64: Text,
    },
    /// With the embedder, handed over before.
    Stored(Arc<Stored>),
    /// Somewhere else.
    Url(Text),
}

/// A medium that the embedder keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The embedder's name for the bytes.
    pub blob: Text,
    /// The host's id of it.
    pub id: Text,
    /// Its file name, for people.
    pub name: Text,
    /// Media type.
    pub mime: Text,
    /// Length in bytes.
    pub size: u64,
    /// Digest of the bytes.
    pub sha256: [u8; 32],
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Whose it is.
    pub role: Role,
    /// What it says; blocks are shared with their [`What::BlockEnded`].
    pub content: Vec<Arc<Block>>,
    /// Who brought it in.
    pub origin: Origin,
    /// The prompt that it is.
    pub prompt: Option<PromptId>,
    /// The call that a note is about.
    pub about: Option<CallId>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// For hosts, never for the model.
    pub details: Option<RawJson>,
}

impl Message {
    /// Its text blocks, joined with nothing between.
    pub fn text(&self) -> String {
        self.texts().collect()
    }

    /// Its text blocks, one by one.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|block| block.text())
    }

    /// The calls that it names, in order.
    pub fn calls(&self) -> impl Iterator<Item = CallId> {
        self.content.iter().filter_map(|block| match &**block {
            Block::ToolUse { call, .. } => Some(*call),
            Block::Text(_)
            | Block::Thinking { .. }
            | Block::Redacted(_)
            | Block::Media { .. }
            | Block::ToolResult { .. }
            | Block::Opaque(_) => None,
        })
    }

    /// The bytes of its content, as the limits count them.
    pub fn bytes(&self) -> usize {
        self.content
            .iter()
            .map(|block| block.bytes())
            .fold(0, usize::saturating_add)
    }
}

/// Whose a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person's, or made on the person's behalf.
    User,
    /// The model's.
    Assistant,
    /// The result of a call.
    Tool {
        /// The call.
        call: CallId,
        /// The tool's name.
        name: Text,
        /// Whether it is an error.
        error: bool,
    },
    /// A remark of the agent for the model.
    Note,
    /// What a compaction put in the place of older messages.
    Summary,
    /// A command of the person's own, and what it gave. A session writes up to three blocks of text: `$ `, the command
    /// and a line feed; what it wrote, unless that is nothing; and, unless it ended well, how it ended. The details
    /// are `{"command", "exit_code"?, "cancelled", "timed_out", "truncated", "has_output"}`.
    Shell,
    /// A role that only its protocol understands.
    Other(Text),
}

/// Who brought a message in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The host.
    Host,
    /// A hook, by name.
    Hook(Text),
    /// Asks whether the goal is met.
    GoalCheck,
    /// Reminds of the goal.
    GoalReminder,
    /// Begins another turn for the goal.
    GoalContinue {
        /// How many more there may be.
        left: u32,
    },
    /// Reminds of the plan.
    PlanReminder,
    /// A background job.
    Job(JobId),
    /// Says that the person interrupted.
    Interrupted,
    /// The agent itself; the model's own answers too.
    Harness,
    /// An extension, by name.
    Extension(Text),
    /// It was there before the session began.
    History,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    End,
    /// It wants its calls carried out.
    ToolUse,
    /// The token limit.
    MaxTokens,
    /// It wrote a stop sequence.
    StopSequence(Text),
    /// It refuses.
    Refusal,
    /// The stream ended without a completion signal.
    Truncated,
    /// A cancel.
    Cancelled,
    /// Another session took over.
    Detached,
    /// An error.
    Failed,
    /// A foreign agent doesn't say.
    NotSaid,
    /// Another word of the provider's.
    Other(Text),
}

/// Whether a message lists all its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallList {
    /// Only calls that it lists will start.
    Complete,
    /// Tools may start that it doesn't list.
    NotReported,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput {
    /// A JSON object, as written.
    Object(RawJson),
    /// Text that isn't one; its call ends [`ToolOutcome::Invalid`].
    Unparsed(Text),
}

impl ToolInput {
    /// The arguments as text, valid or not.
    pub fn as_str(&self) -> &str {
        match self {
            ToolInput::Object(json) => json.as_str(),
            ToolInput::Unparsed(text) => text,
        }
    }
}
