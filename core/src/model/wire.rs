//! The JSON of providers, read leniently: unknown members are skipped, of two members with one name the
//! last counts (as in every SDK's parser), and leaves stay raw until somebody asks for them, so that an
//! odd type in one member costs that member alone.

use alloc::{borrow::Cow, collections::BTreeMap, string::String, vec::Vec};
use core::{fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::failure::ErrorFacts;
use crate::json::{Kind, Raw, Str};

/// Declares a struct of optional members that is read from an object.
macro_rules! wire_object {
    ($(#[$doc:meta])* $name:ident { $($field:ident ($member:literal): $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(in crate::model) struct $name<'a> {
            $(pub $field: Option<$type>,)*
        }

        impl<'de: 'a, 'a> serde::de::Deserialize<'de> for $name<'a> {
            fn deserialize<D: serde::de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Read<'a>(core::marker::PhantomData<$name<'a>>);

                impl<'de: 'a, 'a> serde::de::Visitor<'de> for Read<'a> {
                    type Value = $name<'a>;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                        let mut read = $name::default();
                        while let Some(name) = map.next_key::<crate::json::Str<'de>>()? {
                            match &*name {
                                $($member => read.$field = map.next_value()?,)*
                                _ => {
                                    map.next_value::<serde::de::IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(read)
                    }
                }

                deserializer.deserialize_map(Read(core::marker::PhantomData))
            }
        }
    };
}
pub(super) use wire_object;

/// The first element of a list; the others are skipped.
#[derive(Debug)]
pub(super) struct First<T>(pub Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<First<T>, S::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }

        deserializer.deserialize_seq(Read(PhantomData))
    }
}

/// The elements of a raw list, in order; other values have none.
pub(super) fn elements(list: Raw<'_>) -> Vec<Raw<'_>> {
    list.decode().unwrap_or_default()
}

/// A raw string with its quotes; `None` for other values.
pub(super) fn quoted(raw: Option<Raw<'_>>) -> Option<&str> {
    raw.filter(|raw| raw.kind() == Kind::String)
        .map(Raw::as_str)
}

/// A word: a string's text, a number or boolean as it is written, empty for anything else.
pub(super) fn word(raw: Option<Raw<'_>>) -> Cow<'_, str> {
    match raw {
        None => Cow::Borrowed(""),
        Some(raw) => match raw.kind() {
            Kind::String => raw.string().unwrap_or_default(),
            Kind::Bool | Kind::Number => Cow::Borrowed(raw.as_str()),
            Kind::Null | Kind::Array | Kind::Object => Cow::Borrowed(""),
        },
    }
}

/// A word, unless it is empty.
pub(super) fn given(word: &str) -> Option<&str> {
    (!word.is_empty()).then_some(word)
}

/// A count of tokens: a whole number, also one written as `12.0`; anything else is not said.
pub(super) fn count(raw: Option<Raw<'_>>) -> Option<u64> {
    let text = raw?.as_str();
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.bytes().all(|byte| byte == b'0') {
        whole.parse().ok()
    } else {
        None
    }
}

wire_object! {
    /// An error as a provider describes it; also the body around it.
    ErrorWire {
        error("error"): Raw<'a>,
        message("message"): Raw<'a>,
        code("code"): Raw<'a>,
        class("type"): Raw<'a>,
        object("object"): Raw<'a>,
    }
}

/// What a provider said about a failure, in words of ours.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The provider's message; empty if it gave none.
    message: String,
    /// The whole error as it was written.
    raw: String,
    code: String,
    class: String,
    status: Option<u16>,
}

impl Said {
    /// Reads the value of an `error` member: an object, a string or a bare number. `None` if it says
    /// nothing.
    pub(super) fn of_error(raw: Raw<'_>) -> Option<Said> {
        let said = match raw.kind() {
            Kind::Null | Kind::Array => return None,
            Kind::Bool if raw.bool() == Some(false) => return None,
            Kind::Object => {
                let members: BTreeMap<Str<'_>, Raw<'_>> = raw.decode().unwrap_or_default();
                if members.is_empty() {
                    return None;
                }
                Said::of_members(&raw.decode().unwrap_or_default())
            }
            Kind::String | Kind::Number | Kind::Bool => {
                let message = word(Some(raw)).into_owned();
                if message.is_empty() {
                    return None;
                }
                Said {
                    message,
                    ..Said::default()
                }
            }
        };
        Some(Said {
            raw: raw.as_str().into(),
            ..said
        })
    }

    /// Reads the members that describe an error from the object that holds them.
    pub(super) fn of_members(wire: &ErrorWire<'_>) -> Said {
        let code = word(wire.code);
        Said {
            message: word(wire.message).into_owned(),
            status: code
                .parse()
                .ok()
                .filter(|status| (300..600).contains(status)),
            code: code.into_owned(),
            class: word(wire.class).into_owned(),
            raw: String::new(),
        }
    }

    /// The provider's message; empty if it gave none.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The message, or else the whole error.
    pub(super) fn words(&self) -> &str {
        if self.message.is_empty() {
            &self.raw
        } else {
            &self.message
        }
    }

    /// The facts for judging it; `status` is the answer's, unless the error names one of its own.
    pub(super) fn facts(&self, status: Option<u16>) -> ErrorFacts<'_> {
        ErrorFacts {
            status: status.or(self.status),
            code: &self.code,
            class: &self.class,
            message: &self.message,
        }
    }

    /// The word that names the error best: its code, or its type.
    pub(super) fn name(&self) -> &str {
        if self.code.is_empty() {
            &self.class
        } else {
            &self.code
        }
    }
}
