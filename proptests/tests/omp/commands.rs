//! Commands of omp one by one: what the agent is asked, and what the host is answered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_kit;
use crate::omp_server_kit;

use std::sync::Arc;

use omp_kit::{Row, recordings};
use omp_server_kit::{Rig, config, info};
use serde_json::{Value, json};
use turnwire::protocol::omp::{Export, OmpAsk, OmpOutcome, ServerConfig};
use turnwire::vocab::*;
use turnwire_proptests::laws::ServerInput;

fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn omp_01_the_first_line_is_ready_and_commands_wait_for_the_session() {
    let rig = Rig::new();
    assert_eq!(
        rig.lines[0],
        r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#
    );
    assert_eq!(
        rig.lines[1],
        r#"{"type":"available_commands_update","commands":[{"name":"help","description":"Helps","source":"builtin"}]}"#
    );
}

#[test]
fn omp_02_every_id_is_echoed_as_it_came() {
    let mut rig = Rig::new();
    for (line, answer) in [
        (
            r#"{"id":7,"type":"abort_retry"}"#,
            r#"{"id":7,"type":"response","command":"abort_retry","success":true}"#,
        ),
        (
            r#"{"type":"abort_retry","id":{"a":[1, 2.50]}}"#,
            r#"{"id":{"a":[1, 2.50]},"type":"response","command":"abort_retry","success":true}"#,
        ),
        (
            r#"{"id":null,"type":"abort_retry"}"#,
            r#"{"id":null,"type":"response","command":"abort_retry","success":true}"#,
        ),
        (
            "\u{feff}  {\"type\":\"abort_retry\"} \r",
            r#"{"type":"response","command":"abort_retry","success":true}"#,
        ),
        (
            r#"{"id":"a","id":"b","type":"abort_retry"}"#,
            r#"{"id":"b","type":"response","command":"abort_retry","success":true}"#,
        ),
    ] {
        rig.take();
        rig.host(line);
        rig.agree();
        assert_eq!(rig.take(), [answer], "{line}");
    }
    rig.take();
    rig.host("   ");
    rig.host("");
    assert_eq!(rig.take(), [""; 0], "a blank line is nothing");
}

