//! Names, where a session comes from, and sessions by their transcript.

use std::fs;

use super::super::Error;
use super::*;

fn named(place: &Place) -> Store {
    let store = place.store();
    let mut writer = store.create(ID, "/p", 10).unwrap();
    writer.descend("/old \"one\".jsonl".into());
    writer.rename("Before", 11).unwrap();
    writer
        .save(&[user(1, "hello"), assistant(2, "hi")], true, 20)
        .unwrap();
    writer.rename("Behind", 30).unwrap();
    writer.save(&[user(3, "again")], true, 40).unwrap();
    store
}

#[test]
fn tw_08_a_name_is_safe_once_it_is_given_and_is_the_title() {
    let place = Place::new();
    let store = named(&place);
    let entry = store.latest("/p").unwrap().unwrap();
    assert_eq!((&*entry.title, entry.updated_at), ("Behind", 40));
    let resumed = store.resume(entry).unwrap();
    assert_eq!(resumed.name.as_deref(), Some("Behind"));
    assert_eq!(resumed.history.len(), 3);
    let text = fs::read_to_string(place.transcript()).unwrap();
    let head: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(head["parent"], "/old \"one\".jsonl");
}

/// A write that ends at any byte: all that was acknowledged before it is there, the names too.
#[test]
fn tw_08_a_cut_at_any_byte_leaves_what_was_acknowledged() {
    let place = Place::new();
    let store = named(&place);
    let whole = fs::read(place.transcript()).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in head..whole.len() {
        fs::write(place.transcript(), &whole[..length]).unwrap();
        let lines = whole[..length]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        let (name, messages) = match lines {
            1 => (None, 0),
            2 => (Some("Before"), 0),
            3 => (Some("Before"), 1),
            4 => (Some("Before"), 2),
            _ => (Some("Behind"), 2),
        };
        let entry = store.latest("/p").unwrap().unwrap();
        let resumed = store.resume(entry).unwrap();
        assert_eq!(
            (resumed.name.as_deref(), resumed.history.len()),
            (name, messages),
            "{length}"
        );
    }
}

#[test]
fn a_session_is_found_by_its_transcript_wherever_it_lies() {
    let place = Place::new();
    named(&place);
    let (store, entry) = Store::of_transcript(&place.transcript()).unwrap().unwrap();
    assert_eq!((&*entry.id, &*entry.title), (ID, "Behind"));
    drop(store.resume(entry).unwrap());
    // Elsewhere there is no index: its first line says what has to be known.
    let folder = place.folder.path().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let copy = folder.join(format!("{ID}.jsonl"));
    fs::copy(place.transcript(), &copy).unwrap();
    let (store, entry) = Store::of_transcript(&copy).unwrap().unwrap();
    assert_eq!((&*entry.project, entry.created_at), ("/p", 10));
    assert_eq!(store.resume(entry).unwrap().history.len(), 3);
    for path in ["missing.jsonl", "no.txt", ".jsonl", ""] {
        assert!(
            Store::of_transcript(&folder.join(path)).unwrap().is_none(),
            "{path}"
        );
    }
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    fs::rename(&copy, folder.join("other.jsonl")).unwrap();
    for path in ["empty.jsonl", "other.jsonl"] {
        let error = Store::of_transcript(&folder.join(path)).unwrap_err();
        assert!(matches!(error, Error::Damaged { line: 1, .. }), "{error}");
    }
}
