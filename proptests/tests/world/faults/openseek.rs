//! The classic faults of openseek, a wire without ids: ends that come twice or never, counts that are off, words that nobody
//! said.

use turnwire::{
    protocol::{observer::Dir, openseek::Openseek},
    vocab::*,
};
use turnwire_proptests::world::By;

use super::{
    Doubles, Reads, Says, TURN, Writes, finds, is, loses_tails, over, story, tampered, twice,
    unterminated, with,
};

const CALL: &str = "> prompt if-idle\n+ answer 0 read\n+ tool 0 ok\n+ answer 0\n";
const ASK: &str = "> prompt if-idle\n+ answer 0 write\n> reply 0 yes\n+ tool 0 ok\n+ answer 0\n";
const STEER: &str = "> prompt if-idle\n> prompt steer drop\n+ answer 0\n+ answer 0\n";
const LATE: &str = "> prompt if-idle\n> prompt steer drop\n> cancel turn keep\n";
const TWO: &str = "> prompt if-idle\n> prompt queue next\n+ answer 0\n+ answer 0\n";

/// Lines of the engine that hold this are lost.
fn loses(holds: &'static str) -> impl FnMut(&str) -> String {
    changes(holds, |_| String::new())
}

/// Lines of the engine that hold this become something else.
fn changes(
    holds: &'static str,
    mut change: impl FnMut(&str) -> String,
) -> impl FnMut(&str) -> String {
    move |line| {
        if line.contains(holds) {
            change(line)
        } else {
            line.to_owned()
        }
    }
}

fn replaces(old: &'static str, new: &'static str) -> impl FnMut(&str) -> String {
    move |line| line.replace(old, new)
}

#[test]
fn os_a06_a_turn_with_two_ends() {
    let report = over::<Openseek>(TURN, Doubles("\"agent_finished\""));
    finds(&report, By::Observer, "OS-A06.d");
    // A session that ends its prompt twice.
    let both = |said| twice(said, |what| matches!(what, What::PromptEnded { .. }));
    let report = with::<Openseek>(TURN, Says(both));
    finds(&report, By::Checker, "S-10");
}

#[test]
fn os_a06_a_turn_without_an_end() {
    let report = over::<Openseek>(TWO, Writes(Dir::Agent, loses("\"agent_finished\"")));
    finds(&report, By::Observer, "OS-A06.b");
    finds(&report, By::Client, "client");
    let report = over::<Openseek>(TURN, Writes(Dir::Agent, loses("\"agent_finished\"")));
    finds(&report, By::Drive, "dead-lock");
}

#[test]
fn os_a06_a_prompt_that_has_no_turn() {
    // Whoever reads it loses its turn whole.
    let gone = Reads(Dir::Host, loses("do it 2"));
    finds(&over::<Openseek>(TWO, gone), By::Drive, "dead-lock");
}

#[test]
fn os_a06_a_turn_that_nobody_asked_for() {
    let again = changes("\"agent_finished\"", |line| {
        format!("{line}{{\"event\":\"agent_step\",\"step\":1}}\n{line}")
    });
    let report = over::<Openseek>(TURN, Writes(Dir::Agent, again));
    finds(&report, By::Observer, "OS-A06.c");
}

#[test]
fn os_a06_steps_that_are_counted_from_another_number() {
    let report = over::<Openseek>(
        TURN,
        Writes(Dir::Agent, replaces("\"step\":1", "\"step\":0")),
    );
    finds(&report, By::Observer, "OS-A06.a");
    let report = over::<Openseek>(
        CALL,
        Writes(Dir::Agent, replaces("\"step\":2", "\"step\":3")),
    );
    finds(&report, By::Observer, "OS-A06.a");
}

#[test]
fn os_a07_a_steer_that_ends_twice_or_never() {
    let report = over::<Openseek>(STEER, Doubles("\"steer_applied\""));
    finds(&report, By::Observer, "OS-A07.a");
    finds(&report, By::Client, "client");
    let report = over::<Openseek>(STEER, Writes(Dir::Agent, loses("\"steer_applied\"")));
    finds(&report, By::Observer, "OS-A07.c");
    let report = over::<Openseek>(LATE, Doubles("\"steer_dropped\""));
    finds(&report, By::Observer, "OS-A07.b");
    finds(&report, By::Client, "client");
    let report = over::<Openseek>(LATE, Writes(Dir::Agent, loses("\"steer_dropped\"")));
    finds(&report, By::Observer, "OS-A07.c");
}

