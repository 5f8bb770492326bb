//! An observer: reads what a host and an agent say to each other, and finds where they break the contract.
//!
//! It changes nothing and answers nothing. It can be hung between any two ends, or fed from a file. Three promises:
//! nothing that it reads makes it fail or panic; what the documents leave in doubt is [`Severity::Info`] at most,
//! because a false alarm is worse than a miss; and its memory doesn't grow with the stream.
//!
//! Rules are data ([`Rule`]): each cites the contract. A rule that can't be judged, because a direction is missing or
//! nobody told the exit code, is reported as skipped, with the reason ([`Observer::verdicts`]).

mod catalogue;
mod ids;
mod read;
mod requests;
mod spot;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use super::spec::Spec;
use crate::frame::{Place, Split, SplitKind, is_blank};
use crate::vocab::laws::Guarantee;

pub(super) use catalogue::catalogue;
pub(super) use ids::{Ids, Known, hash};
pub(crate) use read::Buffers;
pub use read::{ReadLine, Text};
pub(super) use requests::{Cancelled, Requests};
pub(super) use spot::{at_fault, at_field, at_member, is_depth, is_utf8, span};

/// Which way a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// From the host to the agent: its standard input, `in` in a recording.
    Host,
    /// From the agent to the host: its standard output, `out` in a recording.
    Agent,
}

impl Dir {
    /// The word that recordings use.
    pub const fn word(self) -> &'static str {
        match self {
            Dir::Host => "in",
            Dir::Agent => "out",
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing: the documents leave it open, or the peer is bound to refuse it.
    Info,
    /// Against the contract, with a reading that excuses it.
    Warning,
    /// The contract is broken.
    Error,
}

impl Severity {
    /// One word.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What must be seen for a rule to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Lines of the host.
    Host,
    /// Lines of the agent.
    Agent,
    /// Lines of both.
    Both,
    /// Lines of the agent, and its exit code.
    Exit,
}

/// One rule of a protocol's catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name for good: the guarantee that it belongs to, and a letter.
    pub id: &'static str,
    /// The worst that a finding of it can be.
    pub severity: Severity,
    /// What must be seen to judge it.
    pub needs: Needs,
    /// The rule in a few words.
    pub title: &'static str,
    /// What is wrong when it is broken, and when the finding is milder than the rule.
    pub message: &'static str,
    /// The section of the contract that says so.
    pub cite: &'static str,
}

/// A guarantee that no line shows, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The guarantee.
    pub id: &'static str,
    /// Why no rule can judge it.
    pub why: &'static str,
}

/// Another line that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its direction.
    pub dir: Dir,
    /// Where it stands.
    pub place: Place,
    /// What it did.
    pub what: &'static str,
}

/// Where the contract was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is here; never worse than the rule's.
    pub severity: Severity,
    /// The direction of the line.
    pub dir: Dir,
    /// Where the line stands; `None` if the finding is about the end of the stream.
    pub place: Option<Place>,
    /// The bytes of the line that it is about; empty at 0 for the whole line.
    pub span: Range<usize>,
    /// The member of the line, as a JSON pointer (RFC 6901); empty for the whole line.
    pub pointer: String,
    /// What is wrong here, in one sentence.
    pub message: String,
    /// Other lines that show it.
    pub related: Vec<Related>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "line {}", place.line)?,
            None => f.write_str("end")?,
        }
        write!(f, " ({}", self.dir.word())?;
        if !self.pointer.is_empty() {
            write!(f, " {}", self.pointer)?;
        }
        write!(
            f,
            "): {} [{}] {}",
            self.severity, self.rule.id, self.message
        )
    }
}

/// Which directions are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Only what the host says.
    Host,
    /// Only what the agent says.
    Agent,
    /// Both.
    Both,
}

