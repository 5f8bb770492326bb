//! The policy of a session behind this wire, and how its engine asks.

use super::{HARD_PERCENT, HOST_LINE_MAX, YIELD_PERCENT};
use crate::session::SessionConfig;
use crate::session::config::{
    AfterCompaction, ChangeSession, Compaction, ErrorPartial, Futile, Gates, HoldTurn, JobWhenIdle,
    LeftoverSteer, Parallel, Policy, PromptHook, RefuseAt, Retry, Snapshots, StoreFailure,
    ToolEndOrder, WhenBusy,
};
use crate::vocab::{ApprovalMode, Drain, Interrupting};

/// After so many steps without a word of it an open plan is brought to mind.
const PLAN_REMINDER: u32 = 10;

/// When an engine asks: `--approval`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asking {
    /// Nobody: what would have to be asked isn't offered to the model.
    #[default]
    Never,
    /// The host, who answers with `approval`. A run without one can't (OS-A12).
    Ask,
    /// Nobody, and both lines of a question that was allowed are written.
    Always,
}

impl Asking {
    /// The words, as the command line has them.
    pub const WORDS: [&'static str; 3] = ["never", "ask", "always"];

    /// The one of this word.
    pub fn of(word: &str) -> Option<Asking> {
        match word {
            "never" => Some(Asking::Never),
            "ask" => Some(Asking::Ask),
            "always" => Some(Asking::Always),
            _ => None,
        }
    }

    /// The session's mode.
    pub const fn mode(self) -> ApprovalMode {
        match self {
            Asking::Never | Asking::Always => ApprovalMode::Auto,
            Asking::Ask => ApprovalMode::Ask,
        }
    }
}

/// Sets what this contract decides for a session, and leaves the embedder's own (model, tools, rules, hooks, budgets, the
/// approval mode at the start) alone.
///
/// - All steers that wait are heard at the next boundary, and while calls run they wait; what came too late is dropped.
/// - As many questions are open at once as there are calls, and none runs out of time.
/// - Reads run side by side; results come in the order of the calls.
/// - Three attempts; a partial reply whose request failed is void.
/// - From 70 % of the window on the history is summed up, and the turn yields; more than 80 % isn't sent. A compaction that
///   is asked for in a turn waits.
/// - No prompt waits for its write, but a goal does, and it may begin up to 20 turns by itself.
/// - A plan that is open is brought to mind after ten steps without it.
/// - A job holds no turn open, and what is said of its end begins none.
pub fn preset(config: &mut SessionConfig) {
    config.settings.steer_drain = Drain::All;
    config.settings.interrupting = Interrupting::Wait;
    config.policy = Policy {
        prompt_hook: PromptHook::AtStart,
        leftover_steer: LeftoverSteer::Drop,
        hold_turn: HoldTurn::No,
        job_when_idle: JobWhenIdle::NoticeOnly,
        cancel_note: false,
        max_refusals: Some(8),
        asks_at_once: u32::MAX,
        auto_silences_ask: true,
        // Neither can a host change an input.
        recheck_changed_input: true,
        suggest: false,
        parallel: Parallel::Reads,
        tool_end_order: ToolEndOrder::Call,
        snapshots: Snapshots::Never,
        error_partial: ErrorPartial::Void,
        retry: Retry {
            attempts: 3,
            ..Retry::default()
        },
        gates: Gates {
            prompt: false,
            turn_end: false,
            refusal: false,
            mode: false,
            name: false,
        },
        store_failure: StoreFailure::GoOn,
        compaction: Compaction {
            at_percent: YIELD_PERCENT,
            reserve: Some(0),
            futile: Futile::AtMark,
            when_busy: WhenBusy::Queue,
            after: AfterCompaction::Yield,
        },
        refuse_at: RefuseAt::Percent(HARD_PERCENT),
        change_session: ChangeSession::Never,
    };
    config.goals.stored = true;
    config.plan_reminder = Some(PLAN_REMINDER);
    config.limits.prompt_bytes = HOST_LINE_MAX;
    config.limits.queued_bytes = config.limits.queued_bytes.max(HOST_LINE_MAX);
    config.timeouts.approval_us = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_09_an_engine_asks_only_where_it_was_started_to() {
        assert_eq!(Asking::default(), Asking::Never);
        for word in Asking::WORDS {
            let asking = Asking::of(word).expect("one of the words");
            assert_eq!(asking.mode() == ApprovalMode::Ask, word == "ask", "{word}");
        }
        assert_eq!(Asking::of("Ask"), None);
    }
}
