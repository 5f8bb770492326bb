//! Settings that are read anew while a session goes on.

use serde_json::{Value, json};

use crate::support::program::{Home, Program, Setup, of, types};
use crate::support::provider::Provider;
use crate::support::replies::openai;

const HOOK: &str =
    "[[hook]]\nname = 'guard'\nevent = 'user_prompt_submit'\ncommand = 'echo not today; exit 2'\n";

fn start(home: &Home, provider: &Provider) -> Program {
    let mut program = Setup::openai(home, provider).start();
    program.see_type("hello");
    program
}

fn reload(program: &mut Program) -> Value {
    program.send(&json!({ "cmd": "reload" }));
    program.see_answer()
}

fn changes(receipt: &Value) -> String {
    assert_eq!(receipt["type"], "refrozen", "{receipt}");
    receipt["changes"].to_string()
}

fn stop_reason(lines: &[Value]) -> &Value {
    &of(lines, "done")[0]["stop_reason"]
}

/// The whole body of a request, as text.
fn body(provider: &Provider, number: usize) -> String {
    provider.request(number).json().to_string()
}

#[test]
fn om_08_reload_takes_up_what_changed_and_says_what() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    home.write("rules.md", "Answer like a pirate.");
    let mut program = start(&home, &provider);
    let first = reload(&mut program);
    assert_eq!(changes(&first), "[]");

    let instructions = format!(
        "[session]\ninstructions = '{}'\n",
        home.project().join("rules.md").display()
    );
    home.settings(&format!(
        "{instructions}[tools]\npass_env = ['SOME_NAME']\n\
         [[rule]]\naction = 'deny'\ntool = 'bash'\npattern = '*push*'\n{HOOK}"
    ));
    let receipt = reload(&mut program);
    let said = changes(&receipt);
    for words in [
        "instructions added",
        "SOME_NAME",
        "hook guard added",
        "deny bash",
        "turnwire.toml",
    ] {
        assert!(said.contains(words), "{words} in {said}");
    }
    assert_eq!(receipt["tools"], first["tools"]);
    assert_eq!(changes(&reload(&mut program)), "[]", "once");

    // The hook is there.
    assert_eq!(stop_reason(&program.turn("go")), "blocked");
    home.settings(&instructions);
    let said = changes(&reload(&mut program));
    assert!(
        said.contains("hook guard removed") && said.contains("rule removed"),
        "{said}"
    );
    // And so is the model's part: the instructions, and a note of what changed.
    let lines = program.turn("go");
    assert_eq!(stop_reason(&lines), "stop");
    let note = of(&lines, "harness_note")[1];
    assert_eq!(note["call_id"], "");
    assert!(
        note["text"]
            .as_str()
            .unwrap()
            .contains("hook guard removed"),
        "{note}"
    );
    assert!(of(&lines, "refrozen").is_empty(), "it was said");
    let sent = body(&provider, 1);
    assert!(
        sent.contains("like a pirate") && sent.contains("hook guard removed"),
        "{sent}"
    );
}

#[test]
fn om_08_broken_settings_are_refused_with_their_place_and_the_old_ones_stay() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One.")]);
    home.settings(HOOK);
    let mut program = start(&home, &provider);
    home.settings("[session]\nmax_steps = 3\n[tools\n");
    for _ in 0..2 {
        let lines = program.turn("go");
        assert_eq!(types(&lines), ["error", "done"], "the hook stays");
        assert_eq!(stop_reason(&lines), "blocked");
    }
    for _ in 0..2 {
        let answer = reload(&mut program);
        assert_eq!(answer["type"], "protocol_error");
        let text = answer["message"].as_str().unwrap();
        assert!(text.contains("turnwire.toml:3:"), "{text}");
    }
    assert_eq!(stop_reason(&program.turn("go")), "blocked");
    program.close_input();
    let ended = program.wait();
    let told = ended.stderr.matches("turnwire.toml:3:").count();
    assert_eq!(told, 1, "before turns it is said once: {}", ended.stderr);
}

