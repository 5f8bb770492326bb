//! serde's `Deserializer` over text that was scanned.
//!
//! The scan has checked the grammar, so nothing is checked twice here. Should
//! text get here that wasn't scanned, the answers may be odd, but every
//! function comes to an end and none panics.

use alloc::borrow::Cow;
use core::num::IntErrorKind;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor, value::BorrowedStrDeserializer,
};
use serde::forward_to_deserialize_any;

use super::error::DecodeError;
use super::lazy::LAZY;
use super::members::{Members, NameText, Value};
use super::raw::{RAW, Raw};
use super::text::{find_stop, read_escape, skip_space, unescape};
use super::variant::{NotAVariant, Variant};

type Result<T> = core::result::Result<T, DecodeError>;

/// A top-level object, from its scanned members.
pub(super) struct Top<'m, 'a> {
    text: &'a str,
    start: usize,
    members: &'m Members,
}

impl<'m, 'a> Top<'m, 'a> {
    pub(super) const fn new(text: &'a str, start: usize, members: &'m Members) -> Self {
        Self {
            text,
            start,
            members,
        }
    }
}

impl<'de> Deserializer<'de> for Top<'_, 'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut map = TopMembers {
            text: self.text,
            members: self.members,
            next: 0,
            value: None,
        };
        let value = visitor
            .visit_map(&mut map)
            .map_err(|error| error.or_at(self.start))?;
        match self.members.get(self.text, map.next) {
            Some((_, more)) => Err(more_than_asked(more.start)),
            None => Ok(value),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name == RAW {
            return visitor.visit_borrowed_str(self.text.trim_matches([' ', '\t', '\n', '\r']));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let mut cursor = Cursor {
            text: self.text,
            at: self.start,
        };
        (&mut cursor).deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier
    }
}

struct TopMembers<'m, 'a> {
    text: &'a str,
    members: &'m Members,
    next: usize,
    value: Option<Value>,
}

impl<'de> MapAccess<'de> for TopMembers<'_, 'de> {
    type Error = DecodeError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((name, value)) = self.members.get(self.text, self.next) else {
            return Ok(None);
        };
        self.next += 1;
        self.value = Some(value);
        let key = match name {
            NameText::Borrowed(name) => seed.deserialize(Key(Cow::Borrowed(name))),
            NameText::Decoded(name) => seed.deserialize(Key(Cow::Owned(name.into()))),
        };
        key.map(Some).map_err(|error| error.or_at(value.start))
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        let value = self
            .value
            .take()
            .ok_or_else(|| DecodeError::custom("a value was asked for before its name"))?;
        seed.deserialize(Member {
            text: self.text,
            value,
        })
        .map_err(|error| error.or_at(value.start))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len().saturating_sub(self.next))
    }
}

/// The value of a top-level member, whose span is known.
struct Member<'a> {
    text: &'a str,
    value: Value,
}

impl<'a> Member<'a> {
    fn cursor(&self) -> Cursor<'a> {
        Cursor {
            text: self.text,
            at: self.value.start,
        }
    }

    fn span(&self) -> &'a str {
        self.text
            .get(self.value.start..self.value.end)
            .unwrap_or_default()
    }

    /// The content of a string without escapes.
    #[inline]
    fn plain(&self) -> Option<&'a str> {
        if self.value.plain {
            self.text.get(self.value.start + 1..self.value.end - 1)
        } else {
            None
        }
    }

    /// The content of a string with escapes, as it is spelled.
    fn escaped(&self) -> Option<&'a str> {
        self.span().strip_prefix('"')?.strip_suffix('"')
    }
}

macro_rules! to_cursor {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.cursor().$method(visitor)
        }
    )*};
}

