//! What the world needs of a protocol, and what may stand between the two ends.

use turnwire::{
    protocol::{
        Protocol,
        observer::{Dir, Finding, Observed, Watch},
    },
    session::SessionConfig,
    vocab::{Command, End, SessionInfo},
};

use crate::{scenario::Setup, script::ToolNews};

/// A protocol that can be played: one impl, and the whole world speaks it.
pub trait Speaks: Observed + Protocol {
    /// Whether the wire says of each question that it is closed. Where it doesn't, a Client closes it with its answer, and
    /// a Server asks nobody who has left: the two ends aren't compared in that.
    const SETTLES: bool = true;

    /// Whether the wire says that a call begins, or was skipped, and what of a reply is thinking. Where it doesn't, a
    /// Client guesses the first from the reply, and the two ends aren't compared in that.
    const TELLS_CALLS: bool = true;

    /// Whether a host has words for jobs and goals, so that it uses them here.
    const OWNS: bool = false;

    /// Whether a reply's thinking can be told from what else the agent says on the way. Where it can't, the two ends aren't
    /// compared in that.
    const TELLS_THINKING: bool = true;

    /// Makes a session's configuration one of an agent behind this protocol.
    fn session(config: &mut SessionConfig, setup: &Setup);

    /// The Server's.
    fn server(setup: &Setup) -> Self::ServerConfig;

    /// The Client's.
    fn client(setup: &Setup) -> Self::ClientConfig;

    /// The observer's.
    fn observer(setup: &Setup) -> <Self::Watch as Watch>::Config;

    /// The observer's, for whichever age of the contract this picks; 0 is the newest.
    fn watched(pick: u8) -> <Self::Watch as Watch>::Config;

    /// A line, with its newline, that an agent must refuse and that changes nothing else. Any pick gives one.
    fn bad_host_line(pick: u8) -> Vec<u8>;

    /// A line, with its newline, that a host must skip and that changes nothing else. Any pick gives one.
    fn bad_agent_line(pick: u8) -> Vec<u8>;

    /// Whether the protocol has a way to say this. A Client refuses what it has none for, and writes nothing.
    fn says(command: &Command) -> bool;

    /// Whether the agent's driver brings such news of a call behind this protocol.
    fn brings(news: ToolNews) -> bool {
        let _ = news;
        true
    }

    /// A line of this side, decoded and encoded again; `None`: it is no line of the contract (L10).
    fn again(dir: Dir, line: &[u8]) -> Option<Vec<u8>>;

    /// Answers what a Server or a Client asks of its embedder. Any pick gives an answer that an embedder may give; it
    /// settles the ask, whatever it says.
    fn answer(ask: &Self::Ask, pick: u8) -> Self::Outcome;

    /// What a host answers to this line of an agent, with its newline: yes or no. `None`: the line asks nothing.
    fn consent(line: &[u8], yes: bool) -> Option<Vec<u8>>;

    /// Whether a Client's finding only reports what its wire has no word for.
    fn is_loss(finding: &str) -> bool {
        let _ = finding;
        false
    }

    /// Whether what became of the world excuses a finding of the observer.
    fn excuses(finding: &Finding, mess: &Mess) -> bool;

    /// The end of a turn in the words of this protocol, so that both ends can be compared; `None`: it has none.
    fn end_word(end: &End) -> Option<&'static str>;

    /// What the agent says of itself at the start.
    fn info() -> SessionInfo;
}

/// What became of the world: what excuses a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mess {
    /// The agent's process got a signal.
    pub signal: bool,
    /// It got a second one, and left without waiting for anything.
    pub hurried: bool,
    /// The driver caught a crash.
    pub crash: bool,
    /// The agent's process was killed.
    pub killed: bool,
    /// The agent's input ended and its host didn't want that.
    pub cut_off: bool,
    /// A bad line was written into the stream of the host.
    pub bad_host: bool,
    /// A bad line was written into the stream of the agent.
    pub bad_agent: bool,
}

impl Mess {
    /// Whether the two ends can tell different stories.
    pub fn parts_the_ends(&self) -> bool {
        self.killed || self.cut_off || self.hurried
    }
}

/// Somebody between the two ends who changes bytes on purpose: what a broken peer or reader does.
pub trait Tamper {
    /// What this side writes, before anybody sees it.
    fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        let _ = dir;
        bytes
    }

    /// What this side wrote, behind the observer and the pipe, as its reader gets it: one piece.
    fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
        let _ = dir;
        bytes
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untouched;

impl Tamper for Untouched {}

/// The rules of a side's lines, with a limit that is small enough to be passed.
pub fn line_rules<P: Protocol>(dir: Dir) -> turnwire::frame::LineRules {
    match dir {
        Dir::Host => turnwire::frame::LineRules {
            max_bytes: P::host_line_rules().max_bytes.min(LINE_MAX),
            ..P::host_line_rules()
        },
        Dir::Agent => P::agent_line_rules(),
    }
}

/// The longest line of a host in the world, in bytes.
pub(super) const LINE_MAX: usize = 4_096;
