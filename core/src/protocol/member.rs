//! What the wire types are made of: members that may be absent, null or of any type, unknown members, and the macros
//! that make a type, its reader and its writer from one table.
//!
//! Contracts grow without changing their number, so nothing that a reader doesn't know is dropped: each object keeps
//! the members that it has no field for in its [`Rest`]. Of a member that comes twice the last one counts, as in
//! programs that run on JavaScript; where that is no answer, the scan has refused the line before.

mod content;
mod value;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Unexpected, Visitor};

use crate::json::{self, Kind, Lazy, Object, Raw, Str};
use crate::protocol::spec::{Field, FieldKind};
use crate::protocol::wire::Hole;

pub use content::TextOr;
pub use value::{Map, Num};

/// The members of an object that its type has no field for, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest<'a>(pub Vec<(Str<'a>, Raw<'a>)>);

impl<'a> Rest<'a> {
    /// The value of the last member of this name.
    pub fn get(&self, name: &str) -> Option<Raw<'a>> {
        let mut members = self.0.iter().rev();
        members
            .find(|(found, _)| *found == name)
            .map(|(_, value)| *value)
    }

    pub(in crate::protocol) fn push(&mut self, name: Str<'a>, value: Raw<'a>) {
        self.0.push((name, value));
    }

    pub(in crate::protocol) fn put_members(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            comma(out);
            json::write_str(out, name);
            out.push(b':');
            json::write_raw(out, *value);
        }
    }
}

/// A member that may have any value, `null` too, or not be there at all: an id, a payload, an argument that is
/// validated later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Any<'a>(pub Option<Raw<'a>>);

impl<'a> Any<'a> {
    /// It isn't there.
    pub const ABSENT: Any<'static> = Any(None);

    /// Its value; `None` if it isn't there.
    pub const fn get(self) -> Option<Raw<'a>> {
        self.0
    }

    /// The string that it is.
    pub fn string(self) -> Option<Cow<'a, str>> {
        self.0?.string()
    }

    /// The bool that it is.
    pub fn bool(self) -> Option<bool> {
        self.0?.bool()
    }

    /// As JavaScript prints it in a text: `undefined` if it isn't there, a string without its quotes.
    pub fn shown(self) -> Cow<'a, str> {
        match self.0 {
            None => "undefined".into(),
            Some(value) => value.string().unwrap_or(Cow::Borrowed(value.as_str())),
        }
    }
}

impl<'a> From<Raw<'a>> for Any<'a> {
    fn from(value: Raw<'a>) -> Self {
        Any(Some(value))
    }
}

impl Hole for Any<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl<'a> Deserialize<'a> for Any<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(Any::from)
    }
}

/// What should name something, and may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tag<'a> {
    /// It isn't there.
    #[default]
    Absent,
    /// A name.
    Name(Str<'a>),
    /// Another value.
    Other(Raw<'a>),
}

impl<'a> Tag<'a> {
    pub(in crate::protocol) fn of(value: Option<Raw<'a>>) -> Self {
        match value {
            None => Tag::Absent,
            Some(value) => match value.string() {
                Some(name) => Tag::Name(Str(name)),
                None => Tag::Other(value),
            },
        }
    }

    /// The name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Tag::Name(name) => Some(name),
            Tag::Absent | Tag::Other(_) => None,
        }
    }

    /// As JavaScript prints it in a text.
    pub fn shown(&self) -> &str {
        match self {
            Tag::Absent => "undefined",
            Tag::Name(name) => name,
            Tag::Other(value) => value.as_str(),
        }
    }

    pub(in crate::protocol) fn is_absent(&self) -> bool {
        matches!(self, Tag::Absent)
    }
}

impl Hole for Tag<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Tag::Absent => {}
            Tag::Name(name) => name.put(out),
            Tag::Other(value) => value.put(out),
        }
    }
}

