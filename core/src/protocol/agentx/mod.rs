//! agentx and claude: control requests over stream-json, one JSON object a line in both directions.
//!
//! One folder for two wires. *agentx* is the strict one: records are closed, nothing comes twice, the model and its
//! provider are fixed when the process starts. *claude* is the wire that the SDKs of that name speak. What differs is a
//! bit of the [`Policy`], and never a path of its own in the code.

mod client;
pub mod decision;
mod guarantees;
pub mod hear;
pub mod import;
mod neutral;
mod observer;
pub mod policy;
mod preset;
pub mod prompt;
mod protocol;
pub mod providers;
mod rules;
mod server;
mod settings;
mod spec;
pub mod wire;

pub use client::{ClientConfig, ClientFace};
pub use guarantees::GUARANTEES;
pub use import::{Attachments, ImportLimits, Imported};
pub use observer::{ObserverConfig, Watcher};
pub use policy::{Policy, Preset};
pub use preset::preset;
pub use protocol::{Agentx, AgentxAsk, AgentxExtra, AgentxOutcome, Selected, ServerConfig};
pub use rules::{RULES, UNSEEN};
pub use server::Face;
pub use settings::{SettingsLayer, SettingsSource};
pub use spec::{CLAUDE_SPEC, SPEC};

/// The longest line of the strict wire, in either direction, its newline not counted: 8 MiB.
pub const MAX_LINE: usize = 8_388_608;
/// The longest line of a host that is held at all: 64 MiB. claude sets none; this is ours.
pub const HOST_LINE_MAX: usize = 64 * 1024 * 1024;
