//! Laws of the observer: nothing makes it panic, streams that crossed give no false alarm, and what is counted is bounded.

use std::sync::LazyLock;

use proptest::prelude::*;
use turnwire::check::{Check, Checked, From};
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Finding, Observer, Severity, Sides};
use turnwire::protocol::openseek::wire::Shapes;
use turnwire::protocol::openseek::{ObserverConfig, Openseek, RULES};

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
    let folder = format!("{}/fixtures/rules/openseek", env!("CARGO_MANIFEST_DIR"));
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

fn judged(rows: &[Row], sides: Sides, shapes: Shapes) -> Vec<Finding> {
    let mut observer = Observer::<Openseek>::new(ObserverConfig { shapes }, sides);
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

/// Moves lines of the host before lines of the engine that stand in front of them: the engine had not read them yet when it
/// wrote these. An answer to a question can't stand before it.
fn crossed(rows: &[Row], leads: &[usize]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    let mut leads = leads.iter().cycle();
    for index in 1..rows.len() {
        let mut at = index;
        for _ in 0..*leads.next().unwrap() {
            let before = at.checked_sub(1).map(|before| &rows[before]);
            let (Some(Row::Line(Dir::Agent, agent)), Row::Line(Dir::Host, host)) =
                (before, &rows[at])
            else {
                break;
            };
            let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
            if text(host).contains("\"approval\"") && text(agent).contains("approval_") {
                break;
            }
            rows.swap(at - 1, at);
            at -= 1;
        }
    }
    rows
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
            let found = judged(&rows, Sides::Agent, Shapes::Seed);
            assert!(found.is_empty(), "{rule}: {found:?}");
        }
    }
}

#[test]
fn os_02_a_plain_line_with_a_dir_is_no_row_of_a_recording() {
    let lines = concat!(
        r#"{"event":"workspace_created","dir":"/w"}"#,
        "\n",
        r#"{"event":"agent_step","step":2}"#,
        "\n"
    );
    let mut check = Check::<Openseek>::new(ObserverConfig::default(), From::Guess);
    let mut found = Vec::new();
    let mut sink = |checked: Checked<'_>| {
        if let Checked::Finding { finding, .. } = checked {
            found.push(finding.rule.id);
        }
    };
    check.read(lines.as_bytes(), &mut sink);
    check.end(&mut sink);
    assert_eq!(found, ["OS-A06.a", "OS-A06.f"]);
}

