//! Checking a stream that was recorded: the reader behind `turnwire check`, without any I/O.
//!
//! It takes bytes as they come and reads them as lines of one direction, of both, or as a recording: one JSON object a
//! line, with `dir` (`in`: from the host; `out`: from the agent), `line` (the text) or `line_b64` (the bytes), and
//! `exit` rows with a `code`. Rows of any other kind are metadata. Memory is that of the longest line.

mod row;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::frame::{LineRules, LineSplitter, OverLong, Place, Split, SplitKind, Tail, is_blank};
use crate::json::Members;
use crate::protocol::observer::{
    Buffers, Dir, Finding, Label, Observed, Observer, ReadLine, Rule, Severity, Sides, Tally, Watch,
};

use row::{Row, is_row};

/// Whose lines a stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    /// To be found out: a line with `cmd` is the host's. Both directions are taken to be there only if a line of the
    /// host comes before the first event of the agent.
    #[default]
    Guess,
    /// The host's.
    Host,
    /// The agent's.
    Agent,
    /// Both, mixed.
    Both,
}

/// What a check gives, in the order of the stream.
#[derive(Debug)]
pub enum Checked<'a> {
    /// A line that isn't blank, with the worst finding on it. Its findings follow.
    Line {
        /// Whose it is.
        dir: Dir,
        /// Where it stands: in a recording, its row.
        place: Place,
        /// What it is.
        label: Label,
        /// Its worst finding.
        worst: Option<Severity>,
    },
    /// A finding, with the text of its line, if the line is at hand.
    Finding {
        /// The finding.
        finding: Finding,
        /// The line.
        line: Option<&'a [u8]>,
        /// It stands in a row of a recording, so it isn't the text of the file's line.
        in_row: bool,
    },
    /// A row of a recording that can't be read as one.
    BadRow {
        /// Where it stands.
        place: Place,
        /// Why.
        why: String,
    },
}

/// The end result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Lines, turns, approvals, calls.
    pub tally: Tally,
    /// Findings of severity error, warning, and info.
    pub errors: u64,
    /// Warnings.
    pub warnings: u64,
    /// Notes.
    pub infos: u64,
    /// Which directions were judged.
    pub sides: Sides,
    /// Rules that were judged.
    pub judged: usize,
    /// Rules that weren't, and why.
    pub skipped: Vec<(&'static Rule, &'static str)>,
    /// Rows of a recording that couldn't be read.
    pub bad_rows: u64,
}

impl Summary {
    /// Whether there is a finding of severity error.
    pub fn is_broken(&self) -> bool {
        self.errors > 0
    }
}

/// Where the receiver of a check's results is called.
type Sink<'s> = dyn FnMut(Checked<'_>) + 's;

/// The most bytes of host lines that wait until it is known whether an agent answers.
const MOST_HELD: usize = 1 << 20;

/// Lines need no limit of their own here.
const RULES: LineRules = LineRules {
    max_bytes: isize::MAX as usize,
    over: OverLong::Skip,
    tail: Tail::Refuse,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Lines,
    Recording,
}

/// A line of the host that waits, with its findings.
#[derive(Debug)]
struct Held {
    place: Place,
    label: Label,
    text: Vec<u8>,
    findings: Vec<Finding>,
}

/// Checks one stream.
///
/// ```
/// use turnwire::check::{Check, Checked, From};
/// use turnwire::protocol::openmax::Openmax;
///
/// let mut check = Check::<Openmax>::new(Default::default(), From::Guess);
/// let mut rules = Vec::new();
/// let mut sink = |checked: Checked<'_>| {
///     if let Checked::Finding { finding, .. } = checked {
///         rules.push(finding.rule.id);
///     }
/// };
/// check.read(b"{\"cmd\":\"user\",\"text\":\"hi\"}\n{\"cmd\":\"reboot\"}\n", &mut sink);
/// check.end(&mut sink);
/// assert_eq!(rules, ["OM-06.a"]);
/// assert!(check.summary().is_broken());
/// ```
#[derive(Debug)]
pub struct Check<P: Observed> {
    observer: Observer<P>,
    reader: Reader<P>,
    buffers: Buffers,
    splitter: LineSplitter,
}

/// All but the splitter and the buffers, whose lines are lent while this works.
#[derive(Debug)]
struct Reader<P> {
    from: From,
    form: Form,
    members: Members,
    limit: usize,
    /// An event of the agent was seen.
    begun: bool,
    seen_agent: bool,
    held: Vec<Held>,
    held_bytes: usize,
    counts: [u64; 3],
    bad_rows: u64,
    protocol: core::marker::PhantomData<P>,
}

