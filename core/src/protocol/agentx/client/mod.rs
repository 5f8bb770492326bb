//! The Client: an agent that speaks agentx or claude, as neutral commands and events.
//!
//! The wire has no frames for what the neutral stream is made of: turns are told by states, or by `system/init`, or by
//! nothing ([`turn`]); steps by nothing, requests only where replies stream ([`flow`]). A prompt has no acknowledgement
//! but its `result`. So much of what this Client says is inferred, each guess by the table in the contract's map, and
//! none of it holds back what the agent asks. What isn't known is passed on as an
//! [`AgentxExtra`](super::AgentxExtra), never lost.

mod asks;
mod books;
mod calls;
mod commands;
mod convert;
mod flow;
mod hooks;
mod lines;
mod mcp;
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
use alloc::vec::Vec;

use self::asks::Asks;
use self::books::{Books, Sent};
use self::calls::Calls;
use self::commands::refuse;
use self::flow::Cut;
use self::mcp::Mcp;
use self::prompts::{Prompts, Uuids};
use self::responses::{Answered, whole};
use self::runs::Runs;
use self::turn::{Sums, Turn};
use super::policy::{InitRecord, InitializeFields, UpdatedPermissions};
use super::wire::AgentLine;
use super::{Agentx, AgentxExtra, AgentxOutcome, HOST_LINE_MAX, Policy};
use crate::frame::{Split, SplitKind, is_blank};
use crate::json::{self, Members, Raw};
use crate::protocol::ClientOutbox;
use crate::protocol::heard::unknown_session;
use crate::vocab::*;

type Out = ClientOutbox<Agentx>;

/// Commands that may wait for the agent's start.
const MOST_EARLY: usize = 256;

/// What an agentx Client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Where the ids of prompts come from that have no tag. An agent runs no prompt whose id it has seen before, in an
    /// earlier run of the session too: it should be one that nobody else has.
    pub seed: [u8; 32],
    /// Which of the two wires, bit by bit: [`Policy::CLAUDE`].
    pub policy: Policy,
    /// The folder that the agent was started in. Empty: not known.
    pub cwd: Text,
    /// The session's id, as far as the host set it. Empty: the agent says it.
    pub session: Text,
    /// Members of `initialize` beside the hooks and the MCP servers, as an object: `systemPrompt`, `agents` …
    pub initialize: Option<RawJson>,
    /// The MCP server under which the host's tools are offered. One whose name has the form `mcp__SERVER__TOOL` is
    /// offered under its own.
    pub server: Text,
    /// The version that the MCP servers give.
    pub version: Text,
    /// Prompts that may wait for the agent: 128, as many as the contract has room for (WIRE-020).
    pub queued_prompts: usize,
    /// Bytes of what they say: 16 MiB.
    pub queued_bytes: usize,
    /// Bytes of one reply that are kept for its `MessageEnded`: 64 MiB. Deltas beyond it are passed on all the same.
    pub reply_bytes: usize,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            seed: [0; 32],
            policy: Policy::CLAUDE,
            cwd: "".into(),
            session: "".into(),
            initialize: None,
            server: "host".into(),
            version: "0.0.0".into(),
            queued_prompts: 128,
            queued_bytes: 16 * 1024 * 1024,
            reply_bytes: HOST_LINE_MAX,
        }
    }
}

/// The calls, and the questions about them.
#[derive(Debug, Default)]
struct Book {
    calls: Calls,
    asks: Asks,
}

/// The state of an agentx Client.
#[derive(Debug)]
pub struct ClientFace {
    config: ClientConfig,
    members: Members,
    /// A session was opened.
    opened: bool,
    /// What waits for the agent's start.
    early: VecDeque<Early>,
    info: Box<SessionInfo>,
    books: Books,
    answered: Answered,
    prompts: Prompts,
    uuids: Uuids,
    /// Ids of prompts that were made here.
    minted: u64,
    /// The newest prompt that was taken: an older one is a duplicate.
    newest: Option<PromptId>,
    /// The prompt that was replayed before its turn.
    replayed: Option<PromptId>,
    turn: Option<Turn>,
    book: Book,
    compacting: bool,
    runs: Runs,
    mcp: Mcp,
    hooks: Vec<HookSpec>,
    /// Offers that are answered with `initialize`.
    offers: Vec<CommandId>,
    sums: Sums,
    /// The agent tells what it does.
    states: bool,
    /// The last state that it told is that it is idle.
    idle: bool,
    closing: Closing,
    /// The last cancel was by this signal.
    signal: Option<Signal>,
    /// Something happened since the last `Settled`.
    active: bool,
}

/// What waits until it may be written.
#[derive(Debug)]
enum Early {
    Call(Call),
    /// An operation of this protocol's own.
    Control(CommandId, String, RawJson),
    /// A line that gets no response.
    Line(CommandId, Vec<u8>),
}

