//! The command line of omp: `turnwire as omp`, or a program that is called `omp`.

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use crate::support::program::{Home, KEY, Setup, of};
use crate::support::provider::Provider;
use crate::support::replies::openai;

/// Settings that name the provider's address, as a person would for a client that starts `omp`.
fn settings(home: &Home, provider: &Provider) {
    home.settings(&format!(
        "[model]\napi = 'openai'\nprovider = 'house'\nbase_url = '{}/v1'\nname = 'big'\nothers = ['small']\n",
        provider.url()
    ));
}

fn omp(home: &Home, args: &[&str]) -> Setup {
    Setup::plain(home, &["as", "omp", "--mode", "rpc"]).args(args)
}

fn trusting(home: &Home, args: &[&str]) -> Setup {
    let project = home.project();
    omp(home, args).env("TURNWIRE_TRUST_PROJECT", project.to_str().unwrap())
}

/// Nothing is on stdout, the exit code is 1, and stderr says this much.
#[track_caller]
fn refused(setup: Setup, words: &[&str]) {
    let ended = setup.run_as::<Omp>("");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.lines.is_empty(), "{:?}", ended.lines);
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "no {word:?} in {}",
            ended.stderr
        );
    }
}

#[test]
fn omp_01_it_is_ready_under_either_name() {
    let home = Home::new();
    let link = home.path("omp");
    #[cfg(unix)]
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_turnwire"), &link).unwrap();
    let called = Setup::called(&home, &link, &["--mode", "rpc-ui", "--no-session"]);
    for setup in [omp(&home, &["--no-session"]), called] {
        let ended = setup.run_as::<Omp>("");
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.lines[0]["type"], "ready");
    }
}

#[test]
fn what_cant_be_done_is_refused_with_1_and_nothing_on_stdout() {
    let home = Home::new();
    refused(omp(&home, &["--turbo"]), &["--turbo"]);
    refused(omp(&home, &["@notes.md"]), &["files are no arguments"]);
    refused(
        omp(&home, &["--tools", "telepathy"]),
        &["telepathy", "bash"],
    );
    refused(omp(&home, &["--model", "m"]), &["set api"]);
    refused(
        omp(&home, &["--provider", "nobody", "--model", "m"]),
        &["nobody"],
    );
    refused(omp(&home, &["--api-key", KEY]), &["--api-key"]);
    refused(Setup::plain(&home, &["as", "omp"]), &["--mode"]);
    home.settings("[model]\nfoo = 1\n");
    refused(omp(&home, &[]), &["turnwire.toml:2:1"]);
}

#[test]
fn a_project_is_trusted_beforehand_or_by_the_environment() {
    let home = Home::new();
    let provider = Provider::start([]);
    settings(&home, &provider);
    refused(omp(&home, &[]), &["isn't trusted", "turnwire trust"]);
    let other = home.path("config");
    let elsewhere = omp(&home, &[]).env("TURNWIRE_TRUST_PROJECT", other.to_str().unwrap());
    refused(elsewhere, &["isn't trusted"]);
    let agent = trusting(&home, &[]).env("TURNWIRE_SESSION", "s");
    refused(agent, &["TURNWIRE_SESSION"]);
    let trust = Setup::plain(&home, &["trust"]).run("");
    assert_eq!(trust.code, Some(0), "{}", trust.stderr);
    let ended = omp(&home, &["--no-session"]).run_as::<Omp>("");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let home = Home::new();
    settings(&home, &provider);
    let ended = trusting(&home, &["--no-session"]).run_as::<Omp>("");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // It is remembered, as with the flag.
    let ended = omp(&home, &["--no-session"]).run_as::<Omp>("");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn the_model_is_named_as_clients_do() {
    for (args, want) in [
        (&["--model", "house/small"][..], "small"),
        (&["--provider", "house", "--model", "tiny"], "tiny"),
        (&["--model", "meta/tiny"], "meta/tiny"),
        (&[], "big"),
    ] {
        let home = Home::new();
        let provider = Provider::start([openai::says("Hi.")]);
        settings(&home, &provider);
        let mut program = trusting(&home, args).start_as::<Omp>();
        let model = program.data("get_state")["model"].clone();
        assert_eq!(
            (&model["provider"], &model["id"]),
            (&json!("house"), &json!(want))
        );
        program.turn("go");
        assert_eq!(provider.request(1).json()["model"], want);
    }
}

#[test]
fn what_the_model_is_told_and_may_use_is_on_the_command_line() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hi.")]);
    settings(&home, &provider);
    let args = [
        "--tools",
        "bash,read",
        "--system-prompt",
        "You are under test.",
        "--append-system-prompt",
        "- Be brief.",
    ];
    let mut program = trusting(&home, &args).start_as::<Omp>();
    program.turn("go");
    let body = provider.request(1).json();
    assert_eq!(
        body["messages"][0]["content"],
        "You are under test.\n\n- Be brief."
    );
    let names: Vec<&Value> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["read_file", "bash"]);

    let provider = Provider::start([openai::says("Hi.")]);
    settings(&home, &provider);
    let mut program = trusting(&home, &["--no-tools"]).start_as::<Omp>();
    program.turn("go");
    let body = provider.request(1).json();
    assert!(body.get("tools").is_none(), "{body}");
}

