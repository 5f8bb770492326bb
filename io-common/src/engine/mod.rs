//! A session's loop without its waiting: what both drivers do in the same way.
//!
//! The engine holds the two machines, the output, the host's bytes that are not split yet, and the table of effects.
//! A driver [begins](Engine::begin) it and then, until there is an [exit](Engine::exit):
//!
//! 1. lets it [advance](Engine::advance), which starts what may start now;
//! 2. waits for one thing that it [looks out](Engine::lookout) for, and reads the clock once;
//! 3. [hands it over](Engine::handle).
//!
//! At the end everything that still runs is [stopped](Engine::stop_all), and the driver hands over reports until
//! nothing is [running](Engine::is_running).

mod effects;
mod jobs;
mod later;
mod mcp;
mod reload;
mod sessions;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use turnwire::frame::LineSplitter;
use turnwire::protocol::{Protocol, Server, ServerOutput};
use turnwire::vocab::{
    Agent, Block, CallId, Command, CommandId, Due, HookId, HookReply, Input, JobId, JobOutput,
    JobStart, JobState, JobUpdate, Misuse, Now, OpenFault, Output as AgentOutput, Progress,
    RequestId, Restoration, Signal, Text, ToolUpdate, What, WriteId,
};

use crate::error::Error;
use crate::host::{Answer, Answered, HeardMcp, Refrozen};
use crate::input::HostInput;
use crate::mcp::{News, ServerRun};
use crate::model::Part;
use crate::output::{Output, Written};
use crate::world::{Opened, Reloaded, World};

use effects::Effects;
pub use effects::{Job, crashed, failed};
pub use jobs::job_over;

/// Above this many bytes that the host has not read, model streams are not read on.
const UNREAD_BULK: u64 = 256 * 1024;
/// Above this many, its lines aren't either. Far above [`UNREAD_BULK`], so that a cancel passes a stalled reader.
const UNREAD_LINES: u64 = 1024 * 1024;

/// How many pieces of bulk (bodies, progress) may lie between the running effects and the loop.
pub const BULK: usize = 4;

/// For whom the tools work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// A call of the model.
    Model(CallId),
    /// A command of the person's own.
    Person(CommandId),
}

impl Caller {
    /// News of the work, for the agent.
    pub(super) fn news(self, update: ToolUpdate) -> Input<'static> {
        match self {
            Caller::Model(call) => Input::Tool { call, update },
            Caller::Person(command) => Input::Shell {
                command,
                outcome: update,
            },
        }
    }
}

/// What a running effect tells the loop.
#[derive(Debug)]
pub enum Report {
    /// The next part of a model's reply. It is bulk: it takes one of the [`BULK`] permits.
    Model(RequestId, Part),
    /// What a tool says. Its progress is bulk, its end isn't.
    Tool(Caller, ToolUpdate),
    /// A call goes on as a background job: what is said of it, and what the model is told besides.
    Detached(Caller, Box<JobStart>, Text),
    /// What a background job has written so far. It is bulk.
    Output(JobId, JobOutput),
    /// A background job is over, with what it has written, if there is news of that.
    JobOver(JobId, Option<JobOutput>, JobState),
    /// The record of a job was put on the disk, or couldn't be: what went wrong.
    Kept(JobId, Option<String>),
    /// A hook is over.
    Hook(HookId, Result<HookReply, Text>),
    /// A write is over.
    Stored(WriteId, Result<(), Text>),
    /// The configuration was read anew, or couldn't be.
    Reloaded(CommandId, Result<Reloaded, Text>),
    /// Files were put aside for a call.
    Snapshotted(CallId, ToolUpdate),
    /// Files were put back, or weren't.
    Restored(CommandId, Result<Box<Restoration>, Text>),
    /// Another session is ready, or isn't.
    Opened(CommandId, Result<Opened, OpenFault>),
    /// An answer that took its time is there, or never comes.
    Answered,
    /// News of an MCP server. [`News::Down`] ends its run.
    Mcp(ServerRun, News),
}

/// Takes reports to the loop, from any thread.
pub type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

/// Stops a job. For a request it settles nothing any more: the engine has done that. A tool, a background job, a hook or an
/// MCP server still reports its end.
pub type Stopper = Box<dyn FnOnce() + Send>;

/// Begins jobs. How they run is the driver's own matter; that each reports its end exactly once, however it ends, is
/// its promise.
pub trait Start {
    /// Begins a job, without blocking.
    fn start(&mut self, job: Job) -> Stopper;
}

