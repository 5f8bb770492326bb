//! Answers to what a protocol asked that take their time: on a thread, in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use super::{Report, Reporter};

type Work<O> = Box<dyn FnOnce() -> O + Send>;

/// The thread, and what is on its way.
pub(super) struct Later<O> {
    report: Reporter,
    work: Option<mpsc::Sender<(u64, Work<O>)>>,
    give: mpsc::Sender<(u64, O)>,
    done: mpsc::Receiver<(u64, O)>,
    /// How many reports are still to come.
    pending: usize,
}

impl<O: Send + 'static> Later<O> {
    pub(super) fn new(report: Reporter) -> Self {
        let (give, done) = mpsc::channel();
        Later {
            report,
            work: None,
            give,
            done,
            pending: 0,
        }
    }

    /// Whether work is still to be done, or its end to be taken.
    pub(super) fn is_running(&self) -> bool {
        self.pending > 0
    }

    /// Hands work over. Without a thread it is done here.
    pub(super) fn start(&mut self, ask: u64, work: Work<O>) {
        self.pending += 1;
        let thread = match self.work.take() {
            Some(thread) => Some(thread),
            None => self.thread(),
        };
        let sent = match &thread {
            Some(thread) => thread.send((ask, work)).map_err(|lost| lost.0),
            None => Err((ask, work)),
        };
        self.work = thread.filter(|_| sent.is_ok());
        if let Err((ask, work)) = sent {
            carry_out(ask, work, &self.give);
            (self.report)(Report::Answered);
        }
    }

    fn thread(&self) -> Option<mpsc::Sender<(u64, Work<O>)>> {
        let (send, work) = mpsc::channel::<(u64, Work<O>)>();
        let (report, done) = (self.report.clone(), self.give.clone());
        let thread = std::thread::Builder::new().name("turnwire-answer".into());
        let started = thread.spawn(move || {
            for (ask, work) in work {
                carry_out(ask, work, &done);
                report(Report::Answered);
            }
        });
        match started {
            Ok(_) => Some(send),
            Err(error) => {
                tracing::error!(%error, "no thread for answers");
                None
            }
        }
    }

    /// Takes what was done, after a [`Report::Answered`]. `None`: it panicked.
    pub(super) fn take(&mut self) -> Option<(u64, O)> {
        self.pending = self.pending.saturating_sub(1);
        self.done.try_recv().ok()
    }
}

fn carry_out<O>(ask: u64, work: Work<O>, done: &mpsc::Sender<(u64, O)>) {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => {
            let _ = done.send((ask, outcome));
        }
        Err(panic) => tracing::error!("{}", super::crashed("an answer", &*panic)),
    }
}
