//! Tests of the scan, of decoding and of the writer together.

use super::*;
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use serde::Deserialize;

fn fault(text: &str) -> JsonFault {
    scan(text.as_bytes(), &ScanRules::STRICT, &mut Members::new())
        .map(|_| ())
        .unwrap_err()
}

fn duplicate(text: &str) -> Option<(usize, String, String)> {
    match scan(text.as_bytes(), &ScanRules::STRICT, &mut Members::new()) {
        Ok(_) => None,
        Err(JsonFault {
            at,
            path,
            kind: JsonFaultKind::Duplicate { name },
        }) => Some((at, path, name)),
        Err(fault) => panic!("{fault}"),
    }
}

#[test]
fn members_are_found_by_name_in_any_order_and_spelling() {
    let mut members = Members::new();
    let line = br#" { "b" : [1, {"x":2}] ,"\u0061":"\n", "c":-1.5e3,"d":null } "#;
    let object = scan(line, &ScanRules::STRICT, &mut members).unwrap();
    assert_eq!(object.len(), 4);
    assert_eq!(object.get("a").unwrap().string().unwrap(), "\n");
    assert_eq!(object.get("b").unwrap().as_str(), r#"[1, {"x":2}]"#);
    assert_eq!(object.get("c").unwrap().as_str(), "-1.5e3");
    assert!(object.get("d").unwrap().is_null());
    assert_eq!(object.string("a").unwrap(), "\n");
    assert_eq!((object.string("c"), object.string("x")), (None, None));
    assert!(object.get("x").is_none());
    let names: Vec<&str> = object.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "a", "c", "d"]);
}

