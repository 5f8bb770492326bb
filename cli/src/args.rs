//! The command line.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use turnwire::protocol::agentx::SettingsLayer;
use turnwire::vocab::Rule;

use crate::check::CheckArgs;
use crate::drive::{DemoArgs, DriveArgs};
use crate::external::approve::ApproveArgs;
use crate::foreign::Program;
use crate::foreign::print::Printed;
use crate::protocols::ServedName;
use crate::protocols::agentx::PresetName;
use crate::protocols::openseek::ModeName;
use crate::say::Stop;
use crate::settings::values::{Api, Approval, Dollars, Seconds, Temperature, Tokens};
use crate::spec::SpecArgs;

const EXAMPLES: &str = "\
Examples:
  One turn with the built-in script, which needs no model, no key and no network:
    echo '{\"cmd\":\"user\",\"text\":\"What is in this folder?\"}' | turnwire serve --protocol openmax

  A model on this machine, behind an OpenAI-compatible address:
    turnwire serve --protocol openmax --trust-project \\
        --api openai --base-url http://localhost:11434/v1 --model qwen3

  Anthropic, with the key from ANTHROPIC_API_KEY:
    turnwire serve --protocol openmax --trust-project --api anthropic --model MODEL

  On with the session that was saved last in this folder:
    turnwire serve --protocol openmax --continue --api anthropic --model MODEL

Settings can also stand in a file; see docs/configuration.md.";

const SERVE_ABOUT: &str = "\
Runs an agent that a host drives over stdin and stdout.

The host writes one JSON object a line, and reads one a line. Stdout carries the protocol and nothing else; \
everything meant for a person goes to stderr. End of input ends the session once the running turn is over.";

const CHECK_ABOUT: &str = "\
Finds where a host or an agent breaks the contract, in what they said.

It reads plain lines of either side, or a recording: one JSON object a line with `dir` (`in` to the agent, `out` from \
it) and `line`. The exit code is 0 if nothing of severity error was found, 1 if something was, and 2 if there is \
input that can't be read. Memory doesn't grow with the input.";

const CHECK_EXAMPLES: &str = "\
Examples:
  What an agent writes, as it comes:
    my-agent <commands.jsonl | turnwire check --protocol openmax

  A file, for a program:
    turnwire check --protocol openmax --format json session.jsonl

  A recording of omp:
    turnwire check --protocol omp session.jsonl

The rules: turnwire spec openmax --format rules";

const APPROVE_ABOUT: &str = "\
Approves a tool of the project's or your own, exactly as it is now: the bytes of its manifest and of its code.

It shows what it approves. A byte that changes makes the tool ask again. See docs/external-tools.md.";

const DRIVE_ABOUT: &str = "\
Starts an agent, gives it prompts one after the other, and shows what it does: for a person, or as JSON lines.

At a terminal it asks before calls that need an approval; elsewhere it declines them, and says how to approve. Ctrl-C \
cancels the turn, a second one ends the agent. The exit code is the agent's; 1 if that was 0 and work is undone.";

const DRIVE_EXAMPLES: &str = "\
Examples:
  turnwire drive openmax 'What does this project do?' -- openmax --stdio
  turnwire drive openmax --json --prompt-file task.md -- turnwire serve --protocol openmax";

const AS_ABOUT: &str = "\
Takes the command line of another program, and is the agent that this program would be, over the same protocol.

It is for clients that start such a program themselves: give them this command in its place. A copy of or a link to \
this program that has the other's name does the same. What that command line can't say (the address of a model, say) \
comes from the settings files. Refused with exit code 1, as there: flags that aren't known, and those that would change \
what the agent does and aren't supported.";

const AS_EXAMPLES: &str = "\
Examples:
  turnwire as omp --mode rpc --model anthropic/claude-sonnet-4-5
  turnwire as omp --help
  turnwire as claude -p --output-format stream-json --verbose 'What is in this folder?'

See docs/protocol-omp.md and docs/protocol-agentx.md.";

