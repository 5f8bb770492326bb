//! The matrix of scenarios: what can happen in a turn, and the tests that play it at each level.

use std::fmt::Write as _;

use super::scenes_agentx;
use super::sources::Test;

/// Where the tests of a level stand.
const MEMORY: &str = "proptests/tests/";
const PROGRAM: &str = "cli/tests/";

/// A scenario, with its tests: file without ending, `::`, function.
pub struct Scene {
    what: &'static str,
    memory: &'static [&'static str],
    program: &'static [&'static str],
}

pub const fn scene(
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

/// The scenarios of omp. Behind a slash: the scene of a test that plays many.
const OMP_SCENES: &[Scene] = &[
    scene(
        "text",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 text [02]",
            "omp/client_recordings::omp_03_a_text_turn",
        ],
        &["omp/turns::omp_03_a_prompt_is_answered_and_then_done"],
    ),
    scene(
        "thinking",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 thinking, then text [03]",
            "omp/client_recordings::omp_03_thinking_comes_before_text",
        ],
        &["omp/turns::omp_03_thinking_comes_before_text"],
    ),
    scene(
        "tools side by side",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 two tools side by side [05]",
            "omp/client_recordings::omp_06_two_tools_side_by_side",
        ],
        &[
            "omp/tools::a_tool_runs_and_the_model_hears_of_it",
            "omp/tools::calls_of_one_reply_run_side_by_side_and_end_as_they_finish",
        ],
    ),
    scene(
        "a call approved, and one denied",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_13 approved, then denied [24]",
            "omp/client_recordings::omp_13_an_approval_is_a_permission",
        ],
        &["omp/tools::omp_13_a_call_is_approved_and_another_isnt"],
    ),
    scene(
        "a tool of the host's",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_11 a tool of the host's",
            "omp/client_questions::omp_11_a_host_s_tool_is_a_question",
        ],
        &["omp/tools::omp_11_a_tool_of_the_host_is_called_and_answers"],
    ),
    scene(
        "an address of the host's",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_12 a URI of the host's",
            "omp/client_questions::omp_12_a_host_s_address_is_a_question",
        ],
        &["omp/tools::omp_12_an_address_of_the_host_is_read_by_it"],
    ),
    scene(
        "a steer, a follow-up",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_06 a steer while streaming [07]",
            "omp/scenes::omp_03_scenes_give_their_lines / omp_06 a follow-up queued by a prompt [08]",
            "omp/client_recordings::omp_06_a_steer_goes_into_the_turn",
        ],
        &[
            "omp/queues::omp_06_a_steer_goes_into_the_run",
            "omp/queues::omp_06_a_follow_up_comes_after_it",
        ],
    ),
    scene(
        "a prompt in an open run",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_05 a prompt without a behaviour in a running turn",
            "omp/client_recordings::omp_05_a_busy_prompt_is_refused_once",
        ],
        &["omp/queues::omp_05_a_prompt_in_an_open_run_says_how_or_fails"],
    ),
    scene(
        "abort: nothing runs",
        &["omp/scenes::omp_03_scenes_give_their_lines / omp_07 an abort when idle"],
        &["omp/cancel::an_abort_with_nothing_to_abort_is_a_success"],
    ),
    scene(
        "abort: before the first byte",
        &["omp/scenes::omp_03_scenes_give_their_lines / omp_07 an abort before the first byte"],
        &["omp/cancel::omp_07_an_abort_before_the_first_byte"],
    ),
    scene(
        "abort: text streams",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_07 an abort while streaming",
            "omp/client_recordings::omp_07_an_abort_keeps_what_is_queued",
        ],
        &["omp/cancel::omp_07_an_abort_ends_the_run_and_the_session_goes_on"],
    ),
    scene(
        "abort: a tool runs",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_07 an abort while the last tool runs [10]",
            "omp/client_recordings::omp_07_an_abort_while_a_tool_runs",
        ],
        &["omp/cancel::omp_07_an_abort_in_a_tool_ends_its_processes"],
    ),
    scene(
        "abort: a tool of the host's runs",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_11 an abort while a tool of the host's runs",
            "omp/client_questions::omp_11_a_host_s_tool_fails_or_is_taken_back",
        ],
        &["omp/tools::omp_11_an_abort_reaches_a_tool_of_the_host"],
    ),
    scene(
        "abort: an approval is open",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_13 a cancel with a question open, a second call never begun",
        ],
        &["omp/cancel::omp_07_13_an_abort_takes_an_open_question_back"],
    ),
    scene(
        "abort: the wait before a retry",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 abort_retry in the wait, then a failure that isn't retried [32]",
            "omp/client_scenes::omp_07_an_abort_in_the_wait_of_a_retry",
        ],
        &["omp/cancel::a_retry_that_is_aborted_ends_the_prompt"],
    ),
    scene(
        "abort and a prompt in one",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_07 abort_and_prompt",
            "omp/client_scenes::omp_07_abort_and_prompt",
        ],
        &["omp/cancel::omp_07_an_abort_and_a_prompt_in_one"],
    ),
    scene(
        "provider: a refusal",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 abort_retry in the wait, then a failure that isn't retried [32]",
        ],
        &["omp/turns::omp_03_a_provider_that_refuses_ends_the_prompt_and_not_the_session"],
    ),
    scene(
        "provider: an attempt that fails and one that doesn't",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 a stream that failed after a message began is tried again [30]",
            "omp/client_recordings::omp_03_a_failed_attempt_is_part_of_its_step",
        ],
        &["omp/turns::a_failed_attempt_is_tried_again"],
    ),
    scene(
        "provider: stream cut after text",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 a failure inside the stream after text",
            "omp/scenes::omp_03_scenes_give_their_lines / omp_03 no completion signal, a half call",
        ],
        &["omp/turns::omp_03_a_stream_that_dies_after_text_is_an_error_that_keeps_it"],
    ),
    scene(
        "a command of the host's beside it",
        &[
            "omp/commands::omp_04_queries_wait_for_a_compact_and_shell_commands_dont",
            "omp/client_recordings::omp_04_a_shell_runs_beside_everything",
        ],
        &["omp/tools::omp_04_a_command_of_the_host_runs_beside_the_rest"],
    ),
    scene(
        "frames beyond the limit",
        &[
            "omp/frames::omp_09_frames_beyond_the_limit_shrink_in_protocol_1_and_come_in_chunks_in_protocol_2",
            "omp/client_recordings::omp_09_frames_in_pieces_are_whole_again",
        ],
        &[
            "omp/frames::omp_09_a_frame_beyond_the_limit_is_cut_and_whole_again",
            "omp/frames::omp_09_without_cutting_a_frame_is_made_smaller",
        ],
    ),
    scene(
        "history in pages",
        &["omp/frames::omp_10_history_is_read_as_it_was_said"],
        &["omp/turns::omp_10_messages_come_in_pages"],
    ),
    scene(
        "end of input in a run",
        &[
            "omp/scenes::omp_03_scenes_give_their_lines / omp_18 end of input with a tool of the host's open [21]",
            "omp/client_recordings::omp_18_the_end_of_input_ends_what_is_open",
        ],
        &[
            "omp/host::omp_18_the_end_of_input_ends_a_run_and_leaves_nothing_behind",
            "omp/host::omp_18_the_end_of_input_ends_a_stream",
        ],
    ),
    scene(
        "a signal in a run",
        &["omp/scenes::omp_03_scenes_give_their_lines / omp_18 a signal in a run"],
        &["omp/host::a_signal_ends_it_at_once_with_nothing_left_behind"],
    ),
    scene(
        "going on with a session",
        &["omp/client_lines::omp_10_the_history_of_a_session_is_told"],
        &["omp/foreign::a_session_is_kept_where_the_client_says_and_goes_on"],
    ),
];

