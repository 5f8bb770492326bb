//! The observer of agentx and claude. It shares the types of the lines with the Server, and what one line means by
//! itself; what it knows of the order of lines is written down here once more, from the contract.

mod agent;
mod asks;
mod calls;
mod control;
mod host;
mod operations;
mod prompts;
mod result;
mod stream;
mod totals;
mod turn;
mod uploads;
mod whose;

use alloc::string::String;

use super::guarantees::GUARANTEES;
use super::policy::{ForeignSession, RecordForm, SessionStates};
use super::rules::{Key, RULES, UNSEEN};
use super::spec::SPEC;
use super::{Agentx, Policy};
use crate::frame::Place;
use crate::json::{Members, Object};
use crate::protocol::observer::{
    At, Dir, Ids, Label, Notes, Observed, ReadLine, Rule, Severity, Sides, Text, Unseen, Watch,
};
use crate::protocol::spec::Spec;
use crate::vocab::laws::Guarantee;

use asks::Asks;
use calls::Calls;
use control::Control;
use prompts::Prompts;
use stream::Stream;
use totals::Totals;
use turn::Turn;
use uploads::Uploads;

/// The settings of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserverConfig {
    /// What both sides are expected to speak.
    pub policy: Policy,
}

/// The state of an observer.
#[derive(Debug)]
pub struct Watcher {
    policy: Policy,
    /// Of lines that are read once more.
    members: Members,
    /// The agent has written something.
    opened: bool,
    /// The session's id, from the agent's lines.
    session: Option<String>,
    /// Ids of records.
    uuids: Ids<()>,
    /// Lines of the host so far.
    host_lines: u64,
    control: Control,
    asks: Asks,
    calls: Calls,
    turn: Turn,
    stream: Stream,
    prompts: Prompts,
    uploads: Uploads,
    totals: Totals,
    host_ended: bool,
    /// The line of the host that ends the stream.
    fatal: Option<Place>,
    /// Whether the last result was an error.
    failed: Option<bool>,
    exit: Option<i64>,
}

/// A line that is judged.
#[derive(Clone, Copy, Debug)]
struct Here<'o, 'm, 'a> {
    sides: Sides,
    place: Place,
    object: &'o Object<'m, 'a>,
}

impl Observed for Agentx {
    type Watch = Watcher;
    const GUARANTEES: &'static [Guarantee] = GUARANTEES;
    const RULES: &'static [Rule] = RULES;
    const UNSEEN: &'static [Unseen] = UNSEEN;
    const SPEC: &'static Spec = &SPEC;
    const HOST_LINE_MAX: usize = crate::protocol::agentx::HOST_LINE_MAX;

    /// Both directions share most of their types: what tells them apart is what only one of them says.
    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir> {
        match &line.text {
            Text::Whole(object) | Text::Despite(object, _) => whose::whose(object),
            Text::Not(_) | Text::Gone { .. } => None,
        }
    }
}

impl Watch for Watcher {
    type Config = ObserverConfig;

    fn new(config: ObserverConfig) -> Self {
        Watcher {
            policy: config.policy,
            members: Members::new(),
            opened: false,
            session: None,
            uuids: Ids::default(),
            host_lines: 0,
            control: Control::default(),
            asks: Asks::default(),
            calls: Calls::default(),
            turn: Turn::new(config.policy.session_states == SessionStates::Always),
            stream: Stream::default(),
            prompts: Prompts::default(),
            uploads: Uploads::default(),
            totals: Totals::default(),
            host_ended: false,
            fatal: None,
            failed: None,
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
        if self.exit == Some(0) {
            self.turn.leaves(self.most(), notes);
            self.uploads.leaves(notes);
        }
        if sides == Sides::Both && self.fatal.is_none() {
            self.owed(notes);
        }
        self.exit_code(sides, notes);
    }

    fn skipped(&self, rule: &Rule) -> Option<&'static str> {
        const OF_CLAUDE: [Key; 6] = [
            Key::Stream,
            Key::Pieces,
            Key::MessageId,
            Key::Totals,
            Key::Lifecycle,
            Key::TurnInit,
        ];
        const OF_STRICT: [Key; 13] = [
            Key::OutsideTurn,
            Key::Usage,
            Key::ApiKeySource,
            Key::ImportOnce,
            Key::ImportUncaused,
            Key::ImportForm,
            Key::ImportUnended,
            Key::Members,
            Key::InputError,
            Key::Privacy,
            Key::ResultPrompt,
            Key::FirstIsInit,
            Key::PromptLost,
        ];
        let is_of = |keys: &[Key]| keys.iter().any(|key| key.rule().id == rule.id);
        let ends = [
            Key::RequestLost,
            Key::PromptLost,
            Key::OpenAtEnd,
            Key::ExitCode,
        ];
        if self.is_claude() && is_of(&OF_STRICT) {
            Some("it belongs to the strict wire")
        } else if !self.is_claude() && is_of(&OF_CLAUDE) {
            Some("it belongs to the wire of claude")
        } else if is_of(&ends) && !self.host_ended && self.fatal.is_none() {
            Some("the host's input wasn't seen to end")
        } else {
            None
        }
    }
}

