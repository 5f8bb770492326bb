//! Compaction: older messages give way to a summary that the model writes of them.
//!
//! It happens by hand, at a boundary once the mark is reached, or before a step's next attempt when the provider says
//! that the request doesn't fit; never between a call and its result (S-59). What is kept is the end of the history,
//! from a message of the user's or a whole batch of calls on.

use alloc::{boxed::Box, collections::BTreeSet, format, string::String, sync::Arc, vec::Vec};

use super::{
    Session, estimate,
    hooks::{Chain, Owner},
    phase::{Phase, Sent, Tried, Turn},
    retry::{account, no_completion},
};
use crate::json::{Members, ScanRules, scan};
use crate::session::config::{AfterCompaction, Futile, WhenBusy};
use crate::vocab::{
    Answer, AskClose, Block, CommandId, Compacted, CompactionFault, Effect, End, Failure,
    FailureKind, Hit, HookFacts, Message, MessageId, ModelChunk, Origin, QueueFate, RawJson,
    Refusal, RequestId, Role, Segment, Text, Trigger, Usage, What,
};

/// What is left free beside the largest output.
const RESERVE: u64 = 1_024;
/// The kept part is at most one in so many of what the history holds, or of what it may hold below the mark.
const KEPT: u64 = 3;

/// What the model is asked for, behind the messages that the summary stands for.
const INSTRUCTION: &str = "Summarise the conversation above. Your summary takes the place of these messages, so \
    everything that is needed to go on must be in it. Write down: what the user asked for, in the user's own words \
    where the wording matters; what was decided, and why; what was done and what came of it, with paths, names, \
    numbers, commands and error texts exactly as they were; what is still open, and what comes next. An earlier \
    summary is part of the conversation. Leave out pleasantries and what no longer matters. Call no tool, and answer \
    with the summary alone.";

/// Phase 10.
pub(super) struct Compacting {
    pub request: RequestId,
    /// What the request is made of: the messages to be cut, and the instruction.
    pub messages: Vec<Arc<Message>>,
    pub sent: Sent,
    pub stall_at_us: Option<u64>,
    pub then: Then,
    trigger: Trigger,
    /// What the host wants the summary to keep in mind.
    wishes: Option<Text>,
    /// The hooks that are told of it.
    hooks: Chain,
    plan: Plan,
    started_us: u64,
    begun: bool,
    finished: bool,
    /// Bytes of all that came.
    bytes: usize,
    summary: String,
    usage: Option<Usage>,
}

/// A compaction that waits for the end of the turn.
pub(super) struct Queued {
    pub instructions: Option<Text>,
}

/// What follows a compaction.
pub(super) enum Then {
    /// It was asked for by hand.
    Idle,
    /// The boundary of a turn.
    Boundary(Box<Turn>),
    /// The next attempt of a turn's step.
    Attempt(Box<Turn>, Next),
}

impl Then {
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Then::Idle => None,
            Then::Boundary(turn) | Then::Attempt(turn, _) => Some(turn),
        }
    }

    pub fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Then::Idle => None,
            Then::Boundary(turn) | Then::Attempt(turn, _) => Some(turn),
        }
    }
}

/// The attempt to come.
pub(super) struct Next {
    pub number: u32,
    pub tried: Tried,
    /// Why the last one failed.
    pub why: Failure,
}

/// What is cut.
#[derive(Clone, Copy)]
struct Plan {
    /// Messages of the history, from its beginning.
    cut: usize,
    /// How many of them no summary has stood for yet.
    fresh: u32,
    /// Their numbers, counted from the session's first message.
    span: (u64, u64),
    /// Tokens in use before.
    before: u64,
}

impl Session {
    /// `Compact`.
    pub(super) fn compact(&mut self, command: CommandId, instructions: Option<Text>) {
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        if let Phase::Idle = self.phase {
            if !self.has_room() {
                return self.refuse(command, Refusal::Full);
            }
            self.answer(command, Answer::Done);
            return self.compact_now(instructions.as_ref());
        }
        let waits = self.phase.turn().is_some()
            && self.config.policy.compaction.when_busy == WhenBusy::Queue
            && self.compact_queued.is_none();
        let size = instructions.as_ref().map_or(0, |text| text.len());
        if !waits {
            return self.refuse(command, Refusal::Busy);
        }
        if size > self.config.limits.prompt_bytes {
            return self.refuse(command, Refusal::TooLarge);
        }
        self.answer(command, Answer::Done);
        self.compact_queued = Some(Queued { instructions });
    }

