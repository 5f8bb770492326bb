//! The tools, carried out on the thread that calls.

use std::time::Instant;

use turnwire::vocab::ToolUpdate;

pub use turnwire_io::tools::*;

pub use crate::cancel::CancelToken;
use crate::process::{self, Talk};

/// Carries out one call and gives its end, always [`ToolUpdate::Done`]. It blocks until then.
///
/// `input` is the text of a JSON object. Before it returns, `updates` gets progress of a running
/// command, at most about seven times a second, and [`ToolUpdate::FileChanged`] for a file that was
/// written. A cancelled call ends [`ToolOutcome::Cancelled`](turnwire::vocab::ToolOutcome::Cancelled); one that
/// changes a file is finished first.
pub fn run(
    tools: &Toolbox,
    name: &str,
    input: &str,
    cancel: &CancelToken,
    updates: impl FnMut(ToolUpdate),
) -> ToolUpdate {
    carry_out(&tools.prepare(name, input), cancel, updates)
}

/// Runs a command of the person's own and gives its end, always [`ToolUpdate::Done`]: see
/// [`Toolbox::prepare_shell`]. All else is as with [`run`].
pub fn shell(
    tools: &Toolbox,
    line: &str,
    cancel: &CancelToken,
    updates: impl FnMut(ToolUpdate),
) -> ToolUpdate {
    carry_out(&tools.prepare_shell(line), cancel, updates)
}

/// Carries out a call that is ready; see [`run`].
pub(crate) fn carry_out(
    job: &ToolJob,
    cancel: &CancelToken,
    mut updates: impl FnMut(ToolUpdate),
) -> ToolUpdate {
    let finished = if cancel.is_cancelled() {
        Finished::cancelled()
    } else {
        match job {
            ToolJob::Command(job) => command(job, cancel, &mut updates),
            ToolJob::File(job) => job.run(&|| cancel.is_cancelled()),
            ToolJob::Over(finished) => finished.clone(),
            ToolJob::Open(job) => command(job.command(), cancel, &mut updates),
            ToolJob::Background(_) => Finished::failed(ONE_CALL),
        }
    };
    let (file, done) = finished.into_updates();
    if let Some(file) = file {
        updates(file);
    }
    done
}

/// Runs a command and settles its whole process group.
fn command(
    job: &CommandJob,
    cancel: &CancelToken,
    updates: &mut dyn FnMut(ToolUpdate),
) -> Finished {
    if let Some(refused) = job.objection() {
        return refused;
    }
    let capture = job.capture();
    let mut heard = Heard { capture, updates };
    match process::run(
        job.command(),
        job.payload(),
        job.terms(),
        cancel,
        &mut heard,
    ) {
        Ok(ran) => job.ended(heard.capture, ran.exit, ran.stopped),
        Err(error) => job.failed(&error),
    }
}

struct Heard<'a> {
    capture: Capture,
    updates: &'a mut dyn FnMut(ToolUpdate),
}

impl Talk for Heard<'_> {
    fn out(&mut self, bytes: &[u8]) {
        self.capture.out(bytes);
    }

    fn err(&mut self, bytes: &[u8]) {
        self.capture.err(bytes);
    }

    fn tell_at(&self) -> Option<Instant> {
        self.capture.tell_at()
    }

    fn tell(&mut self, now: Instant) {
        if let Some(progress) = self.capture.tell(now) {
            (self.updates)(progress);
        }
    }
}
