//! The same tests as in `openmax`, on the blocking driver: those in which a driver has something to do.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "not all of the tests are here")]
mod support;

/// What the program is told to wait with.
const DRIVER: &str = "blocking";

#[path = "../openmax/cancel.rs"]
mod cancel;
#[path = "../openmax/external.rs"]
mod external;
#[path = "../openmax/hooks.rs"]
mod hooks;
#[path = "../openmax/host.rs"]
mod host;
#[path = "../openmax/matrix.rs"]
mod matrix;
#[path = "../openmax/provider.rs"]
mod provider;
#[path = "../openmax/resume.rs"]
mod resume;
#[path = "../openmax/stream.rs"]
mod stream;
#[path = "../openmax/tools.rs"]
mod tools;
#[path = "../openmax/turns.rs"]
mod turns;
