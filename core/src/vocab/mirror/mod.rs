//! State as a fold of events: what a Server answers its queries from, over a
//! session and over a bridge alike.
//!
//! A [`Mirror`] takes every event in order, and nothing else. [`Command::Barrier`]
//! gives the consistent point: when its reply has gone through the mirror, so has
//! everything that earlier commands did. What events don't say a mirror doesn't know.
//!
//! Nested runs: their questions, calls and usage are known, marked with their
//! run; their messages, steps and requests stay out of the main history.

mod history;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;

use self::history::History;
use super::*;

/// The state of an agent, as its events told it.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    info: Option<Box<SessionInfo>>,
    history: History,
    queue: Vec<Waiting>,
    /// How many follow-ups were put at the front of their lane since the last turn ended.
    kept_in_front: usize,
    turn: Option<OpenTurn>,
    questions: Vec<OpenQuestion>,
    calls: Vec<OpenCall>,
    jobs: BTreeMap<JobId, Box<JobRecord>>,
    runs: Vec<OpenRun>,
    goal: Option<Goal>,
    context: Option<ContextUse>,
    compacting: Option<Trigger>,
    totals: Totals,
    settled: bool,
    closed: Option<CloseWhy>,
}

/// A prompt that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The prompt.
    pub prompt: PromptId,
    /// Where it waits.
    pub lane: Lane,
}

/// The turn that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its id.
    pub turn: TurnId,
    /// Why it began.
    pub cause: Cause,
    /// When it began.
    pub since: Now,
    /// The prompts applied in it, in order.
    pub prompts: Vec<PromptId>,
    /// The open step and its number; `None` between two steps.
    pub step: Option<(StepId, u32)>,
    /// The attempt that runs, and its number in the step.
    pub request: Option<(RequestId, u32)>,
    /// The message that is being streamed.
    pub message: Option<MessageId>,
    /// The attempt to come, while the session waits for it.
    pub retry: Option<u32>,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its id.
    pub ask: AskId,
    /// The run that asks.
    pub run: RunId,
    /// When it was asked.
    pub since: Now,
    /// What it asks.
    pub body: Ask,
}

/// A call that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// Its id.
    pub call: CallId,
    /// The run whose call it is.
    pub run: RunId,
    /// When it began.
    pub since: Now,
    /// The provider's id of it.
    pub provider_id: Option<Text>,
    /// The tool's name.
    pub name: Text,
    /// The arguments, as the model gave them or as a verdict replaced them.
    pub input: Option<ToolInput>,
    /// Who called.
    pub cause: ToolCause,
    /// What the tool may do.
    pub side_effect: SideEffect,
    /// What the gate decided; `None`: nothing yet, or nothing to decide.
    pub allowed: Option<bool>,
}

/// A nested run that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// Its id.
    pub run: RunId,
    /// What it is.
    pub kind: RunKind,
    /// For people.
    pub label: Text,
    /// The call that asked for it.
    pub call: Option<CallId>,
    /// Steps so far.
    pub steps: u32,
}

/// How full the context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextUse {
    /// Tokens in use.
    pub used: u64,
    /// Tokens that the model can take.
    pub window: u64,
    /// Whether `used` is a guess.
    pub estimated: bool,
}

/// Sums since the session was opened, nested runs included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Turns that ended.
    pub turns: u64,
    /// Steps that ended.
    pub steps: u64,
    /// Attempts that ended, failed ones too.
    pub requests: u64,
    /// Of these, those that didn't complete.
    pub failed_requests: u64,
    /// Time in attempts, in microseconds.
    pub api_us: u64,
    /// Calls that ended; skipped ones don't count.
    pub calls: u64,
    /// Of these, those that were denied.
    pub denied_calls: u64,
    /// Tokens of all models.
    pub usage: Usage,
    /// The same by model, in order of first use.
    pub by_model: Vec<ModelTotal>,
}

/// What one model took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelTotal {
    /// The model.
    pub model: ModelRef,
    /// Attempts that ended.
    pub requests: u64,
    /// Tokens.
    pub usage: Usage,
    /// Known costs, in millionths of a millionth of a US dollar.
    pub pico_usd: u64,
    /// Attempts whose price nobody knows: while it isn't 0 the cost is a lower bound.
    pub unpriced: u64,
}

