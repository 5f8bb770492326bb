//! Hooks, run on a thread.

use std::io;

use turnwire::vocab::{HookReply, Text};

pub use turnwire_io::hooks::*;

use crate::cancel::CancelToken;
use crate::process::{self, Talk};

/// Runs it. When this returns, no process of its group is left.
///
/// # Errors
/// It failed, and how; a run that was stopped is one of those.
pub fn run(job: &HookJob, stop: &CancelToken) -> Result<HookReply, Text> {
    if stop.is_cancelled() {
        return job.outcome(Ok(None));
    }
    job.outcome(attempt(job, stop))
}

/// `None`: it was stopped.
fn attempt(job: &HookJob, stop: &CancelToken) -> io::Result<Option<Ended>> {
    let mut heard = Heard {
        stdout: Kept::out(),
        stderr: Kept::err(),
    };
    let ran = process::run(job.command(), job.payload(), job.terms(), stop, &mut heard)?;
    let ended = Ended {
        exit: ran.exit,
        stdout: heard.stdout,
        stderr: heard.stderr,
    };
    Ok(ran.stopped.is_none().then_some(ended))
}

struct Heard {
    stdout: Kept,
    stderr: Kept,
}

impl Talk for Heard {
    fn out(&mut self, bytes: &[u8]) {
        self.stdout.push(bytes);
    }

    fn err(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }
}
