//! What the driver was asked to do and hasn't settled yet (S-03, S-04).
//!
//! Ids are counters, so a table remembers only what is live or stopped: an id that isn't there and isn't above the
//! highest one issued was settled before.

use alloc::collections::BTreeMap;

use crate::vocab::Misuse;

/// Where an issued effect stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It runs, and its settlement counts.
    Live,
    /// It was told to stop, or nobody waits for it any more: its settlement only frees the id.
    Stopped,
}

/// The effects of one kind.
#[derive(Debug, Default)]
pub(super) struct Table {
    open: BTreeMap<u64, State>,
    stopped: usize,
    highest: u64,
}

impl Table {
    /// Notes a new effect.
    pub fn issue(&mut self, id: u64) {
        self.highest = self.highest.max(id);
        self.open.insert(id, State::Live);
    }

    /// Marks an effect as stopped. Nothing happens if it was settled.
    pub fn stop(&mut self, id: u64) {
        if let Some(state) = self.open.get_mut(&id)
            && *state == State::Live
        {
            *state = State::Stopped;
            self.stopped += 1;
        }
    }

    /// Takes a settlement: exactly one for each id (L8).
    pub fn settle(&mut self, id: u64) -> Result<State, Misuse> {
        let state = self.look(id)?;
        self.open.remove(&id);
        if state == State::Stopped {
            self.stopped -= 1;
        }
        Ok(state)
    }

    /// Where an effect stands, for a chunk or progress that doesn't settle it.
    pub fn look(&self, id: u64) -> Result<State, Misuse> {
        match self.open.get(&id) {
            Some(state) => Ok(*state),
            None if id == 0 || id > self.highest => Err(Misuse::NeverIssued),
            None => Err(Misuse::AlreadySettled),
        }
    }

    /// Whether an effect is live.
    pub fn is_live(&self, id: u64) -> bool {
        self.open.get(&id) == Some(&State::Live)
    }
}

/// All effects, by kind: ids are counted for each kind on its own.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub models: Table,
    pub tools: Table,
    pub snapshots: Table,
    pub hooks: Table,
    pub writes: Table,
    pub reloads: Table,
    /// Jobs that a tool began though nothing here keeps jobs yet: told to stop at once.
    pub jobs: Table,
}

impl Effects {
    /// How many effects were stopped and haven't been settled.
    pub fn stopped(&self) -> usize {
        let Effects {
            models,
            tools,
            snapshots,
            hooks,
            writes,
            reloads,
            jobs,
        } = self;
        [models, tools, snapshots, hooks, writes, reloads, jobs]
            .into_iter()
            .map(|table| table.stopped)
            .sum()
    }
}
