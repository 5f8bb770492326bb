//! The strict scan, the decoder and the writer against serde_json.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use turnwire::json::{
    JsonFault, JsonFaultKind, Members, Raw, ScanRules, Str, scan, scan_value, write_raw,
    write_raw_line_safe, write_str, write_str_line_safe,
};
use turnwire_proptests::fuzz::models::{agree, strict};

/// Text that is JSON, or nearly.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => Just("{"), 4 => Just("}"), 3 => Just("["), 3 => Just("]"), 6 => Just(","), 6 => Just(":"), 2 => Just(" "),
        1 => Just("\n"), 4 => Just("\"a\""), 2 => Just("\"\\u0061\""), 2 => Just("\"b\":1"), 1 => Just("\""),
        1 => Just("\\"), 1 => Just("\"\\ud83d\\ude00\""), 1 => Just("\"\\ud83d\""), 1 => Just("\"\\n\\/\\x\""),
        2 => Just("0"), 2 => Just("-1.5e+3"), 1 => Just("01"), 1 => Just("1."), 1 => Just(".5"), 1 => Just("1e"),
        1 => Just("true"), 1 => Just("false"), 1 => Just("null"), 1 => Just("nul"), 1 => Just("\"é\u{2028}\""),
        1 => Just("\t"), 1 => Just("\"\t\""), 1 => Just("NaN"),
    ];
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat().into_bytes())
}

/// Lines that often begin alike, whole and broken.
fn alike() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        3 => Just("{\"id\":\"0123456789\",\"type\":\"token\",\"text\":"),
        2 => Just("{\"id\":\"0123456789\",\"type\":\"usage\",\"\\u0061\":"),
        1 => Just(" {\"id\":\"012345678\",\"a\":[{\"b\":1}],\"c\":"), 1 => Just("{\"a\":"), 1 => Just("{"),
    ];
    let value = prop_oneof![
        3 => Just("\"x\""), 2 => Just("\"xy\""), 1 => Just(" 12"), 1 => Just("1"), 1 => Just("[[{}]]"), 1 => Just("[[[]]]"),
        1 => Just("\"\\ud83d\""), 1 => Just("{\"a\":1,\"a\":1}"), 1 => Just("{\"b\":{}}"), 1 => Just("\"\\n\""), 1 => Just(""),
    ];
    let tail = prop_oneof![
        4 => Just("}"), 1 => Just(",\"text\":1}"), 1 => Just(",\"z\":\"w\"} "), 1 => Just(""), 1 => Just(",\"a\":2}"),
        1 => Just("} x"), 1 => Just(",\"\\u0069d\":0}"), 1 => Just(",\"m0\":0,\"m1\":1,\"m2\":2,\"m3\":3,\"m4\":4,\"m5\":5,\
            \"m6\":6,\"m7\":7,\"m8\":8,\"m9\":9,\"ma\":10,\"mb\":11,\"mc\":12,\"md\":13,\"m0\":14}"),
        1 => Just(",\"m0\":0,\"m1\":1,\"m2\":2,\"m3\":3,\"m4\":4,\"m5\":5,\"m6\":6,\"m7\":7,\"m8\":8,\"m9\":9,\"ma\":10,\
            \"mb\":11,\"mc\":12,\"md\":13,\"me\":14}"),
    ];
    (
        head,
        value,
        tail,
        prop_oneof![9 => Just(None), 1 => (0_usize..40, any::<u8>()).prop_map(Some)],
    )
        .prop_map(|(head, value, tail, damage)| {
            let mut line = [head, value, tail].concat().into_bytes();
            if let Some((at, byte)) = damage
                && let Some(place) = line.get_mut(at)
            {
                *place = byte;
            }
            line
        })
}

/// A name from a small set, so that duplicates happen; spelled in two ways.
fn name() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        Just("a"),
        Just("b"),
        Just("\\u0061"),
        Just("\\u0062"),
        Just("é"),
        Just("\\u00e9")
    ];
    prop::collection::vec(letter, 0..3).prop_map(|letters| format!("\"{}\"", letters.concat()))
}

/// Well-formed JSON, perhaps with duplicate names.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        any::<String>().prop_map(|text| escape_all(&text)),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        any::<f32>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| format!("{number:?}")),
        Just("123456789012345678901234567890".to_owned()),
        Just("-9223372036854775809".to_owned()),
        Just("-0".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        name(),
    ];
    leaf.prop_recursive(5, 60, 24, |inner| {
        let space = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\r\n\t")];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), space.clone()).prop_map(
                |(values, space)| format!(
                    "[{space}{}{space}]",
                    values.join(&format!("{space},{space}"))
                )
            ),
            (
                prop::collection::vec((name(), inner.clone()), 0..5),
                space.clone()
            )
                .prop_map(|(members, space)| object(&members, space)),
            (
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..24),
                space
            )
                .prop_map(|(members, space)| {
                    let members: Vec<_> = members
                        .into_iter()
                        .map(|(name, value)| (format!("\"{name}\""), value))
                        .collect();
                    object(&members, space)
                }),
        ]
    })
}

