//! What the tests of the openmax Client share: a Client whose inputs are kept, with the laws of the neutral stream
//! watched all the time.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

#[path = "../../shared/text.rs"]
pub mod text;
pub mod transcript;

use turnwire::frame::LineSplitter;
use turnwire::protocol::openmax::{ClientConfig, Extra, Openmax};
use turnwire::protocol::{Client, ClientOutput, Finding, Protocol};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;
use turnwire_proptests::laws::ClientInput;

/// When every rig begins.
const BEGIN: Now = Now {
    mono_us: 1_000,
    unix_ms: 1_700_000_000_000,
};

/// One input of a Client.
#[derive(Clone, Debug)]
pub enum Told {
    Command(Call),
    /// Bytes of the agent, cut as they came.
    Bytes(Vec<u8>),
    End,
    Woken,
    /// Time passes before the next input.
    Time(Now),
}

/// What came out, in order; bytes between outputs are joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Lines(Vec<u8>),
    Event(Event),
    Extra(Extra),
    Finding(Finding),
    CloseInput,
    Signal(Signal),
    Closed,
}

/// A Client, its splitter, its clock, and everything that went in and came out.
pub struct Rig {
    pub client: Client<Openmax>,
    splitter: LineSplitter,
    pub now: Now,
    pub told: Vec<Told>,
    pub out: Vec<Out>,
    checker: Checker,
    config: ClientConfig,
    ids: u64,
    /// Bytes that no output stands between are one [`Out::Lines`].
    pub joins: bool,
}

pub const HELLO: &str = r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"0.2.0","project":"/p","continued":false}"#;

impl Rig {
    pub fn new(config: ClientConfig) -> Self {
        Rig {
            client: Client::new(config.clone()),
            splitter: LineSplitter::new(Openmax::agent_line_rules()),
            now: BEGIN,
            told: Vec::new(),
            out: Vec::new(),
            checker: Checker::new(Scope::Any),
            config,
            ids: 0,
            joins: true,
        }
    }

    /// A Client whose agent has said hello; what came of it is forgotten.
    pub fn opened() -> Self {
        let mut rig = Rig::new(ClientConfig::default());
        rig.agent(HELLO);
        rig.out.clear();
        rig
    }

    pub fn tell(&mut self, told: Told) {
        self.put(&told);
        self.told.push(told);
        self.drain();
    }

    fn put(&mut self, told: &Told) {
        match told {
            Told::Command(call) => {
                if self.client.wants_commands() {
                    self.checker.command(call);
                }
                self.client.handle_command(call.clone(), self.now);
            }
            Told::Bytes(bytes) => {
                let mut chunk = bytes.as_slice();
                while let Some(split) = self.splitter.next(&mut chunk) {
                    self.client.handle_line(split, self.now);
                }
            }
            Told::End => {
                if let Some(split) = self.splitter.finish() {
                    self.client.handle_line(split, self.now);
                }
                self.client.handle_end(self.now);
            }
            Told::Woken => self.client.handle_woken(self.now),
            Told::Time(now) => self.now = *now,
        }
    }

