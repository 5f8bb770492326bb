//! The recordings of the real omp: the observer finds what its documents say differs, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;
use crate::omp_kit;

use observer_kit::{Report, check_of};
use omp_kit::files;
use turnwire::check::From;
use turnwire::protocol::observer::{Dir, Severity};
use turnwire::protocol::omp::{Generation, ObserverConfig, Omp};

fn check(bytes: &[u8], generation: Generation) -> Report {
    check_of::<Omp>(ObserverConfig { generation }, bytes, From::Guess, 1 << 16)
}

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
fn no_line_of_the_agent_is_wrong_and_only_known_differences_are_told() {
    for (name, bytes) in files() {
        let result = check(&bytes, Generation::G3);
        let expected: &[&str] = match &*name {
            // An update behind the end of its tool.
            "10-abort-during-tool" => &["OMP-03.i info"],
            // No messageId, no yielded, an unknown command's response without its id.
            "v18.2.3-text-abort-unknown" => &["OMP-17.g info", "OMP-17.g info", "OMP-02.a info"],
            _ => &[],
        };
        assert_eq!(on_agent(&result), expected, "{name}");
        assert_eq!(result.bad_rows, [0; 0], "{name}");
        let rest: Vec<&str> = match &*name {
            "10-abort-during-tool" => vec!["OMP-03.i info"],
            _ => vec![],
        };
        assert_eq!(on_agent(&check(&bytes, Generation::G1)), rest, "{name}");
    }
}

#[test]
fn what_hosts_did_wrong_on_purpose_is_found() {
    let expected: &[(&str, &[&str])] = &[
        ("08-follow-up-and-queued-prompts", &["OMP-05.a"]),
        ("12-provider-errors", &["OMP-05.a"]),
        (
            "15-errors-and-edge-inputs",
            &[
                "OMP-02.f", "OMP-02.f", "OMP-02.f", "OMP-02.f", "OMP-02.f", "OMP-02.g", "OMP-02.e",
                "OMP-02.g", "OMP-02.g", "OMP-02.h", "OMP-02.h", "OMP-06.a", "OMP-02.h", "OMP-13.a",
                "OMP-02.g", "OMP-02.g", "OMP-02.g",
            ],
        ),
        ("27-no-id-and-duplicate-id", &["OMP-02.e"]),
        (
            "37-inbound-framing-edges",
            &[
                "OMP-02.f", "OMP-02.f", "OMP-02.f", "OMP-02.f", "OMP-02.e", "OMP-02.e", "OMP-02.g",
                "OMP-02.g",
            ],
        ),
        ("v18.2.3-text-abort-unknown", &["OMP-05.a", "OMP-02.g"]),
    ];
    for (name, bytes) in files() {
        let result = check(&bytes, Generation::G3);
        let of_hosts = result
            .findings
            .iter()
            .filter(|finding| finding.dir == Dir::Host);
        let found: Vec<&str> = of_hosts.map(|finding| finding.rule.id).collect();
        let want = expected.iter().find(|(known, _)| *known == name);
        assert_eq!(found, want.map_or(&[][..], |(_, ids)| ids), "{name}");
        // The agent was right to refuse, or to bear it.
        let worst = result.findings.iter().map(|finding| finding.severity).max();
        assert!(worst <= Some(Severity::Info), "{name}");
    }
}

#[test]
fn the_agent_alone_is_judged_without_what_needs_the_host() {
    for (name, bytes) in files() {
        let rows: Vec<&str> = std::str::from_utf8(&bytes)
            .unwrap()
            .lines()
            .filter(|row| !row.contains("\"dir\": \"in\""))
            .collect();
        let result = check(rows.join("\n").as_bytes(), Generation::G3);
        let worst = result.findings.iter().map(|finding| finding.severity).max();
        assert!(worst <= Some(Severity::Info), "{name}: {:?}", result.ids());
        let skipped: Vec<&str> = result
            .summary
            .skipped
            .iter()
            .map(|(rule, _)| rule.id)
            .collect();
        assert!(
            skipped.contains(&"OMP-02.a") && skipped.contains(&"OMP-18.a"),
            "{name}"
        );
        assert!(!skipped.contains(&"OMP-17.e"), "{name}");
    }
}

#[test]
fn lines_of_both_sides_are_told_apart_without_a_recording() {
    for (name, rows) in omp_kit::recordings() {
        let mut lines = Vec::new();
        let mut hosts = 0;
        for row in rows {
            match row {
                omp_kit::Row::Host(line)
                    if line.starts_with("{\"") && line.contains("\"type\":\"") =>
                {
                    hosts += 1;
                    lines.push(line);
                }
                omp_kit::Row::Agent(line) => lines.push(line),
                omp_kit::Row::Host(_) | omp_kit::Row::HostEnd | omp_kit::Row::Exit(_) => {}
            }
        }
        let known = |line: &&String| {
            !["nope", "no_such", "__proto__", "not json", "rpc_chunk"]
                .iter()
                .any(|word| line.contains(word))
        };
        if !lines.iter().all(|line| known(&line)) {
            continue;
        }
        let bytes = lines.join("\n");
        let config = ObserverConfig::default();
        let result = check_of::<Omp>(config, bytes.as_bytes(), From::Both, 1 << 16);
        let told = result
            .lines
            .iter()
            .filter(|(dir, ..)| *dir == Dir::Host)
            .count();
        assert_eq!(told, hosts, "{name}");
    }
}

#[test]
fn however_the_bytes_are_cut_the_same_is_found() {
    for (name, bytes) in files() {
        if bytes.len() > 100_000 {
            continue;
        }
        let whole = check(&bytes, Generation::G3);
        for size in [7, 4096] {
            let config = ObserverConfig::default();
            let cut = check_of::<Omp>(config, &bytes, From::Guess, size);
            assert_eq!(cut.findings, whole.findings, "{name} {size}");
            assert_eq!(cut.lines, whole.lines, "{name} {size}");
            assert_eq!(cut.summary, whole.summary, "{name} {size}");
        }
    }
}
