//! One word for each way that things can be: for JSON, and within sentences.

use turnwire::vocab::*;

/// How a turn or a prompt ended.
pub fn end(end: &End) -> &'static str {
    match end {
        End::Finished { .. } => "finished",
        End::Local => "local",
        End::Truncated(_) => "truncated",
        End::MaxSteps => "max_steps",
        End::BudgetExhausted(_) => "budget_exhausted",
        End::Unverified => "unverified",
        End::Blocked(_) => "blocked",
        End::Yielded { .. } => "yielded",
        End::Aborted { .. } => "aborted",
        End::Incomplete(_) => "incomplete",
        End::Cancelled(_) => "cancelled",
        End::Dropped(_) => "dropped",
        End::Withdrawn => "withdrawn",
        End::Failed(_) => "failed",
        End::NotSaid => "not_said",
    }
}

/// What there is to say about an end.
pub fn end_text(end: &End) -> Option<&str> {
    match end {
        End::Finished { finish } => finish.as_deref(),
        End::Truncated(failure) | End::Incomplete(failure) | End::Failed(failure) => {
            Some(&failure.text)
        }
        End::Blocked(text) | End::Aborted { reason: text } => Some(text),
        End::Local
        | End::MaxSteps
        | End::BudgetExhausted(_)
        | End::Unverified
        | End::Yielded { .. }
        | End::Cancelled(_)
        | End::Dropped(_)
        | End::Withdrawn
        | End::NotSaid => None,
    }
}

/// How a call ended.
pub fn outcome(outcome: &ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Ok => "ok",
        ToolOutcome::Failed => "failed",
        ToolOutcome::Invalid => "invalid",
        ToolOutcome::NotFound => "not_found",
        ToolOutcome::Denied(_) => "denied",
        ToolOutcome::Cancelled => "cancelled",
        ToolOutcome::TimedOut => "timed_out",
        ToolOutcome::Detached(_) => "detached",
        ToolOutcome::EndedTurn => "ended_turn",
        ToolOutcome::NotSaid => "not_said",
    }
}

/// How a question was closed.
pub fn ask_close(how: &AskClose) -> &'static str {
    match how {
        AskClose::Answered {
            allow: Some(true), ..
        } => "approved",
        AskClose::Answered {
            allow: Some(false), ..
        } => "declined",
        AskClose::Answered { allow: None, .. } => "answered",
        AskClose::Superseded => "superseded",
        AskClose::TimedOut => "timed_out",
        AskClose::Withdrawn => "withdrawn",
        AskClose::Cancelled => "cancelled",
        AskClose::HostGone => "host_gone",
        AskClose::Fault(_) => "fault",
    }
}

/// Why a command was refused.
pub fn refusal(refusal: &Refusal) -> (&'static str, Option<&str>) {
    match refusal {
        Refusal::Busy => ("busy", None),
        Refusal::Empty => ("empty", None),
        Refusal::Cancelled => ("cancelled", None),
        Refusal::Untrusted(text) => ("untrusted", Some(text)),
        Refusal::Blocked { text, .. } => ("blocked", Some(text)),
        Refusal::Unknown => ("unknown", None),
        Refusal::AlreadySettled => ("already_settled", None),
        Refusal::Closing => ("closing", None),
        Refusal::Full => ("full", None),
        Refusal::TooLarge => ("too_large", None),
        Refusal::Unsupported(text) => ("unsupported", Some(text)),
        Refusal::Invalid(text) => ("invalid", Some(text)),
        Refusal::Failed(failure) => ("failed", Some(&failure.text)),
    }
}

/// How bad a notice is.
pub fn level(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Progress => "progress",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// What kind of text a delta is.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Thinking => "thinking",
        Kind::Signature => "signature",
        Kind::Input => "input",
        Kind::Opaque => "opaque",
    }
}

/// What a block is.
pub fn block(head: &BlockHead) -> &'static str {
    match head {
        BlockHead::Text => "text",
        BlockHead::Thinking => "thinking",
        BlockHead::Redacted => "redacted",
        BlockHead::ToolUse { .. } => "tool_use",
        BlockHead::Opaque => "opaque",
    }
}

/// Why the model stopped.
pub fn stop(stop: &Stop) -> &str {
    match stop {
        Stop::End => "end",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::StopSequence(_) => "stop_sequence",
        Stop::Refusal => "refusal",
        Stop::Truncated => "truncated",
        Stop::Cancelled => "cancelled",
        Stop::Detached => "detached",
        Stop::Failed => "failed",
        Stop::NotSaid => "not_said",
        Stop::Other(word) => word,
    }
}

/// How an attempt ended.
pub fn request(outcome: &RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Complete { .. } => "complete",
        RequestOutcome::Truncated => "truncated",
        RequestOutcome::Cancelled => "cancelled",
        RequestOutcome::Failed(_) => "failed",
    }
}

/// Whose a message is.
pub fn role(role: &Role) -> &str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool { .. } => "tool",
        Role::Note => "note",
        Role::Summary => "summary",
        Role::Shell => "shell",
        Role::Other(word) => word,
    }
}

/// Where a prompt waits.
pub fn lane(lane: Lane) -> &'static str {
    match lane {
        Lane::Steer => "steer",
        Lane::FollowUp => "follow_up",
        Lane::Next => "next",
        Lane::Later => "later",
    }
}

/// Why a turn began.
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Prompt => "prompt",
        Cause::Queue => "queue",
        Cause::Job => "job",
        Cause::Goal => "goal",
        Cause::Hook => "hook",
        Cause::NotSaid => "not_said",
    }
}

/// Why a session closed.
pub fn close(why: &CloseWhy) -> (&'static str, Option<&str>) {
    match why {
        CloseWhy::Drained => ("drained", None),
        CloseWhy::HostGone => ("host_gone", None),
        CloseWhy::Signal(_) => ("signal", None),
        CloseWhy::Fault(failure) => ("fault", Some(&failure.text)),
    }
}

/// How calls are approved.
pub fn mode(mode: &ApprovalMode) -> &str {
    match mode {
        ApprovalMode::Auto => "auto",
        ApprovalMode::AcceptEdits => "accept_edits",
        ApprovalMode::Ask => "ask",
        ApprovalMode::ReadOnly => "readonly",
        ApprovalMode::Plan => "plan",
        ApprovalMode::Never => "never",
        ApprovalMode::Other(word) => word,
    }
}

/// Whose decision something was.
pub fn decider(by: &Decider) -> &'static str {
    match by {
        Decider::Mode => "mode",
        Decider::Rule(_) => "rule",
        Decider::Hook(_) => "hook",
        Decider::Host => "host",
        Decider::Timer => "timer",
        Decider::Closed => "closed",
        Decider::Fault(_) => "fault",
        Decider::Cancel => "cancel",
    }
}

/// How a nested run ended.
pub fn run(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::NoReport => "no_report",
        RunStatus::MaxSteps => "max_steps",
        RunStatus::Yielded => "yielded",
        RunStatus::TimedOut => "timed_out",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Skipped => "skipped",
        RunStatus::Incomplete => "incomplete",
    }
}

/// The text of a result.
pub fn text(content: &[Block]) -> String {
    content.iter().filter_map(Block::text).collect()
}
