//! The subprocess cases from the field, P01 to P04.
#![cfg(unix)]
// To clippy only functions marked as tests are tests; what they share is not.
#![allow(clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod tools_support;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
#[cfg(target_os = "linux")]
use tools_support::{alive, marked};
use tools_support::{bash, call_until, toolbox};
use turnwire::vocab::ToolOutcome;
use turnwire_tokio::tools::CancelToken;

/// What the cases give a call to return in.
const PROMPTLY: Duration = Duration::from_secs(3);

/// A case by the start of its id. A missing file fails the test.
fn case(id: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../proptests/fixtures/cases.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a case"))
        .find(|case| {
            case["id"]
                .as_str()
                .is_some_and(|found| found.starts_with(id))
        })
        .unwrap_or_else(|| panic!("no case {id}"))
}

/// The commands of a case with the row that each is expected to give.
fn rows(case: &Value) -> Vec<(String, Value)> {
    let commands = case["commands"].as_array().expect("commands");
    let rows = case["expect"]["data"]["rows"].as_array().expect("rows");
    assert!(!commands.is_empty());
    assert_eq!(commands.len(), rows.len());
    commands
        .iter()
        .zip(rows)
        .map(|(c, r)| (c.as_str().expect("a command").to_owned(), r.clone()))
        .collect()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn p01_a_grandchild_that_keeps_the_pipe_delays_nothing() {
    for (n, (command, row)) in rows(&case("P01")).into_iter().enumerate() {
        let dir = tempfile::tempdir().expect("a folder");
        let name = format!("p01-{n}");
        let tools = marked(dir.path(), &name);
        let start = Instant::now();
        let ended = bash(&tools, &command).await;
        assert!(
            start.elapsed() < PROMPTLY,
            "{command}: {:?}",
            start.elapsed()
        );
        assert_eq!(ended.outcome, ToolOutcome::Ok, "{command}: {}", ended.text);
        assert_eq!(ended.text, row["stdout"], "{command}");
        assert_eq!(ended.meta("exit_code"), Some("0"));
        // What stayed in the group is gone with the call; `setsid` leaves the group by intent.
        let left = alive(&name);
        assert_eq!(left, usize::from(command.contains("setsid")), "{command}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn p02_cancel_ends_the_whole_tree() {
    let case = case("P02");
    let after = Duration::from_millis(case["cancel_after_ms"].as_u64().expect("a time"));
    let mut calls = Vec::new();
    for (n, command) in case["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .enumerate()
    {
        let command = command.clone();
        calls.push(tokio::spawn(async move {
            let dir = tempfile::tempdir().expect("a folder");
            let name = format!("p02-{n}");
            let tools = marked(dir.path(), &name);
            let cancel = CancelToken::new();
            let stop = cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                stop.cancel();
            });
            let start = Instant::now();
            let ended = call_until(
                &tools,
                "bash",
                serde_json::json!({ "command": command }),
                cancel,
            )
            .await;
            // Grace is half a second here.
            let limit = after + Duration::from_millis(500) + Duration::from_secs(2);
            assert!(start.elapsed() < limit, "{command}: {:?}", start.elapsed());
            assert_eq!(ended.outcome, ToolOutcome::Cancelled, "{command}");
            assert_eq!(
                ended.text, "command cancelled by user\nbegun\n",
                "{command}"
            );
            assert_eq!(ended.progress(), "begun\n", "{command}");
            assert_eq!(alive(&name), 0, "{command}");
            // The file would be written five seconds after the start.
            tokio::time::sleep(Duration::from_millis(6500).saturating_sub(start.elapsed())).await;
            assert!(!dir.path().join("late.txt").exists(), "{command}");
        }));
    }
    assert_eq!(calls.len(), 3);
    for call in calls {
        call.await.expect("no assertion fails");
    }
}

#[tokio::test]
async fn p03_stderr_is_read_beside_stdout() {
    for (command, row) in rows(&case("P03")) {
        let dir = tempfile::tempdir().expect("a folder");
        let tools = toolbox(dir.path());
        let start = Instant::now();
        let ended = bash(&tools, &command).await;
        assert!(
            start.elapsed() < PROMPTLY,
            "{command}: {:?}",
            start.elapsed()
        );
        assert_eq!(ended.outcome, ToolOutcome::Ok, "{command}");
        let (out, err) = ended.text.split_once("\n[stderr]\n").expect("both streams");
        assert!(
            out.ends_with(row["stdout_tail"].as_str().expect("a tail")),
            "{command}"
        );
        assert!(
            err.ends_with('e') || err.ends_with("err19999\n"),
            "{command}"
        );
        // Within the limit but for the two marks and the heading.
        assert!(
            ended.text.len() <= 256 * 1024 + 200,
            "{command}: {}",
            ended.text.len()
        );
    }
}

#[tokio::test]
async fn p04_output_that_is_not_utf8_is_marked() {
    let invalid = [Some("true"), None, Some("true")];
    for ((command, row), invalid) in rows(&case("P04")).into_iter().zip(invalid) {
        let dir = tempfile::tempdir().expect("a folder");
        let ended = bash(&toolbox(dir.path()), &command).await;
        assert_eq!(ended.meta("invalid_utf8"), invalid, "{command}");
        let text = ended.ok();
        for part in row["contains"].as_array().into_iter().flatten() {
            assert!(
                text.contains(part.as_str().expect("text")),
                "{command}: {text:?}"
            );
        }
        if let Some(equal) = row["equals"].as_str() {
            assert_eq!(text, equal, "{command}");
        }
        assert_eq!(
            text.contains('\u{fffd}'),
            invalid.is_some(),
            "{command}: {text:?}"
        );
    }
}

#[tokio::test]
async fn p04_progress_has_whole_characters() {
    let dir = tempfile::tempdir().expect("a folder");
    let command = "printf 'x\\303'; sleep 0.4; printf '\\251\\n'; sleep 0.4";
    let ended = bash(&toolbox(dir.path()), command).await;
    assert_eq!(ended.progress(), "xé\n");
    assert_eq!(ended.ok(), "xé\n");
}
