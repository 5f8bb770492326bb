//! Jobs as tasks of tokio.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use turnwire::vocab::{HookId, JobId, RequestId, ToolUpdate};
use turnwire_io::Part;
use turnwire_io::engine::{
    BULK, Caller, Job, Report, Reporter, Start, Stopper, crashed, failed, job_over,
};
use turnwire_io::hooks::HookJob;
use turnwire_io::jobs::{BackgroundJob, OpenJob, Said, Told};
use turnwire_io::tools::ToolJob;

use crate::tools::CancelToken;

/// Starts the jobs of one session.
pub(crate) struct Starter {
    report: Reporter,
    bulk: Arc<Semaphore>,
    #[cfg(feature = "http")]
    client: Arc<crate::model::http::LazyClient>,
    #[cfg(feature = "mcp")]
    servers: crate::mcp::Servers,
}

impl Starter {
    pub(crate) fn new(report: Reporter) -> Self {
        Starter {
            report,
            bulk: Arc::new(Semaphore::new(BULK)),
            #[cfg(feature = "http")]
            client: Arc::default(),
            #[cfg(feature = "mcp")]
            servers: crate::mcp::Servers::default(),
        }
    }

    /// Lets jobs hand over bulk again, after some was held back.
    pub(crate) fn allow_bulk(&self, permits: usize) {
        self.bulk.add_permits(permits);
    }

    /// Where a request's task puts its parts: it waits there while the loop wants no bulk.
    fn sink(&self, request: RequestId) -> impl Fn(Part) -> BoxFuture<'static, ()> + Send + use<> {
        let (report, bulk) = (self.report.clone(), self.bulk.clone());
        move |part| {
            let (report, bulk) = (report.clone(), bulk.clone());
            async move {
                if let Ok(permit) = bulk.acquire().await {
                    permit.forget();
                    report(Report::Model(request, part));
                }
            }
            .boxed()
        }
    }

    fn model(
        &self,
        request: RequestId,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Stopper {
        let sink = self.sink(request);
        let task = tokio::spawn(async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                sink(Part::Broken(crashed("the request's task", &*panic))).await;
            }
        });
        let task = task.abort_handle();
        Box::new(move || task.abort())
    }

    fn tool(&self, caller: Caller, job: ToolJob) -> Stopper {
        self.call(caller, |token, updates| {
            crate::tools::carry_out(job, token, updates)
        })
    }

    /// Carries out a call in a task of its own.
    fn call<F: Future<Output = ToolUpdate> + Send + 'static>(
        &self,
        caller: Caller,
        carry_out: impl FnOnce(CancelToken, Box<dyn FnMut(ToolUpdate) + Send>) -> F + Send + 'static,
    ) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        tokio::spawn(async move {
            let told = report.clone();
            let updates = move |update: ToolUpdate| hand_over(caller, update, &told, &bulk);
            let run = AssertUnwindSafe(carry_out(token, Box::new(updates))).catch_unwind();
            let done = run
                .await
                .unwrap_or_else(|panic| failed(&crashed("the tool", &*panic)));
            report(Report::Tool(caller, done));
        });
        Box::new(move || cancel.cancel())
    }

    /// A command that goes on when its call is over.
    fn background(&self, caller: Caller, job: BackgroundJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        tokio::spawn(async move {
            let (id, mut begun) = (job.job(), false);
            let mut say = |said| {
                begun |= matches!(said, Said::Detached(..));
                tell(caller, id, said, &report, &bulk);
            };
            let run = AssertUnwindSafe(crate::jobs::run(job, &token, &mut say)).catch_unwind();
            let ran = run.await;
            report(job_over(caller, id, begun, ran));
        });
        Box::new(move || cancel.cancel())
    }

    /// A command of a call that may go on when the call is over.
    fn open(&self, caller: Caller, job: OpenJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        tokio::spawn(async move {
            let (id, mut begun) = (job.job(), false);
            let mut say = |told| match told {
                Told::Call(update) => hand_over(caller, update, &report, &bulk),
                Told::Job(said) => {
                    begun |= matches!(said, Said::Detached(..));
                    tell(caller, id, said, &report, &bulk);
                }
            };
            let run = AssertUnwindSafe(crate::jobs::run_open(job, &token, &mut say)).catch_unwind();
            let ran = run.await;
            report(job_over(caller, id, begun, ran));
        });
        Box::new(move || cancel.cancel())
    }

    fn hook(&self, hook: HookId, job: HookJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report) = (cancel.clone(), self.report.clone());
        tokio::spawn(async move {
            let run = AssertUnwindSafe(crate::hooks::run(&job, &token)).catch_unwind();
            let outcome = run
                .await
                .unwrap_or_else(|panic| Err(crashed("its task", &*panic).into()));
            report(Report::Hook(hook, outcome));
        });
        Box::new(move || cancel.cancel())
    }
}

