//! Jobs, by our ids and the engine's.

use alloc::collections::VecDeque;
use alloc::format;

use super::Out;
use crate::protocol::openseek::wire::{JobEventKind, JobRecord as Record, JobState as State};
use crate::vocab::*;

/// Jobs that are remembered.
const MOST: usize = 4_096;

#[derive(Debug)]
struct Known {
    job: JobId,
    id: Text,
    generation: Text,
    over: bool,
}

/// The jobs that were told of, oldest first.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    known: VecDeque<Known>,
}

impl Jobs {
    /// The generation of the newest job of this name.
    pub(super) fn generation(&self, id: &str) -> Option<&str> {
        let mut newest = self.known.iter().rev();
        let known = newest.find(|known| *known.id == *id)?;
        Some(&known.generation)
    }

    /// Name and generation of a job that isn't over.
    pub(super) fn live(&self, job: JobId) -> Option<(Text, Text)> {
        let mut all = self.known.iter();
        let known = all.find(|known| known.job == job && !known.over)?;
        Some((known.id.clone(), known.generation.clone()))
    }

    fn of(&mut self, record: &Record<'_>, out: &mut Out) -> Option<&mut Known> {
        let (id, generation) = (record.id.as_str(), record.generation.as_str());
        let is = |known: &Known| *known.id == *id && *known.generation == *generation;
        if let Some(at) = self.known.iter().position(is) {
            return self.known.get_mut(at);
        }
        if self.known.len() >= MOST {
            self.known.pop_front();
        }
        self.known.push_back(Known {
            job: out.ids.job(),
            id: id.into(),
            generation: generation.into(),
            over: false,
        });
        self.known.back_mut()
    }

    /// `job_changed`. Whether it is news.
    pub(super) fn changed(
        &mut self,
        kind: JobEventKind,
        record: &Record<'_>,
        out: &mut Out,
    ) -> bool {
        let Some(known) = self.of(record, out) else {
            return false;
        };
        if known.over {
            let id = known.id.clone();
            out.finding(format!("job {id:?} changed after its end"));
            return false;
        }
        let step = match kind {
            JobEventKind::Started => JobStep::Started,
            JobEventKind::Updated => JobStep::Updated,
            JobEventKind::Finished | JobEventKind::Failed => JobStep::Ended,
        };
        known.over = step == JobStep::Ended;
        let job = known.job;
        out.say(What::Job(step, neutral(job, record).into()));
        true
    }

    /// A record of a snapshot.
    pub(super) fn told(&mut self, record: &Record<'_>, out: &mut Out) -> Option<JobRecord> {
        let job = self.of(record, out)?.job;
        Some(neutral(job, record))
    }
}

fn neutral(job: JobId, record: &Record<'_>) -> JobRecord {
    let text = |text: Option<&str>| text.map(Text::from);
    let ms = |number: i64| u64::try_from(number).unwrap_or(0);
    let faults = [
        &record.cleanup_error,
        &record.output_error,
        &record.persistence_error,
    ];
    JobRecord {
        job,
        id: record.id.as_str().into(),
        generation: record.generation.as_str().into(),
        revision: u32::try_from(record.revision.get()).unwrap_or(1),
        kind: JobKind::Shell,
        call: None,
        command: (&*record.command).into(),
        description: text(record.description.0.as_deref()),
        cwd: text(record.cwd.0.as_deref()),
        state: match &record.state {
            State::Running => JobState::Running,
            State::Stopping => JobState::Stopping,
            State::Exited { code } => JobState::Exited(code.get()),
            State::Stopped { reason } => JobState::Stopped(reason.as_str().into()),
            State::Interrupted => JobState::Interrupted,
        },
        finite: true,
        times_ms: [
            Some(ms(record.started_at_ms.get())),
            Some(ms(record.backgrounded_at_ms.get())),
            record.finished_at_ms.0.map(|at| ms(at.get())),
            record.last_output_at_ms.0.map(|at| ms(at.get())),
        ],
        output: Some(JobOutput {
            name: record
                .output_file
                .0
                .as_ref()
                .map(|name| name.as_str().into()),
            persistent: record.output_persistent,
            bytes: ms(record.output_bytes.get()),
            chars: u32::try_from(record.output_chars.get()).unwrap_or(0),
            truncated: record.output_truncated,
            invalid_utf8: record.invalid_utf8,
        }),
        faults: faults.map(|fault| text(fault.0.as_deref())),
    }
}
