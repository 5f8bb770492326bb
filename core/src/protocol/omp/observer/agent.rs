//! Lines of the agent, and frames that its chunks make.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::wire::{
    AGENT_RULES, AgentLine, Event, Frame, Message, PromptResult, PromptStatus, Ready, role_of,
};
use super::super::{Generation, MAX_FRAME, codec};
use super::Watcher;
use super::ledger::key;
use super::run::{Said, was_cut};
use crate::frame::Place;
use crate::json::{self, JsonFault, JsonFaultKind, Object, Raw};
use crate::protocol::WireFault;
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_field, at_member,
};

/// A finding about the text of an agent's line. `most`: how bad it can be.
pub(super) fn fault_of(fault: &JsonFault, most: Severity, notes: &mut Notes) {
    let (key, severity) = match &fault.kind {
        JsonFaultKind::Duplicate { .. } if fault.path.contains(['.', '[']) => {
            (Key::Duplicate, Severity::Warning)
        }
        JsonFaultKind::Duplicate { .. } => (Key::Duplicate, Severity::Error),
        JsonFaultKind::LoneSurrogate | JsonFaultKind::TooDeep { .. } => {
            (Key::NotALine, Severity::Info)
        }
        JsonFaultKind::NotUtf8 { .. }
        | JsonFaultKind::Blank
        | JsonFaultKind::Syntax { .. }
        | JsonFaultKind::NotAnObject => (Key::NotALine, Severity::Error),
    };
    let at = at_fault(fault).at_most(severity.min(most));
    notes.add(key.rule(), at, fault.to_string());
}

impl Watcher {
    pub(super) fn agent(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        let most = if line.is_cut {
            Severity::Warning
        } else {
            Severity::Error
        };
        if line.bytes >= MAX_FRAME as u64 {
            let message = format!(
                "the line has {} bytes and its newline; {MAX_FRAME} are the limit",
                line.bytes
            );
            notes.add(Key::TooLong.rule(), At::line(), message);
        }
        match &line.text {
            Text::Whole(object) => self.object(sides, line.place, object, true, notes),
            Text::Despite(object, fault) => {
                fault_of(fault, most, notes);
                self.object(sides, line.place, object, true, notes)
            }
            Text::Not(fault) => self.as_a_host_reads(sides, line, fault, most, notes),
            Text::Gone { .. } => {
                self.blur();
                Label::NONE
            }
        }
    }

    /// A line that isn't a strict object: hosts take more levels than a strict reader.
    fn as_a_host_reads(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        fault: &JsonFault,
        most: Severity,
        notes: &mut Notes,
    ) -> Label {
        let mut members = core::mem::take(&mut self.members);
        let deep = matches!(fault.kind, JsonFaultKind::TooDeep { .. });
        let read = deep.then(|| json::scan(line.raw, &AGENT_RULES, &mut members));
        let label = match read {
            Some(Ok(object)) => self.object(sides, line.place, &object, true, notes),
            Some(Err(fault)) => self.unreadable(&fault, most, notes),
            None => self.unreadable(fault, most, notes),
        };
        self.members = members;
        label
    }

    fn unreadable(&mut self, fault: &JsonFault, most: Severity, notes: &mut Notes) -> Label {
        fault_of(fault, most, notes);
        self.blur();
        Label::NONE
    }

    /// `on_a_line`: it isn't a frame that chunks made.
    fn object(
        &mut self,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        on_a_line: bool,
        notes: &mut Notes,
    ) -> Label {
        let kind = object.string("type");
        self.opened(kind.as_deref(), notes);
        let read = AgentLine::of_object(object);
        if on_a_line
            && kind.as_deref() != Some("rpc_chunk")
            && let Err(fault) = self.chunks.other_line()
        {
            notes.add(Key::Chunks.rule(), At::line(), String::from(fault.text()));
        }
        match read {
            Ok(AgentLine::Frame(Frame::Chunk(chunk))) if on_a_line => {
                let whole = self.chunks.chunk(&chunk);
                self.chunk(whole, sides, place, notes);
                Label {
                    class: "frame",
                    name: "rpc_chunk",
                }
            }
            Ok(line) => self.line_of(&line, sides, place, object, notes),
            Err(WireFault::NoTag(_) | WireFault::TagKind { .. } | WireFault::Json(_)) => {
                let message = match object.get("type") {
                    Some(_) => "type isn't a string",
                    None => "there is no type",
                };
                notes.add(
                    Key::NoType.rule(),
                    at_member(object, "type"),
                    String::from(message),
                );
                self.blur();
                Label::NONE
            }
            Err(WireFault::Fields(error)) => {
                let at = at_field(&error).at_most(cut_severity(object));
                notes.add(Key::Fields.rule(), at, error.to_string());
                self.blur();
                Label::NONE
            }
        }
    }

