//! The tool phase: calls run in waves, each judged, asked about, run, and ended once.

mod hooked;
mod judge;
mod result;
mod run;

use alloc::{boxed::Box, collections::VecDeque, sync::Arc, vec::Vec};
use core::ops::Range;

use super::{
    Session,
    cancel::Stopping,
    hooks::{Chain, Owner},
    phase::{Phase, Turn},
};
use crate::session::config::{Parallel, ToolEndOrder};
use crate::vocab::{
    AskId, Block, CallId, CancelWhy, CheckpointId, Decider, End, Failure, FailureKind, HookFacts,
    Interrupting, MessageId, QueueFate, RawJson, Show, SideEffect, SkipWhy, Text, ToolCause,
    ToolInput, ToolOutcome, ToolSpec, TurnAnswer, What,
};

pub(super) use result::keep_within;
pub(super) use run::{Stop, skipped_result};

/// The calls of one reply.
pub(super) struct Batch {
    calls: Vec<Tool>,
    message: MessageId,
    /// The calls that may run side by side now.
    wave: Range<usize>,
    /// The next call of the wave to begin.
    next: usize,
    /// Calls that wait because too many permissions are open, first come first served.
    asking: VecDeque<usize>,
    /// Set when a call or an answer ends the turn.
    over: Option<Over>,
    /// A steer came: no more calls begin.
    steered: bool,
}

/// What ends the turn out of the tool phase.
enum Over {
    /// The host denied a call and interrupted.
    Interrupt(CallId),
    /// A call ended the turn as `Finished`; its index, and the answer of a capture tool.
    Finished {
        at: usize,
        captured: Option<(Text, RawJson)>,
    },
    /// The call at the index can't be put right.
    Failed { at: usize, failure: Failure },
    /// A hook of the call at the index wants no more; says why.
    Stopped { at: usize, why: Text },
}

/// One call.
pub(super) struct Tool {
    pub call: CallId,
    pub provider_id: Text,
    pub name: Text,
    pub input: ToolInput,
    /// Its block in the message.
    pub block: u32,
    pub spec: Option<Arc<ToolSpec>>,
    pub state: State,
    /// Input that a hook or the host put in place of the model's.
    changed: bool,
    /// What a pre-tool hook said: allow or ask, kept for the gate.
    hook: Option<HookSays>,
    /// Whether the host was asked, which needs a `Decided`.
    asked: bool,
    decided: bool,
    snapshotted: bool,
    /// Whoever carries it out was asked to make a job of it.
    detaching: bool,
    began_us: u64,
    /// Output so far, for a call that is cut short.
    so_far: Vec<Block>,
    /// What the model is told.
    result: Option<(Vec<Block>, bool)>,
}

#[derive(Clone)]
struct HookSays {
    key: Text,
    allow: bool,
}

/// Where a call stands.
pub(super) enum State {
    /// Not begun.
    Waiting,
    /// The pre-tool hooks judge it.
    Hooked(Chain),
    /// Its files are being put aside.
    Snapshot {
        checkpoint: CheckpointId,
        then: Then,
    },
    /// It has to be asked about when fewer permissions are open.
    AskWaiting,
    /// The host is asked, perhaps a hook beside it.
    Asking { hooks: Chain },
    /// It is being carried out, by the driver or by the host that was asked.
    Running {
        ask: Option<AskId>,
        deadline_us: Option<u64>,
    },
    /// The post-tool hooks see its outcome.
    PostHook { chain: Chain, ended: Ended },
    /// Over, and waits until it may be said.
    Done(Ended),
    /// `ToolEnded` or `ToolSkipped` was said.
    Said,
}

/// What follows once a call's files are put aside.
pub(super) enum Then {
    /// It is judged.
    Gate,
    /// It runs: who decided, and the input that was put in place of the model's.
    Run {
        by: Option<Decider>,
        input: Option<RawJson>,
    },
}

/// An outcome.
#[derive(Debug)]
pub(super) struct Ended {
    pub outcome: ToolOutcome,
    pub content: Vec<Block>,
    pub show: Option<Box<Show>>,
}

impl Tool {
    pub fn new(
        call: CallId,
        provider_id: Text,
        name: Text,
        input: ToolInput,
        block: u32,
        spec: Option<Arc<ToolSpec>>,
    ) -> Self {
        Tool {
            call,
            provider_id,
            name,
            input,
            block,
            spec,
            state: State::Waiting,
            changed: false,
            hook: None,
            asked: false,
            decided: false,
            snapshotted: false,
            detaching: false,
            began_us: 0,
            so_far: Vec::new(),
            result: None,
        }
    }

