//! What the agent says, event by event.

use super::calls::ToolStart;
use super::commands::payload;
use super::prompts::Prompts;
use super::run::{Pen, RequestEnd, Run};
use super::ticket::Until;
use super::{Face, Input, Pending, entries};
use crate::protocol::Outbox;
use crate::protocol::omp::Omp;
use crate::protocol::omp::wire::{
    AutoCompactionEnd, AutoCompactionStart, BashData, Cancelled, Compaction, CompactionReason,
    ConfigUpdate, Data, ExtensionError, GoalUpdated, Kept, ModelChanged, Notice, NoticeLevel,
    Removed, SessionInfoUpdate, SessionSettled, ThinkingLevelChanged,
};
use crate::protocol::said::refusal;
use crate::protocol::wire::Hole;
use crate::vocab::*;

/// What every compaction of ours is called.
const ACTION: &str = "context-full";

impl Face {
    /// One event. Never a delta.
    pub(super) fn said(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        let changed = matches!(event.what, What::Changed(_));
        if !changed {
            self.release(Until::Changed, out);
        }
        self.tell(event, out);
        if changed {
            self.release(Until::Changed, out);
        }
    }

    fn tell(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        let before = if matches!(event.what, What::Changed(_)) {
            self.mirror.info().cloned()
        } else {
            None
        };
        let trigger = self.mirror.compacting();
        self.mirror.apply(event);
        // Questions are the same whoever asks.
        if let What::Asked { ask, body } = &event.what {
            return self.asked(*ask, body, out);
        }
        if let What::AskClosed { ask, how } = &event.what {
            return self.ask_closed(*ask, how, out);
        }
        self.subagent_news(event, out);
        if event.run != RunId::MAIN {
            return;
        }
        // What a change of the session closes is dropped with its turn; what closed by itself goes on.
        if self.changing && closes(&event.what) {
            self.printer.keep_back();
        } else if opens(&event.what) {
            self.printer.let_go(out);
        }
        self.session_event(event, before.as_ref(), trigger, out);
        self.run_event(event, out);
    }

