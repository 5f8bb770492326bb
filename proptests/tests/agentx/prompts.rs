//! What a `user` record says, and when it makes no sense (WIRE-017, WIRE-020, WIRE-022; AX-S22, AX-S24).

use turnwire::json::Members;
use turnwire::protocol::agentx::policy::Policy;
use turnwire::protocol::agentx::prompt::{InputFault, Part, Prompt};
use turnwire::protocol::agentx::wire::{
    AgentLine, CLOSED_RULES, HostLine, Kept, OPEN_RULES, Priority, User,
};

fn read<'a>(line: &'a str, policy: &Policy) -> Result<Prompt<'a>, InputFault> {
    let mut members = Members::new();
    let line = HostLine::decode(line.as_bytes(), &OPEN_RULES, &mut members).unwrap();
    let HostLine::User(user) = line else {
        panic!("{line:?}");
    };
    Prompt::read(&user, policy)
}

fn of_message(message: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27","message":{message}}}"#
    )
}

fn text(message: &str, policy: &Policy) -> Result<String, InputFault> {
    read(&of_message(message), policy).map(|prompt| prompt.text())
}

const MANIFEST: &str = r#"{"type":"attachment_ref","attachment_id":"att_image1","kind":"image","name":"screen.png","mime_type":"image/png","size_bytes":12345,"sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","storage_id":"blob_sha256_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}"#;

#[test]
fn wire_017_ax_s24_a_message_is_a_text_or_has_one() {
    for (message, said) in [
        (r#""hi""#, "hi"),
        (r#"{"content":"hi"}"#, "hi"),
        (r#"{"role":"user","content":"hi"}"#, "hi"),
        (r#"{"content":[{"type":"text","text":"a"}]}"#, "a"),
        (
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_text","text":"b"}]}"#,
            "a\nb",
        ),
        (
            r#"{"content_version":1,"content":[{"type":"input_text","text":"b"}]}"#,
            "b",
        ),
    ] {
        assert_eq!(
            text(message, &Policy::AGENTX).as_deref(),
            Ok(said),
            "{message}"
        );
    }
}

#[test]
fn wire_021_a_message_that_isnt_one_is_an_input_error() {
    for message in [
        "null",
        "5",
        r#""""#,
        r#"" \n""#,
        "{}",
        r#"{"content":5}"#,
        r#"{"content":""}"#,
        r#"{"content":[]}"#,
        r#"{"role":"assistant","content":"x"}"#,
        r#"{"role":"user","content":"x","bogus":1}"#,
        r#"{"content":"x","content_version":1}"#,
        r#"{"content":[{"type":"text","text":"x"}],"content_version":2}"#,
        r#"{"content":[{"type":"text","text":"x"}],"content_version":null}"#,
        r#"{"content":[{"type":"text","text":" "}]}"#,
        r#"{"content":[{"type":"text","text":"x","bogus":1}]}"#,
        r#"{"content":[{"type":"text","text":"x","citations":[]}]}"#,
        r#"{"content":[{"type":"text"}]}"#,
        r#"{"content":[{"type":"image","source":{}}]}"#,
        r#"{"content":[{"type":"tool_result","tool_use_id":"t"}]}"#,
        r#"{"content":["x"]}"#,
    ] {
        assert_eq!(
            read(&of_message(message), &Policy::AGENTX),
            Err(InputFault::Message),
            "{message}"
        );
    }
    assert_eq!(
        read(r#"{"type":"user"}"#, &Policy::AGENTX),
        Err(InputFault::Message)
    );
}

#[test]
fn claude_wants_an_object_of_a_user_and_takes_its_media() {
    for message in [
        "null",
        r#""hi""#,
        r#"{"content":"x"}"#,
        r#"{"role":"assistant","content":"x"}"#,
    ] {
        assert_eq!(
            text(message, &Policy::CLAUDE),
            Err(InputFault::Message),
            "{message}"
        );
    }
    for message in [
        r#"{"role":"user","content":"hi","bogus":1}"#,
        r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{}}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"base64"}},{"type":"text","text":"hi"}]}"#,
    ] {
        assert_eq!(
            text(message, &Policy::CLAUDE).as_deref(),
            Ok("hi"),
            "{message}"
        );
    }
    let message =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#;
    let line = of_message(message);
    let prompt = read(&line, &Policy::CLAUDE).unwrap();
    assert!(matches!(prompt.parts.as_slice(), [Part::Block(_)]));
}

