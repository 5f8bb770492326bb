//! The table of lines: it says what the types of the lines say, and what is printed from it says the same again
//! (OM-33).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::observer_kit;
use crate::omp_kit;

use std::collections::BTreeSet;

use boon::{Compiler, SchemaIndex, Schemas};
use observer_kit::*;
use serde_json::{Map, Value, json};
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::json::{Members, ScanRules};
use turnwire::protocol::agentx;
use turnwire::protocol::observer::{Dir, Observed, Observer, Sides};
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::wire::{AgentLine, COMMANDS, EventLine, HostLine};
use turnwire::protocol::openmax::{ObserverConfig, Openmax, SPEC};
use turnwire::protocol::openseek::Openseek;
use turnwire::protocol::spec::{self, Field, FieldKind, LineSpec, Spec};

fn sample(kind: FieldKind) -> Value {
    match kind {
        FieldKind::Word(word) => json!(word),
        FieldKind::Number(number) => json!(number),
        FieldKind::Text => json!("t\u{e4}xt \"x\" \n"),
        FieldKind::OneOf(words) => json!(words[words.len() - 1]),
        FieldKind::Count => json!(u64::MAX),
        FieldKind::CountOrNull => json!(null),
        FieldKind::Whole { most, .. } => json!(most),
        FieldKind::Bool => json!(true),
        FieldKind::Object => json!({"a": [1, {"b": null}]}),
        FieldKind::Texts | FieldKind::TextsOrAbsent => json!(["one", "two"]),
        FieldKind::Items(fields) => json!([object(fields), object(fields)]),
        FieldKind::Fields(fields) => object(fields),
        FieldKind::List(kind) => json!([sample(*kind), sample(*kind)]),
        FieldKind::Num => json!(1.5),
        FieldKind::Any => json!({"any": [1]}),
        FieldKind::Kinds(tag, kinds) => object(&kinds[0].all(tag)),
        FieldKind::OrNull(kind) | FieldKind::Maybe(kind) => sample(*kind),
    }
}

/// Whether this value is one of the kind.
fn fits(kind: FieldKind, value: &Value) -> bool {
    let objects = |fields: &[Field], value: &Value| {
        value.is_object()
            && fields.iter().all(|field| match value.get(field.name) {
                Some(value) => fits(field.kind, value),
                None => !field.is_required(),
            })
    };
    match kind {
        FieldKind::Word(word) => value == word,
        FieldKind::Number(number) => *value == json!(number),
        FieldKind::Text => value.is_string(),
        FieldKind::OneOf(words) => words.iter().any(|word| value == word),
        FieldKind::Count => value.is_u64(),
        FieldKind::CountOrNull => value.is_u64() || value.is_null(),
        FieldKind::Whole { least, most } => value
            .as_i64()
            .is_some_and(|number| (least..=most).contains(&number)),
        FieldKind::Bool => value.is_boolean(),
        FieldKind::Object => value.is_object(),
        FieldKind::Texts => fits(FieldKind::List(&FieldKind::Text), value),
        FieldKind::TextsOrAbsent => {
            fits(FieldKind::Texts, value) && value.as_array().is_some_and(|list| !list.is_empty())
        }
        FieldKind::Items(fields) => {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(|value| objects(fields, value)))
        }
        FieldKind::Fields(fields) => objects(fields, value),
        FieldKind::List(kind) => {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(|value| fits(*kind, value)))
        }
        FieldKind::Num => value.is_number(),
        FieldKind::Any => true,
        FieldKind::Kinds(tag, kinds) => kinds.iter().any(|kind| objects(&kind.all(tag), value)),
        FieldKind::OrNull(kind) => value.is_null() || fits(*kind, value),
        FieldKind::Maybe(kind) => fits(*kind, value),
    }
}

fn object(fields: &[Field]) -> Value {
    let members = fields
        .iter()
        .map(|field| (field.name.to_owned(), sample(field.kind)));
    Value::Object(members.collect())
}

/// The top-level members of a line, in order.
fn names(line: &str) -> Vec<String> {
    let mut members = Members::new();
    let object = turnwire::json::scan(line.as_bytes(), &ScanRules::STRICT, &mut members).unwrap();
    object.iter().map(|(name, _)| name.to_owned()).collect()
}

/// The line as our types write it, after they have read it; `None` if they don't know it or can't.
fn through_types(line: &LineSpec, text: &str) -> Option<String> {
    let mut members = Members::new();
    let mut out = Vec::new();
    match line.dir {
        Dir::Host => match HostLine::decode(text.as_bytes(), &mut members).ok()? {
            HostLine::Unknown { .. } => return None,
            known => known.encode(&mut out),
        },
        Dir::Agent => match AgentLine::decode(text.as_bytes(), &mut members).ok()? {
            AgentLine::Unknown { .. } => return None,
            known => known.encode(&mut out),
        },
    }
    Some(String::from_utf8(out).unwrap())
}

