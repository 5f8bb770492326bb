//! Background jobs: calls that go on by themselves. A job outlives its turn and ends once (S-57).
//!
//! How one ends is told to the model, unless somebody wanted it to: in a turn as a steer, while idle as the policy says.
//! What was asked to stop by a command ends when the driver says so; a cancel, and the session's own end, wait for
//! nothing, and the driver's word is absorbed.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec,
    vec::Vec,
};

use super::{
    Session, args,
    config::{HoldTurn, JobWhenIdle},
    phase::{Phase, Turn},
    queue::prompts::{Kind, Waiting},
    runs::LAST,
    tools::{Batch, Ended},
};
use crate::vocab::{
    Answer, AskClose, Block, CallId, CommandId, Drain, Effect, Hit, JobCommand, JobId, JobKind,
    JobRecord, JobStart, JobState, JobStep, JobStop, JobUpdate, Lane, Origin, PromptId, RawJson,
    Refusal, Route, RunId, RunStatus, SideEffect, Text, ToolOutcome, ToolSpec, What,
};

/// Who stopped a job, in its record.
pub(super) const BY_USER: &str = "user";
/// The session's end did.
const BY_END: &str = "session_ended";

/// The jobs of a session.
#[derive(Default)]
pub(super) struct Jobs {
    live: BTreeMap<JobId, Job>,
    /// Records of those that are over, the oldest first, those of earlier processes before all.
    over: VecDeque<JobRecord>,
    /// Those that have begun since the turn last looked.
    begun: Vec<JobId>,
}

/// A job that runs.
struct Job {
    record: JobRecord,
    /// Commands that want it stopped, and are replied to at its end.
    waits: Vec<CommandId>,
    /// Calls that do, and are over at its end.
    calls: Vec<CallId>,
}

impl Job {
    fn is_stopping(&self) -> bool {
        self.record.state == JobState::Stopping
    }

    /// The run that it is.
    fn run(&self) -> Option<RunId> {
        match self.record.kind {
            JobKind::Run(run) => Some(run),
            JobKind::Shell | JobKind::Other(_) => None,
        }
    }

    /// Whether it ends by itself, and a turn may wait for that.
    fn holds(&self) -> bool {
        let kind = match self.record.kind {
            JobKind::Shell | JobKind::Run(_) => true,
            JobKind::Other(_) => false,
        };
        kind && self.record.finite
    }

    /// The next state of its record.
    fn changed(&mut self) -> &mut JobRecord {
        self.record.revision = self.record.revision.saturating_add(1);
        &mut self.record
    }
}

impl Jobs {
    /// What an earlier process left: whatever wasn't over was interrupted with it.
    pub fn after(records: Vec<JobRecord>, most: usize) -> Self {
        let mut jobs = Jobs::default();
        for mut record in records {
            if !record.state.is_over() {
                record.state = JobState::Interrupted;
                record.revision = record.revision.saturating_add(1);
            }
            jobs.forget_old(most);
            jobs.over.push_back(record);
        }
        jobs
    }

    /// The numbers of those that are over: calls of ours have had them, or of nested runs.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.over.iter().map(|record| record.job.0)
    }

    fn forget_old(&mut self, most: usize) {
        while self.over.len() >= most.max(1) {
            self.over.pop_front();
        }
    }

    fn waiting(&self) -> usize {
        self.live.values().map(|job| job.waits.len()).sum()
    }

    /// The job that a host names.
    fn named(&self, name: &str, generation: Option<&str>, own: &str) -> Named {
        let fits = |record: &JobRecord| {
            *record.id == *name && generation.is_none_or(|wanted| *record.generation == *wanted)
        };
        let mut live = self.live.iter().rev();
        if let Some((job, _)) = live.find(|(_, job)| fits(&job.record)) {
            return Named::Live(*job);
        }
        let ours = self.over.iter().rev().find(|record| fits(record));
        match (ours, generation) {
            (Some(record), _) if *record.generation == *own => Named::Over,
            (Some(_), _) => Named::Elsewhere,
            (None, Some(wanted)) if wanted != own => Named::Elsewhere,
            (None, _) => Named::Nothing,
        }
    }
}

/// What a name means.
enum Named {
    Live(JobId),
    Over,
    /// It is, or was, another process's.
    Elsewhere,
    Nothing,
}