    /// By hand, while idle.
    pub(super) fn compact_now(&mut self, instructions: Option<&Text>) {
        match self.plan(self.estimate.used()) {
            Some(plan) => {
                self.active = true;
                self.start_compaction(Trigger::Manual, Then::Idle, plan, instructions);
            }
            // Nothing was done, so there is nothing that could settle.
            None => self.nothing_to_cut(Trigger::Manual),
        }
    }

    /// Whether a boundary leads to a compaction, which has then begun. The turn is given back if not.
    pub(super) fn compacts(&mut self, turn: Box<Turn>, used: u64) -> Result<(), Box<Turn>> {
        let policy = self.config.policy.compaction;
        let futile = match policy.futile {
            Futile::AtMark => self.mark(),
            Futile::AtWindow => self.spendable(),
        };
        let due = self.info.settings.auto_compact
            && !turn.compaction_failed
            && used >= self.mark()
            && self.estimate.fixed() < futile;
        let plan = self
            .plan(used)
            .filter(|plan| due && self.affords(&turn, plan));
        match plan {
            Some(plan) => {
                self.start_compaction(Trigger::Auto, Then::Boundary(turn), plan, None);
                Ok(())
            }
            None => Err(turn),
        }
    }

    /// The provider says that the step's request doesn't fit. `Err`: nothing can be done about it.
    pub(super) fn overflowed(
        &mut self,
        turn: Box<Turn>,
        next: Next,
    ) -> Result<(), (Box<Turn>, Next)> {
        if !self.info.settings.auto_compact {
            return Err((turn, next));
        }
        let Some(plan) = self.plan(self.estimate.used()) else {
            self.nothing_to_cut(Trigger::Overflow);
            return Err((turn, next));
        };
        if !self.affords(&turn, &plan) {
            return Err((turn, next));
        }
        self.start_compaction(Trigger::Overflow, Then::Attempt(turn, next), plan, None);
        Ok(())
    }

    /// The window without the reserve.
    fn spendable(&self) -> u64 {
        let default = || self.model.max_output.unwrap_or(0).saturating_add(RESERVE);
        let reserve = self.config.policy.compaction.reserve;
        self.model
            .window
            .saturating_sub(reserve.unwrap_or_else(default))
    }

    pub(super) fn mark(&self) -> u64 {
        let percent = u128::from(self.config.policy.compaction.at_percent);
        let mark = (u128::from(self.spendable()) * percent).div_ceil(100);
        u64::try_from(mark).unwrap_or(u64::MAX)
    }

    /// What can be cut: everything before the kept part, and more than a summary.
    fn plan(&self, before: u64) -> Option<Plan> {
        let summarised = usize::from(
            self.history
                .first()
                .is_some_and(|message| message.role == Role::Summary),
        );
        let cut = self.kept_from();
        let fresh = u32::try_from(cut.checked_sub(summarised)?).unwrap_or(u32::MAX);
        let from = self.compacted_to.saturating_add(1);
        // A summary that was there before the session is a message like others.
        let counted = if self.compacted_to == 0 {
            u64::from(fresh).saturating_add(u64::try_from(summarised).unwrap_or(0))
        } else {
            u64::from(fresh)
        };
        (fresh > 0).then(|| Plan {
            cut,
            fresh,
            span: (from, self.compacted_to.saturating_add(counted)),
            before,
        })
    }

    /// Where the kept part begins: as early as its size allows, at a message of the user's or at a reply with calls,
    /// so that no call is parted from its result. The whole length: nothing is kept.
    fn kept_from(&self) -> usize {
        let weights = || self.history.iter().map(|message| estimate::weight(message));
        let all = self.estimate.scaled(weights().fold(0, u64::saturating_add));
        let room = if self.model.window == 0 {
            all
        } else {
            self.mark().saturating_sub(self.estimate.fixed()).min(all)
        };
        let mut kept = 0_u64;
        let mut from = self.history.len();
        for (at, message) in self.history.iter().enumerate().rev() {
            kept = kept.saturating_add(estimate::weight(message));
            if self.estimate.scaled(kept) > room / KEPT {
                break;
            }
            if message.role == Role::User || message.calls().next().is_some() {
                from = at;
            }
        }
        from
    }

