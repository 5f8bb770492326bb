//! A real session behind the Server: whole turns, line by line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::duo::*;
use openmax_kit::refusal;
use turnwire::vocab::*;

fn auto() -> Duo {
    Duo::new(session_config(ApprovalMode::Auto))
}

fn ask() -> Duo {
    Duo::new(session_config(ApprovalMode::Ask))
}

const READ: (&str, &str, &str) = ("c1", "look", r#"{"path":"a"}"#);
const WRITE: (&str, &str, &str) = ("c2", "write", r#"{"path":"b"}"#);

#[test]
fn om_01_the_handshake_is_all_that_is_said_unasked() {
    let duo = auto();
    assert_eq!(openmax_kit::labels(&duo.all_lines), ["hello"]);
}

#[test]
fn om_20_a_text_turn() {
    let mut duo = auto();
    duo.user("hi");
    assert_eq!(duo.labels(), ["budget"]);
    duo.head(200, None);
    duo.part("Hello from the mock.", &[]);
    assert_eq!(
        duo.all("token", "text"),
        ["Hello ", "from ", "the ", "mock."],
        "each as it comes"
    );
    duo.lines();
    duo.bytes("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n");
    duo.bytes("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"prompt_tokens_details\":{\"cached_tokens\":64}}}\n\ndata: [DONE]\n\n");
    duo.close();
    let head = r#"{"session_id":"6f1e6a52-0000-4000-8000-000000000001","type":"#;
    assert_eq!(
        duo.lines(),
        [
            format!(
                r#"{head}"usage","prompt_tokens":100,"completion_tokens":20,"cached_tokens":64}}"#
            ),
            format!(r#"{head}"message_done","text":"Hello from the mock."}}"#),
            format!(r#"{head}"done","stop_reason":"length"}}"#)
        ]
    );
    duo.user("again");
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        ["budget", "token*", "usage", "message_done", "done(stop)"]
    );
}

#[test]
fn om_13_thinking_then_text() {
    let mut duo = auto();
    duo.user("hi");
    duo.head(200, None);
    duo.bytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n");
    duo.part("yes", &[]);
    duo.bytes("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    duo.close();
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "thinking*",
            "token*",
            "message_done",
            "done(stop)"
        ]
    );
    assert_eq!(
        duo.all("message_done", "text"),
        ["yes"],
        "thinking is no text"
    );
}

#[test]
fn om_13_tools_in_auto_mode() {
    let mut duo = auto();
    duo.user("go");
    duo.answer("", &[READ, ("c3", "f", "{}"), WRITE]);
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "tool_start(c3)"
        ]
    );
    let second = duo.running[1].call;
    duo.tool_done(second, false, "no such file");
    assert_eq!(duo.labels(), [""; 0], "ends come in call order");
    duo.next_tool_done(true, "text of a");
    assert_eq!(
        duo.labels(),
        ["tool_end(c1)", "tool_end(c3)", "tool_start(c2)"]
    );
    duo.changed_file("b");
    duo.next_tool_done(true, "wrote b");
    assert_eq!(duo.labels(), ["diff", "tool_end(c2)", "budget"]);
    duo.answer("Done.", &[]);
    assert_eq!(
        duo.labels(),
        ["token*", "usage", "message_done", "done(stop)"]
    );
    assert_eq!(duo.all("tool_end", "ok"), [true, false, true]);
    assert_eq!(
        duo.all("approval_request", "name"),
        [""; 0],
        "OM-14: auto asks nothing"
    );
}

#[test]
fn om_13_calls_that_cannot_run_have_an_object_for_arguments() {
    let mut duo = auto();
    duo.user("go");
    duo.answer("", &[("c1", "look", "{\"path\":"), ("c2", "nothing", "{}")]);
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "tool_end(c1)",
            "tool_start(c2)",
            "tool_end(c2)",
            "budget"
        ]
    );
    assert_eq!(
        duo.all("tool_start", "args"),
        [serde_json::json!({}), serde_json::json!({})]
    );
    assert_eq!(duo.all("tool_end", "ok"), [false, false]);
}

