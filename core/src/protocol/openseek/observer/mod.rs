//! The observer of openseek. It shares the types of the lines with whoever speaks them, and nothing else: what it knows of
//! the order of lines is written down here, from the contract.
//!
//! Lines of the two directions cross: a command may be recorded before lines that the engine wrote without having read it.
//! So what is counted holds under every reading, and only the line that a missing answer is pinned on is a guess.

mod agent;
mod asks;
mod errors;
mod goals;
mod host;
mod jobs;
mod runs;
mod shape;
mod steers;
mod step;
mod turn;

use alloc::string::String;

use super::guarantees::GUARANTEES;
use super::rules::{Key, RULES, UNSEEN};
use super::spec::SPEC;
use super::wire::Shapes;
use super::{HOST_LINE_MAX, Openseek};
use crate::frame::Place;
use crate::json::{Members, Object};
use crate::protocol::observer::{
    At, Dir, Label, Notes, Observed, ReadLine, Rule, Severity, Sides, Text, Unseen, Watch,
};
use crate::protocol::spec::Spec;
use crate::vocab::laws::Guarantee;

use asks::Asks;
use errors::Errors;
use goals::Goals;
use jobs::Jobs;
use runs::Runs;
use shape::Shape;
use steers::Steers;
use step::Step;
use turn::Turn;

/// The settings of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverConfig {
    /// Which shapes of commands the engine reads.
    pub shapes: Shapes,
}

/// The state of an observer.
#[derive(Debug)]
pub struct Watcher {
    shapes: Shapes,
    /// Of lines that are read once more.
    members: Members,
    shape: Shape,
    /// The engine has written something.
    opened: bool,
    /// A line of the engine couldn't be read, or several runs share the lines: counts mean nothing any more.
    lost: bool,
    errors: Errors,
    turn: Turn,
    step: Step,
    asks: Asks,
    steers: Steers,
    goals: Goals,
    jobs: Jobs,
    runs: Runs,
    /// Where `session_started` stands: this is a run, not an engine that serves.
    session: Option<Place>,
    /// Several runs share the lines, and no line says whose it is.
    fleet: bool,
    /// A line of the host was read.
    commanded: bool,
    /// The line of the host that ends the reading of commands.
    broken: Option<Place>,
    host_ended: bool,
    exit: Option<i64>,
}

/// A line that is judged.
#[derive(Clone, Copy, Debug)]
struct Here<'o, 'm, 'a> {
    sides: Sides,
    place: Place,
    object: &'o Object<'m, 'a>,
}

impl Observed for Openseek {
    type Watch = Watcher;
    const GUARANTEES: &'static [Guarantee] = GUARANTEES;
    const RULES: &'static [Rule] = RULES;
    const UNSEEN: &'static [Unseen] = UNSEEN;
    const SPEC: &'static Spec = &SPEC;
    const HOST_LINE_MAX: usize = HOST_LINE_MAX;

    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir> {
        if line.get("command").is_some() {
            Some(Dir::Host)
        } else {
            line.get("event").map(|_| Dir::Agent)
        }
    }
}

impl Watch for Watcher {
    type Config = ObserverConfig;

    fn new(config: ObserverConfig) -> Self {
        Watcher {
            shapes: config.shapes,
            members: Members::new(),
            shape: Shape::default(),
            opened: false,
            lost: false,
            errors: Errors::default(),
            turn: Turn::default(),
            step: Step::default(),
            asks: Asks::default(),
            steers: Steers::default(),
            goals: Goals::default(),
            jobs: Jobs::default(),
            runs: Runs::default(),
            session: None,
            fleet: false,
            commanded: false,
            broken: None,
            host_ended: false,
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
            self.host_ended = true;
        }
    }

    fn exit(&mut self, _sides: Sides, code: i64, _notes: &mut Notes) {
        self.exit = Some(code);
    }

    fn finish(&mut self, sides: Sides, notes: &mut Notes) {
        if !self.opened || !sides.has(Dir::Agent) {
            return;
        }
        let severity = match self.exit {
            None => Severity::Warning,
            Some(0..=127) => Severity::Error,
            // A signal: nobody promised anything.
            Some(_) => return,
        };
        // A run says elsewhere why its turn failed, and leaves with 1.
        let failed = !self.commanded && self.exit == Some(1);
        match (failed, self.session) {
            (true, Some(_)) => {}
            (true, None) => self.turn.finish(Severity::Warning, notes),
            (false, _) => self.turn.finish(severity, notes),
        }
        if sides == Sides::Both && !self.lost {
            self.turn.owed(severity, notes);
            self.errors.owed(severity, notes);
            self.steers.owed(severity, notes);
            self.jobs.owed(severity, notes);
        }
        if let Some(code) = self.exit
            && self.commanded
            && self.session.is_none()
            && code != 0
        {
            notes.add(
                Key::ExitCode.rule(),
                At::line(),
                alloc::format!("the exit code is {code}"),
            );
        }
    }

    fn skipped(&self, rule: &Rule) -> Option<&'static str> {
        if rule.id != Key::ExitCode.rule().id {
            None
        } else if !self.commanded {
            Some("no line of the host shows that the engine served")
        } else if self.session.is_some() {
            Some("a run leaves with 1 where it failed")
        } else {
            None
        }
    }
}

impl Watcher {
    /// A line of which nobody knows who wrote it: it can't be read.
    fn nobodys(&mut self, line: &ReadLine<'_, '_>, notes: &mut Notes) -> Label {
        if let Text::Not(fault) | Text::Despite(_, fault) = &line.text {
            shape::agent_fault(fault, Severity::Warning, notes);
        }
        self.blur();
        self.deafen();
        Label::NONE
    }

    /// A line of the engine couldn't be read: it may have been any.
    fn blur(&mut self) {
        self.lost = true;
        self.turn.blur();
        self.step.blur();
        self.asks.blur();
        self.goals.blur();
        self.jobs.blur();
        self.runs.blur();
    }

    /// A line of the host couldn't be read for certain: it may have been any.
    fn deafen(&mut self) {
        self.turn.unheard();
        self.errors.unheard();
        self.asks.unsure = true;
        self.steers.unsure = true;
        self.goals.unheard();
        self.jobs.unsure = true;
    }

    /// Whether what the host sent can be held against the engine.
    fn hears_both(&self, sides: Sides) -> bool {
        sides == Sides::Both && !self.lost
    }
}

/// A finding on a line of the host, at the end of all.
fn pinned(key: Key, place: Place, severity: Severity, message: &str, notes: &mut Notes) {
    let at = At::line().at_most(severity);
    notes.add_for(
        key.rule(),
        Dir::Host,
        Some(place),
        at,
        String::from(message),
    );
}