impl Mirror {
    /// A mirror of an agent that hasn't said anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event. Unknown ids and impossible orders are taken as they
    /// come: judging is the business of [`laws`].
    pub fn apply(&mut self, event: &Event) {
        if event.run != RunId::MAIN {
            return self.apply_nested(event);
        }
        match &event.what {
            What::Opened(info) => self.open(info),
            What::Changed(info) => {
                let mut info = info.clone();
                info.history = Vec::new();
                info.summarised = Vec::new();
                self.info = Some(info);
            }
            What::Closed { why } => self.closed = Some(why.clone()),
            What::Settled => self.settled = true,
            What::Queued { prompt, lane } => self.enqueue(*prompt, *lane),
            What::PromptApplied { prompt, turn } => self.prompt_applied(*prompt, *turn),
            What::PromptEnded { prompt, .. } => self.unqueue(*prompt),
            What::TurnStarted { turn, cause } => self.turn_started(*turn, *cause, event.at),
            What::TurnEnded { .. } => self.turn_ended(),
            What::StepStarted { step, number } => {
                if let Some(turn) = &mut self.turn {
                    turn.step = Some((*step, *number));
                }
            }
            What::StepEnded { .. } => {
                self.totals.steps += 1;
                if let Some(turn) = &mut self.turn {
                    turn.step = None;
                    turn.retry = None;
                }
            }
            What::RequestStarted { request, attempt } => {
                if let Some(turn) = &mut self.turn {
                    turn.request = Some((*request, *attempt));
                    turn.retry = None;
                }
            }
            What::RetryScheduled { attempt, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.retry = Some(*attempt);
                }
            }
            What::RetryEnded { .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.retry = None;
                }
            }
            What::MessageStarted { message, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.message = Some(*message);
                }
            }
            What::MessageEnded { message, kept, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.message = None;
                }
                if *kept {
                    self.history.push_reply(message);
                }
            }
            What::Message(message) => self.history.push(message),
            What::Context {
                used,
                window,
                estimated,
            } => {
                self.context = Some(ContextUse {
                    used: *used,
                    window: *window,
                    estimated: *estimated,
                });
            }
            What::CompactionStarted { trigger, .. } => {
                self.compacting = Some(*trigger);
                self.settled = false;
            }
            What::CompactionEnded { result } => {
                self.compacting = None;
                if let Ok(compacted) = result {
                    self.history.compact(compacted, event.at.unix_ms);
                }
            }
            What::Goal(news) => self.goal_news(news),
            What::Job(step, record) => self.job_news(*step, record),
            What::RequestEnded { .. }
            | What::ToolStarted { .. }
            | What::Decided { .. }
            | What::ToolEnded { .. }
            | What::ToolSkipped { .. }
            | What::Asked { .. }
            | What::AskClosed { .. }
            | What::RunStarted { .. }
            | What::RunProgress { .. }
            | What::RunEnded { .. } => self.apply_nested(event),
            What::Replied { .. }
            | What::BlockStarted { .. }
            | What::Delta { .. }
            | What::BlockEnded { .. }
            | What::ToolProgress { .. }
            | What::FileChanged { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::HookFailed { .. }
            | What::CompletionRefused { .. }
            | What::Notice { .. } => {}
        }
    }

    /// What a mirror keeps of every run: usage, calls, questions and the runs below it.
    fn apply_nested(&mut self, event: &Event) {
        let main = event.run == RunId::MAIN;
        match &event.what {
            What::RequestEnded {
                outcome,
                model,
                usage,
                cost,
                api_us,
                ..
            } => {
                self.totals
                    .add_request(outcome, model, *usage, cost, *api_us);
                if let (true, Some(turn)) = (main, &mut self.turn) {
                    turn.request = None;
                }
            }
            What::ToolStarted {
                call,
                provider_id,
                name,
                input,
                cause,
                side_effect,
            } => {
                if main {
                    self.history.call_started(*call, cause);
                }
                self.calls.push(OpenCall {
                    call: *call,
                    run: event.run,
                    since: event.at,
                    provider_id: provider_id.clone(),
                    name: name.clone(),
                    input: input.clone(),
                    cause: cause.clone(),
                    side_effect: *side_effect,
                    allowed: None,
                });
            }
            What::Decided { call, verdict } => {
                if let Some(open) = self.calls.iter_mut().find(|open| open.call == *call) {
                    open.allowed = Some(verdict.allow);
                    if let Some(input) = &verdict.input {
                        open.input = Some(ToolInput::Object(input.clone()));
                    }
                }
            }
            What::ToolEnded {
                call,
                outcome,
                content,
                ..
            } => {
                self.totals.calls += 1;
                self.totals.denied_calls += u64::from(matches!(outcome, ToolOutcome::Denied(_)));
                let name = self.take_call(*call).map(|open| open.name);
                if main {
                    self.history
                        .call_ended(*call, name, outcome, content, event.at.unix_ms);
                }
            }
            What::ToolSkipped { call, why } => {
                if main {
                    self.history.call_skipped(*call, *why, event.at.unix_ms);
                }
            }
            What::Asked { ask, body } => {
                self.questions.push(OpenQuestion {
                    ask: *ask,
                    run: event.run,
                    since: event.at,
                    body: body.clone(),
                });
            }
            What::AskClosed { ask, .. } => self.questions.retain(|open| open.ask != *ask),
            What::RunStarted {
                run,
                kind,
                label,
                call,
            } => self.runs.push(OpenRun {
                run: *run,
                kind: kind.clone(),
                label: label.clone(),
                call: *call,
                steps: 0,
            }),
            What::RunProgress { run, steps, .. } => {
                if let Some(open) = self.runs.iter_mut().find(|open| open.run == *run) {
                    open.steps = *steps;
                }
            }
            What::RunEnded { run, .. } => {
                self.runs.retain(|open| open.run != *run);
                self.calls.retain(|open| open.run != *run);
            }
            What::Opened(_)
            | What::Changed(_)
            | What::Closed { .. }
            | What::Replied { .. }
            | What::Queued { .. }
            | What::PromptApplied { .. }
            | What::PromptEnded { .. }
            | What::TurnStarted { .. }
            | What::TurnEnded { .. }
            | What::Settled
            | What::StepStarted { .. }
            | What::StepEnded { .. }
            | What::Context { .. }
            | What::RequestStarted { .. }
            | What::RetryScheduled { .. }
            | What::RetryEnded { .. }
            | What::MessageStarted { .. }
            | What::BlockStarted { .. }
            | What::Delta { .. }
            | What::BlockEnded { .. }
            | What::MessageEnded { .. }
            | What::Message(_)
            | What::ToolProgress { .. }
            | What::FileChanged { .. }
            | What::Checkpoint { .. }
            | What::Restored { .. }
            | What::CompactionStarted { .. }
            | What::CompactionEnded { .. }
            | What::Goal(_)
            | What::Job(..)
            | What::HookFailed { .. }
            | What::CompletionRefused { .. }
            | What::Notice { .. } => {}
        }
    }

    /// A session begins: everything of an earlier one is gone.
    fn open(&mut self, info: &SessionInfo) {
        let mut info = info.clone();
        let history = core::mem::take(&mut info.history);
        info.summarised = Vec::new();
        *self = Self {
            info: Some(Box::new(info)),
            history: History::from(history),
            ..Self::default()
        };
    }

    fn enqueue(&mut self, prompt: PromptId, lane: Lane) {
        let before = self
            .queue
            .iter()
            .position(|waiting| waiting.prompt == prompt);
        let moved_from = before.map(|at| self.queue.remove(at).lane);
        let waiting = Waiting { prompt, lane };
        // A steer that its turn left over goes before the follow-ups that wait already.
        if lane == Lane::FollowUp && moved_from == Some(Lane::Steer) {
            let front = self
                .queue
                .iter()
                .position(|other| other.lane == Lane::FollowUp);
            let at = front.map_or(self.queue.len(), |front| {
                front.saturating_add(self.kept_in_front)
            });
            self.queue.insert(at.min(self.queue.len()), waiting);
            self.kept_in_front += 1;
        } else {
            self.queue.push(waiting);
        }
        self.settled = false;
    }

    fn unqueue(&mut self, prompt: PromptId) {
        self.queue.retain(|waiting| waiting.prompt != prompt);
    }

    fn prompt_applied(&mut self, prompt: PromptId, turn: Option<TurnId>) {
        self.unqueue(prompt);
        if let Some(open) = self.turn.as_mut().filter(|open| Some(open.turn) == turn) {
            open.prompts.push(prompt);
        }
    }

    fn turn_started(&mut self, turn: TurnId, cause: Cause, at: Now) {
        self.settled = false;
        self.turn = Some(OpenTurn {
            turn,
            cause,
            since: at,
            prompts: Vec::new(),
            step: None,
            request: None,
            message: None,
            retry: None,
        });
    }

    fn turn_ended(&mut self) {
        self.totals.turns += 1;
        self.kept_in_front = 0;
        self.turn = None;
    }

    fn goal_news(&mut self, news: &GoalEvent) {
        let status = match news {
            GoalEvent::Changed(goal) => return self.goal.clone_from(goal),
            GoalEvent::Blocked(_) => GoalStatus::Blocked,
            GoalEvent::Unblocked => GoalStatus::Active,
            GoalEvent::Disarmed => GoalStatus::Paused,
            GoalEvent::BudgetExhausted { .. } => GoalStatus::Exhausted,
        };
        if let Some(goal) = &mut self.goal {
            goal.status = status;
        }
    }

    fn job_news(&mut self, step: JobStep, record: &JobRecord) {
        match step {
            JobStep::Started | JobStep::Updated => {
                self.jobs.insert(record.job, Box::new(record.clone()));
                self.settled = false;
            }
            JobStep::Ended => {
                self.jobs.remove(&record.job);
                self.settled = false;
            }
        }
    }

    fn take_call(&mut self, call: CallId) -> Option<OpenCall> {
        let at = self.calls.iter().position(|open| open.call == call)?;
        Some(self.calls.remove(at))
    }
}

