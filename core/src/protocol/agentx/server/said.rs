//! What the agent says, event by event.

use alloc::string::String;
use alloc::vec::Vec;

use super::blocks::{self, Plain};
use super::prompts::UserExtra;
use super::turn::{Cut, Denied, Ending, Stopped};
use super::{Face, result};
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::neutral::mode_word;
use crate::protocol::agentx::policy::{ApiFailure, InitRecord, RecordForm};
use crate::protocol::agentx::wire::{
    AgentLine, ApiRetry, CompactBoundary, CompactMetadata, CompactTrigger, Maybe, Nullable, Num,
    PermissionDenied, PreservedSegment, Status, TaskNotification, TaskStarted, TaskStatus,
    TextBlock, ToolProgress,
};
use crate::vocab::*;

impl Face {
    /// One event. Never a delta.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest makes no line")]
    pub(super) fn said(&mut self, event: &Event, out: &mut Outbox<Agentx>) {
        let before = match &event.what {
            What::Changed(_) => self
                .mirror
                .info()
                .map(|info| info.settings.approvals.clone()),
            _ => None,
        };
        let trigger = self.mirror.compacting();
        self.before_mirror(event);
        self.mirror.apply(event);
        match &event.what {
            What::Replied { command, reply } => return self.replied(*command, reply, out),
            What::Asked { ask, body } => {
                self.tell_held(event.run, out);
                return self.asked(*ask, body, event.run, out);
            }
            What::AskClosed { ask, how } => return self.ask_closed(*ask, how, out),
            _ => {}
        }
        if self.reply_event(event, out) || self.call_event(event, out) || event.run != RunId::MAIN {
            return;
        }
        match &event.what {
            What::Opened(info) => self.session_opened(info, out),
            What::Changed(info)
                if before.is_some_and(|before| before != info.settings.approvals) =>
            {
                self.mode_changed(out);
            }
            What::Closed { why } => self.closed(why, out),
            What::PromptApplied { prompt, turn } => self.applied(*prompt, *turn, out),
            What::PromptEnded { prompt, end } => self.prompt_ended(*prompt, end, out),
            What::TurnStarted { turn, cause } => self.turn_started(*turn, *cause, out),
            What::TurnEnded {
                turn,
                end,
                answer,
                report,
                pending,
            } => {
                let ending = Ending {
                    turn: *turn,
                    end,
                    answer: answer.as_ref(),
                    report,
                    pending: *pending,
                };
                self.turn_ended(ending, out);
            }
            What::Settled => self.finish_turn(out),
            What::RequestStarted { attempt, .. } => self.request_started(*attempt, out),
            What::RetryScheduled {
                max, wait_us, why, ..
            } => self.retry(*max, *wait_us, why, out),
            What::Message(message) => self.message(message, out),
            What::CompletionRefused { .. } => self.refused_end = true,
            What::CompactionStarted { .. } => {
                self.begin(out);
                self.status(Some("compacting"), out);
            }
            What::CompactionEnded { result } => self.compacted(trigger, result, out),
            What::Job(step, record) => self.job(*step, record, out),
            What::RunStarted {
                run, label, call, ..
            } => self.run_started(*run, label, *call, out),
            What::RunEnded {
                run,
                status,
                detail,
                ..
            } => self.run_ended(*run, *status, detail, out),
            What::Notice { level, code, text } => self.notice(*level, code.as_deref(), text, out),
            _ => {}
        }
    }

    /// What only the mirror of before this event knows.
    fn before_mirror(&mut self, event: &Event) {
        if let What::CompactionEnded { result: Ok(done) } = &event.what {
            let ends = done.segment.and_then(|segment| {
                Some((self.record_of(segment.head)?, self.record_of(segment.tail)?))
            });
            self.kept_ends = ends;
        }
        if let What::RunEnded { run, .. } = &event.what {
            let mut runs = self.mirror.runs().iter();
            self.ended_run_call = runs
                .find(|open| open.run == *run)
                .and_then(|open| open.call);
        }
    }

