//! The policy of a session behind this wire.

use crate::session::SessionConfig;
use crate::session::config::{
    AfterCompaction, ChangeSession, Compaction, ErrorPartial, Futile, Gates, HoldTurn, JobWhenIdle,
    LeftoverSteer, Parallel, Policy, PromptHook, RefuseAt, Retry, Snapshots, StoreFailure,
    ToolEndOrder, WhenBusy,
};

/// Sets what this contract decides for a session, and leaves the embedder's own (model, tools, rules, hooks, budgets,
/// the mode at the start) alone.
///
/// - One question at a time; a request stays open until it is answered or cancelled, whatever becomes of the mode
///   (OM-14), so an embedder gives no hooks at [`HookPoint::Permission`](crate::vocab::HookPoint). In mode auto nothing
///   asks.
/// - Reads run side by side, unless they may be asked about; ends come in the order of the calls.
/// - Eight attempts, waits of 1, 2, 4, 8, 16, 16, 16 s; a longer `Retry-After` counts up to 60 s; three attempts in a
///   row that never reached the endpoint give up (OM-26 … OM-29).
/// - The history is summarised between two steps from 70 % of the window on, without the largest output and 1,024
///   tokens, unless the tool schemas alone take all of that.
/// - A failure inside the stream voids the text shown (OM-21).
/// - A hook's refusal, a mode and the end of a turn are durable before they are said (OM-07, OM-30); eight refusals
///   are honoured.
/// - A turn waits up to ten minutes for the jobs that it began; what ends later is told with the next prompt.
/// - A reply over 16 MiB, or of more than 128 calls, is truncated.
pub fn preset(config: &mut SessionConfig) {
    config.policy = Policy {
        prompt_hook: PromptHook::AtStart,
        // Neither steers nor changed input can come from this wire.
        leftover_steer: LeftoverSteer::Drop,
        recheck_changed_input: true,
        suggest: false,
        cancel_note: false,
        max_refusals: Some(8),
        asks_at_once: 1,
        auto_silences_ask: true,
        parallel: Parallel::QuietReads,
        tool_end_order: ToolEndOrder::Call,
        snapshots: Snapshots::Never,
        error_partial: ErrorPartial::Void,
        // No line of this wire begins a turn that nobody asked for.
        hold_turn: HoldTurn::Finite {
            limit_us: Some(seconds(600)),
        },
        job_when_idle: JobWhenIdle::NoticeOnly,
        retry: Retry {
            attempts: 8,
            backoff_us: [1, 2, 4, 8, 16, 16, 16].map(seconds).to_vec(),
            jitter_percent: 0,
            max_wait_us: seconds(60),
            unreached: 3,
        },
        gates: Gates {
            prompt: false,
            turn_end: true,
            refusal: true,
            mode: true,
            name: false,
        },
        store_failure: StoreFailure::GoOn,
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
    config.limits.prompt_bytes = super::HOST_LINE_MAX;
    config.limits.reply_bytes = 16 * 1024 * 1024;
    config.limits.reply_calls = 128;
    config.timeouts.approval_us = None;
}

const fn seconds(count: u64) -> u64 {
    count * 1_000_000
}
