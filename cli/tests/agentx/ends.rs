//! How a session ends: input, signals, faults, and a credential that would have been said.

use turnwire::protocol::agentx::Agentx;

use crate::support::agentx::{bash, order};
use crate::support::program::{Home, Setup};
use crate::support::provider::{Gate, Provider, Reply};
use crate::support::replies::openai;

#[test]
fn wire_eof_001_ax_s01_a_last_line_without_a_newline_counts() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Hello."), openai::says("Hello.")]);
    for protocol in ["agentx", "claude"] {
        let line = r#"{"type":"user","message":{"role":"user","content":"Greet me."}}"#;
        let ended = Setup::agentx(&home, protocol, &provider, "auto").run_as::<Agentx>(line);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.of("result")[0]["result"], "Hello.");
    }
}

#[test]
fn input_that_ends_before_a_prompt_is_an_error_in_agentx_alone() {
    let home = Home::new();
    let strict = Setup::serve_in(&home, "agentx").run_as::<Agentx>("");
    assert_eq!(strict.code, Some(1));
    assert_eq!(
        order(&strict.lines),
        ["system init", "result error_during_execution"]
    );
    assert_eq!(strict.of("result")[0]["stop_reason"], "input_error");
    let claude = Setup::serve_in(&home, "claude").run_as::<Agentx>("");
    assert_eq!((claude.code, claude.lines.len()), (Some(0), 0));
}

#[test]
fn ax_s14_a_malformed_line_ends_it_with_1() {
    let home = Home::new();
    for (protocol, results) in [("agentx", 1), ("claude", 0)] {
        for line in ["{\"type\":\n", "{\"type\":"] {
            let ended = Setup::serve_in(&home, protocol).run_as::<Agentx>(line);
            assert_eq!((ended.code, ended.of("result").len()), (Some(1), results));
            assert!(!ended.stderr.is_empty());
        }
    }
}

#[test]
fn a_signal_ends_the_turn_and_the_process_with_its_code() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let home = Home::new();
        let gate = Gate::new();
        let provider =
            Provider::start([Reply::stream().bytes(openai::text("I begin")).gate(&gate)]);
        let setup = Setup::agentx(&home, "claude", &provider, "auto").args(&["--partial"]);
        let mut program = setup.start_as::<Agentx>();
        program.prompt("Talk.");
        program.see_type("stream_event");
        program.signal(name);
        let ended = program.wait();
        gate.open();
        assert_eq!(ended.code, Some(code), "{name}");
        assert_eq!(
            order(&ended.lines).last().map(String::as_str),
            Some("result error_during_execution")
        );
    }
}

#[test]
fn wire_013_after_a_credential_nothing_is_written_any_more() {
    for protocol in ["agentx", "claude"] {
        let home = Home::new();
        // A short one, too, and in any spelling: it stands in what a command writes.
        let call = bash(protocol, "printf 'it is a\\\\n\"b'; touch ran");
        let provider = Provider::start([call, openai::says("Done.")]);
        let setup = Setup::agentx(&home, protocol, &provider, "auto")
            .args(&["--hide-env", "SOME_SECRET"])
            .env("SOME_SECRET", "a\\n\"b");
        let mut program = setup.start_as::<Agentx>();
        program.prompt("Run it.");
        let ended = program.wait();
        assert_eq!(ended.code, Some(1));
        assert!(home.read("ran").is_some());
        assert!(ended.of("result").is_empty() && ended.of("user").is_empty());
        assert!(
            ended.stderr.contains("less than 8 bytes"),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("a\\n\"b"), "{}", ended.stderr);
    }
}
