//! Scenarios: the whole world.

use super::{must, shown};
use crate::{
    laws::{self, Broken},
    scenario::Scenario,
    world::{self, Report, Speaks},
};

/// Whatever hosts, models, tools, disks, clocks and wires do, nobody in the whole world finds anything wrong.
///
/// # Errors
/// [`Broken`] with the report, which is a scenario to be kept.
pub fn world<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    clean(&world::run_over::<P>(&played(data, 0)).0)
}

/// Whatever hosts, models, tools, disks and clocks do, nobody finds anything wrong in a session alone.
///
/// # Errors
/// [`Broken`] with the report, which is a scenario to be kept.
pub fn session(data: &[u8]) -> Result<(), Broken> {
    clean(&world::run_with(&played(data, 1)))
}

/// The scenario, over a wire (0) or by an agent alone (1).
fn played(data: &[u8], world: u8) -> Scenario {
    let mut scenario = Scenario::decode(data);
    scenario.setup.world = world;
    scenario
}

fn clean(report: &Report) -> Result<(), Broken> {
    must(report.is_clean(), "world", || format!("\n{report}"))
}

/// Every machine of a scenario keeps the laws L1 – L10, on what it was told there.
///
/// # Errors
/// The law that is broken.
pub fn laws<P: Speaks>(data: &[u8]) -> Result<(), Broken> {
    laws::check::<P>(data)
}

/// A session alone keeps the laws, on what it was told in a scenario.
///
/// # Errors
/// The law that is broken.
pub fn session_laws(data: &[u8]) -> Result<(), Broken> {
    laws::check_session(data)
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