    /// Begun and not over.
    fn is_under_way(&self) -> bool {
        match &self.state {
            State::Hooked(_)
            | State::Snapshot { .. }
            | State::AskWaiting
            | State::Asking { .. }
            | State::Running { .. }
            | State::PostHook { .. } => true,
            State::Waiting | State::Done(_) | State::Said => false,
        }
    }
}

impl Batch {
    pub fn new(message: MessageId, calls: Vec<Tool>) -> Self {
        Batch {
            calls,
            message,
            wave: 0..0,
            next: 0,
            asking: VecDeque::new(),
            over: None,
            steered: false,
        }
    }

    pub fn find(&self, call: CallId) -> Option<usize> {
        self.calls.iter().position(|tool| tool.call == call)
    }

    pub fn get(&self, call: CallId) -> Option<&Tool> {
        self.calls.iter().find(|tool| tool.call == call)
    }

    fn at(&mut self, at: usize) -> Option<&mut Tool> {
        self.calls.get_mut(at)
    }

    pub fn state_mut(&mut self, at: usize) -> Option<&mut State> {
        self.calls.get_mut(at).map(|tool| &mut tool.state)
    }

    /// Whether a steer came, and no more calls begin.
    pub fn is_steered(&self) -> bool {
        self.steered
    }

    pub fn name(&self, at: usize) -> Option<Text> {
        self.calls.get(at).map(|tool| tool.name.clone())
    }

    pub fn call_at(&self, at: usize) -> Option<CallId> {
        self.calls.get(at).map(|tool| tool.call)
    }

    /// The arguments, if they are an object.
    pub fn input(&self, at: usize) -> Option<&RawJson> {
        match &self.calls.get(at)?.input {
            ToolInput::Object(raw) => Some(raw),
            ToolInput::Unparsed(_) => None,
        }
    }

    /// The arguments of a call, if they are an object.
    pub fn input_of(&self, call: CallId) -> Option<&RawJson> {
        self.input(self.find(call)?)
    }

    /// What a call has said so far.
    pub fn take_so_far(&mut self, call: CallId) -> Vec<Block> {
        let tool = self.calls.iter_mut().find(|tool| tool.call == call);
        tool.map(|tool| core::mem::take(&mut tool.so_far))
            .unwrap_or_default()
    }

    pub fn replace_input(&mut self, at: usize, input: RawJson) {
        if let Some(tool) = self.at(at) {
            tool.input = ToolInput::Object(input);
            tool.changed = true;
        }
    }

    /// The host denied a call and wants the turn to end.
    pub fn interrupt(&mut self, at: usize) {
        if let Some(call) = self.calls.get(at).map(|tool| tool.call) {
            self.over.get_or_insert(Over::Interrupt(call));
        }
    }

    /// A hook of a call wants the turn to end, if it says why.
    pub fn stop_turn(&mut self, call: CallId, why: Option<Text>) {
        if let (Some(at), Some(why)) = (self.find(call), why) {
            self.over.get_or_insert(Over::Stopped { at, why });
        }
    }

    /// The calls that run, with their deadlines.
    pub fn running(&self) -> impl Iterator<Item = (CallId, Option<u64>)> {
        self.calls.iter().filter_map(|tool| match &tool.state {
            State::Running { deadline_us, .. } => Some((tool.call, *deadline_us)),
            State::Waiting
            | State::Hooked(_)
            | State::Snapshot { .. }
            | State::AskWaiting
            | State::Asking { .. }
            | State::PostHook { .. }
            | State::Done(_)
            | State::Said => None,
        })
    }

    /// A call's outcome so far, for its post-tool hooks.
    pub fn result_of(&self, call: CallId) -> (Vec<Block>, bool, u64) {
        match self.get(call).map(|tool| &tool.state) {
            Some(State::PostHook { chain, ended }) => {
                let began = self.get(call).map_or(0, |tool| tool.began_us);
                (
                    ended.content.clone(),
                    ended.outcome.is_ok(),
                    chain.started_us.saturating_sub(began),
                )
            }
            Some(
                State::Waiting
                | State::Hooked(_)
                | State::Snapshot { .. }
                | State::AskWaiting
                | State::Asking { .. }
                | State::Running { .. }
                | State::Done(_)
                | State::Said,
            )
            | None => (Vec::new(), false, 0),
        }
    }
}

