//! Compaction, goals, jobs and nested runs.

use super::*;

/// Trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger { Manual, Auto, Overflow }

/// Compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted { pub span: Option<(u64, u64)>, pub summary: Option<Text>, pub tokens_before: Option<u64>, pub tokens_after: Option<u64>, pub messages: Option<u32>, pub keep_from: Option<MessageId>, pub segment: Option<Segment> }

/// Segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment { pub head: MessageId, pub anchor: MessageId, pub tail: MessageId }

/// CompactionFault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionFault { Cancelled, Nothing(Text), Failed(Failure) }

/// GoalEvent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalEvent { Changed(Option<Goal>), Blocked(Text), Unblocked, Disarmed, BudgetExhausted { turns: u32 } }

/// Goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal { pub text: Text, pub status: GoalStatus, pub turns_left: Option<u32>, pub token_budget: Option<u64>, pub tokens_used: u64 }

/// GoalStatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalStatus { Active, Paused, Blocked, Completed, Exhausted }

/// JobStep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep { Started, Updated, Ended }

/// JobRecord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord { pub job: JobId, pub id: Text, pub generation: Text, pub revision: u32, pub kind: JobKind, pub call: Option<CallId>, pub command: Text, pub description: Option<Text>, pub cwd: Option<Text>, pub state: JobState, pub finite: bool, pub times_ms: [Option<u64>; 4], pub output: Option<JobOutput>, pub faults: [Option<Text>; 3] }

/// JobKind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobKind { Shell, Run(RunId), Other(Text) }

/// JobState.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState { Running, Stopping, Exited(i32), Stopped(Text), Interrupted }

/// JobOutput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutput { pub name: Option<Text>, pub persistent: bool, pub bytes: u64, pub chars: u32, pub truncated: bool, pub invalid_utf8: bool }

/// RunKind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunKind { Subagent(Text), Stage { name: Text, iteration: u32 }, Task(Text) }

/// RunStatus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus { Completed, NoReport, MaxSteps, Yielded, TimedOut, Failed, Cancelled, Skipped, Incomplete }
