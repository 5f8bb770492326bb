//! What the answers to operations carry. A response doesn't name its operation: who asked knows it.

use alloc::vec::Vec;

use super::attachment::InputCapabilities;
use super::hook::HookOutput;
use super::permission::Decision;
use super::provider::{Account, AgentInfo, CommandInfo, McpServer, ModelInfo, Plugin, Provider};
use crate::json::{DecodeError, Lazy, Raw, Str};
use crate::protocol::member::{Any, Kept, Map, Num, Tag, objects, words};
use crate::protocol::wire::Hole;

words! {
    /// What a person said to an elicitation.
    ElicitationAction {
        Accept "accept",
        Decline "decline",
        Cancel "cancel",
    }
}

objects! { without [];
    /// `initialize`
    Initialized {
        commands "commands": Vec<Kept<'a, CommandInfo<'a>>>,
        agents "agents": Option<Vec<Kept<'a, AgentInfo<'a>>>>,
        output_style "output_style": Option<Str<'a>>,
        available_output_styles "available_output_styles": Option<Vec<Str<'a>>>,
        models "models": Option<Vec<Kept<'a, ModelInfo<'a>>>>,
        /// Every configured provider. Strict only.
        providers "providers": Option<Vec<Provider<'a>>>,
        account "account": Option<Account<'a>>,
        pid "pid": Option<u64>,
        claude_code_version "claude_code_version": Option<Str<'a>>,
        current_permission_mode "current_permission_mode": Option<Str<'a>>,
        session_state "session_state": Option<Str<'a>>,
        hooks_applied "hooks_applied": Option<bool>,
        capabilities "capabilities": Any<'a>,
        input_capabilities "input_capabilities": Option<InputCapabilities<'a>>,
    }
    /// `interrupt`, in claude: what stays queued, and runs next.
    StillQueued {
        still_queued "still_queued": Vec<Str<'a>>,
    }
    /// `set_permission_mode`
    ModeSet {
        mode "mode": Str<'a>,
    }
    /// `set_model`
    ModelSet {
        model "model": Str<'a>,
    }
    /// `mcp_status`
    McpStatuses {
        mcp_servers "mcpServers": Vec<Kept<'a, McpServer<'a>>>,
    }
    /// A part of the context.
    ContextCategory {
        id "id": Option<Str<'a>>,
        name "name": Str<'a>,
        tokens "tokens": Num<'a>,
        color "color": Str<'a>,
        kind "kind": Option<Str<'a>>,
        is_deferred "isDeferred": Option<bool>,
    }
    /// `get_context_usage`
    ContextUsage {
        categories "categories": Vec<ContextCategory<'a>>,
        total_tokens "totalTokens": Num<'a>,
        max_tokens "maxTokens": Num<'a>,
        raw_max_tokens "rawMaxTokens": Num<'a>,
        percentage "percentage": Num<'a>,
        grid_rows "gridRows": Any<'a>,
        model "model": Str<'a>,
        memory_files "memoryFiles": Any<'a>,
        mcp_tools "mcpTools": Any<'a>,
        agents "agents": Any<'a>,
        is_auto_compact_enabled "isAutoCompactEnabled": Option<bool>,
        auto_compact_threshold "autoCompactThreshold": Option<Num<'a>>,
        api_usage "apiUsage": Any<'a>,
    }
    /// `rewind_files`
    Rewound {
        can_rewind "canRewind": bool,
        error "error": Option<Lazy<'a>>,
        files_changed "filesChanged": Option<Vec<Str<'a>>>,
        insertions "insertions": Option<Num<'a>>,
        deletions "deletions": Option<Num<'a>>,
    }
    /// `cancel_async_message`
    MessageCancelled {
        cancelled "cancelled": bool,
        message_uuid "message_uuid": Option<Str<'a>>,
    }
    /// `mcp_message`
    McpAnswered {
        /// JSON-RPC.
        mcp_response "mcp_response": Any<'a>,
    }
    /// `mcp_set_servers`
    ServersSet {
        added "added": Vec<Str<'a>>,
        removed "removed": Vec<Str<'a>>,
        errors "errors": Map<'a, Lazy<'a>>,
    }
    /// `reload_plugins`
    PluginsReloaded {
        commands "commands": Vec<Kept<'a, CommandInfo<'a>>>,
        agents "agents": Vec<Kept<'a, AgentInfo<'a>>>,
        plugins "plugins": Vec<Kept<'a, Plugin<'a>>>,
        mcp_servers "mcpServers": Vec<Kept<'a, McpServer<'a>>>,
        error_count "error_count": Num<'a>,
    }
    /// One source of settings.
    SettingsSource {
        /// `user`, `project`, `local`, `flag` or `policy`: later ones win.
        source "source": Str<'a>,
        settings "settings": Any<'a>,
    }
    /// What runs with settings.
    SettingsApplied {
        model "model": Any<'a>,
        effort "effort": Any<'a>,
    }
    /// `get_settings`
    SettingsShown {
        effective "effective": Raw<'a>,
        /// Low to high.
        sources "sources": Vec<Kept<'a, SettingsSource<'a>>>,
        applied "applied": Option<SettingsApplied<'a>>,
    }
    /// `elicitation`
    ElicitationAnswer {
        action "action": ElicitationAction<'a>,
        content "content": Any<'a>,
    }
}

