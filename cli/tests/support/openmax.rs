//! A host of openmax.

use serde_json::{Value, json};
use turnwire::protocol::openmax::Openmax;

use super::program::{Program, Talk, Tapped, of};

impl Talk for Openmax {
    type Ear = Tapped<Openmax>;

    fn ear(_: &[&str]) -> Tapped<Openmax> {
        Tapped::expecting(Default::default())
    }

    /// The first line is `hello`, and lines carry its session's id (OM-01, OM-12).
    #[track_caller]
    fn check(line: &Value, first: &Value) {
        assert_eq!(first["type"], "hello", "the first line: {first}");
        match line["type"].as_str().unwrap_or_default() {
            "" => panic!("no type: {line}"),
            "protocol_error" | "approval_mode" => {
                assert!(line.get("session_id").is_none(), "{line}")
            }
            _ => {
                assert_eq!(line["session_id"], first["session_id"], "{line}");
                assert!(line["session_id"].is_string(), "{line}");
            }
        }
    }

    #[track_caller]
    fn pairs(lines: &[Value]) {
        for (begin, end, id) in [
            ("tool_start", "tool_end", "call_id"),
            ("approval_request", "approval_settled", "approval_id"),
        ] {
            let ids = |kind: &str| {
                let mut ids: Vec<String> = of(lines, kind)
                    .iter()
                    .map(|line| line[id].to_string())
                    .collect();
                ids.sort();
                ids
            };
            assert_eq!(ids(begin), ids(end), "{begin} and {end} by {id}");
        }
    }
}

impl Program<Openmax> {
    pub fn user(&mut self, text: &str) {
        self.send(&json!({ "cmd": "user", "text": text }));
    }

    pub fn cancel(&mut self) {
        self.send(&json!({ "cmd": "cancel" }));
    }

    pub fn approve(&mut self, id: &Value, approved: bool) {
        self.send(&json!({ "cmd": "approve", "approval_id": id, "approved": approved }));
    }

    /// Reads on until the first line that answers a prompt, whichever it is: a refusal or a turn's first line.
    #[track_caller]
    pub fn see_answer(&mut self) -> Value {
        loop {
            let Some(line) = self.see_any() else {
                panic!("stdout ended: {:?}", self.seen())
            };
            if line["type"] != "hello" {
                return line;
            }
        }
    }

    /// One prompt, and all lines up to its `done`.
    #[track_caller]
    pub fn turn(&mut self, text: &str) -> Vec<Value> {
        self.user(text);
        let from = self.seen().len();
        self.see_type("done");
        self.seen().get(from..).unwrap_or_default().to_vec()
    }
}
