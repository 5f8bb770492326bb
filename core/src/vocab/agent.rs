//! The agent and its driver: inputs, effects, and the trait that every agent implements.

use super::*;

/// A piece of a provider's answer, in neutral form. Exactly one [`ModelChunk::End`] or
/// [`ModelChunk::Failed`] settles a request; nothing follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChunk<'a> {
    /// The answer begins. Shows nothing yet.
    Begin {
        /// The provider's id of the message.
        id: Option<&'a str>,
        /// The model, as the provider names it.
        model: Option<&'a str>,
    },
    /// Text for the person. Once a piece that isn't empty was shown, the request is never retried (S-20).
    Text(&'a str),
    /// The model's thinking.
    Thinking(&'a str),
    /// The provider's proof of the thinking block.
    Signature(&'a str),
    /// A whole block of hidden thinking.
    Redacted(&'a str),
    /// A call begins.
    CallBegin {
        /// The provider's number of it in the answer.
        index: u32,
        /// The provider's id; not unique, may be missing.
        id: Option<&'a str>,
        /// The tool's name.
        name: &'a str,
    },
    /// More of a call's arguments.
    CallArgs {
        /// The call.
        index: u32,
        /// JSON text, cut anywhere.
        text: &'a str,
    },
    /// A call's arguments are whole.
    CallEnd {
        /// The call.
        index: u32,
    },
    /// A sign of life; shows nothing, and doesn't hold off the stall timer.
    Alive,
    /// Tokens so far; the last report counts.
    Usage(Usage),
    /// The completion signal: the provider's word, verbatim. Deltas and usage may still follow.
    Finish(&'a str),
    /// The body ended. Without a `Finish` before, the answer is truncated.
    End,
    /// It failed.
    Failed {
        /// How. [`FailureKind::StreamCut`] is a stream that broke after its head: as an end without `Finish`.
        failure: Failure,
        /// Whether the endpoint was reached at all (OM-29).
        reached: bool,
        /// How long the provider wants to be left alone, in microseconds; unusable values are `None`.
        retry_after_us: Option<u64>,
    },
}

/// What an agent is told.
///
/// Model chunks and progress are *bulk*, and handed over only while
/// [`Agent::wants_bulk`]; everything else is control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A command of the host.
    Call(Call),
    /// More of a model's answer.
    Model {
        /// The request.
        request: RequestId,
        /// The piece.
        chunk: ModelChunk<'a>,
    },
    /// News of a call that the driver carries out; `Done` and `Detached` settle it.
    Tool {
        /// The call.
        call: CallId,
        /// The news.
        update: ToolUpdate,
    },
    /// A local hook's answer; settles it.
    Hook {
        /// The hook's run.
        hook: HookId,
        /// `Err`: it failed, and how.
        outcome: Result<HookReply, Text>,
    },
    /// A write is durable, or failed; settles it.
    Store {
        /// The write.
        write: WriteId,
        /// `Err`: it failed, and how.
        ok: Result<(), Text>,
    },
    /// News of a job.
    Job {
        /// The job.
        job: JobId,
        /// The news.
        update: JobUpdate,
    },
    /// A nested run says something.
    Run {
        /// The run.
        run: RunId,
        /// What.
        event: Box<Event>,
    },
    /// News of a shell command; `Done` settles it.
    Shell {
        /// The command that started it.
        command: CommandId,
        /// `Progress` or `Done`: the content is what it wrote, both streams and nothing else; the exit code is the
        /// result's [`Show::exit_code`].
        outcome: ToolUpdate,
    },
    /// Another session is there, or isn't; settles [`Effect::OpenSession`].
    Opened {
        /// The command that asked for it.
        command: CommandId,
        /// `Err`: why not; nothing has changed.
        other: Result<Box<OtherSession>, OpenFault>,
    },
    /// Tools and skills were read again; settles [`Effect::Reload`].
    Reloaded {
        /// The command that asked for it.
        command: CommandId,
        /// `Err`: why not.
        outcome: Result<Answer, Text>,
    },
    /// Files were put back, or would be; settles [`Effect::Restore`].
    Restored {
        /// The command that asked for it.
        command: CommandId,
        /// `Err`: why not; no file was touched.
        outcome: Result<Box<Restoration>, Text>,
    },
    /// The embedder has frozen its configuration anew. It counts from the next request and the next judged call on;
    /// where it belongs to a [`Effect::Reload`], that is settled after it.
    Refrozen {
        /// All of it.
        frozen: Box<Frozen>,
        /// A sentence for each change, for the model's next request. None: the model isn't told.
        changes: Vec<Text>,
    },
    /// The driver's own tools changed (MCP servers come and go); offered tools are another set.
    DriverTools {
        /// All of them.
        tools: Vec<ToolSpec>,
        /// The MCP servers, as they stand.
        mcp: Vec<McpServer>,
    },
    /// The driver caught a crash; ends the turn as failed, never silently (OM-24).
    Fault {
        /// What it was.
        detail: Text,
    },
    /// A deadline of [`Agent::poll_timeout`] has come.
    Woken,
}

impl Input<'_> {
    /// Whether it is bulk: model chunks that settle nothing, and progress.
    pub const fn is_bulk(&self) -> bool {
        match self {
            Input::Model { chunk, .. } => !chunk.settles(),
            Input::Tool { update, .. } => update.is_progress(),
            Input::Shell { outcome, .. } => outcome.is_progress(),
            Input::Job {
                update: JobUpdate::Output(_),
                ..
            } => true,
            Input::Job {
                update: JobUpdate::Ended(_) | JobUpdate::Unkept(_),
                ..
            }
            | Input::Call(_)
            | Input::Hook { .. }
            | Input::Store { .. }
            | Input::Run { .. }
            | Input::Opened { .. }
            | Input::Reloaded { .. }
            | Input::Restored { .. }
            | Input::Refrozen { .. }
            | Input::DriverTools { .. }
            | Input::Fault { .. }
            | Input::Woken => false,
        }
    }
}

impl ModelChunk<'_> {
    /// Whether it is the last chunk of its request.
    pub const fn settles(&self) -> bool {
        matches!(self, ModelChunk::End | ModelChunk::Failed { .. })
    }
}

/// News of a call or a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolUpdate {
    /// Output so far.
    Progress(Progress),
    /// Files were put aside; the call may run. Settles [`Effect::Snapshot`].
    Snapshotted {
        /// The files.
        files: Vec<Text>,
        /// The driver's number of the snapshot.
        sequence: u64,
    },
    /// It wants to reach a host of the network; answered by [`Effect::Allow`].
    NeedsNetwork {
        /// That host.
        host: Text,
    },
    /// It changed a file.
    FileChanged {
        /// The file.
        path: Text,
        /// The change, as a unified diff.
        diff: Text,
        /// Lines that came.
        added: u32,
        /// Lines that went.
        removed: u32,
    },
    /// It goes on as a job; settles the call.
    Detached(Box<JobStart>),
    /// It is over; settles the call.
    Done {
        /// How.
        outcome: ToolOutcome,
        /// What the model is told.
        content: Vec<Block>,
        /// How a host may show it.
        show: Option<Box<Show>>,
    },
}

