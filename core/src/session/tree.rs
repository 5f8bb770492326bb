//! A session and the nested runs below it, as one agent.
//!
//! A [`SessionTree`] holds what a session's [`task_tool`](super::task_tool) begins: each run is a [`Session`] of its own,
//! made by the embedder, with ids in a range of its own. To a driver the tree is an agent like any other: effects say of
//! which run they are, their ids are unequal, and what settles one goes to the session that asked for it.
//!
//! A run gets its task as a prompt, and is done when it has settled: the answer of its last turn is its report. Then it is
//! closed, as it is when it is stopped. Of a run its report outlives it, as the result of its call; what it says is written
//! down only where [`NewRun::kept`] says so. Permissions follow the session's: a change of its approval mode counts for every run.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};

use super::{
    Session, SessionConfig, args,
    config::{HoldTurn, JobWhenIdle, Snapshots},
    ids::RANGE_BITS,
    phase::Phase,
    queue::out::is_about_runs,
    timers::Timer,
};
use crate::vocab::{
    Agent, Block, Call, CancelWhat, CancelWhy, Command, CommandId, Deliver, DeltaRef, Due, Effect,
    EffectBody, End, Event, HookPoint, Input, Misuse, Now, Output, Prompt, PromptId, RawJson,
    Refusal, Route, RunId, RunKind, RunStatus, Seen, SessionInfo, Setting, Text, ToolSpec,
    TurnAnswer, What, WriteBody, WriteId,
};

/// Commands that the tree itself gives to runs are numbered from here.
const OWN_COMMANDS: u64 = 1 << 63;

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its configuration; where it lies in the tree is set by the tree.
    pub config: SessionConfig,
    /// Its facts.
    pub info: Box<SessionInfo>,
    /// Its task.
    pub prompt: Vec<Block>,
    /// What it says is to be written down: its [`Effect::Store`]s are the driver's, and say of which run they are. Else
    /// they succeed at once, but for what a person allowed, which holds whoever asked.
    pub kept: bool,
}

/// What is known of a run that is to begin.
pub struct RunRequest<'a> {
    /// Its number.
    pub run: RunId,
    /// How deep it will lie: 1 for a run of the outermost session.
    pub depth: u32,
    /// What the called tool says that it is.
    pub kind: &'a RunKind,
    /// The arguments of the call.
    pub input: &'a RawJson,
    parent: &'a Session,
}

impl RunRequest<'_> {
    /// The configuration of the session whose call it is.
    pub fn config(&self) -> &SessionConfig {
        &self.parent.config
    }

    /// The facts of that session as they are now, its settings and its model among them; without the history.
    pub fn info(&self) -> &SessionInfo {
        &self.parent.info
    }

    /// A string among the arguments.
    pub fn argument(&self, name: &str) -> Option<Text> {
        args::member(self.input, name)
    }

    /// A run that is as its parent is: the same model, rules and settings as now, the tools of the driver, and nothing of
    /// the conversation. Its task is the argument `prompt`. It pursues no goal, ends no turn while its own jobs run, may
    /// use up what its parent has left, and, as deep as runs may be nested, has no tool that would begin one. Of the hooks
    /// it has those about calls: nobody submitted its prompt, and its end is its caller's to judge.
    ///
    /// # Errors
    /// A text for the model, when there is no task.
    pub fn like_parent(&self) -> Result<NewRun, Text> {
        let task = self
            .argument("prompt")
            .filter(|task| !task.trim().is_empty());
        let Some(task) = task else {
            return Err("the argument prompt is missing".into());
        };
        let mut config = self.config().clone();
        let mut info = Box::new(self.info().clone());
        config.settings = (*info.settings).clone();
        config.model = self.parent.model.clone();
        config.model.thinking_budget = self.parent.thinking_budget;
        config.jobs = Vec::new();
        config.goals.standing = None;
        config.unloaded = Vec::new();
        config.policy.hold_turn = HoldTurn::Finite { limit_us: None };
        config.policy.job_when_idle = JobWhenIdle::StartTurn;
        config.policy.snapshots = Snapshots::Never;
        if self.depth >= config.limits.run_depth {
            config.tools.retain(|tool| !begins_runs(tool));
        }
        config.tools.retain(|tool| tool.route != Route::Goal);
        config.hooks.retain(|hook| is_about_calls(hook.spec.point));
        if let Some(left) = self.parent.tokens_left() {
            config.budgets.tokens = Some(left);
        }
        if let Some(max) = config.budgets.pico_usd {
            config.budgets.pico_usd = Some(max.saturating_sub(self.parent.spent_pico_usd));
        }
        info.history = Vec::new();
        info.file = None;
        info.summarised = Vec::new();
        info.continued = false;
        Ok(NewRun {
            config,
            info,
            prompt: vec![Block::Text(task)],
            kept: false,
        })
    }
}

