//! The threads of a session's jobs, so that none is left behind.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cancel::CancelToken;

/// Counts the threads that run, and can end them all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    jobs: Mutex<Jobs>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Jobs {
    last: u64,
    running: BTreeMap<u64, CancelToken>,
}

impl Live {
    /// Runs `job` on a thread of its own.
    pub(crate) fn spawn(
        &self,
        name: &str,
        cancel: &CancelToken,
        job: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let over = Over {
            live: self.clone(),
            id: self.enter(cancel.clone()),
        };
        let thread = std::thread::Builder::new().name(name.into());
        thread.spawn(move || {
            let _over = over;
            job();
        })?;
        Ok(())
    }

    /// Leaves no job any time, and waits a moment for all to be over.
    pub(crate) fn end(&self, patience: Duration) {
        let tokens: Vec<CancelToken> = self.jobs().running.values().cloned().collect();
        for token in tokens {
            token.kill();
        }
        let some = |jobs: &mut Jobs| !jobs.running.is_empty();
        drop(self.0.over.wait_timeout_while(self.jobs(), patience, some));
    }

    fn enter(&self, cancel: CancelToken) -> u64 {
        let mut jobs = self.jobs();
        jobs.last += 1;
        let id = jobs.last;
        jobs.running.insert(id, cancel);
        id
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that a thread is over, however it ended.
struct Over {
    live: Live,
    id: u64,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.live.jobs().running.remove(&self.id);
        self.live.0.over.notify_all();
    }
}
