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

pub mod recorded;
#[path = "../../shared/text.rs"]
pub mod text;

use serde_json::{Value, json};
use turnwire::frame::LineSplitter;
use turnwire::protocol::omp::wire::Command as Line;
use turnwire::protocol::omp::{ClientConfig, Omp, OmpAsk, OmpExtra};
use turnwire::protocol::{Client, ClientOutput, Finding, Protocol};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

/// What a Client of omp is told.
pub type ClientInput = turnwire_proptests::laws::ClientInput<Omp>;

/// What came out, in order; bytes between outputs are joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Lines(Vec<u8>),
    Event(Event),
    Extra(OmpExtra),
    Finding(Finding),
    CloseInput,
    Signal(Signal),
    Closed,
}

pub const READY: &str = r#"{"type":"ready","protocolVersion":1,"supportedProtocolVersions":[1,2],"maxFrameBytes":1048576,"maxReassembledFrameBytes":67108864}"#;

/// Which program the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    G1,
    G2,
    G3,
}

/// A Client, its splitter, its clock, and everything that went in and came out.
pub struct Rig {
    pub client: Client<Omp>,
    splitter: LineSplitter,
    pub now: Now,
    pub told: Vec<(ClientInput, Now)>,
    pub out: Vec<Out>,
    /// Lines to the agent, without newlines, since the last look.
    pub written: Vec<String>,
    looked: usize,
    checker: Checker,
    ids: u64,
    pub program: Program,
    /// Answers what the Client asks for itself.
    pub answers: bool,
    sessions: u64,
}

impl Rig {
    pub fn new(config: ClientConfig) -> Self {
        Rig {
            client: Client::new(config),
            splitter: LineSplitter::new(Omp::agent_line_rules()),
            now: Now {
                mono_us: 1_000,
                unix_ms: 1_700_000_000_000,
            },
            told: Vec::new(),
            out: Vec::new(),
            written: Vec::new(),
            looked: 0,
            checker: Checker::new(Scope::Any),
            ids: 0,
            program: Program::G2,
            answers: true,
            sessions: 0,
        }
    }

    /// A Client whose agent is ready; what came of it is forgotten.
    pub fn opened(program: Program) -> Self {
        let mut rig = Rig::new(ClientConfig::default());
        rig.program = program;
        rig.agent(READY);
        rig.forget();
        rig
    }

    pub fn forget(&mut self) {
        self.out.clear();
        self.looked = 0;
        self.written.clear();
    }

