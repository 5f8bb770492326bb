//! The text of JSON in pieces: the arguments of a call as a model writes them.

use alloc::string::String;
use alloc::vec::Vec;

use super::{MASK, Secrets, Stream, is_secret_name};

/// The deepest nesting whose kinds are remembered; below it names hide nothing, and patterns still do.
const DEPTH: usize = 256;
/// Longer names aren't those of a secret.
const NAME_BYTES: usize = 128;

/// The text of a JSON value that comes in pieces, whole or broken. Strings are looked through without their escapes, and
/// given on as they were written; the value of a secret name becomes [`MASK`].
#[derive(Clone, Debug, Default)]
pub struct ArgStream {
    text: Stream,
    /// Objects (true) and arrays that are open.
    open: Vec<bool>,
    /// Levels beyond [`DEPTH`].
    deeper: usize,
    at: At,
    /// The string that is open is the name of a member.
    is_name: bool,
    name: String,
    /// A piece of an escape.
    escape: String,
    hiding: Hiding,
    hidden: u64,
}

/// Where in the text of a value one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// Before a value, or behind one.
    #[default]
    Between,
    /// Before the name of a member.
    Name,
    /// In a string.
    Text,
    /// In a string, in an escape.
    Escape,
}

/// How far a value is hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hiding {
    #[default]
    No,
    /// The name was secret; its colon hasn't come.
    Named,
    /// The next value is hidden.
    Next,
    /// A string is.
    Text,
    /// An object or an array of so many levels is.
    Tree(usize),
    /// A number or a word is.
    Word,
}

impl ArgStream {
    /// Takes a piece, and appends what can be given on.
    pub fn push(&mut self, secrets: &Secrets, piece: &str, out: &mut String) {
        let mut rest = piece;
        while let Some(char) = rest.chars().next() {
            // Runs of plain text within a string are taken whole.
            if self.at == At::Text && self.hiding != Hiding::Text {
                let end = memchr::memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
                if end > 0 {
                    let (run, behind) = rest.split_at(end);
                    self.run(secrets, run, out);
                    rest = behind;
                    continue;
                }
            }
            let (one, behind) = rest.split_at(char.len_utf8());
            self.char(secrets, char, one, out);
            rest = behind;
        }
    }

    /// The text is over: gives what was held back.
    pub fn finish(&mut self, secrets: &Secrets, out: &mut String) {
        self.text.finish(secrets, out);
        let escape = core::mem::take(&mut self.escape);
        if !self.is_hiding() {
            out.push_str(&escape);
        }
    }

    /// How many secrets were found so far.
    pub fn found(&self) -> u64 {
        self.hidden + self.text.found()
    }

    /// Bytes that are held back.
    pub fn held(&self) -> usize {
        self.text.held() + self.escape.len()
    }

    fn is_hiding(&self) -> bool {
        matches!(self.hiding, Hiding::Text | Hiding::Tree(_) | Hiding::Word)
    }

    /// A run of a string.
    fn run(&mut self, secrets: &Secrets, run: &str, out: &mut String) {
        if self.is_hiding() {
            return;
        }
        self.remember(run);
        self.text.push(secrets, run, out);
    }

    fn remember(&mut self, piece: &str) {
        if self.is_name && self.name.len() <= NAME_BYTES {
            self.name.push_str(piece);
        }
    }

    fn char(&mut self, secrets: &Secrets, char: char, raw: &str, out: &mut String) {
        match self.at {
            At::Text => match char {
                '"' => self.close(secrets, out),
                '\\' => {
                    self.at = At::Escape;
                    self.escape.push('\\');
                }
                _ => self.run(secrets, raw, out),
            },
            At::Escape => self.escaped(secrets, raw, out),
            At::Between | At::Name => self.structure(secrets, char, raw, out),
        }
    }

    /// The end of a string.
    fn close(&mut self, secrets: &Secrets, out: &mut String) {
        self.at = At::Between;
        match self.hiding {
            Hiding::Text => {
                self.hiding = Hiding::No;
                return;
            }
            Hiding::Tree(_) | Hiding::Word => return,
            Hiding::No | Hiding::Named | Hiding::Next => {}
        }
        self.text.finish(secrets, out);
        out.push('"');
        if core::mem::replace(&mut self.is_name, false) {
            let name = core::mem::take(&mut self.name);
            if name.len() <= NAME_BYTES && is_secret_name(&name) {
                self.hiding = Hiding::Named;
            }
        }
    }

    /// What stands outside of strings.
    fn structure(&mut self, secrets: &Secrets, char: char, raw: &str, out: &mut String) {
        match self.hiding {
            Hiding::Tree(levels) => return self.in_tree(levels, char),
            Hiding::Word if !matches!(char, ',' | '}' | ']') && !char.is_ascii_whitespace() => {
                return;
            }
            Hiding::Word => self.hiding = Hiding::No,
            Hiding::Named if char == ':' => {
                self.hiding = Hiding::Next;
                return self.plain(secrets, raw, out);
            }
            Hiding::Next if !char.is_ascii_whitespace() => return self.hide(char, out),
            Hiding::Named if !char.is_ascii_whitespace() => self.hiding = Hiding::No,
            Hiding::No | Hiding::Named | Hiding::Next | Hiding::Text => {}
        }
        if char == '"' {
            self.text.finish(secrets, out);
            out.push('"');
            self.is_name = self.at == At::Name;
            self.name.clear();
            self.at = At::Text;
            return;
        }
        match char {
            '{' | '[' => self.nest(char == '{'),
            '}' | ']' => self.unnest(),
            ',' if self.deeper == 0 && self.open.last() == Some(&true) => self.at = At::Name,
            _ => {}
        }
        self.plain(secrets, raw, out);
    }

