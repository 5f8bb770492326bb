//! What an omp Server asks of its host: its tools, its URIs, its screen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_server_kit;

use omp_server_kit::{Rig, info};
use serde_json::{Value, json};
use turnwire::protocol::omp::{OmpAsk, OmpExtra, OmpOutcome};
use turnwire::vocab::*;

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn omp_11_a_result_is_an_error_by_its_top_level_flag_alone() {
    let mut rig = Rig::new();
    rig.query(r#"{"id":"t","type":"set_host_tools","tools":[{"name":"lookup","description":"d","parameters":{}}]}"#);
    rig.play("«p1:prompt» open(p1) calls(c1) t+(c1)");
    let mut results = Vec::new();
    for line in [
        r#""result":{"content":[{"type":"text","text":"no"}],"isError":true}"#,
        r#""result":{"content":[],"details":{"a":1}},"isError":true"#,
        r#""result":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]},"isError":0"#,
    ] {
        rig.play("H?(c1)");
        let id = rig.question.clone();
        rig.calls();
        rig.host(&format!(
            r#"{{"type":"host_tool_result","id":"{id}",{line}}}"#
        ));
        rig.host(&format!(
            r#"{{"type":"host_tool_result","id":"{id}",{line}}}"#
        ));
        let Command::Reply {
            reply: Ok(reply), ..
        } = rig.call().command
        else {
            panic!("the first answer wins")
        };
        results.push(reply);
        rig.play("H!(answered)");
    }
    let tool = |text: &str, is_error, details: Option<&str>| Reply::Tool {
        content: vec![Block::Text(text.into())],
        is_error,
        details: details.map(|text| RawJson(text.into())),
    };
    assert_eq!(results[0], tool("no", false, None));
    assert_eq!(
        results[1],
        tool("Host tool execution failed", true, Some(r#"{"a":1}"#))
    );
    assert!(matches!(
        &results[2],
        Reply::Tool { content, is_error: false, .. } if matches!(content[0], Block::Media { .. })
    ));
}

#[test]
fn omp_11_a_name_of_the_agents_own_is_taken() {
    let mut rig = Rig::new();
    let line = |name: &str| {
        format!(
            r#"{{"id":"t","type":"set_host_tools","tools":[{{"name":"{name}","description":"d","parameters":{{}}}}]}}"#
        )
    };
    let refused = rig.query(&line("bash"));
    assert_eq!(
        refused["error"],
        "RPC host tool \"bash\" conflicts with an existing tool"
    );
    let taken = rig.query(&line("mine"));
    assert_eq!(taken["data"], json!({"toolNames":["mine"]}));
    let mut with_it = info();
    with_it.tools.push("mine".into());
    rig.event(What::Changed(Box::new(with_it)));
    assert_eq!(
        rig.query(&line("mine"))["success"],
        true,
        "the host's own set is replaced"
    );
}

#[test]
fn omp_12_what_a_uri_failed_with() {
    for (line, expected) in [
        (r#""isError":true,"error":"gone","content":"x""#, "gone"),
        (r#""isError":true,"error":"","content":"x""#, "x"),
        (
            r#""isError":true"#,
            "Host URI read failed for db://users/42",
        ),
    ] {
        let mut rig = Rig::new();
        rig.play("«p1:prompt» open(p1) calls(c1) t+(c1) U?(c1)");
        let id = rig.question.clone();
        rig.calls();
        rig.host(&format!(
            r#"{{"type":"host_uri_result","id":"{id}",{line}}}"#
        ));
        let Command::Reply { reply, .. } = rig.call().command else {
            panic!()
        };
        assert_eq!(reply, Err(ReplyFault::HostError(expected.into())));
    }
}

/// What a dialog looks like, and what its answers say.
#[test]
fn omp_13_dialogs_and_their_answers() {
    let kinds = [
        (ChoiceKind::Select(vec!["a".into(), "b".into()]), "select"),
        (ChoiceKind::Confirm, "confirm"),
        (
            ChoiceKind::Input {
                placeholder: "p".into(),
            },
            "input",
        ),
        (
            ChoiceKind::Editor {
                prefill: "x".into(),
            },
            "editor",
        ),
        (ChoiceKind::Url("https://example.com".into()), "confirm"),
    ];
    for (kind, method) in kinds {
        for (answer, expected) in [
            (r#""value":"b""#, Some("b")),
            (r#""confirmed":false"#, Some("false")),
            (r#""cancelled":true,"timedOut":true"#, None),
            (r#""value":7"#, None),
        ] {
            let mut rig = Rig::new();
            rig.take();
            rig.event(What::Asked {
                ask: AskId(1),
                body: Ask::Choice(Box::new(ChoiceAsk {
                    title: "Which?".into(),
                    kind: kind.clone(),
                    timeout_us: Some(2_500_000),
                })),
            });
            let lines = rig.take();
            let asked = json_of(lines.last().unwrap());
            assert_eq!(asked["method"], method);
            assert_eq!(asked["title"], "Which?");
            if method != "editor" {
                assert_eq!(asked["timeout"], 2500);
            }
            rig.host(&format!(
                r#"{{"type":"extension_ui_response","id":"nobody",{answer}}}"#
            ));
            assert_eq!(rig.calls(), [], "an unknown id is ignored");
            rig.host(&format!(
                r#"{{"type":"extension_ui_response","id":{},{answer}}}"#,
                asked["id"]
            ));
            let Command::Reply { reply, .. } = rig.call().command else {
                panic!()
            };
            assert_eq!(reply, Ok(Reply::Choice(expected.map(Into::into))));
            rig.event(What::AskClosed {
                ask: AskId(1),
                how: AskClose::TimedOut,
            });
            assert_eq!(rig.take(), [""; 0], "no cancel after the host's own answer");
        }
    }
    let form = What::Asked {
        ask: AskId(1),
        body: Ask::Choice(Box::new(ChoiceAsk {
            title: "".into(),
            kind: ChoiceKind::Form(RawJson(
                r#"{"questions":[{"id":"q","question":"?","options":[{"label":"a"}]}]}"#.into(),
            )),
            timeout_us: None,
        })),
    };
    let mut rig = Rig::new();
    rig.take();
    rig.event(form.clone());
    let Command::Reply { reply, .. } = rig.call().command else {
        panic!()
    };
    assert_eq!(reply, Ok(Reply::Choice(None)), "the host shows no forms");
    let mut rig = Rig::new();
    rig.query(r#"{"id":"a","type":"set_ask_dialog","enabled":true}"#);
    rig.take();
    rig.event(form);
    let asked = rig.one();
    assert_eq!(asked["method"], "ask");
    let answers = r#""answers":[{"id":"q","selectedOptions":["a"]}]"#;
    rig.host(&format!(
        r#"{{"type":"extension_ui_response","id":{},{answers}}}"#,
        asked["id"]
    ));
    let Command::Reply { reply, .. } = rig.call().command else {
        panic!()
    };
    assert_eq!(
        reply,
        Ok(Reply::Choice(Some(
            r#"[{"id":"q","selectedOptions":["a"]}]"#.into()
        )))
    );
}

#[test]
fn omp_13_approvals_show_what_is_asked_and_errors_deny() {
    let permission = PermissionAsk {
        call: Some(CallId(1)),
        tool: "bash".into(),
        reason: AskReason::UnapprovedSource {
            path: "/x/tool".into(),
            sha: "0123456789ab".into(),
        },
        summary: "Command: rm -r x".into(),
        detail: "rm -r x".into(),
        body: None,
        suggestions: vec![],
        env: vec!["TOKEN".into()],
        due: Some(60_000_000),
    };
    for (answer, expected) in [
        (r#""value":"Approve""#, Ok(true)),
        (r#""value":"Deny""#, Ok(false)),
        (
            r#""value":"approve""#,
            Err(ReplyFault::Malformed("neither Approve nor Deny".into())),
        ),
        (
            r#""confirmed":true"#,
            Err(ReplyFault::Malformed("neither Approve nor Deny".into())),
        ),
        (r#""cancelled":true"#, Err(ReplyFault::HostCancelled)),
    ] {
        let mut rig = Rig::new();
        rig.take();
        rig.event(What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(permission.clone())),
        });
        let asked = rig.one();
        assert_eq!(
            asked["title"],
            "Allow tool: bash\nCommand: rm -r x\nUnapproved content: /x/tool (0123456789ab)\nEnvironment variable: TOKEN"
        );
        assert_eq!(asked["options"], json!(["Approve", "Deny"]));
        assert_eq!(asked["timeout"], 59_997);
        assert_eq!(asked["id"].as_str().unwrap().len(), 16);
        rig.host(&format!(
            r#"{{"type":"extension_ui_response","id":{},{answer}}}"#,
            asked["id"]
        ));
        let Command::Reply { reply, .. } = rig.call().command else {
            panic!()
        };
        let reply = reply.map(|reply| matches!(reply, Reply::Allow { .. }));
        assert_eq!(reply, expected);
    }
}

#[test]
fn lines_of_the_embedders_own_are_lines_of_the_contract() {
    let mut rig = Rig::new();
    rig.take();
    let extra = |line: &str| OmpExtra {
        kind: json_of(line)["type"].as_str().unwrap().into(),
        line: RawJson(line.into()),
    };
    let dialog = r#"{"type":"extension_ui_request","id":"mine","method":"input","title":"Code?"}"#;
    for (line, passes) in [
        (dialog, true),
        (r#"{"type":"btw_delta","recordId":"r","delta":"d"}"#, true),
        (r#"{"type":"todo_auto_clear"}"#, true),
        (
            r#"{"id":"x","type":"response","command":"a","success":true}"#,
            false,
        ),
        (r#"{"type":"from_the_future"}"#, false),
    ] {
        rig.server.handle_extra(extra(line), rig.now);
        rig.drain();
        assert_eq!(rig.take().len(), usize::from(passes), "{line}");
    }
    rig.host(r#"{"type":"extension_ui_response","id":"mine","value":"42"}"#);
    let (id, ask) = rig.asked();
    let OmpAsk::Ui(line) = ask else { panic!() };
    assert_eq!(json_of(line.as_str())["value"], "42");
    rig.settle(id, OmpOutcome::Default);
    rig.host(r#"{"type":"extension_ui_response","id":"mine","value":"43"}"#);
    assert_eq!(rig.outputs, [], "the first answer wins");
}
