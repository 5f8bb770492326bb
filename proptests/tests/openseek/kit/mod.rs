//! A Server and a Session in memory, with a provider, tools and a host that are moved by words, and the observer between
//! them.
//!
//! Host: `«p1»` a prompt with that text, `«steer:s1»`, `«command:k1»`, `«compact»`, `«cancel»`, `«allow#1»`, `«deny#1»`
//! for the question of that number, `«goal:g»` (with `auto`), `«task:g»` (without), `«clear»`, `«jobs:j1»`,
//! `«stop:s1:bg-1»`, `«eof»`, `«junk»`. Model: `reply`, `text`, `think`, `calls(c1:tool,…)`, `fin(word)`, `used(n)`,
//! `cut`, `fail(status)`. Driver: `ran(c1)`, `detach(c1)` (it goes on as job `bg-1`), `wrote`, `exits(code)`, `settle`,
//! `wake`.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod labels;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnwire::frame::{LineSplitter, Place, Split, SplitKind};
use turnwire::json::Members;
use turnwire::protocol::observer::{Dir, Observer, Severity, Sides};
use turnwire::protocol::openseek::wire::Event as Line;
use turnwire::protocol::openseek::{
    Asking, Mode, ObserverConfig, Openseek, OpenseekExtra, ServerConfig, preset,
};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::session::config::{ModelConfig, Rule, RuleBehaviour};
use turnwire::session::{Session, SessionConfig};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;
use turnwire_proptests::laws::ServerInput;
use turnwire_proptests::world::Said;

pub const SEED: [u8; 32] = [7; 32];

pub fn tool(name: &str, side_effect: SideEffect, route: Route) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        label: None,
        description: "".into(),
        schema: RawJson(r#"{"properties":{"n":{"type":"number"}}}"#.into()),
        side_effect,
        hidden: false,
        uri_arg: None,
        route,
    }
}

pub fn session_config(asking: Asking) -> SessionConfig {
    let mut config = SessionConfig::new(ModelConfig::new("m-1", 32_768));
    preset(&mut config);
    config.settings.approvals = asking.mode();
    config.tools = vec![
        tool("look", SideEffect::Read, Route::Driver),
        tool("peek", SideEffect::Read, Route::Driver),
        tool("write", SideEffect::Write, Route::Driver),
        tool("finish", SideEffect::None, Route::Capture { tries: 2 }),
    ];
    config.rules.push(Rule {
        behaviour: RuleBehaviour::Ask,
        tool: "peek".into(),
        pattern: None,
    });
    config
}

pub fn info() -> SessionInfo {
    SessionInfo {
        generation: "runtime-1".into(),
        ..<turnwire::protocol::openmax::Openmax as turnwire_proptests::world::Speaks>::info()
    }
}

pub struct Duo {
    pub server: Server<Openseek>,
    pub session: Session,
    splitter: LineSplitter,
    pub now: Now,
    pub lines: Vec<Value>,
    pub raw: Vec<String>,
    pub diagnostics: Vec<String>,
    pub exit: Option<u8>,
    /// Ids of questions, in order.
    pub questions: Vec<String>,
    /// What the Server was told, for the laws.
    pub story: Vec<(ServerInput<Openseek>, Now)>,
    /// Requests to the model, and whether they were told to stop.
    model: Vec<(RequestId, bool)>,
    open_model: Option<RequestId>,
    calls: u32,
    running: Vec<CallId>,
    pub names: BTreeMap<CallId, String>,
    stopping: Vec<CallId>,
    /// The newest job, and whether it was told to stop.
    job: Option<(JobId, bool)>,
    pub commands: Vec<Command>,
    /// Commands don't reach the session: another agent is played by hand.
    pub deaf: bool,
    /// Whether writes succeed.
    pub disk: Result<(), Text>,
    checker: Checker,
    watch: Observer<Openseek>,
    /// Lines so far, of both sides.
    seen: u64,
}

