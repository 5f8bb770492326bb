//! Turns: from the first record of one to its `result`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::convert::{cost, failure, is_nothing, less, model_usage, ms_us, pico, shared, status};
use super::flow::{Cut, Flow, Tail};
use super::prompts::{Applied, Known};
use super::{ClientFace, Closing, Out};
use crate::json::Lazy;
use crate::protocol::agentx::policy::RecordForm;
use crate::protocol::agentx::wire::{Maybe, Num, ResultKind, SessionState, TurnResult};
use crate::protocol::heard::message;
use crate::vocab::*;

/// Models of one session whose sums are kept.
const MOST_MODELS: usize = 256;

/// The open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub id: TurnId,
    began_us: u64,
    /// The prompts that were applied, in order.
    pub prompts: Vec<Applied>,
    /// The prompt that it began for, if it hasn't been seen in it yet.
    fresh: Option<PromptId>,
    /// Prompts that the agent has begun with, and that can't be applied before the next step.
    due: Vec<PromptId>,
    /// A cancel that was acknowledged.
    pub cancel: Option<CancelWhy>,
    /// What a cancel that isn't acknowledged would be for.
    pub wished: Option<CancelWhy>,
    /// A hook stopped the prompt, and why.
    pub blocked: Option<Text>,
    /// The newest question before it.
    asked: AskId,
    pub flow: Flow,
}

/// What a session has used, as far as its results said.
#[derive(Debug, Default)]
pub(super) struct Sums {
    by_model: BTreeMap<String, (Usage, Option<u64>)>,
    /// 10⁻¹² US dollars.
    total: u64,
}

impl Turn {
    /// A prompt is taken back before it was applied.
    pub(super) fn forget(&mut self, prompt: PromptId) {
        self.due.retain(|due| *due != prompt);
        if self.fresh == Some(prompt) {
            self.fresh = None;
        }
    }
}

impl ClientFace {
    /// A turn begins. `seen`: the agent said so.
    fn begin(&mut self, seen: Seen, out: &mut Out) {
        let next = self.prompts.next();
        let cause = match next {
            Some(known) if known.queued => Cause::Queue,
            Some(_) => Cause::Prompt,
            None => Cause::NotSaid,
        };
        let fresh = self.replayed.take().or(next.map(|known| known.id));
        let id = out.ids.turn();
        out.event(RunId::MAIN, seen, What::TurnStarted { turn: id, cause });
        self.active = true;
        let mut flow = Flow::new(RunId::MAIN, self.config.reply_bytes);
        flow.stopping = self.books.interrupt().is_some();
        self.turn = Some(Turn {
            id,
            began_us: out.now().mono_us,
            prompts: Vec::new(),
            fresh,
            due: Vec::new(),
            cancel: None,
            wished: None,
            blocked: None,
            asked: self.book.asks.newest(),
            flow,
        });
    }

    /// Sees to it that what comes has a turn.
    pub(super) fn enter(&mut self, seen: Seen, out: &mut Out) {
        self.needs_session(out);
        if self.turn.is_none() {
            self.begin(seen, out);
        }
    }

    /// Something of a turn's content comes: its prompts are applied first.
    pub(super) fn content(&mut self, out: &mut Out) {
        self.enter(Seen::Inferred, out);
        self.end_compaction(CompactionFault::Cancelled, out);
        let Some(turn) = &mut self.turn else { return };
        let mut due = Vec::new();
        if turn.flow.takes_input() {
            due = core::mem::take(&mut turn.due);
        }
        if let Some(fresh) = turn.fresh
            && self.prompts.get(fresh).is_some_and(|known| !known.told)
        {
            turn.fresh = None;
            due.insert(0, fresh);
        }
        for id in due {
            self.apply(id, Seen::Inferred, out);
        }
    }

