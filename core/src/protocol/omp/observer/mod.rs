//! The observer of omp. It shares the types of the lines with the Server, and none of its logic: what it knows of the
//! order of lines is written down here once more, from the contract.

mod agent;
mod asks;
mod host;
mod ledger;
mod reply;
mod requests;
mod responses;
mod run;
mod settling;

use alloc::string::String;

use super::codec::ChunkReader;
use super::guarantees::GUARANTEES;
use super::rules::{Key, RULES, UNSEEN};
use super::spec::SPEC;
use super::wire::{AGENT_RULES, Command, Side, host_text};
use super::{Generation, Omp};
use crate::frame::Place;
use crate::json::{self, Members, Object};
use crate::protocol::member::last;
use crate::protocol::observer::{
    At, Dir, Label, Notes, Observed, ReadLine, Rule, Severity, Sides, Text, Unseen, Watch, hash,
};
use crate::protocol::spec::Spec;
use crate::vocab::laws::Guarantee;

use asks::{Asking, Asks};
use ledger::Ledger;
use run::Run;
use settling::Settling;

/// The commands that change the session: what runs is left behind.
const CHANGES: [&str; 5] = [
    "new_session",
    "open_session",
    "switch_session",
    "branch",
    "fork",
];

/// The settings of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverConfig {
    /// Which generation is expected. What differs in an older one is info, whatever is expected; with the older one
    /// named it isn't said at all.
    pub generation: Generation,
}

/// The state of an observer.
#[derive(Debug)]
pub struct Watcher {
    generation: Generation,
    /// The agent has said `ready`, or something else.
    opened: bool,
    ready: bool,
    chunks: ChunkReader,
    /// Of frames that chunks made, and of lines that are read once more.
    members: Members,
    /// Lines of the host so far.
    host_lines: u64,
    ledger: Ledger,
    run: Run,
    settling: Settling,
    asks: Asks,
    /// Differences between generations that were told.
    told: [bool; 2],
    host_ended: bool,
    exit: Option<i64>,
}

impl Observed for Omp {
    type Watch = Watcher;
    const GUARANTEES: &'static [Guarantee] = GUARANTEES;
    const RULES: &'static [Rule] = RULES;
    const UNSEEN: &'static [Unseen] = UNSEEN;
    const SPEC: &'static Spec = &SPEC;
    const HOST_LINE_MAX: usize = crate::protocol::omp::HOST_LINE_MAX;

    /// Both directions have a `type`; the two have no word in common.
    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir> {
        match &line.text {
            Text::Whole(object) | Text::Despite(object, _) => whose(object),
            Text::Not(_) => {
                // Either side takes some lines that a strict reader doesn't.
                let text = host_text(line.raw);
                let mut members = Members::new();
                whose(&json::scan(&text, &AGENT_RULES, &mut members).ok()?)
            }
            Text::Gone { .. } => None,
        }
    }
}

/// Whose line an object is, by its type.
fn whose(object: &Object<'_, '_>) -> Option<Dir> {
    let kind = last(object, "type")?.string()?;
    if Command::TAGS.contains(&&*kind) || Side::TAGS.contains(&&*kind) {
        return Some(Dir::Host);
    }
    let known = SPEC
        .lines
        .iter()
        .any(|line| line.dir == Dir::Agent && line.tag == "type" && line.name == kind);
    (known || kind == "extension_ui_request").then_some(Dir::Agent)
}

impl Watch for Watcher {
    type Config = ObserverConfig;

    fn new(config: ObserverConfig) -> Self {
        Watcher {
            generation: config.generation,
            opened: false,
            ready: false,
            chunks: ChunkReader::new(),
            members: Members::new(),
            host_lines: 0,
            ledger: Ledger::default(),
            run: Run::default(),
            settling: Settling::default(),
            asks: Asks::default(),
            told: [false; 2],
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
            None => {
                if let Text::Not(fault) | Text::Despite(_, fault) = &line.text {
                    agent::fault_of(fault, Severity::Warning, notes);
                }
                self.blur();
                Label::NONE
            }
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
            Some(0) => Severity::Error,
            // Nobody promised anything.
            Some(_) => return self.exit_code(notes),
        };
        if self.exit == Some(0) {
            self.settling.ends(notes);
        }
        if self.chunks.is_open() {
            notes.add(
                Key::Chunks.rule(),
                At::line().at_most(severity),
                String::from("the stream ends within a frame"),
            );
        }
        if sides == Sides::Both
            && !self.ledger.is_unsure()
            && let Some(waiting) = self.ledger.unanswered()
        {
            notes.add_for(
                Key::Unanswered.rule(),
                Dir::Host,
                Some(waiting.place),
                At::line().at_most(severity),
                String::from("no response answers this command before the agent's lines end"),
            );
        }
        self.exit_code(notes);
    }

    fn skipped(&self, rule: &Rule) -> Option<&'static str> {
        let of_a_run = [
            Key::OutsideRun,
            Key::Steps,
            Key::Messages,
            Key::Tools,
            Key::Blocks,
            Key::Again,
            Key::EndedEarly,
            Key::Told,
            Key::Results,
            Key::Retries,
            Key::AbortEarly,
        ];
        if self.run.is_filtered() && of_a_run.iter().any(|key| key.rule().id == rule.id) {
            Some("a filter hid events for a while")
        } else if rule.id == Key::ExitCode.rule().id && !self.host_ended {
            Some("the host's input wasn't seen to end")
        } else {
            None
        }
    }
}

impl Watcher {
    /// A line couldn't be read: it may have been any.
    fn blur(&mut self) {
        self.opened = true;
        self.ready = true;
        self.ledger.blur();
        self.run.blur();
        self.settling.stirs();
        self.asks.blur();
    }

    /// Whether the host has asked for another session, and waits.
    fn changes_session(&self) -> bool {
        self.ledger.is_unsure() || CHANGES.iter().any(|name| self.ledger.waits_for(hash(name)))
    }

    /// What a request of the agent is judged by, where a command of this name says what it may ask for.
    fn asking(&self, sides: Sides, place: Place, set_by: &str) -> Asking {
        let may_be_set = self.ledger.is_unsure() || self.ledger.waits_for(hash(set_by));
        Asking {
            place,
            sides,
            most: match sides {
                // The response that says what is set may come after the request, and nobody sees the command.
                Sides::Agent | Sides::Host => Some(Severity::Warning),
                Sides::Both if may_be_set => None,
                Sides::Both => Some(Severity::Error),
            },
        }
    }

    /// Whether a host has asked for a talk and has no answer yet.
    fn talk_is_asked_for(&self, sides: Sides) -> bool {
        sides == Sides::Both
            && (self.ledger.is_unsure() || self.ledger.waits_for(hash("live_start")))
    }

    fn exit_code(&self, notes: &mut Notes) {
        let Some(code) = self.exit else { return };
        // A negative code is a signal's; a process that passes one on shows 128 and its number.
        if self.host_ended && !matches!(code, 0 | 1 | 129 | 130 | 137 | 143) && code >= 0 {
            notes.add(
                Key::ExitCode.rule(),
                At::line(),
                alloc::format!("exit code {code} after the end of input"),
            );
        }
    }
}