#[test]
fn om_05_an_approved_write() {
    let mut duo = ask();
    duo.user("go");
    duo.answer("", &[READ, WRITE]);
    duo.next_tool_done(true, "text");
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "tool_end(c1)",
            "tool_start(c2)",
            "approval_request"
        ]
    );
    assert_eq!(duo.all("approval_request", "summary"), ["b"]);
    assert_eq!(duo.running, [], "it doesn't run before it may");
    duo.approve(true);
    assert_eq!(duo.labels(), ["approval_settled(approved)"]);
    duo.next_tool_done(true, "wrote");
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        [
            "tool_end(c2)",
            "budget",
            "token*",
            "usage",
            "message_done",
            "done(stop)"
        ]
    );
    duo.approve(true);
    assert_eq!(duo.labels(), ["protocol_error"]);
}

#[test]
fn om_05_a_declined_write_and_one_question_at_a_time() {
    let mut duo = ask();
    duo.user("go");
    duo.answer("", &[("c1", "write", r#"{"path":"a"}"#), WRITE]);
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "approval_request"
        ]
    );
    duo.approve(false);
    assert_eq!(
        duo.labels(),
        [
            "approval_settled(declined)",
            "tool_end(c1)",
            "tool_start(c2)",
            "approval_request"
        ]
    );
    assert_eq!(duo.running, []);
    duo.approve(true);
    duo.next_tool_done(true, "wrote");
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        [
            "approval_settled(approved)",
            "tool_end(c2)",
            "budget",
            "token*",
            "usage",
            "message_done",
            "done(stop)"
        ]
    );
}

