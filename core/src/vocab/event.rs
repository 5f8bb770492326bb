//! What an agent says.

use super::*;

/// Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event { pub at: Now, pub run: RunId, pub seen: Seen, pub what: What }

/// Seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen { Real, Inferred }

/// What.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Opened(Box<SessionInfo>), Changed(Box<SessionInfo>), Closed { why: CloseWhy },
    Replied { command: CommandId, reply: Result<Answer, Refusal> },
    Queued { prompt: PromptId, lane: Lane }, PromptApplied { prompt: PromptId, turn: Option<TurnId> }, PromptEnded { prompt: PromptId, end: End },
    TurnStarted { turn: TurnId, cause: Cause }, TurnEnded { turn: TurnId, end: End, answer: Option<TurnAnswer>, report: Box<TurnReport>, pending: Pending }, Settled,
    StepStarted { step: StepId, number: u32 }, StepEnded { step: StepId }, Context { used: u64, window: u64, estimated: bool },
    RequestStarted { request: RequestId, attempt: u32 }, RequestEnded { request: RequestId, outcome: RequestOutcome, model: ModelRef, usage: Option<Usage>, cost: Cost, api_us: u64 },
    RetryScheduled { attempt: u32, max: u32, wait_us: Option<u64>, why: Failure }, RetryEnded { ok: bool, why: Option<Failure> },
    MessageStarted { message: MessageId, request: Option<RequestId>, provider_id: Option<Text>, model: Option<Text>, usage: Option<Usage> },
    BlockStarted { message: MessageId, block: u32, head: BlockHead }, Delta { message: MessageId, block: u32, kind: Kind, text: Text }, BlockEnded { message: MessageId, block: u32, content: Arc<Block> },
    MessageEnded { message: Arc<Message>, stop: Stop, kept: bool, calls: CallList },
    Message(Arc<Message>),
    ToolStarted { call: CallId, provider_id: Option<Text>, name: Text, input: Option<ToolInput>, cause: ToolCause, side_effect: SideEffect },
    Decided { call: CallId, verdict: Verdict }, ToolProgress { call: CallId, partial: Progress, elapsed_us: u64 },
    ToolEnded { call: CallId, outcome: ToolOutcome, content: Vec<Block>, show: Option<Box<Show>> }, ToolSkipped { call: CallId, why: SkipWhy },
    FileChanged { call: Option<CallId>, path: Text, diff: Text, added: u32, removed: u32 }, Checkpoint { checkpoint: CheckpointId, call: CallId, files: Vec<Text> }, Restored { checkpoint: Option<CheckpointId>, restored: Vec<Text>, deleted: Vec<Text>, skipped: Vec<Text> },
    Asked { ask: AskId, body: Ask }, AskClosed { ask: AskId, how: AskClose },
    CompactionStarted { trigger: Trigger, span: Option<(u64, u64)>, tokens: Option<u64> }, CompactionEnded { result: Result<Compacted, CompactionFault> },
    Goal(GoalEvent), Job(JobStep, Box<JobRecord>), RunStarted { run: RunId, kind: RunKind, label: Text, call: Option<CallId> }, RunProgress { run: RunId, steps: u32, last_tool: Option<Text>, usage: Option<Usage>, text: Option<Text> }, RunEnded { run: RunId, status: RunStatus, steps: u32, usage: Option<Usage>, detail: Text },
    HookFailed { hook: Text, point: HookPoint, detail: Text }, CompletionRefused { hook: Text, reason: Text, continuation: u32, left: u32 },
    Notice { level: Level, code: Option<Text>, text: Text },
}

/// Lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane { Steer, FollowUp, Next, Later }

/// Cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause { Prompt, Queue, Job, Goal, Hook, NotSaid }

/// Pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending { pub queued: u32, pub background: bool, pub resumes: bool }

/// End.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End { Finished { finish: Option<Text> }, Local, Truncated(Failure), MaxSteps, BudgetExhausted(BudgetKind), Unverified, Blocked(Text), Yielded { to_sequence: u64 }, Aborted { reason: Text }, Incomplete(Failure), Cancelled(CancelWhy), Dropped(DropWhy), Withdrawn, Failed(Failure), NotSaid }

/// BudgetKind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetKind { Tokens, Money }

/// DropWhy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropWhy { Idle, TurnOver, SessionChanged, Closed, Cancelled }

/// TurnAnswer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnAnswer { Text(Text), Captured { tool: Text, input: RawJson } }

/// TurnReport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnReport { pub wall_us: u64, pub api_us: Option<u64>, pub requests: Option<u32>, pub by_model: Vec<(ModelRef, Usage, Cost)>, pub denials: Vec<CallId> }

/// RequestOutcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome { Complete { finish: Text }, Truncated, Cancelled, Failed(Failure) }

/// BlockHead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockHead { Text, Thinking, Redacted, ToolUse { call: CallId, provider_id: Option<Text>, name: Text, runs: bool }, Opaque }

/// Kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind { Text, Thinking, Signature, Input, Opaque }

/// Level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level { Debug, Progress, Info, Warning, Error }

/// CloseWhy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseWhy { Drained, HostGone, Signal(Signal), Fault(Failure) }

/// Failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure { pub kind: FailureKind, pub status: Option<u16>, pub retryable: bool, pub text: Text }

/// FailureKind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind { Auth, Billing, RateLimit, Overloaded, InvalidRequest, Server, Transport, StreamCut, ContextFull, MaxOutput, Tool, Capture, Hook, Store, Setup, Input, Internal }

/// SessionInfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo { pub session: Text, pub name: Option<Text>, pub generation: Text, pub root: Option<Text>, pub cwd: Text, pub product: Text, pub continued: bool, pub history: Vec<Arc<Message>>, pub model: ModelRef, pub api_model: Option<Text>, pub efforts: Vec<Text>, pub settings: Box<Settings>, pub tools: Vec<Text>, pub mcp: Vec<(Text, Text)>, pub commands: Vec<(Text, Text, Text)>, pub skills: Vec<Text>, pub media: Vec<Text> }

/// Settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings { pub approvals: ApprovalMode, pub thinking: Option<Text>, pub steer_drain: Drain, pub follow_up_drain: Drain, pub interrupting: Interrupting, pub auto_retry: bool, pub auto_compact: bool }