/// What is known.
impl Mirror {
    /// The session and its settings; its `history` is always empty, see [`Mirror::history`].
    pub fn info(&self) -> Option<&SessionInfo> {
        self.info.as_deref()
    }

    /// The current history, oldest first. Every call that ended or was skipped is
    /// paired with one result, in call order, directly after the message that made
    /// the calls; calls that still run have none yet (S-31).
    pub fn history(&self) -> &[Arc<Message>] {
        self.history.messages()
    }

    /// The prompts that wait, in order of arrival within each lane.
    ///
    /// A preempting prompt stands at the end of its lane until it is applied: that it goes first isn't said.
    pub fn queue(&self) -> &[Waiting] {
        &self.queue
    }

    /// The turn that runs.
    pub fn turn(&self) -> Option<&OpenTurn> {
        self.turn.as_ref()
    }

    /// The open questions, in order of creation.
    pub fn questions(&self) -> &[OpenQuestion] {
        &self.questions
    }

    /// An open question.
    pub fn question(&self, ask: AskId) -> Option<&OpenQuestion> {
        self.questions.iter().find(|open| open.ask == ask)
    }

    /// The open calls, in order of their start.
    pub fn calls(&self) -> &[OpenCall] {
        &self.calls
    }

    /// An open call.
    pub fn call(&self, call: CallId) -> Option<&OpenCall> {
        self.calls.iter().find(|open| open.call == call)
    }

