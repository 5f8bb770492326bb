//! The goal: ids and times are the Server's own fold of the session's news.

use alloc::format;
use alloc::string::String;

use super::commands::whole;
use crate::json::Kind;
use crate::protocol::omp::wire::{
    Goal as GoalLine, GoalData, GoalOp, GoalResult, GoalState, GoalStatus as Word, Nullable,
};
use crate::vocab::{Goal, GoalCommand, GoalStatus};

/// What the session doesn't say of its goal.
#[derive(Clone, Debug, Default)]
pub(super) struct GoalNote {
    count: u64,
    text: String,
    created_ms: u64,
    updated_ms: u64,
}

impl GoalNote {
    /// The goal is this now.
    pub(super) fn news(&mut self, goal: Option<&Goal>, now_ms: u64) {
        let text = goal.map(|goal| &*goal.text).unwrap_or_default();
        if text != self.text {
            self.count += 1;
            self.text = text.into();
            self.created_ms = now_ms;
        }
        self.updated_ms = now_ms;
    }

    /// Goal and state.
    pub(super) fn wire<'a>(&self, goal: Option<&'a Goal>, now_ms: u64) -> GoalResult<'a> {
        let data = goal.map(|goal| self.data(goal, now_ms));
        let live = goal.filter(|goal| goal.status != GoalStatus::Completed);
        GoalResult {
            state: Nullable(live.map(|goal| GoalState {
                enabled: goal.status == GoalStatus::Active || goal.status == GoalStatus::Blocked,
                mode: "active".into(),
                goal: self.data(goal, now_ms),
                ..GoalState::default()
            })),
            goal: Nullable(data),
            ..GoalResult::default()
        }
    }

    fn data<'a>(&self, goal: &'a Goal, now_ms: u64) -> GoalData<'a> {
        GoalData {
            id: format!("goal-{}", self.count).into(),
            objective: (&*goal.text).into(),
            status: match goal.status {
                GoalStatus::Active | GoalStatus::Blocked => Word::Active,
                GoalStatus::Paused => Word::Paused,
                GoalStatus::Completed => Word::Complete,
                GoalStatus::Exhausted => Word::BudgetLimited,
            },
            token_budget: goal.token_budget.map(Into::into),
            tokens_used: goal.tokens_used.into(),
            time_used_seconds: (now_ms.saturating_sub(self.created_ms) / 1_000).into(),
            created_at: self.created_ms.into(),
            updated_at: self.updated_ms.into(),
            ..GoalData::default()
        }
    }
}

/// Reads a `goal`.
///
/// # Errors
/// The text of the failure.
pub(super) fn command(line: &GoalLine<'_>) -> Result<GoalCommand, String> {
    Ok(match &line.op {
        GoalOp::Get => GoalCommand::Get,
        GoalOp::Create => {
            let objective = line.objective.as_deref().unwrap_or_default().trim();
            if objective.is_empty() {
                return Err("goal create requires a non-empty objective".into());
            }
            let given = line
                .token_budget
                .get()
                .filter(|value| value.kind() != Kind::Null);
            let budget = whole(line.token_budget).filter(|tokens| *tokens > 0);
            if given.is_some() && budget.is_none() {
                return Err("token_budget must be a positive integer".into());
            }
            GoalCommand::Set {
                text: objective.into(),
                auto_turns: None,
                token_budget: budget,
            }
        }
        GoalOp::Pause => GoalCommand::Pause,
        GoalOp::Resume => GoalCommand::Resume,
        GoalOp::Drop => GoalCommand::Clear,
        GoalOp::Other(word) => return Err(format!("Unknown goal op: {word}")),
    })
}
