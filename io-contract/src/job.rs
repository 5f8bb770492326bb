//! Background jobs: real commands that outlive their turns, their output, their records, and what is left of them.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use turnwire::vocab::{Interrupting, JobState};
use turnwire_io::jobs::JobPlace;

use crate::Driver;
use crate::rig::{PATIENCE, Rig, RigOptions};

fn kept(folder: &Path) -> JobPlace {
    JobPlace::kept(folder.join("jobs"), "1").unwrap()
}

fn little(folder: &Path) -> JobPlace {
    kept(folder).with_output_limit(1_000)
}

/// A session whose model begins this command in the background, and says so.
fn start<D: Driver>(command: &str, place: fn(&Path) -> JobPlace) -> Rig {
    let call = serde_json::json!({ "command": command, "background": true });
    let script = format!(
        "reply when prompt \"again\"\n  say: Again.\nreply when prompt \"begin\" and step 1\n  call bash {call}\nreply\n  say: It runs.\n"
    );
    let rig = Rig::start_openseek::<D>(RigOptions {
        jobs: Some(place),
        ..RigOptions::script(&script)
    });
    rig.say(r#"{"command":"prompt","text":"begin"}"#);
    rig
}

fn stop(rig: &Rig, generation: &str, job: &str) -> String {
    rig.say(&format!(
        r#"{{"command":"job_stop","request_id":"s","generation":"{generation}","job_id":"{job}"}}"#
    ));
    let result = rig.wait_for("job_stop_result");
    result["outcome"].as_str().unwrap().to_owned()
}

/// The record of the one job, as it lies on the disk.
fn record(rig: &Rig) -> Value {
    let text = std::fs::read(rig.path("jobs/1/bg-1.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Waits until the record says so.
fn wait_record(rig: &Rig, state: &str) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let record = record(rig);
        if record["state"]["kind"] == state {
            return record;
        }
        assert!(Instant::now() < until, "{record}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the process whose number is in the file is gone.
fn wait_gone(rig: &Rig) {
    let pid = rig.wait_for_file("pid");
    let process = format!("/proc/{}", pid.trim());
    let until = Instant::now() + PATIENCE;
    while Path::new(&process).exists() {
        assert!(Instant::now() < until, "{process} is there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// OS-10: a call that goes on outlives its turn; each step of it is told and on the disk, and its end once.
pub fn os_10_a_job_outlives_its_turn_and_its_record_is_on_the_disk<D: Driver>() {
    let command = "for i in $(seq 9); do echo $i; echo e$i >&2; done; printf é >&2; until [ -e go ]; do sleep 0.02; done; exit 3";
    let rig = start::<D>(command, kept);
    let started = rig.wait_for("job_changed");
    assert_eq!(
        (&started["kind"], &started["job"]["id"]),
        (&"started".into(), &"bg-1".into())
    );
    // Before anybody was told, it was on the disk.
    let first = record(&rig);
    assert_eq!(first["state"]["kind"], "running");
    assert_eq!(first["command"], command);
    let result = rig.wait_for("tool_result");
    let about = result["content"].as_str().unwrap();
    assert!(
        about.contains("bg-1.out") && about.contains("bg-1"),
        "{about}"
    );
    rig.wait_for("agent_finished");
    rig.say(r#"{"command":"jobs_snapshot","request_id":"j"}"#);
    let snapshot = rig.wait_for("jobs_snapshot");
    assert_eq!(snapshot["jobs"][0]["state"]["kind"], "running");
    rig.say(r#"{"command":"prompt","text":"again"}"#);
    rig.wait_for("agent_finished");
    std::fs::write(rig.path("go"), "").unwrap();
    let ended = loop {
        let changed = rig.wait_for("job_changed");
        if changed["kind"] != "updated" {
            break changed;
        }
    };
    assert_eq!(ended["kind"], "failed", "{ended}");
    assert_eq!(
        ended["job"]["state"],
        serde_json::json!({"kind":"exited","code":3})
    );
    assert_eq!(
        (&ended["job"]["output_bytes"], &ended["job"]["output_chars"]),
        (&47.into(), &46.into())
    );
    rig.wait_for("background_notice");
    let last = wait_record(&rig, "exited");
    for member in [
        "revision",
        "state",
        "output_bytes",
        "finished_at_ms",
        "output_file",
    ] {
        assert_eq!(last[member], ended["job"][member], "{member}");
    }
    let output = std::fs::read_to_string(rig.path("jobs/1/bg-1.out")).unwrap();
    // Either stream's words stand where they were written.
    let words: String = (1..10).map(|i| format!("{i}\ne{i}\n")).collect();
    assert_eq!(output, words + "é");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// OS-10: the four outcomes of a stop, and no child outlives it.
pub fn os_10_a_stop_ends_the_whole_group_and_has_four_outcomes<D: Driver>() {
    let rig = start::<D>("(echo $BASHPID > pid; exec sleep 300) & sleep 300", kept);
    rig.wait_for("agent_finished");
    rig.wait_for_file("pid");
    assert_eq!(stop(&rig, "1", "bg-9"), "not_found");
    assert_eq!(stop(&rig, "0", "bg-1"), "wrong_runtime");
    assert_eq!(stop(&rig, "1", "bg-1"), "stopped");
    wait_gone(&rig);
    assert_eq!(stop(&rig, "1", "bg-1"), "already_terminal");
    let last = wait_record(&rig, "stopped");
    assert_eq!(last["state"]["reason"], "user");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// OS-10: the session's end stops what runs, waits for it, and its record says so.
pub fn os_10_the_end_of_a_session_stops_its_jobs<D: Driver>() {
    let rig = start::<D>(
        "echo $$ > pid; trap '' TERM; while :; do sleep 0.1; done",
        kept,
    );
    rig.wait_for("agent_finished");
    rig.wait_for_file("pid");
    rig.close_input();
    rig.wait_for("job_changed");
    let path = rig.path("jobs");
    let pid = std::fs::read_to_string(rig.path("pid")).unwrap();
    let folder = path.clone();
    let watch = std::thread::spawn(move || {
        // It is looked at while the driver is about to leave: a record is never half written.
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let text = std::fs::read(folder.join("1/bg-1.json")).unwrap();
            let record: Value = serde_json::from_slice(&text).unwrap();
            if record["state"]["kind"] == "stopped" {
                return record;
            }
        }
        panic!("it was never stopped");
    });
    let record = watch.join().unwrap();
    assert_eq!(record["state"]["reason"], "session_ended");
    assert_eq!(rig.finish().0, 0);
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

/// P03: a job that floods its output is stopped, and its file is bounded.
pub fn p03_a_job_that_floods_its_output_is_stopped<D: Driver>() {
    let rig = start::<D>("yes", little);
    let ended = loop {
        let changed = rig.wait_for("job_changed");
        if changed["job"]["state"]["kind"] == "stopped" {
            break changed;
        }
    };
    assert_eq!(ended["kind"], "failed", "{ended}");
    assert_eq!(ended["job"]["state"]["reason"], "output_limit");
    assert_eq!(ended["job"]["output_bytes"], 1_000);
    assert_eq!(ended["job"]["output_truncated"], true);
    assert_eq!(
        std::fs::metadata(rig.path("jobs/1/bg-1.out"))
            .unwrap()
            .len(),
        1_000
    );
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// OS-10: a job that can't be kept, or can't run, is a call that failed.
pub fn os_10_a_job_that_cant_begin_is_a_failed_call<D: Driver>() {
    fn nowhere(folder: &Path) -> JobPlace {
        std::fs::write(folder.join("jobs"), "a file").unwrap();
        kept(folder)
    }
    let rig = start::<D>("true", nowhere);
    let result = rig.wait_for("tool_result");
    assert!(
        result["content"].as_str().unwrap().contains("can't keep"),
        "{result}"
    );
    rig.wait_for("agent_finished");
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    assert!(lines.iter().all(|line| line["event"] != "job_changed"));
}

/// What another process finds of a job that ran when this one was last heard of.
pub fn os_10_a_record_of_a_running_job_is_one_of_an_interrupted_job_to_others<D: Driver>() {
    let rig = start::<D>("sleep 300", kept);
    rig.wait_for("agent_finished");
    let other = JobPlace::kept(rig.path("jobs"), "2").unwrap();
    let earlier = other.earlier().unwrap();
    let [record] = &earlier.records[..] else {
        panic!("{earlier:?}");
    };
    assert_eq!(record.state, JobState::Interrupted);
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// A session whose model calls this command, until a steer lets it go.
fn call<D: Driver>(input: &Value, place: fn(&Path) -> JobPlace) -> Rig {
    let script = format!(
        "reply when prompt \"begin\" and step 1\n  call bash {input}\nreply\n  say: On with it.\n"
    );
    let rig = Rig::start_openseek::<D>(RigOptions {
        jobs: Some(place),
        interrupting: Some(Interrupting::Immediate),
        default_timeout: Some(Duration::from_secs(3)),
        ..RigOptions::script(&script)
    });
    rig.say(r#"{"command":"prompt","text":"begin"}"#);
    rig.wait_for_file("pid");
    rig.say(r#"{"command":"steer","kind":"prompt","text":"and now?"}"#);
    rig
}

fn wait_ended(rig: &Rig) -> Value {
    loop {
        let changed = rig.wait_for("job_changed");
        if changed["kind"] == "finished" || changed["kind"] == "failed" {
            return changed;
        }
    }
}

/// S-35: what a call wrote before it was let go, and what it writes behind that, is in the job's file.
pub fn s_35_a_call_that_is_let_go_runs_on_as_a_job_with_all_that_it_wrote<D: Driver>() {
    // It takes longer than a call may.
    let command = "echo one; echo two >&2; echo $$ > pid; sleep 3.2; until [ -e go ]; do sleep 0.02; done; echo three; exit 4";
    let rig = call::<D>(&serde_json::json!({ "command": command }), kept);
    let started = rig.wait_for("job_changed");
    assert_eq!(
        (&started["kind"], &started["job"]["id"]),
        (&"started".into(), &"bg-1".into())
    );
    assert_eq!(started["job"]["command"], command);
    let result = rig.wait_for("tool_result");
    let about = result["content"].as_str().unwrap();
    assert!(
        about.contains("bg-1.out") && about.contains("bg-1"),
        "{about}"
    );
    rig.wait_for("steer_applied");
    rig.wait_for("agent_finished");
    std::fs::write(rig.path("go"), "").unwrap();
    let ended = wait_ended(&rig);
    assert_eq!(
        ended["job"]["state"],
        serde_json::json!({"kind":"exited","code":4})
    );
    let last = wait_record(&rig, "exited");
    assert_eq!(last["output_bytes"], 14);
    let output = std::fs::read_to_string(rig.path("jobs/1/bg-1.out")).unwrap();
    let mut lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.pop(), Some("three"));
    lines.sort_unstable();
    assert_eq!(lines, ["one", "two"]);
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// S-35: a stop of the job ends all that the call had started.
pub fn s_35_a_call_that_was_let_go_is_ended_with_its_whole_group<D: Driver>() {
    let command = "(echo $BASHPID > pid; exec sleep 300) & sleep 300";
    let rig = call::<D>(&serde_json::json!({ "command": command }), kept);
    rig.wait_for("agent_finished");
    assert_eq!(stop(&rig, "1", "bg-1"), "stopped");
    wait_gone(&rig);
    assert_eq!(wait_record(&rig, "stopped")["state"]["reason"], "user");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// S-35: what the model said of the time counts; what is usual is for calls.
pub fn s_35_a_limit_of_the_model_s_counts_for_the_job_too_and_the_usual_one_does_not<D: Driver>() {
    let input = serde_json::json!({ "command": "echo $$ > pid; sleep 300", "timeout_seconds": 1 });
    let rig = call::<D>(&input, kept);
    assert_eq!(
        wait_ended(&rig)["job"]["state"],
        serde_json::json!({"kind":"stopped","reason":"time_limit"})
    );
    wait_gone(&rig);
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// S-35: where no file can be made for it, the call goes on as if nobody had asked.
pub fn s_35_a_call_that_cant_become_a_job_goes_on<D: Driver>() {
    fn nowhere(folder: &Path) -> JobPlace {
        std::fs::write(folder.join("jobs"), "a file").unwrap();
        kept(folder)
    }
    let input = serde_json::json!({ "command": "echo $$ > pid; sleep 0.2; echo over" });
    let rig = call::<D>(&input, nowhere);
    let result = rig.wait_for("tool_result");
    assert!(
        result["content"].as_str().unwrap().contains("over"),
        "{result}"
    );
    rig.wait_for("steer_applied");
    rig.wait_for("agent_finished");
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    assert!(lines.iter().all(|line| line["event"] != "job_changed"));
}

/// OS-10: a model's own stop waits for the end, which it isn't told of twice; and it reads on where it was.
pub fn os_10_a_model_stops_its_job_and_reads_what_it_wrote<D: Driver>() {
    let begin = serde_json::json!({
        "command": "echo hello; echo $$ > pid; sleep 300", "background": true,
    });
    let wait = serde_json::json!({ "command": "until [ -e pid ]; do sleep 0.02; done" });
    let calls = [
        ("bash", begin.to_string()),
        ("bash", wait.to_string()),
        ("job_stop", r#"{"job":"bg-1"}"#.into()),
        ("job_output", r#"{"job":"bg-1"}"#.into()),
        ("job_output", r#"{"job":"bg-1","from_byte":4}"#.into()),
        ("job_stop", r#"{"job":"bg-1"}"#.into()),
        ("job_stop", r#"{"job":"bg-9"}"#.into()),
        ("job_output", r#"{"job":"../bg-1"}"#.into()),
    ];
    let steps = calls
        .iter()
        .enumerate()
        .map(|(at, (name, input))| format!("reply when step {}\n  call {name} {input}\n", at + 1));
    let script = steps.collect::<String>() + "reply\n  say: Done.\n";
    let rig = Rig::start_openseek::<D>(RigOptions {
        jobs: Some(kept),
        ..RigOptions::script(&script)
    });
    rig.say(r#"{"command":"prompt","text":"begin"}"#);
    rig.wait_for("agent_finished");
    wait_gone(&rig);
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    let results: Vec<&str> = lines
        .iter()
        .filter(|line| line["event"] == "tool_result")
        .map(|line| line["content"].as_str().unwrap())
        .collect();
    let [_, _, stopped, all, rest, over, nothing, outside] = results[..] else {
        panic!("{results:?}")
    };
    assert!(stopped.contains("bg-1 was stopped: user"), "{stopped}");
    assert_eq!(all, "[job bg-1 was stopped: user; bytes 0 to 6]\nhello\n");
    assert_eq!(rest, "[job bg-1 was stopped: user; bytes 4 to 6]\no\n");
    assert!(over.contains("over already") && nothing.contains("no job"));
    assert!(outside.contains("there is no job"), "{outside}");
    assert!(
        lines
            .iter()
            .all(|line| line["event"] != "background_notice")
    );
}

/// OS-10: a record that can't be written any more says so, and the job goes on.
pub fn os_10_a_record_that_cant_be_kept_says_so<D: Driver>() {
    let command = "echo $$ > pid; until [ -e more ]; do sleep 0.02; done; echo more; until [ -e go ]; do sleep 0.02; done";
    let rig = start::<D>(command, kept);
    rig.wait_for("agent_finished");
    rig.wait_for_file("pid");
    std::fs::rename(rig.path("jobs/1"), rig.path("jobs/2")).unwrap();
    std::fs::write(rig.path("jobs/1"), "a file").unwrap();
    std::fs::write(rig.path("more"), "").unwrap();
    let told = loop {
        let changed = rig.wait_for("job_changed");
        if !changed["job"]["persistence_error"].is_null() {
            break changed;
        }
    };
    assert_eq!(told["job"]["state"]["kind"], "running", "{told}");
    std::fs::write(rig.path("go"), "").unwrap();
    let ended = wait_ended(&rig);
    assert_eq!(
        ended["job"]["persistence_error"], told["job"]["persistence_error"],
        "{ended}"
    );
    assert_eq!(ended["job"]["state"]["code"], 0);
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}
