//! The parts of `docs/proof.md` that are made from the sources.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::ids;
use super::scenes;
use super::sources::Test;
use super::tables::{self, Part};

/// The page with its made parts made again. Everything around them stays.
///
/// # Errors
/// A marker that isn't there.
pub fn renewed(page: &str, tests: &[Test]) -> Result<String, String> {
    let by_id = by_id(tests);
    let page = splice(page, "guarantees", &guarantees(&by_id))?;
    let page = splice(&page, "scenarios", &scenes::table(tests))?;
    splice(&page, "cases", &cases(&by_id))
}

/// The cases from the field.
fn cases(by_id: &BTreeMap<String, Vec<&Test>>) -> String {
    let mut text = String::from("| case | what went wrong there | tests |\n|---|---|---|\n");
    for (short, case) in tables::cases() {
        let fault = case.json.get("fault").and_then(|fault| fault.as_str());
        let fault = fault.unwrap_or_default().replace('|', "\\|");
        let excuse = tables::UNTESTED_CASES.iter().find(|(id, _)| *id == short);
        let tests = match excuse {
            Some((_, why)) => format!("none: {why}"),
            None => listed(by_id.get(&short).map(Vec::as_slice).unwrap_or_default()),
        };
        let _ = writeln!(text, "| {} | {fault} | {tests} |", case.id);
    }
    text
}

/// Tests by the ids that they name.
fn by_id(tests: &[Test]) -> BTreeMap<String, Vec<&Test>> {
    let mut by_id: BTreeMap<String, Vec<&Test>> = BTreeMap::new();
    for test in tests {
        for id in ids::of(&test.name) {
            by_id.entry(id).or_default().push(test);
        }
    }
    by_id
}

/// Puts a text between the markers of its name.
fn splice(page: &str, name: &str, made: &str) -> Result<String, String> {
    let (begin, end) = (
        format!("<!-- made: {name} -->\n"),
        format!("<!-- end: {name} -->\n"),
    );
    let parts = page
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    match parts {
        Some((before, after)) => Ok(format!("{before}{begin}\n{made}\n{end}{after}")),
        None => Err(format!("docs/proof.md has no part {name}")),
    }
}

fn guarantees(by_id: &BTreeMap<String, Vec<&Test>>) -> String {
    let mut text = String::new();
    for part in tables::parts() {
        let _ = write!(text, "### {}\n\n", part.heading);
        if part.protocol.is_some() {
            text.push_str("| guarantee | says | rules | tests |\n|---|---|---|---|\n");
        } else {
            text.push_str("| promise | says | tests |\n|---|---|---|\n");
        }
        for promise in part.promises {
            let tests = by_id.get(promise.id).map(Vec::as_slice).unwrap_or_default();
            let _ = write!(text, "| {} | {} |", promise.id, promise.says);
            if part.protocol.is_some() {
                let _ = write!(text, " {} |", rules(&part, promise.id));
            }
            let owed = part.owes(promise.id);
            let tests = match tables::why_untested(promise.id) {
                Some(why) if tests.is_empty() => format!("none: {why}"),
                _ => listed(tests),
            };
            let owed = owed.map_or(String::new(), |why| format!("<br>Owed: {why}."));
            let _ = writeln!(text, " {tests}{owed} |");
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The rules of a guarantee, or why there are none.
fn rules(part: &Part, id: &str) -> String {
    let page = part.protocol.unwrap_or_default();
    let rules = part.rules.iter().filter(|rule| {
        rule.id
            .strip_prefix(id)
            .is_some_and(|rest| rest.starts_with('.'))
    });
    let links: Vec<String> = rules
        .map(|rule| {
            let anchor = rule.id.to_ascii_lowercase().replace('.', "");
            let letter = rule.id.rsplit('.').next().unwrap_or_default();
            format!("[{letter}](rules-{page}.md#{anchor})")
        })
        .collect();
    let unseen = part.unseen.iter().find(|unseen| unseen.id == id);
    match unseen {
        Some(unseen) => format!("none: {}", unseen.why),
        None => links.join(" "),
    }
}

/// Tests in a cell, by file.
fn listed(tests: &[&Test]) -> String {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in tests {
        let names = files.entry(&test.path).or_default();
        names.push(format!("`{}`", test.name));
    }
    let files: Vec<String> = files
        .into_iter()
        .map(|(path, names)| format!("{path}: {}", names.join(", ")))
        .collect();
    if files.is_empty() {
        return "none yet".into();
    }
    files.join("<br>")
}

#[test]
fn only_what_stands_between_the_markers_is_replaced() {
    let page = "# A\n<!-- made: x -->\nold\n<!-- end: x -->\nby hand\n";
    let new = "# A\n<!-- made: x -->\n\nnew\n\n<!-- end: x -->\nby hand\n";
    assert_eq!(splice(page, "x", "new\n").unwrap(), new);
    assert_eq!(splice(new, "x", "new\n").unwrap(), new);
    assert!(splice(page, "y", "new\n").is_err());
}
