//! Tests of what a scan leaves, piece by piece, and of the searches below it, each against a plain way of doing it.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};

use serde::Deserialize;

use super::error::path_at;
use super::text::{Stops, find_stop, number_end};
use super::write::write_bool;
use super::*;

/// A value as it stands in a scanned line.
fn with_value<T>(value: &str, look: impl Fn(Raw<'_>) -> T) -> T {
    let line = format!("{{\"v\":{value}}}");
    let mut members = Members::new();
    let rules = ScanRules {
        duplicates: Duplicates::Pass,
        ..ScanRules::LENIENT
    };
    let object = scan(line.as_bytes(), &rules, &mut members).unwrap();
    look(object.get("v").unwrap())
}

#[test]
fn a_raw_value_knows_its_type_and_what_fits_it() {
    for (value, kind, text, number, truth) in [
        ("null", Kind::Null, None, None, None),
        ("true", Kind::Bool, None, None, Some(true)),
        ("false", Kind::Bool, None, None, Some(false)),
        ("7", Kind::Number, None, Some(7), None),
        ("-7", Kind::Number, None, None, None),
        ("7.5", Kind::Number, None, None, None),
        ("18446744073709551616", Kind::Number, None, None, None),
        ("\"7\"", Kind::String, Some("7"), None, None),
        ("\"true\"", Kind::String, Some("true"), None, None),
        ("\"a\\\"b\"", Kind::String, Some("a\"b"), None, None),
        ("[7]", Kind::Array, None, None, None),
        ("{\"a\":7}", Kind::Object, None, None, None),
    ] {
        with_value(value, |raw| {
            assert_eq!(raw.kind(), kind, "{value}");
            assert_eq!(raw.is_null(), kind == Kind::Null, "{value}");
            assert_eq!(raw.string().as_deref(), text, "{value}");
            assert_eq!((raw.u64(), raw.bool()), (number, truth), "{value}");
            assert_eq!(raw.to_string(), value);
        });
    }
}

#[test]
fn a_string_without_escapes_is_lent_and_one_with_them_is_made() {
    let lent =
        |value: &str| with_value(value, |raw| matches!(raw.string(), Some(Cow::Borrowed(_))));
    assert!(lent("\"plain\""));
    assert!(!lent("\"not\\nplain\""));
    let mut members = Members::new();
    let object = scan(
        b"{\"ab\":\"cde\",\"f\":\"\"}",
        &ScanRules::STRICT,
        &mut members,
    )
    .unwrap();
    assert_eq!(object.string("ab"), Some(Cow::Borrowed("cde")));
    assert_eq!(object.string("f"), Some(Cow::Borrowed("")));
}

#[test]
fn of_a_name_that_stands_twice_the_first_or_the_last_is_taken() {
    let value = r#"{"a":1,"b":{"a":2},"\u0061":[3]}"#;
    with_value(value, |raw| {
        assert_eq!(raw.get("a").map(Raw::as_str), Some("1"));
        assert_eq!(raw.get_last("a").map(Raw::as_str), Some("[3]"));
        assert_eq!(raw.get_last("b").map(Raw::as_str), Some("{\"a\":2}"));
        assert_eq!((raw.get("c"), raw.get_last("c")), (None, None));
    });
    with_value("[1]", |raw| {
        assert_eq!((raw.get("a"), raw.get_last("a")), (None, None))
    });
}

#[test]
fn an_object_says_how_many_members_it_has() {
    let mut members = Members::new();
    for (line, number) in [
        ("{}", 0),
        ("{\"a\":1}", 1),
        ("{\"a\":1,\"b\":{\"c\":1}}", 2),
    ] {
        let object = scan(line.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
        assert_eq!((object.len(), object.is_empty()), (number, number == 0));
    }
}

#[test]
fn strings_compare_and_convert_as_their_text_does() {
    let text = "a\"b";
    for str in [Str::from(text), Str::from(String::from(text))] {
        assert!(str == *text && str == text && str != *"a" && str != "a");
        assert_eq!(str.as_ref() as &str, text);
        assert_eq!(
            (str.to_string(), format!("{str:?}")),
            (text.into(), format!("{text:?}"))
        );
        assert_eq!(str.into_string(), text);
    }
    let lazy = || Lazy::from(text);
    let owned = Lazy::from(Cow::Owned::<'_, str>(String::from(text)));
    let other = [Lazy::from("a"), Lazy::default()];
    assert!(lazy() == owned && !other.contains(&owned));
    assert!(lazy() == *text && lazy() == text && lazy() != *"a" && lazy() != "a");
    assert_eq!(owned.as_ref() as &str, text);
    assert_eq!(
        (owned.to_string(), format!("{owned:?}")),
        (text.into(), format!("{text:?}"))
    );
    assert_eq!(Lazy::default().len(), 0);
}

#[test]
fn a_string_is_read_from_any_deserializer() {
    let read: Vec<Str<'_>> = serde_json::from_str(r#"["plain","esc\naped"]"#).unwrap();
    assert_eq!(read, [Str::from("plain"), Str::from("esc\naped")]);
    // A tree of values lends nothing.
    let tree = serde_json::json!(["owned"]);
    let read = Vec::<Str<'_>>::deserialize(tree).unwrap();
    assert_eq!(read, [Str::from("owned")]);
    // A raw value is the text of a scan of ours, and no other's.
    let other: Result<Raw<'_>, _> = serde_json::from_str("1");
    assert!(other.is_err());
}

/// Names and values of a line, or its fault.
fn seen(line: &str, members: &mut Members) -> Result<Vec<(String, String)>, JsonFault> {
    let object = scan(line.as_bytes(), &ScanRules::STRICT, members)?;
    let all = object.iter();
    Ok(all
        .map(|(name, value)| (name.into(), value.as_str().into()))
        .collect())
}

#[test]
fn a_line_is_scanned_the_same_whatever_was_scanned_before_it() {
    let long = format!(
        "{{\"type\":\"token\",\"text\":\"{}\",\"n\":1}}",
        "x".repeat(400)
    );
    let lines = [
        r#"{"type":"token","session_id":"0123456789abcdef","text":"one"}"#,
        r#"{"type":"token","session_id":"0123456789abcdef","text":"two, longer"}"#,
        r#"{"type":"token","session_id":"0123456789abcdeX","text":"one"}"#,
        r#"{"type":"token","session_id":"0123456789abcdef"}"#,
        r#"{"type":"token","session_id":"0123456789abcdef","more":{"type":1}}"#,
        r#"{"type":"token","session_id":"0123456789abcdef","text":"one""#,
        r#"{"type":"token","type":"token"}"#,
        r#"{"t\u0079pe":"token","\u0061":"b","\u0062":"c"}"#,
        r#"{"t\u0079pe":"token","\u0061":"b","\u0063":"d"}"#,
        r#"{"type":"tokem"}"#,
        r#"{}"#,
        r#" {"type":"token"}"#,
        &long,
    ];
    for first in lines {
        for second in lines {
            let mut members = Members::new();
            let fresh = [first, second].map(|line| seen(line, &mut Members::new()));
            let kept = [first, second].map(|line| seen(line, &mut members));
            assert_eq!(kept, fresh, "{first} then {second}");
            let mut forgetful = Members::without_memory();
            let forgot = [first, second].map(|line| seen(line, &mut forgetful));
            assert_eq!(forgot, fresh, "{first} then {second}");
        }
    }
}

#[test]
fn a_shape_is_shared_by_lines_of_the_same_names_alone() {
    let shapes = |lines: &[&str]| -> Vec<u64> {
        let mut members = Members::new();
        let shape = |line: &&str| {
            let object = scan(line.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
            object.shape()
        };
        lines.iter().map(shape).collect()
    };
    // A stream of tokens: only the last value is new.
    let same = [
        r#"{"a":1,"b":"one"}"#,
        r#"{"a":1,"b":"two"}"#,
        r#"{"a":1,"b":3}"#,
    ];
    let [one, two, three] = shapes(&same)[..] else {
        panic!()
    };
    assert!(one == two && two == three);
    for other in [
        r#"{"a":1,"c":"one"}"#,
        r#"{"a":1,"b":"one","c":2}"#,
        r#"{"a":1}"#,
        r#"{"b":1,"a":"one"}"#,
        r#"{"aa":1,"b":"one"}"#,
        r#"{}"#,
    ] {
        let [first, second, third] = shapes(&[same[0], other, same[0]])[..] else {
            panic!()
        };
        assert!(first != second && second != third, "{other}");
    }
}

#[test]
fn tw_10_what_an_unusual_line_took_is_given_back() {
    let many: Vec<String> = (0..2_000).map(|n| format!("\"{n}\":[[{n}]]")).collect();
    let many = format!("{{{}}}", many.join(","));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_500), "]".repeat(1_500));
    let name = format!("{{\"\\n{}\":1}}", "x".repeat(4_096));
    let rules = ScanRules {
        max_depth: 2_000,
        ..ScanRules::STRICT
    };
    // Whether the next line shares the beginning of the one before or not.
    for (unusual, next) in [
        (&many, "{\"0\":[[0]],\"b\":1}"),
        (&many, "{\"x\":1}"),
        (&deep, "{\"a\":1}"),
        (&name, "{\"x\":1}"),
    ] {
        let mut members = Members::new();
        scan(unusual.as_bytes(), &rules, &mut members).unwrap();
        scan(next.as_bytes(), &rules, &mut members).unwrap();
        let kept = [
            members.names.capacity(),
            members.values.capacity(),
            members.open.capacity(),
            members.order.capacity(),
            members.decoded.capacity(),
        ];
        assert!(kept.iter().all(|kept| *kept <= 1_024), "{kept:?}: {next}");
    }
    // And what is usual stays.
    let mut members = Members::new();
    scan(b"{\"a\":[1],\"b\":2}", &rules, &mut members).unwrap();
    let (names, open) = (members.names.capacity(), members.open.capacity());
    scan(b"[", &rules, &mut members).unwrap_err();
    scan(b"{\"c\":1}", &rules, &mut members).unwrap();
    assert_eq!(
        (members.names.capacity(), members.open.capacity()),
        (names, open)
    );
}

/// Where a text isn't plain, byte by byte.
fn stops_of(bytes: &[u8], e2: bool) -> Vec<usize> {
    let stop = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\' || (e2 && byte == 0xE2);
    (0..bytes.len()).filter(|at| stop(bytes[*at])).collect()
}

#[test]
fn a_stop_is_found_wherever_it_stands() {
    for length in [0, 1, 7, 8, 9, 31, 32, 33, 64, 65, 100] {
        for other in [
            b'x', b' ', b'!', b'#', b'[', b']', 0x7F, 0x80, 0xA2, 0xDC, 0xE1, 0xFF,
        ] {
            let plain = vec![other; length];
            assert_eq!(find_stop::<false>(&plain, 0), length, "{other}");
            assert_eq!(find_stop::<true>(&plain, 0), length, "{other}");
            for at in 0..length {
                for byte in [0, 1, 0x1F, b'\n', b'"', b'\\', 0xE2] {
                    let mut bytes = plain.clone();
                    bytes[at] = byte;
                    let wanted = |e2| stops_of(&bytes, e2).first().copied().unwrap_or(length);
                    let found = [find_stop::<false>(&bytes, 0), find_stop::<true>(&bytes, 0)];
                    assert_eq!(
                        found,
                        [wanted(false), wanted(true)],
                        "{byte} at {at} in {other}"
                    );
                    assert_eq!(find_stop::<true>(&bytes, at), at);
                    assert_eq!(find_stop::<true>(&bytes, at + 1), length);
                }
            }
        }
    }
    for byte in 0..=u8::MAX {
        let found = [
            find_stop::<false>(&[byte], 0),
            find_stop::<false>(&[byte; 8], 0),
        ];
        let stops = !stops_of(&[byte], false).is_empty();
        assert_eq!(found, if stops { [0, 0] } else { [1, 8] }, "{byte}");
    }
}

#[test]
fn stops_come_in_order_and_any_may_be_left_out() {
    let mut bytes = vec![b'x'; 200];
    for at in [0, 1, 5, 62, 63, 64, 65, 127, 128, 130, 190, 199] {
        bytes[at] = b'\\';
    }
    let all = stops_of(&bytes, false);
    let mut stops = Stops::<false>::new(&bytes, 0);
    let found: Vec<usize> = (0..=all.len()).map(|_| stops.next()).collect();
    assert_eq!(found[..all.len()], all);
    assert_eq!(found.last(), Some(&bytes.len()));
    // The byte after each is left out, as the letter of an escape.
    let mut letters = Stops::<false>::new(&bytes, 0);
    let mut found = vec![];
    loop {
        let at = letters.next();
        if at == bytes.len() {
            break;
        }
        found.push(at);
        letters.skip_letter();
    }
    assert_eq!(found, [0, 5, 62, 64, 127, 130, 190, 199]);
    // From any place after one, within its block, at its edge and beyond.
    for to in 1..=bytes.len() {
        let mut stops = Stops::<false>::new(&bytes, 0);
        stops.next();
        stops.skip_to(to);
        let wanted = all.iter().copied().find(|at| *at >= to);
        assert_eq!(stops.next(), wanted.unwrap_or(bytes.len()), "{to}");
    }
}

#[test]
fn a_number_ends_where_the_grammar_of_json_says() {
    for (text, end) in [
        ("0", Ok(1)),
        ("-0", Ok(2)),
        ("01", Ok(1)),
        ("12x", Ok(2)),
        ("1.25,", Ok(4)),
        ("1e10", Ok(4)),
        ("1E+10]", Ok(5)),
        ("-1.5e-3 ", Ok(7)),
        ("", Err(0)),
        ("-", Err(1)),
        ("-x", Err(1)),
        ("1.", Err(2)),
        ("1.x", Err(2)),
        ("1e", Err(2)),
        ("1e+", Err(3)),
        ("1e-x", Err(3)),
        (".5", Err(0)),
        ("+1", Err(0)),
    ] {
        assert_eq!(number_end(text.as_bytes(), 0), end, "{text}");
        let later = end.map(|at| at + 3).map_err(|at| at + 3);
        assert_eq!(
            number_end(format!("xxx{text}").as_bytes(), 3),
            later,
            "{text}"
        );
    }
}

#[test]
fn a_path_leads_to_where_a_value_goes_wrong() {
    let line = r#"{"a\"}{":[1,"]\\",{"b":[[],{"c\\":"#;
    for (before, path) in [
        ("", ""),
        ("{", ""),
        (r#"{"a":1,"#, ""),
        (r#"{"a":"#, "a"),
        (r#"{"a":{"b":1},"c":[0,1,"#, "c[2]"),
        (r#"{"a":[{"b":"\"","c":"#, "a[0].c"),
        (r#"{"a":"half"#, "a"),
        (r#"{"half"#, ""),
        (line, r#"a\"}{[2].b[1].c\\"#),
    ] {
        assert_eq!(path_at(before.as_bytes(), before.len()), path, "{before}");
    }
}

#[test]
fn truth_is_written_as_a_word() {
    let mut out = vec![];
    write_bool(&mut out, true);
    write_bool(&mut out, false);
    assert_eq!(out, b"truefalse");
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Any {
    Truth(bool),
    Whole(i64),
    Large(u64),
    Real(f64),
    Text(String),
    List(Vec<Any>),
}

#[derive(Debug, Deserialize, PartialEq)]
struct Wrapped(u64);

#[test]
fn a_value_is_shown_as_what_it_is() {
    let any = |value: &str| with_value(value, |raw| raw.decode::<Any>().ok());
    assert_eq!(any("true"), Some(Any::Truth(true)));
    assert_eq!(any("false"), Some(Any::Truth(false)));
    assert_eq!(any("-9223372036854775808"), Some(Any::Whole(i64::MIN)));
    assert_eq!(any("9223372036854775808"), Some(Any::Large(1 << 63)));
    // Below the smallest, or with a fraction, it is a real number.
    assert_eq!(
        any("-9223372036854775809"),
        Some(Any::Real(-9223372036854775808.0))
    );
    assert_eq!(
        any("18446744073709551616"),
        Some(Any::Real(18446744073709551616.0))
    );
    assert_eq!(any("1.5"), Some(Any::Real(1.5)));
    assert_eq!(any("1e400"), None);
    assert_eq!(any("null"), None);
    let list = [
        Any::Whole(1),
        Any::Text("a,]".into()),
        Any::List(Vec::new()),
    ];
    assert_eq!(any(r#"[ 1 , "a,]" , [ ] ]"#), Some(Any::List(list.into())));
    assert_eq!(with_value(" 7 ", |raw| raw.decode().ok()), Some(Wrapped(7)));
}

#[test]
fn a_number_of_the_wrong_kind_says_where_and_what() {
    fn error<T: for<'a> Deserialize<'a>>(value: &str) -> Option<(usize, String)> {
        with_value(value, |raw| {
            let error = raw.decode::<Vec<T>>().err()?;
            Some((error.at(), error.to_string()))
        })
    }
    let whole = |value: &str| error::<i64>(value);
    assert_eq!(whole("[-1, 2]"), None);
    for (value, at) in [
        ("[1, 9223372036854775808]", 4),
        ("[-9223372036854775809]", 1),
        ("[1, 1.5]", 4),
        ("[1, 1e2]", 4),
    ] {
        let (found, text) = whole(value).unwrap();
        assert_eq!(found, at, "{value}: {text}");
    }
    assert_eq!(error::<f64>("[1, -1, 1.5, 1e300]"), None);
    assert!(error::<f64>("[1e400]").is_some());
    assert!(error::<u8>("[256]").is_some());
}

#[test]
fn a_value_is_skipped_to_its_end() {
    for value in [
        "1",
        "-1.5e+3",
        "\"\"",
        "\"}]\\\"\\\\\"",
        "\"\\u005c\"",
        "[[],{}]",
        "{\"a\":[{\"b\":\"]\"}],\"c\":-1}",
        "[1 , true , null]",
    ] {
        let text = format!("{{\"a\":{value},\"b\":2}}");
        with_value(&text, |raw| {
            assert_eq!(raw.get("a").map(Raw::as_str), Some(value));
            assert_eq!(raw.get("b").map(Raw::as_str), Some("2"), "{value}");
        });
    }
}
