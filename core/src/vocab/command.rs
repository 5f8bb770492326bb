//! What a host asks of an agent.

use super::*;

/// Call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call { pub id: CommandId, pub command: Command }

/// Command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Prompt(Prompt), Withdraw(PromptId), Promote(PromptId),
    Cancel { what: CancelWhat, why: CancelWhy },
    Reply { ask: AskId, reply: Result<Reply, ReplyFault> }, ReplyPart { ask: AskId, content: Vec<Block> },
    Set(Setting), Offer(Offer), Recall(Vec<Arc<Message>>),
    Compact { instructions: Option<Text> }, Rewind { to: RewindTo, dry_run: bool }, Reload,
    Goal(GoalCommand), Job(JobCommand), Shell { command: Text }, Session(SessionCommand), SteerRun { run: RunId, prompt: Prompt },
    Barrier,
    Close { drain: bool },
}

/// Prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt { pub id: PromptId, pub tag: Option<Text>, pub content: Vec<Block>, pub deliver: Deliver, pub literal: bool }

/// Deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deliver { IfIdle, Queue(Rank), Steer { idle: IdleSteer }, FollowUp, Context, Preempt }

/// Rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank { Next, Later }

/// IdleSteer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleSteer { Start, Drop, DropUnlessQueued }

/// CancelWhat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelWhat { Turn { queue: QueueFate }, TurnElseNextQueued, Retry, Compaction, Shell, Job(JobId), Run(RunId), Everything }

/// QueueFate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueFate { Keep, Run, Drop }

/// CancelWhy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelWhy { Host, Signal(Signal), PeerGone, Preempted(PromptId), Denied(CallId), Switch, Fault(Text) }

/// Signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal { Interrupt, Terminate, Hangup }

/// Setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting { Approvals(ApprovalMode), Model(Option<Text>), Thinking(Option<Text>), ThinkingBudget(Option<u64>), SteerDrain(Drain), FollowUpDrain(Drain), Interrupting(Interrupting), AutoRetry(bool), AutoCompact(bool), Name(Text) }

/// ApprovalMode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalMode { Auto, AcceptEdits, Ask, ReadOnly, Plan, Never, Other(Text) }

/// Drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain { One, All }

/// Interrupting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupting { Immediate, Wait }

/// Offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer { Tools(Vec<ToolSpec>), Uris(Vec<UriSpec>), Hooks(Vec<HookSpec>) }

/// ToolSpec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec { pub name: Text, pub label: Option<Text>, pub description: Text, pub schema: RawJson, pub side_effect: SideEffect, pub hidden: bool, pub uri_arg: Option<Text>, pub route: Route }

/// Route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route { Driver, Host, Run(RunKind), Capture { tries: u32 }, Goal, Choice, Finish }

/// UriSpec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriSpec { pub scheme: Text, pub description: Option<Text>, pub writable: bool, pub immutable: bool }

/// HookSpec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSpec { pub key: Text, pub point: HookPoint, pub matcher: Option<Text>, pub timeout_us: Option<u64> }

/// SideEffect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect { None, Read, Write, Shell, Network, Unknown }

/// HookPoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPoint { PromptSubmit, PreTool, PostTool, Permission, TurnEnd, RunEnd, PreCompact, SessionSwitch, SessionStart, SessionEnd, Notification }

/// RewindTo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewindTo { Checkpoint(CheckpointId), Prompt(PromptId) }

/// GoalCommand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoalCommand { Get, Set { text: Text, auto_turns: Option<u32>, token_budget: Option<u64> }, Pause, Resume, Clear }

/// JobCommand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobCommand { Snapshot, Stop { job: Text, generation: Option<Text> } }

/// SessionCommand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionCommand { New { parent: Option<Text> }, Open(Text), Switch(Text), Branch(Text), Fork(Option<Text>) }
