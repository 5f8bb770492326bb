//! Figures of the whole program, for `docs/performance.md`:
//!
//! ```sh
//! cargo bench -p turnwire-cli --bench program               # start, a stream, `check` of 64 MiB
//! cargo bench -p turnwire-cli --bench program -- 1024       # `check` of as many MiB
//! ```
//!
//! `check` is given streams that it never ends: turns of both sides, plain and as a recording; turns whose calls and
//! approvals never have the same id twice; one line alone, of a quarter of the size; and one without an end.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench prints, and fails loudly"
)]

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "the program's tests use the rest")]
mod support;

/// The driver that `serve` is told to run on.
const DRIVER: &str = "tokio";

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::program::{Home, Setup, cpu_time, peak_memory};
use support::provider::{Provider, Reply};
use support::replies::openai;

/// Events of one reply; more would pass the limit of 16 MiB.
const EVENTS: usize = 60_000;

fn main() {
    // `cargo bench` adds `--bench`.
    let sizes: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    if sizes.is_empty() {
        start();
        stream();
    }
    for size in if sizes.is_empty() { vec![64] } else { sizes } {
        check_all(size << 20);
    }
}

fn start() {
    let home = Home::new();
    let mut starts: Vec<Duration> = (0..41)
        .map(|_| {
            let begun = Instant::now();
            let mut program = Setup::serve(&home).start();
            program.see_type("hello");
            begun.elapsed()
        })
        .collect();
    starts.sort();
    println!(
        "start to hello: median {:?}, worst {:?}",
        starts[starts.len() / 2],
        starts[starts.len() - 1]
    );
}

fn stream() {
    let home = Home::new();
    // Fifty events in a piece, as a network delivers them when the model is faster than the reader.
    let piece = openai::text("word ").repeat(50);
    let reply = Reply::stream()
        .repeat(&piece, EVENTS / 50, Duration::ZERO)
        .bytes(openai::finish("stop"))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).unread().start();
    let mut stdout = BufReader::with_capacity(1 << 16, program.take_stdout());
    let mut line = Vec::new();
    stdout.read_until(b'\n', &mut line).unwrap();
    let (idle, before) = (peak_memory(program.pid()), cpu_time(program.pid()));
    let begun = Instant::now();
    program.user("go");
    let (mut lines, mut bytes) = (0_usize, 0);
    while !line.windows(13).any(|part| part == b"\"type\":\"done\"") {
        line.clear();
        let read = stdout.read_until(b'\n', &mut line).unwrap();
        assert!(read > 0, "{}", program.stderr());
        bytes += read;
        lines += 1;
    }
    let wall = begun.elapsed();
    let cpu = cpu_time(program.pid())
        .zip(before)
        .map(|(after, before)| after - before);
    println!(
        "stream: {lines} lines, {} KiB, in {wall:?}, {cpu:?} on the processor",
        bytes / 1024
    );
    if let Some(cpu) = cpu {
        println!(
            "stream: {:.2} µs of processor a line",
            cpu.as_secs_f64() * 1e6 / lines as f64
        );
    }
    println!(
        "memory: {idle:?} KiB at hello, {:?} KiB at most",
        peak_memory(program.pid())
    );
    program.close_input();
    drop(stdout);
}

/// One stream for `check`: what it is called, and its next bytes by number.
type Stream = (&'static str, fn(u64) -> String);

fn check_all(size: u64) {
    let turns: [Stream; 3] = [
        ("turns, plain lines", |turn| {
            lines_of(&a_turn(turn, turn % 7))
        }),
        ("turns, a recording", |turn| {
            recorded(&a_turn(turn, turn % 7))
        }),
        ("turns, every id new", |turn| lines_of(&a_turn(turn, turn))),
    ];
    for (name, make) in turns {
        let from = lines_of(&[(false, HELLO.to_owned())]);
        let first = if name == "turns, a recording" {
            recorded(&[(false, HELLO.to_owned())])
        } else {
            from
        };
        check(name, size, &first, make, "");
    }
    let long = "{\"session_id\":\"s\",\"type\":\"token\",\"text\":\"";
    let one = |_| "x".repeat(1 << 16);
    check(
        "one long line",
        size / 4,
        &format!("{HELLO}\n{long}"),
        one,
        "\"}\n",
    );
    check("no line's end at all", size, &format!("{HELLO}\n"), one, "");
}

const HELLO: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}"#;

