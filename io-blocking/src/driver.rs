//! The loop: advance both machines, wait for one thing, hand it over, again. What it does between two waits is the
//! [`Engine`]'s; the wait is one channel.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use turnwire::protocol::{Protocol, Server};
use turnwire::vocab::Agent;
use turnwire_io::engine::{Engine, Reporter, Says, Wake, exit_code};
use turnwire_io::output::Output;
use turnwire_io::{Clock, Error, Host, World, gone, input};

use crate::signals::Signals;
use crate::start::Starter;

/// How long a host that was signalled away may take to read the rest.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One session between a host's pipes and the world.
struct Driver<P: Protocol, A> {
    engine: Engine<P, A>,
    starter: Starter,
    wakes: Receiver<Wake>,
    /// Asks the reading thread for more.
    more: Sender<()>,
    /// It was asked, and hasn't answered yet.
    asked: bool,
    _signals: Option<Signals>,
    clock: Clock,
}

/// Serves one session over a pair of byte streams until it is closed, and returns the exit code that the protocol asks for.
/// It blocks until then.
///
/// # Errors
/// [`Error::Setup`] when a thread or signal handler can't be made;
/// [`Error::Misuse`] when the agent or this driver has a bug.
pub fn serve<P: Protocol, A: Agent>(
    server: Server<P>,
    agent: A,
    world: World,
    host: Host<P>,
) -> Result<u8, Error> {
    let (wake, wakes) = mpsc::channel();
    let sender = wake.clone();
    let reporter: Reporter = Arc::new(move |report| {
        let _ = sender.send(Wake::Report(report));
    });
    let sender = wake.clone();
    let output = Output::start(host.output, move |written| {
        let _ = sender.send(Wake::Written(written));
    });
    let (more, asked) = mpsc::channel();
    let sender = wake.clone();
    // It reads on when it is asked, not before: a host that writes faster than we work is stopped by its pipe.
    let reading = input::start(host.input, move |input| {
        sender.send(Wake::Host(input)).is_ok() && asked.recv().is_ok()
    });
    reading.map_err(Error::Setup)?;
    if let Some(wait) = host.gone {
        let sender = wake.clone();
        let tell = move || drop(sender.send(Wake::Gone));
        gone::watch(wait, tell).map_err(Error::Setup)?;
    }
    let signals = host.signals.then(|| Signals::start(wake.clone()));
    let output = output.map_err(Error::Setup)?;
    let driver = Driver {
        engine: Engine::new(
            server,
            agent,
            world,
            output,
            Says {
                answer: host.answer,
                refrozen: host.refrozen,
                heard_mcp: host.heard_mcp,
            },
            reporter.clone(),
        ),
        starter: Starter::new(reporter),
        wakes,
        more,
        asked: true,
        _signals: signals.transpose().map_err(Error::Setup)?,
        clock: Clock::start(),
    };
    driver.run()
}

impl<P: Protocol, A: Agent> Driver<P, A> {
    fn run(mut self) -> Result<u8, Error> {
        self.engine.begin(self.clock.now())?;
        while self.engine.exit().is_none() {
            let permits = self.engine.advance(&mut self.starter);
            self.starter.allow_bulk(permits);
            let wake = self.wait();
            if let Some(code) = self.engine.handle(wake, self.clock.now())? {
                return Ok(code);
            }
        }
        Ok(self.finish())
    }

    fn wait(&mut self) -> Wake {
        let lookout = self.engine.lookout();
        if lookout.more_lines {
            return Wake::MoreLines;
        }
        if lookout.host && !self.asked {
            self.asked = self.more.send(()).is_ok();
        }
        let due = lookout.due.map(|due| self.clock.instant(due.at_us));
        let wake = match due {
            // A deadline that has passed goes first: a stream that never pauses must not hold it up.
            Some(due) if due <= Instant::now() => None,
            due => receive(&self.wakes, due),
        };
        if matches!(wake, Some(Wake::Host(_))) {
            self.asked = false;
        }
        wake.unwrap_or(Wake::Due)
    }

    /// Nothing more is said or done: the rest is written, and what still runs is ended. What doesn't end in time is
    /// killed as the starter is dropped.
    fn finish(mut self) -> u8 {
        self.engine.stop_all();
        while self.engine.is_running() {
            match receive(&self.wakes, None) {
                Some(Wake::Report(report)) => self.engine.take_last(&report),
                Some(Wake::Written(written)) => drop(self.engine.output().done(written)),
                Some(Wake::Signal(signal)) => return exit_code(signal),
                Some(Wake::Host(_) | Wake::MoreLines | Wake::Gone | Wake::Due) | None => {}
            }
        }
        let code = self.engine.exit().unwrap_or(0);
        let signalled = self.engine.was_signalled();
        let until = signalled.then(|| Instant::now() + LAST_WORDS);
        self.engine.output().push();
        while self.engine.output().in_flight() {
            match receive(&self.wakes, until) {
                Some(Wake::Written(written)) => {
                    if self.engine.output().done(written).is_err() {
                        break;
                    }
                }
                Some(Wake::Signal(_)) if signalled => break,
                Some(Wake::Signal(signal)) => return exit_code(signal),
                Some(
                    Wake::Report(_) | Wake::Host(_) | Wake::MoreLines | Wake::Gone | Wake::Due,
                ) => {}
                None => break,
            }
        }
        code
    }
}

/// The next thing; `None` if the deadline comes first.
fn receive(wakes: &Receiver<Wake>, deadline: Option<Instant>) -> Option<Wake> {
    let Some(deadline) = deadline else {
        // The reporter holds a sender, so that there is always somebody who could send.
        return wakes.recv().ok();
    };
    let left = deadline.saturating_duration_since(Instant::now());
    wakes.recv_timeout(left).ok()
}
