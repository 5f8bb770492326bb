//! Values: what a PDF's objects hold, read once and never kept.

use super::lexer::{Lexer, Malformed, Token};
use crate::Refused;

/// How deep values may nest.
const DEPTH: usize = 64;

/// Names that stand for more than pages to look at: code, other programs, other files, forms that are sent.
const REFUSED_NAMES: [&[u8]; 16] = [
    b"JS",
    b"JavaScript",
    b"Launch",
    b"SubmitForm",
    b"ImportData",
    b"GoToR",
    b"GoToE",
    b"Rendition",
    b"RichMedia",
    b"RichMediaExecute",
    b"EmbeddedFiles",
    b"EmbeddedFile",
    b"Movie",
    b"Sound",
    b"XFA",
    b"Encrypt",
];

/// What is known of the dictionary at the top of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) is_dict: bool,
    pub(super) kind: Kind,
    /// `Length`, where it stands right there.
    pub(super) length: Option<u64>,
    pub(super) filter: Filter,
    /// `N` and `First` of a stream of objects.
    pub(super) count: Option<u64>,
    pub(super) first: Option<u64>,
    /// `W` of a stream of references, and `Index`.
    pub(super) widths: Vec<u64>,
    pub(super) index: Vec<u64>,
    pub(super) size: Option<u64>,
    /// `Predictor` and `Columns`.
    pub(super) predictor: u64,
    pub(super) columns: u64,
    /// Whether it names the catalogue.
    pub(super) has_root: bool,
    /// References in `Kids`.
    pub(super) kids: u64,
    /// `Count`
    pub(super) pages: Option<i64>,
}

/// `Type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Other,
    Catalog,
    Pages,
    Page,
    Objects,
    References,
}

/// `Filter`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filter {
    #[default]
    None,
    Flate,
    Other,
}

/// Where the reader stands inside of an array or a dictionary.
#[derive(Debug)]
struct Open {
    is_dict: bool,
    /// The key whose value comes, or came last.
    key: Key,
    wants: Wants,
}

/// What comes next in a dictionary. A reference is three tokens, of which the first two are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    Key,
    Value,
    /// A key, or the second number of a reference.
    KeyOrNumber,
    /// The `R` of a reference.
    Reference,
}

/// Keys that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Type,
    Length,
    Filter,
    N,
    First,
    W,
    Index,
    Size,
    Predictor,
    Columns,
    Root,
    Kids,
    Count,
    DecodeParms,
    Other,
}

impl Key {
    fn of(name: &[u8]) -> Key {
        match name {
            b"Type" => Key::Type,
            b"Length" => Key::Length,
            b"Filter" => Key::Filter,
            b"N" => Key::N,
            b"First" => Key::First,
            b"W" => Key::W,
            b"Index" => Key::Index,
            b"Size" => Key::Size,
            b"Predictor" => Key::Predictor,
            b"Columns" => Key::Columns,
            b"Root" => Key::Root,
            b"Kids" => Key::Kids,
            b"Count" => Key::Count,
            b"DecodeParms" => Key::DecodeParms,
            _ => Key::Other,
        }
    }
}

/// Reads one whole value, and what stands at its top.
pub(super) fn read(lexer: &mut Lexer<'_>) -> Result<Top, Refused> {
    let mut reader = Reader {
        top: Top {
            predictor: 1,
            columns: 1,
            ..Top::default()
        },
        open: Vec::new(),
    };
    loop {
        // A reference at the top of an object is no value that anything here needs.
        let token = lexer.next()?;
        reader.take(&token)?;
        if reader.open.is_empty() {
            return Ok(reader.top);
        }
    }
}

struct Reader {
    top: Top,
    open: Vec<Open>,
}

impl Reader {
    fn take(&mut self, token: &Token<'_>) -> Result<(), Refused> {
        if let Token::Name(name) = token
            && REFUSED_NAMES.contains(&&**name)
        {
            return Err(Refused::Unsupported);
        }
        match token {
            Token::End => Err(Malformed.into()),
            Token::ArrayClose => self.close(false),
            Token::DictClose => self.close(true),
            Token::ArrayOpen | Token::DictOpen => {
                self.begin_value(token)?;
                if self.open.len() >= DEPTH {
                    return Err(Malformed.into());
                }
                let is_dict = *token == Token::DictOpen;
                self.top.is_dict |= is_dict && self.open.is_empty();
                self.open.push(Open {
                    is_dict,
                    key: Key::Other,
                    wants: Wants::Key,
                });
                Ok(())
            }
            Token::Int(_) | Token::Real | Token::Name(_) | Token::Text | Token::Word(_) => {
                if self.begin_value(token)? {
                    self.note(token);
                }
                Ok(())
            }
        }
    }

