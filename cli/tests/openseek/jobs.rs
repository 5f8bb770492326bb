//! Jobs of real processes, whatever becomes of the engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use turnwire::protocol::openseek::Openseek;

use crate::support::openseek::{calls, says};
use crate::support::program::{Home, Program, Setup};
use crate::support::provider::{Provider, Reply};
use crate::support::wait_for;

/// A reply that begins this command in the background.
fn begin(command: &str) -> Reply {
    let call = json!({"command": command, "background": true});
    calls("bash", &call)
}

fn snapshot(program: &mut Program<Openseek>) -> Vec<Value> {
    program.send(&json!({"command": "jobs_snapshot", "request_id": "j"}));
    program.see_event("jobs_snapshot")["jobs"]
        .as_array()
        .unwrap()
        .clone()
}

/// All records of jobs below a folder.
fn records(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(records(&path));
        } else if path.extension().is_some_and(|it| it == "json")
            && path.to_string_lossy().contains(".jobs/")
        {
            found.push(path);
        }
    }
    found
}

#[test]
fn os_10_a_job_outlives_its_turn_and_is_stopped_by_its_name() {
    let home = Home::new();
    let provider = Provider::start([begin("sleep 300"), says("It runs.")]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.prompt("begin");
    let jobs = snapshot(&mut program);
    assert_eq!(jobs[0]["state"], json!({"kind": "running"}));
    program.send(&json!({
        "command": "job_stop", "request_id": "s", "generation": jobs[0]["generation"], "job_id": jobs[0]["id"],
    }));
    let result = program.see_event("job_stop_result");
    assert_eq!(result["outcome"], "stopped");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

/// Whenever the engine is killed: no record says afterwards that its job runs.
#[test]
fn os_10_a_killed_engine_leaves_records_of_interrupted_jobs() {
    let mut interrupted = 0;
    for pause in [0, 3, 10, 30, 300] {
        let home = Home::new();
        let data = home.path("sessions");
        let folder = data.to_str().unwrap();
        let command = "for i in $(seq 40); do echo $i; sleep 0.05; done";
        let provider = Provider::start([begin(command), says("It runs."), says("Again.")]);
        let setup = Setup::openseek(&home, &provider, "auto").args(&["--session-dir", folder]);
        let mut program = setup.start_as::<Openseek>();
        program.send(&json!({"command": "prompt", "text": "begin"}));
        program.see_event("job_changed");
        program.see_event("agent_finished");
        std::thread::sleep(Duration::from_millis(pause));
        program.signal("KILL");
        drop(program);
        let kept = wait_for("the record", || {
            Some(records(&data)).filter(|it| !it.is_empty())
        });
        let text = std::fs::read_to_string(&kept[0]).unwrap();
        let record: Value = serde_json::from_str(&text).expect("a whole record");
        assert_eq!(record["command"], command);

        let setup = Setup::openseek(&home, &provider, "auto");
        let mut later = setup
            .args(&["--session-dir", folder, "--continue"])
            .start_as::<Openseek>();
        let jobs = snapshot(&mut later);
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        assert_eq!(jobs[0]["state"]["kind"], "interrupted", "{jobs:?}");
        interrupted += 1;
        // It is another process's, which nobody can stop any more.
        later.send(&json!({
            "command": "job_stop", "request_id": "s", "generation": jobs[0]["generation"], "job_id": jobs[0]["id"],
        }));
        let result = later.see_event("job_stop_result");
        assert_eq!(result["outcome"], "wrong_runtime");
        later.close_input();
        assert_eq!(later.wait().code, Some(0));
    }
    assert_eq!(interrupted, 5);
}
