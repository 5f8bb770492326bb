//! Lines of the host. The agent must be able to bear any of them: what is wrong with one is a finding of little weight
//! where the agent's answer is observed, and of full weight where it isn't.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::spec::{MODES, SPEC};
use super::super::wire::{ApprovalMode, Approve, User};
use super::ledger::{May, Must};
use super::{Opening, Watcher};
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::Known;
use crate::protocol::observer::{At, Dir, Label, Notes, ReadLine, Severity, Sides, Text};
use crate::protocol::observer::{at_fault, at_field, at_member, is_depth, is_utf8};
use crate::protocol::spec::LineSpec;

/// How sure it is that the agent reads a line as we do.
#[derive(Clone, Copy)]
struct Reading {
    sides: Sides,
    place: Place,
    /// It may never be read, or be refused: nothing of it is owed.
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
            excused: self.quit.is_some() || self.host_ended || line.is_cut,
        };
        if let Some(quit) = self.quit {
            let at = At::line().with(Dir::Host, Some(quit), "the quit");
            notes.add(
                Key::AfterQuit.rule(),
                at,
                String::from("the host writes after quit; this may never be read"),
            );
        }
        match &line.text {
            Text::Whole(object) => self.command(object, reading, notes),
            Text::Despite(object, fault) => {
                reading.refusable(Key::BadCommand, at_fault(fault), fault.to_string(), notes);
                // A lax reader takes it as a command all the same.
                reading.excused = true;
                self.ledger.slack();
                let mut unheard = Notes::default();
                self.command(object, reading, &mut unheard)
            }
            Text::Not(fault) => {
                let (key, what) = if is_utf8(fault) {
                    (Key::HostNotUtf8, Must::Bytes)
                } else {
                    (Key::BadCommand, Must::Bad)
                };
                reading.refusable(key, at_fault(fault), fault.to_string(), notes);
                if is_depth(fault) {
                    reading.excused = true;
                }
                self.must(reading, what);
                Label::NONE
            }
            // Its content isn't known, its length is no fault.
            Text::Gone { limit } if line.bytes <= *limit as u64 => {
                self.ledger.slack();
                self.ledger.may(May::User, line.place, true);
                self.asks.unsure = true;
                Label::NONE
            }
            Text::Gone { limit } => {
                let message = format!("the line has {} bytes; {limit} are the limit", line.bytes);
                reading.refusable(Key::HostTooLong, At::line(), message, notes);
                self.must(reading, Must::Bytes);
                Label::NONE
            }
        }
    }

    /// A line that must be refused, if it is read at all.
    fn must(&mut self, reading: Reading, what: Must) {
        if reading.excused {
            self.ledger.slack();
        } else {
            self.ledger.must(what, reading.place);
        }
    }

    fn command(&mut self, object: &Object<'_, '_>, reading: Reading, notes: &mut Notes) -> Label {
        let cmd = match object.string("cmd") {
            Some(cmd) => cmd,
            None => {
                let message = match object.get("cmd") {
                    Some(_) => "cmd isn't a string",
                    None => "there is no cmd",
                };
                let at = at_member(object, "cmd");
                reading.refusable(Key::NoCommand, at, String::from(message), notes);
                self.must(reading, Must::Bad);
                return Label::NONE;
            }
        };
        let Some(spec) = SPEC.line(Dir::Host, &cmd) else {
            let at = at_member(object, "cmd");
            let message = String::from("the contract has no command of this name");
            reading.refusable(Key::UnknownCommand, at, message, notes);
            self.must(reading, Must::Unknown);
            return Label {
                class: "cmd",
                name: "",
            };
        };
        self.known(spec, object, reading, notes);
        Label {
            class: "cmd",
            name: spec.name,
        }
    }

    fn known(
        &mut self,
        spec: &LineSpec,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) {
        let read = match spec.name {
            "user" => object
                .decode()
                .map(|line| self.user(&line, object, reading, notes)),
            "approve" => object
                .decode()
                .map(|line| self.approve(&line, object, reading, notes)),
            "approval_mode" => object
                .decode()
                .map(|line| self.mode(&line, object, reading, notes)),
            "reload" => {
                self.reload(reading, notes);
                Ok(())
            }
            "quit" => {
                if !reading.excused {
                    self.quit = Some(reading.place);
                }
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = read {
            let at = at_field(&error);
            reading.refusable(Key::CommandFields, at, error.to_string(), notes);
            self.must(reading, Must::Bad);
        }
    }

    /// Whether a turn runs, as far as the host can know.
    fn is_busy(&self, reading: Reading) -> bool {
        reading.sides == Sides::Both && !self.lost && self.ledger.owed(false) > 0
    }

    fn user(
        &mut self,
        line: &User<'_>,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) {
        self.untouched = false;
        if self.is_busy(reading) {
            let at = At::line().with(Dir::Agent, self.turn.first, "the first line of the turn");
            notes.add(
                Key::UserBusy.rule(),
                at,
                String::from("a user command before the done of the one before"),
            );
        }
        if line.text.trim().is_empty() {
            notes.add(
                Key::BlankPrompt.rule(),
                at_member(object, "text"),
                String::from("the text is empty"),
            );
        }
        self.ledger.may(May::User, reading.place, reading.excused);
    }

    fn approve(
        &mut self,
        line: &Approve<'_>,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) {
        let quit = self.quit.is_some();
        let known = self
            .asks
            .answered(&line.approval_id, line.approved, reading.place, quit);
        match known {
            None => self.ledger.approve(),
            Some(Known::Unknown) => self.ledger.slack(),
            Some(known) => {
                if reading.sides == Sides::Both {
                    let message = match known {
                        Known::Closed => "this approval is settled",
                        Known::Open | Known::Never | Known::Unknown => {
                            "this approval was never asked for"
                        }
                    };
                    notes.add(
                        Key::ApproveUnknown.rule(),
                        at_member(object, "approval_id"),
                        String::from(message),
                    );
                }
                self.must(reading, Must::Approve);
            }
        }
    }

    fn mode(
        &mut self,
        line: &ApprovalMode<'_>,
        object: &Object<'_, '_>,
        reading: Reading,
        notes: &mut Notes,
    ) {
        let word = line.mode.trim();
        match MODES.iter().position(|mode| *mode == word) {
            Some(index) => {
                if word != line.mode {
                    notes.add(
                        Key::UnknownMode.rule(),
                        at_member(object, "mode").at_most(Severity::Info),
                        String::from("white space stands around the mode; it may be borne or not"),
                    );
                }
                self.ledger
                    .may(May::Mode(index), reading.place, reading.excused);
            }
            None => {
                let at = at_member(object, "mode");
                let message = String::from("the mode is none of auto, ask and readonly");
                reading.refusable(Key::UnknownMode, at, message, notes);
                self.must(reading, Must::Mode);
            }
        }
    }

    fn reload(&mut self, reading: Reading, notes: &mut Notes) {
        if self.is_busy(reading) && self.opening != Opening::Silent {
            let at = At::line().with(Dir::Agent, self.turn.first, "the first line of the turn");
            notes.add(
                Key::ReloadBusy.rule(),
                at,
                String::from("a reload before the done of the running turn"),
            );
        }
        self.ledger.may(May::Reload, reading.place, reading.excused);
    }
}