#[test]
fn om_13_the_table_has_the_fields_of_the_types_in_their_order() {
    for line in SPEC.lines {
        let whole = object(line.fields);
        let written =
            through_types(line, &whole.to_string()).unwrap_or_else(|| panic!("{}", line.name));
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            whole,
            "{}",
            line.name
        );
        let listed: Vec<&str> = line.fields.iter().map(|field| field.name).collect();
        assert_eq!(names(&written), listed, "{}", line.name);
        for field in line.fields {
            let mut less: Map<String, Value> = whole.as_object().unwrap().clone();
            less.remove(field.name);
            let reads = through_types(line, &Value::Object(less).to_string()).is_some();
            // `cached_tokens` may be left out by a program that isn't ours.
            let may =
                field.kind == FieldKind::TextsOrAbsent || field.kind == FieldKind::CountOrNull;
            assert_eq!(reads, may, "{}.{}", line.name, field.name);
        }
    }
}

#[test]
fn om_13_the_table_has_every_line_once() {
    let of = |dir| {
        let names: Vec<&str> = SPEC
            .lines
            .iter()
            .filter(|line| line.dir == dir)
            .map(|line| line.name)
            .collect();
        let set: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(set.len(), names.len());
        set
    };
    assert_eq!(of(Dir::Host), COMMANDS.into_iter().collect());
    let mut agent: BTreeSet<&str> = EventLine::TYPES.iter().copied().collect();
    agent.extend(["hello", "transcript", "protocol_error", "approval_mode"]);
    assert_eq!(of(Dir::Agent), agent);
}

#[test]
fn om_33_the_page_names_every_line_and_field() {
    let page = spec::markdown::<Openmax>();
    for line in SPEC.lines {
        assert!(page.contains(&format!("### `{}`", line.name)) && page.contains(line.about));
        for field in line.fields {
            assert!(
                page.contains(&format!("| `{}` |", field.name)),
                "{}",
                field.name
            );
        }
    }
    for (heading, text) in SPEC.course {
        assert!(page.contains(heading) && page.contains(text));
    }
    for guarantee in Openmax::GUARANTEES {
        assert!(page.contains(&format!("| {} | {} |", guarantee.id, guarantee.says)));
    }
    assert!(!page.contains("  ") && page.ends_with('\n'));
}

fn schema<P: Observed>() -> (Schemas, SchemaIndex) {
    schema_of(P::SPEC)
}

fn schema_of(spec: &Spec) -> (Schemas, SchemaIndex) {
    schema_at(spec, "lines.json")
}

/// The schema of a part of the table: of the lines of one direction.
fn schema_at(spec: &Spec, place: &str) -> (Schemas, SchemaIndex) {
    let text = spec::json_schema_of(spec);
    let value: Value = serde_json::from_str(&text).unwrap();
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.add_resource("lines.json", value).unwrap();
    let index = compiler.compile(place, &mut schemas).unwrap();
    (schemas, index)
}

/// The schema takes each line of the table, and each of its fields only with values of its kind.
fn schema_takes<P: Observed>() {
    schema_takes_lines_of(P::SPEC);
}

fn schema_takes_lines_of(spec: &Spec) {
    // Two directions may have a line of the same kind.
    let host = schema_at(spec, "lines.json#/$defs/host");
    let agent = schema_at(spec, "lines.json#/$defs/agent");
    for line in spec.lines {
        let (schemas, index) = match line.dir {
            Dir::Host => (&host.0, host.1),
            Dir::Agent => (&agent.0, agent.1),
        };
        let fields = line.all();
        let whole = object(&fields);
        let title = line.title();
        assert!(schemas.validate(&whole, index).is_ok(), "{title}");
        for field in &fields {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(field.name);
            let valid = schemas.validate(&less, index).is_ok();
            assert_eq!(valid, !field.is_required(), "{title}.{}", field.name);
            for other in [
                json!(-1),
                json!(1.5),
                json!("\u{0}"),
                json!([1]),
                json!({"x": 1}),
                json!(false),
                json!(null),
            ] {
                let mut changed = whole.clone();
                changed[field.name] = other.clone();
                let valid = schemas.validate(&changed, index).is_ok();
                assert_eq!(
                    valid,
                    fits(field.kind, &other),
                    "{title}.{} {other}",
                    field.name
                );
            }
        }
    }
}

#[test]
fn om_33_the_schema_takes_what_the_table_describes() {
    schema_takes::<Openmax>();
}

#[test]
fn the_schema_of_omp_takes_what_its_table_describes() {
    schema_takes::<Omp>();
}

#[test]
fn the_schemas_of_agentx_and_claude_take_what_their_tables_describe() {
    schema_takes_lines_of(&agentx::SPEC);
    schema_takes_lines_of(&agentx::CLAUDE_SPEC);
}

#[test]
fn os_10_the_schema_of_openseek_takes_what_its_table_describes() {
    schema_takes::<Openseek>();
}

