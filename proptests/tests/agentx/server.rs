//! What the Server owes a host beside scenes: the acceptance scenarios of the contract, answers to operations, faults of
//! the stream, and each bit of the policy turned alone.

use crate::agentx_kit::duo::{Duo, server_config, session_config, tool};
use serde_json::{Value, json};
use turnwire::protocol::agentx::policy::Bit;
use turnwire::protocol::agentx::{
    Agentx, AgentxAsk, AgentxOutcome, Policy, ServerConfig, SettingsLayer, SettingsSource,
};
use turnwire::protocol::{Credentials, Protocol, Server};
use turnwire::vocab::*;
use turnwire_proptests::laws::{
    ServerInput, ServerMachine, law_l2, law_l3, law_l4, law_l5, law_l6,
};

pub fn strict() -> Duo {
    let mut duo = Duo::new(Policy::AGENTX);
    duo.lines.clear();
    duo
}

pub fn claude() -> Duo {
    Duo::new(Policy::CLAUDE)
}

pub fn user(uuid: &str) -> Value {
    json!({"type":"user","uuid":uuid,"message":{"role":"user","content":"hi"}})
}

pub fn one(duo: &mut Duo) -> Value {
    assert_eq!(duo.lines.len(), 1, "{:#?}", duo.lines);
    duo.lines.remove(0)
}

pub fn results(duo: &Duo) -> Vec<&Value> {
    let lines = duo.lines.iter();
    lines.filter(|line| line["type"] == "result").collect()
}

/// What the answer to a request carries.
pub fn answer(duo: &mut Duo, request: Value) -> Value {
    duo.lines.clear();
    duo.ask("r1", request);
    let line = one(duo);
    assert_eq!(line["response"]["request_id"], "r1");
    line["response"].clone()
}

#[test]
fn ax_s01_objects_in_any_chunks_and_without_a_last_newline_are_read_once() {
    let mut duo = strict();
    let bytes = format!(
        "{}\n\r\n{}\n{}",
        user("u1"),
        json!({"type":"keep_alive"}),
        json!({"type":"control_request","request_id":"i1","request":{"subtype":"interrupt"}})
    );
    for byte in bytes.as_bytes() {
        duo.bytes(std::slice::from_ref(byte));
    }
    assert!(!duo.words().contains("answer(i1)"));
    duo.end();
    duo.play("settle");
    assert_eq!(
        duo.words(),
        "answer(i1) end(error_during_execution,u1) idle exit(1)"
    );
}

#[test]
fn ax_s02_separators_stay_within_their_line() {
    let mut duo = Duo::partial(Policy::CLAUDE);
    duo.play("«u1» begin");
    duo.chunk(ModelChunk::Text("a\u{2028}b\u{2029}c\u{e9}"));
    duo.play("fin(end_turn)");
    for line in &duo.raw {
        assert!(!line.contains(['\u{2028}', '\u{2029}']), "{line}");
    }
    let text = duo
        .lines
        .iter()
        .find(|line| line["type"] == "assistant")
        .unwrap();
    assert_eq!(
        text["message"]["content"][0]["text"],
        "a\u{2028}b\u{2029}c\u{e9}"
    );
    assert!(duo.raw.iter().any(|line| line.contains("c\u{e9}")));
}

#[test]
fn ax_s03_wire_003_a_permission_never_passes_the_call_that_it_is_about() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write,c2:write)");
    assert_eq!(
        duo.words(),
        "running assistant(text) assistant(tool_use) assistant(tool_use) requires_action ask(can_use_tool)"
    );
    let request = &duo.requests[0];
    assert_eq!(request["request"]["tool_use_id"], "c1");
    assert_eq!(request["request"]["tool_name"], "write");
    assert_eq!(request["request"]["input"], json!({"path":"a"}));
    let id = request["request_id"].as_str().unwrap();
    assert!(id.starts_with("req_") && id.len() == 36, "{id}");
}

