//! What the drivers of Turnwire share: everything of a driver that needs no runtime.
//!
//! The machines of the crate `turnwire` know no I/O, the drivers wait. Between the two lies a lot that does
//! neither: what a loop does between two waits, what the tools and hooks are, how a subprocess is ended, how sessions
//! lie on the disk, what an embedder gives a driver. It is here once, in plain std.

mod clock;
pub mod disk;
pub mod engine;
mod error;
pub mod gone;
pub mod hooks;
mod host;
pub mod input;
pub mod jobs;
pub mod mcp;
mod media;
mod model;
pub mod output;
pub mod process;
mod secret;
pub mod store;
pub mod tools;
mod world;

pub use clock::Clock;
pub use error::Error;
pub use host::{Answer, Answered, HeardMcp, Host, Refrozen};
pub use media::{BODY_MAX, Body, Media, MediaSource};
pub use model::{Backend, Door, HttpProvider, PART_MAX, Part};
pub use secret::Secret;
pub use world::{
    Anew, Asked, Durable, Fixed, Forget, OpenJob, Opened, Reload, ReloadJob, Reloaded, Sessions,
    World, WriteJob,
};
