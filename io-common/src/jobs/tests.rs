//! What lies on the disk, and what is read from it. That real commands run so is the drivers' contract (`io-contract`).

use turnwire::vocab::{CallId, JobId, JobKind, JobOutput};

use super::*;
use crate::process::{Exit, Stopped};
use crate::tools::{ToolJob, Toolbox, ToolboxConfig};

fn record(id: &str, state: JobState) -> JobRecord {
    JobRecord {
        job: JobId(7),
        id: id.into(),
        generation: "g1".into(),
        revision: 3,
        kind: JobKind::Shell,
        call: Some(CallId(7)),
        command: "make \"all\"\n".into(),
        description: Some("é".into()),
        cwd: None,
        state,
        finite: true,
        times_ms: [Some(5), Some(6), None, Some(9)],
        output: Some(JobOutput {
            name: Some("bg-7.out".into()),
            persistent: true,
            bytes: 12,
            chars: 11,
            truncated: false,
            invalid_utf8: true,
        }),
        faults: [None, Some("the disk is full".into()), None],
    }
}

fn place(folder: &Path, generation: &str) -> JobPlace {
    JobPlace::kept(folder.to_owned(), generation).unwrap()
}

#[test]
fn a_record_reads_back_as_it_was_kept_and_as_interrupted_where_it_wasnt_over() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(folder.path(), "g1");
    let states = [
        JobState::Exited(-1),
        JobState::Stopped("user".into()),
        JobState::Interrupted,
        JobState::Running,
        JobState::Stopping,
    ];
    for (n, state) in states.iter().enumerate() {
        first
            .keep(&record(&format!("bg-{n}"), state.clone()))
            .unwrap();
    }
    assert!(
        first.earlier().unwrap().records.is_empty(),
        "its own aren't of an earlier process"
    );
    let earlier = place(folder.path(), "g2").earlier().unwrap();
    assert!(earlier.damaged.is_empty());
    let expected = states.iter().enumerate().map(|(n, state)| {
        let mut expected = record(&format!("bg-{n}"), state.clone());
        if !state.is_over() {
            expected.state = JobState::Interrupted;
            expected.revision += 1;
        }
        expected
    });
    assert_eq!(earlier.records, expected.collect::<Vec<_>>());
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder.path().join("jobs"), "g1");
    place.keep(&record("bg-1", JobState::Running)).unwrap();
    place.make_output("bg-1").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let own = folder.path().join("jobs/g1");
    assert_eq!(mode(&own), 0o700);
    assert_eq!(mode(&own.join("bg-1.json")), 0o600);
    assert_eq!(mode(&own.join("bg-1.out")), 0o600);
}

/// OS-12: a compact id has a lower-case file, and no name leads out of the folder.
#[test]
fn os_12_names_are_mapped_and_lead_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path(), "g1");
    let compact = "AZTjwQBAeryN7wEjRWeJqw";
    place.keep(&record(compact, JobState::Running)).unwrap();
    let file = "g1/uuid-0194e3c100407abc8def0123456789ab.json";
    assert!(folder.path().join(file).is_file());
    for bad in [
        "../x",
        "",
        "..",
        "a/b",
        "é",
        "uuid-0194e3c100407abc8def0123456789ab",
    ] {
        let kept = place.keep(&record(bad, JobState::Running));
        assert_eq!(
            kept.unwrap_err().kind(),
            io::ErrorKind::InvalidInput,
            "{bad}"
        );
    }
    for bad in ["..", "", "a/b"] {
        assert!(JobPlace::kept(folder.path().to_owned(), bad).is_err());
    }
    place.forget(compact).unwrap();
    place.forget(compact).unwrap();
    assert!(!folder.path().join(file).exists());
}

#[test]
fn damage_is_told_of_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(folder.path(), "g1");
    first.keep(&record("bg-1", JobState::Running)).unwrap();
    let own = folder.path().join("g1");
    let whole = fs::read_to_string(own.join("bg-1.json")).unwrap();
    let bad = [
        ("cut", whole[..whole.len() / 2].to_owned()),
        ("bg-2", whole.clone()),
        (
            "version",
            whole.replace("\"schema_version\":1", "\"schema_version\":2"),
        ),
        (
            "revision",
            whole.replace("\"revision\":3", "\"revision\":0"),
        ),
        ("path", whole.replace("bg-7.out", "../secret")),
        (
            "number",
            whole.replace("\"output_bytes\":12", "\"output_bytes\":-1"),
        ),
        ("empty", String::new()),
        ("long", " ".repeat(2 << 20)),
    ];
    for (name, text) in &bad {
        fs::write(own.join(format!("{name}.json")), text).unwrap();
    }
    fs::write(own.join("note.txt"), "no record").unwrap();
    fs::write(folder.path().join("a file"), "no process").unwrap();
    let earlier = place(folder.path(), "g2").earlier().unwrap();
    assert_eq!(earlier.records.len(), 1);
    assert_eq!(earlier.damaged.len(), bad.len(), "{:?}", earlier.damaged);
    assert!(own.join("cut.json").exists());
}

