//! The 17 kinds of lines that an agent writes, with their members in the order of the wire: the alphabet's.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::values::{
    CostProvenance, CostStatus, ResultStatus, RunStatusWord, SideEffectWord, Version,
};
use crate::json::{Lazy, Str};
use crate::protocol::member::{Any, Map, Num, objects};

/// A member that says which kind of line it is: told by the type that holds it.
macro_rules! types {
    ($( $name:ident = $tag:literal, )*) => { $(
        #[doc = concat!("The word `", $tag, "`.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl crate::protocol::wire::Hole for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(concat!("\"", $tag, "\"").as_bytes());
            }
        }

        impl<'a> crate::protocol::member::Member<'a> for $name {
            const KIND: crate::protocol::spec::FieldKind = crate::protocol::spec::FieldKind::Word($tag);

            fn read<A: serde::de::MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                map.next_value::<serde::de::IgnoredAny>().map(|_| Some($name))
            }
        }
    )* };
}

/// The words that lines are told apart by.
pub mod word {
    use alloc::vec::Vec;

    types! {
        RunStart = "run_start",
        Reasoning = "reasoning",
        Text = "text",
        ToolCallStart = "tool_call_start",
        ToolCallDelta = "tool_call_delta",
        ToolCall = "tool_call",
        ToolResult = "tool_result",
        PermissionRequest = "permission_request",
        PermissionDecision = "permission_decision",
        Permission = "permission",
        Usage = "usage",
        Checkpoint = "checkpoint",
        Restore = "restore",
        Warning = "warning",
        Error = "error",
        Final = "final",
        RunEnd = "run_end",
    }
}

/// The lines, as an enum, and what goes over all of them.
macro_rules! events {
    ($( $variant:ident($held:ty) = $tag:literal, )*) => {
        /// A line of an agent.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Event<'a> {
            $( #[doc = concat!("`", $tag, "`")] $variant($held), )*
            /// Of a type that the contract doesn't have, as it came. A host passes over it (SP-03).
            Unknown(crate::json::Raw<'a>),
        }

        impl<'a> Event<'a> {
            /// Every type that is known.
            pub const TAGS: &'static [&'static str] = &[$($tag),*];

            /// The lines for the contract's page: type, members, meaning.
            pub(in crate::protocol) const KINDS: &'static [crate::protocol::member::KindRow] =
                &[$( ($tag, <$variant>::FIELDS, <$variant>::ABOUT), )*];

            /// Its type; `None` for one that isn't known.
            pub fn tag(&self) -> Option<&'static str> {
                match self {
                    $( Event::$variant(_) => Some($tag), )*
                    Event::Unknown(_) => None,
                }
            }

            /// The run that it is of.
            pub fn run_id(&self) -> Cow<'_, str> {
                match self {
                    $( Event::$variant(line) => Cow::Borrowed(&*line.run_id), )*
                    Event::Unknown(line) => line
                        .get_last("runId")
                        .and_then(crate::json::Raw::string)
                        .unwrap_or_default(),
                }
            }

            /// Reads the members of a line of this type; `None` if it isn't known.
            pub(in crate::protocol) fn of_line(
                tag: &str,
                line: &crate::json::Object<'_, 'a>,
            ) -> Option<Result<Self, crate::json::DecodeError>> {
                match tag {
                    $( $tag => Some(line.decode::<$variant<'a>>().map(Event::from)), )*
                    _ => None,
                }
            }

            pub(super) fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( Event::$variant(line) => crate::protocol::wire::Hole::put(line, out), )*
                    Event::Unknown(line) => crate::protocol::wire::Hole::put(line, out),
                }
            }
        }

        $( impl<'a> From<$variant<'a>> for Event<'a> {
            fn from(line: $variant<'a>) -> Self {
                Event::$variant(line.into())
            }
        } )*
    };
}

