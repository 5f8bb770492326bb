//! What the agent says, event by event.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::order::Bare;
use super::prompts::Said;
use super::turn::{answer_text, int, say};
use super::{Face, Input, Pending, command_error, jobs};
use crate::protocol::Outbox;
use crate::protocol::heard::cut;
use crate::protocol::openseek::wire::{
    AgentAborted, AgentFinished, AgentSetupFailed, BLANK_GOAL, BackgroundNotice, CompactionFailed,
    ContextYield, GoalBlocked, GoalBudgetExhausted, GoalCheck, GoalContinue, GoalReminder,
    GoalUnblocked, GoalUpdated, JobChanged, JobStopOutcome, JobStopResult, JobsSnapshot,
    MaxStepsExhausted, PlanReminder, SessionError, SessionStarted, SteerApplied, TurnFailed,
};
use crate::protocol::openseek::{Asking, COMMAND_LOST, GOAL_LOST, Openseek};
use crate::protocol::said::refusal;
use crate::vocab::*;

/// What a cancelled turn, and nothing else, is said to have ended for.
const INTERRUPTED: &str = "interrupted";

/// What is said of a prompt that was still waiting when the engine left.
const CLOSED: &str = "the engine left before this prompt had its turn";

impl Face {
    /// One event. Never a delta.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the turn's")]
    pub(super) fn said(&mut self, event: &Event, out: &mut Outbox<Openseek>) {
        match &event.what {
            // Questions are the same whoever asks; nothing else of what is within a nested run has a line.
            What::Asked { ask, body } => self.asked(*ask, body, out),
            What::AskClosed { ask, how } => self.ask_closed(*ask, how, out),
            _ if event.run != RunId::MAIN => {}
            What::Opened(info) => self.begin(info, out),
            What::Closed { why } => self.closed(why, out),
            What::Replied { command, reply } => self.replied(*command, reply, out),
            What::PromptApplied { prompt, .. } => self.applied(*prompt, out),
            What::PromptEnded { prompt, end } => self.prompt_ended(*prompt, end, out),
            What::CompactionStarted { trigger, span, .. } => {
                self.compaction_started(*trigger, *span, out);
            }
            What::CompactionEnded { result } => self.compaction_ended(result, out),
            What::Goal(news) => {
                goal_news(news, out);
                self.tell_goals(out);
            }
            What::Job(step, job) => {
                let (kind, record) = jobs::changed(*step, job);
                let job = record.into();
                say(
                    JobChanged {
                        kind,
                        job,
                        ..JobChanged::default()
                    },
                    out,
                );
            }
            What::RunStarted {
                run, kind, label, ..
            } => self.run_started(*run, kind, label, out),
            What::RunEnded {
                run,
                status,
                steps,
                usage,
                ..
            } => self.run_ended(*run, *status, *steps, usage.as_ref(), out),
            What::Notice { level, code, text } => {
                notice(*level, code.as_deref(), text, out);
            }
            what => self.turn_event(what, out),
        }
    }

    /// What a turn is made of.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest has no line")]
    fn turn_event(&mut self, what: &What, out: &mut Outbox<Openseek>) {
        match what {
            What::TurnStarted { cause, .. } => {
                self.turn
                    .started(*cause == Cause::Goal || *cause == Cause::Job);
            }
            What::RunProgress {
                run, steps, usage, ..
            } => self.run_progress(*run, *steps, *usage),
            What::TurnEnded { end, answer, .. } => self.turn_ended(end, answer.as_ref(), out),
            What::StepStarted { .. } => self.turn.step_started(out),
            What::StepEnded { .. } => self.turn.step_over(out),
            What::RequestStarted { attempt, .. } => self.turn.request_started(*attempt, out),
            What::RequestEnded { outcome, usage, .. } => {
                self.turn.request_ended(outcome, *usage, out);
            }
            What::RetryScheduled {
                attempt, max, why, ..
            } => self.turn.retry(*attempt, *max, &why.text, out),
            What::MessageStarted { .. } => self.turn.message_started(out),
            What::MessageEnded { message, kept, .. } => self.turn.message(message, *kept, out),
            What::Message(message) => self.message(message, out),
            What::ToolStarted {
                call,
                provider_id,
                name,
                input,
                side_effect,
                ..
            } => {
                let always = self.config.mode.asking() == Asking::Always;
                let gated = (always && side_effect.changes_something()).then(|| {
                    let input = input.as_ref().map_or("", |input| input.as_str());
                    Text::from(cut(input).as_str())
                });
                self.turn
                    .call_started(*call, provider_id.as_deref(), name, gated);
            }
            What::Decided { call, verdict } => self.decided(*call, verdict, out),
            What::ToolEnded {
                call,
                outcome,
                content,
                show,
            } => self
                .turn
                .call_ended(*call, outcome, content, show.as_deref(), out),
            What::ToolSkipped { call, why } => self.turn.call_skipped(*call, *why, out),
            _ => {}
        }
    }

