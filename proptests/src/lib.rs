//! Scenarios, a simulated world and laws, for testing agents and machines that speak the five protocols.
//!
//! * [`scenario`]: any bytes are a configuration and a list of steps, and a text that a person can read. The one
//!   decoder feeds property tests, whose bytes shrink, and fuzzers.
//! * [`world`]: host, Client, a disturbed pipe, the observer, Server, agent and driver in memory, on one virtual clock.
//!   [`world::run`] plays bytes. Live-lock and dead-lock are findings, with the whole story.
//! * [`mod@reference`]: a model that is simpler than what it judges, and predicts what may be seen (TW-01 … TW-10).
//! * [`laws`]: L1 – L10 as functions over any machine; [`laws::check`] holds all machines of a scenario to them.
//! * [`faults`]: an agent with a fault put in on purpose, to see who finds it.
//! * [`fuzz`]: targets for fuzzers: any bytes, one invariant.
//! * [`script`], [`cases`]: what hosts, models, tools, hooks and disks do; small inputs after public bug reports.
//!
//! # Your own implementation
//!
//! Nothing here knows how an agent, a protocol or a machine works inside.
//!
//! | you have | you write | and hold it to |
//! |---|---|---|
//! | an agent | [`turnwire::vocab::Agent`] | [`world::play_agent`], and behind any protocol's wire [`world::play_ends`] |
//! | a protocol | [`turnwire::protocol::observer::Observed`] and [`world::Speaks`] | [`world::run_over`], [`laws::check`], the targets of [`fuzz::of`] |
//! | a parser, a decoder, a state machine of any kind | [`laws::Machine`] | each law by itself |
//! | a program in any language | nothing | [`wiretap`] on its pipes, or `turnwire check` |
//!
//! An agent takes inputs and gives outputs; the world is its driver, and tells it of models, tools, hooks, disks and
//! time. This one takes every command and answers none:
//!
//! ```
//! use turnwire::{protocol::openmax::Openmax, vocab::{laws::Scope, *}};
//! use turnwire_proptests::{
//!     reference::Judged,
//!     scenario::Scenario,
//!     world::{By, START, Speaks, Untouched, World, play_ends},
//! };
//!
//! /// Says who it is, and nothing else.
//! struct Mute {
//!     hello: Option<Event>,
//!     lent: Option<Event>,
//! }
//!
//! impl Agent for Mute {
//!     fn handle(&mut self, _: Input<'_>, _: Now) -> Result<(), Misuse> {
//!         Ok(())
//!     }
//!     fn poll_output(&mut self) -> Option<Output<'_>> {
//!         self.lent = Some(self.hello.take()?);
//!         self.lent.as_ref().map(Output::Event)
//!     }
//!     fn poll_timeout(&self) -> Option<Due> {
//!         self.hello.as_ref().map(|hello| Due { at_us: hello.at.mono_us, why: "output" })
//!     }
//!     fn wants_input(&self) -> bool {
//!         true
//!     }
//!     fn wants_bulk(&self) -> bool {
//!         true
//!     }
//!     fn body(&self, _: RunId, _: &Effect) -> Option<EffectBody<'_>> {
//!         None
//!     }
//! }
//!
//! let opened = What::Opened(Box::new(Openmax::info()));
//! let hello = Event { at: START, run: RunId::MAIN, seen: Seen::Real, what: opened };
//! let mute = Mute { hello: Some(hello), lent: None };
//!
//! // A host, a model, the wire and a clock, as a text. Any bytes will do, too: `Scenario::decode`.
//! let scenario = Scenario::parse("turnwire scenario 1\n> prompt if-idle\n= cut host 3\n@ pass 5000000\n")?;
//! let world = World::new(mute, Scope::Any, START);
//! let report = play_ends::<Openmax, _>(&scenario, world, Judged::Client, Box::new(Untouched));
//!
//! // Its driver misses the reply, by invariant S-07.
//! assert!(report.has(By::Driver, "S-07"), "{report}");
//! // The report is a scenario itself, with what was said in its comments.
//! assert_eq!(Scenario::parse(&report.to_string())?, scenario);
//! # Ok::<(), turnwire_proptests::script::Unreadable>(())
//! ```
//!
//! Where somebody is to find a fault in an agent that has none, [`faults`] puts it there.

use proptest::test_runner::{Config, RngSeed};

pub mod bytes;
pub mod cases;
pub mod faults;
pub mod fuzz;
pub mod laws;
pub mod reference;
pub mod scenario;
pub mod script;
pub mod wiretap;
pub mod world;

/// The configuration of a property test with so many cases: always the same ones, without files of failures.
///
/// The environment variable `TURNWIRE_CASES` makes it so many times as many, or with `1/16` so many times fewer, at
/// least one; `TURNWIRE_SEED` makes it other ones.
pub fn config(cases: u32) -> Config {
    fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
        std::env::var(name).ok()?.parse().ok()
    }
    let times = std::env::var("TURNWIRE_CASES").unwrap_or_default();
    Config {
        cases: times_as_many(cases, &times),
        rng_seed: RngSeed::Fixed(number("TURNWIRE_SEED").unwrap_or(0)),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    }
}

/// So many times as many, for a number or `1/number`; as many for anything else.
fn times_as_many(cases: u32, times: &str) -> u32 {
    let fewer = times.strip_prefix("1/").and_then(|by| by.parse().ok());
    match fewer {
        Some(by) => cases.checked_div(by).unwrap_or(cases).max(1),
        None => cases.saturating_mul(times.parse().unwrap_or(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::times_as_many;

    #[test]
    fn a_property_test_plays_more_cases_or_fewer_but_never_none() {
        let many = [
            ("", 64),
            ("3", 192),
            ("1/16", 4),
            ("1/100", 1),
            ("1/0", 64),
            ("x", 64),
        ];
        for (times, cases) in many {
            assert_eq!(times_as_many(64, times), cases, "{times}");
        }
    }
}
