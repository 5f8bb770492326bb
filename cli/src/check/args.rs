//! The options of `check`.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use turnwire::check;
use turnwire::protocol::openmax;

use crate::args::ProtocolName;

/// Options of `check`.
#[derive(Debug, Group)]
pub struct CheckArgs {
    /// What to read; - is stdin, as is none
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The protocol whose contract counts
    #[arg(long, value_name = "NAME")]
    pub protocol: ProtocolName,

    /// Whose lines a file of plain lines holds [default: found out; both only if the host speaks before the first turn]
    #[arg(long, value_name = "SIDE")]
    pub from: Option<Side>,

    /// The version of the wire that was spoken
    #[arg(long, value_name = "N", default_value = "6")]
    pub wire: Wire,

    /// For a person with the line shown; one JSON object for each finding and a last one with the summary; or one
    /// report of all files for other programs
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub format: Format,

    /// Give a verdict on every line, not only on those with findings; only with human and json
    #[arg(long)]
    pub each: bool,
}

/// Whose lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// The host's, to the agent's stdin
    Host,
    /// The agent's, from its stdout
    Agent,
    /// Both, mixed in the order they were written
    Both,
}

/// A version of openmax-stdio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wire {
    /// openmax-stdio/5
    #[value(name = "5")]
    V5,
    /// openmax-stdio/6
    #[value(name = "6")]
    V6,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a person
    Human,
    /// JSON lines
    Json,
    /// A SARIF 2.1.0 log, for code scanners
    Sarif,
    /// JUnit XML, for test reports
    Junit,
}

impl CheckArgs {
    /// Whose lines, as the reader wants to know it.
    pub fn from(&self) -> check::From {
        match self.from {
            None => check::From::Guess,
            Some(Side::Host) => check::From::Host,
            Some(Side::Agent) => check::From::Agent,
            Some(Side::Both) => check::From::Both,
        }
    }
}

impl From<Wire> for openmax::Wire {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::V5 => openmax::Wire::V5,
            Wire::V6 => openmax::Wire::V6,
        }
    }
}
