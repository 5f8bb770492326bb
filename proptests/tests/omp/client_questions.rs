//! Questions of an agent: tools and addresses of the host's, dialogs, approvals.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_client_kit;

use omp_client_kit::{Out, Program, Rig};
use serde_json::json;
use turnwire::vocab::*;

fn host_tool(rig: &mut Rig) {
    rig.begin("hi");
    rig.calls(&[("t", "look")]);
    rig.agent(r#"{"type":"host_tool_call","id":"h1","toolCallId":"t","toolName":"look","arguments":{"a":1}}"#);
    rig.tool_start("t", "look");
    rig.writes();
}

/// OMP-11: the host's own tools are questions that a closure can serve.
#[test]
fn omp_11_a_host_s_tool_is_a_question() {
    let mut rig = Rig::opened(Program::G2);
    host_tool(&mut rig);
    let (ask, body) = rig.asked();
    let Ask::Tool { name, input, call } = body else {
        panic!("{body:?}");
    };
    assert_eq!(
        (&*name, input.as_str(), call),
        ("look", "{\"a\":1}", CallId(1))
    );
    let part = rig.command(Command::ReplyPart {
        ask,
        content: vec![Block::Text("so far".into())],
    });
    assert_eq!(rig.replied(part), Some(Ok(Answer::Sent)));
    rig.forget();
    let reply = rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Tool {
            content: vec![Block::Text("seen".into())],
            is_error: false,
            details: Some(RawJson("{\"k\":1}".into())),
        }),
    });
    assert_eq!(
        rig.writes(),
        [
            r#"{"type":"host_tool_result","id":"h1","result":{"content":[{"type":"text","text":"seen"}],"details":{"k":1}}}"#
        ]
    );
    let again = rig.command(Command::Reply {
        ask,
        reply: Err(ReplyFault::HostGone),
    });
    assert_eq!(rig.replied(again), Some(Err(Refusal::AlreadySettled)));
    rig.tool_end("t", "look", "seen", false);
    assert_eq!(rig.replied(reply), Some(Ok(Answer::Sent)));
    assert_eq!(
        rig.events(),
        "R(3,Sent) A!(declined) R(4,Err(AlreadySettled)) t-(c1,Ok)"
    );
    assert_eq!(rig.findings(), [] as [String; 0]);
}

