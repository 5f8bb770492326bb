//! The same inputs, the same bytes: each scene's output is written down, for every driver.
//!
//! To write them down anew, run the tests with `TURNWIRE_RENEW=1` and look at the difference.

use turnwire::vocab::ApprovalMode;

use crate::Driver;
use crate::rig::{Rig, RigOptions};

/// What the host does: waits for a line of a type, then writes one.
type Step = (&'static str, &'static str);

const USER: &str = r#"{"cmd":"user","text":"go"}"#;

fn scene<D: Driver>(name: &str, options: RigOptions, steps: &[Step]) {
    let rig = Rig::start::<D>(options);
    for (awaited, line) in steps {
        let seen = rig.wait_for(awaited);
        let line = match seen["approval_id"].as_str() {
            Some(approval) => line.replace("APPROVAL", approval),
            None => (*line).to_owned(),
        };
        rig.say(&line);
    }
    rig.close_input();
    let (code, _, said) = rig.finish_raw();
    assert_eq!(code, 0, "{said}");
    let path = format!("{}/golden/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TURNWIRE_RENEW").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap();
    for (at, (said, want)) in said.lines().zip(want.lines()).enumerate() {
        assert_eq!(said, want, "{name}, line {}", at + 1);
    }
    assert_eq!(said, want, "{name}");
}

/// Thinking and text, in two turns.
pub fn l5_talk<D: Driver>() {
    let script = "reply when prompt \"again\"\n think: Hm.\n say: Once more, with feeling.\n usage input=9 output=4\n\
                  reply\n think: A greeting.\n say:\n | Hello there.\n |\n | And: \\u{2028} \"quotes\"\n";
    scene::<D>(
        "talk",
        RigOptions::script(script),
        &[
            ("hello", USER),
            ("done", r#"{"cmd":"user","text":"again"}"#),
        ],
    );
}

/// All the tools, one after the other and at once.
pub fn l5_tools<D: Driver>() {
    let script = r#"
reply when step 1
  call write_file {"path": "a/b.txt", "content": "one\ntwo\nthree\n"}
reply when step 2
  call edit_file {"path": "a/b.txt", "old_string": "two", "new_string": "2"}
reply when step 3
  call read_file {"path": "a/b.txt"}
reply when step 4
  call search {"pattern": "th", "path": "a"}
reply when step 5
  call list_dir {}
reply when step 6
  call bash {"command": "echo out; echo err >&2; exit 3"}
reply when step 7
  call bash {"command": "cat a/b.txt"}
reply when step 8
  call nonsense {}
  call read_file {"path": "../outside"}
reply
  say: I saw {last_result_lines} lines.
"#;
    scene::<D>("tools", RigOptions::script(script), &[("hello", USER)]);
}

/// Approvals given and declined.
pub fn l5_approvals<D: Driver>() {
    let script = "reply when step 1\n call write_file {\"path\": \"a\", \"content\": \"x\"}\n\
                  reply when step 2\n call bash {\"command\": \"echo hi\"}\n\
                  reply\n say: {last_result}";
    scene::<D>(
        "approvals",
        RigOptions {
            approvals: ApprovalMode::Ask,
            ..RigOptions::script(script)
        },
        &[
            ("hello", USER),
            (
                "approval_request",
                r#"{"cmd":"approve","approval_id":"APPROVAL","approved":true}"#,
            ),
            (
                "approval_request",
                r#"{"cmd":"approve","approval_id":"APPROVAL","approved":false}"#,
            ),
        ],
    );
}

/// Failures that are tried again, and one that isn't.
pub fn l5_retries<D: Driver>() {
    let script = "reply when request 1\n fail 401 Who are you?\nreply when request 2\n fail 500 Oh no.\n\
                  reply when request 3\n unreached no route\nreply\n say: Third time lucky.";
    scene::<D>(
        "retries",
        RigOptions::script(script),
        &[("hello", USER), ("done", USER)],
    );
}

/// A hook that objects once.
pub fn l5_hooks<D: Driver>() {
    scene::<D>(
        "hooks",
        RigOptions {
            turn_end: vec!["test -e again || { touch again; echo tests failing; exit 2; }"],
            ..RigOptions::script("reply\n say: All done.")
        },
        &[("hello", USER)],
    );
}

/// Cancelled while a tool runs, and while the model speaks; then on.
pub fn l5_cancels<D: Driver>() {
    let script = "reply when prompt \"tool\"\n call bash {\"command\": \"sleep 60\"}\n\
                  reply when prompt \"model\"\n say: One.\n wait 60s\n say: Two.\n\
                  reply\n say: Over.";
    scene::<D>(
        "cancels",
        RigOptions::script(script),
        &[
            ("hello", r#"{"cmd":"user","text":"tool"}"#),
            ("tool_start", r#"{"cmd":"cancel"}"#),
            ("done", r#"{"cmd":"user","text":"model"}"#),
            ("token", r#"{"cmd":"cancel"}"#),
            ("done", USER),
            ("done", r#"{"cmd":"quit"}"#),
        ],
    );
}

/// Lines that mean nothing, and too many at once.
pub fn l5_noise<D: Driver>() {
    let noise = "{\"cmd\":\"reboot\"}\nnot json\n\n{\"cmd\":\"user\"}\n{\"cmd\":\"approval_mode\",\"mode\":\"readonly\"}";
    scene::<D>(
        "noise",
        RigOptions::script("reply\n say: Quiet, please."),
        &[("hello", noise), ("approval_mode", USER)],
    );
}