    /// What entered the history without being streamed.
    fn message(&mut self, message: &Message, out: &mut Outbox<Openseek>) {
        let text = || message.text();
        match &message.origin {
            Origin::GoalCheck => {
                let content = text().into();
                say(
                    GoalCheck {
                        content,
                        ..GoalCheck::default()
                    },
                    out,
                );
            }
            Origin::GoalReminder => {
                let content = text().into();
                say(
                    GoalReminder {
                        content,
                        ..GoalReminder::default()
                    },
                    out,
                );
            }
            Origin::GoalContinue { left } => {
                let remaining = int(u64::from(*left));
                say(
                    GoalContinue {
                        remaining,
                        ..GoalContinue::default()
                    },
                    out,
                );
            }
            Origin::PlanReminder => {
                let content = text().into();
                say(
                    PlanReminder {
                        content,
                        ..PlanReminder::default()
                    },
                    out,
                );
            }
            Origin::Job(_) if self.turn.is_open() => {
                let content = text();
                say(
                    SteerApplied {
                        kind: "notice".into(),
                        content: content.as_str().into(),
                        ..SteerApplied::default()
                    },
                    out,
                );
            }
            Origin::Job(_) => {
                let content = text().into();
                say(
                    BackgroundNotice {
                        content,
                        ..BackgroundNotice::default()
                    },
                    out,
                );
            }
            Origin::Host
            | Origin::Hook(_)
            | Origin::Interrupted
            | Origin::Harness
            | Origin::Extension(_)
            | Origin::History => {
                let said = message
                    .prompt
                    .and_then(|prompt| self.prompts.get_mut(prompt));
                if let Some(Said::Prompt {
                    output: Some(output),
                    ..
                }) = said
                {
                    output.push_str(&text());
                } else if message.role == Role::Assistant {
                    self.turn.message(message, true, out);
                }
            }
        }
    }

    /// The line of a run's session.
    pub(super) fn session_started(&self, info: &SessionInfo, out: &mut Outbox<Openseek>) {
        let Some(root) = &self.config.session_root else {
            return;
        };
        say(
            SessionStarted {
                session: (&*info.session).into(),
                session_root: (&**root).into(),
                workspace_root: info.root.as_deref().map(Into::into).unwrap_or_default(),
                ..SessionStarted::default()
            },
            out,
        );
    }

