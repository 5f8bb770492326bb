//! The field's faults, over openmax and in a session alone.

use std::sync::Arc;

use turnwire::{
    protocol::{observer::Dir, openmax::Openmax},
    vocab::*,
};
use turnwire_proptests::{
    faults::Twist,
    reference::Judged,
    scenario::{Scenario, Wire},
    script::Action,
    world::{
        By, Chunk, Ends, Given, Report, START, Said, Speaks, Tamper, Untouched, play_ends,
        session_world,
    },
};

use super::{
    Doubles, Hears, Says, TURN, Writes, finds, is, loses_tails, lost, tampered, twice, unterminated,
};

fn story(text: &str) -> Scenario {
    super::story::<Openmax>(text)
}

fn with(text: &str, twist: impl Twist) -> Report {
    super::with::<Openmax>(text, twist)
}

fn over(text: &str, tamper: impl Tamper + 'static) -> Report {
    super::over::<Openmax>(text, tamper)
}

const ALONE: &str = "set world agent\n";
const CALL: &str = "set mode auto\n> prompt if-idle\n+ answer 0 write\n+ tool 0 ok\n+ answer 0\n";
const ASK: &str = "> prompt if-idle\n+ answer 0 write\n";

/// 1. A turn that never ends.
#[test]
fn tw_01_a_turn_without_an_end() {
    let never = |said| {
        lost(said, |what| {
            matches!(what, What::TurnEnded { .. } | What::PromptEnded { .. })
        })
    };
    finds(
        &with(&format!("{ALONE}{TURN}"), Says(never)),
        By::Reference,
        "TW-01",
    );
    finds(&with(TURN, Says(never)), By::Driver, "dead-lock");
}

/// 1. A turn that ends twice.
#[test]
fn tw_01_a_turn_with_two_ends() {
    let both = |said| twice(said, |what| matches!(what, What::PromptEnded { .. }));
    finds(
        &with(&format!("{ALONE}{TURN}"), Says(both)),
        By::Reference,
        "TW-01",
    );
    finds(
        &with(&format!("{ALONE}{TURN}"), Says(both)),
        By::Checker,
        "S-10",
    );
}

/// 1. Two `done` for one prompt.
#[test]
fn om_17_two_dones_for_one_prompt() {
    finds(
        &over(TURN, Doubles("\"type\":\"done\"")),
        By::Observer,
        "OM-17.a",
    );
}

/// 1. Something comes after the end.
#[test]
fn tw_02_a_token_behind_the_end() {
    let mut last = None;
    let late = move |said: Said| {
        if let Said::Delta { .. } = &said {
            last = Some(said.clone());
        }
        let end = is(&said, |what| matches!(what, What::TurnEnded { .. }));
        let behind = last.clone().filter(|_| end);
        let behind = behind.map(|late| match (late, said.at()) {
            (
                Said::Delta {
                    run,
                    message,
                    block,
                    kind,
                    text,
                    ..
                },
                Some(at),
            ) => Said::Delta {
                at,
                run,
                message,
                block,
                kind,
                text,
            },
            (late, _) => late,
        });
        std::iter::once(said).chain(behind).collect()
    };
    finds(
        &with(&format!("{ALONE}{TURN}"), Says(late.clone())),
        By::Reference,
        "TW-02",
    );
    finds(&with(TURN, Says(late)), By::Observer, "OM-20.a");
}

/// 2. A cancel that is reported as success.
#[test]
fn tw_07_a_cancel_reported_as_success() {
    let text = "> prompt if-idle\n+ model 0 text \"a\"\n> cancel turn drop\n";
    let well = || End::Finished {
        finish: Some("stop".into()),
    };
    let lie = move |said| {
        let Said::Event(mut event) = said else {
            return vec![said];
        };
        match &mut event.what {
            What::TurnEnded { end, .. } | What::PromptEnded { end, .. } if end.is_cancelled() => {
                *end = well();
            }
            _ => {}
        }
        vec![Said::Event(event)]
    };
    let report = with(&format!("{ALONE}{text}"), Says(lie));
    finds(&report, By::Reference, "TW-07");
    finds(&report, By::Checker, "S-17");
    // The host's Client says cancelled all the same.
    let report = with(text, Says(lie));
    assert!(
        !report
            .found
            .iter()
            .any(|found| found.by == By::HostReference),
        "{report}"
    );
}

