//! The command lines of claude and agentx: `turnwire as`, or a program that is called so.

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::results;
use crate::support::program::{Ended, Home, KEY, Setup};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::anthropic;

/// What the Python SDK passes at least; its empty text is an argument.
const LEAST: [&str; 7] = [
    "--output-format",
    "stream-json",
    "--verbose",
    "--system-prompt",
    "",
    "--input-format",
    "stream-json",
];

const PROMPT: &str = "{\"type\":\"user\",\"session_id\":\"\",\"message\":{\"role\":\"user\",\"content\":\"Greet me.\"},\
                      \"parent_tool_use_id\":null}\n";

fn claude(home: &Home, args: &[&str]) -> Setup {
    Setup::plain(home, &["as", "claude"])
        .args(&LEAST)
        .args(args)
}

/// With a provider of the environment, in a trusted project.
fn at(home: &Home, provider: &Provider, args: &[&str]) -> Setup {
    claude(home, args)
        .env("ANTHROPIC_BASE_URL", &provider.url())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
}

fn says(text: &str) -> Reply {
    anthropic::reply(&[
        anthropic::start(),
        anthropic::text(0, text),
        anthropic::end("end_turn"),
    ])
}

fn calls(name: &str, input: &Value) -> Reply {
    anthropic::reply(&[
        anthropic::start(),
        anthropic::call(0, "toolu_1", name, input),
        anthropic::end("tool_use"),
    ])
}

#[track_caller]
fn refused(setup: Setup, word: &str) {
    let ended = setup.run_as::<Agentx>("");
    assert_eq!(
        (ended.code, ended.lines.len()),
        (Some(1), 0),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains(word),
        "no {word:?} in {}",
        ended.stderr
    );
}

fn result(ended: &Ended) -> &Value {
    let results = ended.of("result");
    assert_eq!(results.len(), 1, "{}", ended.stderr);
    results[0]
}

#[test]
fn what_an_sdk_starts_answers_under_either_name() {
    let home = Home::new();
    let provider = Provider::start([says("Hello."), says("Hello.")]);
    let link = home.path("claude");
    #[cfg(unix)]
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnwire"), &link).unwrap();
    let called = Setup::called(&home, &link, &LEAST)
        .env("ANTHROPIC_BASE_URL", &provider.url())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_MODEL", "m-1")
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap());
    for setup in [at(&home, &provider, &["--model", "m-1"]), called] {
        let ended = setup.run_as::<Agentx>(PROMPT);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(result(&ended)["result"], "Hello.");
    }
    for number in [1, 2] {
        let request = provider.request(number);
        assert_eq!(request.path, "/v1/messages");
        assert_eq!(request.header("x-api-key"), Some(KEY));
        let body = request.json();
        assert_eq!(body["model"], "m-1");
        // An empty text is no text of ours.
        assert!(body["system"].is_null(), "{}", body["system"]);
    }
}

#[test]
fn the_tools_have_the_names_that_its_users_know() {
    let home = Home::new();
    let path = home.project().join("note.txt");
    let input = json!({ "file_path": path.to_str().unwrap(), "content": "noted" });
    let provider = Provider::start([calls("Write", &input), says("Done.")]);
    let args = [
        "--permission-mode",
        "acceptEdits",
        "--disallowedTools",
        "Bash,WebSearch",
        "--allowedTools=Read",
    ];
    let ended = at(&home, &provider, &args).run_as::<Agentx>(PROMPT);
    assert_eq!(home.read("note.txt").as_deref(), Some("noted"));
    assert_eq!(results(&ended.lines)[0]["is_error"], false);
    let tools = &provider.request(1).json()["tools"];
    let names: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Read", "Write", "Edit", "LS", "Grep"]);
}

#[test]
fn rules_of_the_settings_hold_for_the_tools_under_these_names() {
    let home = Home::new();
    home.settings("[[rule]]\naction = \"deny\"\ntool = \"bash\"\n");
    let provider = Provider::start([
        calls("Bash", &json!({ "command": "touch made" })),
        says("Then not."),
    ]);
    let ended = at(&home, &provider, &["--allowedTools", "Bash"]).run_as::<Agentx>(PROMPT);
    assert!(home.read("made").is_none());
    assert_eq!(result(&ended)["permission_denials"][0]["tool_name"], "Bash");
}

