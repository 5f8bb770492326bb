//! When the session has settled: nothing runs, and nothing is queued.

use alloc::string::String;

use super::super::rules::Key;
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Notes, Severity};

#[derive(Debug, Default)]
pub(super) struct Settling {
    /// Something has happened since the session settled.
    stirred: bool,
    /// A `prompt_result` said that the session has settled, and nothing has followed.
    promised: bool,
}

impl Settling {
    /// Something happens.
    pub(super) fn stirs(&mut self) {
        self.stirred = true;
    }

    /// A run begins.
    pub(super) fn begins(&mut self, notes: &mut Notes) {
        self.stirred = true;
        self.owed("a run begins", notes);
    }

    /// A prompt has ended, and the session with it or not.
    pub(super) fn prompt_ended(&mut self, settled: bool) {
        self.stirred = true;
        self.promised = settled;
    }

    /// The session has settled. `run`: where a run began that shouldn't be open.
    pub(super) fn settles(&mut self, run: Option<Place>, notes: &mut Notes) {
        if let Some(run) = run {
            let at = At::line().with(Dir::Agent, Some(run), "the start of the run");
            notes.add(Key::Settles.rule(), at, String::from("a run is still open"));
        } else if !self.stirred {
            notes.add(
                Key::Settles.rule(),
                At::line().at_most(Severity::Warning),
                String::from("nothing has happened since the session settled"),
            );
        }
        *self = Settling::default();
    }

    /// The process has left by itself.
    pub(super) fn ends(&mut self, notes: &mut Notes) {
        self.owed("the stream ends", notes);
    }

    fn owed(&mut self, what: &str, notes: &mut Notes) {
        if core::mem::take(&mut self.promised) {
            let message = alloc::format!(
                "{what}, and no session_settled has come since prompt_result said so"
            );
            let at = At::line().at_most(Severity::Warning);
            notes.add(Key::Settles.rule(), at, message);
        }
    }
}
