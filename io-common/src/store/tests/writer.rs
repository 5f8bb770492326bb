//! Saving, and going on: order, locks, torn lines, damage, failure, permissions.

use std::fs;
use std::io::Write;

use super::super::{Entry, Error};
use super::*;

fn ids(history: &[Arc<Message>]) -> Vec<u64> {
    history.iter().map(|message| message.id.0).collect()
}

/// What goes on from the store; the lock is given back.
#[track_caller]
fn resumed(store: &Store) -> (Vec<u64>, u64) {
    let entry = store.latest("/p").unwrap().unwrap();
    let resumed = store.resume(entry).unwrap();
    (ids(&resumed.history), resumed.torn)
}

#[track_caller]
fn fault(store: &Store) -> Error {
    let entry = store.latest("/p").unwrap().unwrap();
    store.resume(entry).unwrap_err()
}

/// A session of two turns.
fn two_turns(place: &Place) -> Store {
    let store = place.store();
    let mut writer = store.create(ID, "/p", 10).unwrap();
    writer
        .save(&[user(1, "hello"), assistant(2, "hi")], true, 20)
        .unwrap();
    writer
        .save(&[user(3, "again"), assistant(4, "yes")], true, 30)
        .unwrap();
    store
}

#[test]
fn om_02_what_was_saved_is_there_when_the_session_goes_on() {
    let place = Place::new();
    let store = place.store();
    assert!(store.latest("/p").unwrap().is_none());
    let mut writer = store.create(ID, "/p", 10).unwrap();
    assert!(!store.folder().exists(), "nothing was said yet");
    writer.save(&[], true, 11).unwrap();
    assert!(
        !store.folder().exists(),
        "a turn without messages is nothing"
    );
    let first = [user(1, "hello"), call(2, 1, "{\"command\":\"ls\"}")];
    writer.save(&first, true, 20).unwrap();
    drop(writer);
    let entry = store.latest("/p").unwrap().unwrap();
    assert_eq!(
        entry,
        Entry {
            id: ID.into(),
            project: "/p".into(),
            title: "hello".into(),
            created_at: 10,
            updated_at: 20,
        }
    );
    let mut going = store.resume(entry).unwrap();
    assert_eq!(going.history, first);
    assert_eq!(going.torn, 0);
    going.writer.save(&[user(3, "more")], true, 30).unwrap();
    drop(going);
    let entry = store.latest("/p").unwrap().unwrap();
    assert_eq!(
        (entry.created_at, entry.updated_at, &*entry.title),
        (10, 30, "hello")
    );
    assert_eq!(resumed(&store), (vec![1, 2, 3], 0));
    assert!(store.latest("/other").unwrap().is_none());
}

#[test]
fn om_30_a_turn_that_is_saved_piece_by_piece_is_there_once_and_in_order() {
    let place = Place::new();
    let store = place.store();
    let mut writer = store.create(ID, "/p", 0).unwrap();
    let turn = [
        user(5, "go"),
        assistant(2, "done"),
        user(3, "not yet"),
        assistant(4, "now"),
    ];
    writer.save(&turn[..1], false, 1).unwrap();
    writer.save(&turn[..3], false, 2).unwrap();
    writer.save(&turn, true, 3).unwrap();
    writer.save(&[user(6, "next")], true, 4).unwrap();
    drop(writer);
    assert_eq!(resumed(&store).0, [5, 2, 3, 4, 6]);
}

#[test]
fn om_04_a_session_has_one_writer_and_keeps_it_between_turns() {
    let place = Place::new();
    let store = place.store();
    let mut writer = store.create(ID, "/p", 0).unwrap();
    writer.save(&[user(1, "a")], true, 1).unwrap();
    let text = fault(&store).to_string();
    assert!(text.contains("open in another process"), "{text}");
    drop(writer);
    let entry = store.latest("/p").unwrap().unwrap();
    let going = store.resume(entry).unwrap();
    assert!(matches!(fault(&store), Error::Owned(id) if id == ID));
    drop(going);
    assert_eq!(resumed(&store).0, [1]);
}

