//! Scenarios, laws and fixtures for testing agents and machines that speak the five protocols.

pub mod bytes;
pub mod cases;
pub mod reference;
pub mod scenario;
pub mod script;
pub mod world;

/// So many cases of a property test, times what the environment variable `TURNWIRE_CASES` says.
pub fn cases_times(cases: u32) -> u32 {
    let times = std::env::var("TURNWIRE_CASES").ok();
    let times = times.and_then(|times| times.parse().ok()).unwrap_or(1);
    cases.saturating_mul(times)
}
