//! Compactions, and runs within the turn.

use alloc::format;

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
        self.subruns += 1;
        let id = format!("sr-{}", self.subruns);
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
        self.runs.insert(run, id);
    }

    pub(super) fn run_ended(
        &mut self,
        run: RunId,
        status: RunStatus,
        steps: u32,
        usage: Option<&Usage>,
        out: &mut Outbox<Openseek>,
    ) {
        let Some(id) = self.runs.remove(&run) else {
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