/// 2. A cancel that is lost.
#[test]
fn tw_07_a_cancel_that_is_lost() {
    let deaf = |given: Given| match &given {
        Given::Call(call) if matches!(call.command, Command::Cancel { .. }) => vec![],
        _ => vec![given],
    };
    let text = "> prompt if-idle\n> cancel turn run\n";
    finds(
        &with(&format!("{ALONE}{text}"), Hears(deaf)),
        By::Driver,
        "S-07",
    );
}

/// 3. Input that closes while an approval needs it: the question is never declined.
#[test]
fn om_09_an_end_of_input_that_leaves_a_question_open() {
    let deaf = |given: Given| match &given {
        Given::Call(call)
            if matches!(
                call.command,
                Command::Reply {
                    reply: Err(ReplyFault::HostGone),
                    ..
                }
            ) =>
        {
            vec![]
        }
        _ => vec![given],
    };
    let report = with(
        &format!("set leave end-of-input\n{ASK}= end\n"),
        Hears(deaf),
    );
    finds(&report, By::Driver, "S-07");
}

/// 4. A late answer that closes a question once more.
#[test]
fn tw_06_a_question_that_closes_twice() {
    let both = |said| twice(said, |what| matches!(what, What::AskClosed { .. }));
    let text = format!("{ASK}> reply 0 yes\n> late-reply 0\n");
    finds(
        &with(&format!("{ALONE}{text}"), Says(both)),
        By::Reference,
        "TW-06",
    );
}

/// 4. An error that allows.
#[test]
fn tw_06_an_error_that_allows() {
    let lax = |given: Given| match given {
        Given::Call(Call {
            id,
            command: Command::Reply { ask, reply: Err(_) },
        }) => {
            let reply = Ok(Reply::Allow {
                input: None,
                updates: vec![],
            });
            vec![Given::Call(Call {
                id,
                command: Command::Reply { ask, reply },
            })]
        }
        given => vec![given],
    };
    let text = format!("{ASK}> reply 0 error\n");
    finds(
        &with(&format!("{ALONE}{text}"), Hears(lax)),
        By::Reference,
        "TW-06",
    );
    struct Lax;
    impl Tamper for Lax {
        fn read(&mut self, _: Dir, bytes: Vec<u8>) -> Vec<u8> {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.replace("\"approved\":false", "\"approved\":true")
                .into_bytes()
        }
    }
    finds(
        &over(&format!("{text}+ tool 0 ok\n"), Lax),
        By::Observer,
        "OM-14.d",
    );
}

/// 4. A permission that runs before its answer.
#[test]
fn tw_06_a_call_that_does_not_wait() {
    let mut asked = None;
    let hasty = move |said: Said| {
        if let Some(What::Asked {
            body: Ask::Permission(body),
            ..
        }) = said.what()
        {
            asked = body.call;
        }
        let run = asked
            .take()
            .map(|call| Said::Effect(RunId::MAIN, Effect::RunTool { call }));
        std::iter::once(said).chain(run).collect()
    };
    finds(
        &with(&format!("{ALONE}{ASK}"), Says(hasty)),
        By::Reference,
        "TW-06",
    );
}

/// 5. A bad line behind which nothing is read any more.
#[test]
fn tw_09_a_bad_line_that_kills_the_session() {
    struct Dead(bool);
    impl Tamper for Dead {
        fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
            self.0 |= dir == Dir::Host && bytes.starts_with(b"nonsense");
            if self.0 && dir == Dir::Host {
                vec![]
            } else {
                bytes
            }
        }
    }
    let report = over(&format!("= bad host 0\n{TURN}"), Dead(false));
    finds(&report, By::Drive, "dead-lock");
}

/// 5. A refused command that changes something.
#[test]
fn tw_09_a_refusal_that_changes_something() {
    let noisy = |said: Said| {
        let refused = is(&said, |what| {
            matches!(what, What::Replied { reply: Err(_), .. })
        });
        let Some(at) = said.at().filter(|_| refused) else {
            return vec![said];
        };
        let what = What::Notice {
            level: Level::Info,
            code: None,
            text: "oops".into(),
        };
        let notice = Event {
            at,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        };
        vec![said, Said::Event(notice)]
    };
    let text = "> prompt if-idle\n> prompt if-idle\n";
    finds(
        &with(&format!("{ALONE}{text}"), Says(noisy)),
        By::Reference,
        "TW-09",
    );
}

