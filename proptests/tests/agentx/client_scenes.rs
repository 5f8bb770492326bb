//! Scenes of the agentx Client: what it writes, and what it makes of an agent's words.

use crate::agentx_client_kit::{Out, Rig, config};
use serde_json::{Value, json};
use turnwire::frame::LineSplitter;
use turnwire::protocol::agentx::{Agentx, AgentxAsk, Policy};
use turnwire::protocol::{Client, ClientOutput, Protocol};
use turnwire::vocab::*;

#[test]
fn wire_001_the_host_greets_by_itself_with_what_it_serves() {
    let mut rig = Rig::new(config(Policy::CLAUDE));
    let tool = crate::agentx_kit::duo::tool("add", SideEffect::Read);
    let offered = rig.command(Command::Offer(Offer::Tools(vec![tool])));
    let hook = HookSpec {
        key: "PreToolUse h1".into(),
        point: HookPoint::PreTool,
        matcher: Some("Ba*".into()),
        timeout_us: Some(1_500_000),
    };
    rig.command(Command::Offer(Offer::Hooks(vec![hook])));
    assert_eq!((rig.events().as_str(), rig.writes().len()), ("", 0));
    rig.pass_ms(1);
    let lines = rig.writes();
    assert_eq!(lines.len(), 1);
    let request = &lines[0]["request"];
    assert_eq!(request["subtype"], "initialize");
    assert_eq!(
        request["hooks"],
        json!({"PreToolUse":[{"matcher":"Ba.*","hookCallbackIds":["PreToolUse h1"],"timeout":2}]})
    );
    assert_eq!(request["sdkMcpServers"], json!(["host"]));
    let list = &request["sdkMcpServerManifests"]["host"]["toolsListResult"]["tools"];
    assert_eq!(list[0]["name"], "add");
    rig.greeted();
    assert_eq!(rig.replied(offered), Some(Ok(Answer::Done)));
    assert_eq!(rig.events(), "Opened() R(1,Done) R(2,Done)");
    rig.pass_ms(1_000);
    assert_eq!(rig.writes().len(), 0, "once");
}

#[test]
fn the_strict_wire_is_greeted_without_a_word_and_serves_nothing() {
    let mut rig = Rig::new(config(Policy::AGENTX));
    rig.command(Command::Offer(Offer::Tools(vec![])));
    assert_eq!(rig.events(), "R(1,Err(Unsupported))");
    rig.init();
    assert_eq!(
        rig.writes(),
        [json!({"type":"control_request","request_id":"req_1","request":{"subtype":"initialize"}})]
    );
    assert_eq!(rig.events(), "Opened(s1)");
    for command in [
        Command::Withdraw(PromptId(1)),
        Command::Rewind {
            to: RewindTo::Prompt(PromptId(1)),
            dry_run: false,
        },
        Command::Offer(Offer::Hooks(vec![])),
    ] {
        let id = rig.command(command);
        assert!(matches!(
            rig.replied(id),
            Some(Err(Refusal::Unsupported(_)))
        ));
    }
}

#[test]
fn commands_wait_for_the_agents_start_and_a_prompt_is_written_with_an_id_of_its_own() {
    let mut rig = Rig::new(config(Policy::CLAUDE));
    let one = rig.prompt("hi\u{2028}", None, Deliver::Queue(Rank::Later));
    assert_eq!(rig.replied(one), None);
    assert_eq!(rig.writes().len(), 1, "the greeting alone");
    rig.greeted();
    let raw = rig.written[0].clone();
    assert!(raw.contains("hi\\u2028"), "WIRE-002: {raw}");
    let line = &rig.writes()[0];
    assert_eq!(
        line["message"],
        json!({"role":"user","content":"hi\u{2028}"})
    );
    assert_eq!(line["uuid"].as_str().unwrap().len(), 36);
    assert_eq!(line.get("priority"), None);
    rig.prompt("now", Some("u2"), Deliver::Preempt);
    assert_eq!(rig.writes()[0]["priority"], "now");
    let again = rig.prompt("x", Some("u2"), Deliver::Queue(Rank::Next));
    assert!(matches!(rig.replied(again), Some(Err(Refusal::Invalid(_)))));
    let busy = rig.prompt("x", None, Deliver::IfIdle);
    assert_eq!(rig.replied(busy), Some(Err(Refusal::Busy)));
}

