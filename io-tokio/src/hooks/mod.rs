//! Hooks that the driver runs: command lines that look at what a session is about to do, and may object.
//!
//! A hook is one line for `sh`, run in the project's folder, in a process group of its own that is gone
//! before its answer counts, with a listed environment. It reads one line of JSON from its standard input
//! and answers by its exit code and its standard output (docs/hooks.md says how).
//!
//! How long a hook may take is the session's to decide: it stops the run, and the group is ended.

mod answer;
mod payload;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use turnwire::vocab::{HookFacts, HookPoint, HookReply, RawJson, Text};

use crate::process::env::{self, Lists};
use crate::process::group::{Exit, Group};
use crate::process::{self, Terms};
use crate::tools::{CancelToken, ToolboxConfig};

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
    pub(crate) fn prepare(
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
pub(crate) struct HookJob {
    shared: Arc<Shared>,
    at: usize,
    point: HookPoint,
    payload: Vec<u8>,
}

impl HookJob {
    /// Runs it. When this returns, no process of its group is left. Dropped, its group is killed.
    ///
    /// `Err`: it failed, and how; a run that was stopped is one of those.
    pub(crate) async fn run(self, stop: &CancelToken) -> Result<HookReply, Text> {
        let HookJob {
            shared,
            at,
            point,
            payload,
        } = self;
        let config = &shared.config;
        let Some(hook) = config.commands.get(at) else {
            return Err("there is no such hook".into());
        };
        if stop.is_cancelled() {
            return Err("it was stopped".into());
        }
        match attempt(config, &hook.line, &payload, stop).await {
            Ok(None) => Err("it was stopped".into()),
            Ok(Some(ended)) => answer::read(point, hook.observe, &ended).map_err(Text::from),
            Err(error) => Err(format!("can't run it: {error}").into()),
        }
    }
}

/// A hook that has ended by itself.
#[derive(Debug)]
struct Ended {
    exit: Exit,
    stdout: Kept,
    stderr: Kept,
}

/// The first bytes of a stream.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Whether there were more.
    over: bool,
}

impl Kept {
    fn push(&mut self, bytes: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.bytes.len());
        self.over |= bytes.len() > room;
        self.bytes
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// As text, trimmed; what is no UTF-8 becomes U+FFFD.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

/// `None`: it was stopped.
async fn attempt(
    config: &HooksConfig,
    line: &str,
    payload: &[u8],
    stop: &CancelToken,
) -> io::Result<Option<Ended>> {
    let lists = Lists {
        pass: &config.env,
        deny: &config.deny_env,
        extra: &config.extra_env,
    };
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(&config.root);
    command
        .env_clear()
        .envs(env::variables(lists, |name| std::env::var_os(name)));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut group = Group::spawn(command)?;
    let (stdin, (stdout, stderr)) = (group.stdin(), group.pipes());
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let mut talk = Box::pin(async {
        let tell = async {
            // A hook that doesn't want to know is not at fault; the pipe is closed when all is said.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(payload).await;
            }
        };
        tokio::join!(
            tell,
            listen(stdout, &mut out, ANSWER_BYTES),
            listen(stderr, &mut err, STDERR_BYTES),
        );
    });
    let terms = Terms {
        limit: None,
        grace: config.grace,
    };
    let (exit, stopped) = process::run_out(group, &terms, stop, talk.as_mut()).await?;
    drop(talk);
    let ended = Ended {
        exit,
        stdout: out,
        stderr: err,
    };
    Ok(stopped.is_none().then_some(ended))
}

/// Reads a pipe to its end, and keeps the beginning: a hook that says too much isn't blocked by it.
async fn listen(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Kept, limit: usize) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        kept.push(buffer.get(..count).unwrap_or_default(), limit);
    }
}
