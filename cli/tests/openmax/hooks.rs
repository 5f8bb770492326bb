//! Hooks and permission rules of the settings file, through whole turns.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_io::process::GroupId;

use crate::support::program::{Home, KEY, Program, Setup, joined, of, types};
use crate::support::provider::Provider;
use crate::support::replies::openai;

/// A hook's table.
fn hook(name: &str, event: &str, command: &str, rest: &str) -> String {
    let command = command.replace('\\', "\\\\").replace('"', "\\\"");
    format!("[[hook]]\nname = \"{name}\"\nevent = \"{event}\"\ncommand = \"{command}\"\n{rest}\n")
}

/// One call of `bash`, then the end.
fn bash_turn(command: &str) -> Provider {
    Provider::start([
        openai::calls(&[("c1", "bash", json!({ "command": command }))]),
        openai::says("Done."),
    ])
}

/// The program with these user settings, in a mode.
fn start(home: &Home, provider: &Provider, mode: &str, settings: &str) -> Program {
    home.settings(settings);
    let setup = Setup::openai_in(home, provider, mode).key("TEST_KEY");
    let mut program = setup.start();
    program.see_type("hello");
    program
}

fn stop_reason(lines: &[Value]) -> &Value {
    &of(lines, "done")[0]["stop_reason"]
}

/// The roles and texts of the messages of a request.
fn messages(provider: &Provider, number: usize) -> Vec<(String, String)> {
    let body = provider.request(number).json();
    let messages = body["messages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages
        .iter()
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .collect()
}

#[test]
fn om_31_a_prompt_hook_blocks_and_the_model_is_never_asked() {
    let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
    let line = "grep -q secret && { echo no secrets please; exit 2; }; exit 0";
    let mut program = start(
        &home,
        &provider,
        "auto",
        &hook("guard", "user_prompt_submit", line, ""),
    );
    let lines = program.turn("tell me a secret");
    assert_eq!(types(&lines), ["error", "done"]);
    assert_eq!(lines[0]["message"], "input blocked: no secrets please");
    assert_eq!(stop_reason(&lines), "blocked");
    assert_eq!(provider.requests().len(), 0);
    // It leaves nothing in the history of the next turn.
    let lines = program.turn("tell me a joke");
    assert_eq!(stop_reason(&lines), "stop");
    let sent = provider.request(1).json().to_string();
    assert!(sent.contains("joke") && !sent.contains("secret"), "{sent}");
}

#[test]
fn om_31_a_prompt_hook_that_fails_blocks_if_it_decides_and_is_reported_if_it_observes() {
    for (line, detail) in [
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        ("/no/such/program", "exit code 127"),
        ("echo '{\"context\":1}'", "context is not a string"),
    ] {
        let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
        let mut program = start(
            &home,
            &provider,
            "auto",
            &hook("guard", "user_prompt_submit", line, ""),
        );
        let lines = program.turn("hi");
        assert_eq!(types(&lines), ["error", "done"], "{line}");
        let message = lines[0]["message"].as_str().unwrap();
        assert!(
            message.starts_with("input blocked: hook guard failed: "),
            "{message}"
        );
        assert!(message.contains(detail), "{message}");
        assert_eq!(stop_reason(&lines), "blocked");
    }
    let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
    let settings = hook(
        "watch",
        "user_prompt_submit",
        "echo broken; exit 2",
        "observe = true",
    );
    let lines = start(&home, &provider, "auto", &settings).turn("hi");
    assert_eq!(types(&lines)[..2], ["hook_failed", "budget"]);
    let failed = &lines[0];
    assert_eq!(failed["hook"], "watch");
    assert_eq!(failed["event"], "user_prompt_submit");
    assert_eq!(failed["detail"], "exit code 2: broken");
    assert_eq!(stop_reason(&lines), "stop");
}

#[test]
fn a_prompt_hook_may_add_to_the_prompt_or_change_it() {
    let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
    let settings = hook(
        "day",
        "user_prompt_submit",
        "echo '{\"context\":\"It is Monday.\"}'",
        "",
    ) + &hook(
        "polite",
        "user_prompt_submit",
        "echo '{\"input\":\"please say hi\"}'",
        "",
    );
    let lines = start(&home, &provider, "auto", &settings).turn("hi");
    assert_eq!(stop_reason(&lines), "stop");
    let sent = provider.request(1).json().to_string();
    assert!(
        sent.contains("please say hi") && sent.contains("It is Monday."),
        "{sent}"
    );
    assert!(!sent.contains("\"hi\""), "{sent}");
}

#[test]
fn om_30_a_turn_end_hook_refuses_once_and_the_model_is_told() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Done."), openai::says("Now really.")]);
    let line = "cat >told.$(ls | grep -c told); test -e again || { touch again; echo tests failing; exit 2; }";
    let lines = start(
        &home,
        &provider,
        "auto",
        &hook("verify", "turn_end", line, ""),
    )
    .turn("go");
    assert_eq!(
        types(&lines),
        [
            "budget",
            "token",
            "message_done",
            "turn_refused",
            "budget",
            "token",
            "message_done",
            "done"
        ]
    );
    let refused = of(&lines, "turn_refused")[0];
    assert_eq!(
        (&refused["hook"], &refused["reason"]),
        (&json!("verify"), &json!("tests failing"))
    );
    assert_eq!(refused["continuation"], 0);
    assert_eq!(refused["continuations_left"], 8);
    assert_eq!(stop_reason(&lines), "stop");
    let sent = messages(&provider, 2);
    let (role, text) = sent.last().unwrap();
    assert!(role == "user" && text.contains("tests failing"), "{sent:?}");
    // The numbers of the line are those that the hook was told.
    for (name, honoured, text) in [("told.0", 0, "Done."), ("told.1", 1, "Now really.")] {
        let told: Value = serde_json::from_str(&home.read(name).unwrap()).unwrap();
        assert_eq!(told["event"], "turn_end");
        assert_eq!(told["continuation"], honoured);
        assert_eq!(told["continuations_left"], 8 - honoured);
        assert_eq!(told["text"], text);
        assert_eq!(told["session_id"], lines[0]["session_id"]);
    }
}

