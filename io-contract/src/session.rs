//! A session over real pipes, with the scripted model and real tools.

use std::time::{Duration, Instant};

use turnwire::vocab::Frozen;
use turnwire_io::hooks::Hooks;
use turnwire_io::{Anew, Asked, ReloadJob, Reloaded};

use crate::Driver;
use crate::rig::{Gate, Rig, RigOptions};

const TOOL_TURN: &str = r#"
reply when step 1
  call write_file {"path": "made.txt", "content": "hello\n"}
reply
  say: Written.
"#;

/// Om 09 end of input drains the turn and ends with 0.
pub fn om_09_end_of_input_drains_the_turn_and_ends_with_0<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions::script("reply\n say: Hello there."));
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    let text: String = lines
        .iter()
        .filter(|l| l["type"] == "token")
        .filter_map(|l| l["text"].as_str())
        .collect();
    assert_eq!(text, "Hello there.");
    assert_eq!(lines.first().map(|l| &l["type"]), Some(&"hello".into()));
    assert_eq!(
        lines.last().map(|l| &l["stop_reason"]),
        Some(&"stop".into())
    );
}

/// S 65 what was said before an effect is written before it starts.
pub fn s_65_what_was_said_before_an_effect_is_written_before_it_starts<D: Driver>() {
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        ..RigOptions::script(TOOL_TURN)
    });
    // Everything up to here may pass; the line that announces the tool may not.
    gate.hold_at("tool_start");
    rig.say(r#"{"cmd":"user","text":"write it"}"#);
    gate.wait_held();
    std::thread::sleep(Duration::from_millis(150));
    assert!(
        !rig.path("made.txt").exists(),
        "the tool ran before its line was written"
    );
    gate.open();
    rig.wait_for("done");
    assert!(rig.path("made.txt").exists());
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// S 61 tw 10 a stalled host stops the model and its cancel still works.
pub fn s_61_tw_10_a_stalled_host_stops_the_model_and_its_cancel_still_works<D: Driver>() {
    let gate = Gate::default();
    let long = format!(
        "reply\n say: {}",
        "a line of some sixty characters, said over and over again. ".repeat(80_000)
    );
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        ..RigOptions::script(&long)
    });
    gate.hold_at("token");
    rig.say(r#"{"cmd":"user","text":"talk"}"#);
    gate.wait_held();
    std::thread::sleep(Duration::from_millis(300));
    rig.say(r#"{"cmd":"cancel"}"#);
    std::thread::sleep(Duration::from_millis(300));
    gate.open();
    let done = rig.wait_for("done");
    assert_eq!(done["stop_reason"], "cancelled");
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    let bytes: usize = lines
        .iter()
        .filter_map(|l| l["text"].as_str())
        .map(str::len)
        .sum();
    assert!(
        bytes < 1_500_000,
        "{bytes} bytes of text were held for a host that didn't read"
    );
}

/// P06 a host that stops reading for good ends the session.
pub fn p06_a_host_that_stops_reading_for_good_ends_the_session<D: Driver>() {
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        ..RigOptions::script("reply\n wait 30s\n say: late")
    });
    rig.wait_for("hello");
    gate.break_now();
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    let started = Instant::now();
    let (code, _) = rig.finish();
    assert_eq!(code, 129);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "the broken pipe wasn't noticed"
    );
}

/// P02 quitting hard leaves no process of a tool.
pub fn p02_quitting_hard_leaves_no_process_of_a_tool<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions::script(
        "reply when step 1\n call bash {\"command\": \"sleep 300 & echo $! > pid; wait\"}\nreply\n say: over",
    ));
    rig.say(r#"{"cmd":"user","text":"go"}"#);
    rig.wait_for("tool_start");
    let pid = rig.wait_for_file("pid");
    rig.say(r#"{"cmd":"cancel"}"#);
    assert_eq!(rig.wait_for("tool_end")["ok"], false);
    assert_eq!(rig.wait_for("done")["stop_reason"], "cancelled");
    rig.say(r#"{"cmd":"quit"}"#);
    assert_eq!(rig.finish().0, 0);
    // The group was ended before the driver returned: a process that is left is a zombie at most.
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
    assert!(
        status.is_empty() || status.contains("State:\tZ"),
        "{status}"
    );
}

/// Om 07 a mode counts once it is stored and a failed save says so.
pub fn om_07_a_mode_counts_once_it_is_stored_and_a_failed_save_says_so<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions {
        fail_writes: true,
        ..RigOptions::script("reply\n say: x")
    });
    rig.say(r#"{"cmd":"approval_mode","mode":"readonly"}"#);
    let error = rig.wait_for("protocol_error");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("approval mode unchanged"), "{message}");
    assert!(message.contains("the disk is full"), "{message}");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);

    let rig = Rig::start::<D>(RigOptions::script("reply\n say: x"));
    rig.say(r#"{"cmd":"approval_mode","mode":"readonly"}"#);
    assert_eq!(rig.wait_for("approval_mode")["mode"], "readonly");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// L1 two lines in one write mean what two writes mean.
pub fn l1_two_lines_in_one_write_mean_what_two_writes_mean<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions::script("reply\n say: one"));
    rig.say("{\"cmd\":\"user\",\"text\":\"a\"}\n{\"cmd\":\"user\",\"text\":\"b\"}");
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    assert_eq!(
        lines
            .iter()
            .filter(|l| l["type"] == "protocol_error")
            .count(),
        1
    );
    assert_eq!(lines.iter().filter(|l| l["type"] == "done").count(), 1);
}

