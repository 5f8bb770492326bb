//! The type of every line, both directions.
//!
//! Decoding is a strict scan, then the tag (`cmd` in lines of the host, `type` in lines of the agent), then the one
//! type that it names. A tag that nobody knows is a value ([`HostLine::Unknown`], [`AgentLine::Unknown`]), not an
//! error. Encoding writes constant bytes between the values, in the documented order: `session_id`, `type`, fields.
//! The two are inverse up to key order, spacing, escapes and members that readers ignore (L10).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use serde::Deserialize;

use crate::json::{self, DecodeError, Lazy, Members, Object, Raw, ScanRules, Str};
pub use crate::protocol::wire::WireFault;
use crate::protocol::wire::{Hole, tag};

/// A list of names whose member is left out when it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Names<'a>(#[serde(borrow)] pub Vec<Str<'a>>);

impl Hole for Names<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn is_absent(&self) -> bool {
        self.0.is_empty()
    }
}

/// An event of a turn: a line that carries a `session_id`.
pub trait EventBody {
    /// Its `type`.
    const TYPE: &'static str;
    /// Appends `,"type":…`, the fields, and the closing brace, after the session's member.
    fn put(&self, out: &mut Vec<u8>);
}

/// Makes the types of the events, their encoders, and [`EventLine`] with its decoder, from one table.
macro_rules! events {
    ($any:ident<$any_life:lifetime> $(
        $(#[$doc:meta])*
        $name:ident $(<$life:lifetime>)? = $tag:literal { $( $(#[$field_doc:meta])* $field:ident : $ty:ty, )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
            pub struct $name $(<$life>)? {
                $( $(#[$field_doc])* pub $field: $ty, )*
            }

            impl $(<$life>)? EventBody for $name $(<$life>)? {
                const TYPE: &'static str = $tag;

                fn put(&self, out: &mut Vec<u8>) {
                    out.extend_from_slice(concat!(",\"type\":\"", $tag, "\"").as_bytes());
                    $(
                        if !self.$field.is_absent() {
                            out.extend_from_slice(concat!(",\"", stringify!($field), "\":").as_bytes());
                            self.$field.put(out);
                        }
                    )*
                    out.push(b'}');
                }
            }
        )*

        /// Any event of a turn.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $any<$any_life> {
            $( #[doc = concat!("`", $tag, "`")] $name($name $(<$life>)?), )*
        }

        impl<$any_life> $any<$any_life> {
            /// Every `type`, in the order of the contract.
            pub const TYPES: &'static [&'static str] = &[$($tag),*];

            /// Its `type`.
            pub fn kind(&self) -> &'static str {
                match self {
                    $( $any::$name(_) => $tag, )*
                }
            }

            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $( $any::$name(body) => body.put(out), )*
                }
            }

            /// The event of that `type`; `None` if the type isn't known.
            pub(super) fn decode(kind: &str, object: &Object<'_, $any_life>) -> Option<Result<Self, DecodeError>> {
                match kind {
                    $( $tag => Some(object.decode().map($any::$name)), )*
                    _ => None,
                }
            }
        }
    };
}

events! { EventLine<'a>
    /// A piece of the reply's text.
    Token<'a> = "token" {
        /// The piece.
        #[serde(borrow)]
        text: Lazy<'a>,
    }
    /// A piece of the model's thinking; void when a `retry` follows.
    Thinking<'a> = "thinking" {
        /// The piece.
        #[serde(borrow)]
        text: Lazy<'a>,
    }
    /// The end of a request's reply.
    MessageDone<'a> = "message_done" {
        /// The whole text.
        #[serde(borrow)]
        text: Lazy<'a>,
    }
    /// Before each request of a turn.
    Budget = "budget" {
        /// Estimated tokens of history and schemas.
        used_tokens: u64,
        /// The window.
        context_tokens: u64,
    }
    /// What a request cost, if the provider said so.
    Usage = "usage" {
        /// All tokens of the prompt, cached ones too.
        prompt_tokens: u64,
        /// Tokens of the reply.
        completion_tokens: u64,
        /// Tokens of the prompt that were read from a cache; `null` if unknown.
        cached_tokens: Option<u64>,
    }
    /// A call begins.
    ToolStart<'a> = "tool_start" {
        /// The call.
        #[serde(borrow)]
        call_id: Cow<'a, str>,
        /// The tool.
        #[serde(borrow)]
        name: Cow<'a, str>,
        /// An object; an older wire says `null` where the arguments didn't parse.
        #[serde(borrow)]
        args: Raw<'a>,
    }
    /// A call has ended.
    ToolEnd<'a> = "tool_end" {
        /// The call.
        #[serde(borrow)]
        call_id: Cow<'a, str>,
        /// Whether it did what it was asked.
        ok: bool,
        /// What the tool said.
        #[serde(borrow)]
        output: Lazy<'a>,
    }
    /// A note that the harness wrote into the model's transcript.
    HarnessNote<'a> = "harness_note" {
        /// The call whose result it rode on, or empty.
        #[serde(borrow)]
        call_id: Cow<'a, str>,
        /// The note.
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    /// The request is being sent again, after a wait.
    Retry<'a> = "retry" {
        /// The attempt that goes out.
        attempt: u64,
        /// How many there may be.
        max_attempts: u64,
        /// What ended the one before.
        #[serde(borrow)]
        reason: Cow<'a, str>,
    }
    /// A call changed a file; before its `tool_end`.
    Diff<'a> = "diff" {
        /// The call.
        #[serde(borrow)]
        call_id: Cow<'a, str>,
        /// The file.
        #[serde(borrow)]
        path: Cow<'a, str>,
        /// The change, unified.
        #[serde(borrow)]
        diff: Lazy<'a>,
        /// Lines added.
        added: u64,
        /// Lines removed.
        removed: u64,
    }
    /// A call waits for an `approve`.
    ApprovalRequest<'a> = "approval_request" {
        /// What the `approve` names.
        #[serde(borrow)]
        approval_id: Cow<'a, str>,
        /// The tool.
        #[serde(borrow)]
        name: Cow<'a, str>,
        /// One line for a person.
        #[serde(borrow)]
        summary: Cow<'a, str>,
        /// More for a person.
        #[serde(borrow)]
        detail: Cow<'a, str>,
        /// `gate`, or `unapproved_source`, which a client without a person must never approve.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// The unapproved file, or empty.
        #[serde(borrow)]
        source_path: Cow<'a, str>,
        /// The first 12 hex digits of that file's SHA-256, or empty.
        #[serde(borrow)]
        source_sha: Cow<'a, str>,
        /// Names of the environment variables that the tool will receive: a grant of credentials.
        #[serde(borrow, default)]
        env: Names<'a>,
    }
    /// An approval is closed.
    ApprovalSettled<'a> = "approval_settled" {
        /// Which.
        #[serde(borrow)]
        approval_id: Cow<'a, str>,
        /// `approved`, `declined`, `timed_out` or `cancelled`.
        #[serde(borrow)]
        outcome: Cow<'a, str>,
    }
    /// The receipt of a refreeze.
    Refrozen<'a> = "refrozen" {
        /// Tools now.
        tools: u64,
        /// Skills now.
        skills: u64,
        /// What changed, and who changed it.
        #[serde(borrow)]
        changes: Vec<Str<'a>>,
    }
    /// The tool schemas take most of the window. At most once a session.
    SchemasOverBudget = "schemas_over_budget" {
        /// Tokens of the schemas.
        schema_tokens: u64,
        /// What can be spent.
        budget_tokens: u64,
    }
    /// The receipt of a forced compaction.
    Compacted = "compacted" {
        /// Tokens before it.
        tokens_before: u64,
        /// Tokens after it.
        tokens_after: u64,
        /// Messages that were cut; 0: nothing changed.
        compacted_messages: u64,
    }
    /// A hook did not run; the turn goes on.
    HookFailed<'a> = "hook_failed" {
        /// The hook.
        #[serde(borrow)]
        hook: Cow<'a, str>,
        /// Where in the turn it stands.
        #[serde(borrow)]
        event: Cow<'a, str>,
        /// Why.
        #[serde(borrow)]
        detail: Cow<'a, str>,
    }
    /// A hook refused the model's completion; the turn goes on with the reason as a user message.
    TurnRefused<'a> = "turn_refused" {
        /// The hook.
        #[serde(borrow)]
        hook: Cow<'a, str>,
        /// Its reason.
        #[serde(borrow)]
        reason: Cow<'a, str>,
        /// Refusals honoured before this one.
        continuation: u64,
        /// How many were left.
        continuations_left: u64,
    }
    /// The answer to a `user`, and the end of its turn.
    Done<'a> = "done" {
        /// Why: the provider's word, or one of the contract's.
        #[serde(borrow)]
        stop_reason: Cow<'a, str>,
    }
    /// Something failed. Only a `done` ends a turn.
    Error<'a> = "error" {
        /// What.
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
}