impl ToolUpdate {
    /// Whether it is progress: it may come any number of times and settles nothing.
    pub const fn is_progress(&self) -> bool {
        match self {
            ToolUpdate::Progress(_) | ToolUpdate::FileChanged { .. } => true,
            ToolUpdate::Snapshotted { .. }
            | ToolUpdate::NeedsNetwork { .. }
            | ToolUpdate::Detached(_)
            | ToolUpdate::Done { .. } => false,
        }
    }
}

/// What the driver knows of a call that became a job. Its [`JobId`] is the number of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStart {
    /// Its name for hosts.
    pub id: Text,
    /// The run of the process that began it.
    pub generation: Text,
    /// What it is.
    pub kind: JobKind,
    /// What it runs.
    pub command: Text,
    /// For people.
    pub description: Option<Text>,
    /// Where it runs.
    pub cwd: Option<Text>,
    /// Whether it ends by itself.
    pub finite: bool,
    /// As [`JobRecord::times_ms`].
    pub times_ms: [Option<u64>; 4],
}

/// News of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobUpdate {
    /// What it wrote so far.
    Output(JobOutput),
    /// Its record can't be kept, and why. It goes on.
    Unkept(Text),
    /// It is over; settles it.
    Ended(JobState),
}

/// Work for the driver. Each is settled exactly once, a stopped one too (S-03).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send a request; its content is read with [`Agent::body`]. Settled by the last [`ModelChunk`].
    StartModel(RequestId),
    /// Give a request up. It still settles.
    StopModel(RequestId),
    /// Carry out a call. Settled by [`ToolUpdate::Done`] or [`ToolUpdate::Detached`].
    RunTool {
        /// The call.
        call: CallId,
    },
    /// Give a call up, or the snapshot before it. It still settles.
    StopTool(CallId),
    /// Make a job of a call, if it can be one: then [`ToolUpdate::Detached`] settles it. Else nothing comes of it.
    DetachTool(CallId),
    /// Put the files aside that a call may change. Settled by [`ToolUpdate::Snapshotted`], or, if it
    /// fails, by [`ToolUpdate::Done`].
    Snapshot {
        /// The call.
        call: CallId,
        /// The checkpoint to keep them under.
        checkpoint: CheckpointId,
    },
    /// Put files back, or say what that would change. Settled by [`Input::Restored`].
    Restore(CommandId),
    /// The answer to [`ToolUpdate::NeedsNetwork`].
    Allow {
        /// The call.
        call: CallId,
        /// Whether it may.
        ok: bool,
    },
    /// Run a local hook. Settled by [`Input::Hook`].
    RunHook {
        /// The run.
        hook: HookId,
    },
    /// Give a hook up. It still settles.
    StopHook(HookId),
    /// Make something durable. Settled by [`Input::Store`].
    Store(WriteId),
    /// Begin a nested run. Settled by its [`What::RunEnded`].
    StartRun {
        /// The run: minted by the outermost agent, below 2^24.
        run: RunId,
        /// The call that asks for it.
        call: CallId,
        /// What it is.
        kind: RunKind,
        /// The arguments.
        input: RawJson,
    },
    /// Give a nested run up. It still settles.
    StopRun(RunId),
    /// Hand a command to a nested run.
    CallRun(RunId, Box<Call>),
    /// Run a shell command. Settled by [`Input::Shell`].
    RunShell(CommandId),
    /// Give a shell command up. It still settles.
    StopShell(CommandId),
    /// End a job. Settled by [`JobUpdate::Ended`].
    StopJob(JobId),
    /// Make or open another session, and hold it ready. Settled by [`Input::Opened`]. The one that is open goes on until
    /// [`What::Opened`]: what is asked to be stored before that event belongs to it, what comes behind to the other.
    OpenSession(CommandId),
    /// Read tools and skills again. Settled by [`Input::Reloaded`].
    Reload(CommandId),
}