#[test]
fn os_a06_an_interleaved_fleet_is_not_judged_by_its_order() {
    let line = |text: &str| Row::Line(Dir::Agent, text.as_bytes().to_vec());
    let rows = [
        line(r#"{"event":"fleet_started","runs":2,"task":"x"}"#),
        line(r#"{"event":"agent_step","step":1}"#),
        line(r#"{"event":"agent_step","step":1}"#),
        line(r#"{"event":"assistant_delta","content":"a"}"#),
        line(r#"{"event":"assistant_message","content":"b"}"#),
        line(r#"{"event":"agent_finished","answer":"b"}"#),
    ];
    assert_eq!(judged(&rows, Sides::Agent, Shapes::Seed), []);
    assert!(!judged(&rows[1..], Sides::Agent, Shapes::Seed).is_empty());
}

#[test]
fn os_a06_a_signal_excuses_an_open_turn() {
    let line = |text: &str| Row::Line(Dir::Agent, text.as_bytes().to_vec());
    let died = |exit: Option<i64>| {
        let mut rows = vec![line(r#"{"event":"agent_step","step":1}"#)];
        rows.extend(exit.map(Row::Exit));
        let found = judged(&rows, Sides::Agent, Shapes::Seed);
        found
            .iter()
            .map(|finding| finding.severity)
            .collect::<Vec<_>>()
    };
    assert_eq!(died(None), [Severity::Warning]);
    assert_eq!(died(Some(2)), [Severity::Error]);
    // It may be a run, which says elsewhere why its turn failed.
    assert_eq!(died(Some(1)), [Severity::Warning]);
    assert_eq!(died(Some(-9)), []);
}

#[test]
fn os_04_newer_commands_are_judged_as_they_are_read() {
    let host = |text: &str| Row::Line(Dir::Host, text.as_bytes().to_vec());
    let rows = [host(
        r#"{"command":"prompt","content":[{"type":"text","text":"a"}]}"#,
    )];
    assert_eq!(judged(&rows, Sides::Host, Shapes::Newer), []);
    let found = judged(&rows, Sides::Host, Shapes::Seed);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule.id, "OS-03.c");
    assert_eq!(
        (Shapes::of(1), Shapes::of(2), Shapes::of(3)),
        (Some(Shapes::Seed), Some(Shapes::Newer), None)
    );
}

#[test]
fn a_long_stream_is_judged_to_its_end() {
    let mut observer = Observer::<Openseek>::new(ObserverConfig::default(), Sides::Both);
    let mut number = 0;
    let mut say = |dir, text: &str| {
        number += 1;
        let place = Place {
            line: number,
            offset: 0,
        };
        let what = SplitKind::Line(text.as_bytes());
        observer.handle_line(dir, Split { place, what });
        assert_eq!(observer.poll_finding(), None, "{text}");
    };
    for round in 0..10_000 {
        say(Dir::Host, r#"{"command":"prompt","text":"go"}"#);
        say(
            Dir::Host,
            r#"{"command":"steer","kind":"prompt","text":"more"}"#,
        );
        say(
            Dir::Agent,
            r#"{"event":"steer_applied","kind":"prompt","content":"more"}"#,
        );
        say(Dir::Agent, r#"{"event":"agent_step","step":1}"#);
        say(Dir::Agent, r#"{"event":"assistant_delta","content":"o"}"#);
        say(Dir::Agent, r#"{"event":"assistant_delta","content":"k"}"#);
        say(
            Dir::Agent,
            r#"{"event":"assistant_message","content":"ok"}"#,
        );
        say(
            Dir::Agent,
            r#"{"event":"usage","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"prompt_cache_hit_tokens":0,"prompt_cache_miss_tokens":1}}"#,
        );
        say(
            Dir::Agent,
            &format!(
                r#"{{"event":"approval_requested","id":"ap-1-{round}","tool_name":"shell","detail":"","body":null}}"#
            ),
        );
        say(
            Dir::Host,
            &format!(r#"{{"command":"approval","id":"ap-1-{round}","allow":false}}"#),
        );
        say(
            Dir::Agent,
            &format!(r#"{{"event":"approval_resolved","id":"ap-1-{round}","outcome":"rejected"}}"#),
        );
        say(Dir::Agent, r#"{"event":"agent_aborted","reason":"no"}"#);
    }
    assert_eq!(observer.tally().turns, 10_000);
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
    fn os_13_lines_that_crossed_give_no_false_alarm(which in any::<usize>(), leads in prop::collection::vec(0..6usize, 8)) {
        let (rule, rows) = &KEPT[which % KEPT.len()];
        let rows = crossed(rows, &leads);
        let found = judged(&rows, Sides::Both, Shapes::Seed);
        let wrong: Vec<&Finding> = found.iter().filter(|finding| finding.severity > Severity::Info).collect();
        prop_assert!(wrong.is_empty(), "{rule}: {wrong:?}");
    }

    #[test]
    fn l9_no_stream_makes_it_panic(
        which in any::<usize>(),
        kept in any::<bool>(),
        changes in prop::collection::vec(changed(), 0..8),
        sides in prop::sample::select(vec![Sides::Host, Sides::Agent, Sides::Both]),
        shapes in prop::sample::select(vec![Shapes::Seed, Shapes::Newer]),
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
        for finding in judged(&rows, sides, shapes) {
            prop_assert!(finding.severity <= finding.rule.severity);
        }
    }
}