impl<'a> Deserialize<'a> for Tag<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(|value| Tag::of(Some(value)))
    }
}

impl<'a> From<&'a str> for Tag<'a> {
    fn from(name: &'a str) -> Self {
        Tag::Name(name.into())
    }
}

/// The value of the last member of this name.
pub(in crate::protocol) fn last<'a>(object: &Object<'_, 'a>, name: &str) -> Option<Raw<'a>> {
    let mut found = None;
    for (member, value) in object.iter() {
        if member == name {
            found = Some(value);
        }
    }
    found
}

/// A member that is always there, and may be `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nullable<T>(pub Option<T>);

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Nullable<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Nullable)
    }
}

impl<T: Hole> Hole for Nullable<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

/// A member that may be absent, `null`, or a value, where the three differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Maybe<T> {
    /// It isn't there.
    #[default]
    Absent,
    /// It is `null`.
    Null,
    /// It has a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// The value, if it has one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Maybe::Value(value) => Some(value),
            Maybe::Absent | Maybe::Null => None,
        }
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Maybe<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Maybe::Null, Maybe::Value))
    }
}

impl<T: Hole> Hole for Maybe<T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Maybe::Value(value) => value.put(out),
            Maybe::Absent | Maybe::Null => Raw::NULL.put(out),
        }
    }
}

/// A value of a list that may hold others: what isn't a `T` is kept as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept<'a, T> {
    /// What the contract says.
    Known(T),
    /// Anything else: from a newer program, or a mark that something was elided here.
    Other(Raw<'a>),
}

impl<T> Kept<'_, T> {
    /// The value, if it is what the contract says.
    pub fn known(&self) -> Option<&T> {
        match self {
            Kept::Known(value) => Some(value),
            Kept::Other(_) => None,
        }
    }
}

/// What the contract says, empty.
impl<T: Default> Default for Kept<'_, T> {
    fn default() -> Self {
        Kept::Known(T::default())
    }
}

impl<T> From<T> for Kept<'_, T> {
    fn from(value: T) -> Self {
        Kept::Known(value)
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Kept<'a, T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        Ok(value.decode().map_or(Kept::Other(value), Kept::Known))
    }
}

impl<T: Hole> Hole for Kept<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Kept::Known(value) => value.put(out),
            Kept::Other(value) => value.put(out),
        }
    }
}

/// A member of an object.
pub(in crate::protocol) trait Member<'a>: Sized + Hole {
    /// What stands there, for the contract's page.
    const KIND: FieldKind;

    /// What it is where it isn't there; `None`: it must be.
    fn absent() -> Option<Self> {
        None
    }

    /// Reads it; `None`: a null that this member doesn't have.
    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error>;

    /// Whether it isn't there.
    fn is_absent(&self) -> bool {
        false
    }
}

impl<'a, T: Deserialize<'a> + Member<'a>> Member<'a> for Option<T> {
    const KIND: FieldKind = FieldKind::Maybe(&T::KIND);

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        Ok(map.next_value::<Option<T>>()?.map(Some))
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<'a> Member<'a> for Any<'a> {
    const KIND: FieldKind = FieldKind::Maybe(&FieldKind::Any);

    fn absent() -> Option<Self> {
        Some(Any::ABSENT)
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(Some)
    }

    fn is_absent(&self) -> bool {
        self.0.is_none()
    }
}

impl<'a, T: Deserialize<'a> + Member<'a>> Member<'a> for Maybe<T> {
    const KIND: FieldKind = FieldKind::Maybe(&FieldKind::OrNull(&T::KIND));

    fn absent() -> Option<Self> {
        Some(Maybe::Absent)
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(Some)
    }

    fn is_absent(&self) -> bool {
        matches!(self, Maybe::Absent)
    }
}

