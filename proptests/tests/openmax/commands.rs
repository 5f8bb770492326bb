//! Commands of the host: what they become, how they are answered and refused, and the end of input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::*;
use turnwire::protocol::ServerOutput;
use turnwire::protocol::openmax::ServerConfig;
use turnwire::vocab::*;

const BUSY: &str = "a turn is in flight; wait for done";

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

/// One line, its single refusal, and no command.
fn refused(rig: &mut Rig, line: &str) -> String {
    rig.host(line);
    assert_eq!(rig.calls(), []);
    let lines = rig.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    refusal(&lines[0])
}

#[test]
fn om_05_a_user_becomes_a_prompt_that_waits_for_nobody() {
    let mut rig = Rig::opened();
    rig.host(r#" {"text":" a\r\nb ","extra":{"x":[1]},"cmd":"user"} "#);
    let Command::Prompt(prompt) = rig.call().command else {
        panic!()
    };
    assert_eq!(prompt.content, [Block::Text(" a\r\nb ".into())]);
    assert_eq!(
        (prompt.deliver, prompt.literal, prompt.tag),
        (Deliver::IfIdle, false, None)
    );
    assert_eq!(rig.lines(), [""; 0], "no acknowledgement");
}

#[test]
fn om_18_busy_is_a_protocol_error_alone() {
    let mut rig = Rig::opened();
    rig.user("one");
    rig.call();
    assert_eq!(refused(&mut rig, r#"{"cmd":"user","text":"two"}"#), BUSY);
    assert_eq!(
        refused(&mut rig, r#"{"cmd":"user","text":" "}"#),
        BUSY,
        "busy is tested before blank"
    );
    assert_eq!(refused(&mut rig, r#"{"cmd":"reload"}"#), BUSY);
}

#[test]
fn om_17_after_done_the_next_user_is_taken_at_once() {
    let mut rig = Rig::opened();
    let prompt = rig.turn();
    rig.event(What::StepEnded { step: StepId(1) });
    rig.event(turn_ended(End::Finished { finish: None }, false));
    rig.event(What::PromptEnded {
        prompt,
        end: End::Finished { finish: None },
    });
    assert_eq!(rig.labels().last().map(String::as_str), Some("done(stop)"));
    rig.user("two");
    assert!(matches!(rig.call().command, Command::Prompt(_)));
}

#[test]
fn om_19_empty_and_untrusted_are_refused_with_a_done() {
    let mut rig = Rig::opened();
    for text in ["", "  \n\t "] {
        rig.user(text);
        let lines = rig.lines();
        assert_eq!(labels(&lines), ["protocol_error", "done(refused)"]);
        assert_eq!(refusal(&lines[0]), "user text is empty");
        assert_eq!(rig.calls(), []);
    }
    rig.user("go");
    let call = rig.call();
    rig.reply(call.id, Err(Refusal::Untrusted("/abs/path".into())));
    let lines = rig.lines();
    assert_eq!(labels(&lines), ["protocol_error", "done(refused)"]);
    assert_eq!(
        refusal(&lines[0]),
        "project /abs/path is not trusted; establish trust before starting a turn"
    );
}

#[test]
fn om_17_every_refusal_of_a_prompt_ends_in_one_done() {
    let failed = Refusal::Failed(failure("disk full"));
    let blocked = Refusal::Blocked {
        hook: "guard".into(),
        text: "not today".into(),
    };
    for (refusal, expected) in [
        (
            Refusal::Busy,
            ["protocol_error", "done(refused)"].as_slice(),
        ),
        (Refusal::Empty, &["protocol_error", "done(refused)"]),
        (Refusal::Cancelled, &["done(cancelled)"]),
        (blocked, &["error", "done(blocked)"]),
        (Refusal::Unknown, &["protocol_error", "done(refused)"]),
        (
            Refusal::AlreadySettled,
            &["protocol_error", "done(refused)"],
        ),
        (Refusal::Closing, &["protocol_error", "done(refused)"]),
        (Refusal::Full, &["protocol_error", "done(refused)"]),
        (Refusal::TooLarge, &["protocol_error", "done(refused)"]),
        (
            Refusal::Unsupported("prompts"),
            &["protocol_error", "done(refused)"],
        ),
        (
            Refusal::Invalid("bad".into()),
            &["protocol_error", "done(refused)"],
        ),
        (failed, &["protocol_error", "done(refused)"]),
    ] {
        let mut rig = Rig::opened();
        rig.user("go");
        let call = rig.call();
        rig.reply(call.id, Err(refusal.clone()));
        assert_eq!(rig.labels(), expected, "{refusal:?}");
        rig.reply(call.id, Err(refusal));
        assert_eq!(rig.lines(), [""; 0], "L8: a repeated reply says nothing");
    }
}

#[test]
fn om_31_a_blocking_hook_is_named_in_the_error() {
    let mut rig = Rig::opened();
    rig.user("go");
    let call = rig.call();
    rig.reply(
        call.id,
        Err(Refusal::Blocked {
            hook: "guard".into(),
            text: "not today".into(),
        }),
    );
    assert_eq!(json(&rig.lines()[0])["message"], "input blocked: not today");
}

#[test]
fn om_07_a_mode_is_answered_when_it_is_stored() {
    let mut rig = Rig::opened();
    for (word, name, mode) in [
        ("auto", "auto", ApprovalMode::Auto),
        ("ask", "ask", ApprovalMode::Ask),
        (" readonly ", "readonly", ApprovalMode::ReadOnly),
    ] {
        rig.host(&format!(r#"{{"cmd":"approval_mode","mode":"{word}"}}"#));
        let call = rig.call();
        assert_eq!(call.command, Command::Set(Setting::Approvals(mode)));
        assert_eq!(rig.lines(), [""; 0], "not before the write");
        rig.reply(call.id, Ok(Answer::Done));
        assert_eq!(
            rig.lines(),
            [format!(r#"{{"type":"approval_mode","mode":"{name}"}}"#)]
        );
    }
}

#[test]
fn om_07_an_illegal_mode_is_named_with_the_legal_ones() {
    let mut rig = Rig::opened();
    for word in ["yolo", "AUTO", ""] {
        let text = refused(
            &mut rig,
            &format!(r#"{{"cmd":"approval_mode","mode":"{word}"}}"#),
        );
        assert_eq!(
            text,
            format!("unknown approval mode '{word}': auto|ask|readonly")
        );
    }
}

#[test]
fn om_07_a_mode_that_is_not_stored_is_unchanged_and_says_so() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    let call = rig.call();
    rig.reply(
        call.id,
        Err(Refusal::Failed(failure("Not a directory (os error 20)"))),
    );
    assert_eq!(
        refusal(&rig.lines()[0]),
        "approval mode unchanged; persisting it failed: Not a directory (os error 20)"
    );
    rig.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    let call = rig.call();
    rig.reply(call.id, Err(Refusal::Unsupported("approval modes")));
    assert_eq!(
        refusal(&rig.lines()[0]),
        "approval_mode is not supported here: approval modes"
    );
}

#[test]
fn om_07_an_agents_own_child_may_not_change_the_mode() {
    let mut rig = Rig::opened_with(ServerConfig {
        agent_spawned: true,
        ..config()
    });
    assert!(
        refused(&mut rig, r#"{"cmd":"approval_mode","mode":"auto"}"#)
            .contains("human-controlled frontend")
    );
}

#[test]
fn om_08_reload_is_answered_by_refrozen_or_an_error() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"reload"}"#);
    let call = rig.call();
    assert_eq!(call.command, Command::Reload);
    let changes = vec!["tool zap added".into(), "skill “x” removed".into()];
    rig.reply(
        call.id,
        Ok(Answer::Reloaded {
            tools: 8,
            skills: 1,
            changes,
        }),
    );
    assert_eq!(
        rig.lines(),
        [
            r#"{"session_id":"6f1e6a52-0000-4000-8000-000000000001","type":"refrozen","tools":8,"skills":1,"changes":["tool zap added","skill “x” removed"]}"#
        ]
    );
    for (refusal, text) in [
        (Refusal::Busy, BUSY),
        (
            Refusal::Failed(failure("no such file")),
            "reload was refused: no such file",
        ),
        (
            Refusal::Unsupported("reloading"),
            "reload is not supported here: reloading",
        ),
    ] {
        rig.host(r#"{"cmd":"reload"}"#);
        let call = rig.call();
        rig.reply(call.id, Err(refusal));
        assert_eq!(openmax_kit::refusal(&rig.lines()[0]), text);
    }
}

#[test]
fn om_28_cancel_has_no_line_hit_or_not() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"cancel"}"#);
    let call = rig.call();
    let what = CancelWhat::Turn {
        queue: QueueFate::Drop,
    };
    assert_eq!(
        call.command,
        Command::Cancel {
            what,
            why: CancelWhy::Host
        }
    );
    rig.reply(
        call.id,
        Ok(Answer::Cancelling {
            hit: Hit::Nothing,
            queued: vec![],
        }),
    );
    assert_eq!(rig.lines(), [""; 0]);
}

#[test]
fn om_11_wrong_approvals_are_reported_and_settle_nothing() {
    let mut rig = Rig::opened();
    rig.turn();
    rig.lines();
    rig.event(What::Asked {
        ask: AskId(4),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    });
    let id = json(&rig.lines()[0])["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let approve = |id: &str, yes: bool| {
        format!(r#"{{"cmd":"approve","approval_id":"{id}","approved":{yes}}}"#)
    };
    let text = refused(&mut rig, &approve("no-such-id", true));
    assert_eq!(text, "unknown or already settled approval_id 'no-such-id'");
    rig.host(&approve(&id, false));
    let call = rig.call();
    let reply = Ok(Reply::Deny {
        message: None,
        interrupt: false,
    });
    assert_eq!(
        call.command,
        Command::Reply {
            ask: AskId(4),
            reply
        }
    );
    let again = format!("unknown or already settled approval_id '{id}'");
    assert_eq!(
        refused(&mut rig, &approve(&id, true)),
        again,
        "the first answer wins"
    );
    rig.reply(call.id, Ok(Answer::Done));
    let how = AskClose::Answered {
        by: Decider::Host,
        allow: Some(false),
    };
    rig.event(What::AskClosed { ask: AskId(4), how });
    assert_eq!(rig.labels(), ["approval_settled(declined)"]);
    assert_eq!(refused(&mut rig, &approve(&id, true)), again);
}

#[test]
fn om_11_an_answer_that_crossed_the_settlement_is_reported() {
    let mut rig = Rig::opened();
    rig.turn();
    rig.lines();
    rig.event(What::Asked {
        ask: AskId(4),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    });
    let id = json(&rig.lines()[0])["approval_id"]
        .as_str()
        .unwrap()
        .to_owned();
    rig.host(&format!(
        r#"{{"cmd":"approve","approval_id":"{id}","approved":true}}"#
    ));
    let call = rig.call();
    assert_eq!(
        call.command,
        Command::Reply {
            ask: AskId(4),
            reply: Ok(Reply::Allow {
                input: None,
                updates: vec![]
            })
        }
    );
    rig.event(What::AskClosed {
        ask: AskId(4),
        how: AskClose::TimedOut,
    });
    rig.reply(call.id, Err(Refusal::AlreadySettled));
    let lines = rig.lines();
    assert_eq!(
        labels(&lines),
        ["approval_settled(timed_out)", "protocol_error"]
    );
    assert_eq!(
        refusal(&lines[1]),
        format!("unknown or already settled approval_id '{id}'")
    );
}

#[test]
fn om_09_quit_declines_what_is_open_and_reads_no_more() {
    let mut rig = Rig::opened();
    let prompt = rig.turn();
    for ask in [4, 5] {
        rig.event(What::Asked {
            ask: AskId(ask),
            body: Ask::Permission(Box::new(permission(AskReason::Gate))),
        });
    }
    rig.lines();
    rig.raw(b"{\"cmd\":\"quit\"}\n{\"cmd\":\"user\",\"text\":\"x\"}\nnot json\n");
    let gone = |ask| Command::Reply {
        ask: AskId(ask),
        reply: Err(ReplyFault::HostGone),
    };
    let commands: Vec<Command> = rig.calls().into_iter().map(|call| call.command).collect();
    assert_eq!(commands, [gone(4), gone(5), Command::Close { drain: true }]);
    rig.tell(Told::End);
    assert_eq!((rig.lines().len(), rig.calls().len()), (0, 0));
    for ask in [4, 5] {
        rig.event(What::AskClosed {
            ask: AskId(ask),
            how: AskClose::HostGone,
        });
    }
    rig.event(What::Asked {
        ask: AskId(6),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    });
    assert_eq!(
        rig.call().command,
        gone(6),
        "later questions are declined at once"
    );
    rig.event(What::AskClosed {
        ask: AskId(6),
        how: AskClose::HostGone,
    });
    rig.end(
        prompt,
        End::Finished {
            finish: Some("stop".into()),
        },
    );
    rig.event(What::Closed {
        why: CloseWhy::Drained,
    });
    assert_eq!(
        rig.labels(),
        [
            "approval_settled(declined)",
            "approval_settled(declined)",
            "approval_request",
            "approval_settled(declined)",
            "done(stop)"
        ]
    );
    assert_eq!(rig.outputs(), [ServerOutput::Exit { code: 0 }]);
}

#[test]
fn om_09_a_last_line_without_a_newline_counts() {
    let mut rig = Rig::opened();
    rig.raw(br#"{"cmd":"user","text":"one shot"}"#);
    assert_eq!(rig.calls(), []);
    rig.tell(Told::End);
    let commands: Vec<Command> = rig.calls().into_iter().map(|call| call.command).collect();
    assert!(matches!(
        commands.as_slice(),
        [Command::Prompt(_), Command::Close { drain: true }]
    ));
    assert!(!rig.server.wants_lines());
}

#[test]
fn om_23_a_signal_cancels_and_a_second_one_leaves_at_once() {
    for (signal, code) in [
        (Signal::Interrupt, 130),
        (Signal::Terminate, 143),
        (Signal::Hangup, 129),
    ] {
        let mut rig = Rig::opened();
        rig.turn();
        rig.lines();
        rig.tell(Told::Signal(signal));
        let what = CancelWhat::Turn {
            queue: QueueFate::Drop,
        };
        let commands: Vec<Command> = rig.calls().into_iter().map(|call| call.command).collect();
        let cancel = Command::Cancel {
            what,
            why: CancelWhy::Signal(signal),
        };
        assert_eq!(commands, [cancel, Command::Close { drain: false }]);
        rig.user("not read any more");
        assert_eq!((rig.lines().len(), rig.calls().len()), (0, 0));
        rig.tell(Told::Signal(Signal::Interrupt));
        assert_eq!(rig.outputs(), [ServerOutput::Exit { code }]);
        assert_eq!(
            rig.labels(),
            ["message_done", "done(cancelled)"],
            "OM-17: the done is still owed"
        );
        rig.event(What::Closed {
            why: CloseWhy::Signal(signal),
        });
        assert_eq!(
            (rig.lines().len(), rig.outputs().len()),
            (0, 0),
            "nothing after the exit"
        );
    }
}

#[test]
fn om_25_the_exit_code_is_that_of_the_last_turn() {
    let ok = End::Finished {
        finish: Some("stop".into()),
    };
    let failed = End::Failed(failure("boom"));
    for (ends, code) in [
        (vec![], 0),
        (vec![ok.clone()], 0),
        (vec![failed.clone()], 1),
        (vec![failed.clone(), ok.clone()], 0),
        (vec![ok, failed], 1),
        (
            vec![End::Finished {
                finish: Some("error".into()),
            }],
            1,
        ),
        (vec![End::MaxSteps], 0),
        (vec![End::BudgetExhausted(BudgetKind::Money)], 0),
        (vec![End::Unverified], 0),
        (vec![End::Truncated(failure("cut"))], 0),
        (vec![End::Cancelled(CancelWhy::Host)], 0),
    ] {
        let mut rig = Rig::opened();
        for end in &ends {
            let prompt = rig.turn();
            rig.end(prompt, end.clone());
        }
        // A refusal is no turn.
        rig.user(" ");
        rig.tell(Told::End);
        rig.outputs();
        rig.event(What::Closed {
            why: CloseWhy::Drained,
        });
        assert_eq!(rig.outputs(), [ServerOutput::Exit { code }], "{ends:?}");
    }
}

#[test]
fn lines_wait_for_the_answer_to_an_earlier_one() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    let mode = rig.call();
    rig.host(r#"{"cmd":"approval_mode","mode":"yolo"}"#);
    rig.user("go");
    rig.user("busy");
    rig.host(r#"{"cmd":"cancel"}"#);
    assert_eq!(
        (rig.lines().len(), rig.calls().len()),
        (0, 0),
        "a cancel doesn't pass the prompt that it means"
    );
    rig.reply(mode.id, Ok(Answer::Done));
    assert_eq!(
        rig.labels(),
        ["approval_mode", "protocol_error", "protocol_error"]
    );
    let calls = rig.calls();
    assert!(
        matches!(calls[0].command, Command::Prompt(_))
            && matches!(calls[1].command, Command::Cancel { .. })
    );
    assert_eq!(calls.len(), 2);
}

#[test]
fn a_cancel_passes_lines_that_wait() {
    let mut rig = Rig::opened();
    rig.turn();
    rig.lines();
    rig.host(r#"{"cmd":"approval_mode","mode":"auto"}"#);
    let mode = rig.call();
    rig.host("not json");
    rig.host(r#"{"cmd":"cancel"}"#);
    assert!(matches!(rig.call().command, Command::Cancel { .. }));
    assert_eq!(rig.lines(), [""; 0]);
    rig.reply(mode.id, Ok(Answer::Done));
    assert_eq!(rig.labels(), ["approval_mode", "protocol_error"]);
}

#[test]
fn lines_that_wait_are_limited() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"reload"}"#);
    for _ in 0..63 {
        rig.host("x");
        assert!(rig.server.wants_lines());
    }
    rig.host("x");
    assert!(!rig.server.wants_lines());
    let reload = rig.call();
    rig.reply(
        reload.id,
        Ok(Answer::Reloaded {
            tools: 1,
            skills: 0,
            changes: vec![],
        }),
    );
    assert!(rig.server.wants_lines());
    assert_eq!(rig.lines().len(), 65);

    rig.host(r#"{"cmd":"reload"}"#);
    rig.user(&"x".repeat(1 << 20));
    assert!(!rig.server.wants_lines(), "by their bytes, too");
    let reload = rig.call();
    rig.reply(
        reload.id,
        Ok(Answer::Reloaded {
            tools: 1,
            skills: 0,
            changes: vec![],
        }),
    );
    assert!(rig.server.wants_lines());
}

#[test]
fn a_signal_answers_the_prompts_that_wait() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"reload"}"#);
    rig.user("one");
    let reload = rig.call();
    rig.tell(Told::Signal(Signal::Terminate));
    assert_eq!(rig.lines(), [""; 0], "the reload is answered first");
    rig.reply(reload.id, Err(Refusal::Busy));
    let lines = rig.lines();
    assert_eq!(
        labels(&lines),
        ["protocol_error", "protocol_error", "done(refused)"]
    );
}
