//! Commands: each gets its line, or its refusal, and one reply.

use alloc::vec::Vec;

use super::super::wire::{ApprovalMode as ModeLine, Approve, HostLine, User as UserLine};
use super::books::{Sent, User};
use super::calls::Answerable;
use super::queue::{Fate, Waiting, joined};
use super::{Client, Closing, Out};
use crate::vocab::*;

impl Client {
    /// Acts on a command.
    pub(super) fn act(&mut self, call: Call, out: &mut Out) {
        let Call { id, command } = call;
        match command {
            Command::Prompt(prompt) => self.prompt(id, prompt, out),
            Command::Withdraw(prompt) => self.withdraw(id, prompt, out),
            Command::Promote(prompt) => self.promote(id, prompt, out),
            Command::Cancel { what, why } => self.cancel(id, &what, why, out),
            Command::Reply { ask, reply } => self.reply(id, ask, reply, out),
            Command::ReplyPart { .. } => refuse(id, Refusal::Unknown, out),
            Command::Set(setting) => self.set(id, setting, out),
            Command::Reload => self.reload(id, out),
            Command::Barrier => self.books.push(Sent::Barrier { command: id }, out),
            Command::Close { drain } => self.close(id, drain, out),
            Command::Offer(_) => refuse(id, Refusal::Unsupported("offers of the host"), out),
            Command::Recall(_) => refuse(id, Refusal::Unsupported("history from the host"), out),
            Command::Compact { .. } => {
                refuse(id, Refusal::Unsupported("compaction on demand"), out)
            }
            Command::Rewind { .. } => refuse(id, Refusal::Unsupported("rewind"), out),
            Command::Goal(_) => refuse(id, Refusal::Unsupported("goals"), out),
            Command::Job(_) => refuse(id, Refusal::Unsupported("background jobs"), out),
            Command::Shell { .. } => refuse(id, Refusal::Unsupported("shell commands"), out),
            Command::Session(_) => refuse(id, Refusal::Unsupported("session changes"), out),
            Command::SteerRun { .. } => refuse(id, Refusal::Unsupported("nested runs"), out),
        }
    }

    fn prompt(&mut self, id: CommandId, prompt: Prompt, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if prompt.deliver == Deliver::Context {
            return refuse(id, Refusal::Unsupported("prompts that cause no turn"), out);
        }
        let deliver = prompt.deliver.clone();
        let waiting = match Waiting::new(prompt) {
            Ok(waiting) => waiting,
            Err(refusal) => return refuse(id, refusal, out),
        };
        if self.newest.is_some_and(|newest| waiting.id <= newest) {
            let answer = Answer::Admitted(Admitted::Duplicate);
            return out.reply(id, Seen::Inferred, Ok(answer));
        }
        let lane = match self.lane(&deliver) {
            Placed::Now => None,
            Placed::Wait(lane) => Some(lane),
            Placed::Busy => return refuse(id, Refusal::Busy, out),
            Placed::Dropped => return self.drop_steer(id, waiting.id, out),
        };
        let Some(lane) = lane else {
            self.newest = Some(waiting.id);
            self.held = false;
            return self.send(Some(id), [waiting].into(), out);
        };
        let full = self.queue.len() >= self.config.queued_prompts
            || self.queue.bytes().saturating_add(waiting.bytes) > self.config.queued_bytes;
        if full {
            return refuse(id, Refusal::Full, out);
        }
        self.newest = Some(waiting.id);
        self.enqueue(id, lane, waiting, deliver == Deliver::Preempt, out);
    }

