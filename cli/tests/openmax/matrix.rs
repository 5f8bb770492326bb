//! The scenarios of `docs/proof.md` that the other files don't have: a turn in each of its phases, through the program.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::program::{Home, Program, Setup, joined, of, types};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

fn write(id: &'static str) -> (&'static str, &'static str, Value) {
    let path = format!("{id}.txt");
    (id, "write_file", json!({ "path": path, "content": "x\n" }))
}

#[test]
fn om_13_an_approval_that_times_out_is_closed_and_the_turn_goes_on() {
    let home = Home::new();
    let calls = openai::calls(&[write("c1"), write("c2")]);
    let provider = Provider::start([calls, openai::says("Half of it.")]);
    let mut program = Setup::openai_in(&home, &provider, "ask")
        .args(&["--approval-limit", "0.5"])
        .start();
    program.user("go");
    let first = program.see_type("approval_request");
    program.see(&json!({ "type": "approval_settled", "outcome": "timed_out" }));
    program.see(&json!({ "type": "tool_end", "call_id": "c1", "ok": false }));
    // The second question has its own time.
    let second = program.see_type("approval_request");
    program.approve(&second["approval_id"], true);
    program.see(&json!({ "type": "approval_settled", "outcome": "approved" }));
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    program.approve(&first["approval_id"], true);
    program.see_type("protocol_error");
    assert_eq!(home.read("c1.txt"), None);
    assert_eq!(home.read("c2.txt").as_deref(), Some("x\n"));
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_14_the_second_of_two_gated_calls_waits_behind_the_first_ones_question() {
    let home = Home::new();
    let calls = openai::calls(&[write("c1"), write("c2")]);
    let provider = Provider::start([calls, openai::says("Done.")]);
    let mut program = Setup::openai_in(&home, &provider, "ask").start();
    program.user("go");
    let first = program.see_type("approval_request");
    program.quiet(Duration::from_millis(300));
    assert_eq!(of(program.seen(), "tool_start").len(), 1);
    program.approve(&first["approval_id"], false);
    program.see(&json!({ "type": "tool_end", "call_id": "c1", "ok": false }));
    let second = program.see_type("approval_request");
    assert_ne!(first["approval_id"], second["approval_id"]);
    program.approve(&second["approval_id"], true);
    program.see(&json!({ "type": "tool_end", "call_id": "c2", "ok": true }));
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    assert_eq!(home.read("c1.txt"), None);
    assert!(home.read("c2.txt").is_some());
}

#[test]
fn om_23_a_cancel_while_a_calls_arguments_stream_runs_nothing() {
    let home = Home::new();
    let half = openai::call_text(0, "c1", "write_file", "{\"path\":\"made.txt\",\"cont");
    let stalled = Reply::stream()
        .bytes(openai::text("Writing."))
        .bytes(half)
        .stall();
    let provider = Provider::start([stalled, openai::says("Next.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    program.see_type("token");
    // Nothing on the wire shows the arguments; they were sent with the text.
    std::thread::sleep(Duration::from_millis(200));
    program.cancel();
    program.see(&json!({ "type": "message_done", "text": "Writing." }));
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    assert!(of(program.seen(), "tool_start").is_empty());
    assert_eq!(joined(&program.turn("next"), "token"), "Next.");
    // A provider takes the history: what was called has its result, or the call isn't there.
    let messages = provider.request(2).json()["messages"].clone();
    let calls = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m.get("tool_calls").is_some());
    let results = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "tool");
    assert_eq!(calls.count(), results.count(), "{messages}");
    assert_eq!(home.read("made.txt"), None);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_23_a_cancel_while_the_history_is_summarised_ends_the_turn() {
    let home = Home::new();
    home.write("long.txt", &"words ".repeat(5_000));
    let read = openai::calls(&[("c1", "read_file", json!({ "path": "long.txt" }))]);
    let provider = Provider::start([read, Reply::stream().only(0).stall()]);
    // Summarised from 70 percent of 5120 - 1024 - 1024 on: more than the schemas and the prompt take, less than the file.
    let mut program = Setup::openai(&home, &provider)
        .args(&["--window", "5120", "--max-output", "1024"])
        .start();
    program.user("go");
    program.see(&json!({ "type": "tool_end", "call_id": "c1" }));
    // The second request isn't the next step's: no budget line announces it.
    provider.request(2);
    program.quiet(Duration::from_millis(200));
    program.cancel();
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
    assert_eq!(of(program.seen(), "budget").len(), 1);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_17_a_cancel_at_the_boundary_changes_no_end_that_is_decided() {
    let home = Home::new();
    let provider = Provider::start(["One.", "Two."].map(openai::says));
    let folder = home.path("data/turnwire/sessions");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join("index.lock")).unwrap();
    lock.lock().unwrap();
    let mut program = Setup::openai(&home, &provider).start();
    program.user("one");
    // The reply is whole, and the turn's end waits for the disk.
    program.see_type("message_done");
    std::thread::sleep(Duration::from_millis(200));
    program.cancel();
    let done = program.see_type("done");
    assert_eq!(done["stop_reason"], "stop");
    drop(lock);
    assert_eq!(of(&program.turn("two"), "done")[0]["stop_reason"], "stop");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

/// Brings a program into a phase of its turn.
struct Phase {
    name: &'static str,
    reply: fn() -> Reply,
    settings: &'static str,
    reached: fn(&mut Program, &Home, &Provider),
}

fn slow_call() -> Reply {
    let command = json!({ "command": "touch begun; sleep 1; touch done" });
    openai::calls(&[("c1", "bash", command)])
}

#[test]
fn om_09_quit_and_end_of_input_finish_the_turn_in_every_phase() {
    let phases = [
        Phase {
            name: "request out",
            reply: || {
                Reply::stream()
                    .wait(Duration::from_millis(700))
                    .bytes(openai::text("Late."))
                    .bytes(openai::finish("stop"))
            },
            settings: "",
            reached: |_, _, provider| drop(provider.request(1)),
        },
        Phase {
            name: "call running",
            reply: slow_call,
            settings: "",
            reached: |_, home, _| drop(wait_for("the call", || home.read("begun"))),
        },
        Phase {
            name: "retry wait",
            reply: || Reply::failure("503 Service Unavailable", "{}"),
            settings: "",
            reached: |program, _, _| drop(program.see_type("retry")),
        },
        Phase {
            name: "hook running",
            reply: || openai::says("Fine."),
            settings: "[[hook]]\nname = \"slow\"\nevent = \"turn_end\"\ncommand = \"touch begun; sleep 1\"\n",
            reached: |_, home, _| drop(wait_for("the hook", || home.read("begun"))),
        },
    ];
    for phase in phases {
        for end in ["{\"cmd\":\"quit\"}\n", ""] {
            let home = Home::new();
            home.settings(phase.settings);
            let provider = Provider::start([(phase.reply)(), openai::says("Done.")]);
            let mut program = Setup::openai(&home, &provider).start();
            program.user("go");
            (phase.reached)(&mut program, &home, &provider);
            if end.is_empty() {
                program.close_input();
            } else {
                program.raw(end);
            }
            let ended = program.wait();
            let name = phase.name;
            let dones = ended.of("done");
            assert_eq!(dones.len(), 1, "{name}: {:?}", ended.lines);
            assert_eq!(dones[0]["stop_reason"], "stop", "{name}");
            assert_eq!(ended.code, Some(0), "{name}");
            let ends = ended.of("tool_end");
            assert!(ends.iter().all(|line| line["ok"] == true), "{name}");
        }
    }
}

#[test]
fn om_04_30_a_crash_at_any_line_keeps_a_refusal_that_was_said() {
    let hook = "[[hook]]\nname = \"verify\"\nevent = \"turn_end\"\ncommand = \"test -e refused && exit 0; touch refused; echo tests fail; exit 2\"\n";
    let mut said = Vec::new();
    for number in 1.. {
        let home = Home::new();
        home.settings(hook);
        let provider = Provider::start(["One.", "Two.", "Three."].map(openai::says));
        let mut program = Setup::openai(&home, &provider).start();
        program.see_type("hello");
        program.user("go");
        let mut last = Value::Null;
        for _ in 0..number {
            last = program.see_any().expect("a line");
        }
        let lines = program.seen().to_vec();
        let over = last["type"] == "done";
        said = types(&lines)
            .iter()
            .map(|kind| (*kind).to_owned())
            .collect();
        program.crash();
        let refused = of(&lines, "turn_refused").first().map(|line| {
            let reason = line["reason"].as_str().unwrap();
            reason.to_owned()
        });
        let mut program = Setup::openai(&home, &provider)
            .args(&["--continue"])
            .start();
        if refused.is_none() && !over {
            // Nothing was acknowledged; whether there is a session to go on with is open.
            program.close_input();
            program.wait();
            continue;
        }
        let shown = program.see_type("transcript")["messages"].to_string();
        let refused = refused.expect("it is refused before it is done");
        for text in ["go", "One.", &refused] {
            assert!(shown.contains(text), "after line {number}: {text}: {shown}");
        }
        assert!(!over || shown.contains("Two."), "{shown}");
        program.turn("next");
        program.close_input();
        program.wait();
        let sent = provider.requests().last().unwrap().json().to_string();
        assert!(sent.contains("One.") && sent.contains(&refused), "{sent}");
        if over {
            break;
        }
    }
    for kind in ["message_done", "turn_refused", "done"] {
        assert!(said.iter().any(|found| found == kind), "{said:?}");
    }
}

#[test]
fn e05_input_closed_while_asking() {
    let home = Home::new();
    let calls = openai::calls(&[write("c1"), write("c2")]);
    let provider = Provider::start([calls, openai::says("Half of it.")]);
    let mut program = Setup::openai_in(&home, &provider, "ask").start();
    program.user("go");
    let id = program.see_type("approval_request")["approval_id"].clone();
    // The last line has no newline, and counts.
    program.raw(json!({ "cmd": "approve", "approval_id": id, "approved": true }).to_string());
    program.close_input();
    let ended = program.wait();
    let outcomes: Vec<&Value> = ended
        .of("approval_settled")
        .iter()
        .map(|line| &line["outcome"])
        .collect();
    assert_eq!(outcomes, ["approved", "declined"]);
    assert_eq!((ended.of("done").len(), ended.code), (1, Some(0)));
    assert!(home.read("c1.txt").is_some() && home.read("c2.txt").is_none());
}
