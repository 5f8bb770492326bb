//! The shell tool: what a command's output becomes, and that nothing of it is left.

use std::time::{Duration, Instant};

use serde_json::json;
use turnwire::vocab::{ToolOutcome, ToolUpdate};
use turnwire_io::tools::Toolbox;

use crate::tool::{bash, call, call_until, config, toolbox};
use crate::{Cancel, Driver, tool};

fn project() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Output and failure have the wire s form.
pub fn output_and_failure_have_the_wire_s_form<D: Driver>() {
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
        let ended = bash::<D>(&tools, command);
        assert_eq!(ended.text, text, "{command}");
        assert_eq!(ended.meta("exit_code"), Some(code), "{command}");
        let outcome = if code == "0" {
            ToolOutcome::Ok
        } else {
            ToolOutcome::Failed
        };
        assert_eq!(ended.outcome, outcome, "{command}");
    }
    let ended = bash::<D>(&tools, "echo x; kill -9 $$");
    assert_eq!(ended.meta("signal"), Some("9"));
    assert_eq!(ended.failed(), "ended by signal 9\nx\n");
}

/// Commands run in the project without input or terminal.
pub fn commands_run_in_the_project_without_input_or_terminal<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let root = tools.root().to_str().expect("utf-8").to_owned();
    assert_eq!(bash::<D>(&tools, "pwd").ok(), format!("{root}\n"));
    assert_eq!(bash::<D>(&tools, "cat; echo end").ok(), "end\n");
    assert_eq!(
        bash::<D>(&tools, "(: </dev/tty) 2>/dev/null || echo none").ok(),
        "none\n"
    );
}

#[cfg(target_os = "linux")]
/// The shell leads a group and a session.
pub fn the_shell_leads_a_group_and_a_session<D: Driver>() {
    let dir = project();
    let command = "echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)";
    let text = bash::<D>(&toolbox(dir.path()), command).ok();
    let ids: Vec<&str> = text.split_whitespace().collect();
    assert!(
        matches!(ids.as_slice(), [pid, group, session] if pid == group && pid == session),
        "{text}"
    );
}

/// The environment is a list and holds no key.
pub fn the_environment_is_a_list_and_holds_no_key<D: Driver>() {
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
    let text = bash::<D>(&tools, "env").ok();
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

/// Output is bounded at exactly the limit.
pub fn output_is_bounded_at_exactly_the_limit<D: Driver>() {
    let dir = project();
    let mut config = config(dir.path());
    config.output_limit = 1000;
    let tools = Toolbox::new(config).expect("tools");
    let fill = |n: usize, c: char, to: &str| format!("head -c {n} /dev/zero | tr '\\0' {c}{to}");

    let ended = bash::<D>(&tools, &fill(1000, 'o', ""));
    assert_eq!(
        (
            ended.text.len(),
            &ended.show.as_ref().expect("facts").truncated
        ),
        (1000, &false)
    );
    let ended = bash::<D>(&tools, &fill(1001, 'o', ""));
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
        let text = bash::<D>(&tools, &both(out, err)).ok();
        assert_eq!(shown(&text), want, "{out} and {err}");
    }
}

/// A timed out command ends with all its children.
pub fn a_timed_out_command_ends_with_all_its_children<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let start = Instant::now();
    let command =
        "trap '' TERM; echo begun; (trap '' TERM; sleep 3; echo x > late.txt) & sleep 60; wait";
    let ended = call::<D>(
        &tools,
        "bash",
        json!({"command": command, "timeout_seconds": 1}),
    );
    assert!(
        start.elapsed() < Duration::from_millis(1000 + 500 + 2000),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(ended.outcome, ToolOutcome::TimedOut);
    assert_eq!(ended.text, "command timed out after 1 seconds\nbegun\n");
    std::thread::sleep(Duration::from_secs(4).saturating_sub(start.elapsed()));
    assert!(!dir.path().join("late.txt").exists());
}