    /// The record of a message of the history: a reply's first one, a call's result, or what the host itself said.
    fn record_of(&self, message: MessageId) -> Option<String> {
        if let Some(record) = self.replies.said(message) {
            return Some(record.into());
        }
        let mut history = self.mirror.history().iter();
        match history.find(|one| one.id == message)?.role {
            Role::Tool { call, .. } => self.replies.result_of(call).map(String::from),
            Role::User
            | Role::Assistant
            | Role::Note
            | Role::Summary
            | Role::Shell
            | Role::Other(_) => None,
        }
    }

    /// Replies. `false`: it is no event of one.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is no reply's")]
    fn reply_event(&mut self, event: &Event, out: &mut Outbox<Agentx>) -> bool {
        let run = event.run;
        match &event.what {
            What::MessageStarted {
                message,
                provider_id,
                model,
                usage,
                ..
            } => {
                self.begin(out);
                self.with_pen(run, out, |replies, pen| {
                    let id = provider_id.as_deref();
                    replies.started(run, *message, id, model.as_ref(), *usage, pen);
                });
            }
            What::BlockStarted {
                message,
                block,
                head,
            } => self.with_pen(run, out, |replies, pen| {
                replies.block_started(run, *message, *block, head, pen);
            }),
            What::BlockEnded {
                message,
                block,
                content,
            } => self.with_pen(run, out, |replies, pen| {
                replies.block_ended(run, *message, *block, content, pen);
            }),
            What::MessageEnded {
                message,
                stop,
                kept,
                ..
            } => {
                self.begin(out);
                if let Some(turn) = self.turn.as_mut().filter(|_| run == RunId::MAIN && *kept) {
                    turn.last_text = Some(message.text());
                    if *stop == Stop::Cancelled {
                        turn.cut = Cut::Streaming;
                    }
                }
                self.with_pen(run, out, |replies, pen| {
                    replies.ended(run, message, stop, *kept, pen);
                });
            }
            What::RequestEnded {
                outcome,
                model,
                usage,
                cost,
                api_us,
                ..
            } => {
                let complete = matches!(outcome, RequestOutcome::Complete { .. });
                self.sums.add(model, *usage, cost, complete);
                if let Some(turn) = &mut self.turn {
                    turn.requests += u64::from(run == RunId::MAIN);
                    turn.api_us = turn.api_us.saturating_add(*api_us);
                    turn.sums.add(model, *usage, cost, complete);
                    if let (RequestOutcome::Complete { finish }, RunId::MAIN) = (outcome, run) {
                        turn.finish = Some(finish.clone());
                    }
                }
                if run == RunId::MAIN {
                    self.with_pen(run, out, |replies, pen| {
                        replies.request_ended(outcome, *usage, pen);
                    });
                }
            }
            _ => return false,
        }
        true
    }

    /// Calls. `false`: it is no event of one.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is no call's")]
    fn call_event(&mut self, event: &Event, out: &mut Outbox<Agentx>) -> bool {
        let run = event.run;
        let goes_on = matches!(
            event.what,
            What::ToolStarted { .. } | What::ToolEnded { .. } | What::ToolSkipped { .. }
        );
        if goes_on {
            self.tell_held(run, out);
        }
        match &event.what {
            What::ToolStarted {
                call,
                provider_id,
                name,
                input,
                cause,
                ..
            } => {
                if run == RunId::MAIN {
                    self.goes_on(out);
                }
                blocks::name_call(*call, provider_id.as_deref(), &mut self.calls);
                if matches!(cause, ToolCause::Agent | ToolCause::Host) {
                    self.made_up_call(*call, name, input.as_ref(), run, out);
                }
            }
            What::Decided { call, verdict } => self.decided(*call, verdict, out),
            What::ToolProgress {
                call, elapsed_us, ..
            } => self.progress(*call, *elapsed_us, run, out),
            What::ToolEnded {
                call,
                outcome,
                content,
                show,
            } => {
                if *outcome == ToolOutcome::Cancelled {
                    self.cut_by_tools(run);
                }
                self.tool_result(
                    *call,
                    content,
                    outcome.is_error(),
                    show.as_deref(),
                    run,
                    out,
                );
            }
            What::ToolSkipped { call, why } => {
                if *why == SkipWhy::Cancelled {
                    self.cut_by_tools(run);
                }
                let text = match why {
                    SkipWhy::Cancelled => "The turn was cancelled before this call began",
                    SkipWhy::Truncated => "The reply broke off, so this call was not made",
                    SkipWhy::TurnOver => "The turn ended before this call began",
                    SkipWhy::Steered => "The user's message came before this call began",
                };
                let content = [Block::Text(text.into())];
                self.tool_result(*call, &content, true, None, run, out);
            }
            _ => return false,
        }
        true
    }

