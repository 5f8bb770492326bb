//! What an agent writes beside responses and events of the session. No filter hides these.

use alloc::vec::Vec;

use super::Any;
use super::content::Model;
use super::data::SlashCommand;
use super::member::{Kept, Num, objects, tagged, words};
use crate::json::{Lazy, Raw, Str};

words! {
    /// How a prompt ended.
    PromptStatus {
        Completed "completed",
        Aborted "aborted",
        Error "error",
    }
    /// What a host is asked to do with a URI.
    UriOperation {
        Read "read",
        Write "write",
    }
    /// How a subagent stands.
    LifecycleStatus {
        Started "started",
        Completed "completed",
        Failed "failed",
        Aborted "aborted",
    }
}

objects! { without ["type"];
    /// The first line.
    Ready {
        protocol_version "protocolVersion": Option<u64>,
        supported_protocol_versions "supportedProtocolVersions": Option<Vec<u64>>,
        max_frame_bytes "maxFrameBytes": Option<u64>,
        max_reassembled_frame_bytes "maxReassembledFrameBytes": Option<u64>,
    }
    /// The end of one accepted prompt.
    PromptResult {
        /// The command's, as it came.
        id "id": Any<'a>,
        agent_invoked "agentInvoked": bool,
        /// G2.
        status "status": Option<PromptStatus<'a>>,
        /// Nothing will wake the session again; if false, a `session_settled` may follow. G2.
        session_settled "sessionSettled": Option<bool>,
        error "error": Option<PromptError<'a>>,
    }
    /// Nothing runs, nothing is queued, nothing can wake the session. G2.
    SessionSettled {}
    /// The slash commands: at the start, after a change of the session, and whenever they change.
    AvailableCommandsUpdate {
        commands "commands": Vec<Kept<'a, SlashCommand<'a>>>,
    }
    /// What a slash command printed.
    CommandOutput {
        text "text": Lazy<'a>,
    }
    /// A slash command changed the title.
    SessionInfoUpdate {
        title "title": Option<Str<'a>>,
        session_id "sessionId": Str<'a>,
    }
    /// A slash command changed the model.
    ConfigUpdate {
        model "model": Option<Kept<'a, Model<'a>>>,
        thinking_level "thinkingLevel": Option<Str<'a>>,
    }
    /// An extension failed.
    ExtensionError {
        extension_path "extensionPath": Str<'a>,
        event "event": Str<'a>,
        error "error": Lazy<'a>,
    }
    /// A frame that could not be made to fit.
    FrameError {
        original_type "originalType": Option<Str<'a>>,
        error "error": Lazy<'a>,
    }
    /// A piece of a frame that is too long for a line: see [`codec`](super::super::codec). Its members may be anything
    /// until they are checked there.
    Chunk {
        /// 1 to 128 characters; the same in all pieces of a frame.
        chunk_id "chunkId": Any<'a>,
        /// From 0.
        index "index": Any<'a>,
        /// 2 to 256.
        count "count": Any<'a>,
        /// Of the whole frame.
        byte_length "byteLength": Any<'a>,
        /// Base64, padded.
        data "data": Any<'a>,
    }
    /// The host runs one of its tools.
    HostToolCall {
        id "id": Str<'a>,
        tool_call_id "toolCallId": Str<'a>,
        tool_name "toolName": Str<'a>,
        arguments "arguments": Any<'a>,
    }
    /// The host stops that tool.
    HostToolCancel {
        id "id": Str<'a>,
        target_id "targetId": Str<'a>,
    }
    /// The host reads or writes one of its URIs.
    HostUriRequest {
        id "id": Str<'a>,
        operation "operation": UriOperation<'a>,
        url "url": Str<'a>,
        /// What to write.
        content "content": Option<Lazy<'a>>,
    }
    /// The host stops that request.
    HostUriCancel {
        id "id": Str<'a>,
        target_id "targetId": Str<'a>,
    }
    /// A subagent started or ended.
    SubagentLifecycle {
        payload "payload": Lifecycle<'a>,
    }
    /// How far a subagent is.
    SubagentProgress {
        payload "payload": Progress<'a>,
    }
    /// An event of a subagent.
    SubagentEvent {
        payload "payload": Nested<'a>,
    }
    /// What the talk does. G3.
    LivePhase {
        /// `connecting`, `listening`, `working`, `speaking`, `muted` or `error`.
        phase "phase": Str<'a>,
    }
    /// Loudness, from 0 to 1. G3.
    LiveLevels {
        input "input": Num<'a>,
        output "output": Num<'a>,
    }
    /// What was said; replaces the earlier one of this role and turn. G3.
    LiveTranscript {
        role "role": Str<'a>,
        turn "turn": u64,
        text "text": Lazy<'a>,
        is_final "final": bool,
    }
    /// The talk has ended. Once. G3.
    LiveEnd {
        error "error": Option<Lazy<'a>>,
    }
    /// A piece of an answer to a side question. G3.
    BtwDelta {
        record_id "recordId": Str<'a>,
        delta "delta": Lazy<'a>,
    }
    /// A side question changed. G3.
    BtwRecord {
        record "record": Raw<'a>,
    }
}

