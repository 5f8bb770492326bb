//! What the embedder gives a driver: the outside world of one session.

use turnwire::vocab::{Frozen, OpenBody, OpenFault, OtherSession, RunId, Text, WriteBody};

use crate::hooks::Hooks;
use crate::mcp::Mcp;
use crate::media::Media;
use crate::model::Backend;
use crate::tools::{Snapshots, Toolbox};

/// A durable write, made ready by [`Durable::prepare`]: it owns what it needs, and runs on the storage thread.
pub type WriteJob = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// A configuration that was read anew: what [`World::reload`] gave.
#[derive(Debug)]
pub struct Reloaded {
    /// Tools now, as many as the receipt says.
    pub tools: u32,
    /// Skills now.
    pub skills: u32,
    /// A sentence for each change: what changed, and who changed it.
    pub changes: Vec<Text>,
    /// What is new; `None` if nothing changed.
    pub anew: Option<Box<Anew>>,
}

/// What a session and its driver use from now on.
#[derive(Debug)]
pub struct Anew {
    /// The session's part.
    pub frozen: Frozen,
    /// The tools that calls are carried out with.
    pub toolbox: Toolbox,
    /// The hooks.
    pub hooks: Hooks,
}

/// Who wanted a configuration to be read anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The host, which gets an answer.
    Host,
    /// Nobody: it stands before a turn.
    Nobody,
}

/// Reads the configuration anew. It runs on the storage thread and may block; its error text leaves everything as it
/// was.
pub type ReloadJob = Box<dyn FnOnce() -> Result<Reloaded, String> + Send>;

/// Where the configuration comes from, while a session goes on.
pub trait Reload: Send {
    /// Makes a reading ready.
    fn prepare(&mut self, asked: Asked) -> ReloadJob;

    /// Whether the configuration is also read before each turn.
    fn before_turns(&self) -> bool {
        false
    }
}

/// A configuration that never changes.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Tools, for receipts.
    pub tools: u32,
}

impl Reload for Fixed {
    fn prepare(&mut self, _: Asked) -> ReloadJob {
        let tools = self.tools;
        Box::new(move || {
            Ok(Reloaded {
                tools,
                skills: 0,
                changes: Vec::new(),
                anew: None,
            })
        })
    }
}

/// Where durable writes go. Writes are carried out one after the other, in the order they were asked for.
pub trait Durable: Send {
    /// Takes from `body` what the write needs. The job it returns does the I/O and may block;
    /// it returns only when the data is safe, and its error text is shown to the host.
    fn prepare(&mut self, body: &WriteBody<'_>) -> WriteJob;

    /// As [`prepare`](Durable::prepare), of a nested run, if `run` isn't the outermost agent. What a person allowed holds
    /// whoever asked; all else of a run is kept nowhere, if nothing else is said.
    fn prepare_of(&mut self, run: RunId, body: &WriteBody<'_>) -> WriteJob {
        let holds = matches!(body, WriteBody::Approval(_) | WriteBody::Permissions(_));
        if run == RunId::MAIN || holds {
            self.prepare(body)
        } else {
            Box::new(|| Ok(()))
        }
    }
}

/// A [`Durable`] for sessions that keep nothing: every write succeeds at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forget;

impl Durable for Forget {
    fn prepare(&mut self, _body: &WriteBody<'_>) -> WriteJob {
        Box::new(|| Ok(()))
    }
}

/// Another session that is ready to take the place of the one that is open.
pub struct Opened {
    /// What the session is told of it.
    pub other: Box<OtherSession>,
    /// Where its writes go; `None`: where they went so far, since it is the one that is open.
    pub durable: Option<Box<dyn Durable>>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("other", &self.other)
            .finish_non_exhaustive()
    }
}

/// Opens another session. It runs on the storage thread and may block; if it fails nothing has changed.
pub type OpenJob = Box<dyn FnOnce() -> Result<Opened, OpenFault> + Send>;

/// Where other sessions come from.
pub trait Sessions: Send {
    /// Takes what the opening needs. `from` is the file of the session that is open, if it has one.
    fn prepare(&mut self, which: &OpenBody<'_>, from: Option<&str>) -> OpenJob;
}

/// The outside world of one session.
pub struct World {
    /// Where model requests go.
    pub backend: Backend,
    /// The tools that calls are carried out with.
    pub toolbox: Toolbox,
    /// Where files are put aside before the tools change them; `None`: a session must not ask for it.
    pub snapshots: Option<Snapshots>,
    /// The hooks of the session's configuration.
    pub hooks: Hooks,
    /// Where durable writes go.
    pub durable: Box<dyn Durable>,
    /// Where other sessions come from; `None`: there are none.
    pub sessions: Option<Box<dyn Sessions>>,
    /// Reads the configuration anew.
    pub reload: Box<dyn Reload>,
    /// Media that messages refer to; [`Media::none`] where nothing is kept.
    pub media: Media,
    /// MCP servers that the driver runs. Only the tokio driver, built with its feature `mcp`, can: with others they all
    /// fail.
    pub mcp: Option<Mcp>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}
