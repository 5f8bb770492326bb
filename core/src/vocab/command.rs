//! What a host asks of an agent.

use super::*;

/// A command with its id. It is answered by exactly one [`What::Replied`], `Err`
/// meaning that nothing else changed (S-05). After [`What::Closed`] nothing at all is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Minted by the Server; ids of the wire stay in its map.
    pub id: CommandId,
    /// What is asked.
    pub command: Command,
}

/// What a host may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Input for the model. Gives [`Answer::Admitted`], and then one [`What::PromptEnded`] (S-10).
    Prompt(Prompt),
    /// Takes a prompt out of its queue. Gives [`Answer::Withdrawn`].
    Withdraw(PromptId),
    /// Runs a waiting prompt before all others: at once when idle, else as a steer.
    Promote(PromptId),
    /// Stops something. Gives [`Answer::Cancelling`].
    Cancel {
        /// What to stop.
        what: CancelWhat,
        /// On whose behalf; ends up in [`End::Cancelled`].
        why: CancelWhy,
    },
    /// Answers a question. The first decisive answer wins (TW-06); a later one is `Err(AlreadySettled)`.
    Reply {
        /// The question.
        ask: AskId,
        /// The answer, or why there is none.
        reply: Result<Reply, ReplyFault>,
    },
    /// Progress of a host's tool; dropped if its call isn't running.
    ReplyPart {
        /// The question.
        ask: AskId,
        /// What it has so far.
        content: Vec<Block>,
    },
    /// Changes a setting; [`What::Changed`] follows the reply.
    Set(Setting),
    /// Offers things that the host serves.
    Offer(Offer),
    /// Appends history from the host; runs nothing.
    Recall(Vec<Arc<Message>>),
    /// Summarises the history. `Done` means begun or queued; [`What::CompactionEnded`] is the outcome.
    Compact {
        /// What the summary should keep in mind.
        instructions: Option<Text>,
    },
    /// Puts files back that the agent's tools have changed. Gives [`Answer::Rewound`]; [`What::Restored`] follows, but not
    /// on a dry run. The history stays as it is. [`Refusal::Unknown`]: no such prompt, or too long ago.
    Rewind {
        /// To where.
        to: RewindTo,
        /// Only say what would happen.
        dry_run: bool,
    },
    /// Reads tools and skills again. Gives [`Answer::Reloaded`].
    Reload,
    /// About the goal. Gives [`Answer::Goal`].
    Goal(GoalCommand),
    /// About background jobs.
    Job(JobCommand),
    /// Runs a command of the person's own beside the turn. Gives [`Answer::Shell`] at its end.
    Shell {
        /// The command line.
        command: Text,
    },
    /// Changes to another session. Gives [`Answer::Session`].
    Session(SessionCommand),
    /// Gives a prompt to a nested run.
    SteerRun {
        /// The run.
        run: RunId,
        /// The prompt.
        prompt: Prompt,
    },
    /// Replied to when every earlier command has taken effect: a consistent point for queries.
    Barrier,
    /// Ends the session; [`What::Closed`] is the last thing it says (S-55).
    Close {
        /// Finish what runs and waits first; `false`: cancel it.
        drain: bool,
    },
}

/// One input to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Minted by the Server; a prompt that the session makes itself has [`PromptId::SESSION_MADE`] set.
    pub id: PromptId,
    /// The host's own name for it, carried along as data.
    pub tag: Option<Text>,
    /// What it says.
    pub content: Vec<Block>,
    /// When it should reach the model.
    pub deliver: Deliver,
    /// Take it as it is: no slash commands, no expansion.
    pub literal: bool,
    /// For hosts, never for the model; its message carries it ([`Message::details`]).
    pub details: Option<RawJson>,
}

impl Prompt {
    /// The bytes of its content and details, as the limits count them: all text, and base64 as it stands.
    pub fn bytes(&self) -> usize {
        let details = self.details.as_ref().map_or(0, |json| json.0.len());
        self.content
            .iter()
            .map(Block::bytes)
            .fold(details, usize::saturating_add)
    }

    /// Whether nothing in it would tell the model anything: no content, or blank text alone.
    pub fn is_blank(&self) -> bool {
        self.content.iter().all(Block::is_blank)
    }
}

/// When a prompt should reach the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deliver {
    /// Now, or not at all: `Err(Busy)` in a turn.
    IfIdle,
    /// In a turn of its own, after this one.
    Queue(Rank),
    /// At the next boundary of the running turn, and before it may finish.
    Steer {
        /// What happens to it when no turn runs.
        idle: IdleSteer,
    },
    /// When the running turn would otherwise end, in the same turn.
    FollowUp,
    /// As background for the model: it causes no turn and no step (S-19).
    Context,
    /// Now: the running turn is cancelled, and this prompt is the next.
    Preempt,
}

