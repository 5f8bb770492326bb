//! The type of every line, both directions: one type, one encoder and one decoder for each.
//!
//! An [`Event`] is what an agent writes, an [`Input`] what it reads before it begins. Reading an event is forgiving, since
//! new types and members may come (SP-03); reading an input is strict, so that a host learns that the two have drifted
//! apart (SP-02). An encoder writes members in the order of the alphabet, leaves out what is empty, and escapes what a web
//! page could take for markup, as the known agent does.

mod event;
mod image;
mod input;
mod marker;
mod values;

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::json::{self, Duplicates, LoneSurrogates, Members, Object, Raw, ScanRules};
pub use crate::protocol::WireFault;
pub use crate::protocol::member::{Any, Map, Nullable, Num, Rest};
use crate::protocol::member::{Fields, last};

pub use event::*;
pub(super) use image::judge;
pub use image::{IMAGE_BYTES, ImageBound, ImageFault, MEDIA_TYPES, media_type};
pub use input::{Image, Input, InputFault, NO_INPUT, Refused};
pub use marker::{MARKER, Marker};
pub use values::{
    CostProvenance, CostStatus, ResultStatus, RunStatusWord, SideEffectWord, StageStatus, Version,
    is_run_id,
};

/// The schema of all lines.
pub const SCHEMA_VERSION: u64 = 2;

/// How lines are scanned: of a member that comes twice the last one counts, half a surrogate pair is replaced.
pub const RULES: ScanRules = ScanRules {
    max_depth: 1_024,
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
};

const TAG: &str = "type";

impl<'a> Event<'a> {
    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line is no event: not a JSON object, without a `type` that is a string, of another schema, or
    /// without a member that its type needs. A host passes over such a line.
    pub fn read(line: &'a [u8], members: &mut Members) -> Result<Self, WireFault> {
        let object = json::scan(line, &RULES, members).map_err(WireFault::Json)?;
        Event::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`WireFault`] when it has no `type`, or lacks a member that its type needs.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, WireFault> {
        let name = last(object, TAG).ok_or(WireFault::NoTag(TAG))?;
        let name = name.string().ok_or_else(|| WireFault::TagKind {
            tag: TAG,
            found: name.kind(),
        })?;
        match Event::of_line(&name, object) {
            Some(event) => event.map_err(WireFault::Fields),
            None => Ok(Event::Unknown(Raw::trusted(object.line().trim_ascii()))),
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let from = out.len();
        self.put(out);
        escape_markup(out, from);
    }

    /// What it is called, whether it is known or not.
    pub fn name(&self) -> Cow<'a, str> {
        if let Event::Unknown(line) = self {
            let name = line.get_last(TAG).and_then(Raw::string);
            return name.unwrap_or_default();
        }
        Cow::Borrowed(self.tag().unwrap_or_default())
    }
}

/// Appends a line of its own type, without its newline. Allocates nothing beyond the buffer.
pub(super) fn encode<'a>(line: &impl Fields<'a>, out: &mut Vec<u8>) {
    let from = out.len();
    out.push(b'{');
    line.put_members(out);
    out.push(b'}');
    escape_markup(out, from);
}

/// Escapes `<`, `>`, `&`, U+2028 and U+2029 in the JSON that begins at `from`. None of them can stand outside a string.
pub(super) fn escape_markup(out: &mut Vec<u8>, from: usize) {
    let written = out.get(from..).unwrap_or_default();
    let Some(first) = next_markup(written, 0) else {
        return;
    };
    let tail = out.split_off(from + first.at);
    let mut rest = tail.as_slice();
    let mut next = Some(Markup { at: 0, ..first });
    while let Some(found) = next {
        out.extend_from_slice(rest.get(..found.at).unwrap_or_default());
        out.extend_from_slice(found.escape);
        rest = rest.get(found.at + found.bytes..).unwrap_or_default();
        next = next_markup(rest, 0);
    }
    out.extend_from_slice(rest);
}

/// A character that is escaped.
#[derive(Clone, Copy)]
struct Markup {
    at: usize,
    bytes: usize,
    escape: &'static [u8],
}

fn next_markup(bytes: &[u8], from: usize) -> Option<Markup> {
    let rest = bytes.get(from..)?;
    let ascii = memchr::memchr3(b'<', b'>', b'&', rest).map(|at| Markup {
        at: from + at,
        bytes: 1,
        escape: match rest.get(at) {
            Some(b'<') => b"\\u003c",
            Some(b'>') => b"\\u003e",
            _ => b"\\u0026",
        },
    });
    let limit = ascii.map_or(bytes.len(), |found| found.at);
    let mut at = from;
    while let Some(lead) = memchr::memchr(0xE2, bytes.get(at..limit).unwrap_or_default()) {
        let lead = at + lead;
        let escape: &'static [u8] = match bytes.get(lead + 1..lead + 3) {
            Some([0x80, 0xA8]) => b"\\u2028",
            Some([0x80, 0xA9]) => b"\\u2029",
            _ => {
                at = lead + 1;
                continue;
            }
        };
        return Some(Markup {
            at: lead,
            bytes: 3,
            escape,
        });
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn sp_a05_markup_and_line_separators_are_escaped_and_nothing_else() {
        for (text, escaped) in [
            ("", ""),
            ("plain — text", "plain — text"),
            ("<b>&amp;</b>", "\\u003cb\\u003e\\u0026amp;\\u003c/b\\u003e"),
            ("a\u{2028}b\u{2029}<", "a\\u2028b\\u2029\\u003c"),
            ("\u{2027}\u{202a}>", "\u{2027}\u{202a}\\u003e"),
            ("<<", "\\u003c\\u003c"),
        ] {
            let mut out = b"<".to_vec();
            out.extend_from_slice(text.as_bytes());
            escape_markup(&mut out, 1);
            let written = String::from_utf8(out).unwrap();
            assert_eq!(written.strip_prefix('<'), Some(escaped));
        }
    }
}