impl Duo {
    /// An engine that serves and asks.
    pub fn new() -> Self {
        Duo::asking(Asking::Ask)
    }

    pub fn asking(asking: Asking) -> Self {
        Duo::with(ServerConfig::serve(SEED, asking), session_config(asking))
    }

    pub fn with(server: ServerConfig, session: SessionConfig) -> Self {
        Duo::before(server, session, &[])
    }

    /// Of an embedder that had something to say before there was a session.
    pub fn before(server: ServerConfig, session: SessionConfig, extras: &[OpenseekExtra]) -> Self {
        let now = Now {
            mono_us: 1_000,
            unix_ms: 1_796_008_000_000,
        };
        let shapes = server.shapes;
        // Nobody commands a run.
        let sides = match server.mode {
            Mode::Serve { .. } => Sides::Both,
            Mode::Run { .. } => Sides::Agent,
        };
        let mut duo = Duo {
            server: Server::new(server),
            session: Session::new(session, Box::new(info()), now),
            splitter: LineSplitter::new(Openseek::host_line_rules()),
            now,
            lines: Vec::new(),
            raw: Vec::new(),
            diagnostics: Vec::new(),
            exit: None,
            questions: Vec::new(),
            story: Vec::new(),
            model: Vec::new(),
            open_model: None,
            calls: 0,
            running: Vec::new(),
            names: BTreeMap::new(),
            stopping: Vec::new(),
            job: None,
            commands: Vec::new(),
            deaf: false,
            disk: Ok(()),
            checker: Checker::new(Scope::Session),
            watch: Observer::new(ObserverConfig { shapes }, sides),
            seen: 0,
        };
        for extra in extras {
            duo.server.handle_extra(extra.clone(), now);
            duo.story.push((ServerInput::Extra(extra.clone()), now));
        }
        duo.drain();
        duo
    }

    pub fn host(&mut self, line: &str) {
        self.bytes(format!("{line}\n").as_bytes());
    }

    pub fn say(&mut self, line: &Value) {
        self.host(&line.to_string());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        let rules = Openseek::host_line_rules();
        let mut splitter = std::mem::replace(&mut self.splitter, LineSplitter::new(rules));
        let mut chunk = bytes;
        while let Some(split) = splitter.next(&mut chunk) {
            self.watch(Dir::Host, split.what);
            if let SplitKind::Line(line) = split.what {
                let line = [line, b"\n"].concat();
                self.story.push((ServerInput::Bytes(line), self.now));
            }
            self.server.handle_line(split, self.now);
            self.drain();
        }
        self.splitter = splitter;
    }

    pub fn end(&mut self) {
        let rules = Openseek::host_line_rules();
        let mut splitter = std::mem::replace(&mut self.splitter, LineSplitter::new(rules));
        if let Some(split) = splitter.finish() {
            self.watch(Dir::Host, split.what);
            self.server.handle_line(split, self.now);
            self.drain();
        }
        self.watch.handle_end(Dir::Host);
        self.story.push((ServerInput::End, self.now));
        self.server.handle_end(self.now);
        self.drain();
    }

    pub fn signal(&mut self, signal: Signal) {
        self.story.push((ServerInput::Signal(signal), self.now));
        self.server.handle_signal(signal, self.now);
        self.drain();
    }

    /// Shows a line to the observer. None of the agent's may be wrong.
    pub fn watch(&mut self, dir: Dir, what: SplitKind<'_>) {
        self.seen += 1;
        let place = Place {
            line: self.seen,
            offset: 0,
        };
        self.watch.handle_line(dir, Split { place, what });
        self.judge();
    }

