//! The words of what a session does by itself: jobs.

use alloc::{boxed::Box, format, string::String};

use crate::vocab::*;

/// A call that goes on as a job; `helper` never ends by itself.
pub fn detached(how: &str) -> Option<ToolUpdate> {
    let (kind, finite) = match how {
        "detached" => (JobKind::Shell, true),
        "helper" => (JobKind::Other("helper".into()), false),
        _ => return None,
    };
    Some(ToolUpdate::Detached(Box::new(JobStart {
        id: "j".into(),
        generation: "g1".into(),
        kind,
        command: "sleep".into(),
        description: None,
        cwd: None,
        finite,
        times_ms: [None; 4],
    })))
}

/// What a driver says of a job; nothing: it ends well.
pub fn job_update(how: &[&str]) -> JobUpdate {
    match how {
        [] => JobUpdate::Ended(JobState::Exited(0)),
        ["ended"] => JobUpdate::Ended(JobState::Interrupted),
        ["stopped"] => JobUpdate::Ended(JobState::Stopped("SIGTERM".into())),
        ["runs"] => JobUpdate::Ended(JobState::Running),
        ["output", bytes] => JobUpdate::Output(JobOutput {
            name: Some("j.out".into()),
            bytes: bytes.parse().unwrap(),
            ..JobOutput::default()
        }),
        other => panic!("job {other:?}"),
    }
}

/// A command about jobs: `Stop`, of which generation.
pub fn job_command(words: &[&str]) -> Option<JobCommand> {
    let stop = |generation: Option<&str>| JobCommand::Stop {
        job: "j".into(),
        generation: generation.map(Text::from),
    };
    Some(match words {
        ["Job", "Snapshot"] => JobCommand::Snapshot,
        ["Job", "Stop"] => stop(None),
        ["Job", "Stop", generation] => stop(Some(generation)),
        _ => return None,
    })
}

pub fn job_word(step: JobStep, record: &JobRecord) -> String {
    let how = match (step, &record.state) {
        (JobStep::Updated, JobState::Running) => "Output".into(),
        (JobStep::Started, _) => "Started".into(),
        (_, JobState::Stopped(by)) if &**by != "user" && &**by != "session_ended" => {
            format!("Stopped:{by}")
        }
        (_, state) => super::world::name_of(state),
    };
    format!("Job j{} {how}", record.job.0)
}

pub fn jobs_word(records: &[JobRecord]) -> String {
    let mut word = String::from("Jobs");
    for record in records {
        let state = super::world::name_of(&record.state);
        word.push_str(&format!(" j{}:{state}:{}", record.job.0, record.revision));
    }
    word
}
