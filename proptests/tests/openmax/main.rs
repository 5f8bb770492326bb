//! openmax: its wire, its server and its client, alone and against each other.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod cases;
mod client_breaches;
mod client_kit;
mod client_laws;
mod client_lines;
mod client_matrix;
mod client_recordings;
mod client_rows;
mod client_scenes;
mod client_trio;
mod commands;
mod compaction;
mod credentials;
mod duo;
mod field;
mod holds;
mod input;
mod laws;
mod lines;
mod openmax_kit;
mod refreeze;
mod scenes;
mod session;
mod trio_kit;
mod wire;
