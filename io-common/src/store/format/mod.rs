//! The form of a transcript's lines, which `docs/sessions.md` describes.
//!
//! The vocabulary of the machines is an internal view and may change from one version of the library to the next; this
//! form may not. So nothing of the vocabulary is derived: each member is written and read by its own name.

mod read;
mod write;

use turnwire::json::{ScanRules, scan_value};
use turnwire::vocab::Message;

use super::Binding;

pub(super) use read::Decoder;
pub(super) use write::{write_head, write_message, write_name};

/// One line.
#[derive(Debug)]
pub(super) enum Line {
    /// The first.
    Head {
        /// The session that the transcript is of.
        id: String,
        /// The project that it worked in.
        project: String,
        /// When it began, in milliseconds since the Unix epoch.
        created_at: u64,
        /// Who served the model at first.
        binding: Option<Binding>,
    },
    /// The session's name for people, from here on.
    Name(String),
    /// A message.
    Message(Message),
}

/// What a line may be. It must take every value that [`is_plain`] lets stand in one.
const RULES: ScanRules = ScanRules::STRICT;

/// Whether a JSON value can stand in a line as it is, so that any JSON reader takes it, and this one finds the same
/// text again. One that can't (it has line breaks, comes twice to a name, is nested deeply) is kept as a string.
fn is_plain(text: &str) -> bool {
    let rules = ScanRules {
        max_depth: RULES.max_depth / 2,
        ..RULES
    };
    text != "null"
        && !text.contains(['\n', '\r'])
        && scan_value(text.as_bytes(), &rules).is_ok_and(|value| value.as_str() == text)
}
