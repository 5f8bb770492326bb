//! The Client: an agent that speaks omp, as neutral commands and events.
//!
//! omp answers each command by its id, and tells of a run with frames that don't pair: a failed attempt is a run without
//! an end, a detached run just stops, and updates repeat the whole message. So this Client takes steps from
//! `turn_start` and `turn_end`, text from deltas and from `message_end` alone, and what ends a prompt from whichever of
//! the four signs the program's generation has ([`turn`], [`prompts`]). What isn't known is passed on as an
//! [`OmpExtra`](super::OmpExtra), never lost.

mod asks;
mod books;
mod calls;
mod commands;
mod convert;
mod flow;
mod lines;
mod prompts;
mod reply;
mod requests;
mod responses;
mod runs;
mod state;
mod turn;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use self::asks::Asks;
use self::books::{Books, Sent, Wire};
use self::flow::Cut;
use self::prompts::Prompts;
use self::runs::Runs;
use self::turn::{Abort, Ending, Turn};
use super::codec::{ChunkReader, offers_chunks};
use super::wire::{AgentLine, Any, Command as Line, Frame, GetState, NegotiateProtocol, Ready};
use super::wire::{SetEventFilter, SetSubagentSubscription};
use super::{Generation, Omp, OmpOutcome, PROTOCOL_1};
use crate::frame::{Split, SplitKind, is_blank};
use crate::json::{Members, Raw};
use crate::protocol::ClientOutbox;
use crate::protocol::client::Closing;
use crate::protocol::heard::unknown_session;
use crate::vocab::*;

type Out = ClientOutbox<Omp>;

/// Commands that may wait for the agent's start, or for a change of session.
const MOST_EARLY: usize = 256;

/// Which frames of subagents a Client asks its agent for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subagents {
    /// None.
    Off,
    /// When they start and end, and how far they are.
    #[default]
    Progress,
    /// All their events, as those of nested runs.
    Events,
}

/// What an omp Client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The folder that the agent was started in, which it never says. Empty: not known.
    pub cwd: Text,
    /// Asks an agent that offers it for protocol 2, whose frames are whole up to 64 MiB. On.
    pub chunks: bool,
    /// Asks the agent to leave the repeated message out of its updates. One that can't goes on as before. On.
    pub deltas: bool,
    /// Frames of subagents: [`Subagents::Progress`].
    pub subagents: Subagents,
    /// How long the end of a run waits for the `prompt_result` that says more of it, in microseconds: 50,000.
    pub look_ahead_us: u64,
    /// Prompts that may wait for the agent: 256.
    pub queued_prompts: usize,
    /// Bytes of their texts: 16 MiB.
    pub queued_bytes: usize,
    /// Bytes of one reply that are kept for its `MessageEnded`: 64 MiB. Deltas beyond it are passed on all the same.
    pub reply_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            cwd: "".into(),
            chunks: true,
            deltas: true,
            subagents: Subagents::Progress,
            look_ahead_us: 50_000,
            queued_prompts: 256,
            queued_bytes: 16 * 1024 * 1024,
            reply_bytes: super::MAX_REASSEMBLED,
        }
    }
}

/// The state of an omp Client.
#[derive(Debug)]
pub struct ClientFace {
    config: ClientConfig,
    members: Members,
    chunks: ChunkReader,
    generation: Generation,
    stage: Stage,
    /// A session was opened.
    opened: bool,
    /// Commands that wait for the agent's start, or for a change of session.
    early: VecDeque<Early>,
    changing: Option<Changing>,
    info: Box<SessionInfo>,
    books: Books,
    prompts: Prompts,
    /// The newest prompt that was taken: an older one is a duplicate.
    newest: Option<PromptId>,
    /// Cancels of a turn whose response hasn't come.
    aborts: Vec<Abort>,
    /// `agent_start` came; the turn begins with what is in it.
    starting: bool,
    turn: Option<Turn>,
    /// The open turn has ended, and its `prompt_result` may say more.
    ending: Option<Ending>,
    asks: Asks,
    compacting: bool,
    /// Prompts wait for another one: a cancel left them in the queue.
    held: bool,
    /// What slash commands printed, for the prompt whose response comes next.
    printed: Vec<Text>,
    runs: Runs,
    closing: Closing,
    /// The last cancel was by this signal.
    signal: Option<Signal>,
    /// Something happened since the last `Settled`.
    active: bool,
    /// The last run said that nothing follows it.
    quiet: bool,
}

