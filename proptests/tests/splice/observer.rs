//! Laws of the observer: nothing makes it panic, streams that crossed give no false alarm, and what is counted is bounded.

use std::sync::LazyLock;

use proptest::prelude::*;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Finding, Observer, Severity, Sides};
use turnwire::protocol::splice::{ObserverConfig, RULES, Splice};

/// What happens in a fixture, in order.
#[derive(Clone, Debug)]
enum Row {
    Line(Dir, Vec<u8>),
    HostEnd,
    Exit(i64),
}

static KEPT: LazyLock<Vec<(String, Vec<Row>)>> = LazyLock::new(|| fixtures("ok"));
static BROKEN: LazyLock<Vec<(String, Vec<Row>)>> = LazyLock::new(|| fixtures("bad"));

/// The rows of every fixture of this kind: `ok` or `bad`.
fn fixtures(kind: &str) -> Vec<(String, Vec<Row>)> {
    let folder = format!("{}/fixtures/rules/splice", env!("CARGO_MANIFEST_DIR"));
    let of = |rule: &str| {
        let text = std::fs::read_to_string(format!("{folder}/{rule}.{kind}.jsonl")).unwrap();
        let rows = text.lines().filter_map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let line = row["line"].as_str().map(|line| line.as_bytes().to_vec());
            match (row["dir"].as_str().unwrap(), line) {
                ("in", Some(line)) => Some(Row::Line(Dir::Host, line)),
                ("out", Some(line)) => Some(Row::Line(Dir::Agent, line)),
                ("in", None) => Some(Row::HostEnd),
                ("exit", _) => Some(Row::Exit(row["code"].as_i64().unwrap())),
                _ => None,
            }
        });
        rows.collect()
    };
    RULES
        .iter()
        .map(|rule| (rule.id.to_owned(), of(rule.id)))
        .collect()
}

fn judged(rows: &[Row], sides: Sides, original: bool) -> Vec<Finding> {
    let mut observer = Observer::<Splice>::new(ObserverConfig { original }, sides);
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        match row {
            Row::Line(dir, line) => {
                let place = Place {
                    line: number as u64 + 1,
                    offset: 0,
                };
                let what = SplitKind::Line(line);
                observer.handle_line(*dir, Split { place, what });
            }
            Row::HostEnd => observer.handle_end(Dir::Host),
            Row::Exit(code) => observer.handle_exit(*code),
        }
        found.extend(std::iter::from_fn(|| observer.poll_finding()));
    }
    observer.finish();
    found.extend(std::iter::from_fn(|| observer.poll_finding()));
    found
}

#[test]
fn what_keeps_every_rule_keeps_it_for_the_engine_alone() {
    for (rule, rows) in KEPT.clone() {
        if rows
            .iter()
            .any(|row| matches!(row, Row::Line(Dir::Agent, _)))
        {
            let rows: Vec<Row> = rows
                .into_iter()
                .filter(|row| !matches!(row, Row::Line(Dir::Host, _)))
                .collect();
            let found = judged(&rows, Sides::Agent, false);
            assert!(found.is_empty(), "{rule}: {found:?}");
        }
    }
}

fn agent(text: &str) -> Row {
    Row::Line(Dir::Agent, text.as_bytes().to_vec())
}

#[test]
fn sp_04_a_signal_or_a_broken_pipe_excuses_a_stream_without_an_end() {
    let died = |exit: Option<i64>| {
        let mut rows = vec![agent(
            r#"{"runId":"r","schemaVersion":2,"type":"run_start"}"#,
        )];
        rows.extend(exit.map(Row::Exit));
        let found = judged(&rows, Sides::Agent, false);
        found
            .iter()
            .map(|finding| finding.severity)
            .collect::<Vec<_>>()
    };
    assert_eq!(died(None), [Severity::Warning]);
    assert_eq!(died(Some(4)), [Severity::Error]);
    assert_eq!(died(Some(0)), [Severity::Error]);
    for excused in [1, 137, -13] {
        assert_eq!(died(Some(excused)), [], "{excused}");
    }
}

#[test]
fn sp_02_a_signal_may_come_before_bad_input_is_judged() {
    let bad = Row::Line(Dir::Host, b"{}".to_vec());
    for (code, status, exit) in [
        ("interrupted", "interrupted", 130),
        ("provider_error", "error", 3),
    ] {
        let rows = [
            bad.clone(),
            agent(&format!(
                r#"{{"code":"{code}","message":"x","recoverable":false,"runId":"r","schemaVersion":2,"type":"error"}}"#
            )),
            agent(&format!(
                r#"{{"exitCode":{exit},"runId":"r","schemaVersion":2,"status":"{status}","type":"run_end"}}"#
            )),
            Row::Exit(exit),
        ];
        let found = judged(&rows, Sides::Both, false);
        assert!(
            found.iter().all(|finding| finding.dir == Dir::Host),
            "{found:?}"
        );
    }
}

