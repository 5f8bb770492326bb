//! The user's providers: listed beforehand, chosen at the start, remembered by a session, and never told of how they are
//! reached (WIRE-024 … 026).

use std::path::Path;

use serde_json::{Value, json};
use turnwire::protocol::agentx::Agentx;

use crate::support::program::{Home, Setup};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::{anthropic, openai};

/// What may stand nowhere but in requests to the provider that it is of.
const HIDDEN: [&str; 7] = [
    "sk-first-sentinel",
    "sk-second-sentinel",
    "first-deployment",
    "second-deployment",
    "2024-02-01",
    "FIRST_KEY",
    "/config/turnwire",
];

/// Two deployments of one model, and one that speaks as Anthropic's do.
fn three(first: &str, second: &str) -> Value {
    json!({ "version": 2, "providers": [
        { "id": "first", "type": "azure_openai", "endpoint": first, "deployment": "first-deployment",
          "api_version": "2024-02-01", "key_env": "FIRST_KEY", "model": "m-1",
          "efforts": ["low", "medium", "high"], "default_effort": "high" },
        { "id": "second", "type": "azure_openai", "endpoint": second, "deployment": "second-deployment",
          "api_version": "preview", "key": "sk-second-sentinel", "model": "m-1", "efforts": ["low"],
          "default_effort": "low" },
        { "id": "third", "type": "anthropic", "endpoint": format!("{second}/v1"), "model": "m-3",
          "api_version": "2023-01-01", "display_name": "The third" },
    ] })
}

