//! What openmax promises, numbered OM-01 to OM-33. The [rules](super::RULES) judge what the wire shows of it.

use crate::vocab::laws::Guarantee;

const fn row(id: &'static str, says: &'static str) -> Guarantee {
    Guarantee { id, says }
}

/// The promises, in the order of the contract.
pub const GUARANTEES: &[Guarantee] = &[
    row(
        "OM-01",
        "The first line is `hello`: the contract's name and version, the session, the project's absolute path, and whether a session goes on.",
    ),
    row(
        "OM-02",
        "A session that goes on shows its past in one `transcript` line, cut to 4,096 characters a message and 256 KiB in all; any other has no such line.",
    ),
    row(
        "OM-03",
        "What happened before is never said again as if it happened now.",
    ),
    row(
        "OM-04",
        "A session that can't be read, or that another process writes, isn't gone on with: an error on stderr and an exit code before any line. Its owner keeps it between turns.",
    ),
    row(
        "OM-05",
        "`user` begins a turn, `approve` answers an approval, `approval_mode` sets the mode, and `reload`, `cancel` and `quit` do as they are called.",
    ),
    row(
        "OM-06",
        "A command that there isn't is a `protocol_error`; members that nobody knows are ignored, blank lines are skipped, the end of input is `quit`.",
    ),
    row(
        "OM-07",
        "A change of the mode is acknowledged when it is saved; where the mode is unknown or can't be saved, a `protocol_error` says so and nothing changes.",
    ),
    row(
        "OM-08",
        "`reload` is answered by `refrozen`, or in a turn by a `protocol_error`.",
    ),
    row(
        "OM-09",
        "After `quit` or the end of input the running turn is finished, approvals are declined, and the process leaves.",
    ),
    row(
        "OM-10",
        "A line that isn't UTF-8 or is longer than 8 MiB costs one `protocol_error` and nothing else.",
    ),
    row(
        "OM-11",
        "Answering an approval that was never asked for or is settled is a `protocol_error`.",
    ),
    row(
        "OM-12",
        "Every line of the agent carries its session and its type, but for `protocol_error` and the answer to `approval_mode`; readers go by names, not by order.",
    ),
    row(
        "OM-13",
        "The agent's lines are those of the table, each with its fields.",
    ),
    row(
        "OM-14",
        "In `auto` nothing is asked, and deny rules hold all the same; what was asked before stays open when the mode changes.",
    ),
    row(
        "OM-15",
        "A tool whose exact bytes nobody approved asks as `unapproved_source`, with its file and the beginning of its hash.",
    ),
    row(
        "OM-16",
        "An approval lists the environment variables that the tool will get, and it gets no others.",
    ),
    row(
        "OM-17",
        "A `user` that is admitted, or refused outright, is answered by one `done`, after which the next may be sent at once.",
    ),
    row(
        "OM-18",
        "A `user` in a running turn is answered by a `protocol_error` alone.",
    ),
    row(
        "OM-19",
        "Empty text, or a project without trust: `protocol_error`, then `done` with `refused`.",
    ),
    row(
        "OM-20",
        "A run of tokens that went well ends in one `message_done`.",
    ),
    row(
        "OM-21",
        "A provider that fails inside the stream after tokens: `error`, `done` with `error`, no `message_done`, and nothing of it is kept.",
    ),
    row(
        "OM-22",
        "A stream that ends without its completion signal after text: `message_done` with what came, `error`, `done` with `truncated`; none of its calls runs.",
    ),
    row(
        "OM-23",
        "`stop_reason` is the provider's own word, or says which limit, hook, cancel or failure ended the turn.",
    ),
    row(
        "OM-24",
        "A turn that crashes ends with `error` and `done`, never in silence.",
    ),
    row(
        "OM-25",
        "The exit code is 1 after a last turn that failed, 2 where there was no session to go on with, else 0.",
    ),
    row(
        "OM-26",
        "Transport failures, overload and server faults before any text are tried again; nothing is after a token.",
    ),
    row(
        "OM-27",
        "The wait before a retry is the backoff, or what the provider asked for if that is longer; beyond a minute, and for a used-up quota, the turn fails and says why.",
    ),
    row(
        "OM-28",
        "`retry` is said before the wait, and a cancel in the wait ends the turn without another attempt.",
    ),
    row(
        "OM-29",
        "Three attempts in a row that never reached the endpoint end the retries.",
    ),
    row(
        "OM-30",
        "A hook's refusal of a completion is stored, then said; eight are honoured in a turn, counted on each line.",
    ),
    row(
        "OM-31",
        "A hook can block a prompt; one that only observes and fails is reported, and the turn goes on.",
    ),
    row(
        "OM-32",
        "`check` judges a stream line by line, and exits with an error if the contract is broken.",
    ),
    row(
        "OM-33",
        "`spec` prints the contract out of the program itself.",
    ),
];
