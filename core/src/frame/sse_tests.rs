//! Tables of streams of events: every stream is cut at each two places.

use alloc::string::{String, ToString};
use alloc::{format, vec, vec::Vec};

use super::{BadUtf8, SseDecoder, SseFault, SseFaultKind, SseLimits};

const LIMITS: SseLimits = SseLimits {
    max_event_bytes: 8,
    bad_utf8: BadUtf8::Refuse,
};

/// `type|data|id|retry` of each event, or the offset of its fault.
fn events(chunks: &[&[u8]], limits: SseLimits) -> Vec<String> {
    let mut decoder = SseDecoder::new(limits);
    let word = |event: Result<super::SseEvent<'_>, SseFault>| match event {
        Ok(event) => format!(
            "{}|{}|{}|{}",
            event.event,
            event.data,
            event.id.unwrap_or("-"),
            event.retry.map_or("-".into(), |retry| retry.to_string())
        ),
        Err(fault) => format!("fault at {}", fault.offset),
    };
    let mut found = vec![];
    for mut chunk in chunks.iter().copied() {
        while let Some(event) = decoder.next(&mut chunk) {
            found.push(word(event));
        }
    }
    found.extend(decoder.finish().map(word));
    assert!(decoder.finish().is_none());
    found
}

/// The same events however the stream is cut.
fn check(stream: &str, wanted: &[&str]) {
    let bytes = stream.as_bytes();
    for second in 0..=bytes.len() {
        for first in 0..=second {
            let (start, rest) = bytes.split_at(second);
            let (start, middle) = start.split_at(first);
            let found = events(&[start, middle, rest], LIMITS);
            assert_eq!(found, wanted, "{stream:?} cut at {first} and {second}");
        }
    }
}

#[test]
fn events_are_those_of_the_standard() {
    for (stream, wanted) in [
        (
            "data: a\n\ndata: b\r\n\r\ndata:c\r\r",
            &["|a|-|-", "|b|-|-", "|c|-|-"][..],
        ),
        ("data: a\ndata\ndata:  b\n\n", &["|a\n\n b|-|-"]),
        ("event: x\ndata: a\nevent: y\n\n", &["y|a|-|-"]),
        ("event: x\n\ndata: a\n\n", &["|a|-|-"]),
        ("id: 1\n\ndata: a\n\n", &["|a|1|-"]),
        (
            "id: 1\ndata: a\n\nid: \0\ndata: b\n\n",
            &["|a|1|-", "|b|1|-"],
        ),
        (
            "retry: 12\ndata: a\n\nretry: x\nretry:\ndata: b\n\n",
            &["|a|-|12", "|b|-|12"],
        ),
        (": note\ndata: a\n:\n\n:end", &["|a|-|-"]),
        ("other: x\ndata: a\n\n", &["|a|-|-"]),
        // No blank line at the end.
        ("data: a", &["|a|-|-"]),
        ("data: a\nevent: x", &["x|a|-|-"]),
        ("event: x", &[]),
        ("", &[]),
    ] {
        check(stream, wanted);
    }
}

#[test]
fn a_byte_order_mark_is_one_at_the_start_alone() {
    check("\u{feff}data: a\n\ndata: b\n\n", &["|a|-|-", "|b|-|-"]);
    check("\u{feff}\u{feff}data: a\n\n", &[]);
    check("data: a\n\n\u{feff}data: b\n\n", &["|a|-|-"]);
    // What only begins as one is the beginning of a name.
    for start in [&b"\xEF"[..], b"\xEF\xBB", b"\xEF\xBBx", b"\xBB\xBF"] {
        let stream = [start, b"data: a\n\n"].concat();
        for cut in 0..stream.len() {
            let found = events(&[&stream[..cut], &stream[cut..]], LIMITS);
            assert_eq!(found, [""; 0], "{start:?} {cut}");
        }
    }
}

#[test]
fn tw_10_an_event_over_the_limit_is_a_fault_and_the_next_one_is_read() {
    check(
        "data: 12345678\n\ndata: a\n\n",
        &["|12345678|-|-", "|a|-|-"],
    );
    check("data: 123456789\n\ndata: a\n\n", &["fault at 0", "|a|-|-"]);
    check("data: 1234\ndata: 567\n\n", &["|1234\n567|-|-"]);
    check(
        ": x\n\ndata: 1234\ndata: 5678\ndata: 9\n\ndata: a\n\n",
        &["fault at 5", "|a|-|-"],
    );
    check("data: 1234\ndata: 56789", &["fault at 0"]);
}

#[test]
fn an_event_that_is_not_utf8_is_a_fault_or_mended() {
    let stream = b"data: a\n\ndata: \xFF\n\ndata: b\n\n";
    assert_eq!(
        events(&[stream], LIMITS),
        ["|a|-|-", "fault at 9", "|b|-|-"]
    );
    let mended = SseLimits {
        bad_utf8: BadUtf8::Replace,
        ..LIMITS
    };
    assert_eq!(
        events(&[stream], mended),
        ["|a|-|-", "|\u{fffd}|-|-", "|b|-|-"]
    );
    for kind in [SseFaultKind::NotUtf8, SseFaultKind::TooLarge { limit: 8 }] {
        assert!(!SseFault { offset: 9, kind }.to_string().is_empty());
    }
}

#[test]
fn the_last_id_is_known_beside_its_event() {
    let mut decoder = SseDecoder::new(LIMITS);
    assert_eq!((decoder.last_event_id(), decoder.retry_ms()), (None, None));
    let mut chunk = &b"id: 7\nretry: 5\n\n"[..];
    assert!(decoder.next(&mut chunk).is_none());
    assert_eq!(
        (decoder.last_event_id(), decoder.retry_ms()),
        (Some("7"), Some(5))
    );
}
