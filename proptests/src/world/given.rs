//! Inputs and outputs as owned values, to be kept, compared and played again.

use turnwire::vocab::*;

/// A piece of a model's answer, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// As [`ModelChunk::Begin`].
    Begin,
    /// As [`ModelChunk::Text`].
    Text(String),
    /// As [`ModelChunk::Thinking`].
    Thinking(String),
    /// As [`ModelChunk::Signature`].
    Signature(String),
    /// As [`ModelChunk::Redacted`].
    Redacted(String),
    /// As [`ModelChunk::CallBegin`].
    CallBegin {
        /// The provider's number of it.
        index: u32,
        /// The provider's id.
        id: Option<String>,
        /// The tool's name.
        name: String,
    },
    /// As [`ModelChunk::CallArgs`].
    CallArgs {
        /// The provider's number of the call.
        index: u32,
        /// JSON text.
        text: String,
    },
    /// As [`ModelChunk::CallEnd`].
    CallEnd {
        /// The provider's number of the call.
        index: u32,
    },
    /// As [`ModelChunk::Alive`].
    Alive,
    /// As [`ModelChunk::Usage`].
    Usage(Usage),
    /// As [`ModelChunk::Finish`].
    Finish(String),
    /// As [`ModelChunk::End`].
    End,
    /// As [`ModelChunk::Failed`].
    Failed {
        /// How.
        failure: Failure,
        /// Whether the endpoint was reached.
        reached: bool,
        /// How long to wait, in microseconds.
        retry_after_us: Option<u64>,
    },
}

impl Chunk {
    /// The chunk, lent.
    pub fn lend(&self) -> ModelChunk<'_> {
        match self {
            Chunk::Begin => ModelChunk::Begin {
                id: None,
                model: None,
            },
            Chunk::Text(text) => ModelChunk::Text(text),
            Chunk::Thinking(text) => ModelChunk::Thinking(text),
            Chunk::Signature(text) => ModelChunk::Signature(text),
            Chunk::Redacted(text) => ModelChunk::Redacted(text),
            Chunk::CallBegin { index, id, name } => ModelChunk::CallBegin {
                index: *index,
                id: id.as_deref(),
                name,
            },
            Chunk::CallArgs { index, text } => ModelChunk::CallArgs {
                index: *index,
                text,
            },
            Chunk::CallEnd { index } => ModelChunk::CallEnd { index: *index },
            Chunk::Alive => ModelChunk::Alive,
            Chunk::Usage(usage) => ModelChunk::Usage(*usage),
            Chunk::Finish(word) => ModelChunk::Finish(word),
            Chunk::End => ModelChunk::End,
            Chunk::Failed {
                failure,
                reached,
                retry_after_us,
            } => ModelChunk::Failed {
                failure: failure.clone(),
                reached: *reached,
                retry_after_us: *retry_after_us,
            },
        }
    }
}

impl From<&ModelChunk<'_>> for Chunk {
    fn from(chunk: &ModelChunk<'_>) -> Self {
        match chunk {
            ModelChunk::Begin { .. } => Chunk::Begin,
            ModelChunk::Text(text) => Chunk::Text((*text).into()),
            ModelChunk::Thinking(text) => Chunk::Thinking((*text).into()),
            ModelChunk::Signature(text) => Chunk::Signature((*text).into()),
            ModelChunk::Redacted(text) => Chunk::Redacted((*text).into()),
            ModelChunk::CallBegin { index, id, name } => Chunk::CallBegin {
                index: *index,
                id: id.map(str::to_owned),
                name: (*name).into(),
            },
            ModelChunk::CallArgs { index, text } => Chunk::CallArgs {
                index: *index,
                text: (*text).into(),
            },
            ModelChunk::CallEnd { index } => Chunk::CallEnd { index: *index },
            ModelChunk::Alive => Chunk::Alive,
            ModelChunk::Usage(usage) => Chunk::Usage(*usage),
            ModelChunk::Finish(word) => Chunk::Finish((*word).into()),
            ModelChunk::End => Chunk::End,
            ModelChunk::Failed {
                failure,
                reached,
                retry_after_us,
            } => Chunk::Failed {
                failure: failure.clone(),
                reached: *reached,
                retry_after_us: *retry_after_us,
            },
        }
    }
}

/// An input, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A command.
    Call(Call),
    /// A piece of a model's answer.
    Model(RequestId, Chunk),
    /// Any other input.
    Else(Input<'static>),
}

