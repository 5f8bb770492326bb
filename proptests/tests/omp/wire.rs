//! L10 for omp: reading and writing are inverse, for a line of every kind however it is disturbed, and for every
//! recorded line, whose every part is known.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::omp_kit;

use std::collections::BTreeSet;

use omp_kit::{Row, agent_lines, host_lines, recordings};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use turnwire::json::{Members, Raw, ScanRules, scan_value};
use turnwire::protocol::omp::codec::ChunkReader;
use turnwire::protocol::omp::wire::*;
use turnwire_proptests::fuzz::models::{agent_line_again, host_line_again, messages_of};

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn message_again(message: Raw<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message::decode(message).unwrap().encode(&mut bytes);
    bytes
}

#[test]
fn l10_a_line_of_every_kind_reads_and_writes_back_equal() {
    let mut kinds = BTreeSet::new();
    let mut members = Members::new();
    for line in agent_lines() {
        assert_eq!(agent_line_again(line.as_bytes()), Some(Ok(())), "{line}");
        let read = AgentLine::decode(line.as_bytes(), &mut members).unwrap();
        kinds.insert(read.kind().to_owned());
        kinds.insert(match &read {
            AgentLine::Ui(request) => request.method.tag().unwrap().to_owned(),
            AgentLine::Event(Event::MessageUpdate(update)) => {
                update.update.tag().unwrap().to_owned()
            }
            AgentLine::Unknown { .. } => panic!("{line}"),
            read => read.kind().to_owned(),
        });
        if let AgentLine::Response(response) = &read {
            let data = response.payload().unwrap();
            assert!(!matches!(data, Data::Unknown(_)), "{line}");
        }
    }
    let known = [Event::TAGS, Frame::TAGS, UiMethod::TAGS, Update::TAGS].concat();
    for kind in known {
        assert!(kinds.contains(kind), "a line of {kind} is missing");
    }
    let mut kinds = BTreeSet::new();
    for line in host_lines() {
        assert_eq!(host_line_again(line.as_bytes()), Some(Ok(())), "{line}");
        kinds.insert(
            match HostLine::decode(line.as_bytes(), &mut members).unwrap() {
                HostLine::Command { command, .. } => command.tag().unwrap(),
                HostLine::Side(side) => side.tag().unwrap(),
                HostLine::Unknown { .. } | HostLine::Other(_) => panic!("{line}"),
            },
        );
    }
    for kind in [Command::TAGS, Side::TAGS].concat() {
        assert!(kinds.contains(kind), "a line of {kind} is missing");
    }
}

#[test]
fn l10_members_are_written_in_the_documented_order() {
    // The samples stand in the order of the real program.
    for line in agent_lines() {
        let mut members = Members::new();
        let mut bytes = Vec::new();
        AgentLine::decode(line.as_bytes(), &mut members)
            .unwrap()
            .encode(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), line);
    }
    for line in host_lines() {
        let mut members = Members::new();
        let mut bytes = Vec::new();
        HostLine::decode(line.as_bytes(), &mut members)
            .unwrap()
            .encode(&mut bytes);
        assert_eq!(value(&bytes), value(line.as_bytes()));
        let names =
            |text: &str| text.find("\"type\"") < text.find("\"message\"").or(Some(text.len()));
        assert!(names(&String::from_utf8(bytes).unwrap()), "{line}");
    }
}

/// What can stand anywhere.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["", "later", "text", "user", "msg-1"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{0,5}|type|role|content|id", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[derive(Clone, Debug)]
enum Edit {
    Remove(Index),
    Set(Index, Value),
    Add(Index, String, Value),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        any::<Index>().prop_map(Edit::Remove),
        (any::<Index>(), anything()).prop_map(|(at, value)| Edit::Set(at, value)),
        (
            any::<Index>(),
            "[a-zA-Z_\\\\\"ü]{1,8}|type|id|details",
            anything()
        )
            .prop_map(|(at, name, value)| Edit::Add(at, name, value)),
    ];
    prop::collection::vec(edit, 0..4)
}

/// Every place of a value: pointers to it.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_owned());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{here}/{name}"), out);
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                places(value, &format!("{here}/{index}"), out);
            }
        }
        _ => {}
    }
}

