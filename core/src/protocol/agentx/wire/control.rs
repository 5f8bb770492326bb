//! Control: requests in both directions, their answers, and how they are withdrawn.

use alloc::vec::Vec;

use super::hook::{HookInput, Hooks};
use super::permission::{AskUserQuestion, CanUseTool};
use crate::json::{DecodeError, Lazy, Raw, Str};
use crate::protocol::member::{Any, Kept, Maybe, Num, Tag, objects, tagged, words};
use crate::protocol::wire::Hole;

words! {
    /// How a form or a page is asked for.
    ElicitationMode {
        Form "form",
        Url "url",
    }
}

objects! { without ["subtype"];
    /// Greets the agent, and asks what it has. The strict wire takes no member here.
    Initialize {
        /// What is called when: [`Hooks`].
        hooks "hooks": Maybe<Hooks<'a>>,
        /// The names of MCP servers that the host runs.
        sdk_mcp_servers "sdkMcpServers": Maybe<Vec<Str<'a>>>,
        sdk_mcp_server_configs "sdkMcpServerConfigs": Any<'a>,
        sdk_mcp_server_manifests "sdkMcpServerManifests": Any<'a>,
        json_schema "jsonSchema": Any<'a>,
        system_prompt "systemPrompt": Any<'a>,
        append_system_prompt "appendSystemPrompt": Any<'a>,
        agents "agents": Any<'a>,
        title "title": Any<'a>,
        skills "skills": Any<'a>,
        plugins "plugins": Any<'a>,
        settings "settings": Any<'a>,
        prompt_suggestions "promptSuggestions": Any<'a>,
        exclude_dynamic_sections "excludeDynamicSections": Any<'a>,
        system_prompt_snapshot "systemPromptSnapshot": Any<'a>,
        forward_subagent_text "forwardSubagentText": Any<'a>,
    }
    /// Ends the turn. The answer says that it was heard; the turn's `result` follows.
    Interrupt {}
    /// Another mode of permissions. A fixed error in the strict wire.
    SetPermissionMode {
        /// A [`PermissionMode`](super::PermissionMode).
        mode "mode": Any<'a>,
    }
    /// Another model; `null`, or absent: the default one. A fixed error in the strict wire.
    SetModel {
        model "model": Any<'a>,
    }
    /// How much the model may think; `null`: no limit. A fixed error in the strict wire.
    SetMaxThinkingTokens {
        max_thinking_tokens "max_thinking_tokens": Any<'a>,
    }
    /// How MCP servers stand.
    McpStatus {}
    /// How full the context is.
    GetContextUsage {}
    /// Puts files back to where they were before a message.
    RewindFiles {
        user_message_id "user_message_id": Str<'a>,
        dry_run "dry_run": Option<bool>,
    }
    /// Takes a queued message back.
    CancelAsyncMessage {
        message_uuid "message_uuid": Str<'a>,
    }
    /// Says that the host has seen a file as it was at this time.
    SeedReadState {
        path "path": Str<'a>,
        mtime "mtime": Num<'a>,
    }
    /// Calls a hook at the host.
    HookCallback {
        callback_id "callback_id": Str<'a>,
        input "input": Kept<'a, HookInput<'a>>,
        tool_use_id "tool_use_id": Maybe<Str<'a>>,
    }
    /// A message to an MCP server at the other side.
    McpMessage {
        server_name "server_name": Str<'a>,
        /// JSON-RPC.
        message "message": Raw<'a>,
    }
    /// Other MCP servers, all of them. Answered before any is connected.
    McpSetServers {
        servers "servers": Raw<'a>,
    }
    /// Finds plugins again.
    ReloadPlugins {}
    /// Connects an MCP server again.
    McpReconnect {
        server_name "serverName": Str<'a>,
    }
    /// Turns an MCP server on or off.
    McpToggle {
        server_name "serverName": Str<'a>,
        enabled "enabled": bool,
    }
    /// Ends a task.
    StopTask {
        task_id "task_id": Str<'a>,
    }
    /// Lays settings over the flags of the command line.
    ApplyFlagSettings {
        settings "settings": Raw<'a>,
    }
    /// The settings: all together, and each source.
    GetSettings {}
    /// Asks a person for an MCP server.
    Elicitation {
        mcp_server_name "mcp_server_name": Str<'a>,
        message "message": Lazy<'a>,
        mode "mode": Option<ElicitationMode<'a>>,
        url "url": Option<Str<'a>>,
        elicitation_id "elicitation_id": Option<Str<'a>>,
        requested_schema "requested_schema": Any<'a>,
    }
}

