//! The order of lines within a turn: what the contract says, and nothing about what the observed program does beyond.

use alloc::format;
use alloc::string::String;

use super::super::rules::Key;
use super::super::wire::{MessageDone, Retry, TurnRefused};
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Notes, Severity};

/// Refusals of a completion that are honoured.
const REFUSALS: u64 = 8;

/// A turn, or the time between two.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The first line that only a turn has.
    pub(super) first: Option<Place>,
    /// The last `protocol_error` since the last `done`.
    pub(super) refusal: Option<Place>,
    /// A line couldn't be read: nothing of this turn's order is judged.
    blurred: bool,
    /// The first token of a run that no `message_done` has ended.
    tokens: Option<Place>,
    /// The bytes of that run.
    token_bytes: u64,
    /// The last `message_done`.
    reply: Option<Place>,
    /// Nothing of another step came after it.
    fresh: bool,
    /// It ended tokens, and nothing but `error` lines came after it.
    kept: bool,
    /// A call that began since the last reply or request.
    call: Option<Place>,
    error: bool,
    /// An `error` line since the last reply or token.
    error_last: bool,
    retry: Option<(u64, Place)>,
    refusals: u64,
    /// A `message_done` since the last `turn_refused`.
    replied: bool,
}

impl Turn {
    /// Nothing is certain until the next `done`.
    pub(super) fn blur(&mut self) {
        self.blurred = true;
    }

    pub(super) fn is_blurred(&self) -> bool {
        self.blurred
    }

    pub(super) fn begin(&mut self, place: Place) {
        self.first.get_or_insert(place);
    }

    /// A run of tokens must have ended before this line.
    fn run_ends(&mut self, before: &str, notes: &mut Notes) {
        if let Some(token) = self.tokens.take()
            && !self.blurred
        {
            let at = At::line().with(Dir::Agent, Some(token), "the first token of the run");
            notes.add(
                Key::TokensOpen.rule(),
                at,
                format!("a run of tokens has no message_done before {before}"),
            );
        }
    }

    /// Something of another step, or of the calls after a reply.
    fn moves_on(&mut self) {
        self.fresh = false;
        self.kept = false;
    }

    pub(super) fn budget(&mut self, notes: &mut Notes) {
        self.run_ends("the next request", notes);
        self.moves_on();
        self.token_bytes = 0;
        self.retry = None;
        self.call = None;
    }

    pub(super) fn token(&mut self, place: Place, bytes: usize) {
        self.moves_on();
        self.tokens.get_or_insert(place);
        self.token_bytes += bytes as u64;
        self.error_last = false;
    }

    pub(super) fn thinking(&mut self) {
        self.moves_on();
    }

    pub(super) fn usage(&self, notes: &mut Notes) {
        if self.fresh && !self.blurred {
            let at = At::line().with(Dir::Agent, self.reply, "its message_done");
            notes.add(
                Key::UsageLate.rule(),
                at,
                String::from("usage comes after the message_done of its request"),
            );
        }
    }

    pub(super) fn message_done(&mut self, place: Place, line: &MessageDone<'_>, notes: &mut Notes) {
        if self.fresh && !self.blurred {
            let at = At::line().with(Dir::Agent, self.reply, "the message_done before");
            notes.add(
                Key::MessageTwice.rule(),
                at,
                String::from("a second message_done for the same reply"),
            );
        } else if line.text.len() as u64 > self.token_bytes && !self.blurred {
            let at = At::line().with(Dir::Agent, self.tokens, "the first token of the run");
            notes.add(
                Key::MessageLonger.rule(),
                at,
                format!(
                    "message_done has {} bytes of text, the tokens before it {}",
                    line.text.len(),
                    self.token_bytes
                ),
            );
        }
        self.kept = self.tokens.take().is_some();
        self.token_bytes = 0;
        self.reply = Some(place);
        self.fresh = true;
        self.replied = true;
        self.error_last = false;
        self.retry = None;
        self.call = None;
    }

    pub(super) fn tool_start(&mut self, place: Place, notes: &mut Notes) {
        self.run_ends("a call", notes);
        self.moves_on();
        self.call.get_or_insert(place);
    }

    /// Any other line of a turn.
    pub(super) fn other(&mut self) {
        self.moves_on();
    }

    pub(super) fn error(&mut self) {
        self.error = true;
        self.error_last = true;
    }