fn disturbed(line: &str, edits: &[Edit]) -> Value {
    let mut whole: Value = serde_json::from_str(line).unwrap();
    for edit in edits {
        let mut all = Vec::new();
        places(&whole, "", &mut all);
        match edit {
            Edit::Remove(at) => {
                let place = all[at.index(all.len())].clone();
                let Some((parent, name)) = place.rsplit_once('/') else {
                    continue;
                };
                match whole.pointer_mut(parent) {
                    Some(Value::Object(members)) => drop(members.remove(name)),
                    Some(Value::Array(elements)) => drop(elements.remove(name.parse().unwrap())),
                    _ => {}
                }
            }
            Edit::Set(at, value) => {
                if let Some(place) = whole.pointer_mut(&all[at.index(all.len())]) {
                    *place = value.clone();
                }
            }
            Edit::Add(at, name, value) => {
                if let Some(Value::Object(members)) = whole.pointer_mut(&all[at.index(all.len())]) {
                    members.insert(name.clone(), value.clone());
                }
            }
        }
    }
    whole
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn l10_a_disturbed_line_of_an_agent_is_kept_whole(which in any::<Index>(), edits in edits()) {
        let lines = agent_lines();
        let line = disturbed(&lines[which.index(lines.len())], &edits).to_string();
        if let Some(result) = agent_line_again(line.as_bytes()) {
            prop_assert_eq!(result, Ok(()), "{}", line);
        }
    }

    #[test]
    fn l10_a_disturbed_line_of_a_host_is_kept_whole(which in any::<Index>(), edits in edits()) {
        let lines = host_lines();
        let line = disturbed(&lines[which.index(lines.len())], &edits).to_string();
        if let Some(result) = host_line_again(line.as_bytes()) {
            prop_assert_eq!(result, Ok(()), "{}", line);
        }
    }

    #[test]
    fn l9_any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut members = Members::new();
        let _ = AgentLine::decode(&bytes, &mut members);
        let _ = HostLine::decode(&bytes, &mut members);
        let text = host_text(&bytes);
        let _ = HostLine::decode(&text, &mut members);
    }

    #[test]
    fn l10_numbers_keep_their_value(number in any::<u64>(), float in any::<f64>()) {
        prop_assert_eq!(Num::from(number).u64(), Some(number));
        if float.is_finite() {
            prop_assert_eq!(Num::from(float).f64(), float);
            let mut bytes = Vec::new();
            bytes.extend_from_slice(Num::from(float).as_str().as_bytes());
            prop_assert!(scan_value(&bytes, &ScanRules::STRICT).is_ok());
        }
    }
}

/// Whether every part of a message is known.
fn known(message: &Message<'_>) -> bool {
    let blocks = |blocks: &[Block<'_>]| {
        blocks
            .iter()
            .all(|block| !matches!(block, Block::Unknown(_)))
    };
    let content = |content: &Content<'_>| match content {
        Content::Text(_) => true,
        Content::Blocks(list) => blocks(list),
    };
    match message {
        Message::User(message) => content(&message.content),
        Message::Developer(message) => content(&message.content),
        Message::Custom(message) => content(&message.content),
        Message::Hook(message) => content(&message.content),
        Message::Assistant(message) => blocks(&message.content),
        Message::ToolResult(message) => blocks(&message.content),
        Message::Unknown(_) => false,
        _ => true,
    }
}

#[test]
fn l10_recorded_lines_are_known_and_write_back_equal() {
    let (mut lines, mut texts) = (0, 0);
    for (name, rows) in recordings() {
        let mut chunks = ChunkReader::new();
        chunks.use_chunks();
        for row in rows {
            match row {
                Row::Agent(line) => {
                    lines += 1;
                    let mut members = Members::new();
                    let mut whole = None;
                    match AgentLine::decode(line.as_bytes(), &mut members) {
                        Ok(AgentLine::Frame(Frame::Chunk(chunk))) => {
                            match chunks.chunk(&chunk).unwrap() {
                                Some(bytes) => whole = Some(bytes),
                                None => continue,
                            }
                        }
                        _ => chunks.other_line().unwrap(),
                    }
                    let line = whole.as_deref().unwrap_or(line.as_bytes());
                    assert_eq!(agent_line_again(line), Some(Ok(())), "{name}");
                    match AgentLine::decode(line, &mut members).unwrap() {
                        AgentLine::Unknown { kind, .. } => panic!("{name}: {kind}"),
                        AgentLine::Event(event) => {
                            for message in messages_of(&event) {
                                let shrunk = name.starts_with("14");
                                let read = Message::decode(message).unwrap();
                                assert!(known(&read) || shrunk, "{name}: {message}");
                                assert_eq!(
                                    value(&message_again(message)),
                                    value(message.as_str().as_bytes())
                                );
                                texts += 1;
                            }
                        }
                        AgentLine::Response(response) => {
                            let data = response
                                .payload()
                                .unwrap_or_else(|error| panic!("{name}: {error}"));
                            assert!(!matches!(data, Data::Unknown(_)), "{name}: {response:?}");
                        }
                        AgentLine::Frame(Frame::AvailableCommandsUpdate(update)) => {
                            assert!(
                                update
                                    .commands
                                    .iter()
                                    .all(|command| command.known().is_some())
                            );
                        }
                        AgentLine::Frame(_) | AgentLine::Ui(_) => {}
                    }
                }
                Row::Host(line) => {
                    let text = host_text(line.as_bytes());
                    if let Some(result) = host_line_again(&text) {
                        assert_eq!(result, Ok(()), "{name}: {line}");
                    }
                }
                Row::HostEnd | Row::Exit(_) => {}
            }
        }
        assert!(!chunks.is_open());
    }
    assert!(lines > 1_200 && texts > 1_000, "{lines} {texts}");
}

