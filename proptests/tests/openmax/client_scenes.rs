//! Golden scenes: lines of the agent, and the neutral events that the Client makes of them.
//!
//! `>x` is a command of the host. The events are those of the Server's scenes, less what the wire doesn't say: a `!` is
//! a finding, `x(…)` an Extra, `N(…)` a Notice, `Q` Queued, `Gone` the last output.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::Rig;
use turnwire::vocab::*;

/// Name, what happens, what it becomes, and the lines to the agent.
const SCENES: &[(&str, &str, &str, &str)] = &[
    (
        "text turn",
        ">user budget token token usage done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "thinking, then text",
        ">user budget thinking token usage done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(thinking) d(thinking) b-(thinking) b+(text) d(text) b-(text) m-(NotSaid) \
         Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "parallel reads, end order Call",
        ">user budget usage done:empty tool_start(a) tool_start(b) tool_start(c) tool_end(a) tool_end(b) tool_end(c) budget token \
         done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) t+(c2) t+(c3) t-(c1,Ok) t-(c2,Ok) t-(c3,Ok) S- S+ \
         Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "read, then an approved write; a late and an unknown answer",
        ">user budget done:empty tool_start(a) tool_end(a) tool_start(b) ask(q) >approve settled(q,approved) diff(b) tool_end(b) \
         budget done:empty done(stop) >approve >approve9",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) t-(c1,Ok) t+(c2) A?(c2) R(2,Done) A!(approved) \
         Dc(yes) diff t-(c2,Ok) S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set R(3,Err(AlreadySettled)) \
         R(4,Err(Unknown))",
        "user approve(true)",
    ),
    (
        "declined",
        ">user budget done:empty tool_start(a) ask(q) >decline settled(q,declined) tool_fail(a) budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Done) A!(declined) Dc(no) t-(c1,Denied) \
         S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user approve(false)",
    ),
    (
        "timed out: the answer crosses, and is refused",
        ">user budget done:empty tool_start(a) ask(q) >approve settled(q,timed_out) settled? tool_fail(a) budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) A!(TimedOut) Dc(no) R(2,Err(AlreadySettled)) \
         t-(c1,TimedOut) S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user approve(true)",
    ),
    (
        "two questions, one after the other",
        ">user budget done:empty tool_start(a) ask(q) >decline settled(q,declined) tool_fail(a) tool_start(b) ask(r) >approve2 \
         settled(r,approved) tool_end(b) budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Done) A!(declined) Dc(no) t-(c1,Denied) \
         t+(c2) A?(c2) R(3,Done) A!(approved) Dc(yes) t-(c2,Ok) S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user approve(false) approve(true)",
    ),
    (
        "cancel with a question open",
        ">user budget done:empty tool_start(a) ask(q) >cancel settled(q,cancelled) tool_fail(a) done(cancelled) >approve",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Cancelling(Turn)) A!(Cancelled) Dc(no) \
         t-(c1,Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set R(3,Err(AlreadySettled))",
        "user cancel",
    ),
    (
        "a prompt and a reload in a running turn",
        ">user budget thinking >user >reload thinking token done:message done(stop) >user",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(thinking) d(thinking) R(2,Err(Busy)) R(3,Err(Busy)) d(thinking) b-(thinking) \
         b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user user",
    ),
    (
        "blank text: the agent refuses it",
        ">user refused(user.text.is.empty) done(refused) >user",
        "R(1,Err(Empty))",
        "user user",
    ),
    (
        "cancel while streaming",
        ">user budget token >cancel done:message done(cancelled)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) R(2,Cancelling(Turn)) b-(text) m-(Cancelled) Rq-(Cancelled) S- \
         T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "cancel before the first byte",
        ">user budget >cancel done:empty done(cancelled)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq R(2,Cancelling(Turn)) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "cancel before any line of the turn: what it hits is clear later",
        ">user >cancel budget done:empty done(cancelled)",
        "R(1,Started) T+ R(2,Cancelling(Turn)) S+ Ap(1) M(user) Cx Rq Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "cancel behind a prompt that is refused",
        ">user >cancel refused(user.text.is.empty) done(refused)",
        "R(1,Err(Empty)) R(2,Cancelling(Nothing))",
        "user cancel",
    ),
    (
        "cancel in the second of three calls",
        ">user budget usage done:empty tool_start(a) tool_end(a) tool_start(b) >cancel tool_fail(b) done(cancelled)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) t-(c1,Ok) t+(c2) R(2,Cancelling(Turn)) t-(c2,Failed) \
         S- T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "cancel while the last call runs; the older build starts one more step",
        ">user budget usage done:empty tool_start(a) >cancel tool_fail(a) budget done:empty done(cancelled)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) R(2,Cancelling(Turn)) t-(c1,Failed) S- S+ Cx Rq \
         Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "a cancel that crosses the turn's end: it was replied to, so it wins",
        ">user budget token done:message >cancel done(stop) >cancel",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) R(2,Cancelling(Turn)) N(Info) S- \
         T-(Cancelled) P-(1,Cancelled) Set R(3,Cancelling(Nothing))",
        "user cancel cancel",
    ),
    (
        "retry after thinking, then an answer",
        ">user budget thinking retry token usage done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(thinking) d(thinking) b-(thinking) m-(Failed,void) Rq-(Failed) Ry Rq m+ \
         b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) Ry-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "the first attempt fails unseen, cancel in the wait",
        ">user budget retry >cancel done:empty done(cancelled)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq Rq-(Failed) Ry R(2,Cancelling(Turn)) Ry-(no) S- T-(Cancelled) P-(1,Cancelled) Set",
        "user cancel",
    ),
    (
        "retries used up",
        ">user budget retry retry error done(error)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq Rq-(Failed) Ry Rq Rq-(Failed) Ry Ry-(no) S- T-(Failed) P-(1,Failed) Set",
        "user",
    ),
    (
        "failure inside the stream after text: nothing of it is kept",
        ">user budget token error done(error)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(Failed,void) Rq-(Failed) S- T-(Failed) P-(1,Failed) Set",
        "user",
    ),
    (
        "no completion signal: the partial text is kept",
        ">user budget token done:message error done(truncated)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Truncated) P-(1,Truncated) Set",
        "user",
    ),
    (
        "the turn-end hook refuses",
        ">user budget token done:message turn_refused budget token done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) CR S- S+ M(user) Cx Rq m+ b+(text) \
         d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "a prompt hook blocks",
        ">user error done(blocked)",
        "R(1,Started) T+ T-(Blocked) P-(1,Blocked) Set",
        "user",
    ),
    (
        "hooks that fail at the start and after a call",
        ">user hook_failed note() budget token done:message tool_start(a) hook_failed tool_end(a) budget done:empty done(stop)",
        "R(1,Started) T+ HF S+ Ap(1) M(user) M(note) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) t+(c1) HF t-(c1,Ok) S- \
         S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "quit in a turn waits for its end",
        ">user budget token >close done:message tool_start(a) tool_end(a) budget done:empty done(stop) end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) R(2,Done) b-(text) m-(NotSaid) Rq-(ok) t+(c1) t-(c1,Ok) S- S+ Cx \
         Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set CloseInput Closed(Drained) Gone",
        "user quit",
    ),
    (
        "quit with a question open: it can still be answered",
        ">user budget done:empty tool_start(a) ask(q) >close >approve settled(q,approved) tool_end(a) budget done:empty done(stop) end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Done) R(3,Done) A!(approved) Dc(yes) t-(c1,Ok) \
         S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set CloseInput Closed(Drained) Gone",
        "user approve(true) quit",
    ),
    (
        "close without draining",
        ">user budget done:empty tool_start(a) ask(q) >close! settled(q,declined) tool_fail(a) done(cancelled) end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Done) CloseInput A!(HostGone) Dc(no) \
         t-(c1,Denied) S- T-(Cancelled) P-(1,Cancelled) Set Closed(HostGone) Gone",
        "user cancel quit",
    ),
    (
        "a signal is passed on",
        ">user budget token >signal >close! done:message done(cancelled) end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) R(2,Cancelling(Turn)) Interrupt R(3,Done) CloseInput b-(text) \
         m-(Cancelled) Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set Closed(Signal) Gone",
        "user quit",
    ),
    (
        "budget exhausted at once",
        ">user done(budget_exhausted)",
        "R(1,Started) T+ T-(BudgetExhausted) P-(1,BudgetExhausted) Set",
        "user",
    ),
    (
        "step limit",
        ">user budget done:empty tool_start(a) tool_end(a) done(max_iterations)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) t-(c1,Ok) S- T-(MaxSteps) P-(1,MaxSteps) Set",
        "user",
    ),
    (
        "files changed before the turn, and in it",
        ">user refrozen note() budget done:empty tool_start(a) diff(a) tool_end(a) note(a) refrozen budget done:empty done(stop)",
        "R(1,Started) T+ x(Refrozen) S+ Ap(1) M(user) M(note) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) diff t-(c1,Ok) M(note) x(Refrozen) \
         S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "reload when idle",
        ">reload refrozen >reload refused(reload.was.refused:.no)",
        "R(1,Reloaded) R(2,Err(Failed))",
        "reload reload",
    ),
    (
        "compaction at a boundary",
        ">user budget done:empty tool_start(a) tool_end(a) compacted budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) t+(c1) t-(c1,Ok) C+ C- S- S+ Cx Rq m+ m-(NotSaid) Rq-(ok) S- \
         T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "a command that the agent handles without a model: no budget",
        ">user token done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "schemas over budget",
        ">user schemas budget done:empty done(stop)",
        "R(1,Started) T+ x(SchemasOverBudget) S+ Ap(1) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "a warning in a turn that goes on",
        ">user budget error token done:message done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq N(Error) m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set",
        "user",
    ),
    (
        "a prompt that waits, a follow-up and a steer: each has its turn behind the done",
        ">user budget >later >next >follow >steer done:empty done(stop) budget done:empty done(stop) budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq R(2,Queued(Later)) Q(2,Later) R(3,Queued(Next)) Q(3,Next) R(4,Queued(FollowUp)) \
         Q(4,FollowUp) R(5,Queued(FollowUp)) Q(5,FollowUp) m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) T+ S+ Ap(5) M(user) \
         Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(5,Finished) T+ S+ Ap(4) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) \
         P-(4,Finished)",
        "user user user user",
    ),
    (
        "a prompt that preempts",
        ">user budget token >preempt done:message done(cancelled) budget done:empty done(stop)",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) R(2,Queued(Next)) Q(2,Next) b-(text) m-(Cancelled) Rq-(Cancelled) S- \
         T-(Cancelled) P-(1,Cancelled) T+ S+ Ap(2) M(user) Cx Rq m+ m-(NotSaid) Rq-(ok) S- T-(Finished) P-(2,Finished) Set",
        "user cancel user",
    ),
    (
        "the agent dies in a turn",
        ">user budget token done:message tool_start(a) ask(q) >next >barrier end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) t+(c1) A?(c1) R(2,Queued(Next)) \
         Q(2,Next) R(3,Done) A!(Fault) Dc(no) t-(c1,NotSaid) S- T-(Failed) P-(1,Failed) P-(2,Dropped) Set Closed(Fault) Gone",
        "user",
    ),
    (
        "the agent dies with everything unanswered",
        ">user >cancel >mode >barrier end",
        "R(1,Err(Failed)) R(2,Cancelling(Nothing)) R(3,Err(Failed)) R(4,Err(Failed)) Closed(Fault) Gone",
        "user cancel approval_mode",
    ),
    (
        "the agent dies in a message, after a cancel",
        ">user budget thinking >cancel end",
        "R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(thinking) d(thinking) R(2,Cancelling(Turn)) b-(thinking) m-(Cancelled) \
         Rq-(Cancelled) S- T-(Cancelled) P-(1,Cancelled) Set Closed(Fault) Gone",
        "user cancel",
    ),
];

