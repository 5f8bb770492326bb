//! openseek: its wire, its tables, its names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod client_kit;
mod client_scenes;
mod commands;
mod events;
mod kit;
mod names;
mod observer;
mod server;
mod server_mcp;
mod server_scenes;
mod tables;

/// The lines of a file, one a record.
fn lines(name: &str) -> Vec<String> {
    let path = format!("{}/fixtures/openseek/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("part of the project");
    text.lines().map(str::to_owned).collect()
}
