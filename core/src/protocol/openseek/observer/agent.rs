//! Lines of the engine.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::RESULT_UNITS;
use super::super::rules::Key;
use super::super::wire::{Event, SteerKind, WireFault};
use super::runs::Whose;
use super::shape::agent_fault;
use super::step::{Ending, Of};
use super::turn::End;
use super::{Here, Watcher};
use crate::json::{DecodeError, DecodeErrorKind, Object};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_field, at_member,
};

impl Watcher {
    pub(super) fn agent(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        self.opened = true;
        let most = if line.is_cut {
            Severity::Warning
        } else {
            Severity::Error
        };
        let (object, strict) = match &line.text {
            Text::Whole(object) => (object, true),
            Text::Despite(object, fault) => {
                agent_fault(fault, most, notes);
                (object, false)
            }
            Text::Not(fault) => {
                agent_fault(fault, most, notes);
                self.blur();
                return Label::NONE;
            }
            // The reader's own limit: the contract has none.
            Text::Gone { .. } => {
                self.blur();
                return Label::NONE;
            }
        };
        let here = Here {
            sides,
            place: line.place,
            object,
        };
        match Event::of_object(object) {
            Ok(Event::Unknown(_)) => {
                let message = String::from("the contract has no event of this name");
                let at = at_member(object, "event");
                notes.add(Key::UnknownEvent.rule(), at, message);
                Label {
                    class: "event",
                    name: "",
                }
            }
            Ok(event) => {
                let name = event.tag().unwrap_or_default();
                let spec = self.shape.check(name, object, strict, notes);
                self.event(&event, here, notes);
                Label {
                    class: if begins(name) { "" } else { "event" },
                    name: spec.map_or("", |spec| spec.name),
                }
            }
            Err(WireFault::Fields(error)) => {
                unfit(&error, strict, object, notes);
                // It may have been what its name says, and to a host it was nothing.
                self.blur();
                Label {
                    class: "event",
                    name: "",
                }
            }
            Err(WireFault::Json(_) | WireFault::NoTag(_) | WireFault::TagKind { .. }) => {
                let message = match object.get("event") {
                    Some(_) => "event isn't a string",
                    None => "there is no event",
                };
                let at = at_member(object, "event");
                notes.add(Key::NoEvent.rule(), at, String::from(message));
                self.blur();
                Label::NONE
            }
        }
    }

    fn event(&mut self, event: &Event<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if let Event::FleetStarted(_) = event {
            self.fleet = true;
            self.lost = true;
        }
        if self.fleet {
            // Nothing says whose a line is.
            return;
        }
        let both = self.hears_both(here.sides);
        if !matches!(event, Event::ApprovalResolved(_)) {
            self.asks.passes();
        }
        if let Some(end) = end_of(event) {
            self.turn_ends(end, here, both, notes);
            return;
        }
        if self.reply(event, here, both, notes) || self.beside(event, here, both, notes) {
            return;
        }
        self.session(event, here, both, notes);
    }

    /// What a turn is made of; false: another event.
    #[allow(clippy::wildcard_enum_match_arm, reason = "`session` has all others")]
    fn reply(
        &mut self,
        event: &Event<'_>,
        here: Here<'_, '_, '_>,
        both: bool,
        notes: &mut Notes,
    ) -> bool {
        let (place, object) = (here.place, here.object);
        match event {
            Event::AgentStep(line) => {
                self.step.begins(notes);
                self.turn.step(line.step.get(), place, both, object, notes);
                if let Some(compacting) = self.runs.compacting() {
                    self.excluded(compacting, "the compaction", notes);
                }
            }
            Event::AssistantDelta(line) => {
                self.step
                    .piece(Of::Text, &line.content, place, object, notes);
            }
            Event::ReasoningDelta(line) => {
                self.step
                    .piece(Of::Reasoning, &line.content, place, object, notes);
            }
            Event::AssistantMessage(line) => {
                self.step
                    .whole(Of::Text, &line.content, place, object, notes);
            }
            Event::ReasoningMessage(line) => {
                self.step
                    .whole(Of::Reasoning, &line.content, place, object, notes);
            }
            Event::Usage(_) => self.step.usage(place, notes),
            Event::ToolResult(line) => {
                self.step.result(&line.tool_call_id, place, object, notes);
                let is_long = line.content.len() > RESULT_UNITS
                    && line.content.encode_utf16().count() > RESULT_UNITS;
                if is_long {
                    let at = at_member(object, "content");
                    let message = format!("the content is longer than {RESULT_UNITS} units");
                    notes.add(Key::ResultLong.rule(), at, message);
                }
            }
            Event::ToolCallDecodeError(line) => {
                self.step.result(&line.tool_call_id, place, object, notes);
            }
            Event::StreamRetry(line) => {
                let (attempt, most) = (line.attempt.get(), line.max_attempts.get());
                self.step.retry(attempt, most, place, object, notes);
            }
            _ => return false,
        }
        true
    }