/// The embedder called wrongly; the state is unchanged (S-04). Nothing that a peer does is misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `now` is before an earlier one (L6).
    TimeWentBack,
    /// An id that the agent never gave out.
    NeverIssued,
    /// An effect that was settled already (L8).
    AlreadySettled,
    /// An id of another kind, or an input that isn't for it.
    WrongKind,
    /// Bulk beyond the hard mark, although [`Agent::wants_bulk`] was false (S-60).
    OverHardLimit,
    /// What can only be said before the first line.
    TooLate,
}

impl core::fmt::Display for Misuse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Misuse::TimeWentBack => "time went back",
            Misuse::NeverIssued => "an id that was never issued",
            Misuse::AlreadySettled => "an effect that is settled already",
            Misuse::WrongKind => "an input that isn't for this id",
            Misuse::OverHardLimit => "bulk beyond the hard limit",
            Misuse::TooLate => "what can only be said before the first line",
        })
    }
}

impl core::error::Error for Misuse {}

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
    /// The call whose files are to be put aside, for `Snapshot`.
    Snapshot {
        /// Its id.
        call: CallId,
        /// The tool's name, as declared.
        name: &'a str,
        /// The arguments that it will run with.
        input: &'a RawJson,
        /// The newest message: what the files are kept by.
        at: MessageId,
    },
    /// To where files go back, for `Restore`.
    Restore {
        /// As they were before everything that was put aside at this message or a later one.
        to: MessageId,
        /// The newest message: what is put aside of the files as they are now is kept by it.
        at: MessageId,
        /// Only say what would happen.
        dry_run: bool,
    },
    /// The call to carry out, for `RunTool`.
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
        /// The call that the facts are about, if there is one: the tool's name, and the arguments as they are now.
        tool: Option<(&'a str, &'a RawJson)>,
    },
    /// What to make durable, for `Store`.
    Write(WriteBody<'a>),
    /// The command to run, for `RunShell`.
    Shell {
        /// The command line.
        command: &'a str,
    },
    /// The session to open, for `OpenSession`.
    Open {
        /// Which.
        which: OpenBody<'a>,
        /// The file of the one that is open, as it was said ([`SessionInfo::file`]).
        from: Option<&'a str>,
    },
}

