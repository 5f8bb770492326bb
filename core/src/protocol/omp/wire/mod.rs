//! The type of every line, both directions.
//!
//! Decoding is a scan, then the tag, then the one type that it names. What the contract doesn't have is a value at
//! every level: commands, events, roles, blocks, words and members that are new are kept, and written again as they
//! came. Encoding writes the documented order. The two are inverse up to key order, spacing, escapes, the spelling of
//! numbers and halves of surrogate pairs (L10).
//!
//! Two things are read lazily: messages inside of events ([`Message::decode`]), because updates repeat them, and the
//! payload of a response ([`Response::payload`]), whose shape only its command tells. The types borrow from the line
//! and have no owned form: who must wait with a line keeps its text, and reads it again.

mod command;
mod content;
mod data;
mod event;
mod frame;
mod message;
mod side;
mod ui;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{
    self, DecodeError, Duplicates, JsonFault, JsonFaultKind, Kind, Lazy, LoneSurrogates, Members,
    Object, Raw, ScanRules, Str,
};
pub use crate::protocol::WireFault;
use crate::protocol::member;
use crate::protocol::wire::Hole;

pub use command::*;
pub use content::*;
pub use data::*;
pub use event::*;
pub use frame::*;
pub(in crate::protocol::omp) use member::KindRow;
pub use member::{Any, Kept, Maybe, Nullable, Num, Rest, Tag};
pub use message::*;
pub use side::*;
pub use ui::*;

use member::{key, last};

/// Lines of a host: a member that comes twice counts as its last one does, as in the real program.
pub const HOST_RULES: ScanRules = ScanRules {
    duplicates: Duplicates::Pass,
    ..ScanRules::LENIENT
};

/// Lines of an agent. A tree of entries nests two levels an entry, hence the depth; a frame that was made to fit may
/// hold half a surrogate pair.
pub const AGENT_RULES: ScanRules = ScanRules {
    max_depth: 65_536,
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
};

/// A line of a host as the real program takes it: without a byte order mark and white space around it, bytes that
/// aren't UTF-8 replaced. Empty for a line that is to be passed over.
pub fn host_text(line: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => Cow::Borrowed(trimmed(text).as_bytes()),
        Cow::Owned(text) => Cow::Owned(trimmed(&text).as_bytes().to_vec()),
    }
}

/// Without what JavaScript takes for white space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|char: char| char == '\u{feff}' || (char.is_whitespace() && char != '\u{85}'))
}

/// A line of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLine<'a> {
    /// A command.
    Command {
        /// Any JSON, to be echoed.
        id: Any<'a>,
        /// The command.
        command: Command<'a>,
    },
    /// A line of the side channel.
    Side(Side<'a>),
    /// An object of a type that the contract doesn't have, or a side line without the shape of one.
    Unknown {
        /// Any JSON, to be echoed.
        id: Any<'a>,
        /// The type.
        kind: Tag<'a>,
        /// The object.
        line: Raw<'a>,
    },
    /// JSON that is neither an object nor `null`: answered as an unknown command without a name or an id.
    Other(Raw<'a>),
}

/// Why a line of a host isn't one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFault<'a> {
    /// It isn't JSON.
    Json(JsonFault),
    /// It is `null`, which is answered as if it weren't JSON.
    Null,
    /// A command that lacks a member, or has one of another type.
    Fields {
        /// Any JSON, to be echoed.
        id: Any<'a>,
        /// The command.
        command: Cow<'a, str>,
        /// What is wrong.
        error: DecodeError,
    },
}

