//! The Server: a host's commands become neutral ones, an agent's events become lines.
//!
//! The wire acknowledges nothing: what a command comes to shows in the order of events, or doesn't. So commands are handed
//! over as they come, and what is remembered is what lines must repeat: the texts of steers, the ids of questions and of
//! requests about jobs, the names of calls. What is held back, and until when: a step until its first request, whole
//! messages until their reply has ended ([`turn`]), what wasn't taken until everything before it has its end ([`order`]).
//!
//! A line that isn't JSON is as good as the end of the input (OS-A11).

mod asks;
mod clamp;
mod early;
mod jobs;
mod order;
mod prompts;
mod runs;
mod said;
mod turn;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::early::Early;
use self::order::{Bares, Goals};
use self::prompts::{Prompts, Said, Steer, blocks};
use self::turn::{Turn, say};
use super::wire::{
    BLANK_GOAL, COMMAND_STREAM, Command as Line, CommandError, CommandFault, SteerKind, Unread,
};
use super::{GOAL_TURNS, HOST_LINE_MAX, Mode, Openseek, OpenseekExtra, ServerConfig};
use crate::frame::{Split, SplitKind};
use crate::json::{self, Members, Raw};
use crate::protocol::approvals::Approvals;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// Commands of the agent that may wait for their reply before no more lines are wanted.
const MOST_PENDING: usize = 4_096;

/// The state of an openseek Server.
#[derive(Debug)]
pub struct Face {
    config: ServerConfig,
    members: Members,
    input: Input,
    opened: bool,
    early: Early,
    /// Lines about MCP servers that came before a run's session was there: they stand behind its line.
    early_extras: Vec<OpenseekExtra>,
    signal: Option<Signal>,
    /// Commands of the agent that aren't replied to.
    pending: BTreeMap<CommandId, Pending>,
    prompts: Prompts,
    approvals: Approvals,
    turn: Turn,
    /// What waits until no turn is open.
    bare: Bares,
    goals: Goals,
    compacting: Option<Compacting>,
    /// Compactions that the host asked for, until their ends.
    compactions: usize,
    /// Nested runs that are open on the wire.
    runs: BTreeMap<RunId, runs::Bracket>,
    /// The last turn failed.
    failed: bool,
}

/// How far the host's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Reading,
    /// It has ended, or can't be read any more: what was accepted is finished.
    Ended,
    /// The process is told to stop.
    Stopped,
}

/// What a command of the agent was for.
#[derive(Debug)]
enum Pending {
    /// Nobody waits for its answer.
    Quiet,
    /// A prompt or a steer.
    Said(PromptId),
    Compact,
    Goal,
    Jobs {
        request_id: String,
    },
    Stop {
        request_id: String,
        generation: String,
        job_id: String,
    },
}

/// The compaction that is under way.
#[derive(Clone, Copy, Debug)]
struct Compacting {
    /// The host asked for it, and no turn is open.
    asked: bool,
    span: (u64, u64),
}

impl ServerFace<Openseek> for Face {
    fn open(config: ServerConfig, _: &mut Outbox<Openseek>) -> Self {
        Face {
            members: Members::default(),
            input: Input::Reading,
            opened: false,
            early: Early::default(),
            early_extras: Vec::new(),
            signal: None,
            pending: BTreeMap::new(),
            prompts: Prompts::default(),
            approvals: Approvals::default(),
            turn: Turn::default(),
            bare: Bares::default(),
            goals: Goals::default(),
            compacting: None,
            compactions: 0,
            runs: BTreeMap::new(),
            failed: false,
            config,
        }
    }

