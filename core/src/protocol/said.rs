//! What Servers of several protocols make alike of what an agent says.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::vocab::{Block, Refusal};

/// Two texts with something between them, unless one is empty.
pub(super) fn joined(first: &str, between: &str, second: &str) -> String {
    let between = if first.is_empty() || second.is_empty() {
        ""
    } else {
        between
    };
    format!("{first}{between}{second}")
}

/// A result's text blocks, a line break between them. Nothing else has a form there.
pub(super) fn output(content: &[Block]) -> Cow<'_, str> {
    let texts: Vec<&str> = content.iter().filter_map(Block::text).collect();
    match texts.as_slice() {
        [] => "".into(),
        [one] => (*one).into(),
        [..] => texts.join("\n").into(),
    }
}

/// Why an agent refused a command, where the contract has no text for it.
pub(super) fn refusal(why: &Refusal) -> String {
    match why {
        Refusal::Busy => "The session is busy".into(),
        Refusal::Empty => "There is nothing to send".into(),
        Refusal::Cancelled => "Cancelled before it was admitted".into(),
        Refusal::Untrusted(project) => format!("The project isn't trusted: {project}"),
        Refusal::Blocked { text, .. } => (&**text).into(),
        Refusal::Unknown => "No such thing".into(),
        Refusal::AlreadySettled => "Already settled".into(),
        Refusal::Closing => "The session is closing".into(),
        Refusal::Full => "Too much is waiting".into(),
        Refusal::TooLarge => "Too large".into(),
        Refusal::Unsupported(what) => format!("Not available: {what}"),
        Refusal::Invalid(text) => (&**text).into(),
        Refusal::Failed(failure) => (&*failure.text).into(),
    }
}
