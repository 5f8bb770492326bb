//! The neutral vocabulary: what every agent, `Server` and `Client` say to each
//! other. It is an internal view, never stored and never published.
//!
//! A host's wish is a [`Command`] in a [`Call`]; what an agent says is an
//! [`Event`]; what it wants done is an [`Effect`]; what it is told is an
//! [`Input`]. [`Agent`] is the machine between them.
//!
//! # What it rests on
//!
//! 1. A command is answered once, by [`What::Replied`]; `Err` means that nothing else changed.
//! 2. An admitted prompt ends once, by [`What::PromptEnded`]. A turn may serve several prompts, or none.
//! 3. A turn runs from idle to yield; a step is one model request and the tools that it asked for; an
//!    attempt is one try of that request. Each start has exactly one end.
//! 4. Approvals, hooks of the host, its tools, its URIs and dialogs are one pattern: [`What::Asked`],
//!    [`Command::Reply`], [`What::AskClosed`].
//! 5. An event is said as soon as it is true. A Server may hold a line back, never bring one forward.
//! 6. *Not said* is a value. Nobody invents what an agent doesn't tell; what a Client must make up to
//!    keep these laws is marked [`Seen::Inferred`].
//! 7. [`What::MessageEnded`] is the authority on content; deltas are a preview.
//! 8. What ended a thing is in its end; a [`What::Notice`] ends nothing.
//! 9. State is a fold of events.
//! 10. Exit codes, end of input and signals belong to the Server.
//! 11. A thing is neutral only if two protocols have it, or the session's behaviour depends on it.
//! 12. A pipeline is another agent; nested runs mark their events with their [`RunId`].
//! 13. A token allocates nothing: [`Agent::poll_output`] lends.
//!
//! Ids like S-30 in these pages are invariants of the session, TW-05 guarantees of the engine, L8 laws
//! of every machine, OM-16 guarantees of one protocol.

mod agent;
mod answer;
mod ask;
mod command;
mod event;
mod frozen;
mod ids;
pub mod laws;
mod mcp;
mod message;
pub mod mirror;
mod time;
mod tool;
mod usage;
mod work;

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

pub use agent::*;
pub use answer::*;
pub use ask::*;
pub use command::*;
pub use event::*;
pub use frozen::*;
pub use ids::*;
pub use mcp::*;
pub use message::*;
pub use time::*;
pub use tool::*;
pub use usage::*;
pub use work::*;

/// Shared immutable text.
pub type Text = Arc<str>;

/// One JSON value as it was written: checked for syntax, kept as text. Two
/// values are equal if they are spelt alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawJson(pub Text);

impl RawJson {
    /// The value's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