/// One agent-session engine for the wire protocols of coding agents.
#[derive(Debug, Parser)]
#[command(name = "turnwire", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The program's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent that a host drives over stdin and stdout
    #[command(long_about = SERVE_ABOUT, after_help = EXAMPLES)]
    Serve(Box<ServeArgs>),

    /// Find where a host or an agent breaks the contract, in what they said
    #[command(long_about = CHECK_ABOUT, after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),

    /// Print a protocol's contract: its lines, its rules, or a JSON Schema
    Spec(SpecArgs),

    /// Start an agent, give it prompts, and show what it does
    #[command(long_about = DRIVE_ABOUT, after_help = DRIVE_EXAMPLES)]
    Drive(DriveArgs),

    /// Take another program's command line, and be the agent that it would start
    #[command(long_about = AS_ABOUT, after_help = AS_EXAMPLES)]
    As {
        /// The program.
        #[command(subcommand)]
        program: Program,
    },

    /// Trust a project, and the turnwire.toml it has now, without starting an agent
    Trust(TrustArgs),

    /// Approve a tool of the project's or your own, exactly as it is now
    #[command(long_flag = "approve", long_about = APPROVE_ABOUT)]
    Approve(ApproveArgs),

    /// One turn with nothing but this program: drive over serve, with a scripted model
    Demo(DemoArgs),
}

/// Options of `trust`.
#[derive(Debug, Group)]
pub struct TrustArgs {
    /// The project's folder [default: the current one]
    #[arg(value_name = "DIR")]
    pub project: Option<PathBuf>,
}

/// Options of `serve`. What is left out comes from the settings files, then from the defaults.
#[derive(Clone, Debug, Group)]
pub struct ServeArgs {
    /// The protocol to speak with the host
    #[arg(long, value_name = "NAME")]
    pub protocol: ServedName,

    /// The folder to work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub project: Option<PathBuf>,

    /// Trust this project from now on, and the turnwire.toml it has now: its settings count, and a model may act in it
    #[arg(long)]
    pub trust_project: bool,

    /// Go on with the session of this project that was saved last
    #[arg(long = "continue", conflicts_with = "no_store")]
    pub go_on: bool,

    /// Settings of the model.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Settings of the session.
    #[command(flatten)]
    pub session: SessionArgs,

    /// Settings of the tools.
    #[command(flatten)]
    pub tools: ToolArgs,

    /// What the wire of agentx leaves open.
    #[command(flatten)]
    pub stream: StreamArgs,

    /// What an engine of openseek is started for.
    #[command(flatten)]
    pub seek: SeekArgs,

    /// What to log on stderr: error, warn, info, debug, trace, off, or a list such as `warn,turnwire=debug`
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,

    /// What waits for the host, the model and the tools; both do the same
    #[arg(long, value_name = "NAME", default_value = "tokio")]
    pub driver: DriverName,

    /// What only the command line of another program says.
    #[arg(skip)]
    pub foreign: Foreign,

    /// What `--mcp-config` says, once it is read.
    #[arg(skip)]
    pub given_mcp: crate::mcp::Given,
}

/// What only the command line of another program says, see [`As`](Command::As).
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// Whether the model's name may begin with its provider's, as in `openai/gpt`.
    pub provider_in_model: bool,
    /// The thinking effort, if the model knows it: `off` and `auto` mean that none is sent.
    pub thinking: Option<String>,
    /// The approval mode if neither the project nor a file has one; `None`: ask.
    pub approval: Option<Approval>,
    /// What the model is told first, in the place of this program's own text.
    pub system: Option<String>,
    /// What it is told besides, last.
    pub appended: Option<String>,
    /// Whether the host has a screen for dialogs.
    pub screen: bool,
    /// How much the model may think, in tokens.
    pub thinking_budget: Option<u64>,
    /// What counts if nothing else does.
    pub fallback: Option<Fallback>,
    /// Which session it is.
    pub resumed: Named,
    /// Permission rules, before those of the settings.
    pub rules: Vec<Rule>,
    /// Tools that the model doesn't get.
    pub without: Vec<String>,
    /// Whether names of tools that aren't there are passed over.
    pub lenient_tools: bool,
    /// Folders that tools may use besides the project's.
    pub folders: Vec<PathBuf>,
    /// A JSON Schema that the answer of a turn has to keep.
    pub schema: Option<String>,
    /// The one prompt; `None`: they are read.
    pub prompt: Option<String>,
    /// What is written of its turn, if it isn't the wire.
    pub printed: Option<Printed>,
    /// The variable whose value goes to Anthropic's API as a bearer token, in a key's place.
    pub bearer: Option<&'static str>,
    /// What the host says once it is there.
    pub said: Arc<Mutex<Said>>,
    /// What hosts are shown of the settings, as they were read last.
    pub shown: Arc<Mutex<Vec<SettingsLayer>>>,
}