/// A name may be anything, so that what isn't one can be echoed.
impl<'a> Member<'a> for Tag<'a> {
    const KIND: FieldKind = FieldKind::Maybe(&FieldKind::Text);

    fn absent() -> Option<Self> {
        Some(Tag::Absent)
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(Some)
    }

    fn is_absent(&self) -> bool {
        matches!(self, Tag::Absent)
    }
}

/// Members that must be there, and what the contract's page says of each.
macro_rules! required {
    ($($ty:ty = $kind:expr),* $(,)?) => { $(
        impl<'a> $crate::protocol::member::Member<'a> for $ty {
            const KIND: $crate::protocol::spec::FieldKind = $kind;

            fn read<A: serde::de::MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                map.next_value().map(Some)
            }
        }
    )* };
}
pub(in crate::protocol) use required;

required! {
    bool = FieldKind::Bool,
    u64 = FieldKind::Count,
    Raw<'a> = FieldKind::Any,
    Str<'a> = FieldKind::Text,
    Lazy<'a> = FieldKind::Text,
    Num<'a> = FieldKind::Num,
}

macro_rules! required_of {
    ($($ty:ty = $kind:expr),*) => { $(
        impl<'a, T: Deserialize<'a> + Member<'a>> Member<'a> for $ty {
            const KIND: FieldKind = $kind;

            fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                map.next_value().map(Some)
            }
        }
    )* };
}

required_of! {
    Vec<T> = FieldKind::List(&T::KIND),
    Nullable<T> = FieldKind::OrNull(&T::KIND),
    Kept<'a, T> = T::KIND,
    Map<'a, T> = FieldKind::Object,
    Box<T> = T::KIND
}

/// An object whose members are known.
pub(in crate::protocol) trait Fields<'a>: Sized {
    /// Reads all of them.
    fn read<A: MapAccess<'a>>(map: A) -> Result<Self, A::Error>;
    /// Appends them, each after a comma where one is needed.
    fn put_members(&self, out: &mut Vec<u8>);
}

/// Reads an object.
pub(in crate::protocol) struct Reader<T>(pub(in crate::protocol) PhantomData<T>);

impl<'a, T: Fields<'a>> Visitor<'a> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<T, A::Error> {
        T::read(map)
    }
}

/// Appends a comma, unless an object has just been opened.
pub(in crate::protocol) fn comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Appends a member's name. `name` needs no escapes.
pub(in crate::protocol) fn key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Says that a value is of the wrong type.
pub(in crate::protocol) fn unlike<E: serde::de::Error>(value: Raw<'_>, expected: &str) -> E {
    let found = match value.kind() {
        Kind::Null => Unexpected::Unit,
        Kind::Bool => Unexpected::Bool(value.bool() == Some(true)),
        Kind::Number => Unexpected::Other("a number"),
        Kind::String => Unexpected::Other("a string"),
        Kind::Array => Unexpected::Seq,
        Kind::Object => Unexpected::Map,
    };
    E::invalid_type(found, &expected)
}

