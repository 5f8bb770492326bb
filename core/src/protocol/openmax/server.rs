//! The host's side of the Server: its lines, its input's end, signals, and the answers to its commands.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec;

use super::turn::{Own, Turns};
use super::wire::{
    AgentLine, ApprovalMode, Approve, HostLine, ModeSet, ProtocolError, Refrozen, User, WireFault,
};
use super::{Extra, Fault, Openmax, ServerConfig};
use crate::frame::{Split, SplitKind};
use crate::json::{JsonFaultKind, Members};
use crate::protocol::approvals::Approvals;
use crate::protocol::{Outbox, ServerFace};
use crate::vocab::*;

/// Lines that may wait for the answer to an earlier one, and their bytes, before no more are wanted.
const MOST_WAITING: usize = 64;
const MOST_WAITING_BYTES: usize = 1 << 20;

/// The state of an openmax Server.
#[derive(Debug)]
pub struct Face {
    pub(super) config: ServerConfig,
    members: Members,
    input: Input,
    inbox: Inbox,
    /// The command whose answer the lines after it wait for.
    awaited: Option<(CommandId, Awaited)>,
    pub(super) approvals: Approvals,
    /// Approvals whose reply is under way: a late refusal names the id.
    replies: BTreeMap<CommandId, String>,
    pub(super) turns: Turns,
    signal: Option<Signal>,
    pub(super) opened: bool,
}

/// How far the host's input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Reading,
    /// `quit` or the end of input is in the inbox; nothing more is read.
    Ended,
    /// The session was told to close; every question is declined.
    Closing,
}

/// A command that gets an answer line of its own, later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Mode(&'static str),
    Reload,
}

/// A line as it is acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told<'a> {
    Line(HostLine<'a>),
    Bad(Fault),
    End,
}

/// Lines that came before an earlier one was answered: answers come in the order of the input.
#[derive(Debug, Default)]
struct Inbox {
    lines: VecDeque<Told<'static>>,
    bytes: usize,
}

impl Told<'_> {
    fn bytes(&self) -> usize {
        match self {
            Told::Line(HostLine::User(User { text })) => text.len(),
            Told::Line(HostLine::Approve(Approve { approval_id, .. })) => approval_id.len(),
            Told::Line(HostLine::ApprovalMode(ApprovalMode { mode })) => mode.len(),
            Told::Line(HostLine::Unknown { cmd, line }) => cmd.len() + line.len(),
            Told::Line(HostLine::Reload | HostLine::Cancel | HostLine::Quit)
            | Told::Bad(_)
            | Told::End => 0,
        }
    }

    fn into_owned(self) -> Told<'static> {
        match self {
            Told::Line(line) => Told::Line(line.into_owned()),
            Told::Bad(fault) => Told::Bad(fault),
            Told::End => Told::End,
        }
    }
}

impl Inbox {
    fn push(&mut self, told: Told<'static>) {
        self.bytes += told.bytes();
        self.lines.push_back(told);
    }

    fn pop(&mut self) -> Option<Told<'static>> {
        let told = self.lines.pop_front()?;
        self.bytes -= told.bytes();
        Some(told)
    }

    fn has_prompt(&self) -> bool {
        self.lines
            .iter()
            .any(|told| matches!(told, Told::Line(HostLine::User(_))))
    }
}

impl ServerFace<Openmax> for Face {
    fn open(config: ServerConfig, _: &mut Outbox<Openmax>) -> Self {
        Face {
            members: Members::default(),
            input: Input::Reading,
            inbox: Inbox::default(),
            awaited: None,
            approvals: Approvals::default(),
            replies: BTreeMap::new(),
            turns: Turns::new(config.coalesce_us, config.hold_done_us),
            signal: None,
            opened: false,
            config,
        }
    }

    fn line(&mut self, line: &Split<'_>, _: Now, out: &mut Outbox<Openmax>) {
        if self.input != Input::Reading {
            return;
        }
        let content = match line.what {
            SplitKind::Line(content) | SplitKind::Tail(content) => content,
            SplitKind::TooLong { .. } => return self.receive(Told::Bad(Fault::TooLong), out),
        };
        if content
            .iter()
            .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        {
            return;
        }
        let told = read(content, &mut self.members);
        self.receive(told, out);
    }

    fn end(&mut self, _: Now, out: &mut Outbox<Openmax>) {
        if self.input == Input::Reading {
            self.receive(Told::End, out);
        }
    }

