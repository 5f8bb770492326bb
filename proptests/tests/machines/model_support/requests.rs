//! Histories and bodies of requests.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;

use serde_json::Value;
use turnwire::model::{Api, RequestOptions, encode_request};
use turnwire::vocab::*;

pub fn text(text: &str) -> Block {
    Block::Text(text.into())
}

pub fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
    let content = content.into_iter().map(Arc::new).collect();
    Arc::new(Message {
        id: MessageId(1),
        role,
        content,
        origin: Origin::Host,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

pub fn user(words: &str) -> Arc<Message> {
    message(Role::User, vec![text(words)])
}

pub fn call(number: u64, id: Option<&str>, name: &str, args: &str) -> Block {
    let input = ToolInput::Object(RawJson(args.into()));
    Block::ToolUse {
        call: CallId(number),
        provider_id: id.map(Into::into),
        name: name.into(),
        input,
    }
}

pub fn result(number: u64, words: &str, error: bool) -> Arc<Message> {
    message(
        Role::Tool {
            call: CallId(number),
            name: "t".into(),
            error,
        },
        vec![text(words)],
    )
}

pub fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: None,
        description: "does it".into(),
        schema: RawJson(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.into()),
        side_effect: SideEffect::Read,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

pub fn request<'a>(messages: &'a [Arc<Message>], tools: &'a [ToolSpec]) -> ModelRequest<'a> {
    ModelRequest {
        model: "m-1",
        system: Some("be brief"),
        messages,
        tools,
        max_output: Some(100),
        thinking: None,
        thinking_budget: None,
    }
}

pub fn encoded(api: Api, request: &ModelRequest<'_>, options: &RequestOptions) -> (String, Value) {
    let mut out = b"kept".to_vec();
    encode_request(api, request, options, &mut out);
    let body = String::from_utf8(out.split_off(4)).expect("UTF-8");
    assert_eq!(out, b"kept", "the body is appended");
    let value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    (body, value)
}

pub fn body(api: Api, messages: &[Arc<Message>]) -> Value {
    encoded(
        api,
        &request(messages, &[tool("t")]),
        &RequestOptions::default(),
    )
    .1
}

/// The calls of a body with the text of their results, in order; holds the body to the pairing law.
pub fn pairs(api: Api, body: &Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap();
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (calls, results): (Vec<String>, Vec<(String, String)>) = match api {
            Api::OpenAi => {
                let calls: Vec<String> = list(&message["tool_calls"])
                    .map(|call| word(&call["id"]))
                    .collect();
                let after = messages[at + 1..].iter().take(calls.len());
                let results = after
                    .map(|result| (word(&result["tool_call_id"]), word(&result["content"])))
                    .collect();
                (calls, results)
            }
            Api::Anthropic => {
                let calls: Vec<String> = list(&message["content"])
                    .filter(|block| block["type"] == "tool_use")
                    .map(|block| word(&block["id"]))
                    .collect();
                let after = messages
                    .get(at + 1)
                    .map(|next| &next["content"])
                    .unwrap_or(&Value::Null);
                let results = list(after)
                    .take(calls.len())
                    .map(|result| (word(&result["tool_use_id"]), word(&result["content"])))
                    .collect();
                (calls, results)
            }
        };
        assert_eq!(
            calls,
            results
                .iter()
                .map(|result| result.0.clone())
                .collect::<Vec<_>>(),
            "each call is followed by its result: {body}"
        );
        pairs.extend(results);
    }
    let results = match api {
        Api::OpenAi => messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .count(),
        Api::Anthropic => messages
            .iter()
            .flat_map(|message| list(&message["content"]))
            .filter(|block| block["type"] == "tool_result")
            .count(),
    };
    assert_eq!(results, pairs.len(), "no result without its call");
    pairs
}

pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