    fn line(&mut self, line: &Split<'_>, _: Now, out: &mut Outbox<Openseek>) {
        if self.input != Input::Reading || self.is_run() {
            return;
        }
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => Some(content),
            SplitKind::TooLong { .. } => None,
        };
        if self.opened {
            self.receive(content, out);
        } else {
            self.early.push(content);
        }
    }

    fn end(&mut self, _: Now, out: &mut Outbox<Openseek>) {
        // A run has nothing to hear.
        if self.is_run() {
            return;
        }
        if self.opened {
            self.ended(out);
        } else {
            self.early.end();
        }
    }

    fn signal(&mut self, signal: Signal, _: Now, out: &mut Outbox<Openseek>) {
        if let Some(first) = self.signal {
            // At once: only what the host is owed is still said.
            return self.closed(&CloseWhy::Signal(first), out);
        }
        self.signal = Some(signal);
        self.input = Input::Stopped;
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

    fn event(&mut self, event: &Event, out: &mut Outbox<Openseek>) {
        self.said(event, out);
    }

    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Openseek>) {
        if delta.run == RunId::MAIN {
            self.turn.delta(delta.kind, delta.text, out);
        }
    }

    fn extra(&mut self, extra: OpenseekExtra, _: Now, out: &mut Outbox<Openseek>) {
        if self.is_run() && !self.opened && extra.event.starts_with("mcp_") {
            self.early_extras.push(extra);
        } else {
            put_extra(&extra, out);
        }
    }

    fn settled(
        &mut self,
        _: u64,
        outcome: core::convert::Infallible,
        _: Now,
        _: &mut Outbox<Openseek>,
    ) {
        match outcome {}
    }

    fn woken(&mut self, _: Now, _: &mut Outbox<Openseek>) {}

    fn due(&self) -> Option<Due> {
        None
    }

    fn wants_lines(&self) -> bool {
        self.input == Input::Reading && self.early.has_room() && self.pending.len() < MOST_PENDING
    }
}

impl Face {
    fn is_run(&self) -> bool {
        matches!(self.config.mode, Mode::Run { .. })
    }

    /// The session is there: a run begins its one turn, and lines that came before are acted on.
    fn begin(&mut self, info: &SessionInfo, out: &mut Outbox<Openseek>) {
        if self.opened {
            return;
        }
        self.opened = true;
        if let Mode::Run { task, .. } = &self.config.mode {
            let task = task.clone();
            self.session_started(info, out);
            for extra in core::mem::take(&mut self.early_extras) {
                put_extra(&extra, out);
            }
            if self.signal.is_none() {
                let content = Vec::from([Block::Text(task)]);
                self.prompt(content, None, Deliver::IfIdle, prompt_said(), out);
                self.input = Input::Ended;
                self.quiet(Command::Close { drain: true }, out);
            }
            return;
        }
        while let Some(line) = self.early.pop() {
            self.receive(line.as_deref(), out);
        }
        if self.early.take_end() {
            self.ended(out);
        }
    }

    /// A line; `None`: one that was too long to be held.
    fn receive(&mut self, content: Option<&[u8]>, out: &mut Outbox<Openseek>) {
        if self.input != Input::Reading {
            return;
        }
        let Some(content) = content else {
            let text = format!("{COMMAND_STREAM}a line is longer than {HOST_LINE_MAX} bytes");
            command_error(&text, out);
            return self.ended(out);
        };
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if content.iter().all(is_blank) {
            return;
        }
        let mut members = core::mem::take(&mut self.members);
        match Line::read(content, self.config.shapes, &mut members) {
            Ok(line) => self.command(&line, out),
            Err(Unread::NotACommand(fault)) => self.refused(&fault, out),
            Err(unread @ Unread::NotJson(_)) => {
                command_error(&unread.to_string(), out);
                self.ended(out);
            }
        }
        self.members = members;
    }

    fn refused(&self, fault: &CommandFault, out: &mut Outbox<Openseek>) {
        command_error(&fault.to_string(), out);
    }