/// The configured times hold.
pub fn the_configured_times_hold<D: Driver>() {
    let dir = project();
    let mut config = config(dir.path());
    config.default_timeout = Duration::from_millis(300);
    config.max_timeout = Duration::from_millis(600);
    let tools = Toolbox::new(config).expect("tools");
    let ended = bash::<D>(&tools, "sleep 30");
    assert_eq!(ended.outcome, ToolOutcome::TimedOut);
    assert_eq!(ended.text, "command timed out after 0.3 seconds");
    let ended = call::<D>(
        &tools,
        "bash",
        json!({"command": "sleep 30", "timeout_seconds": 20}),
    );
    assert_eq!(ended.text, "command timed out after 0.6 seconds");
}

/// A cancelled command may say last words.
pub fn a_cancelled_command_may_say_last_words<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let cancel = Cancel::after(Duration::from_millis(400));
    let command = "exec 2>/dev/null; trap 'echo cleaned up; exit 0' TERM; echo begun; while :; do sleep 0.05; done";
    let ended = call_until::<D>(&tools, "bash", json!({ "command": command }), &cancel);
    assert_eq!(ended.outcome, ToolOutcome::Cancelled);
    assert_eq!(ended.text, "command cancelled by user\nbegun\ncleaned up\n");
}

/// What is left behind may clean up before it is killed.
pub fn what_is_left_behind_may_clean_up_before_it_is_killed<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let polite = "(trap 'echo bye > bye.txt; exit' TERM; : > ready; while :; do sleep 0.05; done) >/dev/null 2>&1 & \
                  while [ ! -e ready ]; do sleep 0.02; done; echo hi";
    assert_eq!(bash::<D>(&tools, polite).ok(), "hi\n");
    assert!(dir.path().join("bye.txt").exists());
    let stubborn = "(trap '' TERM; : > ready2; sleep 2; echo x > late.txt) >/dev/null 2>&1 & \
                    while [ ! -e ready2 ]; do sleep 0.02; done; echo hi";
    let start = Instant::now();
    assert_eq!(bash::<D>(&tools, stubborn).ok(), "hi\n");
    std::thread::sleep(Duration::from_secs(3).saturating_sub(start.elapsed()));
    assert!(!dir.path().join("late.txt").exists());
}

#[cfg(target_os = "linux")]
/// No zombie stays.
pub fn no_zombie_stays<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let mut pids = Vec::new();
    for command in [
        "echo $$",
        "echo $$; exit 1",
        "echo $$; kill -9 $$",
        "sleep 30 & echo $$",
    ] {
        let text = bash::<D>(&tools, command).text;
        let pid = text
            .lines()
            .find_map(|line| line.parse::<u32>().ok())
            .expect("a process id");
        pids.push(pid);
    }
    let ended = call::<D>(
        &tools,
        "bash",
        json!({"command": "echo $$; sleep 30", "timeout_seconds": 1}),
    );
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
        assert_eq!(tool::state(&folder), None, "{pid}");
    }
}

/// Progress is throttled bounded and complete for slow output.
pub fn progress_is_throttled_bounded_and_complete_for_slow_output<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let slow = "for i in 1 2 3 4; do echo line $i; echo err $i >&2; sleep 0.25; done";
    let ended = bash::<D>(&tools, slow);
    let progress = ended.progress();
    for i in 1..=4 {
        assert!(
            progress.contains(&format!("line {i}\n")) && progress.contains(&format!("err {i}\n")),
            "{progress}"
        );
    }
    // A flood: few updates, each small.
    let start = Instant::now();
    let ended = call::<D>(
        &tools,
        "bash",
        json!({"command": "yes flood", "timeout_seconds": 1}),
    );
    let most = start.elapsed().as_millis() / 150 + 1;
    assert!(
        !ended.updates.is_empty() && (ended.updates.len() as u128) <= most,
        "{} updates",
        ended.updates.len()
    );
    assert!(ended.progress().len() <= ended.updates.len() * (16 * 1024 + 100));
    assert!(ended.text.len() <= 256 * 1024 + 100);
    // A quick command needs none.
    assert!(bash::<D>(&tools, "echo hi").updates.is_empty());
}

