//! What the tests of the program need: a provider on the loopback, a home of its own, and the program driven over
//! real pipes. Everything has a time limit, and ends what it started.

pub mod agentx;
pub mod omp;
pub mod openmax;
pub mod openseek;
pub mod program;
pub mod provider;
pub mod replies;

use std::time::{Duration, Instant};

/// The longest that a test waits for anything. Machines under load are slow; a hang is still found.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `check` gives something, or fails with what was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