fn object(members: &[(String, String)], space: &str) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{name}{space}:{space}{value}"))
        .collect();
    format!(
        "{{{space}{}{space}}}",
        members.join(&format!("{space},{space}"))
    )
}

/// Every character as `\uXXXX`.
fn escape_all(text: &str) -> String {
    let units: String = text
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    format!("\"{units}\"")
}

proptest! {
    #![proptest_config(turnwire_proptests::config(600))]

    #[test]
    fn both_readers_refuse_the_same_tokens(bytes in nearly_json()) {
        agree(&bytes).map_err(TestCaseError::fail)?;
        let members = [b"{\"x\":", bytes.as_slice(), b"}"].concat();
        agree(&members).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn both_readers_refuse_the_same_damage(
        text in json(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 0..3),
    ) {
        let mut bytes = text.into_bytes();
        for (at, byte, remove) in damage {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            if remove {
                bytes.truncate(at);
            } else {
                bytes[at] = byte;
            }
        }
        agree(&bytes).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_line_has_the_members_that_serde_json_finds(text in json()) {
        let line = format!(" {text}\t");
        let mut members = Members::new();
        let ours = scan(line.as_bytes(), &ScanRules::STRICT, &mut members);
        let is_object = text.starts_with('{');
        prop_assert_eq!(ours.is_ok(), is_object && strict(text.as_bytes()).is_ok());
        if let Ok(object) = ours {
            let theirs: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(object.len(), theirs.len());
            for (name, raw) in object.iter() {
                prop_assert_eq!(&raw.decode::<Value>().unwrap(), &theirs[name]);
                prop_assert_eq!(object.get(name), Some(raw));
                prop_assert_eq!(scan_value(text.as_bytes(), &ScanRules::STRICT).unwrap().get(name), Some(raw));
            }
            prop_assert_eq!(object.decode::<BTreeMap<String, Value>>().unwrap(), theirs);
            let names: Vec<&str> = object.iter().map(|(name, _)| name).collect();
            let decoded: BTreeMap<Key<'_>, Raw<'_>> = object.decode().unwrap();
            prop_assert_eq!(decoded.len(), names.len());
        }
    }

    #[test]
    fn what_is_remembered_of_the_last_line_changes_nothing(
        lines in prop::collection::vec((alike(), any::<bool>()), 1..12),
    ) {
        let (mut warm, mut cold) = (Members::new(), Members::without_memory());
        for (line, lenient) in lines {
            let rules = if lenient { ScanRules::LENIENT } else { ScanRules { max_depth: 3, ..ScanRules::STRICT } };
            let show = |members: &mut Members| {
                let object = scan(&line, &rules, members)?;
                let seen: Vec<_> = object.iter().map(|(name, value)| (name.to_owned(), value)).collect();
                let found: Vec<_> = seen.iter().map(|(name, _)| object.get(name)).collect();
                Ok((seen, found, object.decode::<Value>()))
            };
            let fresh: Result<_, JsonFault> = show(&mut Members::new());
            prop_assert_eq!(&show(&mut warm), &fresh);
            prop_assert_eq!(&show(&mut cold), &fresh);
        }
    }

    #[test]
    fn lines_of_one_shape_have_the_same_names(lines in prop::collection::vec(alike(), 0..12)) {
        let mut members = Members::new();
        let mut shapes: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for line in &lines {
            let Ok(object) = scan(line, &ScanRules::STRICT, &mut members) else { continue };
            let names: Vec<String> = object.iter().map(|(name, _)| name.to_owned()).collect();
            prop_assert_eq!(shapes.entry(object.shape()).or_insert_with(|| names.clone()), &names);
        }
        // That it says so at all of lines that differ in their last value.
        let mut shape = |line: &str| scan(line.as_bytes(), &ScanRules::STRICT, &mut members).unwrap().shape();
        prop_assert_eq!(shape(r#"{"a":1,"b":"x"}"#), shape(r#"{"a":1,"b":"y"}"#));
        prop_assert_ne!(shape(r#"{"a":1,"b":"y"}"#), shape(r#"{"a":1,"b":"y","c":1}"#));
        prop_assert_ne!(shape(r#"{"a":1,"b":"y","c":1}"#), shape(r#"{"a":1,"b":"y"}"#));
    }

    #[test]
    fn a_value_is_the_same_typed_and_untyped(text in json()) {
        let Ok(raw) = scan_value(text.as_bytes(), &ScanRules::STRICT) else { return Ok(()) };
        prop_assert_eq!(raw.as_str(), &text);
        prop_assert_eq!(raw.decode::<Value>().unwrap(), serde_json::from_str::<Value>(&text).unwrap());
        prop_assert_eq!(raw.decode::<Raw<'_>>().unwrap(), raw);
        prop_assert_eq!(raw.u64(), serde_json::from_str::<u64>(&text).ok());
        prop_assert_eq!(raw.bool(), serde_json::from_str::<bool>(&text).ok());
        prop_assert_eq!(raw.string().map(|text| text.into_owned()), serde_json::from_str::<String>(&text).ok());
        same::<u8>(raw)?;
        same::<i32>(raw)?;
        same::<i64>(raw)?;
        same::<u64>(raw)?;
        same::<u128>(raw)?;
        same::<f64>(raw)?;
        same::<bool>(raw)?;
        same::<char>(raw)?;
        same::<()>(raw)?;
        same::<String>(raw)?;
        same::<Option<String>>(raw)?;
        same::<Vec<Value>>(raw)?;
        same::<(Value, Value)>(raw)?;
        same::<BTreeMap<String, Value>>(raw)?;
        same::<Option<Shape>>(raw)?;
        same::<Vec<Shape>>(raw)?;
        raw.decode::<IgnoredAny>().unwrap();
    }

    #[test]
    fn l10_a_string_is_written_as_serde_json_does_and_read_back(text in text()) {
        let mut out = vec![];
        write_str(&mut out, &text);
        prop_assert_eq!(&out, &serde_json::to_vec(&text).unwrap());
        let raw = scan_value(&out, &ScanRules::STRICT).unwrap();
        prop_assert_eq!(raw.string().unwrap(), text.as_str());
        let mut safe = vec![];
        write_str_line_safe(&mut safe, &text);
        prop_assert_eq!(&serde_json::from_slice::<String>(&safe).unwrap(), &text);
        let safe = String::from_utf8(safe).unwrap();
        let has_separator = safe.contains(['\u{2028}', '\u{2029}']);
        prop_assert!(!has_separator);
        prop_assert_eq!(safe, String::from_utf8(out).unwrap().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"));
        let all = escape_all(&text);
        prop_assert_eq!(scan_value(all.as_bytes(), &ScanRules::STRICT).unwrap().string().unwrap(), text);
    }

    #[test]
    fn a_raw_value_is_written_as_one_line_of_the_same_value(text in json()) {
        let Ok(raw) = scan_value(text.as_bytes(), &ScanRules::STRICT) else { return Ok(()) };
        for write in [write_raw, write_raw_line_safe] {
            let mut out = vec![];
            write(&mut out, raw);
            prop_assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
            let again = scan_value(&out, &ScanRules::STRICT).unwrap();
            prop_assert_eq!(again.decode::<Value>().unwrap(), raw.decode::<Value>().unwrap());
        }
    }

    #[test]
    fn half_pairs_are_taken_leniently_and_come_out_whole(units in prop::collection::vec(surrogates(), 0..8)) {
        let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let text = format!("\"{text}\"");
        let expected = String::from_utf16_lossy(&units);
        let raw = scan_value(text.as_bytes(), &ScanRules::LENIENT).unwrap();
        prop_assert_eq!(raw.string().unwrap(), expected.as_str());
        let strict = scan_value(text.as_bytes(), &ScanRules::STRICT);
        match strict {
            Ok(_) => prop_assert_eq!(&String::from_utf16(&units).unwrap(), &expected),
            Err(fault) => {
                prop_assert_eq!(fault.kind, JsonFaultKind::LoneSurrogate);
                prop_assert!(String::from_utf16(&units).is_err());
            }
        }
        let mut out = vec![];
        write_raw(&mut out, raw);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), expected);
    }
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Str<'a>);

/// A type with the attributes that wire types use.
#[derive(Deserialize, Debug, PartialEq)]
struct Shape {
    #[serde(default, alias = "b")]
    a: Option<Value>,
    #[serde(rename = "é", default)]
    e: Vec<u16>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

fn same<T: for<'de> Deserialize<'de> + PartialEq + fmt::Debug>(
    raw: Raw<'_>,
) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_str::<T>(raw.as_str());
    let ours = raw.decode::<T>();
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
        (Err(_), Err(_)) => {}
        // serde_json reads a struct from an array, too.
        (Err(_), Ok(_)) if raw.as_str().contains('[') => {}
        // It has no integer -0; we take it for 0 where an integer is wanted.
        (Ok(_), Err(_)) if raw.as_str().contains("-0") => {}
        _ => prop_assert!(false, "{}: ours {ours:?}, theirs {theirs:?}", raw),
    }
    Ok(())
}

fn text() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        6 => any::<char>(), 6 => prop::char::range(' ', '~'), 2 => prop::char::range('\0', '\u{1f}'),
        2 => prop::char::range('\u{2020}', '\u{2030}'), 1 => Just('"'), 1 => Just('\\'),
    ];
    prop::collection::vec(char, 0..200).prop_map(|chars| chars.into_iter().collect())
}

fn surrogates() -> impl Strategy<Value = u16> {
    prop_oneof![
        Just(0xD83D_u16),
        Just(0xDE00),
        Just(0xDBFF),
        Just(0xDC00),
        Just(0x41),
        Just(0xFFFF)
    ]
}
