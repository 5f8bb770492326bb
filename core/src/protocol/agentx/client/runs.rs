//! Tasks: sub-agents as nested runs, commands that go on beside the turn as jobs.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::calls::cut_id;
use super::flow::{Cut, Flow, Tail};
use super::{Book, Out};
use crate::protocol::agentx::wire::{
    TaskNotification, TaskProgress, TaskStarted, TaskStatus, TaskUsage,
};
use crate::protocol::heard::narrow;
use crate::vocab::*;

/// Tasks that may be open. An agent that ends none is found out here.
const MOST_OPEN: usize = 1_024;

/// The open tasks.
#[derive(Debug, Default)]
pub(super) struct Runs {
    open: Vec<Nested>,
    jobs: Vec<JobRecord>,
}

#[derive(Debug)]
struct Nested {
    /// The task's id; empty: it was only seen by what it says.
    wire: String,
    /// The wire's id of the call that asked for it.
    call: String,
    run: RunId,
    flow: Flow,
}

/// What a stopped task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Run(RunId),
    Job(JobId),
}

impl Runs {
    /// The task of a run.
    pub(super) fn task_of(&self, run: RunId) -> Option<&str> {
        let nested = self.open.iter().find(|nested| nested.run == run);
        nested
            .map(|nested| &*nested.wire)
            .filter(|wire| !wire.is_empty())
    }

    /// The task of a job.
    pub(super) fn job_of(&self, job: JobId) -> Option<&str> {
        let record = self.jobs.iter().find(|record| record.job == job);
        record.map(|record| &*record.id)
    }

    /// The records of all jobs.
    pub(super) fn jobs(&self) -> Vec<JobRecord> {
        self.jobs.clone()
    }

