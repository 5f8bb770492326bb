//! Laws of the observer: nothing makes it panic, memory and output stay bounded, and streams that crossed give no
//! false alarm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

mod observer_kit;

use std::sync::LazyLock;

use observer_kit::*;
use proptest::prelude::*;
use serde_json::Value;
use turnwire::check::From;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::openmax::{ObserverConfig, Openmax, Wire};

static RECORDINGS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(recordings);

/// A recording: its name, what the two sides wrote, in order, and the exit code.
type Recorded = (String, Vec<(Dir, String)>, Option<i64>);

static LINES: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let one = |(name, bytes): &(String, Vec<u8>)| {
        let mut lines = Vec::new();
        let mut exit = None;
        for row in bytes
            .split(|&byte| byte == b'\n')
            .filter(|row| !row.is_empty())
        {
            let row: Value = serde_json::from_slice(row).unwrap();
            let dir = match row["dir"].as_str().unwrap() {
                "in" => Dir::Host,
                "out" => Dir::Agent,
                _ => {
                    exit = row["code"].as_i64();
                    continue;
                }
            };
            // What can't be said in text is left out: the crossing is about commands.
            if let Some(text) = row["line"]
                .as_str()
                .filter(|text| !text.contains('\u{fffd}'))
            {
                lines.extend(text.lines().map(|line| (dir, line.to_owned())));
            }
        }
        (name.clone(), lines, exit)
    };
    RECORDINGS.iter().map(one).collect()
});

#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Twice(usize),
    Swap(usize, usize),
    Byte(usize, usize, u8),
    Cut(usize, usize),
    From(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Drop),
        any::<usize>().prop_map(Change::Twice),
        any::<(usize, usize)>().prop_map(|(a, b)| Change::Swap(a, b)),
        any::<(usize, usize, u8)>().prop_map(|(line, at, byte)| Change::Byte(line, at, byte)),
        any::<(usize, usize)>().prop_map(|(line, at)| Change::Cut(line, at)),
        any::<(usize, usize)>().prop_map(|(other, line)| Change::From(other, line)),
    ]
}

fn apply(lines: &mut Vec<(Dir, Vec<u8>)>, change: &Change) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    match *change {
        Change::Drop(at) => drop(lines.remove(at % count)),
        Change::Twice(at) => lines.insert(at % count, lines[at % count].clone()),
        Change::Swap(a, b) => lines.swap(a % count, b % count),
        Change::Byte(line, at, byte) => {
            let text = &mut lines[line % count].1;
            let length = text.len().max(1);
            if let Some(old) = text.get_mut(at % length) {
                *old = byte;
            }
        }
        Change::Cut(line, at) => {
            let text = &mut lines[line % count].1;
            text.truncate(at % (text.len() + 1));
        }
        Change::From(other, line) => {
            let other = &LINES[other % LINES.len()].1;
            if !other.is_empty() {
                let (dir, text) = other[line % other.len()].clone();
                lines.insert(line % count, (dir, text.into_bytes()));
            }
        }
    }
}

fn feed(lines: &[(Dir, Vec<u8>)], sides: Sides, wire: Wire, exit: Option<i64>) -> Vec<String> {
    let mut observer = Observer::<Openmax>::new(ObserverConfig { wire }, sides);
    let mut errors = Vec::new();
    let mut take = |observer: &mut Observer<Openmax>, text: &[u8]| {
        let mut count = 0;
        while let Some(finding) = observer.poll_finding() {
            count += 1;
            assert!(finding.severity <= finding.rule.severity);
            assert!(finding.span.start <= finding.span.end, "{finding}");
            assert!(
                finding.place.is_none() || finding.span.end <= text.len(),
                "{finding}"
            );
            assert!(finding.message.len() < 400, "{finding}");
            if finding.severity == Severity::Error {
                errors.push(finding.to_string());
            }
        }
        assert!(count <= 32);
    };
    for (index, (dir, text)) in lines.iter().enumerate() {
        let place = Place {
            line: index as u64 + 1,
            offset: 0,
        };
        let what = SplitKind::Line(text);
        observer.handle_line(*dir, Split { place, what });
        take(&mut observer, text);
    }
    observer.handle_end(Dir::Host);
    observer.handle_end(Dir::Agent);
    if let Some(code) = exit {
        observer.handle_exit(code);
    }
    observer.finish();
    take(&mut observer, b"");
    observer.finish();
    assert!(observer.poll_finding().is_none());
    errors
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

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
            apply(&mut lines, change);
        }
        feed(&lines, sides, if five { Wire::V5 } else { Wire::V6 }, exit);
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
        let mut order: Vec<(Dir, String)> = Vec::new();
        let mut host = 0;
        for (dir, text) in lines {
            let mut at = order.len();
            if *dir == Dir::Host {
                let most = lead[host % lead.len()];
                host += 1;
                for _ in 0..most {
                    match at.checked_sub(1).map(|before| &order[before]) {
                        Some((Dir::Agent, said)) if !(text.contains("approve\"") && said.contains("approval_")) => at -= 1,
                        _ => break,
                    }
                }
            }
            order.insert(at, (*dir, text.clone()));
        }
        let bytes: Vec<_> = order.iter().map(|(dir, text)| (*dir, text.clone().into_bytes())).collect();
        let errors = feed(&bytes, Sides::Both, Wire::V5, *exit);
        prop_assert!(errors.is_empty(), "{name}: {errors:?}\n{order:#?}");
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
