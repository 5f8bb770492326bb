//! The worlds reach what their protocols have: a world in which nothing happens finds nothing.

use std::collections::BTreeSet;

use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRng, TestRunner},
};
use serde_json::Value;
use turnwire::protocol::{observer::Dir, omp::Omp, openmax::Openmax, openseek::Openseek};
use turnwire_proptests::{
    scenario::{Scenario, bytes},
    world::{Speaks, run_over},
};

use super::MIXES;

/// Worlds in which everything must have come once. Most of it comes in the first hundred.
const MOST_WORLDS: usize = 1_000;

/// Plays worlds until each of these kinds of line was written.
#[track_caller]
fn reaches<P: Speaks>(expected: &[&str], kind: impl Fn(Dir, &Value) -> String) {
    let config = Config::default();
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let mut missing: BTreeSet<String> = expected.iter().map(|kind| (*kind).to_owned()).collect();
    for mix in MIXES.iter().cycle().take(MOST_WORLDS) {
        if missing.is_empty() {
            return;
        }
        let data = bytes(50).new_tree(&mut runner).unwrap().current();
        let mut scenario = Scenario::decode_with(mix, &data);
        scenario.setup.world = 0;
        let (_, told) = run_over::<P>(&scenario);
        for (dir, line) in &told.lines {
            let line: Value = serde_json::from_slice(line).unwrap_or_default();
            missing.remove(&kind(*dir, &line));
        }
    }
    panic!("no world reaches {missing:?}");
}

fn word(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

#[test]
fn worlds_of_openmax_reach_every_command_every_end_and_most_lines() {
    let kind = |dir, line: &Value| match dir {
        Dir::Host => word(line, "cmd"),
        Dir::Agent if line["type"] == "done" => format!("done {}", word(line, "stop_reason")),
        Dir::Agent => word(line, "type"),
    };
    reaches::<Openmax>(
        &[
            "user",
            "approve",
            "approval_mode",
            "reload",
            "cancel",
            "quit",
            "hello",
            "budget",
            "thinking",
            "token",
            "usage",
            "message_done",
            "tool_start",
            "tool_end",
            "approval_request",
            "approval_settled",
            "retry",
            "error",
            "hook_failed",
            "refrozen",
            "protocol_error",
            "done stop",
            "done cancelled",
            "done error",
            "done truncated",
            "done blocked",
            "done refused",
            "done max_iterations",
        ],
        kind,
    );
}

#[test]
fn worlds_of_omp_reach_commands_events_and_questions() {
    let kind = |dir, line: &Value| {
        let kind = word(line, "type");
        let more = ["command", "method", "status"].map(|name| word(line, name));
        let failed = if line["success"] == false {
            " failed"
        } else {
            ""
        };
        match dir {
            Dir::Host => kind,
            Dir::Agent => format!("< {kind} {}{failed}", more.concat()),
        }
    };
    reaches::<Omp>(
        &[
            "prompt",
            "abort",
            "abort_and_prompt",
            "abort_and_restore_queue",
            "abort_bash",
            "abort_retry",
            "bash",
            "compact",
            "extension_ui_response",
            "fork",
            "goal",
            "set_host_tools",
            "set_host_uri_schemes",
            "set_interrupt_mode",
            "set_model",
            "set_session_name",
            "< ready ",
            "< response prompt",
            "< response prompt failed",
            "< response parse failed",
            "< response abort_and_restore_queue",
            "< response bash",
            "< response compact",
            "< response compact failed",
            "< agent_start ",
            "< turn_start ",
            "< message_update ",
            "< tool_execution_start ",
            "< tool_execution_end ",
            "< turn_end ",
            "< agent_end ",
            "< prompt_result completed",
            "< prompt_result aborted",
            "< prompt_result error",
            "< session_settled ",
            "< queue_update ",
            "< auto_retry_start ",
            "< auto_retry_end ",
            "< auto_compaction_start ",
            "< auto_compaction_end ",
            "< extension_ui_request select",
            "< extension_ui_request cancel",
            "< extension_error ",
            "< host_tool_call ",
            "< notice ",
        ],
        kind,
    );
}

#[test]
fn worlds_of_openseek_reach_every_command_and_what_an_engine_says_of_a_session() {
    let kind = |dir, line: &Value| {
        let more = ["kind", "action", "outcome", "reason"].map(|name| word(line, name));
        match dir {
            Dir::Host => format!("> {} {}", word(line, "command"), more.concat()),
            Dir::Agent => format!("{} {}", word(line, "event"), more.concat()),
        }
    };
    reaches::<Openseek>(
        &[
            "> prompt ",
            "> steer prompt",
            "> steer command",
            "> compact ",
            "> cancel ",
            "> jobs_snapshot ",
            "> job_stop ",
            "> goal set",
            "> goal clear",
            "> approval ",
            "agent_setup_failed ",
            "agent_step ",
            "agent_aborted interrupted",
            "agent_finished ",
            "max_steps_exhausted ",
            "turn_failed ",
            "context_yield ",
            "assistant_delta ",
            "reasoning_delta ",
            "assistant_message ",
            "reasoning_message ",
            "usage ",
            "tool_result ",
            "tool_call_decode_error ",
            "approval_requested ",
            "approval_resolved allowed_once",
            "approval_resolved rejected",
            "approval_resolved cancelled",
            "steer_applied prompt",
            "steer_applied command",
            "steer_dropped ",
            "jobs_snapshot ",
            "job_stop_result wrong_runtime",
            "goal_updated ",
            "goal_continue ",
            "compaction_started ",
            "compaction_finished ",
            "compaction_failed ",
            "auto_compaction_started ",
            "auto_compaction_finished ",
            "auto_compaction_failed ",
            "session_error ",
            "command_error ",
        ],
        kind,
    );
}
