//! The catalogues of rules: each rule has a stream that keeps it and one that breaks it, and the page that lists them is
//! the one that the program prints.
//!
//! `fixtures/rules/PROTOCOL/RULE.ok.jsonl` keeps the rule, and gives no finding at all of weight. `RULE.bad.jsonl`
//! breaks it, and nothing else; a first row may name other rules that can't but fire (`also`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail"
)]

use crate::observer_kit;

use std::collections::BTreeSet;

use observer_kit::*;
use serde_json::Value;
use turnwire::check::From;
use turnwire::protocol::agentx::{Agentx, ObserverConfig, Preset};
use turnwire::protocol::observer::{Dir, Observed, Severity, Watch};
use turnwire::protocol::omp::Omp;
use turnwire::protocol::openmax::Openmax;
use turnwire::protocol::openseek::Openseek;
use turnwire::protocol::spec;
use turnwire::protocol::splice::{ObserverConfig as SpliceConfig, Splice};

fn fixture<P: Observed>(rule: &str, kind: &str) -> Vec<u8> {
    let folder = fixtures("rules").join(P::SPEC.name);
    let path = folder.join(format!("{rule}.{kind}.jsonl"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A protocol whose rules have fixtures.
trait Judged: Observed {
    /// The observer's settings, by the first row of a fixture.
    fn config(row: &Value) -> <Self::Watch as Watch>::Config;
}

impl Judged for Openmax {
    fn config(_: &Value) -> <Self::Watch as Watch>::Config {
        Default::default()
    }
}

impl Judged for Omp {
    fn config(_: &Value) -> <Self::Watch as Watch>::Config {
        Default::default()
    }
}

impl Judged for Openseek {
    fn config(_: &Value) -> <Self::Watch as Watch>::Config {
        Default::default()
    }
}

/// `original`: the agent is the known one.
impl Judged for Splice {
    fn config(row: &Value) -> <Self::Watch as Watch>::Config {
        SpliceConfig {
            original: row["original"] == true,
        }
    }
}

/// One observer for three contracts: `preset` names the one that counts.
impl Judged for Agentx {
    fn config(row: &Value) -> <Self::Watch as Watch>::Config {
        let named = row["preset"]
            .as_str()
            .map(|name| Preset::named(name).unwrap());
        let policy = named.unwrap_or_default().policy();
        ObserverConfig { policy }
    }
}

fn first_row(bytes: &[u8]) -> Value {
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap();
    serde_json::from_slice(first).unwrap()
}

fn judge<P: Judged>(bytes: &[u8]) -> Report {
    let config = P::config(&first_row(bytes));
    check_of::<P>(config, bytes, From::Guess, 1 << 16)
}

fn also(bytes: &[u8]) -> BTreeSet<String> {
    let row = first_row(bytes);
    let names = row["also"].as_array().cloned().unwrap_or_default();
    names
        .into_iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn kept<P: Judged>() {
    for rule in P::RULES {
        let result = judge::<P>(&fixture::<P>(rule.id, "ok"));
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

fn broken<P: Judged>() {
    let mut wrong = Vec::new();
    for rule in P::RULES {
        let bytes = fixture::<P>(rule.id, "bad");
        let also = also(&bytes);
        let result = judge::<P>(&bytes);
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

fn no_others<P: Observed>() {
    let known: BTreeSet<String> = P::RULES
        .iter()
        .flat_map(|rule| ["ok", "bad"].map(|kind| format!("{}.{kind}.jsonl", rule.id)))
        .collect();
    let found: BTreeSet<String> = std::fs::read_dir(fixtures("rules").join(P::SPEC.name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, known);
}

fn each_guarantee<P: Observed>(all: &[String]) {
    let ruled: BTreeSet<&str> = P::RULES
        .iter()
        .filter_map(|rule| rule.id.split('.').next())
        .collect();
    let unseen: BTreeSet<&str> = P::UNSEEN.iter().map(|unseen| unseen.id).collect();
    assert!(ruled.is_disjoint(&unseen));
    let listed: Vec<&str> = P::GUARANTEES.iter().map(|row| row.id).collect();
    assert_eq!(listed, all);
    let covered: Vec<&str> = ruled.union(&unseen).copied().collect();
    assert_eq!(covered, all);
    let ids: Vec<&str> = P::RULES.iter().map(|rule| rule.id).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(ids, sorted, "ids are unique and in order");
}

fn sentences<P: Observed>(contract: &str, sections: &[&str]) {
    for rule in P::RULES {
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
        let section = rule.cite.strip_prefix(contract).unwrap();
        assert!(sections.contains(&section), "{}", rule.id);
        assert!(rule.severity >= Severity::Info);
    }
}

fn page<P: Observed>() {
    let page = spec::rules_page::<P>();
    let name = P::SPEC.name;
    let path = format!("{}/../docs/rules-{name}.md", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TURNWIRE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == page,
        "docs/rules-{name}.md is out of date: run this test with TURNWIRE_BLESS=1"
    );
    for rule in P::RULES {
        assert!(page.contains(rule.message), "{}", rule.id);
    }
}

/// Ids that count from 1.
fn counted(prefix: &str, count: usize, digits: usize) -> Vec<String> {
    let id = |number| format!("{prefix}-{number:0digits$}");
    (1..=count).map(id).collect()
}

macro_rules! catalogue {
    ($name:ident $protocol:ty, $ids:expr, $contract:literal $sections:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn a_stream_that_keeps_the_rule_gives_no_finding() {
                kept::<$protocol>();
            }

            #[test]
            fn a_stream_that_breaks_the_rule_gives_that_finding_alone() {
                broken::<$protocol>();
            }

            #[test]
            fn there_are_no_other_fixtures() {
                no_others::<$protocol>();
            }

            #[test]
            fn every_guarantee_has_a_rule_or_a_reason() {
                each_guarantee::<$protocol>(&$ids);
            }

            #[test]
            fn rules_are_whole_sentences_that_cite_a_section() {
                sentences::<$protocol>($contract, &$sections);
            }

            #[test]
            fn the_page_of_the_rules_is_the_one_that_is_printed() {
                page::<$protocol>();
            }
        }
    };
}

catalogue! { openmax Openmax, counted("OM", 33, 2), "openmax-stdio/6, " [
    "introduction",
    "Handshake",
    "Commands (stdin)",
    "Events (stdout)",
    "Turn guarantees",
] }

catalogue! { omp Omp, counted("OMP", 19, 2), "omp RPC, " [
    "Complete one prompt",
    "Process lifecycle",
    "Prompt completion",
    "Sending work while a turn is active",
    "Cancel safely",
    "Errors and recovery",
    "Transport versions and large frames",
    "Commands sent to stdin",
    "Response envelope",
    "Event and notification schema",
    "Extension UI sub-protocol",
    "Host tools and host URIs",
    "Subagent frames",
    "Live voice",
] }

/// The seed's own ids: 26, the one of the end of input, and four of permissions.
fn wire_ids() -> Vec<String> {
    let mut ids = counted("WIRE", 26, 3);
    ids.push("WIRE-EOF-001".to_owned());
    ids.extend(counted("WIRE-PERM", 4, 3));
    ids
}

catalogue! { agentx Agentx, wire_ids(), "agentx SDK wire, " [
    "Framing and envelopes",
    "Input records",
    "Core output records",
    "System and lifecycle events",
    "Control request and response protocol",
    "Control operations",
    "Permission race",
    "Ordering, replay, and duplicate suppression",
    "Failure behavior",
] }

/// The guarantees, and the acceptance scenes.
fn openseek_ids() -> Vec<String> {
    let scenes = (1..=13).map(|number| format!("OS-A{number:02}"));
    counted("OS", 13, 2).into_iter().chain(scenes).collect()
}

catalogue! { openseek Openseek, openseek_ids(), "openseek, " [
    "Protocol",
    "Event",
    "parse",
    "Command::parse",
    "The command direction",
    "Invariants",
    "SteerKind",
    "JobRecord",
    "valid_job_component",
    "serve",
] }

/// The guarantees, and the acceptance scenes.
fn splice_ids() -> Vec<String> {
    let scenes = (1..=13).map(|number| format!("SP-A{number:02}"));
    counted("SP", 14, 2).into_iter().chain(scenes).collect()
}

catalogue! { splice Splice, splice_ids(), "splice, " [
    "Stream-JSON protocol",
    "Input events",
    "Output event types",
    "Run lifecycle",
    "Stage markers",
    "Structured stage output",
    "Tool execution",
    "Permissions",
    "Usage and cost",
    "Checkpoints",
    "Final result",
    "Worktree merge result",
    "Errors",
    "exec",
] }
