//! What is left behind.

use std::time::{Duration, Instant};

use crate::Driver;
use crate::rig::{PATIENCE, Rig, RigOptions};

const SCRIPT: &str = r#"
reply when prompt "command" and step 1
  call bash {"command": "echo hi"}
reply when prompt "files" and step 1
  call write_file {"path": "a.txt", "content": "hello\n"}
reply
  say: Done.
"#;

fn count(what: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{what}")).map_or(0, Iterator::count)
}

/// Processes whose parent is this one, dead ones that nobody has reaped among them.
fn children() -> usize {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents = processes.filter_map(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
        let (_, after) = stat.rsplit_once(')')?;
        after.split_whitespace().nth(1).map(str::to_owned)
    });
    parents.filter(|parent| *parent == me).count()
}

fn session<D: Driver>(number: u32) {
    let prompt = match number % 50 {
        0 => "a command",
        n if n % 5 == 0 => "files",
        _ => "words",
    };
    let rig = Rig::start::<D>(RigOptions {
        turn_end: if number.is_multiple_of(100) {
            vec!["cat"]
        } else {
            Vec::new()
        },
        ..RigOptions::script(SCRIPT)
    });
    rig.say(&format!(r#"{{"cmd":"user","text":"{prompt}"}}"#));
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// A thousand sessions leave no thread, no descriptor and no child.
pub fn a_thousand_sessions_leave_no_thread_no_descriptor_and_no_child<D: Driver>() {
    (0..=2).for_each(|number| session::<D>(number * 50));
    let now = || (count("task"), count("fd"), children());
    let before = now();
    (1..=1000).for_each(session::<D>);
    // Threads that were told to end do so, a moment later.
    let begun = Instant::now();
    loop {
        let after = now();
        if after.0 <= before.0 && after.1 <= before.1 && after.2 == 0 {
            return;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "threads, descriptors, children: {before:?} before, {after:?} after"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
