//! Commands: each gets its line, or its refusal, and one reply.

use alloc::format;

use super::calls::Answerable;
use super::cancels::hits;
use super::prompts::{Kind, Known};
use super::{ClientFace, Out, Sent};
use crate::protocol::client::Closing;
use crate::protocol::openseek::GOAL_TURNS;
use crate::protocol::openseek::wire::{Command as Line, Component, Content, NonEmpty, SteerKind};
use crate::vocab::*;

/// Commands that may wait. An engine that answers none is found out here.
const MOST_SENT: usize = 4_096;

impl ClientFace {
    /// Acts on a command.
    pub(super) fn act(&mut self, call: Call, out: &mut Out) {
        let Call { id, command } = call;
        match command {
            Command::Close { drain } => self.close(id, drain, out),
            Command::Barrier => self.barrier(id, out),
            // What only waits for the end may be said all the same.
            Command::Cancel { what, why } => self.cancel(id, &what, &why, out),
            _ if self.config.run => unsupported(id, "commands to a run", out),
            _ if self.sent.len() >= MOST_SENT => refuse(id, Refusal::Full, out),
            Command::Prompt(prompt) => self.prompt(id, prompt, out),
            Command::Withdraw(prompt) => {
                let found = self.prompts.withdraw(prompt);
                out.reply(id, Seen::Inferred, Ok(Answer::Withdrawn(found)));
                if found {
                    let end = End::Withdrawn;
                    out.infer(What::PromptEnded { prompt, end });
                }
            }
            Command::Reply { ask, reply } => self.reply(id, ask, &reply, out),
            Command::Compact { instructions } => self.compact(id, instructions.is_some(), out),
            Command::Goal(goal) => self.goal(id, goal, out),
            Command::Job(JobCommand::Snapshot) => self.snapshot(id, out),
            Command::Job(JobCommand::Stop { job, generation }) => {
                self.stop_job(id, &job, generation.as_deref(), out);
            }
            Command::ReplyPart { .. } => refuse(id, Refusal::Unknown, out),
            Command::Promote(_) => unsupported(id, "another order of prompts", out),
            Command::Set(_) => unsupported(id, "settings", out),
            Command::Reload => unsupported(id, "reload", out),
            Command::Offer(_) => unsupported(id, "offers of the host", out),
            Command::Recall(_) => unsupported(id, "history from the host", out),
            Command::Rewind { .. } => unsupported(id, "rewind", out),
            Command::Shell { .. } => unsupported(id, "shell commands", out),
            Command::Session(_) => unsupported(id, "session changes", out),
            Command::SteerRun { .. } => unsupported(id, "nested runs", out),
        }
    }

    fn write(line: &Line<'_>, out: &mut Out) {
        out.line(|bytes| line.encode(bytes));
    }

    fn prompt(&mut self, id: CommandId, prompt: Prompt, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if self.newest.is_some_and(|newest| prompt.id <= newest) {
            let answer = Answer::Admitted(Admitted::Duplicate);
            return out.reply(id, Seen::Inferred, Ok(answer));
        }
        let busy = self.is_busy();
        // There is a turn to steer, or there will be.
        let steered = self.turn.is_some() || self.prompts.next().is_some();
        let (kind, admitted) = match &prompt.deliver {
            Deliver::IfIdle if busy => return refuse(id, Refusal::Busy, out),
            Deliver::Steer {
                idle: IdleSteer::Drop | IdleSteer::DropUnlessQueued,
            } if !steered => return self.drop_steer(id, prompt.id, out),
            Deliver::Steer { idle } if steered => {
                let start = *idle == IdleSteer::Start;
                (Kind::Steer { start }, Admitted::Queued(Lane::Steer))
            }
            Deliver::Context if self.turn.is_some() => {
                (Kind::Context, Admitted::Queued(Lane::Steer))
            }
            Deliver::Context => (Kind::Context, Admitted::Local),
            Deliver::Queue(Rank::Later) if busy => (Kind::Prompt, Admitted::Queued(Lane::Later)),
            Deliver::IfIdle
            | Deliver::Queue(_)
            | Deliver::FollowUp
            | Deliver::Preempt
            | Deliver::Steer { .. } => {
                let admitted = if busy {
                    Admitted::Queued(Lane::Next)
                } else {
                    Admitted::Started
                };
                (Kind::Prompt, admitted)
            }
        };
        let preempts = prompt.deliver == Deliver::Preempt && self.turn.is_some();
        let known = match Known::new(prompt, kind) {
            Ok(known) => known,
            Err(refusal) => return refuse(id, refusal, out),
        };
        let full = self.prompts.len() >= self.config.queued_prompts
            || self.prompts.bytes().saturating_add(known.text.len()) > self.config.queued_bytes;
        if full {
            return refuse(id, Refusal::Full, out);
        }
        self.newest = Some(known.id);
        let prompt = known.id;
        out.reply(id, Seen::Inferred, Ok(Answer::Admitted(admitted)));
        if let Admitted::Queued(lane) = admitted {
            out.infer(What::Queued { prompt, lane });
        }
        if preempts {
            self.stop(&CancelWhy::Preempted(prompt), out);
        }
        if admitted == Admitted::Queued(Lane::Later) {
            self.prompts.wait(known);
        } else {
            self.write_prompt(known, out);
        }
    }

