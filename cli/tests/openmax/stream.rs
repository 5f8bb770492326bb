//! Streams that are odd and right: what they amount to at the end of the program.

use crate::support::program::{Home, Setup, joined, of};
use crate::support::provider::{Provider, Reply};
use crate::support::replies::openai;

/// The text and the stop reason of one turn over this body, cut into pieces of so many bytes.
#[track_caller]
fn play(body: &str, size: usize) -> (String, String) {
    let home = Home::new();
    let reply = body
        .as_bytes()
        .chunks(size)
        .fold(Reply::stream(), Reply::bytes);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    let reason = of(&lines, "done")[0]["stop_reason"]
        .as_str()
        .unwrap()
        .to_owned();
    (joined(&lines, "message_done"), reason)
}

#[test]
fn s01_characters_may_be_cut_between_reads() {
    let body = openai::text("你好") + &openai::text("🦀é") + &openai::finish("stop") + openai::DONE;
    for size in [1, 3, 7, 64, 10_000] {
        assert_eq!(
            play(&body, size),
            ("你好🦀é".to_owned(), "stop".to_owned()),
            "pieces of {size}"
        );
    }
}

#[test]
fn s02_s03_s04_line_ends_heartbeats_and_spaces() {
    let body = openai::text("a").replace('\n', "\r\n")
        + ": PROVIDER PROCESSING\n\nid: 7\nretry: 3000\nx-heartbeat: 1\n\nevent: ping\n\n"
        + &openai::text("b").replace("data: ", "data:")
        + &openai::finish("stop")
        + openai::DONE;
    for size in [1, 5, 10_000] {
        assert_eq!(
            play(&body, size),
            ("ab".to_owned(), "stop".to_owned()),
            "pieces of {size}"
        );
    }
}

#[test]
fn s05_a_stream_without_its_last_blank_line() {
    let whole = openai::text("Hi") + openai::finish("stop").trim_end();
    assert_eq!(play(&whole, 10_000), ("Hi".to_owned(), "stop".to_owned()));
    assert_eq!(
        play(&(whole.clone() + "\n"), 10_000),
        ("Hi".to_owned(), "stop".to_owned())
    );
    let cut = &whole[..whole.len() - 12];
    assert_eq!(play(cut, 10_000), ("Hi".to_owned(), "truncated".to_owned()));
}

#[test]
fn d01_d02_chunks_without_choices_and_usage_after_the_finish() {
    let body = "data: {\"id\":\"\",\"choices\":[],\"prompt_filter_results\":[]}\n\n".to_owned()
        + &openai::text("Hel")
        + "data: {\"id\":\"\",\"choices\":[{\"index\":0,\"finish_reason\":null,\"content_filter_offsets\":{}}]}\n\n"
        + &openai::text("lo")
        + &openai::finish("stop")
        + &openai::usage(9, 2, 0)
        + openai::DONE;
    assert_eq!(play(&body, 10_000), ("Hello".to_owned(), "stop".to_owned()));
}
