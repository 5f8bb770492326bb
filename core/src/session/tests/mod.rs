//! Tests of the session: the traces, and a table of cases for what they don't touch.

#![allow(clippy::wildcard_enum_match_arm)]

mod trace;
mod traces;
mod world;
