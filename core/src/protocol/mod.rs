//! Protocols: one folder each, behind one trait.
//!
//! A [`Server`] puts a protocol's face on any agent: lines of the host become
//! commands, events of the agent become lines. The work that all protocols
//! share (output bytes, one queue of outputs, ids, time) is in the `Server`
//! itself; what makes a protocol is its [`ServerFace`].
//!
//! A room of its own: a protocol knows the vocabulary, JSON and line rules, and
//! no other protocol.

pub mod agentx;
mod approvals;
mod client;
mod credentials;
mod heard;
mod ids;
mod lines;
mod member;
pub mod observer;
pub mod omp;
pub mod openmax;
pub mod openseek;
mod said;
mod server;
pub mod spec;
pub mod splice;
mod wire;

use core::fmt::Debug;

use crate::frame::{LineRules, Split};
use crate::vocab::{Call, DeltaRef, Due, Event, Level, Now, Signal, Text};

pub use client::{Client, ClientIds, ClientOutbox, Finding};
pub use credentials::{Credentials, LEAST_BYTES, MASK, OnCredential, TooMuch};
pub use server::{HELD_LIMIT, LATCHED, OVERLONG, Outbox, Server};
pub use wire::WireFault;

/// One protocol: its name, its typed requests and information, and its machines.
pub trait Protocol: Sized + Debug + Clone + PartialEq + Eq + 'static {
    /// The name on the command line.
    const NAME: &'static str;

    /// What becomes of a line that holds a credential: see [`Server::hide`].
    const ON_CREDENTIAL: OnCredential = OnCredential::Hide;

    /// What the Server asks of its embedder, because it needs the outside world. Settled once by
    /// [`Server::settle`]; the default answer is the failure that the protocol documents.
    type Ask: Debug + Clone + PartialEq;
    /// How an [`Ask`](Protocol::Ask) was settled.
    type Outcome: Debug + Clone + PartialEq + Send + 'static;
    /// A typed line with no neutral meaning: information only, in both directions.
    type Extra: Debug + Clone + PartialEq;
    /// What a Server of this protocol is built from.
    type ServerConfig;
    /// The Server's own state.
    type Face: ServerFace<Self>;
    /// What a Client of this protocol is built from.
    type ClientConfig;
    /// The Client's own state.
    type Client: ClientFace<Self>;

    /// What a bridge to another protocol may say instead of an [`Extra`](Protocol::Extra); `None`: nothing.
    fn soften(extra: &Self::Extra) -> Option<(Level, Text)>;

    /// How the host's bytes are cut into lines.
    fn host_line_rules() -> LineRules;

    /// How the agent's bytes are cut into lines.
    fn agent_line_rules() -> LineRules;
}

/// The part of a Server that is the protocol: told by the [`Server`], which keeps time monotone,
/// and writing to an [`Outbox`]. Nothing that a host or an agent does may panic or fail here (L9).
pub trait ServerFace<P: Protocol>: Sized {
    /// Begins; a protocol that speaks first writes its line here.
    fn open(config: P::ServerConfig, out: &mut Outbox<P>) -> Self;
    /// Takes a line of the host, or what stands in its place (too long, cut off).
    fn line(&mut self, line: &Split<'_>, now: Now, out: &mut Outbox<P>);
    /// The host's input has ended.
    fn end(&mut self, now: Now, out: &mut Outbox<P>);
    /// The process got a signal.
    fn signal(&mut self, signal: Signal, now: Now, out: &mut Outbox<P>);
    /// The agent said something. Never `What::Delta`: that comes as [`delta`](ServerFace::delta).
    fn event(&mut self, event: &Event, out: &mut Outbox<P>);
    /// The agent streamed a piece of a message: the hot path.
    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<P>);
    /// The embedder hands in information that only this protocol has a line for.
    fn extra(&mut self, extra: P::Extra, now: Now, out: &mut Outbox<P>);
    /// An ask was settled; `id` is live and hasn't been dismissed.
    fn settled(&mut self, id: u64, outcome: P::Outcome, now: Now, out: &mut Outbox<P>);
    /// A deadline may have come.
    fn woken(&mut self, now: Now, out: &mut Outbox<P>);
    /// The next deadline of the protocol's own timers.
    fn due(&self) -> Option<Due>;
    /// False while the face itself holds too many lines that it can't act on yet.
    fn wants_lines(&self) -> bool;
}

