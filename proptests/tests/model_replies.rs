//! Replies of both APIs beyond the cases from the field: what is read, what is skipped, what fails and how.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model_support;

use model_support::{
    Heard, JSON, NOW, STREAM, delta, finish, hear, hear_all_cuts, hear_parts, sse,
};
use proptest::prelude::*;
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits, lost, unreached};
use turnwire::vocab::{FailureKind, ModelChunk, Usage};

fn openai(events: &[&str]) -> Heard {
    hear_all_cuts(Api::OpenAi, &STREAM, &sse(events))
}

fn anthropic(events: &[&str]) -> Heard {
    hear_all_cuts(Api::Anthropic, &STREAM, &sse(events))
}

const START: &str = r#"{"type":"message_start","message":{"id":"m1","model":"claude","usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn block(index: u32, block: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
}

fn add(index: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn stop(index: u32) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

fn end_turn(reason: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":5}}}}"#
    )
}

// ---- chat completions

#[test]
fn a_text_delta_is_lent_from_the_bytes_that_came() {
    let body = sse(&[
        &delta(r#"{"content":"warm up"}"#),
        &delta(r#"{"content":"hello"}"#),
    ]);
    let mut decoder = ReplyDecoder::new(Api::OpenAi, ReplyLimits::default());
    decoder.head(&STREAM, NOW);
    let mut lent = 0;
    let range = body.as_ptr_range();
    decoder.bytes(&body, NOW, &mut |chunk| {
        if let ModelChunk::Text(text) = chunk {
            lent += u32::from(range.contains(&text.as_ptr()));
        }
    });
    // The first event of a stream may be held to look for a byte order mark.
    assert!(lent >= 1, "no copy on the way");
}

#[test]
fn begin_names_the_reply_once() {
    let heard = openai(&[
        &delta(r#"{"content":"a"}"#),
        &delta(r#"{"content":"b"}"#),
        &finish("stop"),
        "[DONE]",
    ]);
    assert_eq!(heard.begun, Some((Some("c".into()), Some("m".into()))));
    assert!(heard.chunks[0].starts_with("Begin"));
}

#[test]
fn thinking_comes_by_either_name_and_before_text() {
    let heard = openai(&[
        &delta(r#"{"reasoning_content":"a","reasoning":"not twice"}"#),
        &delta(r#"{"reasoning":"b\n","content":null}"#),
        &delta(r#"{"reasoning_content":null,"reasoning":"c","content":"text"}"#),
        &delta(r#"{"reasoning":{"summary":"x"},"content":"!"}"#),
        &finish("stop"),
    ]);
    assert_eq!((&*heard.thinking, &*heard.text), ("ab\nc", "text!"));
}

#[test]
fn content_may_be_a_list_of_parts() {
    let heard = openai(&[
        &delta(
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}"#,
        ),
        &delta(r#"{"content":[]}"#),
        &finish("stop"),
    ]);
    assert_eq!((&*heard.thinking, &*heard.text), ("hm", "hi"));
}

#[test]
fn a_refusal_is_shown() {
    let heard = openai(&[
        &delta(r#"{"content":null,"refusal":"I won't."}"#),
        &finish("stop"),
        "[DONE]",
    ]);
    assert_eq!(
        (&*heard.text, heard.finish.as_deref()),
        ("I won't.", Some("stop"))
    );
}

#[test]
fn finish_words_are_passed_on_verbatim() {
    for word in [
        "stop",
        "length",
        "content_filter",
        "error",
        "eos",
        "tool_calls",
    ] {
        assert_eq!(
            openai(&[&delta(r#"{"content":"a"}"#), &finish(word)])
                .finish
                .as_deref(),
            Some(word)
        );
    }
    let empty = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#;
    assert!(openai(&[empty]).truncated(), "an empty word is no finish");
}

#[test]
fn om_done_alone_is_a_completion_signal() {
    let heard = openai(&[&delta(r#"{"content":"a"}"#), "[DONE]"]);
    assert_eq!(heard.finish.as_deref(), Some("stop"));
    let call = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
    assert_eq!(
        openai(&[&delta(call), "[DONE]"]).finish.as_deref(),
        Some("tool_calls")
    );
}

#[test]
fn om_finish_without_done_is_complete_and_nothing_is_truncated() {
    assert!(openai(&[&delta(r#"{"content":"a"}"#), &finish("stop")]).complete());
    assert!(openai(&[&delta(r#"{"content":"a"}"#)]).truncated());
    assert!(openai(&[]).truncated());
}

#[test]
fn what_comes_after_done_is_ignored() {
    let heard = openai(&[
        &delta(r#"{"content":"a"}"#),
        &finish("stop"),
        "[DONE]",
        &delta(r#"{"content":"LATE"}"#),
        r#"{"error":"late"}"#,
    ]);
    assert_eq!(heard.text, "a");
    assert!(heard.complete());
}

#[test]
fn om_noise_between_chunks_is_skipped() {
    let mut body = b": comment\n\nevent: x\n\n2001-02-03\n\n".to_vec();
    body.extend(sse(&[
        "not json",
        "{\"choices\":",
        "7",
        "[]",
        "null",
        "\"text\"",
        "{\"choices\":7}",
        &delta(r#"{"content":"after garbage"}"#),
        &finish("stop"),
    ]));
    let heard = hear_all_cuts(Api::OpenAi, &STREAM, &body);
    assert_eq!(heard.text, "after garbage");
    assert!(heard.complete());
}

#[test]
fn a_member_that_comes_twice_ends_nothing_and_the_last_counts() {
    let heard = openai(&[
        r#"{"id":"a","id":"b","model":"m","choices":[],"choices":[{"index":0,"delta":{"content":"x","content":"y"},"delta":{"content":"z"},"finish_reason":null}],"created":1,"created":2}"#,
        &finish("stop"),
    ]);
    assert_eq!(
        (&*heard.text, heard.begun.unwrap().0.as_deref()),
        ("z", Some("b"))
    );
}

#[test]
fn odd_types_cost_their_own_member_only() {
    let heard = openai(&[
        r#"{"id":7,"model":null,"created":"x","choices":[{"index":"0","delta":{"content":"a","tool_calls":{},"role":1},"logprobs":[1e999]}],"usage":[]}"#,
        &finish("stop"),
    ]);
    assert_eq!(
        (&*heard.text, heard.begun.unwrap().0.as_deref()),
        ("a", Some("7"))
    );
}

#[test]
fn empty_deltas_are_signs_of_life() {
    let heard = openai(&[
        &delta(r#"{"content":""}"#),
        &delta("{}"),
        &delta(r#"{"content":"a"}"#),
        &finish("stop"),
    ]);
    assert_eq!(
        heard
            .chunks
            .iter()
            .filter(|chunk| *chunk == "Alive")
            .count(),
        1,
        "{:?}",
        heard.chunks
    );
}

#[test]
fn interleaved_calls_by_index() {
    let heard = openai(&[
        &delta(
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}"#,
        ),
        &delta(r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"n\":"}}]}"#),
        &delta(
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":1}"}},{"index":1,"function":{"arguments":"2}"}}]}"#,
        ),
        &finish("tool_calls"),
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
            (Some("b"), "g", r#"{"n":2}"#)
        ]
    );
}

fn calls(fragments: &[&str]) -> Vec<(String, String, String)> {
    let events: Vec<String> = fragments
        .iter()
        .map(|list| delta(&format!(r#"{{"tool_calls":[{list}]}}"#)))
        .chain([finish("tool_calls")])
        .collect();
    let heard = openai(&events.iter().map(|event| &**event).collect::<Vec<_>>());
    heard
        .calls
        .into_iter()
        .map(|call| (call.id.unwrap_or_default(), call.name, call.args))
        .collect()
}

fn want(calls: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    calls
        .iter()
        .map(|(id, name, args)| ((*id).into(), (*name).into(), (*args).into()))
        .collect()
}

#[test]
fn calls_that_providers_leave_half_said() {
    // Empty, blank or missing arguments are an empty object.
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#]),
        want(&[("a", "f", "{}")])
    );
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"name":"f"}}"#]),
        want(&[("a", "f", "{}")])
    );
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":null}}"#]),
        want(&[("a", "f", "{}")])
    );
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"name":"f","arguments":" "}}"#]),
        want(&[("a", "f", " {}")])
    );
    // The id comes after the name.
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f"}}"#,
            r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#
        ]),
        want(&[("a", "f", "{}")])
    );
    // Two calls with one id at two places are two calls.
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}"#
        ]),
        want(&[("a", "f", "{}"), ("a", "f", "{}")])
    );
    // Neither id nor index: the list's places tell them apart, and then another name does.
    assert_eq!(
        calls(&[
            r#"{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"function":{"name":"g","arguments":"{}"}}"#
        ]),
        want(&[("", "f", "{}"), ("", "f", "{}"), ("", "g", "{}")])
    );
    // No id, one index for all: another name after arguments is another call.
    assert_eq!(
        calls(&[
            r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"name":"g","arguments":"{}"}}"#
        ]),
        want(&[("", "f", "{}"), ("", "g", "{}")])
    );
    // A call without a name is still a call; a fragment that says nothing isn't.
    assert_eq!(
        calls(&[r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#]),
        want(&[("a", "", "{}")])
    );
    assert_eq!(
        calls(&[r#"{"index":0,"id":"","function":{"name":"","arguments":""}}"#]),
        want(&[])
    );
    assert_eq!(calls(&["7", "null", "{}"]), want(&[]));
}

#[test]
fn a_call_that_comes_after_the_finish_is_ended_at_the_end() {
    let call =
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#);
    let heard = openai(&[
        &delta(r#"{"content":"x"}"#),
        &finish("stop"),
        &call,
        "[DONE]",
    ]);
    assert!(heard.complete() && heard.calls[0].whole);
}

#[test]
fn om_128_calls_are_taken_and_no_more() {
    let call = |index: usize| {
        format!(
            r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    };
    let stream = |count: usize| {
        let events: Vec<String> = (0..count)
            .map(|index| delta(&call(index)))
            .chain([finish("tool_calls")])
            .collect();
        hear(
            Api::OpenAi,
            &STREAM,
            &sse(&events.iter().map(|event| &**event).collect::<Vec<_>>()),
        )
    };
    assert_eq!(stream(127).calls.len(), 127);
    assert_eq!(stream(128).calls.len(), 128);
    assert!(stream(128).complete());
    let over = stream(129);
    assert_eq!(
        (over.failure().kind, over.failure().retryable),
        (FailureKind::StreamCut, false)
    );
    let far = openai(&[&delta(&call(128))]);
    assert_eq!(
        far.failure().kind,
        FailureKind::StreamCut,
        "index 128 is out"
    );
}

fn usage_of(usage: &str) -> Usage {
    let event = format!(r#"{{"choices":[],"usage":{usage}}}"#);
    *openai(&[
        &delta(r#"{"content":"a"}"#),
        &finish("stop"),
        &event,
        "[DONE]",
    ])
    .usage
    .last()
    .unwrap()
}

#[test]
fn usage_buckets_do_not_overlap() {
    let usage = |input, cache_read, output, reasoning| Usage {
        input,
        cache_read,
        cache_write: None,
        output,
        reasoning,
    };
    assert_eq!(
        usage_of(r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#),
        usage(Some(9), None, Some(2), None)
    );
    assert_eq!(
        usage_of(
            r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":40}}"#
        ),
        usage(Some(36), Some(64), Some(10), Some(40))
    );
    assert_eq!(
        usage_of(
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":30,"prompt_cache_miss_tokens":70}"#
        ),
        usage(Some(70), Some(30), Some(5), None)
    );
    // Thinking counted beside the completion, as the total shows.
    assert_eq!(
        usage_of(
            r#"{"prompt_tokens":10,"completion_tokens":30,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":20}}"#
        ),
        usage(Some(10), None, Some(30), Some(20))
    );
    assert_eq!(
        usage_of(r#"{"prompt_tokens":3,"completion_tokens":7.0,"prompt_tokens_details":null}"#),
        usage(Some(3), None, Some(7), None)
    );
    assert_eq!(
        usage_of(
            r#"{"prompt_tokens":3,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":9}}"#
        ),
        usage(Some(0), Some(9), None, None)
    );
}

#[test]
fn usage_that_says_nothing_or_nothing_new_is_not_reported() {
    let running = r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let heard = openai(&[
        running,
        running,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"usage":{}}"#,
        &finish("stop"),
    ]);
    assert_eq!(heard.usage.len(), 1);
    let in_choice = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}"#;
    assert_eq!(openai(&[in_choice]).usage[0].output, Some(2));
}

#[test]
fn e07_errors_inside_a_stream() {
    for (event, kind, retryable, words) in [
        (
            r#"{"error":{"type":"overloaded_error","message":"busy"}}"#,
            FailureKind::Overloaded,
            true,
            "busy (overloaded_error)",
        ),
        (
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            FailureKind::ContextFull,
            false,
            "too long",
        ),
        (
            r#"{"error":{"code":401,"message":"no"}}"#,
            FailureKind::Auth,
            false,
            "no (401)",
        ),
        (
            r#"{"error":{"code":"429","message":"wait"}}"#,
            FailureKind::RateLimit,
            true,
            "wait",
        ),
        (
            r#"{"error":{"type":"insufficient_quota","message":"none left"}}"#,
            FailureKind::Billing,
            false,
            "none left",
        ),
        (
            r#"{"object":"error","message":"odd server","type":"BadRequestError","code":400}"#,
            FailureKind::InvalidRequest,
            false,
            "odd server",
        ),
        (
            r#"{"type":"error","error":{"type":"api_error","message":"broke"}}"#,
            FailureKind::Server,
            true,
            "broke",
        ),
        (
            r#"{"error":{"detail":[1]}}"#,
            FailureKind::Server,
            true,
            r#"{"detail":[1]}"#,
        ),
    ] {
        let heard = openai(&[&delta(r#"{"content":"a"}"#), event, "[DONE]"]);
        let failure = heard.failure();
        assert_eq!(
            (failure.kind, failure.retryable),
            (kind, retryable),
            "{event}"
        );
        assert!(failure.text.contains(words), "{event}: {}", failure.text);
        assert!(heard.failed.as_ref().unwrap().1, "the endpoint was reached");
    }
    for none in [
        r#"{"error":null}"#,
        r#"{"error":{}}"#,
        r#"{"error":""}"#,
        r#"{"error":false}"#,
    ] {
        assert!(
            openai(&[none, &delta(r#"{"content":"a"}"#), &finish("stop")]).complete(),
            "{none}"
        );
    }
}

// ---- messages

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

// ---- whole replies and bodies of errors

#[test]
fn om_a_plain_reply_is_one_whole_reply() {
    let body = r#" {"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"hm","content":"plain \ud83e\udd80","tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},{"id":"a","type":"function","function":{"name":"f","arguments":{"n":2}}}]},
        "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}
"#;
    for head in [
        JSON,
        ReplyHead {
            status: 200,
            ..ReplyHead::default()
        },
    ] {
        let heard = hear_all_cuts(Api::OpenAi, &head, body.as_bytes());
        assert_eq!((&*heard.thinking, &*heard.text), ("hm", "plain 🦀"));
        assert_eq!(
            heard
                .calls
                .iter()
                .map(|call| &*call.args)
                .collect::<Vec<_>>(),
            [r#"{"n":1}"#, r#"{"n":2}"#]
        );
        assert_eq!(
            (heard.finish.as_deref(), heard.usage[0].output),
            (Some("tool_calls"), Some(3))
        );
        assert!(heard.complete());
    }
    let bare = hear(
        Api::OpenAi,
        &JSON,
        br#"{"choices":[{"message":{"content":"x"}}]}"#,
    );
    assert_eq!(bare.finish.as_deref(), Some("stop"));
}

#[test]
fn anthropic_plain_reply() {
    let body = br#"{"type":"message","id":"m1","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"hi"},
        {"type":"tool_use","id":"a","name":"f","input":{"n": 1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#;
    let heard = hear_all_cuts(Api::Anthropic, &JSON, body);
    assert_eq!(
        (&*heard.thinking, &*heard.text, &*heard.calls[0].args),
        ("hm", "hi", r#"{"n": 1}"#)
    );
    assert!(heard.complete() && heard.signatures == ["S"]);
}

#[test]
fn a_stream_under_the_wrong_content_type_is_a_stream() {
    let body = sse(&[&delta(r#"{"content":"a"}"#), &finish("stop"), "[DONE]"]);
    assert!(hear_all_cuts(Api::OpenAi, &JSON, &body).complete());
}

#[test]
fn chunks_a_line_without_their_frame_are_taken() {
    let body = format!(
        "{}\n{}\ndata: [DONE]\n",
        delta(r#"{"content":"a"}"#),
        finish("stop")
    );
    let heard = hear_all_cuts(Api::OpenAi, &JSON, body.as_bytes());
    assert_eq!(heard.text, "a");
    assert!(heard.complete());
}

#[test]
fn an_error_body_under_a_good_status() {
    let heard = hear_all_cuts(
        Api::OpenAi,
        &JSON,
        br#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#,
    );
    assert_eq!(
        (heard.failure().kind, heard.failure().retryable),
        (FailureKind::InvalidRequest, false)
    );
    let foreign = hear(Api::OpenAi, &JSON, br#"{"hello":"world"}"#);
    assert_eq!(
        foreign.error(),
        r#"backend returned 200 OK: {"hello":"world"}"#
    );
    assert!(!foreign.failure().retryable);
    assert!(
        hear(Api::OpenAi, &JSON, br#"{"choices":[{"mess"#).truncated(),
        "half a body is a cut reply"
    );
    assert!(
        hear(
            Api::Anthropic,
            &JSON,
            br#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#
        )
        .failure()
        .retryable
    );
}

fn refused(status: u16, reason: &str, retry_after: Option<&str>, body: &[u8]) -> Heard {
    hear_all_cuts(
        Api::OpenAi,
        &ReplyHead {
            status,
            reason,
            content_type: None,
            retry_after,
        },
        body,
    )
}

#[test]
fn om_texts_of_error_statuses() {
    for (body, text) in [
        (
            r#"{"error":{"message":"no key"}}"#,
            "backend returned 401 Unauthorized: no key",
        ),
        (
            r#"{"error":"plain"}"#,
            "backend returned 401 Unauthorized: plain",
        ),
        (
            r#"{"message":"raw"}"#,
            r#"backend returned 401 Unauthorized: {"message":"raw"}"#,
        ),
        (
            "<html>busy</html>\n",
            "backend returned 401 Unauthorized: <html>busy</html>",
        ),
        ("", "backend returned 401 Unauthorized"),
    ] {
        let heard = refused(401, "Unauthorized", None, body.as_bytes());
        assert_eq!(heard.error(), text);
        assert_eq!(
            (heard.failure().kind, heard.failure().status),
            (FailureKind::Auth, Some(401))
        );
    }
    let long = refused(500, "", None, "é".repeat(400).as_bytes());
    assert_eq!(
        long.error(),
        format!(
            "backend returned 500 Internal Server Error: {}…",
            "é".repeat(300)
        )
    );
    assert_eq!(
        refused(400, "", None, b"\xff\xfe").error(),
        "backend returned 400 Bad Request: \u{fffd}\u{fffd}"
    );
}

#[test]
fn e06_statuses_waits_and_quota() {
    let wait = |status, retry_after, body: &str| {
        let heard = refused(status, "", retry_after, body.as_bytes());
        let (failure, reached, wait) = heard.failed.unwrap();
        assert!(reached);
        (failure.kind, failure.retryable, wait)
    };
    assert_eq!(
        wait(429, Some("7"), ""),
        (FailureKind::RateLimit, true, Some(7_000_000))
    );
    assert_eq!(
        wait(429, Some("99999999999999999999"), ""),
        (FailureKind::RateLimit, true, Some(u64::MAX))
    );
    assert_eq!(
        wait(503, Some("Tue, 14 Nov 2023 22:13:40 GMT"), ""),
        (FailureKind::Server, true, Some(20_000_000))
    );
    assert_eq!(
        wait(529, Some("Someday, soon"), ""),
        (FailureKind::Overloaded, true, None)
    );
    assert_eq!(
        wait(
            429,
            Some("1"),
            r#"{"error":{"code":"insufficient_quota","message":"used up"}}"#
        ),
        (FailureKind::Billing, false, Some(1_000_000))
    );
    assert_eq!(
        wait(
            429,
            None,
            r#"{"error":{"type":"insufficient_quota","message":"used up"}}"#
        ),
        (FailureKind::Billing, false, None)
    );
    assert_eq!(
        wait(
            400,
            None,
            r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#
        ),
        (FailureKind::ContextFull, false, None)
    );
    assert_eq!(
        wait(
            400,
            None,
            r#"{"object":"error","message":"x","type":"y","code":400}"#
        ),
        (FailureKind::InvalidRequest, false, None)
    );
}

#[test]
fn an_endless_error_body_is_read_up_to_its_limit() {
    let limits = ReplyLimits {
        error_body_bytes: 10,
        ..ReplyLimits::default()
    };
    let mut decoder = ReplyDecoder::new(Api::OpenAi, limits);
    let mut heard = Heard::default();
    decoder.head(
        &ReplyHead {
            status: 500,
            ..ReplyHead::default()
        },
        NOW,
    );
    decoder.bytes(b"0123456789", NOW, &mut |chunk| heard.take(&chunk));
    assert!(!decoder.is_settled());
    decoder.bytes(b"x", NOW, &mut |chunk| heard.take(&chunk));
    assert!(decoder.is_settled());
    assert_eq!(
        heard.error(),
        "backend returned 500 Internal Server Error: 0123456789"
    );
}

// ---- transport and limits

#[test]
fn a_broken_transport() {
    let broken = |head: &ReplyHead<'_>, body: &[u8]| {
        let mut decoder = ReplyDecoder::new(Api::OpenAi, ReplyLimits::default());
        let mut heard = Heard::default();
        decoder.head(head, NOW);
        decoder.bytes(body, NOW, &mut |chunk| heard.take(&chunk));
        decoder.broken("connection reset", NOW, &mut |chunk| heard.take(&chunk));
        assert!(decoder.is_settled());
        heard
    };
    let cut = broken(&STREAM, &sse(&[&delta(r#"{"content":"half"}"#)]));
    assert_eq!(
        (cut.failure().kind, cut.failure().retryable, cut.error()),
        (FailureKind::StreamCut, true, "connection reset")
    );
    assert_eq!(cut.text, "half");
    let tail = broken(
        &STREAM,
        format!("data: {}", delta(r#"{"content":"tail"}"#)).as_bytes(),
    );
    assert_eq!(tail.text, "tail", "a whole event at the break counts");
    let status = broken(
        &ReplyHead {
            status: 503,
            ..ReplyHead::default()
        },
        b"bu",
    );
    assert_eq!(
        status.error(),
        "backend returned 503 Service Unavailable: bu"
    );
    let finished = broken(&STREAM, &sse(&[&finish("stop")]));
    assert!(
        finished.finish.is_some() && finished.failed.is_some(),
        "the session knows that it was complete"
    );
    assert!(
        broken(&JSON, br#"{"choices":[{"message":{"content":"x"}}]}"#)
            .finish
            .is_some(),
        "a whole body at the break counts"
    );
}

#[test]
fn failures_before_the_head() {
    for (chunk, reached) in [
        (unreached("tcp connect error"), false),
        (lost("closed before message completed"), true),
    ] {
        let mut heard = Heard::default();
        heard.take(&chunk);
        let (failure, was_reached, wait) = heard.failed.unwrap();
        assert_eq!(
            (failure.kind, failure.retryable, was_reached, wait),
            (FailureKind::Transport, true, reached, None)
        );
        assert!(failure.text.starts_with("request failed: "));
    }
}

#[test]
fn limits_one_below_at_and_one_above() {
    let body = sse(&[&delta(r#"{"content":"hello"}"#), &finish("stop")]);
    let event = delta(r#"{"content":"hello"}"#)
        .len()
        .max(finish("stop").len());
    for (less, more) in [(0, 1), (0, 0), (1, 0)] {
        for limits in [
            ReplyLimits {
                reply_bytes: body.len() + more - less,
                ..ReplyLimits::default()
            },
            ReplyLimits {
                event_bytes: event + more - less,
                ..ReplyLimits::default()
            },
        ] {
            let whole = hear_parts(Api::OpenAi, &STREAM, limits, [&*body]);
            assert_eq!(whole.complete(), less == 0, "{limits:?}");
            assert_eq!(
                whole,
                hear_parts(Api::OpenAi, &STREAM, limits, body.chunks(1))
            );
        }
    }
    let finished = ReplyLimits {
        reply_bytes: body.len(),
        ..ReplyLimits::default()
    };
    let heard = hear_parts(Api::OpenAi, &STREAM, finished, [&*body, b"data: more\n\n"]);
    assert!(
        heard.complete(),
        "a complete reply isn't spoilt by what follows it"
    );
    let short = ReplyLimits {
        reply_bytes: 100,
        ..ReplyLimits::default()
    };
    let heard = hear_parts(Api::OpenAi, &STREAM, short, [&*body]);
    assert_eq!(
        (heard.failure().kind, heard.failure().retryable),
        (FailureKind::StreamCut, false)
    );
    assert_eq!(
        heard,
        hear_parts(Api::OpenAi, &STREAM, short, body.chunks(7))
    );
}

#[test]
fn j01_halves_wait_for_their_own_channel_only() {
    let heard = openai(&[
        &delta(r#"{"content":"a\ud83e"}"#),
        &delta(r#"{"reasoning_content":"\udd80"}"#),
        &delta(r#"{"content":"\udd80b"}"#),
        &delta(r#"{"content":"\ud83e"}"#),
        &finish("stop"),
    ]);
    assert_eq!(
        (&*heard.text, &*heard.thinking),
        ("a\u{fffd}\u{fffd}b\u{fffd}", "\u{fffd}")
    );
    let call = |args: &str| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{args}"}}}}]}}"#
        ))
    };
    let heard = openai(&[
        &call(r#"{\"s\":\"\ud83e"#),
        &call(r#"\udd80\"}"#),
        &finish("stop"),
    ]);
    assert_eq!(heard.calls[0].args, "{\"s\":\"🦀\"}");
}

// ---- laws

fn some_event() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "[a-z]{0,4}",
        Just(r"\ud83e".into()),
        Just(r"\udd80x".into()),
        Just(r"\n\u00e9".into()),
        Just("🦀".into())
    ];
    let call = (
        0..3u32,
        "[ab]{0,1}",
        prop_oneof![Just("f"), Just("g"), Just("")],
        "[0-9]{0,3}",
    );
    prop_oneof![
        3 => text.prop_map(|text| delta(&format!(r#"{{"content":"{text}"}}"#))),
        1 => "[a-z\\\\n]{0,3}".prop_map(|text| delta(&format!(r#"{{"reasoning":"{}"}}"#, text.replace('\\', "")))),
        3 => call.prop_map(|(index, id, name, args)| delta(&format!(r#"{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"{name}","arguments":"{args}"}}}}]}}"#))),
        1 => Just(finish("stop")),
        1 => Just(r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#.into()),
        1 => Just(START.into()),
        1 => (0..2u32).prop_map(|index| block(index, r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#)),
        1 => (0..2u32).prop_map(|index| add(index, r#"{"type":"input_json_delta","partial_json":"{}"}"#)),
        1 => (0..2u32).prop_map(|index| add(index, r#"{"type":"text_delta","text":"t\ud83e"}"#)),
        1 => (0..2u32).prop_map(stop),
        1 => Just(end_turn("end_turn")),
        1 => Just("[DONE]".into()),
        1 => Just(r#"{"error":{"message":"x"}}"#.into()),
        1 => Just("noise".into()),
    ]
}

fn some_head() -> impl Strategy<Value = ReplyHead<'static>> {
    prop_oneof![3 => Just(STREAM), 1 => Just(JSON), 1 => Just(ReplyHead { status: 500, ..ReplyHead::default() })]
}

proptest! {
    #[test]
    fn l1_any_cut_gives_the_same_chunks(
        events in prop::collection::vec(some_event(), 0..10),
        head in some_head(),
        api in prop_oneof![Just(Api::OpenAi), Just(Api::Anthropic)],
        size in 1..40usize,
        cut in any::<prop::sample::Index>(),
        limit in prop_oneof![Just(16usize << 20), 0..600usize],
    ) {
        let limits = ReplyLimits { reply_bytes: limit, event_bytes: limit, error_body_bytes: limit, ..ReplyLimits::default() };
        let mut body = sse(&events.iter().map(|event| &**event).collect::<Vec<_>>());
        body.truncate(cut.index(body.len() + 1).max(body.len() / 2));
        let whole = hear_parts(api, &head, limits, [&*body]);
        prop_assert_eq!(&whole, &hear_parts(api, &head, limits, body.chunks(size)));
        prop_assert_eq!(&whole, &hear_parts(api, &head, limits, body.chunks(1)));
        prop_assert!(whole.ended != whole.failed.is_some(), "exactly one settlement");
    }

    #[test]
    fn l9_any_bytes_settle_once(body in prop::collection::vec(any::<u8>(), 0..300), head in some_head(), size in 1..40usize, api in prop_oneof![Just(Api::OpenAi), Just(Api::Anthropic)]) {
        let whole = hear_parts(api, &head, ReplyLimits::default(), [&*body]);
        prop_assert_eq!(&whole, &hear_parts(api, &head, ReplyLimits::default(), body.chunks(size)));
    }
}