    /// What stands beside a turn's replies; false: another event.
    #[allow(clippy::wildcard_enum_match_arm, reason = "`session` has all others")]
    fn beside(
        &mut self,
        event: &Event<'_>,
        here: Here<'_, '_, '_>,
        both: bool,
        notes: &mut Notes,
    ) -> bool {
        let (place, object) = (here.place, here.object);
        match event {
            Event::ApprovalRequested(line) => {
                notes.tally.approvals += 1;
                self.asks.requested(&line.id, here, notes);
            }
            Event::ApprovalResolved(line) => {
                self.asks
                    .resolved(&line.id, &line.outcome, both, here, notes);
            }
            Event::SteerApplied(line) => match &*line.kind.0 {
                "notice" => {}
                word => match SteerKind::of(word) {
                    Some(kind) => self
                        .steers
                        .applied(kind, &line.content, both, object, notes),
                    None => {
                        let at = at_member(object, "kind");
                        let message = String::from("the kind is none of the contract's words");
                        notes.add(Key::SteerWord.rule(), at, message);
                    }
                },
            },
            Event::SteerDropped(line) => self.steers.dropped(&line.content, both, object, notes),
            Event::BackgroundNotice(_) => {
                if let Some(first) = self.turn.running() {
                    let at = At::line().with(Dir::Agent, Some(first), "the turn's first line");
                    let message = String::from("a turn is open");
                    notes.add(Key::NoticeInTurn.rule(), at, message);
                }
            }
            Event::SubrunStarted(line) => self.runs.subrun_started(&line.id, place, object, notes),
            Event::SubrunFinished(line) => self.runs.subrun_finished(&line.id, object, notes),
            Event::WorkflowStarted(line) => self.runs.workflow_started(&line.id, place),
            Event::WorkflowFinished(line) => {
                self.runs.workflow_finished(&line.id, object, notes);
            }
            Event::CompactionStarted(line) => {
                let range = (line.from_sequence.get(), line.to_sequence.get());
                if let Some(first) = self.turn.running() {
                    self.excluded(first, "the turn", notes);
                }
                self.runs
                    .compaction_started(Whose::Asked, range, place, notes);
            }
            Event::CompactionFinished(line) => {
                let range = (line.from_sequence.get(), line.to_sequence.get());
                self.runs.compaction_finished(Whose::Asked, range, notes);
            }
            Event::CompactionFailed(_) => self.runs.compaction_failed(Whose::Asked),
            Event::AutoCompactionStarted(line) => {
                let range = (line.from_sequence.get(), line.to_sequence.get());
                self.turn.begins(place, both, notes);
                self.runs
                    .compaction_started(Whose::Auto, range, place, notes);
            }
            Event::AutoCompactionFinished(line) => {
                let range = (line.from_sequence.get(), line.to_sequence.get());
                self.runs.compaction_finished(Whose::Auto, range, notes);
            }
            Event::AutoCompactionFailed(_) => self.runs.compaction_failed(Whose::Auto),
            _ => return false,
        }
        true
    }