#[test]
fn j03_a_name_twice_is_refused_at_any_depth_and_in_any_spelling() {
    assert_eq!(duplicate(r#"{"a":1,"b":2}"#), None);
    assert_eq!(
        duplicate(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}"#),
        None
    );
    assert_eq!(
        duplicate(r#"{"a":1,"a":1}"#),
        Some((7, "".into(), "a".into()))
    );
    assert_eq!(
        duplicate(r#"{"a":1,"\u0061":1}"#),
        Some((7, "".into(), "a".into()))
    );
    assert_eq!(
        duplicate(r#"{"\u0061":1,"a":1}"#),
        Some((12, "".into(), "a".into()))
    );
    assert_eq!(
        duplicate(r#"{"x":[0,{"k":{"é":1,"\u00e9":1}}]}"#),
        Some((21, "x[1].k".into(), "é".into()))
    );
    assert_eq!(
        duplicate(r#"{"x":{"\ud83e\udd80":1,"🦀":1}}"#),
        Some((23, "x".into(), "🦀".into()))
    );
}

#[test]
fn many_members_are_checked_as_strictly_as_few() {
    for count in [15, 16, 17, 18, 100] {
        let mut members: Vec<String> = (0..count).map(|n| format!("\"m{n}\":{n}")).collect();
        assert_eq!(
            duplicate(&format!("{{{}}}", members.join(","))),
            None,
            "{count}"
        );
        assert_eq!(
            duplicate(&format!("{{\"in\":{{{}}}}}", members.join(","))),
            None,
            "{count}"
        );
        let last = count - 1;
        for first in [0, 7, count - 2] {
            members[last] = format!("\"\\u006d{first}\":0");
            let text = format!("{{{}}}", members.join(","));
            let at = text.find("\"\\u006d").unwrap();
            assert_eq!(duplicate(&text), Some((at, "".into(), format!("m{first}"))));
            let (at, path, _) = duplicate(&format!("{{\"in\":{text}}}")).unwrap();
            assert_eq!((at > 6, path.as_str()), (true, "in"));
        }
    }
}

#[test]
fn j04_depth_has_an_exact_limit_and_takes_no_stack() {
    let nested = |depth: usize| {
        format!(
            "{{\"a\":{}{}}}",
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        )
    };
    let rules = ScanRules {
        max_depth: 10,
        ..ScanRules::STRICT
    };
    for (depth, passes) in [(9, true), (10, true), (11, false), (100_000, false)] {
        let text = nested(depth);
        let result = scan(text.as_bytes(), &rules, &mut Members::new()).map(|_| ());
        assert_eq!(result.is_ok(), passes, "{depth}");
        if let Err(fault) = result {
            assert_eq!(fault.kind, JsonFaultKind::TooDeep { limit: 10 });
            assert_eq!(fault.at, 14);
        }
        let value = &text[5..text.len() - 1];
        assert_eq!(
            scan_value(value.as_bytes(), &rules).is_ok(),
            depth - 1 <= 10,
            "{depth}"
        );
    }
    let unlimited = ScanRules {
        max_depth: usize::MAX,
        ..ScanRules::STRICT
    };
    assert!(scan(nested(100_000).as_bytes(), &unlimited, &mut Members::new()).is_ok());
    let none = ScanRules {
        max_depth: 0,
        ..ScanRules::STRICT
    };
    assert!(scan(b"{}", &none, &mut Members::new()).is_err());
}

#[test]
fn j01_half_a_surrogate_pair_follows_the_rule() {
    for half in [
        r#"{"t":"a\ud83d b"}"#,
        r#"{"t":"a\ud83d"}"#,
        r#"{"t":"\ude00 b"}"#,
        r#"{"t":"\ud83d\ud83d"}"#,
    ] {
        assert_eq!(fault(half).kind, JsonFaultKind::LoneSurrogate, "{half}");
        let mut members = Members::new();
        let object = scan(half.as_bytes(), &ScanRules::LENIENT, &mut members).unwrap();
        let raw = object.get("t").unwrap();
        assert!(raw.string().unwrap().contains('\u{fffd}'), "{half}");
        let mut out = vec![];
        write_raw(&mut out, raw);
        let strict = scan_value(&out, &ScanRules::STRICT).unwrap();
        assert_eq!(strict.string(), raw.string());
    }
    let mut members = Members::new();
    let object = scan(br#"{"t":"\ud83e\udd80"}"#, &ScanRules::STRICT, &mut members).unwrap();
    assert_eq!(object.get("t").unwrap().string().unwrap(), "🦀");
}

#[test]
fn bytes_that_are_not_utf8_are_told_first_and_as_serde_does() {
    for bytes in [
        &b"{\"a\":\"\xff\xfe\"}"[..],
        b"{\"a\":\"x\xe4\xb8",
        b"\x80 nonsense",
    ] {
        let fault = scan(bytes, &ScanRules::STRICT, &mut Members::new())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            fault.to_string(),
            core::str::from_utf8(bytes).unwrap_err().to_string()
        );
    }
}

#[test]
fn a_fault_says_where_and_what() {
    let shown = |text: &str| fault(text).to_string();
    assert_eq!(shown(""), "there is no value");
    assert_eq!(
        shown("[1]"),
        "expected an object, found another value at byte 0"
    );
    assert_eq!(
        shown("[1"),
        "expected `,` or `]`, found the end at byte 2 in `[0]`"
    );
    assert_eq!(
        shown(r#"{"a":NaN}"#),
        "expected a value, found 'N' at byte 5 in `a`"
    );
    assert_eq!(
        shown(r#"{"a":{"b":[0,1.]}}"#),
        "expected a digit, found ']' at byte 15 in `a.b[1]`"
    );
    assert_eq!(
        shown(r#"{"a":"x"#),
        "expected the rest of a string, found the end at byte 7 in `a`"
    );
    assert_eq!(
        shown(r#"{"a":1} é"#),
        "expected nothing after the value, found 'é' at byte 8"
    );
    assert_eq!(
        shown(r#"{"a":"\x"}"#),
        "expected an escape, found 'x' at byte 7 in `a`"
    );
    assert_eq!(
        shown(r#"{a:1}"#),
        "expected a member's name, found 'a' at byte 1"
    );
    assert_eq!(
        shown(r#"{"a":1,}"#),
        "expected a member's name, found '}' at byte 7"
    );
    assert_eq!(
        shown(r#"{"a" 1}"#),
        "expected `:`, found '1' at byte 5 in `a`"
    );
}

#[derive(Deserialize, Debug, PartialEq)]
struct Wire<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow, default)]
    note: Option<Str<'a>>,
    #[serde(borrow, default)]
    list: Vec<Str<'a>>,
    #[serde(borrow)]
    args: Option<Raw<'a>>,
    #[serde(default)]
    count: u8,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    inner: Option<Inner>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Auto,
    Ask,
    Other(u32),
    Pair(u8, u8),
    Named { a: i64 },
}

#[derive(Deserialize, Debug, PartialEq)]
struct Inner {
    ratio: f64,
    #[serde(default)]
    map: BTreeMap<String, Option<bool>>,
}

fn decode(text: &str) -> Result<Wire<'_>, DecodeError> {
    // The decoded value borrows from the line, not from the members.
    let mut members = Members::new();
    let object = scan(text.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
    object.decode()
}

#[test]
fn a_typed_value_borrows_what_it_can() {
    let line = r#"{"skip":[{}],"args":{"n": 1.0},"text":"plain","note":"also","list":["x","\t"],"count":255,"mode":"ask",
        "inner":{"map":{"k":null,"l":true},"more":[[]],"ratio":1}}"#;
    let wire = decode(line).unwrap();
    assert!(matches!(wire.text, Cow::Borrowed("plain")));
    assert!(matches!(wire.note, Some(Str(Cow::Borrowed("also")))));
    assert!(matches!(
        wire.list[..],
        [Str(Cow::Borrowed("x")), Str(Cow::Owned(_))]
    ));
    assert_eq!(wire.args.unwrap().as_str(), r#"{"n": 1.0}"#);
    assert_eq!((wire.count, &wire.mode), (255, &Some(Mode::Ask)));
    let inner = wire.inner.unwrap();
    assert_eq!((inner.ratio, inner.map.len()), (1.0, 2));
    let null = decode(r#"{"text":"a\"b","args":null}"#).unwrap();
    assert_eq!((null.text, null.args), (Cow::Borrowed("a\"b"), None));
}

#[test]
fn enums_are_strings_or_objects_of_one_member() {
    let mode = |text: &str| {
        scan_value(text.as_bytes(), &ScanRules::STRICT)
            .unwrap()
            .decode::<Mode>()
    };
    assert_eq!(mode(r#""auto""#), Ok(Mode::Auto));
    assert_eq!(mode(r#""\u0061uto""#), Ok(Mode::Auto));
    assert_eq!(mode(r#"{"other": 7 }"#), Ok(Mode::Other(7)));
    assert_eq!(mode(r#"{"pair":[1,2]}"#), Ok(Mode::Pair(1, 2)));
    assert_eq!(mode(r#"{"named":{"a":-1}}"#), Ok(Mode::Named { a: -1 }));
    assert_eq!(mode(r#"{"auto":null}"#), Ok(Mode::Auto));
    for bad in [
        "{}",
        r#"{"other":7,"auto":null}"#,
        r#""other""#,
        r#""never""#,
        "7",
        "null",
        r#"["auto"]"#,
    ] {
        assert!(mode(bad).is_err(), "{bad}");
    }
    assert_eq!(
        mode("7").unwrap_err().to_string(),
        "expected enum Mode, found integer `7` at byte 0"
    );
}

#[test]
fn a_number_is_never_made_to_fit() {
    let raw = |text: &'static str| scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap();
    assert_eq!(raw("18446744073709551615").decode(), Ok(u64::MAX));
    assert_eq!(raw("-9223372036854775808").decode(), Ok(i64::MIN));
    assert_eq!(
        raw("340282366920938463463374607431768211455").decode(),
        Ok(u128::MAX)
    );
    for bad in [
        "1.5",
        "1.0",
        "1e3",
        "-1",
        "18446744073709551616",
        "\"1\"",
        "null",
    ] {
        assert!(raw(bad).decode::<u64>().is_err(), "{bad}");
    }
    assert!(raw("256").decode::<u8>().is_err());
    assert!(raw("-129").decode::<i8>().is_err());
    assert!(raw("-9223372036854775809").decode::<i64>().is_err());
    assert!(raw("1e999").decode::<f64>().is_err());
    assert_eq!(
        raw("2512292042121000001").decode::<f64>(),
        Ok(2_512_292_042_121_000_001_f64)
    );
    assert_eq!(
        raw("2512292042121000001")
            .decode::<Raw<'_>>()
            .unwrap()
            .as_str(),
        "2512292042121000001"
    );
    assert_eq!(raw("1.5").u64(), None);
    assert_eq!(raw("15").u64(), Some(15));
}

#[test]
fn elements_that_the_type_has_no_place_for_are_refused() {
    let raw = |text: &'static str| scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap();
    assert_eq!(raw("[1,2 ]").decode(), Ok((1, 2)));
    assert!(raw("[1]").decode::<(u8, u8)>().is_err());
    let more = raw("[[1,2],[3,4,5]]")
        .decode::<Vec<(u8, u8)>>()
        .unwrap_err();
    assert_eq!(
        more.to_string(),
        "expected no more elements, found another one at byte 11 in `[1][1]`"
    );
}

#[test]
fn an_error_says_where_and_what() {
    let shown = |text: &str| decode(text).unwrap_err().to_string();
    assert_eq!(shown(r#" {"args":1}"#), "missing field `text` at byte 1");
    assert_eq!(
        shown(r#"{"text":7}"#),
        "expected a string, found integer `7` at byte 8 in `text`"
    );
    assert_eq!(
        shown(r#"{"text":"","count":300}"#),
        "expected u8, found integer `300` at byte 19 in `count`"
    );
    assert_eq!(
        shown(r#"{"text":"","list":["a",null]}"#),
        "expected a string, found null at byte 23 in `list[1]`"
    );
    assert_eq!(
        shown(r#"{"text":"","mode":"never"}"#),
        "unknown name \"never\", expected `auto`, `ask`, `other`, `pair`, or `named` at byte 18 in `mode`"
    );
    assert_eq!(
        shown(r#"{"text":"","inner":{"map":{"k":1}}}"#),
        "expected a boolean, found integer `1` at byte 31 in `inner.map.k`"
    );
    assert_eq!(
        shown(r#"{"text":"","inner":{"map":{}}}"#),
        "missing field `ratio` at byte 19 in `inner`"
    );
}

#[test]
fn text_is_escaped_as_json_requires_and_no_more() {
    let written = |text: &str, safe: bool| {
        let mut out = vec![];
        if safe {
            write_str_line_safe(&mut out, text)
        } else {
            write_str(&mut out, text)
        }
        String::from_utf8(out).unwrap()
    };
    let text = "a\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}é\u{2027}\u{2028}\u{2029}\u{202a}…€🦀";
    let plain =
        "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}é\u{2027}\u{2028}\u{2029}\u{202a}…€🦀\"";
    assert_eq!(written(text, false), plain);
    let safe = plain
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    assert_eq!(written(text, true), safe);
    for length in 0..200 {
        let long = format!(
            "{}\n{}\u{2028}",
            "x".repeat(length),
            "y".repeat(200 - length)
        );
        let raw = written(&long, true);
        assert_eq!(
            scan_value(raw.as_bytes(), &ScanRules::STRICT)
                .unwrap()
                .string()
                .unwrap(),
            long
        );
    }
}

#[test]
fn an_escape_may_stand_anywhere_in_a_long_text() {
    for length in 0..140 {
        for escape in [
            "\\\\",
            "\\\"",
            "\\n\\\\",
            "\\ud83e\\udd80",
            "\\u00e9\\\"",
            "é\\\\\\\\\\\"",
        ] {
            let text = format!("\"{}{escape}{}\"", "x".repeat(length), "y".repeat(70));
            let expected: String = serde_json::from_str(&text).unwrap();
            let raw = scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap();
            assert_eq!(raw.string().unwrap(), expected, "{text}");
            let mut out = vec![];
            write_str(&mut out, &expected);
            assert_eq!(out, serde_json::to_vec(&expected).unwrap());
            // Without its end, and with half of its last escape.
            for end in [text.len() - 1, length + 2] {
                assert!(scan_value(&text.as_bytes()[..end], &ScanRules::STRICT).is_err());
            }
        }
    }
}

#[test]
fn a_raw_value_is_written_on_one_line() {
    let raw = scan_value(
        "{\n \"a\":\r\n[1,\n\"\u{2028}\\\\u\\u2028\"]}".as_bytes(),
        &ScanRules::STRICT,
    )
    .unwrap();
    let mut out = vec![];
    write_raw(&mut out, raw);
    assert_eq!(out, "{ \"a\":[1,\"\u{2028}\\\\u\\u2028\"]}".as_bytes());
    out.clear();
    write_raw_line_safe(&mut out, raw);
    assert_eq!(out, br#"{ "a":[1,"\u2028\\u\u2028"]}"#);
}

#[test]
fn l10_minus_zero_keeps_its_sign_where_a_number_can_have_one() {
    let raw = scan_value(b"-0", &ScanRules::STRICT).unwrap();
    let value: serde_json::Value = raw.decode().unwrap();
    assert_eq!(
        value,
        serde_json::from_str::<serde_json::Value>("-0").unwrap()
    );
    assert!(raw.decode::<f64>().unwrap().is_sign_negative());
    assert_eq!(raw.decode::<i64>().unwrap(), 0);
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 9, 10, 99, 100, u64::MAX] {
        let mut out = vec![];
        write_u64(&mut out, number);
        assert_eq!(out, number.to_string().as_bytes());
    }
    for number in [0, -1, i64::MIN, i64::MAX] {
        let mut out = vec![];
        write_i64(&mut out, number);
        assert_eq!(out, number.to_string().as_bytes());
    }
}

#[test]
fn a_member_is_found_without_decoding_the_others() {
    let raw = scan_value(
        br#"{"a":{"b":"}"},"\u0074":[],"u":{"t":1}}"#,
        &ScanRules::STRICT,
    )
    .unwrap();
    assert_eq!(raw.get("u").unwrap().get("t").unwrap().u64(), Some(1));
    assert_eq!(raw.get("t").unwrap().kind(), Kind::Array);
    assert_eq!(raw.get("b"), None);
    assert_eq!(
        raw.get("a").unwrap().get("b").unwrap().string().unwrap(),
        "}"
    );
}

#[test]
fn a_raw_value_comes_from_scanned_text_only() {
    assert!(serde_json::from_str::<Raw<'_>>("\"not scanned\"").is_err());
}

#[test]
fn l10_a_lazy_string_reads_as_text_and_is_written_as_it_came() {
    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Line<'a> {
        #[serde(borrow)]
        plain: Lazy<'a>,
        #[serde(borrow)]
        body: Lazy<'a>,
        #[serde(borrow)]
        inner: Vec<Lazy<'a>>,
    }
    let text = r#"{"plain":"","body":"a\u00e9\"\n","inner":["x","\""]}"#;
    let mut members = Members::new();
    let object = scan(text.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
    let line: Line<'_> = object.decode().unwrap();
    let written = |lazy: &Lazy<'_>| {
        let mut out = Vec::new();
        lazy.write(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(written(&line.body), r#""a\u00e9\"\n""#);
    assert_eq!((line.body.len(), line.plain.len()), (5, 0), "unread");
    assert_eq!(line.body, "aé\"\n");
    assert_eq!(written(&line.body), r#""a\u00e9\"\n""#, "read or not");
    assert_eq!(line.plain, "");
    assert_eq!(line.inner, ["x", "\""]);
    assert_eq!(line.body, Lazy::from("aé\"\n"));
    assert_eq!(line.body.len(), 5, "read");
    assert_eq!(line.body.clone().into_string(), "aé\"\n");
    let half = Raw::trusted(r#""\n \ud83e.""#);
    let half: Lazy<'_> = half.decode().unwrap();
    assert_eq!(half.len(), half.to_string().len());
    assert_eq!(
        written(&half),
        "\"\\n \\ufffd.\"",
        "half a pair is never passed on"
    );
    // Our deserializer alone can lend; another one gives text.
    let owned: Lazy<'_> = serde_json::from_str(r#""\"q\"""#).unwrap();
    assert_eq!(owned, "\"q\"");
    assert_eq!(written(&owned), r#""\"q\"""#);
}

#[test]
fn a_lazy_string_says_what_stands_in_its_place() {
    #[derive(serde::Deserialize, Debug)]
    #[allow(dead_code)]
    struct Line<'a> {
        #[serde(borrow)]
        body: Lazy<'a>,
    }
    let mut members = Members::new();
    for (text, found) in [
        (r#"{"body":7}"#, "7"),
        (r#"{"body":{"a":1}}"#, "object"),
        (r#"{"body":null}"#, "null"),
    ] {
        let object = scan(text.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
        let error = object.decode::<Line<'_>>().unwrap_err().to_string();
        assert!(error.contains("string") && error.contains(found), "{error}");
        assert!(error.contains("body"), "{error}");
    }
}