#[test]
fn ax_s04_a_withdrawn_request_is_cancelled_once_and_its_late_answer_changes_nothing() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write) «interrupt:i1» settle");
    duo.lines.clear();
    duo.commands.clear();
    duo.play("«allow#1» «allow#1»");
    assert_eq!(duo.words(), "");
    assert!(duo.commands.is_empty(), "{:?}", duo.commands);
    duo.play("«u2» reply");
    assert_eq!(duo.words(), "running assistant(text) end(success,u2) idle");
}

/// A session that asks for two reads at once.
fn two_asks(policy: Policy) -> Duo {
    let mut config = session_config(&policy);
    config.tools.push(tool("peek", SideEffect::Read));
    config.rules.push(Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "peek".into(),
        pattern: None,
    });
    let mut duo = Duo::with(server_config(policy), config);
    duo.play("«u1» calls(c1:peek,c2:peek)");
    assert_eq!(duo.requests.len(), 2);
    duo.lines.clear();
    duo
}

#[test]
fn ax_s05_wire_008_the_end_of_the_input_rejects_every_request_that_is_open() {
    let mut duo = two_asks(Policy::AGENTX);
    duo.end();
    assert_eq!(duo.words(), "result(c1,error) running result(c2,error)");
    duo.play("reply");
    assert_eq!(duo.words(), "assistant(text) end(success,u1) idle exit(0)");
}

#[test]
fn ax_s12_ax_01_wire_011_an_interrupt_withdraws_every_question_before_it_is_answered() {
    let mut config = session_config(&Policy::AGENTX);
    config.tools.push(tool("peek", SideEffect::Read));
    config.rules.push(Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "peek".into(),
        pattern: None,
    });
    let mut server = server_config(Policy::AGENTX);
    server.flush = true;
    let mut duo = Duo::with(server, config);
    duo.play("«u1» calls(c0:look,c1:peek,c2:peek)");
    assert_eq!(duo.requests.len(), 2);
    duo.lines.clear();
    duo.play("«interrupt:i1» settle");
    assert_eq!(
        duo.words(),
        "withdraw(1) withdraw(2) answer(i1) result(c0,error) result(c1,error) result(c2,error) \
         end(error_during_execution,u1)"
    );
    assert_eq!(duo.settle_ask(AgentxOutcome::Default), AgentxAsk::Flush);
    assert_eq!(duo.words(), "idle");
    duo.play("«allow#1» «allow#2» «u2» reply");
    assert_eq!(duo.words(), "running assistant(text) end(success,u2)");
}

#[test]
fn ax_s12_ax_01_finite_work_ends_before_the_result_of_an_interrupted_turn() {
    let mut duo = strict();
    beside(&mut duo);
    duo.play("«interrupt:i1»");
    assert_eq!(duo.words(), "running task_started answer(i1)");
    duo.event(What::TurnEnded {
        turn: TurnId(1),
        end: End::Cancelled(CancelWhy::Host),
        answer: None,
        report: Box::default(),
        pending: Pending {
            background: true,
            ..Pending::default()
        },
    });
    assert_eq!(duo.words(), "");
    duo.event(What::Job(JobStep::Ended, job(JobState::Exited(0))));
    assert_eq!(
        duo.words(),
        "task_notification end(error_during_execution,null) idle"
    );
}

#[test]
fn ax_s13_a_last_line_without_newline_answers_before_the_end_does() {
    let mut duo = two_asks(Policy::AGENTX);
    let id = duo.requests[1]["request_id"].clone();
    let line = json!({"type":"control_response","response":{"subtype":"success","request_id":id,"response":{"behavior":"allow","updatedInput":{}}}});
    duo.bytes(line.to_string().as_bytes());
    duo.end();
    duo.play("ran(c2)");
    let words = duo.words();
    assert!(words.contains("result(c1,error)"), "{words}");
    assert!(words.contains("result(c2)"), "{words}");
}

