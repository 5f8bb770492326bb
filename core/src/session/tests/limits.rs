//! Time, back-pressure and memory: the laws of the machine itself.

use alloc::{format, string::String, vec, vec::Vec};

use super::{
    act::{act, policy},
    world::{SECOND, World, config, info, prompt},
};
use crate::session::{Session, config::Retry};
use crate::vocab::*;

fn call(id: u64, command: Command) -> Input<'static> {
    Input::Call(Call {
        id: CommandId(id),
        command,
    })
}

fn text(request: u64, text: &str) -> Input<'_> {
    Input::Model {
        request: RequestId(request),
        chunk: ModelChunk::Text(text),
    }
}

/// A session in which a request is live, with nothing drained but its start.
fn streaming(config: crate::session::SessionConfig) -> Session {
    let now = Now::default();
    let mut session = Session::new(config, info(), now);
    session
        .handle(call(1, Command::Prompt(prompt(1, Deliver::IfIdle))), now)
        .unwrap();
    while session.poll_output().is_some() {}
    session
}

#[test]
fn l6_time_that_goes_back_is_misuse_and_changes_nothing() {
    let mut world = World::new(config());
    world.at_us(10);
    assert_eq!(world.command(Command::Barrier), ["RP Done"]);
    let before = Now {
        mono_us: 9,
        unix_ms: 0,
    };
    let prompted = call(9, Command::Prompt(prompt(1, Deliver::IfIdle)));
    assert_eq!(
        world.session.handle(prompted, before),
        Err(Misuse::TimeWentBack)
    );
    assert_eq!(world.session.poll_timeout(), None);
    // The wall clock may go back.
    let same = Now {
        mono_us: 10,
        unix_ms: 0,
    };
    assert_eq!(world.session.handle(Input::Woken, same), Ok(()));
}

#[test]
fn l3_queued_output_is_due_at_once_and_l4_a_deadline_that_fired_is_gone() {
    let mut session = streaming(policy("(t_stall=10)"));
    let due = session.poll_timeout().unwrap();
    assert_eq!(
        due,
        Due {
            at_us: 10 * SECOND,
            why: "stall"
        }
    );
    let now = Now {
        mono_us: due.at_us,
        unix_ms: 0,
    };
    session.handle(Input::Woken, now).unwrap();
    assert_eq!(
        session.poll_timeout(),
        Some(Due {
            at_us: now.mono_us,
            why: "output"
        })
    );
    while session.poll_output().is_some() {}
    assert_eq!(
        session.poll_timeout(),
        Some(Due {
            at_us: 11 * SECOND,
            why: "backoff"
        })
    );
}

#[test]
fn s_02_timers_of_one_tick_fire_in_the_order_of_their_names_and_ids() {
    let mut world = World::new(policy(
        "(t_approval=5 t_tool=5 t_hook=5 t_drain=5 parallel=all perm_hook=1)",
    ));
    world.session.handle(Input::Woken, world.now).unwrap();
    for input in [
        "Prompt P1",
        "r1 Call writeask#n1",
        "r1 Call read#n2",
        "r1 Finish, End",
        "Close drain",
    ] {
        act(&mut world, input);
    }
    let said = act(&mut world, "@5 Woken");
    let wanted = "AC a1 TimedOut, !StopHook h1, DC c1 deny Timer, TF c1 Denied:Timer, !StopTool c2, TF c2 TimedOut, SE 1";
    assert_eq!(said[..7].join(", "), wanted);
    assert!(said.last().unwrap().starts_with("Closed"), "{said:?}");
}