/// The protocols, with their scenarios.
const MATRICES: &[(&str, &[Scene])] = &[
    ("openmax", SCENES),
    ("omp", OMP_SCENES),
    ("agentx", scenes_agentx::SCENES),
];

/// Scenarios that lack tests, and tests that aren't there. `source` gives the text of a file.
pub fn wrong(tests: &[Test], source: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut wrong = Vec::new();
    for (protocol, scene) in MATRICES
        .iter()
        .flat_map(|(name, scenes)| scenes.iter().map(move |scene| (name, scene)))
    {
        for (level, folder, names) in [
            ("in memory", MEMORY, scene.memory),
            ("through the program", PROGRAM, scene.program),
        ] {
            if names.is_empty() {
                wrong.push(format!(
                    "{protocol}: \"{}\" has no test {level}",
                    scene.what
                ));
            }
            for name in names {
                let there = find(tests, folder, name).is_some_and(|(test, scene)| {
                    scene.is_none_or(|scene| source(&test.path).contains(&format!("\"{scene}\"")))
                });
                if !there {
                    wrong.push(format!(
                        "{protocol}: \"{}\" names {folder}{name}, which isn't there",
                        scene.what
                    ));
                }
            }
        }
    }
    wrong
}

/// The test, and which of its scenes.
fn find<'t, 'n>(
    tests: &'t [Test],
    folder: &str,
    name: &'n str,
) -> Option<(&'t Test, Option<&'n str>)> {
    let (file, name) = name.split_once("::")?;
    let (name, scene) = match name.split_once(" / ") {
        Some((name, scene)) => (name, Some(scene)),
        None => (name, None),
    };
    let path = format!("{folder}{file}.rs");
    let test = tests
        .iter()
        .find(|test| test.path == path && test.name == name)?;
    Some((test, scene))
}

/// The tables.
pub fn table(tests: &[Test]) -> String {
    let mut text = String::new();
    let cell = |folder: &str, names: &[&str]| {
        let found = names.iter().filter_map(|name| find(tests, folder, name));
        let shown: Vec<String> = found
            .map(|(test, scene)| match scene {
                Some(scene) => format!("{}: `{}` ({scene})", test.path, test.name),
                None => format!("{}: `{}`", test.path, test.name),
            })
            .collect();
        shown.join("<br>")
    };
    for (protocol, scenes) in MATRICES {
        let _ = write!(
            text,
            "### {protocol}, scene by scene\n\n| scenario | in memory | through the program |\n|---|---|---|\n"
        );
        for scene in *scenes {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                scene.what,
                cell(MEMORY, scene.memory),
                cell(PROGRAM, scene.program)
            );
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