/// What waits until it may be written.
#[derive(Debug)]
enum Early {
    Call(Call),
    /// A line of this protocol's own, and what its response answers.
    Line(CommandId, &'static str, Option<&'static str>, Vec<u8>),
}

impl Early {
    const fn id(&self) -> CommandId {
        match self {
            Early::Call(call) => call.id,
            Early::Line(id, ..) => *id,
        }
    }
}

/// How far the session's opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// `ready` hasn't come.
    Waiting,
    /// The state was asked for.
    Asking,
    /// Its history was asked for.
    Reading,
    Done,
}

/// A change of session that was written.
#[derive(Debug)]
struct Changing {
    command: CommandId,
    /// The agent did it; the new session's state is still to come. The text for the host's editor.
    done: Option<Option<Text>>,
}

impl crate::protocol::ClientFace<Omp> for ClientFace {
    fn open(config: ClientConfig, _: &mut Out) -> Self {
        let mut info = unknown_session();
        info.product = "omp".into();
        info.cwd = config.cwd.clone();
        info.root = (!config.cwd.is_empty()).then(|| config.cwd.clone());
        info.settings.interrupting = Interrupting::Immediate;
        ClientFace {
            config,
            members: Members::default(),
            chunks: ChunkReader::new(),
            generation: Generation::G1,
            stage: Stage::Waiting,
            opened: false,
            early: VecDeque::new(),
            changing: None,
            info: Box::new(info),
            books: Books::default(),
            prompts: Prompts::default(),
            newest: None,
            aborts: Vec::new(),
            starting: false,
            turn: None,
            ending: None,
            asks: Asks::default(),
            compacting: false,
            held: false,
            printed: Vec::new(),
            runs: Runs::default(),
            closing: Closing::Open,
            signal: None,
            active: false,
            quiet: false,
        }
    }

    fn command(&mut self, call: Call, out: &mut Out) {
        self.release_ending(out);
        let at_once = matches!(call.command, Command::Close { drain: false });
        let beside = matches!(
            call.command,
            Command::Reply { .. } | Command::ReplyPart { .. } | Command::Cancel { .. }
        );
        let passes = at_once || beside && self.opened;
        if passes || self.is_open() || self.closing != Closing::Open {
            self.act(call, out);
            return self.idle(out);
        }
        // An agent that turns out to speak something else gets nothing; a session that is left gets nothing more.
        self.put_early(Early::Call(call), out);
    }

    fn line(&mut self, line: &Split<'_>, out: &mut Out) {
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { bytes, .. } => {
                let _ = self.chunks.other_line();
                return out.finding(format!(
                    "a line of {bytes} bytes is no frame and was skipped"
                ));
            }
        };
        if is_blank(content) {
            return;
        }
        // The buffer is taken out, so that the line may borrow from it while the state changes.
        let mut members = core::mem::take(&mut self.members);
        match AgentLine::decode(content, &mut members) {
            Ok(AgentLine::Frame(Frame::Chunk(chunk))) => match self.chunks.chunk(&chunk) {
                Ok(None) => {}
                Ok(Some(whole)) => self.frame(&whole, out),
                Err(fault) => out.finding(format!("a frame in pieces is lost: {fault}")),
            },
            read => {
                if let Err(fault) = self.chunks.other_line() {
                    out.finding(format!("a frame in pieces is lost: {fault}"));
                }
                match read {
                    Ok(line) => self.hear(&line, out),
                    Err(fault) => out.finding(format!("not a line of the contract: {fault}")),
                }
            }
        }
        self.members = members;
        self.idle(out);
    }

    fn end(&mut self, out: &mut Out) {
        self.gone(out);
    }

    fn settled(&mut self, _: u64, _: OmpOutcome, _: &mut Out) {
        // A Client asks nothing of its embedder beside the questions of the vocabulary.
    }

    fn woken(&mut self, out: &mut Out) {
        let over = |ending: &Ending| ending.until_us <= out.now().mono_us;
        if self.ending.as_ref().is_some_and(over) {
            self.release_ending(out);
            self.idle(out);
        }
        let calls = self.turn.as_mut().map(|turn| &mut turn.flow.calls);
        self.asks.time_out(calls, out);
    }

    fn due(&self) -> Option<Due> {
        let ending = self.ending.as_ref().map(|ending| Due {
            at_us: ending.until_us,
            why: "look_ahead",
        });
        let ask = self.asks.due_us().map(|at_us| Due {
            at_us,
            why: "dialog",
        });
        Due::earliest(ending, ask)
    }
}

