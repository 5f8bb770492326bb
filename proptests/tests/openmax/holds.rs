//! What is held, swapped, joined, made up and left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

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
fn questions_that_this_wire_has_no_form_for_are_answered_at_once() {
    let (mut rig, _) = in_turn();
    let facts = HookFacts::TurnEnd {
        honoured: 0,
        left: None,
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
fn om_26_no_retry_line_ever_follows_a_token_of_its_step() {
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
fn om_13_refrozen_names_what_came_and_went() {
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

#[test]
fn two_messages_of_one_request_are_two_runs_of_tokens() {
    let (mut rig, _) = in_turn();
    let started = || What::MessageStarted {
        message: MessageId(1),
        request: None,
        provider_id: None,
        model: None,
        usage: None,
    };
    for text in ["one", "two"] {
        rig.event(started());
        rig.delta(Kind::Text, text);
        rig.event(message_ended(text, Stop::End, true));
    }
    rig.event(complete());
    assert_eq!(
        rig.labels(),
        ["token*", "message_done", "token*", "usage", "message_done"]
    );
}

#[test]
fn a_made_up_budget_knows_the_last_usage() {
    let (mut rig, _) = in_turn();
    let usage = Usage {
        input: Some(5_000),
        ..Usage::default()
    };
    rig.event(What::RequestEnded {
        request: RequestId(1),
        outcome: RequestOutcome::Complete {
            finish: "stop".into(),
        },
        model: model(),
        usage: Some(usage),
        cost: Cost::NotSaid,
        api_us: 1,
    });
    rig.lines();
    rig.event(What::StepEnded { step: StepId(1) });
    rig.event(What::StepStarted {
        step: StepId(2),
        number: 2,
    });
    rig.event(What::RequestStarted {
        request: RequestId(2),
        attempt: 1,
    });
    assert_eq!(
        bare(&mut rig),
        [r#"{"budget","used_tokens":5000,"context_tokens":32768}"#]
    );
}

#[test]
fn om_08_only_the_change_behind_a_reload_belongs_to_it() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"reload"}"#);
    let call = rig.call();
    rig.reply(
        call.id,
        Ok(Answer::Reloaded {
            tools: 2,
            skills: 0,
            changes: vec![],
        }),
    );
    rig.event(What::Settled);
    rig.event(What::Changed(Box::new(SessionInfo {
        tools: vec!["z".into()],
        ..info()
    })));
    assert_eq!(rig.labels(), ["refrozen", "refrozen"]);
}

#[test]
fn l8_a_prompt_ends_once() {
    let (mut rig, prompt) = in_turn();
    let end = || End::Finished {
        finish: Some("stop".into()),
    };
    rig.event(turn_ended(end(), true));
    for _ in 0..3 {
        rig.event(What::PromptEnded { prompt, end: end() });
    }
    assert_eq!(rig.lines(), [""; 0], "held, however often it is said");
    rig.event(What::PromptEnded {
        prompt: PromptId(99),
        end: end(),
    });
    rig.event(What::Settled);
    rig.event(What::PromptEnded { prompt, end: end() });
    assert_eq!(rig.labels(), ["done(stop)"]);
}

#[test]
fn only_the_output_of_the_local_prompt_is_shown() {
    let mut rig = Rig::opened();
    rig.user("/help");
    let call = rig.call();
    let Command::Prompt(prompt) = &call.command else {
        panic!()
    };
    rig.reply(call.id, Ok(Answer::Admitted(Admitted::Local)));
    let of = |prompt, role, text| {
        let message = message(role, Origin::Extension("help".into()), text);
        What::Message(std::sync::Arc::new(Message {
            prompt,
            ..(*message).clone()
        }))
    };
    rig.event(of(Some(prompt.id), Role::User, "/help"));
    rig.event(of(Some(PromptId(99)), Role::Note, "another's"));
    rig.event(of(Some(prompt.id), Role::Note, "Help."));
    rig.event(What::PromptEnded {
        prompt: prompt.id,
        end: End::Local,
    });
    assert_eq!(
        bare(&mut rig),
        [
            r#"{"token","text":"Help."}"#,
            r#"{"message_done","text":"Help."}"#,
            r#"{"done","stop_reason":"stop"}"#
        ]
    );
}

#[test]
fn empty_and_unshown_deltas_have_no_line() {
    let (mut rig, _) = in_turn();
    rig.delta(Kind::Text, "");
    rig.delta(Kind::Thinking, "");
    for kind in [Kind::Signature, Kind::Input, Kind::Opaque] {
        rig.delta(kind, "x");
    }
    assert_eq!(rig.lines(), [""; 0]);
}

#[test]
fn om_17_an_agent_that_closes_leaves_no_command_unanswered() {
    let mut rig = Rig::opened();
    rig.host(r#"{"cmd":"reload"}"#);
    for line in [
        r#"{"cmd":"user","text":"one"}"#,
        "nonsense",
        r#"{"cmd":"approval_mode","mode":"auto"}"#,
        r#"{"cmd":"reload"}"#,
        r#"{"cmd":"approve","approval_id":"a","approved":true}"#,
        r#"{"cmd":"what"}"#,
        r#"{"cmd":"quit"}"#,
    ] {
        rig.host(line);
    }
    rig.event(What::Closed {
        why: CloseWhy::Drained,
    });
    let texts = rig.lines();
    let closing = "the session is closing";
    for (line, words) in texts.iter().zip([
        closing,
        closing,
        r#""done""#,
        "bad command line",
        closing,
        closing,
        "approval_id 'a'",
        "unknown variant",
    ]) {
        assert!(line.contains(words), "{words} in {texts:#?}");
    }
    assert_eq!(texts.len(), 8);
}

#[test]
fn om_17_an_agent_that_dies_leaves_no_question_open() {
    let (mut rig, _) = in_turn();
    let asked = |ask| What::Asked {
        ask: AskId(ask),
        body: Ask::Permission(Box::new(permission(AskReason::Gate))),
    };
    rig.event(asked(1));
    rig.event(asked(2));
    let requests = rig.lines();
    let request: serde_json::Value = serde_json::from_str(&requests[0]).unwrap();
    let id = request["approval_id"].as_str().unwrap();
    rig.host(&format!(
        r#"{{"cmd":"approve","approval_id":"{id}","approved":true}}"#
    ));
    rig.event(What::Closed {
        why: CloseWhy::HostGone,
    });
    assert_eq!(
        rig.labels(),
        [
            "approval_settled(cancelled)",
            "approval_settled(cancelled)",
            "error",
            "done(error)"
        ]
    );
}

#[test]
fn joined_deltas_are_limited() {
    let (mut rig, _) = in_turn_with(ServerConfig {
        coalesce_us: 25_000,
        ..config()
    });
    let text = "x".repeat(20_000);
    for _ in 0..8 {
        rig.delta(Kind::Text, &text);
    }
    let lines = rig.lines();
    assert!(lines.len() >= 3, "the first, and two that were full");
    assert!(lines.iter().all(|line| line.len() < 70_000));
    rig.delta(Kind::Text, &"y".repeat(100_000));
    assert_eq!(
        rig.lines().len(),
        2,
        "a long one goes at once, behind what waits"
    );
}

/// Speed: once warm, two buffers go round between the Server and its embedder.
#[test]
fn a_token_needs_no_new_buffer() {
    let (mut rig, _) = in_turn();
    let mut lines = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..1_000 {
        let delta = DeltaRef {
            at: rig.now,
            run: RunId::MAIN,
            message: MessageId(1),
            block: 0,
            kind: Kind::Text,
            text: "a token of usual length",
        };
        lines.clear();
        rig.server.handle_delta(&delta);
        assert!(rig.server.poll_output(&mut lines).is_none());
        assert!(lines.ends_with(b"a token of usual length\"}\n"));
        if round > 10 {
            seen.insert(lines.as_ptr());
        }
    }
    assert!(seen.len() <= 2, "{seen:?}");
}

#[test]
fn l2_an_output_comes_before_lines_that_were_written_after_it() {
    let mut rig = Rig::opened();
    let now = rig.now;
    let place = turnwire::frame::Place { line: 1, offset: 0 };
    let line = |bytes| turnwire::frame::Split {
        place,
        what: turnwire::frame::SplitKind::Line(bytes),
    };
    rig.server.handle_line(line(b"bad"), now);
    rig.server.handle_line(line(br#"{"cmd":"cancel"}"#), now);
    rig.server.handle_line(line(b"bad"), now);
    rig.server.handle_signal(Signal::Terminate, now);
    let poll = |server: &mut turnwire::protocol::Server<Openmax>| {
        let mut lines = Vec::new();
        let call = matches!(server.poll_output(&mut lines), Some(ServerOutput::Call(_)));
        (call, lines.iter().filter(|byte| **byte == b'\n').count())
    };
    assert_eq!(poll(&mut rig.server), (true, 1));
    assert_eq!(poll(&mut rig.server), (true, 1));
    let extra = Extra::Refrozen {
        tools: 1,
        skills: 0,
        changes: vec![],
    };
    rig.server.handle_extra(extra, now);
    assert_eq!(
        poll(&mut rig.server),
        (true, 0),
        "the close was said before the line"
    );
    assert_eq!(poll(&mut rig.server), (false, 1));
}
