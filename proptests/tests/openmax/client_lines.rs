//! What the Client does with the agent's lines, beside the scenes: the handshake, guesses, refusals, limits, and an agent
//! that breaks its contract.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::{ClientInput, HELLO, Out, Rig, asked, in_turn, prompt};
use turnwire::protocol::openmax::{ClientConfig, Extra, Openmax};
use turnwire::protocol::{Client, Protocol};
use turnwire::vocab::*;

// ---- the handshake

#[test]
fn om_01_commands_wait_for_the_handshake() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.user("early");
    rig.command(Command::Close { drain: true });
    assert_eq!(rig.lines(), [""; 0]);
    rig.agent(HELLO);
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"early"}"#]);
    assert_eq!(rig.events(), "Opened(s) R(2,Done)");
}

#[test]
fn om_02_a_continued_session_opens_with_its_history() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.agent(&HELLO.replace("false", "true"));
    assert_eq!(rig.events(), "");
    rig.agent(r#"{"type":"transcript","session_id":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"truncated":true}"#);
    let info = rig.find(|what| match what {
        What::Opened(info) => Some(info.clone()),
        _ => None,
    });
    assert_eq!((info.continued, info.history.len()), (true, 2));
    assert_eq!((&*info.product, &*info.cwd), ("0.2.0", "/p"));
    assert_eq!(info.history[1].role, Role::Assistant);
    assert_eq!(info.history[1].origin, Origin::History);
    assert_eq!(rig.events(), "Opened(s) N(Info)");
}

#[test]
fn another_version_is_a_finding_and_is_read() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.agent(&HELLO.replace('6', "7"));
    assert_eq!(rig.take_findings().len(), 1);
    assert_eq!(rig.events(), "Opened(s)");
    rig.agent(HELLO);
    assert_eq!(
        rig.take_findings(),
        ["hello came twice; the second is ignored"]
    );
}

#[test]
fn an_agent_without_a_handshake_is_opened_all_the_same() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.user("hi");
    rig.budget();
    assert_eq!(rig.take_findings().len(), 1);
    assert_eq!(
        rig.events(),
        "Opened(s) R(1,Started) T+ S+ Ap(1) M(user) Cx Rq"
    );
}

#[test]
fn om_04_an_agent_that_fails_before_its_handshake_refuses_what_waited() {
    let mut rig = Rig::new(ClientConfig::default());
    let user = rig.user("hi");
    rig.end();
    let Some(Err(Refusal::Failed(failure))) = rig.replied(user) else {
        panic!()
    };
    assert_eq!(failure.kind, FailureKind::Setup);
    assert_eq!(rig.events(), "R(1,Err(Failed)) Closed(Fault) Gone");
    rig.user("too late");
    rig.agent(HELLO);
    assert_eq!(rig.out, []);
}

