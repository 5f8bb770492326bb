//! Compaction, goals, jobs and nested runs.

use super::*;

/// Why the history is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The host asked.
    Manual,
    /// The mark was passed.
    Auto,
    /// The provider says that it doesn't fit.
    Overflow,
}

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// First and last sequence number of what was summarised, where the agent numbers its history.
    pub span: Option<(u64, u64)>,
    /// The summary.
    pub summary: Option<Text>,
    /// Tokens in use before.
    pub tokens_before: Option<u64>,
    /// Tokens in use after.
    pub tokens_after: Option<u64>,
    /// How many messages were summarised.
    pub messages: Option<u32>,
    /// The oldest message that is kept as it was; `None`: none is, or not said.
    pub keep_from: Option<MessageId>,
    /// The ends of the part that is kept, where the protocol names them.
    pub segment: Option<Segment>,
}

/// The ends of the part of the history that a compaction kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The oldest message kept.
    pub head: MessageId,
    /// The message that the kept part now follows.
    pub anchor: MessageId,
    /// The newest message kept.
    pub tail: MessageId,
}

/// Why a compaction did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionFault {
    /// It was cancelled.
    Cancelled,
    /// There was nothing to summarise; says why.
    Nothing(Text),
    /// It failed.
    Failed(Failure),
}

/// News of the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalEvent {
    /// It is this now; `None`: there is none any more.
    Changed(Option<Goal>),
    /// The model can't go on; says why.
    Blocked(Text),
    /// A prompt came, and the model may try again.
    Unblocked,
    /// No more turns are begun for it.
    Disarmed,
    /// The turns allowed are used up, and it isn't met.
    BudgetExhausted {
        /// How many there were.
        turns: u32,
    },
}

/// A goal that the session pursues by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The goal.
    pub text: Text,
    /// How it stands.
    pub status: GoalStatus,
    /// Turns that may still be begun; `None`: no limit.
    pub turns_left: Option<u32>,
    /// Tokens that may be used in all; `None`: no limit.
    pub token_budget: Option<u64>,
    /// Tokens used since it was set.
    pub tokens_used: u64,
}

/// How a goal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalStatus {
    /// It is pursued.
    Active,
    /// It waits for the host.
    Paused,
    /// It waits for a prompt.
    Blocked,
    /// It is met.
    Completed,
    /// Its budget is used up.
    Exhausted,
}

/// What news of a job there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// It began.
    Started,
    /// Its record changed.
    Updated,
    /// It is over; the last record there is of it.
    Ended,
}

/// All that is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Our id of it: the number of the call that began it.
    pub job: JobId,
    /// Its name for hosts.
    pub id: Text,
    /// The run of the process that began it.
    pub generation: Text,
    /// Grows with each change, from 1.
    pub revision: u32,
    /// What it is.
    pub kind: JobKind,
    /// The call that began it.
    pub call: Option<CallId>,
    /// What it runs.
    pub command: Text,
    /// For people.
    pub description: Option<Text>,
    /// Where it runs.
    pub cwd: Option<Text>,
    /// How it stands.
    pub state: JobState,
    /// Whether it ends by itself. Only finite work holds a turn or wakes a session.
    pub finite: bool,
    /// Started, put into the background, ended, last output: milliseconds since the Unix epoch.
    pub times_ms: [Option<u64>; 4],
    /// What it wrote.
    pub output: Option<JobOutput>,
    /// What went wrong with cleaning up, with its output, with keeping its record.
    pub faults: [Option<Text>; 3],
}

/// What a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// A shell command.
    Shell,
    /// A nested run.
    Run(RunId),
    /// A helper that lives long; never holds a turn.
    Other(Text),
}

/// How a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It runs.
    Running,
    /// It was asked to stop.
    Stopping,
    /// It ended by itself, with this exit code.
    Exited(i32),
    /// It was stopped; says by whom.
    Stopped(Text),
    /// Its process died with the agent's.
    Interrupted,
}

impl JobState {
    /// Whether it is over.
    pub const fn is_over(&self) -> bool {
        match self {
            JobState::Running | JobState::Stopping => false,
            JobState::Exited(_) | JobState::Stopped(_) | JobState::Interrupted => true,
        }
    }
}

/// What a job wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOutput {
    /// The file that holds it.
    pub name: Option<Text>,
    /// Whether that file outlives the session.
    pub persistent: bool,
    /// Bytes written.
    pub bytes: u64,
    /// Characters kept.
    pub chars: u32,
    /// Whether it was cut.
    pub truncated: bool,
    /// Whether some of it wasn't UTF-8.
    pub invalid_utf8: bool,
}

/// What a nested run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A sub-agent, by name.
    Subagent(Text),
    /// A stage of a pipeline.
    Stage {
        /// Its name.
        name: Text,
        /// Which time it runs, from 1.
        iteration: u32,
    },
    /// A task, by name.
    Task(Text),
}

/// How a nested run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It is done.
    Completed,
    /// It is done, and said nothing.
    NoReport,
    /// The limit on steps.
    MaxSteps,
    /// It gave way.
    Yielded,
    /// Its time ran out.
    TimedOut,
    /// It failed.
    Failed,
    /// A cancel.
    Cancelled,
    /// It was not needed.
    Skipped,
    /// Its result is unusable in part.
    Incomplete,
}
