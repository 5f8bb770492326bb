//! Corners of agentx's observer: what a stricter, or a laxer, reading would get wrong. Each stream that keeps the
//! contract has a neighbour that breaks it.

use serde_json::{Value, json};
use turnwire::check::From;
use turnwire::protocol::agentx::{Agentx, ObserverConfig, Policy};

use crate::observer_kit::{check_of, fixtures};

/// What is wrong with a turn of strict agentx that says these lines between its beginning and its end, and hears those
/// that answer it: the stream of the rule's fixture, with its middle taken out.
fn turn(said: &[Value]) -> Vec<String> {
    let kept = fixtures("rules/agentx/WIRE-011.c.ok.jsonl");
    let kept = std::fs::read_to_string(kept).unwrap();
    let rows: Vec<&str> = kept.lines().collect();
    let (begins, ends) = (&rows[..3], &rows[rows.len() - 2..]);
    let mut stream = begins.join("\n") + "\n";
    for (number, line) in (1..).zip(said) {
        let mut line = line.clone();
        let kind = line["type"].as_str().unwrap();
        let dir = if kind == "control_response" {
            "in"
        } else {
            "out"
        };
        if !kind.starts_with("control_") {
            line["session_id"] = "ses_00000000000000000000000000000001".into();
            line["uuid"] = format!("00000000-0000-4000-8000-{number:012}").into();
        }
        let row = json!({"dir": dir, "line": line.to_string()});
        stream += &(row.to_string() + "\n");
    }
    // There may be more replies than in the fixture.
    stream += &(ends
        .join("\n")
        .replace(r#"\"num_turns\":2"#, r#"\"num_turns\":9"#)
        + "\n");
    let config = ObserverConfig {
        policy: Policy::AGENTX,
    };
    check_of::<Agentx>(config, stream.as_bytes(), From::Guess, 1 << 16).ids()
}

fn reply(message: &str, block: Value) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "message": {
        "id": message, "type": "message", "role": "assistant", "model": "m-1", "content": [block],
        "stop_reason": null, "stop_sequence": null,
    }})
}

fn call(message: &str, id: &str) -> Value {
    reply(
        message,
        json!({"type": "tool_use", "id": id, "name": "look", "input": {}}),
    )
}

fn result(id: &str) -> Value {
    let block =
        json!({"type": "tool_result", "tool_use_id": id, "content": "done", "is_error": false});
    json!({"type": "user", "parent_tool_use_id": null, "isSynthetic": true,
        "message": {"role": "user", "content": [block]}})
}

fn last() -> Value {
    reply("msg_9", json!({"type": "text", "text": "Hello."}))
}

/// WIRE-011.c: a call that a void reply made has no result. One whose reply was kept must have one.
#[test]
fn wire_011_a_reply_that_has_a_result_was_not_void() {
    let (a, b, c) = (call("msg_1", "a"), call("msg_1", "b"), call("msg_2", "c"));
    let whole = [a.clone(), c.clone(), result("c"), last()];
    assert_eq!(turn(&whole), ["WIRE-011.c info"], "msg_1 can be void");
    let half = [a.clone(), b.clone(), result("b"), c, result("c"), last()];
    assert_eq!(turn(&half), ["WIRE-011.c error"], "msg_1 was kept");
    assert_eq!(turn(&[a, b, result("a"), result("b"), last()]), [""; 0]);
}

/// WIRE-011.c: a reply that found the context full is void, and the summary shows that it can have been one.
#[test]
fn wire_011_a_call_before_a_compaction_can_have_been_of_a_void_reply() {
    let status = |status: Value| json!({"type": "system", "subtype": "status", "status": status});
    let boundary = json!({"type": "system", "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": 33}});
    let summary = [status("compacting".into()), status(Value::Null), boundary];
    let void = [&[call("msg_1", "a")][..], &summary, &[last()]].concat();
    assert_eq!(turn(&void), ["WIRE-011.c info"]);
    let lost = [&summary[..], &[call("msg_1", "a"), last()]].concat();
    assert_eq!(turn(&lost), ["WIRE-011.c error"]);
}

/// WIRE-004.e: the result of one call doesn't show that the agent has read the answer about another, which the host gave
/// behind it. The last one's result does.
#[test]
fn wire_004_an_answer_can_be_on_its_way_while_another_call_ends() {
    let state =
        |state: &str| json!({"type": "system", "subtype": "session_state_changed", "state": state});
    let asks = |call: &str| {
        json!({"type": "control_request", "request_id": format!("req_{call}"), "request": {
            "subtype": "can_use_tool", "tool_name": "look", "input": {}, "description": "d", "tool_use_id": call}})
    };
    let allows = |call: &str| {
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": format!("req_{call}"),
            "response": {"behavior": "allow", "updatedInput": {}}}})
    };
    let begin = [
        call("msg_1", "a"),
        call("msg_1", "b"),
        state("requires_action"),
        asks("a"),
        asks("b"),
        allows("b"),
        allows("a"),
    ];
    let (a, b, runs) = (result("a"), result("b"), state("running"));
    let told = |rest: &[Value]| turn(&[&begin[..], rest, &[last()]].concat());
    assert_eq!(told(&[b.clone(), runs.clone(), a.clone()]), [""; 0]);
    assert_eq!(told(&[runs, b.clone(), a.clone()]), [""; 0]);
    assert_eq!(told(&[b, a]), ["WIRE-004.e error"]);
}

/// WIRE-003.i: a last reply that is empty has no record, so an empty result is the text of one. Another text isn't.
#[test]
fn wire_003_an_empty_result_is_that_of_a_reply_without_a_record() {
    let ends = |result: &str| {
        let text = json!(result).to_string();
        let kept = fixtures("rules/agentx/WIRE-011.c.ok.jsonl");
        let kept = std::fs::read_to_string(kept).unwrap();
        let stream = kept.replace(
            r#"\"result\":\"Hello.\""#,
            &format!(r#"\"result\":{}"#, text.replace('"', r#"\""#)),
        );
        assert_eq!(stream == kept, result == "Hello.");
        let config = ObserverConfig {
            policy: Policy::AGENTX,
        };
        check_of::<Agentx>(config, stream.as_bytes(), From::Guess, 1 << 16).ids()
    };
    assert_eq!(ends("Hello."), [""; 0]);
    assert_eq!(ends(""), [""; 0]);
    assert_eq!(ends("Goodbye."), ["WIRE-003.i warning"]);
}