fn begins_runs(tool: &ToolSpec) -> bool {
    matches!(tool.route, Route::Run(_))
}

/// Whether a hook is about what a run does, and not about a session or its host.
fn is_about_calls(point: HookPoint) -> bool {
    match point {
        HookPoint::PreTool
        | HookPoint::PostTool
        | HookPoint::Permission
        | HookPoint::PreCompact => true,
        HookPoint::PromptSubmit
        | HookPoint::TurnEnd
        | HookPoint::RunEnd
        | HookPoint::SessionSwitch
        | HookPoint::SessionStart
        | HookPoint::SessionEnd
        | HookPoint::Notification => false,
    }
}

/// Makes the runs of a tree. `Err` says why there is none, and is the result of the call.
pub trait MakeRun {
    /// Makes a run.
    ///
    /// # Errors
    /// A text for the model.
    fn make_run(&mut self, request: &RunRequest<'_>) -> Result<NewRun, Text>;
}

impl<F: FnMut(&RunRequest<'_>) -> Result<NewRun, Text>> MakeRun for F {
    fn make_run(&mut self, request: &RunRequest<'_>) -> Result<NewRun, Text> {
        self(request)
    }
}

/// Makes runs [like their parents](RunRequest::like_parent).
#[derive(Clone, Copy, Debug, Default)]
pub struct LikeParent;

impl MakeRun for LikeParent {
    fn make_run(&mut self, request: &RunRequest<'_>) -> Result<NewRun, Text> {
        request.like_parent()
    }
}

/// A session and its nested runs. See the [module](self).
pub struct SessionTree<M = LikeParent> {
    main: Session,
    runs: BTreeMap<RunId, Held>,
    make: M,
    /// The last run that began.
    last: u64,
    commands: u64,
    now: Now,
}

/// A run that is held.
struct Held {
    session: Session,
    parent: RunId,
    /// The command that brought its task.
    task: CommandId,
    /// What it says is written down.
    kept: bool,
    /// How its last turn ended.
    end: Option<(RunStatus, Text)>,
    /// Its end was told, and what its effects still bring is absorbed.
    over: bool,
}

/// What a run's output comes to, once it was passed on.
enum Then {
    /// A run below it is to begin, to stop, or to be told something.
    Effect(RunId, Effect),
    /// A write is done.
    Stored(RunId, WriteId),
    /// It is done, and is to be closed.
    Settled(RunId),
    /// It is closed.
    Closed(RunId),
}

impl<M: MakeRun> SessionTree<M> {
    /// A tree of one session.
    pub fn new(main: Session, make: M) -> Self {
        let (now, last) = (main.now, main.ids.last_run());
        SessionTree {
            main,
            runs: BTreeMap::new(),
            make,
            last,
            commands: OWN_COMMANDS,
            now,
        }
    }

    /// The outermost session.
    pub fn main(&self) -> &Session {
        &self.main
    }

    #[cfg(test)]
    pub(super) fn main_mut(&mut self) -> &mut Session {
        &mut self.main
    }

    /// The runs that are alive, the oldest first.
    pub fn alive(&self) -> impl Iterator<Item = RunId> {
        self.runs
            .iter()
            .filter(|(_, held)| !held.over)
            .map(|(run, _)| *run)
    }

