//! openmax: line-delimited JSON both ways over stdio, `openmax-stdio/6`.
//!
//! A host sends `user`, `approve`, `approval_mode`, `reload`, `cancel` and `quit`. Every `user` that starts a turn, or
//! is refused outright, gets exactly one `done`; a `user` in a running turn gets a `protocol_error` alone. There are
//! no command ids and no queue, so this Server has little to remember: the prompt whose `done` it owes, a
//! `message_done` that waits for its usage, open approvals, and lines that came before an earlier one was answered.

mod client;
mod fault;
mod guarantees;
mod observer;
mod preset;
mod printer;
mod rules;
mod said;
mod server;
mod spec;
mod turn;
pub mod wire;

use core::convert::Infallible;

use crate::frame::{LineRules, OverLong, Tail};
use crate::protocol::Protocol;
use crate::vocab::{Level, Text};

pub use client::{Client as ClientFace, ClientConfig};
pub use fault::Fault;
pub use guarantees::GUARANTEES;
pub use observer::{ObserverConfig, Watcher, Wire};
pub use preset::preset;
pub use rules::{RULES, UNSEEN};
pub use server::Face;
pub use spec::SPEC;

/// The readable id of the wire, in `hello`.
pub const PROTO: &str = "openmax-stdio/6";
/// The number that goes with [`PROTO`].
pub const PROTOCOL_VERSION: u64 = 6;
/// The longest line a host may send: 8 MiB of content, without its newline.
pub const HOST_LINE_MAX: usize = 8 * 1024 * 1024;

/// The longest line of an agent that a Client reads: 64 MiB of content, without its newline. The contract sets none.
pub const AGENT_LINE_MAX: usize = 64 * 1024 * 1024;

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Openmax;

/// What an openmax Server is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The product's version, for `hello`.
    pub version: Text,
    /// Whether another agent started this process: it may then not change the approval mode, and a call of
    /// unapproved content is declined without a question.
    pub agent_spawned: bool,
    /// Joins token and thinking lines that follow each other within this time, in microseconds. 0: never (default).
    pub coalesce_us: u64,
    /// The longest time, in microseconds, that a `done` waits for background work of a foreign agent: 600 s.
    pub hold_done_us: u64,
    /// Where approval ids come from. The same seed and the same lines give the same ids.
    pub seed: [u8; 32],
}

impl ServerConfig {
    /// The defaults, for a product of this version.
    pub fn new(version: Text, seed: [u8; 32]) -> Self {
        ServerConfig {
            version,
            agent_spawned: false,
            coalesce_us: 0,
            hold_done_us: 600_000_000,
            seed,
        }
    }
}

/// Lines with no neutral meaning: the embedder knows schemas and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extra {
    /// The frozen tool schemas take most of what the window can spend. Written before the next `budget`, at most once
    /// a session.
    SchemasOverBudget {
        /// Tokens of all schemas.
        schema_tokens: u64,
        /// What the window leaves for them and the history.
        budget_tokens: u64,
    },
    /// Tools, skills and prompt were frozen anew, in the embedder's own words on who changed what. It stands for the
    /// `Changed` that follows from the same refreeze.
    Refrozen {
        /// Tools now.
        tools: u64,
        /// Skills now.
        skills: u64,
        /// One sentence for each change.
        changes: alloc::vec::Vec<Text>,
    },
    /// A line of an agent whose `type` the contract doesn't have. A Server writes nothing for it.
    Unknown {
        /// The `type`.
        kind: Text,
        /// The whole line.
        line: Text,
    },
}

impl Protocol for Openmax {
    const NAME: &'static str = "openmax";
    type Ask = Infallible;
    type Outcome = Infallible;
    type Extra = Extra;
    type ServerConfig = ServerConfig;
    type Face = Face;
    type ClientConfig = ClientConfig;
    type Client = ClientFace;

    fn soften(extra: &Extra) -> Option<(Level, Text)> {
        match extra {
            Extra::SchemasOverBudget { schema_tokens, budget_tokens } => Some((
                Level::Warning,
                alloc::format!("the tool schemas take {schema_tokens} of the {budget_tokens} tokens that can be spent").into(),
            )),
            Extra::Refrozen { changes, .. } => {
                let mut text = alloc::string::String::from("tools, skills and prompt were frozen anew");
                for (index, change) in changes.iter().enumerate() {
                    text.push_str(if index == 0 { ": " } else { "; " });
                    text.push_str(change);
                }
                Some((Level::Info, text.into()))
            }
            Extra::Unknown { kind, .. } => Some((
                Level::Debug,
                alloc::format!("the agent wrote a line of the unknown type {kind:?}").into(),
            )),
        }
    }

    fn host_line_rules() -> LineRules {
        LineRules {
            max_bytes: HOST_LINE_MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }

    /// The contract sets no limit for lines of an agent; this is ours.
    fn agent_line_rules() -> LineRules {
        LineRules {
            max_bytes: AGENT_LINE_MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }
}
