//! Values that stand in the members of lines: whole numbers within bounds, texts that may be null or missing, words of a
//! closed list.

use alloc::format;
use alloc::vec::Vec;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Unexpected};

use super::super::names::valid_job_component;
use crate::json::{self, Kind, Lazy, Raw, Str, shorten};
use crate::protocol::member::{Member, required, unlike};
use crate::protocol::spec::FieldKind;
use crate::protocol::wire::Hole;

/// The whole number between these two that a value is, whatever its spelling: `3.0` is 3, `1.5` is none (OS-06). Numbers
/// are doubles, as for any reader of JSON that runs on JavaScript.
pub(in crate::protocol::openseek) fn whole(value: Raw<'_>, least: i64, most: i64) -> Option<i64> {
    if value.kind() != Kind::Number {
        return None;
    }
    if let Ok(number) = value.as_str().parse::<i64>() {
        return (least..=most).contains(&number).then_some(number);
    }
    let number: f64 = value.as_str().parse().ok()?;
    // The bounds are within ±2^53, where each whole number is a double of its own.
    #[allow(clippy::cast_precision_loss)]
    let (least, most) = (least as f64, most as f64);
    #[allow(clippy::cast_possible_truncation)]
    let whole = number as i64;
    #[allow(clippy::cast_precision_loss)]
    let same = (least..=most).contains(&number) && whole as f64 == number;
    same.then_some(whole)
}

fn read_whole<E: Error>(value: Raw<'_>, least: i64, most: i64) -> Result<i64, E> {
    whole(value, least, most).ok_or_else(|| {
        let expected = format!("a whole number from {least} to {most}");
        if value.kind() == Kind::Number {
            let found = shorten(value.as_str());
            E::invalid_value(Unexpected::Other(&found), &expected.as_str())
        } else {
            unlike(value, &expected)
        }
    })
}

macro_rules! whole_numbers {
    ($( $(#[$doc:meta])* $name:ident: $inner:ident = $least:literal to $most:literal; )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($inner);

        impl $name {
            /// The least there is.
            pub const MIN: $name = $name($least);
            /// The most there is.
            pub const MAX: $name = $name($most);

            /// The number; `None` if it is out of bounds.
            pub const fn new(number: $inner) -> Option<$name> {
                let wide = number as i64;
                if wide >= $least && wide <= $most { Some($name(number)) } else { None }
            }

            /// The number, or the nearest one within bounds.
            #[must_use]
            pub fn nearest(number: $inner) -> $name {
                $name(number.clamp($least, $most))
            }

            /// The number.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        /// The least there is, or 0.
        impl Default for $name {
            fn default() -> Self {
                $name::nearest(0)
            }
        }

        impl<'a> Deserialize<'a> for $name {
            fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Raw::deserialize(deserializer)?;
                let number = read_whole::<D::Error>(value, i64::from($name::MIN.0), i64::from($name::MAX.0))?;
                // Within the bounds it fits.
                Ok($name($inner::try_from(number).unwrap_or_default()))
            }
        }

        impl Hole for $name {
            fn put(&self, out: &mut Vec<u8>) {
                json::write_i64(out, i64::from(self.0));
            }
        }

        required! { $name = FieldKind::Whole { least: $least, most: $most } }
    )* };
}

whole_numbers! {
    /// A whole number of 32 bits, with a sign.
    Int: i32 = -2_147_483_648 to 2_147_483_647;
    /// The number of a job's record: 1 at first.
    Revision: i32 = 1 to 2_147_483_647;
    /// A count of characters.
    Chars: i32 = 0 to 2_147_483_647;
    /// A time in milliseconds, or a count of bytes: as far as each whole number is a double of its own.
    Big: i64 = 0 to 9_007_199_254_740_991;
}

impl From<i32> for Int {
    fn from(number: i32) -> Self {
        Int(number)
    }
}

/// The number 1, and no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct One;

impl<'a> Deserialize<'a> for One {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        read_whole(Raw::deserialize(deserializer)?, 1, 1).map(|_| One)
    }
}

impl Hole for One {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'1');
    }
}

/// A text of an event that may be null. What is missing, or of another type, is null as well (OS-04); it is always
/// written (OS-05).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrNull<'a>(pub Option<Str<'a>>);

impl OrNull<'_> {
    /// The text.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<'a> From<&'a str> for OrNull<'a> {
    fn from(text: &'a str) -> Self {
        OrNull(Some(text.into()))
    }
}

impl Hole for OrNull<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl<'a> Member<'a> for OrNull<'a> {
    const KIND: FieldKind = FieldKind::Maybe(&FieldKind::OrNull(&FieldKind::Text));

    fn absent() -> Option<Self> {
        Some(OrNull(None))
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        let value: Raw<'a> = map.next_value()?;
        Ok(Some(OrNull(value.string().map(Str))))
    }
}

