//! What has a beginning and an end besides turns: runs within a turn, workflows, compactions.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, at_member, hash};

/// A compaction that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compaction {
    from: i32,
    to: i32,
    place: Place,
}

/// Which compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The host asked for it.
    Asked,
    /// The engine's own, within a turn.
    Auto,
}

#[derive(Debug, Default)]
pub(super) struct Runs {
    subruns: Ids<Place>,
    workflows: Ids<Place>,
    asked: Option<Compaction>,
    auto: Option<Compaction>,
    /// A line couldn't be read since the last compaction began.
    blurred: bool,
}

impl Runs {
    pub(super) fn blur(&mut self) {
        self.subruns.blur();
        self.workflows.blur();
        self.asked = None;
        self.auto = None;
        self.blurred = true;
    }

    /// Where the compaction begins that the host asked for, if one is open.
    pub(super) fn compacting(&self) -> Option<Place> {
        self.asked.map(|compaction| compaction.place)
    }

    pub(super) fn compaction_started(
        &mut self,
        whose: Whose,
        (from, to): (i32, i32),
        place: Place,
        notes: &mut Notes,
    ) {
        let open = self.of(whose);
        if let Some(before) = open.replace(Compaction { from, to, place }) {
            let at = At::line().with(Dir::Agent, Some(before.place), "the one before");
            let message = String::from("a compaction is open");
            notes.add(Key::CompactionTwice.rule(), at, message);
        }
        self.blurred = false;
    }

    pub(super) fn compaction_finished(
        &mut self,
        whose: Whose,
        (from, to): (i32, i32),
        notes: &mut Notes,
    ) {
        match self.of(whose).take() {
            Some(open) if (open.from, open.to) == (from, to) => {}
            Some(open) => {
                let at = At::line().with(Dir::Agent, Some(open.place), "its start");
                let message = format!(
                    "{from} to {to} is finished, and {} to {} was begun",
                    open.from, open.to
                );
                notes.add(Key::CompactionEnds.rule(), at, message);
            }
            None if !self.blurred => {
                let message = String::from("no compaction is open");
                notes.add(Key::CompactionEnds.rule(), At::line(), message);
            }
            None => {}
        }
    }

    /// It may never have begun.
    pub(super) fn compaction_failed(&mut self, whose: Whose) {
        self.of(whose).take();
    }

    fn of(&mut self, whose: Whose) -> &mut Option<Compaction> {
        match whose {
            Whose::Asked => &mut self.asked,
            Whose::Auto => &mut self.auto,
        }
    }

    pub(super) fn subrun_started(
        &mut self,
        id: &str,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(id);
        if let Some(first) = self.subruns.get_mut(id).copied() {
            let at = at_member(object, "id").with(Dir::Agent, Some(first), "the run that is open");
            let message = String::from("a run of this id is open");
            notes.add(Key::SubrunTwice.rule(), at, message);
        }
        self.subruns.open(id, place);
    }

    pub(super) fn subrun_finished(&mut self, id: &str, object: &Object<'_, '_>, notes: &mut Notes) {
        ends(&mut self.subruns, id, Key::SubrunEnds, object, notes);
    }

    pub(super) fn workflow_started(&mut self, id: &str, place: Place) {
        self.workflows.open(hash(id), place);
    }

    pub(super) fn workflow_finished(
        &mut self,
        id: &str,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        ends(&mut self.workflows, id, Key::WorkflowEnds, object, notes);
    }

    /// The end of a turn.
    pub(super) fn turn_over(&mut self, notes: &mut Notes) {
        self.auto = None;
        let (open, first) = self.subruns.close_all();
        if open > 0 {
            let at = At::line().with(Dir::Agent, first, "its start");
            let message = format!("{open} runs are open at the end of the turn");
            notes.add(Key::SubrunOpen.rule(), at, message);
        }
    }
}

fn ends(ids: &mut Ids<Place>, id: &str, key: Key, object: &Object<'_, '_>, notes: &mut Notes) {
    let id = hash(id);
    let message = match ids.known(id) {
        Known::Open | Known::Unknown => {
            ids.close(id);
            return;
        }
        Known::Closed => "it has ended before",
        Known::Never => "it has not begun",
    };
    notes.add(key.rule(), at_member(object, "id"), String::from(message));
}
