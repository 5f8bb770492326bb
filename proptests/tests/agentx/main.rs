//! agentx and claude: their wire.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod agentx_client_kit;
mod agentx_kit;
mod client_laws;
mod client_questions;
mod client_recordings;
mod client_scenes;
mod credentials;
mod permissions;
mod prompts;
mod recordings;
mod server;
mod server_answers;
mod server_controls;
mod server_earlier;
mod server_imports;
mod server_recordings;
mod server_scenes;
mod server_streams;
mod spec;
mod strict;
mod wire;
