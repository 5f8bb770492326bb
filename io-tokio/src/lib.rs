//! The tokio driver of Turnwire: stdio, streaming HTTP, subprocess tools, timers.

pub mod tools;
