//! The laws of the neutral stream, as a checker: what any agent owes to whoever
//! gives it commands.
//!
//! A [`Checker`] is told what goes in and sees what comes out, and says which law
//! was broken, where. It knows nothing of how the agent works, so it can stand
//! beside a session, a pipeline, and a client that is fed a recording. Laws that
//! a foreign agent need not keep are a switch, [`Scope`].
//!
//! It is a tool for tests: ids are remembered for as long as it lives.

// Each part of the checker looks at a few kinds of event and leaves the rest to the others.
#![allow(clippy::wildcard_enum_match_arm)]

mod breach;
mod calls;
mod effects;
mod guarantees;
mod prompts;
mod region;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};

pub use self::breach::{Breach, EffectId, Thing, Violation};
pub use self::guarantees::{GUARANTEES, Guarantee, INVARIANTS, LAWS};
use self::{
    breach::Report,
    effects::{Effects, Questions},
    prompts::Prompts,
    region::Region,
};
use super::*;

/// Which laws hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of every agent.
    Any,
    /// Those of our own session as well: no retry after shown text (S-20), deltas that add up
    /// to the block (S-22), effects right behind their events (S-65), questions closed before
    /// a cancel is replied to (S-50).
    Session,
}

/// The checker. See the [module](self).
#[derive(Clone, Debug)]
pub struct Checker {
    scope: Scope,
    report: Report,
    regions: BTreeMap<RunId, Region>,
    prompts: Prompts,
    questions: Questions,
    effects: Effects,
    runs: BTreeSet<RunId>,
    /// Jobs, and whether each is over.
    jobs: BTreeMap<JobId, bool>,
    closes: BTreeSet<CommandId>,
    closing: bool,
    ids: BTreeSet<(Thing, u64)>,
    last_at: Now,
    /// What the last output was, for effects that must follow an event directly.
    last: Last,
    settled: bool,
    closed: bool,
}

/// The call that waits at the gate for this question. One that runs and wants to reach a host
/// of the network has passed it.
fn gated(body: &Ask) -> Option<CallId> {
    match body {
        Ask::Permission(ask) if !matches!(ask.reason, AskReason::Network { .. }) => ask.call,
        _ => None,
    }
}

/// What the last output was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Request(RequestId),
    Compaction,
    Run(RunId),
    Other,
}

