//! The loop: drain both machines, wait for one thing, hand it over, again.

use std::io::{Read, Write};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::sync::mpsc;
use turnwire::frame::LineSplitter;
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::{Agent, Due, Input, Misuse, Now, Output as AgentOutput, Signal};
use turnwire_io::{Error, World};

use crate::clock::Clock;
use crate::effects::{Effects, Report};
use crate::gone::Gone;
use crate::input::{self, HostInput};
use crate::output::Output;
use crate::signals::Signals;

/// Above this many bytes that the host has not read, model streams are not read on.
const UNREAD_BULK: u64 = 256 * 1024;
/// Above this many, its lines aren't either. Far above [`UNREAD_BULK`], so that a cancel passes a stalled reader.
const UNREAD_LINES: u64 = 1024 * 1024;
/// How long a host that was signalled away may take to read the rest.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Answers what a protocol asks of its embedder.
pub type Answer<P> = Box<dyn FnMut(<P as Protocol>::Ask) -> <P as Protocol>::Outcome + Send>;

/// The host's side of a session.
pub struct Host<P: Protocol> {
    /// What the host writes.
    pub input: Box<dyn Read + Send>,
    /// What the host reads.
    pub output: Box<dyn Write + Send>,
    /// Whether SIGINT, SIGTERM and SIGHUP are taken as the protocol says; a second one then ends the session at once.
    pub signals: bool,
    /// Answers what the protocol asks of its embedder.
    pub answer: Answer<P>,
    /// Returns once nobody can read `output` any more. It gets a thread of its own. Without it a host that goes away
    /// is noticed at the next write only, and a tool may be silent for long.
    pub gone: Option<Box<dyn FnOnce() + Send>>,
}

impl<P: Protocol> Host<P> {
    /// This process's standard input and output, with signals taken.
    pub fn stdio(answer: Answer<P>) -> Self {
        #[cfg(unix)]
        let gone: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(crate::gone::stdout_closed));
        #[cfg(not(unix))]
        let gone = None;
        let (input, output) = (Box::new(std::io::stdin()), Box::new(std::io::stdout()));
        Host {
            input,
            output,
            signals: true,
            answer,
            gone,
        }
    }
}

impl<P: Protocol> std::fmt::Debug for Host<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("signals", &self.signals)
            .finish_non_exhaustive()
    }
}

/// One session between a host's pipes and the world.
struct Driver<P: Protocol, A> {
    server: Server<P>,
    agent: A,
    effects: Effects,
    output: Output,
    input: mpsc::Receiver<HostInput>,
    splitter: LineSplitter,
    /// Bytes of the host that are read but not split yet.
    unsplit: Bytes,
    input_ended: bool,
    signals: Signals,
    signalled: bool,
    gone: Gone,
    answer: Answer<P>,
    clock: Clock,
    /// The moment of the thing that is being handled: all that follows from it happens then.
    now: Now,
    exit: Option<u8>,
}

/// The one thing that the loop waited for.
enum Wake {
    Host(Option<HostInput>),
    Report(Report),
    Written(bool),
    Gone,
    Signal(Signal),
    Due,
    MoreLines,
}

/// Serves one session over a pair of byte streams until it is closed, and returns the exit code that the protocol asks for.
///
/// Call it inside a tokio runtime with time and I/O enabled; it needs no more than one thread.
///
/// # Errors
/// [`Error::Setup`] when a thread or signal handler can't be made;
/// [`Error::Misuse`] when the agent or this driver has a bug.
pub async fn serve<P: Protocol, A: Agent>(
    server: Server<P>,
    agent: A,
    world: World,
    host: Host<P>,
) -> Result<u8, Error> {
    let driver = Driver {
        server,
        agent,
        effects: Effects::new(world),
        output: Output::start(host.output).map_err(Error::Setup)?,
        input: input::start(host.input).map_err(Error::Setup)?,
        splitter: LineSplitter::new(P::host_line_rules()),
        unsplit: Bytes::new(),
        input_ended: false,
        signals: Signals::start(host.signals).map_err(Error::Setup)?,
        signalled: false,
        gone: Gone::start(host.gone).map_err(Error::Setup)?,
        answer: host.answer,
        clock: Clock::start(),
        now: Now::default(),
        exit: None,
    };
    driver.run().await
}

