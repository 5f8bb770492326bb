//! What an agent says. A thing is said as soon as it is true; a Server may hold
//! a line back, and never brings one forward.

use super::*;

/// Something that is true now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When: the time of the input that it came from.
    pub at: Now,
    /// The run that it belongs to; [`RunId::MAIN`] for the outermost agent.
    pub run: RunId,
    /// Whether the agent said so.
    pub seen: Seen,
    /// What.
    pub what: What,
}

/// Whether the agent behind a Client said a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Yes.
    Real,
    /// No: the Client made it up to keep the laws of the stream.
    Inferred,
}

/// What is true now.
///
/// Each start has exactly one end: turns, steps, requests, messages, tools,
/// questions, compactions, runs. What ended a turn, request or prompt is in its
/// end; a [`What::Notice`] ends nothing (S-68).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A session is there: the first event, and again after a change of session.
    Opened(Box<SessionInfo>),
    /// Settings, tools or the like changed; the whole of it as it is now. `history` is empty here.
    Changed(Box<SessionInfo>),
    /// The last output there is (S-55).
    Closed {
        /// Why.
        why: CloseWhy,
    },
    /// The one answer to a command (S-05).
    Replied {
        /// The command.
        command: CommandId,
        /// `Err`: nothing else changed.
        reply: Result<Answer, Refusal>,
    },
    /// A prompt waits, or moved to another lane.
    Queued {
        /// The prompt.
        prompt: PromptId,
        /// Where it waits.
        lane: Lane,
    },
    /// A prompt enters the history; its [`What::Message`] follows directly (S-11).
    PromptApplied {
        /// The prompt.
        prompt: PromptId,
        /// The turn; `None` outside any turn.
        turn: Option<TurnId>,
    },
    /// The one end of an admitted prompt (S-10).
    PromptEnded {
        /// The prompt.
        prompt: PromptId,
        /// How; that of its turn, if it was applied into one (S-16).
        end: End,
    },
    /// A turn begins.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Why.
        cause: Cause,
    },
    /// A turn is over; nothing of it is open, and only the ends of its prompts follow (S-13).
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How.
        end: End,
        /// What it came to, where it came to something.
        answer: Option<TurnAnswer>,
        /// What it took.
        report: Box<TurnReport>,
        /// What the session will do now.
        pending: Pending,
    },
    /// Nothing runs, nothing waits, nothing can wake the session by itself (S-15).
    Settled,
    /// A step begins: one model request with its attempts, and the tools that it asks for.
    StepStarted {
        /// The step.
        step: StepId,
        /// Its number in the turn, from 1.
        number: u32,
    },
    /// A step is over.
    StepEnded {
        /// The step.
        step: StepId,
    },
    /// How full the context is, before a step's first attempt.
    Context {
        /// Tokens that the request will take.
        used: u64,
        /// Tokens that the model can take.
        window: u64,
        /// Whether `used` is a guess.
        estimated: bool,
    },
    /// An attempt begins; its effect follows directly (S-65).
    RequestStarted {
        /// The attempt.
        request: RequestId,
        /// Its number in the step, from 1.
        attempt: u32,
    },
    /// An attempt is over, failed ones too.
    RequestEnded {
        /// The attempt.
        request: RequestId,
        /// How.
        outcome: RequestOutcome,
        /// The model that answered.
        model: ModelRef,
        /// The tokens it took; `None`: not reported.
        usage: Option<Usage>,
        /// The money it took.
        cost: Cost,
        /// From the start of the attempt to its end, in microseconds.
        api_us: u64,
    },
    /// An attempt failed and another one comes (S-20, S-24).
    RetryScheduled {
        /// The attempt to come, from 2.
        attempt: u32,
        /// The most attempts there may be.
        max: u32,
        /// How long the wait is, in microseconds; `None`: not said.
        wait_us: Option<u64>,
        /// What went wrong.
        why: Failure,
    },
    /// The end of what the first [`What::RetryScheduled`] of a request began: its success, giving up, or cancel.
    RetryEnded {
        /// Whether an attempt succeeded.
        ok: bool,
        /// The last failure; `None` after success or cancel.
        why: Option<Failure>,
    },
    /// The model begins to answer.
    MessageStarted {
        /// The message.
        message: MessageId,
        /// The attempt that it answers; `None`: not said.
        request: Option<RequestId>,
        /// The provider's id of it.
        provider_id: Option<Text>,
        /// The model, as the provider names it.
        model: Option<Text>,
        /// Usage as known at the start.
        usage: Option<Usage>,
    },
    /// A block of the open message begins.
    BlockStarted {
        /// The message.
        message: MessageId,
        /// Its number in the message, from 0.
        block: u32,
        /// What it is.
        head: BlockHead,
    },
    /// More text of a block, as an owned value: for tests, mirrors and recordings.
    /// A live agent lends it instead, as [`Output::Delta`].
    Delta {
        /// The message.
        message: MessageId,
        /// The block.
        block: u32,
        /// What kind of text.
        kind: Kind,
        /// The text, never empty.
        text: Text,
    },
    /// A block is whole. One that the model didn't finish is closed by [`What::MessageEnded`] alone.
    BlockEnded {
        /// The message.
        message: MessageId,
        /// The block.
        block: u32,
        /// Its content; shared with the message.
        content: Arc<Block>,
    },
    /// The open message is over. This is the authority on its content; deltas were a preview.
    MessageEnded {
        /// The message, whole.
        message: Arc<Message>,
        /// Why it stopped.
        stop: Stop,
        /// Whether it enters the history; `false` retracts what was shown of it.
        kept: bool,
        /// Whether its calls are all that will run.
        calls: CallList,
    },
    /// A message that enters the history without being streamed.
    Message(Arc<Message>),
    /// A call begins: it is judged, then perhaps run. Exactly one [`What::ToolEnded`] follows (S-30).
    ToolStarted {
        /// The call.
        call: CallId,
        /// The provider's id of it.
        provider_id: Option<Text>,
        /// The tool's name, as the model gave it.
        name: Text,
        /// The arguments; `None`: not said.
        input: Option<ToolInput>,
        /// Who called.
        cause: ToolCause,
        /// What the tool may do.
        side_effect: SideEffect,
    },
    /// The gate's verdict on a call: once for each call that it judged, before its end (S-37).
    Decided {
        /// The call.
        call: CallId,
        /// The verdict.
        verdict: Verdict,
    },
    /// News of a running call.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The news.
        partial: Progress,
        /// Since the tool began to run, in microseconds.
        elapsed_us: u64,
    },
    /// A call is over.
    ToolEnded {
        /// The call.
        call: CallId,
        /// How.
        outcome: ToolOutcome,
        /// What the model is told.
        content: Vec<Block>,
        /// How a host may show it.
        show: Option<Box<Show>>,
    },
    /// A call that never began and never will (S-30). The history pairs it with an error result.
    ToolSkipped {
        /// The call.
        call: CallId,
        /// Why.
        why: SkipWhy,
    },
    /// A file was changed.
    FileChanged {
        /// The call that did it; `None`: not said.
        call: Option<CallId>,
        /// The file.
        path: Text,
        /// The change, as a unified diff.
        diff: Text,
        /// Lines that came.
        added: u32,
        /// Lines that went.
        removed: u32,
    },
    /// Files were put aside before a call that writes.
    Checkpoint {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The call.
        call: CallId,
        /// The files.
        files: Vec<Text>,
    },
    /// Files were put back.
    Restored {
        /// The checkpoint; `None`: not said.
        checkpoint: Option<CheckpointId>,
        /// Files with their old content.
        restored: Vec<Text>,
        /// Files that weren't there before.
        deleted: Vec<Text>,
        /// Files left as they are.
        skipped: Vec<Text>,
    },
    /// A question to the host; exactly one [`What::AskClosed`] follows (S-32).
    Asked {
        /// The question's id.
        ask: AskId,
        /// The question.
        body: Ask,
    },
    /// A question is closed; whatever comes for it now changes nothing (L8).
    AskClosed {
        /// The question.
        ask: AskId,
        /// How.
        how: AskClose,
    },
    /// The history is being summarised.
    CompactionStarted {
        /// Why.
        trigger: Trigger,
        /// First and last sequence number of what is summarised, where the agent numbers its history.
        span: Option<(u64, u64)>,
        /// Tokens in use before.
        tokens: Option<u64>,
    },
    /// The history has been summarised, or not.
    CompactionEnded {
        /// What came of it.
        result: Result<Compacted, CompactionFault>,
    },
    /// News of the goal.
    Goal(GoalEvent),
    /// News of a job, with its whole record. One terminal record a job (S-57).
    Job(JobStep, Box<JobRecord>),
    /// A nested run begins.
    RunStarted {
        /// The run.
        run: RunId,
        /// What it is.
        kind: RunKind,
        /// For people.
        label: Text,
        /// The call that asked for it.
        call: Option<CallId>,
    },
    /// News of a nested run.
    RunProgress {
        /// The run.
        run: RunId,
        /// Steps so far.
        steps: u32,
        /// The tool it used last.
        last_tool: Option<Text>,
        /// Usage so far.
        usage: Option<Usage>,
        /// For people.
        text: Option<Text>,
    },
    /// A nested run is over; none of its questions is open (S-69).
    RunEnded {
        /// The run.
        run: RunId,
        /// How.
        status: RunStatus,
        /// Steps in all.
        steps: u32,
        /// Usage in all.
        usage: Option<Usage>,
        /// What it came to, for people.
        detail: Text,
    },
    /// A hook failed. What that means is the hook point's failure row; this ends nothing.
    HookFailed {
        /// The hook.
        hook: Text,
        /// Its point.
        point: HookPoint,
        /// What went wrong.
        detail: Text,
    },
    /// A hook refused the turn's end, and its refusal is durable (S-41); the turn goes on.
    CompletionRefused {
        /// The hook.
        hook: Text,
        /// What it said.
        reason: Text,
        /// Refusals honoured in this turn before this one (OM-30).
        continuation: u32,
        /// How many could still be honoured, this one among them.
        left: u32,
    },
    /// A remark; never terminal.
    Notice {
        /// How bad.
        level: Level,
        /// A word for programs.
        code: Option<Text>,
        /// A line for people.
        text: Text,
    },
}

