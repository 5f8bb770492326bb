//! The permits for bulk: while a host doesn't read, model streams aren't read on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::cancel::CancelToken;

/// A number of permits. Each is taken once, and given back by the loop.
#[derive(Debug)]
pub(crate) struct Bulk {
    free: Mutex<usize>,
    changed: Condvar,
}

impl Bulk {
    pub(crate) fn new(permits: usize) -> Self {
        Bulk {
            free: Mutex::new(permits),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn add(&self, permits: usize) {
        if permits > 0 {
            *self.free() += permits;
            self.changed.notify_all();
        }
    }

    /// Waits for a permit and takes it; `false` if the job was stopped. Whoever says so must [`wake`](Bulk::wake) it.
    pub(crate) fn take(&self, cancel: &CancelToken) -> bool {
        let none = |free: &mut usize| *free == 0 && !cancel.is_cancelled();
        let mut free = self
            .changed
            .wait_while(self.free(), none)
            .unwrap_or_else(PoisonError::into_inner);
        if cancel.is_cancelled() {
            return false;
        }
        *free -= 1;
        true
    }

    /// Takes a permit if there is one.
    pub(crate) fn try_take(&self) -> bool {
        let mut free = self.free();
        let there = *free > 0;
        *free -= usize::from(there);
        there
    }

    /// Lets those that wait look whether they were stopped.
    pub(crate) fn wake(&self) {
        // With the lock, so that none looks before and waits after.
        let _free = self.free();
        self.changed.notify_all();
    }

    fn free(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_permit_is_waited_for_until_it_comes_or_the_job_is_stopped() {
        let bulk = Arc::new(Bulk::new(1));
        assert!(bulk.try_take() && !bulk.try_take());
        let wait = |cancel: &CancelToken| {
            let (bulk, cancel) = (bulk.clone(), cancel.clone());
            std::thread::spawn(move || bulk.take(&cancel))
        };
        let cancel = CancelToken::new();
        let waiting = wait(&cancel);
        bulk.add(1);
        assert!(waiting.join().unwrap());
        let other = bulk.clone();
        cancel.on_word(move || other.wake());
        let waiting = wait(&cancel);
        cancel.cancel();
        assert!(!waiting.join().unwrap());
        bulk.add(1);
        assert!(!bulk.take(&cancel), "stopped, though there is one");
    }
}
