//! The input. An agent must be able to bear any of it: what is wrong is a finding of little weight where the agent's answer
//! is observed, and of full weight where it isn't.

use alloc::string::{String, ToString};

use super::super::rules::Key;
use super::super::wire::{ImageFault, Input, InputFault, NO_INPUT, judge};
use super::Watcher;
use crate::frame::Place;
use crate::json::{Object, shorten};
use crate::protocol::observer::{
    At, Dir, Label, Notes, ReadLine, Severity, Sides, Text, at_fault, at_member,
};

/// What the input must be answered with.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Lines that aren't blank.
    lines: u64,
    /// The first line that refuses the run, by its number among those that aren't blank.
    bad: Option<(u64, Place, InputFault)>,
    /// The first picture that does.
    image: Option<(Place, ImageFault)>,
    /// A line that readers may take in different ways, or that nobody read.
    unsure: bool,
    ended: bool,
}

/// What a refusal must say.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The line that is to blame; `None`: there is none.
    pub(super) place: Option<Place>,
    /// The text, without the part that names the line.
    pub(super) text: String,
    /// The least number that the line can have.
    pub(super) least: u64,
}

impl Inputs {
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    /// Whether any line was seen.
    pub(super) fn any(&self) -> bool {
        self.lines > 0
    }

    /// What the input must be refused with; `None`: it may run, or nobody knows.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        if self.unsure {
            return None;
        }
        if let Some((least, place, fault)) = &self.bad {
            return Some(Refusal {
                place: Some(*place),
                text: fault.to_string(),
                least: *least,
            });
        }
        self.image.as_ref().map(|(place, fault)| Refusal {
            place: Some(*place),
            text: fault.to_string(),
            least: 0,
        })
    }

    /// The end of the input.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The end of all. `answered`: the agent has said something.
    pub(super) fn finish(&self, answered: bool, notes: &mut Notes) {
        // An agent that runs may have its input from elsewhere.
        if self.ended && self.lines == 0 && !self.unsure && !answered {
            notes.add_for(
                Key::NoInput.rule(),
                Dir::Host,
                None,
                At::line(),
                String::from(NO_INPUT),
            );
        }
    }

    fn refuse(&mut self, place: Place, fault: InputFault) {
        if self.bad.is_none() {
            self.bad = Some((self.lines, place, fault));
        }
    }
}

impl Watcher {
    pub(super) fn host(
        &mut self,
        sides: Sides,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        // White space of any kind is nothing.
        if core::str::from_utf8(line.raw).is_ok_and(|text| text.trim().is_empty())
            && !matches!(line.text, Text::Gone { .. })
        {
            return Label::NONE;
        }
        self.inputs.lines += 1;
        match &line.text {
            Text::Whole(object) => self.input(object, line.place, sides, notes),
            Text::Despite(object, fault) => {
                let at = at_fault(fault).at_most(Severity::Info);
                notes.add(Key::BadInput.rule(), at, fault.to_string());
                // Another reader may take it for another line, or for none.
                self.inputs.blur();
                label_of(Input::of_object(object).as_ref().ok())
            }
            Text::Not(fault) => {
                let mut members = core::mem::take(&mut self.members);
                let read = Input::read(line.raw, &mut members);
                let known = read.map(|_| ());
                self.members = members;
                match known {
                    Err(found) => {
                        let at = refusable(at_fault(fault), sides);
                        notes.add(Key::BadInput.rule(), at, found.to_string());
                        self.inputs.refuse(line.place, found);
                    }
                    // Deeper than the observer reads.
                    Ok(()) => self.inputs.blur(),
                }
                Label::NONE
            }
            Text::Gone { .. } => {
                self.inputs.blur();
                Label::NONE
            }
        }
    }

    fn input(
        &mut self,
        object: &Object<'_, '_>,
        place: Place,
        sides: Sides,
        notes: &mut Notes,
    ) -> Label {
        match Input::of_object(object) {
            Ok(input) => {
                self.images(&input, object, place, sides, notes);
                label_of(Some(&input))
            }
            Err(fault) => {
                let at = match &fault {
                    InputFault::UnknownField(name) => at_member(object, name),
                    InputFault::Version => at_member(object, "schemaVersion"),
                    InputFault::Content => at_member(object, "content"),
                    InputFault::Type => at_member(object, "type"),
                    InputFault::Role => at_member(object, "role"),
                    InputFault::NotAnObject => At::line(),
                };
                let message = shorten(&fault.to_string());
                notes.add(Key::BadInput.rule(), refusable(at, sides), message);
                self.inputs.refuse(place, fault);
                Label {
                    class: "input",
                    name: "",
                }
            }
        }
    }

    fn images(
        &mut self,
        input: &Input<'_>,
        object: &Object<'_, '_>,
        place: Place,
        sides: Sides,
        notes: &mut Notes,
    ) {
        for image in input.images() {
            if let Err(fault) = judge(image, self.config.image_bound()) {
                let at = refusable(at_member(object, "images"), sides);
                notes.add(Key::Image.rule(), at, shorten(&fault.to_string()));
                if self.inputs.image.is_none() {
                    self.inputs.image = Some((place, fault));
                }
            }
        }
    }
}

fn label_of(input: Option<&Input<'_>>) -> Label {
    Label {
        class: "input",
        name: match input {
            None => "",
            Some(Input::Prompt { .. }) => "prompt",
            Some(Input::Message { .. }) => "message",
        },
    }
}

/// How bad a line is that the agent must refuse.
fn refusable(at: At, sides: Sides) -> At {
    if sides == Sides::Both {
        at.at_most(Severity::Info)
    } else {
        at
    }
}
