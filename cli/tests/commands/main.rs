//! The commands around a session: `check`, `spec`, `drive` and `demo`, as the real binary over real pipes.

// Helpers fail a test as the tests themselves do.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod check;
#[cfg(unix)]
mod drive;
#[cfg(unix)]
mod host;
mod kit;
mod reports;
mod spec;
#[cfg(unix)]
mod terminal;
