//! Background jobs: stopped when it is asked for, and each state of their records put on the disk.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use turnwire::vocab::{CallId, JobId, JobRecord, JobState, Text};

use super::effects::{Effects, StorageJob};
use super::{Caller, Report, crashed, failed};
use crate::jobs::{MOST_RECORDS, Ran};

/// Records on their way to the disk, and those that are there.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Writes that aren't over.
    writing: usize,
    /// Jobs that are over, the oldest first.
    over: VecDeque<Text>,
}

impl Records {
    /// Whether none is on its way.
    pub(super) fn are_kept(&self) -> bool {
        self.writing == 0
    }
}

impl Effects {
    /// A call is to go on as a job, if it is one that can; others just go on.
    pub(super) fn let_go(&mut self, call: CallId) {
        if let Some(word) = self.open.remove(&call) {
            word.ask();
        }
    }

    /// A call is over, or is a job by now: there is nothing to let go.
    pub(super) fn closed(&mut self, caller: Caller) {
        if let Caller::Model(call) = caller {
            self.open.remove(&call);
        }
    }

    /// A call goes on as a job: what would have stopped the one stops the other.
    pub(super) fn detached(&mut self, caller: Caller) {
        self.closed(caller);
        let stop = self.tools.remove(&caller).flatten();
        if let Caller::Model(call) = caller {
            self.jobs.insert(job_of(call), stop);
        }
    }

    /// A job is to end. One that has ended, or is ending, isn't bothered.
    pub(super) fn stop_job(&mut self, job: JobId) {
        if let Some(stop) = self.jobs.get_mut(&job).and_then(Option::take) {
            stop();
        }
    }

    /// What a job has written so far was told: its permit may be given back.
    pub(super) fn job_wrote(&mut self) {
        self.owed += 1;
    }

    /// A job is over.
    pub(super) fn job_over(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// A record is about to be told: it goes on the disk, if it is of this process and jobs are kept. Of jobs that are
    /// over the newest are kept.
    pub(super) fn keep_job(&mut self, record: &JobRecord) {
        let Some(place) = self.world.toolbox.jobs() else {
            return;
        };
        if *place.generation() != record.generation {
            return;
        }
        place.note(record);
        let job = record.job;
        let (place, record) = (place.clone(), record.clone());
        let over = &mut self.records.over;
        let mut old = None;
        if record.state.is_over() {
            over.push_back(record.id.clone());
            if over.len() > MOST_RECORDS {
                old = over.pop_front();
            }
        }
        let work = move || {
            place.keep(&record)?;
            old.map_or(Ok(()), |old| place.forget(&old))
        };
        let write: StorageJob = Box::new(move || {
            let fault = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(panic) => Some(crashed("its writing", &*panic)),
            };
            Report::Kept(job, fault)
        });
        if self.on_storage(write) {
            self.records.writing += 1;
        } else {
            tracing::error!("the record of a job isn't kept: the storage thread is gone");
        }
    }

    /// A record was put on the disk, or wasn't: then why, if its job runs and so can say it.
    pub(super) fn kept(&mut self, job: JobId, fault: Option<String>) -> Option<Text> {
        self.records.writing = self.records.writing.saturating_sub(1);
        let error = fault?;
        tracing::warn!(job = job.0, error, "the record of a job isn't kept");
        self.jobs.contains_key(&job).then(|| error.into())
    }
}

fn job_of(call: CallId) -> JobId {
    JobId(call.0)
}

/// What is reported of a job at last, however its carrying out ended. `begun`: [`Report::Detached`] was reported.
pub fn job_over(caller: Caller, job: JobId, begun: bool, ran: std::thread::Result<Ran>) -> Report {
    match ran {
        Ok(Ok((output, state))) => Report::JobOver(job, output, state),
        Ok(Err(done)) => Report::Tool(caller, done),
        Err(panic) => {
            let why = crashed("the job", &*panic);
            if begun {
                tracing::error!(job = job.0, "{why}");
                Report::JobOver(job, None, JobState::Interrupted)
            } else {
                Report::Tool(caller, failed(&why))
            }
        }
    }
}