    /// Where a prompt goes.
    fn lane(&self, deliver: &Deliver) -> Placed {
        let idle = !self.is_busy();
        match deliver {
            Deliver::Steer {
                idle: IdleSteer::DropUnlessQueued,
            } if idle && !self.queue.is_empty() => Placed::Wait(Lane::Steer),
            Deliver::Steer {
                idle: IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            } if idle => Placed::Dropped,
            Deliver::IfIdle if !idle && !self.config.follow => Placed::Busy,
            Deliver::Queue(_) | Deliver::Preempt | Deliver::Steer { .. } | Deliver::FollowUp
                if idle =>
            {
                Placed::Now
            }
            Deliver::IfIdle | Deliver::Context => Placed::Now,
            Deliver::Queue(Rank::Next) | Deliver::Preempt => Placed::Wait(Lane::Next),
            Deliver::Queue(Rank::Later) => Placed::Wait(Lane::Later),
            Deliver::Steer { .. } => Placed::Wait(Lane::Steer),
            Deliver::FollowUp => Placed::Wait(Lane::FollowUp),
        }
    }

    /// The prompt waits. A steer comes later than asked, behind the turn, and is said to be a follow-up.
    fn enqueue(
        &mut self,
        id: CommandId,
        lane: Lane,
        waiting: Waiting,
        preempts: bool,
        out: &mut Out,
    ) {
        let prompt = waiting.id;
        let said = if lane == Lane::Steer {
            Lane::FollowUp
        } else {
            lane
        };
        let answer = Answer::Admitted(Admitted::Queued(said));
        out.reply(id, Seen::Inferred, Ok(answer));
        out.infer(What::Queued { prompt, lane: said });
        if preempts {
            self.queue.push_front(waiting);
            self.held = false;
            self.stop(CancelWhy::Preempted(prompt), Fate::Run, out);
        } else {
            self.queue.push(lane, waiting);
        }
    }

    fn drop_steer(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        self.newest = Some(prompt);
        let answer = Answer::Admitted(Admitted::Queued(Lane::Steer));
        out.reply(id, Seen::Inferred, Ok(answer));
        out.infer(What::PromptEnded {
            prompt,
            end: End::Dropped(DropWhy::Idle),
        });
    }

    /// Writes one `user` for these prompts. `command`: to be replied to when its turn begins, or is refused.
    pub(super) fn send(
        &mut self,
        command: Option<CommandId>,
        prompts: Vec<Waiting>,
        out: &mut Out,
    ) {
        self.end_unasked(out);
        let line = HostLine::User(UserLine {
            text: joined(&prompts).into(),
        });
        out.line(|bytes| line.encode(bytes));
        self.fate = Fate::Run;
        let user = User {
            command,
            prompts,
            cancels: Vec::new(),
            heard: false,
            why: None,
        };
        self.books.push(Sent::User(user.into()), out);
    }

    fn withdraw(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        let found = self.queue.take(prompt).is_some();
        out.reply(id, Seen::Inferred, Ok(Answer::Withdrawn(found)));
        if found {
            let end = End::Withdrawn;
            out.infer(What::PromptEnded { prompt, end });
            self.idle(out);
        }
    }

    /// The prompt is the next, and nothing holds the queue any more.
    fn promote(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        let Some(taken) = self.queue.take(prompt) else {
            return refuse(id, Refusal::Unknown, out);
        };
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        self.held = false;
        if self.is_busy() {
            let lane = Lane::Next;
            out.infer(What::Queued { prompt, lane });
        }
        self.queue.push_front(taken);
        self.idle(out);
    }

