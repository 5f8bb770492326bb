//! Whole sessions over a wire of openseek, in memory: Client, observer, Server and a real session, whatever hosts, models,
//! tools and disks do.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{prelude::*, sample::select};
use turnwire::protocol::openseek::Openseek;
use turnwire_proptests::{
    config,
    scenario::{Scenario, bytes},
    world::{Report, run_over},
};

use super::MIXES;

fn play(scenario: &Scenario) -> Report {
    run_over::<Openseek>(scenario).0
}

#[test]
fn the_plainest_story_is_clean() {
    play(&Scenario::decode(&[])).assert_clean();
}

/// Stories that once found something.
#[test]
fn kept_stories_stay_clean() {
    let context = "> prompt context\n".repeat(5);
    let stories = [
        // Which steers were too many is told by those that are applied.
        format!("set queued 3\n> prompt if-idle\n{context}"),
        format!(
            "set queued 3\nset leave drain\n> prompt if-idle\n{context}+ model 1 text \"so\"\n"
        ),
        // A question of a nested run is for the same person.
        String::from(
            "set mode accept-edits\nset running 2\nset stopped 3\nset steps 1\nset attempts 3\nset seed 2\n\
             > prompt if-idle\n> compact\n@ jump\n+ tool 0 ok\n> prompt if-idle\n+ tool 0 ok\n> withdraw 0\n\
             @ skip 1001056\n> compact\n+ answer 0 denied capture\n+ answer 0 read read write\n",
        ),
    ];
    for story in stories {
        let scenario = Scenario::parse(&format!("turnwire scenario 1\n{story}")).unwrap();
        play(&scenario).assert_clean();
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tw_01_to_10_over_a_wire_of_openseek(data in bytes(50), mix in select(&MIXES[..])) {
        let mut scenario = Scenario::decode_with(mix, &data);
        scenario.setup.world = 0;
        let report = play(&scenario);
        prop_assert!(report.is_clean(), "\n{report}");
    }
}
