//! The turn that is open, and what the session is said to do.

use alloc::string::String;
use alloc::vec::Vec;

use super::super::rules::Key;
use super::super::wire::SessionState;
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Notes, Severity};

/// The most calls that are remembered as denied in one turn.
const MOST_DENIED: usize = 4096;

/// What a session is said to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Waits,
}

/// How a turn stands that has its result.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// States are told from the beginning.
    told: bool,
    state: Option<State>,
    /// Where it began.
    open: Option<Place>,
    /// `system/init` has stood at its beginning.
    init: Option<Place>,
    /// The result that `idle` must follow.
    owes_idle: Option<Place>,
    /// `requires_action` was said, and no question has followed.
    announced: Option<Place>,
    /// What a command gave that needs no turn.
    local: bool,
    /// A line was lost: what is open nobody knows.
    unsure: bool,
    /// An open permission was withdrawn.
    pub(super) withdrew: bool,
    /// An interrupt was heard.
    pub(super) interrupted: Option<Place>,
    /// Work beside the turn.
    tasks: u64,
    compacting: bool,
    /// A compaction has ended, and no boundary has followed.
    compacted: bool,
    /// Records with role user.
    pub(super) user_records: u64,
    /// Calls that the host denied, and that have their result.
    pub(super) denied: Vec<u64>,
}

/// What a result turned out to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// A turn.
    Turn,
    /// A command that needed none.
    Command,
    /// Nobody knows.
    Unknown,
}

impl Turn {
    pub(super) fn new(told: bool) -> Self {
        Turn {
            told,
            state: told.then_some(State::Idle),
            ..Turn::default()
        }
    }

    pub(super) fn blur(&mut self) {
        self.unsure = true;
        self.state = None;
        self.owes_idle = None;
        self.announced = None;
        self.withdrew = true;
    }

    /// Whether a turn is known to be open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether states are told, as far as is known.
    fn tells(&self) -> bool {
        self.told && !self.unsure
    }

    /// Work beside the turn is open.
    pub(super) fn has_tasks(&self) -> bool {
        self.tasks > 0
    }

    pub(super) fn task(&mut self, begins: bool) {
        self.tasks = if begins {
            self.tasks.saturating_add(1)
        } else {
            self.tasks.saturating_sub(1)
        };
    }

    /// A command wrote something that needs no turn.
    pub(super) fn command(&mut self) {
        self.local = true;
    }

    fn owed(&mut self, most: Severity, what: &str, notes: &mut Notes) {
        if let Some(result) = self.owes_idle.take() {
            let at = At::line()
                .at_most(most)
                .with(Dir::Agent, Some(result), "the result");
            let message = alloc::format!("{what}, and no idle has followed the result");
            notes.add(Key::IdleMissing.rule(), at, message);
        }
    }

    /// What was announced must come.
    fn quiet(&mut self, most: Severity, notes: &mut Notes) {
        if let Some(place) = self.announced.take() {
            let at = At::line()
                .at_most(most)
                .with(Dir::Agent, Some(place), "requires_action");
            let message = String::from("nothing is asked behind requires_action");
            notes.add(Key::States.rule(), at, message);
        }
    }

    /// The session is said to do this. `asked`: where a permission was asked for that is open.
    pub(super) fn state(
        &mut self,
        state: &SessionState<'_>,
        place: Place,
        asked: Option<Place>,
        most: Severity,
        notes: &mut Notes,
    ) {
        self.told = true;
        self.quiet(most, notes);
        let states = |message: &str, notes: &mut Notes| {
            let at = At::line().at_most(most);
            notes.add(Key::States.rule(), at, String::from(message));
        };
        match state {
            SessionState::Running => {
                match self.state {
                    Some(State::Running) if self.owes_idle.is_none() => {
                        states("running is said while it runs", notes);
                    }
                    Some(State::Waits) => {
                        if let Some(asked) = asked {
                            let at = At::line().at_most(most);
                            let at = at.with(Dir::Agent, Some(asked), "the permission");
                            let message = String::from("a permission is still open");
                            notes.add(Key::RunningBack.rule(), at, message);
                        }
                    }
                    Some(State::Idle | State::Running) | None => {}
                }
                if self.state != Some(State::Waits) {
                    self.owed(most, "running is said", notes);
                }
                self.begin(place);
                self.state = Some(State::Running);
            }
            SessionState::RequiresAction => {
                if matches!(self.state, Some(State::Idle | State::Waits)) {
                    states("requires_action is said, and nothing runs", notes);
                }
                self.begin(place);
                self.state = Some(State::Waits);
                self.announced = Some(place);
            }
            SessionState::Idle => {
                let message = if self.open.is_some() {
                    Some("the turn has no result yet")
                } else if self.owes_idle.is_none() {
                    Some("no result stands before it")
                } else {
                    None
                };
                if let Some(message) = message.filter(|_| !self.unsure) {
                    let at = At::line()
                        .at_most(most)
                        .with(Dir::Agent, self.open, "the turn");
                    notes.add(Key::IdleEarly.rule(), at, String::from(message));
                }
                self.owes_idle = None;
                self.state = Some(State::Idle);
                // What was lost lies behind.
                self.unsure = false;
                self.open = None;
                self.over();
            }
            SessionState::Other(_) => {}
        }
    }

