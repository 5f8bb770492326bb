//! Hooks that run at the host: how they are offered, called, and answered. Not in the strict wire.

use alloc::vec::Vec;

use crate::json::{Lazy, Str};
use crate::protocol::member::{Any, Kept, Map, Maybe, Num, objects, words};

words! {
    /// When a hook is called.
    HookEvent {
        PreToolUse "PreToolUse",
        PostToolUse "PostToolUse",
        PostToolUseFailure "PostToolUseFailure",
        PermissionRequest "PermissionRequest",
        UserPromptSubmit "UserPromptSubmit",
        Notification "Notification",
        SessionStart "SessionStart",
        SessionEnd "SessionEnd",
        Stop "Stop",
        SubagentStart "SubagentStart",
        SubagentStop "SubagentStop",
        PreCompact "PreCompact",
    }
    /// What a hook before a tool decides.
    HookPermission {
        Allow "allow",
        Deny "deny",
        Ask "ask",
    }
}

objects! { without [];
    /// Hooks for some of an event's calls.
    HookMatcher {
        /// A pattern of tool names; `null`: all.
        matcher "matcher": Maybe<Str<'a>>,
        hook_callback_ids "hookCallbackIds": Vec<Str<'a>>,
        /// Seconds.
        timeout "timeout": Option<Num<'a>>,
        on_failure "onFailure": Any<'a>,
    }
    /// What a hook is told. Members beside the common ones belong to single events.
    HookInput {
        session_id "session_id": Option<Str<'a>>,
        transcript_path "transcript_path": Option<Str<'a>>,
        cwd "cwd": Option<Str<'a>>,
        prompt_id "prompt_id": Option<Str<'a>>,
        permission_mode "permission_mode": Option<Str<'a>>,
        effort "effort": Any<'a>,
        hook_event_name "hook_event_name": HookEvent<'a>,
        tool_name "tool_name": Option<Str<'a>>,
        tool_input "tool_input": Any<'a>,
        tool_response "tool_response": Any<'a>,
        tool_use_id "tool_use_id": Option<Str<'a>>,
        permission_suggestions "permission_suggestions": Any<'a>,
        duration_ms "duration_ms": Option<Num<'a>>,
        prompt "prompt": Option<Lazy<'a>>,
        stop_hook_active "stop_hook_active": Option<bool>,
        last_assistant_message "last_assistant_message": Option<Lazy<'a>>,
        background_tasks "background_tasks": Any<'a>,
        session_crons "session_crons": Any<'a>,
    }
    /// What a hook answers. `{}` lets everything pass.
    HookOutput {
        /// False ends the turn.
        go_on "continue": Option<bool>,
        stop_reason "stopReason": Option<Lazy<'a>>,
        suppress_output "suppressOutput": Option<bool>,
        system_message "systemMessage": Option<Lazy<'a>>,
        /// `block`
        decision "decision": Option<Str<'a>>,
        reason "reason": Option<Lazy<'a>>,
        hook_specific_output "hookSpecificOutput": Option<Kept<'a, HookSpecific<'a>>>,
        /// The answer comes later, and is not waited for.
        is_async "async": Option<bool>,
        /// Milliseconds.
        async_timeout "asyncTimeout": Option<Num<'a>>,
    }
    /// What a hook of one event answers.
    HookSpecific {
        hook_event_name "hookEventName": HookEvent<'a>,
        permission_decision "permissionDecision": Option<HookPermission<'a>>,
        permission_decision_reason "permissionDecisionReason": Option<Lazy<'a>>,
        updated_input "updatedInput": Any<'a>,
        additional_context "additionalContext": Option<Lazy<'a>>,
        /// A [`Decision`](super::Decision).
        decision "decision": Any<'a>,
    }
}

/// The hooks of a host: for each event, who is called.
pub type Hooks<'a> = Map<'a, Vec<Kept<'a, HookMatcher<'a>>>>;
