//! Request bodies of both APIs: strict JSON, every call with its one result, nothing lost that matters.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

use crate::requests;

use std::sync::Arc;

use requests::{body, call, encoded, message, pairs, request, result, text, tool, user};
use serde_json::{Value, json};
use turnwire::model::{
    Api, MaxTokensField, MediaLimits, ReasoningField, RequestOptions, encode_with_media, fill,
    filled_len,
};
use turnwire::vocab::*;

#[test]
fn om_member_order_of_a_chat_completion() {
    let options = RequestOptions {
        temperature: Some(0.2),
        ..RequestOptions::default()
    };
    let (text, value) = encoded(
        Api::OpenAi,
        &request(&[user("hi")], &[tool("list_dir")]),
        &options,
    );
    let order = [
        "\"model\":",
        "\"messages\":",
        "\"temperature\":",
        "\"max_tokens\":",
        "\"stream\":",
        "\"stream_options\":",
        "\"tools\":",
        "\"tool_choice\":",
    ];
    let places: Vec<usize> = order
        .iter()
        .map(|name| text.find(name).expect(name))
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(
        value,
        json!({
            "model": "m-1",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
            "temperature": 0.2, "max_tokens": 100, "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "list_dir", "description": "does it",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}],
            "tool_choice": "auto",
        })
    );
}

#[test]
fn what_is_not_configured_is_left_out() {
    let messages = [user("hi")];
    let bare = ModelRequest {
        system: None,
        max_output: None,
        ..request(&messages, &[])
    };
    let options = RequestOptions {
        include_usage: false,
        ..RequestOptions::default()
    };
    let (_, value) = encoded(Api::OpenAi, &bare, &options);
    assert_eq!(
        value,
        json!({"model": "m-1", "messages": [{"role": "user", "content": "hi"}], "stream": true})
    );
    let (_, value) = encoded(Api::Anthropic, &bare, &options);
    let user = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]});
    assert_eq!(
        value,
        json!({"model": "m-1", "max_tokens": 8192, "messages": [user], "stream": true})
    );
}

#[test]
fn options_of_an_open_ai_compatible_server() {
    let reply = message(
        Role::Assistant,
        vec![
            Block::Thinking {
                text: "hm".into(),
                signature: None,
            },
            text("yes"),
        ],
    );
    let messages = [user("hi"), reply, user("go on")];
    let asked = ModelRequest {
        thinking: Some("high"),
        ..request(&messages, &[])
    };
    let options = RequestOptions {
        max_tokens_field: MaxTokensField::MaxCompletionTokens,
        reasoning: Some(ReasoningField::ReasoningContent),
        stream: false,
        extra: vec![
            ("seed".into(), RawJson("7".into())),
            ("bad".into(), RawJson("{".into())),
        ],
        ..RequestOptions::default()
    };
    let (_, value) = encoded(Api::OpenAi, &asked, &options);
    assert_eq!(value["max_completion_tokens"], 100);
    assert_eq!(value["reasoning_effort"], "high");
    assert_eq!(value["stream"], false);
    assert_eq!(value["seed"], 7);
    assert!(value.get("bad").is_none() && value.get("stream_options").is_none());
    assert_eq!(
        value["messages"][2],
        json!({"role": "assistant", "content": "yes", "reasoning_content": "hm"})
    );
    let (_, value) = encoded(Api::OpenAi, &asked, &RequestOptions::default());
    assert!(
        value["messages"][2].get("reasoning_content").is_none(),
        "thinking stays at home unless configured"
    );
}

#[test]
fn e03_calls_are_paired_with_results_in_both_dialects() {
    let reply = message(
        Role::Assistant,
        vec![
            text("look"),
            call(1, Some("c1"), "t", r#"{"n":1}"#),
            call(2, Some("c2"), "t", r#"{"n":2}"#),
        ],
    );
    // Results out of order, and something in between: both are put right.
    let history = [
        user("go"),
        reply,
        result(2, "two", true),
        user("also"),
        result(1, "one", false),
    ];
    let openai = body(Api::OpenAi, &history);
    assert_eq!(
        openai["messages"].as_array().unwrap()[2..],
        [
            json!({"role": "assistant", "content": "look", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{\"n\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "t", "arguments": "{\"n\":2}"}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "c2", "content": "Error: two"}),
            json!({"role": "user", "content": "also"}),
        ]
    );
    let anthropic = body(Api::Anthropic, &history);
    assert_eq!(
        anthropic["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "assistant", "content": [{"type": "text", "text": "look"},
                {"type": "tool_use", "id": "c1", "name": "t", "input": {"n": 1}},
                {"type": "tool_use", "id": "c2", "name": "t", "input": {"n": 2}}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "two", "is_error": true},
                {"type": "text", "text": "also"}]}),
        ]
    );
}

