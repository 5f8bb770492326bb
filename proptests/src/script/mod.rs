//! Random scripts: what a host, a model, tools, hooks, a disk and the clock may do.
//!
//! An action names what it acts on by a number taken modulo what there is, so every
//! action fits every agent in every state, and a script stays one when it shrinks.

mod decode;
mod endings;
mod mix;
mod play;
mod text;

use turnwire::vocab::*;

pub use self::{
    decode::{ACTION_BYTES, action},
    endings::{Ending, finish, quiesce},
    mix::{Mix, scripts},
    play::{Host, act, answer_to, command, play, send, settle, settlement},
    text::{Unreadable, parse_action, print_action},
};

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The host sends a prompt.
    Prompt(Deliver),
    /// The host sends the same prompt again.
    Repeat(u8),
    /// The host takes a prompt back.
    Withdraw(u8),
    /// The host moves a prompt to the front.
    Promote(u8),
    /// The host cancels.
    Cancel(CancelWhat),
    /// The host answers an open question.
    Reply(u8, Answering),
    /// The host answers a question that is closed, or was never asked.
    LateReply(u8),
    /// The host changes a setting.
    Set(Setting),
    /// The host asks for a compaction.
    Compact,
    /// The host wants files as they were before a prompt; only to know, perhaps.
    Rewind(u8, bool),
    /// The host sends another command.
    Other(u8),
    /// The host sends a command about what the agent does by itself: jobs, the goal.
    Own(u8),
    /// The host closes.
    Close(bool),
    /// A model sends a piece.
    Model(u8, Piece),
    /// A model sends a whole answer: text, calls, finish, end.
    Answer(u8, Vec<Tool>),
    /// A call has news.
    Tool(u8, ToolNews),
    /// A hook answers.
    Hook(u8, Judging),
    /// A write is done.
    Store(u8, bool),
    /// A stopped effect settles at last.
    Late(u8),
    /// Something else is settled.
    Settle(u8),
    /// The driver is told that a settled effect settles again.
    Twice(u8),
    /// Time passes, and the driver wakes the agent in time.
    Pass(u64),
    /// The driver jumps to the next deadline.
    Jump,
    /// Time passes, and the driver is late.
    Skip(u64),
    /// The driver caught a crash.
    Fault,
}

impl Action {
    /// The configuration is read anew.
    pub const RELOAD: Action = Action::Other(1);
    /// A goal is set.
    pub const GOAL: Action = Action::Own(7);
    /// A goal goes on.
    pub const RESUME: Action = Action::Own(1);
}

/// How a host answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// Allow, or the success of the kind.
    Yes,
    /// Allow with other arguments.
    Changed,
    /// Allow, with changes of the rules that are to be kept; a hook of the host allows.
    Granted,
    /// Deny, or the failure of the kind.
    No,
    /// Deny and interrupt.
    Interrupt,
    /// An answer of a kind that was not asked for.
    Wrong,
    /// No answer.
    Error,
    /// Nobody there.
    Gone,
}

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The start, or a sign of life.
    Alive(bool),
    /// Text, perhaps empty.
    Text(String),
    /// Thinking, perhaps empty.
    Thinking(String),
    /// A whole call.
    Call(Tool),
    /// A call that never gets whole.
    HalfCall,
    /// Something that no provider should send.
    Odd(u8),
    /// Usage.
    Usage(u32),
    /// The completion signal.
    Finish,
    /// The end of the body.
    End,
    /// A failure.
    Failed(FailureKind, bool, Option<u64>),
}

/// The tools that a model may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// A rule denies it.
    Denied,
    /// A rule asks.
    Asked,
    /// There is no such tool.
    Missing,
    /// Reads, with arguments that aren't JSON.
    Broken,
    /// Reads a URI of the host, if it serves the scheme.
    UriRead,
    /// Writes one.
    UriWrite,
    /// The host carries it out.
    Host,
    /// The host's person chooses.
    Choice,
    /// Its input is the turn's answer.
    Capture,
    /// Ends the turn.
    Finish,
    /// Hands a task to a nested run.
    Task,
    /// The same, and goes on in the background.
    Background,
    /// Ends a background job.
    StopJob,
}

