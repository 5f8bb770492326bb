//! Ids that were seen, in memory that doesn't grow: open ones, and the last closed ones, all as hashes.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most ids that are remembered as closed, and as open.
const MOST: usize = 65_536;

/// A hash of an id. Two ids of one hash would be taken for the same: one chance in 2^32 among as many as are kept.
pub(in crate::protocol) fn hash(id: &str) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in id.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    state ^= state >> 32;
    state.wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Known {
    Open,
    Closed,
    /// Never seen.
    Never,
    /// Never seen, or so long ago that it is forgotten.
    Unknown,
}

/// Ids with what belongs to each open one.
#[derive(Debug)]
pub(in crate::protocol) struct Ids<T> {
    open: BTreeMap<u64, T>,
    closed: BTreeSet<u64>,
    order: VecDeque<u64>,
    /// Some ids were forgotten, or stood in lines that couldn't be read.
    unsure: bool,
}

impl<T> Default for Ids<T> {
    fn default() -> Self {
        Ids {
            open: BTreeMap::new(),
            closed: BTreeSet::new(),
            order: VecDeque::new(),
            unsure: false,
        }
    }
}

impl<T> Ids<T> {
    pub(in crate::protocol) fn known(&self, id: u64) -> Known {
        if self.open.contains_key(&id) {
            Known::Open
        } else if self.closed.contains(&id) {
            Known::Closed
        } else if self.unsure {
            Known::Unknown
        } else {
            Known::Never
        }
    }

    pub(in crate::protocol) fn open(&mut self, id: u64, value: T) {
        if self.open.len() >= MOST {
            self.unsure = true;
        } else {
            self.open.insert(id, value);
        }
    }

    pub(in crate::protocol) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.open.get_mut(&id)
    }

    /// Closes an id, open or not.
    pub(in crate::protocol) fn close(&mut self, id: u64) -> Option<T> {
        let value = self.open.remove(&id);
        if self.closed.insert(id) {
            self.order.push_back(id);
            if self.order.len() > MOST
                && let Some(oldest) = self.order.pop_front()
            {
                self.closed.remove(&oldest);
                self.unsure = true;
            }
        }
        value
    }

    /// Closes what is open; gives their number and the first one's value.
    pub(in crate::protocol) fn close_all(&mut self) -> (usize, Option<T>) {
        let mut first = None;
        let mut count = 0;
        while let Some((&id, _)) = self.open.first_key_value() {
            count += 1;
            let value = self.close(id);
            first = first.or(value);
        }
        (count, first)
    }

    /// What is open, with its ids.
    pub(in crate::protocol) fn entries(&self) -> impl Iterator<Item = (u64, &T)> {
        self.open.iter().map(|(&id, value)| (id, value))
    }

    pub(in crate::protocol) fn iter(&self) -> impl Iterator<Item = &T> {
        self.open.values()
    }

    /// A line with an id couldn't be read.
    pub(in crate::protocol) fn blur(&mut self) {
        self.unsure = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn memory_stays_bounded_and_what_is_forgotten_is_unknown() {
        let mut ids = Ids::default();
        for number in 0..MOST as u64 + 10 {
            ids.open(hash(&format!("c{number}")), ());
            ids.close(hash(&format!("c{number}")));
        }
        assert_eq!((ids.closed.len(), ids.order.len()), (MOST, MOST));
        assert_eq!(ids.known(hash("c0")), Known::Unknown);
        assert_eq!(ids.known(hash("c20")), Known::Closed);
        for number in 0..MOST as u64 + 10 {
            ids.open(number, ());
        }
        assert_eq!(ids.open.len(), MOST);
    }
}
