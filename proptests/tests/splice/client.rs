//! The Client: what it makes of the known agent's recordings, and its commands.

use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::splice::{ClientConfig, Splice};
use turnwire::protocol::{Client, ClientOutput};
use turnwire::vocab::laws::{Checker, Scope};
use turnwire::vocab::*;

use crate::{Recording, recordings};

const NOW: Now = Now {
    mono_us: 1,
    unix_ms: 1,
};

/// What came out of a Client.
#[derive(Default)]
struct Heard {
    events: Vec<Event>,
    findings: Vec<String>,
    extras: Vec<String>,
    signals: Vec<Signal>,
    written: String,
    input_closed: bool,
    text: String,
}

impl Heard {
    fn count(&self, fits: impl Fn(&What) -> bool) -> usize {
        self.events.iter().filter(|event| fits(&event.what)).count()
    }

    fn end(&self) -> Option<&End> {
        self.events
            .iter()
            .rev()
            .find_map(|event| match &event.what {
                What::TurnEnded { end, .. } if event.run == RunId::MAIN => Some(end),
                _ => None,
            })
    }

    fn reply(&self, id: u64) -> Option<&Result<Answer, Refusal>> {
        self.events.iter().find_map(|event| match &event.what {
            What::Replied { command, reply } if command.0 == id => Some(reply),
            _ => None,
        })
    }
}

struct Rig {
    client: Client<Splice>,
    checker: Checker,
    heard: Heard,
    line: u64,
}

impl Rig {
    fn new() -> Self {
        Rig {
            client: Client::new(ClientConfig::default()),
            checker: Checker::new(Scope::Any),
            heard: Heard::default(),
            line: 0,
        }
    }

    fn drain(&mut self) {
        let mut lines = Vec::new();
        while let Some(output) = self.client.poll_output(&mut lines) {
            match output {
                ClientOutput::Event(event) => {
                    self.checker.event(event);
                    self.heard.events.push(event.clone());
                }
                ClientOutput::Delta(delta) => {
                    self.checker.delta(&delta);
                    if delta.kind == Kind::Text {
                        self.heard.text.push_str(delta.text);
                    }
                }
                ClientOutput::Extra(extra) => self.heard.extras.push(extra.kind.to_string()),
                ClientOutput::Finding(finding) => {
                    self.heard.findings.push(finding.text.to_string())
                }
                ClientOutput::CloseInput => self.heard.input_closed = true,
                ClientOutput::Signal(signal) => self.heard.signals.push(signal),
                ClientOutput::Ask { .. } | ClientOutput::Closed => {}
            }
        }
        self.heard
            .written
            .push_str(&String::from_utf8(lines).unwrap());
        self.checker.quiet();
    }

    fn command(&mut self, id: u64, command: Command) -> &mut Self {
        let call = Call {
            id: CommandId(id),
            command,
        };
        self.checker.command(&call);
        self.client.handle_command(call, NOW);
        self.drain();
        self
    }

    fn prompt(&mut self, id: u64, content: Vec<Block>) -> &mut Self {
        let prompt = Prompt {
            id: PromptId(id),
            tag: None,
            content,
            deliver: Deliver::Queue(Rank::Next),
            literal: false,
            details: None,
        };
        self.command(id, Command::Prompt(prompt))
    }

    fn say(&mut self, line: &str) -> &mut Self {
        self.line += 1;
        let place = Place {
            line: self.line,
            offset: 0,
        };
        let what = SplitKind::Line(line.as_bytes());
        self.client.handle_line(Split { place, what }, NOW);
        self.drain();
        self
    }

    fn gone(mut self) -> Heard {
        self.client.handle_end(NOW);
        self.drain();
        assert!(
            self.checker.violations().is_empty(),
            "{:?}",
            self.checker.violations()
        );
        self.heard
    }
}

fn text(text: &str) -> Vec<Block> {
    vec![Block::Text(text.into())]
}