macro_rules! texts_with_default {
    ($( $(#[$doc:meta])* $name:ident = $default:literal; )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<'a>(pub Str<'a>);

        impl Default for $name<'_> {
            fn default() -> Self {
                $name($default.into())
            }
        }

        impl<'a> From<&'a str> for $name<'a> {
            fn from(text: &'a str) -> Self {
                $name(text.into())
            }
        }

        impl Hole for $name<'_> {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
        }

        impl<'a> Member<'a> for $name<'a> {
            const KIND: FieldKind = FieldKind::Maybe(&FieldKind::Text);

            fn absent() -> Option<Self> {
                Some($name::default())
            }

            fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
                let value: Raw<'a> = map.next_value()?;
                Ok(Some(value.string().map_or_else($name::default, |text| $name(Str(text)))))
            }
        }
    )* };
}

texts_with_default! {
    /// How a steer reached the model: `prompt`, `command`, or `notice` for what the engine said to itself. Where it is
    /// missing, or no text, it is `prompt` (OS-04).
    SteerWord = "prompt";
    /// Why there is no connection to an MCP server. Engines of before wrote null, or nothing.
    ConnectError = "unknown error";
}

/// A member of a job's record that may be null, or missing; of another type it is a fault. It is always written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optional<T>(pub Option<T>);

impl<T> From<T> for Optional<T> {
    fn from(value: T) -> Self {
        Optional(Some(value))
    }
}

impl<T: Hole> Hole for Optional<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
}

impl<'a, T: Deserialize<'a> + Member<'a>> Member<'a> for Optional<T> {
    const KIND: FieldKind = FieldKind::Maybe(&FieldKind::OrNull(&T::KIND));

    fn absent() -> Option<Self> {
        Some(Optional(None))
    }

    fn read<A: MapAccess<'a>>(map: &mut A) -> Result<Option<Self>, A::Error> {
        map.next_value().map(|value| Some(Optional(value)))
    }
}

macro_rules! checked_texts {
    ($( $(#[$doc:meta])* $name:ident, $expected:literal, $check:expr, default $default:literal; )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<'a>(Str<'a>);

        impl<'a> $name<'a> {
            /// The text, if it is one.
            pub fn new(text: impl Into<Str<'a>>) -> Option<Self> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                check(&text).then_some($name(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        #[doc = concat!("`", $default, "`: any that is one.")]
        impl Default for $name<'_> {
            fn default() -> Self {
                $name($default.into())
            }
        }

        impl<'a> Deserialize<'a> for $name<'a> {
            fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Str::deserialize(deserializer)?;
                let found = shorten(&text);
                $name::new(text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&found), &$expected))
            }
        }

        impl Hole for $name<'_> {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }
        }

        required! { $name<'a> = FieldKind::Text }
    )* };
}

checked_texts! {
    /// One component of the path of an artifact, never a path (OS-12): see [`valid_job_component`].
    Component, "one component of a path", valid_job_component, default "0";
    /// A text that isn't empty.
    NonEmpty, "a text that isn't empty", |text| !text.is_empty(), default "0";
}

/// Makes an enum of words, of which there are no others.
macro_rules! closed_words {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$word_doc:meta])* $variant:ident = $word:literal, )* } )*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[$word_doc])* #[doc = concat!("`", $word, "`")] $variant, )*
        }

        impl $name {
            /// The words.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The one of this word.
            pub fn of(word: &str) -> Option<$name> {
                match word {
                    $( $word => Some($name::$variant), )*
                    _ => None,
                }
            }

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self { $( $name::$variant => $word, )* }
            }
        }

        impl<'a> Deserialize<'a> for $name {
            fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
                let word = Str::deserialize(deserializer)?;
                $name::of(&word).ok_or_else(|| D::Error::unknown_variant(&word, $name::WORDS))
            }
        }

        impl Hole for $name {
            fn put(&self, out: &mut Vec<u8>) {
                json::write_str(out, self.word());
            }
        }

        required! { $name = FieldKind::OneOf($name::WORDS) }
    )* };
}

closed_words! {
    /// How a steer of a host reaches the model.
    SteerKind {
        /// As the person's words.
        #[default]
        Prompt = "prompt",
        /// As context: what a command of the person's put out.
        Command = "command",
    }
    /// What happened to a job.
    JobEventKind {
        /// It went into the background.
        #[default]
        Started = "started",
        /// Its record changed.
        Updated = "updated",
        /// It is over, as it should be.
        Finished = "finished",
        /// It is over, and something went wrong.
        Failed = "failed",
    }
    /// What came of a `job_stop`.
    JobStopOutcome {
        /// The tracked execution has settled.
        #[default]
        Stopped = "stopped",
        /// It was over before.
        AlreadyTerminal = "already_terminal",
        /// There is no such job.
        NotFound = "not_found",
        /// The job is of another process.
        WrongRuntime = "wrong_runtime",
    }
}

required! {
    One = FieldKind::Number(1),
}

/// The text that a value is, kept as it came.
pub(super) fn lazy(value: Raw<'_>) -> Option<Lazy<'_>> {
    value.decode().ok()
}
