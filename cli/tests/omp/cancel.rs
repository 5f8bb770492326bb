//! Aborts: while text streams, in a tool, with a prompt behind it, of a retry.

use serde_json::json;
use turnwire::protocol::omp::Omp;

use crate::support::omp::{deltas, order, text_of};
use crate::support::program::{Home, Program, Setup, of, survivors};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

fn stalled(home: &Home, after: Reply) -> (Provider, Program<Omp>) {
    let provider = Provider::start([Reply::stream().bytes(openai::text("Half ")).stall(), after]);
    let mut program = Setup::omp(home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Talk.");
    (provider, program)
}

#[test]
fn omp_07_an_abort_ends_the_run_and_the_session_goes_on() {
    let home = Home::new();
    let (provider, mut program) = stalled(&home, openai::says("Here again."));
    program.command("a", "abort", json!({}));
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "aborted" }));
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
    let end = of(program.seen(), "message_end").last().unwrap()["message"].clone();
    assert_eq!(
        (&end["stopReason"], text_of(&end)),
        (&json!("aborted"), "Half ".to_owned())
    );
    let seen = order(program.seen());
    assert_eq!(
        seen[seen.len() - 5..],
        [
            "message_end assistant",
            "turn_end",
            "agent_end",
            "response",
            "prompt_result"
        ]
    );
    assert_eq!(program.data("get_state")["isStreaming"], false);
    assert_eq!(deltas(&program.turn("Still there?")), "Here again.");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_07_an_abort_in_a_tool_ends_its_processes() {
    let home = Home::new();
    let call = openai::calls(&[(
        "c1",
        "bash",
        json!({ "command": "touch begun; sleep 300 & wait" }),
    )]);
    let provider = Provider::start([call]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.command("p", "prompt", json!({ "message": "Run it." }));
    wait_for("the tool to begin", || home.read("begun"));
    program.command("a", "abort", json!({}));
    assert_eq!(program.see_type("tool_execution_end")["isError"], true);
    program.see(&json!({ "type": "response", "id": "a", "success": true }));
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "aborted" }));
    let ends = of(program.seen(), "message_end");
    assert_eq!(ends.last().unwrap()["message"]["stopReason"], "aborted");
    let own = program.pid();
    wait_for("its processes to be gone", || {
        survivors(&home.project())
            .iter()
            .all(|(pid, _)| *pid == own)
            .then_some(())
    });
}

#[test]
fn omp_07_an_abort_and_a_prompt_in_one() {
    let home = Home::new();
    let (_provider, mut program) = stalled(&home, openai::says("Something else."));
    program.command(
        "ab",
        "abort_and_prompt",
        json!({ "message": "Say something else." }),
    );
    program.see(&json!({ "type": "response", "id": "ab", "success": true }));
    program.see(&json!({ "type": "prompt_result", "id": "ab", "status": "completed" }));
    assert_eq!(of(program.seen(), "agent_end").len(), 2);
    assert_eq!(deltas(program.seen()), "Half Something else.");
}

#[test]
fn an_abort_with_nothing_to_abort_is_a_success() {
    let home = Home::new();
    let provider = Provider::start([]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    for command in ["abort", "abort_bash", "abort_retry"] {
        assert_eq!(
            program.ask(command, json!({}))["success"],
            true,
            "{command}"
        );
    }
}

#[test]
fn a_retry_that_is_aborted_ends_the_prompt() {
    let home = Home::new();
    let busy = Reply::failure("503 Service Unavailable", "{}").header("retry-after", "50");
    let provider = Provider::start([busy]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.command("p", "prompt", json!({ "message": "Try." }));
    program.see_type("auto_retry_start");
    assert_eq!(program.ask("abort_retry", json!({}))["success"], true);
    program.see(&json!({ "type": "prompt_result", "id": "p" }));
    assert_eq!(of(program.seen(), "auto_retry_end")[0]["success"], false);
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn omp_07_an_abort_before_the_first_byte() {
    let home = Home::new();
    let provider = Provider::start([Reply::stream().stall(), openai::says("Here.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.command("p", "prompt", json!({ "message": "Talk." }));
    wait_for("the request", || (provider.playing() == 1).then_some(()));
    program.command("a", "abort", json!({}));
    program.see(&json!({ "type": "response", "id": "a", "success": true }));
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "aborted" }));
    let end = of(program.seen(), "message_end").last().unwrap()["message"].clone();
    assert_eq!(
        (&end["stopReason"], text_of(&end)),
        (&json!("aborted"), String::new())
    );
    assert_eq!(deltas(&program.turn("Still there?")), "Here.");
}

#[test]
fn omp_07_13_an_abort_takes_an_open_question_back() {
    let home = Home::new();
    let call = openai::calls(&[("c1", "bash", json!({ "command": "touch made" }))]);
    let provider = Provider::start([call, openai::says("Here.")]);
    let mut program = Setup::omp(&home, &provider, "ask").start_as::<Omp>();
    program.command("p", "prompt", json!({ "message": "Run it." }));
    let dialog = program.see(&json!({ "type": "extension_ui_request", "method": "select" }));
    program.command("a", "abort", json!({}));
    let cancel = program.see(&json!({ "type": "extension_ui_request", "method": "cancel" }));
    assert_eq!(cancel["targetId"], dialog["id"]);
    program.see(&json!({ "type": "prompt_result", "id": "p", "status": "aborted" }));
    // An answer that comes too late changes nothing.
    program
        .send(&json!({ "type": "extension_ui_response", "id": dialog["id"], "value": "Approve" }));
    assert_eq!(deltas(&program.turn("Still there?")), "Here.");
    assert_eq!(home.read("made"), None);
}

#[test]
fn omp_07_an_abort_ends_a_compaction_and_nothing_is_lost() {
    let home = Home::new();
    let provider = Provider::start([
        openai::says("A long story."),
        Reply::stream().bytes(openai::text("In sum")).stall(),
        openai::says("Once more."),
    ]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.turn("Tell it.");
    program.command("k", "compact", json!({}));
    wait_for("the summary's request", || {
        (provider.playing() == 1).then_some(())
    });
    program.command("a", "abort", json!({}));
    program.see(&json!({ "type": "response", "id": "a", "success": true }));
    let answers = of(program.seen(), "response");
    let compact = answers.iter().find(|line| line["id"] == "k").unwrap();
    assert_eq!(compact["success"], false, "{compact}");
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
    assert_eq!(deltas(&program.turn("Again?")), "Once more.");
    // What would have been summarised is still there, word for word.
    let body = provider.request(3).json().to_string();
    assert!(
        body.contains("Tell it.") && body.contains("A long story."),
        "{body}"
    );
}