/// The part of a [`Client`] that is the protocol: told by the `Client`, which keeps time monotone, and writing to a
/// [`ClientOutbox`]. Nothing that an agent does may panic or fail here (L9).
pub trait ClientFace<P: Protocol>: Sized {
    /// Begins; a protocol whose host speaks first writes its line here.
    fn open(config: P::ClientConfig, out: &mut ClientOutbox<P>) -> Self;
    /// Takes a command, and sees to it that it gets one `Replied`.
    fn command(&mut self, call: Call, out: &mut ClientOutbox<P>);
    /// Takes a line of the agent, or what stands in its place (too long, cut off).
    fn line(&mut self, line: &Split<'_>, out: &mut ClientOutbox<P>);
    /// The agent's output has ended: ends everything that is open, and says `What::Closed`.
    fn end(&mut self, out: &mut ClientOutbox<P>);
    /// An ask was settled; `id` is live.
    fn settled(&mut self, id: u64, outcome: P::Outcome, out: &mut ClientOutbox<P>);
    /// A deadline may have come.
    fn woken(&mut self, out: &mut ClientOutbox<P>);
    /// The next deadline of the protocol's own timers.
    fn due(&self) -> Option<Due>;
    /// False while the face itself holds too much that it can't act on yet.
    fn wants_lines(&self) -> bool {
        true
    }
}

/// What a Server gives its embedder beside lines, in order with them.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput<P: Protocol> {
    /// A command for the agent.
    Call(Call),
    /// A question to the embedder, to be settled exactly once, a dismissed one too.
    Ask {
        /// For [`Server::settle`].
        id: u64,
        /// The question.
        ask: P::Ask,
    },
    /// The answer to this question isn't needed any more.
    Dismiss {
        /// The question's id.
        id: u64,
    },
    /// A sentence for the person who runs the process (stderr), never for the host.
    Diagnostic(Text),
    /// Everything is said: leave with this code once the lines are written. The last output.
    Exit {
        /// The exit code.
        code: u8,
    },
}

/// What a Client gives its embedder: the mirror of [`ServerOutput`].
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOutput<'a, P: Protocol> {
    /// What the agent said, in neutral words.
    Event(&'a Event),
    /// A piece of a message, lent.
    Delta(DeltaRef<'a>),
    /// Information that only this protocol has.
    Extra(&'a P::Extra),
    /// A request of this protocol's own, to be settled once.
    Ask {
        /// The request's id.
        id: u64,
        /// The request.
        ask: &'a P::Ask,
    },
    /// The agent broke its contract here; the stream goes on.
    Finding(&'a Finding),
    /// Close the agent's input, once the lines so far are written.
    CloseInput,
    /// Send the agent's process this signal.
    Signal(Signal),
    /// The agent is gone, and everything that was open has been ended.
    Closed,
}

/// An entry of [`PROTOCOLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolName {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Whether [`Server`] can speak it.
    pub served: bool,
}

/// The five protocols.
pub const PROTOCOLS: [ProtocolName; 5] = [
    ProtocolName {
        name: openmax::Openmax::NAME,
        title: "line-delimited stdio sessions (openmax-stdio/6)",
        served: true,
    },
    ProtocolName {
        name: agentx::Agentx::NAME,
        title: "control requests over stream-json",
        served: true,
    },
    ProtocolName {
        name: openseek::Openseek::NAME,
        title: "flat event stream with an ordered inbox",
        served: true,
    },
    ProtocolName {
        name: splice::Splice::NAME,
        title: "one-shot pipeline runs",
        served: true,
    },
    ProtocolName {
        name: "omp",
        title: "RPC with a response for each command",
        served: true,
    },
];

/// The entry of that name.
pub fn protocol_named(name: &str) -> Option<ProtocolName> {
    PROTOCOLS.into_iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_five_protocols_once_each() {
        for (index, entry) in PROTOCOLS.iter().enumerate() {
            assert_eq!(
                PROTOCOLS.iter().position(|other| other.name == entry.name),
                Some(index)
            );
            assert_eq!(protocol_named(entry.name), Some(*entry));
        }
        assert_eq!(protocol_named("OPENMAX"), None);
        for name in ["openmax", "omp", "agentx", "openseek", "splice"] {
            assert!(
                protocol_named(name).is_some_and(|entry| entry.served),
                "{name}"
            );
        }
    }
}