/// Makes types from tables of members: the field, its name in JSON, its type. `without` names the members that the
/// line around it looks after.
macro_rules! objects {
    (without $skip:tt; $(
        $(#[doc = $doc:literal])*
        $name:ident { $( $(#[doc = $field_doc:literal])* $field:ident $json:literal : $ty:ty, )* }
    )*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name<'a> {
            $( #[doc = concat!("`", $json, "`")] $(#[doc = ""] #[doc = $field_doc])* pub $field: $ty, )*
            /// Members that the contract doesn't have.
            pub rest: $crate::protocol::member::Rest<'a>,
        }

        impl<'a> $name<'a> {
            /// What it is.
            #[allow(dead_code)]
            pub(in crate::protocol) const ABOUT: &'static str = concat!($($doc),*);
            /// Its members, in the order of the wire.
            pub(in crate::protocol) const FIELDS: &'static [$crate::protocol::spec::Field] = &[$(
                $crate::protocol::spec::Field {
                    name: $json,
                    kind: <$ty as $crate::protocol::member::Member<'a>>::KIND,
                    about: concat!($($field_doc),*),
                },
            )*];
        }

        impl<'a> $crate::protocol::member::Fields<'a> for $name<'a> {
            fn read<A: serde::de::MapAccess<'a>>(mut map: A) -> Result<Self, A::Error> {
                #[allow(unused_imports)]
                use serde::de::Error as _;
                use $crate::protocol::member::*;
                $( let mut $field: Option<Option<$ty>> = None; )*
                let mut rest = Rest::default();
                while let Some(name) = map.next_key::<$crate::json::Str<'a>>()? {
                    match &*name {
                        $( $json => $field = Some(Member::read(&mut map)?), )*
                        name if { const WITHOUT: &[&str] = &$skip; WITHOUT.contains(&name) } => {
                            map.next_value::<serde::de::IgnoredAny>()?;
                        }
                        _ => rest.push(name, map.next_value()?),
                    }
                }
                Ok($name {
                    $( $field: match $field {
                        Some(Some(value)) => value,
                        found => {
                            let absent = Member::absent().ok_or_else(|| A::Error::missing_field($json))?;
                            if found.is_some() {
                                rest.push($json.into(), $crate::json::Raw::NULL);
                            }
                            absent
                        }
                    }, )*
                    rest,
                })
            }

            fn put_members(&self, out: &mut alloc::vec::Vec<u8>) {
                #[allow(unused_imports)]
                use $crate::protocol::member::{Member, key};
                $(
                    if !Member::is_absent(&self.$field) {
                        key(out, $json);
                        $crate::protocol::wire::Hole::put(&self.$field, out);
                    }
                )*
                self.rest.put_members(out);
            }
        }

        impl<'a> serde::Deserialize<'a> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::protocol::member::Reader(core::marker::PhantomData))
            }
        }

        impl $crate::protocol::wire::Hole for $name<'_> {
            fn put(&self, out: &mut alloc::vec::Vec<u8>) {
                out.push(b'{');
                $crate::protocol::member::Fields::put_members(self, out);
                out.push(b'}');
            }
        }

        $crate::protocol::member::required! {
            $name<'a> = $crate::protocol::spec::FieldKind::Fields($name::<'a>::FIELDS)
        }
    )* };
}
pub(in crate::protocol) use objects;

