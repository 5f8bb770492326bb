//! Figures of the whole program, for `docs/performance.md`. They fail nothing, so they run on request only:
//!
//! ```sh
//! cargo test --release -p turnwire-cli --test openmax -- --ignored --nocapture measure
//! ```

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::support::program::{Home, Setup, cpu_time, peak_memory};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

/// Events of one reply; more would pass the limit of 16 MiB.
const EVENTS: usize = 60_000;

#[test]
#[ignore = "it measures"]
fn measure_start_and_stream() {
    let home = Home::new();
    let mut starts: Vec<Duration> = (0..21)
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
