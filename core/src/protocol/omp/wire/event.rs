//! Events of the session: what `set_event_filter` can hide, and what a subagent's events are.
//!
//! Messages in them stay text until asked for ([`Message::decode`](super::Message::decode)): updates repeat them, and
//! most readers pass over most of them.

use alloc::vec::Vec;

use super::Any;
use super::content::Block;
use super::data::Compaction;
use super::member::{Kept, Nullable, Num, objects, tagged, words};
use crate::json::{Lazy, Raw, Str};

words! {
    /// Why the history is summarised by itself.
    CompactionReason {
        Threshold "threshold",
        Overflow "overflow",
        Idle "idle",
        Incomplete "incomplete",
    }
    /// How loud a notice is.
    NoticeLevel {
        Info "info",
        Warning "warning",
        Error "error",
    }
}

objects! { without ["type"];
    /// A block of text begins.
    TextStart {
        content_index "contentIndex": u64,
        partial "partial": Any<'a>,
    }
    /// A piece of text.
    TextDelta {
        content_index "contentIndex": u64,
        delta "delta": Lazy<'a>,
        partial "partial": Any<'a>,
    }
    /// The whole text of a block.
    TextEnd {
        content_index "contentIndex": u64,
        content "content": Lazy<'a>,
        partial "partial": Any<'a>,
    }
    /// A block of thinking begins.
    ThinkingStart {
        content_index "contentIndex": u64,
        partial "partial": Any<'a>,
    }
    /// A piece of thinking.
    ThinkingDelta {
        content_index "contentIndex": u64,
        delta "delta": Lazy<'a>,
        partial "partial": Any<'a>,
    }
    /// The whole thinking of a block.
    ThinkingEnd {
        content_index "contentIndex": u64,
        content "content": Lazy<'a>,
        partial "partial": Any<'a>,
    }
    /// A call begins.
    ToolcallStart {
        content_index "contentIndex": u64,
        partial "partial": Any<'a>,
    }
    /// A piece of a call's arguments, as JSON text; may be empty.
    ToolcallDelta {
        content_index "contentIndex": u64,
        delta "delta": Lazy<'a>,
        partial "partial": Any<'a>,
    }
    /// The whole call: a block of type `toolCall`.
    ToolcallEnd {
        content_index "contentIndex": u64,
        tool_call "toolCall": Block<'a>,
        partial "partial": Any<'a>,
    }
    /// A picture: a block of type `image`.
    ImageEnd {
        content_index "contentIndex": u64,
        content "content": Block<'a>,
        partial "partial": Any<'a>,
    }
    /// Declared, and never seen: `message_start` stands for it.
    ReplyStart {
        partial "partial": Any<'a>,
    }
    /// Declared, and never seen: `message_end` stands for it.
    ReplyDone {
        reason "reason": Str<'a>,
        message "message": Any<'a>,
    }
    /// Declared, and never seen: `message_end` stands for it.
    ReplyError {
        reason "reason": Str<'a>,
        error "error": Any<'a>,
    }
}

tagged! {
    /// What is new in a message that grows. `partial` repeats all of it, unless the host asked for deltas.
    Update by "type" {
        TextDelta(TextDelta) = "text_delta",
        ThinkingDelta(ThinkingDelta) = "thinking_delta",
        ToolcallDelta(ToolcallDelta) = "toolcall_delta",
        TextStart(TextStart) = "text_start",
        TextEnd(TextEnd) = "text_end",
        ThinkingStart(ThinkingStart) = "thinking_start",
        ThinkingEnd(ThinkingEnd) = "thinking_end",
        ToolcallStart(ToolcallStart) = "toolcall_start",
        ToolcallEnd(ToolcallEnd) = "toolcall_end",
        ImageEnd(ImageEnd) = "image_end",
        Start(ReplyStart) = "start",
        Done(ReplyDone) = "done",
        Error(ReplyError) = "error",
    }
}

