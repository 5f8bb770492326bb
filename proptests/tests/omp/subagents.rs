//! Subagents: nested runs as a host of omp hears of them.

use serde_json::{Value, json};
use turnwire::protocol::omp::{OmpAsk, OmpOutcome, RunFiles, ServerConfig, Transcript};
use turnwire::vocab::*;

use crate::omp_server_kit::{Rig, config};

const RUN: RunId = RunId(3);

fn started(run: RunId) -> What {
    What::RunStarted {
        run,
        kind: RunKind::Subagent("task".into()),
        label: "look around".into(),
        call: None,
    }
}

fn over(run: RunId, status: RunStatus) -> What {
    What::RunEnded {
        run,
        status,
        steps: 1,
        usage: None,
        detail: "nothing there".into(),
    }
}

fn said(id: u64, role: Role, text: &str) -> std::sync::Arc<Message> {
    std::sync::Arc::new(Message {
        id: MessageId(id),
        origin: Origin::Host,
        prompt: None,
        role,
        content: vec![std::sync::Arc::new(Block::Text(text.into()))],
        about: None,
        at_ms: 1_796_008_000_000,
        details: None,
    })
}

fn subscribed(level: &str) -> Rig {
    let mut rig = Rig::new();
    let answer = rig.query(&format!(
        r#"{{"type":"set_subagent_subscription","level":"{level}"}}"#
    ));
    assert_eq!(answer["data"], json!({ "level": level }));
    rig
}

fn one_run(rig: &mut Rig) {
    rig.event(started(RUN));
    let step = StepId(1);
    rig.event_of(RUN, What::StepStarted { step, number: 1 });
    rig.event_of(RUN, What::Message(said(1, Role::User, "Look around.")));
    rig.event_of(RUN, What::StepEnded { step });
    rig.event(over(RUN, RunStatus::Completed));
}

