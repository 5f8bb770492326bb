//! What every driver must do, as tests that are generic over the driver.
//!
//! A driver implements [`Driver`] in a test of its own crate and writes [`suite!`] there: each function of the modules
//! below becomes a test of it. [`leaks`](mod@leaks) wants a process for itself, so it has a macro of its own.
//!
//! Every session here is [watched](watch): whatever else a test is about, an effect that was started must be settled
//! exactly once, and no deadline may come early.

// To clippy only functions marked as tests are tests; here all are.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm
)]

pub mod bash;
pub mod bytes;
mod cancel;
pub mod hook;
pub mod job;
pub mod later;
pub mod leaks;
pub mod rig;
pub mod session;
pub mod session_hooks;
pub mod stalled;
pub mod tool;
pub mod watch;
pub mod writer;

use turnwire::protocol::{Protocol, Server};
use turnwire::vocab::{Agent, HookReply, Text, ToolUpdate};
use turnwire_io::hooks::HookJob;
use turnwire_io::tools::Toolbox;
use turnwire_io::{Error, Host, World};

pub use cancel::Cancel;

/// A driver under test. Everything blocks until it is over.
pub trait Driver: 'static {
    /// Serves one session.
    ///
    /// # Errors
    /// The driver's.
    fn serve<P: Protocol, A: Agent>(
        server: Server<P>,
        agent: A,
        world: World,
        host: Host<P>,
    ) -> Result<u8, Error>;

    /// Carries out one tool call.
    fn tool(
        tools: &Toolbox,
        name: &str,
        input: &str,
        cancel: &Cancel,
        updates: &mut (dyn FnMut(ToolUpdate) + Send),
    ) -> ToolUpdate;

    /// Runs a command of the person's own.
    fn shell(tools: &Toolbox, line: &str, cancel: &Cancel) -> ToolUpdate;

    /// Runs one hook.
    ///
    /// # Errors
    /// It failed.
    fn hook(job: &HookJob, cancel: &Cancel) -> Result<HookReply, Text>;
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($driver:ty; $($module:ident { $($name:ident)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                $crate::$module::$name::<$driver>();
            })*
        })*
    };
}

/// The tests of a driver.
#[macro_export]
macro_rules! suite {
    ($driver:ty) => {
        $crate::tests! { $driver;
            session {
                om_09_end_of_input_drains_the_turn_and_ends_with_0
                s_65_what_was_said_before_an_effect_is_written_before_it_starts
                s_61_tw_10_a_stalled_host_stops_the_model_and_its_cancel_still_works
                p06_a_host_that_stops_reading_for_good_ends_the_session
                p02_quitting_hard_leaves_no_process_of_a_tool
                om_07_a_mode_counts_once_it_is_stored_and_a_failed_save_says_so
                l1_two_lines_in_one_write_mean_what_two_writes_mean
                l8_s_03_what_was_started_is_settled_once_and_deadlines_wake
                om_08_a_turn_waits_for_what_is_read_before_it
                om_09_lines_before_the_end_of_input_are_handled_first
            }
            session_hooks {
                om_30_s_41_a_refusal_is_stored_before_it_is_announced
                om_23_a_refusal_that_cant_be_stored_leaves_the_reply_unverified
                s_65_a_hook_starts_after_what_was_said_before_it_is_written
                a_session_that_ends_takes_its_hook_along
            }
            stalled {
                s_03_a_body_that_stalls_can_be_stopped
                s_03_a_head_that_never_comes_can_be_stopped
                s_03_half_a_head_can_be_stopped
                p06_a_host_that_is_gone_leaves_no_request_behind
            }
            writer {
                wire_003_wire_015_whole_lines_are_written_one_after_the_other_and_flushed
                wire_015_written_is_what_was_flushed
                wire_013_ax_s17_a_line_with_a_credential_reaches_no_writer
                wire_018_a_line_over_8_mib_reaches_no_writer
                wire_015_ax_s18_a_writer_that_fails_is_not_called_again
                ax_s19_a_question_that_cant_be_written_strands_nobody
                ax_s19_an_answer_that_was_taken_stands
                ax_s19_a_withdrawal_that_cant_be_written_strands_nobody
            }
            job {
                os_10_a_job_outlives_its_turn_and_its_record_is_on_the_disk
                os_10_a_stop_ends_the_whole_group_and_has_four_outcomes
                os_10_the_end_of_a_session_stops_its_jobs
                p03_a_job_that_floods_its_output_is_stopped
                os_10_a_job_that_cant_begin_is_a_failed_call
                os_10_a_record_of_a_running_job_is_one_of_an_interrupted_job_to_others
                os_10_a_model_stops_its_job_and_reads_what_it_wrote
                os_10_a_record_that_cant_be_kept_says_so
                s_35_a_call_that_is_let_go_runs_on_as_a_job_with_all_that_it_wrote
                s_35_a_call_that_was_let_go_is_ended_with_its_whole_group
                s_35_a_limit_of_the_model_s_counts_for_the_job_too_and_the_usual_one_does_not
                s_35_a_call_that_cant_become_a_job_goes_on
            }
            later {
                l8_an_answer_that_takes_its_time_holds_nothing_up_and_the_end_waits_for_it
            }
            bytes {
                l5_talk
                l5_tools
                l5_approvals
                l5_retries
                l5_hooks
                l5_cancels
                l5_noise
            }
            bash {
                output_and_failure_have_the_wire_s_form
                commands_run_in_the_project_without_input_or_terminal
                the_shell_leads_a_group_and_a_session
                the_environment_is_a_list_and_holds_no_key
                output_is_bounded_at_exactly_the_limit
                a_timed_out_command_ends_with_all_its_children
                the_configured_times_hold
                a_cancelled_command_may_say_last_words
                what_is_left_behind_may_clean_up_before_it_is_killed
                no_zombie_stays
                progress_is_throttled_bounded_and_complete_for_slow_output
                commands_run_side_by_side
                a_shell_that_cannot_start_is_a_failed_call
                a_vanished_project_is_a_failed_call
                a_person_s_own_command_gives_what_it_wrote_and_nothing_else
                a_person_s_own_command_that_is_cancelled_keeps_its_output
            }
            hook {
                om_31_the_exit_code_decides
                a_hook_in_a_folder_that_is_gone_fails_and_says_why
                om_31_an_observing_hook_has_no_say
                an_answer_says_more_where_it_has_a_meaning
                om_31_an_answer_that_could_be_misread_is_a_failure
                a_hook_is_told_one_line_of_json
                p03_a_hook_that_floods_or_doesnt_listen_blocks_nobody
                p04_a_reason_that_isnt_utf8_is_shown_as_far_as_it_is
                p01_a_grandchild_that_keeps_the_pipe_delays_nothing_and_is_ended
                s_03_a_stopped_hook_is_ended_with_its_group_and_settles
            }
        }
    };
}

/// The test of a driver's leaks: for a test binary that holds nothing else.
#[macro_export]
macro_rules! leaks {
    ($driver:ty) => {
        $crate::tests! { $driver;
            leaks {
                a_thousand_sessions_leave_no_thread_no_descriptor_and_no_child
                a_thousand_jobs_leave_no_thread_no_descriptor_and_no_child
            }
        }
    };
}