/// `ask_user_question`: for each question, what was chosen. agentx only.
pub type QuestionAnswers<'a> = Map<'a, Vec<Lazy<'a>>>;

macro_rules! answers {
    ($( $(#[$doc:meta])* $variant:ident($body:ty) = $($operation:literal),+; )*) => {
        /// The payload of a success.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub enum Answer<'a> {
            /// None: the member isn't there.
            #[default]
            Nothing,
            $( $(#[$doc])* $variant($body), )*
            /// Of an operation that nobody knows, or one without a shape of its own.
            Other(Raw<'a>),
        }

        impl<'a> Answer<'a> {
            /// Reads the payload of this operation's success.
            ///
            /// # Errors
            /// When it lacks a member, or has one of another type.
            pub fn decode(subtype: &str, payload: Any<'a>) -> Result<Self, DecodeError> {
                let Some(value) = payload.get() else { return Ok(Answer::Nothing) };
                match subtype {
                    $( $($operation)|+ => value.decode().map(Answer::$variant), )*
                    _ => Ok(Answer::Other(value)),
                }
            }

            /// Appends it as JSON; nothing for [`Nothing`](Answer::Nothing).
            pub fn put(&self, out: &mut Vec<u8>) {
                match self {
                    Answer::Nothing => {}
                    $( Answer::$variant(body) => body.put(out), )*
                    Answer::Other(value) => value.put(out),
                }
            }
        }

        $( impl<'a> From<$body> for Answer<'a> {
            fn from(body: $body) -> Self {
                Answer::$variant(body)
            }
        } )*
    };
}

answers! {
    /// What the agent has.
    Initialized(Initialized<'a>) = "initialize";
    /// What stays queued.
    StillQueued(StillQueued<'a>) = "interrupt";
    /// The host's decision.
    Decision(Decision<'a>) = "can_use_tool";
    /// The mode.
    ModeSet(ModeSet<'a>) = "set_permission_mode";
    /// The model.
    ModelSet(ModelSet<'a>) = "set_model";
    /// MCP servers.
    McpStatuses(McpStatuses<'a>) = "mcp_status";
    /// The context.
    ContextUsage(ContextUsage<'a>) = "get_context_usage";
    /// Files.
    Rewound(Rewound<'a>) = "rewind_files";
    /// Whether the message was still queued.
    MessageCancelled(MessageCancelled<'a>) = "cancel_async_message";
    /// The hook's word.
    Hook(HookOutput<'a>) = "hook_callback";
    /// The server's word.
    McpAnswered(McpAnswered<'a>) = "mcp_message";
    /// Which servers there are now.
    ServersSet(ServersSet<'a>) = "mcp_set_servers";
    /// What plugins bring.
    PluginsReloaded(PluginsReloaded<'a>) = "reload_plugins";
    /// Settings.
    SettingsShown(SettingsShown<'a>) = "get_settings";
    /// A person's word.
    Elicitation(ElicitationAnswer<'a>) = "elicitation";
    /// A person's choices.
    Questions(QuestionAnswers<'a>) = "ask_user_question";
}

impl Answer<'_> {
    /// Appends the success that carries it, as a line without its newline.
    pub fn encode(&self, request_id: &Tag<'_>, out: &mut Vec<u8>) {
        let from = out.len();
        out.extend_from_slice(
            b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"",
        );
        if !request_id.is_absent() {
            out.extend_from_slice(b",\"request_id\":");
            request_id.put(out);
        }
        if *self != Answer::Nothing {
            out.extend_from_slice(b",\"response\":");
            self.put(out);
        }
        out.extend_from_slice(b"}}");
        super::escape_separators(out, from);
    }
}