    /// Whether the turn's budget has room for the request of a compaction.
    fn affords(&self, turn: &Turn, plan: &Plan) -> bool {
        let Some(max) = self.config.budgets.tokens else {
            return true;
        };
        let cut = self.history.iter().take(plan.cut);
        let raw = cut.fold(0_u64, |sum, message| {
            sum.saturating_add(estimate::weight(message))
        });
        turn.tokens.saturating_add(self.estimate.scaled(raw)) <= max
    }

    fn start_compaction(
        &mut self,
        trigger: Trigger,
        then: Then,
        plan: Plan,
        instructions: Option<&Text>,
    ) {
        let wishes = instructions.filter(|text| !text.trim().is_empty()).cloned();
        let facts = || HookFacts::Compaction {
            trigger,
            instructions: wishes.clone(),
        };
        let mut hooks = self.chain(Owner::Compaction, None, self.now);
        self.next_hook(&mut hooks, Owner::Compaction, facts);
        self.say(What::CompactionStarted {
            trigger,
            span: Some(plan.span),
            tokens: Some(plan.before),
        });
        let request = RequestId(self.ids.request());
        let mut messages: Vec<Arc<Message>> = self.history.iter().take(plan.cut).cloned().collect();
        let sent = Sent {
            model: self.model_ref(),
            price: self.model.price.clone(),
            max_output: self.model.max_output,
            thinking: self.info.settings.thinking.clone(),
            thinking_budget: self.thinking_budget,
            tools: Arc::from(Vec::new()),
            messages: plan.cut,
            raw: 0,
        };
        let text = match &wishes {
            Some(more) => format!("{INSTRUCTION}\n\nThe user asks besides: {more}"),
            None => INSTRUCTION.into(),
        };
        messages.push(self.own_message(Role::User, Origin::Harness, &text, None));
        self.effects.models.issue(request.0);
        self.out.effect(Effect::StartModel(request));
        self.phase = Phase::Compacting(Box::new(Compacting {
            request,
            messages,
            sent,
            stall_at_us: self.stall_deadline(),
            then,
            trigger,
            wishes,
            hooks,
            plan,
            started_us: self.now.mono_us,
            begun: false,
            finished: false,
            bytes: 0,
            summary: String::new(),
            usage: None,
        }));
    }

    fn nothing_to_cut(&mut self, trigger: Trigger) {
        self.say(What::CompactionStarted {
            trigger,
            span: None,
            tokens: Some(self.estimate.used()),
        });
        let why = "there is nothing to summarise".into();
        self.say(What::CompactionEnded {
            result: Err(CompactionFault::Nothing(why)),
        });
    }

    /// A chunk of the summary's request.
    pub(super) fn compaction_chunk(&mut self, mut open: Box<Compacting>, chunk: &ModelChunk<'_>) {
        let (text, progress) = match chunk {
            ModelChunk::Text(text) => {
                open.summary.push_str(text);
                (*text, !text.is_empty())
            }
            // The model thinks before it writes; what it calls is never run.
            ModelChunk::Thinking(text)
            | ModelChunk::Signature(text)
            | ModelChunk::Redacted(text) => (*text, !text.is_empty()),
            ModelChunk::CallArgs { text, .. } => (*text, !text.is_empty()),
            ModelChunk::CallBegin { name, .. } => (*name, true),
            ModelChunk::CallEnd { .. } => ("", true),
            ModelChunk::Begin { .. } => ("", !core::mem::replace(&mut open.begun, true)),
            ModelChunk::Finish(_) => ("", !core::mem::replace(&mut open.finished, true)),
            ModelChunk::Usage(usage) => {
                open.usage = Some(*usage);
                ("", false)
            }
            ModelChunk::Alive => ("", false),
            ModelChunk::End => {
                let cut = no_completion("the stream ended before the summary finished", true);
                return self.compaction_over(open, cut);
            }
            ModelChunk::Failed { failure, .. } => {
                if open.finished {
                    let text = &failure.text;
                    let text = format!("the summary was complete, then its stream failed: {text}");
                    self.warn("stream", &text);
                }
                return self.compaction_over(open, failure.clone());
            }
        };
        open.bytes = open.bytes.saturating_add(text.len());
        let limit = self.config.limits.reply_bytes;
        if open.bytes > limit {
            self.stop_model(open.request);
            open.finished = false;
            let text = format!("the summary is longer than {limit} bytes");
            return self.compaction_over(open, no_completion(&text, false));
        }
        if progress {
            open.stall_at_us = self.stall_deadline();
        }
        self.phase = Phase::Compacting(open);
    }

