//! Nested runs, as the agent above them sees them: begun for a call, listened to, asked for, counted in, and ended.
//!
//! A run is an agent of its own, with its own [`RunId`] and its own range of ids; whoever holds it hands its events up
//! ([`Input::Run`](crate::vocab::Input::Run)). What it says of its work is passed on as it is; its turns, its prompts and
//! its facts stay inside. Its questions are ours: the host answers by their ids, and the answer is handed down.
//!
//! A run ends before its call does, unless the call went on as a job, or both are cut short: then calls come first, as
//! everywhere in a cancel. With a run everything ends that it left open: its questions, its jobs, the runs below it.

mod down;
mod up;

use alloc::{
    boxed::Box, collections::BTreeMap, collections::VecDeque, format, string::String, vec, vec::Vec,
};

use super::{
    Session, args,
    commands::OwedFor,
    jobs::BY_USER,
    tools::{Batch, Ended},
};
use crate::vocab::{
    AskClose, AskId, Block, CallId, CommandId, Effect, Event, JobId, JobKind, JobRecord, JobState,
    JobStep, RawJson, Refusal, Route, RunId, RunKind, RunStatus, Seen, SideEffect, Text,
    ToolOutcome, ToolSpec, Usage, What,
};

/// Before it every question was asked.
pub(super) const LAST: AskId = AskId(u64::MAX);

/// Open questions of all kinds at which a nested one is held back.
const MOST_ASKS: usize = 64;

/// How long the label of a run may get, in characters.
const LABEL_CHARS: usize = 80;

/// The nested runs of a session.
#[derive(Default)]
pub(super) struct Runs {
    live: BTreeMap<RunId, Run>,
    /// Calls that wait until fewer runs are alive, first come first served.
    waiting: VecDeque<(CallId, RunKind, RawJson)>,
    /// Runs of calls that were cut short: their ends are said behind those of the calls.
    cut: Vec<(RunId, Run, RunStatus)>,
    /// Open questions of runs, those held back too, in order of arrival.
    asks: Vec<Asked>,
}

/// A run that is alive.
struct Run {
    call: CallId,
    kind: RunKind,
    /// It goes on in the background, as the job of this number.
    job: Option<JobId>,
    steps: u32,
    usage: Option<Usage>,
    last_tool: Option<Text>,
    /// It was asked to stop.
    stopping: bool,
    /// Runs below it that are open, the oldest first, and who began each.
    below: Vec<(RunId, RunId)>,
    /// Its jobs that are alive, and of which run each is.
    jobs: Vec<(RunId, JobRecord)>,
}

/// A question of a run.
struct Asked {
    ask: AskId,
    /// Our own run, under which it is.
    run: RunId,
    /// The run that asks.
    by: RunId,
    permission: bool,
    /// The last question of our own that was asked before it.
    behind: u64,
    /// It isn't said yet, because too many are open.
    held: Option<Box<Event>>,
}

impl Runs {
    /// The run that a call became, and that goes with it.
    pub fn of_call(&self, call: CallId) -> Option<RunId> {
        let mut live = self.live.iter();
        live.find(|(_, run)| run.call == call && run.job.is_none())
            .map(|(id, _)| *id)
    }

    /// Whether a run is alive.
    pub fn has(&self, run: RunId) -> bool {
        self.live.contains_key(&run)
    }

    /// How many permissions of runs are open.
    pub fn permissions(&self) -> usize {
        let said = self.asks.iter().filter(|asked| asked.held.is_none());
        said.filter(|asked| asked.permission).count()
    }

    fn said(&self, ask: AskId) -> Option<&Asked> {
        let mut asks = self.asks.iter();
        asks.find(|asked| asked.ask == ask && asked.held.is_none())
    }

    /// Our own run, at or under which another is.
    fn above(&self, run: RunId) -> Option<RunId> {
        let mut live = self.live.iter();
        live.find(|(id, live)| **id == run || live.below.iter().any(|(open, _)| *open == run))
            .map(|(id, _)| *id)
    }

    /// Our own run, of which or under which a job is.
    fn of_job(&self, fits: impl Fn(&JobRecord) -> bool) -> Option<(RunId, &JobRecord)> {
        self.live.iter().find_map(|(id, run)| {
            let mut jobs = run.jobs.iter();
            jobs.find(|(_, record)| fits(record))
                .map(|(_, record)| (*id, record))
        })
    }