    pub fn drain(&mut self) {
        let mut lines = Vec::new();
        loop {
            let output = self
                .client
                .poll_output(&mut lines)
                .map(|output| own(&output));
            if !lines.is_empty() {
                if self.joins
                    && let Some(Out::Lines(last)) = self.out.last_mut()
                {
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

    /// What it was told, as the laws take it.
    pub fn story(&self) -> Vec<(ClientInput<Openmax>, Now)> {
        let mut now = BEGIN;
        let mut story = Vec::new();
        for told in &self.told {
            let input = match told {
                Told::Command(call) => ClientInput::Call(call.clone()),
                Told::Bytes(bytes) => ClientInput::Bytes(bytes.clone()),
                Told::End => ClientInput::End,
                Told::Woken => ClientInput::Woken,
                Told::Time(at) => {
                    now = *at;
                    continue;
                }
            };
            story.push((input, now));
        }
        story
    }

    /// A line of the agent.
    pub fn agent(&mut self, line: &str) {
        self.tell(Told::Bytes([line.as_bytes(), b"\n"].concat()));
    }

    /// A line of the agent that is only handed over: nothing is drained or kept.
    pub fn client_line(&mut self, line: &str) {
        let bytes = [line.as_bytes(), b"\n"].concat();
        self.put(&Told::Bytes(bytes));
    }

    /// An event of session `s`: its type, and its other members.
    pub fn says(&mut self, kind: &str, members: &str) {
        let comma = if members.is_empty() { "" } else { "," };
        self.agent(&format!(
            r#"{{"session_id":"s","type":"{kind}"{comma}{members}}}"#
        ));
    }

    pub fn done(&mut self, word: &str) {
        self.says("done", &format!(r#""stop_reason":"{word}""#));
    }

    pub fn budget(&mut self) {
        self.says("budget", r#""used_tokens":1000,"context_tokens":32768"#);
    }

    /// A step that answers with this text.
    pub fn step(&mut self, text: &str) {
        self.budget();
        self.says("token", &format!(r#""text":"{text}""#));
        self.says("message_done", &format!(r#""text":"{text}""#));
    }

    pub fn refused(&mut self, text: &str) {
        self.agent(&format!(
            r#"{{"type":"protocol_error","message":{}}}"#,
            serde_json::to_string(text).unwrap()
        ));
    }

    pub fn command(&mut self, command: Command) -> CommandId {
        self.ids += 1;
        let id = CommandId(self.ids);
        self.tell(Told::Command(Call { id, command }));
        id
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

    pub fn end(&mut self) {
        self.tell(Told::End);
    }

    /// Time passes; the Client is woken when it asked for it.
    pub fn pass_ms(&mut self, ms: u64) {
        let end = self.now.mono_us + ms * 1_000;
        while let Some(due) = self.client.poll_timeout().filter(|due| due.at_us <= end) {
            let at = due.at_us.max(self.now.mono_us);
            self.tell(Told::Time(Now {
                mono_us: at,
                ..self.now
            }));
            self.tell(Told::Woken);
            if let Some(next) = self.client.poll_timeout() {
                assert!(next.at_us > at, "L4: a deadline that spins: {next:?}");
            }
        }
        self.tell(Told::Time(Now {
            mono_us: end,
            ..self.now
        }));
    }

    /// Lines to the agent since the last look, without newlines.
    pub fn lines(&mut self) -> Vec<String> {
        let bytes: Vec<u8> = self
            .out
            .iter()
            .filter_map(|out| match out {
                Out::Lines(bytes) => Some(bytes.as_slice()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .concat();
        self.out.retain(|out| !matches!(out, Out::Lines(_)));
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Everything but lines since the last look, in the shorthand of the scenes.
    pub fn events(&mut self) -> String {
        let text = text::events(&self.out);
        self.out.retain(|out| matches!(out, Out::Lines(_)));
        text
    }

    /// Texts of the findings since the last look.
    pub fn findings(&mut self) -> Vec<String> {
        let found = self
            .out
            .iter()
            .filter_map(|out| match out {
                Out::Finding(finding) => Some(finding.text.to_string()),
                _ => None,
            })
            .collect();
        self.out.retain(|out| !matches!(out, Out::Finding(_)));
        found
    }

    /// The reply to a command, which came once.
    pub fn reply(&self, command: CommandId) -> Option<Result<Answer, Refusal>> {
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
}

/// A Client in a turn whose request is out; what came of it is forgotten.
pub fn in_turn() -> Rig {
    let mut rig = Rig::opened();
    rig.user("hi");
    rig.budget();
    rig.out.clear();
    rig
}

/// A turn with a question about its one call.
pub fn asked() -> Rig {
    let mut rig = in_turn();
    rig.says("message_done", r#""text":"""#);
    rig.says("tool_start", r#""call_id":"c","name":"peek","args":{}"#);
    rig.says("approval_request", r#""approval_id":"q","name":"peek","summary":"s","detail":"d","reason":"unapproved_source","source_path":"t.toml","source_sha":"a3fb1f0eb818","env":["TOKEN"]"#);
    rig
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
pub fn own(output: &ClientOutput<'_, Openmax>) -> Out {
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
        ClientOutput::Ask { ask, .. } => match **ask {},
        ClientOutput::Finding(finding) => Out::Finding((*finding).clone()),
        ClientOutput::CloseInput => Out::CloseInput,
        ClientOutput::Signal(signal) => Out::Signal(*signal),
        ClientOutput::Closed => Out::Closed,
    }
}
