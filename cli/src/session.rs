//! Puts the libraries together: a session behind a protocol, its model, its tools, and what it stores.

use std::sync::Arc;
use std::time::Duration;

use turnwire::model::script::Script;
use turnwire::model::{ReplyLimits, RequestOptions};
use turnwire::protocol::Server;
use turnwire::protocol::openmax::{self, Openmax};
use turnwire::session::Session;
use turnwire::session::config::{ModelConfig, SessionConfig};
use turnwire::vocab::{Answer, ApprovalMode, ModelRef, Now, SessionInfo, Text};
use turnwire_io::tools::{Toolbox, ToolboxConfig};
use turnwire_io::{Backend, Host, HttpProvider, World};

use crate::args::DriverName;
use crate::hooks;
use crate::keep::{self, Begun, Kept};
use crate::say::Stop;
use crate::settings::values::{Api, Approval};
use crate::settings::{Model, Provider};
use crate::start::{SESSION_VARIABLE, Start};

/// Bytes of a tool's output that are kept.
const OUTPUT_LIMIT: usize = 256 * 1024;

/// Room for the marks of what was left out, and for headings.
const MARKS: usize = 4 * 1024;

/// Runs one session over stdin and stdout, and returns the exit code that its protocol asks for.
///
/// # Errors
/// [`Stop`] if it can't begin, or the driver fails.
pub fn serve(start: &Start, driver: DriverName) -> Result<u8, Stop> {
    let backend = backend(&start.settings.model)?;
    let now = Now {
        mono_us: 0,
        unix_ms: keep::unix_ms(),
    };
    let generation = session_id()?;
    let begun = keep::begin(start, &generation, now.unix_ms)?;
    let tools = tools(start, &begun.id);
    let hooks = hooks::runner(start, &tools, &begun.id);
    let toolbox = Toolbox::new(tools).map_err(|error| Stop::Settings(error.to_string()))?;
    let (config, info) = session(start, &toolbox, &generation, &begun)?;
    let agent = Session::new(config, Box::new(info), now);
    let server = Server::<Openmax>::new(openmax::ServerConfig {
        agent_spawned: start.agent_spawned,
        ..openmax::ServerConfig::new(env!("CARGO_PKG_VERSION").into(), random()?)
    });
    let world = World {
        backend,
        durable: Box::new(Kept::new(start.clone(), begun.writer)),
        reload: reload(&toolbox),
        toolbox,
        hooks,
    };
    let host = Host::stdio(Box::new(|ask| match ask {}));
    match driver {
        DriverName::Tokio => on_tokio(server, agent, world, host),
        DriverName::Blocking => turnwire_blocking::serve(server, agent, world, host)
            .map_err(|error| Stop::Failed(error.to_string())),
    }
}

fn on_tokio(
    server: Server<Openmax>,
    agent: Session,
    world: World,
    host: Host<Openmax>,
) -> Result<u8, Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Stop::Failed(format!("no runtime: {error}")))?;
    let served = runtime.block_on(turnwire_tokio::serve(server, agent, world, host));
    // A thread that still reads stdin can't be stopped; it ends with the process.
    runtime.shutdown_background();
    served.map_err(|error| Stop::Failed(error.to_string()))
}

/// Where model requests go.
fn backend(model: &Model) -> Result<Backend, Stop> {
    Ok(match model {
        Model::Builtin { .. } => Backend::Scripted(Arc::new(Script::builtin())),
        Model::Script { path, text } => {
            let script = Script::parse(text)
                .map_err(|fault| Stop::Settings(format!("{}: {fault}", path.display())))?;
            Backend::Scripted(Arc::new(script))
        }
        Model::Http(provider) => Backend::Http(Box::new(http(provider))),
    })
}

fn http(provider: &Provider) -> HttpProvider {
    HttpProvider {
        api: match provider.api {
            Api::Anthropic => turnwire::model::Api::Anthropic,
            Api::Openai | Api::Scripted => turnwire::model::Api::OpenAi,
        },
        base_url: provider.base_url.as_str().to_owned(),
        key: provider.key.clone(),
        headers: Vec::new(),
        options: RequestOptions {
            temperature: provider.temperature,
            ..RequestOptions::default()
        },
        limits: ReplyLimits::default(),
    }
}

