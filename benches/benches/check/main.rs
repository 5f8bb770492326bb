//! `turnwire check` without its I/O: the reader and the observer with every rule on, over a stream of both
//! directions. Beside it serde_json, which reads the same lines into a typed enum and judges nothing.

mod usual;

use std::io;
use std::process::ExitCode;

use turnwire::check::{Check, Checked, From, Summary};
use turnwire::protocol::openmax::Openmax;
use turnwire_benches::corpus::{self, Mix};
use turnwire_benches::race::{Race, Row};

/// What the program reads at once.
const PIECE: usize = 64 * 1024;

/// How much faster than reading alone the whole check means to be.
const AIM: f64 = 1.5;

fn main() -> io::Result<ExitCode> {
    let mut race = Race::from_arguments();
    for mix in [Mix::Tokens, Mix::Tools, Mix::Mixed] {
        // Large enough for one line of several mebibytes in the mixed one.
        let mib = if mix == Mix::Mixed { 24 } else { 8 };
        let stream = corpus::file(mix, mib, "openmax.both.jsonl")?;
        let lines: Vec<&[u8]> = stream
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        both_do_their_work(&stream, &lines);
        let name = |peer: &str| format!("check{peer}/{}", mix.name());
        let (first, second, third) = (name(""), name("-lookup"), name("-cut"));
        let row = Row {
            name: &first,
            usual: "serde_json into an owned, internally tagged enum",
            bytes: stream.len(),
            items: lines.len(),
            aim: Some(AIM),
        };
        race.run(
            row,
            || judge(&stream, PIECE).1,
            || usual::tagged(&lines, usual::Line::weight),
        );
        let row = Row {
            name: &second,
            usual: "serde_json, once for the tag and once for its type, borrowing",
            aim: None,
            ..row
        };
        race.run(row, || judge(&stream, PIECE).1, || usual::lookup(&lines));
        let row = Row {
            name: &third,
            usual: "the tagged enum; ours in pieces of 1000 bytes, most lines cut",
            ..row
        };
        race.run(
            row,
            || judge(&stream, 1000).1,
            || usual::tagged(&lines, usual::Line::weight),
        );
    }
    Ok(if race.finish() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The whole check; gives a number that needs all of it.
fn judge(stream: &[u8], piece: usize) -> (Summary, u64) {
    let mut check = Check::<Openmax>::new(Default::default(), From::Guess);
    let mut sum = 0;
    let mut sink = |checked: Checked<'_>| {
        sum += match checked {
            Checked::Line { label, .. } => label.name.len() as u64,
            Checked::Finding { .. } | Checked::BadRow { .. } => 1,
        };
    };
    for chunk in stream.chunks(piece) {
        check.read(chunk, &mut sink);
    }
    check.end(&mut sink);
    let summary = check.summary();
    sum += summary.errors;
    (summary, sum)
}

/// A race means something only if each side reads every line, and ours judges both directions.
fn both_do_their_work(stream: &[u8], lines: &[&[u8]]) {
    let (summary, _) = judge(stream, PIECE);
    assert_eq!(
        (summary.errors, summary.warnings),
        (0, 0),
        "the corpus keeps the contract: {summary:?}"
    );
    let read = summary.tally.host_lines + summary.tally.agent_lines;
    assert_eq!(read, lines.len() as u64);
    assert!(summary.tally.host_lines > 0 && summary.tally.turns > 0);
    assert!(
        summary
            .skipped
            .iter()
            .all(|(rule, why)| rule.id == "OM-25.a" || why.contains("mode")),
        "every rule but that of the exit code: {:?}",
        summary.skipped
    );
    assert_eq!(usual::tagged(lines, |_| 1), read);
    assert_eq!(usual::lookup(lines), read);
}