/// Order among prompts that wait for a turn of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Before all [`Rank::Later`] ones.
    Next,
    /// After all [`Rank::Next`] ones.
    Later,
}

/// What happens to a steer when no turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleSteer {
    /// It begins a turn.
    Start,
    /// It ends [`DropWhy::Idle`].
    Drop,
    /// It goes with the next waiting prompt; if none waits it ends [`DropWhy::Idle`].
    DropUnlessQueued,
}

/// What a cancel should stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelWhat {
    /// The running turn, or a compaction by hand.
    Turn {
        /// What becomes of the prompts that wait.
        queue: QueueFate,
    },
    /// The running turn; when idle the oldest waiting prompt.
    TurnElseNextQueued,
    /// The wait before a retry: the turn ends as failed.
    Retry,
    /// A compaction; the turn goes on without it.
    Compaction,
    /// The shell commands that run.
    Shell,
    /// One job.
    Job(JobId),
    /// One nested run; the turn goes on.
    Run(RunId),
    /// The turn, shells, jobs, runs, and every prompt that waits.
    Everything,
}

/// What becomes of waiting prompts when a turn is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFate {
    /// They wait until the next prompt or `Promote`.
    Keep,
    /// The next one runs.
    Run,
    /// They end [`DropWhy::Cancelled`].
    Drop,
}

/// On whose behalf something is cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelWhy {
    /// The host asked.
    Host,
    /// The process got a signal.
    Signal(Signal),
    /// The host went away.
    PeerGone,
    /// Another prompt wants to run now.
    Preempted(PromptId),
    /// A denial with interrupt.
    Denied(CallId),
    /// Another session takes its place.
    Switch,
    /// The protocol can't go on; says why.
    Fault(Text),
}

impl CancelWhy {
    /// The signal that it is.
    pub const fn signal(&self) -> Option<Signal> {
        match self {
            CancelWhy::Signal(signal) => Some(*signal),
            CancelWhy::Host
            | CancelWhy::PeerGone
            | CancelWhy::Preempted(_)
            | CancelWhy::Denied(_)
            | CancelWhy::Switch
            | CancelWhy::Fault(_) => None,
        }
    }
}

/// A signal to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    Hangup,
}

impl Signal {
    /// The exit code that shells expect of a process ended by it: 128 + its number.
    pub const fn exit_code(self) -> u8 {
        match self {
            Signal::Hangup => 129,
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// A setting and its new value. Model, thinking and budgets count from the next
/// request; the mode from the next call that is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// How calls are approved.
    Approvals(ApprovalMode),
    /// The model's name; `None`: the default.
    Model(Option<Text>),
    /// Thinking effort, in the provider's words; `None`: the default.
    Thinking(Option<Text>),
    /// Thinking budget in tokens; `None`: the default.
    ThinkingBudget(Option<u64>),
    /// How many steers a boundary takes.
    SteerDrain(Drain),
    /// How many follow-ups a would-be end takes.
    FollowUpDrain(Drain),
    /// What a steer does to running tools.
    Interrupting(Interrupting),
    /// Whether failed requests are retried.
    AutoRetry(bool),
    /// Whether the history is summarised at its mark.
    AutoCompact(bool),
    /// The session's name for people.
    Name(Text),
}

/// How calls are approved. Deny rules hold in every mode (S-34).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Everything runs.
    Auto,
    /// Edits run; what else changes something is asked.
    AcceptEdits,
    /// What changes something is asked.
    Ask,
    /// What changes something is denied.
    ReadOnly,
    /// As [`ApprovalMode::ReadOnly`], while a plan is made.
    Plan,
    /// What would be asked is denied.
    Never,
    /// Judged by the embedder's rules; refused where there are none.
    Other(Text),
}

/// How much of a queue is taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// The oldest entry.
    One,
    /// All of it.
    All,
}

/// What a steer does to the calls of the reply that is being carried out. It stops none that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupting {
    /// Those that haven't begun are skipped ([`SkipWhy::Steered`]), and those that run go on as jobs if they can be one
    /// ([`Effect::DetachTool`]), so that the model hears it soon.
    Immediate,
    /// Nothing; it waits for them.
    Wait,
}

/// What a host serves. Each replaces the whole set of its kind, or is refused whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Tools; their calls are [`Ask::Tool`], unless the session itself carries them out.
    Tools(Vec<ToolSpec>),
    /// URI schemes; reads and writes are [`Ask::Uri`].
    Uris(Vec<UriSpec>),
    /// Hooks; their runs are [`Ask::Hook`].
    Hooks(Vec<HookSpec>),
}

