//! Laws of the observer: nothing makes it panic, memory and output stay bounded, and streams that crossed give no
//! false alarm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;

use std::sync::LazyLock;

use observer_kit::laws::{Recorded, apply, change, crossed, feed, recorded};
use observer_kit::*;
use proptest::prelude::*;
use turnwire::check::From;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Sides};
use turnwire::protocol::openmax::{ObserverConfig, Openmax, Wire};

static RECORDINGS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(recordings);

static LINES: LazyLock<Vec<Recorded>> = LazyLock::new(|| RECORDINGS.iter().map(recorded).collect());

proptest! {
    #![proptest_config(turnwire_proptests::config(600))]

    #[test]
    fn l9_no_stream_makes_it_panic(
        which in any::<usize>(),
        changes in prop::collection::vec(change(), 1..12),
        five in any::<bool>(),
        sides in prop::sample::select(vec![Sides::Host, Sides::Agent, Sides::Both]),
        exit in prop::option::of(-20..200i64),
    ) {
        let (_, lines, _) = &LINES[which % LINES.len()];
        let mut lines: Vec<_> = lines.iter().map(|(dir, text)| (*dir, text.clone().into_bytes())).collect();
        for change in &changes {
            apply(&mut lines, change, &LINES);
        }
        let wire = if five { Wire::V5 } else { Wire::V6 };
        feed::<Openmax>(&lines, sides, ObserverConfig { wire }, exit);
        // The same as a file.
        let file = lines.iter().map(|(_, text)| text.as_slice()).collect::<Vec<_>>().join(&b'\n');
        for from in [From::Guess, From::Host, From::Agent, From::Both] {
            check_pieces(&file, from, Wire::V6, 97);
        }
    }

    /// A host's line can be recorded before lines of the agent that the agent wrote without having read it. Only an
    /// answer to an approval can't stand before its question.
    #[test]
    fn lines_that_crossed_give_no_false_alarm(which in any::<usize>(), lead in prop::collection::vec(0..6usize, 24)) {
        let (name, lines, exit) = &LINES[which % LINES.len()];
        let lines = crossed(lines, &lead, |host, agent| host.contains("approve\"") && agent.contains("approval_"));
        let config = ObserverConfig { wire: Wire::V5 };
        let errors = feed::<Openmax>(&lines, Sides::Both, config, *exit);
        prop_assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn a_long_stream_is_judged_to_its_end() {
    let mut observer = Observer::<Openmax>::new(ObserverConfig::default(), Sides::Both);
    let mut line = 0;
    let mut say = |observer: &mut Observer<Openmax>, dir, text: String| {
        line += 1;
        let place = Place { line, offset: 0 };
        observer.handle_line(
            dir,
            Split {
                place,
                what: SplitKind::Line(text.as_bytes()),
            },
        );
    };
    let event = |text: String| format!(r#"{{"session_id":"s","type":{text}}}"#);
    say(&mut observer, Dir::Agent, r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}"#.into());
    for number in 0..70_000 {
        say(
            &mut observer,
            Dir::Host,
            r#"{"cmd":"user","text":"go"}"#.into(),
        );
        say(
            &mut observer,
            Dir::Agent,
            event(format!(
                r#""tool_start","call_id":"c{number}","name":"n","args":{{}}"#
            )),
        );
        say(
            &mut observer,
            Dir::Agent,
            event(format!(
                r#""tool_end","call_id":"c{number}","ok":true,"output":"""#
            )),
        );
        say(
            &mut observer,
            Dir::Agent,
            event(r#""done","stop_reason":"stop""#.into()),
        );
        assert_eq!(observer.poll_finding(), None);
    }
    // The last ids are known, the first ones are forgotten: nothing is said of them.
    say(
        &mut observer,
        Dir::Host,
        r#"{"cmd":"user","text":"go"}"#.into(),
    );
    say(
        &mut observer,
        Dir::Agent,
        event(r#""tool_end","call_id":"c69999","ok":true,"output":"""#.into()),
    );
    assert_eq!(observer.poll_finding().unwrap().rule.id, "OM-13.g");
    say(
        &mut observer,
        Dir::Agent,
        event(r#""tool_end","call_id":"c0","ok":true,"output":"""#.into()),
    );
    assert_eq!(observer.poll_finding(), None);
}