    /// The answer to a command.
    fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Openseek>,
    ) {
        let Some(pending) = self.pending.remove(&command) else {
            return;
        };
        match pending {
            Pending::Quiet => {}
            Pending::Said(prompt) => match reply {
                Ok(Answer::Admitted(Admitted::Local)) => {
                    if let Some(Said::Prompt { output, .. }) = self.prompts.get_mut(prompt) {
                        output.get_or_insert_default();
                    }
                }
                Ok(_) => {}
                Err(why) => self.not_admitted(prompt, why, out),
            },
            Pending::Compact => match reply {
                Ok(_) => self.compactions += 1,
                // The one that is under way, or waits, will tell.
                Err(Refusal::Busy) if self.compactions > 0 => {}
                Err(why) => {
                    let error = refusal(why).into();
                    say(
                        CompactionFailed {
                            error,
                            ..CompactionFailed::default()
                        },
                        out,
                    );
                }
            },
            Pending::Goal => {
                self.goals.replied(command, reply.as_ref().err());
                // One that took effect is told by the event that follows.
                if reply.is_err() {
                    self.tell_goals(out);
                }
            }
            Pending::Jobs { request_id } => {
                let jobs = match reply {
                    Ok(Answer::Jobs(jobs)) => jobs.as_slice(),
                    Ok(_) | Err(_) => &[],
                };
                snapshot(&request_id, jobs, out);
            }
            Pending::Stop {
                request_id,
                generation,
                job_id,
            } => {
                let outcome = match reply {
                    Ok(Answer::JobStop(JobStop::Stopped)) => JobStopOutcome::Stopped,
                    Ok(Answer::JobStop(JobStop::AlreadyTerminal)) => {
                        JobStopOutcome::AlreadyTerminal
                    }
                    Ok(Answer::JobStop(JobStop::WrongRuntime)) => JobStopOutcome::WrongRuntime,
                    Ok(_) | Err(_) => JobStopOutcome::NotFound,
                };
                stop_result(&request_id, &generation, &job_id, outcome, out);
            }
        }
    }

    /// A prompt or a steer that the agent didn't take.
    fn not_admitted(&mut self, prompt: PromptId, why: &Refusal, out: &mut Outbox<Openseek>) {
        match self.prompts.end(prompt) {
            Some(Said::Prompt { .. }) => self.bare.end(prompt, Bare::Refused(refusal(why))),
            Some(Said::Steer(steer)) if steer.is_prompt() => say(steer.dropped(), out),
            Some(Said::Steer(_)) => self.bare.unstored(prompt, refusal(why)),
            None => {}
        }
        self.tell_bare(out);
    }

    /// A prompt or a steer has reached the model.
    fn applied(&mut self, prompt: PromptId, out: &mut Outbox<Openseek>) {
        match self.prompts.get_mut(prompt) {
            Some(Said::Prompt { applied, .. }) => {
                *applied = true;
                self.turn.claimed = true;
            }
            Some(Said::Steer(steer)) => {
                steer.applied = true;
                say(steer.applied(), out);
                self.tell_bare(out);
            }
            None => {}
        }
    }

    fn prompt_ended(&mut self, prompt: PromptId, end: &End, out: &mut Outbox<Openseek>) {
        self.prompt_over(prompt, end, out);
        // Others may have waited for it.
        self.tell_bare(out);
    }

    fn prompt_over(&mut self, prompt: PromptId, end: &End, out: &mut Outbox<Openseek>) {
        match self.prompts.end(prompt) {
            Some(Said::Prompt {
                applied: false,
                output,
            }) => {
                let bare = match end {
                    // It waited for too long, and the engine leaves.
                    End::Dropped(DropWhy::Closed) if self.signal.is_none() => {
                        Bare::Refused(CLOSED.into())
                    }
                    // Taken out, or nobody is there to hear of it.
                    End::Dropped(_) | End::Withdrawn => return,
                    End::Finished { .. } | End::Local | End::NotSaid => {
                        Bare::Finished(output.unwrap_or_default())
                    }
                    End::Cancelled(_) | End::Aborted { .. } => Bare::Aborted,
                    End::Truncated(_)
                    | End::MaxSteps
                    | End::BudgetExhausted(_)
                    | End::Unverified
                    | End::Blocked(_)
                    | End::Yielded { .. }
                    | End::Incomplete(_)
                    | End::Failed(_) => Bare::Failed(why_failed(end)),
                };
                // The turn that was to be its own has ended, and that was told.
                if !self.turn.is_open() && !core::mem::replace(&mut self.turn.claimed, true) {
                    return;
                }
                self.bare.end(prompt, bare);
            }
            Some(Said::Steer(steer)) if steer.is_prompt() && !steer.applied => {
                say(steer.dropped(), out);
            }
            Some(Said::Prompt { applied: true, .. } | Said::Steer(_)) | None => {}
        }
    }

    /// What isn't part of a turn is told once none is open, and all that was said before has its end.
    fn tell_bare(&mut self, out: &mut Outbox<Openseek>) {
        while !self.turn.is_open()
            && let Some(bare) = self.bare.next(&self.prompts)
        {
            match bare {
                Bare::Refused(error) => {
                    self.failed = true;
                    setup_failed(&error, out);
                }
                Bare::Unstored(error) => session_error(&format!("{COMMAND_LOST}{error}"), out),
                Bare::Failed(error) => self.turn_failed(&error, out),
                Bare::Aborted => aborted(INTERRUPTED, out),
                Bare::Finished(answer) => finished(answer, out),
            }
        }
    }

    /// Refusals of goals whose turn it is.
    fn tell_goals(&mut self, out: &mut Outbox<Openseek>) {
        while let Some(why) = self.goals.next() {
            if let Refusal::Failed(failure) = &why {
                session_error(&format!("{GOAL_LOST}{}", failure.text), out);
            } else if why == Refusal::Empty {
                command_error(BLANK_GOAL, out);
            } else {
                command_error(&refusal(&why), out);
            }
        }
    }

    fn turn_ended(&mut self, end: &End, answer: Option<&TurnAnswer>, out: &mut Outbox<Openseek>) {
        let has_steps = self.turn.has_steps();
        self.turn.ended(out);
        self.runs_outlive(out);
        self.failed = false;
        match end {
            End::Finished { .. } | End::Local | End::NotSaid => finished(answer_text(answer), out),
            End::Cancelled(_) | End::Dropped(_) | End::Withdrawn => aborted(INTERRUPTED, out),
            End::Aborted { reason } => aborted(reason, out),
            End::MaxSteps => say(MaxStepsExhausted::default(), out),
            End::Yielded { to_sequence } => say(
                ContextYield {
                    to_sequence: int(*to_sequence),
                    answer: answer_text(answer).into(),
                    ..ContextYield::default()
                },
                out,
            ),
            End::Failed(failure) if failure.kind == FailureKind::Setup && !has_steps => {
                self.failed = true;
                setup_failed(&failure.text, out);
            }
            End::Failed(_)
            | End::Truncated(_)
            | End::Incomplete(_)
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_) => self.turn_failed(&why_failed(end), out),
        }
        self.tell_bare(out);
    }

    /// A run says it to the person who runs it, and by its exit code.
    fn turn_failed(&mut self, error: &str, out: &mut Outbox<Openseek>) {
        self.failed = true;
        if self.is_run() {
            return out.diagnostic(format!("error: {error}").into());
        }
        let error = error.into();
        say(
            TurnFailed {
                error,
                ..TurnFailed::default()
            },
            out,
        );
    }

    /// The agent is gone: what the host is owed is said, and the process leaves.
    pub(super) fn closed(&mut self, why: &CloseWhy, out: &mut Outbox<Openseek>) {
        for ask in self.approvals.open_asks() {
            self.ask_closed(ask, &AskClose::Cancelled, out);
        }
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            self.run_ended(run, RunStatus::Cancelled, 0, None, out);
        }
        if self.compacting.is_some() {
            self.compaction_ended(&Err(CompactionFault::Cancelled), out);
        }
        if self.turn.is_open() {
            self.turn_ended(&End::Cancelled(CancelWhy::PeerGone), None, out);
        }
        for said in self.prompts.take().collect::<Vec<_>>() {
            if let Said::Steer(steer) = said
                && steer.is_prompt()
                && !steer.applied
            {
                say(steer.dropped(), out);
            }
        }
        self.tell_bare(out);
        self.goals.over();
        self.tell_goals(out);
        for pending in core::mem::take(&mut self.pending).into_values() {
            match pending {
                Pending::Jobs { request_id } => snapshot(&request_id, &[], out),
                Pending::Stop {
                    request_id,
                    generation,
                    job_id,
                } => {
                    let outcome = JobStopOutcome::NotFound;
                    stop_result(&request_id, &generation, &job_id, outcome, out);
                }
                Pending::Quiet | Pending::Said(_) | Pending::Compact | Pending::Goal => {}
            }
        }
        self.input = Input::Stopped;
        let code = match (self.signal, why) {
            (Some(signal), _) => signal.exit_code(),
            (None, CloseWhy::Signal(signal)) => signal.exit_code(),
            (None, CloseWhy::Fault(failure)) => {
                out.diagnostic(failure.text.clone());
                1
            }
            (None, CloseWhy::Drained | CloseWhy::HostGone) => {
                u8::from(self.is_run() && self.failed)
            }
        };
        out.exit(code);
    }
}

