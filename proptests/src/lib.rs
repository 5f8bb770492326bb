//! Scenarios, a simulated world and laws, for testing agents and machines that speak the five protocols.
//!
//! * [`scenario`]: any bytes are a configuration and a list of steps, and a text that a person can read. The one
//!   decoder feeds property tests, whose bytes shrink, and fuzzers.
//! * [`world`]: host, Client, a disturbed pipe, the observer, Server, agent and driver in memory, on one virtual clock.
//!   [`world::run`] plays bytes; [`world::play_ends`] plays your own agent, or another protocol
//!   ([`world::Speaks`]). Live-lock and dead-lock are findings, with the whole story.
//! * [`mod@reference`]: a model that is simpler than what it judges, and predicts what may be seen (TW-01 … TW-10).
//! * [`laws`]: L1 – L10 as functions over your own machine; [`laws::check`] holds all of ours to them.
//! * [`faults`]: an agent with a fault put in on purpose, to see who finds it.
//! * [`fuzz`]: targets for fuzzers: any bytes, one invariant.
//! * [`script`], [`cases`]: what hosts, models, tools, hooks and disks do; small inputs after public bug reports.
//!
//! Everything here takes an agent as [`turnwire::vocab::Agent`] and knows nothing of how it works. Yours is tested like
//! this:
//!
//! ```
//! use turnwire::session::config::Gates;
//! use turnwire::vocab::*;
//! use turnwire_proptests::faults::{Twist, Twisted};
//! use turnwire_proptests::reference::Judged;
//! use turnwire_proptests::scenario::Scenario;
//! use turnwire_proptests::world::{By, Said, Speaks, World, START, play_agent};
//! # use turnwire::{protocol::openmax::Openmax, session::Session, vocab::laws::Scope};
//!
//! // A host, a model and a clock, as a text. Any bytes will do, too: `Scenario::decode`.
//! let scenario = Scenario::parse(
//!     "turnwire scenario 1
//! set world agent
//! > prompt if-idle
//! + model 0 text \"hello \"
//! + model 0 failed server reached
//! @ jump
//! + answer 0 read
//! + tool 0 ok
//! ",
//! )?;
//!
//! // Your agent in its place. Here it is ours, and it forgets the ends of its turns.
//! struct Forgets;
//! impl Twist for Forgets {
//!     fn output(&mut self, said: Said) -> Vec<Said> {
//!         let end = matches!(said.what(), Some(What::TurnEnded { .. }));
//!         if end { vec![] } else { vec![said] }
//!     }
//! }
//! # let session = Session::new(scenario.setup.session(), Box::new(Openmax::info()), START);
//! let agent = Twisted::new(session, Forgets);
//! let world = World::new(agent, Scope::Session, START);
//!
//! let report = play_agent(&scenario, world, Judged::Session(Gates::default()));
//! assert!(report.has(By::Checker, "S-15"), "{report}");
//! // The report is a scenario itself, with what was said in its comments.
//! assert_eq!(Scenario::parse(&report.to_string())?, scenario);
//! # Ok::<(), turnwire_proptests::script::Unreadable>(())
//! ```

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
