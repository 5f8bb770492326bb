//! Puts the libraries together: a session behind a protocol, its model, its tools, and what it stores.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use turnwire::model::script::Script;
use turnwire::model::{ReplyLimits, RequestOptions};
use turnwire::protocol::{Credentials, LEAST_BYTES, OnCredential, Protocol, Server};
use turnwire::session::config::{ModelConfig, Price, SessionConfig, Snapshots};
use turnwire::session::{Session, SessionTree};
use turnwire::vocab::{
    ApprovalMode, Briefing, Frozen, ModelRef, Now, Route, SessionInfo, Text, ToolSpec,
};
use turnwire_io::{Backend, Host, HttpProvider, Secret, World};

use crate::args::{DriverName, ServeArgs};
use crate::below::{Below, Helpers};
use crate::foreign::print::Printer;
use crate::freeze::{self, Disk, OUTPUT_LIMIT};
use crate::ids::random;
use crate::keep::{self, Begun, Kept};
use crate::mcp;
use crate::media;
use crate::protocols::{Opening, Served};
use crate::say::{self, Stop};
use crate::sessions::{Others, file};
use crate::settings::values::{Api, Approval};
use crate::settings::{Model, Provider, Settings};
use crate::start::Start;

/// Room for the marks of what was left out, and for headings.
const MARKS: usize = 4 * 1024;

/// Runs one session over stdin and stdout, and returns the exit code that its protocol asks for.
///
/// # Errors
/// [`Stop`] if it can't begin, or the driver fails.
pub fn serve<P: Served>(args: &ServeArgs, start: &Start) -> Result<u8, Stop> {
    P::check(args, start)?;
    let backend = backend(&start.settings.model)?;
    let now = Now {
        mono_us: 0,
        unix_ms: keep::unix_ms(),
    };
    let generation = P::session_ids(args).make(now.unix_ms)?;
    let bound = P::is_bound(args);
    let begun = keep::begin(
        start,
        &args.foreign.resumed,
        &generation,
        bound,
        now.unix_ms,
    )?;
    let jobs = P::HAS_JOBS
        .then(|| keep::jobs(&begun, &generation))
        .transpose()?;
    let place = jobs.as_ref().map(|jobs| &jobs.place);
    let own = P::own_tools();
    let parts = freeze::parts(args, start, &begun.id, place, &own)?;
    start.approvals.freeze(&start.settings.external);
    let servers = mcp::servers(args, &start.settings);
    let disk = Disk::new(args, start, &begun.id, &parts, &own, &servers);
    let (mut config, mut info) = session::<P>(args, start, &parts.frozen, &generation, &begun)?;
    let begins_runs = |tool: &ToolSpec| matches!(tool.route, Route::Run(_));
    let below = own
        .iter()
        .any(begins_runs)
        .then(|| below(start, &begun))
        .flatten();
    if let Some(below) = &below {
        let stop = |error| Stop::Session(format!("no place for nested runs: {error}"));
        config.last_run = below.last(&begun.id).map_err(stop)?;
    }
    config.jobs = jobs.map(|jobs| jobs.earlier).unwrap_or_default();
    info.mcp = servers.at_first();
    let limits = start
        .settings
        .attachments
        .filter(|_| P::takes_attachments(args));
    let blobs = media::open(start, &begun, limits.as_ref())?;
    let opening = Opening {
        args,
        start,
        begun: &begun,
        frozen: &parts.frozen,
        model: &info.model,
        seed: random()?,
        blobs: blobs.as_ref(),
        servers: &servers,
        below: below.as_ref(),
    };
    // Before the face is made, which says what is there.
    let first = P::first_prompt(&opening)?;
    let snapshots = (config.policy.snapshots != Snapshots::Never)
        .then(|| keep::snapshots(&begun))
        .flatten();
    let mut server = Server::<P>::new(P::face(&opening));
    server
        .hide(credentials::<P>(start)?)
        .map_err(|error| Stop::Settings(error.to_string()))?;
    for extra in P::first_words(&opening) {
        server.handle_extra(extra, now);
    }
    let mut host = Host::stdio(P::answer(&opening));
    host.refrozen = P::refrozen(start);
    host.heard_mcp = P::heard_mcp();
    if let Some(first) = first {
        let first = std::io::Cursor::new(first);
        host.input = if args.foreign.prompt.is_some() {
            Box::new(first)
        } else {
            Box::new(first.chain(host.input))
        };
    }
    if let Some(form) = args.foreign.printed {
        host.output = Box::new(Printer::new(std::io::stdout(), form));
    }
    let agent = Session::new(config, Box::new(info), now);
    let helpers = Helpers {
        below: below.clone(),
    };
    let agent = SessionTree::new(agent, helpers);
    let world = World {
        snapshots,
        backend,
        sessions: Some(Box::new(Others::new(
            start.clone(),
            P::session_ids(args),
            below.clone(),
        ))),
        durable: Box::new(Kept::new(start.clone(), begun.writer, below)),
        reload: Box::new(disk),
        mcp: mcp::world(args, start, &servers, &begun.id, parts.frozen.tools),
        toolbox: parts.toolbox,
        hooks: parts.hooks,
        media: media::of(blobs.as_ref(), start.settings.attachments.as_ref()),
    };
    match args.driver {
        DriverName::Tokio => on_tokio(server, agent, world, host),
        DriverName::Blocking => turnwire_blocking::serve(server, agent, world, host)
            .map_err(|error| Stop::Failed(error.to_string())),
    }
}