    /// The records of the jobs of runs.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        self.live
            .values()
            .flat_map(|run| run.jobs.iter().map(|(_, record)| record))
    }

    /// The runs that go with their calls.
    pub fn attached(&self) -> Vec<RunId> {
        let live = self.live.iter().filter(|(_, run)| run.job.is_none());
        live.map(|(id, _)| *id).collect()
    }
}

/// The tool by which a model hands a task to a nested run: a whole agent of its own, whose report is the call's result.
pub fn task_tool() -> ToolSpec {
    ToolSpec {
        name: "task".into(),
        label: None,
        description: "Hands a task to an agent of its own, that works with the same tools and none of this \
            conversation, and gives back its report. Say all that it has to know. With background it goes on by itself, \
            and you are told when it is done."
            .into(),
        schema: RawJson(
            "{\"type\":\"object\",\"properties\":{\"description\":{\"type\":\"string\",\
             \"description\":\"the task in a few words\"},\"prompt\":{\"type\":\"string\",\
             \"description\":\"the whole task\"},\"background\":{\"type\":\"boolean\"}},\
             \"required\":[\"prompt\"]}"
                .into(),
        ),
        side_effect: SideEffect::None,
        hidden: false,
        uri_arg: None,
        route: Route::Run(RunKind::Subagent("task".into())),
    }
}

impl Session {
    /// A call that was let through hands its work to a run; with too many alive it waits for one to end.
    pub(super) fn run_nested(
        &mut self,
        batch: &mut Batch,
        at: usize,
        kind: &RunKind,
        input: RawJson,
    ) {
        let Some(call) = batch.call_at(at) else {
            return;
        };
        let depth = self.config.limits.run_depth;
        if self.config.depth >= depth {
            let text = format!("runs may be nested {depth} deep, and this one would be deeper");
            return self.call_over(batch, at, ToolOutcome::Failed, &text);
        }
        self.runs.waiting.push_back((call, kind.clone(), input));
        self.begin_runs(batch);
    }

    /// Begins the runs that may begin now.
    pub(super) fn begin_runs(&mut self, batch: &mut Batch) {
        while self.runs.live.len() < self.config.limits.runs.max(1) && self.has_room() {
            let Some((call, kind, input)) = self.runs.waiting.pop_front() else {
                return;
            };
            if let Some(at) = batch.find(call).filter(|_| batch.is_running(call)) {
                self.begin_run(batch, at, call, kind, input);
            }
        }
    }

    fn begin_run(
        &mut self,
        batch: &mut Batch,
        at: usize,
        call: CallId,
        kind: RunKind,
        input: RawJson,
    ) {
        let Some(run) = self.ids.run() else {
            let text = "no more runs can begin in this session";
            return self.call_over(batch, at, ToolOutcome::Failed, text);
        };
        self.runs.live.insert(
            run,
            Run {
                call,
                kind: kind.clone(),
                job: None,
                steps: 0,
                usage: None,
                last_tool: None,
                stopping: false,
                below: Vec::new(),
                jobs: Vec::new(),
            },
        );
        let label = label(&kind, &input);
        self.say(What::RunStarted {
            run,
            kind: kind.clone(),
            label: label.clone(),
            call: Some(call),
        });
        self.effects.runs.issue(run.0);
        let background =
            args::flag(&input, "background") || args::flag(&input, "run_in_background");
        self.out.effect(Effect::StartRun {
            run,
            call,
            kind,
            input,
        });
        if background || batch.is_steered() {
            self.detach_run(batch, call);
        }
    }

    /// The run of a call goes on as a job, unless there are too many.
    pub(super) fn detach_run(&mut self, batch: &mut Batch, call: CallId) {
        let Some(run) = self.runs.of_call(call).filter(|_| self.has_job_room()) else {
            return;
        };
        let said = |name: &str| {
            batch
                .input_of(call)
                .and_then(|input| args::member(input, name))
        };
        let (command, description) = (said("prompt"), said("description"));
        let job = JobId(call.0);
        let Some(live) = self
            .runs
            .live
            .get_mut(&run)
            .filter(|live| live.job.is_none())
        else {
            return;
        };
        live.job = Some(job);
        let name: Text = format!("run-{}", run.0).into();
        let now_ms = Some(self.now.unix_ms);
        self.start_job(JobRecord {
            job,
            id: name.clone(),
            generation: self.info.generation.clone(),
            revision: 1,
            kind: JobKind::Run(run),
            call: Some(call),
            command: command
                .or_else(|| description.clone())
                .unwrap_or_else(|| name.clone()),
            description,
            cwd: None,
            state: JobState::Running,
            finite: true,
            times_ms: [now_ms, now_ms, None, None],
            output: None,
            faults: [None, None, None],
        });
        let mut content = batch.take_so_far(call);
        content.push(Block::Text(
            format!("it goes on in the background, as job {name}").into(),
        ));
        let ended = Ended {
            outcome: ToolOutcome::Detached(job),
            content,
            show: None,
        };
        self.tool_over(batch, call, ended);
    }