#[test]
fn om_14_a_mode_change_leaves_an_open_request_and_counts_for_the_next_call() {
    let mut duo = ask();
    duo.disk_held = true;
    duo.user("go");
    duo.answer("", &[("c1", "write", r#"{"path":"a"}"#), WRITE]);
    duo.lines();
    duo.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    assert_eq!(duo.labels(), [""; 0], "OM-07: not before it is stored");
    while !duo.writes.is_empty() {
        duo.store(Ok(()));
    }
    duo.disk_held = false;
    assert_eq!(duo.labels(), ["approval_mode"], "the request stays open");
    duo.approve(true);
    duo.next_tool_done(true, "wrote");
    assert_eq!(
        duo.labels(),
        [
            "approval_settled(approved)",
            "tool_end(c1)",
            "tool_start(c2)"
        ],
        "the next one isn't asked"
    );
    duo.next_tool_done(true, "wrote");
    duo.answer("ok", &[]);
    assert_eq!(duo.labels().last().map(String::as_str), Some("done(stop)"));
}

#[test]
fn om_07_a_mode_that_cannot_be_stored_is_unchanged() {
    let mut duo = ask();
    duo.disk_held = true;
    duo.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    duo.store(Err("disk full".into()));
    let lines = duo.lines();
    let text = refusal(&lines[0]);
    assert!(
        text.starts_with("approval mode unchanged; persisting it failed: ")
            && text.ends_with("disk full"),
        "{text}"
    );
    duo.disk_held = false;
    duo.user("go");
    duo.answer("", &[WRITE]);
    assert_eq!(
        duo.labels().last().map(String::as_str),
        Some("approval_request"),
        "still ask"
    );
}

#[test]
fn om_13_readonly_runs_reads_and_denies_the_rest() {
    let mut duo = Duo::new(session_config(ApprovalMode::ReadOnly));
    duo.user("go");
    duo.answer("", &[READ, WRITE]);
    duo.next_tool_done(true, "text");
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "tool_end(c1)",
            "tool_start(c2)",
            "tool_end(c2)",
            "budget"
        ]
    );
    assert_eq!(duo.all("tool_end", "ok"), [true, false]);
}

#[test]
fn om_23_cancel_before_the_first_byte() {
    let mut duo = auto();
    duo.user("go");
    duo.cancel();
    assert_eq!(duo.labels(), ["budget", "message_done", "done(cancelled)"]);
    assert!(duo.requests[0].stopped);
    duo.cancel();
    assert_eq!(duo.labels(), [""; 0], "with no turn it says nothing");
    duo.close_of(0, true);
    duo.user("next");
    duo.answer("ok", &[]);
    assert_eq!(duo.labels().last().map(String::as_str), Some("done(stop)"));
}

#[test]
fn om_23_cancel_while_streaming_keeps_the_text() {
    let mut duo = auto();
    duo.user("go");
    duo.head(200, None);
    duo.part("half an ans", &[]);
    duo.host_raw(
        b"{\"cmd\":\"cancel\"}\n{\"cmd\":\"cancel\"}\n{\"cmd\":\"user\",\"text\":\"next\"}\n",
    );
    let labels = duo.labels();
    assert_eq!(
        labels[..4],
        ["budget", "token*", "message_done", "done(cancelled)"]
    );
    assert_eq!(duo.all("message_done", "text"), ["half an ans"]);
    assert_eq!(
        labels[4..],
        ["budget"],
        "the prompt behind it is a turn of its own"
    );
}

#[test]
fn om_23_cancel_with_a_question_open() {
    let mut duo = ask();
    duo.user("go");
    duo.answer("", &[WRITE, ("c3", "write", "{}")]);
    duo.lines();
    duo.cancel();
    assert_eq!(
        duo.labels(),
        [
            "approval_settled(cancelled)",
            "tool_end(c2)",
            "done(cancelled)"
        ]
    );
    duo.approve(true);
    assert_eq!(duo.labels(), ["protocol_error"]);
}

#[test]
fn om_23_cancel_while_tools_run() {
    let mut duo = auto();
    duo.user("go");
    duo.answer("text", &[READ, WRITE]);
    duo.lines();
    duo.cancel();
    assert_eq!(
        duo.labels(),
        ["tool_end(c1)", "done(cancelled)"],
        "a call that never began has no line"
    );
    assert_eq!(duo.all("tool_end", "ok"), [false]);
    let call = duo.stopping[0];
    duo.tool_done(call, true, "late");
    assert_eq!(duo.labels(), [""; 0]);
}

#[test]
fn om_28_cancel_in_a_retry_wait() {
    let mut duo = auto();
    duo.user("go");
    duo.head(503, None);
    duo.close();
    assert_eq!(duo.labels(), ["budget", "retry"]);
    duo.cancel();
    assert_eq!(duo.labels(), ["message_done", "done(cancelled)"]);
    duo.pass_ms(120_000);
    assert_eq!(duo.requests.len(), 1, "the attempt never goes out");
}

#[test]
fn om_26_a_retry_then_an_answer() {
    let mut duo = auto();
    duo.user("go");
    duo.head(503, None);
    duo.close();
    assert_eq!(duo.all("retry", "attempt"), [2]);
    assert_eq!(duo.all("retry", "max_attempts"), [8]);
    duo.pass_ms(999);
    assert_eq!(duo.requests.len(), 1);
    duo.pass_ms(1);
    assert_eq!(duo.requests.len(), 2);
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "retry",
            "token*",
            "usage",
            "message_done",
            "done(stop)"
        ]
    );
}

#[test]
fn om_29_three_attempts_that_never_reached_the_endpoint_give_up() {
    let mut duo = auto();
    duo.user("go");
    duo.unreached();
    duo.pass_ms(1_000);
    duo.unreached();
    duo.pass_ms(2_000);
    duo.unreached();
    assert_eq!(
        duo.labels(),
        ["budget", "retry", "retry", "error", "done(error)"]
    );
    duo.host_end();
    assert_eq!(duo.exit, Some(1), "OM-25");
}

#[test]
fn om_22_a_stream_without_an_end_is_truncated_and_runs_nothing() {
    for reset in [false, true] {
        let mut duo = auto();
        duo.user("go");
        duo.head(200, None);
        duo.part("half", &[READ]);
        duo.close_of(0, !reset);
        assert_eq!(
            duo.labels(),
            [
                "budget",
                "token*",
                "message_done",
                "error",
                "done(truncated)"
            ]
        );
        assert_eq!(duo.all("message_done", "text"), ["half"]);
        assert_eq!(duo.running, []);
    }
}

