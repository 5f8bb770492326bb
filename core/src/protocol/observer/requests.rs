//! Requests of the agent by their ids.

use alloc::collections::VecDeque;

use super::{Ids, Known};

/// The most answers that are remembered as under way.
const MOST: usize = 65_536;

/// What an agent's cancel of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Cancelled {
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
pub(in crate::protocol) struct Requests<T> {
    ids: Ids<T>,
    /// The answers that the agent may not have read: the number of the host's line, the id, and what was asked.
    under_way: VecDeque<(u64, u64, T)>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Requests {
            ids: Ids::default(),
            under_way: VecDeque::new(),
        }
    }
}

impl<T: Copy> Requests<T> {
    pub(in crate::protocol) fn known(&self, id: u64) -> Known {
        self.ids.known(id)
    }

    pub(in crate::protocol) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.ids.get_mut(id)
    }

    pub(in crate::protocol) fn open(&mut self, id: u64, value: T) {
        self.ids.open(id, value);
    }

    pub(in crate::protocol) fn blur(&mut self) {
        self.ids.blur();
    }

    /// The host answers, in its line of this number.
    pub(in crate::protocol) fn answer(&mut self, id: u64, number: u64) -> Option<T> {
        let value = self.ids.close(id)?;
        self.under_way.push_back((number, id, value));
        if self.under_way.len() > MOST {
            self.under_way.pop_front();
        }
        Some(value)
    }

    /// The agent has read the host's lines up to this one.
    pub(in crate::protocol) fn read_to(&mut self, number: u64) {
        while let Some(&(line, ..)) = self.under_way.front()
            && line <= number
        {
            self.under_way.pop_front();
        }
    }

    /// What is open, with its ids.
    pub(in crate::protocol) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.ids.entries()
    }

    /// The agent cancels. What was asked, unless nobody knows it any more.
    pub(in crate::protocol) fn cancel(&mut self, id: u64) -> (Cancelled, Option<T>) {
        let known = self.ids.known(id);
        let open = self.ids.close(id);
        match known {
            Known::Open | Known::Unknown => (Cancelled::Fine, open),
            Known::Never => (Cancelled::Never, None),
            Known::Closed => {
                let crossed = self
                    .under_way
                    .iter()
                    .position(|&(_, answer, _)| answer == id);
                match crossed.and_then(|at| self.under_way.remove(at)) {
                    Some((.., value)) => (Cancelled::Fine, Some(value)),
                    None => (Cancelled::Closed, None),
                }
            }
        }
    }
}
