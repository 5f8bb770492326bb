//! Streams of the chat completions API beyond the cases from the field: what is read and what is skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::model_support;

use model_support::{Heard, NOW, STREAM, delta, finish, hear, hear_all_cuts, sse};
use turnwire::model::{Api, ReplyDecoder, ReplyLimits};
use turnwire::vocab::{FailureKind, ModelChunk, Usage};

fn openai(events: &[&str]) -> Heard {
    hear_all_cuts(Api::OpenAi, &STREAM, &sse(events))
}

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
        &delta(r#"{"reasoning_content":"","reasoning":"d"}"#),
        &delta(r#"{"reasoning":{"summary":"x"},"content":"!"}"#),
        &finish("stop"),
    ]);
    assert_eq!((&*heard.thinking, &*heard.text), ("ab\ncd", "text!"));
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
    // The name is said twice before the arguments.
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#
        ]),
        want(&[("a", "f", "{}")])
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
fn arguments_after_the_finish_are_too_late() {
    let call = |args: &str| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{args}"}}}}]}}"#
        ))
    };
    let heard = openai(&[&call("{}"), &finish("tool_calls"), &call("{}"), "[DONE]"]);
    assert_eq!(heard.calls[0].args, "{}");
    assert!(heard.complete());
}

#[test]
fn tw_10_calls_beyond_128_are_not_taken() {
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
    assert_eq!(
        usage_of(
            r#"{"prompt_tokens":1,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":3}}"#
        ),
        usage(Some(1), None, Some(2), Some(3)),
        "more thinking than completion stands beside it"
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
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
            FailureKind::Server,
            true,
            "upstream (502)",
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
