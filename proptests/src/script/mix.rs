//! How often what happens, and a strategy for scripts of it.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::bytes::Source;

/// How often what happens, against the others.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Prompts, in every way of delivery.
    pub prompts: u32,
    /// Prompts withdrawn, promoted, repeated.
    pub queues: u32,
    /// Cancels.
    pub cancels: u32,
    /// Answers to questions.
    pub replies: u32,
    /// Settings and other commands.
    pub commands: u32,
    /// Closes.
    pub closes: u32,
    /// Single pieces of a model's answer, failures among them.
    pub pieces: u32,
    /// Whole answers of a model.
    pub answers: u32,
    /// News of calls.
    pub tools: u32,
    /// Hooks and writes that settle.
    pub settlements: u32,
    /// Effects that settle after they were stopped, or twice.
    pub late: u32,
    /// Time.
    pub time: u32,
    /// Crashes.
    pub faults: u32,
    /// Compactions by hand.
    pub compactions: u32,
}

impl Mix {
    /// Everything.
    pub const ALL: Mix = Mix {
        prompts: 12,
        queues: 4,
        cancels: 6,
        replies: 9,
        commands: 5,
        closes: 1,
        pieces: 14,
        answers: 14,
        tools: 16,
        settlements: 14,
        late: 6,
        time: 10,
        faults: 1,
        compactions: 1,
    };

    /// Requests that fail and are tried again.
    pub const RETRIES: Mix = Mix {
        pieces: 60,
        time: 30,
        answers: 4,
        cancels: 3,
        settlements: 30,
        closes: 0,
        ..Mix::ALL
    };

    /// Calls and questions.
    pub const CALLS: Mix = Mix {
        answers: 40,
        tools: 40,
        replies: 40,
        settlements: 40,
        pieces: 3,
        cancels: 2,
        commands: 3,
        time: 5,
        closes: 0,
        faults: 0,
        ..Mix::ALL
    };

    /// Hooks and writes.
    pub const HOOKS: Mix = Mix {
        answers: 30,
        settlements: 60,
        tools: 20,
        pieces: 3,
        cancels: 2,
        time: 4,
        closes: 0,
        faults: 0,
        ..Mix::ALL
    };

    /// Prompts that wait.
    pub const QUEUES: Mix = Mix {
        prompts: 40,
        queues: 12,
        closes: 0,
        ..Mix::ALL
    };

    /// Cancels, in every phase.
    pub const CANCELS: Mix = Mix {
        cancels: 20,
        late: 12,
        replies: 4,
        ..Mix::ALL
    };

    /// Histories that grow, and are summarised.
    pub const COMPACTIONS: Mix = Mix {
        compactions: 8,
        answers: 40,
        tools: 40,
        settlements: 20,
        pieces: 20,
        closes: 0,
        faults: 1,
        ..Mix::ALL
    };

    /// Commands of all kinds, those that run beside the turn among them.
    pub const COMMANDS: Mix = Mix {
        commands: 60,
        settlements: 30,
        late: 20,
        ..Mix::ALL
    };

    /// Closes, in every phase.
    pub const CLOSES: Mix = Mix {
        closes: 10,
        ..Mix::ALL
    };
}

/// A script of up to `len` actions, a prompt before them: [decoded](action) from bytes, which shrink.
pub fn scripts(mix: Mix, len: usize) -> impl Strategy<Value = Vec<Action>> {
    let blocks = vec(any::<[u8; ACTION_BYTES]>(), 1..len);
    (any::<u8>(), blocks).prop_map(move |(first, blocks)| {
        let prompt = Action::Prompt(decode::deliver(&mut Source::new(&[first])));
        let rest = blocks
            .iter()
            .map(|block| action(&mix, &mut Source::new(block)));
        std::iter::once(prompt).chain(rest).collect()
    })
}
