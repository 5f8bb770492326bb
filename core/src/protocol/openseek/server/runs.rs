//! Compactions, and runs within the turn.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::turn::{int, say, spent};
use super::{Compacting, Face};
use crate::protocol::Outbox;
use crate::protocol::heard::cut;
use crate::protocol::openseek::Openseek;
use crate::protocol::openseek::wire::{
    AutoCompactionFailed, AutoCompactionFinished, AutoCompactionStarted, CompactionFailed,
    CompactionFinished, CompactionStarted, SubrunFinished, SubrunStarted,
};
use crate::vocab::*;

/// A nested run whose end isn't written.
#[derive(Debug)]
pub(super) struct Bracket {
    /// Its id on the wire.
    id: String,
    steps: u32,
    usage: Option<Usage>,
}

impl Face {
    pub(super) fn compaction_started(
        &mut self,
        trigger: Trigger,
        span: Option<(u64, u64)>,
        out: &mut Outbox<Openseek>,
    ) {
        let span = span.unwrap_or_default();
        let asked = trigger == Trigger::Manual && !self.turn.is_open();
        self.compacting = Some(Compacting { asked, span });
        let (from_sequence, to_sequence) = (int(span.0), int(span.1));
        if asked {
            say(
                CompactionStarted {
                    from_sequence,
                    to_sequence,
                    ..CompactionStarted::default()
                },
                out,
            );
        } else {
            say(
                AutoCompactionStarted {
                    from_sequence,
                    to_sequence,
                    ..AutoCompactionStarted::default()
                },
                out,
            );
        }
    }

    pub(super) fn compaction_ended(
        &mut self,
        result: &Result<Compacted, CompactionFault>,
        out: &mut Outbox<Openseek>,
    ) {
        let compacting = self.compacting.take().unwrap_or(Compacting {
            asked: !self.turn.is_open(),
            span: (0, 0),
        });
        let (from_sequence, to_sequence) = (int(compacting.span.0), int(compacting.span.1));
        if compacting.asked {
            self.compactions = self.compactions.saturating_sub(1);
        }
        let error = match result {
            Ok(compacted) => {
                let summary = compacted.summary.as_deref().unwrap_or_default().into();
                if compacting.asked {
                    say(
                        CompactionFinished {
                            from_sequence,
                            to_sequence,
                            summary,
                            ..CompactionFinished::default()
                        },
                        out,
                    );
                } else {
                    say(
                        AutoCompactionFinished {
                            from_sequence,
                            to_sequence,
                            summary,
                            ..AutoCompactionFinished::default()
                        },
                        out,
                    );
                }
                return;
            }
            Err(CompactionFault::Cancelled) => "cancelled",
            Err(CompactionFault::Nothing(why)) => why,
            Err(CompactionFault::Failed(failure)) => &failure.text,
        };
        let error = error.into();
        if compacting.asked {
            say(
                CompactionFailed {
                    error,
                    ..CompactionFailed::default()
                },
                out,
            );
        } else {
            say(
                AutoCompactionFailed {
                    error,
                    ..AutoCompactionFailed::default()
                },
                out,
            );
        }
    }

    pub(super) fn run_started(
        &mut self,
        run: RunId,
        kind: &RunKind,
        label: &str,
        out: &mut Outbox<Openseek>,
    ) {
        // The number by which its session is kept, too.
        let id = format!("sr-{}", run.0);
        let kind = match kind {
            RunKind::Subagent(name) | RunKind::Task(name) => &**name,
            RunKind::Stage { .. } => "stage",
        };
        say(
            SubrunStarted {
                id: id.as_str().into(),
                kind: kind.into(),
                label: cut(label).into(),
                ..SubrunStarted::default()
            },
            out,
        );
        let open = Bracket {
            id,
            steps: 0,
            usage: None,
        };
        self.runs.insert(run, open);
    }

    pub(super) fn run_progress(&mut self, run: RunId, steps: u32, usage: Option<Usage>) {
        if let Some(open) = self.runs.get_mut(&run) {
            open.steps = steps;
            open.usage = usage;
        }
    }

    /// A turn is over: a run of it that goes on does so as a job, whose lines tell of its end. Its brackets are closed
    /// before the turn's, and it had nothing to report by then.
    pub(super) fn runs_outlive(&mut self, out: &mut Outbox<Openseek>) {
        let open: Vec<(RunId, u32, Option<Usage>)> = self
            .runs
            .iter()
            .map(|(run, open)| (*run, open.steps, open.usage))
            .collect();
        for (run, steps, usage) in open {
            self.run_ended(run, RunStatus::NoReport, steps, usage.as_ref(), out);
        }
    }

    pub(super) fn run_ended(
        &mut self,
        run: RunId,
        status: RunStatus,
        steps: u32,
        usage: Option<&Usage>,
        out: &mut Outbox<Openseek>,
    ) {
        let Some(Bracket { id, .. }) = self.runs.remove(&run) else {
            return;
        };
        let status = match status {
            RunStatus::Completed => "captured",
            RunStatus::NoReport => "no_report",
            RunStatus::MaxSteps => "max_steps",
            RunStatus::Yielded => "context_yield",
            RunStatus::TimedOut => "timed_out",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Failed | RunStatus::Skipped | RunStatus::Incomplete => "failed",
        };
        let (prompt_tokens, completion_tokens) = spent(usage);
        say(
            SubrunFinished {
                id: id.into(),
                status: status.into(),
                steps: int(u64::from(steps)),
                prompt_tokens,
                completion_tokens,
                ..SubrunFinished::default()
            },
            out,
        );
    }
}