/// Where a prompt waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// For the next boundary of the running turn.
    Steer,
    /// For the would-be end of the running turn.
    FollowUp,
    /// For a turn of its own.
    Next,
    /// For a turn of its own, after the others.
    Later,
}

/// Why a turn began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A prompt that started at once.
    Prompt,
    /// A prompt that waited.
    Queue,
    /// A background job ended.
    Job,
    /// The goal isn't met yet.
    Goal,
    /// A hook asked for it.
    Hook,
    /// A foreign agent doesn't say.
    NotSaid,
}

/// What the session will do after a turn's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Prompts that wait, held ones too.
    pub queued: u32,
    /// A finite job is alive whose end begins a turn.
    pub background: bool,
    /// Another turn begins with no more input.
    pub resumes: bool,
}

/// How a turn or a prompt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The model was done. The only success of a turn.
    Finished {
        /// The provider's own word for why it stopped; `None`: it gave none.
        finish: Option<Text>,
    },
    /// A prompt that needed no model.
    Local,
    /// The stream broke without a completion signal; what was shown is kept (TW-05).
    Truncated(Failure),
    /// The limit on steps.
    MaxSteps,
    /// A budget is spent; nothing was sent.
    BudgetExhausted(BudgetKind),
    /// A hook refused the end too often, or its refusal couldn't be stored.
    Unverified,
    /// A hook stopped the prompt; says why.
    Blocked(Text),
    /// The turn gave way after a compaction.
    Yielded {
        /// The last sequence number of what was summarised.
        to_sequence: u64,
    },
    /// A tool gave up for the whole turn.
    Aborted {
        /// Why.
        reason: Text,
    },
    /// The model's answer is unusable in part.
    Incomplete(Failure),
    /// A cancel (TW-07).
    Cancelled(CancelWhy),
    /// A prompt that was never applied.
    Dropped(DropWhy),
    /// A prompt that was taken back before it was applied.
    Withdrawn,
    /// It failed.
    Failed(Failure),
    /// A foreign agent doesn't say.
    NotSaid,
}