    /// The run and what it writes with.
    fn with_pen(
        &mut self,
        out: &mut Outbox<Omp>,
        act: impl FnOnce(&mut Run, &Prompts, &mut Pen<'_>),
    ) {
        let mut pen = Pen {
            printer: &mut self.printer,
            out,
            models: &self.models,
            mirror: &self.mirror,
            now: self.now,
        };
        act(&mut self.run, &self.prompts, &mut pen);
    }

    /// What concerns the session, whether or not a run is open.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the run's")]
    fn session_event(
        &mut self,
        event: &Event,
        before: Option<&SessionInfo>,
        trigger: Option<Trigger>,
        out: &mut Outbox<Omp>,
    ) {
        match &event.what {
            What::Opened(_) => self.session_opened(out),
            What::Changed(info) => {
                if let Some(before) = before {
                    self.session_info(before, info, out);
                }
            }
            What::Closed { why } => self.closed(why, out),
            What::Replied { command, reply } => self.replied(*command, reply, out),
            What::Queued { prompt, lane } => self.queued(*prompt, *lane, out),
            What::PromptApplied { prompt, .. } => self.applied(*prompt, out),
            What::PromptEnded { prompt, end } => self.prompt_ended(*prompt, end, out),
            What::TurnStarted { .. } => self.pending_work = false,
            What::TurnEnded {
                turn, end, pending, ..
            } => {
                self.turn_ended(*turn, end, *pending, out);
            }
            What::Settled => {
                self.pending_work = false;
                self.printer.say(SessionSettled::default(), out);
            }
            What::CompactionStarted { trigger, .. } => self.compaction_started(*trigger, out),
            What::CompactionEnded { result } => {
                self.run.prune(self.mirror.history());
                if trigger == Some(Trigger::Manual) || self.own.compact.is_some() {
                    self.compacted(result, out);
                } else {
                    self.auto_compacted(trigger, result, out);
                }
                self.release(Until::Compaction, out);
            }
            What::Goal(_) => self.goal_news(out),
            What::HookFailed {
                hook,
                point,
                detail,
            } => {
                let line = ExtensionError {
                    extension_path: (&**hook).into(),
                    event: point_name(*point).into(),
                    error: (&**detail).into(),
                    ..ExtensionError::default()
                };
                self.printer.say(line, out);
            }
            What::Notice { level, code, text } => {
                let level = match level {
                    Level::Debug | Level::Progress => return,
                    Level::Info => NoticeLevel::Info,
                    Level::Warning => NoticeLevel::Warning,
                    Level::Error => NoticeLevel::Error,
                };
                let line = Notice {
                    level,
                    message: (&**text).into(),
                    source: code.as_deref().map(Into::into),
                    ..Notice::default()
                };
                self.printer.event(line, out);
            }
            _ => {}
        }
    }

    /// What the open run is made of.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "a message may be output of a command"
    )]
    fn run_event(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        match &event.what {
            What::Message(message) => {
                if !self.command_output(message, out) {
                    self.with_pen(out, |run, prompts, pen| {
                        let steering = prompts.is_steered(message.prompt);
                        run.message(message, steering, pen);
                    });
                }
            }
            what => self.with_pen(out, |run, _, pen| tell_run(run, what, pen)),
        }
    }

    /// A session is there: the first one lets the host's lines in.
    fn session_opened(&mut self, out: &mut Outbox<Omp>) {
        self.run.reset();
        self.pending_work = false;
        self.own.todos = None;
        self.own.goal = super::goals::GoalNote::default();
        self.subagents.clear();
        self.say_commands(out);
        self.opened = true;
    }

    /// Settings, tools or the like are others now.
    fn session_info(&mut self, before: &SessionInfo, now: &SessionInfo, out: &mut Outbox<Omp>) {
        let model = before.model != now.model;
        let thinking = before.settings.thinking != now.settings.thinking;
        if model {
            self.printer.event(ModelChanged::default(), out);
        }
        if thinking {
            let level = now.settings.thinking.as_deref();
            let line = ThinkingLevelChanged {
                thinking_level: level.map(Into::into),
                ..ThinkingLevelChanged::default()
            };
            self.printer.event(line, out);
        }
        // The answer to a command says this.
        let asked = [
            "set_model",
            "cycle_model",
            "set_thinking_level",
            "cycle_thinking_level",
        ];
        if (model || thinking) && !self.holds(Until::Changed, &asked) {
            let level = now.settings.thinking.as_deref();
            let object = self.current_model();
            let line = ConfigUpdate {
                model: object.as_ref().map(|model| {
                    let model = super::message::raw(model);
                    model.decode().map_or(Kept::Other(model), Kept::Known)
                }),
                thinking_level: level.map(Into::into),
                ..ConfigUpdate::default()
            };
            self.printer.say(line, out);
        }
        if before.name != now.name {
            let line = SessionInfoUpdate {
                title: now.name.as_deref().map(Into::into),
                session_id: (&*now.session).into(),
                ..SessionInfoUpdate::default()
            };
            self.printer.say(line, out);
        }
        if before.commands != now.commands || before.skills != now.skills {
            self.say_commands(out);
        }
    }

    fn turn_ended(&mut self, turn: TurnId, end: &End, pending: Pending_, out: &mut Outbox<Omp>) {
        self.pending_work = pending.background || pending.resumes;
        if *end == End::Cancelled(CancelWhy::Switch) {
            // A live run is detached: nothing of it is closed on the wire.
            self.printer.drop_kept();
            self.run.end();
        } else {
            self.printer.let_go(out);
            self.with_pen(out, |run, _, pen| run.turn_ended(end, pending, pen));
        }
        self.release(Until::Turn(turn), out);
        self.end_waiting_prompts(out);
    }

    fn compaction_started(&mut self, trigger: Trigger, out: &mut Outbox<Omp>) {
        let reason = match trigger {
            Trigger::Manual => return,
            Trigger::Auto => CompactionReason::Threshold,
            Trigger::Overflow => CompactionReason::Overflow,
        };
        let line = AutoCompactionStart {
            reason,
            action: ACTION.into(),
            ..AutoCompactionStart::default()
        };
        self.printer.event(line, out);
    }

    fn auto_compacted(
        &mut self,
        trigger: Option<Trigger>,
        result: &Result<Compacted, CompactionFault>,
        out: &mut Outbox<Omp>,
    ) {
        let mut line = AutoCompactionEnd {
            action: ACTION.into(),
            will_retry: trigger == Some(Trigger::Overflow) && result.is_ok(),
            ..AutoCompactionEnd::default()
        };
        match result {
            Ok(compacted) => line.result = Some(Kept::Known(self.compaction(compacted))),
            Err(CompactionFault::Cancelled) => line.aborted = true,
            Err(CompactionFault::Nothing(_)) => line.skipped = Some(true),
            Err(CompactionFault::Failed(failure)) => {
                line.error_message = Some((&*failure.text).into());
            }
        }
        let event = crate::protocol::omp::wire::Event::from(line);
        let mut json = alloc::vec::Vec::new();
        event.encode(&mut json);
        self.printer.event_with("auto_compaction_end", out, |out| {
            out.extend_from_slice(&json)
        });
    }

    /// The end of a compaction that the host asked for is its answer.
    fn compacted(&mut self, result: &Result<Compacted, CompactionFault>, out: &mut Outbox<Omp>) {
        let Some(ticket) = self.own.compact.take() else {
            return;
        };
        match result {
            Ok(compacted) => {
                let json = payload(&Data::Compaction(self.compaction(compacted)));
                self.give(ticket, Some(&json), out);
            }
            Err(CompactionFault::Nothing(_)) => {
                self.fail(ticket, "Nothing to compact (session too small)", out);
            }
            Err(CompactionFault::Cancelled) => self.fail(ticket, "Compaction cancelled", out),
            Err(CompactionFault::Failed(failure)) => self.fail(ticket, &failure.text, out),
        }
    }

    fn compaction<'a>(&self, compacted: &'a Compacted) -> Compaction<'a> {
        let first = compacted.keep_from.map(entries::entry_id);
        Compaction {
            summary: compacted.summary.as_deref().unwrap_or_default().into(),
            first_kept_entry_id: first.unwrap_or_default().into(),
            tokens_before: compacted.tokens_before.unwrap_or(0).into(),
            ..Compaction::default()
        }
    }

    fn goal_news(&mut self, out: &mut Outbox<Omp>) {
        let now = self.now.unix_ms;
        let goal = self.mirror.goal();
        self.own.goal.news(goal, now);
        let wire = self.own.goal.wire(goal, now);
        let mut state = alloc::vec::Vec::new();
        if let Some(live) = &wire.state.0 {
            live.put(&mut state);
        }
        let line = GoalUpdated {
            goal: wire.goal,
            state: super::run::ours(&state),
            ..GoalUpdated::default()
        };
        self.printer.event(line, out);
    }

    /// The answer to a command.
    fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        out: &mut Outbox<Omp>,
    ) {
        let Some(pending) = self.pending.remove(&command) else {
            return;
        };
        match (pending, reply) {
            (Pending::Quiet, _) => {}
            (Pending::Prompt(prompt), reply) => self.admitted(prompt, reply, out),
            (Pending::Cancel { ticket, restore }, Ok(answer)) => {
                let (hit, queued) = if let Answer::Cancelling { hit, queued } = answer {
                    (*hit, queued.as_slice())
                } else {
                    (Hit::Nothing, [].as_slice())
                };
                let json = restore.then(|| self.restored(queued, out));
                match hit {
                    Hit::Turn(turn) if self.run.turn() == Some(turn) => {
                        self.hold(ticket, json, Until::Turn(turn));
                    }
                    Hit::Compaction if self.mirror.compacting().is_some() => {
                        self.hold(ticket, json, Until::Compaction);
                    }
                    Hit::Turn(_)
                    | Hit::Compaction
                    | Hit::Retry
                    | Hit::Shell
                    | Hit::Job
                    | Hit::Run
                    | Hit::Nothing => {
                        self.give(ticket, json.as_deref(), out);
                        // A cancel that hits nothing leaves the queue; what was given back waits no more.
                        for prompt in queued.iter().filter(|_| restore) {
                            self.quiet(Command::Withdraw(*prompt), out);
                        }
                    }
                }
            }
            (Pending::Stop(ticket), Ok(_)) => self.done(ticket, out),
            (Pending::Stop(ticket), Err(Refusal::Unsupported(_)))
                if ticket.command() == "abort_bash" =>
            {
                self.done(ticket, out);
            }
            (Pending::Shell(ticket), reply) => {
                self.shells = self.shells.saturating_sub(1);
                match reply {
                    Ok(answer) => {
                        let json = payload(&Data::Bash(bash(answer)));
                        self.give(ticket, Some(&json), out);
                    }
                    Err(why) => self.refuse(ticket, why, out),
                }
            }
            (Pending::Compact(ticket), Ok(_)) => match self.own.compact.take() {
                // Only one at a time waits: commands behind it do.
                Some(other) => {
                    self.own.compact = Some(other);
                    self.done(ticket, out);
                }
                None => self.own.compact = Some(ticket),
            },
            (Pending::Withdraw(ticket), Ok(answer)) => {
                let removed = Removed {
                    removed: matches!(answer, Answer::Withdrawn(true)),
                    ..Removed::default()
                };
                self.data(ticket, &Data::Removed(removed), out);
            }
            (Pending::Setting(ticket, json), Ok(_)) => self.hold(ticket, json, Until::Changed),
            (Pending::Then(ticket, json), Ok(_)) => self.give(ticket, json.as_deref(), out),
            (
                Pending::Offer {
                    ticket,
                    json,
                    names,
                },
                Ok(_),
            ) => {
                self.own.host_tools = names;
                self.give(ticket, Some(&json), out);
            }
            (Pending::Session(ticket, change), reply) => {
                self.session_changed(ticket, &change, reply, out);
            }
            (Pending::Goal(ticket), Ok(answer)) => {
                let goal = if let Answer::Goal(goal) = answer {
                    goal.as_ref()
                } else {
                    None
                };
                let now = self.now.unix_ms;
                if goal != self.mirror.goal() {
                    self.own.goal.news(goal, now);
                }
                let json = payload(&Data::Goal(self.own.goal.wire(goal, now)));
                self.give(ticket, Some(&json), out);
            }
            (Pending::CancelRun(ticket), Ok(answer)) => {
                let data = Cancelled {
                    cancelled: matches!(answer, Answer::Cancelling { hit: Hit::Run, .. }),
                    ..Cancelled::default()
                };
                self.data(ticket, &Data::Cancelled(data), out);
            }
            (Pending::SteerRun(ticket, _), Ok(_)) => self.done(ticket, out),
            (Pending::SteerRun(ticket, id), Err(Refusal::Unknown)) => {
                let error = alloc::format!("Subagent not running: {id}");
                self.fail(ticket, &error, out);
            }
            (Pending::SteerRun(ticket, _), Err(why)) => {
                let error = alloc::format!("Subagent refused the message: {}", refusal(why));
                self.fail(ticket, &error, out);
            }
            (Pending::Query(ticket, query), Ok(_)) => self.queried(ticket, query, out),
            (
                Pending::Cancel { ticket, .. }
                | Pending::Stop(ticket)
                | Pending::Compact(ticket)
                | Pending::Withdraw(ticket)
                | Pending::Setting(ticket, _)
                | Pending::Then(ticket, _)
                | Pending::Offer { ticket, .. }
                | Pending::Goal(ticket)
                | Pending::CancelRun(ticket)
                | Pending::Query(ticket, _),
                Err(why),
            ) => self.refuse(ticket, why, out),
        }
    }

    /// The agent is gone: whatever still waits for an answer gets it, and the process may leave.
    pub(super) fn closed(&mut self, why: &CloseWhy, out: &mut Outbox<Omp>) {
        self.input = Input::Closing;
        self.printer.let_go(out);
        if self.run.turn().is_some() {
            let end = End::Cancelled(CancelWhy::PeerGone);
            self.with_pen(out, |run, _, pen| {
                run.turn_ended(&end, Pending_::default(), pen)
            });
        }
        self.release_all(out);
        self.end_all_prompts(out);
        let pending = core::mem::take(&mut self.pending);
        for (_, pending) in pending {
            let ticket = match pending {
                Pending::Quiet | Pending::Prompt(_) => continue,
                Pending::Cancel { ticket, .. }
                | Pending::Stop(ticket)
                | Pending::Shell(ticket)
                | Pending::Compact(ticket)
                | Pending::Withdraw(ticket)
                | Pending::Setting(ticket, _)
                | Pending::Then(ticket, _)
                | Pending::Offer { ticket, .. }
                | Pending::Session(ticket, _)
                | Pending::Goal(ticket)
                | Pending::CancelRun(ticket)
                | Pending::SteerRun(ticket, _)
                | Pending::Query(ticket, _) => ticket,
            };
            self.fail(ticket, "The session is closing", out);
        }
        if let Some(ticket) = self.own.compact.take() {
            self.fail(ticket, "The session is closing", out);
        }
        self.dismiss_all(out);
        self.talk_over(out);
        self.fail_waiting(out);
        let code = match (self.signal, why) {
            (Some(signal), _) => signal.exit_code(),
            (None, CloseWhy::Signal(signal)) => signal.exit_code(),
            (None, CloseWhy::Fault(failure)) => {
                out.diagnostic(failure.text.clone());
                1
            }
            (None, CloseWhy::Drained | CloseWhy::HostGone) => 0,
        };
        out.exit(code);
    }
}