fn say(rig: &mut Rig, text: &str, deliver: Deliver) {
    rig.prompt(text, deliver);
}

fn play(rig: &mut Rig, word: &str) {
    let (name, arg) = word
        .strip_suffix(')')
        .and_then(|word| word.split_once('('))
        .unwrap_or((word, ""));
    let reply = |ask, allow| Command::Reply {
        ask: AskId(ask),
        reply: Ok(if allow {
            Reply::Allow {
                input: None,
                updates: vec![],
            }
        } else {
            Reply::Deny {
                message: None,
                interrupt: false,
            }
        }),
    };
    let cancel = |why| Command::Cancel {
        what: CancelWhat::Turn {
            queue: QueueFate::Drop,
        },
        why,
    };
    let command = match name {
        ">user" => return say(rig, "hi", Deliver::IfIdle),
        ">next" => return say(rig, "n", Deliver::Queue(Rank::Next)),
        ">later" => return say(rig, "l", Deliver::Queue(Rank::Later)),
        ">follow" => return say(rig, "f", Deliver::FollowUp),
        ">preempt" => return say(rig, "p", Deliver::Preempt),
        ">steer" => {
            let idle = IdleSteer::Start;
            return say(rig, "s", Deliver::Steer { idle });
        }
        ">approve" => reply(1, true),
        ">approve2" => reply(2, true),
        ">approve9" => reply(9, true),
        ">decline" => reply(1, false),
        ">cancel" => cancel(CancelWhy::Host),
        ">signal" => cancel(CancelWhy::Signal(Signal::Interrupt)),
        ">reload" => Command::Reload,
        ">barrier" => Command::Barrier,
        ">mode" => Command::Set(Setting::Approvals(ApprovalMode::Ask)),
        ">close" => Command::Close { drain: true },
        ">close!" => Command::Close { drain: false },
        _ => return agent(rig, name, arg),
    };
    rig.command(command);
}