    /// A prompt enters the history.
    fn apply(&mut self, id: PromptId, seen: Seen, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let Some(known) = self.prompts.take(id) else {
            return;
        };
        if turn.fresh == Some(id) {
            turn.fresh = None;
        }
        turn.flow.input_step(&mut self.book, out);
        let what = What::PromptApplied {
            prompt: id,
            turn: Some(turn.id),
        };
        out.event(RunId::MAIN, seen, what);
        let message_id = out.ids.message();
        let content = shared(known.content);
        let mut made = message(message_id, Role::User, content, Origin::Host, out);
        made.prompt = Some(id);
        let uuid = known.uuid;
        turn.prompts.push(Applied { id, uuid });
        out.event(RunId::MAIN, seen, What::Message(Arc::new(made)));
    }

    /// The agent begins with a prompt.
    pub(super) fn prompt_begins(&mut self, id: PromptId, out: &mut Out) {
        self.enter(Seen::Real, out);
        let Some(turn) = &mut self.turn else { return };
        if turn.prompts.is_empty() {
            turn.fresh = None;
        }
        if turn.flow.takes_input() {
            self.apply(id, Seen::Real, out);
        } else if !turn.due.contains(&id) {
            turn.due.push(id);
        }
    }

    /// `session_state_changed`
    pub(super) fn state(&mut self, told: &SessionState<'_>, out: &mut Out) {
        self.states = true;
        self.idle = *told == SessionState::Idle;
        match told {
            SessionState::Running => self.enter(Seen::Real, out),
            SessionState::RequiresAction | SessionState::Other(_) => {}
            SessionState::Idle => {
                if self.turn.is_some() {
                    out.finding("the agent is idle, and its turn has no result");
                    let end = self.cancelled_or(End::NotSaid);
                    self.finish(end, &Cut::Over, Tail::NONE, TurnReport::default(), out);
                }
                self.end_compaction(CompactionFault::Cancelled, out);
                if self.prompts.is_empty() && core::mem::take(&mut self.active) {
                    out.say(What::Settled);
                }
            }
        }
    }

    /// What a cancel of the turn is said to be for.
    fn why(&self) -> CancelWhy {
        let turn = self.turn.as_ref();
        turn.and_then(|turn| turn.cancel.clone().or_else(|| turn.wished.clone()))
            .or_else(|| self.books.interrupt())
            .or_else(|| self.signal.map(CancelWhy::Signal))
            .unwrap_or(match self.closing {
                Closing::Sent { .. } => CancelWhy::PeerGone,
                Closing::Open | Closing::Draining => CancelWhy::Host,
            })
    }

    /// The end, unless a cancel was acknowledged: that isn't taken back.
    fn cancelled_or(&self, end: End) -> End {
        let acknowledged = self.turn.as_ref().is_some_and(|turn| turn.cancel.is_some());
        if acknowledged {
            End::Cancelled(self.why())
        } else {
            end
        }
    }

    /// An interrupt was acknowledged.
    pub(super) fn interrupted(&mut self, why: CancelWhy, out: &mut Out) -> Hit {
        let Some(turn) = &mut self.turn else {
            return Hit::Nothing;
        };
        turn.flow.acknowledged(&mut self.book, out);
        let (calls, asks) = self.book.parts();
        asks.interrupted(calls, out);
        turn.cancel.get_or_insert(why);
        Hit::Turn(turn.id)
    }