impl Checker {
    /// A checker of a stream that hasn't begun.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            report: Report::default(),
            regions: BTreeMap::new(),
            prompts: Prompts::default(),
            questions: Questions::default(),
            effects: Effects::default(),
            runs: BTreeSet::new(),
            jobs: BTreeMap::new(),
            closes: BTreeSet::new(),
            closing: false,
            ids: BTreeSet::new(),
            last_at: Now::default(),
            last: Last::Other,
            settled: false,
            closed: false,
        }
    }

    /// Everything found so far, in order.
    pub fn violations(&self) -> &[Violation] {
        &self.report.found
    }

    /// Tells of an input that the agent took: commands, and the settlements of effects.
    pub fn input(&mut self, input: &Input<'_>) {
        match input {
            Input::Call(call) => self.command(call),
            Input::Model { request, chunk } if chunk.settles() => {
                self.effects.settle(EffectId::Model(*request))
            }
            Input::Model { .. }
            | Input::Tool { .. }
            | Input::Hook { .. }
            | Input::Store { .. }
            | Input::Job { .. }
            | Input::Run { .. }
            | Input::Shell { .. }
            | Input::Opened { .. }
            | Input::Reloaded { .. }
            | Input::Restored { .. }
            | Input::Refrozen { .. }
            | Input::DriverTools { .. }
            | Input::Fault { .. }
            | Input::Woken => {}
        }
    }

    /// Tells of a command that the agent took.
    pub fn command(&mut self, call: &Call) {
        if let Command::Close { .. } = call.command {
            self.closes.insert(call.id);
        }
        self.prompts.command(call);
    }

    /// Tells that everything queued was taken out.
    pub fn quiet(&mut self) {
        self.prompts.quiet(&mut self.report);
    }

    /// Takes the next output.
    pub fn output(&mut self, output: &Output<'_>) {
        match output {
            Output::Event(event) => self.event(event),
            Output::Delta(delta) => self.delta(delta),
            Output::Effect { run, effect } => self.effect(*run, effect),
        }
    }

    /// Takes the next delta.
    pub fn delta(&mut self, delta: &DeltaRef<'_>) {
        self.begin(delta.at);
        self.last = Last::Other;
        if delta.run == RunId::MAIN {
            self.prompts.before_other(&mut self.report);
        }
        self.inside(delta.run);
        self.region(delta.run)
            .delta(delta.message, delta.block, delta.kind, delta.text);
        self.collect(delta.run);
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        self.begin(event.at);
        self.last = match &event.what {
            What::RequestStarted { request, .. } => Last::Request(*request),
            What::CompactionStarted { .. } => Last::Compaction,
            What::RunStarted { run, .. } => Last::Run(*run),
            _ => Last::Other,
        };
        if event.run == RunId::MAIN {
            self.prompts.before(&event.what, &mut self.report);
            self.main(event);
        }
        self.any_run(event);
    }

    /// What only the outermost agent says.
    fn main(&mut self, event: &Event) {
        let turn = self.regions.get(&RunId::MAIN).and_then(Region::turn);
        match &event.what {
            What::Opened(_) => self.opened(turn.is_some()),
            What::Replied { command, reply } => self.replied(*command, reply, turn),
            What::Queued { prompt, lane } => self.prompts.queued(*prompt, *lane, &mut self.report),
            What::PromptApplied { prompt, turn: into } => {
                let region = self.region(RunId::MAIN);
                let fits = match into {
                    Some(turn) => region.takes_prompts(*turn),
                    None => region.turn().is_none(),
                };
                let breach = if into.is_some() {
                    Breach::AppliedOutsideStep(*prompt)
                } else {
                    Breach::AppliedInsideTurn(*prompt)
                };
                self.report.check(fits, breach);
                self.prompts.applied(*prompt, *into, &mut self.report);
            }
            What::PromptEnded { prompt, end } => self.prompts.ended(*prompt, end, &mut self.report),
            What::TurnStarted { turn, cause } => {
                let by_itself = matches!(cause, Cause::Job | Cause::Goal);
                let late = by_itself && self.closing && self.scope == Scope::Session;
                self.report.check(!late, Breach::StartedWhileClosing(*turn));
                self.settled = false;
                self.questions.turn_started();
            }
            What::StepEnded { .. } => self.prompts.step_ended(),
            What::TurnEnded { end, .. } => {
                let open = self.questions.open_in_turn().is_some();
                self.report.check(!open, Breach::StillOpen(Thing::Question));
                self.prompts.turn_ended(end, &mut self.report);
            }
            What::CompactionStarted { .. } => self.settled = false,
            What::Settled => self.settle(turn.is_some()),
            What::Closed { .. } => self.close(turn.is_some()),
            _ => {}
        }
    }

    /// What every run may say.
    fn any_run(&mut self, event: &Event) {
        self.inside(event.run);
        match &event.what {
            What::Asked { ask, body } => {
                self.fresh(Thing::Question, ask.0, Breach::AskedTwice(*ask));
                self.questions.asked(event.run, *ask, body);
                if let Some(call) = gated(body) {
                    self.region(event.run).asked(call);
                }
            }
            What::AskClosed { ask, how } => match self.questions.closed(*ask) {
                None => self.report.breach(Breach::ClosedUnasked(*ask)),
                Some(Some(call)) => self.region(event.run).ask_closed(call, how),
                Some(None) => {}
            },
            What::RunStarted { run, .. } => {
                let new = self.runs.insert(*run);
                self.report.check(new, Breach::Overlap(Thing::Run));
            }
            What::RunEnded { run, .. } => {
                let open = self.runs.remove(run);
                self.report.check(open, Breach::EndWithoutStart(Thing::Run));
                if let Some(ask) = self.questions.open_in_run(*run) {
                    self.report.breach(Breach::NestedAskOpen(ask));
                }
                self.regions.remove(run);
            }
            What::Job(step, record) => {
                self.settled = false;
                self.job(*step, record.job);
            }
            what => {
                self.fresh_ids(what);
                let main = event.run == RunId::MAIN;
                self.region(event.run).event(what, main);
            }
        }
        self.collect(event.run);
    }

    /// What a nested run says comes while it is open.
    fn inside(&mut self, run: RunId) {
        let open = run == RunId::MAIN || self.runs.contains(&run);
        self.report
            .check(open || self.scope == Scope::Any, Breach::OutsideRun(run));
    }

    fn replied(
        &mut self,
        command: CommandId,
        reply: &Result<Answer, Refusal>,
        turn: Option<TurnId>,
    ) {
        self.prompts.replied(command, reply, &mut self.report);
        self.closing |= reply.is_ok() && self.closes.contains(&command);
        let Some(cancelled) = reply.as_ref().ok().and_then(Answer::cancelled_turn) else {
            return;
        };
        if turn != Some(cancelled) {
            return self.report.breach(Breach::NotCancelled(cancelled));
        }
        if let (Scope::Session, Some(ask)) = (self.scope, self.questions.open_in_turn()) {
            self.report.breach(Breach::AskedWhenCancelled(ask));
        }
        self.region(RunId::MAIN).cancelled();
    }

    fn job(&mut self, step: JobStep, job: JobId) {
        let over = step == JobStep::Ended;
        let known = self.jobs.insert(job, over);
        if known == Some(true) {
            self.jobs.insert(job, true);
            return self.report.breach(Breach::JobAfterEnd(job));
        }
        let begins = step == JobStep::Started;
        let fits = self.scope == Scope::Any || begins != known.is_some();
        self.report.check(fits, Breach::JobOutOfOrder(job));
    }

    fn settle(&mut self, in_turn: bool) {
        self.report
            .check(!in_turn, Breach::SettledWhile(Thing::Turn));
        let compacting = self.region(RunId::MAIN).compacting();
        self.report
            .check(!compacting, Breach::SettledWhile(Thing::Compaction));
        self.report.check(
            !self.prompts.any_open(),
            Breach::SettledWhile(Thing::Prompt),
        );
        self.report.check(!self.settled, Breach::SettledTwice);
        self.settled = true;
    }

    /// Another session is there: nothing of the one before goes on.
    fn opened(&mut self, in_turn: bool) {
        if self.scope == Scope::Any {
            return;
        }
        let compacting = self.region(RunId::MAIN).compacting();
        for (open, thing) in [
            (in_turn, Thing::Turn),
            (compacting, Thing::Compaction),
            (self.prompts.any_open(), Thing::Prompt),
            (self.questions.any_open().is_some(), Thing::Question),
        ] {
            self.report.check(!open, Breach::OpenedWhile(thing));
        }
    }

    fn close(&mut self, in_turn: bool) {
        self.report.check(!self.closed, Breach::ClosedTwice);
        self.report.check(!in_turn, Breach::StillOpen(Thing::Turn));
        if let Some(ask) = self.questions.any_open() {
            self.report.breach(Breach::AskNeverClosed(ask));
        }
        let mut jobs = self.jobs.iter();
        if let (Scope::Session, Some((job, _))) = (self.scope, jobs.find(|(_, over)| !**over)) {
            self.report.breach(Breach::JobNeverEnded(*job));
        }
        if let (Scope::Session, Some(run)) = (self.scope, self.runs.first()) {
            self.report.breach(Breach::RunNeverEnded(*run));
        }
        self.prompts.closed(&mut self.report);
        self.closed = true;
    }

    fn effect(&mut self, run: RunId, effect: &Effect) {
        self.report.output += 1;
        self.report.check(!self.closed, Breach::AfterClosed);
        let strict = self.scope == Scope::Session;
        if let Effect::StartModel(request) = effect {
            let said = matches!(self.last, Last::Request(said) if said == *request)
                || self.last == Last::Compaction;
            self.report.check(
                said || !strict,
                Breach::StartedUnsaid(EffectId::Model(*request)),
            );
        }
        if let Effect::StartRun { run: begun, .. } = effect {
            let said = self.last == Last::Run(*begun);
            self.report.check(
                said || !strict,
                Breach::StartedUnsaid(EffectId::Run(*begun)),
            );
        }
        if let Effect::RunTool { call } = effect {
            let said = self.region(run).ran(*call);
            self.report.check(
                said || !strict,
                Breach::StartedUnsaid(EffectId::Tool(*call)),
            );
            self.collect(run);
        }
        self.effects.effect(run, effect, &mut self.report);
        self.last = Last::Other;
    }

    fn begin(&mut self, at: Now) {
        self.report.output += 1;
        self.report.check(!self.closed, Breach::AfterClosed);
        self.report
            .check(at.mono_us >= self.last_at.mono_us, Breach::TimeWentBack);
        self.last_at = at;
    }

    fn region(&mut self, run: RunId) -> &mut Region {
        let scope = self.scope;
        self.regions
            .entry(run)
            .or_insert_with(|| Region::new(scope))
    }

    /// Takes over what a region found.
    fn collect(&mut self, run: RunId) {
        if let Some(region) = self.regions.get_mut(&run) {
            region.drain(&mut self.report);
        }
    }

    fn fresh_ids(&mut self, what: &What) {
        match what {
            What::TurnStarted { turn, .. } => {
                self.fresh(Thing::Turn, turn.0, Breach::IdReused(Thing::Turn))
            }
            What::StepStarted { step, .. } => {
                self.fresh(Thing::Step, step.0, Breach::IdReused(Thing::Step))
            }
            What::RequestStarted { request, .. } => {
                self.fresh(Thing::Request, request.0, Breach::IdReused(Thing::Request));
            }
            What::MessageStarted { message, .. } => {
                self.fresh(Thing::Message, message.0, Breach::IdReused(Thing::Message));
            }
            What::Message(message) => self.fresh(
                Thing::Message,
                message.id.0,
                Breach::IdReused(Thing::Message),
            ),
            What::ToolStarted { call, .. } => {
                self.fresh(Thing::Call, call.0, Breach::IdReused(Thing::Call))
            }
            _ => {}
        }
    }

    fn fresh(&mut self, thing: Thing, id: u64, breach: Breach) {
        let new = self.ids.insert((thing, id));
        self.report.check(new, breach);
    }
}
