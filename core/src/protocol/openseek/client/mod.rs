//! The Client: an engine that speaks openseek, as neutral commands and events.
//!
//! The wire acknowledges nothing and names no turns, so this Client keeps a book of what it has written, and goes by order
//! (OS-13). Whose a line is:
//!
//! | line | is about |
//! |---|---|
//! | what begins a turn | the oldest prompt that waits; where none does, a turn that nobody asked for |
//! | a terminal, `agent_setup_failed` too | the turn that is open |
//! | `agent_setup_failed` while none is | the oldest prompt that waits: it has no turn |
//! | `agent_aborted`, `interrupted`; `compaction_failed`, `cancelled` | also one cancel ([`cancels`]) |
//! | `steer_applied`, `steer_dropped` | the oldest steer of that kind and text |
//! | `session_error` of a goal, by its words | the oldest command about the goal |
//! | another `session_error` of what couldn't be appended | the oldest command of the person's |
//! | other `session_error`s | nothing that was said |
//! | `command_error` | the oldest command about the goal, unless its text is one for lines that are no commands, which this Client doesn't write |
//! | `goal_updated` | the oldest command about the goal that asks for this; where none does, the engine's own doing |
//! | `jobs_snapshot`, `job_stop_result` | the request that they name |
//!
//! Our own Server sees to it that each refusal stands behind all of its kind that came before, so that the oldest is right.
//! What no line tells: that a cancel took a prompt out. It is inferred from silence.
//!
//! A step is told, and what it is made of isn't: requests, messages and the beginnings of calls are inferred ([`turn`],
//! [`calls`]). A turn is over at its terminal, at nothing else. What isn't known is passed on as an
//! [`OpenseekExtra`](super::OpenseekExtra), never lost.

mod calls;
mod cancels;
mod commands;
mod ends;
mod jobs;
mod lines;
mod prompts;
mod runs;
mod turn;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;

use self::calls::Calls;
use self::cancels::Cancels;
use self::jobs::Jobs;
use self::prompts::Prompts;
use self::runs::Runs;
use self::turn::Turn;
use super::wire::Event as Line;
use super::{AGENT_LINE_MAX, Asking, Openseek, OpenseekExtra};
use crate::frame::{Split, SplitKind, is_blank};
use crate::json::Members;
use crate::protocol::ClientOutbox;
use crate::protocol::client::Closing;
use crate::protocol::heard::unknown_session;
use crate::vocab::*;

type Out = ClientOutbox<Openseek>;

/// What an openseek Client is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The folder that the engine was started in, which it never says. Empty: not known.
    pub cwd: Text,
    /// The session that it was started with. Empty: one that isn't stored, or nobody knows.
    pub session: Text,
    /// When it asks, as it was started to.
    pub asking: Asking,
    /// It was started for one task (`run`), and reads no commands: this Client only follows.
    pub run: bool,
    /// How long a cancel that was written while no turn was open waits for the turn that it may have hit, in microseconds:
    /// 2,000,000. After that it is taken to have taken out the next prompt, which no line tells.
    pub silence_us: u64,
    /// Prompts that may wait for the engine: 256.
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
            session: "".into(),
            asking: Asking::Never,
            run: false,
            silence_us: 2_000_000,
            queued_prompts: 256,
            queued_bytes: 16 * 1024 * 1024,
            reply_bytes: AGENT_LINE_MAX,
        }
    }
}

/// The state of an openseek Client.
#[derive(Debug)]
pub struct ClientFace {
    config: ClientConfig,
    members: Members,
    opened: bool,
    info: Box<SessionInfo>,
    /// Commands that wait for their answer, in the order in which they were written.
    sent: VecDeque<Sent>,
    prompts: Prompts,
    /// The newest prompt that was taken: an older one is a duplicate.
    newest: Option<PromptId>,
    cancels: Cancels,
    /// Prompts that are taken to be taken out, and may have had their turns all the same.
    taken_out: usize,
    turn: Option<Turn>,
    calls: Calls,
    runs: Runs,
    jobs: Jobs,
    compacting: Option<Compacting>,
    goal: Option<Goal>,
    /// Turns begin by themselves for the goal.
    armed: bool,
    /// The last turn ended so that another one may begin for the goal, or its budget is told to be used up.
    goal_due: bool,
    closing: Closing,
    /// Nothing is waited for any more than the end of what was cancelled.
    hurried: bool,
    /// The last cancel was by this signal.
    signal: Option<Signal>,
    /// Several runs share the lines, and no line says whose it is.
    fleet: bool,
    /// Something happened since the last `Settled`.
    active: bool,
}

/// The compaction that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compacting {
    auto: bool,
    span: (u64, u64),
}

/// A command that waits for its answer.
#[derive(Debug)]
enum Sent {
    /// `goal`; the text that it sets, and whether it arms.
    Goal {
        command: CommandId,
        text: Option<Text>,
        auto: bool,
    },
    /// `jobs_snapshot`
    Jobs { command: CommandId },
    /// `job_stop`
    Stop { command: CommandId },
    /// No line: waits for everything before it.
    Barrier { command: CommandId },
}

impl Sent {
    const fn command(&self) -> CommandId {
        match self {
            Sent::Goal { command, .. }
            | Sent::Jobs { command }
            | Sent::Stop { command }
            | Sent::Barrier { command } => *command,
        }
    }
}

