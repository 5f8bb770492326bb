//! What an agent reads: lines until the end of input, judged strictly, of which the first bad one refuses the run (SP-02).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer};

use super::{RULES, SCHEMA_VERSION};
use crate::json::{self, Kind, Members, Object, Raw, Str};
use crate::protocol::wire::Hole;

/// One line of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// `prompt`: text.
    Prompt {
        /// Never blank.
        content: Str<'a>,
    },
    /// `message` with the role `user`: text, pictures, or both.
    Message {
        /// Blank only if there are pictures.
        content: Str<'a>,
        /// Pictures, not judged yet.
        images: Vec<Image<'a>>,
    },
}

/// A picture as it stands in a line. Members of it that nobody knows are passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image<'a> {
    /// `mediaType`
    pub media_type: Str<'a>,
    /// `data`: standard base64, without a prefix.
    pub data: Str<'a>,
}

/// Why a line isn't one of a host's. Each has one text, which is part of the contract; where several fit, the first one
/// counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputFault {
    /// It isn't a JSON object, or a member is of another type.
    NotAnObject,
    /// It has a member that its type doesn't have. Of several the first one is named.
    UnknownField(String),
    /// It is of another schema, or of none.
    Version,
    /// There is no text, and no picture.
    Content,
    /// Neither `prompt` nor `message`.
    Type,
    /// A message of somebody else.
    Role,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputFault::NotAnObject => "expected a JSON object.",
            InputFault::UnknownField(name) => return write!(f, "unknown field {name}"),
            InputFault::Version => "schemaVersion must be 2",
            InputFault::Content => "content is required",
            InputFault::Type => "type must be prompt or message",
            InputFault::Role => "role must be user",
        })
    }
}

impl core::error::Error for InputFault {}

/// A line that refuses the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its number, from 1; blank lines count.
    pub line: u64,
    /// What is wrong with it.
    pub fault: InputFault,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { line, fault } = self;
        write!(f, "Invalid stream-json input at line {line}: {fault}")
    }
}

impl core::error::Error for Refused {}

/// What is said where no line of input came at all.
pub const NO_INPUT: &str =
    "Stream-json input must include at least one prompt or user message event.";

/// A member that may be null, which is as if it weren't there.
fn text<'a>(value: Option<Raw<'a>>) -> Result<Option<Str<'a>>, InputFault> {
    match value.map(|value| (value.kind(), value.string())) {
        None | Some((Kind::Null, _)) => Ok(None),
        Some((_, Some(text))) => Ok(Some(Str(text))),
        Some((_, None)) => Err(InputFault::NotAnObject),
    }
}

/// A whole number as it has to be spelled: no fraction, no exponent.
fn version(value: Option<Raw<'_>>) -> Result<i64, InputFault> {
    match value {
        None => Ok(0),
        Some(value) if value.is_null() => Ok(0),
        Some(value) if value.kind() == Kind::Number => {
            value.as_str().parse().map_err(|_| InputFault::NotAnObject)
        }
        Some(_) => Err(InputFault::NotAnObject),
    }
}

fn images<'a>(value: Option<Raw<'a>>) -> Result<Vec<Image<'a>>, InputFault> {
    match value {
        None => Ok(Vec::new()),
        Some(value) if value.is_null() => Ok(Vec::new()),
        Some(value) => value.decode().map_err(|_| InputFault::NotAnObject),
    }
}

impl<'a> Deserialize<'a> for Image<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        let member = |name| text(value.get_last(name)).map(Option::unwrap_or_default);
        match value.kind() {
            Kind::Null => Ok(Image::default()),
            Kind::Object => Ok(Image {
                media_type: member("mediaType").map_err(serde::de::Error::custom)?,
                data: member("data").map_err(serde::de::Error::custom)?,
            }),
            Kind::Bool | Kind::Number | Kind::String | Kind::Array => {
                Err(serde::de::Error::custom(InputFault::NotAnObject))
            }
        }
    }
}

impl Hole for Image<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"mediaType\":");
        self.media_type.put(out);
        out.extend_from_slice(b",\"data\":");
        self.data.put(out);
        out.push(b'}');
    }
}

impl<'a> Input<'a> {
    /// The types that there are.
    pub const TYPES: [&'static str; 2] = ["message", "prompt"];

    /// Reads one line that isn't blank. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(line: &'a [u8], members: &mut Members) -> Result<Self, InputFault> {
        match json::scan(line, &RULES, members) {
            Ok(object) => Input::of_object(&object),
            Err(_) => Err(match json::scan_value(line, &RULES) {
                // Null has no member, so that the version is the first that it lacks.
                Ok(value) if value.is_null() => InputFault::Version,
                Ok(_) | Err(_) => InputFault::NotAnObject,
            }),
        }
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, InputFault> {
        let value = |name| crate::protocol::member::last(object, name);
        let kind = value("type").and_then(Raw::string);
        let is_message = kind.as_deref() == Some("message");
        let known = |name: &str| match name {
            "schemaVersion" | "type" | "content" => true,
            "role" | "images" => is_message,
            _ => false,
        };
        if let Some((name, _)) = object.iter().find(|(name, _)| !known(name)) {
            return Err(InputFault::UnknownField(name.to_string()));
        }
        let version = version(value("schemaVersion"))?;
        let kind = text(value("type"))?;
        let content = text(value("content"))?.unwrap_or_default();
        let role = text(value("role"))?;
        let images = images(value("images"))?;
        if version != i64::try_from(SCHEMA_VERSION).unwrap_or_default() {
            return Err(InputFault::Version);
        }
        if content.trim().is_empty() && images.is_empty() {
            return Err(InputFault::Content);
        }
        match kind.as_deref() {
            Some("prompt") => Ok(Input::Prompt { content }),
            Some("message") if role.as_deref() == Some("user") => {
                Ok(Input::Message { content, images })
            }
            Some("message") => Err(InputFault::Role),
            _ => Err(InputFault::Type),
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"schemaVersion\":2,\"type\":");
        match self {
            Input::Prompt { content } => {
                out.extend_from_slice(b"\"prompt\",\"content\":");
                content.put(out);
            }
            Input::Message { content, images } => {
                out.extend_from_slice(b"\"message\",\"role\":\"user\",\"content\":");
                content.put(out);
                if !images.is_empty() {
                    out.extend_from_slice(b",\"images\":");
                    images.put(out);
                }
            }
        }
        out.push(b'}');
    }

    /// Its text.
    pub fn content(&self) -> &str {
        match self {
            Input::Prompt { content } | Input::Message { content, .. } => content,
        }
    }

    /// Its pictures.
    pub fn images(&self) -> &[Image<'a>] {
        match self {
            Input::Prompt { .. } => &[],
            Input::Message { images, .. } => images,
        }
    }
}
