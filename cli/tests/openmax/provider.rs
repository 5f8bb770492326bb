//! Providers that fail: what is tried again, and what isn't.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::program::{Ended, Home, KEY, Program, Setup, joined, of, types};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::{anthropic, openai};

/// One turn, and the session's end.
#[track_caller]
fn turn(provider: &Provider, args: &[&str]) -> Ended {
    let home = Home::new();
    let mut program = Setup::openai(&home, provider)
        .key("TEST_KEY")
        .args(args)
        .start();
    program.turn("go");
    program.close_input();
    program.wait()
}

fn stop_reason(ended: &Ended) -> &str {
    let dones = ended.of("done");
    assert_eq!(dones.len(), 1);
    dones[0]["stop_reason"].as_str().unwrap()
}

fn busy(status: &'static str, retry_after: Option<&str>) -> Reply {
    let reply = Reply::failure(status, r#"{"error":{"message":"come back later"}}"#);
    match retry_after {
        Some(value) => reply.header("retry-after", value),
        None => reply,
    }
}

#[test]
fn om_26_a_server_fault_is_tried_again() {
    for status in ["500 Internal Server Error", "529 Overloaded"] {
        let provider = Provider::start([busy(status, None), openai::says("Whole.")]);
        let begun = Instant::now();
        let ended = turn(&provider, &[]);
        assert!(begun.elapsed() >= Duration::from_secs(1), "the backoff");
        let retries = ended.of("retry");
        assert_eq!(retries.len(), 1);
        assert_eq!(
            (&retries[0]["attempt"], &retries[0]["max_attempts"]),
            (&json!(2), &json!(8))
        );
        let reason = retries[0]["reason"].as_str().unwrap();
        assert!(
            reason.contains(&status[..3]) && reason.contains("come back later"),
            "{reason}"
        );
        assert_eq!(
            (
                joined(&ended.lines, "token").as_str(),
                stop_reason(&ended),
                ended.code
            ),
            ("Whole.", "stop", Some(0))
        );
        // The same request again.
        let requests = provider.requests();
        assert_eq!(requests[0].body, requests[1].body);
    }
}

#[test]
fn om_26_a_bad_request_is_not_tried_again() {
    let provider = Provider::start([busy("400 Bad Request", Some("1"))]);
    let ended = turn(&provider, &[]);
    assert_eq!((stop_reason(&ended), ended.code), ("error", Some(1)));
    assert!(ended.of("retry").is_empty() && ended.of("message_done").is_empty());
    let errors = ended.of("error");
    assert_eq!(errors.len(), 1);
    let message = errors[0]["message"].as_str().unwrap();
    assert!(
        message.contains("400") && message.contains("come back later"),
        "{message}"
    );
}

#[test]
fn e06_om_27_retry_after_is_kept() {
    let provider = Provider::start([
        busy("429 Too Many Requests", Some("3")),
        openai::says("Whole."),
    ]);
    let begun = Instant::now();
    let ended = turn(&provider, &[]);
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!((ended.of("retry").len(), stop_reason(&ended)), (1, "stop"));
}

#[test]
fn e06_om_27_more_than_a_minute_isnt_waited_for() {
    for wait in ["61", "99999999999999999999"] {
        let provider = Provider::start([
            busy("429 Too Many Requests", Some(wait)),
            openai::says("Whole."),
        ]);
        let ended = turn(&provider, &[]);
        assert_eq!(
            (ended.of("retry").len(), stop_reason(&ended), ended.code),
            (0, "error", Some(1))
        );
        let message = ended.of("error")[0]["message"].as_str().unwrap();
        assert!(wait != "61" || message.contains("61"), "{message}");
        assert_eq!(provider.left(), 1);
    }
}

#[test]
fn e06_rubbish_in_retry_after_is_the_own_backoff() {
    for wait in [
        "0",
        "-3",
        "1000abc",
        "Someday, soon",
        "Wed, 21 Oct 2015 07:28:00 GMT",
    ] {
        let provider = Provider::start([
            busy("503 Service Unavailable", Some(wait)),
            openai::says("Whole."),
        ]);
        let begun = Instant::now();
        let ended = turn(&provider, &[]);
        let waited = begun.elapsed();
        assert!(
            waited >= Duration::from_secs(1) && waited < Duration::from_secs(8),
            "{waited:?} for {wait:?}"
        );
        assert_eq!((ended.of("retry").len(), stop_reason(&ended)), (1, "stop"));
    }
}

#[test]
fn e06_om_27_a_quota_that_is_used_up_isnt_tried_again() {
    for body in [
        r#"{"error":{"code":"insufficient_quota","message":"used up"}}"#,
        r#"{"error":{"type":"insufficient_quota","code":null,"message":"used up"}}"#,
    ] {
        let reply = Reply::failure("429 Too Many Requests", body).header("retry-after", "1");
        let provider = Provider::start([reply, openai::says("Whole.")]);
        let ended = turn(&provider, &[]);
        assert_eq!(
            (
                ended.of("retry").len(),
                stop_reason(&ended),
                provider.left()
            ),
            (0, "error", 1)
        );
        assert!(
            ended.of("error")[0]["message"]
                .as_str()
                .unwrap()
                .contains("used up")
        );
    }
}

#[test]
fn om_29_three_attempts_that_reach_nobody_are_enough() {
    // A port that was free a moment ago, and that nobody listens on.
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let home = Home::new();
    let mut program = Setup::openai_at(&home, &format!("http://{address}/v1"), "auto").start();
    let begun = Instant::now();
    let lines = program.turn("go");
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "one and two seconds of backoff"
    );
    assert_eq!(of(&lines, "retry").len(), 2);
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "error");
    assert_eq!(types(&lines)[types(&lines).len() - 2..], ["error", "done"]);
    program.close_input();
    assert_eq!(program.wait().code, Some(1));
}