/// A tool, as the model and the gate see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Unique in its set.
    pub name: Text,
    /// For people; `None`: the name.
    pub label: Option<Text>,
    /// For the model.
    pub description: Text,
    /// JSON Schema of the arguments.
    pub schema: RawJson,
    /// What a call may do; decides whether it is asked and whether it runs beside others.
    pub side_effect: SideEffect,
    /// Known but not shown to the model.
    pub hidden: bool,
    /// The argument of a driver's tool that may name a URI of the host: such a call is asked of the host. A tool that only
    /// looks reads the URI; any other writes its argument `content` to it.
    pub uri_arg: Option<Text>,
    /// Who carries a call out.
    pub route: Route,
}

/// Who carries a call out. Capture, Goal, Choice and Finish end in the session itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The driver, by [`Effect::RunTool`].
    Driver,
    /// The host, by [`Ask::Tool`].
    Host,
    /// A nested run, by [`Effect::StartRun`].
    Run(RunKind),
    /// Nobody: the checked input is the turn's answer.
    Capture {
        /// How many bad inputs are answered with an error before the turn fails with [`FailureKind::Capture`].
        tries: u32,
    },
    /// The session: news of the goal.
    Goal,
    /// The session: the plan, as it is now.
    Plan,
    /// The session: a background job is to end, and the call is over when it has.
    JobStop,
    /// The session asks the person; the reply is the result.
    Choice,
    /// Nobody: it ends the turn.
    Finish,
}

/// A URI scheme that the host serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriSpec {
    /// The scheme, in lower case, without the colon.
    pub scheme: Text,
    /// For the model.
    pub description: Option<Text>,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether what was read never changes.
    pub immutable: bool,
}

/// A hook that the host serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSpec {
    /// The host's key for it.
    pub key: Text,
    /// Where it runs.
    pub point: HookPoint,
    /// Which tools it is for: globs (`*`, `?`) over the tool's name with `|` between them; `None`: all.
    pub matcher: Option<Text>,
    /// How long it may take, in microseconds; `None`: the configured time.
    pub timeout_us: Option<u64>,
}

/// What a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// Nothing at all.
    None,
    /// It reads.
    Read,
    /// It writes files.
    Write,
    /// It runs commands.
    Shell,
    /// It talks to the network.
    Network,
    /// Nobody said; judged as the worst.
    Unknown,
}

impl SideEffect {
    /// Whether the gate treats a call as one that changes something.
    pub const fn changes_something(self) -> bool {
        match self {
            SideEffect::None | SideEffect::Read => false,
            SideEffect::Write | SideEffect::Shell | SideEffect::Network | SideEffect::Unknown => {
                true
            }
        }
    }
}

/// Where a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPoint {
    /// A prompt was handed in.
    PromptSubmit,
    /// A call is about to be judged.
    PreTool,
    /// A call has run.
    PostTool,
    /// A permission is open.
    Permission,
    /// A turn is about to finish.
    TurnEnd,
    /// A nested run has ended.
    RunEnd,
    /// The history is about to be summarised.
    PreCompact,
    /// Another session is about to take over.
    SessionSwitch,
    /// A session has begun.
    SessionStart,
    /// A session has ended.
    SessionEnd,
    /// Something is worth a person's attention.
    Notification,
}

/// To where files go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindTo {
    /// As they were at a checkpoint.
    Checkpoint(CheckpointId),
    /// As they were before a prompt.
    Prompt(PromptId),
    /// As they were before a message of the user's that stands in the history: one of an earlier process has no other name.
    Message(MessageId),
}

/// About the goal that the session pursues by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalCommand {
    /// What is it?
    Get,
    /// Pursue this.
    Set {
        /// The goal.
        text: Text,
        /// Turns that the session may begin by itself; `None`: the configured number.
        auto_turns: Option<u32>,
        /// Tokens that it may use; `None`: no limit of its own.
        token_budget: Option<u64>,
    },
    /// Begin no more turns for it.
    Pause,
    /// Go on.
    Resume,
    /// There is none any more.
    Clear,
}

/// About background jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobCommand {
    /// Which are there? Gives [`Answer::Jobs`].
    Snapshot,
    /// End one. Gives [`Answer::JobStop`].
    Stop {
        /// Its name.
        job: Text,
        /// The generation of the process that began it; `None`: this one.
        generation: Option<Text>,
    },
}

/// Changing to another session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand {
    /// A fresh one.
    New {
        /// The session that it comes from.
        parent: Option<Text>,
    },
    /// One by path or id, which need not exist.
    Open(Text),
    /// One that exists.
    Switch(Text),
    /// A copy that ends before the entry named.
    Branch(Text),
    /// A copy up to the entry named, or whole.
    Fork(Option<Text>),
}
