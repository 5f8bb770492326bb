//! What a scan leaves: an object's members, and values as text.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use core::fmt;
use core::ops::Deref;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};

use super::de::{self, Cursor};
use super::error::DecodeError;
use super::members::Members;
use super::text::unescape;

/// A scanned top-level object: its line and its members.
#[derive(Clone, Copy)]
pub struct Object<'m, 'a> {
    text: &'a str,
    /// Where it begins in the text.
    start: usize,
    members: &'m Members,
}

impl<'m, 'a: 'm> Object<'m, 'a> {
    pub(super) const fn new(text: &'a str, start: usize, members: &'m Members) -> Self {
        Self {
            text,
            start,
            members,
        }
    }

    /// The whole line as it was given.
    pub const fn line(&self) -> &'a str {
        self.text
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A number that two objects of one [`Members`] share only if their members have the same names in the same
    /// order. The reverse needn't hold: it is found cheaply, for lines that follow each other and resemble each other.
    pub fn shape(&self) -> u64 {
        self.members.shape()
    }

    /// The value of the member of this name, however the name is spelled. Where a scan let several of one name pass
    /// ([`Duplicates::Pass`](super::Duplicates::Pass)), the first; a web browser would take the last.
    pub fn get(&self, name: &str) -> Option<Raw<'a>> {
        let value = self.members.find(self.text, name)?;
        self.text.get(value.start..value.end).map(Raw)
    }

    /// The string that the member of this name is (of several, the first, as with [`get`](Self::get)); lent if it
    /// has no escapes. `None` if there is no such member, or it is of another type.
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        let value = self.members.find(self.text, name)?;
        if value.plain {
            return self
                .text
                .get(value.start + 1..value.end - 1)
                .map(Cow::Borrowed);
        }
        self.text.get(value.start..value.end).map(Raw)?.string()
    }

    /// The members in the order of the text; names decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&'m str, Raw<'a>)> + use<'m, 'a> {
        let (text, members) = (self.text, self.members);
        (0..members.len()).filter_map(move |index| {
            let (name, value) = members.get(text, index)?;
            Some((name.as_str(), Raw(text.get(value.start..value.end)?)))
        })
    }

    /// Decodes the object. Strings are lent from the line where they have no
    /// escapes; see [`Str`] for how to keep that within `Option` and `Vec`.
    ///
    /// # Errors
    /// [`DecodeError`], with its place in the line.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, DecodeError> {
        T::deserialize(de::Top::new(self.text, self.start, self.members))
            .map_err(|error| error.located(self.text))
    }
}

impl fmt::Debug for Object<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(name, value)| (name, value.0)))
            .finish()
    }
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One JSON value as text: scanned, not decoded. Without white space around
/// it; within, it is as it was written, every digit and escape.
///
/// As a field of a type that is decoded it takes any value, `null` too. It can
/// only be decoded from this module's own scans.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// `null`
    pub const NULL: Raw<'static> = Raw("null");

    /// A text that was scanned, or that this crate's own encoders wrote.
    pub(crate) const fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Its type.
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(_) | None => Kind::Null,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The string that it is; lent if it has no escapes. `None` for a value of
    /// another type.
    pub fn string(self) -> Option<Cow<'a, str>> {
        if let Some(text) = self.plain() {
            return Some(Cow::Borrowed(text));
        }
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        Some(Cow::Owned(unescape(inner)))
    }

    /// The string that it is, if that has no escapes.
    pub(super) fn plain(self) -> Option<&'a str> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        memchr::memchr(b'\\', inner.as_bytes())
            .is_none()
            .then_some(inner)
    }

    /// The number it is, if it is one without fraction that fits.
    pub fn u64(self) -> Option<u64> {
        self.0.parse().ok().filter(|_| self.kind() == Kind::Number)
    }

    /// `true` or `false`, if it is one of them.
    pub fn bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The value of a member of the object that it is, without decoding the
    /// others. `None` if it has none of this name, or isn't an object.
    pub fn get(self, name: &str) -> Option<Raw<'a>> {
        let mut cursor = Cursor::new(self.0);
        cursor.members(|found, value| (found == name).then_some(value))
    }

    /// As [`get`](Self::get); of several members of this name the last, which is what a web browser takes.
    pub fn get_last(self, name: &str) -> Option<Raw<'a>> {
        let mut last = None;
        let mut cursor = Cursor::new(self.0);
        cursor.members(|found, value| {
            if found == name {
                last = Some(value);
            }
            None::<()>
        });
        last
    }

    /// Gives each member of the object that it is, in order; those whose name comes twice, too. Nothing for a value of
    /// another type.
    pub fn each_member(self, mut visit: impl FnMut(&str, Raw<'a>)) {
        Cursor::new(self.0).members(|name, value| {
            visit(name, value);
            None::<()>
        });
    }

    /// Decodes it, as [`Object::decode`] does.
    ///
    /// # Errors
    /// [`DecodeError`], with its place in this text.
    pub fn decode<T: Deserialize<'a>>(self) -> Result<T, DecodeError> {
        T::deserialize(&mut Cursor::new(self.0)).map_err(|error| error.located(self.0))
    }
}

/// `null`
impl Default for Raw<'_> {
    fn default() -> Self {
        Self::NULL
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The name by which our deserializer knows that text is asked for.
pub(super) const RAW: &str = "$turnwire::json::Raw";

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Raw<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any JSON value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
                Ok(Raw(text))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                _: D,
            ) -> Result<Raw<'de>, D::Error> {
                Err(D::Error::custom(
                    "a raw value can be decoded from scanned text only",
                ))
            }
        }
        deserializer.deserialize_newtype_struct(RAW, Text)
    }
}

/// A decoded string that is lent from the line where it has no escapes.
///
/// The same as `Cow<'a, str>` with `#[serde(borrow)]`, which serde heeds only
/// where the field is a `Cow` itself; this one is lent within `Option`, `Vec`
/// and maps, too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Str<'a>(pub Cow<'a, str>);

impl Str<'_> {
    /// The text as an owned string.
    pub fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Str<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for Str<'_> {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Str<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl<'a> From<&'a str> for Str<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Str<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Str<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Str<'de>, E> {
                Ok(Str(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
