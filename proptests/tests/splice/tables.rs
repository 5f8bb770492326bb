//! The table of lines, against the types.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};
use turnwire::json::{Members, ScanRules, scan};
use turnwire::protocol::observer::Dir;
use turnwire::protocol::spec::{self, Field, FieldKind, LineSpec};
use turnwire::protocol::splice::wire::{Event, Input};
use turnwire::protocol::splice::{GUARANTEES, SPEC};

use crate::recordings;

fn through_types(dir: Dir, text: &str) -> Option<String> {
    let mut members = Members::new();
    let mut out = Vec::new();
    match dir {
        Dir::Host => Input::read(text.as_bytes(), &mut members)
            .ok()?
            .encode(&mut out),
        Dir::Agent => Event::read(text.as_bytes(), &mut members)
            .ok()?
            .encode(&mut out),
    }
    Some(String::from_utf8(out).unwrap())
}

/// The top-level members of a line, in order.
fn names(line: &str) -> Vec<String> {
    let mut members = Members::new();
    let object = scan(line.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
    object.iter().map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn sp_03_the_table_has_17_types_of_an_agent_and_2_of_a_host_once_each() {
    let titles = |dir| -> BTreeSet<&str> {
        let lines = SPEC.lines.iter().filter(|line| line.dir == dir);
        lines.map(|line| line.name).collect()
    };
    assert_eq!(
        titles(Dir::Agent),
        Event::TAGS.iter().copied().collect::<BTreeSet<_>>()
    );
    assert_eq!(
        titles(Dir::Host),
        Input::TYPES.iter().copied().collect::<BTreeSet<_>>()
    );
    assert_eq!(SPEC.lines.len(), 19);
}

#[test]
fn the_page_names_every_line_and_field() {
    let page = spec::markdown_of(&SPEC, GUARANTEES);
    for line in SPEC.lines {
        assert!(page.contains(&format!("### `{}`", line.title())));
        assert!(page.contains(line.about.trim()), "{}", line.title());
        for field in line.all() {
            assert!(
                page.contains(&format!("| `{}` |", field.name)),
                "{}",
                field.name
            );
        }
    }
    assert!(!page.contains("  ") && page.ends_with('\n'));
    assert!(spec::typescript_of(&SPEC).contains("type: \"run_start\";"));
}

#[test]
fn the_schema_takes_every_recorded_line() {
    let schema: Value = serde_json::from_str(&spec::json_schema_of(&SPEC)).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("lines.json", schema).unwrap();
    let index = compiler.compile("lines.json", &mut schemas).unwrap();
    for recording in recordings() {
        let good = !recording.name.starts_with("invalid/");
        let host = recording.host.iter().filter(|_| good);
        for line in recording.agent.iter().chain(host) {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(schemas.validate(&value, index).is_ok(), "{line}");
        }
    }
}

/// A value of this kind.
fn value(kind: FieldKind, picks: &mut impl FnMut(usize) -> usize) -> Value {
    const TEXTS: [&str; 5] = ["x", "r-1", "bg.1_A-9", "running", "0"];
    match kind {
        FieldKind::Word(word) => json!(word),
        FieldKind::Number(number) => json!(number),
        FieldKind::Text => json!(TEXTS[picks(TEXTS.len())]),
        FieldKind::OneOf(words) => json!(words[picks(words.len())]),
        FieldKind::Whole { least, most } => json!([least, most, 1.clamp(least, most)][picks(3)]),
        FieldKind::Count => json!(picks(7)),
        FieldKind::Object => json!({TEXTS[picks(TEXTS.len())]: "x"}),
        FieldKind::Num => json!(0.25),
        FieldKind::Bool => json!(picks(2) == 0),
        FieldKind::Fields(fields) => object(fields, picks),
        FieldKind::List(kind) => (0..=picks(3)).map(|_| value(*kind, picks)).collect(),
        FieldKind::Any => json!({"any": [1]}),
        FieldKind::Kinds(tag, kinds) => object(&kinds[picks(kinds.len())].all(tag), picks),
        FieldKind::OrNull(kind) => {
            if picks(2) == 0 {
                Value::Null
            } else {
                value(*kind, picks)
            }
        }
        FieldKind::Maybe(kind) => value(*kind, picks),
        other => panic!("{other:?}"),
    }
}

fn object(fields: &[Field], picks: &mut impl FnMut(usize) -> usize) -> Value {
    let members = fields
        .iter()
        .map(|field| (field.name.to_owned(), value(field.kind, picks)));
    Value::Object(members.collect())
}

/// The text of an object with its members in this order.
fn ordered(fields: &[Field], members: &Map<String, Value>) -> String {
    let members: Vec<String> = fields
        .iter()
        .filter_map(|field| {
            Some(format!(
                "{}:{}",
                json!(field.name),
                members.get(field.name)?
            ))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn whole(line: &LineSpec, picks: &mut impl FnMut(usize) -> usize) -> Value {
    object(&line.all(), picks)
}

proptest! {
    /// A line of every kind with any values of its fields is read, and written in the order of the table.
    #[test]
    fn sp_01_sp_a05_l10_the_table_and_the_types_say_the_same(seed in prop::collection::vec(any::<Index>(), 64), at in any::<Index>()) {
        let mut next = 0;
        let mut picks = |most: usize| {
            next += 1;
            seed[next % seed.len()].index(most)
        };
        let line = &SPEC.lines[at.index(SPEC.lines.len())];
        let value = whole(line, &mut picks);
        let members = value.as_object().unwrap();
        let text = ordered(&line.all(), members);
        let written = through_types(line.dir, &text);
        let back: Option<Value> = written.as_deref().map(|text| serde_json::from_str(text).unwrap());
        prop_assert_eq!(back.as_ref(), Some(&value), "{}", text);
        prop_assert_eq!(names(&written.unwrap()), names(&text));
        for field in line.all() {
            // A message has a text, a picture, or both.
            if members["type"] == "message" && matches!(field.name, "content" | "images") {
                continue;
            }
            let mut less = members.clone();
            less.remove(field.name);
            let reads = through_types(line.dir, &Value::Object(less).to_string()).is_some();
            prop_assert_eq!(reads, !field.is_required(), "{} without {}", text, field.name);
        }
    }
}
