//! Actions as text, and back.
//!
//! An action is one line: a sign that says whose it is, and words. `>` is the host, `+` the agent's surroundings
//! (model, tools, hooks, disk), `@` time.

use std::fmt;

use turnwire::vocab::*;

use super::*;

/// A line that says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its number from 1; 0 for a line alone.
    pub line: usize,
    /// What was expected.
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Unreadable {}

/// A value that is one word.
trait Word: Clone + PartialEq + Sized + 'static {
    const WORDS: &'static [(&'static str, Self)];

    fn word(&self) -> &'static str {
        let mut all = Self::WORDS.iter();
        all.find(|(_, value)| value == self)
            .map_or("?", |(word, _)| word)
    }

    fn read(text: &str) -> Option<Self> {
        let mut all = Self::WORDS.iter();
        all.find(|(word, _)| *word == text)
            .map(|(_, value)| value.clone())
    }
}

macro_rules! words {
    ($($kind:ty { $($value:ident $word:literal)* })*) => { $(
        impl Word for $kind {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),*];
        }
    )* };
}

words! {
    Answering {
        Yes "yes" Changed "changed" Granted "granted" No "no" Interrupt "interrupt" Wrong "wrong" Error "error" Gone "gone"
    }
    Tool {
        Read "read" Write "write" Denied "denied" Asked "asked" Missing "missing" Broken "broken" Host "host"
        Choice "choice" Capture "capture" Finish "finish" UriRead "uri-read" UriWrite "uri-write"
    }
    ToolNews {
        Progress "progress" File "file" Ok "ok" Failed "failed" TimedOut "timed-out" EndsTurn "ends-turn"
        Network "network" Detaches "detaches"
    }
    Judging { Pass "pass" Allow "allow" Deny "deny" Ask "ask" Fails "fails" Adds "adds" Grants "grants" Interrupts "interrupts" Stops "stops" }
    FailureKind {
        Auth "auth" Billing "billing" RateLimit "rate-limit" Overloaded "overloaded" InvalidRequest "invalid-request"
        Server "server" Transport "transport" StreamCut "stream-cut" ContextFull "context-full"
        MaxOutput "max-output" Tool "tool" Capture "capture" Hook "hook" Store "store" Setup "setup" Input "input"
        Internal "internal"
    }
    Rank { Next "next" Later "later" }
    IdleSteer { Start "start" Drop "drop" DropUnlessQueued "drop-unless-queued" }
    QueueFate { Keep "keep" Run "run" Drop "drop" }
    Drain { One "one" All "all" }
    Interrupting { Immediate "immediate" Wait "wait" }
}

impl Word for bool {
    const WORDS: &'static [(&'static str, Self)] = &[("yes", true), ("no", false)];
}

const MODES: [(&str, ApprovalMode); 6] = [
    ("auto", ApprovalMode::Auto),
    ("accept-edits", ApprovalMode::AcceptEdits),
    ("ask", ApprovalMode::Ask),
    ("readonly", ApprovalMode::ReadOnly),
    ("plan", ApprovalMode::Plan),
    ("never", ApprovalMode::Never),
];

/// JSON text, so that anything can stand in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One line, without its newline.
pub fn print_action(action: &Action) -> String {
    match action {
        Action::Prompt(deliver) => format!("> prompt {}", print_deliver(deliver)),
        Action::Repeat(pick) => format!("> repeat {pick}"),
        Action::Withdraw(pick) => format!("> withdraw {pick}"),
        Action::Promote(pick) => format!("> promote {pick}"),
        Action::Cancel(what) => format!("> cancel {}", print_cancel(what)),
        Action::Reply(pick, how) => format!("> reply {pick} {}", how.word()),
        Action::LateReply(pick) => format!("> late-reply {pick}"),
        Action::Set(setting) => format!("> set {}", print_setting(setting)),
        Action::Compact => "> compact".to_owned(),
        Action::Rewind(pick, dry_run) => format!("> rewind {pick} {}", dry_run.word()),
        Action::Other(pick) => format!("> other {pick}"),
        Action::Own(pick) => format!("> own {pick}"),
        Action::Close(drain) => format!("> close {}", if *drain { "drain" } else { "now" }),
        Action::Model(pick, piece) => format!("+ model {pick} {}", print_piece(piece)),
        Action::Answer(pick, calls) => {
            let calls: String = calls
                .iter()
                .map(|tool| format!(" {}", tool.word()))
                .collect();
            format!("+ answer {pick}{calls}")
        }
        Action::Tool(pick, news) => format!("+ tool {pick} {}", news.word()),
        Action::Hook(pick, how) => format!("+ hook {pick} {}", how.word()),
        Action::Store(pick, ok) => format!("+ store {pick} {}", ok.word()),
        Action::Late(pick) => format!("+ late {pick}"),
        Action::Settle(pick) => format!("+ settle {pick}"),
        Action::Twice(pick) => format!("+ twice {pick}"),
        Action::Fault => "+ fault".to_owned(),
        Action::Pass(us) => format!("@ pass {us}"),
        Action::Jump => "@ jump".to_owned(),
        Action::Skip(us) => format!("@ skip {us}"),
    }
}