impl crate::protocol::ClientFace<Openseek> for ClientFace {
    fn open(config: ClientConfig, _: &mut Out) -> Self {
        let mut info = unknown_session();
        info.product = "openseek".into();
        info.cwd = config.cwd.clone();
        info.root = (!config.cwd.is_empty()).then(|| config.cwd.clone());
        info.session = config.session.clone();
        info.settings.approvals = config.asking.mode();
        info.settings.steer_drain = Drain::All;
        ClientFace {
            config,
            members: Members::default(),
            opened: false,
            info: Box::new(info),
            sent: VecDeque::new(),
            prompts: Prompts::default(),
            newest: None,
            cancels: Cancels::default(),
            taken_out: 0,
            turn: None,
            calls: Calls::default(),
            runs: Runs::default(),
            jobs: Jobs::default(),
            compacting: None,
            goal: None,
            armed: false,
            goal_due: false,
            closing: Closing::Open,
            hurried: false,
            signal: None,
            fleet: false,
            active: false,
        }
    }

    fn command(&mut self, call: Call, out: &mut Out) {
        if !self.config.run {
            self.needs_session(out);
        }
        self.act(call, out);
        self.idle(out);
    }

    fn line(&mut self, line: &Split<'_>, out: &mut Out) {
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
        match Line::read(content, &mut members) {
            Ok(line) => self.hear(&line, out),
            // It is no event, and passed over (OS-03).
            Err(fault) => out.finding(format!("not an event of the contract: {fault}")),
        }
        self.members = members;
        self.idle(out);
    }

    fn end(&mut self, out: &mut Out) {
        self.gone(out);
    }

    fn settled(&mut self, _: u64, outcome: core::convert::Infallible, _: &mut Out) {
        match outcome {}
    }

    fn woken(&mut self, out: &mut Out) {
        if !self.config.run {
            self.needs_session(out);
        }
        if self
            .cancels
            .due()
            .is_some_and(|due| due <= out.now().mono_us)
        {
            self.cancels_took_out(out);
            self.idle(out);
        }
    }

    fn due(&self) -> Option<Due> {
        // An engine that serves says nothing of its session.
        let opens = !self.opened && !self.config.run;
        let opening = opens.then_some(Due {
            at_us: 0,
            why: "opening",
        });
        let cancels = self.cancels.due().map(|at_us| Due {
            at_us,
            why: "cancel",
        });
        Due::earliest(opening, cancels)
    }
}

impl ClientFace {
    /// The session is there, as it was started.
    fn needs_session(&mut self, out: &mut Out) {
        if !self.opened {
            self.opened = true;
            out.infer(What::Opened(self.info.clone()));
        }
    }

    fn changed(&mut self, out: &mut Out) {
        if self.opened {
            out.say(What::Changed(self.info.clone()));
        }
    }

    /// An event that is for nobody here.
    fn pass_on(&mut self, line: &Line<'_>, out: &mut Out) {
        out.extra(OpenseekExtra::of(line));
    }

    fn is_input_closed(&self) -> bool {
        self.config.run || matches!(self.closing, Closing::Sent { .. })
    }

    /// Whether a prompt would have to wait.
    fn is_busy(&self) -> bool {
        self.turn.is_some() || self.compacting.is_some() || self.prompts.next().is_some()
    }

    /// Whether anything is still to come of what was begun or written.
    fn is_pending(&self) -> bool {
        self.is_busy() || !self.prompts.is_empty()
    }

    /// Nothing runs: what waits here is sent, or the host is told that all is quiet, or the engine's input is closed.
    fn idle(&mut self, out: &mut Out) {
        self.pass_barriers(out);
        let runs = self.turn.is_some() || self.compacting.is_some();
        let silence_us = self.config.silence_us;
        self.cancels.settle(runs, silence_us, &self.prompts, out);
        if !self.is_busy()
            && !self.is_input_closed()
            && let Some(known) = self.prompts.pop_later()
        {
            self.write_prompt(known, out);
        }
        // It may go on by itself, unless it is told to leave.
        let waits = self.goal_due && self.armed && self.closing == Closing::Open;
        if !self.is_pending() && !waits && core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        // What it has read before the end of its input it finishes and answers; only questions need the input.
        if self.closing == Closing::Draining && !self.is_busy() {
            self.close_input(self.hurried, out);
        }
    }

    /// Closes the engine's input: it finishes what it has taken, and leaves.
    fn close_input(&mut self, now: bool, out: &mut Out) {
        out.close_input();
        self.closing = Closing::Sent { now };
        self.calls.leaving = true;
    }

    /// Replies to the barriers that nothing is before.
    fn pass_barriers(&mut self, out: &mut Out) {
        while let Some(Sent::Barrier { command }) = self.sent.front() {
            out.reply(*command, Seen::Inferred, Ok(Answer::Done));
            self.sent.pop_front();
        }
    }

    /// The engine's output has ended. Everything that is open ends.
    fn gone(&mut self, out: &mut Out) {
        let expected = self.config.run || self.closing != Closing::Open;
        let quiet = self.turn.is_none() && self.prompts.next().is_none();
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
        self.end_compaction(
            Err(CompactionFault::Failed(failure.clone())),
            Seen::Inferred,
            out,
        );
        if self.turn.is_some() {
            self.end_turn_gone(&failure, out);
        }
        self.cancels.take(&self.prompts, out);
        for sent in core::mem::take(&mut self.sent) {
            out.reply(sent.command(), Seen::Inferred, Err(refusal.clone()));
        }
        self.runs.end_all(RunStatus::Incomplete, out);
        self.calls.gone(&failure, out);
        for prompt in self.prompts.take_all() {
            let end = End::Dropped(DropWhy::Closed);
            out.infer(What::PromptEnded { prompt, end });
        }
        if core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
        let closing = match self.closing {
            Closing::Open if expected => Closing::Sent { now: false },
            closing @ (Closing::Open | Closing::Draining | Closing::Sent { .. }) => closing,
        };
        let why = closing.why(self.signal, expected && quiet, failure);
        out.infer(What::Closed { why });
    }
}