impl<P: Observed> Check<P> {
    /// A check at the start of a stream.
    pub fn new(config: <P::Watch as Watch>::Config, from: From) -> Self {
        let sides = match from {
            From::Guess | From::Agent => Sides::Agent,
            From::Host => Sides::Host,
            From::Both => Sides::Both,
        };
        Check {
            observer: Observer::new(config, sides),
            reader: Reader {
                from,
                form: Form::Unknown,
                members: Members::new(),
                limit: P::HOST_LINE_MAX,
                begun: false,
                seen_agent: false,
                held: Vec::new(),
                held_bytes: 0,
                counts: [0; 3],
                bad_rows: 0,
                protocol: core::marker::PhantomData,
            },
            buffers: Buffers::default(),
            splitter: LineSplitter::new(RULES),
        }
    }

    /// Takes a piece of the stream.
    pub fn read(&mut self, mut chunk: &[u8], sink: &mut Sink<'_>) {
        while let Some(split) = self.splitter.next(&mut chunk) {
            let to = &mut To {
                observer: &mut self.observer,
                sink,
            };
            self.reader.line(&split, &mut self.buffers, to);
        }
    }

    /// The end of the stream.
    pub fn end(&mut self, sink: &mut Sink<'_>) {
        if let Some(split) = self.splitter.finish() {
            let to = &mut To {
                observer: &mut self.observer,
                sink,
            };
            self.reader.line(&split, &mut self.buffers, to);
        }
        self.reader.release(None, sink);
        self.observer.handle_end(Dir::Agent);
        self.observer.finish();
        while let Some(finding) = self.observer.poll_finding() {
            self.reader.count(&finding);
            sink(Checked::Finding {
                finding,
                line: None,
                in_row: false,
            });
        }
    }

    /// The result so far; after [`end`](Check::end), of all.
    pub fn summary(&self) -> Summary {
        let [infos, warnings, errors] = self.reader.counts;
        let mut judged = 0;
        let mut skipped = Vec::new();
        for (rule, why) in self.observer.verdicts() {
            match why {
                None => judged += 1,
                Some(why) => skipped.push((rule, why)),
            }
        }
        Summary {
            tally: *self.observer.tally(),
            errors,
            warnings,
            infos,
            sides: self.observer.sides(),
            judged,
            skipped,
            bad_rows: self.reader.bad_rows,
        }
    }
}

/// Who hears of a line, and who of what is found.
struct To<'a, 's, P: Observed> {
    observer: &'a mut Observer<P>,
    sink: &'a mut Sink<'s>,
}

impl<P: Observed> Reader<P> {
    /// A line of the file.
    fn line(&mut self, split: &Split<'_>, buffers: &mut Buffers, to: &mut To<'_, '_, P>) {
        let (SplitKind::Line(bytes) | SplitKind::Tail(bytes)) = split.what else {
            return;
        };
        if is_blank(bytes) {
            return;
        }
        if self.form == Form::Unknown {
            self.form = if is_row(bytes, &mut self.members) {
                Form::Recording
            } else {
                Form::Lines
            };
        }
        if self.form == Form::Recording {
            return self.row(bytes, split.place, buffers, to);
        }
        let dir = match self.from {
            From::Host => Some(Dir::Host),
            From::Agent => Some(Dir::Agent),
            From::Both | From::Guess => None,
        };
        self.feed(dir, split, buffers, to);
    }

    /// A row of a recording.
    fn row(&mut self, bytes: &[u8], place: Place, buffers: &mut Buffers, to: &mut To<'_, '_, P>) {
        let mut members = core::mem::take(&mut self.members);
        match Row::read(bytes, &mut members) {
            Ok(Row::Line { dir, text }) => {
                // A write of the host can hold several lines; its last newline may be implied.
                let text = text.strip_suffix(b"\n").unwrap_or(&text);
                for line in text.split(|&byte| byte == b'\n') {
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    if !is_blank(line) {
                        let what = SplitKind::Line(line);
                        self.feed(Some(dir), &Split { place, what }, buffers, to);
                    }
                }
            }
            Ok(Row::Long { dir, bytes }) => {
                let limit = self.limit;
                let what = SplitKind::TooLong { bytes, limit };
                self.judge(dir, &Split { place, what }, b"", buffers, to);
            }
            Ok(Row::HostEnd) => to.observer.handle_end(Dir::Host),
            Ok(Row::Exit { code }) => to.observer.handle_exit(code),
            Ok(Row::Other) => {}
            Err(why) => {
                self.bad_rows += 1;
                (to.sink)(Checked::BadRow { place, why });
            }
        }
        self.members = members;
    }

