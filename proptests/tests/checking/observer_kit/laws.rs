//! Streams that were disturbed, or whose lines crossed, for the observer of any protocol.

use proptest::prelude::*;
use serde_json::Value;
use turnwire::frame::{Place, Split, SplitKind};
use turnwire::protocol::observer::{Dir, Observed, Observer, Severity, Sides, Watch};

/// A recording: its name, what the two sides wrote, in order, and the exit code.
pub type Recorded = (String, Vec<(Dir, String)>, Option<i64>);

/// What the rows of a recording say.
pub fn recorded((name, bytes): &(String, Vec<u8>)) -> Recorded {
    let mut lines = Vec::new();
    let mut exit = None;
    for row in bytes
        .split(|&byte| byte == b'\n')
        .filter(|row| !row.is_empty())
    {
        let row: Value = serde_json::from_slice(row).unwrap();
        exit = exit.or(row["code"].as_i64()).or(row["exit"].as_i64());
        let dir = match row["dir"].as_str() {
            Some("in") => Dir::Host,
            Some("out") => Dir::Agent,
            Some(_) | None => continue,
        };
        // What can't be said in text is left out: the crossing is about commands.
        if let Some(text) = row["line"]
            .as_str()
            .filter(|text| !text.contains('\u{fffd}'))
        {
            lines.extend(text.lines().map(|line| (dir, line.to_owned())));
        }
    }
    (name.clone(), lines, exit)
}

/// A disturbance.
#[derive(Clone, Debug)]
pub enum Change {
    Drop(usize),
    Twice(usize),
    Swap(usize, usize),
    Byte(usize, usize, u8),
    Cut(usize, usize),
    From(usize, usize),
}

/// Any disturbance.
pub fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Drop),
        any::<usize>().prop_map(Change::Twice),
        any::<(usize, usize)>().prop_map(|(a, b)| Change::Swap(a, b)),
        any::<(usize, usize, u8)>().prop_map(|(line, at, byte)| Change::Byte(line, at, byte)),
        any::<(usize, usize)>().prop_map(|(line, at)| Change::Cut(line, at)),
        any::<(usize, usize)>().prop_map(|(other, line)| Change::From(other, line)),
    ]
}

/// Disturbs the lines; `all`: where others come from.
pub fn apply(lines: &mut Vec<(Dir, Vec<u8>)>, change: &Change, all: &[Recorded]) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    match *change {
        Change::Drop(at) => drop(lines.remove(at % count)),
        Change::Twice(at) => lines.insert(at % count, lines[at % count].clone()),
        Change::Swap(a, b) => lines.swap(a % count, b % count),
        Change::Byte(line, at, byte) => {
            let text = &mut lines[line % count].1;
            let length = text.len().max(1);
            if let Some(old) = text.get_mut(at % length) {
                *old = byte;
            }
        }
        Change::Cut(line, at) => {
            let text = &mut lines[line % count].1;
            text.truncate(at % (text.len() + 1));
        }
        Change::From(other, line) => {
            let other = &all[other % all.len()].1;
            if !other.is_empty() {
                let (dir, text) = other[line % other.len()].clone();
                lines.insert(line % count, (dir, text.into_bytes()));
            }
        }
    }
}

/// Shows the lines to an observer; gives what it finds of severity error.
pub fn feed<P: Observed>(
    lines: &[(Dir, Vec<u8>)],
    sides: Sides,
    config: <P::Watch as Watch>::Config,
    exit: Option<i64>,
) -> Vec<String> {
    let mut observer = Observer::<P>::new(config, sides);
    let mut errors = Vec::new();
    let mut take = |observer: &mut Observer<P>, text: &[u8]| {
        let mut count = 0;
        while let Some(finding) = observer.poll_finding() {
            count += 1;
            assert!(finding.severity <= finding.rule.severity);
            assert!(finding.span.start <= finding.span.end, "{finding}");
            assert!(
                finding.place.is_none() || finding.span.end <= text.len(),
                "{finding}"
            );
            assert!(finding.message.len() < 400, "{finding}");
            if finding.severity == Severity::Error {
                errors.push(finding.to_string());
            }
        }
        assert!(count <= 32);
    };
    for (index, (dir, text)) in lines.iter().enumerate() {
        let place = Place {
            line: index as u64 + 1,
            offset: 0,
        };
        let what = SplitKind::Line(text);
        observer.handle_line(*dir, Split { place, what });
        take(&mut observer, text);
    }
    observer.handle_end(Dir::Host);
    observer.handle_end(Dir::Agent);
    if let Some(code) = exit {
        observer.handle_exit(code);
    }
    observer.finish();
    take(&mut observer, b"");
    observer.finish();
    assert!(observer.poll_finding().is_none());
    errors
}

/// The same lines, where each of the host's is recorded before up to so many of the agent's that the agent wrote without
/// having read it. `bound`: a line of the host can't stand before this one of the agent.
pub fn crossed(
    lines: &[(Dir, String)],
    lead: &[usize],
    bound: impl Fn(&str, &str) -> bool,
) -> Vec<(Dir, Vec<u8>)> {
    let mut order: Vec<(Dir, String)> = Vec::new();
    let mut host = 0;
    for (dir, text) in lines {
        let mut at = order.len();
        if *dir == Dir::Host {
            let most = lead[host % lead.len()];
            host += 1;
            for _ in 0..most {
                match at.checked_sub(1).map(|before| &order[before]) {
                    Some((Dir::Agent, said)) if !bound(text, said) => at -= 1,
                    _ => break,
                }
            }
        }
        order.insert(at, (*dir, text.clone()));
    }
    order
        .into_iter()
        .map(|(dir, text)| (dir, text.into_bytes()))
        .collect()
}