    /// `result`
    pub(super) fn result(&mut self, told: &TurnResult<'_>, out: &mut Out) {
        self.needs_session(out);
        let named = self.named(told);
        if told
            .stop_reason
            .value()
            .is_some_and(|word| *word == "input_error")
        {
            return self.input_error(named.first().copied(), told, out);
        }
        if self.turn.is_none() {
            let id = named
                .first()
                .copied()
                .or_else(|| self.prompts.next().map(|known| known.id));
            if let Some(id) = id
                && self.prompts.get(id).is_some_and(|known| known.local)
            {
                self.end_prompt(id, End::Local, Seen::Real, out);
                return self.settle_quietly(out);
            }
            self.enter(Seen::Inferred, out);
        }
        self.end_compaction(CompactionFault::Cancelled, out);
        for id in named {
            self.prompt_begins(id, out);
        }
        let blocked = self.turn.as_ref().and_then(|turn| turn.blocked.clone());
        if blocked.is_none() {
            self.content(out);
            // One that the agent said it has, and never that it begins with it.
            let fresh = self.turn.as_ref().and_then(|turn| turn.fresh);
            let shows = self
                .turn
                .as_ref()
                .is_some_and(|turn| !turn.prompts.is_empty());
            if let (Some(id), false) = (fresh, shows) {
                self.apply(id, Seen::Inferred, out);
            }
        }
        let (end, cut) = self.end_of(told, blocked);
        let (tail, report) = self.account(told);
        for denial in told.permission_denials.as_deref().unwrap_or_default() {
            self.book.calls.was_denied(&denial.tool_use_id);
        }
        if end.is_finished()
            && let Some(turn) = &mut self.turn
            && let Some(text) = &told.result
        {
            turn.flow.answer = Some((&**text).into());
        }
        self.finish(end, &cut, tail, report, out);
        self.settle_quietly(out);
    }

    /// The waiting prompts that a result names.
    fn named(&self, told: &TurnResult<'_>) -> Vec<PromptId> {
        let mut named = Vec::new();
        let one = told
            .prompt_uuid
            .as_ref()
            .or(told.user_message_uuid.as_ref());
        let several = told.user_message_uuids.as_deref().unwrap_or_default();
        for uuid in one.into_iter().chain(several) {
            if let Some(id) = self.prompts.of(uuid)
                && !named.contains(&id)
            {
                named.push(id);
            }
        }
        named
    }

    /// A prompt that the agent found no sense in: it had no turn.
    fn input_error(&mut self, named: Option<PromptId>, told: &TurnResult<'_>, out: &mut Out) {
        let id = named.or_else(|| self.prompts.refused().map(|known| known.id));
        let Some(id) = id else {
            // An agent whose input ends before any prompt came says so.
            if !matches!(self.closing, Closing::Sent { .. }) {
                out.finding("an input error of no known prompt");
            }
            return;
        };
        let failure = Failure::new(FailureKind::Input, errors(told));
        if let Some(turn) = &mut self.turn
            && turn.fresh == Some(id)
        {
            turn.fresh = None;
        }
        self.end_prompt(id, End::Failed(failure), Seen::Real, out);
        self.settle_quietly(out);
    }

    /// How the turn ended.
    fn end_of(&mut self, told: &TurnResult<'_>, blocked: Option<Text>) -> (End, Cut) {
        let stop = told.stop_reason.value().map(|word| Text::from(&**word));
        let reason = told.terminal_reason.as_deref().unwrap_or_default();
        let aborted = reason.starts_with("aborted") || stop.as_deref() == Some("cancelled");
        let shows = self
            .turn
            .as_ref()
            .is_some_and(|turn| turn.flow.cancelled || turn.wished.is_some() && aborted);
        let acknowledged = self.turn.as_ref().is_some_and(|turn| turn.cancel.is_some());
        if acknowledged || aborted || shows && told.subtype == ResultKind::ErrorDuringExecution {
            if let Some(turn) = &mut self.turn {
                turn.flow.cancelled = true;
            }
            return (End::Cancelled(self.why()), Cut::Cancelled);
        }
        if let Some(why) = blocked {
            return (End::Blocked(why), Cut::Over);
        }
        match &told.subtype {
            ResultKind::Success if told.is_error => {
                let why = self.failure(told);
                (End::Failed(why.clone()), Cut::Failed(why))
            }
            ResultKind::Success if reason == "hook_stopped" => {
                (End::Blocked("a hook ended the turn".into()), Cut::Over)
            }
            ResultKind::Success => (End::Finished { finish: stop }, Cut::Over),
            ResultKind::ErrorMaxTurns => (End::MaxSteps, Cut::Over),
            ResultKind::ErrorMaxBudgetUsd => (End::BudgetExhausted(BudgetKind::Money), Cut::Over),
            ResultKind::ErrorMaxStructuredOutputRetries => {
                let why = Failure::new(FailureKind::Capture, errors(told));
                (End::Incomplete(why), Cut::Over)
            }
            ResultKind::ErrorDuringExecution | ResultKind::Other(_) => {
                let why = self.failure(told);
                (End::Failed(why.clone()), Cut::Failed(why))
            }
        }
    }