/// The one thing that a loop waited for.
#[derive(Debug)]
pub enum Wake {
    /// The host wrote, or won't any more.
    Host(HostInput),
    /// The host's bytes hold more lines, and they are wanted.
    MoreLines,
    /// A running effect told something.
    Report(Report),
    /// A buffer came back from the writing thread.
    Written(Written),
    /// Nobody reads what is written.
    Gone,
    /// A signal.
    Signal(Signal),
    /// The deadline has come.
    Due,
}

/// What a loop waits for, besides reports, written output and signals.
#[derive(Clone, Copy, Debug)]
pub struct Lookout {
    /// Whether the host's next bytes are wanted.
    pub host: bool,
    /// Whether there is no need to wait: [`Wake::MoreLines`].
    pub more_lines: bool,
    /// When there is something to do by the clock: [`Wake::Due`].
    pub due: Option<Due>,
}

/// What the embedder says in the protocol's own words.
pub struct Says<P: Protocol> {
    /// As [`Host::answer`](crate::Host::answer).
    pub answer: Answer<P>,
    /// As [`Host::refrozen`](crate::Host::refrozen).
    pub refrozen: Option<Refrozen<P>>,
    /// As [`Host::heard_mcp`](crate::Host::heard_mcp).
    pub heard_mcp: Option<HeardMcp<P>>,
}

impl<P: Protocol> std::fmt::Debug for Says<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Says").finish_non_exhaustive()
    }
}

/// The loop of one session between a host's pipes and the world.
pub struct Engine<P: Protocol, A> {
    server: Server<P>,
    agent: A,
    effects: Effects,
    output: Output,
    splitter: LineSplitter,
    /// Bytes of the host that are read but not split yet.
    unsplit: Bytes,
    input_ended: bool,
    signalled: bool,
    answer: Answer<P>,
    later: later::Later<P::Outcome>,
    refrozen: Option<Refrozen<P>>,
    heard_mcp: Option<HeardMcp<P>>,
    held: Option<mcp::Held>,
    /// Commands of the engine's own, so far.
    own_commands: u64,
    /// The moment of the thing that is being handled: all that follows from it happens then.
    now: Now,
    exit: Option<u8>,
}