#[test]
fn s_31_a_call_without_result_and_a_result_without_call() {
    let history = [
        user("go"),
        message(Role::Assistant, vec![call(1, Some("c1"), "t", "{}")]),
        result(9, "lost", false),
    ];
    let openai = body(Api::OpenAi, &history);
    assert_eq!(openai["messages"][3]["tool_call_id"], "c1");
    assert!(
        openai["messages"][3]["content"]
            .as_str()
            .unwrap()
            .contains("not run")
    );
    assert_eq!(openai["messages"][4]["role"], "user");
    assert!(
        openai["messages"][4]["content"]
            .as_str()
            .unwrap()
            .ends_with("lost")
    );
    let anthropic = body(Api::Anthropic, &history);
    assert_eq!(anthropic["messages"][2]["content"][0]["is_error"], true);
    assert!(
        anthropic["messages"][2]["content"][1]["text"]
            .as_str()
            .unwrap()
            .ends_with("lost")
    );
}

#[test]
fn d06_missing_and_repeated_ids_are_replaced_in_call_and_result() {
    let history = [
        user("go"),
        message(
            Role::Assistant,
            vec![
                call(1, Some("n1"), "t", "{}"),
                call(2, Some("n1"), "t", "{}"),
                call(3, None, "t", "{}"),
            ],
        ),
        result(1, "1", false),
        result(2, "2", false),
        result(3, "3", false),
        message(
            Role::Assistant,
            vec![
                call(4, Some("n1"), "t", "{}"),
                call(5, Some("call_3"), "t", "{}"),
            ],
        ),
        result(4, "4", false),
        result(5, "5", false),
    ];
    for api in [Api::OpenAi, Api::Anthropic] {
        let pairs = pairs(api, &body(api, &history));
        let calls: Vec<&str> = pairs.iter().map(|pair| &*pair.0).collect();
        assert_eq!(calls, ["n1", "call_2", "call_3_2", "call_4", "call_3"]);
        assert_eq!(
            pairs.iter().map(|pair| &*pair.1).collect::<Vec<_>>(),
            ["1", "2", "3", "4", "5"]
        );
    }
}

#[test]
fn ids_and_names_that_a_provider_would_refuse_are_replaced() {
    let history = [
        user("go"),
        message(
            Role::Assistant,
            vec![
                call(7, Some("functions.t:0"), "made up!", "{}"),
                call(8, None, "", "{}"),
            ],
        ),
        result(7, "no", true),
    ];
    let openai = body(Api::OpenAi, &history);
    assert_eq!(
        openai["messages"][2]["tool_calls"][0]["id"],
        "functions.t:0"
    );
    assert_eq!(
        openai["messages"][2]["tool_calls"][0]["function"]["name"],
        "made_up_"
    );
    let anthropic = body(Api::Anthropic, &history);
    assert_eq!(anthropic["messages"][1]["content"][0]["id"], "call_7");
    assert_eq!(anthropic["messages"][1]["content"][1]["name"], "unnamed");
    assert_eq!(
        anthropic["messages"][2]["content"][0]["tool_use_id"],
        "call_7"
    );
    let declared = [tool("dotted.name")];
    let history = [
        user("go"),
        message(Role::Assistant, vec![call(7, None, "dotted.name", "{}")]),
    ];
    let (_, value) = encoded(
        Api::OpenAi,
        &request(&history, &declared),
        &RequestOptions::default(),
    );
    assert_eq!(
        value["messages"][2]["tool_calls"][0]["function"]["name"], "dotted.name",
        "declared names stay"
    );
}

#[test]
fn j05_numbers_keep_their_digits_in_both_dialects() {
    let args = r#"{"order":2512292042121000001,"ratio":0.10,"big":123456789012345678901234567890}"#;
    let history = [
        user("go"),
        message(Role::Assistant, vec![call(1, Some("c"), "t", args)]),
        result(1, "ok", false),
    ];
    for api in [Api::OpenAi, Api::Anthropic] {
        let (text, value) = encoded(api, &request(&history, &[]), &RequestOptions::default());
        match api {
            Api::OpenAi => assert_eq!(
                value["messages"][2]["tool_calls"][0]["function"]["arguments"],
                args
            ),
            Api::Anthropic => assert!(text.contains(args), "{text}"),
        }
    }
}