impl Early {
    const fn id(&self) -> CommandId {
        match self {
            Early::Call(call) => call.id,
            Early::Control(id, ..) | Early::Line(id, _) => *id,
        }
    }
}

/// How far closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    /// The input is closed when nothing is pending.
    Draining,
    /// The input is closed. `now`: without draining.
    Sent {
        now: bool,
    },
}

impl crate::protocol::ClientFace<Agentx> for ClientFace {
    fn open(config: ClientConfig, _: &mut Out) -> Self {
        let mut info = unknown_session();
        info.cwd = config.cwd.clone();
        info.root = (!config.cwd.is_empty()).then(|| config.cwd.clone());
        info.session = config.session.clone();
        let mut book = Book::default();
        book.asks.updates = config.policy.updated_permissions == UpdatedPermissions::Applied;
        ClientFace {
            config,
            members: Members::default(),
            opened: false,
            early: VecDeque::new(),
            info: Box::new(info),
            books: Books::default(),
            answered: Answered::default(),
            prompts: Prompts::default(),
            uuids: Uuids::default(),
            minted: 0,
            newest: None,
            replayed: None,
            turn: None,
            book,
            compacting: false,
            runs: Runs::default(),
            mcp: Mcp::default(),
            hooks: Vec::new(),
            offers: Vec::new(),
            sums: Sums::default(),
            states: false,
            idle: false,
            closing: Closing::Open,
            signal: None,
            active: false,
        }
    }

    fn command(&mut self, call: Call, out: &mut Out) {
        // What is offered before anything else is part of the greeting.
        if !self.mcp.started && self.closing == Closing::Open {
            if let Command::Offer(offer) = &call.command {
                return self.offer(call.id, offer, out);
            }
            // Who drains waits for the agent's word, and some agents say none before they are greeted.
            let leaves = matches!(call.command, Command::Close { drain: false });
            if !leaves {
                self.greet(out);
            }
        }
        let at_once = matches!(
            call.command,
            Command::Close { .. } | Command::Reply { .. } | Command::Offer(_)
        );
        if at_once || !self.waits() {
            self.act(call, out);
            return self.idle(out);
        }
        self.put_early(Early::Call(call), out);
    }

    fn line(&mut self, line: &Split<'_>, out: &mut Out) {
        if !self.mcp.started && !self.is_input_closed() {
            self.greet(out);
        }
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { bytes, .. } => {
                return out.finding(format!(
                    "a line of {bytes} bytes is longer than what is held, and was skipped"
                ));
            }
        };
        if is_blank(content) {
            return;
        }
        // The buffer is taken out, so that the line may borrow from it while the state changes.
        let mut members = core::mem::take(&mut self.members);
        let rules = self.config.policy.scan_rules();
        match AgentLine::decode(content, &rules, &mut members) {
            Ok(line) => {
                if !self.hear(&line, out) {
                    out.extra(AgentxExtra {
                        kind: line.kind().into(),
                        subtype: line.subtype().map(Text::from),
                        line: whole(content),
                    });
                }
            }
            Err(fault) => out.finding(format!("not a line of the contract: {fault}")),
        }
        self.members = members;
        self.idle(out);
    }

    fn end(&mut self, out: &mut Out) {
        self.gone(out);
    }

    fn settled(&mut self, _: u64, _: AgentxOutcome, _: &mut Out) {
        // A Client asks nothing of its embedder beside the questions of the vocabulary.
    }

    fn woken(&mut self, out: &mut Out) {
        if !self.mcp.started && self.closing == Closing::Open {
            self.greet(out);
        }
    }

    fn due(&self) -> Option<Due> {
        // Nobody has to say anything first: the host greets by itself.
        let greets = !self.mcp.started && self.closing == Closing::Open;
        greets.then_some(Due {
            at_us: 0,
            why: "greeting",
        })
    }
}

impl ClientFace {
    /// Whether commands wait for the agent's start.
    fn waits(&self) -> bool {
        !self.opened && !self.is_input_closed()
    }

    fn put_early(&mut self, early: Early, out: &mut Out) {
        self.greet(out);
        if self.early.len() >= MOST_EARLY {
            return out.reply(early.id(), Seen::Inferred, Err(Refusal::Full));
        }
        self.early.push_back(early);
    }

    /// Writes `initialize`, once.
    fn greet(&mut self, out: &mut Out) {
        if core::mem::replace(&mut self.mcp.started, true) {
            return;
        }
        let offers = core::mem::take(&mut self.offers);
        let id = self.books.expect("initialize", Sent::Initialize(offers));
        let fields = self.config.policy.initialize_fields == InitializeFields::Accepted;
        let mut request = b"{\"subtype\":\"initialize\"".to_vec();
        if fields {
            self.greeting_fields(&mut request);
        }
        request.push(b'}');
        out.line(|line| {
            line.extend_from_slice(b"{\"type\":\"control_request\",\"request_id\":");
            json::write_str(line, &id);
            line.extend_from_slice(b",\"request\":");
            json::write_raw_line_safe(line, convert::ours(&request));
            line.push(b'}');
        });
    }

