//! The program over the protocol omp: the real binary, real pipes, a provider on the loopback.
//!
//! Names begin with the guarantee (`omp_…`) that a test is about.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "it is for hosts of other protocols too")]
mod support;

/// What the program is told to wait with.
const DRIVER: &str = "tokio";

mod admission;
mod cancel;
mod foreign;
mod frames;
mod host;
mod queues;
mod sessions;
mod subagents;
mod tools;
mod turns;
