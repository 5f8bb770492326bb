//! The loop: advance both machines, wait for one thing, hand it over, again. What it does between two waits is the
//! [`Engine`]'s.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use turnwire::protocol::{Protocol, Server};
use turnwire::vocab::Agent;
use turnwire_io::engine::{Engine, Lookout, Report, Reporter, Says, Wake, exit_code};
use turnwire_io::input::{self, HostInput};
use turnwire_io::output::Written;
use turnwire_io::{Clock, Error, Host, World, gone};

use crate::output::Output;
use crate::signals::Signals;
use crate::start::Starter;

/// How long a host that was signalled away may take to read the rest.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// One session between a host's pipes and the world.
struct Driver<P: Protocol, A> {
    engine: Engine<P, A>,
    starter: Starter,
    reports: mpsc::UnboundedReceiver<Report>,
    written: mpsc::UnboundedReceiver<Written>,
    input: mpsc::Receiver<HostInput>,
    signals: Signals,
    /// Tells once that nobody reads any more.
    gone: Option<oneshot::Receiver<()>>,
    clock: Clock,
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
    let (report, reports) = mpsc::unbounded_channel();
    let reporter: Reporter = Arc::new(move |told| {
        let _ = report.send(told);
    });
    let (output, written) = Output::start(host.output).map_err(Error::Setup)?.split();
    let input = read(host.input).map_err(Error::Setup)?;
    let gone = host.gone.map(|wait| {
        let (tell, told) = oneshot::channel();
        let tell = move || {
            let _ = tell.send(());
        };
        gone::watch(wait, tell).map(|()| told)
    });
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
        reports,
        written,
        input,
        signals: Signals::start(host.signals).map_err(Error::Setup)?,
        gone: gone.transpose().map_err(Error::Setup)?,
        clock: Clock::start(),
    };
    driver.run().await
}

impl<P: Protocol, A: Agent> Driver<P, A> {
    async fn run(mut self) -> Result<u8, Error> {
        self.engine.begin(self.clock.now())?;
        while self.engine.exit().is_none() {
            let permits = self.engine.advance(&mut self.starter);
            self.starter.allow_bulk(permits);
            let wake = self.wait().await;
            if let Some(code) = self.engine.handle(wake, self.clock.now())? {
                return Ok(code);
            }
        }
        self.finish().await
    }

    async fn wait(&mut self) -> Wake {
        let Lookout {
            host,
            more_lines,
            due,
        } = self.engine.lookout();
        if more_lines {
            return Wake::MoreLines;
        }
        let sleep = async {
            match due {
                Some(due) => {
                    tokio::time::sleep_until(self.clock.instant(due.at_us).into()).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = self.signals.next() => Wake::Signal(signal),
            Some(written) = self.written.recv() => Wake::Written(written),
            () = told(&mut self.gone) => Wake::Gone,
            Some(report) = self.reports.recv() => Wake::Report(report),
            // The thread ends its input itself; a channel that closed before says the same.
            input = self.input.recv(), if host => Wake::Host(input.unwrap_or(HostInput::End(None))),
            () = sleep => Wake::Due,
        }
    }

    /// Nothing more is said or done: the rest is written, and what still runs is ended.
    async fn finish(mut self) -> Result<u8, Error> {
        // What was said last need not wait for what ends slowly.
        self.engine.output().push();
        self.engine.stop_all();
        while self.engine.is_running() {
            tokio::select! {
                Some(report) = self.reports.recv() => self.engine.take_last(&report),
                // What didn't end in time is killed as it is dropped.
                signal = self.signals.next() => return Ok(exit_code(signal)),
            }
        }
        let code = self.engine.exit().unwrap_or(0);
        let signalled = self.engine.was_signalled();
        let flush = async {
            self.engine.output().push();
            while self.engine.output().in_flight() {
                let Some(written) = self.written.recv().await else {
                    return;
                };
                if self.engine.output().done(written).is_err() {
                    return;
                }
            }
        };
        if signalled {
            tokio::select! {
                _ = tokio::time::timeout(LAST_WORDS, flush) => {}
                _ = self.signals.next() => {}
            }
        } else {
            tokio::select! {
                () = flush => {}
                signal = self.signals.next() => return Ok(exit_code(signal)),
            }
        }
        Ok(code)
    }
}

/// Starts the reading thread. One chunk waits in the channel at most.
pub(crate) fn read(source: Box<dyn Read + Send>) -> io::Result<mpsc::Receiver<HostInput>> {
    let (give, input) = mpsc::channel(1);
    input::start(source, move |input| give.blocking_send(input).is_ok())?;
    Ok(input)
}

/// Comes back once, when the host is gone; else never.
async fn told(gone: &mut Option<oneshot::Receiver<()>>) {
    if let Some(told) = gone {
        let is_gone = told.await.is_ok();
        *gone = None;
        if is_gone {
            return;
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_host_is_gone_once_and_not_for_a_thread_that_broke_down() {
        let watch = |wait: Box<dyn FnOnce() + Send>| {
            let (tell, told) = oneshot::channel();
            let tell = move || {
                let _ = tell.send(());
            };
            gone::watch(wait, tell).unwrap();
            Some(told)
        };
        let mut gone = watch(Box::new(|| {}));
        told(&mut gone).await;
        let long = Duration::from_millis(50);
        assert!(tokio::time::timeout(long, told(&mut gone)).await.is_err());
        let mut never = None;
        assert!(tokio::time::timeout(long, told(&mut never)).await.is_err());
        // Its thread ends with a panic, which says nothing of the host.
        let mut broken = watch(Box::new(|| panic!("on purpose")));
        assert!(tokio::time::timeout(long, told(&mut broken)).await.is_err());
    }
}
