//! Records of jobs, as the wire has them.

use alloc::string::String;

use crate::json::Lazy;
use crate::protocol::openseek::names::valid_job_component;
use crate::protocol::openseek::wire::{
    Big, Chars, Component, Int, JobEventKind, JobRecord as Record, JobState as State, NonEmpty,
    Optional, Revision,
};
use crate::vocab::{JobRecord, JobState, JobStep, Text};

/// The most characters of a component.
const COMPONENT: usize = 200;

/// What happened, and the record.
pub(super) fn changed(step: JobStep, job: &JobRecord) -> (JobEventKind, Record<'_>) {
    let record = record(job);
    let kind = match step {
        JobStep::Started => JobEventKind::Started,
        JobStep::Updated => JobEventKind::Updated,
        JobStep::Ended => record.ended_as().unwrap_or(JobEventKind::Finished),
    };
    (kind, record)
}

/// The record.
pub(super) fn record(job: &JobRecord) -> Record<'_> {
    let [started, backgrounded, finished, last_output] = job.times_ms;
    let [cleanup, output_fault, persistence] = &job.faults;
    let output = job.output.as_ref();
    let began = started.or(backgrounded);
    Record {
        cleanup_error: text(cleanup.as_ref()),
        generation: component(&job.generation),
        id: component(&job.id),
        revision: Revision::nearest(i32::try_from(job.revision).unwrap_or(i32::MAX)),
        command: (&*job.command).into(),
        description: text(job.description.as_ref()),
        cwd: Optional(job.cwd.as_deref().map(Into::into)),
        state: match &job.state {
            JobState::Running => State::Running,
            JobState::Stopping => State::Stopping,
            JobState::Exited(code) => State::Exited {
                code: Int::from(*code),
            },
            JobState::Stopped(by) => State::Stopped {
                // Never empty on the wire.
                reason: NonEmpty::new(&**by)
                    .or_else(|| NonEmpty::new("user"))
                    .unwrap_or_default(),
            },
            JobState::Interrupted => State::Interrupted,
        },
        started_at_ms: big(began.unwrap_or(0)),
        backgrounded_at_ms: big(backgrounded.or(began).unwrap_or(0)),
        finished_at_ms: Optional(finished.map(big)),
        last_output_at_ms: Optional(last_output.map(big)),
        output_file: Optional(
            output
                .and_then(|output| output.name.as_deref())
                .filter(|name| valid_job_component(name))
                .and_then(Component::new),
        ),
        output_persistent: output.is_some_and(|output| output.persistent),
        output_bytes: big(output.map_or(0, |output| output.bytes)),
        output_chars: Chars::nearest(
            i32::try_from(output.map_or(0, |output| output.chars)).unwrap_or(i32::MAX),
        ),
        output_truncated: output.is_some_and(|output| output.truncated),
        invalid_utf8: output.is_some_and(|output| output.invalid_utf8),
        output_error: text(output_fault.as_ref()),
        persistence_error: text(persistence.as_ref()),
        ..Record::default()
    }
}

fn text(text: Option<&Text>) -> Optional<Lazy<'_>> {
    Optional(text.map(|text| (&**text).into()))
}

fn big(number: u64) -> Big {
    Big::nearest(i64::try_from(number).unwrap_or(i64::MAX))
}

/// An id that is no component is written with `_` for what may not stand there (OS-12); those of our own drivers are.
pub(super) fn component(id: &str) -> Component<'_> {
    Component::new(id).unwrap_or_else(|| {
        let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
        let safe = |char| if fits(char) { char } else { '_' };
        let safe: String = id.chars().take(COMPONENT).map(safe).collect();
        Component::new(safe).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_12_an_id_that_is_no_component_is_made_one() {
        assert_eq!(component("bg-1").as_str(), "bg-1");
        assert_eq!(component("../é").as_str(), "..__");
        assert_eq!(component("").as_str(), "0");
        assert_eq!(component("..").as_str(), "0");
        assert_eq!(component(&"/".repeat(300)).as_str(), "_".repeat(200));
    }
}