impl Watcher {
    /// Whether claude's records are expected.
    fn is_claude(&self) -> bool {
        self.policy.record_form == RecordForm::Provider
    }

    /// Whether the agent has nobody left to ask, or soon finds out.
    fn is_closed(&self) -> bool {
        self.host_ended || self.fatal.is_some()
    }

    /// How bad it is to break what only recordings show of claude.
    fn most(&self) -> Severity {
        if self.is_claude() {
            Severity::Warning
        } else {
            Severity::Error
        }
    }

    /// How a host's line is read while the session's id isn't known.
    fn host_policy(&self) -> Policy {
        let mut policy = self.policy;
        if self.session.is_none() {
            policy.foreign_session_id = ForeignSession::Ignored;
        }
        policy
    }

    /// A line couldn't be read: it may have been any of the agent's.
    fn blur_agent(&mut self) {
        self.opened = true;
        self.control.blur();
        self.asks.blur();
        self.calls.blur();
        self.turn.blur();
        self.stream.blur();
        self.prompts.blur();
        self.uploads.blur();
    }

    /// A line couldn't be read: it may have been any of the host's.
    fn blur_host(&mut self) {
        self.control.blur();
        self.asks.blur();
        self.prompts.blur();
        self.uploads.blur();
    }

    /// A line of one side or the other.
    fn nobodys(&mut self, line: &ReadLine<'_, '_>, notes: &mut Notes) -> Label {
        match &line.text {
            // A sign of life says nothing, whoever it is that lives.
            Text::Whole(object) if object.string("type").as_deref() == Some("keep_alive") => {
                return Label {
                    class: "news",
                    name: "keep_alive",
                };
            }
            Text::Not(fault) | Text::Despite(_, fault) => {
                self.text_fault(fault, Severity::Warning, notes);
            }
            Text::Whole(_) | Text::Gone { .. } => {}
        }
        self.blur_agent();
        self.blur_host();
        Label::NONE
    }

    /// What the agent owed the host when it left.
    fn owed(&mut self, notes: &mut Notes) {
        if let Some(waiting) = self.control.unanswered() {
            let clean = self.exit == Some(0);
            let key = if clean && self.host_ended {
                Key::RequestLost
            } else {
                Key::Unanswered
            };
            let most = if clean {
                Severity::Error
            } else {
                Severity::Warning
            };
            // Of a process that left in another way nobody promised anything.
            if clean || self.exit.is_none() {
                notes.add_for(
                    key.rule(),
                    Dir::Host,
                    Some(waiting.place),
                    At::line().at_most(most),
                    String::from("no response answers this request before the agent's lines end"),
                );
            }
        }
        if self.exit == Some(0)
            && self.host_ended
            && !self.is_claude()
            && let Some(place) = self.prompts.left()
        {
            notes.add_for(
                Key::PromptLost.rule(),
                Dir::Host,
                Some(place),
                At::line(),
                String::from("the prompt has no result"),
            );
        }
    }

    fn exit_code(&self, sides: Sides, notes: &mut Notes) {
        let Some(code) = self.exit else { return };
        let fatal = self.fatal.filter(|_| sides == Sides::Both);
        if !self.host_ended && fatal.is_none() {
            return;
        }
        let (most, message) = match (code, fatal, self.failed) {
            (0, Some(_), _) => (Severity::Error, "a line of the host ended the stream"),
            (0, None, Some(true)) => (self.most(), "the last result is an error"),
            (1, None, Some(false) | None) => (Severity::Warning, "nothing that was said failed"),
            // 128 and a number: a signal's. 2: the command line was wrong.
            (0 | 1 | 2 | 129 | 130 | 137 | 143, ..) => return,
            (..0, ..) => return,
            _ => (Severity::Warning, "the contract has no such code"),
        };
        let at = At::line()
            .at_most(most)
            .with(Dir::Host, fatal, "the line that ends the stream");
        notes.add(
            Key::ExitCode.rule(),
            at,
            alloc::format!("exit code {code}: {message}"),
        );
    }
}