/// The neutral word for what comes after a turn, beside this module's own.
type Pending_ = crate::vocab::Pending;

/// Whether an event begins something of a run.
fn opens(what: &What) -> bool {
    matches!(
        what,
        What::StepStarted { .. }
            | What::RequestStarted { .. }
            | What::RetryScheduled { .. }
            | What::MessageStarted { .. }
            | What::BlockStarted { .. }
            | What::ToolStarted { .. }
            | What::ToolProgress { .. }
            | What::CompactionStarted { .. }
    )
}

/// Whether an event closes something of a run.
fn closes(what: &What) -> bool {
    matches!(
        what,
        What::MessageEnded { .. }
            | What::RequestEnded { .. }
            | What::ToolEnded { .. }
            | What::ToolSkipped { .. }
            | What::StepEnded { .. }
            | What::TurnEnded { .. }
    )
}

/// What a shell command gave: lines are counted as the real program does, one more than there are line feeds.
fn bash(answer: &Answer) -> BashData<'_> {
    let Answer::Shell {
        output,
        exit,
        cancelled,
        timed_out,
        truncated,
        show,
    } = answer
    else {
        return BashData::default();
    };
    let bytes = output.len() as u64;
    let lines = if output.is_empty() {
        0
    } else {
        memchr::memchr_iter(b'\n', output.as_bytes()).count() as u64 + 1
    };
    let meta = |name: &str| {
        let show = show.as_ref()?;
        show.meta.iter().find(|(key, _)| &**key == name)
    };
    #[allow(clippy::cast_lossless)]
    let code = exit.filter(|_| !cancelled).map(|code| (code as f64).into());
    BashData {
        exit_code: code,
        cancelled: *cancelled,
        timed_out: timed_out.then_some(true),
        working_dir: meta("cwd").map(|(_, cwd)| (&**cwd).into()),
        output: (&**output).into(),
        truncated: *truncated,
        total_lines: lines.into(),
        total_bytes: bytes.into(),
        output_lines: lines.into(),
        output_bytes: bytes.into(),
        ..BashData::default()
    }
}

