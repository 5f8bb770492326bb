//! What the driver was asked to do and hasn't settled yet (S-03, S-04).
//!
//! Ids are counters, so a table remembers only what is live or stopped: an id that isn't there and isn't above the
//! highest one issued was settled before.

use alloc::collections::BTreeMap;

use crate::vocab::{Event, Input, JobUpdate, Misuse, RunId, ToolUpdate, What};

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

    /// Whether one was told to stop and hasn't settled.
    pub fn has_stopped(&self) -> bool {
        self.stopped > 0
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
    pub restores: Table,
    pub opens: Table,
    pub shells: Table,
    /// Live from the moment that a call became one.
    pub jobs: Table,
    pub runs: Table,
}

impl Effects {
    /// Where the effect that an input is about stands; misuse is found before anything changes (S-04).
    pub fn look(&self, input: &Input<'_>) -> Result<State, Misuse> {
        match input {
            Input::Model { request, .. } => self.models.look(request.0),
            Input::Tool { call, update } => match update {
                ToolUpdate::Progress(_)
                | ToolUpdate::NeedsNetwork { .. }
                | ToolUpdate::FileChanged { .. }
                | ToolUpdate::Detached(_) => self.tools.look(call.0),
                ToolUpdate::Snapshotted { .. } => self.snapshots.look(call.0),
                // A snapshot that failed ends its call before it ran.
                ToolUpdate::Done { .. } => self
                    .tools
                    .look(call.0)
                    .or_else(|misuse| self.snapshots.look(call.0).map_err(|_| misuse)),
            },
            Input::Hook { hook, .. } => self.hooks.look(hook.0),
            Input::Store { write, .. } => self.writes.look(write.0),
            Input::Reloaded { command, .. } => self.reloads.look(command.0),
            Input::Shell { command, outcome } => {
                let state = self.shells.look(command.0)?;
                match outcome {
                    ToolUpdate::Progress(_) | ToolUpdate::Done { .. } => Ok(state),
                    ToolUpdate::Snapshotted { .. }
                    | ToolUpdate::NeedsNetwork { .. }
                    | ToolUpdate::FileChanged { .. }
                    | ToolUpdate::Detached(_) => Err(Misuse::WrongKind),
                }
            }
            Input::Job { job, .. } => self.jobs.look(job.0),
            Input::Restored { command, .. } => self.restores.look(command.0),
            Input::Opened { command, .. } => self.opens.look(command.0),
            Input::Run { run, .. } => self.runs.look(run.0),
            Input::Call(_)
            | Input::Refrozen { .. }
            | Input::DriverTools { .. }
            | Input::Fault { .. }
            | Input::Woken => Ok(State::Live),
        }
    }

    /// Takes the settlement that an input is, or looks if it is none.
    pub fn settle(&mut self, input: &Input<'_>) -> Result<State, Misuse> {
        match input {
            Input::Model { request, chunk } if chunk.settles() => self.models.settle(request.0),
            Input::Tool {
                call,
                update: ToolUpdate::Detached(_) | ToolUpdate::Done { .. },
            } => self
                .tools
                .settle(call.0)
                .or_else(|misuse| self.snapshots.settle(call.0).map_err(|_| misuse)),
            Input::Tool {
                call,
                update: ToolUpdate::Snapshotted { .. },
            } => self.snapshots.settle(call.0),
            Input::Hook { hook, .. } => self.hooks.settle(hook.0),
            Input::Store { write, .. } => self.writes.settle(write.0),
            Input::Reloaded { command, .. } => self.reloads.settle(command.0),
            Input::Restored { command, .. } => self.restores.settle(command.0),
            Input::Opened { command, .. } => self.opens.settle(command.0),
            Input::Shell {
                command,
                outcome: ToolUpdate::Done { .. },
            } => self.shells.settle(command.0),
            Input::Job {
                job,
                update: JobUpdate::Ended(_),
            } => self.jobs.settle(job.0),
            Input::Run { run, event } if ends(*run, event) => self.runs.settle(run.0),
            Input::Model { .. }
            | Input::Tool { .. }
            | Input::Job { .. }
            | Input::Run { .. }
            | Input::Shell { .. }
            | Input::Call(_)
            | Input::Refrozen { .. }
            | Input::DriverTools { .. }
            | Input::Fault { .. }
            | Input::Woken => self.look(input),
        }
    }

    /// Whether any effect isn't settled.
    pub fn any(&self) -> bool {
        !self.tables().iter().all(|table| table.open.is_empty())
    }

    /// How many effects were stopped and haven't been settled.
    pub fn stopped(&self) -> usize {
        self.tables().iter().map(|table| table.stopped).sum()
    }

    fn tables(&self) -> [&Table; 11] {
        let Effects {
            models,
            tools,
            snapshots,
            hooks,
            writes,
            reloads,
            restores,
            opens,
            shells,
            jobs,
            runs,
        } = self;
        [
            models, tools, snapshots, hooks, writes, reloads, restores, opens, shells, jobs, runs,
        ]
    }
}

/// Whether an event is the last one of a run, as its holder tells it.
fn ends(run: RunId, event: &Event) -> bool {
    matches!(event.what, What::RunEnded { run: ended, .. } if ended == run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l8_an_effect_is_live_until_it_is_stopped_or_settled() {
        let mut table = Table::default();
        assert_eq!(table.look(1), Err(Misuse::NeverIssued));
        table.issue(1);
        table.issue(2);
        assert_eq!([1, 2, 3].map(|id| table.is_live(id)), [true, true, false]);
        table.stop(1);
        table.stop(1);
        assert_eq!([1, 2].map(|id| table.is_live(id)), [false, true]);
        assert_eq!(table.stopped, 1);
        assert_eq!(table.settle(1), Ok(State::Stopped));
        assert_eq!(table.settle(2), Ok(State::Live));
        assert_eq!(table.stopped, 0);
        assert!(!table.is_live(2));
        assert_eq!(table.settle(2), Err(Misuse::AlreadySettled));
        assert_eq!(table.look(0), Err(Misuse::NeverIssued));
    }
}