    /// The agent goes on with what its reply has come to: no call of it waits any more.
    fn tell_held(&mut self, run: RunId, out: &mut Outbox<Agentx>) {
        if self.replies.has_held(run) {
            self.with_pen(run, out, |replies, pen| replies.release(run, pen));
        }
    }

    fn cut_by_tools(&mut self, run: RunId) {
        if let Some(turn) = self.turn.as_mut().filter(|_| run == RunId::MAIN) {
            turn.cut = Cut::Tools;
        }
    }

    fn tool_result(
        &mut self,
        call: CallId,
        content: &[Block],
        is_error: bool,
        show: Option<&Show>,
        run: RunId,
        out: &mut Outbox<Agentx>,
    ) {
        self.begin(out);
        let form = self.config.policy.record_form;
        let id = match self.calls.end(call) {
            Some(id) => id,
            // It never began: a call of a reply that broke off.
            None => match self.calls.wire(call) {
                Some(_) => return,
                None => String::from(blocks::name_call(call, None, &mut self.calls)),
            },
        };
        let plain = Plain::new(content, form);
        let parent = self.parent_of(run);
        let details = show
            .and_then(|show| show.details.as_ref())
            .filter(|details| form == RecordForm::Provider && self.printer.is_clear(details))
            .map(blocks::raw);
        let extra = UserExtra {
            parent: parent.as_deref(),
            details,
            synthetic: false,
        };
        let record = self.say_user(Vec::from([plain.tool_result(&id, is_error)]), extra, out);
        self.replies.remember_result(call, record);
    }

    /// The wire's id of the call that asked for a nested run.
    fn parent_of(&self, run: RunId) -> Option<String> {
        let mut runs = self.mirror.runs().iter();
        let call = runs.find(|open| open.run == run)?.call?;
        self.calls.wire(call).map(String::from)
    }

    /// A call that no reply has named.
    fn made_up_call(
        &mut self,
        call: CallId,
        name: &Text,
        input: Option<&ToolInput>,
        run: RunId,
        out: &mut Outbox<Agentx>,
    ) {
        self.begin(out);
        let block = Block::ToolUse {
            call,
            provider_id: None,
            name: name.clone(),
            input: input
                .cloned()
                .unwrap_or_else(|| ToolInput::Object(RawJson("{}".into()))),
        };
        self.with_pen(run, out, |replies, pen| replies.single(&block, pen));
    }

