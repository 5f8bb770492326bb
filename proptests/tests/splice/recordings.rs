//! The recordings of the known agent, release 0.1.4: each line is read and written again byte for byte, and the observer
//! finds in them what is known to differ from the contract, and nothing else.

use std::collections::BTreeSet;

use serde_json::Value;
use turnwire::check::{Check, Checked, From};
use turnwire::json::Members;
use turnwire::protocol::observer::{Dir, Finding, Severity};
use turnwire::protocol::splice::wire::{Event, Marker};
use turnwire::protocol::splice::{ObserverConfig, Splice};
use turnwire_proptests::fuzz::models::splice_agent_again;

use crate::{Recording, recordings};

#[test]
fn sp_a12_every_recorded_line_is_written_again_byte_for_byte() {
    let mut seen = BTreeSet::new();
    for recording in recordings() {
        for line in &recording.agent {
            let mut members = Members::new();
            let event = Event::read(line.as_bytes(), &mut members)
                .unwrap_or_else(|fault| panic!("{}: {line}: {fault}", recording.name));
            let mut out = Vec::new();
            event.encode(&mut out);
            let mut written = String::from_utf8(out).unwrap();
            // Names of folders that whoever recorded put in their places.
            for name in ["WORKSPACE", "WORKTREE_DIR", "WORKTREE", "TMP", "TOOL LIST"] {
                let escaped = format!("\\u003c{name}\\u003e");
                written = written.replace(&escaped, &format!("<{name}>"));
            }
            assert_eq!(written, *line, "{}", recording.name);
            seen.insert(event.tag().expect("every type is known"));
            assert_eq!(splice_agent_again(line.as_bytes()), Some(Ok(())));
            let read: Value = serde_json::from_str(line).unwrap();
            let delta = read["delta"].as_str().unwrap_or_default();
            if read["type"] == "reasoning" && delta.starts_with('\0') {
                let written = Marker::read(delta).unwrap().write();
                assert_eq!(Marker::read(&written), Marker::read(delta));
            }
        }
    }
    let never = ["permission_request", "permission", "restore"];
    let all: BTreeSet<&str> = Event::TAGS.iter().copied().collect();
    assert_eq!(
        seen,
        all.into_iter().filter(|tag| !never.contains(tag)).collect()
    );
}

fn checked(recording: &Recording, original: bool, with_exit: bool) -> Vec<Finding> {
    let mut bytes = recording.bytes.clone();
    if with_exit {
        let row = serde_json::json!({"dir": "exit", "t_ms": 99_999, "code": recording.exit});
        bytes.extend_from_slice(format!("{row}\n").as_bytes());
    }
    let mut check = Check::<Splice>::new(ObserverConfig { original }, From::Guess);
    let mut findings = Vec::new();
    let mut sink = |checked: Checked<'_>| {
        if let Checked::Finding { finding, .. } = checked {
            findings.push(finding);
        }
    };
    check.read(&bytes, &mut sink);
    check.end(&mut sink);
    findings
}

#[test]
fn sp_04_sp_13_sp_a02_of_the_known_agent_no_line_is_wrong() {
    for recording in recordings() {
        for with_exit in [false, true] {
            let found: Vec<String> = checked(&recording, true, with_exit)
                .iter()
                .filter(|finding| finding.dir == Dir::Agent)
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, [""; 0], "{}", recording.name);
        }
    }
}

#[test]
fn sp_04_sp_12_without_that_only_the_known_differences_are_found() {
    for recording in recordings() {
        let found: Vec<String> = checked(&recording, false, true)
            .iter()
            .filter(|finding| finding.dir == Dir::Agent)
            .map(|finding| format!("{} {}", finding.rule.id, finding.severity))
            .collect();
        let expected: &[&str] = match recording.name.as_str() {
            // The stream has no end.
            "merge_back_conflict" | "merge_back_dirty" => &["SP-04.c error"],
            // A key is cut over two lines.
            "secret" => &["SP-12.b warning"],
            _ => &[],
        };
        assert_eq!(found, expected, "{}", recording.name);
    }
}

#[test]
fn sp_02_sp_a01_what_the_host_did_wrong_is_found_and_excused() {
    for recording in recordings() {
        let found = checked(&recording, true, true);
        let host: Vec<&Finding> = found
            .iter()
            .filter(|finding| finding.dir == Dir::Host)
            .collect();
        if recording.name.starts_with("invalid/") {
            assert_eq!(host.len(), 1, "{}: {host:?}", recording.name);
        } else {
            assert!(host.is_empty(), "{}: {host:?}", recording.name);
        }
        // The agent was right to refuse.
        assert!(
            host.iter()
                .all(|finding| finding.severity == Severity::Info)
        );
    }
}