    /// A run is given up: whatever it says from now on is absorbed. Its end is owed ([`end_cut_runs`](Self::end_cut_runs)).
    pub(super) fn stop_run(&mut self, run: RunId, status: RunStatus) {
        let Some(live) = self.runs.live.remove(&run) else {
            return;
        };
        self.effects.runs.stop(run.0);
        if !live.stopping {
            self.out.effect(Effect::StopRun(run));
        }
        self.runs.cut.push((run, live, status));
    }

    /// A run is asked to stop; its end is waited for.
    pub(super) fn ask_run_to_stop(&mut self, run: RunId) {
        if let Some(live) = self.runs.live.get_mut(&run)
            && !live.stopping
        {
            live.stopping = true;
            self.out.effect(Effect::StopRun(run));
        }
    }

    /// Closes all questions of all runs.
    pub(super) fn close_all_run_asks(&mut self) {
        let all: Vec<RunId> = self.runs.live.keys().copied().collect();
        self.close_run_asks(&all, LAST, &AskClose::Cancelled);
    }

    /// Whether no reply is owed but those of runs.
    pub(super) fn owes_only_runs(&self) -> bool {
        let mut owed = self.owed.iter();
        owed.all(|owed| matches!(owed.what, OwedFor::Run(_)))
    }

    /// The calls of a turn stop: their runs, too, and those that would have begun.
    pub(super) fn stop_runs(&mut self, status: RunStatus) {
        self.runs.waiting.clear();
        for run in self.runs.attached() {
            self.stop_run(run, status);
        }
    }

    /// A call is cut short: the run that it became, or would have, ends first.
    pub(super) fn stop_run_of(&mut self, call: CallId, how: &AskClose, status: RunStatus) {
        self.runs.waiting.retain(|(waits, _, _)| *waits != call);
        if let Some(run) = self.runs.of_call(call) {
            self.close_run_asks(&[run], LAST, how);
            self.stop_run(run, status);
            self.end_cut_runs();
        }
    }

    /// The ends of the runs that were given up.
    pub(super) fn end_cut_runs(&mut self) {
        for (run, live, status) in core::mem::take(&mut self.runs.cut) {
            let text = match status {
                RunStatus::Cancelled => "cancelled",
                RunStatus::TimedOut => "timed out",
                RunStatus::Failed => "it was ended unexpectedly",
                RunStatus::Completed
                | RunStatus::NoReport
                | RunStatus::MaxSteps
                | RunStatus::Yielded
                | RunStatus::Skipped
                | RunStatus::Incomplete => "ended",
            };
            self.end_run(run, &live, status, (0, None), text.into());
        }
    }

    /// `RunEnded`, behind the ends of what the run left open.
    fn end_run(
        &mut self,
        run: RunId,
        live: &Run,
        status: RunStatus,
        (steps, usage): (u32, Option<Usage>),
        detail: Text,
    ) {
        self.close_run_asks(&[run], LAST, &AskClose::Cancelled);
        for (by, record) in &live.jobs {
            let mut record = record.clone();
            record.revision = record.revision.saturating_add(1);
            record.state = JobState::Stopped(BY_USER.into());
            let [_, _, ended, _] = &mut record.times_ms;
            ended.get_or_insert(self.now.unix_ms);
            self.out.pass(Event {
                at: self.now,
                run: *by,
                seen: Seen::Real,
                what: What::Job(JobStep::Ended, Box::new(record)),
            });
        }
        for (below, by) in live.below.iter().rev() {
            self.out.pass(Event {
                at: self.now,
                run: *by,
                seen: Seen::Real,
                what: What::RunEnded {
                    run: *below,
                    status: RunStatus::Cancelled,
                    steps: 0,
                    usage: None,
                    detail: "cancelled".into(),
                },
            });
        }
        self.say(What::RunEnded {
            run,
            status,
            steps: steps.max(live.steps),
            usage: usage.or(live.usage),
            detail,
        });
        self.refuse_handed(run);
    }

