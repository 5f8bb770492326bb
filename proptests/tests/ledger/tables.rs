//! What is promised, and by whom.

use std::collections::BTreeSet;

use super::{agentx, openseek};
use turnwire::protocol::agentx::Agentx;
use turnwire::protocol::observer::{Observed, Rule, Unseen};
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::protocol::openseek::Openseek;
use turnwire::vocab::laws::{GUARANTEES, Guarantee, INVARIANTS, LAWS};
use turnwire_proptests::cases;

/// The stories of the session that are told step by step: T-01 to T-44.
const STORIES: std::ops::RangeInclusive<u32> = 1..=44;

/// Cases that nothing in the workspace can play yet, and why.
pub const UNTESTED_CASES: &[(&str, &str)] = &[];

/// Promises about what nothing in the workspace does yet, and why no test can break them.
pub const UNTESTED_PROMISES: &[(&str, &str)] = &[];

/// Why no test can break this promise.
pub fn why_untested(id: &str) -> Option<&'static str> {
    let mut all = UNTESTED_PROMISES.iter();
    all.find(|(untested, _)| *untested == id)
        .map(|(_, why)| *why)
}

/// Promises that belong together.
pub struct Part {
    /// The protocol, on the command line.
    pub protocol: Option<&'static str>,
    /// What the page calls it.
    pub heading: &'static str,
    pub promises: &'static [Guarantee],
    /// What the observer judges of them.
    pub rules: &'static [Rule],
    pub unseen: &'static [Unseen],
    /// What is still owed in part, and why: these needn't be named by a test, all others must. Nothing owed: it is whole.
    pub owed: &'static [(&'static str, &'static str)],
}

/// What omp owes.
const OMP_OWES: &[(&str, &str)] = &[];

/// Protocols that are being built: their ids are in no table yet.
const COMING: &[&str] = &["SP-"];

/// Whether an id belongs to a protocol that is being built.
pub fn is_coming(id: &str) -> bool {
    COMING.iter().any(|prefix| id.starts_with(prefix))
}

impl Part {
    /// Whether nothing is owed.
    pub fn is_whole(&self) -> bool {
        self.owed.is_empty()
    }

    /// Why this promise is owed in part.
    pub fn owes(&self, id: &str) -> Option<&'static str> {
        let owed = self.owed.iter().find(|(owed, _)| *owed == id);
        owed.map(|(_, why)| *why)
    }
}

/// Every table. A protocol is one line.
pub fn parts() -> Vec<Part> {
    vec![
        protocol::<Openmax>(&[]),
        protocol::<Omp>(OMP_OWES),
        protocol::<Agentx>(agentx::OWES),
        Part {
            owed: agentx::SCENES_OWE,
            ..part("agentx: acceptance scenarios", agentx::SCENARIOS)
        },
        part("agentx: permissions", agentx::PERMISSIONS),
        part("agentx: all of its tables", agentx::TABLES),
        protocol::<Openseek>(openseek::OWES),
        part("Any session", GUARANTEES),
        part("Every machine", LAWS),
        part("The session's invariants", INVARIANTS),
    ]
}

fn protocol<P: Observed>(owed: &'static [(&'static str, &'static str)]) -> Part {
    Part {
        protocol: Some(P::SPEC.name),
        heading: P::SPEC.name,
        promises: P::GUARANTEES,
        rules: P::RULES,
        unseen: P::UNSEEN,
        owed,
    }
}

fn part(heading: &'static str, promises: &'static [Guarantee]) -> Part {
    Part {
        protocol: None,
        heading,
        promises,
        rules: &[],
        unseen: &[],
        owed: &[],
    }
}

/// Every id that a test may name.
pub fn known() -> BTreeSet<String> {
    let parts = parts();
    let promises = parts.iter().flat_map(|part| part.promises);
    let mut known: BTreeSet<String> = promises.map(|promise| promise.id.to_owned()).collect();
    known.extend(STORIES.map(|number| format!("T-{number:02}")));
    known.extend(cases().into_iter().map(|(short, _)| short));
    known
}

/// The cases from the field: the short name, such as `F01`, and the case.
pub fn cases() -> Vec<(String, cases::Case)> {
    let all = cases::all().unwrap_or_else(|fault| panic!("ledger: {fault}"));
    all.into_iter()
        .map(|case| {
            let short = case.id.split('-').next().unwrap_or_default().to_owned();
            (short, case)
        })
        .collect()
}

#[test]
fn an_id_is_in_one_table_and_in_order() {
    let mut seen = BTreeSet::new();
    for part in parts() {
        for (id, why) in part.owed {
            assert!(
                part.promises.iter().any(|promise| promise.id == *id),
                "{id}"
            );
            assert!(!why.contains('|') && why.len() > 10, "{id}");
        }
        for promise in part.promises {
            assert!(seen.insert(promise.id), "{} is there twice", promise.id);
            let says = promise.says;
            assert!(says.ends_with('.') && !says.contains('|'), "{says}");
            let test = promise.id.to_lowercase().replace('-', "_") + "_x";
            assert_eq!(super::ids::of(&test), [promise.id], "{test}");
        }
        let rest = part.rules.iter().map(|rule| rule.id.split('.').next());
        for id in rest.chain(part.unseen.iter().map(|unseen| Some(unseen.id))) {
            let id = id.unwrap_or_default();
            assert!(part.promises.iter().any(|promise| promise.id == id), "{id}");
        }
    }
}
