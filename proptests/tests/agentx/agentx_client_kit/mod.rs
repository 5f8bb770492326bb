//! What the tests of the agentx Client share: a Client whose inputs are kept, with the laws of the neutral stream watched
//! all the time, and an agent that answers the greeting.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod recorded;
#[path = "../../shared/text.rs"]
pub mod text;

use serde_json::{Value, json};
use turnwire::frame::LineSplitter;
use turnwire::protocol::agentx::wire::Import;
use turnwire::protocol::agentx::{Agentx, AgentxAsk, AgentxExtra, ClientConfig, Policy};
use turnwire::protocol::{Client, ClientOutput, Finding, Protocol};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

/// What a Client of agentx is told.
pub type ClientInput = turnwire_proptests::laws::ClientInput<Agentx>;

/// What came out, in order; bytes between outputs are joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Lines(Vec<u8>),
    Event(Event),
    Extra(AgentxExtra),
    Finding(Finding),
    CloseInput,
    Signal(Signal),
    Closed,
}

/// A Client, its splitter, its clock, and everything that went in and came out.
pub struct Rig {
    pub client: Client<Agentx>,
    splitter: LineSplitter,
    pub now: Now,
    pub told: Vec<(ClientInput, Now)>,
    pub out: Vec<Out>,
    /// Lines to the agent, without newlines, since the last look.
    pub written: Vec<String>,
    /// All of them.
    pub all: Vec<String>,
    checker: Checker,
    ids: u64,
    /// How many requests the test has taken the names of.
    requests: usize,
    claude: bool,
}

pub fn config(policy: Policy) -> ClientConfig {
    ClientConfig {
        seed: [9; 32],
        policy,
        ..ClientConfig::default()
    }
}

impl Rig {
    pub fn new(config: ClientConfig) -> Self {
        Rig {
            claude: config.policy == Policy::CLAUDE,
            client: Client::new(config),
            splitter: LineSplitter::new(Agentx::agent_line_rules()),
            now: Now {
                mono_us: 1_000,
                unix_ms: 1_700_000_000_000,
            },
            told: Vec::new(),
            out: Vec::new(),
            written: Vec::new(),
            all: Vec::new(),
            checker: Checker::new(Scope::Any),
            ids: 0,
            requests: 0,
        }
    }

    /// A Client of claude that has been greeted; what came of it is forgotten.
    pub fn claude() -> Self {
        let mut rig = Rig::new(config(Policy::CLAUDE));
        rig.pass_ms(0);
        rig.greeted();
        rig.forget();
        rig
    }

    /// A Client of the strict wire whose agent has begun; what came of it is forgotten.
    pub fn strict() -> Self {
        let mut rig = Rig::new(config(Policy::AGENTX));
        rig.init();
        rig.greeted();
        rig.forget();
        rig
    }

    /// The agent's answer to `initialize`.
    pub fn greeted(&mut self) {
        let payload =
            json!({"commands":[{"name":"compact","description":"d","argumentHint":"[text]"}]});
        self.answers(1, Some(payload));
    }

    pub fn init(&mut self) {
        let version = if self.claude {
            "claude_code_version"
        } else {
            "agentx_version"
        };
        let mut line = json!({"type":"system","subtype":"init","cwd":"/repo","session_id":"s1","tools":["Bash"],
            "mcp_servers":[],"model":"m-1","permissionMode":"default","slash_commands":["compact"],"apiKeySource":"user",
            "output_style":"default","skills":[],"plugins":[],"uuid":"u"});
        line[version] = json!("2.1.332");
        self.say(&line);
    }

    pub fn forget(&mut self) {
        self.out.clear();
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
    }