impl Session {
    /// Runs something on the tool phase and then does what became possible. Outside the phase it is nothing.
    pub(super) fn with_tools(&mut self, work: impl FnOnce(&mut Session, &mut Turn, &mut Batch)) {
        match core::mem::take(&mut self.phase) {
            Phase::Tools(mut turn, mut batch) => {
                work(self, &mut turn, &mut batch);
                self.tools_go(turn, batch);
            }
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// Says what may be said, asks what may be asked, begins what may begin, until nothing more is possible.
    pub(super) fn tools_go(&mut self, mut turn: Box<Turn>, mut batch: Box<Batch>) {
        loop {
            self.note_jobs(&mut turn);
            if let Some(over) = batch.over.take() {
                return self.tools_over(turn, batch, over);
            }
            self.begin_runs(&mut batch);
            self.say_ended(&mut turn, &mut batch);
            if self.ask_next(&mut batch) {
                continue;
            }
            if batch.steered {
                self.skip_waiting(&mut batch);
            }
            let wave = batch.calls.get(batch.wave.clone()).unwrap_or_default();
            if wave.iter().all(|tool| matches!(tool.state, State::Said)) {
                if batch.wave.end == batch.calls.len() {
                    self.push_results(&mut batch);
                    self.end_step(&mut turn);
                    return self.boundary(turn);
                }
                batch.wave = self.next_wave(&batch);
                batch.next = batch.wave.start;
            }
            let under_way = batch
                .calls
                .iter()
                .filter(|tool| tool.is_under_way())
                .count();
            let may_begin = !batch.steered && batch.next < batch.wave.end;
            if may_begin && under_way < self.parallel_limit() && self.has_room() {
                let at = batch.next;
                batch.next += 1;
                self.begin_call(&mut turn, &mut batch, at);
            } else {
                break;
            }
        }
        self.phase = Phase::Tools(turn, batch);
    }

    /// A steer came while calls run: those that haven't begun are skipped, and those that run are to go on as jobs if they
    /// can, so that the model hears it soon. Nothing that runs is cut short.
    pub(super) fn steered(&mut self) {
        match self.info.settings.interrupting {
            Interrupting::Immediate => self.with_tools(|session, _, batch| {
                batch.steered = true;
                for at in 0..batch.calls.len() {
                    session.let_go(batch, at);
                }
            }),
            Interrupting::Wait => {}
        }
    }

    /// Skips what hasn't begun, where ends are said in the order of the calls once those before it are said.
    fn skip_waiting(&mut self, batch: &mut Batch) {
        let under_way = batch.calls.iter().any(Tool::is_under_way);
        match self.config.policy.tool_end_order {
            ToolEndOrder::Call if under_way => return,
            ToolEndOrder::Call | ToolEndOrder::Finish => {}
        }
        let why = SkipWhy::Steered;
        for tool in &mut batch.calls {
            if matches!(tool.state, State::Waiting) {
                tool.state = State::Said;
                tool.result = Some((skipped_result(why), true));
                let call = tool.call;
                self.say(What::ToolSkipped { call, why });
            }
        }
        batch.wave.end = batch.calls.len();
        batch.next = batch.wave.end;
    }

    /// How many calls may be under way: bounded so that their hooks and questions keep to their limits.
    fn parallel_limit(&self) -> usize {
        self.config.limits.running_tools.clamp(1, 16)
    }

    fn next_wave(&self, batch: &Batch) -> Range<usize> {
        let start = batch.wave.end;
        let rest = batch.calls.get(start..).unwrap_or_default();
        let safe = |tool: &Tool| {
            let parallel = &self.config.policy.parallel;
            tool.spec
                .as_ref()
                .is_some_and(|spec| parallel.is_safe(spec))
                && !(*parallel == Parallel::QuietReads && self.may_ask(tool.call, &tool.name))
        };
        let run = rest.iter().take_while(|tool| safe(tool)).count();
        start..start + run.max(1)
    }

    fn begin_call(&mut self, turn: &mut Turn, batch: &mut Batch, at: usize) {
        let now = self.now;
        let message = batch.message;
        let Some(tool) = batch.at(at) else { return };
        tool.began_us = now.mono_us;
        let (call, name) = (tool.call, tool.name.clone());
        let started = What::ToolStarted {
            call,
            provider_id: Some(tool.provider_id.clone()),
            name: name.clone(),
            input: Some(tool.input.clone()),
            cause: ToolCause::Model {
                message,
                block: tool.block,
            },
            side_effect: tool
                .spec
                .as_ref()
                .map_or(SideEffect::Unknown, |spec| spec.side_effect),
        };
        self.say(started);
        if !self.recheck(turn, batch, at) {
            return;
        }
        let mut chain = self.chain(Owner::Pre(call), Some(&name), now);
        if self.next_hook(&mut chain, Owner::Pre(call), || HookFacts::Call { call }) {
            if let Some(tool) = batch.at(at) {
                tool.state = State::Hooked(chain);
            }
        } else {
            self.gate(batch, at);
        }
    }

    /// Says the ends that may be said now.
    fn say_ended(&mut self, turn: &mut Turn, batch: &mut Batch) {
        for at in batch.wave.clone() {
            let Some(tool) = batch.at(at) else { return };
            match &tool.state {
                State::Done(_) => self.end_call(turn, batch, at),
                State::Said => {}
                State::Waiting
                | State::Hooked(_)
                | State::Snapshot { .. }
                | State::AskWaiting
                | State::Asking { .. }
                | State::Running { .. }
                | State::PostHook { .. } => match self.config.policy.tool_end_order {
                    ToolEndOrder::Call => return,
                    ToolEndOrder::Finish => {}
                },
            }
        }
    }

    /// `ToolEnded` for a call that is over.
    fn end_call(&mut self, turn: &mut Turn, batch: &mut Batch, at: usize) {
        let Some(tool) = batch.at(at) else { return };
        match core::mem::replace(&mut tool.state, State::Said) {
            State::Done(Ended {
                outcome,
                content,
                show,
            }) => {
                let error = outcome.is_error();
                tool.result = Some((content.clone(), error));
                let call = tool.call;
                if matches!(outcome, ToolOutcome::Denied(_)) {
                    turn.denials.push(call);
                }
                self.say(What::ToolEnded {
                    call,
                    outcome,
                    content,
                    show,
                });
            }
            other @ (State::Waiting
            | State::Hooked(_)
            | State::Snapshot { .. }
            | State::AskWaiting
            | State::Asking { .. }
            | State::Running { .. }
            | State::PostHook { .. }
            | State::Said) => tool.state = other,
        }
    }

    /// Ends a call that never ran, or whose outcome no hook sees.
    pub(super) fn call_over(
        &mut self,
        batch: &mut Batch,
        at: usize,
        outcome: ToolOutcome,
        text: &str,
    ) {
        if let Some(tool) = batch.at(at) {
            let content = alloc::vec![Block::Text(text.into())];
            tool.state = State::Done(Ended {
                outcome,
                content,
                show: None,
            });
        }
    }

    /// The turn leaves the tool phase before its calls are through.
    fn tools_over(&mut self, mut turn: Box<Turn>, mut batch: Box<Batch>, over: Over) {
        match over {
            Over::Interrupt(call) => {
                let stop = Stopping::Cancel(CancelWhy::Denied(call));
                self.phase = Phase::Tools(turn, batch);
                self.stop_turn(&stop, QueueFate::Run, None);
            }
            Over::Finished { at, captured } => {
                self.end_call(&mut turn, &mut batch, at);
                self.wind_up(&mut turn, &mut batch, &Stop::TURN_OVER);
                self.end_step(&mut turn);
                if let Some((tool, input)) = captured {
                    turn.answer = Some(TurnAnswer::Captured { tool, input });
                }
                if self.prompts.steer_waits() {
                    return self.boundary(turn);
                }
                let finish = turn.finish.clone();
                self.finish_turn(turn, End::Finished { finish }, QueueFate::Run);
            }
            Over::Failed { at, failure } => {
                self.end_call(&mut turn, &mut batch, at);
                self.wind_up(&mut turn, &mut batch, &Stop::TURN_OVER);
                self.finish_turn(turn, End::Failed(failure), QueueFate::Run);
            }
            Over::Stopped { at, why } => {
                self.end_call(&mut turn, &mut batch, at);
                self.wind_up(&mut turn, &mut batch, &Stop::TURN_OVER);
                self.finish_turn(turn, End::Blocked(why), QueueFate::Run);
            }
        }
    }

    /// Stops what runs and ends every call in call order; the results go into the history.
    pub(super) fn wind_up(&mut self, turn: &mut Turn, batch: &mut Batch, stop: &Stop) {
        let runs = self.runs.attached();
        self.close_asks(&stop.close, Some(batch), &runs);
        self.stop_calls(batch, stop.run);
        for at in 0..batch.calls.len() {
            self.cut_call(batch, at, stop);
            self.end_call(turn, batch, at);
        }
        self.end_cut_runs();
        self.push_results(batch);
    }
}

/// A failure of a capture tool.
fn capture_failure(name: &str, why: &str) -> Failure {
    Failure {
        kind: FailureKind::Capture,
        status: None,
        retryable: false,
        text: alloc::format!("the input of {name} was never right: {why}").into(),
    }
}
