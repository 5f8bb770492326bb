#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use turnwire::vocab::{MessageId, Restoration};

use super::{Bounds, Snapshots};
use crate::tools::{Toolbox, ToolboxConfig};

/// A project, its tools, and a folder for what is put aside.
struct Place {
    dir: tempfile::TempDir,
    tools: Toolbox,
    kept: Snapshots,
}

impl Place {
    fn new() -> Place {
        Place::within(Bounds::default())
    }

    fn within(bounds: Bounds) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        fs::create_dir(&project).unwrap();
        Place {
            tools: Toolbox::new(ToolboxConfig::new(&project)).unwrap(),
            kept: Snapshots::at(dir.path().join("kept"), 0, bounds),
            dir,
        }
    }

    /// What another process finds, with this newest message.
    fn again(&mut self, newest: u64) {
        self.kept = Snapshots::at(self.dir.path().join("kept"), newest, Bounds::default());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tools.root().join(name)
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn aside(&self, name: &str, message: u64) -> Result<Vec<String>, String> {
        let input = format!(r#"{{"path":"{name}","content":""}}"#);
        let at = MessageId(message);
        let job = self
            .tools
            .prepare_snapshot(&self.kept, "write_file", &input, at);
        let (names, _) = job()?;
        Ok(names.iter().map(|name| String::from(&**name)).collect())
    }

    /// A call writes a file at a message.
    fn write(&self, name: &str, content: &str, message: u64) {
        self.aside(name, message).unwrap();
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn back(&self, to: u64, at: u64, dry_run: bool) -> Result<Restoration, String> {
        let (to, at) = (MessageId(to), MessageId(at));
        self.tools.prepare_restore(&self.kept, to, at, dry_run)()
    }

    fn contents(&self) -> usize {
        let folder = fs::read_dir(self.dir.path().join("kept")).unwrap();
        folder
            .filter(|entry| entry.as_ref().unwrap().file_name().len() == 64)
            .count()
    }
}

fn names(of: &[turnwire::vocab::Text]) -> Vec<&str> {
    of.iter().map(|name| &**name).collect()
}

#[test]
fn files_go_back_to_what_they_were_before_a_message_and_new_ones_go() {
    let place = Place::new();
    fs::write(place.path("a"), "one\ntwo\n").unwrap();
    place.write("a", "one\n2\nthree\n", 3);
    place.write("deep/new", "x\ny\n", 3);
    place.write("a", "last\n", 5);
    let dry = place.back(3, 6, true).unwrap();
    assert_eq!(place.read("a").unwrap(), "last\n");
    assert_eq!((dry.added, dry.removed), (2, 3));
    let done = place.back(3, 6, false).unwrap();
    assert_eq!(done, dry);
    assert_eq!(
        (names(&done.restored), names(&done.deleted)),
        (vec!["a"], vec!["deep/new"])
    );
    assert_eq!(place.read("a").unwrap(), "one\ntwo\n");
    assert_eq!(place.read("deep/new"), None);
    // There is nothing more to do.
    assert_eq!(place.back(3, 6, false).unwrap(), Restoration::default());
}

#[test]
fn one_can_go_forward_again() {
    let place = Place::new();
    fs::write(place.path("a"), "0").unwrap();
    place.write("a", "1", 1);
    place.write("a", "2", 5);
    place.back(1, 8, false).unwrap();
    assert_eq!(place.read("a").unwrap(), "0");
    // Before message 5 it was "1".
    place.back(5, 8, false).unwrap();
    assert_eq!(place.read("a").unwrap(), "1");
    // Nothing was put aside at 9 or later.
    assert_eq!(place.back(9, 9, false).unwrap(), Restoration::default());
    assert_eq!(place.read("a").unwrap(), "1");
}

#[test]
#[cfg(unix)]
fn permissions_stay_and_come_back_with_a_file_that_was_removed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    for name in ["kept", "gone"] {
        fs::write(place.path(name), "old").unwrap();
        fs::set_permissions(place.path(name), PermissionsExt::from_mode(0o750)).unwrap();
        place.aside(name, 1).unwrap();
    }
    fs::write(place.path("kept"), "new").unwrap();
    fs::remove_file(place.path("gone")).unwrap();
    place.back(1, 2, false).unwrap();
    for name in ["kept", "gone"] {
        assert_eq!(
            (place.read(name).unwrap().as_str(), mode(name)),
            ("old", 0o750)
        );
    }
}

#[test]
fn what_is_too_large_or_no_file_is_left_as_it_is_and_said() {
    let place = Place::new();
    let large = fs::File::create(place.path("large")).unwrap();
    large.set_len(17 * 1024 * 1024).unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    for name in ["large", "folder"] {
        assert_eq!(place.aside(name, 1).unwrap(), Vec::<String>::new());
    }
    let done = place.back(1, 2, false).unwrap();
    assert_eq!(names(&done.skipped), ["large", "folder"]);
    assert!(place.path("folder").is_dir());
}

#[test]
#[cfg(unix)]
fn what_leads_elsewhere_by_now_is_left_alone() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a", "new", 1);
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "theirs").unwrap();
    fs::remove_dir_all(place.path("sub")).unwrap();
    std::os::unix::fs::symlink(&outside, place.path("sub")).unwrap();
    let done = place.back(1, 2, false).unwrap();
    assert_eq!(names(&done.skipped), ["sub/a"]);
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "theirs");
}

