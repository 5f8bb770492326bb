//! What a host is answered outside its turns: providers, settings, the queue, and lines that are faults.

use crate::agentx_kit::duo::{Duo, server_config, session_config};
use crate::server::{answer, claude, one, results, strict, user};
use serde_json::{Value, json};
use turnwire::protocol::agentx::{AgentxOutcome, Policy};
use turnwire::vocab::*;

#[test]
fn ax_s21_ax_s25_the_strict_wire_names_the_selected_provider_and_no_other() {
    let mut config = server_config(Policy::AGENTX);
    config.providers = vec![RawJson(
        json!({"value":"sol-east","id":"sol-east","providerType":"azure_openai","model":"m-1","displayName":"sol-east (m-1)","description":"d","default":false,"selected":true,"supportsEffort":true,"supportedReasoningEfforts":["low","high"],"defaultReasoningEffort":"high","reasoning":{"supported":true,"efforts":["low","high"],"defaultEffort":"high"}}).to_string().as_str().into(),
    ), RawJson(
        json!({"value":"b","id":"b","providerType":"openai","model":"m-2","displayName":"b (m-2)","description":"d","default":true,"selected":false,"supportsEffort":false,"supportedReasoningEfforts":[],"reasoning":{"supported":false,"efforts":[]}}).to_string().as_str().into(),
    )];
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    let init = one(&mut duo);
    assert_eq!(init["subtype"], "init");
    assert_eq!(init["apiKeySource"], "user");
    assert_eq!(init["agentx_version"], "1.2.3");
    assert_eq!(init["provider"], "sol-east");
    assert_eq!(init["provider_type"], "azure_openai");
    assert_eq!(
        init["reasoning_capabilities"],
        json!({"supported":true,"efforts":["low","high"],"defaultEffort":"high"})
    );
    assert!(init.get("providers").is_none() && init.get("claude_code_version").is_none());
    // AX-S26: the whole catalogue in its order, one of it selected; one model.
    let payload = answer(&mut duo, json!({"subtype":"initialize"}))["response"].clone();
    let ids: Vec<&str> = payload["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|provider| provider["value"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["sol-east", "b"]);
    assert_eq!(payload["models"].as_array().unwrap().len(), 1);
    assert_eq!(payload["models"][0]["value"], "m-1");
    assert_eq!(
        payload["models"][0]["supportedReasoningEfforts"],
        json!(["low", "high"])
    );
    assert_eq!(payload["account"]["apiKeySource"], "user");
    assert_eq!(payload["commands"][0]["name"], "help");
    assert_eq!(payload["agents"], json!([]));
    assert_eq!(payload["output_style"], "default");
    assert!(payload.get("claude_code_version").is_none());
}

#[test]
fn ax_s24_without_the_capability_attachments_are_refused_and_text_is_not() {
    let mut duo = strict();
    duo.say(
        &json!({"type":"attachment_import","version":1,"operation":"commit","upload_id":"upl_1"}),
    );
    let line = one(&mut duo);
    assert_eq!(line["type"], "attachment_import_rejected");
    assert_eq!(line["reason"], "attachments_unavailable");
    let sha = "0123456789abcdef".repeat(4);
    duo.say(&json!({"type":"user","uuid":"3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27","message":{"role":"user","content_version":1,"content":[{"type":"attachment_ref","attachment_id":"att_1","kind":"image","name":"a.png","mime_type":"image/png","size_bytes":5,"sha256":sha,"storage_id":format!("blob_sha256_{sha}")}]}}));
    let line = one(&mut duo);
    assert_eq!(line["stop_reason"], "input_error");
    assert_eq!(line["prompt_uuid"], "3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27");
    assert!(duo.commands.is_empty());
    duo.say(&json!({"type":"user","uuid":"u1","message":"plain"}));
    duo.say(&json!({"type":"user","uuid":"u2","message":{"content":[{"type":"input_text","text":"a"},{"type":"text","text":"b"}]}}));
    duo.play("reply reply");
    assert_eq!(results(&duo).len(), 2);
}

#[test]
fn ax_s28_wire_025_ax_03_live_setters_of_the_strict_wire_fail_each_in_its_way() {
    let mut duo = strict();
    let error = |duo: &mut Duo, request: Value| {
        let response = answer(duo, request);
        assert_eq!(response["subtype"], "error");
        response["error"].as_str().unwrap().to_owned()
    };
    assert!(error(&mut duo, json!({"subtype":"set_model","model":"m-2"})).contains("--provider"));
    assert!(
        error(&mut duo, json!({"subtype":"set_model","model":"sol-east"})).contains("--provider")
    );
    assert!(
        error(
            &mut duo,
            json!({"subtype":"set_permission_mode","mode":"plan"})
        )
        .contains("--permission-mode")
    );
    assert!(
        error(
            &mut duo,
            json!({"subtype":"set_max_thinking_tokens","max_thinking_tokens":null})
        )
        .contains("thinking-token budget")
    );
    for subtype in [
        "set_provider",
        "hook_callback",
        "mcp_message",
        "rewind_files",
        "x\"y",
    ] {
        assert_eq!(
            error(&mut duo, json!({"subtype":subtype})),
            format!("unsupported control request {subtype:?}")
        );
    }
    for subtype in ["initialize", "interrupt", "mcp_status", "get_context_usage"] {
        let response = answer(&mut duo, json!({"subtype":subtype,"hooks":null}));
        assert_eq!(response["subtype"], "error", "{subtype}");
    }
    duo.lines.clear();
    duo.say(&json!({"type":"control_request","request_id":"r9"}));
    assert_eq!(one(&mut duo)["response"]["subtype"], "error");
    assert!(duo.commands.is_empty(), "{:?}", duo.commands);
    for subtype in ["initialize", "interrupt", "mcp_status", "get_context_usage"] {
        let response = answer(&mut duo, json!({"subtype":subtype}));
        assert_eq!(response["subtype"], "success", "{subtype}");
        let payload = response.get("response");
        assert_eq!(payload.is_none(), subtype == "interrupt", "{subtype}");
    }
}

#[test]
fn claude_sets_model_mode_and_thinking_while_it_lives() {
    let mut duo = claude();
    let response = answer(&mut duo, json!({"subtype":"set_model","model":"m-1"}));
    assert_eq!(response["response"], json!({"model":"m-1"}));
    duo.lines.clear();
    duo.ask(
        "r2",
        json!({"subtype":"set_permission_mode","mode":"acceptEdits"}),
    );
    assert_eq!(duo.words(), "answer(r2) mode(acceptEdits)");
    let response = answer(
        &mut duo,
        json!({"subtype":"set_permission_mode","mode":"bogus"}),
    );
    assert_eq!(response["error_code"], "invalid_mode");
    let response = answer(
        &mut duo,
        json!({"subtype":"set_max_thinking_tokens","max_thinking_tokens":1024}),
    );
    assert_eq!(response, json!({"subtype":"success","request_id":"r1"}));
    let response = answer(&mut duo, json!({"subtype":"mcp_status"}));
    assert_eq!(response["response"], json!({"mcpServers":[]}));
    let response = answer(
        &mut duo,
        json!({"subtype":"cancel_async_message","message_uuid":"nope"}),
    );
    assert_eq!(response["response"], json!({"cancelled":false}));
    let response = answer(&mut duo, json!({"subtype":"stop_task","task_id":"nope"}));
    assert_eq!(response["response"], json!({}));
    let response = answer(&mut duo, json!({"subtype":"can_use_tool"}));
    assert_eq!(response["subtype"], "error");
    duo.lines.clear();
    duo.ask("r3", json!({"subtype":"get_context_usage"}));
    let usage = one(&mut duo)["response"]["response"].clone();
    assert_eq!(usage["model"], "m-1");
    assert_eq!(usage["gridRows"].as_array().unwrap().len(), 10);
    duo.ask("r4", json!({"subtype":"nonsense"}));
    duo.settle_ask(AgentxOutcome::Default);
    let response = one(&mut duo)["response"].clone();
    assert_eq!(
        response["error"],
        "Unsupported control request subtype: nonsense"
    );
    assert_eq!(response["error_code"], "unsupported_request");
}

#[test]
fn a_queued_message_is_taken_back_and_said_to_be_cancelled_first() {
    let mut duo = claude();
    duo.play("«u1» begin text «u2» «u3»");
    duo.lines.clear();
    duo.ask(
        "r1",
        json!({"subtype":"cancel_async_message","message_uuid":"u3"}),
    );
    assert_eq!(duo.words(), "cancelled(u3) answer(r1)");
    duo.ask("r2", json!({"subtype":"interrupt"}));
    let queued = duo.lines[0]["response"]["response"].clone();
    assert_eq!(queued, json!({"still_queued":["u2"]}));
}

#[test]
fn wire_020_a_full_queue_refuses_and_leaves_the_turn_alone() {
    let mut duo = strict();
    duo.play("«u1» begin text");
    for number in 0..128 {
        duo.say(&user(&format!("q{number}")));
    }
    duo.lines.clear();
    duo.commands.clear();
    duo.say(&json!({"type":"user","uuid":"x","priority":"now","message":{"role":"user","content":"hi"}}));
    let line = one(&mut duo);
    assert_eq!(line["stop_reason"], "input_error");
    assert_eq!(line["prompt_uuid"], "x");
    assert_eq!(line["num_turns"], 0);
    assert_eq!(line["total_cost_usd"], Value::Null);
    assert_eq!(line["modelUsage"]["m-1"]["costUSD"], Value::Null);
    assert!(duo.commands.is_empty());
    duo.play("text fin(end_turn)");
    assert!(duo.words().starts_with("assistant(text) end(success,u1)"));
}

#[test]
fn a_prompt_that_was_accepted_is_not_run_again() {
    let mut config = server_config(Policy::AGENTX);
    config.replay = true;
    config.accepted = vec!["old".into()];
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.play("«u1»");
    assert_eq!(duo.words(), "init replay(u1) running");
    duo.play("«u2» «u2»");
    let line = one(&mut duo);
    assert_eq!(line["stop_reason"], "input_error", "it is queued");
    duo.play("reply reply «u1» «u2» «old»");
    assert_eq!(
        duo.words(),
        "assistant(text) end(success,u1) idle replay(u2) running assistant(text) end(success,u2) idle replay(u1) \
         replay(u2) replay(old)"
    );
    let replay: Value = serde_json::from_str(&duo.raw[1]).unwrap();
    assert_eq!(
        replay["message"],
        json!({"role":"user","content":[{"type":"text","text":"text of u1"}]})
    );
    assert_eq!(replay["parent_tool_use_id"], Value::Null);
    let mut duo = strict();
    duo.play("«u1» reply");
    duo.lines.clear();
    duo.play("«u1»");
    assert_eq!(duo.words(), "", "silence without replay");
}

#[test]
fn ax_p29_a_matched_answer_is_replayed_and_no_other() {
    let mut config = server_config(Policy::AGENTX);
    config.replay = true;
    let mut duo = Duo::with(config, session_config(&Policy::AGENTX));
    duo.play("«u1» calls(c1:write)");
    duo.lines.clear();
    duo.play("«deny#1» «deny#1»");
    let answers = duo
        .lines
        .iter()
        .filter(|line| line["type"] == "control_response")
        .count();
    assert_eq!(answers, 1);
}

#[test]
fn wire_002_unknown_types_are_passed_over() {
    let mut duo = strict();
    duo.say(&json!({"type":"novel","x":1}));
    assert_eq!((duo.words().as_str(), duo.diagnostics.len()), ("", 1));
    let mut duo = claude();
    duo.say(&json!({"type":"novel","x":1}));
    assert_eq!((duo.words().as_str(), duo.diagnostics.len()), ("", 0));
}

#[test]
fn wire_001_a_fatal_line_ends_the_turn_and_the_process() {
    let mut duo = strict();
    duo.play("«u1» calls(c1:write) «u2»");
    duo.lines.clear();
    duo.host(r#"{"type":"user","session_id":"another","message":"hi"}"#);
    duo.play("settle");
    assert_eq!(
        duo.words(),
        "result(c1,error) end(error_during_execution,u1) idle end(error_during_execution,null) exit(1)"
    );
}

#[test]
fn a_host_that_withdraws_a_request_denies_it_in_the_strict_wire_alone() {
    for (policy, words) in [
        (Policy::AGENTX, "running result(c1,error)"),
        (Policy::CLAUDE, ""),
    ] {
        let mut duo = Duo::new(policy);
        duo.play("«u1» calls(c1:write)");
        duo.lines.clear();
        let id = duo.requests[0]["request_id"].clone();
        duo.say(&json!({"type":"control_cancel_request","request_id":id}));
        assert_eq!(duo.words(), words);
    }
}

#[test]
fn what_nobody_can_be_asked_about_is_denied_and_said() {
    let mut config = server_config(Policy::CLAUDE);
    config.asks = false;
    let mut duo = Duo::with(config, session_config(&Policy::CLAUDE));
    duo.play("«u1» calls(c1:write) reply");
    assert_eq!(
        duo.words(),
        "queued(u1) started(u1) init assistant(text) assistant(tool_use) permission_denied result(c1,error) \
         assistant(text) end(success,u1) completed(u1)"
    );
}

#[test]
fn a_result_names_the_calls_that_were_denied_and_counts_user_records() {
    let mut duo = claude();
    duo.play("«u1» calls(c1:write) «deny#1» reply");
    let result = results(&duo)[0];
    assert_eq!(
        result["permission_denials"],
        json!([{"tool_name":"write","tool_use_id":"c1","tool_input":{"path":"a"}}])
    );
    assert_eq!(result["num_turns"], 2);
    assert_eq!(result["terminal_reason"], "completed");
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["result"], "Hello ");
    assert!(result.get("errors").is_none());
}
