//! External tools: manifests, approvals of exact bytes, what a tool is told and given.

use serde_json::{Value, json};

use crate::support::program::{Home, Program, Setup, of, survivors, types};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

const MANIFEST: &str = ".turnwire/tools/peek.toml";

const PEEK: &str = r#"name = "peek"
description = "Looks at a thing."
command = ["sh", "tools/peek.sh", "--all"]
env = ["DEPLOY_TOKEN", "OTHER_NAME"]
reads_only = true

[parameters]
required = ["count"]
properties.count.type = "integer"
"#;

/// The first 12 digits of what `sha256sum` says of that text.
const PEEK_SHA: &str = "93175339ab4c";

const SCRIPT: &str = "read -r told\necho \"told $told with $*, $DEPLOY_TOKEN, $NOT_LISTED.\"\n";

const SCRIPT_SHA: &str = "ac9582c6dda7";

fn peeking() -> Home {
    let home = Home::new();
    home.write(MANIFEST, PEEK);
    home.write("tools/peek.sh", SCRIPT);
    home
}

/// As many turns, each with one call of the tool.
fn provider(turns: usize) -> Provider {
    let turn = |_| [peek(), openai::says("So.")];
    Provider::start((0..turns).flat_map(turn))
}

fn peek() -> Reply {
    openai::calls(&[("c1", "peek", json!({ "count": 3 }))])
}

fn start(home: &Home, provider: &Provider, mode: &str) -> Program {
    Setup::openai_in(home, provider, mode)
        .env("DEPLOY_TOKEN", "token-of-the-user")
        .env("NOT_LISTED", "this-neither")
        .args(&["--pass-env", "NOT_LISTED"])
        .start()
}

/// A turn in which the host is asked, and answers.
#[track_caller]
fn asked(program: &mut Program, approved: bool) -> (Value, Value) {
    program.user("go");
    let request = program.see_type("approval_request");
    program.approve(&request["approval_id"], approved);
    let end = program.see_type("tool_end");
    program.see_type("done");
    (request, end)
}

/// A turn in which it isn't.
#[track_caller]
fn unasked(program: &mut Program) -> Value {
    let lines = program.turn("go");
    assert!(of(&lines, "approval_request").is_empty(), "{lines:?}");
    of(&lines, "tool_end")[0].clone()
}

#[track_caller]
fn output(end: &Value) -> &str {
    end["output"].as_str().unwrap()
}