    fn session(&self, run: RunId) -> Option<&Session> {
        match run {
            RunId::MAIN => Some(&self.main),
            run => self.runs.get(&run).map(|held| &held.session),
        }
    }

    fn session_mut(&mut self, run: RunId) -> Option<&mut Session> {
        match run {
            RunId::MAIN => Some(&mut self.main),
            run => self.runs.get_mut(&run).map(|held| &mut held.session),
        }
    }

    /// All that are held, the outermost first.
    fn all(&self) -> impl Iterator<Item = RunId> {
        core::iter::once(RunId::MAIN).chain(self.runs.keys().copied())
    }

    /// The runs that are held, the deepest first, so that what they say gets all the way up. Without any it allocates
    /// nothing, since it is asked for at each piece of a reply.
    fn deepest_first(&self) -> Vec<RunId> {
        let mut runs: Vec<RunId> = self.runs.keys().copied().collect();
        let depth = |run: &RunId| self.session(*run).map_or(0, |session| session.config.depth);
        runs.sort_by_key(|run| core::cmp::Reverse(depth(run)));
        runs
    }

    /// Hands an input to one session. Its timers were fired among all others' ([`fire_before`](Self::fire_before)).
    fn give(&mut self, run: RunId, input: Input<'_>) -> Result<(), Misuse> {
        let (now, last) = (self.now, self.last);
        let Some(session) = self.session_mut(run) else {
            return Ok(());
        };
        session.ids.runs_until(last);
        session.now = now;
        let done = session.take(input);
        let last = session.ids.last_run();
        self.last = self.last.max(last);
        done
    }

    /// Gives a command of the tree's own.
    fn command(&mut self, run: RunId, command: Command) -> CommandId {
        self.commands += 1;
        let id = CommandId(self.commands);
        // Only a closed run could refuse it, and that one answers nothing.
        let _ = self.give(run, Input::Call(Call { id, command }));
        id
    }

    /// Tells the session above of a run.
    fn tell(&mut self, run: RunId, event: Event) {
        if let Some(parent) = self.runs.get(&run).map(|held| held.parent) {
            let event = Box::new(event);
            let _ = self.give(parent, Input::Run { run, event });
        }
    }

    /// The earliest timer before a moment, and whose it is.
    fn first_before(&self, before_us: u64) -> Option<(RunId, u64)> {
        let mut first: Option<(RunId, u64)> = None;
        for run in self.all() {
            let timer = self.session(run).and_then(Session::first_timer);
            if let Some(Timer { at_us, .. }) = timer.filter(|timer| timer.at_us < before_us)
                && first.is_none_or(|(_, earliest)| at_us < earliest)
            {
                first = Some((run, at_us));
            }
        }
        first
    }

    /// Fires the timers of all sessions that are before a moment, the earliest first, as if the driver had come in time.
    fn fire_before(&mut self, before_us: u64) {
        while let Some((run, at_us)) = self.first_before(before_us) {
            let (now, last) = (self.now, self.last);
            if let Some(session) = self.session_mut(run) {
                session.ids.runs_until(last);
                session.now = now;
                session.fire_before(at_us.saturating_add(1));
                session.go_on();
                let last = session.ids.last_run();
                self.last = self.last.max(last);
            }
            self.pass_on();
        }
    }

    /// Does what the outputs of the sessions ask for, until all that is left is the driver's.
    fn pass_on(&mut self) {
        loop {
            let mut then = Vec::new();
            for run in self.deepest_first() {
                self.listen(run, &mut then);
            }
            self.listen(RunId::MAIN, &mut then);
            if then.is_empty() {
                break;
            }
            for next in then {
                self.follow(next);
            }
        }
        self.runs
            .retain(|_, held| !held.over || held.session.effects.any());
    }

