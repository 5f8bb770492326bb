//! The goal: what a session pursues by itself, a turn after the other, within a budget.
//!
//! A goal that is set is *armed* for so many turns. When a turn finished and nothing waits, the next one begins with a
//! prompt of the session's own (S-58); arming alone begins none. Any cancel disarms it, and a goal of an earlier process
//! comes back disarmed. In a turn a command about the goal has its place among the steers, and counts from there on.

use alloc::{format, string::String, vec::Vec};

use super::{
    Session, args,
    commands::OwedFor,
    phase::{Phase, Turn},
    queue::prompts::{Kind, Waiting},
};
use crate::vocab::{
    Answer, CommandId, End, FailureKind, Goal, GoalCommand, GoalEvent, GoalStatus, Level, Origin,
    PromptId, RawJson, Refusal, Role, Route, SideEffect, Text, ToolOutcome, ToolSpec, What,
    WriteId,
};

/// The goal and how far it may still go.
#[derive(Clone, Debug)]
pub(super) struct Pursuit {
    goal: Goal,
    /// Turns that one arming allows; `None`: no limit.
    allowed: Option<u32>,
    /// Turns begun since it was armed.
    begun: u32,
    armed: bool,
    /// The last turn ended so that another may begin.
    due: bool,
}

impl Pursuit {
    fn new(text: Text, allowed: Option<u32>, token_budget: Option<u64>) -> Self {
        let goal = Goal {
            text,
            status: GoalStatus::Active,
            turns_left: allowed,
            token_budget,
            tokens_used: 0,
        };
        let mut pursuit = Pursuit {
            goal,
            allowed,
            begun: 0,
            armed: false,
            due: false,
        };
        pursuit.arm();
        pursuit
    }

    /// What an earlier process pursued. Nobody has asked this one to go on.
    pub fn after(mut goal: Goal) -> Self {
        if matches!(goal.status, GoalStatus::Active | GoalStatus::Blocked) {
            goal.status = GoalStatus::Paused;
        }
        Pursuit {
            allowed: goal.turns_left,
            goal,
            begun: 0,
            armed: false,
            due: false,
        }
    }

    fn arm(&mut self) {
        self.goal.status = GoalStatus::Active;
        self.goal.turns_left = self.allowed;
        self.begun = 0;
        self.armed = self.allowed != Some(0);
    }

    fn disarm(&mut self, status: GoalStatus) {
        self.goal.status = status;
        self.armed = false;
        self.due = false;
    }

    /// Whether it is to be pursued.
    fn is_pursued(&self) -> bool {
        self.armed && self.goal.status == GoalStatus::Active
    }

    fn tokens_spent(&self) -> bool {
        let budget = self.goal.token_budget;
        budget.is_some_and(|budget| self.goal.tokens_used >= budget)
    }

    /// Whether another turn is within the budget.
    fn affords_turn(&self) -> bool {
        self.goal.turns_left != Some(0) && !self.tokens_spent()
    }
}

/// A command about the goal that has no reply yet.
pub(super) struct Asked {
    what: GoalCommand,
    /// Its place among the steers.
    arrival: u64,
    /// That place was reached.
    reached: bool,
    /// The write that it waits for, and what the goal is then.
    write: Option<(WriteId, Option<Pursuit>)>,
}

impl Asked {
    /// Whether only the disk can bring its reply.
    pub fn is_writing(&self) -> bool {
        self.write.is_some()
    }
}

/// The tool by which a model says how it stands with the goal: `met`, `blocked` with a reason, or `progress`.
pub fn goal_tool() -> ToolSpec {
    ToolSpec {
        name: "goal".into(),
        label: None,
        description: "Report on the session's goal: met once it is reached and checked, blocked (with the reason) \
            when you can't go on without the user, progress otherwise."
            .into(),
        schema: RawJson(
            "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\",\
             \"enum\":[\"met\",\"blocked\",\"progress\"]},\"reason\":{\"type\":\"string\"}},\
             \"required\":[\"status\"]}"
                .into(),
        ),
        side_effect: SideEffect::None,
        hidden: false,
        uri_arg: None,
        route: Route::Goal,
    }
}

impl Session {
    /// `Goal`.
    pub(super) fn goal_command(&mut self, command: CommandId, what: GoalCommand) {
        if what == GoalCommand::Get {
            let goal = self.goal.as_ref().map(|pursuit| pursuit.goal.clone());
            return self.answer(command, Answer::Goal(goal));
        }
        if !self.closing.is_open() {
            return self.refuse(command, Refusal::Closing);
        }
        if let GoalCommand::Set { text, .. } = &what {
            if text.trim().is_empty() {
                return self.refuse(command, Refusal::Empty);
            }
            if text.len() > self.config.limits.prompt_bytes {
                return self.refuse(command, Refusal::TooLarge);
            }
        }
        let idle = matches!(self.phase, Phase::Idle);
        let asked = Asked {
            what,
            arrival: self.ids.arrival(),
            reached: idle,
            write: None,
        };
        self.owe(command, OwedFor::Goal(asked));
        self.next_goal();
    }

