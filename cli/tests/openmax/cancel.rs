//! Cancelling: while streaming, waiting, asking, running.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::program::{Home, Setup, joined, of, survivors, types};
use crate::support::provider::{Gate, Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

#[test]
fn om_23_cancel_while_text_streams_keeps_what_was_shown() {
    let home = Home::new();
    let provider = Provider::start([
        Reply::stream().bytes(openai::text("Part")).stall(),
        openai::says("Next."),
    ]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    program.see(&json!({ "type": "token", "text": "Part" }));
    program.cancel();
    program.see(&json!({ "type": "message_done", "text": "Part" }));
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
    program.turn("again");
    let body = provider.request(2).json();
    let kept = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .any(|message| message["content"] == "Part");
    assert!(kept, "{body}");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_23_cancel_before_the_first_byte() {
    let home = Home::new();
    let gate = Gate::new();
    let provider = Provider::start([Reply::stream().only(0).stall(), openai::says("Next.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    provider.request(1);
    program.cancel();
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    gate.open();
    let types = types(program.seen());
    assert_eq!(types[types.len() - 3..], ["budget", "message_done", "done"]);
    assert_eq!(of(program.seen(), "message_done")[0]["text"], "");
    assert_eq!(joined(&program.turn("again"), "token"), "Next.");
}

#[test]
fn cancel_with_nothing_to_cancel_is_silent() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.see_type("hello");
    program.cancel();
    program.cancel();
    program.quiet(Duration::from_millis(200));
    assert_eq!(joined(&program.turn("go"), "token"), "Fine.");
    program.cancel();
    program.close_input();
    let ended = program.wait();
    assert_eq!((ended.code, ended.of("done").len()), (Some(0), 1));
}

#[test]
fn e02_late_words_of_a_cancelled_turn_are_not_the_next_ones() {
    let home = Home::new();
    let gate = Gate::new();
    let late = Reply::stream()
        .bytes(openai::text("Hi"))
        .gate(&gate)
        .bytes(openai::text("LATE"))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([late, openai::says("New")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("one");
    program.see(&json!({ "type": "token", "text": "Hi" }));
    program.cancel();
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    program.user("two");
    gate.open();
    program.see(&json!({ "type": "message_done", "text": "New" }));
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.of("done").len(), 2);
    assert!(!joined(&ended.lines, "token").contains("LATE"));
}

#[test]
fn om_17_cancel_and_a_prompt_in_one_write() {
    let home = Home::new();
    let provider = Provider::start([
        Reply::stream().bytes(openai::text("Hi")).stall(),
        openai::says("New"),
    ]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("one");
    program.see_type("token");
    program
        .raw("{\"cmd\":\"cancel\"}\n{\"cmd\":\"cancel\"}\n{\"cmd\":\"user\",\"text\":\"two\"}\n");
    let done = program.see_type("done");
    assert_eq!(done["stop_reason"], "cancelled");
    // The prompt was refused, or, if the turn was over by then, admitted: it has exactly one answer either way.
    if of(program.seen(), "protocol_error").is_empty() {
        assert_eq!(program.see_type("done")["stop_reason"], "stop");
    } else {
        assert_eq!(joined(&program.turn("two"), "token"), "New");
    }
}

#[test]
fn p02_cancel_ends_a_running_command_and_its_whole_tree() {
    for command in [
        "echo begun; touch begun; (sleep 3; echo x > late.txt) & sleep 60",
        "trap '' TERM; echo begun; touch begun; (trap '' TERM; sleep 3; echo x > late.txt) & wait",
        "echo begun; touch begun; sleep 60 | (sleep 3; echo x > late.txt; cat)",
    ] {
        let home = Home::new();
        let provider = Provider::start([openai::calls(&[(
            "c1",
            "bash",
            json!({ "command": command }),
        )])]);
        let mut program = Setup::openai(&home, &provider).start();
        program.user("go");
        program.see_type("tool_start");
        wait_for("the command to begin", || home.read("begun"));
        std::thread::sleep(Duration::from_millis(400));
        let begun = Instant::now();
        program.cancel();
        let end = program.see_type("tool_end");
        assert_eq!(end["ok"], false);
        assert!(end["output"].as_str().unwrap().contains("begun"), "{end}");
        program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
        assert!(
            begun.elapsed() < Duration::from_secs(7),
            "{:?} for {command}",
            begun.elapsed()
        );
        wait_for("every process to be gone", || {
            survivors(&home.project())
                .iter()
                .all(|(pid, _)| *pid == program.pid())
                .then_some(())
        });
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
        std::thread::sleep(Duration::from_secs(4).saturating_sub(begun.elapsed()));
        assert_eq!(home.read("late.txt"), None, "{command}");
    }
}

#[test]
fn e03_each_call_gets_one_result_though_the_second_was_cancelled() {
    let home = Home::new();
    let calls = openai::calls(&[
        ("c1", "bash", json!({ "command": "echo first" })),
        ("c2", "bash", json!({ "command": "touch begun; sleep 60" })),
        ("c3", "bash", json!({ "command": "touch third" })),
    ]);
    let provider = Provider::start([calls, openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    program.see(&json!({ "type": "tool_end", "call_id": "c1", "ok": true }));
    wait_for("the second call to begin", || home.read("begun"));
    program.cancel();
    program.see(&json!({ "type": "tool_end", "call_id": "c2", "ok": false }));
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    assert_eq!(of(program.seen(), "tool_start").len(), 2);
    program.turn("next");
    let body = provider.request(2).json();
    let messages = body["messages"].as_array().unwrap();
    let at = messages
        .iter()
        .position(|message| message.get("tool_calls").is_some())
        .unwrap();
    let results: Vec<&str> = messages[at + 1..at + 4]
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(results, ["c1", "c2", "c3"]);
    assert_eq!(messages[at + 4]["role"], "user");
    assert_eq!(home.read("third"), None);
}

#[test]
fn om_28_cancel_in_the_wait_before_a_retry_and_the_attempt_never_goes_out() {
    let home = Home::new();
    let busy = Reply::failure("503 Service Unavailable", "{}").header("retry-after", "2");
    let provider = Provider::start([busy, openai::says("Late.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    program.see_type("retry");
    program.cancel();
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    program.quiet(Duration::from_millis(2500));
    assert_eq!(provider.requests().len(), 1);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}
