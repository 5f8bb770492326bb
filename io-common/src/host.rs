//! What the embedder gives a driver: the host's side of a session.

use std::io::{Read, Write};

use turnwire::protocol::Protocol;
use turnwire::vocab::McpFact;

use crate::world::{Anew, Asked, Reloaded};

/// Answers what a protocol asks of its embedder. It runs on the loop's own thread: what takes time is answered
/// [later](Answered::Later).
pub type Answer<P> =
    Box<dyn FnMut(<P as Protocol>::Ask) -> Answered<<P as Protocol>::Outcome> + Send>;

/// The answer to what a protocol asked.
pub enum Answered<O> {
    /// Here it is.
    Now(O),
    /// It takes work that may block. Such work runs on one thread of its own, one after the other in the order in which
    /// it was asked for; the end of a session waits for it. Work that panics leaves its question open.
    Later(Box<dyn FnOnce() -> O + Send>),
}

impl<O> From<O> for Answered<O> {
    fn from(outcome: O) -> Self {
        Answered::Now(outcome)
    }
}

impl<O> std::fmt::Debug for Answered<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Answered::Now(_) => "Now",
            Answered::Later(_) => "Later",
        })
    }
}

/// Lines that only one protocol has, for a configuration that was read anew. They are said before the session uses it.
pub type Refrozen<P> =
    Box<dyn FnMut(&Reloaded, &Anew, Asked) -> Vec<<P as Protocol>::Extra> + Send>;

/// Lines that only one protocol has, for what became of an MCP server or its tools.
pub type HeardMcp<P> = Box<dyn FnMut(&McpFact) -> Vec<<P as Protocol>::Extra> + Send>;

/// The host's side of a session.
pub struct Host<P: Protocol> {
    /// What the host writes.
    pub input: Box<dyn Read + Send>,
    /// What the host reads.
    pub output: Box<dyn Write + Send>,
    /// Whether SIGINT, SIGTERM and SIGHUP are taken as the protocol says; a second one then ends the session at once.
    pub signals: bool,
    /// Answers what the protocol asks of its embedder.
    pub answer: Answer<P>,
    /// What the protocol says, beyond its answer, when the configuration was read anew.
    pub refrozen: Option<Refrozen<P>>,
    /// What the protocol says of MCP servers, beyond how they stand. It is logged in any case.
    pub heard_mcp: Option<HeardMcp<P>>,
    /// Returns once nobody can read `output` any more. It gets a thread of its own. Without it a host that goes away
    /// is noticed at the next write only, and a tool may be silent for long.
    pub gone: Option<Box<dyn FnOnce() + Send>>,
}

impl<P: Protocol> Host<P> {
    /// This process's standard input and output, with signals taken.
    pub fn stdio(answer: Answer<P>) -> Self {
        #[cfg(unix)]
        let gone: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(crate::gone::stdout_closed));
        #[cfg(not(unix))]
        let gone = None;
        let (input, output) = (Box::new(std::io::stdin()), Box::new(std::io::stdout()));
        Host {
            input,
            output,
            signals: true,
            answer,
            refrozen: None,
            heard_mcp: None,
            gone,
        }
    }
}

impl<P: Protocol> std::fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("signals", &self.signals)
            .finish_non_exhaustive()
    }
}
