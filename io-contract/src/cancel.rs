//! How a test stops a job, whatever the driver calls that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Says stop, once.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    said: bool,
    then: Option<Box<dyn FnOnce() + Send>>,
}

impl Cancel {
    /// One that says nothing.
    pub fn never() -> Self {
        Cancel::default()
    }

    /// One that has said it already.
    pub fn already() -> Self {
        let cancel = Cancel::default();
        cancel.say();
        cancel
    }

    /// One that says it after a time.
    pub fn after(time: Duration) -> Self {
        let cancel = Cancel::default();
        let later = cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(time);
            later.say();
        });
        cancel
    }

    /// Calls this when it is said, at once if it was.
    pub fn then(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.said {
            then();
        } else {
            state.then = Some(Box::new(then));
        }
    }

    fn say(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.said = true;
        if let Some(then) = state.then.take() {
            then();
        }
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cancel")
    }
}