#[test]
fn s_45_a_timer_goes_with_what_it_belongs_to() {
    let mut world = World::new(policy("(t_stall=7 t_approval=5 t_tool=5 t_hook=5)"));
    for input in ["Prompt P1", "r1 Call writeask#n1", "r1 Finish, End"] {
        act(&mut world, input);
    }
    assert_eq!(world.session.poll_timeout().unwrap().why, "approval");
    act(&mut world, "Reply a1 Allow");
    assert_eq!(world.session.poll_timeout().unwrap().why, "tool");
    act(&mut world, "Tool c1 ok");
    assert_eq!(world.session.poll_timeout().unwrap().why, "stall");
    act(&mut world, "Cancel");
    assert_eq!(world.session.poll_timeout(), None);
}

#[test]
fn l2_draining_late_gives_the_same_outputs() {
    let inputs: Vec<(u64, Input<'_>)> = vec![
        (0, call(1, Command::Prompt(prompt(1, Deliver::IfIdle)))),
        (1, text(1, "one ")),
        (2, text(1, "two")),
        (
            3,
            call(
                2,
                Command::Prompt(prompt(
                    2,
                    Deliver::Steer {
                        idle: IdleSteer::Start,
                    },
                )),
            ),
        ),
        (
            4,
            Input::Model {
                request: RequestId(1),
                chunk: ModelChunk::Finish("stop"),
            },
        ),
        (
            5,
            Input::Model {
                request: RequestId(1),
                chunk: ModelChunk::End,
            },
        ),
        (6, text(2, "three")),
        (7, call(3, Command::Close { drain: false })),
    ];
    let run = |late: bool| {
        let mut session = Session::new(config(), info(), Now::default());
        let mut said: Vec<String> = Vec::new();
        for (at, input) in &inputs {
            session
                .handle(
                    input.clone(),
                    Now {
                        mono_us: *at,
                        unix_ms: *at,
                    },
                )
                .unwrap();
            while let Some(output) = if late { None } else { session.poll_output() } {
                said.push(format!("{output:?}"));
            }
        }
        while let Some(output) = session.poll_output() {
            said.push(format!("{output:?}"));
        }
        said
    };
    assert_eq!(run(false), run(true));
    assert!(run(true).iter().any(|line| line.contains("\"one \"")));
}

#[test]
fn a_token_allocates_nothing_once_warm() {
    let mut session = streaming(config());
    let mut buffers = Vec::new();
    for number in 0..20_000_u32 {
        session
            .handle(text(1, "a token or two"), Now::default())
            .unwrap();
        match session.poll_output() {
            Some(Output::Event(_)) => while session.poll_output().is_some() {},
            Some(Output::Delta(delta)) => assert_eq!(delta.text, "a token or two"),
            other => panic!("{other:?}"),
        }
        assert!(session.poll_output().is_none());
        if number > 10 {
            buffers.push(session.out.text_capacity());
        }
    }
    buffers.dedup();
    assert_eq!(
        buffers.len(),
        1,
        "the buffer of the deltas grew: {buffers:?}"
    );
    assert!(buffers[0] < 1024);
}

#[test]
fn tw_10_a_reader_that_is_always_behind_holds_no_more_than_what_it_left() {
    let mut session = streaming(config());
    let token = "x".repeat(1000);
    // The first comes with the start of its message and block; then there is always one in the queue.
    for _ in 0..2000 {
        session.handle(text(1, &token), Now::default()).unwrap();
        if session.out.bytes() > 20_000 {
            assert!(session.poll_output().is_some());
        }
    }
    assert!(
        session.out.text_capacity() < 512 * 1024,
        "{}",
        session.out.text_capacity()
    );
}