    /// The stall timer fired: a summary that had finished stands.
    pub(super) fn compaction_stalled(&mut self, open: Box<Compacting>) {
        self.stop_model(open.request);
        let failure = no_completion(
            "the stream brought nothing more before the summary finished",
            true,
        );
        self.compaction_over(open, failure);
    }

    /// The request is over: what is whole becomes the summary, else the failure is why there is none.
    fn compaction_over(&mut self, mut open: Box<Compacting>, failure: Failure) {
        self.count(&mut open);
        let text = open.summary.trim();
        let result = if !open.finished {
            Err(failure)
        } else if text.is_empty() {
            Err(Failure {
                kind: FailureKind::Server,
                status: None,
                retryable: true,
                text: "the model wrote no summary".into(),
            })
        } else {
            Ok(Text::from(text))
        };
        match result {
            Ok(text) => {
                let compacted = self.replace_history(&mut open, text);
                self.drop_chain(&mut open.hooks, &AskClose::Superseded);
                self.say(What::CompactionEnded {
                    result: Ok(compacted),
                });
                self.compacted(*open);
            }
            Err(failure) => {
                let fault = CompactionFault::Failed(failure);
                match self.end_compaction(*open, fault) {
                    Then::Idle => self.phase = Phase::Idle,
                    Then::Boundary(turn) => self.past_compaction(turn),
                    // Sent again as it was, the request would fail again.
                    Then::Attempt(turn, next) => {
                        let end = End::Failed(next.why.clone());
                        self.give_up(turn, next.tried, next.why, end);
                    }
                }
            }
        }
    }

    /// What the request used goes into the turn's account.
    fn count(&mut self, open: &mut Compacting) {
        let api_us = self.now.mono_us.saturating_sub(open.started_us);
        let Compacting {
            then, usage, sent, ..
        } = open;
        let cost = self.cost_of(sent, usage.as_ref());
        let Some(turn) = then.turn_mut() else { return };
        turn.api_us = turn.api_us.saturating_add(api_us);
        turn.requests = turn.requests.saturating_add(1);
        if let Some(usage) = usage {
            turn.tokens = turn.tokens.saturating_add(usage.total().unwrap_or(0));
        }
        account(&mut turn.by_model, &sent.model, usage.as_ref(), &cost);
    }

    /// The summary takes the place of what it stands for.
    fn replace_history(&mut self, open: &mut Compacting, text: Text) -> Compacted {
        let Plan {
            cut,
            fresh,
            span,
            before,
        } = open.plan;
        let old = core::mem::take(&mut self.history);
        if let Some(turn) = open.then.turn_mut() {
            turn.added
                .extend(old.iter().skip(turn.history_from).cloned());
        }
        let cut_away: BTreeSet<MessageId> = old.iter().take(cut).map(|one| one.id).collect();
        let keep_from = old.get(cut).map(|message| message.id);
        let tail = old.last().map(|message| message.id);
        let mut summary = self.own_message(Role::Summary, Origin::Harness, &text, None);
        if let Some(summary) = Arc::get_mut(&mut summary) {
            summary.details = Some(details(keep_from));
        }
        let segment = keep_from.zip(tail).map(|(head, tail)| Segment {
            head,
            anchor: summary.id,
            tail,
        });
        self.estimate.forget_messages();
        self.remember(summary.clone());
        for (at, message) in old.into_iter().enumerate() {
            if at >= cut {
                self.remember(message);
                continue;
            }
            for block in &message.content {
                if let Block::ToolUse {
                    provider_id: Some(id),
                    ..
                } = block.as_ref()
                {
                    self.provider_ids.remove(id);
                }
            }
        }
        if let Some(turn) = open.then.turn_mut() {
            turn.added.push(summary);
            turn.history_from = self.history.len();
        } else {
            self.unsaved
                .retain(|message| !cut_away.contains(&message.id));
            self.unsaved.push(summary);
        }
        self.compacted_to = span.1;
        Compacted {
            span: Some(span),
            summary: Some(text),
            tokens_before: Some(before),
            tokens_after: Some(self.estimate.used()),
            messages: Some(fresh),
            keep_from,
            segment,
        }
    }

