//! Whole sessions over a wire of agentx, and of claude, in memory: Client, observer, Server and a real session, whatever
//! hosts, models, tools and disks do.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{prelude::*, sample::select};
use turnwire::protocol::agentx::Agentx;
use turnwire_proptests::{
    config,
    scenario::{Scenario, bytes},
    world::{Report, run_over},
};

use super::MIXES;

fn play(scenario: &Scenario) -> Report {
    run_over::<Agentx>(scenario).0
}

#[test]
fn the_plainest_story_is_clean_in_each_preset() {
    for seed in ["0", "1", "2"] {
        let mut scenario = Scenario::decode(&[]);
        assert!(scenario.setup.choose("seed", seed));
        play(&scenario).assert_clean();
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tw_01_to_10_over_a_wire_of_agentx(data in bytes(50), mix in select(&MIXES[..])) {
        let mut scenario = Scenario::decode_with(mix, &data);
        scenario.setup.world = 0;
        let report = play(&scenario);
        prop_assert!(report.is_clean(), "\n{report}");
    }
}
