//! Whole sessions over a wire of omp, in memory: Client, observer, Server and a real session, whatever hosts, models,
//! tools and disks do.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{prelude::*, sample::select};
use turnwire::protocol::omp::Omp;
use turnwire_proptests::{
    config,
    scenario::{Scenario, bytes},
    world::{Report, run_over},
};

use super::MIXES;

fn play(scenario: &Scenario) -> Report {
    run_over::<Omp>(scenario).0
}

#[test]
fn the_plainest_story_is_clean() {
    play(&Scenario::decode(&[])).assert_clean();
}

/// Stories that once found something.
#[test]
fn kept_stories_stay_clean() {
    let stories = [
        // OMP-07: what an abort gave back waits no more, though no run was open.
        "> prompt if-idle\n> prompt queue next\n= delay agent 1000\n> cancel turn keep\n> cancel everything\n> promote 71\n",
        // A turn that a hook stopped before its prompt was told.
        "set hooks all\n> prompt if-idle\n+ hook 0 deny\n",
        "set hooks all\n> prompt if-idle\n> prompt queue next\n+ fault\n> prompt if-idle\n+ hook 0 fails\n",
        // An abort in the wait of a retry.
        "set attempts 3\n> prompt if-idle\n@ skip 30001160\n> cancel compaction\n",
        // A step behind the one that was tried again: which attempt it was is told at the end of the run.
        "set attempts 3\n> prompt if-idle\n+ model 0 end\n@ jump\n+ answer 0 host\n+ answer 0\n",
        // A prompt that was taken while a queued one's turn began.
        "set hooks all\n> prompt if-idle\n> prompt queue next\n@ skip 10157056\n> prompt queue next\n",
        // A prompt that a hook still judges when the turn ends: nothing is settled.
        "set hooks prompt\n> prompt if-idle\n+ hook 0 pass\n+ answer 0\n> prompt preempt\n+ model 0 end\n+ hook 0 pass\n",
        "set hooks prompt\n> prompt if-idle\n+ answer 0\n+ model 65 half-call\n> prompt preempt\n",
        // A compaction that was asked for waits for the turn's end: the session hasn't settled with it.
        "> prompt if-idle\n> compact\n+ model 89 end\n> prompt preempt\n",
        // A prompt that was to begin at once is held by an abort of what ran before it; the host leaves all the same.
        "> prompt if-idle\n+ answer 241 write\n> compact\n> prompt preempt\n> cancel turn run\n> prompt if-idle\n> prompt steer start\n> cancel turn-else-next\n",
        // The same, where the abort hits the run before it.
        "> prompt if-idle\n+ answer 204 write\n> compact\n> prompt preempt\n> prompt preempt\n> cancel turn run\n",
        // A question that nobody can answer any more.
        "> prompt if-idle\n+ answer 0 asked\n= signal interrupt\n",
    ];
    for story in stories {
        let text = format!("turnwire scenario 1\n{story}");
        let scenario = Scenario::parse(&text).unwrap();
        play(&scenario).assert_clean();
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn tw_01_to_10_over_a_wire_of_omp(data in bytes(50), mix in select(&MIXES[..])) {
        let mut scenario = Scenario::decode_with(mix, &data);
        scenario.setup.world = 0;
        let report = play(&scenario);
        prop_assert!(report.is_clean(), "\n{report}");
    }
}