    /// Takes out what a session says: a run's goes to the session above it, and effects about runs are kept for us.
    fn listen(&mut self, run: RunId, then: &mut Vec<Then>) {
        if run == RunId::MAIN {
            let effects = self.main.out.take_run_effects();
            then.extend(effects.into_iter().map(|effect| Then::Effect(run, effect)));
            return;
        }
        while let Some(held) = self.runs.get_mut(&run) {
            let parent = held.parent;
            let event = match held.session.out.poll() {
                None => return,
                Some(Output::Event(event)) => event.clone(),
                Some(Output::Delta(delta)) => spoken(&delta),
                Some(Output::Effect { run: by, effect }) => {
                    if by != run {
                        self.pass_up(parent, by, effect);
                    } else if let Some(write) = self.writes_for_itself(run, &effect) {
                        then.push(Then::Stored(run, write));
                    } else if is_about_runs(&effect) {
                        then.push(Then::Effect(run, effect));
                    } else {
                        self.pass_up(parent, by, effect);
                    }
                    continue;
                }
            };
            if event.run == run {
                self.note(run, &event, then);
            }
            self.tell(run, event);
        }
    }

    /// An effect goes up to the next session that isn't closed. Nothing is said behind the outermost one's `Closed`: the
    /// driver ends by itself what still runs then.
    fn pass_up(&mut self, mut to: RunId, by: RunId, effect: Effect) {
        while let Some(above) = self.session(to) {
            if !matches!(above.phase, Phase::Closed) {
                break;
            }
            match self.runs.get(&to) {
                Some(held) => to = held.parent,
                None => return,
            }
        }
        if let Some(above) = self.session_mut(to) {
            above.out.pass_effect(by, effect);
        }
    }

    /// What a run would write of itself, where that is kept nowhere. What a person allows holds for the project, whoever
    /// asked.
    fn writes_for_itself(&self, run: RunId, effect: &Effect) -> Option<WriteId> {
        let Effect::Store(write) = effect else {
            return None;
        };
        if self.runs.get(&run).is_some_and(|held| held.kept) {
            return None;
        }
        let body = self
            .session(run)
            .and_then(|session| session.write_body(*write));
        let kept = matches!(
            body,
            Some(WriteBody::Approval(_) | WriteBody::Permissions(_))
        );
        (!kept).then_some(*write)
    }

    /// What a run's own events mean to who holds it.
    fn note(&mut self, run: RunId, event: &Event, then: &mut Vec<Then>) {
        let Some(held) = self.runs.get_mut(&run) else {
            return;
        };
        if let What::TurnEnded { end, answer, .. } = &event.what {
            held.end = Some(outcome(end, answer.as_ref()));
        } else if let What::Replied {
            command,
            reply: Err(refusal),
        } = &event.what
            && *command == held.task
        {
            held.end = Some((RunStatus::Failed, refused(refusal)));
            then.push(Then::Settled(run));
        } else if let What::Settled = event.what {
            then.push(Then::Settled(run));
        } else if let What::Closed { .. } = event.what {
            then.push(Then::Closed(run));
        }
    }

    fn follow(&mut self, next: Then) {
        match next {
            Then::Effect(
                parent,
                Effect::StartRun {
                    run, kind, input, ..
                },
            ) => {
                self.begin(parent, run, &kind, &input);
            }
            Then::Effect(_, Effect::StopRun(run)) => self.stop(run),
            Then::Effect(_, Effect::CallRun(run, call)) => {
                let _ = self.give(run, Input::Call(*call));
            }
            // No other effect is kept for us.
            Then::Effect(..) => {}
            Then::Stored(run, write) => {
                let _ = self.give(run, Input::Store { write, ok: Ok(()) });
            }
            Then::Settled(run) => {
                self.command(run, Command::Close { drain: true });
            }
            Then::Closed(run) => self.over(run),
        }
    }