impl<P: Protocol, A: Agent> Driver<P, A> {
    async fn run(mut self) -> Result<u8, Error> {
        self.now = self.clock.now();
        self.drain()?;
        while self.exit.is_none() {
            // 1. Everything is drained. What waited for output that is written by now may start.
            self.output.push();
            self.effects.start_due(self.output.written());
            if self.wants_bulk() {
                self.effects.allow_bulk();
            }
            // 2. Wait for one thing, and read the clock once for it.
            let wake = self.wait().await;
            self.now = self.clock.now();
            // 3. Hand it over.
            match wake {
                Wake::Host(Some(HostInput::Bytes(bytes))) => self.unsplit = bytes,
                Wake::Host(Some(HostInput::End(why))) => self.end_input(why)?,
                Wake::Host(None) => self.end_input(None)?,
                Wake::MoreLines => self.split_one()?,
                Wake::Report(report) => self.settle(report)?,
                Wake::Written(true) => {}
                // Nobody reads what we say: the same as a host that hung up.
                // Both may be noticed, and one signal is enough: a second one would end the session at once.
                Wake::Written(false) | Wake::Gone if self.signalled => {}
                Wake::Written(false) | Wake::Gone => self.signal(Signal::Hangup)?,
                Wake::Signal(signal) if self.signalled => {
                    return Ok(exit_code(signal));
                }
                Wake::Signal(signal) => self.signal(signal)?,
                Wake::Due => {
                    self.server.handle_woken(self.now);
                    give(&mut self.agent, Input::Woken, self.now)?;
                    self.drain()?;
                }
            }
        }
        self.finish().await
    }

    /// Moves outputs of each machine to the other, until both are quiet.
    fn drain(&mut self) -> Result<(), Error> {
        loop {
            match self.agent.poll_output() {
                Some(AgentOutput::Event(event)) => self.server.handle_event(event),
                Some(AgentOutput::Delta(delta)) => self.server.handle_delta(&delta),
                Some(AgentOutput::Effect { run, effect }) => {
                    // What was said before the effect is written before it starts.
                    self.take_server()?;
                    let mark = self.output.mark();
                    self.effects.take(&self.agent, run, effect, mark);
                }
                None => {
                    let more = self.take_server()?;
                    match self.effects.ready() {
                        Some(input) => give(&mut self.agent, input, self.now)?,
                        None if !more => return Ok(()),
                        None => {}
                    }
                }
            }
        }
    }

    /// Takes what the server has to give; whether the agent was given something.
    fn take_server(&mut self) -> Result<bool, Error> {
        let mut gave = false;
        while let Some(output) = self.server.poll_output(self.output.buffer()) {
            match output {
                ServerOutput::Call(call) => {
                    gave = true;
                    give(&mut self.agent, Input::Call(call), self.now)?;
                }
                ServerOutput::Exit { code } => self.exit = Some(code),
                ServerOutput::Diagnostic(text) => tracing::warn!("{text}"),
                ServerOutput::Ask { id, ask } => {
                    let outcome = (self.answer)(ask);
                    self.server
                        .settle(id, outcome, self.now)
                        .map_err(|misuse| Error::Misuse {
                            doing: "settling an ask",
                            misuse,
                        })?;
                }
                // Every ask was answered when it came.
                ServerOutput::Dismiss { .. } => {}
            }
        }
        Ok(gave)
    }

