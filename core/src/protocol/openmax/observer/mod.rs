//! The observer of openmax. It shares the types of the lines with the Server, and none of its logic: what it knows of
//! the order of lines is written down here once more, from the contract.

mod agent;
mod asks;
mod host;
mod ledger;
mod shape;
#[cfg(test)]
mod tests;
mod turn;

use alloc::format;
use alloc::string::String;

use super::Openmax;
use super::guarantees::GUARANTEES;
use super::rules::{Key, RULES, UNSEEN};
use super::spec::SPEC;
use crate::frame::Place;
use crate::protocol::observer::{
    At, Dir, Label, Notes, Observed, ReadLine, Rule, Severity, Sides, Text, Unseen, Watch,
};
use crate::protocol::spec::{LineSpec, Spec};
use crate::vocab::laws::Guarantee;

use crate::protocol::observer::Ids;
use asks::Asks;
use ledger::{Ledger, May, Must};
use shape::Shape;
use turn::Turn;

/// The version of the wire that is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// `openmax-stdio/5`, of recordings of an older program: no `retry`; `args` may be null; keys in any order; a
    /// transcript's message may be one character longer; questions in mode `auto`; `done` `error` without an `error`
    /// line where that is the provider's word; an exit code that remembers any failed turn.
    V5,
    /// `openmax-stdio/6`: the contract.
    #[default]
    V6,
}

impl Wire {
    /// The version of that number.
    pub const fn of(number: u64) -> Option<Wire> {
        match number {
            5 => Some(Wire::V5),
            6 => Some(Wire::V6),
            _ => None,
        }
    }
}

/// The settings of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverConfig {
    /// Which version of the wire is expected.
    pub wire: Wire,
}

/// What stands between `hello` and the first other line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Nothing was said.
    Silent,
    /// `hello` said that a session goes on: the next line is the transcript.
    Continued(Place),
    /// It is over. `hello`: whether there was one.
    Over { hello: bool, continued: bool },
}

/// A line of the agent whose members were compared with the table.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// What its names have in common with those of lines like it.
    shape: u64,
    spec: &'static LineSpec,
}

/// The state of an observer.
#[derive(Debug)]
pub struct Watcher {
    wire: Wire,
    opening: Opening,
    /// The session's id.
    session: Option<String>,
    shape: Shape,
    /// The last line of the agent, if it was strict and the contract knows its type.
    last: Option<Last>,
    turn: Turn,
    /// No prompt was sent or answered yet.
    untouched: bool,
    calls: Ids<Place>,
    asks: Asks,
    ledger: Ledger,
    /// Whether the mode is `auto`, once a line said so.
    auto: Option<bool>,
    schemas: Option<Place>,
    /// Whether the last turn ended with `error`.
    failed: bool,
    /// Whether any did.
    ever_failed: bool,
    /// A line of the agent couldn't be read.
    lost: bool,
    quit: Option<Place>,
    host_ended: bool,
    exit: Option<i64>,
}

impl Observed for Openmax {
    type Watch = Watcher;
    const GUARANTEES: &'static [Guarantee] = GUARANTEES;
    const RULES: &'static [Rule] = RULES;
    const UNSEEN: &'static [Unseen] = UNSEEN;
    const SPEC: &'static Spec = &SPEC;
    const HOST_LINE_MAX: usize = crate::protocol::openmax::HOST_LINE_MAX;

    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir> {
        if line.get("cmd").is_some() {
            Some(Dir::Host)
        } else {
            line.get("type").map(|_| Dir::Agent)
        }
    }
}

impl Watch for Watcher {
    type Config = ObserverConfig;

