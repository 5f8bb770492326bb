//! Lines of the host. The agent must be able to bear any of them: what is wrong with one is a finding of little weight
//! where the agent's answer is observed, and of full weight where it isn't.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::codec;
use super::super::rules::Key;
use super::super::wire::{
    Any, Command, HOST_RULES, HostFault, HostLine, InterruptMode, Num, QueueMode, Streaming, Tag,
    host_text,
};
use super::Watcher;
use super::ledger::{Asked, Order, Waiting, key, name_key, order};
use crate::frame::Place;
use crate::json::{self, JsonFault, JsonFaultKind, Kind, Object, Raw};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_field, at_member,
};

/// A line in hand.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) sides: Sides,
    place: Place,
    /// Which line of the host it is.
    number: u64,
    /// It may never be read: nothing of it is owed.
    excused: bool,
    /// The agent can't make sense of it.
    broken: bool,
}

impl Reading {
    /// A finding about a line that the agent must refuse.
    fn refusable(self, key: Key, at: At, message: String, notes: &mut Notes) {
        let at = if self.sides.has(Dir::Agent) {
            at.at_most(Severity::Info)
        } else {
            at
        };
        notes.add(key.rule(), at, message);
    }
}

impl Watcher {
    pub(super) fn host(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        self.host_lines += 1;
        let reading = Reading {
            sides,
            place: line.place,
            number: self.host_lines,
            excused: self.host_ended || line.is_cut,
            broken: false,
        };
        match &line.text {
            Text::Whole(object) => self.command_line(object, reading, notes),
            Text::Despite(object, fault) => {
                // The agent reads it all the same, so a stricter reader's fault is no more than worth knowing.
                let at = at_fault(fault).at_most(Severity::Info);
                notes.add(Key::NotACommand.rule(), at, fault.to_string());
                self.command_line(object, reading, notes)
            }
            Text::Not(fault) => self.as_the_agent_reads(line.raw, fault, reading, notes),
            Text::Gone { .. } => {
                self.ledger.blur();
                self.asks.blur();
                Label::NONE
            }
        }
    }

    /// A line that isn't a strict object: the agent takes a byte order mark and white space away, replaces bytes that
    /// aren't UTF-8, and answers what it can't read even so.
    fn as_the_agent_reads(
        &mut self,
        raw: &[u8],
        fault: &JsonFault,
        reading: Reading,
        notes: &mut Notes,
    ) -> Label {
        let text = host_text(raw);
        let mut members = core::mem::take(&mut self.members);
        let read = json::scan(&text, &HOST_RULES, &mut members);
        let at = at_fault(fault);
        let why = fault.to_string();
        let label = match read {
            Ok(object) => {
                notes.add(Key::NotACommand.rule(), at.at_most(Severity::Info), why);
                // The places of findings are those of another text.
                let mut inner = Notes::default();
                let label = self.command_line(&object, reading, &mut inner);
                notes.adopt(inner);
                label
            }
            Err(_) if text.is_empty() => {
                notes.add(Key::NotACommand.rule(), at.at_most(Severity::Info), why);
                Label::NONE
            }
            Err(fault) => {
                reading.refusable(Key::NotACommand, at, why, notes);
                match fault.kind {
                    // What the agent's own limit is, nobody says.
                    JsonFaultKind::TooDeep { .. } => {
                        self.ledger.blur();
                        self.asks.blur();
                    }
                    JsonFaultKind::NotAnObject if is_a_value(&text) => {
                        self.ask(0, &Tag::Absent, Asked::Other, Order::Free, reading);
                    }
                    JsonFaultKind::NotAnObject
                    | JsonFaultKind::NotUtf8 { .. }
                    | JsonFaultKind::Blank
                    | JsonFaultKind::Syntax { .. }
                    | JsonFaultKind::LoneSurrogate
                    | JsonFaultKind::Duplicate { .. } => {
                        self.ask(0, &Tag::from("parse"), Asked::Other, Order::Free, reading);
                    }
                }
                Label::NONE
            }
        };
        self.members = members;
        label
    }

    fn ask(&mut self, id: u64, name: &Tag<'_>, asked: Asked, order: Order, reading: Reading) {
        let waiting = Waiting {
            place: reading.place,
            name: name_key(name),
            asked,
            excused: reading.excused,
            broken: reading.broken,
            order,
            number: reading.number,
        };
        self.ledger.ask(id, waiting);
    }

