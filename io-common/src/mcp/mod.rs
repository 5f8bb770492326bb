//! MCP servers that a driver runs for its session: which there shall be, and how they stand. Talking to them is the
//! driver's part; here is what is decided about them.
//!
//! A server is a child process that speaks the Model Context Protocol on its standard input and output. It is started
//! beside the session, which waits for it with its first turn at most, and for a bounded time. Its tools are the
//! driver's own, so that calls of them are judged like all others. What a server says of its tools, that one only reads
//! say, isn't trusted: every call of one counts as one whose effect nobody knows.

mod book;
mod names;
mod result;
mod wish;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use turnwire::vocab::ToolSpec;

use crate::engine::{Caller, Report, Reporter, Stopper, failed};
use crate::process;
use crate::process::env::Lists;

pub(crate) use book::{Act, Book};
pub use result::finished;
pub use wish::{Filter, Servers, Set};

/// One run of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRun(pub(crate) u64);

/// A server that is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// What it is called.
    pub name: String,
    /// What to start; `Err`: why that can't be done, in words for people.
    pub launch: Result<Launch, String>,
    /// Whether it is started at all.
    pub enabled: bool,
    /// How long it may take until its tools are known, from its start.
    pub connect_limit: Duration,
    /// How long one call of its tools may take.
    pub call_limit: Duration,
}

impl ServerConfig {
    /// A server with the usual limits: half a minute to start, ten minutes for a call.
    pub fn new(name: impl Into<String>, launch: Result<Launch, String>) -> Self {
        ServerConfig {
            name: name.into(),
            launch,
            enabled: true,
            connect_limit: Duration::from_secs(30),
            call_limit: Duration::from_secs(600),
        }
    }
}

/// What is started for a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program; one with a slash in its name is looked for from the folder that it starts in.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that are set for it.
    pub env: Vec<(String, String)>,
    /// Variables that are passed on to it, besides a short list of harmless ones. It sees no others.
    pub pass_env: Vec<String>,
    /// Where it starts; `None`: in the project.
    pub folder: Option<PathBuf>,
}

/// What is the same for all servers of a session.
#[derive(Clone, Debug)]
pub struct Place {
    /// The project's folder: servers start there, and are told that it is the root.
    pub root: PathBuf,
    /// Variables that hold keys: never passed on.
    pub deny_env: Vec<String>,
    /// Variables set for each server, as the session's id.
    pub extra_env: Vec<(String, String)>,
    /// What a driver calls itself towards a server: name and version.
    pub product: (String, String),
    /// How long a server may take to end once its input is closed, and again after SIGTERM, before SIGKILL.
    pub grace: Duration,
}

impl Place {
    /// A place in a project, with a second of grace.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Place {
            root: root.into(),
            deny_env: Vec::new(),
            extra_env: Vec::new(),
            product: ("turnwire".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            grace: Duration::from_secs(1),
        }
    }

    /// What to start: all three standard streams are pipes.
    pub fn command(&self, launch: &Launch) -> Command {
        let folder = match &launch.folder {
            Some(folder) => self.root.join(folder),
            None => self.root.clone(),
        };
        let extra: Vec<(String, String)> =
            launch.env.iter().chain(&self.extra_env).cloned().collect();
        let lists = Lists {
            pass: &launch.pass_env,
            deny: &self.deny_env,
            extra: &extra,
        };
        let program = &launch.command;
        let path = if program.contains('/') {
            folder.join(program)
        } else {
            PathBuf::from(program)
        };
        let mut command = process::command(path, &folder, lists, Stdio::piped());
        command.args(&launch.args);
        command
    }
}

/// How much of what servers offer is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Tools of one server.
    pub tools_of_one: usize,
    /// Tools of all servers.
    pub tools: usize,
    /// Bytes of a tool's description; the rest is cut off.
    pub description: usize,
    /// Bytes of a tool's schema; a larger tool is left out.
    pub schema: usize,
    /// Bytes of a tool's name: what providers take.
    pub name: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            tools_of_one: 128,
            tools: 512,
            description: 2_048,
            schema: 64 * 1024,
            name: 64,
        }
    }
}

/// How a server that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// The wait before the first start; each later one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// Starts in a row; then the server has failed.
    pub times: u32,
    /// One that ran for so long is well: the starts are counted anew.
    pub well_after: Duration,
}

impl Default for Again {
    fn default() -> Self {
        Again {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            times: 5,
            well_after: Duration::from_secs(60),
        }
    }
}

/// The MCP servers of a session.
#[derive(Clone, Debug)]
pub struct Mcp {
    /// Which there shall be. The embedder keeps a copy, by which it changes them.
    pub servers: Servers,
    /// The other tools that the session was configured with, so that theirs can be added.
    pub tools: Vec<ToolSpec>,
    /// Where they start.
    pub place: Arc<Place>,
    /// How much of them is taken.
    pub bounds: Bounds,
    /// How they are started again.
    pub again: Again,
    /// How long a turn waits for servers that are being started for the first time, counted from their start.
    pub wait: Duration,
}

impl Mcp {
    /// Servers in a place, beside these tools, with the usual limits; turns wait for five seconds.
    pub fn new(servers: Servers, place: Place, tools: Vec<ToolSpec>) -> Self {
        Mcp {
            servers,
            tools,
            place: Arc::new(place),
            bounds: Bounds::default(),
            again: Again::default(),
            wait: Duration::from_secs(5),
        }
    }
}

/// A tool, as a server lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedTool {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments, an object's text.
    pub schema: String,
}

/// What a driver tells of a server's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It answered; with its name and version.
    Greeted(String, String),
    /// All its tools, at first and whenever they are others.
    Listed(Vec<ListedTool>),
    /// It is gone, its process group too; settles the run.
    Down(Down),
}

/// Why a run ended. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Down {
    /// It couldn't be started, or didn't answer as a server does.
    Connect(String),
    /// It didn't answer in time.
    ConnectTimeout,
    /// It didn't say which tools it has.
    List(String),
    /// Nor in time.
    ListTimeout,
    /// It ended when it was connected.
    Closed(String),
    /// It was stopped.
    Stopped,
}

/// A call of a server's tool, for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCall {
    /// The run to ask.
    pub run: ServerRun,
    /// The server's name, for what is said of a failure.
    pub server: String,
    /// The tool's name at the server.
    pub tool: String,
    /// The arguments, an object's JSON.
    pub input: String,
    /// How long it may take.
    pub limit: Duration,
}

/// For drivers that can't run servers: the end of a run that never began.
pub fn no_server(run: ServerRun, report: &Reporter) -> Stopper {
    let why = "this driver runs no MCP servers".to_owned();
    report(Report::Mcp(run, News::Down(Down::Connect(why))));
    Box::new(|| {})
}

/// The end of a call that can't be.
pub fn no_call(caller: Caller, report: &Reporter) -> Stopper {
    let done = failed("not called: this driver runs no MCP servers");
    report(Report::Tool(caller, done));
    Box::new(|| {})
}
