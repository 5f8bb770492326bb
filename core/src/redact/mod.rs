//! Secrets are taken out of texts before they are encoded, however the texts are cut.
//!
//! Two rules. A *pattern* is found in any text: keys that begin with `sk-`, what stands behind `api_key=` or `bearer `, and
//! the literal values that a configuration names. A *name* hides the whole value of a member, whatever it is: `password`,
//! `token` and the like. What is found is replaced by [`MASK`].
//!
//! A [`Stream`] takes a text in pieces. It holds back only a tail that could still begin a secret, never more than
//! [`Secrets::longest`] bytes, and gives the same text as if it had come in one piece. An [`ArgStream`] does so for the
//! text of JSON, whose strings it reads without their escapes.

mod args;
mod stream;
#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::json::{self, Kind, Raw};

pub use args::ArgStream;
pub use stream::Stream;

/// What stands in the place of a secret.
pub const MASK: &str = "[REDACTED]";

/// The fewest bytes of a literal value that is looked for; a shorter one would be found where nobody meant it.
pub const LEAST_BYTES: usize = 8;

/// What is looked for. It never shows the values.
#[derive(Clone)]
pub struct Secrets {
    literals: Vec<Box<str>>,
    /// The bytes that a secret can begin with.
    first: [bool; 256],
    longest: usize,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("literals", &self.literals.len())
            .finish_non_exhaustive()
    }
}

/// The patterns alone.
impl Default for Secrets {
    fn default() -> Self {
        Secrets::new([])
    }
}

impl Secrets {
    /// The patterns, and these values; those shorter than [`LEAST_BYTES`] are left out.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Secrets {
        let mut literals: Vec<Box<str>> = values
            .into_iter()
            .filter(|value| value.len() >= LEAST_BYTES)
            .map(Box::from)
            .collect();
        // Where one holds another, the longer is found.
        literals.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        literals.dedup();
        let mut first = [false; 256];
        let starts = literals.iter().filter_map(|value| value.bytes().next());
        for byte in starts.chain(*b"saAbB") {
            if let Some(slot) = first.get_mut(usize::from(byte)) {
                *slot = true;
            }
        }
        let longest = literals.first().map_or(0, |value| value.len());
        Secrets {
            longest: longest.max(PATTERN_BYTES),
            literals,
            first,
        }
    }

    /// The most bytes that a [`Stream`] holds back.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The text without its secrets; lent if it has none.
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut stream = Stream::default();
        let mut out = String::new();
        stream.push(self, text, &mut out);
        stream.finish(self, &mut out);
        if stream.found() == 0 {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(out)
        }
    }

    /// Whether a text holds a secret.
    pub fn found_in(&self, text: &str) -> bool {
        matches!(self.clean(text), Cow::Owned(_))
    }

    /// Appends a value as JSON: members in the order of the alphabet, of those that come twice the last one, texts and
    /// names without secrets, and [`MASK`] for the value of a secret name. Gives whether anything was hidden.
    pub fn write_value(&self, value: Raw<'_>, out: &mut Vec<u8>) -> bool {
        match value.kind() {
            Kind::String => {
                let text = value.string().unwrap_or_default();
                let clean = self.clean(&text);
                json::write_str(out, &clean);
                matches!(clean, Cow::Owned(_))
            }
            Kind::Array => {
                let items: Vec<Raw<'_>> = value.decode().unwrap_or_default();
                let mut hidden = false;
                out.push(b'[');
                for (index, item) in items.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    hidden |= self.write_value(item, out);
                }
                out.push(b']');
                hidden
            }
            Kind::Object => self.write_object(value, out),
            // Digits stay as they are, also those beyond what a double holds; a number can be a secret's literal.
            Kind::Number => {
                let hidden = self.is_literal(value.as_str());
                if hidden {
                    json::write_str(out, MASK);
                } else {
                    json::write_raw(out, value);
                }
                hidden
            }
            Kind::Null | Kind::Bool => {
                json::write_raw(out, value);
                false
            }
        }
    }

    fn write_object(&self, value: Raw<'_>, out: &mut Vec<u8>) -> bool {
        let mut members: Vec<(String, Raw<'_>)> = Vec::new();
        value.each_member(|name, value| members.push((String::from(name), value)));
        // Stable: of one name the last stays last.
        members.sort_by(|a, b| a.0.cmp(&b.0));
        let mut hidden = false;
        let mut first = true;
        out.push(b'{');
        for (index, (name, value)) in members.iter().enumerate() {
            if members.get(index + 1).is_some_and(|next| next.0 == *name) {
                continue;
            }
            if !core::mem::replace(&mut first, false) {
                out.push(b',');
            }
            let clean = self.clean(name);
            hidden |= matches!(clean, Cow::Owned(_));
            json::write_str(out, &clean);
            out.push(b':');
            if is_secret_name(name) {
                json::write_str(out, MASK);
                hidden = true;
            } else {
                hidden |= self.write_value(*value, out);
            }
        }
        out.push(b'}');
        hidden
    }

    fn is_literal(&self, text: &str) -> bool {
        self.literals.iter().any(|value| text.contains(&**value))
    }
}

