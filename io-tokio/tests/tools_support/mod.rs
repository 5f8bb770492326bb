//! What the tests of the tools share.
#![allow(dead_code)]

use std::path::Path;
use std::time::Duration;

use turnwire::vocab::{Block, Progress, Show, ToolOutcome, ToolUpdate};
use turnwire_tokio::tools::{CancelToken, Toolbox, ToolboxConfig, run};

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

    /// The diff, with its counts, of a call that changed a file.
    pub fn diff(&self) -> (&str, u32, u32) {
        match self.updates.as_slice() {
            [
                ToolUpdate::FileChanged {
                    diff,
                    added,
                    removed,
                    ..
                },
            ] => (diff, *added, *removed),
            other => panic!("one changed file expected: {other:?}"),
        }
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

pub async fn call(tools: &Toolbox, name: &str, input: serde_json::Value) -> Ended {
    call_until(tools, name, input, CancelToken::new()).await
}

pub async fn bash(tools: &Toolbox, command: &str) -> Ended {
    call(tools, "bash", serde_json::json!({ "command": command })).await
}

pub async fn call_until(
    tools: &Toolbox,
    name: &str,
    input: serde_json::Value,
    cancel: CancelToken,
) -> Ended {
    let mut updates = Vec::new();
    let done = run(tools, name, &input.to_string(), cancel, |u| updates.push(u)).await;
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

/// A toolbox whose commands can be found again by [`alive`].
#[cfg(target_os = "linux")]
pub fn marked(root: &Path, name: &str) -> Toolbox {
    let mut config = config(root);
    config.extra_env = vec![(MARK.into(), format!("{name}-{}", std::process::id()))];
    Toolbox::new(config).expect("a toolbox")
}

#[cfg(target_os = "linux")]
const MARK: &str = "TURNWIRE_TEST_MARK";

/// How many processes that aren't dead were started by the toolbox marked so.
#[cfg(target_os = "linux")]
pub fn alive(name: &str) -> usize {
    let marked = format!("{MARK}={name}-{}", std::process::id());
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter(|entry| {
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let found = String::from_utf8_lossy(&environ)
                .split('\0')
                .any(|variable| variable == marked);
            found && !matches!(state(&entry.path()), None | Some('Z' | 'X'))
        })
        .count()
}

/// The letter of a process's state in its folder under /proc.
#[cfg(target_os = "linux")]
pub fn state(process: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}
