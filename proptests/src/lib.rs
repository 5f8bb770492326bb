//! Scenarios, laws and fixtures for testing agents and machines that speak the five protocols.

use proptest::test_runner::{Config, RngSeed};

pub mod bytes;
pub mod cases;
pub mod laws;
pub mod reference;
pub mod scenario;
pub mod script;
pub mod world;

/// The configuration of a property test with so many cases: always the same ones, without files of failures.
///
/// The environment variable `TURNWIRE_CASES` makes it so many times as many, `TURNWIRE_SEED` other ones.
pub fn config(cases: u32) -> Config {
    fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    Config {
        cases: cases.saturating_mul(number("TURNWIRE_CASES").unwrap_or(1)),
        rng_seed: RngSeed::Fixed(number("TURNWIRE_SEED").unwrap_or(0)),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    }
}
