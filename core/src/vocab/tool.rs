//! Tool calls: causes, verdicts, outcomes.

use super::*;

/// ToolCause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCause { Model { message: MessageId, block: u32 }, Tool(CallId), Agent, Host }

/// Verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict { pub allow: bool, pub by: Decider, pub input: Option<RawJson>, pub reason: Option<Text>, pub risk: Option<Risk>, pub block: Option<Text> }

/// Decider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider { Mode, Rule(Text), Hook(Text), Host, Timer, Closed, Fault(Text), Cancel }

/// Risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Risk { Low, Medium, High, Critical }

/// Progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress { Append(Vec<Block>), Replace(Vec<Block>), Alive }

/// ToolOutcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolOutcome { Ok, Failed, Invalid, NotFound, Denied(Decider), Cancelled, TimedOut, Detached(JobId), EndedTurn, NotSaid }

/// SkipWhy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipWhy { Cancelled, Truncated, TurnOver }

/// Show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show { pub summary: Option<Text>, pub changed: Vec<Text>, pub meta: Vec<(Text, Text)>, pub details: Option<RawJson>, pub truncated: bool, pub redacted: bool }