    fn signal(&mut self, signal: Signal, _: Now, out: &mut Outbox<Openmax>) {
        if let Some(first) = self.signal {
            // At once: only what the host is owed is still said.
            return self.closed(&CloseWhy::Signal(first), out);
        }
        self.signal = Some(signal);
        self.input = Input::Closing;
        out.call(Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Drop,
            },
            why: CancelWhy::Signal(signal),
        });
        out.call(Command::Close { drain: false });
        if !self.must_wait() {
            self.refuse_waiting(out);
        }
    }

    fn event(&mut self, event: &Event, out: &mut Outbox<Openmax>) {
        self.said(event, out);
    }

    fn delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Openmax>) {
        self.turns.delta(delta, out);
    }

    fn extra(&mut self, extra: Extra, _: Now, out: &mut Outbox<Openmax>) {
        self.turns.extra(extra, self.opened, out);
    }

    fn settled(
        &mut self,
        _: u64,
        outcome: core::convert::Infallible,
        _: Now,
        _: &mut Outbox<Openmax>,
    ) {
        match outcome {}
    }

    fn woken(&mut self, now: Now, out: &mut Outbox<Openmax>) {
        self.turns.woken(now.mono_us, out);
    }

    fn due(&self) -> Option<Due> {
        self.turns.due()
    }

    fn wants_lines(&self) -> bool {
        self.input == Input::Reading
            && self.inbox.lines.len() < MOST_WAITING
            && self.inbox.bytes < MOST_WAITING_BYTES
    }
}

/// Reads a line that isn't blank.
fn read<'a>(content: &'a [u8], members: &mut Members) -> Told<'a> {
    match HostLine::decode(content, members) {
        Ok(HostLine::Unknown { cmd, .. }) => Told::Bad(Fault::UnknownCommand(cmd.into_owned())),
        Ok(line) => Told::Line(line),
        Err(WireFault::Json(fault)) if matches!(fault.kind, JsonFaultKind::NotUtf8 { .. }) => {
            Told::Bad(Fault::NotUtf8(fault))
        }
        Err(fault) => Told::Bad(Fault::BadLine(fault)),
    }
}

impl Face {
    /// Acts on a line, or lets it wait for the answer to an earlier one. A cancel passes what waits, unless the prompt
    /// that it may mean waits itself.
    fn receive(&mut self, told: Told<'_>, out: &mut Outbox<Openmax>) {
        if matches!(told, Told::Line(HostLine::Quit) | Told::End) {
            self.input = Input::Ended;
        }
        let passes =
            self.opened && matches!(told, Told::Line(HostLine::Cancel)) && !self.inbox.has_prompt();
        if self.must_wait() && !passes {
            self.inbox.push(told.into_owned());
        } else {
            self.act(told, out);
        }
    }

    fn must_wait(&self) -> bool {
        !self.opened || self.awaited.is_some()
    }

    /// Acts on what waited, up to the next line that must be answered first.
    pub(super) fn resume(&mut self, out: &mut Outbox<Openmax>) {
        if self.signal.is_some() {
            return self.refuse_waiting(out);
        }
        while !self.must_wait()
            && let Some(told) = self.inbox.pop()
        {
            self.act(told, out);
        }
    }

    fn act(&mut self, told: Told<'_>, out: &mut Outbox<Openmax>) {
        match told {
            Told::Bad(fault) => refuse(&fault, out),
            Told::End | Told::Line(HostLine::Quit) => self.close(out),
            Told::Line(HostLine::User(user)) => self.user(&user.text, out),
            Told::Line(HostLine::Approve(approve)) => self.approve(approve, out),
            Told::Line(HostLine::ApprovalMode(mode)) => self.mode(&mode.mode, out),
            Told::Line(HostLine::Reload) => {
                if self.turns.owes_done() {
                    refuse(&Fault::Busy, out);
                } else {
                    self.awaited = Some((out.call(Command::Reload), Awaited::Reload));
                }
            }
            Told::Line(HostLine::Cancel) => {
                out.call(Command::Cancel {
                    what: CancelWhat::Turn {
                        queue: QueueFate::Drop,
                    },
                    why: CancelWhy::Host,
                });
            }
            Told::Line(HostLine::Unknown { cmd, .. }) => {
                refuse(&Fault::UnknownCommand(cmd.into_owned()), out)
            }
        }
    }

