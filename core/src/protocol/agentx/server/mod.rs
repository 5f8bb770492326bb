//! The Server: a host's lines become neutral commands, an agent's events become records.
//!
//! One path for the strict wire and for claude; what differs is a bit of the [`Policy`](super::Policy). What is held
//! back, and until when: `running` and `system/init` until the turn's prompt is applied ([`turn`]), what ends a reply
//! until its usage is known ([`reply`]), a result until the prompts of its turn have ended, `idle` until the embedder
//! has flushed ([`outside`]), the first prompt until the host's MCP servers are listed ([`mcp`]). Everything that goes
//! out is one queue (WIRE-003).

mod answers;
mod asks;
mod blocks;
mod control;
mod hooks;
mod imports;
mod mcp;
mod open;
mod outside;
mod printer;
mod prompts;
mod recall;
mod reply;
mod result;
mod said;
mod sums;
mod turn;
mod user;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use self::asks::Waiters;
use self::control::{Ticket, Withdrawing};
use self::imports::Imports;
use self::mcp::Mcp;
use self::outside::Outside;
use self::printer::Printer;
use self::prompts::Prompts;
use self::reply::{Replies, Style};
use self::sums::Sums;
use self::turn::{Over, Turn};
use super::hear::{Heard, hear};
use super::policy::{MalformedLine, NoPrompt, UnknownType};
use super::wire::{HostLine, ImportReason, KeepAlive, SessionState};
use super::{Agentx, AgentxExtra, AgentxOutcome, HOST_LINE_MAX, ServerConfig};
use crate::frame::{Split, SplitKind};
use crate::json::{self, Members};
use crate::protocol::ids::Calls;
use crate::protocol::wire::Hole;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// Commands of the agent that may wait for their reply before no more lines are wanted.
const MOST_PENDING: usize = 4_096;
/// Questions that may wait for the embedder.
const MOST_OUTSIDE: usize = 256;
/// Lines that may wait for the session, and their bytes.
const MOST_EARLY: usize = 256;
const MOST_EARLY_BYTES: usize = 1 << 20;
/// Calls whose wire ids are remembered after their end.
const MOST_CALLS: usize = 65_536;

/// The state of an agentx Server.
#[derive(Debug)]
pub struct Face {
    config: ServerConfig,
    members: Members,
    now: Now,
    input: Input,
    opened: bool,
    /// Lines that came before the session was there (`None`: one that was too long), and whether the input ended behind
    /// them.
    early: VecDeque<Option<Vec<u8>>>,
    early_bytes: usize,
    early_end: bool,
    /// Lines of the host so far.
    heard: u64,
    signal: Option<Signal>,
    /// What ended the stream.
    fault: Option<Text>,
    exit: Exit,
    mirror: mirror::Mirror,
    printer: Printer,
    /// Commands of the agent that aren't replied to.
    pending: BTreeMap<CommandId, Pending>,
    /// Questions to the embedder.
    outside: BTreeMap<u64, Outside>,
    withdrawing: Vec<Withdrawing>,
    prompts: Prompts,
    /// Prompts that wait for the host's MCP servers.
    held_prompts: VecDeque<Prompt>,
    any_user: bool,
    initialized: bool,
    turn: Option<Turn>,
    over: Option<Over>,
    style: Style,
    replies: Replies,
    calls: Calls,
    asks: Waiters,
    /// Calls that were denied because there is nobody to ask.
    denied_unasked: BTreeSet<CallId>,
    mcp: Mcp,
    imports: Imports,
    /// Of the whole session.
    sums: Sums,
    /// What the host was told last that the session does.
    told: Option<SessionState<'static>>,
    default_model: Text,
    /// A hook has just refused the turn's end.
    refused_end: bool,
    /// Records of the first and the last message that a compaction kept, until that is told.
    kept_ends: Option<(String, String)>,
    /// A reply that was said before, whose calls' results are still to come.
    recalling: Option<recall::Recalling>,
    ended_run_call: Option<CallId>,
    /// Retries of the step so far.
    retries: u32,
    /// When the next `keep_alive` is due.
    keep_alive: Option<u64>,
}

/// How far the host's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Reading,
    /// It has ended; what was accepted is finished.
    Ended,
    /// It couldn't be read any more.
    Failed,
    /// The process is told to stop.
    Stopped,
}

/// With which code the process leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Exit {
    failed: bool,
}

impl Exit {
    fn last_failed(&mut self, failed: bool) {
        self.failed = failed;
    }
}

/// What a command of the agent was for.
#[derive(Debug)]
enum Pending {
    /// Nobody waits for its answer.
    Quiet,
    Prompt(PromptId),
    Interrupt(Ticket),
    Model(Ticket, Option<Text>),
    Mode(Ticket, Text),
    /// Success without a payload.
    Done(Ticket),
    Context(Ticket),
    Withdraw(Withdrawing),
    Task(Ticket),
    Rewind(Ticket),
    Reload(Ticket),
}

