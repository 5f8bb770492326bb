//! Effects: started once what was said before them is written, settled exactly
//! once, a stopped one too.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use turnwire::model::script::ScriptReply;
use turnwire::model::{Api, ReplyDecoder, ReplyLimits, encode_with_media};
use turnwire::vocab::{
    Agent, Block, CallId, CommandId, Due, Effect, EffectBody, Event, Failure, FailureKind, Frozen,
    HookId, Input, JobId, McpFact, McpServer, ModelChunk, Now, OpenFault, PermissionUpdate,
    RequestId, RunId, RunStatus, Seen, Text, ToolOutcome, ToolSpec, ToolUpdate, What, WriteBody,
    WriteId,
};

use super::jobs::Records;
use super::reload::asked;
use super::{Caller, Report, Reporter, Start, Stopper};
use crate::hooks::{HookJob, Hooks};
use crate::jobs::LetGo;
use crate::mcp::{Act, Book, News, Place, ServerCall, ServerConfig, ServerRun};
use crate::media::Body;
use crate::model::{Backend, HttpProvider};
use crate::tools::{RestoreJob, SnapshotJob, ToolJob, Toolbox};
use crate::world::{Durable, OpenJob, World, WriteJob};

/// An effect that is ready to start, for the driver.
#[derive(Debug)]
pub enum Job {
    /// A model request over HTTP. Its parts are reported as [`Report::Model`].
    Http {
        /// Which request.
        request: RequestId,
        /// Where it goes.
        provider: Box<HttpProvider>,
        /// The JSON that is posted, once it is [whole](Body::whole).
        body: Body,
    },
    /// A model request that a script answers. Its parts are reported as [`Report::Model`].
    Script {
        /// Which request.
        request: RequestId,
        /// The reply with its pauses.
        reply: ScriptReply,
    },
    /// Work for the tools. What it says and its end are reported as [`Report::Tool`].
    Tool {
        /// For whom.
        caller: Caller,
        /// What to do.
        job: ToolJob,
    },
    /// A hook. Its end is reported as [`Report::Hook`].
    Hook {
        /// Which run.
        hook: HookId,
        /// What to do.
        job: HookJob,
    },
    /// A run of an MCP server. What it says and its end are reported as [`Report::Mcp`].
    Server {
        /// Which run.
        run: ServerRun,
        /// What to start.
        config: Arc<ServerConfig>,
        /// Where.
        place: Arc<Place>,
    },
    /// A call of an MCP server's tool. Its end is reported as [`Report::Tool`].
    ServerCall {
        /// For whom.
        caller: Caller,
        /// What to call.
        call: ServerCall,
    },
}

/// Work of the storage thread: it says what came of it.
pub(super) type StorageJob = Box<dyn FnOnce() -> Report + Send>;

/// What waits for its turn.
enum Work {
    Http {
        request: RequestId,
        provider: Box<HttpProvider>,
        body: Body,
    },
    Script {
        request: RequestId,
        api: Api,
        reply: ScriptReply,
    },
    Tool {
        caller: Caller,
        job: ToolJob,
    },
    Hook {
        hook: HookId,
        job: HookJob,
    },
    Server {
        run: ServerRun,
        config: Arc<ServerConfig>,
        place: Arc<Place>,
    },
    ServerCall {
        caller: Caller,
        call: ServerCall,
    },
    Store {
        write: WriteId,
        job: WriteJob,
    },
    Snapshot {
        call: CallId,
        job: SnapshotJob,
    },
    Restore {
        command: CommandId,
        job: RestoreJob,
    },
    Open {
        command: CommandId,
        job: OpenJob,
    },
}

struct LiveModel {
    /// `None` while the loop reads with it.
    decoder: Option<ReplyDecoder>,
    stop: Stopper,
}

/// What became of MCP servers.
pub(super) struct McpNews {
    /// What happened.
    pub(super) facts: Vec<McpFact>,
    /// All tools of the driver, and how the servers stand, if the session doesn't know it.
    pub(super) changes: Option<(Vec<ToolSpec>, Vec<McpServer>)>,
}