#[test]
fn os_a08_os_09_questions_that_nobody_answered_or_that_are_answered_twice() {
    let report = over::<Openseek>(ASK, Doubles("\"approval_resolved\""));
    finds(&report, By::Observer, "OS-09.b");
    let report = over::<Openseek>(ASK, Writes(Dir::Agent, loses("\"approval_resolved\"")));
    finds(&report, By::Client, "client");
    finds(&report, By::View, "view");
    let report = over::<Openseek>(ASK, Writes(Dir::Host, loses("\"approval\"")));
    assert!(!report.is_clean(), "{report}");
    let report = over::<Openseek>(
        ASK,
        Writes(Dir::Agent, replaces("allowed_once", "rejected")),
    );
    finds(&report, By::Observer, "OS-09.d");
    let report = over::<Openseek>(ASK, Doubles("\"approval_requested\""));
    finds(&report, By::Observer, "OS-09.a");
}

#[test]
fn os_a09_pieces_that_are_no_message() {
    let text = "> prompt if-idle\n+ model 0 text \"a\"\n+ model 0 text \"b\"\n+ model 0 finish\n+ model 0 end\n";
    let report = over::<Openseek>(text, Doubles("\"assistant_delta\""));
    finds(&report, By::Observer, "OS-A09.a");
    let report = over::<Openseek>(text, Writes(Dir::Agent, loses("\"assistant_message\"")));
    finds(&report, By::Observer, "OS-A09.c");
    let report = over::<Openseek>(text, Doubles("\"assistant_message\""));
    finds(&report, By::Observer, "OS-A09.f");
    let report = over::<Openseek>(CALL, Doubles("\"tool_result\""));
    finds(&report, By::Observer, "OS-A09.j");
}

#[test]
fn os_a09_pieces_of_an_attempt_that_failed() {
    // An engine that doesn't say that they are void.
    let text = "> prompt if-idle\n+ model 0 thinking \"a\"\n+ model 0 failed server reached\n@ jump\n+ model 0 thinking \"b\"\n+ answer 0\n";
    let report = over::<Openseek>(text, Writes(Dir::Agent, loses("\"stream_retry\"")));
    finds(&report, By::Observer, "OS-A09.b");
}

#[test]
fn os_a10_a_goal_that_goes_on_unasked() {
    let goes_on = changes("\"agent_finished\"", |line| {
        format!("{line}{{\"event\":\"goal_continue\",\"remaining\":19}}\n")
    });
    let report = over::<Openseek>(TURN, Writes(Dir::Agent, goes_on));
    assert!(!report.is_clean(), "{report}");
    finds(&report, By::Observer, "OS-A10.b");
}

#[test]
fn os_02_os_03_os_04_lines_that_are_no_events() {
    let report = over::<Openseek>(CALL, Writes(Dir::Agent, replaces("\"brief\"", "\"breif\"")));
    finds(&report, By::Observer, "OS-04.a");
    let report = over::<Openseek>(
        TURN,
        Writes(Dir::Agent, replaces("\"agent_finished\"", "\"agent_fin\"")),
    );
    finds(&report, By::Observer, "OS-03.a");
    let report = over::<Openseek>(
        TURN,
        Writes(
            Dir::Agent,
            replaces(
                "{\"event\":\"agent_step\"",
                "{\"level\":\"info\",\"event\":\"agent_step\"",
            ),
        ),
    );
    finds(&report, By::Observer, "OS-02.d");
}

#[test]
fn os_03_a_command_error_that_nothing_caused() {
    let made = changes("\"agent_step\"", |line| {
        format!("{line}{{\"event\":\"command_error\",\"error\":\"unknown command: x\"}}\n")
    });
    let report = over::<Openseek>(TURN, Writes(Dir::Agent, made));
    finds(&report, By::Observer, "OS-03.f");
    finds(&report, By::Client, "client");
}

/// A session whose steer begins a turn.
#[test]
fn os_a07_a_steer_that_is_told_to_begin_a_turn() {
    let begins = |said| {
        let ended = is(&said, |what| {
            matches!(
                what,
                What::PromptEnded {
                    prompt: PromptId(2),
                    end: End::Dropped(_)
                }
            )
        });
        if ended { Vec::new() } else { vec![said] }
    };
    let report = with::<Openseek>(LATE, Says(begins));
    finds(&report, By::Reference, "TW-01");
}

/// A last line without its newline may be read or lost: nobody knows the engine's reader, and nobody waits for it for ever.
#[test]
fn os_a11_a_last_line_without_its_newline() {
    let scenario = story::<Openseek>("set leave end-of-input\n> prompt if-idle\n");
    tampered::<Openseek>(&scenario, unterminated("\"prompt\"")).assert_clean();
    tampered::<Openseek>(&scenario, loses_tails("\"prompt\"")).assert_clean();
}