/// Names whose value is hidden: letters and digits alone count, in any case.
const NAMES: [&str; 15] = [
    "accesstoken",
    "apikey",
    "authorization",
    "bearer",
    "clientsecret",
    "credential",
    "credentials",
    "idtoken",
    "password",
    "passwd",
    "privatekey",
    "pwd",
    "refreshtoken",
    "secret",
    "token",
];

/// Ends of names whose value is hidden.
const ENDS: [&str; 6] = [
    "apikey",
    "clientsecret",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "privatekey",
];

/// Whether a member of this name is hidden, whatever its value is.
pub fn is_secret_name(name: &str) -> bool {
    let mut plain = String::with_capacity(name.len());
    for char in name.chars().filter(|char| char.is_ascii_alphanumeric()) {
        plain.push(char.to_ascii_lowercase());
    }
    NAMES.contains(&plain.as_str()) || ENDS.iter().any(|end| plain.ends_with(end))
}

/// `api_key="` and twelve characters, or `bearer ` and sixteen.
const PATTERN_BYTES: usize = 23;

/// Characters that go on with a match once it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Letters, digits, `_`, `-`.
    Key,
    /// The same, and `.`, `~`, `+`, `/`, `=`.
    Token,
}

impl Class {
    fn has(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-')
            || (self == Class::Token && matches!(byte, b'.' | b'~' | b'+' | b'/' | b'='))
    }
}

/// What stands at a place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// No secret.
    Nothing,
    /// What may be one, if the text goes on.
    Begun,
    /// A secret: of so many bytes at least, of which the first `keep` may be shown; the class of what may follow.
    Secret {
        keep: usize,
        bytes: usize,
        more: Option<Class>,
    },
}

impl Secrets {
    /// What stands at the beginning of `text`, behind `before`. `last`: the text doesn't go on.
    fn at(&self, before: Option<u8>, text: &[u8], last: bool) -> Found {
        let Some(&first) = text.first() else {
            return Found::Nothing;
        };
        if !self
            .first
            .get(usize::from(first))
            .is_some_and(|begins| *begins)
        {
            return Found::Nothing;
        }
        let mut begun = false;
        for literal in &self.literals {
            let literal = literal.as_bytes();
            if text.starts_with(literal) && (last || !begun) {
                return Found::Secret {
                    keep: 0,
                    bytes: literal.len(),
                    more: None,
                };
            }
            begun |= literal.starts_with(text);
        }
        // A longer one that is begun is waited for: it hides more.
        if begun && !last {
            return Found::Begun;
        }
        let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let found = match first {
            b's' if !in_word => pattern(text, &[Piece::Exact(b"sk-")], 16, Class::Key, false),
            b'b' | b'B' if !in_word => {
                pattern(text, &[Piece::Any(b"bearer ")], 16, Class::Token, true)
            }
            b'a' | b'A' => {
                let pieces = [
                    Piece::Any(b"api"),
                    Piece::Maybe(b"_-"),
                    Piece::Any(b"key"),
                    Piece::One(b"=:"),
                    Piece::Maybe(b"\"'"),
                ];
                pattern(text, &pieces, 12, Class::Token, true)
            }
            _ => Found::Nothing,
        };
        if last && found == Found::Begun {
            Found::Nothing
        } else {
            found
        }
    }
}

/// Whether two letters count as the same.
type Same = fn(&u8, &u8) -> bool;

/// A part of what decides a pattern.
enum Piece {
    /// These letters.
    Exact(&'static [u8]),
    /// These letters, in any case.
    Any(&'static [u8]),
    /// One of these.
    One(&'static [u8]),
    /// One of these, or none.
    Maybe(&'static [u8]),
}

/// Looks for the pieces, and at least `least` characters of the class behind them.
fn pattern(text: &[u8], pieces: &[Piece], least: usize, class: Class, keeps: bool) -> Found {
    let mut at = 0;
    for piece in pieces {
        let rest = text.get(at..).unwrap_or_default();
        let (letters, same): (&[u8], Same) = match piece {
            Piece::Exact(letters) => (letters, |a, b| a == b),
            Piece::Any(letters) => (letters, |a, b| a.eq_ignore_ascii_case(b)),
            Piece::One(choice) => match rest.first() {
                None => return Found::Begun,
                Some(byte) if choice.contains(byte) => {
                    at += 1;
                    continue;
                }
                Some(_) => return Found::Nothing,
            },
            Piece::Maybe(choice) => {
                match rest.first() {
                    None => return Found::Begun,
                    Some(byte) => at += usize::from(choice.contains(byte)),
                }
                continue;
            }
        };
        let fits = rest
            .iter()
            .zip(letters)
            .take_while(|(a, b)| same(a, b))
            .count();
        if fits == letters.len() {
            at += fits;
        } else if fits == rest.len() {
            return Found::Begun;
        } else {
            return Found::Nothing;
        }
    }
    let keep = if keeps { at } else { 0 };
    let rest = text.get(at..).unwrap_or_default();
    let fits = rest
        .iter()
        .take(least)
        .take_while(|byte| class.has(**byte))
        .count();
    if fits == least {
        Found::Secret {
            keep,
            bytes: at + least,
            more: Some(class),
        }
    } else if fits == rest.len() {
        Found::Begun
    } else {
        Found::Nothing
    }
}
