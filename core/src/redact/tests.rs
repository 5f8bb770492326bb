use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::json::{ScanRules, scan_value};

const KEY: &str = "sk-proj-abcdefghijklmnopqrstuv";

fn pieces(text: &str, cut: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = cut.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn text_in_pieces(secrets: &Secrets, text: &str, cut: usize) -> String {
    let mut stream = Stream::default();
    let mut out = String::new();
    for piece in pieces(text, cut) {
        stream.push(secrets, piece, &mut out);
        assert!(stream.held() <= secrets.longest(), "{text:?}");
    }
    stream.finish(secrets, &mut out);
    out
}

fn args_in_pieces(secrets: &Secrets, text: &str, cut: usize) -> String {
    let mut stream = ArgStream::default();
    let mut out = String::new();
    for piece in pieces(text, cut) {
        stream.push(secrets, piece, &mut out);
        // An escape of a pair is twelve bytes at most.
        assert!(stream.held() <= secrets.longest() + 12, "{text:?}");
    }
    stream.finish(secrets, &mut out);
    out
}

#[test]
fn sp_a07_sp_12_patterns_are_found_and_prose_is_left_alone() {
    let secrets = Secrets::default();
    for (text, clean) in [
        (KEY, "[REDACTED]"),
        ("a sk-abcdefghijklmnop.", "a [REDACTED]."),
        ("sk-abcdefghijklmno", "sk-abcdefghijklmno"),
        ("task-abcdefghijklmnopqrst", "task-abcdefghijklmnopqrst"),
        ("api_key=abcdefghijkl\n", "api_key=[REDACTED]\n"),
        ("API-KEY:'abcdefghijkl'", "API-KEY:'[REDACTED]'"),
        ("apiKey=\"abcdefghijkl\"", "apiKey=\"[REDACTED]\""),
        ("apikey=abcdefghijk", "apikey=abcdefghijk"),
        (
            "Authorization: Bearer abcdefghijklmnop",
            "Authorization: Bearer [REDACTED]",
        ),
        ("the bearer of bad news", "the bearer of bad news"),
        ("forbearer abcdefghijklmnopq", "forbearer abcdefghijklmnopq"),
        ("task-list api bear s a b", "task-list api bear s a b"),
        ("sk-sk-abcdefghijklmnopqrs é sk-", "[REDACTED] é sk-"),
        ("", ""),
    ] {
        assert_eq!(secrets.clean(text), clean, "{text:?}");
        assert_eq!(
            matches!(secrets.clean(text), Cow::Borrowed(_)),
            text == clean
        );
        assert_eq!(secrets.found_in(text), text != clean);
        for cut in 1..=text.len() + 1 {
            assert_eq!(text_in_pieces(&secrets, text, cut), clean, "{text:?} {cut}");
        }
    }
}

#[test]
fn sp_a07_literal_values_are_found_wherever_they_are_cut() {
    let secrets = Secrets::new(["hunter2hunter2", "hunter2hunter2!long", "short", "sk-€€€"]);
    for (text, clean) in [
        ("x hunter2hunter2 y", "x [REDACTED] y"),
        ("hunter2hunter2!long", "[REDACTED]"),
        ("hunter2hunter2!lon", "[REDACTED]!lon"),
        ("hunter2hunter", "hunter2hunter"),
        ("short", "short"),
        ("asssk-€€€s", "ass[REDACTED]s"),
        ("hunter2hunter2hunter2", "[REDACTED]hunter2"),
    ] {
        for cut in 1..=text.len() + 1 {
            assert_eq!(text_in_pieces(&secrets, text, cut), clean, "{text:?} {cut}");
        }
    }
    assert!(!alloc::format!("{secrets:?}").contains("hunter"));
    assert_eq!(Secrets::default().longest(), 23);
    assert_eq!(Secrets::new(["x".repeat(40).as_str()]).longest(), 40);
}

#[test]
fn sp_a07_sp_12_names_hide_whole_values_and_counters_stay() {
    for name in [
        "password",
        "PASSWD",
        "pwd",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "Authorization",
        "bearer",
        "token",
        "access_token",
        "my_refresh_token",
        "client-secret",
        "credentials",
        "secret",
        "idToken",
        "private key",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "promptTokens",
        "tokens",
        "completionTokens",
        "secretary",
        "author",
        "passwords",
        "",
        "keys",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn sp_a05_sp_a07_values_are_written_sorted_and_clean() {
    let secrets = Secrets::new(["hunter2hunter2"]);
    for (value, clean) in [
        (
            r#"{"b":1,"a":[true,null,"x"],"b":2}"#,
            r#"{"a":[true,null,"x"],"b":2}"#,
        ),
        (
            r#"{"n":12345678901234567890,"f":1.50}"#,
            r#"{"f":1.50,"n":12345678901234567890}"#,
        ),
        (
            r#"{"token":{"x":1},"t":"sk-abcdefghijklmnopq"}"#,
            r#"{"t":"[REDACTED]","token":"[REDACTED]"}"#,
        ),
        (
            r#"{"hunter2hunter2":"\u0068unter2hunter2"}"#,
            r#"{"[REDACTED]":"[REDACTED]"}"#,
        ),
        (r#""a\/\u00e9""#, "\"a/é\""),
        ("[]", "[]"),
        ("{}", "{}"),
        ("7", "7"),
    ] {
        let raw = scan_value(
            value.as_bytes(),
            &ScanRules {
                duplicates: crate::json::Duplicates::Pass,
                ..ScanRules::STRICT
            },
        )
        .unwrap();
        let mut out = Vec::new();
        let hidden = secrets.write_value(raw, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), clean);
        assert_eq!(hidden, clean.contains(MASK));
    }
}

#[test]
fn sp_a07_arguments_are_clean_however_they_are_cut_and_stay_json() {
    let secrets = Secrets::new(["hunter2hunter2", "a\"b\\c\nd-é😀"]);
    for (text, clean) in [
        (
            r#"{"a":"sk-abcdefghijklmnopq","b":2}"#,
            r#"{"a":"[REDACTED]","b":2}"#,
        ),
        (
            r#"{"a":"\u0073k-abcdefghijklmnop\u0071 x"}"#,
            r#"{"a":"[REDACTED] x"}"#,
        ),
        (
            r#"{"a":"x \"b\\c\nd \u00e9 \/ \ud83d\ude00"}"#,
            r#"{"a":"x \"b\\c\nd \u00e9 \/ \ud83d\ude00"}"#,
        ),
        (
            r#"{"a":"x a\"b\\c\nd-\u00e9\ud83d\ude00 y"}"#,
            r#"{"a":"x [REDACTED] y"}"#,
        ),
        (
            r#"{"a":"x a\"b\\c\u000Ad-é😀 y"}"#,
            r#"{"a":"x [REDACTED] y"}"#,
        ),
        (
            r#"{"password":"x\"y","b":[1]}"#,
            r#"{"password":"[REDACTED]","b":[1]}"#,
        ),
        (
            r#"{ "pass\u0077ord" : {"a":["}",1]} , "b" : 1 }"#,
            r#"{ "pass\u0077ord" : "[REDACTED]" , "b" : 1 }"#,
        ),
        (
            r#"{"token":12,"x":"token","secret":null}"#,
            r#"{"token":"[REDACTED]","x":"token","secret":"[REDACTED]"}"#,
        ),
        (
            r#"["token",{"token":[[]]},"y"]"#,
            r#"["token",{"token":"[REDACTED]"},"y"]"#,
        ),
        (r#"{"api_key":"a"#, r#"{"api_key":"[REDACTED]""#),
        (
            r#"{"a":"api_key=abcdefghijklm"#,
            r#"{"a":"api_key=[REDACTED]"#,
        ),
        ("sk-abcdefghijklmnopq not json", "[REDACTED] not json"),
        (
            r#"{"a":"\ud800 \ud800\u0041 \u12"}"#,
            r#"{"a":"\ud800 \ud800\u0041 \u12"}"#,
        ),
        (r#"{"a":"\ud83d\ude"#, r#"{"a":"\ud83d\ude"#),
        (r#"{"a":"\"#, r#"{"a":"\"#),
        (r#"{"hunter2hunter2":1}"#, r#"{"[REDACTED]":1}"#),
        ("", ""),
    ] {
        for cut in 1..=text.len() + 1 {
            assert_eq!(args_in_pieces(&secrets, text, cut), clean, "{text} {cut}");
        }
    }
    // Deeper than is remembered, patterns are still found.
    let deep = "[".repeat(1_000) + r#"{"token":"sk-abcdefghijklmnopq"}"#;
    let clean = args_in_pieces(&secrets, &deep, 7);
    assert!(
        clean.ends_with(r#"{"token":"[REDACTED]"}"#),
        "{}",
        clean.to_string()
    );
}
