//! Strings that are decoded when they are asked for.

use alloc::borrow::Cow;
use alloc::string::String;
use core::cell::OnceCell;
use core::fmt;
use core::ops::Deref;
use serde::de::{Deserialize, Deserializer, Visitor};

use super::raw::Raw;
use super::text::{each_part, unescape};
use super::write::{write_raw, write_str};

/// A string of a line that keeps its escapes until it is read: for the bodies
/// of lines (texts, outputs, diffs), which whoever sorts, counts or passes
/// lines on never looks into.
///
/// It reads as a `str`. The first look decodes it, and keeps the result; a
/// string without escapes is lent from the line and never copied. Written
/// again unread, it is written as it came.
#[derive(Clone)]
pub struct Lazy<'a>(Form<'a>);

#[derive(Clone)]
enum Form<'a> {
    /// Text without escapes, or text of ours.
    Plain(Cow<'a, str>),
    /// As it stands in the line, between its quotes; scanned.
    Escaped {
        quoted: Raw<'a>,
        read: OnceCell<String>,
    },
}

impl<'a> Lazy<'a> {
    /// A scanned string, quotes and all, that has escapes.
    fn escaped(quoted: Raw<'a>) -> Self {
        Self(Form::Escaped {
            quoted,
            read: OnceCell::new(),
        })
    }

    /// The number of bytes of the text, as UTF-8. Decodes nothing.
    #[allow(clippy::len_without_is_empty, reason = "`str` has it, through `Deref`")]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Plain(text) => text.len(),
            Form::Escaped { quoted, read } => match read.get() {
                Some(text) => text.len(),
                None => decoded_len(*quoted),
            },
        }
    }

    /// The text; lent from the line where it has no escapes.
    pub fn into_cow(self) -> Cow<'a, str> {
        match self.0 {
            Form::Plain(text) => text,
            Form::Escaped { quoted, read } => {
                Cow::Owned(read.into_inner().unwrap_or_else(|| decoded(quoted)))
            }
        }
    }

    /// The text as an owned string.
    pub fn into_string(self) -> String {
        self.into_cow().into_owned()
    }

    /// Appends it as a JSON string on one line.
    pub fn write(&self, out: &mut alloc::vec::Vec<u8>) {
        match &self.0 {
            Form::Plain(text) => write_str(out, text),
            Form::Escaped { quoted, .. } if !may_hold_surrogates(quoted.as_str()) => {
                out.extend_from_slice(quoted.as_str().as_bytes());
            }
            Form::Escaped { quoted, .. } => write_raw(out, *quoted),
        }
    }
}

/// Whether there may be an escaped surrogate, which could be half a pair and need mending.
fn may_hold_surrogates(quoted: &str) -> bool {
    let found = |escape: &str| memchr::memmem::find(quoted.as_bytes(), escape.as_bytes()).is_some();
    found("\\ud") || found("\\uD")
}

fn decoded(quoted: Raw<'_>) -> String {
    unescape(inner(quoted))
}

fn decoded_len(quoted: Raw<'_>) -> usize {
    let mut length = 0;
    each_part(inner(quoted), |part| length += part.len());
    length
}

/// What stands between the quotes.
fn inner(quoted: Raw<'_>) -> &str {
    let inner = quoted.as_str().strip_prefix('"');
    inner
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or_default()
}

impl Deref for Lazy<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            Form::Plain(text) => text,
            Form::Escaped { quoted, read } => read.get_or_init(|| decoded(*quoted)),
        }
    }
}

impl AsRef<str> for Lazy<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

/// Empty.
impl Default for Lazy<'_> {
    fn default() -> Self {
        "".into()
    }
}

impl fmt::Debug for Lazy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Lazy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq for Lazy<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Lazy<'_> {}

impl PartialEq<str> for Lazy<'_> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Lazy<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl<'a> From<&'a str> for Lazy<'a> {
    fn from(text: &'a str) -> Self {
        Self(Form::Plain(Cow::Borrowed(text)))
    }
}

impl From<String> for Lazy<'_> {
    fn from(text: String) -> Self {
        Self(Form::Plain(Cow::Owned(text)))
    }
}

impl<'a> From<Cow<'a, str>> for Lazy<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Form::Plain(text))
    }
}

/// The name by which our deserializer knows that a string may stay as it is:
/// one without escapes is visited as its text, one with escapes as its whole
/// spelling, quotes and all.
pub(super) const LAZY: &str = "$turnwire::json::Lazy";

impl<'de: 'a, 'a> Deserialize<'de> for Lazy<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Lazy<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Lazy<'de>, E> {
                // Text without escapes holds no quote, so one in front is the spelling's own.
                Ok(if text.starts_with('"') {
                    Lazy::escaped(Raw::trusted(text))
                } else {
                    text.into()
                })
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Lazy<'de>, D::Error> {
                String::deserialize(deserializer).map(Lazy::from)
            }
        }
        deserializer.deserialize_newtype_struct(LAZY, Text)
    }
}