#[test]
fn close_without_draining_needs_no_handshake() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.user("hi");
    rig.command(Command::Close { drain: false });
    assert_eq!(rig.lines(), [r#"{"cmd":"quit"}"#]);
    assert_eq!(rig.events(), "R(2,Done) R(1,Err(Closing)) CloseInput");
    rig.end();
    assert_eq!(rig.events(), "Closed(HostGone) Gone");
}

// ---- guesses

fn failure_text(rig: &Rig) -> String {
    rig.find(|what| match what {
        What::TurnEnded { end, .. } => Some(end.failure().unwrap().text.to_string()),
        _ => None,
    })
}

#[test]
fn om_24_look_ahead_an_error_belongs_to_the_done_behind_it() {
    let mut rig = in_turn();
    rig.says(
        "error",
        r#""message":"backend returned 429 Too Many Requests: slow down""#,
    );
    assert_eq!(rig.events(), "");
    rig.done("error");
    let end = rig.find(|what| match what {
        What::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    let failure = end.failure().unwrap();
    assert_eq!(
        (failure.kind, failure.status),
        (FailureKind::RateLimit, Some(429))
    );
    assert!(!rig.events().contains("N("));
}

#[test]
fn look_ahead_ends_after_50_ms() {
    let mut rig = in_turn();
    rig.says("error", r#""message":"late""#);
    rig.pass_ms(49);
    assert_eq!(rig.events(), "");
    rig.pass_ms(1);
    assert_eq!(rig.events(), "N(Error)");
    rig.done("error");
    assert_eq!(failure_text(&rig), "late");
    assert_eq!(rig.take_findings(), [""; 0]);
}

#[test]
fn look_ahead_joins_no_end_but_error_truncated_and_blocked() {
    for word in ["stop", "cancelled", "unverified", "max_iterations"] {
        let mut rig = in_turn();
        rig.says("message_done", r#""text":"""#);
        rig.says("error", r#""message":"the session can't be saved""#);
        rig.forget();
        rig.done(word);
        assert!(rig.events().starts_with("N(Error) S-"), "{word}");
    }
}

#[test]
fn an_end_without_its_error_line_is_a_finding() {
    let mut rig = in_turn();
    rig.done("error");
    assert_eq!(
        rig.take_findings(),
        ["done \"error\" without an error line before it"]
    );
}

#[test]
fn the_open_call_is_what_a_question_is_about() {
    let ask = r#""approval_id":"q","name":"look","summary":"s","detail":"d","reason":"gate","source_path":"","source_sha":"""#;
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.says("approval_request", ask);
    assert_eq!(rig.take_findings(), ["approval \"q\" without an open call"]);
    rig.says(
        "approval_settled",
        r#""approval_id":"q","outcome":"approved""#,
    );
    rig.says("tool_start", r#""call_id":"a","name":"look","args":{}"#);
    rig.says("tool_start", r#""call_id":"b","name":"look","args":{}"#);
    rig.forget();
    rig.says("approval_request", ask);
    assert_eq!(
        rig.take_findings(),
        ["approval \"q\" while several calls are open"]
    );
    assert_eq!(rig.events(), "A?()");
    rig.says("tool_start", r#""call_id":"c","name":"write","args":{}"#);
    rig.forget();
    rig.says("approval_request", &ask.replace("look", "write"));
    assert_eq!(
        rig.take_findings(),
        ["approval \"q\" was asked twice"],
        "an id is used once"
    );
    let ask = ask.replace("\"q\"", "\"r\"").replace("look", "write");
    rig.says("approval_request", &ask);
    assert_eq!(rig.take_findings(), Vec::<String>::new());
    assert_eq!(rig.events(), "A?(c3)", "its name tells which it is");
}

#[test]
fn the_later_of_two_users_is_the_one_in_flight() {
    let config = ClientConfig {
        follow: true,
        ..ClientConfig::default()
    };
    let mut rig = Rig::new(config);
    rig.agent(HELLO);
    rig.user("a");
    rig.user("b");
    rig.forget();
    rig.refused("a turn is in flight; wait for done");
    rig.budget();
    assert_eq!(
        rig.events(),
        "R(2,Err(Busy)) R(1,Started) T+ S+ Ap(1) M(user) Cx Rq"
    );
}

// ---- refusals of a user

#[test]
fn om_19_a_refused_user_starts_no_turn() {
    let mut rig = Rig::opened();
    let user = rig.user("hi");
    rig.refused("project /p is not trusted; establish trust before starting a turn");
    assert_eq!(
        rig.replied(user),
        Some(Err(Refusal::Untrusted("/p".into())))
    );
    let early = rig.user("before its done");
    assert_eq!(rig.replied(early), Some(Err(Refusal::Busy)));
    rig.done("refused");
    let next = rig.user("again");
    rig.refused("no reason that is known");
    assert_eq!(rig.replied(next), None);
    rig.done("refused");
    let why = Refusal::Invalid("no reason that is known".into());
    assert_eq!(rig.replied(next), Some(Err(why)));
    assert_eq!(rig.take_findings(), [""; 0]);
}

/// Commands are read in order: an answer to a later one says that the `user` before it was taken.
#[test]
fn om_17_a_user_before_an_answered_command_isnt_refused_any_more() {
    let mode = |mode| Command::Set(Setting::Approvals(mode));
    let mut rig = Rig::opened();
    let user = rig.user("hi");
    let ask = rig.command(mode(ApprovalMode::Ask));
    let auto = rig.command(mode(ApprovalMode::Auto));
    rig.agent(r#"{"type":"approval_mode","mode":"ask"}"#);
    rig.refused("the session is closing and takes no more commands");
    rig.done("cancelled");
    rig.end();
    assert_eq!(rig.replied(ask), Some(Ok(Answer::Done)));
    assert_eq!(rig.replied(auto), Some(Err(Refusal::Closing)));
    let started = Answer::Admitted(Admitted::Started);
    assert_eq!(rig.replied(user), Some(Ok(started)));
    assert_eq!(rig.take_findings(), [""; 0]);
}

#[test]
fn om_18_an_in_flight_user_may_be_followed_by_done_refused() {
    let mut rig = Rig::opened();
    let user = rig.user("hi");
    rig.refused("a turn is in flight; wait for done");
    assert_eq!(rig.replied(user), Some(Err(Refusal::Busy)));
    let next = rig.user("next");
    rig.done("refused");
    assert_eq!(rig.replied(next), None);
    rig.budget();
    assert!(rig.replied(next).is_some());
    assert_eq!(rig.take_findings(), [""; 0]);
}

#[test]
fn a_prompt_that_waited_and_is_refused_ends() {
    let mut rig = in_turn();
    rig.prompt("a", Deliver::Queue(Rank::Next));
    rig.done("stop");
    rig.forget();
    rig.refused("project /p is not trusted; establish trust before starting a turn");
    rig.done("refused");
    assert_eq!(rig.events(), "P-(2,Failed) Set");
}

#[test]
fn a_protocol_error_that_fits_nothing_is_a_finding() {
    let mut rig = Rig::opened();
    for text in [
        "user text is empty",
        "a turn is in flight; wait for done",
        "unknown or already settled approval_id 'x'",
        "unknown approval mode 'x': auto|ask|readonly",
        "bad command line: missing field `cmd`",
        "something else",
    ] {
        rig.refused(text);
        let found = rig.take_findings();
        assert_eq!(
            found,
            [format!("a protocol_error that answers nothing: {text}")]
        );
    }
    assert_eq!(rig.out, []);
}

// ---- an agent that breaks its contract

#[test]
fn an_unknown_type_survives() {
    let mut rig = in_turn();
    let line = r#"{"session_id":"s","type":"hologram","depth":3}"#;
    rig.agent(line);
    assert!(rig.out.contains(&Out::Extra(Extra::Unknown {
        kind: "hologram".into(),
        line: line.into(),
    })));
    assert_eq!(rig.take_findings().len(), 1);
    assert!(
        Openmax::soften(&Extra::Unknown {
            kind: "x".into(),
            line: "".into()
        })
        .is_some()
    );
}

#[test]
fn broken_lines_are_findings_with_their_place() {
    let mut rig = in_turn();
    rig.says("token", r#""text":"a""#);
    rig.forget();
    rig.tell(ClientInput::Bytes(
        b"Warning: not JSON\n\n \r\n{\"type\":\"token\"}\n".to_vec(),
    ));
    let places: Vec<_> = rig
        .out
        .iter()
        .map(|out| match out {
            Out::Finding(finding) => finding.place.unwrap().line,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, [4, 7]);
    rig.says("token", r#""text":"b""#);
    rig.says("message_done", r#""text":"ab""#);
    assert_eq!(rig.take_findings().len(), 2, "nothing around them is lost");
}

#[test]
fn a_last_line_without_its_newline_counts() {
    let mut rig = in_turn();
    rig.tell(ClientInput::Bytes(
        br#"{"session_id":"s","type":"done","stop_reason":"stop"}"#.to_vec(),
    ));
    rig.end();
    assert!(
        rig.events()
            .contains("T-(Finished) P-(1,Finished) Set Closed(Fault)")
    );
}

#[test]
fn lines_outside_any_turn_make_one_that_nobody_asked_for() {
    let mut rig = Rig::opened();
    rig.says("token", r#""text":"a""#);
    rig.done("stop");
    assert_eq!(
        rig.events(),
        "! T+ S+ Rq m+ b+(text) d(text) ! b-(text) m-(NotSaid) Rq-(Truncated) S- T-(Finished) Set"
    );
    rig.done("stop");
    assert_eq!(
        rig.take_findings(),
        ["done \"stop\" that no prompt is owed"]
    );
}

/// A stray line must not block the host for good.
#[test]
fn om_17_a_turn_that_nobody_asked_for_holds_nothing_up() {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.done("stop");
    rig.says(
        "usage",
        r#""prompt_tokens":1,"completion_tokens":1,"cached_tokens":null"#,
    );
    rig.lines();
    rig.forget();
    rig.user("next");
    assert_eq!(rig.lines(), [r#"{"cmd":"user","text":"next"}"#]);
    assert_eq!(rig.events(), "! Rq-(Truncated) S- T-(NotSaid)");
    rig.step("x");
    rig.done("stop");
    assert!(rig.events().ends_with("T-(Finished) P-(2,Finished) Set"));
    rig.says("tool_start", r#""call_id":"c","name":"look","args":{}"#);
    rig.forget();
    rig.command(Command::Close { drain: true });
    assert_eq!(
        rig.events(),
        "R(3,Done) ! t-(c1,NotSaid) S- T-(NotSaid) Set CloseInput"
    );
}

#[test]
fn an_end_without_a_start_is_begun_first() {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.forget();
    rig.says("tool_end", r#""call_id":"c","ok":true,"output":"o""#);
    rig.says(
        "approval_settled",
        r#""approval_id":"q","outcome":"approved""#,
    );
    assert_eq!(rig.events(), "! t+(c1) t-(c1,Ok) !");
}

#[test]
fn what_never_ends_is_ended_by_the_next_step() {
    let mut rig = asked();
    rig.forget();
    rig.budget();
    assert_eq!(
        rig.events(),
        "! ! A!(Fault) Dc(no) t-(c1,NotSaid) S- S+ Cx Rq"
    );
}

#[test]
fn om_26_a_retry_after_tokens_is_a_finding() {
    let mut rig = in_turn();
    rig.says("token", r#""text":"a""#);
    rig.says(
        "retry",
        r#""attempt":2,"max_attempts":8,"reason":"request failed: x""#,
    );
    assert_eq!(
        rig.take_findings(),
        ["a retry after tokens of the same step"]
    );
    let why = rig.find(|what| match what {
        What::RetryScheduled {
            attempt,
            max,
            wait_us,
            why,
        } => {
            assert_eq!((*attempt, *max, *wait_us), (2, 8, None));
            Some(why.clone())
        }
        _ => None,
    });
    assert_eq!((why.kind, why.retryable), (FailureKind::Transport, true));
}

#[test]
fn om_20_message_done_counts_where_the_tokens_differ() {
    let text = |rig: &Rig| {
        rig.find(|what| match what {
            What::MessageEnded { message, .. } => Some(message.text()),
            _ => None,
        })
    };
    let mut rig = in_turn();
    rig.says("token", r#""text":"one""#);
    rig.says("message_done", r#""text":"two""#);
    assert_eq!(text(&rig), "two");
    assert_eq!(rig.take_findings().len(), 1);
    let mut rig = in_turn();
    rig.says("token", r#""text":"<think>plan</think>\n\nanswer""#);
    rig.says("message_done", r#""text":"answer""#);
    assert_eq!(text(&rig), "answer");
    assert_eq!(
        rig.take_findings(),
        [""; 0],
        "the contract leaves a think block out"
    );
}

#[test]
fn om_13_usage_is_disjoint_and_goes_with_its_request() {
    let mut rig = in_turn();
    rig.says(
        "usage",
        r#""prompt_tokens":500,"completion_tokens":5,"cached_tokens":480"#,
    );
    rig.says("message_done", r#""text":"x""#);
    let usage = rig.find(|what| match what {
        What::RequestEnded { usage, cost, .. } => {
            assert_eq!(*cost, Cost::NotSaid);
            *usage
        }
        _ => None,
    });
    assert_eq!(
        (usage.input, usage.cache_read, usage.cache_write),
        (Some(20), Some(480), None)
    );
    assert_eq!((usage.prompt_tokens(), usage.output), (Some(500), Some(5)));
    rig.done("length");
    let (end, report, answer) = rig.find(|what| match what {
        What::TurnEnded {
            end,
            report,
            answer,
            ..
        } => Some((end.clone(), report.clone(), answer.clone())),
        _ => None,
    });
    assert_eq!(
        end,
        End::Finished {
            finish: Some("length".into())
        }
    );
    assert_eq!(report.requests, Some(1));
    assert_eq!(report.by_model[0].1.prompt_tokens(), Some(500));
    assert_eq!(answer, Some(TurnAnswer::Text("x".into())));
}

#[test]
fn om_13_arguments_that_are_no_object_are_read() {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.says("tool_start", r#""call_id":"a","name":"","args":null"#);
    let input = rig.find(|what| match what {
        What::ToolStarted { input, .. } => Some(input.clone()),
        _ => None,
    });
    assert_eq!(input, None);
    assert_eq!(rig.take_findings(), [""; 0], "the older build says null");
}

#[test]
fn om_31_a_hook_of_an_unknown_point_keeps_its_name() {
    let mut rig = in_turn();
    rig.says(
        "hook_failed",
        r#""hook":"h","event":"moon_phase","detail":"d""#,
    );
    let told = rig.find(|what| match what {
        What::HookFailed { point, detail, .. } => Some((*point, detail.to_string())),
        _ => None,
    });
    assert_eq!(told, (HookPoint::Notification, "moon_phase: d".into()));
}

#[test]
fn om_30_a_refused_completion_is_the_next_steps_message() {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"x""#);
    rig.says(
        "turn_refused",
        r#""hook":"verify","reason":"tests fail","continuation":1,"continuations_left":7"#,
    );
    let counts = rig.find(|what| match what {
        What::CompletionRefused {
            continuation, left, ..
        } => Some((*continuation, *left)),
        _ => None,
    });
    assert_eq!(counts, (1, 7));
    rig.budget();
    let message = rig.find(|what| match what {
        What::Message(message) => Some(message.clone()),
        _ => None,
    });
    assert_eq!(message.origin, Origin::Hook("verify".into()));
    assert_eq!(message.text(), "tests fail");
}

#[test]
fn om_12_another_sessions_line_is_found_once() {
    let mut rig = in_turn();
    let line = r#"{"session_id":"t","type":"token","text":"a"}"#;
    rig.agent(line);
    rig.agent(line);
    assert_eq!(
        rig.take_findings(),
        ["a line of session \"t\"; hello named \"s\""]
    );
}

#[test]
fn only_what_the_agent_said_is_marked_as_said() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.step("x");
    rig.done("stop");
    let said: Vec<String> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(event) if event.seen == Seen::Real => {
                Some(client_kit::text::what(&event.what))
            }
            _ => None,
        })
        .collect();
    assert_eq!(said, ["Cx", "d(text)", "m-(NotSaid)", "P-(1,Finished)"]);
}

// ---- limits

#[test]
fn tw_10_a_reply_beyond_the_limit_streams_on_and_isnt_kept() {
    let config = ClientConfig {
        reply_bytes: 200,
        ..ClientConfig::default()
    };
    let mut rig = Rig::new(config);
    rig.agent(HELLO);
    rig.user("hi");
    rig.budget();
    let piece = "x".repeat(90);
    for _ in 0..5 {
        rig.says("token", &format!(r#""text":"{piece}""#));
    }
    let deltas = rig.out.iter().filter(|out| {
        matches!(
            out,
            Out::Event(Event {
                what: What::Delta { .. },
                ..
            })
        )
    });
    assert_eq!(deltas.count(), 5);
    assert_eq!(rig.take_findings().len(), 1);
    rig.says("message_done", &format!(r#""text":"{}""#, piece.repeat(5)));
    let kept = rig.find(|what| match what {
        What::MessageEnded { message, .. } => Some(message.text().len()),
        _ => None,
    });
    assert_eq!(kept, 450, "the agent's own text counts");
}

#[test]
fn tw_10_events_that_nobody_takes_stop_the_reading() {
    let mut client: Client<Openmax> = Client::new(ClientConfig::default());
    client.set_held_limit(1_000);
    let mut splitter = turnwire::frame::LineSplitter::new(Openmax::agent_line_rules());
    let bytes = format!("{HELLO}\n").repeat(100);
    let mut chunk = bytes.as_bytes();
    let mut heard = 0;
    while client.wants_lines() {
        let line = splitter.next(&mut chunk).unwrap();
        client.handle_line(line, Now::default());
        heard += 1;
    }
    assert!(heard < 20);
    let mut lines = Vec::new();
    while client.poll_output(&mut lines).is_some() {}
    assert!(client.wants_lines());
}

#[test]
fn lines_and_outputs_keep_their_order_when_drained_late() {
    let mut rig = Rig::opened();
    let now = rig.now;
    let call = |id, command| Call {
        id: CommandId(id),
        command,
    };
    rig.client.handle_command(
        call(
            1,
            Command::Prompt(prompt(PromptId(1), "a", Deliver::IfIdle)),
        ),
        now,
    );
    rig.client
        .handle_command(call(2, Command::Close { drain: false }), now);
    let mut lines = Vec::new();
    let mut before_close = None;
    while let Some(output) = rig.client.poll_output(&mut lines) {
        if client_kit::own(&output) == Out::CloseInput {
            before_close = Some(lines.len());
        }
    }
    assert_eq!(
        before_close,
        Some(lines.len()),
        "quit is written before the input is closed"
    );
}
