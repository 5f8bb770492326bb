//! The policy of a session behind this wire.

use super::Policy;
use super::policy::RecordForm;
use crate::session::SessionConfig;
use crate::session::config::{
    Compaction, ErrorPartial, Gates, Parallel, Retry, Snapshots, StoreFailure, ToolEndOrder,
    WhenBusy,
};

/// Sets what this contract decides for a session, and leaves the embedder's own (model, tools, rules, hooks, budgets,
/// the approval mode at the start) alone.
///
/// - Reads run side by side; calls end as they finish.
/// - As many questions are open at once as there are calls, and none runs out of time. An ask rule asks in every mode.
/// - Input that the host changed is taken as it is.
/// - Eight attempts; claude ten, from half a second on, and a cancelled turn leaves a note for the model.
/// - A partial reply whose request failed is void.
pub fn preset(config: &mut SessionConfig, policy: &Policy) {
    let claude = policy.record_form == RecordForm::Provider;
    let session = &mut config.policy;
    session.cancel_note = claude;
    session.max_refusals = None;
    session.asks_at_once = u32::MAX;
    session.auto_silences_ask = false;
    session.recheck_changed_input = false;
    session.suggest = claude;
    session.parallel = Parallel::Reads;
    session.tool_end_order = ToolEndOrder::Finish;
    session.snapshots = if claude {
        Snapshots::BeforeRun
    } else {
        Snapshots::Never
    };
    session.error_partial = ErrorPartial::Void;
    session.gates = Gates {
        prompt: false,
        turn_end: false,
        refusal: false,
        mode: false,
        name: false,
    };
    session.store_failure = StoreFailure::GoOn;
    session.compaction = Compaction {
        when_busy: WhenBusy::Queue,
        ..Compaction::default()
    };
    session.retry = Retry::default();
    if claude {
        session.retry.attempts = 10;
        session.retry.backoff_us = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]
            .map(|ms| ms * 1_000)
            .to_vec();
        session.retry.jitter_percent = 20;
        session.retry.unreached = 10;
    }
    config.limits.prompt_bytes = super::HOST_LINE_MAX;
    config.limits.queued_bytes = config.limits.queued_bytes.max(super::HOST_LINE_MAX);
    config.timeouts.approval_us = None;
}
