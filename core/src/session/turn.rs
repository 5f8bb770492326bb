//! From a prompt to the end of a turn.

use alloc::{boxed::Box, collections::VecDeque, format, string::String, sync::Arc, vec::Vec};

use super::{
    Session, args,
    hooks::{Chain, Owner, Says, turn_end_facts},
    intake::replace_text,
    phase::{Check, Fate, Gate, Phase, Save, Tried, Turn},
    queue::prompts::{Kind, Waiting},
};
use crate::session::config::{LeftoverSteer, PromptHook, RefuseAt, StoreFailure};
use crate::vocab::{
    AskClose, Block, BudgetKind, Cause, Drain, DropWhy, Effect, End, Failure, FailureKind,
    HookFacts, HookPoint, Level, Message, Origin, Pending, PromptId, QueueFate, Role, StepId, Text,
    TurnId, TurnReport, What, WriteId,
};

/// An idle session gives back a text buffer that grew beyond this.
const IDLE_BYTES: usize = 64 * 1024;

impl Session {
    /// Begins a turn with a prompt.
    pub(super) fn begin_turn(&mut self, prompt: Waiting, cause: Cause) {
        self.held = false;
        self.active = true;
        let id = TurnId(self.ids.turn());
        let turn = Turn {
            id,
            started_us: self.now.mono_us,
            steps: 0,
            open_step: None,
            applied: Vec::new(),
            to_apply: VecDeque::from([prompt]),
            own: Vec::new(),
            submitted: false,
            refusals: 0,
            tokens: 0,
            api_us: 0,
            requests: 0,
            by_model: Vec::new(),
            denials: Vec::new(),
            bad_captures: 0,
            jobs: Vec::new(),
            held_out: false,
            goal_checked: false,
            added: core::mem::take(&mut self.unsaved),
            history_from: self.history.len(),
            compaction_failed: false,
            answer: None,
            finish: None,
        };
        self.say(What::TurnStarted { turn: id, cause });
        let mut turn = Box::new(turn);
        if cause == Cause::Goal {
            self.remind_of_goal(&mut turn);
        }
        self.submit(turn);
    }

    /// The prompt-submit hooks judge the turn's prompt; those that a running reload brings, too.
    fn submit(&mut self, mut turn: Box<Turn>) {
        if self.reads_or_restores() {
            self.phase = Phase::Waiting(turn);
            return;
        }
        turn.submitted = true;
        self.say_unloaded();
        let first = turn.to_apply.front();
        let own = first.is_some_and(|prompt| prompt.id.is_session_made());
        let chain = match self.config.policy.prompt_hook {
            PromptHook::AtStart if !own => self.chain(Owner::Prompt, None, self.now),
            // They have judged it, or the session made it itself.
            PromptHook::AtStart | PromptHook::AtSubmit => Chain::default(),
        };
        self.admit(turn, chain);
    }

    /// Whether the driver is at something that a turn waits for: it reads the configuration anew, or puts files back.
    fn reads_or_restores(&self) -> bool {
        self.reloading.is_some() || self.restoring.is_some()
    }

    /// The next prompt-submit hook, or on to the first step.
    fn admit(&mut self, mut turn: Box<Turn>, mut chain: Chain) {
        let first = turn.to_apply.front();
        let facts = || HookFacts::Prompt {
            prompt: first.map_or(PromptId(0), |prompt| prompt.id),
            text: first.map_or_else(|| "".into(), |prompt| args::text_of(&prompt.content)),
        };
        if self.next_hook(&mut chain, Owner::Prompt, facts) {
            self.phase = Phase::Admitting(turn, chain);
            return;
        }
        if !self.config.policy.gates.prompt {
            return self.boundary(turn);
        }
        let mut messages = Vec::new();
        for prompt in &mut turn.to_apply {
            messages.push(self.message_of(prompt));
        }
        let write = self.store();
        self.phase = Phase::Saving(
            turn,
            Save {
                write,
                since_us: self.now.mono_us,
                messages,
                gate: Gate::Step,
            },
        );
    }