    async fn wait(&mut self) -> Wake {
        let due = Due::earliest(self.agent.poll_timeout(), self.server.poll_timeout());
        let lines = self.wants_lines();
        if lines && !self.unsplit.is_empty() {
            return Wake::MoreLines;
        }
        let sleep = async {
            match due {
                Some(due) => tokio::time::sleep_until(self.clock.instant(due.at_us)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = self.signals.next() => Wake::Signal(signal),
            written = self.output.progress() => Wake::Written(written.is_ok()),
            () = self.gone.host() => Wake::Gone,
            report = self.effects.next() => Wake::Report(report),
            host = self.input.recv(), if lines && !self.input_ended => Wake::Host(host),
            () = sleep => Wake::Due,
        }
    }

    fn wants_bulk(&self) -> bool {
        self.agent.wants_bulk() && self.output.unread() < UNREAD_BULK
    }

    fn wants_lines(&self) -> bool {
        self.agent.wants_input() && self.server.wants_lines() && self.output.unread() < UNREAD_LINES
    }
}

impl<P: Protocol, A: Agent> Driver<P, A> {
    /// Hands over one line of the host, and drains: two lines in one write mean what two writes mean.
    fn split_one(&mut self) -> Result<(), Error> {
        let mut rest: &[u8] = &self.unsplit;
        if let Some(split) = self.splitter.next(&mut rest) {
            self.server.handle_line(split, self.now);
        }
        let used = self.unsplit.len() - rest.len();
        self.unsplit.advance(used);
        self.drain()
    }

    fn end_input(&mut self, why: Option<String>) -> Result<(), Error> {
        if let Some(why) = why {
            tracing::warn!(error = %why, "reading from the host failed; taken as the end of input");
        }
        self.input_ended = true;
        if let Some(split) = self.splitter.finish() {
            self.server.handle_line(split, self.now);
            self.drain()?;
        }
        self.server.handle_end(self.now);
        self.drain()
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.signalled = true;
        self.server.handle_signal(signal, self.now);
        self.drain()
    }

    fn settle(&mut self, report: Report) -> Result<(), Error> {
        let now = self.now;
        match report {
            Report::Model(request, part) => {
                // Out of the table while it reads: what it yields may stop this very request.
                let Some(mut decoder) = self.effects.lend_decoder(request) else {
                    return Ok(());
                };
                let mut outcome = Ok(());
                let settled = part.decode(&mut decoder, now, &mut |chunk| {
                    if outcome.is_ok() && self.effects.is_live(request) {
                        let chunk = self.effects.without_key(chunk);
                        outcome = give(&mut self.agent, Input::Model { request, chunk }, now)
                            .and_then(|()| self.drain());
                    }
                });
                self.effects.return_decoder(request, decoder, settled);
                outcome
            }
            Report::Tool(call, update) => {
                self.effects.note(call, &update);
                give(&mut self.agent, Input::Tool { call, update }, now)?;
                self.drain()
            }
            Report::Hook(hook, outcome) => {
                self.effects.hook_ended(hook);
                give(&mut self.agent, Input::Hook { hook, outcome }, now)?;
                self.drain()
            }
            Report::Stored(write, ok) => {
                give(&mut self.agent, Input::Store { write, ok }, now)?;
                self.drain()
            }
        }
    }

    /// Nothing more is said or done: the rest is written, and what still runs is ended.
    async fn finish(mut self) -> Result<u8, Error> {
        tokio::select! {
            () = self.effects.end() => {}
            // What didn't end in time is killed as it is dropped.
            signal = self.signals.next() => return Ok(exit_code(signal)),
        }
        if self.signalled {
            let flush = tokio::time::timeout(LAST_WORDS, self.output.flush());
            tokio::select! {
                _ = flush => {}
                _ = self.signals.next() => {}
            }
        } else {
            tokio::select! {
                () = self.output.flush() => {}
                signal = self.signals.next() => return Ok(exit_code(signal)),
            }
        }
        Ok(self.exit.unwrap_or(0))
    }
}

fn give<A: Agent>(agent: &mut A, input: Input<'_>, now: Now) -> Result<(), Error> {
    let doing = match &input {
        Input::Call(_) => "giving a command",
        Input::Model { .. } => "giving a model chunk",
        Input::Tool { .. } => "giving a tool's update",
        Input::Store { .. } => "settling a write",
        Input::Woken => "waking the agent",
        Input::Hook { .. } => "settling a hook",
        Input::Job { .. }
        | Input::Run { .. }
        | Input::Shell { .. }
        | Input::Opened { .. }
        | Input::Reloaded { .. }
        | Input::Restored { .. }
        | Input::DriverTools { .. }
        | Input::Fault { .. } => "settling an effect",
    };
    agent
        .handle(input, now)
        .map_err(|misuse: Misuse| Error::Misuse { doing, misuse })
}

/// The exit code of a process that a signal ended.
fn exit_code(signal: Signal) -> u8 {
    match signal {
        Signal::Hangup => 129,
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
    }
}
