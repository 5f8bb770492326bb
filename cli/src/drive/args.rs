//! The options of `drive` and `demo`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as Group;

use crate::protocols::ServedName;

/// Options of `drive`.
#[derive(Debug, Group)]
pub struct DriveArgs {
    /// The protocol that the agent speaks
    #[arg(value_name = "PROTOCOL")]
    pub protocol: ServedName,

    /// What to ask, one turn each; - is all of stdin, as is none
    #[arg(value_name = "PROMPT")]
    pub prompts: Vec<String>,

    /// A file that holds the prompt; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "prompts")]
    pub prompt_file: Option<PathBuf>,

    /// Say this while the first prompt is being answered, as soon as the agent listens; may be given again
    #[arg(long, value_name = "TEXT")]
    pub steer: Vec<String>,

    /// Say this when the answer to the first prompt would end; may be given again
    #[arg(long, value_name = "TEXT")]
    pub follow_up: Vec<String>,

    /// A JSON file of tools and addresses that programs here serve to the agent; see docs/driving.md
    #[arg(long, value_name = "FILE")]
    pub offer: Option<PathBuf>,

    /// Tell claude this as it is greeted: a JSON object of members of its initialize, such as systemPrompt
    #[arg(long, value_name = "JSON")]
    pub initialize: Option<String>,

    /// Write what happens as JSON lines, the same for every protocol
    #[arg(long)]
    pub json: bool,

    /// The agent's command
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Options of `demo`.
#[derive(Debug, Group)]
pub struct DemoArgs {
    /// The protocol to speak
    #[arg(value_name = "PROTOCOL", default_value = "openmax")]
    pub protocol: ServedName,

    /// What to ask, one turn each [default: What is in this folder?]
    #[arg(value_name = "PROMPT")]
    pub prompts: Vec<String>,

    /// Write what happens as JSON lines
    #[arg(long)]
    pub json: bool,
}
