//! Changes of the session, over random stories: what is promised of them beside what every stream is held to.
#![allow(missing_docs, clippy::wildcard_enum_match_arm)]

use crate::session_kit;

use std::collections::BTreeSet;

use proptest::prelude::*;
use session_kit::{cases, stories, tell};
use turnwire::session::config::ChangeSession;
use turnwire::vocab::*;
use turnwire_proptests::{
    script::Mix,
    world::{Given, Moment, Said},
};

/// Fails with the whole story.
macro_rules! hold {
    ($world:expr, $holds:expr, $($why:tt)*) => {
        prop_assert!($holds, "{}\n{}", format!($($why)*), $world.transcript())
    };
}

proptest! {
    #![proptest_config(cases(64))]

    /// Another session is there only once the driver has it and all of this one is over; a change that is refused or
    /// vetoed has left everything as it was.
    #[test]
    fn omp_07_another_session_comes_when_it_is_there_and_nothing_is_left(
        mut story in stories(Mix::COMMANDS, 80),
        idle: bool,
    ) {
        story.config.policy.change_session = if idle { ChangeSession::WhenIdle } else { ChangeSession::Always };
        let world = tell(&story);
        hold!(world, world.problems().is_empty(), "{:?}", world.problems());
        let mut ready: BTreeSet<CommandId> = BTreeSet::new();
        let (mut first, mut opened, mut in_turn) = (true, false, false);
        for moment in world.story() {
            match moment {
                Moment::In(Given::Else(Input::Opened { command, other: Ok(_) }), _) => { ready.insert(*command); }
                Moment::In(..) => {}
                Moment::Out(said) => match said.what() {
                    Some(What::Opened(_)) => {
                        hold!(world, first || !ready.is_empty(), "nobody had it ready");
                        hold!(world, !in_turn, "a turn is open");
                        opened = !first;
                        first = false;
                    }
                    Some(What::Replied { command, reply: Ok(Answer::Session { vetoed, .. }) }) => {
                        hold!(world, *vetoed != opened, "{command:?} says that it is vetoed: {vetoed}");
                        hold!(world, *vetoed || ready.remove(command), "{command:?} was never ready");
                        opened = false;
                    }
                    Some(What::TurnStarted { .. }) => in_turn = true,
                    Some(What::TurnEnded { .. }) => in_turn = false,
                    Some(what) => hold!(world, !opened, "{:?} stands between the session and its answer", what),
                    None => {}
                },
            }
        }
    }

    /// What belongs to one session is stored in it: nothing that was asked for before another one was there is asked for
    /// again behind it.
    #[test]
    fn tw_08_what_was_said_is_written_in_its_own_session(mut story in stories(Mix::COMMANDS, 80)) {
        story.config.policy.change_session = ChangeSession::Always;
        story.config.policy.gates.turn_end = true;
        let world = tell(&story);
        let (mut said, mut before) = (BTreeSet::new(), BTreeSet::new());
        let mut first = true;
        for moment in world.said.iter().filter_map(Said::what) {
            match moment {
                What::Opened(info) if !first => {
                    before.append(&mut said);
                    for message in &info.history {
                        hold!(world, !message.id.is_made_up() || message.origin == Origin::History, "{:?}", message);
                    }
                }
                What::Opened(_) => first = false,
                What::Message(message) | What::MessageEnded { message, .. } => {
                    hold!(world, !before.contains(&message.id), "{:?} is of an earlier session", message);
                    said.insert(message.id);
                }
                _ => {}
            }
        }
    }
}