    fn drop_steer(&mut self, id: CommandId, prompt: PromptId, out: &mut Out) {
        self.newest = Some(prompt);
        let answer = Answer::Admitted(Admitted::Queued(Lane::Steer));
        out.reply(id, Seen::Inferred, Ok(answer));
        let end = End::Dropped(DropWhy::Idle);
        out.infer(What::PromptEnded { prompt, end });
    }

    /// Writes the line of a prompt, and waits for what comes of it.
    pub(super) fn write_prompt(&mut self, known: Known, out: &mut Out) {
        let content = Content::text(known.text.as_str());
        let line = match known.kind {
            Kind::Prompt => Line::Prompt {
                content,
                submission_id: known.tag.as_deref().map(Into::into),
            },
            Kind::Steer { .. } => Line::Steer {
                kind: SteerKind::Prompt,
                content,
                submission_id: None,
            },
            Kind::Context => Line::Steer {
                kind: SteerKind::Command,
                content,
                submission_id: None,
            },
        };
        Self::write(&line, out);
        self.prompts.written(known);
    }

    fn barrier(&mut self, id: CommandId, out: &mut Out) {
        if self.sent.is_empty() {
            return out.reply(id, Seen::Inferred, Ok(Answer::Done));
        }
        self.sent.push_back(Sent::Barrier { command: id });
    }

    fn cancel(&mut self, id: CommandId, what: &CancelWhat, why: &CancelWhy, out: &mut Out) {
        let drops = match what {
            CancelWhat::Turn {
                queue: QueueFate::Drop,
            }
            | CancelWhat::Everything => true,
            CancelWhat::Turn {
                queue: QueueFate::Keep | QueueFate::Run,
            }
            | CancelWhat::TurnElseNextQueued => false,
            CancelWhat::Compaction if self.compacting.is_some() => {
                return self.cancel_compaction(id, why, out);
            }
            CancelWhat::Compaction => return self.hit(id, Hit::Nothing, out),
            CancelWhat::Job(job) => return self.cancel_job(id, *job, out),
            CancelWhat::Retry => return unsupported(id, "cancel of a retry", out),
            CancelWhat::Shell | CancelWhat::Run(_) => {
                return unsupported(
                    id,
                    "cancel of anything but a turn, a compaction or a job",
                    out,
                );
            }
        };
        self.signal = why.signal();
        if self.is_input_closed() && self.signal.is_none() {
            return refuse(id, Refusal::Closing, out);
        }
        // Any cancel ends the automatic goal.
        self.disarm(out);
        if let Some(turn) = &mut self.turn {
            let hit = Hit::Turn(turn.id);
            turn.bound = true;
            self.hit(id, hit, out);
            self.stop(why, out);
        } else if self.compacting.is_some() {
            self.cancel_compaction(id, why, out);
        } else if self.prompts.next().is_some() {
            // What it meets isn't known yet.
            self.write_cancel(Some(id), why, out);
        } else {
            self.hit(id, Hit::Nothing, out);
            if *what == CancelWhat::TurnElseNextQueued && self.prompts.is_empty() {
                self.write_cancel(None, why, out);
            } else if let Some(signal) = self.signal {
                out.signal(signal);
            }
        }
        if drops {
            self.drop_queue(why, DropWhy::Cancelled, out);
        }
    }

