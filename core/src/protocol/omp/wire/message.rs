//! Messages of the history and of the stream.
//!
//! Times are milliseconds since 1970. A message that grows is repeated whole in each update, so readers take its text
//! from the deltas and from `message_end`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Any;
use super::content::{Block, Content, StopReason, Usage};
use super::member::{Num, objects, tagged};
use crate::json::{Lazy, Str};

objects! { without ["role"];
    /// Of the user.
    UserMessage {
        content "content": Content<'a>,
        /// It went into an open run.
        steering "steering": Option<bool>,
        /// Not written by a person.
        synthetic "synthetic": Option<bool>,
        /// `user` or `agent`.
        attribution "attribution": Option<Str<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// Of the harness, in the developer's role.
    DeveloperMessage {
        content "content": Content<'a>,
        synthetic "synthetic": Option<bool>,
        attribution "attribution": Option<Str<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// Of the model.
    AssistantMessage {
        content "content": Vec<Block<'a>>,
        api "api": Option<Str<'a>>,
        provider "provider": Option<Str<'a>>,
        model "model": Option<Str<'a>>,
        usage "usage": Option<Box<Usage<'a>>>,
        stop_reason "stopReason": Option<StopReason<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
        response_id "responseId": Option<Str<'a>>,
        error_message "errorMessage": Option<Lazy<'a>>,
        /// An HTTP status.
        error_status "errorStatus": Option<Num<'a>>,
        error_id "errorId": Option<Num<'a>>,
        /// Milliseconds.
        duration "duration": Option<Num<'a>>,
        /// Milliseconds to the first token.
        ttft "ttft": Option<Num<'a>>,
        /// In `message_end` alone.
        completed_at "completedAt": Option<Num<'a>>,
    }
    /// Of a tool.
    ToolResultMessage {
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Option<Str<'a>>,
        content "content": Vec<Block<'a>>,
        details "details": Any<'a>,
        is_error "isError": Option<bool>,
        timestamp "timestamp": Option<Num<'a>>,
        useless "useless": Option<bool>,
    }
    /// A shell command of the host.
    BashExecution {
        command "command": Lazy<'a>,
        output "output": Lazy<'a>,
        exit_code "exitCode": Option<Num<'a>>,
        cancelled "cancelled": Option<bool>,
        truncated "truncated": Option<bool>,
        timestamp "timestamp": Option<Num<'a>>,
        meta "meta": Any<'a>,
        exclude_from_context "excludeFromContext": Option<bool>,
    }
    /// A piece of Python of the host.
    PythonExecution {
        code "code": Lazy<'a>,
        output "output": Lazy<'a>,
        exit_code "exitCode": Option<Num<'a>>,
        cancelled "cancelled": Option<bool>,
        truncated "truncated": Option<bool>,
        timestamp "timestamp": Option<Num<'a>>,
        meta "meta": Any<'a>,
        exclude_from_context "excludeFromContext": Option<bool>,
    }
    /// Of an extension or the harness.
    CustomMessage {
        custom_type "customType": Str<'a>,
        content "content": Content<'a>,
        display "display": Option<bool>,
        details "details": Any<'a>,
        attribution "attribution": Option<Str<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// Of a hook.
    HookMessage {
        custom_type "customType": Str<'a>,
        content "content": Content<'a>,
        display "display": Option<bool>,
        details "details": Any<'a>,
        attribution "attribution": Option<Str<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// What a branch that was left had come to.
    BranchSummary {
        summary "summary": Lazy<'a>,
        from_id "fromId": Str<'a>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// What stands for older messages.
    CompactionSummary {
        summary "summary": Lazy<'a>,
        short_summary "shortSummary": Option<Lazy<'a>>,
        tokens_before "tokensBefore": Option<Num<'a>>,
        tokens_after "tokensAfter": Option<Num<'a>>,
        method "method": Option<Str<'a>>,
        timestamp "timestamp": Option<Num<'a>>,
    }
    /// Files that a prompt named.
    FileMention {
        files "files": Any<'a>,
        timestamp "timestamp": Option<Num<'a>>,
    }
}

tagged! {
    /// A message.
    Message by "role" {
        User(UserMessage) = "user",
        Developer(DeveloperMessage) = "developer",
        Assistant(AssistantMessage) = "assistant",
        ToolResult(ToolResultMessage) = "toolResult",
        BashExecution(BashExecution) = "bashExecution",
        PythonExecution(PythonExecution) = "pythonExecution",
        Custom(CustomMessage) = "custom",
        Hook(HookMessage) = "hookMessage",
        BranchSummary(BranchSummary) = "branchSummary",
        CompactionSummary(CompactionSummary) = "compactionSummary",
        FileMention(FileMention) = "fileMention",
    }
}