#[test]
fn om_04_only_a_line_without_its_end_is_cut_off() {
    let place = Place::new();
    let store = two_turns(&place);
    let whole = fs::read(place.transcript()).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..whole.len() {
        fs::write(place.transcript(), &whole[..length]).unwrap();
        if length < head {
            let text = fault(&store).to_string();
            assert!(text.contains(".jsonl:1: damaged"), "{text}");
            continue;
        }
        let lines = whole[..length]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let safe = whole[..length]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap()
            + 1;
        let (found, torn) = resumed(&store);
        assert_eq!(found, [1, 2, 3, 4][..lines - 1]);
        assert_eq!(torn, (length - safe) as u64);
        assert_eq!(fs::read(place.transcript()).unwrap(), &whole[..safe]);
    }
    // What comes next stands behind whole lines alone.
    let entry = store.latest("/p").unwrap().unwrap();
    let mut going = store.resume(entry).unwrap();
    going.writer.save(&[user(9, "on")], true, 40).unwrap();
    drop(going);
    assert_eq!(resumed(&store), (vec![1, 2, 3, 9], 0));
}

#[test]
fn om_04_a_damaged_transcript_is_refused_and_left_alone() {
    let place = Place::new();
    let store = two_turns(&place);
    let whole = fs::read_to_string(place.transcript()).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let other = lines[0].replace(ID, "other");
    for (text, want) in [
        (String::new(), ":1: damaged: it has no first line"),
        (lines[1..].concat(), ":1: damaged: it has no first line"),
        (
            other + lines[1],
            ":1: damaged: it is of the session \"other\"",
        ),
        (
            whole.clone() + lines[0],
            ":6: damaged: it begins a second time",
        ),
        (
            whole.clone() + lines[2],
            ":6: damaged: message 2 is there twice",
        ),
        (whole.replace("\"id\":3", "\"id\":\"3\""), ":4: damaged: "),
        (
            whole.replacen("\"text\":\"hi\"", "\"text\":\"hi", 1),
            ":3: damaged: ",
        ),
        (whole.clone() + "\n", ":6: damaged: "),
        (whole.clone() + "rubbish\n", ":6: damaged: "),
        (
            whole.replace("\"version\":1", "\"version\":2"),
            ":1: damaged: version 2",
        ),
    ] {
        fs::write(place.transcript(), &text).unwrap();
        let said = fault(&store).to_string();
        assert!(said.contains(want), "{want:?} isn't in {said}");
        assert!(!said.contains('\n'));
        assert_eq!(fs::read_to_string(place.transcript()).unwrap(), text);
    }
    fs::remove_file(place.transcript()).unwrap();
    let said = fault(&store).to_string();
    assert!(said.contains("the transcript is gone"), "{said}");
}

#[test]
fn om_04_a_damaged_index_is_refused_and_left_alone() {
    let place = Place::new();
    let store = two_turns(&place);
    let whole = fs::read_to_string(place.path("index.json")).unwrap();
    for text in [
        String::new(),
        whole[..whole.len() / 2].to_owned(),
        whole.replace("\"version\":1", "\"version\":2"),
        whole.replace(ID, "../../x"),
        whole.replace(ID, ""),
        whole.replace("\"title\"", "\"titel\""),
        whole.clone() + "x",
    ] {
        fs::write(place.path("index.json"), &text).unwrap();
        let said = store.latest("/p").unwrap_err().to_string();
        assert!(
            said.contains("index.json") && said.contains("damaged"),
            "{said}"
        );
        let mut writer = store.create("another", "/p", 0).unwrap();
        assert!(writer.save(&[user(1, "x")], true, 1).is_err());
        assert_eq!(fs::read_to_string(place.path("index.json")).unwrap(), text);
        drop(writer);
        fs::remove_file(place.path("another.jsonl")).unwrap();
    }
    fs::remove_file(place.path("index.json")).unwrap();
    fs::create_dir(place.path("index.json")).unwrap();
    assert!(matches!(store.latest("/p"), Err(Error::Io { .. })));
}