    fn hit(&self, id: CommandId, hit: Hit, out: &mut Out) {
        let (id, answer) = hits(id, hit, &self.prompts);
        out.reply(id, Seen::Inferred, Ok(answer));
    }

    fn cancel_compaction(&mut self, id: CommandId, why: &CancelWhy, out: &mut Out) {
        self.hit(id, Hit::Compaction, out);
        self.write_cancel(None, why, out);
    }

    /// Prompts that wait end: those that were written with their turns.
    fn drop_queue(&mut self, why: &CancelWhy, dropped: DropWhy, out: &mut Out) {
        self.prompts.doom(why);
        for prompt in self.prompts.take_later() {
            let end = End::Dropped(dropped);
            out.infer(What::PromptEnded { prompt, end });
        }
    }

    /// Cancels the turn that runs. A second cancel says nothing new to the engine, but for a signal.
    pub(super) fn stop(&mut self, why: &CancelWhy, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let first = turn.cancel.is_none();
        turn.cancel.get_or_insert_with(|| why.clone());
        if first || why.signal().is_some() {
            self.write_cancel(None, why, out);
        }
    }

    /// A signal is passed on as one. `reply`: the command that is told what it meets.
    fn write_cancel(&mut self, reply: Option<CommandId>, why: &CancelWhy, out: &mut Out) {
        let signal = why.signal();
        if let Some(signal) = signal {
            out.signal(signal);
        } else if !self.is_input_closed() {
            Self::write(&Line::Cancel, out);
        }
        // After a signal it leaves, and takes everything out.
        if signal.is_none() || reply.is_some() {
            self.cancels.written(reply, why.clone(), &self.prompts);
        }
    }

    /// The engine is silent, and nothing runs: each cancel took out a prompt, which no line tells.
    pub(super) fn cancels_took_out(&mut self, out: &mut Out) {
        for _ in 0..self.cancels.take(&self.prompts, out) {
            if let Some(known) = self.prompts.take_next() {
                self.taken_out += 1;
                let (prompt, end) = (known.id, End::Withdrawn);
                out.infer(What::PromptEnded { prompt, end });
            }
        }
    }

    fn disarm(&mut self, out: &mut Out) {
        self.goal_due = false;
        if core::mem::take(&mut self.armed) {
            out.infer(What::Goal(GoalEvent::Disarmed));
        }
    }

