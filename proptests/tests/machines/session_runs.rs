//! Nested runs, over random stories told to a session and the runs below it.
#![allow(missing_docs, clippy::wildcard_enum_match_arm, clippy::panic)]

use std::collections::BTreeSet;

use crate::session_kit;

use proptest::prelude::*;
use session_kit::{Story, cases, nesting, stories, tell, tell_tree, tree};
use turnwire::{session::SessionTree, vocab::*};
use turnwire_proptests::{
    laws::{AgentMachine, law_l2, law_l3, law_l4, law_l5, law_l6},
    script::Mix,
    world::{Said, World},
};

fn events(world: &World<SessionTree>) -> impl Iterator<Item = &Event> {
    world.said.iter().filter_map(|said| match said {
        Said::Event(event) => Some(event),
        Said::Delta { .. } | Said::Effect(..) => None,
    })
}

fn check(story: Story) -> Result<(), TestCaseError> {
    let world = tell_tree(&nesting(story));
    prop_assert!(
        world.problems().is_empty(),
        "{:#?}\n{}",
        world.problems(),
        world.transcript()
    );
    Ok(())
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn s_57_s_69_stories_of_runs(story in stories(Mix::ALL, 80)) {
        check(story)?;
    }

    #[test]
    fn stories_of_runs_and_calls(story in stories(Mix::CALLS, 80)) {
        check(story)?;
    }

    #[test]
    fn stories_of_runs_and_cancels(story in stories(Mix::CANCELS, 80)) {
        check(story)?;
    }

    #[test]
    fn stories_of_runs_and_commands(story in stories(Mix::COMMANDS, 80)) {
        check(story)?;
    }

    #[test]
    fn stories_of_runs_and_closes(story in stories(Mix::CLOSES, 60)) {
        check(story)?;
    }

    #[test]
    fn stories_of_runs_that_another_holds(story in stories(Mix::CALLS, 60)) {
        let world = tell(&nesting(story));
        prop_assert!(world.problems().is_empty(), "{:#?}\n{}", world.problems(), world.transcript());
    }

    #[test]
    fn s_33_permissions_of_runs_count_with_ours(story in stories(Mix::CALLS, 80)) {
        let story = nesting(story);
        let most = story.config.policy.asks_at_once.max(1) as usize;
        let world = tell_tree(&story);
        let mut open = BTreeSet::new();
        for event in events(&world) {
            match &event.what {
                What::Asked { ask, body: Ask::Permission(_) } => drop(open.insert(*ask)),
                What::AskClosed { ask, .. } => drop(open.remove(ask)),
                _ => {}
            }
            prop_assert!(open.len() <= most, "{open:?}\n{}", world.transcript());
        }
    }

    #[test]
    fn s_33_no_more_runs_are_alive_than_may_be_nor_deeper(story in stories(Mix::CALLS, 80)) {
        let story = nesting(story);
        let limits = story.config.limits.clone();
        let world = tell_tree(&story);
        let mut alive: Vec<(RunId, RunId)> = Vec::new();
        for event in events(&world) {
            match &event.what {
                What::RunStarted { run, .. } => alive.push((*run, event.run)),
                What::RunEnded { run, .. } => alive.retain(|(open, _)| open != run),
                _ => {}
            }
            let of_ours = alive.iter().filter(|(_, by)| *by == RunId::MAIN);
            prop_assert!(of_ours.count() <= limits.runs, "{alive:?}\n{}", world.transcript());
            let mut depth = 0;
            let mut at = alive.last().map(|(run, _)| *run);
            while let Some(run) = at.filter(|run| *run != RunId::MAIN) {
                depth += 1;
                at = alive.iter().find(|(open, _)| *open == run).map(|(_, by)| *by);
            }
            prop_assert!(depth <= limits.run_depth, "{alive:?}\n{}", world.transcript());
        }
    }

    /// A session alone is no other for the tree around it.
    #[test]
    fn l5_a_tree_without_runs_is_its_session(story in stories(Mix::ALL, 60)) {
        let (alone, in_tree) = (tell(&story), tell_tree(&story));
        prop_assert_eq!(&alone.said, &in_tree.said);
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn l2_l3_l4_l5_l6_hold_for_a_tree(story in stories(Mix::ALL, 60)) {
        let story = nesting(story);
        let told = tell_tree(&story).given;
        let make = || AgentMachine(tree(story.config.clone()));
        law_l2(make, &told, 3).unwrap();
        law_l3(make, &told).unwrap();
        law_l4(make, &told).unwrap();
        law_l5(make, &told).unwrap();
        law_l6(make, &told).unwrap();
    }
}
