//! The form of the lines: nothing is lost, and damage is seen.

use turnwire::vocab::{JobId, MediaKind, Source, Stored};

use super::super::format::{Decoder, Line, write_head, write_message};
use super::super::{Binding, Entry};
use super::*;

fn written(message: &Message) -> String {
    let mut out = Vec::new();
    write_message(&mut out, message);
    let text = String::from_utf8(out).unwrap();
    let line = text.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'), "{line}");
    line.to_owned()
}

fn read(line: &str) -> Result<Message, String> {
    match Decoder::default().line(line.as_bytes())? {
        Line::Message(message) => Ok(message),
        Line::Head { .. } | Line::Name(_) => Err("no message".to_owned()),
    }
}

#[track_caller]
fn keeps(message: &Message) {
    let line = written(message);
    assert_eq!(read(&line).as_ref(), Ok(message), "{line}");
    // It is JSON for everybody else, too.
    serde_json::from_str::<serde_json::Value>(&line).unwrap();
}

#[test]
fn every_kind_of_block_comes_back() {
    let json = |text: &str| RawJson(text.into());
    let tool = |input| Block::ToolUse {
        call: CallId(7),
        provider_id: None,
        name: "bash".into(),
        input,
    };
    let stored = Stored {
        blob: "b".into(),
        id: "i".into(),
        name: "n.png".into(),
        mime: "image/png".into(),
        size: u64::MAX,
        sha256: core::array::from_fn(|n| n as u8 * 8 + 1),
    };
    let media = |kind, source| Block::Media { kind, source };
    let blocks = vec![
        Block::Text("".into()),
        Block::Text("a\"b\\c\n\r\t\u{0}\u{7f}\u{2028} 🦀".into()),
        Block::Thinking {
            text: "hm".into(),
            signature: None,
        },
        Block::Thinking {
            text: "hm".into(),
            signature: Some("c2ln".into()),
        },
        Block::Redacted("xx".into()),
        media(
            MediaKind::Image,
            Source::Inline {
                mime: "image/png".into(),
                base64: "AAAA".into(),
            },
        ),
        media(MediaKind::Document, Source::Url("https://e.x/y".into())),
        media(MediaKind::Image, Source::Stored(Arc::new(stored))),
        tool(ToolInput::Object(json("{\"a\": 1.50e+3}"))),
        // These can't stand in a line as they are.
        tool(ToolInput::Object(json("{\n \"a\":\r\n1}"))),
        tool(ToolInput::Object(json("{\"a\":1,\"a\":2}"))),
        tool(ToolInput::Object(json(" {} "))),
        tool(ToolInput::Object(json("{\"a\":\"\\ud83d\"}"))),
        tool(ToolInput::Object(json(&format!(
            "{{\"a\":{}{}}}",
            "[".repeat(100),
            "]".repeat(100)
        )))),
        tool(ToolInput::Unparsed("{\"a\":".into())),
        tool(ToolInput::Unparsed("{}".into())),
        Block::ToolUse {
            call: CallId(u64::MAX),
            provider_id: Some("".into()),
            name: "".into(),
            input: ToolInput::Object(json("{}")),
        },
        Block::ToolResult {
            call: CallId(7),
            content: vec![
                Block::Text("in".into()),
                Block::ToolResult {
                    call: CallId(8),
                    content: vec![],
                    is_error: true,
                },
            ],
            is_error: false,
        },
        Block::Opaque(json("null")),
        Block::Opaque(json("[1,{\"x\":null}]")),
        Block::Opaque(json("no json at all")),
    ];
    for block in &blocks {
        keeps(&message(1, Role::Assistant, vec![block.clone()]));
    }
    keeps(&message(2, Role::Assistant, blocks));
}

#[test]
fn every_role_origin_and_member_comes_back() {
    let roles = [
        Role::User,
        Role::Assistant,
        Role::Tool {
            call: CallId(3),
            name: "read".into(),
            error: true,
        },
        Role::Note,
        Role::Summary,
        Role::Shell,
        Role::Other("critic".into()),
    ];
    for role in roles {
        keeps(&message(1, role, vec![]));
    }
    let origins = [
        Origin::Host,
        Origin::Hook("lint".into()),
        Origin::GoalCheck,
        Origin::GoalReminder,
        Origin::GoalContinue { left: u32::MAX },
        Origin::PlanReminder,
        Origin::Job(JobId(9)),
        Origin::Interrupted,
        Origin::Harness,
        Origin::Extension("x".into()),
        Origin::History,
    ];
    for origin in origins {
        for details in [None, Some("{\"k\":[1]}"), Some("null"), Some("{\n}")] {
            keeps(&Message {
                id: MessageId(u64::MAX),
                role: Role::User,
                content: vec![],
                origin: origin.clone(),
                prompt: Some(PromptId(u64::MAX)),
                about: Some(CallId(4)),
                at_ms: u64::MAX,
                details: details.map(|text| RawJson(text.into())),
            });
        }
    }
}