#[test]
fn another_process_finds_it_without_the_line_that_was_being_written() {
    let mut place = Place::new();
    place.write("a", "1", 1);
    let log = place.dir.path().join("kept/log.jsonl");
    let mut text = fs::read_to_string(&log).unwrap();
    text.push_str("{\"message\":4,\"pa");
    fs::write(&log, &text).unwrap();
    place.again(3);
    place.write("b", "2", 5);
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    place.again(6);
    let done = place.back(1, 7, false).unwrap();
    assert_eq!(names(&done.deleted), ["a", "b"]);
}

#[test]
fn numbers_of_messages_that_were_lost_are_used_again() {
    let mut place = Place::new();
    fs::write(place.path("a"), "0").unwrap();
    place.write("a", "1", 7);
    // Message 7 was never saved: the next process gives its number to a prompt of its own.
    place.again(6);
    place.write("b", "2", 8);
    let done = place.back(7, 9, false).unwrap();
    assert_eq!(
        (names(&done.deleted), place.read("a").unwrap().as_str()),
        (vec!["b"], "1")
    );
    place.back(6, 9, false).unwrap();
    assert_eq!(place.read("a").unwrap(), "0");
}

#[test]
fn a_damaged_log_is_put_out_of_the_way_and_nothing_goes_back_to_before_it() {
    for text in [
        "nonsense\n",
        "{\"version\":2,\"before\":0}\n",
        "{\"version\":1,\"before\":0}\n{}\n",
    ] {
        let mut place = Place::new();
        place.write("a", "1", 1);
        fs::write(place.dir.path().join("kept/log.jsonl"), text).unwrap();
        place.again(4);
        assert!(place.back(4, 4, false).is_err(), "{text}");
        place.write("b", "2", 6);
        assert_eq!(names(&place.back(5, 7, false).unwrap().deleted), ["b"]);
        assert!(place.dir.path().join("kept/log.damaged").exists());
    }
    // A name that leads out of the folder isn't one.
    let mut place = Place::new();
    place.write("a", "1", 1);
    let line =
        r#"{"message":1,"path":"/x","was":{"content":{"sha":"../project/a","bytes":1,"mode":0}}}"#;
    let text = format!("{{\"version\":1,\"before\":0}}\n{line}\n");
    fs::write(place.dir.path().join("kept/log.jsonl"), text).unwrap();
    place.again(4);
    assert!(place.back(1, 4, false).is_err());
}

#[test]
fn tw_10_what_is_kept_is_bounded_and_older_prompts_are_refused() {
    let lines = 8;
    let bytes = 100;
    let place = Place::within(Bounds { bytes, lines });
    for message in 1..=40 {
        let content = format!("{message:0>20}");
        place.write("a", &content, message);
        assert!(place.contents() <= 6, "{}", place.contents());
    }
    assert!(
        place
            .back(20, 41, false)
            .unwrap_err()
            .contains("isn't kept")
    );
    place.back(40, 41, false).unwrap();
    assert_eq!(place.read("a").unwrap(), format!("{:0>20}", 39));
    let log = fs::read_to_string(place.dir.path().join("kept/log.jsonl")).unwrap();
    assert!(log.lines().count() <= lines + 1);
}

#[test]
fn a_content_is_kept_once() {
    let place = Place::new();
    fs::write(place.path("a"), "same").unwrap();
    fs::write(place.path("b"), "same").unwrap();
    for (name, message) in [("a", 1), ("b", 1), ("a", 2)] {
        place.aside(name, message).unwrap();
    }
    assert_eq!(place.contents(), 1);
}

#[test]
fn a_folder_that_cannot_be_made_is_said_and_a_content_that_is_gone_skips_its_file() {
    let place = Place::new();
    fs::write(place.path("a"), "old").unwrap();
    fs::write(place.dir.path().join("kept"), "a file").unwrap();
    assert!(place.aside("a", 1).is_err());
    fs::remove_file(place.dir.path().join("kept")).unwrap();
    place.write("a", "new", 1);
    let sha = crate::tools::sha_of(b"old");
    fs::write(Path::new(place.dir.path()).join("kept").join(sha), "other").unwrap();
    let done = place.back(1, 2, false).unwrap();
    assert_eq!(
        (names(&done.skipped), place.read("a").unwrap().as_str()),
        (vec!["a"], "new")
    );
}
