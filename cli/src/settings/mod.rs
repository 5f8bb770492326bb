//! The settings of one start: flag over project file over user file over default.

mod attachments;
pub mod file;
pub mod hooks;
mod model;
pub mod shown;
pub mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::{Named, ServeArgs};
use crate::external::Found;
use crate::mcp;
use crate::registry::Registry;
use crate::say::Stop;
use crate::skills;
use file::FileSettings;
use hooks::{HookTable, RuleTable, Unloaded};
use model::Chosen;
pub use model::{key as key_of, own, sendable};
use turnwire::protocol::agentx::{ImportLimits, SettingsSource};
use turnwire::session::config::Price;
use turnwire::vocab::RawJson;
use turnwire_io::{Door, Secret};
use values::{Api, Approval, BadValue, BaseUrl, EnvName, Millis};

/// Room that a request needs besides the largest reply, in tokens.
const LEAST_PROMPT: u64 = 1024;

/// Looks up an environment variable.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Reads the user's providers, where somebody wants to know; `None`: there is no such file.
pub type Providers<'a> = &'a dyn Fn() -> Result<Option<Registry>, Stop>;

/// What a session is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who plays the model.
    pub model: Model,
    /// The user's providers, if the model is of one of them.
    pub registry: Option<Registry>,
    /// What hosts call the one who serves it.
    pub provider: String,
    /// Other models of the same provider that a host may choose.
    pub others: Vec<String>,
    /// The thinking efforts that the model knows.
    pub efforts: Vec<String>,
    /// The effort at the start; `None`: the model's own.
    pub thinking: Option<String>,
    /// What it may do unasked; `None` if nobody said.
    pub approval: Option<Approval>,
    /// Model requests a turn.
    pub max_steps: u32,
    /// What the session may spend, in millionths of a millionth of a US dollar.
    pub max_budget: Option<u64>,
    /// What models cost, by name.
    pub prices: Vec<(String, Price)>,
    /// Whether the session is kept on the disk.
    pub store: bool,
    /// Where it is kept; `None`: in the user's folder.
    pub folder: Option<PathBuf>,
    /// Largest reply, in tokens.
    pub max_output: u64,
    /// The context window, in tokens.
    pub window: u64,
    /// How long a reply may stand still.
    pub idle_limit: Duration,
    /// How long an approval may stay open; `None` means until it is answered.
    pub approval_limit: Option<Duration>,
    /// Whether file tools may leave the project.
    pub allow_outside: bool,
    /// The tools that the model gets; `None`: all.
    pub only_tools: Option<Vec<String>>,
    /// What commands see of the environment, besides the default.
    pub pass_env: Vec<String>,
    /// What they never see: the variables of keys.
    pub deny_env: Vec<String>,
    /// Commands that may object, the user's first.
    pub hooks: Vec<HookTable>,
    /// Hooks that are there and can't be loaded.
    pub unloaded: Vec<Unloaded>,
    /// Permission rules.
    pub rules: Vec<RuleTable>,
    /// The user's and the project's own tools; they are found once it is known which of them count.
    pub external: Found,
    /// The user's and the project's skills, likewise.
    pub skills: skills::Found,
    /// MCP servers.
    pub mcp: mcp::Found,
    /// What no line to the host may hold: keys, and values of variables that somebody named.
    pub hidden: Vec<Secret>,
    /// How long token and thinking lines wait to be joined, in milliseconds; 0: not at all.
    pub coalesce_ms: u32,
    /// How much of attachments is taken where the protocol has them; `None`: none.
    pub attachments: Option<ImportLimits>,
    /// What the model is told besides.
    pub instructions: Option<Instructions>,
    /// What is logged.
    pub log: String,
}

/// A text for the model, from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// Where it came from.
    pub path: PathBuf,
    /// The text.
    pub text: String,
}

/// Who plays the model.
#[derive(Clone, Debug)]
pub enum Model {
    /// The script that is part of the program; `chosen` if somebody asked for it. It only reads.
    Builtin {
        /// Whether it was asked for.
        chosen: bool,
    },
    /// A script from a file.
    Script {
        /// Where it came from.
        path: PathBuf,
        /// Its text.
        text: String,
    },
    /// A provider over HTTP.
    Http(Box<Provider>),
}

/// A provider over HTTP.
#[derive(Clone, Debug)]
pub struct Provider {
    /// OpenAI's or Anthropic's way of speaking; never [`Api::Scripted`].
    pub api: Api,
    /// Its address.
    pub base_url: BaseUrl,
    /// The model's name.
    pub name: String,
    /// The key, if one is sent.
    pub key: Option<Secret>,
    /// The environment variable that held it, if hosts may know that.
    pub key_from: Option<String>,
    /// What comes behind the address, and where the key goes.
    pub door: Door,
    /// The version of the API that goes into a header.
    pub version_header: Option<String>,
    /// What hosts call its type.
    pub kind: &'static str,
    /// Whether nobody is told where it is.
    pub unnamed: bool,
    /// Randomness of the reply.
    pub temperature: Option<f64>,
}