tagged! {
    /// An operation that one side asks of the other.
    Operation by "subtype" {
        Initialize(Initialize) = "initialize",
        Interrupt(Interrupt) = "interrupt",
        CanUseTool(CanUseTool) = "can_use_tool",
        SetPermissionMode(SetPermissionMode) = "set_permission_mode",
        SetModel(SetModel) = "set_model",
        SetMaxThinkingTokens(SetMaxThinkingTokens) = "set_max_thinking_tokens",
        McpStatus(McpStatus) = "mcp_status",
        GetContextUsage(GetContextUsage) = "get_context_usage",
        RewindFiles(RewindFiles) = "rewind_files",
        CancelAsyncMessage(CancelAsyncMessage) = "cancel_async_message",
        SeedReadState(SeedReadState) = "seed_read_state",
        HookCallback(HookCallback) = "hook_callback",
        McpMessage(McpMessage) = "mcp_message",
        McpSetServers(McpSetServers) = "mcp_set_servers",
        ReloadPlugins(ReloadPlugins) = "reload_plugins",
        McpReconnect(McpReconnect) = "mcp_reconnect",
        McpToggle(McpToggle) = "mcp_toggle",
        StopTask(StopTask) = "stop_task",
        ApplyFlagSettings(ApplyFlagSettings) = "apply_flag_settings",
        GetSettings(GetSettings) = "get_settings",
        Elicitation(Elicitation) = "elicitation",
        AskUserQuestion(AskUserQuestion) = "ask_user_question",
    }
}

objects! { without ["type"];
    /// A request. Its operation is read on its own ([`operation`](ControlRequest::operation)), so that one that lacks a
    /// member can still be answered.
    ControlRequest {
        /// What the answer names: unique among the requests of its side.
        request_id "request_id": Tag<'a>,
        /// An [`Operation`].
        request "request": Any<'a>,
        /// Another spelling of `request_id`, which is read where that isn't there, and never written.
        alias "requestId": Any<'a>,
    }
    /// The answer to a request.
    ControlResponse {
        response "response": Option<Kept<'a, Response<'a>>>,
    }
    /// A request is withdrawn: its answer isn't wanted any more.
    ControlCancel {
        request_id "request_id": Tag<'a>,
        /// Another spelling of `request_id`, which is read where that isn't there, and never written.
        alias "requestId": Any<'a>,
    }
}

objects! { without [];
    /// What a response says.
    Response {
        /// `success` or `error`; claude takes any other word for `success`.
        subtype "subtype": Tag<'a>,
        /// The request's.
        request_id "request_id": Tag<'a>,
        /// The payload of a success, whose shape is that of the operation: see [`Answer`](super::Answer) and
        /// [`Decision`](super::Decision). `null` and absent differ.
        response "response": Any<'a>,
        /// Why it failed: a text.
        error "error": Maybe<Kept<'a, Lazy<'a>>>,
        /// Why it failed, for machines. claude only.
        error_code "error_code": Option<Str<'a>>,
        /// Questions that are open: each a whole `control_request`. On failures in the strict wire, on the success of
        /// another `initialize` in claude.
        pending_permission_requests "pending_permission_requests": Any<'a>,
        pending_user_dialog_requests "pending_user_dialog_requests": Any<'a>,
        /// Another spelling of `request_id`, which is read where that isn't there, and never written.
        alias "requestId": Any<'a>,
    }
}