#[test]
fn om_26_a_stream_that_dies_before_text_is_tried_again() {
    let mut duo = auto();
    duo.user("go");
    for attempt in 2..=8 {
        duo.head(200, None);
        duo.bytes(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
        );
        duo.close();
        assert_eq!(duo.all("retry", "attempt").last(), Some(&attempt.into()));
        duo.pass_ms(16_000);
    }
    duo.head(200, None);
    duo.bytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n");
    duo.close();
    let labels = duo.labels();
    assert_eq!(
        labels[labels.len() - 3..],
        ["message_done", "error", "done(truncated)"]
    );
    assert_eq!(duo.all("message_done", "text"), [""]);
}

#[test]
fn om_21_an_error_inside_the_stream_after_text() {
    let mut duo = auto();
    duo.user("go");
    duo.head(200, None);
    duo.part("half", &[]);
    duo.bytes("data: {\"error\":{\"message\":\"the model is overloaded\",\"type\":\"overloaded_error\"}}\n\n");
    duo.close();
    assert_eq!(duo.labels(), ["budget", "token*", "error", "done(error)"]);
    let error = duo.all("error", "message")[0].as_str().unwrap().to_owned();
    assert!(error.contains("the model is overloaded"), "{error}");
    duo.user("next");
    duo.answer("ok", &[]);
    let texts: Vec<String> = duo.requests[1]
        .messages
        .iter()
        .map(|message| format!("{message:?}"))
        .collect();
    assert!(
        !texts.concat().contains("half"),
        "the partial text isn't kept"
    );
}

#[test]
fn om_18_two_prompts_in_one_write() {
    let mut duo = auto();
    duo.host_raw(b"{\"cmd\":\"user\",\"text\":\"one\"}\n{\"cmd\":\"user\",\"text\":\"two\"}\n");
    assert_eq!(duo.labels(), ["budget", "protocol_error"]);
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        ["token*", "usage", "message_done", "done(stop)"]
    );
    assert_eq!(duo.requests.len(), 1);
}

#[test]
fn om_09_quit_in_a_turn_lets_it_end() {
    let mut duo = ask();
    duo.user("go");
    duo.answer("", &[WRITE, ("c3", "write", "{}")]);
    duo.lines();
    duo.host_raw(b"{\"cmd\":\"quit\"}\n{\"cmd\":\"user\",\"text\":\"not read\"}\n");
    assert_eq!(
        duo.labels(),
        [
            "approval_settled(declined)",
            "tool_end(c2)",
            "tool_start(c3)",
            "approval_request",
            "approval_settled(declined)",
            "tool_end(c3)",
            "budget"
        ]
    );
    assert_eq!(duo.exit, None);
    duo.answer("ok", &[]);
    assert_eq!(
        duo.labels(),
        ["token*", "usage", "message_done", "done(stop)"]
    );
    assert_eq!(duo.exit, Some(0));
}

