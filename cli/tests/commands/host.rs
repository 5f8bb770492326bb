//! What `turnwire drive` says into a turn that runs, and what it serves to the agent.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turnwire_io::process::GroupId;

use crate::kit::{Done, PATIENCE, PROGRAM, Place, Running};

/// `drive omp --json` with this program as the agent, whose model plays a script.
fn omp(place: &Place, script: &str, args: &[&str]) -> Command {
    std::fs::write(place.path("script"), script).unwrap();
    let script = place.path("script");
    let agent = [
        PROGRAM,
        "serve",
        "--protocol",
        "omp",
        "--trust-project",
        "--approval",
        "auto",
        "--script",
        script.to_str().unwrap(),
    ];
    place.command(&[&["drive", "omp", "--json"], args, &["--"], &agent[..]].concat())
}

fn offer(place: &Place, offer: &Value) {
    place.write("offer.json", offer.to_string());
}

fn tool(name: &str, line: &str) -> Value {
    let run = ["sh", "-c", line];
    json!({"name": name, "description": "It.", "parameters": {"type": "object"}, "run": run})
}

/// Members of the lines of one kind.
fn all<const N: usize>(done: &Done, event: &str, members: [&str; N]) -> Vec<[Value; N]> {
    let lines = done.json();
    let found = lines.iter().filter(|line| line["event"] == event);
    found
        .map(|line| members.map(|name| line[name].clone()))
        .collect()
}

#[track_caller]
fn clean(done: &Done) {
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(all(done, "finding", ["text"]), [] as [[Value; 1]; 0]);
}

#[test]
fn omp_06_omp_11_a_tool_of_the_hosts_a_steer_and_a_follow_up() {
    let place = Place::new();
    let gate = "cat >arguments; until [ -e go ]; do sleep 0.01; done; echo opened";
    offer(&place, &json!({"tools": [tool("gate", gate)]}));
    let script = r#"
reply when prompt "Left"
  say: Left it is, for {last_result}.
reply when prompt "Park"
  say: Parked.
reply when step 1
  call gate {"n": 1}
"#;
    let args = [
        "--offer",
        "offer.json",
        "--steer",
        "Left.",
        "--follow-up",
        "Park.",
        "Drive.",
    ];
    let running = Running::start(omp(&place, script, &args));
    running.see(r#""lane":"steer""#);
    running.see(r#""lane":"follow_up""#);
    place.write("go", "");
    let done = running.wait();
    clean(&done);
    assert_eq!(place.read("arguments").as_deref(), Some(r#"{"n": 1}"#));
    assert_eq!(
        all(&done, "asked", ["kind", "tool"]),
        [[json!("tool"), json!("gate")]]
    );
    assert_eq!(
        all(&done, "tool_ended", ["ok", "text"]),
        [[json!(true), json!("opened\n")]]
    );
    let texts = all(&done, "message_ended", ["text"]);
    assert_eq!(
        texts[1..],
        [["Left it is, for opened\n."], ["Parked."]].map(|text| text.map(Value::from))
    );
    let finished = json!("finished");
    assert_eq!(
        all(&done, "prompt_ended", ["end"]),
        [[finished.clone()], [finished.clone()], [finished]]
    );
    assert_eq!(all(&done, "turn_ended", ["end"]).len(), 1);
}

#[test]
fn what_fails_says_how() {
    let place = Place::new();
    let tools = [
        tool("fails", "echo half; echo broken >&2; exit 3"),
        json!({"name": "missing", "description": "It.", "parameters": {}, "run": ["./not-there"]}),
    ];
    offer(&place, &json!({"tools": tools}));
    let script = r#"
reply when step 1
  call fails {}
  call missing {}
reply
  say: So be it.
"#;
    let args = ["--offer", "offer.json", "Try."];
    let done = Running::start(omp(&place, script, &args)).wait();
    clean(&done);
    let mut ended = all(&done, "tool_ended", ["text", "ok"]);
    ended.sort_by_key(|[text, _]| text.to_string());
    assert_eq!(ended[1], [json!("half\nbroken\nexit code 3"), json!(false)]);
    assert_eq!(ended[0][1], json!(false));
    assert!(ended[0][0].as_str().unwrap().contains("No such file"));
}

#[test]
fn omp_12_addresses_of_the_hosts_are_read_and_written() {
    let place = Place::new();
    let line = r#"if [ "$1" = write ]; then cat >written; else printf '%s has rows' "$2"; fi"#;
    let run = ["sh", "-c", line, "db"];
    let uri = json!({"scheme": "db", "description": "the tables", "writable": true, "run": run});
    offer(&place, &json!({"uris": [uri]}));
    let script = r#"
reply when step 1
  call read_file {"path": "db://users"}
  call write_file {"path": "db://users", "content": "a row"}
reply
  say: Done.
"#;
    let args = ["--offer", "offer.json", "Look."];
    let done = Running::start(omp(&place, script, &args)).wait();
    clean(&done);
    let texts: Vec<String> = all(&done, "tool_ended", ["text", "ok"])
        .into_iter()
        .map(|[text, ok]| format!("{ok} {text}"))
        .collect();
    assert!(
        texts
            .iter()
            .any(|text| text == "true \"db://users has rows\""),
        "{texts:?}"
    );
    assert_eq!(place.read("written").as_deref(), Some("a row"));
}

#[test]
fn a_call_that_is_cancelled_ends_with_its_program() {
    let place = Place::new();
    offer(
        &place,
        &json!({"tools": [tool("wait", "echo $$ >pid; sleep 300 & wait")]}),
    );
    let script = "reply\n  call wait {}\n";
    let args = ["--offer", "offer.json", "Wait.", "Never sent."];
    let running = Running::start(omp(&place, script, &args));
    let begun = Instant::now();
    let pid = loop {
        match place.read("pid").map(|pid| pid.trim().to_owned()) {
            Some(pid) if !pid.is_empty() => break pid,
            Some(_) | None => assert!(begun.elapsed() < PATIENCE, "{}", running.stdout()),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    running.signal("INT");
    let done = running.wait();
    assert_eq!(all(&done, "prompt_ended", ["end"]), [[json!("cancelled")]]);
    assert_eq!(all(&done, "ask_closed", ["how"]), [[json!("cancelled")]]);
    let group = GroupId::of(pid.parse().unwrap()).unwrap();
    assert!(!group.has_members(), "its group is gone");
}

#[test]
fn an_agent_that_takes_nothing_of_the_hosts_is_given_no_prompt() {
    let place = Place::new();
    offer(&place, &json!({"tools": [tool("gate", "true")]}));
    let args = ["--json", "--offer", "offer.json", "Drive."];
    let done = Running::start(place.drive("reply\n  say: no\n", &args, "auto")).wait();
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    assert_eq!(all(&done, "replied", ["ok", "why"])[0][0], json!(false));
    assert_eq!(all(&done, "turn_started", ["turn"]), [] as [[Value; 1]; 0]);
}

#[test]
fn an_offer_that_cant_be_read_is_refused_at_the_start() {
    let place = Place::new();
    place.write("offer.json", r#"{"tool": []}"#);
    for file in ["offer.json", "missing.json"] {
        let done = Running::start(omp(&place, "reply\n", &["--offer", file, "Hi."])).wait();
        assert_eq!(done.code, Some(2), "{}", done.stdout);
        assert!(done.stderr.contains(file), "{}", done.stderr);
    }
}
