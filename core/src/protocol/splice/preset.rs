//! The policy of a session behind this wire.

use super::HOST_LINE_MAX;
use crate::session::SessionConfig;
use crate::session::config::{
    AfterCompaction, ChangeSession, Compaction, ErrorPartial, Futile, Gates, HoldTurn, JobWhenIdle,
    LeftoverSteer, Parallel, Policy, PromptHook, RefuseAt, Retry, Snapshots, StoreFailure,
    ToolEndOrder, WhenBusy,
};

/// Sets what this contract decides for a session, and leaves the embedder's own (model, tools, rules, hooks, budgets, the
/// mode at the start) alone.
///
/// - Nobody can be asked: a question is answered as if its host had gone, which denies.
/// - Results come as calls finish; reads run side by side.
/// - Files are put aside before a call that writes is judged (SP-09).
/// - Three attempts; a partial reply whose request failed is void.
/// - A turn whose prompt or whose end can't be stored fails.
/// - There is one turn: nothing waits for it, and no job holds it.
pub fn preset(config: &mut SessionConfig) {
    config.policy = Policy {
        prompt_hook: PromptHook::AtStart,
        leftover_steer: LeftoverSteer::Drop,
        hold_turn: HoldTurn::No,
        job_when_idle: JobWhenIdle::NoticeOnly,
        cancel_note: false,
        max_refusals: Some(8),
        asks_at_once: u32::MAX,
        auto_silences_ask: true,
        recheck_changed_input: true,
        suggest: false,
        parallel: Parallel::Reads,
        tool_end_order: ToolEndOrder::Finish,
        snapshots: Snapshots::BeforeGate,
        error_partial: ErrorPartial::Void,
        retry: Retry {
            attempts: 3,
            ..Retry::default()
        },
        gates: Gates {
            prompt: false,
            turn_end: true,
            refusal: false,
            mode: false,
            name: false,
        },
        store_failure: StoreFailure::Fail,
        compaction: Compaction {
            at_percent: 70,
            reserve: None,
            futile: Futile::AtWindow,
            when_busy: WhenBusy::Refuse,
            after: AfterCompaction::GoOn,
        },
        refuse_at: RefuseAt::OutputFits,
        change_session: ChangeSession::Never,
    };
    config.limits.prompt_bytes = config.limits.prompt_bytes.max(2 * HOST_LINE_MAX);
    config.timeouts.approval_us = None;
}
