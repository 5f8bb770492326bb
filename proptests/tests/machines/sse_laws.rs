//! The decoder of server-sent events against a model, law L1 for it, and its
//! limits.
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use turnwire::frame::{BadUtf8, SseDecoder, SseFault, SseFaultKind, SseLimits};
use turnwire_proptests::cases::pieces;
use turnwire_proptests::fuzz::models::{model_sse, split_sse};

const LIMITS: SseLimits = SseLimits {
    max_event_bytes: 1 << 20,
    bad_utf8: BadUtf8::Refuse,
};

/// Text made of what matters to the decoder.
fn stream() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => Just("\n"), 3 => Just("\r"), 3 => Just("\r\n"), 5 => Just("data:"), 3 => Just("data: x\n\n"),
        2 => Just("data"), 2 => Just("event:"), 2 => Just("event: e\n"), 1 => Just("id: 1"), 1 => Just("id:\0"),
        1 => Just("retry: 12"), 1 => Just("retry:"), 2 => Just(":"), 2 => Just(" "), 3 => Just("abc"), 1 => Just("é🦀"),
        1 => Just("\u{feff}"), 1 => Just("\u{2028}"), 1 => Just("data:y\r\n\r\n"),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(turnwire_proptests::config(1000))]

    #[test]
    fn l1_events_are_the_same_however_the_bytes_are_cut(
        text in stream(),
        cuts in prop::collection::btree_set(0_usize..100, 0..6),
    ) {
        let expected = model_sse(&text);
        let bytes = text.as_bytes();
        let cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= bytes.len()).collect();
        prop_assert_eq!(&split_sse(LIMITS, &[bytes]), &expected);
        prop_assert_eq!(&split_sse(LIMITS, &pieces(bytes, &cuts)), &expected);
        prop_assert_eq!(&split_sse(LIMITS, &bytes.chunks(1).collect::<Vec<_>>()), &expected);
    }

    #[test]
    fn l1_faults_are_the_same_however_the_bytes_are_cut(
        text in stream(),
        breaks in prop::collection::vec((0_usize..100, any::<u8>()), 0..4),
        cuts in prop::collection::btree_set(0_usize..100, 0..6),
        max_event_bytes in 0_usize..12,
        replace in any::<bool>(),
    ) {
        let mut bytes = text.into_bytes();
        for (at, byte) in breaks {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        let limits = SseLimits { max_event_bytes, bad_utf8: if replace { BadUtf8::Replace } else { BadUtf8::Refuse } };
        let cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= bytes.len()).collect();
        let expected = split_sse(limits, &[&bytes]);
        for event in expected.iter().flatten() {
            prop_assert!(event.1.len() <= max_event_bytes);
        }
        prop_assert_eq!(&split_sse(limits, &pieces(&bytes, &cuts)), &expected);
        prop_assert_eq!(&split_sse(limits, &bytes.chunks(1).collect::<Vec<_>>()), &expected);
    }
}

#[test]
fn the_limit_is_exact_however_the_data_is_spelled() {
    let limits = SseLimits {
        max_event_bytes: 100,
        ..SseLimits::default()
    };
    for field in ["data:", "data: "] {
        for (first, second) in [(99, 0), (100, 0), (101, 0), (49, 49), (49, 50), (50, 50)] {
            let (length, mut text) = match second {
                0 => (first, format!("{field}{}\n", "x".repeat(first))),
                _ => (
                    first + 1 + second,
                    format!(
                        "{field}{}\n{field}{}\n",
                        "x".repeat(first),
                        "y".repeat(second)
                    ),
                ),
            };
            text.push_str("\nevent: after\ndata: z\n\n");
            for size in [1, 7, 1000] {
                let seen = split_sse(limits, &text.as_bytes().chunks(size).collect::<Vec<_>>());
                assert_eq!(seen.len(), 2, "{text:?}");
                match &seen[0] {
                    Ok(event) => assert!(event.1.len() == length && length <= 100),
                    Err(fault) => {
                        let kind = SseFaultKind::TooLarge { limit: 100 };
                        assert!(
                            length > 100 && *fault == SseFault { offset: 0, kind },
                            "{fault}"
                        );
                    }
                }
                assert_eq!(seen[1].as_ref().unwrap().0, "after");
            }
        }
    }
}

#[test]
fn an_event_of_many_mebibytes_passes_and_an_endless_comment_takes_no_memory() {
    let limits = SseLimits {
        max_event_bytes: 32 << 20,
        ..SseLimits::default()
    };
    let data = "x".repeat(24 << 20);
    let text = format!(":{data}\ndata: {data}\n\n");
    let seen = split_sse(limits, &text.as_bytes().chunks(65_536).collect::<Vec<_>>());
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].as_ref().unwrap().1.len(), data.len());
    let small = SseLimits {
        max_event_bytes: 10,
        ..SseLimits::default()
    };
    let text = format!(":{data}\ndata: small\n\n");
    let seen = split_sse(small, &text.as_bytes().chunks(65_536).collect::<Vec<_>>());
    assert_eq!(seen, [Ok((String::new(), "small".to_owned(), None, None))]);
}

#[test]
fn bytes_that_are_not_utf8_cost_their_own_event_only() {
    let bytes =
        b"data: a\n\ndata: \xff\xfe\n\ndata: b\n\nevent: \xff\ndata: c\n\n: \xff\ndata: d\n\n";
    let texts = |limits| -> Vec<Result<String, SseFaultKind>> {
        split_sse(limits, &[bytes])
            .into_iter()
            .map(|seen| seen.map(|event| event.1).map_err(|fault| fault.kind))
            .collect()
    };
    let ok = |text: &str| Ok(text.to_owned());
    let bad = || Err(SseFaultKind::NotUtf8);
    assert_eq!(texts(LIMITS), [ok("a"), bad(), ok("b"), bad(), ok("d")]);
    let replace = SseLimits {
        bad_utf8: BadUtf8::Replace,
        ..LIMITS
    };
    assert_eq!(
        texts(replace),
        [ok("a"), ok("\u{fffd}\u{fffd}"), ok("b"), ok("c"), ok("d")]
    );
    let faults: Vec<u64> = split_sse(LIMITS, &[bytes])
        .into_iter()
        .filter_map(|seen| seen.err().map(|f| f.offset))
        .collect();
    assert_eq!(faults, [9, 28]);
}

#[test]
fn a_whole_event_is_lent_from_the_chunk() {
    let bytes = b"data: one\n\nevent: e\r\ndata:two\r\n\r\ndata: three\n\n".to_vec();
    let mut decoder = SseDecoder::new(LIMITS);
    let mut chunk = &bytes[..];
    let mut count = 0;
    while let Some(event) = decoder.next(&mut chunk) {
        let data = event.unwrap().data;
        assert!(bytes.as_ptr_range().contains(&data.as_ptr()), "{data}");
        count += 1;
    }
    assert_eq!(count, 3);
}
