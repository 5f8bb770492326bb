//! The recordings of the real claude: the observer finds nothing wrong with a line of the agent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit::{Report, check_of, fixtures};

use turnwire::check::From;
use turnwire::protocol::agentx::{Agentx, ObserverConfig, Policy};
use turnwire::protocol::observer::Dir;

/// The recordings, by name.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(fixtures("transcripts/claude"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    all.sort();
    assert_eq!(all.len(), 69, "the folder of recordings is whole");
    all
}

fn check(bytes: &[u8]) -> Report {
    let policy = Policy::CLAUDE;
    check_of::<Agentx>(ObserverConfig { policy }, bytes, From::Guess, 1 << 16)
}

/// Findings on lines of this side, or on its end, as `id severity`.
fn of(result: &Report, dir: Dir) -> Vec<String> {
    result
        .findings
        .iter()
        .filter(|finding| finding.dir == dir)
        .map(|finding| format!("{} {}", finding.rule.id, finding.severity))
        .collect()
}

#[test]
fn no_line_of_the_agent_is_wrong() {
    for (name, bytes) in files() {
        let result = check(&bytes);
        assert_eq!(of(&result, Dir::Agent), [""; 0], "{name}");
        assert_eq!(result.bad_rows, [0; 0], "{name}");
    }
}

#[test]
fn what_hosts_did_wrong_on_purpose_is_found() {
    let expected: &[(&str, &[&str])] = &[
        ("bad_user_role", &["WIRE-017.a"]),
        (
            "control_response_missing_request_id",
            &["WIRE-009.b", "WIRE-009.b"],
        ),
        ("duplicate_member", &["WIRE-014.b"]),
        ("malformed_line.v2.1.197", &["WIRE-001.b"]),
        ("malformed_midturn", &["WIRE-001.b"]),
        ("tool_allow_null_fields", &["WIRE-PERM-002.c"]),
        ("tool_bad_behavior", &["WIRE-PERM-002.c"]),
        ("tool_bad_behavior.v2.1.197", &["WIRE-PERM-002.c"]),
        ("tool_deny_no_message", &["WIRE-PERM-002.c"]),
        ("tool_interrupt_pending_then_late", &["WIRE-007.b"]),
        ("unknown_subtype", &["WIRE-007.b"]),
        ("unknown_subtype.v2.1.197", &["WIRE-007.b"]),
        ("unknown_type", &["WIRE-002.b", "WIRE-021.c", "WIRE-001.b"]),
        (
            "unknown_type.v2.1.197",
            &["WIRE-002.b", "WIRE-021.c", "WIRE-001.b"],
        ),
        ("user_missing_message", &["WIRE-017.a"]),
    ];
    for (name, bytes) in files() {
        let result = check(&bytes);
        let want = expected.iter().find(|(known, _)| *known == name);
        let want: Vec<String> = want
            .map_or(&[][..], |(_, ids)| ids)
            .iter()
            .map(|id| format!("{id} info"))
            .collect();
        assert_eq!(of(&result, Dir::Host), want, "{name}");
    }
}

#[test]
fn the_agent_alone_is_judged_without_what_needs_the_host() {
    for (name, bytes) in files() {
        let rows: Vec<&str> = std::str::from_utf8(&bytes)
            .unwrap()
            .lines()
            .filter(|row| !row.contains("\"dir\": \"in\"") && !row.contains("\"dir\":\"in\""))
            .collect();
        let result = check(rows.join("\n").as_bytes());
        // That a line of the host ended it nobody sees.
        let told = |finding: &&String| !finding.starts_with("WIRE-001.d");
        let found = of(&result, Dir::Agent);
        let found: Vec<&String> = found.iter().filter(told).collect();
        assert_eq!(found, [""; 0], "{name}");
        let skipped = result.summary.skipped.iter();
        let skipped: Vec<&str> = skipped.map(|(rule, _)| rule.id).collect();
        if found.is_empty() && result.summary.tally.agent_lines > 0 {
            assert!(skipped.contains(&"WIRE-006.a"), "{name}");
            assert!(!skipped.contains(&"WIRE-021.b"), "{name}");
        }
    }
}

#[test]
fn however_the_bytes_are_cut_the_same_is_found() {
    let policy = Policy::CLAUDE;
    for (name, bytes) in files() {
        let whole = check(&bytes);
        for size in [7, 4096] {
            let config = ObserverConfig { policy };
            let cut = check_of::<Agentx>(config, &bytes, From::Guess, size);
            assert_eq!(cut.findings, whole.findings, "{name} {size}");
            assert_eq!(cut.lines, whole.lines, "{name} {size}");
            assert_eq!(cut.summary, whole.summary, "{name} {size}");
        }
    }
}

/// The strict contract isn't claude's: a recording breaks it on nearly every line, and nothing panics.
#[test]
fn the_strict_observer_bears_what_claude_says() {
    for (name, bytes) in files() {
        let config = ObserverConfig::default();
        let result = check_of::<Agentx>(config, &bytes, From::Guess, 1 << 16);
        if result.summary.tally.turns > 0 {
            assert!(result.summary.errors > 0, "{name}");
        }
    }
}

/// Whose line it is is found out by the line, where ids are the real ones.
#[test]
fn lines_of_both_sides_are_told_apart_without_a_recording() {
    for (name, bytes) in files() {
        if name == "cancel_from_host" || name == "control_response_missing_request_id" {
            // Who withdraws a request by nothing but its id, or answers without one, nobody can tell.
            continue;
        }
        let mut lines = String::new();
        let mut hosts = 0;
        for row in std::str::from_utf8(&bytes).unwrap().lines() {
            let row: serde_json::Value = serde_json::from_str(row).unwrap();
            let line = row["line"].as_str().unwrap();
            let known = !["frobnicate", "notype", "[1,2]", "keep_alive"]
                .iter()
                .any(|odd| line.contains(odd));
            let is_line = line.starts_with('{') && known;
            let is_line = is_line && serde_json::from_str::<serde_json::Value>(line).is_ok();
            if row["dir"] == "note" || !is_line {
                continue;
            }
            hosts += usize::from(row["dir"] == "in");
            lines.push_str(&real_ids(line));
            lines.push('\n');
        }
        let config = ObserverConfig {
            policy: Policy::CLAUDE,
        };
        let result = check_of::<Agentx>(config, lines.as_bytes(), From::Both, 1 << 16);
        let told = result.lines.iter().filter(|(dir, ..)| *dir == Dir::Host);
        assert_eq!(told.count(), hosts, "{name}");
        assert_eq!(result.errors(), [""; 0], "{name}");
    }
}

/// With UUIDs in the place of their numbers.
fn real_ids(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("<uuid-") {
        let (number, after) = after.split_once('>').unwrap();
        let number: u64 = number.parse().unwrap();
        out.push_str(before);
        out.push_str(&format!("00000000-0000-4000-8000-{number:012x}"));
        rest = after;
    }
    out.push_str(rest);
    out
}
