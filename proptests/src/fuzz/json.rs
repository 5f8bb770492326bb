//! The strict scan and the writer, against serde_json.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use turnwire::json::{
    JsonFault, JsonFaultKind, Members, Raw, ScanRules, scan as scan_line, scan_value, write_bool,
    write_i64, write_raw, write_raw_line_safe, write_str, write_str_line_safe, write_u64,
};

use super::{must, shown};
use crate::laws::Broken;

/// A value that serde_json takes, and in which no name occurs twice.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value without duplicate names")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        while seq.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, Strict)) = map.next_entry::<String, Strict>()? {
            if !names.insert(name) {
                return Err(de::Error::custom("duplicate"));
            }
        }
        Ok(Strict)
    }
}

/// Reads a text with serde_json, and with the rule that no name comes twice in an object.
///
/// # Errors
/// What serde_json says, or that a name came twice.
pub fn strict(bytes: &[u8]) -> serde_json::Result<()> {
    serde_json::from_slice::<Strict>(bytes).map(|Strict| ())
}

/// Whether both readers agree about a text, serde_json with the rule that no name comes twice; `Err` says why not.
///
/// # Errors
/// What each of the two said.
pub fn agree(bytes: &[u8]) -> Result<(), String> {
    let ours = scan_value(bytes, &ScanRules::STRICT);
    let theirs = strict(bytes);
    let excused = match (&ours, &theirs) {
        (Ok(_), Ok(_)) | (Err(_), Err(_)) => true,
        // serde_json has no number beyond a double, and its own limit of depth; we keep the text.
        (Ok(_), Err(error)) => {
            let text = error.to_string();
            text.contains("number out of range") || text.contains("recursion limit exceeded")
        }
        (Err(fault), Ok(_)) => matches!(fault.kind, JsonFaultKind::TooDeep { .. }),
    };
    if excused {
        return Ok(());
    }
    Err(format!(
        "{:?}: ours {ours:?}, theirs {theirs:?}",
        shown(bytes)
    ))
}

/// Whether two values are the same, however their numbers are spelled.
pub fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, a)| other.get(name).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

/// A line's members, and each looked up by its name.
type Found = (Vec<(String, String)>, bool);