#[test]
fn s_61_a_stalled_host_slows_the_model_and_can_still_cancel() {
    let mut session = streaming(config());
    let limits = config().limits;
    let token = "x".repeat(10_000);
    let mut marks = Vec::new();
    let refused = loop {
        let (bulk, input) = (session.wants_bulk(), session.wants_input());
        assert_eq!(bulk, session.out.bytes() <= limits.soft_bytes);
        assert_eq!(input, session.out.bytes() <= limits.control_bytes);
        if marks.last() != Some(&(bulk, input)) {
            marks.push((bulk, input));
        }
        if let Err(misuse) = session.handle(text(1, &token), Now::default()) {
            break misuse;
        }
    };
    assert_eq!(refused, Misuse::OverHardLimit);
    assert_eq!(marks, [(true, true), (false, true), (false, false)]);
    assert!(session.out.bytes() <= limits.hard_bytes + 2 * token.len());
    // Settlements and a cancel are always taken.
    let what = CancelWhat::Turn {
        queue: QueueFate::Drop,
    };
    session
        .handle(
            call(
                2,
                Command::Cancel {
                    what,
                    why: CancelWhy::Host,
                },
            ),
            Now::default(),
        )
        .unwrap();
    let end = Input::Model {
        request: RequestId(1),
        chunk: ModelChunk::End,
    };
    session.handle(end, Now::default()).unwrap();
    let mut ended = false;
    while let Some(output) = session.poll_output() {
        if let Output::Event(event) = output {
            ended |= matches!(
                event.what,
                What::PromptEnded {
                    end: End::Cancelled(_),
                    ..
                }
            );
        }
    }
    assert!(ended && session.wants_bulk() && session.wants_input());
}

#[test]
fn l5_jitter_comes_from_the_seed() {
    let wait = |seed: u8| {
        let mut config = policy("(jitter=50)");
        config.seed = [seed; 32];
        config.policy.retry = Retry {
            backoff_us: vec![10 * SECOND],
            ..config.policy.retry
        };
        let mut world = World::new(config);
        act(&mut world, "Prompt P1");
        act(&mut world, "r1 Failed");
        world.session.poll_timeout().unwrap().at_us
    };
    assert_eq!(wait(1), wait(1));
    assert_ne!(wait(1), wait(2));
    for seed in 0..50 {
        assert!((10 * SECOND..=15 * SECOND).contains(&wait(seed)));
    }
}

#[test]
fn om_27_a_wait_that_is_too_long_is_named() {
    let mut world = World::new(config());
    act(&mut world, "Prompt P1");
    let failure = Failure {
        kind: FailureKind::RateLimit,
        status: Some(429),
        retryable: true,
        text: "slow down".into(),
    };
    let chunk = ModelChunk::Failed {
        failure,
        reached: true,
        retry_after_us: Some(60 * SECOND + 1),
    };
    world
        .session
        .handle(
            Input::Model {
                request: RequestId(1),
                chunk,
            },
            world.now,
        )
        .unwrap();
    let mut texts = Vec::new();
    while let Some(output) = world.session.poll_output() {
        if let Output::Event(Event {
            what:
                What::TurnEnded {
                    end: End::Failed(failure),
                    ..
                },
            ..
        }) = output
        {
            texts.push(failure.text.clone());
        }
    }
    assert_eq!(texts, ["slow down; the server asks to wait 61 s".into()]);
}

#[test]
fn a_turn_says_what_it_used_and_answered() {
    let mut world = World::new(config());
    for input in [
        "Prompt P1",
        "r1 Call writeask#n1",
        "r1 Usage 100",
        "r1 Finish, End",
        "Reply a1 Deny",
    ] {
        act(&mut world, input);
    }
    for input in ["@2 r2 Text", "r2 Usage 200"] {
        act(&mut world, input);
    }
    let finish = Input::Model {
        request: RequestId(2),
        chunk: ModelChunk::Finish("stop"),
    };
    world.session.handle(finish, world.now).unwrap();
    let end = Input::Model {
        request: RequestId(2),
        chunk: ModelChunk::End,
    };
    world.session.handle(end, world.now).unwrap();
    let mut found = false;
    while let Some(output) = world.session.poll_output() {
        let Output::Event(event) = output else {
            continue;
        };
        if let What::TurnEnded {
            end,
            answer,
            report,
            ..
        } = &event.what
        {
            found = true;
            assert_eq!(
                *end,
                End::Finished {
                    finish: Some("stop".into())
                }
            );
            assert_eq!(*answer, Some(TurnAnswer::Text("text".into())));
            assert_eq!(
                (report.wall_us, report.api_us, report.requests),
                (2 * SECOND, Some(2 * SECOND), Some(2))
            );
            assert_eq!(report.denials, [CallId(1)]);
            let (_, usage, _) = &report.by_model[0];
            assert_eq!(usage.input, Some(300));
        }
    }
    assert!(found);
}

