//! Markers of stages.

use alloc::format;
use alloc::string::String;

use super::super::STAGES;
use super::super::rules::Key;
use super::super::wire::{Marker, StageStatus};
use super::Here;
use crate::frame::Place;
use crate::json::shorten;
use crate::protocol::observer::{At, Dir, Notes, at_member, hash};

#[derive(Debug, Default)]
pub(super) struct Stages {
    any: bool,
    /// The stage that runs.
    running: Option<(u64, Place)>,
    unsure: bool,
    name_told: bool,
}

impl Stages {
    pub(super) fn blur(&mut self) {
        self.running = None;
        self.unsure = true;
    }

    /// Whether any stage was seen.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    pub(super) fn marker(
        &mut self,
        marker: &Marker<'_>,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        self.any = true;
        let at = || at_member(here.object, "delta");
        if !STAGES.contains(&&*marker.name) && !core::mem::replace(&mut self.name_told, true) {
            let message = format!("{} is none of six stages", shorten(&marker.name));
            notes.add(Key::Stage.rule(), at(), message);
        }
        if matches!(marker.status, StageStatus::Other(_)) || marker.progress > 100 {
            let status = shorten(marker.status.as_str());
            let message = format!(
                "the status is {status}, and the progress {}",
                marker.progress
            );
            notes.add(Key::MarkerWord.rule(), at(), message);
        }
        let name = hash(&marker.name);
        let message = match (&marker.status, self.running) {
            (StageStatus::Other(_), _) => return,
            (StageStatus::Running, Some((_, place))) => Some((place, "another stage runs")),
            (StageStatus::Running, None) => None,
            (_, Some((running, place))) if running != name => Some((place, "another stage runs")),
            (_, Some(_)) => None,
            (_, None) if self.unsure => None,
            (_, None) => Some((here.place, "no stage runs")),
        };
        if let Some((place, message)) = message {
            let at = at().with(Dir::Agent, Some(place), "the marker");
            notes.add(Key::MarkerOrder.rule(), at, String::from(message));
        }
        self.running = match marker.status {
            StageStatus::Running => Some((name, here.place)),
            StageStatus::Completed
            | StageStatus::Failed
            | StageStatus::Skipped
            | StageStatus::Incomplete
            | StageStatus::Other(_) => None,
        };
    }

    /// The run has succeeded.
    pub(super) fn ends(&self, notes: &mut Notes) {
        if let Some((_, place)) = self.running {
            let at = At::line().with(Dir::Agent, Some(place), "the marker");
            let message = String::from("a stage still runs");
            notes.add(Key::MarkerOpen.rule(), at, message);
        }
    }
}
