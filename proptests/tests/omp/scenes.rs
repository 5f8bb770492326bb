//! Scenes of omp: what the agent says in neutral words, and the lines that it becomes. Those that a recording of the
//! real program shows, too, name it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::omp_server_kit;

use omp_server_kit::labels::{expected, labels};
use omp_server_kit::{Rig, config};
use turnwire::protocol::Protocol;
use turnwire::protocol::omp::Omp;
use turnwire_proptests::laws::{ServerMachine, hold_cut};

/// Name, neutral events, lines.
const SCENES: &[(&str, &str, &str)] = &[
    (
        "omp_03 text [02]",
        "«p1:prompt» open(p1) text end(p1,Finished)",
        "begin(p1) answer turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 thinking, then text [03]",
        "«p1:prompt» open(p1) think+text end(p1,Finished)",
        "begin(p1) msg_start thinking text msg_end(stop) turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 two tools side by side [05]",
        "«p1:prompt» open(p1) calls(text,c1,c2) t+(c1) t+(c2) t~(c1) t~(c2) t~(c2) t-(c2) t~(c1) t-(c1) S- next text \
         end(p1,Finished)",
        "begin(p1) msg_start text calls(2) msg_end(toolUse) exec_start(c1) exec_start(c2) exec_update(c1) exec_update(c2) \
         exec_update(c2) exec_end(c2) result exec_update(c1) exec_end(c1) result turn_end turn_start answer turn_end \
         agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_11 a tool of the host's",
        "«t:tools» R(t,Done) «p1:prompt» open(p1) calls(text,c1) t+(c1) H?(c1) «u:hostupdate» R(u,Done) t~(c1) «h:hostresult» R(h,Done) \
         H!(answered) t-(c1) S- next text end(p1,Finished) «late:hostresult»",
        "response(t) begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) host_tool_call(c1) exec_update(c1) exec_end(c1) \
         result turn_end turn_start answer turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_11 an abort while a tool of the host's runs",
        "«t:tools» R(t,Done) «p1:prompt» open(p1) calls(text,c1) t+(c1) H?(c1) «a:abort» H!(cancelled) R(a,Turn) t-(c1,Cancelled) \
         end(p1,Cancelled)",
        "response(t) begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) host_tool_call(c1) host_tool_cancel exec_end(c1) \
         result turn_end turn_start empty(aborted) turn_end agent_end response(a) prompt_result(p1,aborted) \
         session_settled",
    ),
    (
        "omp_18 end of input with a tool of the host's open [21]",
        "«t:tools» R(t,Done) «p1:prompt» open(p1) calls(text,c1) t+(c1) H?(c1) «eof:eof» R(eof,Done) H!(fault) t-(c1,Failed) S- next \
         R(eof'2,Turn) Rq-(Cancelled) end(p1,Cancelled) R(eof'3,Done) Closed «x:eof»",
        "response(t) begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) host_tool_call(c1) exec_end(c1) result turn_end \
         turn_start empty(aborted) turn_end agent_end prompt_result(p1,aborted) session_settled exit(0)",
    ),
    (
        "omp_13 approved, then denied [24]",
        "«p1:prompt» open(p1) calls(text,c1) t+(c1) A?(c1) «d:Approve» R(d,Done) A!(approved) Dc t~(c1) t-(c1) S- next text \
         end(p1,Finished) «p2:prompt» open(p2) calls(text,c2) t+(c2) A?(c2) «e:Deny» R(e,Done) A!(declined) Dc \
         t-(c2,Denied) S- next text end(p2,Finished)",
        "begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) ui:select exec_update(c1) exec_end(c1) result \
         turn_end turn_start answer turn_end agent_end prompt_result(p1,completed) session_settled begin(p2) msg_start \
         text calls(1) msg_end(toolUse) exec_start(c2) ui:select exec_end(c2) result turn_end turn_start answer turn_end \
         agent_end prompt_result(p2,completed) session_settled",
    ),
    (
        "omp_13 a cancel with a question open, a second call never begun",
        "«p1:prompt» open(p1) calls(c1,c2) t+(c1) A?(c1) «a:abort» A!(cancelled) R(a,Turn) Dc t-(c1,Denied) skip(c2) \
         end(p1,Cancelled) «d:Approve»",
        "begin(p1) msg_start calls(2) msg_end(toolUse) exec_start(c1) ui:select ui:cancel exec_end(c1) result result \
         turn_end turn_start empty(aborted) turn_end agent_end response(a) prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_12 a URI of the host's",
        "«t:uris» R(t,Done) «p1:prompt» open(p1) calls(c1) t+(c1) U?(c1) «r:uriresult» R(r,Done) U!(answered) t-(c1) S- next text \
         end(p1,Finished)",
        "response(t) begin(p1) msg_start calls(1) msg_end(toolUse) exec_start(c1) host_uri_request exec_end(c1) result turn_end \
         turn_start answer turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_06 a steer while streaming [07]",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «s1:steer» R(s1,Steer) Qd(s1,Steer) d(text) b- m-(End) Rq-(ok) S- S+ \
         applied(s1) Cx Rq text S- T-(Finished) P-(p1,Finished) P-(s1,Finished) Set",
        "begin(p1) msg_start text_start text_delta* response(s1) queue_update text_delta* text_end msg_end(stop) turn_end \
         turn_start queue_update message(user) answer turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_06 a steer turns a running tool into a job that outlives the run [25]",
        "«p1:prompt» open(p1) calls(text,c1) t+(c1) «s1:steer» R(s1,Steer) Qd(s1,Steer) «p2:prompt+steer» R(p2,Steer) \
         Qd(p2,Steer) t-(c1,Detached) S- S+ applied(s1) Cx Rq text S- S+ applied(p2) Cx Rq text S- T-(Finished,bg) \
         P-(p1,Finished) P-(s1,Finished) P-(p2,Finished) T+ S+ M(job) Cx Rq text S- T-(Finished) Set",
        "begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) response(s1) queue_update response(p2) \
         queue_update exec_end(c1) result turn_end turn_start queue_update message(user) answer turn_end turn_start \
         queue_update message(user) answer turn_end agent_end prompt_result(p1,completed) prompt_result(p2,completed) \
         agent_start turn_start message(custom) answer turn_end agent_end session_settled",
    ),
    (
        "omp_06 steer and follow_up when idle [34]",
        "«s:steer» open(s) text end(s,Finished) «f:follow_up» open(f) text end(f,Finished) «g:get_state» R(g,Done)",
        "begin(s) answer turn_end agent_end session_settled begin(f) answer turn_end agent_end session_settled response(g)",
    ),
    (
        "omp_06 a follow-up queued by a prompt [08]",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p2:prompt+follow» R(p2,FollowUp) Qd(p2,FollowUp) d(text) b- m-(End) \
         Rq-(ok) S- S+ applied(p2) Cx Rq text S- T-(Finished) P-(p1,Finished) P-(p2,Finished) Set",
        "begin(p1) msg_start text_start text_delta* response(p2) queue_update text_delta* text_end msg_end(stop) turn_end \
         turn_start queue_update message(user) answer turn_end agent_end prompt_result(p1,completed) \
         prompt_result(p2,completed) session_settled",
    ),
    (
        "omp_06 a queued prompt is withdrawn",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p2:prompt+follow» R(p2,FollowUp) Qd(p2,FollowUp) «w:remove=p2» \
         R(w,Withdrawn) P-(p2,Withdrawn) d(text) b- m-(End) Rq-(ok) end(p1,Finished) «v:remove=p2»",
        "begin(p1) msg_start text_start text_delta* response(p2) queue_update response(w) prompt_result(p2,aborted) \
         queue_update text_delta* text_end msg_end(stop) turn_end agent_end prompt_result(p1,completed) session_settled \
         response(v)",
    ),
    (
        "omp_05 a prompt without a behaviour in a running turn",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p3:prompt» R(p3,Busy) d(text) b- m-(End) Rq-(ok) end(p1,Finished)",
        "begin(p1) msg_start text_start text_delta* response(p3,false) text_delta* text_end msg_end(stop) turn_end agent_end \
         prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_07 an abort while streaming",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «a:abort» R(a,Turn) m-(Cancelled) Rq-(Cancelled) end(p1,Cancelled)",
        "begin(p1) msg_start text_start text_delta* msg_end(aborted) turn_end agent_end response(a) \
         prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_07 an abort before the first byte",
        "«p1:prompt» open(p1) «a:abort» R(a,Turn) Rq-(Cancelled) end(p1,Cancelled)",
        "begin(p1) empty(aborted) turn_end agent_end response(a) prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_07 an abort while the last tool runs [10]",
        "«p1:prompt» open(p1) calls(text,c1) t+(c1) «a1:abort» R(a1,Turn) t-(c1,Cancelled) end(p1,Cancelled)",
        "begin(p1) msg_start text calls(1) msg_end(toolUse) exec_start(c1) exec_end(c1) result turn_end turn_start \
         empty(aborted) turn_end agent_end response(a1) prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_07 an abort in the second of three calls",
        "«p1:prompt» open(p1) calls(c1,c2,c3) t+(c1) t-(c1) t+(c2) «a:abort» R(a,Turn) t-(c2,Cancelled) skip(c3) \
         end(p1,Cancelled)",
        "begin(p1) msg_start calls(3) msg_end(toolUse) exec_start(c1) exec_end(c1) result exec_start(c2) exec_end(c2) result \
         result turn_end turn_start empty(aborted) turn_end agent_end response(a) prompt_result(p1,aborted) \
         session_settled",
    ),
    (
        "omp_07 an abort with a follow-up queued; the next prompt delivers it [35]",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «f1:follow_up» R(f1,FollowUp) Qd(f1,FollowUp) «a:abort» R(a,Turn) \
         m-(Cancelled) Rq-(Cancelled) end(p1,Cancelled,held) «g:get_state» R(g,Done) «p2:prompt» open(p2) text S- S+ \
         applied(f1) Cx Rq text S- T-(Finished) P-(p2,Finished) P-(f1,Finished) Set",
        "begin(p1) msg_start text_start text_delta* response(f1) queue_update msg_end(aborted) turn_end agent_end response(a) \
         prompt_result(p1,aborted) response(g) begin(p2) answer turn_end turn_start queue_update message(user) answer \
         turn_end agent_end prompt_result(p2,completed) session_settled",
    ),
    (
        "omp_07 abort_and_prompt",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «ab:abort_and_prompt» R(ab,Next) Qd(ab) m-(Cancelled) Rq-(Cancelled) \
         end(p1,Cancelled,held) T+ S+ applied(ab) Cx Rq text end(ab,Finished)",
        "begin(p1) msg_start text_start text_delta* msg_end(aborted) turn_end agent_end response(ab) \
         prompt_result(p1,aborted) agent_start turn_start message(user) answer turn_end agent_end \
         prompt_result(ab,completed) session_settled",
    ),
    (
        "omp_07 abort_and_restore_queue takes what waits back",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p2:prompt+follow» R(p2,FollowUp) Qd(p2,FollowUp) \
         «a:abort_and_restore_queue» R(a,Turn,p2) P-(p2,Withdrawn) m-(Cancelled) Rq-(Cancelled) end(p1,Cancelled)",
        "begin(p1) msg_start text_start text_delta* response(p2) queue_update queue_update prompt_result(p2,aborted) \
         msg_end(aborted) turn_end agent_end response(a) prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_07 abort_and_restore_queue takes all that waits back at once",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p2:prompt+follow» R(p2,FollowUp) Qd(p2,FollowUp) «p3:prompt+follow» \
         R(p3,FollowUp) Qd(p3,FollowUp) «a:abort_and_restore_queue» R(a,Turn,p2,p3) P-(p2,Withdrawn) P-(p3,Withdrawn) \
         m-(Cancelled) Rq-(Cancelled) end(p1,Cancelled)",
        "begin(p1) msg_start text_start text_delta* response(p2) queue_update response(p3) queue_update queue_update \
         prompt_result(p2,aborted) prompt_result(p3,aborted) msg_end(aborted) turn_end agent_end response(a) \
         prompt_result(p1,aborted) session_settled",
    ),
    (
        "omp_07 new_session while streaming [29]",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «n1:new_session» m-(Detached) Rq-(Cancelled) S- T-(Switch) P-(p1,Switch) \
         Set Opened R(n1,Session)",
        "begin(p1) msg_start text_start text_delta* prompt_result(p1,aborted) session_settled available_commands_update \
         response(n1)",
    ),
    (
        "omp_07 a change that is vetoed closes nothing",
        "«p1:prompt» open(p1) m+ b+(text) d(text) b- «n1:new_session» m-(End) R(n1,Vetoed) Rq-(ok) end(p1,Finished)",
        "begin(p1) msg_start text response(n1) msg_end(stop) turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 a stream that failed after a message began is tried again [30]",
        "«p1:prompt» open(p1) m+ b+(text) m-(Failed,void) Rq-(Failed) Ry Rq text Ry-(ok) end(p1,Finished)",
        "begin(p1) msg_start text_start msg_end(error) turn_end auto_retry_start agent_start turn_start answer turn_end \
         auto_retry_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 abort_retry in the wait, then a failure that isn't retried [32]",
        "«p1:prompt» open(p1) m+ b+(text) m-(Failed,void) Rq-(Failed) Ry «ar:abort_retry» R(ar,Retry) Ry-(no) end(p1,Failed) \
         «p2:prompt» open(p2) Rq-(Failed) end(p2,Failed)",
        "begin(p1) msg_start text_start msg_end(error) turn_end auto_retry_start response(ar) auto_retry_end agent_end \
         prompt_result(p1,error) session_settled begin(p2) empty(error) turn_end agent_end prompt_result(p2,error) \
         session_settled",
    ),
    (
        "omp_03 an attempt behind a summary is no retry",
        "«p1:prompt» open(p1) Rq-(Failed) C+(Overflow) C-(Ok) Rq Rq-(Failed) Ry(3) Rq text Ry-(ok) end(p1,Finished)",
        "begin(p1) empty(error) auto_compaction_start auto_compaction_end empty(error) turn_end auto_retry_start agent_start \
         turn_start answer turn_end auto_retry_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 retries used up",
        "«p1:prompt» open(p1) Rq-(Failed) Ry Rq Rq-(Failed) Ry-(gave-up) end(p1,Failed)",
        "begin(p1) empty(error) turn_end auto_retry_start agent_start turn_start empty(error) turn_end auto_retry_end \
         agent_end prompt_result(p1,error) session_settled",
    ),
    (
        "omp_03 a failure inside the stream after text",
        "«p1:prompt» open(p1) m+ b+(text) d(text) m-(Failed) Rq-(Failed) end(p1,Failed)",
        "begin(p1) msg_start text_start text_delta* msg_end(error) turn_end agent_end prompt_result(p1,error) \
         session_settled",
    ),
    (
        "omp_03 no completion signal, a half call",
        "«p1:prompt» open(p1) m+ b+(text) d(text) b- b+(call,c1) d(input) m-(Truncated) Rq-(Truncated) skip(c1) \
         end(p1,Truncated)",
        "begin(p1) msg_start text toolcall_start toolcall_delta* msg_end(error) result turn_end agent_end \
         prompt_result(p1,error) session_settled",
    ),
    (
        "omp_03 the limit on tokens is a completion [26]",
        "«p1:prompt» open(p1) m+ b+(text) d(text) b- m-(MaxTokens) Rq-(ok) end(p1,Finished)",
        "begin(p1) msg_start text msg_end(length) turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_03 the turn-end hook refuses once",
        "«p1:prompt» open(p1) text CR S- S+ M(user) Cx Rq text end(p1,Finished)",
        "begin(p1) answer turn_end turn_start message(user) answer turn_end agent_end prompt_result(p1,completed) \
         session_settled",
    ),
    (
        "omp_03 a note between two turns waits for the next",
        "«p1:prompt» open(p1) text S- M(note) S+ Cx Rq text end(p1,Finished)",
        "begin(p1) answer turn_end turn_start message(custom) answer turn_end agent_end prompt_result(p1,completed) \
         session_settled",
    ),
    (
        "omp_03 budget exhausted at once",
        "«p1:prompt» R(p1,Started) T+ T-(BudgetExhausted) P-(p1,BudgetExhausted) Set",
        "response(p1) agent_start agent_end prompt_result(p1,error) session_settled",
    ),
    (
        "omp_03 a slash command handled without the model",
        "«c1:prompt» R(c1,Local) M(output,c1) P-(c1,Local)",
        "command_output response(c1,local)",
    ),
    (
        "omp_02 compact when idle",
        "«k:compact» R(k,Done) C+ C-(Ok)",
        "response(k)",
    ),
    (
        "omp_04 an abort passes a compact that waits, and ends it",
        "«k:compact» R(k,Done) C+ «g:get_state» «a:abort» R(a,Compaction) C-(Cancelled) R(a'2,Done)",
        "response(k,false) response(a) response(g)",
    ),
    (
        "omp_07 an abort takes back the prompt that waits before it",
        "«k:compact» R(k,Done) C+ «p1:prompt» «a:abort» R(a,Compaction) C-(Cancelled)",
        "response(p1,false) response(k,false) response(a)",
    ),
    (
        "omp_07 an abort when idle",
        "«a:abort» R(a,Nothing)",
        "response(a)",
    ),
    (
        "omp_03 compaction at a boundary",
        "«p1:prompt» open(p1) calls(c1) t+(c1) t-(c1) S- C+(Auto) C-(Ok) next text end(p1,Finished)",
        "begin(p1) msg_start calls(1) msg_end(toolUse) exec_start(c1) exec_end(c1) result turn_end auto_compaction_start \
         auto_compaction_end turn_start answer turn_end agent_end prompt_result(p1,completed) session_settled",
    ),
    (
        "omp_18 a signal in a run",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «s:term» R(s,Turn) m-(Cancelled) Rq-(Cancelled) end(p1,Cancelled) Closed \
         «x:eof»",
        "begin(p1) msg_start text_start text_delta* msg_end(aborted) turn_end agent_end prompt_result(p1,aborted) \
         session_settled exit(143)",
    ),
    (
        "omp_18 an agent that dies in the middle leaves nothing open",
        "«p1:prompt» open(p1) m+ b+(text) d(text) «k:compact» Closed «x:eof»",
        "begin(p1) msg_start text_start text_delta* msg_end(aborted) turn_end agent_end prompt_result(p1,aborted) \
         response(k,false) exit(0)",
    ),
];

