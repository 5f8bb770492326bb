//! The options of `check`.

use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};
use turnwire::check;

use crate::contracts::ContractName;

/// Options of `check`.
#[derive(Debug, Group)]
pub struct CheckArgs {
    /// What to read; - is stdin, as is none
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The protocol whose contract counts
    #[arg(long, value_name = "NAME")]
    pub protocol: ContractName,

    /// Whose lines a file of plain lines holds [default: found out; both only if the host speaks before the first turn]
    #[arg(long, value_name = "SIDE")]
    pub from: Option<Side>,

    /// The version of the wire that was spoken: openmax 5 or 6 [default: 6], omp's generation 1, 2 or 3 [default: 3],
    /// openseek 1, or 2 with newer shapes of commands [default: 1]
    #[arg(long, value_name = "N")]
    pub wire: Option<u64>,

    /// The agent is the known one, with what it is known to do otherwise than its contract; splice only
    #[arg(long)]
    pub original: bool,

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