/// The first line of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hello<'a> {
    /// `openmax-stdio/6`.
    #[serde(borrow)]
    pub proto: Cow<'a, str>,
    /// 6.
    pub protocol_version: u64,
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// The product's version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// The project's absolute path.
    #[serde(borrow)]
    pub project: Cow<'a, str>,
    /// Whether a session goes on; a `transcript` follows then.
    pub continued: bool,
}

/// One message of a [`Transcript`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TranscriptMessage<'a> {
    /// `user` or `assistant`.
    #[serde(borrow)]
    pub role: Cow<'a, str>,
    /// Its text, cut at the cap.
    #[serde(borrow)]
    pub content: Cow<'a, str>,
}

impl Hole for TranscriptMessage<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"role\":");
        self.role.put(out);
        out.extend_from_slice(b",\"content\":");
        self.content.put(out);
        out.push(b'}');
    }
}

/// The history of a continued session, for display.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Transcript<'a> {
    /// The session.
    #[serde(borrow)]
    pub session_id: Cow<'a, str>,
    /// Text of user and assistant, oldest first.
    #[serde(borrow)]
    pub messages: Vec<TranscriptMessage<'a>>,
    /// Whether anything was cut.
    pub truncated: bool,
}

/// A command that was refused, or a line that wasn't one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProtocolError<'a> {
    /// Why.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// The answer to `approval_mode`, once the mode is stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ModeSet<'a> {
    /// `auto`, `ask` or `readonly`.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
}