/// Every effect of one session that is not settled yet.
pub(super) struct Effects {
    pub(super) world: World,
    report: Reporter,
    /// Permits that are held back until the agent wants bulk again.
    pub(super) owed: usize,
    /// Effects that wait until the output is written up to a mark.
    waiting: VecDeque<(u64, Work)>,
    /// Settlements that need no job, in order.
    pub(super) ready: VecDeque<Input<'static>>,
    models: BTreeMap<RequestId, LiveModel>,
    /// Running tools; without a stopper they are being stopped.
    pub(super) tools: BTreeMap<Caller, Option<Stopper>>,
    /// Calls that may go on in the background, and the word that lets each go.
    pub(super) open: BTreeMap<CallId, LetGo>,
    /// Background jobs that run, likewise.
    pub(super) jobs: BTreeMap<JobId, Option<Stopper>>,
    pub(super) records: Records,
    /// Running hooks, likewise.
    hooks: BTreeMap<HookId, Option<Stopper>>,
    /// Running MCP servers, likewise.
    servers: BTreeMap<ServerRun, Option<Stopper>>,
    mcp: Option<Book>,
    storage: Option<mpsc::Sender<StorageJob>>,
    /// Where the writes of a session go that is ready to be the open one.
    pub(super) ready_to_go: Option<Box<dyn Durable>>,
    /// Requests that went to a script, retries included.
    requests: u64,
}

impl Effects {
    pub(super) fn new(mut world: World, report: Reporter) -> Self {
        Effects {
            mcp: world.mcp.take().map(Book::new),
            servers: BTreeMap::new(),
            world,
            report,
            owed: 0,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            models: BTreeMap::new(),
            tools: BTreeMap::new(),
            open: BTreeMap::new(),
            jobs: BTreeMap::new(),
            records: Records::default(),
            hooks: BTreeMap::new(),
            storage: None,
            ready_to_go: None,
            requests: 0,
        }
    }

