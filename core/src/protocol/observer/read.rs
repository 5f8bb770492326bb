//! The text of a line, read once: for the reader, which asks whose line it is, and for the rules.

use crate::frame::{Place, Split, SplitKind};
use crate::json::{self, Duplicates, JsonFault, LoneSurrogates, Members, Object, Raw, ScanRules};

/// Reads what can be read at all.
const ANY: ScanRules = ScanRules {
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
    ..ScanRules::STRICT
};

/// Working memory of one stream's reader, to be used for each of its lines.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    strict: Members,
    lax: Members,
}

/// A line and what its text is.
#[derive(Debug)]
pub struct ReadLine<'m, 'a> {
    /// Where it stands.
    pub place: Place,
    /// Its length in bytes.
    pub bytes: u64,
    /// It is the last one, and no newline ends it.
    pub is_cut: bool,
    /// Its bytes, for a protocol that reads some lines in its own way; empty if they are gone.
    pub raw: &'a [u8],
    /// What it is.
    pub text: Text<'m, 'a>,
}

/// How far a line could be read.
#[derive(Debug)]
pub enum Text<'m, 'a> {
    /// Strictly.
    Whole(Object<'m, 'a>),
    /// Only by looking away from this fault. Of members of one name, the first is found.
    Despite(Object<'m, 'a>, JsonFault),
    /// Not at all.
    Not(JsonFault),
    /// Its content isn't known: it is longer than this limit, or nobody kept it.
    Gone {
        /// The limit.
        limit: usize,
    },
}

impl<'m, 'a: 'm> ReadLine<'m, 'a> {
    /// Reads a line as an object: one scan, and a second one only if it isn't strict.
    pub(crate) fn new(line: &Split<'a>, buffers: &'m mut Buffers) -> Self {
        let (bytes, is_cut) = match line.what {
            SplitKind::Line(bytes) => (bytes, false),
            SplitKind::Tail(bytes) => (bytes, true),
            SplitKind::TooLong { bytes, limit } => {
                return ReadLine {
                    place: line.place,
                    bytes,
                    is_cut: false,
                    raw: &[],
                    text: Text::Gone { limit },
                };
            }
        };
        let text = match json::scan(bytes, &ScanRules::STRICT, &mut buffers.strict) {
            Ok(object) => Text::Whole(object),
            Err(fault) => match json::scan(bytes, &ANY, &mut buffers.lax) {
                Ok(object) => Text::Despite(object, fault),
                Err(worse) => Text::Not(worse),
            },
        };
        ReadLine {
            place: line.place,
            bytes: bytes.len() as u64,
            is_cut,
            raw: bytes,
            text,
        }
    }

    /// The member of this name, if the line could be read.
    pub(crate) fn get(&self, name: &str) -> Option<Raw<'a>> {
        match &self.text {
            Text::Whole(object) | Text::Despite(object, _) => object.get(name),
            Text::Not(_) | Text::Gone { .. } => None,
        }
    }
}
