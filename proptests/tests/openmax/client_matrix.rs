//! The matrix of scenarios in memory: Client, Server and Session, with the observer between, in every phase of a turn.
//! `docs/proof.md` has the table; `cli/tests/openmax` has the same through the program.
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

use client_kit::{HELLO, Out, Rig};
use openmax_kit::duo::{Duo, hook, session_config};
use trio_kit::Trio;
use turnwire::protocol::observer::Dir;
use turnwire::protocol::openmax::{ClientConfig, ObserverConfig, Openmax};
use turnwire::session::SessionConfig;
use turnwire::vocab::*;
use turnwire_proptests::wiretap::Wiretap;

const WRITES: [(&str, &str, &str); 2] = [("a", "write", "{}"), ("b", "write", "{}")];
const LOOK: [(&str, &str, &str); 1] = [("a", "look", "{}")];

fn thinks(duo: &mut Duo) {
    duo.head(200, None);
    duo.bytes("data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n");
}

/// A configuration with one hook at each of these points.
fn hooked(mode: ApprovalMode, points: &[HookPoint]) -> SessionConfig {
    let mut config = session_config(mode);
    config.hooks = points.iter().map(|point| hook("h", *point)).collect();
    config
}

/// A way into a phase of a turn, from where its prompt was given.
struct Phase {
    name: &'static str,
    config: fn() -> SessionConfig,
    reach: fn(&mut Duo),
}

fn ask() -> SessionConfig {
    session_config(ApprovalMode::Ask)
}

/// Every phase that a turn can be in.
const PHASES: &[Phase] = &[
    Phase {
        name: "prompt hook",
        config: || hooked(ApprovalMode::Ask, &[HookPoint::PromptSubmit]),
        reach: |_| {},
    },
    Phase {
        name: "request out, no byte",
        config: ask,
        reach: |_| {},
    },
    Phase {
        name: "head only",
        config: ask,
        reach: |duo| duo.head(200, None),
    },
    Phase {
        name: "streaming thinking",
        config: ask,
        reach: thinks,
    },
    Phase {
        name: "streaming text",
        config: ask,
        reach: |duo| {
            duo.head(200, None);
            duo.part("some ", &[]);
        },
    },
    Phase {
        name: "streaming a call",
        config: ask,
        reach: |duo| {
            duo.head(200, None);
            duo.part("some ", &[("a", "write", "{\"path\":\"ha")]);
        },
    },
    Phase {
        name: "retry wait",
        config: ask,
        reach: |duo| {
            duo.head(500, None);
            duo.close();
        },
    },
    Phase {
        name: "question open",
        config: ask,
        reach: |duo| duo.answer("", &WRITES),
    },
    Phase {
        name: "hook before a call",
        config: || hooked(ApprovalMode::Ask, &[HookPoint::PreTool]),
        reach: |duo| duo.answer("", &LOOK),
    },
    Phase {
        name: "call running",
        config: ask,
        reach: |duo| duo.answer("Text.", &[LOOK[0], WRITES[1]]),
    },
    Phase {
        name: "hook after a call",
        config: || hooked(ApprovalMode::Ask, &[HookPoint::PostTool]),
        reach: |duo| {
            duo.answer("", &LOOK);
            duo.next_tool_done(true, "seen");
        },
    },
    Phase {
        name: "compaction",
        config: ask,
        reach: |duo| {
            duo.answer("", &LOOK);
            duo.next_tool_done(true, &"text ".repeat(2_000));
            assert_eq!(duo.requests.len(), 2, "a summary is asked for");
        },
    },
    Phase {
        name: "second step",
        config: ask,
        reach: |duo| {
            duo.answer("", &LOOK);
            duo.next_tool_done(true, "seen");
        },
    },
    Phase {
        name: "turn-end hook",
        config: || hooked(ApprovalMode::Ask, &[HookPoint::TurnEnd]),
        reach: |duo| duo.answer("Done.", &[]),
    },
    Phase {
        name: "refusal being stored",
        config: || hooked(ApprovalMode::Ask, &[HookPoint::TurnEnd]),
        reach: |duo| {
            duo.disk_held = true;
            duo.answer("Done.", &[]);
            duo.hook_says(HookVerdict::Deny("tests fail".into()));
            assert_eq!(duo.writes.len(), 1);
        },
    },
];

