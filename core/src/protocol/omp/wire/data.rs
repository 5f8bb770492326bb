//! Payloads: what a successful response carries, and the objects that commands and payloads share.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Any;
use super::content::{ContextUsage, Image, Model, Models};
use super::member::{Kept, Maybe, Member, Nullable, Num, objects, words};
use crate::json::{DecodeError, Lazy, Raw, Str};
use crate::protocol::spec::FieldKind;

words! {
    /// How a task stands.
    TodoStatus {
        Pending "pending",
        InProgress "in_progress",
        Completed "completed",
        Abandoned "abandoned",
        Blocked "blocked",
    }
    /// How a goal stands.
    GoalStatus {
        Active "active",
        Paused "paused",
        BudgetLimited "budget-limited",
        Complete "complete",
        Dropped "dropped",
    }
}

objects! { without [];
    /// A phase of the to-do list.
    TodoPhase {
        name "name": Str<'a>,
        tasks "tasks": Vec<Kept<'a, TodoTask<'a>>>,
    }
    /// A task.
    TodoTask {
        content "content": Str<'a>,
        status "status": TodoStatus<'a>,
        blocker "blocker": Option<Str<'a>>,
    }
    /// A tool that the host runs. Any of its members may be missing in what a host writes.
    HostTool {
        name "name": Any<'a>,
        label "label": Option<Str<'a>>,
        description "description": Any<'a>,
        /// A JSON Schema object.
        parameters "parameters": Any<'a>,
        hidden "hidden": Option<bool>,
        /// `essential` or `discoverable`.
        load_mode "loadMode": Option<Str<'a>>,
        reads_skill_uris "readsSkillUris": Option<bool>,
    }
    /// A URI scheme that the host serves.
    HostScheme {
        scheme "scheme": Any<'a>,
        description "description": Option<Str<'a>>,
        writable "writable": Option<bool>,
        immutable "immutable": Option<bool>,
    }
    /// A slash command.
    SlashCommand {
        name "name": Str<'a>,
        aliases "aliases": Option<Vec<Str<'a>>>,
        description "description": Option<Str<'a>>,
        input "input": Option<SlashInput<'a>>,
        subcommands "subcommands": Option<Vec<Subcommand<'a>>>,
        /// `builtin`, `skill`, `extension`, `custom`, `mcp_prompt` or `file`.
        source "source": Str<'a>,
    }
    /// What a slash command takes.
    SlashInput {
        hint "hint": Option<Str<'a>>,
    }
    /// A word that a slash command takes first.
    Subcommand {
        name "name": Str<'a>,
        description "description": Option<Str<'a>>,
        usage "usage": Option<Str<'a>>,
    }
    /// A goal. G3.
    GoalData {
        id "id": Str<'a>,
        objective "objective": Lazy<'a>,
        status "status": GoalStatus<'a>,
        token_budget "tokenBudget": Option<Num<'a>>,
        tokens_used "tokensUsed": Num<'a>,
        time_used_seconds "timeUsedSeconds": Num<'a>,
        created_at "createdAt": Num<'a>,
        updated_at "updatedAt": Num<'a>,
    }
    /// Goal mode. G3.
    GoalState {
        enabled "enabled": bool,
        /// `active` or `exiting`.
        mode "mode": Str<'a>,
        reason "reason": Option<Str<'a>>,
        goal "goal": GoalData<'a>,
    }
    /// Payload of `negotiate_protocol`.
    Negotiated {
        protocol_version "protocolVersion": u64,
    }
    /// Payload of `prompt`, where there is one.
    PromptAck {
        /// False: handled without the model, and done.
        agent_invoked "agentInvoked": Option<bool>,
    }
    /// Payload of `new_session`, `switch_session`, `fork`, `cancel_subagent` and `btw_cancel`.
    Cancelled {
        /// Of a change of the session: it was vetoed.
        cancelled "cancelled": bool,
    }
    /// Payload of `open_session`.
    Opened {
        cancelled "cancelled": bool,
        resumed "resumed": bool,
        session_id "sessionId": Str<'a>,
        session_file "sessionFile": Option<Str<'a>>,
    }
    /// Payload of `branch`.
    Branched {
        text "text": Lazy<'a>,
        cancelled "cancelled": bool,
    }
    /// Payload of `remove_queued_message`. G3.
    Removed {
        removed "removed": bool,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
        images_dropped "imagesDropped": Option<bool>,
    }
    /// Payload of `promote_queued_message`. G3.
    Promoted {
        promoted "promoted": bool,
    }
    /// Payload of `abort_and_restore_queue`: what was taken back. G3.
    Restored {
        steering "steering": Vec<RestoredMessage<'a>>,
        follow_up "followUp": Vec<RestoredMessage<'a>>,
    }
    /// A queued message that was taken back.
    RestoredMessage {
        text "text": Lazy<'a>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
    }
    /// Texts of what is queued. G3.
    QueuedMessages {
        steering "steering": Vec<Str<'a>>,
        follow_up "followUp": Vec<Str<'a>>,
    }
    /// Payload of `get_state`.
    State {
        model "model": Option<Kept<'a, Model<'a>>>,
        thinking_level "thinkingLevel": Option<Str<'a>>,
        is_streaming "isStreaming": Option<bool>,
        is_compacting "isCompacting": Option<bool>,
        steering_mode "steeringMode": Option<Str<'a>>,
        follow_up_mode "followUpMode": Option<Str<'a>>,
        interrupt_mode "interruptMode": Option<Str<'a>>,
        session_file "sessionFile": Option<Str<'a>>,
        session_id "sessionId": Str<'a>,
        session_name "sessionName": Option<Str<'a>>,
        auto_compaction_enabled "autoCompactionEnabled": Option<bool>,
        queued_message_count "queuedMessageCount": Option<Num<'a>>,
        /// G2.
        has_pending_async_work "hasPendingAsyncWork": Option<bool>,
        /// G2.
        is_settled "isSettled": Option<bool>,
        /// G3.
        queued_messages "queuedMessages": Option<QueuedMessages<'a>>,
        todo_phases "todoPhases": Option<Vec<Kept<'a, TodoPhase<'a>>>>,
        fast_mode_enabled "fastModeEnabled": Option<bool>,
        tokens_per_second "tokensPerSecond": Maybe<Num<'a>>,
        fast_mode_active "fastModeActive": Option<bool>,
        message_count "messageCount": Option<Num<'a>>,
        system_prompt "systemPrompt": Option<Vec<Lazy<'a>>>,
        dump_tools "dumpTools": Option<Vec<Raw<'a>>>,
        context_usage "contextUsage": Option<ContextUsage<'a>>,
        /// G3.
        goal "goal": Maybe<GoalState<'a>>,
    }
    /// Payload of `set_fast_mode`.
    FastMode {
        enabled "enabled": bool,
        active "active": bool,
    }
    /// Payload of `set_slow_mode` and `set_ask_dialog`. G3.
    Enabled {
        enabled "enabled": bool,
    }
    /// Payload of `goal`. G3.
    GoalResult {
        goal "goal": Nullable<GoalData<'a>>,
        state "state": Nullable<GoalState<'a>>,
    }
    /// Payload of `get_available_commands` and `refresh_commands`.
    Commands {
        commands "commands": Vec<Kept<'a, SlashCommand<'a>>>,
    }
    /// Payload of `get_entries`: entries of the session's file.
    Entries {
        entries "entries": Vec<Raw<'a>>,
        leaf_id "leafId": Nullable<Str<'a>>,
    }
    /// Payload of `get_tree`: nodes of `entry` and `children`, as deep as the session is long.
    Tree {
        tree "tree": Vec<Raw<'a>>,
        leaf_id "leafId": Nullable<Str<'a>>,
    }
    /// Payload of `set_todos`.
    Todos {
        todo_phases "todoPhases": Vec<Kept<'a, TodoPhase<'a>>>,
    }
    /// Payload of `set_host_tools`.
    ToolNames {
        tool_names "toolNames": Vec<Str<'a>>,
    }
    /// Payload of `set_host_uri_schemes`.
    Schemes {
        schemes "schemes": Vec<Str<'a>>,
    }
    /// Payload of `set_subagent_subscription` and `cycle_thinking_level`.
    Level {
        level "level": Str<'a>,
    }
    /// Payload of `set_event_filter`.
    Filter {
        events "events": Nullable<Vec<Str<'a>>>,
        /// G3.
        message_updates "messageUpdates": Option<Str<'a>>,
    }
    /// Payload of `get_subagents`.
    Subagents {
        subagents "subagents": Vec<Kept<'a, Subagent<'a>>>,
    }
    /// A subagent.
    Subagent {
        id "id": Str<'a>,
        index "index": u64,
        agent "agent": Str<'a>,
        agent_source "agentSource": Str<'a>,
        description "description": Option<Str<'a>>,
        /// `pending`, `running`, `completed`, `failed` or `aborted`.
        status "status": Str<'a>,
        task "task": Option<Lazy<'a>>,
        assignment "assignment": Option<Lazy<'a>>,
        session_file "sessionFile": Option<Str<'a>>,
        last_update "lastUpdate": Num<'a>,
        progress "progress": Any<'a>,
        parent_tool_call_id "parentToolCallId": Option<Str<'a>>,
    }
    /// Payload of `get_subagent_messages`.
    SubagentMessages {
        session_file "sessionFile": Str<'a>,
        from_byte "fromByte": Num<'a>,
        next_byte "nextByte": Num<'a>,
        /// The file was shorter than `fromByte`, and was read from its start.
        reset "reset": bool,
        entries "entries": Vec<Raw<'a>>,
        messages "messages": Vec<Raw<'a>>,
    }
    /// Payload of `cycle_model`, unless it is `null`.
    CycledModel {
        model "model": Model<'a>,
        thinking_level "thinkingLevel": Option<Str<'a>>,
        is_scoped "isScoped": bool,
    }
    /// Payload of `get_available_models`.
    AvailableModels {
        models "models": Models<'a>,
    }
    /// Payload of `get_available_thinking_levels`, `off` first.
    Levels {
        levels "levels": Vec<Str<'a>>,
    }
    /// Payload of `set_cache_warming`. G3.
    Mode {
        mode "mode": Str<'a>,
    }
    /// Payload of `compact`, and of `auto_compaction_end`.
    Compaction {
        summary "summary": Lazy<'a>,
        short_summary "shortSummary": Option<Lazy<'a>>,
        first_kept_entry_id "firstKeptEntryId": Str<'a>,
        tokens_before "tokensBefore": Num<'a>,
        details "details": Any<'a>,
        preserve_data "preserveData": Any<'a>,
    }
    /// Payload of `bash`.
    BashData {
        exit_code "exitCode": Option<Num<'a>>,
        cancelled "cancelled": bool,
        timed_out "timedOut": Option<bool>,
        working_dir "workingDir": Option<Str<'a>>,
        output "output": Lazy<'a>,
        truncated "truncated": bool,
        total_lines "totalLines": Num<'a>,
        total_bytes "totalBytes": Num<'a>,
        output_lines "outputLines": Num<'a>,
        output_bytes "outputBytes": Num<'a>,
        artifact_id "artifactId": Option<Str<'a>>,
        images "images": Option<Vec<Kept<'a, Image<'a>>>>,
    }
    /// Payload of `get_session_stats`.
    SessionStats {
        session_file "sessionFile": Option<Str<'a>>,
        session_id "sessionId": Str<'a>,
        user_messages "userMessages": Num<'a>,
        assistant_messages "assistantMessages": Num<'a>,
        tool_calls "toolCalls": Num<'a>,
        tool_results "toolResults": Num<'a>,
        total_messages "totalMessages": Num<'a>,
        tokens "tokens": TokenSums<'a>,
        cost "cost": Num<'a>,
        premium_requests "premiumRequests": Num<'a>,
        context_usage "contextUsage": Option<ContextUsage<'a>>,
        credits "credits": Any<'a>,
        routed_models "routedModels": Any<'a>,
    }
    /// Tokens of a session.
    TokenSums {
        input "input": Num<'a>,
        output "output": Num<'a>,
        reasoning "reasoning": Option<Num<'a>>,
        cache_read "cacheRead": Num<'a>,
        cache_write "cacheWrite": Num<'a>,
        total "total": Num<'a>,
    }
    /// Payload of `export_html`.
    Exported {
        path "path": Str<'a>,
    }
    /// Payload of `get_branch_messages`.
    BranchMessages {
        messages "messages": Vec<BranchMessage<'a>>,
    }
    /// A user message that a branch can begin at.
    BranchMessage {
        entry_id "entryId": Str<'a>,
        text "text": Lazy<'a>,
    }
    /// Payload of `get_last_assistant_text`: empty if there is none.
    LastText {
        text "text": Maybe<Lazy<'a>>,
    }
    /// Payload of `handoff`, unless it is `null`.
    HandedOff {
        saved_path "savedPath": Option<Str<'a>>,
    }
    /// Payload of `get_messages`.
    Messages {
        messages "messages": Vec<Raw<'a>>,
    }
    /// Payload of `get_messages_page`.
    MessagesPage {
        messages "messages": Vec<Raw<'a>>,
        /// Opaque; absent on the last page.
        next_cursor "nextCursor": Option<Str<'a>>,
        total_messages "totalMessages": Num<'a>,
    }
    /// Payload of `get_login_providers`.
    LoginProviders {
        providers "providers": Vec<Kept<'a, LoginProvider<'a>>>,
    }
    /// A provider that one can log in at.
    LoginProvider {
        id "id": Str<'a>,
        name "name": Str<'a>,
        available "available": bool,
        authenticated "authenticated": bool,
    }
    /// Payload of `login`.
    LoggedIn {
        provider_id "providerId": Str<'a>,
    }
    /// Payload of `get_logout_accounts`. G3.
    Accounts {
        accounts "accounts": Vec<Raw<'a>>,
    }
    /// Payload of `logout`. G3.
    LoggedOut {
        /// Where authentication still comes from.
        remaining_source "remainingSource": Option<Str<'a>>,
    }
    /// Payload of `live_start`. G3.
    LiveVoice {
        voice "voice": Str<'a>,
    }
    /// Payload of `live_mute`. G3.
    LiveMuted {
        muted "muted": bool,
    }
    /// Payload of `predict_word`. G3.
    Suffix {
        suffix "suffix": Nullable<Str<'a>>,
    }
    /// Payload of `btw`. G3.
    BtwRecordData {
        record "record": Raw<'a>,
    }
    /// Payload of `get_btw_history`. G3.
    BtwHistory {
        records "records": Vec<Raw<'a>>,
    }
}