impl Sides {
    /// Whether lines of this direction are observed.
    pub const fn has(self, dir: Dir) -> bool {
        match (self, dir) {
            (Sides::Both, _) | (Sides::Host, Dir::Host) | (Sides::Agent, Dir::Agent) => true,
            (Sides::Host, Dir::Agent) | (Sides::Agent, Dir::Host) => false,
        }
    }
}

/// What a line turned out to be, for a verdict on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// `cmd`, `event` or another word of the protocol; empty if the line is none of its lines.
    pub class: &'static str,
    /// Its own name, if the contract knows it.
    pub name: &'static str,
}

impl Label {
    /// A line that could not be read.
    pub const NONE: Label = Label {
        class: "",
        name: "",
    };
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.class, self.name) {
            ("", "") => f.write_str("unknown"),
            ("", word) | (word, "") => f.write_str(word),
            (class, name) => write!(f, "{class} {name}"),
        }
    }
}

/// What was seen, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines of the host that aren't blank.
    pub host_lines: u64,
    /// Lines of the agent that aren't blank.
    pub agent_lines: u64,
    /// Turns that ended.
    pub turns: u64,
    /// Approvals that were asked for.
    pub approvals: u64,
    /// Tool calls that began.
    pub tool_calls: u64,
    /// The length in bytes of the longest line, and its number.
    pub longest: (u64, u64),
}

/// A contract that can be observed: whether or not there is a Server or a Client that speaks it.
pub trait Observed: Sized + fmt::Debug + Clone + PartialEq + Eq + 'static {
    /// The state of an observer.
    type Watch: Watch + fmt::Debug;
    /// What the protocol promises, in the order of their numbers: each has rules, or a reason in
    /// [`UNSEEN`](Observed::UNSEEN).
    const GUARANTEES: &'static [Guarantee];
    /// The catalogue.
    const RULES: &'static [Rule];
    /// Guarantees that no line shows.
    const UNSEEN: &'static [Unseen];
    /// Every line, with its fields.
    const SPEC: &'static Spec;
    /// The longest line of a host that its reader takes, in bytes of content: what is said of a line of which only the
    /// length is known.
    const HOST_LINE_MAX: usize;

    /// Whose line this is, if the line itself tells.
    fn whose(line: &ReadLine<'_, '_>) -> Option<Dir>;
}

/// The part of an observer that is the protocol. Nothing that it is fed may make it panic.
pub trait Watch: Sized {
    /// Its settings.
    type Config;
    /// A watch at the start of both streams.
    fn new(config: Self::Config) -> Self;
    /// A line that isn't blank; `None` as direction: a line of the one or the other, nobody knows.
    fn line(
        &mut self,
        sides: Sides,
        dir: Option<Dir>,
        line: &ReadLine<'_, '_>,
        notes: &mut Notes,
    ) -> Label;
    /// The end of a direction.
    fn end(&mut self, sides: Sides, dir: Dir, notes: &mut Notes);
    /// The agent's process has ended: with this code, or by a signal if it is negative.
    fn exit(&mut self, sides: Sides, code: i64, notes: &mut Notes);
    /// The end of all: judges what is still owed.
    fn finish(&mut self, sides: Sides, notes: &mut Notes);
    /// Why this rule couldn't be judged, though its directions were seen.
    fn skipped(&self, rule: &Rule) -> Option<&'static str>;
}

/// The most findings that one line gives.
const MOST_OF_ONE: usize = 32;

/// Where a [`Watch`] puts its findings.
#[derive(Debug, Default)]
pub struct Notes {
    found: VecDeque<Finding>,
    /// Findings of the current line.
    count: usize,
    /// The current line.
    here: Option<(Dir, Place)>,
    /// Numbers for the summary.
    pub tally: Tally,
}

impl Notes {
    /// A finding on the current line; at its end if there is none.
    pub fn add(&mut self, rule: &'static Rule, at: At, message: String) -> &mut Self {
        let dir = self.here.map_or(Dir::Agent, |(dir, _)| dir);
        self.push(Finding {
            rule,
            severity: at.severity.unwrap_or(rule.severity).min(rule.severity),
            dir,
            place: self.here.map(|(_, place)| place),
            span: at.span,
            pointer: at.pointer,
            message,
            related: at.related,
        })
    }

