//! Bounded text out of unbounded bytes: the head and the tail of an output are kept, bytes that are
//! no UTF-8 become U+FFFD, and no character is ever cut in two.

use std::collections::VecDeque;

/// U+FFFD, what stands for bytes that are no UTF-8.
const MARK: char = char::REPLACEMENT_CHARACTER;

/// The first and the last bytes of a stream, in constant memory.
///
/// Holds at most `2 * limit` bytes: either half alone may have to fill the whole limit, which is
/// known only when the streams that share it have ended.
#[derive(Debug)]
pub(crate) struct HeadTail {
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl HeadTail {
    /// Keeps at least `limit` bytes of what is pushed.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.limit - self.head.len().min(self.limit);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let keep = rest.len().min(self.limit);
        let overflow = (self.tail.len() + keep).saturating_sub(self.limit);
        self.tail.drain(..overflow.min(self.tail.len()));
        self.tail.extend(rest.split_at(rest.len() - keep).1);
    }

    /// Bytes pushed so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Forgets everything, keeps the limit.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.tail.clear();
        self.total = 0;
    }

    /// How many bytes of UTF-8 the whole stream takes as text; an upper bound once bytes were dropped.
    pub(crate) fn text_len(&mut self) -> usize {
        if self.is_whole() {
            return text_len(self.whole());
        }
        usize::try_from(self.total).unwrap_or(usize::MAX)
    }

    /// The stream as text of at most `max` bytes, and how much was left out of its middle.
    pub(crate) fn render(&mut self, max: usize) -> Rendered {
        let total = self.total;
        if self.is_whole() {
            let bytes = self.whole();
            let invalid = std::str::from_utf8(bytes).is_err();
            if text_len(bytes) <= max {
                return Rendered {
                    text: String::from_utf8_lossy(bytes).into_owned(),
                    left_out: 0,
                    invalid,
                };
            }
            return cut(bytes, bytes, total, max, invalid);
        }
        let tail = self.tail.make_contiguous();
        // Where the tail begins, a character may lack its first bytes: they were dropped, they aren't bad.
        let skip = tail
            .iter()
            .take(3)
            .take_while(|&&b| is_continuation(b))
            .count();
        let tail = tail.get(skip..).unwrap_or_default();
        let head = whole_characters(&self.head);
        let invalid = std::str::from_utf8(head).is_err() || std::str::from_utf8(tail).is_err();
        cut(head, tail, total, max, invalid)
    }

    /// Writes the bytes of the stream; `false`: some were dropped, and a mark stands for them.
    pub(crate) fn write_to(&mut self, bytes: &mut Vec<u8>) -> bool {
        let whole = self.is_whole();
        if whole {
            bytes.extend_from_slice(self.whole());
        } else {
            let max = self.limit.saturating_mul(2);
            bytes.extend_from_slice(self.render(max).text.as_bytes());
        }
        whole
    }

    /// Whether nothing was dropped.
    fn is_whole(&self) -> bool {
        self.total == (self.head.len() + self.tail.len()) as u64
    }

    /// All bytes in one piece; only if nothing was dropped. The head may be longer than the limit then:
    /// it takes nothing more.
    fn whole(&mut self) -> &[u8] {
        if !self.tail.is_empty() {
            self.head.extend(self.tail.drain(..));
        }
        &self.head
    }
}

/// Text made of a bounded stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// What is shown, with the mark where something was left out.
    pub(crate) text: String,
    /// Bytes of the stream that aren't shown.
    pub(crate) left_out: u64,
    /// Whether a shown part had bytes that are no UTF-8.
    pub(crate) invalid: bool,
}

/// Joins the front of `head` and the back of `tail`, `max` bytes of text in all (the mark apart).
fn cut(head: &[u8], tail: &[u8], total: u64, max: usize, invalid: bool) -> Rendered {
    let (front, from_head) = take_front(head, max / 2);
    let (back, from_tail) = take_back(tail, max - max / 2);
    let left_out = total.saturating_sub((from_head + from_tail) as u64);
    let gap = if front.is_empty() || front.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Rendered {
        text: format!("{front}{gap}{}{back}", left_out_mark(left_out)),
        left_out,
        invalid,
    }
}

/// The line that stands where bytes were left out.
fn left_out_mark(bytes: u64) -> String {
    format!("[... {bytes} bytes left out ...]\n")
}

/// Bytes of UTF-8 that `bytes` take as text.
fn text_len(bytes: &[u8]) -> usize {
    pieces(bytes).map(|(c, _)| c.len_utf8()).sum()
}

/// The characters of `bytes`, each with the number of bytes it was made of.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = (char, usize)> + '_ {
    bytes.utf8_chunks().flat_map(|chunk| {
        let bad = chunk.invalid().len();
        chunk
            .valid()
            .chars()
            .map(|c| (c, c.len_utf8()))
            .chain((bad > 0).then_some((MARK, bad)))
    })
}

/// As many characters from the front as fit in `max` bytes of text, and the bytes used up.
fn take_front(bytes: &[u8], max: usize) -> (String, usize) {
    let mut text = String::new();
    let mut used = 0;
    for (c, len) in pieces(bytes) {
        if text.len() + c.len_utf8() > max {
            break;
        }
        text.push(c);
        used += len;
    }
    (text, used)
}