/// Reports what a call says.
fn hand_over(caller: Caller, update: ToolUpdate, report: &Reporter, bulk: &Semaphore) {
    // Progress is a preview of the outcome: while the host is stalled it is left out.
    if matches!(update, ToolUpdate::Progress(_)) {
        let Ok(permit) = bulk.try_acquire() else {
            return;
        };
        permit.forget();
    }
    report(Report::Tool(caller, update));
}

/// Reports what a job says.
fn tell(caller: Caller, id: JobId, said: Said, report: &Reporter, bulk: &Semaphore) {
    match said {
        Said::Detached(start, about) => report(Report::Detached(caller, start, about)),
        // A preview of what it will have written: while the host is stalled it is left out.
        Said::Output(output) => {
            if let Ok(permit) = bulk.try_acquire() {
                permit.forget();
                report(Report::Output(id, output));
            }
        }
    }
}

impl Start for Starter {
    fn start(&mut self, job: Job) -> Stopper {
        match job {
            #[cfg(feature = "http")]
            Job::Http {
                request,
                provider,
                body,
            } => {
                let (client, sink) = (self.client.clone(), self.sink(request));
                self.model(request, async move {
                    match whole(body).await {
                        Ok(body) => {
                            crate::model::http::send(client.get(), &provider, body, sink).await;
                        }
                        Err(why) => sink(Part::Unsent(why)).await,
                    }
                })
            }
            #[cfg(not(feature = "http"))]
            Job::Http { request, .. } => {
                let why = "this driver was built without HTTP".to_owned();
                let part = Part::Unreached { why, reached: true };
                let sink = self.sink(request);
                self.model(request, async move { sink(part).await })
            }
            Job::Script { request, reply } => {
                let sink = self.sink(request);
                self.model(request, crate::model::play(reply, sink))
            }
            Job::Tool {
                caller,
                job: ToolJob::Background(job),
            } => self.background(caller, *job),
            Job::Tool {
                caller,
                job: ToolJob::Open(job),
            } => self.open(caller, *job),
            Job::Tool { caller, job } => self.tool(caller, job),
            Job::Hook { hook, job } => self.hook(hook, job),
            #[cfg(feature = "mcp")]
            Job::Server { run, config, place } => {
                let report = self.report.clone();
                self.servers.start(run, config, place, report)
            }
            #[cfg(feature = "mcp")]
            Job::ServerCall { caller, call } => {
                let servers = self.servers.clone();
                self.call(caller, |token, updates| async move {
                    servers.call(call, token, updates).await
                })
            }
            #[cfg(not(feature = "mcp"))]
            Job::Server { run, .. } => turnwire_io::mcp::no_server(run, &self.report),
            #[cfg(not(feature = "mcp"))]
            Job::ServerCall { caller, .. } => turnwire_io::mcp::no_call(caller, &self.report),
        }
    }
}

/// The body with its media, which are read on a thread for blocking work.
#[cfg(feature = "http")]
async fn whole(body: turnwire_io::Body) -> Result<Vec<u8>, String> {
    if !body.has_gaps() {
        return body.whole();
    }
    tokio::task::spawn_blocking(|| body.whole())
        .await
        .unwrap_or_else(|error| Err(error.to_string()))
}
