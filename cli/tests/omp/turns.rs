//! Prompts and what comes of them, and what a host may ask of the state.

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use crate::support::omp::{deltas, order, text_of};
use crate::support::program::{Home, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

/// The lines of a run of one answer, from the prompt's response on.
const RUN: [&str; 11] = [
    "response",
    "agent_start",
    "turn_start",
    "message_start user",
    "message_end user",
    "message_start assistant",
    "message_update",
    "message_end assistant",
    "turn_end",
    "agent_end",
    "prompt_result",
];

#[test]
fn omp_01_ready_is_the_first_line_and_needs_no_input() {
    let home = Home::new();
    let mut program = Setup::serve_in(&home, "omp").start_as::<Omp>();
    let ready = program.see_type("ready");
    assert_eq!(
        ready,
        json!({
            "type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2],
            "maxFrameBytes": 1_048_576, "maxReassembledFrameBytes": 67_108_864,
        })
    );
    program.see_type("available_commands_update");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_03_a_prompt_is_answered_and_then_done() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::text("Hello "))
        .bytes(openai::text("there. "))
        .bytes(openai::finish("stop"))
        .bytes(openai::usage(40, 7, 0))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("Again.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Greet me.");
    assert_eq!(order(&lines), RUN);
    assert_eq!(deltas(&lines), "Hello there. ");
    let result = lines.last().unwrap();
    assert_eq!(
        (&result["status"], &result["agentInvoked"]),
        (&json!("completed"), &json!(true))
    );
    let end = of(&lines, "agent_end")[0];
    let said: Vec<String> = end["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text_of)
        .collect();
    assert_eq!(said, ["Greet me.", "Hello there. "]);
    let answer = &of(&lines, "message_end")[1]["message"];
    assert_eq!(answer["stopReason"], "stop");
    assert_eq!(answer["usage"]["output"], 7);
    program.see_type("session_settled");
    assert_eq!(
        program.data("get_last_assistant_text")["text"],
        "Hello there."
    );
    program.turn("Once more.");
    let body = provider.request(2).json();
    let roles: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .filter(|role| *role != "system")
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_02_ids_come_back_as_they_were_and_unknown_commands_are_refused() {
    let home = Home::new();
    let mut program = Setup::serve_in(&home, "omp").start_as::<Omp>();
    program.raw("{\"id\":7,\"type\":\"get_state\"}\n");
    let state = program.see(&json!({ "type": "response", "id": 7 }));
    assert_eq!(state["command"], "get_state");
    program.raw("{\"id\":\"x\",\"type\":\"make_coffee\"}\nnot json\n");
    let unknown = program.see(&json!({ "type": "response", "id": "x" }));
    assert_eq!(unknown["success"], false);
    let broken = program.see(&json!({ "type": "response", "command": "parse" }));
    assert_eq!(
        (broken.get("id"), &broken["success"]),
        (None, &json!(false))
    );
}

#[test]
fn the_state_is_that_of_a_fresh_session() {
    let home = Home::new();
    let provider = Provider::start([]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let state = program.data("get_state");
    for (name, want) in [
        ("isStreaming", json!(false)),
        ("isCompacting", json!(false)),
        ("steeringMode", json!("one-at-a-time")),
        ("followUpMode", json!("one-at-a-time")),
        ("interruptMode", json!("immediate")),
        ("autoCompactionEnabled", json!(true)),
        ("queuedMessageCount", json!(0)),
        ("messageCount", json!(0)),
        ("todoPhases", json!([])),
        ("isSettled", json!(true)),
    ] {
        assert_eq!(state[name], want, "{name} of {state}");
    }
    // A UUID of version 7, whose time sorts.
    let id = state["sessionId"].as_str().unwrap();
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'7'), "{id}");
    let model = &state["model"];
    assert_eq!(
        (&model["provider"], &model["id"]),
        (&json!("openai"), &json!("m-1"))
    );
    assert_eq!(model["contextWindow"], 128_000);
    let prompt = state["systemPrompt"].as_array().unwrap();
    assert!(prompt[0].as_str().unwrap().contains("coding agent"));
    let tools: Vec<&Value> = state["dumpTools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert!(tools.contains(&&json!("bash")), "{tools:?}");
}

#[test]
fn omp_08_a_model_is_one_that_the_settings_name() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut program = Setup::omp(&home, &provider, "auto")
        .args(&["--other-model", "m-2", "--provider", "house"])
        .start_as::<Omp>();
    let models = program.data("get_available_models");
    let ids: Vec<&Value> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, ["m-1", "m-2"]);
    program.turn("go");
    let set = program.ask(
        "set_model",
        json!({ "provider": "house", "modelId": "m-2" }),
    );
    assert_eq!(
        (&set["success"], &set["data"]["id"]),
        (&json!(true), &json!("m-2"))
    );
    let lost = program.ask(
        "set_model",
        json!({ "provider": "nobody", "modelId": "nothing" }),
    );
    assert_eq!(lost["error"], "Model not found: nobody/nothing");
    program.turn("on");
    assert_eq!(provider.request(1).json()["model"], "m-1");
    assert_eq!(provider.request(2).json()["model"], "m-2");
}

