//! A word to a call that runs: that it may go on as a job.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Wake = Arc<dyn Fn() + Send + Sync>;

/// Whether a call was asked to go on in the background. Clones are the same word.
#[derive(Clone, Default)]
pub struct LetGo(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    asked: bool,
    wake: Option<Wake>,
}

impl LetGo {
    /// Asks for it. Only the first word counts.
    pub fn ask(&self) {
        let wake = {
            let mut state = self.state();
            if std::mem::replace(&mut state.asked, true) {
                return;
            }
            state.wake.take()
        };
        // Outside the lock: it may take others.
        if let Some(wake) = wake {
            wake();
        }
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.state().asked
    }

    /// Calls `wake` once it is asked for; at once if it was.
    pub fn on_word(&self, wake: impl Fn() + Send + Sync + 'static) {
        {
            let mut state = self.state();
            if !state.asked {
                state.wake = Some(Arc::new(wake));
                return;
            }
        }
        wake();
    }

    /// Nobody listens any more.
    pub fn forget(&self) {
        let wake = self.state().wake.take();
        drop(wake);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LetGo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LetGo").field(&self.is_asked()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_word_is_heard_once_however_early_it_is_said() {
        let count = Arc::new(AtomicU32::new(0));
        let listen = |word: &LetGo| {
            let count = count.clone();
            word.on_word(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
        };
        let (late, early, gone) = (LetGo::default(), LetGo::default(), LetGo::default());
        listen(&late);
        late.clone().ask();
        late.ask();
        assert!(late.is_asked() && count.load(Ordering::Relaxed) == 1);
        early.ask();
        listen(&early);
        assert_eq!(count.load(Ordering::Relaxed), 2);
        listen(&gone);
        gone.forget();
        gone.ask();
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert_eq!(Arc::strong_count(&count), 1, "nothing is held");
    }
}
