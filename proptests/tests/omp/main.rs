//! omp: its wire, its server and its client, alone and against each other.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod client_laws;
mod client_lines;
mod client_questions;
mod client_recordings;
mod client_scenes;
mod codec;
mod commands;
mod frames;
mod live;
mod omp_client_kit;
mod omp_kit;
mod omp_server_kit;
mod questions;
mod scenes;
mod streams;
mod subagents;
mod wire;