#[derive(Deserialize)]
struct SessionOf<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
}

/// Any line of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentLine<'a> {
    /// `hello`
    Hello(Hello<'a>),
    /// `transcript`
    Transcript(Transcript<'a>),
    /// `protocol_error`
    ProtocolError(ProtocolError<'a>),
    /// `approval_mode`
    ModeSet(ModeSet<'a>),
    /// An event of a turn.
    Event {
        /// The session.
        session_id: Cow<'a, str>,
        /// The event.
        event: EventLine<'a>,
    },
    /// A `type` that this contract doesn't have.
    Unknown {
        /// The `type`.
        kind: Cow<'a, str>,
        /// The whole line.
        line: Cow<'a, str>,
    },
}

/// Any line of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLine<'a> {
    /// Start a turn.
    User(User<'a>),
    /// Answer an approval.
    Approve(Approve<'a>),
    /// Change the approval mode.
    ApprovalMode(ApprovalMode<'a>),
    /// Freeze tools, skills and prompt anew.
    Reload,
    /// Cancel the running turn.
    Cancel,
    /// Let the running turn end, then leave.
    Quit,
    /// A `cmd` that this contract doesn't have.
    Unknown {
        /// The `cmd`.
        cmd: Cow<'a, str>,
        /// The whole line.
        line: Cow<'a, str>,
    },
}

/// The fields of `user`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct User<'a> {
    /// The prompt.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// The fields of `approve`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Approve<'a> {
    /// From the `approval_request`.
    #[serde(borrow)]
    pub approval_id: Cow<'a, str>,
    /// Whether the call may run.
    pub approved: bool,
}

/// The fields of `approval_mode`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApprovalMode<'a> {
    /// `auto`, `ask` or `readonly`.
    #[serde(borrow)]
    pub mode: Cow<'a, str>,
}

/// The commands of the contract.
pub const COMMANDS: [&str; 6] = [
    "user",
    "approve",
    "approval_mode",
    "reload",
    "cancel",
    "quit",
];

impl<'a> HostLine<'a> {
    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line isn't a strict JSON object, has no `cmd`, or lacks a field of its `cmd`.
    pub fn decode(line: &'a [u8], members: &mut Members) -> Result<Self, WireFault> {
        let object = json::scan(line, &ScanRules::STRICT, members).map_err(WireFault::Json)?;
        let cmd = tag(&object, "cmd")?;
        match &*cmd {
            "user" => object.decode().map(HostLine::User),
            "approve" => object.decode().map(HostLine::Approve),
            "approval_mode" => object.decode().map(HostLine::ApprovalMode),
            "reload" => Ok(HostLine::Reload),
            "cancel" => Ok(HostLine::Cancel),
            "quit" => Ok(HostLine::Quit),
            _ => Ok(HostLine::Unknown {
                cmd,
                line: object.line().into(),
            }),
        }
        .map_err(WireFault::Fields)
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            HostLine::User(User { text }) => {
                out.extend_from_slice(b"{\"cmd\":\"user\",\"text\":");
                text.put(out);
                out.push(b'}');
            }
            HostLine::Approve(Approve {
                approval_id,
                approved,
            }) => {
                out.extend_from_slice(b"{\"cmd\":\"approve\",\"approval_id\":");
                approval_id.put(out);
                out.extend_from_slice(b",\"approved\":");
                approved.put(out);
                out.push(b'}');
            }
            HostLine::ApprovalMode(ApprovalMode { mode }) => {
                out.extend_from_slice(b"{\"cmd\":\"approval_mode\",\"mode\":");
                mode.put(out);
                out.push(b'}');
            }
            HostLine::Reload => out.extend_from_slice(b"{\"cmd\":\"reload\"}"),
            HostLine::Cancel => out.extend_from_slice(b"{\"cmd\":\"cancel\"}"),
            HostLine::Quit => out.extend_from_slice(b"{\"cmd\":\"quit\"}"),
            HostLine::Unknown { line, .. } => out.extend_from_slice(line.as_bytes()),
        }
    }

    /// The same line, owning its text.
    pub fn into_owned(self) -> HostLine<'static> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            HostLine::User(User { text }) => HostLine::User(User { text: own(text) }),
            HostLine::Approve(Approve {
                approval_id,
                approved,
            }) => HostLine::Approve(Approve {
                approval_id: own(approval_id),
                approved,
            }),
            HostLine::ApprovalMode(ApprovalMode { mode }) => {
                HostLine::ApprovalMode(ApprovalMode { mode: own(mode) })
            }
            HostLine::Reload => HostLine::Reload,
            HostLine::Cancel => HostLine::Cancel,
            HostLine::Quit => HostLine::Quit,
            HostLine::Unknown { cmd, line } => HostLine::Unknown {
                cmd: own(cmd),
                line: own(line),
            },
        }
    }
}