/// A response to `abort_and_prompt` has no data that could say that nothing follows, as one to `prompt` has.
#[test]
fn omp_08_an_empty_prompt_that_aborts_fails_and_an_empty_prompt_is_done() {
    for (kind, rest) in [
        ("prompt", r#""success":true,"data":{"agentInvoked":false}"#),
        (
            "abort_and_prompt",
            r#""success":false,"error":"The message is empty""#,
        ),
    ] {
        let mut rig = Rig::new();
        rig.take();
        rig.host(&format!(r#"{{"id":"e","type":"{kind}","message":""}}"#));
        let call = rig.call();
        rig.reply(call.id, Err(Refusal::Empty));
        let answer = format!(r#"{{"id":"e","type":"response","command":"{kind}",{rest}}}"#);
        assert_eq!(rig.take(), [answer]);
    }
}

/// The failures of the recordings that come with a text of the contract are the same here, to the byte.
#[test]
fn omp_08_failures_have_the_recorded_texts() {
    let mut compared = 0;
    for (name, rows) in recordings() {
        if !["15-", "27-", "37-"]
            .iter()
            .any(|number| name.starts_with(number))
        {
            continue;
        }
        let mut rig = Rig::new();
        rig.agree();
        rig.take();
        let mut rows = rows.iter().peekable();
        while let Some(row) = rows.next() {
            let Row::Host(line) = row else { continue };
            let Some(Row::Agent(recorded)) = rows.peek() else {
                continue;
            };
            let expected = json_of(recorded);
            let ours = expected["success"] == false
                && !expected["error"].as_str().unwrap().contains("evaluating")
                && !expected["error"]
                    .as_str()
                    .unwrap()
                    .contains("JSON Parse error");
            if !ours || line.contains("\"prompt\"") || line.contains("fm\"") {
                continue;
            }
            rig.take();
            rig.host(line);
            for call in rig.calls() {
                let refusal = match &call.command {
                    Command::Session(SessionCommand::Switch(_)) => Refusal::Unknown,
                    Command::Session(_) => Refusal::Unsupported("sessions on disk"),
                    Command::Compact { .. } => {
                        rig.reply(call.id, Ok(Answer::Done));
                        rig.event(What::CompactionStarted {
                            trigger: Trigger::Manual,
                            span: None,
                            tokens: None,
                        });
                        rig.event(What::CompactionEnded {
                            result: Err(CompactionFault::Nothing("it is small".into())),
                        });
                        continue;
                    }
                    _ => {
                        rig.reply(call.id, Ok(Answer::Done));
                        continue;
                    }
                };
                rig.reply(call.id, Err(refusal));
            }
            rig.calls();
            assert_eq!(rig.take(), [recorded.as_str()], "{name}: {line}");
            compared += 1;
        }
    }
    assert!(compared >= 28, "{compared}");
}

#[test]
fn omp_02_lines_that_are_no_commands_are_answered() {
    let mut rig = Rig::new();
    for (line, id, command, error) in [
        (
            "{\"id\":\"x\", not json",
            None,
            Some("parse"),
            "Failed to parse command: ",
        ),
        ("null", None, Some("parse"), "Failed to parse command: "),
        (
            r#"{"id":"p0","type":"prompt"}"#,
            Some("p0"),
            Some("prompt"),
            "Invalid command: ",
        ),
        (
            r#"{"id":"n","type":5}"#,
            Some("n"),
            None,
            "Unknown command: 5",
        ),
        (
            r#"{"id":"r","type":"set_host_tools"}"#,
            Some("r"),
            Some("set_host_tools"),
            "Invalid command: ",
        ),
    ] {
        rig.take();
        rig.host(line);
        let answer = rig.one();
        assert_eq!(answer["id"].as_str(), id, "{line}");
        assert_eq!(answer["command"].as_str(), command, "{line}");
        assert_eq!(answer["success"], false);
        assert!(
            answer["error"].as_str().unwrap().starts_with(error),
            "{answer}"
        );
        assert_eq!(rig.calls(), []);
    }
}

#[test]
fn omp_04_queries_wait_for_a_compact_and_shell_commands_dont() {
    let mut rig = Rig::new();
    rig.take();
    rig.host(r#"{"id":"k","type":"compact"}"#);
    let compact = rig.call();
    rig.reply(compact.id, Ok(Answer::Done));
    rig.host(r#"{"id":"g","type":"get_last_assistant_text"}"#);
    rig.host(r#"{"id":"u","type":"no_such"}"#);
    assert_eq!(rig.calls(), [], "the query waits");
    rig.host(r#"{"id":"b","type":"bash","command":"ls"}"#);
    let shell = rig.call();
    assert_eq!(
        shell.command,
        Command::Shell {
            command: "ls".into()
        }
    );
    assert_eq!(rig.take(), [""; 0]);
    rig.reply(
        shell.id,
        Ok(Answer::Shell {
            output: "hello\n".into(),
            exit: Some(3),
            cancelled: false,
            timed_out: false,
            truncated: false,
            show: None,
        }),
    );
    assert_eq!(
        rig.take(),
        [
            r#"{"id":"b","type":"response","command":"bash","success":true,"data":{"exitCode":3,"cancelled":false,"output":"hello\n","truncated":false,"totalLines":2,"totalBytes":6,"outputLines":2,"outputBytes":6}}"#
        ]
    );
    rig.event(What::CompactionEnded {
        result: Ok(Compacted {
            summary: Some("short".into()),
            tokens_before: Some(900),
            ..Compacted::default()
        }),
    });
    rig.agree();
    let answers: Vec<Value> = rig.take().iter().map(|line| json_of(line)).collect();
    let ids: Vec<&str> = answers
        .iter()
        .filter_map(|line| line["id"].as_str())
        .collect();
    assert_eq!(ids, ["k", "g", "u"], "in the order of the input");
    assert_eq!(
        answers[0]["data"],
        json!({"summary":"short","firstKeptEntryId":"","tokensBefore":900})
    );
}

#[test]
fn omp_18_at_the_end_of_input_shell_commands_are_waited_for() {
    let mut rig = Rig::new();
    rig.host(r#"{"id":"b","type":"bash","command":"sleep 1"}"#);
    let shell = rig.call();
    rig.tell(ServerInput::End);
    let cancel = rig.call();
    assert!(matches!(
        cancel.command,
        Command::Cancel {
            what: CancelWhat::Turn {
                queue: QueueFate::Drop
            },
            why: CancelWhy::PeerGone
        }
    ));
    rig.reply(shell.id, Err(Refusal::Busy));
    assert_eq!(rig.call().command, Command::Close { drain: false });
}

#[test]
fn omp_06_settings_reach_the_session_and_bad_words_only_the_state() {
    let mut rig = Rig::new();
    for (line, setting) in [
        (
            r#"{"id":"1","type":"set_steering_mode","mode":"all"}"#,
            Setting::SteerDrain(Drain::All),
        ),
        (
            r#"{"id":"1","type":"set_follow_up_mode","mode":"one-at-a-time"}"#,
            Setting::FollowUpDrain(Drain::One),
        ),
        (
            r#"{"id":"1","type":"set_interrupt_mode","mode":"wait"}"#,
            Setting::Interrupting(Interrupting::Wait),
        ),
        (
            r#"{"id":"1","type":"set_auto_retry","enabled":false}"#,
            Setting::AutoRetry(false),
        ),
        (
            r#"{"id":"1","type":"set_auto_compaction","enabled":true}"#,
            Setting::AutoCompact(true),
        ),
        (
            r#"{"id":"1","type":"set_session_name","name":" n "}"#,
            Setting::Name("n".into()),
        ),
        (
            r#"{"id":"1","type":"set_thinking_level","level":"high"}"#,
            Setting::Thinking(Some("high".into())),
        ),
        (
            r#"{"id":"1","type":"set_thinking_level","level":"off"}"#,
            Setting::Thinking(None),
        ),
    ] {
        rig.take();
        rig.host(line);
        let call = rig.call();
        assert_eq!(call.command, Command::Set(setting), "{line}");
        rig.reply(call.id, Ok(Answer::Done));
        assert_eq!(rig.one()["success"], true);
    }
    rig.query(r#"{"id":"1","type":"set_steering_mode","mode":"sometimes"}"#);
    let state = rig.query(r#"{"id":"g","type":"get_state"}"#);
    assert_eq!(state["data"]["steeringMode"], "sometimes");
    let bad = rig.query(r#"{"id":"1","type":"set_thinking_level","level":"bogus"}"#);
    assert_eq!(bad["success"], false);
    let levels = rig.query(r#"{"id":"1","type":"get_available_thinking_levels"}"#);
    assert_eq!(levels["data"], json!({"levels":["off","low","high"]}));
    let next = rig.query(r#"{"id":"1","type":"cycle_thinking_level"}"#);
    assert_eq!(next["data"], json!({"level":"low"}));
}

/// As the real program does: what changed, then the answer; and nothing twice that the answer says.
#[test]
fn omp_06_the_answer_to_a_setting_stands_behind_what_it_changed() {
    let mut rig = Rig::new();
    let kinds = |rig: &mut Rig| -> Vec<String> {
        let lines = rig.take();
        let kind = |line: &String| json_of(line)["type"].as_str().unwrap().to_owned();
        lines.iter().map(kind).collect()
    };
    let mut now = info();
    let mut set = |rig: &mut Rig, line: &str, change: &dyn Fn(&mut SessionInfo)| {
        kinds(rig);
        rig.host(line);
        let call = rig.call();
        rig.reply(call.id, Ok(Answer::Done));
        assert_eq!(rig.lines, [""; 0], "{line}");
        change(&mut now);
        rig.event(What::Changed(Box::new(now.clone())));
        kinds(rig)
    };
    let level = r#"{"id":"1","type":"set_thinking_level","level":"high"}"#;
    let high = |info: &mut SessionInfo| info.settings.thinking = Some("high".into());
    assert_eq!(
        set(&mut rig, level, &high),
        ["thinking_level_changed", "response"]
    );
    let name = r#"{"id":"2","type":"set_session_name","name":"n"}"#;
    let named = |info: &mut SessionInfo| info.name = Some("n".into());
    assert_eq!(
        set(&mut rig, name, &named),
        ["session_info_update", "response"]
    );
    let retry = r#"{"id":"3","type":"set_auto_retry","enabled":false}"#;
    let off = |info: &mut SessionInfo| info.settings.auto_retry = false;
    assert_eq!(set(&mut rig, retry, &off), ["response"]);
    // Nobody asked for this one.
    let model: ModelRef = ModelRef {
        provider: Some("mock".into()),
        model: "another".into(),
    };
    now.model = model;
    rig.event(What::Changed(Box::new(now)));
    assert_eq!(kinds(&mut rig), ["model_changed", "config_update"]);
}

#[test]
fn an_agent_that_says_nothing_of_a_change_holds_no_answer_up() {
    let mut rig = Rig::new();
    rig.take();
    rig.host(r#"{"id":"1","type":"set_auto_retry","enabled":false}"#);
    let call = rig.call();
    rig.reply(call.id, Ok(Answer::Done));
    assert_eq!(rig.lines, [""; 0]);
    let due = rig.server.poll_timeout().unwrap();
    assert!(due.at_us <= rig.now.mono_us);
    rig.tell(ServerInput::Woken);
    assert_eq!(rig.one()["success"], true);
    assert_eq!(rig.server.poll_timeout(), None);
    // Whatever comes next is behind it, too.
    rig.host(r#"{"id":"2","type":"set_auto_retry","enabled":true}"#);
    let call = rig.call();
    rig.reply(call.id, Ok(Answer::Done));
    rig.event(What::Notice {
        level: Level::Info,
        code: None,
        text: "news".into(),
    });
    let lines = rig.take();
    assert!(
        lines[0].contains("\"response\"") && lines[1].contains("\"notice\""),
        "{lines:?}"
    );
}

#[test]
fn the_state_holds_what_the_model_is_told_now() {
    let mut rig = Rig::new();
    let state = rig.query(r#"{"id":"g","type":"get_state"}"#);
    assert_eq!(state["data"]["systemPrompt"], json!([]));
    assert_eq!(state["data"]["dumpTools"], json!([]));
    let mut info = info();
    info.briefing = Briefing {
        system: Some("Be brief.".into()),
        tools: Arc::from([ToolSpec {
            name: "look".into(),
            label: None,
            description: "Looks.".into(),
            schema: RawJson(r#"{"type":"object"}"#.into()),
            side_effect: SideEffect::None,
            hidden: false,
            uri_arg: None,
            route: Route::Host,
        }]),
    };
    rig.event(What::Changed(Box::new(info)));
    let state = rig.query(r#"{"id":"g","type":"get_state"}"#);
    assert_eq!(state["data"]["systemPrompt"], json!(["Be brief."]));
    assert_eq!(
        state["data"]["dumpTools"],
        json!([{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}])
    );
}

#[test]
fn omp_02_the_state_has_the_members_of_the_recorded_one_in_its_order() {
    let mut rig = Rig::new();
    rig.take();
    rig.host(r#"{"id":"g","type":"get_state"}"#);
    rig.agree();
    let line = rig.take().remove(0);
    let place = |member: &str| {
        line.find(&format!("\"{member}\":"))
            .unwrap_or_else(|| panic!("{member}: {line}"))
    };
    let members = [
        "model",
        "isStreaming",
        "isCompacting",
        "steeringMode",
        "followUpMode",
        "interruptMode",
        "sessionId",
        "autoCompactionEnabled",
        "queuedMessageCount",
        "hasPendingAsyncWork",
        "isSettled",
        "queuedMessages",
        "todoPhases",
        "fastModeEnabled",
        "tokensPerSecond",
        "fastModeActive",
        "messageCount",
        "systemPrompt",
        "dumpTools",
        "goal",
    ];
    assert!(
        members
            .windows(2)
            .all(|pair| place(pair[0]) < place(pair[1])),
        "{line}"
    );
    let data = &json_of(&line)["data"];
    assert_eq!(data["model"]["provider"], "mock");
    assert_eq!(data["isSettled"], true);
    assert_eq!(data["todoPhases"], json!([]));
    assert_eq!(
        (&data["tokensPerSecond"], &data["goal"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(data["steeringMode"], "one-at-a-time");
    assert_eq!(data["interruptMode"], "immediate");
}

#[test]
fn models_are_found_cycled_and_set() {
    let model = |id: &str| {
        RawJson(format!(r#"{{"id":"{id}","provider":"mock","api":"x","extra":1}}"#).into())
    };
    let mut rig = Rig::with(ServerConfig {
        models: vec![model("m-1"), model("m-2")],
        ..config()
    });
    let list = rig.query(r#"{"id":"a","type":"get_available_models"}"#);
    assert_eq!(list["data"]["models"][1]["extra"], 1);
    rig.host(r#"{"id":"s","type":"set_model","provider":"mock","modelId":"m-2"}"#);
    let call = rig.call();
    assert_eq!(
        call.command,
        Command::Set(Setting::Model(Some("mock/m-2".into())))
    );
    rig.take();
    rig.reply(call.id, Ok(Answer::Done));
    assert_eq!(rig.one()["data"], json_of(model("m-2").as_str()));
    let next = rig.query(r#"{"id":"c","type":"cycle_model"}"#);
    assert_eq!(next["data"]["model"]["id"], "m-2");
    let unknown =
        rig.query(r#"{"id":"s","type":"set_model","provider":"nobody","modelId":"nothing"}"#);
    assert_eq!(unknown["error"], "Model not found: nobody/nothing");
    // The embedder may know more.
    rig.host(r#"{"id":"s","type":"set_model","provider":"p","modelId":"new"}"#);
    let (id, ask) = rig.asked();
    assert_eq!(
        ask,
        OmpAsk::FindModel {
            provider: "p".into(),
            model: "new".into()
        }
    );
    rig.settle(
        id,
        OmpOutcome::Success(Some(RawJson(r#"{"id":"new","provider":"p"}"#.into()))),
    );
    assert_eq!(
        rig.call().command,
        Command::Set(Setting::Model(Some("p/new".into())))
    );
    let mut lonely = Rig::new();
    let null = lonely.query(r#"{"id":"c","type":"cycle_model"}"#);
    assert_eq!(
        null.get("data"),
        Some(&Value::Null),
        "nothing to cycle through"
    );
}

/// Every command that only the outside can carry out: its default answer, and that of an embedder.
#[test]
fn omp_08_what_nobody_is_behind_has_its_documented_answer() {
    for (line, expected) in [
        (
            r#"{"type":"handoff"}"#,
            json!({"error":"Nothing to hand off (already compacted)"}),
        ),
        (
            r#"{"type":"set_fast_mode","enabled":true}"#,
            json!({"error":"Fast mode is unavailable for the current model."}),
        ),
        (
            r#"{"type":"set_fast_mode","enabled":false}"#,
            json!({"data":{"enabled":false,"active":false}}),
        ),
        (
            r#"{"type":"set_slow_mode","enabled":true}"#,
            json!({"error":"Slow mode is not available"}),
        ),
        (
            r#"{"type":"set_cache_warming","mode":"hot"}"#,
            json!({"error":"Invalid cache warming mode: hot"}),
        ),
        (
            r#"{"type":"set_cache_warming","mode":"idle"}"#,
            json!({"error":"Cache warming is not available"}),
        ),
        (
            r#"{"type":"export_html"}"#,
            json!({"error":"HTML export is not available"}),
        ),
        (
            r#"{"type":"get_login_providers"}"#,
            json!({"data":{"providers":[]}}),
        ),
        (
            r#"{"type":"login","providerId":"x"}"#,
            json!({"error":"Unknown OAuth provider: x"}),
        ),
        (
            r#"{"type":"get_logout_accounts","providerId":"x"}"#,
            json!({"data":{"accounts":[]}}),
        ),
        (
            r#"{"type":"logout","providerId":"x","credentialId":1}"#,
            json!({"error":"Unknown OAuth provider: x"}),
        ),
        (
            r#"{"type":"live_start"}"#,
            json!({"error":"Live voice is not available"}),
        ),
        (
            r#"{"type":"live_mute"}"#,
            json!({"error":"No live session is active"}),
        ),
        (r#"{"type":"live_stop"}"#, json!({})),
        (
            r#"{"type":"predict_word","text":"aü","cursor":2}"#,
            json!({"data":{"suffix":null}}),
        ),
        (
            r#"{"type":"predict_word","text":"aü","cursor":3}"#,
            json!({"error":"cursor must be an integer UTF-16 offset within text"}),
        ),
        (
            r#"{"type":"predict_word_feedback","text":"a","cursor":1,"suggestion":"b","accepted":true}"#,
            json!({}),
        ),
        (
            r#"{"type":"btw","question":"?"}"#,
            json!({"error":"A side question is not available"}),
        ),
        (
            r#"{"type":"btw_cancel"}"#,
            json!({"data":{"cancelled":false}}),
        ),
        (
            r#"{"type":"get_btw_history"}"#,
            json!({"data":{"records":[]}}),
        ),
        (
            r#"{"type":"get_subagents"}"#,
            json!({"data":{"subagents":[]}}),
        ),
        (
            r#"{"type":"cancel_subagent","subagentId":"run-1"}"#,
            json!({"data":{"cancelled":false}}),
        ),
        (
            r#"{"type":"steer_subagent","subagentId":"a","message":"m"}"#,
            json!({"error":"Subagent not running: a"}),
        ),
        (
            r#"{"type":"get_subagent_messages","subagentId":"a","fromByte":"x"}"#,
            json!({"error":"fromByte must be a finite number"}),
        ),
        (
            r#"{"type":"goal","op":"create","objective":" "}"#,
            json!({"error":"goal create requires a non-empty objective"}),
        ),
        (
            r#"{"type":"goal","op":"create","objective":"o","token_budget":0}"#,
            json!({"error":"token_budget must be a positive integer"}),
        ),
        (
            r#"{"type":"remove_queued_message","message":1,"queue":"steering"}"#,
            json!({"error":"message must be a string"}),
        ),
        (
            r#"{"type":"remove_queued_message","message":"m","queue":"x"}"#,
            json!({"error":"queue must be \"steering\" or \"followUp\""}),
        ),
        (
            r#"{"type":"remove_queued_message","message":"m","queue":"steering"}"#,
            json!({"data":{"removed":false}}),
        ),
        (
            r#"{"type":"promote_queued_message","message":"m"}"#,
            json!({"data":{"promoted":false}}),
        ),
        (
            r#"{"type":"set_todos","phases":[{"name":"W","tasks":[{"content":"A","status":"in_progress","details":"drop"},7]}]}"#,
            json!({"data":{"todoPhases":[{"name":"W","tasks":[{"content":"A","status":"in_progress"}]}]}}),
        ),
        (
            r#"{"type":"refresh_commands"}"#,
            json!({"data":{"commands":[{"name":"help","description":"Helps","source":"builtin"}]}}),
        ),
    ] {
        let mut rig = Rig::new();
        let answer = rig.query(line);
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&answer[member], value, "{line}: {answer}");
        }
        assert_eq!(
            answer["success"] == true,
            expected.get("error").is_none(),
            "{line}: {answer}"
        );
    }
    let mut rig = Rig::new();
    rig.take();
    rig.host(r#"{"id":"e","type":"export_html","outputPath":"/x.html"}"#);
    let (id, ask) = rig.asked();
    assert_eq!(
        ask,
        OmpAsk::ExportHtml(Box::new(Export {
            path: Some("/x.html".into()),
            session: info().session,
            ..Export::default()
        }))
    );
    rig.settle(
        id,
        OmpOutcome::Success(Some(RawJson(r#"{"path":"/x.html"}"#.into()))),
    );
    assert_eq!(rig.one()["data"], json!({"path":"/x.html"}));
    rig.host(r#"{"id":"h","type":"handoff"}"#);
    let (id, _) = rig.asked();
    rig.settle(id, OmpOutcome::Success(None));
    assert_eq!(rig.one().get("data"), Some(&Value::Null));
}

#[test]
fn omp_06_what_waits_is_in_the_state_and_can_be_promoted() {
    let mut rig = Rig::new();
    rig.play("«p1:prompt» open(p1) «s1:steer» R(s1,Steer) Qd(s1,Steer) «f1:follow_up» R(f1,FollowUp) Qd(f1,FollowUp)");
    let update = rig.take().pop().unwrap();
    assert_eq!(
        json_of(&update),
        json!({"type":"queue_update","steering":["text of s1"],"followUp":["text of f1"]})
    );
    let state = rig.query(r#"{"id":"g","type":"get_state"}"#);
    assert_eq!(state["data"]["queuedMessageCount"], 2);
    assert_eq!(state["data"]["isStreaming"], true);
    assert_eq!(state["data"]["isSettled"], false);
    rig.host(r#"{"id":"m","type":"promote_queued_message","message":"text of f1"}"#);
    let call = rig.call();
    assert!(matches!(call.command, Command::Promote(_)));
    rig.take();
    rig.reply(call.id, Ok(Answer::Done));
    assert_eq!(rig.one()["data"], json!({"promoted":true}));
}

#[test]
fn omp_07_what_an_abort_takes_back_is_told_with_its_pictures() {
    let mut rig = Rig::new();
    rig.play("«p1:prompt» open(p1)");
    rig.host(
        r#"{"id":"f","type":"follow_up","message":"look","images":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#,
    );
    let call = rig.call();
    let Command::Prompt(prompt) = &call.command else {
        panic!()
    };
    assert_eq!(prompt.content.len(), 2);
    let id = prompt.id;
    rig.reply(
        call.id,
        Ok(Answer::Admitted(Admitted::Queued(Lane::FollowUp))),
    );
    rig.event(What::Queued {
        prompt: id,
        lane: Lane::FollowUp,
    });
    rig.host(r#"{"id":"a","type":"abort_and_restore_queue"}"#);
    let cancel = rig.call();
    rig.reply(
        cancel.id,
        Ok(Answer::Cancelling {
            hit: Hit::Turn(TurnId(1)),
            queued: vec![id],
        }),
    );
    rig.take();
    rig.play("Rq-(Cancelled) end(p1,Cancelled)");
    let lines: Vec<Value> = rig.take().iter().map(|line| json_of(line)).collect();
    let answer = lines
        .iter()
        .find(|line| line["type"] == "response")
        .unwrap();
    assert_eq!(
        answer["data"],
        json!({"steering":[],"followUp":[{"text":"look","images":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}]})
    );
}