#[test]
fn omp_11_a_host_s_tool_fails_or_is_taken_back() {
    let mut rig = Rig::opened(Program::G2);
    host_tool(&mut rig);
    let (ask, _) = rig.asked();
    rig.command(Command::Reply {
        ask,
        reply: Err(ReplyFault::HostError("broken".into())),
    });
    assert_eq!(
        rig.writes(),
        [
            r#"{"type":"host_tool_result","id":"h1","result":{"content":[{"type":"text","text":"broken"}]},"isError":true}"#
        ]
    );
    let mut rig = Rig::opened(Program::G2);
    host_tool(&mut rig);
    rig.forget();
    rig.cancel(QueueFate::Keep);
    rig.agent(r#"{"type":"host_tool_cancel","id":"h2","targetId":"h1"}"#);
    rig.tool_end("t", "look", "Host tool \"look\" was aborted", true);
    assert_eq!(rig.events(), "A!(Cancelled) t-(c1,Cancelled)");
    // The answer of another id is nobody's.
    rig.agent(r#"{"type":"host_tool_cancel","id":"h2","targetId":"nope"}"#);
    assert_eq!(rig.events(), "");
}

#[test]
fn omp_12_a_host_s_address_is_a_question() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    rig.forget();
    rig.agent(r#"{"type":"host_uri_request","id":"u1","operation":"write","url":"db://1","content":"new"}"#);
    let (ask, body) = rig.asked();
    assert_eq!(
        body,
        Ask::Uri {
            op: UriOp::Write,
            uri: "db://1".into(),
            body: Some("new".into())
        }
    );
    rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Uri {
            body: "ok".into(),
            mime: Some("text/markdown".into()),
            notes: vec!["n".into()],
            immutable: Some(true),
        }),
    });
    assert_eq!(
        rig.writes(),
        [
            r#"{"type":"host_uri_result","id":"u1","content":"ok","contentType":"text/markdown","notes":["n"],"immutable":true}"#
        ]
    );
    rig.agent(r#"{"type":"host_uri_request","id":"u2","operation":"read","url":"db://2"}"#);
    rig.command(Command::Reply {
        ask: AskId(2),
        reply: Err(ReplyFault::HostError("no such row".into())),
    });
    assert_eq!(
        rig.writes(),
        [r#"{"type":"host_uri_result","id":"u2","isError":true,"error":"no such row"}"#]
    );
}

fn ui(rig: &mut Rig, id: &str, members: &str) {
    rig.agent(&format!(
        "{{\"type\":\"extension_ui_request\",\"id\":\"{id}\",{members}}}"
    ));
}

/// OMP-13: what wants an answer, what asks for a permission, and what is only shown are three things.
#[test]
fn omp_13_questions_notices_and_presentation_are_never_mixed_up() {
    let mut rig = Rig::opened(Program::G2);
    rig.forget();
    ui(
        &mut rig,
        "a",
        r#""method":"notify","message":"done","notifyType":"warning""#,
    );
    ui(&mut rig, "b", r#""method":"setStatus","statusKey":"k""#);
    ui(
        &mut rig,
        "c",
        r#""method":"confirm","title":"Sure?","message":"Really.""#,
    );
    ui(&mut rig, "d", r#""method":"futureMethod","x":1"#);
    assert_eq!(rig.events(), "N(Warning) x(OmpExtra) A?() x(OmpExtra)");
    let rows = [
        (
            r#""method":"confirm","title":"t","message":"m""#,
            "true",
            r#""confirmed":true"#,
        ),
        (
            r#""method":"select","title":"t","options":["x","y"]"#,
            "y",
            r#""value":"y""#,
        ),
        (r#""method":"input","title":"t""#, "z", r#""value":"z""#),
        (
            r#""method":"editor","title":"t","prefill":"p""#,
            "long",
            r#""value":"long""#,
        ),
        (
            r#""method":"ask","questions":[{"id":"q","question":"?","options":[]}]"#,
            "[1]",
            r#""answers":[1]"#,
        ),
    ];
    for (number, (members, value, expected)) in rows.into_iter().enumerate() {
        rig.forget();
        ui(&mut rig, &format!("q{number}"), members);
        let (ask, body) = rig.asked();
        assert!(matches!(body, Ask::Choice(_)), "{body:?}");
        rig.command(Command::Reply {
            ask,
            reply: Ok(Reply::Choice(Some(value.into()))),
        });
        assert_eq!(
            rig.writes(),
            [format!(
                "{{\"type\":\"extension_ui_response\",\"id\":\"q{number}\",{expected}}}"
            )]
        );
    }
    // Approve and Deny of a tool that nobody calls stay a choice, which can be answered.
    rig.forget();
    ui(
        &mut rig,
        "z",
        r#""method":"select","title":"Allow tool: bash\nls","options":["Approve","Deny"]"#,
    );
    let (ask, body) = rig.asked();
    assert!(matches!(body, Ask::Choice(_)));
    rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Choice(None)),
    });
    assert_eq!(
        rig.writes(),
        [r#"{"type":"extension_ui_response","id":"z","cancelled":true}"#]
    );
}

fn approval(rig: &mut Rig) -> AskId {
    rig.begin("hi");
    rig.calls(&[("t", "bash")]);
    rig.tool_start("t", "bash");
    rig.writes();
    ui(
        rig,
        "a",
        r#""method":"select","title":"Allow tool: bash\nCommand: ls","options":["Approve","Deny"]"#,
    );
    let (ask, body) = rig.asked();
    let Ask::Permission(body) = body else {
        panic!("{body:?}");
    };
    assert_eq!((&*body.tool, &*body.summary), ("bash", "Command: ls"));
    ask
}

#[test]
fn omp_13_approvals_allow_deny_and_never_by_mistake() {
    let allow = || Reply::Allow {
        input: None,
        updates: vec![],
    };
    let mut rig = Rig::opened(Program::G2);
    let ask = approval(&mut rig);
    let odd = rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Allow {
            input: Some(RawJson("{}".into())),
            updates: vec![],
        }),
    });
    assert!(matches!(
        rig.replied(odd),
        Some(Err(Refusal::Unsupported(_)))
    ));
    let odd = rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Choice(Some("Approve".into()))),
    });
    assert!(matches!(rig.replied(odd), Some(Err(Refusal::Invalid(_)))));
    assert_eq!(rig.writes(), [] as [String; 0]);
    rig.command(Command::Reply {
        ask,
        reply: Ok(allow()),
    });
    assert_eq!(
        rig.writes(),
        [r#"{"type":"extension_ui_response","id":"a","value":"Approve"}"#]
    );

    let mut rig = Rig::opened(Program::G2);
    let ask = approval(&mut rig);
    rig.forget();
    rig.command(Command::Reply {
        ask,
        reply: Err(ReplyFault::HostGone),
    });
    assert_eq!(
        rig.writes(),
        [r#"{"type":"extension_ui_response","id":"a","cancelled":true}"#]
    );
    rig.tool_end("t", "bash", "Tool call denied by user: bash", true);
    assert_eq!(rig.events(), "R(2,Sent) A!(HostGone) Dc(no) t-(c1,Denied)");

    let mut rig = Rig::opened(Program::G2);
    let ask = approval(&mut rig);
    rig.command(Command::Reply {
        ask,
        reply: Ok(Reply::Deny {
            message: None,
            interrupt: true,
        }),
    });
    assert_eq!(
        rig.writes(),
        [
            r#"{"type":"extension_ui_response","id":"a","value":"Deny"}"#,
            r#"{"id":"i5","type":"abort"}"#,
        ]
    );
}

/// OMP-13: timeouts are the host's.
#[test]
fn omp_13_a_dialog_runs_out_of_time_at_the_host() {
    let mut rig = Rig::opened(Program::G2);
    rig.forget();
    ui(
        &mut rig,
        "c",
        r#""method":"confirm","title":"t","message":"m","timeout":2000"#,
    );
    rig.pass_ms(1_999);
    assert_eq!(rig.writes(), [] as [String; 0]);
    rig.pass_ms(1);
    assert_eq!(
        rig.writes(),
        [r#"{"type":"extension_ui_response","id":"c","cancelled":true,"timedOut":true}"#]
    );
    assert_eq!(rig.events(), "A?() A!(TimedOut)");
}

/// A dialog that isn't its turn's is asked again behind its end.
#[test]
fn omp_13_a_dialog_outlives_the_turn() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    ui(&mut rig, "c", r#""method":"input","title":"code""#);
    rig.reply(&["a"], "stop");
    rig.forget();
    rig.run_ends(&[prompt], "completed");
    assert_eq!(
        rig.events(),
        "S- A!(Cancelled) T-(Finished) P-(1,Finished) A?() Set"
    );
    rig.command(Command::Reply {
        ask: AskId(2),
        reply: Ok(Reply::Choice(Some("42".into()))),
    });
    assert_eq!(
        rig.writes(),
        [r#"{"type":"extension_ui_response","id":"c","value":"42"}"#]
    );
}

/// L9: what an agent never ends doesn't pile up.
#[test]
fn l9_open_calls_and_questions_are_bounded() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    for number in 0..4_200 {
        let id = format!("t{number}");
        let line = json!({"type":"tool_execution_start","toolCallId":id,"toolName":"x","args":{}});
        rig.agent(&line.to_string());
        ui(
            &mut rig,
            &format!("q{number}"),
            r#""method":"input","title":"t""#,
        );
        rig.out.clear();
    }
    rig.end();
    assert_eq!(rig.out.last(), Some(&Out::Closed));
}
