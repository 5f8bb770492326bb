//! How the end of a stream is judged.

use alloc::{vec, vec::Vec};

use super::{ObserverConfig, Wire};
use crate::frame::{Place, Split, SplitKind};
use crate::protocol::observer::{Dir, Observer, Severity, Sides};
use crate::protocol::openmax::Openmax;

const HELLO: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}"#;
const CONTINUED: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":true}"#;
const BUDGET: &str = r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}"#;
const ERROR: &str = r#"{"session_id":"s","type":"error","message":"it broke"}"#;
const FAILED: &str = r#"{"session_id":"s","type":"done","stop_reason":"error"}"#;
const DONE: &str = r#"{"session_id":"s","type":"done","stop_reason":"stop"}"#;

/// The rules that the end of an agent's lines breaks, and how badly.
fn found(wire: Wire, lines: &[&[&str]], exit: Option<i64>) -> Vec<(&'static str, Severity)> {
    let config = ObserverConfig { wire };
    let mut observer = Observer::<Openmax>::new(config, Sides::Agent);
    for (number, line) in lines.concat().iter().enumerate() {
        let place = Place {
            line: number as u64 + 1,
            offset: 0,
        };
        let what = SplitKind::Line(line.as_bytes());
        observer.handle_line(Dir::Agent, Split { place, what });
    }
    while observer.poll_finding().is_some() {}
    if let Some(code) = exit {
        observer.handle_exit(code);
    }
    observer.finish();
    let mut found = vec![];
    while let Some(finding) = observer.poll_finding() {
        found.push((finding.rule.id, finding.severity));
    }
    found
}

#[test]
fn om_25_the_exit_code_is_that_of_the_last_turn() {
    let good: &[&str] = &[BUDGET, DONE];
    let bad: &[&str] = &[BUDGET, ERROR, FAILED];
    let hello: &[&str] = &[HELLO];
    for (turns, code, right) in [
        (&[hello][..], 0, true),
        (&[hello], 1, false),
        (&[hello, good], 0, true),
        (&[hello, good], 1, false),
        (&[hello, good], 2, false),
        (&[hello, bad], 1, true),
        (&[hello, bad], 0, false),
        (&[hello, bad], 2, false),
        (&[hello, good, bad], 1, true),
        (&[hello, bad, good], 0, true),
        (&[hello, bad, good], 1, false),
        // A signal, and a failure to start, promise nothing.
        (&[hello, good], 137, true),
        (&[], 1, true),
        (&[], 3, true),
    ] {
        let found = found(Wire::V6, turns, Some(code));
        let wrong = found.iter().any(|(rule, _)| *rule == "OM-25.a");
        assert_eq!(wrong, !right, "{turns:?} {code}: {found:?}");
    }
    // The older wire remembers any failed turn.
    let older = |turns: &[&[&str]], code| {
        let found = found(Wire::V5, turns, Some(code));
        found.iter().any(|(rule, _)| *rule == "OM-25.a")
    };
    assert!(!older(&[hello, bad, good], 1));
    assert!(!older(&[hello, bad, good], 0));
    assert!(older(&[hello, good], 1));
    assert!(older(&[hello, bad], 0));
}

#[test]
fn om_02_a_stream_that_ends_at_its_hello_lacks_the_transcript() {
    let ends = |exit| found(Wire::V6, &[&[CONTINUED]], exit);
    let lacks = |severity| vec![("OM-02.a", severity)];
    // Whoever cut the stream off may have lost it.
    assert_eq!(ends(None), lacks(Severity::Warning));
    assert_eq!(ends(Some(0)), lacks(Severity::Error));
    assert_eq!(ends(Some(137)), []);
    assert_eq!(found(Wire::V6, &[&[HELLO]], Some(0)), []);
}

#[test]
fn om_24_a_stream_that_ends_within_a_turn_died_silently() {
    let ends = |exit| found(Wire::V6, &[&[HELLO, BUDGET]], exit);
    let silent = |found: Vec<(&'static str, Severity)>| -> Vec<Severity> {
        found.into_iter().map(|(_, severity)| severity).collect()
    };
    assert_eq!(silent(ends(None)), [Severity::Warning]);
    assert_eq!(silent(ends(Some(1))), [Severity::Error]);
    assert_eq!(silent(ends(Some(134))), []);
}
