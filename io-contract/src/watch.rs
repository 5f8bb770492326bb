//! An agent that watches its driver: it passes everything on, and keeps the books.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnwire::vocab::{
    Agent, CallId, CommandId, Due, Effect, EffectBody, HookId, Input, JobId, JobUpdate, Misuse,
    Now, Output, RequestId, RunId, ToolUpdate, WriteId,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Model(RequestId),
    Tool(CallId),
    Hook(HookId),
    Store(WriteId),
    Reload(CommandId),
    Job(JobId),
}

/// What a driver did so far.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Started, and not settled yet.
    open: BTreeSet<Id>,
    breaches: Vec<String>,
    last: Now,
    /// Deadlines that came due.
    pub woken: u32,
    /// Effects that were settled.
    pub settled: u32,
}

impl Ledger {
    fn started(&mut self, id: Id) {
        if !self.open.insert(id) {
            self.breaches.push(format!("{id:?} began twice"));
        }
    }

    fn told(&mut self, id: Id, settles: bool) {
        if !self.open.contains(&id) {
            self.breaches
                .push(format!("{id:?} is heard of, and is settled or never began"));
        }
        if settles && self.open.remove(&id) {
            self.settled += 1;
        }
    }

    /// Whether nothing is on its way.
    pub fn is_settled(&self) -> bool {
        self.open.is_empty()
    }

    /// Fails if the driver broke a promise; if the session came to an `orderly` end, also for what isn't settled.
    ///
    /// # Panics
    /// So.
    #[allow(clippy::panic, reason = "it is part of a test")]
    pub fn check(&self, orderly: bool) {
        if !self.breaches.is_empty() {
            panic!("the driver: {:#?}", self.breaches);
        }
        // A session that ends waits for nothing that its jobs would still say.
        let mut open = self.open.iter().filter(|id| !matches!(id, Id::Job(_)));
        if orderly && let Some(first) = open.next() {
            panic!("never settled: {first:?} of {:?}", self.open);
        }
    }
}

/// The books of a watched agent, to look at from outside.
#[derive(Clone, Debug, Default)]
pub struct Books(Arc<Mutex<Ledger>>);

impl Books {
    /// The ledger.
    pub fn open(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent, watched.
#[derive(Debug)]
pub struct Watched<A> {
    agent: A,
    books: Books,
}

impl<A> Watched<A> {
    /// Watches an agent.
    pub fn new(agent: A, books: Books) -> Self {
        Watched { agent, books }
    }
}

impl<A: Agent> Agent for Watched<A> {
    fn handle(&mut self, input: Input<'_>, now: Now) -> Result<(), Misuse> {
        {
            let mut ledger = self.books.open();
            if now.mono_us < ledger.last.mono_us {
                ledger.breaches.push("time went back".into());
            }
            ledger.last = now;
            match &input {
                Input::Model { request, chunk } => {
                    ledger.told(Id::Model(*request), chunk.settles());
                }
                Input::Tool { call, update } => {
                    let job = matches!(update, ToolUpdate::Detached(_));
                    let done = matches!(update, ToolUpdate::Done { .. });
                    ledger.told(Id::Tool(*call), done || job);
                    if job {
                        ledger.started(Id::Job(JobId(call.0)));
                    }
                }
                Input::Hook { hook, .. } => ledger.told(Id::Hook(*hook), true),
                Input::Store { write, .. } => ledger.told(Id::Store(*write), true),
                Input::Reloaded { command, .. } => ledger.told(Id::Reload(*command), true),
                Input::Woken => {
                    ledger.woken += 1;
                    // The protocols served here have no deadlines of their own.
                    match self.agent.poll_timeout() {
                        Some(due) if due.at_us <= now.mono_us => {}
                        due => ledger
                            .breaches
                            .push(format!("woken at {now:?}, due {due:?}")),
                    }
                }
                Input::Job { job, update } => {
                    let over = matches!(update, JobUpdate::Ended(_));
                    ledger.told(Id::Job(*job), over);
                }
                Input::Call(_)
                | Input::Run { .. }
                | Input::Shell { .. }
                | Input::Opened { .. }
                | Input::Restored { .. }
                | Input::DriverTools { .. }
                | Input::Refrozen { .. }
                | Input::Fault { .. } => {}
            }
        }
        self.agent.handle(input, now)
    }

    fn poll_output(&mut self) -> Option<Output<'_>> {
        let output = self.agent.poll_output();
        if let Some(Output::Effect { effect, .. }) = &output {
            let id = match effect {
                Effect::StartModel(request) => Some(Id::Model(*request)),
                Effect::RunTool { call } => Some(Id::Tool(*call)),
                Effect::RunHook { hook } => Some(Id::Hook(*hook)),
                Effect::Store(write) => Some(Id::Store(*write)),
                Effect::Reload(command) => Some(Id::Reload(*command)),
                Effect::StopModel(_)
                | Effect::StopTool(_)
                | Effect::DetachTool(_)
                | Effect::Snapshot { .. }
                | Effect::Restore(_)
                | Effect::Allow { .. }
                | Effect::StopHook(_)
                | Effect::StartRun { .. }
                | Effect::StopRun(_)
                | Effect::CallRun(..)
                | Effect::RunShell(_)
                | Effect::StopShell(_)
                | Effect::StopJob(_)
                | Effect::OpenSession(_) => None,
            };
            if let Some(id) = id {
                self.books.open().started(id);
            }
        }
        output
    }

    fn poll_timeout(&self) -> Option<Due> {
        self.agent.poll_timeout()
    }

    fn wants_input(&self) -> bool {
        self.agent.wants_input()
    }

    fn wants_bulk(&self) -> bool {
        self.agent.wants_bulk()
    }

    fn body(&self, run: RunId, effect: &Effect) -> Option<EffectBody<'_>> {
        self.agent.body(run, effect)
    }
}
