//! Bad input leaves the session unharmed, whatever it is.

use serde_json::json;

use crate::support::program::{Ended, Home, Setup, joined, of, peak_memory};
use crate::support::provider::Provider;
use crate::support::replies::openai;

/// Gives the program these bytes and the end of input, with an answer for each prompt it may make of them.
#[track_caller]
fn feed(input: impl AsRef<[u8]>, answers: usize) -> (Ended, Provider) {
    let home = Home::new();
    let provider = Provider::start((0..answers).map(|_| openai::says("Fine.")));
    let mut program = Setup::openai(&home, &provider).start();
    program.raw(input);
    program.close_input();
    (program.wait(), provider)
}

/// The text of the last prompt of a request.
fn prompt(provider: &Provider, number: usize) -> String {
    let body = provider.request(number).json();
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user")
        .unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn f03_crlf_blank_lines_and_spaces_mean_nothing() {
    let input =
        "\r\n{\"cmd\":\"user\",\"text\":\"a\\r\\nb\"}\r\n\r\n  \t\r\n  {\"cmd\":\"quit\"} \r\n";
    let (ended, provider) = feed(input, 1);
    assert!(ended.of("protocol_error").is_empty());
    assert_eq!(
        (prompt(&provider, 1).as_str(), ended.code),
        ("a\r\nb", Some(0))
    );
}

#[test]
fn f04_om_10_a_line_that_is_too_long_is_one_error_and_reading_goes_on() {
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.see_type("hello");
    let before = peak_memory(program.pid());
    program.raw("{\"cmd\":\"user\",\"text\":\"");
    // Eight times the limit: what is skipped isn't kept.
    for _ in 0..64 {
        program.raw("x".repeat(1024 * 1024));
    }
    program.raw("\",\"cmd\":\"quit\"}\n{\"cmd\":\"user\",\"text\":\"after\"}\n");
    let error = program.see_type("protocol_error");
    assert!(
        error["message"].as_str().unwrap().contains("8388608"),
        "{error}"
    );
    program.see(&json!({ "type": "done", "stop_reason": "stop" }));
    if let (Some(before), Some(after)) = (before, peak_memory(program.pid())) {
        assert!(
            after - before < 32 * 1024,
            "{before} KiB grew to {after} KiB"
        );
    }
    program.close_input();
    let ended = program.wait();
    assert_eq!(
        (ended.of("protocol_error").len(), ended.of("done").len()),
        (1, 1)
    );
    assert_eq!(prompt(&provider, 1), "after");
}

#[test]
fn f04_om_10_the_limit_is_exact() {
    let frame = "{\"cmd\":\"user\",\"text\":\"\",\"pad\":\"\"}".len();
    let line = |length: usize| {
        let pad = "x".repeat(length - frame);
        format!("{{\"cmd\":\"user\",\"text\":\"\",\"pad\":\"{pad}\"}}\n")
    };
    let (ended, _) = feed(line(8 * 1024 * 1024) + &line(8 * 1024 * 1024 + 1), 0);
    // The first is a command, and refused for its blank text; the second never was one.
    assert_eq!(
        ended.types(),
        ["hello", "protocol_error", "done", "protocol_error"]
    );
}

#[test]
fn f05_there_is_no_smaller_hidden_limit() {
    for size in [65_536, 262_145, 1_048_577] {
        let text = "a".repeat(size);
        let home = Home::new();
        let provider = Provider::start([openai::says("Fine.")]);
        let mut program = Setup::openai(&home, &provider)
            .args(&["--window", "2000000"])
            .start();
        program.turn(&text);
        assert_eq!(prompt(&provider, 1), text);
    }
}

#[test]
fn f06_om_10_lines_that_are_not_utf8_are_refused_one_by_one() {
    let mut input = Vec::new();
    input.extend_from_slice(b"{\"cmd\":\"user\",\"text\":\"\xff\xfe\"}\n");
    input.extend_from_slice(b"{\"cmd\":\"user\",\"text\":\"cut \xe4\xb8\"}\n");
    input.extend_from_slice(b"\x80 {\"cmd\":\"quit\"}\n");
    input.extend_from_slice("{\"cmd\":\"user\",\"text\":\"中 ok\"}\n".as_bytes());
    let (ended, provider) = feed(input, 1);
    assert_eq!(
        (ended.of("protocol_error").len(), ended.of("done").len()),
        (3, 1)
    );
    for error in ended.of("protocol_error") {
        assert!(
            error["message"].as_str().unwrap().contains("UTF-8"),
            "{error}"
        );
    }
    assert_eq!(prompt(&provider, 1), "中 ok");
}

#[test]
fn f01_line_separators_are_data_and_j01_half_a_surrogate_pair_harms_nobody() {
    let (ended, provider) = feed(
        "{\"cmd\":\"user\",\"text\":\"one\u{2028}two\u{2029}three\"}\n",
        1,
    );
    assert!(ended.of("protocol_error").is_empty());
    assert_eq!(prompt(&provider, 1), "one\u{2028}two\u{2029}three");

    let home = Home::new();
    let provider = Provider::start([openai::says("Fine."), openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.raw("{\"cmd\":\"user\",\"text\":\"cut \\ud83d here\"}\n");
    let first = program.see_answer();
    if first["type"] != "protocol_error" {
        program.see_type("done");
    }
    program.raw("{\"cmd\":\"user\",\"text\":\"whole \\ud83e\\udd80\"}\n");
    program.see_type("done");
    let last = provider.requests().len();
    assert_eq!(prompt(&provider, last), "whole 🦀");
}

#[test]
fn j01_a_pair_that_the_model_cut_in_two_harms_nobody() {
    let home = Home::new();
    let chunk = |text: &str, finish: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let reply = crate::support::provider::Reply::stream()
        .bytes(chunk("A \\ud83e", "null"))
        .bytes(chunk("\\udd80 B", "\"stop\""))
        .bytes(openai::DONE);
    let provider = Provider::start([reply]);
    let mut program = Setup::openai(&home, &provider).start();
    let lines = program.turn("go");
    let text = joined(&lines, "token");
    assert!(text.starts_with("A ") && text.ends_with(" B"), "{text:?}");
    assert_eq!(of(&lines, "done")[0]["stop_reason"], "stop");
}

#[test]
fn j02_nan_and_infinity_are_no_json() {
    let input = "{\"cmd\":\"user\",\"text\":\"a\",\"x\":NaN}\n{\"cmd\":\"user\",\"text\":\"b\",\"x\":-Infinity}\n";
    let (ended, provider) = feed(input, 0);
    assert_eq!(ended.types(), ["hello", "protocol_error", "protocol_error"]);
    assert!(provider.requests().is_empty());
    // A number that no double holds, in a member that is ignored, is still a number.
    let (ended, provider) = feed("{\"cmd\":\"user\",\"text\":\"c\",\"x\":1e999}\n", 1);
    assert_eq!(
        ended.of("protocol_error").len() + provider.requests().len(),
        1
    );
}

#[test]
fn j04_a_hundred_thousand_brackets() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine."), openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    program.raw(format!(
        "{{\"cmd\":\"user\",\"text\":\"x\",\"extra\":{deep}}}\n"
    ));
    if program.see_answer()["type"] != "protocol_error" {
        program.see_type("done");
    }
    program.turn("y");
    // And in the arguments of a call.
    let call = openai::call_text(0, "c1", "read_file", &format!("{{\"path\":{deep}}}"));
    provider.then(
        crate::support::provider::Reply::stream()
            .bytes(call)
            .bytes(openai::finish("tool_calls")),
    );
    provider.then(openai::says("Fine."));
    while provider.left() > 2 {
        program.turn("spare");
    }
    let lines = program.turn("z");
    assert_eq!(of(&lines, "done").len(), 1);
    program.close_input();
    assert_eq!(program.wait().code, Some(0));
}