    /// Whether a job is open: its end will begin a turn.
    pub(super) fn any_job(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// The tasks that are open.
    pub(super) fn tasks(&self) -> Vec<(String, Task)> {
        let runs = self.open.iter().filter(|nested| !nested.wire.is_empty());
        let runs = runs.map(|nested| (nested.wire.clone(), Task::Run(nested.run)));
        let jobs = self.jobs.iter();
        let jobs = jobs.map(|record| (String::from(&*record.id), Task::Job(record.job)));
        runs.chain(jobs).collect()
    }

    fn is_full(&self, out: &mut Out) -> bool {
        let full = self.open.len() + self.jobs.len() >= MOST_OPEN;
        if full {
            out.finding("too many tasks are open; this one isn't followed");
        }
        full
    }

    /// `task_started`
    pub(super) fn started(
        &mut self,
        told: &TaskStarted<'_>,
        most: usize,
        book: &Book,
        out: &mut Out,
    ) {
        let id = &*told.task_id;
        let known = self.open.iter().any(|nested| nested.wire == id)
            || self.jobs.iter().any(|record| *record.id == *id);
        if known {
            return out.finding(format!("task {:?} began twice", cut_id(id)));
        }
        let wire_call = told.tool_use_id.as_deref().unwrap_or_default();
        if let Some(nested) = self
            .open
            .iter_mut()
            .find(|nested| nested.wire.is_empty() && nested.call == wire_call)
        {
            nested.wire = id.into();
            return;
        }
        if self.is_full(out) {
            return;
        }
        let call = book.calls.known(wire_call);
        let kind = told.task_type.as_deref();
        if kind.is_some_and(|kind| kind.contains("bash") || kind.contains("shell")) {
            return self.job_started(told, call, out);
        }
        let kind = match kind {
            Some(kind) if !kind.contains("agent") => RunKind::Task(kind.into()),
            Some(_) | None => RunKind::Subagent("".into()),
        };
        let label = Text::from(&*told.description);
        self.begin(id, wire_call, kind, label, call, most, Seen::Real, out);
    }

    fn job_started(&mut self, told: &TaskStarted<'_>, call: Option<CallId>, out: &mut Out) {
        let description = Text::from(&*told.description);
        let record = JobRecord {
            job: out.ids.job(),
            id: (&*told.task_id).into(),
            generation: "".into(),
            revision: 1,
            kind: JobKind::Shell,
            call,
            command: description.clone(),
            description: Some(description),
            cwd: None,
            state: JobState::Running,
            finite: true,
            times_ms: [Some(out.now().unix_ms), None, None, None],
            output: None,
            faults: [None, None, None],
        };
        self.jobs.push(record.clone());
        out.say(What::Job(JobStep::Started, Box::new(record)));
    }

    #[allow(clippy::too_many_arguments, reason = "all of a run's beginning")]
    fn begin(
        &mut self,
        wire: &str,
        wire_call: &str,
        kind: RunKind,
        label: Text,
        call: Option<CallId>,
        most: usize,
        seen: Seen,
        out: &mut Out,
    ) {
        let run = out.ids.run();
        out.event(
            RunId::MAIN,
            seen,
            What::RunStarted {
                run,
                kind,
                label,
                call,
            },
        );
        self.open.push(Nested {
            wire: wire.into(),
            call: wire_call.into(),
            run,
            flow: Flow::new(run, most),
        });
    }

    /// The run that records with this parent belong to: one that nobody told of is inferred.
    pub(super) fn of_parent(
        &mut self,
        parent: &str,
        most: usize,
        book: &Book,
        out: &mut Out,
    ) -> Option<&mut Flow> {
        if !self.open.iter().any(|nested| nested.call == parent) {
            if self.is_full(out) {
                return None;
            }
            let (call, kind) = (book.calls.known(parent), RunKind::Subagent("".into()));
            self.begin("", parent, kind, "".into(), call, most, Seen::Inferred, out);
        }
        let nested = self.open.iter_mut().find(|nested| nested.call == parent);
        nested.map(|nested| &mut nested.flow)
    }

    /// The part of a turn of a run that is open.
    pub(super) fn flow(&mut self, run: RunId) -> Option<&mut Flow> {
        let nested = self.open.iter_mut().find(|nested| nested.run == run);
        nested.map(|nested| &mut nested.flow)
    }

    /// The result of a call came: a run that nobody told of is over with it.
    pub(super) fn call_over(&mut self, call: &str, failed: bool, book: &mut Book, out: &mut Out) {
        let of_call = |nested: &Nested| nested.wire.is_empty() && nested.call == call;
        if let Some(at) = self.open.iter().position(of_call) {
            let status = if failed {
                RunStatus::Failed
            } else {
                RunStatus::Completed
            };
            let nested = self.open.remove(at);
            nested.end(
                status,
                &Cut::Over,
                None,
                "".into(),
                Seen::Inferred,
                book,
                out,
            );
        }
    }

    /// `task_progress`. `false`: it is of no known task.
    pub(super) fn progress(&mut self, told: &TaskProgress<'_>, out: &mut Out) -> bool {
        let id = &*told.task_id;
        let Some(nested) = self.open.iter().find(|nested| nested.wire == id) else {
            return false;
        };
        out.say(What::RunProgress {
            run: nested.run,
            steps: nested.flow.steps(),
            last_tool: told.last_tool_name.as_deref().map(Text::from),
            usage: None,
            text: told.summary.as_deref().map(Text::from),
        });
        true
    }

    /// `task_notification`
    pub(super) fn ended(&mut self, told: &TaskNotification<'_>, book: &mut Book, out: &mut Out) {
        let id = &*told.task_id;
        if let Some(at) = self.jobs.iter().position(|record| *record.id == *id) {
            let mut record = self.jobs.remove(at);
            record.revision += 1;
            record.state = match told.status {
                TaskStatus::Completed => JobState::Exited(0),
                TaskStatus::Failed => JobState::Exited(1),
                TaskStatus::Stopped | TaskStatus::Other(_) => JobState::Stopped("".into()),
            };
            record.output = (!told.output_file.is_empty()).then(|| JobOutput {
                name: Some((&*told.output_file).into()),
                persistent: true,
                ..JobOutput::default()
            });
            return out.say(What::Job(JobStep::Ended, Box::new(record)));
        }
        let Some(at) = self.open.iter().position(|nested| nested.wire == id) else {
            return out.finding(format!("task {:?} ended that isn't open", cut_id(id)));
        };
        let nested = self.open.remove(at);
        let (status, cut) = match told.status {
            TaskStatus::Completed => (RunStatus::Completed, Cut::Over),
            TaskStatus::Failed => (RunStatus::Failed, Cut::Cancelled),
            TaskStatus::Stopped => (RunStatus::Cancelled, Cut::Cancelled),
            TaskStatus::Other(_) => (RunStatus::Incomplete, Cut::Over),
        };
        let steps = told.usage.as_ref().map(steps);
        let detail = Text::from(&*told.summary);
        nested.end(status, &cut, steps, detail, Seen::Real, book, out);
    }

    /// Everything ends: the agent is gone.
    pub(super) fn end_all(&mut self, cut: &Cut, book: &mut Book, out: &mut Out) {
        for nested in core::mem::take(&mut self.open) {
            let status = match cut {
                Cut::Cancelled => RunStatus::Cancelled,
                Cut::Over | Cut::Failed(_) | Cut::Gone(_) => RunStatus::Incomplete,
            };
            nested.end(status, cut, None, "".into(), Seen::Inferred, book, out);
        }
        for mut record in core::mem::take(&mut self.jobs) {
            record.revision += 1;
            record.state = JobState::Interrupted;
            out.infer(What::Job(JobStep::Ended, Box::new(record)));
        }
    }

    /// Runs that nobody told of are over with the turn.
    pub(super) fn turn_over(&mut self, cut: &Cut, book: &mut Book, out: &mut Out) {
        while let Some(at) = self.open.iter().position(|nested| nested.wire.is_empty()) {
            let nested = self.open.remove(at);
            let status = match cut {
                Cut::Cancelled => RunStatus::Cancelled,
                Cut::Over | Cut::Failed(_) | Cut::Gone(_) => RunStatus::Incomplete,
            };
            nested.end(status, cut, None, "".into(), Seen::Inferred, book, out);
        }
    }
}

/// Calls of tools stand for steps.
fn steps(usage: &TaskUsage<'_>) -> u32 {
    narrow(usage.tool_uses.u64().unwrap_or(0))
}

impl Nested {
    #[allow(clippy::too_many_arguments, reason = "all of a run's end")]
    fn end(
        mut self,
        status: RunStatus,
        cut: &Cut,
        steps: Option<u32>,
        detail: Text,
        seen: Seen,
        book: &mut Book,
        out: &mut Out,
    ) {
        self.flow.end_step(cut, Tail::NONE, book, out);
        let (calls, asks) = book.parts();
        asks.run_over(self.run, cut, calls, out);
        let usage = (!self.flow.said.is_empty()).then_some(self.flow.said);
        let detail = if detail.is_empty() {
            self.flow.answer.take().unwrap_or(detail)
        } else {
            detail
        };
        out.event(
            RunId::MAIN,
            seen,
            What::RunEnded {
                run: self.run,
                status,
                steps: steps.unwrap_or(0).max(self.flow.steps()),
                usage,
                detail,
            },
        );
    }
}