/// Where nested runs are kept: where the session is.
fn below(start: &Start, begun: &Begun) -> Option<Below> {
    begun.writer.as_ref()?;
    Some(Below::new(start.store.as_ref()?, start.root.to_str()?))
}

/// What no line may hold. A protocol that must not write one at all has even the shortest looked for; where one is
/// replaced, that would be found in words that nobody meant.
///
/// # Errors
/// [`Stop::Settings`] if they are too many.
pub fn credentials<P: Protocol>(start: &Start) -> Result<Credentials, Stop> {
    let hidden = &start.settings.hidden;
    let values = hidden.iter().map(Secret::expose);
    let found = match P::ON_CREDENTIAL {
        OnCredential::Hide => Credentials::new(values),
        OnCredential::Latch => {
            if hidden
                .iter()
                .any(|value| value.expose().len() < LEAST_BYTES)
            {
                say::line(format_args!(
                    "a key, or another value that no line may hold, has less than {LEAST_BYTES} bytes: \
                     a word that happens to hold it ends the session"
                ));
            }
            Credentials::exact(values)
        }
    };
    found.map_err(|error| Stop::Settings(error.to_string()))
}

fn on_tokio<P: Protocol>(
    server: Server<P>,
    agent: SessionTree<Helpers>,
    world: World,
    host: Host<P>,
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
        door: provider.door.clone(),
        unnamed: provider.unnamed,
        key: provider.key.clone(),
        headers: provider
            .version_header
            .iter()
            .map(|version| ("anthropic-version".to_owned(), version.clone()))
            .collect(),
        options: RequestOptions {
            temperature: provider.temperature,
            ..RequestOptions::default()
        },
        limits: ReplyLimits::default(),
    }
}

/// The session's configuration, and what it says of itself at its start.
fn session<P: Served>(
    args: &ServeArgs,
    start: &Start,
    frozen: &Frozen,
    generation: &str,
    begun: &Begun,
) -> Result<(SessionConfig, SessionInfo), Stop> {
    let settings = &start.settings;
    let provider: Text = settings.provider.as_str().into();
    let name: Text = match &settings.model {
        Model::Http(provider) => provider.name.as_str().into(),
        Model::Builtin { .. } | Model::Script { .. } => "script".into(),
    };
    let model = ModelConfig {
        provider: Some(provider.clone()),
        max_output: Some(settings.max_output),
        price: price(settings, &name),
        thinking_budget: args.foreign.thinking_budget,
        ..ModelConfig::new(name.clone(), settings.window)
    };
    let other = |name: &String| ModelConfig {
        name: name.as_str().into(),
        price: price(settings, name),
        ..model.clone()
    };
    let mut config = SessionConfig::new(model.clone());
    config.models = settings.others.iter().map(other).collect();
    // A provider of the registry has the one model of its entry.
    if settings.registry.is_some() {
        config.models.push(model);
    }
    let prices = settings.prices.iter();
    config.prices = prices
        .map(|(of, price)| (of.as_str().into(), price.clone()))
        .collect();
    config.seed = random()?;
    config.freeze(frozen.clone());
    config.settings.approvals = mode(start.approval);
    config.settings.thinking = settings.thinking.as_deref().map(Into::into);
    P::preset(&mut config, args);
    // Files are put aside beside the session's own, or not at all.
    if begun.writer.is_none() {
        config.policy.snapshots = Snapshots::Never;
    }
    // What is kept is safe before the end of its turn is said, whatever the contract asks for.
    config.policy.gates.turn_end |= begun.writer.is_some();
    config.policy.gates.name |= begun.writer.is_some();
    config.timeouts.stall_us = Some(micros(settings.idle_limit));
    config.timeouts.approval_us = settings.approval_limit.map(micros);
    config.budgets.steps = Some(settings.max_steps);
    config.budgets.pico_usd = settings.max_budget;
    // The tools cut long output themselves, stream by stream; a second cut would fall between two streams.
    config.limits.tool_output_bytes = OUTPUT_LIMIT + MARKS;
    let project: Text = start.project.to_string_lossy().into();
    let info = SessionInfo {
        session: (&*begun.id).into(),
        name: begun.name.as_deref().map(Into::into),
        file: begun.writer.as_ref().map(file),
        generation: generation.into(),
        root: Some(project.clone()),
        cwd: project,
        product: concat!("turnwire/", env!("CARGO_PKG_VERSION")).into(),
        continued: begun.continued,
        history: begun.history.clone(),
        summarised: Vec::new(),
        model: ModelRef {
            provider: Some(provider),
            model: name,
        },
        api_model: None,
        efforts: settings
            .efforts
            .iter()
            .map(|it| it.as_str().into())
            .collect(),
        settings: Box::new(config.settings.clone()),
        tools: config.tools.iter().map(|tool| tool.name.clone()).collect(),
        briefing: Briefing::default(),
        mcp: Vec::new(),
        commands: Vec::new(),
        skills: config.skills.clone(),
        media: Vec::new(),
    };
    Ok((config, info))
}

fn price(settings: &Settings, model: &str) -> Option<Price> {
    let mut prices = settings.prices.iter();
    let found = prices.find(|(of, _)| of == model);
    found.map(|(_, price)| price.clone())
}

fn mode(approval: Approval) -> ApprovalMode {
    match approval {
        Approval::Auto => ApprovalMode::Auto,
        Approval::Ask => ApprovalMode::Ask,
        Approval::Edits => ApprovalMode::AcceptEdits,
        Approval::Readonly => ApprovalMode::ReadOnly,
        Approval::Plan => ApprovalMode::Plan,
        Approval::Never => ApprovalMode::Never,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