    /// A finding on an earlier line.
    pub fn add_for(
        &mut self,
        rule: &'static Rule,
        dir: Dir,
        place: Option<Place>,
        at: At,
        message: String,
    ) -> &mut Self {
        self.push(Finding {
            rule,
            severity: at.severity.unwrap_or(rule.severity).min(rule.severity),
            dir,
            place,
            span: at.span,
            pointer: at.pointer,
            message,
            related: at.related,
        })
    }

    /// Takes findings about something that isn't the text of the current line, but came with it.
    pub(super) fn adopt(&mut self, inner: Notes) {
        for mut finding in inner.found {
            finding.span = 0..0;
            finding.place = self.here.map(|(_, place)| place);
            finding.dir = self.here.map_or(finding.dir, |(dir, _)| dir);
            self.push(finding);
        }
        self.tally.turns += inner.tally.turns;
        self.tally.approvals += inner.tally.approvals;
        self.tally.tool_calls += inner.tally.tool_calls;
    }

    fn push(&mut self, finding: Finding) -> &mut Self {
        self.count += 1;
        if self.count <= MOST_OF_ONE {
            self.found.push_back(finding);
        }
        self
    }
}

/// Where in its line a finding is, and how bad.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The bytes of the line.
    pub span: Range<usize>,
    /// The member, as a JSON pointer.
    pub pointer: String,
    /// If it is milder than the rule.
    pub severity: Option<Severity>,
    /// Other lines.
    pub related: Vec<Related>,
}

impl At {
    /// The whole line.
    pub fn line() -> Self {
        Self::default()
    }

    /// A top-level member of the line.
    pub fn member(name: &str, span: Range<usize>) -> Self {
        let mut pointer = String::with_capacity(name.len() + 1);
        push_pointer(&mut pointer, name);
        At {
            span,
            pointer,
            ..Self::default()
        }
    }

    /// No worse than this.
    #[must_use]
    pub fn at_most(mut self, severity: Severity) -> Self {
        self.severity = Some(severity);
        self
    }

    /// With another line.
    #[must_use]
    pub fn with(mut self, dir: Dir, place: Option<Place>, what: &'static str) -> Self {
        if let Some(place) = place {
            self.related.push(Related { dir, place, what });
        }
        self
    }
}