macro_rules! string_first {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if let Some(text) = self.plain() {
                return visitor.visit_borrowed_str(text);
            }
            match self.escaped() {
                Some(inner) => visitor.visit_string(unescape(inner)),
                None => self.cursor().deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Member<'de> {
    type Error = DecodeError;

    string_first! { deserialize_any deserialize_str deserialize_string deserialize_char deserialize_identifier }

    to_cursor! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_seq deserialize_map
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.span() == "null" {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name == RAW {
            return visitor.visit_borrowed_str(self.span());
        }
        if name == LAZY {
            return match self.plain() {
                Some(text) => visitor.visit_borrowed_str(text),
                None if self.span().starts_with('"') => visitor.visit_borrowed_str(self.span()),
                None => self.cursor().deserialize_any(visitor),
            };
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.plain() {
            Some(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            None => self.cursor().deserialize_enum(name, variants, visitor),
        }
    }
}

/// A member's name.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = DecodeError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_string(name),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A place in scanned text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// The next byte that isn't white space.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        self.at = skip_space(self.bytes(), self.at);
        self.peek()
    }

    /// The index after the string at `at`, and whether it has an escape.
    #[inline]
    fn string_end(&self, at: usize) -> (usize, bool) {
        let (mut at, mut escaped) = (at + 1, false);
        loop {
            at = find_stop::<false>(self.bytes(), at);
            match self.bytes().get(at) {
                Some(b'\\') => {
                    escaped = true;
                    at = read_escape(self.bytes(), at).1.max(at + 1);
                }
                Some(b'"') => return (at + 1, escaped),
                Some(_) => at += 1,
                None => return (at, escaped),
            }
        }
    }

    /// Takes the string here.
    #[inline]
    fn string(&mut self) -> Cow<'a, str> {
        let (end, escaped) = self.string_end(self.at);
        let inner = self
            .text
            .get(self.at + 1..end.saturating_sub(1))
            .unwrap_or_default();
        self.at = end;
        if escaped {
            Cow::Owned(unescape(inner))
        } else {
            Cow::Borrowed(inner)
        }
    }

    /// Takes a number or a literal.
    fn scalar(&mut self) -> &'a str {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.')
        ) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Takes the value here as text.
    fn skip(&mut self) -> &'a str {
        let start = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.at = self.string_end(self.at).0,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                _ if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ if self.scalar().is_empty() => self.at += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Visits the members of the object here until `visit` gives something.
    pub(super) fn members<T>(
        &mut self,
        mut visit: impl FnMut(&str, Raw<'a>) -> Option<T>,
    ) -> Option<T> {
        if self.token() != Some(b'{') {
            return None;
        }
        self.at += 1;
        while self.token() == Some(b'"') {
            let name = self.string();
            self.token();
            self.at += 1;
            self.token();
            let value = self.skip();
            if let Some(found) = visit(&name, Raw::trusted(value)) {
                return Some(found);
            }
            if self.token() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        None
    }

    /// Takes a number and shows it in the smallest type that holds it.
    fn number<V: Visitor<'a>>(&mut self, visitor: V, wanted: Wanted) -> Result<V::Value> {
        let at = self.at;
        let text = self.scalar();
        let is_integer = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        if is_integer && wanted != Wanted::Float {
            match (text.parse::<u64>(), text.starts_with('-')) {
                (Ok(number), _) => return visitor.visit_u64(number),
                (Err(_), true) => match text.parse::<i64>() {
                    // No integer keeps its sign; a field that wants one gets 0.
                    Ok(0) if wanted != Wanted::Integer => return visitor.visit_f64(-0.0),
                    Ok(number) => return visitor.visit_i64(number),
                    Err(error) if *error.kind() == IntErrorKind::NegOverflow => {}
                    Err(_) => return Err(DecodeError::mismatch(at, "a number", text)),
                },
                (Err(_), false) => {}
            }
            if wanted == Wanted::Integer {
                return Err(DecodeError::mismatch(at, "an integer in range", text));
            }
        }
        match text.parse::<f64>() {
            Ok(number) if wanted == Wanted::Integer => Err(DecodeError::invalid_type(
                Unexpected::Float(number),
                &visitor,
            )),
            Ok(number) if number.is_finite() => visitor.visit_f64(number),
            _ => Err(DecodeError::mismatch(at, "a number in range", text)),
        }
    }

    /// Takes the value here, whatever its type.
    fn any<V: Visitor<'a>>(&mut self, visitor: V, wanted: Wanted) -> Result<V::Value> {
        let start = {
            self.token();
            self.at
        };
        let result = match self.peek() {
            Some(b'"') => match self.string() {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            Some(b'{') => self.container(|cursor, done| {
                visitor.visit_map(Elements {
                    cursor,
                    first: true,
                    done,
                })
            }),
            Some(b'[') => self.container(|cursor, done| {
                visitor.visit_seq(Elements {
                    cursor,
                    first: true,
                    done,
                })
            }),
            Some(b'-' | b'0'..=b'9') => self.number(visitor, wanted),
            _ => match self.scalar() {
                "null" => visitor.visit_unit(),
                "true" => visitor.visit_bool(true),
                "false" => visitor.visit_bool(false),
                _ => Err(DecodeError::mismatch(
                    start,
                    "a JSON value",
                    "something else",
                )),
            },
        };
        result.map_err(|error| error.or_at(start))
    }

    /// Visits an object or array and goes on after it. What the visitor didn't
    /// ask for isn't dropped in silence.
    fn container<T>(&mut self, visit: impl FnOnce(&mut Self, &mut bool) -> Result<T>) -> Result<T> {
        self.at += 1;
        let mut done = false;
        let value = visit(self, &mut done)?;
        if !done {
            if !matches!(self.token(), Some(b'}' | b']')) {
                return Err(more_than_asked(self.at));
            }
            self.at += 1;
        }
        Ok(value)
    }
}

