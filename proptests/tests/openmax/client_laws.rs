//! Laws of the Client, for any agent: lawful, lawless, or one that writes noise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;

use client_kit::{ClientInput, HELLO, Out, Rig, prompt};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use turnwire::protocol::Protocol;
use turnwire::protocol::openmax::{ClientConfig, Openmax};
use turnwire::vocab::*;
use turnwire_proptests::laws::{ClientMachine, hold_cut};

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Agent(String),
    Noise(Vec<u8>),
    Command(Command),
    Prompt(String, Deliver),
    Pass(u64),
}

fn id() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "b", "c", ""])
}

fn words() -> impl Strategy<Value = &'static str> {
    select(vec!["", "x", "hello ", "<think>t</think>", "é\\u2028"])
}

fn event(kind: &str, members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"session_id":"s","type":"{kind}"{comma}{members}}}"#)
}

fn agent() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => words().prop_map(|text| event("token", &format!(r#""text":"{text}""#))),
        3 => words().prop_map(|text| event("thinking", &format!(r#""text":"{text}""#))),
        5 => words().prop_map(|text| event("message_done", &format!(r#""text":"{text}""#))),
        6 => Just(event("budget", r#""used_tokens":10,"context_tokens":100"#)),
        3 => (0u64..9, 0u64..9).prop_map(|(all, cached)| event(
            "usage",
            &format!(r#""prompt_tokens":{all},"completion_tokens":1,"cached_tokens":{cached}"#)
        )),
        5 => (id(), select(vec!["{}", "null", "[1]", r#"{"path":"a"}"#])).prop_map(|(id, args)| event(
            "tool_start",
            &format!(r#""call_id":"{id}","name":"look","args":{args}"#)
        )),
        5 => (id(), any::<bool>()).prop_map(|(id, ok)| event(
            "tool_end",
            &format!(r#""call_id":"{id}","ok":{ok},"output":"o""#)
        )),
        2 => id().prop_map(|id| event("harness_note", &format!(r#""call_id":"{id}","text":"n""#))),
        3 => Just(event("retry", r#""attempt":2,"max_attempts":8,"reason":"backend returned 500 x""#)),
        2 => id().prop_map(|id| event(
            "diff",
            &format!(r#""call_id":"{id}","path":"p","diff":"+","added":1,"removed":0"#)
        )),
        4 => (id(), select(vec!["gate", "unapproved_source", "odd"])).prop_map(|(id, reason)| event(
            "approval_request",
            &format!(r#""approval_id":"{id}","name":"look","summary":"s","detail":"d","reason":"{reason}","source_path":"","source_sha":"""#)
        )),
        4 => (id(), select(vec!["approved", "declined", "timed_out", "cancelled", "odd"])).prop_map(|(id, outcome)| event(
            "approval_settled",
            &format!(r#""approval_id":"{id}","outcome":"{outcome}""#)
        )),
        1 => Just(event("refrozen", r#""tools":1,"skills":0,"changes":["c"]"#)),
        1 => Just(event("schemas_over_budget", r#""schema_tokens":1,"budget_tokens":2"#)),
        1 => Just(event("compacted", r#""tokens_before":9,"tokens_after":2,"compacted_messages":3"#)),
        1 => Just(event("hook_failed", r#""hook":"h","event":"turn_end","detail":"d""#)),
        2 => Just(event("turn_refused", r#""hook":"h","reason":"r","continuation":0,"continuations_left":8"#)),
        3 => Just(event("error", r#""message":"input blocked: no""#)),
        8 => select(vec!["stop", "length", "truncated", "error", "cancelled", "refused", "blocked", "unverified", "max_iterations", "budget_exhausted"])
            .prop_map(|word| event("done", &format!(r#""stop_reason":"{word}""#))),
        1 => Just(event("future", r#""x":1"#)),
        1 => Just(HELLO.to_owned()),
        1 => select(vec!["auto", "ask", "odd"]).prop_map(|mode| format!(r#"{{"type":"approval_mode","mode":"{mode}"}}"#)),
        3 => select(vec![
            "a turn is in flight; wait for done",
            "user text is empty",
            "project /p is not trusted; establish trust before starting a turn",
            "unknown or already settled approval_id 'a'",
            "unknown approval mode 'x': auto|ask|readonly",
            "the session is closing and takes no more commands",
            "reload was refused: no",
            "something else",
        ]).prop_map(|text| format!(r#"{{"type":"protocol_error","message":"{text}"}}"#)),
        1 => Just(r#"{"type":"transcript","session_id":"s","messages":[{"role":"user","content":"u"}],"truncated":true}"#.to_owned()),
    ]
}

fn fate() -> impl Strategy<Value = QueueFate> {
    select(vec![QueueFate::Keep, QueueFate::Run, QueueFate::Drop])
}

fn command() -> impl Strategy<Value = Command> {
    let why = || select(vec![CancelWhy::Host, CancelWhy::Signal(Signal::Interrupt)]);
    prop_oneof![
        4 => (1u64..6, any::<bool>(), any::<bool>()).prop_map(|(ask, allow, interrupt)| Command::Reply {
            ask: AskId(ask),
            reply: if allow {
                Ok(Reply::Allow { input: None, updates: vec![] })
            } else {
                Ok(Reply::Deny { message: None, interrupt })
            },
        }),
        1 => (1u64..6).prop_map(|ask| Command::Reply { ask: AskId(ask), reply: Err(ReplyFault::HostGone) }),
        3 => (fate(), why()).prop_map(|(queue, why)| Command::Cancel { what: CancelWhat::Turn { queue }, why }),
        1 => Just(Command::Cancel { what: CancelWhat::Everything, why: CancelWhy::Host }),
        1 => Just(Command::Cancel { what: CancelWhat::TurnElseNextQueued, why: CancelWhy::Host }),
        1 => Just(Command::Cancel { what: CancelWhat::Retry, why: CancelWhy::Host }),
        2 => Just(Command::Set(Setting::Approvals(ApprovalMode::Ask))),
        1 => Just(Command::Set(Setting::FollowUpDrain(Drain::All))),
        2 => Just(Command::Reload),
        2 => Just(Command::Barrier),
        1 => (1u64..20).prop_map(|id| Command::Withdraw(PromptId(id))),
        1 => (1u64..20).prop_map(|id| Command::Promote(PromptId(id))),
        1 => any::<bool>().prop_map(|drain| Command::Close { drain }),
        1 => Just(Command::Compact { instructions: None }),
    ]
}

fn deliver() -> impl Strategy<Value = Deliver> {
    select(vec![
        Deliver::IfIdle,
        Deliver::IfIdle,
        Deliver::Queue(Rank::Next),
        Deliver::Queue(Rank::Later),
        Deliver::FollowUp,
        Deliver::Steer {
            idle: IdleSteer::Start,
        },
        Deliver::Steer {
            idle: IdleSteer::Drop,
        },
        Deliver::Steer {
            idle: IdleSteer::DropUnlessQueued,
        },
        Deliver::Context,
        Deliver::Preempt,
    ])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => agent().prop_map(Step::Agent),
        1 => vec(any::<u8>(), 0..40).prop_map(Step::Noise),
        3 => command().prop_map(Step::Command),
        3 => (words(), deliver()).prop_map(|(text, deliver)| Step::Prompt(text.into(), deliver)),
        1 => (0u64..120).prop_map(Step::Pass),
    ]
}

/// A story, played to the agent's end. The rig watches the laws of the neutral stream at every step.
fn play(follow: bool, hello: bool, steps: &[Step]) -> Rig {
    let mut rig = Rig::new(ClientConfig {
        follow,
        ..ClientConfig::default()
    });
    if hello {
        rig.agent(HELLO);
    }
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Agent(line) => rig.agent(line),
            Step::Noise(bytes) => rig.tell(ClientInput::Bytes(bytes.clone())),
            Step::Command(command) => drop(rig.command(command.clone())),
            Step::Prompt(text, deliver) => {
                let prompt = prompt(PromptId(index as u64 + 1), text, deliver.clone());
                rig.command(Command::Prompt(prompt));
            }
            Step::Pass(ms) => rig.pass_ms(*ms),
        }
    }
    rig.end();
    rig
}

proptest! {
    #![proptest_config(turnwire_proptests::config(500))]

    /// The neutral laws, and L8: each command has one reply when the agent is gone, each prompt one end.
    #[test]
    fn l8_l9_any_agent_gives_a_lawful_stream(
        follow in proptest::bool::weighted(0.2),
        hello in proptest::bool::weighted(0.9),
        steps in vec(step(), 0..60),
    ) {
        let rig = play(follow, hello, &steps);
        prop_assert_eq!(rig.out.last(), Some(&Out::Closed));
        let replies = rig.out.iter().filter(|out| matches!(out, Out::Event(Event { what: What::Replied { .. }, .. }))).count();
        let commands = rig.told.iter().filter(|(told, _)| matches!(told, ClientInput::Call(_))).count();
        prop_assert_eq!(replies, commands);
        // A settled client isn't asked for anything any more.
        prop_assert_eq!(rig.client.poll_timeout(), None);
        prop_assert!(!rig.client.wants_lines() && !rig.client.wants_commands());
    }

    #[test]
    fn l1_l2_l3_l4_l5_l6_l9_hold_of_any_story(
        steps in vec(step(), 0..40),
        every in 2usize..4,
        size in 2usize..9,
    ) {
        let story = &play(false, true, &steps).told;
        let make = || ClientMachine::<Openmax>::new(ClientConfig::default(), Openmax::agent_line_rules());
        prop_assert_eq!(hold_cut(make, story, size, every), Ok(()));
    }

    /// L9: noise for an agent.
    #[test]
    fn l9_arbitrary_bytes_are_findings(bytes in vec(any::<u8>(), 0..400), cut in 1usize..50) {
        let mut rig = Rig::opened();
        rig.user("hi");
        for piece in bytes.chunks(cut) {
            rig.tell(ClientInput::Bytes(piece.to_vec()));
        }
        rig.end();
        prop_assert_eq!(rig.out.last(), Some(&Out::Closed));
    }

    /// L9: lines of the contract, damaged.
    #[test]
    fn l9_damaged_lines_cost_nothing_around_them(
        line in agent(),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut rig = Rig::opened();
        let prompt = rig.user("hi");
        rig.budget();
        let mut bytes = line.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.push(b'\n');
        rig.tell(ClientInput::Bytes(bytes));
        rig.done("stop");
        rig.end();
        prop_assert_eq!(rig.replied(prompt), Some(Ok(Answer::Admitted(Admitted::Started))));
    }
}

/// L3: while output waits, the deadline is now.
#[test]
fn l3_output_that_waits_is_due_at_once() {
    let mut rig = Rig::opened();
    let now = rig.now;
    let command = Command::Prompt(prompt(PromptId(1), "hi", Deliver::IfIdle));
    let id = CommandId(1);
    rig.client.handle_command(Call { id, command }, now);
    assert!(rig.client.poll_timeout().unwrap().at_us <= now.mono_us);
    let mut lines = Vec::new();
    while rig.client.poll_output(&mut lines).is_some() {}
    assert_eq!(lines, b"{\"cmd\":\"user\",\"text\":\"hi\"}\n");
    assert_eq!(rig.client.poll_timeout(), None);
}

/// L6: time that goes back stands still.
#[test]
fn l6_time_that_goes_back_stands_still() {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.now.mono_us = 10;
    rig.done("stop");
    let times = rig.out.iter().filter_map(|out| match out {
        Out::Event(event) => Some(event.at.mono_us),
        _ => None,
    });
    assert!(times.into_iter().all(|at| at == 1_000));
}