/// Appends one step of a JSON pointer.
pub fn push_pointer(pointer: &mut String, step: &str) {
    pointer.push('/');
    for char in step.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Watches one session, both directions or one.
///
/// ```
/// use turnwire::frame::{Place, Split, SplitKind};
/// use turnwire::protocol::observer::{Dir, Observer, Sides};
/// use turnwire::protocol::openmax::Openmax;
///
/// let mut observer = Observer::<Openmax>::new(Default::default(), Sides::Agent);
/// let line = br#"{"session_id":"s","type":"token","text":"hi"}"#;
/// let place = Place { line: 1, offset: 0 };
/// observer.handle_line(Dir::Agent, Split { place, what: SplitKind::Line(line) });
/// let finding = observer.poll_finding().expect("an agent says hello first");
/// assert_eq!(finding.rule.id, "OM-01.a");
/// ```
#[derive(Debug)]
pub struct Observer<P: Observed> {
    watch: P::Watch,
    sides: Sides,
    notes: Notes,
    buffers: Buffers,
    exit: bool,
    finished: bool,
}

impl<P: Observed> Observer<P> {
    /// An observer at the start of both streams.
    pub fn new(config: <P::Watch as Watch>::Config, sides: Sides) -> Self {
        Observer {
            watch: P::Watch::new(config),
            sides,
            notes: Notes::default(),
            buffers: Buffers::default(),
            exit: false,
            finished: false,
        }
    }

    /// The directions it was told, or found, to be seen.
    pub fn sides(&self) -> Sides {
        self.sides
    }

    /// Changes the directions, for a reader that finds out only now: what came so far is judged as it was.
    pub fn set_sides(&mut self, sides: Sides) {
        self.sides = sides;
    }

    /// A line, or what stands in its place, as soon as it is written (host) or read (agent). Blank ones are skipped.
    pub fn handle_line(&mut self, dir: Dir, line: Split<'_>) -> Label {
        if let SplitKind::Line(bytes) | SplitKind::Tail(bytes) = line.what
            && is_blank(bytes)
        {
            return Label::NONE;
        }
        let line = ReadLine::new(&line, &mut self.buffers);
        Self::take(
            &mut self.watch,
            &mut self.notes,
            self.sides,
            Some(dir),
            &line,
        )
    }

    /// A line that isn't blank and that a reader has read, to see whose it is; `None` if that can't be seen. One
    /// stream has one reader with one set of buffers: what they remember from line to line is relied on.
    pub(crate) fn handle_read(&mut self, dir: Option<Dir>, line: &ReadLine<'_, '_>) -> Label {
        Self::take(&mut self.watch, &mut self.notes, self.sides, dir, line)
    }

    fn take(
        watch: &mut P::Watch,
        notes: &mut Notes,
        sides: Sides,
        dir: Option<Dir>,
        line: &ReadLine<'_, '_>,
    ) -> Label {
        let tally = &mut notes.tally;
        match dir {
            Some(Dir::Host) => tally.host_lines += 1,
            Some(Dir::Agent) | None => tally.agent_lines += 1,
        }
        if line.bytes > tally.longest.0 {
            tally.longest = (line.bytes, line.place.line);
        }
        notes.count = 0;
        notes.here = Some((dir.unwrap_or(Dir::Agent), line.place));
        let label = watch.line(sides, dir, line, notes);
        notes.here = None;
        label
    }

    /// The end of a direction.
    pub fn handle_end(&mut self, dir: Dir) {
        self.notes.count = 0;
        self.watch.end(self.sides, dir, &mut self.notes);
    }

    /// The agent's process has ended: with this code, or by a signal if it is negative.
    pub fn handle_exit(&mut self, code: i64) {
        self.notes.count = 0;
        self.exit = true;
        self.watch.exit(self.sides, code, &mut self.notes);
    }

    /// Nothing more comes: judges what is still owed. Only the first call counts.
    pub fn finish(&mut self) {
        if !self.finished {
            self.finished = true;
            self.notes.count = 0;
            self.watch.finish(self.sides, &mut self.notes);
        }
    }

    /// The next finding, in the order of the lines. Take them out after each line.
    pub fn poll_finding(&mut self) -> Option<Finding> {
        self.notes.found.pop_front()
    }

    /// What was seen, in numbers.
    pub fn tally(&self) -> &Tally {
        &self.notes.tally
    }

    /// Every rule, with the reason if it wasn't judged.
    pub fn verdicts(
        &self,
    ) -> impl Iterator<Item = (&'static Rule, Option<&'static str>)> + use<'_, P> {
        P::RULES.iter().map(|rule| (rule, self.skipped(rule)))
    }

    fn skipped(&self, rule: &Rule) -> Option<&'static str> {
        const NO_HOST: &str = "lines of the host weren't observed";
        const NO_AGENT: &str = "lines of the agent weren't observed";
        const NO_EXIT: &str = "the exit code isn't known";
        let (host, agent) = (self.sides.has(Dir::Host), self.sides.has(Dir::Agent));
        match rule.needs {
            Needs::Host | Needs::Both if !host => Some(NO_HOST),
            Needs::Agent | Needs::Both | Needs::Exit if !agent => Some(NO_AGENT),
            Needs::Exit if !self.exit => Some(NO_EXIT),
            Needs::Host | Needs::Agent | Needs::Both | Needs::Exit => self.watch.skipped(rule),
        }
    }
}