    pub(super) fn retry(&mut self, place: Place, line: &Retry<'_>, at: At, notes: &mut Notes) {
        let Retry {
            attempt,
            max_attempts,
            ..
        } = *line;
        if attempt < 2 || attempt > max_attempts {
            notes.add(
                Key::RetryRange.rule(),
                at.clone(),
                format!("attempt {attempt} of {max_attempts}: it must be from 2 to {max_attempts}"),
            );
        }
        if !self.blurred {
            if let Some(token) = self.tokens {
                let at = At::line().with(Dir::Agent, Some(token), "the token");
                notes.add(
                    Key::RetryAfterToken.rule(),
                    at,
                    String::from("a request is retried after a token of its reply was shown"),
                );
            }
            let (before, earlier) = match self.retry {
                Some((attempt, place)) => (attempt, Some(place)),
                None => (1, None),
            };
            let at = at.with(Dir::Agent, earlier, "the retry before");
            if attempt <= before && earlier.is_some() {
                let message = format!("attempt {attempt} follows attempt {before}");
                notes.add(Key::RetryCount.rule(), at, message);
            } else if attempt > before.saturating_add(1) && attempt <= max_attempts {
                let message =
                    format!("attempt {attempt} follows attempt {before}: some are left out");
                // An attempt behind a summary of a context that was full has no line of its own.
                notes.add(Key::RetryCount.rule(), at.at_most(Severity::Info), message);
            }
        }
        self.tokens = None;
        self.moves_on();
        self.retry = Some((attempt, place));
    }

    pub(super) fn turn_refused(&mut self, line: &TurnRefused<'_>, at: At, notes: &mut Notes) {
        self.run_ends("turn_refused", notes);
        if !self.replied && !self.blurred {
            notes.add(
                Key::RefusalAfterReply.rule(),
                At::line(),
                String::from("no message_done since the turn began or was last refused"),
            );
        }
        let sum = line.continuation.checked_add(line.continuations_left);
        if sum != Some(REFUSALS) || line.continuations_left == 0 {
            notes.add(
                Key::RefusalCount.rule(),
                at,
                format!(
                    "{} refusals honoured and {} left don't make {REFUSALS}",
                    line.continuation, line.continuations_left
                ),
            );
        } else if line.continuation != self.refusals && !self.blurred {
            notes.add(
                Key::RefusalCount.rule(),
                at,
                format!(
                    "continuation is {}, but {} refusals of this turn were honoured before",
                    line.continuation, self.refusals
                ),
            );
        }
        self.refusals = line.continuation.saturating_add(1);
        self.replied = false;
        self.moves_on();
    }

    /// The end. False: it can't be one, so the turn goes on. `word`: `error` may be the provider's own word.
    pub(super) fn done(&mut self, reason: &str, word: bool, at: At, notes: &mut Notes) -> bool {
        if self.blurred {
            return true;
        }
        if reason == "refused" {
            return self.refused(at, notes);
        }
        if let Some(token) = self.tokens
            && reason != "error"
        {
            let mut at = At::line().with(Dir::Agent, Some(token), "the first token of the run");
            if reason == "cancelled" {
                at = at.at_most(Severity::Info);
            }
            notes.add(
                Key::TokensOpen.rule(),
                at,
                String::from("a run of tokens has no message_done before done"),
            );
        }
        match reason {
            "error" if !self.error && !word => {
                notes.add(
                    Key::ErrorBare.rule(),
                    at,
                    String::from("the turn failed, and no error line says why"),
                );
            }
            "error" if self.kept && self.error_last => {
                let at = At::line().with(Dir::Agent, self.reply, "the message_done");
                notes.add(
                    Key::FailedKept.rule(),
                    at,
                    String::from("the reply was ended by message_done, then the turn failed"),
                );
            }
            "truncated" => self.truncated(at, notes),
            _ => {}
        }
        true
    }

    fn truncated(&self, at: At, notes: &mut Notes) {
        if !self.error_last {
            notes.add(
                Key::TruncatedBare.rule(),
                at,
                String::from("the reply is incomplete, and no error line after it says so"),
            );
        }
        if let Some(call) = self.call {
            let at = At::line().with(Dir::Agent, Some(call), "the call");
            notes.add(
                Key::TruncatedCalls.rule(),
                at,
                String::from("a call of a truncated reply was begun"),
            );
        }
    }

    fn refused(&self, at: At, notes: &mut Notes) -> bool {
        match (self.first, self.refusal) {
            (Some(first), _) => {
                let word = self.reply.is_some() && self.tokens.is_none();
                let mut at = at.with(Dir::Agent, Some(first), "the first line of the turn");
                if word {
                    at = at.at_most(Severity::Warning);
                }
                notes.add(
                    Key::RefusedLate.rule(),
                    at,
                    String::from("done refused stands in a turn that was started"),
                );
                word
            }
            (None, None) => {
                notes.add(
                    Key::RefusedBare.rule(),
                    at,
                    String::from("no protocol_error stands before done refused"),
                );
                true
            }
            (None, Some(_)) => true,
        }
    }
}