fn heard(recording: &Recording) -> Heard {
    let mut rig = Rig::new();
    rig.prompt(1, text("write a Hello function"));
    for line in &recording.agent {
        rig.say(line);
    }
    rig.gone()
}

#[test]
fn sp_03_sp_04_sp_a02_each_recording_is_a_neutral_stream_that_keeps_the_laws() {
    for recording in recordings() {
        if recording.agent.is_empty() {
            // Of some only how they ended is kept.
            continue;
        }
        let heard = heard(&recording);
        let name = recording.name.as_str();
        let findings: &[&str] = match name {
            "merge_back_conflict" | "merge_back_dirty" => &["there is no run_end"],
            _ => &[],
        };
        assert_eq!(heard.findings, findings, "{name}");
        let started = recording
            .agent
            .first()
            .is_some_and(|line| line.contains("run_start"));
        let reply = heard.reply(1);
        match (started, recording.agent.is_empty()) {
            (true, _) => assert!(matches!(reply, Some(Ok(_))), "{name}"),
            (false, _) => assert!(matches!(reply, Some(Err(_))), "{name}"),
        }
        let end = heard.end();
        match recording.exit {
            0 => assert!(end.is_some_and(End::is_finished), "{name}: {end:?}"),
            130 => assert!(end.is_some_and(End::is_cancelled), "{name}: {end:?}"),
            4 if findings.is_empty() => assert!(matches!(end, Some(End::Incomplete(_))), "{name}"),
            2 => assert_eq!(end, None, "{name}"),
            _ => {}
        }
    }
}

#[test]
fn sp_05_sp_06_sp_08_sp_11_stages_calls_and_requests_of_a_recorded_run() {
    let all = recordings();
    let run = all
        .iter()
        .find(|recording| recording.name == "ok_prompt")
        .unwrap();
    let heard = heard(run);
    let stages: Vec<&str> = heard
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::RunStarted {
                kind: RunKind::Stage { name, iteration: 1 },
                ..
            } => Some(&**name),
            _ => None,
        })
        .collect();
    assert_eq!(
        stages,
        [
            "code_writer",
            "static_analyzer",
            "test_runner",
            "acceptance_verifier"
        ]
    );
    assert_eq!(
        heard.count(|what| matches!(
            what,
            What::RunEnded {
                status: RunStatus::Completed,
                ..
            }
        )),
        4
    );
    // A stage's answer runs no tool.
    assert_eq!(
        heard.count(|what| matches!(what, What::ToolSkipped { .. })),
        1
    );
    let begun = heard.count(|what| matches!(what, What::ToolStarted { .. }));
    assert_eq!(
        begun,
        heard.count(|what| matches!(what, What::ToolEnded { .. }))
    );
    assert_eq!(begun, 6);
    let nested = heard.count(|what| {
        matches!(what, What::ToolStarted { cause: ToolCause::Tool(_), name, .. } if &**name == "bash")
    });
    assert_eq!(nested, 1, "the shell call stands in the call of the tests");
    let usage = heard.events.iter().find_map(|event| match &event.what {
        What::RequestEnded { usage, cost, .. } if usage.is_some() => {
            Some((event.run, *usage, cost.clone()))
        }
        _ => None,
    });
    let (run, usage, cost) = usage.unwrap();
    assert_ne!(run, RunId::MAIN);
    assert_eq!(
        usage,
        Some(Usage {
            input: Some(60),
            cache_read: Some(40),
            cache_write: None,
            output: Some(15),
            reasoning: Some(5),
        })
    );
    assert!(matches!(cost, Cost::Unpriced { .. }));
    assert_eq!(heard.extras, ["final"]);
    assert!(
        heard
            .text
            .ends_with("Pipeline completed after 4 stage record(s).\n")
    );
}