    fn decided(&mut self, call: CallId, verdict: &Verdict, out: &mut Outbox<Agentx>) {
        if verdict.allow {
            return;
        }
        let Some(open) = self.mirror.call(call) else {
            return;
        };
        let id = self.calls.wire(call).map(String::from).unwrap_or_default();
        let denied = Denied {
            call,
            tool: open.name.clone(),
            id,
            input: open.input.clone(),
        };
        let unasked = match verdict.by {
            Decider::Mode | Decider::Rule(_) => true,
            Decider::Closed => !self.config.asks,
            Decider::Hook(_)
            | Decider::Host
            | Decider::Timer
            | Decider::Fault(_)
            | Decider::Cancel => self.denied_unasked.remove(&call),
        };
        if unasked && self.config.policy.record_form == RecordForm::Provider {
            let stamp = self.printer.stamp();
            let message = verdict
                .reason
                .clone()
                .unwrap_or_else(|| "Permission for this call was denied".into());
            let line = PermissionDenied {
                tool_name: (&*denied.tool).into(),
                tool_use_id: denied.id.as_str().into(),
                decision_reason_type: match verdict.by {
                    Decider::Mode => Some("mode".into()),
                    Decider::Rule(_) => Some("rule".into()),
                    Decider::Hook(_)
                    | Decider::Host
                    | Decider::Timer
                    | Decider::Closed
                    | Decider::Fault(_)
                    | Decider::Cancel => None,
                },
                message: (&*message).into(),
                uuid: stamp.uuid.as_str().into(),
                session_id: (&*stamp.session).into(),
                ..PermissionDenied::default()
            };
            self.printer.say(line, out);
        }
        if let Some(turn) = &mut self.turn
            && turn.denied.iter().all(|known| known.call != call)
        {
            turn.denied.push(denied);
        }
    }

