//! Lines of an agent: written in one order, read whatever else they hold.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::WireFault;
use turnwire::protocol::splice::wire::*;
use turnwire_proptests::fuzz::models::splice_agent_again;

use crate::recordings;

fn written(line: &str) -> String {
    let mut members = Members::new();
    let mut out = Vec::new();
    Event::read(line.as_bytes(), &mut members)
        .unwrap()
        .encode(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn sp_01_a_line_has_a_version_a_type_and_a_run() {
    let mut members = Members::new();
    for line in [
        "",
        "7",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"text","delta":"a"}"#,
        r#"{"type":"text","delta":"a","schemaVersion":2}"#,
        r#"{"type":"text","delta":"a","runId":"r"}"#,
        r#"{"type":"text","delta":"a","runId":"r","schemaVersion":1}"#,
        r#"{"type":"text","delta":"a","runId":"r","schemaVersion":"2"}"#,
        r#"{"type":"text","delta":7,"runId":"r","schemaVersion":2}"#,
        r#"{"type":"run_end","status":"success","runId":"r","schemaVersion":2}"#,
        r#"{"type":"tool_result","id":"a","runId":"r","schemaVersion":2,"status":"ok"}"#,
    ] {
        assert!(
            Event::read(line.as_bytes(), &mut members).is_err(),
            "{line}"
        );
    }
    let text = r#"{"schemaVersion":2,"type":"text","runId":"r"}"#;
    let event = Event::read(text.as_bytes(), &mut members).unwrap();
    assert_eq!((event.tag(), &*event.run_id()), (Some("text"), "r"));
    assert_eq!(
        Event::read(br#"{"runId":"r"}"#, &mut members),
        Err(WireFault::NoTag("type"))
    );
}

#[test]
fn sp_03_sp_a13_what_nobody_knows_is_passed_over() {
    let newer = r#"{"type":"budget","runId":"r","schemaVersion":2,"left":[1]}"#;
    let mut members = Members::new();
    let event = Event::read(newer.as_bytes(), &mut members).unwrap();
    assert_eq!(
        (event.tag(), &*event.name(), &*event.run_id()),
        (None, "budget", "r")
    );
    assert_eq!(written(newer), newer);
    let more = r#"{"delta":"a","runId":"r","schemaVersion":2,"type":"text","zeal":{"a":[null]}}"#;
    assert_eq!(written(more), more);
    match Event::read(more.as_bytes(), &mut members).unwrap() {
        Event::Text(line) => {
            assert_eq!(line.delta.as_deref(), Some("a"));
            assert_eq!(line.rest.get("zeal").unwrap().as_str(), r#"{"a":[null]}"#);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(Event::TAGS.len(), 17);
}

#[test]
fn sp_a05_what_is_empty_is_left_out_and_markup_is_escaped() {
    let result = ToolResult {
        id: Some("c".into()),
        name: Some("n".into()),
        output: Some("<b>&\u{2028}\0".into()),
        run_id: "r".into(),
        status: ResultStatus::Error,
        ..ToolResult::default()
    };
    let mut out = Vec::new();
    Event::from(result).encode(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"id":"c","name":"n","output":"\u003cb\u003e\u0026\u2028\u0000","runId":"r","schemaVersion":2,"status":"error","truncated":false,"type":"tool_result"}"#
    );
    let usage = Usage {
        run_id: "r".into(),
        usage_reported: Some(false),
        ..Usage::default()
    };
    let mut out = Vec::new();
    Event::from(usage).encode(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"completionTokens":0,"promptTokens":0,"runId":"r","schemaVersion":2,"totalTokens":0,"type":"usage","usageReported":false}"#
    );
}

#[test]
fn sp_07_the_requests_of_the_contract_are_read_with_what_they_have() {
    for line in [
        r#"{"schemaVersion":2,"type":"permission_request","runId":"r","id":"call_2","name":"write_file","action":"prompt","permission":"prompt","permissionMode":"ask","sideEffect":"write","reason":"Creates or overwrites files."}"#,
        r#"{"schemaVersion":2,"type":"permission_decision","runId":"r","id":"call_2","name":"write_file","action":"allow","permissionGranted":true,"decisionReason":"approved in TUI"}"#,
        r#"{"schemaVersion":2,"type":"permission","runId":"r","block":{"code":"denied","recoverable":false},"grant":{"toolName":"x","scopeKind":"dir"}}"#,
        r#"{"schemaVersion":2,"type":"restore","runId":"r","checkpoint":{"filesRestored":["a"],"filesDeleted":[],"skipped":["b"]}}"#,
    ] {
        let back: Value = serde_json::from_str(&written(line)).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(line).unwrap());
    }
}

proptest! {
    /// A recorded line with anything changed in it is read as what it says, or not at all.
    #[test]
    fn sp_01_l10_changed_lines_come_back(at in any::<Index>(), member in any::<Index>(), with in prop_oneof![
        Just(None),
        Just(Some(json!(null))),
        Just(Some(json!(7))),
        Just(Some(json!(""))),
        Just(Some(json!([{"a": "<"}]))),
        any::<String>().prop_map(|text| Some(Value::from(text))),
    ]) {
        let lines: Vec<String> = recordings().into_iter().flat_map(|recording| recording.agent).collect();
        let mut line: Value = serde_json::from_str(&lines[at.index(lines.len())]).unwrap();
        let members = line.as_object_mut().unwrap();
        let name = members.keys().nth(member.index(members.len())).unwrap().clone();
        match with {
            None => { members.remove(&name); }
            Some(value) => { members.insert(name, value); }
        }
        if let Some(result) = splice_agent_again(line.to_string().as_bytes()) {
            prop_assert_eq!(result, Ok(()));
        }
    }

    #[test]
    fn l9_any_bytes_are_an_event_or_none(line in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut members = Members::new();
        let _: Result<(), WireFault> = Event::read(&line, &mut members).map(|_| ());
    }

    #[test]
    fn sp_a06_sp_11_markers_come_back(name in any::<String>(), detail in any::<String>(), files in prop::option::of(prop::collection::vec(any::<String>(), 0..3))) {
        let marker = Marker {
            changed_files: turnwire::protocol::splice::wire::Nullable(files.map(|files| files.into_iter().map(|file| turnwire::json::Str(file.into())).collect())),
            detail: turnwire::json::Str(detail.into()),
            name: turnwire::json::Str(name.into()),
            ..Marker::default()
        };
        let text = marker.write();
        prop_assert_eq!(Marker::read(&text), Some(marker));
    }
}
