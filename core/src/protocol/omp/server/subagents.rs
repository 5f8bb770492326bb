//! Subagents: nested runs as a host hears of them (OMP-14).
//!
//! Whatever the host subscribed to, each run that is alive has a state like the session's own, so that its events make
//! sense from whichever of them on the host listens.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::commands::payload;
use super::entries::{self, Entry, entry_id};
use super::run::{Pen, Run};
use super::said::tell_run;
use super::ticket::Ticket;
use super::{Face, Subscription};
use crate::json::Str;
use crate::protocol::Outbox;
use crate::protocol::omp::wire::{
    Data, Kept, Lifecycle, LifecycleStatus, Subagent, SubagentLifecycle, Subagents,
};
use crate::protocol::omp::{Omp, RunFiles, Transcript};
use crate::vocab::*;

/// Runs that have ended and are still listed; of more the oldest are forgotten.
const MOST_ENDED: usize = 256;

/// The subagents of a session.
#[derive(Debug, Default)]
pub(super) struct Registry {
    known: BTreeMap<RunId, Known>,
    /// Those that have ended, in this order.
    ended: VecDeque<RunId>,
}

#[derive(Debug)]
struct Known {
    agent: Text,
    label: Text,
    /// The wire's id of the call that asked for it.
    call: Option<String>,
    /// The name of its transcript without the ending, if it is kept.
    stem: Option<String>,
    /// What a list says of it.
    status: &'static str,
    /// Its call is over, and it goes on.
    detached: bool,
    at_ms: u64,
    /// What it says, as long as it is alive.
    talk: Option<Box<Run>>,
}

impl Known {
    fn file(&self, files: Option<&RunFiles>) -> Option<String> {
        let (stem, files) = (self.stem.as_ref()?, files?);
        Some(format!("{stem}{}", files.ending))
    }
}

impl Registry {
    /// Another session: nothing is known.
    pub(super) fn clear(&mut self) {
        *self = Registry::default();
    }

