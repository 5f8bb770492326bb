//! The agent and its driver: inputs, effects, and the trait that every agent implements.

use super::*;

/// ModelChunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChunk<'a> { Begin { id: Option<&'a str>, model: Option<&'a str> }, Text(&'a str), Thinking(&'a str), Signature(&'a str), Redacted(&'a str), CallBegin { index: u32, id: Option<&'a str>, name: &'a str }, CallArgs { index: u32, text: &'a str }, CallEnd { index: u32 }, Alive, Usage(Usage), Finish(&'a str), End, Failed { failure: Failure, reached: bool, retry_after_us: Option<u64> } }

/// Input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    Call(Call),
    Model { request: RequestId, chunk: ModelChunk<'a> },
    Tool { call: CallId, update: ToolUpdate },
    Hook { hook: HookId, outcome: Result<HookReply, Text> },
    Store { write: WriteId, ok: Result<(), Text> },
    Job { job: JobId, update: JobUpdate }, Run { run: RunId, event: Box<Event> }, Shell { command: CommandId, outcome: ToolUpdate },
    Opened { command: CommandId, info: Result<Box<SessionInfo>, Text> }, Reloaded { command: CommandId, outcome: Result<Answer, Text> }, Restored { checkpoint: CheckpointId, outcome: Result<Answer, Text> },
    DriverTools { tools: Vec<ToolSpec>, mcp: Vec<(Text, Text)> },
    Fault { detail: Text },
    Woken,
}

/// ToolUpdate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolUpdate { Progress(Progress), Snapshotted { files: Vec<Text>, sequence: u64 }, NeedsNetwork { host: Text }, FileChanged { path: Text, diff: Text, added: u32, removed: u32 }, Detached(Box<JobStart>), Done { outcome: ToolOutcome, content: Vec<Block>, show: Option<Box<Show>> } }

/// JobStart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStart { pub id: Text, pub generation: Text, pub kind: JobKind, pub command: Text, pub description: Option<Text>, pub cwd: Option<Text>, pub finite: bool, pub times_ms: [Option<u64>; 4] }

/// JobUpdate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobUpdate { Output(JobOutput), Ended(JobState) }

/// Effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    StartModel(RequestId), StopModel(RequestId),
    RunTool { call: CallId }, StopTool(CallId), DetachTool(CallId), Snapshot { call: CallId, checkpoint: CheckpointId }, Restore(CheckpointId), Allow { call: CallId, ok: bool },
    RunHook { hook: HookId }, StopHook(HookId), Store(WriteId),
    StartRun { run: RunId, call: CallId, kind: RunKind, input: RawJson }, StopRun(RunId),
     CallRun(RunId, Box<Call>), RunShell(CommandId), StopShell(CommandId), StopJob(JobId), OpenSession(CommandId), Reload(CommandId),
}

/// Misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse { TimeWentBack, NeverIssued, AlreadySettled, WrongKind, OverHardLimit }

/// What an agent gives, in order: one queue for events and effects (S-66).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<'a> {
    /// Something that is true now.
    Event(&'a Event),
    /// A piece of a message that is being streamed. The text is lent, so that a token allocates nothing.
    Delta(DeltaRef<'a>),
    /// Work for the driver.
    Effect {
        /// The run that asks for it.
        run: RunId,
        /// What to do.
        effect: Effect,
    },
}

/// A delta, lent by the agent that owns its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaRef<'a> {
    /// When it came.
    pub at: Now,
    /// The run whose message it belongs to.
    pub run: RunId,
    /// The open message.
    pub message: MessageId,
    /// The block's index in the message.
    pub block: u32,
    /// What kind of text it is.
    pub kind: Kind,
    /// The text, never empty.
    pub text: &'a str,
}

/// What an effect is about, lent by the agent for as long as the effect is live.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EffectBody<'a> {
    /// The request to send, for `StartModel`.
    Model(ModelRequest<'a>),
    /// The call to carry out, for `RunTool` and `Snapshot`.
    Tool {
        /// Its id.
        call: CallId,
        /// The tool's name, as declared.
        name: &'a str,
        /// The arguments, checked, after any change by a hook or the host.
        input: &'a RawJson,
    },
    /// What a local hook is told, for `RunHook`.
    Hook {
        /// The hook's name from the configuration.
        key: &'a str,
        /// Where in the turn it stands.
        point: HookPoint,
        /// The facts it judges.
        facts: HookFacts,
    },
    /// What to make durable, for `Store`.
    Write(WriteBody<'a>),
}

/// What a durable write holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WriteBody<'a> {
    /// The prompt of a turn, before its first step.
    Prompt(&'a [Arc<Message>]),
    /// Everything that the turn added to the history, at its end or at a step's end.
    Turn(&'a [Arc<Message>]),
    /// A turn-end hook's refusal, before it is announced.
    Refusal(&'a Message),
    /// A setting that counts only once it is stored.
    Setting(&'a Setting),
}

/// One request to a model, lent by the session: the provider module writes the body from it.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The model's name as the provider knows it.
    pub model: &'a str,
    /// System text, if any.
    pub system: Option<&'a str>,
    /// The history, oldest first; every call is paired with one result (S-31).
    pub messages: &'a [Arc<Message>],
    /// The tools the model may call.
    pub tools: &'a [ToolSpec],
    /// Largest output in tokens.
    pub max_output: Option<u64>,
    /// Thinking effort or level, in the provider's words.
    pub thinking: Option<&'a str>,
    /// Thinking budget in tokens.
    pub thinking_budget: Option<u64>,
}

/// An agent: a session, a pipeline, or a client behind a bridge.
///
/// The driver tells ([`handle`](Agent::handle)) and asks ([`poll_output`](Agent::poll_output)); nothing here waits.
pub trait Agent {
    /// Takes one input whole (S-01).
    ///
    /// # Errors
    /// [`Misuse`] when the embedder called wrongly; the state is then unchanged. Nothing that a
    /// peer, a model, a tool, a hook or a disk does is an error (L9).
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse>;

    /// The next output, lent; `None` in O(1) when nothing is queued.
    fn poll_output(&mut self) -> Option<Output<'_>>;

    /// When the agent wants `Input::Woken`; at once while output is queued (L3).
    fn poll_timeout(&self) -> Option<Due>;

    /// Whether commands may be handed over.
    fn wants_input(&self) -> bool;

    /// Whether model chunks and progress may be handed over. False first, so that a cancel passes a stalled reader.
    fn wants_bulk(&self) -> bool;

    /// What a live effect is about; `None` if it needs nothing more than its ids, or isn't live.
    fn body(&self, run: RunId, effect: &Effect) -> Option<EffectBody<'_>>;
}
