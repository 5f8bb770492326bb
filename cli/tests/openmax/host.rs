//! Hosts that end the session, go away, or don't read.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::program::{Home, Program, Setup, Stdout, cpu_time, joined, of, peak_memory};
use crate::support::provider::{Gate, Provider, Reply};
use crate::support::replies::openai;
use crate::support::wait_for;

#[test]
fn om_09_quit_and_end_of_input_drain_the_running_turn() {
    for end in [
        "{\"cmd\":\"quit\"}\n{\"cmd\":\"user\",\"text\":\"never read\"}\n",
        "",
    ] {
        let home = Home::new();
        let gate = Gate::new();
        let call = openai::calls(&[("c1", "bash", json!({ "command": "echo x > made.txt" }))]);
        let first = Reply::stream().bytes(openai::text("Hi")).gate(&gate);
        let first = first.bytes(openai::finish("stop")).bytes(openai::DONE);
        let provider = Provider::start([call, first]);
        let mut program = Setup::openai(&home, &provider).start();
        program.user("go");
        program.see_type("token");
        program.raw(end);
        program.close_input();
        std::thread::sleep(Duration::from_millis(100));
        gate.open();
        let ended = program.wait();
        assert_eq!((ended.of("done").len(), ended.code), (1, Some(0)));
        assert_eq!(ended.of("done")[0]["stop_reason"], "stop");
        assert_eq!(ended.of("message_done")[1]["text"], "Hi");
        assert_eq!(provider.requests().len(), 2);
    }
}

#[test]
fn a_one_shot_pipe_works() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let ended = Setup::openai(&home, &provider).run("{\"cmd\":\"user\",\"text\":\"go\"}\n");
    assert_eq!(
        (joined(&ended.lines, "token").as_str(), ended.code),
        ("Fine.", Some(0))
    );
}

/// A program in the middle of a turn: the model has said something and is silent now.
fn amid(home: &Home, provider: &Provider) -> Program {
    let mut program = Setup::openai(home, provider).start();
    program.user("go");
    program.see_type("token");
    program
}

#[test]
fn signals_cancel_the_turn_and_have_their_exit_codes() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let home = Home::new();
        let provider = Provider::start([Reply::stream().bytes(openai::text("Hi")).stall()]);
        let program = amid(&home, &provider);
        program.signal(signal);
        let ended = program.wait();
        assert_eq!(
            ended.of("done").last().unwrap()["stop_reason"],
            "cancelled",
            "{signal}"
        );
        assert_eq!(ended.code, Some(code), "{signal}");

        let mut program = Setup::serve(&home).start();
        program.see_type("hello");
        program.signal(signal);
        let ended = program.wait();
        assert_eq!(
            (ended.code, ended.of("done").len()),
            (Some(code), 0),
            "{signal} with no turn"
        );
    }
}

#[test]
fn a_signal_ends_running_commands() {
    let home = Home::new();
    let command = "trap '' TERM INT HUP; touch begun; (trap '' TERM; sleep 60) & wait";
    let provider = Provider::start([openai::calls(&[(
        "c1",
        "bash",
        json!({ "command": command }),
    )])]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    wait_for("the command to begin", || home.read("begun"));
    program.see_type("tool_start");
    program.signal("TERM");
    // That nothing is left behind is checked there.
    let ended = program.wait();
    assert_eq!(ended.of("done")[0]["stop_reason"], "cancelled");
    assert_eq!(ended.code, Some(143));
}

/// Starts a turn that runs a long command, and reads stdout by hand up to its start.
fn with_command(home: &Home, provider: &Provider) -> (Program, BufReader<Stdout>) {
    let mut program = Setup::openai(home, provider).unread().start();
    let mut stdout = BufReader::new(program.take_stdout());
    program.user("go");
    let mut line = String::new();
    while !line.contains("\"tool_start\"") {
        line.clear();
        assert!(
            stdout.read_line(&mut line).unwrap() > 0,
            "{}",
            program.stderr()
        );
    }
    wait_for("the command to begin", || home.read("begun"));
    (program, stdout)
}

fn long_command() -> Reply {
    // It talks, so that there is something to write to a host that is gone.
    openai::calls(&[(
        "c1",
        "bash",
        json!({ "command": "touch begun; sleep 1; echo x; sleep 60" }),
    )])
}

#[test]
fn p06_stdout_closed_ends_the_program_and_its_tools() {
    let home = Home::new();
    let gate = Gate::new();
    let reply = Reply::stream()
        .bytes(openai::text("Hi"))
        .gate(&gate)
        .repeat(openai::text("more words"), 400, Duration::from_millis(10));
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).unread().start();
    let mut stdout = BufReader::new(program.take_stdout());
    program.user("go");
    let mut line = String::new();
    while !line.contains("\"token\"") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0);
    }
    drop(stdout);
    gate.open();
    gone(program);
}

#[test]
fn p06_both_closed_ends_the_program_and_its_tools() {
    let home = Home::new();
    let provider = Provider::start([long_command()]);
    let (mut program, stdout) = with_command(&home, &provider);
    drop(stdout);
    program.close_input();
    gone(program);
}

