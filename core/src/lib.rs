//! Turnwire: one agent-session engine, as pure state machines, for five wire protocols of coding agents.
#![no_std]

extern crate alloc;

mod base64;
pub mod check;
pub mod frame;
pub mod json;
pub mod model;
pub mod protocol;
pub mod redact;
pub mod session;
pub mod vocab;