/// The tools of the project. What they start is marked, so that an agent among it can't pass for a person.
fn tools(start: &Start, id: &str) -> ToolboxConfig {
    let settings = &start.settings;
    ToolboxConfig {
        allow_outside: settings.allow_outside,
        env: settings.pass_env.clone(),
        deny_env: settings.deny_env.clone(),
        output_limit: OUTPUT_LIMIT,
        extra_env: vec![(SESSION_VARIABLE.to_owned(), id.to_owned())],
        ..ToolboxConfig::new(&start.root)
    }
}

/// The session's configuration, and what it says of itself at its start.
fn session(
    start: &Start,
    toolbox: &Toolbox,
    generation: &str,
    begun: &Begun,
) -> Result<(SessionConfig, SessionInfo), Stop> {
    let settings = &start.settings;
    let provider = match &settings.model {
        Model::Builtin { .. } | Model::Script { .. } => "script",
        Model::Http(provider) => match provider.api {
            Api::Anthropic => "anthropic",
            Api::Openai | Api::Scripted => "openai",
        },
    };
    let name: Text = match &settings.model {
        Model::Http(provider) => provider.name.as_str().into(),
        Model::Builtin { .. } | Model::Script { .. } => "script".into(),
    };
    let model = ModelConfig {
        provider: Some(provider.into()),
        max_output: Some(settings.max_output),
        ..ModelConfig::new(name.clone(), settings.window)
    };
    let mut config = SessionConfig::new(model);
    config.seed = random()?;
    config.system = Some(system_text(start).into());
    config.tools = toolbox.specs();
    config.settings.approvals = mode(start.approval);
    openmax::preset(&mut config);
    hooks::configure(&mut config, start);
    config.timeouts.stall_us = Some(micros(settings.idle_limit));
    config.budgets.steps = Some(settings.max_steps);
    // The tools cut long output themselves, stream by stream; a second cut would fall between two streams.
    config.limits.tool_output_bytes = OUTPUT_LIMIT + MARKS;
    let project: Text = start.project.to_string_lossy().into();
    let info = SessionInfo {
        session: (&*begun.id).into(),
        name: None,
        generation: generation.into(),
        root: Some(project.clone()),
        cwd: project,
        product: concat!("turnwire/", env!("CARGO_PKG_VERSION")).into(),
        continued: begun.continued,
        history: begun.history.clone(),
        model: ModelRef {
            provider: Some(provider.into()),
            model: name,
        },
        api_model: None,
        efforts: Vec::new(),
        settings: Box::new(config.settings.clone()),
        tools: config.tools.iter().map(|tool| tool.name.clone()).collect(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: Vec::new(),
        media: Vec::new(),
    };
    Ok((config, info))
}

fn mode(approval: Approval) -> ApprovalMode {
    match approval {
        Approval::Auto => ApprovalMode::Auto,
        Approval::Ask => ApprovalMode::Ask,
        Approval::Readonly => ApprovalMode::ReadOnly,
    }
}

/// What the model is told before anything else.
fn system_text(start: &Start) -> String {
    format!(
        "You are a coding agent. You work in the folder {} on {}, with tools to look at files, change them and run \
         commands there. Relative paths begin at that folder. Look before you answer: read what is there instead of \
         guessing. Change only what you were asked to change, and check your work where that is possible. When a call \
         is refused, don't try to reach the same end another way; say what you would need. Answer in the user's \
         language, briefly and plainly.",
        start.project.display(),
        std::env::consts::OS,
    )
}

/// Tools and prompt are part of the program, so that freezing them anew changes nothing.
fn reload(toolbox: &Toolbox) -> Box<dyn FnMut() -> Result<Answer, Text> + Send> {
    let tools = u32::try_from(toolbox.specs().len()).unwrap_or(u32::MAX);
    Box::new(move || {
        Ok(Answer::Reloaded {
            tools,
            skills: 0,
            changes: Vec::new(),
        })
    })
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> Result<[u8; N], Stop> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Stop::Failed(format!("no randomness: {error}")))?;
    Ok(bytes)
}

/// A UUID of version 4, in lower case.
fn session_id() -> Result<String, Stop> {
    let mut bytes: [u8; 16] = random()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut id = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        for digit in [byte >> 4, byte & 0x0f] {
            id.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    Ok(id)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_uuids_of_version_4() {
        let (one, two) = (session_id().unwrap(), session_id().unwrap());
        assert_ne!(one, two);
        let parts: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert!(
            one.as_bytes()[14] == b'4' && b"89ab".contains(&one.as_bytes()[19]),
            "{one}"
        );
    }
}
