//! `turnwire drive` and `turnwire demo`, without a terminal.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{Place, Running};

const WRITE: &str = r#"
reply when step 1
  think: It wants a file.
  say: I'll write it.
  call write_file {"path": "out.txt", "content": "one\ntwo\n"}
reply when step 2
  say: Done with {prompt}.
"#;

/// Lines of an agent that a shell script writes.
const HELLO: &str = r#"echo '{"type":"hello","proto":"openmax-stdio/6","protocol_version":6,"session_id":"s","version":"1","project":"/p","continued":false}'
read -r user
echo '{"session_id":"s","type":"budget","used_tokens":1,"context_tokens":9}'
echo '{"session_id":"s","type":"token","text":"Half a sen"}'
"#;
const DONE: &str = r#"
echo '{"session_id":"s","type":"message_done","text":"Half a sen"}'
echo '{"session_id":"s","type":"done","stop_reason":"stop"}'
read -r quit
"#;

fn events<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == name).collect()
}

#[test]
fn the_demo_shows_a_whole_turn() {
    let place = Place::new();
    place.write("notes.txt", "");
    for args in [&["demo"][..], &["demo", "openmax", "Anything here?"]] {
        let done = place.run(args, "");
        assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
        for part in [
            "Let me look at this folder first.\n",
            "● list_dir {\"path\": \".\"}\n  ✓ ok\n    notes.txt\n",
            "I listed the current folder. Lines that came back: 1.",
            "finished: stop",
        ] {
            assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
        }
        assert!(!done.stdout.contains('\x1b'));
    }
    let lines = place.run(&["demo", "--json"], "").json();
    assert_eq!(lines.last().unwrap()["event"], "exit");
}