/// What a person is shown who approves.
#[track_caller]
fn approve(home: &Home, words: &[&str]) -> String {
    let done = Setup::plain(home, words).output();
    assert_eq!(
        done.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

const TOLD: &str = "told {\"count\":3} with --all, token-of-the-user, .\n";

#[test]
fn om_15_om_16_exact_bytes_are_asked_about_once() {
    let home = peeking();
    let provider = provider(5);
    let mut program = start(&home, &provider, "ask");
    let (request, end) = asked(&mut program, false);
    assert_eq!(request["reason"], "unapproved_source");
    assert_eq!(request["source_path"], MANIFEST);
    assert_eq!(request["source_sha"], PEEK_SHA);
    assert_eq!(request["env"], json!(["DEPLOY_TOKEN", "OTHER_NAME"]));
    let detail = request["detail"].as_str().unwrap();
    for words in ["'sh' 'tools/peek.sh' '--all'", SCRIPT_SHA, "count"] {
        assert!(detail.contains(words), "{detail}");
    }
    assert_eq!(end["ok"], false);

    let (again, end) = asked(&mut program, true);
    assert_eq!(again["source_sha"], request["source_sha"]);
    assert_eq!((&end["ok"], output(&end)), (&json!(true), TOLD));
    assert_eq!(output(&unasked(&mut program)), TOLD);
    program.close_input();
    program.wait();

    // Another session knows it too. What else is passed to commands isn't passed to tools.
    let mut program = start(&home, &provider, "ask");
    assert_eq!(output(&unasked(&mut program)), TOLD);
    // A changed byte of its code asks again, and names that file.
    home.write("tools/peek.sh", &format!("{SCRIPT}\n"));
    program.user("go");
    let refrozen = program.see_type("refrozen");
    assert!(
        refrozen["changes"]
            .to_string()
            .contains("code of the tool peek changed"),
        "{refrozen}"
    );
    let request = program.see_type("approval_request");
    assert_eq!(request["source_path"], "tools/peek.sh");
    assert_ne!(request["source_sha"], SCRIPT_SHA);
    program.approve(&request["approval_id"], true);
    assert_eq!(output(&program.see_type("tool_end")), TOLD);
    program.see_type("done");
}

#[test]
fn om_14_in_auto_nothing_is_asked_and_no_credential_is_given() {
    let home = peeking();
    let provider = provider(2);
    let mut program = start(&home, &provider, "auto");
    let end = unasked(&mut program);
    assert_eq!(end["ok"], true);
    let text = output(&end);
    assert!(
        text.starts_with("told {\"count\":3} with --all, , .\n"),
        "{text}"
    );
    for words in [
        "ran without DEPLOY_TOKEN, OTHER_NAME",
        "turnwire --approve .turnwire/tools/peek.toml",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // The command that it names is one that works.
    approve(&home, &["--approve", MANIFEST]);
    assert_eq!(output(&unasked(&mut program)), TOLD);
    let refrozen = of(program.seen(), "refrozen");
    assert!(
        refrozen[0]["changes"]
            .to_string()
            .contains("tool peek is approved now"),
        "{refrozen:?}"
    );
}

#[test]
fn om_15_a_person_approves_from_the_shell() {
    let home = peeking();
    let agent = Setup::plain(&home, &["approve", MANIFEST]).env("TURNWIRE_SESSION", "s1");
    let agent = agent.output();
    assert_eq!((agent.status.code(), agent.stdout.len()), (Some(3), 0));
    home.write("notes.toml", "");
    for (path, words) in [("notes.toml", "no tool"), ("gone.toml", "gone.toml")] {
        let wrong = Setup::plain(&home, &["approve", path]).output();
        assert_eq!(wrong.status.code(), Some(2));
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert!(said.contains(words), "{said}");
    }
    let provider = provider(1);
    home.write(MANIFEST, &PEEK.replace("reads_only = true\n", ""));
    // By a file of its code it is the same tool.
    let approved = approve(&home, &["approve", "tools/peek.sh"]);
    for words in [
        "approved peek",
        "'sh' 'tools/peek.sh'",
        SCRIPT_SHA,
        "DEPLOY_TOKEN OTHER_NAME",
    ] {
        assert!(approved.contains(words), "{approved}");
    }
    let mut program = start(&home, &provider, "ask");
    program.user("go");
    // It isn't known to only read, so the mode asks; its source is no question any more.
    let request = program.see_type("approval_request");
    assert_eq!(request["reason"], "gate");
    assert!(request.get("env").is_none());
}

#[test]
fn om_15_a_session_that_an_agent_started_runs_nothing_unapproved() {
    let home = peeking();
    let provider = provider(3);
    let mut program = start(&home, &provider, "ask");
    program.see_type("hello");
    program.close_input();
    program.wait();
    for mode in ["ask", "auto"] {
        let mut program = Setup::openai_in(&home, &provider, mode)
            .env("TURNWIRE_SESSION", "s1")
            .start();
        let end = unasked(&mut program);
        assert_eq!(end["ok"], false, "{mode}: {end}");
        program.close_input();
        program.wait();
    }
}

#[test]
fn om_08_a_reload_says_which_tools_came_changed_and_went() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One.")]);
    let mut program = Setup::openai(&home, &provider).start();
    let mut reload = || {
        program.send(&json!({ "cmd": "reload" }));
        let answer = program.see_type("refrozen");
        (
            answer["tools"].as_u64().unwrap(),
            answer["changes"].to_string(),
        )
    };
    let (before, said) = reload();
    assert_eq!(said, "[]");
    home.write(MANIFEST, PEEK);
    assert_eq!(
        reload(),
        (
            before + 1,
            "[\"tool peek added (.turnwire/tools/peek.toml)\"]".to_owned()
        )
    );
    home.write(MANIFEST, &PEEK.replace("a thing", "things"));
    assert_eq!(
        reload(),
        (
            before + 1,
            "[\"tool peek changed (.turnwire/tools/peek.toml)\"]".to_owned()
        )
    );
    home.write("tools/peek.sh", SCRIPT);
    assert!(reload().1.contains("code of the tool peek changed"));
    home.write(
        ".turnwire/tools/bad.toml",
        "name = 'list_dir'\ndescription = 'x'\ncommand = ['x']\n",
    );
    let (count, said) = reload();
    assert!(
        count == before + 1 && said.contains("bad.toml: list_dir is the name of"),
        "{said}"
    );
    std::fs::remove_file(home.project().join(MANIFEST)).unwrap();
    assert_eq!(
        reload(),
        (
            before,
            "[\"tool peek removed (.turnwire/tools/peek.toml)\"]".to_owned()
        )
    );
    program.turn("go");
    let tools = provider.request(1).json()["tools"].to_string();
    assert!(!tools.contains("peek"), "{tools}");
}

#[test]
fn what_cant_be_loaded_is_said_and_holds_nothing_up() {
    let home = peeking();
    let provider = provider(1);
    for (name, text, words) in [
        (
            "a",
            "name = 'a b'\ndescription = 'x'\ncommand = ['x']\n",
            "a name is",
        ),
        ("b", "name = 'b'\ndescription = 'x'\n", "command"),
        (
            "c",
            "name = 'c'\ndescription = 'x'\ncommand = []\n",
            "no program",
        ),
        (
            "d",
            "name = 'd'\ndescription = 'x'\ncommand = ['x']\nenv = ['OPENAI_API_KEY']\n",
            "a provider's key",
        ),
        (
            "e",
            "name = 'e'\ndescription = 'x'\ncommand = ['x']\nshell = true\n",
            "shell",
        ),
        (
            "f",
            "name = 'f'\ndescription = 'x'\ncommand = ['x']\ncode = ['gone.sh']\n",
            "gone.sh",
        ),
        (
            "g",
            "name = 'g'\ndescription = 'x'\ncommand = ['x']\nparameters = '[]'\n",
            "an object",
        ),
        (
            "q",
            "name = 'peek'\ndescription = 'x'\ncommand = ['x']\n",
            "already",
        ),
    ] {
        let path = format!(".turnwire/tools/{name}.toml");
        home.write(&path, text);
        let mut program = start(&home, &provider, "auto");
        program.see_type("hello");
        program.close_input();
        let ended = program.wait();
        let told: Vec<&str> = ended
            .stderr
            .lines()
            .filter(|line| line.contains(&path))
            .collect();
        assert!(
            told.len() == 1 && told[0].contains(words),
            "{name}: {}",
            ended.stderr
        );
        std::fs::remove_file(home.project().join(&path)).unwrap();
    }
    // The user's own goes before the project's.
    std::fs::create_dir_all(home.path("config/turnwire/tools")).unwrap();
    let own =
        "name = 'peek'\ndescription = 'x'\ncommand = ['echo', 'the user']\nparameters = '{}'\n";
    std::fs::write(home.path("config/turnwire/tools/x.toml"), own).unwrap();
    let mut program = start(&home, &provider, "auto");
    assert_eq!(output(&unasked(&mut program)), "the user\n");
    program.close_input();
    assert!(program.wait().stderr.contains("peek is the tool of"));
}

#[test]
fn an_untrusted_projects_tools_arent_used() {
    let home = peeking();
    let ended = Setup::serve(&home).run("{\"cmd\":\"quit\"}\n");
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.stderr.contains("peek.toml isn't used"),
        "{}",
        ended.stderr
    );
}

#[test]
fn code_that_changes_in_a_turn_isnt_run_before_the_next() {
    let home = peeking();
    let change = openai::calls(&[(
        "c0",
        "write_file",
        json!({ "path": "tools/peek.sh", "content": "echo other" }),
    )]);
    let provider = Provider::start([
        change,
        peek(),
        openai::says("So."),
        peek(),
        openai::says("So."),
    ]);
    approve(&home, &["approve", MANIFEST]);
    let mut program = start(&home, &provider, "auto");
    let lines = program.turn("go");
    let ends = of(&lines, "tool_end");
    assert!(
        ends[1]["ok"] == false && output(ends[1]).contains("has changed since this turn began"),
        "{ends:?}"
    );
    assert!(output(&unasked(&mut program)).contains("ran without DEPLOY_TOKEN"));
}

#[test]
fn a_tool_need_not_listen_and_its_failure_is_told() {
    let home = Home::new();
    home.write(
        MANIFEST,
        "name = 'peek'\ndescription = 'x'\ncommand = ['sh', '-c', 'echo out; echo err >&2; exit 7']\n\
         reads_only = true\nparameters = '{\"properties\":{\"text\":{\"type\":\"string\"}}}'\n",
    );
    let call = openai::calls(&[("c1", "peek", json!({ "text": "x".repeat(300_000) }))]);
    let wrong = openai::calls(&[("c2", "peek", json!({ "text": 7 }))]);
    let provider = Provider::start([call, wrong, openai::says("So.")]);
    approve(&home, &["approve", MANIFEST]);
    // It only reads, so no mode asks about it.
    let mut program = start(&home, &provider, "readonly");
    let lines = program.turn("go");
    let ends = of(&lines, "tool_end");
    assert_eq!(
        (&ends[0]["ok"], output(ends[0])),
        (&json!(false), "exit code 7\nout\n\n[stderr]\nerr\n")
    );
    assert!(
        output(ends[1]).contains("text should be string"),
        "{ends:?}"
    );
    assert!(!types(&lines).contains(&"approval_request"));
}

#[test]
fn om_28_a_cancel_ends_a_tool_and_what_it_started() {
    let home = Home::new();
    home.write(
        MANIFEST,
        "name = 'peek'\ndescription = 'x'\ncommand = ['sh', '-c', 'sleep 300 & echo $! > child; wait']\nparameters = '{}'\n",
    );
    let provider = provider(1);
    let mut program = start(&home, &provider, "auto");
    program.user("go");
    wait_for("the tool to run", || {
        home.read("child").filter(|text| text.ends_with('\n'))
    });
    program.cancel();
    program.see(&json!({ "type": "done", "stop_reason": "cancelled" }));
    wait_for("every process to be gone", || {
        survivors(&home.project())
            .iter()
            .all(|(pid, _)| *pid == program.pid())
            .then_some(())
    });
}
