//! The Server: a host's commands become neutral ones, an agent's events become lines.
//!
//! It speaks the frames of 18.3 with the admission of prompts that came after it. Each command has one answer, some of
//! them late: what is held back, and until when, is in [`ticket`] and [`run`]. Queries are answered from the mirror of
//! the events; what needs the outside world is asked of the embedder ([`outside`]).

mod calls;
mod commands;
mod entries;
mod goals;
mod growing;
mod inbox;
mod live;
mod message;
mod models;
mod offers;
mod outside;
mod printer;
mod prompts;
mod queries;
mod questions;
mod run;
mod said;
mod sessions;
mod settings;
mod subagents;
mod ticket;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use self::inbox::{Inbox, Passing};
use self::models::Models;
use self::outside::Outside;
use self::printer::Printer;
use self::prompts::Prompts;
use self::queries::Query;
use self::questions::Questions;
use self::run::Run;
use self::sessions::Change;
use self::ticket::{Held, Ticket, Until};
use super::wire::{Any, HostFault, HostLine, Response, Tag, host_text};
use super::{HOST_LINE_MAX, Omp, OmpExtra, OmpOutcome, ServerConfig, codec};
use crate::frame::{Split, SplitKind};
use crate::json::Members;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// Commands of the agent that may wait for their reply before no more lines are wanted.
const MOST_PENDING: usize = 4096;
/// Questions that may wait for the embedder.
const MOST_OUTSIDE: usize = 256;

/// The state of an omp Server.
#[derive(Debug)]
pub struct Face {
    pub(super) config: ServerConfig,
    members: Members,
    now: Now,
    input: Input,
    inbox: Inbox,
    /// Commands that those behind them wait for.
    blocked: usize,
    opened: bool,
    signal: Option<Signal>,
    mirror: mirror::Mirror,
    printer: Printer,
    /// Commands of the agent that aren't replied to.
    pending: BTreeMap<CommandId, Pending>,
    /// Questions to the embedder.
    outside: BTreeMap<u64, (Ticket, Outside)>,
    held: Vec<Held>,
    prompts: Prompts,
    questions: Questions,
    run: Run,
    models: Models,
    /// Shell commands of the host's that run.
    shells: usize,
    /// The last run's end said that something goes on, or will.
    pending_work: bool,
    talk: live::Talk,
    /// A change of the session that the host asked for is under way.
    changing: bool,
    own: Own,
    subagents: subagents::Registry,
}

/// How far the host's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Reading,
    /// It has ended; what was accepted is finished.
    Ended,
    /// The run was told to stop; shell commands are still waited for.
    Leaving,
    /// The session was told to close.
    Closing,
}

/// What a command of the agent was for.
#[derive(Debug)]
enum Pending {
    /// Nobody waits for its answer.
    Quiet,
    Prompt(PromptId),
    /// A cancel: held until what it hit has ended.
    Cancel {
        ticket: Ticket,
        restore: bool,
    },
    /// Success whatever it hit.
    Stop(Ticket),
    Shell(Ticket),
    Compact(Ticket),
    Withdraw(Ticket),
    /// Success, with this payload, behind the lines that tell of the change.
    Setting(Ticket, Option<Vec<u8>>),
    /// Success, with this payload.
    Then(Ticket, Option<Vec<u8>>),
    /// Tools of the host: their names, once they are taken.
    Offer {
        ticket: Ticket,
        json: Vec<u8>,
        names: Vec<Text>,
    },
    Session(Ticket, Change),
    Goal(Ticket),
    CancelRun(Ticket),
    SteerRun(Ticket, String),
    Query(Ticket, Query),
}

