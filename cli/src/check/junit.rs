//! Findings for test reports: JUnit XML, a suite for each file, a case for each rule.
//!
//! A case fails if there is an error; warnings and notes are its output. A report is written at the end, so it holds
//! only the first findings of each rule in each file.

use std::io;
use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use turnwire::check::{Checked, Summary};
use turnwire::protocol::observer::{Finding, Rule, Severity};

/// The most findings of a rule that are told, and the most characters of each.
const TOLD: usize = 20;
const LONGEST: usize = 400;

/// A report in the making.
pub struct Book {
    rules: &'static [Rule],
    report: Report,
    name: String,
    /// What was found of each rule, in the order of the catalogue.
    found: Vec<Found>,
    rows: Found,
}

#[derive(Clone, Default)]
struct Found {
    errors: u64,
    others: u64,
    told: Vec<String>,
}

impl Found {
    fn add(&mut self, is_error: bool, text: impl FnOnce() -> String) {
        if is_error {
            self.errors += 1;
        } else {
            self.others += 1;
        }
        if self.told.len() < TOLD {
            self.told.push(text().chars().take(LONGEST).collect());
        }
    }

    fn text(&self) -> String {
        let mut text = self.told.join("\n");
        let more = self.errors + self.others - self.told.len() as u64;
        if more > 0 {
            text.push_str(&format!("\nand {more} more"));
        }
        text
    }

    fn failure(&self, kind: NonSuccessKind, what: &str) -> TestCaseStatus {
        let mut status = TestCaseStatus::non_success(kind);
        let first = self.told.first().map_or("", String::as_str);
        status
            .set_message(first)
            .set_type(what)
            .set_description(self.text());
        status
    }
}

impl Book {
    pub fn new(rules: &'static [Rule]) -> Book {
        Book {
            rules,
            report: Report::new("turnwire check"),
            name: String::new(),
            found: Vec::new(),
            rows: Found::default(),
        }
    }

    /// Goes on with this file.
    pub fn file(&mut self, path: &Path) {
        self.name = path.to_string_lossy().into_owned();
        self.found = vec![Found::default(); self.rules.len()];
        self.rows = Found::default();
    }

    pub fn put(&mut self, checked: &Checked<'_>) {
        match checked {
            Checked::Line { .. } => {}
            Checked::BadRow { place, why } => {
                self.rows
                    .add(true, || format!("line {}: {why}", place.line));
            }
            Checked::Finding { finding, .. } => {
                let index = self
                    .rules
                    .iter()
                    .position(|rule| rule.id == finding.rule.id);
                if let Some(found) = index.and_then(|index| self.found.get_mut(index)) {
                    found.add(finding.severity == Severity::Error, || told(finding));
                }
            }
        }
    }

    /// The end of a file.
    pub fn summary(&mut self, summary: &Summary) {
        let mut suite = TestSuite::new(&*self.name);
        for (rule, found) in self.rules.iter().zip(&self.found) {
            let skipped = summary
                .skipped
                .iter()
                .find(|(skipped, _)| skipped.id == rule.id);
            let mut status = TestCaseStatus::success();
            if found.errors > 0 {
                status = found.failure(NonSuccessKind::Failure, rule.id);
            } else if let Some((_, why)) = skipped {
                status = TestCaseStatus::skipped();
                status.set_message(*why);
            }
            let is_failure = found.errors > 0;
            let mut case = TestCase::new(format!("{} {}", rule.id, rule.title), status);
            case.set_classname(&*self.name);
            if !is_failure && found.others > 0 {
                case.set_system_out(found.text());
            }
            suite.add_test_case(case);
        }
        if self.rows.errors > 0 {
            let status = self.rows.failure(NonSuccessKind::Error, "recording-row");
            let mut case = TestCase::new("the recording can be read", status);
            case.set_classname(&*self.name);
            suite.add_test_case(case);
        }
        self.report.add_test_suite(suite);
    }

    /// The file can't be read, or not to its end.
    pub fn failed(&mut self, why: &str) {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message(why).set_type("file");
        let mut case = TestCase::new("the file can be read", status);
        case.set_classname(&*self.name);
        let mut suite = TestSuite::new(&*self.name);
        suite.add_test_case(case);
        self.report.add_test_suite(suite);
    }

    /// The whole report.
    ///
    /// # Errors
    /// When the XML can't be made.
    pub fn end(&self, out: &mut Vec<u8>) -> io::Result<()> {
        self.report.serialize(out).map_err(io::Error::other)
    }
}

fn told(finding: &Finding) -> String {
    let mut text = String::new();
    if let Some(place) = finding.place {
        text.push_str(&format!("line {}", place.line));
    } else {
        text.push_str("end");
    }
    let pointer: String = finding.pointer.chars().take(LONGEST / 4).collect();
    text.push_str(&format!(
        " ({} {pointer}): {}: {}",
        finding.dir.word(),
        finding.severity,
        finding.message
    ));
    text
}
