//! Whole worlds: both ends of a protocol, a session, and whatever happens around them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

mod agentx;
mod faults;
mod fuzz_seeds;
mod laws;
mod omp;
mod openmax;
mod openseek;
mod reach;
mod splice;
mod work;

use turnwire_proptests::script::Mix;

/// What may happen most in a world: anything, or what one part of the contract is about.
const MIXES: [&Mix; 8] = [
    &Mix::ALL,
    &Mix::HOOKS,
    &Mix::CALLS,
    &Mix::RETRIES,
    &Mix::QUEUES,
    &Mix::CANCELS,
    &Mix::COMPACTIONS,
    &Mix::COMMANDS,
];