impl<P: Protocol, A> std::fmt::Debug for Engine<P, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("now", &self.now)
            .field("exit", &self.exit)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol, A: Agent> Engine<P, A> {
    /// An engine that has not begun. `report` gets what the storage thread has to tell.
    pub fn new(
        server: Server<P>,
        agent: A,
        world: World,
        output: Output,
        says: Says<P>,
        report: Reporter,
    ) -> Self {
        Engine {
            server,
            agent,
            later: later::Later::new(report.clone()),
            effects: Effects::new(world, report),
            output,
            splitter: LineSplitter::new(P::host_line_rules()),
            unsplit: Bytes::new(),
            input_ended: false,
            signalled: false,
            answer: says.answer,
            refrozen: says.refrozen,
            heard_mcp: says.heard_mcp,
            held: None,
            own_commands: 0,
            now: Now::default(),
            exit: None,
        }
    }

    /// Takes what the machines have to say before anything happens.
    ///
    /// # Errors
    /// [`Error::Misuse`] if a machine or this engine has a bug; so do all others.
    pub fn begin(&mut self, now: Now) -> Result<(), Error> {
        self.now = now;
        self.drain()
    }

    /// The exit code, once the session is over.
    pub fn exit(&self) -> Option<u8> {
        self.exit
    }

    /// Whether a signal was taken: the host may be given little time then.
    pub fn was_signalled(&self) -> bool {
        self.signalled
    }

    /// The output, to wait for the rest of it.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Writes on, and starts what waited for output that is written by now. Returns how many permits for bulk may be
    /// given back; none while the host doesn't read.
    pub fn advance(&mut self, start: &mut impl Start) -> usize {
        self.output.push();
        self.effects.start_due(self.output.written(), start);
        if self.wants_bulk() {
            self.effects.take_owed()
        } else {
            0
        }
    }

    /// What to wait for now.
    pub fn lookout(&self) -> Lookout {
        let lines = self.wants_lines();
        let empty = self.unsplit.is_empty();
        Lookout {
            host: lines && empty && !self.input_ended,
            more_lines: lines && !empty,
            due: Due::earliest(self.due_of_machines(), self.due_of_mcp()),
        }
    }

    /// When a machine wants to be woken.
    fn due_of_machines(&self) -> Option<Due> {
        Due::earliest(self.agent.poll_timeout(), self.server.poll_timeout())
    }

    /// Hands over one thing that happened. `Some`: a second signal ends everything at once, with this exit code.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub fn handle(&mut self, wake: Wake, now: Now) -> Result<Option<u8>, Error> {
        self.now = now;
        match wake {
            Wake::Host(HostInput::Bytes(bytes)) => self.unsplit = bytes,
            Wake::Host(HostInput::End(why)) => self.end_input(why)?,
            Wake::MoreLines => self.split_one()?,
            Wake::Report(report) => self.settle(report)?,
            Wake::Written(written) => {
                if self.output.done(written).is_err() {
                    self.nobody_reads()?;
                }
            }
            Wake::Gone => self.nobody_reads()?,
            Wake::Signal(signal) if self.signalled => return Ok(Some(exit_code(signal))),
            Wake::Signal(signal) => self.signal(signal)?,
            Wake::Due => {
                // The deadline may be one of the servers' alone.
                if self
                    .due_of_machines()
                    .is_some_and(|due| due.at_us <= now.mono_us)
                {
                    self.server.handle_woken(now);
                    give(&mut self.agent, Input::Woken, now)?;
                }
                self.drain()?;
            }
        }
        Ok(None)
    }

    /// Stops all that still runs. Nothing is handed to the agent any more.
    pub fn stop_all(&mut self) {
        self.effects.stop_all();
    }

    /// Whether tools, hooks or answers are on their way to their end.
    pub fn is_running(&self) -> bool {
        self.effects.is_running() || self.later.is_running()
    }

    /// Takes a report after [`stop_all`](Engine::stop_all).
    pub fn take_last(&mut self, report: &Report) {
        if matches!(report, Report::Answered) {
            self.later.take();
        }
        self.effects.take_last(report);
    }

    /// Moves outputs of each machine to the other, until both are quiet.
    fn drain(&mut self) -> Result<(), Error> {
        loop {
            match self.agent.poll_output() {
                Some(AgentOutput::Event(event)) => {
                    if let What::Job(_, record) = &event.what {
                        self.effects.keep_job(record);
                    }
                    if let What::Opened(_) = &event.what {
                        // What is written from here on is written there.
                        self.effects.go_over();
                    }
                    self.server.handle_event(event);
                }
                Some(AgentOutput::Delta(delta)) => self.server.handle_delta(&delta),
                Some(AgentOutput::Effect { run, effect }) => {
                    // What was said before the effect is written before it starts.
                    self.take_server()?;
                    let mark = self.output.mark();
                    self.effects.take(&self.agent, run, effect, mark);
                }
                None => {
                    let more = self.take_server()?;
                    match self.effects.ready() {
                        Some(input) => give(&mut self.agent, input, self.now)?,
                        None if !more && !self.sync_mcp()? => return Ok(()),
                        None => {}
                    }
                }
            }
        }
    }

    /// Takes what the server has to give; whether the agent was given something.
    fn take_server(&mut self) -> Result<bool, Error> {
        let mut gave = false;
        while let Some(output) = self.server.poll_output(self.output.buffer()) {
            match output {
                ServerOutput::Call(call) => {
                    gave = true;
                    if matches!(call.command, Command::Prompt(_)) {
                        self.reload_before_turn()?;
                    }
                    give(&mut self.agent, Input::Call(call), self.now)?;
                }
                ServerOutput::Exit { code } => self.exit = Some(code),
                ServerOutput::Diagnostic(text) => tracing::warn!("{text}"),
                ServerOutput::Ask { id, ask } => match (self.answer)(ask) {
                    Answered::Now(outcome) => self.answered(id, outcome)?,
                    Answered::Later(work) => self.later.start(id, work),
                },
                // What is on its way is finished all the same, and changes nothing then.
                ServerOutput::Dismiss { .. } => {}
            }
        }
        Ok(gave)
    }

    fn answered(&mut self, ask: u64, outcome: P::Outcome) -> Result<(), Error> {
        self.server
            .settle(ask, outcome, self.now)
            .map_err(|misuse| Error::Misuse {
                doing: "settling an ask",
                misuse,
            })
    }

    fn wants_bulk(&self) -> bool {
        self.agent.wants_bulk() && self.output.unread() < UNREAD_BULK
    }

    fn wants_lines(&self) -> bool {
        self.agent.wants_input() && self.server.wants_lines() && self.output.unread() < UNREAD_LINES
    }

    /// Hands over one line of the host, and drains: two lines in one write mean what two writes mean.
    fn split_one(&mut self) -> Result<(), Error> {
        let mut rest: &[u8] = &self.unsplit;
        if let Some(split) = self.splitter.next(&mut rest) {
            self.server.handle_line(split, self.now);
        }
        let used = self.unsplit.len() - rest.len();
        self.unsplit.advance(used);
        self.drain()
    }

    fn end_input(&mut self, why: Option<String>) -> Result<(), Error> {
        if let Some(why) = why {
            tracing::warn!(error = %why, "reading from the host failed; taken as the end of input");
        }
        self.input_ended = true;
        if let Some(split) = self.splitter.finish() {
            self.server.handle_line(split, self.now);
            self.drain()?;
        }
        self.server.handle_end(self.now);
        self.drain()
    }

    /// The same as a host that hung up. It may be noticed in two ways, and one signal is enough: a second one would
    /// end the session at once.
    fn nobody_reads(&mut self) -> Result<(), Error> {
        if self.signalled {
            return Ok(());
        }
        self.signal(Signal::Hangup)
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.signalled = true;
        self.server.handle_signal(signal, self.now);
        self.drain()
    }

    fn settle(&mut self, report: Report) -> Result<(), Error> {
        let now = self.now;
        match report {
            Report::Model(request, part) => {
                // Out of the table while it reads: what it yields may stop this very request.
                let Some(mut decoder) = self.effects.lend_decoder(request) else {
                    return Ok(());
                };
                let mut outcome = Ok(());
                let settled = part.decode(&mut decoder, now, &mut |chunk| {
                    if outcome.is_ok() && self.effects.is_live(request) {
                        let chunk = self.effects.without_key(chunk);
                        outcome = give(&mut self.agent, Input::Model { request, chunk }, now)
                            .and_then(|()| self.drain());
                    }
                });
                self.effects.return_decoder(request, decoder, settled);
                outcome
            }
            Report::Tool(caller, update) => {
                self.effects.note(caller, &update);
                give(&mut self.agent, caller.news(update), now)?;
                self.drain()
            }
            Report::Detached(caller, start, text) => {
                self.effects.detached(caller);
                let about = ToolUpdate::Progress(Progress::Append(vec![Block::Text(text)]));
                give(&mut self.agent, caller.news(about), now)?;
                let detached = ToolUpdate::Detached(start);
                give(&mut self.agent, caller.news(detached), now)?;
                self.drain()
            }
            Report::Output(job, output) => {
                self.effects.job_wrote();
                let update = JobUpdate::Output(output);
                give(&mut self.agent, Input::Job { job, update }, now)?;
                self.drain()
            }
            Report::JobOver(job, output, state) => {
                self.effects.job_over(job);
                let news = output.map(JobUpdate::Output);
                for update in news.into_iter().chain([JobUpdate::Ended(state)]) {
                    give(&mut self.agent, Input::Job { job, update }, now)?;
                }
                self.drain()
            }
            Report::Kept(job, fault) => match self.effects.kept(job, fault) {
                None => Ok(()),
                Some(why) => {
                    let update = JobUpdate::Unkept(why);
                    give(&mut self.agent, Input::Job { job, update }, now)?;
                    self.drain()
                }
            },
            Report::Hook(hook, outcome) => {
                self.effects.hook_ended(hook);
                give(&mut self.agent, Input::Hook { hook, outcome }, now)?;
                self.drain()
            }
            Report::Stored(write, ok) => {
                give(&mut self.agent, Input::Store { write, ok }, now)?;
                self.drain()
            }
            Report::Reloaded(command, outcome) => self.reloaded(command, outcome),
            Report::Mcp(run, news) => {
                self.effects.mcp_told(run, news, now);
                self.drain()
            }
            Report::Snapshotted(call, update) => {
                give(&mut self.agent, Input::Tool { call, update }, now)?;
                self.drain()
            }
            Report::Restored(command, outcome) => {
                give(&mut self.agent, Input::Restored { command, outcome }, now)?;
                self.drain()
            }
            Report::Opened(command, outcome) => {
                let other = self.effects.opened(outcome);
                give(&mut self.agent, Input::Opened { command, other }, now)?;
                self.drain()
            }
            Report::Answered => {
                if let Some((ask, outcome)) = self.later.take() {
                    self.answered(ask, outcome)?;
                }
                self.drain()
            }
        }
    }
}

fn give<A: Agent>(agent: &mut A, input: Input<'_>, now: Now) -> Result<(), Error> {
    let doing = match &input {
        Input::Call(_) => "giving a command",
        Input::Model { .. } => "giving a model chunk",
        Input::Tool { .. } => "giving a tool's update",
        Input::Shell { .. } => "giving a command's update",
        Input::Store { .. } => "settling a write",
        Input::Woken => "waking the agent",
        Input::Hook { .. } => "settling a hook",
        Input::Job { .. } => "giving news of a job",
        Input::Run { .. }
        | Input::Opened { .. }
        | Input::Reloaded { .. }
        | Input::Refrozen { .. }
        | Input::Restored { .. }
        | Input::DriverTools { .. }
        | Input::Fault { .. } => "settling an effect",
    };
    agent
        .handle(input, now)
        .map_err(|misuse: Misuse| Error::Misuse { doing, misuse })
}

/// The exit code of a process that a signal ended.
pub fn exit_code(signal: Signal) -> u8 {
    match signal {
        Signal::Hangup => 129,
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
    }
}
