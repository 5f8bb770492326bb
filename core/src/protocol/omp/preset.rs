//! The policy of a session behind this wire.

use crate::session::SessionConfig;
use crate::session::config::{
    AfterCompaction, ChangeSession, Compaction, ErrorPartial, Futile, Gates, HoldTurn, JobWhenIdle,
    LeftoverSteer, Parallel, Policy, PromptHook, RefuseAt, Retry, Snapshots, StoreFailure,
    ToolEndOrder, WhenBusy,
};
use crate::vocab::{Drain, Interrupting};

/// Sets what this contract decides for a session, and leaves the embedder's own (model, tools, rules, hooks, budgets,
/// the approval mode at the start) alone.
///
/// - Both queues are drained one at a time; a steer is heard at once, and detaches calls that can be detached; what
///   came too late for its turn waits for the next one (OMP-06).
/// - Hooks judge a prompt before it is acknowledged, in order of arrival; an abort cancels what is still judged.
/// - Calls of one reply run side by side, and end as they finish.
/// - Ten attempts, from half a second on, doubling, with jitter from the seed.
/// - A partial reply stays in the history when nothing is tried again.
/// - A compaction in a turn waits for its end.
/// - As many questions are open at once as there are calls; none runs out of time by itself.
/// - A job that ends while nothing runs begins a turn.
/// - A prompt may be as long as a host's line.
pub fn preset(config: &mut SessionConfig) {
    config.settings.steer_drain = Drain::One;
    config.settings.follow_up_drain = Drain::One;
    config.settings.interrupting = Interrupting::Immediate;
    config.settings.auto_retry = true;
    config.settings.auto_compact = true;
    config.policy = Policy {
        prompt_hook: PromptHook::AtSubmit,
        leftover_steer: LeftoverSteer::Keep,
        cancel_note: false,
        max_refusals: None,
        asks_at_once: u32::MAX,
        auto_silences_ask: true,
        recheck_changed_input: true,
        suggest: false,
        parallel: Parallel::All,
        tool_end_order: ToolEndOrder::Finish,
        snapshots: Snapshots::Never,
        error_partial: ErrorPartial::Keep,
        hold_turn: HoldTurn::No,
        job_when_idle: JobWhenIdle::StartTurn,
        retry: Retry {
            attempts: 10,
            backoff_us: [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
                .map(|ms| ms * 1_000)
                .to_vec(),
            jitter_percent: 20,
            max_wait_us: 60_000_000,
            unreached: 10,
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
            at_percent: 80,
            reserve: None,
            futile: Futile::AtMark,
            when_busy: WhenBusy::Queue,
            after: AfterCompaction::GoOn,
        },
        refuse_at: RefuseAt::OutputFits,
        change_session: ChangeSession::Always,
    };
    config.limits.prompt_bytes = super::HOST_LINE_MAX;
    config.limits.queued_bytes = config.limits.queued_bytes.max(super::HOST_LINE_MAX);
    config.timeouts.approval_us = None;
}
