//! The observer of splice. It shares the types of the lines with whoever speaks them, and nothing else: what it knows of
//! the order of lines is written down here, from the contract.

mod agent;
mod calls;
mod host;
mod run;
mod secrets;
mod shape;
mod stages;
mod usage;

use super::guarantees::GUARANTEES;
use super::rules::{RULES, UNSEEN};
use super::spec::SPEC;
use super::wire::ImageBound;
use super::{HOST_LINE_MAX, Splice};
use crate::frame::Place;
use crate::json::{Members, Object};
use crate::protocol::observer::{
    Dir, Label, Notes, Observed, ReadLine, Rule, Severity, Sides, Text, Unseen, Watch,
};
use crate::protocol::spec::Spec;
use crate::vocab::laws::Guarantee;

use calls::Calls;
use host::Inputs;
use run::Run;
use secrets::Leaks;
use shape::Shape;
use stages::Stages;
use usage::Requests;

/// The settings of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverConfig {
    /// The agent is the known one (release 0.1.4): it ends without `run_end` where a merge was skipped or in conflict, it
    /// looks for secrets in each line alone, and it counts the size of pictures in its own way.
    pub original: bool,
}

/// The state of an observer.
#[derive(Debug)]
pub struct Watcher {
    config: ObserverConfig,
    /// Of lines that are read once more.
    members: Members,
    shape: Shape,
    inputs: Inputs,
    run: Run,
    calls: Calls,
    stages: Stages,
    requests: Requests,
    leaks: Leaks,
    /// A line of the agent couldn't be read: it may have been any.
    lost: bool,
    exit: Option<i64>,
}

/// A line that is judged.
#[derive(Clone, Copy, Debug)]
struct Here<'o, 'm, 'a> {
    place: Place,
    object: &'o Object<'m, 'a>,
}

impl Observed for Splice {
    type Watch = Watcher;
    const GUARANTEES: &'static [Guarantee] = GUARANTEES;
    const RULES: &'static [Rule] = RULES;
    const UNSEEN: &'static [Unseen] = UNSEEN;
    const SPEC: &'static Spec = &SPEC;
    const HOST_LINE_MAX: usize = HOST_LINE_MAX;

    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir> {
        if line.get("runId").is_some() {
            return Some(Dir::Agent);
        }
        let kind = line.get("type")?.string()?;
        match &*kind {
            "message" | "prompt" => Some(Dir::Host),
            other => SPEC.line(Dir::Agent, other).map(|_| Dir::Agent),
        }
    }
}

impl ObserverConfig {
    fn image_bound(self) -> ImageBound {
        if self.original {
            ImageBound::Padded
        } else {
            ImageBound::Decoded
        }
    }
}

impl Watch for Watcher {
    type Config = ObserverConfig;

    fn new(config: ObserverConfig) -> Self {
        Watcher {
            config,
            members: Members::new(),
            shape: Shape::default(),
            inputs: Inputs::default(),
            run: Run::default(),
            calls: Calls::default(),
            stages: Stages::default(),
            requests: Requests::default(),
            leaks: Leaks::default(),
            lost: false,
            exit: None,
        }
    }

    fn line(
        &mut self,
        sides: Sides,
        dir: Option<Dir>,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label {
        match dir {
            Some(Dir::Host) => self.host(sides, line, notes),
            Some(Dir::Agent) => self.agent(sides, line, notes),
            None => self.nobodys(line, notes),
        }
    }

    fn end(&mut self, _sides: Sides, dir: Dir, _notes: &mut Notes) {
        if dir == Dir::Host {
            self.inputs.end();
        }
    }

    fn exit(&mut self, _sides: Sides, code: i64, _notes: &mut Notes) {
        self.exit = Some(code);
    }

    fn finish(&mut self, sides: Sides, notes: &mut Notes) {
        self.inputs.finish(self.run.seen(), notes);
        if sides.has(Dir::Agent) {
            self.run
                .finish(self.exit, self.config.original, self.lost, notes);
        }
    }

    fn skipped(&self, _rule: &Rule) -> Option<&'static str> {
        None
    }
}

impl Watcher {
    /// A line of which nobody knows who wrote it: it can't be read.
    fn nobodys(&mut self, line: &ReadLine<'_, '_>, notes: &mut Notes) -> Label {
        if let Text::Not(fault) | Text::Despite(_, fault) = &line.text {
            shape::agent_fault(fault, Severity::Warning, notes);
        }
        self.blur();
        self.inputs.blur();
        Label::NONE
    }

    /// A line of the agent couldn't be read: it may have been any.
    fn blur(&mut self) {
        self.lost = true;
        self.run.blur();
        self.calls.blur();
        self.stages.blur();
        self.requests.blur();
    }
}