/// Makes [`Data`] and its reader.
macro_rules! payloads {
    ($( $variant:ident: $($command:literal)|+ => $body:ty, )*) => {
        /// The payload of a successful response, by its command.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Data<'a> {
            /// No payload, for a command that has none.
            Nothing,
            /// `null`: nothing to report.
            Null,
            $( #[doc = concat!($("`", $command, "` "),+)] $variant($body), )*
            /// A payload of a command that this contract doesn't have, or that has none.
            Unknown(Raw<'a>),
        }

        impl<'a> Data<'a> {
            /// The members of each payload, and the commands that it answers.
            pub(in crate::protocol::omp) const PAYLOADS: &'static [(&'static [&'static str], FieldKind)] =
                &[$( (&[$($command),+], <$body as Member<'a>>::KIND), )*];

            /// Reads the payload of this command's response.
            ///
            /// # Errors
            /// When it lacks a member, or has one of another type.
            pub fn decode(command: &str, data: Any<'a>) -> Result<Self, DecodeError> {
                let Some(value) = data.get() else {
                    return Ok(Data::Nothing);
                };
                if value.is_null() {
                    return Ok(Data::Null);
                }
                match command {
                    $( $($command)|+ => value.decode().map(Data::$variant), )*
                    _ => Ok(Data::Unknown(value)),
                }
            }

            /// Appends it; nothing if there is none.
            pub fn encode(&self, out: &mut Vec<u8>) {
                use crate::protocol::wire::Hole;
                match self {
                    Data::Nothing => {}
                    Data::Null => Raw::NULL.put(out),
                    $( Data::$variant(body) => body.put(out), )*
                    Data::Unknown(value) => value.put(out),
                }
            }
        }
    };
}

payloads! {
    Negotiated: "negotiate_protocol" => Negotiated<'a>,
    Prompt: "prompt" => PromptAck<'a>,
    Cancelled: "new_session" | "switch_session" | "fork" | "cancel_subagent" | "btw_cancel" => Cancelled<'a>,
    Opened: "open_session" => Opened<'a>,
    Branched: "branch" => Branched<'a>,
    Removed: "remove_queued_message" => Removed<'a>,
    Promoted: "promote_queued_message" => Promoted<'a>,
    Restored: "abort_and_restore_queue" => Restored<'a>,
    State: "get_state" => Box<State<'a>>,
    FastMode: "set_fast_mode" => FastMode<'a>,
    Enabled: "set_slow_mode" | "set_ask_dialog" => Enabled<'a>,
    Goal: "goal" => GoalResult<'a>,
    Commands: "get_available_commands" | "refresh_commands" => Commands<'a>,
    Entries: "get_entries" => Entries<'a>,
    Tree: "get_tree" => Tree<'a>,
    Todos: "set_todos" => Todos<'a>,
    ToolNames: "set_host_tools" => ToolNames<'a>,
    Schemes: "set_host_uri_schemes" => Schemes<'a>,
    Level: "set_subagent_subscription" | "cycle_thinking_level" => Level<'a>,
    Filter: "set_event_filter" => Filter<'a>,
    Subagents: "get_subagents" => Subagents<'a>,
    SubagentMessages: "get_subagent_messages" => SubagentMessages<'a>,
    Model: "set_model" => Model<'a>,
    CycledModel: "cycle_model" => CycledModel<'a>,
    Models: "get_available_models" => AvailableModels<'a>,
    Levels: "get_available_thinking_levels" => Levels<'a>,
    Mode: "set_cache_warming" => Mode<'a>,
    Compaction: "compact" => Compaction<'a>,
    Bash: "bash" => BashData<'a>,
    Stats: "get_session_stats" => SessionStats<'a>,
    Exported: "export_html" => Exported<'a>,
    BranchMessages: "get_branch_messages" => BranchMessages<'a>,
    LastText: "get_last_assistant_text" => LastText<'a>,
    HandedOff: "handoff" => HandedOff<'a>,
    Messages: "get_messages" => Messages<'a>,
    MessagesPage: "get_messages_page" => MessagesPage<'a>,
    LoginProviders: "get_login_providers" => LoginProviders<'a>,
    LoggedIn: "login" => LoggedIn<'a>,
    Accounts: "get_logout_accounts" => Accounts<'a>,
    LoggedOut: "logout" => LoggedOut<'a>,
    LiveVoice: "live_start" => LiveVoice<'a>,
    LiveMuted: "live_mute" => LiveMuted<'a>,
    Suffix: "predict_word" => Suffix<'a>,
    Btw: "btw" => BtwRecordData<'a>,
    BtwHistory: "get_btw_history" => BtwHistory<'a>,
}
