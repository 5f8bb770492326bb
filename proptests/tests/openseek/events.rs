//! Events: written in one order, read back equal, and none where a member is missing that the contract doesn't excuse.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use turnwire::json::Members;
use turnwire::protocol::openseek::wire::*;
use turnwire_proptests::fuzz::models::openseek_agent_again;

use crate::lines;

fn reads(line: &str) -> bool {
    matches!(Event::read(line.as_bytes(), &mut Members::new()), Ok(event) if event.tag().is_some())
}

fn written(line: &str) -> String {
    let mut members = Members::new();
    let mut out = Vec::new();
    Event::read(line.as_bytes(), &mut members)
        .unwrap()
        .encode(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn os_a01_os_01_os_10_a_line_of_every_event_reads_and_is_written_byte_for_byte() {
    let mut seen = BTreeSet::new();
    for line in lines("agent.jsonl") {
        assert_eq!(
            openseek_agent_again(line.as_bytes()),
            Some(Ok(())),
            "{line}"
        );
        assert_eq!(written(&line), line);
        let mut members = Members::new();
        let event = Event::read(line.as_bytes(), &mut members).unwrap();
        seen.insert(event.tag().unwrap());
        assert_eq!(event.name(), event.tag().unwrap());
    }
    assert_eq!(seen, Event::TAGS.iter().copied().collect());
    assert_eq!(Event::TAGS.len(), 58);
}

#[test]
fn os_02_an_event_is_flat_and_its_name_comes_first() {
    let event = Event::from(AssistantDelta {
        content: "Hel".into(),
        ..AssistantDelta::default()
    });
    let mut out = Vec::new();
    event.encode(&mut out);
    assert_eq!(out, br#"{"event":"assistant_delta","content":"Hel"}"#);
    // What an older engine wrote around it changes nothing.
    let old = r#"{"timestamp":"2026-06-01T00:00:00Z","level":"info","source":"a.mbt:1","event":"agent_step","step":2}"#;
    let mut members = Members::new();
    match Event::read(old.as_bytes(), &mut members).unwrap() {
        Event::AgentStep(step) => assert_eq!(step.step.get(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn os_03_what_cant_be_read_is_no_event() {
    let mut members = Members::new();
    for line in [
        "",
        "7",
        "[]",
        "{}",
        r#"{"event":7}"#,
        r#"{"event":null}"#,
        r#"{"event":"agent_step"}"#,
        r#"{"event":"agent_step","step":"1"}"#,
        r#"{"event":"tool_result","tool_call_id":"a","tool_name":"b","is_error":"no","content":""}"#,
        r#"{"event":"mcp_tools_registered","servers":1,"tools":1,"names":["a",1]}"#,
        r#"{"event":"job_stop_result","request_id":"a","generation":"g","job_id":"b","outcome":"gone"}"#,
    ] {
        assert!(
            Event::read(line.as_bytes(), &mut members).is_err(),
            "{line}"
        );
    }
    // A newer event is a value, for whoever wants to pass it on.
    let newer = r#"{"event":"provider_request_timed_out","x":[1]}"#;
    let event = Event::read(newer.as_bytes(), &mut members).unwrap();
    assert_eq!(
        (event.tag(), &*event.name()),
        (None, "provider_request_timed_out")
    );
    assert_eq!(written(newer), newer);
    // Of a member that stands twice the last counts.
    let twice = r#"{"event":"x","step":1,"event":"agent_step","step":2}"#;
    assert_eq!(written(twice), r#"{"event":"agent_step","step":2}"#);
    assert!(Event::TurnFailed(TurnFailed::default()).is_terminal());
    assert!(!Event::GoalUnblocked(GoalUnblocked::default()).is_terminal());
}

/// The members that have a default, and what it is.
fn defaults() -> [(&'static str, &'static str, Value); 6] {
    [
        ("steer_applied", "kind", json!("prompt")),
        ("session_started", "workspace_root", Value::Null),
        ("tool_result", "brief", Value::Null),
        ("approval_requested", "body", Value::Null),
        ("goal_updated", "goal", Value::Null),
        ("mcp_connect_failed", "error", json!("unknown error")),
    ]
}

#[test]
fn os_a02_os_04_os_05_only_six_members_may_be_missing_or_mistyped() {
    let mut excused = BTreeSet::new();
    // One line of each event: those after them repeat some.
    for line in lines("agent.jsonl").into_iter().take(58) {
        let whole: Value = serde_json::from_str(&line).unwrap();
        let event = whole["event"].as_str().unwrap().to_owned();
        for name in whole
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| *name != "event")
        {
            let wrong = match &whole[name] {
                Value::String(_) | Value::Null => json!(7),
                Value::Array(_) | Value::Object(_) => json!("x"),
                Value::Bool(_) | Value::Number(_) => json!([true]),
            };
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(name);
            let mut other = whole.clone();
            other[name] = wrong;
            let default = defaults()
                .into_iter()
                .find(|(of, member, _)| *of == event && member == name);
            for changed in [less, other] {
                let text = changed.to_string();
                assert_eq!(reads(&text), default.is_some(), "{text}");
                if let Some((_, _, default)) = &default {
                    let back: Value = serde_json::from_str(&written(&text)).unwrap();
                    assert_eq!(back[name], *default, "{text}");
                    excused.insert(event.clone());
                }
            }
        }
    }
    assert_eq!(excused.len(), 6);
}

#[test]
fn os_a03_os_06_numbers_are_whole_or_none() {
    let step = |number: &str| format!(r#"{{"event":"agent_step","step":{number}}}"#);
    for (number, read) in [
        ("3", "3"),
        ("3.0", "3"),
        ("3e0", "3"),
        ("30e-1", "3"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("-7", "-7"),
        ("2147483647", "2147483647"),
        ("-2147483648", "-2147483648"),
        ("2147483647.0", "2147483647"),
    ] {
        assert_eq!(written(&step(number)), step(read), "{number}");
    }
    for number in [
        "1.5",
        "0.1",
        "2147483648",
        "-2147483649",
        "1e10",
        "1e400",
        "-1e400",
        "99999999999999999999",
        "\"NaN\"",
        "\"1\"",
        "null",
        "true",
        "[1]",
    ] {
        assert!(!reads(&step(number)), "{number}");
    }
    let counts = |number: &str| {
        format!(
            r#"{{"event":"usage","usage":{{"prompt_tokens":1,"completion_tokens":{number},"total_tokens":2,"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":1}}}}"#
        )
    };
    assert!(reads(&counts("1.0")) && !reads(&counts("1.5")) && !reads(&counts("null")));
    assert!(!reads(r#"{"event":"usage","usage":{"prompt_tokens":1}}"#));
}

/// The record of a finished job, with one member changed.
fn job(name: &str, value: Value) -> String {
    let line = lines("agent.jsonl")
        .into_iter()
        .find(|line| line.contains("job_changed"))
        .unwrap();
    let mut event: Value = serde_json::from_str(&line).unwrap();
    event["job"][name] = value;
    event.to_string()
}

#[test]
fn os_a03_times_and_sizes_go_up_to_the_last_exact_double() {
    for name in [
        "started_at_ms",
        "backgrounded_at_ms",
        "output_bytes",
        "finished_at_ms",
        "last_output_at_ms",
    ] {
        for good in [json!(0), json!(9_007_199_254_740_991_u64), json!(1.0)] {
            assert!(reads(&job(name, good.clone())), "{name} {good}");
        }
        for bad in [
            json!(-1),
            json!(9_007_199_254_740_992_u64),
            json!(1.5),
            json!("1"),
            json!(u64::MAX),
        ] {
            assert!(!reads(&job(name, bad.clone())), "{name} {bad}");
        }
    }
    assert_eq!(Big::new(9_007_199_254_740_992), None);
    assert_eq!(Big::nearest(i64::MAX), Big::MAX);
}

#[test]
fn os_10_os_12_a_record_is_read_strictly() {
    for (name, bad) in [
        ("output_file", json!("../secret")),
        ("output_file", json!("")),
        ("output_file", json!(1)),
        ("generation", json!("/tmp")),
        ("id", json!("..")),
        ("revision", json!(0)),
        ("revision", json!(2_147_483_648_u64)),
        ("output_chars", json!(-1)),
        ("output_bytes", json!(-1)),
        ("description", json!(7)),
        ("cleanup_error", json!(false)),
        ("finished_at_ms", json!(1.5)),
        ("schema_version", json!(2)),
        ("schema_version", Value::Null),
        ("state", json!("running")),
        ("state", json!({"kind": "paused"})),
        ("state", json!({"kind": "exited"})),
        ("state", json!({"kind": "exited", "code": 1.5})),
        (
            "state",
            json!({"kind": "exited", "code": 2_147_483_648_u64}),
        ),
        ("state", json!({"kind": "stopped"})),
        ("state", json!({"kind": "stopped", "reason": ""})),
        ("output_truncated", Value::Null),
        ("command", Value::Null),
    ] {
        assert!(!reads(&job(name, bad.clone())), "{name} {bad}");
    }
    // What may be null may be missing, and is written; a state says no more than it needs.
    let line = lines("agent.jsonl")
        .into_iter()
        .find(|line| line.contains("job_changed"))
        .unwrap();
    let whole: Value = serde_json::from_str(&line).unwrap();
    let may = [
        "cleanup_error",
        "description",
        "cwd",
        "finished_at_ms",
        "last_output_at_ms",
        "output_file",
        "output_error",
        "persistence_error",
    ];
    for name in whole["job"].as_object().unwrap().keys() {
        let mut less = whole.clone();
        less["job"].as_object_mut().unwrap().remove(name);
        let text = less.to_string();
        assert_eq!(reads(&text), may.contains(&name.as_str()), "{name}");
        if may.contains(&name.as_str()) {
            let back: Value = serde_json::from_str(&written(&text)).unwrap();
            assert_eq!(back["job"].get(name), Some(&Value::Null), "{name}");
        }
    }
    let more = written(&job(
        "state",
        json!({"kind": "exited", "code": 3.0, "signal": 9}),
    ));
    assert!(
        more.contains(r#""state":{"kind":"exited","code":3},"#),
        "{more}"
    );
    // One record that can't be read spoils a snapshot.
    let mut snapshot =
        json!({"event": "jobs_snapshot", "request_id": "r", "jobs": [whole["job"], whole["job"]]});
    assert!(reads(&snapshot.to_string()));
    snapshot["jobs"][1]["revision"] = json!(0);
    assert!(!reads(&snapshot.to_string()));
}

#[test]
fn os_10_how_a_job_ended_is_told_by_its_record() {
    let ended = |state: JobState<'static>, cleanup: bool| {
        let cleanup_error = Optional(cleanup.then(|| "busy".into()));
        JobRecord {
            state,
            cleanup_error,
            ..JobRecord::default()
        }
        .ended_as()
    };
    let exited = |code| JobState::Exited {
        code: Int::new(code).unwrap(),
    };
    let stopped = |reason: &'static str| JobState::Stopped {
        reason: NonEmpty::new(reason).unwrap(),
    };
    for (state, as_it_is) in [
        (JobState::Running, None),
        (JobState::Stopping, None),
        (exited(0), Some(JobEventKind::Finished)),
        (exited(2), Some(JobEventKind::Failed)),
        (stopped("user"), Some(JobEventKind::Finished)),
        (stopped("session_ended"), Some(JobEventKind::Finished)),
        (stopped("time_limit"), Some(JobEventKind::Failed)),
        (JobState::Interrupted, Some(JobEventKind::Finished)),
    ] {
        assert_eq!(state.is_terminal(), as_it_is.is_some());
        assert_eq!(ended(state.clone(), false), as_it_is);
        assert_eq!(ended(state, true), as_it_is.map(|_| JobEventKind::Failed));
    }
}

#[test]
fn os_04_newer_shapes_of_events_are_read() {
    let mut members = Members::new();
    let line = r#"{"event":"steer_applied","kind":"prompt","content":[{"type":"text","text":"a"},{"type":"image","media_type":"image/png","data":"AA=="}],"submission_id":"s"}"#;
    match Event::read(line.as_bytes(), &mut members).unwrap() {
        Event::SteerApplied(applied) => {
            assert_eq!(applied.content.as_parts().unwrap().len(), 2);
            assert_eq!(applied.submission_id.string().as_deref(), Some("s"));
        }
        other => panic!("{other:?}"),
    }
    // A text alone is a text, and a name that isn't one is passed over.
    let one = r#"{"event":"steer_dropped","content":[{"type":"text","text":"a","x":1}],"submission_id":7}"#;
    assert_eq!(
        written(one),
        r#"{"event":"steer_dropped","content":"a","submission_id":7}"#
    );
    for bad in [
        r#"{"event":"steer_dropped","content":[{"type":"video"}]}"#,
        r#"{"event":"steer_dropped","content":[{"type":"image","data":"AA=="}]}"#,
        r#"{"event":"steer_dropped","content":[7]}"#,
        r#"{"event":"steer_dropped","content":{"type":"text","text":"a"}}"#,
        r#"{"event":"steer_dropped","content":null}"#,
    ] {
        assert!(!reads(bad), "{bad}");
    }
}

/// What can stand anywhere.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["", "prompt", "running", "exited", "text", "bg-1"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z]{0,3}|kind|code|reason|type|text|event", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Puts another value in the place of one, takes it away, or adds a member.
fn disturb(value: &mut Value, path: &[Index], with: Option<Value>) {
    let Some((step, rest)) = path.split_first() else {
        *value = with.unwrap_or(Value::Null);
        return;
    };
    match value {
        Value::Object(members) if !members.is_empty() => {
            let at = step.index(members.len() + 1);
            match members.keys().nth(at).cloned() {
                None => {
                    members.insert("added".into(), with.unwrap_or(Value::Null));
                }
                Some(name) if rest.is_empty() && with.is_none() => {
                    members.remove(&name);
                }
                Some(name) => disturb(members.get_mut(&name).unwrap(), rest, with),
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let index = step.index(items.len());
            disturb(&mut items[index], rest, with);
        }
        other => *other = with.unwrap_or(Value::Null),
    }
}

proptest! {
    #[test]
    fn l10_os_01_a_disturbed_event_reads_and_writes_back_equal(
        line in any::<Index>(),
        edits in prop::collection::vec(
            (prop::collection::vec(any::<Index>(), 1..4), prop::option::weighted(0.7, anything())),
            0..4,
        ),
    ) {
        let lines = lines("agent.jsonl");
        let mut value: Value = serde_json::from_str(&lines[line.index(lines.len())]).unwrap();
        for (path, with) in edits {
            disturb(&mut value, &path, with);
        }
        let bytes = serde_json::to_vec(&value).unwrap();
        if let Some(again) = openseek_agent_again(&bytes) {
            prop_assert_eq!(again, Ok(()));
        }
    }

    /// Whatever a reader that works with doubles takes for a whole number of 32 bits, and nothing else.
    #[test]
    fn os_06_a_number_is_whole_as_it_is_for_doubles(number in prop_oneof![
        any::<f64>(),
        any::<i32>().prop_map(f64::from),
        (any::<i32>(), -3..3i32).prop_map(|(whole, shift)| f64::from(whole) / 10f64.powi(shift)),
    ]) {
        prop_assume!(number.is_finite());
        let is_whole = number.fract() == 0.0
            && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
        for spelled in [format!("{number}"), format!("{number:e}")] {
            let line = format!(r#"{{"event":"goal_continue","remaining":{spelled}}}"#);
            prop_assert_eq!(reads(&line), is_whole, "{}", spelled);
        }
    }
}
