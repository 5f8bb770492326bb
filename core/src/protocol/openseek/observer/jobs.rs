//! Jobs: revisions that grow, one end each, and answers to what the host asks about them.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use super::super::names::valid_job_component;
use super::super::rules::Key;
use super::super::wire::{JobEventKind, JobRecord, JobState, JobStopResult};
use super::pinned;
use crate::frame::Place;
use crate::json::Object;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Severity, at_member, hash};

/// The most commands that are remembered.
const MOST: usize = 4_096;

/// A job that isn't over.
#[derive(Clone, Copy, Debug)]
struct Live {
    revision: i32,
    place: Place,
}

/// A command that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    place: Place,
    request: u64,
    /// The job that is to be stopped; `None`: a snapshot.
    stops: Option<u64>,
    excused: bool,
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    ids: Ids<Live>,
    asked: VecDeque<Asked>,
    /// A line of the host couldn't be read for certain, or there were too many.
    pub(super) unsure: bool,
}

/// What names a job among those of all processes.
fn mark(generation: &str, id: &str) -> u64 {
    hash(&format!("{generation}/{id}"))
}

impl Jobs {
    pub(super) fn blur(&mut self) {
        self.ids.blur();
    }

    fn ask(&mut self, asked: Asked) {
        if self.asked.len() >= MOST {
            self.unsure = true;
        } else {
            self.asked.push_back(asked);
        }
    }

    /// The host asks how all jobs stand.
    pub(super) fn snapshot_wanted(&mut self, request: &str, place: Place, excused: bool) {
        self.ask(Asked {
            place,
            request: hash(request),
            stops: None,
            excused,
        });
    }

    /// The host stops a job.
    pub(super) fn stop_wanted(
        &mut self,
        request: &str,
        generation: &str,
        id: &str,
        place: Place,
        excused: bool,
    ) {
        self.ask(Asked {
            place,
            request: hash(request),
            stops: Some(mark(generation, id)),
            excused,
        });
    }

    pub(super) fn changed(
        &mut self,
        kind: JobEventKind,
        job: &JobRecord<'_>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let revision = job.revision.get();
        let fits = match kind {
            JobEventKind::Started => job.state == JobState::Running && revision == 1,
            JobEventKind::Updated => !job.state.is_terminal(),
            JobEventKind::Finished | JobEventKind::Failed => job.state.is_terminal(),
        };
        let at = at_member(object, "kind");
        if !fits {
            let message = format!("{} doesn't fit this record", kind.word());
            notes.add(Key::JobKind.rule(), at.clone(), message);
        } else if let Some(ended) = job.ended_as()
            && ended != kind
            && job.state != JobState::Interrupted
        {
            let message = format!("the record says {}", ended.word());
            notes.add(Key::JobEnd.rule(), at, message);
        }
        let id = mark(job.generation.as_str(), job.id.as_str());
        let live = self.ids.get_mut(id).copied();
        match self.ids.known(id) {
            Known::Closed => {
                let message = String::from("this job is over");
                notes.add(Key::JobOver.rule(), at_member(object, "job"), message);
                return;
            }
            Known::Never if kind != JobEventKind::Started => {
                let message = String::from("nothing was said of this job before");
                notes.add(Key::JobStart.rule(), at_member(object, "job"), message);
            }
            Known::Open | Known::Never | Known::Unknown => {}
        }
        if let Some(live) = live
            && revision <= live.revision
        {
            let at =
                at_member(object, "job").with(Dir::Agent, Some(live.place), "the record before");
            let message = format!("revision {revision} follows revision {}", live.revision);
            notes.add(Key::JobRevision.rule(), at, message);
        }
        if job.state.is_terminal() {
            self.ids.close(id);
        } else {
            self.ids.open(id, Live { revision, place });
        }
    }

    pub(super) fn snapshot(
        &mut self,
        request: &str,
        jobs: &[JobRecord<'_>],
        place: Place,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let request = hash(request);
        let asked = self.asked.iter();
        let mut asked = asked.enumerate();
        let found = asked.find(|(_, asked)| asked.stops.is_none() && asked.request == request);
        match found.map(|(index, _)| index) {
            Some(index) => {
                self.asked.remove(index);
            }
            None if both && !self.unsure => {
                let message = String::from("no jobs_snapshot of this request_id waits");
                let at = at_member(object, "request_id");
                notes.add(Key::SnapshotAsked.rule(), at, message);
            }
            None => {}
        }
        for job in jobs {
            self.stands(job, place, object, notes);
        }
    }

    /// A record in a snapshot.
    fn stands(
        &mut self,
        job: &JobRecord<'_>,
        place: Place,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        let revision = job.revision.get();
        let id = mark(job.generation.as_str(), job.id.as_str());
        let over = self.ids.known(id) == Known::Closed;
        match self.ids.get_mut(id) {
            Some(live) if revision < live.revision => {
                let at = at_member(object, "jobs");
                let at = at.with(Dir::Agent, Some(live.place), "the record before");
                let message = format!("revision {revision} follows revision {}", live.revision);
                notes.add(Key::JobRevision.rule(), at, message);
            }
            // What changes it is still to be said.
            Some(_) => {}
            None if over || job.state.is_terminal() => {}
            None => self.ids.open(
                id,
                Live {
                    // The event of this very record may follow.
                    revision: revision - 1,
                    place,
                },
            ),
        }
    }

    pub(super) fn stopped(
        &mut self,
        line: &JobStopResult<'_>,
        both: bool,
        object: &Object<'_, '_>,
        notes: &mut Notes,
    ) {
        for (name, value) in [("generation", &line.generation), ("job_id", &line.job_id)] {
            if !valid_job_component(value) {
                let message = format!("{name} isn't one component of a path");
                notes.add(Key::NotAComponent.rule(), at_member(object, name), message);
            }
        }
        let request = hash(&line.request_id);
        let job = Some(mark(&line.generation, &line.job_id));
        let mut asked = self.asked.iter();
        match asked.position(|asked| asked.stops == job && asked.request == request) {
            Some(index) => {
                self.asked.remove(index);
            }
            None if both && !self.unsure => {
                let message = String::from("no job_stop of this request_id waits for this job");
                notes.add(Key::StopAsked.rule(), At::line(), message);
            }
            None => {}
        }
    }

    /// What was never answered.
    pub(super) fn owed(&self, severity: Severity, notes: &mut Notes) {
        let owed = self.asked.iter().find(|asked| !asked.excused);
        if let Some(asked) = owed
            && !self.unsure
        {
            let message = "nothing answers this command before the engine's lines end";
            pinned(Key::JobAnswered, asked.place, severity, message, notes);
        }
    }
}
