//! The matrix of scenarios: what can happen in a turn, and the tests that play it at each level.

use std::fmt::Write as _;

use super::sources::Test;

/// Where the tests of a level stand.
const MEMORY: &str = "proptests/tests/";
const PROGRAM: &str = "cli/tests/";

/// A scenario, with its tests: file without ending, `::`, function.
struct Scene {
    what: &'static str,
    memory: &'static [&'static str],
    program: &'static [&'static str],
}

const fn scene(
    what: &'static str,
    memory: &'static [&'static str],
    program: &'static [&'static str],
) -> Scene {
    Scene {
        what,
        memory,
        program,
    }
}

const CANCEL: &str =
    "openmax/client_matrix::om_17_23_28_tw_07_a_cancel_ends_the_turn_in_every_phase";
const QUIT: &str =
    "openmax/client_matrix::om_09_quit_and_end_of_input_finish_the_turn_in_every_phase";
const RETRIED: &str =
    "openmax/client_matrix::om_26_27_29_what_a_provider_does_before_any_text_is_tried_again";
const FAILED: &str = "openmax/client_trio::om_21_22_24_26_27_what_a_provider_does";
const HOOKS: &str = "openmax/client_matrix::om_31_hooks_that_fail_or_hang";
const ASKED: &str = "openmax/client_trio::tools_in_ask_approved_declined_and_two_at_once";
const QUIT_PROGRAM: &str =
    "openmax/matrix::om_09_quit_and_end_of_input_finish_the_turn_in_every_phase";
const CANCEL_HOOK: &str = "openmax/hooks::om_23_a_cancel_ends_the_hook_that_runs";

