//! Effects: started once what was said before them is written, settled exactly
//! once, a stopped one too.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;

use futures::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use turnwire::model::script::ScriptReply;
use turnwire::model::{Api, ReplyDecoder, ReplyLimits, encode_request};
use turnwire::vocab::{
    Agent, Block, CallId, Effect, EffectBody, Failure, FailureKind, HookId, HookReply, Input,
    ModelChunk, RequestId, RunId, Text, ToolOutcome, ToolUpdate, WriteId,
};

use turnwire_io::hooks::HookJob;
use turnwire_io::{Backend, Part, World, WriteJob};

use crate::tools::CancelToken;

/// How many pieces of bulk (bodies, progress) may lie between the tasks and the loop.
const BULK: usize = 4;

/// What a task tells the loop.
#[derive(Debug)]
pub(crate) enum Report {
    Model(RequestId, Part),
    Tool(CallId, ToolUpdate),
    Hook(HookId, Result<HookReply, Text>),
    Stored(WriteId, Result<(), Text>),
}

/// An effect that is ready to start.
enum Work {
    Model {
        request: RequestId,
        body: Vec<u8>,
    },
    Script {
        request: RequestId,
        api: Api,
        reply: ScriptReply,
    },
    Tool {
        call: CallId,
        name: String,
        input: String,
    },
    Hook {
        hook: HookId,
        job: HookJob,
    },
    Store {
        write: WriteId,
        job: WriteJob,
    },
}

struct LiveModel {
    /// `None` while the loop reads with it.
    decoder: Option<ReplyDecoder>,
    task: AbortHandle,
}

/// Every effect of one session that is not settled yet.
pub(crate) struct Effects {
    world: World,
    #[cfg(feature = "http")]
    client: Arc<crate::model::http::LazyClient>,
    report: mpsc::UnboundedSender<Report>,
    reports: mpsc::UnboundedReceiver<Report>,
    bulk: Arc<Semaphore>,
    /// Permits that are held back until the agent wants bulk again.
    owed: usize,
    /// Effects that wait until the output is written up to a mark.
    waiting: VecDeque<(u64, Work)>,
    /// Settlements that need no task, in order.
    ready: VecDeque<Input<'static>>,
    models: BTreeMap<RequestId, LiveModel>,
    tools: BTreeMap<CallId, CancelToken>,
    hooks: BTreeMap<HookId, CancelToken>,
    storage: Option<std_mpsc::Sender<(WriteId, WriteJob)>>,
    /// Requests that went to a script, retries included.
    requests: u64,
}