#[test]
fn ax_s14_a_last_line_that_is_broken_answers_nothing() {
    let mut duo = two_asks(Policy::AGENTX);
    let id = duo.requests[0]["request_id"].as_str().unwrap().to_owned();
    duo.bytes(
        format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}""#
        )
        .as_bytes(),
    );
    duo.end();
    duo.play("settle");
    let words = duo.words();
    assert!(
        words.ends_with(
            "end(error_during_execution,u1) idle end(error_during_execution,null) exit(1)"
        ),
        "{words}"
    );
    assert!(!words.contains("result(c1) "), "{words}");
    assert_eq!(duo.diagnostics.len(), 1);
    let mut duo = two_asks(Policy::CLAUDE);
    duo.host("{not json");
    assert_eq!(duo.words(), "exit(1)");
}

/// A host with a hook at permissions.
fn with_hook(event: &str) -> Duo {
    let mut duo = claude();
    duo.ask("init", json!({"subtype":"initialize","hooks":{event:[{"matcher":"write|x.*","hookCallbackIds":["hook_0"],"timeout":5}]}}));
    duo.lines.clear();
    duo
}

#[test]
fn ax_s06_ax_p27_the_first_decision_wins_and_the_other_changes_nothing() {
    let mut duo = with_hook("PermissionRequest");
    duo.play("«u1» calls(c1:write)");
    assert!(
        duo.words()
            .ends_with("ask(can_use_tool) ask(hook_callback)")
    );
    let input = duo.requests[1]["request"]["input"].clone();
    assert_eq!(input["hook_event_name"], "PermissionRequest");
    assert_eq!(input["tool_name"], "write");
    assert_eq!(input["tool_input"], json!({"path":"a"}));
    duo.play("«yes#2»");
    assert_eq!(duo.words(), "withdraw(1)");
    duo.play("«deny#1» ran(c1)");
    assert_eq!(duo.words(), "result(c1)");

    let mut duo = with_hook("PermissionRequest");
    duo.play("«u1» calls(c1:write) «deny#1»");
    duo.play("«yes#2»");
    assert!(duo.words().ends_with("ask(hook_callback) result(c1,error)"));

    // One that passes decides nothing.
    let mut duo = with_hook("PermissionRequest");
    duo.play("«u1» calls(c1:write) «pass#2»");
    duo.lines.clear();
    duo.play("«allow#1» ran(c1)");
    assert_eq!(duo.words(), "result(c1)");
}

#[test]
fn hooks_before_a_call_are_told_of_it_and_judge() {
    let mut duo = with_hook("PreToolUse");
    duo.play("«u1» calls(c1:write)");
    assert!(
        duo.words()
            .ends_with("assistant(tool_use) ask(hook_callback)")
    );
    assert_eq!(duo.requests[0]["request"]["callback_id"], "hook_0");
    assert_eq!(duo.requests[0]["request"]["tool_use_id"], "c1");
    duo.answer(1, json!({"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not that"}}));
    let line = one(&mut duo);
    assert_eq!(line["message"]["content"][0]["content"], "not that");
    assert_eq!(line["message"]["content"][0]["is_error"], true);
}

