//! An agent's whole world, in memory: a driver on a virtual clock that hands over
//! inputs, takes everything out, and watches.
//!
//! The checker of the neutral stream always looks on, and so does everything else
//! that can be seen from a driver's place: replies come first, deadlines are
//! announced, nothing waits for nothing. What is wrong is collected in
//! [`World::faults`]; nothing here panics.

mod agentx;
mod ends;
mod found;
mod given;
mod host;
mod omp;
mod openmax;
mod openseek;
mod pipe;
mod play;
mod speaks;
mod splice;
mod view;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use turnwire::vocab::{
    laws::{self, Checker, EffectId, Scope},
    mirror::Mirror,
    *,
};

pub use self::ends::{Ends, Recorded};
pub use self::found::{By, Found, Report};
pub use self::given::{Chunk, Given, Said};
pub use self::host::HostEnd;
pub(crate) use self::host::Wish;
pub use self::pipe::Pipe;
pub use self::play::{
    START, our_agent, play_agent, play_ends, record_agent, record_ends, run, run_over, run_text,
    run_with, session_world,
};
pub use self::speaks::{Mess, Speaks, Tamper, Untouched, line_rules};
pub use self::watch::{pairing, shape};

/// An agent and everything around it.
pub struct World<A> {
    /// The agent.
    pub agent: A,
    /// The clock.
    pub now: Now,
    /// Everything that was taken, with its time: enough to play it again (L5).
    pub given: Vec<(Given, Now)>,
    /// Everything that came out.
    pub said: Vec<Said>,
    /// How much had come out before each input.
    marks: Vec<usize>,
    /// The state, as the events tell it.
    pub mirror: Mirror,
    /// Effects that were started and not settled.
    pub work: BTreeMap<EffectId, Work>,
    /// Jobs alive, and whether they were told to stop.
    pub jobs: BTreeMap<JobId, bool>,
    /// What is wrong, in words that begin with the id of a law.
    pub faults: Vec<String>,
    /// Whether the driver reads what is bulk; when it doesn't, bulk that is given is left where it was.
    pub reads: bool,
    /// Stopped effects at which an agent may wait for one to settle.
    pub stopped_limit: usize,
    /// Hooks judge prompts before their replies.
    pub judges_first: bool,
    /// The end of a job begins a turn.
    pub jobs_wake: bool,
    /// Some calls of the script hand a task to a nested run instead.
    pub nests: bool,
    /// A close was given.
    closing: bool,
    /// Prompts that steer nothing.
    contexts: BTreeSet<PromptId>,
    checker: Checker,
    next_command: u64,
    next_prompt: u64,
    /// Prompts given and not refused, in order.
    pub prompts: Vec<PromptId>,
    /// Questions closed, in order of closing.
    pub closed_questions: Vec<AskId>,
    owed: BTreeMap<CommandId, Command>,
    replies: BTreeMap<CommandId, Result<Answer, Refusal>>,
    /// The prompts that hooks were told of.
    judged: BTreeMap<HookId, PromptId>,
    /// The earliest time of the next attempt of a run, while a retry waits.
    retry_at: BTreeMap<RunId, u64>,
    settled_ids: BTreeSet<EffectId>,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub enum Moment<'a> {
    /// An input, and when.
    In(&'a Given, Now),
    /// An output.
    Out(&'a Said),
}

/// A started effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Whether it was told to stop.
    pub stopped: bool,
}

impl<A: Agent> World<A> {
    /// Puts an agent into a world, and takes out what it says at once.
    pub fn new(agent: A, scope: Scope, now: Now) -> Self {
        let mut world = Self {
            agent,
            now,
            given: Vec::new(),
            said: Vec::new(),
            marks: Vec::new(),
            mirror: Mirror::new(),
            work: BTreeMap::new(),
            jobs: BTreeMap::new(),
            faults: Vec::new(),
            reads: true,
            stopped_limit: 1024,
            judges_first: false,
            jobs_wake: false,
            nests: false,
            closing: false,
            contexts: BTreeSet::new(),
            checker: Checker::new(scope),
            next_command: 1,
            next_prompt: 1,
            prompts: Vec::new(),
            closed_questions: Vec::new(),
            owed: BTreeMap::new(),
            replies: BTreeMap::new(),
            judged: BTreeMap::new(),
            retry_at: BTreeMap::new(),
            settled_ids: BTreeSet::new(),
        };
        world.drain();
        world
    }