impl<'a> HostLine<'a> {
    /// Reads one line, best one that went through [`host_text`]. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`HostFault`] when it isn't JSON, is `null`, or is a command that lacks a member.
    pub fn decode(line: &'a [u8], members: &mut Members) -> Result<Self, HostFault<'a>> {
        let object = match json::scan(line, &HOST_RULES, members) {
            Ok(object) => object,
            Err(fault) if fault.kind == JsonFaultKind::NotAnObject => {
                return match json::scan_value(line, &HOST_RULES) {
                    Ok(value) if value.is_null() => Err(HostFault::Null),
                    Ok(value) => Ok(HostLine::Other(value)),
                    Err(fault) => Err(HostFault::Json(fault)),
                };
            }
            Err(fault) => return Err(HostFault::Json(fault)),
        };
        HostLine::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`HostFault::Fields`] when it is a command that lacks a member, or has one of another type.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, HostFault<'a>> {
        let id = Any(last(object, "id"));
        let kind = Tag::of(last(object, "type"));
        if let Tag::Name(name) = &kind {
            if let Some(Ok(side)) = Side::of_line(name, object) {
                return Ok(HostLine::Side(side));
            }
            match Command::of_line(name, object) {
                Some(Ok(command)) => return Ok(HostLine::Command { id, command }),
                Some(Err(error)) => {
                    return Err(HostFault::Fields {
                        id,
                        command: name.0.clone(),
                        error,
                    });
                }
                None => {}
            }
        }
        Ok(HostLine::Unknown {
            id,
            kind,
            line: Raw::trusted(object.line().trim_matches([' ', '\t', '\n', '\r'])),
        })
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            HostLine::Command { id, command } => {
                if let Command::Unknown(line) = command {
                    return line.put(out);
                }
                out.push(b'{');
                if id.get().is_some() {
                    key(out, "id");
                    id.put(out);
                }
                command.put_tagged(out);
                out.push(b'}');
            }
            HostLine::Side(side) => side.put(out),
            HostLine::Unknown { line, .. } | HostLine::Other(line) => line.put(out),
        }
    }
}

/// The one answer to a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response<'a> {
    /// The command's id, as it came; absent if it had none, or couldn't be read.
    pub id: Any<'a>,
    /// The command's name. `parse` for a line that isn't JSON.
    pub command: Tag<'a>,
    /// Whether it did what was asked.
    pub success: bool,
    /// The payload; `null` and absent differ.
    pub data: Any<'a>,
    /// Why it failed.
    pub error: Option<Lazy<'a>>,
    /// Why it failed, for machines.
    pub code: Option<Str<'a>>,
    /// Members that the contract doesn't have.
    pub rest: Rest<'a>,
}

/// The codes of failures that have one.
pub const CODES: [&str; 3] = ["session_busy", "stale_cursor", "unknown_since"];

impl<'a> Response<'a> {
    /// A success without payload.
    pub fn success(id: Any<'a>, command: &'a str) -> Self {
        Response {
            id,
            command: command.into(),
            success: true,
            ..Response::default()
        }
    }

    /// A failure.
    pub fn failure(id: Any<'a>, command: Tag<'a>, error: impl Into<Lazy<'a>>) -> Self {
        Response {
            id,
            command,
            success: false,
            error: Some(error.into()),
            ..Response::default()
        }
    }

    /// Reads the payload, as its command says.
    ///
    /// # Errors
    /// When it lacks a member, or has one of another type.
    pub fn payload(&self) -> Result<Data<'a>, DecodeError> {
        Data::decode(self.command.name().unwrap_or_default(), self.data)
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.put(out, |out| self.data.put(out), self.data.get().is_some());
    }

    /// Appends the line with this payload instead of its own, without its newline.
    pub fn encode_with(&self, data: &Data<'_>, out: &mut Vec<u8>) {
        self.put(out, |out| data.encode(out), *data != Data::Nothing);
    }

    fn put(&self, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>), has_data: bool) {
        out.push(b'{');
        if self.id.get().is_some() {
            key(out, "id");
            self.id.put(out);
        }
        key(out, "type");
        out.extend_from_slice(b"\"response\"");
        if !self.command.is_absent() {
            key(out, "command");
            self.command.put(out);
        }
        key(out, "success");
        self.success.put(out);
        if has_data {
            key(out, "data");
            data(out);
        }
        if let Some(error) = &self.error {
            key(out, "error");
            error.put(out);
        }
        if let Some(code) = &self.code {
            key(out, "code");
            code.put(out);
        }
        self.rest.put_members(out);
        out.push(b'}');
    }

    fn of_line(object: &Object<'_, 'a>) -> Result<Self, DecodeError> {
        let envelope: Envelope<'a> = object.decode()?;
        Ok(Response {
            id: envelope.id,
            command: Tag::of(envelope.command.get()),
            success: envelope.success,
            data: envelope.data,
            error: envelope.error,
            code: envelope.code,
            rest: envelope.rest,
        })
    }
}

mod envelope {
    use super::member::objects;
    use super::{Any, Lazy, Str};

    objects! { without ["type"];
        /// A response as it stands on the line.
        Envelope {
            id "id": Any<'a>,
            command "command": Any<'a>,
            success "success": bool,
            data "data": Any<'a>,
            error "error": Option<Lazy<'a>>,
            code "code": Option<Str<'a>>,
        }
    }
}
pub(in crate::protocol::omp) use envelope::Envelope;

