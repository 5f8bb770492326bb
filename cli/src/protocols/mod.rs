//! What the program has to know of a protocol. Everything else of its commands is the same for all.
//!
//! A protocol is one line in the table below, and one module with its impls of [`Served`] and [`Spoken`].

pub mod agentx;
mod claude;
mod omp;
mod openmax;
pub mod openseek;

use std::sync::Arc;

use clap::ValueEnum;
use turnwire::protocol::Protocol;
use turnwire::protocol::agentx::Agentx;
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::protocol::openseek::Openseek;
use turnwire::session::config::SessionConfig;
use turnwire::vocab::{Frozen, ModelRef, Text, ToolSpec};
use turnwire_io::mcp::Servers;
use turnwire_io::{Answer, HeardMcp, Refrozen};
use turnwire_media::Blobs;

use crate::args::ServeArgs;
use crate::below::Below;
use crate::ids::IdKind;
use crate::keep::Begun;
use crate::say::Stop;
use crate::start::Start;

/// What is done, as a host, in a protocol that only the command line names.
pub trait Work {
    /// What comes of it.
    type Done;

    /// Does it.
    fn run<P: Spoken>(self) -> Self::Done;
}

/// The protocols that can be served and driven, as the command line names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServedName {
    /// openmax-stdio/6
    Openmax,
    /// omp's RPC mode, protocol 1 and 2
    Omp,
    /// The structured SDK wire of agentx
    Agentx,
    /// The wire of the Claude Agent SDKs
    Claude,
    /// openseek's engine
    Openseek,
}

impl ServedName {
    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            ServedName::Openmax => Openmax::NAME,
            ServedName::Omp => Omp::NAME,
            ServedName::Agentx => Agentx::NAME,
            ServedName::Claude => "claude",
            ServedName::Openseek => Openseek::NAME,
        }
    }

    /// Speaks in the protocol of this name.
    pub fn speak<W: Work>(self, work: W) -> W::Done {
        match self {
            ServedName::Openmax => work.run::<Openmax>(),
            ServedName::Omp => work.run::<Omp>(),
            ServedName::Agentx | ServedName::Claude => work.run::<Agentx>(),
            ServedName::Openseek => work.run::<Openseek>(),
        }
    }

    /// Serves in the protocol of this name.
    pub fn with<W: ServeWork>(self, work: W) -> W::Done {
        match self {
            ServedName::Openmax => work.run::<Openmax>(),
            ServedName::Omp => work.run::<Omp>(),
            ServedName::Agentx | ServedName::Claude => work.run::<Agentx>(),
            ServedName::Openseek => work.run::<Openseek>(),
        }
    }
}

/// What is done in a protocol that is served.
pub trait ServeWork {
    /// What comes of it.
    type Done;

    /// Does it.
    fn run<P: Served>(self) -> Self::Done;
}

/// A session that is about to begin: what a protocol's face is made from.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The command line.
    pub args: &'a ServeArgs,
    /// Settings, trust and folders.
    pub start: &'a Start,
    /// The session, new or going on.
    pub begun: &'a Begun,
    /// What the model is told first, and its tools.
    pub frozen: &'a Frozen,
    /// The model that the session begins with.
    pub model: &'a ModelRef,
    /// Bytes that nobody can guess.
    pub seed: [u8; 32],
    /// The attachments that the session keeps.
    pub blobs: Option<&'a Arc<Blobs>>,
    /// The MCP servers that this program runs.
    pub servers: &'a Servers,
    /// What is kept of nested runs.
    pub below: Option<&'a Below>,
}

/// A protocol that this program can serve.
pub trait Served: Protocol {
    /// Whether commands of the agent may go on in the background: its lines have words for such jobs.
    const HAS_JOBS: bool = false;

    /// The tools that the session itself carries out, for what its lines have words for.
    fn own_tools() -> Vec<ToolSpec> {
        Vec::new()
    }

    /// What of a command line can't be done, before anything of a session is there.
    ///
    /// # Errors
    /// [`Stop::Settings`].
    fn check(args: &ServeArgs, _start: &Start) -> Result<(), Stop> {
        args.seek.not_openseek()
    }

    /// How ids of sessions are made.
    fn session_ids(args: &ServeArgs) -> IdKind;

    /// Whether a session goes on only with the provider that it was begun with.
    fn is_bound(_args: &ServeArgs) -> bool {
        false
    }

    /// Sets what the contract decides for a session.
    fn preset(config: &mut SessionConfig, args: &ServeArgs);

    /// What its Server is built from.
    fn face(opening: &Opening<'_>) -> Self::ServerConfig;

    /// Answers what its Server asks of the embedder.
    fn answer(opening: &Opening<'_>) -> Answer<Self>;

    /// What is said at the start beside the Server's own lines.
    fn first_words(_opening: &Opening<'_>) -> Vec<Self::Extra> {
        Vec::new()
    }

    /// Whether a host may bring in attachments.
    fn takes_attachments(_args: &ServeArgs) -> bool {
        false
    }

    /// What the command line says in the host's place, newline included.
    ///
    /// # Errors
    /// [`Stop::Settings`] if it can't be said, or the protocol has no such thing.
    fn first_prompt(opening: &Opening<'_>) -> Result<Option<Vec<u8>>, Stop> {
        match &opening.args.stream.prompt {
            None => Ok(None),
            Some(_) => {
                let name = opening.args.protocol.word();
                let text = format!("--prompt: the hosts of {name} say their prompts themselves");
                Err(Stop::Settings(text))
            }
        }
    }

    /// What is said, beyond an answer, when the configuration was read anew.
    fn refrozen(_start: &Start) -> Option<Refrozen<Self>> {
        None
    }

    /// What is said of MCP servers, beyond how they stand.
    fn heard_mcp() -> Option<HeardMcp<Self>> {
        None
    }
}

/// How an agent is to be driven.
#[derive(Clone, Copy, Debug)]
pub struct Hosting<'a> {
    /// The protocol.
    pub name: ServedName,
    /// What the agent is told as it is greeted, as a JSON object.
    pub initialize: Option<&'a str>,
}

impl Hosting<'_> {
    /// Refuses what only agentx and claude have.
    ///
    /// # Errors
    /// [`Stop`] when it is wanted.
    fn without_greeting(&self) -> Result<(), Stop> {
        match self.initialize {
            None => Ok(()),
            Some(_) => Err(Stop::Settings(format!(
                "drive: agents of {} aren't told anything by --initialize",
                self.name.word()
            ))),
        }
    }
}

/// The folder that this program was started in.
fn here() -> Text {
    let cwd = std::env::current_dir().unwrap_or_default();
    cwd.to_string_lossy().into()
}

/// A protocol whose agents this program can drive.
pub trait Spoken: Protocol {
    /// What its Client is built from.
    ///
    /// # Errors
    /// [`Stop`] when it can't be what the command line wants.
    fn client(hosting: &Hosting<'_>) -> Result<Self::ClientConfig, Stop>;
}