/// The scenarios of openmax.
const SCENES: &[Scene] = &[
    scene(
        "text",
        &[
            "openmax/client_trio::text",
            "openmax/session::om_20_a_text_turn",
        ],
        &["openmax/turns::om_20_a_text_turn_with_usage"],
    ),
    scene(
        "thinking",
        &[
            "openmax/client_trio::thinking_and_a_retry_behind_it",
            "openmax/session::om_13_thinking_then_text",
        ],
        &["openmax/turns::om_13_thinking_then_text"],
    ),
    scene(
        "tools in auto",
        &["openmax/client_trio::tools_in_auto"],
        &[
            "openmax/turns::om_13_a_tool_call_writes_a_file_unasked_in_auto",
            "openmax/approvals::om_14_auto_never_asks",
        ],
    ),
    scene(
        "tools in ask, approved",
        &[ASKED],
        &["openmax/approvals::om_05_an_approved_call_runs"],
    ),
    scene(
        "tools in ask, declined",
        &[ASKED],
        &["openmax/approvals::om_05_a_declined_call_doesnt_run_and_the_turn_goes_on"],
    ),
    scene(
        "tools in ask, timed out",
        &["openmax/client_matrix::om_13_a_question_that_times_out_is_closed_and_the_turn_goes_on"],
        &["openmax/matrix::om_13_an_approval_that_times_out_is_closed_and_the_turn_goes_on"],
    ),
    scene(
        "tools in readonly",
        &["openmax/client_trio::tools_in_readonly"],
        &["openmax/approvals::om_05_readonly_refuses_what_writes_and_asks_nothing"],
    ),
    scene(
        "two gated calls: one question at a time",
        &[
            ASKED,
            "openmax/session::om_05_a_declined_write_and_one_question_at_a_time",
        ],
        &[
            "openmax/matrix::om_14_the_second_of_two_gated_calls_waits_behind_the_first_ones_question",
        ],
    ),
    scene(
        "two questions of another agent at once",
        &["openmax/client_matrix::om_11_14_two_questions_of_another_agent_are_answered_each"],
        &["commands/drive::om_14_two_questions_of_another_agent_are_answered_each"],
    ),
    scene(
        "cancel: before the request is sent (a hook judges the prompt)",
        &[CANCEL],
        &[CANCEL_HOOK],
    ),
    scene(
        "cancel: before the first byte",
        &[CANCEL],
        &["openmax/cancel::om_23_cancel_before_the_first_byte"],
    ),
    scene(
        "cancel: text streams",
        &[CANCEL],
        &["openmax/cancel::om_23_cancel_while_text_streams_keeps_what_was_shown"],
    ),
    scene(
        "cancel: a call's arguments stream",
        &[CANCEL],
        &["openmax/matrix::om_23_a_cancel_while_a_calls_arguments_stream_runs_nothing"],
    ),
    scene(
        "cancel: a tool runs",
        &[CANCEL],
        &[
            "openmax/cancel::e03_each_call_gets_one_result_though_the_second_was_cancelled",
            "openmax/cancel::p02_cancel_ends_a_running_command_and_its_whole_tree",
        ],
    ),
    scene(
        "cancel: an approval is open",
        &[CANCEL],
        &["openmax/approvals::e04_om_11_wrong_answers_settle_nothing"],
    ),
    scene(
        "cancel: the wait before a retry",
        &[CANCEL],
        &["openmax/cancel::om_28_cancel_in_the_wait_before_a_retry_and_the_attempt_never_goes_out"],
    ),
    scene(
        "cancel: a compaction runs",
        &[CANCEL],
        &["openmax/matrix::om_23_a_cancel_while_the_history_is_summarised_ends_the_turn"],
    ),
    scene(
        "cancel: a hook runs (before and after a call, at the end)",
        &[CANCEL],
        &[CANCEL_HOOK],
    ),
    scene(
        "cancel: at the boundary",
        &[
            CANCEL,
            "openmax/client_matrix::om_17_tw_07_a_cancel_at_the_boundary_changes_no_end_that_is_decided",
        ],
        &[
            "openmax/matrix::om_17_a_cancel_at_the_boundary_changes_no_end_that_is_decided",
            "openmax/cancel::om_17_cancel_and_a_prompt_in_one_write",
        ],
    ),
    scene(
        "quit in a turn",
        &[QUIT],
        &[
            QUIT_PROGRAM,
            "openmax/host::om_09_quit_and_end_of_input_drain_the_running_turn",
            "openmax/approvals::om_09_quit_declines_the_open_question_and_every_later_one",
        ],
    ),
    scene(
        "end of input in a turn",
        &[
            QUIT,
            "openmax/client_trio::om_09_a_half_close_drains_and_the_agent_leaves",
            "openmax/field::e05_input_closed_while_asking",
        ],
        &[
            QUIT_PROGRAM,
            "openmax/matrix::e05_input_closed_while_asking",
        ],
    ),
    scene(
        "provider: 500, 529",
        &[RETRIED],
        &["openmax/provider::om_26_a_server_fault_is_tried_again"],
    ),
    scene(
        "provider: 429, Retry-After",
        &[RETRIED, "openmax/cases::e06_how_long_to_wait"],
        &["openmax/provider::e06_om_27_retry_after_is_kept"],
    ),
    scene(
        "provider: a wait over a minute, a used-up quota",
        &[FAILED, "openmax/cases::e06_how_long_to_wait"],
        &[
            "openmax/provider::e06_om_27_more_than_a_minute_isnt_waited_for",
            "openmax/provider::e06_om_27_a_quota_that_is_used_up_isnt_tried_again",
        ],
    ),
    scene(
        "provider: unreachable",
        &[
            RETRIED,
            "openmax/session::om_29_three_attempts_that_never_reached_the_endpoint_give_up",
        ],
        &["openmax/provider::om_29_three_attempts_that_reach_nobody_are_enough"],
    ),
    scene(
        "provider: stream cut before text",
        &[RETRIED],
        &[
            "openmax/provider::om_26_a_connection_that_dies_before_the_reply_is_tried_again",
            "openmax/provider::om_26_thinking_of_a_dead_attempt_is_void_and_the_reply_starts_over",
        ],
    ),
    scene(
        "provider: stream cut after text",
        &[FAILED],
        &["openmax/provider::om_22_a_stream_that_dies_after_text_is_truncated_and_kept"],
    ),
    scene(
        "provider: an error inside the stream, before and after text",
        &[RETRIED, FAILED],
        &[
            "openmax/provider::d09_om_21_an_error_inside_the_stream",
            "openmax/provider::e07_overload_in_anthropics_stream",
        ],
    ),
    scene(
        "truncated, with a whole call",
        &[
            FAILED,
            "openmax/client_matrix::om_22_tw_05_a_whole_call_of_a_cut_reply_has_its_result_and_never_runs",
        ],
        &["openmax/provider::d08_om_22_a_call_of_a_stream_that_never_finished_isnt_run"],
    ),
    scene(
        "hooks that refuse",
        &[
            "openmax/client_trio::om_30_31_hooks",
            "openmax/session::om_30_a_refusal_is_stored_and_then_said_and_eight_are_honoured",
        ],
        &["openmax/hooks::om_30_a_turn_end_hook_refuses_once_and_the_model_is_told"],
    ),
    scene(
        "hooks that block",
        &["openmax/client_trio::om_30_31_hooks"],
        &["openmax/hooks::om_31_a_prompt_hook_blocks_and_the_model_is_never_asked"],
    ),
    scene(
        "hooks that fail",
        &[HOOKS],
        &[
            "openmax/hooks::om_31_a_prompt_hook_that_fails_blocks_if_it_decides_and_is_reported_if_it_observes",
            "openmax/hooks::om_31_a_pre_tool_hook_that_fails_denies_the_call",
            "openmax/hooks::a_post_tool_hook_adds_to_the_result_and_its_failure_is_reported",
        ],
    ),
    scene(
        "hooks that hang",
        &[HOOKS],
        &["openmax/hooks::om_31_a_hook_that_hangs_is_ended_when_its_time_is_up"],
    ),
    scene(
        "going on after a crash at each write, a stored refusal's too",
        &[
            "openmax/client_matrix::om_02_03_04_30_tw_08_a_crash_at_any_write_loses_nothing_that_was_acknowledged",
        ],
        &[
            "openmax/resume::om_04_a_crash_after_any_line_loses_nothing_that_was_acknowledged",
            "openmax/resume::om_04_a_crash_while_a_turn_is_saved_loses_nothing_that_was_acknowledged",
            "openmax/matrix::om_04_30_a_crash_at_any_line_keeps_a_refusal_that_was_said",
        ],
    ),
];

