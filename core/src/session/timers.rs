//! The session's timers. A deadline lives in what it belongs to and so goes with it (S-45); here they are compared.

use crate::vocab::Due;

/// The timers, in the order in which they fire at the same tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// The write at a turn's end: how long its end waits for it. While the session drains, any write of a turn.
    Flush,
    /// The write of what came between two turns, while the session closes.
    Beside,
    /// What a command waits for from the disk, while the session drains; by command id.
    Owed,
    /// A retry's wait.
    Backoff,
    /// No progress of a model request, a compaction's too.
    Stall,
    /// An open permission, by ask id.
    Approval,
    /// A hook run, by its number.
    Hook,
    /// A running call, by call id.
    Tool,
    /// A turn that waits for its jobs: how long it does.
    Hold,
    /// Draining: how long a close waits for the turn.
    Drain,
}

impl Name {
    /// The name that [`Due::why`] says.
    pub fn why(self) -> &'static str {
        match self {
            Name::Flush | Name::Beside | Name::Owed => "flush",
            Name::Backoff => "backoff",
            Name::Stall => "stall",
            Name::Approval => "approval",
            Name::Hook => "hook",
            Name::Tool => "tool",
            Name::Hold => "hold",
            Name::Drain => "drain",
        }
    }
}

/// One armed timer; the order of the fields is the firing order (S-02).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    pub at_us: u64,
    pub name: Name,
    pub id: u64,
}

impl Timer {
    pub fn due(self) -> Due {
        Due {
            at_us: self.at_us,
            why: self.name.why(),
        }
    }
}

/// Finds the first of many timers without keeping a list of them.
#[derive(Default)]
pub(super) struct First(Option<Timer>);

impl First {
    /// Looks at one timer, if it is armed.
    pub fn see(&mut self, name: Name, id: u64, at_us: Option<u64>) {
        if let Some(at_us) = at_us {
            let timer = Timer { at_us, name, id };
            if self.0.is_none_or(|first| timer < first) {
                self.0 = Some(timer);
            }
        }
    }

    pub fn get(self) -> Option<Timer> {
        self.0
    }
}
