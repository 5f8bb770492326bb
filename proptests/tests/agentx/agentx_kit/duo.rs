//! A Server and a Session in memory, with a provider, tools and a host that are moved by words.
//!
//! Host: `«u1»` a prompt with that id, `«u1:now»` with a priority, `«init»`, `«interrupt:i1»`, `«allow#n»`, `«deny#n»`,
//! `«deny!#n»` (and interrupt), `«error#n»`, `«pass#n»`, `«yes#n»`, `«no#n»` (hooks) for the agent's request number n,
//! `«eof»`. Model: `reply`, `begin`, `text`, `think`, `calls(c1:tool,…)`, `fin(word)`, `cut`, `fail(status)`. Driver:
//! `ran(c1)`, `settle`, `wake`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnwire::frame::{LineSplitter, Place, Split, SplitKind};
use turnwire::json::Members;
use turnwire::protocol::agentx::wire::{AgentLine, CLOSED_RULES, Record, System};
use turnwire::protocol::agentx::{
    Agentx, AgentxAsk, AgentxOutcome, ObserverConfig, Policy, Selected, ServerConfig, preset,
};
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::session::config::ModelConfig;
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

pub fn tool(name: &str, side_effect: SideEffect) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: None,
        description: "".into(),
        schema: RawJson("{}".into()),
        side_effect,
        hidden: false,
        uri_arg: None,
        route: Route::Driver,
    }
}

pub fn session_config(policy: &Policy) -> SessionConfig {
    let mut config = SessionConfig::new(ModelConfig::new("m-1", 32_768));
    preset(&mut config, policy);
    config.settings.approvals = ApprovalMode::Ask;
    config.policy.snapshots = turnwire::session::config::Snapshots::Never;
    config.tools = vec![
        tool("look", SideEffect::Read),
        tool("write", SideEffect::Write),
    ];
    config
}

pub fn server_config(policy: Policy) -> ServerConfig {
    ServerConfig {
        version: "1.2.3".into(),
        provider: Some(Selected {
            id: "sol-east".into(),
            kind: "azure_openai".into(),
            efforts: vec!["low".into(), "high".into()],
            default_effort: Some("high".into()),
        }),
        ..ServerConfig::new([7; 32], policy)
    }
}