#[test]
fn om_06_what_is_no_command_is_one_protocol_error_each() {
    let bad = [
        "{\"cmd\":\"explode\"}",
        "{}",
        "{\"text\":\"no cmd\"}",
        "{\"cmd\":\"user\"}",
        "{\"cmd\":\"user\",\"text\":7}",
        "{\"cmd\":\"user\",\"text\":null}",
        "{\"cmd\":\"approve\",\"approval_id\":\"x\"}",
        "{\"cmd\":\"approve\",\"approval_id\":\"x\",\"approved\":\"yes\"}",
        "{\"cmd\":\"user\",\"text\":\"a\",\"text\":\"b\"}",
        "{\"cmd\":\"user\",\"te\\u0078t\":\"a\",\"text\":\"b\"}",
        "[\"cancel\"]",
        "\"cancel\"",
        "7",
        "null",
        "{\"cmd\":\"user\",\"text\":\"a\"} x",
        "{\"cmd\":\"user\",\"text\":\"a\"",
        "\u{feff}{\"cmd\":\"quit\"}",
        "{\"cmd\":\"user\",\"text\":\"a\u{0}\"}",
        "cancel",
    ];
    let (ended, provider) = feed(bad.join("\n") + "\n", 0);
    assert_eq!(
        ended.types(),
        [&["hello"][..], &["protocol_error"; 19]].concat()
    );
    assert!(provider.requests().is_empty());
    assert_eq!(ended.code, Some(0));
}

#[test]
fn om_06_extra_fields_and_any_order_are_fine() {
    let (ended, provider) = feed(
        "{\"later\":{\"a\":[1]},\"text\":\"hi\",\"cmd\":\"user\"}\n",
        1,
    );
    assert!(ended.of("protocol_error").is_empty());
    assert_eq!(prompt(&provider, 1), "hi");
}

#[test]
fn f02_a_last_line_without_a_newline_counts_and_any_cut_is_the_same() {
    let input = "{\"cmd\":\"user\",\"text\":\"Grüße 🦀\"}";
    let (ended, provider) = feed(input, 1);
    assert_eq!(
        (ended.of("done").len(), prompt(&provider, 1).as_str()),
        (1, "Grüße 🦀")
    );
    // Byte by byte, each in a write of its own.
    let home = Home::new();
    let provider = Provider::start([openai::says("Fine.")]);
    let mut program = Setup::openai(&home, &provider).start();
    for byte in input.as_bytes() {
        program.raw([*byte]);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    program.close_input();
    let ended = program.wait();
    assert_eq!(
        (ended.of("done").len(), prompt(&provider, 1).as_str()),
        (1, "Grüße 🦀")
    );
}
