//! splice: one run, whole. A host writes lines of input and closes; an agent judges them all, runs once, and leaves with
//! the exit code that its last line says.
//!
//! There is no control input: nothing is steered, answered or cancelled but by a signal. What makes the wire rich is what
//! runs behind it: a pipeline of stages, each a session of its own.

mod client;
mod guarantees;
mod observer;
mod preset;
mod protocol;
mod rules;
mod server;
mod spec;
pub mod wire;

pub use client::{ClientConfig, ClientFace};
pub use guarantees::GUARANTEES;
pub use observer::{ObserverConfig, Watcher};
pub use preset::preset;
pub use protocol::{Autonomy, EarlySignal, MergeBack, ServerConfig, SpliceAsk, SpliceExtra};
pub use rules::{RULES, UNSEEN};
pub use spec::SPEC;

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splice;

/// The longest line of a host that is held, in bytes of content: 64 MiB. The contract sets none; this is ours.
pub const HOST_LINE_MAX: usize = 64 * 1024 * 1024;
/// The longest line of an agent that a host reads: 64 MiB. The contract sets none; this is ours.
pub const AGENT_LINE_MAX: usize = 64 * 1024 * 1024;
/// The most bytes of a tool's output that are written, and what is written behind them where it was longer.
pub const OUTPUT_BYTES: usize = 10_240;
/// See [`OUTPUT_BYTES`].
pub const TRUNCATED: &str = "\n[truncated]";

/// The stages of a pipeline, in their order.
pub const STAGES: [&str; 6] = [
    "code_writer",
    "test_generator",
    "static_analyzer",
    "security_auditor",
    "test_runner",
    "acceptance_verifier",
];

/// How much a request asks for: which stages run.
pub const TIERS: [&str; 5] = [
    "trivial",
    "light",
    "standard",
    "substantial",
    "architectural",
];