/// The tool by which a model ends a background job of its session.
pub fn job_stop_tool() -> ToolSpec {
    ToolSpec {
        name: "job_stop".into(),
        label: None,
        description:
            "Ends a background job, with all that it has started, and waits until it is over."
                .into(),
        schema: RawJson(
            "{\"type\":\"object\",\"properties\":{\"job\":{\"type\":\"string\",\
             \"description\":\"its name, as it was told when it began\"}},\"required\":[\"job\"]}"
                .into(),
        ),
        side_effect: SideEffect::None,
        hidden: false,
        uri_arg: None,
        route: Route::JobStop,
    }
}

impl Session {
    /// `Job`.
    pub(super) fn job_command(&mut self, command: CommandId, what: JobCommand) {
        match what {
            JobCommand::Snapshot => {
                let live = self.jobs.live.values().map(|job| &job.record);
                let all = self.jobs.over.iter().chain(live);
                let all = all.chain(self.runs.jobs()).cloned().collect();
                self.answer(command, Answer::Jobs(all));
            }
            JobCommand::Stop { job, generation } => {
                let own = self.info.generation.clone();
                let ours = matches!(
                    self.jobs.named(&job, generation.as_deref(), &own),
                    Named::Live(_) | Named::Over
                );
                if !ours && self.stop_job_of_run(command, &job, generation.as_ref()) {
                    return;
                }
                let stop = match self.jobs.named(&job, generation.as_deref(), &own) {
                    Named::Live(job) => return self.stop_job(command, job),
                    Named::Over => JobStop::AlreadyTerminal,
                    Named::Elsewhere => JobStop::WrongRuntime,
                    Named::Nothing => JobStop::NotFound,
                };
                self.answer(command, Answer::JobStop(stop));
            }
        }
    }

    /// A command wants a job stopped; it is replied to when the job is over.
    fn stop_job(&mut self, command: CommandId, id: JobId) {
        if self.jobs.waiting() >= self.config.limits.owed_replies {
            return self.refuse(command, Refusal::Full);
        }
        let Some(job) = self.jobs.live.get_mut(&id) else {
            return;
        };
        job.waits.push(command);
        self.ask_job_to_stop(id);
    }

    /// A model wants a job stopped: its call is over when the job is.
    pub(super) fn stop_job_for(&mut self, batch: &mut Batch, at: usize, input: &RawJson) {
        let name = args::member(input, "job").unwrap_or_default();
        let why = match self.jobs.named(&name, None, &self.info.generation) {
            Named::Live(id) => {
                if let (Some(job), Some(call)) = (self.jobs.live.get_mut(&id), batch.call_at(at)) {
                    job.calls.push(call);
                }
                return self.ask_job_to_stop(id);
            }
            Named::Over => "it is over already",
            Named::Elsewhere => "it was another process's, and ended with it",
            Named::Nothing => "there is no job of this name",
        };
        self.call_over(batch, at, ToolOutcome::Failed, why);
    }

    fn ask_job_to_stop(&mut self, id: JobId) {
        let Some(job) = self.jobs.live.get_mut(&id) else {
            return;
        };
        if !job.is_stopping() {
            job.changed().state = JobState::Stopping;
            let record = job.record.clone();
            let kind = record.kind.clone();
            self.say_job(JobStep::Updated, record);
            match kind {
                JobKind::Run(run) if self.runs.has(run) => self.ask_run_to_stop(run),
                JobKind::Run(_) | JobKind::Shell | JobKind::Other(_) => {
                    self.out.effect(Effect::StopJob(id));
                }
            }
        }
    }

    /// `Cancel` of one job.
    pub(super) fn cancel_job(&mut self, command: CommandId, job: JobId) {
        if self.jobs.live.contains_key(&job) {
            self.close_job_asks(job);
            self.hit(command, Hit::Job);
            self.end_job(job, BY_USER);
        } else if !self.cancel_job_of_run(command, job) {
            self.hit(command, Hit::Nothing);
        }
    }