    pub fn drain(&mut self) {
        let mut lines = Vec::new();
        loop {
            let output = self.client.poll_output(&mut lines).map(|it| own(&it));
            if !lines.is_empty() {
                let text = std::str::from_utf8(&lines).unwrap();
                self.written.extend(text.lines().map(str::to_owned));
                self.all.extend(text.lines().map(str::to_owned));
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

    /// A line of the agent.
    pub fn agent(&mut self, line: &str) {
        self.tell(ClientInput::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    pub fn say(&mut self, line: &Value) {
        self.agent(&line.to_string());
    }

    pub fn command(&mut self, command: Command) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        self.tell(ClientInput::Call(Call { id, command }));
        id
    }

    /// A step of an upload; not kept either.
    pub fn import(&mut self, step: &Import<'_>) {
        self.ids += 1;
        let id = CommandId(self.ids);
        let command = Command::Barrier;
        self.checker.command(&Call { id, command });
        self.client.import(id, step, self.now);
        self.drain();
    }

    /// An operation of this protocol's own. It isn't kept, since the laws know only neutral commands.
    pub fn request(&mut self, ask: &AgentxAsk) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        let command = Command::Barrier;
        self.checker.command(&Call { id, command });
        self.client.request(id, ask, self.now);
        self.drain();
        id
    }

    pub fn prompt(&mut self, text: &str, tag: Option<&str>, deliver: Deliver) -> CommandId {
        let id = PromptId(self.ids + 1);
        self.command(Command::Prompt(Prompt {
            id,
            tag: tag.map(Text::from),
            content: vec![Block::Text(text.into())],
            deliver,
            literal: false,
            details: None,
        }))
    }

    pub fn user(&mut self, text: &str, tag: &str) -> CommandId {
        self.prompt(text, Some(tag), Deliver::Queue(Rank::Next))
    }

    pub fn cancel(&mut self, queue: QueueFate) -> CommandId {
        self.command(Command::Cancel {
            what: CancelWhat::Turn { queue },
            why: CancelWhy::Host,
        })
    }

    pub fn reply(&mut self, ask: u64, reply: Reply) -> CommandId {
        let (ask, reply) = (AskId(ask), Ok(reply));
        self.command(Command::Reply { ask, reply })
    }

    /// The agent answers the request of this number.
    pub fn answers(&mut self, number: u64, payload: Option<Value>) {
        let mut response = json!({"subtype":"success","request_id":format!("req_{number}")});
        if let Some(payload) = payload {
            response["response"] = payload;
        }
        self.say(&json!({"type":"control_response","response":response}));
    }

    pub fn refuses(&mut self, number: u64, error: &str) {
        let response =
            json!({"subtype":"error","request_id":format!("req_{number}"),"error":error});
        self.say(&json!({"type":"control_response","response":response}));
    }

    pub fn state(&mut self, state: &str) {
        self.say(&json!({"type":"system","subtype":"session_state_changed","state":state,"uuid":"u","session_id":"s1"}));
    }

    pub fn assistant(&mut self, id: &str, block: &Value) {
        self.say(&json!({"type":"assistant","message":{"id":id,"type":"message","role":"assistant","model":"m-1",
            "content":[block],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":1}},
            "parent_tool_use_id":null,"session_id":"s1","uuid":"u"}));
    }

    pub fn says(&mut self, id: &str, text: &str) {
        self.assistant(id, &json!({"type":"text","text":text}));
    }

    pub fn calls(&mut self, id: &str, call: &str, name: &str) {
        let block = json!({"type":"tool_use","id":call,"name":name,"input":{"a":1}});
        self.assistant(id, &block);
    }

    pub fn tool_result(&mut self, call: &str, text: &str, error: bool) {
        self.say(&json!({"type":"user","message":{"role":"user","content":[
            {"type":"tool_result","tool_use_id":call,"content":text,"is_error":error}]},
            "parent_tool_use_id":null,"session_id":"s1","uuid":"u"}));
    }

    pub fn asks(&mut self, request: &str, call: &str, name: &str) {
        self.say(&json!({"type":"control_request","request_id":request,"request":{"subtype":"can_use_tool",
            "tool_name":name,"input":{"a":1},"description":"what it does","tool_use_id":call}}));
    }

    pub fn stream(&mut self, event: &Value) {
        self.say(&json!({"type":"stream_event","event":event,"session_id":"s1","parent_tool_use_id":null,"uuid":"u"}));
    }

    pub fn result(&mut self) -> Value {
        json!({"type":"result","subtype":"success","is_error":false,"duration_ms":5,"duration_api_ms":4,"num_turns":1,
            "result":"done","stop_reason":"end_turn","session_id":"s1","total_cost_usd":0.5,
            "usage":{"input_tokens":11,"output_tokens":7},"modelUsage":{"m-1":{"inputTokens":11,"outputTokens":7,
            "cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.5}},
            "permission_denials":[],"uuid":"u"})
    }

    /// A result with these members instead.
    pub fn ends(&mut self, members: &Value) {
        let mut line = self.result();
        for (name, value) in members.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.say(&line);
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
    pub fn writes(&mut self) -> Vec<Value> {
        let lines = std::mem::take(&mut self.written);
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
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

/// An output as an owned value.
pub fn own(output: &ClientOutput<'_, Agentx>) -> Out {
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