const TEXT: &str = "m+ b+(text) d(text) b-(text)";

#[test]
fn wire_003_a_text_turn_of_the_strict_wire() {
    let mut rig = Rig::strict();
    rig.user("hi", "u1");
    assert_eq!(rig.events(), "R(1,Started)");
    rig.state("running");
    rig.says("m1", "Hello");
    rig.ends(&json!({"prompt_uuid":"u1"}));
    rig.state("idle");
    assert_eq!(
        rig.events(),
        format!("T+ S+ Ap(1) M(user) Rq {TEXT} m-(End) Rq-(ok) S- T-(Finished) P-(1,Finished) Set")
    );
}

#[test]
fn text_that_was_streamed_is_not_said_again() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.stream(&json!({"type":"message_start","message":{"id":"m1","role":"assistant","model":"m-1","content":[],"usage":{"input_tokens":11}}}));
    rig.stream(
        &json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
    );
    for text in ["Hel", "lo"] {
        rig.stream(&json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":text}}));
    }
    rig.says("m1", "Hello!");
    rig.stream(&json!({"type":"content_block_stop","index":0}));
    rig.stream(&json!({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}));
    rig.stream(&json!({"type":"message_stop"}));
    let deltas: Vec<String> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(Event {
                what: What::Delta { text, .. },
                ..
            }) => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["Hel", "lo", "!"], "what is missing comes once");
    let (usage, message) = (
        rig.find(|what| match what {
            What::RequestEnded { usage, .. } => Some(*usage),
            _ => None,
        }),
        rig.find(|what| match what {
            What::MessageEnded { message, .. } => Some(message.text()),
            _ => None,
        }),
    );
    assert_eq!(message, "Hello!");
    let usage = usage.unwrap();
    assert_eq!((usage.input, usage.output), (Some(11), Some(7)));
    assert_eq!(rig.findings(), [""; 0]);
}

#[test]
fn wire_012_ax_s16_no_price_is_none_and_a_known_zero_is_zero() {
    let cost = |costs: serde_json::Value| {
        let mut rig = Rig::strict();
        rig.user("hi", "u1");
        rig.says("m1", "x");
        let models = json!({"m-1":{"inputTokens":11,"outputTokens":7,"cacheReadInputTokens":0,
            "cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":costs}});
        rig.ends(&json!({"total_cost_usd":costs,"modelUsage":models}));
        rig.find(|what| match what {
            What::TurnEnded { report, .. } => Some(report.by_model[0].2.clone()),
            _ => None,
        })
    };
    assert!(matches!(cost(json!(null)), Cost::Unpriced { .. }));
    assert!(matches!(cost(json!(0)), Cost::Known { pico_usd: 0, .. }));
    assert!(matches!(
        cost(json!(0.25)),
        Cost::Known {
            pico_usd: 250_000_000_000,
            ..
        }
    ));
}

#[test]
fn sums_of_a_session_are_parted_into_turns() {
    let mut rig = Rig::claude();
    let mut seen = Vec::new();
    for (turn, (tokens, cost)) in [(11, 0.5), (31, 0.75)].into_iter().enumerate() {
        rig.user("hi", &format!("u{turn}"));
        rig.says(&format!("m{turn}"), "x");
        let models = json!({"m-1":{"inputTokens":tokens,"outputTokens":7,"cacheReadInputTokens":0,
            "cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":cost}});
        rig.ends(&json!({"total_cost_usd":cost,"modelUsage":models}));
        seen.push(rig.find(|what| match what {
            What::RequestEnded { usage, cost, .. } => Some((usage.unwrap().input, cost.clone())),
            _ => None,
        }));
        rig.forget();
    }
    assert_eq!((seen[0].0, seen[1].0), (Some(11), Some(20)));
    assert!(matches!(seen[1].1, Cost::Known { pico_usd, .. } if pico_usd == 250_000_000_000));
}