    /// A line that isn't blank; of the host or the agent, or that must be found out.
    fn feed(
        &mut self,
        dir: Option<Dir>,
        split: &Split<'_>,
        buffers: &mut Buffers,
        to: &mut To<'_, '_, P>,
    ) {
        let (SplitKind::Line(bytes) | SplitKind::Tail(bytes)) = split.what else {
            return;
        };
        if dir == Some(Dir::Host) && bytes.len() > self.limit {
            return self.judge(Dir::Host, &self.too_long(split, bytes), bytes, buffers, to);
        }
        let line = ReadLine::new(split, buffers);
        let dir = dir.or_else(|| whose::<P>(&line, to.observer.sides()));
        if dir == Some(Dir::Host) && bytes.len() > self.limit {
            return self.judge(Dir::Host, &self.too_long(split, bytes), bytes, buffers, to);
        }
        if let Some(dir) = dir {
            self.before(dir, to);
        }
        let label = to.observer.handle_read(dir, &line);
        self.after(dir.unwrap_or(Dir::Agent), split.place, label, bytes, to);
    }

    /// The same line as its receiver takes it.
    fn too_long(&self, split: &Split<'_>, bytes: &[u8]) -> Split<'static> {
        Split {
            place: split.place,
            what: SplitKind::TooLong {
                bytes: bytes.len() as u64,
                limit: self.limit,
            },
        }
    }

    /// Hands a line over whose side is known.
    fn judge(
        &mut self,
        dir: Dir,
        split: &Split<'_>,
        shown: &[u8],
        buffers: &mut Buffers,
        to: &mut To<'_, '_, P>,
    ) {
        self.before(dir, to);
        let line = ReadLine::new(split, buffers);
        let label = to.observer.handle_read(Some(dir), &line);
        self.after(dir, split.place, label, shown, to);
    }

    /// Finds out which directions there are.
    fn before(&mut self, dir: Dir, to: &mut To<'_, '_, P>) {
        if self.from != From::Guess {
            return;
        }
        match dir {
            Dir::Host if self.begun => {}
            Dir::Host if self.seen_agent => to.observer.set_sides(Sides::Both),
            Dir::Host => to.observer.set_sides(Sides::Host),
            Dir::Agent => {
                self.seen_agent = true;
                if to.observer.sides() == Sides::Host {
                    to.observer.set_sides(Sides::Both);
                    self.release(Some(Severity::Info), to.sink);
                }
            }
        }
    }

    fn after(&mut self, dir: Dir, place: Place, label: Label, line: &[u8], to: &mut To<'_, '_, P>) {
        if dir == Dir::Agent && label.class == "event" {
            self.begun = true;
        }
        let waits = self.from == From::Guess && !self.seen_agent && dir == Dir::Host;
        let findings: Vec<Finding> = core::iter::from_fn(|| to.observer.poll_finding()).collect();
        if !waits {
            return self.give(dir, place, label, line, findings, to.sink);
        }
        self.held_bytes += line.len() + 256;
        self.held.push(Held {
            place,
            label,
            text: line.to_owned(),
            findings,
        });
        if self.held_bytes > MOST_HELD {
            self.release(None, to.sink);
        }
    }

    /// Gives what was held; none of it worse than this.
    fn release(&mut self, most: Option<Severity>, sink: &mut Sink<'_>) {
        self.held_bytes = 0;
        for mut held in core::mem::take(&mut self.held) {
            if let Some(most) = most {
                for finding in &mut held.findings {
                    finding.severity = finding.severity.min(most);
                }
            }
            let Held {
                place,
                label,
                text,
                findings,
            } = held;
            self.give(Dir::Host, place, label, &text, findings, sink);
        }
    }

    fn give(
        &mut self,
        dir: Dir,
        place: Place,
        label: Label,
        line: &[u8],
        findings: Vec<Finding>,
        sink: &mut Sink<'_>,
    ) {
        sink(Checked::Line {
            dir,
            place,
            label,
            worst: findings.iter().map(|finding| finding.severity).max(),
        });
        for finding in findings {
            self.count(&finding);
            sink(Checked::Finding {
                finding,
                line: Some(line),
                in_row: self.form == Form::Recording,
            });
        }
    }

    fn count(&mut self, finding: &Finding) {
        let [infos, warnings, errors] = &mut self.counts;
        *match finding.severity {
            Severity::Info => infos,
            Severity::Warning => warnings,
            Severity::Error => errors,
        } += 1;
    }
}

/// Whose line this is; `None` if it can't be told.
fn whose<P: Observed>(line: &ReadLine<'_, '_>, sides: Sides) -> Option<Dir> {
    match (P::whose(line), sides) {
        (Some(Dir::Host), _) => Some(Dir::Host),
        (_, Sides::Agent) | (Some(Dir::Agent), _) => Some(Dir::Agent),
        (None, Sides::Host) => Some(Dir::Host),
        (None, Sides::Both) => None,
    }
}
