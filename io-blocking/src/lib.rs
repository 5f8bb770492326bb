//! The blocking driver of Turnwire: threads, and no async runtime anywhere below it.
//!
//! It does what `turnwire-tokio` does, in the same order and with the same bytes: both are a wait around the
//! [engine](turnwire_io::engine) that they share. Here the wait is one channel. The host's pipes, signals and
//! storage have a thread each; a model request, a tool call and a hook have one while they run.
//!
//! What it promises, whatever happens:
//!
//! * An effect that was started is settled exactly once, a stopped one too.
//! * What was said before an effect is written before the effect starts.
//! * Writing never blocks the loop: while a host does not read, model streams
//!   are not read either, memory stays bounded, and a cancel still works.
//! * When [`serve`] returns, nothing that it started still runs, with three exceptions that no thread can end: a read
//!   of the host's input, which ends with the input; a wait for the host to [go away](Host::gone); and a name or a
//!   connection that is being looked up or made for a request that nobody waits for any more, for ten seconds at most.

mod bulk;
mod cancel;
mod driver;
pub mod hooks;
#[cfg(feature = "http")]
mod http;
mod jobs;
mod live;
mod model;
mod process;
mod signals;
mod start;
pub mod tools;

pub use driver::serve;
pub use turnwire_io::{
    Anew, Answer, Asked, Backend, Durable, Error, Fixed, Forget, Host, HttpProvider, Refrozen,
    Reload, ReloadJob, Reloaded, Secret, World, WriteJob, store,
};
