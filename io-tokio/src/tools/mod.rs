//! The tools that the program itself offers to the model: `read_file`, `write_file`, `edit_file`,
//! `list_dir`, `search` and `bash`.
//!
//! A call never fails towards the caller: whatever happens becomes a [`ToolUpdate::Done`] with a text
//! that a model can act on. Paths stay inside the project, outputs are bounded, children get a listed
//! environment, and no process of a command's group outlives its call.

pub(crate) mod bash;
mod files;
mod input;
mod outcome;
mod spec;
mod text;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnwire::vocab::{ToolOutcome, ToolSpec, ToolUpdate};

pub use tokio_util::sync::CancellationToken as CancelToken;

use files::path::Root;
use outcome::{Failed, Finished};

/// How the tools behave.
#[derive(Clone, Debug)]
pub struct ToolboxConfig {
    /// The project's folder: relative paths start here, commands run here.
    pub root: PathBuf,
    /// Whether file tools may leave the root. Commands can in any case.
    pub allow_outside: bool,
    /// Environment variables passed to commands, besides a short list of harmless ones (`PATH`, `HOME`,
    /// `LANG`, …). Nothing else is passed.
    pub env: Vec<String>,
    /// Variables that hold keys: never passed, even if listed or set in `extra_env`.
    pub deny_env: Vec<String>,
    /// Variables set for commands, as the session's id; they win over inherited ones.
    pub extra_env: Vec<(String, String)>,
    /// Bytes of text that one result keeps (head and tail), marks apart.
    pub output_limit: usize,
    /// How long a command may run if the model names no time.
    pub default_timeout: Duration,
    /// The longest time that the model may name.
    pub max_timeout: Duration,
    /// How long a command may take to end after SIGTERM, before SIGKILL.
    pub grace: Duration,
    /// The shell, called with `-c` and the command.
    pub shell: PathBuf,
}

impl ToolboxConfig {
    /// The defaults for a project: 256 KiB kept, commands ended after two minutes, at most an hour if the
    /// model asks, two seconds of grace, `bash` as the shell.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            allow_outside: false,
            env: Vec::new(),
            deny_env: Vec::new(),
            extra_env: Vec::new(),
            output_limit: 256 * 1024,
            default_timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(3600),
            grace: Duration::from_secs(2),
            shell: PathBuf::from("bash"),
        }
    }
}

/// Why there can be no toolbox.
#[derive(Debug)]
pub enum ToolboxError {
    /// The root isn't a folder that can be used.
    Root {
        /// As configured.
        root: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl std::fmt::Display for ToolboxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root { root, source } => {
                write!(
                    f,
                    "can't use project folder {}: {}",
                    root.display(),
                    outcome::reason(source)
                )
            }
        }
    }
}

impl std::error::Error for ToolboxError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Root { source, .. } => Some(source),
        }
    }
}

/// The built-in tools of one project. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Toolbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: ToolboxConfig,
    root: Root,
    /// One change of a file at a time: an edit reads, changes and writes.
    writing: Mutex<()>,
}

impl Toolbox {
    /// Tools for a project.
    ///
    /// # Errors
    /// [`ToolboxError::Root`] if the root doesn't exist or is no folder.
    pub fn new(config: ToolboxConfig) -> Result<Self, ToolboxError> {
        let root =
            Root::new(&config.root, config.allow_outside).map_err(|source| ToolboxError::Root {
                root: config.root.clone(),
                source,
            })?;
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                root,
                writing: Mutex::new(()),
            }),
        })
    }

    /// The project's folder, absolute and without symlinks.
    pub fn root(&self) -> &Path {
        self.shared.root.path()
    }

    /// What the model is told about the tools, in the order they are offered in.
    pub fn specs(&self) -> Vec<ToolSpec> {
        spec::all(&self.shared.config)
    }

    /// Carries out one call and gives its end, always [`ToolUpdate::Done`].
    ///
    /// `input` is the text of a JSON object. Before it returns, `updates` gets progress of a running
    /// command, at most about seven times a second, and [`ToolUpdate::FileChanged`] for a file that was
    /// written. A cancelled call ends [`ToolOutcome::Cancelled`]; one that changes a file is finished
    /// first. If the future is dropped, a running command's process group is killed.
    pub async fn run(
        &self,
        name: &str,
        input: &str,
        cancel: CancelToken,
        mut updates: impl FnMut(ToolUpdate) + Send,
    ) -> ToolUpdate {
        let finished = if cancel.is_cancelled() {
            Finished::cancelled()
        } else if name == "bash" {
            match input::parse(name, input) {
                Ok(args) => {
                    bash::run(
                        &self.shared.config,
                        self.root(),
                        &args,
                        &cancel,
                        &mut updates,
                    )
                    .await
                }
                Err(text) => Finished::new(ToolOutcome::Invalid, text),
            }
        } else {
            self.run_blocking(name, input, cancel).await
        };
        let (file, done) = finished.into_updates();
        if let Some(file) = file {
            updates(file);
        }
        done
    }

    async fn run_blocking(&self, name: &str, input: &str, cancel: CancelToken) -> Finished {
        let (shared, name, input) = (self.shared.clone(), name.to_owned(), input.to_owned());
        let call = tokio::task::spawn_blocking(move || {
            shared.file_tool(&name, &input, &|| cancel.is_cancelled())
        });
        match call.await {
            Ok(finished) => finished,
            Err(error) => {
                tracing::error!(%error, "a tool call broke down");
                Finished::failed("the tool broke down; this is a fault of the program")
            }
        }
    }
}

impl Shared {
    /// One call of a file tool, on a thread that may block.
    fn file_tool(&self, name: &str, input: &str, stop: &dyn Fn() -> bool) -> Finished {
        let (root, max) = (&self.root, self.config.output_limit);
        match name {
            "read_file" => with(name, input, |args| files::read::run(root, &args, max, stop)),
            "write_file" => with(name, input, |args| {
                self.alone(|| files::write::run(root, &args, max))
            }),
            "edit_file" => with(name, input, |args| {
                self.alone(|| files::edit::run(root, &args, max))
            }),
            "list_dir" => with(name, input, |args| files::list::run(root, &args, stop)),
            "search" => with(name, input, |args| {
                files::search::run(root, &args, max, stop)
            }),
            _ => {
                let text = format!("unknown tool {name:?}; available tools: {}", spec::names());
                Finished::new(ToolOutcome::NotFound, text)
            }
        }
    }

    fn alone<T>(&self, change: impl FnOnce() -> T) -> T {
        // The lock guards no data: a panic while it was held leaves nothing half done.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        change()
    }
}

/// Reads the arguments and runs the tool.
fn with<'a, T: serde::Deserialize<'a>>(
    name: &str,
    input: &'a str,
    tool: impl FnOnce(T) -> Result<Finished, Failed>,
) -> Finished {
    match input::parse(name, input) {
        Ok(args) => tool(args).into(),
        Err(text) => Finished::new(ToolOutcome::Invalid, text),
    }
}