/// The disk answers whatever waits for it.
fn stored(duo: &mut Duo) {
    duo.disk_held = false;
    while !duo.writes.is_empty() {
        duo.store(Ok(()));
    }
}

/// One more turn, in which hooks pass, ends well. A full history is summarised first.
#[track_caller]
fn goes_on(trio: &mut Trio, name: &str) {
    let before = trio.ends().len();
    trio.user("again");
    for _ in 0..4 {
        if trio.ends().len() > before {
            break;
        }
        if trio.duo.hooks.is_empty() {
            trio.agent(|duo| duo.answer("Fine.", &[]));
        } else {
            trio.agent(|duo| duo.hook_says(HookVerdict::Pass));
        }
    }
    assert_eq!(trio.ends().len(), before + 1, "{name}");
    assert_eq!(trio.end(), "Finished", "{name}");
}

#[test]
fn om_17_23_28_tw_07_a_cancel_ends_the_turn_in_every_phase() {
    for phase in PHASES {
        let mut trio = Trio::with((phase.config)());
        trio.user("hi");
        trio.agent(phase.reach);
        let requests = trio.duo.requests.len();
        let cancel = trio.host(|rig| rig.cancel(QueueFate::Drop));
        let reply = trio.rig.replied(cancel);
        let hit = matches!(
            reply,
            Some(Ok(Answer::Cancelling {
                hit: Hit::Turn(_),
                ..
            }))
        );
        assert!(hit, "{}: {reply:?}", phase.name);
        trio.agent(Duo::settle_stopped);
        trio.agent(stored);
        assert_eq!(
            trio.ends(),
            [End::Cancelled(CancelWhy::Host)],
            "{}",
            phase.name
        );
        assert_eq!(
            trio.duo.all("done", "stop_reason"),
            ["cancelled"],
            "{}",
            phase.name
        );
        trio.pass_ms(120_000);
        assert_eq!(trio.duo.requests.len(), requests, "{}", phase.name);
        assert_eq!(trio.duo.running, [], "{}", phase.name);
        goes_on(&mut trio, phase.name);
    }
}

/// The end is decided when its write begins: a cancel behind it hits nothing. The Client, which can't see that, keeps
/// its word that the turn was cancelled.
#[test]
fn om_17_tw_07_a_cancel_at_the_boundary_changes_no_end_that_is_decided() {
    let mut trio = Trio::new(ApprovalMode::Auto);
    trio.duo.disk_held = true;
    trio.user("hi");
    trio.agent(|duo| duo.answer("Done.", &[]));
    assert_eq!(trio.ends(), [], "done waits for the disk");
    trio.host(|rig| rig.cancel(QueueFate::Drop));
    assert_eq!(trio.ends(), []);
    trio.agent(stored);
    assert_eq!(trio.duo.all("done", "stop_reason"), ["stop"]);
    assert_eq!(trio.ends(), [End::Cancelled(CancelWhy::Host)]);
    goes_on(&mut trio, "boundary");
}

/// Whatever the turn does, to its end: answers, tools and hooks that go well.
fn play_out(trio: &mut Trio) {
    for _ in 0..20 {
        trio.agent(stored);
        if trio.duo.exit.is_some() {
            return;
        }
        let duo = &mut trio.duo;
        if !duo.hooks.is_empty() {
            trio.agent(|duo| duo.hook_says(HookVerdict::Pass));
        } else if !duo.running.is_empty() {
            trio.agent(|duo| duo.next_tool_done(true, "seen"));
        } else if duo.is_live() {
            trio.agent(|duo| duo.close_of(duo.requests.len() - 1, true));
        } else if duo.is_waiting() {
            trio.agent(|duo| duo.answer("Done.", &[]));
        } else {
            trio.pass_ms(1_000);
        }
    }
}

