//! What random stories found in the session, as short scripts.
#![allow(missing_docs, clippy::wildcard_enum_match_arm, clippy::panic)]

use crate::session_kit;

use session_kit::{plain, world};
use turnwire::{
    session::{
        Session, SessionConfig,
        config::{Parallel, Snapshots, StoreFailure},
    },
    vocab::{laws::EffectId, *},
};
use turnwire_proptests::{
    script::{Action, Ending, Tool, ToolNews, finish, play},
    world::{Given, World},
};

fn told(config: SessionConfig, script: &[Action]) -> World<Session> {
    let mut world = world(config);
    play(&mut world, script);
    world
}

fn clean(mut world: World<Session>) {
    finish(&mut world, Ending::Willing, true);
    assert!(
        world.problems().is_empty(),
        "{:#?}\n{}",
        world.problems(),
        world.transcript()
    );
}

#[test]
fn two_snapshots_side_by_side_are_told_apart() {
    let mut config = plain();
    config.settings.approvals = ApprovalMode::Auto;
    config.policy.snapshots = Snapshots::BeforeGate;
    config.policy.parallel = Parallel::All;
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Answer(0, vec![Tool::Write, Tool::Write]),
    ];
    let mut world = told(config, &script);
    for call in [2, 1] {
        world.give(Given::tool(
            CallId(call),
            ToolUpdate::Snapshotted {
                files: vec![],
                sequence: 1,
            },
        ));
    }
    let checkpoints: Vec<_> = world
        .said
        .iter()
        .filter_map(|said| match said.what() {
            Some(What::Checkpoint {
                checkpoint, call, ..
            }) => Some((call.0, checkpoint.0)),
            _ => None,
        })
        .collect();
    assert_eq!(checkpoints, [(2, 2), (1, 1)]);
    clean(world);
}

#[test]
fn s_17_a_cancelled_turn_stays_cancelled_when_its_write_fails() {
    let mut config = plain();
    config.policy.gates.turn_end = true;
    config.policy.store_failure = StoreFailure::Fail;
    let cancel = CancelWhat::Turn {
        queue: QueueFate::Run,
    };
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Cancel(cancel),
        Action::Store(0, false),
    ];
    let world = told(config, &script);
    let ends = |what: Option<&What>| matches!(what, Some(What::TurnEnded { end, .. }) if end.is_cancelled());
    assert!(
        world.said.iter().any(|said| ends(said.what())),
        "{}",
        world.transcript()
    );
    clean(world);
}

#[test]
fn s_57_a_job_that_a_stopped_call_left_behind_is_stopped() {
    let mut config = plain();
    config.timeouts.tool_us = Some(1_000_000);
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Answer(0, vec![Tool::Read]),
        Action::Skip(1_000_001),
        Action::Tool(0, ToolNews::Detaches),
    ];
    let world = told(config, &script);
    assert_eq!(
        world.jobs.get(&JobId(1)),
        Some(&true),
        "{}",
        world.transcript()
    );
    clean(world);
}

#[test]
fn s_02_an_outcome_that_comes_after_its_deadline_counts_as_late() {
    let mut config = plain();
    config.timeouts.tool_us = Some(1_000_000);
    config.policy.parallel = Parallel::Never;
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Answer(0, vec![Tool::Read, Tool::Read]),
        Action::Skip(1_000_001),
        Action::Tool(0, ToolNews::Ok),
    ];
    let world = told(config, &script);
    let ended: Vec<_> = world
        .said
        .iter()
        .filter_map(|said| match said.what() {
            Some(What::ToolEnded { call, outcome, .. }) => Some((call.0, outcome.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [(1, ToolOutcome::TimedOut)]);
    assert!(world.work.contains_key(&EffectId::Tool(CallId(2))));
    clean(world);
}

#[test]
fn s_06_a_command_to_a_session_that_a_timer_has_just_closed_gets_no_reply() {
    let mut config = plain();
    config.timeouts.drain_us = Some(1_000_000);
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Close(true),
        Action::Skip(1_000_001),
        Action::Prompt(Deliver::IfIdle),
    ];
    let world = told(config, &script);
    assert!(matches!(
        world.said.last().and_then(|said| said.what()),
        Some(What::Closed { .. })
    ));
    clean(world);
}

#[test]
fn s_55_a_draining_session_runs_prompts_that_a_cancel_kept() {
    let script = [
        Action::Prompt(Deliver::IfIdle),
        Action::Prompt(Deliver::Queue(Rank::Next)),
        Action::Close(true),
        Action::Cancel(CancelWhat::Turn {
            queue: QueueFate::Keep,
        }),
    ];
    clean(told(plain(), &script));
}

/// S-02, S-05: what a deadline of the past leads to comes before the input, so a command that is refused changes nothing.
#[test]
fn s_02_what_waited_for_a_late_deadline_goes_on_before_the_command() {
    let mut config = plain();
    config.timeouts.drain_us = Some(60_000_000);
    let script = [
        Action::RELOAD,
        Action::Prompt(Deliver::IfIdle),
        Action::Close(true),
        Action::Skip(59_000_000),
        Action::Prompt(Deliver::IfIdle),
    ];
    let world = told(config, &script);
    let last = world.said.last().and_then(|said| said.what());
    let refused = matches!(
        last,
        Some(What::Replied {
            reply: Err(Refusal::Closing),
            ..
        })
    );
    assert!(refused, "{}", world.transcript());
    let goes_on = |what: Option<&What>| matches!(what, Some(What::RequestStarted { .. }));
    assert!(
        world.said.iter().any(|said| goes_on(said.what())),
        "{}",
        world.transcript()
    );
    clean(world);
}
