//! Lines: byte 0x0A ends one, and nothing else does.

use alloc::vec::Vec;
use core::mem;

/// How lines are read: the limits of a protocol, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRules {
    /// The most bytes a line may hold, without its terminator (LF or CR LF).
    /// A line of exactly this length passes; one byte more doesn't.
    pub max_bytes: usize,
    /// What becomes of a longer line.
    pub over: OverLong,
    /// What becomes of a last line that no newline ends.
    pub tail: Tail,
}

/// What becomes of a line that is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverLong {
    /// It is thrown away up to the next newline and reported there, once, with
    /// its length; reading goes on with the next line.
    Skip,
    /// It is reported as soon as the limit is passed, and nothing is read any
    /// more.
    Fatal,
}

/// What becomes of a last line that no newline ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// It counts as a line.
    Deliver,
    /// It is given as [`SplitKind::Tail`]: a line that was cut off.
    Refuse,
}

/// Where a line stands in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its number, counted from 1. Blank lines count, too.
    pub line: u64,
    /// The offset of its first byte from the start of the stream.
    pub offset: u64,
}

/// One line, or what stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub what: SplitKind<'a>,
}

/// What the splitter found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind<'a> {
    /// A line without its LF, and without one CR before that. It may be blank
    /// ([`is_blank`](super::is_blank)) and need not be UTF-8.
    Line(&'a [u8]),
    /// A line over the limit. Its content is gone.
    TooLong {
        /// Its length in bytes without terminator; under [`OverLong::Fatal`]
        /// what had been seen of it, which is one more than the limit.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// The last line, with no newline, under [`Tail::Refuse`].
    Tail(&'a [u8]),
}

/// Cuts a stream of bytes into lines.
///
/// ```
/// use turnwire::frame::{LineRules, LineSplitter, OverLong, SplitKind, Tail};
///
/// let rules = LineRules { max_bytes: 1 << 20, over: OverLong::Skip, tail: Tail::Deliver };
/// let mut splitter = LineSplitter::new(rules);
/// let mut lines = Vec::new();
/// for mut chunk in [&b"{\"a\":1}\r\n{\"b\""[..], &b":2}\n"[..]] {
///     while let Some(split) = splitter.next(&mut chunk) {
///         if let SplitKind::Line(line) = split.what {
///             lines.push((split.place.line, String::from_utf8_lossy(line).into_owned()));
///         }
///     }
/// }
/// assert_eq!(lines, [(1, "{\"a\":1}".to_owned()), (2, "{\"b\":2}".to_owned())]);
/// assert!(splitter.finish().is_none());
/// ```
///
/// Each byte is looked at once, however the stream is cut. Memory: at most the
/// limit and one byte; nothing while an over-long line is skipped.
#[derive(Clone, Debug)]
pub struct LineSplitter {
    rules: LineRules,
    state: State,
    /// The start of the current line, from earlier chunks.
    held: Vec<u8>,
    /// `held` was lent by the last call and is done with.
    lent: bool,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Collecting a line.
    Reading,
    /// Throwing an over-long line away.
    Skipping {
        /// Its bytes so far.
        seen: u64,
        /// Whether the last of them was a CR.
        cr: bool,
    },
    /// Nothing is read any more.
    Ended,
}

impl LineSplitter {
    /// A splitter at the start of a stream.
    pub const fn new(rules: LineRules) -> Self {
        Self {
            rules,
            state: State::Reading,
            held: Vec::new(),
            lent: false,
            place: Place { line: 1, offset: 0 },
        }
    }

    /// The rules it was made with.
    pub const fn rules(&self) -> &LineRules {
        &self.rules
    }

    /// Takes the next line from `chunk` and moves `chunk` past it. `None` when
    /// the chunk is used up; what is left of it has been kept. Call until
    /// `None`, then again with the next chunk.
    ///
    /// A line that lies whole in the chunk is lent from it.
    pub fn next<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<Split<'s>> {
        self.release();
        match self.state {
            State::Ended => {
                *chunk = &[];
                None
            }
            State::Skipping { seen, cr } => self.skip(chunk, seen, cr),
            State::Reading => self.read(chunk),
        }
    }

    /// The end of the stream: gives the last line if no newline ended it, by
    /// the rule for tails. Afterwards nothing is read any more.
    pub fn finish(&mut self) -> Option<Split<'_>> {
        self.release();
        match mem::replace(&mut self.state, State::Ended) {
            State::Ended => None,
            State::Skipping { seen, cr } => {
                let place = self.advance(seen);
                Some(self.too_long(place, seen - u64::from(cr)))
            }
            State::Reading if self.held.is_empty() => None,
            State::Reading => {
                let place = self.advance(self.held.len() as u64);
                let length = strip_cr(&self.held).len();
                if length > self.rules.max_bytes {
                    return Some(self.too_long(place, length as u64));
                }
                self.lent = true;
                let line = strip_cr(&self.held);
                let what = match self.rules.tail {
                    Tail::Deliver => SplitKind::Line(line),
                    Tail::Refuse => SplitKind::Tail(line),
                };
                Some(Split { place, what })
            }
        }
    }

    fn read<'s, 'c: 's>(&'s mut self, chunk: &mut &'c [u8]) -> Option<Split<'s>> {
        let whole = *chunk;
        let Some(end) = memchr::memchr(b'\n', whole) else {
            *chunk = &[];
            return self.keep(whole);
        };
        let (line, rest) = whole.split_at(end);
        *chunk = rest.get(1..).unwrap_or_default();
        if self.held.is_empty() {
            let place = self.advance(end as u64 + 1);
            return Some(self.judge(place, strip_cr(line)));
        }
        let length = self.held.len() as u64 + end as u64;
        let place = self.advance(length + 1);
        // The buffer can't outgrow the limit: what would is only counted.
        if length > (self.rules.max_bytes as u64).saturating_add(1) {
            // At most one byte of it is held beyond the limit, so there is a byte of it in this chunk.
            let cr = u64::from(line.last() == Some(&b'\r'));
            super::reset(&mut self.held);
            return Some(self.too_long(place, length - cr));
        }
        self.held.extend_from_slice(line);
        self.lent = true;
        let length = strip_cr(&self.held).len();
        if length > self.rules.max_bytes {
            return Some(self.too_long(place, length as u64));
        }
        Some(Split {
            place,
            what: SplitKind::Line(strip_cr(&self.held)),
        })
    }

    /// Keeps the start of a line, or begins to skip it once it is certain that
    /// it is too long. The byte after the limit may still be the CR of a line
    /// that just fits.
    fn keep(&mut self, part: &[u8]) -> Option<Split<'_>> {
        let seen = self.held.len() as u64 + part.len() as u64;
        let last = part.last().or(self.held.last()).copied();
        let cr = last == Some(b'\r');
        let over = seen.saturating_sub(self.rules.max_bytes as u64);
        if over == 0 || (over == 1 && cr) {
            self.held.extend_from_slice(part);
            return None;
        }
        self.held = Vec::new();
        self.state = State::Skipping { seen, cr };
        self.give_up()
    }

    fn skip<'s, 'c: 's>(
        &'s mut self,
        chunk: &mut &'c [u8],
        seen: u64,
        cr: bool,
    ) -> Option<Split<'s>> {
        let whole = *chunk;
        let Some(end) = memchr::memchr(b'\n', whole) else {
            *chunk = &[];
            let cr = whole.last().map_or(cr, |&byte| byte == b'\r');
            self.state = State::Skipping {
                seen: seen + whole.len() as u64,
                cr,
            };
            return None;
        };
        let (line, rest) = whole.split_at(end);
        *chunk = rest.get(1..).unwrap_or_default();
        let cr = line.last().map_or(cr, |&byte| byte == b'\r');
        let length = seen + end as u64;
        self.state = State::Reading;
        let place = self.advance(length + 1);
        Some(self.too_long(place, length - u64::from(cr)))
    }

    fn judge<'s>(&mut self, place: Place, line: &'s [u8]) -> Split<'s> {
        if line.len() > self.rules.max_bytes {
            return self.too_long(place, line.len() as u64);
        }
        Split {
            place,
            what: SplitKind::Line(line),
        }
    }

    /// Under [`OverLong::Fatal`] reports the line that is being skipped now.
    fn give_up(&mut self) -> Option<Split<'_>> {
        match self.rules.over {
            OverLong::Skip => None,
            OverLong::Fatal => Some(self.too_long(self.place, 0)),
        }
    }

    fn too_long(&mut self, place: Place, bytes: u64) -> Split<'static> {
        let limit = self.rules.max_bytes;
        let bytes = match self.rules.over {
            OverLong::Skip => bytes,
            OverLong::Fatal => {
                self.state = State::Ended;
                (limit as u64).saturating_add(1)
            }
        };
        Split {
            place,
            what: SplitKind::TooLong { bytes, limit },
        }
    }

    /// The place of the line that ends here; counts on to the next one, which
    /// starts `length` bytes later.
    fn advance(&mut self, length: u64) -> Place {
        let next = Place {
            line: self.place.line + 1,
            offset: self.place.offset + length,
        };
        mem::replace(&mut self.place, next)
    }

    fn release(&mut self) {
        if mem::take(&mut self.lent) {
            super::reset(&mut self.held);
        }
    }
}