    /// The place of all commands that came before a point is reached.
    pub(super) fn goals_until(&mut self, arrival: u64) {
        for owed in &mut self.owed {
            if let OwedFor::Goal(asked) = &mut owed.what
                && asked.arrival < arrival
            {
                asked.reached = true;
            }
        }
        self.next_goal();
    }

    /// Lets commands about the goal take effect, one after the other; each where its write is done, if it needs one.
    fn next_goal(&mut self) {
        loop {
            let mut all = self.owed.iter().filter_map(|owed| match &owed.what {
                OwedFor::Goal(asked) => Some((owed.command, asked)),
                OwedFor::Admission
                | OwedFor::Reload
                | OwedFor::Rewind { .. }
                | OwedFor::Setting { .. }
                | OwedFor::Run(_)
                | OwedFor::Session
                | OwedFor::Barrier => None,
            });
            let Some((command, asked)) = all.next() else {
                return;
            };
            if asked.is_writing() || !asked.reached {
                return;
            }
            match self.goal_after(&asked.what) {
                Err(refusal) => {
                    self.owed.retain(|owed| owed.command != command);
                    self.refuse(command, refusal);
                    self.pass_barriers();
                }
                Ok(next) if self.config.goals.stored => {
                    let write = self.store();
                    let now_us = self.now.mono_us;
                    let mut owed = self.owed.iter_mut();
                    if let Some(owed) = owed.find(|owed| owed.command == command)
                        && let OwedFor::Goal(asked) = &mut owed.what
                    {
                        asked.write = Some((write, next));
                        // What a close waits for begins only now.
                        owed.since_us = now_us;
                    }
                    return;
                }
                Ok(next) => self.goal_is(command, next),
            }
        }
    }

    /// What the goal is once a command has taken effect.
    fn goal_after(&self, what: &GoalCommand) -> Result<Option<Pursuit>, Refusal> {
        let known = || self.goal.clone().ok_or(Refusal::Unknown);
        match what {
            GoalCommand::Get => Ok(self.goal.clone()),
            GoalCommand::Clear => Ok(None),
            GoalCommand::Set {
                text,
                auto_turns,
                token_budget,
            } => {
                let allowed = auto_turns.or(self.config.goals.auto_turns);
                Ok(Some(Pursuit::new(text.clone(), allowed, *token_budget)))
            }
            GoalCommand::Pause => {
                let mut pursuit = known()?;
                pursuit.disarm(GoalStatus::Paused);
                Ok(Some(pursuit))
            }
            GoalCommand::Resume => {
                let mut pursuit = known()?;
                if pursuit.goal.status == GoalStatus::Completed {
                    return Err(Refusal::Invalid("the goal is met".into()));
                }
                pursuit.arm();
                Ok(Some(pursuit))
            }
        }
    }

    fn goal_is(&mut self, command: CommandId, next: Option<Pursuit>) {
        self.owed.retain(|owed| owed.command != command);
        self.goal = next;
        let goal = self.goal.as_ref().map(|pursuit| pursuit.goal.clone());
        self.answer(command, Answer::Goal(goal.clone()));
        self.say(What::Goal(GoalEvent::Changed(goal)));
        self.pass_barriers();
    }

    /// The write of a command about the goal was acknowledged or failed. `false`: none waits for it.
    pub(super) fn goal_stored(&mut self, write: WriteId, ok: &Result<(), Text>) -> bool {
        let before = self.goal_writes.len();
        self.goal_writes.retain(|(waits, _)| *waits != write);
        if self.goal_writes.len() < before {
            if let Err(detail) = ok {
                let text = format!("what became of the goal could not be stored: {detail}");
                self.notice(Level::Error, "store", &text);
            }
            return true;
        }
        let found = self.owed.iter_mut().find_map(|owed| match &mut owed.what {
            OwedFor::Goal(asked) if asked.write.as_ref().is_some_and(|(w, _)| *w == write) => {
                Some((owed.command, asked.write.take().and_then(|(_, next)| next)))
            }
            OwedFor::Goal(_)
            | OwedFor::Admission
            | OwedFor::Reload
            | OwedFor::Rewind { .. }
            | OwedFor::Setting { .. }
            | OwedFor::Run(_)
            | OwedFor::Session
            | OwedFor::Barrier => None,
        });
        let Some((command, next)) = found else {
            return false;
        };
        match ok {
            Ok(()) => self.goal_is(command, next),
            Err(detail) => {
                self.owed.retain(|owed| owed.command != command);
                let failure = super::failure(FailureKind::Store, detail);
                self.refuse(command, Refusal::Failed(failure));
                self.pass_barriers();
            }
        }
        self.next_goal();
        true
    }