#[test]
fn sp_a04_a_start_empties_what_was_joined_under_its_id() {
    let mut rig = Rig::new();
    rig.prompt(1, text("x"))
        .say(r#"{"runId":"r","schemaVersion":2,"type":"run_start"}"#);
    for piece in ["{\\\"a\\\":", "{\\\"b\\\":1}"] {
        rig.say(r#"{"id":"m","name":"submit_code","runId":"r","schemaVersion":2,"type":"tool_call_start"}"#)
            .say(&format!(
                r#"{{"delta":"{piece}","id":"m","runId":"r","schemaVersion":2,"type":"tool_call_delta"}}"#
            ))
            .say(r#"{"completionTokens":1,"promptTokens":1,"runId":"r","schemaVersion":2,"totalTokens":2,"type":"usage"}"#);
    }
    rig.say(r#"{"exitCode":0,"runId":"r","schemaVersion":2,"status":"success","type":"run_end"}"#);
    let heard = rig.gone();
    let inputs: Vec<ToolInput> = heard
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::BlockEnded { content, .. } => match &**content {
                Block::ToolUse { input, .. } => Some(input.clone()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(
        inputs,
        [
            ToolInput::Unparsed("{\"a\":".into()),
            ToolInput::Object(RawJson("{\"b\":1}".into())),
        ]
    );
    assert_eq!(
        heard.count(|what| matches!(what, What::ToolSkipped { .. })),
        2
    );
}

#[test]
fn sp_02_the_one_prompt_is_a_line_and_the_end_of_the_input() {
    let mut rig = Rig::new();
    let image = Block::Media {
        kind: MediaKind::Image,
        source: Source::Inline {
            mime: "image/png".into(),
            base64: "eA==".into(),
        },
    };
    let url = Block::Media {
        kind: MediaKind::Image,
        source: Source::Url("https://x".into()),
    };
    rig.prompt(1, vec![])
        .prompt(2, vec![url])
        .prompt(3, vec![image])
        .prompt(4, text("more"));
    assert!(rig.heard.input_closed);
    assert_eq!(
        rig.heard.written,
        "{\"schemaVersion\":2,\"type\":\"message\",\"role\":\"user\",\"content\":\"\",\"images\":[{\"mediaType\":\"image/png\",\"data\":\"eA==\"}]}\n"
    );
    assert_eq!(rig.heard.reply(1), Some(&Err(Refusal::Empty)));
    assert!(matches!(
        rig.heard.reply(2),
        Some(Err(Refusal::Unsupported(_)))
    ));
    assert_eq!(rig.heard.reply(4), Some(&Err(Refusal::Closing)));
    assert_eq!(
        rig.heard.reply(3),
        None,
        "it is admitted when its run begins"
    );
    let why = CancelWhy::Host;
    let what = CancelWhat::Everything;
    rig.command(5, Command::Cancel { what, why });
    assert_eq!(rig.heard.signals, [Signal::Interrupt]);
    rig.say(r#"{"code":"interrupted","message":"run cancelled by signal","recoverable":false,"runId":"r","schemaVersion":2,"type":"error"}"#)
        .say(r#"{"exitCode":130,"runId":"r","schemaVersion":2,"status":"interrupted","type":"run_end"}"#);
    assert_eq!(rig.heard.reply(3), Some(&Err(Refusal::Cancelled)));
    rig.gone();
}

#[test]
fn sp_a13_what_nobody_knows_is_passed_on_and_nothing_is_lost_by_it() {
    let mut rig = Rig::new();
    rig.prompt(1, text("x"))
        .say(r#"{"runId":"r","schemaVersion":2,"type":"run_start","later":[1]}"#)
        .say(r#"{"runId":"r","schemaVersion":2,"type":"budget","left":1}"#)
        .say(r#"{"delta":"Hi.","runId":"r","schemaVersion":2,"type":"text","later":{}}"#)
        .say("nonsense")
        .say(r#"{"exitCode":0,"runId":"r","schemaVersion":2,"status":"success","type":"run_end"}"#);
    let heard = rig.gone();
    assert_eq!(heard.extras, ["budget"]);
    assert_eq!(heard.text, "Hi.");
    assert_eq!(heard.findings.len(), 1);
    assert!(heard.end().is_some_and(End::is_finished));
}