    /// Busy is tested before blank: a `done refused` in a running turn would end that turn for the host (OM-18).
    fn user(&mut self, text: &str, out: &mut Outbox<Openmax>) {
        if self.turns.owes_done() {
            refuse(&Fault::Busy, out);
        } else if text.trim().is_empty() {
            refuse(&Fault::Empty, out);
            self.turns.done("refused", out);
        } else {
            let prompt = Prompt {
                id: out.next_prompt(),
                tag: None,
                content: vec![Block::Text(text.into())],
                deliver: Deliver::IfIdle,
                literal: false,
                details: None,
            };
            let id = prompt.id;
            let command = out.call(Command::Prompt(prompt));
            self.turns.own = Some(Own::sent(id, command));
        }
    }

    fn approve(&mut self, approve: Approve<'_>, out: &mut Outbox<Openmax>) {
        let Approve {
            approval_id,
            approved,
        } = approve;
        let Some(ask) = self.approvals.answer(&approval_id) else {
            return refuse(&Fault::UnknownApproval(approval_id.into_owned()), out);
        };
        let reply = if approved {
            Reply::Allow {
                input: None,
                updates: vec![],
            }
        } else {
            Reply::Deny {
                message: None,
                interrupt: false,
            }
        };
        let command = out.call(Command::Reply {
            ask,
            reply: Ok(reply),
        });
        self.replies.insert(command, approval_id.into_owned());
    }

    fn mode(&mut self, word: &str, out: &mut Outbox<Openmax>) {
        let (mode, name) = match word.trim() {
            "auto" => (crate::vocab::ApprovalMode::Auto, "auto"),
            "ask" => (crate::vocab::ApprovalMode::Ask, "ask"),
            "readonly" => (crate::vocab::ApprovalMode::ReadOnly, "readonly"),
            _ => return refuse(&Fault::UnknownMode(word.to_string()), out),
        };
        if self.config.agent_spawned {
            return refuse(&Fault::ModeByAgent, out);
        }
        let command = out.call(Command::Set(Setting::Approvals(mode)));
        self.awaited = Some((command, Awaited::Mode(name)));
    }

    /// `quit` or the end of input: open questions are declined, the running turn goes on to its end (OM-09).
    fn close(&mut self, out: &mut Outbox<Openmax>) {
        self.input = Input::Closing;
        for ask in self.approvals.unanswered() {
            out.call(Command::Reply {
                ask,
                reply: Err(ReplyFault::HostGone),
            });
        }
        out.call(Command::Close { drain: true });
    }

    /// Whether questions are declined as they come.
    pub(super) fn is_closing(&self) -> bool {
        self.input == Input::Closing
    }

