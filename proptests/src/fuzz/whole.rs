//! Scenarios: the whole world.

use super::{must, shown};
use crate::{
    laws::{self, Broken},
    scenario::Scenario,
    world,
};

/// Whatever hosts, models, tools, disks, clocks and wires do, nobody in the whole world finds anything wrong.
///
/// # Errors
/// [`Broken`] with the report, which is a scenario to be kept.
pub fn world(data: &[u8]) -> Result<(), Broken> {
    let report = world::run(data);
    must(report.is_clean(), "world", || format!("\n{report}"))
}

/// Every machine of a scenario keeps the laws L1 – L10, on what it was told there.
///
/// # Errors
/// The law that is broken.
pub fn laws(data: &[u8]) -> Result<(), Broken> {
    laws::check(data)
}

/// Any text is a scenario or its fault has a line; a scenario that is printed reads back as the same one, and any
/// bytes are one.
///
/// # Errors
/// [`Broken`] with the text.
pub fn scenario(data: &[u8]) -> Result<(), Broken> {
    let text = shown(data);
    let scenario = match Scenario::parse(&text) {
        Ok(scenario) => scenario,
        Err(fault) => {
            let lines = 1..=text.split('\n').count();
            must(lines.contains(&fault.line), "L9", || {
                format!("{text:?} has no line {}", fault.line)
            })?;
            Scenario::decode(data)
        }
    };
    let printed = scenario.print();
    let back = Scenario::parse(&printed);
    must(back.as_ref() == Ok(&scenario), "L10", || {
        format!("{scenario:?} is {printed:?}, and comes back as {back:?}")
    })
}