impl<'a> AgentLine<'a> {
    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line isn't a strict JSON object, has no `type`, or lacks a field of its `type`.
    pub fn decode(line: &'a [u8], members: &mut Members) -> Result<Self, WireFault> {
        let object = json::scan(line, &ScanRules::STRICT, members).map_err(WireFault::Json)?;
        let kind = tag(&object, "type")?;
        match &*kind {
            "hello" => {
                return object
                    .decode()
                    .map(AgentLine::Hello)
                    .map_err(WireFault::Fields);
            }
            "transcript" => {
                return object
                    .decode()
                    .map(AgentLine::Transcript)
                    .map_err(WireFault::Fields);
            }
            "protocol_error" => {
                return object
                    .decode()
                    .map(AgentLine::ProtocolError)
                    .map_err(WireFault::Fields);
            }
            "approval_mode" => {
                return object
                    .decode()
                    .map(AgentLine::ModeSet)
                    .map_err(WireFault::Fields);
            }
            _ => {}
        }
        match EventLine::decode(&kind, &object) {
            Some(event) => {
                let session_id = match object.string("session_id") {
                    Some(session_id) => session_id,
                    // Says what is wrong with it.
                    None => {
                        object
                            .decode::<SessionOf<'_>>()
                            .map_err(WireFault::Fields)?
                            .session_id
                    }
                };
                Ok(AgentLine::Event {
                    session_id,
                    event: event.map_err(WireFault::Fields)?,
                })
            }
            None => Ok(AgentLine::Unknown {
                kind,
                line: object.line().into(),
            }),
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            AgentLine::Hello(hello) => hello.encode(out),
            AgentLine::Transcript(transcript) => transcript.encode(out),
            AgentLine::ProtocolError(error) => error.encode(out),
            AgentLine::ModeSet(mode) => mode.encode(out),
            AgentLine::Event { session_id, event } => {
                put_session(session_id, out);
                event.put(out);
            }
            AgentLine::Unknown { line, .. } => out.extend_from_slice(line.as_bytes()),
        }
    }

    /// Its `type`.
    pub fn kind(&self) -> &str {
        match self {
            AgentLine::Hello(_) => "hello",
            AgentLine::Transcript(_) => "transcript",
            AgentLine::ProtocolError(_) => "protocol_error",
            AgentLine::ModeSet(_) => "approval_mode",
            AgentLine::Event { event, .. } => event.kind(),
            AgentLine::Unknown { kind, .. } => kind,
        }
    }
}

/// Appends the opening of an event: the brace and the session's member.
pub(super) fn put_session(session_id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"session_id\":");
    json::write_str(out, session_id);
}

impl Hello<'_> {
    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"hello\",\"proto\":");
        self.proto.put(out);
        out.extend_from_slice(b",\"protocol_version\":");
        self.protocol_version.put(out);
        out.extend_from_slice(b",\"session_id\":");
        self.session_id.put(out);
        out.extend_from_slice(b",\"version\":");
        self.version.put(out);
        out.extend_from_slice(b",\"project\":");
        self.project.put(out);
        out.extend_from_slice(b",\"continued\":");
        self.continued.put(out);
        out.push(b'}');
    }
}

impl Transcript<'_> {
    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"transcript\",\"session_id\":");
        self.session_id.put(out);
        out.extend_from_slice(b",\"messages\":");
        self.messages.put(out);
        out.extend_from_slice(b",\"truncated\":");
        self.truncated.put(out);
        out.push(b'}');
    }
}

impl ProtocolError<'_> {
    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"protocol_error\",\"message\":");
        self.message.put(out);
        out.push(b'}');
    }
}

impl ModeSet<'_> {
    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"approval_mode\",\"mode\":");
        self.mode.put(out);
        out.push(b'}');
    }
}
