//! The program `turnwire`: arguments, settings and trust. Everything else is in the libraries.
//!
//! Exit codes: the command's own (see the protocol's page), 2 for bad arguments or settings and for
//! a session that can't go on, 3 for a project that isn't trusted. Where it stands for another program, that one's.

mod app;
mod args;
mod below;
mod binding;
mod check;
mod contracts;
mod drive;
mod export;
mod external;
mod folders;
mod foreign;
mod freeze;
mod guard;
mod hooks;
mod ids;
mod keep;
mod logs;
mod mcp;
mod media;
mod object;
mod permits;
mod protocols;
mod registry;
mod safe;
mod say;
mod session;
mod sessions;
mod settings;
mod skills;
mod spec;
mod start;
mod trust;

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(app::run())
}
