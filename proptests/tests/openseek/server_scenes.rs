//! Scenes of openseek through a Session and a Server: what the host, the model and the tools do, and the lines that come
//! of it.

use turnwire::protocol::Protocol;
use turnwire::protocol::openseek::{Asking, Openseek, ServerConfig};
use turnwire_proptests::laws::{ServerMachine, hold_cut};

use crate::kit::labels::expected;
use crate::kit::{Duo, SEED};

/// Name, what happens, lines.
const SCENES: &[(&str, &str, &str)] = &[
    (
        "os_a09 a text turn",
        "«p1» reply",
        "step(1) answer finished",
    ),
    (
        "os_a09 reasoning, then text",
        "«p1» think reply",
        "step(1) r* d* reasoning message usage finished",
    ),
    (
        "os_a06 a tool, and its step",
        "«p1» text calls(c1:look) ran(c1) reply",
        "step(1) d* message usage result(c1) step(2) answer finished",
    ),
    (
        "os_a09 results in the order of the calls",
        "«p1» calls(c1:look,c2:look) ran(c2) ran(c1) reply",
        "step(1) usage result(c1) result(c2) step(2) answer finished",
    ),
    (
        "os_a09 a call that can't be decoded",
        "«p1» calls(c1:look!) reply",
        "step(1) usage undecoded(c1) step(2) answer finished",
    ),
    (
        "os_a09 a finish call has no result, and those behind it are skipped",
        "«p1» calls(c1:finish,c2:look)",
        "step(1) usage skipped(c2) finished",
    ),
    (
        "os_a09 a retry before anything was shown",
        "«p1» fail(500) wake reply",
        "step(1) retry(2) answer finished",
    ),
    (
        "os_a09 a retry voids reasoning that was shown",
        "«p1» think fail(500) wake think reply",
        "step(1) r* retry(2) r* d* reasoning message usage finished",
    ),
    (
        "os_a06 a failure after text was shown",
        "«p1» text fail(500) «p2» reply",
        "step(1) d* failed step(1) answer finished",
    ),
    (
        "os_a06 prompts wait for their turns, first in first out",
        "«p1» text «p2» «p3» fin(stop) reply reply",
        "step(1) answer finished step(1) answer finished step(1) answer finished",
    ),
    (
        "os_a07 a steer is applied at the next step",
        "«p1» calls(c1:look) «steer:s1» «steer:s2» ran(c1) reply",
        "step(1) usage result(c1) applied(prompt,s1) applied(prompt,s2) step(2) answer finished",
    ),
    (
        "os_a07 a steer beats the finish",
        "«p1» text «steer:s1» fin(stop) reply",
        "step(1) answer applied(prompt,s1) step(2) answer finished",
    ),
    (
        "os_a07 a steer comes too late",
        "«p1» text «steer:s1» «cancel» settle",
        "step(1) d* message aborted(interrupted) dropped(s1)",
    ),
    (
        "os_a07 a steer while nothing runs begins no turn",
        "«steer:s1»",
        "dropped(s1)",
    ),
    (
        "os_08 a command of the person's goes into the history",
        "«command:k1» «p1» calls(c1:look) «command:k2» ran(c1) text «command:k3» fin(stop)",
        "applied(command,k1) step(1) usage result(c1) applied(command,k2) step(2) answer finished applied(command,k3)",
    ),
    (
        "os_a10 a cancel while nothing runs",
        "«cancel» «p1» reply",
        "step(1) answer finished",
    ),
    (
        "os_a10 a cancel ends the turn, and what waits runs",
        "«p1» text «p2» «cancel» settle reply",
        "step(1) d* message aborted(interrupted) step(1) answer finished",
    ),
    (
        "os_a06 a cancel while a tool runs, and another hasn't begun",
        "«p1» calls(c1:look,c2:write) «cancel» settle",
        "step(1) usage result(c1,error) skipped(c2) aborted(interrupted)",
    ),
    (
        "os_09 a call that is allowed",
        "«p1» calls(c1:write) «allow#1» ran(c1) reply",
        "step(1) usage ask(1) allowed_once(1) result(c1) step(2) answer finished",
    ),
    (
        "os_09 a call that is rejected",
        "«p1» calls(c1:write) «deny#1» reply",
        "step(1) usage ask(1) rejected(1) result(c1,error) step(2) answer finished",
    ),
    (
        "os_a08 a second answer changes nothing",
        "«p1» calls(c1:write) «allow#1» «deny#1» «deny#9» ran(c1) «allow#1» reply",
        "step(1) usage ask(1) allowed_once(1) result(c1) step(2) answer finished",
    ),
    (
        "os_a08 two questions are open at once",
        "«p1» calls(c1:peek,c2:peek) «allow#2» ran(c2) «deny#1» reply",
        "step(1) usage ask(1) ask(2) allowed_once(2) rejected(1) result(c1,error) result(c2) step(2) answer finished",
    ),
    (
        "os_a08 a cancel with a question open",
        "«p1» calls(c1:write) «cancel» «allow#1»",
        "step(1) usage ask(1) cancelled(1) result(c1,error) aborted(interrupted)",
    ),
    (
        "os_a08 os_a11 the end of input with a question open, and another behind it",
        "«p1» calls(c1:write) «eof» calls(c2:write) reply",
        "step(1) usage ask(1) cancelled(1) result(c1,error) step(2) usage result(c2,error) step(3) answer finished \
         exit(0)",
    ),
    (
        "os_a11 the end of input finishes what waits",
        "«p1» text «p2» «eof» fin(stop) reply",
        "step(1) answer finished step(1) answer finished exit(0)",
    ),
    (
        "os_a11 the end of input while nothing runs",
        "«eof»",
        "exit(0)",
    ),
    (
        "os_a11 os_03 a line that isn't JSON is as good as the end",
        "«p1» «junk» «p2» reply",
        "step(1) command_error answer finished exit(0)",
    ),
    (
        "os_07 os_a12 a blank goal is refused",
        "«goal:» «task:» «p1» reply",
        "command_error command_error step(1) answer finished",
    ),
    (
        "os_10 a compaction with nothing to sum up",
        "«compact»",
        "compaction_started compaction_failed",
    ),
    (
        "os_10 jobs, where there are none",
        "«jobs:j1» «stop:s1:bg-1»",
        "jobs(j1,0) stopped(s1,not_found)",
    ),
    (
        "os_10 a job outlives its turn, and is stopped",
        "«p1» calls(c1:look) detach(c1) reply «stop:s1:bg-1» settle «stop:s2:bg-1»",
        "step(1) usage job(started,1) result(c1) step(2) answer finished job(updated,2) job(finished,3) \
         stopped(s1,stopped) stopped(s2,already_terminal)",
    ),
    (
        "os_08 os_10 a job that ends while nothing runs is a notice, and begins no turn",
        "«p1» calls(c1:look) detach(c1) reply wrote exits(0) «jobs:j1» «p2» reply",
        "step(1) usage job(started,1) result(c1) step(2) answer finished job(updated,2) job(finished,3) \
         background_notice jobs(j1,1) step(1) answer finished",
    ),
    (
        "os_08 os_10 a job that ends in a turn is heard of at its next step",
        "«p1» calls(c1:look) detach(c1) text exits(1) fin(stop) reply",
        "step(1) usage job(started,1) result(c1) step(2) d* job(failed,2) message usage applied(notice,) step(3) answer finished",
    ),
    (
        "os_10 a job of another process can't be stopped",
        "«other:s1»",
        "stopped(s1,wrong_runtime)",
    ),
    (
        "os_a10 a goal goes on by itself while it is armed",
        "«goal:g» «p1» reply reply «clear» reply",
        "goal(g) step(1) answer finished continue(19) step(1) answer finished continue(18) step(1) answer finished goal(-)",
    ),
    (
        "os_a10 one that isn't armed begins no turn, and arming alone neither",
        "«task:g» «p1» reply «goal:g»",
        "goal(g) step(1) answer finished goal(g)",
    ),
    (
        "os_a10 any cancel ends it",
        "«goal:g» «p1» reply text «cancel» settle «p2» reply",
        "goal(g) step(1) answer finished continue(19) step(1) d* message aborted(interrupted) step(1) answer finished",
    ),
    (
        "os_a10 a cancel while nothing runs ends it too",
        "«goal:g» «cancel» «p1» reply",
        "goal(g) step(1) answer finished",
    ),
    (
        "os_a10 a failure pauses it",
        "«goal:g» «p1» reply fail(400) «p2» reply",
        "goal(g) step(1) answer finished continue(19) step(1) failed step(1) answer finished continue(18) step(1)",
    ),
    (
        "os_a11 at the end of input no turn begins by itself",
        "«goal:g» «p1» text «eof» fin(stop)",
        "goal(g) step(1) answer finished exit(0)",
    ),
    (
        "os_a10 a goal that is set in a turn has its place among the steers",
        "«p1» text «steer:s1» «task:g» fin(stop) reply",
        "step(1) answer applied(prompt,s1) step(2) goal(g) answer finished",
    ),
    (
        "os_a06 a reply that breaks off",
        "«p1» text cut",
        "step(1) d* message failed",
    ),
];

