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

/// Stories that once found something.
#[test]
fn kept_stories_stay_clean() {
    let stories = [
        // Pieces of an attempt that came to nothing stand before the reply, and nothing says so.
        "set attempts 3\n> prompt if-idle\n+ model 97 thinking \"hello \"\n@ jump\n",
        "set attempts 3\n> prompt if-idle\n+ model 97 thinking \"hello \"\n+ model 103 half-call\n+ model 97 thinking \"so \"\n@ jump\n",
        // A signal passes the answers that are on their way.
        "set mode readonly\n> prompt if-idle\n= delay host 60000\n+ answer 255 asked broken asked\n> reply 255 interrupt\n> reply 53 yes\n= signal terminate\n",
    ];
    for story in stories {
        let scenario = Scenario::parse(&format!("turnwire scenario 1\n{story}")).unwrap();
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
