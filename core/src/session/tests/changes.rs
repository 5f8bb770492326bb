//! Changes of the session: in every phase, vetoed, failed, and what a copy begins with.

use alloc::{boxed::Box, string::ToString, vec, vec::Vec};

use super::{
    act::{act, policy},
    history::play,
    trace::play_row,
    world::World,
};
use crate::session::config::{ChangeSession, Policy};
use crate::vocab::*;

/// The policy's word for it.
pub fn allowed(policy: &mut Policy, value: &str) {
    policy.change_session = match value {
        "idle" => ChangeSession::WhenIdle,
        _ => ChangeSession::Always,
    };
}

/// The command of a row: entries are numbers of messages.
pub fn command(words: &[&str]) -> Command {
    Command::Session(match words {
        [] => SessionCommand::New { parent: None },
        ["Open", place] => SessionCommand::Open((*place).into()),
        ["Switch", place] => SessionCommand::Switch((*place).into()),
        ["Branch", entry] => SessionCommand::Branch((*entry).into()),
        ["Fork"] => SessionCommand::Fork(None),
        ["Fork", entry] => SessionCommand::Fork(Some((*entry).into())),
        other => panic!("session {other:?}"),
    })
}

/// What the driver's opening came to: another session of one message, the same one, or none.
pub fn opened(how: &[&str]) -> Result<Box<OtherSession>, OpenFault> {
    match how {
        ["ok"] => Ok(Box::new(OtherSession {
            session: "s2".into(),
            name: Some("the other".into()),
            file: Some("/s2.jsonl".into()),
            continued: true,
            history: vec![message(7, Role::User, vec![Block::Text("before".into())])],
            ..OtherSession::default()
        })),
        ["same"] => Ok(Box::new(OtherSession {
            session: "s1".into(),
            same: true,
            ..OtherSession::default()
        })),
        ["missing"] => Err(OpenFault::Missing),
        ["unkept"] => Err(OpenFault::Unkept),
        _ => Err(OpenFault::Failed("disk gone".into())),
    }
}

