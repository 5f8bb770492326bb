//! splice as a [`Protocol`]: its configuration, what it asks its embedder, and its lines without neutral meaning.

use alloc::vec::Vec;

use super::client::{ClientConfig, ClientFace};
use super::server::Face;
use super::wire::{Event, ImageBound};
use super::{AGENT_LINE_MAX, HOST_LINE_MAX, Splice};
use crate::frame::{LineRules, OverLong, Tail};
use crate::json::Members;
use crate::protocol::{Protocol, WireFault};
use crate::redact::Secrets;
use crate::vocab::{Level, RawJson, Text};

/// What a splice Server is built from.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Where the id of the run comes from. The same seed, time and lines give the same id.
    pub seed: [u8; 32],
    /// How much the agent may do by itself.
    pub autonomy: Autonomy,
    /// A specification is drafted: nothing is decided by the mode, and the run ends with a review.
    pub drafts: bool,
    /// The branch of the worktree that is merged back once the run has succeeded; `None`: nothing is.
    pub merge_back: Option<Text>,
    /// What is taken out of every line.
    pub secrets: Secrets,
    /// How the size of a picture is counted.
    pub image_bound: ImageBound,
    /// What a signal does before the input has ended.
    pub early_signal: EarlySignal,
    /// Nothing is written behind the warning of a merge that was skipped or in conflict, as the known agent does.
    pub faithful_hole: bool,
}

impl ServerConfig {
    /// An agent with the least autonomy, that looks for the patterns alone.
    pub fn new(seed: [u8; 32]) -> Self {
        ServerConfig {
            seed,
            autonomy: Autonomy::default(),
            drafts: false,
            merge_back: None,
            secrets: Secrets::default(),
            image_bound: ImageBound::default(),
            early_signal: EarlySignal::default(),
            faithful_hole: false,
        }
    }
}

/// How much an agent may do by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Autonomy {
    /// `low`
    #[default]
    Low,
    /// `medium`
    Medium,
    /// `high`: all of it.
    High,
}

impl Autonomy {
    /// The word on the command line and on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Autonomy::Low => "low",
            Autonomy::Medium => "medium",
            Autonomy::High => "high",
        }
    }

    /// The one of that word.
    pub fn named(word: &str) -> Option<Autonomy> {
        [Autonomy::Low, Autonomy::Medium, Autonomy::High]
            .into_iter()
            .find(|autonomy| autonomy.word() == word)
    }
}

/// What a signal does before the input has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EarlySignal {
    /// The agent ends at once.
    #[default]
    Ends,
    /// It is remembered, and cancels the run as it begins: as the known agent does.
    Remembered,
}

/// What a splice Server asks its embedder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpliceAsk {
    /// Merge the worktree's branch into where it came from.
    MergeBack {
        /// The branch.
        branch: Text,
    },
}

/// What became of a merge. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeBack {
    /// It was merged.
    Merged(Text),
    /// There was nothing to merge.
    NoChange(Text),
    /// It was skipped, since where it came from has changes of its own.
    Dirty(Text),
    /// It conflicted, and was given up.
    Conflict(Text),
    /// It failed.
    Failed(Text),
}

/// A line with no neutral meaning: a `permission` with an action of its own, a `restore`, a type that nobody knows. Of a
/// Client also `final`, where it is a pipeline's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpliceExtra {
    /// The line's type.
    pub kind: Text,
    /// The whole object, on one line.
    pub line: RawJson,
}

impl SpliceExtra {
    /// The line of an event.
    pub fn of(event: &Event<'_>) -> Self {
        let mut line = Vec::new();
        event.encode(&mut line);
        SpliceExtra {
            kind: (&*event.name()).into(),
            line: RawJson(core::str::from_utf8(&line).unwrap_or("{}").into()),
        }
    }

    /// Reads the line.
    ///
    /// # Errors
    /// [`WireFault`] when it isn't a line of an agent.
    pub fn read<'a>(&'a self, members: &mut Members) -> Result<Event<'a>, WireFault> {
        Event::read(self.line.as_str().as_bytes(), members)
    }
}

impl Protocol for Splice {
    const NAME: &'static str = "splice";
    type Ask = SpliceAsk;
    type Outcome = MergeBack;
    type Extra = SpliceExtra;
    type ServerConfig = ServerConfig;
    type Face = Face;
    type ClientConfig = ClientConfig;
    type Client = ClientFace;

    fn soften(extra: &SpliceExtra) -> Option<(Level, Text)> {
        match &*extra.kind {
            "restore" => Some((Level::Info, "files were put back".into())),
            "permission" => Some((Level::Info, "a permission was spoken of".into())),
            _ => None,
        }
    }

    fn host_line_rules() -> LineRules {
        rules(HOST_LINE_MAX)
    }

    fn agent_line_rules() -> LineRules {
        rules(AGENT_LINE_MAX)
    }
}

fn rules(max_bytes: usize) -> LineRules {
    LineRules {
        max_bytes,
        over: OverLong::Skip,
        tail: Tail::Deliver,
    }
}
