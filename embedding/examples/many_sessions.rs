//! Many sessions in one process, on one thread, each behind an openmax server, with a script for a model.
//!
//!     cargo run --release -p turnwire-embedding --example many_sessions [-- NUMBER]
#![allow(clippy::print_stdout)]

use std::time::Instant;

use turnwire::frame::LineSplitter;
use turnwire::model::script::Script;
use turnwire::protocol::openmax::{Openmax, ServerConfig, preset};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::session::config::ModelConfig;
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::{Agent, Effect, EffectBody, Input, Misuse, Now, Output};
use turnwire_embedding::{decoder, info};

const SCRIPT: &str =
    "reply\n say: A sentence of a dozen words, so that there is something to stream here.";

/// One session and its server.
struct Hosted {
    server: Server<Openmax>,
    session: Session,
}

impl Hosted {
    fn new() -> Hosted {
        let mut config = SessionConfig::new(ModelConfig::new("scripted", 32_768));
        preset(&mut config);
        Hosted {
            server: Server::new(ServerConfig::new("0.0.0".into(), [7; 32])),
            session: Session::new(config, Box::new(info()), Now::default()),
        }
    }

    /// One line of the host, and all that follows from it. Lines go to `out`.
    fn line(
        &mut self,
        line: &[u8],
        script: &Script,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<(), Misuse> {
        let mut splitter = LineSplitter::new(Openmax::host_line_rules());
        let mut rest = line;
        if let Some(split) = splitter.next(&mut rest) {
            self.server.handle_line(split, now);
        }
        self.drain(script, now, out)
    }

    fn drain(&mut self, script: &Script, now: Now, out: &mut Vec<u8>) -> Result<(), Misuse> {
        loop {
            let mut quiet = true;
            while let Some(output) = self.server.poll_output(out) {
                if let ServerOutput::Call(call) = output {
                    quiet = false;
                    self.session.handle(Input::Call(call), now)?;
                }
            }
            let (run, effect) = match self.session.poll_output() {
                None if quiet => return Ok(()),
                None => continue,
                Some(Output::Event(event)) => {
                    self.server.handle_event(event);
                    continue;
                }
                Some(Output::Delta(delta)) => {
                    self.server.handle_delta(&delta);
                    continue;
                }
                Some(Output::Effect { run, effect }) => (run, effect),
            };
            if let Effect::Store(write) = effect {
                let ok = Ok(());
                self.session.handle(Input::Store { write, ok }, now)?;
            }
            if let Effect::StartModel(request) = effect
                && let Some(EffectBody::Model(body)) = self.session.body(run, &effect)
            {
                let (reply, mut done) = (script.reply(&body), Ok(()));
                reply.play(&mut decoder(script), now, &mut |chunk| {
                    if done.is_ok() {
                        done = self.session.handle(Input::Model { request, chunk }, now);
                    }
                });
                done?;
            }
        }
    }
}

/// Bytes of memory that this process has.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Hosts so many sessions, gives each a turn, and says what it cost.
fn host(number: u64) -> Result<(), Box<dyn std::error::Error>> {
    let script = Script::parse(SCRIPT).map_err(|fault| fault.to_string())?;
    let begun = Instant::now();
    let now = || Now {
        mono_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        unix_ms: 0,
    };
    let mut out = Vec::new();
    let before = memory();
    let mut hosted = Vec::new();
    for _ in 0..number {
        let mut one = Hosted::new();
        one.drain(&script, now(), &mut out)?;
        out.clear();
        hosted.push(one);
    }
    let each = |since: u64| memory().saturating_sub(since) / number.max(1);
    println!(
        "{number} sessions: {:.2?}, {} bytes each",
        begun.elapsed(),
        each(before)
    );

    let (turns, mut lines) = (Instant::now(), 0);
    for one in &mut hosted {
        one.line(
            b"{\"cmd\":\"user\",\"text\":\"go\"}\n",
            &script,
            now(),
            &mut out,
        )?;
        if !out.ends_with(b"\"stop_reason\":\"stop\"}\n") {
            return Err("a turn did not end well".into());
        }
        lines += out.iter().filter(|byte| **byte == b'\n').count();
        out.clear();
    }
    let time = turns.elapsed();
    println!(
        "a turn of each: {time:.2?}, {:.1} µs a turn, {lines} lines; then {} bytes each",
        time.as_secs_f64() * 1e6 / number.max(1) as f64,
        each(before)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |word| word.parse())?;
    host(number)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_hundred_sessions_have_a_turn_each() {
        super::host(100).unwrap();
    }
}
