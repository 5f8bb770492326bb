//! What is said at the start, and what the settings have to do with it.

use serde_json::json;
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{bash, order, results, text_of};
use crate::support::program::{Home, Setup};
use crate::support::provider::Provider;
use crate::support::replies::openai;

const PROVIDER: &str = "[model]\napi = 'openai'\nprovider = 'house'\nbase_url = 'http://127.0.0.1:9/v1'\nname = 'big'\n\
                        others = ['small']\nefforts = ['low', 'high']\nkey_env = 'SOME_KEY'\n";

fn named(protocol: &str) -> (Home, Setup) {
    let home = Home::new();
    home.settings(PROVIDER);
    let setup = Setup::serve_in(&home, protocol)
        .args(&["--trust-project"])
        .env("SOME_KEY", "sk-a-distinctive-sentinel");
    (home, setup)
}

#[test]
fn wire_023_wire_024_ax_s27_the_provider_is_named_and_nothing_of_how_it_is_reached() {
    let (_home, setup) = named("agentx");
    let mut program = setup.start_as::<Agentx>();
    let init = program.see_type("system");
    assert_eq!(init["subtype"], "init");
    assert_eq!(
        (&init["provider"], &init["provider_type"], &init["model"]),
        (&json!("house"), &json!("openai"), &json!("big"))
    );
    let reasoning =
        json!({ "supported": true, "efforts": ["low", "high"], "defaultEffort": "low" });
    assert_eq!(init["reasoning_capabilities"], reasoning);
    assert_eq!(init["apiKeySource"], "user");
    assert!(init["session_id"].as_str().unwrap().starts_with("ses_"));
    let answer = program.ask(&json!({ "subtype": "initialize" }));
    let providers = answer["response"]["providers"].as_array().unwrap();
    assert_eq!(providers.len(), 1);
    let provider = &providers[0];
    assert_eq!(
        (&provider["id"], &provider["value"]),
        (&json!("house"), &json!("house"))
    );
    assert_eq!(
        (&provider["default"], &provider["selected"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(provider["reasoning"], reasoning);
    for line in program.seen() {
        let line = line.to_string();
        for secret in ["127.0.0.1", "SOME_KEY", "sentinel", "turnwire.toml"] {
            assert!(!line.contains(secret), "{secret} in {line}");
        }
    }
    program.close_input();
    // Nobody asked for anything.
    assert_eq!(program.wait().code, Some(1));
}

#[test]
fn wire_025_what_is_fixed_says_so_and_a_provider_isnt_chosen_live() {
    let (_home, setup) = named("agentx");
    let mut program = setup.start_as::<Agentx>();
    let fixed = program.ask(&json!({ "subtype": "set_model", "model": "small" }));
    assert!(
        fixed["error"].as_str().unwrap().contains("--provider"),
        "{fixed}"
    );
    let unknown = program.ask(&json!({ "subtype": "set_provider", "provider": "house" }));
    assert_eq!(
        unknown["error"],
        "unsupported control request \"set_provider\""
    );
}

#[test]
fn a_host_of_claude_may_choose_among_the_models_of_the_settings() {
    let (_home, setup) = named("claude");
    let mut program = setup.start_as::<Agentx>();
    let answer = program.ask(&json!({ "subtype": "initialize", "hooks": null }));
    let models = answer["response"]["models"].as_array().unwrap();
    let names: Vec<_> = models
        .iter()
        .map(|model| model["value"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["big", "small"]);
    assert_eq!(models[1]["supportedEffortLevels"], json!(["low", "high"]));
    assert_eq!(answer["response"]["account"]["apiKeySource"], "SOME_KEY");
    let set = program.ask(&json!({ "subtype": "set_model", "model": "small" }));
    assert_eq!(set["response"], json!({ "model": "small" }));
    let other = program.ask(&json!({ "subtype": "set_model", "model": "other" }));
    assert_eq!(other["subtype"], "error");
    let settings = program.ask(&json!({ "subtype": "get_settings" }));
    assert_eq!(settings["response"]["applied"]["model"], "small");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn ax_s10_settings_are_shown_layer_by_layer_and_apart_from_what_runs() {
    let (home, setup) = named("claude");
    home.write(
        "turnwire.toml",
        "[model]\nothers = ['tiny']\n[session]\nmax_steps = 5\n[[hook]]\nname = 'h'\nevent = 'turn_end'\n\
         command = 'echo sentinel >/dev/null'\n",
    );
    let mut program = setup
        .args(&["--max-steps", "7", "--thinking", "high"])
        .start_as::<Agentx>();
    let shown = program.ask(&json!({ "subtype": "get_settings" }))["response"].clone();
    let sources = json!([
        { "source": "user", "settings": { "model": { "api": "openai", "provider": "house", "name": "big",
          "others": ["small"], "efforts": ["low", "high"] } } },
        { "source": "project", "settings": { "model": { "others": ["tiny"] }, "session": { "max_steps": 5 },
          "hook": [{ "name": "h", "event": "turn_end" }] } },
        { "source": "flag", "settings": { "model": { "thinking": "high" }, "session": { "max_steps": 7 } } },
    ]);
    assert_eq!(shown["sources"], sources);
    let effective = json!({
        "model": { "api": "openai", "provider": "house", "name": "big", "others": ["tiny"],
                   "efforts": ["low", "high"], "thinking": "high" },
        "session": { "max_steps": 7 },
        "hook": [{ "name": "h", "event": "turn_end" }],
    });
    assert_eq!(shown["effective"], effective);
    assert_eq!(
        shown["applied"],
        json!({ "model": "big", "effort": "high" })
    );
    // What the host sets runs, and is in no file.
    program.ask(&json!({ "subtype": "set_model", "model": "tiny" }));
    let shown = program.ask(&json!({ "subtype": "get_settings" }))["response"].clone();
    assert_eq!(shown["applied"]["model"], "tiny");
    assert_eq!(shown["effective"]["model"]["name"], "big");
    for line in program.seen() {
        let line = line.to_string();
        for secret in ["127.0.0.1", "sentinel"] {
            assert!(!line.contains(secret), "{secret} in {line}");
        }
    }
}

#[test]
fn states_are_told_where_the_environment_asks_for_them() {
    let states = |setup: Setup| {
        let mut program = setup.start_as::<Agentx>();
        program.prompt("What is here?");
        program.close_input();
        let lines = program.wait().lines;
        let states = order(&lines).into_iter();
        states
            .filter(|kind| matches!(kind.as_str(), "system running" | "system idle"))
            .collect::<Vec<_>>()
    };
    let home = Home::new();
    let serve = || Setup::serve_in(&home, "claude");
    assert!(states(serve()).is_empty());
    let asked = serve().env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    assert_eq!(states(asked), ["system running", "system idle"]);
    let strict = serve().args(&["--preset", "agentx"]);
    assert_eq!(states(strict), ["system running", "system idle"]);
}

#[test]
fn variables_that_the_host_sets_reach_later_commands_but_no_key_and_none_of_ours() {
    let home = Home::new();
    let line = "echo [$HOUSE] [$OPENAI_API_KEY] [$TURNWIRE_SESSION]";
    let provider = Provider::start([
        bash("agentx", line),
        openai::says("Done."),
        bash("agentx", line),
        openai::says("Done."),
    ]);
    let said = |preset: &str| {
        let mut program = Setup::agentx(&home, "agentx", &provider, "auto")
            .args(&["--preset", preset])
            .start_as::<Agentx>();
        let variables =
            json!({ "HOUSE": "red", "OPENAI_API_KEY": "x", "TURNWIRE_SESSION": "mine" });
        program.send(&json!({ "type": "update_environment_variables", "variables": variables }));
        let lines = program.turn("Run it.");
        program.close_input();
        assert!(program.wait().stderr.contains("can't be changed"));
        text_of(&results(&lines)[0]["content"])
    };
    let full = said("agentx-full");
    assert!(full.contains("[red] [] [ses_"), "{full}");
    let strict = said("agentx");
    assert!(strict.contains("[] [] [ses_"), "{strict}");
}

#[test]
fn the_built_in_script_looks_around_under_every_name_of_its_tool() {
    let home = Home::new();
    for (protocol, tool) in [("agentx", "list_dir"), ("claude", "LS")] {
        let mut program = Setup::serve_in(&home, protocol).start_as::<Agentx>();
        let lines = program.turn("What is here?").to_vec();
        let blocks = lines
            .iter()
            .filter_map(|line| line["message"]["content"].as_array());
        let calls: Vec<_> = blocks
            .flatten()
            .filter(|block| block["type"] == "tool_use")
            .collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0]["name"], tool);
        assert_eq!(results(&lines)[0]["is_error"], false);
    }
}
