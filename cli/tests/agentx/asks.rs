//! Permissions, hooks and tools of the host's, and interrupts.

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{bash, order, results, text_of};
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Gate, Provider, Reply};
use crate::support::replies::openai;

fn asking(home: &Home, protocol: &str, provider: &Provider) -> Program<Agentx> {
    Setup::agentx(home, protocol, provider, "ask").start_as()
}

#[test]
fn ax_p11_a_call_runs_with_the_input_that_the_host_gives_it() {
    for protocol in ["agentx", "claude"] {
        let home = Home::new();
        let provider = Provider::start([bash(protocol, "echo asked"), openai::says("Done.")]);
        let mut program = asking(&home, protocol, &provider);
        program.prompt("Run it.");
        let (id, request) = program.asked("can_use_tool");
        assert_eq!(request["input"], json!({ "command": "echo asked" }));
        assert_eq!(request["tool_use_id"], "c1");
        let changed = json!({ "command": "echo changed" });
        program.answer(
            &id,
            &json!({ "behavior": "allow", "updatedInput": changed }),
        );
        program.see_type("result");
        let outcome = &results(program.seen())[0];
        assert!(
            text_of(&outcome["content"]).contains("changed"),
            "{outcome}"
        );
    }
}

#[test]
fn ax_p18_a_deny_reaches_the_model_or_ends_the_turn() {
    let home = Home::new();
    let provider = Provider::start([
        bash("claude", "echo no"),
        openai::says("Then not."),
        bash("claude", "echo no"),
        openai::says("On."),
    ]);
    let mut program = asking(&home, "claude", &provider);
    program.prompt("Run it.");
    let (id, _) = program.asked("can_use_tool");
    program.answer(
        &id,
        &json!({ "behavior": "deny", "message": "not on a Monday" }),
    );
    let result = program.see_type("result");
    assert_eq!(
        (&result["subtype"], &result["result"]),
        (&json!("success"), &json!("Then not."))
    );
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "c1");
    assert!(text_of(&results(program.seen())[0]["content"]).contains("not on a Monday"));
    program.prompt("Again.");
    let (id, _) = program.asked("can_use_tool");
    program.answer(
        &id,
        &json!({ "behavior": "deny", "message": "stop it", "interrupt": true }),
    );
    let result = program.see_type("result");
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("error_during_execution"), &json!(true))
    );
    let lines = program.turn("And now?");
    assert_eq!(of(&lines, "result")[0]["result"], "On.");
}

#[test]
fn ax_s05_ax_p22_a_question_that_is_open_when_input_ends_denies_and_the_turn_goes_on() {
    for protocol in ["agentx", "claude"] {
        let home = Home::new();
        let provider = Provider::start([bash(protocol, "touch made"), openai::says("Then not.")]);
        let mut program = asking(&home, protocol, &provider);
        program.prompt("Run it.");
        program.asked("can_use_tool");
        program.close_input();
        let ended = program.wait();
        assert_eq!(ended.of("result")[0]["result"], "Then not.");
        assert_eq!(ended.code, Some(0));
        assert!(home.read("made").is_none());
    }
}

#[test]
fn nobody_to_ask_denies_and_says_so() {
    let home = Home::new();
    let provider = Provider::start([bash("claude", "touch made"), openai::says("Then not.")]);
    let setup = Setup::agentx(&home, "claude", &provider, "ask").args(&["--nobody-to-ask"]);
    let mut program = setup.start_as::<Agentx>();
    let lines = program.turn("Run it.");
    assert!(order(&lines).contains(&"system permission_denied".to_owned()));
    assert_eq!(
        of(&lines, "result")[0]["permission_denials"][0]["tool_use_id"],
        "c1"
    );
    assert!(home.read("made").is_none());
}

