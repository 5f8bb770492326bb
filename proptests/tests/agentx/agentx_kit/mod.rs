//! What the tests of this wire share: the recordings.

pub mod duo;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Who wrote a line of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Host,
    Agent,
}

/// One line of a recording.
#[derive(Clone, Debug)]
pub struct Row {
    pub from: From,
    pub line: String,
}

/// The recordings of the real program: a name, and the lines of both sides.
pub fn recordings() -> Vec<(String, Vec<Row>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/transcripts/claude");
    let mut found: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect();
    found.sort();
    assert_eq!(found.len(), 69, "{}", folder.display());
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let rows = text.lines().filter_map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let from = match row["dir"].as_str().unwrap() {
                "in" => From::Host,
                "out" => From::Agent,
                _ => return None,
            };
            let line = row["line"].as_str().unwrap().to_owned();
            Some(Row { from, line })
        });
        (name, rows.collect())
    };
    found.into_iter().map(read).collect()
}
