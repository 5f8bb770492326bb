//! The line splitter against a model, and law L1 for it.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use turnwire::frame::{LineRules, LineSplitter, OverLong, Split, SplitKind, Tail};
use turnwire::vocab::Now;
use turnwire_proptests::cases::pieces;
use turnwire_proptests::laws::{LineMachine, law_l1};

/// (line number, offset, what)
type Seen = (u64, u64, Owned);

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Line(Vec<u8>),
    TooLong(u64),
    Tail(Vec<u8>),
}

fn own(split: Split<'_>) -> Seen {
    let what = match split.what {
        SplitKind::Line(line) => Owned::Line(line.to_vec()),
        SplitKind::TooLong { bytes, .. } => Owned::TooLong(bytes),
        SplitKind::Tail(line) => Owned::Tail(line.to_vec()),
    };
    (split.place.line, split.place.offset, what)
}

fn split(rules: LineRules, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut splitter = LineSplitter::new(rules);
    let mut seen = vec![];
    for mut piece in pieces.iter().copied() {
        while let Some(split) = splitter.next(&mut piece) {
            seen.push(own(split));
        }
        assert!(piece.is_empty());
    }
    seen.extend(splitter.finish().map(own));
    assert!(splitter.finish().is_none());
    seen
}

/// The same, the slow and plain way, over the whole stream.
fn model(rules: LineRules, bytes: &[u8]) -> Vec<Seen> {
    let mut seen = vec![];
    let mut offset = 0;
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let ended = lines.len();
    lines.extend((!last.is_empty()).then_some(last));
    for (index, whole) in lines.into_iter().enumerate() {
        let line = whole.strip_suffix(b"\r").unwrap_or(whole);
        let fatal = rules.over == OverLong::Fatal && line.len() > rules.max_bytes;
        let what = if fatal {
            Owned::TooLong(rules.max_bytes as u64 + 1)
        } else if line.len() > rules.max_bytes {
            Owned::TooLong(line.len() as u64)
        } else if index == ended && rules.tail == Tail::Refuse {
            Owned::Tail(line.to_vec())
        } else {
            Owned::Line(line.to_vec())
        };
        seen.push((index as u64 + 1, offset, what));
        if fatal {
            break;
        }
        offset += whole.len() as u64 + 1;
    }
    seen
}

fn rules() -> impl Strategy<Value = LineRules> {
    (0_usize..7, any::<bool>(), any::<bool>()).prop_map(|(max_bytes, fatal, refuse)| LineRules {
        max_bytes,
        over: if fatal {
            OverLong::Fatal
        } else {
            OverLong::Skip
        },
        tail: if refuse { Tail::Refuse } else { Tail::Deliver },
    })
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => Just(b'\n'), 3 => Just(b'\r'), 6 => Just(b'x'), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l1_lines_are_the_same_however_the_bytes_are_cut(
        rules in rules(),
        bytes in stream(),
        cuts in prop::collection::btree_set(0_usize..60, 0..8),
    ) {
        let expected = model(rules, &bytes);
        let cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= bytes.len()).collect();
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&split(rules, &[&bytes]), &expected);
        let story = [(bytes.clone(), Now::default()), (vec![], Now::default())];
        prop_assert_eq!(law_l1(|| LineMachine::new(rules), &story, 1 + cuts.len()), Ok(()));
        prop_assert_eq!(&split(rules, &pieces(&bytes, &cuts)), &expected);
        prop_assert_eq!(&split(rules, &each), &expected);
    }
}

#[test]
fn om_10_a_line_at_the_limit_passes_and_one_byte_more_does_not() {
    const MAX: usize = 8_388_608;
    let rules = LineRules {
        max_bytes: MAX,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    };
    for (length, passes) in [(MAX - 1, true), (MAX, true), (MAX + 1, false)] {
        for end in ["\n", "\r\n"] {
            let mut bytes = vec![b'x'; length];
            bytes.extend_from_slice(end.as_bytes());
            bytes.extend_from_slice(b"next\n");
            for size in [65_536, usize::MAX] {
                let seen = split(rules, &bytes.chunks(size).collect::<Vec<_>>());
                let next = (
                    2,
                    (length + end.len()) as u64,
                    Owned::Line(b"next".to_vec()),
                );
                assert_eq!(seen.len(), 2);
                assert_eq!(seen[1], next);
                match &seen[0].2 {
                    Owned::Line(line) => assert!(passes && line.len() == length),
                    Owned::TooLong(bytes) => assert!(!passes && *bytes == length as u64),
                    Owned::Tail(_) => panic!("a tail"),
                }
            }
        }
    }
}