impl End {
    /// Whether the model was done: the only end that counts as success.
    pub const fn is_finished(&self) -> bool {
        matches!(self, End::Finished { .. })
    }

    /// Whether a cancel was the end.
    pub const fn is_cancelled(&self) -> bool {
        matches!(self, End::Cancelled(_))
    }

    /// Whether a prompt with this end can't have been applied (S-16).
    pub const fn is_unapplied(&self) -> bool {
        matches!(self, End::Dropped(_) | End::Withdrawn)
    }

    /// What went wrong, for ends that carry it.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            End::Truncated(failure) | End::Incomplete(failure) | End::Failed(failure) => {
                Some(failure)
            }
            End::Finished { .. }
            | End::Local
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Yielded { .. }
            | End::Aborted { .. }
            | End::Cancelled(_)
            | End::Dropped(_)
            | End::Withdrawn
            | End::NotSaid => None,
        }
    }
}

/// Which budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
}

/// Why a prompt was dropped before it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropWhy {
    /// A steer, and no turn ran.
    Idle,
    /// Its turn ended before it could be applied.
    TurnOver,
    /// Another session took over.
    SessionChanged,
    /// The session closed.
    Closed,
    /// A cancel emptied the queue.
    Cancelled,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnAnswer {
    /// The text of the model's last message.
    Text(Text),
    /// The checked input of a capture tool.
    Captured {
        /// The tool.
        tool: Text,
        /// The input.
        input: RawJson,
    },
}

