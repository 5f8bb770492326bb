//! Time as an argument: machines have no clock, they are told.

/// A moment, as the driver read it once for one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now {
    /// Monotonic microseconds since an origin of the driver's choice.
    pub mono_us: u64,
    /// Milliseconds since the Unix epoch, by the wall clock.
    pub unix_ms: u64,
}

/// When a machine wants to be woken, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Monotonic microseconds, on the clock of [`Now::mono_us`].
    pub at_us: u64,
    /// The timer's name, for logs and traces.
    pub why: &'static str,
}

impl Due {
    /// The earlier of two deadlines, where either may be missing.
    pub fn earliest(a: Option<Due>, b: Option<Due>) -> Option<Due> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at_us < a.at_us { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
