//! A host of omp.

use serde_json::{Value, json};
use turnwire::protocol::omp::Omp;

use super::program::{Home, Program, Setup, Talk, Tapped, of};
use super::provider::Provider;

impl Talk for Omp {
    type Ear = Tapped<Omp>;

    fn ear(_: &[&str]) -> Tapped<Omp> {
        Tapped::expecting(Default::default())
    }

    /// The first line is `ready`, each has a type, and a response says what it answers and how it went (OMP-01, OMP-02).
    #[track_caller]
    fn check(line: &Value, first: &Value) {
        assert_eq!(first["type"], "ready", "the first line: {first}");
        assert!(line["type"].is_string(), "no type: {line}");
        if line["type"] == "response" {
            assert!(line["command"].is_string(), "{line}");
            let success = line["success"].as_bool();
            assert!(success.is_some(), "{line}");
            assert_eq!(line["error"].is_string(), success == Some(false), "{line}");
        }
    }

    #[track_caller]
    fn pairs(lines: &[Value]) {
        let ids = |kind: &str| {
            let mut ids: Vec<String> = of(lines, kind)
                .iter()
                .map(|line| line["toolCallId"].to_string())
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(ids("tool_execution_start"), ids("tool_execution_end"));
    }
}

impl Setup {
    /// `serve --protocol omp` with a model of this provider, in a trusted project, in this approval mode.
    pub fn omp(home: &Home, provider: &Provider, mode: &str) -> Setup {
        Setup::serve_in(home, "omp").model_at(&(provider.url() + "/v1"), mode)
    }
}

/// The types in order; runs of `message_update` and of `tool_execution_update` as one. Messages with their role. Without
/// `ready`, and lines whose place is nobody's promise.
pub fn order(lines: &[Value]) -> Vec<String> {
    let mut types: Vec<String> = lines
        .iter()
        .filter(|line| {
            !matches!(
                line["type"].as_str(),
                Some("available_commands_update" | "queue_update" | "ready")
            )
        })
        .map(|line| {
            let kind = line["type"].as_str().unwrap_or("?");
            match line["message"]["role"].as_str() {
                Some(role) if matches!(kind, "message_start" | "message_end") => {
                    format!("{kind} {role}")
                }
                Some(_) | None => kind.to_owned(),
            }
        })
        .collect();
    types.dedup_by(|later, earlier| {
        later == earlier && matches!(later.as_str(), "message_update" | "tool_execution_update")
    });
    types
}

/// All text of a message, a result or a part of one.
pub fn text_of(value: &Value) -> String {
    let blocks = value["content"].as_array();
    match (&value["content"], blocks) {
        (Value::String(text), _) => text.clone(),
        (_, Some(blocks)) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
        (_, None) => String::new(),
    }
}

/// The text that was streamed.
pub fn deltas(lines: &[Value]) -> String {
    of(lines, "message_update")
        .iter()
        .map(|line| &line["assistantMessageEvent"])
        .filter(|event| event["type"] == "text_delta")
        .filter_map(|event| event["delta"].as_str())
        .collect()
}

impl Program<Omp> {
    /// Writes a command with this id.
    pub fn command(&mut self, id: &str, kind: &str, members: Value) {
        let mut command = json!({ "id": id, "type": kind });
        if let (Some(all), Value::Object(members)) = (command.as_object_mut(), members) {
            all.extend(members);
        }
        self.send(&command);
    }

    /// A command and its response.
    #[track_caller]
    pub fn ask(&mut self, kind: &str, members: Value) -> Value {
        let id = format!("{kind}-{}", self.seen().len());
        self.command(&id, kind, members);
        self.see(&json!({ "type": "response", "id": id, "command": kind }))
    }

    /// The data of a command that succeeds.
    #[track_caller]
    pub fn data(&mut self, kind: &str) -> Value {
        let response = self.ask(kind, json!({}));
        assert_eq!(response["success"], true, "{response}");
        response["data"].clone()
    }

    /// A prompt with this id, until the run it began in streams its first text.
    #[track_caller]
    pub fn streaming(&mut self, id: &str, text: &str) {
        self.command(id, "prompt", json!({ "message": text }));
        while self.see_type("message_update")["assistantMessageEvent"]["type"] != "text_delta" {}
    }

    /// One prompt, and all lines up to its `prompt_result`.
    #[track_caller]
    pub fn turn(&mut self, text: &str) -> Vec<Value> {
        let from = self.seen().len();
        let id = format!("turn-{from}");
        self.command(&id, "prompt", json!({ "message": text }));
        self.see(&json!({ "type": "prompt_result", "id": id }));
        self.seen().get(from..).unwrap_or_default().to_vec()
    }
}