fn host(line: &str) -> String {
    let mut members = Members::new();
    let text = host_text(line.as_bytes());
    match HostLine::decode(&text, &mut members) {
        Ok(HostLine::Command { id, command }) => {
            format!("{} {}", command.tag().unwrap(), id.shown())
        }
        Ok(HostLine::Side(side)) => side.tag().unwrap().to_owned(),
        Ok(HostLine::Unknown { id, kind, .. }) => {
            format!("unknown {} {}", kind.shown(), id.shown())
        }
        Ok(HostLine::Other(value)) => format!("other {value}"),
        Err(HostFault::Json(_)) => "not json".into(),
        Err(HostFault::Null) => "null".into(),
        Err(HostFault::Fields { id, command, error }) => {
            format!("{command} {} {error}", id.shown())
        }
    }
}

#[test]
fn omp_02_lines_of_a_host_are_taken_as_the_real_program_takes_them() {
    assert_eq!(
        host("\u{feff} {\"id\":\"bom\",\"type\":\"abort\"}\r"),
        "abort bom"
    );
    assert_eq!(
        host("{\"id\":{\"a\":1},\"type\":\"abort\"}"),
        "abort {\"a\":1}"
    );
    assert_eq!(host("{\"id\":null,\"type\":\"abort\"}"), "abort null");
    assert_eq!(
        host("{\"id\":1,\"type\":\"bash\",\"command\":\"x\",\"type\":\"abort\",\"id\":2}"),
        "abort 2"
    );
    assert_eq!(host("[1,2]"), "other [1,2]");
    assert_eq!(host("42"), "other 42");
    assert_eq!(host("null"), "null");
    assert_eq!(host("[1,2"), "not json");
    assert_eq!(host("{\"id\":\"x\", not json"), "not json");
    assert_eq!(host("{\"id\":\"a\"}{\"id\":\"b\"}"), "not json");
    assert_eq!(host("{\"id\":\"x\"}"), "unknown undefined x");
    assert_eq!(host("{\"id\":\"x\",\"type\":5}"), "unknown 5 x");
    assert_eq!(host("{\"type\":\"nope\"}"), "unknown nope undefined");
    assert_eq!(
        host("{\"id\":\"x\",\"type\":\"prompt\"}"),
        "prompt x missing field `message` at byte 0"
    );
    assert!(host_text("\u{feff} \u{a0}\r".as_bytes()).is_empty());
    let lossy = host_text(b"{\"id\":\"bad\xff\",\"type\":\"abort\"}");
    assert_eq!(
        host(std::str::from_utf8(&lossy).unwrap()),
        "abort bad\u{fffd}"
    );
    assert_eq!(
        host("{\"id\":\"half\\ud83d\",\"type\":\"abort\"}"),
        "abort half\u{fffd}"
    );
}