objects! { without ["type"];
    /// A run begins, or goes on after a failed attempt.
    AgentStart {}
    /// A run ends. It is the end of the work unless `isTerminal` is false.
    AgentEnd {
        /// The run's messages; a prefix that was delivered may be left out ([`AgentEnd::message_count`]).
        messages "messages": Vec<Raw<'a>>,
        is_terminal "isTerminal": Option<bool>,
        /// False: a retry, a compaction or a reminder follows, and nothing is completed. G2.
        yielded "yielded": Option<bool>,
        awaiting_async_work "awaitingAsyncWork": Option<bool>,
        telemetry "telemetry": Any<'a>,
        coverage "coverage": Any<'a>,
        /// How many there were before the frame was made to fit.
        message_count "messageCount": Option<u64>,
    }
    /// A step begins: one request to the model.
    TurnStart {}
    /// A step ends.
    TurnEnd {
        message "message": Raw<'a>,
        tool_results "toolResults": Vec<Raw<'a>>,
    }
    /// A message begins.
    MessageStart {
        message "message": Raw<'a>,
        message_id "messageId": Option<Str<'a>>,
    }
    /// A reply grows.
    MessageUpdate {
        update "assistantMessageEvent": Update<'a>,
        /// All of it so far; its `role` alone, if the host asked for deltas.
        message "message": Any<'a>,
        message_id "messageId": Option<Str<'a>>,
    }
    /// A message is whole.
    MessageEnd {
        message "message": Raw<'a>,
        message_id "messageId": Option<Str<'a>>,
    }
    /// A tool runs.
    ToolExecutionStart {
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Str<'a>,
        args "args": Any<'a>,
        intent "intent": Option<Str<'a>>,
    }
    /// What a tool gave so far: a [`ToolOutput`](super::ToolOutput).
    ToolExecutionUpdate {
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Str<'a>,
        args "args": Any<'a>,
        partial_result "partialResult": Any<'a>,
    }
    /// What a tool streams, in a form of its own.
    ToolStreamUpdate {
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Str<'a>,
        update "update": Any<'a>,
    }
    /// A tool has ended, with a [`ToolOutput`](super::ToolOutput).
    ToolExecutionEnd {
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Str<'a>,
        result "result": Any<'a>,
        is_error "isError": Option<bool>,
    }
    /// The history is being summarised.
    AutoCompactionStart {
        reason "reason": CompactionReason<'a>,
        /// `context-full`, `remote`, `handoff`, `shake` or `snapcompact`.
        action "action": Str<'a>,
    }
    /// The history was summarised, or not.
    AutoCompactionEnd {
        action "action": Str<'a>,
        result "result": Option<Kept<'a, Compaction<'a>>>,
        aborted "aborted": bool,
        will_retry "willRetry": bool,
        error_message "errorMessage": Option<Lazy<'a>>,
        skipped "skipped": Option<bool>,
    }
    /// The request will be sent again.
    AutoRetryStart {
        /// From 1.
        attempt "attempt": u64,
        max_attempts "maxAttempts": u64,
        delay_ms "delayMs": Num<'a>,
        error_message "errorMessage": Lazy<'a>,
        error_id "errorId": Option<Num<'a>>,
    }
    /// The retries have ended.
    AutoRetryEnd {
        success "success": bool,
        attempt "attempt": u64,
        final_error "finalError": Option<Lazy<'a>>,
        retry_errors "retryErrors": Option<Vec<Raw<'a>>>,
    }
    /// Another model is tried.
    RetryFallbackApplied {
        from "from": Str<'a>,
        to "to": Str<'a>,
        role "role": Str<'a>,
        reason "reason": Option<Str<'a>>,
    }
    /// The other model answered.
    RetryFallbackSucceeded {
        model "model": Str<'a>,
        role "role": Str<'a>,
    }
    /// The model is another one.
    ModelChanged {}
    /// Warnings about the configuration changed.
    ConfigWarningsChanged {}
    /// The advisor's cost changed.
    AdvisorCostChanged {}
    /// The advisor has spoken.
    AdvisorYielded {}
    /// The to-do list was cleared by itself.
    TodoAutoClear {}
    /// The thinking level is another one.
    ThinkingLevelChanged {
        thinking_level "thinkingLevel": Option<Str<'a>>,
        configured "configured": Option<Str<'a>>,
        resolved "resolved": Option<Str<'a>>,
    }
    /// Rules of the project spoke up.
    TtsrTriggered {
        rules "rules": Vec<Raw<'a>>,
    }
    /// The model is reminded of its list.
    TodoReminder {
        todos "todos": Vec<Raw<'a>>,
        attempt "attempt": u64,
        max_attempts "maxAttempts": u64,
    }
    /// A message between agents.
    IrcMessage {
        message "message": Raw<'a>,
    }
    /// Something to tell a person.
    Notice {
        level "level": NoticeLevel<'a>,
        message "message": Lazy<'a>,
        source "source": Option<Str<'a>>,
    }
    /// The goal changed. G3.
    GoalUpdated {
        goal "goal": Nullable<super::data::GoalData<'a>>,
        state "state": Any<'a>,
    }
    /// What is queued now. G3.
    QueueUpdate {
        steering "steering": Vec<Str<'a>>,
        follow_up "followUp": Vec<Str<'a>>,
    }
    /// The provider's cache is being kept warm. G3.
    CacheWarmingStart {
        phase "phase": Str<'a>,
        provider "provider": Str<'a>,
        model "model": Str<'a>,
    }
    /// It was, or not. G3.
    CacheWarmingEnd {
        phase "phase": Str<'a>,
        provider "provider": Str<'a>,
        model "model": Str<'a>,
        outcome "outcome": Str<'a>,
        usage "usage": Any<'a>,
        warming_stop_reason "warmingStopReason": Option<Str<'a>>,
    }
    /// Another persona. G3.
    PersonaChanged {
        persona_name "personaName": Nullable<Str<'a>>,
        source "source": Option<Str<'a>>,
    }
}

