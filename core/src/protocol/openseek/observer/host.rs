//! Lines of the host. The engine must be able to bear any of them: what is wrong with one is a finding of little weight
//! where the engine's answer is observed, and of full weight where it isn't.

use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::wire::{BLANK_GOAL, Command, CommandFault, Unread};
use super::{Here, Watcher};
use crate::frame::Place;
use crate::json::{JsonFault, Object};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_member,
};

impl Watcher {
    pub(super) fn host(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        self.commanded = true;
        let excused = self.broken.is_some() || self.host_ended || line.is_cut;
        if let Some(broken) = self.broken {
            let at = At::line().with(Dir::Host, Some(broken), "the line that isn't JSON");
            let message = String::from("the engine reads no more commands");
            notes.add(Key::AfterBroken.rule(), at, message);
        }
        let place = line.place;
        match &line.text {
            Text::Whole(object) => {
                let here = Here {
                    sides,
                    place,
                    object,
                };
                let read = Command::of_object(object, self.shapes);
                self.commanded(read, here, excused, notes)
            }
            Text::Despite(object, fault) => {
                let at = at_fault(fault).at_most(Severity::Info);
                notes.add(Key::BadCommand.rule(), at, fault.to_string());
                // Another reader may take it for another command, or for none.
                self.deafen();
                let here = Here {
                    sides,
                    place,
                    object,
                };
                let read = Command::of_object(object, self.shapes);
                self.commanded(read, here, true, notes)
            }
            Text::Not(fault) => {
                let mut members = core::mem::take(&mut self.members);
                let read = Command::read(line.raw, self.shapes, &mut members);
                self.members = members;
                match read {
                    Err(Unread::NotACommand(fault)) => {
                        self.refused(&fault, At::line(), sides, place, excused, notes);
                    }
                    Err(unread @ Unread::NotJson(_)) => {
                        self.breaks(&unread, fault, sides, place, excused, notes);
                    }
                    // Deeper than the observer reads.
                    Ok(_) => self.deafen(),
                }
                Label::NONE
            }
            Text::Gone { .. } => {
                self.deafen();
                Label::NONE
            }
        }
    }

    /// A line that isn't JSON.
    fn breaks(
        &mut self,
        unread: &Unread,
        fault: &JsonFault,
        sides: Sides,
        place: Place,
        excused: bool,
        notes: &mut Notes,
    ) {
        let at = refusable(at_fault(fault), sides);
        notes.add(Key::NotJson.rule(), at, fault.to_string());
        self.errors.must(&unread.to_string(), place, excused);
        self.broken.get_or_insert(place);
    }

    /// JSON that is no command.
    fn refused(
        &mut self,
        fault: &CommandFault,
        at: At,
        sides: Sides,
        place: Place,
        excused: bool,
        notes: &mut Notes,
    ) {
        let key = match fault {
            CommandFault::UnknownSteerKind(_) => Key::NoticeSteer,
            CommandFault::Text
            | CommandFault::SubmissionId
            | CommandFault::SteerKind
            | CommandFault::Job
            | CommandFault::Goal
            | CommandFault::Allow
            | CommandFault::Id
            | CommandFault::Unknown(_)
            | CommandFault::NoCommand
            | CommandFault::Content(_) => Key::BadCommand,
        };
        let text = fault.to_string();
        notes.add(
            key.rule(),
            refusable(at, sides),
            crate::json::shorten(&text),
        );
        self.errors.must(&text, place, excused);
    }

    fn commanded(
        &mut self,
        read: Result<Command<'_>, CommandFault>,
        here: Here<'_, '_, '_>,
        excused: bool,
        notes: &mut Notes,
    ) -> Label {
        let label = |name| Label { class: "cmd", name };
        match read {
            Ok(command) => {
                self.command(&command, here, excused, notes);
                label(command.name())
            }
            Err(fault) => {
                let at = at_of(&fault, here.object);
                self.refused(&fault, at, here.sides, here.place, excused, notes);
                if fault == CommandFault::NoCommand {
                    Label::NONE
                } else {
                    label("")
                }
            }
        }
    }

    fn command(
        &mut self,
        command: &Command<'_>,
        here: Here<'_, '_, '_>,
        excused: bool,
        notes: &mut Notes,
    ) {
        let place = here.place;
        match command {
            Command::Prompt { .. } => self.turn.prompt(place, excused),
            Command::Steer { kind, content, .. } => {
                self.steers.sent(*kind, content, place, excused);
            }
            Command::Compact => {}
            Command::Cancel => self.turn.cancel(),
            Command::JobsSnapshot { request_id } => {
                self.jobs
                    .snapshot_wanted(request_id.as_str(), place, excused);
            }
            Command::JobStop {
                request_id,
                generation,
                job_id,
            } => self.jobs.stop_wanted(
                request_id.as_str(),
                generation.as_str(),
                job_id.as_str(),
                place,
                excused,
            ),
            Command::GoalSet { text, .. } if text.trim().is_empty() => {
                let message = String::from("the goal is blank");
                let at = at_member(here.object, "text");
                notes.add(Key::BlankGoal.rule(), at, message);
                self.errors.must(BLANK_GOAL, place, excused);
            }
            Command::GoalSet { auto, .. } => {
                self.errors.may();
                if *auto {
                    self.goals.arm();
                }
            }
            Command::GoalClear => self.errors.may(),
            Command::Approval { id, allow } => self.asks.answered(id, *allow, here, notes),
        }
    }
}

/// A finding about a line that the engine must refuse.
fn refusable(at: At, sides: Sides) -> At {
    if sides.has(Dir::Agent) {
        at.at_most(Severity::Info)
    } else {
        at
    }
}

/// The member that is wrong.
fn at_of(fault: &CommandFault, object: &Object<'_, '_>) -> At {
    let name = match fault {
        CommandFault::Text => "text",
        CommandFault::SubmissionId => "submission_id",
        CommandFault::UnknownSteerKind(_) | CommandFault::SteerKind => "kind",
        CommandFault::Goal => "action",
        CommandFault::Allow => "allow",
        CommandFault::Id => "id",
        CommandFault::Unknown(_) | CommandFault::NoCommand => "command",
        CommandFault::Content(_) => "content",
        CommandFault::Job => return At::line(),
    };
    at_member(object, name)
}
