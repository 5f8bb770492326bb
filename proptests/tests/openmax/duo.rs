//! A real session behind the Server, with hosts, providers, tools and disks that do what they like: every turn ends,
//! and what a host sees keeps the contract (L9, TW-01, TW-05, TW-09).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::duo::*;
use openmax_kit::judge;
use proptest::prelude::*;
use turnwire::vocab::*;

#[derive(Clone, Debug)]
enum Step {
    Host(&'static str),
    Approve(bool),
    Answer(Vec<usize>),
    Part(&'static str),
    Status(u16, Option<&'static str>),
    Error,
    Close(bool),
    Unreached,
    Tool(bool),
    Stopped,
    Hook(bool),
    HookFails,
    Hold(bool),
    Store(bool),
    Reloaded(bool),
    Pass(u64),
    Crash,
    Signal,
    End,
}

const CALLS: [(&str, &str, &str); 5] = [
    ("c1", "look", "{}"),
    ("c2", "write", r#"{"path":"x"}"#),
    ("c1", "f", "{}"),
    ("", "write", "{\"broken"),
    ("c5", "nothing", "{}"),
];

fn step() -> impl Strategy<Value = Step> {
    let lines = prop::sample::select(vec![
        r#"{"cmd":"user","text":"go"}"#,
        r#"{"cmd":"user","text":"go"}"#,
        r#"{"cmd":"user","text":"go"}"#,
        r#"{"cmd":"user","text":""}"#,
        r#"{"cmd":"cancel"}"#,
        r#"{"cmd":"reload"}"#,
        r#"{"cmd":"approval_mode","mode":"auto"}"#,
        r#"{"cmd":"approval_mode","mode":"ask"}"#,
        r#"{"cmd":"approve","approval_id":"x","approved":true}"#,
        "nonsense",
    ]);
    prop_oneof![
        20 => lines.prop_map(Step::Host),
        8 => any::<bool>().prop_map(Step::Approve),
        12 => prop::collection::vec(0..CALLS.len(), 0..4).prop_map(Step::Answer),
        8 => prop::sample::select(vec!["some text", "ü"]).prop_map(Step::Part),
        4 => prop::sample::select(vec![(503, None), (429, Some("7")), (429, Some("61")), (400, None)])
            .prop_map(|(status, wait)| Step::Status(status, wait)),
        3 => Just(Step::Error),
        6 => any::<bool>().prop_map(Step::Close),
        2 => Just(Step::Unreached),
        12 => any::<bool>().prop_map(Step::Tool),
        4 => Just(Step::Stopped),
        6 => any::<bool>().prop_map(Step::Hook),
        2 => Just(Step::HookFails),
        2 => any::<bool>().prop_map(Step::Hold),
        6 => any::<bool>().prop_map(Step::Store),
        3 => any::<bool>().prop_map(Step::Reloaded),
        6 => (0..20_000u64).prop_map(Step::Pass),
        1 => Just(Step::Crash),
        1 => Just(Step::Signal),
        1 => Just(Step::End),
    ]
}

fn play(duo: &mut Duo, step: Step) {
    match step {
        Step::Host(line) => duo.host(line),
        Step::Approve(yes) if !duo.all("approval_request", "type").is_empty() => duo.approve(yes),
        Step::Answer(calls) if duo.is_waiting() => {
            let calls: Vec<_> = calls.into_iter().map(|index| CALLS[index]).collect();
            duo.answer("An answer.", &calls);
        }
        Step::Part(text) if duo.is_waiting() => {
            duo.head(200, None);
            duo.part(text, &[CALLS[0]]);
        }
        Step::Status(status, wait) if duo.is_waiting() => {
            duo.head(status, wait);
            duo.close();
        }
        Step::Error if duo.is_live() => {
            duo.bytes(
                "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n",
            );
        }
        Step::Close(clean) if duo.is_live() => duo.close_of(duo.requests.len() - 1, clean),
        Step::Unreached if duo.is_waiting() => duo.unreached(),
        Step::Tool(ok) if !duo.running.is_empty() => duo.next_tool_done(ok, "output"),
        Step::Stopped => duo.settle_stopped(),
        Step::Hook(pass) if !duo.hooks.is_empty() => {
            duo.hook_says(if pass {
                HookVerdict::Pass
            } else {
                HookVerdict::Deny("no".into())
            });
        }
        Step::HookFails if !duo.hooks.is_empty() => duo.hook_fails("exit 1"),
        Step::Hold(held) => duo.disk_held = held,
        Step::Store(ok) if !duo.writes.is_empty() => {
            duo.store(if ok { Ok(()) } else { Err("disk full".into()) })
        }
        Step::Reloaded(ok) if !duo.reloads.is_empty() => {
            let answer = Answer::Reloaded {
                tools: 3,
                skills: 0,
                changes: vec![],
            };
            duo.reloaded(if ok { Ok(answer) } else { Err("no".into()) });
        }
        Step::Pass(ms) => duo.pass_ms(ms),
        Step::Crash => duo.crash("boom"),
        Step::Signal => duo.signal(Signal::Terminate),
        Step::End => duo.host_end(),
        _ => {}
    }
}

proptest! {
    #![proptest_config(turnwire_proptests::config(200))]

    #[test]
    fn l9_tw_01_every_turn_ends_and_the_process_leaves(
        steps in prop::collection::vec(step(), 0..60),
        hooks in any::<bool>(),
        ask in any::<bool>(),
    ) {
        let mut config = session_config(if ask { ApprovalMode::Ask } else { ApprovalMode::Auto });
        if hooks {
            config.hooks = vec![hook("guard", HookPoint::PromptSubmit), hook("verify", HookPoint::TurnEnd)];
        }
        let mut duo = Duo::new(config);
        for step in steps {
            if duo.exit.is_none() {
                play(&mut duo, step);
            }
        }
        if duo.exit.is_none() {
            duo.host_end();
        }
        for _ in 0..400 {
            if duo.exit.is_some() {
                break;
            }
            for step in [
                Step::Hold(false), Step::Store(true), Step::Reloaded(true), Step::Tool(true), Step::Stopped, Step::Hook(true),
                Step::Answer(vec![]), Step::Close(true), Step::Pass(20_000),
            ] {
                if duo.exit.is_none() {
                    play(&mut duo, step);
                }
            }
        }
        prop_assert!(duo.exit.is_some(), "the process leaves");
        prop_assert!(!judge(&duo.out, false), "no done is owed");
    }
}
