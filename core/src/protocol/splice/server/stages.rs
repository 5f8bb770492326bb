//! Stages of a pipeline: their text lines and markers, and which files each has changed.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::wire::{Marker, Nullable, Reasoning, StageStatus};
use super::result::Record;
use super::{Face, Out};
use crate::json::Str;
use crate::vocab::*;

/// The runs that are open.
#[derive(Debug, Default)]
pub(super) struct Stages {
    open: BTreeMap<RunId, Open>,
}

#[derive(Debug)]
struct Open {
    name: Text,
    /// Which time the stage runs; `None`: it is another run.
    iteration: Option<u32>,
    began_us: u64,
    /// Paths that it changed; `None`: no tool has ended yet.
    changed: Option<Vec<Text>>,
}

impl Stages {
    /// The name of a stage that runs.
    pub(super) fn name(&self, run: RunId) -> Option<&Text> {
        self.open.get(&run).map(|open| &open.name)
    }

    /// The stage that runs, and which time.
    pub(super) fn stage(&self, run: RunId) -> Option<(&Text, u32)> {
        let open = self.open.get(&run)?;
        Some((&open.name, open.iteration?))
    }

    pub(super) fn changed(&mut self, run: RunId, path: &Text) {
        if let Some(open) = self.open.get_mut(&run) {
            let changed = open.changed.get_or_insert_default();
            if !changed.contains(path) {
                changed.push(path.clone());
            }
        }
    }

    pub(super) fn call_ended(&mut self, run: RunId, paths: &[Text]) {
        if let Some(open) = self.open.get_mut(&run) {
            open.changed.get_or_insert_default();
        }
        for path in paths {
            self.changed(run, path);
        }
    }
}

impl Face {
    pub(super) fn run_started(
        &mut self,
        run: RunId,
        at: Now,
        kind: &RunKind,
        label: &Text,
        out: &mut Out,
    ) {
        let (name, iteration) = match kind {
            RunKind::Stage { name, iteration } => (name.clone(), Some(*iteration)),
            RunKind::Subagent(name) | RunKind::Task(name) => (name.clone(), None),
        };
        let text = match iteration {
            Some(_) => format!("[{name}] stage started\n"),
            None => format!("[{name}] started: {label}\n"),
        };
        self.reasoning(&text, out);
        if iteration.is_some() {
            self.tally.pipeline = true;
            self.marker(&name, StageStatus::Running, None, "", out);
        }
        let open = Open {
            name,
            iteration,
            began_us: at.mono_us,
            changed: None,
        };
        self.stages.open.insert(run, open);
    }

    pub(super) fn run_ended(
        &mut self,
        run: RunId,
        at: Now,
        status: RunStatus,
        detail: &Text,
        out: &mut Out,
    ) {
        let Some(open) = self.stages.open.remove(&run) else {
            return;
        };
        let name = &open.name;
        let Some(iteration) = open.iteration else {
            return self.reasoning(&format!("[{name}] finished\n"), out);
        };
        self.reasoning(&format!("[{name}] stage finished\n"), out);
        let word = match status {
            RunStatus::Completed => Some(StageStatus::Completed),
            RunStatus::Skipped => Some(StageStatus::Skipped),
            RunStatus::Incomplete => Some(StageStatus::Incomplete),
            RunStatus::NoReport
            | RunStatus::MaxSteps
            | RunStatus::Yielded
            | RunStatus::TimedOut
            | RunStatus::Failed => Some(StageStatus::Failed),
            RunStatus::Cancelled => None,
        };
        if let Some(word) = &word {
            // A stage that was done has a list, if an empty one.
            let none: &[Text] = &[];
            let changed = open
                .changed
                .as_deref()
                .or((status == RunStatus::Completed).then_some(none));
            self.marker(name, word.clone(), changed, detail, out);
        }
        let latency_us = at.mono_us.saturating_sub(open.began_us);
        self.tally.stage(Record {
            run,
            name: name.clone(),
            status: word.map_or("cancelled".into(), |word| String::from(word.as_str())),
            iteration,
            summary: String::from(&*self.clean(detail)),
            latency_ms: latency_us / 1_000,
        });
    }

    fn marker(
        &self,
        name: &str,
        status: StageStatus<'_>,
        changed: Option<&[Text]>,
        detail: &str,
        out: &mut Out,
    ) {
        let progress = if status == StageStatus::Completed {
            100
        } else {
            0
        };
        let clean = |path: &Text| Str(String::from(&*self.clean(path)).into());
        let marker = Marker {
            changed_files: Nullable(changed.map(|paths| paths.iter().map(clean).collect())),
            detail: Str(self.clean(detail)),
            name: name.into(),
            progress,
            status,
            ..Marker::default()
        };
        let delta = marker.write();
        self.put(
            Reasoning {
                delta: Some(delta.into()),
                run_id: self.id(),
                ..Reasoning::default()
            },
            out,
        );
    }
}