const SEPARATORS: &str =
    "> prompt if-idle\n+ model 0 text \"é\u{2028}b\"\n+ model 0 finish\n+ model 0 end\n";

/// 6. A writer that ends lines at U+2028.
#[test]
fn om_12_a_line_that_ends_at_a_separator() {
    struct Split;
    impl Tamper for Split {
        fn written(&mut self, _: Dir, bytes: Vec<u8>) -> Vec<u8> {
            String::from_utf8_lossy(&bytes)
                .replace('\u{2028}', "\n")
                .into_bytes()
        }
    }
    finds(&over(SEPARATORS, Split), By::Observer, "OM-12.a");
}

/// 7. A reader that decodes each chunk by itself, so that a character cut by a border is lost.
#[test]
fn l1_a_character_cut_by_a_border() {
    struct Lossy;
    impl Tamper for Lossy {
        fn read(&mut self, _: Dir, bytes: Vec<u8>) -> Vec<u8> {
            String::from_utf8_lossy(&bytes).into_owned().into_bytes()
        }
    }
    let report = over(&format!("= cut agent 1\n{SEPARATORS}"), Lossy);
    finds(&report, By::View, "view");
    over(SEPARATORS, Lossy).assert_clean();
}

/// 8. A member that stands twice.
#[test]
fn om_12_a_member_that_stands_twice() {
    struct Twice;
    impl Tamper for Twice {
        fn written(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let twice = text.replace(
                "\"stop_reason\":",
                "\"stop_reason\":\"stop\",\"stop\\u005freason\":",
            );
            if dir == Dir::Agent {
                twice.into_bytes()
            } else {
                bytes
            }
        }
    }
    finds(&over(TURN, Twice), By::Observer, "OM-12.b");
}

/// 9. A reader that gives up at a line of an unknown type.
#[test]
fn om_13_an_unknown_type_behind_which_nothing_is_read() {
    struct GivesUp(bool);
    impl Tamper for GivesUp {
        fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
            let unknown = bytes.windows(15).any(|part| part == b"from_the_future");
            let before = self.0;
            self.0 |= unknown;
            if before && dir == Dir::Agent {
                vec![]
            } else {
                bytes
            }
        }
    }
    let report = over(&format!("= bad agent 5\n{TURN}"), GivesUp(false));
    // The host never sees the end of its turn.
    finds(&report, By::Drive, "dead-lock");
}

/// 10. A limit that is off: a line at the limit is cut off by its reader.
#[test]
fn om_10_a_line_that_is_cut_short() {
    struct Short;
    impl Tamper for Short {
        fn read(&mut self, dir: Dir, mut bytes: Vec<u8>) -> Vec<u8> {
            if dir == Dir::Host && bytes.len() > 20 {
                bytes.truncate(20);
                bytes.push(b'\n');
            }
            bytes
        }
    }
    // The agent refuses a prompt that was never wrong.
    finds(&over(TURN, Short), By::Client, "client");
}

/// 12. A retry behind text that was shown.
#[test]
fn tw_04_a_retry_behind_shown_text() {
    let mut shown = false;
    let again = move |said: Said| {
        shown |= matches!(
            &said,
            Said::Delta {
                kind: Kind::Text,
                ..
            }
        );
        let failed = is(&said, |what| {
            matches!(
                what,
                What::RequestEnded {
                    outcome: RequestOutcome::Failed(_),
                    ..
                }
            )
        });
        let Some(at) = said.at().filter(|_| failed && shown) else {
            return vec![said];
        };
        let event = |what| {
            Said::Event(Event {
                at,
                run: RunId::MAIN,
                seen: Seen::Real,
                what,
            })
        };
        let why = Failure::new(FailureKind::Server, "backend returned 500");
        let retry = What::RetryScheduled {
            attempt: 2,
            max: 8,
            wait_us: Some(1),
            why: why.clone(),
        };
        let over = What::RetryEnded {
            ok: false,
            why: None,
        };
        vec![said, event(retry), event(over)]
    };
    let text = "> prompt if-idle\n+ model 0 text \"a\"\n+ model 0 failed server reached\n";
    finds(
        &with(&format!("{ALONE}{text}"), Says(again)),
        By::Reference,
        "TW-04",
    );
    // The Server doesn't write it; an agent that does is found by the observer.
    let report = with(text, Says(again));
    assert!(
        !report.found.iter().any(|found| found.by == By::Observer),
        "{report}"
    );
    struct Again;
    impl Tamper for Again {
        fn written(&mut self, dir: Dir, mut bytes: Vec<u8>) -> Vec<u8> {
            let token = bytes.windows(7).any(|part| part == b"\"token\"");
            if dir == Dir::Agent && token {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let retry = r#""retry","attempt":2,"max_attempts":8,"reason":"x"}"#;
                let head = text.split("\"token\"").next().unwrap_or_default();
                bytes.extend(format!("{head}{retry}\n").into_bytes());
            }
            bytes
        }
    }
    finds(&over(text, Again), By::Observer, "OM-26.a");
}

