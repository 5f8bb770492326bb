//! Lines and server-sent events, against the slow and plain way of finding them.

use turnwire::frame::{
    BadUtf8, LineRules, LineSplitter, OverLong, Place, SplitKind, SseDecoder, SseEvent, SseFault,
    SseLimits, Tail,
};

use super::{must, shown};
use crate::{
    bytes::Source,
    laws::{Broken, LineSaid},
};

/// What a splitter of lines gave.
pub type LineSeen = LineSaid;

/// What a decoder of events gave: event, data, id, retry.
pub type SseSeen = Result<(String, String, Option<String>, Option<u64>), SseFault>;

/// Pieces of `size` bytes, which isn't 0.
fn cut(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    bytes.chunks(size.max(1)).collect()
}

/// The lines of a stream that comes in pieces.
pub fn split_lines(rules: LineRules, pieces: &[&[u8]]) -> Vec<LineSeen> {
    let own = |split: turnwire::frame::Split<'_>| match split.what {
        SplitKind::Line(line) => LineSaid::Line(split.place, line.to_vec()),
        SplitKind::TooLong { bytes, .. } => LineSaid::TooLong(split.place, bytes),
        SplitKind::Tail(line) => LineSaid::Tail(split.place, line.to_vec()),
    };
    let mut splitter = LineSplitter::new(rules);
    let mut seen = Vec::new();
    for mut piece in pieces.iter().copied() {
        while let Some(split) = splitter.next(&mut piece) {
            seen.push(own(split));
        }
    }
    seen.extend(splitter.finish().map(own));
    seen.extend(splitter.finish().map(own));
    seen
}

/// The same, the slow and plain way, over the whole stream.
pub fn model_lines(rules: LineRules, bytes: &[u8]) -> Vec<LineSeen> {
    let mut seen = Vec::new();
    let mut offset = 0;
    let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let ended = lines.len();
    lines.extend((!last.is_empty()).then_some(last));
    for (index, whole) in lines.into_iter().enumerate() {
        let line = whole.strip_suffix(b"\r").unwrap_or(whole);
        let fatal = rules.over == OverLong::Fatal && line.len() > rules.max_bytes;
        let place = Place {
            line: index as u64 + 1,
            offset,
        };
        seen.push(if fatal {
            LineSaid::TooLong(place, rules.max_bytes as u64 + 1)
        } else if line.len() > rules.max_bytes {
            LineSaid::TooLong(place, line.len() as u64)
        } else if index == ended && rules.tail == Tail::Refuse {
            LineSaid::Tail(place, line.to_vec())
        } else {
            LineSaid::Line(place, line.to_vec())
        });
        if fatal {
            break;
        }
        offset += whole.len() as u64 + 1;
    }
    seen
}

/// Every line of any stream is found as the plain way finds it, however the bytes are cut.
///
/// # Errors
/// [`Broken`] with a cut whose lines differ.
pub fn lines(data: &[u8]) -> Result<(), Broken> {
    let mut source = Source::new(data.get(..2).unwrap_or_default());
    let size = 1 + source.below(16);
    let limit = source.byte();
    let rules = LineRules {
        max_bytes: [1 << 20, 0, 1, 2, 5, 9, 16, 30][usize::from(limit % 8)],
        over: [OverLong::Skip, OverLong::Fatal][usize::from(limit / 8 % 2)],
        tail: [Tail::Deliver, Tail::Refuse][usize::from(limit / 16 % 2)],
    };
    let bytes = data.get(2..).unwrap_or_default();
    let expected = model_lines(rules, bytes);
    let (head, tail) = bytes.split_at(bytes.len() / size);
    for pieces in [
        vec![bytes],
        cut(bytes, size),
        cut(bytes, 1),
        vec![head, b"", tail],
    ] {
        let seen = split_lines(rules, &pieces);
        must(seen == expected, "L1", || {
            format!(
                "{rules:?}, {} pieces: {seen:?} instead of {expected:?}",
                pieces.len()
            )
        })?;
    }
    Ok(())
}

/// The events of a stream that comes in pieces.
pub fn split_sse(limits: SseLimits, pieces: &[&[u8]]) -> Vec<SseSeen> {
    let own = |event: Result<SseEvent<'_>, SseFault>| {
        event.map(|event| {
            (
                event.event.to_owned(),
                event.data.to_owned(),
                event.id.map(Into::into),
                event.retry,
            )
        })
    };
    let mut decoder = SseDecoder::new(limits);
    let mut seen = Vec::new();
    for mut piece in pieces.iter().copied() {
        while let Some(event) = decoder.next(&mut piece) {
            seen.push(own(event));
        }
    }
    seen.extend(decoder.finish().map(own));
    seen.extend(decoder.finish().map(own));
    seen
}

/// The standard's algorithm, the slow and plain way, over the whole stream, which is UTF-8 and within the limits.
pub fn model_sse(text: &str) -> Vec<SseSeen> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut seen = Vec::new();
    let (mut event, mut data, mut id, mut retry) = (String::new(), None::<String>, None, None);
    // One blank line more: what stands at the end counts.
    for line in text.split('\n').chain([""]) {
        if line.is_empty() {
            let event = std::mem::take(&mut event);
            if let Some(data) = data.take() {
                seen.push(Ok((event, data, id.clone(), retry)));
            }
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => event = value.to_owned(),
            "data" => {
                data = Some(match data {
                    Some(data) => data + "\n" + value,
                    None => value.to_owned(),
                });
            }
            "id" if !value.contains('\0') => id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                retry = value.parse().ok().or(retry);
            }
            _ => {}
        }
    }
    seen
}

/// Every event of a legal stream is the one that the standard's algorithm finds, and of any other stream the same
/// events and faults are found however its bytes are cut, none larger than the limit.
///
/// # Errors
/// [`Broken`] with a cut whose events differ.
pub fn sse(data: &[u8]) -> Result<(), Broken> {
    let mut source = Source::new(data.get(..2).unwrap_or_default());
    let size = 1 + source.below(16);
    let choice = source.byte();
    let limits = SseLimits {
        max_event_bytes: [1 << 20, 0, 1, 4, 10, 40, 200, 1000][usize::from(choice % 8)],
        bad_utf8: [BadUtf8::Refuse, BadUtf8::Replace][usize::from(choice / 8 % 2)],
    };
    let bytes = data.get(2..).unwrap_or_default();
    let whole = split_sse(limits, &[bytes]);
    for event in whole.iter().flatten() {
        must(event.1.len() <= limits.max_event_bytes, "L9", || {
            format!("an event of {} bytes under {limits:?}", event.1.len())
        })?;
    }
    let (head, tail) = bytes.split_at(bytes.len() / size);
    for pieces in [cut(bytes, size), cut(bytes, 1), vec![head, b"", tail]] {
        let seen = split_sse(limits, &pieces);
        must(seen == whole, "L1", || {
            format!(
                "{limits:?}, {:?} in {} pieces: {seen:?} instead of {whole:?}",
                shown(bytes),
                pieces.len()
            )
        })?;
    }
    if let (Ok(text), true) = (std::str::from_utf8(bytes), bytes.len() < 1 << 20) {
        let limits = SseLimits {
            max_event_bytes: 1 << 20,
            bad_utf8: BadUtf8::Refuse,
        };
        let (seen, expected) = (split_sse(limits, &[bytes]), model_sse(text));
        must(seen == expected, "standard", || {
            format!("{text:?}: {seen:?} instead of {expected:?}")
        })?;
    }
    Ok(())
}
