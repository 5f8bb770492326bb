//! What the openmax tests share: a Server with its driver's work done by hand, and neutral events that are quick to
//! write. Every input is kept, so that a run can be played again, drained and cut in other ways.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

pub mod chunk;
pub mod duo;
pub mod watch;

use std::sync::Arc;

use turnwire::frame::{LineSplitter, SplitKind};
use turnwire::json::Members;
use turnwire::protocol::openmax::wire::{AgentLine, EventLine};
use turnwire::protocol::openmax::{Extra, Openmax, ServerConfig};
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::*;
use turnwire_proptests::laws::{Broken, ServerInput, ServerMachine, hold_cut};
use turnwire_proptests::world::Said;

pub const SEED: [u8; 32] = [7; 32];

pub fn config() -> ServerConfig {
    ServerConfig::new("0.1.0".into(), SEED)
}

/// One input of a Server.
#[derive(Clone, Debug)]
pub enum Told {
    /// Bytes of the host, cut as they came.
    Bytes(Vec<u8>),
    End,
    Signal(Signal),
    Event(Event),
    Delta {
        at: Now,
        message: u64,
        kind: Kind,
        text: String,
    },
    Extra(Extra),
    Woken(Now),
}

/// What came out, in order: bytes between outputs are joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Lines(Vec<u8>),
    Output(ServerOutput<Openmax>),
}

/// A Server, its splitter, its clock, and everything that went in and came out.
pub struct Rig {
    pub server: Server<Openmax>,
    splitter: LineSplitter,
    pub now: Now,
    /// Each with the time at which it came.
    pub told: Vec<(Told, Now)>,
    pub out: Vec<Out>,
    config: ServerConfig,
}

impl Rig {
    pub fn new(config: ServerConfig) -> Self {
        Rig {
            server: Server::new(config.clone()),
            splitter: LineSplitter::new(Openmax::host_line_rules()),
            now: Now {
                mono_us: 1_000,
                unix_ms: 1_700_000_000_000,
            },
            told: Vec::new(),
            out: Vec::new(),
            config,
        }
    }

    /// A Server that has said hello; what it said is forgotten.
    pub fn opened() -> Self {
        Self::opened_with(config())
    }

    pub fn opened_with(config: ServerConfig) -> Self {
        let mut rig = Rig::new(config);
        rig.event(What::Opened(Box::new(info())));
        rig.out.clear();
        rig
    }

    /// Takes one input and drains.
    pub fn tell(&mut self, told: Told) {
        self.put(&told);
        self.told.push((told, self.now));
        self.drain();
    }

