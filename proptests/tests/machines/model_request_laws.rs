//! Any history becomes a strict body in which every call has its one result.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::requests;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use requests::{encoded, list, message, pairs, request, tool, word};
use serde_json::Value;
use turnwire::model::{Api, ReasoningField, RequestOptions};
use turnwire::vocab::*;

fn some_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("  \n".into()),
        "[ -~]{0,12}",
        "\\PC{0,6}",
        Just("\u{2028}\"\\\u{0}🦀".into())
    ]
}

fn some_json() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"a":"\ud83e","n":12345678901234567890}"#.to_owned()),
        Just(" {\"a\" :\n[1e99,{\"a\":null}]} ".to_owned()),
        Just(r#"{"a":1,"a":2}"#.to_owned()),
        Just("[1]".to_owned()),
        Just("{\"a\":".to_owned()),
        some_text(),
    ]
}

fn leaf_block() -> impl Strategy<Value = Block> {
    let source = prop_oneof![
        some_text().prop_map(|text| Source::Url(text.into())),
        some_text().prop_map(|text| Source::Inline {
            mime: "image/png".into(),
            base64: text.into()
        }),
    ];
    prop_oneof![
        4 => some_text().prop_map(|text| Block::Text(text.into())),
        1 => (some_text(), prop::option::of(some_text())).prop_map(|(text, signature)| Block::Thinking { text: text.into(), signature: signature.map(Into::into) }),
        1 => some_text().prop_map(|text| Block::Redacted(text.into())),
        1 => (prop_oneof![Just(MediaKind::Image), Just(MediaKind::Document)], source).prop_map(|(kind, source)| Block::Media { kind, source }),
        1 => some_json().prop_map(|text| Block::Opaque(RawJson(text.into()))),
    ]
}

fn some_block() -> impl Strategy<Value = Block> {
    let id = prop::option::of(prop_oneof![
        Just(String::new()),
        Just("call_1".into()),
        "c[0-2]",
        "\\PC{1,3}"
    ]);
    let name = prop_oneof![Just("t".to_owned()), Just(String::new()), "\\PC{0,80}"];
    let tool_use = (0..5u64, id, name, some_json(), any::<bool>()).prop_map(
        |(call, id, name, args, parsed)| {
            let input = if parsed {
                ToolInput::Object(RawJson(args.into()))
            } else {
                ToolInput::Unparsed(args.into())
            };
            Block::ToolUse {
                call: CallId(call),
                provider_id: id.map(Into::into),
                name: name.into(),
                input,
            }
        },
    );
    let tool_result = (
        0..5u64,
        prop::collection::vec(leaf_block(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(call, content, is_error)| Block::ToolResult {
            call: CallId(call),
            content,
            is_error,
        });
    prop_oneof![3 => leaf_block(), 3 => tool_use, 1 => tool_result]
}

fn some_role() -> impl Strategy<Value = Role> {
    prop_oneof![
        2 => Just(Role::User),
        4 => Just(Role::Assistant),
        3 => (0..5u64, any::<bool>()).prop_map(|(call, error)| Role::Tool { call: CallId(call), name: "t".into(), error }),
        1 => Just(Role::Note),
        1 => Just(Role::Summary),
        1 => Just(Role::Shell),
        1 => some_text().prop_map(|role| Role::Other(role.into())),
    ]
}

fn some_history() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let message = (some_role(), prop::collection::vec(some_block(), 0..4))
        .prop_map(|(role, content)| message(role, content));
    prop::collection::vec(message, 0..10)
}

fn calls_in(history: &[Arc<Message>]) -> usize {
    let replies = history
        .iter()
        .filter(|message| message.role == Role::Assistant);
    replies
        .flat_map(|message| &message.content)
        .filter(|block| matches!(***block, Block::ToolUse { .. }))
        .count()
}

proptest! {
    #![proptest_config(turnwire_proptests::config(512))]

    #[test]
    fn s_31_any_history_is_strict_json_with_one_result_a_call(history in some_history(), cache in any::<bool>(), with_tools in any::<bool>()) {
        let tools = if with_tools { vec![tool("t")] } else { Vec::new() };
        let options = RequestOptions { prompt_cache: cache, reasoning: Some(ReasoningField::Reasoning), ..RequestOptions::default() };
        for api in [Api::OpenAi, Api::Anthropic] {
            let (text, value) = encoded(api, &request(&history, &tools), &options);
            let pairs = pairs(api, &value);
            prop_assert_eq!(pairs.len(), calls_in(&history));
            let ids: BTreeSet<&str> = pairs.iter().map(|pair| &*pair.0).collect();
            prop_assert_eq!(ids.len(), pairs.len(), "ids are unique");
            prop_assert!(ids.iter().all(|id| !id.is_empty()));
            prop_assert!(!text.contains("\\ud83e\""), "half a pair: {}", text);
            prop_assert_eq!(&text, &encoded(api, &request(&history, &tools), &options).0, "the same history gives the same bytes");
            for message in list(&value["messages"]) {
                for call in list(&message["tool_calls"]) {
                    let args = word(&call["function"]["arguments"]);
                    prop_assert!(serde_json::from_str::<serde_json::Map<String, Value>>(&args).is_ok(), "{}", args);
                }
                for block in list(&message["content"]).filter(|block| block["type"] == "tool_use") {
                    prop_assert!(block["input"].is_object());
                }
            }
            if api == Api::Anthropic {
                let roles: Vec<String> = list(&value["messages"]).map(|message| word(&message["role"])).collect();
                prop_assert!(roles.iter().enumerate().all(|(at, role)| role == if at % 2 == 0 { "user" } else { "assistant" }), "{:?}", roles);
                prop_assert!(list(&value["messages"]).all(|message| !message["content"].as_array().unwrap().is_empty()));
            }
        }
    }
}