#[test]
fn d08_arguments_that_never_parsed_are_repeated_in_a_legal_form() {
    let broken = r#"{"path":"a","text":"half"#;
    let unparsed = |number, text: &str| Block::ToolUse {
        call: CallId(number),
        provider_id: Some(format!("c{number}").into()),
        name: "t".into(),
        input: ToolInput::Unparsed(text.into()),
    };
    let history = [
        user("go"),
        message(
            Role::Assistant,
            vec![
                unparsed(1, broken),
                unparsed(2, " "),
                unparsed(3, "[1]"),
                unparsed(4, r#"{"a":1}"#),
                unparsed(5, r#"{"a":1,"a":2}"#),
            ],
        ),
    ];
    let want = [
        json!({"unparsed_arguments": broken}),
        json!({}),
        json!({"unparsed_arguments": "[1]"}),
        json!({"a": 1}),
        json!({"unparsed_arguments": r#"{"a":1,"a":2}"#}),
    ];
    let openai = body(Api::OpenAi, &history);
    let anthropic = body(Api::Anthropic, &history);
    for (at, want) in want.iter().enumerate() {
        let text = openai["messages"][2]["tool_calls"][at]["function"]["arguments"]
            .as_str()
            .unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *want);
        assert_eq!(anthropic["messages"][1]["content"][at]["input"], *want);
    }
}

#[test]
fn j01_half_a_pair_in_arguments_never_reaches_a_provider() {
    let history = [
        user("go"),
        message(
            Role::Assistant,
            vec![call(
                1,
                Some("c"),
                "t",
                r#"{"a":"x\ud83e","b":"\ud83e\udd80"}"#,
            )],
        ),
    ];
    let openai = body(Api::OpenAi, &history);
    let text = openai["messages"][2]["tool_calls"][0]["function"]["arguments"]
        .as_str()
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        json!({"a": "x\u{fffd}", "b": "🦀"})
    );
    assert_eq!(
        body(Api::Anthropic, &history)["messages"][1]["content"][0]["input"],
        json!({"a": "x\u{fffd}", "b": "🦀"})
    );
}

#[test]
fn anthropic_thinking_goes_back_with_its_signature() {
    let thinking = |signature: Option<&str>| Block::Thinking {
        text: "hm".into(),
        signature: signature.map(Into::into),
    };
    let reply = message(
        Role::Assistant,
        vec![
            thinking(Some("sig")),
            Block::Redacted("xyz".into()),
            thinking(None),
            text("  "),
            text("yes"),
        ],
    );
    let history = [user("hi"), reply, user("more")];
    assert_eq!(
        body(Api::Anthropic, &history)["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "yes"},
        ])
    );
}

#[test]
fn anthropic_budget_effort_and_temperature() {
    let messages = [user("hi")];
    let options = RequestOptions {
        temperature: Some(1.0),
        ..RequestOptions::default()
    };
    let asked = ModelRequest {
        thinking_budget: Some(2_000),
        thinking: Some("low"),
        ..request(&messages, &[])
    };
    let (_, value) = encoded(Api::Anthropic, &asked, &options);
    assert_eq!(
        value["thinking"],
        json!({"type": "enabled", "budget_tokens": 2000})
    );
    assert_eq!(
        value["max_tokens"], 2100,
        "the budget counts towards the output"
    );
    assert_eq!(value["output_config"], json!({"effort": "low"}));
    assert!(value.get("temperature").is_none());
    let (_, value) = encoded(Api::Anthropic, &request(&messages, &[]), &options);
    assert_eq!(value["temperature"], 1);
    assert!(value.get("thinking").is_none());
}

#[test]
fn anthropic_roles_alternate_and_begin_with_the_user() {
    let history = [
        message(Role::Assistant, vec![text("first")]),
        message(Role::Assistant, vec![text("second")]),
        user("a"),
        user("b"),
    ];
    let messages = body(Api::Anthropic, &history)["messages"].clone();
    let roles: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(messages[1]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn anthropic_declares_tools_of_a_history_that_offers_none() {
    let history = [
        user("go"),
        message(Role::Assistant, vec![call(1, Some("c"), "old", "{}")]),
        result(1, "ok", false),
    ];
    let (_, value) = encoded(
        Api::Anthropic,
        &request(&history, &[]),
        &RequestOptions::default(),
    );
    assert_eq!(
        value["tools"],
        json!([{"name": "old", "input_schema": {"type": "object"}}])
    );
    assert_eq!(value["tool_choice"], json!({"type": "none"}));
}

#[test]
fn anthropic_marks_for_the_prompt_cache() {
    let options = RequestOptions {
        prompt_cache: true,
        ..RequestOptions::default()
    };
    let (_, value) = encoded(
        Api::Anthropic,
        &request(&[user("a"), user("b")], &[tool("t")]),
        &options,
    );
    let mark = json!({"type": "ephemeral"});
    assert_eq!(value["system"][0]["cache_control"], mark);
    assert_eq!(value["tools"][0]["cache_control"], mark);
    assert_eq!(value["messages"][0]["content"][1]["cache_control"], mark);
    assert!(
        value["messages"][0]["content"][0]
            .get("cache_control")
            .is_none()
    );
}

#[test]
fn media_in_prompts_and_in_results() {
    let image = || Block::Media {
        kind: MediaKind::Image,
        source: Source::Inline {
            mime: "image/png".into(),
            base64: "QUJD".into(),
        },
    };
    let stored = Stored {
        blob: "b".into(),
        id: "i".into(),
        name: "x.png".into(),
        mime: "image/png".into(),
        size: 5,
        sha256: [0; 32],
    };
    let kept = Block::Media {
        kind: MediaKind::Image,
        source: Source::Stored(Arc::new(stored)),
    };
    let document = Block::Media {
        kind: MediaKind::Document,
        source: Source::Url("https://x/y.pdf".into()),
    };
    let seen = message(
        Role::Tool {
            call: CallId(1),
            name: "t".into(),
            error: false,
        },
        vec![image()],
    );
    let history = [
        message(Role::User, vec![text("see"), image(), kept, document]),
        message(Role::Assistant, vec![call(1, Some("c"), "t", "{}")]),
        seen,
    ];
    let openai = body(Api::OpenAi, &history)["messages"].clone();
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    assert!(
        openai[1]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("x.png")
    );
    assert_eq!(openai[1]["content"][1], url);
    assert_eq!(
        openai[1]["content"][2]["text"],
        "[document at https://x/y.pdf]"
    );
    assert_eq!(openai[3]["role"], "tool");
    assert_eq!(openai[4]["content"][1], url);
    let anthropic = body(Api::Anthropic, &history)["messages"].clone();
    let block = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    assert_eq!(anthropic[0]["content"][1], block);
    assert_eq!(
        anthropic[0]["content"][3],
        json!({"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}})
    );
    assert_eq!(anthropic[2]["content"][0]["content"], json!([block]));
}

#[test]
fn roles_that_providers_do_not_know_are_put_into_words() {
    let history = [
        message(Role::Summary, vec![text("s")]),
        message(Role::Shell, vec![text("$ ls")]),
        message(Role::Note, vec![text("n")]),
        message(Role::Other("critic".into()), vec![text("o")]),
    ];
    let openai = body(Api::OpenAi, &history)["messages"].clone();
    let texts: Vec<&str> = openai.as_array().unwrap()[1..]
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "Summary of the conversation so far:\ns",
            "The user ran a shell command. Its output:\n$ ls",
            "[note]\nn",
            "[critic]\no"
        ]
    );
    assert_eq!(
        body(Api::Anthropic, &history)["messages"][0]["content"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

fn stored(id: &str, mime: &str, size: u64) -> Block {
    Block::Media {
        kind: if mime.starts_with("image") {
            MediaKind::Image
        } else {
            MediaKind::Document
        },
        source: Source::Stored(Arc::new(Stored {
            blob: id.into(),
            id: id.into(),
            name: format!("{id}.x").as_str().into(),
            mime: mime.into(),
            size,
            sha256: [0; 32],
        })),
    }
}

/// The body with the gaps filled by the first bytes of each medium's id, and how many gaps there were.
fn filled(
    api: Api,
    history: &[Arc<Message>],
    options: &RequestOptions,
    limits: MediaLimits,
) -> (usize, Value) {
    let mut body = Vec::new();
    let has = |stored: &Stored| &*stored.blob != "gone";
    let gaps = encode_with_media(
        api,
        &request(history, &[]),
        options,
        &limits,
        &has,
        &mut body,
    );
    let read = |stored: &Stored| {
        let bytes = stored.blob.bytes().cycle().take(stored.size as usize);
        Ok::<Vec<u8>, ()>(bytes.collect())
    };
    let whole = fill(&body, &gaps, read).unwrap();
    assert_eq!(whole.len() as u64, filled_len(&body, &gaps));
    (gaps.len(), serde_json::from_slice(&whole).unwrap())
}

#[test]
fn media_that_are_kept_are_put_in_where_they_belong() {
    let call_of = |id, name: &str| message(Role::Assistant, vec![call(id, Some("c"), name, "{}")]);
    let seen = message(
        Role::Tool {
            call: CallId(1),
            name: "t".into(),
            error: false,
        },
        vec![stored("abc", "image/png", 3)],
    );
    let history = [
        message(
            Role::User,
            vec![
                text("see"),
                stored("de", "image/jpeg", 4),
                stored("f", "application/pdf", 5),
            ],
        ),
        call_of(1, "t"),
        seen,
    ];
    let options = RequestOptions {
        prompt_cache: true,
        ..RequestOptions::default()
    };
    let all = MediaLimits::default();
    let (gaps, openai) = filled(Api::OpenAi, &history, &options, all);
    assert_eq!(gaps, 3);
    let parts = &openai["messages"][1]["content"];
    assert_eq!(
        parts[1]["image_url"]["url"],
        "data:image/jpeg;base64,ZGVkZQ=="
    );
    let file = json!({"filename": "f.x", "file_data": "data:application/pdf;base64,ZmZmZmY="});
    assert_eq!(parts[2]["file"], file);
    assert_eq!(
        openai["messages"][4]["content"][1]["image_url"]["url"],
        "data:image/png;base64,YWJj"
    );
    // Marks of the cache move what stands behind them, gaps too.
    let (gaps, anthropic) = filled(Api::Anthropic, &history, &options, all);
    assert_eq!(gaps, 3);
    let parts = &anthropic["messages"][0]["content"];
    let source = |mime, data| json!({"type": "base64", "media_type": mime, "data": data});
    assert_eq!(parts[1]["source"], source("image/jpeg", "ZGVkZQ=="));
    assert_eq!(
        (&parts[2]["type"], &parts[2]["source"]),
        (&json!("document"), &source("application/pdf", "ZmZmZmY="))
    );
    let result = &anthropic["messages"][2]["content"][0];
    assert_eq!(result["content"][0]["source"], source("image/png", "YWJj"));
    assert!(result.get("cache_control").is_some());
}

#[test]
fn of_media_that_are_kept_the_newest_are_sent_and_what_is_gone_is_put_into_words() {
    let history = [
        message(
            Role::User,
            vec![
                stored("old", "image/png", 30),
                stored("gone", "image/png", 1),
            ],
        ),
        message(Role::Assistant, vec![text("ok")]),
        message(
            Role::User,
            vec![
                stored("mid", "image/png", 20),
                stored("new", "image/png", 20),
            ],
        ),
    ];
    for api in [Api::OpenAi, Api::Anthropic] {
        for (bytes, items, sent) in [
            (70, 9, &["old", "mid", "new"][..]),
            (69, 9, &["mid", "new"]),
            (40, 9, &["mid", "new"]),
            // An older one that would fit isn't shown in the place of a newer one.
            (39, 9, &["new"]),
            (1_000, 2, &["mid", "new"]),
            (0, 0, &[]),
        ] {
            let limits = MediaLimits { items, bytes };
            let (gaps, body) = filled(api, &history, &RequestOptions::default(), limits);
            let body = body.to_string();
            assert_eq!(gaps, sent.len(), "{bytes}");
            for name in ["old", "mid", "new", "gone"] {
                let in_words = body.contains(&format!("{name}.x"));
                assert_eq!(in_words, !sent.contains(&name), "{name} of {bytes}: {body}");
            }
        }
    }
    // One that stands twice is sent twice, and counts twice.
    let twice = stored("two", "image/png", 20);
    let history = [
        message(Role::User, vec![twice.clone()]),
        message(Role::User, vec![twice]),
    ];
    let limits = |bytes| MediaLimits { items: 9, bytes };
    assert_eq!(
        filled(
            Api::OpenAi,
            &history,
            &RequestOptions::default(),
            limits(40)
        )
        .0,
        2
    );
    assert_eq!(
        filled(
            Api::OpenAi,
            &history,
            &RequestOptions::default(),
            limits(39)
        )
        .0,
        0
    );
}