#[test]
fn how_turns_end() {
    let end = |members: serde_json::Value| {
        let mut rig = Rig::claude();
        rig.user("hi", "u1");
        rig.says("m1", "x");
        rig.ends(&members);
        rig.find(|what| match what {
            What::TurnEnded { end, .. } => Some(end.clone()),
            _ => None,
        })
    };
    let error = |subtype: &str| json!({"subtype":subtype,"is_error":true,"errors":["e"],"stop_reason":"tool_use"});
    assert_eq!(
        end(json!({})),
        End::Finished {
            finish: Some("end_turn".into())
        }
    );
    assert_eq!(end(error("error_max_turns")), End::MaxSteps);
    assert_eq!(
        end(error("error_max_budget_usd")),
        End::BudgetExhausted(BudgetKind::Money)
    );
    assert!(matches!(
        end(error("error_max_structured_output_retries")),
        End::Incomplete(Failure {
            kind: FailureKind::Capture,
            ..
        })
    ));
    assert!(matches!(
        end(error("error_during_execution")),
        End::Failed(_)
    ));
    assert!(matches!(
        end(json!({"terminal_reason":"hook_stopped"})),
        End::Blocked(_)
    ));
    let refused = end(json!({"is_error":true,"api_error_status":429,"result":"slow down"}));
    let failure = refused.failure().unwrap();
    assert_eq!(
        (failure.kind, failure.status, &*failure.text),
        (FailureKind::RateLimit, Some(429), "slow down")
    );
    assert_eq!(
        end(json!({"stop_reason":"cancelled","subtype":"error_during_execution","is_error":true})),
        End::Cancelled(CancelWhy::Host)
    );
}

#[test]
fn wire_020_an_input_error_ends_its_prompt_and_no_turn() {
    let mut rig = Rig::strict();
    rig.user("one", "u1");
    rig.state("running");
    rig.user("two", "u2");
    rig.forget();
    rig.ends(
        &json!({"subtype":"error_during_execution","is_error":true,"stop_reason":"input_error",
        "errors":["the queue is full"],"prompt_uuid":"u2"}),
    );
    assert_eq!(rig.events(), "P-(2,Failed)");
    rig.says("m1", "x");
    rig.ends(&json!({"prompt_uuid":"u1"}));
    rig.state("idle");
    assert!(rig.events().ends_with("T-(Finished) P-(1,Finished) Set"));
}

#[test]
fn wire_010_an_interrupt_is_acknowledged_once_and_the_turn_ends_as_cancelled() {
    let mut rig = Rig::strict();
    rig.user("hi", "u1");
    rig.state("running");
    rig.calls("m1", "c1", "write");
    rig.asks("q1", "c1", "write");
    rig.forget();
    let cancel = rig.cancel(QueueFate::Run);
    assert_eq!(rig.writes()[0]["request"], json!({"subtype":"interrupt"}));
    assert_eq!(rig.replied(cancel), None, "not before it is acknowledged");
    rig.say(&json!({"type":"control_cancel_request","request_id":"q1"}));
    rig.answers(2, None);
    rig.tool_result("c1", "no", true);
    rig.ends(&json!({"subtype":"error_during_execution","is_error":true,"stop_reason":"cancelled","errors":["c"]}));
    rig.state("idle");
    assert_eq!(
        rig.events(),
        "A!(Cancelled) Dc(no) m-(ToolUse) Rq-(ok) R(2,Cancelling(Turn)) t-(c1,Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set"
    );
    // The next one starts at once.
    rig.user("again", "u2");
    assert_eq!(rig.events(), "R(3,Started)");
    rig.cancel(QueueFate::Run);
    rig.answers(3, None);
    assert!(rig.events().contains("R(4,Cancelling(Nothing))"));
}