#[test]
fn om_09_quit_and_end_of_input_finish_the_turn_in_every_phase() {
    for phase in PHASES {
        for end in ["quit", "end of input"] {
            let name = format!("{}, {end}", phase.name);
            let mut trio = Trio::with((phase.config)());
            trio.user("hi");
            trio.agent(phase.reach);
            if end == "quit" {
                trio.agent(|duo| duo.host(r#"{"cmd":"quit"}"#));
            } else {
                trio.agent(Duo::host_end);
            }
            assert_eq!(trio.duo.exit, None, "{name}: the turn is in flight");
            assert_eq!(trio.ends(), [], "{name}");
            play_out(&mut trio);
            let stops = trio.duo.all("done", "stop_reason");
            assert_eq!(stops.len(), 1, "{name}: {stops:?}");
            assert_ne!(stops[0], "cancelled", "{name}");
            assert_eq!(trio.duo.exit, Some(0), "{name}: {stops:?}");
            for outcome in trio.duo.all("approval_settled", "outcome") {
                assert_eq!(outcome, "declined", "{name}");
            }
            assert_eq!(trio.ends().len(), 1, "{name}");
            assert!(trio.has("Gone"), "{name}");
        }
    }
}

#[test]
fn om_13_a_question_that_times_out_is_closed_and_the_turn_goes_on() {
    let mut config = session_config(ApprovalMode::Ask);
    config.timeouts.approval_us = Some(5_000_000);
    let mut trio = Trio::with(config);
    trio.user("hi");
    trio.agent(|duo| duo.answer("", &WRITES));
    trio.pass_ms(4_999);
    assert!(!trio.has("A!(TimedOut)"));
    trio.pass_ms(1);
    assert!(trio.has("A!(TimedOut) Dc(no) t-(c1,TimedOut) t+(c2) A?(c2)"));
    trio.reply(true);
    trio.agent(|duo| duo.next_tool_done(true, "written"));
    trio.agent(|duo| duo.answer("Half of it.", &[]));
    assert_eq!(
        trio.duo.all("approval_settled", "outcome"),
        ["timed_out", "approved"]
    );
    assert_eq!(trio.duo.all("tool_end", "ok"), [false, true]);
    assert_eq!(trio.end(), "Finished");
}

/// Another agent may ask twice at once: the Client keeps the two apart, and the observer has nothing against it.
#[test]
fn om_11_14_two_questions_of_another_agent_are_answered_each() {
    let mut rig = Rig::new(ClientConfig::default());
    let mut tap = Wiretap::<Openmax>::new(ObserverConfig::default());
    let mut told = 0;
    let mut say = |rig: &mut Rig, lines: &[&str]| {
        let mut pass_on = |rig: &Rig| {
            while let Some(out) = rig.out.get(told) {
                told += 1;
                if let Out::Lines(bytes) = out {
                    tap.host(bytes);
                }
            }
            tap.breach(&[])
        };
        assert_eq!(pass_on(rig), None);
        for line in lines {
            tap.agent(format!("{line}\n").as_bytes());
            rig.agent(line);
        }
        assert_eq!(tap.breach(&[]), None);
        tap.found().len()
    };
    rig.joins = false;
    say(&mut rig, &[HELLO]);
    rig.user("hi");
    say(
        &mut rig,
        &[
            r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}"#,
            r#"{"session_id":"s","type":"message_done","text":""}"#,
            r#"{"session_id":"s","type":"tool_start","call_id":"a","name":"write","args":{}}"#,
            r#"{"session_id":"s","type":"tool_start","call_id":"b","name":"write","args":{}}"#,
            r#"{"session_id":"s","type":"approval_request","approval_id":"qa","name":"write","summary":"","detail":"","reason":"gate","source_path":"","source_sha":""}"#,
            r#"{"session_id":"s","type":"approval_request","approval_id":"qb","name":"write","summary":"","detail":"","reason":"gate","source_path":"","source_sha":""}"#,
        ],
    );
    let asks: Vec<AskId> = rig
        .out
        .iter()
        .filter_map(|out| match out {
            Out::Event(Event {
                what: What::Asked { ask, .. },
                ..
            }) => Some(*ask),
            _ => None,
        })
        .collect();
    assert_eq!(asks.len(), 2);
    // The second is answered first.
    let deny = Ok(Reply::Deny {
        message: None,
        interrupt: false,
    });
    let allow = Ok(Reply::Allow {
        input: None,
        updates: vec![],
    });
    let no = rig.command(Command::Reply {
        ask: asks[1],
        reply: deny,
    });
    say(
        &mut rig,
        &[
            r#"{"session_id":"s","type":"approval_settled","approval_id":"qb","outcome":"declined"}"#,
            r#"{"session_id":"s","type":"tool_end","call_id":"b","ok":false,"output":"declined"}"#,
        ],
    );
    let yes = rig.command(Command::Reply {
        ask: asks[0],
        reply: allow,
    });
    let found = say(
        &mut rig,
        &[
            r#"{"session_id":"s","type":"approval_settled","approval_id":"qa","outcome":"approved"}"#,
            r#"{"session_id":"s","type":"tool_end","call_id":"a","ok":true,"output":"written"}"#,
            r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}"#,
            r#"{"session_id":"s","type":"token","text":"Done."}"#,
            r#"{"session_id":"s","type":"message_done","text":"Done."}"#,
            r#"{"session_id":"s","type":"done","stop_reason":"stop"}"#,
        ],
    );
    assert_eq!(found, 0);
    for command in [yes, no] {
        assert_eq!(rig.replied(command), Some(Ok(Answer::Done)));
    }
    let story = client_kit::text::events(&rig.out);
    assert!(
        story.contains("A!(declined)") && story.contains("A!(approved)"),
        "{story}"
    );
    assert!(story.contains("P-(1,Finished)"), "{story}");
    // The wire doesn't say which of the open calls a question is about.
    let doubts = ["qa", "qb"].map(|id| format!("approval \"{id}\" while several calls are open"));
    assert_eq!(rig.take_findings(), doubts);
    tap.end(Dir::Host);
    tap.end(Dir::Agent);
    tap.exit(0);
    assert_eq!(tap.breach(&[]), None);
}

