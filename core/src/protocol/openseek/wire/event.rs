//! The 58 events of an engine, in the order of the contract: what they are called on the wire, and their members in the order
//! in which they are written (OS-10).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::content::Content;
use super::job::JobRecord;
use super::values::{ConnectError, Int, JobEventKind, JobStopOutcome, OrNull, SteerWord};
use crate::json::{Lazy, Str};
use crate::protocol::member::{Any, objects, tagged};

objects! { without ["event"];
    /// The turn couldn't begin: there are no tools. Ends it.
    AgentSetupFailed {
        error "error": Lazy<'a>,
    }
    /// A request to the model begins.
    AgentStep {
        /// Counts from 1 in each turn.
        step "step": Int,
    }
    /// The request is sent again: the pieces of this step so far are void.
    StreamRetry {
        attempt "attempt": Int,
        max_attempts "max_attempts": Int,
        reason "reason": Str<'a>,
    }
    /// The turn was given up. Ends it.
    AgentAborted {
        /// `interrupted` after a cancel, or what the tool says.
        reason "reason": Lazy<'a>,
    }
    /// The turn went well. Ends it.
    AgentFinished {
        answer "answer": Lazy<'a>,
    }
    /// The turn has used all of its steps. Ends it.
    MaxStepsExhausted {}
    /// The turn failed. Ends it.
    TurnFailed {
        error "error": Lazy<'a>,
    }
    /// A piece of the reply's text, never empty.
    AssistantDelta {
        content "content": Lazy<'a>,
    }
    /// A piece of the model's reasoning, never empty.
    ReasoningDelta {
        content "content": Lazy<'a>,
    }
    /// The whole text of a reply, unless it is empty.
    AssistantMessage {
        content "content": Lazy<'a>,
    }
    /// The whole reasoning of a reply, unless it is empty.
    ReasoningMessage {
        content "content": Lazy<'a>,
    }
    /// What a reply cost. One for each.
    Usage {
        usage "usage": Box<TokenCounts<'a>>,
    }
    /// What a call came to. That it began isn't said.
    ToolResult {
        tool_call_id "tool_call_id": Str<'a>,
        tool_name "tool_name": Str<'a>,
        is_error "is_error": bool,
        /// 60,000 UTF-16 units at most.
        content "content": Lazy<'a>,
        /// A few words for a person.
        brief "brief": OrNull<'a>,
    }
    /// A call that couldn't be read: it stands for its result.
    ToolCallDecodeError {
        tool_call_id "tool_call_id": Str<'a>,
        tool_name "tool_name": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// A call waits for an `approval`: the only event that is a question.
    ApprovalRequested {
        id "id": Str<'a>,
        tool_name "tool_name": Str<'a>,
        /// What it is about, for a person.
        detail "detail": Lazy<'a>,
        /// The program that would run.
        body "body": OrNull<'a>,
    }
    /// The question is settled.
    ApprovalResolved {
        id "id": Str<'a>,
        /// `allowed_once`, `rejected` or `cancelled`; others may come.
        outcome "outcome": Str<'a>,
    }
    /// What was said into the turn has reached the model.
    SteerApplied {
        /// `prompt`, `command`, or `notice` for what the engine says to itself.
        kind "kind": SteerWord<'a>,
        /// A text; newer programs may write a list of parts.
        content "content": Content<'a>,
        /// The steer's own, if it had one. Newer programs only.
        submission_id "submission_id": Any<'a>,
    }
    /// What was said into the turn came too late.
    SteerDropped {
        /// A text; newer programs may write a list of parts.
        content "content": Content<'a>,
        /// The steer's own, if it had one. Newer programs only.
        submission_id "submission_id": Any<'a>,
    }
    /// A job has ended while nothing ran.
    BackgroundNotice {
        content "content": Lazy<'a>,
    }
    /// A job began, changed, or is over.
    JobChanged {
        kind "kind": JobEventKind,
        job "job": Box<JobRecord<'a>>,
    }
    /// Answers the command of this name: every job as it stands.
    JobsSnapshot {
        /// The command's.
        request_id "request_id": Str<'a>,
        jobs "jobs": Vec<JobRecord<'a>>,
    }
    /// Answers `job_stop`.
    JobStopResult {
        /// The command's, as the next two.
        request_id "request_id": Str<'a>,
        generation "generation": Str<'a>,
        job_id "job_id": Str<'a>,
        outcome "outcome": JobStopOutcome,
    }
    /// The goal is another, and stored.
    GoalUpdated {
        /// Null: there is none any more.
        goal "goal": OrNull<'a>,
    }
    /// The goal can't be worked on.
    GoalBlocked {
        reason "reason": Lazy<'a>,
    }
    /// It can again.
    GoalUnblocked {}
    /// The model is asked whether the goal is met.
    GoalCheck {
        content "content": Lazy<'a>,
    }
    /// The model is reminded of the goal.
    GoalReminder {
        content "content": Lazy<'a>,
    }
    /// A turn begins by itself, for the goal.
    GoalContinue {
        /// How many more may, of 20.
        remaining "remaining": Int,
    }
    /// No more turns begin by themselves.
    GoalBudgetExhausted {
        /// How many did.
        turns "turns": Int,
    }
    /// The model is reminded of its plan.
    PlanReminder {
        content "content": Lazy<'a>,
    }
    /// The history is being summed up, because the host asked.
    CompactionStarted {
        from_sequence "from_sequence": Int,
        to_sequence "to_sequence": Int,
    }
    /// It is summed up.
    CompactionFinished {
        from_sequence "from_sequence": Int,
        to_sequence "to_sequence": Int,
        summary "summary": Lazy<'a>,
    }
    /// It stays as it was.
    CompactionFailed {
        /// `cancelled` after a cancel.
        error "error": Lazy<'a>,
    }
    /// The history is being summed up within a turn, because it is nearly too long.
    AutoCompactionStarted {
        from_sequence "from_sequence": Int,
        to_sequence "to_sequence": Int,
    }
    /// It is summed up.
    AutoCompactionFinished {
        from_sequence "from_sequence": Int,
        to_sequence "to_sequence": Int,
        summary "summary": Lazy<'a>,
    }
    /// It stays as it was, and the turn goes on or yields.
    AutoCompactionFailed {
        error "error": Lazy<'a>,
    }
    /// The turn stops where it is, because the history is nearly too long. Ends it.
    ContextYield {
        to_sequence "to_sequence": Int,
        answer "answer": Lazy<'a>,
    }
    /// A run within the turn begins.
    SubrunStarted {
        id "id": Str<'a>,
        kind "kind": Str<'a>,
        label "label": Str<'a>,
    }
    /// It is over, however it ended.
    SubrunFinished {
        id "id": Str<'a>,
        /// `captured`, `no_report`, `max_steps`, `context_yield`, `timed_out`, `failed`, `cancelled`.
        status "status": Str<'a>,
        steps "steps": Int,
        prompt_tokens "prompt_tokens": Int,
        completion_tokens "completion_tokens": Int,
    }
    /// A workflow of several runs begins.
    WorkflowStarted {
        id "id": Str<'a>,
        /// A path.
        journal "journal": Str<'a>,
        /// A path.
        events "events": Str<'a>,
        first_child "first_child": Int,
        child_count "child_count": Int,
    }
    /// It is over.
    WorkflowFinished {
        id "id": Str<'a>,
    }
    /// The session, where it is stored. Only of `run`.
    SessionStarted {
        session "session": Str<'a>,
        session_root "session_root": Str<'a>,
        workspace_root "workspace_root": OrNull<'a>,
    }
    /// The session couldn't be stored; it goes on as it was.
    SessionError {
        error "error": Lazy<'a>,
    }
    /// The folder to work in was made.
    WorkspaceCreated {
        dir "dir": Str<'a>,
    }
    /// A command that couldn't be read, or was refused.
    CommandError {
        /// Why, in the contract's words.
        error "error": Lazy<'a>,
    }
    /// Several runs work on one task, and share these lines. Newer programs have none.
    FleetStarted {
        runs "runs": Int,
        task "task": Lazy<'a>,
    }
    /// MCP servers are configured, and not used.
    McpConfigIgnored {
        reason "reason": Lazy<'a>,
    }
    /// The file of the MCP servers can't be read.
    McpConfigUnreadable {
        path "path": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// The file of the MCP servers makes no sense.
    McpConfigInvalid {
        path "path": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// Tools of MCP servers are there.
    McpToolsRegistered {
        servers "servers": Int,
        tools "tools": Int,
        names "names": Vec<Str<'a>>,
    }
    /// A tool is there twice.
    McpToolDuplicate {
        server "server": Str<'a>,
        tool "tool": Str<'a>,
    }
    /// A tool is called otherwise here.
    McpToolRenamed {
        from "from": Str<'a>,
        to "to": Str<'a>,
    }
    /// A server has too many tools.
    McpToolsCapped {
        server "server": Str<'a>,
        kept "kept": Int,
    }
    /// There are too many servers.
    McpServerSkippedOverCap {
        server "server": Str<'a>,
    }
    /// A server can't be reached.
    McpConnectFailed {
        server "server": Str<'a>,
        /// Older programs wrote null.
        error "error": ConnectError<'a>,
    }
    /// A server doesn't say which tools it has.
    McpListToolsFailed {
        server "server": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// A server takes too long to say which tools it has.
    McpListToolsTimeout {
        server "server": Str<'a>,
    }
    /// A server has no tools.
    McpNoTools {
        server "server": Str<'a>,
    }
}

objects! { without [];
    /// How many tokens a reply took: five numbers, whose names are the wire's own.
    TokenCounts {
        prompt_tokens "prompt_tokens": Int,
        completion_tokens "completion_tokens": Int,
        total_tokens "total_tokens": Int,
        prompt_cache_hit_tokens "prompt_cache_hit_tokens": Int,
        prompt_cache_miss_tokens "prompt_cache_miss_tokens": Int,
    }
}

tagged! {
    /// One line of an engine. An event that the contract doesn't have is a value, for a reader to pass over (OS-03).
    Event by "event" {
        AgentSetupFailed(AgentSetupFailed) = "agent_setup_failed",
        AgentStep(AgentStep) = "agent_step",
        StreamRetry(StreamRetry) = "stream_retry",
        AgentAborted(AgentAborted) = "agent_aborted",
        AgentFinished(AgentFinished) = "agent_finished",
        MaxStepsExhausted(MaxStepsExhausted) = "max_steps_exhausted",
        TurnFailed(TurnFailed) = "turn_failed",
        AssistantDelta(AssistantDelta) = "assistant_delta",
        ReasoningDelta(ReasoningDelta) = "reasoning_delta",
        AssistantMessage(AssistantMessage) = "assistant_message",
        ReasoningMessage(ReasoningMessage) = "reasoning_message",
        Usage(Usage) = "usage",
        ToolResult(ToolResult) = "tool_result",
        ToolCallDecodeError(ToolCallDecodeError) = "tool_call_decode_error",
        ApprovalRequested(ApprovalRequested) = "approval_requested",
        ApprovalResolved(ApprovalResolved) = "approval_resolved",
        SteerApplied(SteerApplied) = "steer_applied",
        SteerDropped(SteerDropped) = "steer_dropped",
        BackgroundNotice(BackgroundNotice) = "background_notice",
        JobChanged(JobChanged) = "job_changed",
        JobsSnapshot(JobsSnapshot) = "jobs_snapshot",
        JobStopResult(JobStopResult) = "job_stop_result",
        GoalUpdated(GoalUpdated) = "goal_updated",
        GoalBlocked(GoalBlocked) = "goal_blocked",
        GoalUnblocked(GoalUnblocked) = "goal_unblocked",
        GoalCheck(GoalCheck) = "goal_check",
        GoalReminder(GoalReminder) = "goal_reminder",
        GoalContinue(GoalContinue) = "goal_continue",
        GoalBudgetExhausted(GoalBudgetExhausted) = "goal_budget_exhausted",
        PlanReminder(PlanReminder) = "plan_reminder",
        CompactionStarted(CompactionStarted) = "compaction_started",
        CompactionFinished(CompactionFinished) = "compaction_finished",
        CompactionFailed(CompactionFailed) = "compaction_failed",
        AutoCompactionStarted(AutoCompactionStarted) = "auto_compaction_started",
        AutoCompactionFinished(AutoCompactionFinished) = "auto_compaction_finished",
        AutoCompactionFailed(AutoCompactionFailed) = "auto_compaction_failed",
        ContextYield(ContextYield) = "context_yield",
        SubrunStarted(SubrunStarted) = "subrun_started",
        SubrunFinished(SubrunFinished) = "subrun_finished",
        WorkflowStarted(WorkflowStarted) = "workflow_started",
        WorkflowFinished(WorkflowFinished) = "workflow_finished",
        SessionStarted(SessionStarted) = "session_started",
        SessionError(SessionError) = "session_error",
        WorkspaceCreated(WorkspaceCreated) = "workspace_created",
        CommandError(CommandError) = "command_error",
        FleetStarted(FleetStarted) = "fleet_started",
        McpConfigIgnored(McpConfigIgnored) = "mcp_config_ignored",
        McpConfigUnreadable(McpConfigUnreadable) = "mcp_config_unreadable",
        McpConfigInvalid(McpConfigInvalid) = "mcp_config_invalid",
        McpToolsRegistered(McpToolsRegistered) = "mcp_tools_registered",
        McpToolDuplicate(McpToolDuplicate) = "mcp_tool_duplicate",
        McpToolRenamed(McpToolRenamed) = "mcp_tool_renamed",
        McpToolsCapped(McpToolsCapped) = "mcp_tools_capped",
        McpServerSkippedOverCap(McpServerSkippedOverCap) = "mcp_server_skipped_over_cap",
        McpConnectFailed(McpConnectFailed) = "mcp_connect_failed",
        McpListToolsFailed(McpListToolsFailed) = "mcp_list_tools_failed",
        McpListToolsTimeout(McpListToolsTimeout) = "mcp_list_tools_timeout",
        McpNoTools(McpNoTools) = "mcp_no_tools",
    }
}
