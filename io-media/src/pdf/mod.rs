//! PDFs: whether one has the structure of a PDF, shows pages, and can do nothing else.
//!
//! The file is read once, token by token, and nothing of it is kept but where its objects begin: a library that builds
//! the whole document takes many times its size. Every object counts, also one that nothing refers to, and every object
//! must be found where the file says that it is. A reader that follows the file's references thus can't come upon anything
//! that wasn't looked at here.
//!
//! What is drawn on a page isn't looked at.

mod lexer;
mod stream;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;

use crate::{Limits, Refused};
use lexer::{Lexer, Token, is_space};
use stream::Budget;
use value::{Kind, Top};

/// The most objects of a file.
const MOST_OBJECTS: usize = 200_000;

/// Whether the file is one that is taken.
///
/// # Errors
/// [`Refused::Malformed`] if its structure is broken, [`Refused::Rejected`] if it has too many pages or objects,
/// [`Refused::Unsupported`] if it is encrypted, or holds code, files or forms.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), Refused> {
    let version = bytes.strip_prefix(b"%PDF-").ok_or(Refused::Mime)?;
    let is_known = matches!(
        version,
        [b'1', b'.', b'0'..=b'7', ..] | [b'2', b'.', b'0', ..]
    );
    if !is_known {
        return Err(Refused::Unsupported);
    }
    let last = bytes.iter().rposition(|byte| !is_space(*byte));
    let whole = bytes.get(..=last.unwrap_or(0)).unwrap_or_default();
    if !whole.ends_with(b"%%EOF") {
        return Err(Refused::Malformed);
    }
    let mut scan = Scan {
        bytes,
        limits,
        lexer: Lexer::new(bytes),
        budget: Budget::new(),
        found: Found::default(),
    };
    scan.file()?;
    scan.found.agree(limits)
}

/// Reads a file from its beginning to its end.
struct Scan<'a> {
    bytes: &'a [u8],
    limits: &'a Limits,
    lexer: Lexer<'a>,
    budget: Budget,
    found: Found,
}

/// What was found.
#[derive(Debug, Default)]
struct Found {
    /// Where objects begin, and their numbers.
    objects: BTreeMap<u64, u64>,
    /// Where objects should begin, and their numbers, by tables and streams of references.
    referred: Vec<(u64, u64)>,
    /// Where tables and streams of references begin.
    tables: BTreeSet<u64>,
    /// Where the last one is said to begin.
    start: Option<u64>,
    has_root: bool,
    has_catalog: bool,
    pages: BTreeSet<u64>,
    /// References to pages, for each node of the tree.
    kids: BTreeMap<u64, u64>,
}

impl<'a> Scan<'a> {
    fn file(&mut self) -> Result<(), Refused> {
        loop {
            self.lexer.skip_space();
            let begun = self.lexer.at() as u64;
            match self.lexer.next()? {
                Token::End => return Ok(()),
                Token::Int(number) => {
                    let number = u64::try_from(number).map_err(|_| Refused::Malformed)?;
                    self.object(number, begun)?;
                }
                Token::Word(b"xref") => {
                    self.found.tables.insert(begun);
                    self.table()?;
                }
                Token::Word(b"trailer") => {
                    let trailer = value::read(&mut self.lexer)?;
                    self.found.has_root |= trailer.has_root;
                }
                Token::Word(b"startxref") => self.found.start = Some(self.lexer.count()?),
                Token::Real
                | Token::Name(_)
                | Token::Text
                | Token::ArrayOpen
                | Token::ArrayClose
                | Token::DictOpen
                | Token::DictClose
                | Token::Word(_) => return Err(Refused::Malformed),
            }
        }
    }

    fn object(&mut self, number: u64, begun: u64) -> Result<(), Refused> {
        self.lexer.count()?;
        self.word(b"obj")?;
        if self.found.objects.len() >= MOST_OBJECTS {
            return Err(Refused::Rejected);
        }
        self.found.objects.insert(begun, number);
        let top = value::read(&mut self.lexer)?;
        self.found.take(number, &top, self.limits)?;
        let end = self.lexer.next()?;
        if end == Token::Word(b"endobj") {
            return Ok(());
        }
        if end != Token::Word(b"stream") || !top.is_dict {
            return Err(Refused::Malformed);
        }
        let data = self.stream_data(&top)?;
        match top.kind {
            Kind::Objects => self.inner_objects(data, &top)?,
            Kind::References => {
                self.found.tables.insert(begun);
                self.found.has_root |= top.has_root;
                self.references(data, &top)?;
            }
            Kind::Other | Kind::Catalog | Kind::Pages | Kind::Page => {}
        }
        self.word(b"endobj")
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), Refused> {
        if self.lexer.next()? == Token::Word(word) {
            Ok(())
        } else {
            Err(Refused::Malformed)
        }
    }

