//! What can be wrong with JSON text, and with a value for a type.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Display, Write};
use serde::de::{self, Expected, Unexpected};

use super::text::{find_stop, read_escape};

/// Text that isn't the JSON it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// The index of the byte that is wrong, counted from 0 in the text given.
    pub at: usize,
    /// The member it belongs to, as in `args.files[3].name`; empty for the
    /// whole value. Long names and deep paths are shortened.
    pub path: String,
    /// What is wrong.
    pub kind: JsonFaultKind,
}

/// What is wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonFaultKind {
    /// It isn't UTF-8. `bytes` is the length of the sequence that isn't, or
    /// `None` if the text ends within one.
    NotUtf8 {
        /// How many bytes are wrong.
        bytes: Option<u8>,
    },
    /// It is empty, or nothing but white space.
    Blank,
    /// It breaks the grammar.
    Syntax {
        /// What could stand there.
        expected: &'static str,
        /// What stands there.
        found: Found,
    },
    /// It is well-formed but for its type: an object was asked for.
    NotAnObject,
    /// Objects and arrays are nested deeper than allowed.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A name occurs twice in one object; spelled with escapes or not.
    Duplicate {
        /// The name, decoded, and shortened if it is long.
        name: String,
    },
    /// An escape for half a surrogate pair.
    LoneSurrogate,
}

/// What stands where something else was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The end of the text.
    End,
    /// This character.
    Char(char),
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("the end"),
            Self::Char(char) => write!(f, "{char:?}"),
        }
    }
}

impl Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.kind {
            JsonFaultKind::NotUtf8 { bytes: Some(bytes) } => {
                write!(f, "invalid utf-8 sequence of {bytes} bytes from index {at}")?;
            }
            JsonFaultKind::NotUtf8 { bytes: None } => {
                write!(f, "incomplete utf-8 byte sequence from index {at}")?;
            }
            JsonFaultKind::Blank => f.write_str("there is no value")?,
            JsonFaultKind::Syntax { expected, found } => {
                write!(f, "expected {expected}, found {found} at byte {at}")?;
            }
            JsonFaultKind::NotAnObject => {
                write!(f, "expected an object, found another value at byte {at}")?
            }
            JsonFaultKind::TooDeep { limit } => {
                write!(f, "nested deeper than {limit} levels at byte {at}")?
            }
            JsonFaultKind::Duplicate { name } => {
                write!(f, "duplicate member {name:?} at byte {at}")?
            }
            JsonFaultKind::LoneSurrogate => {
                write!(f, "escape for half a surrogate pair at byte {at}")?
            }
        }
        write_path(f, &self.path)
    }
}

impl core::error::Error for JsonFault {}

fn write_path(f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
    if path.is_empty() {
        Ok(())
    } else {
        write!(f, " in `{path}`")
    }
}

/// A value that doesn't fit the type it is decoded into.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    at: Option<usize>,
    path: String,
    kind: DecodeErrorKind,
}

/// How the value doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// A member that the type needs isn't there.
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// The value has another type, or a value that the type doesn't have (a
    /// number out of range, 1.5 for an integer).
    Mismatch {
        /// What could stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A name that isn't one of the type's variants or members.
    Unknown {
        /// The name, shortened if it is long.
        name: String,
        /// The names that the type knows.
        known: &'static [&'static str],
    },
    /// Two members of the text are the same member of the type (by an alias).
    Duplicate {
        /// Its name.
        field: &'static str,
    },
    /// The type says so itself.
    Other(String),
}

impl DecodeError {
    pub(super) fn new(at: usize, kind: DecodeErrorKind) -> Self {
        Self(Box::new(Inner {
            at: Some(at),
            path: String::new(),
            kind,
        }))
    }

    pub(super) fn mismatch(at: usize, expected: &str, found: &str) -> Self {
        Self::new(
            at,
            DecodeErrorKind::Mismatch {
                expected: expected.to_owned(),
                found: shorten(found),
            },
        )
    }

    /// Sets the place, unless a value further inside has set it.
    pub(super) fn or_at(mut self, at: usize) -> Self {
        self.0.at.get_or_insert(at);
        self
    }

    /// Works out the path of the place that was set.
    pub(super) fn located(mut self, text: &str) -> Self {
        if let Some(at) = self.0.at {
            self.0.path = path_at(text.as_bytes(), at);
        }
        self
    }

    /// The index of the value's first byte in the text that was decoded: for
    /// [`Object::decode`](super::Object::decode) the line, for
    /// [`Raw::decode`](super::Raw::decode) the value.
    pub fn at(&self) -> usize {
        self.0.at.unwrap_or(0)
    }

