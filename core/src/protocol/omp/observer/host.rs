//! Lines of the host. The agent must be able to bear any of them: what is wrong with one is a finding of little weight
//! where the agent's answer is observed, and of full weight where it isn't.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::codec;
use super::super::rules::Key;
use super::super::wire::{
    Command, HostFault, HostLine, InterruptMode, Num, QueueMode, Streaming, Tag,
};
use super::Watcher;
use super::ledger::{Asked, Order, key, name_key, order};
use crate::frame::Place;
use crate::json::{JsonFaultKind, Kind, Object, Raw};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_field, at_member, is_utf8,
};

/// A line in hand.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) sides: Sides,
    place: Place,
    /// It may never be read, or be read in another way: nothing of it is owed.
    excused: bool,
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
        let mut reading = Reading {
            sides,
            place: line.place,
            excused: self.host_ended || line.is_cut,
        };
        match &line.text {
            Text::Whole(object) => self.command_line(object, reading, notes),
            Text::Despite(object, fault) => {
                // The agent reads it all the same, so a stricter reader's fault is no more than worth knowing.
                let at = at_fault(fault).at_most(Severity::Info);
                notes.add(Key::NotACommand.rule(), at, fault.to_string());
                reading.excused = true;
                self.ledger.blur();
                self.command_line(object, reading, notes)
            }
            Text::Not(fault) if is_utf8(fault) || fault.at == 0 && is_mark(&fault.kind) => {
                let at = at_fault(fault).at_most(Severity::Info);
                notes.add(Key::NotACommand.rule(), at, fault.to_string());
                self.ledger.blur();
                self.asks.blur();
                Label::NONE
            }
            Text::Not(fault) => {
                reading.refusable(Key::NotACommand, at_fault(fault), fault.to_string(), notes);
                // `null` is answered as what isn't JSON, other values as a command without a name.
                let unclear = matches!(
                    fault.kind,
                    JsonFaultKind::TooDeep { .. } | JsonFaultKind::NotAnObject
                );
                if unclear {
                    self.ledger.blur();
                } else {
                    self.ask(0, &Tag::from("parse"), Asked::Other, Order::Free, reading);
                }
                Label::NONE
            }
            Text::Gone { .. } => {
                self.ledger.blur();
                self.asks.blur();
                Label::NONE
            }
        }
    }

    fn ask(&mut self, id: u64, name: &Tag<'_>, asked: Asked, order: Order, reading: Reading) {
        let excused = reading.excused;
        self.ledger
            .ask(id, name_key(name), asked, order, reading.place, excused);
    }

    fn command_line(
        &mut self,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) -> Label {
        match HostLine::of_object(object) {
            Ok(HostLine::Command { id, command }) => {
                self.id(object, notes);
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
                self.asks.answered(&side, object, reading.sides, notes);
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
                self.ask(key(id), &kind, Asked::Other, Order::Free, reading);
                Label {
                    class: "command",
                    name: "",
                }
            }
            Ok(HostLine::Other(_)) | Err(HostFault::Json(_) | HostFault::Null) => Label::NONE,
            Err(HostFault::Fields { id, command, error }) => {
                self.id(object, notes);
                let at = at_field(&error);
                reading.refusable(Key::CommandFields, at, error.to_string(), notes);
                self.ask(
                    key(id),
                    &Tag::from(&*command),
                    Asked::Other,
                    Order::Free,
                    reading,
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
    fn id(&self, object: &Object<'_, '_>, notes: &mut Notes) {
        let Some(id) = object.get("id") else { return };
        let message = if id.kind() != Kind::String {
            "the id isn't a string"
        } else if self.ledger.has(key(id.into())) {
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

/// Whether a byte order mark may be what is wrong.
fn is_mark(kind: &JsonFaultKind) -> bool {
    matches!(
        kind,
        JsonFaultKind::Syntax {
            found: crate::json::Found::Char('\u{feff}'),
            ..
        }
    )
}

fn whole(value: Raw<'_>) -> Option<u64> {
    value.decode::<Num<'_>>().ok()?.u64()
}
