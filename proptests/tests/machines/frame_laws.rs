//! The line splitter against a model, and law L1 for it.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use turnwire::frame::{LineRules, OverLong, Place, Tail};
use turnwire::vocab::Now;
use turnwire_proptests::cases::pieces;
use turnwire_proptests::fuzz::models::{model_lines, split_lines};
use turnwire_proptests::laws::{LineMachine, LineSaid, law_l1};

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
    #![proptest_config(turnwire_proptests::config(2000))]

    #[test]
    fn l1_lines_are_the_same_however_the_bytes_are_cut(
        rules in rules(),
        bytes in stream(),
        cuts in prop::collection::btree_set(0_usize..60, 0..8),
    ) {
        let expected = model_lines(rules, &bytes);
        let cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= bytes.len()).collect();
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&split_lines(rules, &[&bytes]), &expected);
        let story = [(bytes.clone(), Now::default()), (vec![], Now::default())];
        prop_assert_eq!(law_l1(|| LineMachine::new(rules), &story, 1 + cuts.len()), Ok(()));
        prop_assert_eq!(&split_lines(rules, &pieces(&bytes, &cuts)), &expected);
        prop_assert_eq!(&split_lines(rules, &each), &expected);
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
                let seen = split_lines(rules, &bytes.chunks(size).collect::<Vec<_>>());
                let place = Place {
                    line: 2,
                    offset: (length + end.len()) as u64,
                };
                let next = LineSaid::Line(place, b"next".to_vec());
                assert_eq!(seen.len(), 2);
                assert_eq!(seen[1], next);
                match &seen[0] {
                    LineSaid::Line(_, line) => assert!(passes && line.len() == length),
                    LineSaid::TooLong(_, bytes) => assert!(!passes && *bytes == length as u64),
                    LineSaid::Tail(..) => panic!("a tail"),
                }
            }
        }
    }
}
