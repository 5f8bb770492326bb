//! Talks: a voice that the embedder serves, at most one at a time. What a host sees of one is made certain here: frames
//! of a talk come only while there is one, its levels at most every 100 ms, and one `live_end` ends it, however it does
//! (OMP-16).

use alloc::string::String;

use super::outside::Outside;
use super::ticket::Ticket;
use super::{Face, message::raw};
use crate::protocol::Outbox;
use crate::protocol::omp::wire::{Frame, LiveEnd};
use crate::protocol::omp::{Omp, OmpAsk, OmpOutcome};
use crate::vocab::Text;

/// How close two frames of levels may be.
const LEVELS_US: u64 = 100_000;

/// The talk that there is.
#[derive(Debug, Default)]
pub(super) struct Talk {
    stage: Stage,
    /// Its `live_end` was said.
    ended: bool,
    /// When its levels were said last.
    levels_us: Option<u64>,
    /// The question by which it is ended because the host is gone.
    hanging_up: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    None,
    /// The embedder was asked for it.
    Connecting(u64),
    Active,
    /// The embedder was asked to end it.
    Closing,
}

impl Face {
    pub(super) fn live_start(
        &mut self,
        ticket: Ticket,
        voice: Option<Text>,
        instructions: Option<Text>,
        out: &mut Outbox<Omp>,
    ) {
        if self.talk.stage != Stage::None {
            return self.fail(ticket, "A live session is already active", out);
        }
        let id = out.ask(OmpAsk::LiveStart {
            voice,
            instructions,
        });
        self.outside.insert(id, (ticket, Outside::Talk));
        self.talk = Talk {
            stage: Stage::Connecting(id),
            ..Talk::default()
        };
    }

    pub(super) fn live_stop(&mut self, ticket: Ticket, out: &mut Outbox<Omp>) {
        if self.talk.stage == Stage::None {
            return self.done(ticket, out);
        }
        self.hang_up_connecting(out);
        self.talk.stage = Stage::Closing;
        self.ask(ticket, OmpAsk::LiveStop, Outside::HangUp, out);
    }

    pub(super) fn live_mute(&mut self, ticket: Ticket, muted: Option<bool>, out: &mut Outbox<Omp>) {
        let error = "No live session is active";
        if self.talk.stage != Stage::Active {
            return self.fail(ticket, error, out);
        }
        let fallback = super::outside::Fallback::Error(error.into());
        self.ask(
            ticket,
            OmpAsk::LiveMute(muted),
            Outside::Plain(fallback),
            out,
        );
    }

    /// Whoever waits for a talk to begin waits no longer: it is being ended.
    fn hang_up_connecting(&mut self, out: &mut Outbox<Omp>) {
        if let Stage::Connecting(id) = self.talk.stage
            && let Some((ticket, _)) = self.outside.remove(&id)
        {
            out.dismiss(id);
            self.fail(ticket, "The live session was stopped", out);
        }
    }

    /// The embedder has begun a talk, or hasn't.
    pub(super) fn talk_began(
        &mut self,
        ticket: Ticket,
        outcome: OmpOutcome,
        out: &mut Outbox<Omp>,
    ) {
        let error: String = match outcome {
            OmpOutcome::Success(json) => {
                // It may be over already.
                self.talk.stage = if self.talk.ended {
                    Stage::None
                } else {
                    Stage::Active
                };
                let json = json.as_ref().map(|json| raw(json).as_str().as_bytes());
                return self.give(ticket, json, out);
            }
            OmpOutcome::Failure(error) => (&*error).into(),
            OmpOutcome::Default | OmpOutcome::Transcript(_) => "Live voice is not available".into(),
        };
        self.end_talk(Some(&error), out);
        self.talk.stage = Stage::None;
        self.fail(ticket, &error, out);
    }

    /// The embedder has ended the talk, or couldn't.
    pub(super) fn talk_stopped(
        &mut self,
        ticket: Ticket,
        outcome: OmpOutcome,
        out: &mut Outbox<Omp>,
    ) {
        if let OmpOutcome::Failure(error) = outcome {
            self.talk.stage = if self.talk.ended {
                Stage::None
            } else {
                Stage::Active
            };
            return self.fail(ticket, &error, out);
        }
        self.end_talk(None, out);
        self.talk.stage = Stage::None;
        self.done(ticket, out);
    }

    /// The host is gone: so is the talk, before the process.
    pub(super) fn host_hangs_up(&mut self, out: &mut Outbox<Omp>) {
        self.hang_up_connecting(out);
        match self.talk.stage {
            Stage::None | Stage::Closing => {}
            Stage::Connecting(_) | Stage::Active => {
                self.talk.stage = Stage::Closing;
                self.talk.hanging_up = Some(out.ask(OmpAsk::LiveStop));
            }
        }
    }

    /// Whether the talk of a host that is gone still has to end.
    pub(super) fn is_hanging_up(&self) -> bool {
        self.talk.hanging_up.is_some()
    }

    /// Whether an answer of the embedder is that to [`host_hangs_up`](Self::host_hangs_up); then the talk is over.
    pub(super) fn hung_up(&mut self, id: u64, out: &mut Outbox<Omp>) -> bool {
        if self.talk.hanging_up != Some(id) {
            return false;
        }
        self.talk_over(out);
        true
    }

    /// Nobody waits for a talk any more.
    pub(super) fn talk_over(&mut self, out: &mut Outbox<Omp>) {
        if let Some(id) = self.talk.hanging_up.take() {
            out.dismiss(id);
        }
        if self.talk.stage != Stage::None {
            self.end_talk(None, out);
            self.talk.stage = Stage::None;
        }
    }

    /// Says that the talk has ended, once.
    fn end_talk(&mut self, error: Option<&str>, out: &mut Outbox<Omp>) {
        if core::mem::replace(&mut self.talk.ended, true) {
            return;
        }
        let end = LiveEnd {
            error: error.map(Into::into),
            ..LiveEnd::default()
        };
        self.printer.say(end, out);
    }

    /// Whether a frame of the embedder's may be said.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "only those of a talk matter"
    )]
    pub(super) fn admits(&mut self, frame: &Frame<'_>) -> bool {
        let there = self.talk.stage != Stage::None && !self.talk.ended;
        let now_us = self.now.mono_us;
        match frame {
            Frame::LiveLevels(_) => {
                let last_us = self.talk.levels_us;
                let due = last_us.is_none_or(|last| now_us >= last.saturating_add(LEVELS_US));
                if there && due {
                    self.talk.levels_us = Some(now_us);
                }
                there && due
            }
            Frame::LivePhase(_) | Frame::LiveTranscript(_) => there,
            Frame::LiveEnd(_) => {
                if there {
                    self.talk.ended = true;
                    if self.talk.stage == Stage::Active {
                        self.talk.stage = Stage::None;
                    }
                }
                there
            }
            _ => true,
        }
    }
}
