//! The observer, and the reader of recordings.

use turnwire::{
    check::{Check, Checked, From},
    protocol::observer::{Dir, Finding, Observed, Severity, Watch},
};

use super::{NOW, Told, must, shown, story};
use crate::{
    laws::{self, Broken, Machine, ObserverInput, ObserverMachine},
    world::{Speaks, line_rules},
};

/// A finding that points somewhere, and is no worse than its rule.
fn sound(finding: &Finding, line: Option<&[u8]>) -> Result<(), Broken> {
    let end = line.map_or(usize::MAX, <[u8]>::len);
    let holds = finding.severity <= finding.rule.severity
        && finding.span.start <= finding.span.end
        && finding.span.end <= end
        && finding.message.len() < 1_000;
    must(holds, "L9", || {
        format!("{finding} at {:?} of {:?}", finding.span, line.map(shown))
    })
}

/// Whatever two sides write, the observer keeps the laws of a machine, and its findings are sound.
///
/// The bytes are the host's at first; control byte 1 gives the word to the agent, 2 to the host; 3 ends the host's
/// side, 4 the agent's, and 5 is the exit with the code behind it.
///
/// # Errors
/// The law that is broken.
pub fn observer<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    let mut dir = Dir::Host;
    let mut inputs = Vec::new();
    for part in story(data) {
        inputs.push(match part {
            Told::Bytes(bytes) => ObserverInput::Bytes(dir, bytes.to_vec()),
            Told::Control(3, _) => ObserverInput::End(Dir::Host),
            Told::Control(4, _) => ObserverInput::End(Dir::Agent),
            Told::Control(5, code) => ObserverInput::Exit(i64::from(code) - 20),
            Told::Control(control, _) => {
                dir = if control % 2 == 1 {
                    Dir::Agent
                } else {
                    Dir::Host
                };
                continue;
            }
        });
    }
    let inputs: Vec<_> = inputs.into_iter().map(|input| (input, NOW)).collect();
    let make = || {
        ObserverMachine::<P>::new(
            P::watched(0),
            line_rules::<P>(Dir::Host),
            line_rules::<P>(Dir::Agent),
        )
    };
    laws::hold_cut(make, &inputs, 1 + data.len() % 29, 3)?;
    let mut machine = make();
    for (input, now) in &inputs {
        // Never misuse: it has none.
        let _: Result<(), _> = machine.handle(input, *now);
        while let Some(finding) = machine.poll() {
            sound(&finding, None)?;
        }
    }
    Ok(())
}

/// What a check gives, as text.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    said: Vec<String>,
    summary: String,
}

fn check<P: Observed>(
    bytes: &[u8],
    from: From,
    config: <P::Watch as Watch>::Config,
    size: usize,
) -> Result<Report, Broken> {
    let mut check = Check::<P>::new(config, from);
    let mut said = Vec::new();
    let mut counts = [0_u64; 3];
    let mut bad = 0_u64;
    let mut wrong = Ok(());
    let mut sink = |checked: Checked<'_>| match checked {
        Checked::Line {
            dir,
            place,
            label,
            worst,
        } => said.push(format!("{dir:?} {place:?} {label} {worst:?}")),
        Checked::Finding { finding, line, .. } => {
            if wrong.is_ok() {
                wrong = sound(&finding, line);
            }
            let [infos, warnings, errors] = &mut counts;
            *match finding.severity {
                Severity::Info => infos,
                Severity::Warning => warnings,
                Severity::Error => errors,
            } += 1;
            said.push(finding.to_string());
        }
        Checked::BadRow { place, why } => {
            bad += 1;
            said.push(format!("{place:?} {why}"));
        }
    };
    for chunk in bytes.chunks(size) {
        check.read(chunk, &mut sink);
    }
    check.end(&mut sink);
    wrong?;
    let summary = check.summary();
    let told = [summary.infos, summary.warnings, summary.errors];
    must(told == counts && summary.bad_rows == bad, "sum", || {
        format!("{counts:?} and {bad} bad rows were given, and {summary:?} says otherwise")
    })?;
    Ok(Report {
        said,
        summary: format!("{summary:?}"),
    })
}

/// Any file is checked to its end, as a recording or as lines of either side, by any age of the contract; its findings
/// are sound, the summary counts them, and it is the same however the bytes are cut.
///
/// # Errors
/// [`Broken`] with what differs.
pub fn recording<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    let (choice, bytes) = data.split_first().unwrap_or((&0, &[]));
    let from = [From::Guess, From::Both, From::Host, From::Agent][usize::from(choice % 4)];
    let whole = check::<P>(bytes, from, P::watched(choice / 4), usize::MAX)?;
    for size in [1, 1 + usize::from(*choice)] {
        let cut = check::<P>(bytes, from, P::watched(choice / 4), size)?;
        must(cut == whole, "L1", || {
            format!(
                "{from:?} {:?} in pieces of {size}: {cut:?} instead of {whole:?}",
                shown(bytes)
            )
        })?;
    }
    Ok(())
}
