//! A Server under a test's hand: what it is told, and what it writes.

use serde_json::Value;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Sides};
use turnwire::protocol::splice::{ObserverConfig, ServerConfig, Splice, SpliceAsk};
use turnwire::protocol::{Server, ServerOutput};
use turnwire::vocab::*;

pub const PROMPT: &str =
    r#"{"schemaVersion":2,"type":"prompt","content":"write a Hello function"}"#;
pub const NOW: Now = Now {
    mono_us: 1_000_000,
    unix_ms: 1_767_225_600_000,
};

/// A Server, and what it has said.
pub struct Rig {
    pub server: Server<Splice>,
    pub lines: Vec<String>,
    pub calls: Vec<Call>,
    pub asks: Vec<(u64, SpliceAsk)>,
    pub dismissed: Vec<u64>,
    pub diagnostics: Vec<String>,
    pub exit: Option<u8>,
    pub number: u64,
}

impl Rig {
    pub fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig::new([7; 32]);
        change(&mut config);
        Rig {
            server: Server::new(config),
            lines: vec![],
            calls: vec![],
            asks: vec![],
            dismissed: vec![],
            diagnostics: vec![],
            exit: None,
            number: 0,
        }
    }

    pub fn drain(&mut self) {
        let mut bytes = Vec::new();
        while let Some(output) = self.server.poll_output(&mut bytes) {
            match output {
                ServerOutput::Call(call) => self.calls.push(call),
                ServerOutput::Ask { id, ask } => self.asks.push((id, ask)),
                ServerOutput::Dismiss { id } => self.dismissed.push(id),
                ServerOutput::Diagnostic(text) => self.diagnostics.push(text.to_string()),
                ServerOutput::Exit { code } => self.exit = Some(code),
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        self.lines.extend(text.lines().map(str::to_owned));
    }

    pub fn line(&mut self, line: &str) -> &mut Self {
        self.number += 1;
        let place = Place {
            line: self.number,
            offset: 0,
        };
        let what = SplitKind::Line(line.as_bytes());
        self.server.handle_line(Split { place, what }, NOW);
        self.drain();
        self
    }

    pub fn end(&mut self) -> &mut Self {
        self.server.handle_end(NOW);
        self.drain();
        self
    }

    pub fn signal(&mut self, signal: Signal) -> &mut Self {
        self.server.handle_signal(signal, NOW);
        self.drain();
        self
    }

    pub fn run(&mut self, run: RunId, what: What) -> &mut Self {
        let seen = Seen::Real;
        let at = NOW;
        self.server.handle_event(&Event {
            at,
            run,
            seen,
            what,
        });
        self.drain();
        self
    }

    pub fn say(&mut self, what: What) -> &mut Self {
        self.run(RunId::MAIN, what)
    }

    /// The session is there, and takes the prompt.
    pub fn started(&mut self) -> &mut Self {
        self.say(What::Opened(Box::new(info()))).line(PROMPT).end();
        let command = self.calls[0].id;
        let reply = Ok(Answer::Admitted(Admitted::Started));
        self.say(What::Replied { command, reply })
    }

    pub fn ended(&mut self, end: End) -> &mut Self {
        let answer = Some(TurnAnswer::Text("All done.".into()));
        self.say(What::TurnEnded {
            turn: TurnId(1),
            end,
            answer,
            report: Box::default(),
            pending: Pending::default(),
        })
    }

    pub fn closed(&mut self) -> &mut Self {
        let why = CloseWhy::Drained;
        self.say(What::Closed { why })
    }

    /// Types of the lines, with what tells them apart.
    pub fn shown(&self) -> Vec<String> {
        let show = |line: &String| {
            let line: Value = serde_json::from_str(line).unwrap();
            let words: Vec<&str> = [
                "type", "delta", "message", "status", "code", "name", "action",
            ]
            .iter()
            .filter_map(|name| line[*name].as_str())
            .collect();
            words.join(" ")
        };
        self.lines.iter().map(show).collect()
    }

    /// Whether the observer finds nothing in it.
    pub fn assert_lawful(&self) {
        let mut observer = Observer::<Splice>::new(ObserverConfig::default(), Sides::Agent);
        for (index, line) in self.lines.iter().enumerate() {
            let place = Place {
                line: index as u64 + 1,
                offset: 0,
            };
            let what = SplitKind::Line(line.as_bytes());
            observer.handle_line(Dir::Agent, Split { place, what });
        }
        observer.handle_exit(self.exit.map_or(-1, i64::from));
        observer.finish();
        let found: Vec<String> = std::iter::from_fn(|| observer.poll_finding())
            .map(|finding| finding.to_string())
            .collect();
        assert_eq!(found, [""; 0], "{}", self.lines.join("\n"));
    }
}

pub fn info() -> SessionInfo {
    SessionInfo {
        session: "zero_1".into(),
        cwd: "/repo".into(),
        media: vec!["image/png".into()],
        ..<turnwire::protocol::openmax::Openmax as turnwire_proptests::world::Speaks>::info()
    }
}

pub fn finished() -> End {
    End::Finished { finish: None }
}

pub fn failure(text: &str) -> Failure {
    Failure::new(FailureKind::Auth, text)
}

pub fn tool(call: u64, name: &str, side_effect: SideEffect, input: &str, cause: ToolCause) -> What {
    What::ToolStarted {
        call: CallId(call),
        provider_id: None,
        name: name.into(),
        input: Some(ToolInput::Object(RawJson(input.into()))),
        cause,
        side_effect,
    }
}

pub fn ended(call: u64, outcome: ToolOutcome, text: &str, changed: &[&str]) -> What {
    What::ToolEnded {
        call: CallId(call),
        outcome,
        content: vec![Block::Text(text.into())],
        show: Some(Box::new(Show {
            summary: Some("Created a.rs".into()),
            changed: changed.iter().map(|path| (*path).into()).collect(),
            meta: vec![("z".into(), "1".into()), ("api_key".into(), "2".into())],
            ..Show::default()
        })),
    }
}
