//! MCP servers of the driver's own: real child processes, behind a whole session.
#![cfg(unix)]
// Helpers fail a test as the tests themselves do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm
)]

#[allow(dead_code)]
#[path = "../driver/mod.rs"]
mod driver;
mod server;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use turnwire::vocab::McpFact;
use turnwire_io::mcp::{Mcp, ServerConfig, Servers};
use turnwire_io_contract::rig::{PATIENCE, Rig, RigOptions};

use driver::Tokio;
use server::{config, shell};

/// A script that calls tools one after the other, one in each turn.
fn calls(calls: &[&str]) -> String {
    let mut script = String::new();
    for (at, call) in calls.iter().enumerate() {
        script.push_str(&format!(
            "reply when prompt \"turn {at}.\" and step 1\n call {call}\n"
        ));
    }
    script + "reply\n say: over\n"
}

struct Session {
    rig: Rig,
    servers: Servers,
    facts: Arc<Mutex<Vec<McpFact>>>,
}

impl Session {
    fn new(servers: Vec<ServerConfig>, script: &str) -> Session {
        Session::tuned(servers, script, |mcp| mcp.wait = PATIENCE)
    }

    fn tuned(servers: Vec<ServerConfig>, script: &str, tune_mcp: fn(&mut Mcp)) -> Session {
        let servers = Servers::new(servers);
        let facts = Arc::default();
        let rig = Rig::start::<Tokio>(RigOptions {
            mcp: Some(servers.clone()),
            tune_mcp,
            mcp_facts: Arc::clone(&facts),
            ..RigOptions::script(script)
        });
        Session {
            rig,
            servers,
            facts,
        }
    }

    fn begin(&self, turn: usize) {
        let line = format!("{{\"cmd\":\"user\",\"text\":\"turn {turn}.\"}}");
        self.rig.say(&line);
    }

    /// A turn, and how its call ended.
    fn turn(&self, turn: usize) -> Value {
        self.begin(turn);
        let end = self.rig.wait_for("tool_end");
        self.rig.wait_for("done");
        end
    }

