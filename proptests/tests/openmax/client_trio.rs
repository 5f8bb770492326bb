//! Client, Server and a real session in memory: what a host asks for in neutral words goes over the wire, and what the
//! session says comes back. Our Client finds nothing wrong with our Server, whatever happens.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::client_kit;
use crate::openmax_kit;
use crate::trio_kit;

use client_kit::Out;
use openmax_kit::duo::{Duo, hook, session_config};
use proptest::prelude::*;
use trio_kit::Trio;
use turnwire::vocab::*;

#[test]
fn text() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.user("hi");
    trio.agent(|duo| duo.answer("Hello there.", &[]));
    assert_eq!(trio.end(), "Finished");
    assert!(trio.has("Opened(6f1e6a52-0000-4000-8000-000000000001) R(1,Started) T+ S+ Ap(1) M(user) Cx Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) S- T-(Finished) P-(1,Finished) Set"));
}

#[test]
fn thinking_and_a_retry_behind_it() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.user("hi");
    trio.agent(|duo| {
        duo.head(200, None);
        duo.bytes(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
        );
        duo.close_of(0, false);
    });
    assert!(trio.has("b+(thinking) d(thinking) b-(thinking) m-(Failed,void) Rq-(Failed) Ry"));
    trio.pass_ms(1_000);
    trio.agent(|duo| duo.answer("Yes.", &[]));
    assert!(trio.has("Ry Rq m+ b+(text) d(text) b-(text) m-(NotSaid) Rq-(ok) Ry-(ok)"));
    assert_eq!(trio.end(), "Finished");
}

#[test]
fn tools_in_auto() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &[("a", "look", "{}"), ("b", "write", "{}")]));
    trio.agent(|duo| duo.next_tool_done(true, "seen"));
    trio.agent(|duo| duo.changed_file("out.txt"));
    trio.agent(|duo| duo.next_tool_done(false, "failed"));
    trio.agent(|duo| duo.answer("Done.", &[]));
    assert!(trio.has("t+(c1) t-(c1,Ok) t+(c2) diff t-(c2,Failed) S-"));
    assert_eq!(trio.end(), "Finished");
}

#[test]
fn tools_in_ask_approved_declined_and_two_at_once() {
    let mut trio = Trio::new(ApprovalMode::Ask);
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &[("a", "write", "{}"), ("b", "write", "{}")]));
    assert!(trio.has("t+(c1) A?(c1)") && !trio.has("A?(c2)"));
    let yes = trio.reply(true);
    assert_eq!(trio.rig.replied(yes), Some(Ok(Answer::Done)));
    trio.agent(|duo| duo.next_tool_done(true, "written"));
    let no = trio.reply(false);
    assert_eq!(trio.rig.replied(no), Some(Ok(Answer::Done)));
    assert!(trio.has("A!(approved) Dc(yes) t-(c1,Ok) t+(c2) A?(c2)"));
    assert!(trio.has("A!(declined) Dc(no) t-(c2,Denied)"));
    trio.agent(|duo| duo.answer("Well.", &[]));
    let late = trio.reply(true);
    assert_eq!(trio.rig.replied(late), Some(Err(Refusal::AlreadySettled)));
    assert_eq!(trio.end(), "Finished");
}

#[test]
fn tools_in_readonly() {
    let mut trio = Trio::new(ApprovalMode::Ask);
    let set =
        trio.host(|rig| rig.command(Command::Set(Setting::Approvals(ApprovalMode::ReadOnly))));
    assert_eq!(trio.rig.replied(set), Some(Ok(Answer::Done)));
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &[("a", "write", "{}")]));
    trio.agent(|duo| duo.answer("Can't.", &[]));
    assert!(trio.has("t+(c1) t-(c1,Failed)"));
    assert_eq!(trio.end(), "Finished");
}

#[test]
fn om_09_a_half_close_drains_and_the_agent_leaves() {
    let mut trio = Trio::new(ApprovalMode::Ask);
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &[("a", "write", "{}")]));
    trio.host(|rig| rig.command(Command::Close { drain: true }));
    assert_eq!(trio.duo.exit, None);
    trio.reply(true);
    trio.agent(|duo| duo.next_tool_done(true, "written"));
    trio.agent(|duo| duo.answer("Done.", &[]));
    assert_eq!(trio.end(), "Finished");
    assert_eq!(trio.duo.exit, Some(0));
    assert!(trio.has("t-(c1,Ok)") && trio.has("Set CloseInput Closed(Drained) Gone"));
}

#[test]
fn close_without_draining_cancels_first() {
    let mut trio = Trio::new(ApprovalMode::Ask);
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &[("a", "write", "{}")]));
    trio.host(|rig| rig.command(Command::Close { drain: false }));
    trio.agent(Duo::settle_stopped);
    assert_eq!(trio.ends(), [End::Cancelled(CancelWhy::PeerGone)]);
    assert_eq!(trio.duo.exit, Some(0));
    assert!(trio.has("Closed(HostGone) Gone"));
}