#[test]
fn everything_runs_unasked_unless_somebody_says_otherwise() {
    let call = |id, name, input: Value| openai::calls(&[(id, name, input)]);
    let write = || {
        call(
            "c1",
            "write_file",
            json!({ "path": "a.txt", "content": "x" }),
        )
    };
    let bash = || call("c2", "bash", json!({ "command": "touch b.txt" }));
    for (args, asked) in [
        (&[][..], 0),
        (&["--approval-mode", "yolo"], 0),
        (&["--auto-approve"], 0),
        (&["--approval-mode", "write"], 1),
        (&["--approval-mode", "always-ask"], 2),
    ] {
        let home = Home::new();
        let provider = Provider::start([write(), bash(), openai::says("Done.")]);
        settings(&home, &provider);
        let mut program = trusting(&home, args).start_as::<Omp>();
        program.command("p", "prompt", json!({ "message": "go" }));
        for _ in 0..asked {
            let dialog =
                program.see(&json!({ "type": "extension_ui_request", "method": "select" }));
            program.send(
                &json!({ "type": "extension_ui_response", "id": dialog["id"], "value": "Approve" }),
            );
        }
        program.see(&json!({ "type": "prompt_result", "id": "p", "status": "completed" }));
        let dialogs = of(program.seen(), "extension_ui_request").len();
        assert_eq!(dialogs, asked, "{args:?}");
        assert!(home.read("a.txt").is_some() && home.read("b.txt").is_some());
    }
    // What the person's own settings say goes before.
    let home = Home::new();
    let provider = Provider::start([bash(), openai::says("Done.")]);
    settings(&home, &provider);
    let text = std::fs::read_to_string(home.path("config/turnwire/turnwire.toml")).unwrap();
    home.settings(&(text + "[session]\napproval = 'readonly'\n"));
    let mut program = trusting(&home, &[]).start_as::<Omp>();
    program.turn("go");
    assert_eq!(of(program.seen(), "tool_execution_end")[0]["isError"], true);
    assert_eq!(home.read("b.txt"), None);
}

#[test]
fn a_session_is_kept_where_the_client_says_and_goes_on() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Noted."), openai::says("I remember.")]);
    settings(&home, &provider);
    let folder = home.path("kept");
    let args = ["--session-dir", folder.to_str().unwrap()];
    let mut program = trusting(&home, &args).start_as::<Omp>();
    let file = program.data("get_state")["sessionFile"].clone();
    assert!(
        file.as_str().unwrap().starts_with(folder.to_str().unwrap()),
        "{file}"
    );
    program.turn("Remember this.");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    assert!(std::fs::exists(file.as_str().unwrap()).unwrap());

    let mut program = trusting(&home, &[&args[..], &["--continue"]].concat()).start_as::<Omp>();
    let state = program.data("get_state");
    assert_eq!(
        (&state["sessionFile"], &state["messageCount"]),
        (&file, &json!(2))
    );
    program.turn("What do you know?");
    assert!(
        provider
            .request(2)
            .json()
            .to_string()
            .contains("Remember this.")
    );
}