impl ServerFace<Agentx> for Face {
    fn open(config: ServerConfig, out: &mut Outbox<Agentx>) -> Self {
        if let Some(longest) = config.policy.max_line() {
            out.limit_lines(longest);
        }
        let style = Style::new(&config.policy, config.partial);
        Face {
            members: Members::default(),
            now: Now::default(),
            input: Input::Reading,
            opened: false,
            early: VecDeque::new(),
            early_bytes: 0,
            early_end: false,
            heard: 0,
            signal: None,
            fault: None,
            exit: Exit::default(),
            mirror: mirror::Mirror::new(),
            printer: Printer::new(config.seed, &config.policy),
            pending: BTreeMap::new(),
            outside: BTreeMap::new(),
            withdrawing: Vec::new(),
            prompts: Prompts::of(&config.accepted),
            held_prompts: VecDeque::new(),
            any_user: false,
            initialized: false,
            turn: None,
            over: None,
            style,
            replies: Replies::new(style),
            calls: Calls::remembering(MOST_CALLS),
            asks: Waiters::default(),
            denied_unasked: BTreeSet::new(),
            mcp: Mcp::default(),
            imports: Imports::of(config.attachments.as_ref()),
            sums: Sums::default(),
            told: None,
            default_model: "".into(),
            refused_end: false,
            kept_ends: None,
            recalling: None,
            ended_run_call: None,
            retries: 0,
            keep_alive: None,
            config,
        }
    }

    fn line(&mut self, line: &Split<'_>, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => Some(content),
            SplitKind::TooLong { .. } => None,
        };
        if self.opened {
            self.receive(content, out);
        } else if self.input == Input::Reading {
            self.early_bytes += content.map_or(0, <[u8]>::len);
            self.early.push_back(content.map(<[u8]>::to_vec));
        }
    }

    fn end(&mut self, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        if self.opened {
            self.ended(out);
        } else {
            self.early_end = true;
        }
    }

    fn signal(&mut self, signal: Signal, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        if self.signal.is_some() {
            // At once: only what the host is owed is still said.
            return self.closed(&CloseWhy::Signal(signal), out);
        }
        self.signal = Some(signal);
        self.input = Input::Stopped;
        self.imports_over(ImportReason::Shutdown, out);
        self.quiet(
            Command::Cancel {
                what: CancelWhat::Turn {
                    queue: QueueFate::Drop,
                },
                why: CancelWhy::Signal(signal),
            },
            out,
        );
        self.quiet(Command::Close { drain: false }, out);
    }

    fn event(&mut self, event: &Event, out: &mut Outbox<Agentx>) {
        self.tick(event.at);
        self.said(event, out);
    }

    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Agentx>) {
        self.tick(delta.at);
        if delta.run == RunId::MAIN {
            if self.replies.is_due(delta) {
                self.with_pen(RunId::MAIN, out, |replies, pen| {
                    replies.release(RunId::MAIN, pen);
                });
            }
            self.replies.delta(delta, &mut self.printer, out);
        }
    }

    fn extra(&mut self, extra: AgentxExtra, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        if self.printer.is_clear(&extra.line) {
            self.printer.line(out, |bytes| {
                json::write_raw_line_safe(bytes, blocks::raw(&extra.line));
            });
        }
    }

    fn settled(&mut self, id: u64, outcome: AgentxOutcome, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        self.outside_settled(id, outcome, out);
    }

    fn woken(&mut self, now: Now, out: &mut Outbox<Agentx>) {
        self.tick(now);
        self.mcp_woken(out);
        self.imports_woken(out);
        if let (Some(due), Some(every)) = (self.keep_alive, self.config.keep_alive_us)
            && due <= self.now.mono_us
        {
            self.keep_alive = Some(self.now.mono_us.saturating_add(every.max(1)));
            self.printer.say(KeepAlive::default(), out);
        }
    }

    fn due(&self) -> Option<Due> {
        let due = |at_us: Option<u64>, why| at_us.map(|at_us| Due { at_us, why });
        Due::earliest(
            due(self.imports.due(), "upload"),
            Due::earliest(
                due(self.mcp.due(), "mcp"),
                due(self.keep_alive, "keep_alive"),
            ),
        )
    }

    fn wants_lines(&self) -> bool {
        matches!(self.input, Input::Reading)
            && self.early.len() < MOST_EARLY
            && self.early_bytes < MOST_EARLY_BYTES
            && self.pending.len() < MOST_PENDING
            && self.outside.len() < MOST_OUTSIDE
            && self.imports.wants_lines()
    }
}

impl Face {
    /// Time that goes back stands still.
    fn tick(&mut self, now: Now) {
        self.now.mono_us = self.now.mono_us.max(now.mono_us);
        self.now.unix_ms = now.unix_ms;
    }

    /// Whether the host can't answer any more.
    fn is_leaving(&self) -> bool {
        self.input != Input::Reading
    }

    /// A command whose answer nobody waits for.
    fn quiet(&mut self, command: Command, out: &mut Outbox<Agentx>) {
        self.call(command, Pending::Quiet, out);
    }

