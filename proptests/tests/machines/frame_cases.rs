//! The cases of the framing layer, and those of the JSON layer that are lines:
//! bytes → lines → strict scan.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use turnwire::frame::{LineRules, LineSplitter, OverLong, SplitKind, Tail, is_blank};
use turnwire::json::{JsonFaultKind, Members, ScanRules, scan};
use turnwire_proptests::cases::{self, Case};

/// openmax's rules for the host's lines.
const RULES: LineRules = LineRules {
    max_bytes: 8_388_608,
    over: OverLong::Skip,
    tail: Tail::Deliver,
};

/// What became of one line, in the words of the cases.
#[derive(Clone, Debug, PartialEq)]
struct Read {
    word: &'static str,
    number: u64,
    offset: u64,
    value: Value,
}

fn read(pieces: &[&[u8]], eof: bool) -> Vec<Read> {
    let mut splitter = LineSplitter::new(RULES);
    let mut members = Members::new();
    let mut seen = vec![];
    let mut take = |split: turnwire::frame::Split<'_>| {
        let (word, value) = match split.what {
            SplitKind::TooLong { .. } => ("too_long", Value::Null),
            SplitKind::Line(line) | SplitKind::Tail(line) if is_blank(line) => return,
            SplitKind::Line(line) | SplitKind::Tail(line) => {
                match scan(line, &ScanRules::STRICT, &mut members) {
                    // A number that no double holds can't be a `Value`; the line is good.
                    Ok(object) => ("ok", object.decode().unwrap_or_default()),
                    Err(fault) if matches!(fault.kind, JsonFaultKind::NotUtf8 { .. }) => {
                        ("not_utf8", Value::Null)
                    }
                    Err(_) => ("bad", Value::Null),
                }
            }
        };
        seen.push(Read {
            word,
            number: split.place.line,
            offset: split.place.offset,
            value,
        });
    };
    for mut piece in pieces.iter().copied() {
        while let Some(split) = splitter.next(&mut piece) {
            take(split);
        }
    }
    if eof && let Some(split) = splitter.finish() {
        take(split);
    }
    seen
}

/// Whether a value has the members that are expected of it, and theirs.
fn has(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::Object(members) => members
            .iter()
            .all(|(name, expected)| value.get(name).is_some_and(|v| has(v, expected))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            value == expected
        }
    }
}

fn check(case: &Case, input: &[u8], cuts: &[usize]) -> Vec<Read> {
    let seen = read(&cases::pieces(input, cuts), case.eof);
    let expected = case.lines();
    assert_eq!(
        seen.len(),
        expected.len(),
        "{} cut at {cuts:?}: {seen:?}",
        case.id
    );
    for (read, allowed) in seen.iter().zip(expected) {
        assert!(
            allowed.contains(&read.word),
            "{} cut at {cuts:?}: {read:?} isn't {allowed:?}",
            case.id
        );
    }
    for (index, expected) in case
        .data()
        .get("values")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let read = &seen[index.parse::<usize>().unwrap()];
        assert!(
            has(&read.value, expected),
            "{} cut at {cuts:?}: {read:?}",
            case.id
        );
    }
    seen
}

fn check_all(case: &Case) {
    let input = case.input("").unwrap();
    let mut first = None;
    for cuts in case.cuttings(input.len()) {
        let seen = check(case, input, &cuts);
        assert_eq!(
            first.get_or_insert_with(|| seen.clone()),
            &seen,
            "{} cut at {cuts:?}",
            case.id
        );
    }
}

#[test]
fn every_framing_case_holds_at_every_cut() {
    let all = cases::of_layer("framing").unwrap();
    assert_eq!(all.len(), 7);
    for case in all {
        check_all(&case);
    }
}

#[test]
fn f02_every_pair_of_cuts() {
    let case = cases::named("F02-any-cut-same-records").unwrap();
    let input = case.input("").unwrap();
    let whole = check(&case, input, &[]);
    for second in 1..input.len() {
        for first in 0..second {
            assert_eq!(read(&cases::pieces(input, &[first, second]), true), whole);
        }
    }
}

#[test]
fn f05_every_line_is_whole_whatever_the_read_size() {
    let case = cases::named("F05-no-smaller-hidden-limit").unwrap();
    let input = case.input("").unwrap();
    for size in [1, 4096, 65536] {
        let cuts: Vec<usize> = (size..input.len()).step_by(size).collect();
        let seen = check(&case, input, &cuts);
        let lengths: Vec<Value> = seen
            .iter()
            .map(|read| read.value["text"].as_str().unwrap().len().into())
            .collect();
        assert_eq!(case.data()["text_bytes"], Value::Array(lengths));
    }
}

#[test]
fn f07_a_bad_line_is_reported_with_its_own_number() {
    let case = cases::named("F07-log-lines-in-the-stream").unwrap();
    let seen = check(&case, case.input("").unwrap(), &[]);
    let bad: Vec<u64> = seen
        .iter()
        .filter(|read| read.word == "bad")
        .map(|read| read.number)
        .collect();
    assert_eq!(bad, [1, 3, 4, 6]);
}

#[test]
fn every_json_case_that_is_lines_holds() {
    let mut count = 0;
    for case in cases::of_layer("json").unwrap() {
        if !case.lines().is_empty() {
            check_all(&case);
            count += 1;
        }
    }
    assert_eq!(count, 3);
}

#[test]
fn j03_all_four_spellings_are_refused_before_any_member_is_obeyed() {
    let case = cases::named("J03-the-same-member-twice").unwrap();
    assert_eq!(case.inputs.len(), 4);
    for (name, input) in &case.inputs {
        let line = input.strip_suffix(b"\n").unwrap();
        let fault = scan(line, &ScanRules::STRICT, &mut Members::new())
            .map(|_| ())
            .unwrap_err();
        assert!(
            matches!(fault.kind, JsonFaultKind::Duplicate { .. }),
            "{name}: {fault}"
        );
    }
}