#[test]
fn the_form_stays_as_it_is() {
    let line = written(&call(5, 2, "{\"command\":\"ls\"}"));
    assert_eq!(
        line,
        "{\"type\":\"message\",\"id\":5,\"role\":\"assistant\",\"at\":1700000000005,\"content\":[{\"type\":\
         \"tool_call\",\"call\":2,\"provider_id\":\"c\",\"name\":\"bash\",\"input\":{\"command\":\"ls\"}}],\
         \"origin\":\"harness\"}"
    );
    // Members that aren't known are nobody's business.
    let more = line.replace("\"origin\":", "\"new\":{\"a\":[]},\"origin\":");
    assert_eq!(read(&more), read(&line));
}

#[test]
fn what_isnt_a_line_is_said_in_words() {
    for (line, want) in [
        ("", "no value"),
        ("[]", "object"),
        ("{\"type\":\"message\"", "found the end"),
        ("{}", "it has no type"),
        ("{\"type\":\"cut\"}", "unknown type \"cut\""),
        (
            "{\"type\":\"session\",\"version\":2,\"id\":\"x\"}",
            "version 2",
        ),
        ("{\"type\":\"message\",\"id\":1}", "role"),
        (
            "{\"type\":\"message\",\"id\":-1,\"role\":\"user\",\"at\":1,\"content\":[],\"origin\":\"host\"}",
            "id",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"king\",\"at\":1,\"content\":[],\"origin\":\"host\"}",
            "unknown role \"king\"",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"tool\",\"at\":1,\"content\":[],\"origin\":\"host\"}",
            "call is missing",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"user\",\"at\":1,\"content\":[],\"origin\":\"job\"}",
            "origin_number is missing",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"user\",\"at\":1,\"content\":[{\"type\":\"text\"}],\
             \"origin\":\"host\"}",
            "text is missing",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"user\",\"at\":1,\"content\":[{\"type\":\"image\",\
             \"blob\":\"b\",\"id\":\"\",\"name\":\"\",\"mime\":\"\",\"size\":1,\"sha256\":\"é\"}],\
             \"origin\":\"host\"}",
            "sha256",
        ),
        (
            "{\"type\":\"message\",\"id\":1,\"role\":\"user\",\"at\":1,\"content\":[{\"type\":\"poem\"}],\
             \"origin\":\"host\"}",
            "unknown type \"poem\"",
        ),
    ] {
        let fault = Decoder::default().line(line.as_bytes()).unwrap_err();
        assert!(
            fault.contains(want),
            "{want:?} isn't in {fault:?} of {line}"
        );
    }
    let line = written(&user(1, "x")).into_bytes();
    let mut bad = line.clone();
    let at = line.len() - 20;
    bad[at] = 0xff;
    assert!(Decoder::default().line(&bad).is_err());
}

#[test]
fn who_served_the_model_at_first_is_kept_whole_or_not_at_all() {
    let head = |binding: Option<&Binding>| {
        let mut out = Vec::new();
        let entry = Entry {
            id: "a".to_owned(),
            project: "/p".to_owned(),
            title: String::new(),
            created_at: 1,
            updated_at: 1,
        };
        write_head(&mut out, &entry, None, binding);
        String::from_utf8(out).unwrap()
    };
    let found = |line: &str| match Decoder::default().line(line.trim_end().as_bytes())? {
        Line::Head { binding, .. } => Ok(binding),
        Line::Message(_) | Line::Name(_) => Err("no head".to_owned()),
    };
    let binding = Binding {
        provider: "sol \u{2028}".to_owned(),
        kind: "openai".to_owned(),
        model: "m \"1\"".to_owned(),
        route: "00ff".to_owned(),
    };
    assert_eq!(found(&head(None)), Ok(None));
    let line = head(Some(&binding));
    assert_eq!(found(&line), Ok(Some(binding)));
    let part = line.replace(",\"route\":\"00ff\"", "");
    assert!(found(&part).unwrap_err().contains("part"));
}