    /// The agent's time plus `us`, on both clocks.
    fn later(&self, us: u64) -> Now {
        let mono_us = self.now.mono_us.saturating_add(us);
        Now {
            mono_us,
            unix_ms: self
                .now
                .unix_ms
                .saturating_add((mono_us / 1000) - (self.now.mono_us / 1000)),
        }
    }

    /// Whether the session is closed.
    pub fn closed(&self) -> bool {
        self.mirror.closed().is_some()
    }

    /// A fresh prompt.
    pub fn prompt(&mut self, text: &str, deliver: Deliver) -> Prompt {
        let id = PromptId(self.next_prompt);
        self.next_prompt += 1;
        self.prompts.push(id);
        Prompt {
            id,
            tag: None,
            content: vec![Block::Text(Text::from(text))],
            deliver,
            literal: false,
            details: None,
        }
    }

    /// Gives a command and takes everything out. `None`: the agent takes no commands now.
    pub fn command(&mut self, command: Command) -> Option<CommandId> {
        // Cancel and Close that a Server already holds pass a full queue (section 13).
        let passes = matches!(command, Command::Cancel { .. } | Command::Close { .. });
        if !passes && !self.agent.wants_input() {
            return None;
        }
        let id = CommandId(self.next_command);
        self.next_command += 1;
        self.give(Given::Call(Call { id, command }));
        Some(id)
    }

    /// The reply to a command, if it came.
    pub fn reply(&self, command: CommandId) -> Option<&Result<Answer, Refusal>> {
        self.replies.get(&command)
    }

    /// Hands over an input that must be taken, and takes everything out.
    pub fn give(&mut self, given: Given) {
        if given.input().is_bulk() && !(self.reads && self.agent.wants_bulk()) {
            return;
        }
        self.settles(&given);
        let overdue = self
            .agent
            .poll_timeout()
            .is_some_and(|due| due.at_us < self.now.mono_us);
        let was_closed = self.closed();
        let from = self.said.len();
        if let Given::Call(call) = &given {
            self.owed.insert(call.id, call.command.clone());
            if let Command::Close { .. } = &call.command {
                self.closing = true;
            }
            if let Command::Prompt(prompt) = &call.command
                && prompt.deliver == Deliver::Context
            {
                self.contexts.insert(prompt.id);
            }
        }
        self.checker.input(&given.input());
        self.given.push((given.clone(), self.now));
        self.marks.push(self.said.len());
        if let Err(misuse) = self.agent.handle(given.input(), self.now) {
            self.faults.push(format!("S-04: {misuse} for {given:?}"));
        }
        self.drain();
        if let Some(due) = self
            .agent
            .poll_timeout()
            .filter(|due| due.at_us < self.now.mono_us)
        {
            self.faults.push(format!(
                "S-02: {due:?} is overdue at {:?}, after {given:?}",
                self.now
            ));
        }
        if let (Given::Call(call), false, false) = (&given, overdue, was_closed) {
            self.check_reply_first(call, from);
        }
    }

    /// Hands over an input that must be refused, and must change nothing.
    pub fn give_wrong(&mut self, given: &Given, now: Now, expected: Misuse) {
        let due = self.agent.poll_timeout();
        match self.agent.handle(given.input(), now) {
            Err(misuse) if misuse == expected => {}
            other => self.faults.push(format!(
                "S-04: {other:?} instead of {expected:?} for {given:?}"
            )),
        }
        if self.agent.poll_timeout() != due {
            self.faults
                .push(format!("S-04: misuse changed a deadline: {given:?}"));
        }
        if let Some(output) = self.agent.poll_output() {
            let said = format!("S-04: misuse said {output:?}");
            self.faults.push(said);
        }
    }