objects! { without [];
    /// Why a prompt failed.
    PromptError {
        message "message": Lazy<'a>,
        provider "provider": Option<Str<'a>>,
        model "model": Option<Str<'a>>,
        /// Sending it again later may help.
        retryable "retryable": Option<bool>,
        http_status "httpStatus": Option<Num<'a>>,
    }
    /// A subagent, when it starts or ends.
    Lifecycle {
        id "id": Str<'a>,
        agent "agent": Str<'a>,
        agent_source "agentSource": Str<'a>,
        description "description": Option<Str<'a>>,
        status "status": LifecycleStatus<'a>,
        session_file "sessionFile": Option<Str<'a>>,
        parent_tool_call_id "parentToolCallId": Option<Str<'a>>,
        index "index": u64,
        detached "detached": Option<bool>,
    }
    /// A subagent, while it works.
    Progress {
        index "index": u64,
        agent "agent": Str<'a>,
        agent_source "agentSource": Str<'a>,
        task "task": Lazy<'a>,
        parent_tool_call_id "parentToolCallId": Option<Str<'a>>,
        assignment "assignment": Option<Lazy<'a>>,
        progress "progress": Any<'a>,
        session_file "sessionFile": Option<Str<'a>>,
        detached "detached": Option<bool>,
    }
    /// An event, and whose.
    Nested {
        id "id": Str<'a>,
        /// An [`Event`](super::Event), as text until asked for.
        event "event": Raw<'a>,
    }
}

tagged! {
    /// A frame that is neither a response nor an event of the session.
    Frame by "type" {
        Ready(Ready) = "ready",
        PromptResult(PromptResult) = "prompt_result",
        SessionSettled(SessionSettled) = "session_settled",
        AvailableCommandsUpdate(AvailableCommandsUpdate) = "available_commands_update",
        CommandOutput(CommandOutput) = "command_output",
        SessionInfoUpdate(SessionInfoUpdate) = "session_info_update",
        ConfigUpdate(ConfigUpdate) = "config_update",
        ExtensionError(ExtensionError) = "extension_error",
        FrameError(FrameError) = "rpc_frame_error",
        Chunk(Chunk) = "rpc_chunk",
        HostToolCall(HostToolCall) = "host_tool_call",
        HostToolCancel(HostToolCancel) = "host_tool_cancel",
        HostUriRequest(HostUriRequest) = "host_uri_request",
        HostUriCancel(HostUriCancel) = "host_uri_cancel",
        SubagentLifecycle(SubagentLifecycle) = "subagent_lifecycle",
        SubagentProgress(SubagentProgress) = "subagent_progress",
        SubagentEvent(SubagentEvent) = "subagent_event",
        LivePhase(LivePhase) = "live_phase",
        LiveLevels(LiveLevels) = "live_levels",
        LiveTranscript(LiveTranscript) = "live_transcript",
        LiveEnd(LiveEnd) = "live_end",
        BtwDelta(BtwDelta) = "btw_delta",
        BtwRecord(BtwRecord) = "btw_record",
    }
}
