//! Neutral commands as lines of omp, and the agent's answers as replies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_client_kit;

use omp_client_kit::{Program, Rig, assistant};
use serde_json::{Value, json};
use turnwire::protocol::omp::wire::{Command as Line, GetSessionStats};
use turnwire::protocol::omp::{ClientConfig, OmpAsk, Subagents};
use turnwire::vocab::*;

/// The line that a command becomes, and its name.
fn line(rig: &mut Rig, command: Command) -> (CommandId, String) {
    rig.writes();
    let id = rig.command(command);
    let mut lines = rig.writes();
    assert_eq!(lines.len(), 1, "{lines:?}");
    (id, lines.remove(0))
}

fn set(setting: Setting) -> Command {
    Command::Set(setting)
}

/// OMP-02: each command has an id, and the response of that id is its reply.
#[test]
fn omp_02_settings_are_lines_with_ids() {
    let mut rig = Rig::opened(Program::G2);
    let rows: Vec<(Setting, &str)> = vec![
        (
            Setting::Thinking(Some("high".into())),
            r#""type":"set_thinking_level","level":"high""#,
        ),
        (
            Setting::Model(Some("a/b/c".into())),
            r#""type":"set_model","provider":"a","modelId":"b/c""#,
        ),
        (
            Setting::Model(Some("b".into())),
            r#""type":"set_model","provider":"a","modelId":"b""#,
        ),
        (
            Setting::SteerDrain(Drain::All),
            r#""type":"set_steering_mode","mode":"all""#,
        ),
        (
            Setting::FollowUpDrain(Drain::One),
            r#""type":"set_follow_up_mode","mode":"one-at-a-time""#,
        ),
        (
            Setting::Interrupting(Interrupting::Wait),
            r#""type":"set_interrupt_mode","mode":"wait""#,
        ),
        (
            Setting::AutoRetry(false),
            r#""type":"set_auto_retry","enabled":false"#,
        ),
        (
            Setting::AutoCompact(false),
            r#""type":"set_auto_compaction","enabled":false"#,
        ),
        (
            Setting::Name("é \"n\"".into()),
            r#""type":"set_session_name","name":"é \"n\"""#,
        ),
    ];
    for (setting, expected) in rows {
        let (id, written) = line(&mut rig, set(setting));
        assert_eq!(written, format!("{{\"id\":\"c{}\",{expected}}}", id.0));
        let name = serde_json::from_str::<Value>(&written).unwrap()["type"].clone();
        rig.ok(id, name.as_str().unwrap(), None);
        assert_eq!(rig.replied(id), Some(Ok(Answer::Done)));
        assert!(
            rig.events()
                .ends_with("R(1,Done) Changed".replace('1', &id.0.to_string()).as_str())
        );
    }
    for setting in [
        Setting::Thinking(None),
        Setting::Model(None),
        Setting::ThinkingBudget(Some(1)),
        Setting::Approvals(ApprovalMode::Auto),
    ] {
        let id = rig.command(set(setting));
        assert!(matches!(
            rig.replied(id),
            Some(Err(Refusal::Unsupported(_)))
        ));
    }
    assert_eq!(rig.writes(), [] as [String; 0]);
}

#[test]
fn omp_02_failures_are_refusals() {
    let mut rig = Rig::opened(Program::G2);
    let (id, _) = line(&mut rig, set(Setting::Model(Some("x/y".into()))));
    rig.fails(id, "set_model", "Model not found: x/y");
    let Some(Err(Refusal::Failed(failure))) = rig.replied(id) else {
        panic!("{:?}", rig.replied(id));
    };
    assert_eq!(&*failure.text, "Model not found: x/y");
    // An old program echoes no id of a command that it doesn't know.
    let (id, written) = line(&mut rig, Command::Goal(GoalCommand::Get));
    assert_eq!(written, r#"{"id":"c2","type":"goal","op":"get"}"#);
    rig.agent(
        r#"{"type":"response","command":"goal","success":false,"error":"Unknown command: goal"}"#,
    );
    assert_eq!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported("this command")))
    );
    assert_eq!(rig.findings(), [] as [String; 0]);
}

