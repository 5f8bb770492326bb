//! The records of a conversation: messages, what streams, results, and what is told beside them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::attachment::{ImportRejected, ImportResult};
use super::content::{AssistantMessage, Block, Denial, ModelUsage, Said, Usage};
use crate::json::{Lazy, Raw, Str};
use crate::protocol::member::{Any, Kept, Map, Maybe, Nullable, Num, objects, tagged, words};

words! {
    /// How a turn ended.
    ResultKind {
        /// In claude also a failed one, with `is_error`.
        Success "success",
        ErrorDuringExecution "error_during_execution",
        ErrorMaxTurns "error_max_turns",
        ErrorMaxBudgetUsd "error_max_budget_usd",
        ErrorMaxStructuredOutputRetries "error_max_structured_output_retries",
    }
    /// Why a reply failed.
    ReplyError {
        AuthenticationFailed "authentication_failed",
        BillingError "billing_error",
        RateLimit "rate_limit",
        InvalidRequest "invalid_request",
        ServerError "server_error",
        Unknown "unknown",
        MaxOutputTokens "max_output_tokens",
    }
    /// When a prompt that comes while a turn runs gets its own.
    Priority {
        /// At once: the turn is cancelled.
        Now "now",
        /// Before those that say `later`.
        Next "next",
        Later "later",
    }
    /// What becomes of a prompt. claude only.
    LifecycleState {
        Queued "queued",
        Started "started",
        Completed "completed",
        Cancelled "cancelled",
    }
}