/// What a turn took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnReport {
    /// From its start to its end, in microseconds.
    pub wall_us: u64,
    /// Of that, in model requests; `None`: not said.
    pub api_us: Option<u64>,
    /// Model requests, failed ones too; `None`: not said.
    pub requests: Option<u32>,
    /// Usage and cost of each model that was used, in order of first use.
    pub by_model: Vec<(ModelRef, Usage, Cost)>,
    /// The calls that were denied.
    pub denials: Vec<CallId>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// With a completion signal.
    Complete {
        /// The provider's word, verbatim.
        finish: Text,
    },
    /// Without one.
    Truncated,
    /// We stopped it.
    Cancelled,
    /// With an error.
    Failed(Failure),
}

/// What a block of a streamed message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockHead {
    /// Text for the person.
    Text,
    /// The model's thinking.
    Thinking,
    /// Thinking that the provider hides.
    Redacted,
    /// A tool call.
    ToolUse {
        /// The call.
        call: CallId,
        /// The provider's id of it.
        provider_id: Option<Text>,
        /// The tool's name.
        name: Text,
        /// Whether it will be run here; `false`: the provider runs it.
        runs: bool,
    },
    /// Something that only the provider understands.
    Opaque,
}

/// What kind of text a delta is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Text for the person; once shown, never retried (S-20).
    Text,
    /// The model's thinking.
    Thinking,
    /// The provider's proof of a thinking block.
    Signature,
    /// JSON text of a call's arguments.
    Input,
    /// Something that only the provider understands.
    Opaque,
}

/// How bad a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// For whoever debugs the agent.
    Debug,
    /// It goes on.
    Progress,
    /// Worth knowing.
    Info,
    /// Worth acting on.
    Warning,
    /// Something failed; what it ended says so itself.
    Error,
}