/// A request to the host's screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiRequest<'a> {
    /// What an answer names: 16 hex digits.
    pub id: Str<'a>,
    /// What is asked.
    pub method: UiMethod<'a>,
}

impl<'a> UiRequest<'a> {
    /// `None`: the method isn't known.
    fn of_line(object: &Object<'_, 'a>) -> Option<Result<Self, DecodeError>> {
        let name = last(object, "method")?.string()?;
        let id = last(object, "id")?.string()?;
        let method = UiMethod::of_line(&name, object)?;
        Some(method.map(|method| UiRequest {
            id: Str(id),
            method,
        }))
    }

    fn put(&self, out: &mut Vec<u8>) {
        if let UiMethod::Unknown(line) = &self.method {
            return line.put(out);
        }
        out.extend_from_slice(b"{\"type\":\"extension_ui_request\",\"id\":");
        self.id.put(out);
        self.method.put_tagged(out);
        out.push(b'}');
    }
}

/// A line of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentLine<'a> {
    /// An event of the session.
    Event(Event<'a>),
    /// The answer to a command.
    Response(Response<'a>),
    /// A request to the host's screen.
    Ui(UiRequest<'a>),
    /// Any other frame.
    Frame(Frame<'a>),
    /// A type, or a method of a request to the screen, that the contract doesn't have.
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
    pub fn decode(line: &'a [u8], members: &mut Members) -> Result<Self, WireFault> {
        let object = json::scan(line, &AGENT_RULES, members).map_err(WireFault::Json)?;
        AgentLine::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`WireFault`] when it has no `type`, or lacks a member of its `type`.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, WireFault> {
        let value = last(object, "type").ok_or(WireFault::NoTag("type"))?;
        let kind = value.string().ok_or_else(|| WireFault::TagKind {
            tag: "type",
            found: value.kind(),
        })?;
        let read = match &*kind {
            "response" => Some(Response::of_line(object).map(AgentLine::Response)),
            "extension_ui_request" => {
                UiRequest::of_line(object).map(|read| read.map(AgentLine::Ui))
            }
            name => Event::of_line(name, object)
                .map(|read| read.map(AgentLine::Event))
                .or_else(|| Frame::of_line(name, object).map(|read| read.map(AgentLine::Frame))),
        };
        match read {
            Some(read) => read.map_err(WireFault::Fields),
            None => Ok(AgentLine::Unknown {
                kind: Str(kind),
                line: Raw::trusted(object.line().trim_matches([' ', '\t', '\n', '\r'])),
            }),
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            AgentLine::Event(event) => event.put(out),
            AgentLine::Response(response) => response.encode(out),
            AgentLine::Ui(request) => request.put(out),
            AgentLine::Frame(frame) => frame.put(out),
            AgentLine::Unknown { line, .. } => line.put(out),
        }
    }

    /// Its `type`.
    pub fn kind(&self) -> &str {
        match self {
            AgentLine::Event(event) => event.tag().unwrap_or_default(),
            AgentLine::Response(_) => "response",
            AgentLine::Ui(_) => "extension_ui_request",
            AgentLine::Frame(frame) => frame.tag().unwrap_or_default(),
            AgentLine::Unknown { kind, .. } => kind,
        }
    }
}

macro_rules! lines {
    ($($what:literal $ty:ident),*) => { $(
        impl $ty<'_> {
            #[doc = concat!("Appends ", $what, " as JSON, on one line.")]
            pub fn encode(&self, out: &mut Vec<u8>) {
                self.put(out);
            }
        }
    )* };
}

lines! {
    "the event" Event, "the frame" Frame, "the message" Message, "the block" Block, "the usage" Usage, "the model" Model,
    "what a tool gave" ToolOutput, "the update" Update
}

impl<'a> Block<'a> {
    /// The text of a text block.
    pub fn text(&self) -> Option<&Lazy<'a>> {
        match self {
            Block::Text(block) => Some(&block.text),
            Block::Thinking(_)
            | Block::RedactedThinking(_)
            | Block::Image(_)
            | Block::ToolCall(_)
            | Block::Fallback(_)
            | Block::ServerTool(_)
            | Block::Unknown(_) => None,
        }
    }
}

/// The `role` of a message that hasn't been read.
pub fn role_of(message: Raw<'_>) -> Option<Cow<'_, str>> {
    if message.kind() == Kind::Object {
        message.get_last("role")?.string()
    } else {
        None
    }
}
