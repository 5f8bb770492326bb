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

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use turnwire::frame::{LineSplitter, Place};
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::omp::{ObserverConfig, Omp, OmpAsk, OmpOutcome, ServerConfig};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::*;
use turnwire_proptests::laws::ServerInput;
use turnwire_proptests::world::Said;

pub const SEED: [u8; 32] = [7; 32];

pub fn config() -> ServerConfig {
    ServerConfig::new(SEED)
}

pub fn info() -> SessionInfo {
    SessionInfo {
        session: "01900000-0000-7000-8000-000000000001".into(),
        name: None,
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
        self.now.mono_us += 1_000;
        self.now.unix_ms += 1;
        let event = Event {
            at: self.now,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        };
        self.tell(ServerInput::Said(Box::new(Said::Event(event))));
    }

    /// Lines since the last call.
    pub fn take(&mut self) -> Vec<String> {
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

    fn call_id(&mut self, name: &str) -> CallId {
        let next = CallId(self.calls.len() as u64 + 1);
        *self.calls.entry(name.to_owned()).or_insert(next)
    }

    fn message(
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

    fn what(&mut self, verb: &str, args: &[&str]) -> What {
        let first = args[0];
        let second = args.get(1).copied().unwrap_or_default();
        let third = args.get(2).copied().unwrap_or_default();
        match verb {
            "R" => {
                let cancelling = |hit| Answer::Cancelling {
                    hit,
                    queued: self.prompts.get(third).copied().into_iter().collect(),
                };
                let reply = Ok(match second {
                    "Started" => Answer::Admitted(Admitted::Started),
                    "Local" => Answer::Admitted(Admitted::Local),
                    "Steer" => Answer::Admitted(Admitted::Queued(Lane::Steer)),
                    "FollowUp" => Answer::Admitted(Admitted::Queued(Lane::FollowUp)),
                    "Next" => Answer::Admitted(Admitted::Queued(Lane::Next)),
                    "Turn" => cancelling(Hit::Turn(TurnId(self.turn))),
                    "Retry" => cancelling(Hit::Retry),
                    "Compaction" => cancelling(Hit::Compaction),
                    "Nothing" => cancelling(Hit::Nothing),
                    "Withdrawn" => Answer::Withdrawn(true),
                    "Done" => Answer::Done,
                    "Session" => Answer::Session {
                        vetoed: false,
                        text: None,
                    },
                    "Vetoed" => Answer::Session {
                        vetoed: true,
                        text: None,
                    },
                    "Busy" | "Cancelled" | "Unsupported" => Answer::Done,
                    other => panic!("no such reply: {other}"),
                });
                let reply = match second {
                    "Busy" => Err(Refusal::Busy),
                    "Cancelled" => Err(Refusal::Cancelled),
                    "Unsupported" => Err(Refusal::Unsupported("it")),
                    _ => reply,
                };
                let Some(command) = self.commands.get(first) else {
                    panic!("{first} made no command")
                };
                What::Replied {
                    command: *command,
                    reply,
                }
            }
            "Qd" => What::Queued {
                prompt: self.prompts[first],
                lane: match second {
                    "Steer" => Lane::Steer,
                    "FollowUp" => Lane::FollowUp,
                    _ => Lane::Next,
                },
            },
            "Ap" => What::PromptApplied {
                prompt: self.prompts[first],
                turn: Some(TurnId(self.turn)),
            },
            "M" => {
                let prompt = self.prompts.get(second).copied();
                What::Message(match first {
                    "user" => self.message(Role::User, Origin::Host, "text", prompt),
                    "note" => self.message(Role::Note, Origin::Harness, "note", None),
                    "job" => self.message(Role::Note, Origin::Job(JobId(1)), "over", None),
                    "output" => self.message(
                        Role::Note,
                        Origin::Extension("command".into()),
                        "output",
                        prompt,
                    ),
                    other => panic!("no such message: {other}"),
                })
            }
            "T+" => {
                self.turn += 1;
                What::TurnStarted {
                    turn: TurnId(self.turn),
                    cause: Cause::Prompt,
                }
            }
            "T-" => What::TurnEnded {
                turn: TurnId(self.turn),
                end: end(first),
                answer: None,
                report: Box::default(),
                pending: Pending {
                    queued: u32::from(second == "held"),
                    background: second == "bg",
                    resumes: false,
                },
            },
            "S+" => {
                self.step += 1;
                What::StepStarted {
                    step: StepId(self.step),
                    number: 1,
                }
            }
            "S-" => What::StepEnded {
                step: StepId(self.step),
            },
            "P-" => What::PromptEnded {
                prompt: self.prompts[first],
                end: end(second),
            },
            "Set" => What::Settled,
            "Cx" => What::Context {
                used: 1_000,
                window: 200_000,
                estimated: true,
            },
            "Rq" => What::RequestStarted {
                request: RequestId(1),
                attempt: 1,
            },
            "Rq-" => {
                let usage = (first == "ok").then_some(Usage {
                    input: Some(11),
                    output: Some(5),
                    reasoning: Some(2),
                    ..Usage::default()
                });
                What::RequestEnded {
                    request: RequestId(1),
                    outcome: match first {
                        "ok" => RequestOutcome::Complete {
                            finish: "stop".into(),
                        },
                        "Failed" => RequestOutcome::Failed(failure("backend returned 500")),
                        "Truncated" => RequestOutcome::Truncated,
                        "Cancelled" => RequestOutcome::Cancelled,
                        other => panic!("no such outcome: {other}"),
                    },
                    model: info().model,
                    usage,
                    cost: Cost::Known {
                        pico_usd: 25_000_000,
                        basis: CostBasis::Estimated,
                        source: "list".into(),
                        as_of: "2026".into(),
                    },
                    api_us: 78_500,
                }
            }
            "m+" => {
                self.message += 1;
                self.blocks.clear();
                self.open = None;
                What::MessageStarted {
                    message: MessageId(self.message),
                    request: Some(RequestId(1)),
                    provider_id: Some("chatcmpl-1".into()),
                    model: None,
                    usage: None,
                }
            }
            "b+" => {
                let head = match first {
                    "text" => BlockHead::Text,
                    "thinking" => BlockHead::Thinking,
                    _ => BlockHead::ToolUse {
                        call: self.call_id(second),
                        provider_id: Some(second.into()),
                        name: "bash".into(),
                        runs: true,
                    },
                };
                let name = if first == "call" { second } else { first };
                self.open = Some((name.into(), String::new()));
                What::BlockStarted {
                    message: MessageId(self.message),
                    block: u32::try_from(self.blocks.len()).unwrap(),
                    head,
                }
            }
            "b-" => {
                let (head, text) = self.open.take().expect("a block is open");
                let block = Arc::new(self.block(&head, &text));
                self.blocks.push(block.clone());
                What::BlockEnded {
                    message: MessageId(self.message),
                    block: u32::try_from(self.blocks.len() - 1).unwrap(),
                    content: block,
                }
            }
            "m-" => {
                if let Some((head, text)) = self.open.take() {
                    let block = self.block(&head, &text);
                    self.blocks.push(Arc::new(block));
                }
                let mut message = Message {
                    id: MessageId(self.message),
                    role: Role::Assistant,
                    content: self.blocks.clone(),
                    origin: Origin::Harness,
                    prompt: None,
                    about: None,
                    at_ms: self.now.unix_ms,
                    details: None,
                };
                if second == "void" {
                    message.content.clear();
                }
                What::MessageEnded {
                    message: Arc::new(message),
                    stop: match first {
                        "End" => Stop::End,
                        "ToolUse" => Stop::ToolUse,
                        "MaxTokens" => Stop::MaxTokens,
                        "Failed" => Stop::Failed,
                        "Truncated" => Stop::Truncated,
                        "Cancelled" => Stop::Cancelled,
                        "Detached" => Stop::Detached,
                        other => panic!("no such stop: {other}"),
                    },
                    kept: second != "void",
                    calls: CallList::Complete,
                }
            }
            "t+" => What::ToolStarted {
                call: self.call_id(first),
                provider_id: Some(first.into()),
                name: "bash".into(),
                input: Some(ToolInput::Object(RawJson(r#"{"x":1}"#.into()))),
                cause: ToolCause::Model {
                    message: MessageId(self.message),
                    block: 0,
                },
                side_effect: SideEffect::Shell,
            },
            "t~" => What::ToolProgress {
                call: self.call_id(first),
                partial: Progress::Append(vec![Block::Text("one\n".into())]),
                elapsed_us: 1,
            },
            "t-" => What::ToolEnded {
                call: self.call_id(first),
                outcome: match second {
                    "" => ToolOutcome::Ok,
                    "Cancelled" => ToolOutcome::Cancelled,
                    "Detached" => ToolOutcome::Detached(JobId(1)),
                    "Denied" => ToolOutcome::Denied(Decider::Host),
                    _ => ToolOutcome::Failed,
                },
                content: vec![Block::Text("one\n".into())],
                show: None,
            },
            "skip" => What::ToolSkipped {
                call: self.call_id(first),
                why: SkipWhy::Cancelled,
            },
            "A?" | "H?" | "U?" => {
                self.asks += 1;
                let call = self.call_id(first);
                let body = match verb {
                    "A?" => Ask::Permission(Box::new(PermissionAsk {
                        call: Some(call),
                        tool: "bash".into(),
                        reason: AskReason::Gate,
                        summary: "Command: echo hi".into(),
                        detail: "echo hi".into(),
                        body: None,
                        suggestions: vec![],
                        env: vec![],
                        due: None,
                    })),
                    "H?" => Ask::Tool {
                        call,
                        name: "lookup".into(),
                        input: RawJson(r#"{"id":42}"#.into()),
                    },
                    _ => Ask::Uri {
                        op: UriOp::Read,
                        uri: "db://users/42".into(),
                        body: None,
                    },
                };
                What::Asked {
                    ask: AskId(self.asks),
                    body,
                }
            }
            "A!" | "H!" | "U!" => What::AskClosed {
                ask: AskId(self.asks),
                how: match first {
                    "answered" | "approved" => AskClose::Answered {
                        by: Decider::Host,
                        allow: (verb == "A!").then_some(true),
                    },
                    "declined" => AskClose::Answered {
                        by: Decider::Host,
                        allow: Some(false),
                    },
                    "cancelled" => AskClose::Cancelled,
                    "timeout" => AskClose::TimedOut,
                    "gone" => AskClose::HostGone,
                    _ => AskClose::Fault("it failed".into()),
                },
            },
            "Dc" => What::Decided {
                call: CallId(1),
                verdict: Verdict {
                    allow: true,
                    by: Decider::Host,
                    input: None,
                    reason: None,
                    risk: None,
                    block: None,
                },
            },
            "Ry" => What::RetryScheduled {
                attempt: first.parse().unwrap_or(2),
                max: 10,
                wait_us: Some(422_500),
                why: failure("backend returned 500"),
            },
            "Ry-" => What::RetryEnded {
                ok: first == "ok",
                why: (first == "gave-up").then(|| failure("backend returned 500")),
            },
            "C+" => What::CompactionStarted {
                trigger: match first {
                    "Auto" => Trigger::Auto,
                    "Overflow" => Trigger::Overflow,
                    _ => Trigger::Manual,
                },
                span: None,
                tokens: Some(900),
            },
            "C-" => What::CompactionEnded {
                result: match first {
                    "Nothing" => Err(CompactionFault::Nothing("nothing to cut".into())),
                    "Cancelled" => Err(CompactionFault::Cancelled),
                    _ => Ok(Compacted {
                        summary: Some("in short".into()),
                        tokens_before: Some(900),
                        tokens_after: Some(300),
                        ..Compacted::default()
                    }),
                },
            },
            "Opened" => {
                let mut info = info();
                info.session = "01900000-0000-7000-8000-000000000002".into();
                What::Opened(Box::new(info))
            }
            "CR" => What::CompletionRefused {
                hook: "verify".into(),
                reason: "no".into(),
                continuation: 0,
                left: 1,
            },
            "Closed" => What::Closed {
                why: CloseWhy::HostGone,
            },
            other => panic!("no such event: {other}"),
        }
    }

    fn block(&mut self, head: &str, text: &str) -> Block {
        match head {
            "text" => Block::Text(text.into()),
            "thinking" => Block::Thinking {
                text: text.into(),
                signature: Some("sig".into()),
            },
            name => Block::ToolUse {
                call: self.call_id(name),
                provider_id: Some(name.into()),
                name: "bash".into(),
                input: ToolInput::Object(RawJson(r#"{"x":1}"#.into())),
            },
        }
    }
}

fn exit(code: u8) -> String {
    format!(r#"{{"type":"exit","code":{code}}}"#)
}

fn end(name: &str) -> End {
    match name {
        "Finished" => End::Finished {
            finish: Some("stop".into()),
        },
        "Local" => End::Local,
        "Cancelled" => End::Cancelled(CancelWhy::Host),
        "Switch" => End::Cancelled(CancelWhy::Switch),
        "Failed" => End::Failed(failure("backend returned 500")),
        "Truncated" => End::Truncated(failure("the stream ended without a completion signal")),
        "BudgetExhausted" => End::BudgetExhausted(BudgetKind::Tokens),
        "Withdrawn" => End::Withdrawn,
        other => panic!("no such end: {other}"),
    }
}

/// Types of lines, with what tells them apart; a run of deltas is one, and so is a pair of a message.
pub fn labels(lines: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in lines {
        let value: Value = serde_json::from_str(line).unwrap();
        let kind = value["type"].as_str().unwrap();
        let word = |path: &str| {
            value
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or("?")
                .to_owned()
        };
        let role = word("/message/role");
        let label = match kind {
            "response" if value["success"] == false => format!("response({},false)", word("/id")),
            "response" if value["data"]["agentInvoked"] == false => {
                format!("response({},local)", word("/id"))
            }
            "response" => format!("response({})", word("/id")),
            "prompt_result" => format!("prompt_result({},{})", word("/id"), word("/status")),
            "message_start" if role == "assistant" => "msg_start".into(),
            "message_end" if role == "assistant" => {
                let stop = word("/message/stopReason");
                if labels.last().is_some_and(|last| last == "msg_start") {
                    labels.pop();
                    format!("empty({stop})")
                } else {
                    format!("msg_end({stop})")
                }
            }
            "message_start" if role == "toolResult" => "result".into(),
            "message_start" => format!("message({role})"),
            "message_end" => continue,
            "message_update" => match word("/assistantMessageEvent/type") {
                delta if delta.ends_with("_delta") => format!("{delta}*"),
                other => other,
            },
            "tool_execution_start" => format!("exec_start({})", word("/toolCallId")),
            "tool_execution_update" => format!("exec_update({})", word("/toolCallId")),
            "tool_execution_end" => format!("exec_end({})", word("/toolCallId")),
            "host_tool_call" => format!("host_tool_call({})", word("/toolCallId")),
            "extension_ui_request" => format!("ui:{}", word("/method")),
            "exit" => format!("exit({})", value["code"]),
            other => other.to_owned(),
        };
        if !(label.ends_with('*') && labels.last() == Some(&label)) {
            labels.push(label);
        }
    }
    labels
}

/// The labels that a row of a scene stands for.
pub fn expected(row: &str) -> Vec<String> {
    let mut labels = Vec::new();
    for word in row.split_whitespace() {
        let (verb, arg) = word.split_once('(').map_or((word, ""), |(verb, rest)| {
            (verb, rest.strip_suffix(')').unwrap())
        });
        let parts = match verb {
            "begin" => format!("response({arg}) agent_start turn_start message(user)"),
            "answer" => "msg_start text_start text_delta* text_end msg_end(stop)".into(),
            "text" | "thinking" => format!("{verb}_start {verb}_delta* {verb}_end"),
            "calls" => "toolcall_start toolcall_delta* toolcall_end ".repeat(arg.parse().unwrap()),
            _ => word.to_owned(),
        };
        labels.extend(parts.split_whitespace().map(str::to_owned));
    }
    labels
}
