//! What is left behind.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use turnwire_io::jobs::{JobPlace, MOST_RECORDS};

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

/// One test at a time: what one of them leaves is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// A thousand sessions leave no thread, no descriptor and no child.
pub fn a_thousand_sessions_leave_no_thread_no_descriptor_and_no_child<D: Driver>() {
    leaves_nothing(
        || (0..=2).for_each(|number| session::<D>(number * 50)),
        || (1..=1000).for_each(session::<D>),
    );
}

/// A session of so many times twenty jobs, some of which are stopped with it.
fn jobs<D: Driver>(times: u32) {
    let call = r#"  call bash {"command":"echo hi","background":true}"#;
    let calls = [call; 20].join("\n");
    let rig = Rig::start_openseek::<D>(RigOptions {
        jobs: Some(|folder| JobPlace::kept(folder.join("jobs"), "1").unwrap()),
        ..RigOptions::script(&format!(
            "reply when prompt \"last\" and step 1\n  call bash {{\"command\":\"sleep 300\",\"background\":true}}\n\
             reply when prompt \"some\" and step 1\n{calls}\nreply\n  say: Done.\n"
        ))
    });
    for _ in 0..times {
        rig.say(r#"{"command":"prompt","text":"some"}"#);
        rig.wait_for("agent_finished");
        // As many as that may run at once, and no more.
        let begun = Instant::now();
        loop {
            rig.say(r#"{"command":"jobs_snapshot","request_id":"j"}"#);
            let snapshot = rig.wait_for("jobs_snapshot");
            let jobs = snapshot["jobs"].as_array().unwrap();
            if jobs.iter().all(|job| job["state"]["kind"] == "exited") {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{snapshot}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    rig.say(r#"{"command":"prompt","text":"last"}"#);
    rig.wait_for("agent_finished");
    let kept = std::fs::read_dir(rig.path("jobs/1")).unwrap().count();
    assert!(kept <= 2 * (MOST_RECORDS + 1), "{kept} files");
    rig.close_input();
    assert_eq!(rig.finish().0, 0);
}

/// A thousand jobs leave no thread, no descriptor and no child, and no more files than are kept.
pub fn a_thousand_jobs_leave_no_thread_no_descriptor_and_no_child<D: Driver>() {
    // Sessions of so few turns that their windows hold them.
    leaves_nothing(|| jobs::<D>(1), || (0..10).for_each(|_| jobs::<D>(5)));
}

/// What comes first may make what stays for good.
fn leaves_nothing(first: impl FnOnce(), then: impl FnOnce()) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    first();
    let now = || (count("task"), count("fd"), children());
    let before = now();
    then();
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
