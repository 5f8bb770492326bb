//! Bodies that are no streams, error statuses, broken transports, and the limits of a reply.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::model_support;

use model_support::{
    Heard, JSON, NOW, STREAM, delta, finish, hear, hear_all_cuts, hear_parts, sse,
};
use turnwire::model::{Api, ReplyDecoder, ReplyHead, ReplyLimits, lost, unreached};
use turnwire::vocab::FailureKind;

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
    let unframed = hear_all_cuts(Api::OpenAi, &STREAM, br#"{"error":"bare"}"#);
    assert!(unframed.error().contains("bare"), "whatever the head says");
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
            r#"[{"error":{"message":"in a list"}}]"#,
            "backend returned 401 Unauthorized: in a list",
        ),
        (
            "data: {\"error\":{\"message\":\"in a frame\"}}\n\n",
            "backend returned 401 Unauthorized: in a frame",
        ),
        (
            r#"{"error":{"code":5}}"#,
            r#"backend returned 401 Unauthorized: {"error":{"code":5}}"#,
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
    let small = ReplyLimits {
        event_bytes: event,
        ..ReplyLimits::default()
    };
    let large = sse(&[&"x".repeat(event + 1)]);
    let heard = hear_parts(Api::OpenAi, &STREAM, small, [&*body, &*large]);
    assert!(heard.complete(), "nor by an event that is too large");
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
