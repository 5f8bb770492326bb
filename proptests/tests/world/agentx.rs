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

/// A prompt that still waits when the agent's time to finish is over has a result that says so, and the exit isn't clean.
#[test]
fn wire_eof_001_a_prompt_that_never_had_its_turn_has_a_result() {
    let story = "turnwire scenario 1\nset mode accept-edits\nset stopped 1\nset tool_timeout 7s\nset drain_timeout 11s\n\
                 set steps 1\nset odd late-snapshots\nset ending silent\nset leave end-of-input\n\
                 > prompt queue next\n+ model 101 finish\n> prompt follow-up\n> prompt follow-up\n\
                 + model 30 text \"hello \"\n@ jump\n";
    let report = play(&Scenario::parse(story).unwrap());
    report.assert_clean();
    let report = report.to_string();
    assert_eq!(report.matches("\"input_error\"").count(), 2, "{report}");
    assert!(report.contains("exit 1"), "{report}");
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