#[test]
fn omp_01_the_start_asks_for_what_the_client_needs() {
    let mut rig = Rig::new(ClientConfig {
        subagents: Subagents::Events,
        ..ClientConfig::default()
    });
    rig.answers.program = Program::G3;
    let early = rig.user("hi");
    assert_eq!(rig.writes(), [] as [String; 0]);
    rig.agent(omp_client_kit::READY);
    assert_eq!(
        rig.writes(),
        [
            r#"{"id":"i1","type":"negotiate_protocol","protocolVersion":2}"#,
            r#"{"id":"i2","type":"set_event_filter","events":null,"messageUpdates":"delta"}"#,
            r#"{"id":"i3","type":"set_subagent_subscription","level":"events"}"#,
            r#"{"id":"i4","type":"get_state"}"#,
            r#"{"id":"c1","type":"prompt","message":"hi"}"#,
        ]
    );
    rig.ok(early, "prompt", None);
    assert!(rig.events().starts_with("Opened(s1) R(1,Started)"));

    let mut plain = Rig::new(ClientConfig {
        chunks: false,
        deltas: false,
        subagents: Subagents::Off,
        ..ClientConfig::default()
    });
    plain.agent(omp_client_kit::READY);
    assert_eq!(plain.writes(), [r#"{"id":"i1","type":"get_state"}"#]);
}

/// OMP-09: other limits than ours aren't negotiated.
#[test]
fn omp_09_only_known_limits_are_negotiated() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.agent(r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":2097152,"maxReassembledFrameBytes":67108864}"#);
    assert!(!rig.writes().iter().any(|line| line.contains("negotiate")));
    rig.agent(r#"{"type":"rpc_chunk","chunkId":"a","index":0,"count":2,"byteLength":1048576,"data":"e30="}"#);
    assert_eq!(rig.findings().len(), 1);
}

#[test]
fn omp_10_the_history_of_a_session_is_told() {
    let mut rig = Rig::new(ClientConfig::default());
    rig.answers.answers = false;
    rig.agent(omp_client_kit::READY);
    let mut state = rig.answers.state(7);
    state["messageCount"] = json!(3);
    rig.agent(
        &json!({"id":"i4","type":"response","command":"get_state","success":true,"data":state})
            .to_string(),
    );
    assert_eq!(
        rig.writes().last().unwrap(),
        r#"{"id":"i5","type":"get_messages"}"#
    );
    let call = json!({"type":"toolCall","id":"t","name":"bash","arguments":{"command":"ls"}});
    let messages = json!([
        {"role":"user","content":"hi","timestamp":5},
        assistant(json!([{"type":"text","text":"So."}, call]), "toolUse"),
        {"role":"toolResult","toolCallId":"t","toolName":"bash","content":[{"type":"text","text":"a"}],"isError":false},
    ]);
    rig.agent(&json!({"id":"i5","type":"response","command":"get_messages","success":true,"data":{"messages":messages}}).to_string());
    let info = rig.find(|what| match what {
        What::Opened(info) => Some(info.clone()),
        _ => None,
    });
    assert!(info.continued);
    let roles: Vec<&Role> = info.history.iter().map(|message| &message.role).collect();
    let called: Vec<CallId> = info.history[1].calls().collect();
    assert_eq!(
        roles,
        [
            &Role::User,
            &Role::Assistant,
            &Role::Tool {
                call: called[0],
                name: "bash".into(),
                error: false
            }
        ]
    );
    assert_eq!(info.history[0].at_ms, 5);
}

#[test]
fn omp_05_prompts_say_what_becomes_of_them_in_a_run() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("one");
    rig.writes();
    let steer = Deliver::Steer {
        idle: IdleSteer::Start,
    };
    let rows = [
        (
            steer.clone(),
            r#""message":"p","streamingBehavior":"steer""#,
        ),
        (
            Deliver::FollowUp,
            r#""message":"p","streamingBehavior":"followUp""#,
        ),
        (
            Deliver::Queue(Rank::Next),
            r#""message":"p","streamingBehavior":"followUp""#,
        ),
        (Deliver::IfIdle, r#""message":"p""#),
    ];
    for (deliver, expected) in rows {
        let id = rig.prompt("p", deliver);
        assert_eq!(
            rig.writes(),
            [format!(
                "{{\"id\":\"c{}\",\"type\":\"prompt\",{expected}}}",
                id.0
            )]
        );
    }
    let id = rig.prompt("p", Deliver::Preempt);
    assert_eq!(
        rig.writes(),
        [format!(
            "{{\"id\":\"c{}\",\"type\":\"abort_and_prompt\",\"message\":\"p\"}}",
            id.0
        )]
    );
    let id = rig.prompt("p", Deliver::Context);
    assert!(matches!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));

    let mut idle = Rig::opened(Program::G2);
    let dropped = idle.prompt(
        "p",
        Deliver::Steer {
            idle: IdleSteer::Drop,
        },
    );
    assert_eq!(idle.writes(), [] as [String; 0]);
    assert_eq!(
        idle.replied(dropped),
        Some(Ok(Answer::Admitted(Admitted::Queued(Lane::Steer))))
    );
    idle.prompt("p", steer);
    assert_eq!(
        idle.writes(),
        [r#"{"id":"c2","type":"prompt","message":"p"}"#]
    );
}

#[test]
fn omp_05_pictures_go_beside_the_text() {
    let mut rig = Rig::opened(Program::G2);
    let content = vec![
        Block::Text("see ".into()),
        Block::Media {
            kind: MediaKind::Image,
            source: Source::Inline {
                mime: "image/png".into(),
                base64: "AAAA".into(),
            },
        },
    ];
    let mut told = omp_client_kit::prompt(PromptId(1), "", Deliver::IfIdle);
    told.content = content;
    rig.command(Command::Prompt(told));
    assert_eq!(
        rig.writes(),
        [
            r#"{"id":"c1","type":"prompt","message":"see ","images":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#
        ]
    );
    let mut told = omp_client_kit::prompt(PromptId(2), "", Deliver::IfIdle);
    told.content = vec![Block::Media {
        kind: MediaKind::Image,
        source: Source::Url("https://x".into()),
    }];
    let id = rig.command(Command::Prompt(told));
    assert!(matches!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));
    let id = rig.command(Command::Prompt(omp_client_kit::prompt(
        PromptId(1),
        "again",
        Deliver::IfIdle,
    )));
    assert_eq!(
        rig.replied(id),
        Some(Ok(Answer::Admitted(Admitted::Duplicate)))
    );
}

#[test]
fn omp_07_cancels_by_what_they_stop_and_by_generation() {
    let cancel = |what| Command::Cancel {
        what,
        why: CancelWhy::Host,
    };
    let turn = |queue| CancelWhat::Turn { queue };
    let rows: Vec<(Program, CancelWhat, &[&str])> = vec![
        (Program::G2, turn(QueueFate::Keep), &["abort"]),
        (Program::G2, turn(QueueFate::Drop), &["abort"]),
        (
            Program::G3,
            turn(QueueFate::Drop),
            &["abort_and_restore_queue"],
        ),
        (
            Program::G3,
            CancelWhat::Everything,
            &["abort_and_restore_queue", "abort_bash"],
        ),
        (Program::G2, CancelWhat::Compaction, &["abort"]),
        (Program::G2, CancelWhat::TurnElseNextQueued, &["abort"]),
        (Program::G2, CancelWhat::Retry, &["abort_retry"]),
        (Program::G2, CancelWhat::Shell, &["abort_bash"]),
    ];
    for (program, what, expected) in rows {
        let mut rig = Rig::opened(program);
        let id = rig.command(cancel(what));
        let written: Vec<String> = rig
            .writes()
            .iter()
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["type"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(written, expected);
        rig.ok(id, expected[0], None);
        assert!(matches!(
            rig.replied(id),
            Some(Ok(Answer::Cancelling {
                hit: Hit::Nothing,
                ..
            }))
        ));
    }
    let mut rig = Rig::opened(Program::G2);
    let id = rig.command(cancel(CancelWhat::Job(JobId(1))));
    assert!(matches!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));
    // A signal goes to the process.
    rig.begin("hi");
    rig.forget();
    let id = rig.command(Command::Cancel {
        what: turn(QueueFate::Drop),
        why: CancelWhy::Signal(Signal::Terminate),
    });
    assert!(matches!(
        rig.replied(id),
        Some(Ok(Answer::Cancelling {
            hit: Hit::Turn(_),
            ..
        }))
    ));
    assert_eq!(rig.writes(), [] as [String; 0]);
    rig.end();
    assert_eq!(
        rig.events(),
        "Terminate R(3,Cancelling(Turn)) S- T-(Cancelled) P-(2,Cancelled) Set Closed(Signal) Gone"
    );
}

#[test]
fn omp_06_queues_are_changed_by_text_where_the_program_can() {
    let mut old = Rig::opened(Program::G2);
    let id = old.command(Command::Withdraw(PromptId(1)));
    assert!(matches!(
        old.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));

    let mut rig = Rig::opened(Program::G3);
    rig.begin("one");
    for (number, text) in [(2, "two"), (3, "three"), (4, "four")] {
        let id = rig.command(Command::Prompt(omp_client_kit::prompt(
            PromptId(number),
            text,
            Deliver::FollowUp,
        )));
        rig.ok(id, "prompt", None);
    }
    let (id, written) = line(&mut rig, Command::Withdraw(PromptId(2)));
    assert_eq!(
        written,
        r#"{"id":"c5","type":"remove_queued_message","message":"two","queue":"followUp"}"#
    );
    rig.forget();
    rig.ok(id, "remove_queued_message", Some(json!({"removed":true})));
    assert_eq!(rig.events(), "R(5,Withdrawn) P-(2,Withdrawn)");
    let (id, written) = line(&mut rig, Command::Promote(PromptId(3)));
    assert_eq!(
        written,
        r#"{"id":"c6","type":"promote_queued_message","message":"three"}"#
    );
    rig.ok(id, "promote_queued_message", Some(json!({"promoted":true})));
    assert_eq!(rig.events(), "R(6,Done) Q(3,Steer)");
    let id = rig.cancel(QueueFate::Drop);
    rig.reply_opens();
    rig.event(
        "message_end",
        json!({"message":assistant(json!([]), "aborted")}),
    );
    rig.event("turn_end", json!({"message":{},"toolResults":[]}));
    rig.agent_end();
    rig.ok(
        id,
        "abort_and_restore_queue",
        Some(json!({"steering":[{"text":"three"}],"followUp":[{"text":"four"}]})),
    );
    let events = rig.events();
    assert!(
        events.ends_with("S- T-(Cancelled) P-(1,Cancelled) P-(3,Dropped) P-(4,Dropped)"),
        "{events}"
    );
}

#[test]
fn omp_04_a_shell_is_answered_at_its_end() {
    let mut rig = Rig::opened(Program::G2);
    let (id, written) = line(
        &mut rig,
        Command::Shell {
            command: "ls".into(),
        },
    );
    assert_eq!(written, r#"{"id":"c1","type":"bash","command":"ls"}"#);
    rig.ok(id, "bash", Some(json!({"exitCode":-1,"cancelled":false,"output":"o","truncated":true,"totalLines":1,"totalBytes":1,"outputLines":1,"outputBytes":1})));
    assert_eq!(
        rig.replied(id),
        Some(Ok(Answer::Shell {
            output: "o".into(),
            exit: Some(-1),
            cancelled: false,
            timed_out: false,
            truncated: true,
            show: None
        }))
    );
}

#[test]
fn omp_04_a_compaction_is_its_response() {
    let mut rig = Rig::opened(Program::G2);
    let (id, written) = line(
        &mut rig,
        Command::Compact {
            instructions: Some("keep".into()),
        },
    );
    assert_eq!(
        written,
        r#"{"id":"c1","type":"compact","customInstructions":"keep"}"#
    );
    rig.ok(
        id,
        "compact",
        Some(json!({"summary":"s","firstKeptEntryId":"a","tokensBefore":9})),
    );
    let result = rig.find(|what| match what {
        What::CompactionEnded { result } => Some(result.clone()),
        _ => None,
    });
    assert_eq!(result.unwrap().summary.as_deref(), Some("s"));
    assert_eq!(rig.events(), "R(1,Done) C+ C-");
    let (id, _) = line(&mut rig, Command::Compact { instructions: None });
    rig.fails(id, "compact", "Nothing to compact (session too small)");
    let result = rig.find(|what| match what {
        What::CompactionEnded { result } => Some(result.clone()),
        _ => None,
    });
    assert_eq!(
        result,
        Err(CompactionFault::Nothing(
            "Nothing to compact (session too small)".into()
        ))
    );
}

#[test]
fn omp_15_goals() {
    let mut rig = Rig::opened(Program::G3);
    let (id, written) = line(
        &mut rig,
        Command::Goal(GoalCommand::Set {
            text: "win".into(),
            auto_turns: None,
            token_budget: Some(100),
        }),
    );
    assert_eq!(
        written,
        r#"{"id":"c1","type":"goal","op":"create","objective":"win","token_budget":100}"#
    );
    let goal = json!({"id":"g","objective":"win","status":"active","tokenBudget":100,"tokensUsed":4,"timeUsedSeconds":0,"createdAt":1,"updatedAt":1});
    rig.ok(id, "goal", Some(json!({"goal":goal,"state":null})));
    assert_eq!(
        rig.replied(id),
        Some(Ok(Answer::Goal(Some(Goal {
            text: "win".into(),
            status: GoalStatus::Active,
            turns_left: None,
            token_budget: Some(100),
            tokens_used: 4
        }))))
    );
    rig.event("goal_updated", json!({"goal":null}));
    assert!(rig.events().ends_with("Goal"));
}

#[test]
fn omp_19_changes_of_session_hold_what_comes_behind_them() {
    let mut rig = Rig::opened(Program::G3);
    let rows: Vec<(SessionCommand, &str, Value)> = vec![
        (
            SessionCommand::New {
                parent: Some("p".into()),
            },
            r#""type":"new_session","parentSession":"p""#,
            json!({"cancelled":false}),
        ),
        (
            SessionCommand::Open("d".into()),
            r#""type":"open_session","sessionDir":"d""#,
            json!({"cancelled":false,"resumed":true,"sessionId":"x"}),
        ),
        (
            SessionCommand::Switch("f".into()),
            r#""type":"switch_session","sessionPath":"f""#,
            json!({"cancelled":false}),
        ),
        (
            SessionCommand::Branch("e".into()),
            r#""type":"branch","entryId":"e""#,
            json!({"text":"t","cancelled":false}),
        ),
        (
            SessionCommand::Fork(None),
            r#""type":"fork""#,
            json!({"cancelled":false}),
        ),
    ];
    for (what, expected, data) in rows {
        let (id, written) = line(&mut rig, Command::Session(what));
        assert_eq!(written, format!("{{\"id\":\"c{}\",{expected}}}", id.0));
        let behind = rig.command(Command::Barrier);
        assert_eq!(rig.writes(), [] as [String; 0]);
        rig.forget();
        let name = expected.split('"').nth(3).unwrap();
        rig.ok(id, name, Some(data));
        assert!(rig.events().starts_with("Opened("));
        let written = rig.writes();
        assert!(
            written
                .last()
                .unwrap()
                .contains(&format!("\"c{}\"", behind.0)),
            "{written:?}"
        );
        let state = rig.answers.state(9);
        rig.ok(behind, "get_state", Some(state));
    }
    // Vetoed: nothing changes.
    let (id, _) = line(
        &mut rig,
        Command::Session(SessionCommand::New { parent: None }),
    );
    rig.forget();
    rig.ok(id, "new_session", Some(json!({"cancelled":true})));
    assert_eq!(
        rig.replied(id),
        Some(Ok(Answer::Session {
            vetoed: true,
            text: None
        }))
    );
    assert_eq!(rig.writes(), [] as [String; 0]);
}

#[test]
fn omp_11_12_offers() {
    let mut rig = Rig::opened(Program::G2);
    let tool = ToolSpec {
        name: "look".into(),
        label: None,
        description: "Looks".into(),
        schema: RawJson(r#"{"type":"object"}"#.into()),
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Host,
    };
    let (id, written) = line(&mut rig, Command::Offer(Offer::Tools(vec![tool])));
    assert_eq!(
        written,
        r#"{"id":"c1","type":"set_host_tools","tools":[{"name":"look","description":"Looks","parameters":{"type":"object"},"loadMode":"essential"}]}"#
    );
    rig.ok(id, "set_host_tools", Some(json!({"toolNames":["look"]})));
    assert_eq!(rig.replied(id), Some(Ok(Answer::Done)));
    let uri = UriSpec {
        scheme: "db".into(),
        description: Some("rows".into()),
        writable: true,
        immutable: false,
    };
    let (_, written) = line(&mut rig, Command::Offer(Offer::Uris(vec![uri])));
    assert_eq!(
        written,
        r#"{"id":"c2","type":"set_host_uri_schemes","schemes":[{"scheme":"db","description":"rows","writable":true,"immutable":false}]}"#
    );
    let id = rig.command(Command::Offer(Offer::Hooks(vec![])));
    assert!(matches!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));
}

/// Commands that only this protocol has are the agent's to answer, all of them.
#[test]
fn omp_08_requests_of_the_protocol_s_own() {
    let mut rig = Rig::opened(Program::G3);
    let asks = [
        (
            OmpAsk::Models,
            r#""type":"get_available_models""#,
            json!({"models":[{"id":"m","provider":"p"}]}),
            Some(r#"[{"id":"m","provider":"p"}]"#),
        ),
        (
            OmpAsk::Tree,
            r#""type":"get_tree""#,
            json!({"leafId":null,"tree":[]}),
            Some(r#"{"leafId":null,"tree":[]}"#),
        ),
        (
            OmpAsk::Handoff { instructions: None },
            r#""type":"handoff""#,
            json!(null),
            Some("null"),
        ),
        (
            OmpAsk::FastMode(true),
            r#""type":"set_fast_mode","enabled":true"#,
            json!({"active":true,"enabled":true}),
            Some(r#"{"active":true,"enabled":true}"#),
        ),
        (
            OmpAsk::PredictWord {
                text: "a".into(),
                cursor: 1,
            },
            r#""type":"predict_word","text":"a","cursor":1"#,
            json!({"suffix":null}),
            Some(r#"{"suffix":null}"#),
        ),
        (
            OmpAsk::Todos(RawJson(r#"[{"name":"n","tasks":[]}]"#.into())),
            r#""type":"set_todos","phases":[{"name":"n","tasks":[]}]"#,
            json!({"todoPhases":[]}),
            Some("[]"),
        ),
        (
            OmpAsk::Logout {
                provider: "p".into(),
                credential: Some(RawJson("3".into())),
            },
            r#""type":"logout","providerId":"p","credentialId":3"#,
            json!({}),
            Some("{}"),
        ),
    ];
    for (ask, expected, data, answer) in asks {
        rig.writes();
        let id = rig.request(&ask);
        let written = rig.writes();
        assert_eq!(written, [format!("{{\"id\":\"c{}\",{expected}}}", id.0)]);
        let name = expected.split('"').nth(3).unwrap();
        rig.ok(id, name, Some(data));
        let answer = answer.map_or(Answer::Done, |text| Answer::Raw(RawJson(text.into())));
        assert_eq!(rig.replied(id), Some(Ok(answer)));
    }
    let id = rig.request(&OmpAsk::Ui(RawJson("{}".into())));
    assert!(matches!(
        rig.replied(id),
        Some(Err(Refusal::Unsupported(_)))
    ));
    rig.writes();
    let id = rig.send(&Line::from(GetSessionStats::default()));
    assert_eq!(
        rig.writes(),
        [format!(
            "{{\"id\":\"c{}\",\"type\":\"get_session_stats\"}}",
            id.0
        )]
    );
    rig.fails(id, "get_session_stats", "no");
    assert!(matches!(rig.replied(id), Some(Err(Refusal::Failed(_)))));
}

#[test]
fn omp_18_closing_waits_for_what_runs_if_asked_to() {
    let mut rig = Rig::opened(Program::G2);
    let prompt = rig.begin("hi");
    rig.command(Command::Close { drain: true });
    let late = rig.user("late");
    assert_eq!(rig.replied(late), Some(Err(Refusal::Closing)));
    rig.reply(&["a"], "stop");
    rig.run_ends(&[prompt], "completed");
    rig.end();
    assert!(
        rig.events()
            .ends_with("Set CloseInput Closed(Drained) Gone")
    );

    let mut idle = Rig::opened(Program::G2);
    idle.command(Command::Close { drain: true });
    idle.end();
    assert_eq!(idle.events(), "R(1,Done) CloseInput Closed(Drained) Gone");

    let mut now = Rig::opened(Program::G2);
    now.begin("hi");
    now.forget();
    now.command(Command::Close { drain: false });
    now.end();
    assert_eq!(
        now.events(),
        "R(2,Done) CloseInput S- T-(Cancelled) P-(1,Cancelled) Set Closed(HostGone) Gone"
    );
}

#[test]
fn an_agent_that_dies_fails_its_turn() {
    let mut rig = Rig::opened(Program::G2);
    rig.begin("hi");
    let waits = rig.command(Command::Barrier);
    rig.reply_opens();
    rig.update("text_delta", 0, ("delta", json!("half")));
    rig.forget();
    rig.end();
    assert!(matches!(rig.replied(waits), Some(Err(Refusal::Failed(_)))));
    assert_eq!(
        rig.events(),
        "m-(NotSaid) Rq-(Failed) S- T-(Failed) P-(1,Failed) R(2,Err(Failed)) Set Closed(Fault) Gone"
    );
}

#[test]
fn an_agent_that_never_begins_refuses_everything() {
    let mut rig = Rig::new(ClientConfig::default());
    let id = rig.user("hi");
    rig.end();
    assert!(matches!(rig.replied(id), Some(Err(Refusal::Failed(_)))));
    assert_eq!(rig.events(), "R(1,Err(Failed)) Closed(Fault) Gone");
}