    /// A run begins, or its call fails.
    fn begin(&mut self, parent: RunId, run: RunId, kind: &RunKind, input: &RawJson) {
        let Some(above) = self.session(parent) else {
            return;
        };
        if !above.effects.runs.is_live(run.0) {
            // It was given up in the very same input.
            let event = ended(self.now, parent, run, RunStatus::Cancelled, "".into());
            let event = Box::new(event);
            let _ = self.give(parent, Input::Run { run, event });
            return;
        }
        let alive = self.alive().count();
        let depth = above.config.depth.saturating_add(1);
        let request = RunRequest {
            run,
            depth,
            kind,
            input,
            parent: match parent {
                RunId::MAIN => &self.main,
                parent => match self.runs.get(&parent) {
                    Some(held) => &held.session,
                    None => return,
                },
            },
        };
        let made = if alive >= self.main.config.limits.runs {
            Err("too many runs are alive".into())
        } else {
            self.make.make_run(&request)
        };
        let NewRun {
            mut config,
            info,
            prompt,
            kept,
        } = match made {
            Ok(made) => made,
            Err(why) => {
                let event = ended(self.now, parent, run, RunStatus::Failed, why);
                let _ = self.give(
                    parent,
                    Input::Run {
                        run,
                        event: Box::new(event),
                    },
                );
                return;
            }
        };
        config.run = run;
        config.depth = depth;
        let session = Session::new(config, info, self.now);
        self.runs.insert(
            run,
            Held {
                session,
                parent,
                task: CommandId(self.commands + 1),
                kept,
                end: None,
                over: false,
            },
        );
        self.command(
            run,
            Command::Prompt(Prompt {
                // Below those that a host steers it with.
                id: PromptId(0),
                tag: None,
                content: prompt,
                deliver: Deliver::IfIdle,
                literal: true,
                details: None,
            }),
        );
    }

    /// A run is given up: it ends at once, and is told of when it is closed.
    fn stop(&mut self, run: RunId) {
        if let Some(held) = self.runs.get_mut(&run) {
            held.end = Some((RunStatus::Cancelled, "cancelled".into()));
            let (what, why) = (CancelWhat::Everything, CancelWhy::Host);
            self.command(run, Command::Cancel { what, why });
            self.command(run, Command::Close { drain: false });
        }
    }

    /// A run is closed: its end settles what began it.
    fn over(&mut self, run: RunId) {
        let Some(held) = self.runs.get_mut(&run).filter(|held| !held.over) else {
            return;
        };
        held.over = true;
        let (status, detail) = held.end.take().unwrap_or((RunStatus::NoReport, "".into()));
        let (parent, now) = (held.parent, self.now);
        self.tell(run, ended(now, parent, run, status, detail));
    }

    /// Whose an input is.
    fn target(&self, input: &Input<'_>) -> Result<RunId, Misuse> {
        let id = match input {
            Input::Model { request, .. } => request.0,
            Input::Tool { call, .. } => call.0,
            Input::Hook { hook, .. } => hook.0,
            Input::Store { write, .. } => write.0,
            Input::Job { job, .. } => job.0,
            // Runs are held here, and the rest is the outermost session's alone.
            Input::Run { .. } => return Err(Misuse::NeverIssued),
            Input::Call(_)
            | Input::Shell { .. }
            | Input::Opened { .. }
            | Input::Reloaded { .. }
            | Input::Restored { .. }
            | Input::Refrozen { .. }
            | Input::DriverTools { .. }
            | Input::Fault { .. }
            | Input::Woken => 0,
        };
        let run = RunId(id >> RANGE_BITS);
        match self.session(run) {
            Some(_) => Ok(run),
            None if run.0 <= self.last => Err(Misuse::AlreadySettled),
            None => Err(Misuse::NeverIssued),
        }
    }

