//! Goals, over random stories: what a session does by itself, and how long.
#![allow(missing_docs, clippy::wildcard_enum_match_arm, clippy::panic)]

use crate::session_kit;

use proptest::prelude::*;
use session_kit::{cases, plain, pursuing, stories, tell, world};
use turnwire::vocab::*;
use turnwire_proptests::{
    script::{Ending, Mix, quiesce},
    world::Said,
};

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn stories_of_goals(story in stories(Mix::COMMANDS, 60)) {
        let world = tell(&pursuing(story));
        prop_assert!(world.problems().is_empty(), "{:#?}\n{}", world.problems(), world.transcript());
    }

    #[test]
    fn s_58_each_arming_begins_no_more_turns_than_it_may(story in stories(Mix::COMMANDS, 60)) {
        let most = story.config.goals.auto_turns.unwrap_or(0);
        let world = tell(&pursuing(story));
        let mut begun = 0;
        for what in world.said.iter().filter_map(Said::what) {
            match what {
                // It was set, or goes on.
                What::Goal(GoalEvent::Changed(_)) => begun = 0,
                What::TurnStarted { cause: Cause::Goal, .. } => begun += 1,
                What::Goal(GoalEvent::BudgetExhausted { turns }) => {
                    prop_assert_eq!(*turns, begun, "{}", world.transcript());
                }
                _ => {}
            }
            prop_assert!(begun <= most, "{} of {} turns\n{}", begun, most, world.transcript());
        }
    }

    /// No state of the goal holds up a session, and one that is left alone comes to rest with its budget used up.
    #[test]
    fn s_58_a_goal_left_alone_uses_up_its_budget(turns in 1u32..5, check: bool) {
        let mut config = plain();
        config.goals.auto_turns = Some(turns);
        config.goals.check = check;
        let mut world = world(config);
        world.command(Command::Goal(GoalCommand::Set {
            text: Text::from("be done"),
            auto_turns: None,
            token_budget: None,
        }));
        let prompt = world.prompt("go", Deliver::IfIdle);
        world.command(Command::Prompt(prompt));
        quiesce(&mut world, Ending::Willing);
        let begun = world.said.iter().filter(|said| {
            matches!(said.what(), Some(What::TurnStarted { cause: Cause::Goal, .. }))
        });
        prop_assert_eq!(begun.count(), turns as usize);
        let last = world.said.iter().rev().filter_map(Said::what).take(2).cloned().collect::<Vec<_>>();
        prop_assert_eq!(last, [What::Settled, What::Goal(GoalEvent::BudgetExhausted { turns })]);
        prop_assert_eq!(world.problems(), Vec::<String>::new());
    }
}
