//! A word that can be given to a thread: stop.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Says to a running job that it shall stop. Clones are the same token.
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    how: How,
    /// Wakes what waits elsewhere.
    wake: Option<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    #[default]
    Go,
    Stop,
    Kill,
}

impl CancelToken {
    /// A token that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the job to stop. It ends in good order, and reports its end.
    pub fn cancel(&self) {
        self.say(How::Stop);
    }

    /// Whether it was asked to.
    pub fn is_cancelled(&self) -> bool {
        self.state().how >= How::Stop
    }

    /// Leaves it no time at all.
    pub(crate) fn kill(&self) {
        self.say(How::Kill);
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.state().how >= How::Kill
    }

    fn say(&self, how: How) {
        let wake = {
            let mut state = self.state();
            if state.how >= how {
                return;
            }
            state.how = how;
            state.wake.clone()
        };
        self.0.changed.notify_all();
        // Outside the lock: it may take others.
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Calls `wake` with every further word; at once if there was one already. It takes the place of an earlier one.
    pub(crate) fn on_word(&self, wake: impl Fn() + Send + Sync + 'static) {
        let wake = Arc::new(wake);
        let spoken = {
            let mut state = self.state();
            state.wake = Some(wake.clone());
            state.how > How::Go
        };
        if spoken {
            wake();
        }
    }

    /// Lets go of what [`on_word`](CancelToken::on_word) holds.
    pub(crate) fn forget(&self) {
        let wake = self.state().wake.take();
        drop(wake);
    }

    /// Sleeps; whether to the end.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let Some(until) = Instant::now().checked_add(time) else {
            return self.sleep_on();
        };
        let mut state = self.state();
        while state.how == How::Go {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    /// Sleeps until there is a word.
    fn sleep_on(&self) -> bool {
        let going = |state: &mut State| state.how == How::Go;
        drop(self.0.changed.wait_while(self.state(), going));
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CancelToken")
            .field(&self.state().how)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_word_ends_a_sleep_and_wakes_once_for_each() {
        let token = CancelToken::new();
        assert!(token.sleep(Duration::from_millis(1)));
        let (heard, other) = (Arc::new(AtomicU32::new(0)), token.clone());
        let count = heard.clone();
        token.on_word(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let sleeper = std::thread::spawn(move || other.sleep(Duration::MAX));
        token.cancel();
        token.cancel();
        assert!(!sleeper.join().unwrap());
        assert_eq!(heard.load(Ordering::Relaxed), 1);
        token.kill();
        token.cancel();
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        assert!(token.is_killed() && token.is_cancelled());
        // Too late to be told, so it is told at once.
        let count = heard.clone();
        token.on_word(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(heard.load(Ordering::Relaxed), 3);
        token.forget();
        assert_eq!(Arc::strong_count(&heard), 1, "nothing is held");
    }
}