#[test]
fn p06_stdout_closed_is_noticed_while_there_is_nothing_to_say() {
    let home = Home::new();
    let provider = Provider::start([long_command()]);
    let (program, stdout) = with_command(&home, &provider);
    drop(stdout);
    gone(program);

    let mut program = Setup::serve(&home).unread().start();
    let mut stdout = BufReader::new(program.take_stdout());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    gone(program);
}

#[test]
fn a_second_signal_ends_it_at_once_with_its_tools() {
    let home = Home::new();
    let command = "trap '' TERM INT HUP; touch begun; sleep 60 & wait; sleep 60";
    let provider = Provider::start([openai::calls(&[(
        "c1",
        "bash",
        json!({ "command": command }),
    )])]);
    let mut program = Setup::openai(&home, &provider).start();
    program.user("go");
    wait_for("the command to begin", || home.read("begun"));
    program.see_type("tool_start");
    program.signal("TERM");
    program.see_type("tool_end");
    let begun = Instant::now();
    program.signal("INT");
    let ended = program.wait();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    // The first may have ended it before the second came.
    assert!(matches!(ended.code, Some(130 | 143)), "{:?}", ended.code);
}

#[track_caller]
fn gone(mut program: Program) {
    let pid = program.pid();
    let begun = Instant::now();
    let mut used = Duration::ZERO;
    while !program.ended_within(Duration::from_millis(50)) {
        used = cpu_time(pid).unwrap_or(used);
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "still there; {}",
            program.stderr()
        );
    }
    assert!(used < Duration::from_secs(1), "a busy loop: {used:?}");
    let ended = program.wait();
    assert!(!ended.stderr.contains("panic"), "{}", ended.stderr);
}

#[test]
fn p06_stdin_closed_while_idle_is_exit_0_at_once() {
    let home = Home::new();
    let begun = Instant::now();
    let ended = Setup::serve(&home).run("");
    assert_eq!((ended.types(), ended.code), (vec!["hello"], Some(0)));
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_host_that_doesnt_read_slows_the_model_down_and_can_still_cancel() {
    let home = Home::new();
    // Twelve MiB, below the reply limit, in events of a few KiB.
    let piece = openai::text(&"x".repeat(4096));
    let reply = Reply::stream()
        .repeat(&piece, 3000, Duration::ZERO)
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply, openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider)
        .args(&["--idle-limit", "600"])
        .unread()
        .start();
    let stdout = program.take_stdout();
    wait_for("the program to start", || {
        peak_memory(program.pid()).filter(|kib| *kib > 0)
    });
    program.user("go");
    // Everything between here and there fills up, and then the provider stands still.
    let mut last = (0, Instant::now());
    wait_for("the provider to stand still", || {
        let sent = provider.sent();
        if sent != last.0 {
            last = (sent, Instant::now());
        }
        (sent > 0 && last.1.elapsed() > Duration::from_millis(700)).then_some(())
    });
    assert_eq!(
        provider.playing(),
        1,
        "all of it went through: nothing held the model back"
    );
    if let Some(peak) = peak_memory(program.pid()) {
        assert!(peak < 48 * 1024, "{peak} KiB");
    }
    // Nobody reads yet, and the cancel is heard all the same: the request is dropped.
    program.cancel();
    wait_for("the request to be dropped", || {
        (provider.playing() == 0).then_some(())
    });
    let mut texts = 0;
    for line in BufReader::new(stdout).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "token" {
            texts += line["text"].as_str().unwrap().len();
        }
        if line["type"] == "done" {
            assert_eq!(line["stop_reason"], "cancelled");
            program.close_input();
        }
    }
    assert!(texts < 3000 * 4096 && texts > 0, "{texts}");
    assert!(program.ended_within(Duration::from_secs(10)));
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn a_host_that_reads_slowly_gets_everything() {
    let home = Home::new();
    let piece = openai::text(&"x".repeat(1024));
    let reply = Reply::stream()
        .repeat(&piece, 2000, Duration::ZERO)
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).unread().start();
    let stdout = program.take_stdout();
    program.user("go");
    std::thread::sleep(Duration::from_millis(500));
    let mut lines = Vec::new();
    for line in BufReader::with_capacity(512, stdout).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "done" {
            program.close_input();
        }
        lines.push(line);
    }
    assert_eq!(joined(&lines, "token").len(), 2000 * 1024);
    assert_eq!(
        of(&lines, "message_done")[0]["text"]
            .as_str()
            .unwrap()
            .len(),
        2000 * 1024
    );
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn stderr_that_nobody_reads_doesnt_stop_the_session() {
    // The harness reads stderr; here nobody does, and everything is logged.
    let home = Home::new();
    let provider = Provider::start((0..3).map(|_| {
        Reply::stream()
            .repeat(openai::text("x"), 3000, Duration::ZERO)
            .bytes(openai::finish("stop"))
            .bytes(openai::DONE)
    }));
    let mut program = Setup::openai(&home, &provider)
        .args(&["--log", "trace"])
        .deaf()
        .start();
    for _ in 0..3 {
        assert_eq!(of(&program.turn("go"), "done")[0]["stop_reason"], "stop");
    }
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}