#[test]
fn hooks_of_the_host_see_a_call_before_and_after() {
    let home = Home::new();
    let provider = Provider::start([bash("claude", "echo asked"), openai::says("Done.")]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    let hook = |id: &str| json!([{ "matcher": null, "hookCallbackIds": [id] }]);
    let hooks = json!({ "PreToolUse": hook("hook_0"), "PostToolUse": hook("hook_1") });
    program.ask(&json!({ "subtype": "initialize", "hooks": hooks }));
    program.prompt("Run it.");
    let (id, before) = program.asked("hook_callback");
    assert_eq!(before["callback_id"], "hook_0");
    assert_eq!(before["input"]["hook_event_name"], "PreToolUse");
    assert_eq!(before["input"]["cwd"], home.project().to_str().unwrap());
    let input = json!({ "command": "echo changed" });
    program.answer(
        &id,
        &json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
        }}),
    );
    let (id, after) = program.asked("hook_callback");
    assert_eq!(after["callback_id"], "hook_1");
    assert_eq!(after["input"]["tool_input"], input);
    program.answer(&id, &json!({}));
    program.see_type("result");
    assert!(text_of(&results(program.seen())[0]["content"]).contains("changed"));
}

/// Answers the next message to a server of the host's, and gives it.
fn serve(program: &mut Program<Agentx>, result: &Value) -> Value {
    loop {
        let (id, request) = program.asked("mcp_message");
        let message = request["message"].clone();
        assert_eq!(request["server_name"], "house");
        let rpc = message["id"].clone();
        if rpc.is_null() {
            program.answer(
                &id,
                &json!({ "mcp_response": { "jsonrpc": "2.0", "result": {}, "id": 0 } }),
            );
            continue;
        }
        let response = json!({ "jsonrpc": "2.0", "id": rpc, "result": result });
        program.answer(&id, &json!({ "mcp_response": response }));
        return message;
    }
}

#[test]
fn a_tool_of_the_host_is_called_over_the_wire() {
    let home = Home::new();
    let call = openai::calls(&[("c1", "mcp__house__add", json!({ "a": 19, "b": 23 }))]);
    let provider = Provider::start([call, openai::says("It is 42.")]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    program.request(
        "i1",
        &json!({ "subtype": "initialize", "sdkMcpServers": ["house"] }),
    );
    program.prompt("Add them.");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "house", "version": "1" } });
    assert_eq!(serve(&mut program, &greeting)["method"], "initialize");
    let tools = json!({ "tools": [{ "name": "add", "description": "Adds", "inputSchema": { "type": "object" } }] });
    assert_eq!(serve(&mut program, &tools)["method"], "tools/list");
    let called = serve(
        &mut program,
        &json!({ "content": [{ "type": "text", "text": "sum 42" }] }),
    );
    assert_eq!(called["method"], "tools/call");
    assert_eq!(called["params"]["arguments"], json!({ "a": 19, "b": 23 }));
    let result = program.see_type("result");
    assert_eq!(result["result"], "It is 42.");
    assert_eq!(text_of(&results(program.seen())[0]["content"]), "sum 42");
}

#[test]
fn wire_010_ax_s11_an_interrupt_is_acknowledged_and_the_stream_stays_usable() {
    for (protocol, payload) in [
        ("agentx", Value::Null),
        ("claude", json!({ "still_queued": [] })),
    ] {
        let home = Home::new();
        let gate = Gate::new();
        let held = Reply::stream().bytes(openai::text("I begin")).gate(&gate);
        let provider = Provider::start([held, openai::says("On we go.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto").args(&["--partial"]);
        let mut program = setup.start_as::<Agentx>();
        program.prompt("Talk.");
        program.see_type("stream_event");
        let answer = program.ask(&json!({ "subtype": "interrupt" }));
        assert_eq!(
            (&answer["subtype"], &answer["response"]),
            (&json!("success"), &payload)
        );
        let result = program.see_type("result");
        assert_eq!(result["subtype"], "error_during_execution");
        gate.open();
        let lines = program.turn("And now?");
        assert_eq!(of(&lines, "result")[0]["result"], "On we go.");
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
    }
}

#[test]
fn an_interrupt_ends_a_command_and_all_that_it_started() {
    let home = Home::new();
    let provider = Provider::start([
        bash("claude", "sleep 60 & touch begun; sleep 60"),
        openai::says("On."),
    ]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    program.prompt("Run it.");
    crate::support::wait_for("the command", || home.read("begun"));
    program.ask(&json!({ "subtype": "interrupt" }));
    let result = program.see_type("result");
    assert_eq!(result["terminal_reason"], "aborted_tools");
    let lines = program.turn("And now?");
    assert_eq!(of(&lines, "result")[0]["result"], "On.");
    program.close_input();
    // Nothing is left behind: the harness looks.
    assert_eq!(program.wait().code, Some(0));
}
