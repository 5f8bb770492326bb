//! What splice promises: SP-01 to SP-14, and the acceptance scenes SP-A01 to SP-A13, which say more of it. The
//! [rules](super::RULES) judge what the wire shows.

use crate::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// The promises, in the order of their ids.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "SP-01",
        "Each line has schema version 2 and a type; each line of the agent has the id of its run.",
    ),
    row(
        "SP-02",
        "The input is messages of the user and prompts, judged strictly and whole before anything runs: an unknown member, a bad picture or no text at all refuses the run. Texts are joined in order, with a blank line between.",
    ),
    row(
        "SP-03",
        "17 types of lines come from an agent, each with its members; a reader passes over a type that it doesn't know.",
    ),
    row(
        "SP-04",
        "A run that starts begins with `run_start` and ends with `run_end`, whose exit code is that of the process. One that doesn't succeed has an `error` before its end; an interrupted one has its end as well.",
    ),
    row(
        "SP-05",
        "Pieces of arguments, joined by id since the last start of that id, are the whole arguments. In a stage of a pipeline they run no tool, and get no result.",
    ),
    row(
        "SP-06",
        "A tool that runs is one `tool_call` and one `tool_result` of its id.",
    ),
    row(
        "SP-07",
        "A request for permission is followed by a decision, or, where nobody is there to ask, by a result that is an error. What stands in the way is called `block`.",
    ),
    row(
        "SP-08",
        "Each request to a model has one `usage`, numbered in a pipeline. An unknown price is `unpriced` and has no amount, never 0.",
    ),
    row(
        "SP-09",
        "Before a call writes, a `checkpoint` lists the files that it may change. `restore` is reserved.",
    ),
    row(
        "SP-10",
        "The text of `final` is the text of a JSON object after a pipeline or a plan.",
    ),
    row(
        "SP-11",
        "Markers of stages stand alone inside `reasoning`, between NUL STAGE and NUL, and are no part of the answer.",
    ),
    row("SP-12", "Secrets are taken out before a line is written."),
    row(
        "SP-13",
        "What became of a worktree is told by `text`, `warning`, or an `error` with the code `merge_back_failed`.",
    ),
    row(
        "SP-14",
        "A pipeline has six stages, of which the tier chooses; its result has a run id, a status, the tier, the stages, totals of usage, and why it was given up.",
    ),
    row(
        "SP-A01",
        "Each of the known bad inputs is refused with its code, text, line and exit code. Of several unknown members the first one is named.",
    ),
    row(
        "SP-A02",
        "A stream that starts begins and ends as SP-04 says, has one run id, and nothing behind its end; a merge that was skipped or in conflict is no exception.",
    ),
    row(
        "SP-A03",
        "Status and exit code go together: success 0; error 1, 2 or 3; incomplete 4; interrupted 130; spec_review_required 0.",
    ),
    row(
        "SP-A04",
        "A start empties what was joined under its id; what is joined then equals the arguments. Calls within calls are paired by id.",
    ),
    row(
        "SP-A05",
        "What is empty is left out, what is false or 0 stays where it means something, members stand in the order of the alphabet, and markup is escaped.",
    ),
    row(
        "SP-A06",
        "A marker is framed exactly; its files may be null, none or some; a status that nobody knows is tolerated.",
    ),
    row(
        "SP-A07",
        "Both tables of secrets are followed, prose and counters are left alone, lines stay JSON, and no cut brings a secret back.",
    ),
    row(
        "SP-A08",
        "The output of a tool is cut at 10,240 bytes between two characters, marked, and said to be.",
    ),
    row(
        "SP-A09",
        "A picture of 10 MiB passes and one byte more doesn't; every spelling of a media type, bad base64, and a prompt of a picture alone.",
    ),
    row(
        "SP-A10",
        "Unpriced and failed prices have a reason and no amount; a priced request has its amount and where it is from; it is estimated exactly where it wasn't reported.",
    ),
    row(
        "SP-A11",
        "A signal ends the run with one error `interrupted` and the end, and no `final`.",
    ),
    row(
        "SP-A12",
        "Every recorded line is read without an unknown member, and written again byte for byte.",
    ),
    row(
        "SP-A13",
        "A type or a member that nobody knows is passed over, and no later line is lost by it.",
    ),
];