#[test]
fn the_demo_speaks_omp_too() {
    let place = Place::new();
    place.write("notes.txt", "");
    let done = place.run(&["demo", "omp"], "");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    for part in [
        "● list_dir {\"path\": \".\"}\n  ✓ ok\n    notes.txt\n",
        "I listed the current folder. Lines that came back: 1.",
        "finished: stop",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let lines = place.run(&["demo", "omp", "--json"], "").json();
    assert_eq!(events(&lines, "finding"), [] as [&Value; 0]);
    assert_eq!(events(&lines, "prompt_ended")[0]["end"], "finished");
    assert_eq!(events(&lines, "settled").len(), 1);
}

#[test]
fn the_demo_speaks_agentx_and_claude_too() {
    for protocol in ["agentx", "claude"] {
        let place = Place::new();
        let lines = place.run(&["demo", protocol, "--json"], "").json();
        let opened = events(&lines, "opened");
        assert!(opened[0]["product"].as_str().unwrap().starts_with(protocol));
        assert_eq!(events(&lines, "finding"), [] as [&Value; 0]);
        assert_eq!(events(&lines, "tool_ended")[0]["ok"], true);
        assert_eq!(events(&lines, "prompt_ended")[0]["end"], "finished");
        assert_eq!(events(&lines, "settled").len(), 1);
    }
}

#[test]
fn only_claude_is_told_anything_as_it_is_greeted() {
    let place = Place::new();
    let drive = |protocol, json| {
        let args = ["drive", protocol, "--initialize", json, "hi", "--", "false"];
        place.run(&args, "")
    };
    for (protocol, json) in [("omp", "{}"), ("agentx", "{}"), ("claude", "[]")] {
        let done = drive(protocol, json);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
    }
    assert_ne!(drive("claude", "{\"title\":\"t\"}").code, Some(2));
}

/// An omp of the oldest sort, as a shell script: it answers what it is asked for at the start, and one prompt.
fn old_omp(stop: &str) -> String {
    format!(
        r#"echo '{{"type":"ready","protocolVersion":1}}'
read -r filter
echo '{{"type":"response","command":"set_event_filter","success":false,"error":"Unknown command: set_event_filter"}}'
read -r subscription
echo '{{"id":"i2","type":"response","command":"set_subagent_subscription","success":true,"data":{{"level":"progress"}}}}'
read -r state
echo '{{"id":"i3","type":"response","command":"get_state","success":true,"data":{{"sessionId":"s"}}}}'
read -r prompt
echo "$prompt" >prompt
echo '{{"id":"c1","type":"response","command":"prompt","success":true}}'
echo '{{"type":"agent_start"}}'
echo '{{"type":"turn_start"}}'
echo '{{"type":"message_end","message":{{"role":"user","content":"hi"}}}}'
echo '{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"Ho."}}],"stopReason":"{stop}","errorMessage":"no more"}}}}'
echo '{{"type":"turn_end","message":{{}},"toolResults":[]}}'
echo '{{"type":"agent_end","messages":[],"isTerminal":true}}'
read -r end
exit 0
"#
    )
}

#[test]
fn omp_03_an_old_omp_is_driven_and_its_failure_is_ours() {
    for (stop, end, code) in [("stop", "finished", 0), ("error", "failed", 1)] {
        let place = Place::new();
        place.write("agent.sh", old_omp(stop));
        let done = place.run(
            &["drive", "omp", "--json", "hi", "--", "sh", "agent.sh"],
            "",
        );
        assert_eq!(done.code, Some(code), "{}{}", done.stdout, done.stderr);
        let lines = done.json();
        assert_eq!(events(&lines, "prompt_ended")[0]["end"], end);
        assert_eq!(events(&lines, "finding"), [] as [&Value; 0]);
        assert_eq!(
            place.read("prompt").as_deref(),
            Some("{\"id\":\"c1\",\"type\":\"prompt\",\"message\":\"hi\"}\n")
        );
    }
}

#[test]
fn a_turn_that_changes_a_file_is_shown_with_its_diff() {
    let place = Place::new();
    let done = Running::start(place.drive(WRITE, &["a task"], "auto")).wait();
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    for part in [
        "It wants a file.\nI'll write it.\n● write_file ",
        "out.txt +2 -0\n",
        "    +one\n",
        "✓ ok",
        "Done with a task.",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert_eq!(place.read("out.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn tw_06_without_a_terminal_an_approval_is_declined_and_the_command_is_named() {
    let place = Place::new();
    let done = Running::start(place.drive(WRITE, &["it's a task"], "ask")).wait();
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    for part in [
        "write_file wants to run",
        "declined: there is no terminal",
        "turnwire drive openmax 'it'\\''s a task' -- ",
        "✗ denied",
        "Done with",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert_eq!(place.read("out.txt"), None);
    // A program sees the question, and how it was closed.
    let lines = Running::start(place.drive(WRITE, &["--json", "x"], "ask"))
        .wait()
        .json();
    let asked = events(&lines, "asked");
    assert_eq!(
        (&asked[0]["kind"], &asked[0]["reason"], &asked[0]["tool"]),
        (&json!("permission"), &json!("gate"), &json!("write_file"))
    );
    assert_eq!(events(&lines, "ask_closed")[0]["how"], "declined");
    assert_eq!(place.read("out.txt"), None);
}

#[test]
fn om_14_two_questions_of_another_agent_are_answered_each() {
    let place = Place::new();
    let ask = |id: &str| {
        format!(
            r#"echo '{{"session_id":"s","type":"approval_request","approval_id":"{id}","name":"write","summary":"","detail":"","reason":"gate","source_path":"","source_sha":""}}'
"#
        )
    };
    let close = |id: &str| {
        format!(
            r#"echo '{{"session_id":"s","type":"approval_settled","approval_id":"q{id}","outcome":"declined"}}'
echo '{{"session_id":"s","type":"tool_end","call_id":"{id}","ok":false,"output":"declined"}}'
"#
        )
    };
    let script = format!(
        r#"{HELLO}
echo '{{"session_id":"s","type":"message_done","text":"Half a sen"}}'
echo '{{"session_id":"s","type":"tool_start","call_id":"a","name":"write","args":{{}}}}'
echo '{{"session_id":"s","type":"tool_start","call_id":"b","name":"write","args":{{}}}}'
{}{}read -r one
read -r two
echo "$one" >approves
echo "$two" >>approves
{}{}echo '{{"session_id":"s","type":"done","stop_reason":"stop"}}'
read -r quit"#,
        ask("qa"),
        ask("qb"),
        close("b"),
        close("a"),
    );
    let done = Running::start(place.shell(&["--json", "x"], &script)).wait();
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    let answers = place.read("approves").unwrap();
    for id in ["qa", "qb"] {
        assert!(
            answers.contains(&format!("\"approval_id\":\"{id}\"")),
            "{answers}"
        );
    }
    let lines = done.json();
    assert_eq!(events(&lines, "asked").len(), 2);
    let closed = events(&lines, "ask_closed");
    assert!(
        closed.len() == 2 && closed.iter().all(|line| line["how"] == "declined"),
        "{lines:?}"
    );
}

#[test]
fn om_15_om_16_unapproved_code_is_never_approved_and_its_env_is_shown_whole() {
    let place = Place::new();
    let names: Vec<String> = (0..40)
        .map(|number| format!("\"SECRET_NUMBER_{number}\""))
        .collect();
    let script = format!(
        r#"{HELLO}
echo '{{"session_id":"s","type":"message_done","text":"Half a sen"}}'
echo '{{"session_id":"s","type":"tool_start","call_id":"c","name":"deploy","args":{{}}}}'
echo '{{"session_id":"s","type":"approval_request","approval_id":"a","name":"deploy","summary":"deploy","detail":"","reason":"unapproved_source","source_path":"tools/my deploy.toml","source_sha":"0123456789ab","env":[{}]}}'
read -r approve
echo "$approve" >approve
echo '{{"session_id":"s","type":"approval_settled","approval_id":"a","outcome":"declined"}}'
echo '{{"session_id":"s","type":"tool_end","call_id":"c","ok":false,"output":"declined"}}'
echo '{{"session_id":"s","type":"done","stop_reason":"stop"}}'
read -r quit"#,
        names.join(",")
    );
    let done = Running::start(place.shell(&["x"], &script)).wait();
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    let answer: Value = serde_json::from_str(&place.read("approve").unwrap()).unwrap();
    assert_eq!(
        answer,
        json!({"cmd": "approve", "approval_id": "a", "approved": false})
    );
    assert!(
        done.stdout
            .contains("    cd /p && bash --approve 'tools/my deploy.toml'\n"),
        "{}",
        done.stdout
    );
    let env = done
        .stdout
        .lines()
        .find(|line| line.starts_with("  env: "))
        .unwrap();
    assert!(
        env.contains("SECRET_NUMBER_0 ") && env.ends_with("SECRET_NUMBER_39"),
        "{env}"
    );
}

#[test]
fn om_15_the_command_that_is_shown_approves_it() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("project/.turnwire/tools")).unwrap();
    let manifest =
        "name = 'peek'\ndescription = 'x'\ncommand = ['echo', 'peeked']\nreads_only = true\n";
    place.write(".turnwire/tools/peek.toml", manifest);
    let script = "reply when step 1\n  call peek {}\nreply when step 2\n  say: Done.\n";
    let mut command = place.drive(script, &["x"], "ask");
    // Driven from elsewhere.
    let project = place.path("project");
    command.args(["--project", project.to_str().unwrap()]);
    command.current_dir(place.path("home"));
    let done = Running::start(command).wait();
    let hint = done.stdout.lines().find(|line| line.contains("--approve"));
    let hint = hint.unwrap_or_else(|| panic!("{}{}", done.stdout, done.stderr));
    let mut shell = place.command(&[]);
    let approve = std::process::Command::new("sh")
        .args(["-c", hint])
        .current_dir(place.path("home"))
        .envs(
            shell
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output();
    let approve = approve.unwrap();
    assert!(
        approve.status.success(),
        "{hint}: {}",
        String::from_utf8_lossy(&approve.stderr)
    );
    shell = place.drive(script, &["x"], "ask");
    let done = Running::start(shell).wait();
    assert!(
        done.stdout.contains("peeked") && !done.stdout.contains("--approve"),
        "{}",
        done.stdout
    );
}

#[test]
fn json_lines_have_one_shape() {
    let place = Place::new();
    let done = Running::start(place.drive(WRITE, &["--json", "first", "second"], "auto")).wait();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let lines = done.json();
    let mut before = 0;
    for line in &lines {
        assert!(line["event"].is_string(), "{line}");
        let at = line["t_ms"].as_u64().unwrap();
        assert!(at >= before, "{line}");
        before = at;
    }
    assert_eq!(lines[0]["event"], "opened");
    assert!(lines[0]["session"].is_string());
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["event"], &last["code"], &last["unfinished"]),
        (&json!("exit"), &json!(0), &json!(false))
    );
    for message in events(&lines, "message_ended") {
        let id = &message["message"];
        let pieces = lines.iter().filter(|line| {
            line["event"] == "delta" && line["message"] == *id && line["kind"] == "text"
        });
        let text: String = pieces.map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(message["text"], text);
    }
    assert_eq!(
        events(&lines, "message_ended").last().unwrap()["text"],
        "Done with second."
    );
    let ends = events(&lines, "turn_ended");
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["end"] == "finished"));
    for (begin, end, id) in [
        ("tool_started", "tool_ended", "call"),
        ("turn_started", "turn_ended", "turn"),
        ("step_started", "step_ended", "step"),
        ("request_started", "request_ended", "request"),
        ("message_started", "message_ended", "message"),
    ] {
        let ids = |name| {
            events(&lines, name)
                .iter()
                .map(|line| line[id].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(begin), ids(end), "{begin}");
    }
    let started = events(&lines, "tool_started")[0];
    assert_eq!(
        (&started["name"], &started["input"]["path"]),
        (&json!("write_file"), &json!("out.txt"))
    );
    assert_eq!(events(&lines, "file_changed")[0]["added"], 2);
}

#[test]
fn prompts_come_from_arguments_a_file_or_stdin() {
    let script = "reply\n  say: You said {prompt}.\n";
    for (args, input, want) in [
        (
            &["one", "two"][..],
            "",
            &["You said one.", "You said two."][..],
        ),
        (
            &["one", "-"],
            "from stdin\n",
            &["You said one.", "You said from stdin."],
        ),
        (&[], "from stdin\n", &["You said from stdin."]),
        (
            &["--prompt-file", "task.md"],
            "",
            &["You said from a file."],
        ),
        (
            &["--prompt-file", "-"],
            "from stdin",
            &["You said from stdin."],
        ),
    ] {
        let place = Place::new();
        place.write("task.md", "from a file\n");
        let mut running =
            Running::start(place.drive(script, &[&["--json"], args].concat(), "auto"));
        running.write(input.as_bytes());
        running.close();
        let done = running.wait();
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let lines = done.json();
        let said: Vec<&str> = events(&lines, "message_ended")
            .iter()
            .map(|line| line["text"].as_str().unwrap())
            .collect();
        assert_eq!(said, want, "{args:?}");
    }
}

#[test]
fn what_cant_begin_gives_2() {
    let place = Place::new();
    let done = place.run(&["drive", "openmax", "x", "--", "no-such-agent"], "");
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("no-such-agent: No such file"),
        "{}",
        done.stderr
    );
    let done = place.run(
        &["drive", "openmax", "--prompt-file", "none.md", "--", "true"],
        "",
    );
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("none.md: No such file"),
        "{}",
        done.stderr
    );
    for args in [
        &["drive"][..],
        &["drive", "openmax", "x"],
        &["drive", "morse", "x", "--", "true"],
        &["demo", "morse"],
    ] {
        assert_eq!(place.run(args, "").code, Some(2), "{args:?}");
    }
}