pub fn info() -> SessionInfo {
    SessionInfo {
        session: "ses_00000000000000000000000000000001".into(),
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
        efforts: Vec::new(),
        settings: Box::new(Settings {
            approvals: ApprovalMode::Ask,
            thinking: None,
            steer_drain: Drain::One,
            follow_up_drain: Drain::One,
            interrupting: Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: vec!["look".into(), "write".into()],
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: vec![("help".into(), "Helps".into(), "".into())],
        skills: Vec::new(),
        media: Vec::new(),
    }
}

pub struct Duo {
    pub server: Server<Agentx>,
    pub session: Session,
    splitter: LineSplitter,
    pub now: Now,
    pub lines: Vec<Value>,
    pub raw: Vec<String>,
    pub diagnostics: Vec<String>,
    pub exit: Option<u8>,
    /// The agent's requests, in order.
    pub requests: Vec<Value>,
    /// Requests to the model, and those that were told to stop.
    model: Vec<(RequestId, bool)>,
    open_model: Option<RequestId>,
    calls: u32,
    running: Vec<CallId>,
    names: BTreeMap<CallId, String>,
    stopping: Vec<CallId>,
    pub asks: Vec<(u64, AgentxAsk)>,
    pub commands: Vec<Command>,
    checker: Checker,
    /// Watches both directions, where the stream is a whole one.
    watch: Option<Observer<Agentx>>,
    /// Lines so far, of both sides.
    seen: u64,
}

impl Duo {
    pub fn new(policy: Policy) -> Self {
        Duo::with(server_config(policy), session_config(&policy))
    }

    pub fn partial(policy: Policy) -> Self {
        let mut config = server_config(policy);
        config.partial = true;
        Duo::with(config, session_config(&policy))
    }

    pub fn with(server: ServerConfig, session: SessionConfig) -> Self {
        let policy = server.policy;
        Duo::watched(Server::new(server), session, Some(policy))
    }

    /// A Server that was told what it must not say.
    pub fn guarded(server: Server<Agentx>, session: SessionConfig) -> Self {
        Duo::watched(server, session, None)
    }

    fn watched(server: Server<Agentx>, session: SessionConfig, policy: Option<Policy>) -> Self {
        let now = Now {
            mono_us: 1_000,
            unix_ms: 1_796_008_000_000,
        };
        let mut duo = Duo {
            server,
            session: Session::new(session, Box::new(info()), now),
            splitter: LineSplitter::new(Agentx::host_line_rules()),
            now,
            lines: Vec::new(),
            raw: Vec::new(),
            diagnostics: Vec::new(),
            exit: None,
            requests: Vec::new(),
            model: Vec::new(),
            open_model: None,
            calls: 0,
            running: Vec::new(),
            names: BTreeMap::new(),
            stopping: Vec::new(),
            asks: Vec::new(),
            commands: Vec::new(),
            checker: Checker::new(Scope::Session),
            watch: policy.map(|policy| Observer::new(ObserverConfig { policy }, Sides::Both)),
            seen: 0,
        };
        duo.drain();
        duo
    }

    pub fn host(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    pub fn say(&mut self, line: &Value) {
        self.host(&line.to_string());
    }

    /// A control request with this id.
    pub fn ask(&mut self, id: &str, request: Value) {
        self.say(&json!({"type":"control_request","request_id":id,"request":request}));
    }

    /// Answers the agent's request of this number, counted from 1.
    pub fn answer(&mut self, number: usize, payload: Value) {
        let id = self.requests[number - 1]["request_id"].clone();
        self.say(&json!({"type":"control_response","response":{"subtype":"success","request_id":id,"response":payload}}));
    }

    pub fn answer_error(&mut self, number: usize, error: &str) {
        let id = self.requests[number - 1]["request_id"].clone();
        self.say(&json!({"type":"control_response","response":{"subtype":"error","request_id":id,"error":error}}));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let rules = Agentx::host_line_rules();
        let mut splitter = std::mem::replace(&mut self.splitter, LineSplitter::new(rules));
        let mut chunk = bytes;
        while let Some(split) = splitter.next(&mut chunk) {
            self.watch(Dir::Host, split.what);
            self.server.handle_line(split, self.now);
            self.drain();
        }
        self.splitter = splitter;
    }

    pub fn end(&mut self) {
        let rules = Agentx::host_line_rules();
        let mut splitter = std::mem::replace(&mut self.splitter, LineSplitter::new(rules));
        if let Some(split) = splitter.finish() {
            self.watch(Dir::Host, split.what);
            self.server.handle_line(split, self.now);
            self.drain();
        }
        if let Some(watch) = &mut self.watch {
            watch.handle_end(Dir::Host);
        }
        self.server.handle_end(self.now);
        self.drain();
    }

    /// Shows a line to the observer. None of the agent's may be wrong.
    fn watch(&mut self, dir: Dir, what: SplitKind<'_>) {
        self.seen += 1;
        let Some(watch) = &mut self.watch else { return };
        let place = Place {
            line: self.seen,
            offset: 0,
        };
        watch.handle_line(dir, Split { place, what });
        self.judge();
    }

    fn judge(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        while let Some(finding) = watch.poll_finding() {
            let mild = finding.severity == Severity::Info;
            assert!(
                mild || finding.dir == Dir::Host,
                "{finding}\n{}",
                self.raw.join("\n")
            );
        }
    }

    fn exited(&mut self, code: u8) {
        if let Some(watch) = &mut self.watch {
            watch.handle_exit(i64::from(code));
            watch.finish();
        }
        self.judge();
    }

    pub fn settle_ask(&mut self, outcome: AgentxOutcome) -> AgentxAsk {
        let (id, ask) = self.asks.remove(0);
        self.server.settle(id, outcome, self.now).unwrap();
        self.drain();
        ask
    }

    pub fn give(&mut self, input: Input<'_>) {
        self.checker.input(&input);
        self.session.handle(input, self.now).unwrap();
        self.drain();
    }

    fn tick(&mut self, us: u64) {
        self.now.mono_us += us;
        self.now.unix_ms += us / 1_000;
    }

    pub fn wake_server(&mut self, us: u64) {
        self.tick(us);
        self.server.handle_woken(self.now);
        self.drain();
    }

    pub fn drain(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let output = self.server.poll_output(&mut bytes);
            self.wrote(&bytes);
            if let Some(output) = output {
                match output {
                    ServerOutput::Call(call) => {
                        self.checker.command(&call);
                        self.commands.push(call.command.clone());
                        self.session.handle(Input::Call(call), self.now).unwrap();
                    }
                    ServerOutput::Ask { id, ask } => self.asks.push((id, ask)),
                    ServerOutput::Dismiss { .. } => {}
                    ServerOutput::Diagnostic(text) => self.diagnostics.push(text.to_string()),
                    ServerOutput::Exit { code } => {
                        self.exit = Some(code);
                        self.exited(code);
                        self.lines.push(json!({"type":"exit","code":code}));
                    }
                }
                continue;
            }
            let Some(output) = self.session.poll_output() else {
                break;
            };
            self.checker.output(&output);
            match output {
                Output::Event(event) => {
                    if let What::ToolStarted {
                        call, provider_id, ..
                    } = &event.what
                    {
                        let name = provider_id.as_deref().unwrap_or_default();
                        self.names.insert(*call, name.to_owned());
                    }
                    self.server.handle_event(event);
                }
                Output::Delta(delta) => self.server.handle_delta(&delta),
                Output::Effect { run, effect } => self.effect(run, effect),
            }
        }
        self.checker.quiet();
        assert_eq!(self.checker.violations(), []);
    }

    fn effect(&mut self, run: RunId, effect: Effect) {
        match effect {
            Effect::StartModel(id) => {
                self.model.push((id, false));
                self.open_model = Some(id);
                self.calls = 0;
            }
            Effect::StopModel(id) => {
                for (request, stopped) in &mut self.model {
                    *stopped |= *request == id;
                }
            }
            Effect::RunTool { call } => {
                let _ = self.session.body(run, &effect);
                self.running.push(call);
            }
            Effect::StopTool(call) => {
                self.running.retain(|running| *running != call);
                self.stopping.push(call);
            }
            Effect::Store(write) => {
                let input = Input::Store { write, ok: Ok(()) };
                self.checker.input(&input);
                self.session.handle(input, self.now).unwrap();
            }
            other => panic!("unexpected effect: {other:?}"),
        }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        for line in text.lines() {
            let mut members = Members::default();
            let read = AgentLine::decode(line.as_bytes(), &CLOSED_RULES, &mut members)
                .unwrap_or_else(|fault| panic!("{fault}: {line}"));
            let odd = matches!(
                read,
                AgentLine::Unknown { .. }
                    | AgentLine::System(System::Unknown(_))
                    | AgentLine::Record(Record::Unknown(_))
            );
            assert!(!odd, "no line of the contract: {line}");
            let value: Value = serde_json::from_str(line).unwrap();
            if value["type"] == "control_request" {
                self.requests.push(value.clone());
            }
            self.raw.push(line.to_owned());
            self.lines.push(value);
            self.watch(Dir::Agent, SplitKind::Line(line.as_bytes()));
        }
    }

    pub fn chunk(&mut self, chunk: ModelChunk<'_>) {
        let request = self.open_model.expect("a request was sent");
        self.give(Input::Model { request, chunk });
    }

    pub fn play(&mut self, scene: &str) {
        for token in scene.split_whitespace() {
            self.tick(1_000);
            self.token(token);
        }
    }

    fn token(&mut self, token: &str) {
        if let Some(word) = token
            .strip_prefix('«')
            .and_then(|rest| rest.strip_suffix('»'))
        {
            return self.host_word(word);
        }
        let (verb, rest) = token.split_once('(').map_or((token, ""), |(verb, rest)| {
            (verb, rest.strip_suffix(')').unwrap())
        });
        match verb {
            "reply" => self.play("begin text fin(end_turn)"),
            "begin" => {
                let id = format!("msg_{}", self.model.len());
                self.chunk(ModelChunk::Begin {
                    id: Some(&id),
                    model: Some("m-1"),
                });
            }
            "text" => self.chunk(ModelChunk::Text("Hello ")),
            "think" => {
                self.chunk(ModelChunk::Thinking("Hm."));
                self.chunk(ModelChunk::Signature("c2ln"));
            }
            "call" => self.call(rest),
            "calls" => {
                self.play("begin text");
                for part in rest.split(',') {
                    self.call(part);
                }
                self.token("fin(tool_use)");
            }
            "fin" => {
                self.chunk(ModelChunk::Usage(Usage {
                    input: Some(11),
                    output: Some(9),
                    ..Usage::default()
                }));
                self.chunk(ModelChunk::Finish(rest));
                self.chunk(ModelChunk::End);
            }
            "cut" => self.chunk(ModelChunk::End),
            "fail" => {
                let status: u16 = rest.parse().unwrap();
                self.chunk(ModelChunk::Failed {
                    failure: Failure {
                        kind: match status {
                            400 => FailureKind::InvalidRequest,
                            413 => FailureKind::ContextFull,
                            _ => FailureKind::Server,
                        },
                        status: Some(status),
                        retryable: status >= 500,
                        text: "it failed".into(),
                    },
                    reached: true,
                    retry_after_us: None,
                });
            }
            "ran" => {
                let call = self
                    .running
                    .iter()
                    .copied()
                    .find(|call| rest.is_empty() || self.names[call] == rest)
                    .unwrap_or_else(|| panic!("{rest} doesn't run"));
                self.running.retain(|running| *running != call);
                self.done(call);
            }
            "settle" => {
                for index in 0..self.model.len() {
                    if self.model[index].1 {
                        let request = self.model[index].0;
                        self.model[index].1 = false;
                        self.give(Input::Model {
                            request,
                            chunk: ModelChunk::End,
                        });
                    }
                }
                for call in std::mem::take(&mut self.stopping) {
                    self.done(call);
                }
            }
            "wake" => {
                let due = self.session.poll_timeout().expect("a timer runs");
                self.now.mono_us = self.now.mono_us.max(due.at_us);
                self.give(Input::Woken);
            }
            other => panic!("no such word: {other}"),
        }
    }

    fn done(&mut self, call: CallId) {
        self.give(Input::Tool {
            call,
            update: ToolUpdate::Done {
                outcome: ToolOutcome::Ok,
                content: vec![Block::Text("done".into())],
                show: None,
            },
        });
    }

    fn call(&mut self, part: &str) {
        let (id, name) = part.split_once(':').unwrap();
        let index = self.calls;
        self.calls += 1;
        self.chunk(ModelChunk::CallBegin {
            index,
            id: Some(id),
            name,
        });
        self.chunk(ModelChunk::CallArgs {
            index,
            text: r#"{"path":"a"}"#,
        });
        self.chunk(ModelChunk::CallEnd { index });
    }

    fn host_word(&mut self, word: &str) {
        if word == "eof" {
            return self.end();
        }
        if let Some((verb, number)) = word.split_once('#') {
            let number = number.parse().unwrap();
            return match verb {
                "allow" => self.answer(number, json!({"behavior":"allow","updatedInput":{}})),
                "deny" => self.answer(number, json!({"behavior":"deny","message":"no"})),
                "deny!" => self.answer(
                    number,
                    json!({"behavior":"deny","message":"no","interrupt":true}),
                ),
                "error" => self.answer_error(number, "callback exploded"),
                "pass" => self.answer(number, json!({})),
                "yes" => self.answer(number, json!({"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}})),
                "no" => self.answer(number, json!({"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}})),
                other => panic!("no such answer: {other}"),
            };
        }
        match word.split_once(':') {
            Some(("interrupt", id)) => self.ask(id, json!({"subtype":"interrupt"})),
            Some((id, priority)) => self.say(&json!({"type":"user","uuid":id,"priority":priority,"message":{"role":"user","content":format!("text of {id}")}})),
            None if word == "init" => self.ask("init", json!({"subtype":"initialize"})),
            None => self.say(&json!({"type":"user","uuid":word,"message":{"role":"user","content":format!("text of {word}")}})),
        }
    }

    /// The lines so far in words, and forgets them.
    pub fn words(&mut self) -> String {
        let mut words: Vec<String> = Vec::new();
        for line in std::mem::take(&mut self.lines) {
            let word = self.word(&line);
            if !(word.ends_with('*') && words.last() == Some(&word)) {
                words.push(word);
            }
        }
        words.join(" ")
    }

    /// An event of the agent, past the Session.
    pub fn event(&mut self, what: What) {
        // Nobody says that it fits.
        self.watch = None;
        self.tick(1_000);
        let event = Event {
            at: self.now,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        };
        self.server.handle_event(&event);
        self.drain();
    }

    fn word(&self, line: &Value) -> String {
        word(line, &self.requests)
    }
}

/// A line of an agent in a word. `requests`: those that the agent has sent.
pub fn word(line: &Value, requests: &[Value]) -> String {
    {
        let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
        match (
            text(&line["type"]).as_str(),
            text(&line["subtype"]).as_str(),
        ) {
            ("system", "session_state_changed") => text(&line["state"]),
            ("system", "status") if line["permissionMode"].is_string() => {
                format!("mode({})", text(&line["permissionMode"]))
            }
            ("system", "status") => format!("status({})", text(&line["status"])),
            ("system", "api_retry") => format!("retry({})", line["attempt"]),
            ("system", other) => other.to_owned(),
            ("user", _) if line["isReplay"] == true => format!("replay({})", text(&line["uuid"])),
            ("user", _) => {
                let block = &line["message"]["content"][0];
                match (block["type"].as_str(), block["is_error"].as_bool()) {
                    (Some("tool_result"), Some(true)) => {
                        format!("result({},error)", text(&block["tool_use_id"]))
                    }
                    (Some("tool_result"), _) => {
                        format!("result({})", text(&block["tool_use_id"]))
                    }
                    _ => "user".to_owned(),
                }
            }
            ("assistant", _) => {
                let kind = text(&line["message"]["content"][0]["type"]);
                if line["error"].is_string() {
                    format!("assistant({kind},{})", text(&line["error"]))
                } else if line["aborted"] == true {
                    format!("assistant({kind},aborted)")
                } else {
                    format!("assistant({kind})")
                }
            }
            ("result", kind) => {
                let id = if line["prompt_uuid"].is_string() {
                    text(&line["prompt_uuid"])
                } else {
                    text(&line["user_message_uuid"])
                };
                let failed = line["is_error"] == true && kind == "success";
                let failed = if failed { "!" } else { "" };
                format!("end({kind}{failed},{id})")
            }
            ("stream_event", _) => {
                let event = &line["event"];
                match text(&event["type"]).as_str() {
                    "content_block_start" => format!("start({})", event["index"]),
                    "content_block_delta" => "delta*".to_owned(),
                    "content_block_stop" => format!("stop({})", event["index"]),
                    "message_delta" => {
                        format!("message_delta({})", text(&event["delta"]["stop_reason"]))
                    }
                    "response.output_text.delta" => "piece*".to_owned(),
                    other => other.to_owned(),
                }
            }
            ("control_request", _) => {
                let subtype = text(&line["request"]["subtype"]);
                if subtype == "mcp_message" {
                    format!("mcp({})", text(&line["request"]["message"]["method"]))
                } else {
                    format!("ask({subtype})")
                }
            }
            ("control_cancel_request", _) => {
                let number = requests
                    .iter()
                    .position(|request| request["request_id"] == line["request_id"])
                    .unwrap();
                format!("withdraw({})", number + 1)
            }
            ("control_response", _) => {
                let response = &line["response"];
                let id = text(&response["request_id"]);
                if response["subtype"] == "error" {
                    format!("answer({id},error)")
                } else {
                    format!("answer({id})")
                }
            }
            ("command_lifecycle", _) => {
                format!("{}({})", text(&line["state"]), text(&line["command_uuid"]))
            }
            ("exit", _) => format!("exit({})", line["code"]),
            (other, _) => other.to_owned(),
        }
    }
}