tagged! {
    /// An event of a session.
    Event by "type" {
        MessageUpdate(MessageUpdate) = "message_update",
        AgentStart(AgentStart) = "agent_start",
        AgentEnd(AgentEnd) = "agent_end",
        TurnStart(TurnStart) = "turn_start",
        TurnEnd(TurnEnd) = "turn_end",
        MessageStart(MessageStart) = "message_start",
        MessageEnd(MessageEnd) = "message_end",
        ToolExecutionStart(ToolExecutionStart) = "tool_execution_start",
        ToolExecutionUpdate(ToolExecutionUpdate) = "tool_execution_update",
        ToolStreamUpdate(ToolStreamUpdate) = "tool_stream_update",
        ToolExecutionEnd(ToolExecutionEnd) = "tool_execution_end",
        AutoCompactionStart(AutoCompactionStart) = "auto_compaction_start",
        AutoCompactionEnd(AutoCompactionEnd) = "auto_compaction_end",
        AutoRetryStart(AutoRetryStart) = "auto_retry_start",
        AutoRetryEnd(AutoRetryEnd) = "auto_retry_end",
        RetryFallbackApplied(RetryFallbackApplied) = "retry_fallback_applied",
        RetryFallbackSucceeded(RetryFallbackSucceeded) = "retry_fallback_succeeded",
        ModelChanged(ModelChanged) = "model_changed",
        ConfigWarningsChanged(ConfigWarningsChanged) = "config_warnings_changed",
        AdvisorCostChanged(AdvisorCostChanged) = "advisor_cost_changed",
        AdvisorYielded(AdvisorYielded) = "advisor_yielded",
        TodoAutoClear(TodoAutoClear) = "todo_auto_clear",
        ThinkingLevelChanged(ThinkingLevelChanged) = "thinking_level_changed",
        TtsrTriggered(TtsrTriggered) = "ttsr_triggered",
        TodoReminder(TodoReminder) = "todo_reminder",
        IrcMessage(IrcMessage) = "irc_message",
        Notice(Notice) = "notice",
        GoalUpdated(GoalUpdated) = "goal_updated",
        QueueUpdate(QueueUpdate) = "queue_update",
        CacheWarmingStart(CacheWarmingStart) = "cache_warming_start",
        CacheWarmingEnd(CacheWarmingEnd) = "cache_warming_end",
        PersonaChanged(PersonaChanged) = "persona_changed",
    }
}
