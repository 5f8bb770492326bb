//! Streams of the Messages API beyond the cases from the field.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::model_support;

use model_support::{Heard, START, STOP, STREAM, add, block, end_turn, hear_all_cuts, sse, stop};
use turnwire::model::Api;
use turnwire::vocab::{FailureKind, Usage};

fn anthropic(events: &[&str]) -> Heard {
    hear_all_cuts(Api::Anthropic, &STREAM, &sse(events))
}

#[test]
fn anthropic_thinking_signature_redacted_and_text() {
    let heard = anthropic(&[
        START,
        &block(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
        &add(0, r#"{"type":"thinking_delta","thinking":"hm"}"#),
        &add(0, r#"{"type":"signature_delta","signature":"SIG"}"#),
        &stop(0),
        &block(1, r#"{"type":"redacted_thinking","data":"XYZ"}"#),
        &stop(1),
        &block(2, r#"{"type":"text","text":"a"}"#),
        &add(2, r#"{"type":"text_delta","text":"b"}"#),
        &add(2, r#"{"type":"citations_delta","citation":{}}"#),
        &stop(2),
        &end_turn("end_turn"),
        STOP,
    ]);
    assert_eq!((&*heard.thinking, &*heard.text), ("hm", "ab"));
    assert_eq!(
        (heard.signatures, heard.redacted),
        (vec!["SIG".to_owned()], vec!["XYZ".to_owned()])
    );
    assert_eq!(
        heard.begun,
        Some((Some("m1".into()), Some("claude".into())))
    );
    let usage = Usage {
        input: Some(10),
        cache_read: Some(4),
        cache_write: Some(2),
        output: Some(5),
        reasoning: None,
    };
    assert_eq!(heard.usage.last(), Some(&usage));
    assert_eq!(heard.finish.as_deref(), Some("end_turn"));
}

#[test]
fn anthropic_calls_with_and_without_fragments() {
    let heard = anthropic(&[
        START,
        &block(0, r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#),
        &add(0, r#"{"type":"input_json_delta","partial_json":""}"#),
        &block(
            1,
            r#"{"type":"tool_use","id":"b","name":"g","input":{"whole":12345678901234567890}}"#,
        ),
        &stop(1),
        &add(0, r#"{"type":"input_json_delta","partial_json":"{\"n\":"}"#),
        &add(0, r#"{"type":"input_json_delta","partial_json":"1}"}"#),
        &stop(0),
        &block(2, r#"{"type":"tool_use","id":"c","name":"h","input":{}}"#),
        &block(
            3,
            r#"{"type":"server_tool_use","id":"s","name":"web","input":{}}"#,
        ),
        &add(3, r#"{"type":"input_json_delta","partial_json":"{}"}"#),
        &end_turn("tool_use"),
        STOP,
    ]);
    let calls: Vec<_> = heard
        .calls
        .iter()
        .map(|call| (call.id.as_deref(), &*call.name, &*call.args))
        .collect();
    assert_eq!(
        calls,
        [
            (Some("a"), "f", r#"{"n":1}"#),
            (Some("b"), "g", r#"{"whole":12345678901234567890}"#),
            (Some("c"), "h", "{}")
        ]
    );
    assert!(heard.complete());
}

#[test]
fn anthropic_pings_and_unknown_events_are_signs_of_life() {
    let heard = anthropic(&[
        START,
        r#"{"type":"ping"}"#,
        r#"{"type":"from_the_future","index":0}"#,
        "noise",
        &end_turn("end_turn"),
        STOP,
    ]);
    assert_eq!(
        heard
            .chunks
            .iter()
            .filter(|chunk| *chunk == "Alive")
            .count(),
        2
    );
}

#[test]
fn anthropic_completion_signals() {
    assert!(
        anthropic(&[START, &end_turn("end_turn")]).complete(),
        "message_stop may be missing"
    );
    assert_eq!(
        anthropic(&[START, STOP]).finish.as_deref(),
        Some("end_turn")
    );
    let call = block(0, r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#);
    assert_eq!(
        anthropic(&[START, &call, STOP]).finish.as_deref(),
        Some("tool_use")
    );
    let cut = anthropic(&[START, &call]);
    assert!(cut.truncated() && !cut.calls[0].whole);
}

#[test]
fn e07_anthropic_errors_inside_a_stream() {
    let text = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let heard = anthropic(&[START, text]);
    assert_eq!(
        (heard.failure().kind, heard.failure().retryable),
        (FailureKind::Overloaded, true)
    );
    let named = b"event: error\ndata: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 5 > 4\"}}\n\n";
    assert_eq!(
        hear_all_cuts(Api::Anthropic, &STREAM, named).failure().kind,
        FailureKind::ContextFull
    );
}