tagged! {
    /// A request that stands within another line.
    Pending by "type" {
        Request(ControlRequest) = "control_request",
    }
}

impl<'a> ControlRequest<'a> {
    /// Reads the operation.
    ///
    /// # Errors
    /// When it isn't there, or lacks a member, or has one of another type.
    pub fn operation(&self) -> Result<Operation<'a>, DecodeError> {
        self.request.get().unwrap_or(Raw::NULL).decode()
    }

    /// Whether the operation has any member beside its name, `null` or not: those that take none refuse it then.
    pub fn has_fields(&self) -> bool {
        let mut has = false;
        if let Some(request) = self.request.get() {
            request.each_member(|name, _| has |= name != "subtype");
        }
        has
    }

    /// The operation's name.
    pub fn subtype(&self) -> Tag<'a> {
        match self.request.get() {
            Some(request) => Tag::of(request.get_last("subtype")),
            None => Tag::Absent,
        }
    }

    /// Appends a request with this operation instead of its own, without its newline.
    pub fn encode_with(request_id: &str, operation: &Operation<'_>, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(b"{\"type\":\"control_request\",\"request_id\":");
        Str::from(request_id).put(out);
        out.extend_from_slice(b",\"request\":");
        operation.put(out);
        out.push(b'}');
        super::escape_separators(out, from);
    }
}

impl<'a> Response<'a> {
    /// A success without payload.
    pub fn success(request_id: impl Into<Tag<'a>>) -> Self {
        Response {
            subtype: "success".into(),
            request_id: request_id.into(),
            ..Response::default()
        }
    }

    /// A success with a payload.
    pub fn success_with(request_id: impl Into<Tag<'a>>, payload: Raw<'a>) -> Self {
        Response {
            response: payload.into(),
            ..Response::success(request_id)
        }
    }

    /// A failure.
    pub fn failure(request_id: impl Into<Tag<'a>>, error: impl Into<Lazy<'a>>) -> Self {
        Response {
            subtype: "error".into(),
            request_id: request_id.into(),
            error: Maybe::Value(Kept::Known(error.into())),
            ..Response::default()
        }
    }

    /// Whether it says that the operation failed.
    pub fn is_error(&self) -> bool {
        self.subtype.name() == Some("error")
    }

    /// Why it failed.
    pub fn error_text(&self) -> Option<&str> {
        self.error.value()?.known().map(|text| &**text)
    }
}

impl<'a> From<Response<'a>> for ControlResponse<'a> {
    fn from(response: Response<'a>) -> Self {
        ControlResponse {
            response: Some(Kept::Known(response)),
            ..ControlResponse::default()
        }
    }
}

/// Takes the other spelling of an id where the first isn't there, and drops it where it is.
fn settle_alias<'a>(id: &mut Tag<'a>, alias: &mut Any<'a>) {
    if let Some(value) = alias.get() {
        if matches!(id, Tag::Absent) {
            *id = Tag::of(Some(value));
        }
        *alias = Any::ABSENT;
    }
}

impl<'a> ControlRequest<'a> {
    pub(super) fn settled(mut self) -> Self {
        settle_alias(&mut self.request_id, &mut self.alias);
        self
    }
}

impl<'a> ControlCancel<'a> {
    pub(super) fn settled(mut self) -> Self {
        settle_alias(&mut self.request_id, &mut self.alias);
        self
    }
}

impl<'a> ControlResponse<'a> {
    pub(super) fn settled(mut self) -> Self {
        if let Some(Kept::Known(response)) = &mut self.response {
            settle_alias(&mut response.request_id, &mut response.alias);
        }
        self
    }

    /// What it says, where that can be read.
    pub fn known(&self) -> Option<&Response<'a>> {
        self.response.as_ref().and_then(Kept::known)
    }
}