#[test]
fn om_25_the_exit_code_is_the_last_turns() {
    let provider = Provider::start([busy("400 Bad Request", None), openai::says("Whole.")]);
    let home = Home::new();
    let mut program = Setup::openai(&home, &provider).start();
    assert_eq!(of(&program.turn("one"), "done")[0]["stop_reason"], "error");
    assert_eq!(of(&program.turn("two"), "done")[0]["stop_reason"], "stop");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_26_a_connection_that_dies_before_the_reply_is_tried_again() {
    for dying in [
        Reply::stream().only(0).reset(),
        Reply::stream().only(0),
        Reply::stream().bytes(openai::text("x")).only(20),
        Reply::stream().cut(),
        Reply::stream()
            .bytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"role\"")
            .reset(),
    ] {
        let provider = Provider::start([dying.clone(), openai::says("Whole.")]);
        let ended = turn(&provider, &[]);
        assert_eq!(
            (ended.of("retry").len(), stop_reason(&ended)),
            (1, "stop"),
            "{dying:?}"
        );
        assert_eq!(joined(&ended.lines, "token"), "Whole.");
    }
}

#[test]
fn om_26_thinking_of_a_dead_attempt_is_void_and_the_reply_starts_over() {
    let dying = Reply::stream().bytes(openai::thinking("Hm.")).cut();
    let provider = Provider::start([dying, openai::says("Whole.")]);
    let ended = turn(&provider, &[]);
    let types = ended.types();
    let at = types.iter().position(|kind| *kind == "budget").unwrap();
    assert_eq!(
        types[at..],
        [
            "budget",
            "thinking",
            "retry",
            "token",
            "message_done",
            "done"
        ]
    );
}

#[test]
fn om_22_a_stream_that_dies_after_text_is_truncated_and_kept() {
    for ending in [
        Reply::stream().bytes(openai::text("Half")).cut(),
        Reply::stream()
            .bytes(openai::text("Half"))
            .wait(Duration::from_millis(200))
            .reset(),
        Reply::stream().bytes(openai::text("Half")),
        Reply::stream().bytes(openai::text("Half")).until_close(),
    ] {
        let provider = Provider::start([ending, openai::says("Next.")]);
        let home = Home::new();
        let mut program = Setup::openai(&home, &provider).start();
        let lines = program.turn("go");
        let types = types(&lines);
        assert_eq!(
            types[types.len() - 4..],
            ["token", "message_done", "error", "done"]
        );
        assert_eq!(of(&lines, "message_done")[0]["text"], "Half");
        assert_eq!(of(&lines, "done")[0]["stop_reason"], "truncated");
        program.turn("next");
        let kept = provider.request(2).json();
        assert!(
            kept["messages"]
                .as_array()
                .unwrap()
                .iter()
                .any(|message| message["content"] == "Half"),
            "{kept}"
        );
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
    }
}

