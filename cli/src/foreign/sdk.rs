//! The command line that the Claude Agent SDKs start `claude` with, which is agentx's too.
//!
//! Flags that change what the agent does are understood, or refused. Those that are about what isn't there (plugins,
//! logs, betas of an API, …) are taken, and change nothing.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args as Group, ValueEnum};

use super::print::Printed;
use super::rules::{self, Tools};
use super::text;
use crate::args::{
    DriverName, Fallback, Foreign, ModelArgs, Named, SeekArgs, ServeArgs, SessionArgs, StreamArgs,
    ToolArgs,
};
use crate::mcp::Given;
use crate::protocols::ServedName;
use crate::protocols::agentx::PresetName;
use crate::say::Stop;
use crate::settings::Env;
use crate::settings::values::{Api, Approval, Dollars};

pub const AFTER_HELP: &str = "\
The model's provider comes from ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and ANTHROPIC_MODEL, else from the settings files, as \
do all other settings. The project must be trusted: run `turnwire trust` in it once, or name its folder in \
TURNWIRE_TRUST_PROJECT.";

/// Names that hosts use for a model of Anthropic's, and the variable that says which one that is.
const ALIASES: [(&str, &str, &str); 5] = [
    (
        "sonnet",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "claude-sonnet-4-5",
    ),
    (
        "default",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "claude-sonnet-4-5",
    ),
    ("opus", "ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-4-5"),
    ("haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5"),
    (
        "fable",
        "ANTHROPIC_DEFAULT_FABLE_MODEL",
        "claude-sonnet-4-5",
    ),
];

/// The window of those models, and their largest reply, in tokens.
const WINDOW: u64 = 200_000;
const MAX_OUTPUT: u64 = 32_000;

/// The variable that holds the key.
const KEY: &str = "ANTHROPIC_API_KEY";

/// The one that holds a bearer token, which goes in its place.
pub const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// Most bytes of a prompt that is read.
const PROMPT_MAX: u64 = 8 * 1024 * 1024;

/// Which of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// `claude`
    Claude,
    /// `agentx`
    Agentx,
}

/// The options that mean something here.
#[derive(Debug, Group)]
pub struct SdkArgs {
    /// One turn, and leave: its answer is written, as the output format says
    #[arg(long, short = 'p')]
    print: bool,

    /// What is written: the wire, or with --print the answer's text or the record of the result
    #[arg(long, value_name = "FORMAT")]
    output_format: Option<Format>,

    /// Nothing more is said for it
    #[arg(long, hide = true)]
    verbose: bool,

    /// What is read; without it the prompt is the last argument, or with --print what stands on stdin
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    input_format: Format,

    /// Write replies as they come
    #[arg(long)]
    include_partial_messages: bool,

    /// Repeat prompts, and the host's answers, once they count
    #[arg(long)]
    replay_user_messages: bool,

    /// Who answers requests for permission: stdio is the host. Without it what would be asked is denied
    #[arg(long, value_name = "stdio")]
    permission_prompt_tool: Option<String>,

    /// What runs unasked
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<Mode>,

    /// Everything runs unasked
    #[arg(long)]
    dangerously_skip_permissions: bool,

    /// Who serves the model (agentx)
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Write which providers there are, and leave; with --output-format json as one document (agentx)
    #[arg(long)]
    list_providers: bool,

    /// The model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// How much the model thinks, by a word that the settings say it knows
    #[arg(long, value_name = "LEVEL")]
    effort: Option<String>,

    /// How much the model may think, in tokens
    #[arg(long, value_name = "N")]
    max_thinking_tokens: Option<u64>,

    /// Model requests that one turn may make
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,

    /// US dollars that the session may spend; needs the model's price in a settings file
    #[arg(long, value_name = "USD")]
    max_budget_usd: Option<Dollars>,

    /// What the model is told first
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    system_prompt: Option<String>,

    /// The same, from a file
    #[arg(long, value_name = "FILE")]
    system_prompt_file: Option<String>,

    /// What the model is told besides
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    append_system_prompt: Option<String>,

    /// The same, from a file
    #[arg(long, value_name = "FILE")]
    append_system_prompt_file: Option<String>,