    /// The session is there: lines that came before it.
    fn take_waiting(&mut self, out: &mut Outbox<Agentx>) {
        if self.keep_alive.is_none() {
            let every = self.config.keep_alive_us;
            self.keep_alive = every.map(|every| self.now.mono_us.saturating_add(every.max(1)));
        }
        while let Some(line) = self.early.pop_front() {
            self.early_bytes -= line.as_ref().map_or(0, Vec::len);
            self.receive(line.as_deref(), out);
        }
        if core::mem::take(&mut self.early_end) {
            self.ended(out);
        }
    }

    /// A line; `None`: one that was too long to be held.
    fn receive(&mut self, content: Option<&[u8]>, out: &mut Outbox<Agentx>) {
        if self.input != Input::Reading {
            return;
        }
        self.heard += 1;
        let Some(content) = content else {
            let text = alloc::format!("a line is longer than {HOST_LINE_MAX} bytes");
            return self.fail_stream(&text, out);
        };
        let mut members = core::mem::take(&mut self.members);
        match hear(
            content,
            self.printer.session(),
            &self.config.policy,
            &mut members,
        ) {
            Ok(Heard::Blank | Heard::PassedOver(_)) => {}
            Ok(Heard::Line(line)) => self.heard(&line, content.len(), out),
            Err(fault) => self.fail_stream(&alloc::format!("{fault}"), out),
        }
        self.members = members;
    }

    fn heard(&mut self, line: &HostLine<'_>, bytes: usize, out: &mut Outbox<Agentx>) {
        match line {
            HostLine::User(user) => self.user(user, bytes, out),
            HostLine::Assistant(history) => self.history(history, Role::Assistant, out),
            HostLine::System(history) => self.history(history, Role::Note, out),
            HostLine::Request(request) => self.request(request, out),
            HostLine::Response(response) => {
                if let Some(response) = response.known() {
                    self.answered(line, response, out);
                }
            }
            HostLine::Cancel(cancel) => self.host_cancelled(&cancel.request_id, out),
            HostLine::KeepAlive(_) => {}
            HostLine::Environment(change) => {
                let mut json = Vec::new();
                match (&change.variables, &change.environment_variables) {
                    (Some(map), _) | (None, Some(map)) => map.put(&mut json),
                    (None, None) => json.extend_from_slice(b"{}"),
                }
                self.environment(&json, out);
            }
            HostLine::Import(import) => self.import(import, out),
            HostLine::Unknown { kind, .. } => {
                if self.config.policy.unknown_type == UnknownType::Warned {
                    let text = alloc::format!(
                        "WARN a record of the unknown type {:?} is ignored",
                        &**kind
                    );
                    out.diagnostic(text.as_str().into());
                }
            }
        }
    }

    /// A line that can't be taken ends the stream.
    fn fail_stream(&mut self, text: &str, out: &mut Outbox<Agentx>) {
        if self.input != Input::Reading {
            return;
        }
        // Which line it was, and no word of it: it may be anything (WIRE-001).
        let told = alloc::format!("line {}: {text}", self.heard);
        out.diagnostic(told.as_str().into());
        match self.config.policy.malformed_line {
            MalformedLine::ExitAtOnce => self.leave(1, out),
            MalformedLine::InputErrorResult => {
                self.input = Input::Failed;
                self.fault = Some(text.into());
                self.held_prompts.clear();
                self.quiet(
                    Command::Cancel {
                        what: CancelWhat::Everything,
                        why: CancelWhy::Fault(text.into()),
                    },
                    out,
                );
                self.imports_over(ImportReason::ProcessFailure, out);
                self.quiet(Command::Close { drain: false }, out);
            }
        }
    }

    /// The host's input has ended: what waits for it is rejected, and what was accepted is finished.
    fn ended(&mut self, out: &mut Outbox<Agentx>) {
        if self.input != Input::Reading {
            return;
        }
        self.input = Input::Ended;
        if !self.any_user && self.config.policy.no_prompt == NoPrompt::InputErrorResult {
            self.input_error(None, "the input ended before there was a prompt", out);
        }
        self.recall_held(out);
        self.imports_over(ImportReason::Eof, out);
        self.reject_all(out);
        self.mcp_gone(out);
        self.quiet(Command::Close { drain: true }, out);
    }

    /// The agent is gone: what the host is owed is said, and the process leaves.
    fn closed(&mut self, why: &CloseWhy, out: &mut Outbox<Agentx>) {
        self.imports_over(ImportReason::Shutdown, out);
        self.finish_turn(out);
        self.fail_pending(out);
        self.dismiss_all(out);
        if let Some(fault) = self.fault.take() {
            self.input_error(None, &fault, out);
        }
        let code = match (self.signal, why) {
            (Some(signal), _) => signal.exit_code(),
            (None, CloseWhy::Signal(signal)) => signal.exit_code(),
            (None, CloseWhy::Fault(failure)) => {
                out.diagnostic(failure.text.clone());
                1
            }
            (None, CloseWhy::Drained | CloseWhy::HostGone) => u8::from(self.exit.failed),
        };
        self.leave(code, out);
    }

    fn leave(&mut self, code: u8, out: &mut Outbox<Agentx>) {
        self.input = Input::Stopped;
        // What was said is written, whatever it waited for.
        self.dismiss_flushes(out);
        out.exit(code);
    }
}
