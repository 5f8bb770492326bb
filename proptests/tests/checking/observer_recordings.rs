//! The recordings of the real program, version 5 of the wire: the observer finds what the documents say differs, and
//! nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;

use observer_kit::*;
use turnwire::check::From;
use turnwire::protocol::observer::{Dir, Severity};
use turnwire::protocol::openmax::Wire;

/// Findings on lines of the agent, or on its end, as `id severity`.
fn on_agent(result: &Report) -> Vec<String> {
    result
        .findings
        .iter()
        .filter(|finding| finding.dir == Dir::Agent)
        .map(|finding| format!("{} {}", finding.rule.id, finding.severity))
        .collect()
}

#[test]
fn with_wire_5_no_line_of_the_agent_is_wrong() {
    for (name, bytes) in recordings() {
        let result = check(&bytes, From::Guess, Wire::V5);
        assert_eq!(on_agent(&result), [""; 0], "{name}");
        assert_eq!(result.bad_rows, [0; 0], "{name}");
    }
}

#[test]
fn without_it_only_the_known_differences_are_found() {
    for (name, bytes) in recordings() {
        let result = check(&bytes, From::Guess, Wire::V6);
        let mut found = on_agent(&result);
        if result.summary.tally.agent_lines > 0 {
            // proto and protocol_version, and keys in alphabetical order.
            assert_eq!(
                found.drain(..3).collect::<Vec<_>>(),
                ["OM-12.g info", "OM-01.c error", "OM-01.c error"],
                "{name}"
            );
        }
        let expected: &[&str] = match &*name {
            // The provider's finish word, passed on without an error line.
            "stream_error_finish_reason_error" => &["OM-23.a error"],
            _ => &[],
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn what_hosts_did_wrong_on_purpose_is_found() {
    let expected: &[(&str, &[&str])] = &[
        ("approval_mode", &["OM-07.a"; 4]),
        ("ask_approved", &["OM-11.a", "OM-11.a"]),
        (
            "bad_input",
            &[
                "OM-19.a", "OM-19.a", "OM-06.a", "OM-05.a", "OM-05.a", "OM-05.a", "OM-05.b",
                "OM-05.c", "OM-05.c", "OM-05.b", "OM-05.c", "OM-05.c", "OM-05.c", "OM-06.a",
                "OM-05.a", "OM-05.a", "OM-05.a", "OM-05.a", "OM-05.a", "OM-10.a", "OM-10.a",
            ],
        ),
        ("cancel_approval_pending", &["OM-11.a"]),
        ("cancel_twice_and_user", &["OM-18.a"]),
        ("quit_mid_turn", &["OM-09.a", "OM-18.a"]),
        ("user_while_in_flight", &["OM-18.a", "OM-08.a"]),
    ];
    for (name, bytes) in recordings() {
        let result = check(&bytes, From::Guess, Wire::V5);
        let found: Vec<&str> = result
            .findings
            .iter()
            .map(|finding| finding.rule.id)
            .collect();
        let want = expected
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&[][..], |(_, ids)| ids);
        assert_eq!(found, want, "{name}");
        // The agent was right to refuse.
        assert!(
            result
                .findings
                .iter()
                .all(|finding| finding.severity == Severity::Info),
            "{name}"
        );
    }
}

#[test]
fn the_host_alone_is_to_blame_where_nobody_answers() {
    let mut expected = vec!["OM-19.a info"; 2];
    let (_, bytes) = recordings()
        .into_iter()
        .find(|(name, _)| name == "bad_input")
        .unwrap();
    let rows: Vec<&str> = std::str::from_utf8(&bytes)
        .unwrap()
        .lines()
        .filter(|row| row.contains("\"in\""))
        .collect();
    let result = check(rows.join("\n").as_bytes(), From::Guess, Wire::V6);
    let errors = result.errors().len();
    expected.truncate(result.findings.len() - errors);
    assert_eq!((errors, expected.len()), (19, 2), "{:?}", result.ids());
    assert_eq!(result.summary.tally.agent_lines, 0);
}

#[test]
fn the_agent_alone_is_judged_without_what_needs_the_host() {
    for (name, bytes) in recordings() {
        let rows: Vec<&str> = std::str::from_utf8(&bytes)
            .unwrap()
            .lines()
            .filter(|row| !row.contains("\"in\""))
            .collect();
        let result = check(rows.join("\n").as_bytes(), From::Guess, Wire::V5);
        assert_eq!(result.ids(), [""; 0], "{name}");
        let skipped: Vec<&str> = result
            .summary
            .skipped
            .iter()
            .map(|(rule, _)| rule.id)
            .collect();
        assert!(
            skipped.contains(&"OM-17.a") && skipped.contains(&"OM-05.a"),
            "{name}"
        );
        assert!(!skipped.contains(&"OM-20.a"), "{name}");
    }
}

#[test]
fn the_summary_counts_what_was_recorded() {
    let (_, bytes) = recordings()
        .into_iter()
        .find(|(name, _)| name == "unapproved_source_env")
        .unwrap();
    let tally = check(&bytes, From::Guess, Wire::V5).summary.tally;
    assert_eq!((tally.turns, tally.approvals, tally.tool_calls), (3, 2, 3));
    assert_eq!((tally.host_lines, tally.agent_lines), (6, 35));
    let longest = tally.longest;
    assert!(longest.0 > 200 && longest.1 > 1, "{longest:?}");
}

#[test]
fn however_the_bytes_are_cut_the_same_is_found() {
    for (name, bytes) in recordings() {
        let whole = check(&bytes, From::Guess, Wire::V6);
        for size in [1, 7, 4096] {
            let cut = check_pieces(&bytes, From::Guess, Wire::V6, size);
            assert_eq!(cut.findings, whole.findings, "{name} {size}");
            assert_eq!(cut.lines, whole.lines, "{name} {size}");
            assert_eq!(cut.summary, whole.summary, "{name} {size}");
        }
    }
}