/// A settings file that was found.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Whose it is.
    pub source: SettingsSource,
    /// Where it lies.
    pub path: PathBuf,
    /// What it says.
    pub settings: FileSettings,
    /// What hosts are shown of that.
    pub shown: RawJson,
}

impl Layer {
    /// Reads a file of this text.
    ///
    /// # Errors
    /// As [`file::settings`].
    pub fn read(source: SettingsSource, path: PathBuf, text: &str) -> Result<Layer, Stop> {
        Ok(Layer {
            source,
            settings: file::settings(&path, text)?,
            shown: shown::file(text),
            path,
        })
    }
}

/// Puts the layers together; `files` in order of rank, the highest first.
///
/// # Errors
/// [`Stop::Settings`] if they contradict each other, or something they need is missing.
pub fn resolve(
    args: &ServeArgs,
    files: &[Layer],
    registry: Providers<'_>,
    env: Env<'_>,
) -> Result<Settings, Stop> {
    fn first<T>(
        flag: Option<T>,
        files: &[Layer],
        get: impl Fn(&FileSettings) -> Option<T>,
    ) -> Option<T> {
        flag.or_else(|| files.iter().find_map(|layer| get(&layer.settings)))
    }

    let known = args.foreign.fallback.as_ref();
    let max_output = first(args.model.max_output, files, |file| file.model.max_output)
        .map_or(known.map_or(8192, |it| it.max_output), |n| n.get());
    let window = first(args.model.window, files, |file| file.model.window)
        .map_or(known.map_or(128_000, |it| it.window), |n| n.get());
    if window < max_output + LEAST_PROMPT {
        return Err(Stop::Settings(format!(
            "a window of {window} tokens has no room for a reply of {max_output} and a prompt of {LEAST_PROMPT}; \
             set window or max_output"
        )));
    }
    let pass_env = match args.tools.pass_env.as_slice() {
        [] => first(None, files, |file| file.tools.pass_env.clone()).unwrap_or_default(),
        names => names
            .iter()
            .map(|name| flag("--pass-env", name))
            .collect::<Result<Vec<EnvName>, Stop>>()?,
    };
    let Chosen {
        model,
        provider,
        others,
        efforts,
        thinking,
        prices,
        registry,
    } = model::choose(args, files, registry, env)?;
    let mut deny_env = model::key_variables(args, files)?;
    let of_registry = registry.iter().flat_map(Registry::key_variables);
    deny_env.extend(of_registry.map(str::to_owned));
    if let Some(name) = pass_env
        .iter()
        .find(|name| deny_env.iter().any(|key| key == name.as_str()))
    {
        return Err(Stop::Settings(format!(
            "pass_env: {} is a provider's key; commands can't have it",
            name.as_str()
        )));
    }
    let goes_on = args.go_on
        || match args.foreign.resumed {
            Named::Resume(_) | Named::Copy { .. } => true,
            Named::Any | Named::New(_) => false,
        };
    let store = match (args.session.no_store, goes_on) {
        (true, _) => Some(false),
        (false, true) => Some(true),
        (false, false) => None,
    };
    // A demonstration leaves nothing behind, and never comes between a project's own sessions.
    let demo = matches!(model, Model::Builtin { chosen: false });
    let hooks::Gathered {
        hooks,
        unloaded,
        rules,
    } = hooks::gather(files);
    Ok(Settings {
        provider,
        others,
        efforts,
        thinking,
        only_tools: only_tools(args, files),
        folder: folder(args, files),
        hooks,
        unloaded,
        rules,
        external: Found::default(),
        skills: skills::Found::default(),
        mcp: mcp::resolve(args, files),
        hidden: hidden(args, files, &deny_env, registry.as_ref(), env)?,
        coalesce_ms: first(args.session.coalesce, files, |file| {
            file.session.coalesce.map(Millis::get)
        })
        .unwrap_or(0),
        attachments: attachments::limits(files),
        instructions: instructions(args, files)?,
        store: first(store, files, |file| file.session.store).unwrap_or(!demo),
        max_budget: max_budget(args, files, &model, &prices)?,
        prices,
        model,
        registry,
        approval: first(args.session.approval, files, |file| file.session.approval),
        max_steps: first(args.session.max_steps, files, |file| {
            file.session.max_steps.map(Into::into)
        })
        .unwrap_or(100),
        max_output,
        window,
        idle_limit: first(args.model.idle_limit, files, |file| file.model.idle_limit)
            .map_or(Duration::from_secs(120), |limit| limit.get()),
        approval_limit: first(args.session.approval_limit, files, |file| {
            file.session.approval_limit
        })
        .map(|limit| limit.get()),
        allow_outside: first(args.tools.allow_outside.then_some(true), files, |file| {
            file.tools.allow_outside
        })
        .unwrap_or(false),
        deny_env,
        pass_env: pass_env
            .into_iter()
            .map(|name| name.as_str().to_owned())
            .collect(),
        log: first(args.log.clone(), files, |file| file.log.clone())
            .unwrap_or_else(|| "warn".to_owned()),
    })
}

