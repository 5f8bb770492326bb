//! Whole sessions in memory: whatever hosts, models, tools, disks, clocks and wires do, nobody finds anything wrong.
//!
//! `TURNWIRE_CASES=100` plays a hundred times as many scenarios, `TURNWIRE_SEED=1` other ones.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::{prelude::*, sample::select};
use turnwire_proptests::{
    config,
    scenario::{Scenario, Setup, bytes},
    script::Mix,
    world::{run, run_text, run_with},
};

use super::MIXES;

/// The bytes in this mix, with a choice made.
fn with(mix: &Mix, data: &[u8], choose: impl FnOnce(&mut Setup)) -> Scenario {
    let mut scenario = Scenario::decode_with(mix, data);
    choose(&mut scenario.setup);
    scenario
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn tw_01_to_10_over_a_wire(data in bytes(50), mix in select(&MIXES[..])) {
        let report = run_with(&with(mix, &data, |setup| setup.world = 0));
        prop_assert!(report.is_clean(), "\n{report}");
    }

    #[test]
    fn tw_01_to_10_of_a_session_alone(data in bytes(50), mix in select(&MIXES[..])) {
        let report = run_with(&with(mix, &data, |setup| setup.world = 1));
        prop_assert!(report.is_clean(), "\n{report}");
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// Any bytes are a scenario, cut off anywhere too, and a text that reads back.
    #[test]
    fn l10_a_scenario_is_a_text(data in bytes(40), cut in any::<prop::sample::Index>()) {
        let data = &data[..cut.index(data.len() + 1)];
        let scenario = Scenario::decode(data);
        prop_assert_eq!(&Scenario::parse(&scenario.print()), &Ok(scenario.clone()));
    }

    /// L5 for the whole world: the same bytes, the same story to the last letter; and a report is a scenario itself.
    #[test]
    fn l5_a_report_plays_again(data in bytes(20)) {
        let report = run(&data);
        prop_assert_eq!(run_text(&report.to_string()).unwrap().to_string(), report.to_string());
    }
}

#[test]
fn no_bytes_are_the_plainest_scenario() {
    let scenario = Scenario::decode(&[]);
    assert_eq!(scenario.print(), "turnwire scenario 1\n");
    run(&[]).assert_clean();
}

#[test]
fn what_cannot_be_read_is_named() {
    for (text, line) in [
        ("", 1),
        ("turnwire scenario 2\n", 1),
        ("turnwire scenario 1\nset mode wild\n", 2),
        ("turnwire scenario 1\n\n> prompt if-idle now\n", 3),
        ("turnwire scenario 1\n# so\n= bad wolf 1\n", 3),
    ] {
        assert_eq!(Scenario::parse(text).unwrap_err().line, line, "{text}");
    }
}

/// Scenarios that once found something, and some that are worth reading.
#[test]
fn kept_scenarios_stay_clean() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/scenarios");
    let mut played = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let report = run_text(&text).unwrap();
        assert!(report.is_clean(), "{}\n{report}", path.display());
        played += 1;
    }
    assert!(played >= 5);
}