    fn new(config: ObserverConfig) -> Self {
        Watcher {
            wire: config.wire,
            opening: Opening::Silent,
            session: None,
            shape: Shape::default(),
            last: None,
            turn: Turn::default(),
            untouched: true,
            calls: Ids::default(),
            asks: Asks::default(),
            ledger: Ledger::default(),
            auto: None,
            schemas: None,
            failed: false,
            ever_failed: false,
            lost: false,
            quit: None,
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
            None => self.stray(line, notes),
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
        if self.opening == Opening::Silent || !sides.has(Dir::Agent) {
            return;
        }
        let severity = match self.exit {
            None => Severity::Warning,
            Some(0..=127) => Severity::Error,
            // A signal: nobody promised anything.
            Some(_) => return,
        };
        if let Opening::Continued(hello) = self.opening {
            notes.add(
                Key::TranscriptFollows.rule(),
                At::line()
                    .at_most(severity)
                    .with(Dir::Agent, Some(hello), "the hello"),
                String::from("the stream ends without the transcript"),
            );
        }
        if let Some(first) = self.turn.first
            && !self.turn.is_blurred()
        {
            notes.add(
                Key::DiedSilently.rule(),
                At::line().at_most(severity).with(
                    Dir::Agent,
                    Some(first),
                    "the first line of the turn",
                ),
                String::from("the stream ends within a turn: no done"),
            );
        }
        if sides == Sides::Both && !self.lost {
            self.settle_accounts(severity, notes);
        }
        if let Some(code) = self.exit {
            self.exit_code(code, notes);
        }
    }

    fn skipped(&self, rule: &Rule) -> Option<&'static str> {
        if rule.id != Key::AskInAuto.rule().id {
            None
        } else if self.wire == Wire::V5 {
            Some("this version of the wire does ask in auto")
        } else if self.auto.is_none() {
            Some("no line says which approval mode is in force")
        } else {
            None
        }
    }
}

impl Watcher {
    /// A line of which nobody knows who wrote it: it can't be read.
    fn stray(&mut self, line: &ReadLine<'_, '_>, notes: &mut Notes) -> Label {
        if let Text::Not(fault) | Text::Despite(_, fault) = &line.text {
            shape::agent_fault(fault, Severity::Warning, notes);
        }
        self.blur();
        self.ledger.slack();
        self.asks.unsure = true;
        Label::NONE
    }

    /// A line of the agent couldn't be read: it may have been any.
    fn blur(&mut self) {
        self.lost = true;
        self.ledger.lost();
        self.turn.blur();
        self.calls.blur();
        self.asks.ids.blur();
        self.opening = match self.opening {
            Opening::Silent => Opening::Over {
                hello: true,
                continued: false,
            },
            Opening::Continued(_) => Opening::Over {
                hello: true,
                continued: true,
            },
            over @ Opening::Over { .. } => over,
        };
    }

    /// What the host was owed and didn't get. One finding for each kind, on the first line of it.
    fn settle_accounts(&self, severity: Severity, notes: &mut Notes) {
        let mut told = [false; 8];
        let mut tell = |slot: usize, key: Key, place: Place, what: &str, notes: &mut Notes| {
            if let Some(told @ false) = told.get_mut(slot) {
                *told = true;
                notes.add_for(
                    key.rule(),
                    Dir::Host,
                    Some(place),
                    At::line().at_most(severity),
                    format!("{what} before the agent's lines end"),
                );
            }
        };
        for (what, place) in self.ledger.unrefused() {
            let (slot, key) = match what {
                Must::Bad => (0, Key::BadCommandAnswered),
                Must::Unknown => (1, Key::UnknownAnswered),
                Must::Mode => (2, Key::ModeAnswered),
                Must::Bytes => (3, Key::HostBytesAnswered),
                Must::Approve => (4, Key::ApproveAnswered),
            };
            tell(
                slot,
                key,
                place,
                "no protocol_error answers this line",
                notes,
            );
        }
        for (what, place) in self.ledger.unanswered(self.turn.first.is_some()) {
            let (slot, key) = match what {
                May::User => (5, Key::UserUnanswered),
                May::Mode(_) => (2, Key::ModeAnswered),
                May::Reload => (6, Key::ReloadAnswered),
            };
            tell(slot, key, place, "nothing answers this command", notes);
        }
    }

    fn exit_code(&self, code: i64, notes: &mut Notes) {
        let hello = matches!(
            self.opening,
            Opening::Over { hello: true, .. } | Opening::Continued(_)
        );
        if !hello || self.lost || self.turn.first.is_some() {
            return;
        }
        let right = match (code, self.failed) {
            (1, true) | (0, false) => true,
            (1, false) => self.wire == Wire::V5 && self.ever_failed,
            _ => false,
        };
        if !right {
            let how = if self.failed { "with" } else { "without" };
            notes.add(
                Key::ExitCode.rule(),
                At::line(),
                format!("exit code {code}, but the last turn ended {how} error"),
            );
        }
    }
}