#[test]
fn sp_12_a_refusal_repeats_no_secret_and_needn_t() {
    let rows = [
        Row::Line(Dir::Host, br#"{"sk-abcdefghijklmnopq":1}"#.to_vec()),
        agent(
            r#"{"code":"usage_error","message":"Invalid stream-json input at line 1: unknown field [REDACTED]","recoverable":false,"runId":"r","schemaVersion":2,"type":"error"}"#,
        ),
        agent(r#"{"exitCode":2,"runId":"r","schemaVersion":2,"status":"error","type":"run_end"}"#),
        Row::Exit(2),
    ];
    let found = judged(&rows, Sides::Both, false);
    assert!(
        found.iter().all(|finding| finding.dir == Dir::Host),
        "{found:?}"
    );
}

#[test]
fn sp_a09_the_known_agent_counts_pictures_in_its_own_way() {
    let exact = "AAAA".repeat(3_495_253) + "AA==";
    let line = format!(
        r#"{{"schemaVersion":2,"type":"message","role":"user","content":"","images":[{{"mediaType":"png","data":"{exact}"}}]}}"#
    );
    let rows = [Row::Line(Dir::Host, line.into_bytes())];
    assert_eq!(judged(&rows, Sides::Host, false), []);
    assert_eq!(judged(&rows, Sides::Host, true)[0].rule.id, "SP-02.e");
}

#[test]
fn sp_a04_calls_within_calls_are_paired_by_id() {
    let call = |id: &str| {
        agent(&format!(
            r#"{{"args":{{"x":1}},"id":"{id}","name":"n","runId":"r","schemaVersion":2,"sideEffect":"shell","type":"tool_call"}}"#
        ))
    };
    let result = |id: &str| {
        agent(&format!(
            r#"{{"id":"{id}","name":"n","runId":"r","schemaVersion":2,"status":"ok","truncated":false,"type":"tool_result"}}"#
        ))
    };
    let start = agent(r#"{"runId":"r","schemaVersion":2,"type":"run_start"}"#);
    let end = agent(
        r#"{"exitCode":0,"runId":"r","schemaVersion":2,"status":"success","type":"run_end"}"#,
    );
    for (inner, outer) in [("a", "b"), ("b", "a")] {
        let rows = [
            start.clone(),
            call("a"),
            call("b"),
            result(inner),
            result(outer),
            end.clone(),
        ];
        assert_eq!(judged(&rows, Sides::Agent, false), []);
    }
}

#[test]
fn a_long_stream_is_judged_to_its_end() {
    let mut observer = Observer::<Splice>::new(ObserverConfig::default(), Sides::Agent);
    let mut number = 0;
    let mut say = |text: &str| {
        number += 1;
        let place = Place {
            line: number,
            offset: 0,
        };
        let what = SplitKind::Line(text.as_bytes());
        observer.handle_line(Dir::Agent, Split { place, what });
        assert_eq!(observer.poll_finding(), None, "{text}");
    };
    say(r#"{"runId":"r","schemaVersion":2,"type":"run_start"}"#);
    for round in 0..20_000 {
        say(&format!(
            r#"{{"id":"m{round}","name":"read_file","runId":"r","schemaVersion":2,"type":"tool_call_start"}}"#
        ));
        say(&format!(
            r#"{{"delta":"{{\"path\":1}}","id":"m{round}","runId":"r","schemaVersion":2,"type":"tool_call_delta"}}"#
        ));
        say(&format!(
            r#"{{"args":{{"path":1}},"id":"m{round}","name":"read_file","runId":"r","schemaVersion":2,"sideEffect":"read","type":"tool_call"}}"#
        ));
        say(&format!(
            r#"{{"id":"m{round}","name":"read_file","runId":"r","schemaVersion":2,"status":"ok","truncated":false,"type":"tool_result"}}"#
        ));
    }
    say(r#"{"exitCode":0,"runId":"r","schemaVersion":2,"status":"success","type":"run_end"}"#);
    assert_eq!(observer.tally().tool_calls, 20_000);
}

fn changed() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    (
        any::<usize>(),
        0..5usize,
        prop::collection::vec(any::<u8>(), 0..6),
    )
}

proptest! {
    #[test]
    fn l9_no_stream_makes_it_panic(
        which in any::<usize>(),
        kept in any::<bool>(),
        changes in prop::collection::vec(changed(), 0..8),
        sides in prop::sample::select(vec![Sides::Host, Sides::Agent, Sides::Both]),
        original in any::<bool>(),
    ) {
        let all: &[(String, Vec<Row>)] = if kept { &KEPT } else { &BROKEN };
        let mut rows = all[which % all.len()].1.clone();
        for (at, what, bytes) in changes {
            let at = at % rows.len().max(1);
            let other = all[at % all.len()].1.first().cloned();
            match (what, rows.get_mut(at)) {
                (0, Some(Row::Line(_, line))) => {
                    let cut = at % line.len().max(1);
                    line.splice(cut..cut, bytes);
                }
                (1, Some(Row::Line(dir, _))) => *dir = if *dir == Dir::Host { Dir::Agent } else { Dir::Host },
                (2, Some(_)) => { rows.remove(at); }
                (3, Some(row)) => { let row = row.clone(); rows.insert(at, row); }
                (_, _) => rows.extend(other),
            }
        }
        for finding in judged(&rows, sides, original) {
            prop_assert!(finding.severity <= finding.rule.severity);
        }
    }
}
