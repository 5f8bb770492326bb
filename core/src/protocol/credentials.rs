//! Credentials never leave in a line: the last look at what an encoder wrote, the same for every protocol.
//!
//! A value is found in any spelling that JSON has for it (`\/`, `\u0041`, a surrogate pair), in the strings and the
//! member names of a line. What becomes of one is the protocol's to say ([`OnCredential`]): it is replaced by [`MASK`],
//! so that the line stays the JSON that it was, or the line isn't written at all. In the second case a value is also
//! found where it reaches over the ends of strings, up to the newline of the line.
//!
//! It isn't found where it is cut (over two tokens, or by a limit), encoded (base64, percent signs), part of a number,
//! or shorter than [`LEAST_BYTES`]. This is a net under the other measures, not one of them.

use alloc::vec::Vec;
use core::fmt;

use aho_corasick::{AhoCorasick, MatchKind};
use memchr::memmem::Finder;

/// What stands in the place of a credential.
pub const MASK: &str = "[redacted]";

/// Values of fewer bytes aren't looked for: they would be found where nobody meant them.
pub const LEAST_BYTES: usize = 8;

/// The values that no line may hold. It never shows them.
pub struct Credentials {
    /// `None`: there are none that are long enough.
    finder: Option<AhoCorasick>,
    /// The escapes that a value could be spelled with. A line without them holds a value as it is or not at all, which
    /// is found out without looking at its strings one by one.
    spellings: Vec<Finder<'static>>,
    /// The line as it is written anew, and a string without its escapes: kept, so that nothing is allocated once warm.
    clean: Vec<u8>,
    plain: Vec<u8>,
}

/// The values are too many or too long to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the credentials are too many or too long to be looked for")
    }
}

impl core::error::Error for TooMuch {}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.finder.as_ref().map_or(0, AhoCorasick::patterns_len);
        f.debug_struct("Credentials")
            .field("count", &count)
            .finish_non_exhaustive()
    }
}

/// What becomes of a line that holds a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnCredential {
    /// [`MASK`] stands in its place.
    Hide,
    /// Nothing of the line is written, and nothing after it: the Server says so to the person who runs it, and ends
    /// with 1.
    Latch,
}

impl Credentials {
    /// As [`new`](Self::new), and values of any length count, but for those of no bytes: for encoders that must not write
    /// one whatever it is. One that is a word of every line leaves nothing to be written.
    ///
    /// # Errors
    /// [`TooMuch`], beyond two gigabytes or so.
    pub fn exact<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Credentials, TooMuch> {
        Credentials::of(
            values
                .into_iter()
                .filter(|value| !value.is_empty())
                .collect(),
        )
    }

    /// Takes the values; those shorter than [`LEAST_BYTES`] are left out. Where one holds another, the longer is found.
    ///
    /// # Errors
    /// [`TooMuch`], beyond two gigabytes or so.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Credentials, TooMuch> {
        let is_long = |value: &&str| value.len() >= LEAST_BYTES;
        Credentials::of(values.into_iter().filter(is_long).collect())
    }

    fn of(mut values: Vec<&str>) -> Result<Credentials, TooMuch> {
        values.sort_by_key(|value| core::cmp::Reverse(value.len()));
        values.dedup();
        let spellings = SPELLINGS
            .iter()
            .filter(|(byte, _)| byte.is_none_or(|byte| has(&values, byte)))
            .map(|(_, escape)| Finder::new(*escape))
            .collect();
        let finder = if values.is_empty() {
            None
        } else {
            let found = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostFirst)
                .build(values);
            Some(found.map_err(|_| TooMuch)?)
        };
        Ok(Credentials {
            finder,
            spellings,
            clean: Vec::new(),
            plain: Vec::new(),
        })
    }

    /// Whether nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// Whether these bytes hold a value: as they stand, over the ends of strings too, or in a string once its escapes are
    /// read. Every string counts, those of members that come twice as well. Give it the final bytes, newline included.
    pub fn found_in(&mut self, bytes: &[u8]) -> bool {
        let Some(finder) = &self.finder else {
            return false;
        };
        if finder.is_match(bytes) {
            return true;
        }
        // What isn't there as it is has a byte that is spelled otherwise.
        let spelled = |escape: &Finder<'_>| escape.find(bytes).is_some();
        if !self.spellings.iter().any(spelled) {
            return false;
        }
        let mut at = 0;
        while let Some(quote) = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()) {
            let start = at + quote + 1;
            let end = string_end(bytes, start);
            let string = bytes.get(start..end).unwrap_or_default();
            if memchr::memchr(b'\\', string).is_some() {
                unescape(string, &mut self.plain);
                if finder.is_match(&self.plain) {
                    return true;
                }
            }
            at = end + 1;
        }
        false
    }

    /// Takes all values out of the line that begins at `from`, which is one JSON value.
    pub(super) fn hide(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let Some(finder) = &self.finder else { return };
        let line = bytes.get(from..).unwrap_or_default();
        let spelled = |escape: &Finder<'_>| escape.find(line).is_some();
        if !finder.is_match(line) && !self.spellings.iter().any(spelled) {
            return;
        }
        self.clean.clear();
        let mut kept = 0;
        let mut at = 0;
        while let Some(quote) = memchr::memchr(b'"', line.get(at..).unwrap_or_default()) {
            let start = at + quote + 1;
            let end = string_end(line, start);
            let string = line.get(start..end).unwrap_or_default();
            if memchr::memchr(b'\\', string).is_none() {
                for found in finder.find_iter(string) {
                    let (from, to) = (start + found.start(), start + found.end());
                    replace(line, &mut kept, from, to, &mut self.clean);
                }
            } else {
                unescape(string, &mut self.plain);
                let mut walk = Walk::new(string);
                for found in finder.find_iter(&self.plain) {
                    let from = start + walk.raw(found.start());
                    let to = start + walk.raw(found.end());
                    replace(line, &mut kept, from, to, &mut self.clean);
                }
            }
            at = end + 1;
        }
        if kept > 0 {
            self.clean
                .extend_from_slice(line.get(kept..).unwrap_or_default());
            bytes.truncate(from);
            bytes.extend_from_slice(&self.clean);
        }
    }
}

