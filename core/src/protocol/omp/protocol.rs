//! omp as a [`Protocol`]: its configuration, its requests to the embedder, and its lines without neutral meaning.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::client::{ClientConfig, ClientFace};
use super::server::Face;
use super::{HOST_LINE_MAX, MAX_FRAME};
use crate::frame::{LineRules, OverLong, Tail};
use crate::json::Members;
use crate::protocol::omp::wire::AgentLine;
use crate::protocol::{Protocol, WireFault};
use crate::vocab::{Level, Message, RawJson, Text};

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Omp;

/// What an omp Server is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where the ids of questions and host calls come from. The same seed and the same lines give the same ids.
    pub seed: [u8; 32],
    /// The models that are known, as the catalogue's objects: each has at least `provider` and `id`. They complete
    /// `get_state`, and are the default answer to [`OmpAsk::Models`] and [`OmpAsk::FindModel`].
    pub models: Vec<RawJson>,
    /// Where nested runs keep what they say, if they do: beside [`SessionInfo::file`](crate::vocab::SessionInfo::file).
    pub run_files: Option<RunFiles>,
    /// Slash commands, as objects. Empty: those of the session.
    pub commands: Vec<RawJson>,
    /// The host's screen is served (`--mode rpc-ui`): approvals are asked there. They are in the other mode, too, since
    /// either mode may ask; this is what the embedder's tools may look at.
    pub ui: bool,
}

/// The names of the files in which nested runs keep what they say. That of run 7 is the session's file without the ending,
/// `between`, `7`, and the ending; that of a run below it has `between` and its own number before the ending, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFiles {
    /// What stands before a number.
    pub between: Text,
    /// What stands behind the last.
    pub ending: Text,
}

/// A part of what a nested run has said: an embedder's answer to [`OmpAsk::SubagentMessages`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// The file that it was read from.
    pub file: Text,
    /// From which byte on.
    pub from_byte: u64,
    /// From which byte on there may be more.
    pub next_byte: u64,
    /// The file was shorter than what was asked for, and was read from its start.
    pub reset: bool,
    /// The messages, the oldest first.
    pub messages: Vec<Arc<Message>>,
}

impl ServerConfig {
    /// The defaults: nothing is known beyond what the session says.
    pub fn new(seed: [u8; 32]) -> Self {
        ServerConfig {
            seed,
            models: Vec::new(),
            run_files: None,
            commands: Vec::new(),
            ui: false,
        }
    }
}

/// What only the world outside of a session can answer: commands that never become neutral ones. A Server asks its
/// embedder; a Client is asked the same by its own, and asks its agent.
///
/// An embedder that knows nothing of a question settles it with [`OmpOutcome::Default`]. The payload of a success is
/// that of the command's response ([`wire::Data`](super::wire::Data)), unless it says otherwise here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OmpAsk {
    /// `set_model`: the model's object. By default one of [`ServerConfig::models`], else `Model not found: <p>/<m>`.
    FindModel {
        /// The provider.
        provider: Text,
        /// The model's id.
        model: Text,
    },
    /// `get_available_models` and `cycle_model`: a list of model objects. By default [`ServerConfig::models`], and if
    /// there are none the one model in use.
    Models,
    /// `get_tree`. By default one path through the messages.
    Tree,
    /// `get_subagent_messages`; best settled with [`OmpOutcome::Transcript`]. By default
    /// `Unknown subagent or session file unavailable: <id>`.
    SubagentMessages {
        /// The subagent: `run-` and the number of the run.
        subagent: Option<Text>,
        /// Its file.
        file: Option<Text>,
        /// From which byte on.
        from_byte: u64,
    },
    /// `handoff`; a success without a payload is `null`. By default `Nothing to hand off (already compacted)`.
    Handoff {
        /// What the summary should keep in mind.
        instructions: Option<Text>,
    },
    /// `set_fast_mode`. By default on is refused: `Fast mode is unavailable for the current model.`
    FastMode(bool),
    /// `set_slow_mode`. By default not available.
    SlowMode(bool),
    /// `set_cache_warming`, a valid word. By default not available.
    CacheWarming(Text),
    /// `export_html`; the payload is `{path}`. By default not available.
    ExportHtml(Box<Export>),
    /// `set_todos`: the phases as they were normalised; what is shown is what this gives back. By default the same.
    Todos(RawJson),
    /// `refresh_commands`: a list of command objects. By default those that are known.
    RefreshCommands,
    /// `get_login_providers`. By default none.
    LoginProviders,
    /// `login`. By default `Unknown OAuth provider: <x>`.
    Login {
        /// At whom.
        provider: Text,
    },
    /// `get_logout_accounts`. By default none.
    LogoutAccounts {
        /// At whom.
        provider: Text,
    },
    /// `logout`. By default `Unknown OAuth provider: <x>`.
    Logout {
        /// At whom.
        provider: Text,
        /// Which credential; any JSON.
        credential: Option<RawJson>,
    },
    /// `live_start`. By default not available.
    LiveStart {
        /// Whose voice.
        voice: Option<Text>,
        /// What it is told.
        instructions: Option<Text>,
    },
    /// `live_mute`; `None` toggles. By default no session is active.
    LiveMute(Option<bool>),
    /// `live_stop`. By default done: none is active.
    LiveStop,
    /// `predict_word`, a valid cursor. By default no suffix.
    PredictWord {
        /// What was written.
        text: Text,
        /// Where, in units of UTF-16.
        cursor: u64,
    },
    /// `predict_word_feedback`. By default done.
    PredictFeedback {
        /// What was written.
        text: Text,
        /// Where, in units of UTF-16.
        cursor: u64,
        /// What was suggested.
        suggestion: Text,
        /// Whether it was taken.
        accepted: bool,
    },
    /// `btw`. By default not available.
    Btw {
        /// The question.
        question: Text,
        /// The record that it goes on with.
        record: Option<Text>,
    },
    /// `btw_cancel`. By default nothing was cancelled.
    BtwCancel {
        /// Which; `None`: the open one.
        record: Option<Text>,
    },
    /// `get_btw_history`. By default empty.
    BtwHistory,
    /// The host's answer to a dialog that the embedder opened by an [`OmpExtra`] of its own: the whole line. The
    /// outcome says nothing.
    Ui(RawJson),
}

