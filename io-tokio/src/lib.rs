//! The tokio driver of Turnwire.
//!
//! The machines of the crate `turnwire` are told and asked, and never wait. This
//! crate does the waiting: it reads the host's lines, writes the agent's, sends
//! model requests over HTTP, runs tools as subprocesses, keeps the time, and
//! hands each thing that happens to the machines.
//!
//! What it promises, whatever happens:
//!
//! * An effect that was started is settled exactly once, a stopped one too.
//! * What was said before an effect is written before the effect starts.
//! * Writing never blocks the loop: while a host does not read, model streams
//!   are not read either, memory stays bounded, and a cancel still works.
//! * When [`serve`] returns, nothing that it started still runs.
//!
//! [`drive`] is the other way round: it starts an agent, and is its host.

mod drive;
mod driver;
pub mod hooks;
mod jobs;
#[cfg(feature = "mcp")]
mod mcp;
mod model;
mod output;
mod process;
mod signals;
mod start;
pub mod tools;

pub use drive::{AgentEnd, Driven, During, Person, Program, Screen, Served, Task, drive};
pub use driver::serve;
pub use turnwire_io::{
    Anew, Answer, Asked, Backend, Durable, Error, Fixed, Forget, HeardMcp, Host, HttpProvider,
    Refrozen, Reload, ReloadJob, Reloaded, Secret, World, WriteJob, mcp as mcp_servers, store,
};