#[test]
fn a_prompt_that_a_hook_blocks_has_one_result() {
    let mut duo = with_hook("UserPromptSubmit");
    duo.play("«u1»");
    assert_eq!(duo.words(), "queued(u1) ask(hook_callback)");
    assert_eq!(duo.requests[0]["request"]["input"]["prompt"], "text of u1");
    duo.answer(1, json!({"decision":"block","reason":"not today"}));
    let result = results(&duo)[0].clone();
    // No error: the real program leaves with 0 then, and says why as the answer.
    assert_eq!(result["is_error"], false);
    assert!(
        result["result"]
            .as_str()
            .is_some_and(|text| text.contains("not today"))
    );
    assert_eq!(result["num_turns"], 0);
    assert_eq!(duo.words(), "init end(success,u1) completed(u1)");
    duo.play("«u2»");
    duo.answer(2, json!({"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"it rains"}}));
    duo.play("reply");
    assert_eq!(
        duo.words(),
        "queued(u2) ask(hook_callback) started(u2) init assistant(text) end(success,u2) completed(u2)"
    );
}

#[test]
fn a_prompt_without_an_id_is_known_by_the_one_that_its_replay_has() {
    let config = ServerConfig {
        replay: true,
        ..server_config(Policy::CLAUDE)
    };
    let mut duo = Duo::with(config, session_config(&Policy::CLAUDE));
    duo.say(&json!({"type":"user","message":{"role":"user","content":"hi"}}));
    let replay = duo.lines.iter().find(|line| line["type"] == "user");
    let uuid = replay.map(|line| line["uuid"].clone()).unwrap_or_default();
    duo.play("reply");
    let mut rewind = |uuid: &Value| {
        let request = json!({"subtype":"rewind_files","user_message_id":uuid,"dry_run":true});
        answer(&mut duo, request)["error"].clone()
    };
    let unknown = rewind(&json!("00000000-0000-4000-8000-000000000000"));
    assert!(
        unknown
            .as_str()
            .is_some_and(|text| text.starts_with("No such message"))
    );
    assert_ne!(rewind(&uuid), unknown);
}

#[test]
fn ax_s07_an_answer_that_comes_twice_makes_one_result() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write) «allow#1» «allow#1» ran(c1) «allow#1» reply");
    let words = duo.words();
    assert_eq!(words.matches("result(c1)").count(), 1, "{words}");
    assert!(words.ends_with("end(success,u1) idle"));
}

/// A turn, and a command beside it.
fn beside(duo: &mut Duo) {
    duo.event(What::TurnStarted {
        turn: TurnId(1),
        cause: Cause::Prompt,
    });
    duo.event(What::Job(JobStep::Started, job(JobState::Running)));
}

/// A command beside a turn.
fn job(state: JobState) -> Box<JobRecord> {
    Box::new(JobRecord {
        job: JobId(1),
        id: "job-1".into(),
        generation: "".into(),
        revision: 1,
        kind: JobKind::Shell,
        call: None,
        command: "make".into(),
        description: None,
        cwd: None,
        state,
        finite: true,
        times_ms: [None; 4],
        output: None,
        faults: [None, None, None],
    })
}

#[test]
fn ax_s09_wire_004_a_result_waits_for_finite_work_and_idle_for_the_result() {
    let mut duo = strict();
    beside(&mut duo);
    duo.event(What::TurnEnded {
        turn: TurnId(1),
        end: End::Finished { finish: None },
        answer: None,
        report: Box::default(),
        pending: Pending {
            background: true,
            ..Pending::default()
        },
    });
    assert_eq!(duo.words(), "running task_started");
    duo.event(What::Job(JobStep::Ended, job(JobState::Exited(0))));
    assert_eq!(duo.words(), "task_notification end(success,null) idle");
}

#[test]
fn ax_s10_settings_are_the_embedders() {
    let mut duo = claude();
    duo.ask("r1", json!({"subtype":"get_settings"}));
    assert_eq!(duo.words(), "");
    let ask = duo.settle_ask(AgentxOutcome::Default);
    assert!(matches!(ask, AgentxAsk::Control { .. }), "{ask:?}");
    let line = one(&mut duo);
    assert_eq!(line["response"]["response"]["applied"]["model"], "m-1");
    duo.ask("r2", json!({"subtype":"get_settings"}));
    duo.settle_ask(AgentxOutcome::Success(Some(RawJson(
        r#"{"effective":{"a":1},"sources":[{"source":"user","settings":{}}]}"#.into(),
    ))));
    assert_eq!(one(&mut duo)["response"]["response"]["effective"]["a"], 1);
    // Layers come in their order, with what they come to, and apart from what runs.
    duo.ask("r4", json!({"subtype":"get_settings"}));
    let layer = |source, settings: Value| SettingsLayer {
        source,
        settings: RawJson(settings.to_string().as_str().into()),
    };
    duo.settle_ask(AgentxOutcome::Settings(vec![
        layer(SettingsSource::Flag, json!({"model":{"name":"m-2"}})),
        layer(
            SettingsSource::User,
            json!({"model":{"name":"m-0","window":7}}),
        ),
    ]));
    let shown = one(&mut duo)["response"]["response"].clone();
    assert_eq!(
        shown["effective"],
        json!({"model":{"name":"m-2","window":7}})
    );
    let sources: Vec<&Value> = shown["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["source"])
        .collect();
    assert_eq!(sources, ["user", "flag"]);
    assert_eq!(shown["sources"][0]["settings"]["model"]["name"], "m-0");
    assert_eq!(shown["applied"]["model"], "m-1");
    // Of anything else they are no answer.
    duo.ask("r5", json!({"subtype":"mcp_reconnect","serverName":"x"}));
    duo.settle_ask(AgentxOutcome::Settings(Vec::new()));
    assert_eq!(one(&mut duo)["response"]["subtype"], "error");
    duo.ask(
        "r3",
        json!({"subtype":"mcp_set_servers","servers":{"x":{"command":"x"}}}),
    );
    duo.settle_ask(AgentxOutcome::Failure("not now".into()));
    assert_eq!(one(&mut duo)["response"]["error"], "not now");
}

#[test]
fn ax_s11_an_interrupt_is_answered_at_once_and_without_a_payload() {
    let mut duo = strict();
    duo.play("«u1» begin text");
    duo.lines.clear();
    duo.ask("r1", json!({"subtype":"interrupt"}));
    assert_eq!(
        duo.lines[0],
        json!({"type":"control_response","response":{"subtype":"success","request_id":"r1"}})
    );
    duo.play("settle");
    let result = results(&duo)[0];
    assert_eq!(result["stop_reason"], "cancelled");
    assert_eq!(result["is_error"], true);
    assert!(result.get("result").is_none());
    assert!(result["errors"][0].is_string());
}

#[test]
fn ax_s15_idle_comes_behind_the_flush_and_lines_wait_for_it() {
    let mut config = server_config(Policy::AGENTX);
    config.flush = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.play("«u1» «u2» reply");
    assert!(duo.words().ends_with("end(success,u1)"));
    duo.play("reply");
    assert_eq!(duo.words(), "");
    assert_eq!(duo.settle_ask(AgentxOutcome::Default), AgentxAsk::Flush);
    assert_eq!(duo.words(), "idle running assistant(text) end(success,u2)");
    duo.settle_ask(AgentxOutcome::Default);
    assert_eq!(duo.words(), "idle");
    duo.play("«u3» reply «eof»");
    assert_eq!(
        duo.words(),
        "running assistant(text) end(success,u3) idle exit(0)"
    );
}

fn priced(cost: Cost) -> Value {
    let mut duo = strict();
    duo.event(What::TurnStarted {
        turn: TurnId(1),
        cause: Cause::Prompt,
    });
    duo.event(What::RequestEnded {
        request: RequestId(1),
        outcome: RequestOutcome::Complete {
            finish: "end_turn".into(),
        },
        model: ModelRef {
            provider: None,
            model: "m-1".into(),
        },
        usage: Some(Usage {
            input: Some(3),
            output: Some(4),
            reasoning: Some(2),
            ..Usage::default()
        }),
        cost,
        api_us: 5_000,
    });
    duo.event(What::TurnEnded {
        turn: TurnId(1),
        end: End::Finished { finish: None },
        answer: None,
        report: Box::default(),
        pending: Pending::default(),
    });
    results(&duo)[0].clone()
}

#[test]
fn ax_s16_wire_012_an_unknown_price_is_null_and_a_known_zero_is_0() {
    let known = |pico_usd| Cost::Known {
        pico_usd,
        basis: CostBasis::Reported,
        source: "list".into(),
        as_of: "2026-11-30".into(),
    };
    for (cost, shown) in [
        (Cost::NotSaid, Value::Null),
        (Cost::Unpriced { why: "new".into() }, Value::Null),
        (known(0), json!(0)),
        (known(224_000_000), json!(0.000224)),
    ] {
        let result = priced(cost);
        assert_eq!(result["total_cost_usd"], shown);
        assert_eq!(result["modelUsage"]["m-1"]["costUSD"], shown);
        assert_eq!(result["usage"]["output_tokens"], 6);
        assert_eq!(result["usage"]["reasoning_output_tokens"], 2);
        assert_eq!(result["usage"]["total_tokens"], 9);
        assert_eq!(result["duration_api_ms"], 5);
    }
}

#[test]
fn ax_s20_a_member_that_stands_twice_goes_neither_in_nor_out() {
    let mut duo = strict();
    duo.play("«u1» begin");
    duo.chunk(ModelChunk::CallBegin {
        index: 0,
        id: Some("c1"),
        name: "write",
    });
    duo.chunk(ModelChunk::CallArgs {
        index: 0,
        text: r#"{"path":"a","p\u0061th":"b"}"#,
    });
    duo.chunk(ModelChunk::CallEnd { index: 0 });
    duo.play("fin(tool_use)");
    let call = duo
        .lines
        .iter()
        .find(|line| line["message"]["content"][0]["type"] == "tool_use")
        .unwrap();
    assert_eq!(call["message"]["content"][0]["input"], json!({}));
    assert!(duo.requests.is_empty(), "nobody is asked about it");
    assert!(duo.words().ends_with("result(c1,error)"));
    duo.host(r#"{"type":"keep_alive","type":"keep_alive"}"#);
    duo.play("settle");
    assert!(duo.words().ends_with("exit(1)"));
}

/// A server of the host's, up to its list of tools.
fn with_server(duo: &mut Duo) {
    duo.ask(
        "init",
        json!({"subtype":"initialize","sdkMcpServers":["house"]}),
    );
    assert_eq!(duo.words(), "answer(init) mcp(initialize)");
    duo.play("«u1»");
    assert_eq!(duo.words(), "", "the prompt waits for the tools");
    duo.answer(1, json!({"mcp_response":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"house","version":"1"}}}}));
    assert_eq!(
        duo.words(),
        "mcp(notifications/initialized) mcp(tools/list)"
    );
}

