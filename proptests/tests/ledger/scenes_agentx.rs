//! The scenarios of agentx and claude. Behind a slash: the scene of a test that plays many.

use super::scenes::{Scene, scene};

/// Each is played in both wires where both have it.
pub const SCENES: &[Scene] = &[
    scene(
        "text",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a text turn",
            "agentx/client_scenes::wire_003_a_text_turn_of_the_strict_wire",
        ],
        &["agentx/ends::wire_eof_001_ax_s01_a_last_line_without_a_newline_counts"],
    ),
    scene(
        "thinking",
        &["agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / thinking"],
        &["agentx/matrix::thinking_comes_before_text"],
    ),
    scene(
        "a reply in pieces",
        &[
            "agentx/server_scenes::pieces_of_replies_are_told_as_the_provider_does",
            "agentx/server_scenes::pieces_of_replies_are_told_as_text_in_the_strict_wire",
            "agentx/client_scenes::text_that_was_streamed_is_not_said_again",
        ],
        &[
            "agentx/turns::ax_s02_separators_are_escaped_and_a_reply_comes_in_pieces_if_they_are_asked_for",
        ],
    ),
    scene(
        "a call that nobody is asked about",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a call that nobody is asked about",
        ],
        &["agentx/turns::a_turn_with_a_tool_is_bracketed_in_the_strict_wire"],
    ),
    scene(
        "a call that is allowed",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_006 an allowed call",
            "agentx/client_questions::ax_p08_an_allow_always_has_an_input",
        ],
        &["agentx/asks::ax_p11_a_call_runs_with_the_input_that_the_host_gives_it"],
    ),
    scene(
        "a call that is denied",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a denied call",
            "agentx/client_questions::ax_p17_ax_p18_a_deny_has_a_message_and_may_end_the_turn",
        ],
        &["agentx/asks::ax_p18_a_deny_reaches_the_model_or_ends_the_turn"],
    ),
    scene(
        "a call that is denied, and the turn with it",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / ax_p18 a call that is denied, and the turn with it",
            "agentx/client_questions::ax_p17_ax_p18_a_deny_has_a_message_and_may_end_the_turn",
        ],
        &["agentx/asks::ax_p18_a_deny_reaches_the_model_or_ends_the_turn"],
    ),
    scene(
        "two questions at once",
        &[
            "agentx/server_controls::ax_p30_questions_of_calls_that_may_run_at_once_are_open_at_once",
        ],
        &["agentx/matrix::ax_p30_two_questions_are_open_at_once_and_answered_in_any_order"],
    ),
    scene(
        "nobody to ask",
        &["agentx/server_answers::what_nobody_can_be_asked_about_is_denied_and_said"],
        &["agentx/asks::nobody_to_ask_denies_and_says_so"],
    ),
    scene(
        "hooks of the host's around a call",
        &[
            "agentx/server::hooks_before_a_call_are_told_of_it_and_judge",
            "agentx/client_questions::answers_of_hooks_say_what_the_event_has",
        ],
        &["agentx/asks::hooks_of_the_host_see_a_call_before_and_after"],
    ),
    scene(
        "a hook of the host's that blocks a prompt",
        &["agentx/server::a_prompt_that_a_hook_blocks_has_one_result"],
        &["agentx/matrix::a_hook_of_the_host_blocks_a_prompt_and_the_model_hears_nothing_of_it"],
    ),
    scene(
        "a hook that is faster than the host",
        &[
            "agentx/server::ax_s06_ax_p27_the_first_decision_wins_and_the_other_changes_nothing",
            "agentx/client_questions::ax_p27_a_hook_that_is_faster_takes_the_question_back",
        ],
        &["agentx/matrix::ax_s06_ax_p27_a_hook_that_is_faster_than_the_host_decides"],
    ),
    scene(
        "a tool of the host's",
        &[
            "agentx/server::tools_of_a_host_are_listed_before_the_first_prompt_and_called_over_the_wire",
            "agentx/client_questions::tools_of_the_host_are_an_mcp_server",
        ],
        &["agentx/asks::a_tool_of_the_host_is_called_over_the_wire"],
    ),
    scene(
        "prompts that wait, and one that is urgent",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / two prompts, one after the other",
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / priority now",
        ],
        &["agentx/matrix::prompts_wait_for_each_other_and_one_that_is_urgent_doesnt"],
    ),
    scene(
        "prompts that are repeated",
        &["agentx/server::a_prompt_without_an_id_is_known_by_the_one_that_its_replay_has"],
        &["agentx/turns::a_prompt_is_repeated_where_the_host_wants_it"],
    ),
    scene(
        "interrupt: nothing runs",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt when nothing runs",
        ],
        &["agentx/matrix::wire_010_an_interrupt_when_nothing_runs_is_heard_and_changes_nothing"],
    ),
    scene(
        "interrupt: before the first byte",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt before the first byte",
        ],
        &["agentx/matrix::wire_010_an_interrupt_before_the_first_byte"],
    ),
    scene(
        "interrupt: text streams",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt while text streams",
            "agentx/client_scenes::wire_010_an_interrupt_is_acknowledged_once_and_the_turn_ends_as_cancelled",
        ],
        &["agentx/asks::wire_010_ax_s11_an_interrupt_is_acknowledged_and_the_stream_stays_usable"],
    ),
    scene(
        "interrupt: a tool runs",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt while a tool runs",
        ],
        &["agentx/asks::an_interrupt_ends_a_command_and_all_that_it_started"],
    ),
    scene(
        "interrupt: permissions are open",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_011 an interrupt with a permission open",
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / ax_s12 an interrupt with two permissions open",
        ],
        &["agentx/matrix::ax_s12_wire_011_an_interrupt_withdraws_both_questions_first"],
    ),
    scene(
        "interrupt: the wait before a retry",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt in the wait before a retry",
        ],
        &[
            "agentx/matrix::wire_010_an_interrupt_in_the_wait_before_a_retry_and_the_attempt_never_goes_out",
        ],
    ),
    scene(
        "interrupt: the history is summarised",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / wire_010 an interrupt while the history is summarised",
        ],
        &["agentx/matrix::wire_010_an_interrupt_while_the_history_is_summarised"],
    ),
    scene(
        "provider: a refusal",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a request that fails for good",
            "agentx/client_scenes::how_turns_end",
        ],
        &[
            "agentx/turns::a_provider_that_fails_is_a_success_that_is_an_error_in_claude_and_plain_in_agentx",
        ],
    ),
    scene(
        "provider: an attempt that fails and one that doesn't",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a request that is sent again",
            "agentx/client_scenes::a_retry_voids_the_attempt_before",
        ],
        &["agentx/matrix::a_provider_that_is_busy_is_tried_again"],
    ),
    scene(
        "provider: stream cut after text",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / a reply that breaks off",
        ],
        &["agentx/matrix::a_reply_that_breaks_off_is_an_error_that_keeps_its_text"],
    ),
    scene(
        "a full context",
        &[
            "agentx/server_earlier::wire_005_a_compaction_names_the_records_that_it_kept_and_what_they_stand_behind",
            "agentx/client_scenes::wire_005_a_compaction_stands_between_requests",
        ],
        &["agentx/matrix::wire_005_a_full_context_gives_way_to_a_summary_and_the_turn_goes_on"],
    ),
    scene(
        "what a turn costs",
        &[
            "agentx/server::ax_s16_wire_012_an_unknown_price_is_null_and_a_known_zero_is_0",
            "agentx/client_scenes::wire_012_ax_s16_no_price_is_none_and_a_known_zero_is_zero",
        ],
        &["agentx/turns::wire_012_a_price_of_the_settings_makes_a_cost_and_none_makes_null"],
    ),
    scene(
        "settings that change as it runs, or don't",
        &[
            "agentx/server_answers::claude_sets_model_mode_and_thinking_while_it_lives",
            "agentx/server_answers::ax_s28_wire_025_ax_03_live_setters_of_the_strict_wire_fail_each_in_its_way",
        ],
        &[
            "agentx/start::a_host_of_claude_may_choose_among_the_models_of_the_settings",
            "agentx/start::wire_025_what_is_fixed_says_so_and_a_provider_isnt_chosen_live",
        ],
    ),
    scene(
        "providers, before there is a session",
        &[
            "agentx/server_controls::ax_s29_wire_026_providers_are_listed_before_a_process_is_bound_to_one",
        ],
        &[
            "agentx/foreign::wire_026_ax_s29_providers_are_listed_before_a_session_and_never_with_a_credential",
            "agentx/providers::wire_026_ax_s29_one_document_lists_what_there_is",
            "agentx/providers::wire_024_ax_s26_ax_s29_a_process_is_bound_to_one_of_those_that_were_listed",
        ],
    ),
    scene(
        "two attachments, and a prompt that refers to both",
        &[
            "agentx/server_imports::ax_s22_wire_019_two_uploads_one_prompt_and_its_replay",
            "agentx/server_imports::ax_s22_a_client_brings_an_attachment_in_and_the_session_gets_it",
            "agentx/server_imports::wire_020_what_an_earlier_process_committed_can_be_referred_to_and_for_its_prompt_alone",
        ],
        &[
            "agentx/attachments::ax_s22_wire_018_wire_019_wire_022_two_uploads_and_a_prompt_that_refers_to_both",
        ],
    ),
    scene(
        "an attachment that is wrong",
        &[
            "agentx/server_imports::ax_s23_wire_018_a_chunk_that_is_wrong_ends_its_upload_once",
            "agentx/server_imports::ax_s23_what_the_embedder_finds_wrong_is_said_in_the_contracts_words",
        ],
        &[
            "agentx/attachments::ax_s23_wire_018_whatever_is_wrong_with_an_upload_ends_it_once_and_interrupts_nothing",
        ],
    ),
    scene(
        "an upload that nobody ends",
        &[
            "agentx/server_imports::wire_019_an_upload_that_nobody_ends_is_ended_in_time_or_with_the_input",
        ],
        &[
            "agentx/attachments::wire_019_an_upload_ends_with_the_input_and_leaves_nothing_behind_in_a_crash_either",
        ],
    ),
    scene(
        "attachments that aren't offered",
        &[
            "agentx/server_answers::ax_s24_without_the_capability_attachments_are_refused_and_text_is_not",
        ],
        &[
            "agentx/matrix::ax_s24_attachments_that_arent_offered_are_refused_before_a_provider_hears_of_them",
        ],
    ),
    scene(
        "a line that isn't JSON",
        &["agentx/server_answers::wire_001_a_fatal_line_ends_the_turn_and_the_process"],
        &["agentx/ends::ax_s14_a_malformed_line_ends_it_with_1"],
    ),
    scene(
        "a line that would hold a credential",
        &["agentx/server::ax_s27_wire_013_a_line_that_would_hold_a_credential_is_the_last"],
        &["agentx/ends::wire_013_after_a_credential_nothing_is_written_any_more"],
    ),
    scene(
        "end of input in a turn",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / the end of the input in a turn",
        ],
        &["agentx/turns::a_turn_with_a_tool_is_bracketed_in_the_strict_wire"],
    ),
    scene(
        "end of input with a permission open",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / ax_p22 the end of the input with a permission open",
            "agentx/server::ax_s05_wire_008_the_end_of_the_input_rejects_every_request_that_is_open",
        ],
        &[
            "agentx/asks::ax_s05_ax_p22_a_question_that_is_open_when_input_ends_denies_and_the_turn_goes_on",
        ],
    ),
    scene(
        "end of input before a prompt",
        &[
            "agentx/server_scenes::scenes_come_to_their_lines_in_both_wires / the end of the input before there was a prompt",
        ],
        &["agentx/ends::input_that_ends_before_a_prompt_is_an_error_in_agentx_alone"],
    ),
    scene(
        "going on with a session",
        &["agentx/server_earlier::a_prompt_is_known_to_the_process_that_goes_on"],
        &["agentx/foreign::a_session_goes_on_by_its_id_and_a_copy_leaves_it_as_it_was"],
    ),
];
