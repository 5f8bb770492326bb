//! The engine's lines, one by one.

use alloc::format;

use super::calls::{Outcome, Told};
use super::ends::failed;
use super::{ClientFace, Out, Sent};
use crate::protocol::heard::cut;
use crate::protocol::openseek::GOAL_TURNS;
use crate::protocol::openseek::wire::{
    BLANK_GOAL, CommandFault, Event as Line, GoalUpdated, Int, JobStopOutcome, JobStopResult,
    JobsSnapshot, SessionStarted, TokenCounts,
};
use crate::vocab::*;

impl ClientFace {
    /// Acts on a line.
    pub(super) fn hear(&mut self, line: &Line<'_>, out: &mut Out) {
        if let Line::SessionStarted(started) = line {
            return self.session_started(started, out);
        }
        if self.information(line, out) {
            return;
        }
        self.needs_session(out);
        if self.fleet {
            // Nobody knows whose it is.
            return self.pass_on(line, out);
        }
        if self.reply_line(line, out) || self.turn_line(line, out) {
            return;
        }
        self.session_line(line, out);
    }

    /// What has no neutral meaning. `false`: another line.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are heard elsewhere"
    )]
    fn information(&mut self, line: &Line<'_>, out: &mut Out) -> bool {
        match line {
            Line::FleetStarted(_) => {
                out.finding("several runs share these lines, which can't be told apart");
                self.fleet = true;
            }
            Line::WorkspaceCreated(_)
            | Line::WorkflowStarted(_)
            | Line::WorkflowFinished(_)
            | Line::McpConfigIgnored(_)
            | Line::McpConfigUnreadable(_)
            | Line::McpConfigInvalid(_)
            | Line::McpToolDuplicate(_)
            | Line::McpToolRenamed(_)
            | Line::McpToolsCapped(_)
            | Line::McpServerSkippedOverCap(_)
            // One that a newer engine has.
            | Line::Unknown(_) => {}
            Line::McpToolsRegistered(told) => {
                let names = told.names.iter().map(|name| Text::from(&**name));
                for name in names {
                    if !self.info.tools.contains(&name) {
                        self.info.tools.push(name);
                    }
                }
                self.changed(out);
            }
            Line::McpConnectFailed(told) => self.mcp_failed(&told.server, &told.error.0, out),
            Line::McpListToolsFailed(told) => self.mcp_failed(&told.server, &told.error, out),
            Line::McpListToolsTimeout(told) => {
                self.mcp_failed(&told.server, "it took too long to list its tools", out);
            }
            Line::McpNoTools(told) => {
                let server = McpServer::new(&*told.server, McpStatus::Connected);
                self.mcp_server(server, out);
            }
            _ => return false,
        }
        self.pass_on(line, out);
        true
    }

    fn mcp_failed(&mut self, server: &str, why: &str, out: &mut Out) {
        let mut server = McpServer::new(server, McpStatus::Failed);
        server.why = Some(why.into());
        self.mcp_server(server, out);
    }

    fn mcp_server(&mut self, server: McpServer, out: &mut Out) {
        let mut known = self.info.mcp.iter_mut();
        match known.find(|known| known.name == server.name) {
            Some(known) => *known = server,
            None => self.info.mcp.push(server),
        }
        self.changed(out);
    }

    /// `session_started`: where a run's session is.
    fn session_started(&mut self, told: &SessionStarted<'_>, out: &mut Out) {
        self.info.session = (&*told.session).into();
        if let Some(root) = told.workspace_root.get() {
            self.info.root = Some(root.into());
            if self.info.cwd.is_empty() {
                self.info.cwd = root.into();
            }
        }
        if core::mem::replace(&mut self.opened, true) {
            return self.changed(out);
        }
        out.say(What::Opened(self.info.clone()));
    }

    /// What replies and calls are made of. `false`: another line.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are heard elsewhere"
    )]
    fn reply_line(&mut self, line: &Line<'_>, out: &mut Out) -> bool {
        let narrow = |number: Int| u32::try_from(number.get()).unwrap_or(0);
        match line {
            Line::AgentStep(told) => {
                // A first step behind others is another turn's: the end of the one before was never told.
                if told.step.get() == 1 && self.turn.as_ref().is_some_and(|turn| turn.has_steps()) {
                    out.finding("a turn began, and the one before has no end");
                    self.terminal(End::NotSaid, None, out);
                }
                self.in_turn(out, |turn, calls, out| {
                    turn.step(told.step.get(), calls, out);
                });
            }
            Line::AssistantDelta(told) => self.in_turn(out, |turn, calls, out| {
                turn.delta(Kind::Text, &told.content, calls, out);
            }),
            Line::ReasoningDelta(told) => self.in_turn(out, |turn, calls, out| {
                turn.delta(Kind::Thinking, &told.content, calls, out);
            }),
            Line::AssistantMessage(told) => self.in_turn(out, |turn, calls, out| {
                turn.whole(Kind::Text, &told.content, calls, out);
            }),
            Line::ReasoningMessage(told) => self.in_turn(out, |turn, calls, out| {
                turn.whole(Kind::Thinking, &told.content, calls, out);
            }),
            Line::Usage(told) => {
                let usage = usage(&told.usage);
                self.in_turn(out, |turn, calls, out| turn.usage(usage, calls, out));
            }
            Line::StreamRetry(told) => {
                let (attempt, max) = (narrow(told.attempt), narrow(told.max_attempts));
                self.in_turn(out, |turn, calls, out| {
                    turn.retry(attempt, max, &told.reason, calls, out);
                });
            }
            Line::ToolResult(told) => {
                let told = Told {
                    id: &told.tool_call_id,
                    name: &told.tool_name,
                    content: &told.content,
                    brief: told.brief.get(),
                    outcome: if told.is_error {
                        Outcome::Error
                    } else {
                        Outcome::Ok
                    },
                };
                self.result(&told, out);
            }
            Line::ToolCallDecodeError(told) => {
                let told = Told {
                    id: &told.tool_call_id,
                    name: &told.tool_name,
                    content: &told.error,
                    brief: None,
                    outcome: Outcome::Undecoded,
                };
                self.result(&told, out);
            }
            Line::ApprovalRequested(told) => {
                if self.calls.may_ask(told, out) {
                    self.in_turn(out, |turn, calls, out| {
                        let cause = turn.cause_of_call(out);
                        calls.ask(told, cause, out);
                    });
                }
            }
            Line::ApprovalResolved(told) => self.calls.resolved(told, out),
            _ => return false,
        }
        true
    }

    fn in_turn(
        &mut self,
        out: &mut Out,
        act: impl FnOnce(&mut super::Turn, &mut super::Calls, &mut Out),
    ) {
        self.enter(out);
        if let Some(turn) = &mut self.turn {
            act(turn, &mut self.calls, out);
        }
    }

    fn result(&mut self, told: &Told<'_>, out: &mut Out) {
        self.in_turn(out, |turn, calls, out| {
            let cause = if calls.awaits(told.name) {
                ToolCause::Agent
            } else {
                turn.cause_of_call(out)
            };
            calls.result(told, cause, out);
        });
    }

    /// What begins, ends and interrupts turns. `false`: another line.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others are heard elsewhere"
    )]
    fn turn_line(&mut self, line: &Line<'_>, out: &mut Out) -> bool {
        match line {
            Line::AgentFinished(told) => {
                let answer = Some((&*told.answer).into());
                self.terminal(End::Finished { finish: None }, answer, out);
            }
            Line::AgentAborted(told) => self.aborted(&told.reason, out),
            Line::MaxStepsExhausted(_) => self.terminal(End::MaxSteps, None, out),
            Line::TurnFailed(told) => {
                self.terminal(failed(FailureKind::Internal, &told.error), None, out);
            }
            Line::AgentSetupFailed(told) => self.setup_failed(&told.error, out),
            Line::ContextYield(told) => {
                let to_sequence = sequence(told.to_sequence);
                let answer = Some((&*told.answer).into());
                self.terminal(End::Yielded { to_sequence }, answer, out);
            }
            Line::SteerApplied(told) => self.steer_applied(told, out),
            Line::SteerDropped(told) => self.steer_dropped(told, out),
            Line::BackgroundNotice(told) => {
                self.told(Origin::Job(JobId(0)), &told.content, out);
            }
            Line::GoalCheck(told) => self.between_steps(Origin::GoalCheck, &told.content, out),
            Line::GoalReminder(told) => {
                self.between_steps(Origin::GoalReminder, &told.content, out);
            }
            Line::PlanReminder(told) => {
                self.between_steps(Origin::PlanReminder, &told.content, out);
            }
            Line::GoalContinue(told) => {
                let left = u32::try_from(told.remaining.get()).unwrap_or(0);
                self.goal_continues(left, out);
            }
            Line::CompactionStarted(told) => {
                let span = (sequence(told.from_sequence), sequence(told.to_sequence));
                self.compaction_started(false, span, out);
            }
            Line::AutoCompactionStarted(told) => {
                let span = (sequence(told.from_sequence), sequence(told.to_sequence));
                self.compaction_started(true, span, out);
            }
            Line::CompactionFinished(told) => {
                let span = (sequence(told.from_sequence), sequence(told.to_sequence));
                self.compaction_over(false, Ok(compacted(span, &told.summary)), out);
            }
            Line::AutoCompactionFinished(told) => {
                let span = (sequence(told.from_sequence), sequence(told.to_sequence));
                self.compaction_over(true, Ok(compacted(span, &told.summary)), out);
            }
            Line::CompactionFailed(told) => {
                self.compaction_over(false, Err(uncompacted(&told.error)), out);
            }
            Line::AutoCompactionFailed(told) => {
                self.compaction_over(true, Err(uncompacted(&told.error)), out);
            }
            Line::SubrunStarted(told) => self.runs.started(told, out),
            Line::SubrunFinished(told) => self.runs.finished(told, out),
            _ => return false,
        }
        true
    }

    /// What belongs to the session.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the others were heard before"
    )]
    fn session_line(&mut self, line: &Line<'_>, out: &mut Out) {
        match line {
            Line::JobChanged(told) => {
                self.active |= self.jobs.changed(told.kind, &told.job, out);
            }
            Line::JobsSnapshot(told) => self.snapshot_told(told, out),
            Line::JobStopResult(told) => self.stop_told(told, out),
            Line::GoalUpdated(told) => self.goal_updated(told, out),
            Line::GoalBlocked(told) => {
                self.goal_due = false;
                if let Some(goal) = &mut self.goal {
                    goal.status = GoalStatus::Blocked;
                }
                out.say(What::Goal(GoalEvent::Blocked((&*told.reason).into())));
            }
            Line::GoalUnblocked(_) => {
                if let Some(goal) = &mut self.goal {
                    goal.status = GoalStatus::Active;
                }
                out.say(What::Goal(GoalEvent::Unblocked));
            }
            Line::GoalBudgetExhausted(told) => {
                self.goal_due = false;
                self.armed = false;
                if let Some(goal) = &mut self.goal {
                    goal.status = GoalStatus::Exhausted;
                }
                let turns = u32::try_from(told.turns.get()).unwrap_or(GOAL_TURNS);
                out.say(What::Goal(GoalEvent::BudgetExhausted { turns }));
            }
            Line::SessionError(told) => self.unstored(&told.error, out),
            Line::CommandError(told) => {
                let refusal = Refusal::Invalid((&*told.error).into());
                let others = CommandFault::is_text(&told.error) || told.error == *BLANK_GOAL;
                if others || !self.goal_refused(refusal, out) {
                    out.finding(format!(
                        "a command_error, and no command can have been wrong: {}",
                        cut(&told.error)
                    ));
                }
            }
            _ => {}
        }
    }

    /// Takes the oldest command that waits and is this.
    fn take_sent(&mut self, is: impl Fn(&Sent) -> bool) -> Option<Sent> {
        let at = self.sent.iter().position(is)?;
        self.sent.remove(at)
    }

    fn goal_updated(&mut self, told: &GoalUpdated<'_>, out: &mut Out) {
        let goal = told.goal.get();
        let is = |sent: &Sent| matches!(sent, Sent::Goal { text, .. } if text.as_deref() == goal);
        let sent = self.take_sent(is);
        let auto = matches!(&sent, Some(Sent::Goal { auto: true, .. }));
        let goal = goal.map(|text| Goal {
            text: text.into(),
            status: GoalStatus::Active,
            turns_left: auto.then_some(GOAL_TURNS),
            token_budget: None,
            tokens_used: 0,
        });
        self.goal = goal.clone();
        self.armed = auto;
        self.goal_due &= auto;
        if let Some(sent) = sent {
            out.reply(sent.command(), Seen::Real, Ok(Answer::Goal(goal.clone())));
        }
        out.say(What::Goal(GoalEvent::Changed(goal)));
    }

    /// The oldest goal that waits was refused. `false`: none waits.
    pub(super) fn goal_refused(&mut self, refusal: Refusal, out: &mut Out) -> bool {
        let sent = self.take_sent(|sent| matches!(sent, Sent::Goal { .. }));
        if let Some(sent) = &sent {
            out.reply(sent.command(), Seen::Real, Err(refusal));
        }
        sent.is_some()
    }

    fn snapshot_told(&mut self, told: &JobsSnapshot<'_>, out: &mut Out) {
        let id = &*told.request_id;
        let is = |sent: &Sent| matches!(sent, Sent::Jobs { command } if format!("jobs-{}", command.0) == id);
        let jobs = told.jobs.iter();
        let jobs = jobs
            .filter_map(|record| self.jobs.told(record, out))
            .collect();
        match self.take_sent(is) {
            Some(sent) => out.reply(sent.command(), Seen::Real, Ok(Answer::Jobs(jobs))),
            None => out.finding("a jobs_snapshot that nobody asked for"),
        }
    }

    fn stop_told(&mut self, told: &JobStopResult<'_>, out: &mut Out) {
        let id = &*told.request_id;
        let is = |sent: &Sent| matches!(sent, Sent::Stop { command } if format!("stop-{}", command.0) == id);
        let outcome = match told.outcome {
            JobStopOutcome::Stopped => JobStop::Stopped,
            JobStopOutcome::AlreadyTerminal => JobStop::AlreadyTerminal,
            JobStopOutcome::NotFound => JobStop::NotFound,
            JobStopOutcome::WrongRuntime => JobStop::WrongRuntime,
        };
        // A cancel of a job has had its reply.
        if let Some(sent) = self.take_sent(is) {
            out.reply(sent.command(), Seen::Real, Ok(Answer::JobStop(outcome)));
        }
    }
}

fn sequence(number: Int) -> u64 {
    u64::try_from(number.get()).unwrap_or(0)
}

fn compacted(span: (u64, u64), summary: &str) -> Compacted {
    Compacted {
        span: Some(span),
        summary: Some(summary.into()),
        ..Compacted::default()
    }
}

fn uncompacted(error: &str) -> CompactionFault {
    if error == "cancelled" {
        return CompactionFault::Cancelled;
    }
    CompactionFault::Failed(Failure::new(FailureKind::Internal, error))
}

/// Of the wire's five numbers: what of the prompt came from a cache, and what of it didn't.
fn usage(told: &TokenCounts<'_>) -> Usage {
    let tokens = |number: Int| u64::try_from(number.get()).ok();
    Usage {
        input: tokens(told.prompt_cache_miss_tokens),
        cache_read: tokens(told.prompt_cache_hit_tokens),
        cache_write: None,
        output: tokens(told.completion_tokens),
        reasoning: None,
    }
}
