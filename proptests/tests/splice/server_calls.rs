//! The Server: calls, secrets and stages.

use serde_json::{Value, json};
use turnwire::redact::Secrets;
use turnwire::vocab::*;

use crate::kit::*;

#[test]
fn sp_06_sp_07_sp_09_a_call_with_its_checkpoint_its_decision_and_its_result() {
    let mut rig = Rig::new(|_| {});
    let verdict = |allow, by| Verdict {
        allow,
        by,
        input: None,
        reason: None,
        risk: None,
        block: None,
    };
    rig.started()
        .say(tool(
            1,
            "write_file",
            SideEffect::Write,
            r#"{"path":"a.rs","content":"<x>"}"#,
            ToolCause::Agent,
        ))
        .say(What::Checkpoint {
            checkpoint: CheckpointId(6),
            call: CallId(1),
            files: vec!["a.rs".into()],
        })
        .say(What::Decided {
            call: CallId(1),
            verdict: verdict(true, Decider::Mode),
        })
        .say(ended(1, ToolOutcome::Ok, "Created.", &["a.rs"]))
        // A reading tool needs nobody's word.
        .say(tool(
            2,
            "read_file",
            SideEffect::Read,
            "{}",
            ToolCause::Agent,
        ))
        .say(What::Decided {
            call: CallId(2),
            verdict: verdict(true, Decider::Mode),
        })
        .say(ended(2, ToolOutcome::Ok, "", &[]))
        // Calls within calls.
        .say(tool(
            3,
            "splice.test",
            SideEffect::Unknown,
            "{}",
            ToolCause::Agent,
        ))
        .say(tool(
            4,
            "bash",
            SideEffect::Shell,
            r#"{"command":"x"}"#,
            ToolCause::Tool(CallId(3)),
        ))
        .say(What::Decided {
            call: CallId(4),
            verdict: verdict(false, Decider::Rule("Bash(rm:*)".into())),
        })
        .say(ended(4, ToolOutcome::Denied(Decider::Mode), "no", &[]))
        .say(ended(3, ToolOutcome::Failed, "no", &[]))
        .ended(finished())
        .closed();
    assert_eq!(
        rig.shown()[1..],
        [
            "tool_call write_file",
            "checkpoint",
            "permission_decision write_file allow",
            "tool_result ok write_file",
            "tool_call read_file",
            "tool_result ok read_file",
            "tool_call splice.test",
            "tool_call bash",
            "permission_decision bash deny",
            "tool_result error bash",
            "tool_result error splice.test",
            "final",
            "run_end success",
        ]
    );
    assert_eq!(
        rig.lines[1].replace(
            &rig.lines[1][rig.lines[1].find("\"runId\"").unwrap()
                ..rig.lines[1].find("\"schemaVersion\"").unwrap()],
            ""
        ),
        r#"{"args":{"content":"\u003cx\u003e","path":"a.rs"},"id":"call-1","name":"write_file","schemaVersion":2,"sideEffect":"write","type":"tool_call"}"#
    );
    let result: Value = serde_json::from_str(&rig.lines[4]).unwrap();
    assert_eq!(result["changedFiles"], json!(["a.rs"]));
    assert_eq!(
        result["display"],
        json!({"kind": "file", "summary": "Created a.rs"})
    );
    assert_eq!(result["meta"], json!({"api_key": "[REDACTED]", "z": "1"}));
    let empty: Value = serde_json::from_str(&rig.lines[6]).unwrap();
    assert_eq!(
        (empty.get("output"), empty.get("changedFiles")),
        (None, None)
    );
    let denied: Value = serde_json::from_str(&rig.lines[9]).unwrap();
    assert_eq!(denied["block"]["code"], "denied");
    assert_eq!(denied["permissionGranted"], false);
    rig.assert_lawful();
}

#[test]
fn sp_07_nobody_is_there_to_ask() {
    let mut rig = Rig::new(|_| {});
    rig.started()
        .say(tool(
            1,
            "bash",
            SideEffect::Shell,
            r#"{"command":"x"}"#,
            ToolCause::Agent,
        ))
        .say(What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(PermissionAsk {
                call: Some(CallId(1)),
                tool: "bash".into(),
                reason: AskReason::Gate,
                summary: "Runs x".into(),
                detail: "x".into(),
                body: None,
                suggestions: vec![],
                env: vec![],
                due: None,
            })),
        });
    assert!(matches!(
        rig.calls.last().unwrap().command,
        Command::Reply {
            ask: AskId(1),
            reply: Err(ReplyFault::HostGone)
        }
    ));
    rig.say(What::Decided {
        call: CallId(1),
        verdict: Verdict {
            allow: false,
            by: Decider::Closed,
            input: None,
            reason: None,
            risk: None,
            block: None,
        },
    })
    .say(ended(
        1,
        ToolOutcome::Denied(Decider::Closed),
        "denied",
        &[],
    ))
    .ended(finished())
    .closed();
    assert_eq!(
        rig.shown()[1..],
        [
            "tool_call bash",
            "permission_request bash prompt",
            "tool_result error bash",
            "final",
            "run_end success",
        ]
    );
    rig.assert_lawful();
}

