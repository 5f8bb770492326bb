//! The turn that is open, and how it is opened on the wire: `running`, `system/init`, the replay of its prompt.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::Face;
use super::reply::Pen;
use super::sums::Sums;
use crate::protocol::Outbox;
use crate::protocol::agentx::Agentx;
use crate::protocol::agentx::policy::{InitRecord, RecordForm, ReplayPlace, SessionStates};
use crate::protocol::agentx::wire::{LifecycleState, SessionState};
use crate::vocab::*;

/// A call that was denied, for the result.
#[derive(Clone, Debug)]
pub(super) struct Denied {
    pub(super) call: CallId,
    pub(super) tool: Text,
    pub(super) id: String,
    pub(super) input: Option<ToolInput>,
}

/// What cut a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cut {
    #[default]
    Nothing,
    /// A reply was open.
    Streaming,
    /// Calls were.
    Tools,
}

/// On whose behalf a turn is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    Interrupted,
    /// Another prompt runs instead: nothing is told but the result.
    Preempted,
}

/// A turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    /// It began because of a prompt.
    prompted: bool,
    /// What stands before everything else of it is out.
    begun: bool,
    /// The prompts that it answers, in order, and the host's ids of those that have one.
    pub(super) prompts: Vec<PromptId>,
    pub(super) uuids: Vec<Text>,
    /// Records with role user that it wrote.
    pub(super) user_records: u64,
    pub(super) requests: u64,
    pub(super) api_us: u64,
    pub(super) sums: Sums,
    /// The provider's word of the last reply that was whole.
    pub(super) finish: Option<Text>,
    /// The text of the last reply.
    pub(super) last_text: Option<String>,
    pub(super) cut: Cut,
    pub(super) stopped: Option<Stopped>,
    pub(super) denied: Vec<Denied>,
    /// Work of its calls that goes on beside it, and is waited for.
    pub(super) jobs: BTreeSet<JobId>,
}

impl Turn {
    fn new(id: TurnId, cause: Cause) -> Self {
        Turn {
            id,
            prompted: matches!(cause, Cause::Prompt | Cause::Queue),
            begun: false,
            prompts: Vec::new(),
            uuids: Vec::new(),
            user_records: 0,
            requests: 0,
            api_us: 0,
            sums: Sums::default(),
            finish: None,
            last_text: None,
            cut: Cut::Nothing,
            stopped: None,
            denied: Vec::new(),
            jobs: BTreeSet::new(),
        }
    }

    /// A turn for what needed none.
    pub(super) fn none() -> Self {
        Turn::new(TurnId(0), Cause::NotSaid)
    }
}

/// A turn that is over, and whose result waits.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) turn: Turn,
    pub(super) end: End,
    pub(super) answer: Option<TurnAnswer>,
    pub(super) report: TurnReport,
    /// Prompts of it whose ends haven't come.
    waits: BTreeSet<PromptId>,
    /// Its prompt was never applied, and its end comes next.
    pub(super) unapplied: bool,
}

impl Over {
    /// A turn whose result waits for nothing.
    pub(super) fn at_once(turn: Turn, end: End) -> Over {
        Over {
            turn,
            end,
            answer: None,
            report: TurnReport::default(),
            waits: BTreeSet::new(),
            unapplied: false,
        }
    }
}

impl Face {
    /// Whether `session_state_changed` is written, and if so, whether for the host's machinery alone.
    pub(super) fn tells_states(&self) -> Option<bool> {
        match self.config.policy.session_states {
            SessionStates::Always => Some(false),
            SessionStates::OnRequest => self.config.states.then_some(true),
        }
    }

    /// Says what the session does, if that is new.
    pub(super) fn state(&mut self, state: SessionState<'static>, out: &mut Outbox<Agentx>) {
        if self.told.as_ref() == Some(&state) {
            return;
        }
        self.told = Some(state.clone());
        if let Some(host_only) = self.tells_states() {
            self.printer.state(state, host_only, out);
        }
    }