    /// Turns of this number until the call goes well.
    fn turn_until_ok(&self, turn: usize) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let end = self.turn(turn);
            if end["ok"] == true {
                return end;
            }
            assert!(Instant::now() < until, "{end}");
        }
    }

    /// Waits for a fact.
    fn fact(&self, is: impl Fn(&McpFact) -> bool) -> McpFact {
        let until = Instant::now() + PATIENCE;
        loop {
            let facts = self.facts.lock().unwrap();
            if let Some(fact) = facts.iter().find(|fact| is(fact)) {
                return fact.clone();
            }
            assert!(Instant::now() < until, "{facts:?}");
            drop(facts);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn names(&self) -> Vec<String> {
        match self.fact(|fact| matches!(fact, McpFact::Registered { .. })) {
            McpFact::Registered { names, .. } => {
                names.iter().map(|name| name.to_string()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn end(self) {
        self.rig.close_input();
        assert_eq!(self.rig.finish().0, 0);
    }
}

fn output(end: &Value) -> &str {
    end["output"].as_str().unwrap()
}

#[test]
fn the_first_turn_has_the_tools_of_a_server_and_calls_them() {
    let script = calls(&[
        r#"mcp__house__echo {"text":"you"}"#,
        "mcp__house__picture {}",
        "mcp__house__facts {}",
        "mcp__house__fails {}",
        "mcp__house__nothing {}",
    ]);
    let session = Session::new(vec![config("house", "late=300")], &script);
    let end = session.turn(0);
    assert_eq!((&end["ok"], output(&end)), (&true.into(), "heard you"));
    let end = session.turn(1);
    assert!(output(&end).starts_with("a picture"), "{end}");
    assert!(output(&session.turn(2)).contains(r#"{"answer":42}"#));
    let end = session.turn(3);
    assert_eq!(end["ok"], false);
    assert!(output(&end).contains("it failed so"), "{end}");
    assert_eq!(session.turn(4)["ok"], false, "no such tool");
    let names = session.names();
    assert_eq!(names.len(), 9);
    assert_eq!(names[0], "mcp__house__echo");
    session.end();
}

#[test]
fn a_server_that_says_nothing_keeps_a_turn_for_a_while_only_and_is_ended() {
    let silent = shell("silent", "echo $$ > pid; exec sleep 1000");
    let session = Session::tuned(vec![silent], &calls(&[]), |mcp| {
        mcp.wait = Duration::from_millis(50);
    });
    session.begin(0);
    session.rig.wait_for("done");
    let pid = session.rig.wait_for_file("pid");
    session.end();
    assert_gone(pid.trim());
}

#[test]
fn a_server_that_answers_too_late_has_failed_as_it_did() {
    for (how, late) in [("late=100000", true), ("mute", false)] {
        let mut slow = config("slow", how);
        slow.connect_limit = Duration::from_secs(2);
        let session = Session::new(vec![slow], &calls(&[]));
        session.begin(0);
        session.rig.wait_for("done");
        let fact = session.fact(|_| true);
        let told = match &fact {
            McpFact::ConnectFailed { error, .. } => late && error.contains("within 2 s"),
            McpFact::ListTimedOut { .. } => !late,
            _ => false,
        };
        // A loaded machine may not even come to the list in time.
        assert!(told || !late, "{fact:?}");
        session.end();
    }
}

#[test]
fn a_server_that_cant_begin_says_why_and_keeps_nobody() {
    let nowhere = shell("nowhere", "");
    let servers = vec![
        shell("crash", "echo 'no token' >&2; exit 3"),
        shell("wrong", "echo hello; read line; exit 0"),
        config("shy", "shy"),
        config("none", "none"),
        ServerConfig {
            launch: nowhere.launch.map(|launch| turnwire_io::mcp::Launch {
                command: "./no-such-program".to_owned(),
                ..launch
            }),
            ..nowhere
        },
    ];
    let session = Session::new(servers, &calls(&[]));
    session.begin(0);
    session.rig.wait_for("done");
    let failed = |name: &str| {
        let fact = session.fact(|fact| {
            matches!(fact, McpFact::ConnectFailed { server, .. } | McpFact::ListFailed { server, .. } if &**server == name)
        });
        match fact {
            McpFact::ConnectFailed { error, .. } => format!("connect: {error}"),
            McpFact::ListFailed { error, .. } => format!("list: {error}"),
            other => panic!("{other:?}"),
        }
    };
    let crash = failed("crash");
    assert!(
        crash.starts_with("connect: ")
            && crash.contains("exit code 3")
            && crash.contains("no token"),
        "{crash}"
    );
    assert!(failed("wrong").contains("exit code 0"));
    assert!(failed("nowhere").contains("./no-such-program can't be started"));
    let shy = failed("shy");
    assert!(
        shy.starts_with("list: ") && shy.contains("not telling"),
        "{shy}"
    );
    session.fact(|fact| matches!(fact, McpFact::NoTools { server } if &**server == "none"));
    session.end();
}

#[test]
fn a_server_that_comes_late_is_there_in_a_later_turn() {
    let script = "reply when offered mcp__late__echo and step 1\n call mcp__late__echo {\"text\":\"me\"}\n\
                  reply when step 1\n call list_dir {}\nreply\n say: over\n";
    let session = Session::tuned(vec![config("late", "late=1500")], script, |mcp| {
        mcp.wait = Duration::ZERO;
    });
    let first = session.turn(0);
    assert_ne!(output(&first), "heard me");
    session.names();
    let end = session.turn(1);
    assert_eq!(output(&end), "heard me");
    session.end();
}

#[test]
fn names_that_clash_are_told_apart() {
    let script = calls(&[r#"mcp__a_b__echo {"text":"one"}"#]);
    let servers = vec![config("a b", "twice"), config("a.b", "")];
    let session = Session::new(servers, &script);
    assert_eq!(output(&session.turn(0)), "heard one");
    let names = session.names();
    assert_eq!(names.len(), 18);
    assert!(names[9].starts_with("mcp__a_b__echo_"), "{names:?}");
    session.fact(|fact| matches!(fact, McpFact::Duplicate { tool, .. } if &**tool == "echo"));
    session.end();
}

#[test]
fn many_tools_are_read_page_by_page_and_capped() {
    let script = calls(&["mcp__big__t0 {}"]);
    let session = Session::new(vec![config("big", "many=300")], &script);
    assert_eq!(output(&session.turn(0)), "the first");
    assert_eq!(session.names().len(), 128);
    session.fact(|fact| matches!(fact, McpFact::Capped { kept: 128, .. }));
    session.end();
}

#[test]
fn a_call_that_takes_too_long_is_given_up_and_its_server_is_told() {
    let mut slow = config("house", "");
    slow.call_limit = Duration::from_millis(600);
    let script = calls(&["mcp__house__slow {}", r#"mcp__house__echo {"text":"on"}"#]);
    let session = Session::new(vec![slow], &script);
    let end = session.turn(0);
    assert_eq!(end["ok"], false);
    assert!(output(&end).contains("longer than 0.6 s"), "{end}");
    session.rig.wait_for_file("cancelled");
    assert_eq!(output(&session.turn(1)), "heard on", "it is well");
    session.end();
}

#[test]
fn a_call_is_cancelled_with_its_turn_and_its_server_is_told() {
    let script = calls(&["mcp__house__slow {}", r#"mcp__house__echo {"text":"on"}"#]);
    let session = Session::new(vec![config("house", "")], &script);
    session.begin(0);
    session.rig.wait_for_file("begun");
    session.rig.say(r#"{"cmd":"cancel"}"#);
    let done = session.rig.wait_for("done");
    assert_eq!(done["stop_reason"], "cancelled");
    session.rig.wait_for_file("cancelled");
    assert_eq!(output(&session.turn(1)), "heard on");
    session.end();
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again() {
    let script = calls(&["mcp__house__die {}", r#"mcp__house__echo {"text":"again"}"#]);
    let session = Session::tuned(vec![config("house", "")], &script, |mcp| {
        mcp.wait = PATIENCE;
        mcp.again.first = Duration::from_millis(10);
    });
    let end = session.turn(0);
    assert_eq!(end["ok"], false);
    assert!(
        output(&end).contains("ended before the call was over"),
        "{end}"
    );
    let lost = session.fact(|fact| matches!(fact, McpFact::Lost { .. }));
    let McpFact::Lost { error, again, .. } = &lost else {
        panic!("{lost:?}")
    };
    assert!(
        again & error.contains("exit code 7") & error.contains("my last words"),
        "{lost:?}"
    );
    assert!(!error.contains('\x1b'));
    assert_eq!(output(&session.turn_until_ok(1)), "heard again");
    session.end();
}

#[test]
fn a_server_that_keeps_dying_is_given_up_and_comes_back_when_it_is_wished() {
    let script = calls(&["mcp__house__die {}", r#"mcp__house__echo {"text":"back"}"#]);
    let session = Session::tuned(vec![config("house", "")], &script, |mcp| {
        mcp.wait = PATIENCE;
        mcp.again.first = Duration::from_millis(1);
        mcp.again.times = 0;
    });
    session.turn(0);
    session.fact(|fact| matches!(fact, McpFact::Lost { again: false, .. }));
    assert_eq!(session.turn(1)["ok"], false, "its tools are gone");
    session.servers.reconnect("house").unwrap();
    // The loop comes round with the next line; the turn that it begins waits for the server.
    assert_eq!(output(&session.turn_until_ok(1)), "heard back");
    session.end();
}

#[test]
fn noise_between_the_messages_disturbs_nobody() {
    let script = calls(&[
        "mcp__house__babble {}",
        r#"mcp__house__echo {"text":"well"}"#,
    ]);
    let session = Session::new(vec![config("house", "")], &script);
    assert_eq!(output(&session.turn(0)), "said enough");
    assert_eq!(output(&session.turn(1)), "heard well");
    session.end();
}

#[test]
fn tools_that_come_later_are_offered() {
    let script = "reply when prompt \"turn 0.\" and step 1\n call mcp__house__grow {}\n\
                  reply when offered mcp__house__grown and step 1\n call mcp__house__grown {\"text\":\"new\"}\n\
                  reply when step 1\n call list_dir {}\nreply\n say: over\n";
    let session = Session::new(vec![config("house", "")], script);
    session.turn(0);
    let of =
        |fact: &McpFact| matches!(fact, McpFact::Registered { names, .. } if names.len() == 10);
    session.fact(of);
    assert_eq!(output(&session.turn(1)), "heard new");
    session.end();
}

#[test]
fn a_server_sees_the_project_and_only_the_variables_that_it_is_given() {
    let script = calls(&["mcp__house__look {}"]);
    let mut house = config("house", "");
    if let Ok(launch) = &mut house.launch {
        launch.env.push(("PASSED".to_owned(), "yes".to_owned()));
    }
    let session = Session::new(vec![house], &script);
    let end = session.turn(0);
    let root = session.rig.path("").display().to_string();
    let root = root.trim_end_matches('/');
    assert_eq!(output(&end), format!("file://{root} {root} ,,yes"));
    session.end();
}

#[test]
fn servers_come_and_go_while_the_session_runs() {
    let script = calls(&[
        r#"mcp__one__echo {"text":"1"}"#,
        r#"mcp__two__echo {"text":"2"}"#,
        r#"mcp__one__echo {"text":"3"}"#,
    ]);
    let session = Session::new(vec![config("one", "")], &script);
    assert_eq!(output(&session.turn(0)), "heard 1");
    session.servers.set(vec![config("two", "")]);
    assert_eq!(output(&session.turn_until_ok(1)), "heard 2");
    session.servers.configure(Vec::new());
    let until = Instant::now() + PATIENCE;
    while session.turn(2)["ok"] == true {
        assert!(Instant::now() < until);
    }
    session.end();
}

#[test]
fn a_server_that_doesnt_want_to_end_is_killed_with_its_children() {
    let session = Session::new(vec![config("house", "stubborn")], &calls(&[]));
    session.begin(0);
    session.rig.wait_for("done");
    let pids = session.rig.wait_for_file("pids");
    session.end();
    for pid in pids.split_whitespace() {
        assert_gone(pid);
    }
}

/// The process is gone, or dead and not ours to reap.
fn assert_gone(pid: &str) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    assert!(stat.is_empty() || state.starts_with('Z'), "{stat}");
}