    fn judge(&mut self) {
        while let Some(finding) = self.watch.poll_finding() {
            // A provider may not say what a reply cost.
            let mild = finding.severity == Severity::Info || finding.rule.id == "OS-A09.i";
            assert!(mild, "{finding}\n{}", self.raw.join("\n"));
        }
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

    /// What an agent says, to the Server.
    fn hear(&mut self, said: Said) {
        match said.lend() {
            Output::Event(event) => self.server.handle_event(event),
            Output::Delta(delta) => self.server.handle_delta(&delta),
            Output::Effect { .. } => return,
        }
        self.story
            .push((ServerInput::Said(Box::new(said)), self.now));
    }

    /// An event that no session of ours has said.
    pub fn event(&mut self, what: What) {
        self.tick(1_000);
        self.hear(Said::Event(Event {
            at: self.now,
            run: RunId::MAIN,
            seen: Seen::Real,
            what,
        }));
        self.drain();
    }

    pub fn extra(&mut self, extra: OpenseekExtra) {
        self.server.handle_extra(extra.clone(), self.now);
        self.story.push((ServerInput::Extra(extra), self.now));
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
                        self.commands.push(call.command.clone());
                        if self.deaf {
                            continue;
                        }
                        self.checker.command(&call);
                        self.session.handle(Input::Call(call), self.now).unwrap();
                    }
                    ServerOutput::Ask { ask, .. } => match ask {},
                    ServerOutput::Dismiss { .. } => {}
                    ServerOutput::Diagnostic(text) => self.diagnostics.push(text.to_string()),
                    ServerOutput::Exit { code } => {
                        self.exit = Some(code);
                        self.watch.handle_exit(i64::from(code));
                        self.watch.finish();
                        self.judge();
                        self.lines.push(json!({"event":"exit","code":code}));
                    }
                }
                continue;
            }
            let Some(output) = self.session.poll_output() else {
                break;
            };
            self.checker.output(&output);
            if let Output::Event(event) = &output
                && let What::ToolStarted {
                    call, provider_id, ..
                } = &event.what
            {
                let name = provider_id.as_deref().unwrap_or_default();
                self.names.insert(*call, name.to_owned());
            }
            match Said::from(&output) {
                Said::Effect(run, effect) => self.effect(run, effect),
                said => self.hear(said),
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
                let ok = self.disk.clone();
                let input = Input::Store { write, ok };
                self.checker.input(&input);
                self.session.handle(input, self.now).unwrap();
            }
            Effect::StopJob(id) => {
                if let Some((job, stopped)) = &mut self.job {
                    *stopped |= *job == id;
                }
            }
            other => panic!("unexpected effect: {other:?}"),
        }
    }

    fn wrote(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        for line in text.lines() {
            let mut members = Members::default();
            let read = Line::read(line.as_bytes(), &mut members)
                .unwrap_or_else(|fault| panic!("{fault}: {line}"));
            assert!(read.tag().is_some(), "no line of the contract: {line}");
            let mut again = Vec::new();
            read.encode(&mut again);
            assert_eq!(again, line.as_bytes(), "{line}");
            let value: Value = serde_json::from_str(line).unwrap();
            if value["event"] == "approval_requested" {
                self.questions
                    .push(value["id"].as_str().unwrap().to_owned());
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

    /// Labels of the lines since the last look.
    pub fn labels(&mut self) -> Vec<String> {
        labels::labels(&std::mem::take(&mut self.lines))
    }

    fn host_word(&mut self, word: &str) {
        let (verb, arg) = word.split_once([':', '#']).unwrap_or((word, ""));
        let line = match verb {
            "eof" => return self.end(),
            "junk" => return self.host("{nonsense"),
            "steer" => json!({"command":"steer","kind":"prompt","text":arg}),
            "command" => json!({"command":"steer","kind":"command","text":arg}),
            "compact" | "cancel" => json!({"command":verb}),
            "allow" | "deny" => {
                let number: usize = arg.parse().unwrap();
                let id = self.questions.get(number - 1).map_or("ap-0", |id| id);
                json!({"command":"approval","id":id,"allow":verb == "allow"})
            }
            "goal" => json!({"command":"goal","action":"set","text":arg,"auto":true}),
            "task" => json!({"command":"goal","action":"set","text":arg}),
            "clear" => json!({"command":"goal","action":"clear"}),
            "jobs" => json!({"command":"jobs_snapshot","request_id":arg}),
            "stop" => {
                let (request, job) = arg.split_once(':').unwrap();
                json!({"command":"job_stop","request_id":request,"generation":"runtime-1","job_id":job})
            }
            "other" => {
                json!({"command":"job_stop","request_id":arg,"generation":"runtime-0","job_id":"bg-1"})
            }
            text => json!({"command":"prompt","text":text}),
        };
        self.say(&line);
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
            "reply" => self.play("text fin(stop)"),
            "text" => self.chunk(ModelChunk::Text("Hello ")),
            "think" => self.chunk(ModelChunk::Thinking("Hm.")),
            "calls" => {
                for part in rest.split(',') {
                    self.call(part);
                }
                self.token("fin(tool_calls)");
            }
            "used" => self.chunk(ModelChunk::Usage(Usage {
                input: Some(rest.parse().unwrap()),
                output: Some(9),
                ..Usage::default()
            })),
            "fin" => {
                self.token("used(11)");
                self.chunk(ModelChunk::Finish(rest));
                self.chunk(ModelChunk::End);
            }
            "end" => {
                self.chunk(ModelChunk::Finish("stop"));
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
                let call = self.take_running(rest);
                self.done(call, ToolOutcome::Ok);
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
                    self.done(call, ToolOutcome::Cancelled);
                }
                if self.job.is_some_and(|(_, stopped)| stopped) {
                    let state = JobState::Stopped("driver".into());
                    self.job_news(JobUpdate::Ended(state));
                }
            }
            "detach" => {
                let call = self.take_running(rest);
                self.job = Some((JobId(call.0), false));
                let start = JobStart {
                    id: "bg-1".into(),
                    generation: "runtime-1".into(),
                    kind: JobKind::Shell,
                    command: "sleep 5".into(),
                    description: None,
                    cwd: Some("/repo".into()),
                    finite: true,
                    times_ms: [None; 4],
                };
                let update = ToolUpdate::Detached(start.into());
                self.give(Input::Tool { call, update });
            }
            "wrote" => self.job_news(JobUpdate::Output(JobOutput {
                bytes: 7,
                chars: 7,
                ..JobOutput::default()
            })),
            "exits" => {
                let state = JobState::Exited(rest.parse().unwrap());
                self.job_news(JobUpdate::Ended(state));
            }
            "wake" => {
                let due = self.session.poll_timeout().expect("a timer runs");
                self.now.mono_us = self.now.mono_us.max(due.at_us);
                self.give(Input::Woken);
            }
            other => panic!("unknown word: {other}"),
        }
    }

    fn take_running(&mut self, id: &str) -> CallId {
        let mut running = self.running.iter();
        let at = running
            .position(|call| self.names[call] == id)
            .unwrap_or_else(|| panic!("{id} doesn't run"));
        self.running.remove(at)
    }

    fn job_news(&mut self, update: JobUpdate) {
        let (job, _) = self.job.expect("a job was begun");
        self.give(Input::Job { job, update });
    }

    /// `id:tool`, `id:tool!` with input that doesn't fit.
    fn call(&mut self, part: &str) {
        let (id, name) = part.split_once(':').unwrap();
        let (name, text) = match name.strip_suffix('!') {
            Some(name) => (name, r#"{"n":"x"}"#),
            None => (name, r#"{"answer":"done","n":1}"#),
        };
        let index = self.calls;
        self.calls += 1;
        self.chunk(ModelChunk::CallBegin {
            index,
            id: Some(id),
            name,
        });
        self.chunk(ModelChunk::CallArgs { index, text });
        self.chunk(ModelChunk::CallEnd { index });
    }

    fn done(&mut self, call: CallId, outcome: ToolOutcome) {
        let update = ToolUpdate::Done {
            outcome,
            content: vec![Block::Text("made".into())],
            show: Some(Box::new(Show {
                summary: Some("one line".into()),
                ..Show::default()
            })),
        };
        self.give(Input::Tool { call, update });
    }
}