    pub(super) fn turn_started(&mut self, turn: TurnId, cause: Cause, out: &mut Outbox<Agentx>) {
        self.finish_turn(out);
        self.turn = Some(Turn::new(turn, cause));
        if self.config.policy.replay_place == ReplayPlace::AfterInit {
            self.state(SessionState::Running, out);
        }
    }

    /// Something of the turn will be written: what opens it comes first.
    pub(super) fn begin(&mut self, out: &mut Outbox<Agentx>) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.begun) else {
            return;
        };
        turn.begun = true;
        self.state(SessionState::Running, out);
        if self.config.policy.init_record == InitRecord::EachTurn {
            self.say_init(out);
        }
    }

    /// The turn goes on: a question that was cancelled alone, such as one of a nested run, didn't end it.
    pub(super) fn goes_on(&mut self, out: &mut Outbox<Agentx>) {
        let asks = self.told == Some(SessionState::RequiresAction);
        if asks && !self.asks.asks_permission() {
            self.state(SessionState::Running, out);
        }
    }

    /// A prompt enters the history.
    pub(super) fn applied(
        &mut self,
        prompt: PromptId,
        turn: Option<TurnId>,
        out: &mut Outbox<Agentx>,
    ) {
        let Some((uuid, replay)) = self.prompts.applied(prompt) else {
            return self.begin(out);
        };
        let in_turn = turn.is_some() && self.turn.is_some();
        if let Some(open) = self.turn.as_mut().filter(|_| in_turn) {
            open.prompts.push(prompt);
            if let Some(uuid) = &uuid {
                open.uuids.push(uuid.clone());
            }
        }
        self.lifecycle(prompt, LifecycleState::Started, out);
        let first = self.config.policy.replay_place == ReplayPlace::BeforeRunning;
        if in_turn && !first {
            self.begin(out);
        }
        if let Some(replay) = replay {
            self.replay(&replay, out);
        }
        if in_turn && first {
            self.begin(out);
        }
    }

    /// Tells of replies in the open turn.
    pub(super) fn with_pen<R>(
        &mut self,
        run: RunId,
        out: &mut Outbox<Agentx>,
        act: impl FnOnce(&mut super::reply::Replies, &mut Pen<'_>) -> R,
    ) -> R {
        let names = self.config.policy.record_form == RecordForm::Provider;
        let parent = self
            .run_call(run)
            .and_then(|call| self.calls.wire(call))
            .map(String::from);
        let model = self
            .mirror
            .info()
            .map_or_else(|| "".into(), |info| info.model.model.clone());
        let mut pen = Pen {
            printer: &mut self.printer,
            out,
            calls: &mut self.calls,
            prompts: self
                .turn
                .as_ref()
                .filter(|_| names)
                .map_or(&[], |turn| turn.uuids.as_slice()),
            parent,
            model,
            now: self.now,
        };
        act(&mut self.replies, &mut pen)
    }

    /// The call that asked for a nested run.
    fn run_call(&self, run: RunId) -> Option<CallId> {
        let mut runs = self.mirror.runs().iter();
        runs.find(|open| open.run == run).and_then(|open| open.call)
    }

    /// The turn is over. Its result waits for the ends of its prompts, and for finite work of its calls.
    pub(super) fn turn_ended(&mut self, over: Ending<'_>, out: &mut Outbox<Agentx>) {
        if self.turn.as_ref().is_none_or(|turn| turn.id != over.turn) {
            return;
        }
        self.begin(out);
        self.with_pen(RunId::MAIN, out, |replies, pen| replies.close(pen));
        let Some(turn) = self.turn.take() else { return };
        let waits = turn
            .prompts
            .iter()
            .copied()
            .filter(|prompt| self.prompts.is_open(*prompt))
            .collect();
        let mut turn = turn;
        if over.pending.background {
            turn.jobs = self.mirror.jobs().map(|job| job.job).collect();
        }
        self.over = Some(Over {
            unapplied: turn.prompted && turn.prompts.is_empty() && self.prompts.has_unapplied(),
            turn,
            end: over.end.clone(),
            answer: over.answer.cloned(),
            report: over.report.clone(),
            waits,
        });
        self.finish_if_done(out);
    }

    /// A prompt has ended.
    pub(super) fn prompt_ended(&mut self, prompt: PromptId, end: &End, out: &mut Outbox<Agentx>) {
        let Some(note) = self.prompts.ended(prompt) else {
            return;
        };
        if let Some(over) = self
            .over
            .as_mut()
            .filter(|over| over.turn.prompts.contains(&prompt))
        {
            over.waits.remove(&prompt);
            self.finish_if_done(out);
            self.lifecycle_of(note.lifecycle(), end_state(end), out);
            return;
        }
        let unapplied = !note.is_context()
            && !note.is_applied()
            && !matches!(end, End::Dropped(_) | End::Withdrawn);
        // What was accepted before the input ended has its result, also where the time for it is over (WIRE-EOF-001).
        let late = *end == End::Dropped(DropWhy::Closed) && self.input == super::Input::Ended;
        if late && !note.is_context() {
            let error = "The agent left before the prompt had its turn";
            self.input_error(note.uuid.as_deref(), error, out);
        } else if note.is_local() {
            self.local_ended(&note, end, out);
        } else if unapplied {
            // It ended in a turn that never applied it: blocked, or failed before it began.
            self.unapplied_ended(&note, end, out);
        }
        self.lifecycle_of(note.lifecycle(), end_state(end), out);
        self.withdrawn(prompt, out);
    }

    fn finish_if_done(&mut self, out: &mut Outbox<Agentx>) {
        let done = self.over.as_ref().is_some_and(|over| {
            over.waits.is_empty() && over.turn.jobs.is_empty() && !over.unapplied
        });
        if done {
            self.finish_turn(out);
        }
    }

    /// A job has ended: a result may have waited for it.
    pub(super) fn job_ended(&mut self, job: JobId, out: &mut Outbox<Agentx>) {
        if let Some(over) = &mut self.over {
            over.turn.jobs.remove(&job);
            self.finish_if_done(out);
        }
    }

    /// Writes the result that waits, if there is one, and what follows it.
    pub(super) fn finish_turn(&mut self, out: &mut Outbox<Agentx>) {
        let Some(over) = self.over.take() else { return };
        self.say_result(&over, out);
        self.idle(out);
    }

    /// Nothing runs: once the embedder has flushed, the host is told (WIRE-004).
    pub(super) fn idle(&mut self, out: &mut Outbox<Agentx>) {
        if self.config.flush {
            self.flushes(out);
        } else {
            self.told = None;
            self.state(SessionState::Idle, out);
        }
    }
}

/// What is said of a turn's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending<'e> {
    pub(super) turn: TurnId,
    pub(super) end: &'e End,
    pub(super) answer: Option<&'e TurnAnswer>,
    pub(super) report: &'e TurnReport,
    pub(super) pending: Pending,
}

/// What becomes of a prompt that ends so.
fn end_state(end: &End) -> LifecycleState<'static> {
    match end {
        End::Cancelled(CancelWhy::Preempted(_)) => LifecycleState::Completed,
        End::Cancelled(_) | End::Dropped(_) | End::Withdrawn => LifecycleState::Cancelled,
        End::Finished { .. }
        | End::Local
        | End::Truncated(_)
        | End::MaxSteps
        | End::BudgetExhausted(_)
        | End::Unverified
        | End::Blocked(_)
        | End::Yielded { .. }
        | End::Aborted { .. }
        | End::Incomplete(_)
        | End::Failed(_)
        | End::NotSaid => LifecycleState::Completed,
    }
}
