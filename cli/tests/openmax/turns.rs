//! Turns that go well.

use serde_json::{Value, json};

use crate::support::program::{Home, KEY, Setup, joined, of, types};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::{anthropic, openai};

#[test]
fn om_01_hello_is_the_first_line_and_needs_no_input_and_no_network() {
    let home = Home::new();
    let mut program = Setup::serve(&home).start();
    let hello = program.see_type("hello");
    assert_eq!(hello["proto"], "openmax-stdio/6");
    assert_eq!(hello["protocol_version"], 6);
    assert_eq!(hello["continued"], false);
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(hello["project"], home.project().to_str().unwrap());
    let id = hello["session_id"].as_str().unwrap();
    assert!(
        id.len() == 36 && id.as_bytes()[14] == b'4' && id.to_lowercase() == id,
        "a UUID v4: {id}"
    );
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn the_readmes_command_shows_a_whole_turn_with_a_tool_call_and_needs_nothing() {
    let home = Home::new();
    home.write("notes.txt", "x");
    let ended =
        Setup::serve(&home).run("{\"cmd\":\"user\",\"text\":\"What is in this folder?\"}\n");
    assert_eq!(ended.code, Some(0));
    let types = ended.types();
    assert_eq!(
        types.iter().filter(|kind| **kind == "tool_start").count(),
        1,
        "{types:?}"
    );
    assert_eq!(
        (types[0], types[1], types[types.len() - 1]),
        ("hello", "budget", "done")
    );
    assert!(
        ended.of("tool_end")[0]["output"]
            .as_str()
            .unwrap()
            .contains("notes.txt")
    );
    assert!(!joined(&ended.lines, "token").is_empty());
    // What it is stands on stderr, on one line.
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("built-in script"), "{}", ended.stderr);
    // And it left nothing behind, no trust either.
    assert!(!home.path("state/turnwire/trust.toml").exists());
}

#[test]
fn om_20_a_text_turn_with_usage() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::text("Hel"))
        .bytes(openai::text("lo, \u{2028}Grüße 🦀"))
        .bytes(openai::finish("stop"))
        .bytes(openai::usage(20, 7, 5))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).key("TEST_KEY").start();
    let lines = program.turn("Say hello.");
    assert_eq!(
        types(&lines)[types(&lines).len() - 5..],
        ["budget", "token", "usage", "message_done", "done"]
    );
    assert_eq!(joined(&lines, "token"), "Hello, \u{2028}Grüße 🦀");
    assert_eq!(
        of(&lines, "message_done")[0]["text"],
        "Hello, \u{2028}Grüße 🦀"
    );
    let usage = of(&lines, "usage")[0];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(20), &json!(7))
    );
    assert_eq!(usage["cached_tokens"], 5);
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
    let request = provider.request(1);
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    let body = request.json();
    assert_eq!(
        (&body["model"], &body["stream"]),
        (&json!("m-1"), &json!(true))
    );
    assert_eq!(
        body["messages"].as_array().unwrap().last().unwrap()["content"],
        "Say hello."
    );
    assert!(body.get("temperature").is_none(), "{body}");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_13_thinking_then_text() {
    let home = Home::new();
    let reply = Reply::stream()
        .bytes(openai::thinking("Let me "))
        .bytes(openai::thinking("see."))
        .bytes(openai::text("Yes."))
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("Well?");
    assert_eq!(joined(&lines, "thinking"), "Let me see.");
    assert_eq!(joined(&lines, "token"), "Yes.");
    assert_eq!(
        types(&lines)[types(&lines).len() - 5..],
        ["budget", "thinking", "token", "message_done", "done"]
    );
    // The address wasn't the provider's own and no key was named, so none was sent.
    assert_eq!(provider.request(1).header("authorization"), None);
}