#[test]
fn omp_13_side_lines_without_their_shape_are_unknown_commands() {
    assert_eq!(
        host("{\"type\":\"extension_ui_response\",\"id\":\"u\"}"),
        "extension_ui_response"
    );
    assert_eq!(
        host("{\"type\":\"extension_ui_response\",\"id\":4}"),
        "unknown extension_ui_response 4"
    );
    assert_eq!(
        host("{\"type\":\"host_tool_result\",\"id\":\"h\",\"result\":{}}"),
        "unknown host_tool_result h"
    );
    assert_eq!(
        host(
            "{\"type\":\"host_tool_result\",\"id\":\"h\",\"result\":{\"content\":[]},\"isError\":\"x\"}"
        ),
        "host_tool_result"
    );
    assert_eq!(
        host("{\"type\":\"host_uri_result\"}"),
        "unknown host_uri_result undefined"
    );
    let mut members = Members::new();
    let mut answer = |members_of: &str| {
        let line = format!("{{\"type\":\"extension_ui_response\",\"id\":\"u\"{members_of}}}");
        match HostLine::decode(line.as_bytes(), &mut members) {
            Ok(HostLine::Side(Side::Ui(response))) => format!("{:?}", response.answer()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(answer(",\"value\":\"a\\nb\""), "Value(\"a\\nb\")");
    assert_eq!(answer(",\"confirmed\":false"), "Confirmed(false)");
    assert_eq!(
        answer(",\"cancelled\":true,\"timedOut\":true"),
        "Cancelled { timed_out: true }"
    );
    assert_eq!(answer(",\"cancelled\":false,\"value\":5"), "Malformed");
    assert!(answer(",\"answers\":[{\"id\":\"q\",\"selectedOptions\":[]}]").starts_with("Answers"));
    assert_eq!(answer(""), "Malformed");
}

#[test]
fn l10_of_two_tags_the_last_counts_in_messages_and_pictures() {
    let message = |text: &'static str| {
        Message::decode(scan_value(text.as_bytes(), &AGENT_RULES).unwrap()).unwrap()
    };
    let twice =
        r#"{"role":"hookMessage","customType":"x","content":[],"display":true,"role":"later"}"#;
    assert!(matches!(message(twice), Message::Unknown(_)));
    let line = r#"{"type":"prompt","message":"m","images":[{"type":"film","data":"aGk=","mimeType":"image/png"},{"data":"aGk=","mimeType":"image/png"}]}"#;
    let mut members = Members::new();
    let Ok(HostLine::Command {
        command: Command::Prompt(prompt),
        ..
    }) = HostLine::decode(line.as_bytes(), &mut members)
    else {
        panic!("a prompt");
    };
    let images = prompt.images.unwrap();
    let known: Vec<bool> = images.iter().map(|image| image.known().is_some()).collect();
    assert_eq!(known, [false, true]);
    assert_eq!(host_line_again(line.as_bytes()), Some(Ok(())));
}

#[test]
fn omp_17_what_is_new_is_kept() {
    let mut members = Members::new();
    let line = r#"{"type":"later_event","x":[1.50]}"#;
    let read = AgentLine::decode(line.as_bytes(), &mut members).unwrap();
    assert!(matches!(&read, AgentLine::Unknown { kind, .. } if kind == "later_event"));
    let line = r#"{"type":"extension_ui_request","id":"u","method":"later"}"#;
    let read = AgentLine::decode(line.as_bytes(), &mut members).unwrap();
    assert!(matches!(&read, AgentLine::Unknown { .. }));
    let line = r#"{"type":"agent_end","messages":[],"isTerminal":true,"later":{"a":null}}"#;
    let Ok(AgentLine::Event(Event::AgentEnd(end))) =
        AgentLine::decode(line.as_bytes(), &mut members)
    else {
        panic!("an agent_end");
    };
    assert_eq!(end.rest.get("later").unwrap().as_str(), r#"{"a":null}"#);
    let message = scan_value(br#"{"role":"later","x":1}"#, &ScanRules::STRICT).unwrap();
    assert_eq!(Message::decode(message), Ok(Message::Unknown(message)));
    for wrong in [
        r#"{}"#,
        r#"{"type":7}"#,
        r#"{"type":"agent_end"}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":-1,"delta":"x"}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0}}"#,
        r#"{"type":"prompt_result","agentInvoked":"yes"}"#,
        r#"{"type":"response","command":"x"}"#,
        "[]",
    ] {
        assert!(
            AgentLine::decode(wrong.as_bytes(), &mut members).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn a_deep_tree_is_read() {
    let mut members = Members::new();
    let deep = 20_000;
    let line = format!(
        r#"{{"id":"t","type":"response","command":"get_tree","success":true,"data":{{"tree":[{}{}],"leafId":null}}}}"#,
        "{\"entry\":{},\"children\":[".repeat(deep),
        "]}".repeat(deep)
    );
    let Ok(AgentLine::Response(response)) = AgentLine::decode(line.as_bytes(), &mut members) else {
        panic!("a response");
    };
    assert!(matches!(response.payload(), Ok(Data::Tree(_))));
}