    /// What belongs to the session.
    fn session(
        &mut self,
        event: &Event<'_>,
        here: Here<'_, '_, '_>,
        both: bool,
        notes: &mut Notes,
    ) {
        let (place, object) = (here.place, here.object);
        match event {
            Event::JobChanged(line) => {
                self.jobs
                    .changed(line.kind, &line.job, place, object, notes);
            }
            Event::JobsSnapshot(line) => {
                self.jobs
                    .snapshot(&line.request_id, &line.jobs, place, both, object, notes);
            }
            Event::JobStopResult(line) => self.jobs.stopped(line, both, object, notes),
            Event::GoalUpdated(line) => {
                self.goals.updated(line.goal.get(), place, object, notes);
            }
            Event::GoalBlocked(_) => self.goals.blocked(place),
            Event::GoalUnblocked(_) => self.goals.unblocked(),
            Event::GoalContinue(line) => {
                let host = (both, self.host_ended || self.broken.is_some());
                self.goals
                    .goes_on(line.remaining.get(), &self.turn, host, object, notes);
                if self.turn.running().is_none() {
                    self.turn.by_goal();
                }
            }
            Event::GoalBudgetExhausted(line) => {
                self.goals.exhausted(line.turns.get(), object, notes);
            }
            Event::CommandError(line) => {
                self.errors.error(&line.error, place, both, object, notes);
            }
            Event::SessionError(_) => self.steers.unstored(),
            Event::SessionStarted(_) => {
                if self.session.is_some() || self.turn.any() {
                    let at = At::line().with(Dir::Agent, self.session, "the first one");
                    let message = String::from("the session has begun before");
                    notes.add(Key::SessionOnce.rule(), at, message);
                }
                if self.session.replace(place).is_none() {
                    self.turn.by_itself();
                }
            }
            // Judged before, words for people and for the model, and what MCP servers are like.
            Event::AgentSetupFailed(_)
            | Event::AgentStep(_)
            | Event::StreamRetry(_)
            | Event::AgentAborted(_)
            | Event::AgentFinished(_)
            | Event::MaxStepsExhausted(_)
            | Event::TurnFailed(_)
            | Event::AssistantDelta(_)
            | Event::ReasoningDelta(_)
            | Event::AssistantMessage(_)
            | Event::ReasoningMessage(_)
            | Event::Usage(_)
            | Event::ToolResult(_)
            | Event::ToolCallDecodeError(_)
            | Event::ApprovalRequested(_)
            | Event::ApprovalResolved(_)
            | Event::SteerApplied(_)
            | Event::SteerDropped(_)
            | Event::BackgroundNotice(_)
            | Event::GoalCheck(_)
            | Event::GoalReminder(_)
            | Event::PlanReminder(_)
            | Event::CompactionStarted(_)
            | Event::CompactionFinished(_)
            | Event::CompactionFailed(_)
            | Event::AutoCompactionStarted(_)
            | Event::AutoCompactionFinished(_)
            | Event::AutoCompactionFailed(_)
            | Event::ContextYield(_)
            | Event::SubrunStarted(_)
            | Event::SubrunFinished(_)
            | Event::WorkflowStarted(_)
            | Event::WorkflowFinished(_)
            | Event::WorkspaceCreated(_)
            | Event::FleetStarted(_)
            | Event::McpConfigIgnored(_)
            | Event::McpConfigUnreadable(_)
            | Event::McpConfigInvalid(_)
            | Event::McpToolsRegistered(_)
            | Event::McpToolDuplicate(_)
            | Event::McpToolRenamed(_)
            | Event::McpToolsCapped(_)
            | Event::McpServerSkippedOverCap(_)
            | Event::McpConnectFailed(_)
            | Event::McpListToolsFailed(_)
            | Event::McpListToolsTimeout(_)
            | Event::McpNoTools(_)
            | Event::Unknown(_) => {}
        }
    }

    fn turn_ends(&mut self, end: End, here: Here<'_, '_, '_>, both: bool, notes: &mut Notes) {
        let blurred = self.turn.is_blurred();
        let ending = match end {
            End::Finished => Ending::Well,
            End::Yielded | End::MaxSteps | End::Failed => Ending::Cut,
        };
        self.step.ends(ending, notes);
        self.turn.ends(end, here.place, both, notes);
        // A line that couldn't be read may have ended what is open.
        let mut unheard = Notes::default();
        let notes = if blurred { &mut unheard } else { notes };
        self.runs.turn_over(notes);
        self.asks.turn_over(notes);
    }

    fn excluded(&self, other: crate::frame::Place, what: &'static str, notes: &mut Notes) {
        let at = At::line().with(Dir::Agent, Some(other), what);
        let message = format!("{what} is open");
        notes.add(Key::CompactionInTurn.rule(), at, message);
    }
}

/// Whether an engine says such a thing before it has heard anything.
fn begins(name: &str) -> bool {
    name.starts_with("mcp_") || matches!(name, "workspace_created" | "session_started")
}

/// How an event ends a turn, if it does.
fn end_of(event: &Event<'_>) -> Option<End> {
    if !event.is_terminal() {
        return None;
    }
    Some(if matches!(event, Event::AgentFinished(_)) {
        End::Finished
    } else if matches!(event, Event::ContextYield(_)) {
        End::Yielded
    } else if matches!(event, Event::MaxStepsExhausted(_)) {
        End::MaxSteps
    } else {
        End::Failed
    })
}

/// An event that lacks a member, or has one of another type. `strict`: nothing was found in its text yet.
fn unfit(error: &DecodeError, strict: bool, object: &Object<'_, '_>, notes: &mut Notes) {
    if !strict {
        return;
    }
    let text = object.line().get(error.at()..).unwrap_or_default();
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let is_text = text.starts_with('"');
    let wants = |word: &str| matches!(error.kind(), DecodeErrorKind::Mismatch { expected, .. } if expected.starts_with(word));
    let key = if is_number && wants("a whole number") {
        Key::NotWhole
    } else if is_text && wants("one component") {
        Key::NotAComponent
    } else {
        Key::Fields
    };
    notes.add(key.rule(), at_field(error), error.to_string());
}
