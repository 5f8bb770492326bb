//! What a scan leaves, and what it remembers for the next line.

use alloc::string::String;
use alloc::vec::Vec;

use super::scan::ScanRules;

/// What a scan finds and needs: the members of the top-level object, and
/// working memory. Reuse one for many lines: it allocates nothing once warm,
/// and gives back what an unusually large line took.
///
/// It also remembers how the last line began. Lines of a stream resemble each
/// other: of a line that carries a token often only the last value is new. A
/// line that begins with the same bytes has the same first members, so the
/// scan goes on from where the two part. That changes no result;
/// [`Members::without_memory`] turns it off.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Names of all objects open now; those of the top-level object come first
    /// and stay.
    pub(super) names: Vec<Name>,
    /// The values of the top-level members.
    pub(super) values: Vec<Value>,
    /// Names that are spelled with escapes, decoded, end to end.
    pub(super) decoded: String,
    /// The objects and arrays below the top that are open now.
    pub(super) open: Vec<Open>,
    pub(super) order: Vec<u32>,
    /// How the last line began, if its members are still here.
    head: Vec<u8>,
    /// Counts the changes of the names from one line to the next.
    shape: u64,
    /// The number of names that the last line had, and of those of them that this one surely has.
    had: usize,
    kept: usize,
    /// The rules that it was scanned by.
    rules: Option<ScanRules>,
    forgetful: bool,
}

/// How much of a line's beginning is remembered.
const HEAD: usize = 256;

/// The most members, and the most bytes of names, that are kept warm.
const WARM: usize = 1024;

impl Members {
    /// Empty; allocates nothing.
    pub const fn new() -> Self {
        Self {
            names: Vec::new(),
            values: Vec::new(),
            decoded: String::new(),
            open: Vec::new(),
            order: Vec::new(),
            head: Vec::new(),
            shape: 0,
            had: 0,
            kept: 0,
            rules: None,
            forgetful: false,
        }
    }

    /// Empty, and scans each line from its beginning.
    pub const fn without_memory() -> Self {
        let mut members = Self::new();
        members.forgetful = true;
        members
    }

    /// A number that is the same for two lines only if they have the same names in the same order.
    pub(super) fn shape(&self) -> u64 {
        self.shape
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The name and value of a member of the last object scanned, which was
    /// `text`.
    #[inline]
    pub(super) fn get<'m, 'a: 'm>(
        &'m self,
        text: &'a str,
        index: usize,
    ) -> Option<(NameText<'m, 'a>, Value)> {
        let name = self.names.get(index)?;
        let span = name.start..name.end;
        let name = if name.escaped {
            NameText::Decoded(self.decoded.get(span)?)
        } else {
            NameText::Borrowed(text.get(span)?)
        };
        Some((name, *self.values.get(index)?))
    }

    /// The value of the member of this name.
    #[inline]
    pub(super) fn find(&self, text: &str, name: &str) -> Option<Value> {
        let is_it = |found: &Name| {
            let source = if found.escaped {
                self.decoded.as_bytes()
            } else {
                text.as_bytes()
            };
            found.end - found.start == name.len()
                && source.get(found.start..found.end) == Some(name.as_bytes())
        };
        let index = self.names.iter().position(is_it)?;
        self.values.get(index).copied()
    }

    /// Begins a line. Gives the number of bytes that it shares with the last
    /// one, and where to go on: at the last value of which the name and all
    /// before it are shared. Names and values before that are kept.
    #[inline]
    pub(super) fn resume(&mut self, line: &[u8], rules: &ScanRules) -> (usize, Option<usize>) {
        let known = if self.rules == Some(*rules) {
            common_prefix(&self.head, line)
        } else {
            0
        };
        self.had = self.names.len();
        self.kept = 0;
        let Some(last) = self.values.iter().rposition(|value| value.start <= known) else {
            self.clear();
            return (0, None);
        };
        self.kept = last + 1;
        let at = self.values.get(last).map(|value| value.start);
        self.names.truncate(last + 1);
        self.values.truncate(last);
        let decoded = self
            .names
            .iter()
            .rev()
            .find(|name| name.escaped)
            .map_or(0, |name| name.end);
        self.decoded.truncate(decoded);
        // Nothing to do for what is no larger than that.
        self.names.shrink_to(WARM);
        self.values.shrink_to(WARM);
        self.decoded.shrink_to(WARM);
        clear(&mut self.open);
        clear(&mut self.order);
        (known, at)
    }

    /// Remembers a line that was scanned; `known` bytes of it were shared.
    #[inline]
    pub(super) fn remember(&mut self, line: &[u8], rules: &ScanRules, known: usize) {
        if self.kept < self.had || self.names.len() != self.had || self.had == 0 {
            self.shape += 1;
        }
        if self.forgetful {
            return;
        }
        self.rules = Some(*rules);
        self.head.truncate(known);
        self.head
            .extend_from_slice(line.get(known..line.len().min(HEAD)).unwrap_or_default());
    }

    /// Forgets all; keeps the memory unless it is large.
    pub(super) fn clear(&mut self) {
        clear(&mut self.names);
        clear(&mut self.values);
        clear(&mut self.open);
        clear(&mut self.order);
        if self.decoded.capacity() > WARM {
            self.decoded = String::new();
        }
        self.decoded.clear();
        self.head.clear();
        self.rules = None;
    }
}

fn clear<T>(items: &mut Vec<T>) {
    if items.capacity() > WARM {
        *items = Vec::new();
    }
    items.clear();
}

/// The number of bytes that both begin with.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, _) = b.as_chunks::<8>();
    let mut at = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return at + (differ.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let a_rest = a.get(at..).unwrap_or(a_rest);
    let b_rest = b.get(at..).unwrap_or_default();
    at + a_rest
        .iter()
        .zip(b_rest)
        .take_while(|(a, b)| a == b)
        .count()
}

/// A member's name: lent from the line, or decoded.
#[derive(Clone, Copy)]
pub(super) enum NameText<'m, 'a> {
    Borrowed(&'a str),
    Decoded(&'m str),
}

impl<'m, 'a: 'm> NameText<'m, 'a> {
    #[inline]
    pub(super) fn as_str(self) -> &'m str {
        match self {
            Self::Borrowed(name) => name,
            Self::Decoded(name) => name,
        }
    }
}

/// Where a name stands: in the text, or decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its quote in the text.
    pub(super) at: usize,
    pub(super) escaped: bool,
}

/// Where a value stands in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    /// It is a string without escapes.
    pub(super) plain: bool,
}

/// An open object or array below the top.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) is_object: bool,
    /// Where its names begin.
    pub(super) names: usize,
    /// Where its decoded names begin.
    pub(super) decoded: usize,
}