/// A kind of line: tag, members, meaning.
pub(in crate::protocol) type KindRow = (&'static str, &'static [Field], &'static str);

/// Makes an enum whose variants one member tells apart. A tag that nobody knows is a value.
macro_rules! tagged {
    ($(#[$doc:meta])* $any:ident by $by:literal { $( $variant:ident($body:ident) = $tag:literal, )* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $any<'a> {
            $( #[doc = concat!("`", $tag, "`")] $variant($body<'a>), )*
            /// One that the contract doesn't have, as it came.
            Unknown($crate::json::Raw<'a>),
        }

        /// `null`, which is none of them.
        impl Default for $any<'_> {
            fn default() -> Self {
                $any::Unknown($crate::json::Raw::NULL)
            }
        }

        impl<'a> $any<'a> {
            /// Every tag that is known.
            pub const TAGS: &'static [&'static str] = &[$($tag),*];

            /// The kinds for the contract's page: tag, members, meaning.
            #[allow(dead_code)]
            pub(in crate::protocol) const KINDS: &'static [$crate::protocol::member::KindRow] =
                &[$( ($tag, <$body>::FIELDS, <$body>::ABOUT), )*];

            /// Its tag; `None` for one that isn't known.
            pub fn tag(&self) -> Option<&'static str> {
                match self {
                    $( $any::$variant(_) => Some($tag), )*
                    $any::Unknown(_) => None,
                }
            }

            /// Reads a whole value.
            ///
            /// # Errors
            /// When it lacks a member of its kind, or has one of another type.
            pub fn decode(value: $crate::json::Raw<'a>) -> Result<Self, crate::json::DecodeError> {
                let tag = value.get_last($by).and_then($crate::json::Raw::string);
                match tag.as_deref() {
                    $( Some($tag) => value.decode().map($any::$variant), )*
                    _ => Ok($any::Unknown(value)),
                }
            }

            /// Reads the members of a line whose tag is this one; `None` if it isn't known.
            #[allow(dead_code)]
            pub(in crate::protocol) fn of_line(
                tag: &str,
                line: &crate::json::Object<'_, 'a>,
            ) -> Option<Result<Self, crate::json::DecodeError>> {
                match tag {
                    $( $tag => Some(line.decode().map($any::$variant)), )*
                    _ => None,
                }
            }

            /// Appends the tag and the members, each after a comma where one is needed; nothing for one that isn't known.
            pub(in crate::protocol) fn put_tagged(&self, out: &mut alloc::vec::Vec<u8>) {
                match self {
                    $( $any::$variant(body) => {
                        $crate::protocol::member::key(out, $by);
                        out.extend_from_slice(concat!("\"", $tag, "\"").as_bytes());
                        $crate::protocol::member::Fields::put_members(body, out);
                    } )*
                    $any::Unknown(_) => {}
                }
            }
        }

        $( impl<'a> From<$body<'a>> for $any<'a> {
            fn from(body: $body<'a>) -> Self {
                $any::$variant(body)
            }
        } )*

        impl<'a> serde::Deserialize<'a> for $any<'a> {
            fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                let value = $crate::json::Raw::deserialize(deserializer)?;
                $any::decode(value).map_err(serde::de::Error::custom)
            }
        }

        impl crate::protocol::wire::Hole for $any<'_> {
            fn put(&self, out: &mut alloc::vec::Vec<u8>) {
                if let $any::Unknown(value) = self {
                    return value.put(out);
                }
                out.push(b'{');
                self.put_tagged(out);
                out.push(b'}');
            }
        }

        $crate::protocol::member::required! { $any<'a> = $crate::protocol::spec::FieldKind::Any }
    };
}
pub(in crate::protocol) use tagged;

/// Makes an enum of words. A word that nobody knows is kept.
macro_rules! words {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$word_doc:meta])* $variant:ident $word:literal, )* } )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name<'a> {
            $( #[doc = concat!("`", $word, "`")] $(#[$word_doc])* $variant, )*
            /// A word that the contract doesn't have.
            Other($crate::json::Str<'a>),
        }

        impl<'a> $name<'a> {
            /// The words that are known.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word.
            pub fn as_str(&self) -> &str {
                match self {
                    $( $name::$variant => $word, )*
                    $name::Other(word) => word,
                }
            }
        }

        impl<'a> From<$crate::json::Str<'a>> for $name<'a> {
            fn from(word: $crate::json::Str<'a>) -> Self {
                match &*word {
                    $( $word => $name::$variant, )*
                    _ => $name::Other(word),
                }
            }
        }

        impl<'a> From<&'a str> for $name<'a> {
            fn from(word: &'a str) -> Self {
                $name::from($crate::json::Str::from(word))
            }
        }

        /// The first one.
        impl Default for $name<'_> {
            fn default() -> Self {
                Self::WORDS.first().copied().unwrap_or_default().into()
            }
        }

        impl<'a> serde::Deserialize<'a> for $name<'a> {
            fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::json::Str::deserialize(deserializer).map($name::from)
            }
        }

        impl $crate::protocol::wire::Hole for $name<'_> {
            fn put(&self, out: &mut alloc::vec::Vec<u8>) {
                $crate::json::write_str(out, self.as_str());
            }
        }

        $crate::protocol::member::required! {
            $name<'a> = $crate::protocol::spec::FieldKind::OneOf($name::WORDS)
        }
    )* };
}
pub(in crate::protocol) use words;