/// A turn couldn't begin.
fn setup_failed(error: &str, out: &mut Outbox<Openseek>) {
    let error = error.into();
    say(
        AgentSetupFailed {
            error,
            ..AgentSetupFailed::default()
        },
        out,
    );
}

fn finished(answer: String, out: &mut Outbox<Openseek>) {
    let answer = answer.into();
    say(
        AgentFinished {
            answer,
            ..AgentFinished::default()
        },
        out,
    );
}

fn aborted(reason: &str, out: &mut Outbox<Openseek>) {
    let reason = reason.into();
    say(
        AgentAborted {
            reason,
            ..AgentAborted::default()
        },
        out,
    );
}

fn session_error(error: &str, out: &mut Outbox<Openseek>) {
    let error = error.into();
    say(
        SessionError {
            error,
            ..SessionError::default()
        },
        out,
    );
}

/// A remark: of the store it has a line; another one that is worth acting on is for whoever runs the process.
fn notice(level: Level, code: Option<&str>, text: &Text, out: &mut Outbox<Openseek>) {
    match (level, code) {
        (Level::Error, Some("store")) => session_error(text, out),
        (Level::Error | Level::Warning, _) => out.diagnostic(text.clone()),
        (Level::Debug | Level::Progress | Level::Info, _) => {}
    }
}