    /// The bytes between `stream` and `endstream`.
    fn stream_data(&mut self, top: &Top) -> Result<&'a [u8], Refused> {
        let rest = self.lexer.rest();
        let begun = match rest {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => return Err(Refused::Malformed),
        } + self.lexer.at();
        let body = self.bytes.get(begun..).unwrap_or_default();
        // Its length may stand in another object, and may be wrong.
        let said = top.length.and_then(|length| usize::try_from(length).ok());
        let ends = |length: &usize| {
            let behind = body.get(*length..).unwrap_or_default();
            let spaces = behind.iter().take_while(|byte| is_space(**byte)).count();
            let behind = behind.get(spaces..).unwrap_or_default();
            spaces <= 2 && behind.starts_with(b"endstream")
        };
        let length = match said.filter(ends) {
            Some(length) => length,
            None => memmem::find(body, b"endstream").ok_or(Refused::Malformed)?,
        };
        self.lexer.go_to(begun + length);
        self.word(b"endstream")?;
        Ok(body.get(..length).unwrap_or_default())
    }

    /// The objects of a stream of objects: pairs of numbers and places, then one value behind the other.
    fn inner_objects(&mut self, data: &[u8], top: &Top) -> Result<(), Refused> {
        let bytes = self.budget.decode(data, top)?;
        let (Some(count), Some(first)) = (top.count, top.first) else {
            return Err(Refused::Malformed);
        };
        if count > MOST_OBJECTS as u64 {
            return Err(Refused::Rejected);
        }
        let mut lexer = Lexer::new(&bytes);
        let mut places = BTreeMap::new();
        for _ in 0..count {
            let (number, place) = (lexer.count()?, lexer.count()?);
            places.insert(place.saturating_add(first), number);
        }
        if lexer.at() as u64 > first {
            return Err(Refused::Malformed);
        }
        lexer.go_to(usize::try_from(first).map_err(|_| Refused::Malformed)?);
        loop {
            lexer.skip_space();
            let begun = lexer.at() as u64;
            if lexer.rest().is_empty() {
                break;
            }
            let top = value::read(&mut lexer)?;
            if let Some(number) = places.remove(&begun) {
                self.found.take(number, &top, self.limits)?;
            }
        }
        // One that begins within another would be read as something else than it was here.
        if places.is_empty() {
            Ok(())
        } else {
            Err(Refused::Malformed)
        }
    }

    /// A table of references: sections of a first number and a count, and then a line for each.
    fn table(&mut self) -> Result<(), Refused> {
        loop {
            let before = self.lexer.clone();
            let Token::Int(first) = self.lexer.next()? else {
                self.lexer = before;
                return Ok(());
            };
            let mut number = u64::try_from(first).map_err(|_| Refused::Malformed)?;
            for _ in 0..self.lexer.count()? {
                let place = self.lexer.count()?;
                self.lexer.count()?;
                let used = self.lexer.next()?;
                if used == Token::Word(b"n") {
                    self.found.refer(place, number)?;
                } else if used != Token::Word(b"f") {
                    return Err(Refused::Malformed);
                }
                number = number.saturating_add(1);
            }
        }
    }

    /// A stream of references: three numbers for each, as wide as its dictionary says.
    fn references(&mut self, data: &[u8], top: &Top) -> Result<(), Refused> {
        let bytes = self.budget.decode(data, top)?;
        let widths: Vec<usize> = top
            .widths
            .iter()
            .map(|width| usize::try_from(*width).unwrap_or(usize::MAX))
            .collect();
        let [kind, place, third] = *widths else {
            return Err(Refused::Malformed);
        };
        if kind > 1 || place > 8 || third > 8 {
            return Err(Refused::Malformed);
        }
        let size = top.size.unwrap_or(0);
        let index = if top.index.is_empty() {
            vec![0, size]
        } else {
            top.index.clone()
        };
        let numbers = index.chunks_exact(2).flat_map(|pair| match pair {
            [first, count] => *first..first.saturating_add(*count),
            _ => 0..0,
        });
        let number_of = |bytes: &[u8]| {
            let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
            bytes.iter().fold(0, add)
        };
        let width = (kind + place + third).max(1);
        for (number, entry) in numbers.zip(bytes.chunks_exact(width)) {
            let (of_kind, rest) = entry.split_at(kind.min(entry.len()));
            let (place, _) = rest.split_at(place.min(rest.len()));
            if of_kind.is_empty() || of_kind == [1] {
                self.found.refer(number_of(place), number)?;
            }
        }
        Ok(())
    }
}

impl Found {
    /// An object, wherever it was.
    fn take(&mut self, number: u64, top: &Top, limits: &Limits) -> Result<(), Refused> {
        let most = u64::from(limits.pdf_pages);
        match top.kind {
            Kind::Catalog => self.has_catalog = true,
            Kind::Page => {
                self.pages.insert(number);
            }
            Kind::Pages => {
                let said = top.pages.unwrap_or(0);
                if u64::try_from(said).map_err(|_| Refused::Malformed)? > most {
                    return Err(Refused::Rejected);
                }
                self.kids.insert(number, top.kids);
            }
            Kind::Other | Kind::Objects | Kind::References => {}
        }
        if self.pages.len() as u64 > most || self.kids.len() as u64 > most {
            return Err(Refused::Rejected);
        }
        Ok(())
    }

    fn refer(&mut self, place: u64, number: u64) -> Result<(), Refused> {
        // Writers that leave an object out say that it is at the beginning.
        if place == 0 {
            return Ok(());
        }
        if self.referred.len() >= 2 * MOST_OBJECTS {
            return Err(Refused::Rejected);
        }
        self.referred.push((place, number));
        Ok(())
    }

    /// Whether all of it fits together.
    fn agree(&self, limits: &Limits) -> Result<(), Refused> {
        let begins = self.start.is_some_and(|start| self.tables.contains(&start));
        let is_there = |(place, number): &(u64, u64)| self.objects.get(place) == Some(number);
        let is_whole = begins
            && self.has_root
            && self.has_catalog
            && !self.pages.is_empty()
            && self.referred.iter().all(is_there);
        if !is_whole {
            return Err(Refused::Malformed);
        }
        // A page that comes twice is shown twice. Each node but the first is somebody's kid.
        let shown = self
            .kids
            .values()
            .fold(0_u64, |sum, kids| sum.saturating_add(*kids));
        let nodes = (self.kids.len() as u64).saturating_sub(1);
        if shown.saturating_sub(nodes) > u64::from(limits.pdf_pages) {
            return Err(Refused::Rejected);
        }
        Ok(())
    }
}
