//! L1 – L6, L8, L9 of the openmax Server, with hosts and agents that obey no law themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use crate::openmax_kit;

use openmax_kit::*;
use proptest::prelude::*;
use turnwire::json::Members;
use turnwire::protocol::openmax::wire::HostLine;
use turnwire::protocol::openmax::{Extra, ServerConfig};
use turnwire::vocab::*;

/// Lines of a host, good and bad.
fn host_bytes() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        r#"{"cmd":"user","text":"go"}"#,
        r#"{"cmd":"user","text":"go"}"#,
        r#"{"cmd":"user","text":" "}"#,
        r#"{"cmd":"cancel"}"#,
        r#"{"cmd":"reload"}"#,
        r#"{"cmd":"approval_mode","mode":"auto"}"#,
        r#"{"cmd":"approval_mode","mode":"?"}"#,
        r#"{"cmd":"approve","approval_id":"?","approved":true}"#,
        r#"{"cmd":"user"}"#,
        r#"{"cmd":"x"}"#,
        "  ",
        "[",
    ]);
    prop_oneof![
        6 => known.prop_map(|line| format!("{line}\n").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => Just(b"\n".to_vec()),
    ]
}

fn what() -> impl Strategy<Value = What> {
    let id = || 1..5u64;
    let reply = prop::sample::select(vec![
        Ok(Answer::Admitted(Admitted::Started)),
        Ok(Answer::Admitted(Admitted::Started)),
        Ok(Answer::Admitted(Admitted::Local)),
        Ok(Answer::Done),
        Ok(Answer::Reloaded {
            tools: 1,
            skills: 1,
            changes: vec!["x".into()],
        }),
        Err(Refusal::Busy),
        Err(Refusal::AlreadySettled),
        Err(Refusal::Failed(failure("x"))),
    ]);
    let end = || {
        prop::sample::select(vec![
            End::Finished {
                finish: Some("stop".into()),
            },
            End::Failed(failure("x")),
            End::Cancelled(CancelWhy::Host),
            End::Truncated(failure("x")),
            End::Local,
        ])
    };
    let how = prop::sample::select(vec![
        AskClose::Answered {
            by: Decider::Host,
            allow: Some(true),
        },
        AskClose::HostGone,
        AskClose::Cancelled,
    ]);
    let simple = prop::sample::select(vec![
        What::StepStarted {
            step: StepId(1),
            number: 1,
        },
        What::StepEnded { step: StepId(1) },
        What::Context {
            used: 1,
            window: 2,
            estimated: true,
        },
        What::RequestStarted {
            request: RequestId(1),
            attempt: 1,
        },
        What::TurnStarted {
            turn: TurnId(1),
            cause: Cause::Prompt,
        },
        What::Settled,
        complete(),
        request_ended(RequestOutcome::Truncated),
        request_ended(RequestOutcome::Cancelled),
        request_ended(RequestOutcome::Failed(failure("x"))),
        message_ended("text", Stop::End, true),
        message_ended("text", Stop::Failed, false),
        What::RetryScheduled {
            attempt: 2,
            max: 8,
            wait_us: None,
            why: failure("x"),
        },
        What::Message(message(Role::Note, Origin::Harness, "note")),
        What::Notice {
            level: Level::Error,
            code: None,
            text: "x".into(),
        },
        What::CompactionStarted {
            trigger: Trigger::Manual,
            span: None,
            tokens: None,
        },
        What::CompactionEnded {
            result: Err(CompactionFault::Nothing("x".into())),
        },
        What::Changed(Box::new(SessionInfo {
            tools: vec!["x".into()],
            ..info()
        })),
        What::Changed(Box::new(info())),
        What::Opened(Box::new(info())),
    ]);
    prop_oneof![
        4 => (1..12u64, reply).prop_map(|(command, reply)| What::Replied { command: CommandId(command), reply }),
        12 => simple,
        2 => (id(), end()).prop_map(|(prompt, end)| What::PromptEnded { prompt: PromptId(prompt), end }),
        1 => (end(), any::<bool>()).prop_map(|(end, background)| turn_ended(end, background)),
        2 => id().prop_map(|call| tool_started(call, "c1", object("{}"))),
        2 => id().prop_map(|call| tool_ended(call, ToolOutcome::Ok, "out")),
        2 => id().prop_map(|ask| What::Asked {
            ask: AskId(ask),
            body: Ask::Permission(Box::new(permission(AskReason::Gate)))
        }),
        2 => (id(), how).prop_map(|(ask, how)| What::AskClosed { ask: AskId(ask), how }),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Host(Vec<u8>),
    Says(What),
    Delta(Kind, String),
    Pass(u64),
    End,
    Signal,
    Closed,
    Extra,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec![Kind::Text, Kind::Thinking, Kind::Input]);
    prop_oneof![
        20 => host_bytes().prop_map(Step::Host),
        60 => what().prop_map(Step::Says),
        20 => (kind, "[a-zü]{0,4}").prop_map(|(kind, text)| Step::Delta(kind, text)),
        5 => (0..40_000u64).prop_map(Step::Pass),
        2 => Just(Step::Extra),
        1 => Just(Step::End),
        1 => Just(Step::Signal),
        1 => Just(Step::Closed),
    ]
}