#[test]
fn late_twofold_and_orphaned_responses_change_nothing() {
    let mut rig = Rig::claude();
    let set = rig.command(Command::Set(Setting::Model(Some("m-2".into()))));
    rig.answers(2, Some(json!({"model":"m-2"})));
    assert_eq!(rig.replied(set), Some(Ok(Answer::Done)));
    rig.forget();
    rig.answers(2, Some(json!({"model":"m-3"})));
    rig.answers(77, None);
    assert_eq!(rig.events(), "! x(AgentxExtra) ! x(AgentxExtra)");
    // What the host answered comes back where replays are on.
    rig.user("hi", "u1");
    rig.calls("m1", "c1", "write");
    rig.asks("q1", "c1", "write");
    let (ask, _) = rig.asked();
    rig.reply(
        ask.0,
        Reply::Allow {
            input: None,
            updates: vec![],
        },
    );
    rig.forget();
    rig.say(&json!({"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{}}}));
    assert_eq!(rig.events(), "");
}

#[test]
fn a_prompt_that_is_taken_back_ends_behind_the_answer() {
    let mut rig = Rig::claude();
    rig.user("one", "u1");
    rig.says("m1", "x");
    let two = rig.user("two", "u2");
    rig.forget();
    let withdraw = rig.command(Command::Withdraw(PromptId(two.0)));
    assert_eq!(rig.writes()[0]["request"]["message_uuid"], "u2");
    rig.say(&json!({"type":"command_lifecycle","command_uuid":"u2","state":"cancelled","uuid":"u","session_id":"s1"}));
    assert_eq!(rig.events(), "", "S-07: not before the reply");
    rig.answers(2, Some(json!({"cancelled":true})));
    assert_eq!(rig.events(), "R(3,Withdrawn) P-(2,Withdrawn)");
    let _ = withdraw;
}

#[test]
fn unknown_lines_are_passed_on_whole() {
    let mut rig = Rig::claude();
    let lines = [
        r#"{"type":"future","x":[1,2]}"#,
        r#"{"type":"system","subtype":"hook_started","hook_id":"h","hook_name":"n","hook_event":"Stop","uuid":"u","session_id":"s"}"#,
        r#"{"type":"prompt_suggestion","suggestion":"s","uuid":"u","session_id":"s"}"#,
    ];
    for line in lines {
        rig.agent(line);
    }
    let passed: Vec<(String, String)> = rig
        .out
        .iter()
        .map(|out| match out {
            Out::Extra(extra) => (extra.kind.to_string(), extra.line.as_str().to_owned()),
            other => panic!("{other:?}"),
        })
        .collect();
    for ((kind, passed), line) in passed.iter().zip(lines) {
        assert_eq!(passed, line);
        assert!(line.contains(kind.as_str()));
    }
}

#[test]
fn a_retry_voids_the_attempt_before() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.say(&json!({"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":500.5,
        "error_status":529,"error":"overloaded","uuid":"u","session_id":"s1"}));
    let (attempt, max, wait) = rig.find(|what| match what {
        What::RetryScheduled {
            attempt,
            max,
            wait_us,
            ..
        } => Some((*attempt, *max, *wait_us)),
        _ => None,
    });
    assert_eq!((attempt, max, wait), (2, 3, Some(500_500)));
    rig.says("m1", "x");
    rig.ends(&json!({}));
    assert!(rig.events().contains("Rq-(Failed) Ry Rq m+"));
}

#[test]
fn wire_005_a_compaction_stands_between_requests() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.says("m1", "x");
    let status = |word: serde_json::Value| json!({"type":"system","subtype":"status","status":word,"uuid":"u","session_id":"s1"});
    rig.say(&status(json!("compacting")));
    rig.say(&status(json!(null)));
    rig.say(&json!({"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":900},"uuid":"u","session_id":"s1"}));
    let before = rig.find(|what| match what {
        What::CompactionEnded { result: Ok(it) } => Some(it.tokens_before),
        _ => None,
    });
    assert_eq!(before, Some(900));
}

