//! The tokens of a PDF (ISO 32000, 7.2 and 7.3), one after the other, without a copy.

use std::borrow::Cow;

/// What isn't a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Int(i64),
    Real,
    /// Without its slash, and without escapes.
    Name(Cow<'a, [u8]>),
    /// A string of either spelling.
    Text,
    ArrayOpen,
    ArrayClose,
    DictOpen,
    DictClose,
    /// A keyword.
    Word(&'a [u8]),
    End,
}

/// Reads tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%'
    )
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !is_delimiter(byte)
}

impl<'a> Lexer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Lexer { bytes, at: 0 }
    }

    /// In front of which byte it stands.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Passes over white space and comments.
    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            if is_space(byte) {
                self.at += 1;
            } else if byte == b'%' {
                let line = self.rest();
                let end = memchr::memchr2(b'\n', b'\r', line).unwrap_or(line.len());
                self.at += end;
            } else {
                return;
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, Malformed> {
        self.skip_space();
        let Some(byte) = self.peek() else {
            return Ok(Token::End);
        };
        let second = self.bytes.get(self.at + 1).copied();
        let (token, width) = match (byte, second) {
            (b'[', _) => (Token::ArrayOpen, 1),
            (b']', _) => (Token::ArrayClose, 1),
            (b'<', Some(b'<')) => (Token::DictOpen, 2),
            (b'>', Some(b'>')) => (Token::DictClose, 2),
            (b'<', _) => return self.hex(),
            (b'(', _) => return self.text(),
            (b'/', _) => return self.name(),
            (b'>' | b')' | b'{' | b'}', _) => return Err(Malformed),
            _ => return self.word(),
        };
        self.at += width;
        Ok(token)
    }

    fn hex(&mut self) -> Result<Token<'a>, Malformed> {
        let body = self.rest().get(1..).unwrap_or_default();
        let end = memchr::memchr(b'>', body).ok_or(Malformed)?;
        let digits = body.get(..end).unwrap_or_default();
        let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || is_space(*byte);
        if !digits.iter().all(is_digit) {
            return Err(Malformed);
        }
        self.at += end + 2;
        Ok(Token::Text)
    }

    fn text(&mut self) -> Result<Token<'a>, Malformed> {
        let mut open = 0_u32;
        let mut bytes = self.rest().iter().enumerate();
        while let Some((index, byte)) = bytes.next() {
            match byte {
                b'(' => open = open.checked_add(1).ok_or(Malformed)?,
                b')' => open -= 1,
                b'\\' => {
                    bytes.next();
                }
                _ => {}
            }
            if open == 0 {
                self.at += index + 1;
                return Ok(Token::Text);
            }
        }
        Err(Malformed)
    }

    fn regular(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !is_regular(*byte));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += word.len();
        word
    }

    fn name(&mut self) -> Result<Token<'a>, Malformed> {
        self.at += 1;
        let name = self.regular();
        if !name.contains(&b'#') {
            return Ok(Token::Name(Cow::Borrowed(name)));
        }
        let mut plain = Vec::with_capacity(name.len());
        let mut bytes = name.iter();
        while let Some(byte) = bytes.next() {
            plain.push(if *byte == b'#' {
                let mut digit = || (*bytes.next()? as char).to_digit(16);
                let (high, low) = (digit().ok_or(Malformed)?, digit().ok_or(Malformed)?);
                u8::try_from(high * 16 + low).map_err(|_| Malformed)?
            } else {
                *byte
            });
        }
        Ok(Token::Name(Cow::Owned(plain)))
    }

    fn word(&mut self) -> Result<Token<'a>, Malformed> {
        let word = self.regular();
        let text = std::str::from_utf8(word).map_err(|_| Malformed)?;
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Token::Int(number));
        }
        let is_number = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-');
        if word.iter().all(|byte| is_number(*byte)) {
            return Ok(Token::Real);
        }
        Ok(Token::Word(word))
    }

    /// An integer of at least 0.
    pub(super) fn count(&mut self) -> Result<u64, Malformed> {
        match self.next()? {
            Token::Int(number) => u64::try_from(number).map_err(|_| Malformed),
            Token::Real
            | Token::Name(_)
            | Token::Text
            | Token::ArrayOpen
            | Token::ArrayClose
            | Token::DictOpen
            | Token::DictClose
            | Token::Word(_)
            | Token::End => Err(Malformed),
        }
    }
}