    /// A running call goes on as a job.
    pub(super) fn detached(&mut self, call: CallId, start: JobStart) {
        if !self.has_job_room() {
            self.turn_job_away(call);
            let text = "too many jobs run in the background; this one was stopped";
            let content = vec![Block::Text(text.into())];
            return self.tool_done(call, ToolOutcome::Failed, content, None);
        }
        let id = JobId(call.0);
        self.effects.jobs.issue(id.0);
        let mut times_ms = start.times_ms;
        // Started, put into the background.
        for time in times_ms.iter_mut().take(2) {
            time.get_or_insert(self.now.unix_ms);
        }
        let record = JobRecord {
            job: id,
            id: start.id,
            generation: start.generation,
            revision: 1,
            kind: start.kind,
            call: Some(call),
            command: start.command,
            description: start.description,
            cwd: start.cwd,
            state: JobState::Running,
            finite: start.finite,
            times_ms,
            output: None,
            faults: [None, None, None],
        };
        let text = format!("it goes on in the background, as job {}", record.id);
        self.start_job(record);
        let mut content = Vec::new();
        self.with_tools(|_, _, batch| content = batch.take_so_far(call));
        content.push(Block::Text(text.into()));
        self.tool_done(call, ToolOutcome::Detached(id), content, None);
    }

    /// Whether one more job may run.
    pub(super) fn has_job_room(&self) -> bool {
        self.jobs.live.len() < self.config.limits.jobs
    }

    /// A job of the turn begins.
    pub(super) fn start_job(&mut self, record: JobRecord) {
        self.active = true;
        let (waits, calls) = (Vec::new(), Vec::new());
        self.jobs.begun.push(record.job);
        self.jobs.live.insert(
            record.job,
            Job {
                record: record.clone(),
                waits,
                calls,
            },
        );
        self.say_job(JobStep::Started, record);
    }

    /// The turn whose calls are under way takes note of the jobs that they became.
    pub(super) fn note_jobs(&mut self, turn: &mut Turn) {
        turn.jobs.append(&mut self.jobs.begun);
    }

    /// Nobody waits for a job: it is stopped before anything was said of it.
    pub(super) fn turn_job_away(&mut self, call: CallId) {
        let job = JobId(call.0);
        self.effects.jobs.issue(job.0);
        self.effects.jobs.stop(job.0);
        self.out.effect(Effect::StopJob(job));
    }

    /// News of a live job.
    pub(super) fn job_update(&mut self, id: JobId, update: JobUpdate) {
        let now_ms = self.now.unix_ms;
        let Some(job) = self.jobs.live.get_mut(&id) else {
            return;
        };
        match update {
            JobUpdate::Output(output) => {
                let before = job.record.output.as_ref().map_or(0, |before| before.bytes);
                let grew = output.bytes > before;
                let record = job.changed();
                let [.., last] = &mut record.times_ms;
                if grew {
                    *last = Some(now_ms);
                }
                record.output = Some(output);
                let record = job.record.clone();
                self.say_job(JobStep::Updated, record);
            }
            JobUpdate::Unkept(why) => {
                let [.., kept] = &job.record.faults;
                // Told once: its telling is a change, which isn't kept either.
                if kept.is_none() {
                    let [.., kept] = &mut job.changed().faults;
                    *kept = Some(why);
                    let record = job.record.clone();
                    self.say_job(JobStep::Updated, record);
                }
            }
            JobUpdate::Ended(state) => self.job_ends(id, state, None),
        }
    }

    /// A job has ended by itself, or because it was asked to; what the model is told of it, if that isn't its record.
    pub(super) fn job_ends(&mut self, id: JobId, state: JobState, told: Option<&str>) {
        let wanted = self.jobs.live.get(&id).is_some_and(Job::is_stopping);
        let state = match state {
            // Who is told to stop can't say for whom.
            JobState::Stopped(_) if wanted => JobState::Stopped(BY_USER.into()),
            state @ (JobState::Exited(_) | JobState::Stopped(_)) => state,
            JobState::Running | JobState::Stopping | JobState::Interrupted => JobState::Interrupted,
        };
        let Some(record) = self.job_over(id, state) else {
            return;
        };
        if !wanted {
            let text = told.map_or_else(|| ending(&record), String::from);
            self.tell_of_job(record.job, &text);
        }
    }