    fn cancel(&mut self, id: CommandId, what: &CancelWhat, why: CancelWhy, out: &mut Out) {
        let fate = match what {
            CancelWhat::Turn {
                queue: QueueFate::Keep,
            } => Fate::Keep,
            CancelWhat::Turn {
                queue: QueueFate::Run,
            }
            | CancelWhat::TurnElseNextQueued => Fate::Run,
            CancelWhat::Turn {
                queue: QueueFate::Drop,
            }
            | CancelWhat::Everything => Fate::Drop(DropWhy::Cancelled),
            CancelWhat::Retry => return refuse(id, Refusal::Unsupported("cancel of a retry"), out),
            CancelWhat::Compaction => {
                return refuse(id, Refusal::Unsupported("cancel of a compaction"), out);
            }
            CancelWhat::Shell | CancelWhat::Job(_) | CancelWhat::Run(_) => {
                return refuse(
                    id,
                    Refusal::Unsupported("cancel of anything but a turn"),
                    out,
                );
            }
        };
        self.signal = why.signal();
        let queued = self.queue.ids();
        if let Some(turn) = &self.turn {
            let hit = Hit::Turn(turn.id);
            out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
            return self.stop(why, fate, out);
        }
        if let Some(user) = self.books.user() {
            user.cancels.push(id);
            return self.stop(why, fate, out);
        }
        let hit = Hit::Nothing;
        out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
        match what {
            CancelWhat::TurnElseNextQueued => {
                if let Some(prompt) = self.queue.take_oldest() {
                    let (prompt, end) = (prompt.id, End::Withdrawn);
                    out.infer(What::PromptEnded { prompt, end });
                }
            }
            CancelWhat::Everything => {
                self.drop_queue(DropWhy::Cancelled, out);
                self.write_cancel(&why, out);
            }
            CancelWhat::Turn { .. } => self.write_cancel(&why, out),
            CancelWhat::Retry
            | CancelWhat::Compaction
            | CancelWhat::Shell
            | CancelWhat::Job(_)
            | CancelWhat::Run(_) => {}
        }
        self.idle(out);
    }

    /// Cancels the turn that runs or is about to. A second cancel says nothing new to the agent.
    fn stop(&mut self, why: CancelWhy, fate: Fate, out: &mut Out) {
        self.fate = fate;
        let cancel = match &mut self.turn {
            Some(turn) => &mut turn.cancel,
            None => match self.books.user() {
                Some(user) => &mut user.why,
                None => return,
            },
        };
        let first = cancel.is_none();
        let signal = why.signal();
        if first {
            *cancel = Some(why.clone());
        }
        if first || signal.is_some() {
            self.write_cancel(&why, out);
        }
    }

    /// A signal is passed on as one: the agent cancels, and leaves with its code.
    fn write_cancel(&mut self, why: &CancelWhy, out: &mut Out) {
        if let Some(signal) = why.signal() {
            out.signal(signal);
        } else if !self.is_input_closed() {
            out.line(|bytes| HostLine::Cancel.encode(bytes));
        }
    }

    fn reply(
        &mut self,
        id: CommandId,
        ask: AskId,
        reply: Result<Reply, ReplyFault>,
        out: &mut Out,
    ) {
        let (approved, interrupt) = match reply {
            Ok(Reply::Allow { input, updates }) => {
                if input.is_some() || !updates.is_empty() {
                    let what = "approvals that change the call or the rules";
                    return refuse(id, Refusal::Unsupported(what), out);
                }
                (true, false)
            }
            Ok(Reply::Deny { interrupt, .. }) => (false, interrupt),
            Ok(Reply::Hook(_) | Reply::Tool { .. } | Reply::Uri { .. } | Reply::Choice(_)) => {
                return refuse(id, Refusal::Unknown, out);
            }
            // Errors deny.
            Err(_) => (false, false),
        };
        let (wire, call) = match self.calls.answerable(ask) {
            Answerable::Yes(wire, call) => (wire, call),
            Answerable::Settled => return refuse(id, Refusal::AlreadySettled, out),
            Answerable::Unknown => return refuse(id, Refusal::Unknown, out),
        };
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        let line = HostLine::Approve(Approve {
            approval_id: wire.as_str().into(),
            approved,
        });
        out.line(|bytes| line.encode(bytes));
        self.calls.answered(ask, approved);
        let sent = Sent::Approve {
            command: id,
            ask,
            wire,
            approved,
        };
        self.books.push(sent, out);
        if interrupt {
            let why = call.map_or(CancelWhy::Host, CancelWhy::Denied);
            self.stop(why, self.fate, out);
        }
    }

