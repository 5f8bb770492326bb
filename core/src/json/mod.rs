//! JSON: a strict scan, typed decoding from what it found, and a writer.
//!
//! Decoding is two steps. [`scan`] reads a whole line once and refuses what is
//! not exactly one JSON object (RFC 8259): bytes that aren't UTF-8, any syntax
//! error, nesting beyond the limit, a member name that occurs twice in one
//! object at any depth and in any spelling, half a surrogate pair. It leaves the
//! top-level members as spans in a reused [`Members`]. Then the caller looks at
//! the tag, and has the one type that it names decoded from the spans
//! ([`Object::decode`]): strings are borrowed where they have no escapes,
//! numbers are checked for range, and members of type [`Raw`] stay text.
//!
//! Nothing here recurses on its input; only a recursive *type* does when it is
//! decoded, and no deeper than [`ScanRules::max_depth`].

mod de;
mod error;
mod lazy;
mod members;
mod raw;
mod scan;
#[cfg(test)]
mod tests;
mod text;
mod variant;
#[cfg(test)]
mod views;
mod write;

pub(crate) use error::shorten;
pub use error::{DecodeError, DecodeErrorKind, Found, JsonFault, JsonFaultKind};
pub use lazy::Lazy;
pub use members::Members;
pub use raw::{Kind, Object, Raw, Str};
pub use scan::{Duplicates, LoneSurrogates, ScanRules, scan, scan_value};
pub use write::{
    write_bool, write_i64, write_raw, write_raw_line_safe, write_str, write_str_line_safe,
    write_u64,
};
