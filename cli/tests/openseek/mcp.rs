//! MCP servers of the engine's own: what its host is told of them. The server is this test program itself, see [`stands_in`].

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use turnwire::protocol::openseek::Openseek;

use crate::support::openseek::{calls, says};
use crate::support::program::{Home, Setup};
use crate::support::provider::Provider;

/// Set where the program is the server: how it is.
const HOW: &str = "TURNWIRE_TEST_SERVER";

/// The names of its tools; `None`: it doesn't say.
fn tools(how: &str) -> Option<Vec<String>> {
    let named = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect());
    match how {
        "on" => named(&["add"]),
        "odd" => named(&["add it", "add", "add"]),
        "many" => Some((0..130).map(|number| format!("t{number:03}")).collect()),
        "none" => named(&[]),
        _ => None,
    }
}

/// The server, where it is asked for; else nothing. What the test writes first is noise to its client.
#[test]
fn stands_in() {
    let Ok(how) = std::env::var(HOW) else {
        return;
    };
    if how == "gone" {
        std::process::exit(3);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else {
            continue;
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": message["id"] });
        let result = match (message["method"].as_str(), tools(&how)) {
            (Some("initialize"), _) => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "stand-in", "version": "1" },
            }),
            (Some("tools/list"), Some(names)) => {
                let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
                json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() })
            }
            (Some("tools/list"), None) if how == "mute" => continue,
            (Some("tools/list"), None) => {
                answer["error"] = json!({ "code": -32000, "message": "not today" });
                Value::Null
            }
            (Some("tools/call"), _) => {
                let given = &message["params"]["arguments"];
                let sum = given["a"].as_i64().unwrap_or(0) + given["b"].as_i64().unwrap_or(0);
                json!({ "content": [{ "type": "text", "text": format!("sum {sum}") }] })
            }
            _ => continue,
        };
        if answer.get("error").is_none() {
            answer["result"] = result;
        }
        let mut out = std::io::stdout();
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
    std::process::exit(0);
}

/// A home whose project has these servers: name, how they are, more of their settings.
fn home(servers: &[(&str, &str, &str)]) -> Home {
    let home = Home::new();
    let me = std::env::current_exe().unwrap();
    let mut settings = String::from("[mcp]\nwait = 60\n");
    for (name, how, more) in servers {
        settings += &format!(
            "[mcp.servers.{name}]\ncommand = '{}'\nargs = ['--exact', 'mcp::stands_in', '--nocapture']\n\
             env = {{ {HOW} = '{how}' }}\n{more}\n",
            me.display()
        );
    }
    home.write("turnwire.toml", &settings);
    home
}

/// The lines about servers that came before the first step, without their order.
fn told(lines: &[Value]) -> Vec<Value> {
    let before = lines
        .iter()
        .take_while(|line| line["event"] != "agent_step");
    let about = |line: &&Value| line["event"].as_str().unwrap().starts_with("mcp_");
    before.filter(about).cloned().collect()
}

/// One turn of an engine that serves; what it said of its servers before.
fn served(home: &Home) -> Vec<Value> {
    let provider = Provider::start([says("Done.")]);
    let mut program = Setup::openseek(home, &provider, "auto").start_as::<Openseek>();
    program.prompt("go");
    let told = told(program.seen());
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    told
}

#[test]
fn os_10_tools_of_a_server_are_told_of_before_the_first_step_and_called() {
    let home = home(&[("house", "on", "")]);
    let call = json!({ "a": 19, "b": 23 });
    let provider = Provider::start([calls("mcp__house__add", &call), says("It is 42.")]);
    let mut program = Setup::openseek(&home, &provider, "ask").start_as::<Openseek>();
    program.send(&json!({ "command": "prompt", "text": "Add them." }));
    let asked = program.see_event("approval_requested");
    assert_eq!(asked["tool_name"], "mcp__house__add");
    program.send(&json!({ "command": "approval", "id": asked["id"], "allow": true }));
    let result = program.see_event("tool_result");
    assert_eq!(
        (
            &result["tool_name"],
            &result["content"],
            &result["is_error"]
        ),
        (&json!("mcp__house__add"), &json!("sum 42"), &json!(false))
    );
    program.see_event("agent_finished");
    let registered = json!({
        "event": "mcp_tools_registered", "servers": 1, "tools": 1, "names": ["mcp__house__add"],
    });
    assert_eq!(told(program.seen()), [registered]);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    assert!(
        provider.requests()[0].json()["tools"]
            .to_string()
            .contains("mcp__house__add")
    );
}

