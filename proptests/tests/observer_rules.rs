//! The catalogue of rules: each has a stream that keeps it and one that breaks it, and the page that lists them is
//! the one that the program prints.
//!
//! `fixtures/rules/openmax/RULE.ok.jsonl` keeps the rule, and gives no finding at all of weight. `RULE.bad.jsonl`
//! breaks it, and nothing else; a first row may name other rules that can't but fire (`also`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

mod observer_kit;

use std::collections::BTreeSet;

use observer_kit::*;
use serde_json::Value;
use turnwire::check::From;
use turnwire::protocol::observer::{Dir, Observed, Severity};
use turnwire::protocol::openmax::{Openmax, RULES, UNSEEN, Wire};
use turnwire::protocol::spec;

fn fixture(rule: &str, kind: &str) -> Vec<u8> {
    let path = fixtures("rules/openmax").join(format!("{rule}.{kind}.jsonl"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn also(bytes: &[u8]) -> BTreeSet<String> {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap();
    let row: Value = serde_json::from_slice(first).unwrap();
    let names = row["also"].as_array().cloned().unwrap_or_default();
    names
        .into_iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_stream_that_keeps_the_rule_gives_no_finding() {
    for rule in RULES {
        let result = check(&fixture(rule.id, "ok"), From::Guess, Wire::V6);
        for finding in &result.findings {
            // A host may do what the agent must refuse.
            let harmless = finding.severity == Severity::Info && finding.dir == Dir::Host;
            assert!(
                harmless && finding.rule.id != rule.id,
                "{}: {finding}",
                rule.id
            );
        }
        assert_eq!(result.bad_rows, [0; 0], "{}", rule.id);
        let skipped = result
            .summary
            .skipped
            .iter()
            .any(|(skipped, _)| skipped.id == rule.id);
        assert!(!skipped, "{} is judged", rule.id);
    }
}

#[test]
fn a_stream_that_breaks_the_rule_gives_that_finding_alone() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let bytes = fixture(rule.id, "bad");
        let also = also(&bytes);
        let result = check(&bytes, From::Guess, Wire::V6);
        let of_it = |finding: &&turnwire::protocol::observer::Finding| finding.rule.id == rule.id;
        let worst = result
            .findings
            .iter()
            .filter(of_it)
            .map(|finding| finding.severity)
            .max();
        if worst != Some(rule.severity) {
            wrong.push(format!("{}: {:?}", rule.id, result.ids()));
        }
        for finding in &result.findings {
            if finding.rule.id != rule.id && !also.contains(finding.rule.id) {
                wrong.push(format!("{}: {finding}", rule.id));
            }
        }
        for other in &also {
            if !result
                .findings
                .iter()
                .any(|finding| finding.rule.id == other)
            {
                wrong.push(format!("{}: {other} is named, but doesn't fire", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_no_other_fixtures() {
    let known: BTreeSet<String> = RULES
        .iter()
        .flat_map(|rule| ["ok", "bad"].map(|kind| format!("{}.{kind}.jsonl", rule.id)))
        .collect();
    let found: BTreeSet<String> = std::fs::read_dir(fixtures("rules/openmax"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, known);
}

#[test]
fn every_guarantee_has_a_rule_or_a_reason() {
    let ruled: BTreeSet<&str> = RULES.iter().map(|rule| &rule.id[..5]).collect();
    let unseen: BTreeSet<&str> = UNSEEN.iter().map(|unseen| unseen.id).collect();
    assert!(ruled.is_disjoint(&unseen));
    let all: BTreeSet<String> = (1..=33).map(|number| format!("OM-{number:02}")).collect();
    let listed: Vec<&str> = Openmax::GUARANTEES.iter().map(|row| row.id).collect();
    assert_eq!(listed, all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        ruled
            .union(&unseen)
            .map(|id| (*id).to_owned())
            .collect::<BTreeSet<_>>(),
        all
    );
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(ids, sorted, "ids are unique and in order");
}

#[test]
fn rules_are_whole_sentences_that_cite_a_section() {
    const SECTIONS: [&str; 5] = [
        "introduction",
        "Handshake",
        "Commands (stdin)",
        "Events (stdout)",
        "Turn guarantees",
    ];
    for rule in RULES {
        assert!(
            rule.message.ends_with(['.', ')']) && rule.message.len() > 20,
            "{}",
            rule.id
        );
        assert!(
            !rule.title.ends_with('.') && rule.title.len() < 80,
            "{}",
            rule.id
        );
        let section = rule.cite.strip_prefix("openmax-stdio/6, ").unwrap();
        assert!(SECTIONS.contains(&section), "{}", rule.id);
        assert!(rule.severity >= Severity::Info);
    }
}

#[test]
fn the_page_of_the_rules_is_the_one_that_is_printed() {
    let page = spec::rules_page::<Openmax>();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rules-openmax.md");
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == page,
        "docs/rules-openmax.md is out of date: run this test with TURNWIRE_BLESS=1"
    );
    for rule in Openmax::RULES {
        assert!(page.contains(rule.message), "{}", rule.id);
    }
}