    /// On from a summary.
    fn compacted(&mut self, open: Compacting) {
        match open.then {
            Then::Idle => self.phase = Phase::Idle,
            Then::Boundary(turn) => {
                let after = self.config.policy.compaction.after;
                // A turn that has done nothing yet has nothing to give way from.
                if after == AfterCompaction::Yield && turn.steps > 0 {
                    let to_sequence = open.plan.span.1;
                    return self.finish_turn(turn, End::Yielded { to_sequence }, QueueFate::Run);
                }
                self.past_compaction(turn);
            }
            Then::Attempt(turn, next) => self.attempt_again(turn, next),
        }
    }

    fn attempt_again(&mut self, turn: Box<Turn>, next: Next) {
        match self.context_full(self.estimate.used()) {
            Some(failure) => {
                self.give_up(turn, next.tried, failure.clone(), End::Failed(failure));
            }
            None => self.start_attempt(turn, next.number, next.tried),
        }
    }

    /// What the hooks of the running compaction are told.
    pub(super) fn compaction_facts(&self) -> HookFacts {
        let told = match &self.phase {
            Phase::Compacting(open) => Some((open.trigger, open.wishes.clone())),
            Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Closed => None,
        };
        let (trigger, instructions) = told.unwrap_or((Trigger::Auto, None));
        HookFacts::Compaction {
            trigger,
            instructions,
        }
    }

    /// A hook was told of the compaction: the next one is.
    pub(super) fn tell_of_compaction(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Compacting(mut open) => {
                let (trigger, wishes) = (open.trigger, open.wishes.clone());
                let facts = || HookFacts::Compaction {
                    trigger,
                    instructions: wishes,
                };
                self.next_hook(&mut open.hooks, Owner::Compaction, facts);
                self.phase = Phase::Compacting(open);
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
            | Phase::Holding(..)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// Ends a compaction without a summary; gives back what it held up.
    fn end_compaction(&mut self, mut open: Compacting, fault: CompactionFault) -> Then {
        self.drop_chain(&mut open.hooks, &AskClose::Superseded);
        let mut then = open.then;
        if let Some(turn) = then.turn_mut() {
            turn.compaction_failed = true;
        }
        self.say(What::CompactionEnded { result: Err(fault) });
        then
    }

    /// Gives a compaction up with whatever it held up.
    pub(super) fn stop_compaction(
        &mut self,
        mut open: Box<Compacting>,
        fault: CompactionFault,
    ) -> Then {
        self.stop_model(open.request);
        self.count(&mut open);
        self.end_compaction(*open, fault)
    }

    /// Gives a compaction up; what it held up goes on without it. `false`: none was under way.
    pub(super) fn skip_compaction(&mut self, command: Option<CommandId>) -> bool {
        let open = match core::mem::take(&mut self.phase) {
            Phase::Compacting(open) => open,
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Closed) => {
                self.phase = other;
                return false;
            }
        };
        if let Some(command) = command {
            self.hit(command, Hit::Compaction);
        }
        match self.stop_compaction(open, CompactionFault::Cancelled) {
            Then::Idle => self.phase = Phase::Idle,
            Then::Boundary(turn) => self.past_compaction(turn),
            Then::Attempt(turn, next) => self.attempt_again(turn, next),
        }
        true
    }
}

/// What a summary remembers for a history that is written down message by message: the oldest message that it doesn't
/// stand for, of those before it.
fn details(keep_from: Option<MessageId>) -> RawJson {
    let id = keep_from.map_or_else(|| "null".into(), |id| format!("{}", id.0));
    RawJson(format!("{{\"keep_from\":{id}}}").into())
}

/// Where what the summary at a place kept begins; `None` if the history doesn't say.
fn kept_before(history: &[Arc<Message>], at: usize) -> Option<usize> {
    let summary = history.get(at).filter(|one| one.role == Role::Summary)?;
    let mut members = Members::default();
    let details = summary.details.as_ref()?.0.as_bytes();
    let details = scan(details, &ScanRules::LENIENT, &mut members).ok()?;
    match details.get("keep_from")?.decode::<Option<u64>>().ok()? {
        None => Some(at),
        Some(id) => history.iter().take(at).position(|one| one.id.0 == id),
    }
}

/// A history that was written down as it went: its last summary takes the place of what it stands for, which comes
/// first in the result.
pub(super) fn shortened(mut history: Vec<Arc<Message>>) -> [Vec<Arc<Message>>; 2] {
    let last = (0..history.len())
        .rev()
        .find_map(|at| Some((at, kept_before(&history, at)?)));
    let Some((at, kept)) = last else {
        return [Vec::new(), history];
    };
    let summary = history.remove(at);
    let summarised = history.splice(..kept, [summary]).collect();
    [summarised, history]
}
