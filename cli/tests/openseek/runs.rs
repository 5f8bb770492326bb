//! Tasks that the model hands to agents of their own.

use serde_json::{Value, json};
use turnwire::protocol::openseek::Openseek;

use crate::support::openseek::{calls, says};
use crate::support::program::{Home, Program, Setup};
use crate::support::provider::Provider;

fn events<'a>(program: &'a Program<Openseek>, event: &str) -> Vec<&'a Value> {
    let seen = program.seen().iter();
    seen.filter(|line| line["event"] == *event).collect()
}

#[test]
fn os_10_a_task_is_a_run_of_its_own_with_its_brackets_and_its_report() {
    let home = Home::new();
    let provider = Provider::start([
        calls(
            "task",
            &json!({"description": "look around", "prompt": "Look at the folder."}),
        ),
        calls("list_dir", &json!({"path": "."})),
        says("There is nothing."),
        says("The folder is empty."),
    ]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    assert_eq!(program.prompt("look")["answer"], "The folder is empty.");
    let [begun] = events(&program, "subrun_started")[..] else {
        panic!("{:?}", program.seen())
    };
    let [over] = events(&program, "subrun_finished")[..] else {
        panic!("{:?}", program.seen())
    };
    assert_eq!(begun["label"], "look around");
    assert_eq!(
        (&over["id"], &over["status"], &over["steps"]),
        (&begun["id"], &json!("captured"), &json!(2))
    );
    assert_eq!(
        (&over["prompt_tokens"], &over["completion_tokens"]),
        (&json!(80), &json!(14))
    );
    let [result] = events(&program, "tool_result")[..] else {
        panic!("{:?}", program.seen())
    };
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("There is nothing.")
    );
    // What it does inside has no lines, and its requests know nothing of the conversation.
    assert_eq!(events(&program, "agent_step").len(), 2);
    let asked = provider.requests();
    let said = asked[1].json()["messages"].to_string();
    assert!(
        said.contains("Look at the folder.") && !said.contains("\"look\""),
        "{said}"
    );
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_09_a_task_asks_the_host_as_any_other_call_does() {
    let home = Home::new();
    let provider = Provider::start([
        calls("task", &json!({"prompt": "Write it."})),
        calls(
            "write_file",
            &json!({"path": "made.txt", "content": "hello"}),
        ),
        says("It is written."),
        says("Done."),
    ]);
    let mut program = Setup::openseek(&home, &provider, "ask").start_as::<Openseek>();
    program.send(&json!({"command": "prompt", "text": "write"}));
    let asked = program.see_event("approval_requested");
    program.send(&json!({"command": "approval", "id": asked["id"], "allow": true}));
    program.see_event("agent_finished");
    assert!(home.project().join("made.txt").exists());
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_10_a_task_in_the_background_is_a_job() {
    let home = Home::new();
    let task = json!({"prompt": "Wait for it.", "background": true});
    let provider = Provider::start([
        calls("task", &task),
        // The run's and the turn's next requests come in either order.
        says("One of both."),
        says("The other."),
    ]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.send(&json!({"command": "prompt", "text": "begin"}));
    let begun = program.see(&json!({"event": "job_changed", "kind": "started"}));
    assert_eq!(begun["job"]["id"], "run-1");
    // Its brackets are closed before the turn's, and its job goes on.
    program.see_event("subrun_finished");
    let over = program.see(&json!({"event": "job_changed", "kind": "finished"}));
    assert_eq!(over["job"]["state"], json!({"kind": "exited", "code": 0}));
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_09_a_cancel_ends_a_task_and_what_it_runs() {
    let home = Home::new();
    let provider = Provider::start([
        calls("task", &json!({"prompt": "Wait."})),
        calls("bash", &json!({"command": "touch begun; sleep 300"})),
    ]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.send(&json!({"command": "prompt", "text": "begin"}));
    let begun = home.project().join("begun");
    crate::support::wait_for("the command", || begun.exists().then_some(()));
    program.send(&json!({"command": "cancel"}));
    let over = program.see_event("subrun_finished");
    assert_eq!(over["status"], "cancelled");
    program.see_event("agent_aborted");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn os_a10_a_goal_is_met_when_the_model_says_so() {
    let home = Home::new();
    let provider = Provider::start([
        says("Begun."),
        calls("goal", &json!({"status": "met"})),
        says("It is met."),
    ]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.send(&json!({"command": "goal", "action": "set", "text": "be done", "auto": true}));
    program.see_event("goal_updated");
    program.send(&json!({"command": "prompt", "text": "go"}));
    program.see_event("goal_continue");
    program.see_event("agent_finished");
    assert!(events(&program, "goal_budget_exhausted").is_empty());
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

/// The transcripts of sessions within sessions.
fn transcripts(home: &Home) -> Vec<(String, String)> {
    let folder = home.path("data/turnwire/sessions");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            turnwire::protocol::openseek::split_child_session_id(&name)?;
            Some((name, std::fs::read_to_string(&path).ok()?))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn os_11_a_run_keeps_its_transcript_under_its_parent_s_id_and_its_number() {
    let home = Home::new();
    let task = |what: &str| calls("task", &json!({ "prompt": what }));
    let provider = Provider::start([
        task("Look here."),
        // It hands on what it was told.
        task("Look there."),
        says("Nothing there."),
        says("Nothing here."),
        says("There is nothing."),
        task("Look again."),
        says("Nothing yet."),
        says("Still nothing."),
    ]);
    let mut program = Setup::openseek(&home, &provider, "auto").start_as::<Openseek>();
    program.prompt("look");
    assert_eq!(events(&program, "subrun_started")[0]["id"], "sr-1");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    let first = transcripts(&home);
    let [(child, words), (grandchild, deeper)] = &first[..] else {
        panic!("{first:?}")
    };
    let (parent, number) = turnwire::protocol::openseek::split_child_session_id(child).unwrap();
    assert_eq!((number, grandchild), (1, &format!("{child}-sr-2")));
    for said in ["Look here.", "Nothing there.", "Nothing here."] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(deeper.contains("Look there.") && !deeper.contains("Look here."));
    // It is no session that goes on, and the next process names its own behind it.
    let mut program = Setup::openseek(&home, &provider, "auto")
        .args(&["--continue"])
        .start_as::<Openseek>();
    program.prompt("once more");
    assert_eq!(events(&program, "subrun_started")[0]["id"], "sr-3");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    let names: Vec<String> = transcripts(&home)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            format!("{parent}-sr-1"),
            format!("{parent}-sr-1-sr-2"),
            format!("{parent}-sr-3")
        ]
    );
}