/// Which session to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenBody<'a> {
    /// A fresh one.
    New {
        /// The session that it comes from, as the host names it.
        parent: Option<&'a str>,
    },
    /// The one at a place, which is made if there is none.
    Open(&'a str),
    /// One that exists.
    Switch(&'a str),
    /// A fresh one that comes from the one that is open and begins with these messages of it, oldest first, every call
    /// with its result (OMP-19).
    Copy(&'a [Arc<Message>]),
}

/// A session that was made or opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherSession {
    /// Its id. That of the session that is open, with [`same`](OtherSession::same), if it is the very one.
    pub session: Text,
    /// Whether it is the one that is open already: it keeps its history.
    pub same: bool,
    /// Its name for people.
    pub name: Option<Text>,
    /// The file that keeps it.
    pub file: Option<Text>,
    /// Whether it goes on from an earlier process, or from another session.
    pub continued: bool,
    /// All that its turns wrote, as [`SessionInfo::history`].
    pub history: Vec<Arc<Message>>,
    /// The last nested run that anything is kept of, if there is one: those to come are numbered behind it.
    pub last_run: Option<RunId>,
}

/// Why another session isn't there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenFault {
    /// There is none.
    Missing,
    /// Sessions aren't kept here.
    Unkept,
    /// It can't be read or made, or somebody else has it; says which.
    Failed(Text),
}

/// What a durable write holds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WriteBody<'a> {
    /// The prompt of a turn, before its first step.
    Prompt(&'a [Arc<Message>]),
    /// Everything that the turn added to the history, at its end or at a step's end.
    Turn(&'a [Arc<Message>]),
    /// What the turn added to the history so far, and at its end a turn-end hook's refusal, before it is announced.
    Refusal(&'a [Arc<Message>]),
    /// What entered the history between two turns. Only the session's end waits for the write.
    Beside(&'a [Arc<Message>]),
    /// A setting that counts only once it is stored.
    Setting(&'a Setting),
    /// The host approved a tool's content: from now on it isn't asked about. Nothing waits for the write.
    Approval(&'a UnapprovedSource),
    /// The goal, as it is from now on.
    Goal(Option<&'a Goal>),
    /// Changes that came with an allow, all of them and in order, where one is to be kept ([`Keep::is_stored`]) or names
    /// directories, which are the driver's to let its tools use. Nothing waits for the write; it is asked for before the
    /// allowed call runs.
    Permissions(&'a [PermissionUpdate]),
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