#[test]
fn a_sub_agent_is_a_nested_run_and_a_command_a_job() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.calls("m1", "c1", "Task");
    rig.forget();
    rig.say(&json!({"type":"system","subtype":"task_started","task_id":"t1","tool_use_id":"c1","description":"look",
        "task_type":"local_agent","uuid":"u","session_id":"s1"}));
    rig.say(
        &json!({"type":"assistant","message":{"id":"n1","role":"assistant","model":"m-1","content":[
        {"type":"text","text":"inside"}]},"parent_tool_use_id":"c1","session_id":"s1","uuid":"u"}),
    );
    let run = rig.find(|what| match what {
        What::RunStarted { run, call, .. } => Some((*run, *call)),
        _ => None,
    });
    assert_eq!(run.1, Some(CallId(1)));
    let inside = rig.out.iter().any(|out| matches!(out, Out::Event(event) if event.run == run.0 && matches!(event.what, What::MessageStarted { .. })));
    assert!(inside);
    rig.say(&json!({"type":"system","subtype":"task_started","task_id":"t2","description":"sleep","task_type":"local_bash","uuid":"u","session_id":"s1"}));
    let stop = rig.command(Command::Job(JobCommand::Stop {
        job: "t2".into(),
        generation: None,
    }));
    assert_eq!(
        rig.written
            .last()
            .map(|line| line.contains(r#""task_id":"t2""#)),
        Some(true)
    );
    rig.answers(2, None);
    assert_eq!(
        rig.replied(stop),
        Some(Ok(Answer::JobStop(JobStop::Stopped)))
    );
    rig.say(&json!({"type":"system","subtype":"task_notification","task_id":"t2","status":"stopped","output_file":"","summary":"s","uuid":"u","session_id":"s1"}));
    rig.say(&json!({"type":"system","subtype":"task_notification","task_id":"t1","status":"completed","output_file":"","summary":"found","uuid":"u","session_id":"s1"}));
    let detail = rig.find(|what| match what {
        What::RunEnded { detail, .. } => Some(detail.to_string()),
        _ => None,
    });
    assert_eq!(detail, "found");
    assert_eq!(rig.findings(), [""; 0]);
}

#[test]
fn operations_of_this_protocol_alone_are_asked_and_answered() {
    let mut rig = Rig::claude();
    let ask = AgentxAsk::Control {
        subtype: "get_context_usage".into(),
        request: RawJson(r#"{"subtype":"get_context_usage"}"#.into()),
    };
    let one = rig.request(&ask);
    let two = rig.request(&ask);
    let three = rig.request(&AgentxAsk::Environment(RawJson(r#"{"A":"b"}"#.into())));
    let odd = rig.request(&AgentxAsk::Environment(RawJson("[]".into())));
    assert_eq!(rig.writes().len(), 3);
    rig.say(&json!({"type":"control_response","response":{"subtype":"success","request_id":"req_2",
        "response":{"categories":[],"totalTokens":1,"maxTokens":2,"rawMaxTokens":2,"percentage":50,"model":"m"}}}));
    rig.refuses(3, "no");
    assert!(
        matches!(rig.replied(one), Some(Ok(Answer::Raw(json))) if json.as_str().contains("totalTokens"))
    );
    assert!(matches!(rig.replied(two), Some(Err(Refusal::Failed(_)))));
    assert_eq!(rig.replied(three), Some(Ok(Answer::Sent)));
    assert!(matches!(rig.replied(odd), Some(Err(Refusal::Invalid(_)))));
}

/// A host whose consumer has stopped: over a hundred records lie unread, and what the agent asks and answers behind
/// them has been heard all the same, the MCP server among it answered by the Client itself.
#[test]
fn a_consumer_that_stops_keeps_no_control_record_from_being_heard() {
    let mut client = Client::<Agentx>::new(config(Policy::CLAUDE));
    let now = Now::default();
    let mut splitter = LineSplitter::new(Agentx::agent_line_rules());
    let mut agent = |client: &mut Client<Agentx>, line: &serde_json::Value| {
        assert!(client.wants_lines(), "it reads on");
        let bytes = format!("{line}\n");
        let mut chunk = bytes.as_bytes();
        while let Some(split) = splitter.next(&mut chunk) {
            client.handle_line(split, now);
        }
    };
    client.handle_woken(now);
    agent(
        &mut client,
        &json!({"type":"control_response","response":{"subtype":"success","request_id":"req_1","response":{"commands":[]}}}),
    );
    client.handle_command(
        Call {
            id: CommandId(1),
            command: Command::Cancel {
                what: CancelWhat::TurnElseNextQueued,
                why: CancelWhy::Host,
            },
        },
        now,
    );
    for number in 0..150 {
        agent(
            &mut client,
            &json!({"type":"assistant","message":{"id":format!("m{number}"),"role":"assistant","model":"m",
            "content":[{"type":"text","text":"words"}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u"}),
        );
    }
    agent(
        &mut client,
        &json!({"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool",
        "tool_name":"Bash","input":{},"tool_use_id":"c1"}}),
    );
    agent(
        &mut client,
        &json!({"type":"control_response","response":{"subtype":"success","request_id":"req_2"}}),
    );
    // An answer can be given before anything was taken out.
    client.handle_command(
        Call {
            id: CommandId(2),
            command: Command::Barrier,
        },
        now,
    );
    let (mut asked, mut replied, mut events) = (0, 0, 0);
    let mut lines = Vec::new();
    while let Some(output) = client.poll_output(&mut lines) {
        if let ClientOutput::Event(event) = output {
            events += 1;
            asked += usize::from(matches!(event.what, What::Asked { .. }));
            replied += usize::from(matches!(event.what, What::Replied { .. }));
        }
    }
    assert_eq!((asked, replied), (1, 2));
    assert!(events > 500);
    // Memory is bounded by bytes: beyond the limit nothing more is read.
    client.set_held_limit(1_000);
    agent(&mut client, &json!({"type":"future","x":"y".repeat(2_000)}));
    assert!(!client.wants_lines());
    while client.poll_output(&mut lines).is_some() {}
    assert!(client.wants_lines());
}

#[test]
fn a_drain_before_anything_else_greets_the_agent_which_may_say_nothing_before() {
    let mut rig = Rig::new(config(Policy::CLAUDE));
    let offered = rig.command(Command::Offer(Offer::Hooks(vec![])));
    rig.command(Command::Close { drain: true });
    assert_eq!(rig.writes()[0]["request"]["subtype"], "initialize");
    assert_eq!(rig.events(), "R(2,Done)");
    rig.greeted();
    assert_eq!(rig.replied(offered), Some(Ok(Answer::Done)));
    assert!(rig.events().ends_with("CloseInput"));
    rig.end();
    assert_eq!(rig.events(), "Closed(Drained) Gone");

    let mut rig = Rig::new(config(Policy::CLAUDE));
    rig.command(Command::Close { drain: false });
    assert_eq!(
        (rig.writes().len(), rig.events().as_str()),
        (0, "R(1,Done) CloseInput")
    );
}

#[test]
fn a_prompt_that_is_refused_when_the_agent_is_idle_leaves_nothing_to_wait_for() {
    let mut rig = Rig::new(config(Policy::AGENTX_FULL));
    rig.init();
    rig.greeted();
    rig.forget();
    rig.user("one", "u1");
    rig.state("running");
    rig.user("two", "u2");
    let failed = json!({"subtype":"error_during_execution","is_error":true,"result":null});
    let failed = |members: Value| {
        let mut all = failed.clone();
        all.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        all
    };
    rig.ends(&failed(
        json!({"stop_reason":"cancelled","errors":["cancelled"]}),
    ));
    rig.state("idle");
    rig.forget();
    rig.ends(&failed(
        json!({"stop_reason":"input_error","errors":["full"],"num_turns":0}),
    ));
    assert_eq!(rig.events(), "P-(2,Failed) Set");
    rig.command(Command::Close { drain: true });
    assert_eq!(rig.events(), "R(3,Done) CloseInput");
}

#[test]
fn closing_waits_for_what_is_pending_or_not() {
    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.command(Command::Close { drain: true });
    assert_eq!(rig.events(), "R(1,Started) R(2,Done)");
    let late = rig.user("late", "u2");
    assert_eq!(rig.replied(late), Some(Err(Refusal::Closing)));
    rig.says("m1", "x");
    rig.ends(&json!({}));
    assert!(rig.events().ends_with("P-(1,Finished) Set CloseInput"));
    rig.end();
    assert_eq!(rig.events(), "Closed(Drained) Gone");

    let mut rig = Rig::claude();
    rig.user("hi", "u1");
    rig.says("m1", "x");
    rig.forget();
    rig.command(Command::Close { drain: false });
    assert_eq!(rig.writes()[0]["request"]["subtype"], "interrupt");
    assert_eq!(rig.events(), "R(2,Done) CloseInput");
    rig.end();
    assert_eq!(
        rig.events(),
        "m-(Cancelled) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set Closed(HostGone) Gone"
    );
}

/// WIRE-003: pieces of the strict wire don't say whose they are. Where nothing stands between two replies, those of the
/// second go on in the first, and are shown once.
#[test]
fn wire_003_pieces_of_a_reply_behind_a_whole_one_are_shown_once() {
    let mut rig = Rig::strict();
    rig.user("hi", "u1");
    rig.state("running");
    let piece = |rig: &mut Rig, text: &str| {
        rig.stream(&json!({"type":"response.output_text.delta","delta":text}));
    };
    piece(&mut rig, "one ");
    rig.says("m1", "one ");
    piece(&mut rig, "tw");
    piece(&mut rig, "o");
    rig.says("m2", "two!");
    rig.calls("m2", "c1", "look");
    rig.tool_result("c1", "done", false);
    rig.says("m3", "three");
    rig.ends(&json!({"prompt_uuid":"u1","result":"three"}));
    assert_eq!(shown(&rig), ["one ", "tw", "o", "!", "three"]);
    assert_eq!(rig.findings(), [""; 0]);
}

/// The pieces that a host is shown.
fn shown(rig: &Rig) -> Vec<String> {
    let pieces = rig.out.iter().filter_map(|out| match out {
        Out::Event(Event {
            what: What::Delta { text, .. },
            ..
        }) => Some(text.to_string()),
        _ => None,
    });
    pieces.collect()
}

/// WIRE-003: an interrupt ends a reply that has made its calls. Text that has begun behind them is still told whole, and
/// shown once.
#[test]
fn wire_003_text_behind_a_call_is_shown_once_across_an_interrupt() {
    let mut rig = Rig::strict();
    rig.user("hi", "u1");
    rig.state("running");
    rig.calls("m1", "c1", "look");
    rig.stream(&json!({"type":"response.output_text.delta","delta":"hello "}));
    rig.cancel(QueueFate::Run);
    rig.answers(2, None);
    rig.says("m1", "hello ");
    rig.tool_result("c1", "not begun", true);
    rig.ends(
        &json!({"prompt_uuid":"u1","subtype":"error_during_execution","is_error":true,"result":null,
        "stop_reason":"cancelled"}),
    );
    assert_eq!(shown(&rig), ["hello "]);
    assert_eq!(rig.findings(), [""; 0]);
}

/// An agent that says of each prompt that it has it refuses the one of which it hasn't said so.
#[test]
fn wire_020_an_input_error_without_a_name_is_of_the_prompt_that_was_not_taken() {
    let mut rig = Rig::claude();
    let queued = |rig: &mut Rig, uuid: &str, state: &str| {
        rig.say(
            &json!({"type":"command_lifecycle","command_uuid":uuid,"state":state,
            "uuid":"u","session_id":"s1"}),
        );
    };
    rig.user("one", "u1");
    queued(&mut rig, "u1", "queued");
    rig.user("two", "u2");
    rig.forget();
    rig.ends(
        &json!({"subtype":"error_during_execution","is_error":true,"result":null,
        "stop_reason":"input_error","errors":["the queue is full"],"num_turns":0}),
    );
    assert_eq!(rig.events(), "P-(2,Failed)");
    queued(&mut rig, "u1", "started");
    rig.says("m1", "x");
    rig.ends(&json!({}));
    assert!(rig.events().ends_with("P-(1,Finished) Set"));
}
