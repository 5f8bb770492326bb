//! Tool calls: causes, verdicts, outcomes.

use super::*;

/// Who called a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCause {
    /// The model.
    Model {
        /// Its message.
        message: MessageId,
        /// The block of that message.
        block: u32,
    },
    /// Another call.
    Tool(CallId),
    /// The agent itself.
    Agent,
    /// The host.
    Host,
}

/// What the gate decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may run.
    pub allow: bool,
    /// Whose decision it was.
    pub by: Decider,
    /// The arguments it runs with, if they were replaced.
    pub input: Option<RawJson>,
    /// Why, for people and the model.
    pub reason: Option<Text>,
    /// How dangerous it looked.
    pub risk: Option<Risk>,
    /// A word for programs that says what stopped it.
    pub block: Option<Text>,
}

/// Whose decision something was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The approval mode's.
    Mode,
    /// A rule's, by its text.
    Rule(Text),
    /// A hook's, by name.
    Hook(Text),
    /// The host's.
    Host,
    /// Nobody's: the time ran out.
    Timer,
    /// Nobody's: there is no host.
    Closed,
    /// Nobody's: the answer was an error.
    Fault(Text),
    /// Nobody's: it was cancelled.
    Cancel,
}

/// How dangerous a call looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// Hardly.
    Low,
    /// Somewhat.
    Medium,
    /// Very.
    High,
    /// Beyond repair.
    Critical,
}

/// News of a running tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More output.
    Append(Vec<Block>),
    /// All output so far.
    Replace(Vec<Block>),
    /// It runs.
    Alive,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It worked.
    Ok,
    /// It failed, and says so in its content.
    Failed,
    /// Its arguments don't parse or don't fit; it never ran.
    Invalid,
    /// No such tool; it never ran.
    NotFound,
    /// It was not allowed; it never ran.
    Denied(Decider),
    /// It was stopped.
    Cancelled,
    /// It was stopped because its time ran out.
    TimedOut,
    /// It goes on as a job.
    Detached(JobId),
    /// It worked, and ended the turn.
    EndedTurn,
    /// A foreign agent doesn't say.
    NotSaid,
}

impl ToolOutcome {
    /// Whether the call did what it was asked for; not, where a foreign agent doesn't say.
    pub const fn is_ok(&self) -> bool {
        match self {
            ToolOutcome::Ok | ToolOutcome::Detached(_) | ToolOutcome::EndedTurn => true,
            ToolOutcome::Failed
            | ToolOutcome::Invalid
            | ToolOutcome::NotFound
            | ToolOutcome::Denied(_)
            | ToolOutcome::Cancelled
            | ToolOutcome::TimedOut
            | ToolOutcome::NotSaid => false,
        }
    }

    /// Whether the result is marked as an error for the model.
    pub const fn is_error(&self) -> bool {
        match self {
            ToolOutcome::Ok
            | ToolOutcome::Detached(_)
            | ToolOutcome::EndedTurn
            | ToolOutcome::NotSaid => false,
            ToolOutcome::Failed
            | ToolOutcome::Invalid
            | ToolOutcome::NotFound
            | ToolOutcome::Denied(_)
            | ToolOutcome::Cancelled
            | ToolOutcome::TimedOut => true,
        }
    }
}

/// Why a call never began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipWhy {
    /// A cancel.
    Cancelled,
    /// Its message came without a completion signal (S-23).
    Truncated,
    /// The turn ended first.
    TurnOver,
    /// A steer came first, and interrupts what hasn't begun ([`Interrupting::Immediate`](super::Interrupting)).
    Steered,
}

/// How a host may show a result; the model never sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Show {
    /// One line.
    pub summary: Option<Text>,
    /// Paths of the files that it changed.
    pub changed: Vec<Text>,
    /// Names and values, in order.
    pub meta: Vec<(Text, Text)>,
    /// Anything more.
    pub details: Option<RawJson>,
    /// Whether output was cut.
    pub truncated: bool,
    /// Whether output was blacked out.
    pub redacted: bool,
}

impl Show {
    /// The exit code of the command that the call ran, which a driver says as `exit_code` among [`Show::meta`].
    pub fn exit_code(&self) -> Option<i32> {
        let code = self.meta.iter().find(|(name, _)| &**name == "exit_code");
        code.and_then(|(_, value)| value.parse().ok())
    }
}
