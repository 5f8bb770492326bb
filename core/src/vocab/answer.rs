//! What a command is answered with.

use super::*;

/// What an accepted command gives: the `Ok` side of [`What::Replied`].
///
/// Which variant a command gets is fixed by the command; every command that has
/// no answer of its own gets [`Answer::Done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command has taken effect (for `Compact`: it has begun, or is queued).
    Done,
    /// A Client wrote the command's line to its agent, and the wire never says more.
    Sent,
    /// A prompt was admitted; exactly one [`What::PromptEnded`] follows (S-10).
    Admitted(Admitted),
    /// A cancel was taken.
    Cancelling {
        /// What it stops.
        hit: Hit,
        /// The prompts that still wait, in the order in which they would run.
        queued: Vec<PromptId>,
    },
    /// Whether a `Withdraw` found its prompt still in a queue.
    Withdrawn(bool),
    /// A shell command is over; the reply comes at its end, not at its start (S-07).
    Shell {
        /// What it wrote, both streams, as kept within the limit on tool output.
        output: Text,
        /// Its exit code; `None` if it was killed or never started.
        exit: Option<i32>,
        /// Whether a cancel ended it.
        cancelled: bool,
        /// Whether its time ran out.
        timed_out: bool,
        /// Whether `output` was cut.
        truncated: bool,
        /// How a host may show it.
        show: Option<Box<Show>>,
    },
    /// Tools and skills were read again.
    Reloaded {
        /// How many tools there are now.
        tools: u32,
        /// How many skills there are now.
        skills: u32,
        /// What changed, one line for each change, for people.
        changes: Vec<Text>,
    },
    /// Files went back, or would have (dry run).
    Rewound {
        /// Whether it can be done at all.
        can: bool,
        /// The files concerned: with their old content, or gone that weren't there before.
        files: Vec<Text>,
        /// Lines that come back.
        added: u32,
        /// Lines that go.
        removed: u32,
    },
    /// The jobs known, live ones and ended ones.
    Jobs(Vec<JobRecord>),
    /// What a `Job(Stop)` came to.
    JobStop(JobStop),
    /// The goal as it stands; `None` if there is none.
    Goal(Option<Goal>),
    /// A session was made, opened, switched, branched or forked.
    Session {
        /// Whether a hook refused it; then nothing changed.
        vetoed: bool,
        /// Text for the host's editor, where the command gives one (a branch: the prompt cut off).
        text: Option<Text>,
    },
    /// An answer that only the two ends of one protocol understand.
    Raw(RawJson),
}

impl Answer {
    /// The admission, if the answer is one.
    pub const fn admitted(&self) -> Option<Admitted> {
        if let Answer::Admitted(admitted) = self {
            Some(*admitted)
        } else {
            None
        }
    }

    /// The turn that a cancel is ending, if the answer says so.
    pub const fn cancelled_turn(&self) -> Option<TurnId> {
        if let Answer::Cancelling {
            hit: Hit::Turn(turn),
            ..
        } = self
        {
            Some(*turn)
        } else {
            None
        }
    }
}

/// What the driver did to put files back, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restoration {
    /// Files with their old content.
    pub restored: Vec<Text>,
    /// Files that weren't there before.
    pub deleted: Vec<Text>,
    /// Files left as they are: too large to be kept, or not to be reached any more.
    pub skipped: Vec<Text>,
    /// Lines that come back.
    pub added: u32,
    /// Lines that go.
    pub removed: u32,
}

/// How a prompt was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// A turn begins with it, now.
    Started,
    /// It waits in a queue.
    Queued(Lane),
    /// It is handled without the model; its output, if any, is a [`What::Message`].
    Local,
    /// Its id was seen before: nothing happens, and the first one's end is its end.
    Duplicate,
}

/// What a cancel stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The running turn; its [`What::TurnEnded`] says [`End::Cancelled`] (S-17).
    Turn(TurnId),
    /// The wait before a retry; the turn ends as the attempt before it failed.
    Retry,
    /// A compaction; the turn, if any, goes on.
    Compaction,
    /// The shell commands that run.
    Shell,
    /// A job.
    Job,
    /// A nested run.
    Run,
    /// There was nothing to stop.
    Nothing,
}

/// What a request to stop a job came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStop {
    /// It was running and has ended.
    Stopped,
    /// It had ended before.
    AlreadyTerminal,
    /// No job of that name.
    NotFound,
    /// A job of that name exists, but of another generation of the process.
    WrongRuntime,
}

/// Why a command was not accepted. Nothing else has changed (S-05).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not while a turn, a compaction or a switch is going on.
    Busy,
    /// There is no content.
    Empty,
    /// The command was cancelled before it was admitted.
    Cancelled,
    /// The project isn't trusted; the text names it.
    Untrusted(Text),
    /// A hook stopped the prompt before it was admitted.
    Blocked {
        /// The hook's name.
        hook: Text,
        /// What it said.
        text: Text,
    },
    /// The thing named was never there, or isn't there any more.
    Unknown,
    /// The question named is closed already (L8).
    AlreadySettled,
    /// The session takes no more work.
    Closing,
    /// A limit on the number or the bytes of what waits is reached.
    Full,
    /// The content is over its byte limit.
    TooLarge,
    /// This agent can't do it; names what is missing.
    Unsupported(&'static str),
    /// A bad value; says which, and what is legal.
    Invalid(Text),
    /// It was tried and failed.
    Failed(Failure),
}
