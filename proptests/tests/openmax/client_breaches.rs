//! Each way in which an agent can break the contract under the Client's eyes: what is found, and that nothing else is
//! lost. And the limits that such an agent meets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::{HELLO, Out, Rig, own};
use turnwire::protocol::openmax::ClientConfig;
use turnwire::vocab::*;

const TOOL: &str =
    r#"{"session_id":"s","type":"tool_start","call_id":"c","name":"look","args":{}}"#;
const ASK: &str = r#"{"session_id":"s","type":"approval_request","approval_id":"q","name":"look","summary":"s","detail":"d","reason":"gate","source_path":"","source_sha":""}"#;
const DONE: &str = r#"{"session_id":"s","type":"message_done","text":""}"#;

/// Lines behind `budget`, and the findings that they give.
const BREACHES: &[(&[&str], &[&str])] = &[
    (
        &[
            r#"{"session_id":"s","type":"usage","prompt_tokens":1,"completion_tokens":1,"cached_tokens":2}"#,
        ],
        &["usage names more cached tokens than prompt tokens"],
    ),
    (
        &[
            r#"{"session_id":"s","type":"usage","prompt_tokens":1,"completion_tokens":1,"cached_tokens":null}"#,
            r#"{"session_id":"s","type":"usage","prompt_tokens":2,"completion_tokens":1,"cached_tokens":null}"#,
        ],
        &["usage came twice for one request; the last counts"],
    ),
    (&[DONE, TOOL, TOOL], &["call \"c\" began twice"]),
    (
        &[TOOL],
        &[
            "a call began before the message_done of its reply",
            "a request never got its message_done",
        ],
    ),
    (
        &[
            DONE,
            r#"{"session_id":"s","type":"tool_start","call_id":"c","name":"look","args":[1]}"#,
        ],
        &["the args of call \"c\" are no object"],
    ),
    (
        &[
            DONE,
            r#"{"session_id":"s","type":"tool_end","call_id":"x","ok":true,"output":""}"#,
        ],
        &["call \"x\" ended and wasn't open"],
    ),
    (&[DONE, TOOL, ASK, ASK], &["approval \"q\" was asked twice"]),
    (
        &[
            DONE,
            TOOL,
            r#"{"session_id":"s","type":"approval_request","approval_id":"q","name":"other","summary":"s","detail":"d","reason":"gate","source_path":"","source_sha":""}"#,
        ],
        &["approval \"q\" names another tool than the open call"],
    ),
    (
        &[
            DONE,
            TOOL,
            r#"{"session_id":"s","type":"approval_request","approval_id":"q","name":"look","summary":"s","detail":"d","reason":"mood","source_path":"","source_sha":""}"#,
        ],
        &["approval reason \"mood\" is none of the contract's"],
    ),
    (
        &[
            DONE,
            TOOL,
            ASK,
            r#"{"session_id":"s","type":"approval_settled","approval_id":"q","outcome":"perhaps"}"#,
        ],
        &["approval outcome \"perhaps\" is none of the contract's"],
    ),
    (
        &[
            DONE,
            TOOL,
            ASK,
            r#"{"session_id":"s","type":"tool_end","call_id":"c","ok":true,"output":""}"#,
        ],
        &["approval \"q\" was never settled"],
    ),
    (
        &[r#"{"session_id":"s","type":"approval_settled","approval_id":"z","outcome":"approved"}"#],
        &["approval \"z\" was settled and wasn't open"],
    ),
    (
        &[r#"{"session_id":"s","type":"harness_note","call_id":"z","text":"n"}"#],
        &["a note names call \"z\", which nobody knows"],
    ),
    (
        &[r#"{"type":"approval_mode","mode":"yolo"}"#],
        &[
            "an approval_mode that nobody asked for",
            "approval mode \"yolo\" is none of the contract's",
        ],
    ),
    (
        &[r#"{"type":"transcript","session_id":"s","messages":[],"truncated":false}"#],
        &["a transcript that doesn't follow a hello of a continued session"],
    ),
    (
        &[r#"{"session_id":"s","type":"done","stop_reason":"refused"}"#],
        &[
            "done refused for a turn that had begun",
            "a request never got its message_done",
        ],
    ),
    (
        &[
            DONE,
            TOOL,
            r#"{"session_id":"s","type":"done","stop_reason":"stop"}"#,
        ],
        &["call \"c\" never ended"],
    ),
    (
        &[r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":2}"#],
        &["a request never got its message_done"],
    ),
];

#[test]
fn tw_09_every_breach_is_found_and_the_stream_goes_on() {
    for (lines, findings) in BREACHES {
        let mut rig = Rig::opened();
        rig.user("hi");
        rig.budget();
        assert_eq!(rig.take_findings(), [""; 0]);
        for line in *lines {
            rig.agent(line);
        }
        assert_eq!(rig.take_findings(), *findings, "{lines:?}");
        rig.done("stop");
        rig.end();
        let events = rig.events();
        assert!(events.contains("P-(1,Finished)"), "{lines:?}: {events}");
    }
}

#[test]
fn an_answer_that_nobody_can_place_is_told_with_its_line() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.refused("words that nobody knows");
    assert_eq!(rig.take_findings(), [""; 0], "a done refused may follow");
    rig.budget();
    assert_eq!(
        rig.take_findings(),
        ["a protocol_error that answers nothing: words that nobody knows"]
    );
}

#[test]
fn om_13_notes_and_diffs_know_their_call_behind_its_end() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    for line in [DONE, TOOL] {
        rig.agent(line);
    }
    rig.says(
        "diff",
        r#""call_id":"c","path":"p","diff":"+x","added":1,"removed":2"#,
    );
    rig.says("tool_end", r#""call_id":"c","ok":true,"output":"o""#);
    rig.says("harness_note", r#""call_id":"c","text":"n""#);
    let diff = rig.find(|what| match what {
        What::FileChanged {
            call,
            added,
            removed,
            ..
        } => Some((*call, *added, *removed)),
        _ => None,
    });
    assert_eq!(diff, (Some(CallId(1)), 1, 2));
    let about = rig.find(|what| match what {
        What::Message(message) if message.role == Role::Note => Some(message.about),
        _ => None,
    });
    assert_eq!(about, Some(CallId(1)));
    // The older build uses an id again in the next turn: the newest is meant.
    rig.agent(TOOL);
    rig.says("tool_end", r#""call_id":"c","ok":true,"output":"o""#);
    rig.forget();
    rig.says("harness_note", r#""call_id":"c","text":"n""#);
    let about = rig.find(|what| match what {
        What::Message(message) => Some(message.about),
        _ => None,
    });
    assert_eq!(about, Some(CallId(2)));
}

#[test]
fn a_call_belongs_to_the_reply_before_it() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.says("token", r#""text":"a""#);
    rig.says("message_done", r#""text":"a""#);
    rig.agent(TOOL);
    rig.agent(&TOOL.replace("\"c\"", "\"d\""));
    let reply = rig.find(|what| match what {
        What::MessageEnded { message, calls, .. } => {
            assert_eq!(*calls, CallList::NotReported);
            Some(message.id)
        }
        _ => None,
    });
    let causes: Vec<_> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(Event {
                what: What::ToolStarted { cause, .. },
                ..
            }) => Some(cause.clone()),
            _ => None,
        })
        .collect();
    let of = |block| ToolCause::Model {
        message: reply,
        block,
    };
    assert_eq!(causes, [of(1), of(2)], "behind the blocks of the reply");
}

#[test]
fn the_denied_calls_are_in_the_turns_report() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    for line in [DONE, TOOL, ASK] {
        rig.agent(line);
    }
    rig.command(Command::Reply {
        ask: AskId(1),
        reply: Err(ReplyFault::HostGone),
    });
    rig.says(
        "approval_settled",
        r#""approval_id":"q","outcome":"declined""#,
    );
    rig.says("tool_end", r#""call_id":"c","ok":false,"output":"no""#);
    rig.done("stop");
    let report = rig.find(|what| match what {
        What::TurnEnded { report, .. } => Some(report.clone()),
        _ => None,
    });
    assert_eq!(report.denials, [CallId(1)]);
}

#[test]
fn tw_10_open_calls_and_questions_are_bounded() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.agent(DONE);
    for index in 0..4_097 {
        rig.client_line(&TOOL.replace("\"c\"", &format!("\"c{index}\"")));
    }
    rig.drain();
    assert_eq!(
        rig.take_findings(),
        ["too many calls are open; the oldest is given up"]
    );
    for index in 0..4_097 {
        rig.client_line(&ASK.replace("\"q\"", &format!("\"q{index}\"")));
    }
    rig.drain();
    let found = rig.take_findings();
    assert_eq!(
        found.last().unwrap(),
        "too many approvals are open; this one can't be answered"
    );
    rig.end();
    assert_eq!(rig.out.last(), Some(&Out::Closed));
}

#[test]
fn tw_10_commands_that_wait_for_the_handshake_are_bounded() {
    let mut rig = Rig::new(ClientConfig::default());
    let ids: Vec<_> = (0..257).map(|_| rig.command(Command::Barrier)).collect();
    assert_eq!(rig.replied(ids[255]), None);
    assert_eq!(rig.replied(ids[256]), Some(Err(Refusal::Full)));
    rig.agent(HELLO);
    assert_eq!(rig.replied(ids[255]), Some(Ok(Answer::Done)));
}

/// L2 with much text: deltas that are taken late, a few at a time, are the same.
#[test]
fn l2_long_streams_may_be_taken_late() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.forget();
    let (mut taken, mut expected) = (String::new(), String::new());
    let mut lines = Vec::new();
    for index in 0..4_000 {
        let piece = format!("{index:>60}é");
        rig.client_line(&format!(
            r#"{{"session_id":"s","type":"token","text":"{piece}"}}"#
        ));
        expected.push_str(&piece);
        if index % 3 == 0 {
            for _ in 0..2 {
                take(&mut rig, &mut lines, &mut taken);
            }
        }
    }
    while take(&mut rig, &mut lines, &mut taken) {}
    assert_eq!(taken, expected);
}

fn take(rig: &mut Rig, lines: &mut Vec<u8>, taken: &mut String) -> bool {
    let Some(output) = rig.client.poll_output(lines) else {
        return false;
    };
    if let Out::Event(Event {
        what: What::Delta { text, .. },
        ..
    }) = own(&output)
    {
        taken.push_str(&text);
    }
    true
}
