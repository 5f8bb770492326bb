//! The shell tool.
#![cfg(unix)]
// To clippy only functions marked as tests are tests; what they share is not.
#![allow(clippy::expect_used, clippy::panic, clippy::wildcard_enum_match_arm)]

mod tools_support;

use std::time::{Duration, Instant};

use serde_json::json;
use tools_support::{bash, call, call_until, config, toolbox};
use turnwire::vocab::{ToolOutcome, ToolUpdate};
use turnwire_tokio::tools::{CancelToken, Toolbox, run, shell};

fn project() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[tokio::test]
async fn output_and_failure_have_the_wire_s_form() {
    let dir = project();
    let tools = toolbox(dir.path());
    for (command, text, code) in [
        ("echo one", "one\n", "0"),
        ("true", "", "0"),
        (
            "echo out; echo err >&2; exit 3",
            "exit code 3\nout\n\n[stderr]\nerr\n",
            "3",
        ),
        ("exit 4", "exit code 4", "4"),
        ("echo err >&2; exit 1", "exit code 1\n[stderr]\nerr\n", "1"),
        ("printf out; printf err >&2", "out\n\n[stderr]\nerr", "0"),
        ("nosuchcommand 2>/dev/null", "exit code 127", "127"),
    ] {
        let ended = bash(&tools, command).await;
        assert_eq!(ended.text, text, "{command}");
        assert_eq!(ended.meta("exit_code"), Some(code), "{command}");
        let outcome = if code == "0" {
            ToolOutcome::Ok
        } else {
            ToolOutcome::Failed
        };
        assert_eq!(ended.outcome, outcome, "{command}");
    }
    let ended = bash(&tools, "echo x; kill -9 $$").await;
    assert_eq!(ended.meta("signal"), Some("9"));
    assert_eq!(ended.failed(), "ended by signal 9\nx\n");
}