    /// A chunk of a model, fit to be shown: see [`Backend::without_key`].
    pub(super) fn without_key<'a>(&self, chunk: ModelChunk<'a>) -> ModelChunk<'a> {
        self.world.backend.without_key(chunk)
    }

    /// A settlement that needed no task.
    pub(super) fn ready(&mut self) -> Option<Input<'static>> {
        self.ready.pop_front()
    }

    /// Permits for bulk that may be given back.
    pub(super) fn take_owed(&mut self) -> usize {
        std::mem::take(&mut self.owed)
    }

    /// Takes one effect from the agent. Work waits until `mark` bytes of output are written; stops act at once.
    pub(super) fn take(&mut self, agent: &impl Agent, run: RunId, effect: Effect, mark: u64) {
        let work = match (&effect, agent.body(run, &effect)) {
            (Effect::StartModel(request), Some(EffectBody::Model(body))) => {
                match &self.world.backend {
                    Backend::Http(provider) => {
                        let (api, options) = (provider.api, &provider.options);
                        let media = &self.world.media;
                        let mut bytes = Vec::new();
                        let mut body = body;
                        body.model = provider.model(body.model);
                        let gaps = encode_with_media(
                            api,
                            &body,
                            options,
                            &media.limits(),
                            &|stored| media.has(stored),
                            &mut bytes,
                        );
                        Work::Http {
                            request: *request,
                            provider: provider.clone(),
                            body: Body::new(bytes, gaps, media.clone()),
                        }
                    }
                    Backend::Scripted(script) => {
                        self.requests += 1;
                        let (api, reply) = (script.api(), script.reply_nth(&body, self.requests));
                        Work::Script {
                            request: *request,
                            api,
                            reply,
                        }
                    }
                }
            }
            (Effect::RunTool { call }, Some(EffectBody::Tool { name, input, .. })) => {
                let caller = Caller::Model(*call);
                match self.mcp.as_ref().and_then(|mcp| mcp.call(name, &input.0)) {
                    Some(Ok(call)) => Work::ServerCall { caller, call },
                    Some(Err(why)) => {
                        let update = failed(&why);
                        self.ready.push_back(Input::Tool {
                            call: *call,
                            update,
                        });
                        return;
                    }
                    None => {
                        let job = self.world.toolbox.prepare(name, &input.0).of(*call);
                        if let ToolJob::Open(job) = &job {
                            self.open.insert(*call, job.let_go().clone());
                        }
                        Work::Tool { caller, job }
                    }
                }
            }
            (Effect::RunShell(command), Some(EffectBody::Shell { command: line })) => Work::Tool {
                caller: Caller::Person(*command),
                job: self.world.toolbox.prepare_shell(line),
            },
            (
                Effect::RunHook { hook },
                Some(EffectBody::Hook {
                    key,
                    point,
                    facts,
                    tool,
                }),
            ) => match self.world.hooks.prepare(key, point, &facts, tool) {
                Some(job) => Work::Hook { hook: *hook, job },
                None => return self.hook_over(*hook, "there is no hook of this name"),
            },
            (Effect::Store(write), Some(EffectBody::Write(body))) => {
                // What a person allowed counts for the call that waits for it.
                if let WriteBody::Approval(source) = &body {
                    self.world.toolbox.approve(source);
                }
                if let WriteBody::Permissions(updates) = &body {
                    self.let_use(updates);
                }
                Work::Store {
                    write: *write,
                    job: self.world.durable.prepare_of(run, &body),
                }
            }
            (
                Effect::Snapshot { call, .. },
                Some(EffectBody::Snapshot {
                    name, input, at, ..
                }),
            ) => match &self.world.snapshots {
                Some(kept) => Work::Snapshot {
                    call: *call,
                    job: self
                        .world
                        .toolbox
                        .prepare_snapshot(kept, name, &input.0, at),
                },
                None => return self.act(effect),
            },
            (Effect::Restore(command), Some(EffectBody::Restore { to, at, dry_run })) => {
                match &self.world.snapshots {
                    Some(kept) => Work::Restore {
                        command: *command,
                        job: self.world.toolbox.prepare_restore(kept, to, at, dry_run),
                    },
                    None => return self.act(effect),
                }
            }
            (Effect::OpenSession(command), Some(EffectBody::Open { which, from })) => {
                match &mut self.world.sessions {
                    Some(sessions) => Work::Open {
                        command: *command,
                        job: sessions.prepare(&which, from),
                    },
                    None => return self.act(effect),
                }
            }
            _ => return self.act(effect),
        };
        self.waiting.push_back((mark, work));
    }

    /// The folders of permission updates are the tools' to use from now on.
    fn let_use(&self, updates: &[PermissionUpdate]) {
        for update in updates {
            match update {
                PermissionUpdate::Directories { op, paths, .. } => {
                    self.world.toolbox.let_use(*op, paths)
                }
                PermissionUpdate::Rules { .. } | PermissionUpdate::Mode { .. } => {}
            }
        }
    }

    /// Effects that start nothing, and those that this driver can't carry out: those fail in their own words.
    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::StopModel(request) => self.stop_model(request),
            Effect::StopTool(call) => self.stop_tool(Caller::Model(call)),
            Effect::StopShell(command) => self.stop_tool(Caller::Person(command)),
            Effect::StopJob(job) => self.stop_job(job),
            Effect::Reload(command) => self.reload(command),
            Effect::StopHook(hook) => self.stop_hook(hook),
            Effect::RunHook { hook } => self.hook_over(hook, "the hook had no body"),
            Effect::StartModel(request) => {
                self.ready.push_back(Input::Model {
                    request,
                    chunk: internal("the request had no body"),
                });
            }
            Effect::RunTool { call } => {
                self.ready.push_back(Input::Tool {
                    call,
                    update: failed("the call had no body"),
                });
            }
            Effect::Snapshot { call, .. } => {
                self.ready.push_back(Input::Tool {
                    call,
                    update: failed("not run: this driver puts no files aside"),
                });
            }
            Effect::Restore(command) => {
                let outcome = Err("this driver puts no files aside".into());
                self.ready.push_back(Input::Restored { command, outcome });
            }
            Effect::Store(write) => {
                self.ready.push_back(Input::Store {
                    write,
                    ok: Err("the write had no body".into()),
                });
            }
            Effect::RunShell(command) => {
                self.ready.push_back(Input::Shell {
                    command,
                    outcome: failed("the command had no body"),
                });
            }
            Effect::OpenSession(command) => {
                let other = Err(OpenFault::Failed(
                    "this driver opens no other sessions".into(),
                ));
                self.ready.push_back(Input::Opened { command, other });
            }
            Effect::DetachTool(call) => self.let_go(call),
            // It belongs to an effect that failed above.
            Effect::StopRun(_) => {}
            Effect::StartRun { run, .. } => {
                let ended = What::RunEnded {
                    run,
                    status: RunStatus::Failed,
                    steps: 0,
                    usage: None,
                    detail: "this driver holds no nested runs; a session tree does".into(),
                };
                let event = Event {
                    at: Now::default(),
                    run: RunId::MAIN,
                    seen: Seen::Real,
                    what: ended,
                };
                let event = Box::new(event);
                self.ready.push_back(Input::Run { run, event });
            }
            other @ (Effect::Allow { .. } | Effect::CallRun(..)) => {
                tracing::error!(effect = ?other, "this driver can't carry out an effect")
            }
        }
    }

    fn stop_model(&mut self, request: RequestId) {
        let unstarted = self.unqueue(|w| matches!(w, Work::Http { request: r, .. } | Work::Script { request: r, .. } if *r == request));
        let running = self.models.remove(&request);
        let stopped = running.is_some();
        if let Some(live) = running {
            (live.stop)();
        }
        // Neither: it was settled while the stop was on its way.
        if unstarted || stopped {
            self.ready.push_back(Input::Model {
                request,
                chunk: ModelChunk::End,
            });
        }
    }

    fn stop_tool(&mut self, caller: Caller) {
        if self.unqueue(|w| matches!(w, Work::Tool { caller: c, .. } | Work::ServerCall { caller: c, .. } if *c == caller)) {
            let update = ToolUpdate::Done {
                outcome: ToolOutcome::Cancelled,
                content: Vec::new(),
                show: None,
            };
            self.closed(caller);
            self.ready.push_back(caller.news(update));
        } else if let Some(stop) = self.tools.get_mut(&caller).and_then(Option::take) {
            stop();
        }
    }

    fn stop_hook(&mut self, hook: HookId) {
        if self.unqueue(|w| matches!(w, Work::Hook { hook: h, .. } if *h == hook)) {
            self.hook_over(hook, "it was stopped");
        } else if let Some(stop) = self.hooks.get_mut(&hook).and_then(Option::take) {
            stop();
        }
    }

    fn hook_over(&mut self, hook: HookId, why: &str) {
        let outcome = Err(why.into());
        self.ready.push_back(Input::Hook { hook, outcome });
    }

    fn unqueue(&mut self, found: impl Fn(&Work) -> bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, work)| !found(work));
        self.waiting.len() < before
    }

    /// Starts what waited for output that is written now.
    pub(super) fn start_due(&mut self, written: u64, start: &mut impl Start) {
        while let Some((_, work)) = self.waiting.pop_front_if(|(mark, _)| *mark <= written) {
            self.begin(work, start);
        }
    }

    fn begin(&mut self, work: Work, start: &mut impl Start) {
        match work {
            Work::Http {
                request,
                provider,
                body,
            } => {
                let decoder = ReplyDecoder::new(provider.api, provider.limits);
                let job = Job::Http {
                    request,
                    provider,
                    body,
                };
                self.await_reply(request, decoder, start.start(job));
            }
            Work::Script {
                request,
                api,
                reply,
            } => {
                let decoder = ReplyDecoder::new(api, ReplyLimits::default());
                let stop = start.start(Job::Script { request, reply });
                self.await_reply(request, decoder, stop);
            }
            Work::Tool { caller, job } => {
                let stop = start.start(Job::Tool { caller, job });
                self.tools.insert(caller, Some(stop));
            }
            Work::Hook { hook, job } => {
                let stop = start.start(Job::Hook { hook, job });
                self.hooks.insert(hook, Some(stop));
            }
            Work::Server { run, config, place } => {
                let stop = start.start(Job::Server { run, config, place });
                self.servers.insert(run, Some(stop));
            }
            Work::ServerCall { caller, call } => {
                let stop = start.start(Job::ServerCall { caller, call });
                self.tools.insert(caller, Some(stop));
            }
            Work::Store { write, job } => self.store(write, job),
            Work::Snapshot { call, job } => self.snapshot(call, job),
            Work::Restore { command, job } => self.restore(command, job),
            Work::Open { command, job } => self.open(command, job),
        }
    }

    fn await_reply(&mut self, request: RequestId, decoder: ReplyDecoder, stop: Stopper) {
        let decoder = Some(decoder);
        self.models.insert(request, LiveModel { decoder, stop });
    }

    /// A hook's run is over.
    pub(super) fn hook_ended(&mut self, hook: HookId) {
        self.hooks.remove(&hook);
    }

    fn store(&mut self, write: WriteId, job: WriteJob) {
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|p| Err(panic_text(&*p)));
            Report::Stored(write, done.map_err(Text::from))
        };
        if !self.on_storage(Box::new(run)) {
            self.ready.push_back(Input::Store {
                write,
                ok: Err("the storage thread is gone".into()),
            });
        }
    }

    fn snapshot(&mut self, call: CallId, job: SnapshotJob) {
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|p| Err(panic_text(&*p)));
            let update = match done {
                Ok((files, sequence)) => ToolUpdate::Snapshotted { files, sequence },
                Err(why) => failed(&format!(
                    "not run: the file could not be put aside first: {why}"
                )),
            };
            Report::Snapshotted(call, update)
        };
        if !self.on_storage(Box::new(run)) {
            self.ready.push_back(Input::Tool {
                call,
                update: failed("not run: the storage thread is gone"),
            });
        }
    }

    fn restore(&mut self, command: CommandId, job: RestoreJob) {
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|p| Err(panic_text(&*p)));
            Report::Restored(command, done.map(Box::new).map_err(Text::from))
        };
        if !self.on_storage(Box::new(run)) {
            self.ready.push_back(Input::Restored {
                command,
                outcome: Err("the storage thread is gone".into()),
            });
        }
    }

    fn reload(&mut self, command: CommandId) {
        let job = self.world.reload.prepare(asked(command));
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|p| Err(panic_text(&*p)));
            Report::Reloaded(command, done.map_err(Text::from))
        };
        if !self.on_storage(Box::new(run)) {
            self.ready.push_back(Input::Reloaded {
                command,
                outcome: Err("the storage thread is gone".into()),
            });
        }
    }

    /// Whether the configuration is read before each turn.
    pub(super) fn reloads_before_turns(&self) -> bool {
        self.world.reload.before_turns()
    }

    /// Tools and hooks that are used from now on. What runs goes on with those that it began with.
    pub(super) fn refreeze(&mut self, frozen: &mut Frozen, toolbox: Toolbox, hooks: Hooks) {
        if let Some(mcp) = &mut self.mcp {
            frozen.tools = mcp.beside(std::mem::take(&mut frozen.tools));
        }
        self.world.toolbox = toolbox.let_use_as(&self.world.toolbox);
        self.world.hooks = hooks;
    }

    /// Hands work to the storage thread, which does one thing after the other.
    pub(super) fn on_storage(&mut self, job: StorageJob) -> bool {
        let report = self.report.clone();
        let storage = self.storage.get_or_insert_with(|| {
            let (send, jobs) = mpsc::channel::<StorageJob>();
            let thread = std::thread::Builder::new().name("turnwire-store".into());
            let started = thread.spawn(move || {
                for job in jobs {
                    report(job());
                }
            });
            if let Err(e) = started {
                tracing::error!(error = %e, "no storage thread");
            }
            send
        });
        let sent = storage.send(job).is_ok();
        if !sent {
            self.storage = None;
        }
        sent
    }

    /// Whether a request runs: not settled, not stopped.
    pub(super) fn is_live(&self, request: RequestId) -> bool {
        self.models.contains_key(&request)
    }

    /// The decoder of a live request, for one part of its reply. `None`: it was stopped, and settled then.
    pub(super) fn lend_decoder(&mut self, request: RequestId) -> Option<ReplyDecoder> {
        self.owed += 1;
        self.models.get_mut(&request)?.decoder.take()
    }

    /// Takes the decoder back; a settled request ends.
    pub(super) fn return_decoder(
        &mut self,
        request: RequestId,
        decoder: ReplyDecoder,
        settled: bool,
    ) {
        if settled {
            if let Some(live) = self.models.remove(&request) {
                (live.stop)();
            }
        } else if let Some(live) = self.models.get_mut(&request) {
            live.decoder = Some(decoder);
        }
    }

    /// Keeps the books for what a tool says, before it is handed over.
    pub(super) fn note(&mut self, caller: Caller, update: &ToolUpdate) {
        if matches!(update, ToolUpdate::Progress(_)) {
            self.owed += 1;
        }
        if matches!(update, ToolUpdate::Done { .. }) {
            self.closed(caller);
            self.tools.remove(&caller);
        }
    }

    /// Starts and ends MCP servers as it is wished; new ones start once the output is written up to `mark`. `None`: there
    /// are none at all.
    pub(super) fn sync_mcp(&mut self, now: Now, mark: u64) -> Option<McpNews> {
        let mcp = self.mcp.as_mut()?;
        let acts = mcp.sync(now.mono_us);
        let place = mcp.place();
        let news = McpNews {
            changes: mcp.changes(),
            facts: mcp.facts(),
        };
        for act in acts {
            match act {
                Act::Start(run, config) => {
                    let place = place.clone();
                    let work = Work::Server { run, config, place };
                    self.waiting.push_back((mark, work));
                }
                Act::Stop(run) => {
                    if !self.unqueue(|w| matches!(w, Work::Server { run: r, .. } if *r == run))
                        && let Some(stop) = self.servers.get_mut(&run).and_then(Option::take)
                    {
                        stop();
                    }
                }
            }
        }
        Some(news)
    }

    /// An MCP server's run tells something.
    pub(super) fn mcp_told(&mut self, run: ServerRun, news: News, now: Now) {
        if matches!(news, News::Down(_)) {
            self.servers.remove(&run);
        }
        if let Some(mcp) = &mut self.mcp {
            mcp.news(run, news, now.mono_us);
        }
    }

    /// When an MCP server is to be started again.
    pub(super) fn due_of_mcp(&self) -> Option<Due> {
        self.mcp.as_ref().and_then(Book::due)
    }

    /// Until when a turn that would begin now waits for MCP servers.
    pub(super) fn wait_for_mcp(&self, now: Now) -> Option<u64> {
        self.mcp.as_ref()?.wait_until(now.mono_us)
    }

    /// Stops all that runs, and forgets what doesn't yet.
    pub(super) fn stop_all(&mut self) {
        self.waiting.clear();
        for (_, live) in std::mem::take(&mut self.models) {
            (live.stop)();
        }
        let tools = self.tools.values_mut().filter_map(Option::take);
        let stoppers: Vec<Stopper> = tools
            .chain(self.jobs.values_mut().filter_map(Option::take))
            .chain(self.hooks.values_mut().filter_map(Option::take))
            .chain(self.servers.values_mut().filter_map(Option::take))
            .collect();
        for stop in stoppers {
            stop();
        }
    }

    /// Whether tools, jobs, hooks or servers run, the ones that are being stopped too: their process groups may be there.
    /// Records that are on their way to the disk count as well.
    pub(super) fn is_running(&self) -> bool {
        let tools = self.tools.is_empty() && self.jobs.is_empty();
        let others = self.hooks.is_empty() && self.servers.is_empty();
        !(tools && others && self.records.are_kept())
    }

    /// Keeps the books for what comes after [`stop_all`](Effects::stop_all).
    pub(super) fn take_last(&mut self, report: &Report) {
        match report {
            Report::Tool(caller, update) => self.note(*caller, update),
            Report::Detached(caller, ..) => self.detached(*caller),
            Report::JobOver(job, ..) => self.job_over(*job),
            Report::Kept(job, fault) => drop(self.kept(*job, fault.clone())),
            Report::Hook(hook, _) => self.hook_ended(*hook),
            Report::Mcp(run, News::Down(_)) => {
                self.servers.remove(run);
            }
            Report::Mcp(_, News::Greeted(..) | News::Listed(_))
            | Report::Model(..)
            | Report::Output(..)
            | Report::Stored(..)
            | Report::Reloaded(..)
            | Report::Snapshotted(..)
            | Report::Restored(..)
            | Report::Opened(..)
            | Report::Answered => {}
        }
    }
}

fn internal(text: &str) -> ModelChunk<'static> {
    let failure = Failure {
        kind: FailureKind::Internal,
        status: None,
        retryable: false,
        text: text.into(),
    };
    ModelChunk::Failed {
        failure,
        reached: false,
        retry_after_us: None,
    }
}

/// The end of a call that failed.
pub fn failed(text: &str) -> ToolUpdate {
    ToolUpdate::Done {
        outcome: ToolOutcome::Failed,
        content: vec![Block::Text(text.into())],
        show: None,
    }
}

/// What a job that panicked says of itself.
pub fn crashed(what: &str, panic: &(dyn Any + Send)) -> String {
    format!("{what} crashed: {}", panic_text(panic))
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}
