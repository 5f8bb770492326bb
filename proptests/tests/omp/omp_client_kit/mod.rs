//! What the tests of the omp Client share: a Client whose inputs are kept, with the laws of the neutral stream watched
//! all the time, and an agent that answers what the Client asks for itself.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

#[path = "../../shared/client_rig.rs"]
mod client_rig;
pub mod recorded;

pub use client_rig::{prompt, text};
use serde_json::{Value, json};
use turnwire::protocol::omp::wire::Command as Line;
use turnwire::protocol::omp::{ClientConfig, Omp, OmpAsk};
use turnwire::vocab::*;

use self::client_rig::{Answers, ClientRig};

/// What a Client of omp is told.
pub type ClientInput = turnwire_proptests::laws::ClientInput<Omp>;
/// What comes of it.
pub type Out = client_rig::Out<Omp>;
/// A Client of omp, and an agent that answers what the Client asks for itself.
pub type Rig = ClientRig<Omp, Host>;

pub const READY: &str = r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#;

/// Which program the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    G1,
    G2,
    G3,
}

/// The part of the agent that answers what the Client asks for itself.
pub struct Host {
    pub program: Program,
    /// Whether it does.
    pub answers: bool,
    sessions: u64,
}

impl Answers for Host {
    fn answer(&mut self, line: &str) -> Option<String> {
        let line: Value = serde_json::from_str(line).unwrap();
        let own = line["id"].as_str().is_some_and(|id| id.starts_with('i'));
        (self.answers && own && line["type"] != "host_tool_result")
            .then(|| self.answer_to(&line).to_string())
    }
}

impl Host {
    fn answer_to(&mut self, line: &Value) -> Value {
        let command = line["type"].as_str().unwrap();
        let data = match command {
            "negotiate_protocol" => json!({"protocolVersion": 2}),
            "set_event_filter" if self.program == Program::G1 => {
                return json!({"type":"response","command":command,"success":false,"error":format!("Unknown command: {command}")});
            }
            "set_event_filter" if self.program == Program::G2 => json!({"events": null}),
            "set_event_filter" => json!({"events": null, "messageUpdates": "delta"}),
            "set_subagent_subscription" => json!({"level": line["level"]}),
            "get_state" => {
                self.sessions += 1;
                self.state(self.sessions)
            }
            "get_messages" => json!({"messages": []}),
            _ => {
                return json!({"id":line["id"],"type":"response","command":command,"success":true});
            }
        };
        json!({"id":line["id"],"type":"response","command":command,"success":true,"data":data})
    }

    pub fn state(&self, session: u64) -> Value {
        let mut state = json!({
            "model": {"id":"mock-1","provider":"mock","contextWindow":1000,"maxTokens":null},
            "isStreaming": false, "isCompacting": false,
            "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time", "interruptMode": "immediate",
            "sessionId": format!("s{session}"), "autoCompactionEnabled": true, "queuedMessageCount": 0,
            "todoPhases": [], "messageCount": 0, "systemPrompt": [], "dumpTools": [{"name":"bash"}],
        });
        if self.program != Program::G1 {
            state["isSettled"] = json!(true);
            state["hasPendingAsyncWork"] = json!(false);
        }
        if self.program == Program::G3 {
            state["queuedMessages"] = json!({"steering": [], "followUp": []});
        }
        state
    }
}

impl Rig {
    pub fn new(config: ClientConfig) -> Self {
        let host = Host {
            program: Program::G2,
            answers: true,
            sessions: 0,
        };
        ClientRig::with(config, host)
    }

    /// A Client whose agent is ready; what came of it is forgotten.
    pub fn opened(program: Program) -> Self {
        let mut rig = Rig::new(ClientConfig::default());
        rig.answers.program = program;
        rig.agent(READY);
        rig.forget();
        rig
    }