#[test]
fn d08_om_22_a_call_of_a_stream_that_never_finished_isnt_run() {
    let call = openai::call(
        0,
        "c1",
        "write_file",
        &json!({ "path": "made.txt", "content": "x" }),
    );
    let half = openai::call_text(
        0,
        "c1",
        "write_file",
        "{\"path\":\"made.txt\",\"content\":\"ha",
    );
    for body in [call, half] {
        let home = Home::new();
        let reply = Reply::stream().bytes(openai::text("Writing.")).bytes(body);
        let provider = Provider::start([reply, openai::says("Next.")]);
        let mut program = Setup::openai(&home, &provider).start();
        let lines = program.turn("go");
        assert_eq!(of(&lines, "done")[0]["stop_reason"], "truncated");
        assert!(of(&lines, "tool_start").is_empty());
        assert!(
            of(&lines, "error")[0]["message"]
                .as_str()
                .unwrap()
                .contains("did not run")
        );
        assert_eq!(home.read("made.txt"), None);
        // The history is still one that a provider takes: the call has its result.
        program.turn("next");
        let body = provider.request(2).json();
        let messages = body["messages"].as_array().unwrap();
        if let Some(at) = messages
            .iter()
            .position(|message| message.get("tool_calls").is_some())
        {
            assert_eq!(
                messages[at + 1]["tool_call_id"],
                messages[at]["tool_calls"][0]["id"],
                "{body}"
            );
        }
    }
}

#[test]
fn d08_arguments_cut_off_by_the_length_limit_arent_run() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::call_text(
            0,
            "c1",
            "write_file",
            "{\"path\":\"made.txt\",\"content\":\"half",
        ))
        .bytes(openai::finish("length"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("I see.")]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    assert_eq!(home.read("made.txt"), None);
    assert!(
        of(&lines, "tool_end")
            .iter()
            .all(|line| line["ok"] == false)
    );
    assert_eq!(of(&lines, "done").len(), 1);
}

#[test]
fn d09_om_21_an_error_inside_the_stream() {
    // Before any text it is tried again.
    for body in [
        r#"{"choices":[],"error":{"code":502,"message":"worker limit reached"}}"#,
        r#"{"error":{"type":"server_error","message":"boom"}}"#,
    ] {
        let failing = Reply::stream()
            .bytes(format!("data: {body}\n\n"))
            .bytes(openai::DONE);
        let provider = Provider::start([failing, openai::says("Whole.")]);
        let ended = turn(&provider, &[]);
        assert_eq!(
            (ended.of("retry").len(), stop_reason(&ended)),
            (1, "stop"),
            "{body}"
        );
    }
    // After text it isn't, and the text isn't kept.
    let body = r#"{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"overloaded"}}"#;
    let failing = Reply::stream()
        .bytes(openai::text("Half"))
        .bytes(format!("data: {body}\n\n"))
        .bytes(openai::DONE);
    let provider = Provider::start([failing, openai::says("Next.")]);
    let home = Home::new();
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    let types = types(&lines);
    assert_eq!(types[types.len() - 3..], ["token", "error", "done"]);
    assert!(
        of(&lines, "error")[0]["message"]
            .as_str()
            .unwrap()
            .contains("overloaded")
    );
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "error");
    program.turn("next");
    assert!(!provider.request(2).json().to_string().contains("Half"));
}

#[test]
fn e07_overload_in_anthropics_stream() {
    let overload = anthropic::error("overloaded_error", "Overloaded");
    let whole = [
        anthropic::start(),
        anthropic::text(0, "Whole"),
        anthropic::end("end_turn"),
    ];
    let provider = Provider::start([
        anthropic::reply(&[anthropic::start(), anthropic::ping(), overload.clone()]),
        anthropic::reply(&whole),
    ]);
    let home = Home::new();
    let mut program = Setup::anthropic(&home, &provider).start();
    let lines = program.turn("go");
    assert_eq!(
        (of(&lines, "retry").len(), of(&lines, "error").len()),
        (1, 0)
    );
    assert_eq!(joined(&lines, "token"), "Whole");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "end_turn");

    let half = anthropic::block(
        0,
        &json!({ "type": "text", "text": "" }),
        &json!({ "type": "text_delta", "text": "Half" }),
    );
    let provider = Provider::start([anthropic::reply(&[anthropic::start(), half, overload])]);
    let mut program = Setup::anthropic(&home, &provider).start();
    let lines = program.turn("go");
    assert_eq!(
        (
            of(&lines, "retry").len(),
            of(&lines, "error").len(),
            of(&lines, "message_done").len()
        ),
        (0, 1, 0)
    );
    assert_eq!(joined(&lines, "token"), "Half");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "error");
    assert_eq!(provider.requests().len(), 1);
}