#[test]
fn os_10_a_run_tells_of_its_servers_behind_its_session() {
    let home = home(&[("house", "on", "")]);
    let provider = Provider::start([says("Done.")]);
    let setup = Setup::openseek(&home, &provider, "auto");
    let setup = setup.args(&["--mode", "run", "--task", "do it"]);
    let ended = setup.start_as::<Openseek>().wait();
    assert_eq!(ended.code, Some(0));
    let events: Vec<&str> = ended
        .lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .take(3)
        .collect();
    assert_eq!(
        events,
        ["session_started", "mcp_tools_registered", "agent_step"]
    );
}

#[test]
fn os_10_servers_that_fail_are_told_of_and_the_turn_goes_on() {
    let home = home(&[
        ("absent", "gone", ""),
        ("empty", "none", ""),
        ("refuses", "error", ""),
        ("silent", "mute", "connect_limit = 1"),
    ]);
    let mut told = served(&home);
    told.sort_by_key(|line| line["event"].to_string());
    let errors: Vec<String> = told
        .iter_mut()
        .map(|line| match line.as_object_mut().unwrap().remove("error") {
            Some(error) => error.as_str().unwrap().to_owned(),
            None => String::new(),
        })
        .collect();
    assert_eq!(
        told,
        [
            json!({ "event": "mcp_connect_failed", "server": "absent" }),
            json!({ "event": "mcp_list_tools_failed", "server": "refuses" }),
            json!({ "event": "mcp_list_tools_timeout", "server": "silent" }),
            json!({ "event": "mcp_no_tools", "server": "empty" }),
            json!({ "event": "mcp_tools_registered", "servers": 1, "tools": 0, "names": [] }),
        ]
    );
    assert!(
        !errors[0].is_empty() && errors[1].contains("not today"),
        "{errors:?}"
    );
}

#[test]
fn os_10_tools_that_have_other_names_or_are_too_many_are_told_of() {
    let told = served(&home(&[("house", "odd", "")]));
    let of = |event: &str| -> Vec<Value> {
        let found = told.iter().filter(|line| line["event"] == *event);
        found.cloned().collect()
    };
    assert_eq!(
        of("mcp_tool_duplicate"),
        [json!({ "event": "mcp_tool_duplicate", "server": "house", "tool": "add" })]
    );
    let renamed = of("mcp_tool_renamed");
    assert_eq!((renamed.len(), &renamed[0]["from"]), (1, &json!("add it")));
    let names = &of("mcp_tools_registered")[0]["names"];
    let to = renamed[0]["to"].as_str().unwrap();
    assert!(to.starts_with("mcp__house__add_it"), "{to}");
    assert_eq!(names, &json!([to, "mcp__house__add"]));

    let many = ["a", "b", "c", "d", "e"].map(|name| (name, "many", ""));
    let told = served(&home(&many));
    let capped = |name| json!({ "event": "mcp_tools_capped", "server": name, "kept": 128 });
    for name in ["a", "b", "c", "d"] {
        assert!(told.contains(&capped(name)), "{name}: {told:?}");
    }
    let over = json!({ "event": "mcp_server_skipped_over_cap", "server": "e" });
    assert!(told.contains(&over), "{told:?}");
    let counts = told.iter().filter_map(|line| line["tools"].as_u64());
    assert_eq!(counts.max(), Some(512));
}