#[test]
fn tools_of_a_host_are_listed_before_the_first_prompt_and_called_over_the_wire() {
    let mut duo = claude();
    with_server(&mut duo);
    duo.answer(3, json!({"mcp_response":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}}));
    assert!(matches!(
        &duo.commands[..],
        [.., Command::Offer(Offer::Tools(tools)), Command::Prompt(_)] if &*tools[0].name == "mcp__house__add"
    ));
    duo.lines.clear();
    duo.play("begin text call(c1:mcp__house__add) fin(tool_use)");
    assert_eq!(
        duo.words(),
        "assistant(text) assistant(tool_use) mcp(tools/call)"
    );
    let call = duo.requests.last().unwrap()["request"]["message"].clone();
    assert_eq!(call["params"]["name"], "add");
    assert_eq!(call["params"]["arguments"], json!({"path":"a"}));
    duo.answer(4, json!({"mcp_response":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"sum 42"}],"isError":false}}}));
    let line = one(&mut duo);
    assert_eq!(line["message"]["content"][0]["content"], "sum 42");
    let response = answer(&mut duo, json!({"subtype":"mcp_status"}));
    assert_eq!(
        response["response"]["mcpServers"],
        json!([{"name":"house","status":"connected"}])
    );
}

#[test]
fn a_server_that_never_lists_its_tools_holds_the_prompt_no_longer_than_its_time() {
    let mut duo = claude();
    with_server(&mut duo);
    let due = duo.server.poll_timeout().unwrap();
    assert_eq!(due.why, "mcp");
    duo.wake_server(61_000_000);
    let words = duo.words();
    assert!(words.starts_with("withdraw(3) queued(u1)"), "{words}");
    assert_eq!(duo.diagnostics.len(), 1);
    // And one whose host is gone.
    let mut duo = claude();
    with_server(&mut duo);
    duo.end();
    duo.play("reply");
    assert!(duo.words().ends_with("completed(u1) exit(0)"));
}