    /// Ends a job at once; what the driver says later is absorbed.
    pub(super) fn end_job(&mut self, id: JobId, by: &str) {
        let Some(job) = self.jobs.live.get(&id) else {
            return;
        };
        match job.record.kind {
            JobKind::Run(run) if self.runs.has(run) => {
                self.stop_run(run, RunStatus::Cancelled);
                self.end_cut_runs();
            }
            JobKind::Run(_) | JobKind::Shell | JobKind::Other(_) => {
                if !job.is_stopping() {
                    self.out.effect(Effect::StopJob(id));
                }
                self.effects.jobs.stop(id.0);
            }
        }
        self.job_over(id, JobState::Stopped(by.into()));
    }

    /// Ends all jobs at once, for the host.
    pub(super) fn cancel_jobs(&mut self) {
        self.end_all(BY_USER);
    }

    /// Ends all jobs at once: the session is about to end.
    pub(super) fn end_jobs(&mut self) {
        self.end_all(BY_END);
    }

    fn end_all(&mut self, by: &str) {
        while let Some((job, _)) = self.jobs.live.first_key_value() {
            let job = *job;
            self.end_job(job, by);
        }
    }

    /// A turn that would wait for its jobs is cancelled: they end with it, before it.
    pub(super) fn end_jobs_of(&mut self, turn: &mut Turn) {
        self.note_jobs(turn);
        if self.config.policy.hold_turn == HoldTurn::No {
            return;
        }
        for job in &turn.jobs {
            if self.jobs.live.get(job).is_some_and(Job::holds) {
                self.end_job(*job, BY_USER);
            }
        }
    }

    /// The runs that go with a turn: those of its calls, and those that it would wait for.
    pub(super) fn runs_of(&self, turn: Option<&Turn>) -> Vec<RunId> {
        let mut runs = self.runs.attached();
        if let Some(turn) = turn.filter(|_| self.config.policy.hold_turn != HoldTurn::No) {
            let jobs = turn.jobs.iter().chain(&self.jobs.begun);
            let held = jobs.filter_map(|job| self.jobs.live.get(job));
            runs.extend(held.filter(|job| job.holds()).filter_map(Job::run));
        }
        runs
    }

    /// A job is to end: what a run that it is asks is closed first.
    fn close_job_asks(&mut self, job: JobId) {
        if let Some(run) = self.jobs.live.get(&job).and_then(Job::run) {
            self.close_run_asks(&[run], LAST, &AskClose::Cancelled);
        }
    }

    /// The last record of a job, and the replies that wait for it.
    fn job_over(&mut self, id: JobId, state: JobState) -> Option<JobRecord> {
        let mut job = self.jobs.live.remove(&id)?;
        self.active = true;
        let now_ms = self.now.unix_ms;
        let record = job.changed();
        record.state = state;
        let [_, _, ended, _] = &mut record.times_ms;
        ended.get_or_insert(now_ms);
        let Job {
            record,
            waits,
            calls,
        } = job;
        self.jobs.forget_old(self.config.limits.job_records);
        self.jobs.over.push_back(record.clone());
        self.say_job(JobStep::Ended, record.clone());
        for command in waits {
            self.answer(command, Answer::JobStop(JobStop::Stopped));
        }
        for call in calls {
            self.stopped_for(call, &record);
        }
        Some(record)
    }

    /// The job is over that a call wanted stopped; unless the call was cut short, so is that.
    fn stopped_for(&mut self, call: CallId, record: &JobRecord) {
        let ended = Ended {
            outcome: ToolOutcome::Ok,
            content: vec![Block::Text(ending(record).as_str().into())],
            show: None,
        };
        self.with_tools(|session, _, batch| {
            if batch.is_running(call) {
                session.tool_over(batch, call, ended);
            }
        });
    }

    fn say_job(&mut self, step: JobStep, record: JobRecord) {
        self.say(What::Job(step, Box::new(record)));
    }

    /// What the model is told of a job's end: it waits among the steers, for the next boundary or until the session is
    /// idle.
    fn tell_of_job(&mut self, job: JobId, text: &str) {
        let mut prompt = Waiting::own(
            PromptId(self.ids.own_prompt()),
            Kind::Job,
            Origin::Job(job),
            text,
            self.ids.arrival(),
        );
        // While idle it may begin a turn at once, and is heard of only then.
        if !matches!(self.phase, Phase::Idle) {
            prompt.announced = true;
            self.say(What::Queued {
                prompt: prompt.id,
                lane: Lane::Steer,
            });
        }
        self.prompts.push(Lane::Steer, prompt);
    }

