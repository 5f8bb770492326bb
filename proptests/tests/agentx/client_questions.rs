//! What the agent asks a host, and what a host's answers are on the wire.

use crate::agentx_client_kit::{Rig, config};
use serde_json::{Value, json};
use turnwire::protocol::agentx::Policy;
use turnwire::vocab::*;

/// A call that is asked about.
fn asked(rig: &mut Rig) -> u64 {
    rig.user("hi", "u1");
    rig.calls("m1", "c1", "write");
    rig.asks("q1", "c1", "write");
    let (ask, _) = rig.asked();
    rig.forget();
    ask.0
}

fn payload(rig: &mut Rig) -> Value {
    let line = rig.writes().pop().unwrap();
    assert_eq!(line["type"], "control_response");
    assert_eq!(line["response"]["request_id"], "q1");
    line["response"]["response"].clone()
}

fn allow(input: Option<&str>) -> Reply {
    Reply::Allow {
        input: input.map(|input| RawJson(input.into())),
        updates: vec![],
    }
}

#[test]
fn ax_p02_a_permission_says_what_is_asked_and_its_call_has_begun() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.calls("m1", "c1", "write");
    rig.say(&json!({"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"write",
        "input":{"path":"/abs"},"description":"d","decision_reason":"outside","tool_use_id":"c1",
        "permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"novel"}]}}));
    let (_, body) = rig.asked();
    let Ask::Permission(asked) = body else {
        panic!("{body:?}");
    };
    assert_eq!(asked.call, Some(CallId(1)));
    assert_eq!((&*asked.tool, &*asked.summary), ("write", "d"));
    assert_eq!(asked.reason, AskReason::Other("outside".into()));
    assert_eq!(&*asked.detail, r#"{"path":"/abs"}"#);
    assert_eq!(asked.suggestions.len(), 1, "what is known");
    let (cause, input) = rig.find(|what| match what {
        What::ToolStarted { cause, input, .. } => Some((cause.clone(), input.clone())),
        _ => None,
    });
    assert!(matches!(cause, ToolCause::Model { block: 0, .. }));
    assert_eq!(input.unwrap().as_str(), r#"{"path":"/abs"}"#);
}

#[test]
fn ax_p08_an_allow_always_has_an_input() {
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    rig.reply(ask, allow(None));
    assert_eq!(
        payload(&mut rig),
        json!({"behavior":"allow","updatedInput":{"a":1},"toolUseID":"c1"})
    );
    assert_eq!(rig.events(), "R(2,Sent) A!(approved) Dc(yes)");
}

#[test]
fn ax_p11_another_input_replaces_the_whole() {
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    let odd = rig.reply(ask, allow(Some("[1]")));
    assert!(matches!(rig.replied(odd), Some(Err(Refusal::Invalid(_)))));
    rig.reply(ask, allow(Some(r#"{"b":2}"#)));
    assert_eq!(payload(&mut rig)["updatedInput"], json!({"b":2}));
    let verdict = rig.find(|what| match what {
        What::Decided { verdict, .. } => Some(verdict.clone()),
        _ => None,
    });
    assert_eq!(verdict.input, Some(RawJson(r#"{"b":2}"#.into())));
}

#[test]
fn ax_p13_changes_of_the_permissions_go_where_they_can() {
    let updates = vec![PermissionUpdate::Mode {
        mode: "accept_edits".into(),
        keep: Keep::Session,
    }];
    let reply = Reply::Allow {
        input: None,
        updates,
    };
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    rig.reply(ask, reply.clone());
    assert_eq!(
        payload(&mut rig)["updatedPermissions"],
        json!([{"type":"setMode","mode":"acceptEdits","destination":"session"}])
    );
    let mut rig = Rig::strict();
    let ask = asked(&mut rig);
    let refused = rig.reply(ask, reply);
    assert!(matches!(
        rig.replied(refused),
        Some(Err(Refusal::Unsupported(_)))
    ));
    assert_eq!(rig.writes().len(), 0, "it can still be answered");
}

#[test]
fn ax_p17_ax_p18_a_deny_has_a_message_and_may_end_the_turn() {
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    rig.reply(
        ask,
        Reply::Deny {
            message: Some(" ".into()),
            interrupt: true,
        },
    );
    let payload = payload(&mut rig);
    assert!(!payload["message"].as_str().unwrap().trim().is_empty());
    assert_eq!(payload["interrupt"], true);
    rig.tool_result("c1", "no", true);
    rig.ends(&json!({"subtype":"error_during_execution","is_error":true,"stop_reason":"tool_use","terminal_reason":"aborted_tools","errors":[]}));
    let end = rig.find(|what| match what {
        What::TurnEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, End::Cancelled(CancelWhy::Denied(CallId(1))));
    assert!(rig.events().contains("t-(c1,Denied)"));
}

#[test]
fn ax_p20_a_host_that_fails_denies() {
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    rig.command(Command::Reply {
        ask: AskId(ask),
        reply: Err(ReplyFault::HostError("boom".into())),
    });
    let line = rig.writes().pop().unwrap();
    assert_eq!(
        line["response"],
        json!({"subtype":"error","request_id":"q1","error":"boom"})
    );
    assert_eq!(rig.events(), "R(2,Sent) A!(Fault) Dc(no)");
}

#[test]
fn ax_p27_a_hook_that_is_faster_takes_the_question_back() {
    let mut rig = Rig::claude();
    let ask = asked(&mut rig);
    rig.say(&json!({"type":"control_request","request_id":"q2","request":{"subtype":"hook_callback","callback_id":"h1",
        "tool_use_id":"c1","input":{"hook_event_name":"PermissionRequest","tool_name":"write","tool_input":{}}}}));
    let (hook, body) = rig.asked();
    assert!(
        matches!(body, Ask::Hook(hook) if hook.point == HookPoint::Permission && hook.facts.call() == Some(CallId(1)))
    );
    let reply = HookReply {
        verdict: HookVerdict::Allow { input: None },
        ..HookReply::pass()
    };
    rig.reply(hook.0, Reply::Hook(Box::new(reply)));
    let line = rig.writes().pop().unwrap();
    assert_eq!(
        line["response"]["response"],
        json!({"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}})
    );
    rig.say(&json!({"type":"control_cancel_request","request_id":"q1"}));
    assert!(rig.events().ends_with("A!(approved) A!(approved) Dc(yes)"));
    let late = rig.reply(ask, allow(None));
    assert_eq!(rig.replied(late), Some(Err(Refusal::AlreadySettled)));
    assert_eq!(rig.writes().len(), 0);
}

#[test]
fn ax_p31_a_connection_is_asked_about_without_a_call() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.say(
        &json!({"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool",
        "tool_name":"SandboxNetworkAccess","input":{"host":"example.org"},"tool_use_id":"net"}}),
    );
    let (_, body) = rig.asked();
    let Ask::Permission(asked) = body else {
        panic!("{body:?}");
    };
    let host = "example.org".into();
    assert_eq!(
        (asked.call, asked.reason),
        (None, AskReason::Network { host })
    );
}

#[test]
fn answers_of_hooks_say_what_the_event_has() {
    let answer = |event: &str, reply: HookReply| {
        let mut rig = Rig::claude();
        rig.user("hi", "u1");
        rig.calls("m1", "c1", "write");
        rig.say(&json!({"type":"control_request","request_id":"q1","request":{"subtype":"hook_callback","callback_id":"h1",
            "tool_use_id":"c1","input":{"hook_event_name":event,"tool_name":"write","tool_input":{},"tool_use_id":"c1"}}}));
        let (ask, _) = rig.asked();
        rig.reply(ask.0, Reply::Hook(Box::new(reply)));
        payload(&mut rig)
    };
    let pass = HookReply::pass;
    assert_eq!(answer("PreToolUse", pass()), json!({}));
    assert_eq!(
        answer("PreToolUse", HookReply::deny("no".into())),
        json!({"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}})
    );
    let input = Some(RawJson("{\"b\":1}".into()));
    assert_eq!(
        answer(
            "PreToolUse",
            HookReply {
                verdict: HookVerdict::Allow { input },
                ..pass()
            }
        )["hookSpecificOutput"]["updatedInput"],
        json!({"b":1})
    );
    assert_eq!(
        answer("Stop", HookReply::deny("go on".into())),
        json!({"decision":"block","reason":"go on"})
    );
    assert_eq!(
        answer(
            "PostToolUse",
            HookReply {
                context: Some("by the way".into()),
                go_on: false,
                stop_reason: Some("enough".into()),
                ..pass()
            }
        ),
        json!({"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"by the way"}})
    );
}

fn mcp(rig: &mut Rig, request: &str, message: &Value) {
    rig.say(&json!({"type":"control_request","request_id":request,"request":{"subtype":"mcp_message","server_name":"host","message":message}}));
}

#[test]
fn tools_of_the_host_are_an_mcp_server() {
    let mut rig = Rig::new(config(Policy::CLAUDE));
    let tool = crate::agentx_kit::duo::tool("add", SideEffect::Read);
    rig.command(Command::Offer(Offer::Tools(vec![tool])));
    rig.pass_ms(1);
    rig.writes();
    // Before it is greeted back, and without anybody's help.
    mcp(
        &mut rig,
        "q0",
        &json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}),
    );
    let line = rig.writes().pop().unwrap();
    let result = &line["response"]["response"]["mcp_response"]["result"];
    assert_eq!(result["protocolVersion"], "2025-11-25");
    mcp(
        &mut rig,
        "q1",
        &json!({"jsonrpc":"2.0","method":"notifications/initialized"}),
    );
    assert_eq!(
        payload(&mut rig),
        json!({"mcp_response":{"jsonrpc":"2.0","result":{}}})
    );
    mcp(
        &mut rig,
        "q1",
        &json!({"jsonrpc":"2.0","id":1,"method":"tools/list"}),
    );
    assert_eq!(
        payload(&mut rig)["mcp_response"]["result"]["tools"][0]["name"],
        "add"
    );
    mcp(
        &mut rig,
        "q1",
        &json!({"jsonrpc":"2.0","id":2,"method":"resources/list"}),
    );
    assert_eq!(payload(&mut rig)["mcp_response"]["error"]["code"], -32_601);
    assert_eq!(rig.events(), "", "nobody was asked");
    rig.greeted();
    rig.user("hi", "u1");
    rig.calls("m1", "c1", "mcp__host__add");
    rig.forget();
    mcp(
        &mut rig,
        "q1",
        &json!({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1},"_meta":{"claudecode/toolUseId":"c1"}}}),
    );
    let (ask, body) = rig.asked();
    assert_eq!(
        body,
        Ask::Tool {
            call: CallId(1),
            name: "add".into(),
            input: RawJson("{\"a\":1}".into())
        }
    );
    let content = vec![Block::Text("42".into())];
    rig.reply(
        ask.0,
        Reply::Tool {
            content,
            is_error: false,
            details: None,
        },
    );
    assert_eq!(
        payload(&mut rig),
        json!({"mcp_response":{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"42"}],"isError":false}}})
    );
    // One that is given up, and others that the host has now.
    rig.forget();
    mcp(
        &mut rig,
        "q4",
        &json!({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"add","arguments":{}}}),
    );
    let (ask, _) = rig.asked();
    mcp(
        &mut rig,
        "q5",
        &json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}),
    );
    assert!(rig.events().ends_with("A!(Cancelled)"));
    let late = rig.reply(ask.0, Reply::Choice(None));
    assert_eq!(rig.replied(late), Some(Err(Refusal::AlreadySettled)));
    rig.writes();
    rig.command(Command::Offer(Offer::Tools(vec![])));
    let line = rig.writes().pop().unwrap();
    assert_eq!(
        line["request"]["message"]["method"],
        "notifications/tools/list_changed"
    );
}

#[test]
fn forms_of_one_member_are_asked_as_what_they_are() {
    let ask = |schema: Value, chosen: Option<&str>| {
        let mut rig = Rig::claude();
        rig.say(&json!({"type":"control_request","request_id":"q1","request":{"subtype":"elicitation","mcp_server_name":"s",
            "message":"m","requested_schema":schema}}));
        let (id, body) = rig.asked();
        let Ask::Choice(choice) = body else {
            panic!("{body:?}")
        };
        rig.reply(id.0, Reply::Choice(chosen.map(Text::from)));
        (choice.kind, payload(&mut rig))
    };
    let (kind, answer) = ask(
        json!({"properties":{"ok":{"type":"boolean"}}}),
        Some("true"),
    );
    assert_eq!(kind, ChoiceKind::Confirm);
    assert_eq!(answer, json!({"action":"accept","content":{"ok":true}}));
    let (kind, answer) = ask(
        json!({"properties":{"c":{"type":"string","enum":["red","blue"]}}}),
        Some("red"),
    );
    assert_eq!(kind, ChoiceKind::Select(vec!["red".into(), "blue".into()]));
    assert_eq!(answer["content"], json!({"c":"red"}));
    let (kind, answer) = ask(json!({"properties":{"a":{},"b":{}}}), Some("{\"a\":1}"));
    assert!(matches!(kind, ChoiceKind::Form(_)));
    assert_eq!(answer["content"], json!({"a":1}));
    let (_, answer) = ask(json!({}), None);
    assert_eq!(answer, json!({"action":"cancel"}));
}

#[test]
fn requests_that_nobody_knows_are_refused_and_passed_on() {
    let mut rig = Rig::claude();
    for request in [
        json!({"subtype":"novel"}),
        json!({"subtype":"can_use_tool"}),
        json!(null),
    ] {
        rig.say(&json!({"type":"control_request","request_id":"q1","request":request}));
        let line = rig.writes().pop().unwrap();
        assert_eq!(line["response"]["subtype"], "error");
        assert!(rig.events().ends_with("x(AgentxExtra)"));
    }
    rig.say(&json!({"type":"control_request","request":{"subtype":"novel"}}));
    assert_eq!(rig.writes().len(), 0, "nothing to name in an answer");
}
