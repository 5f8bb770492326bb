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
        if words == 4 {
            return find_stop_far::<E2>(bytes, at);
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

/// The same for a long text.
#[inline(never)]
fn find_stop_far<const E2: bool>(bytes: &[u8], at: usize) -> usize {
    Stops::<E2>::new(bytes, at).next()
}

/// The number of bytes that are looked at together; the bits of a mask.
const BLOCK: usize = 64;

/// All bytes of a long text that aren't plain, one after the other.
///
/// It works through blocks of 64 bytes, and makes a bit mask of each: first a
/// flag a byte (a loop that becomes vector instructions), then eight flags at
/// a time gathered by a multiplication. So the branches that can't be foreseen
/// come once a block, not once a stop, which pays in texts with an escape
/// every 20 bytes. Source code in JSON is such a text.
pub(super) struct Stops<'b, const E2: bool> {
    bytes: &'b [u8],
    /// Where the current block begins.
    block: usize,
    /// Its stops that weren't given yet.
    mask: u64,
    /// The stop that was given last.
    last: u64,
    /// 1 if the first byte of the next block is to be left out.
    carry: u64,
}

impl<'b, const E2: bool> Stops<'b, E2> {
    /// From `at` on.
    #[inline]
    pub(super) fn new(bytes: &'b [u8], at: usize) -> Self {
        Self {
            bytes,
            block: at,
            mask: Self::mask_at(bytes, at),
            last: 0,
            carry: 0,
        }
    }

    /// The index of the next stop; the length of the text if there is none.
    #[inline]
    pub(super) fn next(&mut self) -> usize {
        while self.mask == 0 {
            self.block += BLOCK;
            if self.block >= self.bytes.len() {
                self.block = self.bytes.len();
                return self.block;
            }
            self.mask = Self::mask_at(self.bytes, self.block) & !self.carry;
            self.carry = 0;
        }
        let stop = self.block + self.mask.trailing_zeros() as usize;
        self.last = self.mask & self.mask.wrapping_neg();
        self.mask ^= self.last;
        stop
    }

    /// Leaves out the byte after the last stop: the letter of an escape.
    #[inline]
    pub(super) fn skip_letter(&mut self) {
        self.mask &= !(self.last << 1);
        self.carry = self.last >> (BLOCK - 1);
    }

    /// Goes on at `at`, which is after the last stop.
    #[inline]
    pub(super) fn skip_to(&mut self, at: usize) {
        match at.checked_sub(self.block) {
            Some(bit @ 0..BLOCK) => self.mask &= u64::MAX << bit,
            _ => *self = Self::new(self.bytes, at),
        }
    }

    #[inline]
    fn mask_at(bytes: &[u8], at: usize) -> u64 {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(block) = rest.first_chunk::<BLOCK>() {
            return Self::mask(block);
        }
        let mut block = [b'x'; BLOCK];
        for (byte, &other) in block.iter_mut().zip(rest) {
            *byte = other;
        }
        Self::mask(&block)
    }

    #[inline]
    fn mask(block: &[u8; BLOCK]) -> u64 {
        /// Gathers the lowest bit of each byte in the highest byte.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let mut flags = [0; BLOCK];
        for (flag, &byte) in flags.iter_mut().zip(block) {
            *flag = u8::from(is_stop::<E2>(byte));
        }
        let mut mask = [0; BLOCK / 8];
        let (words, _) = flags.as_chunks::<8>();
        for (byte, word) in mask.iter_mut().zip(words) {
            // The highest byte alone.
            *byte = (u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56) as u8;
        }
        u64::from_le_bytes(mask)
    }
}

/// What an escape stands for.
pub(super) enum Escape {
    Char(char),
    /// Half a surrogate pair.
    Lone,
    /// No escape that JSON knows; the fault is at the index given with it.
    Bad,
}

/// What a backslash and this byte stand for; 0 where it isn't that simple.
const SIMPLE: [u8; 256] = {
    let mut table = [0; 256];
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table[b'/' as usize] = b'/';
    table[b'b' as usize] = 0x08;
    table[b'f' as usize] = 0x0C;
    table[b'n' as usize] = b'\n';
    table[b'r' as usize] = b'\r';
    table[b't' as usize] = b'\t';
    table
};

/// The character that the escape of two bytes at `at` stands for, if it is one.
#[inline(always)]
pub(super) fn simple_escape(bytes: &[u8], at: usize) -> Option<u8> {
    let &letter = bytes.get(at + 1)?;
    SIMPLE
        .get(usize::from(letter))
        .copied()
        .filter(|&plain| plain != 0)
}

/// Reads the escape whose backslash is at `at`. Gives the index after it.
pub(super) fn read_escape(bytes: &[u8], at: usize) -> (Escape, usize) {
    if let Some(plain) = simple_escape(bytes, at) {
        return (Escape::Char(char::from(plain)), at + 2);
    }
    if bytes.get(at + 1) == Some(&b'u') {
        return read_unicode(bytes, at);
    }
    (Escape::Bad, at + 1)
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
    each_part(inner, |part| out.push_str(part));
}

/// Gives what the inside of a string stands for, part by part.
#[inline]
pub(super) fn each_part(inner: &str, mut give: impl FnMut(&str)) {
    let bytes = inner.as_bytes();
    let mut stops = Stops::<false>::new(bytes, 0);
    let mut start = 0;
    loop {
        let at = stops.next();
        give(inner.get(start..at).unwrap_or_default());
        if at >= bytes.len() {
            return;
        }
        if let Some(plain) = simple_escape(bytes, at) {
            give(char::from(plain).encode_utf8(&mut [0; 4]));
            stops.skip_letter();
            start = at + 2;
            continue;
        }
        let (escape, end) = read_escape(bytes, at);
        match escape {
            Escape::Char(char) => give(char.encode_utf8(&mut [0; 4])),
            Escape::Lone | Escape::Bad => give("\u{FFFD}"),
        }
        stops.skip_to(end);
        start = end;
    }
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