    /// The answer to a command.
    pub(super) fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Openmax>,
    ) {
        if self
            .turns
            .own
            .as_ref()
            .is_some_and(|own| own.awaits(command))
        {
            return self.turns.admitted(reply, out);
        }
        if let Some(id) = self.replies.remove(&command) {
            match reply {
                Ok(_) => {}
                Err(Refusal::AlreadySettled | Refusal::Unknown | Refusal::Closing) => {
                    refuse(&Fault::UnknownApproval(id), out);
                }
                Err(other) => refuse(&refused("approve", other), out),
            }
            return;
        }
        if let Some((awaited, what)) = self.awaited
            && awaited == command
        {
            self.awaited = None;
            match what {
                Awaited::Mode(mode) => mode_answered(mode, reply, out),
                Awaited::Reload => self.reloaded(reply, out),
            }
            self.resume(out);
        }
    }

    fn reloaded(&mut self, reply: &Result<Answer, Refusal>, out: &mut Outbox<Openmax>) {
        match reply {
            Ok(Answer::Reloaded {
                tools,
                skills,
                changes,
            }) => {
                let changes = changes.iter().map(|change| (&**change).into()).collect();
                self.turns.refrozen(
                    &Refrozen {
                        tools: (*tools).into(),
                        skills: (*skills).into(),
                        changes,
                    },
                    out,
                );
                self.turns.expect_change();
            }
            Ok(_) => refuse(
                &Fault::Refused {
                    command: "reload",
                    why: "the agent gave no receipt".into(),
                },
                out,
            ),
            Err(Refusal::Busy) => refuse(&Fault::Busy, out),
            Err(other) => refuse(&refused("reload", other), out),
        }
    }

    /// Whether a `reload` waits for its answer, whose receipt stands for every change until then.
    pub(super) fn is_reloading(&self) -> bool {
        matches!(self.awaited, Some((_, Awaited::Reload)))
    }

    /// Lines that waited and will never be acted on: each that gets an answer is refused, and a prompt gets its `done`
    /// (OM-17). Before `hello` nothing is said.
    fn refuse_waiting(&mut self, out: &mut Outbox<Openmax>) {
        while let Some(told) = self.inbox.pop() {
            if !self.opened {
                continue;
            }
            match told {
                Told::Bad(fault) => refuse(&fault, out),
                Told::Line(HostLine::User(_)) => {
                    refuse(&Fault::Closing, out);
                    if !self.turns.owes_done() {
                        self.turns.done("refused", out);
                    }
                }
                Told::Line(HostLine::Approve(approve)) => refuse(
                    &Fault::UnknownApproval(approve.approval_id.into_owned()),
                    out,
                ),
                Told::Line(HostLine::ApprovalMode(_) | HostLine::Reload) => {
                    refuse(&Fault::Closing, out)
                }
                Told::Line(HostLine::Unknown { cmd, .. }) => {
                    refuse(&Fault::UnknownCommand(cmd.into_owned()), out)
                }
                Told::Line(HostLine::Cancel | HostLine::Quit) | Told::End => {}
            }
        }
    }

    /// The agent is closed: what is still owed is said, and the process may leave.
    ///
    /// An agent may close by itself, and die in the middle of anything: a command that it never answered, a question
    /// that it never closed and a prompt that it never ended are answered here, in the order of the input.
    pub(super) fn closed(&mut self, why: &CloseWhy, out: &mut Outbox<Openmax>) {
        for ask in self.approvals.open_asks() {
            self.ask_closed(ask, &AskClose::Cancelled, out);
        }
        self.replies.clear();
        self.turns.closed(why, out);
        match self.awaited.take() {
            Some((_, Awaited::Mode(_) | Awaited::Reload)) => refuse(&Fault::Closing, out),
            None => {}
        }
        self.refuse_waiting(out);
        self.input = Input::Closing;
        let code = match (self.signal, why) {
            (Some(signal), _) => signal.exit_code(),
            (None, CloseWhy::Signal(signal)) => signal.exit_code(),
            (None, CloseWhy::Fault(failure)) => {
                out.diagnostic(failure.text.clone());
                1
            }
            (None, CloseWhy::Drained | CloseWhy::HostGone) => {
                u8::from(self.turns.last_done_was_error)
            }
        };
        out.exit(code);
    }
}

fn mode_answered(mode: &'static str, reply: &Result<Answer, Refusal>, out: &mut Outbox<Openmax>) {
    match reply {
        Ok(_) => out.line(|line| AgentLine::ModeSet(ModeSet { mode: mode.into() }).encode(line)),
        Err(Refusal::Failed(failure)) => refuse(&Fault::ModeNotStored(failure.text.clone()), out),
        Err(other) => refuse(&refused("approval_mode", other), out),
    }
}

/// Why an agent refused a command, where this wire has no text of its own for it.
pub(super) fn refused(command: &'static str, refusal: &Refusal) -> Fault {
    let why: Text = match refusal {
        Refusal::Busy => return Fault::Busy,
        Refusal::Empty => return Fault::Empty,
        Refusal::Untrusted(project) => return Fault::Untrusted(project.clone()),
        Refusal::Closing => return Fault::Closing,
        Refusal::Unsupported(what) => return Fault::Unsupported { command, what },
        Refusal::Cancelled => "it was cancelled".into(),
        Refusal::Blocked { text, .. } => text.clone(),
        Refusal::Unknown => "the agent doesn't know what it names".into(),
        Refusal::AlreadySettled => "it is already settled".into(),
        Refusal::Full => "too much is waiting".into(),
        Refusal::TooLarge => "it is too large".into(),
        Refusal::Invalid(why) => why.clone(),
        Refusal::Failed(failure) => failure.text.clone(),
    };
    Fault::Refused { command, why }
}

/// Writes a `protocol_error`.
pub(super) fn refuse(fault: &Fault, out: &mut Outbox<Openmax>) {
    let message = fault.to_string();
    out.line(|line| {
        ProtocolError {
            message: message.into(),
        }
        .encode(line)
    });
}
