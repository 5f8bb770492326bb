//! Questions from the agent to its host, and their answers.

use super::*;

/// Ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask { Permission(Box<PermissionAsk>), Hook(Box<HookAsk>), Tool { call: CallId, name: Text, input: RawJson }, Uri { op: UriOp, uri: Text, body: Option<Text> }, Choice(Box<ChoiceAsk>) }

/// UriOp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriOp { Read, Write }

/// PermissionAsk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionAsk { pub call: Option<CallId>, pub tool: Text, pub reason: AskReason, pub summary: Text, pub detail: Text, pub body: Option<Text>, pub suggestions: Vec<PermissionUpdate>, pub env: Vec<Text>, pub due: Option<u64> }

/// AskReason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskReason { Gate, UnapprovedSource { path: Text, sha: Text }, Network { host: Text }, Other(Text) }

/// HookAsk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookAsk { pub key: Text, pub point: HookPoint, pub facts: HookFacts }

/// HookFacts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookFacts { Prompt { prompt: PromptId, text: Text }, Call { call: CallId }, Result { call: CallId, content: Vec<Block>, wall_us: u64 }, TurnEnd { again: bool, last: Option<Text> }, Other(RawJson) }

/// ChoiceAsk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceAsk { pub title: Text, pub kind: ChoiceKind, pub timeout_us: Option<u64> }

/// ChoiceKind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceKind { Select(Vec<Text>), Confirm, Input { placeholder: Text }, Editor { prefill: Text }, Form(RawJson), Url(Text) }

/// Reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply { Allow { input: Option<RawJson>, updates: Vec<PermissionUpdate> }, Deny { message: Option<Text>, interrupt: bool }, Hook(Box<HookReply>), Tool { content: Vec<Block>, is_error: bool, details: Option<RawJson> }, Uri { body: Text, mime: Option<Text>, notes: Vec<Text>, immutable: Option<bool> }, Choice(Option<Text>) }

/// HookReply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookReply { pub verdict: HookVerdict, pub context: Option<Text>, pub go_on: bool, pub stop_reason: Option<Text> }

/// HookVerdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookVerdict { Pass, Allow { input: Option<RawJson> }, Ask, Deny(Text) }

/// ReplyFault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyFault { HostError(Text), Malformed(Text), HostCancelled, HostGone }

/// AskClose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskClose { Answered { by: Decider, allow: Option<bool> }, Superseded, TimedOut, Withdrawn, Cancelled, HostGone, Fault(Text) }

/// PermissionUpdate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionUpdate { Rules { op: SetOp, behaviour: Text, rules: Vec<(Text, Option<Text>)>, keep: Keep }, Mode { mode: Text, keep: Keep }, Directories { op: SetOp, paths: Vec<Text>, keep: Keep } }

/// SetOp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp { Add, Replace, Remove }

/// Keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep { Session, User, Project, Local, Arguments }
