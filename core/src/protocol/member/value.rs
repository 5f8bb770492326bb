//! Numbers as they were spelled, and objects whose names are data.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::{comma, unlike};
use crate::json::{self, Kind, Raw, Str};
use crate::protocol::wire::Hole;

/// A number as it is spelled: times, prices and counts of a program whose numbers are all floating.
#[derive(Clone, PartialEq, Eq)]
pub struct Num<'a>(Cow<'a, str>);

impl Num<'_> {
    /// Its value.
    pub fn f64(&self) -> f64 {
        self.0.parse().unwrap_or(0.0)
    }

    /// Its value, if it is a whole number that fits.
    pub fn u64(&self) -> Option<u64> {
        if let Ok(number) = self.0.parse() {
            return Some(number);
        }
        // 2^53: up to there each whole number has a float of its own.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let number = self.f64();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = number as u64;
        #[allow(clippy::cast_precision_loss)]
        let same = (0.0..=EXACT).contains(&number) && whole as f64 == number;
        same.then_some(whole)
    }

    /// Its spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Num<'_> {
    fn default() -> Self {
        Num(Cow::Borrowed("0"))
    }
}

impl From<u64> for Num<'_> {
    fn from(number: u64) -> Self {
        Num(Cow::Owned(format!("{number}")))
    }
}

/// A number that JSON doesn't have is 0.
impl From<f64> for Num<'_> {
    fn from(number: f64) -> Self {
        if number.is_finite() {
            Num(Cow::Owned(format!("{number}")))
        } else {
            Num::default()
        }
    }
}

impl fmt::Debug for Num<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> Deserialize<'a> for Num<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Raw::deserialize(deserializer)?;
        if value.kind() == Kind::Number {
            Ok(Num(Cow::Borrowed(value.as_str())))
        } else {
            Err(unlike(value, "a number"))
        }
    }
}

impl Hole for Num<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

/// An object whose members are names of the peer's own, each with a `T`: in the order of the line, and the last of two
/// with the same name is the one that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map<'a, T>(pub Vec<(Str<'a>, T)>);

impl<T> Map<'_, T> {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let mut members = self.0.iter().rev();
        members
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }
}

/// Empty.
impl<T> Default for Map<'_, T> {
    fn default() -> Self {
        Map(Vec::new())
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Map<'a, T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'a, T: Deserialize<'a>> Visitor<'a> for Members<T> {
            type Value = Map<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Map<'a, T>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Map(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

impl<T: Hole> Hole for Map<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, value) in &self.0 {
            comma(out);
            json::write_str(out, name);
            out.push(b':');
            value.put(out);
        }
        out.push(b'}');
    }
}