/// What an export is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Where to; `None`: where the embedder likes.
    pub path: Option<Text>,
    /// The session. A Client that asks its agent leaves this and the rest empty: the agent knows it.
    pub session: Text,
    /// Its name for people.
    pub name: Option<Text>,
    /// All that was said, oldest first.
    pub history: Vec<Arc<Message>>,
}

/// How an [`OmpAsk`] was settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OmpOutcome {
    /// What the contract says where there is nothing behind a command: see each [`OmpAsk`].
    #[default]
    Default,
    /// Success, and the payload, if the command has one.
    Success(Option<RawJson>),
    /// A failure, and its text for people.
    Failure(Text),
    /// Success of [`OmpAsk::SubagentMessages`]: what the run has said.
    Transcript(Box<Transcript>),
}

/// A line with no neutral meaning, in either direction: `todo_reminder`, `ttsr_triggered`, `irc_message`,
/// `subagent_progress`, the `live_*` and `btw_*` lines, requests that only show something on the screen, and every
/// line of a type that the contract doesn't have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmpExtra {
    /// The line's `type`.
    pub kind: Text,
    /// The whole object, on one line.
    pub line: RawJson,
}

impl OmpExtra {
    /// Reads the line.
    ///
    /// # Errors
    /// [`WireFault`] when it isn't a line of an agent.
    pub fn read<'a>(&'a self, members: &mut Members) -> Result<AgentLine<'a>, WireFault> {
        AgentLine::decode(self.line.as_str().as_bytes(), members)
    }
}

impl Protocol for Omp {
    const NAME: &'static str = "omp";
    type Ask = OmpAsk;
    type Outcome = OmpOutcome;
    type Extra = OmpExtra;
    type ServerConfig = ServerConfig;
    type Face = Face;
    type ClientConfig = ClientConfig;
    type Client = ClientFace;

    fn soften(extra: &OmpExtra) -> Option<(Level, Text)> {
        match &*extra.kind {
            "todo_reminder" => Some((Level::Info, "some tasks are still open".into())),
            "ttsr_triggered" => Some((
                Level::Info,
                "a rule was broken, and the reply starts over".into(),
            )),
            "irc_message" => Some((Level::Info, "a message of another agent came".into())),
            "live_end" if extra.line.as_str().contains("\"error\"") => {
                Some((Level::Warning, "the talk ended with an error".into()))
            }
            _ => None,
        }
    }

    fn host_line_rules() -> LineRules {
        LineRules {
            max_bytes: HOST_LINE_MAX,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }

    /// An agent's lines fit a frame; a longer one isn't one.
    fn agent_line_rules() -> LineRules {
        LineRules {
            max_bytes: MAX_FRAME,
            over: OverLong::Skip,
            tail: Tail::Deliver,
        }
    }
}
