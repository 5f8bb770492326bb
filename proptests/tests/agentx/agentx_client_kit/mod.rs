//! What the tests of the agentx Client share: a Client whose inputs are kept, with the laws of the neutral stream watched
//! all the time, and an agent that answers the greeting.
#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../shared/client_rig.rs"]
mod client_rig;
pub mod recorded;

pub use client_rig::text;
use serde_json::{Value, json};
use turnwire::protocol::agentx::wire::Import;
use turnwire::protocol::agentx::{Agentx, AgentxAsk, ClientConfig, Policy};
use turnwire::vocab::*;

use self::client_rig::{Answers, ClientRig};

/// What a Client of agentx is told.
pub type ClientInput = turnwire_proptests::laws::ClientInput<Agentx>;
/// What comes of it.
pub type Out = client_rig::Out<Agentx>;
/// A Client of agentx, and an agent that says nothing by itself.
pub type Rig = ClientRig<Agentx, Lines>;

/// All lines to the agent, without newlines, and which program it is.
#[derive(Default)]
pub struct Lines {
    pub all: Vec<String>,
    claude: bool,
}

impl Answers for Lines {
    fn answer(&mut self, line: &str) -> Option<String> {
        self.all.push(line.to_owned());
        None
    }
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
        let lines = Lines {
            claude: config.policy == Policy::CLAUDE,
            ..Lines::default()
        };
        ClientRig::with(config, lines)
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
        let version = if self.answers.claude {
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

    pub fn say(&mut self, line: &Value) {
        self.agent(&line.to_string());
    }

    /// A step of an upload.
    pub fn import(&mut self, step: &Import<'_>) {
        self.own_command(|client, id, now| client.import(id, step, now));
    }

    /// An operation of this protocol's own.
    pub fn request(&mut self, ask: &AgentxAsk) -> CommandId {
        self.own_command(|client, id, now| client.request(id, ask, now))
    }

    pub fn prompt(&mut self, text: &str, tag: Option<&str>, deliver: Deliver) -> CommandId {
        self.prompt_as(text, tag, deliver)
    }

    pub fn user(&mut self, text: &str, tag: &str) -> CommandId {
        self.prompt(text, Some(tag), Deliver::Queue(Rank::Next))
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

    /// Lines to the agent since the last look.
    pub fn writes(&mut self) -> Vec<Value> {
        let lines = self.take_written();
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}
