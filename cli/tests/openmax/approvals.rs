//! Approval modes, questions and their answers.

use serde_json::{Value, json};

use crate::support::program::{Home, Program, Setup, joined, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

fn write(id: &'static str) -> Reply {
    openai::calls(&[(
        id,
        "write_file",
        json!({ "path": format!("{id}.txt"), "content": "x\n" }),
    )])
}

fn asking(home: &Home, provider: &Provider) -> Program {
    Setup::openai_in(home, provider, "ask").start()
}

#[test]
fn om_05_an_approved_call_runs() {
    let home = Home::new();
    let provider = Provider::start([write("c1"), openai::says("Done.")]);
    let mut program = asking(&home, &provider);
    program.user("go");
    let request = program.see_type("approval_request");
    assert_eq!(
        (&request["name"], &request["reason"]),
        (&json!("write_file"), &json!("gate"))
    );
    assert_eq!(
        (&request["source_path"], &request["source_sha"]),
        (&json!(""), &json!(""))
    );
    assert_eq!(request["summary"], "c1.txt");
    assert!(request.get("env").is_none(), "{request}");
    assert_eq!(home.read("c1.txt"), None, "nothing runs before the answer");
    program.approve(&request["approval_id"], true);
    let settled = program.see_type("approval_settled");
    assert_eq!(
        (&settled["approval_id"], &settled["outcome"]),
        (&request["approval_id"], &json!("approved"))
    );
    assert_eq!(program.see_type("tool_end")["ok"], true);
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    assert_eq!(home.read("c1.txt").as_deref(), Some("x\n"));
}

#[test]
fn om_05_a_declined_call_doesnt_run_and_the_turn_goes_on() {
    let home = Home::new();
    let provider = Provider::start([write("c1"), openai::says("Then not.")]);
    let mut program = asking(&home, &provider);
    program.user("go");
    let request = program.see_type("approval_request");
    program.approve(&request["approval_id"], false);
    assert_eq!(program.see_type("approval_settled")["outcome"], "declined");
    assert_eq!(program.see_type("tool_end")["ok"], false);
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    assert_eq!(joined(program.seen(), "token"), "Then not.");
    assert_eq!(home.read("c1.txt"), None);
}

#[test]
fn e04_om_11_wrong_answers_settle_nothing() {
    let home = Home::new();
    let provider = Provider::start([write("c1"), write("c2")]);
    let mut program = asking(&home, &provider);
    program.user("go");
    let first = program.see_type("approval_request")["approval_id"].clone();
    program.approve(&json!("no-such-id"), true);
    program.see_type("protocol_error");
    program.approve(&first, false);
    program.see(&json!({ "type": "approval_settled", "outcome": "declined" }));
    program.see(&json!({ "type": "tool_end", "call_id": "c1", "ok": false }));
    program.approve(&first, true);
    program.see_type("protocol_error");
    let second = match of(program.seen(), "approval_request").get(1) {
        Some(request) => request["approval_id"].clone(),
        None => program.see_type("approval_request")["approval_id"].clone(),
    };
    program.cancel();
    program.see(&json!({ "type": "approval_settled", "outcome": "cancelled" }));
    program.see(&json!({ "type": "tool_end", "call_id": "c2", "ok": false }));
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    program.approve(&second, true);
    program.see_type("protocol_error");
    program.close_input();
    let ended = program.wait();
    assert_eq!(
        (
            ended.of("approval_settled").len(),
            ended.of("protocol_error").len()
        ),
        (2, 3)
    );
    assert_eq!((home.read("c1.txt"), home.read("c2.txt")), (None, None));
}

#[test]
fn om_05_readonly_refuses_what_writes_and_asks_nothing() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    let reply = openai::calls(&[
        ("c1", "read_file", json!({ "path": "a.txt" })),
        (
            "c2",
            "write_file",
            json!({ "path": "b.txt", "content": "x" }),
        ),
        ("c3", "bash", json!({ "command": "touch c.txt" })),
    ]);
    let provider = Provider::start([reply, openai::says("I see.")]);
    let mut program = Setup::openai_in(&home, &provider, "readonly").start();
    let lines = program.turn("go");
    let ends: Vec<&Value> = of(&lines, "tool_end")
        .iter()
        .map(|line| &line["ok"])
        .collect();
    assert_eq!(ends, [true, false, false]);
    assert_eq!(of(&lines, "tool_start").len(), 3);
    assert!(of(&lines, "approval_request").is_empty());
    assert_eq!((home.read("b.txt"), home.read("c.txt")), (None, None));
}

