//! The same tests as in `omp`, on the blocking driver: those in which a driver has something to do.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "not all of the tests are here")]
mod support;

/// What the program is told to wait with.
const DRIVER: &str = "blocking";

#[path = "../omp/admission.rs"]
mod admission;
#[path = "../omp/cancel.rs"]
mod cancel;
#[path = "../omp/frames.rs"]
mod frames;
#[path = "../omp/host.rs"]
mod host;
#[path = "../omp/queues.rs"]
mod queues;
#[path = "../omp/sessions.rs"]
mod sessions;
#[path = "../omp/subagents.rs"]
mod subagents;
#[path = "../omp/tools.rs"]
mod tools;
#[path = "../omp/turns.rs"]
mod turns;