#[test]
fn om_08_a_projects_file_that_changed_since_it_was_trusted_isnt_taken_up() {
    let home = Home::new();
    let provider = Provider::start([openai::says("One."), openai::says("Two.")]);
    home.write("turnwire.toml", "[session]\nmax_steps = 3\n");
    let mut program = start(&home, &provider);
    // As an agent might, to widen what it can see.
    home.write(
        "turnwire.toml",
        "[tools]\npass_env = ['SECRET']\nallow_outside = true\n",
    );
    let answer = reload(&mut program);
    assert_eq!(answer["type"], "protocol_error");
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .contains("has changed since"),
        "{answer}"
    );
    let lines = program.turn("go");
    assert!(of(&lines, "refrozen").is_empty());
    // Once a person has trusted it, it counts.
    let project = home.project();
    let trusts = Setup::serve(&home)
        .in_folder(home.path("data"))
        .args(&["--trust-project", "--project", project.to_str().unwrap()])
        .run("");
    assert_eq!(trusts.code, Some(0), "{}", trusts.stderr);
    let said = changes(&reload(&mut program));
    assert!(
        said.contains("SECRET") && said.contains("may leave"),
        "{said}"
    );
}

#[test]
fn om_13_what_changed_between_turns_is_said_at_the_start_of_the_next() {
    let home = Home::new();
    let provider = Provider::start((0..4).map(|_| openai::says("Yes.")));
    let mut program = start(&home, &provider);
    assert_eq!(types(&program.turn("one")).first(), Some(&"budget"));
    home.settings("[[rule]]\naction = 'ask'\ntool = 'bash'\n");
    let lines = program.turn("two");
    assert_eq!(types(&lines)[..3], ["refrozen", "harness_note", "budget"]);
    assert!(
        changes(&lines[0]).contains("rule added: ask bash"),
        "{lines:?}"
    );
    assert_eq!(
        types(&program.turn("three")).first(),
        Some(&"budget"),
        "once"
    );
    // A hook that is new judges the very prompt before which it was found.
    home.settings(HOOK);
    let lines = program.turn("four");
    assert_eq!(types(&lines), ["refrozen", "error", "done"]);
    assert_eq!(stop_reason(&lines), "blocked");
}

#[test]
fn om_31_a_hook_that_isnt_loaded_is_told_and_the_turn_proceeds() {
    let home = Home::new();
    let provider = Provider::start((0..3).map(|_| openai::says("Yes.")));
    home.settings("[[hook]]\nname = 'guard'\nevent = 'turn_end'\n");
    let mut program = start(&home, &provider);
    let lines = program.turn("one");
    assert_eq!(
        types(&lines)[..3],
        ["hook_failed", "harness_note", "budget"]
    );
    assert_eq!(lines[0]["hook"], "guard");
    assert_eq!(lines[0]["event"], "turn_end");
    let detail = lines[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("turnwire.toml:1:1") && detail.contains("command"),
        "{detail}"
    );
    assert_eq!(stop_reason(&lines), "stop");
    let lines = program.turn("two");
    assert!(of(&lines, "hook_failed").is_empty(), "once");
    // One that breaks later is told with the receipt.
    home.settings("[[hook]]\nname = 'other'\nevent = 'nothing'\ncommand = 'x'\n");
    let lines = program.turn("three");
    assert_eq!(
        types(&lines)[..4],
        ["refrozen", "hook_failed", "harness_note", "harness_note"]
    );
    assert_eq!(lines[1]["event"], "notification");
}

#[test]
fn om_31_hooks_of_a_project_that_isnt_trusted_are_told() {
    let home = Home::new();
    home.write("turnwire.toml", HOOK);
    let mut program = Setup::serve(&home).start();
    program.see_type("hello");
    let lines = program.turn("go");
    assert_eq!(lines[0]["type"], "hook_failed");
    assert!(
        lines[0]["detail"]
            .as_str()
            .unwrap()
            .contains("isn't trusted"),
        "{lines:?}"
    );
    assert_eq!(stop_reason(&lines), "stop");
}

#[test]
fn om_13_schemas_that_take_most_of_the_window_are_told_once() {
    let home = Home::new();
    let provider = Provider::start((0..2).map(|_| openai::says("Yes.")));
    let mut program = Setup::openai(&home, &provider)
        .args(&["--window", "2600", "--max-output", "500"])
        .start();
    program.see_type("hello");
    let lines = program.turn("one");
    assert_eq!(types(&lines)[..2], ["schemas_over_budget", "budget"]);
    let number = |name: &str| lines[0][name].as_u64().unwrap();
    assert_eq!(number("budget_tokens"), 2600 - 500 - 1024);
    assert!(
        number("schema_tokens") * 100 >= number("budget_tokens") * 70,
        "{lines:?}"
    );
    assert!(of(&program.turn("two"), "schemas_over_budget").is_empty());
}
