//! Hooks of a session over real pipes: what is written before what, and what is left behind.

use std::time::{Duration, Instant};

use turnwire_io::process::GroupId;

use crate::Driver;
use crate::rig::{Gate, Rig, RigOptions};

const HELLO: &str = "reply\n say: Hello.";

/// Om 30 s 41 a refusal is stored before it is announced.
pub fn om_30_s_41_a_refusal_is_stored_before_it_is_announced<D: Driver>() {
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        turn_end: vec!["test -e again || { touch again; echo tests failing; exit 2; }"],
        ..RigOptions::script(HELLO)
    });
    gate.hold_at("turn_refused");
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    gate.wait_held();
    let stored = std::fs::read_to_string(rig.path("refusals")).unwrap_or_default();
    assert!(
        stored.contains("tests failing"),
        "announced, not stored: {stored:?}"
    );
    gate.open();
    assert_eq!(rig.wait_for("done")["stop_reason"], "stop");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// Om 23 a refusal that cant be stored leaves the reply unverified.
pub fn om_23_a_refusal_that_cant_be_stored_leaves_the_reply_unverified<D: Driver>() {
    let rig = Rig::start::<D>(RigOptions {
        fail_writes: true,
        turn_end: vec!["echo no; exit 2"],
        ..RigOptions::script(HELLO)
    });
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    assert_eq!(rig.wait_for("done")["stop_reason"], "unverified");
    rig.close_input();
    let (_, lines) = rig.finish();
    assert!(
        lines.iter().all(|line| line["type"] != "turn_refused"),
        "{lines:?}"
    );
}

/// S 65 a hook starts after what was said before it is written.
pub fn s_65_a_hook_starts_after_what_was_said_before_it_is_written<D: Driver>() {
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        turn_end: vec!["touch begun"],
        ..RigOptions::script(HELLO)
    });
    gate.hold_at("message_done");
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    gate.wait_held();
    std::thread::sleep(Duration::from_millis(150));
    assert!(!rig.path("begun").exists());
    gate.open();
    rig.wait_for("done");
    assert!(rig.path("begun").exists());
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// A session that ends takes its hook along.
pub fn a_session_that_ends_takes_its_hook_along<D: Driver>() {
    let begun = Instant::now();
    let gate = Gate::default();
    let rig = Rig::start::<D>(RigOptions {
        gate: Some(gate.clone()),
        turn_end: vec!["echo $$ >begun; sleep 30 & sleep 30"],
        ..RigOptions::script(HELLO)
    });
    rig.say(r#"{"cmd":"user","text":"hi"}"#);
    let group = rig.wait_for_file("begun");
    // Nobody reads any more: the session is over, wherever it stands.
    gate.break_now();
    rig.say("noise");
    assert_eq!(rig.finish().0, 129);
    assert!(begun.elapsed() < Duration::from_secs(10));
    let group = GroupId::of(group.trim().parse().expect("its number")).expect("a group");
    assert!(!group.has_members(), "the hook's group is still there");
}