#[test]
fn om_26_27_29_what_a_provider_does_before_any_text_is_tried_again() {
    type Case = (&'static str, fn(&mut Duo), u64);
    let cases: [Case; 8] = [
        ("500", |duo| fails(duo, 500, None), 1_000),
        ("529", |duo| fails(duo, 529, None), 1_000),
        ("429", |duo| fails(duo, 429, None), 1_000),
        ("retry-after", |duo| fails(duo, 429, Some("7")), 7_000),
        ("a minute", |duo| fails(duo, 503, Some("60")), 60_000),
        ("unreached", Duo::unreached, 1_000),
        (
            "cut in thinking",
            |duo| {
                thinks(duo);
                duo.close_of(0, false);
            },
            1_000,
        ),
        (
            "error in the stream",
            |duo| {
                thinks(duo);
                duo.bytes("data: {\"error\":{\"message\":\"overloaded\",\"type\":\"overloaded_error\"}}\n\n");
            },
            1_000,
        ),
    ];
    for (name, act, wait) in cases {
        let mut trio = Trio::new(ApprovalMode::Auto);
        trio.user("hi");
        trio.agent(act);
        assert_eq!(trio.duo.all("retry", "attempt"), [2], "{name}");
        trio.pass_ms(wait - 1);
        assert_eq!(trio.duo.requests.len(), 1, "{name}: not before its time");
        trio.pass_ms(1);
        assert_eq!(trio.duo.requests.len(), 2, "{name}");
        trio.agent(|duo| duo.answer("Whole.", &[]));
        assert!(trio.has("Ry Rq m+ b+(text)"), "{name}");
        assert!(trio.has("Ry-(ok)"), "{name}");
        assert_eq!(trio.end(), "Finished", "{name}");
        assert_eq!(trio.duo.all("error", "message"), [""; 0], "{name}");
    }
}

fn fails(duo: &mut Duo, status: u16, retry_after: Option<&str>) {
    duo.head(status, retry_after);
    duo.close();
}

#[test]
fn om_22_tw_05_a_whole_call_of_a_cut_reply_has_its_result_and_never_runs() {
    for clean in [true, false] {
        let mut trio = Trio::new(ApprovalMode::Auto);
        trio.user("hi");
        trio.agent(|duo| {
            duo.head(200, None);
            duo.part("Writing. ", &WRITES[..1]);
            duo.close_of(0, clean);
        });
        assert_eq!(trio.end(), "Truncated");
        assert!(!trio.has("t+"), "no call of it runs");
        assert_eq!(trio.duo.running, []);
        goes_on(&mut trio, "cut");
        let sent = &trio.duo.requests[1].messages;
        let roles: Vec<String> = sent
            .iter()
            .map(|message| format!("{:?}", message.role))
            .map(|role| role.split([' ', '{']).next().unwrap().to_owned())
            .collect();
        assert_eq!(roles, ["User", "Assistant", "Tool", "User"]);
    }
}

#[test]
fn om_31_hooks_that_fail_or_hang() {
    let fail: fn(&mut Trio) = |trio| trio.agent(|duo| duo.hook_fails("exit code 1"));
    let hang: fn(&mut Trio) = |trio| {
        trio.pass_ms(59_999);
        assert_eq!(trio.duo.hooks.len(), 1, "it may still answer");
        trio.pass_ms(1);
        assert_eq!(trio.duo.hooks.len(), 0, "it is stopped");
        trio.agent(Duo::settle_stopped);
    };
    for (how, act) in [("fails", fail), ("hangs", hang)] {
        // One that decides blocks the prompt.
        let mut trio = Trio::with(hooked(ApprovalMode::Auto, &[HookPoint::PromptSubmit]));
        trio.user("hi");
        act(&mut trio);
        assert_eq!(trio.end(), "Blocked", "{how}");
        assert_eq!(trio.duo.requests.len(), 0, "{how}");
        // One that only observes is told of, and the turn goes on.
        let mut config = hooked(ApprovalMode::Auto, &[HookPoint::PromptSubmit]);
        config.hooks[0].decides = false;
        let mut trio = Trio::with(config);
        trio.user("hi");
        act(&mut trio);
        trio.agent(|duo| duo.answer("Fine.", &[]));
        assert!(trio.has("HF"), "{how}");
        assert_eq!(trio.end(), "Finished", "{how}");
        // Before a call it denies the call.
        let mut trio = Trio::with(hooked(ApprovalMode::Auto, &[HookPoint::PreTool]));
        trio.user("hi");
        trio.agent(|duo| duo.answer("", &LOOK));
        act(&mut trio);
        trio.agent(|duo| duo.answer("Then not.", &[]));
        assert_eq!(trio.duo.all("tool_end", "ok"), [false], "{how}");
        assert_eq!(trio.duo.running, [], "{how}");
        assert_eq!(trio.end(), "Finished", "{how}");
        // After a call, and at the turn's end, it is told of.
        for (point, calls) in [(HookPoint::PostTool, &LOOK[..]), (HookPoint::TurnEnd, &[])] {
            let mut trio = Trio::with(hooked(ApprovalMode::Auto, &[point]));
            trio.user("hi");
            trio.agent(|duo| duo.answer("Words.", calls));
            if !calls.is_empty() {
                trio.agent(|duo| duo.next_tool_done(true, "seen"));
            }
            act(&mut trio);
            if !calls.is_empty() {
                trio.agent(|duo| duo.answer("Done.", &[]));
            }
            assert!(trio.has("HF"), "{how} {point:?}");
            assert_eq!(trio.end(), "Finished", "{how} {point:?}");
        }
    }
}

/// A session of two turns, the first with a refused completion, up to the write of this number. `landed`: the process
/// dies after the write reached the disk, before anybody was told. What the host was told of, and the disk.
fn killed_at(fatal: usize, landed: bool) -> Option<(Vec<String>, Vec<std::sync::Arc<Message>>)> {
    let mut trio = Trio::with(hooked(ApprovalMode::Auto, &[HookPoint::TurnEnd]));
    trio.duo.disk_held = true;
    let mut writes = 0;
    let mut told = Vec::new();
    let mut died = false;
    let mut store = |trio: &mut Trio| {
        while let Some(&write) = trio.duo.writes.front() {
            if writes == fatal {
                if landed && !died {
                    trio.duo.land(write);
                }
                died = true;
                return false;
            }
            writes += 1;
            trio.agent(|duo| duo.store(Ok(())));
        }
        true
    };
    'story: {
        for (prompt, refusals) in [("one", 2), ("two", 1)] {
            trio.user(prompt);
            if !store(&mut trio) {
                break 'story;
            }
            for round in 0..=refusals {
                let reply = format!("reply {round} to {prompt}");
                trio.agent(|duo| duo.answer(&reply, &[]));
                if !store(&mut trio) {
                    break 'story;
                }
                let said = format!("refusal {round} of {prompt}");
                let verdict = if round < refusals {
                    HookVerdict::Deny(said.clone().into())
                } else {
                    HookVerdict::Pass
                };
                let refused = trio.duo.all("turn_refused", "hook").len();
                let done = trio.duo.all("done", "stop_reason").len();
                trio.agent(|duo| duo.hook_says(verdict));
                let lives = store(&mut trio);
                // What the host has heard by now is acknowledged: it must not be lost.
                let said_no = trio.duo.all("turn_refused", "hook").len() > refused;
                let said_done = trio.duo.all("done", "stop_reason").len() > done;
                if said_no || said_done {
                    told.extend((round == 0).then(|| prompt.to_owned()));
                    told.push(reply);
                    told.extend(said_no.then_some(said));
                }
                if !lives {
                    break 'story;
                }
            }
        }
        return None;
    }
    Some((told, trio.duo.disk.clone()))
}