#[test]
fn omp_03_scenes_give_their_lines() {
    let mut wrong = Vec::new();
    for (name, events, lines) in SCENES {
        let mut rig = Rig::new();
        rig.take();
        rig.play(events);
        let (labels, expected) = (labels(&rig.take()), expected(lines));
        if labels != expected {
            wrong.push(format!(
                "{name}\n  is {}\n  not {}",
                labels.join(" "),
                expected.join(" ")
            ));
        }
        wrong.extend(
            rig.errors()
                .into_iter()
                .map(|error| format!("{name}: {error}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn omp_07_what_was_given_back_shows_in_no_queue() {
    let mut rig = Rig::new();
    rig.play(
        "«p1:prompt» open(p1) m+ b+(text) d(text) «p2:prompt+follow» R(p2,FollowUp) Qd(p2,FollowUp) «p3:prompt+follow» \
         R(p3,FollowUp) Qd(p3,FollowUp) «a:abort_and_restore_queue» R(a,Turn,p2,p3) P-(p2,Withdrawn) P-(p3,Withdrawn)",
    );
    let waiting: Vec<usize> = rig
        .take()
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["type"] == "queue_update")
        .map(|line| line["followUp"].as_array().unwrap().len())
        .collect();
    assert_eq!(waiting, [1, 2, 0]);
}

/// L1 to L6 and L9: the same inputs give the same bytes and outputs in the same order, however late the Server is
/// drained and however the host's bytes are cut; nothing spins, and time that goes back stands still.
#[test]
fn l1_l2_l3_l4_l5_l6_l9_scenes_keep_the_laws_of_every_machine() {
    for (name, events, _) in SCENES {
        let mut rig = Rig::new();
        rig.play(events);
        let make = || ServerMachine::<Omp>::new(config(), Omp::host_line_rules());
        let story = &rig.story;
        let law = hold_cut(make, story, 3, 3);
        let broken =
            law.map_err(|broken| (broken.law, broken.why.chars().take(400).collect::<String>()));
        assert_eq!(broken, Ok(()), "scene: {name}");
    }
}