    /// What a write about the goal holds: the goal as it is then.
    pub(super) fn goal_write(&self, write: WriteId) -> Option<Option<&Goal>> {
        let mut writes = self.goal_writes.iter();
        if let Some((_, goal)) = writes.find(|(waits, _)| *waits == write) {
            return Some(Some(goal));
        }
        self.owed.iter().find_map(|owed| match &owed.what {
            OwedFor::Goal(Asked {
                write: Some((waits, next)),
                ..
            }) if *waits == write => Some(next.as_ref().map(|pursuit| &pursuit.goal)),
            OwedFor::Goal(_)
            | OwedFor::Admission
            | OwedFor::Reload
            | OwedFor::Rewind { .. }
            | OwedFor::Setting { .. }
            | OwedFor::Run(_)
            | OwedFor::Session
            | OwedFor::Barrier => None,
        })
    }

    /// The disk takes too long for a command about the goal: it failed, and those behind it aren't tried.
    pub(super) fn goal_too_long(&mut self, late: &Text) {
        let mut failed = Vec::new();
        for owed in &self.owed {
            if let OwedFor::Goal(asked) = &owed.what {
                if let Some((write, _)) = &asked.write {
                    self.effects.writes.stop(write.0);
                }
                failed.push(owed.command);
            }
        }
        self.owed
            .retain(|owed| !matches!(owed.what, OwedFor::Goal(_)));
        for command in failed {
            let failure = super::failure(FailureKind::Store, late);
            self.refuse(command, Refusal::Failed(failure));
        }
        self.pass_barriers();
    }

    /// A model's report by a tool of the goal's.
    pub(super) fn goal_report(&mut self, input: &RawJson) -> (ToolOutcome, Text) {
        let word = |name: &str| args::member(input, name);
        let Some(pursuit) = &mut self.goal else {
            return (ToolOutcome::Failed, "there is no goal".into());
        };
        match word("status").as_deref() {
            Some("met") => {
                pursuit.disarm(GoalStatus::Completed);
                let goal = pursuit.goal.clone();
                self.keep_goal();
                self.say(What::Goal(GoalEvent::Changed(Some(goal))));
                (ToolOutcome::Ok, "the goal is met".into())
            }
            Some("blocked") => {
                let reason = word("reason").unwrap_or_else(|| "no reason was given".into());
                pursuit.goal.status = GoalStatus::Blocked;
                pursuit.due = false;
                self.keep_goal();
                self.say(What::Goal(GoalEvent::Blocked(reason)));
                let text = "the goal waits for the user";
                (ToolOutcome::Ok, text.into())
            }
            Some("progress") => (ToolOutcome::Ok, "noted".into()),
            Some(_) | None => {
                let text = "status is one of met, blocked, progress";
                (ToolOutcome::Failed, text.into())
            }
        }
    }

    /// Writes down what a model made of the goal. Nothing waits for it.
    fn keep_goal(&mut self) {
        if let Some(goal) = self.goal.as_ref().map(|pursuit| pursuit.goal.clone())
            && self.config.goals.stored
        {
            let write = self.store();
            self.goal_writes.push((write, goal));
        }
    }

    /// A prompt of the host's came: what blocked the goal may be gone.
    pub(super) fn unblock_goal(&mut self) {
        if let Some(pursuit) = &mut self.goal
            && pursuit.goal.status == GoalStatus::Blocked
        {
            pursuit.goal.status = GoalStatus::Active;
            self.say(What::Goal(GoalEvent::Unblocked));
        }
    }

    /// A cancel: no more turns are begun for the goal.
    pub(super) fn disarm_goal(&mut self) {
        if let Some(pursuit) = &mut self.goal
            && pursuit.armed
        {
            pursuit.disarm(GoalStatus::Paused);
            self.say(What::Goal(GoalEvent::Disarmed));
        }
    }

    /// A request used up tokens.
    pub(super) fn goal_used(&mut self, tokens: u64) {
        if let Some(pursuit) = &mut self.goal {
            let used = &mut pursuit.goal.tokens_used;
            *used = used.saturating_add(tokens);
        }
    }

