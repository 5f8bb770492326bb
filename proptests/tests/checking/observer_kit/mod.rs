//! Checks whole streams and gives what was found.
#![allow(dead_code, reason = "each test uses its part")]

pub mod laws;

use std::path::PathBuf;

use turnwire::check::{Check, Checked, From, Summary};
use turnwire::protocol::observer::{Dir, Finding, Label, Observed, Severity, Watch};
use turnwire::protocol::openmax::{ObserverConfig, Openmax, Wire};

/// All that a check gave.
#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    pub lines: Vec<(Dir, u64, Label, Option<Severity>)>,
    pub bad_rows: Vec<u64>,
    pub summary: Summary,
}

impl Report {
    /// The ids of the findings, each as `id` with its severity's first letter.
    pub fn ids(&self) -> Vec<String> {
        self.findings
            .iter()
            .map(|finding| format!("{} {}", finding.rule.id, finding.severity))
            .collect()
    }

    pub fn errors(&self) -> Vec<String> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .map(ToString::to_string)
            .collect()
    }
}

/// Checks a stream of openmax that comes in pieces of this size.
pub fn check_pieces(bytes: &[u8], from: From, wire: Wire, size: usize) -> Report {
    check_of::<Openmax>(ObserverConfig { wire }, bytes, from, size)
}

/// Checks a stream of any protocol that comes in pieces of this size.
pub fn check_of<P: Observed>(
    config: <P::Watch as Watch>::Config,
    bytes: &[u8],
    from: From,
    size: usize,
) -> Report {
    let mut check = Check::<P>::new(config, from);
    let (mut findings, mut lines, mut bad_rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut sink = |checked: Checked<'_>| match checked {
        Checked::Line {
            dir,
            place,
            label,
            worst,
        } => lines.push((dir, place.line, label, worst)),
        Checked::Finding { finding, line, .. } => {
            if let Some(line) = line {
                assert!(
                    finding.span.end <= line.len() && finding.span.start <= finding.span.end,
                    "{finding}: {:?}",
                    finding.span
                );
            }
            assert!(finding.severity <= finding.rule.severity);
            findings.push(finding);
        }
        Checked::BadRow { place, .. } => bad_rows.push(place.line),
    };
    for chunk in bytes.chunks(size.max(1)) {
        check.read(chunk, &mut sink);
    }
    check.end(&mut sink);
    let summary = check.summary();
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count() as u64;
    assert_eq!(summary.errors, count(Severity::Error));
    assert_eq!(summary.warnings, count(Severity::Warning));
    assert_eq!(summary.infos, count(Severity::Info));
    Report {
        findings,
        lines,
        bad_rows,
        summary,
    }
}

pub fn check(bytes: &[u8], from: From, wire: Wire) -> Report {
    check_pieces(bytes, from, wire, 1 << 16)
}

pub fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")).join(folder)
}

/// The recordings of the real program, by name.
pub fn recordings() -> Vec<(String, Vec<u8>)> {
    let folder = fixtures("transcripts/openmax");
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    all.sort();
    assert_eq!(all.len(), 84, "the folder of recordings is whole");
    all
}