    /// Every run follows the approval mode of the outermost session.
    fn follow_mode(&mut self) {
        let mode = self.main.info.settings.approvals.clone();
        let others = self
            .runs
            .iter()
            .filter(|(_, held)| !held.over && held.session.info.settings.approvals != mode);
        let others: Vec<RunId> = others.map(|(run, _)| *run).collect();
        for run in others {
            self.command(run, Command::Set(Setting::Approvals(mode.clone())));
        }
    }
}

impl<M: MakeRun> Agent for SessionTree<M> {
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse> {
        let run = self.target(&input)?;
        let bulk = input.is_bulk() && self.main.out.bytes() > self.main.config.limits.hard_bytes;
        match self.session(run) {
            Some(_) if now.mono_us < self.now.mono_us => return Err(Misuse::TimeWentBack),
            Some(_) if bulk => return Err(Misuse::OverHardLimit),
            Some(session) => session.effects.look(&input).map(drop)?,
            None => return Err(Misuse::AlreadySettled),
        }
        self.now = now;
        // A late driver changes nothing: what was due comes first, whosever it is (S-02).
        self.fire_before(now.mono_us);
        let mode = self.main.info.settings.approvals.clone();
        if let Input::Woken = input {
            self.fire_before(now.mono_us.saturating_add(1));
        }
        let done = self.give(run, input);
        self.pass_on();
        if self.main.info.settings.approvals != mode {
            self.follow_mode();
            self.pass_on();
        }
        done
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        self.main.poll_output()
    }

    fn poll_timeout(&self) -> Option<Due> {
        let own = self.main.poll_timeout();
        let others = self
            .runs
            .values()
            .filter_map(|held| held.session.poll_timeout());
        own.into_iter().chain(others).min_by_key(|due| due.at_us)
    }

    fn wants_input(&self) -> bool {
        self.main.wants_input()
    }

    fn wants_bulk(&self) -> bool {
        self.main.wants_bulk()
    }

    fn body(&self, run: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        self.session(run)?.body(run, effect)
    }
}

/// A delta as an event, to be handed up.
fn spoken(delta: &DeltaRef<'_>) -> Event {
    Event {
        at: delta.at,
        run: delta.run,
        seen: Seen::Real,
        what: What::Delta {
            message: delta.message,
            block: delta.block,
            kind: delta.kind,
            text: delta.text.into(),
        },
    }
}

fn ended(at: Now, by: RunId, run: RunId, status: RunStatus, detail: Text) -> Event {
    Event {
        at,
        run: by,
        seen: Seen::Real,
        what: What::RunEnded {
            run,
            status,
            steps: 0,
            usage: None,
            detail,
        },
    }
}

fn refused(refusal: &Refusal) -> Text {
    match refusal {
        Refusal::Empty => "the task is empty".into(),
        Refusal::TooLarge => "the task is too long".into(),
        Refusal::Invalid(why) => why.clone(),
        Refusal::Blocked { text, .. } => text.clone(),
        Refusal::Failed(failure) => failure.text.clone(),
        Refusal::Busy
        | Refusal::Cancelled
        | Refusal::Untrusted(_)
        | Refusal::Unknown
        | Refusal::AlreadySettled
        | Refusal::Closing
        | Refusal::Full
        | Refusal::Unsupported(_) => "the task could not begin".into(),
    }
}

/// What a run's last turn comes to, and its report.
fn outcome(end: &End, answer: Option<&TurnAnswer>) -> (RunStatus, Text) {
    let report = match answer {
        Some(TurnAnswer::Text(text)) => text.clone(),
        Some(TurnAnswer::Captured { input, .. }) => input.0.clone(),
        None => "".into(),
    };
    let status = match end {
        End::Finished { .. } if report.trim().is_empty() => RunStatus::NoReport,
        End::Finished { .. } => RunStatus::Completed,
        End::MaxSteps => RunStatus::MaxSteps,
        End::Yielded { .. } => RunStatus::Yielded,
        End::Cancelled(_) => RunStatus::Cancelled,
        End::Failed(failure) => return (RunStatus::Failed, failure.text.clone()),
        End::Truncated(failure) | End::Incomplete(failure) => {
            return (RunStatus::Incomplete, failure.text.clone());
        }
        End::Blocked(why) => return (RunStatus::Failed, why.clone()),
        End::Aborted { reason } => return (RunStatus::Failed, reason.clone()),
        End::BudgetExhausted(_) => {
            return (RunStatus::Incomplete, "its budget is used up".into());
        }
        End::Unverified => {
            return (
                RunStatus::Incomplete,
                "its end was refused too often".into(),
            );
        }
        End::Local | End::Dropped(_) | End::Withdrawn | End::NotSaid => RunStatus::NoReport,
    };
    (status, report)
}
