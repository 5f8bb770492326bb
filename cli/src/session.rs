//! Puts the libraries together: a session behind a protocol, its model, its tools, and what it stores.

use std::sync::Arc;
use std::time::Duration;

use turnwire::model::script::Script;
use turnwire::model::{ReplyLimits, RequestOptions};
use turnwire::protocol::openmax::{self, Extra, Openmax};
use turnwire::protocol::{Credentials, Server};
use turnwire::session::Session;
use turnwire::session::config::{ModelConfig, SessionConfig};
use turnwire::vocab::{ApprovalMode, Frozen, ModelRef, Now, SessionInfo, Text};
use turnwire_io::{Asked, Backend, Host, HttpProvider, Refrozen, Secret, World};

use crate::args::{DriverName, ServeArgs};
use crate::freeze::{self, Disk, OUTPUT_LIMIT};
use crate::keep::{self, Begun, Kept};
use crate::say::Stop;
use crate::settings::values::{Api, Approval};
use crate::settings::{Model, Provider};
use crate::start::Start;

/// Room for the marks of what was left out, and for headings.
const MARKS: usize = 4 * 1024;

/// Runs one session over stdin and stdout, and returns the exit code that its protocol asks for.
///
/// # Errors
/// [`Stop`] if it can't begin, or the driver fails.
pub fn serve(args: &ServeArgs, start: &Start) -> Result<u8, Stop> {
    let backend = backend(&start.settings.model)?;
    let now = Now {
        mono_us: 0,
        unix_ms: keep::unix_ms(),
    };
    let generation = session_id()?;
    let begun = keep::begin(start, &generation, now.unix_ms)?;
    let parts = freeze::parts(start, &begun.id)?;
    let disk = Disk::new(args, start, &begun.id, &parts);
    let (config, info) = session(start, &parts.frozen, &generation, &begun)?;
    let agent = Session::new(config, Box::new(info), now);
    let mut server = Server::<Openmax>::new(openmax::ServerConfig {
        agent_spawned: start.agent_spawned,
        coalesce_us: u64::from(start.settings.coalesce_ms) * 1000,
        ..openmax::ServerConfig::new(env!("CARGO_PKG_VERSION").into(), random()?)
    });
    let hidden = start.settings.hidden.iter().map(Secret::expose);
    server.hide(Credentials::new(hidden).map_err(|error| Stop::Settings(error.to_string()))?);
    if let Some(line) = freeze::over_budget(&parts.frozen.tools, &start.settings) {
        server.handle_extra(line, now);
    }
    let world = World {
        backend,
        durable: Box::new(Kept::new(start.clone(), begun.writer)),
        reload: Box::new(disk),
        toolbox: parts.toolbox,
        hooks: parts.hooks,
    };
    let mut host = Host::stdio(Box::new(|ask| match ask {}));
    host.refrozen = Some(refrozen(start));
    match args.driver {
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

/// The session's configuration, and what it says of itself at its start.
fn session(
    start: &Start,
    frozen: &Frozen,
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
    config.freeze(frozen.clone());
    config.settings.approvals = mode(start.approval);
    openmax::preset(&mut config);
    config.timeouts.stall_us = Some(micros(settings.idle_limit));
    config.timeouts.approval_us = settings.approval_limit.map(micros);
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
        skills: config.skills.clone(),
        media: Vec::new(),
    };
    Ok((config, info))
}

/// The lines of openmax for what was read anew: a receipt that nobody asked for, and the warning of large schemas.
fn refrozen(start: &Start) -> Refrozen<Openmax> {
    let settings = start.settings.clone();
    Box::new(move |reloaded, anew, asked| {
        let receipt = match asked {
            Asked::Host => None,
            Asked::Nobody => Some(Extra::Refrozen {
                tools: reloaded.tools.into(),
                skills: reloaded.skills.into(),
                changes: reloaded.changes.clone(),
            }),
        };
        let over = freeze::over_budget(&anew.frozen.tools, &settings);
        receipt.into_iter().chain(over).collect()
    })
}

fn mode(approval: Approval) -> ApprovalMode {
    match approval {
        Approval::Auto => ApprovalMode::Auto,
        Approval::Ask => ApprovalMode::Ask,
        Approval::Readonly => ApprovalMode::ReadOnly,
    }
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