    /// Prompts of jobs that couldn't begin a turn at once wait for all to see.
    pub(super) fn announce_jobs(&mut self) {
        for prompt in self.prompts.announce() {
            self.say(What::Queued {
                prompt,
                lane: Lane::Steer,
            });
        }
    }

    /// Whether the end of a job begins a turn, when the session is idle.
    pub(super) fn jobs_begin_turns(&self) -> bool {
        self.config.policy.job_when_idle == JobWhenIdle::StartTurn && self.closing.is_open()
    }

    /// Whether a job can wake the session.
    pub(super) fn job_can_wake(&self) -> bool {
        self.jobs_begin_turns() && self.jobs.live.values().any(|job| job.record.finite)
    }

    /// Whether a job goes on whose end will begin a turn.
    pub(super) fn works_in_background(&self) -> bool {
        let mut live = self.jobs.live.values();
        self.jobs_begin_turns() && live.any(|job| job.record.finite && !job.is_stopping())
    }

    /// Whether a turn waits for jobs of its own.
    pub(super) fn turn_waits(&self, turn: &Turn) -> bool {
        let holds = |job: &JobId| self.jobs.live.get(job).is_some_and(Job::holds);
        self.config.policy.hold_turn != HoldTurn::No
            && !turn.held_out
            && turn.jobs.iter().any(holds)
    }

    /// The turn waits for its jobs: no step is open, and what comes is taken at once.
    pub(super) fn hold(&mut self, mut turn: Box<Turn>) {
        self.end_step(&mut turn);
        let limit_us = match self.config.policy.hold_turn {
            HoldTurn::No => None,
            HoldTurn::Finite { limit_us } => limit_us,
        };
        let until_us = limit_us.map(|wait| self.now.mono_us.saturating_add(wait));
        self.hold_on(turn, until_us);
    }

    /// A turn that waits goes on, if there is something to go on with, or nothing to wait for (S-54).
    pub(super) fn hold_on(&mut self, mut turn: Box<Turn>, until_us: Option<u64>) {
        if self.prompts.steer_waits() {
            return self.boundary(turn);
        }
        if self.take_follow_ups(&mut turn) {
            return self.boundary(turn);
        }
        if self.turn_waits(&turn) {
            self.phase = Phase::Holding(turn, until_us);
        } else {
            self.check_turn(turn);
        }
    }

    /// The turn has waited long enough.
    pub(super) fn held_out(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Holding(mut turn, _) => {
                turn.held_out = true;
                self.check_turn(turn);
            }
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// Follow-ups join a turn that would end or waits. `false`: none does.
    pub(super) fn take_follow_ups(&mut self, turn: &mut Turn) -> bool {
        if !self.prompts.has_follow_up() {
            return false;
        }
        while let Some(prompt) = self.prompts.pop_follow_up() {
            turn.to_apply.push_back(prompt);
            match self.info.settings.follow_up_drain {
                Drain::One => break,
                Drain::All => {}
            }
        }
        true
    }
}

/// How a job ended, for the model.
fn ending(record: &JobRecord) -> String {
    let how = match &record.state {
        JobState::Exited(code) => format!("has ended with exit code {code}"),
        JobState::Stopped(by) => format!("was stopped: {by}"),
        JobState::Interrupted | JobState::Running | JobState::Stopping => "was interrupted".into(),
    };
    let mut text = format!("[background job {} {how}]\n$ {}", record.id, record.command);
    if let Some(output) = &record.output {
        let cut = if output.truncated { ", cut" } else { "" };
        text.push_str(&format!("\noutput: {} bytes{cut}", output.bytes));
        if let Some(name) = &output.name {
            text.push_str(&format!(", in {name}"));
        }
    }
    text
}

/// Bytes that a record holds.
pub(super) fn weigh(record: &JobRecord) -> usize {
    let texts: [Option<&Text>; 7] = [
        record.description.as_ref(),
        record.cwd.as_ref(),
        record
            .output
            .as_ref()
            .and_then(|output| output.name.as_ref()),
        record.faults[0].as_ref(),
        record.faults[1].as_ref(),
        record.faults[2].as_ref(),
        Some(&record.command),
    ];
    let texts = texts.into_iter().flatten().map(|text| text.len());
    size_of::<JobRecord>() + record.id.len() + record.generation.len() + texts.sum::<usize>()
}