    fn failure(&self, told: &TurnResult<'_>) -> Failure {
        let known = self.turn.as_ref().and_then(|turn| turn.flow.failed.clone());
        if let Some(known) = known {
            return known;
        }
        let code = match &told.api_error_status {
            Maybe::Value(code) => status(Some(code)),
            Maybe::Absent | Maybe::Null => None,
        };
        let text = match &told.result {
            Some(text) if told.subtype == ResultKind::Success => String::from(&**text),
            Some(_) | None => errors(told),
        };
        match code {
            Some(code) => failure(None, Some(code), &text),
            None => Failure::new(FailureKind::Internal, text),
        }
    }

    /// What the turn took, and what of it belongs to its last request.
    fn account(&mut self, told: &TurnResult<'_>) -> (Tail, TurnReport) {
        // claude sums up over the session.
        let session = self.config.policy.record_form == RecordForm::Provider;
        let flow = self.turn.as_ref().map(|turn| &turn.flow);
        let said = flow.map(|flow| flow.said).unwrap_or_default();
        let mut by_model = Vec::new();
        let models = told.model_usage.iter().flat_map(|models| &models.0);
        for (name, sum) in models.take(MOST_MODELS) {
            let price = |dollars: &Num<'_>| pico(dollars);
            let (mut used, mut price) = (model_usage(sum), sum.cost_usd.0.as_ref().and_then(price));
            if session {
                let before = self.sums.by_model.insert((**name).into(), (used, price));
                let (usage, cost) = before.unwrap_or_default();
                used = less(used, usage);
                price = price.map(|price| price.saturating_sub(cost.unwrap_or(0)));
            }
            if is_nothing(used) {
                continue;
            }
            let model = ModelRef {
                provider: self.info.model.provider.clone(),
                model: (&**name).into(),
            };
            by_model.push((model, used, cost(price)));
        }
        while self.sums.by_model.len() > MOST_MODELS {
            self.sums.by_model.pop_first();
        }
        let total = told.total_cost_usd.0.as_ref().and_then(pico);
        let spent = if session {
            let before = core::mem::replace(&mut self.sums.total, total.unwrap_or(0));
            total.map(|total| total.saturating_sub(before))
        } else {
            total
        };
        let all = by_model.iter().map(|(_, usage, _)| *usage);
        let rest = all.reduce(Usage::plus).map(|all| less(all, said));
        let tail = Tail {
            usage: rest.filter(|rest| !is_nothing(*rest)),
            cost: cost(spent),
            stop: told.stop_reason.value().map(|word| (&**word).into()),
        };
        let report = TurnReport {
            wall_us: ms_us(&told.duration_ms).unwrap_or(0),
            api_us: ms_us(&told.duration_api_ms),
            requests: None,
            by_model,
            denials: Vec::new(),
        };
        (tail, report)
    }

    pub(super) fn end_prompt(&mut self, id: PromptId, end: End, seen: Seen, out: &mut Out) {
        if let Some(Known { uuid, .. }) = self.prompts.take(id) {
            self.prompts.done(uuid);
            out.event(RunId::MAIN, seen, What::PromptEnded { prompt: id, end });
        }
    }

    /// Ends every prompt that isn't applied.
    pub(super) fn end_prompts(&mut self, end: &End, out: &mut Out) {
        for id in self.prompts.ids() {
            self.end_prompt(id, end.clone(), Seen::Inferred, out);
        }
    }

