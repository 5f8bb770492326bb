//! Inside of strings: finding their end, reading their escapes.

use alloc::string::String;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of a word that are not plain: quote, backslash, control
/// and, if asked for, 0xE2 (the first byte of U+2028 and U+2029). Only the
/// lowest mark is exact.
#[inline(always)]
fn marks<const E2: bool>(word: u64) -> u64 {
    let zero = |x: u64| x.wrapping_sub(ONES) & !x;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let mut marks = control | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5C));
    if E2 {
        marks |= zero(word ^ (ONES * 0xE2));
    }
    marks & HIGH
}

#[inline(always)]
const fn is_stop<const E2: bool>(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || (E2 && byte == 0xE2)
}

/// The index of the first byte at or after `at` that isn't plain text of a
/// string (see [`marks`]); the length if there is none.
#[inline]
pub(super) fn find_stop<const E2: bool>(bytes: &[u8], mut at: usize) -> usize {
    let mut words = 0;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let marks = marks::<E2>(u64::from_le_bytes(*word));
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
        words += 1;
        if words == 8 {
            at = skip_blocks::<E2>(bytes, at);
        }
    }
    while let Some(&byte) = bytes.get(at) {
        if is_stop::<E2>(byte) {
            return at;
        }
        at += 1;
    }
    at
}

/// Skips whole blocks of plain text; for long strings (the loop over a block
/// is made of vector instructions).
fn skip_blocks<const E2: bool>(bytes: &[u8], mut at: usize) -> usize {
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        let mut stop = false;
        for &byte in block {
            stop |= is_stop::<E2>(byte);
        }
        if stop {
            break;
        }
        at += 64;
    }
    at
}

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    /// Half a surrogate pair.
    Lone,
    /// No escape that JSON knows; the fault is at the index given with it.
    Bad,
}

/// Reads the escape whose backslash is at `at`. Gives the index after it.
pub(super) fn read_escape(bytes: &[u8], at: usize) -> (Escape, usize) {
    let plain = match bytes.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return read_unicode(bytes, at),
        _ => return (Escape::Bad, at + 1),
    };
    (Escape::Char(plain), at + 2)
}

fn read_unicode(bytes: &[u8], at: usize) -> (Escape, usize) {
    let first = match hex4(bytes, at + 2) {
        Ok(unit) => unit,
        Err(bad) => return (Escape::Bad, bad),
    };
    let end = at + 6;
    if let Some(char) = char::from_u32(first) {
        return (Escape::Char(char), end);
    }
    let is_high = first < 0xDC00;
    if is_high
        && bytes.get(end) == Some(&b'\\')
        && bytes.get(end + 1) == Some(&b'u')
        && let Ok(second @ 0xDC00..=0xDFFF) = hex4(bytes, end + 2)
        && let Some(char) = char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    {
        return (Escape::Char(char), end + 6);
    }
    (Escape::Lone, end)
}

/// Four hexadecimal digits, or the index of what isn't one.
fn hex4(bytes: &[u8], at: usize) -> Result<u32, usize> {
    let mut unit = 0;
    for index in at..at + 4 {
        let digit = bytes
            .get(index)
            .and_then(|&byte| char::from(byte).to_digit(16))
            .ok_or(index)?;
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

/// The text that the inside of a string stands for. Half a surrogate pair
/// becomes U+FFFD; so does what isn't an escape, which the scan refuses.
pub(super) fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    unescape_into(inner, &mut out);
    out
}

pub(super) fn unescape_into(inner: &str, out: &mut String) {
    let bytes = inner.as_bytes();
    let mut start = 0;
    while let Some(found) = bytes
        .get(start..)
        .and_then(|rest| memchr::memchr(b'\\', rest))
    {
        let at = start + found;
        out.push_str(inner.get(start..at).unwrap_or_default());
        let (escape, end) = read_escape(bytes, at);
        match escape {
            Escape::Char(char) => out.push(char),
            Escape::Lone | Escape::Bad => out.push(char::REPLACEMENT_CHARACTER),
        }
        start = end;
    }
    out.push_str(inner.get(start..).unwrap_or_default());
}

/// The length of the longest start of `bytes` that is a number, by the grammar
/// of JSON; or the index of the byte that isn't as it must be.
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    let digits = |mut at: usize| {
        while matches!(bytes.get(at), Some(b'0'..=b'9')) {
            at += 1;
        }
        at
    };
    let some_digits = |at: usize| match digits(at) {
        end if end == at => Err(at),
        end => Ok(end),
    };
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = match bytes.get(at) {
        Some(b'0') => at + 1,
        Some(b'1'..=b'9') => digits(at + 1),
        _ => return Err(at),
    };
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(at + 1)?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = some_digits(at)?;
    }
    Ok(at)
}

/// Skips JSON white space.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}