#[test]
fn a_signal_reaches_the_agent() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.user("hi");
    let why = CancelWhy::Signal(Signal::Terminate);
    let what = CancelWhat::Turn {
        queue: QueueFate::Drop,
    };
    trio.host(|rig| {
        rig.command(Command::Cancel {
            what,
            why: why.clone(),
        })
    });
    trio.agent(Duo::settle_stopped);
    assert_eq!(trio.ends(), [End::Cancelled(why)]);
    assert_eq!(trio.duo.exit, Some(143));
}

#[test]
fn om_21_22_24_26_27_what_a_provider_does() {
    type Case = (&'static str, fn(&mut Duo), &'static str);
    let cases: [Case; 5] = [
        (
            "400",
            |duo| {
                duo.head(400, None);
                duo.close();
            },
            "Failed",
        ),
        (
            "over a minute",
            |duo| {
                duo.head(429, Some("61"));
                duo.close();
            },
            "Failed",
        ),
        (
            "cut behind text and a whole call",
            |duo| {
                duo.head(200, None);
                duo.part("some ", &[("a", "write", "{}")]);
                duo.close_of(0, false);
            },
            "Truncated",
        ),
        (
            "an error inside the stream",
            |duo| {
                duo.head(200, None);
                duo.part("some ", &[]);
                duo.bytes("data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n");
            },
            "Failed",
        ),
        ("a crash", |duo| duo.crash("boom"), "Failed"),
    ];
    for (name, act, end) in cases {
        let mut trio = Trio::new(ApprovalMode::Auto);
        trio.user("hi");
        trio.agent(act);
        trio.agent(Duo::settle_stopped);
        assert_eq!(trio.end(), end, "{name}");
        assert!(!trio.has("t+"), "{name}: no call of it runs");
        assert!(
            trio.ends()[0]
                .failure()
                .is_some_and(|failure| !failure.text.is_empty()),
            "{name}"
        );
    }
}

#[test]
fn om_30_31_hooks() {
    let mut config = session_config(ApprovalMode::Auto);
    config.hooks = vec![
        hook("gate", HookPoint::PromptSubmit),
        hook("verify", HookPoint::TurnEnd),
    ];
    let mut trio = Trio::with(config);
    trio.user("hi");
    trio.agent(|duo| duo.hook_says(HookVerdict::Deny("no secrets".into())));
    assert_eq!(trio.ends(), [End::Blocked("no secrets".into())]);
    trio.user("again");
    trio.agent(|duo| duo.hook_says(HookVerdict::Pass));
    trio.agent(|duo| duo.answer("One.", &[]));
    trio.agent(|duo| duo.hook_says(HookVerdict::Deny("tests fail".into())));
    assert!(trio.has("CR S- S+ M(user) Cx Rq"));
    trio.agent(|duo| duo.answer("Two.", &[]));
    trio.agent(|duo| duo.hook_says(HookVerdict::Pass));
    assert_eq!(trio.end(), "Finished");
}

#[test]
fn prompts_wait_in_the_client_and_preempt() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.user("one");
    trio.host(|rig| rig.prompt("later", Deliver::Queue(Rank::Later)));
    trio.host(|rig| rig.prompt("now", Deliver::Preempt));
    trio.agent(Duo::settle_stopped);
    trio.agent(|duo| duo.answer("Now.", &[]));
    trio.agent(|duo| duo.answer("Later.", &[]));
    let ends = trio.ends();
    assert_eq!(ends[0], End::Cancelled(CancelWhy::Preempted(PromptId(3))));
    assert!(ends[1..].iter().all(End::is_finished));
    assert!(
        trio.has("P-(3,Finished) T+"),
        "the preempting one goes first"
    );
    assert!(trio.has("P-(2,Finished) Set"));
}

#[test]
fn om_08_a_reload_is_answered() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    let reload = trio.host(|rig| rig.command(Command::Reload));
    let receipt = Answer::Reloaded {
        tools: 3,
        skills: 0,
        changes: vec!["x".into()],
    };
    let answer = receipt.clone();
    trio.agent(|duo| duo.reloaded(Ok(answer)));
    assert_eq!(trio.rig.replied(reload), Some(Ok(receipt)));
}