    /// The member it belongs to, as in `args.files[3].name`; empty for the
    /// whole value.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// How the value doesn't fit.
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.0.kind
    }

    fn plain(kind: DecodeErrorKind) -> Self {
        Self(Box::new(Inner {
            at: None,
            path: String::new(),
            kind,
        }))
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeError")
            .field("at", &self.0.at)
            .field("path", &self.0.path)
            .field("kind", &self.0.kind)
            .finish()
    }
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            DecodeErrorKind::Missing { field } => write!(f, "missing field `{field}`")?,
            DecodeErrorKind::Mismatch { expected, found } => {
                write!(f, "expected {expected}, found {found}")?
            }
            DecodeErrorKind::Unknown { name, known } => {
                write!(f, "unknown name {name:?}, expected ")?;
                write_names(f, known)?;
            }
            DecodeErrorKind::Duplicate { field } => write!(f, "duplicate field `{field}`")?,
            DecodeErrorKind::Other(text) => f.write_str(text)?,
        }
        if let Some(at) = self.0.at {
            write!(f, " at byte {at}")?;
        }
        write_path(f, self.path())
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, names: &[&str]) -> fmt::Result {
    let Some((last, rest)) = names.split_last() else {
        return f.write_str("none");
    };
    for name in rest {
        write!(f, "`{name}`, ")?;
    }
    if !rest.is_empty() {
        f.write_str("or ")?;
    }
    write!(f, "`{last}`")
}

impl core::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: Display>(msg: T) -> Self {
        Self::plain(DecodeErrorKind::Other(msg.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = if let Unexpected::Str(text) = found {
            format!("string {:?}", shorten(text))
        } else if found == Unexpected::Unit {
            "null".to_owned()
        } else if found == Unexpected::Map {
            "an object".to_owned()
        } else if found == Unexpected::Seq {
            "an array".to_owned()
        } else {
            found.to_string()
        };
        Self::plain(DecodeErrorKind::Mismatch {
            expected: expected.to_string(),
            found,
        })
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let found = format!("{length} elements");
        Self::plain(DecodeErrorKind::Mismatch {
            expected: expected.to_string(),
            found,
        })
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::plain(DecodeErrorKind::Unknown {
            name: shorten(variant),
            known,
        })
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::unknown_variant(field, known)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::plain(DecodeErrorKind::Missing { field })
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::plain(DecodeErrorKind::Duplicate { field })
    }
}

/// The most characters of a name or value that an error repeats.
const SHOWN: usize = 64;

/// Cuts a text that an error repeats, so that an error stays small.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// One step of a path.
enum Step<'a> {
    /// In an object; its current member's name as it is spelled.
    Member(Option<&'a [u8]>),
    /// In an array; the index.
    Element(usize),
}

/// The path of the value that begins, or goes wrong, at `at`. The text before
/// `at` is well-formed. Worked out only when there is an error.
pub(super) fn path_at(bytes: &[u8], at: usize) -> String {
    let before = bytes.get(..at).unwrap_or(bytes);
    let mut steps = alloc::vec::Vec::new();
    let mut at = 0;
    while let Some(&byte) = before.get(at) {
        at += 1;
        match byte {
            b'{' => steps.push(Step::Member(None)),
            b'[' => steps.push(Step::Element(0)),
            b'}' | b']' => drop(steps.pop()),
            b',' => match steps.last_mut() {
                Some(Step::Member(name)) => *name = None,
                Some(Step::Element(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let start = at;
                at = string_end(before, start);
                if let Some(Step::Member(name @ None)) = steps.last_mut()
                    && before.get(at) == Some(&b'"')
                {
                    *name = before.get(start..at);
                }
                at += 1;
            }
            _ => {}
        }
    }
    spell(&steps)
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = find_stop::<false>(bytes, at);
        match bytes.get(at) {
            Some(b'\\') => at = read_escape(bytes, at).1.max(at + 1),
            Some(b'"') | None => return at,
            Some(_) => at += 1,
        }
    }
}

/// The most steps of a path that are shown.
const STEPS: usize = 16;

fn spell(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for (index, step) in steps.iter().enumerate() {
        if index == STEPS {
            path.push('…');
            break;
        }
        match step {
            Step::Member(Some(name)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&shorten(&String::from_utf8_lossy(name)));
            }
            Step::Member(None) => {}
            Step::Element(index) => {
                let _ = write!(path, "[{index}]");
            }
        }
    }
    path
}
