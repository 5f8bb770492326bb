//! What a command is answered with.

use super::*;

/// Answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer { Done, Sent, Admitted(Admitted), Cancelling { hit: Hit, queued: Vec<PromptId> }, Withdrawn(bool), Shell { output: Text, exit: Option<i32>, cancelled: bool, timed_out: bool, truncated: bool, show: Option<Box<Show>> }, Reloaded { tools: u32, skills: u32, changes: Vec<Text> }, Rewound { can: bool, files: Vec<Text>, added: u32, removed: u32 }, Jobs(Vec<JobRecord>), JobStop(JobStop), Goal(Option<Goal>), Session { vetoed: bool, text: Option<Text> }, Raw(RawJson) }

/// Admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted { Started, Queued(Lane), Local, Duplicate }

/// Hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit { Turn(TurnId), Retry, Compaction, Shell, Job, Run, Nothing }

/// JobStop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStop { Stopped, AlreadyTerminal, NotFound, WrongRuntime }

/// Refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal { Busy, Empty, Cancelled, Untrusted(Text), Blocked { hook: Text, text: Text }, Unknown, AlreadySettled, Closing, Full, TooLarge, Unsupported(&'static str), Invalid(Text), Failed(Failure) }
