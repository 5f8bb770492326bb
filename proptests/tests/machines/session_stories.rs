//! Random stories told to a session: random policies, commands, model answers, calls,
//! hooks, writes and times, late settlements, and a close. The checker of the neutral
//! stream and the driver's watch look on.
#![allow(missing_docs, clippy::panic)]

use crate::session_kit;

use proptest::prelude::*;
use session_kit::{Story, cases, judged, stories, tell};
use turnwire::vocab::HookPoint;
use turnwire_proptests::script::Mix;

fn check(story: &Story) -> Result<(), TestCaseError> {
    let world = tell(story);
    prop_assert!(
        world.problems().is_empty(),
        "{:#?}\n{}",
        world.problems(),
        world.transcript()
    );
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn stories_of_all_kinds(story in stories(Mix::ALL, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_retries(story in stories(Mix::RETRIES, 40)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_calls(story in stories(Mix::CALLS, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_hooks(story in stories(Mix::HOOKS, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_judged_turns(story in stories(Mix::HOOKS, 60)) {
        check(&judged(story, HookPoint::TurnEnd))?;
    }

    #[test]
    fn stories_of_judged_questions(story in stories(Mix::CALLS, 60)) {
        check(&judged(story, HookPoint::Permission))?;
    }

    #[test]
    fn stories_of_queues(story in stories(Mix::QUEUES, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_cancels(story in stories(Mix::CANCELS, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_compactions(story in stories(Mix::COMPACTIONS, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_commands(story in stories(Mix::COMMANDS, 60)) {
        check(&story)?;
    }

    #[test]
    fn stories_of_closes(story in stories(Mix::CLOSES, 40)) {
        check(&story)?;
    }
}
