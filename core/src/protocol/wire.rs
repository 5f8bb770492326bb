//! What the wire types of all protocols have in common: values that encoders write between constant bytes, the tag that
//! names a line's type, and why a line can't be read.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::json::{self, DecodeError, JsonFault, Kind, Lazy, Object, Raw, Str};

/// A value that stands between constant bytes.
pub(in crate::protocol) trait Hole {
    /// Appends the value as JSON.
    fn put(&self, out: &mut Vec<u8>);
    /// Whether the whole member is left out.
    fn is_absent(&self) -> bool {
        false
    }
}

impl Hole for Cow<'_, str> {
    fn put(&self, out: &mut Vec<u8>) {
        json::write_str(out, self);
    }
}

impl Hole for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        json::write_u64(out, *self);
    }
}

impl Hole for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

/// `null` where there is none.
impl<T: Hole> Hole for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.put(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl Hole for Raw<'_> {
    /// A value is copied as it was written, on one line.
    fn put(&self, out: &mut Vec<u8>) {
        json::write_raw(out, *self);
    }
}

impl Hole for Lazy<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.write(out);
    }
}

impl Hole for Str<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        json::write_str(out, self);
    }
}

impl<T: Hole> Hole for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
}

impl<T: Hole> Hole for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, item) in self.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            item.put(out);
        }
        out.push(b']');
    }
}

/// Why a line isn't one of the contract's. One rule of `check` each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireFault {
    /// It isn't a JSON object, or not a strict one (duplicate members, bad UTF-8, half surrogates, too deep).
    Json(JsonFault),
    /// The member that names the line's kind is missing.
    NoTag(&'static str),
    /// The member that names the line's kind isn't a string.
    TagKind {
        /// The member.
        tag: &'static str,
        /// What it is.
        found: Kind,
    },
    /// A field is missing or mistyped.
    Fields(DecodeError),
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireFault::Json(fault) => fault.fmt(f),
            WireFault::NoTag(name) => write!(f, "missing field `{name}`"),
            WireFault::TagKind { tag, found } => write!(
                f,
                "invalid type: {}, expected a string in `{tag}`",
                kind_name(*found)
            ),
            WireFault::Fields(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for WireFault {}

/// The string that names the type of a line.
///
/// # Errors
/// [`WireFault`] when it is missing, or isn't a string.
pub(in crate::protocol) fn tag<'a>(
    object: &Object<'_, 'a>,
    name: &'static str,
) -> Result<Cow<'a, str>, WireFault> {
    if let Some(tag) = object.string(name) {
        return Ok(tag);
    }
    let value = object.get(name).ok_or(WireFault::NoTag(name))?;
    value.string().ok_or_else(|| WireFault::TagKind {
        tag: name,
        found: value.kind(),
    })
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}
