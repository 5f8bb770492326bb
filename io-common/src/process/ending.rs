//! When a child is ended, and how: the policy, without the waiting.

use std::time::{Duration, Instant};

/// How long left-behind processes have between SIGTERM and SIGKILL, if the grace time isn't shorter.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// Why a child was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Somebody asked for it.
    Cancelled,
    /// It ran for longer than it may.
    TimedOut,
}

/// How long a child may run, and how it is ended.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The longest it may run; `None`: until it is cancelled.
    pub limit: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// What to do to a child's group now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Leave,
    /// Ask it to end (SIGTERM).
    Terminate,
    /// End it (SIGKILL).
    Kill,
}

/// One child's way to its end. It is told of cancels and times, and says what to do to the group.
#[derive(Clone, Debug)]
pub struct Ending {
    limit_at: Option<Instant>,
    grace: Duration,
    kill_at: Option<Instant>,
    stopped: Option<Stopped>,
}

impl Ending {
    /// Of a child that starts now.
    pub fn new(terms: Terms, now: Instant) -> Self {
        Ending {
            // A limit beyond what the clock can say is none.
            limit_at: terms.limit.and_then(|limit| now.checked_add(limit)),
            grace: terms.grace,
            kill_at: None,
            stopped: None,
        }
    }

    /// The moment at which [`due`](Ending::due) is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        self.kill_at.or(self.limit_at)
    }

    /// It may run for as long as it takes from now on, if its time isn't over.
    pub fn free(&mut self) {
        self.limit_at = None;
    }

    /// Somebody wants it to end. Only the first word counts.
    pub fn cancel(&mut self, now: Instant) -> Act {
        match self.stopped {
            None => self.stop(Stopped::Cancelled, now),
            Some(_) => Act::Leave,
        }
    }

    /// The deadline has come.
    pub fn due(&mut self, now: Instant) -> Act {
        if self.deadline().is_none_or(|at| now < at) {
            return Act::Leave;
        }
        if self.kill_at.is_none() {
            return self.stop(Stopped::TimedOut, now);
        }
        // A child that can't even be killed now is waiting for a device; it is waited for.
        self.kill_at = Some(now + self.grace.max(LEFT_BEHIND));
        Act::Kill
    }

    fn stop(&mut self, why: Stopped, now: Instant) -> Act {
        self.stopped = Some(why);
        self.kill_at = Some(now + self.grace);
        Act::Terminate
    }

    /// Why it was ended; `None` if it ended by itself.
    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// The child is dead now: until when the others of its group may take to end after SIGTERM.
    /// A cancelled child's children share its grace time.
    pub fn settle_by(&self, now: Instant) -> Instant {
        self.kill_at.unwrap_or(now + LEFT_BEHIND.min(self.grace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_child_is_asked_first_and_killed_after_its_grace() {
        let start = Instant::now();
        let terms = Terms {
            limit: Some(5 * SECOND),
            grace: 2 * SECOND,
        };
        let mut ending = Ending::new(terms, start);
        assert_eq!(ending.deadline(), Some(start + 5 * SECOND));
        assert_eq!(ending.due(start + SECOND), Act::Leave, "too early");
        assert_eq!(ending.due(start + 5 * SECOND), Act::Terminate);
        assert_eq!(ending.stopped(), Some(Stopped::TimedOut));
        assert_eq!(ending.cancel(start + 6 * SECOND), Act::Leave, "too late");
        assert_eq!(ending.settle_by(start + 6 * SECOND), start + 7 * SECOND);
        assert_eq!(ending.due(start + 7 * SECOND), Act::Kill);
        assert_eq!(ending.deadline(), Some(start + 9 * SECOND), "again");
    }

    #[test]
    fn without_a_limit_only_a_cancel_ends_it() {
        let start = Instant::now();
        let terms = Terms {
            limit: None,
            grace: SECOND / 2,
        };
        let mut ending = Ending::new(terms, start);
        assert_eq!(ending.deadline(), None);
        assert_eq!(ending.settle_by(start), start + SECOND / 2);
        assert_eq!(ending.cancel(start), Act::Terminate);
        assert_eq!(ending.stopped(), Some(Stopped::Cancelled));
        assert_eq!(ending.deadline(), Some(start + SECOND / 2));
        let far = Terms {
            limit: Some(Duration::MAX),
            grace: SECOND,
        };
        assert_eq!(Ending::new(far, start).deadline(), None);
    }
}