/// Takes one CR away from the end.
fn strip_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const RULES: LineRules = LineRules {
        max_bytes: 4,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    };

    fn line(split: &Split<'_>) -> Option<Vec<u8>> {
        match split.what {
            SplitKind::Line(line) => Some(line.to_vec()),
            SplitKind::TooLong { .. } | SplitKind::Tail(_) => None,
        }
    }

    #[test]
    fn a_limit_may_be_none_at_all() {
        let mut splitter = LineSplitter::new(LineRules {
            max_bytes: usize::MAX,
            ..RULES
        });
        assert!(splitter.next(&mut &b"a"[..]).is_none());
        let mut chunk = &b"b\n"[..];
        assert_eq!(
            line(&splitter.next(&mut chunk).unwrap()),
            Some(b"ab".to_vec())
        );
    }

    #[test]
    fn a_line_that_lies_whole_in_the_chunk_is_lent_from_it() {
        let bytes = b"ab\ncd\r\n";
        let mut splitter = LineSplitter::new(RULES);
        let mut chunk = &bytes[..];
        for start in [0, 3] {
            let split = splitter.next(&mut chunk).unwrap();
            let SplitKind::Line(line) = split.what else {
                panic!("{split:?}")
            };
            assert_eq!(line.as_ptr(), bytes[start..].as_ptr());
            assert_eq!(line.len(), 2);
        }
        assert!(splitter.next(&mut chunk).is_none());
        assert_eq!(splitter.held.capacity(), 0);
    }

    #[test]
    fn the_limit_is_exact_with_and_without_cr() {
        for end in ["\n", "\r\n"] {
            for (content, fits) in [
                ("abc", true),
                ("abcd", true),
                ("abcde", false),
                ("abcdef", false),
            ] {
                let bytes = [content, end, "z\n"].concat();
                for cut in 0..bytes.len() {
                    let mut splitter = LineSplitter::new(RULES);
                    let mut seen = vec![];
                    for mut chunk in [&bytes.as_bytes()[..cut], &bytes.as_bytes()[cut..]] {
                        while let Some(split) = splitter.next(&mut chunk) {
                            if let SplitKind::TooLong { bytes, limit } = split.what {
                                assert_eq!((bytes, limit), (content.len() as u64, 4));
                            }
                            seen.push((split.place, line(&split)));
                        }
                    }
                    let first = fits.then(|| content.as_bytes().to_vec());
                    let next = Place {
                        line: 2,
                        offset: (content.len() + end.len()) as u64,
                    };
                    assert_eq!(
                        seen,
                        [
                            (Place { line: 1, offset: 0 }, first),
                            (next, Some(b"z".to_vec()))
                        ],
                        "{content} {end:?} {cut}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_skipped_line_takes_no_memory() {
        let mut splitter = LineSplitter::new(RULES);
        for _ in 0..1000 {
            // Not even where its last byte might be a line's end.
            let mut part = [b'x'; 1000];
            part[999] = b'\r';
            assert!(splitter.next(&mut &part[..]).is_none());
            assert_eq!(splitter.held.capacity(), 0);
        }
        let split = splitter.finish().unwrap();
        assert_eq!(
            split.what,
            SplitKind::TooLong {
                bytes: 999_999,
                limit: 4
            }
        );
        assert!(splitter.finish().is_none());
    }

    #[test]
    fn a_fatal_line_ends_the_stream_at_once() {
        let mut splitter = LineSplitter::new(LineRules {
            over: OverLong::Fatal,
            ..RULES
        });
        let mut chunk = &b"abcdefgh"[..];
        let split = splitter.next(&mut chunk).unwrap();
        assert_eq!(split.what, SplitKind::TooLong { bytes: 5, limit: 4 });
        assert_eq!(split.place, Place { line: 1, offset: 0 });
        let mut chunk = &b"ij\nk\n"[..];
        assert!(splitter.next(&mut chunk).is_none());
        assert!(chunk.is_empty());
        assert!(splitter.finish().is_none());
    }

    #[test]
    fn a_last_line_without_newline_follows_the_rule() {
        for (tail, what) in [
            (Tail::Deliver, SplitKind::Line(b"ab")),
            (Tail::Refuse, SplitKind::Tail(b"ab")),
        ] {
            let mut splitter = LineSplitter::new(LineRules { tail, ..RULES });
            assert!(splitter.next(&mut &b"ab"[..]).is_none());
            assert_eq!(splitter.finish().unwrap().what, what);
            assert!(splitter.finish().is_none());
        }
    }

    #[test]
    fn a_last_line_has_its_limit_whatever_ends_it() {
        for (last, fits) in [
            ("abcd", true),
            ("abcd\r", true),
            ("abcde", false),
            ("abcde\r", false),
        ] {
            let mut splitter = LineSplitter::new(RULES);
            assert!(splitter.next(&mut last.as_bytes()).is_none());
            let bytes = last.trim_end().as_bytes();
            let what = if fits {
                SplitKind::Line(bytes)
            } else {
                let (bytes, limit) = (bytes.len() as u64, 4);
                SplitKind::TooLong { bytes, limit }
            };
            assert_eq!(splitter.finish().unwrap().what, what, "{last:?}");
        }
        // Nothing came, or a line that is over: there is no last line.
        let mut splitter = LineSplitter::new(RULES);
        assert!(splitter.finish().is_none());
        let mut splitter = LineSplitter::new(RULES);
        assert!(splitter.next(&mut &b"a\n"[..]).is_some());
        assert!(splitter.finish().is_none());
    }

    #[test]
    fn the_length_of_a_long_line_is_without_its_cr_wherever_it_was_cut() {
        for (line, length) in [("abcdefgh\r\n", 8), ("abcdefgh\n", 8), ("abcdefg\r\r\n", 8)] {
            for first in 0..line.len() {
                for second in first..line.len() {
                    let mut splitter = LineSplitter::new(RULES);
                    let mut lengths = vec![];
                    let (start, rest) = line.split_at(second);
                    let (start, middle) = start.split_at(first);
                    for mut chunk in [start, middle, rest].map(str::as_bytes) {
                        while let Some(split) = splitter.next(&mut chunk) {
                            let SplitKind::TooLong { bytes, .. } = split.what else {
                                panic!("{split:?}")
                            };
                            lengths.push(bytes);
                        }
                    }
                    assert_eq!(lengths, [length], "{line:?} {first} {second}");
                }
            }
        }
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut splitter = LineSplitter::new(LineRules {
            max_bytes: 1 << 20,
            ..RULES
        });
        assert!(splitter.next(&mut &vec![b'x'; 1 << 20][..]).is_none());
        assert!(splitter.next(&mut &b"\n"[..]).is_some());
        assert!(splitter.next(&mut &b""[..]).is_none());
        assert_eq!(splitter.held.capacity(), 0);
    }
}