    /// The tools that the model gets; those that aren't there are passed over
    #[arg(long, value_name = "NAMES", allow_hyphen_values = true)]
    tools: Option<String>,

    /// Calls that run unasked
    #[arg(
        id = "allowedTools",
        long = "allowedTools",
        alias = "allowed-tools",
        value_name = "RULES"
    )]
    allowed_tools: Vec<String>,

    /// Tools that the model doesn't get, and calls that never run
    #[arg(
        id = "disallowedTools",
        long = "disallowedTools",
        alias = "disallowed-tools",
        value_name = "RULES"
    )]
    disallowed_tools: Vec<String>,

    /// MCP servers: those of the host, and others to start; a file, or the JSON itself
    #[arg(long, value_name = "FILE|JSON")]
    mcp_config: Vec<String>,

    /// Start no MCP servers but those of --mcp-config
    #[arg(long)]
    strict_mcp_config: bool,

    /// Folders that tools may use besides the project's
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,

    /// A JSON Schema that the answer of a turn has to keep
    #[arg(long, value_name = "JSON")]
    json_schema: Option<String>,

    /// The id of the session that begins
    #[arg(long, value_name = "UUID")]
    session_id: Option<String>,

    /// Go on with this session
    #[arg(long, short = 'r', value_name = "ID", conflicts_with = "go_on")]
    resume: Option<String>,

    /// Go on with the session of this folder that was saved last
    #[arg(long = "continue", short = 'c')]
    go_on: bool,

    /// Go on in a copy
    #[arg(long)]
    fork_session: bool,

    /// Keep nothing of the session
    #[arg(long)]
    no_session_persistence: bool,

    /// Nothing to leave out
    #[command(flatten)]
    absent: Absent,

    /// The prompt, where none is read
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
}

/// What is taken, and changes nothing.
#[derive(Debug, Group)]
struct Absent {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    debug: Option<String>,
    #[arg(long, hide = true)]
    debug_file: Option<String>,
    #[arg(long, hide = true)]
    debug_to_stderr: bool,
    #[arg(long, hide = true)]
    betas: Vec<String>,
    #[arg(long, hide = true)]
    task_budget: Option<String>,
    #[arg(long, hide = true)]
    fallback_model: Option<String>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    setting_sources: Option<String>,
    #[arg(long, hide = true)]
    settings: Option<String>,
    #[arg(long, hide = true)]
    managed_settings: Option<String>,
    #[arg(long, hide = true)]
    plugin_dir: Vec<String>,
    #[arg(long, hide = true)]
    include_hook_events: bool,
    #[arg(long, hide = true)]
    session_mirror: bool,
    #[arg(long, hide = true)]
    thinking: Option<String>,
    #[arg(long, hide = true)]
    thinking_display: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    permission_prompts: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    await_initialize: Option<String>,
    #[arg(long, hide = true)]
    initialize_fields: Option<String>,
    #[arg(long, hide = true)]
    allow_dangerously_skip_permissions: bool,
    #[arg(long, hide = true)]
    channels: Option<String>,
}

/// What is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line of text
    Text,
    /// One JSON document
    Json,
    /// JSON lines: the wire
    StreamJson,
}

/// What runs unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
enum Mode {
    /// Reading
    Default,
    /// Reading, and changes of files
    AcceptEdits,
    /// Everything
    BypassPermissions,
    /// Reading; nothing else runs at all
    Plan,
    /// Reading; the rest is denied
    DontAsk,
}

impl Mode {
    fn approval(self) -> Approval {
        match self {
            Mode::Default => Approval::Ask,
            Mode::AcceptEdits => Approval::Edits,
            Mode::BypassPermissions => Approval::Auto,
            Mode::Plan => Approval::Plan,
            Mode::DontAsk => Approval::Never,
        }
    }
}