/// What a run is made of, but for whole messages.
#[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the session's")]
pub(super) fn tell_run(run: &mut Run, what: &What, pen: &mut Pen<'_>) {
    match what {
        What::TurnStarted { turn, .. } => run.turn_started(*turn, pen),
        What::StepStarted { .. } => run.step_started(pen),
        What::StepEnded { .. } => run.step_ended(pen),
        What::RequestStarted { .. } => run.request_started(pen),
        What::RequestEnded {
            outcome,
            model,
            usage,
            cost,
            api_us,
            ..
        } => {
            let end = RequestEnd {
                outcome,
                model,
                usage: *usage,
                cost,
                api_us: *api_us,
            };
            run.request_ended(&end, pen);
        }
        What::RetryScheduled {
            max, wait_us, why, ..
        } => run.retry_scheduled(*max, *wait_us, why, pen),
        What::RetryEnded { ok, why } => run.retry_ended(*ok, why.as_ref()),
        What::MessageStarted {
            message,
            provider_id,
            ..
        } => run.message_started(*message, provider_id.as_deref(), pen),
        What::BlockStarted {
            message,
            block,
            head,
        } => run.block_started(*message, *block, head, pen),
        What::BlockEnded {
            message,
            block,
            content,
        } => run.block_ended(*message, *block, content, pen),
        What::MessageEnded {
            message,
            stop,
            kept,
            ..
        } => run.message_ended(message, stop, *kept, pen),
        What::ToolStarted {
            call,
            provider_id,
            name,
            input,
            cause,
            ..
        } => {
            let start = ToolStart {
                call: *call,
                provider_id: provider_id.as_deref(),
                name,
                input: input.as_ref(),
                cause,
            };
            run.tool_started(&start, pen);
        }
        What::Decided { call, verdict } => run.decided(*call, verdict.input.as_ref()),
        What::ToolProgress { call, partial, .. } => run.tool_progress(*call, partial, pen),
        What::ToolEnded {
            call,
            outcome,
            content,
            show,
        } => run.tool_ended(*call, outcome, content, show.as_deref(), pen),
        What::ToolSkipped { call, .. } => run.tool_skipped(*call, pen),
        _ => {}
    }
}

/// This wire's name of a hook point.
fn point_name(point: HookPoint) -> &'static str {
    match point {
        HookPoint::PromptSubmit => "input",
        HookPoint::PreTool => "tool_call",
        HookPoint::PostTool => "tool_result",
        HookPoint::Permission => "permission",
        HookPoint::TurnEnd => "turn_end",
        HookPoint::RunEnd => "subagent_end",
        HookPoint::PreCompact => "session_before_compact",
        HookPoint::SessionSwitch => "session_before_switch",
        HookPoint::SessionStart => "session_start",
        HookPoint::SessionEnd => "session_shutdown",
        HookPoint::Notification => "notification",
    }
}
