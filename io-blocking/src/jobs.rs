//! Background jobs, carried out on the thread that calls.

use std::time::Instant;

use turnwire_io::jobs::{BackgroundJob, Kept, OpenJob, Ran, Said, Told};
use turnwire_io::tools::Capture;

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
    fn take(&mut self, bytes: &[u8]) {
        take(&mut self.kept, bytes, self.cancel);
    }
}

/// Both streams go into one file. What is wrong with it ends the job, as a cancel does.
fn take(kept: &mut Kept, bytes: &[u8], cancel: &CancelToken) {
    if !kept.take(bytes) {
        cancel.cancel();
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

/// Carries a command out, as a call and, once it is let go, as a job; and gives its end when nothing of its process group
/// is left. It blocks until then.
pub(crate) fn run_open(job: &OpenJob, cancel: &CancelToken, say: &mut dyn FnMut(Told)) -> Ran {
    let running = match process::begin(job.command().command(), cancel) {
        Ok(running) => running,
        Err(error) => return Err(job.failed(&error)),
    };
    job.let_go().on_word(running.waker());
    let mut heard = Open {
        job,
        number: running.number(),
        began_ms: job.now_ms(),
        capture: job.command().capture(),
        kept: None,
        asked: false,
        cancel,
        say,
    };
    let ran = running.run_out(&[], job.command().terms(), cancel, &mut heard);
    job.let_go().forget();
    match (heard.kept, ran) {
        (Some(kept), Ok(ran)) => Ok(kept.ended(ran.exit, ran.stopped)),
        (Some(kept), Err(error)) => Ok(kept.lost(&error)),
        (None, Ok(ran)) => Err(job.ended(heard.capture, ran.exit, ran.stopped)),
        (None, Err(error)) => Err(job.failed(&error)),
    }
}

/// What takes the words of a command that may become a job.
struct Open<'a> {
    job: &'a OpenJob,
    /// Of its process group.
    number: u32,
    began_ms: u64,
    capture: Capture,
    /// It is a job.
    kept: Option<Kept>,
    /// It was asked to be one.
    asked: bool,
    cancel: &'a CancelToken,
    say: &'a mut dyn FnMut(Told),
}

impl Talk for Open<'_> {
    fn out(&mut self, bytes: &[u8]) {
        match &mut self.kept {
            Some(kept) => take(kept, bytes, self.cancel),
            None => self.capture.out(bytes),
        }
    }

    fn err(&mut self, bytes: &[u8]) {
        match &mut self.kept {
            Some(kept) => take(kept, bytes, self.cancel),
            None => self.capture.err(bytes),
        }
    }

    fn tell_at(&self) -> Option<Instant> {
        match &self.kept {
            Some(kept) => kept.tell_at(),
            None => self.capture.tell_at(),
        }
    }

    fn tell(&mut self, now: Instant) {
        if !self.asked && self.job.let_go().is_asked() {
            self.asked = true;
            self.kept = self.job.detach(self.began_ms, &mut self.capture);
            if let Some(kept) = &self.kept {
                (self.say)(Told::Job(kept.started(self.number)));
            }
        }
        match &mut self.kept {
            Some(kept) => {
                if let Some(said) = kept.tell(now) {
                    (self.say)(Told::Job(said));
                }
            }
            None => {
                if let Some(progress) = self.capture.tell(now) {
                    (self.say)(Told::Call(progress));
                }
            }
        }
    }

    fn is_free(&self) -> bool {
        self.kept.is_some() && self.job.is_free()
    }
}