/// What the session may spend. A limit that nothing is counted against would be none.
fn max_budget(
    args: &ServeArgs,
    files: &[Layer],
    model: &Model,
    prices: &[(String, Price)],
) -> Result<Option<u64>, Stop> {
    let of_files = || {
        let mut files = files.iter();
        files.find_map(|layer| layer.settings.session.max_budget)
    };
    let Some(budget) = args.session.max_budget.or_else(of_files) else {
        return Ok(None);
    };
    match model {
        Model::Http(http) if prices.iter().all(|(of, _)| *of != http.name) => {
            Err(Stop::Settings(format!(
                "a budget needs to know what the model {:?} costs: put its price in a settings file ([[model.price]])",
                http.name
            )))
        }
        Model::Http(_) | Model::Builtin { .. } | Model::Script { .. } => Ok(Some(budget.pico())),
    }
}

/// Reads a flag's value; what stands there isn't repeated.
fn flag<T: std::str::FromStr<Err = BadValue>>(name: &str, text: &str) -> Result<T, Stop> {
    text.parse()
        .map_err(|fault| Stop::Settings(format!("{name}: {fault}")))
}

/// The values that no line to the host may hold: of the variables for keys, and of those that were named. A variable
/// that isn't set hides nothing.
fn hidden(
    args: &ServeArgs,
    files: &[Layer],
    keys: &[String],
    registry: Option<&Registry>,
    env: Env<'_>,
) -> Result<Vec<Secret>, Stop> {
    let named: Vec<String> = match args.session.hide_env.as_slice() {
        [] => files
            .iter()
            .find_map(|layer| layer.settings.session.hide_env.as_ref())
            .map(|names| names.iter().map(|name| name.as_str().to_owned()).collect())
            .unwrap_or_default(),
        names => names
            .iter()
            .map(|name| flag("--hide-env", name).map(|name: EnvName| name.as_str().to_owned()))
            .collect::<Result<_, Stop>>()?,
    };
    let values = keys.iter().chain(&named).filter_map(|name| env(name));
    let values = values.filter_map(|value| value.to_str().map(|value| Secret::new(value.trim())));
    let literal = registry.into_iter().flat_map(Registry::literal_keys);
    Ok(values.chain(literal.cloned()).collect())
}

/// The tools that the highest layer which speaks of them leaves the model.
fn only_tools(args: &ServeArgs, files: &[Layer]) -> Option<Vec<String>> {
    if args.tools.no_tools {
        return Some(Vec::new());
    }
    match args.tools.only_tool.as_slice() {
        [] => files
            .iter()
            .find_map(|layer| layer.settings.tools.only.clone()),
        names => Some(names.to_vec()),
    }
}

/// Where sessions are kept, if somebody says so. A flag's path is relative to the current folder, a file's to its own.
fn folder(args: &ServeArgs, files: &[Layer]) -> Option<PathBuf> {
    args.session.session_dir.clone().or_else(|| {
        files.iter().find_map(|layer| {
            let path = layer.settings.session.dir.as_ref()?;
            Some(layer.path.parent().unwrap_or(Path::new("")).join(path))
        })
    })
}

/// The instructions of the highest layer that names some. A flag's path is relative to the current folder, a file's to
/// its own.
fn instructions(args: &ServeArgs, files: &[Layer]) -> Result<Option<Instructions>, Stop> {
    let named = match &args.session.instructions {
        Some(path) => Some(path.clone()),
        None => files.iter().find_map(|layer| {
            let path = layer.settings.session.instructions.as_ref()?;
            Some(layer.path.parent().unwrap_or(Path::new("")).join(path))
        }),
    };
    let Some(path) = named else { return Ok(None) };
    let text = file::text(&path)?.ok_or_else(|| {
        Stop::Settings(format!(
            "{}: there are no such instructions",
            path.display()
        ))
    })?;
    Ok(Some(Instructions { path, text }))
}

#[cfg(test)]
mod tests;