    fn chunk(
        &mut self,
        whole: Result<Option<alloc::vec::Vec<u8>>, codec::ChunkFault>,
        sides: Sides,
        place: Place,
        notes: &mut Notes,
    ) {
        let bytes = match whole {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(fault) => {
                let key = if fault == codec::ChunkFault::NotNegotiated {
                    Key::ChunkEarly
                } else {
                    Key::Chunks
                };
                notes.add(key.rule(), At::line(), String::from(fault.text()));
                // What it would have been nobody knows.
                return self.blur();
            }
        };
        let mut members = core::mem::take(&mut self.members);
        // Findings point at the chunk that makes the frame whole: the frame's own places are in no line.
        let mut inner = Notes::default();
        match json::scan(&bytes, &AGENT_RULES, &mut members) {
            Ok(object) => {
                self.object(sides, place, &object, false, &mut inner);
            }
            Err(fault) => {
                fault_of(&fault, Severity::Error, &mut inner);
                self.blur();
            }
        }
        notes.adopt(inner);
        self.members = members;
    }

    /// The first line.
    fn opened(&mut self, kind: Option<&str>, notes: &mut Notes) {
        if !self.opened && kind != Some("ready") {
            notes.add(
                Key::FirstIsReady.rule(),
                At::line(),
                String::from("the agent's first line isn't ready"),
            );
            self.ready = true;
        } else if self.opened && self.ready && kind == Some("ready") {
            notes.add(
                Key::ReadyOnce.rule(),
                At::line(),
                String::from("ready comes again"),
            );
        }
        self.opened = true;
        self.ready |= kind == Some("ready");
    }