/// A model that is taken where nothing names one.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// How it is spoken with; `None`: somebody has to say so.
    pub api: Option<Api>,
    /// Its name.
    pub model: String,
    /// Its window, in tokens.
    pub window: u64,
    /// Its largest reply, in tokens.
    pub max_output: u64,
}

/// Which session is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// A new one, or with `--continue` the last one.
    #[default]
    Any,
    /// A new one with this id.
    New(String),
    /// The one with this id.
    Resume(String),
    /// A copy of the one with this id, or of the last one; and the id of the copy.
    Copy {
        /// The session that is copied.
        id: Option<String>,
        /// What the copy is called; `None`: a fresh id.
        new: Option<String>,
    },
}

/// What a host says of the session when it is there already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// As [`Foreign::system`].
    pub system: Option<String>,
    /// As [`Foreign::appended`].
    pub appended: Option<String>,
    /// As [`Foreign::schema`].
    pub schema: Option<String>,
    /// Variables that commands of the agent see from now on.
    pub env: Vec<(String, String)>,
}

/// The drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DriverName {
    /// One thread, on the tokio runtime; HTTP/1.1 and HTTP/2
    Tokio,
    /// Threads and no async runtime; HTTP/1.1
    Blocking,
}

/// Which model, and how it is asked.
///
/// What could be a key put in the wrong place is text here and checked later: a refused value would be shown.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Who plays the model: a provider's HTTP API, or a script [default: the built-in script]
    #[arg(long)]
    pub api: Option<Api>,

    /// Who serves the model, as hosts call it: an id of auth.json, a name that a settings file gave, or openai or
    /// anthropic [default: the API's name]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// The file of the user's providers and their keys, see `turnwire spec providers` [default: auth.json beside the
    /// user's settings]
    #[arg(long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,

    /// The address that the API's paths are appended to [default: the provider's own]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// The model's name, as the provider knows it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Another model of the same provider, for hosts that may choose; repeat for more
    #[arg(long, value_name = "NAME")]
    pub other_model: Vec<String>,

    /// The environment variable that holds the key, never the key itself [default: OPENAI_API_KEY or
    /// ANTHROPIC_API_KEY at the provider's own address, else no key is sent]
    #[arg(long, value_name = "VAR")]
    pub key_env: Option<String>,

    /// A script that plays the model
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,

    /// A thinking effort that the model knows, as its API calls it, from little to much; repeat for more
    #[arg(long, value_name = "WORD")]
    pub effort: Vec<String>,

    /// The thinking effort at the start, one of those that the model knows [default: not sent]
    #[arg(long, value_name = "WORD")]
    pub thinking: Option<String>,

    /// Randomness of the reply, from 0 to 2 [default: not sent]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub temperature: Option<Temperature>,

    /// Largest reply, in tokens [default: 8192]
    #[arg(long, value_name = "N")]
    pub max_output: Option<Tokens>,

    /// The model's context window, in tokens [default: 128000]
    #[arg(long, value_name = "N")]
    pub window: Option<Tokens>,

    /// How long a reply may stand still before the attempt is given up; heartbeats don't count as progress
    /// [default: 120]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub idle_limit: Option<Seconds>,
}