impl SdkArgs {
    /// What it means for `serve`.
    ///
    /// # Errors
    /// [`Stop`] for what can't be done.
    pub fn into_serve(self, sdk: Sdk, env: Env<'_>) -> Result<ServeArgs, Stop> {
        let mut args = self;
        let printed = args.printed();
        args.refuse(sdk, printed)?;
        if args.input_format == Format::Text && args.prompt.is_none() {
            args.prompt = Some(read_prompt(std::io::stdin().lock())?);
        }
        let Tools {
            only,
            rules,
            without,
        } = rules::read(
            args.tools.as_deref(),
            &args.allowed_tools,
            &args.disallowed_tools,
        );
        let approval = if args.dangerously_skip_permissions {
            Approval::Auto
        } else {
            args.permission_mode.map_or(Approval::Ask, Mode::approval)
        };
        let system = file_or(args.system_prompt, args.system_prompt_file)?;
        let appended = file_or(args.append_system_prompt, args.append_system_prompt_file)?;
        let resumed = match (args.resume, args.session_id, args.fork_session) {
            (Some(id), None, false) => Named::Resume(id),
            (Some(id), new, true) => Named::Copy { id: Some(id), new },
            (None, new, true) if args.go_on => Named::Copy { id: None, new },
            (None, Some(id), false) if !args.go_on => Named::New(id),
            (None, None, false) => Named::Any,
            (None, _, true) => {
                return Err(Stop::Settings(
                    "--fork-session needs a session to copy: --resume or --continue".to_owned(),
                ));
            }
            (_, Some(_), false) => {
                return Err(Stop::Settings(
                    "--session-id names a session that begins: with --resume or --continue it needs --fork-session"
                        .to_owned(),
                ));
            }
        };
        let go_on = args.go_on && resumed == Named::Any;
        Ok(ServeArgs {
            protocol: match sdk {
                Sdk::Claude => ServedName::Claude,
                Sdk::Agentx => ServedName::Agentx,
            },
            project: None,
            trust_project: false,
            go_on,
            model: model(args.provider, args.model, sdk, env),
            session: SessionArgs {
                approval: Some(approval),
                max_steps: args.max_turns,
                max_budget: args.max_budget_usd,
                no_store: args.no_session_persistence,
                ..SessionArgs::default()
            },
            seek: SeekArgs::default(),
            stream: StreamArgs {
                preset: (sdk == Sdk::Claude).then_some(PresetName::Claude),
                partial: args.include_partial_messages,
                replay: args.replay_user_messages,
                // The strict program always asks its host.
                nobody_to_ask: sdk == Sdk::Claude && args.permission_prompt_tool.is_none(),
                prompt: None,
                attach: Vec::new(),
            },
            tools: ToolArgs {
                no_tools: only.as_ref().is_some_and(Vec::is_empty),
                only_tool: only.unwrap_or_default(),
                mcp_config: args.mcp_config,
                strict_mcp_config: args.strict_mcp_config,
                ..ToolArgs::default()
            },
            log: None,
            driver: DriverName::Tokio,
            foreign: Foreign {
                thinking: args.effort,
                thinking_budget: args.max_thinking_tokens,
                system,
                appended,
                fallback: (sdk == Sdk::Claude).then(|| fallback(env)),
                resumed,
                rules,
                without,
                folders: args.add_dir,
                schema: args.json_schema,
                prompt: args.prompt,
                printed,
                bearer: (sdk == Sdk::Claude && env(TOKEN).is_some_and(|it| !it.is_empty()))
                    .then_some(TOKEN),
                lenient_tools: true,
                ..Foreign::default()
            },
            given_mcp: Given::default(),
        })
    }

    /// What is written of one turn, if it isn't the wire.
    fn printed(&self) -> Option<Printed> {
        match (self.print, self.output_format) {
            (true, None | Some(Format::Text)) => Some(Printed::Text),
            (true, Some(Format::Json)) => Some(Printed::Json),
            (_, Some(Format::StreamJson)) | (false, _) => None,
        }
    }

