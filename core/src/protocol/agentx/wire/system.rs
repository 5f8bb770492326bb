//! `system` records: how the session begins, stands and changes, and what goes on beside its turns.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::attachment::InputCapabilities;
use super::provider::{McpServer, Plugin, Reasoning};
use crate::json::{Lazy, Raw, Str};
use crate::protocol::member::{Any, Kept, Maybe, Nullable, Num, objects, tagged, words};

words! {
    /// What the session is doing.
    SessionState {
        Idle "idle",
        Running "running",
        /// A host has been asked something, and the turn waits for it.
        RequiresAction "requires_action",
    }
    /// Who wanted a compaction.
    CompactTrigger {
        Manual "manual",
        Auto "auto",
    }
    /// How a hook ended.
    HookOutcome {
        Success "success",
        Error "error",
        Cancelled "cancelled",
    }
    /// How a task ended.
    TaskStatus {
        Completed "completed",
        Failed "failed",
        Stopped "stopped",
    }
}

objects! { without ["type", "subtype"];
    /// What the session is: once at the start (strict), or at the start of each turn (claude).
    Init {
        cwd "cwd": Str<'a>,
        session_id "session_id": Str<'a>,
        tools "tools": Vec<Str<'a>>,
        mcp_servers "mcp_servers": Vec<Kept<'a, McpServer<'a>>>,
        model "model": Str<'a>,
        /// The provider's id. Strict only.
        provider "provider": Option<Str<'a>>,
        /// Strict only.
        provider_type "provider_type": Option<Str<'a>>,
        /// Strict only.
        reasoning_capabilities "reasoning_capabilities": Option<Box<Reasoning<'a>>>,
        permission_mode "permissionMode": Str<'a>,
        slash_commands "slash_commands": Vec<Str<'a>>,
        /// `user` or `temporary` in the strict wire.
        api_key_source "apiKeySource": Str<'a>,
        agentx_version "agentx_version": Option<Str<'a>>,
        claude_code_version "claude_code_version": Option<Str<'a>>,
        output_style "output_style": Str<'a>,
        agents "agents": Option<Vec<Kept<'a, Str<'a>>>>,
        skills "skills": Vec<Str<'a>>,
        plugins "plugins": Vec<Kept<'a, Plugin<'a>>>,
        betas "betas": Option<Vec<Str<'a>>>,
        uuid "uuid": Str<'a>,
        input_capabilities "input_capabilities": Option<InputCapabilities<'a>>,
        memory_paths "memory_paths": Any<'a>,
        fast_mode_state "fast_mode_state": Option<Str<'a>>,
        user_message_uuids "user_message_uuids": Option<Vec<Str<'a>>>,
    }
    /// What the session does now.
    SessionStateChanged {
        state "state": SessionState<'a>,
        /// Only the host's own machinery wants it. claude only.
        sdk_host_only "sdk_host_only": Option<bool>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What is going on in a turn.
    Status {
        /// `compacting`, `requesting` (claude), or nothing.
        status "status": Nullable<Str<'a>>,
        permission_mode "permissionMode": Option<Str<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
        user_message_uuids "user_message_uuids": Option<Vec<Str<'a>>>,
    }
    /// The history was summarised. What comes before it is out of the context, but for a segment that was kept.
    CompactBoundary {
        compact_metadata "compact_metadata": CompactMetadata<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What a turn came to.
    PostTurnSummary {
        summarizes_uuid "summarizes_uuid": Str<'a>,
        status_category "status_category": Str<'a>,
        status_detail "status_detail": Option<Lazy<'a>>,
        title "title": Option<Lazy<'a>>,
        description "description": Option<Lazy<'a>>,
        recent_action "recent_action": Option<Lazy<'a>>,
        needs_action "needs_action": Option<Lazy<'a>>,
        is_noteworthy "is_noteworthy": Option<bool>,
        artifact_urls "artifact_urls": Option<Vec<Str<'a>>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What a slash command of the agent's own wrote.
    LocalCommandOutput {
        content "content": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// A hook of the agent's begins.
    HookStarted {
        hook_id "hook_id": Str<'a>,
        hook_name "hook_name": Str<'a>,
        hook_event "hook_event": Str<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What a hook wrote so far.
    HookProgress {
        hook_id "hook_id": Str<'a>,
        hook_name "hook_name": Str<'a>,
        hook_event "hook_event": Str<'a>,
        stdout "stdout": Lazy<'a>,
        stderr "stderr": Lazy<'a>,
        output "output": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// A hook has ended.
    HookResponse {
        hook_id "hook_id": Str<'a>,
        hook_name "hook_name": Str<'a>,
        hook_event "hook_event": Str<'a>,
        output "output": Lazy<'a>,
        stdout "stdout": Lazy<'a>,
        stderr "stderr": Lazy<'a>,
        exit_code "exit_code": Option<Num<'a>>,
        outcome "outcome": HookOutcome<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Files were stored.
    FilesPersisted {
        files "files": Vec<Kept<'a, PersistedFile<'a>>>,
        failed "failed": Vec<Kept<'a, FailedFile<'a>>>,
        processed_at "processed_at": Str<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Work beside the turn begins.
    TaskStarted {
        task_id "task_id": Str<'a>,
        tool_use_id "tool_use_id": Option<Str<'a>>,
        description "description": Lazy<'a>,
        task_type "task_type": Option<Str<'a>>,
        workflow_name "workflow_name": Option<Str<'a>>,
        prompt "prompt": Option<Lazy<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Work beside the turn goes on.
    TaskProgress {
        task_id "task_id": Str<'a>,
        tool_use_id "tool_use_id": Option<Str<'a>>,
        description "description": Lazy<'a>,
        usage "usage": Option<TaskUsage<'a>>,
        last_tool_name "last_tool_name": Option<Str<'a>>,
        summary "summary": Option<Lazy<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Work beside the turn has ended.
    TaskNotification {
        task_id "task_id": Str<'a>,
        tool_use_id "tool_use_id": Option<Str<'a>>,
        status "status": TaskStatus<'a>,
        output_file "output_file": Str<'a>,
        summary "summary": Lazy<'a>,
        usage "usage": Option<TaskUsage<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// A person has answered outside of this wire.
    ElicitationComplete {
        mcp_server_name "mcp_server_name": Str<'a>,
        elicitation_id "elicitation_id": Str<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// A request to the provider failed and will be sent again. claude only.
    ApiRetry {
        /// From 1.
        attempt "attempt": u64,
        max_retries "max_retries": u64,
        retry_delay_ms "retry_delay_ms": Num<'a>,
        /// `null`: there was no answer.
        error_status "error_status": Nullable<Num<'a>>,
        error "error": Str<'a>,
        session_id "session_id": Str<'a>,
        uuid "uuid": Str<'a>,
    }
    /// A call was denied without asking the host. claude only.
    PermissionDenied {
        tool_name "tool_name": Str<'a>,
        tool_use_id "tool_use_id": Str<'a>,
        decision_reason_type "decision_reason_type": Option<Str<'a>>,
        message "message": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Which tasks there are. claude only.
    BackgroundTasksChanged {
        tasks "tasks": Vec<Raw<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Something to show. claude only.
    Informational {
        content "content": Lazy<'a>,
        level "level": Option<Str<'a>>,
        prevent_continuation "prevent_continuation": Option<bool>,
        /// What became of a prompt that a hook stopped.
        prompt_submit_outcome "prompt_submit_outcome": Any<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// Something to tell a person. claude only.
    Notification {
        key "key": Str<'a>,
        text "text": Lazy<'a>,
        priority "priority": Option<Str<'a>>,
        session_id "session_id": Str<'a>,
        uuid "uuid": Str<'a>,
    }
    /// How much the model has thought so far. claude only.
    ThinkingTokens {
        estimated_tokens "estimated_tokens": Num<'a>,
        estimated_tokens_delta "estimated_tokens_delta": Num<'a>,
        session_id "session_id": Str<'a>,
        uuid "uuid": Str<'a>,
    }
}

tagged! {
    /// A `system` record.
    System by "subtype" {
        Init(Init) = "init",
        SessionStateChanged(SessionStateChanged) = "session_state_changed",
        Status(Status) = "status",
        CompactBoundary(CompactBoundary) = "compact_boundary",
        PostTurnSummary(PostTurnSummary) = "post_turn_summary",
        LocalCommandOutput(LocalCommandOutput) = "local_command_output",
        HookStarted(HookStarted) = "hook_started",
        HookProgress(HookProgress) = "hook_progress",
        HookResponse(HookResponse) = "hook_response",
        FilesPersisted(FilesPersisted) = "files_persisted",
        TaskStarted(TaskStarted) = "task_started",
        TaskProgress(TaskProgress) = "task_progress",
        TaskNotification(TaskNotification) = "task_notification",
        ElicitationComplete(ElicitationComplete) = "elicitation_complete",
        ApiRetry(ApiRetry) = "api_retry",
        PermissionDenied(PermissionDenied) = "permission_denied",
        BackgroundTasksChanged(BackgroundTasksChanged) = "background_tasks_changed",
        Informational(Informational) = "informational",
        Notification(Notification) = "notification",
        ThinkingTokens(ThinkingTokens) = "thinking_tokens",
    }
}

objects! { without [];
    /// What was summarised.
    CompactMetadata {
        trigger "trigger": CompactTrigger<'a>,
        pre_tokens "pre_tokens": Nullable<Num<'a>>,
        preserved_segment "preserved_segment": Maybe<PreservedSegment<'a>>,
    }
    /// Messages that were kept as they are: head to tail, behind the anchor (WIRE-005).
    PreservedSegment {
        head_uuid "head_uuid": Str<'a>,
        anchor_uuid "anchor_uuid": Str<'a>,
        tail_uuid "tail_uuid": Str<'a>,
    }
    /// A file that was stored.
    PersistedFile {
        filename "filename": Str<'a>,
        file_id "file_id": Str<'a>,
    }
    /// A file that wasn't stored.
    FailedFile {
        filename "filename": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// What a task used.
    TaskUsage {
        total_tokens "total_tokens": Num<'a>,
        tool_uses "tool_uses": Num<'a>,
        duration_ms "duration_ms": Num<'a>,
    }
}
