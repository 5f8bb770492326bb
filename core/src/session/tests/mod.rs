//! Tests of the session: the traces of the design, and rows like them for what they don't touch.

#![allow(clippy::wildcard_enum_match_arm)]

mod act;
mod beside;
mod changes;
mod compaction;
mod edges;
mod history;
mod limits;
mod nested;
mod own;
mod rows;
mod told;
mod trace;
mod traces;
mod world;

pub(super) use world::info;