    fn greeting_fields(&self, request: &mut Vec<u8>) {
        if self.hooks.is_empty() {
            request.extend_from_slice(b",\"hooks\":null");
        } else {
            request.extend_from_slice(b",\"hooks\":");
            hooks::offered(&self.hooks, request);
        }
        if !self.mcp.is_empty() {
            request.extend_from_slice(b",\"sdkMcpServers\":[");
            for (index, name) in self.mcp.names().enumerate() {
                if index > 0 {
                    request.push(b',');
                }
                json::write_str(request, name);
            }
            request.extend_from_slice(b"],\"sdkMcpServerManifests\":");
            self.mcp
                .manifests(&self.config.server, &self.config.version, request);
        }
        if let Some(members) = &self.config.initialize {
            Raw::trusted(members.as_str()).each_member(|name, value| {
                const OWN: [&str; 4] =
                    ["subtype", "hooks", "sdkMcpServers", "sdkMcpServerManifests"];
                if !OWN.contains(&name) {
                    request.push(b',');
                    json::write_str(request, name);
                    request.push(b':');
                    json::write_raw(request, value);
                }
            });
        }
    }

    /// Whether `system/init` begins a turn; else it comes once, first.
    fn inits_turns(&self) -> bool {
        self.config.policy.init_record == InitRecord::EachTurn
    }

    /// The session is known; what waited for it is acted on.
    fn session_opened(&mut self, seen: Seen, out: &mut Out) {
        self.opened = true;
        out.event(RunId::MAIN, seen, What::Opened(self.info.clone()));
        while let Some(early) = self.early.pop_front() {
            match early {
                Early::Call(call) => self.act(call, out),
                Early::Control(id, subtype, request) => {
                    self.write_control(id, &subtype, &request, out);
                }
                Early::Line(id, bytes) => self.write_line(id, &bytes, out),
            }
        }
    }

    /// Something that belongs to a session: without one it is made up.
    fn needs_session(&mut self, out: &mut Out) {
        if !self.opened {
            self.session_opened(Seen::Inferred, out);
        }
    }

    fn is_input_closed(&self) -> bool {
        matches!(self.closing, Closing::Sent { .. })
    }

    /// Closes the agent's input: it finishes what it has taken, and leaves.
    fn close_input(&mut self, now: bool, out: &mut Out) {
        out.close_input();
        self.closing = Closing::Sent { now };
        self.book.asks.leaving = true;
        for command in core::mem::take(&mut self.offers) {
            refuse(command, Refusal::Closing, out);
        }
    }

    /// The agent's output has ended. Everything that is open ends.
    fn gone(&mut self, out: &mut Out) {
        let quiet = self.turn.is_none() && self.prompts.is_empty();
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
            refuse(early.id(), refusal.clone(), out);
        }
        for command in core::mem::take(&mut self.offers) {
            refuse(command, refusal.clone(), out);
        }
        self.end_turn_gone(&failure, out);
        self.refuse_all(&refusal, out);
        self.end_prompts(&End::Dropped(DropWhy::Closed), out);
        self.end_compaction(CompactionFault::Failed(failure.clone()), out);
        let cut = Cut::Gone(failure.clone());
        self.runs.end_all(&cut, &mut self.book, out);
        let (calls, asks) = self.book.parts();
        asks.gone(&failure, calls, out);
        if core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        let why = match (self.closing, self.signal) {
            (Closing::Sent { now: true }, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Sent { now: true }, None) => CloseWhy::HostGone,
            (Closing::Draining | Closing::Sent { now: false }, _) if expected => CloseWhy::Drained,
            (_, Some(signal)) => CloseWhy::Signal(signal),
            (Closing::Open | Closing::Draining | Closing::Sent { now: false }, None) => {
                CloseWhy::Fault(failure)
            }
        };
        out.infer(What::Closed { why });
    }

    /// Replies to every command that waits, for good.
    fn refuse_all(&mut self, refusal: &Refusal, out: &mut Out) {
        for sent in self.books.take_all() {
            match sent {
                Sent::Initialize(offers) => {
                    for command in offers {
                        refuse(command, refusal.clone(), out);
                    }
                }
                Sent::Interrupt(command, _) => {
                    let (hit, queued) = (Hit::Nothing, self.prompts.ids());
                    let answer = Answer::Cancelling { hit, queued };
                    out.reply(command, Seen::Inferred, Ok(answer));
                }
                Sent::Drop(_) | Sent::Quiet => {}
                Sent::Set(command, _)
                | Sent::Withdraw(command, _)
                | Sent::Rewind(command)
                | Sent::StopJob(command)
                | Sent::StopRun(command, _)
                | Sent::Reload(command)
                | Sent::Raw(command) => refuse(command, refusal.clone(), out),
            }
        }
    }
}