impl Tool {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Tool::Read | Tool::Broken | Tool::UriRead => "read",
            Tool::Write | Tool::UriWrite => "write",
            Tool::Denied => "denied",
            Tool::Asked => "asked",
            Tool::Missing => "missing",
            Tool::Host => "host",
            Tool::Choice => "choice",
            Tool::Capture => "capture",
            Tool::Finish => "finish",
            Tool::Task | Tool::Background => "task",
            Tool::StopJob => "job_stop",
        }
    }

    /// The arguments that the model gives it.
    pub const fn args(self) -> &'static str {
        match self {
            Tool::Broken => "{\"path\": ",
            Tool::UriRead => "{\"path\": \"db://a\"}",
            Tool::UriWrite => "{\"path\": \"db://a\", \"content\": \"b\"}",
            Tool::Task => "{\"prompt\": \"go\"}",
            Tool::Background => "{\"prompt\": \"go\", \"background\": true}",
            Tool::StopJob => "{\"job\": \"sleep\"}",
            Tool::Read
            | Tool::Write
            | Tool::Denied
            | Tool::Asked
            | Tool::Missing
            | Tool::Host
            | Tool::Choice
            | Tool::Capture
            | Tool::Finish => "{\"path\": \"a\"}",
        }
    }

    /// Where a model may hand tasks to nested runs: some calls do.
    #[must_use]
    pub const fn or_task(self, number: u32) -> Tool {
        match (self, number % 6) {
            (Tool::Read | Tool::Missing | Tool::Finish, 1) => Tool::Background,
            (Tool::Read | Tool::Write, 4) => Tool::StopJob,
            (Tool::Read | Tool::Denied | Tool::Choice | Tool::Capture, 0 | 2 | 3) => Tool::Task,
            (tool, _) => tool,
        }
    }

    /// The tools that exist, for a configuration.
    pub fn specs() -> Vec<ToolSpec> {
        let kinds = [
            (Tool::Read, SideEffect::Read, Route::Driver),
            (Tool::Write, SideEffect::Write, Route::Driver),
            (Tool::Denied, SideEffect::Shell, Route::Driver),
            (Tool::Asked, SideEffect::Read, Route::Driver),
            (Tool::Host, SideEffect::Write, Route::Host),
            (Tool::Choice, SideEffect::None, Route::Choice),
            (Tool::Capture, SideEffect::None, Route::Capture { tries: 1 }),
            (Tool::Finish, SideEffect::None, Route::Finish),
        ];
        kinds
            .map(|(tool, side_effect, route)| ToolSpec {
                uri_arg: Some(Text::from("path")),
                route,
                ..spec(tool.name(), side_effect)
            })
            .to_vec()
    }
}

/// The tool whose calls end jobs.
pub fn stop_job() -> ToolSpec {
    ToolSpec {
        route: Route::JobStop,
        ..spec(Tool::StopJob.name(), SideEffect::None)
    }
}

/// The tool whose calls are nested runs.
pub fn task() -> ToolSpec {
    ToolSpec {
        route: Route::Run(RunKind::Subagent(Text::from("task"))),
        ..spec(Tool::Task.name(), SideEffect::None)
    }
}

/// A tool that takes any object.
pub fn spec(name: &str, side_effect: SideEffect) -> ToolSpec {
    ToolSpec {
        name: Text::from(name),
        label: None,
        description: Text::from(name),
        schema: RawJson(Text::from("{\"type\":\"object\"}")),
        side_effect,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

/// News of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolNews {
    /// Output so far.
    Progress,
    /// A file was changed.
    File,
    /// It worked.
    Ok,
    /// It failed.
    Failed,
    /// The driver's own time limit.
    TimedOut,
    /// It worked, and ends the turn.
    EndsTurn,
    /// It wants to reach the network.
    Network,
    /// It goes on as a job.
    Detaches,
}

/// How a hook judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judging {
    /// No opinion.
    Pass,
    /// Yes.
    Allow,
    /// No.
    Deny,
    /// Ask.
    Ask,
    /// It failed.
    Fails,
    /// Adds context.
    Adds,
    /// Yes, with changes of the rules.
    Grants,
    /// No, and the turn ends.
    Interrupts,
    /// No opinion, and the turn ends.
    Stops,
}
