//! The type of every record, both directions, of the strict wire and of claude: one set of types for both.
//!
//! Decoding is a scan, then the tag, then the one type that it names. It is tolerant: what the contract doesn't have is
//! a value at every level, and is written again as it came. Encoding writes one order of members, and escapes U+2028
//! and U+2029 (WIRE, section 1). The two are inverse up to key order, spacing, escapes, the spelling of numbers, halves
//! of surrogate pairs and the other spelling of a request's id (L10).
//!
//! What the strict wire refuses besides is [`hear`](super::hear::hear)'s: members that a record doesn't have, a member
//! twice, shapes that no waiter can read.
//!
//! Read lazily are the operation of a request ([`ControlRequest::operation`]), so that one that lacks a member still
//! has an id to be answered by, and the payload of a response, whose shape only its operation tells
//! ([`Answer::decode`]). The types borrow from the line: who must wait with one keeps its text.

mod answer;
mod attachment;
mod content;
mod control;
mod hook;
mod permission;
mod provider;
mod record;
mod system;

use alloc::vec::Vec;

use crate::json::{
    self, DecodeError, Duplicates, JsonFault, LoneSurrogates, Members, Object, Raw, ScanRules, Str,
};
pub use crate::protocol::WireFault;
pub(in crate::protocol::agentx) use crate::protocol::member::KindRow;
pub use crate::protocol::member::{Any, Kept, Map, Maybe, Nullable, Num, Rest, Tag};
use crate::protocol::member::{Fields, key, last, objects};
use crate::protocol::wire::Hole;

pub use answer::*;
pub use attachment::*;
pub use content::*;
pub use control::*;
pub use hook::*;
pub use permission::*;
pub use provider::*;
pub use record::*;
pub use system::*;

/// Lines of the strict wire: a member that comes twice, in any spelling and at any depth, is a fault.
pub const CLOSED_RULES: ScanRules = ScanRules {
    max_depth: 128,
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Refuse,
};

/// Lines of claude: of a member that comes twice the last one counts. Inputs and results of tools may nest deep.
pub const OPEN_RULES: ScanRules = ScanRules {
    max_depth: 1_024,
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
};

objects! { without ["type"];
    /// Variables for the agent's environment.
    UpdateEnvironment {
        variables "variables": Option<Kept<'a, Map<'a, Str<'a>>>>,
        /// The same, in another spelling.
        environment_variables "environment_variables": Option<Kept<'a, Map<'a, Str<'a>>>>,
    }
    /// A `system` record that a host replays: context alone.
    History {
        session_id "session_id": Option<Str<'a>>,
        uuid "uuid": Option<Str<'a>>,
        message "message": Any<'a>,
        parent_tool_use_id "parent_tool_use_id": Maybe<Str<'a>>,
        timestamp "timestamp": Option<Str<'a>>,
        tool_use_result "tool_use_result": Any<'a>,
        is_synthetic "isSynthetic": Option<bool>,
        is_replay "isReplay": Option<bool>,
        priority "priority": Any<'a>,
    }
}

