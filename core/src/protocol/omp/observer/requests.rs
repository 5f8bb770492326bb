//! Lists of names that responses told.

use alloc::collections::BTreeSet;

use crate::protocol::observer::hash;

/// The most names.
const MOST: usize = 65_536;

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