#[test]
fn om_30_om_23_eight_refusals_are_honoured_then_the_reply_stands_unverified() {
    let home = Home::new();
    let provider = Provider::start((0..9).map(|n| openai::says(&format!("Try {n}."))));
    let lines = start(
        &home,
        &provider,
        "auto",
        &hook("never", "turn_end", "echo no; exit 2", ""),
    )
    .turn("go");
    let numbers: Vec<(u64, u64)> = of(&lines, "turn_refused")
        .iter()
        .map(|line| {
            let number = |name: &str| line[name].as_u64().unwrap();
            (number("continuation"), number("continuations_left"))
        })
        .collect();
    let want: Vec<(u64, u64)> = (0..8).map(|n| (n, 8 - n)).collect();
    assert_eq!(numbers, want);
    assert_eq!(of(&lines, "message_done").len(), 9);
    assert_eq!(stop_reason(&lines), "unverified");
    let ninth = of(&lines, "hook_failed");
    assert_eq!(ninth.len(), 1, "{lines:?}");
    assert_eq!(
        (&ninth[0]["hook"], &ninth[0]["event"]),
        (&json!("never"), &json!("turn_end"))
    );
    assert!(
        ninth[0]["detail"].as_str().unwrap().contains("no"),
        "{ninth:?}"
    );
    assert_eq!(provider.requests().len(), 9);
}

#[test]
fn om_31_a_hook_that_hangs_is_ended_when_its_time_is_up() {
    let tick = "timeout = 0.3\n";
    let hang = "sleep 60";
    let begun = Instant::now();
    for (event, rest, reason) in [
        ("user_prompt_submit", "", "blocked"),
        ("user_prompt_submit", "observe = true\n", "stop"),
        ("turn_end", "", "stop"),
        ("turn_end", "observe = true\n", "stop"),
    ] {
        let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
        let settings = hook("slow", event, hang, &(tick.to_owned() + rest));
        let mut program = start(&home, &provider, "auto", &settings);
        let lines = program.turn("hi");
        assert_eq!(stop_reason(&lines), reason, "{event} {rest}");
        let failed = of(&lines, "hook_failed");
        if reason == "blocked" {
            let message = lines[0]["message"].as_str().unwrap();
            assert_eq!(message, "input blocked: hook slow failed: it took too long");
            assert!(failed.is_empty());
        } else {
            assert_eq!(failed.len(), 1, "{lines:?}");
            assert_eq!(failed[0]["detail"], "it took too long");
        }
        program.close_input();
        program.wait();
    }
    assert!(begun.elapsed() < Duration::from_secs(40));
}