    fn progress(&mut self, call: CallId, elapsed_us: u64, run: RunId, out: &mut Outbox<Agentx>) {
        if !self.config.partial {
            return;
        }
        let (Some(open), Some(id)) = (self.mirror.call(call), self.calls.wire(call)) else {
            return;
        };
        let parent = self.parent_of(run);
        let name = open.name.clone();
        let id = String::from(id);
        let stamp = self.printer.stamp();
        #[allow(clippy::cast_precision_loss, reason = "a time for people")]
        let seconds = (elapsed_us / 1_000) as f64 / 1_000.0;
        let line = ToolProgress {
            tool_use_id: id.as_str().into(),
            tool_name: (&*name).into(),
            parent_tool_use_id: super::reply::parent(parent.as_deref()),
            elapsed_time_seconds: seconds.into(),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..ToolProgress::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    /// A session is there: the first one lets the host's lines in.
    fn session_opened(&mut self, info: &SessionInfo, out: &mut Outbox<Agentx>) {
        for message in info.summarised.iter().chain(&info.history) {
            self.spoke_before(message);
        }
        self.printer.is_of(&info.session);
        self.default_model = info.model.model.clone();
        self.opened = true;
        if self.config.policy.init_record == InitRecord::Once {
            self.say_init(out);
        }
        self.take_waiting(out);
    }

    fn mode_changed(&mut self, out: &mut Outbox<Agentx>) {
        let Some(mode) = self
            .mirror
            .info()
            .map(|info| mode_word(&info.settings.approvals))
        else {
            return;
        };
        let stamp = self.printer.stamp();
        let line = Status {
            status: Nullable(None),
            permission_mode: Some(mode.as_str().into()),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..Status::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    fn status(&mut self, status: Option<&str>, out: &mut Outbox<Agentx>) {
        let uuids = match &self.turn {
            Some(turn) if self.config.policy.record_form == RecordForm::Provider => {
                turn.uuids.clone()
            }
            Some(_) | None => Vec::new(),
        };
        let stamp = self.printer.stamp();
        let line = Status {
            status: Nullable(status.map(Into::into)),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            user_message_uuids: super::reply::all(&uuids),
            ..Status::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    fn request_started(&mut self, attempt: u32, out: &mut Outbox<Agentx>) {
        self.begin(out);
        self.goes_on(out);
        if attempt == 1 {
            self.retries = 0;
        }
        if attempt == 1
            && self.style.has_events()
            && self.config.policy.record_form == RecordForm::Provider
        {
            self.status(Some("requesting"), out);
        }
    }

    fn retry(&mut self, max: u32, wait_us: Option<u64>, why: &Failure, out: &mut Outbox<Agentx>) {
        // An attempt behind a summary of a context that was full is no retry here.
        self.retries = self.retries.saturating_add(1);
        match self.config.policy.api_failure {
            ApiFailure::Plain => {
                let text = alloc::format!(
                    "WARN a request failed and is sent again (attempt {} of {max}): {}",
                    self.retries.saturating_add(1),
                    why.text
                );
                out.diagnostic(text.as_str().into());
            }
            ApiFailure::Retried => {
                self.begin(out);
                let stamp = self.printer.stamp();
                let error = if why.kind == FailureKind::Overloaded {
                    "overloaded".into()
                } else {
                    String::from(result::reply_error(why.kind).as_str())
                };
                let line = ApiRetry {
                    attempt: self.retries.into(),
                    max_retries: u64::from(max.saturating_sub(1)),
                    retry_delay_ms: (wait_us.unwrap_or(0) / 1_000).into(),
                    error_status: Nullable(why.status.map(|status| u64::from(status).into())),
                    error: error.as_str().into(),
                    session_id: (&*stamp.session).into(),
                    uuid: stamp.uuid.as_str().into(),
                    ..ApiRetry::default()
                };
                let line = AgentLine::from(line);
                self.printer.line(out, |bytes| line.encode(bytes));
            }
        }
    }

    /// A message that wasn't streamed.
    fn message(&mut self, message: &Message, out: &mut Outbox<Agentx>) {
        if self.prompts.is_local(message.prompt) {
            return self.local_output(&message.text(), out);
        }
        let refused = core::mem::take(&mut self.refused_end);
        if let (Origin::Host, Some(prompt)) = (&message.origin, message.prompt)
            && let Some(uuid) = self.prompts.uuid(prompt)
        {
            let uuid = String::from(&**uuid);
            self.replies.remember(message.id, uuid);
        }
        let synthetic = match message.origin {
            Origin::Interrupted => {
                let turn = self.turn.as_ref();
                if turn.is_some_and(|turn| turn.stopped == Some(Stopped::Preempted)) {
                    return;
                }
                false
            }
            Origin::Hook(_)
                if refused && self.config.policy.record_form == RecordForm::Provider =>
            {
                true
            }
            Origin::Hook(_)
            | Origin::Host
            | Origin::GoalCheck
            | Origin::GoalReminder
            | Origin::GoalContinue { .. }
            | Origin::PlanReminder
            | Origin::Job(_)
            | Origin::Harness
            | Origin::Extension(_)
            | Origin::History => return,
        };
        self.begin(out);
        let text = message.text();
        let block = TextBlock {
            text: text.as_str().into(),
            ..TextBlock::default()
        };
        let extra = UserExtra {
            synthetic,
            ..UserExtra::default()
        };
        self.say_user(Vec::from([block.into()]), extra, out);
        self.with_pen(RunId::MAIN, out, |replies, pen| replies.close(pen));
    }

    fn compacted(
        &mut self,
        trigger: Option<Trigger>,
        result: &Result<Compacted, CompactionFault>,
        out: &mut Outbox<Agentx>,
    ) {
        self.status(None, out);
        let Ok(compacted) = result else { return };
        let stamp = self.printer.stamp();
        // A summary that has no record of its own is what this one stands for (WIRE-005).
        let ids = compacted.segment.and_then(|segment| {
            let (head, tail) = self.kept_ends.take()?;
            let anchor = self.replies.said(segment.anchor);
            let anchor: String = anchor.unwrap_or(&stamp.uuid).into();
            Some((head, anchor, tail))
        });
        let preserved = ids.as_ref().map(|(head, anchor, tail)| PreservedSegment {
            head_uuid: head.as_str().into(),
            anchor_uuid: anchor.as_str().into(),
            tail_uuid: tail.as_str().into(),
            ..PreservedSegment::default()
        });
        let line = CompactBoundary {
            compact_metadata: CompactMetadata {
                trigger: match trigger {
                    Some(Trigger::Manual) => CompactTrigger::Manual,
                    Some(Trigger::Auto | Trigger::Overflow) | None => CompactTrigger::Auto,
                },
                pre_tokens: Nullable(compacted.tokens_before.map(Num::from)),
                preserved_segment: preserved.map_or(Maybe::Absent, Maybe::Value),
                ..CompactMetadata::default()
            },
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..CompactBoundary::default()
        };
        let line = AgentLine::from(line);
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    fn job(&mut self, step: JobStep, record: &JobRecord, out: &mut Outbox<Agentx>) {
        let call = CallId(record.job.0);
        match step {
            JobStep::Started => self.task_started(
                &record.id,
                record.description.as_deref().unwrap_or(&record.command),
                Some(call),
                out,
            ),
            JobStep::Updated => {}
            JobStep::Ended => {
                let status = match record.state {
                    JobState::Exited(0) => TaskStatus::Completed,
                    JobState::Stopped(_) | JobState::Stopping => TaskStatus::Stopped,
                    JobState::Exited(_) | JobState::Running | JobState::Interrupted => {
                        TaskStatus::Failed
                    }
                };
                let summary = record.description.as_deref().unwrap_or(&record.command);
                self.task_ended(&record.id, Some(call), status, summary, out);
                self.job_ended(record.job, out);
            }
        }
    }

    fn run_started(
        &mut self,
        run: RunId,
        label: &str,
        call: Option<CallId>,
        out: &mut Outbox<Agentx>,
    ) {
        self.task_started(&run_name(run), label, call, out);
    }

    fn run_ended(&mut self, run: RunId, status: RunStatus, detail: &str, out: &mut Outbox<Agentx>) {
        let status = match status {
            RunStatus::Completed
            | RunStatus::NoReport
            | RunStatus::Yielded
            | RunStatus::Skipped => TaskStatus::Completed,
            RunStatus::MaxSteps
            | RunStatus::TimedOut
            | RunStatus::Failed
            | RunStatus::Incomplete => TaskStatus::Failed,
            RunStatus::Cancelled => TaskStatus::Stopped,
        };
        let call = self.ended_run_call.take();
        self.task_ended(&run_name(run), call, status, detail, out);
    }

    fn task_started(
        &mut self,
        task: &str,
        description: &str,
        call: Option<CallId>,
        out: &mut Outbox<Agentx>,
    ) {
        self.begin(out);
        let call = call
            .and_then(|call| self.calls.wire(call))
            .map(String::from);
        let stamp = self.printer.stamp();
        let line = TaskStarted {
            task_id: task.into(),
            tool_use_id: call.as_deref().map(Into::into),
            description: description.into(),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..TaskStarted::default()
        };
        let line = AgentLine::System(line.into());
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    fn task_ended(
        &mut self,
        task: &str,
        call: Option<CallId>,
        status: TaskStatus<'_>,
        summary: &str,
        out: &mut Outbox<Agentx>,
    ) {
        let call = call
            .and_then(|call| self.calls.wire(call))
            .map(String::from);
        let stamp = self.printer.stamp();
        let line = TaskNotification {
            task_id: task.into(),
            tool_use_id: call.as_deref().map(Into::into),
            status,
            summary: summary.into(),
            uuid: stamp.uuid.as_str().into(),
            session_id: (&*stamp.session).into(),
            ..TaskNotification::default()
        };
        let line = AgentLine::System(line.into());
        self.printer.line(out, |bytes| line.encode(bytes));
    }

    fn notice(&mut self, level: Level, code: Option<&str>, text: &Text, out: &mut Outbox<Agentx>) {
        let local = self
            .prompts
            .open()
            .any(|prompt| self.prompts.is_local(Some(prompt)));
        if code == Some("command_output") && local {
            return self.local_output(text, out);
        }
        match level {
            Level::Debug | Level::Progress => {}
            Level::Info | Level::Warning | Level::Error => {
                if self.config.policy.record_form == RecordForm::Strict {
                    out.diagnostic(text.clone());
                }
            }
        }
    }
}

/// A nested run's name as a task.
pub(super) fn run_name(run: RunId) -> String {
    alloc::format!("run-{}", run.0)
}
