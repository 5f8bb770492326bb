//! What a person says: a text. Newer programs say parts instead, pictures among them; those are read (section
//! [`Shapes`](super::Shapes)), and this side never begins with them.

use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error};

use super::values::lazy;
use crate::json::{self, Kind, Lazy, Raw, Str};
use crate::protocol::member::required;
use crate::protocol::spec::FieldKind;
use crate::protocol::wire::Hole;

/// What a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content<'a>(Form<'a>);

/// Never one part that is a text: that is a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form<'a> {
    Text(Lazy<'a>),
    Parts(Vec<Part<'a>>),
}

/// A part of what a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// `text`
    Text(Lazy<'a>),
    /// `image`
    Image {
        /// Its MIME type.
        media_type: Str<'a>,
        /// It, in base64.
        data: Lazy<'a>,
    },
}

impl<'a> Content<'a> {
    /// A text.
    pub fn text(text: impl Into<Lazy<'a>>) -> Self {
        Content(Form::Text(text.into()))
    }

    /// Parts, as newer programs write them. A text alone is one.
    pub fn parts(mut parts: Vec<Part<'a>>) -> Self {
        match parts.pop() {
            Some(Part::Text(text)) if parts.is_empty() => Content(Form::Text(text)),
            last => {
                parts.extend(last);
                Content(Form::Parts(parts))
            }
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Form::Text(text) => Some(text),
            Form::Parts(_) => None,
        }
    }

    /// The parts, if it isn't a text.
    pub fn as_parts(&self) -> Option<&[Part<'a>]> {
        match &self.0 {
            Form::Text(_) => None,
            Form::Parts(parts) => Some(parts),
        }
    }

    /// What a value says.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub(super) fn of(value: Raw<'a>) -> Result<Self, &'static str> {
        match value.kind() {
            Kind::String => Ok(Content::text(lazy(value).unwrap_or_default())),
            Kind::Array => {
                let parts: Vec<Raw<'a>> = value.decode().map_err(|_| EXPECTED)?;
                let parts: Result<_, _> = parts.into_iter().map(Part::of).collect();
                parts.map(Content::parts)
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::Object => Err(EXPECTED),
        }
    }
}

const EXPECTED: &str = "expected a string or an array of parts";

impl<'a> Part<'a> {
    fn of(value: Raw<'a>) -> Result<Self, &'static str> {
        let text = |name| value.get_last(name).and_then(lazy);
        match text("type").as_deref() {
            Some("text") => text("text")
                .map(Part::Text)
                .ok_or("expected a string \"text\" field"),
            Some("image") => {
                let media_type = text("media_type").map(|word| Str(word.into_cow()));
                let parts = media_type.zip(text("data"));
                let image = parts.map(|(media_type, data)| Part::Image { media_type, data });
                image.ok_or("expected string \"media_type\" and \"data\" fields")
            }
            Some(_) | None => Err("expected parts of type text or image"),
        }
    }

    /// The picture of a data URL, which is how some programs spell it.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub(super) fn of_data_url(value: Raw<'a>) -> Result<Self, &'static str> {
        let split = |url: &str| {
            let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
            Some((media_type.into(), data.into()))
        };
        let found: Option<(alloc::string::String, alloc::string::String)> =
            value.string().and_then(|url| split(&url));
        let (media_type, data) = found.ok_or("expected images as data URLs")?;
        Ok(Part::Image {
            media_type: Str(media_type.into()),
            data: data.into(),
        })
    }
}

/// An empty text.
impl Default for Content<'_> {
    fn default() -> Self {
        Content::text("")
    }
}

impl<'a> From<&'a str> for Content<'a> {
    fn from(text: &'a str) -> Self {
        Content::text(text)
    }
}

impl<'a> Deserialize<'a> for Content<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        Content::of(Raw::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Hole for Content<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Text(text) => text.put(out),
            Form::Parts(parts) => parts.put(out),
        }
    }
}

impl Hole for Part<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Part::Text(text) => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
                text.put(out);
            }
            Part::Image { media_type, data } => {
                out.extend_from_slice(b"{\"type\":\"image\",\"media_type\":");
                json::write_str(out, media_type);
                out.extend_from_slice(b",\"data\":");
                data.put(out);
            }
        }
        out.push(b'}');
    }
}

required! { Content<'a> = FieldKind::Text }
