//! `turnwire check`.

use serde_json::{Value, json};

use crate::kit::{Done, Place, fixture};

const CHECK: [&str; 3] = ["check", "--protocol", "openmax"];

fn check(args: &[&str], input: &str) -> Done {
    Place::new().run(&[&CHECK, args].concat(), input)
}

/// The findings of a JSON result, and its summary.
#[track_caller]
fn read(done: &Done) -> (Vec<Value>, Value) {
    let mut lines = done.json();
    let summary = lines.pop().expect("a last line");
    assert!(summary["summary"].is_object(), "{summary}");
    (lines, summary["summary"].clone())
}

#[test]
fn om_32_a_stream_that_keeps_the_contract_gives_0() {
    let file = fixture("rules/openmax/OM-17.a.ok.jsonl");
    let done = check(&[&file], "");
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.stdout);
    assert!(
        done.stdout.contains("0 errors, 0 warnings"),
        "{}",
        done.stdout
    );
}

#[test]
fn om_32_a_violation_gives_1_and_is_shown_with_its_place() {
    let file = fixture("rules/openmax/OM-06.a.bad.jsonl");
    let done = check(&[&file], "");
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    for part in [
        "error[OM-06.a]",
        "OM-06.a.bad.jsonl:1:8",
        "1 | {\"cmd\":\"reboot\"}",
        "^^^^^^^^ cmd is one of the contract's",
        "a line of the host, at /cmd",
        "see openmax-stdio/6, Commands (stdin)",
        "1 error, 0 warnings",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(
        !done.stdout.contains('\x1b'),
        "no colours where nobody sees them"
    );
}

#[test]
fn every_rule_that_is_broken_gives_the_exit_code_of_its_severity() {
    // One of each severity.
    for (rule, code) in [("OM-01.a", 1), ("OM-01.d", 0), ("OM-08.a", 0)] {
        let file = fixture(&format!("rules/openmax/{rule}.bad.jsonl"));
        let done = check(&["--format", "json", &file], "");
        let (findings, _) = read(&done);
        assert!(
            findings.iter().any(|finding| finding["rule"] == rule),
            "{rule}: {}",
            done.stdout
        );
        assert_eq!(done.code, Some(code), "{rule}");
    }
}

#[test]
fn json_has_one_object_a_finding_and_a_last_one_with_the_summary() {
    let input = "{\"cmd\":\"user\",\"text\":\"hi\"}\n{\"cmd\":\"reboot\"}\n";
    let done = check(&["--format", "json", "-"], input);
    assert_eq!(done.code, Some(1));
    let (findings, summary) = read(&done);
    let [finding] = &findings[..] else {
        panic!("{findings:?}")
    };
    for (name, value) in [
        ("file", json!("stdin")),
        ("rule", json!("OM-06.a")),
        ("severity", json!("error")),
        ("dir", json!("in")),
        ("line", json!(2)),
        ("offset", json!(27)),
        ("pointer", json!("/cmd")),
        ("span", json!([7, 15])),
        ("related", json!([])),
    ] {
        assert_eq!(finding[name], value, "{name}");
    }
    assert!(finding["message"].as_str().unwrap().contains("command"));
    assert_eq!(
        (&summary["errors"], &summary["host_lines"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(summary["sides"], "host");
    let skipped = summary["skipped"].as_array().unwrap();
    assert!(
        skipped
            .iter()
            .any(|skipped| skipped["rule"] == "OM-01.a" && skipped["why"].is_string())
    );
}

#[test]
fn related_lines_are_named() {
    let file = fixture("rules/openmax/OM-02.a.bad.jsonl");
    let (findings, _) = read(&check(&["--format", "json", &file], ""));
    let finding = findings
        .iter()
        .find(|finding| finding["rule"] == "OM-02.a")
        .unwrap();
    let related = finding["related"][0].as_object().unwrap();
    for name in ["dir", "line", "offset", "what"] {
        assert!(related.contains_key(name), "{name}: {finding}");
    }
}

#[test]
fn a_recording_of_wire_5_is_clean_as_such_and_not_as_wire_6() {
    let file = fixture("transcripts/openmax/ask_approved.jsonl");
    assert_eq!(check(&["--wire", "5", &file], "").code, Some(0));
    let done = check(&["--format", "json", &file], "");
    assert_eq!(done.code, Some(1));
    let (findings, summary) = read(&done);
    assert!(
        findings
            .iter()
            .any(|finding| finding["rule"] == "OM-01.c" && finding["dir"] == "out")
    );
    assert_eq!(summary["turns"], 1);
}

#[test]
fn om_32_each_line_gets_its_verdict() {
    let input = "{\"cmd\":\"user\",\"text\":\"hi\"}\n\n{\"cmd\":\"reboot\"}\n";
    let done = check(&["--each"], input);
    assert!(
        done.stdout.contains("stdin:1: host: cmd user: ok\n"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("stdin:3: host: "), "{}", done.stdout);
    assert!(done.stdout.contains(": error\n"), "{}", done.stdout);
    let (lines, _) = read(&check(&["--each", "--format", "json"], input));
    let verdicts: Vec<&Value> = lines
        .iter()
        .filter(|line| line.get("verdict").is_some())
        .collect();
    assert_eq!(verdicts.len(), 2);
    assert_eq!(
        (&verdicts[0]["verdict"], &verdicts[0]["name"]),
        (&json!("ok"), &json!("user"))
    );
    assert_eq!(
        (&verdicts[1]["verdict"], &verdicts[1]["line"]),
        (&json!("error"), &json!(3))
    );
}

#[test]
fn what_the_program_itself_says_keeps_the_contract() {
    let place = Place::new();
    place.write("a.txt", "hello");
    let said = place.run(
        &["serve", "--protocol", "openmax"],
        "{\"cmd\":\"user\",\"text\":\"What is here?\"}\n{\"cmd\":\"quit\"}\n",
    );
    assert_eq!(said.code, Some(0));
    for from in [&[][..], &["--from", "agent"]] {
        let done = check(&[&["--format", "json"], from].concat(), &said.stdout);
        let (findings, summary) = read(&done);
        assert_eq!((findings, done.code), (vec![], Some(0)));
        assert_eq!(
            (&summary["turns"], &summary["tool_calls"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(summary["sides"], "agent");
    }
}

#[test]
fn both_directions_in_one_file_are_told_apart() {
    let input = [
        r#"{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}"#,
        r#"{"cmd":"user","text":"hi"}"#,
        r#"{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}"#,
        r#"{"session_id":"s","type":"token","text":"yes"}"#,
        r#"{"session_id":"s","type":"message_done","text":"yes"}"#,
        r#"{"session_id":"s","type":"done","stop_reason":"stop"}"#,
    ]
    .join("\n")
        + "\n";
    for from in [&[][..], &["--from", "both"]] {
        let done = check(&[&["--format", "json"], from].concat(), &input);
        let (findings, summary) = read(&done);
        assert_eq!((findings, done.code), (vec![], Some(0)));
        assert_eq!(summary["sides"], "both");
        assert_eq!(
            (&summary["host_lines"], &summary["agent_lines"]),
            (&json!(1), &json!(5))
        );
    }
    // Taken for the agent's alone, the host's line is wrong.
    let done = check(&["--from", "agent"], &input);
    assert_eq!(done.code, Some(1), "{}", done.stdout);
}

#[test]
fn several_files_are_checked_each_for_itself() {
    let good = fixture("rules/openmax/OM-17.a.ok.jsonl");
    let bad = fixture("rules/openmax/OM-06.a.bad.jsonl");
    let done = check(&["--format", "json", &good, &bad], "");
    assert_eq!(done.code, Some(1));
    let files: Vec<Value> = done
        .json()
        .iter()
        .filter(|line| line.get("summary").is_some())
        .map(|line| line["file"].clone())
        .collect();
    assert_eq!(files, [json!(good), json!(bad)]);
}

#[test]
fn what_cant_be_read_gives_2_and_the_rest_is_read() {
    let good = fixture("rules/openmax/OM-17.a.ok.jsonl");
    let done = check(&["nowhere.jsonl", &good], "");
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("nowhere.jsonl: No such file"),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("0 errors"), "{}", done.stdout);
    // A folder opens, and doesn't read.
    let done = check(&["."], "");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("directory"), "{}", done.stderr);
    // A row of a recording that is none.
    let rows = "{\"dir\":\"in\",\"t_ms\":1,\"line\":\"{\\\"cmd\\\":\\\"quit\\\"}\"}\nrubbish\n";
    let done = check(&[], rows);
    assert_eq!(done.code, Some(2), "{}", done.stdout);
    assert!(
        done.stdout
            .contains("row 2 of this recording can't be read"),
        "{}",
        done.stdout
    );
    let lines = check(&["--format", "json"], rows).json();
    assert!(
        lines
            .iter()
            .any(|line| line["line"] == 2 && line["bad_row"].is_string()),
        "{lines:?}"
    );
}

#[test]
fn unusable_arguments_give_2() {
    for args in [
        &["check"][..],
        &["check", "--protocol", "morse"],
        &["check", "--protocol", "openmax", "--wire", "4", "-"],
        &["check", "--protocol", "openmax", "--from", "nobody", "-"],
        &["check", "--protocol", "openmax", "--format", "poem", "-"],
    ] {
        let done = Place::new().run(args, "");
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn rubbish_of_any_kind_is_shown_and_not_obeyed() {
    let place = Place::new();
    let mut bytes = b"\x1b[31mred\x07\n\xff\xfe\n{\"cmd\":\"\\u001b[2J\"}\n".to_vec();
    bytes.extend(vec![b'x'; 300_000]);
    bytes.push(b'\n');
    let done = place.run(&[&CHECK[..], &["--from", "host"]].concat(), bytes);
    assert_eq!(done.code, Some(1));
    assert!(!done.stdout.contains(['\x1b', '\x07']), "{}", done.stdout);
    assert!(done.stdout.len() < 10_000, "long lines are cut");
}

#[test]
fn tw_10_memory_doesnt_grow_with_the_stream() {
    let place = Place::new();
    let line = format!("{{\"cmd\":\"user\",\"text\":\"{}\"}}\n", "x".repeat(1000));
    let mut running =
        crate::kit::Running::start(place.command(&[&CHECK[..], &["--from", "host", "-"]].concat()));
    let block = line.repeat(1000);
    let peak = |pid: u32| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    if !std::path::Path::new("/proc/self/status").exists() {
        return;
    }
    running.write(block.as_bytes());
    let before = peak(running.child.id());
    for _ in 0..40 {
        running.write(block.as_bytes());
    }
    let grown = peak(running.child.id()).saturating_sub(before);
    running.close();
    assert_eq!(running.wait().code, Some(0));
    assert!(grown < 8 * 1024, "{grown} KiB more for 40 MB more");
}

#[test]
fn omp_is_checked_in_files_and_in_plain_lines() {
    let place = Place::new();
    let file = fixture("rules/omp/OMP-03.c.bad.jsonl");
    let done = place.run(&["check", "--protocol", "omp", &file], "");
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    for part in [
        "error[OMP-03.c]",
        "see omp RPC, Prompt completion",
        "1 error, 0 warnings",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let file = fixture("transcripts/omp/05-two-tools-and-unknown-tool.jsonl");
    let done = place.run(&["check", "--protocol", "omp", &file], "");
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.stdout);
    let lines = "{\"id\":\"1\",\"type\":\"abort\"}\n{\"id\":\"2\",\"type\":\"reboot\"}\n";
    let done = place.run(&["check", "--protocol", "omp"], lines);
    assert!(done.stdout.contains("error[OMP-02.g]"), "{}", done.stdout);
}

#[test]
fn sp_04_sp_13_splice_is_checked_by_its_contract_and_as_its_known_agent() {
    let place = Place::new();
    let file = fixture("transcripts/splice/merge_back_conflict.jsonl");
    let done = place.run(&["check", "--protocol", "splice", &file], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("SP-04.c"), "{}", done.stdout);
    let done = place.run(&["check", "--protocol", "splice", "--original", &file], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!done.stdout.contains("[SP-"), "{}", done.stdout);
    for other in [["splice", "--wire", "2"], ["omp", "--original", "-"]] {
        let [protocol, flag, value] = other;
        let done = place.run(&["check", "--protocol", protocol, flag, value], "");
        assert_eq!(done.code, Some(2), "{protocol}");
    }
}

#[test]
fn openseek_is_checked_in_files_and_in_plain_lines() {
    let place = Place::new();
    let file = fixture("rules/openseek/OS-A09.a.bad.jsonl");
    let done = place.run(&["check", "--protocol", "openseek", &file], "");
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    for part in [
        "error[OS-A09.a]",
        "see openseek, Event",
        "1 error, 0 warnings",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let lines = "{\"command\":\"cancel\"}\n{\"command\":\"reboot\"}\n";
    let done = place.run(&["check", "--protocol", "openseek"], lines);
    assert!(done.stdout.contains("error[OS-03.c]"), "{}", done.stdout);
}

#[test]
fn a_wire_that_the_protocol_does_not_have_is_refused() {
    for (protocol, wire, code) in [
        ("openmax", "5", 0),
        ("openmax", "3", 2),
        ("omp", "1", 0),
        ("omp", "6", 2),
        ("openseek", "2", 0),
        ("openseek", "3", 2),
    ] {
        let done = Place::new().run(&["check", "--protocol", protocol, "--wire", wire], "");
        assert_eq!(done.code, Some(code), "{protocol} {wire}: {}", done.stderr);
    }
}