impl ClientFace {
    /// A frame that came in pieces.
    fn frame(&mut self, whole: &[u8], out: &mut Out) {
        let mut members = Members::default();
        match AgentLine::decode(whole, &mut members) {
            Ok(line) => self.hear(&line, out),
            Err(fault) => out.finding(format!("not a frame of the contract: {fault}")),
        }
    }

    /// Whether commands may be written.
    fn is_open(&self) -> bool {
        self.stage == Stage::Done && self.changing.is_none()
    }

    fn put_early(&mut self, early: Early, out: &mut Out) {
        if self.early.len() >= MOST_EARLY {
            return out.reply(early.id(), Seen::Inferred, Err(Refusal::Full));
        }
        self.early.push_back(early);
    }

    /// `ready`: the Client asks for what it needs.
    fn ready(&mut self, ready: &Ready<'_>, out: &mut Out) {
        if self.stage != Stage::Waiting {
            return out.finding("ready came twice; the second is ignored");
        }
        if ready.protocol_version.is_some_and(|it| it != PROTOCOL_1) {
            out.finding("the agent doesn't begin with protocol 1");
        }
        self.stage = Stage::Asking;
        if self.is_input_closed() {
            return;
        }
        if self.config.chunks && offers_chunks(ready) {
            let line = NegotiateProtocol {
                protocol_version: Any(Some(Raw::trusted("2"))),
                ..NegotiateProtocol::default()
            };
            self.books.send_own(Line::from(line), Sent::Negotiate, out);
        }
        if self.config.deltas {
            let line = SetEventFilter {
                events: Any(Some(Raw::NULL)),
                message_updates: Any(Some(Raw::trusted("\"delta\""))),
                ..SetEventFilter::default()
            };
            self.books.send_own(Line::from(line), Sent::Filter, out);
        }
        let level = match self.config.subagents {
            Subagents::Off => None,
            Subagents::Progress => Some("\"progress\""),
            Subagents::Events => Some("\"events\""),
        };
        if let Some(level) = level {
            let line = SetSubagentSubscription {
                level: Any(Some(Raw::trusted(level))),
                ..SetSubagentSubscription::default()
            };
            self.books.send_own(Line::from(line), Sent::Quiet, out);
        }
        self.ask_state(out);
    }

    fn ask_state(&mut self, out: &mut Out) {
        self.stage = Stage::Asking;
        let line = Line::from(GetState::default());
        self.books.send_own(line, Sent::State, out);
    }

    /// The session is known; what waited for it is acted on.
    fn session_opened(&mut self, seen: Seen, history: Vec<Arc<Message>>, out: &mut Out) {
        self.stage = Stage::Done;
        self.opened = true;
        let mut info = self.info.clone();
        info.continued = info.continued || !history.is_empty();
        info.history = history;
        out.event(RunId::MAIN, seen, What::Opened(info));
        if let Some(changing) = self.changing.take() {
            let text = changing.done.flatten();
            let answer = Answer::Session {
                vetoed: false,
                text,
            };
            out.reply(changing.command, Seen::Real, Ok(answer));
        }
        self.act_early(out);
    }