/// 12. A call that runs out of a stream that never completed.
#[test]
fn tw_05_a_call_of_a_stream_that_never_completed() {
    let trusting = |given: Given| match given {
        Given::Model(request, Chunk::End) => vec![
            Given::Model(request, Chunk::Finish("stop".into())),
            Given::Model(request, Chunk::End),
        ],
        given => vec![given],
    };
    let text = "> prompt if-idle\n+ model 0 call read\n+ model 0 end\n";
    finds(
        &with(&format!("{ALONE}{text}"), Hears(trusting)),
        By::Reference,
        "TW-05",
    );
}

/// 12. A call that never ends, and one that ends twice.
#[test]
fn tw_05_a_call_with_no_end_or_two() {
    let never = |said| lost(said, |what| matches!(what, What::ToolEnded { .. }));
    finds(
        &with(&format!("{ALONE}{CALL}"), Says(never)),
        By::Reference,
        "TW-05",
    );
    let both = |said| twice(said, |what| matches!(what, What::ToolEnded { .. }));
    finds(
        &with(&format!("{ALONE}{CALL}"), Says(both)),
        By::Reference,
        "TW-05",
    );
    // The Server says it once all the same; an agent that doesn't is found by the observer.
    let report = with(CALL, Says(both));
    assert!(
        !report.found.iter().any(|found| found.by == By::Observer),
        "{report}"
    );
    finds(
        &over(CALL, Doubles("\"tool_end\"")),
        By::Observer,
        "OM-13.g",
    );
}

/// 14. Output that no deadline announces.
#[test]
fn l3_output_that_no_deadline_announces() {
    struct Forgets;
    impl Twist for Forgets {
        fn due(&self, due: Option<Due>, queued: bool) -> Option<Due> {
            due.filter(|_| !queued)
        }
    }
    finds(&with(&format!("{ALONE}{TURN}"), Forgets), By::Driver, "L3");
}

/// 14. A deadline of the past, which spins.
#[test]
fn l4_a_deadline_that_spins() {
    struct Spins;
    impl Twist for Spins {
        fn due(&self, due: Option<Due>, _: bool) -> Option<Due> {
            let past = Due {
                at_us: START.mono_us,
                why: "never mind",
            };
            Some(due.unwrap_or(past))
        }
    }
    let report = with(&format!("{ALONE}@ jump\n"), Spins);
    finds(&report, By::Driver, "L4");
}

/// 15. A driver that reads on while its host doesn't.
#[test]
fn tw_10_a_driver_that_fills_a_queue_without_limit() {
    let play = |heeds: bool| {
        let scenario = story("");
        let mut config = scenario.setup.session();
        Openmax::session(&mut config, &scenario.setup);
        let world = session_world(config, Openmax::info());
        let mut ends = Ends::<Openmax, _>::new(&scenario.setup, world, Box::new(Untouched));
        ends.heeds = heeds;
        ends.act(&Action::Prompt(Deliver::IfIdle));
        ends.wire(Wire::Stop(Dir::Agent));
        for _ in 0..2_000 {
            let chunk = Chunk::Text("a word ".repeat(10));
            ends.driver(|agent| agent.give(Given::Model(RequestId(1), chunk)));
        }
        ends.found.iter().any(|found| found.id == "TW-10")
    };
    assert!(!play(true), "who heeds its host stays within its limits");
    assert!(play(false), "who doesn't is found");
}

