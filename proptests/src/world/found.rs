//! What was found wrong, and a report that a person can read.

use std::fmt;

use crate::{reference::Broken, scenario::Scenario};

/// Who found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The checker of the neutral stream, at the agent.
    Checker,
    /// The driver of the agent: laws and invariants that only it can see.
    Driver,
    /// The reference model, at the agent.
    Reference,
    /// The checker of the neutral stream, at the host's Client.
    HostChecker,
    /// The reference model, at the host's Client.
    HostReference,
    /// The observer between the two.
    Observer,
    /// The host's Client, of the agent's lines.
    Client,
    /// Whoever compares what the two ends have seen.
    View,
    /// The drive itself: nothing moves any more, or it never comes to rest.
    Drive,
}

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Who found it.
    pub by: By,
    /// The law, guarantee, invariant or rule: `L3`, `TW-05`, `S-20`, `OM-12.a`, `dead-lock`, `live-lock`.
    pub id: String,
    /// What.
    pub text: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.by, self.text)
    }
}

impl Found {
    /// Words that begin with the id of a law, or hold it behind the number of an output.
    pub(super) fn new(by: By, text: impl Into<String>) -> Self {
        let text = text.into();
        let words = text.split([':', ' ']).filter(|word| !word.is_empty());
        let skipped = if text.starts_with("output ") { 2 } else { 0 };
        let id = words.clone().nth(skipped).unwrap_or_default().to_owned();
        Found { by, id, text }
    }

    pub(super) fn broken(by: By, broken: &Broken) -> Self {
        Found {
            by,
            id: broken.id.to_owned(),
            text: broken.to_string(),
        }
    }
}

/// A scenario that was played, and everything that was wrong with it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario.
    pub scenario: Scenario,
    /// What was found.
    pub found: Vec<Found>,
    /// What was said, each with the step behind which it was said; `None`: before the first.
    pub said: Vec<(Option<usize>, String)>,
    /// Steps, and where the agent and its host stood at the end.
    pub end: String,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether this law, guarantee or rule was found broken by this one.
    pub fn has(&self, by: By, id: &str) -> bool {
        self.found
            .iter()
            .any(|found| found.by == by && found.id == id)
    }

    /// Panics with the whole report if something was found: for a test, and for a fuzzer.
    ///
    /// # Panics
    /// If something was found.
    #[track_caller]
    pub fn assert_clean(&self) {
        assert!(self.is_clean(), "\n{self}");
    }
}

/// The scenario with what was said behind each step: it can be [parsed](Scenario::parse) and played again.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.scenario.print_with(|at| {
            let said = self.said.iter().filter(|(step, _)| *step == at);
            said.map(|(_, line)| line.clone()).collect()
        });
        f.write_str(&text)?;
        writeln!(f, "# at the end: {}", self.end)?;
        for found in &self.found {
            writeln!(f, "# found by {found}")?;
        }
        Ok(())
    }
}