    /// Whether a value begins with this token; else it was a key, or the rest of a reference.
    fn begin_value(&mut self, token: &Token<'_>) -> Result<bool, Refused> {
        let Some(open) = self.open.last_mut() else {
            return if is_value(token) {
                Ok(true)
            } else {
                Err(Malformed.into())
            };
        };
        if !open.is_dict {
            let is_reference = *token == Token::Word(b"R");
            return if is_value(token) || is_reference {
                Ok(true)
            } else {
                Err(Malformed.into())
            };
        }
        match (open.wants, token) {
            (Wants::Key | Wants::KeyOrNumber, Token::Name(name)) => {
                open.key = Key::of(name);
                open.wants = Wants::Value;
                Ok(false)
            }
            (Wants::KeyOrNumber, Token::Int(_)) => {
                open.wants = Wants::Reference;
                Ok(false)
            }
            (Wants::Reference, Token::Word(b"R")) => {
                open.wants = Wants::Key;
                // The number that came first wasn't the value.
                let (key, depth) = (open.key, self.open.len());
                self.forget(key, depth);
                Ok(false)
            }
            (Wants::Value, Token::Int(_)) => {
                open.wants = Wants::KeyOrNumber;
                Ok(true)
            }
            (Wants::Value, token) if is_value(token) => {
                open.wants = Wants::Key;
                Ok(true)
            }
            _ => Err(Malformed.into()),
        }
    }

    fn close(&mut self, is_dict: bool) -> Result<(), Refused> {
        let open = self.open.pop().ok_or(Malformed)?;
        let ends = !open.is_dict || matches!(open.wants, Wants::Key | Wants::KeyOrNumber);
        if open.is_dict != is_dict || !ends {
            return Err(Malformed.into());
        }
        Ok(())
    }

    /// The number of a reference is no length, and no count.
    fn forget(&mut self, key: Key, depth: usize) {
        if depth != 1 {
            return;
        }
        match key {
            Key::Length => self.top.length = None,
            Key::N => self.top.count = None,
            Key::First => self.top.first = None,
            Key::Size => self.top.size = None,
            Key::Count => self.top.pages = None,
            Key::Type
            | Key::Filter
            | Key::W
            | Key::Index
            | Key::Predictor
            | Key::Columns
            | Key::Root
            | Key::Kids
            | Key::DecodeParms
            | Key::Other => {}
        }
    }

    /// A value in the dictionary at the top, or in an array or the parameters there.
    fn note(&mut self, token: &Token<'_>) {
        let key = |at: usize| self.open.get(at).map(|open| open.key);
        let top = &mut self.top;
        if !self.open.first().is_some_and(|open| open.is_dict) {
            return;
        }
        let (outer, inner) = (key(0).unwrap_or(Key::Other), self.open.last());
        let number = |token: &Token<'_>| {
            if let Token::Int(number) = token {
                u64::try_from(*number).ok()
            } else {
                None
            }
        };
        let in_array = self.open.len() == 2 && inner.is_some_and(|open| !open.is_dict);
        if in_array {
            match (outer, token) {
                (Key::Kids, Token::Word(b"R")) => top.kids = top.kids.saturating_add(1),
                (Key::W, Token::Int(_)) if top.widths.len() < 3 => {
                    top.widths.extend(number(token));
                }
                (Key::Index, Token::Int(_)) if top.index.len() < 4_096 => {
                    top.index.extend(number(token));
                }
                (Key::Filter, Token::Name(name)) => top.filter = top.filter.and(name),
                _ => {}
            }
            return;
        }
        if outer == Key::DecodeParms {
            match (inner.map(|open| open.key), number(token)) {
                (Some(Key::Predictor), Some(number)) => top.predictor = number,
                (Some(Key::Columns), Some(number)) => top.columns = number,
                _ => {}
            }
            return;
        }
        if self.open.len() != 1 {
            return;
        }
        match (outer, token) {
            (Key::Type, Token::Name(name)) => top.kind = Kind::of(name),
            (Key::Filter, Token::Name(name)) => top.filter = top.filter.and(name),
            (Key::Length, Token::Int(_)) => top.length = number(token),
            (Key::N, Token::Int(_)) => top.count = number(token),
            (Key::First, Token::Int(_)) => top.first = number(token),
            (Key::Size, Token::Int(_)) => top.size = number(token),
            (Key::Count, Token::Int(pages)) => top.pages = Some(*pages),
            (Key::Root, _) => top.has_root = true,
            _ => {}
        }
    }
}

impl Kind {
    fn of(name: &[u8]) -> Kind {
        match name {
            b"Catalog" => Kind::Catalog,
            b"Pages" => Kind::Pages,
            b"Page" => Kind::Page,
            b"ObjStm" => Kind::Objects,
            b"XRef" => Kind::References,
            _ => Kind::Other,
        }
    }
}

impl Filter {
    /// This one, and another behind it.
    fn and(self, name: &[u8]) -> Filter {
        match (self, name) {
            (Filter::None, b"FlateDecode") => Filter::Flate,
            _ => Filter::Other,
        }
    }
}

fn is_value(token: &Token<'_>) -> bool {
    match token {
        Token::Word(word) => matches!(*word, b"true" | b"false" | b"null"),
        Token::Int(_)
        | Token::Real
        | Token::Name(_)
        | Token::Text
        | Token::ArrayOpen
        | Token::DictOpen => true,
        Token::ArrayClose | Token::DictClose | Token::End => false,
    }
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Refused {
        Refused::Malformed
    }
}