#[test]
fn tw_10_an_idle_session_gives_a_large_buffer_back() {
    let mut session = streaming(config());
    let token = "x".repeat(100_000);
    session.handle(text(1, &token), Now::default()).unwrap();
    assert!(session.text.capacity() >= 100_000);
    let finish = Input::Model {
        request: RequestId(1),
        chunk: ModelChunk::Finish("stop"),
    };
    session.handle(finish, Now::default()).unwrap();
    let end = Input::Model {
        request: RequestId(1),
        chunk: ModelChunk::End,
    };
    session.handle(end, Now::default()).unwrap();
    assert_eq!(session.text.capacity(), 0);
}

#[test]
fn s_33_no_more_calls_are_under_way_than_hooks_and_questions_have_room_for() {
    let mut world = World::new(policy("(tools=100)"));
    act(&mut world, "Prompt P1");
    for _ in 0..20 {
        act(&mut world, "r1 Call read#n1");
    }
    let said = act(&mut world, "r1 Finish, End");
    let running = said.iter().filter(|word| word.starts_with("!RunTool"));
    assert_eq!(running.count(), 16);
}

#[test]
fn tw_10_tool_output_is_cut_and_marked() {
    let mut config = config();
    config.limits.tool_output_bytes = 10;
    let mut world = World::new(config);
    for input in ["Prompt P1", "r1 Call read#n1", "r1 Finish, End"] {
        act(&mut world, input);
    }
    let show = Show {
        summary: None,
        changed: Vec::new(),
        meta: Vec::new(),
        details: None,
        truncated: false,
        redacted: false,
    };
    let update = ToolUpdate::Done {
        outcome: ToolOutcome::Ok,
        content: vec![Block::Text("0123456789abcdef".into())],
        show: Some(show.into()),
    };
    let call = CallId(1);
    let ended = Input::Tool { call, update };
    world.session.handle(ended, world.now).unwrap();
    let Some(Output::Event(event)) = world.session.poll_output() else {
        panic!("nothing said")
    };
    let What::ToolEnded { content, show, .. } = &event.what else {
        panic!("{event:?}")
    };
    let kept = Block::Text("01234\n[… 6 bytes left out …]\nbcdef".into());
    assert_eq!(*content, [kept]);
    assert!(show.as_ref().unwrap().truncated);
}

#[test]
fn tw_10_rules_of_the_host_are_bounded() {
    let mut world = World::new(config());
    for input in ["Prompt P1", "r1 Call writeask#n1", "r1 Finish, End"] {
        act(&mut world, input);
    }
    let rules = (0..5000).map(|n| (format!("t{n}").into(), None)).collect();
    let update = PermissionUpdate::Rules {
        op: SetOp::Add,
        behaviour: "allow".into(),
        rules,
        keep: Keep::Session,
    };
    let updates = vec![update];
    let said = world.reply(
        1,
        Ok(Reply::Allow {
            input: None,
            updates,
        }),
    );
    assert_eq!(said.last().unwrap(), "Notice permission_update");
}

#[test]
fn om_13_another_model_counts_anew() {
    let mut world = World::new(config());
    let mut used = |inputs: &[&str]| {
        for input in inputs {
            act(&mut world, input);
        }
        world.session.estimate.used()
    };
    let raw = used(&["Prompt P1"]);
    let scaled = used(&["r1 Text", "r1 Usage 1000", "r1 Finish, End"]);
    assert!(raw < 50 && scaled > 1000, "{raw} {scaled}");
    assert!(used(&["Set Model:other"]) < 50);
}
