//! The fields of every event line, and what is held, joined and left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod openmax_kit;

use openmax_kit::*;
use turnwire::protocol::openmax::{Extra, Openmax, ServerConfig};
use turnwire::protocol::{Protocol, ServerOutput};
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
fn questions_that_this_wire_has_no_form_for_are_answered_at_once() {
    let (mut rig, _) = in_turn();
    let facts = HookFacts::TurnEnd {
        again: false,
        last: None,
    };
    for (body, fault) in [
        (
            Ask::Hook(Box::new(HookAsk {
                key: "k".into(),
                point: HookPoint::TurnEnd,
                facts,
            })),
            true,
        ),
        (
            Ask::Tool {
                call: CallId(1),
                name: "x".into(),
                input: RawJson("{}".into()),
            },
            true,
        ),
        (
            Ask::Uri {
                op: UriOp::Read,
                uri: "x:y".into(),
                body: None,
            },
            true,
        ),
        (
            Ask::Choice(Box::new(ChoiceAsk {
                title: "t".into(),
                kind: ChoiceKind::Confirm,
                timeout_us: None,
            })),
            false,
        ),
    ] {
        rig.event_in(
            RunId(3),
            What::Asked {
                ask: AskId(1),
                body,
            },
        );
        let Command::Reply {
            ask: AskId(1),
            reply,
        } = rig.call().command
        else {
            panic!()
        };
        assert_eq!(reply.is_err(), fault);
        rig.event_in(
            RunId(3),
            What::AskClosed {
                ask: AskId(1),
                how: AskClose::Withdrawn,
            },
        );
    }
    assert_eq!(rig.lines(), [""; 0]);
}

#[test]
fn a_nested_run_shows_its_questions_and_nothing_else() {
    let (mut rig, _) = in_turn();
    let run = RunId(3);
    rig.event_in(run, tool_started(7, "c7", object("{}")));
    rig.event_in(
        run,
        What::Delta {
            message: MessageId(2),
            block: 0,
            kind: Kind::Text,
            text: "x".into(),
        },
    );
    rig.event_in(run, complete());
    rig.event_in(
        run,
        What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(permission(AskReason::Gate))),
        },
    );
    rig.event_in(
        run,
        What::AskClosed {
            ask: AskId(1),
            how: AskClose::Cancelled,
        },
    );
    assert_eq!(
        rig.labels(),
        ["approval_request", "approval_settled(cancelled)"]
    );
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

#[test]
fn om_24_a_prompt_that_the_agent_never_ended_ends_with_it() {
    for (why, reason, code) in [
        (CloseWhy::Drained, "error", 1),
        (CloseWhy::Fault(failure("panic")), "error", 1),
        (CloseWhy::Signal(Signal::Terminate), "cancelled", 143),
    ] {
        let (mut rig, _) = in_turn();
        rig.delta(Kind::Text, "half");
        bare(&mut rig);
        rig.event(What::Closed { why });
        let labels = rig.labels();
        assert_eq!(labels.last().unwrap(), &format!("done({reason})"));
        assert!(
            labels.len() == 2,
            "error or message_done, then done: {labels:?}"
        );
        assert_eq!(rig.outputs().last(), Some(&ServerOutput::Exit { code }));
    }
}

#[test]
fn om_29_om_28_no_retry_line_ever_follows_a_token_of_its_step() {
    let (mut rig, prompt) = in_turn();
    rig.delta(Kind::Text, "shown");
    let retry = || What::RetryScheduled {
        attempt: 2,
        max: 8,
        wait_us: None,
        why: failure("gone"),
    };
    rig.event(message_ended("shown", Stop::Failed, false));
    rig.event(request_ended(RequestOutcome::Failed(failure("gone"))));
    assert_eq!(rig.labels(), ["token*"]);
    assert_eq!(
        lines(&mut rig, [retry()]),
        [
            r#"{"message_done","text":"shown"}"#,
            r#"{"harness_note","call_id":"","text":"[the agent withdrew the reply above and starts over, attempt 2 of 8: gone]"}"#
        ]
    );
    rig.event(What::RequestStarted {
        request: RequestId(2),
        attempt: 2,
    });
    rig.event(request_ended(RequestOutcome::Failed(failure("gone"))));
    rig.event(retry());
    rig.end(prompt, End::Failed(failure("gone")));
    assert_eq!(rig.labels(), ["harness_note", "error", "done(error)"]);
}

