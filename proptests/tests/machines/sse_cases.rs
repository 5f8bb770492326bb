//! The cases of the event stream layer, and those of the JSON layer that are
//! provider streams: bytes → events → members.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use turnwire::frame::{SseDecoder, SseEvent, SseLimits};
use turnwire::json::{Kind, Raw, ScanRules, scan_value};
use turnwire_proptests::cases::{self, Case};

fn events<T>(pieces: &[&[u8]], eof: bool, mut take: impl FnMut(SseEvent<'_>) -> T) -> Vec<T> {
    let mut decoder = SseDecoder::new(SseLimits::default());
    let mut seen = vec![];
    for mut piece in pieces.iter().copied() {
        while let Some(event) = decoder.next(&mut piece) {
            seen.push(take(event.unwrap()));
        }
    }
    if eof && let Some(event) = decoder.finish() {
        seen.push(take(event.unwrap()));
    }
    seen
}

/// What an OpenAI-style stream amounts to, as far as the cases here ask.
#[derive(Debug, Default, PartialEq)]
struct Reply {
    text: String,
    arguments: String,
    finish: Option<String>,
}

fn reply(pieces: &[&[u8]]) -> Reply {
    let mut reply = Reply::default();
    events(pieces, true, |event| {
        if event.data == "[DONE]" {
            return;
        }
        // An event that is no JSON is dropped.
        let Ok(chunk) = scan_value(event.data.as_bytes(), &ScanRules::LENIENT) else {
            return;
        };
        for choice in chunk
            .get("choices")
            .unwrap_or(Raw::NULL)
            .decode::<Vec<Raw<'_>>>()
            .unwrap()
        {
            let text =
                |raw: Option<Raw<'_>>| raw.and_then(Raw::string).unwrap_or_default().into_owned();
            let delta = choice.get("delta").unwrap();
            reply.text.push_str(&text(delta.get("content")));
            let calls = delta
                .get("tool_calls")
                .filter(|calls| calls.kind() == Kind::Array);
            for call in calls.map_or(vec![], |calls| calls.decode::<Vec<Raw<'_>>>().unwrap()) {
                reply.arguments.push_str(&text(
                    call.get("function")
                        .and_then(|function| function.get("arguments")),
                ));
            }
            reply.finish = reply.finish.take().or(choice
                .get("finish_reason")
                .and_then(Raw::string)
                .map(Into::into));
        }
    });
    reply
}

fn check_reply(case: &Case, name: &str) {
    let input = case.input(name).unwrap();
    let expected = &case.expected(name)["reply"];
    for cuts in case.cuttings(input.len()) {
        let reply = reply(&cases::pieces(input, &cuts));
        assert_eq!(
            expected["text"], reply.text,
            "{} {name} cut at {cuts:?}",
            case.id
        );
        assert_eq!(
            expected["finish"].as_str(),
            reply.finish.as_deref(),
            "{} {name} cut at {cuts:?}",
            case.id
        );
    }
}

#[test]
fn every_sse_case_holds_at_every_cut() {
    let all = cases::of_layer("sse").unwrap();
    assert_eq!(all.len(), 5);
    for case in all {
        for (name, input) in &case.inputs {
            let expected = case.expected(name);
            if expected.get("reply").is_some() {
                check_reply(&case, name);
                continue;
            }
            for cuts in case.cuttings(input.len()) {
                let seen = events(&cases::pieces(input, &cuts), case.eof, |event| {
                    let mut seen = serde_json::Map::new();
                    seen.insert("data".into(), event.data.into());
                    if !event.event.is_empty() {
                        seen.insert("event".into(), event.event.into());
                    }
                    Value::Object(seen)
                });
                assert_eq!(
                    expected["events"],
                    Value::Array(seen),
                    "{} cut at {cuts:?}",
                    case.id
                );
            }
        }
    }
}

#[test]
fn s04_id_and_retry_are_kept_and_give_no_event() {
    let case = cases::named("S04-heartbeats-and-strange-lines").unwrap();
    let mut decoder = SseDecoder::new(SseLimits::default());
    let mut chunk = case.input("").unwrap();
    let event = decoder.next(&mut chunk).unwrap().unwrap();
    assert_eq!((event.id, event.retry), (Some("7"), Some(3000)));
}

#[test]
fn s05_the_last_event_counts_without_a_blank_line_cut_anywhere() {
    let case = cases::named("S05-no-blank-line-at-the-end").unwrap();
    for (name, input) in &case.inputs {
        let whole = reply(&[input]);
        for cut in 0..input.len() {
            assert_eq!(reply(&cases::pieces(input, &[cut])), whole, "{name}");
        }
    }
}

#[test]
fn j01_the_rest_of_a_stream_with_half_a_pair_arrives() {
    let case = cases::named("J01-half-a-surrogate-pair").unwrap();
    let seen = reply(&[case.input("model_stream").unwrap()]);
    assert_eq!(seen.text, "A \u{fffd}\u{fffd} B");
    assert_eq!(seen.finish.as_deref(), Some("stop"));
}

#[test]
fn j05_big_integers_keep_their_digits() {
    let case = cases::named("J05-big-integers-keep-their-digits").unwrap();
    let seen = reply(&[case.input("").unwrap()]);
    assert_eq!(case.data()["calls"][0]["args_text"], seen.arguments);
    let arguments = scan_value(seen.arguments.as_bytes(), &ScanRules::STRICT).unwrap();
    assert_eq!(
        arguments.get("order").unwrap().as_str(),
        "2512292042121000001"
    );
    assert_eq!(
        arguments.get("big").unwrap().as_str(),
        "123456789012345678901234567890"
    );
}