/// The escapes of JSON that stand for a byte of a value; the first can stand for any.
const SPELLINGS: [(Option<u8>, &[u8; 2]); 9] = [
    (None, b"\\u"),
    (Some(b'/'), b"\\/"),
    (Some(b'"'), b"\\\""),
    (Some(b'\\'), b"\\\\"),
    (Some(b'\x08'), b"\\b"),
    (Some(b'\x0c'), b"\\f"),
    (Some(b'\n'), b"\\n"),
    (Some(b'\r'), b"\\r"),
    (Some(b'\t'), b"\\t"),
];

fn has(values: &[&str], byte: u8) -> bool {
    values
        .iter()
        .any(|value| memchr::memchr(byte, value.as_bytes()).is_some())
}

/// Writes what stands before a match that wasn't written yet, and the mask.
fn replace(line: &[u8], kept: &mut usize, from: usize, to: usize, clean: &mut Vec<u8>) {
    clean.extend_from_slice(line.get(*kept..from).unwrap_or_default());
    clean.extend_from_slice(MASK.as_bytes());
    *kept = to;
}

/// Where the string that begins at `at` has its closing quote; the end of the line, if it has none.
fn string_end(line: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', line.get(at..).unwrap_or_default()) {
        at += found;
        if line.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    line.len()
}

/// One character of a string as it is written: the bytes that it takes there, and its own.
struct Unit {
    raw: usize,
    bytes: [u8; 4],
    len: usize,
}

impl Unit {
    fn of(raw: usize, char: char) -> Unit {
        let mut bytes = [0; 4];
        let len = char.encode_utf8(&mut bytes).len();
        Unit { raw, bytes, len }
    }
}

