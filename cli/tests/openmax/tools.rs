//! Tools that run as subprocesses, through a whole turn.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::program::{Home, KEY, Setup, of};
use crate::support::provider::Provider;
use crate::support::replies::openai;

/// Runs one command in `auto`, and gives its `tool_end` and what the model got.
#[track_caller]
fn bash(setup: impl FnOnce(Setup) -> Setup, command: &str) -> (Value, Value) {
    let home = Home::new();
    let provider = Provider::start([
        openai::calls(&[("c1", "bash", json!({ "command": command }))]),
        openai::says("Done."),
    ]);
    let mut program = setup(Setup::openai(&home, &provider).key("TEST_KEY")).start();
    let lines = program.turn("go");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
    program.close_input();
    program.wait();
    let messages = provider.request(2).json()["messages"].clone();
    (
        of(&lines, "tool_end")[0].clone(),
        messages.as_array().unwrap().last().unwrap().clone(),
    )
}

fn output(end: &Value) -> &str {
    end["output"].as_str().unwrap()
}

#[test]
fn p01_a_grandchild_that_keeps_the_pipe_delays_nothing() {
    for command in [
        "sleep 30 & echo hi",
        "sleep 30 </dev/null >/dev/null & echo hi",
        "(setsid sleep 5 &) ; echo hi",
        "echo hi; exec 3>&1; sleep 30 >&3 & exit 0",
    ] {
        let begun = Instant::now();
        let home = Home::new();
        let provider = Provider::start([
            openai::calls(&[("c1", "bash", json!({ "command": command }))]),
            openai::says("Done."),
        ]);
        let mut program = Setup::openai(&home, &provider).start();
        let lines = program.turn("go");
        assert!(
            begun.elapsed() < Duration::from_secs(4),
            "{:?} for {command}",
            begun.elapsed()
        );
        let end = of(&lines, "tool_end")[0];
        assert!(end["ok"] == true && output(end).contains("hi"), "{end}");
    }
}

#[test]
fn p03_stderr_may_fill_up() {
    for command in [
        "head -c 262144 /dev/zero | tr '\\0' e >&2; echo done",
        "head -c 1048576 /dev/zero | tr '\\0' o; head -c 1048576 /dev/zero | tr '\\0' e >&2; echo done",
    ] {
        let begun = Instant::now();
        let (end, _) = bash(|setup| setup, command);
        assert_eq!(end["ok"], true);
        assert!(
            output(&end).contains("done"),
            "the end of both streams is kept"
        );
        assert!(output(&end).len() < 1024 * 1024, "{}", output(&end).len());
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn p04_output_that_isnt_utf8_harms_nobody() {
    let (end, sent) = bash(|setup| setup, "printf 'a\\377b\\360\\237c\\n'");
    assert!(
        end["ok"] == true && output(&end).contains('\u{fffd}') && output(&end).contains('b'),
        "{end}"
    );
    assert!(
        sent["content"].as_str().unwrap().contains('\u{fffd}'),
        "{sent}"
    );
    let (end, _) = bash(
        |setup| setup,
        "printf '\\303'; sleep 0.3; printf '\\251\\n'",
    );
    assert!(
        output(&end).contains('é') && !output(&end).contains('\u{fffd}'),
        "{end}"
    );
}

#[test]
fn a_command_that_fails_says_how() {
    let (end, sent) = bash(|setup| setup, "echo out; echo err >&2; exit 3");
    assert_eq!(end["ok"], false);
    for word in ["3", "out", "err"] {
        assert!(output(&end).contains(word), "{end}");
        assert!(sent["content"].as_str().unwrap().contains(word), "{sent}");
    }
}

#[test]
fn om_16_a_command_sees_neither_the_key_nor_what_it_wasnt_given() {
    let give = |setup: Setup| {
        setup
            .env("SECRET_OF_HOST", "hidden")
            .env("WANTED", "shown")
            .args(&["--pass-env", "WANTED"])
    };
    let (end, _) = bash(
        give,
        "env; cat /proc/$PPID/environ 2>/dev/null | head -c 0; echo end",
    );
    assert!(
        !output(&end).contains(KEY) && !output(&end).contains("hidden"),
        "{end}"
    );
    assert!(output(&end).contains("WANTED=shown"), "{end}");
    // What they start knows that an agent is its driver.
    assert!(output(&end).contains("TURNWIRE_SESSION="), "{end}");
}

#[test]
fn file_tools_stay_in_the_project_unless_told_otherwise() {
    for (flags, ok) in [(&[][..], false), (&["--allow-outside"][..], true)] {
        let home = Home::new();
        home.write("../outside.txt", "secret words");
        let reply = openai::calls(&[("c1", "read_file", json!({ "path": "../outside.txt" }))]);
        let provider = Provider::start([reply, openai::says("Done.")]);
        let mut program = Setup::openai(&home, &provider).args(flags).start();
        let lines = program.turn("go");
        let end = of(&lines, "tool_end")[0];
        assert_eq!(end["ok"], ok);
        assert_eq!(output(end).contains("secret words"), ok);
    }
}

#[test]
fn a_tool_that_doesnt_exist_and_arguments_that_dont_parse_end_as_failures() {
    let home = Home::new();
    let reply = crate::support::provider::Reply::stream()
        .bytes(openai::call(0, "c1", "no_such_tool", &json!({})))
        .bytes(openai::call_text(1, "c2", "read_file", "{\"path\":"))
        .bytes(openai::call(2, "c3", "read_file", &json!({ "path": 7 })))
        .bytes(openai::finish("tool_calls"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("Sorry.")]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    let ends: Vec<&Value> = of(&lines, "tool_end")
        .iter()
        .map(|line| &line["ok"])
        .collect();
    assert_eq!(ends, [false, false, false]);
    // OM-13: always an object.
    assert!(
        of(&lines, "tool_start")
            .iter()
            .all(|line| line["args"].is_object()),
        "{lines:?}"
    );
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
}

#[test]
fn j05_big_integers_keep_their_digits() {
    let home = Home::new();
    let arguments = "{\"path\":\"a\",\"order\":2512292042121000001,\"page\":9007199254740993}";
    let reply = crate::support::provider::Reply::stream()
        .bytes(openai::call_text(0, "c1", "read_file", arguments))
        .bytes(openai::finish("tool_calls"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("Done.")]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    let start = of(&lines, "tool_start")[0].to_string();
    assert!(
        start.contains("2512292042121000001") && start.contains("9007199254740993"),
        "{start}"
    );
    let again = String::from_utf8(provider.request(2).body).unwrap();
    assert!(
        again.contains("2512292042121000001") && again.contains("9007199254740993"),
        "{again}"
    );
}