    /// Lets time pass; the driver wakes the agent at each deadline on the way.
    pub fn pass(&mut self, us: u64) {
        let until = self.now.mono_us.saturating_add(us);
        // Each round fires a timer; far more than any agent has timers for.
        for _ in 0..10_000 {
            let Some(due) = self.agent.poll_timeout().filter(|due| due.at_us <= until) else {
                break;
            };
            self.now = self.later(due.at_us.saturating_sub(self.now.mono_us));
            self.wake();
        }
        self.now = self.later(until.saturating_sub(self.now.mono_us));
    }

    /// Lets time pass unnoticed: a late driver.
    pub fn skip(&mut self, us: u64) {
        self.now = self.later(us);
    }

    /// Jumps to the next deadline and wakes the agent. `false`: there is none.
    pub fn jump(&mut self) -> bool {
        let Some(due) = self.agent.poll_timeout() else {
            return false;
        };
        self.now = self.later(due.at_us.saturating_sub(self.now.mono_us));
        self.wake();
        true
    }

    /// Wakes the agent now, because a deadline of it has come.
    pub fn wake(&mut self) {
        let before = self.agent.poll_timeout();
        let from = self.said.len();
        self.give(Given::Else(Input::Woken));
        let after = self.agent.poll_timeout();
        let stuck = after.is_some_and(|due| due.at_us <= self.now.mono_us);
        let was_due = before.is_some_and(|due| due.at_us <= self.now.mono_us);
        if was_due && stuck && self.said.len() == from {
            self.faults.push(format!(
                "L4: woken for {before:?} at {:?}, and then due at {after:?}",
                self.now
            ));
        }
    }

    /// Takes everything out, and looks at it.
    fn drain(&mut self) {
        let from = self.said.len();
        loop {
            let due = self.agent.poll_timeout();
            let Some(output) = self.agent.poll_output() else {
                break;
            };
            if due.is_none_or(|due| due.at_us > self.now.mono_us) {
                self.faults.push(format!(
                    "L3: output was queued, and the deadline was {due:?}"
                ));
            }
            self.checker.output(&output);
            self.said.push(Said::from(&output));
        }
        for at in from..self.said.len() {
            if let Some(said) = self.said.get(at).cloned() {
                self.look_at(&said);
            }
        }
        self.checker.quiet();
        self.check_bodies(from);
        self.check_waiting();
    }

    /// What happened, in order.
    pub fn story(&self) -> Vec<Moment<'_>> {
        let mut moments = Vec::new();
        let mut said = self.said.iter();
        let mut out = 0;
        for ((given, now), mark) in self.given.iter().zip(&self.marks) {
            moments.extend(
                said.by_ref()
                    .take(mark.saturating_sub(out))
                    .map(Moment::Out),
            );
            out = *mark;
            moments.push(Moment::In(given, *now));
        }
        moments.extend(said.map(Moment::Out));
        moments
    }

    /// What happened, a line each: `>` goes in, `<` comes out.
    pub fn transcript(&self) -> String {
        let line = |moment: &Moment<'_>| match moment {
            Moment::In(given, now) => format!("> @{} {given:?}\n", now.mono_us),
            Moment::Out(said) => format!("  < {said}\n"),
        };
        self.story().iter().map(line).collect()
    }

    /// What the checker of the neutral stream found.
    pub fn violations(&self) -> &[laws::Violation] {
        self.checker.violations()
    }

    /// Everything wrong so far, the checker's findings too.
    pub fn problems(&self) -> Vec<String> {
        let found = self.checker.violations().iter().map(ToString::to_string);
        found.chain(self.faults.iter().cloned()).collect()
    }
}