    fn put(&mut self, told: &Told) {
        match told {
            Told::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.server.handle_line(split, self.now);
                }
            }
            Told::End => {
                if let Some(split) = self.splitter.finish() {
                    self.server.handle_line(split, self.now);
                }
                self.server.handle_end(self.now);
            }
            Told::Signal(signal) => self.server.handle_signal(*signal, self.now),
            Told::Event(event) => {
                self.now = event.at;
                self.server.handle_event(event);
            }
            Told::Delta {
                at,
                message,
                kind,
                text,
            } => {
                self.now = *at;
                let message = MessageId(*message);
                self.server.handle_delta(&DeltaRef {
                    at: *at,
                    run: RunId::MAIN,
                    message,
                    block: 0,
                    kind: *kind,
                    text,
                });
            }
            Told::Extra(extra) => self.server.handle_extra(extra.clone(), self.now),
            Told::Woken(now) => {
                self.now = *now;
                self.server.handle_woken(*now);
            }
        }
    }

    pub fn drain(&mut self) {
        while self.poll() {}
    }

    /// Takes one output and what stands before it.
    fn poll(&mut self) -> bool {
        let mut lines = Vec::new();
        let output = self.server.poll_output(&mut lines);
        if !lines.is_empty() {
            if let Some(Out::Lines(last)) = self.out.last_mut() {
                last.append(&mut lines);
            } else {
                self.out.push(Out::Lines(lines));
            }
        }
        let more = output.is_some();
        self.out.extend(output.map(Out::Output));
        more
    }

    /// What it was told, as the laws take it.
    pub fn story(&self) -> Vec<(ServerInput<Openmax>, Now)> {
        let input = |(told, now): &(Told, Now)| match told {
            Told::Bytes(bytes) => (ServerInput::Bytes(bytes.clone()), *now),
            Told::End => (ServerInput::End, *now),
            Told::Signal(signal) => (ServerInput::Signal(*signal), *now),
            Told::Event(event) => (
                ServerInput::Said(Box::new(Said::Event(event.clone()))),
                event.at,
            ),
            Told::Delta {
                at,
                message,
                kind,
                text,
            } => {
                let delta = Said::Delta {
                    at: *at,
                    run: RunId::MAIN,
                    message: MessageId(*message),
                    block: 0,
                    kind: *kind,
                    text: text.clone(),
                };
                (ServerInput::Said(Box::new(delta)), *at)
            }
            Told::Extra(extra) => (ServerInput::Extra(extra.clone()), *now),
            Told::Woken(at) => (ServerInput::Woken, *at),
        };
        self.told.iter().map(input).collect()
    }

    /// The laws of a machine, on what it was told: the host's bytes in pieces of `size`, drained after `every` inputs.
    pub fn laws(&self, size: usize, every: usize) -> Result<(), Broken> {
        let make =
            || ServerMachine::<Openmax>::new(self.config.clone(), Openmax::host_line_rules());
        hold_cut(make, &self.story(), size, every)
    }

    pub fn host(&mut self, line: &str) {
        self.tell(Told::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.tell(Told::Bytes(bytes.to_vec()));
    }

    pub fn user(&mut self, text: &str) {
        let text = serde_json::to_string(text).unwrap();
        self.host(&format!(r#"{{"cmd":"user","text":{text}}}"#));
    }

    pub fn event(&mut self, what: What) {
        self.event_in(RunId::MAIN, what);
    }

    pub fn event_in(&mut self, run: RunId, what: What) {
        let at = Now {
            mono_us: self.now.mono_us + 1,
            ..self.now
        };
        self.tell(Told::Event(Event {
            at,
            run,
            seen: Seen::Real,
            what,
        }));
    }

    pub fn delta(&mut self, kind: Kind, text: &str) {
        self.tell(Told::Delta {
            at: self.now,
            message: 1,
            kind,
            text: text.into(),
        });
    }

    /// Time passes; the Server is woken when it asked for it.
    pub fn pass(&mut self, us: u64) {
        let end = self.now.mono_us + us;
        while let Some(due) = self.server.poll_timeout().filter(|due| due.at_us <= end) {
            let at = due.at_us.max(self.now.mono_us);
            self.tell(Told::Woken(Now {
                mono_us: at,
                ..self.now
            }));
            if let Some(next) = self.server.poll_timeout() {
                assert!(next.at_us > at, "L4: a deadline that spins: {next:?}");
            }
        }
        self.now.mono_us = end;
    }

    /// Lines since the last call, without newlines.
    pub fn lines(&mut self) -> Vec<String> {
        let bytes: Vec<u8> = self
            .out
            .iter()
            .filter_map(|out| match out {
                Out::Lines(bytes) => Some(bytes.as_slice()),
                Out::Output(_) => None,
            })
            .collect::<Vec<_>>()
            .concat();
        self.out.retain(|out| matches!(out, Out::Output(_)));
        lines_of(&bytes)
    }

    /// Outputs since the last call.
    pub fn outputs(&mut self) -> Vec<ServerOutput<Openmax>> {
        let outputs = self
            .out
            .iter()
            .filter_map(|out| match out {
                Out::Lines(_) => None,
                Out::Output(output) => Some(output.clone()),
            })
            .collect();
        self.out.retain(|out| matches!(out, Out::Lines(_)));
        outputs
    }

    /// Commands since the last call; any other output fails.
    pub fn calls(&mut self) -> Vec<Call> {
        self.outputs()
            .into_iter()
            .map(|output| match output {
                ServerOutput::Call(call) => call,
                other => panic!("not a call: {other:?}"),
            })
            .collect()
    }

    /// The one command since the last call.
    pub fn call(&mut self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    pub fn labels(&mut self) -> Vec<String> {
        labels(&self.lines())
    }

    pub fn reply(&mut self, command: CommandId, reply: Result<Answer, Refusal>) {
        self.event(What::Replied { command, reply });
    }

    /// A prompt that was admitted, with its step and request open.
    pub fn turn(&mut self) -> PromptId {
        self.user("go");
        let call = self.call();
        let Command::Prompt(prompt) = &call.command else {
            panic!("{call:?}")
        };
        let id = prompt.id;
        self.reply(call.id, Ok(Answer::Admitted(Admitted::Started)));
        self.event(What::TurnStarted {
            turn: TurnId(1),
            cause: Cause::Prompt,
        });
        self.step();
        id
    }

    pub fn step(&mut self) {
        self.event(What::StepStarted {
            step: StepId(1),
            number: 1,
        });
        self.event(What::Context {
            used: 1_000,
            window: 32_768,
            estimated: true,
        });
        self.event(What::RequestStarted {
            request: RequestId(1),
            attempt: 1,
        });
    }

    pub fn end(&mut self, prompt: PromptId, end: End) {
        self.event(What::StepEnded { step: StepId(1) });
        self.event(turn_ended(end.clone(), false));
        self.event(What::PromptEnded { prompt, end });
        self.event(What::Settled);
    }
}

pub fn lines_of(bytes: &[u8]) -> Vec<String> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let text = std::str::from_utf8(bytes).expect("output is UTF-8");
    let text = text.strip_suffix('\n').expect("output ends with a newline");
    text.split('\n').map(str::to_owned).collect()
}

/// Types of lines, with what tells them apart; a run of deltas is one.
pub fn labels(lines: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for line in lines {
        let mut members = Members::new();
        let line = AgentLine::decode(line.as_bytes(), &mut members)
            .unwrap_or_else(|fault| panic!("{line}: {fault:?}"));
        let label = match &line {
            AgentLine::Event {
                event: EventLine::Done(done),
                ..
            } => format!("done({})", done.stop_reason),
            AgentLine::Event {
                event: EventLine::ToolStart(tool),
                ..
            } => format!("tool_start({})", tool.call_id),
            AgentLine::Event {
                event: EventLine::ToolEnd(tool),
                ..
            } => format!("tool_end({})", tool.call_id),
            AgentLine::Event {
                event: EventLine::ApprovalSettled(settled),
                ..
            } => {
                format!("approval_settled({})", settled.outcome)
            }
            AgentLine::Event {
                event: EventLine::Token(_) | EventLine::Thinking(_),
                ..
            } => format!("{}*", line.kind()),
            _ => line.kind().to_owned(),
        };
        if !(label.ends_with('*') && labels.last() == Some(&label)) {
            labels.push(label);
        }
    }
    labels
}

/// The message of a `protocol_error` line.
pub fn refusal(line: &str) -> String {
    let mut members = Members::new();
    match AgentLine::decode(line.as_bytes(), &mut members) {
        Ok(AgentLine::ProtocolError(error)) => error.message.into_owned(),
        other => panic!("{line}: {other:?}"),
    }
}

pub fn info() -> SessionInfo {
    SessionInfo {
        session: "6f1e6a52-0000-4000-8000-000000000001".into(),
        name: None,
        file: None,
        generation: "".into(),
        root: Some("/abs/path".into()),
        cwd: "/abs/path/sub".into(),
        product: "turnwire".into(),
        continued: false,
        history: Vec::new(),
        summarised: Vec::new(),
        model: model(),
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(Settings {
            approvals: ApprovalMode::Ask,
            thinking: None,
            steer_drain: Drain::All,
            follow_up_drain: Drain::All,
            interrupting: Interrupting::Wait,
            auto_retry: true,
            auto_compact: true,
        }),
        tools: vec!["read_file".into(), "write_file".into()],
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    }
}

pub fn model() -> ModelRef {
    ModelRef {
        provider: None,
        model: "m-1".into(),
    }
}

pub fn failure(text: &str) -> Failure {
    Failure {
        kind: FailureKind::Server,
        status: Some(500),
        retryable: false,
        text: text.into(),
    }
}

pub fn message(role: Role, origin: Origin, text: &str) -> Arc<Message> {
    let content = if text.is_empty() {
        vec![]
    } else {
        vec![Arc::new(Block::Text(text.into()))]
    };
    Arc::new(Message {
        id: MessageId(1),
        role,
        content,
        origin,
        prompt: None,
        about: None,
        at_ms: 0,
        details: None,
    })
}

pub fn usage() -> Usage {
    Usage {
        input: Some(100),
        cache_read: None,
        cache_write: None,
        output: Some(20),
        reasoning: None,
    }
}

pub fn request_ended(outcome: RequestOutcome) -> What {
    let usage = matches!(outcome, RequestOutcome::Complete { .. }).then(usage);
    What::RequestEnded {
        request: RequestId(1),
        outcome,
        model: model(),
        usage,
        cost: Cost::NotSaid,
        api_us: 1,
    }
}

pub fn complete() -> What {
    request_ended(RequestOutcome::Complete {
        finish: "stop".into(),
    })
}

pub fn message_ended(text: &str, stop: Stop, kept: bool) -> What {
    What::MessageEnded {
        message: message(Role::Assistant, Origin::Host, text),
        stop,
        kept,
        calls: CallList::Complete,
    }
}

pub fn turn_ended(end: End, background: bool) -> What {
    let report = TurnReport {
        wall_us: 1,
        api_us: None,
        requests: None,
        by_model: vec![],
        denials: vec![],
    };
    let pending = Pending {
        queued: 0,
        background,
        resumes: false,
    };
    What::TurnEnded {
        turn: TurnId(1),
        end,
        answer: None,
        report: Box::new(report),
        pending,
    }
}

pub fn tool_started(call: u64, provider_id: &str, input: ToolInput) -> What {
    What::ToolStarted {
        call: CallId(call),
        provider_id: Some(provider_id.into()),
        name: "write_file".into(),
        input: Some(input),
        cause: ToolCause::Model {
            message: MessageId(1),
            block: 0,
        },
        side_effect: SideEffect::Write,
    }
}

pub fn tool_ended(call: u64, outcome: ToolOutcome, text: &str) -> What {
    What::ToolEnded {
        call: CallId(call),
        outcome,
        content: vec![Block::Text(text.into())],
        show: None,
    }
}

pub fn permission(reason: AskReason) -> PermissionAsk {
    PermissionAsk {
        call: Some(CallId(1)),
        tool: "write_file".into(),
        reason,
        summary: "out.txt".into(),
        detail: "path=out.txt".into(),
        body: None,
        suggestions: vec![],
        env: vec![],
        due: None,
    }
}

pub fn object(text: &str) -> ToolInput {
    ToolInput::Object(RawJson(text.into()))
}

/// Whole lines only: what a host reads of the bytes.
pub fn split_kind(kind: &SplitKind<'_>) -> &'static str {
    match kind {
        SplitKind::Line(_) => "line",
        SplitKind::TooLong { .. } => "too long",
        SplitKind::Tail(_) => "tail",
    }
}

/// The input of a case from the field.
pub fn case(id: &str) -> Vec<u8> {
    let case = turnwire_proptests::cases::named(id).expect("the case exists");
    case.input("").expect("it has one input").to_vec()
}

/// What a host may rely on, whatever the agent does. True: a `done` is still owed.
pub fn judge(out: &[Out], opened: bool) -> bool {
    let mut members = Members::new();
    let (mut hello, mut schemas, mut over) = (opened, false, false);
    let (mut turn, mut tokens) = (false, false);
    let mut users = 0i32;
    let (mut calls, mut approvals) = (Vec::new(), Vec::new());
    let mut used = std::collections::BTreeSet::new();
    for out in out {
        assert!(!over, "nothing comes after the exit");
        let bytes = match out {
            Out::Output(ServerOutput::Call(Call {
                command: Command::Prompt(_),
                ..
            })) => {
                assert!(!turn, "a prompt while a done is owed");
                turn = true;
                users += 1;
                continue;
            }
            Out::Output(ServerOutput::Exit { .. }) => {
                over = true;
                continue;
            }
            Out::Output(_) => continue,
            Out::Lines(bytes) => bytes,
        };
        for line in lines_of(bytes) {
            let line = AgentLine::decode(line.as_bytes(), &mut members)
                .unwrap_or_else(|fault| panic!("{line}: {fault:?}"));
            let AgentLine::Event { event, .. } = line else {
                assert_eq!(
                    hello,
                    !matches!(line, AgentLine::Hello(_)),
                    "hello is the first line, and comes once"
                );
                hello = true;
                continue;
            };
            assert!(hello);
            match &event {
                EventLine::Done(done) if &*done.stop_reason == "refused" && !turn => {}
                EventLine::Done(_) => {
                    assert!(turn, "a done that nothing is owed");
                    turn = false;
                    tokens = false;
                    users -= 1;
                }
                EventLine::Refrozen(_) => {}
                EventLine::ApprovalSettled(settled) => {
                    let index = approvals
                        .iter()
                        .position(|id| *id == settled.approval_id)
                        .expect("it was open");
                    approvals.remove(index);
                }
                _ => assert!(turn, "nothing of a turn stands outside of one: {event:?}"),
            }
            match event {
                EventLine::SchemasOverBudget(_) => {
                    assert!(!std::mem::replace(&mut schemas, true), "at most once")
                }
                EventLine::ApprovalRequest(request) => {
                    approvals.push(request.approval_id.into_owned())
                }
                EventLine::ToolStart(tool) => {
                    assert!(
                        used.insert(tool.call_id.clone().into_owned()),
                        "an id is used once in a session"
                    );
                    calls.push(tool.call_id.into_owned());
                }
                EventLine::ToolEnd(tool) => {
                    let index = calls
                        .iter()
                        .position(|id| *id == tool.call_id)
                        .expect("it was open");
                    calls.remove(index);
                }
                EventLine::Token(_) => tokens = true,
                EventLine::Budget(_) => tokens = false,
                EventLine::Retry(_) => assert!(!tokens, "no retry follows a token of its step"),
                _ => {}
            }
        }
    }
    assert!((0..=1).contains(&users));
    turn
}