/// A line of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLine<'a> {
    /// A prompt, or a message of a user that was said before.
    User(User<'a>),
    /// A reply that was said before: context alone.
    Assistant(History<'a>),
    /// A `system` record that was said before: context alone.
    System(History<'a>),
    /// Asks for an operation.
    Request(ControlRequest<'a>),
    /// Answers one.
    Response(ControlResponse<'a>),
    /// Withdraws one.
    Cancel(ControlCancel<'a>),
    /// Means nothing.
    KeepAlive(KeepAlive<'a>),
    /// Changes the environment.
    Environment(UpdateEnvironment<'a>),
    /// A step of an upload.
    Import(Import<'a>),
    /// Of a type that the contract doesn't have.
    Unknown {
        /// The type.
        kind: Str<'a>,
        /// The object.
        line: Raw<'a>,
    },
}

impl<'a> HostLine<'a> {
    /// Every type that is known.
    pub const KINDS: [&'static str; 9] = [
        "user",
        "assistant",
        "system",
        "control_request",
        "control_response",
        "control_cancel_request",
        "keep_alive",
        "update_environment_variables",
        "attachment_import",
    ];

    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line isn't a JSON object, has no `type`, or lacks a member of its `type`.
    pub fn decode(
        line: &'a [u8],
        rules: &ScanRules,
        members: &mut Members,
    ) -> Result<Self, WireFault> {
        let object = json::scan(line, rules, members).map_err(WireFault::Json)?;
        HostLine::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`WireFault`] when it has no `type`, or lacks a member of its `type`.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, WireFault> {
        let kind = kind(object)?;
        let read = match &*kind {
            "user" => object.decode().map(HostLine::User),
            "assistant" => object.decode().map(HostLine::Assistant),
            "system" => object.decode().map(HostLine::System),
            "control_request" => object
                .decode()
                .map(|request: ControlRequest<'a>| HostLine::Request(request.settled())),
            "control_response" => object
                .decode()
                .map(|response: ControlResponse<'a>| HostLine::Response(response.settled())),
            "control_cancel_request" => object
                .decode()
                .map(|cancel: ControlCancel<'a>| HostLine::Cancel(cancel.settled())),
            "keep_alive" => object.decode().map(HostLine::KeepAlive),
            "update_environment_variables" => object.decode().map(HostLine::Environment),
            "attachment_import" => import(object).map(HostLine::Import),
            _ => Ok(HostLine::Unknown {
                line: whole(object),
                kind: Str(kind),
            }),
        };
        read.map_err(WireFault::Fields)
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let from = out.len();
        match self {
            HostLine::User(record) => put(self.kind(), record, out),
            HostLine::Assistant(record) | HostLine::System(record) => {
                put(self.kind(), record, out);
            }
            HostLine::Request(record) => put(self.kind(), record, out),
            HostLine::Response(record) => put(self.kind(), record, out),
            HostLine::Cancel(record) => put(self.kind(), record, out),
            HostLine::KeepAlive(record) => put(self.kind(), record, out),
            HostLine::Environment(record) => put(self.kind(), record, out),
            HostLine::Import(Import::Unknown(line)) | HostLine::Unknown { line, .. } => {
                line.put(out);
            }
            HostLine::Import(import) => {
                open(self.kind(), out);
                import.put_tagged(out);
                out.push(b'}');
            }
        }
        escape_separators(out, from);
    }

    /// Its `type`.
    pub fn kind(&self) -> &str {
        match self {
            HostLine::User(_) => "user",
            HostLine::Assistant(_) => "assistant",
            HostLine::System(_) => "system",
            HostLine::Request(_) => "control_request",
            HostLine::Response(_) => "control_response",
            HostLine::Cancel(_) => "control_cancel_request",
            HostLine::KeepAlive(_) => "keep_alive",
            HostLine::Environment(_) => "update_environment_variables",
            HostLine::Import(_) => "attachment_import",
            HostLine::Unknown { kind, .. } => kind,
        }
    }
}

/// A line of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentLine<'a> {
    /// A record of the conversation, or beside it.
    Record(Record<'a>),
    /// How the session stands.
    System(System<'a>),
    /// Asks for an operation.
    Request(ControlRequest<'a>),
    /// Answers one.
    Response(ControlResponse<'a>),
    /// Withdraws one.
    Cancel(ControlCancel<'a>),
    /// Of a type that the contract doesn't have.
    Unknown {
        /// The type.
        kind: Str<'a>,
        /// The object.
        line: Raw<'a>,
    },
}

impl<'a> AgentLine<'a> {
    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line isn't a JSON object, has no `type`, or lacks a member of its `type`.
    pub fn decode(
        line: &'a [u8],
        rules: &ScanRules,
        members: &mut Members,
    ) -> Result<Self, WireFault> {
        let object = json::scan(line, rules, members).map_err(WireFault::Json)?;
        AgentLine::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`WireFault`] when it has no `type`, or lacks a member of its `type`.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, WireFault> {
        let kind = kind(object)?;
        let read = match &*kind {
            "system" => system(object).map(AgentLine::System),
            "control_request" => object
                .decode()
                .map(|request: ControlRequest<'a>| AgentLine::Request(request.settled())),
            "control_response" => object
                .decode()
                .map(|response: ControlResponse<'a>| AgentLine::Response(response.settled())),
            "control_cancel_request" => object
                .decode()
                .map(|cancel: ControlCancel<'a>| AgentLine::Cancel(cancel.settled())),
            name => match Record::of_line(name, object) {
                Some(read) => read.map(AgentLine::Record),
                None => Ok(AgentLine::Unknown {
                    line: whole(object),
                    kind: Str(kind),
                }),
            },
        };
        read.map_err(WireFault::Fields)
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let from = out.len();
        match self {
            AgentLine::Record(record) => record.put(out),
            AgentLine::System(System::Unknown(line)) | AgentLine::Unknown { line, .. } => {
                line.put(out);
            }
            AgentLine::System(system) => {
                open(self.kind(), out);
                system.put_tagged(out);
                out.push(b'}');
            }
            AgentLine::Request(record) => put(self.kind(), record, out),
            AgentLine::Response(record) => put(self.kind(), record, out),
            AgentLine::Cancel(record) => put(self.kind(), record, out),
        }
        escape_separators(out, from);
    }

    /// As [`encode`](Self::encode), for a line with values that came from outside and were never scanned strictly: a
    /// tool's input, a payload. One that holds a member twice is not written (WIRE-021, AX-S20).
    ///
    /// # Errors
    /// Where the member stands in what would have been the line.
    pub fn encode_closed(&self, out: &mut Vec<u8>, members: &mut Members) -> Result<(), JsonFault> {
        let from = out.len();
        self.encode(out);
        let line = out.get(from..).unwrap_or_default();
        let checked = json::scan(line, &CLOSED_RULES, members).map(|_| ());
        if checked.is_err() {
            out.truncate(from);
        }
        checked
    }

    /// Its `type`.
    pub fn kind(&self) -> &str {
        match self {
            AgentLine::Record(record) => record.tag().unwrap_or_default(),
            AgentLine::System(_) => "system",
            AgentLine::Request(_) => "control_request",
            AgentLine::Response(_) => "control_response",
            AgentLine::Cancel(_) => "control_cancel_request",
            AgentLine::Unknown { kind, .. } => kind,
        }
    }

    /// Its `subtype`, if it is a `system` record or a result whose one is known.
    pub fn subtype(&self) -> Option<&str> {
        match self {
            AgentLine::System(system) => system.tag(),
            AgentLine::Record(Record::Result(result)) => Some(result.subtype.as_str()),
            AgentLine::Record(_)
            | AgentLine::Request(_)
            | AgentLine::Response(_)
            | AgentLine::Cancel(_)
            | AgentLine::Unknown { .. } => None,
        }
    }
}

/// Records that are written on their own, as whole lines.
macro_rules! lines {
    ($($what:literal $ty:ident in $line:ident),*) => { $(
        impl<'a> From<$ty<'a>> for AgentLine<'a> {
            #[doc = concat!("The line of ", $what, ".")]
            fn from(record: $ty<'a>) -> Self {
                AgentLine::$line(record.into())
            }
        }
    )* };
}

lines! {
    "the record" Record in Record, "the record" System in System, "the message" User in Record,
    "the message" Assistant in Record, "the result" TurnResult in Record, "the piece" StreamLine in Record,
    "the progress" ToolProgress in Record, "the fate" CommandLifecycle in Record,
    "the upload" ImportResult in Record, "the refusal" ImportRejected in Record, "the sign" KeepAlive in Record,
    "the session" Init in System, "the state" SessionStateChanged in System, "the state" Status in System,
    "the boundary" CompactBoundary in System, "the output" LocalCommandOutput in System,
    "the retry" ApiRetry in System, "the denial" PermissionDenied in System,
    "the note" Informational in System, "the note" Notification in System,
    "the request" ControlRequest in Request, "the answer" ControlResponse in Response,
    "the withdrawal" ControlCancel in Cancel
}

impl<'a> From<Response<'a>> for AgentLine<'a> {
    fn from(response: Response<'a>) -> Self {
        AgentLine::Response(response.into())
    }
}

impl<'a> From<Response<'a>> for HostLine<'a> {
    fn from(response: Response<'a>) -> Self {
        HostLine::Response(response.into())
    }
}

impl Manifest<'_> {
    /// Appends it as JSON: the block of a message that refers to it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        Block::Attachment(self.clone()).put(out);
    }
}

macro_rules! values {
    ($($what:literal $ty:ident),*) => { $(
        impl $ty<'_> {
            #[doc = concat!("Appends ", $what, " as JSON, on one line.")]
            pub fn encode(&self, out: &mut Vec<u8>) {
                let from = out.len();
                self.put(out);
                escape_separators(out, from);
            }
        }
    )* };
}

values! {
    "the block" Block, "the event" StreamEvent, "the message" UserMessage, "the message" AssistantMessage,
    "the update" PermissionUpdate, "the decision" Decision, "the hook's input" HookInput,
    "the hook's answer" HookOutput, "the document" ProviderList, "the usage" Usage, "the operation" Operation,
    "the capabilities" InputCapabilities
}

/// The string that names the type of a line: of the last member of this name.
fn kind<'a>(object: &Object<'_, 'a>) -> Result<alloc::borrow::Cow<'a, str>, WireFault> {
    let value = last(object, "type").ok_or(WireFault::NoTag("type"))?;
    value.string().ok_or_else(|| WireFault::TagKind {
        tag: "type",
        found: value.kind(),
    })
}

fn whole<'a>(object: &Object<'_, 'a>) -> Raw<'a> {
    Raw::trusted(object.line().trim_matches([' ', '\t', '\n', '\r']))
}

fn import<'a>(object: &Object<'_, 'a>) -> Result<Import<'a>, DecodeError> {
    let operation = last(object, "operation").and_then(Raw::string);
    Import::of_line(operation.as_deref().unwrap_or_default(), object)
        .unwrap_or_else(|| Ok(Import::Unknown(whole(object))))
}

fn system<'a>(object: &Object<'_, 'a>) -> Result<System<'a>, DecodeError> {
    let subtype = last(object, "subtype").and_then(Raw::string);
    System::of_line(subtype.as_deref().unwrap_or_default(), object)
        .unwrap_or_else(|| Ok(System::Unknown(whole(object))))
}

/// Begins a record.
fn open(kind: &str, out: &mut Vec<u8>) {
    out.push(b'{');
    key(out, "type");
    json::write_str(out, kind);
}

fn put<'a>(kind: &str, record: &impl Fields<'a>, out: &mut Vec<u8>) {
    open(kind, out);
    record.put_members(out);
    out.push(b'}');
}

/// Escapes U+2028 and U+2029 in the line that begins at `from`, so that a reader that takes them for line ends still
/// sees one line. All else stays as it is, byte for byte.
pub fn escape_separators(out: &mut Vec<u8>, from: usize) {
    let line = out.get(from..).unwrap_or_default();
    let Some(first) = separator(line, 0) else {
        return;
    };
    let tail = line.get(first..).unwrap_or_default().to_vec();
    out.truncate(from + first);
    let mut kept = 0;
    let mut at = Some(0);
    while let Some(found) = at {
        out.extend_from_slice(tail.get(kept..found).unwrap_or_default());
        let is_line = tail.get(found + 2) == Some(&0xA8);
        out.extend_from_slice(if is_line { b"\\u2028" } else { b"\\u2029" });
        kept = found + 3;
        at = separator(&tail, kept);
    }
    out.extend_from_slice(tail.get(kept..).unwrap_or_default());
}

/// Where the next of the two stands, from `at` on. In JSON text they stand in strings alone.
fn separator(line: &[u8], mut at: usize) -> Option<usize> {
    while let Some(found) = memchr::memchr(0xE2, line.get(at..)?) {
        at += found;
        if let Some([0xE2, 0x80, 0xA8 | 0xA9]) = line.get(at..at + 3) {
            return Some(at);
        }
        at += 1;
    }
    None
}