#[test]
fn om_09_a_one_shot_pipe_works() {
    let mut duo = auto();
    duo.host_raw(br#"{"cmd":"user","text":"go"}"#);
    duo.host_end();
    assert_eq!(
        (duo.labels().as_slice(), duo.exit),
        (["budget".to_owned()].as_slice(), None)
    );
    duo.answer("ok", &[]);
    assert_eq!(duo.labels().last().map(String::as_str), Some("done(stop)"));
    assert_eq!(duo.exit, Some(0));
    let mut idle = auto();
    idle.host_end();
    assert_eq!((idle.exit, idle.lines().len()), (Some(0), 0));
}

#[test]
fn om_23_a_signal_cancels_the_turn_and_leaves() {
    let mut duo = auto();
    duo.user("go");
    duo.head(200, None);
    duo.part("half", &[]);
    duo.lines();
    duo.signal(Signal::Terminate);
    assert_eq!(duo.labels(), ["message_done", "done(cancelled)"]);
    assert_eq!(duo.exit, Some(143));
}

#[test]
fn om_17_done_waits_for_the_disk_and_no_longer_than_the_flush() {
    for answered in [true, false] {
        let mut duo = auto();
        duo.disk_held = true;
        duo.user("go");
        duo.answer("ok", &[]);
        assert_eq!(duo.labels(), ["budget", "token*", "usage", "message_done"]);
        duo.user("too early");
        assert_eq!(duo.labels(), ["protocol_error"]);
        if answered {
            while !duo.writes.is_empty() {
                duo.store(Ok(()));
            }
        } else {
            duo.pass_ms(2_000);
        }
        let labels = duo.labels();
        assert_eq!(
            labels.last().map(String::as_str),
            Some("done(stop)"),
            "{labels:?}"
        );
        duo.user("now");
        assert_eq!(duo.labels(), ["budget"]);
    }
}

#[test]
fn om_30_a_refusal_is_stored_and_then_said_and_eight_are_honoured() {
    let mut config = session_config(ApprovalMode::Auto);
    config.hooks = vec![hook("verify", HookPoint::TurnEnd)];
    let mut duo = Duo::new(config);
    duo.disk_held = true;
    duo.user("go");
    for honoured in 0..9 {
        duo.answer("Finished.", &[]);
        duo.lines();
        duo.hook_says(HookVerdict::Deny("tests failing".into()));
        if honoured == 8 {
            break;
        }
        assert_eq!(duo.labels(), [""; 0], "not before the refusal is stored");
        while !duo.writes.is_empty() {
            duo.store(Ok(()));
        }
        assert_eq!(duo.labels(), ["turn_refused", "budget"]);
    }
    while !duo.writes.is_empty() {
        duo.store(Ok(()));
    }
    assert_eq!(
        duo.labels(),
        ["hook_failed", "done(unverified)"],
        "the ninth is told"
    );
    let numbers: Vec<u64> = duo
        .all("turn_refused", "continuation")
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    let left: Vec<u64> = duo
        .all("turn_refused", "continuations_left")
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .collect();
    assert_eq!(left, [8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn om_31_a_prompt_hook_blocks() {
    let mut config = session_config(ApprovalMode::Auto);
    config.hooks = vec![hook("guard", HookPoint::PromptSubmit)];
    let mut duo = Duo::new(config);
    duo.user("go");
    duo.hook_says(HookVerdict::Deny("not today".into()));
    assert_eq!(duo.labels(), ["error", "done(blocked)"]);
    assert_eq!(duo.all("error", "message"), ["input blocked: not today"]);
    duo.user("again");
    duo.hook_says(HookVerdict::Pass);
    duo.answer("ok", &[]);
    assert_eq!(duo.labels().last().map(String::as_str), Some("done(stop)"));
}

#[test]
fn om_08_reload_when_idle_and_busy() {
    let mut duo = auto();
    duo.host(r#"{"cmd":"reload"}"#);
    assert_eq!(duo.labels(), [""; 0]);
    duo.reloaded(Ok(Answer::Reloaded {
        tools: 3,
        skills: 0,
        changes: vec!["tool f changed".into()],
    }));
    assert_eq!(duo.labels(), ["refrozen"]);
    duo.host(r#"{"cmd":"reload"}"#);
    duo.reloaded(Err("bad manifest".into()));
    let lines = duo.lines();
    assert!(refusal(&lines[0]).contains("bad manifest"));
    duo.user("go");
    duo.lines();
    duo.host(r#"{"cmd":"reload"}"#);
    assert_eq!(duo.labels(), ["protocol_error"]);
}

#[test]
fn om_23_step_and_token_limits() {
    let mut config = session_config(ApprovalMode::Auto);
    config.budgets.steps = Some(1);
    let mut duo = Duo::new(config);
    duo.user("go");
    duo.answer("", &[READ]);
    duo.next_tool_done(true, "text");
    assert_eq!(
        duo.labels(),
        [
            "budget",
            "usage",
            "message_done",
            "tool_start(c1)",
            "tool_end(c1)",
            "done(max_iterations)"
        ]
    );
    let mut config = session_config(ApprovalMode::Auto);
    config.budgets.tokens = Some(1);
    let mut duo = Duo::new(config);
    duo.user("go");
    assert_eq!(duo.labels(), ["done(budget_exhausted)"], "nothing was sent");
    assert_eq!(duo.requests.len(), 0);
}

#[test]
fn om_24_a_crash_of_the_turn_is_an_error_and_a_done() {
    let mut duo = auto();
    duo.user("go");
    duo.head(200, None);
    duo.part("half", &[]);
    duo.lines();
    duo.crash("index out of range");
    assert_eq!(duo.labels(), ["error", "done(error)"]);
    duo.user("next");
    assert_eq!(duo.labels(), ["budget"]);
}