#[test]
fn an_agent_that_dies_in_a_turn_is_never_a_success() {
    for (end, code, unfinished) in [
        ("exit 3", 3, true),
        ("exit 0", 1, true),
        ("kill -9 $$", 137, true),
    ] {
        let place = Place::new();
        let done = Running::start(place.shell(&["x"], &format!("{HELLO}{end}"))).wait();
        assert_eq!(done.code, Some(code), "{end}: {}", done.stdout);
        assert!(done.stdout.contains("Half a sen\n"), "{}", done.stdout);
        assert!(
            done.stdout
                .contains("the agent ended in the middle of a turn"),
            "{}",
            done.stdout
        );
        let lines = Running::start(place.shell(&["--json", "x"], &format!("{HELLO}{end}")))
            .wait()
            .json();
        assert_eq!(lines.last().unwrap()["unfinished"], unfinished, "{end}");
        assert_eq!(events(&lines, "turn_ended")[0]["end"], "failed", "{end}");
    }
    // Before it has said anything.
    let done = Running::start(Place::new().shell(&["x"], "exit 0")).wait();
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    assert!(
        done.stdout.contains("before its handshake"),
        "{}",
        done.stdout
    );
}

#[test]
fn the_agents_exit_code_is_returned() {
    let done = Running::start(Place::new().shell(&["x"], &format!("{HELLO}{DONE}exit 7"))).wait();
    assert_eq!(done.code, Some(7), "{}", done.stdout);
    let done =
        Running::start(Place::new().drive("reply\n  fail 400 Bad.\n", &["x"], "auto")).wait();
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    assert!(done.stdout.contains("failed: "), "{}", done.stdout);
}