#[test]
fn om_14_auto_never_asks() {
    let home = Home::new();
    let reply = openai::calls(&[
        (
            "c1",
            "write_file",
            json!({ "path": "b.txt", "content": "x" }),
        ),
        ("c2", "bash", json!({ "command": "touch c.txt" })),
    ]);
    let provider = Provider::start([reply, openai::says("Done.")]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    assert!(of(&lines, "approval_request").is_empty());
    assert!(home.read("b.txt").is_some() && home.read("c.txt").is_some());
}

#[test]
fn om_07_a_mode_is_answered_once_it_is_saved_and_survives() {
    let home = Home::new();
    let provider = Provider::start([
        write("c1"),
        openai::says("One."),
        write("c2"),
        openai::says("Two."),
    ]);
    let mut program = asking(&home, &provider);
    program.send(&json!({ "cmd": "approval_mode", "mode": "auto" }));
    assert_eq!(
        program.see_type("approval_mode"),
        json!({ "type": "approval_mode", "mode": "auto" })
    );
    let saved = std::fs::read_to_string(home.path("state/turnwire/trust.toml")).unwrap();
    assert!(saved.contains("approval = \"auto\""), "{saved}");
    assert!(of(&program.turn("go"), "approval_request").is_empty());
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    // No flag this time: the saved mode counts.
    let url = provider.url() + "/v1";
    let mut program = Setup::serve(&home)
        .args(&["--api", "openai", "--model", "m-1", "--base-url", &url])
        .start();
    let lines = program.turn("go");
    assert!(of(&lines, "approval_request").is_empty());
    assert!(home.read("c2.txt").is_some());
}

#[test]
fn om_07_an_unknown_mode_names_the_legal_ones() {
    let home = Home::new();
    let ended = Setup::serve(&home).run("{\"cmd\":\"approval_mode\",\"mode\":\"yolo\"}\n");
    assert_eq!(ended.types(), ["hello", "protocol_error"]);
    let message = ended.lines[1]["message"].as_str().unwrap();
    for word in ["auto", "ask", "readonly"] {
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn om_07_where_the_mode_cant_be_saved_it_doesnt_change_and_the_error_says_so() {
    let home = Home::new();
    // The built-in script runs without trust, and without trust there is nothing to save a mode with.
    let ended = Setup::serve(&home).run("{\"cmd\":\"approval_mode\",\"mode\":\"auto\"}\n");
    assert_eq!(ended.types(), ["hello", "protocol_error"]);
    let message = ended.lines[1]["message"].as_str().unwrap();
    assert!(message.contains("isn't trusted"), "{message}");

    let provider = Provider::start([write("c1")]);
    let mut program = asking(&home, &provider);
    program.see_type("hello");
    // A folder in the place of the lock: nothing can be saved.
    let lock = home.path("state/turnwire/trust.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    program.send(&json!({ "cmd": "approval_mode", "mode": "auto" }));
    assert!(
        program.see_type("protocol_error")["message"]
            .as_str()
            .unwrap()
            .contains("trust.toml")
    );
    program.user("go");
    program.see_type("approval_request");
    program.cancel();
    program.see_type("done");
}

#[test]
fn om_07_an_agent_cant_change_the_mode() {
    let home = Home::new();
    let ended = Setup::serve(&home)
        .env("TURNWIRE_SESSION", "outer")
        .run("{\"cmd\":\"approval_mode\",\"mode\":\"auto\"}\n");
    assert_eq!(ended.types(), ["hello", "protocol_error"]);
}

#[test]
fn om_14_a_question_stays_open_though_the_mode_changes() {
    let home = Home::new();
    let provider = Provider::start([write("c1"), write("c2"), openai::says("Done.")]);
    let mut program = asking(&home, &provider);
    program.user("go");
    let request = program.see_type("approval_request");
    program.send(&json!({ "cmd": "approval_mode", "mode": "auto" }));
    program.see_type("approval_mode");
    program.approve(&request["approval_id"], true);
    program.see(&json!({ "type": "approval_settled", "outcome": "approved" }));
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    // The second call wasn't asked about.
    assert_eq!(of(program.seen(), "approval_request").len(), 1);
    assert!(home.read("c2.txt").is_some());
}

#[test]
fn om_09_quit_declines_the_open_question_and_every_later_one() {
    for end in ["{\"cmd\":\"quit\"}\n", ""] {
        let home = Home::new();
        let provider = Provider::start([write("c1"), write("c2"), openai::says("Then not.")]);
        let mut program = asking(&home, &provider);
        program.user("go");
        program.see_type("approval_request");
        program.raw(end);
        program.close_input();
        let ended = program.wait();
        let outcomes: Vec<&Value> = ended
            .of("approval_settled")
            .iter()
            .map(|line| &line["outcome"])
            .collect();
        assert_eq!(outcomes, ["declined", "declined"]);
        assert_eq!(ended.of("done")[0]["stop_reason"], "stop");
        assert_eq!(
            (ended.code, home.read("c1.txt"), home.read("c2.txt")),
            (Some(0), None, None)
        );
    }
}