    fn line_of(
        &mut self,
        line: &AgentLine<'_>,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        match line {
            AgentLine::Event(event) => {
                self.event(event, sides, place, object, notes);
                // News can come before the host has said anything.
                let class = if of_a_run(event) { "event" } else { "news" };
                Label {
                    class,
                    name: event.tag().unwrap_or_default(),
                }
            }
            AgentLine::Response(response) => {
                self.response(response, sides, object, notes);
                Label {
                    class: "",
                    name: "response",
                }
            }
            AgentLine::Ui(request) => {
                let asking = self.asking(sides, place, "set_ask_dialog");
                self.asks.screen(request, asking, object, notes);
                Label {
                    class: "request",
                    name: request.method.tag().unwrap_or_default(),
                }
            }
            AgentLine::Frame(frame) => {
                self.frame(frame, sides, place, object, notes);
                Label {
                    class: "frame",
                    name: frame.tag().unwrap_or_default(),
                }
            }
            AgentLine::Unknown { kind, .. } => {
                let (member, what) = if *kind == "extension_ui_request" {
                    (
                        "method",
                        "the contract has no request of this method, or it has no id",
                    )
                } else {
                    ("type", "the contract has no line of this type")
                };
                notes.add(
                    Key::UnknownType.rule(),
                    at_member(object, member),
                    String::from(what),
                );
                Label::NONE
            }
        }
    }

    fn frame(
        &mut self,
        frame: &Frame<'_>,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        match frame {
            Frame::Ready(ready) => Self::numbers(ready, notes),
            Frame::PromptResult(result) => self.prompt_result(result, sides, object, notes),
            Frame::SessionSettled(_) => {
                let run = self.run.opened_at();
                let run = run.filter(|_| sides == Sides::Both && !self.changes_session());
                self.settling.settles(run, notes);
                if sides == Sides::Both
                    && let Some(left) = self.ledger.left()
                    && !self.ledger.is_unsure()
                {
                    let at = At::line().with(Dir::Host, Some(left.place), "the prompt");
                    notes.add(
                        Key::ResultMissing.rule(),
                        at,
                        String::from("an accepted prompt has no prompt_result"),
                    );
                }
            }
            Frame::HostToolCall(call) => {
                let asking = self.asking(sides, place, "set_host_tools");
                self.asks
                    .call(&call.id, &call.tool_name, asking, object, notes)
            }
            Frame::HostToolCancel(cancel) => {
                self.asks.call_cancelled(&cancel.target_id, object, notes)
            }
            Frame::HostUriRequest(request) => {
                let asking = self.asking(sides, place, "set_host_uri_schemes");
                self.asks.uri(
                    (&request.id, &request.url),
                    &request.operation,
                    request.content.is_some(),
                    asking,
                    object,
                    notes,
                )
            }
            Frame::HostUriCancel(cancel) => {
                self.asks.uri_cancelled(&cancel.target_id, object, notes)
            }
            Frame::SubagentLifecycle(_) | Frame::SubagentProgress(_) => {
                let asking = self.asking(sides, place, "set_subagent_subscription");
                self.asks.subagent(1, asking, notes)
            }
            Frame::SubagentEvent(_) => {
                let asking = self.asking(sides, place, "set_subagent_subscription");
                self.asks.subagent(2, asking, notes)
            }
            Frame::LivePhase(phase) => {
                let begins = &*phase.phase == "connecting" || self.talk_is_asked_for(sides);
                self.asks.talk(begins, false, notes);
            }
            Frame::LiveLevels(_) | Frame::LiveTranscript(_) => {
                let begins = self.talk_is_asked_for(sides);
                self.asks.talk(begins, false, notes);
            }
            // One that can't begin has its end alone.
            Frame::LiveEnd(end) => {
                let failed = end.error.is_some() && sides != Sides::Both;
                let begins = failed || self.talk_is_asked_for(sides);
                self.asks.talk(begins, true, notes);
            }
            // It stands for a line that nobody can know.
            Frame::FrameError(_) => self.run.blur(),
            Frame::AvailableCommandsUpdate(_)
            | Frame::CommandOutput(_)
            | Frame::SessionInfoUpdate(_)
            | Frame::ConfigUpdate(_)
            | Frame::ExtensionError(_)
            | Frame::Chunk(_)
            | Frame::BtwDelta(_)
            | Frame::BtwRecord(_)
            | Frame::Unknown(_) => {}
        }
    }

    fn numbers(ready: &Ready<'_>, notes: &mut Notes) {
        let right = codec::offers_chunks(ready)
            && ready.protocol_version == Some(1)
            && ready.supported_protocol_versions.as_deref() == Some(&[1, 2]);
        if !right {
            notes.add(
                Key::ReadyNumbers.rule(),
                At::line(),
                String::from("versions and limits aren't the contract's"),
            );
        }
    }

    fn prompt_result(
        &mut self,
        result: &PromptResult<'_>,
        sides: Sides,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let g1 = result.status.is_none() && !result.agent_invoked;
        let is_error = matches!(result.status, Some(PromptStatus::Error));
        let newer = matches!(result.status, Some(PromptStatus::Other(_)));
        let message = if newer {
            Some((Severity::Info, "the contract has no such status"))
        } else if g1 {
            (self.generation > Generation::G1).then_some((
                Severity::Info,
                "status and sessionSettled are missing, as in older programs",
            ))
        } else if result.status.is_none() || result.session_settled.is_none() {
            Some((Severity::Error, "status or sessionSettled is missing"))
        } else if is_error != result.error.is_some() {
            Some((
                Severity::Error,
                "error is there if, and only if, the status is error",
            ))
        } else {
            None
        };
        if let Some((severity, message)) = message {
            let at = at_member(object, "status").at_most(severity);
            notes.add(Key::ResultShape.rule(), at, String::from(message));
        }
        let settled = result.session_settled == Some(true);
        let completed = matches!(result.status, Some(PromptStatus::Completed));
        let settles = settled && sides == Sides::Both && !self.changes_session();
        if result.agent_invoked && (completed || settles) {
            self.run.prompt_ended(settled, object, notes);
        }
        self.settling.prompt_ended(settled);
        let id = key(result.id);
        if sides != Sides::Both || self.ledger.end(id) || self.ledger.is_unsure() {
            return;
        }
        let (key, message) = if self.ledger.has(id) {
            (Key::ResultEarly, "the prompt hasn't been answered yet")
        } else {
            (
                Key::ResultUncaused,
                "no accepted prompt of this id waits for its end",
            )
        };
        notes.add(key.rule(), at_member(object, "id"), String::from(message));
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        match event {
            Event::AgentStart(_) => {
                self.settling.begins(notes);
                self.run.start(place, notes);
            }
            Event::AgentEnd(end) => {
                self.older(1, end.yielded.is_none(), "yielded is missing", notes);
                for message in &end.messages {
                    Self::message_in(*message, object, notes);
                }
                let leaves = self.host_ended || sides != Sides::Both;
                self.run.end(end, leaves, object, notes);
            }
            Event::TurnStart(_) => self.run.step_start(place, notes),
            Event::TurnEnd(end) => {
                Self::message_in(end.message, object, notes);
                self.run.step_end(end, object, notes);
            }
            Event::MessageStart(start) => {
                self.older(0, start.message_id.is_none(), "messageId is missing", notes);
                Self::message_in(start.message, object, notes);
                let id = start.message_id.as_deref();
                self.run
                    .message_start(Said::of(start.message), id, place, object, notes);
            }
            Event::MessageUpdate(update) => {
                let id = update.message_id.as_deref();
                self.run.message_update(&update.update, id, object, notes);
            }
            Event::MessageEnd(end) => {
                let message = Self::message_in(end.message, object, notes);
                let said = (Said::of(end.message), message.as_ref());
                let id = end.message_id.as_deref();
                self.run.message_end(said, id, object, notes);
            }
            Event::ToolExecutionStart(start) => {
                self.run
                    .tool_start(&start.tool_call_id, place, object, notes);
            }
            Event::ToolExecutionUpdate(update) => {
                self.run.tool(&update.tool_call_id, false, object, notes)
            }
            Event::ToolExecutionEnd(end) => {
                self.run.tool(&end.tool_call_id, true, object, notes);
                self.run.tool_ended(&end.tool_call_id, end.is_error);
            }
            Event::AutoCompactionStart(_) => self.run.compacts(),
            Event::AutoCompactionEnd(_) => {
                self.settling.stirs();
                self.run.compacted(notes);
            }
            Event::AutoRetryStart(retry) => {
                self.run.retry(retry.attempt, retry.max_attempts, notes);
            }
            Event::AutoRetryEnd(retry) => self.run.retried(retry.attempt, notes),
            Event::RetryFallbackApplied(_) => self.run.falls_back(),
            Event::ToolStreamUpdate(_)
            | Event::RetryFallbackSucceeded(_)
            | Event::ModelChanged(_)
            | Event::ConfigWarningsChanged(_)
            | Event::AdvisorCostChanged(_)
            | Event::AdvisorYielded(_)
            | Event::TodoAutoClear(_)
            | Event::ThinkingLevelChanged(_)
            | Event::TtsrTriggered(_)
            | Event::TodoReminder(_)
            | Event::IrcMessage(_)
            | Event::Notice(_)
            | Event::GoalUpdated(_)
            | Event::QueueUpdate(_)
            | Event::CacheWarmingStart(_)
            | Event::CacheWarmingEnd(_)
            | Event::PersonaChanged(_)
            | Event::Unknown(_) => {}
        }
    }

    /// A member that an older generation doesn't have.
    fn older(&mut self, slot: usize, missing: bool, message: &str, notes: &mut Notes) {
        if missing
            && self.generation > Generation::G1
            && let Some(told @ false) = self.told.get_mut(slot)
        {
            *told = true;
            notes.add(Key::Older.rule(), At::line(), String::from(message));
        }
    }

    /// A message within a line; `None` if it can't be read.
    fn message_in<'a>(
        message: Raw<'a>,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) -> Option<Message<'a>> {
        let error = match Message::decode(message) {
            Ok(message) => return Some(message),
            Err(error) => error,
        };
        {
            let role = role_of(message).unwrap_or_default();
            let role = role
                .get(..role.floor_char_boundary(40))
                .unwrap_or_default()
                .to_string();
            notes.add(
                Key::Message.rule(),
                At::line().at_most(cut_severity(object)),
                format!("a message of the role {role:?}: {error}"),
            );
        }
        None
    }
}

/// How bad it can be that something is missing: a line that was made to fit into a frame may lack anything.
fn cut_severity(object: &Object<'_, '_>) -> Severity {
    if was_cut(object) {
        Severity::Info
    } else {
        Severity::Error
    }
}

/// Whether only a run has such an event.
fn of_a_run(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::AgentStart(_)
            | Event::AgentEnd(_)
            | Event::TurnStart(_)
            | Event::TurnEnd(_)
            | Event::MessageStart(_)
            | Event::MessageUpdate(_)
            | Event::MessageEnd(_)
            | Event::ToolExecutionStart(_)
            | Event::ToolExecutionUpdate(_)
            | Event::ToolStreamUpdate(_)
            | Event::ToolExecutionEnd(_)
    )
}