#[test]
fn a_pre_tool_hook_denies_changes_or_asks() {
    let deny = hook(
        "no-rm",
        "pre_tool_use",
        "grep -q 'rm ' && { echo use trash; exit 2; }; exit 0",
        "matcher = \"ba*\"",
    );
    let (home, provider) = (Home::new(), bash_turn("rm -f x && touch made"));
    let lines = start(&home, &provider, "auto", &deny).turn("go");
    let end = of(&lines, "tool_end")[0];
    assert_eq!(end["ok"], false);
    assert!(
        end["output"].as_str().unwrap().contains("use trash"),
        "{end}"
    );
    assert!(home.read("made").is_none());
    assert_eq!(stop_reason(&lines), "stop");

    // Of another tool it isn't asked.
    let other = hook("no-rm", "pre_tool_use", "exit 2", "matcher = \"write_*\"");
    let (home, provider) = (Home::new(), bash_turn("touch made"));
    start(&home, &provider, "auto", &other).turn("go");
    assert!(home.read("made").is_some());

    // An allow spares the question, and may change the arguments.
    let change = "echo '{\"decision\":\"allow\",\"input\":{\"command\":\"touch other\"}}'";
    let (home, provider) = (Home::new(), bash_turn("touch made"));
    let lines = start(
        &home,
        &provider,
        "ask",
        &hook("h", "pre_tool_use", change, ""),
    )
    .turn("go");
    assert!(of(&lines, "approval_request").is_empty() && home.read("made").is_none());
    assert!(home.read("other").is_some(), "{lines:?}");

    // It asks, in a mode that asks, also about what only reads.
    let ask = hook("h", "pre_tool_use", "echo '{\"decision\":\"ask\"}'", "");
    let home = Home::new();
    home.write("a.txt", "words\n");
    let provider = Provider::start([
        openai::calls(&[("c1", "read_file", json!({ "path": "a.txt" }))]),
        openai::says("Done."),
    ]);
    let mut program = start(&home, &provider, "ask", &ask);
    program.user("go");
    let request = program.see_type("approval_request");
    program.approve(&request["approval_id"], true);
    assert_eq!(program.see_type("tool_end")["ok"], true);
    program.see_type("done");
}

#[test]
fn om_31_a_pre_tool_hook_that_fails_denies_the_call() {
    let (home, provider) = (Home::new(), bash_turn("touch made"));
    let lines = start(
        &home,
        &provider,
        "auto",
        &hook("h", "pre_tool_use", "exit 9", ""),
    )
    .turn("go");
    let end = of(&lines, "tool_end")[0];
    assert!(end["ok"] == false && home.read("made").is_none(), "{end}");
    assert!(
        end["output"]
            .as_str()
            .unwrap()
            .contains("hook h failed: exit code 9"),
        "{end}"
    );
    assert_eq!(stop_reason(&lines), "stop");
}

#[test]
fn a_post_tool_hook_adds_to_the_result_and_its_failure_is_reported() {
    let settings = hook(
        "lint",
        "post_tool_use",
        "cat >told; echo '{\"context\":\"2 warnings\"}'",
        "",
    ) + &hook("audit", "post_tool_use", "exit 1", "observe = true");
    let (home, provider) = (Home::new(), bash_turn("echo words"));
    let lines = start(&home, &provider, "auto", &settings).turn("go");
    let kinds = types(&lines);
    let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(
        at("tool_start") < at("hook_failed") && at("hook_failed") < at("tool_end"),
        "{kinds:?}"
    );
    let failed = of(&lines, "hook_failed")[0];
    assert_eq!(failed["event"], "post_tool_use");
    assert_eq!(failed["detail"], "exit code 1");
    let sent = messages(&provider, 2);
    let (_, result) = sent.last().unwrap();
    assert!(
        result.contains("words") && result.contains("2 warnings"),
        "{result}"
    );
    let told: Value = serde_json::from_str(&home.read("told").unwrap()).unwrap();
    assert_eq!(told["tool"], "bash");
    assert_eq!(told["args"], json!({ "command": "echo words" }));
    assert!(told["output"].as_str().unwrap().contains("words"), "{told}");
}

#[test]
fn om_16_a_hook_sees_neither_the_key_nor_what_it_wasnt_given() {
    let (home, provider) = (Home::new(), Provider::start([openai::says("Fine.")]));
    home.settings(&hook("env", "turn_end", "env >seen", ""));
    let setup = Setup::openai(&home, &provider).key("TEST_KEY");
    let mut program = setup.env("SECRET_OF_HOST", "hidden").start();
    let lines = program.turn("hi");
    let seen = home.read("seen").unwrap();
    assert!(!seen.contains(KEY) && !seen.contains("hidden"), "{seen}");
    let session = lines[0]["session_id"].as_str().unwrap();
    assert!(
        seen.contains(&format!("TURNWIRE_SESSION={session}")),
        "{seen}"
    );
}

