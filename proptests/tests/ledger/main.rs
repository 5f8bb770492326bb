//! The ledger: every promise is named by a test, every id in a test's name is one that there is, and `docs/proof.md`
//! says which is which.
//!
//! A test names ids at the beginning of its name, in lower case: `om_07_…`, `f04_om_10_…`, `om_15_16_…`. To add a
//! protocol, add it to [`tables::parts`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail"
)]

mod agentx;
mod ids;
mod openseek;
mod page;
mod scenes;
mod scenes_agentx;
mod sources;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sources::Test;

/// The workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("a workspace around it").to_owned()
}

fn tests() -> &'static [Test] {
    static TESTS: OnceLock<Vec<Test>> = OnceLock::new();
    TESTS.get_or_init(|| sources::tests(&root()).unwrap_or_else(|error| panic!("ledger: {error}")))
}

/// Fails with a line for each.
#[track_caller]
fn none(wrong: &[String]) {
    let lines: Vec<String> = wrong.iter().map(|line| format!("ledger: {line}")).collect();
    assert!(wrong.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn every_promise_that_isnt_owed_is_named_by_a_test() {
    let named: BTreeSet<String> = tests()
        .iter()
        .flat_map(|test| ids::of(&test.name))
        .collect();
    let parts = tables::parts();
    let all = parts
        .iter()
        .flat_map(|part| part.promises.iter().map(move |promise| (part, promise)));
    let missing: Vec<String> = all
        .filter(|(part, promise)| part.owes(promise.id).is_none())
        .filter_map(|(_, promise)| {
            let test = promise.id.to_lowercase().replace('-', "_");
            match (tables::why_untested(promise.id), named.contains(promise.id)) {
                (None, false) => Some(format!(
                    "{} has no test: none begins with {test}_",
                    promise.id
                )),
                (Some(_), true) => Some(format!(
                    "{} has a test and a reason to have none",
                    promise.id
                )),
                (None, true) | (Some(_), false) => None,
            }
        })
        .collect();
    none(&missing);
}

#[test]
fn a_test_names_only_ids_that_there_are() {
    let known = tables::known();
    let mut unknown = Vec::new();
    for test in tests() {
        for id in ids::of(&test.name) {
            if !known.contains(&id) && !tables::is_coming(&id) {
                unknown.push(format!(
                    "{}: {} names {id}, which there isn't",
                    test.path, test.name
                ));
            }
        }
    }
    none(&unknown);
}

#[test]
fn every_case_from_the_field_is_named_by_a_test() {
    let named: BTreeSet<String> = tests()
        .iter()
        .flat_map(|test| ids::of(&test.name))
        .collect();
    let mut wrong = Vec::new();
    for (short, case) in tables::cases() {
        let excused = tables::UNTESTED_CASES.iter().any(|(id, _)| *id == short);
        if excused == named.contains(&short) {
            let test = short.to_lowercase();
            wrong.push(if excused {
                format!("{} has a test and a reason to have none", case.id)
            } else {
                format!("{} has no test: none begins with {test}_", case.id)
            });
        }
    }
    none(&wrong);
}

#[test]
fn every_scenario_has_its_tests_in_memory_and_through_the_program() {
    let source = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    none(&scenes::wrong(tests(), &source));
}

#[test]
fn what_is_whole_is_called_so_in_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut wrong = Vec::new();
    for part in tables::parts() {
        let Some(protocol) = part.protocol else {
            continue;
        };
        // A row may be about presets of one protocol: "agentx and claude as the agent".
        let begin = format!("| {protocol} ");
        let row = readme
            .lines()
            .find(|line| line.starts_with(&begin) && line.contains("as the agent"));
        let Some(row) = row else {
            wrong.push(format!("{protocol} has no row in the table of README.md"));
            continue;
        };
        if row.contains("the whole protocol") != part.is_whole() {
            wrong.push(format!(
                "{protocol}: the table of README.md and the table of the ledger differ on whether it is whole"
            ));
        }
    }
    none(&wrong);
}

#[test]
fn the_page_is_the_one_that_the_sources_give() {
    let path = root().join("docs/proof.md");
    let kept = std::fs::read_to_string(&path).unwrap();
    let page = page::renewed(&kept, tests()).unwrap_or_else(|fault| panic!("ledger: {fault}"));
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    } else if kept != page {
        let line = kept.lines().zip(page.lines()).position(|(a, b)| a != b);
        let line = line.map_or(String::new(), |line| format!(" from line {} on", line + 1));
        none(&[format!(
            "docs/proof.md is out of date{line}: run this test with TURNWIRE_BLESS=1"
        )]);
    }
}
