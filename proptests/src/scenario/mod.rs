//! Scenarios: one byte string, one configuration and one list of steps, for the whole [world](crate::world).
//!
//! [`Scenario::decode`] is the only decoder. A property test feeds it from [`bytes`], which shrink; a fuzzer feeds it
//! from what it mutates. Nothing is rejected: a step names what it acts on by a number taken modulo what there is when
//! it comes, ids are minted by the world that plays, and bytes that are missing count as zeros.
//!
//! A scenario is also a text that a person reads and writes ([`Scenario::print`], [`Scenario::parse`]):
//!
//! ```text
//! turnwire scenario 1
//! set mode auto
//! > prompt if-idle
//! # what the world said may stand here, and is skipped
//! + answer 0 read write
//! = cut agent 3
//! @ pass 5000000
//! ```
//!
//! `set` configures, `>` is the host, `+` the agent's surroundings, `@` time, `=` what lies between the two ends.

mod setup;
mod text;

use proptest::{collection::vec, prelude::*};
use turnwire::{protocol::observer::Dir, vocab::Signal};

pub use self::setup::{Knob, Setup};
use crate::{
    bytes::Source,
    script::{ACTION_BYTES, Action, Mix, action},
};

/// A configuration, and what happens then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// How everything is set up, and how it is brought to its end.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// At one of the two ends, or in time.
    Act(Action),
    /// Between the two ends. An agent that is played alone has none of it.
    Wire(Wire),
}

/// What happens between the two ends; a direction is named by the side that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Somebody else writes a bad line into the stream of this side.
    Bad(Dir, u8),
    /// From now on what this side writes comes in pieces of so many bytes; 0: as it was written.
    Cut(Dir, u8),
    /// From now on what this side writes comes so many microseconds later.
    Delay(Dir, u64),
    /// What this side writes isn't read any more.
    Stop(Dir),
    /// What this side writes is read again.
    Go(Dir),
    /// The agent's input ends, and its host didn't want that.
    End,
    /// The agent's process gets a signal.
    Signal(Signal),
    /// The agent's process is gone, perhaps within a line.
    Kill,
}

/// The bytes that the configuration is read from.
pub const SETUP_BYTES: usize = 24;

/// The bytes that one step is read from.
pub const STEP_BYTES: usize = 1 + ACTION_BYTES;

/// The most steps that bytes are made into.
pub const MOST_STEPS: usize = 400;

impl Scenario {
    /// Reads a scenario from any bytes.
    pub fn decode(data: &[u8]) -> Self {
        Self::decode_with(&Mix::ALL, data)
    }

    /// Reads a scenario from any bytes, with another mix of actions.
    pub fn decode_with(mix: &Mix, data: &[u8]) -> Self {
        let mut source = Source::new(data);
        let setup = Setup::decode(&mut source.part(SETUP_BYTES));
        let mut steps = Vec::new();
        while !source.is_empty() && steps.len() < MOST_STEPS {
            steps.push(step(mix, &mut source.part(STEP_BYTES)));
        }
        Scenario { setup, steps }
    }
}

/// Most steps are actions; every eighth or so lies between the ends.
fn step(mix: &Mix, s: &mut Source<'_>) -> Step {
    if s.byte() < 224 {
        return Step::Act(action(mix, s));
    }
    Step::Wire(match s.below(20) {
        0..=3 => Wire::Cut(dir(s), s.of([0, 1, 7, 100])),
        4..=6 => Wire::Delay(dir(s), s.of([0, 1_000, 60_000, 2_000_000])),
        7..=9 => Wire::Stop(dir(s)),
        10..=12 => Wire::Go(dir(s)),
        13..=16 => Wire::Bad(dir(s), s.byte()),
        17 => Wire::Signal(s.of([Signal::Interrupt, Signal::Terminate, Signal::Hangup])),
        18 => Wire::End,
        _ => match s.flag() {
            true => Wire::Kill,
            false => Wire::End,
        },
    })
}

fn dir(s: &mut Source<'_>) -> Dir {
    s.of([Dir::Agent, Dir::Host])
}

/// Bytes of up to `steps` steps. They shrink step by step, and each step to a plainer one.
pub fn bytes(steps: usize) -> impl Strategy<Value = Vec<u8>> {
    let setup = vec(any::<u8>(), SETUP_BYTES);
    (setup, vec(any::<[u8; STEP_BYTES]>(), 0..=steps)).prop_map(|(mut bytes, steps)| {
        bytes.extend(steps.iter().flatten());
        bytes
    })
}
