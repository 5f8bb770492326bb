//! The only clock: read once for each thing that wakes the loop.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use turnwire::vocab::Now;

/// Turns the machine's clocks into [`Now`], and deadlines back into instants.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose monotonic time begins now.
    pub fn start() -> Self {
        Clock {
            origin: Instant::now(),
        }
    }

    /// This moment. The wall clock may jump; only the monotonic one orders things.
    pub fn now(&self) -> Now {
        let unix_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
        let mono_us = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { mono_us, unix_ms }
    }

    /// The instant at which a machine wants to be woken; far future instead of an overflow.
    pub fn instant(&self, at_us: u64) -> Instant {
        let far = Duration::from_secs(86_400 * 365);
        self.origin + Duration::from_micros(at_us).min(far)
    }
}
