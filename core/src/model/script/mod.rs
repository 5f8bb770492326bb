//! A model played from a readable script, for demonstrations and tests.
//!
//! A [`Script`] answers a [`ModelRequest`] with a [`ScriptReply`]: status, headers and the very bytes
//! that a provider would send, in pieces with pauses. They go through the same
//! [`ReplyDecoder`] as those of a real provider; nothing else in turnwire knows whether
//! a model is real. The format of the file is described in `docs/scripted-model.md`.

mod parse;
mod play;
mod view;

use alloc::{string::String, vec::Vec};
use core::fmt;

use super::{Api, ReplyDecoder, ReplyHead, unreached};
use crate::vocab::{ModelChunk, ModelRequest, Now};

/// A parsed script: a list of replies, of which the first that fits a request is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    api: Api,
    /// Pause between two pieces of text.
    pace_us: u64,
    replies: Vec<Reply>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reply {
    when: Vec<Condition>,
    acts: Vec<Act>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    /// The last user text holds these words, in any case.
    Prompt(String),
    /// The last tool result holds these words, in any case.
    Result(String),
    /// It is the reply of this number since the last user text, from 1.
    Step(u64),
    /// It is the request of this number, retries included, from 1.
    Request(u64),
    /// A tool of this name is offered.
    Offered(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Act {
    Think(String),
    Say(String),
    Call {
        name: String,
        args: String,
    },
    Usage(Counts),
    Finish(Option<String>),
    Fail {
        status: u16,
        code: String,
        text: String,
    },
    RetryAfter(String),
    Error {
        class: String,
        text: String,
    },
    Unreached(String),
    Cut,
    Wait(u64),
    Raw(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

/// Why a text is no script. Shown as one line: `line 3, column 7: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong there, in words.
    pub message: String,
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )
    }
}

impl core::error::Error for ScriptFault {}

/// What a scripted model sends for one request. Pure data; whoever plays it keeps the pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptReply {
    /// Status of the response.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Microseconds that pass before the head comes.
    pub head_after_us: u64,
    /// The body.
    pub pieces: Vec<ScriptPiece>,
    /// How it ends.
    pub end: ScriptEnd,
}

/// One piece of a scripted body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPiece {
    /// Microseconds that pass before it comes.
    pub after_us: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// How a scripted reply ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    /// The body ends as it should.
    Whole,
    /// The connection breaks after the pieces, for this reason.
    Cut(String),
    /// There never was a connection, for this reason; no head, no pieces.
    Unreached(String),
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// A [`ScriptFault`] that names the place and the reason.
    pub fn parse(text: &str) -> Result<Script, ScriptFault> {
        parse::parse(text)
    }

    /// The script that answers where no model was configured: it looks at the current folder with one
    /// tool call, and then says what it is.
    pub fn builtin() -> Script {
        // A unit test holds the file parsable; an empty script would say so in its reply.
        Script::parse(include_str!("builtin.script")).unwrap_or(Script {
            api: Api::OpenAi,
            pace_us: 0,
            replies: Vec::new(),
        })
    }

    /// The API that its replies speak.
    pub fn api(&self) -> Api {
        self.api
    }

    /// The reply to a request, taken for the first try of the next reply in its history.
    pub fn reply(&self, request: &ModelRequest<'_>) -> ScriptReply {
        let number = view::View::of(request).replies + 1;
        self.reply_nth(request, number)
    }

    /// The reply to a request that is the `number`th of its session, retries included, from 1.
    pub fn reply_nth(&self, request: &ModelRequest<'_>, number: u64) -> ScriptReply {
        let view = view::View::of(request);
        let fits = |reply: &&Reply| {
            reply
                .when
                .iter()
                .all(|condition| view.fits(condition, request, number))
        };
        match self.replies.iter().find(fits) {
            Some(reply) => play::play(self.api, self.pace_us, &reply.acts, &view, request),
            None => play::no_reply(self.api),
        }
    }
}

impl ScriptReply {
    /// The head, as the decoder takes it.
    pub fn head(&self) -> ReplyHead<'_> {
        let header = |wanted: &str| {
            self.headers
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| &**value)
        };
        ReplyHead {
            status: self.status,
            reason: "",
            content_type: header("content-type"),
            retry_after: header("retry-after"),
        }
    }

    /// Feeds the whole reply into a fresh decoder at once, without its pauses.
    pub fn play(&self, decoder: &mut ReplyDecoder, now: Now, sink: &mut dyn FnMut(ModelChunk<'_>)) {
        if let ScriptEnd::Unreached(why) = &self.end {
            return sink(unreached(why));
        }
        decoder.head(&self.head(), now);
        for piece in &self.pieces {
            decoder.bytes(&piece.bytes, now, sink);
        }
        match &self.end {
            ScriptEnd::Whole | ScriptEnd::Unreached(_) => decoder.end(now, sink),
            ScriptEnd::Cut(why) => decoder.broken(why, now, sink),
        }
    }
}