#[test]
fn a_deny_rule_holds_in_auto_whatever_a_hook_says() {
    let rule = "[[rule]]\naction = \"deny\"\ntool = \"bash\"\npattern = \"*touch *\"\n";
    let allow = hook("h", "pre_tool_use", "echo '{\"decision\":\"allow\"}'", "");
    for settings in [rule.to_owned(), rule.to_owned() + &allow] {
        let (home, provider) = (Home::new(), bash_turn("touch made"));
        let lines = start(&home, &provider, "auto", &settings).turn("go");
        let end = of(&lines, "tool_end")[0];
        assert!(end["ok"] == false && home.read("made").is_none(), "{end}");
        assert!(end["output"].as_str().unwrap().contains("denied"), "{end}");
        assert_eq!(stop_reason(&lines), "stop");
    }
    let (home, provider) = (Home::new(), bash_turn("echo fine"));
    let lines = start(&home, &provider, "auto", rule).turn("go");
    assert_eq!(of(&lines, "tool_end")[0]["ok"], true);
}

#[test]
fn om_14_an_ask_rule_is_silent_in_auto_and_asks_in_ask() {
    let rule = "[[rule]]\naction = \"ask\"\ntool = \"read_file\"\n";
    let read = || {
        Provider::start([
            openai::calls(&[("c1", "read_file", json!({ "path": "a.txt" }))]),
            openai::says("Done."),
        ])
    };
    let home = Home::new();
    home.write("a.txt", "words\n");
    let provider = read();
    let lines = start(&home, &provider, "auto", rule).turn("go");
    assert!(of(&lines, "approval_request").is_empty());
    assert_eq!(of(&lines, "tool_end")[0]["ok"], true);

    let provider = read();
    let mut program = start(&home, &provider, "ask", rule);
    program.user("go");
    let request = program.see_type("approval_request");
    assert_eq!(request["name"], "read_file");
    program.approve(&request["approval_id"], false);
    assert_eq!(program.see_type("tool_end")["ok"], false);
    program.see_type("done");
}

#[test]
fn an_allow_rule_spares_the_question_for_what_it_matches() {
    let rule = "[[rule]]\naction = \"allow\"\ntool = \"bash\"\npattern = \"touch *\"\n";
    let (home, provider) = (Home::new(), bash_turn("touch made"));
    let lines = start(&home, &provider, "ask", rule).turn("go");
    assert!(
        of(&lines, "approval_request").is_empty() && home.read("made").is_some(),
        "{lines:?}"
    );
    let (home, provider) = (Home::new(), bash_turn("echo touch made"));
    let mut program = start(&home, &provider, "ask", rule);
    program.user("go");
    program.see_type("approval_request");
}

#[test]
fn om_23_a_cancel_ends_the_hook_that_runs() {
    let line = "echo $$ >begun; echo x >>began; sleep 60";
    for event in [
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use",
        "turn_end",
    ] {
        let home = Home::new();
        let provider = match event {
            "pre_tool_use" | "post_tool_use" => bash_turn("echo words"),
            _ => Provider::start([openai::says("Fine.")]),
        };
        let mut program = start(&home, &provider, "auto", &hook("slow", event, line, ""));
        program.user("go");
        let group = crate::support::wait_for("the hook", || {
            home.read("begun").filter(|text| text.ends_with('\n'))
        });
        let begun = Instant::now();
        program.cancel();
        let done = program.see_type("done");
        assert_eq!(done["stop_reason"], "cancelled", "{event}");
        assert!(of(program.seen(), "hook_failed").is_empty(), "{event}");
        assert!(begun.elapsed() < Duration::from_secs(2), "{event}");
        crate::support::wait_for("the end of its group", || {
            let group = GroupId::of(group.trim().parse().expect("its number")).expect("a group");
            (!group.has_members()).then_some(())
        });
        program.close_input();
        program.wait();
    }
}

#[test]
fn a_projects_hooks_and_rules_count_once_it_is_trusted() {
    let home = Home::new();
    home.write(
        "turnwire.toml",
        &hook("guard", "user_prompt_submit", "echo stop; exit 2", ""),
    );
    // The built-in script plays without trust; then the project's file is left aside.
    let mut program = Setup::serve(&home).start();
    assert_eq!(stop_reason(&program.turn("hi")), "stop");
    program.close_input();
    assert!(program.wait().stderr.contains("isn't used"));
    let mut program = Setup::serve(&home).args(&["--trust-project"]).start();
    let lines = program.turn("hi");
    assert_eq!(stop_reason(&lines), "blocked");
    assert!(joined(&lines, "token").is_empty());
}
