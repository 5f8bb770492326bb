//! Secrets stay out however a text is cut.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire::json::{ScanRules, scan_value};
use turnwire::redact::{ArgStream, MASK, Secrets, Stream};

/// A text in pieces: cut at these places, as far as they are borders of characters.
fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut borders: Vec<usize> = cuts
        .iter()
        .map(|cut| cut % (text.len() + 1))
        .filter(|at| text.is_char_boundary(*at))
        .chain([0, text.len()])
        .collect();
    borders.sort_unstable();
    borders
        .windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect()
}

fn as_text(secrets: &Secrets, text: &str, cuts: &[usize]) -> String {
    let (mut stream, mut out) = (Stream::default(), String::new());
    for piece in pieces(text, cuts) {
        stream.push(secrets, piece, &mut out);
        assert!(stream.held() <= secrets.longest());
    }
    stream.finish(secrets, &mut out);
    out
}

fn as_args(secrets: &Secrets, text: &str, cuts: &[usize]) -> String {
    let (mut stream, mut out) = (ArgStream::default(), String::new());
    for piece in pieces(text, cuts) {
        stream.push(secrets, piece, &mut out);
        assert!(stream.held() <= secrets.longest() + 12);
    }
    stream.finish(secrets, &mut out);
    out
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "sk-[A-Za-z0-9_-]{16,40}",
        "(api_key|api-key|APIKEY)[=:]\"?[A-Za-z0-9_-]{12,30}",
        "[Bb]earer [A-Za-z0-9._~+/=-]{16,40}",
        Just("hunter2-hunter2".to_owned()),
        Just("pass\"wörd\\\n!!".to_owned()),
    ]
}

/// What has to be gone of a secret: all of it, or what stands behind the words that stay.
fn hidden(secret: &str) -> &str {
    let lower = secret.to_ascii_lowercase();
    let behind = |at: usize| secret[at..].trim_start_matches('"');
    if lower.starts_with("bearer ") {
        behind(7)
    } else if lower.starts_with("api") {
        behind(lower.find(['=', ':']).unwrap() + 1)
    } else {
        secret
    }
}

fn secrets() -> Secrets {
    Secrets::new(["hunter2-hunter2", "pass\"wörd\\\n!!"])
}

fn prose() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-zA-Z.,:;=!?\"\\\\é€-]{0,30}",
        Just("task-list, the bearer of bad news: api and key".to_owned()),
        any::<String>(),
        // Beginnings of secrets that aren't any.
        "(s|sk|sk-|sk-abc|api_k|bearer |hunter2-hunter| ){0,6}",
    ]
}

proptest! {
    #[test]
    fn sp_a07_sp_12_no_cut_brings_a_secret_back(before in prose(), secret in secret(), after in prose(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let secrets = secrets();
        let text = format!("{before} {secret} {after}");
        let whole = as_text(&secrets, &text, &[]);
        prop_assert!(!whole.contains(hidden(&secret)), "{whole}");
        prop_assert!(whole.contains(MASK));
        prop_assert_eq!(&as_text(&secrets, &text, &cuts), &whole);
        prop_assert_eq!(secrets.clean(&text), whole);
        prop_assert!(secrets.found_in(&text));
    }

    /// A text without a secret comes out as it went in, whatever its cuts, and so does what was cleaned once.
    #[test]
    fn sp_a07_prose_is_left_alone(text in prose(), cuts in prop::collection::vec(any::<usize>(), 0..12)) {
        let secrets = secrets();
        let clean = secrets.clean(&text).into_owned();
        if !secrets.found_in(&text) {
            prop_assert_eq!(&clean, &text);
        }
        prop_assert_eq!(as_text(&secrets, &text, &cuts), clean);
    }

    /// Arguments with secrets anywhere stay the same JSON but for what is hidden, and the joined text doesn't hold them in
    /// any spelling.
    #[test]
    fn sp_a07_sp_12_arguments_stay_json(texts in prop::collection::vec(prop_oneof![prose(), secret()], 1..5), name in "[a-z]{1,4}|password|x-api-key|token", cuts in prop::collection::vec(any::<usize>(), 0..20), ascii in any::<bool>()) {
        let secrets = secrets();
        let value = json!({ name.clone(): texts, "more": {"deep": [texts.join(" ")], name: 7} });
        let mut text = value.to_string();
        if ascii {
            // Every character that isn't ASCII as an escape, and a letter that every secret may have.
            text = text.chars().map(|char| if char.is_ascii() && char != 'k' { char.to_string() } else {
                let mut units = [0; 2];
                char.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            }).collect();
        }
        let whole = as_args(&secrets, &text, &[]);
        prop_assert_eq!(&as_args(&secrets, &text, &cuts), &whole);
        let clean: Value = serde_json::from_str(&whole).unwrap();
        // The same as if the whole value had been cleaned.
        let mut out = Vec::new();
        secrets.write_value(scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap(), &mut out);
        prop_assert_eq!(&clean, &serde_json::from_slice::<Value>(&out).unwrap());
    }

    /// Text that isn't JSON is given on, but for its secrets; nothing is lost or made up.
    #[test]
    fn sp_a07_l9_any_text_is_taken(text in "[\\[\\]{}\",:\\\\u0-9a-fs k-]{0,40}|.{0,20}", cuts in prop::collection::vec(any::<usize>(), 0..20)) {
        let secrets = secrets();
        let whole = as_args(&secrets, &text, &[]);
        prop_assert_eq!(&as_args(&secrets, &text, &cuts), &whole);
        if !whole.contains(MASK) {
            prop_assert_eq!(whole, text);
        }
    }
}
