//! A text in pieces.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Class, Found, MASK, Secrets};

/// A text that comes in pieces, of which what can't be part of a secret is given on at once.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// The tail that may begin a secret.
    held: Held,
    /// What stands before it.
    before: Option<u8>,
    /// A secret was found that may go on.
    swallowing: Option<Class>,
    found: u64,
}

/// A text as it is read, and as it was written.
#[derive(Clone, Debug, Default)]
struct Held {
    plain: String,
    /// The same with its escapes; empty if it has none.
    raw: String,
    /// Where escapes end: in the plain text, and in the raw one.
    escapes: Vec<(usize, usize)>,
}

impl Held {
    fn push(&mut self, plain: &str) {
        self.plain.push_str(plain);
        if !self.escapes.is_empty() {
            self.raw.push_str(plain);
        }
    }

    fn push_escape(&mut self, char: char, raw: &str) {
        if self.escapes.is_empty() {
            self.raw.clear();
            self.raw.push_str(&self.plain);
        }
        self.plain.push(char);
        self.raw.push_str(raw);
        self.escapes.push((self.plain.len(), self.raw.len()));
    }

    /// Where a place of the plain text is in the raw one.
    fn raw_at(&self, plain: usize) -> usize {
        let before = self.escapes.iter().take_while(|(end, _)| *end <= plain);
        before
            .last()
            .map_or(plain, |(end, raw)| raw + (plain - end))
    }

    /// Takes the first bytes off, and gives them as they were written.
    fn take(&mut self, bytes: usize, out: &mut String) {
        let raw = self.raw_at(bytes);
        let written = if self.escapes.is_empty() {
            &self.plain
        } else {
            &self.raw
        };
        out.push_str(written.get(..raw).unwrap_or_default());
        self.drop(bytes);
    }

    fn drop(&mut self, bytes: usize) {
        let raw = self.raw_at(bytes);
        self.plain.drain(..bytes);
        if self.escapes.is_empty() {
            return;
        }
        self.raw.drain(..raw);
        self.escapes.retain_mut(|(end, raw_end)| {
            let stays = *end > bytes;
            *end = end.saturating_sub(bytes);
            *raw_end = raw_end.saturating_sub(raw);
            stays
        });
    }
}

impl Stream {
    /// Takes a piece, and appends what can be given on.
    pub fn push(&mut self, secrets: &Secrets, piece: &str, out: &mut String) {
        let piece = self.swallow(piece);
        if self.held.plain.is_empty() {
            // Most pieces have nothing that a secret could begin with.
            let begins = |byte: u8| secrets.first.get(usize::from(byte)).is_some_and(|yes| *yes);
            let Some(at) = piece.bytes().position(begins) else {
                if let Some(last) = piece.as_bytes().last() {
                    self.before = Some(*last);
                }
                out.push_str(piece);
                return;
            };
            let (clear, rest) = piece.split_at(floor(piece, at));
            if let Some(last) = clear.as_bytes().last() {
                self.before = Some(*last);
            }
            out.push_str(clear);
            self.held.push(rest);
        } else {
            self.held.push(piece);
        }
        self.settle(secrets, false, out);
    }

    /// Takes one character that is written as an escape.
    pub(super) fn push_escape(
        &mut self,
        secrets: &Secrets,
        char: char,
        raw: &str,
        out: &mut String,
    ) {
        if let Some(class) = self.swallowing {
            if u8::try_from(char).is_ok_and(|byte| byte.is_ascii() && class.has(byte)) {
                return;
            }
            self.swallowing = None;
        }
        self.held.push_escape(char, raw);
        self.settle(secrets, false, out);
    }

    /// The text is over: gives what was held back.
    pub fn finish(&mut self, secrets: &Secrets, out: &mut String) {
        self.settle(secrets, true, out);
        self.swallowing = None;
        self.before = None;
    }

    /// How many secrets were found so far.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Bytes that are held back.
    pub fn held(&self) -> usize {
        self.held.plain.len()
    }

    /// What is left of a piece behind the rest of a secret.
    fn swallow<'a>(&mut self, piece: &'a str) -> &'a str {
        let Some(class) = self.swallowing else {
            return piece;
        };
        let end = piece
            .bytes()
            .position(|byte| !class.has(byte))
            .unwrap_or(piece.len());
        if end < piece.len() {
            self.swallowing = None;
        }
        // Characters of a class are one byte long.
        piece.get(end..).unwrap_or_default()
    }

    fn settle(&mut self, secrets: &Secrets, last: bool, out: &mut String) {
        let mut at = 0;
        while at < self.held.plain.len() {
            let bytes = self.held.plain.as_bytes();
            let before = match at.checked_sub(1) {
                Some(index) => bytes.get(index).copied(),
                None => self.before,
            };
            match secrets.at(before, bytes.get(at..).unwrap_or_default(), last) {
                Found::Nothing => at += 1,
                Found::Begun => break,
                Found::Secret { keep, bytes, more } => {
                    self.give(at + keep, out);
                    out.push_str(MASK);
                    self.found += 1;
                    self.skip(bytes - keep);
                    self.swallowing = more;
                    self.skip_class();
                    at = 0;
                }
            }
        }
        // A place within a character is never the beginning of a secret.
        let clear = floor(&self.held.plain, at);
        self.give(clear, out);
    }

    /// Gives the first bytes on.
    fn give(&mut self, bytes: usize, out: &mut String) {
        if bytes > 0 {
            self.before = self.held.plain.as_bytes().get(bytes - 1).copied();
            self.held.take(bytes, out);
        }
    }

    fn skip(&mut self, bytes: usize) {
        if bytes > 0 {
            self.before = self.held.plain.as_bytes().get(bytes - 1).copied();
            self.held.drop(bytes);
        }
    }

    /// Takes off what is held of the rest of a secret.
    fn skip_class(&mut self) {
        let Some(class) = self.swallowing else { return };
        let held = self.held.plain.as_bytes();
        let end = held
            .iter()
            .position(|byte| !class.has(*byte))
            .unwrap_or(held.len());
        if end < held.len() {
            self.swallowing = None;
        }
        self.skip(end);
    }
}

/// The last border of a character at or before a place.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