#[tokio::test]
async fn commands_run_in_the_project_without_input_or_terminal() {
    let dir = project();
    let tools = toolbox(dir.path());
    let root = tools.root().to_str().expect("utf-8").to_owned();
    assert_eq!(bash(&tools, "pwd").await.ok(), format!("{root}\n"));
    assert_eq!(bash(&tools, "cat; echo end").await.ok(), "end\n");
    assert_eq!(
        bash(&tools, "(: </dev/tty) 2>/dev/null || echo none")
            .await
            .ok(),
        "none\n"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_shell_leads_a_group_and_a_session() {
    let dir = project();
    let command = "echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)";
    let text = bash(&toolbox(dir.path()), command).await.ok();
    let ids: Vec<&str> = text.split_whitespace().collect();
    assert!(
        matches!(ids.as_slice(), [pid, group, session] if pid == group && pid == session),
        "{text}"
    );
}

#[tokio::test]
async fn the_environment_is_a_list_and_holds_no_key() {
    let dir = project();
    let mut config = config(dir.path());
    // Set for every test by cargo: one that is listed, one that isn't, and one that stands for a key.
    config.env = vec!["CARGO_PKG_NAME".into(), "CARGO_PKG_VERSION".into()];
    config.deny_env = vec!["CARGO_PKG_VERSION".into(), "EXTRA_API_KEY".into()];
    config.extra_env = vec![
        ("TURNWIRE_SESSION".into(), "s-1".into()),
        ("EXTRA_API_KEY".into(), "sk-secret".into()),
    ];
    assert!(
        std::env::var_os("CARGO_PKG_VERSION").is_some()
            && std::env::var_os("CARGO_MANIFEST_DIR").is_some()
    );
    let tools = Toolbox::new(config).expect("tools");
    let text = bash(&tools, "env").await.ok();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    for name in ["PATH", "CARGO_PKG_NAME", "TURNWIRE_SESSION"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for name in ["CARGO_PKG_VERSION", "CARGO_MANIFEST_DIR", "EXTRA_API_KEY"] {
        assert!(!names.contains(&name), "{name} in {names:?}");
    }
    assert!(!text.contains("sk-secret"));
}

#[tokio::test]
async fn output_is_bounded_at_exactly_the_limit() {
    let dir = project();
    let mut config = config(dir.path());
    config.output_limit = 1000;
    let tools = Toolbox::new(config).expect("tools");
    let fill = |n: usize, c: char, to: &str| format!("head -c {n} /dev/zero | tr '\\0' {c}{to}");

    let ended = bash(&tools, &fill(1000, 'o', "")).await;
    assert_eq!(
        (
            ended.text.len(),
            &ended.show.as_ref().expect("facts").truncated
        ),
        (1000, &false)
    );
    let ended = bash(&tools, &fill(1001, 'o', "")).await;
    assert!(ended.show.as_ref().expect("facts").truncated);
    let half = "o".repeat(500);
    assert_eq!(
        ended.ok(),
        format!("{half}\n[... 1 bytes left out ...]\n{half}")
    );

    // Two streams share the limit: what one doesn't need is the other's.
    let both = |out, err| format!("{}; {}", fill(out, 'o', ""), fill(err, 'e', " >&2"));
    let shown = |text: &str| {
        let marks = text.matches("bytes left out").count();
        let (out, err) = text.split_once("\n\n[stderr]\n").expect("both streams");
        let count = |text: &str, c| {
            text.lines()
                .filter(|l| l.chars().all(|d| d == c))
                .map(str::len)
                .sum::<usize>()
        };
        (count(out, 'o'), count(err, 'e'), marks)
    };
    for (out, err, want) in [
        (500, 500, (500, 500, 0)),
        (900, 100, (900, 100, 0)),
        (100, 900, (100, 900, 0)),
        (5000, 100, (900, 100, 1)),
        (100, 5000, (100, 900, 1)),
        (5000, 5000, (500, 500, 2)),
        (501, 500, (500, 500, 1)),
    ] {
        let text = bash(&tools, &both(out, err)).await.ok();
        assert_eq!(shown(&text), want, "{out} and {err}");
    }
}

#[tokio::test]
async fn a_timed_out_command_ends_with_all_its_children() {
    let dir = project();
    let tools = toolbox(dir.path());
    let start = Instant::now();
    let command =
        "trap '' TERM; echo begun; (trap '' TERM; sleep 3; echo x > late.txt) & sleep 60; wait";
    let ended = call(
        &tools,
        "bash",
        json!({"command": command, "timeout_seconds": 1}),
    )
    .await;
    assert!(
        start.elapsed() < Duration::from_millis(1000 + 500 + 2000),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(ended.outcome, ToolOutcome::TimedOut);
    assert_eq!(ended.text, "command timed out after 1 seconds\nbegun\n");
    tokio::time::sleep(Duration::from_secs(4).saturating_sub(start.elapsed())).await;
    assert!(!dir.path().join("late.txt").exists());
}

#[tokio::test]
async fn the_configured_times_hold() {
    let dir = project();
    let mut config = config(dir.path());
    config.default_timeout = Duration::from_millis(300);
    config.max_timeout = Duration::from_millis(600);
    let tools = Toolbox::new(config).expect("tools");
    let ended = bash(&tools, "sleep 30").await;
    assert_eq!(ended.outcome, ToolOutcome::TimedOut);
    assert_eq!(ended.text, "command timed out after 0.3 seconds");
    let ended = call(
        &tools,
        "bash",
        json!({"command": "sleep 30", "timeout_seconds": 20}),
    )
    .await;
    assert_eq!(ended.text, "command timed out after 0.6 seconds");
}

#[tokio::test]
async fn a_cancelled_command_may_say_last_words() {
    let dir = project();
    let tools = toolbox(dir.path());
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        stop.cancel();
    });
    let command = "exec 2>/dev/null; trap 'echo cleaned up; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let ended = call_until(&tools, "bash", json!({ "command": command }), cancel).await;
    assert_eq!(ended.outcome, ToolOutcome::Cancelled);
    assert_eq!(ended.text, "command cancelled by user\nbegun\ncleaned up\n");
}

#[tokio::test]
async fn what_is_left_behind_may_clean_up_before_it_is_killed() {
    let dir = project();
    let tools = toolbox(dir.path());
    let polite = "(trap 'echo bye > bye.txt; exit' TERM; : > ready; while :; do sleep 0.05; done) >/dev/null 2>&1 & \
                  while [ ! -e ready ]; do sleep 0.02; done; echo hi";
    assert_eq!(bash(&tools, polite).await.ok(), "hi\n");
    assert!(dir.path().join("bye.txt").exists());
    let stubborn = "(trap '' TERM; : > ready2; sleep 2; echo x > late.txt) >/dev/null 2>&1 & \
                    while [ ! -e ready2 ]; do sleep 0.02; done; echo hi";
    let start = Instant::now();
    assert_eq!(bash(&tools, stubborn).await.ok(), "hi\n");
    tokio::time::sleep(Duration::from_secs(3).saturating_sub(start.elapsed())).await;
    assert!(!dir.path().join("late.txt").exists());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_call_kills_its_group() {
    let dir = project();
    let tools = tools_support::marked(dir.path(), "dropped");
    let call = bash(&tools, "trap '' TERM; sleep 30 & sleep 30");
    assert!(
        tokio::time::timeout(Duration::from_millis(500), call)
            .await
            .is_err()
    );
    for _ in 0..100 {
        if tools_support::alive("dropped") == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} processes are left", tools_support::alive("dropped"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_zombie_stays() {
    let dir = project();
    let tools = toolbox(dir.path());
    let mut pids = Vec::new();
    for command in [
        "echo $$",
        "echo $$; exit 1",
        "echo $$; kill -9 $$",
        "sleep 30 & echo $$",
    ] {
        let text = bash(&tools, command).await.text;
        let pid = text
            .lines()
            .find_map(|line| line.parse::<u32>().ok())
            .expect("a process id");
        pids.push(pid);
    }
    let ended = call(
        &tools,
        "bash",
        json!({"command": "echo $$; sleep 30", "timeout_seconds": 1}),
    )
    .await;
    pids.push(
        ended
            .text
            .lines()
            .nth(1)
            .expect("output")
            .parse()
            .expect("a process id"),
    );
    for pid in pids {
        let folder = std::path::PathBuf::from(format!("/proc/{pid}"));
        assert_eq!(tools_support::state(&folder), None, "{pid}");
    }
}

#[tokio::test]
async fn progress_is_throttled_bounded_and_complete_for_slow_output() {
    let dir = project();
    let tools = toolbox(dir.path());
    let slow = "for i in 1 2 3 4; do echo line $i; echo err $i >&2; sleep 0.25; done";
    let ended = bash(&tools, slow).await;
    let progress = ended.progress();
    for i in 1..=4 {
        assert!(
            progress.contains(&format!("line {i}\n")) && progress.contains(&format!("err {i}\n")),
            "{progress}"
        );
    }
    // A flood: few updates, each small.
    let start = Instant::now();
    let ended = call(
        &tools,
        "bash",
        json!({"command": "yes flood", "timeout_seconds": 1}),
    )
    .await;
    let most = start.elapsed().as_millis() / 150 + 1;
    assert!(
        !ended.updates.is_empty() && (ended.updates.len() as u128) <= most,
        "{} updates",
        ended.updates.len()
    );
    assert!(ended.progress().len() <= ended.updates.len() * (16 * 1024 + 100));
    assert!(ended.text.len() <= 256 * 1024 + 100);
    // A quick command needs none.
    assert!(bash(&tools, "echo hi").await.updates.is_empty());
}

#[tokio::test]
async fn commands_run_side_by_side() {
    let dir = project();
    let tools = toolbox(dir.path());
    let start = Instant::now();
    let calls: Vec<_> = (0..8)
        .map(|n| {
            let tools = tools.clone();
            tokio::spawn(async move { bash(&tools, &format!("sleep 0.5; echo {n}")).await.ok() })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.expect("a call"), format!("{n}\n"));
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_shell_that_cannot_start_is_a_failed_call() {
    let dir = project();
    let mut config = config(dir.path());
    config.shell = "/nowhere/sh".into();
    let tools = Toolbox::new(config).expect("tools");
    let text = bash(&tools, "echo").await.failed();
    assert_eq!(
        text,
        "can't run the command with /nowhere/sh: no such file or directory"
    );
    // Nor can a command that is longer than the system takes.
    let long = format!("echo {}", "x".repeat(4 * 1024 * 1024));
    assert!(
        bash(&toolbox(dir.path()), &long)
            .await
            .failed()
            .starts_with("can't run the command with bash: ")
    );
    let ended = bash(&toolbox(dir.path()), "echo \0").await;
    assert_eq!(ended.outcome, ToolOutcome::Invalid);
}

#[tokio::test]
async fn a_vanished_project_is_a_failed_call() {
    let dir = project();
    let tools = toolbox(dir.path());
    drop(dir);
    let text = bash(&tools, "echo").await.failed();
    assert!(
        text.starts_with("can't run the command with bash: "),
        "{text}"
    );
    assert!(matches!(
        run(&tools, "list_dir", "{}", CancelToken::new(), |_| {}).await,
        ToolUpdate::Done {
            outcome: ToolOutcome::Failed,
            ..
        }
    ));
}

/// A command of the person's own: its outcome, what it wrote, its exit code, and whether something was left out.
async fn of_person(
    tools: &Toolbox,
    line: &str,
    cancel: CancelToken,
) -> (ToolOutcome, String, Option<i32>, bool) {
    match shell(tools, line, cancel, |_| {}).await {
        ToolUpdate::Done {
            outcome,
            content,
            show,
        } => {
            let text = content.iter().filter_map(|block| block.text()).collect();
            let show = show.unwrap_or_default();
            (outcome, text, show.exit_code(), show.truncated)
        }
        other => panic!("an end expected: {other:?}"),
    }
}

#[tokio::test]
async fn a_person_s_own_command_gives_what_it_wrote_and_nothing_else() {
    let dir = project();
    let mut config = config(dir.path());
    // Nobody but the person ends it.
    config.default_timeout = Duration::from_millis(1);
    config.output_limit = 10;
    let tools = Toolbox::new(config).expect("tools");
    let run = |line: &'static str| of_person(&tools, line, CancelToken::new());
    let cases = [
        (
            "echo out; sleep 0.1; echo err >&2",
            ToolOutcome::Ok,
            "out\nerr\n",
            0,
        ),
        ("sleep 0.1; exit 3", ToolOutcome::Failed, "", 3),
        ("", ToolOutcome::Ok, "", 0),
    ];
    for (line, outcome, text, code) in cases {
        assert_eq!(
            run(line).await,
            (outcome, text.into(), Some(code), false),
            "{line}"
        );
    }
    let (outcome, text, code, cut) = run("echo 0123456789abcdef").await;
    assert_eq!((outcome, code, cut), (ToolOutcome::Ok, Some(0), true));
    assert!(
        text.starts_with("01234") && text.ends_with("cdef\n"),
        "{text}"
    );
    let (outcome, text, code, _) = run("a\0b").await;
    assert_eq!((outcome, code), (ToolOutcome::Invalid, None));
    assert!(text.contains("NUL"), "{text}");
}

#[tokio::test]
async fn a_person_s_own_command_that_is_cancelled_keeps_its_output() {
    let dir = project();
    let tools = toolbox(dir.path());
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        stop.cancel();
    });
    let line = "echo begun; sleep 30";
    let (outcome, text, _, _) = of_person(&tools, line, cancel).await;
    assert_eq!(
        (outcome, text.as_str()),
        (ToolOutcome::Cancelled, "begun\n")
    );
}