    fn reply(
        &mut self,
        id: CommandId,
        ask: AskId,
        reply: &Result<Reply, ReplyFault>,
        out: &mut Out,
    ) {
        let (allow, interrupt) = match reply {
            Ok(Reply::Allow { input, updates }) => {
                if input.is_some() || !updates.is_empty() {
                    let what = "approvals that change the call or the rules";
                    return unsupported(id, what, out);
                }
                (true, false)
            }
            Ok(Reply::Deny { interrupt, .. }) => (false, *interrupt),
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
        let line = Line::Approval {
            id: wire.as_str().into(),
            allow,
        };
        Self::write(&line, out);
        self.calls.answered(ask, allow);
        out.reply(id, Seen::Inferred, Ok(Answer::Sent));
        if interrupt {
            self.stop(&CancelWhy::Denied(call), out);
        }
    }

    fn compact(&mut self, id: CommandId, instructed: bool, out: &mut Out) {
        if self.closing != Closing::Open {
            return refuse(id, Refusal::Closing, out);
        }
        if instructed {
            out.finding(LOST_INSTRUCTIONS);
        }
        Self::write(&Line::Compact, out);
        out.reply(id, Seen::Inferred, Ok(Answer::Sent));
    }

    fn goal(&mut self, id: CommandId, goal: GoalCommand, out: &mut Out) {
        let (line, sent) = match &goal {
            GoalCommand::Get => {
                let answer = Answer::Goal(self.goal.clone());
                return out.reply(id, Seen::Inferred, Ok(answer));
            }
            GoalCommand::Pause | GoalCommand::Resume => {
                return unsupported(id, "goals that are paused", out);
            }
            _ if self.closing != Closing::Open => return refuse(id, Refusal::Closing, out),
            GoalCommand::Clear => {
                let sent = Sent::Goal {
                    command: id,
                    text: None,
                    auto: false,
                };
                (Line::GoalClear, sent)
            }
            GoalCommand::Set {
                text,
                auto_turns,
                token_budget,
            } => {
                if text.trim().is_empty() {
                    return refuse(id, Refusal::Empty, out);
                }
                let auto = *auto_turns != Some(0);
                if auto_turns.is_some_and(|turns| turns != 0 && turns != GOAL_TURNS) {
                    out.finding(format!("{LOST_TURNS}{GOAL_TURNS}"));
                }
                if token_budget.is_some() {
                    out.finding(LOST_BUDGET);
                }
                let line = Line::GoalSet {
                    text: (&**text).into(),
                    auto,
                };
                let sent = Sent::Goal {
                    command: id,
                    text: Some(text.clone()),
                    auto,
                };
                (line, sent)
            }
        };
        Self::write(&line, out);
        self.sent.push_back(sent);
    }

    fn snapshot(&mut self, id: CommandId, out: &mut Out) {
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        let request = format!("jobs-{}", id.0);
        let Some(request_id) = NonEmpty::new(request) else {
            return;
        };
        Self::write(&Line::JobsSnapshot { request_id }, out);
        self.sent.push_back(Sent::Jobs { command: id });
    }

    fn stop_job(&mut self, id: CommandId, job: &str, generation: Option<&str>, out: &mut Out) {
        if self.is_input_closed() {
            return refuse(id, Refusal::Closing, out);
        }
        if !self.write_stop(id, job, generation, out) {
            // Nothing of this name was told of, and no line could name it.
            let answer = Answer::JobStop(JobStop::NotFound);
            return out.reply(id, Seen::Inferred, Ok(answer));
        }
        self.sent.push_back(Sent::Stop { command: id });
    }

    /// Whether it could be written.
    fn write_stop(
        &self,
        id: CommandId,
        job: &str,
        generation: Option<&str>,
        out: &mut Out,
    ) -> bool {
        let known = self.jobs.generation(job);
        let generation = generation.or(known).and_then(Component::new);
        let request = NonEmpty::new(format!("stop-{}", id.0));
        let (Some(request_id), Some(generation), Some(job_id)) =
            (request, generation, Component::new(job))
        else {
            return false;
        };
        let line = Line::JobStop {
            request_id,
            generation,
            job_id,
        };
        Self::write(&line, out);
        true
    }

    fn cancel_job(&mut self, id: CommandId, job: JobId, out: &mut Out) {
        let live = self.jobs.live(job);
        let (Some((name, generation)), false) = (live, self.is_input_closed()) else {
            return self.hit(id, Hit::Nothing, out);
        };
        self.hit(id, Hit::Job, out);
        self.write_stop(id, &name, Some(&generation), out);
    }

    fn close(&mut self, id: CommandId, drain: bool, out: &mut Out) {
        out.reply(id, Seen::Inferred, Ok(Answer::Done));
        match (self.closing, drain) {
            (Closing::Open, true) => self.closing = Closing::Draining,
            (Closing::Open | Closing::Draining, false) => {
                self.hurried = true;
                self.disarm(out);
                let why = CancelWhy::PeerGone;
                self.drop_queue(&why, DropWhy::Closed, out);
                self.stop(&why, out);
                // Whose turns are still to begin are cancelled as they do.
                if self.prompts.next().is_some() {
                    self.closing = Closing::Draining;
                } else {
                    self.close_input(true, out);
                }
            }
            (Closing::Draining | Closing::Sent { .. }, true) | (Closing::Sent { .. }, false) => {}
        }
    }
}

/// What a Client finds where its wire has no word for something. They are losses, no faults of the engine.
pub(super) const LOST_INSTRUCTIONS: &str =
    "lost: what a summary should keep in mind has no place on this wire";
const LOST_TURNS: &str = "lost: a goal's turns can't be counted on this wire, they are ";
const LOST_BUDGET: &str = "lost: a goal's budget of tokens has no place on this wire";

fn refuse(id: CommandId, refusal: Refusal, out: &mut Out) {
    out.reply(id, Seen::Inferred, Err(refusal));
}

fn unsupported(id: CommandId, what: &'static str, out: &mut Out) {
    refuse(id, Refusal::Unsupported(what), out);
}
