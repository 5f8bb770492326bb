//! Messages and their blocks: the history.

use super::*;

/// Block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block { Text(Text), Thinking { text: Text, signature: Option<Text> }, Redacted(Text), Media { kind: MediaKind, source: Source }, ToolUse { call: CallId, provider_id: Option<Text>, name: Text, input: ToolInput }, ToolResult { call: CallId, content: Vec<Block>, is_error: bool }, Opaque(RawJson) }

/// MediaKind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaKind { Image, Document }

/// Source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source { Inline { mime: Text, base64: Text }, Stored(Arc<Stored>), Url(Text) }

/// Stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored { pub blob: Text, pub id: Text, pub name: Text, pub mime: Text, pub size: u64, pub sha256: [u8; 32] }

/// Message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message { pub id: MessageId, pub role: Role, pub content: Vec<Arc<Block>>, pub origin: Origin, pub prompt: Option<PromptId>, pub about: Option<CallId>, pub at_ms: u64, pub details: Option<RawJson> }

/// Role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role { User, Assistant, Tool { call: CallId, name: Text, error: bool }, Note, Summary, Shell, Other(Text) }

/// Origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin { Host, Hook(Text), GoalCheck, GoalReminder, GoalContinue { left: u32 }, PlanReminder, Job(JobId), Interrupted, Harness, Extension(Text), History }

/// Stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop { End, ToolUse, MaxTokens, StopSequence(Text), Refusal, Truncated, Cancelled, Detached, Failed, NotSaid, Other(Text) }

/// CallList.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallList { Complete, NotReported }

/// ToolInput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolInput { Object(RawJson), Unparsed(Text) }