fn agent(rig: &mut Rig, name: &str, arg: &str) {
    match name {
        "budget" => rig.budget(),
        "token" => rig.says("token", r#""text":"ab""#),
        "thinking" => rig.says("thinking", r#""text":"mm""#),
        "usage" => rig.says(
            "usage",
            r#""prompt_tokens":100,"completion_tokens":20,"cached_tokens":null"#,
        ),
        "done:empty" => rig.says("message_done", r#""text":"""#),
        "done:message" => {
            // As many tokens as there were in this message.
            let text = "ab".repeat(tokens(rig));
            rig.says("message_done", &format!(r#""text":"{text}""#));
        }
        "tool_start" => rig.says(
            "tool_start",
            &format!(r#""call_id":"{arg}","name":"write","args":{{}}"#),
        ),
        "tool_end" | "tool_fail" => rig.says(
            "tool_end",
            &format!(
                r#""call_id":"{arg}","ok":{},"output":"o""#,
                name == "tool_end"
            ),
        ),
        "ask" => rig.says(
            "approval_request",
            &format!(
                r#""approval_id":"{arg}","name":"write","summary":"s","detail":"d","reason":"gate","source_path":"","source_sha":"""#
            ),
        ),
        "settled" => {
            let (id, outcome) = arg.split_once(',').unwrap();
            rig.says(
                "approval_settled",
                &format!(r#""approval_id":"{id}","outcome":"{outcome}""#),
            );
        }
        "settled?" => rig.refused("unknown or already settled approval_id 'q'"),
        "refused" => rig.refused(&arg.replace('.', " ")),
        "diff" => rig.says(
            "diff",
            &format!(r#""call_id":"{arg}","path":"p","diff":"+","added":1,"removed":0"#),
        ),
        "note" => rig.says("harness_note", &format!(r#""call_id":"{arg}","text":"n""#)),
        "retry" => rig.says(
            "retry",
            r#""attempt":2,"max_attempts":8,"reason":"backend returned 500 Internal Server Error: x""#,
        ),
        "turn_refused" => rig.says(
            "turn_refused",
            r#""hook":"h","reason":"tests fail","continuation":0,"continuations_left":8"#,
        ),
        "error" => rig.says("error", r#""message":"input blocked: no""#),
        "hook_failed" => rig.says("hook_failed", r#""hook":"h","event":"turn_end","detail":"d""#),
        "refrozen" => rig.says("refrozen", r#""tools":7,"skills":1,"changes":["c"]"#),
        "schemas" => rig.says("schemas_over_budget", r#""schema_tokens":1,"budget_tokens":2"#),
        "compacted" => rig.says(
            "compacted",
            r#""tokens_before":900,"tokens_after":100,"compacted_messages":4"#,
        ),
        "done" => rig.done(arg),
        "end" => rig.end(),
        other => panic!("no such word: {other}"),
    }
}

/// Token lines since the last `budget` or `retry`.
fn tokens(rig: &Rig) -> usize {
    let mut count = 0;
    for (told, _) in &rig.told {
        if let client_kit::ClientInput::Bytes(bytes) = told {
            let line = String::from_utf8_lossy(bytes);
            if line.contains(r#""type":"token""#) {
                count += 1;
            } else if line.contains(r#""type":"budget""#) || line.contains(r#""type":"retry""#) {
                count = 0;
            }
        }
    }
    count
}

fn label(line: &str) -> String {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let cmd = line["cmd"].as_str().unwrap();
    match line["approved"].as_bool() {
        Some(approved) => format!("{cmd}({approved})"),
        None => cmd.into(),
    }
}

#[test]
fn om_17_18_20_21_22_23_scenes_of_the_agent_in_neutral_words() {
    let mut wrong = Vec::new();
    for (name, told, expected, lines) in SCENES {
        let mut rig = Rig::opened();
        for word in told.split_whitespace() {
            play(&mut rig, word);
        }
        let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
        let written = rig
            .lines()
            .iter()
            .map(|line| label(line))
            .collect::<Vec<_>>();
        let events = rig.events();
        if events != expected || written.join(" ") != *lines {
            wrong.push(format!(
                "{name}\n  is  {events}\n  not {expected}\n  lines {written:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
