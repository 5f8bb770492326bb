//! Talks: what a host is told of one, whatever the embedder that serves it does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::omp_server_kit;

use omp_server_kit::{Rig, ServerInput};
use serde_json::{Value, json};
use turnwire::protocol::ServerOutput;
use turnwire::protocol::omp::{OmpAsk, OmpExtra, OmpOutcome};
use turnwire::vocab::*;

fn says(rig: &mut Rig, line: &Value) {
    let extra = OmpExtra {
        kind: line["type"].as_str().unwrap().into(),
        line: RawJson(line.to_string().into()),
    };
    rig.tell(ServerInput::Extra(extra));
}

/// The types of the lines since; responses by their success.
fn kinds(rig: &mut Rig) -> Vec<String> {
    let lines = rig.take();
    let kind = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap();
        let kind = line["type"].as_str().unwrap().to_owned();
        match line["success"].as_bool() {
            Some(success) => format!("{}: {success}", line["command"].as_str().unwrap()),
            None => kind,
        }
    };
    lines.iter().map(kind).collect()
}

/// A talk that is about to begin; the embedder's question.
fn connecting() -> (Rig, u64) {
    let mut rig = Rig::new();
    rig.take();
    rig.host(r#"{"id":"l","type":"live_start","voice":"v","instructions":"be brief"}"#);
    let (id, ask) = rig.asked();
    let expected = OmpAsk::LiveStart {
        voice: Some("v".into()),
        instructions: Some("be brief".into()),
    };
    assert_eq!(ask, expected);
    (rig, id)
}

/// The embedder's answer to this is no longer wanted.
#[track_caller]
fn dismissed(rig: &mut Rig, ask: u64) {
    let output = rig.outputs.remove(0);
    assert!(
        matches!(output, ServerOutput::Dismiss { id } if id == ask),
        "{output:?}"
    );
}

fn active() -> Rig {
    let (mut rig, id) = connecting();
    let data = RawJson(r#"{"voice":"v"}"#.into());
    rig.settle(id, OmpOutcome::Success(Some(data)));
    assert_eq!(kinds(&mut rig), ["live_start: true"]);
    rig
}

#[test]
fn omp_16_a_talk_ends_once_however_it_ends() {
    // By the host.
    let mut rig = active();
    says(&mut rig, &json!({"type":"live_phase","phase":"listening"}));
    rig.host(r#"{"id":"s","type":"live_stop"}"#);
    let (id, ask) = rig.asked();
    assert_eq!(ask, OmpAsk::LiveStop);
    rig.settle(id, OmpOutcome::Success(None));
    assert_eq!(
        kinds(&mut rig),
        ["live_phase", "live_end", "live_stop: true"]
    );
    // The embedder says it, too, before or behind its answer.
    let mut rig = active();
    rig.host(r#"{"id":"s","type":"live_stop"}"#);
    let (id, _) = rig.asked();
    says(&mut rig, &json!({"type":"live_end"}));
    says(&mut rig, &json!({"type":"live_end"}));
    rig.settle(id, OmpOutcome::Success(None));
    says(&mut rig, &json!({"type":"live_end"}));
    assert_eq!(kinds(&mut rig), ["live_end", "live_stop: true"]);
    // By itself, with what went wrong; nothing comes behind it.
    let mut rig = active();
    says(
        &mut rig,
        &json!({"type":"live_end","error":"no more credit"}),
    );
    says(&mut rig, &json!({"type":"live_phase","phase":"error"}));
    says(
        &mut rig,
        &json!({"type":"live_transcript","role":"user","turn":1,"text":"t","final":true}),
    );
    assert_eq!(kinds(&mut rig), ["live_end"]);
    rig.host(r#"{"id":"s","type":"live_stop"}"#);
    assert_eq!(kinds(&mut rig), ["live_stop: true"]);
    // One that never began has an end as well.
    for outcome in [
        OmpOutcome::Failure("no microphone".into()),
        OmpOutcome::Default,
    ] {
        let (mut rig, id) = connecting();
        says(&mut rig, &json!({"type":"live_phase","phase":"connecting"}));
        rig.settle(id, outcome);
        let lines = rig.take();
        let end: Value = serde_json::from_str(&lines[1]).unwrap();
        let answer: Value = serde_json::from_str(&lines[2]).unwrap();
        assert_eq!((lines.len(), &end["type"]), (3, &json!("live_end")));
        assert_eq!(
            (&answer["success"], &answer["error"]),
            (&json!(false), &end["error"])
        );
    }
}

#[test]
fn omp_16_there_is_one_talk_at_a_time_and_frames_of_none() {
    let mut rig = Rig::new();
    rig.take();
    for line in [
        json!({"type":"live_phase","phase":"listening"}),
        json!({"type":"live_levels","input":0.5,"output":0}),
        json!({"type":"live_end"}),
    ] {
        says(&mut rig, &line);
    }
    rig.host(r#"{"id":"m","type":"live_mute"}"#);
    rig.host(r#"{"id":"s","type":"live_stop"}"#);
    assert_eq!(kinds(&mut rig), ["live_mute: false", "live_stop: true"]);
    let (mut rig, id) = connecting();
    rig.host(r#"{"id":"l2","type":"live_start"}"#);
    assert_eq!(kinds(&mut rig), ["live_start: false"]);
    rig.settle(id, OmpOutcome::Success(None));
    rig.host(r#"{"id":"l3","type":"live_start"}"#);
    assert_eq!(kinds(&mut rig), ["live_start: true", "live_start: false"]);
    rig.host(r#"{"id":"m","type":"live_mute","muted":true}"#);
    let (id, ask) = rig.asked();
    assert_eq!(ask, OmpAsk::LiveMute(Some(true)));
    rig.settle(
        id,
        OmpOutcome::Success(Some(RawJson(r#"{"muted":true}"#.into()))),
    );
    assert_eq!(kinds(&mut rig), ["live_mute: true"]);
}

#[test]
fn omp_04_omp_16_a_stop_overtakes_a_talk_that_is_about_to_begin() {
    let (mut rig, start) = connecting();
    rig.host(r#"{"id":"s","type":"live_stop"}"#);
    dismissed(&mut rig, start);
    let (id, ask) = rig.asked();
    assert_eq!(ask, OmpAsk::LiveStop);
    assert_eq!(kinds(&mut rig), ["live_start: false"]);
    rig.settle(id, OmpOutcome::Success(None));
    assert_eq!(kinds(&mut rig), ["live_end", "live_stop: true"]);
    // Its late answer changes nothing.
    rig.settle(start, OmpOutcome::Success(None));
    assert_eq!(kinds(&mut rig), [""; 0]);
}

#[test]
fn omp_16_levels_come_at_most_every_100_ms() {
    let mut rig = active();
    let mut said = 0;
    for step in 0..100 {
        says(
            &mut rig,
            &json!({"type":"live_levels","input":0.25,"output":step}),
        );
        rig.now.mono_us += 10_000;
        said += kinds(&mut rig).len();
    }
    assert_eq!(said, 10);
    // The host's filter never hides them.
    rig.host(r#"{"id":"f","type":"set_event_filter","events":[]}"#);
    rig.take();
    rig.now.mono_us += 100_000;
    says(
        &mut rig,
        &json!({"type":"live_levels","input":0.25,"output":1}),
    );
    assert_eq!(kinds(&mut rig), ["live_levels"]);
}

#[test]
fn omp_16_omp_18_the_end_of_input_ends_a_talk_before_the_process() {
    let mut rig = active();
    rig.tell(ServerInput::End);
    let (id, ask) = rig.asked();
    assert_eq!(ask, OmpAsk::LiveStop);
    let close = |rig: &mut Rig| {
        let calls = rig.calls();
        calls
            .iter()
            .any(|call| matches!(call.command, Command::Close { .. }))
    };
    assert!(!close(&mut rig), "it isn't over yet");
    rig.settle(id, OmpOutcome::Success(None));
    assert_eq!(kinds(&mut rig), ["live_end"]);
    assert!(close(&mut rig));
    // One that is about to begin doesn't.
    let (mut rig, start) = connecting();
    rig.tell(ServerInput::End);
    dismissed(&mut rig, start);
    let (id, _) = rig.asked();
    rig.settle(id, OmpOutcome::Default);
    assert_eq!(kinds(&mut rig), ["live_start: false", "live_end"]);
}
