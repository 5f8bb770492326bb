//! What the program has to know of a protocol to serve it. Everything else of `serve` is the same for all.

mod omp;
mod openmax;

use turnwire::protocol::Protocol;
use turnwire::session::config::SessionConfig;
use turnwire::vocab::{Frozen, ModelRef};
use turnwire_io::{Answer, Refrozen};

use crate::ids::IdKind;
use crate::keep::Begun;
use crate::start::Start;

/// A session that is about to begin: what a protocol's face is made from.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// Settings, trust and folders.
    pub start: &'a Start,
    /// The session, new or going on.
    pub begun: &'a Begun,
    /// Whether the host has a screen for dialogs.
    pub screen: bool,
    /// What the model is told first, and its tools.
    pub frozen: &'a Frozen,
    /// The model that the session begins with.
    pub model: &'a ModelRef,
    /// Bytes that nobody can guess.
    pub seed: [u8; 32],
}

/// A protocol that this program can serve: one impl each, and nothing of it anywhere else.
pub trait Served: Protocol {
    /// How ids of sessions are made.
    const SESSION_IDS: IdKind;

    /// Sets what the contract decides for a session.
    fn preset(config: &mut SessionConfig);

    /// What its Server is built from.
    fn face(opening: &Opening<'_>) -> Self::ServerConfig;

    /// Answers what its Server asks of the embedder.
    fn answer(opening: &Opening<'_>) -> Answer<Self>;

    /// What is said at the start beside the Server's own lines.
    fn first_words(_opening: &Opening<'_>) -> Vec<Self::Extra> {
        Vec::new()
    }

    /// What is said, beyond an answer, when the configuration was read anew.
    fn refrozen(_start: &Start) -> Option<Refrozen<Self>> {
        None
    }
}
