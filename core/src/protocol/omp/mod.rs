//! omp: RPC mode, protocol 1 and 2: one JSON object a line, a response for each command, events beside them.
//!
//! The protocol's number stayed while its surface grew, in three generations ([`Generation`]). Readers here accept all
//! of them; what isn't known is kept.

mod client;
pub mod codec;
mod guarantees;
mod observer;
mod preset;
mod protocol;
mod rules;
mod server;
mod spec;
pub mod wire;

pub use client::{ClientConfig, ClientFace, Subagents};
pub use guarantees::GUARANTEES;
pub use observer::{ObserverConfig, Watcher};
pub use preset::preset;
pub use protocol::{Export, Omp, OmpAsk, OmpExtra, OmpOutcome, RunFiles, ServerConfig, Transcript};
pub use rules::{RULES, UNSEEN};
pub use server::Face;
pub use spec::SPEC;

/// What distinguishes a program's surface, whose protocol number never says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// Up to 18.2: no end of a prompt but the run's, no message ids.
    G1,
    /// 18.3: `prompt_result` with a status for each accepted prompt, `session_settled`, `messageId`, `yielded`.
    G2,
    /// After it: prompts are answered once admitted; queues, forks, goals, live voice.
    #[default]
    G3,
}

impl Generation {
    /// The generation of that number.
    pub const fn of(number: u64) -> Option<Generation> {
        match number {
            1 => Some(Generation::G1),
            2 => Some(Generation::G2),
            3 => Some(Generation::G3),
            _ => None,
        }
    }
}

/// The version that a connection starts with.
pub const PROTOCOL_1: u64 = 1;
/// The version that cuts large frames into chunks.
pub const PROTOCOL_2: u64 = 2;
/// The longest line of an agent, its newline included: 1 MiB.
pub const MAX_FRAME: usize = 1_048_576;
/// The longest frame that chunks may make: 64 MiB.
pub const MAX_REASSEMBLED: usize = 67_108_864;
/// The longest line of a host, in bytes of content: 64 MiB. The contract sets none; this is ours.
pub const HOST_LINE_MAX: usize = 64 * 1024 * 1024;
