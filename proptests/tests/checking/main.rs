//! The observers, and what `check` and `spec` say by them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod agentx_corners;
mod agentx_recordings;
mod check_reader;
mod noticed;
mod noticed_agentx;
mod observer_kit;
mod observer_laws;
mod observer_recordings;
mod observer_rules;
mod observer_spec;
mod omp_corners;
#[path = "../omp/omp_kit/mod.rs"]
mod omp_kit;
mod omp_observer_laws;
mod omp_recordings;
