//! One step: what a reply is made of, and the results of its calls.

use alloc::collections::BTreeSet;
use alloc::string::String;

use super::super::rules::Key;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Notes, at_member, hash};

/// The most calls of one step that are remembered.
const MOST: usize = 4_096;

/// A text that comes in pieces, in memory that doesn't grow.
#[derive(Clone, Copy, Debug)]
struct Sum {
    state: u64,
    bytes: u64,
    first: Option<Place>,
}

impl Default for Sum {
    fn default() -> Self {
        Sum {
            state: 0xcbf2_9ce4_8422_2325,
            bytes: 0,
            first: None,
        }
    }
}

impl Sum {
    fn add(&mut self, text: &str, place: Place) {
        self.first.get_or_insert(place);
        for byte in text.bytes() {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.bytes += text.len() as u64;
    }

    fn is(&self, text: &str, place: Place) -> bool {
        let mut other = Sum::default();
        other.add(text, place);
        (other.state, other.bytes) == (self.state, self.bytes)
    }
}

/// What a piece or a message is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Text,
    Reasoning,
}

/// How a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Another step begins, or the turn went well.
    Well,
    /// It was cut off.
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct Step {
    open: bool,
    /// A line couldn't be read: nothing of this step is judged.
    blurred: bool,
    text: Sum,
    reasoning: Sum,
    message: Option<Place>,
    thought: Option<Place>,
    usage: Option<Place>,
    result: Option<Place>,
    calls: BTreeSet<u64>,
    retry: Option<(i32, Place)>,
    /// That the message, or the usage, is missing was told.
    missing_told: bool,
    usage_told: bool,
}

impl Step {
    pub(super) fn blur(&mut self) {
        self.blurred = true;
    }

    /// A step begins; the one before has ended well.
    pub(super) fn begins(&mut self, notes: &mut Notes) {
        self.ends(Ending::Well, notes);
        *self = Step {
            open: true,
            ..Step::default()
        };
    }

    /// The turn is over.
    pub(super) fn ends(&mut self, ending: Ending, notes: &mut Notes) {
        if ending == Ending::Well && self.open {
            self.message_is_there(notes);
            self.usage_is_there(notes);
        }
        *self = Step::default();
    }

    /// Whether the line can be judged: a step is open. Where none is, that is told.
    fn is_open(&self, notes: &mut Notes) -> bool {
        if !self.open && !self.blurred {
            let message = String::from("no step is open");
            notes.add(Key::OutsideStep.rule(), At::line(), message);
        }
        self.open && !self.blurred
    }

    /// The line stands behind one that must follow it.
    fn order(&self, before: Option<Place>, what: &'static str, notes: &mut Notes) {
        if before.is_some() {
            let at = At::line().with(Dir::Agent, before, what);
            let message = alloc::format!("it stands behind {what} of the same step");
            notes.add(Key::ReplyOrder.rule(), at, message);
        }
    }

    pub(super) fn piece(
        &mut self,
        of: Of,
        text: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if text.is_empty() {
            let at = at_member(object, "content");
            notes.add(
                Key::EmptyPiece.rule(),
                at,
                String::from("the piece is empty"),
            );
        }
        if !self.is_open(notes) {
            return;
        }
        let (before, what) = match (self.message, self.thought) {
            (Some(_), _) => (self.message, "the message"),
            (None, thought) => (thought, "the whole reasoning"),
        };
        if before.is_some() {
            self.order(before, what, notes);
            return;
        }
        if self.usage.is_some() || self.result.is_some() {
            self.order(self.usage.or(self.result), "the usage or a result", notes);
            return;
        }
        match of {
            Of::Text => self.text.add(text, place),
            Of::Reasoning => self.reasoning.add(text, place),
        }
    }

    pub(super) fn whole(
        &mut self,
        of: Of,
        text: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let at = at_member(object, "content");
        if text.is_empty() {
            let message = String::from("the message is empty");
            notes.add(Key::EmptyMessage.rule(), at.clone(), message);
        }
        if !self.is_open(notes) {
            return;
        }
        let (before, sum, key) = match of {
            Of::Text => (&mut self.message, self.text, Key::Pieces),
            Of::Reasoning => (&mut self.thought, self.reasoning, Key::ReasoningPieces),
        };
        if before.is_some() {
            let at = At::line().with(Dir::Agent, *before, "the message before");
            let message = String::from("the step has a message of this kind");
            notes.add(Key::MessageTwice.rule(), at, message);
            return;
        }
        *before = Some(place);
        if sum.bytes > 0 && !sum.is(text, place) {
            let at = at.with(Dir::Agent, sum.first, "the first piece");
            let message = alloc::format!(
                "the message has {} bytes, the pieces {}, and they differ",
                text.len(),
                sum.bytes
            );
            notes.add(key.rule(), at, message);
        }
        if of == Of::Reasoning {
            self.order(self.message, "the message", notes);
        }
        self.order(self.usage.or(self.result), "the usage or a result", notes);
    }

    pub(super) fn usage(&mut self, place: Place, notes: &mut Notes) {
        if !self.is_open(notes) {
            return;
        }
        if self.usage.is_some() {
            let at = At::line().with(Dir::Agent, self.usage, "the usage before");
            let message = String::from("the step has its usage");
            notes.add(Key::UsageTwice.rule(), at, message);
            return;
        }
        self.message_is_there(notes);
        self.order(self.result, "a result", notes);
        self.usage = Some(place);
    }

    pub(super) fn result(
        &mut self,
        id: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        notes.tally.tool_calls += 1;
        if !self.is_open(notes) {
            return;
        }
        self.message_is_there(notes);
        self.usage_is_there(notes);
        self.result.get_or_insert(place);
        let id = hash(id);
        if self.calls.contains(&id) {
            let at = at_member(object, "tool_call_id");
            let message = String::from("this call has its result");
            notes.add(Key::ResultTwice.rule(), at, message);
        } else if self.calls.len() < MOST {
            self.calls.insert(id);
        }
    }

    pub(super) fn retry(
        &mut self,
        attempt: i32,
        most: i32,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        if !self.is_open(notes) {
            return;
        }
        let behind = self.message.or(self.usage).or(self.result);
        self.order(behind, "the reply", notes);
        let before = self.retry.map_or(0, |(attempt, _)| attempt);
        if attempt <= before || attempt > most {
            let at = at_member(object, "attempt");
            let at = at.with(
                Dir::Agent,
                self.retry.map(|(_, place)| place),
                "the one before",
            );
            let message = alloc::format!("attempt {attempt} of {most} follows attempt {before}");
            notes.add(Key::RetryCount.rule(), at, message);
        }
        self.retry = Some((attempt, place));
        // What was shown is void.
        self.text = Sum::default();
        self.reasoning = Sum::default();
    }

    fn message_is_there(&mut self, notes: &mut Notes) {
        let missing = self.text.bytes > 0 && self.message.is_none() && !self.blurred;
        if missing && !core::mem::replace(&mut self.missing_told, true) {
            let at = At::line().with(Dir::Agent, self.text.first, "the first piece");
            let message = String::from("the step had pieces of text, and has no message");
            notes.add(Key::MessageMissing.rule(), at, message);
        }
    }

    fn usage_is_there(&mut self, notes: &mut Notes) {
        let missing = self.usage.is_none() && !self.blurred;
        if missing && !core::mem::replace(&mut self.usage_told, true) {
            let message = String::from("the step has no usage");
            notes.add(Key::UsageMissing.rule(), At::line(), message);
        }
    }
}
