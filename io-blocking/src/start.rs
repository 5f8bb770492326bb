//! Jobs as threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use turnwire::vocab::{HookId, JobId, RequestId, ToolUpdate};
use turnwire_io::Part;
use turnwire_io::engine::{
    BULK, Caller, Job, Report, Reporter, Start, Stopper, crashed, failed, job_over,
};
use turnwire_io::hooks::HookJob;
use turnwire_io::jobs::{BackgroundJob, OpenJob, Said, Told};
use turnwire_io::tools::ToolJob;

use crate::bulk::Bulk;
use crate::cancel::CancelToken;
use crate::live::Live;

/// How long threads that were told to end are waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts the jobs of one session. Dropped, it ends those that still run.
pub(crate) struct Starter {
    report: Reporter,
    bulk: Arc<Bulk>,
    live: Live,
    #[cfg(feature = "http")]
    client: Arc<crate::http::Client>,
}

impl Starter {
    pub(crate) fn new(report: Reporter) -> Self {
        Starter {
            report,
            bulk: Arc::new(Bulk::new(BULK)),
            live: Live::default(),
            #[cfg(feature = "http")]
            client: Arc::default(),
        }
    }

    /// Lets jobs hand over bulk again, after some was held back.
    pub(crate) fn allow_bulk(&self, permits: usize) {
        self.bulk.add(permits);
    }

    /// Runs a request on a thread. It gives its parts to a closure that waits while the loop wants no bulk, and says
    /// whether more is wanted.
    fn model(
        &self,
        request: RequestId,
        work: impl FnOnce(&CancelToken, &dyn Fn(Part) -> bool) + Send + 'static,
    ) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        let started = self.live.spawn("turnwire-model", &cancel, move || {
            let waiting = bulk.clone();
            token.on_word(move || waiting.wake());
            let give = |part| {
                let wanted = bulk.take(&token);
                if wanted {
                    report(Report::Model(request, part));
                }
                wanted
            };
            let done = catch_unwind(AssertUnwindSafe(|| work(&token, &give)));
            if let Err(panic) = done {
                give(Part::Broken(crashed("the request's thread", &*panic)));
            }
            token.forget();
        });
        if let Err(error) = started {
            let why = format!("no thread for the request: {error}");
            let reached = false;
            (self.report)(Report::Model(request, Part::Unreached { why, reached }));
        }
        Box::new(move || cancel.cancel())
    }

    fn tool(&self, caller: Caller, job: ToolJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        let started = self.live.spawn("turnwire-tool", &cancel, move || {
            let updates = |update: ToolUpdate| hand_over(caller, update, &report, &bulk);
            let run = || crate::tools::carry_out(&job, &token, updates);
            let done = catch_unwind(AssertUnwindSafe(run))
                .unwrap_or_else(|panic| failed(&crashed("the tool", &*panic)));
            report(Report::Tool(caller, done));
        });
        if let Err(error) = started {
            let done = failed(&format!("no thread for the call: {error}"));
            (self.report)(Report::Tool(caller, done));
        }
        Box::new(move || cancel.cancel())
    }

    /// A command that goes on when its call is over.
    fn background(&self, caller: Caller, job: BackgroundJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        let started = self.live.spawn("turnwire-job", &cancel, move || {
            let (id, mut begun) = (job.job(), false);
            let mut say = |said| {
                begun |= matches!(said, Said::Detached(..));
                tell(caller, id, said, &report, &bulk);
            };
            let run = || crate::jobs::run(&job, &token, &mut say);
            let ran = catch_unwind(AssertUnwindSafe(run));
            report(job_over(caller, id, begun, ran));
        });
        if let Err(error) = started {
            let done = failed(&format!("no thread for the job: {error}"));
            (self.report)(Report::Tool(caller, done));
        }
        Box::new(move || cancel.cancel())
    }

    /// A command of a call that may go on when the call is over.
    fn open(&self, caller: Caller, job: OpenJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report, bulk) = (cancel.clone(), self.report.clone(), self.bulk.clone());
        let started = self.live.spawn("turnwire-tool", &cancel, move || {
            let (id, mut begun) = (job.job(), false);
            let mut say = |told| match told {
                Told::Call(update) => hand_over(caller, update, &report, &bulk),
                Told::Job(said) => {
                    begun |= matches!(said, Said::Detached(..));
                    tell(caller, id, said, &report, &bulk);
                }
            };
            let run = || crate::jobs::run_open(&job, &token, &mut say);
            let ran = catch_unwind(AssertUnwindSafe(run));
            report(job_over(caller, id, begun, ran));
        });
        if let Err(error) = started {
            let done = failed(&format!("no thread for the call: {error}"));
            (self.report)(Report::Tool(caller, done));
        }
        Box::new(move || cancel.cancel())
    }

    fn hook(&self, hook: HookId, job: HookJob) -> Stopper {
        let cancel = CancelToken::new();
        let (token, report) = (cancel.clone(), self.report.clone());
        let started = self.live.spawn("turnwire-hook", &cancel, move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| crate::hooks::run(&job, &token)))
                .unwrap_or_else(|panic| Err(crashed("its thread", &*panic).into()));
            report(Report::Hook(hook, outcome));
        });
        if let Err(error) = started {
            let outcome = Err(format!("no thread for it: {error}").into());
            (self.report)(Report::Hook(hook, outcome));
        }
        Box::new(move || cancel.cancel())
    }
}

/// Reports what a call says.
fn hand_over(caller: Caller, update: ToolUpdate, report: &Reporter, bulk: &Bulk) {
    // Progress is a preview of the outcome: while the host is stalled it is left out.
    if !matches!(update, ToolUpdate::Progress(_)) || bulk.try_take() {
        report(Report::Tool(caller, update));
    }
}

/// Reports what a job says.
fn tell(caller: Caller, id: JobId, said: Said, report: &Reporter, bulk: &Bulk) {
    match said {
        Said::Detached(start, about) => report(Report::Detached(caller, start, about)),
        // A preview of what it will have written: while the host is stalled it is left out.
        Said::Output(output) => {
            if bulk.try_take() {
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
                let (client, bulk) = (self.client.clone(), self.bulk.clone());
                self.model(request, move |cancel, give| {
                    let wake = move || bulk.wake();
                    match body.whole() {
                        Ok(body) => {
                            crate::http::send(&client, &provider, &body, cancel, wake, give);
                        }
                        Err(why) => {
                            give(Part::Unsent(why));
                        }
                    }
                })
            }
            #[cfg(not(feature = "http"))]
            Job::Http { request, .. } => self.model(request, |_, give| {
                let why = "this driver was built without HTTP".to_owned();
                give(Part::Unreached { why, reached: true });
            }),
            Job::Script { request, reply } => self.model(request, move |cancel, give| {
                crate::model::play(reply, cancel, give);
            }),
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
            // Their protocol's SDK needs an async runtime.
            Job::Server { run, .. } => turnwire_io::mcp::no_server(run, &self.report),
            Job::ServerCall { caller, .. } => turnwire_io::mcp::no_call(caller, &self.report),
        }
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.live.end(PATIENCE);
    }
}
