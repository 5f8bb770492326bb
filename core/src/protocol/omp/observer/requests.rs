//! Requests of the agent by their ids, and lists of names that responses told.

use alloc::collections::{BTreeSet, VecDeque};

use crate::protocol::observer::{Ids, Known, hash};

/// The most answers that are remembered as under way, and the most names.
const MOST: usize = 65_536;

/// What an agent's cancel of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// The request is open, or its answer may not have been read yet, or nobody knows.
    Fine,
    /// The request was cancelled before, or its answer has been read.
    Closed,
    /// There was none.
    Never,
}

/// Requests that the host answers and the agent cancels. The two can cross: a cancel may name what the host has
/// answered, until the agent is known to have read that.
#[derive(Debug)]
pub(super) struct Requests<T> {
    ids: Ids<T>,
    /// The answers that the agent may not have read: the number of the host's line, and the id.
    under_way: VecDeque<(u64, u64)>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests {
            ids: Ids::default(),
            under_way: VecDeque::new(),
        }
    }
}

impl<T> Requests<T> {
    pub(super) fn known(&self, id: u64) -> Known {
        self.ids.known(id)
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.ids.get_mut(id)
    }

    pub(super) fn open(&mut self, id: u64, value: T) {
        self.ids.open(id, value);
    }

    pub(super) fn blur(&mut self) {
        self.ids.blur();
    }

    /// The host answers, in its line of this number.
    pub(super) fn answer(&mut self, id: u64, number: u64) -> Option<T> {
        let value = self.ids.close(id)?;
        self.under_way.push_back((number, id));
        if self.under_way.len() > MOST {
            self.under_way.pop_front();
        }
        Some(value)
    }

    /// The agent has read the host's lines up to this one.
    pub(super) fn read_to(&mut self, number: u64) {
        while let Some(&(line, _)) = self.under_way.front()
            && line <= number
        {
            self.under_way.pop_front();
        }
    }

    /// The agent cancels.
    pub(super) fn cancel(&mut self, id: u64) -> Cancelled {
        let known = self.ids.known(id);
        self.ids.close(id);
        match known {
            Known::Open | Known::Unknown => Cancelled::Fine,
            Known::Never => Cancelled::Never,
            Known::Closed => {
                let crossed = self.under_way.iter().position(|&(_, answer)| answer == id);
                match crossed.and_then(|at| self.under_way.remove(at)) {
                    Some(_) => Cancelled::Fine,
                    None => Cancelled::Closed,
                }
            }
        }
    }
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is set.
    Now,
    /// It was set once.
    Before,
    /// Nobody has said it.
    Never,
    /// Somebody may have said it.
    Unknown,
}

/// The names that responses told, as hashes. Each list replaces the one before.
#[derive(Debug, Default)]
pub(super) struct Names {
    now: BTreeSet<u64>,
    before: BTreeSet<u64>,
    /// A list wasn't read, or too much was told.
    unsure: bool,
}

impl Names {
    /// A list.
    pub(super) fn set(&mut self, names: impl Iterator<Item = u64>) {
        self.before.append(&mut self.now);
        self.now.extend(names);
        self.unsure = false;
        if self.before.len() > MOST {
            self.before.clear();
        }
    }

    /// A list that nobody could read.
    pub(super) fn blur(&mut self) {
        self.unsure = true;
    }

    pub(super) fn told(&self, name: &str) -> Told {
        let name = hash(name);
        if self.now.contains(&name) {
            Told::Now
        } else if self.unsure {
            Told::Unknown
        } else if self.before.contains(&name) {
            Told::Before
        } else {
            Told::Never
        }
    }
}
