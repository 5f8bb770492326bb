//! Scenes of the Client: what its host asks, what an engine writes, and what the host sees and the engine reads of it.

use turnwire::protocol::Protocol;
use turnwire::protocol::openseek::{ClientConfig, Openseek};
use turnwire_proptests::laws::{ClientMachine, hold_cut};

use crate::client_kit::{play, rig};

/// Name, what happens, what the host sees, what the engine reads.
const SCENES: &[(&str, &str, &str, &str)] = &[
    (
        "os_a09 a text turn",
        "«p:a» step(1) d(Hel) d(lo) message(Hello) usage finished(Hello)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "prompt(a)",
    ),
    (
        "os_a09 reasoning, then text, whole alone",
        "«p:a» step(1) reasoning(hm) message(Hello) usage finished(Hello)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "prompt(a)",
    ),
    (
        "os_a09 a retry voids what was shown",
        "«p:a» step(1) d(x) retry(2) d(y) message(y) usage finished(y)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) d(text) b-(text) m-(Failed,void) Rq-(Failed) Ry Rq m+ b+(text) d(text) \
         b-(text) m-(NotSaid) Rq-(ok) Ry-(ok) S- T-(Finished) P-(1,Finished) Set",
        "prompt(a)",
    ),
    (
        "os_a06 calls are told by their results",
        "«p:a» step(1) usage result(c1,look) undecoded(c2,edit) error(c3,look) skipped(c4,look) step(2) message(b) usage finished(b)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) t-(c1,Ok) t+(c2) t-(c2,Invalid) t+(c3) t-(c3,Failed) t+(c4) \
         t-(c4,Cancelled) S- S+ Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "prompt(a)",
    ),
    (
        "os_09 os_a08 a question is about the next result of its tool",
        "«p:a» step(1) usage ask(q1,write) «allow» «deny» resolved(q1,allowed_once) result(c1,write) step(2) message(b) usage finished(b)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) A?(c1) R(2,Sent) R(3,Err(AlreadySettled)) A!(approved) Dc(yes) \
         t-(c1,Ok) S- S+ Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "prompt(a) approval(q1,true)",
    ),
    (
        "os_09 a rejected call is denied, and one of another tool isn't it",
        "«p:a» step(1) usage ask(q1,write) «deny» error(c0,look) resolved(q1,rejected) error(c1,write) max_steps",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) A?(c1) R(2,Sent) t+(c2) t-(c2,Failed) A!(declined) Dc(no) \
         t-(c1,Denied) S- T-(MaxSteps) P-(1,MaxSteps) Set",
        "prompt(a) approval(q1,false)",
    ),
    (
        "os_a08 a cancel resolves a question",
        "«p:a» step(1) usage ask(q1,write) «cancel» resolved(q1,cancelled) error(c1,write) aborted(interrupted)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) A?(c1) R(2,Cancelling(Turn)) A!(Cancelled) Dc(no) t-(c1,Cancelled) \
         S- T-(Cancelled) P-(1,Cancelled) Set",
        "prompt(a) cancel",
    ),
    (
        "os_09 a denial that interrupts is followed by a cancel",
        "«p:a» step(1) usage ask(q1,write) «deny!» resolved(q1,rejected) error(c1,write) aborted(interrupted)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) A?(c1) R(2,Sent) A!(declined) Dc(no) t-(c1,Denied) S- T-(Cancelled) \
         P-(1,Cancelled) Set",
        "prompt(a) approval(q1,false) cancel",
    ),
    (
        "os_a08 a question that its turn leaves open is closed with it",
        "«p:a» step(1) usage ask(q1,write) failed(x)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) A?(c1) ! A!(Fault) Dc(no) t-(c1,Denied) S- T-(Failed) P-(1,Failed) Set",
        "prompt(a)",
    ),
    (
        "os_a06 prompts have their turns in their order, and what may wait waits here",
        "«p:a» «later:c» «p:b» step(1) message(x) usage finished(x) step(1) message(y) usage finished(y) step(1) message(z) usage finished(z)",
        "Opened() R(1,Started) R(2,Queued(Later)) Q(2,Later) R(3,Queued(Next)) Q(3,Next) T+ S+ Ap(1) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- \
         T-(Finished) P-(1,Finished) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(3,Finished) T+ S+ Ap(2) M(user) Rq \
         m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
        "prompt(a) prompt(b) prompt(c)",
    ),
    (
        "os_a06 only an idle engine is asked",
        "«p:a» «now:b»",
        "Opened() R(1,Started) R(2,Err(Busy))",
        "prompt(a)",
    ),
    (
        "os_a07 a steer is applied at the next step",
        "«p:a» step(1) usage «steer:s» result(c1,look) applied(prompt,s) step(2) message(b) usage finished(b)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) R(2,Queued(Steer)) Q(2,Steer) t+(c1) t-(c1,Ok) S- S+ Ap(2) M(user) Rq m+ \
         m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) P-(2,Finished) Set",
        "prompt(a) steer(s)",
    ),
    (
        "os_a07 a steer that came too late is dropped",
        "«p:a» step(1) «steer:s» message(b) usage finished(b) dropped(s)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Queued(Steer)) Q(2,Steer) m+ m-(NotSaid) Rq-(ok) Q(2,FollowUp) S- T-(Finished) \
         P-(1,Finished) P-(2,Dropped) Set",
        "prompt(a) steer(s)",
    ),
    (
        "os_a07 one that may begin a turn does so then",
        "«p:a» step(1) «start:s» message(b) usage finished(b) dropped(s) step(1) message(c) usage finished(c)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Queued(Steer)) Q(2,Steer) m+ m-(NotSaid) Rq-(ok) Q(2,FollowUp) S- T-(Finished) \
         P-(1,Finished) Q(2,Next) T+ S+ Ap(2) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
        "prompt(a) steer(s) prompt(s)",
    ),
    (
        "os_a07 there is nothing to steer",
        "«steer:s» «start:t» step(1) message(c) usage finished(c)",
        "Opened() R(1,Queued(Steer)) P-(1,Dropped) R(2,Started) T+ S+ Ap(2) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
        "prompt(t)",
    ),
    (
        "os_08 a command begins no turn",
        "«context:k» applied(command,k) «p:a» step(1) «context:l» usage result(c1,look) applied(command,l) step(2) message(b) usage finished(b)",
        "Opened() R(1,Local) Ap(1) M(user) P-(1,Local) R(2,Started) T+ S+ Ap(2) M(user) Rq R(3,Queued(Steer)) Q(3,Steer) Rq-(ok) t+(c1) \
         t-(c1,Ok) S- S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) P-(3,Finished) Set",
        "command(k) prompt(a) command(l)",
    ),
    (
        "os_08 a command that couldn't be stored",
        "«context:k» unstored(command:full)",
        "Opened() R(1,Local) N(Error) P-(1,Failed)",
        "command(k)",
    ),
    (
        "os_08 a session_error of other words is about nothing that was said",
        "«context:k» unstored(full) applied(command,k)",
        "Opened() R(1,Local) N(Error) Ap(1) M(user) P-(1,Local)",
        "command(k)",
    ),
    (
        "os_08 commands that couldn't be stored are told in their order",
        "«p:a» step(1) «context:k» «context:l» usage result(c1,look) applied(command,l) step(2) unstored(command:full) message(b) usage finished(b)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Queued(Steer)) Q(2,Steer) R(3,Queued(Steer)) Q(3,Steer) Rq-(ok) \
         t+(c1) t-(c1,Ok) S- S+ Ap(3) M(user) Rq N(Error) P-(2,Failed) m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) \
         P-(3,Finished) Set",
        "prompt(a) command(k) command(l)",
    ),
    (
        "os_08 what the engine says to itself",
        "«p:a» step(1) usage result(c1,look) applied(notice,n) step(2) message(b) usage finished(b) notice(m)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) t+(c1) t-(c1,Ok) S- S+ M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(1,Finished) Set M(user)",
        "prompt(a)",
    ),
    (
        "os_a10 a cancel wins over an end that it has crossed",
        "«p:a» step(1) «cancel» message(b) usage finished(b)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Cancelling(Turn)) m+ m-(Cancelled) Rq-(Cancelled) N(Info) S- T-(Cancelled) \
         P-(1,Cancelled) Set",
        "prompt(a) cancel",
    ),
    (
        "os_a10 a cancel before the turn was told of",
        "«p:a» «cancel» step(1) aborted(interrupted)",
        "Opened() R(1,Started) T+ R(2,Cancelling(Turn)) S+ Ap(1) M(user) Rq Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set",
        "prompt(a) cancel",
    ),
    (
        "os_a10 a cancel that took the prompt out",
        "«p:a» «next» «wait:1999» «wait:1»",
        "Opened() R(1,Started) R(2,Cancelling(Nothing)) P-(1,Withdrawn)",
        "prompt(a) cancel",
    ),
    (
        "os_a10 a cancel that came too late for its turn has taken out the next prompt",
        "«p:a» «p:b» step(1) «cancel» message(x) usage finished(x) «wait:1999» «wait:1»",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) T+ S+ Ap(1) M(user) Rq R(3,Cancelling(Turn)) m+ m-(Cancelled) \
         Rq-(Cancelled) N(Info) S- T-(Cancelled) P-(1,Cancelled) P-(2,Withdrawn) Set",
        "prompt(a) prompt(b) cancel",
    ),
    (
        "os_a10 a cancel that came too late for its turn may have ended the next one",
        "«p:a» «p:b» «p:c» step(1) «cancel» message(x) usage finished(x) step(1) aborted(interrupted) «wait:9999» step(1) message(y) usage finished(y)",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) R(3,Queued(Next)) Q(3,Next) T+ S+ Ap(1) M(user) Rq \
         R(4,Cancelling(Turn)) m+ m-(Cancelled) Rq-(Cancelled) N(Info) S- T-(Cancelled) P-(1,Cancelled) T+ S+ Ap(2) M(user) Rq \
         Rq-(Cancelled) S- T-(Cancelled) P-(2,Cancelled) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(3,Finished) Set",
        "prompt(a) prompt(b) prompt(c) cancel",
    ),
    (
        "os_a10 of prompts that one cancel may have taken out, one is missed and no more",
        "«p:a» «p:b» «p:c» «next» step(1) message(x) usage finished(x) step(1) message(y) usage finished(y) «close» «wait:1999» «wait:1»",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) R(3,Queued(Next)) Q(3,Next) T+ R(4,Cancelling(Turn)) S+ Ap(1) \
         M(user) Rq m+ m-(Cancelled) Rq-(Cancelled) N(Info) S- T-(Cancelled) P-(1,Cancelled) T+ S+ Ap(2) M(user) Rq m+ \
         m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) R(5,Done) P-(3,Withdrawn) Set CloseInput",
        "prompt(a) prompt(b) prompt(c) cancel",
    ),
    (
        "os_a10 where a cancel took one out, the newest is missed",
        "«p:a» «p:b» «p:c» step(1) «cancel» aborted(interrupted) «next» «p:d» step(1) message(x) usage finished(x) unstarted(full) «wait:1999» «wait:1»",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) R(3,Queued(Next)) Q(3,Next) T+ S+ Ap(1) M(user) Rq \
         R(4,Cancelling(Turn)) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) R(6,Queued(Next)) Q(6,Next) T+ \
         R(5,Cancelling(Turn)) S+ Ap(2) M(user) Rq m+ m-(Cancelled) Rq-(Cancelled) N(Info) S- T-(Cancelled) P-(2,Cancelled) \
         P-(3,Failed) P-(6,Withdrawn) Set",
        "prompt(a) prompt(b) prompt(c) cancel cancel prompt(d)",
    ),
    (
        "os_a10 a prompt that was written after a cancel isn't taken out by it",
        "«p:a» step(1) «cancel» «p:b» message(x) usage finished(x) «wait:9999» step(1) message(y) usage finished(y)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Cancelling(Turn)) R(3,Queued(Next)) Q(3,Next) m+ m-(Cancelled) \
         Rq-(Cancelled) N(Info) S- T-(Cancelled) P-(1,Cancelled) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(3,Finished) Set",
        "prompt(a) cancel prompt(b)",
    ),
    (
        "os_a10 a cancel that was before a compaction ends it",
        "«p:a» «compact» «next» compacting uncompacted(cancelled) «wait:9999» step(1) message(x) usage finished(x)",
        "Opened() R(1,Started) R(2,Sent) C+ R(3,Cancelling(Compaction)) C- T+ S+ Ap(1) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- \
         T-(Finished) P-(1,Finished) Set",
        "prompt(a) compact cancel",
    ),
    (
        "os_a06 a prompt that is refused is the oldest that waits",
        "«p:a» «p:b» «p:c» step(1) message(x) usage finished(x) unstarted(full) step(1) message(y) usage finished(y)",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) R(3,Queued(Next)) Q(3,Next) T+ S+ Ap(1) M(user) Rq m+ m-(NotSaid) \
         Rq-(ok) S- T-(Finished) P-(1,Finished) P-(2,Failed) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(3,Finished) Set",
        "prompt(a) prompt(b) prompt(c)",
    ),
    (
        "os_a10 a cancel while nothing runs",
        "«next» «cancel»",
        "Opened() R(1,Cancelling(Nothing)) R(2,Cancelling(Nothing))",
        "cancel",
    ),
    (
        "os_a10 a cancel of all that waits cancels each as it begins",
        "«p:a» «p:b» «later:c» step(1) «drop» aborted(interrupted) step(1) aborted(interrupted)",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) R(3,Queued(Later)) Q(3,Later) T+ S+ Ap(1) M(user) Rq R(4,Cancelling(Turn)) \
         P-(3,Dropped) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) T+ S+ Ap(2) M(user) Rq Rq-(Cancelled) S- T-(Cancelled) \
         P-(2,Cancelled) Set",
        "prompt(a) prompt(b) cancel cancel",
    ),
    (
        "os_a10 a prompt that wants the turn now",
        "«p:a» step(1) «preempt:b» aborted(interrupted) step(1) message(x) usage finished(x)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq R(2,Queued(Next)) Q(2,Next) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) T+ S+ \
         Ap(2) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
        "prompt(a) cancel prompt(b)",
    ),
    (
        "os_a10 a goal goes on by itself, to its budget",
        "«goal:g» goal(g) «p:a» step(1) message(x) usage finished(x) continue(19) reminder(r) step(1) message(y) usage finished(y) exhausted",
        "Opened() R(1,Goal) Goal R(2,Started) T+ S+ Ap(2) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) T+ S+ M(user) \
         M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) Goal Set",
        "goal(g) prompt(a)",
    ),
    (
        "os_a10 any cancel ends the automatic goal",
        "«goal:g» goal(g) «next» «p:a» step(1) message(x) usage finished(x)",
        "Opened() R(1,Goal) Goal Goal R(2,Cancelling(Nothing)) R(3,Started) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(3,Finished) Set",
        "goal(g) cancel prompt(a)",
    ),
    (
        "os_07 goals that are refused",
        "«goal:» «task:g» wrong(no) «clear» unstored(goal:full) «clear» goal()",
        "Opened() R(1,Err(Empty)) R(2,Err(Invalid)) N(Error) R(3,Err(Failed)) R(4,Goal) Goal",
        "set(g) clear() clear()",
    ),
    (
        "os_07 a goal that can't be stored is told of in a turn, too, and other errors aren't its",
        "«p:a» step(1) «task:g» unstored(full) wrong(unknown_command:_x) unstored(goal:full) message(x) usage finished(x)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq N(Error) ! N(Error) R(2,Err(Failed)) m+ m-(NotSaid) Rq-(ok) S- \
         T-(Finished) P-(1,Finished) Set",
        "prompt(a) set(g)",
    ),
    (
        "os_10 a barrier waits for what was asked before",
        "«barrier» «task:g» «barrier» goal(g)",
        "Opened() R(1,Done) R(2,Goal) Goal R(3,Done)",
        "set(g)",
    ),
    (
        "os_10 compactions, by hand and within a turn",
        "«compact» compacting compacted «compact» compacting «cancel» uncompacted(cancelled) «p:a» step(1) usage result(c1,look) auto autoed yield(9,y)",
        "Opened() R(1,Sent) C+ C- Set R(2,Sent) C+ R(3,Cancelling(Compaction)) C- Set R(4,Started) T+ S+ Ap(4) M(user) Rq Rq-(ok) t+(c1) \
         t-(c1,Ok) C+ C- S- T-(Yielded) P-(4,Yielded) Set",
        "compact compact cancel prompt(a)",
    ),
    (
        "os_10 a compaction with nothing to sum up, and one that is refused in a turn",
        "«compact» uncompacted(nothing) «p:a» step(1) «compact» uncompacted(busy) message(x) usage finished(x)",
        "Opened() R(1,Sent) C+ C- Set R(2,Started) T+ S+ Ap(2) M(user) Rq R(3,Sent) N(Error) m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(2,Finished) Set",
        "compact prompt(a) compact",
    ),
    (
        "os_10 runs within the turn",
        "«p:a» step(1) usage run(sr-1) run(sr-2) ran(sr-1) finished(x)",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq Rq-(ok) RunStarted RunStarted RunEnded RunEnded S- T-(Finished) P-(1,Finished) Set",
        "prompt(a)",
    ),
    (
        "os_10 a turn that couldn't begin, and one without steps that failed",
        "«p:a» unstarted(x) «p:b» failed(y) «p:c» aborted(enough)",
        "Opened() R(1,Started) P-(1,Failed) R(2,Started) T+ T-(Failed) P-(2,Failed) Set R(3,Started) T+ T-(Aborted) P-(3,Aborted) Set",
        "prompt(a) prompt(b) prompt(c)",
    ),
    (
        "os_a11 an engine that is told to leave finishes what runs",
        "«p:a» «close» «p:b» step(1) message(x) usage finished(x) end",
        "Opened() R(1,Started) R(2,Done) R(3,Err(Closing)) T+ S+ Ap(1) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set \
         CloseInput Closed(Drained) Gone",
        "prompt(a)",
    ),
    (
        "os_a11 an engine whose answers are missing is let go all the same",
        "«context:k» «task:g» «p:a» step(1) message(x) usage finished(x) «close» end",
        "Opened() R(1,Local) R(3,Started) T+ S+ Ap(3) M(user) Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(3,Finished) \
         R(4,Done) CloseInput R(2,Err(Closing)) P-(1,Dropped) Set Closed(Drained) Gone",
        "command(k) set(g) prompt(a)",
    ),
    (
        "os_a11 an engine that is to leave now cancels what runs, and what waits as it begins",
        "«p:a» «p:b» step(1) «leave» aborted(interrupted) step(1) aborted(interrupted) end",
        "Opened() R(1,Started) R(2,Queued(Next)) Q(2,Next) T+ S+ Ap(1) M(user) Rq R(3,Done) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) \
         T+ S+ Ap(2) M(user) Rq Rq-(Cancelled) S- T-(Cancelled) P-(2,Cancelled) Set CloseInput Closed(HostGone) Gone",
        "prompt(a) prompt(b) cancel cancel",
    ),
    (
        "os_a11 an engine that dies in a turn",
        "«p:a» step(1) d(x) «p:b» «task:g» end",
        "Opened() R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) d(text) R(2,Queued(Next)) Q(2,Next) b-(text) m-(NotSaid) Rq-(Failed) S- \
         T-(Failed) P-(1,Failed) R(3,Err(Failed)) P-(2,Dropped) Set Closed(Fault) Gone",
        "prompt(a) prompt(b) set(g)",
    ),
];

#[test]
fn scenes_of_the_client() {
    let mut wrong = Vec::new();
    for (name, scene, events, lines) in SCENES {
        let seen = play(&mut rig(), scene);
        if (seen.0.as_str(), seen.1.as_str()) != (*events, *lines) {
            wrong.push(format!("{name}\n{}\n{}", seen.0, seen.1));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n\n"));
}

#[test]
fn os_a13_l1_l2_l3_l4_l5_l9_each_scene_is_the_same_however_it_is_cut_and_drained() {
    for (number, (name, scene, ..)) in (3..).zip(SCENES) {
        let mut rig = rig();
        play(&mut rig, scene);
        let make = || {
            let rules = Openseek::agent_line_rules();
            ClientMachine::<Openseek>::new(ClientConfig::default(), rules)
        };
        let held = hold_cut(make, &rig.told, 7, number % 5 + 2);
        assert!(held.is_ok(), "{name}: {held:?}");
    }
}