#[test]
fn the_session_saved_last_is_the_latest_whatever_the_clock_says() {
    let place = Place::new();
    let store = place.store();
    let mut one = store.create("one", "/p", 100).unwrap();
    let mut two = store.create("two", "/p", 200).unwrap();
    let mut other = store.create("three", "/q", 300).unwrap();
    let latest = || store.latest("/p").unwrap().unwrap().id;
    one.save(&[user(1, "a")], true, 100).unwrap();
    two.save(&[user(1, "b")], true, 200).unwrap();
    other.save(&[user(1, "c")], true, 300).unwrap();
    assert_eq!(latest(), "two");
    one.save(&[user(2, "d")], true, 150).unwrap();
    assert_eq!(latest(), "one");
    let all: Vec<String> = store.list().unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(all, ["two", "three", "one"]);
}

#[test]
fn a_title_is_48_characters_of_the_first_prompt() {
    let place = Place::new();
    let store = place.store();
    let mut writer = store.create(ID, "/p", 0).unwrap();
    let long = "é🦀\n".repeat(20);
    writer
        .save(&[assistant(1, "no"), user(2, &long), user(3, "x")], true, 1)
        .unwrap();
    writer.save(&[user(4, "second")], true, 2).unwrap();
    let title = store.latest("/p").unwrap().unwrap().title;
    assert_eq!(title, "é🦀\n".repeat(16));
    assert_eq!(title.chars().count(), 48);
}

#[test]
fn sessions_that_are_saved_at_the_same_time_lose_nothing() {
    let place = Place::new();
    let store = place.store();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let store = &store;
            scope.spawn(move || {
                let id = format!("s-{number}");
                let mut writer = store.create(&id, "/p", 0).unwrap();
                for turn in 1..=5 {
                    writer.save(&[user(turn, &id)], true, turn).unwrap();
                }
            });
        }
    });
    let all = store.list().unwrap();
    assert_eq!(all.len(), 8);
    for entry in all {
        assert_eq!(entry.updated_at, 5);
        assert_eq!(ids(&store.resume(entry).unwrap().history), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn tw_08_what_could_not_be_saved_goes_out_with_the_next_turn() {
    let place = Place::new();
    let store = place.store();
    fs::write(place.folder.path().join("data"), "a file in the way").unwrap();
    let mut writer = store.create(ID, "/p", 0).unwrap();
    for (id, whole) in [(1, false), (2, true), (3, true)] {
        let said = writer.save(&[user(id, "x")], whole, id).unwrap_err();
        assert!(matches!(said, Error::Io { .. }), "{said}");
    }
    fs::remove_file(place.folder.path().join("data")).unwrap();
    // A piece of a turn that wasn't saved is the caller's; what was whole isn't.
    writer.save(&[user(4, "y")], true, 4).unwrap();
    drop(writer);
    assert_eq!(resumed(&store).0, [2, 3, 4]);
}

#[test]
fn tw_08_a_transcript_that_something_else_changed_is_not_written_on() {
    let place = Place::new();
    let store = place.store();
    let mut writer = store.create(ID, "/p", 0).unwrap();
    writer.save(&[user(1, "x")], true, 1).unwrap();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(place.transcript())
        .unwrap();
    file.write_all(b"?").unwrap();
    let said = writer
        .save(&[user(2, "x")], true, 2)
        .unwrap_err()
        .to_string();
    assert!(said.contains("something else has changed it"), "{said}");
    fs::remove_file(place.transcript()).unwrap();
    assert!(writer.save(&[user(3, "x")], true, 3).is_err());
}

#[test]
fn ids_dont_lead_out_of_the_folder() {
    let place = Place::new();
    for id in ["", "..", "a/b", "a\\b", "a.b", "é", &"a".repeat(65)] {
        assert!(matches!(
            place.store().create(id, "/p", 0),
            Err(Error::BadId(_))
        ));
    }
}

#[cfg(unix)]
#[test]
fn the_files_are_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    two_turns(&place);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.path("")), 0o700);
    assert_eq!(mode(place.folder.path().join("data")), 0o700);
    for entry in fs::read_dir(place.path("")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }
}
