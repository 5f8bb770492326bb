//! Every input that fuzzers start from, and every one that once found something, is replayed.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use turnwire_proptests::fuzz::TARGETS;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds");
const BINARIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/targets");

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap();
    let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.unwrap().path())).collect()
}

#[test]
fn every_target_has_a_binary_and_seeds_and_nothing_else_has() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len());
    assert_eq!(names(BINARIES), targets);
    assert_eq!(names(SEEDS), targets);
}

#[test]
fn every_seed_finds_nothing() {
    let (mut seeds, mut bytes) = (0, 0);
    let mut found = Vec::new();
    for &(name, target) in TARGETS {
        let mut files: Vec<PathBuf> = fs::read_dir(format!("{SEEDS}/{name}"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has seeds");
        for file in files {
            let data = fs::read(&file).unwrap();
            seeds += 1;
            bytes += data.len();
            found.extend(
                target(&data)
                    .err()
                    .map(|broken| format!("{}: {broken}", file.display())),
            );
        }
    }
    assert!(
        found.is_empty(),
        "{} of {seeds}:\n{}",
        found.len(),
        found.join("\n")
    );
    assert!(
        seeds >= 200 && bytes < 3 << 20,
        "{seeds} seeds of {bytes} bytes"
    );
}
