//! Lines of omp for tests: one of each kind, and the recordings of the real program.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail, and each uses what it needs"
)]

use std::path::PathBuf;

use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");

fn lines(name: &str) -> Vec<String> {
    let text =
        std::fs::read_to_string(format!("{FIXTURES}/omp/{name}")).expect("part of the project");
    text.lines().map(str::to_owned).collect()
}

/// A line of a host of each kind, with every member.
pub fn host_lines() -> Vec<String> {
    lines("host.jsonl")
}

/// A line of an agent of each kind, with every member.
pub fn agent_lines() -> Vec<String> {
    lines("agent.jsonl")
}

/// A row of a recording.
#[derive(Clone, Debug)]
pub enum Row {
    /// A line of the host, or several.
    Host(String),
    /// The host closed its end.
    HostEnd,
    /// A line of the agent.
    Agent(String),
    /// The agent ended.
    Exit(i64),
}

/// All recordings by name, as files.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(format!("{FIXTURES}/transcripts/omp"))
        .expect("the recordings are part of the project")
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("codec-vectors.jsonl"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 29, "all recordings are there");
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect()
}

/// All recordings by name.
pub fn recordings() -> Vec<(String, Vec<Row>)> {
    let rows = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.lines().filter_map(row).collect()
    };
    files()
        .into_iter()
        .map(|(name, bytes)| (name, rows(bytes)))
        .collect()
}

fn row(line: &str) -> Option<Row> {
    let row: Value = serde_json::from_str(line).unwrap();
    let text = row["line"].as_str();
    match (row["dir"].as_str()?, text) {
        ("in", Some(text)) => Some(Row::Host(text.into())),
        ("in", None) => row["eof"].as_bool()?.then_some(Row::HostEnd),
        ("out", Some(text)) => Some(Row::Agent(text.into())),
        ("out", None) => Some(Row::Exit(row["exit"].as_i64()?)),
        _ => None,
    }
}

/// The vectors of the frame codec.
pub fn codec_vectors() -> Vec<Value> {
    let path = format!("{FIXTURES}/transcripts/omp/codec-vectors.jsonl");
    let text = std::fs::read_to_string(path).expect("part of the project");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
