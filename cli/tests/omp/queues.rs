//! Steering and following up while a run is open.

use serde_json::json;
use turnwire::protocol::omp::Omp;

use crate::support::omp::{deltas, order};
use crate::support::program::{Home, Setup, of};
use crate::support::provider::{Gate, Provider, Reply};
use crate::support::replies::openai;

fn held(gate: &Gate) -> Reply {
    Reply::stream()
        .bytes(openai::text("On my "))
        .gate(gate)
        .bytes(openai::text("way."))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE)
}

#[test]
fn omp_06_a_steer_goes_into_the_run() {
    let (home, gate) = (Home::new(), Gate::new());
    let provider = Provider::start([held(&gate), openai::says("Turning left.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Go right.");
    assert_eq!(
        program.ask("steer", json!({ "message": "Go left." }))["success"],
        true
    );
    assert_eq!(program.data("get_state")["queuedMessageCount"], 1);
    gate.open();
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    let mut lines = program.seen().to_vec();
    lines.retain(|line| line["type"] != "response");
    let seen = order(&lines);
    assert_eq!(
        seen,
        [
            "agent_start",
            "turn_start",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "turn_end",
            "turn_start",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "turn_end",
            "agent_end",
            "prompt_result"
        ]
    );
    assert_eq!(deltas(program.seen()), "On my way.Turning left.");
    assert_eq!(program.data("get_state")["queuedMessageCount"], 0);
    let body = provider.request(2).json().to_string();
    assert!(body.contains("Go left."), "{body}");
}

#[test]
fn omp_06_a_follow_up_comes_after_it() {
    let (home, gate) = (Home::new(), Gate::new());
    let provider = Provider::start([held(&gate), openai::says("Then this.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Do the first.");
    assert_eq!(
        program.ask("follow_up", json!({ "message": "Do the second." }))["success"],
        true
    );
    gate.open();
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    program.see_type("session_settled");
    assert_eq!(of(program.seen(), "agent_start").len(), 1);
    assert_eq!(deltas(program.seen()), "On my way.Then this.");
}

#[test]
fn omp_05_a_prompt_in_an_open_run_says_how_or_fails() {
    let (home, gate) = (Home::new(), Gate::new());
    let provider = Provider::start([held(&gate), openai::says("Queued.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p1", "One.");
    let busy = program.ask("prompt", json!({ "message": "Two." }));
    assert_eq!(busy["success"], false);
    let text = busy["error"].as_str().unwrap();
    assert!(text.starts_with("Agent is already processing."), "{text}");
    program.command(
        "p3",
        "prompt",
        json!({ "message": "Three.", "streamingBehavior": "followUp" }),
    );
    program.see(&json!({ "type": "response", "id": "p3", "success": true }));
    gate.open();
    program.see(&json!({ "type": "prompt_result", "id": "p3", "status": "completed" }));
    assert_eq!(of(program.seen(), "prompt_result").len(), 2);
}

#[test]
fn omp_06_a_prompt_that_was_taken_back_is_never_sent() {
    let (home, gate) = (Home::new(), Gate::new());
    let provider = Provider::start([held(&gate), openai::says("Alone.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Do the first.");
    program.command(
        "q",
        "prompt",
        json!({ "message": "Do the second.", "streamingBehavior": "followUp" }),
    );
    program.see(&json!({ "type": "response", "id": "q", "success": true }));
    let taken = json!({ "message": "Do the second.", "queue": "followUp" });
    let response = program.ask("remove_queued_message", taken.clone());
    assert_eq!(response["data"]["removed"], true, "{response}");
    assert_eq!(program.data("get_state")["queuedMessageCount"], 0);
    // It is gone: there is nothing to take back a second time.
    let response = program.ask("remove_queued_message", taken);
    assert_eq!(response["data"]["removed"], false, "{response}");
    gate.open();
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    program.see_type("session_settled");
    let ends = of(program.seen(), "prompt_result");
    let ends: Vec<_> = ends
        .iter()
        .map(|end| (&end["id"], &end["status"]))
        .collect();
    assert_eq!(
        ends,
        [
            (&json!("q"), &json!("aborted")),
            (&json!("p"), &json!("completed"))
        ]
    );
    assert_eq!(deltas(&program.turn("And now?")), "Alone.");
    let body = provider.request(2).json().to_string();
    assert!(!body.contains("the second"), "{body}");
}

#[test]
fn omp_07_what_an_abort_gives_back_shows_in_no_queue() {
    let (home, gate) = (Home::new(), Gate::new());
    let provider = Provider::start([held(&gate), openai::says("Alone.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Do the first.");
    for (id, message) in [("q", "Second."), ("r", "Third.")] {
        program.command(
            id,
            "prompt",
            json!({ "message": message, "streamingBehavior": "followUp" }),
        );
        program.see(&json!({ "type": "response", "id": id, "success": true }));
    }
    let back = program.ask("abort_and_restore_queue", json!({}));
    let given: Vec<_> = back["data"]["followUp"].as_array().unwrap().to_vec();
    assert_eq!(given.len(), 2, "{back}");
    program.see_type("session_settled");
    let waiting: Vec<usize> = of(program.seen(), "queue_update")
        .iter()
        .map(|line| line["followUp"].as_array().map_or(99, Vec::len))
        .collect();
    assert_eq!(waiting, [1, 2, 0]);
    assert_eq!(deltas(&program.turn("And now?")), "Alone.");
}
