//! Tools of the agent's and of the host's, addresses, approvals, and commands of the host's.

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use crate::support::omp::{order, text_of};
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

fn bash(id: &'static str, command: &str) -> Reply {
    openai::calls(&[(id, "bash", json!({ "command": command }))])
}

/// The last message of the request of this number.
fn told(provider: &Provider, number: usize) -> Value {
    let body = provider.request(number).json();
    body["messages"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn a_tool_runs_and_the_model_hears_of_it() {
    let home = Home::new();
    let provider = Provider::start([bash("c1", "echo out-of-the-tool"), openai::says("Seen.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Run it.");
    let mut seen = order(&lines);
    seen.retain(|kind| kind != "tool_execution_update");
    assert_eq!(
        seen[5..],
        [
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "tool_execution_start",
            "tool_execution_end",
            "message_start toolResult",
            "message_end toolResult",
            "turn_end",
            "turn_start",
            "message_start assistant",
            "message_update",
            "message_end assistant",
            "turn_end",
            "agent_end",
            "prompt_result"
        ]
    );
    let begun = of(&lines, "tool_execution_start")[0];
    assert_eq!(
        (&begun["toolName"], &begun["args"]["command"]),
        (&json!("bash"), &json!("echo out-of-the-tool"))
    );
    let ended = of(&lines, "tool_execution_end")[0];
    assert_eq!(ended["toolCallId"], begun["toolCallId"]);
    assert_eq!(ended["isError"], false);
    assert!(
        text_of(&ended["result"]).contains("out-of-the-tool"),
        "{ended}"
    );
    let heard = told(&provider, 2);
    assert_eq!(heard["role"], "tool");
    assert!(
        heard["content"]
            .as_str()
            .unwrap()
            .contains("out-of-the-tool")
    );
}

#[test]
fn a_command_that_fails_is_an_error() {
    let home = Home::new();
    let provider = Provider::start([bash("c1", "echo to-no-avail; exit 3"), openai::says("No.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Run it.");
    assert_eq!(of(&lines, "tool_execution_end")[0]["isError"], true);
    assert!(
        told(&provider, 2)["content"]
            .as_str()
            .unwrap()
            .contains("to-no-avail")
    );
}

#[test]
fn calls_of_one_reply_run_side_by_side_and_end_as_they_finish() {
    let home = Home::new();
    let reply = openai::calls(&[
        (
            "slow",
            "bash",
            json!({ "command": "while [ ! -e go ]; do sleep 0.02; done" }),
        ),
        ("fast", "bash", json!({ "command": "touch go" })),
    ]);
    let provider = Provider::start([reply, openai::says("Both.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let lines = program.turn("Run them.");
    let ends: Vec<&Value> = of(&lines, "tool_execution_end")
        .iter()
        .map(|line| &line["toolCallId"])
        .collect();
    assert_eq!(ends, ["fast", "slow"]);
}

fn lookup(program: &mut Program<Omp>) {
    let tool = json!({
        "name": "lookup_ticket", "description": "Looks a ticket up.", "loadMode": "essential",
        "parameters": { "type": "object", "properties": { "id": { "type": "number" } } },
    });
    let set = program.ask("set_host_tools", json!({ "tools": [tool] }));
    assert_eq!(set["data"]["toolNames"], json!(["lookup_ticket"]), "{set}");
}

#[test]
fn omp_11_a_tool_of_the_host_is_called_and_answers() {
    let home = Home::new();
    let call = openai::calls(&[("c1", "lookup_ticket", json!({ "id": 42 }))]);
    let provider = Provider::start([call, openai::says("It is open.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    lookup(&mut program);
    program.command("p", "prompt", json!({ "message": "Look it up." }));
    let call = program.see_type("host_tool_call");
    assert_eq!(
        (&call["toolName"], &call["arguments"], &call["toolCallId"]),
        (&json!("lookup_ticket"), &json!({ "id": 42 }), &json!("c1"))
    );
    let content = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    program.send(&json!({
        "type": "host_tool_update", "id": call["id"], "partialResult": content("looking"),
    }));
    let update = program.see_type("tool_execution_update");
    assert_eq!(text_of(&update["partialResult"]), "looking");
    program.send(&json!({
        "type": "host_tool_result", "id": call["id"], "result": content("ticket 42 is open"),
    }));
    let ended = program.see_type("tool_execution_end");
    assert_eq!(
        (&ended["isError"], text_of(&ended["result"])),
        (&json!(false), "ticket 42 is open".to_owned())
    );
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    let tools = provider.request(1).json()["tools"].to_string();
    assert!(tools.contains("lookup_ticket"), "{tools}");
    assert!(
        told(&provider, 2)["content"]
            .as_str()
            .unwrap()
            .contains("ticket 42 is open")
    );
}

#[test]
fn omp_11_an_abort_reaches_a_tool_of_the_host() {
    let home = Home::new();
    let provider = Provider::start([openai::calls(&[(
        "c1",
        "lookup_ticket",
        json!({ "id": 1 }),
    )])]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    lookup(&mut program);
    program.command("p", "prompt", json!({ "message": "Look it up." }));
    let call = program.see_type("host_tool_call");
    program.command("a", "abort", json!({}));
    let cancel = program.see_type("host_tool_cancel");
    assert_eq!(cancel["targetId"], call["id"]);
    let ended = program.see_type("tool_execution_end");
    assert_eq!(ended["isError"], true);
    program.see(&json!({ "type": "response", "id": "a", "success": true }));
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "aborted" }));
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_12_an_address_of_the_host_is_read_by_it() {
    let home = Home::new();
    let read = openai::calls(&[("c1", "read_file", json!({ "path": "db://users/42" }))]);
    let provider = Provider::start([read, openai::says("Alice.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let set = program.ask(
        "set_host_uri_schemes",
        json!({ "schemes": [{ "scheme": "DB" }] }),
    );
    assert_eq!(set["data"]["schemes"], json!(["db"]), "{set}");
    program.command("p", "prompt", json!({ "message": "Who is it?" }));
    let asked = program.see_type("host_uri_request");
    assert_eq!(
        (&asked["operation"], &asked["url"]),
        (&json!("read"), &json!("db://users/42"))
    );
    program
        .send(&json!({ "type": "host_uri_result", "id": asked["id"], "content": "name: Alice" }));
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
    assert!(
        told(&provider, 2)["content"]
            .as_str()
            .unwrap()
            .contains("name: Alice")
    );
}

#[test]
fn omp_13_a_call_is_approved_and_another_isnt() {
    let home = Home::new();
    let provider = Provider::start([
        bash("c1", "touch allowed"),
        openai::says("Done."),
        bash("c2", "touch denied"),
        openai::says("Then not."),
    ]);
    let mut program = Setup::omp(&home, &provider, "ask").start_as::<Omp>();
    for (id, verdict, error) in [("p1", "Approve", false), ("p2", "Deny", true)] {
        program.command(id, "prompt", json!({ "message": "Run it." }));
        let dialog = program.see(&json!({ "type": "extension_ui_request", "method": "select" }));
        let title = dialog["title"].as_str().unwrap();
        assert!(title.starts_with("Allow tool: bash"), "{title}");
        assert_eq!(dialog["options"], json!(["Approve", "Deny"]));
        program.send(
            &json!({ "type": "extension_ui_response", "id": dialog["id"], "value": verdict }),
        );
        assert_eq!(program.see_type("tool_execution_end")["isError"], error);
        program.see(&json!({ "type": "prompt_result", "id": id, "status": "completed" }));
    }
    assert!(home.read("allowed").is_some() && home.read("denied").is_none());
}

#[test]
fn omp_04_a_command_of_the_host_runs_beside_the_rest() {
    let home = Home::new();
    let provider = Provider::start([]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    let done = program.ask("bash", json!({ "command": "echo hello; exit 3" }));
    assert_eq!(
        (
            &done["data"]["exitCode"],
            &done["data"]["cancelled"],
            &done["data"]["output"]
        ),
        (&json!(3), &json!(false), &json!("hello\n"))
    );
    program.command(
        "long",
        "bash",
        json!({ "command": "touch begun; sleep 300" }),
    );
    crate::support::wait_for("the command to begin", || home.read("begun"));
    // Others go on meanwhile.
    program.data("get_state");
    assert_eq!(program.ask("abort_bash", json!({}))["success"], true);
    let cut = program.see(&json!({ "type": "response", "id": "long" }));
    assert_eq!(cut["data"]["cancelled"], true);
    assert!(cut["data"].get("exitCode").is_none(), "{cut}");
    let messages = program.data("get_messages");
    let roles: Vec<&Value> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["bashExecution", "bashExecution"]);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}