fn play(rig: &mut Rig, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Host(bytes) => rig.raw(&bytes),
            Step::Says(what) => rig.event(what),
            Step::Delta(kind, text) => rig.delta(kind, &text),
            Step::Pass(us) => rig.pass(us),
            Step::End => rig.tell(Told::End),
            Step::Signal => rig.tell(Told::Signal(Signal::Terminate)),
            Step::Closed => rig.event(What::Closed {
                why: CloseWhy::Drained,
            }),
            Step::Extra => rig.tell(Told::Extra(Extra::SchemasOverBudget {
                schema_tokens: 1,
                budget_tokens: 2,
            })),
        }
    }
}

proptest! {
    #![proptest_config(turnwire_proptests::config(300))]

    #[test]
    fn l8_l9_a_lawless_agent_makes_no_lawless_lines(
        steps in prop::collection::vec(step(), 0..80),
        coalesce_us in prop::sample::select(vec![0, 25_000]),
        opened in any::<bool>(),
    ) {
        let config = ServerConfig { coalesce_us, ..config() };
        let mut rig = if opened { Rig::opened_with(config) } else { Rig::new(config) };
        play(&mut rig, steps);
        judge(&rig.out, opened);
    }

    #[test]
    fn l1_l2_l3_l4_l5_l6_l9_hold_of_any_story(
        steps in prop::collection::vec(step(), 0..60),
        coalesce_us in prop::sample::select(vec![0, 25_000]),
        every in 2..6usize,
        size in 1..9usize,
    ) {
        let mut rig = Rig::new(ServerConfig { coalesce_us, ..config() });
        rig.event(What::Opened(Box::new(info())));
        play(&mut rig, steps);
        prop_assert_eq!(rig.laws(size, every), Ok(()));
    }

    #[test]
    fn l9_om_10_each_bad_line_is_one_protocol_error(
        lines in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            "[ \\[\\]{}\"a-z:,0-9\\\\]{0,30}".prop_map(String::into_bytes),
        ], 0..20),
        size in 1..40usize,
    ) {
        let mut bad = 0;
        let mut bytes = Vec::new();
        for line in lines.iter().flat_map(|line| line.split(|byte| *byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let mut members = Members::new();
            if HostLine::decode(line, &mut members).is_ok_and(|line| !matches!(line, HostLine::Unknown { .. })) {
                continue;
            }
            bad += usize::from(!line.iter().all(|byte| b" \t\r\n".contains(byte)));
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        let mut rig = Rig::opened();
        bytes.chunks(size).for_each(|chunk| rig.raw(chunk));
        prop_assert_eq!(rig.calls(), []);
        let lines = rig.lines();
        prop_assert_eq!(lines.len(), bad);
        lines.iter().for_each(|line| drop(refusal(line)));
    }
}
