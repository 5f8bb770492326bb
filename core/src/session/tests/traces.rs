//! The traces, each a test by its name.

use super::trace::play;

#[test]
fn t_01_cancel_two_questions_open() {
    play("T-01");
}

#[test]
fn t_02_late_reply_after_cancel() {
    play("T-02");
}

#[test]
fn t_03_reply_cancel_same_tick() {
    play("T-03");
}

#[test]
fn t_04_cancel_reply() {
    play("T-04");
}

#[test]
fn t_05_steer_between_last_delta_and_completion() {
    play("T-05");
}

#[test]
fn t_06_follow_up_cancel_run() {
    play("T-06");
}

#[test]
fn t_07_follow_up_cancel_keep() {
    play("T-07");
}

#[test]
fn t_08_hook_refuses_prompt() {
    play("T-08");
}

#[test]
fn t_09_retry_then_text_then_death() {
    play("T-09");
}

#[test]
fn t_10_truncated_with_a_whole_call() {
    play("T-10");
}

#[test]
fn t_11_failure_after_call_deltas() {
    play("T-11");
}

#[test]
fn t_12_endless_tool_cancelled_late_outcome() {
    play("T-12");
}

#[test]
fn t_13_overlap_one_fails() {
    play("T-13");
}

#[test]
fn t_14_question_times_out_exact_tick() {
    play("T-14");
}

#[test]
fn t_15_reply_at_the_deadline() {
    play("T-15");
}

#[test]
fn t_16_reply_after_it_no_woken() {
    play("T-16");
}

#[test]
fn t_17_mode_changes_while_asked() {
    play("T-17");
}

#[test]
fn t_18_end_of_input_drain() {
    play("T-18");
}

#[test]
fn t_19_end_of_input_abort() {
    play("T-19");
}

#[test]
fn t_20_terminate_during_a_write() {
    play("T-20");
}

#[test]
fn t_21_fault() {
    play("T-21");
}

#[test]
fn t_22_goal() {
    play("T-22");
}

#[test]
fn t_23_job_wakes_the_session() {
    play("T-23");
}

#[test]
fn t_24_compaction_in_the_loop() {
    play("T-24");
}

#[test]
fn t_25_step_limit() {
    play("T-25");
}

#[test]
fn t_26_close_while_a_job_runs() {
    play("T-26");
}

#[test]
fn t_27_one_call_id_twice() {
    play("T-27");
}

#[test]
fn t_28_empty_reply() {
    play("T-28");
}

#[test]
fn t_29_only_thinking() {
    play("T-29");
}

#[test]
fn t_30_cancel_in_backoff() {
    play("T-30");
}

#[test]
fn t_31_cancel_the_retry() {
    play("T-31");
}

#[test]
fn t_32_three_unreached() {
    play("T-32");
}

#[test]
fn t_33_retry_after_61() {
    play("T-33");
}

#[test]
fn t_34_hook_before_host() {
    play("T-34");
}

#[test]
fn t_35_host_before_hook() {
    play("T-35");
}

#[test]
fn t_36_turn_end_refused() {
    play("T-36");
}

#[test]
fn t_37_preempting_prompt() {
    play("T-37");
}

#[test]
fn t_38_deny_with_interrupt() {
    play("T-38");
}

#[test]
fn t_39_switch() {
    play("T-39");
}

#[test]
fn t_40_held_turn() {
    play("T-40");
}

#[test]
fn t_41_held_turn_cancelled() {
    play("T-41");
}

#[test]
fn t_42_context_idle_in_a_turn_left_over() {
    play("T-42");
}

#[test]
fn t_43_steer_into_an_idle_session_drop() {
    play("T-43");
}

#[test]
fn t_44_context_full() {
    play("T-44");
}