    /// A character between strings: in broken text it can be part of a secret.
    fn plain(&mut self, secrets: &Secrets, raw: &str, out: &mut String) {
        self.text.push(secrets, raw, out);
    }

    fn nest(&mut self, object: bool) {
        self.at = At::Between;
        if self.open.len() < DEPTH {
            self.open.push(object);
            if object {
                self.at = At::Name;
            }
        } else {
            self.deeper += 1;
        }
    }

    fn unnest(&mut self) {
        self.at = At::Between;
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.open.pop();
        }
    }

    /// The first character of a value that is hidden.
    fn hide(&mut self, char: char, out: &mut String) {
        out.push('"');
        out.push_str(MASK);
        out.push('"');
        self.hidden += 1;
        self.hiding = match char {
            '"' => {
                self.at = At::Text;
                self.is_name = false;
                Hiding::Text
            }
            '{' | '[' => Hiding::Tree(1),
            _ => Hiding::Word,
        };
    }

    fn in_tree(&mut self, levels: usize, char: char) {
        self.hiding = match char {
            '"' => {
                self.at = At::Text;
                Hiding::Tree(levels)
            }
            '{' | '[' => Hiding::Tree(levels + 1),
            '}' | ']' if levels == 1 => {
                self.at = At::Between;
                Hiding::No
            }
            '}' | ']' => Hiding::Tree(levels - 1),
            _ => Hiding::Tree(levels),
        };
    }

    /// One more character of an escape.
    fn escaped(&mut self, secrets: &Secrets, raw: &str, out: &mut String) {
        self.escape.push_str(raw);
        let read = match unit(&self.escape) {
            Unit::More => return,
            Unit::Char(read) => Some(read),
            Unit::None => None,
        };
        let escape = core::mem::take(&mut self.escape);
        self.at = At::Text;
        if let Some(read) = read {
            return self.give_escape(secrets, read, &escape, out);
        }
        // Half of a pair alone; what stands behind it is read as if it hadn't been looked at.
        let (first, behind) = escape.split_at(lone(&escape));
        self.give_escape(secrets, char::REPLACEMENT_CHARACTER, first, out);
        self.push(secrets, behind, out);
    }

    fn give_escape(&mut self, secrets: &Secrets, read: char, raw: &str, out: &mut String) {
        if self.is_hiding() {
            return;
        }
        let mut buffer = [0; 4];
        self.remember(read.encode_utf8(&mut buffer));
        self.text.push_escape(secrets, read, raw, out);
    }
}

/// What an escape is so far.
enum Unit {
    /// It goes on.
    More,
    /// A character.
    Char(char),
    /// None, or half of a pair: of it only the first part is used up.
    None,
}

fn unit(escape: &str) -> Unit {
    let mut chars = escape.chars();
    let (_, Some(kind)) = (chars.next(), chars.next()) else {
        return Unit::More;
    };
    let simple = match kind {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(escape),
        other => other,
    };
    Unit::Char(simple)
}

fn unicode(escape: &str) -> Unit {
    let half = |from: usize| -> Result<u32, bool> {
        let digits = escape.get(from..).unwrap_or_default();
        match digits.get(..4) {
            Some(digits) => u32::from_str_radix(digits, 16).map_err(|_| false),
            None => Err(digits.bytes().all(|byte| byte.is_ascii_hexdigit())),
        }
    };
    let high = match half(2) {
        Ok(high) => high,
        Err(true) => return Unit::More,
        Err(false) => return Unit::None,
    };
    if !(0xd800..0xdc00).contains(&high) {
        return char::from_u32(high).map_or(Unit::None, Unit::Char);
    }
    let behind = escape.get(6..).unwrap_or_default();
    if behind.len() < 2 && "\\u".starts_with(behind) {
        return Unit::More;
    }
    if !behind.starts_with("\\u") {
        return Unit::None;
    }
    match half(8) {
        Ok(low @ 0xdc00..0xe000) => {
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            char::from_u32(code).map_or(Unit::None, Unit::Char)
        }
        Err(true) => Unit::More,
        Ok(_) | Err(false) => Unit::None,
    }
}

/// How much of what isn't a character is used up: a whole `\uXXXX`, or what came before the character that doesn't fit.
fn lone(escape: &str) -> usize {
    let digits = escape
        .get(2..)
        .unwrap_or_default()
        .bytes()
        .take(4)
        .take_while(u8::is_ascii_hexdigit)
        .count();
    (2 + digits).min(escape.len())
}