/// As many characters from the back as fit in `max` bytes of text, and the bytes used up.
fn take_back(bytes: &[u8], max: usize) -> (String, usize) {
    let mut rest = text_len(bytes);
    let mut text = String::new();
    let mut used = 0;
    for (c, len) in pieces(bytes) {
        if rest > max {
            rest -= c.len_utf8();
        } else {
            text.push(c);
            used += len;
        }
    }
    (text, used)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// `bytes` without a character at their end whose last bytes are missing.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    bytes.split_at(bytes.len() - unfinished(bytes)).0
}

/// How many bytes at the end begin a character that more bytes could complete.
fn unfinished(bytes: &[u8]) -> usize {
    let window = bytes.split_at(bytes.len().saturating_sub(3)).1;
    let Some(back) = window.iter().rev().position(|&b| !is_continuation(b)) else {
        return 0;
    };
    let start = window.split_at(window.len() - back - 1).1;
    match std::str::from_utf8(start) {
        Err(e) if e.error_len().is_none() => start.len(),
        _ => 0,
    }
}

/// Passes bytes on in whole characters: one that is split over two reads waits for its end.
#[derive(Debug, Default)]
pub(crate) struct WholeCharacters {
    held: Vec<u8>,
}

impl WholeCharacters {
    /// Gives everything up to the last whole character to `out`.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut HeadTail) {
        self.held.extend_from_slice(bytes);
        let end = self.held.len() - unfinished(&self.held);
        out.push(self.held.split_at(end).0);
        self.held.drain(..end);
    }
}

/// The longest front of `text` of at most `max` bytes that ends between two characters.
pub(crate) fn front(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.split_at(end).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(bytes: &[u8], limit: usize) -> Rendered {
        let mut kept = HeadTail::new(limit);
        kept.push(bytes);
        kept.render(limit)
    }

    #[test]
    fn exactly_the_limit_is_whole_and_one_more_byte_is_cut() {
        let whole = render(b"0123456789", 10);
        assert_eq!((whole.text.as_str(), whole.left_out), ("0123456789", 0));
        let cut = render(b"0123456789a", 10);
        assert_eq!(cut.text, "01234\n[... 1 bytes left out ...]\n6789a");
        assert_eq!(cut.left_out, 1);
    }

    #[test]
    fn memory_is_bounded_and_the_ends_are_kept() {
        let mut kept = HeadTail::new(8);
        for _ in 0..1000 {
            kept.push(b"abcdefghijklmnopqrstuvwxyz");
        }
        assert!(kept.head.len() + kept.tail.len() <= 16);
        let r = kept.render(8);
        assert_eq!(r.text, "abcd\n[... 25992 bytes left out ...]\nwxyz");
        assert_eq!(r.left_out, 25_992);
    }

    #[test]
    fn the_result_is_the_same_for_every_cut_into_reads() {
        let input = "äöü 😀 ß€ plain text, then 漢字 and more".as_bytes();
        for limit in 0..=input.len() + 1 {
            let want = render(input, limit);
            for at in 0..=input.len() {
                let mut kept = HeadTail::new(limit);
                kept.push(&input[..at]);
                kept.push(&input[at..]);
                assert_eq!(kept.render(limit), want, "limit {limit}, cut at {at}");
            }
            let mut kept = HeadTail::new(limit);
            for byte in input {
                kept.push(&[*byte]);
            }
            assert_eq!(kept.render(limit), want);
            assert!(!want.text.contains(MARK), "{}", want.text);
            assert!(!want.invalid);
        }
    }

    #[test]
    fn what_is_shown_and_what_is_left_out_add_up() {
        let input = "aé漢😀".repeat(20);
        for limit in 0..input.len() {
            let r = render(input.as_bytes(), limit);
            let mark = left_out_mark(r.left_out);
            let (front, back) = r.text.split_once(&mark).expect("a mark");
            let front = front.strip_suffix('\n').unwrap_or(front);
            assert!(front.len() + back.len() <= limit);
            assert_eq!(
                (front.len() + back.len()) as u64 + r.left_out,
                input.len() as u64
            );
            assert!(input.starts_with(front) && input.ends_with(back));
        }
    }

    #[test]
    fn bad_bytes_show_as_replacement_and_count_as_text() {
        let r = render(b"a\xffb\xf0\x9fc\n", 100);
        assert_eq!(r.text, "a\u{fffd}b\u{fffd}c\n");
        assert!(r.invalid);
        // Ten bad bytes are thirty bytes of text: the bound holds for the text.
        let r = render(&[0xff; 10], 10);
        assert_eq!(r.left_out, 8);
        assert_eq!(r.text.matches(MARK).count(), 2);
    }

    #[test]
    fn a_character_over_two_reads_is_passed_on_whole() {
        let text = "é漢😀x".as_bytes();
        for at in 0..=text.len() {
            let (mut whole, mut out) = (WholeCharacters::default(), HeadTail::new(100));
            whole.push(&text[..at], &mut out);
            assert!(!out.render(100).invalid, "cut at {at}");
            whole.push(&text[at..], &mut out);
            assert_eq!(out.render(100).text, "é漢😀x");
        }
        // Bad bytes aren't held back.
        let (mut whole, mut out) = (WholeCharacters::default(), HeadTail::new(100));
        whole.push(b"\xa9\xa9\xa9\xa9", &mut out);
        assert_eq!(out.total(), 4);
    }

    #[test]
    fn front_ends_between_characters() {
        assert_eq!(front("aé", 2), "a");
        assert_eq!(front("aé", 3), "aé");
        assert_eq!(front("", 3), "");
    }
}