#[test]
fn an_effort_that_the_model_knows_is_sent() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut program = Setup::omp(&home, &provider, "auto")
        .args(&["--effort", "low", "--effort", "high", "--thinking", "low"])
        .start_as::<Omp>();
    let levels = program.data("get_available_thinking_levels");
    assert_eq!(levels["levels"], json!(["off", "low", "high"]));
    program.turn("go");
    let set = program.ask("set_thinking_level", json!({ "level": "high" }));
    assert_eq!(set["success"], true, "{set}");
    program.turn("on");
    assert_eq!(provider.request(1).json()["reasoning_effort"], "low");
    assert_eq!(provider.request(2).json()["reasoning_effort"], "high");
}

#[test]
fn omp_03_a_provider_that_refuses_ends_the_prompt_and_not_the_session() {
    let home = Home::new();
    let refusal = r#"{"error":{"message":"the scripted refusal"}}"#;
    let provider = Provider::start([
        Reply::failure("400 Bad Request", refusal),
        openai::says("Better."),
    ]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Try.");
    let result = lines.last().unwrap();
    assert_eq!(result["status"], "error");
    assert_eq!(result["error"]["httpStatus"], 400);
    let ended = of(&lines, "message_end");
    let message = &ended.last().unwrap()["message"];
    assert_eq!(message["stopReason"], "error");
    assert!(
        message["errorMessage"]
            .as_str()
            .unwrap()
            .contains("the scripted refusal")
    );
    assert_eq!(of(&lines, "agent_end").len(), 1);
    assert_eq!(deltas(&program.turn("Again.")), "Better.");
}

#[test]
fn a_failed_attempt_is_tried_again() {
    let home = Home::new();
    let provider = Provider::start([
        Reply::failure("503 Service Unavailable", "{}"),
        openai::says("Here."),
    ]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Try.");
    assert_eq!(of(&lines, "auto_retry_start").len(), 1);
    assert_eq!(of(&lines, "auto_retry_end")[0]["success"], true);
    assert_eq!(lines.last().unwrap()["status"], "completed");
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn omp_10_messages_come_in_pages() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.turn("first");
    program.turn("second");
    let page = program.ask("get_messages_page", json!({ "limit": 3 }));
    let data = &page["data"];
    assert_eq!(
        (
            data["messages"].as_array().unwrap().len(),
            &data["totalMessages"]
        ),
        (3, &json!(4))
    );
    let cursor = data["nextCursor"].clone();
    let last = program.ask("get_messages_page", json!({ "limit": 3, "cursor": cursor }));
    let messages = last["data"]["messages"].as_array().unwrap();
    assert_eq!(text_of(&messages[0]), "Two.");
    assert!(last["data"].get("nextCursor").is_none(), "{last}");
}

#[test]
fn omp_03_thinking_comes_before_text() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::thinking("Let me "))
        .bytes(openai::thinking("see."))
        .bytes(openai::text("Yes."))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Well?");
    let updates: Vec<_> = of(&lines, "message_update")
        .iter()
        .map(|line| line["assistantMessageEvent"].clone())
        .collect();
    let mut kinds: Vec<&str> = updates
        .iter()
        .map(|update| update["type"].as_str().unwrap())
        .collect();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "thinking_start",
            "thinking_delta",
            "thinking_end",
            "text_start",
            "text_delta",
            "text_end"
        ]
    );
    assert_eq!(
        updates
            .iter()
            .find(|it| it["type"] == "thinking_end")
            .unwrap()["content"],
        "Let me see."
    );
    assert_eq!(deltas(&lines), "Yes.");
}

#[test]
fn omp_03_a_stream_that_dies_after_text_is_an_error_that_keeps_it() {
    let home = Home::new();
    let cut = Reply::stream().bytes(openai::text("Half")).cut();
    let provider = Provider::start([cut, openai::says("Next.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("go");
    assert_eq!(lines.last().unwrap()["status"], "error");
    let end = of(&lines, "message_end").last().unwrap()["message"].clone();
    assert_eq!(
        (&end["stopReason"], text_of(&end)),
        (&json!("error"), "Half".to_owned())
    );
    assert_eq!(of(&lines, "auto_retry_start").len(), 0, "text was shown");
    assert_eq!(deltas(&program.turn("on")), "Next.");
}