#[test]
fn sp_12_sp_a07_secrets_stay_out_of_every_line() {
    let secret = "sk-proj-abcdefghijklmnopqrstuv";
    let mut rig = Rig::new(|config| config.secrets = Secrets::new(["hunter2-hunter2"]));
    rig.started();
    let pieces = |text: &'static str| {
        text.as_bytes()
            .chunks(3)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
    };
    rig.say(What::BlockStarted {
        message: MessageId(1),
        block: 0,
        head: BlockHead::Text,
    });
    for piece in pieces("the key is sk-proj-abcdefghijklmnopqrstuv, and hunter2-hunter2") {
        rig.say(What::Delta {
            message: MessageId(1),
            block: 0,
            kind: Kind::Text,
            text: piece.as_str().into(),
        });
    }
    rig.say(What::BlockStarted {
        message: MessageId(1),
        block: 1,
        head: BlockHead::ToolUse {
            call: CallId(1),
            provider_id: Some("call_m1".into()),
            name: "bash".into(),
            runs: true,
        },
    });
    for piece in
        pieces(r#"{"command":"x sk-proj-abcdefghijklmnopqrstuv","password":{"a":"b c d"}}"#)
    {
        rig.say(What::Delta {
            message: MessageId(1),
            block: 1,
            kind: Kind::Input,
            text: piece.as_str().into(),
        });
    }
    rig.say(What::MessageEnded {
        message: std::sync::Arc::new(Message {
            id: MessageId(1),
            role: Role::Assistant,
            content: vec![],
            origin: Origin::Harness,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        }),
        stop: Stop::ToolUse,
        kept: true,
        calls: CallList::Complete,
    })
    .say(tool(
        1,
        "bash",
        SideEffect::Shell,
        r#"{"command":"x sk-proj-abcdefghijklmnopqrstuv","password":{"a":"b c d"}}"#,
        ToolCause::Agent,
    ))
    .say(ended(
        1,
        ToolOutcome::Ok,
        &format!("out: {secret} hunter2-hunter2"),
        &[],
    ))
    .say(What::TurnEnded {
        turn: TurnId(1),
        end: End::Truncated(failure(&format!("bad key {secret}"))),
        answer: Some(TurnAnswer::Text(format!("said {secret}").as_str().into())),
        report: Box::default(),
        pending: Pending::default(),
    })
    .closed();
    let joined = |kind: &str| -> String {
        let of = |line: &String| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["type"] == kind).then(|| line["delta"].as_str().unwrap_or_default().to_owned())
        };
        rig.lines.iter().filter_map(of).collect()
    };
    assert_eq!(joined("text"), "the key is [REDACTED], and [REDACTED]");
    assert_eq!(
        joined("tool_call_delta"),
        r#"{"command":"x [REDACTED]","password":"[REDACTED]"}"#
    );
    let all = rig.lines.join("\n");
    assert!(
        !all.contains("abcdefghijklmnop") && !all.contains("hunter2") && !all.contains("b c d"),
        "{all}"
    );
    assert!(all.contains(r#""redacted":true"#));
    rig.assert_lawful();
}

#[test]
fn sp_05_sp_08_sp_10_sp_11_sp_14_a_pipeline_s_run() {
    let mut rig = Rig::new(|_| {});
    let run = RunId(1);
    let kind = RunKind::Stage {
        name: "code_writer".into(),
        iteration: 1,
    };
    let usage = Usage {
        input: Some(60),
        cache_read: Some(40),
        cache_write: None,
        output: Some(15),
        reasoning: Some(5),
    };
    let request = |usage, cost| What::RequestEnded {
        request: RequestId(1),
        outcome: RequestOutcome::Complete {
            finish: "stop".into(),
        },
        model: ModelRef {
            provider: Some("mock".into()),
            model: "m1".into(),
        },
        usage,
        cost,
        api_us: 0,
    };
    rig.started()
        .say(What::Notice {
            level: Level::Info,
            code: Some("tier".into()),
            text: "substantial".into(),
        })
        .say(What::RunStarted {
            run,
            kind,
            label: "code_writer".into(),
            call: None,
        })
        .run(
            run,
            What::BlockStarted {
                message: MessageId(1),
                block: 0,
                head: BlockHead::ToolUse {
                    call: CallId(1),
                    provider_id: Some("call_m1".into()),
                    name: "submit_code".into(),
                    runs: false,
                },
            },
        )
        .run(
            run,
            What::Delta {
                message: MessageId(1),
                block: 0,
                kind: Kind::Input,
                text: "{\"files\":[]}".into(),
            },
        )
        .run(
            run,
            request(
                Some(usage),
                Cost::Known {
                    pico_usd: 250_000_000_000,
                    basis: CostBasis::Estimated,
                    source: "table".into(),
                    as_of: "2026-01-01".into(),
                },
            ),
        )
        // Another try keeps the provider's id.
        .run(
            run,
            What::BlockStarted {
                message: MessageId(2),
                block: 0,
                head: BlockHead::ToolUse {
                    call: CallId(2),
                    provider_id: Some("call_m1".into()),
                    name: "submit_code".into(),
                    runs: false,
                },
            },
        )
        .run(run, request(None, Cost::NotSaid))
        .run(
            run,
            tool(
                3,
                "write_file",
                SideEffect::Write,
                r#"{"path":"a.rs"}"#,
                ToolCause::Agent,
            ),
        )
        .run(run, ended(3, ToolOutcome::Ok, "Created.", &["a.rs"]))
        .say(What::RunEnded {
            run,
            status: RunStatus::Completed,
            steps: 1,
            usage: Some(usage),
            detail: "done <ok>".into(),
        })
        .say(What::Notice {
            level: Level::Info,
            code: Some("summary".into()),
            text: "Pipeline completed.".into(),
        })
        .ended(finished())
        .closed();
    let marker = |line: usize| {
        let line: Value = serde_json::from_str(&rig.lines[line]).unwrap();
        line["delta"].as_str().unwrap().to_owned()
    };
    assert_eq!(marker(1), "[code_writer] stage started\n");
    assert_eq!(
        marker(2),
        "\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"code_writer\",\"progress\":0,\"status\":\"running\"}\0"
    );
    let lines: Vec<Value> = rig
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let starts = lines
        .iter()
        .filter(|line| line["type"] == "tool_call_start");
    assert_eq!(
        starts.map(|line| line["id"].clone()).collect::<Vec<_>>(),
        ["call_m1"; 2]
    );
    let usages: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "usage")
        .collect();
    assert_eq!(usages[0]["costUsd"], json!(0.25));
    assert_eq!(usages[0]["costEstimated"], true);
    assert_eq!(
        (
            &usages[0]["promptTokens"],
            &usages[0]["completionTokens"],
            &usages[0]["totalTokens"]
        ),
        (&json!(100), &json!(20), &json!(120))
    );
    assert_eq!(
        (
            &usages[1]["usageSequence"],
            usages[1].get("costUsd"),
            &usages[1]["costStatus"]
        ),
        (&json!(2), None, &json!("unpriced"))
    );
    let count = lines.len();
    assert_eq!(
        marker(count - 4),
        "\0STAGE{\"changedFiles\":[\"a.rs\"],\"detail\":\"done \\u003cok\\u003e\",\"name\":\"code_writer\",\"progress\":100,\"status\":\"completed\"}\0"
    );
    let result: Value = serde_json::from_str(lines[count - 2]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["tier"], "substantial");
    assert_eq!(result["run_id"], "zero_1");
    assert_eq!(result["stages"][0]["tokens_cached"], 40);
    assert_eq!(result["total_cost_usd"], 0.25);
    assert_eq!(result["cost_coverage"], "partial");
    assert_eq!(result.get("abort_reason"), None);
    assert_eq!(rig.exit, Some(0));
    rig.assert_lawful();
}

#[test]
fn sp_14_sp_a03_a_pipeline_whose_stage_failed_is_incomplete() {
    let mut rig = Rig::new(|_| {});
    let run = RunId(1);
    rig.started()
        .say(What::RunStarted {
            run,
            kind: RunKind::Stage {
                name: "code_writer".into(),
                iteration: 1,
            },
            label: "code_writer".into(),
            call: None,
        })
        .say(What::RunEnded {
            run,
            status: RunStatus::Failed,
            steps: 1,
            usage: None,
            detail: "no key".into(),
        })
        .ended(End::Incomplete(failure("stage failed: no key")))
        .closed();
    let lines: Vec<Value> = rig
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rig.lines[4].contains("failed"));
    let result: Value = serde_json::from_str(lines[5]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result["status"], "failed");
    assert_eq!(result["abort_reason"], "stage failed: no key");
    assert_eq!(
        rig.shown()[6..],
        [
            "error stage failed: no key incomplete",
            "run_end incomplete"
        ]
    );
    assert_eq!(rig.exit, Some(4));
    rig.assert_lawful();
}