    fn set(&mut self, id: CommandId, setting: Setting, out: &mut Out) {
        let mode = match setting {
            Setting::Approvals(ApprovalMode::Auto) => "auto",
            Setting::Approvals(ApprovalMode::Ask) => "ask",
            Setting::Approvals(ApprovalMode::ReadOnly) => "readonly",
            Setting::Approvals(
                ApprovalMode::AcceptEdits
                | ApprovalMode::Plan
                | ApprovalMode::Never
                | ApprovalMode::Other(_),
            ) => {
                let what = "approval modes other than auto, ask and readonly";
                return refuse(id, Refusal::Unsupported(what), out);
            }
            Setting::SteerDrain(drain) => {
                self.info.settings.steer_drain = drain;
                return self.set_here(id, out);
            }
            Setting::FollowUpDrain(drain) => {
                self.info.settings.follow_up_drain = drain;
                return self.set_here(id, out);
            }
            Setting::Interrupting(Interrupting::Wait) => return self.set_here(id, out),
            Setting::Interrupting(Interrupting::Immediate) => {
                return refuse(id, Refusal::Unsupported("steers that interrupt tools"), out);
            }
            Setting::Model(_) => return refuse(id, Refusal::Unsupported("a choice of model"), out),
            Setting::Thinking(_)
            | Setting::ThinkingBudget(_)
            | Setting::AutoRetry(_)
            | Setting::AutoCompact(_)
            | Setting::Name(_) => {
                let what = "settings other than the approval mode";
                return refuse(id, Refusal::Unsupported(what), out);
            }
        };
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        let line = HostLine::ApprovalMode(ModeLine { mode: mode.into() });
        out.line(|bytes| line.encode(bytes));
        self.books.push(Sent::Mode { command: id }, out);
    }

    /// A setting that only this Client's queue obeys.
    fn set_here(&mut self, id: CommandId, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        out.infer(What::Changed(self.info.clone()));
    }

    fn reload(&mut self, id: CommandId, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if self.is_busy() && !self.config.follow {
            return refuse(id, Refusal::Busy, out);
        }
        out.line(|bytes| HostLine::Reload.encode(bytes));
        self.books.push(Sent::Reload { command: id }, out);
    }

    fn close(&mut self, id: CommandId, drain: bool, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        match (self.closing, drain) {
            (Closing::Open, true) => {
                self.closing = Closing::Draining;
                self.held = false;
                self.idle(out);
            }
            (Closing::Open | Closing::Draining, false) => {
                for call in core::mem::take(&mut self.early) {
                    refuse(call.id, Refusal::Closing, out);
                }
                self.stop(CancelWhy::PeerGone, Fate::Drop(DropWhy::Closed), out);
                self.drop_queue(DropWhy::Closed, out);
                self.quit(true, out);
            }
            (Closing::Draining | Closing::Sent { .. }, true) | (Closing::Sent { .. }, false) => {}
        }
    }

    /// Tells the agent to leave, and closes its input.
    pub(super) fn quit(&mut self, now: bool, out: &mut Out) {
        out.line(|bytes| HostLine::Quit.encode(bytes));
        out.close_input();
        self.closing = Closing::Sent { now };
    }

    fn is_input_closed(&self) -> bool {
        matches!(self.closing, Closing::Sent { .. })
    }

    /// Replies to the cancels that waited for the fate of a `user`.
    pub(super) fn cancels_hit(&mut self, cancels: Vec<CommandId>, hit: Hit, out: &mut Out) {
        for id in cancels {
            let queued = self.queue.ids();
            out.reply(id, Seen::Inferred, Ok(Answer::Cancelling { hit, queued }));
        }
    }
}

/// Where a prompt goes.
enum Placed {
    /// To the agent.
    Now,
    /// Into the queue.
    Wait(Lane),
    /// Nowhere: only an idle agent was asked for.
    Busy,
    /// Nowhere: there is nothing to steer.
    Dropped,
}

fn refuse(id: CommandId, refusal: Refusal, out: &mut Out) {
    out.reply(id, Seen::Inferred, Err(refusal));
}