    pub fn tell(&mut self, input: ClientInput) {
        match &input {
            ClientInput::Call(call) => {
                if self.client.wants_commands() {
                    self.checker.command(call);
                }
                self.client.handle_command(call.clone(), self.now);
            }
            ClientInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.client.handle_line(split, self.now);
                }
            }
            ClientInput::End => {
                if let Some(split) = self.splitter.finish() {
                    self.client.handle_line(split, self.now);
                }
                self.client.handle_end(self.now);
            }
            ClientInput::Settle(id, outcome) => {
                self.client.settle(*id, outcome.clone(), self.now).unwrap();
            }
            ClientInput::Woken => self.client.handle_woken(self.now),
        }
        self.told.push((input, self.now));
        self.drain();
        self.answer_own();
    }

    pub fn drain(&mut self) {
        let mut lines = Vec::new();
        loop {
            let output = self
                .client
                .poll_output(&mut lines)
                .map(|output| own(&output));
            if !lines.is_empty() {
                let text = std::str::from_utf8(&lines).unwrap();
                self.written.extend(text.lines().map(str::to_owned));
                if let Some(Out::Lines(last)) = self.out.last_mut() {
                    last.append(&mut lines);
                } else {
                    self.out.push(Out::Lines(std::mem::take(&mut lines)));
                }
            }
            let Some(output) = output else { break };
            if let Out::Event(event) = &output {
                self.checker.event(event);
            }
            self.out.push(output);
        }
        self.checker.quiet();
        let violations = self.checker.violations();
        assert_eq!(violations, [], "{}", text::events(&self.out));
    }

    /// The agent answers what the Client asks for itself.
    fn answer_own(&mut self) {
        while let Some(line) = self.written.get(self.looked).cloned() {
            self.looked += 1;
            let line: Value = serde_json::from_str(&line).unwrap();
            let own = line["id"].as_str().is_some_and(|id| id.starts_with('i'));
            if self.answers && own && line["type"] != "host_tool_result" {
                let answer = self.own_answer(&line);
                self.agent(&answer.to_string());
            }
        }
    }

    fn own_answer(&mut self, line: &Value) -> Value {
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

    /// A line of the agent.
    pub fn agent(&mut self, line: &str) {
        self.tell(ClientInput::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    /// Lines of the agent, one by one.
    pub fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.agent(line);
        }
    }

    pub fn command(&mut self, command: Command) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        self.tell(ClientInput::Call(Call { id, command }));
        id
    }

    /// A command of this protocol's own. It isn't kept, since the laws know only neutral ones.
    pub fn send(&mut self, line: &Line<'_>) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        self.own_command(id);
        self.client.send(id, line, self.now);
        self.drain();
        self.answer_own();
        id
    }

    pub fn request(&mut self, ask: &OmpAsk) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        self.own_command(id);
        self.client.request(id, ask, self.now);
        self.drain();
        self.answer_own();
        id
    }

    /// To the laws it is a command like any other.
    fn own_command(&mut self, id: CommandId) {
        let command = Command::Barrier;
        self.checker.command(&Call { id, command });
    }

    pub fn prompt(&mut self, text: &str, deliver: Deliver) -> CommandId {
        let id = PromptId(self.ids + 1);
        self.command(Command::Prompt(prompt(id, text, deliver)))
    }

    pub fn user(&mut self, text: &str) -> CommandId {
        self.prompt(text, Deliver::IfIdle)
    }

    pub fn cancel(&mut self, queue: QueueFate) -> CommandId {
        self.command(Command::Cancel {
            what: CancelWhat::Turn { queue },
            why: CancelWhy::Host,
        })
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
        if self.program != Program::G1 && kind.starts_with("message_") {
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
        if self.program != Program::G1 {
            line["yielded"] = json!(true);
        }
        self.event("agent_end", line);
    }

    pub fn results(&mut self, prompts: &[CommandId], status: &str) {
        if self.program == Program::G1 {
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

    pub fn end(&mut self) {
        self.tell(ClientInput::End);
    }

    /// Time passes; the Client is woken when it asked for it.
    pub fn pass_ms(&mut self, ms: u64) {
        let end = self.now.mono_us + ms * 1_000;
        while let Some(due) = self.client.poll_timeout().filter(|due| due.at_us <= end) {
            let at = due.at_us.max(self.now.mono_us);
            self.now.mono_us = at;
            self.tell(ClientInput::Woken);
            if let Some(next) = self.client.poll_timeout() {
                assert!(next.at_us > at, "L4: a deadline that spins: {next:?}");
            }
        }
        self.now.mono_us = end;
    }

    /// Everything but lines since the last look, in the shorthand of the scenes.
    pub fn events(&mut self) -> String {
        let text = text::events(&self.out);
        self.out.clear();
        text
    }

    /// Lines to the agent since the last look.
    pub fn writes(&mut self) -> Vec<String> {
        self.looked = 0;
        std::mem::take(&mut self.written)
    }

    /// Texts of the findings.
    pub fn findings(&self) -> Vec<String> {
        let found = self.out.iter().filter_map(|out| match out {
            Out::Finding(finding) => Some(finding.text.to_string()),
            _ => None,
        });
        found.collect()
    }

    /// The reply to a command, which came once.
    pub fn replied(&self, command: CommandId) -> Option<Result<Answer, Refusal>> {
        let mut replies = self.out.iter().filter_map(|out| match out {
            Out::Event(Event {
                what: What::Replied { command: of, reply },
                ..
            }) if *of == command => Some(reply.clone()),
            _ => None,
        });
        let reply = replies.next();
        assert_eq!(replies.next(), None, "replied twice");
        reply
    }

    /// The only event that fits.
    pub fn find<T>(&self, fits: impl Fn(&What) -> Option<T>) -> T {
        let mut found = self.out.iter().filter_map(|out| match out {
            Out::Event(event) => fits(&event.what),
            _ => None,
        });
        let first = found.next();
        assert!(found.next().is_none(), "more than one");
        first.unwrap_or_else(|| panic!("none in {}", text::events(&self.out)))
    }

    /// The question that was asked.
    pub fn asked(&self) -> (AskId, Ask) {
        self.find(|what| match what {
            What::Asked { ask, body } => Some((*ask, body.clone())),
            _ => None,
        })
    }
}

pub fn assistant(content: Value, stop: &str) -> Value {
    json!({"role":"assistant","content":content,"provider":"mock","model":"mock-1","stopReason":stop,
        "usage":{"input":11,"output":7,"cacheRead":2,"cacheWrite":0,"totalTokens":20,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}})
}

pub fn prompt(id: PromptId, text: &str, deliver: Deliver) -> Prompt {
    Prompt {
        id,
        tag: None,
        content: vec![Block::Text(text.into())],
        deliver,
        literal: false,
        details: None,
    }
}

/// An output as an owned value.
pub fn own(output: &ClientOutput<'_, Omp>) -> Out {
    match output {
        ClientOutput::Event(event) => Out::Event((*event).clone()),
        ClientOutput::Delta(delta) => Out::Event(Event {
            at: delta.at,
            run: delta.run,
            seen: Seen::Real,
            what: What::Delta {
                message: delta.message,
                block: delta.block,
                kind: delta.kind,
                text: delta.text.into(),
            },
        }),
        ClientOutput::Extra(extra) => Out::Extra((*extra).clone()),
        ClientOutput::Ask { ask, .. } => panic!("a Client asks nothing: {ask:?}"),
        ClientOutput::Finding(finding) => Out::Finding((*finding).clone()),
        ClientOutput::CloseInput => Out::CloseInput,
        ClientOutput::Signal(signal) => Out::Signal(*signal),
        ClientOutput::Closed => Out::Closed,
    }
}
