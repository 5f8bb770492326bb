//! The recordings of the real program.

use std::path::PathBuf;

use serde_json::Value;

/// A row of a recording.
#[derive(Clone, Debug)]
pub enum Row {
    /// Bytes of the host, with their newlines.
    Host(u64, Vec<u8>),
    /// The host closed its end.
    HostEnd(u64),
    /// A line of the agent.
    Agent(u64, String),
    /// The agent ended.
    Exit(u64),
}

/// All recordings by name.
pub fn all() -> Vec<(String, Vec<Row>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/transcripts/openmax");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the recordings are part of the project")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 84, "all recordings are there");
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, text.lines().flat_map(row).collect())
        })
        .collect()
}

fn row(line: &str) -> Vec<Row> {
    let row: Value = serde_json::from_str(line).unwrap();
    let at = row["t_ms"].as_u64().unwrap();
    let text = row["line"].as_str().unwrap_or_default();
    match row["dir"].as_str().unwrap() {
        "out" => vec![Row::Agent(at, text.into())],
        "exit" => vec![Row::Exit(at)],
        "in" => {
            let mut rows = Vec::new();
            if let Some(bytes) = row["line_b64"].as_str() {
                rows.push(Row::Host(at, base64(bytes)));
            } else if !text.is_empty() && row["bytes"].is_null() {
                rows.push(Row::Host(at, [text.as_bytes(), b"\n"].concat()));
            }
            if row["eof"] == true {
                rows.push(Row::HostEnd(at));
            }
            rows
        }
        _ => vec![],
    }
}

fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
