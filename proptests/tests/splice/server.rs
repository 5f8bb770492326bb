//! The Server: the input, and how a run ends.

use serde_json::Value;
use turnwire::protocol::splice::{EarlySignal, MergeBack, SpliceAsk};
use turnwire::vocab::*;

use crate::kit::*;
use crate::recordings;

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
