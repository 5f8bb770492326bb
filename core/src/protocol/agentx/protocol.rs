//! agentx and claude as a [`Protocol`]: its configuration, its requests to the embedder, and its lines without neutral
//! meaning.

use alloc::vec::Vec;

use super::client::{ClientConfig, ClientFace};
use super::server::Face;
use super::settings::SettingsLayer;
use super::wire::AgentLine;
use super::{Attachments, HOST_LINE_MAX, Policy, wire};
use crate::frame::{LineRules, OverLong, Tail};
use crate::json::Members;
use crate::protocol::{OnCredential, Protocol, WireFault};
use crate::vocab::{Level, MediaKind, RawJson, Text};

/// The protocol: one for both wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agentx;

/// What an agentx Server is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where the ids of records and requests come from. The same seed and the same lines give the same ids.
    pub seed: [u8; 32],
    /// Which of the two wires, bit by bit.
    pub policy: Policy,
    /// The version that `system/init` names, with dots.
    pub version: Text,
    /// Where the key comes from: `user` or `temporary` in the strict wire. Never the key.
    pub api_key_source: Text,
    /// Whether prompts and the host's answers are replayed (`--replay-user-messages`).
    pub replay: bool,
    /// Whether replies are told as they stream (`--include-partial-messages`).
    pub partial: bool,
    /// Whether the environment asks for `session_state_changed`, where the policy makes that a condition.
    pub states: bool,
    /// Whether the host answers `can_use_tool`. If not, what would be asked is denied.
    pub asks: bool,
    /// Whether the embedder has something to flush before `idle` ([`AgentxAsk::Flush`]).
    pub flush: bool,
    /// Whether the embedder wants answers that nobody waits for ([`AgentxAsk::Orphan`]).
    pub orphans: bool,
    /// Between two `keep_alive` records, in microseconds; `None`: none are written.
    pub keep_alive_us: Option<u64>,
    /// The process's number, for the answer to `initialize`.
    pub pid: u64,
    /// The provider of this process, for the strict wire.
    pub provider: Option<Selected>,
    /// Every configured provider, as the objects of the catalogue (WIRE-024).
    pub providers: Vec<RawJson>,
    /// The models that can be chosen, as objects. Empty: the one in use.
    pub models: Vec<RawJson>,
    /// Other names that `set_model` takes, each with the model that it means.
    pub aliases: Vec<(Text, Text)>,
    /// Helpers that the agent may start, as objects of at least `name`.
    pub agents: Vec<RawJson>,
    /// Plugins, as objects of at least `name`.
    pub plugins: Vec<RawJson>,
    /// The output style in use.
    pub output_style: Text,
    /// All of them, sorted; `default` is among them.
    pub output_styles: Vec<Text>,
    /// What a host may bring in besides text, said as `input_capabilities`; the embedder answers what becomes of the
    /// bytes then ([`AgentxAsk::BlobAppend`]). `None`: text only.
    pub attachments: Option<Attachments>,
    /// MCP servers that the host runs, besides those that its `initialize` names.
    pub sdk_servers: Vec<Text>,
    /// How long such a server may take to greet and to list its tools, in microseconds.
    pub mcp_timeout_us: u64,
    /// The file of the conversation, which hooks are told.
    pub transcript: Option<Text>,
    /// Ids of prompts that an earlier process of this session accepted.
    pub accepted: Vec<Text>,
}

/// The provider that a process is bound to (WIRE-023).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its id in the registry.
    pub id: Text,
    /// Its type.
    pub kind: Text,
    /// The efforts that its operator declares, in their order.
    pub efforts: Vec<Text>,
    /// One of them.
    pub default_effort: Option<Text>,
}

impl Selected {
    /// The effort that is taken where nobody says one: never one that isn't declared.
    pub fn default_effort(&self) -> Option<&str> {
        let default = self.default_effort.as_ref();
        let default = default.filter(|default| self.efforts.contains(default));
        default.map(|effort| &**effort)
    }
}

impl ServerConfig {
    /// The defaults: nothing is known beyond what the session says, and the host answers permissions.
    pub fn new(seed: [u8; 32], policy: Policy) -> Self {
        ServerConfig {
            seed,
            policy,
            version: "0.0.0".into(),
            api_key_source: "user".into(),
            replay: false,
            partial: false,
            states: false,
            asks: true,
            flush: false,
            orphans: false,
            keep_alive_us: None,
            pid: 0,
            provider: None,
            providers: Vec::new(),
            models: Vec::new(),
            aliases: Vec::new(),
            agents: Vec::new(),
            plugins: Vec::new(),
            output_style: "default".into(),
            output_styles: Vec::from(["default".into()]),
            attachments: None,
            sdk_servers: Vec::new(),
            mcp_timeout_us: 60_000_000,
            transcript: None,
            accepted: Vec::new(),
        }
    }
}

