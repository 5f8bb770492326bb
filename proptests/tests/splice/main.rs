//! splice: its wire, its tables, its observer, its recordings.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod client;
mod events;
mod inputs;
mod kit;
mod observer;
mod recordings;
mod redact;
mod server;
mod server_calls;
mod tables;

use std::path::PathBuf;

use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/transcripts/splice"
    ))
}

/// One recording of the known agent.
#[derive(Clone, Debug)]
struct Recording {
    name: String,
    bytes: Vec<u8>,
    host: Vec<String>,
    agent: Vec<String>,
    exit: i64,
}

/// All of them, by name.
fn recordings() -> Vec<Recording> {
    let index = std::fs::read(folder().join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    let records = index["records"].as_object().unwrap();
    let all: Vec<Recording> = records
        .iter()
        .map(|(name, about)| {
            let bytes = std::fs::read(folder().join(format!("{name}.jsonl"))).unwrap_or_default();
            let rows: Vec<Value> = std::str::from_utf8(&bytes)
                .unwrap()
                .lines()
                .map(|row| serde_json::from_str(row).unwrap())
                .collect();
            let lines = |dir: &str| {
                let of = rows.iter().filter(|row| row["dir"] == dir);
                of.map(|row| row["line"].as_str().unwrap().to_owned())
                    .collect()
            };
            Recording {
                name: name.clone(),
                host: lines("in"),
                agent: lines("out"),
                exit: about["exit"].as_i64().unwrap(),
                bytes,
            }
        })
        .collect();
    assert!(all.len() > 60, "the folder of recordings is whole");
    all
}