    /// What a run that is over was told and hasn't replied to: it is too late.
    fn refuse_handed(&mut self, run: RunId) {
        let is_its = |what: &OwedFor| matches!(what, OwedFor::Run(to) if *to == run);
        let owed = self.owed.iter().filter(|owed| is_its(&owed.what));
        let late: Vec<CommandId> = owed.map(|owed| owed.command).collect();
        self.owed.retain(|owed| !is_its(&owed.what));
        for command in late {
            self.refuse(command, Refusal::AlreadySettled);
        }
        self.pass_barriers();
    }

    /// A run has ended by itself.
    fn run_over(
        &mut self,
        run: RunId,
        status: RunStatus,
        counted: (u32, Option<Usage>),
        detail: Text,
    ) {
        let Some(live) = self.runs.live.remove(&run) else {
            return;
        };
        let mut content = vec![Block::Text(detail)];
        super::tools::keep_within(&mut content, self.output_limits());
        let report = args::text_of(&content);
        self.end_run(run, &live, status, counted, report.clone());
        self.tell_of_run(run, named(&live.kind), words(status), &report);
        match live.job {
            Some(job) => self.run_job_over(run, job, status, &report),
            None => {
                let (outcome, content) = result(status, &report);
                self.tool_done(live.call, outcome, content, None);
            }
        }
    }

    /// The job that a run went on as is over.
    fn run_job_over(&mut self, run: RunId, job: JobId, status: RunStatus, report: &str) {
        let state = match status {
            RunStatus::Completed | RunStatus::NoReport => JobState::Exited(0),
            RunStatus::Cancelled => JobState::Stopped("cancelled".into()),
            RunStatus::MaxSteps
            | RunStatus::Yielded
            | RunStatus::TimedOut
            | RunStatus::Failed
            | RunStatus::Skipped
            | RunStatus::Incomplete => JobState::Exited(1),
        };
        let text = format!(
            "[background task run-{} has ended: {}]\n{report}",
            run.0,
            words(status)
        );
        self.job_ends(job, state, Some(&text));
    }
}

/// What a run is called, for people.
fn label(kind: &RunKind, input: &RawJson) -> Text {
    let told = args::member(input, "description").or_else(|| args::member(input, "prompt"));
    let told = told.filter(|told| !told.trim().is_empty());
    let line = told.as_ref().map_or(named(kind), |told| told.trim());
    let line = line.lines().next().unwrap_or_default();
    match line.char_indices().nth(LABEL_CHARS) {
        None => line.into(),
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()).into(),
    }
}

/// What a kind of run is called.
fn named(kind: &RunKind) -> &str {
    match kind {
        RunKind::Subagent(name) | RunKind::Task(name) | RunKind::Stage { name, .. } => name,
    }
}

/// How a run ended, for the model.
fn words(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Completed => "done",
        RunStatus::NoReport => "done, without a report",
        RunStatus::MaxSteps => "it may take no more steps",
        RunStatus::Yielded => "its context was full",
        RunStatus::TimedOut => "its time ran out",
        RunStatus::Failed => "it failed",
        RunStatus::Cancelled => "it was cancelled",
        RunStatus::Skipped => "it was not needed",
        RunStatus::Incomplete => "its result is incomplete",
    }
}

/// The result of a run's call.
fn result(status: RunStatus, report: &str) -> (ToolOutcome, Vec<Block>) {
    let told = || {
        let mut text = format!("[{}]", words(status));
        if !report.is_empty() {
            text.push('\n');
            text.push_str(report);
        }
        text
    };
    let (outcome, text): (ToolOutcome, String) = match status {
        RunStatus::Completed => (ToolOutcome::Ok, report.into()),
        RunStatus::NoReport => (ToolOutcome::Ok, told()),
        RunStatus::TimedOut => (ToolOutcome::TimedOut, told()),
        RunStatus::Cancelled => (ToolOutcome::Cancelled, told()),
        RunStatus::MaxSteps
        | RunStatus::Yielded
        | RunStatus::Failed
        | RunStatus::Skipped
        | RunStatus::Incomplete => (ToolOutcome::Failed, told()),
    };
    (outcome, vec![Block::Text(text.as_str().into())])
}
