//! Which commands wait for a response, and which prompts for their end.
//!
//! A response is matched by its id and its command's name, so two open commands of one id are told apart where they
//! can be. Where they can't, the host is to blame: the agent keeps the contract if one way to read it does. Memory is bounded: beyond the limit commands are forgotten, and then nothing is said of responses that
//! nobody asked for.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::frame::Place;
use crate::protocol::observer::hash;
use crate::protocol::omp::wire::{Any, Command, Tag};

/// The most commands and prompts that are remembered as open.
const MOST: usize = 65_536;

/// The most refusals that may have been something else.
const MOST_REFUSED: usize = 256;

/// The id of a command: all ids that aren't strings are alike, because they may be spelled in another way.
pub(super) fn key(id: Any<'_>) -> u64 {
    match (id.get(), id.string()) {
        (None, _) => 0,
        (Some(_), Some(text)) => hash(&text) | 2,
        (Some(_), None) => 1,
    }
}

/// The name of a command.
pub(super) fn name_key(tag: &Tag<'_>) -> u64 {
    match tag {
        Tag::Absent => 0,
        Tag::Name(_) | Tag::Other(_) => hash(tag.shown()),
    }
}

/// How a command is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// After all that came before it.
    Serial,
    /// Whenever it is done.
    Free,
}

/// How this command is served.
pub(super) fn order(command: &Command<'_>) -> Order {
    let free = matches!(
        command,
        Command::Bash(_)
            | Command::LiveStart(_)
            | Command::LiveStop(_)
            | Command::PredictWord(_)
            | Command::Prompt(_)
            | Command::SteerSubagent(_)
            | Command::Abort(_)
            | Command::AbortAndPrompt(_)
            | Command::AbortAndRestoreQueue(_)
            | Command::AbortBash(_)
            | Command::AbortRetry(_)
    );
    if free { Order::Free } else { Order::Serial }
}

/// What a command asked for, where its response is compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing that matters.
    Other,
    /// A prompt, which owes an end once it is accepted.
    Prompt,
    /// Version 2, or another one.
    Version(bool),
    /// A page of this many messages; `None`: a limit that there can't be.
    Page(Option<u64>),
}

/// A command that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) place: Place,
    pub(super) name: u64,
    pub(super) asked: Asked,
    /// It may be answered in another way than the contract says, or not at all.
    pub(super) excused: bool,
    /// The agent can't make sense of it, and refuses it at once.
    pub(super) broken: bool,
    pub(super) order: Order,
    /// Which line of the host it is.
    pub(super) number: u64,
}

/// A prompt that was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    pub(super) place: Place,
    /// A second response said that it failed, or may have said so: it needs no end.
    failed: bool,
}

/// What a response turned out to answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// This command. `early`: one that had to be answered first still waits. `read`: the line of the host up to which
    /// the agent has read.
    Command {
        waiting: Waiting,
        early: bool,
        read: u64,
    },
    /// A command of its id, but of another name.
    Other(Waiting),
    /// A prompt that was accepted: it failed after that. Or one that seemed to be refused, when another one of its id
    /// failed so.
    Late,
    /// Nothing.
    None,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    waiting: BTreeMap<u64, Vec<Waiting>>,
    count: usize,
    serial: BTreeSet<u64>,
    accepted: BTreeMap<u64, Vec<Accepted>>,
    accepted_count: usize,
    /// Prompts that were refused, unless that was the late failure of an accepted one: their ids and names.
    refused: Vec<(u64, u64, Place)>,
    /// Some commands were forgotten, or stood in lines that nobody could read.
    unsure: bool,
}

impl Ledger {
    /// Something may have been asked that isn't known here.
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    pub(super) fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Whether a command of this id waits.
    pub(super) fn has(&self, id: u64) -> bool {
        self.waiting.get(&id).is_some_and(|list| !list.is_empty())
    }

    /// Whether a command of this name waits, under any id.
    pub(super) fn waits_for(&self, name: u64) -> bool {
        let mut all = self.waiting.values().flatten();
        all.any(|waiting| waiting.name == name)
    }

    pub(super) fn ask(&mut self, id: u64, waiting: Waiting) {
        if self.count >= MOST {
            self.unsure = true;
            return;
        }
        self.count += 1;
        if waiting.order == Order::Serial && !waiting.excused {
            self.serial.insert(waiting.number);
        }
        self.waiting.entry(id).or_default().push(waiting);
    }

    fn take(&mut self, id: u64, index: usize) -> Option<Waiting> {
        let list = self.waiting.get_mut(&id)?;
        let found = (index < list.len()).then(|| list.remove(index));
        if list.is_empty() {
            self.waiting.remove(&id);
        }
        let found = found?;
        self.count -= 1;
        self.serial.remove(&found.number);
        Some(found)
    }