#[test]
fn wire_020_priority_and_ids_are_judged_before_anything_is_queued() {
    let line = |more: &str| {
        format!(r#"{{"type":"user",{more}"message":{{"role":"user","content":"x"}}}}"#)
    };
    for (more, expected) in [
        ("", Ok(Priority::Next)),
        (r#""priority":"now","#, Ok(Priority::Now)),
        (r#""priority":"later","#, Ok(Priority::Later)),
        (r#""priority":"soon","#, Err(InputFault::Priority)),
        (r#""priority":5,"#, Err(InputFault::Priority)),
        (r#""isReplay":true,"#, Err(InputFault::ReplayIds)),
        (r#""isReplay":true,"uuid":"u","#, Err(InputFault::ReplayIds)),
        (
            r#""isReplay":true,"uuid":"u","session_id":"s","#,
            Ok(Priority::Next),
        ),
        (r#""uuid":"a b","#, Err(InputFault::Uuid)),
        (r#""uuid":"a\u0000","#, Err(InputFault::Uuid)),
    ] {
        let line = line(more);
        let read = read(&line, &Policy::AGENTX).map(|prompt| prompt.priority);
        assert_eq!(read, expected, "{line}");
    }
    let long = "u".repeat(257);
    let line = line(&format!(r#""uuid":"{long}","#));
    assert_eq!(read(&line, &Policy::AGENTX), Err(InputFault::Uuid));
    assert!(read(&line, &Policy::CLAUDE).is_ok());
}

#[test]
fn wire_020_attachments_of_a_prompt_belong_together() {
    let with = |blocks: &str| format!(r#"{{"content_version":1,"content":[{blocks}]}}"#);
    let one = with(MANIFEST);
    let line = of_message(&one);
    let prompt = read(&line, &Policy::AGENTX).unwrap();
    assert_eq!(prompt.attachments().count(), 1);
    let other = |number: usize| MANIFEST.replace("att_image1", &format!("att_{number}"));
    let many = |count: usize| (0..count).map(other).collect::<Vec<_>>().join(",");
    let table = [
        (with(&many(8)), Ok(())),
        (with(&many(9)), Err(InputFault::Attachments)),
        (
            with(&format!("{MANIFEST},{MANIFEST}")),
            Err(InputFault::Attachments),
        ),
        (
            with(&format!("{},{}", many(3), other(2))),
            Err(InputFault::Attachments),
        ),
        (
            format!(r#"{{"content":[{MANIFEST}]}}"#),
            Err(InputFault::Message),
        ),
        (
            with(&MANIFEST.replace("\"image\"", "\"document\"")),
            Err(InputFault::Attachments),
        ),
        (
            with(&MANIFEST.replace("blob_sha256_0", "blob_sha256_1")),
            Err(InputFault::Attachments),
        ),
        (
            with(&MANIFEST.replace("12345", "0")),
            Err(InputFault::Attachments),
        ),
        (
            with(&MANIFEST.replace("\"size_bytes\"", "\"path\":\"/x\",\"size_bytes\"")),
            Err(InputFault::Message),
        ),
    ];
    for (message, expected) in table {
        let line = of_message(&message);
        assert_eq!(
            read(&line, &Policy::AGENTX).map(|_| ()),
            expected,
            "{message}"
        );
        assert_eq!(
            read(&line, &Policy::CLAUDE).map(|_| ()),
            Err(InputFault::Message)
        );
    }
    // Only a UUID can have attachments.
    let line = line_without_uuid(&one);
    assert_eq!(read(&line, &Policy::AGENTX), Err(InputFault::Attachments));
}

fn line_without_uuid(message: &str) -> String {
    format!(r#"{{"type":"user","uuid":"u1","message":{message}}}"#)
}

#[test]
fn wire_022_ax_s22_a_replay_keeps_order_version_and_manifest_and_says_nothing_more() {
    let message = format!(
        r#"{{"role":"user","content_version":1,"content":[{{"type":"input_text","text":"a"}},{MANIFEST},{{"type":"text","text":"b"}}]}}"#
    );
    let line = of_message(&message);
    let prompt = read(&line, &Policy::AGENTX).unwrap();
    let replay = AgentLine::from(User {
        message: Some(Kept::Known(prompt.replayed().into())),
        uuid: prompt.uuid.clone(),
        session_id: Some("s".into()),
        is_replay: Some(true),
        ..User::default()
    });
    let mut out = Vec::new();
    replay.encode(&mut out);
    let canonical = message.replace("input_text", "text");
    let expected = format!(
        r#"{{"type":"user","message":{canonical},"session_id":"s","uuid":"3f1e7948-5c1f-4c1f-8e2c-88bc9839ec27","isReplay":true}}"#
    );
    let value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    assert_eq!(value(&out), value(expected.as_bytes()));
    // It is read again as what it was.
    let mut members = Members::new();
    assert_eq!(
        AgentLine::decode(&out, &CLOSED_RULES, &mut members),
        Ok(replay)
    );
}
