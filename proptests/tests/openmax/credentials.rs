//! No line of a Server holds a credential, wherever it came from and however it is spelt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::*;
use proptest::prelude::*;
use serde_json::Value;
use turnwire::protocol::{Credentials, LEAST_BYTES, MASK};
use turnwire::vocab::*;

/// A value with all that JSON escapes, and with what it doesn't.
fn credential() -> impl Strategy<Value = String> {
    "[a-cA-C0-1/\"\\\\\n\t\u{1}äß漢😀-]{8,24}"
        .prop_filter("the mask may stand in a line", |text| !MASK.contains(text))
}

/// A string of JSON for a text, each character in one of its spellings.
fn spelt(text: &str, how: &[u8]) -> String {
    let mut json = String::from("\"");
    for (at, char) in text.chars().enumerate() {
        let mut units = [0; 2];
        match how.get(at % how.len().max(1)).copied().unwrap_or(0) % 3 {
            0 => {
                let plain = serde_json::to_string(&char.to_string()).unwrap();
                json.push_str(&plain[1..plain.len() - 1]);
            }
            1 => {
                for unit in char.encode_utf16(&mut units) {
                    json.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ if char == '/' => json.push_str("\\/"),
            _ => {
                for unit in char.encode_utf16(&mut units) {
                    json.push_str(&format!("\\u{unit:04X}"));
                }
            }
        }
    }
    json.push('"');
    json
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(list) => list.iter().any(|value| holds(value, text)),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains(text) || holds(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A turn that has the text in every place where a text of others can stand.
fn lines(hidden: Option<&str>, text: &str, args: &str) -> Vec<String> {
    let mut rig = Rig::opened();
    if let Some(hidden) = hidden {
        rig.server
            .hide(Credentials::new([hidden]).unwrap())
            .unwrap();
    }
    rig.turn();
    rig.delta(Kind::Thinking, text);
    rig.delta(Kind::Text, text);
    rig.event(message_ended(text, Stop::ToolUse, true));
    rig.event(complete());
    let input = format!(r#"{{"path":{args},{args}:[{args},"x"]}}"#);
    rig.event(tool_started(1, text, object(&input)));
    rig.event(What::Asked {
        ask: AskId(1),
        body: Ask::Permission(Box::new(PermissionAsk {
            summary: text.into(),
            detail: text.into(),
            ..permission(AskReason::Gate)
        })),
    });
    rig.event(What::FileChanged {
        call: Some(CallId(1)),
        path: text.into(),
        diff: format!("+{text}\n").into(),
        added: 1,
        removed: 0,
    });
    rig.event(tool_ended(1, ToolOutcome::Ok, &format!("<{text}{text}>")));
    rig.event(What::HookFailed {
        hook: "h".into(),
        point: HookPoint::TurnEnd,
        detail: text.into(),
    });
    rig.event(What::Notice {
        level: Level::Error,
        code: None,
        text: text.into(),
    });
    rig.host(&format!(
        r#"{{"cmd":"approve","approval_id":{args},"approved":true}}"#
    ));
    let prompt = PromptId(1);
    rig.event(turn_ended(End::Failed(failure(text)), false));
    rig.event(What::PromptEnded {
        prompt,
        end: End::Failed(failure(text)),
    });
    rig.lines()
}

proptest! {
    #![proptest_config(turnwire_proptests::config(256))]

    #[test]
    fn tw_04_no_line_holds_a_credential_in_any_spelling(
        secret in credential(),
        before in "[a-c\\\\\"\n]{0,6}",
        how in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        let text = format!("{before}{secret}\n");
        let args = spelt(&text, &how);
        let shown = lines(None, &text, &args);
        let hidden = lines(Some(&secret), &text, &args);
        prop_assert_eq!(shown.len(), hidden.len(), "no line goes");
        prop_assert!(shown.len() >= 11, "{:?}", shown);
        let mut found = 0;
        for (shown, hidden) in shown.iter().zip(&hidden) {
            let (was, is): (Value, Value) =
                (serde_json::from_str(shown).unwrap(), serde_json::from_str(hidden).unwrap());
            prop_assert_eq!(&was["type"], &is["type"]);
            prop_assert!(!holds(&is, &secret), "{}", hidden);
            found += usize::from(holds(&was, &secret));
            if !holds(&was, &secret) {
                prop_assert_eq!(shown, hidden, "another line stays as it was");
            }
        }
        prop_assert!(found >= 9, "the property is about something: {}", found);
    }

    #[test]
    fn tw_04_short_values_and_none_change_nothing(text in "[a-c]{0,7}") {
        let args = spelt("aabbaacc", &[0, 1]);
        assert!(text.len() < LEAST_BYTES);
        prop_assert_eq!(
            lines(None, "aabbaacc", &args),
            lines(Some(&text), "aabbaacc", &args)
        );
    }
}

/// Speed: once warm, looking for credentials allocates nothing for a token, with escapes in it or without.
#[test]
fn a_token_needs_no_new_buffer_while_credentials_are_looked_for() {
    let mut rig = Rig::opened();
    rig.server
        .hide(Credentials::new(["a-secret-value"]).unwrap())
        .unwrap();
    rig.turn();
    let mut lines = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..1_000 {
        let text = if round % 2 == 0 {
            "a token\n"
        } else {
            "a token "
        };
        let delta = DeltaRef {
            at: rig.now,
            run: RunId::MAIN,
            message: MessageId(1),
            block: 0,
            kind: Kind::Text,
            text,
        };
        lines.clear();
        rig.server.handle_delta(&delta);
        assert!(rig.server.poll_output(&mut lines).is_none());
        if round > 10 {
            seen.insert(lines.as_ptr());
        }
    }
    assert!(seen.len() <= 2, "{seen:?}");
}