fn members(line: &[u8], rules: &ScanRules, members: &mut Members) -> Result<Found, JsonFault> {
    let object = scan_line(line, rules, members)?;
    let seen: Vec<_> = object.iter().collect();
    let found = seen.iter().all(|(name, _)| {
        // Of several, the first.
        let first = seen.iter().find(|(other, _)| other == name);
        object.get(name) == first.map(|(_, value)| *value)
    });
    let own = |(name, value): &(&str, Raw<'_>)| ((*name).to_owned(), value.as_str().to_owned());
    Ok((seen.iter().map(own).collect(), found))
}

/// The scan takes exactly the texts that serde_json takes in which no name comes twice, finds the same members with
/// the same values, and what it remembers of the lines before changes nothing.
///
/// # Errors
/// [`Broken`] with the text.
pub fn scan(data: &[u8]) -> Result<(), Broken> {
    let differs = |why: String| Broken {
        law: "differential",
        why,
    };
    agree(data).map_err(differs)?;
    let pass = ScanRules {
        duplicates: turnwire::json::Duplicates::Pass,
        max_depth: 9,
        ..ScanRules::LENIENT
    };
    let all = [ScanRules::STRICT, ScanRules::LENIENT, pass];
    let mut warm = all.map(|_| Members::new());
    for line in data.split(|&byte| byte == b'\n') {
        agree(line).map_err(differs)?;
        for (rules, warm) in all.iter().zip(&mut warm) {
            let fresh = members(line, rules, &mut Members::without_memory());
            let seen = members(line, rules, warm);
            must(seen == fresh, "memory", || {
                format!(
                    "{:?} is {seen:?} after others, and {fresh:?} alone",
                    shown(line)
                )
            })?;
            must(!matches!(seen, Ok((_, false))), "lookup", || {
                format!(
                    "{:?}: a member isn't found by its name: {seen:?}",
                    shown(line)
                )
            })?;
        }
        let strict = members(line, &ScanRules::STRICT, &mut Members::new());
        if let Ok((ours, _)) = strict
            && let Ok(theirs) = serde_json::from_slice::<BTreeMap<String, Value>>(line)
        {
            let mut same = ours.len() == theirs.len();
            for (name, raw) in &ours {
                let value = serde_json::from_str::<Value>(raw).ok();
                let decoded = scan_value(raw.as_bytes(), &ScanRules::STRICT).ok();
                let decoded = decoded.and_then(|raw| raw.decode::<Value>().ok());
                same &= value.is_some() && value.as_ref() == theirs.get(name) && decoded == value;
            }
            must(same, "differential", || {
                format!("{:?}: ours {ours:?}, theirs {theirs:?}", shown(line))
            })?;
        }
    }
    Ok(())
}

/// What is written is read back as the same value by us and by serde_json, on one line; any spelling of a string is
/// read as serde_json reads it.
///
/// # Errors
/// [`Broken`] with the value.
pub fn writer(data: &[u8]) -> Result<(), Broken> {
    let l10 = |holds: bool, what: &str, out: &[u8]| {
        must(holds, "L10", || {
            format!("{what} of {:?} is {:?}", shown(data), shown(out))
        })
    };
    let text = shown(data);
    let (mut out, mut safe) = (Vec::new(), Vec::new());
    write_str(&mut out, &text);
    write_str_line_safe(&mut safe, &text);
    let theirs = serde_json::to_vec(&text).unwrap_or_default();
    l10(out == theirs, "write_str", &out)?;
    for written in [&out, &safe] {
        let raw = scan_value(written, &ScanRules::STRICT).ok();
        let back = raw.and_then(Raw::string);
        l10(back.as_deref() == Some(&text), "reading", written)?;
        let back = serde_json::from_slice::<String>(written).ok();
        l10(back.as_ref() == Some(&text), "their reading", written)?;
    }
    let breaks = ['\n', '\r', '\u{2028}', '\u{2029}'];
    l10(!shown(&safe).contains(breaks), "write_str_line_safe", &safe)?;

    // The bytes as a string's content: any escapes.
    let quoted = [b"\"", data, b"\""].concat();
    let ours = scan_value(&quoted, &ScanRules::STRICT).ok();
    let theirs = serde_json::from_slice::<String>(&quoted).ok();
    let read = ours.and_then(|raw| raw.decode::<String>().ok());
    l10(read == theirs, "a spelled string", &quoted)?;
    l10(
        ours.and_then(Raw::string).as_deref() == theirs.as_deref(),
        "a spelled string, lent",
        &quoted,
    )?;

    // The bytes as any value.
    for text in [data, &quoted] {
        let Ok(raw) = scan_value(text, &ScanRules::LENIENT) else {
            continue;
        };
        for (write, is_safe) in [
            (write_raw as fn(&mut Vec<u8>, Raw<'_>), false),
            (write_raw_line_safe, true),
        ] {
            let mut out = Vec::new();
            write(&mut out, raw);
            let text = shown(&out);
            let breaks = if is_safe { &breaks[..] } else { &breaks[..2] };
            let is_line = !text.contains(breaks);
            l10(is_line, "a raw value on one line", &out)?;
            let again = scan_value(&out, &ScanRules::STRICT).ok();
            let back = again.map(|raw| raw.decode::<Value>());
            l10(back == Some(raw.decode::<Value>()), "a raw value", &out)?;
            let mut twice = Vec::new();
            again.into_iter().for_each(|raw| write(&mut twice, raw));
            l10(twice == out, "a raw value twice", &twice)?;
        }
    }

    let mut number = [0; 8];
    number
        .iter_mut()
        .zip(data)
        .for_each(|(to, from)| *to = *from);
    let (unsigned, signed) = (u64::from_be_bytes(number), i64::from_be_bytes(number));
    let mut out = Vec::new();
    write_u64(&mut out, unsigned);
    l10(shown(&out) == unsigned.to_string(), "write_u64", &out)?;
    out.clear();
    write_i64(&mut out, signed);
    l10(shown(&out) == signed.to_string(), "write_i64", &out)?;
    out.clear();
    write_bool(&mut out, signed < 0);
    l10(shown(&out) == (signed < 0).to_string(), "write_bool", &out)
}