#[test]
fn ax_s27_wire_013_a_line_that_would_hold_a_credential_is_the_last() {
    let mut server = Server::new(server_config(Policy::AGENTX));
    let secrets = Credentials::new(["sk-very-secret-value"]).unwrap();
    server.hide(secrets).unwrap();
    let mut duo = Duo::guarded(server, session_config(&Policy::AGENTX));
    duo.play("«u1» begin");
    duo.chunk(ModelChunk::Text("the key is sk-very-secret-value"));
    duo.play("fin(end_turn)");
    assert_eq!(duo.words(), "init running exit(1)");
    assert!(duo.raw.iter().all(|line| !line.contains("secret")));
    assert!(duo.diagnostics.iter().all(|text| !text.contains("secret")));
    duo.play("«u2»");
    assert_eq!(duo.words(), "");
}

#[test]
fn keep_alives_come_in_their_time() {
    let mut config = server_config(Policy::AGENTX);
    config.keep_alive_us = Some(1_000_000);
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.lines.clear();
    assert_eq!(duo.server.poll_timeout().unwrap().why, "keep_alive");
    duo.wake_server(10);
    assert_eq!(duo.words(), "");
    duo.wake_server(1_000_000);
    assert_eq!(duo.words(), "keep_alive");
}

#[test]
fn each_bit_of_the_policy_can_be_turned_alone() {
    for (of, other) in [
        (Policy::AGENTX, Policy::CLAUDE),
        (Policy::CLAUDE, Policy::AGENTX),
        (Policy::AGENTX_FULL, Policy::CLAUDE),
    ] {
        for bit in Bit::ALL {
            let policy = of.with(*bit, &other);
            let mut config = server_config(policy);
            config.states = true;
            config.partial = true;
            config.replay = true;
            let mut duo = Duo::with(config, session_config(&policy));
            duo.play(
                "«init» «u1» calls(c1:write) «allow#1» ran(c1) reply «u2» begin text «interrupt:i1» settle «u3» fail(400) \
                 «u4» begin text «u5:now» settle reply",
            );
            let name = bit.name();
            assert_eq!(results(&duo).len(), 5, "{name}");
            let words = duo.words();
            assert!(words.contains("answer(i1)"), "{name}: {words}");
            let states: Vec<&str> = words
                .split(' ')
                .filter(|word| matches!(*word, "running" | "idle" | "requires_action"))
                .collect();
            assert_eq!(states.last(), Some(&"idle"), "{name}: {words}");
            duo.play("«eof»");
            assert_eq!(duo.exit, Some(0), "{name}");
        }
    }
}