    /// What can't be done.
    fn refuse(&self, sdk: Sdk, printed: Option<Printed>) -> Result<(), Stop> {
        let wire = self.output_format == Some(Format::StreamJson);
        let text = if sdk == Sdk::Claude && (self.list_providers || self.provider.is_some()) {
            "--provider and --list-providers are agentx's"
        } else if !wire && printed.is_none() {
            "only --output-format stream-json is spoken here, or --print one turn as text or json"
        } else if self.input_format == Format::Json {
            "--input-format is text or stream-json"
        } else if self.input_format == Format::StreamJson && !wire {
            "--input-format stream-json needs --output-format stream-json"
        } else if (self.include_partial_messages || self.replay_user_messages) && !wire {
            "--include-partial-messages and --replay-user-messages need --output-format stream-json"
        } else if printed == Some(Printed::Json) && self.verbose {
            "--verbose with --output-format json isn't supported: take stream-json for all records"
        } else if self.input_format == Format::Text && self.prompt.is_none() && !self.print {
            "there is no prompt: give one, or --input-format stream-json"
        } else if self.input_format == Format::StreamJson && self.prompt.is_some() {
            "with --input-format stream-json prompts are records, and no arguments"
        } else if self
            .permission_prompt_tool
            .as_deref()
            .is_some_and(|tool| tool != "stdio")
        {
            "--permission-prompt-tool is stdio: a tool can't be asked"
        } else {
            return Ok(());
        };
        Err(Stop::Settings(text.to_owned()))
    }
}

/// The model, and where it is: the command line, then the environment.
fn model(provider: Option<String>, model: Option<String>, sdk: Sdk, env: Env<'_>) -> ModelArgs {
    if sdk == Sdk::Agentx {
        return ModelArgs {
            provider,
            model,
            ..ModelArgs::default()
        };
    }
    let of_env = |name: &str| {
        env(name)?
            .into_string()
            .ok()
            .filter(|text| !text.is_empty())
    };
    let url = of_env("ANTHROPIC_BASE_URL");
    let alias = |name: String| {
        let known = aliases(env).into_iter().find(|(alias, _)| *alias == name);
        known.map_or(name, |(_, model)| model)
    };
    ModelArgs {
        api: url.is_some().then_some(Api::Anthropic),
        // The version is part of it elsewhere.
        base_url: url
            .as_ref()
            .map(|url| format!("{}/v1", url.trim_end_matches('/'))),
        key_env: [TOKEN, KEY]
            .into_iter()
            .find(|name| url.is_some() && of_env(name).is_some())
            .map(str::to_owned),
        model: model.or_else(|| of_env("ANTHROPIC_MODEL")).map(alias),
        provider,
        ..ModelArgs::default()
    }
}

/// What hosts call models of Anthropic's, and which ones those are.
pub fn aliases(env: Env<'_>) -> Vec<(&'static str, String)> {
    let named = |variable: &str| {
        let text = env(variable)?.into_string().ok()?;
        (!text.is_empty()).then_some(text)
    };
    let each = ALIASES.iter();
    each.map(|(alias, variable, model)| {
        let model = named(variable).unwrap_or_else(|| (*model).to_owned());
        (*alias, model)
    })
    .collect()
}

/// The prompt of a turn, from where it is piped in.
fn read_prompt(input: impl Read) -> Result<String, Stop> {
    let mut text = String::new();
    let read = input.take(PROMPT_MAX + 1).read_to_string(&mut text);
    let why = match read {
        Err(error) => format!("the prompt can't be read: {error}"),
        Ok(_) if text.len() as u64 > PROMPT_MAX => {
            format!("the prompt is longer than {PROMPT_MAX} bytes")
        }
        Ok(_) if text.trim().is_empty() => {
            "there is no prompt: give one, as an argument or on stdin".to_owned()
        }
        Ok(_) => return Ok(text),
    };
    Err(Stop::Settings(why))
}

/// What counts if neither the command line nor the environment nor a file says anything.
fn fallback(env: Env<'_>) -> Fallback {
    Fallback {
        api: (env(KEY).is_some() || env(TOKEN).is_some()).then_some(Api::Anthropic),
        model: "claude-sonnet-4-5".to_owned(),
        window: WINDOW,
        max_output: MAX_OUTPUT,
    }
}

/// A text, or what a file holds.
fn file_or(given: Option<String>, file: Option<String>) -> Result<Option<String>, Stop> {
    match (given, file) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => text(&path).map(Some),
        (None, None) => Ok(None),
    }
}
