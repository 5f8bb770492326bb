//! Hooks that a driver runs: command lines that look at what a session is about to do, and may object.
//!
//! A hook is one line for `sh`, run in the project's folder, in a process group of its own that is gone
//! before its answer counts, with a listed environment. It reads one line of JSON from its standard input
//! and answers by its exit code and its standard output (docs/hooks.md says how).
//!
//! How long a hook may take is the session's to decide: it stops the run, and the group is ended.

mod answer;
mod payload;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use turnwire::vocab::{HookFacts, HookPoint, HookReply, RawJson, Text};

use crate::process::env::Lists;
use crate::process::{self, Exit, Terms};
use crate::tools::ToolboxConfig;

pub use answer::{ANSWER_BYTES, TEXT_BYTES};

/// Bytes of a hook's stderr that are kept, to say how it failed.
const STDERR_BYTES: usize = 4 * 1024;

/// One hook's command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// The hook's name in the session's configuration (`HookSpec::key`).
    pub key: String,
    /// A line for `sh -c`.
    pub line: String,
    /// Whether it only looks on. Such a hook has no say: every exit but 0 is a failure, and its output isn't read.
    pub observe: bool,
}

/// The hooks of one session, and what they are run with.
#[derive(Clone, Debug)]
pub struct HooksConfig {
    /// The hooks. Of two with one name the later one counts.
    pub commands: Vec<HookCommand>,
    /// The folder they run in.
    pub root: PathBuf,
    /// The project, as hooks are told of it.
    pub project: String,
    /// The session's id, as hooks are told of it.
    pub session: String,
    /// Environment variables passed on, besides a short list of harmless ones; nothing else is.
    pub env: Vec<String>,
    /// Variables that hold keys: never passed on.
    pub deny_env: Vec<String>,
    /// Variables set for them; they win over inherited ones.
    pub extra_env: Vec<(String, String)>,
    /// How long a hook that is stopped may take to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
}

impl HooksConfig {
    /// Hooks that see of the world what the commands of these tools see.
    pub fn beside(tools: &ToolboxConfig, session: &str, commands: Vec<HookCommand>) -> Self {
        HooksConfig {
            commands,
            root: tools.root.clone(),
            project: tools.root.to_string_lossy().into_owned(),
            session: session.to_owned(),
            env: tools.env.clone(),
            deny_env: tools.deny_env.clone(),
            extra_env: tools.extra_env.clone(),
            grace: tools.grace,
        }
    }
}

/// The hooks of one session. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct Shared {
    config: HooksConfig,
    by_key: BTreeMap<String, usize>,
}

impl Hooks {
    /// Hooks to run. Nothing is looked at yet: a line that can't be run fails when its time comes.
    pub fn new(config: HooksConfig) -> Self {
        let keys = config.commands.iter().enumerate();
        let by_key = keys.map(|(at, hook)| (hook.key.clone(), at)).collect();
        Hooks {
            shared: Some(Arc::new(Shared { config, by_key })),
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Hooks::default()
    }

    /// Makes a run ready: it owns what it needs. `None` if there is no hook of that name.
    pub fn prepare(
        &self,
        key: &str,
        point: HookPoint,
        facts: &HookFacts,
        tool: Option<(&str, &RawJson)>,
    ) -> Option<HookJob> {
        let shared = self.shared.clone()?;
        let at = *shared.by_key.get(key)?;
        let told = payload::Told {
            point,
            hook: key,
            session: &shared.config.session,
            project: &shared.config.project,
        };
        let payload = payload::write(&told, facts, tool);
        Some(HookJob {
            shared,
            at,
            point,
            payload,
        })
    }
}

/// A run that is ready to start.
#[derive(Debug)]
pub struct HookJob {
    shared: Arc<Shared>,
    at: usize,
    point: HookPoint,
    payload: Vec<u8>,
}

impl HookJob {
    /// What to start, with all three pipes. It must lead a process group of its own.
    pub fn command(&self) -> Command {
        let config = &self.shared.config;
        let lists = Lists {
            pass: &config.env,
            deny: &config.deny_env,
            extra: &config.extra_env,
        };
        let hook = config.commands.get(self.at);
        // Unreachable: the place was looked up in this very list, which doesn't change. `false` fails, like a hook.
        let line = hook.map_or("false", |hook| &hook.line);
        process::shell("sh", line, &config.root, lists, Stdio::piped())
    }

    /// What it is told: one line, the newline included. Its stdin is closed behind it.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// How it is ended when it is stopped. It has no limit of its own.
    pub fn terms(&self) -> Terms {
        Terms {
            limit: None,
            grace: self.shared.config.grace,
        }
    }

    /// What its run amounts to: what it answered, `Ok(None)` if it was stopped, an error if it couldn't be run.
    ///
    /// # Errors
    /// It failed, and how; a run that was stopped is one of those.
    pub fn outcome(&self, ran: io::Result<Option<Ended>>) -> Result<HookReply, Text> {
        let hook = self.shared.config.commands.get(self.at);
        let observe = hook.is_some_and(|hook| hook.observe);
        match ran {
            Ok(None) => Err("it was stopped".into()),
            Ok(Some(ended)) => answer::read(self.point, observe, &ended).map_err(Text::from),
            Err(error) => Err(format!("can't run it: {error}").into()),
        }
    }
}

/// A hook that has ended by itself.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// Its answer.
    pub stdout: Kept,
    /// Its complaints.
    pub stderr: Kept,
}

/// The first bytes of a stream: a hook that says too much isn't blocked by it.
#[derive(Debug)]
pub struct Kept {
    bytes: Vec<u8>,
    limit: usize,
    /// Whether there were more.
    over: bool,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Kept {
            bytes: Vec::new(),
            limit,
            over: false,
        }
    }

    /// For a hook's stdout.
    pub fn out() -> Self {
        Kept::new(ANSWER_BYTES)
    }

    /// For its stderr.
    pub fn err() -> Self {
        Kept::new(STDERR_BYTES)
    }

    /// Takes the next bytes, as far as there is room.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.over |= bytes.len() > room;
        self.bytes
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// As text, trimmed; what is no UTF-8 becomes U+FFFD.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}