    /// A prompt-submit hook decided.
    pub(super) fn prompt_hook_said(&mut self, key: &Text, says: Says) {
        let (mut turn, chain) = match core::mem::take(&mut self.phase) {
            Phase::Admitting(turn, chain) => (turn, chain),
            other @ (Phase::Idle
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => {
                self.phase = other;
                return;
            }
        };
        let note = match says {
            Says::Deny { why, .. } => {
                return self.finish_turn(turn, End::Blocked(why), QueueFate::Run);
            }
            Says::Pass { note } => note,
            Says::Ask => None,
            Says::Allow { input, note, .. } => {
                if let (Some(text), Some(first)) = (
                    input.and_then(|raw| args::string(&raw)),
                    turn.to_apply.front_mut(),
                ) {
                    replace_text(&mut first.content, text);
                }
                note
            }
        };
        if let Some(note) = note {
            let message = self.own_message(Role::User, Origin::Hook(key.clone()), &note, None);
            turn.own.push(message);
        }
        self.admit(turn, chain);
    }

    /// The boundary before a step: every limit is looked at here.
    pub(super) fn boundary(&mut self, mut turn: Box<Turn>) {
        if self.reads_or_restores() || !self.has_room() {
            self.phase = Phase::Waiting(turn);
            return;
        }
        if self
            .config
            .budgets
            .steps
            .is_some_and(|max| turn.steps >= max)
        {
            return self.finish_turn(turn, End::MaxSteps, QueueFate::Run);
        }
        self.goal_spent();
        self.remind_of_plan(&mut turn);
        self.place_shells(true);
        let used = self.used_with(&turn);
        if let Err(turn) = self.compacts(turn, used) {
            self.step_or_end(turn, used);
        }
    }

    /// The boundary behind a compaction, whatever came of it.
    pub(super) fn past_compaction(&mut self, turn: Box<Turn>) {
        if !self.has_room() {
            self.phase = Phase::Waiting(turn);
            return;
        }
        self.place_shells(true);
        let used = self.used_with(&turn);
        self.step_or_end(turn, used);
    }

    /// What is left of the running turn's tokens, if they are bounded.
    pub(super) fn tokens_left(&self) -> Option<u64> {
        let used = self.phase.turn().map_or(0, |turn| turn.tokens);
        self.config
            .budgets
            .tokens
            .map(|max| max.saturating_sub(used))
    }

    /// The next step, unless a budget is spent or the context full.
    fn step_or_end(&mut self, turn: Box<Turn>, used: u64) {
        if let Some(max) = self.config.budgets.tokens
            && turn.tokens.saturating_add(used) > max
        {
            return self.finish_turn(
                turn,
                End::BudgetExhausted(BudgetKind::Tokens),
                QueueFate::Run,
            );
        }
        let money = self.config.budgets.pico_usd;
        if money.is_some_and(|max| self.spent_pico_usd >= max) {
            let end = End::BudgetExhausted(BudgetKind::Money);
            return self.finish_turn(turn, end, QueueFate::Run);
        }
        if let Some(failure) = self.context_full(used) {
            return self.finish_turn(turn, End::Failed(failure), QueueFate::Run);
        }
        self.start_step(turn);
    }

    /// The boundary, once what held it up is gone.
    pub(super) fn boundary_again(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Waiting(turn) if !turn.submitted => self.submit(turn),
            Phase::Waiting(turn) => self.boundary(turn),
            Phase::Tools(turn, batch) => self.tools_go(turn, batch),
            Phase::Holding(turn, until_us) => self.hold_on(turn, until_us),
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Checking(..)
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// What the next request would hold, in tokens.
    fn used_with(&self, turn: &Turn) -> u64 {
        let mut estimate = self.estimate.clone();
        for prompt in turn.to_apply.iter().chain(self.drained_steers()) {
            match &prompt.message {
                Some(message) => estimate.add_blocks(message.content.iter().map(Arc::as_ref)),
                None => estimate.add_blocks(prompt.content.iter()),
            }
            for (_, note) in &prompt.notes {
                estimate.add_blocks(core::iter::once(&Block::Text(note.clone())));
            }
        }
        for message in &turn.own {
            estimate.add_blocks(message.content.iter().map(Arc::as_ref));
        }
        for note in &self.notes {
            estimate.add_blocks(core::iter::once(&Block::Text(note.clone())));
        }
        estimate.used()
    }

    pub(super) fn context_full(&self, used: u64) -> Option<Failure> {
        let window = self.model.window;
        if window == 0 {
            return None;
        }
        let full = match self.config.policy.refuse_at {
            RefuseAt::OutputFits => {
                used.saturating_add(self.model.max_output.unwrap_or(0)) > window
            }
            RefuseAt::Percent(percent) => {
                used.saturating_mul(100) > window.saturating_mul(u64::from(percent))
            }
        };
        full.then(|| Failure {
            kind: FailureKind::ContextFull,
            status: None,
            retryable: false,
            text: format!("the context is full: an estimated {used} of {window} tokens").into(),
        })
    }

    /// The entries of the steer queue that the next step takes.
    fn drained_steers(&self) -> impl Iterator<Item = &Waiting> {
        let mut left = match self.info.settings.steer_drain {
            Drain::One => 1_usize,
            Drain::All => usize::MAX,
        };
        self.prompts
            .steers()
            .take_while(move |prompt| match prompt.kind {
                Kind::Context => true,
                Kind::Prompt | Kind::Job if left > 0 => {
                    left -= 1;
                    true
                }
                Kind::Prompt | Kind::Job => false,
            })
    }

    fn start_step(&mut self, mut turn: Box<Turn>) {
        turn.steps = turn.steps.saturating_add(1);
        let step = StepId(self.ids.step());
        turn.open_step = Some(step);
        self.plan_waits();
        self.say(What::StepStarted {
            step,
            number: turn.steps,
        });
        while let Some(prompt) = turn.to_apply.pop_front() {
            self.apply(&mut turn, prompt);
        }
        let drained = self.drained_steers().count();
        for _ in 0..drained {
            if let Some(prompt) = self.prompts.pop_steer() {
                self.goals_until(prompt.arrival);
                self.apply(&mut turn, prompt);
            }
        }
        let left = self.prompts.steers().next();
        let until = left.map_or(u64::MAX, |prompt| prompt.arrival);
        self.goals_until(until);
        self.add_notes(&mut turn);
        for message in core::mem::take(&mut turn.own) {
            self.say(What::Message(message.clone()));
            self.remember(message);
        }
        self.say(What::Context {
            used: self.estimate.used(),
            window: self.model.window,
            estimated: true,
        });
        self.start_attempt(turn, 1, Tried::default());
    }

    /// A whole reply without calls: does the turn end?
    pub(super) fn would_end(&mut self, mut turn: Box<Turn>) {
        if self.prompts.steer_waits() {
            self.end_step(&mut turn);
            return self.boundary(turn);
        }
        if self.turn_waits(&turn) {
            return self.hold(turn);
        }
        self.check_turn(turn);
    }

    /// The turn-end hooks judge whether the turn may end.
    pub(super) fn check_turn(&mut self, mut turn: Box<Turn>) {
        if self.check_goal(&mut turn) {
            self.end_step(&mut turn);
            return self.boundary(turn);
        }
        let chain = self.chain(Owner::TurnEnd, None, self.now);
        self.check_end(turn, chain);
    }

    /// The next turn-end hook, or the end that they let pass.
    fn check_end(&mut self, mut turn: Box<Turn>, mut chain: Chain) {
        let max = self.config.policy.max_refusals;
        if self.next_hook(&mut chain, Owner::TurnEnd, || turn_end_facts(&turn, max)) {
            self.phase = Phase::Checking(turn, Check { chain });
            return;
        }
        if self.prompts.steer_waits() {
            self.end_step(&mut turn);
            return self.boundary(turn);
        }
        if self.prompts.has_follow_up() {
            self.end_step(&mut turn);
            self.take_follow_ups(&mut turn);
            return self.boundary(turn);
        }
        let finish = turn.finish.clone();
        self.finish_turn(turn, End::Finished { finish }, QueueFate::Run);
    }

    /// A turn-end hook decided; one that `stops` the turn refuses nothing, and no other one does.
    pub(super) fn turn_end_hook_said(&mut self, key: &Text, says: Says, stops: bool) {
        let (turn, mut chain) = match core::mem::take(&mut self.phase) {
            Phase::Checking(turn, Check { chain }) => (turn, chain),
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Saving(..)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => {
                self.phase = other;
                return;
            }
        };
        if stops {
            self.drop_chain(&mut chain, &AskClose::Superseded);
            return self.check_end(turn, chain);
        }
        let reason = match says {
            Says::Pass { .. } | Says::Allow { .. } | Says::Ask => {
                return self.check_end(turn, chain);
            }
            Says::Deny { why, .. } => why,
        };
        if self
            .config
            .policy
            .max_refusals
            .is_some_and(|max| turn.refusals >= max)
        {
            self.say(What::HookFailed {
                hook: key.clone(),
                point: HookPoint::TurnEnd,
                detail: format!(
                    "its refusal isn't honoured: {} were in this turn. It said: {reason}",
                    turn.refusals
                )
                .into(),
            });
            return self.finish_turn(turn, End::Unverified, QueueFate::Run);
        }
        let message = self.own_message(Role::User, Origin::Hook(key.clone()), &reason, None);
        let hook = key.clone();
        if !self.config.policy.gates.refusal {
            return self.refused(turn, message, hook, reason);
        }
        let mut messages = self.added_by(&turn);
        messages.push(message.clone());
        let write = self.store();
        let gate = Gate::Refusal {
            message,
            hook,
            reason,
        };
        self.phase = Phase::Saving(
            turn,
            Save {
                write,
                since_us: self.now.mono_us,
                messages,
                gate,
            },
        );
    }

    /// A refusal is honoured: the turn goes on with it.
    fn refused(&mut self, mut turn: Box<Turn>, message: Arc<Message>, hook: Text, reason: Text) {
        let continuation = turn.refusals;
        let left = self
            .config
            .policy
            .max_refusals
            .map_or(u32::MAX, |max| max.saturating_sub(continuation));
        turn.refusals = turn.refusals.saturating_add(1);
        self.say(What::CompletionRefused {
            hook,
            reason,
            continuation,
            left,
        });
        self.end_step(&mut turn);
        turn.own.push(message);
        self.boundary(turn);
    }

    /// Asks for a durable write that gates something.
    pub(super) fn store(&mut self) -> WriteId {
        let write = WriteId(self.ids.write());
        self.effects.writes.issue(write.0);
        self.out.effect(Effect::Store(write));
        write
    }

    /// A write of the turn was acknowledged or failed.
    pub(super) fn stored(&mut self, write: WriteId, ok: Result<(), Text>) {
        match core::mem::take(&mut self.phase) {
            Phase::Saving(turn, save) if save.write == write => self.saved(turn, save.gate, ok),
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
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    fn saved(&mut self, turn: Box<Turn>, gate: Gate, ok: Result<(), Text>) {
        if let Err(detail) = &ok {
            let what = match gate {
                Gate::Step => "the prompt",
                Gate::Refusal { .. } => "the refusal of a turn-end hook",
                Gate::End { .. } => "the turn",
            };
            self.notice(
                Level::Error,
                "store",
                &format!("{what} could not be stored: {detail}"),
            );
        }
        let failure = match (&ok, self.config.policy.store_failure) {
            (Err(detail), StoreFailure::Fail) => Some(store_failure(detail)),
            (Err(_), StoreFailure::GoOn) | (Ok(()), StoreFailure::Fail | StoreFailure::GoOn) => {
                None
            }
        };
        match (gate, ok, failure) {
            (Gate::Step, _, Some(failure)) => {
                self.finish_turn(turn, End::Failed(failure), QueueFate::Run)
            }
            (Gate::Step, _, None) => self.boundary(turn),
            (
                Gate::Refusal {
                    message,
                    hook,
                    reason,
                },
                Ok(()),
                _,
            ) => self.refused(turn, message, hook, reason),
            (Gate::Refusal { .. }, Err(_), _) => {
                self.finish_turn(turn, End::Unverified, QueueFate::Run)
            }
            // Only a success can turn out to be none: a cancelled turn stays cancelled (S-17).
            (Gate::End { end, fate, .. }, _, Some(failure)) if end.is_finished() => {
                self.end_turn(turn, End::Failed(failure), fate)
            }
            (Gate::End { end, fate, .. }, _, _) => self.end_turn(turn, end, fate),
        }
    }

    /// A write isn't waited for any longer: at a turn's end, and anywhere in a turn that holds up a close.
    pub(super) fn flush_over(&mut self) {
        match core::mem::take(&mut self.phase) {
            Phase::Saving(
                turn,
                Save {
                    write,
                    gate: Gate::End { end, fate, .. },
                    ..
                },
            ) => {
                self.effects.writes.stop(write.0);
                self.notice(
                    Level::Error,
                    "store",
                    "store timed out: the turn's end did not wait for it",
                );
                self.end_turn(turn, end, fate);
            }
            Phase::Saving(turn, Save { write, gate, .. }) => {
                self.effects.writes.stop(write.0);
                self.saved(turn, gate, Err("the disk did not answer in time".into()));
            }
            other @ (Phase::Idle
            | Phase::Admitting(..)
            | Phase::Waiting(_)
            | Phase::Requesting(..)
            | Phase::Streaming(..)
            | Phase::Backoff(..)
            | Phase::Tools(..)
            | Phase::Checking(..)
            | Phase::Holding(..)
            | Phase::Compacting(_)
            | Phase::Closed) => self.phase = other,
        }
    }

    /// Closes the open step, if one is.
    pub(super) fn end_step(&mut self, turn: &mut Turn) {
        if let Some(step) = turn.open_step.take() {
            self.say(What::StepEnded { step });
        }
    }

    /// The end of the turn is decided: what it did is stored first where that gates it.
    pub(super) fn finish_turn(&mut self, mut turn: Box<Turn>, end: End, fate: QueueFate) {
        self.end_step(&mut turn);
        let fate = Fate {
            queue: fate,
            until: self.ids.last_arrival(),
        };
        if !self.config.policy.gates.turn_end {
            return self.end_turn(turn, end, fate);
        }
        let messages = self.added_by(&turn);
        let write = self.store();
        let flush_at_us = self
            .now
            .mono_us
            .saturating_add(self.config.timeouts.flush_us);
        self.phase = Phase::Saving(
            turn,
            Save {
                write,
                since_us: self.now.mono_us,
                messages,
                gate: Gate::End {
                    end,
                    fate,
                    flush_at_us,
                },
            },
        );
    }

    /// What a turn added to the history so far.
    fn added_by(&self, turn: &Turn) -> Vec<Arc<Message>> {
        let mut added = turn.added.clone();
        let newer = self.history.get(turn.history_from..);
        added.extend_from_slice(newer.unwrap_or_default());
        added
    }

    /// `TurnEnded`, the ends of its prompts, left-over steers, the queue's fate.
    fn end_turn(&mut self, turn: Box<Turn>, end: End, fate: Fate) {
        self.goals_until(u64::MAX);
        let Turn {
            id,
            started_us,
            applied,
            to_apply,
            api_us,
            requests,
            by_model,
            denials,
            answer,
            ..
        } = *turn;
        let keeps = self.leftovers() == LeftoverSteer::Keep;
        let kept = |after: u64| {
            let left = self.prompts.steers();
            left.filter(|p| keeps && p.kind == Kind::Prompt && p.arrival > after)
                .count()
        };
        let later = self.prompts.pending_after(fate.until) + kept(fate.until);
        let waits = match fate.queue {
            QueueFate::Drop => later,
            QueueFate::Keep | QueueFate::Run => self.prompts.pending() + kept(0),
        };
        let held = fate.queue == QueueFate::Keep && later == 0 && self.closing.is_open();
        // What jobs have to say waits with the prompts that are kept.
        let begin = self.jobs_begin_turns() && fate.queue != QueueFate::Drop;
        let jobs = match begin && !(held && waits > 0) {
            true => self.prompts.jobs(),
            false => 0,
        };
        let goes_on = !(held && waits > 0) && self.goal_resumes(&end);
        let resumes = waits > 0 && !held || jobs > 0 || goes_on;
        let waits = waits + jobs;
        let pending = Pending {
            queued: u32::try_from(waits).unwrap_or(u32::MAX),
            background: self.works_in_background(),
            resumes,
        };
        let report = TurnReport {
            wall_us: self.now.mono_us.saturating_sub(started_us),
            api_us: Some(api_us),
            requests: Some(requests),
            by_model,
            denials,
        };
        let answer = match end {
            End::Finished { .. } => answer,
            End::Local
            | End::Truncated(_)
            | End::MaxSteps
            | End::BudgetExhausted(_)
            | End::Unverified
            | End::Blocked(_)
            | End::Yielded { .. }
            | End::Aborted { .. }
            | End::Incomplete(_)
            | End::Cancelled(_)
            | End::Dropped(_)
            | End::Withdrawn
            | End::Failed(_)
            | End::NotSaid => None,
        };
        // Who hasn't answered by now was told all the same; no question outlasts a turn.
        self.stop_telling();
        self.say(What::TurnEnded {
            turn: id,
            end: end.clone(),
            answer,
            report: Box::new(report),
            pending,
        });
        for prompt in applied {
            self.say(What::PromptEnded {
                prompt,
                end: end.clone(),
            });
        }
        for prompt in &to_apply {
            self.unapplied(prompt, end.clone());
        }
        self.leave_steers(fate.queue);
        self.goal_saw(&end);
        if end.is_cancelled() {
            self.disarm_goal();
        }
        if fate.queue == QueueFate::Drop {
            self.drop_pending(DropWhy::Cancelled, fate.until);
        }
        self.held = held;
        if self.text.capacity() > IDLE_BYTES {
            self.text = String::new();
        }
        self.phase = Phase::Idle;
    }
}

fn store_failure(detail: &str) -> Failure {
    Failure {
        kind: FailureKind::Store,
        status: None,
        retryable: false,
        text: format!("storing failed: {detail}").into(),
    }
}