/// How a turn goes.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "Session")]
pub struct SessionArgs {
    /// What the model may do unasked: auto, anything; ask, only read; readonly, only read, and nothing else at
    /// all [default: the mode saved for this project, else ask]
    #[arg(long, value_name = "MODE")]
    pub approval: Option<Approval>,

    /// How long an approval may stay open before the call is denied [default: until it is answered]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub approval_limit: Option<Seconds>,

    /// Model requests that one turn may make [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: Option<u32>,

    /// US dollars that the session may spend; needs the model's price in a settings file [default: not limited]
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub max_budget: Option<Dollars>,

    /// A file whose text the model is told in every request, read anew before each turn
    #[arg(long, value_name = "FILE")]
    pub instructions: Option<PathBuf>,

    /// An environment variable whose value no line to the host may hold; repeat for more. Keys never do
    #[arg(long, value_name = "NAME")]
    pub hide_env: Vec<String>,

    /// Join token and thinking lines that follow each other within this time [default: they aren't joined]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub coalesce: Option<u32>,

    /// Keep nothing of the session on the disk [default: sessions are kept, unless no model is configured]
    #[arg(long)]
    pub no_store: bool,

    /// Where sessions are kept [default: the user's data folder]
    #[arg(long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,
}

/// How agentx and claude are spoken.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "agentx and claude")]
pub struct StreamArgs {
    /// Which of the rules of this wire count [default: those of the protocol that is named]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetName>,

    /// Write replies as they come
    #[arg(long)]
    pub partial: bool,

    /// Repeat prompts, and the host's answers, once they count
    #[arg(long)]
    pub replay: bool,

    /// Nobody answers requests for permission: what would be asked is denied
    #[arg(long)]
    pub nobody_to_ask: bool,

    /// The first prompt, before what the host says
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// A PNG, JPEG or PDF that goes with the first prompt; repeat for more
    #[arg(long, value_name = "FILE", requires = "prompt")]
    pub attach: Vec<PathBuf>,
}

/// How an engine of openseek is started.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "openseek")]
pub struct SeekArgs {
    /// Serve a host's commands, or run one task
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    pub mode: ModeName,

    /// What a run is for
    #[arg(long, value_name = "TEXT")]
    pub task: Option<String>,

    /// Everything runs unasked, and both lines of a question are written
    #[arg(skip)]
    pub always: bool,
}

impl SeekArgs {
    /// Another protocol is spoken: they mean nothing there.
    ///
    /// # Errors
    /// [`Stop::Settings`] if one was given.
    pub fn not_openseek(&self) -> Result<(), Stop> {
        match (self.mode, &self.task) {
            (ModeName::Serve, None) => Ok(()),
            (ModeName::Run, _) | (ModeName::Serve, Some(_)) => {
                let why = "--mode and --task are for openseek";
                Err(Stop::Settings(why.into()))
            }
        }
    }
}

/// What tools may reach.
#[derive(Clone, Debug, Default, Group)]
#[command(next_help_heading = "Tools")]
pub struct ToolArgs {
    /// Let the file tools leave the project's folder
    #[arg(long)]
    pub allow_outside: bool,

    /// A tool that the model gets, and no others than those named so; repeat for more [default: all]
    #[arg(long, value_name = "NAME")]
    pub only_tool: Vec<String>,

    /// The model gets no tools
    #[arg(long, conflicts_with = "only_tool")]
    pub no_tools: bool,

    /// An environment variable that commands of the agent may see, besides a few harmless ones; repeat for more
    #[arg(long, value_name = "NAME")]
    pub pass_env: Vec<String>,

    /// MCP servers to start, as {"mcpServers": {NAME: {"command", "args", "env"}}}: a file, or the JSON itself; repeat for
    /// more
    #[arg(long, value_name = "FILE|JSON")]
    pub mcp_config: Vec<String>,

    /// Start no MCP servers but those of --mcp-config
    #[arg(long)]
    pub strict_mcp_config: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Args::command().debug_assert();
    }
}
