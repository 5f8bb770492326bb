//! What openseek promises: OS-01 to OS-13, and the acceptance scenes OS-A01 to OS-A13, which say more of the order of lines.
//! The [rules](super::RULES) judge what the wire shows of it.

use crate::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// The promises, in the order of their ids.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "OS-01",
        "Each event and each command has one type, one encoder and one decoder, which are inverse to each other.",
    ),
    row(
        "OS-02",
        "A line is the event alone: flat, without envelope, clock or severity, and nothing else is on the stream.",
    ),
    row(
        "OS-03",
        "An event that can't be read is passed over; a command that can't be read is one `command_error`.",
    ),
    row(
        "OS-04",
        "What was added later is defaulted where it is missing: `kind` of `steer_applied` and of `steer`, `workspace_root`, `brief`, `submission_id`, `auto`. All else must be there.",
    ),
    row(
        "OS-05",
        "Optional texts are written as the text or null, never left out.",
    ),
    row(
        "OS-06",
        "Whole numbers are whole: 1.5 is refused, never cut off.",
    ),
    row(
        "OS-07",
        "Whether a command that can be read is acceptable is the engine's to say: a blank goal is read, and refused.",
    ),
    row(
        "OS-08",
        "A host steers with a prompt or a command; a notice is the engine's own, and told as a steer that was applied.",
    ),
    row(
        "OS-09",
        "A question holds its call up until it is answered by its id, and then is resolved. An engine that wasn't started to ask asks nobody.",
    ),
    row(
        "OS-10",
        "All 58 events and 9 commands are spoken, with records of jobs and their states, outcomes, and usage.",
    ),
    row(
        "OS-11",
        "The id of a session within a session is its parent's, `-sr-` and one to nine digits; the innermost suffix counts.",
    ),
    row(
        "OS-12",
        "Compact ids of jobs have lower-case files that lead back to them, others keep their names, no two that live share a file, and a component is never a path.",
    ),
    row("OS-13", "The order of the events is the only clock."),
    row(
        "OS-A01",
        "What was encoded decodes to the same value, and its bytes are the contract's, for every event and command.",
    ),
    row(
        "OS-A02",
        "Of the members of events six may be missing, or of another type; without any other the line is none.",
    ),
    row(
        "OS-A03",
        "`3.0`, `-0` and negative numbers are whole, `1.5`, 2^31 and texts aren't; times and sizes go from 0 to 2^53 - 1.",
    ),
    row(
        "OS-A04",
        "Each command that can't be read has its text, byte for byte; of two faults the one that is looked at first counts.",
    ),
    row(
        "OS-A05",
        "Components, files of jobs and ids of children are what the contract says, at every edge.",
    ),
    row(
        "OS-A06",
        "Never two turns at once, one end for each turn that began, prompts first in first out, steps counted from 1.",
    ),
    row(
        "OS-A07",
        "A steer that is a prompt ends once, applied or dropped, and never begins a turn.",
    ),
    row(
        "OS-A08",
        "Each question is resolved once, at a cancel and at the end of input too; late and second answers change nothing.",
    ),
    row(
        "OS-A09",
        "In a step the pieces make the message, a reply has one usage, and results come in the order of the calls, one each at most.",
    ),
    row(
        "OS-A10",
        "A cancel while nothing runs takes out the next prompt and nothing else; any cancel ends the automatic goal; 20 turns begin by themselves, then it says once that there are no more.",
    ),
    row(
        "OS-A11",
        "At the end of input what waits is finished, nothing begins by itself any more, and the process ends. A line that isn't JSON is one `command_error`, and then as good as that end.",
    ),
    row(
        "OS-A12",
        "A blank goal is refused in the engine's own words; a run that is to ask fails before there is a session.",
    ),
    row(
        "OS-A13",
        "However the input's bytes are cut, the output's are the same.",
    ),
];