/// Commands run side by side.
pub fn commands_run_side_by_side<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let start = Instant::now();
    let calls: Vec<_> = (0..8)
        .map(|n| {
            let tools = tools.clone();
            std::thread::spawn(move || bash::<D>(&tools, &format!("sleep 0.5; echo {n}")).ok())
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.join().expect("a call"), format!("{n}\n"));
    }
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}

/// A shell that cannot start is a failed call.
pub fn a_shell_that_cannot_start_is_a_failed_call<D: Driver>() {
    let dir = project();
    let mut config = config(dir.path());
    config.shell = "/nowhere/sh".into();
    let tools = Toolbox::new(config).expect("tools");
    let text = bash::<D>(&tools, "echo").failed();
    assert_eq!(
        text,
        "can't run the command with /nowhere/sh: no such file or directory"
    );
    // Nor can a command that is longer than the system takes.
    let long = format!("echo {}", "x".repeat(4 * 1024 * 1024));
    assert!(
        bash::<D>(&toolbox(dir.path()), &long)
            .failed()
            .starts_with("can't run the command with bash: ")
    );
    let ended = bash::<D>(&toolbox(dir.path()), "echo \0");
    assert_eq!(ended.outcome, ToolOutcome::Invalid);
}

/// A vanished project is a failed call.
pub fn a_vanished_project_is_a_failed_call<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    drop(dir);
    let text = bash::<D>(&tools, "echo").failed();
    assert!(
        text.starts_with("can't run the command with bash: "),
        "{text}"
    );
    assert!(matches!(
        D::tool(&tools, "list_dir", "{}", &Cancel::never(), &mut |_| {}),
        ToolUpdate::Done {
            outcome: ToolOutcome::Failed,
            ..
        }
    ));
}

/// A command of the person's own: its outcome, what it wrote, its exit code, and whether something was left out.
fn of_person<D: Driver>(
    tools: &Toolbox,
    line: &str,
    cancel: &Cancel,
) -> (ToolOutcome, String, Option<i32>, bool) {
    match D::shell(tools, line, cancel) {
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

/// A person's own command gives what it wrote and nothing else.
pub fn a_person_s_own_command_gives_what_it_wrote_and_nothing_else<D: Driver>() {
    let dir = project();
    let mut config = config(dir.path());
    // Nobody but the person ends it.
    config.default_timeout = Duration::from_millis(1);
    config.output_limit = 10;
    let tools = Toolbox::new(config).expect("tools");
    let run = |line: &'static str| of_person::<D>(&tools, line, &Cancel::never());
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
            run(line),
            (outcome, text.into(), Some(code), false),
            "{line}"
        );
    }
    let (outcome, text, code, cut) = run("echo 0123456789abcdef");
    assert_eq!((outcome, code, cut), (ToolOutcome::Ok, Some(0), true));
    assert!(
        text.starts_with("01234") && text.ends_with("cdef\n"),
        "{text}"
    );
    let (outcome, text, code, _) = run("a\0b");
    assert_eq!((outcome, code), (ToolOutcome::Invalid, None));
    assert!(text.contains("NUL"), "{text}");
}

/// A person's own command that is cancelled keeps its output.
pub fn a_person_s_own_command_that_is_cancelled_keeps_its_output<D: Driver>() {
    let dir = project();
    let tools = toolbox(dir.path());
    let cancel = Cancel::after(Duration::from_millis(400));
    let line = "echo begun; sleep 30";
    let (outcome, text, _, _) = of_person::<D>(&tools, line, &cancel);
    assert_eq!(
        (outcome, text.as_str()),
        (ToolOutcome::Cancelled, "begun\n")
    );
}
