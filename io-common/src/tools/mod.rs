//! The tools that the program itself offers to the model: `read_file`, `write_file`, `edit_file`,
//! `list_dir`, `search` and `bash`; and those of the user's and the project's own, which are programs.
//!
//! A call never fails towards the caller: whatever happens becomes a [`ToolUpdate::Done`](turnwire::vocab::ToolUpdate::Done) with a text
//! that a model can act on. Paths stay inside the project, outputs are bounded, children get a listed
//! environment, and no process of a command's group outlives its call.

mod bash;
mod external;
mod files;
mod input;
mod job_output;
mod outcome;
mod skill;
mod snapshots;
mod spec;
mod text;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turnwire::vocab::{
    CallId, MessageId, Restoration, SetOp, Text, ToolOutcome, ToolSpec, UnapprovedSource,
};

pub use bash::{Capture, CommandJob};
pub use external::{Code, CodePlaces, External, MOST_CODE, Source, sha_of};
pub use outcome::{Failed, FileChange, Finished};
pub use skill::Skill;
pub use snapshots::{Bounds, Snapshots};
pub use spec::builtin_names;

pub(crate) use outcome::reason;

use external::Loaded;
use files::path::{Place, Root};

use crate::jobs::{BackgroundJob, JobPlace, OpenJob};

/// What the built-in tools and their arguments are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As this library calls them.
    #[default]
    Own,
    /// As hosts of Claude Code know them: `Read`, `Write`, `Edit`, `LS`, `Grep`, `Bash`.
    Claude,
}

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
    /// What the built-in tools are called.
    pub dialect: Dialect,
    /// Tools that are programs. One with a built-in tool's name, or that of one before it, is left out.
    pub external: Vec<External>,
    /// Skills, which the tool `skill` reads; none: there is no such tool.
    pub skills: Vec<Skill>,
    /// Whether such a program doesn't run while nobody has approved its content, in no mode.
    pub refuse_unapproved: bool,
    /// Where background jobs are kept; `None`: commands can't go on in the background.
    pub jobs: Option<JobPlace>,
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
            dialect: Dialect::Own,
            external: Vec::new(),
            skills: Vec::new(),
            refuse_unapproved: false,
            jobs: None,
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

/// The tools of one project. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Toolbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: ToolboxConfig,
    root: Root,
    external: Vec<Arc<Loaded>>,
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
        let mut external: Vec<Arc<Loaded>> = Vec::new();
        for tool in &config.external {
            let mut names = external.iter().map(|other| &*other.tool.name);
            let builtin = |own| config.dialect.name(own) == tool.name;
            if !names.any(|name| name == tool.name) && !builtin_names().any(builtin) {
                external.push(Arc::new(Loaded::new(tool)));
            }
        }
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                root,
                external,
                writing: Mutex::new(()),
            }),
        })
    }

    /// The project's folder, absolute and without symlinks.
    pub fn root(&self) -> &Path {
        self.shared.root.path()
    }

    /// Where its background jobs are kept.
    pub fn jobs(&self) -> Option<&JobPlace> {
        self.shared.config.jobs.as_ref()
    }

    /// What the model is told about the tools, in the order they are offered in.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = spec::all(&self.shared.config);
        let skills = &self.shared.config.skills;
        specs.extend((!skills.is_empty()).then(|| skill::spec(skills)));
        specs.extend(self.shared.config.jobs.is_some().then(job_output::spec));
        specs.extend(self.shared.external.iter().map(|tool| tool.spec()));
        specs
    }

    /// A person has approved the content of an external tool: from now on it is given its variables.
    pub fn approve(&self, source: &UnapprovedSource) {
        let tool = self.shared.external(&source.tool);
        if !tool.is_some_and(|tool| tool.approve(source)) {
            tracing::warn!(
                tool = &*source.tool,
                "an approval is of no tool that is loaded"
            );
        }
    }

    /// A person lets tools use folders besides the project's, by absolute paths, or takes them back.
    pub fn let_use(&self, op: SetOp, folders: &[Text]) {
        let folders: Vec<&Path> = folders.iter().map(|path| Path::new(&**path)).collect();
        self.shared.root.let_use(op, &folders);
    }

    /// Lets its tools use the folders, besides the project's, that those of another one were let use.
    #[must_use]
    pub fn let_use_as(self, other: &Toolbox) -> Toolbox {
        self.shared.root.let_use_as(&other.shared.root);
        self
    }

    /// Makes it ready to put the files aside that a call may change, at the session's newest message. Of a program of the
    /// user's or the project's own nobody knows which files those are.
    pub fn prepare_snapshot(
        &self,
        snapshots: &Snapshots,
        name: &str,
        input: &str,
        message: MessageId,
    ) -> SnapshotJob {
        let (shared, snapshots) = (self.shared.clone(), snapshots.clone());
        let path = match self.shared.config.dialect.own(name) {
            _ if shared.external(name).is_some() => None,
            "write_file" => input::parse::<input::WriteFile>(name, input)
                .ok()
                .map(|args| args.path),
            "edit_file" => input::parse::<input::EditFile>(name, input)
                .ok()
                .map(|args| args.path),
            _ => None,
        };
        Box::new(move || {
            // A path that can't be used is the call's own to complain about.
            let place = path.and_then(|path| shared.root.resolve(&path).ok());
            let places: Vec<Place> = place.into_iter().collect();
            shared.alone(|| snapshots.put_aside(&places, message.0))
        })
    }

    /// Makes it ready to put files back as they were before a message, or to say what that would change.
    pub fn prepare_restore(
        &self,
        snapshots: &Snapshots,
        to: MessageId,
        at: MessageId,
        dry_run: bool,
    ) -> RestoreJob {
        let (shared, snapshots) = (self.shared.clone(), snapshots.clone());
        Box::new(move || shared.alone(|| snapshots.put_back(&shared.root, to.0, at.0, dry_run)))
    }

    /// Makes one call ready. `input` is the text of a JSON object.
    pub fn prepare(&self, name: &str, input: &str) -> ToolJob {
        if let Some(tool) = self.shared.external(name) {
            return ToolJob::Command(CommandJob::external(&self.shared, tool, input));
        }
        if self.shared.config.dialect.own(name) != bash::NAME {
            return ToolJob::File(FileJob {
                shared: self.shared.clone(),
                name: name.to_owned(),
                input: input.to_owned(),
            });
        }
        match input::parse(name, input).and_then(|args| bash::prepare(&self.shared, args)) {
            Ok(job) => job,
            Err(text) => ToolJob::Over(Finished::new(ToolOutcome::Invalid, text)),
        }
    }

    /// Makes a command of the person's own ready ([`Effect::RunShell`](turnwire::vocab::Effect::RunShell)). It runs as
    /// a call of `bash` does, as long as it takes; its result is what it wrote to both streams, as it came.
    pub fn prepare_shell(&self, line: &str) -> ToolJob {
        match CommandJob::of_person(&self.shared, line) {
            Ok(job) => ToolJob::Command(job),
            Err(text) => ToolJob::Over(Finished::new(ToolOutcome::Invalid, text)),
        }
    }
}