    /// The turn is over: its end, and those of its prompts.
    fn finish(&mut self, end: End, cut: &Cut, tail: Tail, mut report: TurnReport, out: &mut Out) {
        let seen = if report == TurnReport::default() {
            Seen::Inferred
        } else {
            Seen::Real
        };
        self.end_compaction(CompactionFault::Cancelled, out);
        // What the agent has begun with was part of the turn, though nothing came of it.
        for id in self
            .turn
            .as_mut()
            .map(|turn| core::mem::take(&mut turn.due))
            .unwrap_or_default()
        {
            self.apply(id, Seen::Inferred, out);
        }
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        turn.flow.end_step(cut, tail, &mut self.book, out);
        self.runs.turn_over(cut, &mut self.book, out);
        let (calls, asks) = self.book.parts();
        let again = asks.turn_over(turn.asked, cut, calls, out);
        let answer = turn.flow.answer.take().filter(|_| end.is_finished());
        if report.wall_us == 0 {
            report.wall_us = out.now().mono_us.saturating_sub(turn.began_us);
        }
        report.api_us = report.api_us.or(Some(turn.flow.api_us));
        report.requests = Some(turn.flow.requests);
        report.denials = self.book.calls.take_denied();
        let pending = Pending {
            queued: u32::try_from(self.prompts.len()).unwrap_or(u32::MAX),
            background: self.runs.any_job(),
            resumes: false,
        };
        out.event(
            RunId::MAIN,
            seen,
            What::TurnEnded {
                turn: turn.id,
                end: end.clone(),
                answer: answer.map(TurnAnswer::Text),
                report: report.into(),
                pending,
            },
        );
        for Applied { id, uuid } in turn.prompts {
            self.prompts.done(uuid);
            let end = end.clone();
            out.event(RunId::MAIN, seen, What::PromptEnded { prompt: id, end });
        }
        // A prompt that was stopped before it was applied.
        if let (Some(id), Some(_)) = (turn.fresh, turn.blocked) {
            self.end_prompt(id, end, seen, out);
        }
        self.book.asks.again(again, out);
    }

    /// The agent is gone in the middle of the turn.
    pub(super) fn end_turn_gone(&mut self, failure: &Failure, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let leaving = matches!(self.closing, Closing::Sent { now: true });
        let told = turn.cancel.is_some() || turn.flow.cancelled;
        let (end, cut) = if leaving || told || self.signal.is_some() {
            turn.flow.cancelled = true;
            (End::Cancelled(self.why()), Cut::Cancelled)
        } else {
            (End::Failed(failure.clone()), Cut::Gone(failure.clone()))
        };
        self.finish(end, &cut, Tail::NONE, TurnReport::default(), out);
    }

    /// An agent without states doesn't say that all is quiet, and one that has said so doesn't say it again when what
    /// waited then is gone.
    pub(super) fn settle_quietly(&mut self, out: &mut Out) {
        let idle = self.turn.is_none() && self.prompts.is_empty() && !self.compacting;
        if (!self.states || self.idle) && idle && core::mem::take(&mut self.active) {
            out.infer(What::Settled);
        }
    }

    pub(super) fn end_compaction(&mut self, fault: CompactionFault, out: &mut Out) {
        if core::mem::take(&mut self.compacting) {
            let result = Err(fault);
            out.infer(What::CompactionEnded { result });
        }
    }

    /// Nothing runs: the agent is told to leave, if that was asked for.
    pub(super) fn idle(&mut self, out: &mut Out) {
        if self.closing != Closing::Draining || !self.opened || !self.early.is_empty() {
            return;
        }
        let runs = self.turn.is_some() || self.compacting || self.active;
        if !runs && self.prompts.is_empty() && self.books.is_empty() {
            self.close_input(false, out);
        }
    }
}

/// What went wrong, in one text.
fn errors(told: &TurnResult<'_>) -> String {
    let errors = told.errors.as_deref().unwrap_or_default();
    let texts: Vec<&str> = errors.iter().map(|error: &Lazy<'_>| &**error).collect();
    texts.join("\n")
}