objects! { without ["type"];
    /// A message of a user: a prompt, what tools gave back, or the replay of a prompt.
    User {
        /// A message that isn't one is kept, and refused by whoever reads it.
        message "message": Option<Kept<'a, Said<'a>>>,
        parent_tool_use_id "parent_tool_use_id": Maybe<Str<'a>>,
        session_id "session_id": Option<Str<'a>>,
        /// Of a prompt: its own id.
        uuid "uuid": Option<Str<'a>>,
        /// A time, as RFC 3339 writes it.
        timestamp "timestamp": Option<Str<'a>>,
        /// The tool's own result, in a form of its own.
        tool_use_result "tool_use_result": Any<'a>,
        tool_result_meta "tool_result_meta": Any<'a>,
        /// Nobody wrote it.
        is_synthetic "isSynthetic": Option<bool>,
        /// It was said before; needs both ids.
        is_replay "isReplay": Option<bool>,
        /// A [`Priority`]; another value is refused by whoever reads it.
        priority "priority": Option<Kept<'a, Priority<'a>>>,
    }
    /// A message of the model, or one block of it.
    Assistant {
        message "message": Box<AssistantMessage<'a>>,
        parent_tool_use_id "parent_tool_use_id": Maybe<Str<'a>>,
        session_id "session_id": Str<'a>,
        uuid "uuid": Str<'a>,
        timestamp "timestamp": Option<Str<'a>>,
        error "error": Option<ReplyError<'a>>,
        request_id "request_id": Option<Str<'a>>,
        is_api_error_message "is_api_error_message": Option<bool>,
        api_error_status "api_error_status": Maybe<Num<'a>>,
        api_error_type "api_error_type": Maybe<Str<'a>>,
        /// It was cut off.
        aborted "aborted": Option<bool>,
        user_message_uuid "user_message_uuid": Option<Str<'a>>,
        user_message_uuids "user_message_uuids": Option<Vec<Str<'a>>>,
    }
    /// A turn has ended. One for each prompt that got a turn, or was refused as input.
    TurnResult {
        subtype "subtype": ResultKind<'a>,
        is_error "is_error": bool,
        api_error_status "api_error_status": Maybe<Num<'a>>,
        api_error_type "api_error_type": Maybe<Str<'a>>,
        duration_ms "duration_ms": Num<'a>,
        duration_api_ms "duration_api_ms": Num<'a>,
        ttft_ms "ttft_ms": Option<Num<'a>>,
        num_turns "num_turns": u64,
        /// What the model said last. Never on an error of the strict wire.
        result "result": Option<Lazy<'a>>,
        stop_reason "stop_reason": Maybe<Str<'a>>,
        session_id "session_id": Str<'a>,
        /// US dollars. `null`: nobody knows the price; 0 only where it is known to be 0 (WIRE-012).
        total_cost_usd "total_cost_usd": Nullable<Num<'a>>,
        usage "usage": Box<Usage<'a>>,
        model_usage "modelUsage": Option<Map<'a, ModelUsage<'a>>>,
        permission_denials "permission_denials": Option<Vec<Denial<'a>>>,
        structured_output "structured_output": Any<'a>,
        terminal_reason "terminal_reason": Option<Str<'a>>,
        fast_mode_state "fast_mode_state": Option<Str<'a>>,
        /// The prompt's own id. Strict only.
        prompt_uuid "prompt_uuid": Option<Str<'a>>,
        uuid "uuid": Str<'a>,
        /// On errors, always.
        errors "errors": Option<Vec<Lazy<'a>>>,
        user_message_uuid "user_message_uuid": Option<Str<'a>>,
        user_message_uuids "user_message_uuids": Option<Vec<Str<'a>>>,
    }
    /// A piece of a reply, as it streams.
    StreamLine {
        /// claude: an event of the provider. Strict: a [`TextPiece`](StreamEvent::TextPiece), or whatever the provider sent.
        event "event": Kept<'a, StreamEvent<'a>>,
        session_id "session_id": Str<'a>,
        parent_tool_use_id "parent_tool_use_id": Maybe<Str<'a>>,
        uuid "uuid": Str<'a>,
        ttft_ms "ttft_ms": Option<Num<'a>>,
        thinking_display "thinking_display": Option<Str<'a>>,
        api_message_id "api_message_id": Option<Str<'a>>,
        user_message_uuid "user_message_uuid": Option<Str<'a>>,
        user_message_uuids "user_message_uuids": Option<Vec<Str<'a>>>,
        abandoned_blocks "abandoned_blocks": Any<'a>,
    }
    /// A tool is still running.
    ToolProgress {
        tool_use_id "tool_use_id": Str<'a>,
        tool_name "tool_name": Str<'a>,
        parent_tool_use_id "parent_tool_use_id": Maybe<Str<'a>>,
        elapsed_time_seconds "elapsed_time_seconds": Num<'a>,
        task_id "task_id": Option<Str<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// How logging in goes.
    AuthStatus {
        is_authenticating "isAuthenticating": bool,
        output "output": Vec<Lazy<'a>>,
        error "error": Option<Lazy<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// How close the account is to its limits.
    RateLimit {
        rate_limit_info "rate_limit_info": Kept<'a, RateLimitInfo<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What calls came to, in a sentence.
    ToolUseSummary {
        summary "summary": Lazy<'a>,
        preceding_tool_use_ids "preceding_tool_use_ids": Vec<Str<'a>>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What a person may want to say next.
    PromptSuggestion {
        suggestion "suggestion": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// The text of a reply alone.
    StreamlinedText {
        text "text": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// The calls so far, in a sentence.
    StreamlinedToolUseSummary {
        tool_summary "tool_summary": Lazy<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// What becomes of a prompt that has an id of its own. claude only.
    CommandLifecycle {
        command_uuid "command_uuid": Str<'a>,
        state "state": LifecycleState<'a>,
        uuid "uuid": Str<'a>,
        session_id "session_id": Str<'a>,
    }
    /// This side is alive. It means nothing else.
    KeepAlive {}
}

tagged! {
    /// A record of the agent that isn't a `system` one, nor control.
    Record by "type" {
        User(User) = "user",
        Assistant(Assistant) = "assistant",
        Result(TurnResult) = "result",
        Stream(StreamLine) = "stream_event",
        ToolProgress(ToolProgress) = "tool_progress",
        AuthStatus(AuthStatus) = "auth_status",
        RateLimit(RateLimit) = "rate_limit_event",
        ToolUseSummary(ToolUseSummary) = "tool_use_summary",
        PromptSuggestion(PromptSuggestion) = "prompt_suggestion",
        StreamlinedText(StreamlinedText) = "streamlined_text",
        StreamlinedToolUseSummary(StreamlinedToolUseSummary) = "streamlined_tool_use_summary",
        CommandLifecycle(CommandLifecycle) = "command_lifecycle",
        ImportResult(ImportResult) = "attachment_import_result",
        ImportRejected(ImportRejected) = "attachment_import_rejected",
        KeepAlive(KeepAlive) = "keep_alive",
    }
}

objects! { without [];
    /// How the account stands.
    RateLimitInfo {
        /// `allowed`, `allowed_warning` or `rejected`.
        status "status": Str<'a>,
        resets_at "resetsAt": Option<Num<'a>>,
        rate_limit_type "rateLimitType": Option<Str<'a>>,
        utilization "utilization": Option<Num<'a>>,
        overage_status "overageStatus": Option<Str<'a>>,
        overage_resets_at "overageResetsAt": Option<Num<'a>>,
        overage_disabled_reason "overageDisabledReason": Option<Str<'a>>,
        is_using_overage "isUsingOverage": Option<bool>,
    }
}

objects! { without ["type"];
    /// A message begins.
    MessageStart {
        message "message": Box<AssistantMessage<'a>>,
    }
    /// A block begins.
    BlockStart {
        index "index": u64,
        content_block "content_block": Kept<'a, Block<'a>>,
    }
    /// A block grows.
    BlockDelta {
        index "index": u64,
        delta "delta": Kept<'a, Delta<'a>>,
    }
    /// A block is whole.
    BlockStop {
        index "index": u64,
    }
    /// How the message ends, and what it used.
    MessageDelta {
        delta "delta": MessageEnd<'a>,
        usage "usage": Option<Box<Usage<'a>>>,
        context_management "context_management": Any<'a>,
    }
    /// A message is whole.
    MessageStop {}
    /// A piece of text, in the strict wire's own form.
    TextPiece {
        delta "delta": Lazy<'a>,
    }
    /// More text.
    TextDelta {
        text "text": Lazy<'a>,
    }
    /// More of a call's input, as JSON text.
    InputJsonDelta {
        partial_json "partial_json": Lazy<'a>,
    }
    /// More thinking.
    ThinkingDelta {
        thinking "thinking": Lazy<'a>,
    }
    /// The signature of the thinking.
    SignatureDelta {
        signature "signature": Lazy<'a>,
    }
    /// A citation.
    CitationsDelta {
        citation "citation": Raw<'a>,
    }
}

tagged! {
    /// An event of a model's stream.
    StreamEvent by "type" {
        BlockDelta(BlockDelta) = "content_block_delta",
        MessageStart(MessageStart) = "message_start",
        BlockStart(BlockStart) = "content_block_start",
        BlockStop(BlockStop) = "content_block_stop",
        MessageDelta(MessageDelta) = "message_delta",
        MessageStop(MessageStop) = "message_stop",
        TextPiece(TextPiece) = "response.output_text.delta",
    }
}

tagged! {
    /// What is new in a block.
    Delta by "type" {
        Text(TextDelta) = "text_delta",
        InputJson(InputJsonDelta) = "input_json_delta",
        Thinking(ThinkingDelta) = "thinking_delta",
        Signature(SignatureDelta) = "signature_delta",
        Citations(CitationsDelta) = "citations_delta",
    }
}

objects! { without [];
    /// How a message ended.
    MessageEnd {
        container "container": Any<'a>,
        stop_details "stop_details": Any<'a>,
        stop_reason "stop_reason": Maybe<Str<'a>>,
        stop_sequence "stop_sequence": Maybe<Str<'a>>,
    }
}
