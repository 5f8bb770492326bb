//! What the tests of the omp Server share: a Server with its driver's work done by hand, an observer between it and its
//! host, and a notation for neutral events.
//!
//! `«id:kind»` a line of the host; `R` Replied, `Qd` Queued, `Ap` PromptApplied, `M` Message, `T± S± P-` turn, step,
//! prompt end, `Cx` Context, `Rq Rq-` request, `m+ m-` message (`void`: not kept), `b± d` block, `t+ t~ t-` tool, `skip`
//! ToolSkipped, `A? A!` permission, `H? H!` host tool, `U? U!` URI, `Dc` Decided, `Ry Ry-` retry, `C±` compaction, `Set`
//! Settled. `open`, `next`, `text`, `calls` and `end` stand for the runs of events that they name.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

pub mod labels;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use turnwire::frame::{LineSplitter, Place};
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::omp::{ObserverConfig, Omp, OmpAsk, OmpOutcome, ServerConfig};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::*;
use turnwire_proptests::world::Said;

/// What a Server of omp is told.
pub type ServerInput = turnwire_proptests::laws::ServerInput<Omp>;

pub const SEED: [u8; 32] = [7; 32];

pub fn config() -> ServerConfig {
    ServerConfig::new(SEED)
}

pub fn info() -> SessionInfo {
    SessionInfo {
        session: "01900000-0000-7000-8000-000000000001".into(),
        name: None,
        file: None,
        generation: "".into(),
        root: Some("/repo".into()),
        cwd: "/repo".into(),
        product: "turnwire".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: ModelRef {
            provider: Some("mock".into()),
            model: "m-1".into(),
        },
        api_model: None,
        efforts: vec!["low".into(), "high".into()],
        settings: Box::new(Settings {
            approvals: ApprovalMode::Ask,
            thinking: None,
            steer_drain: Drain::One,
            follow_up_drain: Drain::One,
            interrupting: Interrupting::Immediate,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: vec!["read_file".into(), "bash".into()],
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: vec![("help".into(), "Helps".into(), "".into())],
        skills: Vec::new(),
        media: Vec::new(),
    }
}

pub fn failure(text: &str) -> Failure {
    Failure {
        kind: FailureKind::Server,
        status: Some(500),
        retryable: true,
        text: text.into(),
    }
}

/// A Server, its splitter, its clock, an observer, and everything that went in.
pub struct Rig {
    pub server: Server<Omp>,
    splitter: LineSplitter,
    pub now: Now,
    /// For the laws.
    pub story: Vec<(ServerInput, Now)>,
    pub lines: Vec<String>,
    pub outputs: Vec<ServerOutput<Omp>>,
    observer: Observer<Omp>,
    read: (u64, u64),
    commands: BTreeMap<String, CommandId>,
    prompts: BTreeMap<String, PromptId>,
    calls: BTreeMap<String, CallId>,
    turn: u64,
    step: u64,
    message: u64,
    blocks: Vec<Arc<Block>>,
    open: Option<(String, String)>,
    asks: u64,
    /// The id of the last question on the wire.
    pub question: String,
    /// The host's last line, and the commands that it made.
    last: (String, usize),
}

impl Rig {
    /// A Server that is open.
    pub fn new() -> Self {
        Self::with(config())
    }

    pub fn with(config: ServerConfig) -> Self {
        let mut rig = Rig {
            server: Server::new(config),
            splitter: LineSplitter::new(Omp::host_line_rules()),
            now: Now {
                mono_us: 1_000,
                unix_ms: 1_796_008_000_000,
            },
            story: Vec::new(),
            lines: Vec::new(),
            outputs: Vec::new(),
            observer: Observer::new(ObserverConfig::default(), Sides::Both),
            read: (0, 0),
            commands: BTreeMap::new(),
            prompts: BTreeMap::new(),
            calls: BTreeMap::new(),
            turn: 0,
            step: 0,
            message: 0,
            blocks: Vec::new(),
            open: None,
            asks: 0,
            question: String::new(),
            last: (String::new(), 0),
        };
        rig.drain();
        rig.event(What::Opened(Box::new(info())));
        rig
    }

    /// Takes one input and drains.
    pub fn tell(&mut self, input: ServerInput) {
        match &input {
            ServerInput::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.read.0 += 1;
                    self.observer.handle_line(Dir::Host, split);
                    self.server.handle_line(split, self.now);
                }
            }
            ServerInput::End => {
                self.observer.handle_end(Dir::Host);
                self.server.handle_end(self.now);
            }
            ServerInput::Signal(signal) => self.server.handle_signal(*signal, self.now),
            ServerInput::Said(said) => match said.lend() {
                Output::Event(event) => self.server.handle_event(event),
                Output::Delta(delta) => self.server.handle_delta(&delta),
                Output::Effect { .. } => {}
            },
            ServerInput::Extra(extra) => self.server.handle_extra(extra.clone(), self.now),
            ServerInput::Settle(id, outcome) => {
                self.server.settle(*id, outcome.clone(), self.now).unwrap();
            }
            ServerInput::Woken => self.server.handle_woken(self.now),
        }
        self.story.push((input, self.now));
        self.drain();
    }

    pub fn drain(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let output = self.server.poll_output(&mut bytes);
            let mut splitter = LineSplitter::new(Omp::agent_line_rules());
            let mut chunk = bytes.as_slice();
            while let Some(split) = splitter.next(&mut chunk) {
                self.read.1 += 1;
                self.observer.handle_line(
                    Dir::Agent,
                    turnwire::frame::Split {
                        place: Place {
                            line: self.read.1,
                            ..split.place
                        },
                        ..split
                    },
                );
            }
            let text = String::from_utf8(bytes).expect("output is UTF-8");
            for line in text.lines() {
                let value: Value = serde_json::from_str(line).expect("each line is JSON");
                let kind = value["type"].as_str().expect("each line has a type");
                let asks = kind == "extension_ui_request" && value["method"] != "cancel"
                    || kind == "host_tool_call"
                    || kind == "host_uri_request";
                if asks {
                    self.question = value["id"].as_str().unwrap().to_owned();
                }
                self.lines.push(line.to_owned());
            }
            match output {
                Some(output) => self.outputs.push(output),
                None => return,
            }
        }
    }

    /// What the observer holds against the Server.
    pub fn errors(&mut self) -> Vec<String> {
        let mut errors = Vec::new();
        while let Some(finding) = self.observer.poll_finding() {
            if finding.severity == Severity::Error && finding.dir == Dir::Agent {
                errors.push(finding.to_string());
            }
        }
        errors
    }

    pub fn host(&mut self, line: &str) {
        self.tell(ServerInput::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    pub fn event(&mut self, what: What) {
        self.event_of(RunId::MAIN, what);
    }

    pub fn event_of(&mut self, run: RunId, what: What) {
        self.now.mono_us += 1_000;
        self.now.unix_ms += 1;
        let event = Event {
            at: self.now,
            run,
            seen: Seen::Real,
            what,
        };
        self.tell(ServerInput::Said(Box::new(Said::Event(event))));
    }

    /// Lines since the last call, those with them that the Server writes as soon as nothing more comes.
    pub fn take(&mut self) -> Vec<String> {
        let due = self.server.poll_timeout();
        if due.is_some_and(|due| due.at_us <= self.now.mono_us) {
            self.tell(ServerInput::Woken);
        }
        std::mem::take(&mut self.lines)
    }

    /// The one line since the last call.
    pub fn one(&mut self) -> Value {
        let lines = self.take();
        assert_eq!(lines.len(), 1, "{lines:#?}");
        serde_json::from_str(&lines[0]).unwrap()
    }

    /// Commands since the last call; questions to the embedder get their default.
    pub fn calls(&mut self) -> Vec<Call> {
        let mut calls = Vec::new();
        loop {
            let outputs = std::mem::take(&mut self.outputs);
            if outputs.is_empty() {
                return calls;
            }
            for output in outputs {
                match output {
                    ServerOutput::Call(call) => calls.push(call),
                    ServerOutput::Ask { id, .. } => self.settle(id, OmpOutcome::Default),
                    ServerOutput::Exit { code } => self.lines.push(exit(code)),
                    ServerOutput::Dismiss { .. } | ServerOutput::Diagnostic(_) => {}
                }
            }
        }
    }

    /// The one command since the last call.
    pub fn call(&mut self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:#?}");
        calls.remove(0)
    }

    /// The question to the embedder.
    pub fn asked(&mut self) -> (u64, OmpAsk) {
        match self.outputs.remove(0) {
            ServerOutput::Ask { id, ask } => (id, ask),
            other => panic!("not a question: {other:?}"),
        }
    }

    pub fn settle(&mut self, id: u64, outcome: OmpOutcome) {
        self.server.settle(id, outcome, self.now).unwrap();
        self.drain();
    }

    pub fn reply(&mut self, command: CommandId, reply: Result<Answer, Refusal>) {
        self.event(What::Replied { command, reply });
    }

    /// Answers what the agent was asked as a session does that has nothing to say against it.
    pub fn agree(&mut self) {
        for call in self.calls() {
            self.reply(call.id, Ok(Answer::Done));
        }
    }

    /// A query or setting of the host's, its agent agreeing; the one line that it gives.
    pub fn query(&mut self, line: &str) -> Value {
        self.take();
        self.host(line);
        self.agree();
        self.agree();
        let lines = self.take();
        let responses: Vec<Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|line: &Value| line["type"] == "response")
            .collect();
        assert_eq!(responses.len(), 1, "{lines:#?}");
        responses[0].clone()
    }

    pub fn play(&mut self, scene: &str) {
        for token in scene.split_whitespace() {
            self.token(token);
        }
    }

    fn token(&mut self, token: &str) {
        if let Some(line) = token
            .strip_prefix('«')
            .and_then(|rest| rest.strip_suffix('»'))
        {
            let (id, kind) = line.split_once(':').unwrap();
            self.host_line(id, kind);
            return self.file(id);
        }
        let (verb, rest) = token.split_once('(').map_or((token, ""), |(verb, rest)| {
            (verb, rest.strip_suffix(')').unwrap())
        });
        let args: Vec<&str> = rest.split(',').collect();
        let first = args[0];
        let second = args.get(1).copied().unwrap_or_default();
        match verb {
            "open" => self.play(&format!(
                "R({first},Started) T+ S+ Ap({first}) M(user) Cx Rq"
            )),
            "next" => self.play("S+ Cx Rq"),
            "applied" => self.play(&format!("Ap({first}) M(user,{first})")),
            "text" => self.play("m+ b+(text) d(text) d(text) b- m-(End) Rq-(ok)"),
            "think+text" => {
                self.play("m+ b+(thinking) d(thinking) b- b+(text) d(text) b- m-(End) Rq-(ok)")
            }
            "calls" => {
                self.token("m+");
                for part in args {
                    if part == "text" {
                        self.play("b+(text) d(text) b-");
                    } else {
                        self.play(&format!("b+(call,{part}) d(input) b-"));
                    }
                }
                self.play("m-(ToolUse) Rq-(ok)");
            }
            "end" => {
                let set = if args.get(2) == Some(&"held") {
                    ""
                } else {
                    "Set"
                };
                let held = args.get(2).copied().unwrap_or_default();
                self.play(&format!(
                    "S- T-({second},{held}) P-({first},{second}) {set}"
                ));
            }
            "d" => self.delta(first),
            _ => {
                let what = self.what(verb, &args);
                self.event(what);
                let last = self.last.0.clone();
                self.file(&last);
            }
        }
    }

    fn host_line(&mut self, id: &str, kind: &str) {
        let text = format!("text of {id}");
        let question = self.question.clone();
        let line = match kind {
            "prompt" => format!(r#"{{"id":"{id}","type":"prompt","message":"{text}"}}"#),
            "prompt+steer" => format!(
                r#"{{"id":"{id}","type":"prompt","message":"{text}","streamingBehavior":"steer"}}"#
            ),
            "prompt+follow" => format!(
                r#"{{"id":"{id}","type":"prompt","message":"{text}","streamingBehavior":"followUp"}}"#
            ),
            "steer" | "follow_up" | "abort_and_prompt" => {
                format!(r#"{{"id":"{id}","type":"{kind}","message":"{text}"}}"#)
            }
            "abort"
            | "abort_retry"
            | "abort_and_restore_queue"
            | "new_session"
            | "compact"
            | "get_state" => format!(r#"{{"id":"{id}","type":"{kind}"}}"#),
            "tools" => format!(
                r#"{{"id":"{id}","type":"set_host_tools","tools":[{{"name":"lookup","description":"Looks up","parameters":{{"type":"object"}}}}]}}"#
            ),
            "uris" => format!(
                r#"{{"id":"{id}","type":"set_host_uri_schemes","schemes":[{{"scheme":"db"}}]}}"#
            ),
            "set" => format!(r#"{{"id":"{id}","type":"set_interrupt_mode","mode":"wait"}}"#),
            "Approve" | "Deny" => {
                format!(r#"{{"type":"extension_ui_response","id":"{question}","value":"{kind}"}}"#)
            }
            "cancelled" => {
                format!(r#"{{"type":"extension_ui_response","id":"{question}","cancelled":true}}"#)
            }
            "hostupdate" => format!(
                r#"{{"type":"host_tool_update","id":"{question}","partialResult":{{"content":[{{"type":"text","text":"so far"}}]}}}}"#
            ),
            "hostresult" => format!(
                r#"{{"type":"host_tool_result","id":"{question}","result":{{"content":[{{"type":"text","text":"done"}}]}}}}"#
            ),
            "uriresult" => {
                format!(r#"{{"type":"host_uri_result","id":"{question}","content":"body"}}"#)
            }
            "eof" => return self.tell(ServerInput::End),
            "term" => return self.tell(ServerInput::Signal(Signal::Terminate)),
            kind => match kind.strip_prefix("remove=") {
                Some(of) => format!(
                    r#"{{"id":"{id}","type":"remove_queued_message","message":"text of {of}","queue":"followUp"}}"#
                ),
                None => panic!("no such line: {kind}"),
            },
        };
        self.host(&line);
    }

    /// Files the commands that a line made under its name: `id`, then `id'2` and so on; those that waited, under the
    /// name of the last line.
    fn file(&mut self, id: &str) {
        if self.last.0 != id {
            self.last = (id.to_owned(), 0);
        }
        for call in self.calls() {
            self.last.1 += 1;
            let name = match self.last.1 {
                1 => id.to_owned(),
                number => format!("{id}'{number}"),
            };
            if let Command::Prompt(prompt) = &call.command {
                self.prompts.insert(id.to_owned(), prompt.id);
            }
            self.commands.insert(name, call.id);
        }
    }

    fn delta(&mut self, kind: &str) {
        let text = match kind {
            "text" => "Hello “ü” \"q\" ",
            "thinking" => "hm ",
            _ => r#"{"x":1}"#,
        };
        let Some((head, whole)) = &mut self.open else {
            panic!("no block is open")
        };
        whole.push_str(text);
        let kind = match head.as_str() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            _ => Kind::Input,
        };
        let event = Event {
            at: self.now,
            run: RunId::MAIN,
            seen: Seen::Real,
            what: What::Delta {
                message: MessageId(self.message),
                block: u32::try_from(self.blocks.len()).unwrap(),
                kind,
                text: text.into(),
            },
        };
        self.tell(ServerInput::Said(Box::new(Said::Event(event))));
    }

    pub(crate) fn call_id(&mut self, name: &str) -> CallId {
        let next = CallId(self.calls.len() as u64 + 1);
        *self.calls.entry(name.to_owned()).or_insert(next)
    }

    pub(crate) fn message(
        &mut self,
        role: Role,
        origin: Origin,
        text: &str,
        prompt: Option<PromptId>,
    ) -> Arc<Message> {
        self.message += 1;
        Arc::new(Message {
            id: MessageId(self.message),
            role,
            content: vec![Arc::new(Block::Text(text.into()))],
            origin,
            prompt,
            about: None,
            at_ms: self.now.unix_ms,
            details: None,
        })
    }
}

fn exit(code: u8) -> String {
    format!(r#"{{"type":"exit","code":{code}}}"#)
}