    fn begin(&mut self, place: Place) {
        if self.open.is_none() {
            self.open = Some(place);
        }
    }

    /// `system/init`. `each`: every turn has one.
    pub(super) fn init(&mut self, each: bool, place: Place, notes: &mut Notes) {
        if let Some(before) = self.init {
            let most = if each {
                Severity::Warning
            } else {
                Severity::Error
            };
            let at = At::line()
                .at_most(most)
                .with(Dir::Agent, Some(before), "the one before");
            let message = String::from("system/init comes again");
            notes.add(Key::InitOnce.rule(), at, message);
        }
        self.init = Some(place);
        if each {
            self.begin(place);
        }
    }

    /// A record that belongs to a turn.
    pub(super) fn record(&mut self, each: bool, place: Place, most: Severity, notes: &mut Notes) {
        self.quiet(most, notes);
        if self.unsure {
            return;
        }
        if self.told {
            self.owed(most, "another turn goes on", notes);
        }
        if self.open.is_none() {
            if each {
                if self.init.is_none() {
                    let message = String::from("no system/init stands before it");
                    notes.add(Key::TurnInit.rule(), At::line(), message);
                }
            } else if self.told {
                let message = String::from("no turn is open");
                notes.add(Key::OutsideTurn.rule(), At::line().at_most(most), message);
            }
            self.open = Some(place);
            // What is open is known no better.
            self.state = None;
        }
    }

    /// A permission is asked for.
    pub(super) fn asks(&mut self, most: Severity, notes: &mut Notes) {
        self.announced = None;
        if self.tells() && self.state.is_some_and(|state| state != State::Waits) {
            let message = String::from("requires_action wasn't said");
            notes.add(Key::AskState.rule(), At::line().at_most(most), message);
        }
    }

    /// A call has its result, and its permission was answered. `open`: another one is asked for, as far as the agent has
    /// read.
    pub(super) fn called(&mut self, open: bool, most: Severity, notes: &mut Notes) {
        if !open {
            self.waits(most, notes);
        }
    }

    fn waits(&mut self, most: Severity, notes: &mut Notes) {
        if self.state == Some(State::Waits) && !self.withdrew && self.tells() {
            let message = String::from("running wasn't said when the last permission was answered");
            notes.add(Key::RunningBack.rule(), At::line().at_most(most), message);
            self.state = Some(State::Running);
        }
    }

    /// A `result`. `counts`: it says that something was done. `answered`: no permission is open.
    pub(super) fn result(
        &mut self,
        counts: bool,
        answered: bool,
        place: Place,
        most: Severity,
        notes: &mut Notes,
    ) -> Ends {
        self.quiet(most, notes);
        if self.local && (!counts || self.open.is_none()) {
            self.local = false;
            if self.open.is_none() {
                self.owes_idle = self.tells().then_some(place);
            }
            return Ends::Command;
        }
        if self.unsure {
            // Whatever was open is over.
            self.over();
            self.open = None;
            return Ends::Unknown;
        }
        if self.open.is_none() {
            let message = String::from("no turn is open");
            notes.add(Key::ResultOutside.rule(), At::line().at_most(most), message);
        }
        if self.compacting {
            let message = String::from("the turn ends within a compaction");
            notes.add(Key::Compacting.rule(), At::line(), message);
        }
        if answered {
            self.waits(most, notes);
        }
        self.owed(most, "another result comes", notes);
        if self.told {
            self.owes_idle = Some(place);
        }
        self.open = None;
        Ends::Turn
    }

    /// A turn is over: what belongs to it alone is forgotten.
    pub(super) fn over(&mut self) {
        self.compacting = false;
        self.local = false;
        self.withdrew = false;
        self.interrupted = None;
        self.user_records = 0;
        self.denied.clear();
    }

    /// In claude each turn has its own.
    pub(super) fn wants_init(&mut self) {
        self.init = None;
    }

    pub(super) fn denied(&mut self, call: u64) {
        if self.denied.len() < MOST_DENIED {
            self.denied.push(call);
        }
    }

    /// `system/status`
    pub(super) fn status(&mut self, status: Option<&str>) {
        let before = core::mem::replace(&mut self.compacting, status == Some("compacting"));
        self.compacted |= before;
    }

    /// `system/compact_boundary`
    pub(super) fn boundary(&mut self, most: Severity, notes: &mut Notes) {
        let compacted = core::mem::take(&mut self.compacted);
        if !compacted && !self.compacting && !self.unsure {
            let message = String::from("nothing was said to be compacted");
            notes.add(Key::Compacting.rule(), At::line().at_most(most), message);
        }
    }

    /// The process has left by itself.
    pub(super) fn leaves(&mut self, most: Severity, notes: &mut Notes) {
        if self.unsure {
            return;
        }
        let message = match (self.open, self.state) {
            (Some(_), _) => Some("a turn is open"),
            (None, Some(State::Waits)) => Some("it is said to wait for the host"),
            (None, Some(State::Idle | State::Running) | None) => None,
        };
        if let Some(message) = message {
            let at = At::line()
                .at_most(most)
                .with(Dir::Agent, self.open, "the turn");
            notes.add(Key::OpenAtEnd.rule(), at, String::from(message));
        }
        self.owed(most, "the process leaves", notes);
    }
}