/// What the Server itself keeps for the host.
#[derive(Debug, Default)]
struct Own {
    /// Phases of the to-do list, as JSON.
    todos: Option<RawJson>,
    /// The host shows whole forms of questions.
    ask_dialog: bool,
    fast_mode: bool,
    /// Words for modes that mean nothing, and are shown all the same.
    steering_mode: Option<String>,
    follow_up_mode: Option<String>,
    interrupt_mode: Option<String>,
    /// Names of the tools that the host offered.
    host_tools: Vec<Text>,
    /// A compaction that the host asked for, and waits for.
    compact: Option<Ticket>,
    subagents: Subscription,
    goal: goals::GoalNote,
}

/// Which frames of subagents the host gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Subscription {
    #[default]
    Off,
    Progress,
    Events,
}

impl ServerFace<Omp> for Face {
    fn open(config: ServerConfig, out: &mut Outbox<Omp>) -> Self {
        let mut printer = Printer::default();
        printer.say(codec::ready(), out);
        Face {
            members: Members::default(),
            now: Now::default(),
            input: Input::Reading,
            inbox: Inbox::default(),
            blocked: 0,
            opened: false,
            signal: None,
            mirror: mirror::Mirror::new(),
            printer,
            pending: BTreeMap::new(),
            outside: BTreeMap::new(),
            held: Vec::new(),
            prompts: Prompts::default(),
            questions: Questions::new(config.seed),
            run: Run::default(),
            models: Models::new(config.models.clone()),
            shells: 0,
            pending_work: false,
            talk: live::Talk::default(),
            changing: false,
            own: Own::default(),
            subagents: subagents::Registry::default(),
            config,
        }
    }

    fn line(&mut self, line: &Split<'_>, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        if self.input != Input::Reading {
            return;
        }
        match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => {
                let text = host_text(content);
                if text.is_empty() {
                    return;
                }
                let mut members = core::mem::take(&mut self.members);
                self.receive(&text, &mut members, out);
                self.members = members;
            }
            SplitKind::TooLong { .. } => {
                let error = alloc::format!("a line is longer than {HOST_LINE_MAX} bytes");
                parse_failure(&error, &mut self.printer, out);
            }
        }
        self.resume(out);
    }

    fn end(&mut self, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        if self.input != Input::Reading {
            return;
        }
        self.input = Input::Ended;
        self.reject_questions(out);
        self.host_hangs_up(out);
        self.resume(out);
    }

    fn signal(&mut self, signal: Signal, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        if let Some(first) = self.signal {
            // At once: only what the host is owed is still said.
            return self.closed(&CloseWhy::Signal(first), out);
        }
        self.signal = Some(signal);
        self.input = Input::Closing;
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

    fn event(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        self.tick(event.at);
        self.said(event, out);
        self.resume(out);
    }

    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Omp>) {
        if delta.run == RunId::MAIN {
            self.run.delta(delta, &mut self.printer, out);
        } else {
            self.subagent_delta(delta, out);
        }
    }

    fn extra(&mut self, extra: OmpExtra, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        self.extra_line(&extra, out);
    }

    fn settled(&mut self, id: u64, outcome: OmpOutcome, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        self.outside_settled(id, outcome, out);
        self.resume(out);
    }

    fn woken(&mut self, now: Now, out: &mut Outbox<Omp>) {
        self.tick(now);
        // An agent that says nothing of a change.
        self.release(Until::Changed, out);
        self.resume(out);
    }

    fn due(&self) -> Option<Due> {
        self.awaits_change().then_some(Due {
            at_us: self.now.mono_us,
            why: "setting",
        })
    }

    fn wants_lines(&self) -> bool {
        self.input == Input::Reading
            && self.inbox.has_room()
            && self.pending.len() < MOST_PENDING
            && self.outside.len() < MOST_OUTSIDE
    }
}

impl Face {
    /// Time that goes back stands still.
    fn tick(&mut self, now: Now) {
        self.now.mono_us = self.now.mono_us.max(now.mono_us);
        self.now.unix_ms = now.unix_ms;
    }