#[test]
fn the_pages_of_agentx_and_claude_name_every_line_and_operation() {
    for spec in [&agentx::SPEC, &agentx::CLAUDE_SPEC] {
        let page = spec::markdown_of(spec, agentx::GUARANTEES);
        for line in spec.lines {
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
        for (heading, tag, kinds) in spec.parts {
            assert!(page.contains(&format!("## {heading}\n")));
            assert!(tag.is_empty() || page.contains(&format!("Each has a `{tag}`.")));
            for kind in *kinds {
                assert!(page.contains(&format!("### `{}`", kind.name)));
            }
        }
        assert!(!page.contains("  ") && page.ends_with('\n'));
        let types = spec::typescript_of(spec);
        assert!(types.contains("{\n    subtype: \"can_use_tool\";\n    tool_name: string;\n"));
    }
}

#[test]
fn the_schema_of_omp_takes_what_the_real_program_wrote() {
    let (schemas, index) = schema::<Omp>();
    let rows = omp_kit::recordings().into_iter().flat_map(|(_, rows)| rows);
    let recorded = rows.filter_map(|row| match row {
        omp_kit::Row::Agent(line) => Some(line),
        _ => None,
    });
    let lines = omp_kit::agent_lines().into_iter();
    let mut count = 0;
    for line in lines.chain(omp_kit::host_lines()).chain(recorded) {
        // What was left out of a frame is no part of the contract.
        if line.contains("elided for RPC frame") {
            continue;
        }
        let value: Value = serde_json::from_str(&line).unwrap();
        assert!(schemas.validate(&value, index).is_ok(), "{line}");
        count += 1;
    }
    assert!(count > 1_200);
}

#[test]
fn the_page_of_omp_names_every_line_and_field() {
    let page = spec::markdown::<Omp>();
    for line in Omp::SPEC.lines {
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
    let lines: BTreeSet<String> = Omp::SPEC.lines.iter().map(|line| line.title()).collect();
    assert_eq!(
        lines.len(),
        Omp::SPEC.lines.len(),
        "each line is there once"
    );
    assert!(!page.contains("  ") && page.ends_with('\n'));
}

/// Rules on a single line's shape, as a schema can see it.
const SHAPE: [&str; 14] = [
    "OM-01.c", "OM-02.e", "OM-05.a", "OM-05.b", "OM-05.c", "OM-06.a", "OM-07.a", "OM-07.b",
    "OM-12.c", "OM-12.d", "OM-13.a", "OM-13.b", "OM-13.c", "OM-13.e",
];
const SHAPE_OF_ASKS: [&str; 2] = ["OM-15.c", "OM-16.a"];

#[test]
fn the_schema_and_the_observer_agree_on_every_line_of_the_fixtures() {
    let (schemas, index) = schema::<Openmax>();
    let (mut good, mut bad) = (0, 0);
    let mut files: Vec<Vec<u8>> = recordings().into_iter().map(|(_, bytes)| bytes).collect();
    for entry in std::fs::read_dir(fixtures("rules/openmax")).unwrap() {
        files.push(std::fs::read(entry.unwrap().path()).unwrap());
    }
    for bytes in files {
        for row in bytes
            .split(|&byte| byte == b'\n')
            .filter(|row| !row.is_empty())
        {
            let row: Value = serde_json::from_slice(row).unwrap();
            let dir = match row["dir"].as_str().unwrap() {
                "in" if row["line_b64"].is_null() && row["bytes"].is_null() => Dir::Host,
                "out" => Dir::Agent,
                _ => continue,
            };
            let Some(line) = row["line"].as_str() else {
                continue;
            };
            // What isn't JSON no schema sees; what can be read in two ways is beyond it.
            let Ok(value) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let sides = if dir == Dir::Host {
                Sides::Host
            } else {
                Sides::Agent
            };
            let mut observer = Observer::<Openmax>::new(ObserverConfig::default(), sides);
            let place = Place { line: 1, offset: 0 };
            observer.handle_line(
                dir,
                Split {
                    place,
                    what: SplitKind::Line(line.as_bytes()),
                },
            );
            let found: Vec<&str> = std::iter::from_fn(|| observer.poll_finding())
                .map(|finding| finding.rule.id)
                .collect();
            if found.contains(&"OM-12.b") || (found.contains(&"OM-05.a") && value.is_object()) {
                continue;
            }
            let odd = found
                .iter()
                .any(|id| SHAPE.contains(id) || SHAPE_OF_ASKS.contains(id));
            let valid = schemas.validate(&value, index).is_ok();
            assert_eq!(valid, !odd, "{line}: {found:?}");
            if valid { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 1000 && bad > 30, "{good} {bad}");
    for id in SHAPE.iter().chain(&SHAPE_OF_ASKS) {
        assert!(Openmax::RULES.iter().any(|rule| rule.id == *id));
    }
}
