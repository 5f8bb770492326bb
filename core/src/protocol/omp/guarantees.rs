//! What omp promises, numbered OMP-01 to OMP-19.

use crate::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// The promises, in the order of the contract.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "OMP-01",
        "The first line is `ready`: protocol 1, the versions 1 and 2, frames of 1 MiB, reassembled ones of 64 MiB.",
    ),
    row(
        "OMP-02",
        "Each command gets one response that echoes its id; a prompt that fails after it was admitted gets a second one. Lines of the side channel get none.",
    ),
    row(
        "OMP-03",
        "A prompt's acceptance isn't its end: that is `agentInvoked: false`, its `prompt_result`, or an `agent_end` whose `isTerminal` isn't false.",
    ),
    row(
        "OMP-04",
        "Commands are done one after the other, but for `bash` and `live_start`, whose responses come when they come; `abort_bash` overtakes.",
    ),
    row(
        "OMP-05",
        "A prompt while a run is open says whether it steers or follows, or it fails.",
    ),
    row(
        "OMP-06",
        "`steer` goes into the run and `follow_up` comes after it; queues are drained one at a time or all at once; steering interrupts at once or waits.",
    ),
    row(
        "OMP-07",
        "`abort` ends the run with a response and a terminal `agent_end`, and cancels what isn't admitted yet; a change of the session that succeeds does the same, one that is vetoed cancels nothing.",
    ),
    row(
        "OMP-08",
        "A failure is a response with `success: false`, its command and a text; a code stands only where the contract gives one.",
    ),
    row(
        "OMP-09",
        "Protocol 2 cuts frames beyond the limit into chunks of canonical base64 that make the frame again; protocol 1 makes them smaller, until the other is negotiated.",
    ),
    row(
        "OMP-10",
        "Messages come in pages of 1 to 256, 100 if nobody says, from cursors of a snapshot that become stale.",
    ),
    row(
        "OMP-11",
        "The host's tools are replaced as a set; a call gets any number of updates and one result, which can be an error; a cancel names it.",
    ),
    row(
        "OMP-12",
        "URIs of the host's schemes are read and written by it; schemes are lower case, and reserved ones are refused.",
    ),
    row(
        "OMP-13",
        "Of the requests to the screen `select`, `confirm`, `input`, `editor` and `ask` wait for an answer; an answer of an unknown id is ignored; timeouts are the host's.",
    ),
    row(
        "OMP-14",
        "Frames of subagents come at the level that was subscribed to: none, progress, or all events.",
    ),
    row(
        "OMP-15",
        "A goal is read, created, resumed, paused and dropped; what goes wrong is an ordinary failure.",
    ),
    row(
        "OMP-16",
        "A talk has one `live_end`, and a `live_levels` at most every 100 ms.",
    ),
    row(
        "OMP-17",
        "Readers pass over types that they don't know, and keep roles and blocks that they don't know.",
    ),
    row(
        "OMP-18",
        "When the host's input ends, live work ends, and then the process.",
    ),
    row(
        "OMP-19",
        "A fork or branch never parts a call from its result.",
    ),
];
