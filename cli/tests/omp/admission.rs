//! Prompts that a hook judges before they are acknowledged, and what the session's file holds of what isn't a turn.

use serde_json::json;
use turnwire::protocol::omp::Omp;

use crate::support::omp::deltas;
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::Provider;
use crate::support::replies::openai;
use crate::support::wait_for;

/// A program whose prompts this line of shell judges.
fn judged(home: &Home, provider: &Provider, line: &str) -> Program<Omp> {
    home.settings(&format!(
        "[[hook]]\nname = \"guard\"\nevent = \"user_prompt_submit\"\ncommand = '{line}'\n"
    ));
    Setup::omp(home, provider, "auto").start_as::<Omp>()
}

#[test]
fn omp_05_a_prompt_that_a_hook_blocks_is_refused_and_leaves_nothing() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let line = "grep -q secret && { echo no secrets please; exit 2; }; exit 0";
    let mut program = judged(&home, &provider, line);
    program.command("p", "prompt", json!({ "message": "tell me a secret" }));
    let answer = program.see(&json!({ "type": "response", "id": "p" }));
    assert_eq!(
        (&answer["success"], &answer["error"]),
        (&json!(false), &json!("no secrets please"))
    );
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(program.data("get_state")["messageCount"], 0);
    assert_eq!(deltas(&program.turn("tell me a joke")), "Fine.");
    program.see_type("session_settled");
    let kinds = ["agent_start", "prompt_result", "session_settled"];
    for kind in kinds {
        assert_eq!(of(program.seen(), kind).len(), 1, "{kind}");
    }
}

#[test]
fn omp_07_an_abort_takes_back_what_a_hook_still_judges() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let line = "echo . >>judged; if grep -q slow; then sleep 300; fi";
    let mut program = judged(&home, &provider, line);
    program.command("p", "prompt", json!({ "message": "slow" }));
    wait_for("the hook", || home.read("judged").map(drop));
    program.command("q", "prompt", json!({ "message": "behind it" }));
    program.command("a", "abort", json!({}));
    program.data("get_state");
    let success = |id: &str| {
        let responses = of(program.seen(), "response");
        let found: Vec<_> = responses.iter().filter(|line| line["id"] == id).collect();
        assert_eq!(found.len(), 1, "{id}");
        found[0]["success"].clone()
    };
    assert_eq!(["p", "q", "a"].map(success), [false, false, true]);
    // What comes after it is judged anew.
    assert_eq!(deltas(&program.turn("quick")), "Fine.");
    assert_eq!(provider.requests().len(), 1);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_18_a_command_of_the_hosts_behind_the_last_turn_is_kept() {
    let home = Home::new();
    let provider = Provider::start([openai::says("First."), openai::says("Again.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.turn("Begin.");
    let given = program.ask("bash", json!({ "command": "echo said-at-the-end" }));
    assert_eq!(given["success"], true);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
    let setup = Setup::omp(&home, &provider, "auto").args(&["--continue"]);
    let mut program = setup.start_as::<Omp>();
    program.turn("Go on.");
    let body = provider.request(2).json().to_string();
    assert!(body.contains("said-at-the-end"), "{body}");
}