    /// A response.
    pub(super) fn answer(&mut self, id: u64, name: u64, success: bool) -> Answer {
        if let Some((index, read)) = self.best(id, name, success)
            && let Some(waiting) = self.take(id, index)
        {
            let first = self.serial.first();
            let early = waiting.order == Order::Serial
                && !waiting.excused
                && first.is_some_and(|&first| first < waiting.number);
            if waiting.asked == Asked::Prompt && !success {
                self.may_be_late(id, name, waiting.place);
            }
            return Answer::Command {
                waiting,
                early,
                read,
            };
        }
        let mut refused = self.refused.iter();
        if let Some(index) = refused.position(|(of, named, _)| (*of, *named) == (id, name)) {
            let (.., place) = self.refused.swap_remove(index);
            if success {
                self.accept(id, place);
            }
            return Answer::Late;
        }
        if !success
            && let Some(list) = self.accepted.get_mut(&id)
            && let Some(prompt) = list.iter_mut().find(|prompt| !prompt.failed)
        {
            prompt.failed = true;
            return Answer::Late;
        }
        match self.take(id, 0) {
            Some(waiting) => Answer::Other(waiting),
            None => Answer::None,
        }
    }

    /// Which command of this id and name is answered so, and the line up to which the agent must have read for that.
    fn best(&mut self, id: u64, name: u64, success: bool) -> Option<(usize, u64)> {
        let list = self.waiting.get(&id)?;
        let named = || list.iter().enumerate().filter(|(_, it)| it.name == name);
        let (first, oldest) = named().next()?;
        let broken = named().find(|(_, it)| it.broken);
        let whole = named().find(|(_, it)| !it.broken);
        let index = match (broken, whole) {
            // A broken one is only ever refused, at once or later, so refusals are its own as far as they go.
            (Some((index, _)), Some(_)) if !success => index,
            (Some(_), Some((index, _))) => index,
            (None | Some(_), _) => first,
        };
        if broken.is_some() {
            for (_, it) in named() {
                self.serial.remove(&it.number);
            }
        }
        Some((index, oldest.number))
    }

    /// A prompt is refused, or one of its id failed that was accepted.
    fn may_be_late(&mut self, id: u64, name: u64, place: Place) {
        let Some(list) = self.accepted.get_mut(&id) else {
            return;
        };
        let Some(prompt) = list.iter_mut().find(|prompt| !prompt.failed) else {
            return;
        };
        prompt.failed = true;
        if self.refused.len() < MOST_REFUSED {
            self.refused.push((id, name, place));
        } else {
            self.unsure = true;
        }
    }

    /// A command of that name that waits under any id: older programs leave the id out where they don't know the
    /// command.
    pub(super) fn answer_unknown(&mut self, name: u64) -> bool {
        let found = self.waiting.iter().find_map(|(id, list)| {
            let index = list.iter().position(|waiting| waiting.name == name)?;
            Some((*id, index))
        });
        found.and_then(|(id, index)| self.take(id, index)).is_some()
    }

    /// A prompt was accepted.
    pub(super) fn accept(&mut self, id: u64, place: Place) {
        if self.accepted_count >= MOST {
            self.unsure = true;
            return;
        }
        self.accepted_count += 1;
        self.accepted.entry(id).or_default().push(Accepted {
            place,
            failed: false,
        });
    }

    /// A prompt has ended. False: none of this id was accepted.
    pub(super) fn end(&mut self, id: u64) -> bool {
        let Some(list) = self.accepted.get_mut(&id) else {
            return false;
        };
        if list.is_empty() {
            return false;
        }
        let owed = list.iter().position(|prompt| !prompt.failed);
        list.remove(owed.unwrap_or(0));
        if list.is_empty() {
            self.accepted.remove(&id);
        }
        self.accepted_count -= 1;
        true
    }

    /// The prompts that were accepted and haven't ended; they are forgotten.
    pub(super) fn left(&mut self) -> Option<Accepted> {
        let left = self
            .accepted
            .values()
            .flatten()
            .find(|prompt| !prompt.failed)
            .copied();
        self.accepted.clear();
        self.accepted_count = 0;
        self.refused.clear();
        left
    }

    /// The first command that got no response.
    pub(super) fn unanswered(&self) -> Option<Waiting> {
        let waiting = self
            .waiting
            .values()
            .flatten()
            .filter(|waiting| !waiting.excused);
        waiting.min_by_key(|waiting| waiting.number).copied()
    }
}
