//! Commands: what a host asks for. Each takes an `id` and gets one response.
//!
//! Members that the agent validates itself, with a text of its own, have any type here ([`Any`]).

use alloc::vec::Vec;

use super::Any;
use super::content::Image;
use super::data::{HostScheme, HostTool, TodoPhase};
use super::member::{Kept, objects, tagged, words};
use crate::json::{Lazy, Str};

words! {
    /// What becomes of a prompt while a run is open.
    Streaming {
        /// It goes into the run.
        Steer "steer",
        /// It comes after it.
        FollowUp "followUp",
    }
    /// How a queue is drained.
    QueueMode {
        OneAtATime "one-at-a-time",
        All "all",
    }
    /// When a steer that comes while tools run is heard.
    InterruptMode {
        Immediate "immediate",
        Wait "wait",
    }
    /// What to do with the goal.
    GoalOp {
        Get "get",
        Create "create",
        Resume "resume",
        Pause "pause",
        Drop "drop",
    }
}

objects! { without ["id", "type"];
    /// Another version of the transport. The answer still has the form of the old one.
    NegotiateProtocol {
        /// Only the number 2 is accepted.
        protocol_version "protocolVersion": Any<'a>,
    }
    /// A prompt. Its acceptance is answered; its end is a `prompt_result` or the run's `agent_end`.
    Prompt {
        message "message": Lazy<'a>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
        /// Needed while a run is open.
        streaming_behavior "streamingBehavior": Option<Streaming<'a>>,
    }
    /// A message into the open run; begins one when there is none. Nothing tells of its end.
    Steer {
        message "message": Lazy<'a>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
    }
    /// A message after the open run; begins one when there is none. Nothing tells of its end.
    FollowUp {
        message "message": Lazy<'a>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
    }
    /// Ends the run; what is queued stays queued.
    Abort {}
    /// Ends the run, then prompts.
    AbortAndPrompt {
        message "message": Lazy<'a>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
    }
    /// Takes queued input back, then ends the run. G3.
    AbortAndRestoreQueue {}
    /// Takes one queued message back, found by its text. G3.
    RemoveQueuedMessage {
        message "message": Any<'a>,
        /// `steering` or `followUp`.
        queue "queue": Any<'a>,
        /// `first` or `last`.
        which "match": Any<'a>,
        refuse_attachments "refuseAttachments": Any<'a>,
    }
    /// Moves one follow-up to the end of the steering queue. G3.
    PromoteQueuedMessage {
        message "message": Any<'a>,
    }
    /// A new session. A live run is detached, without closing events.
    NewSession {
        parent_session "parentSession": Option<Str<'a>>,
    }
    /// Goes on with the newest session of a folder, or begins one there. G2.
    OpenSession {
        session_dir "sessionDir": Str<'a>,
        provider "provider": Option<Str<'a>>,
        model_id "modelId": Option<Str<'a>>,
    }
    /// Another session, by its file.
    SwitchSession {
        session_path "sessionPath": Str<'a>,
        provider "provider": Option<Str<'a>>,
        model_id "modelId": Option<Str<'a>>,
    }
    /// A session that begins before a user message of this one.
    Branch {
        entry_id "entryId": Any<'a>,
    }
    /// A session with this one's history, up to an entry. G3.
    Fork {
        entry_id "entryId": Option<Str<'a>>,
    }
    /// The state of the session.
    GetState {}
    /// The slash commands.
    GetAvailableCommands {}
    /// Finds skills and slash commands again. G3.
    RefreshCommands {}
    /// The entries of the session, or those after one. G2.
    GetEntries {
        since "since": Any<'a>,
    }
    /// The tree of entries. G2.
    GetTree {}
    /// Replaces the to-do list.
    SetTodos {
        phases "phases": Vec<Kept<'a, TodoPhase<'a>>>,
    }
    /// Replaces the tools that the host runs.
    SetHostTools {
        tools "tools": Vec<Kept<'a, HostTool<'a>>>,
    }
    /// Replaces the URI schemes that the host serves.
    SetHostUriSchemes {
        schemes "schemes": Vec<Kept<'a, HostScheme<'a>>>,
    }
    /// Which frames of subagents are sent.
    SetSubagentSubscription {
        /// `off`, `progress` or `events`.
        level "level": Any<'a>,
    }
    /// Which events are sent. G2.
    SetEventFilter {
        /// A list of types, or null for all.
        events "events": Any<'a>,
        /// `full` or `delta`. G3.
        message_updates "messageUpdates": Any<'a>,
    }
    /// The subagents.
    GetSubagents {}
    /// What a subagent wrote.
    GetSubagentMessages {
        subagent_id "subagentId": Option<Str<'a>>,
        session_file "sessionFile": Option<Str<'a>>,
        /// A finite number.
        from_byte "fromByte": Any<'a>,
    }
    /// Ends a subagent. G3.
    CancelSubagent {
        subagent_id "subagentId": Str<'a>,
    }
    /// Speaks to a subagent. G3.
    SteerSubagent {
        subagent_id "subagentId": Str<'a>,
        message "message": Lazy<'a>,
    }
    /// Another model.
    SetModel {
        provider "provider": Any<'a>,
        model_id "modelId": Any<'a>,
    }
    /// The next model.
    CycleModel {}
    /// The models.
    GetAvailableModels {}
    /// Another thinking level.
    SetThinkingLevel {
        level "level": Any<'a>,
    }
    /// The next thinking level.
    CycleThinkingLevel {}
    /// The thinking levels of the model. G2.
    GetAvailableThinkingLevels {}
    /// How queued steering is drained.
    SetSteeringMode {
        mode "mode": QueueMode<'a>,
    }
    /// How follow-ups are drained.
    SetFollowUpMode {
        mode "mode": QueueMode<'a>,
    }
    /// When steering interrupts tools.
    SetInterruptMode {
        mode "mode": InterruptMode<'a>,
    }
    /// Summarises the history.
    Compact {
        custom_instructions "customInstructions": Option<Str<'a>>,
    }
    /// Whether the history is summarised by itself.
    SetAutoCompaction {
        enabled "enabled": bool,
    }
    /// Whether failed requests are sent again.
    SetAutoRetry {
        enabled "enabled": bool,
    }
    /// Ends the wait before a retry.
    AbortRetry {}
    /// Runs a shell command, beside everything else.
    Bash {
        command "command": Str<'a>,
    }
    /// Ends the shell command.
    AbortBash {}
    /// Fast mode on or off.
    SetFastMode {
        enabled "enabled": bool,
    }
    /// Slow mode on or off. G3.
    SetSlowMode {
        enabled "enabled": bool,
    }
    /// How the provider's cache is kept warm. G3.
    SetCacheWarming {
        /// `off`, `streaming` or `idle`.
        mode "mode": Any<'a>,
    }
    /// Whether the host shows whole forms of questions. G3.
    SetAskDialog {
        enabled "enabled": bool,
    }
    /// Reads or changes the goal. G3.
    Goal {
        op "op": GoalOp<'a>,
        objective "objective": Option<Str<'a>>,
        /// A positive whole number.
        token_budget "token_budget": Any<'a>,
    }
    /// Tokens, messages and money of the session.
    GetSessionStats {}
    /// Writes the session as a page.
    ExportHtml {
        output_path "outputPath": Option<Str<'a>>,
    }
    /// The user messages that a branch can begin at.
    GetBranchMessages {}
    /// The text of the last reply.
    GetLastAssistantText {}
    /// The session's name.
    SetSessionName {
        name "name": Str<'a>,
    }
    /// Goes on in a new session with a summary.
    Handoff {
        custom_instructions "customInstructions": Option<Str<'a>>,
    }
    /// All messages.
    GetMessages {}
    /// A page of messages.
    GetMessagesPage {
        cursor "cursor": Any<'a>,
        /// 1 to 256; 100 if it isn't there.
        limit "limit": Any<'a>,
    }
    /// The providers that one can log in at.
    GetLoginProviders {}
    /// Logs in.
    Login {
        provider_id "providerId": Str<'a>,
    }
    /// The credentials that can be removed. G3.
    GetLogoutAccounts {
        provider_id "providerId": Str<'a>,
    }
    /// Removes a credential. G3.
    Logout {
        provider_id "providerId": Str<'a>,
        credential_id "credentialId": Any<'a>,
    }
    /// Starts to talk. G3.
    LiveStart {
        voice "voice": Option<Str<'a>>,
        instructions "instructions": Option<Str<'a>>,
    }
    /// Ends the talk. G3.
    LiveStop {}
    /// Mutes the microphone, or the other way round. G3.
    LiveMute {
        muted "muted": Option<bool>,
    }
    /// How the word at the cursor may end. G3.
    PredictWord {
        text "text": Str<'a>,
        /// In units of UTF-16.
        cursor "cursor": Any<'a>,
    }
    /// Whether the suggestion was taken. G3.
    PredictWordFeedback {
        text "text": Str<'a>,
        /// In units of UTF-16.
        cursor "cursor": Any<'a>,
        suggestion "suggestion": Str<'a>,
        accepted "accepted": bool,
    }
    /// A side question. G3.
    Btw {
        question "question": Str<'a>,
        record_id "recordId": Option<Str<'a>>,
    }
    /// Ends the side question. G3.
    BtwCancel {
        record_id "recordId": Option<Str<'a>>,
    }
    /// The side questions so far. G3.
    GetBtwHistory {}
}