/// An event that doesn't wait for its write.
#[test]
fn tw_08_an_end_before_its_write() {
    struct Hasty;
    impl Twist for Hasty {
        fn is_hasty(&self, _: WriteId) -> bool {
            true
        }
    }
    let text = format!("{ALONE}set gates all\n{TURN}");
    finds(&with(&text, Hasty), By::Reference, "TW-08");
}

/// Deltas of one message out of order, and one lost.
#[test]
fn tw_03_a_delta_that_is_lost() {
    let text = "> prompt if-idle\n+ model 0 text \"a\"\n+ model 0 text \"b\"\n+ model 0 finish\n+ model 0 end\n";
    let loses = |said: Said| match &said {
        Said::Delta { text, .. } if text == "a" => vec![],
        _ => vec![said],
    };
    finds(
        &with(&format!("{ALONE}{text}"), Says(loses)),
        By::Checker,
        "S-22",
    );
    struct Loses;
    impl Tamper for Loses {
        fn read(&mut self, dir: Dir, bytes: Vec<u8>) -> Vec<u8> {
            let lost = bytes.windows(10).any(|part| part == br#""text":"a""#);
            let token = bytes.windows(7).any(|part| part == b"\"token\"");
            if dir == Dir::Agent && token && lost {
                vec![]
            } else {
                bytes
            }
        }
    }
    finds(&over(text, Loses), By::View, "view");
    // Out of its message.
    let early = |said: Said| match &said {
        Said::Event(event) if matches!(event.what, What::MessageStarted { .. }) => vec![],
        _ => vec![said],
    };
    finds(
        &with(&format!("{ALONE}{text}"), Says(early)),
        By::Reference,
        "TW-03",
    );
}

/// A session that goes on.
fn continued() -> SessionInfo {
    let said = |id, role, text: &str| {
        Arc::new(Message {
            id: MessageId(id),
            role,
            content: vec![Arc::new(Block::Text(text.into()))],
            origin: Origin::Host,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        })
    };
    SessionInfo {
        continued: true,
        history: vec![said(1, Role::User, "then"), said(2, Role::Assistant, "old")],
        ..Openmax::info()
    }
}

/// 11. What was said in an earlier process, told as if it happened now.
#[test]
fn om_03_history_that_is_replayed_as_events() {
    let played = |tamper: Box<dyn Tamper>| {
        let scenario = story(TURN);
        let mut config = scenario.setup.session();
        Openmax::session(&mut config, &scenario.setup);
        let judged = Judged::Session(config.policy.gates);
        let world = session_world(config, continued());
        play_ends::<Openmax, _>(&scenario, world, judged, tamper)
    };
    played(Box::new(Untouched)).assert_clean();
    let replays = |line: &str| {
        let tail = line.split("\"session_id\":\"").nth(1).unwrap_or_default();
        let session = tail.split('"').next().unwrap_or_default();
        if !line.contains("\"type\":\"transcript\"") {
            return line.to_owned();
        }
        let head = format!("{{\"session_id\":\"{session}\",\"type\":");
        format!(
            "{line}{head}\"token\",\"text\":\"old\"}}\n{head}\"message_done\",\"text\":\"old\"}}\n"
        )
    };
    let report = played(Box::new(Writes(Dir::Agent, replays)));
    finds(&report, By::Observer, "OM-03.a");
    finds(&report, By::Client, "client");
    finds(&report, By::View, "view");
    // In the agent itself.
    let again = |said: Said| {
        let opened = is(&said, |what| matches!(what, What::Opened(_)));
        let Some(at) = said.at().filter(|_| opened) else {
            return vec![said];
        };
        let old = Said::Delta {
            at,
            run: RunId::MAIN,
            message: MessageId(1),
            block: 0,
            kind: Kind::Text,
            text: "old".into(),
        };
        vec![said, old]
    };
    let report = with(&format!("{ALONE}{TURN}"), Says(again));
    finds(&report, By::Checker, "S-21");
    finds(&report, By::Reference, "TW-02");
}

/// 13. A last line without its newline, which a reader loses.
#[test]
fn om_09_a_last_line_that_is_lost() {
    let scenario = story("set leave end-of-input\n> prompt if-idle\n");
    tampered::<Openmax>(&scenario, unterminated("\"user\"")).assert_clean();
    let report = tampered::<Openmax>(&scenario, loses_tails("\"user\""));
    finds(&report, By::Observer, "OM-17.b");
}
