//! The type of every line, both directions: one type, one encoder and one decoder for each (OS-01).
//!
//! An [`Event`] is what an engine says, a [`Command`] what a host does. Both are flat objects, whose first member names the
//! kind (OS-02). Decoding is a scan, then the tag, then the one type that it names; encoding writes one order of members.
//! The two are inverse up to key order, spacing, escapes, the spelling of numbers, and what a reader takes for missing
//! because it is of another type (L10, OS-04). Members that an event doesn't have are kept, and written again; a command
//! drops them.

mod command;
mod content;
mod event;
mod job;
mod values;

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::json::{self, Duplicates, LoneSurrogates, Members, Object, Raw, ScanRules};
pub use crate::protocol::WireFault;
use crate::protocol::member::last;
pub use crate::protocol::member::{Any, Rest};
use crate::protocol::wire::Hole;

pub use command::{BLANK_GOAL, COMMAND_STREAM, Command, CommandFault, Unread};
pub use content::{Content, Part};
pub use event::*;
pub use job::{JobRecord, JobState};
pub use values::{
    Big, Chars, Component, ConnectError, Int, JobEventKind, JobStopOutcome, NonEmpty, One,
    Optional, OrNull, Revision, SteerKind, SteerWord,
};

/// How lines are scanned: of a member that comes twice the last one counts, half a surrogate pair is replaced.
pub const RULES: ScanRules = ScanRules {
    max_depth: 1_024,
    lone_surrogates: LoneSurrogates::Replace,
    duplicates: Duplicates::Pass,
};

/// Which shapes of commands are read. Those of events are read in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shapes {
    /// The contract's: what a person says is a `text`.
    #[default]
    Seed,
    /// Newer ones as well: `content`, which may be a list of parts, `images`, and a `submission_id` of a steer.
    Newer,
}

impl Shapes {
    /// The shapes of that number.
    pub const fn of(number: u64) -> Option<Shapes> {
        match number {
            1 => Some(Shapes::Seed),
            2 => Some(Shapes::Newer),
            _ => None,
        }
    }
}

impl<'a> Event<'a> {
    /// Reads one line. `members` is only a buffer that is used again.
    ///
    /// # Errors
    /// [`WireFault`] when the line is no event: not a JSON object, without an `event` that is a string, or without a member
    /// that its event needs. A host passes over such a line (OS-03).
    pub fn read(line: &'a [u8], members: &mut Members) -> Result<Self, WireFault> {
        let object = json::scan(line, &RULES, members).map_err(WireFault::Json)?;
        Event::of_object(&object)
    }

    /// Reads a line that was scanned.
    ///
    /// # Errors
    /// [`WireFault`] when it has no `event`, or lacks a member that its event needs.
    pub fn of_object(object: &Object<'_, 'a>) -> Result<Self, WireFault> {
        let name = last(object, TAG).ok_or(WireFault::NoTag(TAG))?;
        let name = name.string().ok_or_else(|| WireFault::TagKind {
            tag: TAG,
            found: name.kind(),
        })?;
        match Event::of_line(&name, object) {
            Some(event) => event.map_err(WireFault::Fields),
            None => Ok(Event::Unknown(Raw::trusted(object.line().trim_ascii()))),
        }
    }

    /// Appends the line, without its newline.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.put(out);
    }

    /// What it is called, whether it is known or not.
    pub fn name(&self) -> Cow<'a, str> {
        if let Event::Unknown(line) = self {
            let name = line.get_last(TAG).and_then(Raw::string);
            return name.unwrap_or_default();
        }
        Cow::Borrowed(self.tag().unwrap_or_default())
    }

    /// Whether it ends a turn.
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Event::AgentSetupFailed(_)
                | Event::AgentAborted(_)
                | Event::AgentFinished(_)
                | Event::MaxStepsExhausted(_)
                | Event::TurnFailed(_)
                | Event::ContextYield(_)
        )
    }
}

const TAG: &str = "event";