tagged! {
    /// Any command.
    Command by "type" {
        NegotiateProtocol(NegotiateProtocol) = "negotiate_protocol",
        Prompt(Prompt) = "prompt",
        Steer(Steer) = "steer",
        FollowUp(FollowUp) = "follow_up",
        RemoveQueuedMessage(RemoveQueuedMessage) = "remove_queued_message",
        PromoteQueuedMessage(PromoteQueuedMessage) = "promote_queued_message",
        Abort(Abort) = "abort",
        AbortAndPrompt(AbortAndPrompt) = "abort_and_prompt",
        AbortAndRestoreQueue(AbortAndRestoreQueue) = "abort_and_restore_queue",
        NewSession(NewSession) = "new_session",
        OpenSession(OpenSession) = "open_session",
        GetState(GetState) = "get_state",
        SetFastMode(SetFastMode) = "set_fast_mode",
        SetSlowMode(SetSlowMode) = "set_slow_mode",
        Goal(Goal) = "goal",
        SetAskDialog(SetAskDialog) = "set_ask_dialog",
        GetAvailableCommands(GetAvailableCommands) = "get_available_commands",
        RefreshCommands(RefreshCommands) = "refresh_commands",
        GetEntries(GetEntries) = "get_entries",
        GetTree(GetTree) = "get_tree",
        SetTodos(SetTodos) = "set_todos",
        SetHostTools(SetHostTools) = "set_host_tools",
        SetHostUriSchemes(SetHostUriSchemes) = "set_host_uri_schemes",
        SetSubagentSubscription(SetSubagentSubscription) = "set_subagent_subscription",
        SetEventFilter(SetEventFilter) = "set_event_filter",
        GetSubagents(GetSubagents) = "get_subagents",
        GetSubagentMessages(GetSubagentMessages) = "get_subagent_messages",
        CancelSubagent(CancelSubagent) = "cancel_subagent",
        SteerSubagent(SteerSubagent) = "steer_subagent",
        LiveStart(LiveStart) = "live_start",
        LiveStop(LiveStop) = "live_stop",
        LiveMute(LiveMute) = "live_mute",
        SetModel(SetModel) = "set_model",
        CycleModel(CycleModel) = "cycle_model",
        GetAvailableModels(GetAvailableModels) = "get_available_models",
        SetThinkingLevel(SetThinkingLevel) = "set_thinking_level",
        CycleThinkingLevel(CycleThinkingLevel) = "cycle_thinking_level",
        GetAvailableThinkingLevels(GetAvailableThinkingLevels) = "get_available_thinking_levels",
        SetSteeringMode(SetSteeringMode) = "set_steering_mode",
        SetFollowUpMode(SetFollowUpMode) = "set_follow_up_mode",
        SetInterruptMode(SetInterruptMode) = "set_interrupt_mode",
        Compact(Compact) = "compact",
        SetAutoCompaction(SetAutoCompaction) = "set_auto_compaction",
        SetCacheWarming(SetCacheWarming) = "set_cache_warming",
        SetAutoRetry(SetAutoRetry) = "set_auto_retry",
        AbortRetry(AbortRetry) = "abort_retry",
        Bash(Bash) = "bash",
        AbortBash(AbortBash) = "abort_bash",
        GetSessionStats(GetSessionStats) = "get_session_stats",
        ExportHtml(ExportHtml) = "export_html",
        SwitchSession(SwitchSession) = "switch_session",
        Branch(Branch) = "branch",
        Fork(Fork) = "fork",
        GetBranchMessages(GetBranchMessages) = "get_branch_messages",
        GetLastAssistantText(GetLastAssistantText) = "get_last_assistant_text",
        SetSessionName(SetSessionName) = "set_session_name",
        Handoff(Handoff) = "handoff",
        GetMessages(GetMessages) = "get_messages",
        GetMessagesPage(GetMessagesPage) = "get_messages_page",
        GetLoginProviders(GetLoginProviders) = "get_login_providers",
        Login(Login) = "login",
        GetLogoutAccounts(GetLogoutAccounts) = "get_logout_accounts",
        Logout(Logout) = "logout",
        PredictWord(PredictWord) = "predict_word",
        PredictWordFeedback(PredictWordFeedback) = "predict_word_feedback",
        Btw(Btw) = "btw",
        BtwCancel(BtwCancel) = "btw_cancel",
        GetBtwHistory(GetBtwHistory) = "get_btw_history",
    }
}