/// Waits for the end of a turn that a short idle limit ends.
#[track_caller]
fn idle(home: &Home, provider: &Provider) -> Program {
    let mut program = Setup::openai(home, provider)
        .args(&["--idle-limit", "1"])
        .start();
    program.user("go");
    program
}

#[test]
fn p05_comments_dont_hide_a_dead_stream() {
    let home = Home::new();
    let often = Duration::from_millis(100);
    let reply = Reply::stream()
        .bytes(openai::text("Hi"))
        .repeat(": keep\n\n", 300, often);
    let provider = Provider::start([reply]);
    let mut program = idle(&home, &provider);
    let begun = Instant::now();
    program.see_type("error");
    let reason = program.see_type("done")["stop_reason"].clone();
    assert!(reason == "truncated" || reason == "error", "{reason}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn p05_empty_deltas_and_pings_dont_hide_a_dead_stream() {
    let often = Duration::from_millis(100);
    let home = Home::new();
    let reply = Reply::stream().repeat(openai::text(""), 300, often);
    let provider = Provider::start([reply, openai::says("Whole.")]);
    let mut program = idle(&home, &provider);
    program.see_type("retry");
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));

    let pings = Reply::stream()
        .bytes(anthropic::start())
        .repeat(anthropic::ping(), 300, often);
    let whole = [
        anthropic::start(),
        anthropic::text(0, "Whole"),
        anthropic::end("end_turn"),
    ];
    let provider = Provider::start([pings, anthropic::reply(&whole)]);
    let mut program = Setup::anthropic(&home, &provider)
        .args(&["--idle-limit", "1"])
        .start();
    program.user("go");
    program.see_type("retry");
    program.see(&json!({ "type": "done", "stop_reason": "end_turn" }));
}

#[test]
fn p05_a_provider_that_never_answers_is_bounded() {
    let home = Home::new();
    let provider = Provider::start([Reply::stream().only(0).stall(), openai::says("Whole.")]);
    let mut program = idle(&home, &provider);
    program.see_type("retry");
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
}

#[test]
fn a_redirect_takes_no_key_to_another_server() {
    for anthropic_api in [false, true] {
        let other = Provider::start([openai::says("Stolen."), openai::says("Stolen.")]);
        let away = Reply::status("307 Temporary Redirect")
            .header("location", &(other.url() + "/v1/chat/completions"));
        let provider = Provider::start([away]);
        let home = Home::new();
        let mut program = if anthropic_api {
            Setup::anthropic(&home, &provider).start()
        } else {
            Setup::openai(&home, &provider).key("TEST_KEY").start()
        };
        program.turn("go");
        for request in other.requests() {
            assert!(
                !request.headers.iter().any(|(_, value)| value.contains(KEY)),
                "{:?}",
                request.headers
            );
        }
    }
}

#[test]
fn a_key_that_a_provider_sends_back_isnt_shown() {
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}.\"}}}}");
    let unauthorized = Reply::failure("401 Unauthorized", &body);
    let inside = Reply::stream()
        .bytes(format!("data: {body}\n\n"))
        .bytes(openai::DONE);
    let busy = Reply::failure("503 Service Unavailable", &body);
    let provider = Provider::start([unauthorized, inside, busy, openai::says("Fine.")]);
    let home = Home::new();
    let mut program = Setup::openai(&home, &provider)
        .key("TEST_KEY")
        .args(&["--log", "trace"])
        .start();
    // That no line holds the key is checked for every line, and at the end for stderr.
    let lines = program.turn("go");
    let message = of(&lines, "error")[0]["message"].as_str().unwrap();
    assert!(
        message.contains("Incorrect API key provided: "),
        "{message}"
    );
    program.turn("again");
    program.turn("and again");
    program.close_input();
    program.wait();
}
