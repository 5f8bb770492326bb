//! What the embedder gives a driver: the outside world of one session.

use turnwire::vocab::{Answer, Text, WriteBody};

use crate::hooks::Hooks;
use crate::model::Backend;
use crate::tools::Toolbox;

/// A durable write, made ready by [`Durable::prepare`]: it owns what it needs, and runs on the storage thread.
pub type WriteJob = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// Where durable writes go. Writes are carried out one after the other, in the order they were asked for.
pub trait Durable: Send {
    /// Takes from `body` what the write needs. The job it returns does the I/O and may block;
    /// it returns only when the data is safe, and its error text is shown to the host.
    fn prepare(&mut self, body: &WriteBody<'_>) -> WriteJob;
}

/// A [`Durable`] for sessions that keep nothing: every write succeeds at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forget;

impl Durable for Forget {
    fn prepare(&mut self, _body: &WriteBody<'_>) -> WriteJob {
        Box::new(|| Ok(()))
    }
}

/// The outside world of one session.
pub struct World {
    /// Where model requests go.
    pub backend: Backend,
    /// The tools that calls are carried out with.
    pub toolbox: Toolbox,
    /// The hooks of the session's configuration.
    pub hooks: Hooks,
    /// Where durable writes go.
    pub durable: Box<dyn Durable>,
    /// Loads the configuration anew when the host asks for it. The answer is
    /// [`Answer::Reloaded`]; an error text leaves everything as it was.
    pub reload: Box<dyn FnMut() -> Result<Answer, Text> + Send>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}