/// The unit at the beginning; `None` at the end.
fn unit(string: &[u8]) -> Option<Unit> {
    let first = *string.first()?;
    if first != b'\\' {
        let bytes = [first, 0, 0, 0];
        return Some(Unit {
            raw: 1,
            bytes,
            len: 1,
        });
    }
    let char = match string.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = hex(string.get(2..6));
            let low = hex(string.get(8..12)).filter(|_| string.get(6..8) == Some(b"\\u"));
            let pair = [high, low].map(|half| half.and_then(|half| u16::try_from(half).ok()));
            if let [Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)] = pair {
                let char = char::decode_utf16([high, low]).next().and_then(Result::ok);
                return Some(Unit::of(12, char.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            let char = high.and_then(char::from_u32);
            return Some(Unit::of(6, char.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
        // A quote, a backslash, a slash.
        other => char::from(*other),
    };
    Some(Unit::of(2, char))
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = core::str::from_utf8(digits?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// A string without its escapes.
fn unescape(string: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    let mut rest = string;
    loop {
        let run = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        let (before, escape) = rest.split_at(run);
        plain.extend_from_slice(before);
        rest = escape;
        let Some(unit) = unit(rest) else { return };
        plain.extend_from_slice(unit.bytes.get(..unit.len).unwrap_or_default());
        rest = rest.get(unit.raw..).unwrap_or_default();
    }
}

/// Finds the places of the unescaped string in the string as it is written, in order.
struct Walk<'a> {
    string: &'a [u8],
    raw: usize,
    plain: usize,
}

impl<'a> Walk<'a> {
    fn new(string: &'a [u8]) -> Walk<'a> {
        let (raw, plain) = (0, 0);
        Walk { string, raw, plain }
    }

    fn raw(&mut self, plain: usize) -> usize {
        while self.plain < plain
            && let Some(unit) = unit(self.string.get(self.raw..).unwrap_or_default())
        {
            self.plain += unit.len;
            self.raw += unit.raw;
        }
        self.raw.min(self.string.len())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::*;

    fn hidden(values: &[&str], line: &str) -> String {
        let mut credentials = Credentials::new(values.iter().copied()).unwrap();
        let mut bytes = b"before\n".to_vec();
        bytes.extend_from_slice(line.as_bytes());
        credentials.hide(&mut bytes, 7);
        assert!(bytes.starts_with(b"before\n"));
        String::from_utf8(bytes.split_off(7)).unwrap()
    }

    #[test]
    fn a_value_is_found_in_every_spelling() {
        let values = ["sk/a\"b\\c\nd\u{1f600}e"];
        for spelling in [
            r#"sk/a\"b\\c\nd😀e"#,
            r#"sk\/a\u0022b\u005cc\u000Ad\ud83d\uDE00e"#,
            r#"\u0073\u006b/a\"b\\c\nd😀\u0065"#,
        ] {
            let line = alloc::format!(r#"{{"text":"x {spelling}, \u00e4 {spelling}","n":1}}"#);
            assert_eq!(
                hidden(&values, &line),
                r#"{"text":"x [redacted], \u00e4 [redacted]","n":1}"#
            );
        }
    }

    #[test]
    fn escapes_of_other_text_hide_no_value_and_show_none() {
        let values = ["sk/abcdefgh", "plainkey123"];
        for (line, clean) in [
            (r#"["a\n\"b sk/abcdefgh\n"]"#, r#"["a\n\"b [redacted]\n"]"#),
            (r#"["a\n sk\/abcdefgh"]"#, r#"["a\n [redacted]"]"#),
            (r#"["\\ plain\u006bey123"]"#, r#"["\\ [redacted]"]"#),
        ] {
            assert_eq!(hidden(&values, line), clean);
        }
        // A line feed, and what would be a value with its letter.
        assert_eq!(
            hidden(&["newvalue"], r#"["x\newvalue"]"#),
            r#"["x\newvalue"]"#
        );
    }

    #[test]
    fn names_too_and_nothing_outside_of_strings() {
        let line = r#"{"12345678":"a12345678b","n":12345678}"#;
        assert_eq!(
            hidden(&["12345678"], line),
            r#"{"[redacted]":"a[redacted]b","n":12345678}"#
        );
        // What looks like one across two strings is none.
        let line = r#"{"a":"bbbb","c":"d"}"#;
        assert_eq!(hidden(&[r#"bbbb","c":"d"#], line), line);
    }

    #[test]
    fn the_longer_of_two_is_found_and_short_ones_are_not() {
        assert_eq!(
            hidden(
                &["abcdefgh", "abcdefghij", "short"],
                r#"["abcdefghij short"]"#
            ),
            r#"["[redacted] short"]"#
        );
        assert!(Credentials::new(["short", ""]).unwrap().is_empty());
    }

    #[test]
    fn strings_that_end_in_the_middle_of_an_escape_are_left_as_they_are() {
        for line in ["\"abc\\", "\"\\u12", "\"\\ud800\\u", "\"a\\\"", "\"", ""] {
            assert_eq!(hidden(&["0123456789"], line), line);
        }
    }

    #[test]
    fn wire_013_a_value_is_found_over_the_ends_of_strings_and_the_newline() {
        let found = |value: &str, line: &str| {
            let mut credentials = Credentials::exact([value]).unwrap();
            credentials.found_in(format!("{line}\n").as_bytes())
        };
        let line = r#"{"a":"bbbb","c":"d","e":"x\u0041y\/z","e":"safe"}"#;
        for value in [
            r#"","c":""#,
            "\"safe\"}\n",
            "}\n",
            "\n",
            "xAy",
            "Ay/z",
            r"x\u0041",
            "b",
        ] {
            assert!(found(value, line), "{value:?}");
        }
        for value in ["", "xAyz", "bbbbb", "safe\n"] {
            assert!(!found(value, line), "{value:?}");
        }
    }

    #[test]
    fn it_doesnt_show_what_it_looks_for() {
        let credentials = Credentials::new(["very-secret"]).unwrap();
        let shown = alloc::format!("{credentials:?}");
        assert!(shown.contains("count: 1") && !shown.contains("very"));
    }
}