/// What only the world outside of a session can answer. An embedder that knows nothing of a question settles it with
/// [`AgentxOutcome::Default`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentxAsk {
    /// An operation that changes no session: `mcp_set_servers`, `mcp_reconnect`, `mcp_toggle`, `seed_read_state`,
    /// `apply_flag_settings`, `get_settings`, and whatever a host of claude asks for besides. The payload of a success
    /// is that of the answer. By default it isn't supported, but for `get_settings`, which has no layers then.
    ///
    /// `mcp_set_servers` is asked only where it names servers that the host doesn't run, or did so before. It is settled
    /// before any server is connected, since that may need the host (AX-S08); the payload has `added`, `removed` and `errors`
    /// of those servers.
    Control {
        /// The operation's name.
        subtype: Text,
        /// The whole operation.
        request: RawJson,
    },
    /// `update_environment_variables`: a map of texts. A success is enough; by default nothing changes, and the person
    /// who runs the process is told so.
    Environment(RawJson),
    /// The members of `initialize` that no session knows: `systemPrompt`, `agents`, `settings` … The outcome says nothing.
    Options(RawJson),
    /// The turn is told to its end: before the host hears that nothing runs, what else must be written is (WIRE-004).
    /// The outcome says nothing. Lines wait for it.
    Flush,
    /// An answer that nobody waits for: the whole `control_response`. The outcome says nothing.
    Orphan(RawJson),
    /// The next bytes of an upload, in order, 262,144 at most. A success is enough; by default, and by a failure, the
    /// upload fails with `storage_failure`. Asked only where [`ServerConfig::attachments`] are given, like the next two.
    /// The three are to be carried out in the order in which they are asked: a commit means all that was appended before.
    BlobAppend {
        /// The upload's id.
        upload: Text,
        /// What it brings.
        bytes: Vec<u8>,
    },
    /// All bytes of an upload are there: look at them, compare their digest, and keep them under the name of what they are
    /// then, with what is said of them here, for the processes that go on with the session. The payload of a success is an object of `size_bytes`, `sha256` and `storage_id`, which may differ from what
    /// was declared (images are written anew). The text of a failure is one of the contract's words: `digest_mismatch`,
    /// `mime_mismatch`, `media_rejected`, `malformed_media`, `unsupported_media`, `storage_failure`, `resource_limit`; any
    /// other counts as `commit_failed`. By default it is `storage_failure`.
    BlobCommit {
        /// The upload's id.
        upload: Text,
        /// What it is.
        kind: MediaKind,
        /// Its MIME type, as declared.
        mime: Text,
        /// The digest of all bytes, as declared: 64 lower-case hex digits.
        sha256: Text,
        /// The attachment that it becomes, by the host's id of it.
        attachment: Text,
        /// What a person calls it.
        name: Text,
        /// The prompt that it is for, by the host's id of it.
        prompt: Text,
    },
    /// An upload won't be committed: what was kept of it can go, also what a commit has just kept that came too late to
    /// count. The outcome says nothing.
    BlobDrop {
        /// The upload's id.
        upload: Text,
    },
}

/// How an [`AgentxAsk`] was settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AgentxOutcome {
    /// See each [`AgentxAsk`].
    #[default]
    Default,
    /// Success, and the payload, if the answer has one.
    Success(Option<RawJson>),
    /// A failure, and its text for people.
    Failure(Text),
    /// Of `get_settings`: what each source says. The answer has what they come to, and what applies as it runs. Of
    /// anything else it is as [`Default`](Self::Default).
    Settings(Vec<SettingsLayer>),
}

/// A line with no neutral meaning, in either direction: `tool_use_summary`, `rate_limit_event`, `prompt_suggestion`,
/// hooks of the agent's own … and every line of a type that the contract doesn't have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentxExtra {
    /// The line's `type`.
    pub kind: Text,
    /// Its `subtype`, if it has one.
    pub subtype: Option<Text>,
    /// The whole object, on one line.
    pub line: RawJson,
}

impl AgentxExtra {
    /// Reads the line.
    ///
    /// # Errors
    /// [`WireFault`] when it isn't a line of an agent.
    pub fn read<'a>(&'a self, members: &mut Members) -> Result<AgentLine<'a>, WireFault> {
        AgentLine::decode(self.line.as_str().as_bytes(), &wire::OPEN_RULES, members)
    }
}

impl Protocol for Agentx {
    const NAME: &'static str = "agentx";
    type Ask = AgentxAsk;
    type Outcome = AgentxOutcome;
    type Extra = AgentxExtra;
    type ServerConfig = ServerConfig;
    type Face = Face;
    type ClientConfig = ClientConfig;
    type Client = ClientFace;

    /// Nothing is written any more (WIRE-013).
    const ON_CREDENTIAL: OnCredential = OnCredential::Latch;

    fn soften(extra: &AgentxExtra) -> Option<(Level, Text)> {
        match &*extra.kind {
            "rate_limit_event" => Some((
                Level::Warning,
                "the account is close to its limits, or beyond them".into(),
            )),
            "tool_use_summary" => Some((Level::Info, "calls were summed up".into())),
            _ => None,
        }
    }

    fn host_line_rules() -> LineRules {
        LineRules {
            max_bytes: HOST_LINE_MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }

    fn agent_line_rules() -> LineRules {
        LineRules {
            max_bytes: HOST_LINE_MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }
}