    /// Acts on what waited, as far as it may be.
    fn act_early(&mut self, out: &mut Out) {
        while self.is_open() || self.closing != Closing::Open {
            match self.early.pop_front() {
                Some(Early::Call(call)) => self.act(call, out),
                Some(Early::Line(id, name, member, bytes)) => {
                    self.write_raw(id, name, member, &bytes, out);
                }
                None => break,
            }
        }
    }

    /// Something that belongs to a session: without one it is made up.
    fn needs_session(&mut self, what: &str, out: &mut Out) {
        match self.stage {
            Stage::Done => return,
            Stage::Waiting => out.finding(format!("{what} before ready")),
            Stage::Asking | Stage::Reading => {}
        }
        self.session_opened(Seen::Inferred, Vec::new(), out);
    }

    fn is_input_closed(&self) -> bool {
        matches!(self.closing, Closing::Sent { .. })
    }

    /// Closes the agent's input: it finishes what it has taken, and leaves.
    fn close_input(&mut self, now: bool, out: &mut Out) {
        out.close_input();
        self.closing = Closing::Sent { now };
        self.asks.leaving = true;
    }

    /// The agent's output has ended. Everything that is open ends.
    fn gone(&mut self, out: &mut Out) {
        self.release_ending(out);
        let quiet = self.turn.is_none() && !self.prompts.has_fresh();
        let expected = self.closing != Closing::Open && quiet;
        let failure = Failure::new(
            if self.opened {
                FailureKind::Internal
            } else {
                FailureKind::Setup
            },
            match (self.opened, self.turn.is_some()) {
                (false, _) => "the agent ended before its session was open",
                (true, true) => "the agent ended in the middle of a turn",
                (true, false) => "the agent ended",
            },
        );
        let refusal = if self.closing == Closing::Open {
            Refusal::Failed(failure.clone())
        } else {
            Refusal::Closing
        };
        for early in core::mem::take(&mut self.early) {
            out.reply(early.id(), Seen::Inferred, Err(refusal.clone()));
        }
        self.admit_held(out);
        if let Some(changing) = self.changing.take() {
            out.reply(changing.command, Seen::Inferred, Err(refusal.clone()));
        }
        self.end_turn_gone(&failure, out);
        self.refuse_all(&refusal, out);
        self.end_prompts(&End::Dropped(DropWhy::Closed), out);
        self.end_compaction(CompactionFault::Failed(failure.clone()), out);
        self.asks.gone(&failure, out);
        self.runs.end_all(&Cut::Gone(failure.clone()), out);
        if core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        let why = self.closing.why(self.signal, expected, failure);
        out.infer(What::Closed { why });
    }

    /// Replies to every command that waits, for good.
    fn refuse_all(&mut self, refusal: &Refusal, out: &mut Out) {
        for abort in core::mem::take(&mut self.aborts) {
            if let Some(command) = abort.command {
                let (hit, queued) = (Hit::Nothing, self.prompts.queued());
                let answer = Answer::Cancelling { hit, queued };
                out.reply(command, Seen::Inferred, Ok(answer));
            }
        }
        for sent in self.books.take_all() {
            if let Sent::Prompt(prompt) = sent {
                let sent = |known: &mut prompts::Known| known.stage == prompts::Stage::Sent;
                if self.prompts.get(prompt).is_some_and(sent)
                    && let Some(known) = self.prompts.take(prompt)
                {
                    out.reply(known.command, Seen::Inferred, Err(refusal.clone()));
                }
            }
            // These commands are among the aborts, or in the change of session.
            let elsewhere = matches!(sent, Sent::Abort(_) | Sent::Session(_));
            if let (false, Some(command)) = (elsewhere, sent.command()) {
                out.reply(command, Seen::Inferred, Err(refusal.clone()));
            }
        }
    }
}

/// The id on the wire that a line names.
fn wire_of(id: Any<'_>) -> Option<Wire> {
    Wire::read(&id.string()?)
}

/// An id as it is shown in a finding.
fn shown(id: Any<'_>) -> String {
    crate::protocol::heard::cut(&id.shown())
}
