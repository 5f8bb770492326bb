//! Background jobs, carried out on the thread that calls.

use std::time::Instant;

use turnwire_io::jobs::{BackgroundJob, Kept, Ran, Said};

use crate::cancel::CancelToken;
use crate::process::{self, Talk};

/// Carries a job out, and gives its end when nothing of its process group is left. It blocks until then.
pub(crate) fn run(job: &BackgroundJob, cancel: &CancelToken, say: &mut dyn FnMut(Said)) -> Ran {
    let kept = job.begin()?;
    let running = match process::begin(job.command(), cancel) {
        Ok(running) => running,
        Err(error) => {
            kept.discard();
            return Err(job.failed(&error));
        }
    };
    say(kept.started(running.number()));
    let mut heard = Heard { kept, cancel, say };
    let ran = running.run_out(&[], job.terms(), cancel, &mut heard);
    match ran {
        Ok(ran) => Ok(heard.kept.ended(ran.exit, ran.stopped)),
        Err(error) => Ok(heard.kept.lost(&error)),
    }
}

struct Heard<'a> {
    kept: Kept,
    cancel: &'a CancelToken,
    say: &'a mut dyn FnMut(Said),
}

impl Heard<'_> {
    /// Both streams go into one file. What is wrong with it ends the job, as a cancel does.
    fn take(&mut self, bytes: &[u8]) {
        if !self.kept.take(bytes) {
            self.cancel.cancel();
        }
    }
}

impl Talk for Heard<'_> {
    fn out(&mut self, bytes: &[u8]) {
        self.take(bytes);
    }

    fn err(&mut self, bytes: &[u8]) {
        self.take(bytes);
    }

    fn tell_at(&self) -> Option<Instant> {
        self.kept.tell_at()
    }

    fn tell(&mut self, now: Instant) {
        if let Some(said) = self.kept.tell(now) {
            (self.say)(said);
        }
    }
}