fn parsed(lines: &[String]) -> Vec<Value> {
    let lines = lines.iter();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn words(lines: &[Value]) -> Vec<String> {
    let word = |line: &Value| match line["type"].as_str().unwrap() {
        "subagent_event" => format!(
            "{}: {}",
            line["payload"]["id"].as_str().unwrap(),
            line["payload"]["event"]["type"].as_str().unwrap()
        ),
        "subagent_lifecycle" => format!("is {}", line["payload"]["status"].as_str().unwrap()),
        other => other.to_owned(),
    };
    lines.iter().map(word).collect()
}

#[test]
fn omp_14_each_level_has_its_frames() {
    let told = |level: &str| {
        let mut rig = subscribed(level);
        rig.take();
        one_run(&mut rig);
        let lines = parsed(&rig.take());
        assert!(rig.errors().is_empty(), "{:?}", rig.errors());
        words(&lines)
    };
    assert!(told("off").is_empty());
    assert_eq!(told("progress"), ["is started", "is completed"]);
    assert_eq!(
        told("events"),
        [
            "is started",
            "run-3: agent_start",
            "run-3: turn_start",
            "run-3: message_start",
            "run-3: message_end",
            "run-3: message_start",
            "run-3: message_end",
            "run-3: turn_end",
            "run-3: agent_end",
            "is completed",
        ]
    );
}

#[test]
fn omp_14_a_host_may_listen_from_the_middle_of_a_run_on() {
    let mut rig = subscribed("off");
    rig.event(started(RUN));
    let step = StepId(1);
    rig.event_of(RUN, What::StepStarted { step, number: 1 });
    assert!(rig.take().is_empty());
    rig.query(r#"{"type":"set_subagent_subscription","level":"events"}"#);
    rig.event_of(RUN, What::Message(said(1, Role::User, "Look around.")));
    assert_eq!(
        words(&parsed(&rig.take())),
        ["run-3: message_start", "run-3: message_end"]
    );
    // The session's own filter hides nothing of it.
    rig.query(r#"{"type":"set_event_filter","events":["turn_start"]}"#);
    rig.event(over(RUN, RunStatus::Cancelled));
    let lines = words(&parsed(&rig.take()));
    assert_eq!(lines.first().unwrap(), "run-3: message_start");
    assert_eq!(lines.last().unwrap(), "is aborted");
    // What comes behind its end is of nobody.
    rig.event_of(RUN, What::StepStarted { step, number: 2 });
    rig.event(over(RUN, RunStatus::Cancelled));
    assert!(rig.take().is_empty());
}

#[test]
fn omp_14_a_list_has_those_that_have_ended_and_where_they_are_kept() {
    let mut rig = Rig::with(ServerConfig {
        run_files: Some(RunFiles {
            between: "-sr-".into(),
            ending: ".jsonl".into(),
        }),
        ..config()
    });
    rig.event(What::Opened(Box::new(SessionInfo {
        file: Some("/s/a.jsonl".into()),
        ..crate::omp_server_kit::info()
    })));
    rig.event(started(RUN));
    rig.event_of(RUN, started(RunId(5)));
    rig.event_of(RUN, over(RunId(5), RunStatus::Failed));
    let list = rig.query(r#"{"type":"get_subagents"}"#);
    let list = list["data"]["subagents"].as_array().unwrap();
    let facts: Vec<_> = list
        .iter()
        .map(|one| {
            (
                &one["id"],
                &one["index"],
                &one["status"],
                &one["sessionFile"],
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (
                &json!("run-3"),
                &json!(3),
                &json!("running"),
                &json!("/s/a-sr-3.jsonl")
            ),
            (
                &json!("run-5"),
                &json!(5),
                &json!("failed"),
                &json!("/s/a-sr-3-sr-5.jsonl")
            ),
        ]
    );
    // Another session has none of them.
    rig.event(What::Opened(Box::new(crate::omp_server_kit::info())));
    let list = rig.query(r#"{"type":"get_subagents"}"#);
    assert_eq!(list["data"]["subagents"], json!([]));
}

#[test]
fn omp_14_only_so_many_that_have_ended_are_remembered() {
    let mut rig = Rig::new();
    for run in 1..=300 {
        rig.event(started(RunId(run)));
        rig.event(over(RunId(run), RunStatus::Completed));
    }
    let list = rig.query(r#"{"type":"get_subagents"}"#);
    let list = list["data"]["subagents"].as_array().unwrap();
    assert_eq!((list.len(), &list[0]["id"]), (256, &json!("run-45")));
}

#[test]
fn omp_14_what_one_has_said_is_read_from_any_byte_on() {
    let mut rig = Rig::new();
    rig.host(r#"{"id":"a","type":"get_subagent_messages","subagentId":"run-3","fromByte":7.9}"#);
    let (id, ask) = rig.asked();
    assert_eq!(
        ask,
        OmpAsk::SubagentMessages {
            subagent: Some("run-3".into()),
            file: None,
            from_byte: 7
        }
    );
    rig.take();
    let part = Transcript {
        file: "/s/a-sr-3.jsonl".into(),
        from_byte: 7,
        next_byte: 90,
        reset: false,
        messages: vec![
            said((3 << 32) + 1, Role::User, "Look."),
            said((3 << 32) + 2, Role::Assistant, "Nothing."),
        ],
    };
    rig.settle(id, OmpOutcome::Transcript(Box::new(part)));
    let answer = rig.one();
    let data = &answer["data"];
    assert_eq!(
        (
            &data["sessionFile"],
            &data["fromByte"],
            &data["nextByte"],
            &data["reset"]
        ),
        (
            &json!("/s/a-sr-3.jsonl"),
            &json!(7),
            &json!(90),
            &json!(false)
        )
    );
    let texts: Vec<&Value> = data["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(texts, ["user", "assistant"]);
    let entries = data["entries"].as_array().unwrap();
    assert_eq!(entries[1]["parentId"], entries[0]["id"]);
    assert_eq!(entries[1]["message"], data["messages"][1]);
    // Where nobody keeps it there is the contract's own word.
    rig.host(r#"{"id":"b","type":"get_subagent_messages","subagentId":"run-9"}"#);
    let (id, _) = rig.asked();
    rig.settle(id, OmpOutcome::Default);
    assert_eq!(
        rig.one()["error"],
        "Unknown subagent or session file unavailable: run-9"
    );
    assert!(rig.errors().is_empty(), "{:?}", rig.errors());
}

#[test]
fn omp_14_a_subagent_is_steered_and_cancelled_by_its_id() {
    let mut rig = Rig::new();
    rig.event(started(RUN));
    rig.host(r#"{"id":"s","type":"steer_subagent","subagentId":"run-3","message":"And there?"}"#);
    let call = rig.call();
    let Command::SteerRun { run, .. } = &call.command else {
        panic!("{call:?}")
    };
    assert_eq!(*run, RUN);
    rig.take();
    rig.reply(call.id, Err(Refusal::Full));
    let error = rig.one()["error"].as_str().unwrap().to_owned();
    assert!(
        error.starts_with("Subagent refused the message: "),
        "{error}"
    );
    rig.host(r#"{"id":"c","type":"cancel_subagent","subagentId":"run-3"}"#);
    let call = rig.call();
    assert!(
        matches!(
            call.command,
            Command::Cancel {
                what: CancelWhat::Run(RUN),
                ..
            }
        ),
        "{call:?}"
    );
    rig.take();
    rig.reply(
        call.id,
        Ok(Answer::Cancelling {
            hit: Hit::Run,
            queued: Vec::new(),
        }),
    );
    assert_eq!(rig.one()["data"], json!({"cancelled": true}));
}