/// Puts files aside, on a thread that may block: the names of those that were, and the number of the first of them.
pub type SnapshotJob = Box<dyn FnOnce() -> Result<(Vec<Text>, u64), String> + Send>;

/// Puts files back, on a thread that may block. If it fails no file was touched.
pub type RestoreJob = Box<dyn FnOnce() -> Result<Restoration, String> + Send>;

/// Why a call that is carried out by itself can't go on in the background: a session's driver does that.
pub const ONE_CALL: &str = "commands can't go on in the background here";

/// A call that is ready to be carried out.
#[derive(Debug)]
pub enum ToolJob {
    /// A command to run in a subprocess.
    Command(CommandJob),
    /// A command of a call that may go on in the background while it runs.
    Open(Box<OpenJob>),
    /// A command that goes on in the background.
    Background(Box<BackgroundJob>),
    /// Work on files, which blocks.
    File(FileJob),
    /// It is over before it began: its arguments were wrong.
    Over(Finished),
}

impl ToolJob {
    /// It is for this call: what goes on in the background is known by its number.
    #[must_use]
    pub fn of(self, call: CallId) -> ToolJob {
        match self {
            ToolJob::Background(job) => ToolJob::Background(Box::new(job.of(call))),
            ToolJob::Open(job) => ToolJob::Open(Box::new(job.of(call))),
            other @ (ToolJob::Command(_) | ToolJob::File(_) | ToolJob::Over(_)) => other,
        }
    }
}

/// A call of a file tool.
#[derive(Debug)]
pub struct FileJob {
    shared: Arc<Shared>,
    name: String,
    input: String,
}

impl FileJob {
    /// Carries it out, on a thread that may block. A call that only looks asks `stop` now and then whether it
    /// shall end; one that changes a file is finished first.
    pub fn run(&self, stop: &dyn Fn() -> bool) -> Finished {
        self.shared.file_tool(&self.name, &self.input, stop)
    }
}

impl Shared {
    fn external(&self, name: &str) -> Option<&Arc<Loaded>> {
        self.external.iter().find(|one| one.tool.name == name)
    }

    /// One call of a file tool, on a thread that may block.
    fn file_tool(&self, name: &str, input: &str, stop: &dyn Fn() -> bool) -> Finished {
        let (root, max) = (&self.root, self.config.output_limit);
        match self.config.dialect.own(name) {
            "read_file" => with(name, input, |args| files::read::run(root, &args, max, stop)),
            "write_file" => with(name, input, |args| {
                self.alone(|| files::write::run(root, &args, max))
            }),
            "edit_file" => with(name, input, |args| {
                self.alone(|| files::edit::run(root, &args, max))
            }),
            job_output::NAME => with(name, input, |args| {
                job_output::run(self.config.jobs.as_ref(), &args, max)
            }),
            skill::NAME => with(name, input, |args| skill::run(&self.config.skills, &args)),
            "list_dir" => with(name, input, |args| files::list::run(root, &args, stop)),
            "search" => with(name, input, |args| {
                files::search::run(root, &args, max, stop)
            }),
            _ => {
                let text = format!(
                    "unknown tool {name:?}; available tools: {}",
                    spec::names(self.config.dialect)
                );
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
