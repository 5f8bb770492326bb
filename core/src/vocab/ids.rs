//! Typed ids: counters, minted by whoever is named. Ids of the wire never come in here.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u64);
    )*};
}

ids! {
    /// A command; minted by the Server, answered by exactly one `Replied`.
    CommandId,
    /// A prompt; minted by the Server. A prompt that the session makes itself has the top bit set.
    PromptId,
    /// A turn: from idle to yield. Minted by the agent.
    TurnId,
    /// A step: one model exchange and the tools it asked for. Minted by the agent.
    StepId,
    /// One attempt of a step's model request. Minted by the agent.
    RequestId,
    /// A message of the history. Minted by the agent.
    MessageId,
    /// A tool call. Minted by the agent; the provider's own id travels beside it.
    CallId,
    /// A question to the host. Minted by the agent.
    AskId,
    /// One run of a local hook. Minted by the agent.
    HookId,
    /// One durable write. Minted by the agent.
    WriteId,
    /// A background job. Minted by the agent.
    JobId,
    /// A nested run. Minted by the outermost agent.
    RunId,
    /// A checkpoint of files. Minted by the agent.
    CheckpointId,
}

impl RunId {
    /// The run of the outermost agent itself.
    pub const MAIN: RunId = RunId(0);
}

impl PromptId {
    /// The bit that marks a prompt made by the session, not by a host.
    pub const SESSION_MADE: u64 = 1 << 63;

    /// Whether the session made this prompt (a goal's or a job's).
    pub const fn is_session_made(self) -> bool {
        self.0 & Self::SESSION_MADE != 0
    }
}

impl MessageId {
    /// The bit that marks a message made up by a [`Mirror`](crate::vocab::mirror::Mirror).
    const MADE_UP: u64 = 1 << 63;

    /// The summary that a mirror puts in the place of older messages, until the agent says its own.
    pub const MADE_SUMMARY: MessageId = MessageId(u64::MAX);

    /// The id under which a mirror keeps the result of a call. Agents mint ids from below.
    pub const fn of_result(call: CallId) -> MessageId {
        MessageId(Self::MADE_UP | call.0)
    }

    /// Whether a mirror made this message up.
    pub const fn is_made_up(self) -> bool {
        self.0 & Self::MADE_UP != 0
    }
}
