//! A host of agentx and of claude.

use serde_json::{Value, json};
use turnwire::protocol::agentx::{Agentx, ObserverConfig, Preset};

use super::program::{Home, Program, Setup, Talk, Tapped};
use super::provider::{Provider, Reply};
use super::replies::openai;

impl Talk for Agentx {
    type Ear = Tapped<Agentx>;

    /// The preset that is named last counts.
    fn ear(words: &[&str]) -> Tapped<Agentx> {
        let mut named = words.iter().rev().filter_map(|word| Preset::named(word));
        let policy = named.next().unwrap_or_default().policy();
        Tapped::expecting(ObserverConfig { policy })
    }

    /// Each line has a type; each record of the conversation the session's id and one of its own.
    #[track_caller]
    fn check(line: &Value, _: &Value) {
        let kind = line["type"].as_str();
        assert!(kind.is_some(), "no type: {line}");
        let alone = ["control_", "attachment_", "keep_alive"];
        if !kind.is_some_and(|kind| alone.iter().any(|begin| kind.starts_with(begin))) {
            assert!(line["session_id"].is_string(), "{line}");
            assert!(line["uuid"].is_string(), "{line}");
        }
    }

    /// Each call that a reply names has one result, unless the wire fell silent.
    #[track_caller]
    fn pairs(lines: &[Value]) {
        if lines.iter().all(|line| line["type"] != "result") {
            return;
        }
        let ids = |kind: &str, part: &str, id: &str| {
            let blocks = lines.iter().filter(|line| line["type"] == kind);
            let blocks = blocks.flat_map(|line| line["message"]["content"].as_array());
            let mut ids: Vec<String> = blocks
                .flatten()
                .filter(|block| block["type"] == part)
                .map(|block| block[id].to_string())
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(
            ids("assistant", "tool_use", "id"),
            ids("user", "tool_result", "tool_use_id")
        );
    }
}

impl Setup {
    /// `serve` in this protocol, with a model of this provider, in a trusted project, in this approval mode.
    pub fn agentx(home: &Home, protocol: &str, provider: &Provider, mode: &str) -> Setup {
        Setup::serve_in(home, protocol).model_at(&(provider.url() + "/v1"), mode)
    }
}

/// A call of the tool that runs commands, by the name that it has in this protocol.
pub fn bash(protocol: &str, command: &str) -> Reply {
    let name = if protocol == "claude" { "Bash" } else { "bash" };
    openai::calls(&[("c1", name, json!({ "command": command }))])
}

/// What kinds of records there are: the type, with the subtype or what stands in it. Pieces of replies are one.
pub fn order(lines: &[Value]) -> Vec<String> {
    let mut order: Vec<String> = lines.iter().map(kind).collect();
    order.dedup_by(|later, earlier| later == earlier && later == "stream_event");
    order
}

fn kind(line: &Value) -> String {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let kind = word(&line["type"]).unwrap_or_default();
    let more = match kind.as_str() {
        "system" if line["subtype"] == "session_state_changed" => word(&line["state"]),
        "system" | "result" => word(&line["subtype"]),
        "assistant" | "user" => word(&line["message"]["content"][0]["type"]),
        "control_request" => word(&line["request"]["subtype"]),
        "control_response" => word(&line["response"]["subtype"]),
        _ => None,
    };
    match more {
        Some(more) => format!("{kind} {more}"),
        None => kind,
    }
}

/// All text of blocks, or the text that stands in their place.
pub fn text_of(content: &Value) -> String {
    let blocks = content.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    content.as_str().into_iter().chain(texts).collect()
}

/// The results of calls, in order.
pub fn results(lines: &[Value]) -> Vec<Value> {
    let blocks = lines.iter().filter(|line| line["type"] == "user");
    let blocks = blocks.flat_map(|line| line["message"]["content"].as_array());
    blocks
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .cloned()
        .collect()
}

impl Program<Agentx> {
    /// Writes a prompt.
    pub fn prompt(&mut self, text: &str) {
        self.send(&json!({
            "type": "user", "session_id": "", "message": { "role": "user", "content": text },
            "parent_tool_use_id": null,
        }));
    }

    /// One prompt, and all lines up to its result.
    #[track_caller]
    pub fn turn(&mut self, text: &str) -> Vec<Value> {
        let from = self.seen().len();
        self.prompt(text);
        self.see_type("result");
        self.seen().get(from..).unwrap_or_default().to_vec()
    }

    /// Writes a request with this id.
    pub fn request(&mut self, id: &str, request: &Value) {
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
    }

    /// A request, and the body of its response.
    #[track_caller]
    pub fn ask(&mut self, request: &Value) -> Value {
        let id = format!("ask-{}", self.seen().len());
        self.request(&id, request);
        loop {
            let response = self.see_type("control_response")["response"].clone();
            if response["request_id"] == id.as_str() {
                return response;
            }
        }
    }

    /// Reads on until the agent asks this, and gives the id of the request and what it asks.
    #[track_caller]
    pub fn asked(&mut self, subtype: &str) -> (String, Value) {
        loop {
            let line = self.see_type("control_request");
            if line["request"]["subtype"] == subtype {
                let id = line["request_id"].as_str().unwrap_or_default();
                return (id.to_owned(), line["request"].clone());
            }
        }
    }

    /// Answers a request of the agent's.
    pub fn answer(&mut self, id: &str, payload: &Value) {
        let response = json!({ "subtype": "success", "request_id": id, "response": payload });
        self.send(&json!({ "type": "control_response", "response": response }));
    }
}
