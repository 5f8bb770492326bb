//! The writer: values into the caller's buffer.

use alloc::vec::Vec;

use super::raw::Raw;
use super::text::{Escape, Stops, find_stop, read_escape};

/// Appends a string with its quotes. Escapes only what JSON requires: quote,
/// backslash and control characters.
#[inline]
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    escape::<false>(out, text);
}

/// As [`write_str`], and escapes U+2028 and U+2029, too: for protocols whose
/// readers may take them for line ends.
#[inline]
pub fn write_str_line_safe(out: &mut Vec<u8>, text: &str) {
    escape::<true>(out, text);
}

/// The one escape routine.
#[inline]
fn escape<const LINE_SAFE: bool>(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let first = find_stop::<LINE_SAFE>(bytes, 0);
    out.extend_from_slice(bytes.get(..first).unwrap_or_default());
    if first < bytes.len() {
        escape_from::<LINE_SAFE>(out, bytes, first);
    }
    out.push(b'"');
}

/// The rest of a text, from its first byte that may need an escape.
fn escape_from<const LINE_SAFE: bool>(out: &mut Vec<u8>, bytes: &[u8], mut start: usize) {
    let mut stops = Stops::<LINE_SAFE>::new(bytes, start);
    loop {
        let at = stops.next();
        let run = bytes.get(start..at).unwrap_or_default();
        match bytes.get(at) {
            None => {
                out.extend_from_slice(run);
                return;
            }
            Some(0xE2) => {
                if let Some(escape) = separator(bytes, at) {
                    out.extend_from_slice(run);
                    out.extend_from_slice(escape);
                    start = at + 3;
                }
            }
            Some(&byte) => {
                out.extend_from_slice(run);
                write_escape(out, byte);
                start = at + 1;
            }
        }
    }
}

/// The escape for the line or paragraph separator at `at`, if it is one.
#[inline]
fn separator(bytes: &[u8], at: usize) -> Option<&'static [u8]> {
    match bytes.get(at..at + 3) {
        Some([0xE2, 0x80, 0xA8]) => Some(b"\\u2028"),
        Some([0xE2, 0x80, 0xA9]) => Some(b"\\u2029"),
        _ => None,
    }
}

#[inline]
fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a value as it was written, on one line: line breaks between its
/// tokens are left out, and an escape for half a surrogate pair becomes
/// U+FFFD, so that a strict reader takes it.
pub fn write_raw(out: &mut Vec<u8>, raw: Raw<'_>) {
    copy::<false>(out, raw.as_str().as_bytes());
}

/// As [`write_raw`], and escapes U+2028 and U+2029.
pub fn write_raw_line_safe(out: &mut Vec<u8>, raw: Raw<'_>) {
    copy::<true>(out, raw.as_str().as_bytes());
}

fn copy<const LINE_SAFE: bool>(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len());
    let has_break = memchr::memchr2(b'\n', b'\r', bytes).is_some();
    let has_unicode = memchr::memmem::find(bytes, b"\\u").is_some();
    let has_separator = LINE_SAFE && memchr::memmem::find(bytes, b"\xE2\x80").is_some();
    if !(has_break || has_unicode || has_separator) {
        out.extend_from_slice(bytes);
        return;
    }
    let mut start = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (replacement, end): (&[u8], usize) = match byte {
            b'\n' | b'\r' => (b"", at + 1),
            b'\\' => match read_escape(bytes, at) {
                (Escape::Lone, end) => (b"\\ufffd", end),
                (Escape::Char(_) | Escape::Bad, end) => {
                    at = end;
                    continue;
                }
            },
            _ => match separator(bytes, at) {
                Some(escape) if LINE_SAFE => (escape, at + 3),
                _ => {
                    at += 1;
                    continue;
                }
            },
        };
        out.extend_from_slice(bytes.get(start..at).unwrap_or_default());
        out.extend_from_slice(replacement);
        at = end;
        start = end;
    }
    out.extend_from_slice(bytes.get(start..).unwrap_or_default());
}

/// Appends a number in decimal.
pub fn write_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        // The remainder is below ten.
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Appends a number in decimal.
pub fn write_i64(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(out, number.unsigned_abs());
}

/// Appends `true` or `false`.
pub fn write_bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}
