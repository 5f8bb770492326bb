//! The Server: scenes as an agent's events and a host's lines, and what is written.

use serde_json::{Value, json};
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observer, Sides};
use turnwire::protocol::splice::{
    EarlySignal, MergeBack, ObserverConfig, ServerConfig, Splice, SpliceAsk,
};
use turnwire::protocol::{Server, ServerOutput};
use turnwire::redact::Secrets;
use turnwire::vocab::*;

use crate::recordings;

const PROMPT: &str = r#"{"schemaVersion":2,"type":"prompt","content":"write a Hello function"}"#;
const NOW: Now = Now {
    mono_us: 1_000_000,
    unix_ms: 1_767_225_600_000,
};

/// A Server, and what it has said.
struct Rig {
    server: Server<Splice>,
    lines: Vec<String>,
    calls: Vec<Call>,
    asks: Vec<(u64, SpliceAsk)>,
    dismissed: Vec<u64>,
    diagnostics: Vec<String>,
    exit: Option<u8>,
    number: u64,
}

impl Rig {
    fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
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

    fn drain(&mut self) {
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

    fn line(&mut self, line: &str) -> &mut Self {
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

    fn end(&mut self) -> &mut Self {
        self.server.handle_end(NOW);
        self.drain();
        self
    }

    fn signal(&mut self, signal: Signal) -> &mut Self {
        self.server.handle_signal(signal, NOW);
        self.drain();
        self
    }

    fn run(&mut self, run: RunId, what: What) -> &mut Self {
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

    fn say(&mut self, what: What) -> &mut Self {
        self.run(RunId::MAIN, what)
    }

    /// The session is there, and takes the prompt.
    fn started(&mut self) -> &mut Self {
        self.say(What::Opened(Box::new(info()))).line(PROMPT).end();
        let command = self.calls[0].id;
        let reply = Ok(Answer::Admitted(Admitted::Started));
        self.say(What::Replied { command, reply })
    }

    fn ended(&mut self, end: End) -> &mut Self {
        let answer = Some(TurnAnswer::Text("All done.".into()));
        self.say(What::TurnEnded {
            turn: TurnId(1),
            end,
            answer,
            report: Box::default(),
            pending: Pending::default(),
        })
    }

    fn closed(&mut self) -> &mut Self {
        let why = CloseWhy::Drained;
        self.say(What::Closed { why })
    }

    /// Types of the lines, with what tells them apart.
    fn shown(&self) -> Vec<String> {
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
    fn assert_lawful(&self) {
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

fn info() -> SessionInfo {
    SessionInfo {
        session: "zero_1".into(),
        cwd: "/repo".into(),
        media: vec!["image/png".into()],
        ..<turnwire::protocol::openmax::Openmax as turnwire_proptests::world::Speaks>::info()
    }
}

fn finished() -> End {
    End::Finished { finish: None }
}

fn failure(text: &str) -> Failure {
    Failure::new(FailureKind::Auth, text)
}

#[test]
fn sp_a01_sp_02_sp_04_bad_input_is_refused_as_it_was_recorded() {
    let mut count = 0;
    for recording in recordings() {
        if !recording.name.starts_with("invalid/") && recording.name != "empty_stdin" {
            continue;
        }
        count += 1;
        let mut rig = Rig::new(|_| {});
        for line in &recording.host {
            rig.line(line);
        }
        rig.end();
        let named = |line: &String| {
            let id = serde_json::from_str::<Value>(line).unwrap()["runId"].to_string();
            line.replace(&id, "\"run_20260101000000_000001\"")
        };
        let lines: Vec<String> = rig.lines.iter().map(named).collect();
        assert_eq!(lines, recording.agent, "{}", recording.name);
        assert_eq!(rig.exit, Some(2), "{}", recording.name);
        assert_eq!(rig.calls, [], "{}", recording.name);
        rig.assert_lawful();
    }
    assert_eq!(count, 37);
}

#[test]
fn sp_02_texts_are_joined_and_pictures_go_with_them() {
    let mut rig = Rig::new(|_| {});
    rig.say(What::Opened(Box::new(info())))
        .line(r#"{"schemaVersion":2,"type":"message","role":"user","content":" one ","images":[{"mediaType":"PNG","data":"eB=\r\n="},{"mediaType":"gif","data":"eA=="}]}"#)
        .line("  ")
        .line(r#"{"schemaVersion":2,"type":"prompt","content":"two\n"}"#)
        .end();
    let Command::Prompt(prompt) = &rig.calls[0].command else {
        panic!("{:?}", rig.calls);
    };
    assert_eq!(prompt.content[0], Block::Text("one\n\ntwo".into()));
    // In the one spelling of its byte; what the model can't see is left out, and a person told.
    match &prompt.content[1..] {
        [
            Block::Media {
                source: Source::Inline { mime, base64 },
                ..
            },
        ] => assert_eq!((&**mime, &**base64), ("image/png", "eA==")),
        other => panic!("{other:?}"),
    }
    assert!(rig.diagnostics[0].contains("ignoring 1 image(s)"));
    assert_eq!(prompt.deliver, Deliver::IfIdle);
    assert!(matches!(
        rig.calls[1].command,
        Command::Close { drain: true }
    ));
    assert_eq!(rig.lines, [""; 0], "nothing is said before it is admitted");
}

#[test]
fn sp_04_sp_a02_sp_a03_a_session_that_finishes() {
    let mut rig = Rig::new(|_| {});
    rig.say(What::Notice {
        level: Level::Warning,
        code: None,
        text: "no memory".into(),
    })
    .started()
    .say(What::Delta {
        message: MessageId(1),
        block: 0,
        kind: Kind::Thinking,
        text: "Hm.".into(),
    })
    .say(What::Delta {
        message: MessageId(1),
        block: 1,
        kind: Kind::Text,
        text: "All done.".into(),
    })
    .ended(finished())
    .closed();
    assert_eq!(
        rig.shown(),
        [
            "run_start",
            "warning no memory",
            "reasoning Hm.",
            "text All done.",
            "final",
            "run_end success",
        ]
    );
    assert!(rig.lines[4].contains(r#""text":"All done.""#));
    assert_eq!(rig.exit, Some(0));
    let ids: std::collections::BTreeSet<String> = rig
        .lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["runId"].to_string())
        .collect();
    assert_eq!(ids.len(), 1);
    assert!(rig.lines[0].contains("\"runId\":\"run_20260101000000_"));
    rig.assert_lawful();
}

#[test]
fn sp_a03_sp_04_each_end_has_its_status_and_its_code() {
    let why = || CancelWhy::Signal(Signal::Interrupt);
    for (end, lines, exit) in [
        (finished(), vec!["run_start", "final", "run_end success"], 0),
        (
            End::Failed(failure("no key")),
            vec!["run_start", "error no key provider_error", "run_end error"],
            3,
        ),
        (
            End::Incomplete(failure("no spec")),
            vec!["run_start", "error no spec provider_error", "run_end error"],
            3,
        ),
        (
            End::MaxSteps,
            vec![
                "run_start",
                "final",
                "error the limit on steps is reached incomplete",
                "run_end incomplete",
            ],
            4,
        ),
        (
            End::Truncated(failure("cut")),
            vec![
                "run_start",
                "final",
                "error cut incomplete",
                "run_end incomplete",
            ],
            4,
        ),
        (
            End::Cancelled(why()),
            vec![
                "run_start",
                "error run cancelled by signal interrupted",
                "run_end interrupted",
            ],
            130,
        ),
    ] {
        let mut rig = Rig::new(|_| {});
        rig.started().ended(end).closed();
        assert_eq!(rig.shown(), lines);
        assert_eq!(rig.exit, Some(exit));
        rig.assert_lawful();
    }
}

#[test]
fn sp_04_a_prompt_that_isnt_taken_has_no_run() {
    for (refusal, code, exit) in [
        (Refusal::TooLarge, "usage_error", 2),
        (
            Refusal::Failed(Failure::new(FailureKind::Setup, "no provider")),
            "provider_error",
            3,
        ),
    ] {
        let mut rig = Rig::new(|_| {});
        rig.say(What::Opened(Box::new(info()))).line(PROMPT).end();
        let command = rig.calls[0].id;
        rig.say(What::Replied {
            command,
            reply: Err(refusal),
        })
        .closed();
        let shown = rig.shown();
        assert!(shown[0].ends_with(code), "{shown:?}");
        assert_eq!(shown[1..], ["run_end error"]);
        assert_eq!(rig.exit, Some(exit));
        rig.assert_lawful();
    }
    // The agent never got ready.
    let mut rig = Rig::new(|_| {});
    rig.line(PROMPT).end().say(What::Closed {
        why: CloseWhy::Fault(Failure::new(FailureKind::Setup, "no provider")),
    });
    assert_eq!(
        rig.shown(),
        ["error no provider provider_error", "run_end error"]
    );
    assert_eq!(rig.exit, Some(3));
    rig.assert_lawful();
}

#[test]
fn sp_a11_a_signal_ends_it_with_one_error_and_no_final() {
    let ends = [
        "error run cancelled by signal interrupted",
        "run_end interrupted",
    ];
    // While the input is open: at once.
    let mut rig = Rig::new(|_| {});
    rig.line(PROMPT)
        .signal(Signal::Terminate)
        .signal(Signal::Interrupt);
    assert_eq!(rig.shown(), ends);
    assert_eq!((rig.exit, rig.calls.len()), (Some(130), 0));
    rig.assert_lawful();
    // Or, as the known agent does, once it has ended.
    let mut rig = Rig::new(|config| config.early_signal = EarlySignal::Remembered);
    rig.signal(Signal::Interrupt).started();
    assert!(matches!(
        rig.calls.last().unwrap().command,
        Command::Cancel {
            what: CancelWhat::Everything,
            why: CancelWhy::Signal(Signal::Interrupt)
        }
    ));
    rig.ended(End::Cancelled(CancelWhy::Signal(Signal::Interrupt)))
        .closed();
    assert_eq!(rig.shown()[1..], ends);
    rig.assert_lawful();
    // While it runs, twice: a second one changes nothing.
    for signal in [Signal::Interrupt, Signal::Terminate] {
        let mut rig = Rig::new(|_| {});
        rig.started().signal(signal).signal(signal);
        let cancels = rig
            .calls
            .iter()
            .filter(|call| matches!(call.command, Command::Cancel { .. }));
        assert_eq!(cancels.count(), 1);
        rig.ended(End::Cancelled(CancelWhy::Signal(signal)))
            .closed();
        assert_eq!(rig.shown()[1..], ends);
        assert_eq!(rig.exit, Some(130));
        rig.assert_lawful();
    }
    // While its worktree is merged back.
    let mut rig = Rig::new(|config| config.merge_back = Some("splice/w".into()));
    rig.started()
        .ended(finished())
        .signal(Signal::Interrupt)
        .closed();
    assert_eq!(rig.dismissed.len(), 1);
    assert_eq!(rig.shown()[1..], ends);
    rig.assert_lawful();
}

#[test]
fn sp_13_sp_a02_what_becomes_of_a_worktree() {
    let text = || Text::from("as told");
    for (merge, lines, exit) in [
        (
            MergeBack::Merged(text()),
            vec![
                "text [splice] merge-back: as told\n",
                "final",
                "run_end success",
            ],
            0,
        ),
        (
            MergeBack::NoChange(text()),
            vec![
                "text [splice] merge-back: as told\n",
                "final",
                "run_end success",
            ],
            0,
        ),
        (
            MergeBack::Dirty(text()),
            vec![
                "warning merge-back skipped_dirty: as told",
                "final",
                "error merge-back skipped_dirty: as told incomplete",
                "run_end incomplete",
            ],
            4,
        ),
        (
            MergeBack::Conflict(text()),
            vec![
                "warning merge-back conflict: as told",
                "final",
                "error merge-back conflict: as told incomplete",
                "run_end incomplete",
            ],
            4,
        ),
        (
            MergeBack::Failed(text()),
            vec![
                "final",
                "error merge-back failed: as told merge_back_failed",
                "run_end error",
            ],
            1,
        ),
    ] {
        let mut rig = Rig::new(|config| config.merge_back = Some("splice/w".into()));
        rig.started().ended(finished()).closed();
        assert_eq!(rig.exit, None, "the end waits for the merge");
        let (id, ask) = rig.asks.pop().unwrap();
        assert_eq!(
            ask,
            SpliceAsk::MergeBack {
                branch: "splice/w".into()
            }
        );
        rig.server.settle(id, merge, NOW).unwrap();
        rig.drain();
        assert_eq!(rig.shown()[1..], lines);
        assert_eq!(rig.exit, Some(exit));
        rig.assert_lawful();
    }
    // As the known agent does: nothing behind the warning.
    let mut rig = Rig::new(|config| {
        config.merge_back = Some("splice/w".into());
        config.faithful_hole = true;
    });
    rig.started().ended(finished()).closed();
    rig.server.settle(1, MergeBack::Dirty(text()), NOW).unwrap();
    rig.drain();
    assert_eq!(
        rig.shown()[1..],
        ["warning merge-back skipped_dirty: as told"]
    );
    assert_eq!(rig.exit, Some(4));
    // A run that failed isn't merged.
    let mut rig = Rig::new(|config| config.merge_back = Some("splice/w".into()));
    rig.started().ended(End::MaxSteps).closed();
    assert_eq!((rig.asks.len(), rig.exit), (0, Some(4)));
}

fn tool(call: u64, name: &str, side_effect: SideEffect, input: &str, cause: ToolCause) -> What {
    What::ToolStarted {
        call: CallId(call),
        provider_id: None,
        name: name.into(),
        input: Some(ToolInput::Object(RawJson(input.into()))),
        cause,
        side_effect,
    }
}

fn ended(call: u64, outcome: ToolOutcome, text: &str, changed: &[&str]) -> What {
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

#[test]
fn sp_06_sp_07_sp_09_a_call_with_its_checkpoint_its_decision_and_its_result() {
    let mut rig = Rig::new(|_| {});
    let verdict = |allow, by| Verdict {
        allow,
        by,
        input: None,
        reason: None,
        risk: None,
        block: None,
    };
    rig.started()
        .say(tool(
            1,
            "write_file",
            SideEffect::Write,
            r#"{"path":"a.rs","content":"<x>"}"#,
            ToolCause::Agent,
        ))
        .say(What::Checkpoint {
            checkpoint: CheckpointId(6),
            call: CallId(1),
            files: vec!["a.rs".into()],
        })
        .say(What::Decided {
            call: CallId(1),
            verdict: verdict(true, Decider::Mode),
        })
        .say(ended(1, ToolOutcome::Ok, "Created.", &["a.rs"]))
        // A reading tool needs nobody's word.
        .say(tool(
            2,
            "read_file",
            SideEffect::Read,
            "{}",
            ToolCause::Agent,
        ))
        .say(What::Decided {
            call: CallId(2),
            verdict: verdict(true, Decider::Mode),
        })
        .say(ended(2, ToolOutcome::Ok, "", &[]))
        // Calls within calls.
        .say(tool(
            3,
            "splice.test",
            SideEffect::Unknown,
            "{}",
            ToolCause::Agent,
        ))
        .say(tool(
            4,
            "bash",
            SideEffect::Shell,
            r#"{"command":"x"}"#,
            ToolCause::Tool(CallId(3)),
        ))
        .say(What::Decided {
            call: CallId(4),
            verdict: verdict(false, Decider::Rule("Bash(rm:*)".into())),
        })
        .say(ended(4, ToolOutcome::Denied(Decider::Mode), "no", &[]))
        .say(ended(3, ToolOutcome::Failed, "no", &[]))
        .ended(finished())
        .closed();
    assert_eq!(
        rig.shown()[1..],
        [
            "tool_call write_file",
            "checkpoint",
            "permission_decision write_file allow",
            "tool_result ok write_file",
            "tool_call read_file",
            "tool_result ok read_file",
            "tool_call splice.test",
            "tool_call bash",
            "permission_decision bash deny",
            "tool_result error bash",
            "tool_result error splice.test",
            "final",
            "run_end success",
        ]
    );
    assert_eq!(
        rig.lines[1].replace(
            &rig.lines[1][rig.lines[1].find("\"runId\"").unwrap()
                ..rig.lines[1].find("\"schemaVersion\"").unwrap()],
            ""
        ),
        r#"{"args":{"content":"\u003cx\u003e","path":"a.rs"},"id":"call-1","name":"write_file","schemaVersion":2,"sideEffect":"write","type":"tool_call"}"#
    );
    let result: Value = serde_json::from_str(&rig.lines[4]).unwrap();
    assert_eq!(result["changedFiles"], json!(["a.rs"]));
    assert_eq!(
        result["display"],
        json!({"kind": "file", "summary": "Created a.rs"})
    );
    assert_eq!(result["meta"], json!({"api_key": "[REDACTED]", "z": "1"}));
    let empty: Value = serde_json::from_str(&rig.lines[6]).unwrap();
    assert_eq!(
        (empty.get("output"), empty.get("changedFiles")),
        (None, None)
    );
    let denied: Value = serde_json::from_str(&rig.lines[9]).unwrap();
    assert_eq!(denied["block"]["code"], "denied");
    assert_eq!(denied["permissionGranted"], false);
    rig.assert_lawful();
}

#[test]
fn sp_07_nobody_is_there_to_ask() {
    let mut rig = Rig::new(|_| {});
    rig.started()
        .say(tool(
            1,
            "bash",
            SideEffect::Shell,
            r#"{"command":"x"}"#,
            ToolCause::Agent,
        ))
        .say(What::Asked {
            ask: AskId(1),
            body: Ask::Permission(Box::new(PermissionAsk {
                call: Some(CallId(1)),
                tool: "bash".into(),
                reason: AskReason::Gate,
                summary: "Runs x".into(),
                detail: "x".into(),
                body: None,
                suggestions: vec![],
                env: vec![],
                due: None,
            })),
        });
    assert!(matches!(
        rig.calls.last().unwrap().command,
        Command::Reply {
            ask: AskId(1),
            reply: Err(ReplyFault::HostGone)
        }
    ));
    rig.say(What::Decided {
        call: CallId(1),
        verdict: Verdict {
            allow: false,
            by: Decider::Closed,
            input: None,
            reason: None,
            risk: None,
            block: None,
        },
    })
    .say(ended(
        1,
        ToolOutcome::Denied(Decider::Closed),
        "denied",
        &[],
    ))
    .ended(finished())
    .closed();
    assert_eq!(
        rig.shown()[1..],
        [
            "tool_call bash",
            "permission_request bash prompt",
            "tool_result error bash",
            "final",
            "run_end success",
        ]
    );
    rig.assert_lawful();
}

#[test]
fn sp_12_sp_a07_secrets_stay_out_of_every_line() {
    let secret = "sk-proj-abcdefghijklmnopqrstuv";
    let mut rig = Rig::new(|config| config.secrets = Secrets::new(["hunter2-hunter2"]));
    rig.started();
    let pieces = |text: &'static str| {
        text.as_bytes()
            .chunks(3)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
    };
    rig.say(What::BlockStarted {
        message: MessageId(1),
        block: 0,
        head: BlockHead::Text,
    });
    for piece in pieces("the key is sk-proj-abcdefghijklmnopqrstuv, and hunter2-hunter2") {
        rig.say(What::Delta {
            message: MessageId(1),
            block: 0,
            kind: Kind::Text,
            text: piece.as_str().into(),
        });
    }
    rig.say(What::BlockStarted {
        message: MessageId(1),
        block: 1,
        head: BlockHead::ToolUse {
            call: CallId(1),
            provider_id: Some("call_m1".into()),
            name: "bash".into(),
            runs: true,
        },
    });
    for piece in
        pieces(r#"{"command":"x sk-proj-abcdefghijklmnopqrstuv","password":{"a":"b c d"}}"#)
    {
        rig.say(What::Delta {
            message: MessageId(1),
            block: 1,
            kind: Kind::Input,
            text: piece.as_str().into(),
        });
    }
    rig.say(What::MessageEnded {
        message: std::sync::Arc::new(Message {
            id: MessageId(1),
            role: Role::Assistant,
            content: vec![],
            origin: Origin::Harness,
            prompt: None,
            about: None,
            at_ms: 0,
            details: None,
        }),
        stop: Stop::ToolUse,
        kept: true,
        calls: CallList::Complete,
    })
    .say(tool(
        1,
        "bash",
        SideEffect::Shell,
        r#"{"command":"x sk-proj-abcdefghijklmnopqrstuv","password":{"a":"b c d"}}"#,
        ToolCause::Agent,
    ))
    .say(ended(
        1,
        ToolOutcome::Ok,
        &format!("out: {secret} hunter2-hunter2"),
        &[],
    ))
    .say(What::TurnEnded {
        turn: TurnId(1),
        end: End::Truncated(failure(&format!("bad key {secret}"))),
        answer: Some(TurnAnswer::Text(format!("said {secret}").as_str().into())),
        report: Box::default(),
        pending: Pending::default(),
    })
    .closed();
    let joined = |kind: &str| -> String {
        let of = |line: &String| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["type"] == kind).then(|| line["delta"].as_str().unwrap_or_default().to_owned())
        };
        rig.lines.iter().filter_map(of).collect()
    };
    assert_eq!(joined("text"), "the key is [REDACTED], and [REDACTED]");
    assert_eq!(
        joined("tool_call_delta"),
        r#"{"command":"x [REDACTED]","password":"[REDACTED]"}"#
    );
    let all = rig.lines.join("\n");
    assert!(
        !all.contains("abcdefghijklmnop") && !all.contains("hunter2") && !all.contains("b c d"),
        "{all}"
    );
    assert!(all.contains(r#""redacted":true"#));
    rig.assert_lawful();
}

#[test]
fn sp_05_sp_08_sp_10_sp_11_sp_14_a_pipeline_s_run() {
    let mut rig = Rig::new(|_| {});
    let run = RunId(1);
    let kind = RunKind::Stage {
        name: "code_writer".into(),
        iteration: 1,
    };
    let usage = Usage {
        input: Some(60),
        cache_read: Some(40),
        cache_write: None,
        output: Some(15),
        reasoning: Some(5),
    };
    let request = |usage, cost| What::RequestEnded {
        request: RequestId(1),
        outcome: RequestOutcome::Complete {
            finish: "stop".into(),
        },
        model: ModelRef {
            provider: Some("mock".into()),
            model: "m1".into(),
        },
        usage,
        cost,
        api_us: 0,
    };
    rig.started()
        .say(What::Notice {
            level: Level::Info,
            code: Some("tier".into()),
            text: "substantial".into(),
        })
        .say(What::RunStarted {
            run,
            kind,
            label: "code_writer".into(),
            call: None,
        })
        .run(
            run,
            What::BlockStarted {
                message: MessageId(1),
                block: 0,
                head: BlockHead::ToolUse {
                    call: CallId(1),
                    provider_id: Some("call_m1".into()),
                    name: "submit_code".into(),
                    runs: false,
                },
            },
        )
        .run(
            run,
            What::Delta {
                message: MessageId(1),
                block: 0,
                kind: Kind::Input,
                text: "{\"files\":[]}".into(),
            },
        )
        .run(
            run,
            request(
                Some(usage),
                Cost::Known {
                    pico_usd: 250_000_000_000,
                    basis: CostBasis::Estimated,
                    source: "table".into(),
                    as_of: "2026-01-01".into(),
                },
            ),
        )
        // Another try keeps the provider's id.
        .run(
            run,
            What::BlockStarted {
                message: MessageId(2),
                block: 0,
                head: BlockHead::ToolUse {
                    call: CallId(2),
                    provider_id: Some("call_m1".into()),
                    name: "submit_code".into(),
                    runs: false,
                },
            },
        )
        .run(run, request(None, Cost::NotSaid))
        .run(
            run,
            tool(
                3,
                "write_file",
                SideEffect::Write,
                r#"{"path":"a.rs"}"#,
                ToolCause::Agent,
            ),
        )
        .run(run, ended(3, ToolOutcome::Ok, "Created.", &["a.rs"]))
        .say(What::RunEnded {
            run,
            status: RunStatus::Completed,
            steps: 1,
            usage: Some(usage),
            detail: "done <ok>".into(),
        })
        .say(What::Notice {
            level: Level::Info,
            code: Some("summary".into()),
            text: "Pipeline completed.".into(),
        })
        .ended(finished())
        .closed();
    let marker = |line: usize| {
        let line: Value = serde_json::from_str(&rig.lines[line]).unwrap();
        line["delta"].as_str().unwrap().to_owned()
    };
    assert_eq!(marker(1), "[code_writer] stage started\n");
    assert_eq!(
        marker(2),
        "\0STAGE{\"changedFiles\":null,\"detail\":\"\",\"name\":\"code_writer\",\"progress\":0,\"status\":\"running\"}\0"
    );
    let lines: Vec<Value> = rig
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let starts = lines
        .iter()
        .filter(|line| line["type"] == "tool_call_start");
    assert_eq!(
        starts.map(|line| line["id"].clone()).collect::<Vec<_>>(),
        ["call_m1"; 2]
    );
    let usages: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "usage")
        .collect();
    assert_eq!(usages[0]["costUsd"], json!(0.25));
    assert_eq!(usages[0]["costEstimated"], true);
    assert_eq!(
        (
            &usages[0]["promptTokens"],
            &usages[0]["completionTokens"],
            &usages[0]["totalTokens"]
        ),
        (&json!(100), &json!(20), &json!(120))
    );
    assert_eq!(
        (
            &usages[1]["usageSequence"],
            usages[1].get("costUsd"),
            &usages[1]["costStatus"]
        ),
        (&json!(2), None, &json!("unpriced"))
    );
    let count = lines.len();
    assert_eq!(
        marker(count - 4),
        "\0STAGE{\"changedFiles\":[\"a.rs\"],\"detail\":\"done \\u003cok\\u003e\",\"name\":\"code_writer\",\"progress\":100,\"status\":\"completed\"}\0"
    );
    let result: Value = serde_json::from_str(lines[count - 2]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result["status"], "completed");
    assert_eq!(result["tier"], "substantial");
    assert_eq!(result["run_id"], "zero_1");
    assert_eq!(result["stages"][0]["tokens_cached"], 40);
    assert_eq!(result["total_cost_usd"], 0.25);
    assert_eq!(result["cost_coverage"], "partial");
    assert_eq!(result.get("abort_reason"), None);
    assert_eq!(rig.exit, Some(0));
    rig.assert_lawful();
}

#[test]
fn sp_14_sp_a03_a_pipeline_whose_stage_failed_is_incomplete() {
    let mut rig = Rig::new(|_| {});
    let run = RunId(1);
    rig.started()
        .say(What::RunStarted {
            run,
            kind: RunKind::Stage {
                name: "code_writer".into(),
                iteration: 1,
            },
            label: "code_writer".into(),
            call: None,
        })
        .say(What::RunEnded {
            run,
            status: RunStatus::Failed,
            steps: 1,
            usage: None,
            detail: "no key".into(),
        })
        .ended(End::Incomplete(failure("stage failed: no key")))
        .closed();
    let lines: Vec<Value> = rig
        .lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(rig.lines[4].contains("failed"));
    let result: Value = serde_json::from_str(lines[5]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result["status"], "failed");
    assert_eq!(result["abort_reason"], "stage failed: no key");
    assert_eq!(
        rig.shown()[6..],
        [
            "error stage failed: no key incomplete",
            "run_end incomplete"
        ]
    );
    assert_eq!(rig.exit, Some(4));
    rig.assert_lawful();
}