/// Several tools at once and a retry: all is settled once, and a deadline wakes when it has come.
pub fn l8_s_03_what_was_started_is_settled_once_and_deadlines_wake<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions::script(
        "reply when request 1\n fail 500 Oh no.\n\
         reply when step 1\n call bash {\"command\": \"sleep 60\"}\n call bash {\"command\": \"echo $$ >pid; sleep 60\"}\n\
         reply\n say: over",
    ));
    rig.say(r#"{"cmd":"user","text":"go"}"#);
    rig.wait_for("tool_start");
    rig.say(r#"{"cmd":"cancel"}"#);
    assert_eq!(rig.wait_for("done")["stop_reason"], "cancelled");
    // The next turn's own settlements come behind those of the stopped one.
    rig.say(r#"{"cmd":"user","text":"on"}"#);
    rig.wait_for("tool_start");
    rig.say(r#"{"cmd":"cancel"}"#);
    assert_eq!(rig.wait_for("done")["stop_reason"], "cancelled");
    // A session that ends isn't told of what is ended with it.
    rig.wait_settled();
    rig.close_input();
    let books = rig.books().clone();
    assert_eq!(rig.finish().0, 0);
    let ledger = books.open();
    assert!(ledger.woken >= 1 && ledger.settled >= 4, "{ledger:?}");
}

/// Lines that came before the end of input count, a last one without its newline too.
pub fn om_09_lines_before_the_end_of_input_are_handled_first<D: Driver>() {
    // The last line is one only at the end of input: a turn that is over before that would take its prompt, too.
    let rig = Rig::start::<D>(RigOptions::script("reply\n wait 300ms\n say: {prompt}"));
    rig.say_unfinished(
        "{\"cmd\":\"approval_mode\",\"mode\":\"readonly\"}\n{\"cmd\":\"user\",\"text\":\"one\"}\n\
         {\"cmd\":\"user\",\"text\":\"two\"}",
    );
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    let kinds: Vec<&str> = lines.iter().filter_map(|l| l["type"].as_str()).collect();
    // The second prompt finds the first one's turn.
    assert!(kinds.contains(&"protocol_error"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"done"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "done").count(), 1);
}

/// Reads slowly, and has a new prompt for the session the first time.
struct Slow {
    toolbox: turnwire_io::tools::Toolbox,
    reads: u32,
}

impl turnwire_io::Reload for Slow {
    fn prepare(&mut self, asked: Asked) -> ReloadJob {
        self.reads += 1;
        let (toolbox, first) = (self.toolbox.clone(), self.reads == 1);
        Box::new(move || {
            std::thread::sleep(Duration::from_millis(200));
            if asked == Asked::Host {
                return Err("settings.toml:7:1: broken".to_owned());
            }
            let frozen = Frozen {
                tools: toolbox.specs(),
                ..Frozen::default()
            };
            Ok(Reloaded {
                tools: 7,
                skills: 0,
                changes: first.then(|| "prompt changed".into()).into_iter().collect(),
                anew: first.then(|| {
                    Box::new(Anew {
                        frozen,
                        toolbox,
                        hooks: Hooks::none(),
                    })
                }),
            })
        })
    }

    fn before_turns(&self) -> bool {
        true
    }
}

/// A turn waits for what is read before it.
pub fn om_08_a_turn_waits_for_what_is_read_before_it<D: Driver>() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = turnwire_io::tools::ToolboxConfig::new(folder.path());
    let toolbox = turnwire_io::tools::Toolbox::new(toolbox).unwrap();
    let rig = Rig::start::<D>(RigOptions {
        reload: Some(Box::new(Slow { toolbox, reads: 0 })),
        ..RigOptions::script("reply\n say: Hello.")
    });
    rig.say(r#"{"cmd":"user","text":"one"}"#);
    // The turn waits for it, and a line of the host is answered meanwhile.
    rig.say(r#"{"cmd":"reload"}"#);
    rig.wait_for("done");
    rig.say(r#"{"cmd":"user","text":"two"}"#);
    rig.wait_for("done");
    rig.say(r#"{"cmd":"reload"}"#);
    rig.say("behind it");
    rig.close_input();
    let (code, lines) = rig.finish();
    assert_eq!(code, 0);
    let kinds: Vec<&str> = lines.iter().filter_map(|l| l["type"].as_str()).collect();
    assert_eq!(
        kinds[..5],
        [
            "hello",
            "protocol_error",
            "refrozen",
            "harness_note",
            "budget"
        ]
    );
    assert_eq!(kinds.iter().filter(|kind| **kind == "refrozen").count(), 1);
    let refusals: Vec<&str> = lines.iter().filter_map(|l| l["message"].as_str()).collect();
    assert!(refusals[0].contains("in flight"), "{refusals:?}");
    assert!(refusals[1].contains("settings.toml:7:1"), "{refusals:?}");
    assert!(refusals[2].contains("bad command line"), "{refusals:?}");
}
