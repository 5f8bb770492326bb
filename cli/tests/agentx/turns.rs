//! Whole turns: text, tools, pieces, what they cost.

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{bash, order, results, text_of};
use crate::support::program::{Home, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

#[test]
fn a_turn_with_a_tool_is_bracketed_in_the_strict_wire() {
    let home = Home::new();
    let provider = Provider::start([
        bash("agentx", "echo out-of-the-tool"),
        openai::says("Seen."),
    ]);
    let mut program = Setup::agentx(&home, "agentx", &provider, "auto").start_as::<Agentx>();
    program.prompt("Run it.");
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    assert_eq!(
        order(&ended.lines),
        [
            "system init",
            "system running",
            "assistant tool_use",
            "user tool_result",
            "assistant text",
            "result success",
            "system idle"
        ]
    );
    let result = ended.of("result")[0];
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!("Seen."), &json!(2))
    );
    let outcome = &results(&ended.lines)[0];
    assert_eq!(outcome["is_error"], false);
    assert!(
        text_of(&outcome["content"]).contains("out-of-the-tool"),
        "{outcome}"
    );
    assert!(
        text_of(&provider.request(2).json()["messages"][3]["content"]).contains("out-of-the-tool")
    );
}

#[test]
fn ax_s02_separators_are_escaped_and_a_reply_comes_in_pieces_if_they_are_asked_for() {
    let home = Home::new();
    let text = "one\u{2028}two\u{2029}three";
    let provider = Provider::start([openai::says(text), openai::says(text)]);
    let pieces = |args: &[&str]| {
        let setup = Setup::agentx(&home, "claude", &provider, "auto").args(args);
        let mut program = setup.start_as::<Agentx>();
        let lines = program.turn("Say it.");
        assert_eq!(of(&lines, "result")[0]["result"], text);
        let pieces = of(&lines, "stream_event");
        let pieces = pieces.iter().map(|piece| &piece["event"]["delta"]);
        pieces
            .filter_map(|delta| delta["text"].as_str())
            .collect::<String>()
    };
    assert_eq!(pieces(&["--partial"]), text);
    assert_eq!(pieces(&[]), "");
}

#[test]
fn a_prompt_is_repeated_where_the_host_wants_it() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hello.")]);
    let setup = Setup::agentx(&home, "agentx", &provider, "auto").args(&["--replay"]);
    let mut program = setup.start_as::<Agentx>();
    let uuid = "0d9e4c1e-7a0f-4c57-8a43-0f2f5c0f1a11";
    program.send(&json!({
        "type": "user", "uuid": uuid, "message": { "role": "user", "content": "Greet me." },
    }));
    let replay = program.see_type("user");
    assert_eq!(
        (&replay["uuid"], &replay["isReplay"]),
        (&json!(uuid), &json!(true))
    );
    assert_eq!(program.see_type("result")["prompt_uuid"], uuid);
}

fn priced(home: &Home, more: &str) {
    home.settings(&format!(
        "[session]\n{more}\n[[model.price]]\nmodel = 'm-1'\ninput = 1000\ncache_read = 100\noutput = 2000\n\
         as_of = '2026-11-30'\n",
    ));
}

fn counted(text: &str) -> Reply {
    Reply::stream()
        .bytes(openai::text(text))
        .bytes(openai::finish("stop"))
        .bytes(openai::usage(30, 5, 10))
        .bytes(openai::DONE)
}

/// What a turn costs, by its result: in all, and the model's part.
fn cost(home: &Home, provider: &Provider) -> (Value, Value) {
    let mut program = Setup::agentx(home, "claude", provider, "auto").start_as::<Agentx>();
    let lines = program.turn("Greet me.");
    let result = of(&lines, "result")[0];
    let part = &result["modelUsage"]["m-1"]["costUSD"];
    (result["total_cost_usd"].clone(), part.clone())
}

#[test]
fn wire_012_a_price_of_the_settings_makes_a_cost_and_none_makes_null() {
    let home = Home::new();
    let provider = Provider::start([counted("Hello."), counted("Hello."), counted("Hello.")]);
    assert_eq!(cost(&home, &provider), (Value::Null, Value::Null));
    priced(&home, "");
    // 20 tokens at 1,000 dollars a million, 10 from the cache at 100, 5 of the answer at 2,000.
    let dollars = json!(0.031);
    assert_eq!(cost(&home, &provider), (dollars.clone(), dollars));
    home.settings("[[model.price]]\ninput = 0\noutput = 0\nas_of = 'always'\n");
    assert_eq!(cost(&home, &provider), (json!(0), json!(0)));
}

#[test]
fn a_budget_ends_the_turn_that_used_it_up_and_needs_a_price() {
    let home = Home::new();
    let call = Reply::stream()
        .bytes(openai::call(0, "c1", "Bash", &json!({ "command": "pwd" })))
        .bytes(openai::finish("tool_calls"))
        .bytes(openai::usage(30, 5, 10))
        .bytes(openai::DONE);
    let provider = Provider::start([call]);
    priced(&home, "max_budget = 0.03");
    let mut program = Setup::agentx(&home, "claude", &provider, "auto").start_as::<Agentx>();
    program.prompt("Run it.");
    program.close_input();
    let ended = program.wait();
    let result = ended.of("result")[0];
    assert_eq!(result["subtype"], "error_max_budget_usd");
    assert_eq!(result["total_cost_usd"], 0.031);
    assert_eq!(ended.code, Some(1));
    home.settings("[session]\nmax_budget = 0.03\n");
    let refused = Setup::agentx(&home, "claude", &provider, "auto").run_as::<Agentx>("");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("model.price"), "{}", refused.stderr);
}

#[test]
fn a_provider_that_fails_is_a_success_that_is_an_error_in_claude_and_plain_in_agentx() {
    let home = Home::new();
    for (protocol, kind) in [("claude", "success"), ("agentx", "error_during_execution")] {
        let body = r#"{"error":{"message":"the scripted refusal"}}"#;
        let provider =
            Provider::start([Reply::failure("400 Bad Request", body), openai::says("On.")]);
        let mut program = Setup::agentx(&home, protocol, &provider, "auto").start_as::<Agentx>();
        let lines = program.turn("Try.");
        let result = of(&lines, "result")[0];
        assert_eq!(
            (&result["subtype"], &result["is_error"]),
            (&json!(kind), &json!(true))
        );
        assert!(
            result.to_string().contains("the scripted refusal"),
            "{result}"
        );
        let lines = program.turn("And now?");
        assert_eq!(of(&lines, "result")[0]["result"], "On.");
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
    }
}
