//! Turns that a host asks for, and runs of one task.

use serde_json::json;
use turnwire::protocol::openseek::Openseek;

use crate::support::openseek::{calls, says};
use crate::support::program::{Home, Setup};
use crate::support::provider::Provider;

#[test]
fn os_10_a_prompt_is_a_turn_with_one_end() {
    let home = Home::new();
    let call = json!({"path": "."});
    let provider = Provider::start([calls("list_dir", &call), says("Nothing."), says("Again.")]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    assert_eq!(program.prompt("look")["answer"], "Nothing.");
    let events = |event: &str| {
        let seen = program.seen().iter();
        seen.filter(|line| line["event"] == *event).count()
    };
    assert_eq!(
        (events("agent_step"), events("usage"), events("tool_result")),
        (2, 2, 1)
    );
    assert_eq!(program.prompt("again")["answer"], "Again.");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_09_os_a08_a_question_is_answered_by_its_id() {
    let home = Home::new();
    let write = json!({"path": "made.txt", "content": "hello"});
    let provider = Provider::start([calls("write_file", &write), says("Written.")]);
    let mut program = Setup::openseek(&home, &provider, "ask").start_as::<Openseek>();
    program.send(&json!({"command": "prompt", "text": "write"}));
    let asked = program.see_event("approval_requested");
    assert!(!home.project().join("made.txt").exists());
    program.send(&json!({"command": "approval", "id": asked["id"], "allow": true}));
    let resolved = program.see_event("approval_resolved");
    assert_eq!(
        (&resolved["id"], &resolved["outcome"]),
        (&asked["id"], &json!("allowed_once"))
    );
    program.see_event("agent_finished");
    assert!(home.project().join("made.txt").exists());
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_a11_a_line_that_isnt_json_is_the_end_of_the_input() {
    let home = Home::new();
    let provider = Provider::start([says("Done.")]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.prompt("one");
    program.raw("not JSON\n");
    program.see_event("command_error");
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_10_a_run_has_its_task_from_the_command_line() {
    let home = Home::new();
    let provider = Provider::start([says("Done.")]);
    let setup = Setup::openseek(&home, &provider, "auto");
    let program = setup
        .args(&["--mode", "run", "--task", "do it"])
        .start_as::<Openseek>();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    let events: Vec<&str> = ended
        .lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!(events.first(), Some(&"session_started"), "{events:?}");
    assert_eq!(events.last(), Some(&"agent_finished"), "{events:?}");
}

#[test]
fn os_a12_a_run_that_would_ask_fails_before_there_is_a_session() {
    let home = Home::new();
    let provider = Provider::start([]);
    for (args, why) in [
        (vec!["--mode", "run", "--task", "x"], "nobody can be asked"),
        (vec!["--mode", "run"], "--task"),
        (vec!["--task", "x"], "--task"),
    ] {
        let output = Setup::openseek(&home, &provider, "ask")
            .args(&args)
            .output();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(why), "{error}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }
}
