//! The same tests as in `agentx`, on the blocking driver: those in which a driver has something to do.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "not all of the tests are here")]
mod support;

/// What the program is told to wait with.
const DRIVER: &str = "blocking";

#[path = "../agentx/asks.rs"]
mod asks;
#[path = "../agentx/attachments.rs"]
mod attachments;
#[path = "../agentx/ends.rs"]
mod ends;
#[path = "../agentx/matrix.rs"]
mod matrix;
#[path = "../agentx/providers.rs"]
mod providers;
#[path = "../agentx/turns.rs"]
mod turns;
