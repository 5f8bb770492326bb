//! The machines below the protocols: lines, JSON, server-sent events, what models send, and the session.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod dialect_cases;
mod dialect_recorded;
mod fake;
mod frame_cases;
mod frame_laws;
mod json_laws;
mod laws_session;
mod model_anthropic;
mod model_bodies;
mod model_laws;
mod model_openai;
mod model_request_laws;
mod model_requests;
mod model_scripts;
mod model_support;
mod neutral_fake;
#[path = "model_support/requests.rs"]
mod requests;
mod session_changes;
mod session_found;
mod session_goals;
mod session_guarantees;
mod session_invariants;
mod session_kit;
mod session_runs;
mod session_stories;
mod sse_cases;
mod sse_laws;