    /// The jobs alive.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        self.jobs.values().map(|record| &**record)
    }

    /// The nested runs alive.
    pub fn runs(&self) -> &[OpenRun] {
        &self.runs
    }

    /// The goal.
    pub fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// How full the context was at the last request.
    pub fn context(&self) -> Option<ContextUse> {
        self.context
    }

    /// Whether the history is being summarised, and why.
    pub fn compacting(&self) -> Option<Trigger> {
        self.compacting
    }

    /// Sums since the session was opened.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Whether the last thing said about it was that nothing runs or waits.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Why the session closed, if it did.
    pub fn closed(&self) -> Option<&CloseWhy> {
        self.closed.as_ref()
    }
}

impl Totals {
    fn add_request(
        &mut self,
        outcome: &RequestOutcome,
        model: &ModelRef,
        usage: Option<Usage>,
        cost: &Cost,
        api_us: u64,
    ) {
        let usage = usage.unwrap_or_default();
        self.requests += 1;
        self.failed_requests += u64::from(!matches!(outcome, RequestOutcome::Complete { .. }));
        self.api_us = self.api_us.saturating_add(api_us);
        self.usage = self.usage.plus(usage);
        let at = self
            .by_model
            .iter()
            .position(|total| total.model == *model)
            .unwrap_or_else(|| {
                self.by_model.push(ModelTotal {
                    model: model.clone(),
                    requests: 0,
                    usage: Usage::default(),
                    pico_usd: 0,
                    unpriced: 0,
                });
                self.by_model.len() - 1
            });
        if let Some(total) = self.by_model.get_mut(at) {
            total.requests += 1;
            total.usage = total.usage.plus(usage);
            match cost {
                Cost::Known { pico_usd, .. } => {
                    total.pico_usd = total.pico_usd.saturating_add(*pico_usd)
                }
                Cost::Unpriced { .. } | Cost::NotSaid => total.unpriced += 1,
            }
        }
    }
}
