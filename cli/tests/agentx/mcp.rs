//! MCP servers of the program's own. The server is this test program itself, see [`stands_in`].

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{results, text_of};
use crate::support::program::{Home, Program, Setup};
use crate::support::provider::Provider;
use crate::support::replies::openai;

/// Set where the program is the server: how it is.
const HOW: &str = "TURNWIRE_TEST_SERVER";

/// The server, where it is asked for; else nothing. What the test writes first is noise to its client.
#[test]
fn stands_in() {
    let Ok(how) = std::env::var(HOW) else {
        return;
    };
    if how == "hang" {
        std::fs::write("hangs", format!("{}\n", std::process::id())).unwrap();
        loop {
            std::thread::park();
        }
    }
    std::fs::write("began", "yes\n").unwrap();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else {
            continue;
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "stand-in", "version": "1.2" },
            }),
            Some("tools/list") => json!({ "tools": [
                { "name": "add", "description": "Adds", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } },
            ] }),
            Some("tools/call") => {
                let given = &message["params"]["arguments"];
                let sum = given["a"].as_i64().unwrap_or(0) + given["b"].as_i64().unwrap_or(0);
                json!({ "content": [{ "type": "text", "text": format!("sum {sum}") }] })
            }
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        let mut out = std::io::stdout();
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
    std::process::exit(0);
}

fn me() -> String {
    std::env::current_exe().unwrap().display().to_string()
}

/// The server, as hosts write it.
fn stand_in(how: &str) -> Value {
    json!({ "command": me(), "args": ["--exact", "mcp::stands_in", "--nocapture"], "env": { HOW: how } })
}

/// The same, in a settings file.
fn table(name: &str, how: &str) -> String {
    format!(
        "[mcp.servers.{name}]\ncommand = '{}'\nargs = ['--exact', 'mcp::stands_in', '--nocapture']\nenv = {{ {HOW} = '{how}' }}\n",
        me()
    )
}

fn config(servers: &Value) -> String {
    json!({ "mcpServers": servers }).to_string()
}