fn registry(home: &Home, text: &str) {
    home.settings("");
    let path = home.path("config/turnwire/auth.json");
    std::fs::write(&path, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// The list, as bytes; or with which code none came, and why.
fn list(home: &Home, args: &[&str], env: &[(&str, &str)]) -> Result<String, (Option<i32>, String)> {
    let setup = Setup::plain(home, &["as", "agentx"]).args(args);
    let setup = env
        .iter()
        .fold(setup, |setup, (name, value)| setup.env(name, value));
    let out = setup.output();
    let said = String::from_utf8(out.stderr).unwrap();
    if out.status.success() {
        return Ok(String::from_utf8(out.stdout).unwrap());
    }
    assert!(out.stdout.is_empty(), "{:?}", out.stdout);
    Err((out.status.code(), said))
}

const LIST: [&str; 3] = ["--list-providers", "--output-format", "json"];

fn serve(home: &Home, args: &[&str]) -> Setup {
    Setup::serve_in(home, "agentx")
        .args(&["--trust-project"])
        .args(args)
        .env("FIRST_KEY", "sk-first-sentinel")
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Nothing that a process said or kept holds a word of how a provider is reached.
#[track_caller]
fn tells_nothing(home: &Home, lines: &[Value], stderr: &str, addresses: &[&str]) {
    let kept = ["data", "state", "project"].map(|name| files(&home.path(name)));
    let kept = kept
        .iter()
        .flatten()
        .map(|path| std::fs::read(path).unwrap());
    let kept: Vec<String> = kept
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    let said = lines.iter().map(Value::to_string);
    let all: Vec<String> = said.chain([stderr.to_owned()]).chain(kept).collect();
    for secret in HIDDEN.iter().chain(addresses) {
        let secret = secret.trim_start_matches("http://");
        let told = all.iter().find(|text| text.contains(secret));
        assert!(told.is_none(), "{secret} in {told:?}");
    }
}

/// The contract's own example, byte for byte.
#[test]
fn wire_026_ax_s29_one_document_lists_what_there_is() {
    let home = Home::new();
    let entry = json!({
        "id": "sol-east", "type": "azure_openai", "endpoint": "https://east.example", "deployment": "d-1",
        "api_version": "v1", "key_env": "UNSET", "model": "gpt-5.6-sol", "efforts": ["low", "medium", "high"],
        "default_effort": "high", "default": true
    });
    registry(
        &home,
        &json!({ "version": 2, "providers": [entry] }).to_string(),
    );
    let document = concat!(
        r#"{"version":1,"providers":[{"value":"sol-east","id":"sol-east","providerType":"azure_openai","#,
        r#""model":"gpt-5.6-sol","displayName":"sol-east (gpt-5.6-sol)","#,
        r#""description":"Deployment-backed model endpoint configured by AgentX-home auth.json","default":true,"#,
        r#""selected":false,"supportsEffort":true,"supportedReasoningEfforts":["low","medium","high"],"#,
        r#""defaultReasoningEffort":"high","reasoning":{"supported":true,"efforts":["low","medium","high"],"#,
        r#""defaultEffort":"high"}}]}"#,
        "\n"
    );
    assert_eq!(list(&home, &LIST, &[]).unwrap(), document);
    let other = ["--output-format=json", "--list-providers", "--"];
    assert_eq!(list(&home, &other, &[]).unwrap(), document);
    let text = "sol-east  azure_openai  gpt-5.6-sol  efforts: low, medium, high  (default)\n";
    assert_eq!(list(&home, &["--list-providers"], &[]).unwrap(), text);
}

#[test]
fn wire_026_ax_s29_an_unsafe_list_or_a_file_that_is_wrong_writes_nothing() {
    let home = Home::new();
    registry(
        &home,
        &three("https://a.example", "https://b.example").to_string(),
    );
    let document = list(&home, &LIST, &[]).unwrap();
    // Wherever a key of any provider would stand in the exact bytes, the newline too.
    for key in [
        "third",
        "m-1",
        "}]}",
        "\",\"id\":\"",
        "\"low\",\"medium\"",
        "{\"version\":1",
        "model endpoint",
    ] {
        assert!(document.contains(key));
        let refused = list(&home, &LIST, &[("FIRST_KEY", key)]).unwrap_err();
        assert_eq!(refused.0, Some(1));
        assert!(
            refused.1.contains("credential") && !refused.1.contains(key),
            "{refused:?}"
        );
    }
    assert!(list(&home, &["--list-providers"], &[("FIRST_KEY", "m-1")]).is_err());
    for args in [
        &["--list-providers", "--help"][..],
        &["--list-providers", "--version"],
        &["--list-providers", "a prompt"],
        &["--list-providers", "--output-format", "stream-json"],
        &["--list-providers", "--list-providers"],
    ] {
        let (code, why) = list(&home, args, &[]).unwrap_err();
        assert_eq!(code, Some(1), "{args:?}");
        assert!(why.contains("--list-providers takes"), "{why}");
    }
    let mut twice = three("https://a.example", "https://b.example");
    twice["providers"][0]["default"] = json!(true);
    twice["providers"][2]["default"] = json!(true);
    for text in [
        twice.to_string(),
        "{\"version\":2,\"providers\":[{\"sk-second-sentinel\":\"\"}]}".to_owned(),
    ] {
        registry(&home, &text);
        let (code, why) = list(&home, &LIST, &[]).unwrap_err();
        assert_eq!(code, Some(1));
        assert!(
            why.contains("auth.json:1:") && !why.contains("sentinel"),
            "{why}"
        );
    }
}

#[test]
fn wire_024_ax_s26_ax_s29_a_process_is_bound_to_one_of_those_that_were_listed() {
    let home = Home::new();
    registry(
        &home,
        &three("http://127.0.0.1:9", "http://127.0.0.1:9").to_string(),
    );
    let listed: Value = serde_json::from_str(&list(&home, &LIST, &[]).unwrap()).unwrap();
    let listed = listed["providers"].as_array().unwrap();
    let ids: Vec<_> = listed
        .iter()
        .map(|one| one["value"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["first", "second", "third"]);
    for one in listed {
        assert_eq!(
            (&one["selected"], &one["default"]),
            (&json!(false), &json!(false))
        );
    }
    assert_eq!(listed[2]["displayName"], "The third");
    for (index, id) in ids.iter().enumerate() {
        let mut program = serve(&home, &["--provider", id]).start_as::<Agentx>();
        let init = program.see_type("system");
        let (provider, kind) = (&listed[index]["id"], &listed[index]["providerType"]);
        assert_eq!(
            (&init["provider"], &init["provider_type"], &init["model"]),
            (provider, kind, &listed[index]["model"])
        );
        assert_eq!(init["reasoning_capabilities"], listed[index]["reasoning"]);
        assert_eq!(init["apiKeySource"], "user");
        assert!(init.get("providers").is_none());
        let answer = program.ask(&json!({ "subtype": "initialize" }))["response"].clone();
        let mut selected = listed.clone();
        selected[index]["selected"] = json!(true);
        assert_eq!(answer["providers"], json!(selected));
        assert_eq!(answer["models"].as_array().unwrap().len(), 1);
        assert_eq!(answer["models"][0]["provider"], *provider);
        assert_eq!(answer["account"]["apiKeySource"], "user");
        program.close_input();
        let ended = program.wait();
        tells_nothing(&home, &ended.lines, &ended.stderr, &["127.0.0.1:9"]);
    }
}

#[test]
fn wire_025_a_choice_that_cant_be_made_ends_it_before_anything_is_said() {
    let home = Home::new();
    registry(
        &home,
        &three("http://127.0.0.1:9", "http://127.0.0.1:9").to_string(),
    );
    for (args, word) in [
        (&[][..], "choose one with --provider (first, second, third)"),
        (&["--provider", "fourth"], "--list-providers"),
        (&["--provider", "openai"], "--list-providers"),
        (
            &["--provider", "third", "--model", "m-1"],
            "serves the model",
        ),
        (&["--provider", "first", "--thinking", "extreme"], "extreme"),
        (&["--provider", "third", "--thinking", "low"], "low"),
        (
            &["--provider", "first", "--other-model", "m"],
            "--other-model",
        ),
    ] {
        let ended = serve(&home, args).run_as::<Agentx>("");
        assert_eq!(
            (ended.code, ended.lines.len()),
            (Some(2), 0),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
    }
    let unset = Setup::serve_in(&home, "agentx").args(&["--trust-project", "--provider", "first"]);
    assert_eq!(unset.run_as::<Agentx>("").code, Some(2));
    // The command line of the other program.
    let start = [
        "as",
        "agentx",
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
    ];
    let ended = Setup::plain(&home, &start)
        .args(&["--provider", "first", "--effort", "extreme"])
        .env("FIRST_KEY", "sk-first-sentinel")
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
        .run_as::<Agentx>("");
    assert_eq!(
        (ended.code, ended.lines.len()),
        (Some(1), 0),
        "{}",
        ended.stderr
    );
}

#[test]
fn wire_024_ax_s27_requests_go_to_the_chosen_one_and_nobody_else_hears_of_it() {
    let home = Home::new();
    let (first, second) = (Provider::start([]), Provider::start([]));
    registry(&home, &three(&first.url(), &second.url()).to_string());
    let addresses = [&*first.url(), &*second.url()];
    let turn = |args: &[&str]| {
        let mut program = serve(&home, args).start_as::<Agentx>();
        let lines = program.turn("Greet me.");
        program.close_input();
        let ended = program.wait();
        tells_nothing(&home, &ended.lines, &ended.stderr, &addresses);
        lines.last().unwrap().clone()
    };

    first.then(openai::says("Hello."));
    let result = turn(&["--provider", "first"]);
    assert_eq!(result["result"], "Hello.");
    assert!(result["modelUsage"].get("m-1").is_some(), "{result}");
    let request = first.request(1);
    assert_eq!(
        request.path,
        "/openai/deployments/first-deployment/chat/completions?api-version=2024-02-01"
    );
    assert_eq!(request.header("api-key"), Some("sk-first-sentinel"));
    assert!(request.header("authorization").is_none());
    assert_eq!(request.json()["model"], "first-deployment");
    // The effort that the entry begins with.
    assert_eq!(request.json()["reasoning_effort"], "high");
    assert!(second.requests().is_empty());

    second.then(openai::says("Hello."));
    turn(&["--provider", "second", "--model", "m-1"]);
    let request = second.request(1);
    assert_eq!(
        request.path,
        "/openai/v1/chat/completions?api-version=preview"
    );
    assert_eq!(request.header("api-key"), Some("sk-second-sentinel"));
    assert_eq!(request.json()["reasoning_effort"], "low");
    let text = format!("{request:?}{}", String::from_utf8_lossy(&request.body));
    assert!(!text.contains("first"), "{text}");
    assert_eq!(first.requests().len(), 1);

    second.then(anthropic::reply(&[
        anthropic::start(),
        anthropic::text(0, "Hello."),
        anthropic::end("end_turn"),
    ]));
    turn(&["--provider", "third"]);
    let request = second.request(2);
    assert_eq!(request.path, "/v1/messages");
    assert_eq!(request.header("anthropic-version"), Some("2023-01-01"));
    let versions = request
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-version");
    assert_eq!(versions.count(), 1);
    assert!(request.header("x-api-key").is_none() && request.header("api-key").is_none());
    assert_eq!(request.json()["model"], "m-3");
}

#[test]
fn wire_024_ax_s27_a_provider_that_fails_isnt_told_of_where_it_is() {
    let home = Home::new();
    let first = Provider::start([]);
    // Where nobody listens.
    let dead = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let dead = format!("http://{dead}");
    registry(&home, &three(&first.url(), &dead).to_string());
    let address = first.url();
    let tells = json!({ "error": { "message": format!(
        "the deployment first-deployment at {address} wants api-version 2024-02-01, not the key sk-first-sentinel"
    ) } });
    first.then(Reply::failure("400 Bad Request", &tells.to_string()));
    for id in ["first", "second"] {
        let ended = serve(
            &home,
            &[
                "--provider",
                id,
                "--log",
                "turnwire=trace,turnwire_io=trace",
            ],
        )
        .run_as::<Agentx>(
            "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hi.\"}}\n",
        );
        let result = &ended.of("result")[0];
        assert_eq!(result["is_error"], true);
        let error = result["errors"][0].as_str().unwrap();
        assert!(id == "second" || error.contains("[address]"), "{error}");
        let host = dead.trim_start_matches("http://");
        tells_nothing(&home, &ended.lines, &ended.stderr, &[&address, host]);
    }
}

#[test]
fn wire_025_ax_s28_a_session_goes_on_with_its_own_provider_alone() {
    let home = Home::new();
    let (first, second) = (Provider::start([]), Provider::start([]));
    let three = three(&first.url(), &second.url());
    registry(&home, &three.to_string());
    first.then(openai::says("One."));
    let mut program = serve(&home, &["--provider", "first"]).start_as::<Agentx>();
    program.turn("First.");
    program.close_input();
    program.wait();
    let refused = |args: &[&str], word: &str| {
        let before: Vec<_> = files(&home.path("data"))
            .iter()
            .map(|it| std::fs::read(it).unwrap())
            .collect();
        let ended = serve(&home, args).run_as::<Agentx>("");
        assert_eq!(
            (ended.code, ended.lines.len()),
            (Some(2), 0),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        let after: Vec<_> = files(&home.path("data"))
            .iter()
            .map(|it| std::fs::read(it).unwrap())
            .collect();
        assert!(before == after, "the session was changed");
        assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
    };
    refused(&["--continue", "--provider", "second"], "--provider first");
    refused(&["--continue", "--provider", "third"], "--provider first");
    // The same id by another way, as another type, and with another model.
    for (name, value, word) in [
        ("deployment", json!("other"), "another way"),
        ("api_version", json!("v1"), "another way"),
        ("endpoint", json!(second.url()), "another way"),
        ("model", json!("m-2"), "m-1"),
    ] {
        let mut moved = three.clone();
        moved["providers"][0][name] = value;
        registry(&home, &moved.to_string());
        refused(&["--continue", "--provider", "first"], word);
    }
    // Another key is no other provider.
    registry(&home, &three.to_string());
    first.then(openai::says("Two."));
    let mut program = serve(&home, &["--continue", "--provider", "first"])
        .env("FIRST_KEY", "sk-renewed")
        .start_as::<Agentx>();
    let lines = program.turn("Second.");
    assert_eq!(lines.last().unwrap()["result"], "Two.");
    program.close_input();
    program.wait();
    let body = first.request(2).json();
    assert_eq!(body["messages"].as_array().unwrap().len(), 4);
}

/// In the other program's place too, by its id, and for a copy.
#[test]
fn wire_025_ax_s28_a_copy_is_made_by_the_same_provider_alone_and_stays_with_it() {
    let home = Home::new();
    let provider = Provider::start([]);
    registry(
        &home,
        &three(&provider.url(), "http://127.0.0.1:9").to_string(),
    );
    let start = |args: &[&str]| {
        Setup::plain(
            &home,
            &[
                "as",
                "agentx",
                "--output-format=stream-json",
                "--input-format=stream-json",
            ],
        )
        .args(args)
        .env("FIRST_KEY", "sk-first-sentinel")
        .env("TURNWIRE_TRUST_PROJECT", home.project().to_str().unwrap())
    };
    let turn = |args: &[&str]| {
        provider.then(openai::says("Hello."));
        let mut program = start(args).start_as::<Agentx>();
        let lines = program.turn("Greet me.");
        program.close_input();
        assert_eq!(program.wait().code, Some(0));
        lines.last().unwrap()["session_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let refused = |args: &[&str]| {
        let ended = start(args).run_as::<Agentx>("");
        assert_eq!(
            (ended.code, ended.lines.len()),
            (Some(1), 0),
            "{}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("--provider first"),
            "{}",
            ended.stderr
        );
    };
    let first = turn(&["--provider", "first"]);
    refused(&["--provider", "third", "--resume", &first]);
    refused(&["--provider", "third", "--resume", &first, "--fork-session"]);
    let copy = turn(&["--provider", "first", "--resume", &first, "--fork-session"]);
    assert_ne!(copy, first);
    refused(&["--provider", "second", "--resume", &copy]);
    assert_eq!(turn(&["--provider", "first", "--resume", &copy]), copy);
    assert_eq!(provider.requests().len(), 3);
}

#[test]
fn wire_025_a_session_that_no_provider_is_known_of_doesnt_go_on_in_agentx() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    registry(&home, &three(&provider.url(), &provider.url()).to_string());
    let mut program = serve(&home, &["--provider", "first"]).start_as::<Agentx>();
    program.turn("First.");
    program.close_input();
    program.wait();
    // As an earlier version kept it.
    let transcript = files(&home.path("data"))
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let text = std::fs::read_to_string(&transcript).unwrap();
    let (head, rest) = text.split_once('\n').unwrap();
    let head: Value = serde_json::from_str(head).unwrap();
    assert_eq!(
        (&head["provider"], &head["model"]),
        (&json!("first"), &json!("m-1"))
    );
    let plain = json!({ "type": "session", "version": 1, "id": head["id"], "project": head["project"],
                        "created_at": head["created_at"] });
    std::fs::write(&transcript, format!("{plain}\n{rest}")).unwrap();
    let ended = serve(&home, &["--continue", "--provider", "first"]).run_as::<Agentx>("");
    assert_eq!(
        (ended.code, ended.lines.len()),
        (Some(2), 0),
        "{}",
        ended.stderr
    );
    // Where sessions aren't bound it goes on.
    let args = ["--continue", "--provider", "first", "--preset", "claude"];
    let mut program = serve(&home, &args).start_as::<Agentx>();
    let lines = program.turn("Second.");
    assert_eq!(lines.last().unwrap()["result"], "Two.");
}

#[test]
fn wire_025_a_model_that_may_be_set_is_one_of_the_provider() {
    let home = Home::new();
    registry(
        &home,
        &three("http://127.0.0.1:9", "http://127.0.0.1:9").to_string(),
    );
    let args = ["--provider", "first", "--preset", "agentx-full"];
    let mut program = serve(&home, &args).start_as::<Agentx>();
    let same = program.ask(&json!({ "subtype": "set_model", "model": "m-1" }));
    assert_eq!(same["subtype"], "success", "{same}");
    for other in ["m-3", "second", "gpt"] {
        let refused = program.ask(&json!({ "subtype": "set_model", "model": other }));
        assert_eq!(refused["subtype"], "error", "{refused}");
    }
    let unknown = program.ask(&json!({ "subtype": "set_provider", "provider": "second" }));
    assert!(
        unknown["error"].as_str().unwrap().contains("set_provider"),
        "{unknown}"
    );
}

#[test]
fn the_others_take_a_provider_that_is_named_or_that_nothing_else_stands_for() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    let mut all = three(&provider.url(), "http://127.0.0.1:9");
    registry(&home, &all.to_string());
    let line = "{\"cmd\":\"user\",\"text\":\"Greet me.\"}\n";
    let openmax = |args: &[&str]| {
        Setup::serve(&home)
            .args(&["--trust-project"])
            .args(args)
            .env("FIRST_KEY", "sk-first-sentinel")
    };
    let ended = openmax(&["--provider", "first"]).run(line);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        provider.request(1).header("api-key"),
        Some("sk-first-sentinel")
    );
    assert_eq!(openmax(&[]).run(line).code, Some(2));
    all["providers"][0]["default"] = json!(true);
    registry(&home, &all.to_string());
    assert_eq!(openmax(&[]).run(line).code, Some(0));
    assert_eq!(provider.requests().len(), 2);
    // A script that somebody wants leaves the file unread, whatever is in it.
    registry(&home, "{");
    assert_eq!(openmax(&["--api", "scripted"]).run(line).code, Some(0));
}
