//! The fields of every event line.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::*;
use turnwire::protocol::openmax::{Extra, ServerConfig};
use turnwire::vocab::*;

const HEAD: &str = r#"{"session_id":"6f1e6a52-0000-4000-8000-000000000001","type":"#;

/// A Server in a turn whose opening lines are forgotten.
fn in_turn() -> (Rig, PromptId) {
    in_turn_with(config())
}

fn in_turn_with(config: ServerConfig) -> (Rig, PromptId) {
    let mut rig = Rig::opened_with(config);
    let prompt = rig.turn();
    rig.lines();
    (rig, prompt)
}

/// The lines of these events, without the members that every event has.
fn lines(rig: &mut Rig, events: impl IntoIterator<Item = What>) -> Vec<String> {
    events.into_iter().for_each(|what| rig.event(what));
    bare(rig)
}

fn bare(rig: &mut Rig) -> Vec<String> {
    rig.lines()
        .iter()
        .map(|line| {
            format!(
                "{{{}",
                line.strip_prefix(HEAD).expect("session_id, then type")
            )
        })
        .collect()
}

#[test]
fn om_12_om_13_events_have_their_fields_in_the_documented_order() {
    let mut rig = Rig::opened();
    rig.tell(Told::Extra(Extra::SchemasOverBudget {
        schema_tokens: 20_000,
        budget_tokens: 25_000,
    }));
    rig.tell(Told::Extra(Extra::SchemasOverBudget {
        schema_tokens: 1,
        budget_tokens: 2,
    }));
    rig.turn();
    assert_eq!(
        bare(&mut rig),
        [
            r#"{"schemas_over_budget","schema_tokens":20000,"budget_tokens":25000}"#,
            r#"{"budget","used_tokens":1000,"context_tokens":32768}"#
        ]
    );
    rig.delta(Kind::Thinking, "hm");
    rig.delta(Kind::Text, "a \"b\" \\ \n\t\u{1} ü\u{2028}🦀");
    assert_eq!(
        bare(&mut rig),
        [
            r#"{"thinking","text":"hm"}"#,
            "{\"token\",\"text\":\"a \\\"b\\\" \\\\ \\n\\t\\u0001 ü\u{2028}🦀\"}"
        ],
        "text goes raw, but for what JSON requires"
    );
    let usage = Usage {
        input: Some(100),
        cache_read: Some(200),
        cache_write: Some(7),
        output: Some(20),
        reasoning: Some(3),
    };
    let ended = What::RequestEnded {
        request: RequestId(1),
        outcome: RequestOutcome::Complete {
            finish: "stop".into(),
        },
        model: model(),
        usage: Some(usage),
        cost: Cost::NotSaid,
        api_us: 1,
    };
    rig.event(message_ended("whole", Stop::End, true));
    assert_eq!(bare(&mut rig), [""; 0], "message_done waits for its usage");
    assert_eq!(
        lines(&mut rig, [ended]),
        [
            r#"{"usage","prompt_tokens":307,"completion_tokens":23,"cached_tokens":200}"#,
            r#"{"message_done","text":"whole"}"#
        ]
    );
    assert_eq!(
        lines(
            &mut rig,
            [
                tool_started(1, "c1", object("{\"path\":\n \"a.rs\",\r\n\"n\":1.50}")),
                What::FileChanged {
                    call: Some(CallId(1)),
                    path: "a".into(),
                    diff: "+x\n".into(),
                    added: 1,
                    removed: 2
                },
                What::FileChanged {
                    call: None,
                    path: "b".into(),
                    diff: "".into(),
                    added: 0,
                    removed: 0
                },
                tool_ended(1, ToolOutcome::Ok, "done"),
                What::Message(std::sync::Arc::new(Message {
                    about: Some(CallId(1)),
                    ..(*message(Role::Note, Origin::Harness, "refrozen")).clone()
                })),
                What::Message(message(Role::Note, Origin::Harness, "policy")),
            ]
        ),
        [
            r#"{"tool_start","call_id":"c1","name":"write_file","args":{"path": "a.rs","n":1.50}}"#,
            r#"{"diff","call_id":"c1","path":"a","diff":"+x\n","added":1,"removed":2}"#,
            r#"{"tool_end","call_id":"c1","ok":true,"output":"done"}"#,
            r#"{"harness_note","call_id":"c1","text":"refrozen"}"#,
            r#"{"harness_note","call_id":"","text":"policy"}"#,
        ]
    );
    assert_eq!(
        lines(
            &mut rig,
            [
                What::CompletionRefused {
                    hook: "verify".into(),
                    reason: "red".into(),
                    continuation: 0,
                    left: 8
                },
                What::HookFailed {
                    hook: "audit".into(),
                    point: HookPoint::PostTool,
                    detail: "exit 1".into()
                },
                What::Notice {
                    level: Level::Error,
                    code: None,
                    text: "the session can't be saved".into()
                },
                What::Notice {
                    level: Level::Warning,
                    code: None,
                    text: "quiet".into()
                },
            ]
        ),
        [
            r#"{"turn_refused","hook":"verify","reason":"red","continuation":0,"continuations_left":8}"#,
            r#"{"hook_failed","hook":"audit","event":"post_tool_use","detail":"exit 1"}"#,
            r#"{"error","message":"the session can't be saved"}"#,
        ]
    );
    rig.step();
    assert_eq!(
        bare(&mut rig),
        [r#"{"budget","used_tokens":1000,"context_tokens":32768}"#],
        "schemas_over_budget comes once"
    );
    let retry = What::RetryScheduled {
        attempt: 2,
        max: 8,
        wait_us: None,
        why: failure("backend returned 503"),
    };
    assert_eq!(
        lines(&mut rig, [retry]),
        [r#"{"retry","attempt":2,"max_attempts":8,"reason":"backend returned 503"}"#]
    );
}

#[test]
fn om_13_cached_tokens_are_null_when_unknown() {
    let (mut rig, _) = in_turn();
    assert_eq!(
        lines(&mut rig, [message_ended("", Stop::End, true), complete()]),
        [
            r#"{"usage","prompt_tokens":100,"completion_tokens":20,"cached_tokens":null}"#,
            r#"{"message_done","text":""}"#
        ]
    );
}

#[test]
fn om_20_a_reply_without_a_message_is_an_empty_one() {
    let (mut rig, _) = in_turn();
    rig.event(complete());
    assert_eq!(rig.labels(), ["usage", "message_done"]);
}

#[test]
fn om_13_args_are_always_an_object() {
    for (name, input) in [
        ("write_file", Some(ToolInput::Unparsed("{\"path\":".into()))),
        ("write_file", Some(object("[1]"))),
        ("write_file", Some(object("nonsense"))),
        ("write_file", None),
        ("", Some(object(r#"{"a":1}"#))),
    ] {
        let (mut rig, _) = in_turn();
        let mut started = tool_started(1, "c1", object("{}"));
        if let What::ToolStarted {
            name: shown,
            input: given,
            ..
        } = &mut started
        {
            *shown = name.into();
            given.clone_from(&input);
        }
        assert_eq!(
            lines(&mut rig, [started]),
            [format!(
                r#"{{"tool_start","call_id":"c1","name":"{name}","args":{{}}}}"#
            )],
            "{input:?}"
        );
    }
}

#[test]
fn j01_half_a_surrogate_pair_in_arguments_never_gets_out() {
    let (mut rig, _) = in_turn();
    let line = lines(
        &mut rig,
        [tool_started(1, "c1", object(r#"{"a":"\ud83d"}"#))],
    )
    .remove(0);
    assert!(line.ends_with(r#""args":{"a":"\ufffd"}}"#), "{line}");
}

#[test]
fn om_13_a_tool_ends_ok_or_not_and_only_once() {
    for (outcome, ok) in [
        (ToolOutcome::Ok, true),
        (ToolOutcome::Detached(JobId(1)), true),
        (ToolOutcome::EndedTurn, true),
        (ToolOutcome::Failed, false),
        (ToolOutcome::Invalid, false),
        (ToolOutcome::NotFound, false),
        (ToolOutcome::Denied(Decider::Mode), false),
        (ToolOutcome::Cancelled, false),
        (ToolOutcome::TimedOut, false),
        (ToolOutcome::NotSaid, false),
    ] {
        let (mut rig, _) = in_turn();
        let content = vec![
            Block::Text("a".into()),
            Block::Redacted("x".into()),
            Block::Text("b".into()),
        ];
        let ended = What::ToolEnded {
            call: CallId(1),
            outcome: outcome.clone(),
            content,
            show: None,
        };
        assert_eq!(lines(&mut rig, [ended.clone()]), [""; 0], "never begun");
        rig.event(tool_started(1, "c1", object("{}")));
        bare(&mut rig);
        let expected = format!(r#"{{"tool_end","call_id":"c1","ok":{ok},"output":"a\nb"}}"#);
        assert_eq!(lines(&mut rig, [ended.clone()]), [expected], "{outcome:?}");
        assert_eq!(lines(&mut rig, [ended]), [""; 0], "L8");
    }
}

#[test]
fn om_13_call_ids_are_the_providers_while_they_are_unique() {
    let (mut rig, _) = in_turn();
    let mut ids = Vec::new();
    for (call, provider_id) in [(1, "call_0"), (2, "call_0"), (3, "")] {
        let line = lines(&mut rig, [tool_started(call, provider_id, object("{}"))]).remove(0);
        let end = lines(&mut rig, [tool_ended(call, ToolOutcome::Ok, "")]).remove(0);
        let id = |line: &str| {
            line.split("\"call_id\":\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(id(&line), id(&end));
        ids.push(id(&line));
    }
    assert_eq!(ids, ["call_0", "call-2", "call-3"]);
}

#[test]
fn om_15_an_unapproved_source_names_its_file() {
    let (mut rig, _) = in_turn();
    let mut ask = permission(AskReason::UnapprovedSource {
        path: ".openmax/tools/zap.toml".into(),
        sha: "0123456789abcdef0123".into(),
    });
    ask.env = vec!["API_KEY".into(), "HOME".into()];
    ask.body = Some("runs: /bin/echo".into());
    let line = lines(
        &mut rig,
        [What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(ask)),
        }],
    )
    .remove(0);
    let id = line.split('"').nth(5).unwrap().to_owned();
    assert_eq!(
        line,
        format!(
            r#"{{"approval_request","approval_id":"{id}","name":"write_file","summary":"out.txt","detail":"path=out.txt\nruns: /bin/echo","reason":"unapproved_source","source_path":".openmax/tools/zap.toml","source_sha":"0123456789ab","env":["API_KEY","HOME"]}}"#
        )
    );
}

#[test]
fn om_15_om_16_a_gate_has_empty_sources_and_no_env() {
    for (reason, detail) in [
        (AskReason::Gate, "path=out.txt"),
        (
            AskReason::Network {
                host: "example.org".into(),
            },
            "network access to example.org | path=out.txt",
        ),
        (
            AskReason::Other("first time".into()),
            "first time | path=out.txt",
        ),
    ] {
        let (mut rig, _) = in_turn();
        let asked = What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(permission(reason))),
        };
        let line = lines(&mut rig, [asked]).remove(0);
        let tail = format!(
            r#""summary":"out.txt","detail":"{detail}","reason":"gate","source_path":"","source_sha":""}}"#
        );
        assert!(line.ends_with(&tail), "{line}");
    }
}

#[test]
fn om_15_an_agents_own_child_declines_an_unapproved_source_by_itself() {
    let (mut rig, _) = in_turn_with(ServerConfig {
        agent_spawned: true,
        ..config()
    });
    let reason = AskReason::UnapprovedSource {
        path: "x".into(),
        sha: "y".into(),
    };
    rig.event(What::Asked {
        ask: AskId(1),
        body: Ask::Permission(Box::new(permission(reason))),
    });
    let reply = Ok(Reply::Deny {
        message: None,
        interrupt: false,
    });
    assert_eq!(
        rig.call().command,
        Command::Reply {
            ask: AskId(1),
            reply
        }
    );
    let how = AskClose::Answered {
        by: Decider::Host,
        allow: Some(false),
    };
    rig.event(What::AskClosed { ask: AskId(1), how });
    rig.event(What::Asked {
        ask: AskId(2),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    });
    assert_eq!(
        rig.labels(),
        ["approval_request"],
        "only the gate was asked"
    );
}

#[test]
fn om_13_every_close_of_an_approval_has_its_outcome() {
    let answered = |allow| AskClose::Answered {
        by: Decider::Host,
        allow,
    };
    for (how, outcome) in [
        (answered(Some(true)), "approved"),
        (answered(Some(false)), "declined"),
        (answered(None), "declined"),
        (AskClose::Superseded, "declined"),
        (AskClose::Withdrawn, "declined"),
        (AskClose::HostGone, "declined"),
        (AskClose::Fault("x".into()), "declined"),
        (AskClose::TimedOut, "timed_out"),
        (AskClose::Cancelled, "cancelled"),
    ] {
        let (mut rig, _) = in_turn();
        rig.event(What::Asked {
            ask: AskId(9),
            body: Ask::Permission(Box::new(permission(AskReason::Gate))),
        });
        rig.event(What::AskClosed {
            ask: AskId(9),
            how: how.clone(),
        });
        rig.event(What::AskClosed { ask: AskId(9), how });
        assert_eq!(
            rig.labels(),
            [
                "approval_request".to_owned(),
                format!("approval_settled({outcome})")
            ]
        );
    }
}

#[test]
fn om_23_every_end_has_its_stop_reason_and_error() {
    let finished = |word: &str| End::Finished {
        finish: Some(word.into()),
    };
    for (end, reason, error) in [
        (finished("stop"), "stop", None),
        (finished("length"), "length", None),
        (finished("mañana"), "mañana", None),
        (finished("cancelled"), "cancelled", None),
        (
            finished("error"),
            "error",
            Some("the provider ended the reply with finish reason 'error'"),
        ),
        (
            finished("truncated"),
            "truncated",
            Some("the provider ended the reply with finish reason 'truncated'"),
        ),
        (finished("refused"), "stop", None),
        (finished(""), "stop", None),
        (End::Finished { finish: None }, "stop", None),
        (End::Local, "stop", None),
        (End::Yielded { to_sequence: 1 }, "stop", None),
        (End::NotSaid, "stop", None),
        (End::Truncated(failure("cut")), "truncated", Some("cut")),
        (
            End::Incomplete(failure("no report")),
            "truncated",
            Some("no report"),
        ),
        (End::MaxSteps, "max_iterations", None),
        (
            End::BudgetExhausted(BudgetKind::Tokens),
            "budget_exhausted",
            None,
        ),
        (
            End::BudgetExhausted(BudgetKind::Money),
            "budget_exhausted",
            None,
        ),
        (End::Unverified, "unverified", None),
        (
            End::Blocked("no".into()),
            "blocked",
            Some("input blocked: no"),
        ),
        (End::Cancelled(CancelWhy::Host), "cancelled", None),
        (End::Withdrawn, "cancelled", None),
        (End::Dropped(DropWhy::Closed), "cancelled", None),
        (End::Failed(failure("boom")), "error", Some("boom")),
        (
            End::Aborted {
                reason: "gave up".into(),
            },
            "error",
            Some("gave up"),
        ),
    ] {
        let (mut rig, prompt) = in_turn();
        rig.event(message_ended("x", Stop::End, true));
        rig.event(complete());
        bare(&mut rig);
        rig.end(prompt, end.clone());
        let mut expected = Vec::new();
        if let Some(error) = error {
            expected.push(format!(r#"{{"error","message":"{error}"}}"#));
        }
        expected.push(format!(r#"{{"done","stop_reason":"{reason}"}}"#));
        assert_eq!(bare(&mut rig), expected, "{end:?}");
    }
}