    /// Lines of the agent, one by one.
    pub fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.agent(line);
        }
    }

    /// A command of this protocol's own.
    pub fn send(&mut self, line: &Line<'_>) -> CommandId {
        self.own_command(|client, id, now| client.send(id, line, now))
    }

    pub fn request(&mut self, ask: &OmpAsk) -> CommandId {
        self.own_command(|client, id, now| client.request(id, ask, now))
    }

    pub fn prompt(&mut self, text: &str, deliver: Deliver) -> CommandId {
        self.prompt_as(text, None, deliver)
    }

    pub fn user(&mut self, text: &str) -> CommandId {
        self.prompt(text, Deliver::IfIdle)
    }

    pub fn ok(&mut self, id: CommandId, command: &str, data: Option<Value>) {
        let mut line =
            json!({"id":format!("c{}", id.0),"type":"response","command":command,"success":true});
        if let Some(data) = data {
            line["data"] = data;
        }
        self.agent(&line.to_string());
    }

    pub fn fails(&mut self, id: CommandId, command: &str, error: &str) {
        let line = json!({"id":format!("c{}", id.0),"type":"response","command":command,"success":false,"error":error});
        self.agent(&line.to_string());
    }

    /// `prompt` answered, and its run up to its request.
    pub fn begin(&mut self, text: &str) -> CommandId {
        let id = self.user(text);
        self.ok(id, "prompt", None);
        self.run_begins(text);
        id
    }

    pub fn run_begins(&mut self, text: &str) {
        self.agent(r#"{"type":"agent_start"}"#);
        self.agent(r#"{"type":"turn_start"}"#);
        self.user_message(text);
    }

    pub fn user_message(&mut self, text: &str) {
        let message = json!({"role":"user","content":[{"type":"text","text":text}]});
        self.message(&message);
    }

    /// A message's start and end.
    pub fn message(&mut self, message: &Value) {
        self.event("message_start", json!({"message":message}));
        self.event("message_end", json!({"message":message}));
    }

    pub fn event(&mut self, kind: &str, mut members: Value) {
        members["type"] = json!(kind);
        if self.answers.program != Program::G1 && kind.starts_with("message_") {
            members["messageId"] = json!("msg-1");
        }
        self.agent(&members.to_string());
    }

    pub fn update(&mut self, kind: &str, index: u64, member: (&str, Value)) {
        let mut update = json!({"type":kind,"contentIndex":index});
        update[member.0] = member.1;
        self.event("message_update", json!({"assistantMessageEvent":update}));
    }

    /// A reply of one text, piece by piece.
    pub fn reply(&mut self, pieces: &[&str], stop: &str) {
        self.reply_opens();
        for piece in pieces {
            self.update("text_delta", 0, ("delta", json!(piece)));
        }
        let text = pieces.concat();
        self.update("text_end", 0, ("content", json!(text)));
        self.event(
            "message_end",
            json!({"message":assistant(json!([{"type":"text","text":text}]), stop)}),
        );
    }

    pub fn reply_opens(&mut self) {
        self.event(
            "message_start",
            json!({"message":assistant(json!([]), "stop")}),
        );
        self.update("text_start", 0, ("partial", json!(null)));
    }

    /// A reply of calls: id and name.
    pub fn calls(&mut self, calls: &[(&str, &str)]) {
        let block = |(id, name): &(&str, &str)| json!({"type":"toolCall","id":id,"name":name,"arguments":{"a":1}});
        let blocks: Vec<Value> = calls.iter().map(block).collect();
        self.event(
            "message_start",
            json!({"message":assistant(json!([]), "stop")}),
        );
        for (index, call) in blocks.iter().enumerate() {
            let partial = json!({"content":blocks});
            self.update("toolcall_start", index as u64, ("partial", partial));
            self.update(
                "toolcall_delta",
                index as u64,
                ("delta", json!("{\"a\":1}")),
            );
            self.update("toolcall_end", index as u64, ("toolCall", call.clone()));
        }
        self.event(
            "message_end",
            json!({"message":assistant(json!(blocks), "toolUse")}),
        );
    }

    pub fn tool_start(&mut self, id: &str, name: &str) {
        let line = json!({"toolCallId":id,"toolName":name,"args":{"a":1}});
        self.event("tool_execution_start", line);
    }

    pub fn tool_end(&mut self, id: &str, name: &str, text: &str, error: bool) {
        let content = json!([{"type":"text","text":text}]);
        let line = json!({"toolCallId":id,"toolName":name,"result":{"content":content,"details":{}},"isError":error});
        self.event("tool_execution_end", line);
        self.message(&json!({"role":"toolResult","toolCallId":id,"toolName":name,"content":content,"isError":error}));
    }

    /// `turn_end`, `agent_end` and, from G2 on, what ends these prompts and the work.
    pub fn run_ends(&mut self, prompts: &[CommandId], status: &str) {
        self.event("turn_end", json!({"message":{},"toolResults":[]}));
        self.agent_end();
        self.results(prompts, status);
    }

    pub fn agent_end(&mut self) {
        let mut line = json!({"messages":[],"isTerminal":true});
        if self.answers.program != Program::G1 {
            line["yielded"] = json!(true);
        }
        self.event("agent_end", line);
    }

    pub fn results(&mut self, prompts: &[CommandId], status: &str) {
        if self.answers.program == Program::G1 {
            return;
        }
        for id in prompts {
            let mut line = json!({"id":format!("c{}", id.0),"agentInvoked":true,"status":status,"sessionSettled":true});
            if status == "error" {
                line["error"] =
                    json!({"message":"429 slow down","retryable":true,"httpStatus":429});
            }
            self.event("prompt_result", line);
        }
        self.event("session_settled", json!({}));
    }

    /// Lines to the agent since the last look.
    pub fn writes(&mut self) -> Vec<String> {
        self.take_written()
    }
}

pub fn assistant(content: Value, stop: &str) -> Value {
    json!({"role":"assistant","content":content,"provider":"mock","model":"mock-1","stopReason":stop,
        "usage":{"input":11,"output":7,"cacheRead":2,"cacheWrite":0,"totalTokens":20,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}})
}
