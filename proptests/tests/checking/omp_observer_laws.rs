//! Laws of the observer of omp: nothing makes it panic, memory and output stay bounded, and streams that crossed give no
//! false alarm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;
use crate::omp_kit;

use std::sync::LazyLock;

use observer_kit::check_of;
use observer_kit::laws::{Recorded, apply, change, crossed, feed, recorded};
use proptest::prelude::*;
use turnwire::check::From;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Sides};
use turnwire::protocol::omp::{Generation, ObserverConfig, Omp};

/// The recordings but for the two of very large frames.
static LINES: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let small = |file: &(String, Vec<u8>)| file.1.len() < 100_000;
    omp_kit::files()
        .iter()
        .filter(|file| small(file))
        .map(recorded)
        .collect()
});

/// Whether a line of the host answers what this line of the agent asks, or says what the agent needs to have read.
fn bound(host: &str, agent: &str) -> bool {
    let answer = host.contains("\"extension_ui_response\"") || host.contains("\"host_");
    answer && (agent.contains("\"extension_ui_request\"") || agent.contains("\"host_"))
}

proptest! {
    #![proptest_config(turnwire_proptests::config(300))]

    #[test]
    fn l9_no_stream_makes_it_panic(
        which in any::<usize>(),
        changes in prop::collection::vec(change(), 1..12),
        generation in prop::sample::select(vec![Generation::G1, Generation::G2, Generation::G3]),
        sides in prop::sample::select(vec![Sides::Host, Sides::Agent, Sides::Both]),
        exit in prop::option::of(-20..200i64),
    ) {
        let (_, lines, _) = &LINES[which % LINES.len()];
        let mut lines: Vec<_> = lines.iter().map(|(dir, text)| (*dir, text.clone().into_bytes())).collect();
        for change in &changes {
            apply(&mut lines, change, &LINES);
        }
        feed::<Omp>(&lines, sides, ObserverConfig { generation }, exit);
        let file = lines.iter().map(|(_, text)| text.as_slice()).collect::<Vec<_>>().join(&b'\n');
        for from in [From::Guess, From::Host, From::Agent, From::Both] {
            check_of::<Omp>(ObserverConfig { generation }, &file, from, 997);
        }
    }

    #[test]
    fn lines_that_crossed_give_no_false_alarm(which in any::<usize>(), lead in prop::collection::vec(0..6usize, 24)) {
        let (name, lines, exit) = &LINES[which % LINES.len()];
        let lines = crossed(lines, &lead, bound);
        let errors = feed::<Omp>(&lines, Sides::Both, ObserverConfig::default(), *exit);
        prop_assert!(errors.is_empty(), "{name}: {errors:?}");
    }

    /// Of a stream that is looked into late, nothing is wrong that wasn't.
    #[test]
    fn a_stream_that_is_cut_gives_no_false_alarm(which in any::<usize>(), end in any::<usize>()) {
        let (name, lines, _) = &LINES[which % LINES.len()];
        let end = end % (lines.len() + 1);
        let lines: Vec<_> = lines[..end].iter().map(|(dir, text)| (*dir, text.clone().into_bytes())).collect();
        let errors = feed::<Omp>(&lines, Sides::Both, ObserverConfig::default(), None);
        prop_assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn a_long_stream_is_judged_to_its_end() {
    let mut observer = Observer::<Omp>::new(ObserverConfig::default(), Sides::Both);
    let mut line = 0;
    let mut say = |observer: &mut Observer<Omp>, dir, text: &str| {
        line += 1;
        let place = Place { line, offset: 0 };
        let what = SplitKind::Line(text.as_bytes());
        observer.handle_line(dir, Split { place, what });
    };
    let ready = r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#;
    say(&mut observer, Dir::Agent, ready);
    for number in 0..70_000 {
        for (dir, text) in [
            (
                Dir::Host,
                format!(r#"{{"id":"p{number}","type":"prompt","message":"go"}}"#),
            ),
            (
                Dir::Agent,
                format!(
                    r#"{{"id":"p{number}","type":"response","command":"prompt","success":true}}"#
                ),
            ),
            (Dir::Agent, r#"{"type":"agent_start"}"#.into()),
            (
                Dir::Agent,
                format!(
                    r#"{{"type":"tool_execution_start","toolCallId":"c{number}","toolName":"n"}}"#
                ),
            ),
            (
                Dir::Agent,
                format!(
                    r#"{{"type":"tool_execution_end","toolCallId":"c{number}","toolName":"n"}}"#
                ),
            ),
            (
                Dir::Agent,
                r#"{"type":"agent_end","messages":[],"yielded":true}"#.into(),
            ),
            (
                Dir::Agent,
                format!(
                    r#"{{"type":"prompt_result","id":"p{number}","agentInvoked":true,"status":"completed","sessionSettled":false}}"#
                ),
            ),
        ] {
            say(&mut observer, dir, &text);
        }
        assert_eq!(observer.poll_finding(), None);
    }
    // The last ids are known, the first ones are forgotten: nothing is said of them.
    say(&mut observer, Dir::Agent, r#"{"type":"agent_start"}"#);
    let end = |number: u32| {
        format!(r#"{{"type":"tool_execution_end","toolCallId":"c{number}","toolName":"n"}}"#)
    };
    say(&mut observer, Dir::Agent, &end(69_999));
    assert_eq!(observer.poll_finding().unwrap().rule.id, "OMP-03.i");
    say(&mut observer, Dir::Agent, &end(0));
    assert_eq!(observer.poll_finding(), None);
}
