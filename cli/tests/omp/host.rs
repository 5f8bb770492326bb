//! Hosts that close their end, go away, or send signals; and what is left of the process then.

use std::time::Duration;

use serde_json::json;
use turnwire::protocol::omp::Omp;

use crate::support::omp::text_of;
use crate::support::program::{Home, Program, Setup, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

/// A client that stops waits so long after SIGTERM, and no longer.
const STOP: Duration = Duration::from_secs(1);

fn in_a_tool(home: &Home) -> (Provider, Program<Omp>) {
    let command = json!({ "command": "touch begun; sleep 300 & wait" });
    let provider = Provider::start([openai::calls(&[("c1", "bash", command)])]);
    let mut program = Setup::omp(home, &provider, "auto").start_as::<Omp>();
    program.command("p", "prompt", json!({ "message": "Run it." }));
    wait_for("the tool to begin", || home.read("begun"));
    (provider, program)
}

#[test]
fn omp_18_the_end_of_input_ends_an_idle_process_with_0() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hi.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.turn("go");
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_18_the_end_of_input_ends_a_run_and_leaves_nothing_behind() {
    let home = Home::new();
    let (_provider, mut program) = in_a_tool(&home);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn omp_18_the_end_of_input_ends_a_stream() {
    let home = Home::new();
    let provider = Provider::start([Reply::stream().bytes(openai::text("Half ")).stall()]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.streaming("p", "Talk.");
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    let last = of(&ended.lines, "message_end").last().unwrap()["message"].clone();
    assert_eq!(text_of(&last), "Half ");
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
}

#[test]
fn omp_18_a_command_that_was_taken_is_done_after_the_end_of_input() {
    let home = Home::new();
    let provider = Provider::start([]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.command("b", "bash", json!({ "command": "sleep 0.3; echo late" }));
    program.command("n", "set_session_name", json!({ "name": "A name" }));
    program.close_input();
    let ended = program.wait();
    assert_eq!(ended.code, Some(0));
    let answered = |id: &str| {
        let lines = of(&ended.lines, "response");
        let found = lines.iter().find(|line| line["id"] == id).copied().cloned();
        found.unwrap_or_else(|| panic!("no response to {id}: {lines:?}"))
    };
    assert_eq!(answered("b")["data"]["output"], "late\n");
    assert_eq!(answered("n")["success"], true);
}

#[test]
fn a_signal_ends_it_at_once_with_nothing_left_behind() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let home = Home::new();
        let (_provider, program) = in_a_tool(&home);
        program.signal(name);
        assert_eq!(program.wait().code, Some(code), "{name}");
    }
}

#[test]
fn a_signal_ends_an_idle_process_within_a_second() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hi.")]);
    let mut program = Setup::omp(&home, &provider, "auto").start_as::<Omp>();
    program.turn("go");
    program.signal("TERM");
    assert!(program.ended_within(STOP), "it takes its time");
}

#[test]
fn a_host_that_closes_its_reading_end_ends_it() {
    let home = Home::new();
    let command = json!({ "command": "touch begun; sleep 300 & wait" });
    let provider = Provider::start([openai::calls(&[("c1", "bash", command)])]);
    let mut program = Setup::omp(&home, &provider, "auto")
        .unread()
        .start_as::<Omp>();
    let stdout = program.take_stdout();
    program.command("p", "prompt", json!({ "message": "Run it." }));
    wait_for("the tool to begin", || home.read("begun"));
    drop(stdout);
    assert_ne!(program.wait().code, Some(0));
}