#[test]
fn os_a13_l1_l2_l3_l4_l5_each_scene_is_the_same_however_it_is_cut_and_drained() {
    for (number, (name, scene, _)) in (3..).zip(SCENES) {
        let mut duo = Duo::new();
        duo.play(scene);
        let make = || {
            let config = ServerConfig::serve(SEED, Asking::Ask);
            ServerMachine::<Openseek>::new(config, Openseek::host_line_rules())
        };
        let held = hold_cut(make, &duo.story, 3, number % 5 + 2);
        assert!(held.is_ok(), "{name}: {held:?}");
    }
}

#[test]
fn scenes_of_the_server() {
    let mut wrong = Vec::new();
    for (name, scene, lines) in SCENES {
        let mut duo = Duo::new();
        duo.play(scene);
        let labels = duo.labels();
        if labels != expected(lines) {
            wrong.push(format!(
                "{name}\n{}\n{}",
                labels.join(" "),
                duo.raw.join("\n")
            ));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n\n"));
}

#[test]
fn os_a10_twenty_turns_begin_by_themselves_and_then_no_more() {
    let mut duo = Duo::new();
    duo.play("«goal:g» «p1» reply");
    for left in (0..20).rev() {
        let labels = duo.labels();
        let continues = format!("continue({left})");
        assert!(labels.contains(&continues), "{labels:?}");
        duo.play("reply");
    }
    assert_eq!(
        duo.labels(),
        expected("answer finished goal_budget_exhausted")
    );
    // It may be armed anew.
    duo.play("«goal:g» «p2» reply");
    assert_eq!(
        duo.labels(),
        expected("goal(g) step(1) answer finished continue(19) step(1)")
    );
}

#[test]
fn os_10_os_a10_a_goal_that_cant_be_stored_is_an_error_of_the_session() {
    let mut duo = Duo::new();
    duo.disk = Err("disk full".into());
    duo.play("«goal:g» «clear»");
    assert_eq!(duo.labels(), ["session_error", "session_error"]);
    duo.disk = Ok(());
    duo.play("«p1» reply");
    assert_eq!(duo.labels(), expected("step(1) answer finished"));
}
