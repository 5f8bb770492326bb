//! Runs within the turn, of which only the brackets are told.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Out;
use crate::protocol::openseek::wire::{SubrunFinished, SubrunStarted};
use crate::vocab::*;

/// Runs that may be open. An engine that ends none is found out here.
const MOST_OPEN: usize = 1_024;

/// The open runs, by their ids on the wire.
#[derive(Debug, Default)]
pub(super) struct Runs {
    open: Vec<(String, RunId)>,
}

impl Runs {
    pub(super) fn started(&mut self, line: &SubrunStarted<'_>, out: &mut Out) {
        if self.open.iter().any(|(wire, _)| *wire == *line.id) {
            return out.finding(format!("run {:?} began twice", &*line.id));
        }
        if self.open.len() >= MOST_OPEN {
            return out.finding("too many runs are open; this one isn't followed");
        }
        let run = self.begin(&line.id, &line.kind, &line.label, Seen::Real, out);
        self.open.push(((&*line.id).into(), run));
    }

    fn begin(&self, _: &str, kind: &str, label: &str, seen: Seen, out: &mut Out) -> RunId {
        let run = out.ids.run();
        let what = What::RunStarted {
            run,
            kind: RunKind::Subagent(kind.into()),
            label: label.into(),
            call: None,
        };
        out.event(RunId::MAIN, seen, what);
        run
    }

    pub(super) fn finished(&mut self, line: &SubrunFinished<'_>, out: &mut Out) {
        let at = self.open.iter().position(|(wire, _)| *wire == *line.id);
        let run = match at {
            Some(at) => self.open.remove(at).1,
            None => {
                out.finding(format!("run {:?} ended and wasn't open", &*line.id));
                self.begin(&line.id, "", "", Seen::Inferred, out)
            }
        };
        let status = match &*line.status {
            "captured" => RunStatus::Completed,
            "no_report" => RunStatus::NoReport,
            "max_steps" => RunStatus::MaxSteps,
            "context_yield" => RunStatus::Yielded,
            "timed_out" => RunStatus::TimedOut,
            "cancelled" => RunStatus::Cancelled,
            _ => RunStatus::Failed,
        };
        let tokens = |number: i32| u64::try_from(number).ok();
        out.say(What::RunEnded {
            run,
            status,
            steps: u32::try_from(line.steps.get()).unwrap_or(0),
            usage: Some(Usage {
                input: tokens(line.prompt_tokens.get()),
                output: tokens(line.completion_tokens.get()),
                ..Usage::default()
            }),
            detail: (&*line.status).into(),
        });
    }

    /// Everything ends: the turn is over, or the engine is gone.
    pub(super) fn end_all(&mut self, status: RunStatus, out: &mut Out) {
        for (_, run) in core::mem::take(&mut self.open) {
            out.infer(What::RunEnded {
                run,
                status,
                steps: 0,
                usage: None,
                detail: "".into(),
            });
        }
    }
}