fn goal_news(news: &GoalEvent, out: &mut Outbox<Openseek>) {
    match news {
        GoalEvent::Changed(goal) => {
            // One that is met isn't pursued any more.
            let goal = goal
                .as_ref()
                .filter(|goal| goal.status != GoalStatus::Completed);
            let goal = goal.map(|goal| (&*goal.text).into()).unwrap_or_default();
            say(
                GoalUpdated {
                    goal,
                    ..GoalUpdated::default()
                },
                out,
            );
        }
        GoalEvent::Blocked(reason) => {
            let reason = (&**reason).into();
            say(
                GoalBlocked {
                    reason,
                    ..GoalBlocked::default()
                },
                out,
            );
        }
        GoalEvent::Unblocked => say(GoalUnblocked::default(), out),
        GoalEvent::Disarmed => {}
        GoalEvent::BudgetExhausted { turns } => {
            let turns = int(u64::from(*turns));
            say(
                GoalBudgetExhausted {
                    turns,
                    ..GoalBudgetExhausted::default()
                },
                out,
            );
        }
    }
}

fn snapshot(request_id: &str, jobs: &[JobRecord], out: &mut Outbox<Openseek>) {
    say(
        JobsSnapshot {
            request_id: request_id.into(),
            jobs: jobs.iter().map(jobs::record).collect(),
            ..JobsSnapshot::default()
        },
        out,
    );
}

fn stop_result(
    request_id: &str,
    generation: &str,
    job_id: &str,
    outcome: JobStopOutcome,
    out: &mut Outbox<Openseek>,
) {
    say(
        JobStopResult {
            request_id: request_id.into(),
            generation: generation.into(),
            job_id: job_id.into(),
            outcome,
            ..JobStopResult::default()
        },
        out,
    );
}

/// What went wrong, in one line, for ends that this wire has no other word for.
fn why_failed(end: &End) -> String {
    match end {
        End::BudgetExhausted(BudgetKind::Tokens) => "the budget of tokens is spent".into(),
        End::BudgetExhausted(BudgetKind::Money) => "the budget of money is spent".into(),
        End::Unverified => "the end of the turn was refused too often".into(),
        End::Blocked(why) => why.to_string(),
        End::Failed(_)
        | End::Truncated(_)
        | End::Incomplete(_)
        | End::Finished { .. }
        | End::Local
        | End::MaxSteps
        | End::Yielded { .. }
        | End::Aborted { .. }
        | End::Cancelled(_)
        | End::Dropped(_)
        | End::Withdrawn
        | End::NotSaid => end
            .failure()
            .map_or_else(|| "the turn failed".into(), |why| why.text.to_string()),
    }
}