#[derive(Clone, Debug)]
enum Step {
    Prompt(Deliver),
    Reply(bool),
    Cancel(QueueFate),
    Mode(bool),
    Reload,
    Barrier,
    Close(bool),
    Answer(usize),
    Part,
    Status(u16),
    Cut(bool),
    Tool(bool),
    Stopped,
    Reloaded(bool),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let deliver = prop::sample::select(vec![
        Deliver::IfIdle,
        Deliver::IfIdle,
        Deliver::Queue(Rank::Next),
        Deliver::FollowUp,
        Deliver::Preempt,
        Deliver::Steer {
            idle: IdleSteer::Start,
        },
    ]);
    let fate = prop::sample::select(vec![QueueFate::Keep, QueueFate::Run, QueueFate::Drop]);
    prop_oneof![
        8 => deliver.prop_map(Step::Prompt),
        6 => any::<bool>().prop_map(Step::Reply),
        2 => fate.prop_map(Step::Cancel),
        1 => any::<bool>().prop_map(Step::Mode),
        1 => Just(Step::Reload),
        1 => Just(Step::Barrier),
        1 => any::<bool>().prop_map(Step::Close),
        8 => (0usize..4).prop_map(Step::Answer),
        3 => Just(Step::Part),
        2 => prop::sample::select(vec![400, 429, 500]).prop_map(Step::Status),
        3 => any::<bool>().prop_map(Step::Cut),
        8 => any::<bool>().prop_map(Step::Tool),
        4 => Just(Step::Stopped),
        1 => any::<bool>().prop_map(Step::Reloaded),
        3 => (0u64..4_000).prop_map(Step::Pass),
    ]
}

const CALLS: [(&str, &str, &str); 3] = [
    ("a", "look", "{}"),
    ("b", "write", "{}"),
    ("b", "write", "{\"half"),
];

fn play(trio: &mut Trio, step: Step) {
    match step {
        Step::Prompt(deliver) => drop(trio.host(|rig| rig.prompt("go", deliver))),
        Step::Reply(allow) => drop(trio.reply(allow)),
        Step::Cancel(fate) => drop(trio.host(|rig| rig.cancel(fate))),
        Step::Mode(auto) => {
            let mode = if auto {
                ApprovalMode::Auto
            } else {
                ApprovalMode::Ask
            };
            trio.host(|rig| rig.command(Command::Set(Setting::Approvals(mode))));
        }
        Step::Reload => drop(trio.host(|rig| rig.command(Command::Reload))),
        Step::Barrier => drop(trio.host(|rig| rig.command(Command::Barrier))),
        Step::Close(drain) => drop(trio.host(|rig| rig.command(Command::Close { drain }))),
        Step::Answer(calls) if trio.duo.is_waiting() => {
            trio.agent(|duo| duo.answer("An answer.", &CALLS[..calls]));
        }
        Step::Part if trio.duo.is_waiting() => trio.agent(|duo| {
            duo.head(200, None);
            duo.part("some text ", &CALLS[..1]);
        }),
        Step::Status(status) if trio.duo.is_waiting() => trio.agent(|duo| {
            duo.head(status, None);
            duo.close();
        }),
        Step::Cut(clean) if trio.duo.is_live() => {
            trio.agent(|duo| duo.close_of(duo.requests.len() - 1, clean));
        }
        Step::Tool(ok) if !trio.duo.running.is_empty() => {
            trio.agent(|duo| duo.next_tool_done(ok, "output"));
        }
        Step::Stopped => trio.agent(Duo::settle_stopped),
        Step::Reloaded(ok) if !trio.duo.reloads.is_empty() => trio.agent(|duo| {
            duo.reloaded(if ok {
                Ok(Answer::Reloaded {
                    tools: 3,
                    skills: 0,
                    changes: vec![],
                })
            } else {
                Err("no".into())
            });
        }),
        Step::Pass(ms) => trio.pass_ms(ms),
        Step::Answer(_)
        | Step::Part
        | Step::Status(_)
        | Step::Cut(_)
        | Step::Tool(_)
        | Step::Reloaded(_) => {}
    }
}

proptest! {
    #![proptest_config(turnwire_proptests::config(300))]

    /// The Client knows for certain when a turn is over, keeps every law, and finds nothing wrong with our Server.
    #[test]
    fn tw_01_any_story_ends_and_nothing_is_found(
        auto in any::<bool>(),
        steps in prop::collection::vec(step(), 0..50),
    ) {
        let mode = if auto { ApprovalMode::Auto } else { ApprovalMode::Ask };
        let mut trio = Trio::new(mode);
        for step in steps {
            play(&mut trio, step);
        }
        trio.host(|rig| rig.command(Command::Close { drain: false }));
        trio.agent(Duo::settle_stopped);
        for _ in 0..4 {
            if !trio.duo.reloads.is_empty() {
                trio.agent(|duo| duo.reloaded(Err("no".into())));
            }
            trio.agent(Duo::settle_stopped);
            trio.pass_ms(60_000);
        }
        prop_assert!(trio.ended, "the agent left");
        let commands = trio.rig.told.iter().filter(|(told, _)| matches!(told, client_kit::ClientInput::Call(_)));
        let replies = trio.rig.out.iter().filter(|out| {
            matches!(out, Out::Event(Event { what: What::Replied { .. }, .. }))
        });
        prop_assert!(replies.count() <= commands.count());
    }
}