    /// Whether the goal's tokens are used up; once they are it is disarmed, and that is said.
    pub(super) fn goal_spent(&mut self) {
        if let Some(pursuit) = &mut self.goal
            && pursuit.is_pursued()
            && pursuit.tokens_spent()
        {
            self.exhaust_goal();
        }
    }

    fn exhaust_goal(&mut self) {
        if let Some(pursuit) = &mut self.goal {
            let turns = pursuit.begun;
            pursuit.disarm(GoalStatus::Exhausted);
            self.active = true;
            self.say(What::Goal(GoalEvent::BudgetExhausted { turns }));
        }
    }

    /// A turn has ended: whether the goal goes on behind it.
    pub(super) fn goal_saw(&mut self, end: &End) {
        let on = matches!(end, End::Finished { .. } | End::Yielded { .. });
        if let Some(pursuit) = &mut self.goal {
            pursuit.due = on && pursuit.is_pursued();
        }
    }

    /// Whether a turn would begin for the goal once this one ended so.
    pub(super) fn goal_resumes(&self, end: &End) -> bool {
        let on = matches!(end, End::Finished { .. } | End::Yielded { .. });
        let pursuit = self.goal.as_ref();
        let goes_on = pursuit.is_some_and(|pursuit| pursuit.is_pursued() && pursuit.affords_turn());
        on && goes_on && self.closing.is_open()
    }

    /// Whether the goal has something to say while idle.
    pub(super) fn goal_is_due(&self) -> bool {
        self.closing.is_open() && self.goal.as_ref().is_some_and(|pursuit| pursuit.due)
    }

    /// Whether a command about the goal hasn't taken effect yet.
    pub(super) fn goal_is_asked(&self) -> bool {
        let mut owed = self.owed.iter();
        owed.any(|owed| matches!(owed.what, OwedFor::Goal(_)))
    }

    /// The prompt of the next turn for the goal; `None`: its budget is used up, which was said.
    pub(super) fn continue_goal(&mut self) -> Option<Waiting> {
        let how = self.how_to_report();
        let pursuit = self.goal.as_mut()?;
        pursuit.due = false;
        if !pursuit.affords_turn() {
            self.exhaust_goal();
            return None;
        }
        pursuit.begun = pursuit.begun.saturating_add(1);
        if let Some(left) = &mut pursuit.goal.turns_left {
            *left = left.saturating_sub(1);
        }
        let left = pursuit.goal.turns_left.unwrap_or(u32::MAX);
        let text = format!("Go on with the goal:\n{}\n\n{how}", pursuit.goal.text);
        Some(Waiting::own(
            PromptId(self.ids.own_prompt()),
            Kind::Prompt,
            Origin::GoalContinue { left },
            &text,
            self.ids.arrival(),
        ))
    }

    fn how_to_report(&self) -> String {
        let tool = self.tools.iter().find(|tool| tool.route == Route::Goal);
        match tool {
            Some(tool) => format!(
                "Once it is met, or when you can't go on, say so with the tool {}.",
                tool.name
            ),
            None => "Once it is met, or when you can't go on, say so.".into(),
        }
    }

    /// A turn for the goal begins: its first step brings the goal to mind.
    pub(super) fn remind_of_goal(&mut self, turn: &mut Turn) {
        let text = match &self.goal {
            Some(pursuit) if self.config.goals.remind => format!("[goal] {}", pursuit.goal.text),
            Some(_) | None => return,
        };
        let message = self.own_message(Role::User, Origin::GoalReminder, &text, None);
        turn.own.push(message);
    }

    /// A turn would finish: once in a turn the model is asked whether the goal is met. `false`: it isn't asked.
    pub(super) fn check_goal(&mut self, turn: &mut Turn) -> bool {
        let text = match &self.goal {
            Some(pursuit)
                if self.config.goals.check && pursuit.is_pursued() && !turn.goal_checked =>
            {
                &pursuit.goal.text
            }
            Some(_) | None => return false,
        };
        let text = format!("Is the goal met?\n{text}\n\n{}", self.how_to_report());
        turn.goal_checked = true;
        let message = self.own_message(Role::User, Origin::GoalCheck, &text, None);
        turn.own.push(message);
        true
    }

    /// A goal of an earlier process is there again, for all to see.
    pub(super) fn recall_goal(&mut self) {
        if let Some(goal) = self.config.goals.standing.take() {
            let pursuit = Pursuit::after(goal);
            let goal = Some(pursuit.goal.clone());
            self.goal = Some(pursuit);
            self.say(What::Goal(GoalEvent::Changed(goal)));
        }
    }
}

/// Writes about the goal that nothing waits for.
pub(super) type Writes = Vec<(WriteId, Goal)>;