events! {
    RunStart(Box<RunStart<'a>>) = "run_start",
    Reasoning(Reasoning<'a>) = "reasoning",
    Text(Text<'a>) = "text",
    ToolCallStart(ToolCallStart<'a>) = "tool_call_start",
    ToolCallDelta(ToolCallDelta<'a>) = "tool_call_delta",
    ToolCall(Box<ToolCall<'a>>) = "tool_call",
    ToolResult(Box<ToolResult<'a>>) = "tool_result",
    PermissionRequest(Box<PermissionRequest<'a>>) = "permission_request",
    PermissionDecision(Box<PermissionDecision<'a>>) = "permission_decision",
    Permission(Box<Permission<'a>>) = "permission",
    Usage(Box<Usage<'a>>) = "usage",
    Checkpoint(Box<Checkpoint<'a>>) = "checkpoint",
    Restore(Box<Restore<'a>>) = "restore",
    Warning(Box<Warning<'a>>) = "warning",
    Error(Box<Error<'a>>) = "error",
    Final(Box<Final<'a>>) = "final",
    RunEnd(Box<RunEnd<'a>>) = "run_end",
}

objects! { without [];
    /// A run begins. The first line, unless the input was refused.
    RunStart {
        /// The model, as its provider names it.
        api_model "apiModel": Option<Str<'a>>,
        /// The folder that it works in.
        cwd "cwd": Option<Str<'a>>,
        model "model": Option<Str<'a>>,
        provider "provider": Option<Str<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        session_id "sessionId": Option<Str<'a>>,
        word "type": word::RunStart,
    }
    /// Progress, reasoning of a model, or the marker of a stage. Never part of the answer.
    Reasoning {
        delta "delta": Option<Lazy<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Reasoning,
    }
    /// A piece of the answer; near the end, a summary for people.
    Text {
        delta "delta": Option<Lazy<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Text,
    }
    /// A model begins to write arguments. What was joined under this id so far is void.
    ToolCallStart {
        id "id": Option<Str<'a>>,
        name "name": Option<Str<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::ToolCallStart,
    }
    /// A piece of arguments: joined by id they are whole.
    ToolCallDelta {
        delta "delta": Option<Lazy<'a>>,
        id "id": Str<'a>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::ToolCallDelta,
    }
    /// A tool begins to run. One `tool_result` of this id follows.
    ToolCall {
        /// Any value; a string where a model's arguments couldn't be read.
        args "args": Any<'a>,
        id "id": Option<Str<'a>>,
        name "name": Option<Str<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        side_effect "sideEffect": Option<SideEffectWord<'a>>,
        word "type": word::ToolCall,
    }
    /// What a call came to.
    ToolResult {
        changed_files "changedFiles": Option<Vec<Str<'a>>>,
        display "display": Option<Display<'a>>,
        id "id": Option<Str<'a>>,
        meta "meta": Option<Map<'a, Str<'a>>>,
        name "name": Option<Str<'a>>,
        /// 10,240 bytes at most, and a mark where it was cut.
        output "output": Option<Lazy<'a>>,
        redacted "redacted": Option<bool>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        status "status": ResultStatus<'a>,
        truncated "truncated": bool,
        word "type": word::ToolResult,
    }
    /// A call waits for somebody's word.
    PermissionRequest {
        action "action": Str<'a>,
        autonomy "autonomy": Option<Str<'a>>,
        block "block": Option<Block<'a>>,
        decision_reason "decisionReason": Option<Str<'a>>,
        grant "grant": Option<Grant<'a>>,
        grant_matched "grantMatched": Option<bool>,
        id "id": Option<Str<'a>>,
        name "name": Option<Str<'a>>,
        permission "permission": Option<Str<'a>>,
        permission_granted "permissionGranted": Option<bool>,
        permission_mode "permissionMode": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
        risk "risk": Option<Risk<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        session_id "sessionId": Option<Str<'a>>,
        side_effect "sideEffect": Option<SideEffectWord<'a>>,
        word "type": word::PermissionRequest,
    }
    /// Whether a call may run.
    PermissionDecision {
        action "action": Str<'a>,
        autonomy "autonomy": Option<Str<'a>>,
        block "block": Option<Block<'a>>,
        decision_reason "decisionReason": Option<Str<'a>>,
        grant "grant": Option<Grant<'a>>,
        grant_matched "grantMatched": Option<bool>,
        id "id": Option<Str<'a>>,
        name "name": Option<Str<'a>>,
        permission "permission": Option<Str<'a>>,
        permission_granted "permissionGranted": Option<bool>,
        permission_mode "permissionMode": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
        risk "risk": Option<Risk<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        session_id "sessionId": Option<Str<'a>>,
        side_effect "sideEffect": Option<SideEffectWord<'a>>,
        word "type": word::PermissionDecision,
    }
    /// An action that is neither a request nor a decision.
    Permission {
        action "action": Option<Str<'a>>,
        autonomy "autonomy": Option<Str<'a>>,
        block "block": Option<Block<'a>>,
        decision_reason "decisionReason": Option<Str<'a>>,
        grant "grant": Option<Grant<'a>>,
        grant_matched "grantMatched": Option<bool>,
        id "id": Option<Str<'a>>,
        name "name": Option<Str<'a>>,
        permission "permission": Option<Str<'a>>,
        permission_granted "permissionGranted": Option<bool>,
        permission_mode "permissionMode": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
        risk "risk": Option<Risk<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        session_id "sessionId": Option<Str<'a>>,
        side_effect "sideEffect": Option<SideEffectWord<'a>>,
        word "type": word::Permission,
    }
    /// What a request to a model took. One for each, failed ones too.
    Usage {
        cache_write_tokens "cacheWriteTokens": Option<u64>,
        cached_input_tokens "cachedInputTokens": Option<u64>,
        completion_tokens "completionTokens": u64,
        /// True where the provenance isn't `reported`.
        cost_estimated "costEstimated": Option<bool>,
        cost_provenance "costProvenance": Option<CostProvenance<'a>>,
        cost_status "costStatus": Option<CostStatus<'a>>,
        /// Only of what is priced: an unknown cost is never 0.
        cost_usd "costUsd": Option<Num<'a>>,
        iteration "iteration": Option<u64>,
        model "model": Option<Str<'a>>,
        pricing_as_of "pricingAsOf": Option<Str<'a>>,
        pricing_source "pricingSource": Option<Str<'a>>,
        prompt_tokens "promptTokens": u64,
        provider "provider": Option<Str<'a>>,
        reasoning_tokens "reasoningTokens": Option<u64>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        stage "stage": Option<Str<'a>>,
        total_tokens "totalTokens": u64,
        word "type": word::Usage,
        unpriced_reason "unpricedReason": Option<Str<'a>>,
        usage_reported "usageReported": Option<bool>,
        /// Counts the requests of the run, from 1.
        usage_sequence "usageSequence": Option<u64>,
    }
    /// Files as they were before a call that writes.
    Checkpoint {
        checkpoint "checkpoint": Snapshot<'a>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Checkpoint,
    }
    /// Files were put back. Reserved: nothing writes it.
    Restore {
        checkpoint "checkpoint": Restored<'a>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Restore,
    }
    /// Something that a person should know.
    Warning {
        message "message": Option<Lazy<'a>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Warning,
    }
    /// Why the run doesn't end well.
    Error {
        code "code": Str<'a>,
        message "message": Option<Lazy<'a>>,
        recoverable "recoverable": bool,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        word "type": word::Error,
    }
    /// What the run came to: the text of a JSON object of a pipeline, plain text of a session.
    Final {
        /// Of a specification that was drafted.
        meta "meta": Option<Map<'a, Str<'a>>>,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        text "text": Option<Lazy<'a>>,
        word "type": word::Final,
    }
    /// The run is over. The last line; its exit code is that of the process.
    RunEnd {
        exit_code "exitCode": u64,
        run_id "runId": Str<'a>,
        version "schemaVersion": Version,
        status "status": RunStatusWord<'a>,
        word "type": word::RunEnd,
    }
}

objects! { without [];
    /// How a result may be shown.
    Display {
        /// `file`, `diff` or `browser`.
        kind "kind": Option<Str<'a>>,
        summary "summary": Option<Str<'a>>,
    }
    /// How dangerous a call is.
    Risk {
        categories "categories": Option<Vec<Str<'a>>>,
        /// `low`, `medium`, `high` or `critical`.
        level "level": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
    }
    /// Why a call may not run. Version 1 called it `violation`.
    Block {
        action "action": Option<Str<'a>>,
        code "code": Option<Str<'a>>,
        path "path": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
        recoverable "recoverable": Option<bool>,
        risk "risk": Any<'a>,
        tool_name "toolName": Option<Str<'a>>,
    }
    /// An approval that was given before.
    Grant {
        approved_at "approvedAt": Option<Str<'a>>,
        decision "decision": Option<Str<'a>>,
        reason "reason": Option<Str<'a>>,
        /// A path or a host; left out for the whole tool.
        scope "scope": Option<Str<'a>>,
        /// `file`, `dir` or `host`.
        scope_kind "scopeKind": Option<Str<'a>>,
        session "session": Any<'a>,
        tool_name "toolName": Option<Str<'a>>,
    }
    /// Which files were put aside.
    Snapshot {
        files "files": Option<Vec<Str<'a>>>,
        /// Where it stands in the session's log: it grows, with gaps.
        sequence "sequence": Option<u64>,
        tool "tool": Option<Str<'a>>,
    }
    /// Which files were put back.
    Restored {
        files_deleted "filesDeleted": Option<Vec<Str<'a>>>,
        files_restored "filesRestored": Option<Vec<Str<'a>>>,
        sequence "sequence": Option<u64>,
        skipped "skipped": Any<'a>,
        tool "tool": Option<Str<'a>>,
    }
}