/// How a server stands, once it isn't pending.
fn settled(program: &mut Program<Agentx>, name: &str) -> Value {
    loop {
        let status = status(program, name);
        if status["status"] != "pending" {
            return status;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn status(program: &mut Program<Agentx>, name: &str) -> Value {
    let answer = program.ask(&json!({ "subtype": "mcp_status" }));
    let servers = answer["response"]["mcpServers"].as_array().unwrap();
    let found = servers.iter().find(|server| server["name"] == name);
    found.cloned().unwrap_or_default()
}

fn add() -> crate::support::provider::Reply {
    openai::calls(&[("c1", "mcp__house__add", json!({ "a": 19, "b": 23 }))])
}

#[test]
fn a_server_of_a_trusted_projects_settings_is_started_and_its_tool_is_asked_about_and_called() {
    for protocol in ["claude", "agentx"] {
        let home = Home::new();
        home.write(
            "turnwire.toml",
            &format!("[mcp]\nwait = 60\n{}", table("house", "on")),
        );
        let provider = Provider::start([add(), openai::says("It is 42.")]);
        let mut program = Setup::agentx(&home, protocol, &provider, "ask").start_as::<Agentx>();
        program.prompt("Add them.");
        // That a server calls its tool harmless is no reason not to ask.
        let (id, asked) = program.asked("can_use_tool");
        assert_eq!(asked["tool_name"], "mcp__house__add");
        program.answer(
            &id,
            &json!({ "behavior": "allow", "updatedInput": asked["input"] }),
        );
        let result = program.see_type("result");
        assert_eq!(result["result"], "It is 42.");
        assert_eq!(text_of(&results(program.seen())[0]["content"]), "sum 42");
        let tools = json!([{ "name": "add", "description": "Adds" }]);
        let rich = json!({
            "name": "house", "status": "connected", "tools": tools,
            "serverInfo": { "name": "stand-in", "version": "1.2" },
        });
        let plain = json!({ "name": "house", "status": "connected" });
        let want = if protocol == "claude" { rich } else { plain };
        assert_eq!(status(&mut program, "house"), want);
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
        let offered = provider.requests()[0].json()["tools"].to_string();
        assert!(offered.contains("mcp__house__add"), "{offered}");
    }
}

#[test]
fn a_server_of_a_project_that_nobody_trusts_isnt_started() {
    let home = Home::new();
    home.write("turnwire.toml", &table("house", "on"));
    let mut program = Setup::serve_in(&home, "claude").start_as::<Agentx>();
    program.turn("What is here?");
    assert_eq!(status(&mut program, "house"), Value::Null);
    program.close_input();
    assert!(program.wait().stderr.contains("isn't trusted"));
    assert!(home.read("began").is_none());
}

#[test]
fn servers_that_cant_be_keep_nobody_waiting_and_say_why() {
    let home = Home::new();
    let servers = json!({
        "hangs": stand_in("hang"), "far": { "type": "http", "url": "https://x" },
        "gone": { "command": "./no-such-program" },
    });
    let provider = Provider::start([openai::says("Hello.")]);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto")
        .args(&["--mcp-config", &config(&servers)])
        .start_as::<Agentx>();
    let answer = program.ask(&json!({ "subtype": "initialize" }));
    assert_eq!(answer["subtype"], "success");
    assert_eq!(status(&mut program, "hangs")["status"], "pending");
    let far = status(&mut program, "far");
    assert_eq!(far["status"], "failed");
    assert!(
        far["error"].as_str().unwrap().contains("processes"),
        "{far}"
    );
    let gone = settled(&mut program, "gone");
    assert_eq!(gone["status"], "failed");
    assert!(
        gone["error"].as_str().unwrap().contains("can't be started"),
        "{gone}"
    );
    let lines = program.turn("Greet me.");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    let names: Vec<&str> = init["mcp_servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["far", "gone", "hangs"]);
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("\"gone\" can't be used"),
        "{}",
        ended.stderr
    );
    let pid = home.read("hangs").unwrap_or_default();
    let alive = std::path::Path::new("/proc").join(pid.trim()).exists();
    assert!(pid.is_empty() || !alive, "it is left behind");
}

#[test]
fn ax_s08_servers_that_a_host_sets_are_started_once_that_is_answered() {
    let home = Home::new();
    let replies = [add(), openai::says("It is 42."), openai::says("None.")];
    let provider = Provider::start(replies);
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    program.ask(&json!({ "subtype": "initialize" }));
    let set = json!({ "house": stand_in("on"), "far": { "type": "sse", "url": "https://x" } });
    let answer = program.ask(&json!({ "subtype": "mcp_set_servers", "servers": set }));
    assert_eq!(answer["response"]["added"], json!(["house"]));
    assert_eq!(answer["response"]["removed"], json!([]));
    assert!(answer["response"]["errors"]["far"].is_string(), "{answer}");
    assert_eq!(settled(&mut program, "house")["status"], "connected");
    let lines = program.turn("Add them.");
    assert_eq!(text_of(&results(&lines)[0]["content"]), "sum 42");
    let off = json!({ "subtype": "mcp_toggle", "serverName": "house", "enabled": false });
    assert_eq!(program.ask(&off)["subtype"], "success");
    assert_eq!(status(&mut program, "house")["status"], "disabled");
    let on = json!({ "subtype": "mcp_toggle", "serverName": "house", "enabled": true });
    program.ask(&on);
    assert_eq!(settled(&mut program, "house")["status"], "connected");
    let again = json!({ "subtype": "mcp_reconnect", "serverName": "house" });
    assert_eq!(program.ask(&again)["subtype"], "success");
    assert_eq!(settled(&mut program, "house")["status"], "connected");
    let unknown = json!({ "subtype": "mcp_reconnect", "serverName": "shed" });
    assert_eq!(program.ask(&unknown)["subtype"], "error");
    let none = program.ask(&json!({ "subtype": "mcp_set_servers", "servers": {} }));
    assert_eq!(none["response"]["removed"], json!(["house"]));
    program.turn("What tools have you?");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    let last = provider.requests()[2].json()["tools"].to_string();
    assert!(!last.contains("mcp__house__add"), "{last}");
}

#[test]
fn tools_of_a_server_are_allowed_or_left_out_by_the_command_line() {
    for (flag, runs) in [("--allowedTools", true), ("--disallowedTools", false)] {
        let home = Home::new();
        let provider = Provider::start([add(), openai::says("Well.")]);
        let url = provider.url() + "/v1";
        home.settings(&format!(
            "[model]\napi = 'openai'\nbase_url = '{url}'\nname = 'm-1'\n[mcp]\nwait = 60\n{}",
            table("house", "on")
        ));
        let servers = config(&json!({ "shed": stand_in("on") }));
        let mut program = Setup::plain(&home, &["as", "claude"])
            .args(&[
                "--output-format",
                "stream-json",
                "--verbose",
                "--input-format",
                "stream-json",
            ])
            .args(&["--mcp-config", &servers, flag, "mcp__house"])
            .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
            .start_as::<Agentx>();
        program.turn("Add them.");
        let said = text_of(&results(program.seen())[0]["content"]);
        assert_eq!(said == "sum 42", runs, "{said}");
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
        let offered = provider.requests()[0].json()["tools"].to_string();
        assert!(offered.contains("mcp__shed__add"), "{offered}");
        assert_eq!(offered.contains("mcp__house__add"), runs, "{offered}");
    }
}

#[test]
fn with_the_strict_flag_the_servers_of_files_arent_there() {
    let home = Home::new();
    home.settings(&table("house", "on"));
    let servers = config(&json!({ "shed": stand_in("on") }));
    let mut program = Setup::serve_in(&home, "claude")
        .args(&["--strict-mcp-config", "--mcp-config", &servers])
        .start_as::<Agentx>();
    assert_eq!(settled(&mut program, "shed")["status"], "connected");
    assert_eq!(status(&mut program, "house"), Value::Null);
    program.close_input();
    program.wait();
}

#[test]
fn the_blocking_driver_starts_none_and_says_so_once() {
    let home = Home::new();
    let servers = config(&json!({ "shed": stand_in("on"), "house": stand_in("on") }));
    let mut program = Setup::plain(
        &home,
        &["serve", "--protocol", "claude", "--driver", "blocking"],
    )
    .args(&["--mcp-config", &servers])
    .start_as::<Agentx>();
    program.turn("What is here?");
    let answer = program.ask(&json!({ "subtype": "mcp_status" }));
    assert_eq!(answer["response"]["mcpServers"], json!([]));
    let set = json!({ "subtype": "mcp_set_servers", "servers": { "x": stand_in("on") } });
    assert_eq!(program.ask(&set)["subtype"], "error");
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.stderr.matches("no MCP server is started").count(), 1);
    assert!(home.read("began").is_none());
}