/// Scenarios that lack tests, and tests that aren't there.
pub fn wrong(tests: &[Test]) -> Vec<String> {
    let mut wrong = Vec::new();
    for scene in SCENES {
        for (level, folder, names) in [
            ("in memory", MEMORY, scene.memory),
            ("through the program", PROGRAM, scene.program),
        ] {
            if names.is_empty() {
                wrong.push(format!("\"{}\" has no test {level}", scene.what));
            }
            for name in names {
                if find(tests, folder, name).is_none() {
                    wrong.push(format!(
                        "\"{}\" names {folder}{name}, which isn't there",
                        scene.what
                    ));
                }
            }
        }
    }
    wrong
}

fn find<'t>(tests: &'t [Test], folder: &str, name: &str) -> Option<&'t Test> {
    let (file, name) = name.split_once("::")?;
    let path = format!("{folder}{file}.rs");
    tests
        .iter()
        .find(|test| test.path == path && test.name == name)
}

/// The table.
pub fn table(tests: &[Test]) -> String {
    let mut text = String::from("| scenario | in memory | through the program |\n|---|---|---|\n");
    let cell = |folder: &str, names: &[&str]| {
        let found = names.iter().filter_map(|name| find(tests, folder, name));
        let shown: Vec<String> = found
            .map(|test| format!("{}: `{}`", test.path, test.name))
            .collect();
        shown.join("<br>")
    };
    for scene in SCENES {
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            scene.what,
            cell(MEMORY, scene.memory),
            cell(PROGRAM, scene.program)
        );
    }
    text
}