impl Effects {
    pub(crate) fn new(world: World) -> Self {
        let (report, reports) = mpsc::unbounded_channel();
        Effects {
            world,
            #[cfg(feature = "http")]
            client: Arc::default(),
            report,
            reports,
            bulk: Arc::new(Semaphore::new(BULK)),
            owed: 0,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            models: BTreeMap::new(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            storage: None,
            requests: 0,
        }
    }

    /// The next report of a task.
    pub(crate) async fn next(&mut self) -> Report {
        match self.reports.recv().await {
            Some(report) => report,
            // Unreachable while `self.report` lives; waiting is the harmless answer.
            None => std::future::pending().await,
        }
    }

    /// A chunk of a model, fit to be shown: see [`Backend::without_key`].
    pub(crate) fn without_key<'a>(&self, chunk: ModelChunk<'a>) -> ModelChunk<'a> {
        self.world.backend.without_key(chunk)
    }

    /// A settlement that needed no task.
    pub(crate) fn ready(&mut self) -> Option<Input<'static>> {
        self.ready.pop_front()
    }

    /// Lets tasks hand over bulk again, after some was held back.
    pub(crate) fn allow_bulk(&mut self) {
        self.bulk.add_permits(std::mem::take(&mut self.owed));
    }

    /// Takes one effect from the agent. Work waits until `mark` bytes of output are written; stops act at once.
    pub(crate) fn take(&mut self, agent: &impl Agent, run: RunId, effect: Effect, mark: u64) {
        let work = match (&effect, agent.body(run, &effect)) {
            (Effect::StartModel(request), Some(EffectBody::Model(body))) => {
                match &self.world.backend {
                    Backend::Http(provider) => {
                        let mut bytes = Vec::new();
                        encode_request(provider.api, &body, &provider.options, &mut bytes);
                        Work::Model {
                            request: *request,
                            body: bytes,
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
                    _ => return self.act(effect),
                }
            }
            (Effect::RunTool { call }, Some(EffectBody::Tool { name, input, .. })) => Work::Tool {
                call: *call,
                name: name.to_owned(),
                input: input.0.as_ref().to_owned(),
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
            (Effect::Store(write), Some(EffectBody::Write(body))) => Work::Store {
                write: *write,
                job: self.world.durable.prepare(&body),
            },
            _ => return self.act(effect),
        };
        self.waiting.push_back((mark, work));
    }

    /// Effects that start nothing, and those that this driver can't carry out: those fail in their own words.
    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::StopModel(request) => self.stop_model(request),
            Effect::StopTool(call) => self.stop_tool(call),
            Effect::Reload(command) => {
                let outcome = (self.world.reload)();
                self.ready.push_back(Input::Reloaded { command, outcome });
            }
            Effect::StopHook(hook) => self.stop_hook(hook),
            Effect::RunHook { hook } => self.hook_over(hook, "the hook had no body"),
            Effect::StartModel(request) => {
                self.ready.push_back(Input::Model {
                    request,
                    chunk: internal("the request had no body"),
                });
            }
            Effect::RunTool { call } | Effect::Snapshot { call, .. } => {
                self.ready.push_back(Input::Tool {
                    call,
                    update: failed("the call had no body"),
                });
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
                    outcome: failed("this driver runs no shells"),
                });
            }
            Effect::OpenSession(command) => {
                let info = Err("this driver opens no other sessions".into());
                self.ready.push_back(Input::Opened { command, info });
            }
            // Tools finish by themselves, and what is named last belongs to effects that failed above.
            Effect::DetachTool(_) | Effect::StopShell(_) | Effect::StopRun(_) => {}
            other @ (Effect::Restore(_)
            | Effect::Allow { .. }
            | Effect::StartRun { .. }
            | Effect::CallRun(..)
            | Effect::StopJob(_)) => {
                tracing::error!(effect = ?other, "this driver can't carry out an effect")
            }
        }
    }

    fn stop_model(&mut self, request: RequestId) {
        let unstarted = self.unqueue(|w| matches!(w, Work::Model { request: r, .. } | Work::Script { request: r, .. } if *r == request));
        let running = self.models.remove(&request);
        if let Some(live) = &running {
            live.task.abort();
        }
        // Neither: it was settled while the stop was on its way.
        if unstarted || running.is_some() {
            self.ready.push_back(Input::Model {
                request,
                chunk: ModelChunk::End,
            });
        }
    }

    fn stop_tool(&mut self, call: CallId) {
        if self.unqueue(|w| matches!(w, Work::Tool { call: c, .. } if *c == call)) {
            let update = ToolUpdate::Done {
                outcome: ToolOutcome::Cancelled,
                content: Vec::new(),
                show: None,
            };
            self.ready.push_back(Input::Tool { call, update });
        } else if let Some(cancel) = self.tools.get(&call) {
            cancel.cancel();
        }
    }

    fn stop_hook(&mut self, hook: HookId) {
        if self.unqueue(|w| matches!(w, Work::Hook { hook: h, .. } if *h == hook)) {
            self.hook_over(hook, "it was stopped");
        } else if let Some(cancel) = self.hooks.get(&hook) {
            cancel.cancel();
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
    pub(crate) fn start_due(&mut self, written: u64) {
        while let Some((_, work)) = self.waiting.pop_front_if(|(mark, _)| *mark <= written) {
            self.start(work);
        }
    }

    fn start(&mut self, work: Work) {
        match work {
            #[cfg(feature = "http")]
            Work::Model { request, body } => {
                let Backend::Http(provider) = &self.world.backend else {
                    return;
                };
                let (provider, client, sink) =
                    (provider.clone(), self.client.clone(), self.sink(request));
                let decoder = ReplyDecoder::new(provider.api, provider.limits);
                let task = async move {
                    crate::model::http::send(client.get(), &provider, body, sink).await
                };
                self.spawn_model(request, decoder, task);
            }
            #[cfg(not(feature = "http"))]
            Work::Model { request, .. } => {
                let why = "this driver was built without HTTP".to_owned();
                let (sink, decoder) = (
                    self.sink(request),
                    ReplyDecoder::new(Api::OpenAi, ReplyLimits::default()),
                );
                let part = Part::Unreached { why, reached: true };
                self.spawn_model(request, decoder, async move { sink(part).await });
            }
            Work::Script {
                request,
                api,
                reply,
            } => {
                let sink = self.sink(request);
                let decoder = ReplyDecoder::new(api, ReplyLimits::default());
                self.spawn_model(request, decoder, crate::model::play(reply, sink));
            }
            Work::Tool { call, name, input } => self.start_tool(call, name, input),
            Work::Hook { hook, job } => self.start_hook(hook, job),
            Work::Store { write, job } => self.store(write, job),
        }
    }

    /// Where a request's task puts its parts: it waits there while the loop wants no bulk.
    fn sink(
        &self,
        request: RequestId,
    ) -> impl Fn(Part) -> futures::future::BoxFuture<'static, ()> + Send + use<> {
        let (report, bulk) = (self.report.clone(), self.bulk.clone());
        move |part| {
            let (report, bulk) = (report.clone(), bulk.clone());
            async move {
                if let Ok(permit) = bulk.acquire().await {
                    permit.forget();
                    let _ = report.send(Report::Model(request, part));
                }
            }
            .boxed()
        }
    }

    fn spawn_model(
        &mut self,
        request: RequestId,
        decoder: ReplyDecoder,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let crashed = self.sink(request);
        let task = tokio::spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                crashed(Part::Broken(format!(
                    "the request's task crashed: {}",
                    panic_text(&*panic)
                )))
                .await;
            }
        });
        self.models.insert(
            request,
            LiveModel {
                decoder: Some(decoder),
                task: task.abort_handle(),
            },
        );
    }

    fn start_tool(&mut self, call: CallId, name: String, input: String) {
        let cancel = CancelToken::new();
        self.tools.insert(call, cancel.clone());
        let (toolbox, report, bulk) = (
            self.world.toolbox.clone(),
            self.report.clone(),
            self.bulk.clone(),
        );
        tokio::spawn(async move {
            let updates = |update: ToolUpdate| {
                // Progress is a preview of the outcome: while the host is stalled it is left out.
                if matches!(update, ToolUpdate::Progress(_)) {
                    let Ok(permit) = bulk.try_acquire() else {
                        return;
                    };
                    permit.forget();
                }
                let _ = report.send(Report::Tool(call, update));
            };
            let run = AssertUnwindSafe(crate::tools::run(&toolbox, &name, &input, cancel, updates))
                .catch_unwind();
            let done = run
                .await
                .unwrap_or_else(|p| failed(&format!("the tool crashed: {}", panic_text(&*p))));
            let _ = report.send(Report::Tool(call, done));
        });
    }

    fn start_hook(&mut self, hook: HookId, job: HookJob) {
        let cancel = CancelToken::new();
        self.hooks.insert(hook, cancel.clone());
        let report = self.report.clone();
        tokio::spawn(async move {
            let run = AssertUnwindSafe(crate::hook::run(&job, &cancel)).catch_unwind();
            let outcome = run
                .await
                .unwrap_or_else(|p| Err(format!("its task crashed: {}", panic_text(&*p)).into()));
            let _ = report.send(Report::Hook(hook, outcome));
        });
    }

    /// A hook's run is over.
    pub(crate) fn hook_ended(&mut self, hook: HookId) {
        self.hooks.remove(&hook);
    }

    fn store(&mut self, write: WriteId, job: WriteJob) {
        let report = self.report.clone();
        let storage = self.storage.get_or_insert_with(|| {
            let (send, jobs) = std_mpsc::channel::<(WriteId, WriteJob)>();
            let thread = std::thread::Builder::new().name("turnwire-store".into());
            let started = thread.spawn(move || {
                for (write, job) in jobs {
                    let done = catch_unwind(AssertUnwindSafe(job))
                        .unwrap_or_else(|p| Err(panic_text(&*p)));
                    let _ = report.send(Report::Stored(write, done.map_err(Text::from)));
                }
            });
            if let Err(e) = started {
                tracing::error!(error = %e, "no storage thread");
            }
            send
        });
        if storage.send((write, job)).is_err() {
            self.storage = None;
            self.ready.push_back(Input::Store {
                write,
                ok: Err("the storage thread is gone".into()),
            });
        }
    }

    /// Whether a request runs: not settled, not stopped.
    pub(crate) fn is_live(&self, request: RequestId) -> bool {
        self.models.contains_key(&request)
    }

    /// The decoder of a live request, for one part of its reply. `None`: it was stopped, and settled then.
    pub(crate) fn lend_decoder(&mut self, request: RequestId) -> Option<ReplyDecoder> {
        self.owed += 1;
        self.models.get_mut(&request)?.decoder.take()
    }

    /// Takes the decoder back; a settled request ends.
    pub(crate) fn return_decoder(
        &mut self,
        request: RequestId,
        decoder: ReplyDecoder,
        settled: bool,
    ) {
        if settled {
            if let Some(live) = self.models.remove(&request) {
                live.task.abort();
            }
        } else if let Some(live) = self.models.get_mut(&request) {
            live.decoder = Some(decoder);
        }
    }

    /// Keeps the books for what a tool says, before it is handed over.
    pub(crate) fn note(&mut self, call: CallId, update: &ToolUpdate) {
        if matches!(update, ToolUpdate::Progress(_)) {
            self.owed += 1;
        }
        if matches!(update, ToolUpdate::Done { .. }) {
            self.tools.remove(&call);
        }
    }

    /// Ends whatever still runs, and waits for the process groups of tools and hooks to be gone.
    pub(crate) async fn end(&mut self) {
        self.waiting.clear();
        for (_, live) in std::mem::take(&mut self.models) {
            live.task.abort();
        }
        for cancel in self.tools.values().chain(self.hooks.values()) {
            cancel.cancel();
        }
        while !(self.tools.is_empty() && self.hooks.is_empty()) {
            match self.next().await {
                Report::Tool(call, ToolUpdate::Done { .. }) => {
                    self.tools.remove(&call);
                }
                Report::Hook(hook, _) => self.hook_ended(hook),
                Report::Tool(..) | Report::Model(..) | Report::Stored(..) => {}
            }
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

fn failed(text: &str) -> ToolUpdate {
    ToolUpdate::Done {
        outcome: ToolOutcome::Failed,
        content: vec![Block::Text(text.into())],
        show: None,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}