fn print_deliver(deliver: &Deliver) -> String {
    match deliver {
        Deliver::IfIdle => "if-idle".to_owned(),
        Deliver::Queue(rank) => format!("queue {}", rank.word()),
        Deliver::Steer { idle } => format!("steer {}", idle.word()),
        Deliver::FollowUp => "follow-up".to_owned(),
        Deliver::Context => "context".to_owned(),
        Deliver::Preempt => "preempt".to_owned(),
    }
}

fn print_cancel(what: &CancelWhat) -> String {
    match what {
        CancelWhat::Turn { queue } => format!("turn {}", queue.word()),
        CancelWhat::TurnElseNextQueued => "turn-else-next".to_owned(),
        CancelWhat::Retry => "retry".to_owned(),
        CancelWhat::Compaction => "compaction".to_owned(),
        CancelWhat::Shell => "shell".to_owned(),
        CancelWhat::Job(job) => format!("job {}", job.0),
        CancelWhat::Run(run) => format!("run {}", run.0),
        CancelWhat::Everything => "everything".to_owned(),
    }
}

fn print_setting(setting: &Setting) -> String {
    let maybe = |text: &Option<Text>| match text {
        Some(text) => quoted(text),
        None => "default".to_owned(),
    };
    match setting {
        Setting::Approvals(ApprovalMode::Other(word)) => format!("approvals {}", quoted(word)),
        Setting::Approvals(mode) => {
            let word = MODES
                .iter()
                .find(|(_, known)| known == mode)
                .map_or("?", |(word, _)| word);
            format!("approvals {word}")
        }
        Setting::Model(model) => format!("model {}", maybe(model)),
        Setting::Thinking(level) => format!("thinking {}", maybe(level)),
        Setting::ThinkingBudget(Some(tokens)) => format!("thinking-budget {tokens}"),
        Setting::ThinkingBudget(None) => "thinking-budget default".to_owned(),
        Setting::SteerDrain(drain) => format!("steer-drain {}", drain.word()),
        Setting::FollowUpDrain(drain) => format!("follow-up-drain {}", drain.word()),
        Setting::Interrupting(how) => format!("interrupting {}", how.word()),
        Setting::AutoRetry(on) => format!("auto-retry {}", on.word()),
        Setting::AutoCompact(on) => format!("auto-compact {}", on.word()),
        Setting::Name(name) => format!("name {}", quoted(name)),
    }
}

fn print_piece(piece: &Piece) -> String {
    match piece {
        Piece::Alive(begins) => if *begins { "begin" } else { "alive" }.to_owned(),
        Piece::Text(text) => format!("text {}", quoted(text)),
        Piece::Thinking(text) => format!("thinking {}", quoted(text)),
        Piece::Call(tool) => format!("call {}", tool.word()),
        Piece::HalfCall => "half-call".to_owned(),
        Piece::Odd(which) => format!("odd {which}"),
        Piece::Usage(tokens) => format!("usage {tokens}"),
        Piece::Finish => "finish".to_owned(),
        Piece::End => "end".to_owned(),
        Piece::Failed(kind, reached, after) => {
            let reached = if *reached { "reached" } else { "unreached" };
            let after = after.map_or(String::new(), |us| format!(" after {us}"));
            format!("failed {} {reached}{after}", kind.word())
        }
    }
}

/// The action of a line of [`print_action`].
///
/// # Errors
/// [`Unreadable`] if it is none.
pub fn parse_action(line: &str) -> Result<Action, Unreadable> {
    let mut words = Words { rest: line };
    let action = words.action().ok_or_else(|| Unreadable {
        line: 0,
        why: format!("{line:?} is no action"),
    })?;
    match words.next() {
        None => Ok(action),
        Some(more) => Err(Unreadable {
            line: 0,
            why: format!("{more:?} is one word too many"),
        }),
    }
}

struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// The next word, up to a space.
    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn word<T: Word>(&mut self) -> Option<T> {
        T::read(self.next()?)
    }

    fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.next()?.parse().ok()
    }

    /// JSON text to the end of the line.
    fn text(&mut self) -> Option<String> {
        serde_json::from_str(std::mem::take(&mut self.rest).trim_start_matches(' ')).ok()
    }

    /// `default`, or JSON text.
    fn maybe(&mut self) -> Option<Option<Text>> {
        if self.rest.trim() == "default" {
            self.rest = "";
            return Some(None);
        }
        Some(Some(self.text()?.into()))
    }

    fn action(&mut self) -> Option<Action> {
        Some(match (self.next()?, self.next()?) {
            (">", "prompt") => Action::Prompt(self.deliver()?),
            (">", "repeat") => Action::Repeat(self.number()?),
            (">", "withdraw") => Action::Withdraw(self.number()?),
            (">", "promote") => Action::Promote(self.number()?),
            (">", "cancel") => Action::Cancel(self.cancel()?),
            (">", "reply") => Action::Reply(self.number()?, self.word()?),
            (">", "late-reply") => Action::LateReply(self.number()?),
            (">", "set") => Action::Set(self.setting()?),
            (">", "compact") => Action::Compact,
            (">", "rewind") => Action::Rewind(self.number()?, self.word()?),
            (">", "other") => Action::Other(self.number()?),
            (">", "own") => Action::Own(self.number()?),
            (">", "close") => match self.next()? {
                "drain" => Action::Close(true),
                "now" => Action::Close(false),
                _ => return None,
            },
            ("+", "model") => Action::Model(self.number()?, self.piece()?),
            ("+", "answer") => {
                let pick = self.number()?;
                let mut calls = Vec::new();
                while let Some(word) = self.next() {
                    calls.push(Tool::read(word)?);
                }
                Action::Answer(pick, calls)
            }
            ("+", "tool") => Action::Tool(self.number()?, self.word()?),
            ("+", "hook") => Action::Hook(self.number()?, self.word()?),
            ("+", "store") => Action::Store(self.number()?, self.word()?),
            ("+", "late") => Action::Late(self.number()?),
            ("+", "settle") => Action::Settle(self.number()?),
            ("+", "twice") => Action::Twice(self.number()?),
            ("+", "fault") => Action::Fault,
            ("@", "pass") => Action::Pass(self.number()?),
            ("@", "jump") => Action::Jump,
            ("@", "skip") => Action::Skip(self.number()?),
            _ => return None,
        })
    }

    fn deliver(&mut self) -> Option<Deliver> {
        Some(match self.next()? {
            "if-idle" => Deliver::IfIdle,
            "queue" => Deliver::Queue(self.word()?),
            "steer" => Deliver::Steer { idle: self.word()? },
            "follow-up" => Deliver::FollowUp,
            "context" => Deliver::Context,
            "preempt" => Deliver::Preempt,
            _ => return None,
        })
    }

    fn cancel(&mut self) -> Option<CancelWhat> {
        Some(match self.next()? {
            "turn" => CancelWhat::Turn {
                queue: self.word()?,
            },
            "turn-else-next" => CancelWhat::TurnElseNextQueued,
            "retry" => CancelWhat::Retry,
            "compaction" => CancelWhat::Compaction,
            "shell" => CancelWhat::Shell,
            "job" => CancelWhat::Job(JobId(self.number()?)),
            "run" => CancelWhat::Run(RunId(self.number()?)),
            "everything" => CancelWhat::Everything,
            _ => return None,
        })
    }

    fn setting(&mut self) -> Option<Setting> {
        Some(match self.next()? {
            "approvals" => Setting::Approvals(self.mode()?),
            "model" => Setting::Model(self.maybe()?),
            "thinking" => Setting::Thinking(self.maybe()?),
            "thinking-budget" => Setting::ThinkingBudget(match self.next()? {
                "default" => None,
                tokens => Some(tokens.parse().ok()?),
            }),
            "steer-drain" => Setting::SteerDrain(self.word()?),
            "follow-up-drain" => Setting::FollowUpDrain(self.word()?),
            "interrupting" => Setting::Interrupting(self.word()?),
            "auto-retry" => Setting::AutoRetry(self.word()?),
            "auto-compact" => Setting::AutoCompact(self.word()?),
            "name" => Setting::Name(self.text()?.into()),
            _ => return None,
        })
    }

    fn mode(&mut self) -> Option<ApprovalMode> {
        let known = MODES
            .into_iter()
            .find(|(word, _)| *word == self.rest.trim());
        Some(match known {
            Some((_, mode)) => {
                self.rest = "";
                mode
            }
            None => ApprovalMode::Other(self.text()?.into()),
        })
    }

    fn piece(&mut self) -> Option<Piece> {
        Some(match self.next()? {
            "begin" => Piece::Alive(true),
            "alive" => Piece::Alive(false),
            "text" => Piece::Text(self.text()?),
            "thinking" => Piece::Thinking(self.text()?),
            "call" => Piece::Call(self.word()?),
            "half-call" => Piece::HalfCall,
            "odd" => Piece::Odd(self.number()?),
            "usage" => Piece::Usage(self.number()?),
            "finish" => Piece::Finish,
            "end" => Piece::End,
            "failed" => {
                let kind = self.word()?;
                let reached = match self.next()? {
                    "reached" => true,
                    "unreached" => false,
                    _ => return None,
                };
                let after = match self.next() {
                    None => None,
                    Some("after") => Some(self.number()?),
                    Some(_) => return None,
                };
                Piece::Failed(kind, reached, after)
            }
            _ => return None,
        })
    }
}
