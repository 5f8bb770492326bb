//! What is promised, and by whom.

use std::collections::BTreeSet;

use turnwire::protocol::observer::{Observed, Rule, Unseen};
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::vocab::laws::{GUARANTEES, Guarantee, INVARIANTS, LAWS};
use turnwire_proptests::cases;

/// The stories of the session that are told step by step: T-01 to T-44.
const STORIES: std::ops::RangeInclusive<u32> = 1..=44;

/// Cases that nothing in the workspace can play yet, and why.
pub const UNTESTED_CASES: &[(&str, &str)] = &[];

/// Promises about what nothing in the workspace does yet, and why no test can break them.
pub const UNTESTED_PROMISES: &[(&str, &str)] = &[
    (
        "S-54",
        "no turn is held: what was detached is never waited for",
    ),
    ("S-56", "no goal and no job begins a turn"),
    ("S-58", "the session takes no goals"),
];

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
    /// Whether each must be named by a test.
    pub whole: bool,
}

/// Every table. A protocol is one line.
pub fn parts() -> Vec<Part> {
    vec![
        protocol::<Openmax>(true),
        protocol::<Omp>(false),
        part("Any session", GUARANTEES, true),
        part("Every machine", LAWS, true),
        part("The session's invariants", INVARIANTS, true),
    ]
}

fn protocol<P: Observed>(whole: bool) -> Part {
    Part {
        protocol: Some(P::SPEC.name),
        heading: P::SPEC.name,
        promises: P::GUARANTEES,
        rules: P::RULES,
        unseen: P::UNSEEN,
        whole,
    }
}

fn part(heading: &'static str, promises: &'static [Guarantee], whole: bool) -> Part {
    Part {
        protocol: None,
        heading,
        promises,
        rules: &[],
        unseen: &[],
        whole,
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