impl From<&Input<'_>> for Given {
    fn from(input: &Input<'_>) -> Self {
        Given::Else(match input {
            Input::Call(call) => return Given::Call(call.clone()),
            Input::Model { request, chunk } => return Given::Model(*request, Chunk::from(chunk)),
            Input::Tool { call, update } => Input::Tool {
                call: *call,
                update: update.clone(),
            },
            Input::Hook { hook, outcome } => Input::Hook {
                hook: *hook,
                outcome: outcome.clone(),
            },
            Input::Store { write, ok } => Input::Store {
                write: *write,
                ok: ok.clone(),
            },
            Input::Job { job, update } => Input::Job {
                job: *job,
                update: update.clone(),
            },
            Input::Run { run, event } => Input::Run {
                run: *run,
                event: event.clone(),
            },
            Input::Shell { command, outcome } => Input::Shell {
                command: *command,
                outcome: outcome.clone(),
            },
            Input::Opened { command, other } => Input::Opened {
                command: *command,
                other: other.clone(),
            },
            Input::Reloaded { command, outcome } => Input::Reloaded {
                command: *command,
                outcome: outcome.clone(),
            },
            Input::Restored { command, outcome } => Input::Restored {
                command: *command,
                outcome: outcome.clone(),
            },
            Input::Refrozen { frozen, changes } => Input::Refrozen {
                frozen: frozen.clone(),
                changes: changes.clone(),
            },
            Input::DriverTools { tools, mcp } => Input::DriverTools {
                tools: tools.clone(),
                mcp: mcp.clone(),
            },
            Input::Fault { detail } => Input::Fault {
                detail: detail.clone(),
            },
            Input::Woken => Input::Woken,
        })
    }
}

impl Given {
    /// The input, lent.
    pub fn input(&self) -> Input<'_> {
        match self {
            Given::Call(call) => Input::Call(call.clone()),
            Given::Model(request, chunk) => Input::Model {
                request: *request,
                chunk: chunk.lend(),
            },
            Given::Else(input) => input.clone(),
        }
    }

    /// News of a call.
    pub fn tool(call: CallId, update: ToolUpdate) -> Self {
        Given::Else(Input::Tool { call, update })
    }

    /// The plain end of a call.
    pub fn tool_done(call: CallId, outcome: ToolOutcome, text: &str) -> Self {
        let content = vec![Block::Text(Text::from(text))];
        Self::tool(
            call,
            ToolUpdate::Done {
                outcome,
                content,
                show: None,
            },
        )
    }
}

/// An output, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// An event.
    Event(Event),
    /// A delta.
    Delta {
        /// When.
        at: Now,
        /// Its run.
        run: RunId,
        /// Its message.
        message: MessageId,
        /// Its block.
        block: u32,
        /// Its kind.
        kind: Kind,
        /// Its text.
        text: String,
    },
    /// An effect.
    Effect(RunId, Effect),
}

impl From<&Output<'_>> for Said {
    fn from(output: &Output<'_>) -> Self {
        match output {
            Output::Event(event) => Said::Event((*event).clone()),
            Output::Delta(delta) => Said::Delta {
                at: delta.at,
                run: delta.run,
                message: delta.message,
                block: delta.block,
                kind: delta.kind,
                text: delta.text.to_owned(),
            },
            Output::Effect { run, effect } => Said::Effect(*run, effect.clone()),
        }
    }
}

impl core::fmt::Display for Said {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Said::Event(event) if event.run == RunId::MAIN => write!(f, "{:?}", event.what),
            Said::Event(event) => write!(f, "{:?}: {:?}", event.run, event.what),
            Said::Delta {
                message,
                block,
                kind,
                text,
                ..
            } => write!(f, "{kind:?} {message:?} {block}: {text:?}"),
            Said::Effect(_, effect) => write!(f, "!{effect:?}"),
        }
    }
}

impl Said {
    /// The output, lent.
    pub fn lend(&self) -> Output<'_> {
        match self {
            Said::Event(event) => Output::Event(event),
            Said::Delta {
                at,
                run,
                message,
                block,
                kind,
                text,
            } => Output::Delta(DeltaRef {
                at: *at,
                run: *run,
                message: *message,
                block: *block,
                kind: *kind,
                text,
            }),
            Said::Effect(run, effect) => Output::Effect {
                run: *run,
                effect: effect.clone(),
            },
        }
    }

    /// When; an effect doesn't say.
    pub fn at(&self) -> Option<Now> {
        match self {
            Said::Event(event) => Some(event.at),
            Said::Delta { at, .. } => Some(*at),
            Said::Effect(..) => None,
        }
    }

    /// What the event says, if it is one of the outermost agent.
    pub fn what(&self) -> Option<&What> {
        match self {
            Said::Event(event) if event.run == RunId::MAIN => Some(&event.what),
            Said::Event(_) | Said::Delta { .. } | Said::Effect(..) => None,
        }
    }
}