#[test]
fn om_02_03_04_30_tw_08_a_crash_at_any_write_loses_nothing_that_was_acknowledged() {
    let mut crashes = 0;
    for fatal in 0.. {
        let mut ended = false;
        for landed in [false, true] {
            let Some((told, disk)) = killed_at(fatal, landed) else {
                ended = true;
                continue;
            };
            crashes += 1;
            let name = format!("write {fatal}, landed: {landed}");
            let config = session_config(ApprovalMode::Auto);
            let mut trio = Trio::of(Duo::going_on(config, disk));
            assert_eq!(
                openmax_kit::labels(&trio.duo.all_lines),
                ["hello", "transcript"],
                "{name}: nothing is replayed"
            );
            trio.user("next");
            let sent: Vec<String> = trio.duo.requests[0]
                .messages
                .iter()
                .map(|message| message.text().to_string())
                .collect();
            let mut rest = sent.iter();
            for text in &told {
                let kept = rest.any(|found| found == text);
                assert!(kept, "{name}: {text:?} is lost: {sent:?}");
            }
            let shown = trio.duo.all("transcript", "messages");
            for text in &told {
                assert!(
                    shown[0].to_string().contains(text.as_str()),
                    "{name}: {shown:?}"
                );
            }
            trio.agent(|duo| duo.answer("Fine.", &[]));
            assert_eq!(trio.end(), "Finished", "{name}");
        }
        if ended {
            break;
        }
    }
    assert!(crashes >= 10, "{crashes}");
}