    fn command_line(
        &mut self,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) -> Label {
        match HostLine::of_object(object) {
            Ok(HostLine::Command { id, command }) => {
                self.id(id, object, notes);
                let name = command.tag().unwrap_or_default();
                let asked = self.command(&command, object, reading, notes);
                self.ask(key(id), &Tag::from(name), asked, order(&command), reading);
                Label {
                    class: "command",
                    name,
                }
            }
            Ok(HostLine::Side(side)) => {
                let name = side.tag().unwrap_or_default();
                self.asks
                    .answered(&side, reading.number, object, reading.sides, notes);
                Label {
                    class: "answer",
                    name,
                }
            }
            Ok(HostLine::Unknown { id, kind, .. }) => {
                let message = match &kind {
                    Tag::Absent => String::from("there is no type"),
                    Tag::Name(_) => {
                        String::from("the contract has no command of this type and shape")
                    }
                    Tag::Other(_) => String::from("type isn't a string"),
                };
                let at = at_member(object, "type");
                reading.refusable(Key::UnknownCommand, at, message, notes);
                let broken = Reading {
                    broken: true,
                    ..reading
                };
                self.ask(key(id), &kind, Asked::Other, Order::Free, broken);
                Label {
                    class: "command",
                    name: "",
                }
            }
            Ok(HostLine::Other(_)) | Err(HostFault::Json(_) | HostFault::Null) => Label::NONE,
            Err(HostFault::Fields { id, command, error }) => {
                self.id(id, object, notes);
                let at = at_field(&error);
                reading.refusable(Key::CommandFields, at, error.to_string(), notes);
                self.ask(
                    key(id),
                    &Tag::from(&*command),
                    Asked::Other,
                    Order::Free,
                    Reading {
                        broken: true,
                        ..reading
                    },
                );
                let known = Command::TAGS.iter().find(|tag| **tag == command);
                Label {
                    class: "command",
                    name: known.copied().unwrap_or_default(),
                }
            }
        }
    }

    /// Whether the id can do its work.
    fn id(&self, id: Any<'_>, object: &Object<'_, '_>, notes: &mut Notes) {
        let Some(value) = id.get() else { return };
        let message = if value.kind() != Kind::String {
            "the id isn't a string"
        } else if self.ledger.has(key(id)) {
            "a command of this id waits for its response"
        } else {
            return;
        };
        notes.add(
            Key::IdOfItsOwn.rule(),
            at_member(object, "id"),
            String::from(message),
        );
    }

    fn command(
        &mut self,
        command: &Command<'_>,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) -> Asked {
        let mut word = |member: &str, found: &str, known: &[&str], key: Key| {
            if !known.contains(&found) {
                let at = at_member(object, member);
                let message = format!("{member} is none of {}", known.join(", "));
                reading.refusable(key, at, message, notes);
            }
        };
        if let Command::SetSteeringMode(set) = command {
            word("mode", set.mode.as_str(), QueueMode::WORDS, Key::ModeWord);
        } else if let Command::SetFollowUpMode(set) = command {
            word("mode", set.mode.as_str(), QueueMode::WORDS, Key::ModeWord);
        } else if let Command::SetInterruptMode(set) = command {
            word(
                "mode",
                set.mode.as_str(),
                InterruptMode::WORDS,
                Key::ModeWord,
            );
        } else if let Command::NegotiateProtocol(negotiate) = command {
            return Asked::Version(codec::negotiate(negotiate).is_ok());
        } else if let Command::GetMessagesPage(page) = command {
            return Asked::Page(match page.limit.get() {
                None => Some(100),
                Some(limit) => whole(limit).filter(|limit| (1..=256).contains(limit)),
            });
        } else if let Command::AbortAndPrompt(_) = command {
            return Asked::Prompt;
        } else if let Command::Prompt(prompt) = command {
            match &prompt.streaming_behavior {
                Some(behaviour) => {
                    let word_of = behaviour.as_str();
                    word(
                        "streamingBehavior",
                        word_of,
                        Streaming::WORDS,
                        Key::Behaviour,
                    );
                }
                None if reading.sides == Sides::Both && self.run.is_open() => {
                    notes.add(
                        Key::PromptBusy.rule(),
                        At::line(),
                        String::from("a prompt without streamingBehavior while a run is open"),
                    );
                }
                None => {}
            }
            return Asked::Prompt;
        }
        Asked::Other
    }
}

/// Whether this is JSON, and not `null`: that is answered as what isn't JSON, other values as a command without a name.
fn is_a_value(text: &[u8]) -> bool {
    json::scan_value(text, &HOST_RULES).is_ok_and(|value| !value.is_null())
}

fn whole(value: Raw<'_>) -> Option<u64> {
    value.decode::<Num<'_>>().ok()?.u64()
}