fn message(id: u64, role: Role, content: Vec<Block>) -> alloc::sync::Arc<Message> {
    alloc::sync::Arc::new(Message {
        id: MessageId(id),
        role,
        content: content.into_iter().map(alloc::sync::Arc::new).collect(),
        origin: Origin::History,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

const TURN: &str = "@0 Prompt P1 → **O**; r1 Finish, End → MS, **C**, SE 1, TE t1 Finished, PE P1 Finished, Settled; ";

/// Plays a row behind a turn that has finished.
#[track_caller]
fn behind_a_turn(about: &str, row: &str) {
    whole(about, &[TURN, row].concat());
}

#[track_caller]
fn whole(about: &str, row: &str) {
    let row = ["row | ", about, " | ", row].concat();
    if let Err(fault) = play_row(&row) {
        panic!("{fault}");
    }
}

#[test]
fn omp_07_a_vetoed_change_changes_nothing() {
    whole(
        "(change=always switch_hook=1)",
        "@0 Prompt P1 → **O**; r1 Text → MS, D text; Prompt P2 FollowUp → Q P2 FollowUp; \
         Session → !RunHook h1 SessionSwitch; Prompt P3 Steer:Start → RP Err Busy; \
         Hook h1 block → RP Session; \
         Prompt P4 Steer:Start → Q P4 Steer; \
         r1 Finish, End → **C**, SE 1, SS 2, PP P4 t1, RQ r2 2.1",
    );
}

#[test]
fn a_change_that_fails_changes_nothing() {
    for (how, why) in [
        ("missing", "Unknown"),
        ("unkept", "Unsupported"),
        ("gone", "Failed"),
    ] {
        let row = [
            "@0 Prompt P1 → **O**; r1 Text → MS, D text; Session Switch x → !OpenSession; Opened ",
            how,
            " → RP Err ",
            why,
            "; r1 Finish, End → **C**, SE 1, TE t1 Finished, PE P1 Finished, Settled",
        ];
        whole("(change=always)", &row.concat());
    }
}

#[test]
fn omp_07_a_change_ends_what_runs_waits_and_is_judged() {
    whole(
        "(change=always)",
        "@0 Prompt P1 → **O**; r1 Text → MS, D text; Prompt P2 FollowUp → Q P2 FollowUp; Prompt P3 Steer:Start → Q P3 Steer; \
         Session → !OpenSession; \
         Opened ok → PE P3 Dropped:SessionChanged, PE P2 Dropped:SessionChanged, !StopModel r1, ME Detached kept, \
         RE r1 Cancelled, SE 1, TE t1 Cancelled:Switch, PE P1 Cancelled:Switch, Settled, Opened, RP Session; \
         r1 End → –; Prompt P4 → RP P4 Started, TS t2 Prompt, SS 1, PP P4 t2, RQ r2 1.1",
    );
    whole(
        "(change=always submit_hook=1)",
        "@0 Prompt P1 → !RunHook h1 PromptSubmit; Session → !OpenSession; \
         Opened ok → !StopHook h1, RP Err Cancelled, Opened, RP Session; Hook h1 pass → –",
    );
}

#[test]
fn a_change_closes_the_question_and_the_call_that_waits() {
    whole(
        "(change=always)",
        "**A**; Session → !OpenSession; Opened ok → AC a1 Cancelled, DC c1 deny Cancel, TF c1 Cancelled, SE 1, TE t1 Cancelled:Switch, \
         PE P1 Cancelled:Switch, Settled, Opened, RP Session; Reply a1 Allow → RP Err AlreadySettled",
    );
}

#[test]
fn a_turn_is_written_before_its_session_is_left() {
    whole(
        "(change=always gate_end=1)",
        "@0 Prompt P1 → **O**; r1 Text → MS, D text; Session → !OpenSession; \
         Opened ok → !StopModel r1, ME Detached kept, RE r1 Cancelled, SE 1, !Store w1 Turn; \
         Prompt P2 → RP Err Busy; Cancel → RP Cancelling Nothing; \
         Store w1 → TE t1 Cancelled:Switch, PE P1 Cancelled:Switch, Settled, Opened, RP Session",
    );
    // A disk that hangs holds it for a moment only.
    whole(
        "(change=always gate_end=1)",
        "@0 Prompt P1 → **O**; r1 Text → MS, D text; Session → !OpenSession; \
         Opened ok → !StopModel r1, ME Detached kept, RE r1 Cancelled, SE 1, !Store w1 Turn; \
         @2 Woken → Notice store timed out, TE t1 Cancelled:Switch, PE P1 Cancelled:Switch, Settled, Opened, RP Session",
    );
}

#[test]
fn a_command_of_the_persons_own_ends_with_its_session_and_is_written_with_it() {
    whole(
        "(change=always gate_end=1)",
        "@0 Shell ls → !RunShell s1 ls; Session → !OpenSession; \
         Opened ok → !StopShell s1, RP Shell - \"\" cancelled, Message \"$ ls\\n\\n[cancelled]\", !Store w1 Beside; \
         Prompt P1 → RP Err Busy; Store w1 → Opened, RP Session",
    );
}

#[test]
fn a_compaction_by_hand_gives_way() {
    whole(
        "(change=always)",
        "**M**; Session → !OpenSession; Opened ok → !StopModel r2, KE Cancelled, Settled, Opened, RP Session",
    );
}

#[test]
fn a_fork_and_a_cautious_policy_wait_for_nothing() {
    whole(
        "(change=always)",
        "@0 Prompt P1 → **O**; Session Fork → RP Err Busy; Session Branch 77 → RP Err Unknown",
    );
    whole(
        "(change=idle)",
        "@0 Prompt P1 → **O**; Session → RP Err Busy",
    );
    behind_a_turn(
        "(change=idle)",
        "Session → !OpenSession; Session → RP Err Busy; Compact → RP Err Busy; Shell ls → RP Err Busy; \
         Barrier → –; Opened ok → Opened, RP Session, RP Done",
    );
    whole("(submit_hook=1)", "@0 Session → RP Err Unsupported");
}

#[test]
fn a_close_gives_up_a_change_that_isnt_certain() {
    whole(
        "(change=always switch_hook=1)",
        "@0 Session → !RunHook h1 SessionSwitch; \
         Close now → RP Done, !StopHook h1, RP Err Closing, Closed HostGone; Hook h1 pass → –",
    );
    behind_a_turn(
        "(change=always)",
        "Session → !OpenSession; Close drain → RP Done, RP Err Closing, Closed Drained; Opened ok → –",
    );
    // It is certain: a close that drains lets it end, another doesn't wait.
    let leaving = "@0 Prompt P1 → **O**; Session → !OpenSession; \
         Opened ok → !StopModel r1, RE r1 Cancelled, SE 1, !Store w1 Turn; ";
    let ended = "TE t1 Cancelled:Switch, PE P1 Cancelled:Switch, ";
    let drained = [
        leaving,
        "Close drain → RP Done; Store w1 → ",
        ended,
        "Settled, Opened, RP Session, Closed Drained",
    ];
    whole("(change=always gate_end=1)", &drained.concat());
    let now = [
        leaving,
        "Close now → RP Done; Store w1 → ",
        ended,
        "RP Err Closing, Settled, Closed HostGone",
    ];
    whole("(change=always gate_end=1)", &now.concat());
}

/// The session that the driver is asked for.
fn asked(world: &World) -> Vec<u64> {
    let effect = Effect::OpenSession(world.opening);
    match world.session.body(RunId::MAIN, &effect) {
        Some(EffectBody::Open {
            which: OpenBody::Copy(messages),
            ..
        }) => messages.iter().map(|message| message.id.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn omp_19_a_copy_is_cut_behind_a_whole_batch_of_calls() {
    // User 1, reply 2 with two calls, their results, reply; then user and reply.
    let mut world = World::new(policy("(change=always)"));
    play(
        &mut world,
        &[
            "@0 Prompt P1",
            "r1 Call read#n1",
            "r1 Call read#n2",
            "r1 Finish, End",
            "Tool c1 ok",
            "Tool c2 ok",
            "r2 Text",
            "r2 Finish, End",
            "@1 Prompt P2",
            "r3 Text",
            "r3 Finish, End",
        ],
    );
    let history = world.session.history().to_vec();
    let ids: Vec<u64> = history.iter().map(|message| message.id.0).collect();
    let kinds: Vec<bool> = history
        .iter()
        .map(|message| matches!(message.role, Role::Tool { .. }))
        .collect();
    assert_eq!(kinds, [false, false, true, true, false, false, false]);
    let from_call = |call| MessageId::of_result(CallId(call)).0;
    for (entry, count) in [
        (ids[0], 1),
        (ids[1], 4),
        (ids[2], 4),
        (ids[3], 4),
        (from_call(1), 4),
        (from_call(2), 4),
        (ids[4], 5),
        (ids[5], 6),
        (ids[6], 7),
    ] {
        let entry = entry.to_string();
        act(&mut world, &["Session Fork ", &entry].concat());
        assert_eq!(asked(&world), ids[..count], "{entry}");
        act(&mut world, "Opened gone");
    }
    act(&mut world, "Session Fork");
    assert_eq!(asked(&world), ids);
    act(&mut world, "Opened gone");
    // A branch ends before a prompt, and gives its text.
    for (entry, count, text) in [(ids[0], 0, "prompt 1"), (ids[5], 5, "prompt 2")] {
        let entry = entry.to_string();
        act(&mut world, &["Session Branch ", &entry].concat());
        assert_eq!(asked(&world), ids[..count]);
        let command = world.opening;
        let other = opened(&["gone"]);
        if count > 0 {
            act(&mut world, "Opened gone");
            continue;
        }
        // The text comes with the answer; nothing else is looked at here.
        world
            .session
            .handle(Input::Opened { command, other }, world.now)
            .unwrap();
        while world.session.poll_output().is_some() {}
        act(&mut world, &["Session Branch ", &entry].concat());
        let command = world.opening;
        let other = Ok(Box::new(OtherSession {
            session: "s1".into(),
            same: true,
            ..OtherSession::default()
        }));
        world
            .session
            .handle(Input::Opened { command, other }, world.now)
            .unwrap();
        let mut told = None;
        while let Some(output) = world.session.poll_output() {
            if let Output::Event(Event {
                what:
                    What::Replied {
                        reply: Ok(Answer::Session { text, .. }),
                        ..
                    },
                ..
            }) = output
            {
                told.clone_from(text);
            }
        }
        assert_eq!(told.as_deref(), Some(text));
    }
    // Only a prompt can be branched from.
    for entry in [ids[1], ids[2], 1_000, 0] {
        let entry = entry.to_string();
        let said = act(&mut world, &["Session Branch ", &entry].concat());
        assert_eq!(said, ["RP Err Unknown"], "{entry}");
    }
    assert_eq!(act(&mut world, "Session Fork nothing"), ["RP Err Unknown"]);
}

#[test]
fn numbers_go_on_above_those_of_both_sessions() {
    let mut world = World::new(policy("(change=always)"));
    play(
        &mut world,
        &["@0 Prompt P1", "r1 Finish, End", "Session", "Opened ok"],
    );
    let texts = |world: &World| -> Vec<(u64, alloc::string::String)> {
        let history = world.session.history().iter();
        history
            .map(|message| (message.id.0, message.text()))
            .collect()
    };
    assert_eq!(texts(&world), [(7, "before".into())]);
    play(&mut world, &["@1 Prompt P2"]);
    assert_eq!(texts(&world)[1], (8, "prompt 2".into()));
    // One that holds lower numbers than were given out.
    play(&mut world, &["r2 Finish, End"]);
    let newest = texts(&world).last().unwrap().0;
    play(&mut world, &["Session", "Opened ok", "@2 Prompt P3"]);
    let now = texts(&world);
    assert_eq!(now[0], (7, "before".into()));
    assert!(now.len() == 2 && now[1].0 > newest, "{now:?}");
}

#[test]
fn the_session_that_is_open_already_keeps_what_was_said_in_it() {
    let mut world = World::new(policy("(change=always)"));
    play(&mut world, &["@0 Prompt P1", "r1 Text", "Session Switch x"]);
    act(&mut world, "Opened same");
    let history = world.session.history();
    assert_eq!(history[0].text(), "prompt 1");
    assert_eq!(history.len(), 2);
}
