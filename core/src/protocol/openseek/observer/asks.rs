//! Questions: asked once, answered by the host's first word, resolved once.

use alloc::collections::VecDeque;
use alloc::string::String;

use super::super::rules::Key;
use super::Here;
use crate::frame::Place;
use crate::protocol::observer::{At, Dir, Ids, Known, Notes, Sides, at_member, hash};

/// The most answers that are remembered though nobody had asked.
const GUESSES: usize = 64;

/// An open question.
#[derive(Clone, Copy, Debug)]
struct Ask {
    place: Place,
    /// The host's first answer, and where.
    first: Option<(bool, Place)>,
    /// The host answered before it was asked: the engine may have read that later.
    guessed: bool,
}

/// All questions.
#[derive(Debug, Default)]
pub(super) struct Asks {
    ids: Ids<Ask>,
    guesses: VecDeque<u64>,
    /// The question that the engine's last line asked.
    last: Option<u64>,
    /// A line of the host couldn't be read for certain, and may have been an answer.
    pub(super) unsure: bool,
}

impl Asks {
    pub(super) fn blur(&mut self) {
        self.ids.blur();
        self.last = None;
    }

    /// Another line of the engine.
    pub(super) fn passes(&mut self) {
        self.last = None;
    }

    pub(super) fn requested(&mut self, id: &str, here: Here<'_, '_, '_>, notes: &mut Notes) {
        let id = hash(id);
        match self.ids.known(id) {
            Known::Never | Known::Unknown => {}
            Known::Open | Known::Closed => {
                let first = self.ids.get_mut(id).map(|ask| ask.place);
                let at =
                    at_member(here.object, "id").with(Dir::Agent, first, "the question before");
                notes.add(
                    Key::AskTwice.rule(),
                    at,
                    String::from("a question of this id was asked before"),
                );
            }
        }
        self.ids.open(
            id,
            Ask {
                place: here.place,
                first: None,
                guessed: self.guesses.contains(&id),
            },
        );
        self.last = Some(id);
    }

    pub(super) fn resolved(
        &mut self,
        id: &str,
        outcome: &str,
        both: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(id);
        let directly = self.last.take() == Some(id);
        let known = self.ids.known(id);
        let at = at_member(here.object, "outcome");
        if !matches!(outcome, "allowed_once" | "rejected" | "cancelled") {
            let message = String::from("the outcome is a word that isn't known");
            notes.add(Key::OutcomeWord.rule(), at.clone(), message);
        }
        let Some(ask) = self.ids.close(id) else {
            let message = match known {
                Known::Closed => "this question is resolved",
                Known::Never => "this question was never asked",
                Known::Open | Known::Unknown => return,
            };
            let at = at_member(here.object, "id");
            notes.add(Key::ResolvedUnknown.rule(), at, String::from(message));
            return;
        };
        if !both || self.unsure || ask.guessed {
            return;
        }
        let (key, said) = match outcome {
            "allowed_once" => (Key::AllowedByNobody, true),
            "rejected" => (Key::RejectedByNobody, false),
            _ => return,
        };
        match ask.first {
            Some((first, _)) if first == said => {}
            Some((_, answer)) => {
                let at = at.with(Dir::Host, Some(answer), "the first answer");
                let message = String::from("the host's first answer says otherwise");
                notes.add(key.rule(), at, message);
            }
            None if said && directly => {}
            None => {
                let at = at.with(Dir::Agent, Some(ask.place), "the question");
                let message = String::from("the host has not answered this question");
                notes.add(key.rule(), at, message);
            }
        }
    }

    /// An answer of the host.
    pub(super) fn answered(
        &mut self,
        id: &str,
        allow: bool,
        here: Here<'_, '_, '_>,
        notes: &mut Notes,
    ) {
        let id = hash(id);
        let message = match self.ids.get_mut(id) {
            Some(ask) if ask.first.is_none() => {
                ask.first = Some((allow, here.place));
                return;
            }
            Some(_) => "this question has its answer",
            None => match self.ids.known(id) {
                Known::Closed => "this question is resolved",
                Known::Never => {
                    if self.guesses.len() >= GUESSES {
                        self.guesses.pop_front();
                    }
                    self.guesses.push_back(id);
                    "this question was never asked"
                }
                Known::Open | Known::Unknown => return,
            },
        };
        if here.sides == Sides::Both {
            let at = at_member(here.object, "id");
            notes.add(Key::ApprovalUnknown.rule(), at, String::from(message));
        }
    }

    /// The end of a turn.
    pub(super) fn turn_over(&mut self, notes: &mut Notes) {
        let (open, first) = self.ids.close_all();
        if open > 0 {
            let place = first.map(|ask| ask.place);
            let at = At::line().with(Dir::Agent, place, "the question");
            let message = alloc::format!("{open} questions are open at the end of the turn");
            notes.add(Key::AskOpen.rule(), at, message);
        }
    }
}
