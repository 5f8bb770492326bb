//! Lines of a host: what refuses them, in which words.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::splice::wire::{Image, Input, InputFault, NO_INPUT, Refused};
use turnwire_proptests::fuzz::models::splice_host_again;

use crate::recordings;

/// What the lines of an input are refused with, as an agent says it; `None`: they may run.
fn refusal(lines: &[String]) -> Option<String> {
    let mut any = false;
    for (index, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        any = true;
        if let Err(fault) = Input::read(line.as_bytes(), &mut Members::new()) {
            let line = index as u64 + 1;
            return Some(Refused { line, fault }.to_string());
        }
    }
    (!any).then(|| NO_INPUT.to_owned())
}

#[test]
fn sp_a01_sp_02_each_recorded_input_is_refused_in_the_recorded_words() {
    let mut count = 0;
    for recording in recordings() {
        let error = recording
            .agent
            .iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|event| event["type"] == "error");
        let said = error.and_then(|event| event["message"].as_str().map(str::to_owned));
        if !recording.name.starts_with("invalid/") {
            if recording.name == "empty_stdin" {
                assert_eq!(refusal(&recording.host), said);
            } else if !recording.host.is_empty() {
                assert_eq!(refusal(&recording.host), None, "{}", recording.name);
            }
            continue;
        }
        count += 1;
        let about_image = recording.name.starts_with("invalid/image_")
            && recording.name != "invalid/image_only_empty_list";
        if about_image {
            // Pictures are judged once every line was read; `observer` and the agent's tests have their words.
            assert_eq!(refusal(&recording.host), None, "{}", recording.name);
        } else {
            assert_eq!(refusal(&recording.host), said, "{}", recording.name);
        }
        assert_eq!(recording.exit, 2);
    }
    assert_eq!(count, 36);
}

#[test]
fn sp_02_what_is_wrong_first_counts() {
    let fault = |line: &str| Input::read(line.as_bytes(), &mut Members::new()).unwrap_err();
    let field = |name: &str| InputFault::UnknownField(name.to_owned());
    for (line, expected) in [
        (r#"{"b":1,"a":2}"#, field("b")),
        (
            r#"{"schemaVersion":"x","type":"message","zzz":1}"#,
            field("zzz"),
        ),
        (r#"{"type":7,"role":"user"}"#, field("role")),
        (r#"{"type":"prompt","images":[]}"#, field("images")),
        (r#"{"type":7}"#, InputFault::NotAnObject),
        (
            r#"{"schemaVersion":9223372036854775808}"#,
            InputFault::NotAnObject,
        ),
        (r#"{"schemaVersion":2e0}"#, InputFault::NotAnObject),
        (
            r#"{"type":"message","role":7,"schemaVersion":3}"#,
            InputFault::NotAnObject,
        ),
        (r#"{"type":"message","images":{}}"#, InputFault::NotAnObject),
        (
            r#"{"type":"message","images":[7]}"#,
            InputFault::NotAnObject,
        ),
        (
            r#"{"type":"message","images":[{"data":7}]}"#,
            InputFault::NotAnObject,
        ),
        ("{}", InputFault::Version),
        ("null", InputFault::Version),
        (r#"{"schemaVersion":-2,"content":"x"}"#, InputFault::Version),
        (r#"{"schemaVersion":null,"type":"x"}"#, InputFault::Version),
        (r#"{"schemaVersion":2,"type":"x"}"#, InputFault::Content),
        (
            r#"{"schemaVersion":2,"content":"\u00a0\u2003"}"#,
            InputFault::Content,
        ),
        (
            r#"{"schemaVersion":2,"type":"message","content":"x"}"#,
            InputFault::Role,
        ),
        (
            r#"{"schemaVersion":2,"type":null,"content":"x"}"#,
            InputFault::Type,
        ),
        ("\u{feff}{}", InputFault::NotAnObject),
        ("{} {}", InputFault::NotAnObject),
        ("7", InputFault::NotAnObject),
        ("", InputFault::NotAnObject),
    ] {
        assert_eq!(fault(line), expected, "{line}");
    }
}

#[test]
fn sp_02_sp_a09_a_message_may_be_a_picture_alone() {
    let line = r#"{"schemaVersion":2,"type":"message","role":"user","content":" ","images":[null,{"mediaType":null,"data":"eA==","zzz":[]},{"mediaType":"png","mediaType":"gif","data":"\u0065A=="}]}"#;
    let mut members = Members::new();
    let input = Input::read(line.as_bytes(), &mut members).unwrap();
    assert_eq!(input.content(), " ");
    assert_eq!(
        input.images(),
        [
            Image::default(),
            Image {
                media_type: "".into(),
                data: "eA==".into()
            },
            Image {
                media_type: "gif".into(),
                data: "eA==".into()
            },
        ]
    );
    let mut out = Vec::new();
    let whole = Input::Message {
        content: "see\n".into(),
        images: vec![Image {
            media_type: "image/png".into(),
            data: "eA==".into(),
        }],
    };
    whole.encode(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"schemaVersion":2,"type":"message","role":"user","content":"see\n","images":[{"mediaType":"image/png","data":"eA=="}]}"#
    );
}

fn any_line() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        Just(json!(2)),
        Just(json!("prompt")),
        Just(json!("message")),
        Just(json!("user")),
        Just(json!("text")),
        Just(json!(null)),
        Just(json!([{"mediaType": "image/png", "data": "eA=="}])),
        Just(json!([])),
        any::<String>().prop_map(Value::from),
    ];
    let name = prop_oneof![
        8 => prop::sample::select(vec!["schemaVersion", "type", "role", "content", "images"]).prop_map(str::to_owned),
        1 => "[a-z]{1,3}",
    ];
    prop::collection::vec((name, value), 0..7)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    /// What is read is written so that it reads the same, and never as something else.
    #[test]
    fn sp_01_sp_02_l10_inputs_come_back(line in any_line()) {
        if let Some(result) = splice_host_again(line.to_string().as_bytes()) {
            prop_assert_eq!(result, Ok(()));
        }
    }

    #[test]
    fn l9_sp_02_any_bytes_are_read_or_refused(line in prop::collection::vec(any::<u8>(), 0..60)) {
        let _: Result<(), InputFault> = Input::read(&line, &mut Members::new()).map(|_| ());
    }
}
