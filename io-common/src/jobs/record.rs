//! A record as it lies on the disk: one JSON object, read strictly where it would mislead.

use serde::{Deserialize, Serialize};
use turnwire::protocol::openseek::valid_job_component;
use turnwire::vocab::{CallId, JobId, JobKind, JobOutput, JobRecord, JobState};

/// The version that is read and written.
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    schema_version: u32,
    cleanup_error: Option<String>,
    generation: String,
    id: String,
    revision: u32,
    command: String,
    description: Option<String>,
    cwd: Option<String>,
    state: State,
    started_at_ms: u64,
    backgrounded_at_ms: u64,
    finished_at_ms: Option<u64>,
    last_output_at_ms: Option<u64>,
    output_file: Option<String>,
    output_persistent: bool,
    output_bytes: u64,
    output_chars: u32,
    output_truncated: bool,
    invalid_utf8: bool,
    output_error: Option<String>,
    persistence_error: Option<String>,
    /// What else this program knows of it.
    #[serde(default)]
    data: Data,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Data {
    /// The number of its call.
    #[serde(default)]
    job: u64,
    #[serde(default)]
    finite: bool,
    /// Of a job that is no shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum State {
    Running,
    Stopping,
    Exited { code: i32 },
    Stopped { reason: String },
    Interrupted,
}

/// The text of a record.
pub(super) fn write(record: &JobRecord) -> Vec<u8> {
    let owned = |text: &Option<turnwire::vocab::Text>| text.as_deref().map(str::to_owned);
    let [started, backgrounded, finished, last_output] = record.times_ms;
    let [cleanup, output_fault, persistence] = &record.faults;
    let output = record.output.as_ref();
    let stored = Stored {
        schema_version: VERSION,
        cleanup_error: owned(cleanup),
        generation: record.generation.to_string(),
        id: record.id.to_string(),
        revision: record.revision,
        command: record.command.to_string(),
        description: owned(&record.description),
        cwd: owned(&record.cwd),
        state: match &record.state {
            JobState::Running => State::Running,
            JobState::Stopping => State::Stopping,
            JobState::Exited(code) => State::Exited { code: *code },
            JobState::Stopped(reason) => State::Stopped {
                reason: reason.to_string(),
            },
            JobState::Interrupted => State::Interrupted,
        },
        started_at_ms: started.unwrap_or(0),
        backgrounded_at_ms: backgrounded.or(started).unwrap_or(0),
        finished_at_ms: finished,
        last_output_at_ms: last_output,
        output_file: output.and_then(|output| owned(&output.name)),
        output_persistent: output.is_some_and(|output| output.persistent),
        output_bytes: output.map_or(0, |output| output.bytes),
        output_chars: output.map_or(0, |output| output.chars),
        output_truncated: output.is_some_and(|output| output.truncated),
        invalid_utf8: output.is_some_and(|output| output.invalid_utf8),
        output_error: owned(output_fault),
        persistence_error: owned(persistence),
        data: Data {
            job: record.job.0,
            finite: record.finite,
            kind: match &record.kind {
                JobKind::Shell => None,
                JobKind::Run(_) => Some("run".into()),
                JobKind::Other(what) => Some(what.to_string()),
            },
        },
    };
    // Numbers, texts and nothing else: there is no such error.
    serde_json::to_vec(&stored).unwrap_or_default()
}

/// Reads a record back.
pub(super) fn read(bytes: &[u8]) -> Result<JobRecord, String> {
    let stored: Stored = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if stored.schema_version != VERSION {
        let version = stored.schema_version;
        return Err(format!("its version is {version}, and {VERSION} is read"));
    }
    if stored.revision == 0 {
        return Err("its revision is 0".into());
    }
    let names = [Some(&stored.id), Some(&stored.generation)];
    for name in names.into_iter().chain([stored.output_file.as_ref()]) {
        if let Some(name) = name.filter(|name| !valid_job_component(name)) {
            return Err(format!("{name:?} may be no part of a path"));
        }
    }
    let job = JobId(stored.data.job);
    Ok(JobRecord {
        job,
        id: stored.id.into(),
        generation: stored.generation.into(),
        revision: stored.revision,
        kind: match stored.data.kind {
            None => JobKind::Shell,
            Some(what) => JobKind::Other(what.into()),
        },
        call: (job.0 > 0).then_some(CallId(job.0)),
        command: stored.command.into(),
        description: stored.description.map(Into::into),
        cwd: stored.cwd.map(Into::into),
        state: match stored.state {
            State::Running => JobState::Running,
            State::Stopping => JobState::Stopping,
            State::Exited { code } => JobState::Exited(code),
            State::Stopped { reason } => JobState::Stopped(reason.into()),
            State::Interrupted => JobState::Interrupted,
        },
        finite: stored.data.finite,
        times_ms: [
            Some(stored.started_at_ms),
            Some(stored.backgrounded_at_ms),
            stored.finished_at_ms,
            stored.last_output_at_ms,
        ],
        output: Some(JobOutput {
            name: stored.output_file.map(Into::into),
            persistent: stored.output_persistent,
            bytes: stored.output_bytes,
            chars: stored.output_chars,
            truncated: stored.output_truncated,
            invalid_utf8: stored.invalid_utf8,
        }),
        faults: [
            stored.cleanup_error.map(Into::into),
            stored.output_error.map(Into::into),
            stored.persistence_error.map(Into::into),
        ],
    })
}