    fn over(&mut self, run: RunId) {
        self.ended.push_back(run);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// What a subagent is called.
pub(super) fn id_of(run: RunId) -> String {
    format!("run-{}", run.0)
}

impl Face {
    /// What a nested run says, or is said of one.
    #[allow(clippy::wildcard_enum_match_arm, reason = "the rest is the run's own")]
    pub(super) fn subagent_news(&mut self, event: &Event, out: &mut Outbox<Omp>) {
        match &event.what {
            What::RunStarted {
                run,
                kind,
                label,
                call,
            } => {
                let call = call.filter(|_| event.run == RunId::MAIN);
                self.subagent_started((event.run, *run), kind, label, call, out);
            }
            What::RunEnded {
                run,
                status,
                detail,
                ..
            } => self.subagent_ended(*run, *status, detail, out),
            What::Job(JobStep::Started, record) => {
                if let JobKind::Run(run) = record.kind
                    && let Some(known) = self.subagents.known.get_mut(&run)
                {
                    known.detached = true;
                }
            }
            _ if event.run == RunId::MAIN => {}
            what => self.with_subagent(event.run, out, |talk, pen| match what {
                What::Message(message) => talk.message(message, false, pen),
                what => {
                    tell_run(talk, what, pen);
                    if matches!(what, What::StepEnded { .. }) {
                        talk.forget_said();
                    }
                }
            }),
        }
    }

    /// A piece of what a nested run says.
    pub(super) fn subagent_delta(&mut self, delta: &DeltaRef<'_>, out: &mut Outbox<Omp>) {
        self.with_subagent(delta.run, out, |talk, pen| {
            talk.delta(delta, pen.printer, pen.out);
        });
    }

    /// The state of a run that is alive and what it writes with: frames that name it, if the host listens to events.
    fn with_subagent(
        &mut self,
        run: RunId,
        out: &mut Outbox<Omp>,
        act: impl FnOnce(&mut Run, &mut Pen<'_>),
    ) {
        let known = self.subagents.known.get_mut(&run);
        let Some(mut talk) = known.and_then(|known| known.talk.take()) else {
            return;
        };
        let listens = self.own.subagents == Subscription::Events;
        self.printer.enter(id_of(run), !listens);
        let mut pen = Pen {
            printer: &mut self.printer,
            out,
            models: &self.models,
            mirror: &self.mirror,
            now: self.now,
        };
        act(&mut talk, &mut pen);
        self.printer.leave();
        if let Some(known) = self.subagents.known.get_mut(&run) {
            known.talk = Some(talk);
        }
    }

    fn subagent_started(
        &mut self,
        (by, run): (RunId, RunId),
        kind: &RunKind,
        label: &Text,
        call: Option<CallId>,
        out: &mut Outbox<Omp>,
    ) {
        let files = self.config.run_files.as_ref();
        let above = match by {
            RunId::MAIN => {
                let file = self.mirror.info().and_then(|info| info.file.as_deref());
                file.zip(files)
                    .and_then(|(file, files)| file.strip_suffix(&*files.ending))
            }
            by => self
                .subagents
                .known
                .get(&by)
                .and_then(|known| known.stem.as_deref()),
        };
        let stem = files
            .zip(above)
            .map(|(files, above)| format!("{above}{}{}", files.between, run.0));
        let call = call.and_then(|call| self.run.names.wire(call));
        let (RunKind::Subagent(agent) | RunKind::Task(agent) | RunKind::Stage { name: agent, .. }) =
            kind;
        self.subagents.known.insert(
            run,
            Known {
                agent: agent.clone(),
                label: label.clone(),
                call: call.map(String::from),
                stem,
                status: "running",
                detached: false,
                at_ms: self.now.unix_ms,
                talk: Some(Box::default()),
            },
        );
        self.lifecycle(run, LifecycleStatus::Started, out);
        self.with_subagent(run, out, |talk, pen| talk.turn_started(TurnId(run.0), pen));
    }

    fn subagent_ended(
        &mut self,
        run: RunId,
        status: RunStatus,
        detail: &Text,
        out: &mut Outbox<Omp>,
    ) {
        let (word, status, end) = match status {
            RunStatus::Completed
            | RunStatus::NoReport
            | RunStatus::Yielded
            | RunStatus::Skipped => {
                let end = End::Finished { finish: None };
                ("completed", LifecycleStatus::Completed, end)
            }
            RunStatus::MaxSteps => ("failed", LifecycleStatus::Failed, End::MaxSteps),
            RunStatus::TimedOut | RunStatus::Failed | RunStatus::Incomplete => {
                let failure = Failure {
                    kind: FailureKind::Internal,
                    status: None,
                    retryable: false,
                    text: detail.clone(),
                };
                ("failed", LifecycleStatus::Failed, End::Failed(failure))
            }
            RunStatus::Cancelled => {
                let end = End::Cancelled(CancelWhy::Host);
                ("aborted", LifecycleStatus::Aborted, end)
            }
        };
        self.with_subagent(run, out, |talk, pen| {
            talk.turn_ended(&end, Pending::default(), pen);
        });
        let Some(known) = self.subagents.known.get_mut(&run) else {
            return;
        };
        if known.talk.take().is_none() {
            return;
        }
        known.status = word;
        known.at_ms = self.now.unix_ms;
        self.lifecycle(run, status, out);
        self.subagents.over(run);
    }

    fn lifecycle(&mut self, run: RunId, status: LifecycleStatus<'_>, out: &mut Outbox<Omp>) {
        let Some(known) = self.subagents.known.get(&run) else {
            return;
        };
        if self.own.subagents == Subscription::Off {
            return;
        }
        let file = known.file(self.config.run_files.as_ref());
        let line = SubagentLifecycle {
            payload: Lifecycle {
                id: id_of(run).into(),
                agent: (&*known.agent).into(),
                agent_source: "builtin".into(),
                description: (!known.label.is_empty()).then(|| (&*known.label).into()),
                status,
                session_file: file.map(Str::from),
                parent_tool_call_id: known.call.as_deref().map(Into::into),
                index: run.0,
                detached: known.detached.then_some(true),
                ..Lifecycle::default()
            },
            ..SubagentLifecycle::default()
        };
        self.printer.say(line, out);
    }

    /// Payload of `get_subagents`: those that are alive and the last that were.
    pub(super) fn subagents_json(&self) -> Vec<u8> {
        let files = self.config.run_files.as_ref();
        let subagents = self.subagents.known.iter().map(|(run, known)| {
            Kept::Known(Subagent {
                id: id_of(*run).into(),
                index: run.0,
                agent: (&*known.agent).into(),
                agent_source: "builtin".into(),
                description: (!known.label.is_empty()).then(|| (&*known.label).into()),
                status: known.status.into(),
                session_file: known.file(files).map(Str::from),
                last_update: known.at_ms.into(),
                parent_tool_call_id: known.call.as_deref().map(Into::into),
                ..Subagent::default()
            })
        });
        payload(&Data::Subagents(Subagents {
            subagents: subagents.collect(),
            ..Subagents::default()
        }))
    }

    /// The answer to `get_subagent_messages`: the messages as that subagent's events have them.
    pub(super) fn give_transcript(
        &mut self,
        ticket: Ticket,
        part: &Transcript,
        out: &mut Outbox<Omp>,
    ) {
        let mut own = Run::default();
        let (models, info) = (&self.models, self.mirror.info());
        let entry = |message: &Arc<Message>| Entry {
            id: entry_id(message.id),
            at_ms: message.at_ms,
            message: own.history_json(message, models, info),
        };
        let entries: Vec<Entry> = part.messages.iter().map(entry).collect();
        let json = entries::transcript(part, &entries);
        self.give(ticket, Some(&json), out);
    }
}
