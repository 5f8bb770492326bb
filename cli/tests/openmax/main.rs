//! The program over the protocol openmax: the real binary, real pipes, a provider on the loopback.
//!
//! Names begin with the guarantee (`om_…`) or the case (`f03`, `p06`, …) that a test is about.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "it is for hosts of other protocols too")]
mod support;

/// What the program is told to wait with.
const DRIVER: &str = "tokio";

mod approvals;
mod cancel;
mod external;
mod hooks;
mod host;
mod input;
mod lines;
mod matrix;
mod provider;
mod reload;
mod resume;
mod skills;
mod start;
mod stream;
mod tools;
mod turns;
