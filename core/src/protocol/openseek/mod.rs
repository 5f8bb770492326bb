//! openseek: an engine's events on its output, a host's commands on its input, one flat JSON object a line.
//!
//! The wire is silent: no ids of turns, no answers to accepted commands, no event for the beginning of a call, no clock.
//! Order is all there is (OS-13). An event that can't be read is none, and is passed over; a command that can't be read is
//! answered, with a text that is part of the contract (OS-03).

mod client;
mod guarantees;
mod names;
mod observer;
mod preset;
mod protocol;
mod rules;
mod server;
mod spec;
pub mod wire;

pub use client::{ClientConfig, ClientFace};
pub use guarantees::GUARANTEES;
pub use names::{
    child_session_id, compact_job_id, is_job_id, job_id_from_storage, job_storage_name,
    split_child_session_id, valid_job_component,
};
pub use observer::{ObserverConfig, Watcher};
pub use preset::{Asking, preset};
pub use protocol::{Mode, Openseek, OpenseekExtra, RunCannotAsk, ServerConfig};
pub use rules::{RULES, UNSEEN};
pub use spec::SPEC;

/// The longest line of a host that is held, in bytes of content: 64 MiB. The contract sets none; this is ours.
pub const HOST_LINE_MAX: usize = 64 * 1024 * 1024;
/// The longest line of an engine that a host reads: 64 MiB. The contract sets none; this is ours.
pub const AGENT_LINE_MAX: usize = 64 * 1024 * 1024;
/// The most UTF-16 units of a `tool_result`'s content, the mark that something is left out included.
pub const RESULT_UNITS: usize = 60_000;
/// How many turns begin by themselves for a goal that was set with `auto`.
pub const GOAL_TURNS: u32 = 20;
/// From how much of the window on a turn yields, in percent.
pub const YIELD_PERCENT: u8 = 70;
/// How much of the window a request may take at most, in percent.
pub const HARD_PERCENT: u8 = 80;

/// How the `session_error` of a goal begins that couldn't be stored.
const GOAL_LOST: &str = "failed to append goal update: ";
/// How the `session_error` of a command of the person's begins that has no place in the history.
const COMMAND_LOST: &str = "failed to append command: ";