    /// Reads a line, and acts on it or lets it wait for the answer to an earlier one.
    fn receive(&mut self, text: &[u8], members: &mut Members, out: &mut Outbox<Omp>) {
        let read = HostLine::decode(text, members);
        if let Ok(HostLine::Side(side)) = &read {
            return self.side(side, out);
        }
        let passing = inbox::passing(&read);
        let behind = self.blocked > 0 || !self.inbox.is_empty();
        let waits = !self.opened
            || match passing {
                Passing::Input | Passing::Nothing => behind,
                Passing::Abort | Passing::Beside => false,
            };
        if waits {
            self.inbox.push(passing, text);
        } else {
            self.act(read, out);
        }
    }

    /// Acts on what waited, up to the next line that must be answered first; and leaves, when all is done.
    fn resume(&mut self, out: &mut Outbox<Omp>) {
        if !self.opened || self.signal.is_some() {
            return;
        }
        while self.blocked == 0
            && let Some(line) = self.inbox.pop()
        {
            let mut members = core::mem::take(&mut self.members);
            let read = HostLine::decode(&line, &mut members);
            self.act(read, out);
            self.members = members;
        }
        if self.input == Input::Ended && self.blocked == 0 && self.inbox.is_empty() {
            self.input = Input::Leaving;
            self.quiet(
                Command::Cancel {
                    what: CancelWhat::Turn {
                        queue: QueueFate::Drop,
                    },
                    why: CancelWhy::PeerGone,
                },
                out,
            );
        }
        if self.input == Input::Leaving && self.shells == 0 && !self.is_hanging_up() {
            self.input = Input::Closing;
            self.quiet(Command::Close { drain: false }, out);
        }
    }

    /// Whether the host can't answer any more.
    fn is_leaving(&self) -> bool {
        self.input != Input::Reading
    }

    fn act(&mut self, read: Result<HostLine<'_>, HostFault<'_>>, out: &mut Outbox<Omp>) {
        let printer = &mut self.printer;
        match read {
            Ok(HostLine::Command { id, command }) => {
                let name = command.tag().unwrap_or_default();
                let ticket = self.ticket(id, name, inbox::is_serial(&command));
                self.command(ticket, command, out);
            }
            Ok(HostLine::Unknown { id, kind, .. }) => {
                let error = alloc::format!("Unknown command: {}", kind.shown());
                let response = Response::failure(id, kind, error);
                printer.frame(out, |out| response.encode(out));
            }
            Ok(HostLine::Other(_)) => {
                let response =
                    Response::failure(Any::ABSENT, Tag::Absent, "Unknown command: undefined");
                printer.frame(out, |out| response.encode(out));
            }
            // Never comes here: it waits for nothing.
            Ok(HostLine::Side(_)) => {}
            Err(HostFault::Json(fault)) => {
                parse_failure(&alloc::format!("{fault}"), printer, out);
            }
            Err(HostFault::Null) => parse_failure("null is not an object", printer, out),
            Err(HostFault::Fields { id, command, error }) => {
                let response = Response::failure(
                    id,
                    Tag::Name(crate::json::Str(command)),
                    alloc::format!("Invalid command: {error}"),
                );
                printer.frame(out, |out| response.encode(out));
            }
        }
    }

    /// A command whose answer nobody waits for.
    fn quiet(&mut self, command: Command, out: &mut Outbox<Omp>) {
        let id = out.call(command);
        self.pending.insert(id, Pending::Quiet);
    }

    /// A command, and what its answer is for.
    fn call(&mut self, command: Command, pending: Pending, out: &mut Outbox<Omp>) {
        let id = out.call(command);
        self.pending.insert(id, pending);
    }
}

fn parse_failure(error: &str, printer: &mut Printer, out: &mut Outbox<Omp>) {
    let error = alloc::format!("Failed to parse command: {error}");
    let response = Response::failure(Any::ABSENT, "parse".into(), error);
    printer.frame(out, |out| response.encode(out));
}
