//! Who is owed a `command_error`. Nothing says which line an error answers, but its text does.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{BLANK_GOAL, COMMAND_STREAM};
use super::pinned;
use crate::frame::Place;
use crate::json::{Object, shorten};
use crate::protocol::observer::{At, Dir, Notes, Severity, at_member, hash};

/// The most lines that are remembered.
const MOST: usize = 4_096;

/// A line that must get an error.
#[derive(Debug)]
struct Owed {
    place: Place,
    text: u64,
    shown: String,
    key: Key,
}

#[derive(Debug, Default)]
pub(super) struct Errors {
    owed: VecDeque<Owed>,
    /// Lines that may get any, or none.
    slack: u64,
    /// Goals: an engine may refuse them in its own words.
    goals: u64,
    /// The error that ended the reading.
    stream: Option<Place>,
}

impl Errors {
    /// A line that is no command, or a goal that is refused. `excused`: it may never be read.
    pub(super) fn must(&mut self, text: &str, place: Place, excused: bool) {
        if excused || self.owed.len() >= MOST {
            self.slack += 1;
            return;
        }
        let key = if text == BLANK_GOAL {
            Key::BlankGoalRefused
        } else {
            Key::BadAnswered
        };
        // The reason behind these words is the reader's own.
        let text = if text.starts_with(COMMAND_STREAM) {
            COMMAND_STREAM
        } else {
            text
        };
        self.owed.push_back(Owed {
            place,
            text: hash(text),
            shown: shorten(text),
            key,
        });
    }

    /// A goal.
    pub(super) fn may(&mut self) {
        self.goals += 1;
    }

    /// A line of the host that nobody could read for certain.
    pub(super) fn unheard(&mut self) {
        self.slack = u64::MAX / 2;
    }

    /// An error. `both`: the host's lines are known.
    pub(super) fn error(
        &mut self,
        text: &str,
        place: Place,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let is_stream = text.starts_with(COMMAND_STREAM);
        if is_stream {
            if let Some(first) = self.stream {
                let at = at_member(object, "error").with(Dir::Agent, Some(first), "the first one");
                let message = String::from("the reading of commands ended before");
                notes.add(Key::StreamOnce.rule(), at, message);
                return;
            }
            self.stream = Some(place);
        }
        if !both {
            return;
        }
        let text = hash(if is_stream { COMMAND_STREAM } else { text });
        if let Some(index) = self.owed.iter().position(|owed| owed.text == text) {
            self.owed.remove(index);
        } else if self.slack > 0 {
            self.slack -= 1;
        } else if self.goals > 0 && !is_stream {
            self.goals -= 1;
        } else if let Some(owed) = self.owed.pop_front() {
            let at = at_member(object, "error").with(Dir::Host, Some(owed.place), "the line");
            let message = format!("the text for that line is {:?}", owed.shown);
            notes.add(Key::ErrorText.rule(), at, message);
        } else {
            let message = String::from("no line of the host is left that this could answer");
            notes.add(Key::ErrorUncaused.rule(), At::line(), message);
        }
    }

    /// What was never said.
    pub(super) fn owed(&self, severity: Severity, notes: &mut Notes) {
        if self.slack > 0 {
            return;
        }
        for key in [Key::BadAnswered, Key::BlankGoalRefused] {
            if let Some(owed) = self.owed.iter().find(|owed| owed.key == key) {
                let message = "no command_error answers this line before the engine's lines end";
                pinned(key, owed.place, severity, message, notes);
            }
        }
    }
}