#[test]
fn what_a_command_begins_with_is_allowed_and_no_second_command_behind_it() {
    let home = Home::new();
    let provider = Provider::start([
        calls("Bash", &json!({ "command": "touch one" })),
        calls("Bash", &json!({ "command": "touch two; touch three" })),
        calls("Bash", &json!({ "command": "touch $(echo four)" })),
        says("Done."),
    ]);
    let ended = at(&home, &provider, &["--allowedTools", "Bash(touch:*)"]).run_as::<Agentx>(PROMPT);
    let made = ["one", "two", "three", "four"].map(|name| home.read(name).is_some());
    assert_eq!(made, [true, false, false, false], "{}", ended.stderr);
    assert_eq!(
        result(&ended)["permission_denials"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn nobody_is_asked_unless_the_command_line_says_who() {
    let home = Home::new();
    let call = json!({ "command": "touch made" });
    let provider = Provider::start([
        calls("Bash", &call),
        says("Then not."),
        calls("Bash", &call),
        says("Done."),
    ]);
    let ended = at(&home, &provider, &[]).run_as::<Agentx>(PROMPT);
    assert!(ended.of("control_request").is_empty() && home.read("made").is_none());
    let mut program =
        at(&home, &provider, &["--permission-prompt-tool=stdio"]).start_as::<Agentx>();
    program.raw(PROMPT);
    let (id, request) = program.asked("can_use_tool");
    assert_eq!(request["tool_name"], "Bash");
    program.answer(&id, &json!({ "behavior": "allow", "updatedInput": call }));
    program.see_type("result");
    assert!(home.read("made").is_some());
}

#[test]
fn a_session_goes_on_by_its_id_and_a_copy_leaves_it_as_it_was() {
    let home = Home::new();
    let provider = Provider::start([says("One."), says("Two."), says("Three."), says("Four.")]);
    let id = "5d3c1c92-3f2b-4b0e-9b7a-0c8f6f1c2a11";
    let run = |args: &[&str]| {
        let ended = at(&home, &provider, args).run_as::<Agentx>(PROMPT);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        result(&ended)["session_id"].as_str().unwrap().to_owned()
    };
    let told = |number: usize| {
        provider.request(number).json()["messages"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(run(&[&format!("--session-id={id}")]), id);
    refused(at(&home, &provider, &["--session-id", id]), "in use");
    assert_eq!(run(&["--resume", id]), id);
    assert_eq!(told(2), 3);
    assert_ne!(run(&[&format!("--resume={id}"), "--fork-session"]), id);
    assert_eq!(told(3), 5);
    // The first one knows nothing of its copy.
    assert_eq!(run(&["--resume", id]), id);
    assert_eq!(told(4), 5);
    refused(at(&home, &provider, &["--resume", "nobody"]), "nobody");
    // Without a model that is named, too.
    refused(claude(&home, &["--resume", "nobody"]), "with the id nobody");
    refused(at(&home, &provider, &["--fork-session"]), "--fork-session");
    refused(
        at(&home, &provider, &["--session-id", "../../x"]),
        "../../x",
    );
}

#[test]
fn a_prompt_of_the_command_line_is_one_turn() {
    let home = Home::new();
    let provider = Provider::start([says("Hello.")]);
    let args = [
        "as",
        "claude",
        "-p",
        "--verbose",
        "--output-format",
        "stream-json",
        "Greet me.",
    ];
    let ended = Setup::plain(&home, &args)
        .env("ANTHROPIC_BASE_URL", &provider.url())
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
        .run_as::<Agentx>("");
    assert_eq!(
        (ended.code, &result(&ended)["result"]),
        (Some(0), &json!("Hello.")),
        "{}",
        ended.stderr
    );
    assert_eq!(provider.request(1).json()["model"], "claude-sonnet-4-5");
    assert!(provider.request(1).header("x-api-key").is_none());
}

#[test]
fn one_turn_is_printed_as_text_or_as_its_result() {
    let home = Home::new();
    let provider = Provider::start([]);
    let print = |args: &[&str], replies: &[Reply]| {
        for reply in replies {
            provider.then(reply.clone());
        }
        let out = Setup::plain(&home, &["as", "claude", "-p"])
            .args(args)
            .env("ANTHROPIC_BASE_URL", &provider.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
            .piped("Greet me, from a file.\n");
        (
            out.status.code(),
            String::from_utf8(out.stdout).unwrap(),
            String::from_utf8(out.stderr).unwrap(),
        )
    };
    let hello = [says("Hello,\nyou.")];
    let (code, out, said) = print(&["Greet me."], &hello);
    assert_eq!((code, &*out), (Some(0), "Hello,\nyou.\n"), "{said}");
    let (code, out, _) = print(&["--output-format", "json", "Greet me."], &hello);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (
            code,
            &result["type"],
            &result["result"],
            &result["num_turns"]
        ),
        (Some(0), &json!("result"), &json!("Hello,\nyou."), &json!(1))
    );
    // Tools run on the way, and nobody is asked; the prompt stands on stdin.
    let call = calls("Bash", &json!({ "command": "touch made" }));
    let (code, out, _) = print(&["--output-format=text"], &[call, says("Then not.")]);
    assert_eq!((code, &*out), (Some(0), "Then not.\n"));
    assert!(home.read("made").is_none());
    let prompt = provider.request(3).json()["messages"][0]["content"].to_string();
    assert!(prompt.contains("from a file"), "{prompt}");
    let refusal = Reply::failure(
        "400 Bad Request",
        "{\"error\":{\"message\":\"the refusal\"}}",
    );
    let (code, out, _) = print(&["Greet me."], &[refusal]);
    assert!(code == Some(1) && out.contains("the refusal"), "{out}");
    for args in [
        &["--output-format", "json", "--verbose", "x"][..],
        &["--input-format", "stream-json"],
        &["--include-partial-messages", "x"],
    ] {
        let (code, out, said) = print(args, &[]);
        assert_eq!((code, &*out), (Some(1), ""), "{said}");
        assert!(said.contains("stream-json"), "{said}");
    }
}

#[test]
fn a_bearer_token_of_the_environment_goes_in_the_keys_place() {
    let home = Home::new();
    let provider = Provider::start([says("Hello."), says("Hello.")]);
    for (number, both) in [(1, false), (2, true)] {
        let setup = claude(&home, &["--model", "m-1"])
            .env("ANTHROPIC_BASE_URL", &provider.url())
            .env("ANTHROPIC_AUTH_TOKEN", KEY)
            .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap());
        let setup = if both {
            setup.env("ANTHROPIC_API_KEY", "sk-another-key")
        } else {
            setup
        };
        let ended = setup.run_as::<Agentx>(PROMPT);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let request = provider.request(number);
        let bearer = format!("Bearer {KEY}");
        assert_eq!(request.header("authorization"), Some(&*bearer));
        assert!(request.header("x-api-key").is_none());
    }
}

#[test]
fn a_host_may_set_a_model_by_the_name_that_everybody_calls_it() {
    let home = Home::new();
    let provider = Provider::start([says("Hello."), says("Hello.")]);
    let mut program = at(&home, &provider, &["--model", "opus"])
        .env("ANTHROPIC_DEFAULT_HAIKU_MODEL", "small-1")
        .start_as::<Agentx>();
    program.turn("Greet me.");
    assert_eq!(provider.request(1).json()["model"], "claude-opus-4-5");
    let set = program.ask(&json!({ "subtype": "set_model", "model": "haiku" }));
    assert_eq!(set["response"], json!({ "model": "small-1" }));
    program.turn("Greet me.");
    assert_eq!(provider.request(2).json()["model"], "small-1");
    let set = program.ask(&json!({ "subtype": "set_model", "model": "m-9" }));
    assert_eq!(set["response"], json!({ "model": "m-9" }));
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn an_answer_of_a_schema_is_structured() {
    let home = Home::new();
    let answer = json!({ "colour": "blue" });
    let provider = Provider::start([calls("StructuredOutput", &answer)]);
    let schema =
        r#"{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}"#;
    let ended = at(&home, &provider, &["--json-schema", schema]).run_as::<Agentx>(PROMPT);
    assert_eq!(result(&ended)["structured_output"], answer);
    assert_eq!(result(&ended)["subtype"], "success");
}

#[test]
fn what_the_typescript_sdk_says_in_initialize_counts_from_the_first_turn() {
    let home = Home::new();
    let provider = Provider::start([says("Aye.")]);
    let mut program = at(&home, &provider, &[]).start_as::<Agentx>();
    program.ask(&json!({ "subtype": "initialize", "systemPrompt": ["You speak as sailors do."], "appendSystemPrompt": "Briefly." }));
    program.raw(PROMPT);
    program.see_type("result");
    let system = provider.request(1).json()["system"].to_string();
    assert!(
        system.contains("You speak as sailors do.") && system.contains("Briefly."),
        "{system}"
    );
    assert_eq!(
        provider.request(1).json()["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn servers_of_the_command_line_are_the_hosts_own_or_started() {
    let home = Home::new();
    let config =
        r#"{"mcpServers":{"house":{"type":"sdk","name":"house"},"other":{"type":"http"}}}"#;
    let mut program =
        at(&home, &Provider::start([]), &["--mcp-config", config]).start_as::<Agentx>();
    program.request("i1", &json!({ "subtype": "initialize" }));
    let (_, greeting) = program.asked("mcp_message");
    assert_eq!(greeting["server_name"], "house");
    program.request("s1", &json!({ "subtype": "mcp_status" }));
    let status = loop {
        let line = program.see_type("control_response");
        if line["response"]["request_id"] == "s1" {
            break line["response"]["response"]["mcpServers"].clone();
        }
    };
    assert_eq!(
        (&status[0]["name"], &status[0]["status"]),
        (&json!("other"), &json!("failed"))
    );
    assert_eq!(status[1]["name"], "house");
    program.close_input();
    assert!(program.wait().stderr.contains("\"other\" can't be used"));
}

#[test]
fn what_cant_be_done_is_refused_with_1_and_nothing_on_stdout() {
    let home = Home::new();
    refused(Setup::plain(&home, &["as", "claude"]), "stream-json");
    refused(claude(&home, &["--turbo"]), "--turbo");
    refused(
        claude(&home, &["--permission-mode", "maybe"]),
        "acceptEdits",
    );
    refused(
        claude(&home, &["--permission-prompt-tool", "mcp__x"]),
        "stdio",
    );
    refused(claude(&home, &["--mcp-config", "{}"]), "mcpServers");
    refused(claude(&home, &["--provider", "house"]), "agentx's");
    refused(
        claude(&home, &["--model", "m"]).env("ANTHROPIC_API_KEY", KEY),
        "trust",
    );
    let trusted = claude(&home, &["--max-budget-usd", "1", "--model", "m"])
        .env("ANTHROPIC_API_KEY", KEY)
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap());
    refused(trusted, "model.price");
}

#[test]
fn all_that_the_sdks_may_pass_is_taken() {
    let home = Home::new();
    let provider = Provider::start([says("Hello.")]);
    let words = "--include-partial-messages --replay-user-messages --max-turns 3 --permission-mode default \
                 --setting-sources= --settings {} --append-system-prompt x --max-thinking-tokens 1024 --add-dir . \
                 --betas b --fallback-model f --include-hook-events --strict-mcp-config --session-mirror --plugin-dir p \
                 --thinking adaptive --thinking-display summarized --effort high --debug --debug-file d \
                 --no-session-persistence --managed-settings {} --allow-dangerously-skip-permissions --channels c \
                 --task-budget 1 --tools default";
    let words: Vec<&str> = words.split_whitespace().collect();
    let ended = at(&home, &provider, &words).run_as::<Agentx>(PROMPT);
    assert_eq!(
        (ended.code, &result(&ended)["result"]),
        (Some(0), &json!("Hello.")),
        "{}",
        ended.stderr
    );
    assert_eq!(
        provider.request(1).json()["thinking"]["budget_tokens"],
        1024
    );
}

#[test]
fn wire_026_ax_s29_providers_are_listed_before_a_session_and_never_with_a_credential() {
    let home = Home::new();
    home.settings("[model]\napi = 'openai'\nprovider = 'house'\nname = 'big'\nefforts = ['low']\n");
    let list = |args: &[&str]| {
        Setup::plain(
            &home,
            &[
                "as",
                "agentx",
                "--list-providers",
                "--output-format",
                "json",
            ],
        )
        .args(args)
        .env("OPENAI_API_KEY", "a very long key")
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
    };
    let out = list(&[]).env("OPENAI_API_KEY", KEY).output();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    let list_of: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(list_of["version"], 1);
    let provider = &list_of["providers"][0];
    assert_eq!(
        (&provider["id"], &provider["selected"]),
        (&json!("house"), &json!(false))
    );
    // A key that the document would hold.
    let out = list(&[]).env("OPENAI_API_KEY", "house\",\"id").output();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
    let out = list(&["prompt"]).output();
    assert_eq!((out.status.code(), out.stdout.len()), (Some(1), 0));
}