#[test]
fn of_many_the_newest_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(folder.path(), "g1");
    let count = MOST_RECORDS as u64 + 3;
    for n in 0..count {
        let mut record = record(&format!("bg-{n}"), JobState::Exited(0));
        record.times_ms[0] = Some(1_000 - n);
        first.keep(&record).unwrap();
    }
    let records = place(folder.path(), "g2").earlier().unwrap().records;
    assert_eq!(records.len(), MOST_RECORDS);
    // Those with the highest numbers began first.
    assert!(
        records
            .iter()
            .all(|record| record.times_ms[0] > Some(1_000 - count + 2))
    );
    assert!(records.is_sorted_by_key(|record| record.times_ms[0]));
}

/// A job of a command that nobody runs.
fn begun(place: &JobPlace, project: &Path) -> Kept {
    let tools = Toolbox::new(ToolboxConfig {
        jobs: Some(place.clone()),
        ..ToolboxConfig::new(project)
    })
    .unwrap();
    let input = r#"{"command":"sleep 1","run_in_background":true,"description":"waits"}"#;
    let ToolJob::Background(job) = tools.prepare("bash", input).of(CallId(4)) else {
        panic!("it is no job");
    };
    assert_eq!(job.terms().limit, None, "it takes as long as it takes");
    job.begin().unwrap()
}

#[test]
fn a_job_is_on_the_disk_before_it_runs_and_gone_if_it_cant() {
    let folder = tempfile::tempdir().unwrap();
    let first = place(&folder.path().join("jobs"), "g1");
    let kept = begun(&first, folder.path());
    let later = place(&folder.path().join("jobs"), "g2");
    let [record] = &later.earlier().unwrap().records[..] else {
        panic!("one record");
    };
    assert_eq!(
        (&*record.id, &record.state),
        ("bg-4", &JobState::Interrupted)
    );
    assert_eq!(record.description.as_deref(), Some("waits"));
    let Said::Detached(start, about) = kept.started(99) else {
        panic!("not that");
    };
    assert_eq!(
        (&*start.id, &*start.generation, start.finite),
        ("bg-4", "g1", true)
    );
    assert!(
        about.contains("99") && about.contains("jobs/g1/bg-4.out"),
        "{about}"
    );
    kept.discard();
    assert!(later.earlier().unwrap().records.is_empty());
    assert_eq!(entries(&folder.path().join("jobs/g1")).unwrap().len(), 0);
}

#[test]
fn a_job_that_writes_too_much_is_stopped_and_its_file_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder.path().join("jobs"), "g1").with_output_limit(10);
    let mut kept = begun(&place, folder.path());
    assert!(kept.take("12345678é".as_bytes()), "as much as it may");
    assert!(
        kept.tell(std::time::Instant::now()).is_none(),
        "not so soon"
    );
    assert!(!kept.take(b"x") && !kept.take(b"y"), "and no more");
    let (output, state) = kept.ended(Exit::Signal(15), Some(Stopped::Cancelled));
    assert_eq!(state, JobState::Stopped("output_limit".into()));
    let output = output.unwrap();
    assert_eq!(
        (output.bytes, output.chars, output.truncated),
        (10, 9, true)
    );
    let file = folder.path().join("jobs/g1/bg-4.out");
    assert_eq!(fs::read_to_string(file).unwrap(), "12345678é");
}

#[test]
fn how_a_job_ended_is_said_in_the_words_of_records() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder.path().join("jobs"), "g1");
    let ends = [
        (Exit::Code(3), None, JobState::Exited(3)),
        (Exit::Signal(9), None, JobState::Exited(137)),
        (
            Exit::Code(0),
            Some(Stopped::Cancelled),
            JobState::Stopped("user".into()),
        ),
        (
            Exit::Signal(15),
            Some(Stopped::TimedOut),
            JobState::Stopped("time_limit".into()),
        ),
    ];
    for (exit, stopped, expected) in ends {
        let (output, state) = begun(&place, folder.path()).ended(exit, stopped);
        assert_eq!((output, state), (None, expected));
    }
    let (output, state) = begun(&place, folder.path()).lost(&io::Error::other("no child"));
    assert!(output.is_some() && state == JobState::Interrupted);
}

#[test]
fn without_a_place_nothing_goes_on_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let tools = Toolbox::new(ToolboxConfig::new(folder.path())).unwrap();
    let input = r#"{"command":"true","background":"true"}"#;
    let ToolJob::Over(over) = tools.prepare("bash", input) else {
        panic!("it isn't refused");
    };
    assert!(over.text.contains("background"), "{}", over.text);
}

#[test]
fn a_session_that_keeps_nothing_leaves_nothing() {
    let place = JobPlace::temporary("g1").unwrap();
    place.keep(&record("bg-1", JobState::Running)).unwrap();
    let folder = place.inner.folder.clone();
    assert!(folder.is_dir() && !place.is_persistent());
    drop(place);
    assert!(!folder.exists());
}