#[test]
fn om_13_a_tool_call_writes_a_file_unasked_in_auto() {
    let home = Home::new();
    let arguments = json!({ "path": "made.txt", "content": "one\ntwo\n" });
    let provider = Provider::start([
        openai::calls(&[("c1", "write_file", arguments)]),
        openai::says("Made."),
    ]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("Make it.");
    assert_eq!(home.read("made.txt").as_deref(), Some("one\ntwo\n"));
    let shown: Vec<&str> = types(&lines)
        .into_iter()
        .skip_while(|kind| *kind != "budget")
        .collect();
    assert_eq!(
        shown,
        [
            "budget",
            "message_done",
            "tool_start",
            "diff",
            "tool_end",
            "budget",
            "token",
            "message_done",
            "done"
        ]
    );
    let start = of(&lines, "tool_start")[0];
    assert_eq!(
        (&start["call_id"], &start["name"]),
        (&json!("c1"), &json!("write_file"))
    );
    assert_eq!(
        start["args"],
        json!({ "path": "made.txt", "content": "one\ntwo\n" })
    );
    let diff = of(&lines, "diff")[0];
    assert_eq!(
        (&diff["path"], &diff["added"], &diff["removed"]),
        (&json!("made.txt"), &json!(2), &json!(0))
    );
    assert_eq!(of(&lines, "tool_end")[0]["ok"], true);
    // The next request pairs the call with its result.
    let messages = provider.request(2).json()["messages"].clone();
    let tail = &messages.as_array().unwrap()[messages.as_array().unwrap().len() - 2..];
    assert_eq!(tail[0]["tool_calls"][0]["id"], "c1");
    assert_eq!(
        (&tail[1]["role"], &tail[1]["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
}

#[test]
fn om_13_parallel_reads_end_in_the_order_of_the_calls() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.write(name, &format!("content of {name}"));
    }
    let read = |id: &'static str, name: &str| (id, "read_file", json!({ "path": name }));
    let provider = Provider::start([
        openai::calls(&[read("c1", "a"), read("c2", "b"), read("c3", "c")]),
        openai::says("Read."),
    ]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("Read.");
    let calls: Vec<(&str, &Value)> = lines
        .iter()
        .filter(|line| line.get("call_id").is_some_and(|id| id != ""))
        .map(|line| (line["type"].as_str().unwrap(), &line["call_id"]))
        .collect();
    let (c1, c2, c3) = (json!("c1"), json!("c2"), json!("c3"));
    let starts = [
        ("tool_start", &c1),
        ("tool_start", &c2),
        ("tool_start", &c3),
    ];
    let ends = [("tool_end", &c1), ("tool_end", &c2), ("tool_end", &c3)];
    assert_eq!(calls, [starts, ends].concat());
    for (end, name) in of(&lines, "tool_end").iter().zip(["a", "b", "c"]) {
        assert!(
            end["output"]
                .as_str()
                .unwrap()
                .contains(&format!("content of {name}"))
        );
    }
}

#[test]
fn om_17_the_next_prompt_may_follow_done_at_once_and_sees_the_history() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut program = Setup::openai(&home, &provider).start();
    assert_eq!(
        of(&program.turn("first"), "message_done")[0]["text"],
        "One."
    );
    assert_eq!(
        of(&program.turn("second"), "message_done")[0]["text"],
        "Two."
    );
    let texts: Vec<Value> = provider.request(2).json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system" && message["role"] != "developer")
        .map(|message| message["content"].clone())
        .collect();
    assert_eq!(texts, ["first", "One.", "second"]);
}

#[test]
fn om_18_two_prompts_in_one_write_the_second_is_refused_alone() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Three.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.raw("{\"cmd\":\"user\",\"text\":\"one\"}\n{\"cmd\":\"user\",\"text\":\"two\"}\n");
    program.see_type("done");
    let seen = program.seen();
    // Before or after the first line of the turn, but before anything of the model.
    let shown = types(seen);
    let at = shown
        .iter()
        .position(|kind| *kind == "protocol_error")
        .unwrap();
    assert!(
        at < shown.iter().position(|kind| *kind == "token").unwrap(),
        "{shown:?}"
    );
    assert_eq!(of(seen, "done").len(), 1);
    assert_eq!(
        of(&program.turn("three"), "message_done")[0]["text"],
        "Three."
    );
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn e01_a_prompt_while_a_turn_runs_is_refused_alone_and_the_turn_goes_on() {
    let home = Home::new();
    let gate = crate::support::provider::Gate::new();
    let reply = Reply::stream()
        .bytes(openai::text("Hi"))
        .gate(&gate)
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("one");
    program.see(&json!({ "type": "token", "text": "Hi" }));
    program.user("two");
    program.send(&json!({ "cmd": "reload" }));
    program.see_type("protocol_error");
    program.see_type("protocol_error");
    gate.open();
    program.see(&json!({ "type": "message_done", "text": "Hi" }));
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    program.close_input();
    let ended = program.wait();
    assert_eq!(
        (ended.of("protocol_error").len(), ended.of("done").len()),
        (2, 1)
    );
}

#[test]
fn om_19_blank_text_is_refused_with_a_done() {
    let home = Home::new();
    let ended = Setup::serve(&home).run("{\"cmd\":\"user\",\"text\":\" \\n\\t\"}\n");
    assert_eq!(ended.types(), ["hello", "protocol_error", "done"]);
    assert_eq!(ended.of("done")[0]["stop_reason"], "refused");
    assert_eq!(ended.code, Some(0));
}

#[test]
fn om_23_the_providers_word_is_passed_on_and_so_is_the_step_limit() {
    let home = Home::new();
    let word = Reply::stream()
        .bytes(openai::text("x"))
        .bytes(openai::finish("some_future_reason"))
        .bytes(openai::DONE);
    let list = || openai::calls(&[("c", "list_dir", json!({ "path": "." }))]);
    let provider = Provider::start([word, list(), list(), list()]);
    let mut program = Setup::openai(&home, &provider)
        .args(&["--max-steps", "2"])
        .start();
    assert_eq!(
        of(&program.turn("a"), "done")[0]["stop_reason"],
        "some_future_reason"
    );
    assert_eq!(
        of(&program.turn("b"), "done")[0]["stop_reason"],
        "max_iterations"
    );
    assert_eq!(provider.left(), 1);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_08_reload_is_answered_by_refrozen() {
    let home = Home::new();
    let ended = Setup::serve(&home).run("{\"cmd\":\"reload\"}\n");
    assert_eq!(ended.types(), ["hello", "refrozen"]);
    let receipt = ended.of("refrozen")[0];
    assert!(
        receipt["tools"].as_u64().unwrap() >= 6 && receipt["skills"] == 0,
        "{receipt}"
    );
    assert_eq!(receipt["changes"], json!([]));
}

#[test]
fn a_trusted_projects_file_sets_up_the_session() {
    let home = Home::new();
    let provider = Provider::start([openai::says("From the file.")]);
    home.settings("[session]\nmax_steps = 1\napproval = \"readonly\"\n");
    home.write(
        "turnwire.toml",
        &format!(
            "[model]\napi = \"openai\"\nbase_url = \"{}/v1\"\nname = \"m-file\"\nmax_output = 512\n",
            provider.url()
        ),
    );
    let mut program = Setup::serve(&home).args(&["--trust-project"]).start();
    assert_eq!(joined(&program.turn("go"), "token"), "From the file.");
    let body = provider.request(1).json();
    assert_eq!(body["model"], "m-file");
    assert!(body.to_string().contains("512"), "{body}");
    program.close_input();
    let ended = program.wait();
    assert!(ended.stderr.contains("trusted project"), "{}", ended.stderr);
    // Changed since, it has to be trusted again.
    home.write(
        "turnwire.toml",
        "[model]\napi = \"openai\"\nname = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n",
    );
    let ended = Setup::serve(&home).args(&["--api", "openai"]).run("");
    // Without the file there is no name of a model, which is an error of its own.
    assert_eq!((ended.code, ended.lines.len()), (Some(2), 0));
    let ended = Setup::serve(&home)
        .args(&[
            "--api",
            "openai",
            "--model",
            "m",
            "--base-url",
            "http://127.0.0.1:9",
        ])
        .run("");
    assert_eq!((ended.code, ended.lines.len()), (Some(3), 0));
    assert!(ended.stderr.contains("has changed"), "{}", ended.stderr);
}

#[test]
fn a_plain_json_reply_is_a_reply() {
    let home = Home::new();
    let body = json!({
        "id": "x", "object": "chat.completion", "model": "m-1",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Plain." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4 },
    });
    let reply = Reply::status("200 OK")
        .header("content-type", "application/json")
        .bytes(body.to_string());
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    assert_eq!(of(&lines, "message_done")[0]["text"], "Plain.");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
}

#[test]
fn anthropic_end_to_end_with_thinking_and_a_call() {
    let home = Home::new();
    home.write("a.txt", "alpha");
    let call = anthropic::call(2, "toolu_1", "read_file", &json!({ "path": "a.txt" }));
    let first = [
        anthropic::start(),
        anthropic::ping(),
        anthropic::thinking(0, "Hm."),
        anthropic::text(1, "Reading."),
        call,
        anthropic::end("tool_use"),
    ];
    let second = [
        anthropic::start(),
        anthropic::text(0, "It says alpha."),
        anthropic::end("end_turn"),
    ];
    let provider = Provider::start([anthropic::reply(&first), anthropic::reply(&second)]);
    let mut program = Setup::anthropic(&home, &provider)
        .args(&["--temperature", "0.5"])
        .start();
    let lines = program.turn("What does a.txt say?");
    assert_eq!(
        (joined(&lines, "thinking"), joined(&lines, "token")),
        ("Hm.".into(), "Reading.It says alpha.".into())
    );
    assert!(
        of(&lines, "tool_end")[0]["output"]
            .as_str()
            .unwrap()
            .contains("alpha")
    );
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "end_turn");
    let request = provider.request(1);
    assert_eq!(
        (request.path.as_str(), request.header("x-api-key")),
        ("/v1/messages", Some(KEY))
    );
    assert_eq!(request.json()["temperature"], 0.5);
    // The thinking goes back with its signature, or the provider would refuse the request.
    let second = provider.request(2).json();
    let assistant = &second["messages"][1];
    assert_eq!(assistant["content"][0]["signature"], "c2ln", "{second}");
    assert_eq!(
        second["messages"][2]["content"][0]["tool_use_id"],
        "toolu_1"
    );
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn a_script_plays_the_model_in_a_trusted_project() {
    let home = Home::new();
    home.write("../play.script", "reply\n  say: Scripted words.\n");
    let script = home.path("play.script");
    let script = script.to_str().unwrap();
    let ended = Setup::serve(&home).args(&["--script", script]).run("");
    assert_eq!((ended.code, ended.lines.len()), (Some(3), 0));
    let ended = Setup::serve(&home)
        .args(&["--script", script, "--trust-project"])
        .run("{\"cmd\":\"user\",\"text\":\"x\"}\n");
    assert_eq!(joined(&ended.lines, "token"), "Scripted words.");
    home.write("../play.script", "no such word\n");
    let ended = Setup::serve(&home).args(&["--script", script]).run("");
    assert_eq!((ended.code, ended.lines.len()), (Some(2), 0));
    assert!(
        ended.stderr.contains("play.script") && ended.stderr.contains("line 1"),
        "{}",
        ended.stderr
    );
}