/// A turn with text and two calls, one of them approved; whether each line is the host's.
fn a_turn(turn: u64, id: u64) -> Vec<(bool, String)> {
    let event = |rest: String| (false, format!("{{\"session_id\":\"s\",\"type\":{rest}}}"));
    let mut lines = vec![
        (true, format!(r#"{{"cmd":"user","text":"Turn {turn}"}}"#)),
        event(r#""budget","used_tokens":100,"context_tokens":128000"#.to_owned()),
    ];
    for piece in 0..20 {
        lines.push(event(format!(
            r#""token","text":"piece {piece} of a text \n""#
        )));
    }
    let text = (0..20).fold(String::new(), |text, piece| {
        text + &format!("piece {piece} of a text \\n")
    });
    lines.extend([
        event(r#""usage","prompt_tokens":100,"completion_tokens":80,"cached_tokens":null"#.to_owned()),
        event(format!(r#""message_done","text":"{text}""#)),
        event(format!(r#""tool_start","call_id":"call_{id}","name":"read_file","args":{{"path":"a.txt"}}"#)),
        event(format!(r#""tool_end","call_id":"call_{id}","ok":true,"output":"some output\nof a file""#)),
        event(format!(r#""tool_start","call_id":"ask_{id}","name":"bash","args":{{"command":"ls"}}"#)),
        event(format!(
            r#""approval_request","approval_id":"approval_{turn}","name":"bash","summary":"ls","detail":"command=ls","reason":"gate","source_path":"","source_sha":"""#
        )),
        (true, format!(r#"{{"cmd":"approve","approval_id":"approval_{turn}","approved":true}}"#)),
        event(format!(r#""approval_settled","approval_id":"approval_{turn}","outcome":"approved""#)),
        event(format!(r#""tool_end","call_id":"ask_{id}","ok":true,"output":"a.txt""#)),
        event(r#""budget","used_tokens":200,"context_tokens":128000"#.to_owned()),
        event(r#""token","text":"Done.""#.to_owned()),
        event(r#""usage","prompt_tokens":200,"completion_tokens":2,"cached_tokens":null"#.to_owned()),
        event(r#""message_done","text":"Done.""#.to_owned()),
        event(r#""done","stop_reason":"stop""#.to_owned()),
    ]);
    lines
}

fn lines_of(lines: &[(bool, String)]) -> String {
    lines
        .iter()
        .fold(String::new(), |all, (_, line)| all + line + "\n")
}

fn recorded(lines: &[(bool, String)]) -> String {
    lines.iter().fold(String::new(), |mut all, (host, line)| {
        let dir = if *host { "in" } else { "out" };
        let row = serde_json::json!({"dir": dir, "t_ms": 1, "line": line});
        let _ = writeln!(all, "{row}");
        all
    })
}

/// Lets the program check a stream of about `size` bytes, and prints what that took.
fn check(name: &str, size: u64, first: &str, mut make: impl FnMut(u64) -> String, last: &str) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_turnwire"))
        .args([
            "check",
            "--protocol",
            "openmax",
            "--from",
            "both",
            "--format",
            "json",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program");
    let mut input = child.stdin.take().expect("its input");
    // What it says is read as it comes, and only the end kept.
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let reader = std::thread::spawn(move || {
        let (mut line, mut last, mut count) = (String::new(), String::new(), 0_u64);
        while output.read_line(&mut line).is_ok_and(|read| read > 0) {
            count += 1;
            last.clone_from(&line);
            line.clear();
        }
        (count, last)
    });
    let begun = Instant::now();
    let (mut written, mut number) = (0, 0);
    input.write_all(first.as_bytes()).expect("a reader");
    while written < size {
        let block = make(number);
        number += 1;
        input.write_all(block.as_bytes()).expect("a reader");
        written += block.len() as u64;
    }
    input.write_all(last.as_bytes()).expect("a reader");
    let memory = peak_memory(child.id());
    drop(input);
    let (count, summary) = reader.join().expect("the reader");
    let status = child.wait().expect("its end");
    println!(
        "check, {name}: {} MiB in {:.1?}, {} KiB at most, {} findings, {status}",
        written >> 20,
        begun.elapsed(),
        memory.unwrap_or(0),
        count.saturating_sub(1)
    );
    println!(
        "    {}",
        summary.trim_end().chars().take(300).collect::<String>()
    );
}
