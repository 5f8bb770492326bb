//! The watchers are watched: an agent without a bug passes every random script, and
//! each bug is found by one of them.
#![allow(
    missing_docs,
    clippy::wildcard_enum_match_arm,
    clippy::expect_used,
    clippy::panic
)]

use crate::fake;

use fake::{Bug, Fake};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use turnwire::vocab::{Now, laws::Scope};
use turnwire_proptests::{
    script::{Action, Ending, Mix, finish, play, scripts},
    world::World,
};

fn problems(bug: Bug, script: &[Action], ending: Ending, drain: bool) -> Vec<String> {
    let mut world = World::new(
        Fake::new(bug),
        Scope::Session,
        Now {
            mono_us: 7,
            unix_ms: 7,
        },
    );
    play(&mut world, script);
    finish(&mut world, ending, drain);
    world.problems()
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Willing),
        Just(Ending::Unwilling),
        Just(Ending::Silent)
    ]
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn an_agent_without_a_bug_passes(script in scripts(Mix::ALL, 40), ending in endings(), drain: bool) {
        prop_assert_eq!(problems(Bug::None, &script, ending, drain), Vec::<String>::new());
    }
}

/// Plays scripts until one finds the bug, and gives the law that was named first.
fn law_found(bug: Bug) -> String {
    let mut runner = TestRunner::deterministic();
    for _ in 0..400 {
        let script = scripts(Mix::ALL, 40)
            .new_tree(&mut runner)
            .expect("a script")
            .current();
        if let Some(problem) = problems(bug, &script, Ending::Willing, true).first() {
            return problem.clone();
        }
    }
    panic!("{bug:?} was never found");
}

#[test]
fn every_bug_is_found_and_named() {
    let bugs = [
        (Bug::EndsTwice, "S-10"),
        (Bug::SilentCancel, "S-07"),
        (Bug::LateReply, "S-07"),
        (Bug::CancelledFinishes, "S-17"),
        (Bug::Unannounced, "L3"),
        // A timer that stays is a deadline that doesn't move, or an overdue one: it depends on what the story met first.
        (Bug::Spins, "L4|S-02"),
        (Bug::Hangs, "dead-lock"),
        (Bug::TakesTwice, "S-04"),
        (Bug::LosesText, "S-22"),
        (Bug::NeverCloses, "S-55"),
        (Bug::NoBody, "has no body"),
    ];
    for (bug, law) in bugs {
        let found = law_found(bug);
        let named = law.split('|').any(|law| found.contains(law));
        assert!(named, "{bug:?} was found as {found}");
    }
}