/// Why a session closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseWhy {
    /// It was asked to, and everything had finished.
    Drained,
    /// It was told to stop, and no signal was named.
    HostGone,
    /// It was told to stop because of a signal.
    Signal(Signal),
    /// It couldn't go on.
    Fault(Failure),
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What sort of thing.
    pub kind: FailureKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// Whether trying again may help.
    pub retryable: bool,
    /// For people; never holds a credential.
    pub text: Text,
}

impl Failure {
    /// A failure without a status that won't go away by trying again.
    pub fn new(kind: FailureKind, text: impl Into<Text>) -> Self {
        Self {
            kind,
            status: None,
            retryable: false,
            text: text.into(),
        }
    }
}

/// What sort of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The provider doesn't know us.
    Auth,
    /// The provider wants money, or a quota is used up.
    Billing,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider doesn't understand the request.
    InvalidRequest,
    /// The provider failed.
    Server,
    /// No response head came.
    Transport,
    /// The stream broke after the response head.
    StreamCut,
    /// The history doesn't fit the model's window.
    ContextFull,
    /// The answer passed its token limit.
    MaxOutput,
    /// A tool failed for the whole turn.
    Tool,
    /// A capture tool never got valid input.
    Capture,
    /// A hook failed.
    Hook,
    /// Something couldn't be stored.
    Store,
    /// The agent couldn't start.
    Setup,
    /// The input is unusable.
    Input,
    /// A fault of ours.
    Internal,
}

/// What a session is, and how it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub session: Text,
    /// Its name for people.
    pub name: Option<Text>,
    /// The file that keeps it; `None`: it isn't kept, or that isn't said.
    pub file: Option<Text>,
    /// Which run of the process this is; jobs of another one can't be stopped.
    pub generation: Text,
    /// The project's root.
    pub root: Option<Text>,
    /// The working directory.
    pub cwd: Text,
    /// The program and its version.
    pub product: Text,
    /// Whether it goes on from an earlier one.
    pub continued: bool,
    /// What came before, oldest first, at [`What::Opened`] alone; never live events (OM-03).
    pub history: Vec<Arc<Message>>,
    /// What a summary at the beginning of [`history`](SessionInfo::history) stands for, oldest first, at
    /// [`What::Opened`] alone: for people to read, no part of any request.
    pub summarised: Vec<Arc<Message>>,
    /// The model in use.
    pub model: ModelRef,
    /// Its name as sent to the provider, where that differs.
    pub api_model: Option<Text>,
    /// The thinking efforts that it knows.
    pub efforts: Vec<Text>,
    /// The settings.
    pub settings: Box<Settings>,
    /// Names of the tools that the model sees.
    pub tools: Vec<Text>,
    /// What the model is told first; empty where that isn't said.
    pub briefing: Briefing,
    /// The MCP servers that it uses itself; those that a host runs aren't among them.
    pub mcp: Vec<McpServer>,
    /// Slash commands: name, description, hint for the arguments.
    pub commands: Vec<(Text, Text, Text)>,
    /// Names of the skills.
    pub skills: Vec<Text>,
    /// Media types that prompts may hold.
    pub media: Vec<Text>,
}

/// What a model is told before the history, as of the next request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Briefing {
    /// The system text.
    pub system: Option<Text>,
    /// The tools that it sees.
    pub tools: Arc<[ToolSpec]>,
}

/// The settings as they stand; [`Setting`] changes one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How calls are approved.
    pub approvals: ApprovalMode,
    /// Thinking effort; `None`: the default.
    pub thinking: Option<Text>,
    /// How many steers a boundary takes.
    pub steer_drain: Drain,
    /// How many follow-ups a would-be end takes.
    pub follow_up_drain: Drain,
    /// What a steer does to running tools.
    pub interrupting: Interrupting,
    /// Whether failed requests are retried.
    pub auto_retry: bool,
    /// Whether the history is summarised at its mark.
    pub auto_compact: bool,
}
