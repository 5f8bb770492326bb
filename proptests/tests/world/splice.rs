//! Whole runs over a wire of splice, in memory: Client, observer, Server and a real session, whatever hosts, models, tools
//! and disks do.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{prelude::*, sample::select};
use turnwire::protocol::splice::Splice;
use turnwire_proptests::{
    config,
    scenario::{Scenario, bytes},
    world::{Report, run_over},
};

use super::MIXES;

fn play(scenario: &Scenario) -> Report {
    run_over::<Splice>(scenario).0
}

#[test]
fn the_plainest_story_is_clean() {
    play(&Scenario::decode(&[])).assert_clean();
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tw_01_to_10_over_a_wire_of_splice(data in bytes(50), mix in select(&MIXES[..])) {
        let mut scenario = Scenario::decode_with(mix, &data);
        scenario.setup.world = 0;
        let report = play(&scenario);
        prop_assert!(report.is_clean(), "\n{report}");
    }
}