#[test]
fn l9_rubbish_and_unknown_lines_are_survived_and_named() {
    let rubbish = r#"
echo 'this is no JSON'
printf '\377\376\n\n'
echo '{"session_id":"s","type":"horoscope","sign":"cancer"}'
printf '{"session_id":"s","type":"token","text":"t\\u001b[2Jence"}\n'
"#;
    let done_line = DONE.replace("Half a sen\"", "Half a sent\\u001b[2Jence\"");
    let script = format!("{HELLO}{rubbish}{done_line}");
    let done = Running::start(Place::new().shell(&["x"], &script)).wait();
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    assert!(
        done.stdout
            .contains("the agent breaks its contract in line 4"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("horoscope"), "{}", done.stdout);
    assert!(
        !done.stdout.contains('\x1b'),
        "escapes of the agent aren't obeyed"
    );
    let lines = Running::start(Place::new().shell(&["--json", "x"], &script))
        .wait()
        .json();
    assert!(events(&lines, "finding").len() >= 2, "{lines:?}");
    assert_eq!(events(&lines, "turn_ended")[0]["end"], "finished");
}

#[test]
fn the_input_stays_open_until_the_turn_is_over() {
    // Nothing may come, and no end either, while the turn runs.
    let wait = r#"
if read -r -t 0.5 early; then echo '{"session_id":"s","type":"token","text":"EARLY"}'; fi
if [ $? -le 128 ] && [ -n "$early" ]; then exit 9; fi
"#;
    let eof = r#"
read -r -t 0.5 early; [ $? -gt 128 ] || exit 9
"#;
    for check in [wait, eof] {
        let done =
            Running::start(Place::new().shell(&["x"], &format!("{HELLO}{check}{DONE}"))).wait();
        assert_eq!(done.code, Some(0), "{}", done.stdout);
    }
}

#[test]
fn tw_07_the_first_interrupt_cancels_the_turn() {
    let place = Place::new();
    let script = "pace 100ms\nreply\n  say: a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p\n";
    let running = Running::start(place.drive(script, &["first", "second"], "auto"));
    running.see("a b c");
    let begun = Instant::now();
    running.signal("INT");
    let done = running.wait();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(done.code, Some(0), "{}", done.stdout);
    assert!(done.stdout.contains("cancelled ("), "{}", done.stdout);
    assert_eq!(
        done.stdout.matches("a b c").count(),
        1,
        "the second prompt isn't sent: {}",
        done.stdout
    );
}

#[test]
fn the_second_interrupt_ends_the_agent_and_the_third_kills_it() {
    // It hears of the cancel, and doesn't care.
    let running = Running::start(Place::new().shell(&["x"], &format!("{HELLO}exec sleep 600")));
    running.see("Half a sen");
    running.signal("INT");
    std::thread::sleep(Duration::from_millis(200));
    running.signal("INT");
    let done = running.wait();
    assert_eq!(done.code, Some(130), "{}", done.stdout);

    let deaf = format!("trap '' INT TERM HUP\n{HELLO}while :; do sleep 0.05; done");
    let running = Running::start(Place::new().shell(&["x"], &deaf));
    running.see("Half a sen");
    for _ in 0..3 {
        running.signal("INT");
        std::thread::sleep(Duration::from_millis(200));
    }
    let begun = Instant::now();
    let done = running.wait();
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(done.code, Some(137), "{}", done.stdout);
    assert!(done.stdout.contains("was killed"), "{}", done.stdout);
}

#[test]
fn sigterm_ends_the_agent_and_its_group() {
    let place = Place::new();
    let script = format!("{HELLO}sleep 600 & echo $! >pid; wait");
    let running = Running::start(place.shell(&["x"], &script));
    running.see("Half a sen");
    while place.read("pid").is_none_or(|pid| !pid.ends_with('\n')) {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal("TERM");
    let done = running.wait();
    assert_eq!(done.code, Some(143), "{}", done.stdout);
    let pid = place.read("pid").unwrap();
    let alive = std::path::Path::new("/proc").join(pid.trim()).join("stat");
    let state = std::fs::read_to_string(alive).unwrap_or_default();
    assert!(
        state.is_empty() || state.contains(") Z"),
        "left behind: {state}"
    );
}

#[test]
fn output_that_something_else_holds_open_ends_nothing_late() {
    let place = Place::new();
    // The child has a session of its own and keeps stdout.
    let script = format!("{HELLO}{DONE}setsid sleep 9 2>/dev/null & sleep 0.1");
    let begun = Instant::now();
    let done = Running::start(place.shell(&["x"], &script)).wait();
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(done.code, Some(0), "{}", done.stdout);
}

#[test]
fn an_agent_that_never_leaves_is_ended() {
    let script = format!("{HELLO}{DONE}exec sleep 600");
    let begun = Instant::now();
    let done = Running::start(Place::new().shell(&["x"], &script)).wait();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(done.code, Some(143), "{}", done.stdout);
    assert!(
        done.stdout.contains("ended by signal 15"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_agent() {
    let place = Place::new();
    let mut command = place.shell(&["x"], &format!("{HELLO}while :; do echo '{{\"session_id\":\"s\",\"type\":\"token\",\"text\":\"more \"}}'; done"));
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("it goes on for nobody");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