#[test]
fn l2_l3_l4_l5_l6_the_server_keeps_the_laws_on_what_a_host_says() {
    let lines: Vec<Value> = vec![
        json!({"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":null,"sdkMcpServers":["house"]}}),
        user("u1"),
        json!({"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}),
        json!({"type":"control_request","request_id":"s","request":{"subtype":"get_settings"}}),
        json!({"type":"nonsense"}),
        user("u1"),
    ];
    let mut story: Vec<(ServerInput<Agentx>, Now)> = Vec::new();
    let at = |us| Now {
        mono_us: us,
        unix_ms: 1_796_008_000_000 + us / 1_000,
    };
    story.push((
        ServerInput::Said(Box::new(turnwire_proptests::world::Said::Event(Event {
            at: at(1),
            run: RunId::MAIN,
            seen: Seen::Real,
            what: What::Opened(Box::new(crate::agentx_kit::duo::info())),
        }))),
        at(1),
    ));
    for (number, line) in (2..).zip(&lines) {
        let bytes = format!("{line}\n").into_bytes();
        story.push((ServerInput::Bytes(bytes), at(number * 1_000)));
    }
    story.push((ServerInput::Woken, at(90_000_000)));
    story.push((ServerInput::End, at(91_000_000)));
    for policy in [Policy::AGENTX, Policy::AGENTX_FULL, Policy::CLAUDE] {
        let make = || {
            let mut config = ServerConfig::new([3; 32], policy);
            config.keep_alive_us = Some(7_000_000);
            ServerMachine::<Agentx>::new(config, Agentx::host_line_rules())
        };
        for law in [
            law_l2(make, &story, 3),
            law_l3(make, &story),
            law_l4(make, &story),
            law_l5(make, &story),
            law_l6(make, &story),
        ] {
            let broken = law.map_err(|broken| (broken.law, broken.why));
            assert_eq!(broken, Ok(()));
        }
    }
}
