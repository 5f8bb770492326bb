//! Lines of the agent.

use alloc::string::{String, ToString};

use super::super::import::check_manifest;
use super::super::policy::{Extensions, PartialForm};
use super::super::rules::Key;
use super::super::wire::{
    AgentLine, Block, Content, Init, Kept, OPEN_RULES, Record, Said, System, User,
};
use super::super::{MAX_LINE, SPEC};
use super::operations::{efforts, is_key_source};
use super::{Here, Watcher};
use crate::frame::Place;
use crate::json::{self, JsonFault, JsonFaultKind, Object};
use crate::protocol::WireFault;
use crate::protocol::observer::{
    At, Dir, Known, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_field, at_member,
    hash, span,
};

/// From so many bytes on hosts of claude read a line no more.
const LONG: u64 = 1 << 20;
/// The longest id of a session that is kept.
const LONGEST_ID: usize = 512;

impl Watcher {
    /// A finding about the text of a line. `most`: how bad it can be.
    pub(super) fn text_fault(&self, fault: &JsonFault, most: Severity, notes: &mut Notes) {
        let (key, severity) = match &fault.kind {
            JsonFaultKind::Duplicate { .. } => (Key::Duplicate, self.most()),
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

    pub(super) fn agent(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        self.length(line.bytes, notes);
        if let Some(at) = separator(line.raw) {
            let mut place = At::line();
            place.span = at..at + 3;
            let message = String::from("it stands here as it is");
            notes.add(Key::Separators.rule(), place, message);
        }
        let most = if line.is_cut {
            Severity::Warning
        } else {
            Severity::Error
        };
        match &line.text {
            Text::Whole(object) => self.object(sides, line.place, object, notes),
            Text::Despite(object, fault) => {
                self.text_fault(fault, most, notes);
                self.object(sides, line.place, object, notes)
            }
            Text::Not(fault) => {
                self.text_fault(fault, most, notes);
                self.deep(sides, line, fault, notes)
            }
            Text::Gone { .. } => {
                self.blur_agent();
                Label::NONE
            }
        }
    }

    fn length(&self, bytes: u64, notes: &mut Notes) {
        let (limit, most) = match self.policy.max_line() {
            Some(_) => (MAX_LINE as u64, Severity::Error),
            None => (LONG, Severity::Info),
        };
        if bytes > limit {
            let message = alloc::format!("the line has {bytes} bytes");
            notes.add(Key::TooLong.rule(), At::line().at_most(most), message);
        }
    }

    /// A line that isn't a strict object: inputs and results of tools may nest deep.
    fn deep(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        fault: &JsonFault,
        notes: &mut Notes,
    ) -> Label {
        let mut members = core::mem::take(&mut self.members);
        let deep = matches!(fault.kind, JsonFaultKind::TooDeep { .. });
        let read = deep.then(|| json::scan(line.raw, &OPEN_RULES, &mut members));
        let label = if let Some(Ok(object)) = read {
            self.object(sides, line.place, &object, notes)
        } else {
            self.blur_agent();
            Label::NONE
        };
        self.members = members;
        label
    }

    fn object(
        &mut self,
        sides: Sides,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        let read = AgentLine::of_object(object);
        let is_init = matches!(read, Ok(AgentLine::System(System::Init(_))));
        if !self.opened && !is_init && !self.each_turn_init() {
            let message = String::from("the agent's first line isn't system/init");
            notes.add(Key::FirstIsInit.rule(), At::line(), message);
        }
        let is_first = !core::mem::replace(&mut self.opened, true);
        if is_first && matches!(read, Ok(AgentLine::Record(Record::Result(_)))) {
            // A program that was asked for its result alone says nothing else.
            self.turn.blur();
        }
        let here = Here {
            sides,
            place,
            object,
        };
        let line = match read {
            Ok(line) => line,
            Err(fault) => {
                self.unreadable(&fault, object, notes);
                return Label::NONE;
            }
        };
        self.ids(&line, here, notes);
        if !self.is_claude() {
            members(&line, object, notes);
        }
        if !matches!(
            line,
            AgentLine::Cancel(_) | AgentLine::Request(_) | AgentLine::Response(_)
        ) {
            self.asks.other_line();
        }
        self.line_of(&line, here, notes)
    }

    fn unreadable(&mut self, fault: &WireFault, object: &Object<'_, '_>, notes: &mut Notes) {
        let (at, message) = match fault {
            WireFault::Fields(error) => (at_field(error), error.to_string()),
            WireFault::NoTag(_) => (At::line(), String::from("there is no type")),
            WireFault::TagKind { .. } | WireFault::Json(_) => (
                at_member(object, "type"),
                String::from("type isn't a string"),
            ),
        };
        notes.add(Key::Fields.rule(), at, message);
        self.blur_agent();
    }

    /// The ids that nearly every record has.
    fn ids(&mut self, line: &AgentLine<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let is_record = matches!(line, AgentLine::Record(_) | AgentLine::System(_));
        if !is_record {
            return;
        }
        let most = self.most();
        if let Some(session) = here.object.string("session_id") {
            match &self.session {
                Some(known) if *known != *session => {
                    let at = at_member(here.object, "session_id").at_most(most);
                    let message = String::from("records before are of another session");
                    notes.add(Key::SessionId.rule(), at, message);
                }
                Some(_) => {}
                None if session.len() <= LONGEST_ID => self.session = Some(session.into_owned()),
                None => {}
            }
        }
        let is_replay =
            matches!(line, AgentLine::Record(Record::User(user)) if user.is_replay == Some(true));
        if let Some(uuid) = here.object.string("uuid")
            && !is_replay
        {
            let id = hash(&uuid);
            if self.uuids.known(id) == Known::Closed {
                let at = at_member(here.object, "uuid").at_most(most);
                let message = String::from("a record before has this id");
                notes.add(Key::RecordId.rule(), at, message);
            }
            self.uuids.close(id);
        }
    }

    fn line_of(
        &mut self,
        line: &AgentLine<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) -> Label {
        match line {
            AgentLine::Record(record) => {
                self.record(record, here, notes);
                let class = if of_a_turn(record) { "event" } else { "news" };
                Label {
                    class,
                    name: record.tag().unwrap_or_default(),
                }
            }
            AgentLine::System(system) => {
                self.system(system, here, notes);
                Label {
                    class: "system",
                    name: system.tag().unwrap_or_default(),
                }
            }
            AgentLine::Request(request) => Label {
                class: "request",
                name: self.agent_asks(request, here, notes),
            },
            AgentLine::Response(response) => {
                let name = self.agent_answers(response.known(), here, notes);
                self.asks.other_line();
                Label {
                    class: "answer",
                    name,
                }
            }
            AgentLine::Cancel(cancel) => {
                self.agent_withdraws(cancel, here, notes);
                Label {
                    class: "",
                    name: "control_cancel_request",
                }
            }
            AgentLine::Unknown { .. } => {
                let message = String::from("the contract has no record of this type");
                let at = at_member(here.object, "type");
                notes.add(Key::UnknownType.rule(), at, message);
                Label::NONE
            }
        }
    }

    /// A record that belongs to a turn.
    fn in_turn(&mut self, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let (each, most) = (self.each_turn_init(), self.most());
        self.turn.record(each, here.place, most, notes);
    }

    fn record(&mut self, record: &Record<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        match record {
            Record::User(user) if user.is_replay == Some(true) => {
                self.private(user, here, notes);
                self.replayed(user, here, notes);
            }
            Record::User(user) => {
                self.in_turn(here, notes);
                self.user(user, here, notes);
            }
            Record::Assistant(assistant) => {
                self.in_turn(here, notes);
                let nested = assistant.parent_tool_use_id.value().is_some();
                if !nested {
                    self.stream.reply(&assistant.message, notes);
                }
                for block in &assistant.message.content {
                    if let Kept::Known(Block::ToolUse(call)) = block {
                        let made = (&*assistant.message.id, nested);
                        self.called(call, made, here, notes);
                    }
                }
            }
            Record::Result(result) => self.result(result, here, notes),
            Record::Stream(line) => {
                self.in_turn(here, notes);
                let own = line.parent_tool_use_id.value().is_none();
                if let Kept::Known(event) = &line.event
                    && own
                    && self.policy.partial_form == PartialForm::Provider
                {
                    self.stream.event(event, notes);
                }
            }
            Record::ToolProgress(_) => self.in_turn(here, notes),
            Record::CommandLifecycle(line) => self.lifecycle(line, notes),
            Record::ImportResult(result) => self.import_result(result, here, notes),
            Record::ImportRejected(rejected) => self.import_rejected(rejected, here, notes),
            Record::AuthStatus(_)
            | Record::RateLimit(_)
            | Record::ToolUseSummary(_)
            | Record::PromptSuggestion(_)
            | Record::StreamlinedText(_)
            | Record::StreamlinedToolUseSummary(_)
            | Record::KeepAlive(_)
            | Record::Unknown(_) => {}
        }
    }

    /// What tools gave, or a mark of the agent's own.
    fn user(&mut self, user: &User<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let nested = user.parent_tool_use_id.value().is_some();
        if !nested {
            self.turn.user_records += 1;
        }
        let Some(Kept::Known(said)) = &user.message else {
            let message = String::from("there is no message, or one that can't be read");
            let at = at_member(here.object, "message");
            notes.add(Key::Fields.rule(), at, message);
            return;
        };
        let Said::Message(message) = said else { return };
        let Content::Blocks(blocks) = &message.content else {
            return;
        };
        for block in blocks {
            if let Kept::Known(Block::ToolResult(result)) = block {
                self.call_result(result, nested, here, notes);
            }
        }
    }

    /// Of what a person has attached only the manifest is said again (WIRE-022).
    fn private(&self, user: &User<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        if self.is_claude() {
            return;
        }
        let Some(Kept::Known(Said::Message(message))) = &user.message else {
            return;
        };
        let Content::Blocks(blocks) = &message.content else {
            return;
        };
        for block in blocks {
            let message = match block {
                Kept::Known(Block::Image(_) | Block::Document(_)) => {
                    String::from("the bytes of an attachment are written")
                }
                Kept::Known(Block::Attachment(manifest)) => match check_manifest(manifest) {
                    Ok(()) if manifest.rest.0.is_empty() => continue,
                    Ok(()) => String::from("a manifest has a member too many"),
                    Err(fault) => fault.to_string(),
                },
                Kept::Known(_) | Kept::Other(_) => continue,
            };
            let at = at_member(here.object, "message");
            notes.add(Key::Privacy.rule(), at, message);
        }
    }

    fn system(&mut self, system: &System<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let (each, most) = (self.each_turn_init(), self.most());
        match system {
            System::Init(init) => {
                self.turn.init(each, here.place, notes);
                self.init_form(init, here, notes);
            }
            System::SessionStateChanged(changed) => {
                let asked = self.asks.permission().map(|ask| ask.place);
                let judged = here.sides == Sides::Both && !self.is_closed();
                let asked = asked.filter(|_| judged);
                self.turn
                    .state(&changed.state, here.place, asked, most, notes);
            }
            System::Status(status) => {
                let status = status.status.0.as_deref();
                if status == Some("compacting") {
                    // A reply that found the context full is void.
                    self.calls.retried();
                }
                self.turn.status(status);
            }
            System::LocalCommandOutput(_) => self.turn.command(),
            System::ApiRetry(_) => {
                self.stream.reset();
                self.calls.retried();
            }
            System::TaskStarted(_) => self.turn.task(true),
            System::TaskNotification(_) => self.turn.task(false),
            System::Unknown(_) => {
                let message = String::from("the contract has no record of this subtype");
                let at = at_member(here.object, "subtype");
                notes.add(Key::UnknownType.rule(), at, message);
            }
            System::CompactBoundary(_) => {
                // What claude says around a boundary isn't recorded.
                let most = if self.is_claude() {
                    Severity::Info
                } else {
                    most
                };
                self.turn.boundary(most, notes);
            }
            System::PostTurnSummary(_)
            | System::HookStarted(_)
            | System::HookProgress(_)
            | System::HookResponse(_)
            | System::FilesPersisted(_)
            | System::TaskProgress(_)
            | System::ElicitationComplete(_)
            | System::PermissionDenied(_)
            | System::BackgroundTasksChanged(_)
            | System::Informational(_)
            | System::Notification(_)
            | System::ThinkingTokens(_) => {}
        }
    }

    fn init_form(&mut self, init: &Init<'_>, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let mut odd = |member: &str, most: Severity, message: &str| {
            let at = at_member(here.object, member).at_most(most);
            notes.add(Key::InitForm.rule(), at, String::from(message));
        };
        if self.each_turn_init() {
            let version = init.claude_code_version.as_deref();
            if !version.is_some_and(|version| version.contains('.')) {
                let message = "claude_code_version isn't there, or has no dots";
                odd("claude_code_version", Severity::Warning, message);
            }
        } else if init.agentx_version.is_none() {
            odd("", Severity::Error, "agentx_version isn't there");
        }
        if self.policy.attachments_providers_prompt_uuid == Extensions::Present {
            self.prompts.is_of(init.provider.as_deref());
            match &init.reasoning_capabilities {
                _ if init.provider.is_none() => odd("", Severity::Error, "provider isn't there"),
                _ if init.provider_type.is_none() => {
                    odd("", Severity::Error, "provider_type isn't there");
                }
                None => odd("", Severity::Error, "reasoning_capabilities isn't there"),
                Some(reasoning) => {
                    if let Some(message) = efforts(reasoning) {
                        odd("reasoning_capabilities", Severity::Error, message);
                    }
                }
            }
        }
        if !self.is_claude() && !is_key_source(&init.api_key_source) {
            let message = String::from("it is neither user nor temporary");
            let at = at_member(here.object, "apiKeySource");
            notes.add(Key::ApiKeySource.rule(), at, message);
        }
    }
}

/// Members that the contract doesn't give a record.
fn members(line: &AgentLine<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
    let name = match line {
        AgentLine::Record(record) => record.tag(),
        AgentLine::System(system) => system.tag(),
        AgentLine::Request(_) => Some("control_request"),
        AgentLine::Response(_) => Some("control_response"),
        AgentLine::Cancel(_) => Some("control_cancel_request"),
        AgentLine::Unknown { .. } => None,
    };
    let Some(spec) = name.and_then(|name| SPEC.line(Dir::Agent, name)) else {
        return;
    };
    for (name, value) in object.iter() {
        let mut fields = spec.shared.iter().chain(spec.fields);
        if name == spec.tag || name == "type" || fields.any(|field| field.name == name) {
            continue;
        }
        let at = At::member(name, span(object.line(), value));
        let message = String::from("the record has no such member");
        notes.add(Key::Members.rule(), at, message);
    }
}

/// Whether only a turn has such a record.
fn of_a_turn(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::User(_)
            | Record::Assistant(_)
            | Record::Result(_)
            | Record::Stream(_)
            | Record::ToolProgress(_)
    )
}

/// Where one of the two separators stands.
fn separator(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = memchr::memchr(0xE2, line.get(from..)?) {
        from += found;
        if let Some([0xE2, 0x80, 0xA8 | 0xA9]) = line.get(from..from + 3) {
            return Some(from);
        }
        from += 1;
    }
    None
}