fn more_than_asked(at: usize) -> DecodeError {
    DecodeError::mismatch(at, "no more elements", "another one")
}

/// The kind of number that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Any,
    Integer,
    Float,
}

/// The elements of an array, or the members of an object.
pub(super) struct Elements<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    first: bool,
    done: &'c mut bool,
}

impl Elements<'_, '_> {
    /// Whether there is another one; stands before it then.
    #[inline]
    pub(super) fn more(&mut self) -> bool {
        if *self.done {
            return false;
        }
        match self.cursor.token() {
            Some(b'}' | b']') | None => {
                self.cursor.at += 1;
                *self.done = true;
                return false;
            }
            Some(b',') if !self.first => {
                self.cursor.at += 1;
                self.cursor.token();
            }
            Some(_) => {}
        }
        self.first = false;
        true
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if !self.more() {
            return Ok(None);
        }
        let at = self.cursor.at;
        seed.deserialize(&mut *self.cursor)
            .map(Some)
            .map_err(|error| error.or_at(at))
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.more() {
            return Ok(None);
        }
        let at = self.cursor.at;
        let name = self.cursor.string();
        seed.deserialize(Key(name))
            .map(Some)
            .map_err(|error| error.or_at(at))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        if self.cursor.token() == Some(b':') {
            self.cursor.at += 1;
        }
        self.cursor.token();
        let at = self.cursor.at;
        seed.deserialize(&mut *self.cursor)
            .map_err(|error| error.or_at(at))
    }
}

macro_rules! any_as {
    ($wanted:ident: $($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.any(visitor, Wanted::$wanted)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Cursor<'de> {
    type Error = DecodeError;

    any_as! { Any: deserialize_any deserialize_bool deserialize_char deserialize_str deserialize_string
    deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_seq deserialize_map deserialize_identifier }
    any_as! { Integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
    deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    any_as! { Float: deserialize_f32 deserialize_f64 }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.token();
        let start = self.at;
        match self.skip().parse() {
            Ok(number) => visitor.visit_i128(number),
            Err(_) => {
                self.at = start;
                self.any(visitor, Wanted::Integer)
            }
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.token();
        let start = self.at;
        match self.skip().parse() {
            Ok(number) => visitor.visit_u128(number),
            Err(_) => {
                self.at = start;
                self.any(visitor, Wanted::Integer)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.token() == Some(b'n') {
            self.skip();
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name == RAW {
            self.token();
            return visitor.visit_borrowed_str(self.skip());
        }
        if name == LAZY && self.token() == Some(b'"') {
            let quoted = Raw::trusted(self.skip());
            return visitor.visit_borrowed_str(quoted.plain().unwrap_or(quoted.as_str()));
        }
        if name == LAZY {
            return self.deserialize_str(visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.token();
        self.skip();
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let start = {
            self.token();
            self.at
        };
        let result = match self.peek() {
            Some(b'"') => match self.string() {
                Cow::Borrowed(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
                Cow::Owned(text) => visitor.visit_enum(text.into_deserializer()),
            },
            Some(b'{') => self.container(|cursor, done| {
                visitor.visit_enum(Variant {
                    elements: Elements {
                        cursor,
                        first: true,
                        done,
                    },
                })
            }),
            _ => return self.any(NotAVariant(visitor), Wanted::Any),
        };
        result.map_err(|error| error.or_at(start))
    }
}
