//! What the tests of the tools share.

use std::path::Path;
use std::time::Duration;

use turnwire::vocab::{Block, Progress, Show, ToolOutcome, ToolUpdate};
use turnwire_io::tools::{Toolbox, ToolboxConfig};

use crate::{Cancel, Driver};

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    pub outcome: ToolOutcome,
    pub text: String,
    pub show: Option<Box<Show>>,
    pub updates: Vec<ToolUpdate>,
}

impl Ended {
    /// The text, of a call that went well.
    pub fn ok(self) -> String {
        assert_eq!(self.outcome, ToolOutcome::Ok, "{}", self.text);
        self.text
    }

    /// The text, of a call that failed.
    pub fn failed(self) -> String {
        assert_eq!(self.outcome, ToolOutcome::Failed, "{}", self.text);
        self.text
    }

    /// All text of the progress updates.
    pub fn progress(&self) -> String {
        let mut all = String::new();
        for update in &self.updates {
            if let ToolUpdate::Progress(Progress::Append(blocks)) = update {
                all.extend(blocks.iter().map(text_of));
            }
        }
        all
    }

    pub fn meta(&self, name: &str) -> Option<&str> {
        let show = self.show.as_ref()?;
        show.meta
            .iter()
            .find(|(n, _)| &**n == name)
            .map(|(_, value)| &**value)
    }
}

fn text_of(block: &Block) -> &str {
    match block {
        Block::Text(text) => text,
        other => panic!("only text expected: {other:?}"),
    }
}

pub fn config(root: &Path) -> ToolboxConfig {
    let mut config = ToolboxConfig::new(root);
    config.grace = Duration::from_millis(500);
    config
}

pub fn toolbox(root: &Path) -> Toolbox {
    Toolbox::new(config(root)).expect("a toolbox")
}

/// Runs a call to its end.
pub fn call<D: Driver>(tools: &Toolbox, name: &str, input: serde_json::Value) -> Ended {
    call_until::<D>(tools, name, input, &Cancel::never())
}

/// Runs a command to its end.
pub fn bash<D: Driver>(tools: &Toolbox, command: &str) -> Ended {
    call::<D>(tools, "bash", serde_json::json!({ "command": command }))
}

/// Runs a call until it ends or is stopped.
///
/// # Panics
/// If the end isn't one.
pub fn call_until<D: Driver>(
    tools: &Toolbox,
    name: &str,
    input: serde_json::Value,
    cancel: &Cancel,
) -> Ended {
    let mut updates = Vec::new();
    let done = D::tool(tools, name, &input.to_string(), cancel, &mut |u| {
        updates.push(u)
    });
    match done {
        ToolUpdate::Done {
            outcome,
            content,
            show,
        } => {
            let text = content.iter().map(text_of).collect();
            Ended {
                outcome,
                text,
                show,
                updates,
            }
        }
        other => panic!("a call's end expected: {other:?}"),
    }
}

/// The letter of a process's state in its folder under /proc.
#[cfg(target_os = "linux")]
pub fn state(process: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