    fn command(&mut self, line: &Line<'_>, out: &mut Outbox<Openseek>) {
        match line {
            Line::Prompt {
                content,
                submission_id,
            } => {
                let tag = submission_id.as_deref().map(Text::from);
                let deliver = Deliver::Queue(Rank::Next);
                self.prompt(blocks(content), tag, deliver, prompt_said(), out);
            }
            Line::Steer {
                kind,
                content,
                submission_id,
            } => {
                let tag = submission_id.as_deref().map(Text::from);
                let deliver = match kind {
                    SteerKind::Prompt => Deliver::Steer {
                        idle: IdleSteer::DropUnlessQueued,
                    },
                    SteerKind::Command => Deliver::Context,
                };
                let steer = Steer::new(*kind, content, submission_id.as_ref());
                self.prompt(blocks(content), tag, deliver, Said::Steer(steer), out);
            }
            Line::Compact => {
                let command = Command::Compact { instructions: None };
                self.call(command, Pending::Compact, out);
            }
            Line::Cancel => self.quiet(
                Command::Cancel {
                    what: CancelWhat::TurnElseNextQueued,
                    why: CancelWhy::Host,
                },
                out,
            ),
            Line::JobsSnapshot { request_id } => {
                let request_id = request_id.as_str().into();
                self.call(
                    Command::Job(JobCommand::Snapshot),
                    Pending::Jobs { request_id },
                    out,
                );
            }
            Line::JobStop {
                request_id,
                generation,
                job_id,
            } => {
                let command = Command::Job(JobCommand::Stop {
                    job: job_id.as_str().into(),
                    generation: Some(generation.as_str().into()),
                });
                let pending = Pending::Stop {
                    request_id: request_id.as_str().into(),
                    generation: generation.as_str().into(),
                    job_id: job_id.as_str().into(),
                };
                self.call(command, pending, out);
            }
            Line::GoalSet { text, auto } => self.set_goal(text, *auto, out),
            Line::GoalClear => {
                self.call(Command::Goal(GoalCommand::Clear), Pending::Goal, out);
            }
            Line::Approval { id, allow } => self.approval(id, *allow, out),
        }
    }

    fn prompt(
        &mut self,
        content: Vec<Block>,
        tag: Option<Text>,
        deliver: Deliver,
        said: Said,
        out: &mut Outbox<Openseek>,
    ) {
        let id = out.next_prompt();
        self.prompts.book(id, said);
        let prompt = Prompt {
            id,
            tag,
            content,
            // What a command put out is what it is.
            literal: deliver == Deliver::Context,
            deliver,
            details: None,
        };
        self.call(Command::Prompt(prompt), Pending::Said(id), out);
    }

    /// A goal that can be read may still be refused (OS-07).
    fn set_goal(&mut self, text: &str, auto: bool, out: &mut Outbox<Openseek>) {
        if text.trim().is_empty() {
            return command_error(BLANK_GOAL, out);
        }
        let goal = GoalCommand::Set {
            text: text.into(),
            auto_turns: Some(if auto { GOAL_TURNS } else { 0 }),
            token_budget: None,
        };
        self.call(Command::Goal(goal), Pending::Goal, out);
    }

    /// An answer to a question; one that nobody waits for changes nothing (OS-A08).
    fn approval(&mut self, id: &str, allow: bool, out: &mut Outbox<Openseek>) {
        let Some(ask) = self.approvals.answer(id) else {
            return;
        };
        let reply = if allow {
            Reply::Allow {
                input: None,
                updates: Vec::new(),
            }
        } else {
            Reply::Deny {
                message: None,
                interrupt: false,
            }
        };
        self.answer(ask, Ok(reply), out);
    }

    fn answer(&mut self, ask: AskId, reply: Result<Reply, ReplyFault>, out: &mut Outbox<Openseek>) {
        self.quiet(Command::Reply { ask, reply }, out);
    }

    /// No more commands: questions are withdrawn, and what was accepted is finished (OS-A11).
    fn ended(&mut self, out: &mut Outbox<Openseek>) {
        if self.input != Input::Reading {
            return;
        }
        self.input = Input::Ended;
        let asks: Vec<AskId> = self.approvals.unanswered().collect();
        for ask in asks {
            self.answer(ask, Err(ReplyFault::HostGone), out);
        }
        self.quiet(Command::Close { drain: true }, out);
    }

    /// A command whose answer nobody waits for.
    fn quiet(&mut self, command: Command, out: &mut Outbox<Openseek>) {
        self.call(command, Pending::Quiet, out);
    }

    /// A command, and what its answer is for.
    fn call(&mut self, command: Command, pending: Pending, out: &mut Outbox<Openseek>) {
        let id = out.call(command);
        if matches!(pending, Pending::Goal) {
            self.goals.sent(id);
        }
        self.pending.insert(id, pending);
    }
}

/// A prompt that was just sent.
const fn prompt_said() -> Said {
    Said::Prompt {
        applied: false,
        output: None,
    }
}

fn command_error(error: &str, out: &mut Outbox<Openseek>) {
    let error = error.into();
    say(
        CommandError {
            error,
            ..CommandError::default()
        },
        out,
    );
}

fn put_extra(extra: &OpenseekExtra, out: &mut Outbox<Openseek>) {
    out.line(|bytes| json::write_raw(bytes, Raw::trusted(extra.line.as_str())));
}