#[test]
fn om_14_refrozen_names_what_came_and_went() {
    let (mut rig, _) = in_turn();
    let changed = |tools: &[&str], skills: &[&str]| {
        let tools = tools.iter().map(|name| (*name).into()).collect();
        let skills = skills.iter().map(|name| (*name).into()).collect();
        What::Changed(Box::new(SessionInfo {
            tools,
            skills,
            ..info()
        }))
    };
    assert_eq!(
        lines(&mut rig, [changed(&["read_file", "write_file"], &[])]),
        [""; 0],
        "another fact changed"
    );
    assert_eq!(
        lines(&mut rig, [changed(&["read_file", "zap"], &["s"])]),
        [
            r#"{"refrozen","tools":2,"skills":1,"changes":["tool zap added","tool write_file removed","skill s added"]}"#
        ]
    );
    rig.tell(Told::Extra(Extra::Refrozen {
        tools: 1,
        skills: 0,
        changes: vec!["zap.toml deleted (user)".into()],
    }));
    rig.event(changed(&["read_file"], &[]));
    assert_eq!(
        bare(&mut rig),
        [r#"{"refrozen","tools":1,"skills":0,"changes":["zap.toml deleted (user)"]}"#],
        "in the embedder's words, once"
    );
    rig.event(changed(&["read_file", "z"], &[]));
    assert_eq!(rig.labels(), ["refrozen"]);
}

#[test]
fn a_made_up_budget_stands_where_the_agent_tells_no_context() {
    let mut rig = Rig::opened();
    rig.user("go");
    let call = rig.call();
    rig.reply(call.id, Ok(Answer::Admitted(Admitted::Started)));
    rig.event(What::StepStarted {
        step: StepId(1),
        number: 1,
    });
    rig.event(What::RequestStarted {
        request: RequestId(1),
        attempt: 1,
    });
    rig.event(What::RequestStarted {
        request: RequestId(2),
        attempt: 2,
    });
    assert_eq!(
        bare(&mut rig),
        [r#"{"budget","used_tokens":0,"context_tokens":0}"#],
        "once a step"
    );
}

#[test]
fn a_turn_that_nobody_asked_for_has_no_lines() {
    let mut rig = Rig::opened();
    rig.event(What::TurnStarted {
        turn: TurnId(1),
        cause: Cause::Job,
    });
    rig.step();
    rig.delta(Kind::Text, "x");
    rig.event(message_ended("x", Stop::End, true));
    rig.event(complete());
    rig.event(tool_started(1, "c1", object("{}")));
    rig.event(What::Asked {
        ask: AskId(1),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    });
    rig.event(What::Notice {
        level: Level::Error,
        code: None,
        text: "disk full".into(),
    });
    rig.end(
        PromptId(PromptId::SESSION_MADE | 1),
        End::Finished { finish: None },
    );
    assert_eq!(rig.lines(), [""; 0]);
    let outputs = rig.outputs();
    assert!(
        matches!(&outputs[0], ServerOutput::Diagnostic(_)),
        "it is counted for the person who runs it"
    );
    let reply = Command::Reply {
        ask: AskId(1),
        reply: Err(ReplyFault::HostGone),
    };
    assert!(
        matches!(&outputs[1], ServerOutput::Call(call) if call.command == reply),
        "and can't hang on a question"
    );
    assert_eq!(outputs[2], ServerOutput::Diagnostic("disk full".into()));
}

#[test]
fn done_waits_for_background_work_and_no_longer_than_its_limit() {
    for by_time in [false, true] {
        let (mut rig, prompt) = in_turn();
        let end = End::Finished {
            finish: Some("stop".into()),
        };
        rig.event(turn_ended(end.clone(), true));
        rig.event(What::PromptEnded { prompt, end });
        assert_eq!(rig.lines(), [""; 0]);
        rig.user("too early");
        assert_eq!(rig.labels(), ["protocol_error"], "its done is still owed");
        if by_time {
            rig.pass(599_999_000);
            assert_eq!(rig.lines(), [""; 0]);
            rig.pass(2_000);
        } else {
            rig.event(What::Settled);
        }
        assert_eq!(rig.labels(), ["done(stop)"]);
    }
}

#[test]
fn l3_deltas_are_joined_by_time_and_never_delayed_longer() {
    let (mut rig, _) = in_turn_with(ServerConfig {
        coalesce_us: 25_000,
        ..config()
    });
    rig.delta(Kind::Text, "a");
    assert_eq!(
        bare(&mut rig),
        [r#"{"token","text":"a"}"#],
        "the first goes at once"
    );
    rig.pass(1_000);
    rig.delta(Kind::Text, "b");
    rig.delta(Kind::Text, "c");
    assert_eq!(bare(&mut rig), [""; 0]);
    let due = rig.server.poll_timeout().unwrap();
    assert_eq!(due.why, "coalesce");
    rig.pass(24_000);
    assert_eq!(bare(&mut rig), [r#"{"token","text":"bc"}"#]);
    assert_eq!(rig.server.poll_timeout(), None);
    rig.delta(Kind::Text, "d");
    rig.delta(Kind::Thinking, "hm");
    assert_eq!(
        bare(&mut rig),
        [r#"{"token","text":"d"}"#],
        "another kind ends the run"
    );
    rig.host("not json");
    let lines = rig.lines();
    assert_eq!(labels(&lines), ["protocol_error"], "side answers pass");
    rig.event(message_ended("abcd", Stop::End, true));
    rig.event(complete());
    assert_eq!(
        rig.labels(),
        ["thinking*", "usage", "message_done"],
        "any other line of the turn waits for them"
    );
}

#[test]
fn l3_held_output_is_due_at_once() {
    let mut rig = Rig::opened();
    assert_eq!(rig.server.poll_timeout(), None);
    let now = rig.now;
    rig.server.handle_signal(Signal::Terminate, now);
    assert_eq!(
        rig.server.poll_timeout(),
        Some(Due {
            at_us: now.mono_us,
            why: "output"
        })
    );
    rig.drain();
    assert_eq!(rig.server.poll_timeout(), None);
}

#[test]
fn l6_time_that_goes_back_stands_still() {
    let (mut rig, _) = in_turn_with(ServerConfig {
        coalesce_us: 25_000,
        ..config()
    });
    rig.delta(Kind::Text, "a");
    let now = rig.now;
    rig.now.mono_us = 0;
    rig.delta(Kind::Text, "b");
    rig.tell(Told::Woken(Now::default()));
    assert_eq!(bare(&mut rig), [r#"{"token","text":"a"}"#]);
    assert_eq!(
        rig.server.poll_timeout().map(|due| due.at_us),
        Some(now.mono_us + 25_000)
    );
}

#[test]
fn unread_output_stops_the_reading_of_lines() {
    let mut rig = Rig::opened();
    rig.server.set_held_limit(1_000);
    let mut line = br#"{"cmd":"x"}"#.as_slice();
    let place = turnwire::frame::Place { line: 1, offset: 0 };
    while rig.server.wants_lines() {
        let what = turnwire::frame::SplitKind::Line(line);
        rig.server
            .handle_line(turnwire::frame::Split { place, what }, rig.now);
        line = br#"{"cmd":"y"}"#;
    }
    let mut lines = Vec::new();
    assert!(rig.server.poll_output(&mut lines).is_none());
    assert!(lines.len() > 1_000 && lines.len() < 1_300);
    assert!(rig.server.wants_lines());
}

#[test]
fn extras_have_a_softer_form_for_other_hosts() {
    let extra = Extra::SchemasOverBudget {
        schema_tokens: 7,
        budget_tokens: 9,
    };
    assert!(
        matches!(Openmax::soften(&extra), Some((Level::Warning, text)) if text.contains('7') && text.contains('9'))
    );
    let extra = Extra::Refrozen {
        tools: 1,
        skills: 0,
        changes: vec!["a".into(), "b".into()],
    };
    assert!(matches!(Openmax::soften(&extra), Some((Level::Info, text)) if text.ends_with("a; b")));
}
